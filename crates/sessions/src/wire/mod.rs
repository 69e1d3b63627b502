//! Plain messages of four APIs: Anthropic Messages, OpenAI chat, OpenAI Responses items, Gemini contents; a JSON
//! array, bare or in an object as `messages`, `input`, `contents` or `history`.
//!
//! Element number i of the array is message i, always: an element that is not understood becomes an opaque
//! message, so that message numbers are the caller's own indices. Elements are kept as spans; unchanged ones
//! are copied.
//!
//! There are two ways to write. [`write()`] stays in the document's own API and copies untouched elements
//! byte for byte. [`messages`] converts: any history becomes an array that the API accepts.

pub(super) mod anthropic;
mod fit;
mod frame;
pub(super) mod gemini;
mod ids;
mod opaques;
mod openai_chat;
mod openai_responses;
mod sniff;
mod write;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) use self::fit::freeform_ids;
pub use self::frame::KEYS;
pub use self::sniff::sniff;
pub use self::write::write;

use super::format::{Api, FormatRow, ReadFormat};
use super::{Format, Note, PastCompaction, Record, Session, Source, refusal};
use crate::parse::raw::{self, quoted};
use crate::parse::spans::{self, Span};
use history::error::Result;
use history::json;
use history::{
    Call, History, Kind, Media, MediaKind, Message, Opaque, Output, Part, Role, Text, TextSize, Usage,
};

use self::frame::{array, frame_notes, meta};
use self::ids::Ids;

/// Prefixes of texts that replace earlier messages: Gemini CLI's, Claude Code's, Codex's, and those of other
/// compactors; the last three are ours: with a name, from a profile that has no prefix of its own, and with
/// the user's messages in front.
const SUMMARIES: [&str; 9] = [
    "<state_snapshot>",
    "This session is being continued from a previous conversation that ran out of context",
    "Another language model started to solve this problem",
    "[Compacted]",
    "[Reactive compact]",
    "[Session Summary]",
    "[Epitome]",
    super::SUMMARY_START,
    "The user gave you instructions before, in one message or more. They are:",
];

/// The assistant's reply that Gemini CLI puts after a summary.
pub(crate) const GEMINI_ACK: &str = "Got it. Thanks for the additional context!";

/// The assistant's reply that is put after a summary: by us, and by Gemini CLI.
const ACKS: [&str; 2] = [fit::ACK, GEMINI_ACK];

/// What OpenCode sends for a compaction part; the summary follows as the reply.
pub const OPENCODE_MARKER: &str = "What did we do so far?";

/// Maximum nesting of what we put into a document; serde_json reads 128 levels.
const DEEPEST: usize = 100;

/// Reads a document as plain messages of `format`'s API.
///
/// A document that is cut off in its last element gives the elements before it and a note.
///
/// # Errors
/// [`Input`](history::error::ErrorKind::Input) if it is not a JSON array or an object that holds one under one of the four keys.
pub fn read(source: &dyn Source, format: Format) -> Result<Session> {
    let text = source.text(0..source.len())?;
    let (frame, items) = array(source, &text)?;
    let api = format.0.api;
    let mut notes = frame_notes(&frame, &items, &text);
    let mut meta = meta(&frame, &text, &mut notes);
    let (mut messages, mut records, mut past) = (Vec::<Message>::new(), vec![], vec![]);
    let (mut ids, mut after_summary) = (Ids::default(), false);
    for (number, span) in items.spans.iter().enumerate() {
        let mut message = match element(&text[span.clone()], api, number, &mut ids) {
            Ok((value, mut message)) => {
                if let Some(it) = value.get("model").and_then(Value::as_str) {
                    meta.model = Some(it.into());
                }
                message.kind = kind(&message, after_summary);
                message
            }
            Err(what) => {
                notes.push(Note { line: number as u64 + 1, what });
                unread(&text[span.clone()], api)
            }
        };
        message.from = u32::try_from(number).ok();
        after_summary = message.kind == Kind::Summary;
        if after_summary && message.role == Role::Assistant {
            let question = |it: &&mut Message| it.role == Role::User && it.plain() == OPENCODE_MARKER;
            if let Some(it) = messages.last_mut().filter(question) {
                it.kind = Kind::Marker;
            }
        }
        if after_summary {
            let summary = message.plain();
            past.push(PastCompaction { message: Some(number), summary, ..PastCompaction::default() });
        }
        messages.push(message);
        records.push(Record { at: span.start as u64, len: span.len() as u64 });
    }
    if api == Api::Anthropic {
        mark_refused(&mut messages);
    }
    let origins = (0..messages.len()).map(|it| u32::try_from(it).ok()).collect();
    notes.sort_by_key(|it| it.line);
    Ok(Session { format, records, origins, notes, past, history: History::new(messages, meta) })
}

