//! Which rows are live: the tree, its leaf, and the path that the client would send.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use memchr::memmem;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer};
use serde_json::value::RawValue;

use super::assemble::Item;
use super::read::{Loaded, load};
use super::{ROW_TYPES, SIDE_TYPES, fast};
use crate::error::Result;
use crate::format::lines::{HEAD, backwards, each_line_in};
use crate::format::{Keep, Note, Record, Source, derive, hold};
use crate::json;

/// What of a line decides about its place. A field of the wrong type counts as missing.
#[derive(Deserialize, Default)]
pub(super) struct Line<'a> {
    #[serde(rename = "type", default, deserialize_with = "lenient")]
    pub(super) kind: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) uuid: Option<Arc<str>>,
    #[serde(rename = "parentUuid", default, deserialize_with = "lenient")]
    pub(super) parent: Option<Arc<str>>,
    #[serde(rename = "sourceToolAssistantUUID", default, deserialize_with = "lenient")]
    pub(super) answers: Option<Arc<str>>,
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
    pub(super) session: Option<Arc<str>>,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) cwd: Option<Arc<str>>,
    #[serde(rename = "leafUuid", default, deserialize_with = "lenient")]
    pub(super) leaf: Option<Arc<str>>,
    #[serde(rename = "compactMetadata", default, deserialize_with = "lenient")]
    pub(super) compact: Option<Compact>,
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

