//! Which rows are live: the tree, its leaf, and the path that the client would send.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use memchr::memmem;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer};
use serde_json::value::RawValue;

use super::read::{Loaded, load, said};
use super::{ROW_TYPES, SIDE_TYPES, fast};
use crate::error::Result;
use crate::format::lines::{HEAD, backwards, each_line_in};
use crate::format::{Keep, LOOKED_AT_WHOLE, Note, Record, Source, derive};
use crate::json;

/// What of a line decides about its place. A field of the wrong type counts as missing.
#[derive(Deserialize, Default)]
pub(super) struct Line<'a> {
    #[serde(rename = "type", default, deserialize_with = "lenient")]
    pub(super) kind: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) uuid: Option<String>,
    #[serde(rename = "parentUuid", default, deserialize_with = "lenient")]
    pub(super) parent: Option<String>,
    #[serde(rename = "sourceToolAssistantUUID", default, deserialize_with = "lenient")]
    pub(super) answers: Option<String>,
    #[serde(rename = "isSidechain", default, deserialize_with = "lenient")]
    pub(super) sidechain: Option<bool>,
    #[serde(rename = "isMeta", default, deserialize_with = "lenient")]
    pub(super) meta: Option<bool>,
    #[serde(rename = "isCompactSummary", default, deserialize_with = "lenient")]
    pub(super) summary: Option<bool>,
    #[serde(rename = "isApiErrorMessage", default, deserialize_with = "lenient")]
    pub(super) api_error: Option<bool>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) subtype: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) timestamp: Option<String>,
    #[serde(rename = "sessionId", default, deserialize_with = "lenient")]
    pub(super) session: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) cwd: Option<String>,
    #[serde(rename = "leafUuid", default, deserialize_with = "lenient")]
    pub(super) leaf: Option<String>,
    #[serde(rename = "compactMetadata", default, deserialize_with = "lenient")]
    pub(super) compact: Option<Box<Compact>>,
    #[serde(borrow, default)]
    pub(super) message: Option<&'a RawValue>,
}

/// `compactMetadata` of a boundary.
#[derive(Deserialize, Default)]
pub(super) struct Compact {
    #[serde(default, deserialize_with = "lenient")]
    pub(super) trigger: Option<String>,
    #[serde(rename = "preTokens", default, deserialize_with = "lenient")]
    pub(super) before: Option<u64>,
    #[serde(rename = "postTokens", default, deserialize_with = "lenient")]
    pub(super) after: Option<u64>,
    #[serde(rename = "preservedSegment", default, deserialize_with = "lenient")]
    segment: Option<Segment>,
    #[serde(rename = "preservedMessages", default, deserialize_with = "lenient")]
    kept: Option<Kept>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Segment {
    head_uuid: String,
    anchor_uuid: String,
    tail_uuid: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    anchor_uuid: String,
    uuids: Vec<String>,
}

/// Takes whatever stands there, and makes nothing of what is of another type.
pub(super) fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    from: D,
) -> Result<Option<T>, D::Error> {
    let raw = <&RawValue>::deserialize(from)?;
    Ok(serde_json::from_str(raw.get()).ok())
}

/// What of a row decides about its place.
#[derive(Default)]
pub(super) struct Place<'a> {
    pub(super) kind: RowKind,
    pub(super) uuid: Cow<'a, str>,
    pub(super) parent: Option<Cow<'a, str>>,
    pub(super) answers: Option<Cow<'a, str>>,
    pub(super) sidechain: bool,
    pub(super) response: Option<Cow<'a, str>>,
    pub(super) at: Option<i64>,
    pub(super) session: Option<Cow<'a, str>>,
    pub(super) cwd: Option<Cow<'a, str>>,
    pub(super) compact: Option<Box<Compact>>,
}

/// What a row is, as far as the tree is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum RowKind {
    /// The user's, or the client's in the user's place.
    User { meta: bool, summary: bool, result: bool },
    /// One block of a response, or all of it.
    Assistant { api_error: bool },
    /// Text that the client adds.
    Attachment,
    /// A command that ran in the client, sent as the user's.
    LocalCommand,
    /// Where a compaction cut.
    Boundary,
    /// Anything else that others hang on.
    #[default]
    Link,
}

