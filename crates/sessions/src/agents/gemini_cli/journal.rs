//! The journal: which message records are in force after every `$set`, `$rewindTo` and replacement by id.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use foldhash::{HashMap, HashSet};

use super::line::{JournalLine, ReadItem, Seen, Set};
use super::part::{RecordReader, Wanted};
use super::record::JournalItem;
use crate::parse::cursor::Cursor;
use crate::parse::lines;
use crate::parse::raw::{Fields, list, place, text};
use crate::{Note, Record, Source, derive};
use history::Usage;
use history::error::Result;

/// A message record in force.
#[derive(Debug)]
pub(super) struct JournalEntry {
    /// The number of its id.
    id: u32,
    pub(super) item: Box<JournalItem>,
    /// What was reported with it; not if that was before a compaction that it survived.
    pub(super) usage: Option<Usage>,
}

/// A `$set.messages` that put a summary in the place of messages.
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
    /// Lines before a record that hold none, from that record on. Rising.
    blank_lines: Vec<(u32, u64)>,
    pub(super) notes: Vec<Note>,
    pub(super) entries: Vec<JournalEntry>,
    /// Fields of the session, the last of each name, as JSON.
    pub(super) meta: BTreeMap<String, String>,
    pub(super) compactions: Vec<JournalCompaction>,
    pub(super) times: Option<(i64, i64)>,
    pub(super) cwd: Option<String>,
    /// The model that answered last.
    pub(super) model: Option<Arc<str>>,
    /// An older session: one JSON document. Where its `messages` stand.
    pub(super) document: Option<Range<u64>>,
    /// Where the `lastUpdated` of a document stands.
    pub(super) updated: Option<Range<u64>>,
    ids: HashMap<Arc<str>, u32>,
    /// What is known of each id.
    known: Vec<Known>,
    /// Ids that were kept since the last compaction, also those that are no longer.
    seen: Vec<u32>,
    /// How many `$set.messages` there were.
    sets: u32,
    /// The context after the last request that was reported.
    last_total: Option<u64>,
    /// The first `$set.messages` to come is known to be a compaction, though what it replaced was not looked at.
    begins_compacted: bool,
}

/// What is known of the records of an id.
#[derive(Debug, Default)]
struct Known {
    /// Where it stood last among the entries; others may stand there by now.
    place: usize,
    /// In force since the last `$set.messages` that held more than the session's context.
    seen: bool,
    /// It survived a compaction.
    stale: bool,
    /// What was reported with it: a resume writes it down again without that.
    usage: Option<Usage>,
    /// The last `$set.messages` that held it.
    set: u32,
}

impl Journal {
    /// Looks at every line, or at the one document.
    pub(super) fn of(source: &dyn Source, wanted: Wanted) -> Result<Self> {
        let seen = Backwards::through(source, wanted, false)?;
        Self::whole(source, seen, wanted)
    }

    /// Looks from the end backwards for the newest `$set.messages` that surely is a compaction, and then only at the
    /// first lines, at that one and at all that follow; at all if there is none, or the file is small.
    ///
    /// It is a compaction if it leaves out a message that was in force just before. What survives one has lost what was
    /// reported for it, so that nothing before it matters.
    pub(super) fn live_part(source: &dyn Source, wanted: Wanted) -> Result<Self> {
        let seen = Backwards::through(source, wanted, source.len() > crate::LOOKED_AT_WHOLE)?;
        let Some(base) = seen.base else { return Self::whole(source, seen, wanted) };
        let mut journal = Self { begins_compacted: true, ..Self::default() };
        // The first lines say which session it is, where, and since when. What is wrong with them is found where all
        // lines are looked at.
        let mut first = Self::default();
        first.take(Seen::of(source, 0..lines::HEAD.min(base), wanted)?, 0);
        (journal.meta, journal.times, journal.cwd) = (first.meta, first.times, first.cwd);
        journal.take_all(seen.parts);
        // The model that answered last, which may stand before this part.
        if journal.model.is_none() {
            return Self::of(source, wanted);
        }
        if !journal.notes.is_empty() || journal.entries.iter().any(|it| it.item.drafts.is_err()) {
            let by = lines::each_line_in(source, 0..seen.from, |_, _, _| Ok(true))?;
            journal.notes.iter_mut().for_each(|it| it.line += by);
            journal.blank_lines.iter_mut().for_each(|it| it.1 += by);
        }
        Ok(journal)
    }

