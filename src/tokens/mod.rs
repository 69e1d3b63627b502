//! How many tokens something is, by which ruler, and how far off that may be.

use std::sync::Arc;

use crate::error::Result;
use crate::history::{History, Message, Part, Text};

/// A way to estimate the tokens of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
