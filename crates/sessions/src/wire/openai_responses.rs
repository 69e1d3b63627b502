//! OpenAI Responses input items: messages, calls, outputs and reasoning each are an item of their own.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{
    Spot, called_with, content_parts, data_url, input, is_on_the_web, joined, media_of_url, opaque,
    openai_role, output_content, raw, string, text, text_and_media, url_of,
};
use crate::Format;
use crate::is_cleared;
use history::json;
use history::{Call, Media, MediaKind, Message, Opaque, Output, Part, Reasoning, Role};

/// The role and parts of one element; nothing if it is not an item.
pub(super) fn read(value: &Value) -> Option<(Role, Vec<Part>)> {
    let kind = string(value, "type");
    Some(match kind {
        "message" | "" => {
            let role = openai_role(value.get("role")?.as_str()?)?;
            (role, content_parts(value, part)?)
        }
        "function_call" => (Role::Assistant, vec![call(value, string(value, "name"), "arguments", false)]),
        "custom_tool_call" => (Role::Assistant, vec![call(value, string(value, "name"), "input", true)]),
        "local_shell_call" => (Role::Assistant, vec![call(value, "local_shell", "action", false)]),
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            (Role::Tool, vec![Part::Output(result(value))])
        }
        "reasoning" => (Role::Assistant, vec![Part::Reasoning(reasoning(value))]),
        _ if kind.ends_with("_output") => (Role::Tool, vec![opaque(Format::OPENAI_RESPONSES, value)]),
        _ => (Role::Assistant, vec![opaque(Format::OPENAI_RESPONSES, value)]),
    })
}

fn call(value: &Value, name: &str, key: &str, freeform: bool) -> Part {
    let input = called_with(value, key);
    let id = match string(value, "call_id") {
        "" => string(value, "id"),
        it => it,
    };
    Part::Call(Call { id: id.into(), name: name.into(), input: input.into(), freeform, signature: None })
}

fn result(value: &Value) -> Output {
    let (text, found) = text_and_media(value.get("output"), attachment);
    let id = match string(value, "call_id") {
        "" => string(value, "id"),
        it => it,
    };
    Output { cleared: is_cleared(&text), media: found.into(), ..Output::new(id, text) }
}

fn reasoning(value: &Value) -> Reasoning {
    let texts = ["summary", "content"].into_iter().filter_map(|it| value.get(it)?.as_array()).flatten();
    let texts: Vec<&str> = texts.map(|it| string(it, "text")).filter(|it| !it.is_empty()).collect();
    let signature = Some(string(value, "encrypted_content")).filter(|it| !it.is_empty()).map(Into::into);
    Reasoning { text: texts.join("\n").into(), signature }
}

fn part(value: &Value) -> Option<Part> {
    match string(value, "type") {
        "input_text" | "output_text" | "text" => text(string(value, "text")),
        "refusal" => text(string(value, "refusal")),
        _ => Some(attachment(value).map_or_else(|| opaque(Format::OPENAI_RESPONSES, value), Part::Media)),
    }
}

/// Images and files whose data or address is in the part; files by id stay opaque.
fn attachment(value: &Value) -> Option<Media> {
    let (kind, url) = match string(value, "type") {
        "input_image" => (MediaKind::Image, string(value, "image_url")),
        "input_file" => (
            MediaKind::Pdf,
            match string(value, "file_data") {
                "" => string(value, "file_url"),
                it => it,
            },
        ),
        _ => return None,
    };
    Some(url).filter(|it| !it.is_empty()).map(|it| media_of_url(kind, it))
}

/// Where the output of an element stands.
pub(super) fn spots(element: &str) -> Vec<Spot> {
    vec![Spot { object: 0..element.len(), key: "output" }]
}

/// The output of a call as JSON.
pub(super) fn output(output: &Output) -> String {
    json::compact(&result_content(output))
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'static str,
        content: Vec<ContentPart<'a>>,
    },
    FunctionCall {
        call_id: &'a str,
        name: &'a str,
        arguments: String,
    },
    CustomToolCall {
        call_id: &'a str,
        name: &'a str,
        input: &'a str,
    },
    FunctionCallOutput {
        call_id: &'a str,
        output: Content<'a>,
    },
    CustomToolCallOutput {
        call_id: &'a str,
        output: Content<'a>,
    },
    Reasoning {
        summary: Vec<ContentPart<'a>>,
        encrypted_content: &'a str,
    },
    #[serde(untagged)]
    Raw(Box<RawValue>),
}

