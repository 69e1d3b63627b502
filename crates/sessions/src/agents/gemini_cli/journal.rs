//! The journal: which message records are in force after every `$set`, `$rewindTo` and replacement by id.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};

use super::line::{JournalLine, ParsedLines, ReadItem, Set};
use super::part::{RecordReader, Wanted};
use super::record::JournalItem;
use crate::parse::cursor::Cursor;
use crate::parse::lines;
use crate::parse::raw::{Fields, list, place, text};
use crate::{Note, Record, Source, derive};
use history::error::Result;
use history::{Usage, json};

/// A message record in force.
#[derive(Debug)]
pub(super) struct JournalEntry {
    /// Its id, as an index in `Journal::id_states`.
    id: u32,
    pub(super) item: Box<JournalItem>,
    /// Its reported usage; none if it was reported before a compaction that the record survived.
    pub(super) usage: Option<Usage>,
}

/// A `$set.messages` that replaced messages by a summary.
#[derive(Debug)]
pub(super) struct JournalCompaction {
    /// The id of the summary's record.
    pub(super) summary: Arc<str>,
    pub(super) text: String,
    pub(super) tokens_before: Option<u64>,
}

/// Everything in a session file that the next resume reads.
#[derive(Debug, Default)]
pub(super) struct Journal {
    pub(super) records: Vec<Record>,
    /// (Record, number of blank lines before it in the file), wherever that number grows. Ascending.
    blank_lines: Vec<(u32, u64)>,
    pub(super) notes: Vec<Note>,
    pub(super) entries: Vec<JournalEntry>,
    /// Fields of the session, the last of each name, as JSON.
    pub(super) meta: BTreeMap<String, String>,
    pub(super) compactions: Vec<JournalCompaction>,
    pub(super) times: Option<(i64, i64)>,
    pub(super) cwd: Option<String>,
    /// The model that replied last.
    pub(super) model: Option<Arc<str>>,
    /// In an older session, one JSON document: the range of its `messages`.
    pub(super) document: Option<Range<u64>>,
    /// In a document: the range of its `lastUpdated`.
    pub(super) updated: Option<Range<u64>>,
    ids: HashMap<Arc<str>, u32>,
    id_states: Vec<IdState>,
    /// Ids that were in force at any time since the last compaction.
    in_force_ids: Vec<u32>,
    /// The number of `$set.messages` so far.
    sets: u32,
    /// Tokens of the context after the last reported request.
    last_total: Option<u64>,
    /// Whether the next `$set.messages` is known to be a compaction, without reading what it replaced.
    begins_compacted: bool,
}

/// The state of the records of an id.
#[derive(Debug, Default)]
struct IdState {
    /// Its last index among the entries; another entry may be there by now.
    place: usize,
    /// Whether it was in force since the last compaction.
    in_force: bool,
    /// Whether it survived a compaction.
    stale: bool,
    /// Its reported usage, because a resume writes the record again without it.
    usage: Option<Usage>,
    /// The number of the last `$set.messages` that held it.
    set: u32,
}

impl Journal {
    /// Reads every line, or the one document.
    pub(super) fn of(source: &dyn Source, wanted: Wanted) -> Result<Self> {
        let scan = BackwardScan::through(source, wanted, false)?;
        Self::of_all_lines(source, scan, wanted)
    }

