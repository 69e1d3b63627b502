//! Putting a result where the agent resumes from it: claim, look again, write, read back, install.
//!
//! The plan was made without a lock. Here the agent's own lock is taken, the session is read again, and what it grew by
//! belongs to the end; if anything else changed, nothing is written. What will stand there is put down in the archive
//! before it stands there, so that a restore knows what it finds even if this process dies in between.

pub(super) mod readback;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::agents::reach::{self, Job, Way};
use crate::agents::{self, AgentRef, Database};
use crate::answers::{Next, TakesEffect, Who};
use crate::engine::archive::marks::compacted_mark;
use crate::engine::input::open::{open_database, open_path};
use crate::engine::{Engine, Opened};
use crate::files::Reading;
use crate::store::{Applied, AppliedMode, Digest, Handle};
use history::History;
use history::error::{Error, ErrorKind, Hint, Result};
use sessions::{Format, Mode, Piece, Source as _, Written};

/// How long after a compaction a session is not compacted again, unless its profile says more: 30 seconds, the
/// cool-down of opencode-supermemory 2.0.
const COOL_DOWN_MS: i64 = 30_000;

/// Bytes at the beginning of a session in which it says which version wrote it.
const VERSION_IN: u64 = 262_144;

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

/// What a restore needs to know of what was written. It is the fingerprint in [`Applied`].
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct WrittenFingerprint {
    /// Bytes of the file.
    pub(crate) len: u64,
    /// Their SHA-256.
    pub(crate) digest: String,
    /// Live messages in it.
    pub(crate) messages: usize,
    /// Of these, how many came after the session was archived.
    pub(crate) grown: usize,
    /// Ids of rows that were added to a database, or changed in it.
    #[serde(default)]
    pub(crate) rows: Vec<String>,
    /// Where a file was written over, from and to. Killed in the midst of it, what stands there may be neither; all
    /// around it is as it was.
    #[serde(default)]
    pub(crate) over: Vec<(u64, u64)>,
}

impl WrittenFingerprint {
    /// How many of the live messages were archived.
    pub(crate) fn archived(&self) -> usize {
        self.messages.saturating_sub(self.grown)
    }
}

pub(crate) enum Location {
    File(PathBuf),
    Rows(&'static dyn Database, PathBuf, String),
}

impl Location {
    /// Of a session that was opened.
    pub(crate) fn of(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else {
            let what = "applying: expected a session that an agent keeps, found messages";
            return Err(Error::new(ErrorKind::Arguments, what).hint(Hint::WriteCopy));
        };
        let address = path.to_string_lossy();
        Ok(match agents::split_address(&address).filter(|_| !path.exists()) {
            Some((database, path, id)) => Self::Rows(database, path.to_owned(), id.to_owned()),
            None => Self::File(path.to_owned()),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::File(path) | Self::Rows(_, path, _) => path,
        }
    }

    /// Reads the session that is there now.
    pub(crate) fn open(&self, format: Format) -> Result<Opened> {
        match self {
            Self::File(path) => open_path(path, Some(format)),
            Self::Rows(database, path, id) => open_database(*database, path, id),
        }
    }
}

/// A session that an agent keeps, in a place where it may be replaced.
pub(crate) struct Target {
    pub(crate) agent: AgentRef,
    pub(crate) place: Location,
    /// Whether the session is in use, as far as is known.
    live: bool,
    /// A file of an agent that keeps its sessions in a database: it is imported again.
    export: bool,
}

impl Target {
    /// # Errors
    ///
    /// No agent keeps it, its agent would not find it where it is, it may not be replaced, or nothing is archived.
    pub(crate) fn of(engine: &Engine, opened: &Opened) -> Result<Self> {
        let agent = agent_of(opened.session.format)?;
        let place = Location::of(opened.path.as_deref())?;
        let export = agent.info().database.is_some() && matches!(place, Location::File(_));
        if !engine.store.keeps() {
            let what = "the configuration says that nothing is archived (persistence = \"none\"), and nothing is replaced \
                        without its original";
            return Err(Error::new(ErrorKind::Refused, what).hint(Hint::WriteCopy));
        }
        if !export {
            in_reach(engine, agent, &place)?;
        }
        Ok(Self { agent, place, live: is_live(engine, opened), export })
    }

    /// Refuses a session that a newer version of the agent wrote than the form is known of.
    fn expect_known_version(&self, opened: &Opened) -> Result<()> {
        let head = opened.source.bytes(0..opened.source.len().min(VERSION_IN))?;
        let Some(version) = reach::newer(self.agent, &head) else { return Ok(()) };
        let what = format!(
            "applying: {} {version} wrote this session, which is newer than what its form is known of; look for a \
             newer epitome",
            self.agent.info().title
        );
        let refused = Error::new(ErrorKind::Refused, what).or_hint(Hint::WriteCopy);
        Err(refused.at_path(self.place.path()))
    }