/// A row of the tree.
pub(super) struct Row {
    pub(super) record: u32,
    pub(super) line: u64,
    pub(super) kind: RowKind,
    pub(super) uuid: Arc<str>,
    parent: Option<Arc<str>>,
    answers: Option<Arc<str>>,
    sidechain: bool,
    /// `message.id` of an assistant's row; one without is a response of its own.
    pub(super) response: Option<Arc<str>>,
    pub(super) at: Option<i64>,
    pub(super) cwd: Option<Arc<str>>,
    pub(super) compact: Option<Box<Compact>>,
    /// What it says, where that was kept while the line was looked at.
    pub(super) loaded: Option<Box<Result<Loaded, String>>>,
}

/// All lines, of which the rows are known by their place in the tree.
#[derive(Default)]
pub(super) struct Index {
    pub(super) records: Vec<Record>,
    pub(super) notes: Vec<Note>,
    pub(super) rows: Vec<Row>,
    pub(super) session: Option<Arc<str>>,
    pub(super) times: Option<(i64, i64)>,
    /// Whether any line was one of Claude Code's.
    pub(super) known: bool,
    /// The last `last-prompt`: what it points at, how many rows came before it, its line.
    pointer: Option<(Arc<str>, usize, u64)>,
    /// All lines, blank ones too.
    lines: u64,
}

impl Index {
    /// Looks at the lines from the last one backwards, on all cores: at all of them, or at no more than the chain depends
    /// on and at the first (or at all if they are few).
    ///
    /// What rows say is read with them as far back as the chain is likely to lead: to the last place where a compaction
    /// cut. Rows before it that it leads to all the same are left to be read once more.
    pub(super) fn of(source: &dyn Source, keep: &Keep, all: bool) -> Result<Self> {
        let mut parts: Vec<Self> = Vec::new();
        let bounded = AtomicBool::new(false);
        let all = all || source.len() <= LOOKED_AT_WHOLE;
        let look = |range| Self::within(source, range, Some(keep).filter(|_| !bounded.load(Relaxed)));
        // Where it was last asked whether they are enough: again when there is a quarter more.
        let mut asked = source.len();
        let from = backwards(source, look, |part, from| {
            let behind = source.len() - from;
            bounded.fetch_or(part.boundary().is_some(), Relaxed);
            parts.push(part);
            if all || !bounded.load(Relaxed) || (source.len() - asked) * 5 > behind * 4 {
                return true;
            }
            asked = from;
            parts = vec![Self::joined(std::mem::take(&mut parts))];
            !parts[0].is_enough()
        })?;
        let mut index = Self::joined(parts);
        if from == 0 {
            return Ok(index.without_sidechains());
        }
        // The first time is the earliest of the first rows, which are not quite in order.
        let first = Self::within(source, 0..HEAD.min(from), None)?;
        let lines =
            if index.notes.is_empty() { 0 } else { each_line_in(source, 0..from, |_, _, _| Ok(true))? };
        index = Self::joined(vec![index, Self { times: first.times, lines, ..Self::default() }]);
        Ok(index)
    }

