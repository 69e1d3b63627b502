//! OpenCode's plugin sends the session's id and takes one text.

use std::time::Duration;

use serde_json::{Value, json};

use super::OpenCode;
use crate::agents::Agent;
use crate::agents::seat::{Conversation, Seat, SeatAsk, SeatContext};
use history::Message;
use history::error::{Error, ErrorKind, Result};

pub struct OpenCodeSeat;

impl Seat for OpenCodeSeat {
    fn name(&self) -> &'static str {
        OpenCode.name()
    }

    fn limit(&self) -> Duration {
        Duration::from_secs(8)
    }

    fn requested(
        &self,
        event: &Value,
        _context: &SeatContext<'_>,
    ) -> Result<Option<(SeatAsk, Conversation)>> {
        let id = event["session_id"].as_str().filter(|it| !it.is_empty());
        let id =
            id.ok_or_else(|| Error::new(ErrorKind::Input, "expected session_id in the event, found none"))?;
        let session = Conversation::Session(OpenCode.format(), id.to_owned());
        Ok(Some((SeatAsk::of(event), session)))
    }

    fn reply(&self, _messages: &[Message], text: &dyn Fn() -> String) -> Value {
        json!({ "text": text() })
    }
}
