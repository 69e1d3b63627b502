//! Damage in a journal or an older document of Gemini CLI: lines that the client cannot follow, and records
//! that the API refuses. Only the last record of an id counts, and only records in or after the last
//! `$set.messages`.
//!
//! That a function response is in its call's record and also in a user record is no damage: the client writes
//! it so.

use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use serde_json::json;

use super::part::NO_SIGNATURE;
use super::write::project_hash;
use crate::parse::lines::each_line;
use crate::parse::raw::{Fields, list, quoted};
use crate::repair::media::{Attachment, AttachmentBudget, GEMINI};
use crate::repair::{
    At, Damage, EMPTY, Findings, NO_RESULT, hash, is_spoilt, lines, object_of, orphan_text, plain_name,
    whole_line,
};
use crate::wire::gemini::is_name;
use crate::{Record, Source, derive};
use history::error::Result;
use history::{Meta, json};

/// Whether it is one JSON document, on one line or many.
fn is_document(source: &dyn Source) -> Result<bool> {
    let head = source.bytes(0..source.len().min(crate::parse::lines::HEAD))?;
    let text = json::mend(&head);
    let text = json::without_byte_order_mark(&text).trim_start();
    let first = text.lines().next().and_then(Fields::of);
    Ok(match first {
        Some(fields) => fields.get("messages").is_some(),
        None => crate::parse::document::member(text, "messages").is_some() && !text.contains("\n{\""),
    })
}

/// Checks whole records, before their content is looked at.
pub(super) fn lines_or_document(source: &dyn Source, found: &mut Findings<'_>) -> Result<()> {
    if is_document(source)? { crate::repair::document(source, found) } else { lines(source, found) }
}

// ── The journal ──

/// Checks that the client can follow every line.
pub(super) fn journal(source: &dyn Source, found: &mut Findings<'_>) -> Result<()> {
    if is_document(source)? {
        return Ok(());
    }
    // The type of message for each id.
    let mut ids: HashMap<u64, String> = HashMap::new();
    let (mut header, mut first) = (false, None);
    each_line(source, |_, record, bytes| {
        let whole = json::mend(bytes);
        let Some(fields) = Fields::of(&whole) else { return Ok(true) };
        header |= fields.text("sessionId").is_some();
        first = first.take().or_else(|| Some((record.at, fields.text("timestamp"))));
        if let Some(id) = fields.text("$rewindTo") {
            if !ids.contains_key(&hash(id.as_bytes())) {
                found.note(Damage::UnknownRewind, record.at, format!("$rewindTo {id}"));
                found.replace(whole_line(source, record)?, "");
            }
        } else if let Some(set) = fields.get("$set") {
            let messages = Fields::of(set).map(|it| it.get("messages").map(str::to_owned));
            let bad = messages.as_ref().is_none_or(|it| it.as_ref().is_some_and(|it| list(it).is_none()));
            if bad {
                found.note(Damage::BadSet, record.at, "$set");
                found.replace(whole_line(source, record)?, "");
            } else if let Some(messages) = messages.flatten() {
                for it in list(&messages).unwrap_or_default() {
                    if let Some(message) = Fields::of(it)
                        && let (Some(id), Some(kind)) = (message.text("id"), message.text("type"))
                    {
                        ids.insert(hash(id.as_bytes()), kind);
                    }
                }
            }
        } else if let (Some(id), Some(kind)) = (fields.text("id"), fields.text("type")) {
            match ids.get(&hash(id.as_bytes())) {
                Some(other) if *other != kind => {
                    let what = format!("id {id} of a {other} and a {kind} message");
                    found.note(Damage::DuplicateId, record.at, what);
                    let content = format!("{kind} {}", fields.text("timestamp").unwrap_or_default());
                    let new = derive::uuid(derive::digest(&id, "repair", 0, &content));
                    ids.insert(hash(new.as_bytes()), kind);
                    found.set(&At { record, text: &whole }, &fields, "id", quoted(&new));
                }
                _ => _ = ids.insert(hash(id.as_bytes()), kind),
            }
        }
        Ok(true)
    })?;
    if let (false, Some((at, time))) = (header, first) {
        // `session-2026-11-20T09-15-<the first eight digits of the id>.jsonl`
        let stem = source.name().rsplit(['/', '\\']).next().unwrap_or_default();
        let stem = stem.strip_suffix(".jsonl").unwrap_or(stem);
        let begin = stem.get(stem.len().saturating_sub(8)..).unwrap_or_default();
        let id = derive::uuid(derive::digest(stem, "repair", 0, ""));
        let is_hex = begin.len() == 8 && begin.bytes().all(|it| it.is_ascii_hexdigit());
        let id = if is_hex { format!("{begin}{}", &id[8..]) } else { id };
        let time = time.unwrap_or_else(|| derive::time(0));
        found.note(Damage::MissingHeader, at, format!("no sessionId; {id} is made from the file's name"));
        // The project's path is not in the file, but the client opens no session without a hash.
        let project = project_hash(&Meta::default());
        let header = json!({
            "sessionId": id, "projectHash": project, "startTime": time, "lastUpdated": time, "kind": "main",
        });
        found.replace(at..at, format!("{header}\n"));
    }
    Ok(())
}