type Content<'a> = super::Content<'a, ContentPart<'a>>;

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    InputText {
        text: &'a str,
    },
    OutputText {
        text: &'a str,
    },
    SummaryText {
        text: &'a str,
    },
    InputImage {
        image_url: String,
    },
    #[serde(rename = "input_file")]
    FileData {
        filename: &'static str,
        file_data: String,
    },
    #[serde(rename = "input_file")]
    FileUrl {
        file_url: &'a str,
    },
    #[serde(untagged)]
    Raw(Box<RawValue>),
}

/// A message as items: runs of text and attachments become a message, everything else an item of its own.
/// `freeform` says of a call id whether its tool takes text.
pub(super) fn elements(message: &Message, freeform: &dyn Fn(&str) -> bool) -> Vec<String> {
    // What a tool said beside its output is the user's.
    let role = if message.role == Role::Tool { Role::User } else { message.role }.name();
    let (mut out, mut run) = (vec![], vec![]);
    for part in &message.parts {
        if let Some(it) = content_part(part, message.role) {
            run.push(it);
            continue;
        }
        close(&mut out, role, &mut run);
        out.extend(item(part, freeform).map(|it| json::compact(&it)));
    }
    close(&mut out, role, &mut run);
    out
}

fn close(out: &mut Vec<String>, role: &'static str, run: &mut Vec<ContentPart<'_>>) {
    if !run.is_empty() {
        out.push(json::compact(&Item::Message { role, content: std::mem::take(run) }));
    }
}

fn item<'a>(part: &'a Part, freeform: &dyn Fn(&str) -> bool) -> Option<Item<'a>> {
    Some(match part {
        Part::Call(it) if it.freeform => {
            Item::CustomToolCall { call_id: &it.id, name: &it.name, input: it.input.as_str() }
        }
        Part::Call(it) => {
            Item::FunctionCall { call_id: &it.id, name: &it.name, arguments: input(it).get().to_string() }
        }
        Part::Output(it) if freeform(&it.id) => {
            Item::CustomToolCallOutput { call_id: &it.id, output: result_content(it) }
        }
        Part::Output(it) => Item::FunctionCallOutput { call_id: &it.id, output: result_content(it) },
        Part::Reasoning(it) => Item::Reasoning {
            summary: joined(&it.text).map(|text| ContentPart::SummaryText { text }).into_iter().collect(),
            encrypted_content: it.signature.as_ref()?.as_str(),
        },
        Part::Opaque(it) => Item::Raw(raw(it)?),
        Part::Text(_) | Part::Media(_) => return None,
    })
}

fn content_part(part: &Part, role: Role) -> Option<ContentPart<'_>> {
    match part {
        Part::Text(text) if role == Role::Assistant => Some(ContentPart::OutputText { text: text.as_str() }),
        Part::Text(text) => Some(ContentPart::InputText { text: text.as_str() }),
        Part::Media(it) => Some(attached(it)),
        Part::Opaque(it) if is_content(it) => raw(it).map(ContentPart::Raw),
        Part::Opaque(_) | Part::Reasoning(_) | Part::Call(_) | Part::Output(_) => None,
    }
}

/// Whether an opaque block stands inside a message rather than being an item itself.
pub(super) fn is_content(opaque: &Opaque) -> bool {
    opaque.kind.starts_with("input_")
}

fn result_content(output: &Output) -> Content<'_> {
    output_content(output, |text| ContentPart::InputText { text }, attached)
}

fn attached(media: &Media) -> ContentPart<'_> {
    match media.kind {
        MediaKind::Image => ContentPart::InputImage { image_url: url_of(media) },
        MediaKind::Pdf | MediaKind::Audio | MediaKind::Other if media.data.contains(':') => {
            ContentPart::FileUrl { file_url: &media.data }
        }
        MediaKind::Pdf | MediaKind::Audio | MediaKind::Other => {
            ContentPart::FileData { filename: "document.pdf", file_data: data_url(media) }
        }
    }
}

/// Whether the API takes an attachment, in a user message or an output: images and PDF, as data or by address
/// (OpenAI API reference, `ResponseInputContent`).
pub(super) fn takes(media: &Media) -> bool {
    let known = match media.kind {
        MediaKind::Image => media.mime.starts_with("image/"),
        MediaKind::Pdf => &*media.mime == "application/pdf",
        MediaKind::Audio | MediaKind::Other => return false,
    };
    is_on_the_web(media) || (known && !media.data.contains(':'))
}
