//! Gemini generateContent: request bodies and stream events.

use serde_json::{Value, json};

use crate::summary::model::{
    ModelRequest, PartialReply, Prefix, Speaker, StopReason, number, set_some, text,
};

pub fn body(ask: &ModelRequest) -> Value {
    let turns = ask.turns.iter().map(|it| {
        let role = match it.speaker {
            Speaker::Us => "user",
            Speaker::Model => "model",
        };
        json!({"role": role, "parts": [{"text": it.text}]})
    });
    let Prefix { system, tools, mut messages } = ask.front();
    messages.extend(turns);
    let mut out = json!({"generationConfig": {"maxOutputTokens": ask.max_output}});
    let system = system.map(|it| if it.is_string() { json!({"parts": [{"text": it}]}) } else { it });
    let uses = tools.as_ref().map(|_| json!({"functionCallingConfig": {"mode": "NONE"}}));
    let contents = Some(messages.into());
    let fields =
        [("systemInstruction", system), ("contents", contents), ("tools", tools), ("toolConfig", uses)];
    set_some(&mut out, fields);
    out
}

/// Adds a chunk of the stream to the reply.
pub fn event(draft: &mut PartialReply, event: &Value) {
    let reply = &mut draft.reply;
    if let Some(model) = text(event, "/modelVersion") {
        reply.model = Some(model.to_owned());
    }
    if event["usageMetadata"].is_object() {
        reply.tokens.cache_read = number(event, "/usageMetadata/cachedContentTokenCount");
        reply.tokens.input =
            number(event, "/usageMetadata/promptTokenCount").saturating_sub(reply.tokens.cache_read);
        reply.tokens.output = number(event, "/usageMetadata/candidatesTokenCount")
            + number(event, "/usageMetadata/thoughtsTokenCount");
    }
    if text(event, "/promptFeedback/blockReason").is_some() {
        reply.stop = StopReason::Refused;
        draft.finished = true;
    }
    let Some(candidate) = event.pointer("/candidates/0") else { return };
    for part in candidate.pointer("/content/parts").and_then(Value::as_array).into_iter().flatten() {
        if part["functionCall"].is_object() {
            reply.stop = StopReason::ToolCall;
        }
        if part["thought"] != true {
            reply.text.push_str(text(part, "/text").unwrap_or_default());
        }
    }
    let Some(why) = candidate["finishReason"].as_str() else { return };
    draft.finished = true;
    match why {
        "STOP" | "FINISH_REASON_UNSPECIFIED" => {}
        "MAX_TOKENS" => reply.stop = StopReason::Length,
        "MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL" => reply.stop = StopReason::ToolCall,
        // SAFETY, RECITATION, BLOCKLIST, PROHIBITED_CONTENT, SPII, LANGUAGE, OTHER.
        _ => reply.stop = StopReason::Refused,
    }
}
