//! What a running agent hands over when it compacts, and the shape in which each takes the answer.
//!
//! Seen on Claude Code 2.1.328, OpenCode 1.18.33, Gemini CLI 0.61.0 and pi 0.73.1.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::Env;
use compaction::plan::Cause;
use history::Message;
use history::error::{Error, ErrorKind, Result};
use sessions::{Format, Session, Source};

/// A client that lets us compact in its place.
pub trait Seat: Sync {
    /// The name used in arguments and in the log.
    fn name(&self) -> &'static str;

    /// How long an answer may take: less than the client waits.
    fn limit(&self) -> Duration;

    /// Whether a failure is answered with an object that changes nothing; otherwise with an exit code.
    fn answers_failure(&self) -> bool {
        false
    }

    /// What an event asks for; nothing if it does not ask for a compaction.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if the event is not of the form that is known.
    fn asked(&self, event: &Value, around: &Around<'_>) -> Result<Option<(SeatAsk, Conversation)>>;

    /// The answer in the client's own shape: `messages` of the compacted history, or the same as one text.
    fn reply(&self, messages: &[Message], text: &dyn Fn() -> String) -> Value;
}

/// What a seat may ask of the program.
pub struct Around<'a> {
    pub env: &'a Env,
    pub project: &'a str,
    /// The value of `env:NAME` or `AGENT:path`.
    pub setting: &'a dyn Fn(&str) -> Option<Value>,
    /// The context window of a model, in tokens.
    pub window: &'a dyn Fn(&str) -> Option<u64>,
    /// The session of this agent that a hook noted for one of the processes above this one.
    pub caller: &'a dyn Fn() -> Option<String>,
}

/// A compaction that a client asks for.
#[derive(Debug, Clone, Default)]
pub struct SeatAsk {
    pub cause: Cause,
    /// What the user wrote behind the command.
    pub focus: Option<String>,
    /// The context window, in tokens, where the client or its settings tell it.
    pub window: Option<u64>,
}

impl SeatAsk {
    /// As the event says it, where it says it in the usual fields.
    pub fn of(event: &Value) -> Self {
        let window = event["window"].as_u64().filter(|it| *it > 0);
        Self { cause: cause(event), focus: focus(event), window }
    }
}

pub enum Conversation {
    /// A session of the agent, by its id.
    Session(Format, String),
    Given(Box<Given>),
}

/// A conversation that was handed over.
pub struct Given {
    pub now: SeatSession,
    /// The session that a user would want back, if it is another one.
    pub original: Option<SeatSession>,
    /// Whether `now` holds more than `original`, so that both are archived.
    pub archive: bool,
}

/// A session that was read, and what it was read from.
pub struct SeatSession {
    pub source: Box<dyn Source + Send>,
    pub session: Session,
    /// Where it lies, if in a file.
    pub path: Option<PathBuf>,
}

impl SeatSession {
    pub fn given(bytes: &[u8], format: Format) -> Result<Self> {
        let source = sessions::MemorySource::new("event", bytes);
        let session = sessions::read(&source, Some(format))?;
        Ok(Self { source: Box::new(source), session, path: None })
    }

    pub fn file(path: &Path, format: Format) -> Result<Self> {
        let source = crate::files::File::open(path)?;
        let session = sessions::read(&source, Some(format))?;
        Ok(Self { source: Box::new(source), session, path: Some(path.to_owned()) })
    }
}

/// # Errors
/// [`ErrorKind::Input`] if it is no object.
pub fn event(bytes: &[u8]) -> Result<Value> {
    let wrong = |found: String| {
        Error::new(ErrorKind::Input, format!("expected a compaction event as JSON, found {found}"))
    };
    let value: Value =
        serde_json::from_str(&history::json::mend(bytes)).map_err(|error| wrong(error.to_string()))?;
    if value.is_object() { Ok(value) } else { Err(wrong("no object".to_owned())) }
}

/// Why the agent compacts: `manual` or `auto`, where it says so.
fn cause(event: &Value) -> Cause {
    match event["trigger"].as_str() {
        Some("manual") | None => Cause::Manual,
        Some(_) => Cause::Auto,
    }
}

/// What the user wrote behind the command.
fn focus(event: &Value) -> Option<String> {
    event["instructions"].as_str().map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned)
}