    fn whole(source: &dyn Source, seen: Backwards, wanted: Wanted) -> Result<Self> {
        let mut journal = Self::default();
        journal.take_all(seen.parts);
        // One object that holds its messages, on one line or many.
        if journal.is_foreign() || (journal.records.len() == 1 && !journal.entries.is_empty()) {
            let text = source.text(0..source.len())?;
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
            if let Some(found) = Self::of_document(text, source.len() - text.len() as u64, wanted) {
                return Ok(found);
            }
        }
        Ok(journal)
    }

    /// What the lines of parts say, the last part first.
    fn take_all(&mut self, parts: Vec<Seen>) {
        let mut lines = 0;
        for part in parts.into_iter().rev() {
            let these = part.lines;
            self.take(part, lines);
            lines += these;
        }
        (self.ids, self.known, self.seen) = Default::default();
    }

    /// What the lines of a part say. `before`: number of lines in front of it.
    fn take(&mut self, part: Seen, before: u64) {
        for (line, record, said) in part.said {
            let number = self.records.len() as u32;
            self.records.push(record);
            let blank = before + line - u64::from(number) - 1;
            if self.blank_lines.last().is_none_or(|it| it.1 < blank) {
                self.blank_lines.push((number, blank));
            }
            if let Err(what) = said.and_then(|it| self.apply(it, number)) {
                self.notes.push(Note { line: before + line, what });
            }
        }
    }

    pub(super) fn line_of(&self, record: u32) -> u64 {
        let known = self.blank_lines.partition_point(|it| it.0 <= record);
        let blank = known.checked_sub(1).map_or(0, |it| self.blank_lines[it].1);
        u64::from(record) + 1 + blank
    }

    /// Whether nothing in it says which session it is: then it is none.
    pub(super) fn is_foreign(&self) -> bool {
        !self.meta.contains_key("sessionId")
    }

