//! OpenAI chat completions: `role`, `content`, `tool_calls`; each result is a message of role `tool`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Ids, Spot, called_with, content, content_parts, data_url, input, is_on_the_web, media, media_of_url,
    opaque, opaque_json, openai_role, string, text, url_of,
};
use crate::Format;
use crate::is_cleared;
use crate::parse::raw::quoted;
use history::json;
use history::{Call, Media, MediaKind, Message, Output, Part, Reasoning, Role};

/// The role and parts of one element; none if it is not a message. Calls without an id get one made of
/// `number`.
pub(super) fn read(value: &Value, number: usize, ids: &mut Ids) -> Option<(Role, Vec<Part>)> {
    let role = match value.get("role")?.as_str()? {
        "tool" | "function" => return Some((Role::Tool, vec![Part::Output(result(value, number, ids))])),
        name => openai_role(name)?,
    };
    let mut parts = vec![];
    if role == Role::Assistant {
        // DeepSeek and vLLM say `reasoning_content`, OpenRouter `reasoning`; neither is signed.
        let thought = ["reasoning_content", "reasoning"].into_iter().map(|it| string(value, it));
        parts.extend(
            thought
                .filter(|it| !it.is_empty())
                .take(1)
                .map(|it| Part::Reasoning(Reasoning { text: it.into(), signature: None })),
        );
    }
    parts.extend(content_parts(value, part)?);
    parts.extend(text(string(value, "refusal")));
    let calls = value.get("tool_calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for (index, it) in calls.iter().enumerate() {
        let custom = it.get("custom");
        let Some(what) = custom.or_else(|| it.get("function")) else { continue };
        let id = string(it, "id");
        let id = if id.is_empty() { ids.made_up(number, index, string(what, "name")) } else { id.into() };
        parts.push(call(what, id, custom.is_some()));
    }
    // The form before tools: one call per message, answered by name.
    if let Some(what) = value.get("function_call").filter(|it| it.is_object()) {
        parts.push(call(what, ids.made_up(number, calls.len(), string(what, "name")), false));
    }
    Some((role, parts))
}

fn call(what: &Value, id: Arc<str>, freeform: bool) -> Part {
    let key = if freeform { "input" } else { "arguments" };
    let input = called_with(what, key);
    Part::Call(Call { id, name: string(what, "name").into(), input: input.into(), freeform, signature: None })
}

fn result(value: &Value, number: usize, ids: &mut Ids) -> Output {
    let name = string(value, "name");
    // SWE-agent keeps `tool_call_ids`, always one.
    let id = match (string(value, "tool_call_id"), value.get("tool_call_ids").and_then(|it| it.get(0))) {
        ("", Some(Value::String(it))) => it.as_str().into(),
        ("", _) => ids.answered_by_name(number, 0, name),
        (it, _) => ids.answered(it),
    };
    let text = match value.get("content") {
        Some(Value::String(it)) => it.clone(),
        Some(Value::Array(it)) => {
            let texts: Vec<&str> =
                it.iter().map(|it| string(it, "text")).filter(|it| !it.is_empty()).collect();
            texts.join("\n")
        }
        None | Some(Value::Null) => String::new(),
        Some(it) => json::compact(it),
    };
    Output {
        name: Some(name).filter(|it| !it.is_empty()).map(Arc::from),
        cleared: is_cleared(&text),
        ..Output::new(id, text)
    }
}

fn part(value: &Value) -> Option<Part> {
    let other = || Some(opaque(Format::OPENAI_CHAT, value));
    match string(value, "type") {
        "text" => text(string(value, "text")),
        "refusal" => text(string(value, "refusal")),
        "image_url" => {
            let url =
                value.get("image_url").map_or("", |it| it.as_str().unwrap_or_else(|| string(it, "url")));
            if url.is_empty() { other() } else { Some(Part::Media(media_of_url(MediaKind::Image, url))) }
        }
        "input_audio" => {
            let Some(audio) = value.get("input_audio") else { return other() };
            let mime = format!("audio/{}", string(audio, "format"));
            Some(Part::Media(media(MediaKind::Audio, &mime, string(audio, "data"))))
        }
        "file" => match value.get("file").map_or("", |it| string(it, "file_data")) {
            "" => other(),
            data => Some(Part::Media(media_of_url(MediaKind::Pdf, data))),
        },
        _ => other(),
    }
}

/// The place of an element's output.
pub(super) fn spots(element: &str) -> Vec<Spot> {
    vec![Spot { object: 0..element.len(), key: "content" }]
}

/// The content of a result as JSON, which is only text.
pub(super) fn output(output: &Output) -> String {
    quoted(output.text.as_str())
}

/// A message as elements: its text and calls as one, and one for each output.
pub(super) fn elements(message: &Message) -> Vec<String> {
    let outputs = message.outputs().map(|it| {
        json!({ "role": "tool", "tool_call_id": &*it.id, "content": it.text.as_str() }).to_string()
    });
    let mut out: Vec<String> = outputs.collect();
    let calls = message.calls().map(|it| {
        let function = json!({ "name": &*it.name, "arguments": input(it).get() });
        json!({ "id": &*it.id, "type": "function", "function": function })
    });
    let calls: Vec<Value> = calls.collect();
    let content = content(message, written);
    if content.is_some() || !calls.is_empty() {
        // Text beside a tool's output is sent as the user's.
        let role = if message.role == Role::Tool { Role::User } else { message.role }.name();
        let content = content.as_deref().unwrap_or("null");
        let calls = json::compact(&calls);
        let calls = if calls == "[]" { String::new() } else { format!(",\"tool_calls\":{calls}") };
        out.push(format!("{{\"role\":\"{role}\",\"content\":{content}{calls}}}"));
    }
    out
}

fn written(part: &Part) -> Option<String> {
    let block = match part {
        Part::Text(it) => json!({ "type": "text", "text": it.as_str() }),
        Part::Media(it) => match it.kind {
            MediaKind::Audio => {
                let audio = json!({ "data": &*it.data, "format": audio_format(it).unwrap_or("wav") });
                json!({ "type": "input_audio", "input_audio": audio })
            }
            MediaKind::Pdf | MediaKind::Other => {
                let file = json!({ "filename": "document.pdf", "file_data": data_url(it) });
                json!({ "type": "file", "file": file })
            }
            MediaKind::Image => json!({ "type": "image_url", "image_url": { "url": url_of(it) } }),
        },
        Part::Opaque(it) => return opaque_json(it),
        Part::Reasoning(_) | Part::Call(_) | Part::Output(_) => return None,
    };
    Some(block.to_string())
}

/// Whether the API accepts an attachment in a user message: images as data or by URL, PDF as data, WAV and
/// MP3 (OpenAI API reference, `ChatCompletionContentPart`).
pub(super) fn takes(media: &Media) -> bool {
    let is_data = !media.is_url();
    match media.kind {
        MediaKind::Image if is_data => media.mime.starts_with("image/"),
        MediaKind::Image => is_on_the_web(media),
        MediaKind::Pdf => is_data && &*media.mime == "application/pdf",
        MediaKind::Audio => is_data && audio_format(media).is_some(),
        MediaKind::Other => false,
    }
}

fn audio_format(media: &Media) -> Option<&'static str> {
    match &*media.mime {
        "audio/wav" | "audio/x-wav" => Some("wav"),
        "audio/mp3" | "audio/mpeg" => Some("mp3"),
        _ => None,
    }
}