    /// Looks at the lines that begin in a range; with `keep`, what rows say is read, and kept as that leaves it.
    fn within(source: &dyn Source, range: Range<u64>, keep: Option<&Keep>) -> Result<Self> {
        let mut index = Self::default();
        let mut held = fast::Held::default();
        let mut model: Option<Arc<str>> = None;
        index.lines = each_line_in(source, range, |number, record, bytes| {
            let at = index.records.len() as u32;
            index.records.push(record);
            let keep_here = |text: &str, keep: &Keep| keep(text, record.at).unwrap_or_else(|| text.into());
            let make = keep.map(|keep| move |text: &str| keep_here(text, keep));
            let mut reader = fast::Reader { keep: make.as_ref().map(|it| it as _), held: &mut held };
            // What has to be mended first is not usual.
            if let Some(it) = std::str::from_utf8(bytes).ok().and_then(|it| reader.look(it)) {
                index.place(number, at, it.place);
                if let (Some(row), true) = (index.rows.last_mut(), keep.is_some()) {
                    let answered = shared(it.said.model.as_deref(), model.as_ref());
                    row.loaded = Some(Box::new(Ok(said(row, it.said, answered.clone()))));
                    model = answered.or(model.take());
                }
                return Ok(true);
            }
            let rows = index.rows.len();
            let text = json::mend(bytes);
            if let Err(what) = index.take(number, at, &text) {
                index.notes.push(Note { line: number, what });
            }
            if let (Some(row), Some(keep)) = (index.rows.get_mut(rows), keep) {
                row.loaded = Some(Box::new(load(row, &text, keep, record.at)));
            }
            Ok(true)
        })?;
        Ok(index)
    }

    /// The last place where a compaction cut.
    fn boundary(&self) -> Option<usize> {
        self.rows.iter().rposition(|it| it.kind == RowKind::Boundary && !it.sidechain)
    }

    /// Whether nothing before it can change what is live: behind the last boundary everything hangs together, what that
    /// boundary preserves is there, and so is what is told of the session.
    fn is_enough(&self) -> bool {
        let Some(boundary) = self.boundary() else { return false };
        let Some(compact) = &self.rows[boundary].compact else { return false };
        let by_uuid: HashMap<&str, &Row> = self.rows.iter().map(|it| (&*it.uuid, it)).collect();
        let there = |uuid: &str| by_uuid.contains_key(uuid);
        let hangs = |row: &Row| row.parent.as_deref().is_none_or(there);
        let preserved = match (&compact.kept, &compact.segment) {
            (Some(kept), _) => there(&kept.anchor_uuid) && kept.uuids.iter().all(|it| there(it)),
            (None, Some(segment)) => {
                let mut at = by_uuid.get(segment.tail_uuid.as_str());
                let mut steps = 0;
                while let Some(row) =
                    at.filter(|it| *it.uuid != *segment.head_uuid && steps < self.rows.len())
                {
                    at = row.parent.as_deref().and_then(|it| by_uuid.get(it));
                    steps += 1;
                }
                at.is_some() && there(&segment.anchor_uuid)
            }
            (None, None) => true,
        };
        let pointed = match &self.pointer {
            Some((leaf, before, _)) if boundary < *before => there(leaf),
            Some(_) | None => true,
        };
        let behind = || self.rows[boundary..].iter().filter(|it| !it.sidechain);
        preserved
            && pointed
            && self.session.is_some()
            && behind().all(hangs)
            && behind().any(|it| it.at.is_some())
    }

    /// Parts of one file, the last one first, as one.
    fn joined(parts: Vec<Self>) -> Self {
        let mut parts = parts.into_iter().rev();
        let mut all = parts.next().unwrap_or_default();
        for part in parts {
            let (records, rows, lines) = (all.records.len() as u32, all.rows.len(), all.lines);
            all.records.extend(part.records);
            all.notes.extend(part.notes.into_iter().map(|it| Note { line: it.line + lines, ..it }));
            all.rows.extend(part.rows.into_iter().map(|it| Row {
                record: it.record + records,
                line: it.line + lines,
                ..it
            }));
            all.session = part.session.or(all.session);
            if let Some((from, to)) = part.times {
                all.time(from);
                all.time(to);
            }
            all.known |= part.known;
            if let Some((leaf, before, line)) = part.pointer {
                all.pointer = Some((leaf, before + rows, line + lines));
            }
            all.lines += part.lines;
        }
        all
    }

    /// A sub-agent's file is nothing but sidechain: there it is the chain.
    fn without_sidechains(mut self) -> Self {
        if self.rows.iter().all(|it| it.sidechain) {
            self.rows.iter_mut().for_each(|it| it.sidechain = false);
        }
        self
    }

