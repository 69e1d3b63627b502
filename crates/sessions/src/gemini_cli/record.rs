//! A message record, looked at once: what the journal asks of it, and what a resume makes of it (Gemini CLI 0.61,
//! `convertSessionToClientHistory`).

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{KIND_FIELD, KINDS};
use crate::raw::{Fields, list, text};
use crate::{Keep, derive, hold, is_cleared, refusal};
use history::json as text_json;
use history::{Call, Kind, Media, MediaKind, Opaque, Output, Part, TextSize, Usage};

/// What the client signs a call with that has no signature (Gemini CLI 0.61).
pub(super) const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Whose opaque parts these are.
pub(super) const API: &str = "gemini";

/// How the text begins that the client puts in front of a session.
pub(super) const CONTEXT: &str = "<session_context>";

/// What a summary by Gemini CLI has in it.
pub(super) const SNAPSHOT_TAG: &str = "<state_snapshot>";

/// How an output is known that the client cleared.
pub(super) const MASKED: &str = "<tool_output_masked";

#[derive(Debug, PartialEq)]
pub(super) struct JournalItem {
    /// Without one it is none.
    pub(super) id: Option<Arc<str>>,
    /// The line (or object of the document) it stands in, once it is known.
    pub(super) record: u32,
    /// Where its JSON stands in the source.
    pub(super) at: Range<u64>,
    pub(super) time: Option<i64>,
    pub(super) model: Option<Arc<str>>,
    /// What was reported with it.
    pub(super) reported: Option<Reported>,
    /// A resume writes it down again.
    pub(super) kept: bool,
    /// It is what the client puts in front of a session.
    pub(super) context: bool,
    /// The first workspace directory that the session's context names.
    pub(super) workspace: Option<Box<str>>,
    /// Its text, if it is a summary.
    pub(super) summary: Option<Box<str>>,
    /// What it is sent as; nothing once it is known that another record stands in its place.
    pub(super) draft: Draft,
}

/// What was reported with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reported {
    /// The context after the request.
    pub(super) total: Option<u64>,
    pub(super) usage: Option<Usage>,
}

/// The numbers that are.
pub(super) const REPORTED: [&str; 6] = ["input", "output", "cached", "thoughts", "tool", "total"];

impl Reported {
    /// From what there is of [`REPORTED`].
    pub(super) fn of(number: impl Fn(&str) -> Option<u64>) -> Self {
        let told = |key| number(key).unwrap_or(0);
        let cached = told("cached").min(told("input"));
        let usage = Usage {
            input: (told("input") - cached).saturating_add(told("tool")),
            output: told("output").saturating_add(told("thoughts")),
            cache_read: cached,
            cache_write: 0,
            cache_write_hour: 0,
            reasoning: told("thoughts"),
        };
        Self { total: number("total"), usage: (usage.sent() > 0).then_some(usage) }
    }
}

/// `tokens` of a record.
pub(crate) fn usage(tokens: &serde_json::Value) -> Usage {
    Reported::of(|key| tokens[key].as_u64()).usage.unwrap_or_default()
}

/// What a record is sent as.
#[derive(Debug, Default, PartialEq)]
pub(super) enum Draft {
    /// Nothing: it is only shown, or made anew at each start.
    #[default]
    Nothing,
    /// A message of the user's.
    User {
        parts: Vec<Piece>,
        /// What the record says of its kind.
        kind: Option<Kind>,
        /// A text of it speaks of a snapshot.
        snapshot: bool,
        /// A text of it is a summary by Gemini CLI.
        summary: bool,
    },
    /// A turn of the model's: what it said, of which nothing is sent if it only thought, and the results of its calls.
    Model { parts: Vec<Piece>, kind: Option<Kind>, results: Vec<Piece> },
    /// What is wrong with it.
    Unknown(String),
}

/// A part of a message.
#[derive(Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) part: Part,
    /// UTF-16 length of its compact JSON, as sent.
    pub(super) len: u64,
    /// The client takes it for nothing if nothing else is there.
    pub(super) blank: bool,
    /// Its JSON, as sent, for who writes it again.
    pub(super) raw: Option<Box<Value>>,
}

/// What is asked of a record besides what it always says.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// What stands for texts.
    pub(super) keep: Option<&'a Keep<'a>>,
    /// The JSON of each part.
    pub(super) raw: bool,
}

/// Begin and end of a summary as Gemini CLI knows its own: its next compression merges it into the new one.
pub(super) const SNAPSHOT: (&str, &str) = ("<state_snapshot>\n", "\n</state_snapshot>");

