//! How many tokens something is, by which counter, and how far off that may be.

mod bpe;
mod estimate;
pub mod exact;
mod media;
mod rates;
mod reports;
mod counter;
mod shape;
mod window;

pub use counter::MIN_MESSAGES_PER_THREAD;
pub use counter::TokenCounter;
pub use history::middle;
pub use window::{Window, at_least, window};

use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use estimate::Heuristic;
use exact::Encoding;
use history::error::{Error, Result};
use history::named;
use history::{Text, TextSize};

/// A text with its size and its measured shape, of which only the first words are kept if it is long: enough
/// for every counter that needs no exact count.
pub fn measured_stub(text: &str) -> Text {
    Text::stub(text, TextSize::of(text), shape::thousandths(text))
}

named! {
    /// A way to estimate the tokens of a text.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(try_from = "String", into = "String")]
    pub enum Estimator {
        /// OpenAI o200k_base, exact.
        O200k = "o200k",
        /// OpenAI cl100k_base, exact.
        Cl100k = "cl100k",
        /// UTF-16 length / 4, rounded up (OpenCode, December 2025).
        Chars4 = "chars4",
        /// UTF-16 length / 4, rounded half up (OpenCode 1.18).
        Chars4Round = "chars4-round",
        /// UTF-8 bytes / 4, rounded up (Codex).
        Bytes4 = "bytes4",
        /// 0.25 per ASCII character and 1.3 per other (Gemini CLI, December 2025).
        GeminiCli = "gemini-cli",
        /// Gemini CLI 0.61: 0.25 and 1.5 per UTF-16 unit, length / 4 above 100,000.
        GeminiCli061 = "gemini-cli@0.61",
    }
}

impl TryFrom<String> for Estimator {
    type Error = Error;

    fn try_from(name: String) -> Result<Self> {
        Self::named(&name)
    }
}

impl From<Estimator> for String {
    fn from(estimator: Estimator) -> Self {
        estimator.name().to_owned()
    }
}

impl Estimator {
    /// The estimator with this name.
    ///
    /// # Errors
    /// [`Arguments`](history::error::ErrorKind::Arguments), with all names, if there is none.
    pub fn named(name: &str) -> Result<Self> {
        let names = Self::ALL.iter().map(|it| it.name());
        Self::find(name).ok_or_else(|| Error::unknown("a tokenizer", names, name))
    }

    /// Tokens of a bare text, at the speed of memory for all but the exact ones.
    pub fn text(self, text: &str) -> u64 {
        match self.algorithm() {
            Algorithm::Exact(encoding) => exact::count(encoding, text),
            Algorithm::Heuristic(heuristic) => estimate::text(heuristic, TextSize::plain(text)),
        }
    }

    fn algorithm(self) -> Algorithm {
        match self {
            Self::O200k => Algorithm::Exact(Encoding::O200k),
            Self::Cl100k => Algorithm::Exact(Encoding::Cl100k),
            Self::Chars4 => Algorithm::Heuristic(Heuristic::Chars4),
            Self::Chars4Round => Algorithm::Heuristic(Heuristic::Chars4Round),
            Self::Bytes4 => Algorithm::Heuristic(Heuristic::Bytes4),
            Self::GeminiCli => Algorithm::Heuristic(Heuristic::GeminiCli),
            Self::GeminiCli061 => Algorithm::Heuristic(Heuristic::GeminiCli061),
        }
    }
}

/// How an estimator counts.
enum Algorithm {
    Exact(Encoding),
    Heuristic(Heuristic),
}

/// What a counter is based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tokenizer {
    /// Reported usage if there is any; else exact counts, with the rates of the model's maker.
    Auto,
    /// Only this estimator.
    Fixed(Estimator),
}

impl Tokenizer {
    /// `auto`, or the name of an estimator.
    ///
    /// # Errors
    /// [`Arguments`](history::error::ErrorKind::Arguments), with all names, if there is none.
    pub fn named(name: &str) -> Result<Self> {
        if name == "auto" { Ok(Self::Auto) } else { Estimator::named(name).map(Self::Fixed) }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Fixed(it) => it.name(),
        }
    }
}

impl FromStr for Tokenizer {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::named(name)
    }
}

impl Serialize for Tokenizer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Tokenizer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::named(&String::deserialize(deserializer)?).map_err(|error| D::Error::custom(error.detail()))
    }
}

named! {
    /// How a figure was got.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum MethodKind {
        /// Anchored on usage that the provider reported.
        Reported = "reported",
        /// Counted with the model's own tokenizer family.
        Exact = "exact",
        Heuristic = "heuristic",
    }
}

/// How a figure was obtained, and how far off it may be.
#[derive(Debug, Clone, PartialEq)]
pub struct Method {
    pub kind: MethodKind,
    /// The estimator that is used where nothing was reported.
    pub estimator: Estimator,
    /// Index of the message whose reported usage anchors the count.
    pub anchor: Option<usize>,
    /// Plus or minus, in percent.
    pub margin_percent: f64,
}

/// What a context holds, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filled {
    /// System prompt and tools.
    pub overhead: u64,
    /// All messages that are sent, including system messages.
    pub messages: u64,
}

/// What a context consists of, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Categories {
    /// System prompt and tools, system messages, and what the client put in.
    pub system: u64,
    pub user: u64,
    pub assistant: u64,
    pub reasoning: u64,
    pub tool_calls: u64,
    pub tool_outputs: u64,
    /// Images and other attachments.
    pub media: u64,
    /// Summaries of earlier messages.
    pub summary: u64,
}

impl std::ops::Add for Categories {
    type Output = Self;

    fn add(self, it: Self) -> Self {
        Self {
            system: self.system + it.system,
            user: self.user + it.user,
            assistant: self.assistant + it.assistant,
            reasoning: self.reasoning + it.reasoning,
            tool_calls: self.tool_calls + it.tool_calls,
            tool_outputs: self.tool_outputs + it.tool_outputs,
            media: self.media + it.media,
            summary: self.summary + it.summary,
        }
    }
}

impl Categories {
    pub fn total(&self) -> u64 {
        self.named().iter().map(|it| it.1).sum()
    }

    /// Each category with its name in answers, in the order of a stacked chart from bottom to top.
    pub fn named(&self) -> [(&'static str, u64); 8] {
        [
            ("system", self.system),
            ("summary", self.summary),
            ("user", self.user),
            ("assistant", self.assistant),
            ("reasoning", self.reasoning),
            ("tool_calls", self.tool_calls),
            ("tool_outputs", self.tool_outputs),
            ("media", self.media),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for estimator in Estimator::ALL {
            assert_eq!(Estimator::named(estimator.name()).ok(), Some(estimator));
            assert_eq!(Tokenizer::named(estimator.name()).ok(), Some(Tokenizer::Fixed(estimator)));
        }
        assert_eq!(Tokenizer::named("auto").ok(), Some(Tokenizer::Auto));
        let error = Tokenizer::named("o300k").map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("gemini-cli@0.61") && error.contains("o300k"), "{error}");
    }

    #[test]
    fn bare_texts() {
        let counted = Estimator::ALL.map(|it| it.text("Hello world, 你好!"));
        assert_eq!(counted, [6, 7, 4, 4, 5, 6, 6]);
    }
}
