//! Restores a session in the way that its compaction was written.

use std::path::{Path, PathBuf};
use std::{fmt, fs};

use crate::agents::write_back::{self, Operation, Placement};
use crate::agents::{self, AgentRef, Database};
use crate::answers::RestoreStatus;
use crate::engine::input::open::open_path;
use crate::engine::undo::outcome::{Done, changed};
use crate::engine::write_back::{Location, WrittenFingerprint, agent_of};
use crate::engine::{Engine, Opened, write_back::readback};
use crate::files::Reading;
use crate::store::{Applied, AppliedMode, Compaction, Digest};
use history::error::{Error, ErrorKind, Hint, Result};
use history::{History, Message};
use sessions::{self, MemorySource, Mode, Session, Source};

pub(crate) struct Undo<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) compaction: &'a Compaction,
    pub(super) applied: &'a Applied,
    pub(super) mark: WrittenFingerprint,
    pub(crate) source: MemorySource,
    pub(crate) session: Session,
}

impl Undo<'_> {
    pub(super) fn run(&self) -> Result<Done> {
        let written = self.applied.path.clone().unwrap_or_default();
        let target = absolute(&written)?;
        match (self.applied.mode, target) {
            (AppliedMode::New, target) => self.undo_new_session(&target),
            (AppliedMode::Seat, Location::Rows(database, path, id)) => {
                self.undo_seat_rows(database, &path, &id)
            }
            (AppliedMode::Seat, Location::File(path)) => self.undo_seat_file(&path),
            (_, Location::Rows(database, path, id)) => self.undo_rows(database, &path, &id),
            (AppliedMode::Append, Location::File(path)) => self.undo_append(&path),
            (AppliedMode::Patch | AppliedMode::Repair, Location::File(path)) => self.undo_patch(&path),
        }
    }

    pub(crate) fn done(&self, status: RestoreStatus, output: impl fmt::Display) -> Done {
        let id = self.compaction.session.id.clone();
        Done { status, id, output: output.to_string(), later: 0, warnings: Vec::new() }
    }

    /// The original's messages, then the later turns. Messages that `now` still has are taken from it.
    fn merged_history(&self, now: &Session) -> Result<(History, usize)> {
        let messages = now.history.messages();
        let said = messages.get(self.mark.archived()..).ok_or_else(|| {
            let what = "undoing: expected at least the messages that were written, found fewer: the session was compacted or \
                        rewound since; undo that first";
            Error::new(ErrorKind::Changed, what).or_hint(Hint::RestoreCopy)
        })?;
        let mut next = 0;
        let mut all: Vec<Message> = Vec::new();
        for old in self.session.history.messages() {
            let found = messages[next..].iter().position(|it| it.says_same(old));
            let mut message = detached(old);
            if let Some(found) = found {
                message = messages[next + found].clone();
                next += found + 1;
            }
            all.push(message);
        }
        // The kept tail is in both, and was matched above.
        let later: Vec<Message> =
            said.iter().filter(|it| it.from.is_none_or(|it| it as usize >= next)).cloned().collect();
        let count = later.len();
        all.extend(later);
        Ok((History::new(all, now.history.meta.clone()), count))
    }

    /// Undoes an appended compaction: with the old bytes if nothing came since, else by writing the old
    /// messages again.
    fn undo_append(&self, path: &Path) -> Result<Done> {
        let agent = agent_of(self.session.format)?;
        let (path, now, live, _lock) = &self.lock_current_file(agent, path)?;
        let digest = Digest::of_source(&*now.source, now.source.len())?;
        if digest == Digest::of_source(&self.source, self.source.len())? {
            return Ok(self.done(RestoreStatus::Unchanged, path.display()));
        }
        if !*live && self.mark.grown == 0 && digest.to_string() == self.mark.digest {
            crate::files::replace(path, now.source.len(), &mut Reading::of(&self.source))?;
            return Ok(self.done(RestoreStatus::Restored, path.display()));
        }
        let (after, later) = self.merged_history(&now.session)?;
        let export = agent.info().database.is_some();
        let method = agent.write_method(Operation::Restore, *live, export)?;
        self.write_messages(now, &after, &method, path, later)
    }

    /// The file that the session uses now, opened, whether it is in use, and its agent's lock if it is not.
    pub(super) fn lock_current_file(
        &self,
        agent: AgentRef,
        path: &Path,
    ) -> Result<(PathBuf, Opened, bool, Option<fs::File>)> {
        let (env, id) = (&self.engine.config.agents, &self.compaction.session.id);
        let path = agent.current_file(env, id, path);
        let live = write_back::is_live(env, agent, id, &path);
        let lock = if live { None } else { agent.lock(env, id)? };
        let now = open_path(&path, Some(self.session.format))?;
        Ok((path, now, live, lock))
    }

    /// Writes the messages the way the agent itself would continue: in the file, or in a new one beside it.
    pub(super) fn write_messages(
        &self,
        opened: &Opened,
        after: &History,
        method: &write_back::WriteMethod,
        path: &Path,
        later: usize,
    ) -> Result<Done> {
        let written = readback::write_and_verify(opened, after, method.mode)?;
        let mut done = self.done(RestoreStatus::Restored, path.display());
        match (method.placement, &written.file_name) {
            (Placement::NewFile, Some(name)) => {
                let beside = path.with_file_name(name);
                crate::files::create(&beside, &written.bytes(&*opened.source)?, path)?;
                done.output = beside.display().to_string();
            }
            _ => {
                let content = written.over(&*opened.source);
                crate::files::replace(path, opened.source.len(), &mut Reading::of(&content))?;
            }
        }
        done.id = written.session.unwrap_or(done.id);
        Ok(Done { later, warnings: written.warnings, ..done })
    }

    /// Undoes outputs replaced in place: writes back their old bytes and nothing else.
    fn undo_patch(&self, path: &Path) -> Result<Done> {
        let now = open_path(path, Some(self.session.format))?;
        let len = self.source.len();
        if now.source.len() < len || now.source.len() < self.mark.len {
            return Err(changed(path));
        }
        let original = self.source.bytes(0..len)?;
        let bytes = now.source.bytes(0..len)?;
        if bytes == original {
            return Ok(self.done(RestoreStatus::Unchanged, path.display()));
        }
        // If the process was killed while writing, its ranges may be partly written; all around them must be
        // unchanged.
        let around = |over: &[(u64, u64)]| {
            let starts = std::iter::once(0).chain(over.iter().map(|it| it.1 as usize));
            let ends = over.iter().map(|it| it.0 as usize).chain([original.len()]);
            starts.zip(ends).all(|(from, to)| original.get(from..to) == bytes.get(from..to))
        };
        let as_written = Digest::of(&now.source.bytes(0..self.mark.len)?).to_string() == self.mark.digest;
        if !as_written && (self.mark.over.is_empty() || !around(&self.mark.over)) {
            return Err(changed(path));
        }
        let range = |it: &sessions::Record| (it.range().start as usize, it.range().end as usize);
        let edits: Vec<(u64, Vec<u8>)> = self
            .session
            .records
            .iter()
            .map(range)
            .filter_map(|(from, to)| {
                crate::files::differing(from as u64, bytes.get(from..to)?, original.get(from..to)?)
            })
            .collect();
        crate::files::overwrite(path, &edits)?;
        let later = now.session.history.messages().len().saturating_sub(self.mark.archived());
        Ok(Done { later, ..self.done(RestoreStatus::Restored, path.display()) })
    }

    /// Undoes changes in a database: deletes rows that were added, restores rows that were changed.
    fn undo_rows(&self, database: &dyn Database, path: &Path, id: &str) -> Result<Done> {
        let now = database.export(path, id)?;
        let original = self.source.whole()?;
        let output = agents::address(path, id);
        let before = database.without(&now, &original, &self.mark.rows)?;
        let ids = database.ids(&before);
        if ids == database.ids(&now) && database.differing(&now, &before).is_empty() {
            return Ok(self.done(RestoreStatus::Unchanged, &output));
        }
        database.change(path, &now, &before)?;
        let known = database.ids(&original);
        let later = ids.iter().filter(|it| database.is_message(it) && !known.contains(it)).count();
        Ok(Done { later, ..self.done(RestoreStatus::Restored, &output) })
    }

    /// Undoes a new session: the old one was never touched. If the new one continued, a third session gets
    /// the old messages and then the new ones.
    fn undo_new_session(&self, target: &Location) -> Result<Done> {
        let old = self.compaction.session.path.clone().unwrap_or_default();
        let old = absolute(&old)?;
        let later: Vec<Message> = match target.open(self.session.format) {
            Ok(new) => new.session.history.messages().iter().skip(self.mark.archived()).cloned().collect(),
            // Never written, or deleted since.
            Err(error) if is_gone(target, &error) => Vec::new(),
            Err(error) => return Err(error),
        };
        if later.is_empty() {
            return self.restore_old(&old);
        }
        let mut all = self.session.history.messages().to_vec();
        let count = later.len();
        all.extend(later.into_iter().map(|it| Message { from: None, ..it }));
        let after = History::new(all, self.session.history.meta.clone());
        let opened = Opened::in_memory(Box::new(self.source.clone()), self.session.clone());
        let written = readback::write_and_verify(&opened, &after, Mode::New)?;
        let bytes = written.bytes(&*opened.source)?;
        let id = written.session.unwrap_or_default();
        let output = match (&old, &written.file_name) {
            (Location::Rows(database, path, _), _) => {
                database.change(path, &self.source.whole()?, &bytes)?;
                agents::address(path, &id)
            }
            (Location::File(path), Some(name)) => {
                let beside = path.with_file_name(name);
                crate::files::create(&beside, &bytes, path)?;
                beside.display().to_string()
            }
            (Location::File(path), None) => path.display().to_string(),
        };
        Ok(Done { status: RestoreStatus::Restored, id, output, later: count, warnings: written.warnings })
    }

    /// The old session, written again if its file is gone.
    fn restore_old(&self, old: &Location) -> Result<Done> {
        match old {
            Location::File(path) if path.exists() => Ok(self.done(RestoreStatus::Unchanged, path.display())),
            Location::File(path) => {
                crate::files::create(path, &self.source.whole()?, path)?;
                Ok(self.done(RestoreStatus::Restored, path.display()))
            }
            Location::Rows(_, path, id) => Ok(self.done(RestoreStatus::Unchanged, agents::address(path, id))),
        }
    }
}

/// A message to be written as a new one: without what ties it to the session that it was read from.
pub(super) fn detached(message: &Message) -> Message {
    Message { from: None, usage: None, wire_len: None, replaced: None, ..message.clone() }
}

/// The location of an archived path. It must be absolute, since undo may be called from any directory.
fn absolute(path: &str) -> Result<Location> {
    let place = Location::of(Some(Path::new(path)))?;
    if !place.path().is_absolute() {
        let what =
            format!("undoing: expected the absolute path of the session in the archive, found {path:?}");
        return Err(Error::new(ErrorKind::Store, what).hint(Hint::RestoreCopy));
    }
    Ok(place)
}

/// Whether a session could not be read because it is not there.
fn is_gone(place: &Location, error: &Error) -> bool {
    match place {
        Location::File(path) => !path.exists(),
        // The error of a database for a session that it does not hold.
        Location::Rows(_, path, _) => !path.exists() || error.kind() == ErrorKind::Arguments,
    }
}
