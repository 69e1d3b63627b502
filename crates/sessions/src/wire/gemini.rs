//! Gemini contents: `role` user or model, and `parts`; results are `functionResponse` parts in a user
//! content.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Ids, Spot, input, media, opaque, opaque_json, string, text};
use crate::Format;
use crate::is_cleared;
use crate::parse::document;
use crate::parse::raw::{array, quoted};
use history::json;
use history::{Call, Media, MediaKind, Message, Output, Part, Reasoning, Role};

/// The role and parts of one element; none if it is not a content. Calls without an id get one made of
/// `number`.
pub(super) fn read(value: &Value, number: usize, ids: &mut Ids) -> Option<(Role, Vec<Part>)> {
    let found = value.get("parts")?.as_array()?;
    let role = match string(value, "role") {
        "user" | "" => Role::User,
        "model" | "assistant" => Role::Assistant,
        "system" => Role::System,
        "function" | "tool" => Role::Tool,
        _ => return None,
    };
    let mut parts = vec![];
    for (index, it) in found.iter().enumerate() {
        parts.extend(part(it, number, index, ids));
    }
    Some((role, parts))
}

fn part(value: &Value, number: usize, index: usize, ids: &mut Ids) -> Option<Part> {
    let signature = Some(either(value, "thoughtSignature", "thought_signature").and_then(Value::as_str))
        .flatten()
        .map(Into::into);
    if let Some(it) = either(value, "functionCall", "function_call") {
        let name = string(it, "name");
        let id = match string(it, "id") {
            "" => ids.made_up(number, index, name),
            id => ids.remember(id, name),
        };
        let input = it.get("args").map(json::compact).unwrap_or_else(|| "{}".into());
        return Some(Part::Call(Call {
            id,
            name: name.into(),
            input: input.into(),
            freeform: false,
            signature,
        }));
    }
    if let Some(it) = either(value, "functionResponse", "function_response") {
        return Some(Part::Output(result(it, number, index, ids)));
    }
    if let Some(it) = value.get("text").and_then(Value::as_str) {
        let thought = value.get("thought").and_then(Value::as_bool).unwrap_or(false);
        return if thought {
            Some(Part::Reasoning(Reasoning { text: it.into(), signature }))
        } else {
            text(it)
        };
    }
    if let Some(it) = either(value, "inlineData", "inline_data") {
        let mime = mime(it);
        return Some(Part::Media(media(MediaKind::of_mime(mime), mime, string(it, "data"))));
    }
    if let Some(it) = either(value, "fileData", "file_data") {
        let uri = either(it, "fileUri", "file_uri").and_then(Value::as_str).unwrap_or_default();
        let mime = mime(it);
        return Some(Part::Media(media(MediaKind::of_mime(mime), mime, uri)));
    }
    Some(opaque(Format::GEMINI, value))
}

/// "Must start with a letter or an underscore. Must be alphanumeric, underscores, dots, colons or dashes, with a
/// maximum length of 64" (`FunctionDeclaration.name`).
pub(crate) fn is_name(name: &str) -> bool {
    name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
        && name.len() <= 64
        && name.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-' | b'.' | b':'))
}

/// A field by its JSON name or its protocol buffer name; the API accepts both.
pub(crate) fn either<'a>(value: &'a Value, camel: &str, snake: &str) -> Option<&'a Value> {
    value.get(camel).or_else(|| value.get(snake))
}

fn mime(value: &Value) -> &str {
    either(value, "mimeType", "mime_type").and_then(Value::as_str).unwrap_or_default()
}

fn result(value: &Value, number: usize, index: usize, ids: &mut Ids) -> Output {
    let name = string(value, "name");
    let id = match string(value, "id") {
        "" => ids.answered_by_name(number, index, name),
        id => ids.answered(id),
    };
    let response = value.get("response").unwrap_or(&Value::Null);
    let error = response.get("error").filter(|it| !it.is_null());
    // The documented keys are `output` and `error`; clients also write `result` and `content`.
    let sole = response.as_object().filter(|it| it.len() == 1).and_then(|it| {
        ["output", "error", "result", "content"].into_iter().find_map(|key| it.get(key)?.as_str())
    });
    let text = match (sole, response) {
        (Some(it), _) => it.to_string(),
        (None, Value::Null) => String::new(),
        (None, it) => json::compact(it),
    };
    Output {
        name: Some(name).filter(|it| !it.is_empty()).map(Arc::from),
        failed: error.is_some(),
        cleared: is_cleared(&text),
        ..Output::new(id, text)
    }
}

