//! The journal: which message records are in force after every `$set`, `$rewindTo` and replacement by id.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use crate::error::Result;
use crate::format::raw::{Fields, list, place, text};
use crate::format::{Note, Record, Source, derive, lines};
use crate::json;

/// A message record in force.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) id: String,
    /// The line (or object of the document) it stands in.
    pub(super) record: u32,
    /// Where its JSON stands in the source.
    pub(super) at: Range<u64>,
    /// What was reported with it, as JSON; not if that was before a compaction that it survived.
    pub(super) tokens: Option<String>,
}

/// A `$set.messages` that put a summary in the place of messages.
#[derive(Debug)]
pub(super) struct Compaction {
    /// The id of the summary's record.
    pub(super) summary: String,
    pub(super) text: String,
    pub(super) tokens_before: Option<u64>,
}

/// Everything in a session file that the next resume reads.
#[derive(Debug, Default)]
pub(super) struct Journal {
    pub(super) records: Vec<Record>,
    pub(super) notes: Vec<Note>,
    pub(super) entries: Vec<Entry>,
    /// Fields of the session, the last of each name, as JSON.
    pub(super) meta: BTreeMap<String, String>,
    pub(super) compactions: Vec<Compaction>,
    pub(super) times: Option<(i64, i64)>,
    pub(super) cwd: Option<String>,
    /// The model that answered last.
    pub(super) model: Option<String>,
    /// An older session: one JSON document. Where its `messages` stand.
    pub(super) document: Option<Range<u64>>,
    /// Where the `lastUpdated` of a document stands.
    pub(super) updated: Option<Range<u64>>,
    by_id: HashMap<String, usize>,
    /// Ids in force before the last `$set.messages` that held more than the session's context.
    seen: HashSet<String>,
    /// What was reported with the records of an id: a resume writes them down again without it.
    tokens: HashMap<String, String>,
    /// The context after the last request that was reported.
    last_total: Option<u64>,
    /// Ids that survived a compaction.
    stale: HashSet<String>,
    /// The first `$set.messages` to come is known to be a compaction, though what it replaced was not looked at.
    begins_compacted: bool,
}

/// What of a line tells whether a `$set.messages` behind it was a compaction.
#[derive(Debug, Default)]
struct Hint {
    at: u64,
    /// The ids that a `$set.messages` puts in force, unless they are only the session's context.
    set: Option<HashSet<String>>,
    /// Ids in force that a resume writes down again.
    kept: Vec<String>,
    rewinds: bool,
}

impl Hint {
    fn of(at: u64, text: &str) -> Self {
        let mut out = Self { at, ..Self::default() };
        let Some(fields) = Fields::of(text) else { return out };
        let kept = |it: &Fields| it.text("id").filter(|_| is_kept_at_resume(it));
        if fields.get("$rewindTo").is_some() {
            out.rewinds = true;
        } else if fields.get("id").is_some() {
            out.kept.extend(kept(&fields));
        } else if let Some(messages) = fields.object("$set").and_then(|it| it.list("messages")) {
            let messages: Vec<Fields> = messages.into_iter().filter_map(Fields::of).collect();
            out.kept.extend(messages.iter().filter_map(kept));
            if !messages.iter().all(is_context) {
                out.set = Some(messages.iter().filter_map(|it| it.text("id")).collect());
            }
        }
        out
    }
}

impl Journal {
    /// Looks at every line, or at the one document.
    pub(super) fn of(source: &dyn Source) -> Result<Self> {
        let mut journal = Self::default();
        lines::each_line(source, |line, record, bytes| {
            journal.take(line, record, &json::mend(bytes));
            Ok(true)
        })?;
        // One object that holds its messages, on one line or many.
        if journal.is_foreign() || (journal.records.len() == 1 && !journal.entries.is_empty()) {
            let bytes = source.bytes(0..source.len())?;
            let text = json::mend(&bytes);
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
            if let Some(found) = Self::of_document(text, source.len() - text.len() as u64) {
                return Ok(found);
            }
        }
        Ok(journal)
    }

