//! Writing: responses replaced in place, all messages set anew, or a new session file.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::convert::{JournalOrigin, LiveMessage, read_kind};
use super::part::API;
use super::record::{RecordSide, SNAPSHOT, starts_ignored};
use super::{KIND_FIELD, Read};
use crate::agents::foreign;
use crate::parse::lines::appended;
use crate::parse::raw::{Fields, array, list, place, quoted, text};
use crate::wire::{gemini, input};
use crate::{Format, Mode, Piece, Session, Source, Written, changed_outputs, derive, spliced};
use history::error::Result;
use history::json as text_json;
use history::{History, Kind, Message, Meta, Output, Part, Role};

/// Writes `after` back. `session` is what [`read`](super::read) gave for `source`.
///
/// - [`Mode::Patch`]: only outputs may differ; a response is changed in the call's result and in every user record
///   that repeats it, and nothing else moves.
/// - [`Mode::Append`]: one line `{"$set":{"messages":[…]}}`, as the client writes after its own compression;
///   in an older document, `messages` is replaced.
/// - [`Mode::New`]: a session file with a new id.
///
/// Kept messages are their own records, without the token counts that were reported for the old context. A
/// response is written once, in its call's result. Kinds that the text does not tell are stored in the
/// record, as `epitome`.
///
/// # Errors
/// [`Bug`](history::error::ErrorKind::Bug) if a patch would have to change more than outputs.
pub fn write(source: &dyn Source, session: &Session, after: &History, mode: Mode) -> Result<Written> {
    if session.format != Format::GEMINI_CLI {
        return foreign_session(session, after);
    }
    let read = Read::of(source)?;
    if mode == Mode::Patch {
        return patch(source, &read, after);
    }
    let mut written = Written::default();
    let ms = read.journal.times.map_or(0, |(_, last)| last + 1);
    let old = session.id();
    let records =
        Writer { source, live: &read.live, old, ms, ids: HashSet::new(), warnings: &mut written.warnings }
            .records(after)?;
    let at = quoted(&derive::time(ms));
    // Records of an older document become single lines: a line break in JSON is never inside a string.
    let records: Vec<String> = records.iter().map(|it| it.lines().map(str::trim_start).collect()).collect();
    if mode == Mode::New {
        let new = new_session(old, &read.journal.meta, &after.meta, &records, ms);
        return Ok(Written { warnings: written.warnings, ..new });
    }
    if let Some(document) = read.journal.document {
        let mut edits = vec![(document, array(&records))];
        edits.extend(read.journal.updated.map(|it| (it, at)));
        written.pieces = spliced(source, edits);
    } else {
        let messages = array(&records);
        let line = format!("{{\"$set\":{{\"messages\":{messages},\"lastUpdated\":{at}}}}}\n");
        written.pieces = appended(source, &line)?;
    }
    Ok(written)
}

/// A new session for the history of another agent, without what only another API understands.
///
/// # Errors
/// As [`crate::write`].
fn foreign_session(session: &Session, after: &History) -> Result<Written> {
    let mut warnings = Vec::new();
    let ms = after.meta.times.map_or(0, |(_, last)| last + 1);
    let old = session.id();
    let nothing = crate::MemorySource::new("nothing", Vec::new());
    let messages: Vec<Message> = after
        .messages()
        .iter()
        .map(|it| {
            let mut message = foreign(it);
            if message.role == Role::Tool {
                message.role = Role::User;
            }
            message
        })
        .filter(|it| !it.parts.is_empty())
        .collect();
    let after = History::new(messages, after.meta.clone());
    let writer =
        Writer { source: &nothing, live: &[], old, ms, ids: HashSet::new(), warnings: &mut warnings };
    let records = writer.records(&after)?;
    let new = new_session(old, &BTreeMap::new(), &after.meta, &records, ms);
    Ok(Written { warnings, ..new })
}

