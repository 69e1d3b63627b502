//! What is looked for: facts of ten classes, each with the messages that establish it.

use history::named;
use serde::{Serialize, Serializer};

named! {
    /// A kind of fact, the heaviest first. The letter is its name in JSON, `name` what people call it, in the plural.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Class {
        UserRule = "user constraints",
        Decision = "decisions",
        /// With the question left open.
        LastRequest = "last request",
        /// A file and what was last done to it.
        File = "file operations",
        /// A command and how it last ended.
        Command = "commands",
        /// An error and whether it is gone.
        Error = "errors",
        OpenItem = "open plan items",
        /// The first request.
        Goal = "goal",
        /// An approach that was tried and given up.
        GivenUp = "approaches given up",
        /// Hash, URL, version, port, number with a key.
        Identifier = "identifiers",
    }
}

impl Class {
    /// Weight in the headline share.
    pub fn weight(self) -> f64 {
        match self {
            Self::UserRule | Self::Decision | Self::LastRequest => 3.0,
            Self::File | Self::Command | Self::Error | Self::OpenItem | Self::Goal => 2.0,
            Self::GivenUp | Self::Identifier => 1.0,
        }
    }

    /// Its letter in JSON and tables.
    pub fn letter(self) -> &'static str {
        match self {
            Self::UserRule => "U",
            Self::Decision => "D",
            Self::LastRequest => "L",
            Self::File => "F",
            Self::Command => "X",
            Self::Error => "E",
            Self::OpenItem => "P",
            Self::Goal => "G",
            Self::GivenUp => "T",
            Self::Identifier => "I",
        }
    }
}

named! {
    /// What was done to a file.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum FileOp {
        /// Looked at, never changed.
        Read = "read",
        /// Changed in part, or written over.
        Edited = "edited",
        /// Made, also as the target of a move.
        Created = "created",
        /// Removed, also as the source of a move.
        Deleted = "deleted",
    }
}

/// Which way a rule points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Polarity {
    Require,
    Forbid,
    /// Both in one sentence.
    Mixed,
}

impl Serialize for Class {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.letter())
    }
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Outcome {
    pub ok: bool,
    /// Its exit code, if told.
    pub exit: Option<i64>,
    /// Tests that passed, if counted.
    pub passed: Option<u64>,
    /// Tests that failed, if counted.
    pub failed: Option<u64>,
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Fact {
    /// A sentence with an obligation in it.
    Rule {
        text: String,
        /// Which way it points.
        polarity: Polarity,
    },
    File {
        /// Relative to the working directory if it is below it.
        path: String,
        /// What was last done to it; reading counts only if nothing else was.
        op: FileOp,
        /// All that was ever done to it.
        done: Vec<FileOp>,
    },
    Command {
        /// Its first line, without a leading `cd` and trailing filters.
        command: String,
        outcome: Outcome,
        /// The hash of the commit that it made.
        commit: Option<String>,
    },
    Error {
        /// The line that tells it, at most 160 characters.
        signature: String,
        /// The message that shows it gone: the same command succeeded there.
        resolved: Option<usize>,
        /// Whether the session does not show if it is gone, such as for errors that the user reported.
        unknown: bool,
    },
    /// An open plan item.
    Plan { item: String },
    Decision {
        /// What was asked, if it answers a question.
        question: Option<String>,
        /// What was chosen or said.
        choice: String,
        /// Earlier answers to the same question.
        superseded: Vec<String>,
    },
    Identifier {
        /// The word that says what the value is; required beside plain numbers.
        key: Option<String>,
        value: String,
    },
    /// An abandoned approach, with the reason.
    Tried {
        /// The sentence that says so.
        text: String,
    },
    /// A request or a question.
    Words { text: String },
}

/// A fact of the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Probe {
    pub class: Class,
    /// The messages of the source that establish it, ascending; it counts as evicted if the last one is.
    pub messages: Vec<usize>,
    pub fact: Fact,
}

impl Probe {
    pub(super) fn new(class: Class, message: usize, fact: Fact) -> Self {
        Self { class, messages: vec![message], fact }
    }

    /// The message that established it last.
    pub fn message(&self) -> usize {
        self.messages.last().copied().unwrap_or_default()
    }

    /// The fact in one line.
    pub fn text(&self) -> String {
        match &self.fact {
            Fact::Rule { text, .. } | Fact::Tried { text } | Fact::Words { text } => text.clone(),
            Fact::File { path, op, .. } => format!("{path}: {}", op.name()),
            Fact::Command { command, outcome, .. } => {
                let mut out = format!("{command}: {}", if outcome.ok { "ok" } else { "failed" });
                for (name, value) in [("passed", outcome.passed), ("failed", outcome.failed)] {
                    if let Some(value) = value {
                        out.push_str(&format!(", {value} {name}"));
                    }
                }
                out
            }
            Fact::Error { signature, resolved, unknown } => {
                let status = match (unknown, resolved) {
                    (true, _) => "reported",
                    (false, Some(_)) => "resolved",
                    (false, None) => "open",
                };
                format!("{signature} ({status})")
            }
            Fact::Plan { item } => item.clone(),
            Fact::Decision { question: Some(question), choice, .. } => format!("{question} → {choice}"),
            Fact::Decision { question: None, choice, .. } => choice.clone(),
            Fact::Identifier { key: Some(key), value } => format!("{key} {value}"),
            Fact::Identifier { key: None, value } => value.clone(),
        }
    }
}
