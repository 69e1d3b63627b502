//! Message records as the messages that a resume sends (Gemini CLI 0.61, `convertSessionToClientHistory`).

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde_json::{Map, Value, json};

use super::journal::{Entry, Journal};
use crate::error::Result;
use crate::format::raw::Fields;
use crate::format::{Keep, Note, Source, derive, hold};
use crate::history::{Call, Kind, Media, MediaKind, Message, Opaque, Output, Part, Role, Usage, Weight};
use crate::json as text_json;

/// What Gemini CLI answers to its own summary.
const ACK: &str = "Got it. Thanks for the additional context!";

/// What the client signs a call with that has no signature (Gemini CLI 0.61).
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Whose opaque parts these are.
pub(super) const API: &str = "gemini";

/// A live message and where it came from.
pub(super) struct Live {
    pub(super) message: Message,
    /// The records it was made from; the first is its own.
    pub(super) records: Vec<u32>,
    /// Its own record's JSON in the source.
    pub(super) at: Range<u64>,
    pub(super) record_id: String,
    /// What of the record became this message.
    pub(super) role: Which,
    /// The JSON of each part, as sent.
    pub(super) raw: Vec<Value>,
    /// Every record that holds a function response of this message: where it stands.
    pub(super) also: Vec<Range<u64>>,
}

/// What of a record a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// A user record.
    User,
    /// What the model said and called.
    Model,
    /// The results that stand in a model record.
    Results,
}

/// Begin and end of a summary as Gemini CLI knows its own: its next compression merges it into the new one.
pub(super) const SNAPSHOT: (&str, &str) = ("<state_snapshot>\n", "\n</state_snapshot>");

/// A summary of ours without its frame: the record says that it is one.
fn unframed(parts: &mut [Part]) {
    if let [Part::Text(text)] = parts
        && let Some(inner) = text.as_str().strip_prefix(SNAPSHOT.0).and_then(|it| it.strip_suffix(SNAPSHOT.1))
    {
        *text = inner.into();
    }
}

/// Whether a text is a summary by Gemini CLI.
pub(super) fn is_snapshot(text: &str) -> bool {
    text.contains("<state_snapshot>") && text.trim_end().ends_with("</state_snapshot>")
}

/// All live messages. What cannot be read becomes a note. With `keep`, parts are as that leaves them, and nothing is
/// held that only a writer needs.
pub(super) fn converted(
    source: &dyn Source,
    journal: &mut Journal,
    keep: Option<&Keep>,
) -> Result<Vec<Live>> {
    let mut out: Vec<Live> = Vec::new();
    let mut light = 0;
    // Function responses since the last model message: the client stores them twice, and after each resume once more.
    let mut answered: HashMap<String, usize> = HashMap::new();
    let mut notes = Vec::new();
    for entry in &journal.entries {
        if let Some(keep) = keep {
            // The last message is still looked at, to tell what the next one is.
            let done = out.len().saturating_sub(1);
            for live in out.iter_mut().take(done).skip(light) {
                live.raw = Vec::new();
                live.message.parts.iter_mut().for_each(|it| hold(it, keep, live.at.start));
            }
            light = done.max(light);
        }
        let bytes = source.bytes(entry.at.clone())?;
        let line = journal.records.get(entry.record as usize).map_or(0, |_| u64::from(entry.record) + 1);
        let record: Map<String, Value> = match serde_json::from_str(&text_json::mend(&bytes)) {
            Ok(record) => record,
            Err(error) => {
                notes.push(Note {
                    line,
                    what: format!("expected a message record, found {error}; it is skipped"),
                });
                continue;
            }
        };
        match record.get("type").and_then(Value::as_str) {
            Some("user") => {
                let parts = parts_of(record.get("content"));
                if is_ignored(&parts) {
                    continue;
                }
                push(&mut out, &mut answered, entry, &record, Which::User, parts);
            }
            Some("gemini") => model(&mut out, &mut answered, entry, &record),
            Some("info" | "error" | "warning") => {}
            other => {
                let what = format!(
                    "expected a message of type user, gemini or info, found {other:?}; it is not sent"
                );
                notes.push(Note { line, what });
            }
        }
    }
    journal.notes.extend(notes);
    Ok(out)
}