/// The places of an element's outputs, in the order in which [`read`] gives them.
pub(super) fn spots(element: &str) -> Vec<Spot> {
    let parts = document::open(element, "parts").map(|it| it.records).unwrap_or_default();
    let responses = parts.into_iter().filter_map(|it| {
        let fields = document::object(element, it.start)?;
        fields.get("functionResponse").or_else(|| fields.get("function_response"))
    });
    responses.map(|it| Spot { object: it, key: "response" }).collect()
}

/// The response of a result as JSON: an object with `output`, or `error` if the tool failed.
pub(super) fn output(output: &Output) -> String {
    response(output).to_string()
}

fn response(output: &Output) -> Value {
    let key = if output.failed { "error" } else { "output" };
    json!({ key: output.text.as_str() })
}

/// A message as one element. Attachments of outputs follow all responses, so that these are adjacent.
pub(super) fn element(message: &Message) -> String {
    let role = if message.role == Role::Assistant { "model" } else { "user" };
    let (first, rest): (Vec<_>, Vec<_>) = message.parts.iter().partition(|it| matches!(it, Part::Output(_)));
    let attached = message.outputs().flat_map(|it| &it.media).map(|it| data(it).to_string());
    let parts =
        first.into_iter().filter_map(written).chain(attached).chain(rest.into_iter().filter_map(written));
    format!("{{\"role\":\"{role}\",\"parts\":{}}}", array(&parts.collect::<Vec<_>>()))
}

/// A part as JSON, an output with its attachments inside its response. None for unsigned thinking.
pub(crate) fn sent(part: &Part) -> Option<Value> {
    let mut value: Value = serde_json::from_str(&written(part)?).ok()?;
    if let (Part::Output(output), Some(body)) = (part, value.get_mut("functionResponse"))
        && !output.media.is_empty()
    {
        json::set(body, "parts", output.media.iter().map(data).collect::<Value>());
    }
    Some(value)
}

fn written(part: &Part) -> Option<String> {
    let value = match part {
        Part::Text(it) => json!({ "text": it.as_str() }),
        Part::Reasoning(it) => {
            let signature = it.signature.as_ref()?.as_str();
            json!({ "text": it.text.as_str(), "thought": true, "thoughtSignature": signature })
        }
        Part::Call(it) => {
            let (id, name, input) = (quoted(&it.id), quoted(&it.name), input(it));
            let signature = it.signature.as_ref().map(|it| quoted(it.as_str()));
            let signature = signature.map(|it| format!(",\"thoughtSignature\":{it}")).unwrap_or_default();
            return Some(format!(
                "{{\"functionCall\":{{\"id\":{id},\"name\":{name},\"args\":{input}}}{signature}}}"
            ));
        }
        Part::Output(it) => {
            let name = it.name.as_deref().unwrap_or("tool");
            json!({ "functionResponse": { "id": &*it.id, "name": name, "response": response(it) } })
        }
        Part::Media(it) => data(it),
        Part::Opaque(it) => return opaque_json(it),
    };
    Some(value.to_string())
}

fn data(media: &Media) -> Value {
    let (mime, data) = (&*media.mime, &*media.data);
    if media.is_url() {
        json!({ "fileData": { "mimeType": mime, "fileUri": data } })
    } else {
        json!({ "inlineData": { "mimeType": mime, "data": data } })
    }
}

/// Whether the API accepts an attachment in a user content: anything whose type is known (Gemini API
/// reference, `Blob` and `FileData`).
pub(super) fn takes(media: &Media) -> bool {
    media.mime.contains('/')
}