/// Looks at any record.
pub(super) fn look(json: &str, at: Range<u64>, wanted: Wanted) -> Result<JournalItem, String> {
    let fields = Fields::of(json).ok_or("expected a message record, found no object; it is skipped")?;
    let plain = plain(&fields);
    let ours = fields.text(KIND_FIELD);
    let summary = ours.as_deref() == Some("summary") || is_snapshot(&plain);
    let mut draft = draft(&fields, ours.as_deref(), wanted.raw);
    if let Some(keep) = wanted.keep {
        let (parts, results) = match &mut draft {
            Draft::Nothing | Draft::Unknown(_) => (None, None),
            Draft::User { parts, .. } => (Some(parts), None),
            Draft::Model { parts, results, .. } => (Some(parts), Some(results)),
        };
        let pieces = parts.into_iter().chain(results).flatten();
        pieces.for_each(|it| hold(&mut it.part, keep, at.start));
    }
    Ok(JournalItem {
        id: fields.text("id").map(Into::into),
        record: 0,
        time: fields.text("timestamp").and_then(|it| derive::parse_time(&it)),
        model: fields.text("model").map(Into::into),
        reported: fields.get("tokens").map(|it| {
            let tokens = Fields::of(it);
            Reported::of(|key| tokens.as_ref()?.number(key))
        }),
        kept: is_kept_at_resume(&fields, &plain),
        context: plain.trim_start().starts_with(CONTEXT),
        workspace: workspace(&plain).map(Into::into),
        summary: summary.then(|| plain.as_str().into()),
        draft,
        at,
    })
}

/// Whether a resume writes the record down again: not what is only shown, and not what it makes anew.
fn is_kept_at_resume(fields: &Fields, plain: &str) -> bool {
    let filled = |key| fields.get(key).is_some_and(|it| !matches!(it, "\"\"" | "[]"));
    match fields.text("type").as_deref() {
        Some("user") => filled("content") && !starts_ignored(plain),
        Some("gemini") => filled("content") || filled("toolCalls") || filled("thoughts"),
        Some(_) | None => false,
    }
}

/// The text of a record's content, as far as it is text.
fn plain(fields: &Fields) -> String {
    let Some(raw) = fields.get("content") else { return String::new() };
    if let Some(text) = text(raw) {
        return text;
    }
    let parts = list(raw).unwrap_or_else(|| vec![raw]);
    parts.into_iter().filter_map(|it| text(it).or_else(|| Fields::of(it)?.text("text"))).collect()
}

/// The first workspace directory that the session's context names.
fn workspace(plain: &str) -> Option<&str> {
    let text = plain.trim_start().strip_prefix(CONTEXT)?;
    let (_, list) = text.split_once("Workspace Directories:**")?;
    let line = list.lines().map(str::trim).find(|it| !it.is_empty())?;
    line.strip_prefix("- ")
}

/// Whether a text is a summary by Gemini CLI.
pub(super) fn is_snapshot(text: &str) -> bool {
    text.contains(SNAPSHOT_TAG) && text.trim_end().ends_with("</state_snapshot>")
}

/// What a user message must not begin with, or Gemini CLI does not send it.
pub(super) fn starts_ignored(text: &str) -> bool {
    ["/", "?", CONTEXT, "<hook_context>"].iter().any(|it| text.trim().starts_with(it))
}

fn draft(fields: &Fields, ours: Option<&str>, raw: bool) -> Draft {
    let value = |key: &str| fields.get(key).map(serde_json::from_str::<Value>).transpose();
    let content = match value("content") {
        Ok(content) => content,
        Err(error) => {
            return Draft::Unknown(format!("expected a message record, found {error}; it is skipped"));
        }
    };
    let kind = ours.and_then(|ours| KINDS.iter().find(|(name, _)| *name == ours)).map(|(_, kind)| *kind);
    match fields.text("type").as_deref() {
        Some("user") => {
            let values = parts_of(content);
            if is_ignored(&values) {
                return Draft::Nothing;
            }
            let mut parts = pieces(values, raw);
            let texts =
                || parts.iter().filter_map(|it| if let Part::Text(it) = &it.part { Some(it) } else { None });
            // What stands beside a tool's response is the tool's.
            let own = !parts.iter().any(|it| matches!(it.part, Part::Output(_)));
            let snapshot = own && texts().any(|it| it.as_str().contains(SNAPSHOT_TAG));
            let summary = texts().any(|it| is_snapshot(it.as_str()));
            if ours == Some("summary") {
                unframed(&mut parts);
            }
            Draft::User { parts, kind, snapshot, summary }
        }
        Some("gemini") => {
            let tools = fields.get("toolCalls").and_then(list).unwrap_or_default();
            // What is no object is no call; the writer leaves it out too.
            let tools = tools.into_iter().filter(|it| Fields::of(it).is_some());
            let tools = match tools.map(tool).collect::<Result<Vec<_>, _>>() {
                Ok(tools) => tools,
                Err(error) => {
                    let what = format!("expected a call in a message record, found {error}; it is skipped");
                    return Draft::Unknown(what);
                }
            };
            let thinks = fields.get("thoughts").and_then(list).is_some_and(|it| !it.is_empty());
            model(content, thinks, tools, kind, raw)
        }
        Some("info" | "error" | "warning") => Draft::Nothing,
        other => Draft::Unknown(format!(
            "expected a message of type user, gemini or info, found {other:?}; it is not sent"
        )),
    }
}