fn model(
    out: &mut Vec<Live>,
    answered: &mut HashMap<String, usize>,
    entry: &Entry,
    record: &Map<String, Value>,
) {
    let content = record.get("content").filter(|it| it.as_str() != Some(""));
    let mut parts = content.map(|it| parts_of(Some(it))).unwrap_or_default();
    let is_thought =
        |it: &Value| it.get("thought").is_some_and(|it| it != &Value::Bool(false) && !it.is_null());
    let mut thinks = record.get("thoughts").and_then(Value::as_array).is_some_and(|it| !it.is_empty());
    let tools: Vec<&Value> =
        record.get("toolCalls").and_then(Value::as_array).into_iter().flatten().collect();
    let whole = parts.iter().any(|it| it.get("functionCall").is_some() || is_thought(it));
    if whole {
        thinks = parts.iter().any(is_thought);
        parts.retain(|it| !is_thought(it));
    } else {
        parts.extend(tools.iter().map(|it| {
            let field = |key| it.get(key).cloned();
            let mut call = Map::new();
            for key in ["id", "name", "args"] {
                if let Some(value) = field(key) {
                    call.insert(key.to_owned(), value);
                }
            }
            json!({ "functionCall": call })
        }));
    }
    // A model turn that was thoughts only is still a turn for the client, but nothing of it is sent.
    if parts.is_empty() && !thinks {
        return;
    }
    // The client signs the first call of a turn whose thoughts it takes out.
    if thinks
        && let Some(first) = parts.iter_mut().find(|it| it.get("functionCall").is_some())
        && let Some(first) = first.as_object_mut()
    {
        first.entry("thoughtSignature").or_insert_with(|| json!(NO_SIGNATURE));
    }
    answered.clear();
    if !parts.is_empty() {
        push(out, answered, entry, record, Which::Model, parts);
    }
    let mut results = Vec::new();
    for tool in tools {
        match tool.get("result") {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text.is_empty() => {}
            Some(Value::String(text)) => results.push(json!({ "functionResponse": {
                "id": tool.get("id"), "name": tool.get("name"), "response": { "output": text } } })),
            Some(result) => results.extend(parts_of(Some(result))),
        }
    }
    if !results.is_empty() {
        push(out, answered, entry, record, Which::Results, results);
    }
}

/// Adds a message, without the responses that the turn already has.
fn push(
    out: &mut Vec<Live>,
    answered: &mut HashMap<String, usize>,
    entry: &Entry,
    record: &Map<String, Value>,
    role: Which,
    mut raw: Vec<Value>,
) {
    name_ids(&mut raw);
    let mut repeated = HashSet::new();
    let here = out.len();
    raw.retain(|part| {
        let Some(response) = part.get("functionResponse") else { return true };
        let id = response_id(response);
        let first = *answered.entry(id).or_insert(here);
        if first != here {
            repeated.insert(first);
            return false;
        }
        true
    });
    // Within one message too: the client writes all responses of a batch into each call's result.
    let mut own = HashSet::new();
    raw.retain(|part| part.get("functionResponse").is_none_or(|it| own.insert(response_id(it))));
    for first in repeated {
        if let Some(live) = out.get_mut(first) {
            live.also.push(entry.at.clone());
            if !live.records.contains(&entry.record) {
                live.records.push(entry.record);
            }
        }
    }
    // What is left besides repetitions may be nothing that the client would send.
    if raw.is_empty() || (role == Which::User && raw.iter().all(|it| shown(it).trim().is_empty())) {
        return;
    }
    let mut parts: Vec<Part> = raw.iter().map(part).collect();
    // What the client acknowledged was its summary, whatever stands around the snapshot.
    if let (Some(last), true) = (out.last_mut(), role == Which::Model && is_text(&parts, ACK))
        && last.role == Which::User
        && last.message.texts().any(|it| it.as_str().contains("<state_snapshot>"))
    {
        last.message.kind = Kind::Summary;
    }
    let side = if role == Which::Model { "model" } else { "user" };
    let wire = text_json::compact(&json!({ "role": side, "parts": raw }));
    let text = |key| record.get(key).and_then(Value::as_str);
    if role == Which::User && text(super::KIND_FIELD) == Some("summary") {
        unframed(&mut parts);
    }
    let message = Message {
        id: text("id").map(Into::into),
        at: text("timestamp").and_then(derive::parse_time),
        usage: entry.tokens.as_deref().filter(|_| role == Which::Model).and_then(usage),
        wire_len: Some(Weight::of(&wire).utf16),
        ..Message::new(
            if role == Which::Model { Role::Assistant } else { Role::User },
            kind(out.last().map(|it| &it.message), role, text(super::KIND_FIELD), &parts),
            parts,
        )
    };
    out.push(Live {
        message,
        records: vec![entry.record],
        at: entry.at.clone(),
        record_id: entry.id.clone(),
        role,
        raw,
        also: vec![entry.at.clone()],
    });
}

fn is_text(parts: &[Part], expected: &str) -> bool {
    matches!(parts, [Part::Text(text)] if text.as_str() == expected)
}

fn kind(before: Option<&Message>, role: Which, ours: Option<&str>, parts: &[Part]) -> Kind {
    if role == Which::Results {
        return Kind::Said;
    }
    if let Some((_, kind)) = super::KINDS.iter().find(|(name, _)| Some(*name) == ours) {
        return *kind;
    }
    let is_model = role == Which::Model;
    read_kind(before, is_model, parts)
}

/// The kind that a text alone tells.
pub(super) fn read_kind(before: Option<&Message>, is_model: bool, parts: &[Part]) -> Kind {
    let [Part::Text(text)] = parts else { return Kind::Said };
    match is_model {
        false if is_snapshot(text.as_str()) => Kind::Summary,
        false if text.as_str() == "Please continue." => Kind::Continue,
        true if text.as_str() == ACK && before.is_some_and(|it| it.kind == Kind::Summary) => Kind::Ack,
        _ => Kind::Said,
    }
}

