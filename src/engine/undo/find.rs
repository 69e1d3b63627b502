//! Which compaction is meant: by a handle, by `last`, or by the session that it made or replaced.

use crate::agents;
use crate::engine::input::open::MAX_COMPACTIONS_SEARCHED;
use crate::engine::{Engine, Opened};
use crate::store::{Applied, Compaction, Entry, ItemKind, Scope};
use history::error::{Error, ErrorKind, Result};

/// What was found in the archive.
pub struct Archived {
    pub scope: Scope,
    pub entry: Entry,
}

/// What a handle, or `last`, names: `last` is the newest compaction of this directory.
///
/// # Errors
///
/// No such handle, or nothing compacted here.
pub fn located(engine: &Engine, name: &str) -> Result<Archived> {
    if name == "last" {
        let (scope, compaction) = last(engine, |_| true)?;
        let entry = engine.store.entry(&scope, compaction.handle.as_str())?;
        return Ok(Archived { scope, entry });
    }
    let scope = engine.store.locate(name, &engine.config.owner)?;
    let entry = engine.store.entry(&scope, name)?;
    Ok(Archived { scope, entry })
}

/// The newest compaction of this directory that is wanted. Skips those of sub-agents' sessions, in which the
/// user never works: they are undone only by their handles.
fn last(engine: &Engine, wanted: impl Fn(&Compaction) -> bool) -> Result<(Scope, Compaction)> {
    let wanted = |it: &Compaction| {
        if !wanted(it) {
            return false;
        }
        let found = agents::find(&engine.config.agents, &it.session.id);
        let of_sub_agent = !found.is_empty() && found.iter().all(|it| it.parent.is_some());
        if of_sub_agent {
            tracing::warn!(
                "{} is a sub-agent's and was left as it is; name it to undo it",
                it.handle.as_str()
            );
        }
        !of_sub_agent
    };
    let mut found: Option<(Scope, Compaction)> = None;
    for scope in engine.projects() {
        let newest =
            engine.store.compactions(&scope, None, MAX_COMPACTIONS_SEARCHED)?.into_iter().find(&wanted);
        if let Some(newest) = newest
            && found.as_ref().is_none_or(|(_, it)| it.at < newest.at)
        {
            found = Some((scope, newest));
        }
    }
    found.ok_or_else(|| {
        let what = "expected a compaction of this directory, found none; name one by its handle (`epitome sessions` \
                    lists them), or go to the session's directory";
        Error::new(ErrorKind::Arguments, what)
    })
}

/// The compaction to undo: named by `last`, its own handle, or the handle of the session that it replaced.
pub(super) fn applied(engine: &Engine, name: &str) -> Result<(Scope, Compaction, Applied)> {
    let (scope, compaction) = if name == "last" {
        last(engine, |it| it.applied.is_some())?
    } else {
        let Archived { scope, entry } = located(engine, name)?;
        let compaction = match entry.kind {
            ItemKind::Compaction => engine.store.compaction(&scope, name)?,
            ItemKind::Session => {
                let all = engine.store.compactions(&scope, None, MAX_COMPACTIONS_SEARCHED)?;
                let of =
                    |it: &Compaction| it.original.as_ref() == Some(&entry.handle) && it.applied.is_some();
                all.into_iter().find(of).ok_or_else(|| never_applied(name))?
            }
            ItemKind::Message | ItemKind::Output | ItemKind::Memory => {
                let what = format!(
                    "{name}: expected a compaction to undo, found a {}; read it with recall",
                    entry.kind.name()
                );
                return Err(Error::new(ErrorKind::Arguments, what));
            }
        };
        (scope, compaction)
    };
    let applied = compaction.applied.clone().ok_or_else(|| never_applied(name))?;
    Ok((scope, compaction, applied))
}

/// The newest applied compaction of a session, or the one that made the session.
pub(super) fn applied_of(engine: &Engine, opened: &Opened) -> Result<(Scope, Compaction, Applied)> {
    let none = || {
        let what = "undoing: expected a session that was compacted or pruned in place, found none; name the \
                    compaction or prune by its handle";
        Error::new(ErrorKind::Arguments, what)
    };
    let history = &opened.session.history;
    let id = history.meta.session.as_deref().ok_or_else(none)?;
    let scope = engine.scope(history);
    let all = engine.store.compactions(&scope, None, MAX_COMPACTIONS_SEARCHED)?;
    let of_it = |it: Compaction| {
        let applied = it.applied.clone()?;
        let is_its = it.session.id == id || applied.session.as_deref() == Some(id);
        is_its.then_some((it, applied))
    };
    let (compaction, applied) = all.into_iter().find_map(of_it).ok_or_else(none)?;
    Ok((scope, compaction, applied))
}

fn never_applied(name: &str) -> Error {
    let what = format!(
        "{name}: expected a compaction that was applied, found one that was only planned or written to a file; there \
         is nothing to undo"
    );
    Error::new(ErrorKind::Arguments, what)
}
