//! pi: an extension in its folder, whose event `session_before_compact` takes one text for what stands before the messages
//! that it keeps. It has no MCP.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::Env;
use super::install::{FileChange, InstallPlan, MadeInFiles, is_our_file, with_program};
use super::seat::{Around, Conversation, Given, Seat, SeatRequest, SeatSession};
use history::Message;
use history::error::{Error, ErrorKind, Result};
use sessions::Format;

/// The name used in arguments and in the log.
pub const NAME: &str = "pi";

const EXTENSION: &str = include_str!("extension.ts");

/// What installing changes: the extension, which calls `program`; without one, what uninstalling changes.
///
/// # Errors
/// [`ErrorKind::Refused`] where pi is not on this machine, or another's extension has our name.
pub fn plan(env: &Env, program: Option<&Path>) -> Result<InstallPlan> {
    let folder = env.home.join(".pi");
    if program.is_some() && !folder.exists() {
        let what =
            format!("pi is not installed here: expected {}, found nothing; start it once", folder.display());
        return Err(Error::new(ErrorKind::Refused, what));
    }
    let path = folder.join("agent/extensions/epitome.ts");
    let before = std::fs::read_to_string(&path).ok();
    if before.as_deref().is_some_and(|it| !is_our_file(it)) {
        let what = "expected no extension of our name, or ours, found another; rename it";
        return Err(Error::new(ErrorKind::Refused, what).at_path(&path));
    }
    let after = program.map(|it| with_program(EXTENSION, it));
    Ok(InstallPlan { changes: vec![FileChange { path, before, after }], made: MadeInFiles::new() })
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