    /// Looks from the end backwards for the newest `$set.messages` that surely is a compaction, and then only at the first
    /// line, at that one and at all that follow. `None` if there is none, or the file is small.
    ///
    /// A compaction it is if it leaves out a message that was in force just before. What survives one has lost what was
    /// reported for it, so that nothing before it matters.
    pub(super) fn live_part(source: &dyn Source) -> Result<Option<Self>> {
        if source.len() <= super::super::LOOKED_AT_WHOLE {
            return Ok(None);
        }
        let look = |range| {
            let mut hints = Vec::new();
            lines::each_line_in(source, range, |_, record, bytes| {
                hints.push(Hint::of(record.at, &json::mend(bytes)));
                Ok(true)
            })?;
            Ok(hints)
        };
        let mut pending: Option<(u64, HashSet<String>)> = None;
        let mut base = None;
        lines::backwards(source, look, |hints, _| {
            for hint in hints.into_iter().rev() {
                if let Some((at, ids)) = &pending
                    && hint.kept.iter().any(|it| !ids.contains(it))
                {
                    base = Some(*at);
                    return false;
                }
                if hint.rewinds {
                    pending = None;
                }
                if let Some(ids) = hint.set {
                    pending = Some((hint.at, ids));
                }
            }
            true
        })?;
        let Some(base) = base else { return Ok(None) };
        let mut journal = Self { begins_compacted: true, ..Self::default() };
        // The first lines say which session it is, where, and since when.
        let mut first = Self::default();
        lines::each_line_in(source, 0..lines::HEAD.min(base), |_, record, bytes| {
            // What is wrong with them is found where all lines are looked at.
            let _ = first.look(&json::mend(bytes), 0, record);
            Ok(true)
        })?;
        (journal.meta, journal.times, journal.cwd) = (first.meta, first.times, first.cwd);
        lines::each_line_in(source, base..source.len(), |line, record, bytes| {
            journal.take(line, record, &json::mend(bytes));
            Ok(true)
        })?;
        if !journal.notes.is_empty() {
            let by = lines::each_line_in(source, 0..base, |_, _, _| Ok(true))?;
            journal.notes.iter_mut().for_each(|it| it.line += by);
        }
        // Who answered last is told of a session; if nobody has since, it was before.
        Ok(journal.model.is_some().then_some(journal))
    }

    fn take(&mut self, line: u64, record: Record, text: &str) {
        let number = self.records.len() as u32;
        self.records.push(record);
        if let Err(what) = self.look(text, number, record) {
            self.notes.push(Note { line, what });
        }
    }

    /// Whether nothing in it says which session it is: then it is none.
    pub(super) fn is_foreign(&self) -> bool {
        !self.meta.contains_key("sessionId")
    }

    fn of_document(text: &str, base: u64) -> Option<Self> {
        let fields = Fields::of(text.trim()).filter(|it| it.text("sessionId").is_some())?;
        let absolute = |part: &str| place(text, part).map(|it| base + it.start as u64..base + it.end as u64);
        let messages = fields.get("messages")?;
        let mut journal = Self { document: absolute(messages), ..Self::default() };
        journal.updated = fields.get("lastUpdated").and_then(absolute);
        journal.know(&fields);
        for raw in list(messages)? {
            let at = absolute(raw)?;
            let number = journal.records.len() as u32;
            journal.records.push(Record { at: at.start, len: at.end - at.start });
            if let Err(what) = journal.put(raw, number, at) {
                journal.notes.push(Note { line: u64::from(number) + 1, what });
            }
        }
        Some(journal)
    }

    fn look(&mut self, text: &str, number: u32, record: Record) -> Result<(), String> {
        let fields =
            Fields::of(text).ok_or("expected a JSON object, found something else; the line is skipped")?;
        let absolute =
            |part: &str| place(text, part).map(|it| record.at + it.start as u64..record.at + it.end as u64);
        if let Some(id) = fields.text("$rewindTo") {
            self.rewind(&id);
        } else if fields.text("id").is_some() {
            self.put(text, number, record.range())?;
        } else if let Some(set) = fields.object("$set") {
            if let Some(messages) = set.list("messages") {
                let placed: Vec<_> =
                    messages.into_iter().filter_map(|it| Some((it, absolute(it)?))).collect();
                self.replace_all(placed, number)?;
            }
            self.know(&set);
        } else if fields.text("sessionId").is_some() && fields.text("projectHash").is_some() {
            self.know(&fields);
            for raw in fields.list("messages").unwrap_or_default() {
                if let Some(at) = absolute(raw) {
                    self.put(raw, number, at)?;
                }
            }
        } else {
            return Err(
                "expected a message, $set, $rewindTo or session line, found another; it is skipped".into()
            );
        }
        Ok(())
    }

