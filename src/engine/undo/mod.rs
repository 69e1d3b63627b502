//! Undo: restores a session to its state before a compaction, followed by the later turns.
//!
//! No message is lost in either direction. If the session is unchanged since it was written, the original's
//! own bytes come back. If it continued, the original's messages and the later turns are written the way the
//! agent itself would continue. If the compaction made a new session, the old one was never touched.

mod find;
mod put_back;
mod seat;
pub(super) mod outcome;

use std::path::Path;

use crate::agents::write_back::shell;
use crate::answers::{Next, RestoreAnswer};
use crate::engine::archive::marks::SessionMark;
use crate::engine::undo::outcome::{Done, original_of};
use crate::engine::write_back::agent_of;
use crate::engine::{Engine, Opened, repair};
use crate::store::{Applied, AppliedMode, AuditVerb, Compaction, Scope};
use history::error::{Error, ErrorKind, Hint, Result};
use put_back::Undo;
use sessions::{Format, MemorySource};

pub use find::{Archived, located};

/// Puts a session back as it was before a compaction or a prune; later turns stay.
///
/// # Errors
///
/// [`Changed`](ErrorKind::Changed): the session was changed in other ways than by later turns. Nothing is
/// written then.
pub fn undo(engine: &Engine, name: &str) -> Result<RestoreAnswer> {
    undo_compaction(engine, find::applied(engine, name)?)
}

/// As [`undo`], for the newest compaction of a session, or the one that made the session.
///
/// # Errors
///
/// As for [`undo`], and where nothing was compacted in this session.
pub fn undo_of(engine: &Engine, opened: &Opened) -> Result<RestoreAnswer> {
    undo_compaction(engine, find::applied_of(engine, opened)?)
}

fn undo_compaction(
    engine: &Engine,
    (scope, compaction, applied): (Scope, Compaction, Applied),
) -> Result<RestoreAnswer> {
    let agent = agent_of(Format::named(&compaction.session.format)?)?;
    let mut done = put_back(engine, &scope, &compaction, &applied)?;
    done.warnings.extend(note(engine, &scope, &compaction, &applied, &done));
    engine.audit(AuditVerb::Undo, &scope, Some(&compaction.session.id), Some(compaction.handle.as_str()));
    let cwd = Some(scope.project.as_str()).filter(|it| !it.is_empty()).map(Path::new);
    let export = agent.info().database.is_some() && !done.output.contains('#');
    let env = &engine.config.agents;
    let file = export.then(|| Path::new(&done.output));
    let resume = shell::resume_command(env, agent, &[], file, &done.id, cwd);
    Ok(RestoreAnswer {
        handle: compaction.handle.as_str().to_owned(),
        status: done.status,
        session_id: done.id,
        output: done.output,
        later_messages: done.later,
        next: Next::user(format!("Resume with: {resume}")),
        resume,
        warnings: done.warnings,
    })
}

fn put_back(engine: &Engine, scope: &Scope, compaction: &Compaction, applied: &Applied) -> Result<Done> {
    let mark = serde_json::from_str(&applied.fingerprint).map_err(|error| {
        Error::new(ErrorKind::Store, "undoing: expected the record of what was written, found it unreadable")
            .hint(Hint::RestoreCopy)
            .because(error)
    })?;
    match applied.mode {
        // Before any parsing: the original of a repair may be unreadable.
        AppliedMode::Repair => repair::undo_repair(engine, scope, compaction, &mark),
        AppliedMode::Patch | AppliedMode::Append | AppliedMode::New | AppliedMode::Seat => {
            let bytes = engine.store.restore(scope, original_of(compaction)?)?;
            let source = MemorySource::new("the archived original", bytes);
            let session = sessions::read(&source, Some(Format::named(&compaction.session.format)?))?;
            Undo { engine, compaction, applied, mark, source, session }.run()
        }
    }
}

/// Notes that a compaction was undone. Failures are returned as warnings, since the session is back already.
fn note(
    engine: &Engine,
    scope: &Scope,
    compaction: &Compaction,
    applied: &Applied,
    done: &Done,
) -> Vec<String> {
    let mut unnoted = Vec::new();
    for id in [Some(compaction.session.id.as_str()), applied.session.as_deref(), Some(&done.id)]
        .into_iter()
        .flatten()
    {
        unnoted.extend(engine.store.unmark(scope, &SessionMark::Compacted.of(id)).err());
    }
    if let Some(left) = applied.session.as_deref().filter(|it| *it != done.id) {
        unnoted.extend(engine.store.mark(scope, &SessionMark::Undone.of(left), &done.id, engine.now).err());
    }
    unnoted.iter().map(|it| format!("the undo could not be recorded: {}", it.full())).collect()
}