    fn time(&mut self, at: i64) {
        let (first, last) = self.times.unwrap_or((at, at));
        self.times = Some((first.min(at), last.max(at)));
    }

    fn take(&mut self, number: u64, record: u32, text: &str) -> Result<(), String> {
        if !text.starts_with('{') {
            let found: String = text.chars().take(20).collect();
            return Err(format!("expected a JSON object, found {found:?}; not used"));
        }
        let line: Line =
            serde_json::from_str(text).map_err(|it| format!("expected a JSON object: {it}; not used"))?;
        let Some(kind) = line.kind.as_deref() else {
            return Err("expected a type, found none; not used".into());
        };
        if !ROW_TYPES.contains(&kind) && line.uuid.is_none() {
            if kind == "last-prompt"
                && let Some(leaf) = line.leaf
            {
                self.pointer = Some((leaf.into(), self.rows.len(), number));
            }
            if !SIDE_TYPES.contains(&kind) {
                return Err(format!("unknown type {kind:?}; not used"));
            }
            self.known = true;
            self.session = shared(line.session.as_deref(), self.session.as_ref()).or(self.session.take());
            return Ok(());
        }
        let Some(uuid) = line.uuid else {
            return Err(format!("expected a uuid on {kind:?}, found none; not used"));
        };
        let message = line.message.map_or("", RawValue::get);
        #[derive(Deserialize)]
        struct Id {
            #[serde(default, deserialize_with = "lenient")]
            id: Option<String>,
        }
        let response = if kind == "assistant" { serde_json::from_str::<Id>(message).ok() } else { None };
        let kind = match (kind, line.subtype.as_deref()) {
            ("user", _) => RowKind::User {
                meta: line.meta == Some(true),
                summary: line.summary == Some(true),
                result: memmem::find(message.as_bytes(), b"\"tool_result\"").is_some(),
            },
            ("assistant", _) => RowKind::Assistant { api_error: line.api_error == Some(true) },
            ("attachment", _) => RowKind::Attachment,
            ("system", Some("local_command")) => RowKind::LocalCommand,
            ("system", Some("compact_boundary")) => RowKind::Boundary,
            _ => RowKind::Link,
        };
        let place = Place {
            kind,
            uuid: uuid.into(),
            parent: line.parent.map(Cow::Owned),
            answers: line.answers.map(Cow::Owned),
            sidechain: line.sidechain == Some(true),
            response: response.and_then(|it| it.id).map(Cow::Owned),
            at: line.timestamp.as_deref().and_then(derive::parse_time),
            session: line.session.map(Cow::Owned),
            cwd: line.cwd.map(Cow::Owned),
            compact: line.compact,
        };
        self.place(number, record, place);
        Ok(())
    }

    /// Puts a row into the tree.
    fn place(&mut self, line: u64, record: u32, place: Place<'_>) {
        self.known = true;
        let session = shared(place.session.as_deref(), self.session.as_ref());
        self.session = session.or_else(|| self.session.take());
        if let Some(at) = place.at {
            self.time(at);
        }
        // Most rows are of the same directory and response as the one before, and hang on it.
        let before = self.rows.last();
        let known = |of: fn(&Row) -> Option<&Arc<str>>| before.and_then(of);
        let uuid: Arc<str> = (&*place.uuid).into();
        let response = match place.kind {
            RowKind::Assistant { .. } => {
                let response = shared(place.response.as_deref(), known(|it| it.response.as_ref()));
                Some(response.unwrap_or_else(|| uuid.clone()))
            }
            RowKind::User { .. }
            | RowKind::Attachment
            | RowKind::LocalCommand
            | RowKind::Boundary
            | RowKind::Link => None,
        };
        self.rows.push(Row {
            record,
            line,
            kind: place.kind,
            parent: shared(place.parent.as_deref(), known(|it| Some(&it.uuid))),
            answers: shared(place.answers.as_deref(), known(|it| Some(&it.uuid))),
            sidechain: place.sidechain,
            response,
            at: place.at,
            cwd: shared(place.cwd.as_deref(), known(|it| it.cwd.as_ref())),
            compact: place.compact,
            loaded: None,
            uuid,
        });
    }