    /// One shell command that resumes it, from any directory.
    pub(crate) fn resume(&self, engine: &Engine, path: &Path, id: &str, cwd: Option<&Path>) -> String {
        let env = &engine.config.agents;
        match self.export {
            true => reach::resume_file(env, self.agent, path, id, cwd),
            false => reach::resume(env, self.agent, id, cwd),
        }
    }
}

/// Whether a result of this kind could be written back, as far as is known without doing it.
pub(crate) fn can_write_back(engine: &Engine, opened: &Opened, job: Job) -> bool {
    let checked = Target::of(engine, opened).and_then(|it| {
        it.agent.reach(job, it.live, it.export)?;
        it.expect_known_version(opened)
    });
    checked.is_ok()
}

/// The agent that keeps sessions of this format.
pub(crate) fn agent_of(format: Format) -> Result<AgentRef> {
    agents::of_format(format).ok_or_else(|| {
        let what = format!("applying: expected the session of an agent, found {}", format.name());
        Error::new(ErrorKind::Arguments, what).hint(Hint::WriteCopy)
    })
}

/// Whether the session is in use, as far as is known.
pub(crate) fn is_live(engine: &Engine, opened: &Opened) -> bool {
    let (Ok(agent), Ok(place)) = (agent_of(opened.session.format), Location::of(opened.path.as_deref()))
    else {
        return false;
    };
    let id = opened.session.history.meta.session.as_deref().unwrap_or_default();
    opened.live || reach::is_live(&engine.config.agents, agent, id, place.path())
}

/// When a session was last compacted by us or, as a hook reported, by its agent; ms since 1970.
pub(crate) fn last_compaction(engine: &Engine, history: &History) -> Option<i64> {
    compaction_mark(engine, history).map(|it| it.at)
}

fn compaction_mark(engine: &Engine, history: &History) -> Option<crate::store::Mark> {
    let name = compacted_mark(history.meta.session.as_deref()?);
    engine.store.marked(&engine.scope(history), &name).ok().flatten()
}

/// Why a session may not be compacted again yet, if so.
pub(crate) fn cooling_down(engine: &Engine, history: &History, profile_seconds: u64) -> Option<String> {
    let wait = COOL_DOWN_MS.max(i64::try_from(profile_seconds).unwrap_or(i64::MAX).saturating_mul(1000));
    let mark = compaction_mark(engine, history)?;
    let since = engine.now.saturating_sub(mark.at);
    // What its agent did by itself is not for us to take back.
    let undo = Handle::parse(&mark.value)
        .map(|it| format!("; `epitome undo {}` takes it back", it.as_str()))
        .unwrap_or_default();
    (0..wait).contains(&since).then(|| {
        let (since, wait) = (since / 1000, wait / 1000);
        format!("this session was compacted {since} s ago; wait {wait} s between compactions{undo}")
    })
}

/// Puts `after` in the place of `opened`; also returns what its user should know. `compaction`: the handle under which
/// it was archived.
pub(crate) fn install(
    engine: &Engine,
    opened: &Opened,
    after: &History,
    job: Job,
    compaction: &str,
) -> Result<(Installed, Vec<String>)> {
    let target = Target::of(engine, opened)?;
    let Target { agent, place, live, .. } = &target;
    let reach = agent.reach(job, *live, target.export)?;
    let id = opened.session.history.meta.session.as_deref().unwrap_or_default().to_owned();
    let _claim = match reach.way {
        Way::Replace if !live => Some(reach::claim(&engine.config.agents, *agent, &id)?),
        Way::Replace | Way::InPlace | Way::Beside | Way::Rows => None,
    };
    let fresh = place.open(opened.session.format)?;
    target.expect_known_version(&fresh)?;
    let (after, grown) = rebased(&opened.session.history, &fresh.session.history, after)?;
    let written = readback::written(&fresh, &after, reach.mode)?;
    let mut warnings = written.warnings.clone();
    let new_id = written.session.clone().unwrap_or(id);
    let path = match (place, reach.way, &written.file_name) {
        (Location::File(path), Way::Beside, Some(name)) => path.with_file_name(name),
        _ => place.path().to_owned(),
    };
    let scope = engine.scope(&opened.session.history);
    let messages = after.messages().len();
    let mark = mark(place, reach.way, &fresh, &written, messages, grown)?;
    let output = match reach.way {
        Way::Rows => agents::address(&path, &new_id),
        Way::Replace | Way::InPlace | Way::Beside => path.display().to_string(),
    };
    let applied = Applied {
        path: Some(output.clone()),
        session: written.session.clone(),
        mode: match reach.mode {
            Mode::Patch => AppliedMode::Patch,
            Mode::Append => AppliedMode::Append,
            Mode::New => AppliedMode::New,
        },
        fingerprint: history::json::compact(&mark),
    };
    engine.store.finish(&scope, compaction, &applied)?;
    put(place, &path, reach.way, &fresh, &written)?;
    if job == Job::Compact {
        for id in [Some(&*new_id), opened.session.history.meta.session.as_deref()].into_iter().flatten() {
            if let Err(error) = engine.store.mark(&scope, &compacted_mark(id), compaction, engine.now) {
                // What was written is written.
                warnings.push(format!("when it was compacted could not be noted: {}", error.full()));
            }
        }
    }
    let cwd = opened.cwd.clone().or_else(|| opened.session.history.meta.cwd.as_deref().map(PathBuf::from));
    if cwd.is_none() {
        warnings.push("the session records no directory: resume it from the project's directory".to_owned());
    }
    let resume = target.resume(engine, &path, &new_id, cwd.as_deref());
    let next = next(reach.takes_effect, *live, written.session.is_some(), &resume);
    let installed = Installed { output, session_id: new_id, resume, takes_effect: reach.takes_effect, next };
    Ok((installed, warnings))
}

/// What an undo will compare the session with.
fn mark(
    place: &Location,
    way: Way,
    fresh: &Opened,
    written: &Written,
    messages: usize,
    grown: usize,
) -> Result<WrittenFingerprint> {
    let content = written.over(&*fresh.source);
    let rows = match place {
        Location::Rows(database, ..) => {
            let (old, new) = (&*fresh.source, &content);
            database.differing(&old.whole()?, &new.whole()?)
        }
        Location::File(_) => Vec::new(),
    };
    let over = match way {
        Way::InPlace => edits(written, fresh)?.iter().map(|(at, it)| (*at, at + it.len() as u64)).collect(),
        Way::Replace | Way::Beside | Way::Rows => Vec::new(),
    };
    let digest = Digest::of_source(&content, content.len())?.to_string();
    Ok(WrittenFingerprint { len: content.len(), digest, messages, grown, rows, over })
}

/// Only sessions that the agent itself would find, in files that may be replaced.
pub(crate) fn in_reach(engine: &Engine, agent: AgentRef, place: &Location) -> Result<()> {
    let path = place.path();
    let refused = |what: String| Error::new(ErrorKind::Refused, what).at_path(path);
    let about = std::fs::symlink_metadata(path)
        .map_err(|error| Error::new(ErrorKind::Input, "applying").at_path(path).because(error))?;
    if about.is_symlink() {
        let target = std::fs::read_link(path).unwrap_or_default();
        return Err(refused(format!(
            "applying would replace a symbolic link by a file; pass its target: {}",
            target.display()
        )));
    }
    if about.permissions().readonly() {
        let what = "applying: the file may not be written (chmod u+w)".to_owned();
        return Err(refused(what).or_hint(Hint::WriteCopy));
    }
    let env = &engine.config.agents;
    if !reach::is_found(env, agent, path) {
        let what = format!(
            "applying: {} would not find it there; expected it below {}",
            agent.info().title,
            agent.home(env).display()
        );
        return Err(refused(what).hint(Hint::WriteCopy));
    }
    Ok(())
}

/// The result with what the session grew by since it was read, and by how many messages.
fn rebased(before: &History, now: &History, after: &History) -> Result<(History, usize)> {
    let (old, new) = (before.messages(), now.messages());
    if new.len() < old.len() || !old.iter().zip(new).all(|(one, other)| one.says_same(other)) {
        let what = "the session is not what it was when it was read; nothing was changed; run this again";
        return Err(Error::new(ErrorKind::Changed, what));
    }
    let grown = &new[old.len()..];
    if grown.is_empty() {
        return Ok((after.clone(), 0));
    }
    let messages = after.messages().iter().chain(grown).cloned().collect();
    Ok((History::new(messages, now.meta.clone()), grown.len()))
}

fn put(place: &Location, target: &Path, way: Way, fresh: &Opened, written: &Written) -> Result<()> {
    let old = &*fresh.source;
    match (way, place) {
        (_, Location::Rows(database, ..)) => database.change(target, &old.whole()?, &written.bytes(old)?),
        (Way::InPlace, _) => crate::files::overwrite(target, &edits(written, fresh)?),
        (Way::Beside, _) => crate::files::create(target, &written.bytes(old)?, place.path()),
        (Way::Replace | Way::Rows, _) => {
            crate::files::replace_from(target, old.len(), &mut Reading::of(&written.over(old)))
        }
    }
}

/// The stretches that differ, each from its first differing byte to the last. Each must be as long as what it replaces.
fn edits(written: &Written, fresh: &Opened) -> Result<Vec<(u64, Vec<u8>)>> {
    let mut out = Vec::new();
    let mut at = 0;
    for piece in &written.pieces {
        match piece {
            Piece::Keep(range) if range.start == at => at = range.end,
            Piece::New(bytes) => {
                let end = (at + bytes.len() as u64).min(fresh.source.len());
                out.extend(crate::files::differing(at, &fresh.source.bytes(at..end)?, bytes));
                at += bytes.len() as u64;
            }
            Piece::Keep(_) => {
                let what = "a placeholder is longer than the output it replaces, and nothing may move in a file that its \
                            client appends to; compact instead";
                return Err(Error::new(ErrorKind::Refused, what).or_hint(Hint::SkipOutput));
            }
        }
    }
    if at != fresh.source.len() {
        return Err(Error::new(ErrorKind::Refused, "the file would change its length; nothing was written"));
    }
    Ok(out)
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
        (TakesEffect::OnResume, false, _) => Next::user(format!("Go on with: {resume}")),
    }
}