    /// Searches backwards for the newest `$set.messages` that is certainly a compaction, and reads only the
    /// first lines, that one and all that follow; all lines if there is none, or if the file is small.
    ///
    /// It is a compaction if it leaves out a message that was in force just before. Messages that survive one
    /// lose their reported usage, so nothing before it matters.
    pub(super) fn live_part(source: &dyn Source, wanted: Wanted) -> Result<Self> {
        let scan = BackwardScan::through(source, wanted, source.len() > crate::READ_WHOLE_MAX)?;
        let Some(base) = scan.base else { return Self::of_all_lines(source, scan, wanted) };
        let mut journal = Self { begins_compacted: true, ..Self::default() };
        // The first lines give the session's id, directory and start. Notes on them come only from reading
        // all lines.
        let mut first = Self::default();
        first.apply_lines(ParsedLines::of(source, 0..lines::HEAD.min(base), wanted)?, 0);
        (journal.meta, journal.times, journal.cwd) = (first.meta, first.times, first.cwd);
        journal.apply_parts(scan.parts);
        // The model that replied last may only be named before this part.
        if journal.model.is_none() {
            return Self::of(source, wanted);
        }
        if !journal.notes.is_empty() || journal.entries.iter().any(|it| it.item.drafts.is_err()) {
            let by = lines::each_line_in(source, 0..scan.from, |_, _, _| Ok(true))?;
            journal.notes.iter_mut().for_each(|it| it.line += by);
            journal.blank_lines.iter_mut().for_each(|it| it.1 += by);
        }
        Ok(journal)
    }

    fn of_all_lines(source: &dyn Source, scan: BackwardScan, wanted: Wanted) -> Result<Self> {
        let mut journal = Self::default();
        journal.apply_parts(scan.parts);
        // An older session: one object that holds its messages, on one or many lines.
        if journal.is_foreign() || (journal.records.len() == 1 && !journal.entries.is_empty()) {
            let text = source.text(0..source.len())?;
            let text = json::without_byte_order_mark(&text);
            if let Some(found) = Self::of_document(text, source.len() - text.len() as u64, wanted) {
                return Ok(found);
            }
        }
        Ok(journal)
    }

    /// Applies the lines of parts, which come last part first.
    fn apply_parts(&mut self, parts: Vec<ParsedLines>) {
        let mut lines = 0;
        for part in parts.into_iter().rev() {
            let count = part.count;
            self.apply_lines(part, lines);
            lines += count;
        }
        (self.ids, self.id_states, self.in_force_ids) = Default::default();
    }

    /// Applies the lines of a part. `before`: the number of lines before it.
    fn apply_lines(&mut self, part: ParsedLines, before: u64) {
        for (line, record, parsed) in part.lines {
            let number = self.records.len() as u32;
            self.records.push(record);
            let blank = before + line - u64::from(number) - 1;
            if self.blank_lines.last().is_none_or(|it| it.1 < blank) {
                self.blank_lines.push((number, blank));
            }
            if let Err(what) = parsed.and_then(|it| self.apply(it, number)) {
                self.notes.push(Note { line: before + line, what });
            }
        }
    }

    pub(super) fn line_of(&self, record: u32) -> u64 {
        let known = self.blank_lines.partition_point(|it| it.0 <= record);
        let blank = known.checked_sub(1).map_or(0, |it| self.blank_lines[it].1);
        u64::from(record) + 1 + blank
    }

    /// Whether it has no session id: then it is not a session.
    pub(super) fn is_foreign(&self) -> bool {
        !self.meta.contains_key("sessionId")
    }

    fn of_document(text: &str, base: u64, wanted: Wanted) -> Option<Self> {
        let fields = Fields::of(text.trim()).filter(|it| it.text("sessionId").is_some())?;
        let absolute = |part: &str| place(text, part).map(|it| base + it.start as u64..base + it.end as u64);
        let messages = fields.get("messages")?;
        let mut journal = Self { document: absolute(messages), ..Self::default() };
        journal.updated = fields.get("lastUpdated").and_then(absolute);
        journal.set_meta(fields.iter().map(|(name, raw)| (name.to_owned(), raw.to_owned())));
        let mut reader = RecordReader::new(wanted);
        for raw in list(messages)? {
            let at = absolute(raw)?;
            let number = journal.records.len() as u32;
            journal.records.push(Record { at: at.start, len: at.end - at.start });
            let item = reader.message(&mut Cursor::of(raw), at.start)?;
            if let Err(what) = item.and_then(|it| journal.put(Box::new(it), number)) {
                journal.notes.push(Note { line: u64::from(number) + 1, what });
            }
        }
        Some(journal)
    }