/// What of a call is sent, and its results. What is only shown may be anything.
fn tool(json: &str) -> serde_json::Result<Map<String, Value>> {
    let fields = Fields::of(json);
    let named = fields.iter().flat_map(Fields::iter);
    named
        .filter(|(name, _)| ["id", "name", "args", "result", "status"].contains(name))
        .map(|(name, raw)| Ok((name.to_owned(), serde_json::from_str(raw)?)))
        .collect()
}

fn model(
    content: Option<Value>,
    mut thinks: bool,
    tools: Vec<Map<String, Value>>,
    kind: Option<Kind>,
    raw: bool,
) -> Draft {
    let mut values = parts_of(content.filter(|it| it.as_str() != Some("")));
    let is_thought =
        |it: &Value| it.get("thought").is_some_and(|it| it != &Value::Bool(false) && !it.is_null());
    let whole = values.iter().any(|it| it.get("functionCall").is_some() || is_thought(it));
    if whole {
        thinks = values.iter().any(is_thought);
        values.retain(|it| !is_thought(it));
    } else {
        values.extend(tools.iter().map(|it| {
            let named = ["id", "name", "args"].into_iter();
            let call: Map<String, Value> =
                named.filter_map(|key| Some((key.to_owned(), it.get(key)?.clone()))).collect();
            json!({ "functionCall": call })
        }));
    }
    // A model turn that was thoughts only is still a turn for the client, but nothing of it is sent.
    if values.is_empty() && !thinks {
        return Draft::Nothing;
    }
    // The client signs the first call of a turn whose thoughts it takes out.
    if thinks
        && let Some(first) = values.iter_mut().find(|it| it.get("functionCall").is_some())
        && let Some(first) = first.as_object_mut()
    {
        first.entry("thoughtSignature").or_insert_with(|| json!(NO_SIGNATURE));
    }
    let (mut results, mut cancelled) = (Vec::new(), Vec::new());
    for mut tool in tools {
        let before = results.len();
        match tool.remove("result") {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text.is_empty() => {}
            Some(Value::String(text)) => results.push(json!({ "functionResponse": {
                "id": tool.get("id"), "name": tool.get("name"), "response": { "output": text } } })),
            Some(result) => results.extend(parts_of(Some(result))),
        }
        if tool.get("status").is_some_and(|it| it == "cancelled") {
            cancelled.push(before..results.len());
        }
    }
    let mut results = pieces(results, raw);
    cancelled.into_iter().for_each(|it| mark_refused(&mut results[it]));
    Draft::Model { parts: pieces(values, raw), kind, results }
}

/// A content as a list of parts: a text, a part, or a list of both.
fn parts_of(content: Option<Value>) -> Vec<Value> {
    let one = |it: Value| if it.is_string() { json!({ "text": it }) } else { it };
    match content {
        None | Some(Value::Null) => vec![],
        Some(Value::Array(list)) => list.into_iter().map(one).collect(),
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

/// A summary of ours without its frame: the record says that it is one.
fn unframed(parts: &mut [Piece]) {
    if let [Piece { part: Part::Text(text), .. }] = parts
        && let Some(inner) = text.as_str().strip_prefix(SNAPSHOT.0).and_then(|it| it.strip_suffix(SNAPSHOT.1))
    {
        *text = inner.into();
    }
}

fn pieces(mut values: Vec<Value>, raw: bool) -> Vec<Piece> {
    name_ids(&mut values);
    let piece = |value: Value| Piece {
        part: part(&value),
        len: TextSize::of(&text_json::compact(&value)).utf16,
        blank: shown(&value).trim().is_empty(),
        raw: raw.then(|| Box::new(value)),
    };
    values.into_iter().map(piece).collect()
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
        let input = call.get("args").map_or("{}".to_owned(), text_json::compact);
        let name = text(call.get("name")).into();
        let signature = signature.filter(|it| *it != NO_SIGNATURE).map(Into::into);
        let id = text(call.get("id")).into();
        return Part::Call(Call { id, name, input: input.into(), freeform: false, signature });
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
        id: response.get("id").and_then(Value::as_str).unwrap_or_default().into(),
        name: name.map(Into::into),
        failed: said.is_some_and(|it| it.get("error").is_some() && it.get("output").is_none()),
        cleared: text.contains(MASKED) || is_cleared(&text),
        text: text.into(),
        media: nested.into_iter().flatten().filter_map(media).collect(),
        exit: None,
        refusal: None,
    }
}

/// Marks the results of a call whose status is `cancelled`, if it was the user who did not want it.
pub(super) fn mark_refused(results: &mut [Piece]) {
    for piece in results {
        if let Part::Output(output) = &mut piece.part
            && output.failed
        {
            output.refusal = refusal::gemini_cli(output.text.as_str()).map(Box::new);
        }
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
