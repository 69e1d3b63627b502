//! Anthropic Messages: request bodies and stream events. Shapes: the published API of version 2023-06-01.

use serde_json::{Value, json};

use crate::summary::model::{ModelRequest, PartialReply, Prefix, StopReason, Turn, number, set_some, text};
use history::json::set;

/// The API version that is sent with every request.
pub const VERSION: &str = "2023-06-01";

/// The request body. A prefix (the session's own system, tools and messages) comes first, byte for byte, and
/// its end is marked so that it is read from the cache; `tool_choice` would invalidate that, so it is left
/// out.
pub fn body(model: &str, ask: &ModelRequest) -> Value {
    let turn = |it: &Turn| json!({"role": it.speaker.role(), "content": [{"type": "text", "text": it.text}]});
    let Prefix { system, tools, mut messages } = ask.front();
    mark(&mut messages);
    // Two user messages in a row are merged by the API, so the instruction may follow a user message.
    messages.extend(ask.turns.iter().map(turn));
    let mut out = json!({"model": model, "max_tokens": ask.max_output, "stream": true});
    set_some(&mut out, [("system", system), ("messages", Some(messages.into())), ("tools", tools)]);
    out
}

/// Sets `cache_control` on the last block that may carry it, unless the session sets its own.
fn mark(messages: &mut [Value]) {
    let marked = messages.iter().any(|it| it.to_string().contains("\"cache_control\""));
    let Some(last) = messages.last_mut().filter(|_| !marked) else { return };
    if let Some(said) = last["content"].as_str().filter(|it| !it.is_empty()).map(str::to_owned) {
        set(last, "content", json!([{"type": "text", "text": said}]));
    }
    let blocks = last.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten();
    let carries =
        |it: &&mut Value| matches!(it["type"].as_str(), Some("text" | "tool_result" | "image" | "tool_use"));
    if let Some(block) = blocks.rev().find(carries) {
        set(block, "cache_control", json!({"type": "ephemeral"}));
    }
}

fn stop_reason(name: &str) -> Option<StopReason> {
    match name {
        "max_tokens" => Some(StopReason::Length),
        "model_context_window_exceeded" => Some(StopReason::WindowFull),
        "refusal" => Some(StopReason::Refused),
        "tool_use" | "pause_turn" => Some(StopReason::ToolCall),
        _ => None,
    }
}

/// Adds an event of the stream to the reply.
pub fn event(draft: &mut PartialReply, event: &Value) {
    let reply = &mut draft.reply;
    let usage = |path: &str, old: u64| number(event, path).max(old);
    match event["type"].as_str() {
        Some("message_start") => {
            reply.model = text(event, "/message/model").map(str::to_owned);
            reply.tokens.input = number(event, "/message/usage/input_tokens");
            reply.tokens.cache_read = number(event, "/message/usage/cache_read_input_tokens");
            reply.tokens.cache_write = number(event, "/message/usage/cache_creation_input_tokens");
        }
        Some("content_block_start") => {
            if let Some(said) = text(event, "/content_block/text") {
                reply.text.push_str(said);
            }
            if matches!(text(event, "/content_block/type"), Some("tool_use" | "server_tool_use")) {
                reply.stop = StopReason::ToolCall;
            }
        }
        Some("content_block_delta") => {
            if let Some(said) = text(event, "/delta/text") {
                reply.text.push_str(said);
            }
        }
        Some("message_delta") => {
            reply.tokens.output = usage("/usage/output_tokens", reply.tokens.output);
            reply.tokens.input = usage("/usage/input_tokens", reply.tokens.input);
            reply.tokens.cache_read = usage("/usage/cache_read_input_tokens", reply.tokens.cache_read);
            reply.stop = text(event, "/delta/stop_reason").and_then(stop_reason).unwrap_or(reply.stop);
        }
        Some("message_stop") => draft.finished = true,
        // A reply that was not streamed, as some gateways send it.
        Some("message") => {
            for block in event["content"].as_array().into_iter().flatten() {
                reply.text.push_str(text(block, "/text").unwrap_or_default());
            }
            reply.tokens.input = number(event, "/usage/input_tokens");
            reply.tokens.output = number(event, "/usage/output_tokens");
            reply.stop = text(event, "/stop_reason").and_then(stop_reason).unwrap_or_default();
            draft.finished = true;
        }
        // Pings, ends of blocks, and future event types.
        Some(_) | None => {}
    }
}
