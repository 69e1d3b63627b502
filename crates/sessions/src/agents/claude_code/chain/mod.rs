//! The rows of a file and the tree they form, read on all cores.

mod path;

use std::ops::Range;
use std::sync::Arc;

use foldhash::HashMap;

use super::line::{LineReader, RowLine};
use super::load::loaded;
use super::row::{Row, RowKind};
use super::{ROW_TYPES, SIDE_TYPES};
use crate::parse::lines::{self, Coverage, Stretch, each_line_in};
use crate::parse::raw::Fields;
use crate::{Keep, Note, Record, Source, derive, glimpse};
use history::error::Result;
use history::{Part, json};

/// The lines of a file, the rows among them with their places in the tree.
#[derive(Default)]
pub(super) struct Index {
    pub(super) records: Vec<Record>,
    pub(super) notes: Vec<Note>,
    pub(super) rows: Vec<Row>,
    pub(super) session: Option<Arc<str>>,
    pub(super) times: Option<(i64, i64)>,
    /// Whether any line was one of Claude Code's.
    pub(super) is_claude_code: bool,
    /// The last `last-prompt`: the uuid that it points at, the number of rows before it, its line number.
    pub(super) pointer: Option<(Arc<str>, usize, u64)>,
    /// The number of lines, including blank ones.
    lines: u64,
}

impl Index {
    /// Reads all lines, or only the first ones and those that the chain depends on; without `keep`, of rows
    /// only their places in the tree.
    ///
    /// The contents of rows are read with them as far back as the chain usually leads, to the last compaction
    /// boundary. Live rows before that are left to be read again (`load`).
    pub(super) fn of(source: &dyn Source, keep: Option<&Keep>, coverage: Coverage) -> Result<Self> {
        let mut index: Self = lines::read(source, keep, coverage)?;
        // In a sub-agent's file all rows are sidechain: there they are the main chain.
        if index.rows.iter().all(|it| it.sidechain) {
            index.rows.iter_mut().for_each(|it| it.sidechain = false);
        }
        Ok(index)
    }

    /// The last compaction boundary.
    pub(super) fn boundary(&self) -> Option<usize> {
        self.rows.iter().rposition(|it| it.kind == RowKind::Boundary && !it.sidechain)
    }

    fn widen_times(&mut self, at: i64) {
        self.times = derive::widened(self.times, at);
    }

    fn add_line(&mut self, number: u64, record: u32, line: &mut RowLine<'_>) -> Result<(), String> {
        let Some(kind) = line.kind.as_deref() else {
            return Err("expected a type, found none; not used".into());
        };
        if !ROW_TYPES.contains(&kind) && line.uuid.is_none() {
            if kind == "last-prompt"
                && let Some(leaf) = line.leaf.as_deref()
            {
                self.pointer = Some((leaf.into(), self.rows.len(), number));
            }
            if !SIDE_TYPES.contains(&kind) {
                return Err(format!("unknown type {kind:?}; not used"));
            }
            self.is_claude_code = true;
            self.session = interned(line.session.as_deref(), self.session.as_ref()).or(self.session.take());
            return Ok(());
        }
        let Some(uuid) = line.uuid.as_deref() else {
            return Err(format!("expected a uuid on {kind:?}, found none; not used"));
        };
        let kind = row_kind(kind, line);
        self.is_claude_code = true;
        let session = interned(line.session.as_deref(), self.session.as_ref());
        self.session = session.or_else(|| self.session.take());
        if let Some(at) = line.at {
            self.widen_times(at);
        }
        // Most rows have the directory and response of the row before, which is also their parent: these
        // strings are shared.
        let before = self.rows.last();
        let known = |of: fn(&Row) -> Option<&Arc<str>>| before.and_then(of);
        let uuid: Arc<str> = uuid.into();
        let response = match kind {
            RowKind::Assistant { .. } => {
                let id = line.message.as_ref().and_then(|it| it.id.as_deref());
                let response = interned(id, known(|it| it.response.as_ref()));
                Some(response.unwrap_or_else(|| uuid.clone()))
            }
            _ => None,
        };
        self.rows.push(Row {
            record,
            line: number,
            kind,
            parent: interned(line.parent.as_deref(), known(|it| Some(&it.uuid))),
            answers: interned(line.answers.as_deref(), known(|it| Some(&it.uuid))),
            sidechain: line.sidechain == Some(true),
            response,
            at: line.at,
            cwd: interned(line.cwd.as_deref(), known(|it| it.cwd.as_ref())),
            planning: line.mode.as_deref().map(|it| it == "plan"),
            compact: line.compact.take(),
            loaded: None,
            uuid,
        });
        Ok(())
    }
}

