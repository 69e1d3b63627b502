//! The token usage that a response reports.

use history::{Usage, json};
use serde_json::Value;

use crate::parse::cursor::Cursor;
use crate::session::requests::{Collector, text, time};

/// The model name on rows that the client wrote in the model's place.
pub(super) const SYNTHETIC: &str = "<synthetic>";

/// `message.usage` of a row.
pub(crate) fn usage(text: &str) -> Usage {
    Cursor::whole(text.as_bytes(), reported).unwrap_or_default()
}

/// Reads `message.usage`; a field that is missing or not a whole number counts as zero.
pub(super) fn reported(it: &mut Cursor<'_>) -> Option<Usage> {
    let mut out = Usage::default();
    it.object(|it, name| {
        match name {
            "input_tokens" => out.input = it.optional_number()?.unwrap_or(0),
            "output_tokens" => out.output = it.optional_number()?.unwrap_or(0),
            "cache_read_input_tokens" => out.cache_read = it.optional_number()?.unwrap_or(0),
            "cache_creation_input_tokens" => out.cache_write = it.optional_number()?.unwrap_or(0),
            "cache_creation" => {
                let hour = it.member("ephemeral_1h_input_tokens", Cursor::optional_number)?;
                out.cache_write_hour = hour.flatten().unwrap_or(0);
            }
            _ => it.pass()?,
        }
        Some(())
    })?;
    Some(out)
}

/// Collects the request that a row reports, also if its messages are no longer sent.
pub(super) fn request(row: &Value, out: &mut Collector) {
    let (at, message) = (time(row), &row["message"]);
    let side = row["isSidechain"] == true;
    match row["type"].as_str() {
        Some("system") if row["subtype"] == "compact_boundary" => out.compaction(),
        Some("user") => {
            let results =
                message["content"].as_array().into_iter().flatten().any(|it| it["type"] == "tool_result");
            let own = row["isMeta"] != true && row["isCompactSummary"] != true && !side && !results;
            match text(&message["content"]).filter(|_| own) {
                Some(text) => out.prompt(at, &text),
                None => out.sent(at),
            }
        }
        Some("assistant") if message["model"] != SYNTHETIC => {
            out.model(&message["model"]);
            let usage = usage(&json::compact(&message["usage"]));
            out.response(message["id"].as_str().unwrap_or_default(), at, usage, side);
        }
        _ => {}
    }
}