    fn know(&mut self, fields: &Fields) {
        for (name, raw) in fields.iter().filter(|(name, _)| *name != "messages") {
            if matches!(name, "startTime" | "lastUpdated")
                && let Some(at) = text(raw).and_then(|it| derive::parse_time(&it))
            {
                self.time(at);
            }
            self.meta.insert(name.to_owned(), raw.to_owned());
        }
    }

    fn time(&mut self, at: i64) {
        let (first, last) = self.times.unwrap_or((at, at));
        self.times = Some((first.min(at), last.max(at)));
    }

    /// A message record: new at the end, or in the place of the one with its id.
    fn put(&mut self, raw: &str, record: u32, at: Range<u64>) -> Result<(), String> {
        let fields = Fields::of(raw).ok_or("expected a message record, found no object; it is skipped")?;
        let id =
            fields.text("id").ok_or("expected a message record with an id, found none; it is skipped")?;
        if let Some(at) = fields.text("timestamp").and_then(|it| derive::parse_time(&it)) {
            self.time(at);
        }
        if self.cwd.is_none() {
            self.cwd = workspace(&fields);
        }
        if let Some(tokens) = fields.get("tokens") {
            self.last_total = Fields::of(tokens).and_then(|it| it.number("total"));
            self.tokens.insert(id.clone(), tokens.to_owned());
        }
        self.model = fields.text("model").or(self.model.take());
        let tokens = self.tokens.get(&id).filter(|_| !self.stale.contains(&id)).cloned();
        let entry = Entry { id: id.clone(), record, at, tokens };
        match self.by_id.get(&id) {
            Some(place) => self.entries[*place] = entry,
            None => {
                self.by_id.insert(id.clone(), self.entries.len());
                self.entries.push(entry);
            }
        }
        if is_kept_at_resume(&fields) {
            self.seen.insert(id);
        }
        Ok(())
    }

    /// Drops a message and all after it; an unknown id drops everything.
    fn rewind(&mut self, id: &str) {
        let from = self.by_id.get(id).copied().unwrap_or(0);
        for gone in self.entries.drain(from..) {
            self.by_id.remove(&gone.id);
            self.seen.remove(&gone.id);
        }
    }

    /// `$set.messages`: at each resume first only the session's context, then all again; after a compression what is
    /// left.
    fn replace_all(&mut self, messages: Vec<(&str, Range<u64>)>, record: u32) -> Result<(), String> {
        let fields: Vec<Fields> = messages.iter().filter_map(|(raw, _)| Fields::of(raw)).collect();
        let only_context = fields.iter().all(is_context);
        let ids: HashSet<String> = fields.iter().filter_map(|it| it.text("id")).collect();
        let known = std::mem::take(&mut self.begins_compacted);
        let shrinks = known || (!only_context && self.seen.iter().any(|it| !ids.contains(it)));
        if shrinks {
            let tokens_before = self.last_total;
            let is_new = |it: &&Fields| it.text("id").is_some_and(|id| !self.seen.contains(&id));
            let summary = fields.iter().filter(is_new).find(|it| {
                it.text(super::KIND_FIELD).as_deref() == Some("summary")
                    || super::convert::is_snapshot(&plain(it))
            });
            if let Some(summary) = summary {
                self.compactions.push(Compaction {
                    summary: summary.text("id").unwrap_or_default(),
                    text: plain(summary),
                    tokens_before,
                });
            }
            self.stale.extend(ids);
            self.seen.clear();
        }
        self.entries.clear();
        self.by_id.clear();
        let mut bad = None;
        for (raw, at) in messages {
            if let Err(what) = self.put(raw, record, at) {
                bad = Some(what);
            }
        }
        bad.map_or(Ok(()), Err)
    }
}

/// Whether a record is what the client puts in front of a session.
fn is_context(fields: &Fields) -> bool {
    plain(fields).trim_start().starts_with("<session_context>")
}

/// Whether a resume writes the record down again: not what is only shown, and not what it makes anew.
fn is_kept_at_resume(fields: &Fields) -> bool {
    let filled = |key| fields.get(key).is_some_and(|it| !matches!(it, "\"\"" | "[]"));
    match fields.text("type").as_deref() {
        Some("user") => filled("content") && !super::convert::starts_ignored(&plain(fields)),
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
fn workspace(fields: &Fields) -> Option<String> {
    let text = plain(fields);
    let text = text.trim_start().strip_prefix("<session_context>")?;
    let (_, list) = text.split_once("Workspace Directories:**")?;
    let line = list.lines().map(str::trim).find(|it| !it.is_empty())?;
    Some(line.strip_prefix("- ")?.to_owned())
}