impl Stretch for Index {
    fn within(source: &dyn Source, range: Range<u64>, keep: Option<&Keep>) -> Result<Self> {
        let mut index = Self::default();
        let mut reader = LineReader::new(keep, 0);
        let mut model: Option<Arc<str>> = None;
        index.lines = each_line_in(source, range, |number, record, bytes| {
            let at = index.records.len() as u32;
            index.records.push(record);
            reader.texts.at = record.at;
            let mended;
            let line = match reader.line(bytes) {
                None => {
                    mended = json::mend(bytes);
                    reader.line(mended.as_bytes())
                }
                line => line,
            };
            let rows = index.rows.len();
            let added = line.ok_or_else(|| broken(bytes)).and_then(|mut line| {
                index.add_line(number, at, &mut line)?;
                if let (Some(row), Some(_)) = (index.rows.get_mut(rows), keep) {
                    let name = line.message.as_ref().and_then(|it| it.model.as_deref());
                    let answered = interned(name, model.as_ref());
                    row.loaded = Some(loaded(row, &mut line, answered.clone(), reader.texts));
                    model = answered.or(model.take());
                }
                Ok(())
            });
            if let Err(what) = added {
                index.notes.push(Note { line: number, what });
            }
            Ok(true)
        })?;
        // All ranges stay in memory until the first one has been read.
        index.records.shrink_to_fit();
        index.rows.shrink_to_fit();
        Ok(index)
    }

    fn parts(&mut self) -> impl Iterator<Item = &mut Part> {
        let loaded = self.rows.iter_mut().filter_map(|it| it.loaded.as_mut()?.as_mut().ok());
        loaded.filter_map(|it| it.item.as_mut()).flat_map(|it| &mut it.parts)
    }

    fn has_base(&self) -> bool {
        self.boundary().is_some()
    }

    /// Whether the rows from the last boundary on are all connected, what the boundary preserves has been
    /// read, and the session's id and time are known.
    fn is_enough(&self) -> bool {
        let Some(boundary) = self.boundary() else { return false };
        let Some(compact) = &self.rows[boundary].compact else { return false };
        let by_uuid: HashMap<&str, &Row> = self.rows.iter().map(|it| (&*it.uuid, it)).collect();
        let is_known = |uuid: &str| by_uuid.contains_key(uuid);
        let has_parent = |row: &Row| row.parent.as_deref().is_none_or(is_known);
        let preserved = match (&compact.kept, &compact.segment) {
            (Some(kept), _) => is_known(&kept.anchor_uuid) && kept.uuids.iter().all(|it| is_known(it)),
            (None, Some(segment)) => {
                let mut at = by_uuid.get(segment.tail_uuid.as_str());
                let mut steps = 0;
                while let Some(row) =
                    at.filter(|it| *it.uuid != *segment.head_uuid && steps < self.rows.len())
                {
                    at = row.parent.as_deref().and_then(|it| by_uuid.get(it));
                    steps += 1;
                }
                at.is_some() && is_known(&segment.anchor_uuid)
            }
            (None, None) => true,
        };
        let pointed = match &self.pointer {
            Some((leaf, before, _)) if boundary < *before => is_known(leaf),
            Some(_) | None => true,
        };
        let since_boundary = || self.rows[boundary..].iter().filter(|it| !it.sidechain);
        preserved
            && pointed
            && self.session.is_some()
            && since_boundary().all(has_parent)
            && since_boundary().any(|it| it.at.is_some())
    }

    fn joined(parts: Vec<Self>) -> Self {
        let (records, rows) =
            parts.iter().fold((0, 0), |sum, it| (sum.0 + it.records.len(), sum.1 + it.rows.len()));
        let mut parts = parts.into_iter().rev();
        let mut all = parts.next().unwrap_or_default();
        all.records.reserve_exact(records - all.records.len());
        all.rows.reserve_exact(rows - all.rows.len());
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
                all.widen_times(from);
                all.widen_times(to);
            }
            all.is_claude_code |= part.is_claude_code;
            if let Some((leaf, before, line)) = part.pointer {
                all.pointer = Some((leaf, before + rows, line + lines));
            }
            all.lines += part.lines;
        }
        all
    }

    fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The session began at the earliest time of its first rows, which are not strictly in order.
    fn into_head(self, lines: u64) -> Option<Self> {
        Some(Self { times: self.times, lines, ..Self::default() })
    }
}

fn row_kind(kind: &str, line: &RowLine<'_>) -> RowKind {
    match (kind, line.subtype.as_deref()) {
        ("user", _) => RowKind::User {
            meta: line.meta,
            summary: line.summary,
            result: line.message.as_ref().is_some_and(|it| it.has_result),
        },
        ("assistant", _) => RowKind::Assistant { api_error: line.api_error },
        ("attachment", _) => RowKind::Attachment,
        ("system", Some("local_command")) => RowKind::LocalCommand,
        ("system", Some("compact_boundary")) => RowKind::Boundary,
        _ => RowKind::Link,
    }
}

/// The note for a line that is not an object.
fn broken(bytes: &[u8]) -> String {
    let text = json::mend(bytes);
    match serde_json::from_str::<Fields>(&text) {
        Err(error) if text.starts_with('{') => format!("expected a JSON object: {error}; not used"),
        _ => format!("expected a JSON object, found {}; not used", glimpse(&text)),
    }
}

/// Interns a string: `known` if it is equal.
fn interned(new: Option<&str>, known: Option<&Arc<str>>) -> Option<Arc<str>> {
    let new = new?;
    Some(known.filter(|it| ***it == *new).map_or_else(|| new.into(), Arc::clone))
}