    /// The numbers of the live rows in the order in which the client goes through them.
    ///
    /// - The path ends in the newest descendant of what the last `last-prompt` points at, else in the last row. A
    ///   boundary that comes after the pointer makes it void. The order of the file counts, never the time stamps.
    /// - It leads over `parentUuid` alone, so that it stops at a boundary; `logicalParentUuid` is not followed.
    /// - Rows that the last boundary preserves stand behind their anchor.
    /// - Parallel calls are a tree: the rest of a response on the path, and the results of its calls, are put back.
    ///
    /// Where no row hangs on another, there is no tree (files made by other tools): all rows in their order.
    pub(super) fn live(&mut self) -> Vec<usize> {
        // Of several rows with one uuid the last counts.
        let by_uuid: HashMap<&str, usize> =
            self.rows.iter().enumerate().map(|(at, it)| (&*it.uuid, at)).collect();
        let find = |uuid: &Option<Arc<str>>| uuid.as_ref().and_then(|it| by_uuid.get(&**it)).copied();
        // Most rows hang on the one before, whose uuid they then share.
        let unique = by_uuid.len() == self.rows.len();
        let mut parents: Vec<Option<usize>> = Vec::with_capacity(self.rows.len());
        for (at, row) in self.rows.iter().enumerate() {
            let before = at.checked_sub(1).filter(|_| unique);
            let on_it =
                |it: &usize| row.parent.as_ref().is_some_and(|of| Arc::ptr_eq(of, &self.rows[*it].uuid));
            parents.push(before.filter(on_it).or_else(|| find(&row.parent)));
        }

        let main: Vec<usize> = (0..self.rows.len()).filter(|it| !self.rows[*it].sidechain).collect();
        if main.len() > 1 && main.iter().all(|it| parents[*it].is_none() && self.rows[*it].compact.is_none())
        {
            let what = "expected parentUuid to link the rows, found none that does; their order in the file is taken".into();
            let line = self.rows[main[0]].line;
            self.notes.push(Note { line, what });
            return main;
        }
        let boundary = self.boundary();
        let kept = boundary.and_then(|it| self.relink(it, &by_uuid, &mut parents));
        let pointed = match &self.pointer {
            Some((leaf, before, line)) if boundary.is_none_or(|it| it < *before) => {
                let found = by_uuid.get(&**leaf).copied();
                if found.is_none() {
                    let what = "expected leafUuid to name a row, found none; the last row is taken".into();
                    self.notes.push(Note { line: *line, what });
                }
                found
            }
            _ => None,
        };
        // The client does not take a row without a time for a leaf.
        let main = if main.iter().any(|it| self.rows[*it].at.is_some()) {
            main.into_iter().filter(|it| self.rows[*it].at.is_some()).collect()
        } else {
            main
        };
        let leaf = match pointed {
            Some(start) => {
                let below = descendants(start, &parents);
                main.iter().rev().copied().find(|it| below[*it]).or(Some(start))
            }
            None => main.last().copied(),
        };

        let (mut path, mut seen) = (Vec::new(), vec![false; self.rows.len()]);
        let mut next = leaf;
        while let Some(at) = next
            && !seen[at]
        {
            seen[at] = true;
            path.push(at);
            next = parents[at];
        }
        path.reverse();
        // Once the client has relinked what it preserves, it forgets the other rows before the boundary.
        let forgotten = |at: usize| match (&kept, boundary) {
            (Some(kept), Some(boundary)) => at < boundary && !kept.contains(&at),
            _ => false,
        };
        let off = |at: &usize| {
            let row = &self.rows[*at];
            !seen[*at] && !row.sidechain && !forgotten(*at) && by_uuid.get(&*row.uuid) == Some(at)
        };
        let off: Vec<usize> = (0..self.rows.len()).filter(off).collect();
        if off.is_empty() {
            return path;
        }
        let mut place: HashMap<&str, usize> = HashMap::new();
        for (position, &at) in path.iter().enumerate() {
            if let Some(response) = &self.rows[at].response {
                place.insert(response, position);
            }
        }
        let mut put_back: HashMap<usize, Vec<usize>> = HashMap::new();
        for at in off {
            let row = &self.rows[at];
            let response = match row.kind {
                RowKind::Assistant { .. } => row.response.as_deref(),
                RowKind::User { result: true, .. } => find(&row.answers)
                    .or_else(|| find(&row.parent))
                    .and_then(|it| self.rows[it].response.as_deref()),
                RowKind::User { .. }
                | RowKind::Attachment
                | RowKind::LocalCommand
                | RowKind::Boundary
                | RowKind::Link => None,
            };
            if let Some(position) = response.and_then(|it| place.get(it)) {
                put_back.entry(*position).or_default().push(at);
            }
        }
        let mut out = Vec::with_capacity(path.len());
        for (position, at) in path.into_iter().enumerate() {
            out.push(at);
            out.extend(put_back.remove(&position).unwrap_or_default());
        }
        out
    }