    fn of_document(text: &str, base: u64, wanted: Wanted) -> Option<Self> {
        let fields = Fields::of(text.trim()).filter(|it| it.text("sessionId").is_some())?;
        let absolute = |part: &str| place(text, part).map(|it| base + it.start as u64..base + it.end as u64);
        let messages = fields.get("messages")?;
        let mut journal = Self { document: absolute(messages), ..Self::default() };
        journal.updated = fields.get("lastUpdated").and_then(absolute);
        journal.know(fields.iter().map(|(name, raw)| (name.to_owned(), raw.to_owned())));
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
                self.know(fields);
                self.replace_all(messages, record)
            }
            JournalLine::Set(Set { messages, fields, replaces: false }) => {
                self.know(fields);
                self.put_all(messages, record)
            }
        }
    }

    fn know(&mut self, fields: impl IntoIterator<Item = (String, String)>) {
        for (name, raw) in fields.into_iter().filter(|(name, _)| name != "messages") {
            if matches!(&*name, "startTime" | "lastUpdated") {
                self.time(text(&raw).and_then(|it| derive::parse_time(&it)));
            }
            self.meta.insert(name, raw);
        }
    }

    fn time(&mut self, at: Option<i64>) {
        let Some(at) = at else { return };
        self.times = derive::widened(self.times, at);
    }

    fn number(&mut self, id: &Arc<str>) -> u32 {
        let next = self.known.len() as u32;
        let number = *self.ids.entry(id.clone()).or_insert(next);
        if number == next {
            self.known.push(Known::default());
        }
        number
    }

    /// Where the entry of an id stands, if there is one.
    fn place(&self, id: u32) -> Option<usize> {
        let place = self.known.get(id as usize)?.place;
        self.entries.get(place).is_some_and(|it| it.id == id).then_some(place)
    }

    /// A message record: new at the end, or in the place of the one with its id.
    fn put(&mut self, mut item: Box<JournalItem>, record: u32) -> Result<(), String> {
        item.record = record;
        let id = item.id.as_ref().ok_or("expected a message record with an id, found none; it is skipped")?;
        let id = self.number(id);
        let place = self.place(id).unwrap_or(self.entries.len());
        self.time(item.time);
        if self.cwd.is_none() {
            self.cwd = item.workspace.take().map(Into::into);
        }
        self.model = item.model.take().or(self.model.take());
        let known = &mut self.known[id as usize];
        known.place = place;
        if let Some(reported) = item.reported {
            self.last_total = reported.total;
            known.usage = reported.usage;
        }
        if item.kept && !known.seen {
            known.seen = true;
            self.seen.push(id);
        }
        let usage = known.usage.filter(|_| !known.stale);
        let entry = JournalEntry { id, item, usage };
        match self.entries.get_mut(place) {
            Some(old) => *old = entry,
            None => self.entries.push(entry),
        }
        Ok(())
    }

    /// All that can be put are; what is wrong with the last of the others.
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
            self.known[gone.id as usize].seen = false;
        }
    }

    /// `$set.messages`: at each resume first only the session's context, then all again; after a compression what is
    /// left.
    fn replace_all(&mut self, messages: Vec<ReadItem>, record: u32) -> Result<(), String> {
        self.sets += 1;
        let items = || messages.iter().filter_map(|it| it.as_deref().ok());
        let only_context = items().all(|it| it.context);
        let ids: Vec<Option<u32>> = items().map(|it| Some(self.number(it.id.as_ref()?))).collect();
        for id in ids.iter().flatten() {
            self.known[*id as usize].set = self.sets;
        }
        let begins = std::mem::take(&mut self.begins_compacted);
        let left_out = |it: &u32| {
            let known = &self.known[*it as usize];
            known.seen && known.set != self.sets
        };
        let shrinks = begins || (!only_context && self.seen.iter().any(left_out));
        if shrinks {
            let is_new = |id: &Option<u32>| id.is_some_and(|it| !self.known[it as usize].seen);
            let summary = items().zip(&ids).filter(|(_, id)| is_new(id));
            let summary = summary.filter_map(|(it, _)| Some((it.id.clone()?, it.summary.as_deref()?))).next();
            self.compactions.extend(summary.map(|(summary, text)| JournalCompaction {
                summary,
                text: text.to_owned(),
                tokens_before: self.last_total,
            }));
            for id in ids.into_iter().flatten() {
                self.known[id as usize].stale = true;
            }
            for id in self.seen.drain(..) {
                self.known[id as usize].seen = false;
            }
        }
        self.entries.clear();
        self.put_all(messages, record)
    }
}

/// The lines of a source, looked at from its end backwards.
#[derive(Default)]
struct Backwards {
    /// The last part first.
    parts: Vec<Seen>,
    /// How far it got.
    from: u64,
    /// Where the compaction stands that ended the search; nothing before it is in the parts.
    base: Option<u64>,
    /// The last `$set.messages` before the lines behind, and the ids that it puts in force.
    pending: Option<(u64, HashSet<Arc<str>>)>,
    /// Ids of records that stand in the place of all earlier ones of that id.
    later: HashSet<Arc<str>>,
    /// A `$set.messages` stands in the place of all earlier records.
    replaced: bool,
}

impl Backwards {
    /// Reads all of it, on all cores, or, if asked, only back to the newest compaction.
    fn through(source: &dyn Source, wanted: Wanted, to_compaction: bool) -> Result<Self> {
        let mut all = Self::default();
        let look = |range| Seen::of(source, range, wanted);
        all.from = lines::backwards(source, look, |mut part: Seen, _| {
            let ended = all.look(&mut part, to_compaction);
            all.parts.push(part);
            !ended
        })?;
        if let Some(base) = all.base {
            all.parts.iter_mut().for_each(|it| it.said.retain(|(_, record, _)| record.at >= base));
        }
        Ok(all)
    }

    /// Drops records that later ones replace. With `to_compaction`, whether the newest compaction was found: the
    /// part then begins with it.
    fn look(&mut self, part: &mut Seen, to_compaction: bool) -> bool {
        for index in (0..part.said.len()).rev() {
            let (_, record, Ok(line)) = &mut part.said[index] else { continue };
            let at = record.at;
            if to_compaction
                && let Some((base, ids)) = &self.pending
                && line.items().any(|it| it.kept && it.id.as_ref().is_some_and(|id| !ids.contains(id)))
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