/// What a row is, as far as the tree is concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
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
    pub(super) compact: Option<Compact>,
    /// What it says, where that was kept while the line was looked at.
    pub(super) loaded: Option<Result<Loaded, String>>,
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
    /// Reads every line once and keeps what decides about places.
    pub(super) fn of(source: &dyn Source) -> Result<Self> {
        Ok(Self::within(source, 0..source.len(), None)?.without_sidechains())
    }

    /// Reads the lines that begin in a range; with `keep`, what rows say is kept as that leaves it.
    fn within(source: &dyn Source, range: Range<u64>, keep: Option<&Keep>) -> Result<Self> {
        let mut index = Self::default();
        index.lines = each_line_in(source, range, |number, record, bytes| {
            let at = index.records.len() as u32;
            index.records.push(record);
            let rows = index.rows.len();
            // What has to be mended first is not usual.
            let fast = keep.and_then(|_| std::str::from_utf8(bytes).ok()).and_then(fast::look);
            match fast {
                Some(fast) => index.place(number, at, fast.line, fast.said, fast.response, Some(fast.loaded)),
                None => {
                    let text = json::mend(bytes);
                    if let Err(what) = index.take(number, at, &text) {
                        index.notes.push(Note { line: number, what });
                    }
                    if keep.is_some() {
                        index.rows.iter_mut().skip(rows).for_each(|it| it.loaded = Some(load(it, &text)));
                    }
                }
            }
            if let Some(keep) = keep {
                let loaded =
                    index.rows.iter_mut().skip(rows).filter_map(|it| it.loaded.as_mut()?.as_mut().ok());
                for part in loaded.filter_map(|it| it.item.as_mut()).flat_map(|it| it.parts_mut()) {
                    hold(part, keep, record.at);
                }
            }
            Ok(true)
        })?;
        Ok(index)
    }

    /// Reads all lines, on all cores, and keeps what rows say.
    pub(super) fn whole(source: &dyn Source) -> Result<Self> {
        let mut parts: Vec<Self> = Vec::new();
        let look = |range| Self::within(source, range, Some(&|_, _| None));
        backwards(source, look, |part| {
            parts.push(part);
            true
        })?;
        Ok(Self::joined(parts).without_sidechains())
    }

    /// Reads from the end backwards no more lines than the chain depends on, or all if they are few, and the first time.
    pub(super) fn live_part(source: &dyn Source, keep: &Keep) -> Result<Self> {
        let mut parts: Vec<Self> = Vec::new();
        let (mut bounded, mut whole) = (false, false);
        let from = backwards(
            source,
            |range| Self::within(source, range, Some(keep)),
            |part| {
                bounded |= part.boundary().is_some();
                parts.push(part);
                if bounded && source.len() > super::super::LOOKED_AT_WHOLE {
                    parts = vec![Self::joined(std::mem::take(&mut parts))];
                    whole = parts[0].is_enough();
                }
                !whole
            },
        )?;
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
                self.pointer = Some((leaf, self.rows.len(), number));
            }
            if !SIDE_TYPES.contains(&kind) {
                return Err(format!("unknown type {kind:?}; not used"));
            }
            self.known = true;
            self.session = line.session.or_else(|| self.session.take());
            return Ok(());
        }
        if line.uuid.is_none() {
            return Err(format!("expected a uuid on {kind:?}, found none; not used"));
        }
        let message = line.message.map_or("", RawValue::get);
        let said = memmem::find(message.as_bytes(), b"\"tool_result\"").is_some();
        #[derive(Deserialize)]
        struct Id {
            #[serde(default, deserialize_with = "lenient")]
            id: Option<Arc<str>>,
        }
        let response = if kind == "assistant" { serde_json::from_str::<Id>(message).ok() } else { None };
        let response = response.and_then(|it| it.id);
        self.place(number, record, Line { message: None, ..line }, said, response, None);
        Ok(())
    }

    /// Puts a row into the tree. `result`: its message speaks of a tool's result. `response`: `message.id`.
    fn place(
        &mut self,
        number: u64,
        record: u32,
        line: Line<'_>,
        result: bool,
        response: Option<Arc<str>>,
        mut loaded: Option<Loaded>,
    ) {
        let Some(uuid) = line.uuid else { return };
        self.known = true;
        self.session = line.session.or_else(|| self.session.take());
        let kind = match (line.kind.as_deref().unwrap_or_default(), line.subtype.as_deref()) {
            ("user", _) => {
                RowKind::User { meta: line.meta == Some(true), summary: line.summary == Some(true), result }
            }
            ("assistant", _) => RowKind::Assistant { api_error: line.api_error == Some(true) },
            ("attachment", _) => RowKind::Attachment,
            ("system", Some("local_command")) => RowKind::LocalCommand,
            ("system", Some("compact_boundary")) => RowKind::Boundary,
            _ => RowKind::Link,
        };
        let response = match kind {
            RowKind::Assistant { .. } => Some(response.unwrap_or_else(|| uuid.clone())),
            RowKind::User { .. }
            | RowKind::Attachment
            | RowKind::LocalCommand
            | RowKind::Boundary
            | RowKind::Link => None,
        };
        let at = line.timestamp.as_deref().and_then(derive::parse_time);
        if let Some(at) = at {
            self.time(at);
        }
        // Most rows have the same directory, model and response as the one before, and hang on it.
        let before = self.rows.last();
        let cwd = shared(line.cwd, before.and_then(|it| it.cwd.as_ref()));
        let parent = shared(line.parent, before.map(|it| &it.uuid));
        let response = shared(response, before.and_then(|it| it.response.as_ref()));
        if let Some(loaded) = &mut loaded {
            let near = self.rows.iter().rev().take(4);
            let known =
                near.filter_map(|it| it.loaded.as_ref()?.as_ref().ok()).find_map(|it| it.model.as_ref());
            loaded.model = shared(loaded.model.take(), known);
            if let (Some(Item::Reply { response: of, .. }), Some(response)) = (&mut loaded.item, &response) {
                of.clone_from(response);
            }
        }
        self.rows.push(Row {
            record,
            line: number,
            kind,
            uuid,
            parent,
            answers: line.answers,
            sidechain: line.sidechain == Some(true),
            response,
            at,
            cwd,
            compact: line.compact,
            loaded: loaded.map(Ok),
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
        let by_uuid: HashMap<Arc<str>, usize> =
            self.rows.iter().enumerate().map(|(at, it)| (it.uuid.clone(), at)).collect();
        let find = |uuid: &Option<Arc<str>>| uuid.as_ref().and_then(|it| by_uuid.get(it)).copied();
        let mut parents: Vec<Option<usize>> = self.rows.iter().map(|it| find(&it.parent)).collect();

        let main: Vec<usize> = (0..self.rows.len()).filter(|it| !self.rows[*it].sidechain).collect();
        if main.len() > 1 && main.iter().all(|it| parents[*it].is_none() && self.rows[*it].compact.is_none())
        {
            let what = "expected parentUuid to link the rows, found none that does; their order in the file is taken".into();
            self.notes.push(Note { line: self.rows[main[0]].line, what });
            return main;
        }
        let boundary = self.boundary();
        let kept = boundary.and_then(|it| self.relink(it, &by_uuid, &mut parents));
        let pointed = match &self.pointer {
            Some((leaf, before, _)) if boundary.is_none_or(|it| it < *before) => {
                let found = by_uuid.get(leaf).copied();
                if found.is_none() {
                    let (_, _, line) = self.pointer.clone().unwrap_or_default();
                    let what = "expected leafUuid to name a row, found none; the last row is taken".into();
                    self.notes.push(Note { line, what });
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
        let mut place: HashMap<&str, usize> = HashMap::new();
        for (position, &at) in path.iter().enumerate() {
            if let Some(response) = &self.rows[at].response {
                place.insert(response, position);
            }
        }
        let mut put_back: HashMap<usize, Vec<usize>> = HashMap::new();
        for (at, row) in self.rows.iter().enumerate() {
            if seen[at] || row.sidechain || forgotten(at) || by_uuid.get(&row.uuid) != Some(&at) {
                continue;
            }
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
        by_uuid: &HashMap<Arc<str>, usize>,
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
fn shared(new: Option<Arc<str>>, known: Option<&Arc<str>>) -> Option<Arc<str>> {
    match known {
        Some(known) if new.as_ref() == Some(known) => Some(known.clone()),
        Some(_) | None => new,
    }
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