fn usage(tokens: &str) -> Option<Usage> {
    let tokens = Fields::of(tokens)?;
    let number = |key| tokens.number(key).unwrap_or(0);
    let cached = number("cached").min(number("input"));
    let usage = Usage {
        input: number("input") - cached + number("tool"),
        output: number("output") + number("thoughts"),
        cache_read: cached,
        cache_write: 0,
        reasoning: number("thoughts"),
    };
    (usage.sent() > 0).then_some(usage)
}

/// A content as a list of parts: a text, a part, or a list of both.
fn parts_of(content: Option<&Value>) -> Vec<Value> {
    let one = |it: &Value| if it.is_string() { json!({ "text": it }) } else { it.clone() };
    match content {
        None | Some(Value::Null) => vec![],
        Some(Value::Array(list)) => list.iter().map(one).collect(),
        Some(single) => vec![one(single)],
    }
}

/// Whether a resume leaves a user record out: blank, a command, or context that is made anew.
fn is_ignored(parts: &[Value]) -> bool {
    let text: String = parts.iter().map(shown).collect();
    text.trim().is_empty() || starts_ignored(&text)
}

/// A part as the client shows it to itself: its text, or a name in brackets, whatever text stands beside it.
fn shown(part: &Value) -> &str {
    const NAMED: [&str; 8] = [
        "videoMetadata",
        "thought",
        "codeExecutionResult",
        "executableCode",
        "fileData",
        "functionCall",
        "functionResponse",
        "inlineData",
    ];
    match NAMED.iter().any(|it| part.get(it).is_some()) {
        true => "[part]",
        false => part.get("text").and_then(Value::as_str).unwrap_or_default(),
    }
}

/// What a user message must not begin with, or Gemini CLI does not send it.
pub(super) fn starts_ignored(text: &str) -> bool {
    ["/", "?", "<session_context>", "<hook_context>"].iter().any(|it| text.trim().starts_with(it))
}

fn response_id(response: &Value) -> String {
    response.get("id").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Calls and responses without an id get one from name and number, the same on both sides, as the client does it.
fn name_ids(parts: &mut [Value]) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for part in parts {
        for key in ["functionCall", "functionResponse"] {
            let Some(body) = part.get_mut(key).and_then(Value::as_object_mut) else { continue };
            if body.get("id").is_none_or(|it| it.as_str().is_none_or(str::is_empty)) {
                let name = body.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
                let count = counts.entry(name.clone()).or_default();
                *count += 1;
                body.insert("id".to_owned(), json!(format!("{name}:{count}")));
            }
        }
    }
}

fn part(raw: &Value) -> Part {
    let signature = raw.get("thoughtSignature").and_then(Value::as_str);
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(call) = raw.get("functionCall") {
        let id = response_id(call);
        let input = call.get("args").map_or("{}".to_owned(), text_json::compact);
        let name = text(call.get("name")).into();
        let signature = signature.filter(|it| *it != NO_SIGNATURE).map(Into::into);
        return Part::Call(Call { id: id.into(), name, input: input.into(), freeform: false, signature });
    }
    if let Some(response) = raw.get("functionResponse") {
        return Part::Output(output(response));
    }
    if let Some(it) = raw.get("text").and_then(Value::as_str) {
        return Part::Text(it.into());
    }
    if let Some(media) = media(raw) {
        return Part::Media(media);
    }
    let kind = raw.as_object().and_then(|it| it.keys().next().cloned()).unwrap_or_default();
    Part::Opaque(Opaque { api: API.into(), kind: kind.into(), raw: text_json::compact(raw).into() })
}

fn output(response: &Value) -> Output {
    let said = response.get("response");
    let field = |key| said.and_then(|it| it.get(key)).and_then(Value::as_str);
    let text = match (field("output"), field("error")) {
        (Some(text), _) | (None, Some(text)) => text.to_owned(),
        (None, None) => {
            said.map(|it| it.as_str().map_or_else(|| text_json::compact(it), Into::into)).unwrap_or_default()
        }
    };
    let name = response.get("name").and_then(Value::as_str);
    let nested = response.get("parts").and_then(Value::as_array);
    Output {
        id: response_id(response).into(),
        name: name.map(Into::into),
        failed: said.is_some_and(|it| it.get("error").is_some() && it.get("output").is_none()),
        cleared: text.contains("<tool_output_masked"),
        text: text.into(),
        media: nested.into_iter().flatten().filter_map(media).collect(),
    }
}

fn media(raw: &Value) -> Option<Media> {
    let (body, key) = match (raw.get("inlineData"), raw.get("fileData")) {
        (Some(body), _) => (body, "data"),
        (None, Some(body)) => (body, "fileUri"),
        (None, None) => return None,
    };
    let mime = body.get("mimeType").and_then(Value::as_str).unwrap_or_default();
    let kind = match mime.split('/').next() {
        Some("image") => MediaKind::Image,
        Some("audio") => MediaKind::Audio,
        Some(_) if mime == "application/pdf" => MediaKind::Pdf,
        Some(_) | None => MediaKind::Other,
    };
    let data = body.get(key).and_then(Value::as_str)?;
    Some(Media { kind, mime: mime.into(), data: data.into(), size: None })
}
