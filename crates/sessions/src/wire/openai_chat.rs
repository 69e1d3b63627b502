//! OpenAI chat completions: `role`, `content`, `tool_calls`; each result is a message of role `tool`.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::{
    Ids, Spot, called_with, content_parts, data_url, input, is_on_the_web, media, media_of_url, opaque,
    openai_role, raw, string, text, url_of,
};
use crate::Format;
use crate::is_cleared;
use history::json;
use history::{Call, Media, MediaKind, Message, Output, Part, Reasoning, Role};

/// The role and parts of one element; nothing if it is not a message. `number` names calls that have no id.
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
    // The form before tools: one call a message, answered by name.
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

/// Where the output of an element stands.
pub(super) fn spots(element: &str) -> Vec<Spot> {
    vec![Spot { object: 0..element.len(), key: "content" }]
}

/// The content of a result as JSON. It takes text only.
pub(super) fn output(output: &Output) -> String {
    json::compact(output.text.as_str())
}

#[derive(Serialize)]
struct Element<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    content: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall<'a>>,
}

type Content<'a> = super::Content<'a, ContentPart<'a>>;

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    Text {
        text: &'a str,
    },
    ImageUrl {
        image_url: Url,
    },
    InputAudio {
        input_audio: Audio<'a>,
    },
    File {
        file: File,
    },
    #[serde(untagged)]
    Raw(Box<serde_json::value::RawValue>),
}

#[derive(Serialize)]
struct Url {
    url: String,
}

#[derive(Serialize)]
struct Audio<'a> {
    data: &'a str,
    format: &'static str,
}

#[derive(Serialize)]
struct File {
    filename: &'static str,
    file_data: String,
}

#[derive(Serialize)]
struct ToolCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: String,
}

/// A message as elements: its text and calls as one, and one for each output.
pub(super) fn elements(message: &Message) -> Vec<String> {
    let outputs = message.outputs().map(|it| Element {
        role: "tool",
        tool_call_id: Some(&it.id),
        content: Some(Content::Text(it.text.as_str())),
        tool_calls: vec![],
    });
    let mut out: Vec<String> = outputs.map(|it| json::compact(&it)).collect();
    let parts: Vec<_> = message.parts.iter().filter_map(written).collect();
    let calls = message.calls().map(|it| ToolCall {
        id: &it.id,
        r#type: "function",
        function: Function { name: &it.name, arguments: input(it).get().to_string() },
    });
    let tool_calls: Vec<_> = calls.collect();
    // What a tool said beside its output is the user's.
    let role = if message.role == Role::Tool { Role::User } else { message.role }.name();
    let content = match parts.as_slice() {
        [] => None,
        [ContentPart::Text { text }] => Some(Content::Text(text)),
        _ => Some(Content::Blocks(parts)),
    };
    if content.is_some() || !tool_calls.is_empty() {
        out.push(json::compact(&Element { role, tool_call_id: None, content, tool_calls }));
    }
    out
}

fn written(part: &Part) -> Option<ContentPart<'_>> {
    match part {
        Part::Text(text) => Some(ContentPart::Text { text: text.as_str() }),
        Part::Media(media) => Some(match media.kind {
            MediaKind::Audio => ContentPart::InputAudio {
                input_audio: Audio { data: &media.data, format: audio_format(media).unwrap_or("wav") },
            },
            MediaKind::Pdf | MediaKind::Other => {
                ContentPart::File { file: File { filename: "document.pdf", file_data: data_url(media) } }
            }
            MediaKind::Image => ContentPart::ImageUrl { image_url: Url { url: url_of(media) } },
        }),
        Part::Opaque(it) => raw(it).map(ContentPart::Raw),
        Part::Reasoning(_) | Part::Call(_) | Part::Output(_) => None,
    }
}

/// Whether the API takes an attachment in a user message: images as data or by address, PDF as data, WAV and MP3
/// (OpenAI API reference, `ChatCompletionContentPart`).
pub(super) fn takes(media: &Media) -> bool {
    let is_data = !media.data.contains(':');
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