/// Any history as a JSON array that `api` accepts, and a sentence for each kind of thing that it could not
/// express.
///
/// Thinking is kept only if the history's agent calls its model over the same API, because only then can the
/// signature be valid; for plain messages see [`messages_of`].
pub fn messages(after: &History, api: Format) -> (Vec<u8>, Vec<String>) {
    let agent = after.meta.agent.as_deref().and_then(|it| Format::named(it).ok());
    messages_of(after, agent, api)
}

/// [`messages`] for a history that was read from `source`, which decides whose signatures are in it.
pub fn messages_of(after: &History, source: Option<Format>, api: Format) -> (Vec<u8>, Vec<String>) {
    let api = api.0.api;
    let (messages, warnings) = fit::fit(after.messages(), api, source.and_then(signer));
    let freeform = freeform_ids(&messages);
    let elements = messages.iter().flat_map(|it| api.elements(it, &|id| freeform.contains(id)));
    let mut out = vec![b'['];
    for (number, element) in elements.enumerate() {
        if number > 0 {
            out.push(b',');
        }
        out.extend(element.into_bytes());
    }
    out.push(b']');
    (out, warnings)
}

/// The API whose signatures a format's sessions hold.
fn signer(format: Format) -> Option<Api> {
    format.0.is_signed.then_some(format.0.api)
}

const fn row(name: &'static str, api: Api, is_signed: bool, read: ReadFormat) -> FormatRow {
    FormatRow { is_signed, write: Some(write), ..FormatRow::new(name, api, read) }
}

pub(crate) static ANTHROPIC: FormatRow =
    row("anthropic", Api::Anthropic, true, |it| read(it, Format::ANTHROPIC));
// Many providers offer this API, so the signer is not known.
pub(crate) static OPENAI_CHAT: FormatRow =
    row("openai-chat", Api::OpenAiChat, false, |it| read(it, Format::OPENAI_CHAT));
pub(crate) static OPENAI_RESPONSES: FormatRow =
    row("openai-responses", Api::OpenAiResponses, true, |it| read(it, Format::OPENAI_RESPONSES));
pub(crate) static GEMINI: FormatRow = row("gemini", Api::Gemini, true, |it| read(it, Format::GEMINI));

impl Api {
    fn read(self, value: &Value, number: usize, ids: &mut Ids) -> Option<(Role, Vec<Part>)> {
        match self {
            Self::Anthropic => anthropic::read(value),
            Self::OpenAiChat => openai_chat::read(value, number, ids),
            Self::OpenAiResponses => openai_responses::read(value),
            Self::Gemini => gemini::read(value, number, ids),
        }
    }

    /// A message as elements of the array.
    fn elements(self, message: &Message, freeform: &dyn Fn(&str) -> bool) -> Vec<String> {
        match self {
            _ if message.parts.is_empty() => vec![],
            Self::Anthropic => vec![anthropic::element(message)],
            Self::OpenAiChat => openai_chat::elements(message),
            Self::OpenAiResponses => openai_responses::elements(message, freeform),
            Self::Gemini => vec![gemini::element(message)],
        }
    }

    fn spots(self, element: &str) -> Vec<Spot> {
        match self {
            Self::Anthropic => anthropic::spots(element),
            Self::OpenAiChat => openai_chat::spots(element),
            Self::OpenAiResponses => openai_responses::spots(element),
            Self::Gemini => gemini::spots(element),
        }
    }

