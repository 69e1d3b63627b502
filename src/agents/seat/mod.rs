//! What a running agent hands over when it compacts, and the shape in which each takes the answer.
//!
//! Seen on Claude Code 2.1.328, OpenCode 1.18.33, Gemini CLI 0.61.0 and pi 0.73.1.

pub mod claude_code;
pub mod codex;
pub mod files;
pub mod gemini_cli;

use serde_json::Value;

use super::Agent;
use compaction::plan::Cause;
use history::error::{Error, Kind, Result};

/// A client that lets us compact in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// Claude Code: plugin, function hook `session.compact`; takes messages.
    ClaudeCode,
    /// OpenCode: plugin; takes one text.
    OpenCode,
    /// Gemini CLI: hook AfterAgent; takes one text.
    GeminiCli,
    /// pi: extension, `session_before_compact`; takes one text for what stands before the messages that it keeps.
    Pi,
}

impl Client {
    const ALL: [Self; 4] = [Self::ClaudeCode, Self::OpenCode, Self::GeminiCli, Self::Pi];

    /// The name used in arguments and in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => Agent::ClaudeCode.name(),
            Self::OpenCode => Agent::OpenCode.name(),
            Self::GeminiCli => Agent::GeminiCli.name(),
            Self::Pi => "pi",
        }
    }

    /// The client of that name.
    ///
    /// # Errors
    /// [`Kind::Arguments`] for one that is not known.
    pub fn named(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|it| it.name()).collect();
            Error::new(Kind::Arguments, format!("expected a client ({}), found {name:?}", names.join(", ")))
        })
    }
}

/// The event as JSON.
///
/// # Errors
/// [`Kind::Input`] if it is no object.
pub fn event(bytes: &[u8]) -> Result<Value> {
    let wrong = |found: String| {
        Error::new(Kind::Input, format!("expected a compaction event as JSON, found {found}"))
    };
    let value: Value =
        serde_json::from_str(&history::json::mend(bytes)).map_err(|error| wrong(error.to_string()))?;
    if value.is_object() { Ok(value) } else { Err(wrong("no object".to_owned())) }
}

/// Why the agent compacts: `manual` or `auto`, where it says so.
pub fn cause(event: &Value) -> Cause {
    match event["trigger"].as_str() {
        Some("manual") | None => Cause::Manual,
        Some(_) => Cause::Auto,
    }
}

/// What the user wrote behind the command.
pub fn focus(event: &Value) -> Option<String> {
    event["instructions"].as_str().map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned)
}
