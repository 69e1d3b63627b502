//! Reads a transcript as a session.

use std::sync::Arc;

use super::assemble::{Assembled, Assembly, ItemKind, LiveRow, Origin, RowItem, drop_orphans};
use super::chain::Index;
use super::load::load;
use super::row::RowKind;
use crate::parse::lines::Coverage;
use crate::parse::texts::WHOLE;
use crate::{Format, Keep, Note, Origins, PastCompaction, Session, Source};
use history::error::{Error, ErrorKind, Result};
use history::{History, Kind, Message, Meta, Role};

/// Reads a transcript. The history is what Claude Code would send after a resume, except for what it adds
/// anew.
///
/// `id` of a message is the uuid of its first row; usage is that of a response's last row, unless all of it is zero.
///
/// # Errors
/// As [`crate::read`].
pub fn read(source: &dyn Source) -> Result<Session> {
    session(source, WHOLE, Index::of(source, Some(WHOLE), Coverage::Whole)?)
}

/// [`read`] for a session that is only measured: texts are as `keep` leaves them, and lines that the history
/// does not depend on are not read.
///
/// # Errors
/// As [`crate::scan`].
pub fn scan(source: &dyn Source, keep: &Keep) -> Result<Session> {
    session(source, keep, Index::of(source, Some(keep), Coverage::History)?).map(Session::measured_only)
}

fn session(source: &dyn Source, keep: &Keep, mut index: Index) -> Result<Session> {
    if !index.is_claude_code {
        let found = match index.notes.first() {
            Some(note) => format!("line {}: {}", note.line, note.what),
            None => "an empty file".into(),
        };
        let what = format!(
            "expected a Claude Code transcript, found {found}; name another format, or let it be found"
        );
        return Err(Error::new(ErrorKind::Input, what).at(source.name(), None));
    }
    let live = index.live();
    let mut items = Vec::with_capacity(live.len());
    // The shell may change its directory; the first one is the session's.
    let cwd = index.rows.iter().find_map(|it| it.cwd.clone());
    let shell_dir_changes = shell_dir_changes(&index, &live, cwd.as_deref());
    let planning = live.iter().rev().find_map(|it| index.rows[*it].planning);
    let mut model = None;
    for at in live {
        let row = &mut index.rows[at];
        let loaded = match row.loaded.take() {
            Some(loaded) => loaded,
            None => load(source, &index.records, row, keep)?,
        };
        match loaded {
            Ok(loaded) => {
                model = loaded.model.or(model);
                let (record, uuid, time) = (row.record, &row.uuid, row.at);
                let origin = || Origin { row: at, record, uuid: uuid.clone(), at: time };
                items.extend(loaded.item.map(|item| LiveRow { origin: origin(), item }));
            }
            Err(what) => index.notes.push(Note { line: row.line, what }),
        }
    }
    drop_orphans(&mut items);
    let past = past(source, &index)?;
    drop(index.rows);
    let mut assembly = Assembly::new(items.len());
    items.into_iter().for_each(|it| assembly.add(it));
    let Assembled { messages, origins, summaries } = assembly.done();
    let shell_dirs =
        if shell_dir_changes.is_empty() { Vec::new() } else { shell_dirs(&shell_dir_changes, &origins) };
    let past = past.into_iter().map(|(row, past)| PastCompaction {
        message: row.and_then(|it| summaries.get(&it)).copied(),
        ..past
    });
    let stem = source.name().rsplit(['/', '\\']).next().and_then(|it| it.strip_suffix(".jsonl"));
    let session = stem.filter(|it| is_uuid(it)).map(Arc::from).or(index.session);
    let meta = Meta {
        agent: Some(Format::CLAUDE_CODE.name().into()),
        session,
        model,
        cwd,
        shell_dirs,
        times: index.times,
        planning,
        ..Meta::default()
    };
    Ok(Session {
        format: Format::CLAUDE_CODE,
        records: index.records,
        origins,
        notes: index.notes,
        past: past.collect(),
        history: History::new(messages, meta),
    })
}

/// When the shell changed its directory: the first message in each directory, and the directory.
fn shell_dirs(shell_dir_changes: &[(u32, Arc<str>)], origins: &Origins) -> Vec<(u32, Arc<str>)> {
    let mut out: Vec<(u32, Arc<str>)> = Vec::new();
    for (number, records) in origins.iter().enumerate() {
        let after = records.first().map_or(0, |first| shell_dir_changes.partition_point(|it| it.0 <= *first));
        let Some((_, dir)) = after.checked_sub(1).and_then(|it| shell_dir_changes.get(it)) else { continue };
        if out.last().is_none_or(|it| it.1 != *dir) {
            out.push((number as u32, dir.clone()));
        }
    }
    out
}

/// When the shell changed its directory: the first record in each directory, and the directory; empty if it
/// never left `cwd`.
fn shell_dir_changes(index: &Index, live: &[usize], cwd: Option<&str>) -> Vec<(u32, Arc<str>)> {
    let mut out: Vec<(u32, Arc<str>)> = Vec::new();
    for row in live.iter().map(|it| &index.rows[*it]) {
        let Some(dir) = &row.cwd else { continue };
        if out.last().is_none_or(|it| it.1 != *dir) {
            out.push((row.record, dir.clone()));
        }
    }
    if out.iter().all(|it| Some(&*it.1) == cwd) { Vec::new() } else { out }
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, it)| match at {
            8 | 13 | 18 | 23 => it == b'-',
            _ => it.is_ascii_hexdigit(),
        })
}

/// One per boundary, and one per summary without a boundary (version 1); each with the row of its summary.
fn past(source: &dyn Source, index: &Index) -> Result<Vec<(Option<usize>, PastCompaction)>> {
    let mut out: Vec<(Option<usize>, PastCompaction)> = Vec::new();
    let mut lacks_summary = false;
    for (at, row) in index.rows.iter().enumerate() {
        match row.kind {
            RowKind::Boundary => {
                let compact = row.compact.as_ref();
                let past = PastCompaction {
                    trigger: compact.and_then(|it| it.trigger.clone()),
                    tokens_before: compact.and_then(|it| it.before),
                    tokens_after: compact.and_then(|it| it.after),
                    ..PastCompaction::default()
                };
                out.push((None, past));
                lacks_summary = true;
            }
            RowKind::User { summary: true, .. } => {
                if !lacks_summary {
                    out.push(Default::default());
                }
                lacks_summary = false;
                let item = load(source, &index.records, row, WHOLE)?.ok().and_then(|it| it.item);
                if let (Some((of, past)), Some(RowItem { kind: ItemKind::Summary, parts })) =
                    (out.last_mut(), item.map(|it| *it))
                {
                    past.summary = Message::new(Role::User, Kind::Summary, parts).plain();
                    *of = Some(at);
                }
            }
            _ => {}
        }
    }
    Ok(out)
}
