//! Anthropic Messages: `role` and `content`, a string or typed blocks; results are in user messages.

use serde_json::{Value, json};

use super::{
    Spot, content, content_parts, input, is_on_the_web, media, opaque, opaque_json, output_content, string,
    text, text_and_media,
};
use crate::Format;
use crate::is_cleared;
use crate::parse::document;
use crate::parse::raw::quoted;
use crate::parse::spans::Span;
use history::json;
use history::{Call, Media, MediaKind, Message, Output, Part, Reasoning, Role};

/// The role and parts of one element; none if it is not a message.
pub(super) fn read(value: &Value) -> Option<(Role, Vec<Part>)> {
    let role = match value.get("role")?.as_str()? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        _ => return None,
    };
    Some((role, content_parts(value, block)?))
}

fn block(value: &Value) -> Option<Part> {
    match string(value, "type") {
        "text" => text(string(value, "text")),
        "thinking" => {
            let signature = Some(string(value, "signature")).filter(|it| !it.is_empty()).map(Into::into);
            Some(Part::Reasoning(Reasoning { text: string(value, "thinking").into(), signature }))
        }
        "tool_use" => Some(Part::Call(Call {
            id: string(value, "id").into(),
            name: string(value, "name").into(),
            input: value.get("input").map(json::compact).unwrap_or_else(|| "{}".into()).into(),
            freeform: false,
            signature: None,
        })),
        "tool_result" => Some(Part::Output(result(value))),
        _ => Some(attachment(value).map_or_else(|| opaque(Format::ANTHROPIC, value), Part::Media)),
    }
}

fn result(value: &Value) -> Output {
    let content = value.get("content").filter(|it| it.is_string() || it.is_array());
    let (text, found) = text_and_media(content, attachment);
    Output {
        failed: value.get("is_error").and_then(Value::as_bool).unwrap_or(false),
        cleared: is_cleared(&text),
        media: found.into(),
        ..Output::new(string(value, "tool_use_id"), text)
    }
}

/// Images and documents whose data or URL is in the block; others (files by id, plain text) stay opaque.
fn attachment(value: &Value) -> Option<Media> {
    let kind = match string(value, "type") {
        "image" => MediaKind::Image,
        "document" => MediaKind::Pdf,
        _ => return None,
    };
    let source = value.get("source")?;
    match string(source, "type") {
        "base64" => Some(media(kind, string(source, "media_type"), string(source, "data"))),
        "url" => Some(media(kind, "", string(source, "url"))),
        _ => None,
    }
}

/// The places of an element's outputs, in the order in which [`read`] gives them.
pub(super) fn spots(element: &str) -> Vec<Spot> {
    let is_result = |it: &Span| {
        let kind = document::find(element, it.clone(), &["type"]);
        kind.is_some_and(|it| &element[it] == "\"tool_result\"")
    };
    let blocks = document::open(element, "content").map(|it| it.records).unwrap_or_default();
    let results = blocks.into_iter().filter(is_result);
    results.map(|it| Spot { object: it, key: "content" }).collect()
}

/// The content of a result as JSON.
pub(crate) fn output(output: &Output) -> String {
    result_content(output).to_string()
}

pub(super) fn element(message: &Message) -> String {
    let role = if message.role == Role::Assistant { "assistant" } else { "user" };
    let content = content(message, sent).unwrap_or_else(|| "[]".to_owned());
    format!("{{\"role\":\"{role}\",\"content\":{content}}}")
}

/// A part as a block; none for unsigned thinking.
pub(crate) fn sent(part: &Part) -> Option<String> {
    let block = match part {
        Part::Text(it) => text_block(it.as_str()),
        Part::Reasoning(it) => {
            let signature = it.signature.as_ref()?.as_str();
            json!({ "type": "thinking", "thinking": it.text.as_str(), "signature": signature })
        }
        Part::Call(it) => {
            let (id, name, input) = (quoted(&it.id), quoted(&it.name), input(it));
            return Some(format!("{{\"type\":\"tool_use\",\"id\":{id},\"name\":{name},\"input\":{input}}}"));
        }
        Part::Output(it) => {
            let mut block =
                json!({ "type": "tool_result", "tool_use_id": &*it.id, "content": result_content(it) });
            if it.failed {
                json::set(&mut block, "is_error", true);
            }
            block
        }
        Part::Media(it) => media_block(it),
        Part::Opaque(it) => return opaque_json(it),
    };
    Some(block.to_string())
}

fn result_content(output: &Output) -> Value {
    output_content(output, text_block, media_block)
}

fn text_block(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn media_block(media: &Media) -> Value {
    let source = if media.is_url() {
        json!({ "type": "url", "url": &*media.data })
    } else {
        json!({ "type": "base64", "media_type": &*media.mime, "data": &*media.data })
    };
    let kind = if media.kind == MediaKind::Image { "image" } else { "document" };
    json!({ "type": kind, "source": source })
}

/// Whether the API accepts an attachment, in a message or in a result: JPEG, PNG, GIF, WebP and PDF, as data
/// or by URL (Anthropic documentation, "Vision" and "PDF support").
pub(super) fn takes(media: &Media) -> bool {
    let known = match media.kind {
        MediaKind::Image => matches!(&*media.mime, "image/jpeg" | "image/png" | "image/gif" | "image/webp"),
        MediaKind::Pdf => &*media.mime == "application/pdf",
        MediaKind::Audio | MediaKind::Other => return false,
    };
    is_on_the_web(media) || (known && !media.is_url())
}