// ── Records ──

/// Every message record, with its place.
fn each_message(source: &dyn Source, mut each: impl FnMut(&At<'_>, &str, &Fields<'_>)) -> Result<()> {
    let mut all = |at: At<'_>, raws: Vec<&str>| {
        for raw in raws {
            if let Some(fields) = Fields::of(raw) {
                each(&at, raw, &fields);
            }
        }
    };
    if is_document(source)? {
        let whole = source.text(0..source.len())?;
        let at = At { record: Record { at: 0, len: source.len() }, text: &whole };
        let fields = Fields::of(whole.trim());
        all(at, fields.and_then(|it| it.list("messages")).unwrap_or_default());
        return Ok(());
    }
    each_line(source, |_, record, bytes| {
        let whole = json::mend(bytes);
        let Some(fields) = Fields::of(&whole) else { return Ok(true) };
        let at = At { record, text: &whole };
        let set = fields.object("$set").and_then(|it| it.list("messages"));
        match set {
            Some(messages) => all(at, messages),
            None if fields.text("id").is_some() => all(at, vec![&whole]),
            None => {}
        }
        Ok(true)
    })
}

/// Checks that the API refuses no record in force.
pub(super) fn records(source: &dyn Source, found: &mut Findings<'_>) -> Result<()> {
    let (mut base, mut last) = (0, 0);
    let mut newest: HashMap<u64, u64> = HashMap::new();
    let (mut calls, mut answers) = (HashSet::new(), HashSet::new());
    each_line(source, |_, record, bytes| {
        if memchr::memmem::find(&bytes[..bytes.len().min(200)], b"\"$set\"").is_some()
            && Fields::of(&json::mend(bytes)).and_then(|it| it.object("$set")?.list("messages")).is_some()
        {
            base = record.at;
        }
        Ok(true)
    })?;
    each_message(source, |at, raw, fields| {
        let place = at.range(raw).start;
        if let Some(id) = fields.text("id") {
            newest.insert(hash(id.as_bytes()), place);
        }
        last = place;
        calls.extend(called(fields).iter().map(|it| hash(it.as_bytes())));
        let answered = |part: &str| Fields::of(part)?.object("functionResponse")?.text("id");
        let parts = fields.list("content").unwrap_or_default();
        answers.extend(parts.into_iter().filter_map(answered).map(|it| hash(it.as_bytes())));
    })?;
    let mut attachments = AttachmentBudget::default();
    each_message(source, |at, raw, fields| {
        let place = at.range(raw).start;
        let id = fields.text("id").unwrap_or_default();
        if at.record.at < base || newest.get(&hash(id.as_bytes())).is_some_and(|it| *it != place) {
            return;
        }
        let mut look =
            RecordRepair { found, attachments: &mut attachments, calls: &calls, answers: &answers };
        match fields.text("type").as_deref() {
            Some("gemini") => {
                for raw in fields.list("toolCalls").unwrap_or_default() {
                    look.call(at, raw, place == last);
                }
                look.parts(at, fields.get("content"), false);
            }
            Some("user") => look.parts(at, fields.get("content"), false),
            _ => {}
        }
    })?;
    attachments.archive_excess(found);
    Ok(())
}

/// The ids of the calls of a record.
fn called(fields: &Fields) -> Vec<String> {
    let tools = fields.list("toolCalls").unwrap_or_default();
    let parts = fields.list("content").unwrap_or_default();
    let tools = tools.into_iter().filter_map(|it| Fields::of(it)?.text("id"));
    let parts = parts.into_iter().filter_map(|it| Fields::of(it)?.object("functionCall")?.text("id"));
    tools.chain(parts).collect()
}

