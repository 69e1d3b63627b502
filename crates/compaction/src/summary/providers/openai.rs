//! OpenAI Responses and chat completions: request bodies and stream events. Ollama, llama.cpp, vLLM and LM
//! Studio speak chat completions, too.

use serde_json::{Value, json};

use crate::summary::model::{
    ModelRequest, PartialReply, Prefix, Speaker, StopReason, number, set_some, text,
};

/// The body of a Responses request. With `store: false`, the provider keeps nothing.
pub fn responses_body(model: &str, ask: &ModelRequest) -> Value {
    let turns = ask.turns.iter().map(|it| match it.speaker {
        Speaker::Us => {
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": it.text}]})
        }
        Speaker::Model => json!({"role": "assistant", "content": it.text}),
    });
    let Prefix { system, tools, mut messages } = ask.front();
    messages.extend(turns);
    let mut out =
        json!({"model": model, "stream": true, "store": false, "max_output_tokens": ask.max_output});
    let uses = tools.as_ref().map(|_| json!("none"));
    let input = Some(messages.into());
    let fields = [("instructions", system), ("input", input), ("tools", tools), ("tool_choice", uses)];
    set_some(&mut out, fields);
    out
}

/// The body of a chat completion. `max_tokens`, since compatible servers do not know its newer name, and
/// OpenAI's own models are asked by [`responses_body`].
pub fn chat_body(model: &str, ask: &ModelRequest) -> Value {
    let turns = ask.turns.iter().map(|it| json!({"role": it.speaker.role(), "content": it.text}));
    let Prefix { system, tools, messages } = ask.front();
    let system = system.map(|it| json!({"role": "system", "content": it}));
    let messages: Vec<Value> = system.into_iter().chain(messages).chain(turns).collect();
    let mut out = json!({
        "model": model, "stream": true, "stream_options": {"include_usage": true}, "max_tokens": ask.max_output,
        "messages": messages,
    });
    let uses = tools.as_ref().map(|_| json!("none"));
    set_some(&mut out, [("tools", tools), ("tool_choice", uses)]);
    out
}

/// Adds an event of a Responses stream to the reply.
pub fn responses_event(draft: &mut PartialReply, event: &Value) {
    match event["type"].as_str() {
        Some("response.output_text.delta") => {
            draft.reply.text.push_str(event["delta"].as_str().unwrap_or_default());
        }
        Some("response.refusal.delta") => draft.reply.stop = StopReason::Refused,
        Some("response.output_item.added")
            if text(event, "/item/type").is_some_and(|it| it.ends_with("_call")) =>
        {
            draft.reply.stop = StopReason::ToolCall;
        }
        Some("response.completed" | "response.incomplete") => response(draft, &event["response"]),
        Some(_) => {}
        // A reply that was not streamed.
        None if event["object"] == "response" => response(draft, event),
        None => {}
    }
}

/// Adds the finished response: usage, stop reason, and the text if none was streamed.
fn response(draft: &mut PartialReply, response: &Value) {
    let reply = &mut draft.reply;
    draft.finished = true;
    reply.model = text(response, "/model").map(str::to_owned);
    reply.tokens.cache_read = number(response, "/usage/input_tokens_details/cached_tokens");
    reply.tokens.input = number(response, "/usage/input_tokens").saturating_sub(reply.tokens.cache_read);
    reply.tokens.output = number(response, "/usage/output_tokens");
    match text(response, "/incomplete_details/reason") {
        Some("content_filter") => reply.stop = StopReason::Refused,
        Some(_) => reply.stop = StopReason::Length,
        None => {}
    }
    if reply.text.is_empty() {
        let parts = response["output"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|it| it["content"].as_array().into_iter().flatten());
        for part in parts.filter(|it| it["type"] == "output_text") {
            reply.text.push_str(text(part, "/text").unwrap_or_default());
        }
    }
}

/// Adds a chunk of a chat completion to the reply.
pub fn chat_event(draft: &mut PartialReply, event: &Value) {
    let reply = &mut draft.reply;
    if let Some(model) = text(event, "/model") {
        reply.model = Some(model.to_owned());
    }
    if event["usage"].is_object() {
        reply.tokens.cache_read = number(event, "/usage/prompt_tokens_details/cached_tokens");
        reply.tokens.input = number(event, "/usage/prompt_tokens").saturating_sub(reply.tokens.cache_read);
        reply.tokens.output = number(event, "/usage/completion_tokens");
    }
    let Some(choice) = event.pointer("/choices/0") else { return };
    // `message` if the reply was not streamed.
    for said in ["/delta", "/message"] {
        let Some(said) = choice.pointer(said) else { continue };
        reply.text.push_str(said["content"].as_str().unwrap_or_default());
        if said["refusal"].as_str().is_some_and(|it| !it.is_empty()) {
            reply.stop = StopReason::Refused;
        }
        if said["tool_calls"].as_array().is_some_and(|it| !it.is_empty()) || said["function_call"].is_object()
        {
            reply.stop = StopReason::ToolCall;
        }
    }
    let Some(why) = choice["finish_reason"].as_str() else { return };
    draft.finished = true;
    match why {
        "length" => reply.stop = StopReason::Length,
        "content_filter" => reply.stop = StopReason::Refused,
        "tool_calls" | "function_call" => reply.stop = StopReason::ToolCall,
        _ => {}
    }
}