    fn output(self, output: &Output) -> String {
        match self {
            Self::Anthropic => anthropic::output(output),
            Self::OpenAiChat => openai_chat::output(output),
            Self::OpenAiResponses => openai_responses::output(output),
            Self::Gemini => gemini::output(output),
        }
    }

    fn takes(self, media: &Media) -> bool {
        match self {
            Self::Anthropic => anthropic::takes(media),
            Self::OpenAiChat => openai_chat::takes(media),
            Self::OpenAiResponses => openai_responses::takes(media),
            Self::Gemini => gemini::takes(media),
        }
    }
}

/// The place of an output in an element: the value of `key` in `object`.
struct Spot {
    object: Span,
    key: &'static str,
}

/// A system prompt: a string, text blocks, or a Gemini content.
fn system(value: &Value) -> Option<Text> {
    if let Some(it) = value.as_str() {
        return text(it).and_then(|it| if let Part::Text(it) = it { Some(it) } else { None });
    }
    let blocks = value.get("parts").unwrap_or(value).as_array()?;
    let texts: Vec<&str> = blocks.iter().map(|it| string(it, "text")).filter(|it| !it.is_empty()).collect();
    Some(texts.join("\n").into())
}

/// One element as a message, or why it is not one.
fn element(raw: &str, api: Api, number: usize, ids: &mut Ids) -> Result<(Value, Message), String> {
    let expected = format!("expected a message of {}, found", api.format().name());
    let kept = "; it is kept as it is";
    let value: Value = serde_json::from_str(raw).map_err(|error| format!("{expected} {error}{kept}"))?;
    let Some((role, parts)) = api.read(&value, number, ids) else {
        let found = match &value {
            Value::Object(it) => {
                let keys: Vec<&str> = it.keys().take(6).map(String::as_str).collect();
                format!("an object with the keys [{}]", keys.join(", "))
            }
            Value::Array(_) => "an array".to_string(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => "a plain value".to_string(),
        };
        return Err(format!("{expected} {found}{kept}"));
    };
    let mut message = Message::new(role, Kind::Said, parts);
    message.wire_len = u32::try_from(TextSize::of(&json::compact(&value)).utf16).ok();
    message.id = value.get("id").and_then(Value::as_str).map(Arc::from);
    message.usage = value.get("usage").or_else(|| value.get("usageMetadata")).and_then(usage);
    Ok((value, message))
}

/// Marks the results of calls that the user refused, as Claude Code writes them; not those of MCP tools,
/// whose servers could send the same text.
fn mark_refused(messages: &mut [Message]) {
    let mut names: HashMap<Arc<str>, Arc<str>> = HashMap::new();
    for part in messages.iter_mut().flat_map(|it| &mut it.parts) {
        match part {
            Part::Call(call) => drop(names.insert(call.id.clone(), call.name.clone())),
            Part::Output(output) if output.failed => {
                let own = names.get(&output.id).is_some_and(|it| !it.starts_with("mcp__"));
                output.refusal = refusal::claude_code(output.text.as_str()).filter(|_| own).map(Box::new);
            }
            Part::Output(_) | Part::Text(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {}
        }
    }
}

/// A message for an element that is not one, so that the numbers of the others stay the same.
fn unread(raw: &str, api: Api) -> Message {
    let opaque = Opaque { api: api.format().name().into(), kind: "element".into(), raw: raw.into() };
    let mut message = Message::new(Role::User, Kind::Context, vec![Part::Opaque(opaque)]);
    message.wire_len = u32::try_from(TextSize::of(raw).utf16).ok();
    message
}

fn kind(message: &Message, after_summary: bool) -> Kind {
    // Text beside an output may be the tool's.
    let alone = message.outputs().next().is_none();
    let first = message.texts().next().filter(|_| alone).map_or("", |it| it.as_str().trim_start());
    match message.role {
        Role::System => Kind::Context,
        Role::User if SUMMARIES.iter().any(|it| first.starts_with(it)) => Kind::Summary,
        Role::Assistant if first.starts_with(super::SUMMARY_START) => Kind::Summary,
        Role::Assistant if after_summary && message.parts.len() == 1 && ACKS.contains(&first.trim_end()) => {
            Kind::Ack
        }
        Role::User | Role::Assistant | Role::Tool => Kind::Said,
    }
}

/// Usage as any of the four APIs reports it. OpenAI and Gemini include cached tokens in the prompt, Anthropic
/// does not.
pub(crate) fn usage(value: &Value) -> Option<Usage> {
    let number = |keys: [&str; 2]| keys.into_iter().find_map(|it| value.get(it)).and_then(Value::as_u64);
    let detail = |outer: [&str; 2], key: &str| {
        let outer = outer.into_iter().find_map(|it| value.get(it));
        outer.and_then(|it| it.get(key)).and_then(Value::as_u64)
    };
    if let Some(prompt) = number(["promptTokenCount", "prompt_token_count"]) {
        let cache_read = number(["cachedContentTokenCount", "cached_content_token_count"]).unwrap_or(0);
        let reasoning = number(["thoughtsTokenCount", "thoughts_token_count"]).unwrap_or(0);
        let output = number(["candidatesTokenCount", "candidates_token_count"]).unwrap_or(0);
        let output = output.saturating_add(reasoning);
        return Some(Usage {
            input: prompt.saturating_sub(cache_read),
            output,
            cache_read,
            reasoning,
            ..Usage::default()
        });
    }
    let input = number(["input_tokens", "prompt_tokens"])?;
    let output = number(["output_tokens", "completion_tokens"]).unwrap_or(0);
    let cache_write = number(["cache_creation_input_tokens", "cache_creation_tokens"]).unwrap_or(0);
    let reasoning =
        detail(["output_tokens_details", "completion_tokens_details"], "reasoning_tokens").unwrap_or(0);
    if let Some(cache_read) = detail(["input_tokens_details", "prompt_tokens_details"], "cached_tokens") {
        return Some(Usage {
            input: input.saturating_sub(cache_read),
            output,
            cache_read,
            cache_write,
            cache_write_hour: 0,
            reasoning,
        });
    }
    let cache_read = number(["cache_read_input_tokens", "cache_read_tokens"]).unwrap_or(0);
    let cache_write_hour = detail(["cache_creation"; 2], "ephemeral_1h_input_tokens").unwrap_or(0);
    Some(Usage { input, output, cache_read, cache_write, cache_write_hour, reasoning })
}

/// The string under `key`, or an empty one.
pub(crate) fn string<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// `[a-zA-Z0-9_-]{1,max}`: what APIs accept as an id or a name.
pub(crate) fn is_plain(text: &str, max: usize) -> bool {
    !text.is_empty()
        && text.len() <= max
        && text.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-'))
}

/// The role of a message by OpenAI's name for it; none for a tool's.
fn openai_role(name: &str) -> Option<Role> {
    match name {
        "user" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        "system" | "developer" => Some(Role::System),
        _ => None,
    }
}

/// The input of a call: the string under `key`, or the JSON of another value.
fn called_with(call: &Value, key: &str) -> String {
    match call.get(key) {
        Some(Value::String(it)) => it.clone(),
        Some(it) => json::compact(it),
        None => String::new(),
    }
}

/// A text part; none if the text is empty.
fn text(text: &str) -> Option<Part> {
    if text.is_empty() { None } else { Some(Part::Text(text.into())) }
}

/// The parts of a message's `content`; none if that is neither a string nor a list.
fn content_parts(message: &Value, part: fn(&Value) -> Option<Part>) -> Option<Vec<Part>> {
    match message.get("content") {
        None | Some(Value::Null) => Some(vec![]),
        Some(Value::String(it)) => Some(text(it).into_iter().collect()),
        Some(Value::Array(it)) => Some(it.iter().filter_map(part).collect()),
        Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => None,
    }
}

/// The `content` of a message: a string if it is one text, else blocks. `written` makes the JSON of a block.
fn content(message: &Message, written: fn(&Part) -> Option<String>) -> Option<String> {
    let blocks: Vec<(&Part, String)> =
        message.parts.iter().filter_map(|it| Some((it, written(it)?))).collect();
    match blocks.as_slice() {
        [] => None,
        [(Part::Text(text), _)] => Some(quoted(text.as_str())),
        _ => Some(raw::array(&blocks.into_iter().map(|it| it.1).collect::<Vec<_>>())),
    }
}

/// The content of an output: a string, or blocks if it has attachments.
fn output_content(output: &Output, text: fn(&str) -> Value, media: fn(&Media) -> Value) -> Value {
    if output.media.is_empty() {
        return output.text.as_str().into();
    }
    joined(&output.text).map(text).into_iter().chain(output.media.iter().map(media)).collect()
}

/// The text of an output, and its attachments; anything else becomes JSON in the text.
fn text_and_media(output: Option<&Value>, attachment: fn(&Value) -> Option<Media>) -> (String, Vec<Media>) {
    let (mut texts, mut found) = (vec![], vec![]);
    match output {
        None | Some(Value::Null) => {}
        Some(Value::String(it)) => texts.push(it.clone()),
        Some(Value::Array(parts)) => {
            for it in parts {
                match (attachment(it), it.get("text").and_then(Value::as_str)) {
                    (Some(it), _) => found.push(it),
                    (None, Some(it)) => texts.push(it.to_owned()),
                    (None, None) => texts.push(json::compact(it)),
                }
            }
        }
        Some(it) => texts.push(json::compact(it)),
    }
    (texts.join("\n"), found)
}

/// The text, unless it is blank.
fn joined(text: &Text) -> Option<&str> {
    Some(text.as_str()).filter(|it| !it.trim().is_empty())
}

fn opaque(format: Format, value: &Value) -> Part {
    let kind = match string(value, "type") {
        // Gemini's parts have no type: their first key is used.
        "" => value.as_object().and_then(|it| it.keys().next()).map_or("", String::as_str),
        it => it,
    };
    Part::Opaque(Opaque { api: format.name().into(), kind: kind.into(), raw: json::compact(value).into() })
}

/// An attachment; a document that is not a PDF gets another kind.
fn media(kind: MediaKind, mime: &str, data: &str) -> Media {
    let kind = match kind {
        MediaKind::Pdf if !mime.is_empty() && mime != "application/pdf" => MediaKind::Other,
        MediaKind::Image | MediaKind::Pdf | MediaKind::Audio | MediaKind::Other => kind,
    };
    Media { kind, mime: mime.into(), data: data.into(), size: None }
}

/// An attachment given by a URL, which may be a data URL.
pub(crate) fn media_of_url(kind: MediaKind, url: &str) -> Media {
    match url.strip_prefix("data:").and_then(|it| it.split_once(";base64,")) {
        Some((mime, data)) => media(kind, mime, data),
        None => media(kind, "", url),
    }
}

/// Whether an attachment is given by its address on the web.
fn is_on_the_web(media: &Media) -> bool {
    media.data.starts_with("http://") || media.data.starts_with("https://")
}

/// The URL of an attachment; data becomes a data URL.
pub(crate) fn url_of(media: &Media) -> String {
    if media.is_url() { media.data.to_string() } else { data_url(media) }
}

fn data_url(media: &Media) -> String {
    format!("data:{};base64,{}", media.mime, media.data)
}

/// The JSON of an opaque block, if it is an object that is not nested too deep.
fn opaque_json(opaque: &Opaque) -> Option<String> {
    object(opaque.raw.as_str()).map(|it| it.get().to_owned())
}

fn object(text: &str) -> Option<Box<RawValue>> {
    if !text.trim_start().starts_with('{') || spans::depth(text) > DEEPEST {
        return None;
    }
    RawValue::from_string(spans::compacted(text)).ok()
}

/// Whether a call's input is a JSON object, as all APIs require.
fn is_object(call: &Call) -> bool {
    !call.freeform && (call.input.as_str().trim().is_empty() || object(call.input.as_str()).is_some())
}

/// A call's input as the JSON object that all APIs require; anything else is put into one as `input`.
pub(super) fn input(call: &Call) -> Box<RawValue> {
    let text = call.input.as_str();
    if !call.freeform
        && let Some(it) = object(text)
    {
        return it;
    }
    let wrapped = match text.trim() {
        "" => "{}".to_string(),
        _ => format!("{{\"input\":{}}}", json::compact(text)),
    };
    RawValue::from_string(wrapped).unwrap_or_default()
}