/// A session file of these records, under a name that the client would choose at that time. `before`: the
/// fields of the old session.
fn new_session(
    old: &str,
    before: &BTreeMap<String, String>,
    meta: &Meta,
    records: &[String],
    ms: i64,
) -> Written {
    let lines = records.join("\n");
    let id = derive::uuid(derive::digest(old, "session", 0, &lines));
    let time = derive::time(ms);
    let hash = before.get("projectHash").filter(|it| it.starts_with('"') && it.len() > 2);
    let own = [
        ("sessionId", quoted(&id)),
        ("projectHash", hash.cloned().unwrap_or_else(|| quoted(&project_hash(meta)))),
        ("startTime", quoted(&time)),
        ("lastUpdated", quoted(&time)),
        ("kind", before.get("kind").cloned().unwrap_or_else(|| quoted("main"))),
    ];
    // The title of the old session and its memory notes do not apply to the new one.
    let replaced =
        |it: &str| ["summary", "memoryScratchpad"].contains(&it) || own.iter().any(|(key, _)| *key == it);
    let kept = before.iter().map(|(key, raw)| (key.as_str(), raw)).filter(|it| !replaced(it.0));
    let fields = own.iter().map(|(key, raw)| (*key, raw)).chain(kept);
    let fields: Vec<String> = fields.map(|(key, raw)| format!("{}:{raw}", quoted(key))).collect();
    let text = format!("{{{}}}\n{lines}\n", fields.join(","));
    let stamp = time.get(..16).unwrap_or_default().replace(':', "-");
    Written {
        pieces: vec![Piece::New(text.into_bytes())],
        file_name: Some(format!("session-{stamp}-{}.jsonl", id.get(..8).unwrap_or_default())),
        session: Some(id),
        warnings: Vec::new(),
    }
}

/// SHA-256 of the project's root, as the client records it. It does not import a session without one.
pub(super) fn project_hash(meta: &Meta) -> String {
    derive::hex(&Sha256::digest(meta.cwd.as_deref().unwrap_or_default().as_bytes()))
}

fn patch(source: &dyn Source, read: &Read, after: &History) -> Result<Written> {
    let mut edits = Vec::new();
    for (number, old, new) in changed_outputs(source, read.live.iter().map(|it| &it.message), after)? {
        for (old, new) in old.outputs().zip(new.outputs()).filter(|(old, new)| old != new) {
            for range in read.live[number].origin.iter().flat_map(|it| &it.also) {
                responses(source, range, old, new, &mut edits)?;
            }
        }
    }
    Ok(Written { pieces: spliced(source, edits), ..Written::default() })
}

/// The edits that replace a response's text everywhere in one message record.
fn responses(
    source: &dyn Source,
    range: &Range<u64>,
    old: &Output,
    new: &Output,
    edits: &mut Vec<(Range<u64>, String)>,
) -> Result<()> {
    let whole = source.text(range.clone())?;
    let Some(record) = Fields::of(&whole) else { return Ok(()) };
    let mut edit = |part: &str, with: String| {
        if let Some(at) = place(&whole, part) {
            edits.push((range.start + at.start as u64..range.start + at.end as u64, with));
        }
    };
    let mut parts = record.list("content").unwrap_or_default();
    for tool in record.list("toolCalls").unwrap_or_default() {
        let Some(tool) = Fields::of(tool) else { continue };
        let Some(result) = tool.get("result") else { continue };
        match list(result) {
            Some(list) => parts.extend(list),
            None if text(result).is_none() => parts.push(result),
            None if tool.text("id").as_deref() == Some(&new.id) => edit(result, quoted(new.text.as_str())),
            None => {}
        }
    }
    for part in parts {
        let Some(response) = Fields::of(part).and_then(|it| it.object("functionResponse")) else { continue };
        let named = response.text("id").or_else(|| Some(format!("{}:1", response.text("name")?)));
        if named.as_deref() != Some(&new.id) {
            continue;
        }
        let body = response.get("response");
        let fields = body.and_then(Fields::of);
        let text_field = |key| fields.as_ref().and_then(|it| it.get(key)).filter(|it| text(it).is_some());
        let new_text = quoted(new.text.as_str());
        match (text_field("output").or_else(|| text_field("error")), body) {
            (Some(field), _) => edit(field, new_text),
            (None, Some(body)) => edit(body, format!("{{\"output\":{new_text}}}")),
            (None, None) => {}
        }
        if let Some(media) = response.get("parts")
            && new.media.is_empty()
            && !old.media.is_empty()
        {
            edit(media, "[]".to_owned());
        }
    }
    Ok(())
}

