//! pi: an extension in its folder, whose event `session_before_compact` takes one text for what stands before the messages
//! that it keeps. It has no MCP.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::Env;
use super::install::with_program;
use super::seat::{Around, Conversation, Given, Seat, SeatRequest, SeatSession};
use history::Message;
use history::error::Result;
use sessions::Format;

/// The name used in arguments and in the log.
pub const NAME: &str = "pi";

const EXTENSION: &str = include_str!("extension.ts");

pub fn folder(env: &Env) -> PathBuf {
    env.home.join(".pi")
}

/// The extension's file in its folder, and what it holds.
pub fn extension(folder: &Path, program: &Path) -> (PathBuf, String) {
    (folder.join("agent/extensions/epitome.ts"), with_program(EXTENSION, program))
}

pub struct PiSeat;

impl Seat for PiSeat {
    fn name(&self) -> &'static str {
        NAME
    }

    fn limit(&self) -> Duration {
        Duration::from_secs(8)
    }

    fn asked(&self, event: &Value, _around: &Around<'_>) -> Result<Option<SeatRequest>> {
        let now = SeatSession::given(event["session"].as_str().unwrap_or_default().as_bytes(), Format::PI)?;
        let file = event["file"].as_str().map(Path::new);
        let original = file.and_then(|it| SeatSession::file(it, Format::PI).ok());
        Ok(Some(SeatRequest::new(
            event,
            Conversation::Given(Box::new(Given { now, original, archive: false })),
        )))
    }

    fn reply(&self, _messages: &[Message], text: &dyn Fn() -> String) -> Value {
        json!({ "summary": text() })
    }
}
