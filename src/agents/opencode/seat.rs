//! OpenCode's plugin sends the session's id and takes one text.

use std::time::Duration;

use serde_json::{Value, json};

use crate::agents::hooks::seat::{Conversation, Seat, SeatAsk, SeatContext};
use history::error::{Error, ErrorKind, Result};
use sessions::Format;

pub(super) static SEAT: Seat = Seat {
    format: Format::OPENCODE,
    limit: Duration::from_secs(8),
    answers_failure: false,
    requested,
    reply: |_, text| json!({ "text": text() }),
};

fn requested(event: &Value, _: &SeatContext<'_>) -> Result<Option<(SeatAsk, Conversation)>> {
    let id = event["session_id"].as_str().filter(|it| !it.is_empty());
    let id =
        id.ok_or_else(|| Error::new(ErrorKind::Input, "expected session_id in the event, found none"))?;
    let session = Conversation::Session(Format::OPENCODE, id.to_owned());
    Ok(Some((SeatAsk::of(event), session)))
}
