//! Puts a result where the agent resumes from it: lock, read again, write, read back, install.
//!
//! The plan was made without a lock. Here the agent's own lock is taken and the session is read again:
//! messages that were added since go to the end of the result; after any other change nothing is written. The
//! fingerprint of the result is archived before it is written, so that an undo recognizes it even if this
//! process dies in between.

pub(super) mod readback;
mod cool_down;
mod fingerprint;
mod target;

use std::path::Path;

use crate::agents;
use crate::agents::write_back::{Operation, Placement};
use crate::answers::{Next, TakesEffect, Who};
use crate::engine::archive::marks::SessionMark;
use crate::engine::{Engine, Opened};
use crate::files::Reading;
use crate::store::{Applied, AppliedMode};
use history::History;
use history::error::{Error, ErrorKind, Result};
use sessions::{Mode, Written};

pub(crate) use cool_down::{cooling_down, last_compaction};
pub(crate) use fingerprint::WrittenFingerprint;
use fingerprint::{edits, fingerprint};
pub(crate) use target::{Location, Target, agent_of, can_write_back, in_reach};

/// A session that an agent can resume from.
pub struct Installed {
    /// What was written: a file, or `database#session`.
    pub output: String,
    pub session_id: String,
    /// One shell command that resumes it, from any directory.
    pub resume: String,
    pub takes_effect: TakesEffect,
    pub next: Next,
}

impl Installed {
    /// A new file, which the command `resume` resumes.
    pub(crate) fn new(path: &Path, session_id: String, resume: String) -> Self {
        let next = Next::user(format!("Resume with: {resume}"));
        let output = path.display().to_string();
        Self { output, session_id, resume, takes_effect: TakesEffect::OnResume, next }
    }
}

/// Puts `after` in the place of `opened`; also returns warnings. `compaction`: its handle in the archive.
pub(crate) fn install(
    engine: &Engine,
    opened: &Opened,
    after: &History,
    operation: Operation,
    compaction: &str,
) -> Result<(Installed, Vec<String>)> {
    let target = Target::of(engine, opened)?;
    let Target { agent, place, live, .. } = &target;
    let method = agent.write_method(operation, *live, target.export)?;
    let id = opened.session.history.meta.session.as_deref().unwrap_or_default().to_owned();
    let _lock = match method.placement {
        Placement::Replace if !live => agent.lock(&engine.config.agents, &id)?,
        Placement::Replace | Placement::InPlace | Placement::NewFile | Placement::Database => None,
    };
    let current = place.open(opened.session.format)?;
    target.expect_known_version(&current)?;
    let (after, added) = rebased(&opened.session.history, &current.session.history, after)?;
    let written = readback::write_and_verify(&current, &after, method.mode)?;
    let mut warnings = written.warnings.clone();
    let new_id = written.session.clone().unwrap_or(id);
    let path = match (place, method.placement, &written.file_name) {
        (Location::File(path), Placement::NewFile, Some(name)) => path.with_file_name(name),
        _ => place.path().to_owned(),
    };
    let scope = engine.scope(&opened.session.history);
    let messages = after.messages().len();
    let fingerprint = fingerprint(place, method.placement, &current, &written, messages, added)?;
    let output = match method.placement {
        Placement::Database => agents::address(&path, &new_id),
        Placement::Replace | Placement::InPlace | Placement::NewFile => path.display().to_string(),
    };
    let applied = Applied {
        path: Some(output.clone()),
        session: written.session.clone(),
        mode: match method.mode {
            Mode::Patch => AppliedMode::Patch,
            Mode::Append => AppliedMode::Append,
            Mode::New => AppliedMode::New,
        },
        fingerprint: history::json::compact(&fingerprint),
    };
    engine.store.finish(&scope, compaction, &applied)?;
    put(place, &path, method.placement, &current, &written)?;
    if operation == Operation::Compact {
        for id in [Some(&*new_id), opened.session.history.meta.session.as_deref()].into_iter().flatten() {
            if let Err(error) =
                engine.store.mark(&scope, &SessionMark::Compacted.of(id), compaction, engine.now)
            {
                // Too late to fail: the result is already written.
                warnings.push(format!("the time of the compaction could not be recorded: {}", error.full()));
            }
        }
    }
    let cwd = opened.directory();
    if cwd.is_none() {
        warnings.push("the session records no directory: resume it from the project's directory".to_owned());
    }
    let resume = target.resume(engine, &path, &new_id, cwd.as_deref());
    let next = next(method.takes_effect, *live, written.session.is_some(), &resume);
    let installed = Installed { output, session_id: new_id, resume, takes_effect: method.takes_effect, next };
    Ok((installed, warnings))
}

/// The result with the messages that the session gained since it was read, and their number.
fn rebased(before: &History, now: &History, after: &History) -> Result<(History, usize)> {
    let (old, new) = (before.messages(), now.messages());
    if new.len() < old.len() || !old.iter().zip(new).all(|(one, other)| one.says_same(other)) {
        let what = "the session has changed since it was read; nothing was written; run this again";
        return Err(Error::new(ErrorKind::Changed, what));
    }
    let added = &new[old.len()..];
    if added.is_empty() {
        return Ok((after.clone(), 0));
    }
    let messages = after.messages().iter().chain(added).cloned().collect();
    Ok((History::new(messages, now.meta.clone()), added.len()))
}

fn put(place: &Location, path: &Path, placement: Placement, old: &Opened, new: &Written) -> Result<()> {
    let source = &*old.source;
    match (placement, place) {
        (_, Location::Rows(database, ..)) => database.change(path, &source.whole()?, &new.bytes(source)?),
        (Placement::InPlace, _) => crate::files::overwrite(path, &edits(new, old)?),
        (Placement::NewFile, _) => crate::files::create(path, &new.bytes(source)?, place.path()),
        (Placement::Replace | Placement::Database, _) => {
            crate::files::replace(path, source.len(), &mut Reading::of(&new.over(source)))
        }
    }
}

fn next(takes_effect: TakesEffect, live: bool, new: bool, resume: &str) -> Next {
    match (takes_effect, live, new) {
        (TakesEffect::NextRequest, _, _) => {
            let what = "Continue: the next request uses the compacted context.".to_owned();
            Next { who: Who::Nobody, what }
        }
        (TakesEffect::OnResume, true, true) => {
            Next::user(format!("End this session and continue in the compacted one: {resume}"))
        }
        (TakesEffect::OnResume, true, false) => {
            Next::user(format!("Takes effect when the session is resumed: {resume}"))
        }
        (TakesEffect::OnResume, false, _) => Next::user(format!("Resume with: {resume}")),
    }
}
