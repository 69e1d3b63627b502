//! What a rollout reports of its tokens.

use history::{Usage, json};
use serde_json::Value;

use super::items::is_contextual;
use crate::parse::cursor::Cursor;
use crate::requests::{Collector, time};

/// What the provider, or after a compaction the client, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) usage: Usage,
    /// `total_tokens` of the last request.
    pub(super) total: u64,
    /// Input and output of all requests so far; the same again is the same report again.
    pub(super) so_far: (u64, u64),
}

/// What was counted, as it stands.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Tokens {
    input: u64,
    cached: u64,
    cache_write: u64,
    output: u64,
    reasoning: u64,
    total: u64,
}

impl Tokens {
    /// What is there and a whole number.
    pub(super) fn of(it: &mut Cursor<'_>) -> Option<Self> {
        let mut out = Self::default();
        it.object(|it, key| {
            let slot = match key {
                "input_tokens" => &mut out.input,
                "cached_input_tokens" => &mut out.cached,
                "cache_write_input_tokens" => &mut out.cache_write,
                "output_tokens" => &mut out.output,
                "reasoning_output_tokens" => &mut out.reasoning,
                "total_tokens" => &mut out.total,
                _ => return it.pass(),
            };
            *slot = it.optional_number()?.unwrap_or(0);
            Some(())
        })?;
        Some(out)
    }
}

/// `last_token_usage` of a report.
pub(crate) fn usage(text: &str) -> Usage {
    report(Cursor::whole(text.as_bytes(), Tokens::of).unwrap_or_default(), None).usage
}

/// What the last request took, and all so far.
pub(super) fn report(last: Tokens, so_far: Option<Tokens>) -> Report {
    // Codex counts cached tokens as part of the input.
    let cache_read = last.cached.min(last.input);
    let cache_write = last.cache_write.min(last.input - cache_read);
    let usage = Usage {
        input: last.input - cache_read - cache_write,
        output: last.output,
        cache_read,
        cache_write,
        cache_write_hour: 0,
        reasoning: last.reasoning,
    };
    let so_far = so_far.unwrap_or(last);
    Report { usage, total: last.total, so_far: (so_far.input, so_far.output) }
}

/// The request that a row reports, also of messages that are not sent any more.
pub(super) fn request(row: &Value, out: &mut Collector) {
    let (at, body) = (time(row), &row["payload"]);
    match (row["type"].as_str(), body["type"].as_str()) {
        (Some("turn_context"), _) => out.model(&body["model"]),
        (Some("compacted"), _) => out.compaction(),
        (Some("event_msg"), Some("token_count")) => {
            let (last, total) = (&body["info"]["last_token_usage"], &body["info"]["total_token_usage"]);
            // The same report comes again with the limits.
            let key = total["total_tokens"].as_u64().map(|it| format!("{it}")).unwrap_or_default();
            out.response(&key, at, usage(&json::compact(last)), false);
        }
        (Some("response_item"), Some("message")) if body["role"] == "user" => {
            // What the client puts there stands in parts of its own.
            let parts = body["content"].as_array().into_iter().flatten();
            let said = parts.filter_map(|it| it["text"].as_str()).find(|it| !is_contextual(it));
            match said {
                Some(text) => out.prompt(at, text),
                None => out.sent(at),
            }
        }
        (Some("response_item"), Some("function_call_output" | "custom_tool_call_output")) => {
            out.sent(at);
        }
        _ => {}
    }
}
