//! OpenAI Responses input items: each message, call, output and reasoning is an item of its own.

use serde_json::{Value, json};

use super::{
    Spot, called_with, content_parts, data_url, input, is_on_the_web, joined, media_of_url, opaque,
    opaque_json, openai_role, output_content, string, text, text_and_media, url_of,
};
use crate::Format;
use crate::is_cleared;
use crate::parse::raw::array;
use history::{Call, Media, MediaKind, Message, Opaque, Output, Part, Reasoning, Role};

/// The role and parts of one element; none if it is not an item.
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
    Part::Call(Call {
        id: call_id(value).into(),
        name: name.into(),
        input: input.into(),
        freeform,
        signature: None,
    })
}

fn call_id(value: &Value) -> &str {
    let id = string(value, "call_id");
    if id.is_empty() { string(value, "id") } else { id }
}

fn result(value: &Value) -> Output {
    let (text, found) = text_and_media(value.get("output"), attachment);
    Output { cleared: is_cleared(&text), media: found.into(), ..Output::new(call_id(value), text) }
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

/// Images and files whose data or URL is in the part; files by id stay opaque.
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

/// The place of an element's output.
pub(super) fn spots(element: &str) -> Vec<Spot> {
    vec![Spot { object: 0..element.len(), key: "output" }]
}

/// The output of a call as JSON.
pub(super) fn output(output: &Output) -> String {
    result_content(output).to_string()
}

/// A message as items: runs of text and attachments become a message, everything else an item of its own.
/// `freeform` says whether the tool of a call, by its id, takes free text.
pub(super) fn elements(message: &Message, freeform: &dyn Fn(&str) -> bool) -> Vec<String> {
    // Text beside a tool's output is sent as the user's.
    let role = if message.role == Role::Tool { Role::User } else { message.role }.name();
    let (mut out, mut run) = (vec![], vec![]);
    for part in &message.parts {
        if let Some(it) = content_part(part, message.role) {
            run.push(it);
            continue;
        }
        close(&mut out, role, &mut run);
        out.extend(item(part, freeform));
    }
    close(&mut out, role, &mut run);
    out
}

fn close(out: &mut Vec<String>, role: &str, run: &mut Vec<String>) {
    if !run.is_empty() {
        let content = array(&std::mem::take(run));
        out.push(format!("{{\"type\":\"message\",\"role\":\"{role}\",\"content\":{content}}}"));
    }
}

fn item(part: &Part, freeform: &dyn Fn(&str) -> bool) -> Option<String> {
    let item = match part {
        Part::Call(it) if it.freeform => json!({
            "type": "custom_tool_call", "call_id": &*it.id, "name": &*it.name, "input": it.input.as_str(),
        }),
        Part::Call(it) => json!({
            "type": "function_call", "call_id": &*it.id, "name": &*it.name, "arguments": input(it).get(),
        }),
        Part::Output(it) => {
            let kind = if freeform(&it.id) { "custom_tool_call_output" } else { "function_call_output" };
            json!({ "type": kind, "call_id": &*it.id, "output": result_content(it) })
        }
        Part::Reasoning(it) => {
            let summary = joined(&it.text).map(|text| json!({ "type": "summary_text", "text": text }));
            let summary: Value = summary.into_iter().collect();
            let signature = it.signature.as_ref()?.as_str();
            json!({ "type": "reasoning", "summary": summary, "encrypted_content": signature })
        }
        Part::Opaque(it) => return opaque_json(it),
        Part::Text(_) | Part::Media(_) => return None,
    };
    Some(item.to_string())
}

fn content_part(part: &Part, role: Role) -> Option<String> {
    match part {
        Part::Text(it) => {
            let kind = if role == Role::Assistant { "output_text" } else { "input_text" };
            Some(json!({ "type": kind, "text": it.as_str() }).to_string())
        }
        Part::Media(it) => Some(attached(it).to_string()),
        Part::Opaque(it) if is_content(it) => opaque_json(it),
        Part::Opaque(_) | Part::Reasoning(_) | Part::Call(_) | Part::Output(_) => None,
    }
}

/// Whether an opaque block belongs inside a message, and is not an item itself.
pub(super) fn is_content(opaque: &Opaque) -> bool {
    opaque.kind.starts_with("input_")
}

fn result_content(output: &Output) -> Value {
    output_content(output, |text| json!({ "type": "input_text", "text": text }), attached)
}

fn attached(media: &Media) -> Value {
    match media.kind {
        MediaKind::Image => json!({ "type": "input_image", "image_url": url_of(media) }),
        MediaKind::Pdf | MediaKind::Audio | MediaKind::Other if media.is_url() => {
            json!({ "type": "input_file", "file_url": &*media.data })
        }
        MediaKind::Pdf | MediaKind::Audio | MediaKind::Other => {
            json!({ "type": "input_file", "filename": "document.pdf", "file_data": data_url(media) })
        }
    }
}

/// Whether the API accepts an attachment, in a user message or an output: images and PDF, as data or by URL
/// (OpenAI API reference, `ResponseInputContent`).
pub(super) fn takes(media: &Media) -> bool {
    let known = match media.kind {
        MediaKind::Image => media.mime.starts_with("image/"),
        MediaKind::Pdf => &*media.mime == "application/pdf",
        MediaKind::Audio | MediaKind::Other => return false,
    };
    is_on_the_web(media) || (known && !media.is_url())
}