struct Writer<'a> {
    source: &'a dyn Source,
    live: &'a [LiveMessage],
    /// The id of the session that was read.
    old: &'a str,
    ms: i64,
    /// Ids in use: a second record with the same id would replace the first.
    ids: HashSet<String>,
    warnings: &'a mut Vec<String>,
}

impl Writer<'_> {
    /// One record per message, but none for responses that are in their calls' results.
    fn records(mut self, after: &History) -> Result<Vec<String>> {
        let messages = after.messages();
        let mut out = Vec::new();
        let mut index = 0;
        while let Some(message) = messages.get(index) {
            let before = index.checked_sub(1).and_then(|it| messages.get(it));
            let kind = kind_name(before, message);
            if message.role == Role::Assistant {
                let answers = messages.get(index + 1).filter(|it| answers(message, it));
                let as_is = messages.get(index + 1).is_some_and(|it| self.is_rest(message, it));
                let (record, embedded) = self.model(message, answers, as_is, kind, index)?;
                out.push(record);
                index += usize::from(embedded);
            } else {
                out.push(self.user(message, kind, index)?);
            }
            index += 1;
        }
        Ok(out)
    }

    fn origin(&self, message: &Message) -> Option<(&LiveMessage, &JournalOrigin)> {
        let live = self.live.get(message.from? as usize)?;
        Some((live, live.origin.as_ref()?))
    }

    /// The record that a message is this part of: its range, its id, and whether the message is unchanged.
    fn own(&self, message: &Message, side: RecordSide) -> Option<(Range<u64>, String, bool)> {
        let (live, it) = self.origin(message).filter(|(it, _)| it.side == side)?;
        Some((it.at.clone(), it.record_id.to_string(), live.message.parts == message.parts))
    }

    /// The record's own id if it is still free, else one made for this place.
    fn id(&mut self, own: Option<String>, message: &Message, index: usize) -> String {
        if let Some(own) = own.filter(|it| !self.ids.contains(it)) {
            self.ids.insert(own.clone());
            return own;
        }
        let id = derive::uuid(derive::digest(self.old, "message", index, &message.plain()));
        self.ids.insert(id.clone());
        id
    }

    fn user(&mut self, message: &Message, kind: Option<&str>, index: usize) -> Result<String> {
        let own = self.own(message, RecordSide::User);
        let mut parts: Vec<Value> = message.parts.iter().filter_map(|it| self.part(it, message)).collect();
        if let Some((at, id, true)) = &own
            && !self.ids.contains(id)
        {
            let text = self.source.text(at.clone())?;
            if let Some(fields) = Fields::of(&text)
                && is_whole(&fields, parts.len())
            {
                self.ids.insert(id.clone());
                let kind = kind.map(quoted);
                let kind = kind.as_deref().or(fields.get(KIND_FIELD)).filter(|_| message.kind != Kind::Said);
                return Ok(fields.with(&[(KIND_FIELD, kind)]));
            }
        }
        if let Some(first) = parts.first_mut()
            && let Some(words) = first.get("text").and_then(Value::as_str)
            && starts_ignored(words)
        {
            let words = format!("Note: {words}");
            self.warnings.push(
                "a message that begins like a command would not be sent by Gemini CLI; it now begins with \"Note: \"".into(),
            );
            *first = json!({ "text": words });
        }
        let mut kind = kind;
        if let (Kind::Summary, [Part::Text(text)]) = (message.kind, message.parts.as_slice()) {
            parts = vec![json!({ "text": format!("{}{}{}", SNAPSHOT.0, text.as_str(), SNAPSHOT.1) })];
            kind = Some("summary");
        }
        let at = derive::time(message.at.unwrap_or(self.ms));
        let id = self.id(own.map(|it| it.1), message, index);
        let mut record = json!({ "id": id, "timestamp": at, "type": "user", "content": parts });
        if let Some(kind) = kind {
            text_json::set(&mut record, KIND_FIELD, kind);
        }
        Ok(text_json::compact(&record))
    }

    /// Whether `next` is the unchanged results part of `message`'s record, without a response: on its own it
    /// would be blank to the client.
    fn is_rest(&self, message: &Message, next: &Message) -> bool {
        let (Some((_, own)), Some((rest, origin))) = (self.origin(message), self.origin(next)) else {
            return false;
        };
        own.record_id == origin.record_id
            && rest.side == RecordSide::Results
            && rest.message.parts == next.parts
            && next.outputs().next().is_none()
    }

    /// A model record, and whether the answers are in it.
    fn model(
        &mut self,
        message: &Message,
        answers: Option<&Message>,
        as_is: bool,
        kind: Option<&str>,
        index: usize,
    ) -> Result<(String, bool)> {
        let results: Vec<(String, Vec<Value>)> = answers.map(|it| self.results(it)).unwrap_or_default();
        let own = self.own(message, RecordSide::Model);
        if let Some((at, id, true)) = &own
            && !self.ids.contains(id)
        {
            let text = self.source.text(at.clone())?;
            if let Some(fields) = Fields::of(&text) {
                self.ids.insert(id.clone());
                return Ok(same_model_record(&fields, &results, as_is, kind));
            }
        }
        let at = derive::time(message.at.unwrap_or(self.ms));
        let parts: Vec<Value> = message.parts.iter().filter_map(|it| self.part(it, message)).collect();
        let ids: Vec<String> = message.calls().map(|it| it.id.to_string()).collect();
        let embedded = in_order(&results, &ids);
        let embeds = embedded.is_some();
        let mut embedded = embedded.into_iter().flatten();
        let tools: Vec<Value> = message
            .calls()
            .map(|it| {
                json!({ "id": &*it.id, "name": &*it.name, "args": input(it), "status": "success",
                        "timestamp": at, "result": embedded.next().flatten() })
            })
            .collect();
        let id = self.id(own.map(|it| it.1), message, index);
        let mut record = json!({ "id": id, "timestamp": at, "type": "gemini", "content": parts });
        if !tools.is_empty() {
            text_json::set(&mut record, "toolCalls", tools);
        }
        if let Some(kind) = kind {
            text_json::set(&mut record, KIND_FIELD, kind);
        }
        Ok((text_json::compact(&record), embeds))
    }

    /// The parts of an answering message by call id; a part that is no response goes with the response before
    /// it.
    fn results(&mut self, answers: &Message) -> Vec<(String, Vec<Value>)> {
        let mut out: Vec<(String, Vec<Value>)> = Vec::new();
        for part in &answers.parts {
            let Some(value) = self.part(part, answers) else { continue };
            match (part, out.last_mut()) {
                (Part::Output(it), _) => out.push((it.id.to_string(), vec![value])),
                (_, Some((_, parts))) => parts.push(value),
                (_, None) => {}
            }
        }
        out
    }

    /// A part as JSON: the original if it is unchanged, or with the new text if a response changed, else made
    /// anew.
    fn part(&mut self, part: &Part, message: &Message) -> Option<Value> {
        if let Some((live, origin)) = self.origin(message) {
            let same = |it: &(&Part, &Value)| match (it.0, part) {
                (Part::Output(old), Part::Output(new)) => old.id == new.id,
                (old, new) => old == new,
            };
            let parts = live.message.parts.iter().zip(&origin.raw);
            if let Some((old, raw)) = parts.filter_map(|(part, raw)| Some((part, raw.as_ref()?))).find(same) {
                let mut raw = raw.clone();
                if let (Part::Output(new), true) = (part, old != part) {
                    respond(&mut raw, new);
                }
                return Some(raw);
            }
        }
        let sent = match part {
            // Thinking is never sent back.
            Part::Reasoning(_) => return None,
            Part::Opaque(it) if &*it.api != API => None,
            _ => gemini::sent(part),
        };
        if let (Part::Opaque(it), None) = (part, &sent) {
            let what = format!("a block that only {} understands ({}) was left out", it.api, it.kind);
            self.warnings.push(what);
        }
        sent
    }
}

