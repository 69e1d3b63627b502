//! Anthropic Messages: `role` and `content`, a text or typed blocks; results stand in user messages.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{
    Spot, content_parts, input, is_on_the_web, media, opaque, output_content, raw, string, text,
    text_and_media,
};
use crate::Format;
use crate::is_cleared;
use crate::parse::document;
use crate::parse::spans::Span;
use history::json;
use history::{Call, Media, MediaKind, Message, Output, Part, Reasoning, Role};

/// The role and parts of one element; nothing if it is not a message.
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

/// Images and documents whose data or address is in the block; others (files by id, plain text) stay opaque.
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

/// Where the outputs of an element stand, in the order in which [`read`] gives them.
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
    json::compact(&result_content(output))
}

#[derive(Serialize)]
struct Element<'a> {
    role: &'static str,
    content: Content<'a>,
}

type Content<'a> = super::Content<'a, Block<'a>>;

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Box<RawValue>,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: Content<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
    },
    #[serde(untagged)]
    Raw(Box<RawValue>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Url { url: &'a str },
}

pub(super) fn element(message: &Message) -> String {
    let blocks: Vec<Block<'_>> = message.parts.iter().filter_map(written).collect();
    let role = if message.role == Role::Assistant { "assistant" } else { "user" };
    json::compact(&Element { role, content: content(blocks) })
}

/// A part as a block; nothing for thinking that is not signed.
pub(crate) fn sent(part: &Part) -> Option<String> {
    written(part).map(|it| json::compact(&it))
}

fn written(part: &Part) -> Option<Block<'_>> {
    Some(match part {
        Part::Text(text) => Block::Text { text: text.as_str() },
        Part::Reasoning(it) => {
            Block::Thinking { thinking: it.text.as_str(), signature: it.signature.as_ref()?.as_str() }
        }
        Part::Call(call) => Block::ToolUse { id: &call.id, name: &call.name, input: input(call) },
        Part::Output(output) => Block::ToolResult {
            tool_use_id: &output.id,
            content: result_content(output),
            is_error: output.failed,
        },
        Part::Media(it) => source(it),
        Part::Opaque(it) => Block::Raw(raw(it)?),
    })
}

fn content(mut blocks: Vec<Block<'_>>) -> Content<'_> {
    match blocks.as_mut_slice() {
        [Block::Text { text }] => Content::Text(text),
        _ => Content::Blocks(blocks),
    }
}

fn result_content(output: &Output) -> Content<'_> {
    output_content(output, |text| Block::Text { text }, source)
}

fn source(media: &Media) -> Block<'_> {
    let source = if media.data.contains(':') {
        Source::Url { url: &media.data }
    } else {
        Source::Base64 { media_type: &media.mime, data: &media.data }
    };
    match media.kind {
        MediaKind::Image => Block::Image { source },
        MediaKind::Pdf | MediaKind::Audio | MediaKind::Other => Block::Document { source },
    }
}

/// Whether the API takes an attachment, in a message or in a result: JPEG, PNG, GIF, WebP and PDF, as data or by
/// address (Anthropic documentation, "Vision" and "PDF support").
pub(super) fn takes(media: &Media) -> bool {
    let known = match media.kind {
        MediaKind::Image => matches!(&*media.mime, "image/jpeg" | "image/png" | "image/gif" | "image/webp"),
        MediaKind::Pdf => &*media.mime == "application/pdf",
        MediaKind::Audio | MediaKind::Other => return false,
    };
    is_on_the_web(media) || (known && !media.data.contains(':'))
}
