//! Which API's messages a document holds, by its beginning.

use serde_json::Value;

use super::frame::frame;
use super::string;
use crate::Format;
use crate::parse::spans;

/// Top-level keys of documents of other formats: Gemini CLI (`sessionId`, `projectHash`), OpenCode (`info`),
/// SWE-agent (`trajectory`, `replay_config`), Claude Code and pi lines (`uuid`, `parentUuid`).
const FOREIGN: [&str; 8] =
    ["sessionId", "sessionID", "projectHash", "info", "trajectory", "replay_config", "uuid", "parentUuid"];

/// How many elements are looked at.
const LOOK_AT: usize = 200;

/// The API whose messages a document holds, by its mended beginning; nothing if it is not plain messages.
///
/// The first element that only one API could hold decides: `parts` (Gemini); an item `type` besides `role`, or
/// `input_…`/`output_…` content (Responses); `tool_calls`, role `tool`, `function` or `developer`, `image_url`
/// (chat); blocks `tool_use`, `tool_result`, `thinking` and the like (Anthropic). Where all elements are just role
/// and text: the key decides (`contents` Gemini, `input` Responses), then a top-level `system` (Anthropic), a
/// message of role `system` (chat), content made of text blocks (Anthropic), and else it is chat.
pub fn sniff(first: &str) -> Option<Format> {
    let frame = frame(first)?;
    if frame.fields.iter().any(|it| FOREIGN.contains(&it.0.as_str())) {
        return None;
    }
    let (key, array) = frame.array?;
    let items = spans::items(first, array);
    let whole = items.spans.iter().take(LOOK_AT);
    let mut elements: Vec<Value> =
        whole.map(|it| serde_json::from_str(&first[it.clone()]).unwrap_or_default()).collect();
    if elements.len() < LOOK_AT
        && let Some(start) = items.broken
        && first[start..].starts_with('{')
    {
        elements.push(cut_object(first, start));
    }
    let (mut system, mut blocks, mut messages) = (false, false, elements.is_empty());
    for it in &elements {
        match clue(it) {
            Clue::Is(format) => return Some(format),
            Clue::Foreign => return None,
            Clue::Nothing => {}
            Clue::Message => {
                messages = true;
                system |= string(it, "role") == "system";
                blocks |= it.get("content").is_some_and(Value::is_array);
            }
        }
    }
    if !messages {
        return None;
    }
    Some(match key.as_str() {
        "contents" => Format::GEMINI,
        "input" => Format::OPENAI_RESPONSES,
        _ if frame.fields.iter().any(|it| it.0 == "system" || it.0 == "anthropic_version") => {
            Format::ANTHROPIC
        }
        _ if system => Format::OPENAI_CHAT,
        _ if blocks => Format::ANTHROPIC,
        _ => Format::OPENAI_CHAT,
    })
}

/// The fields of an object that the text cuts off, as far as they are complete.
fn cut_object(text: &str, start: usize) -> Value {
    let fields = spans::fields(text, start).fields.into_iter();
    let fields = fields.map(|(key, span)| {
        let value = serde_json::from_str(&text[span.clone()]);
        (key, value.unwrap_or_else(|_| cut_value(text, span.start)))
    });
    Value::Object(fields.collect())
}

/// Of a cut array its whole elements, of a cut string nothing: enough to tell the shape.
fn cut_value(text: &str, start: usize) -> Value {
    match text.as_bytes().get(start) {
        Some(b'"') => Value::String(String::new()),
        Some(b'[') => {
            let items = spans::items(text, start);
            let whole = items.spans.into_iter().map(|it| serde_json::from_str(&text[it]).unwrap_or_default());
            let mut out: Vec<Value> = whole.collect();
            if let Some(at) = items.broken
                && text[at..].starts_with('{')
            {
                let first = spans::fields(text, at).fields.into_iter();
                let first =
                    first.map(|(key, span)| (key, serde_json::from_str(&text[span]).unwrap_or_default()));
                out.push(Value::Object(first.collect()));
            }
            Value::Array(out)
        }
        _ => Value::Null,
    }
}

enum Clue {
    /// Only this API has such an element.
    Is(Format),
    /// Not a message of any API.
    Foreign,
    /// A message of several APIs.
    Message,
    /// Not an object; says nothing.
    Nothing,
}

fn clue(element: &Value) -> Clue {
    if !element.is_object() {
        return Clue::Nothing;
    }
    let (role, kind) = (string(element, "role"), string(element, "type"));
    if element.get("parts").is_some_and(Value::is_array) {
        // OpenCode has `info` beside `parts`.
        let ours =
            element.get("info").is_none() && matches!(role, "" | "user" | "model" | "function" | "system");
        return if ours { Clue::Is(Format::GEMINI) } else { Clue::Foreign };
    }
    if element.get("info").is_some() || element.get("message").is_some() {
        return Clue::Foreign;
    }
    if matches!(role, "tool" | "function" | "developer") && kind.is_empty()
        || ["tool_calls", "function_call", "tool_call_id", "reasoning_content"]
            .iter()
            .any(|it| element.get(it).is_some())
    {
        return Clue::Is(Format::OPENAI_CHAT);
    }
    let item = matches!(kind, "reasoning" | "compaction" | "item_reference")
        || kind.ends_with("_call")
        || kind.ends_with("_call_output");
    // Anthropic's own answers have `type: message` too, with an id that says so.
    if item || (kind == "message" && !string(element, "id").starts_with("msg_01")) {
        return Clue::Is(Format::OPENAI_RESPONSES);
    }
    if role.is_empty() {
        return Clue::Foreign;
    }
    for block in element.get("content").and_then(Value::as_array).into_iter().flatten() {
        if block.get("cache_control").is_some() {
            return Clue::Is(Format::ANTHROPIC);
        }
        match string(block, "type") {
            "image_url" | "input_audio" | "file" => return Clue::Is(Format::OPENAI_CHAT),
            "input_text" | "output_text" | "input_image" | "input_file" | "summary_text" => {
                return Clue::Is(Format::OPENAI_RESPONSES);
            }
            "tool_use"
            | "tool_result"
            | "thinking"
            | "redacted_thinking"
            | "server_tool_use"
            | "image"
            | "document"
            | "web_search_tool_result"
            | "compaction" => return Clue::Is(Format::ANTHROPIC),
            _ => {}
        }
    }
    Clue::Message
}
