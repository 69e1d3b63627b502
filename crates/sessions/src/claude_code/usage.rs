//! What a response reports of its tokens.

use history::error::Result;
use history::{Usage, json};
use serde::Deserialize;
use serde_json::Value;

use super::lenient::lenient;
use crate::Source;
use crate::cursor::{Cursor, Seen};
use crate::requests::{Collector, each_row, text, time};

/// `message.usage`.
#[derive(Deserialize, Default)]
pub(super) struct Reported {
    #[serde(default, deserialize_with = "lenient")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    cache_creation: Option<Creation>,
}

/// Of what was written to a cache, how much for how long.
#[derive(Deserialize, Default)]
pub(super) struct Creation {
    #[serde(default, deserialize_with = "lenient")]
    ephemeral_1h_input_tokens: Option<u64>,
}

impl Creation {
    fn of(it: &mut Cursor<'_>) -> Option<Self> {
        let (mut out, mut seen) = (Self::default(), Seen::default());
        it.object(|it, name| {
            match name {
                "ephemeral_1h_input_tokens" => {
                    out.ephemeral_1h_input_tokens = seen.once(0, it.some(Cursor::number))?;
                }
                _ => it.pass()?,
            }
            Some(())
        })?;
        Some(out)
    }
}

/// `message.usage` of a row.
pub(crate) fn usage(text: &str) -> Usage {
    serde_json::from_str(text).map(Reported::usage).unwrap_or_default()
}

impl Reported {
    pub(super) fn usage(self) -> Usage {
        Usage {
            input: self.input_tokens.unwrap_or(0),
            output: self.output_tokens.unwrap_or(0),
            cache_read: self.cache_read_input_tokens.unwrap_or(0),
            cache_write: self.cache_creation_input_tokens.unwrap_or(0),
            cache_write_hour: self.cache_creation.and_then(|it| it.ephemeral_1h_input_tokens).unwrap_or(0),
            reasoning: 0,
        }
    }

    /// Reads it where it is as usual: whole numbers, or nothing.
    pub(super) fn of(it: &mut Cursor<'_>) -> Option<Self> {
        let (mut out, mut seen) = (Self::default(), Seen::default());
        it.object(|it, name| {
            match name {
                "input_tokens" => out.input_tokens = seen.once(0, it.some(Cursor::number))?,
                "output_tokens" => out.output_tokens = seen.once(1, it.some(Cursor::number))?,
                "cache_read_input_tokens" => {
                    out.cache_read_input_tokens = seen.once(2, it.some(Cursor::number))?
                }
                "cache_creation_input_tokens" => {
                    out.cache_creation_input_tokens = seen.once(3, it.some(Cursor::number))?;
                }
                "cache_creation" => out.cache_creation = seen.once(4, it.some(Creation::of))?,
                _ => it.pass()?,
            }
            Some(())
        })?;
        Some(out)
    }
}

/// Every request that was reported, also of messages that are not sent any more.
pub(crate) fn requests(source: &dyn Source, out: &mut Collector) -> Result<()> {
    each_row(source, |row| request(&row, out))
}

fn request(row: &Value, out: &mut Collector) {
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
        Some("assistant") if message["model"] != "<synthetic>" => {
            out.model(&message["model"]);
            let usage = usage(&json::compact(&message["usage"]));
            out.response(message["id"].as_str().unwrap_or_default(), at, usage, side);
        }
        _ => {}
    }
}
