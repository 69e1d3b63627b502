//! How many tokens something is, by which ruler, and how far off that may be.

use serde::{Deserialize, Serialize};

use crate::history::{History, Message, Part, Text};

/// A way to estimate the tokens of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// OpenAI o200k_base, exact.
    O200k,
    /// OpenAI cl100k_base, exact.
    Cl100k,
    /// UTF-16 length / 4, rounded up (OpenCode, seed of December 2025).
    Chars4,
    /// UTF-16 length / 4, rounded half up (OpenCode 1.18).
    Chars4Round,
    /// UTF-8 bytes / 4, rounded up (Codex).
    Bytes4,
    /// 0.25 per ASCII character and 1.3 per other (Gemini CLI, December 2025).
    GeminiCli,
    /// Gemini CLI 0.61: 0.25 and 1.5 per UTF-16 unit, length / 4 above 100,000.
    GeminiCli061,
}

/// How a figure was got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodKind {
    /// Anchored on usage that the provider reported.
    Reported,
    /// Counted with the model's own tokenizer family.
    Exact,
    /// Estimated.
    Heuristic,
}

/// How a figure was got and how far off it may be.
#[derive(Debug, Clone, PartialEq)]
pub struct Method {
    /// How.
    pub kind: MethodKind,
    /// The estimator that fills in where nothing was reported.
    pub estimator: Estimator,
    /// Number of the message whose reported usage anchors the count.
    pub anchor: Option<usize>,
    /// Plus or minus, in percent.
    pub margin_percent: f64,
}

/// Which ruler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tokenizer {
    /// The best for this session.
    Auto,
    /// This one.
    Fixed(Estimator),
}

/// The one way anything is counted in a plan.
#[derive(Debug, Clone)]
pub struct Ruler {
    method: Method,
    overhead: u64,
}

impl Ruler {
    /// For this history.
    pub fn new(_history: &History, tokenizer: Tokenizer, overhead: Option<u64>) -> Self {
        let estimator = match tokenizer {
            Tokenizer::Auto => Estimator::Bytes4,
            Tokenizer::Fixed(it) => it,
        };
        let method = Method { kind: MethodKind::Heuristic, estimator, anchor: None, margin_percent: 20.0 };
        Self { method, overhead: overhead.unwrap_or(0) }
    }
    /// A text.
    pub fn text(&self, text: &Text) -> u64 {
        text.weight().bytes.div_ceil(4)
    }
    /// A part.
    pub fn part(&self, part: &Part) -> u64 {
        match part {
            Part::Text(it) => self.text(it),
            Part::Reasoning(it) => self.text(&it.text),
            Part::Call(it) => self.text(&it.input) + 10,
            Part::Output(it) => self.text(&it.text) + 5,
            Part::Media(_) => 1500,
            Part::Opaque(it) => self.text(&it.raw),
        }
    }
    /// A message.
    pub fn message(&self, message: &Message) -> u64 {
        message.parts.iter().map(|it| self.part(it)).sum::<u64>() + 3
    }
    /// How.
    pub fn method(&self) -> &Method {
        &self.method
    }
    /// System and tools.
    pub fn overhead(&self) -> u64 {
        self.overhead
    }
    /// The last report.
    pub fn reported(&self) -> Option<(usize, u64)> {
        None
    }
}
