//! The token usage that a rollout reports.

use history::{Usage, json};
use serde_json::Value;

use super::items::is_contextual;
use crate::parse::raw::Fields;
use crate::session::requests::{Collector, time};

/// Token usage as counted by the provider, or after a compaction by the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) usage: Usage,
    /// `total_tokens` of the last request.
    pub(super) total: u64,
    /// Input and output of all requests so far; if they are equal, it is the same report again.
    pub(super) so_far: (u64, u64),
}

/// `last_token_usage` of a report.
fn usage(text: &str) -> Usage {
    Fields::of(text).map(|it| report(&it, None).usage).unwrap_or_default()
}

/// The usage of the last request, and the totals so far.
pub(super) fn report(last: &Fields, so_far: Option<&Fields>) -> Report {
    let count = |of: &Fields, key: &str| of.number(key).unwrap_or(0);
    // Codex counts cached tokens as part of the input.
    let input = count(last, "input_tokens");
    let cache_read = count(last, "cached_input_tokens").min(input);
    let cache_write = count(last, "cache_write_input_tokens").min(input - cache_read);
    let usage = Usage {
        input: input - cache_read - cache_write,
        output: count(last, "output_tokens"),
        cache_read,
        cache_write,
        cache_write_hour: 0,
        reasoning: count(last, "reasoning_output_tokens"),
    };
    let so_far = so_far.unwrap_or(last);
    let so_far = (count(so_far, "input_tokens"), count(so_far, "output_tokens"));
    Report { usage, total: count(last, "total_tokens"), so_far }
}

/// Collects the request that a row reports, also if its messages are no longer sent.
pub(super) fn request(row: &Value, out: &mut Collector) {
    let (at, body) = (time(row), &row["payload"]);
    match (row["type"].as_str(), body["type"].as_str()) {
        (Some("turn_context"), _) => out.model(&body["model"]),
        (Some("compacted"), _) => out.compaction(),
        (Some("event_msg"), Some("token_count")) => {
            let (last, total) = (&body["info"]["last_token_usage"], &body["info"]["total_token_usage"]);
            // The same report is written again with the rate limits.
            let key = total["total_tokens"].as_u64().map(|it| format!("{it}")).unwrap_or_default();
            out.response(&key, at, usage(&json::compact(last)), false);
        }
        (Some("response_item"), Some("message")) if body["role"] == "user" => {
            // The client's own text is in separate parts.
            let parts = body["content"].as_array().into_iter().flatten();
            let own_text = parts.filter_map(|it| it["text"].as_str()).find(|it| !is_contextual(it));
            match own_text {
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