    /// Hangs what a boundary preserves behind its anchor, and what hung on the anchor behind that. Nothing if it
    /// preserves nothing, or a row that is not there.
    fn relink(
        &self,
        boundary: usize,
        by_uuid: &HashMap<&str, usize>,
        parents: &mut [Option<usize>],
    ) -> Option<HashSet<usize>> {
        let compact = self.rows[boundary].compact.as_ref()?;
        let find = |uuid: &String| by_uuid.get(uuid.as_str()).copied();
        let (anchor, kept) = match (&compact.kept, &compact.segment) {
            (Some(kept), _) => {
                (find(&kept.anchor_uuid)?, kept.uuids.iter().map(find).collect::<Option<Vec<_>>>()?)
            }
            (None, Some(segment)) => {
                let (head, mut at) = (find(&segment.head_uuid)?, find(&segment.tail_uuid)?);
                let (mut kept, mut seen) = (vec![at], HashSet::from([at]));
                while at != head {
                    at = parents[at]?;
                    if !seen.insert(at) {
                        return None;
                    }
                    kept.push(at);
                }
                kept.reverse();
                (find(&segment.anchor_uuid)?, kept)
            }
            (None, None) => return None,
        };
        let (&head, &tail) = (kept.first()?, kept.last()?);
        let set: HashSet<usize> = kept.iter().copied().collect();
        if set.contains(&anchor) {
            return None;
        }
        for (at, parent) in parents.iter_mut().enumerate() {
            if *parent == Some(anchor) && at != head {
                *parent = Some(tail);
            }
        }
        parents[head] = Some(anchor);
        for pair in kept.windows(2) {
            parents[pair[1]] = Some(pair[0]);
        }
        Some(set)
    }
}

/// The known text in the place of an equal one, so that it is held once.
fn shared(new: Option<&str>, known: Option<&Arc<str>>) -> Option<Arc<str>> {
    let new = new?;
    Some(known.filter(|it| ***it == *new).map_or_else(|| new.into(), Arc::clone))
}

/// Which rows hang on `start`, it included. Each parent is followed once.
fn descendants(start: usize, parents: &[Option<usize>]) -> Vec<bool> {
    #[derive(Clone, Copy)]
    enum Known {
        No,
        Asked,
        Is(bool),
    }
    let mut known = vec![Known::No; parents.len()];
    known[start] = Known::Is(true);
    for row in 0..parents.len() {
        let (mut path, mut at) = (Vec::new(), Some(row));
        let answer = loop {
            match at.map(|it| (it, known[it])) {
                Some((it, Known::No)) => {
                    known[it] = Known::Asked;
                    path.push(it);
                    at = parents[it];
                }
                Some((_, Known::Is(answer))) => break answer,
                // The root, or a cycle.
                Some((_, Known::Asked)) | None => break false,
            }
        };
        for it in path {
            known[it] = Known::Is(answer);
        }
    }
    known.into_iter().map(|it| matches!(it, Known::Is(true))).collect()
}