    fn apply(&mut self, line: JournalLine, record: u32) -> Result<(), String> {
        match line {
            JournalLine::Message(item) => self.put(item, record),
            JournalLine::Rewind(id) => {
                self.rewind(&id);
                Ok(())
            }
            JournalLine::Set(Set { messages, fields, replaces: true }) => {
                self.set_meta(fields);
                self.replace_all(messages, record)
            }
            JournalLine::Set(Set { messages, fields, replaces: false }) => {
                self.set_meta(fields);
                self.put_all(messages, record)
            }
        }
    }

    fn set_meta(&mut self, fields: impl IntoIterator<Item = (String, String)>) {
        for (name, raw) in fields.into_iter().filter(|(name, _)| name != "messages") {
            if matches!(&*name, "startTime" | "lastUpdated") {
                self.widen_times(text(&raw).and_then(|it| derive::parse_time(&it)));
            }
            self.meta.insert(name, raw);
        }
    }

    fn widen_times(&mut self, at: Option<i64>) {
        let Some(at) = at else { return };
        self.times = derive::widened(self.times, at);
    }

    fn number(&mut self, id: &Arc<str>) -> u32 {
        let next = self.id_states.len() as u32;
        let number = *self.ids.entry(id.clone()).or_insert(next);
        if number == next {
            self.id_states.push(IdState::default());
        }
        number
    }

    /// The index of the entry with this id, if there is one.
    fn place(&self, id: u32) -> Option<usize> {
        let place = self.id_states.get(id as usize)?.place;
        self.entries.get(place).is_some_and(|it| it.id == id).then_some(place)
    }

    /// Adds a message record at the end, or in place of the one with its id.
    fn put(&mut self, mut item: Box<JournalItem>, record: u32) -> Result<(), String> {
        item.record = record;
        let id = item.id.as_ref().ok_or("expected a message record with an id, found none; it is skipped")?;
        let id = self.number(id);
        let place = self.place(id).unwrap_or(self.entries.len());
        self.widen_times(item.time);
        if self.cwd.is_none() {
            self.cwd = item.workspace.take().map(Into::into);
        }
        self.model = item.model.take().or(self.model.take());
        let state = &mut self.id_states[id as usize];
        state.place = place;
        if let Some(reported) = item.reported {
            self.last_total = reported.total;
            state.usage = reported.usage;
        }
        if item.survives_resume && !state.in_force {
            state.in_force = true;
            self.in_force_ids.push(id);
        }
        let usage = state.usage.filter(|_| !state.stale);
        let entry = JournalEntry { id, item, usage };
        match self.entries.get_mut(place) {
            Some(old) => *old = entry,
            None => self.entries.push(entry),
        }
        Ok(())
    }

    /// Adds all valid records; the error is that of the last invalid one.
    fn put_all(&mut self, messages: Vec<ReadItem>, record: u32) -> Result<(), String> {
        let mut all = Ok(());
        for message in messages {
            if let Err(what) = message.and_then(|it| self.put(it, record)) {
                all = Err(what);
            }
        }
        all
    }

    /// Drops a message and all after it; an unknown id drops everything.
    fn rewind(&mut self, id: &str) {
        let from = self.ids.get(id).and_then(|it| self.place(*it)).unwrap_or(0);
        for gone in self.entries.drain(from..) {
            self.id_states[gone.id as usize].in_force = false;
        }
    }