struct RecordRepair<'a, 'f> {
    found: &'a mut Findings<'f>,
    attachments: &'a mut AttachmentBudget,
    /// Hashes of the ids of all calls, and of all ids that user records answer.
    calls: &'a HashSet<u64>,
    answers: &'a HashSet<u64>,
}

impl RecordRepair<'_, '_> {
    fn call(&mut self, at: &At<'_>, raw: &str, is_last: bool) {
        let Some(call) = Fields::of(raw) else { return };
        let (id, tool) = (call.text("id").unwrap_or_default(), call.text("name").unwrap_or_default());
        if self.named(at, raw, &call) {
            self.found.note(Damage::BadToolName, at.range(raw).start, format!("{tool:.60}"));
        }
        if let Some(raw) = call.get("args").filter(|it| !it.starts_with('{')) {
            self.found.note(Damage::BadArguments, at.range(raw).start, format!("{tool} {id}"));
            self.found.replace(at.range(raw), object_of(raw));
        }
        let result = call.get("result").filter(|it| !matches!(*it, "\"\"" | "[]"));
        if let Some(result) = result {
            return self.parts(at, Some(result), false);
        }
        if is_last || self.answers.contains(&hash(id.as_bytes())) {
            return;
        }
        self.found.note(Damage::UnansweredCall, at.range(raw).start, format!("{tool} {id}"));
        let response =
            json!([{ "functionResponse": { "id": id, "name": tool, "response": { "error": NO_RESULT } } }]);
        self.found.put(at, raw, &call, "result", &response.to_string());
        self.found.set(at, &call, "status", "\"error\"");
    }

    /// Gives a call or response a name that the API accepts; false if it had one.
    fn named(&mut self, at: &At<'_>, raw: &str, fields: &Fields) -> bool {
        let name = fields.text("name").unwrap_or_default();
        if is_name(&name) {
            return false;
        }
        let new = plain_name(&name, 63);
        let new = if is_name(&new) { new } else { format!("_{new}") };
        self.found.put(at, raw, fields, "name", &quoted(&new));
        true
    }

    /// `nested`: whether these are the parts of a function response, which hold only data.
    fn parts(&mut self, at: &At<'_>, content: Option<&str>, nested: bool) {
        let Some(content) = content else { return };
        let parts = list(content).unwrap_or_else(|| vec![content]);
        let many = parts.len() > 1;
        for raw in parts {
            let Some(part) = Fields::of(raw) else { continue };
            if let Some(signature) = part.get("thoughtSignature")
                && part.text("thoughtSignature").is_none_or(|it| it != NO_SIGNATURE && is_spoilt(&it))
            {
                self.found.note(Damage::SpoiltSignature, at.range(raw).start, "a part");
                self.found.replace(at.range(signature), quoted(NO_SIGNATURE));
            }
            if let Some(response) = part.object("functionResponse").filter(|_| !nested) {
                let id = response.text("id").unwrap_or_default();
                if !id.is_empty() && !self.calls.contains(&hash(id.as_bytes())) {
                    self.found.note(Damage::OrphanResult, at.range(raw).start, id);
                    let body = response.get("response").unwrap_or_default();
                    let text = Fields::of(body)
                        .and_then(|it| it.text("output").or_else(|| it.text("error")))
                        .unwrap_or_else(|| body.to_owned());
                    self.found.replace(at.range(raw), json!({ "text": orphan_text(&text) }).to_string());
                    continue;
                }
                if let Some(raw) = part.get("functionResponse") {
                    self.named(at, raw, &response);
                }
                self.parts(at, response.get("parts"), true);
            } else if let Some(data) = part.object("inlineData") {
                self.attachment(at, raw, &data);
            } else if part.get("text") == Some("\"\"") && many && part.get("thoughtSignature").is_none() {
                self.found.note(Damage::EmptyText, at.range(raw).start, "a text part");
                self.found.set(at, &part, "text", quoted(EMPTY));
            }
        }
    }

    fn attachment(&mut self, at: &At<'_>, raw: &str, inline: &Fields) {
        let field = |key| inline.get(key).unwrap_or_default().trim_matches('"');
        let attachment = Attachment { raw, types: &[field("mimeType")], data: field("data") };
        let note = |text: &str| json!({ "text": text }).to_string();
        if let Some(note) = self.attachments.judge(at, &attachment, &GEMINI, note, self.found) {
            self.found.replace(at.range(raw), note);
        }
    }
}