/// Whether `next` holds the answers to the calls in `message`, and begins with one.
fn answers(message: &Message, next: &Message) -> bool {
    next.role != Role::Assistant
        && matches!(next.parts.first(), Some(Part::Output(_)))
        && next.outputs().all(|it| message.calls().any(|call| call.id == it.id))
        && !next.is_prompt()
}

/// The result of each call, if all results are in the order of the calls: only then are they read back
/// unchanged. Two calls may have the same id.
fn in_order<'r>(results: &'r [(String, Vec<Value>)], ids: &[String]) -> Option<Vec<Option<&'r Vec<Value>>>> {
    let mut left = results.iter().peekable();
    let of_calls = ids.iter().map(|id| left.next_if(|(it, _)| it == id).map(|(_, parts)| parts)).collect();
    (!results.is_empty() && left.next().is_none()).then_some(of_calls)
}

/// Whether a record's content has exactly this many parts: none was left out as a repetition.
fn is_whole(fields: &Fields, parts: usize) -> bool {
    fields.list("content").map_or(1, |it| it.len()) == parts
}

fn respond(raw: &mut Value, new: &Output) {
    let Some(body) = raw.get_mut("functionResponse").and_then(Value::as_object_mut) else { return };
    let mut response = body.get("response").cloned().unwrap_or_default();
    match ["output", "error"].into_iter().find(|it| response[*it].is_string()) {
        Some(key) => text_json::set(&mut response, key, new.text.as_str()),
        None => response = json!({ "output": new.text.as_str() }),
    }
    body.insert("response".into(), response);
    if new.media.is_empty() {
        body.remove("parts");
    }
}