    /// `$set.messages`: each resume writes first only the session's context, then all messages again; a
    /// compression writes those that are left.
    fn replace_all(&mut self, messages: Vec<ReadItem>, record: u32) -> Result<(), String> {
        self.sets += 1;
        let items = || messages.iter().filter_map(|it| it.as_deref().ok());
        let only_context = items().all(|it| it.context);
        let ids: Vec<Option<u32>> = items().map(|it| Some(self.number(it.id.as_ref()?))).collect();
        for id in ids.iter().flatten() {
            self.id_states[*id as usize].set = self.sets;
        }
        let begins = std::mem::take(&mut self.begins_compacted);
        let left_out = |it: &u32| {
            let state = &self.id_states[*it as usize];
            state.in_force && state.set != self.sets
        };
        let shrinks = begins || (!only_context && self.in_force_ids.iter().any(left_out));
        if shrinks {
            let is_new = |id: &Option<u32>| id.is_some_and(|it| !self.id_states[it as usize].in_force);
            let summary = items().zip(&ids).filter(|(_, id)| is_new(id));
            let summary = summary.filter_map(|(it, _)| Some((it.id.clone()?, it.summary.as_deref()?))).next();
            self.compactions.extend(summary.map(|(summary, text)| JournalCompaction {
                summary,
                text: text.to_owned(),
                tokens_before: self.last_total,
            }));
            for id in ids.into_iter().flatten() {
                self.id_states[id as usize].stale = true;
            }
            for id in self.in_force_ids.drain(..) {
                self.id_states[id as usize].in_force = false;
            }
        }
        self.entries.clear();
        self.put_all(messages, record)
    }
}

/// The lines of a source, read backwards from its end.
#[derive(Default)]
struct BackwardScan {
    /// The last part first.
    parts: Vec<ParsedLines>,
    /// Where the earliest part begins.
    from: u64,
    /// The position of the compaction that ended the search; the parts hold nothing before it.
    base: Option<u64>,
    /// The next `$set.messages` after the current line: its position, and the ids that it puts in force.
    pending: Option<(u64, HashSet<Arc<str>>)>,
    /// Ids that have a later record, which replaces all earlier ones.
    later: HashSet<Arc<str>>,
    /// Whether a later `$set.messages` replaces all earlier records.
    replaced: bool,
}

impl BackwardScan {
    /// Reads everything, on all cores, or with `to_compaction` only back to the newest compaction.
    fn through(source: &dyn Source, wanted: Wanted, to_compaction: bool) -> Result<Self> {
        let mut all = Self::default();
        let parse = |range| ParsedLines::of(source, range, wanted);
        all.from = lines::backwards(source, parse, |mut part: ParsedLines, _| {
            let ended = all.scan_part(&mut part, to_compaction);
            all.parts.push(part);
            !ended
        })?;
        if let Some(base) = all.base {
            all.parts.iter_mut().for_each(|it| it.lines.retain(|(_, record, _)| record.at >= base));
        }
        Ok(all)
    }

    /// Drops records that later ones replace. With `to_compaction`, returns whether the newest compaction was
    /// found: it is the new beginning.
    fn scan_part(&mut self, part: &mut ParsedLines, to_compaction: bool) -> bool {
        for index in (0..part.lines.len()).rev() {
            let (_, record, Ok(line)) = &mut part.lines[index] else { continue };
            let at = record.at;
            if to_compaction
                && let Some((base, ids)) = &self.pending
                && line
                    .items()
                    .any(|it| it.survives_resume && it.id.as_ref().is_some_and(|id| !ids.contains(id)))
            {
                self.base = Some(*base);
                return true;
            }
            for item in line.items_mut().rev() {
                let new = item.id.as_ref().is_some_and(|id| self.later.insert(id.clone()));
                if self.replaced || !new {
                    item.drafts = Ok(Vec::new());
                }
            }
            match line {
                JournalLine::Rewind(_) => self.pending = None,
                JournalLine::Set(Set { replaces: true, .. }) => {
                    self.replaced = true;
                    if to_compaction && !line.items().all(|it| it.context) {
                        self.pending = Some((at, line.items().filter_map(|it| it.id.clone()).collect()));
                    }
                }
                JournalLine::Message(_) | JournalLine::Set(_) => {}
            }
        }
        false
    }
}
