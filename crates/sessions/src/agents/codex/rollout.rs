//! An index of the lines of a rollout, made in one pass.

use std::ops::Range;

use super::item::Reader;
use super::line::{RolloutEntry, RolloutLine};
use crate::parse::lines::{self, Coverage, Stretch};
use crate::{Keep, Note, Record, Source, derive};
use history::Part;
use history::error::{Error, ErrorKind, Result};

/// The index of a rollout.
#[derive(Debug, Default)]
pub(super) struct Rollout {
    pub(super) records: Vec<Record>,
    /// One for each record.
    pub(super) entries: Vec<RolloutEntry>,
    pub(super) notes: Vec<Note>,
    pub(super) times: Option<(i64, i64)>,
    /// The numbers of the records that a writer copies from.
    pub(super) session_meta: Option<u32>,
    pub(super) world_state: Option<u32>,
    pub(super) turn_context: Option<u32>,
    pub(super) token_count: Option<u32>,
    pub(super) first_prompt: Option<u32>,
    /// The id of the newest turn, if it has one.
    pub(super) turn: Option<String>,
    /// Whether any turn began.
    turn_seen: bool,
    pub(super) last_compacted: Option<u32>,
    pub(super) window: Option<u64>,
    pub(super) max_ordinal: Option<u64>,
    pub(super) paginated: bool,
    /// Lines that parsed as records of Codex.
    codex_lines: usize,
    /// The number of lines, including blank ones.
    lines: u64,
}

impl Rollout {
    /// Reads all lines, or only the first one and those that a resume needs. Then the history is the same,
    /// but compactions before the newest surviving one may be missing.
    ///
    /// Items are kept as far back as a replay usually needs them, to the last compaction that carries a
    /// history. Earlier ones that it needs are read again.
    pub(super) fn of(source: &dyn Source, keep: &Keep, coverage: Coverage) -> Result<Self> {
        let rollout: Self = lines::read(source, Some(keep), coverage)?;
        if rollout.codex_lines == 0 {
            let what = "while reading a Codex rollout: expected lines with `type` and `payload`, found none; \
                name the format or another file";
            return Err(Error::new(ErrorKind::Input, what).at(source.name(), None));
        }
        Ok(rollout)
    }

    /// Indexes a line: its entry, or what is wrong with it. `at`: the line's number.
    fn add_line(&mut self, line: RolloutLine, at: u64) -> Result<RolloutEntry, String> {
        let number = self.records.len() as u32;
        self.codex_lines += 1;
        self.max_ordinal = self.max_ordinal.max(line.ordinal);
        self.times = line.at.into_iter().fold(self.times, derive::widened);
        self.window = line.payload.window.or(self.window);
        let entry = line.payload.entry?;
        match &entry {
            RolloutEntry::SessionMeta { is_paginated, goes_on } if self.session_meta.is_none() => {
                (self.session_meta, self.paginated) = (Some(number), *is_paginated);
                if *goes_on {
                    let what = "this thread continues another one, whose file is not read".to_owned();
                    self.notes.push(Note { line: at, what });
                }
            }
            RolloutEntry::Compacted { .. } => self.last_compacted = Some(number),
            RolloutEntry::TurnContext(_) => self.turn_context = Some(number),
            RolloutEntry::WorldState => self.world_state = Some(number),
            RolloutEntry::TokenCountEvent(_) => self.token_count = Some(number),
            RolloutEntry::TurnStarted(turn) => (self.turn, self.turn_seen) = (turn.clone(), true),
            RolloutEntry::UserMessage | RolloutEntry::UserItem => _ = self.first_prompt.get_or_insert(number),
            RolloutEntry::SessionMeta { .. }
            | RolloutEntry::Item { .. }
            | RolloutEntry::UsageRecord(_)
            | RolloutEntry::TurnEnded(_)
            | RolloutEntry::RolledBack(_)
            | RolloutEntry::Nothing => {}
        }
        Ok(entry)
    }

    /// The text of a record, mended; offsets in it are offsets in the source. Without a record it is empty.
    pub(super) fn text(&self, source: &dyn Source, number: impl Into<Option<u32>>) -> Result<String> {
        let record = number.into().and_then(|it| self.records.get(it as usize));
        record.map_or(Ok(String::new()), |it| source.text(it.range()))
    }
}

impl Stretch for Rollout {
    fn within(source: &dyn Source, range: Range<u64>, keep: Option<&Keep>) -> Result<Self> {
        let mut rollout = Self::default();
        let mut reader = Reader::new(keep, 0);
        rollout.lines = lines::each_line_in(source, range, |line, record, bytes| {
            reader.texts.at = record.at;
            let entry = reader.line(bytes).and_then(|it| rollout.add_line(it, line)).unwrap_or_else(|what| {
                rollout.notes.push(Note { line, what });
                RolloutEntry::Nothing
            });
            rollout.records.push(record);
            rollout.entries.push(entry);
            Ok(true)
        })?;
        Ok(rollout)
    }

    fn parts(&mut self) -> impl Iterator<Item = &mut Part> {
        let live = self.entries.iter_mut().filter_map(|it| match it {
            RolloutEntry::Item { live, .. } => live.as_deref_mut(),
            _ => None,
        });
        live.flat_map(|it| &mut it.message.parts)
    }

    /// Whether any compaction in it carries a history.
    fn has_base(&self) -> bool {
        self.entries.iter().any(|it| matches!(it, RolloutEntry::Compacted { has_history: true, .. }))
    }

    fn is_enough(&self) -> bool {
        self.turn_context.is_some() && self.window.is_some() && self.survivors().is_final
    }

    fn joined(parts: Vec<Self>) -> Self {
        let lines: usize = parts.iter().map(|it| it.entries.len()).sum();
        let mut parts = parts.into_iter().rev();
        let mut all = parts.next().unwrap_or_default();
        all.records.reserve_exact(lines - all.records.len());
        all.entries.reserve_exact(lines - all.entries.len());
        for part in parts {
            let by = all.records.len() as u32;
            let later = |new: Option<u32>, old: Option<u32>| new.map(|it| it + by).or(old);
            all.records.extend(part.records);
            all.entries.extend(part.entries);
            all.notes.extend(part.notes.into_iter().map(|it| Note { line: it.line + all.lines, ..it }));
            all.lines += part.lines;
            all.times = part.times.into_iter().flat_map(<[i64; 2]>::from).fold(all.times, derive::widened);
            if all.session_meta.is_none() {
                (all.session_meta, all.paginated) = (part.session_meta.map(|it| it + by), part.paginated);
            }
            all.world_state = later(part.world_state, all.world_state);
            all.turn_context = later(part.turn_context, all.turn_context);
            all.token_count = later(part.token_count, all.token_count);
            all.first_prompt = all.first_prompt.or(part.first_prompt.map(|it| it + by));
            all.last_compacted = later(part.last_compacted, all.last_compacted);
            if part.turn_seen {
                (all.turn, all.turn_seen) = (part.turn, true);
            }
            all.window = part.window.or(all.window);
            all.max_ordinal = all.max_ordinal.max(part.max_ordinal);
            all.codex_lines += part.codex_lines;
        }
        all
    }

    fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The first record, and the earliest time of the first lines. A file that does not begin with
    /// `session_meta`, as all should, is read whole.
    fn into_head(mut self, lines: u64) -> Option<Self> {
        self.records.truncate(1);
        (self.session_meta == Some(0)).then(|| Self {
            records: self.records,
            entries: vec![RolloutEntry::Nothing],
            session_meta: Some(0),
            times: self.times,
            lines,
            ..Self::default()
        })
    }
}
