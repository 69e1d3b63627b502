//! What a running agent sends when it compacts, and the form in which each takes the reply.
//!
//! Observed in Claude Code 2.1.328, OpenCode 1.18.33, Gemini CLI 0.61.0 and pi 0.73.1.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::agents::Env;
use compaction::plan::Cause;
use history::Message;
use history::error::{Error, ErrorKind, Result};
use sessions::{Format, Session, Source};

/// How an agent lets us compact in its place.
pub struct Seat {
    /// The agent's.
    pub format: Format,
    /// Our time limit for a reply, below the agent's own timeout.
    pub limit: Duration,
    /// Whether a failure is reported by a reply that changes nothing; otherwise by an exit code.
    pub answers_failure: bool,
    /// The compaction that an event asks for; `None` if it asks for none, [`ErrorKind::Input`] if the event
    /// does not have the known form.
    pub requested: fn(&Value, &SeatContext<'_>) -> Result<Option<(SeatAsk, Conversation)>>,
    /// The reply in the agent's own form, made of the compacted messages, or of the same as one text.
    pub reply: fn(&[Message], &dyn Fn() -> String) -> Value,
}

impl Seat {
    /// The name used in arguments and in the log.
    pub fn name(&self) -> &'static str {
        self.format.name()
    }
}

/// What a seat may query.
pub struct SeatContext<'a> {
    pub env: &'a Env,
    pub project: &'a str,
    /// The value of `env:NAME` or `AGENT:path`.
    pub setting: &'a dyn Fn(&str) -> Option<Value>,
    /// The context window of a model, in tokens.
    pub window: &'a dyn Fn(&str) -> Option<u64>,
    /// The calling session of this agent, as noted by a hook for an ancestor of this process.
    pub caller: &'a dyn Fn() -> Option<String>,
}

/// A compaction that an agent asks for.
#[derive(Debug, Clone, Default)]
pub struct SeatAsk {
    pub cause: Cause,
    /// What the user wrote after the command, such as `/compact`.
    pub focus: Option<String>,
    /// The context window, in tokens, if the event or the agent's settings tell it.
    pub window: Option<u64>,
}

impl SeatAsk {
    /// Reads the usual fields of an event.
    pub fn of(event: &Value) -> Self {
        let window = event["window"].as_u64().filter(|it| *it > 0);
        Self { cause: cause(event), focus: focus(event), window }
    }
}

pub enum Conversation {
    /// A stored session of the agent, by its id.
    Session(Format, String),
    /// Sent with the event.
    Sent(Box<SentConversation>),
}

/// A conversation that was sent with the event.
pub struct SentConversation {
    pub conversation: SeatSession,
    /// The session that a user would want restored, if not `conversation`.
    pub transcript: Option<SeatSession>,
    /// Whether `conversation` may have messages that `transcript` lacks: then both are archived.
    pub archive_both: bool,
}

/// A session and the bytes it was read from.
pub struct SeatSession {
    pub source: Box<dyn Source + Send>,
    pub session: Session,
    /// Its file, if it has one.
    pub path: Option<PathBuf>,
}

impl SeatSession {
    pub fn from_bytes(bytes: &[u8], format: Format) -> Result<Self> {
        let source = sessions::MemorySource::new("event", bytes);
        let session = sessions::read(&source, Some(format))?;
        Ok(Self { source: Box::new(source), session, path: None })
    }

    pub fn from_file(path: &Path, format: Format) -> Result<Self> {
        let source = crate::files::File::open(path)?;
        let session = sessions::read(&source, Some(format))?;
        Ok(Self { source: Box::new(source), session, path: Some(path.to_owned()) })
    }
}

/// # Errors
/// [`ErrorKind::Input`] if it is not a JSON object.
pub fn event(bytes: &[u8]) -> Result<Value> {
    let wrong = |found: String| {
        Error::new(ErrorKind::Input, format!("expected a compaction event as JSON, found {found}"))
    };
    let value: Value =
        serde_json::from_str(&history::json::mend(bytes)).map_err(|error| wrong(error.to_string()))?;
    if value.is_object() { Ok(value) } else { Err(wrong("no object".to_owned())) }
}

/// Why the agent compacts; without a `trigger`, manually.
fn cause(event: &Value) -> Cause {
    match event["trigger"].as_str() {
        Some("manual") | None => Cause::Manual,
        Some(_) => Cause::Auto,
    }
}

/// What the user wrote after the command, such as `/compact`.
fn focus(event: &Value) -> Option<String> {
    event["instructions"].as_str().map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned)
}