/// The name of a message's kind, if its record has to state it.
fn kind_name(before: Option<&Message>, message: &Message) -> Option<&'static str> {
    let seen = read_kind(before, message.role == Role::Assistant, &message.parts);
    (message.kind != Kind::Said && message.kind != seen).then(|| message.kind.name())
}

/// A model record as it was, without its token counts, and whether the answers are in it.
fn same_model_record(
    fields: &Fields<'_>,
    results: &[(String, Vec<Value>)],
    as_is: bool,
    kind: Option<&str>,
) -> (String, bool) {
    let tools: Vec<Fields> =
        fields.list("toolCalls").unwrap_or_default().into_iter().filter_map(Fields::of).collect();
    let ids: Vec<String> = tools.iter().filter_map(|it| it.text("id")).collect();
    let embedded = in_order(results, &ids);
    let embeds = embedded.is_some();
    let mut embedded = embedded.into_iter().flatten();
    let tools: Vec<String> = tools
        .iter()
        .map(|it| {
            let result = it.text("id").and_then(|_| embedded.next()?).map(text_json::compact);
            it.with(&[("result", result.as_deref())])
        })
        .collect();
    let kind = kind.map(quoted);
    let (tools, had) = (array(&tools), fields.get("toolCalls").is_some());
    let record = fields.with(&[
        ("tokens", None),
        ("toolCalls", if as_is { fields.get("toolCalls") } else { Some(tools.as_str()).filter(|_| had) }),
        (KIND_FIELD, kind.as_deref().or(fields.get(KIND_FIELD))),
    ]);
    (record, embeds || as_is)
}
