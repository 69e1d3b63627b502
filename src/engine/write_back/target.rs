//! Where an agent keeps a session, and whether it may be replaced there.

use std::path::{Path, PathBuf};

use crate::agents::write_back::{self, Operation, shell};
use crate::agents::{self, AgentRef, Database};
use crate::engine::input::open::{open_database, open_path};
use crate::engine::{Engine, Opened};
use crate::files::canonical;
use history::error::{Error, ErrorKind, Hint, Result};
use sessions::Format;

/// Bytes at the beginning of a session that name the version of the agent that wrote it.
const VERSION_IN: u64 = 262_144;

pub(crate) enum Location {
    File(PathBuf),
    Rows(&'static dyn Database, PathBuf, String),
}

impl Location {
    /// The location of an opened session.
    pub(crate) fn of(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else {
            let what = "applying: expected an agent's session, found messages";
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
    pub(super) live: bool,
    /// Whether this is an exported file, whose agent keeps sessions in a database: it must be imported again.
    pub(super) export: bool,
}

impl Target {
    /// # Errors
    ///
    /// No agent keeps the session, its agent would not find it there, it may not be replaced, or nothing is
    /// archived.
    pub(crate) fn of(engine: &Engine, opened: &Opened) -> Result<Self> {
        let agent = agent_of(opened.session.format)?;
        let place = Location::of(opened.path.as_deref())?;
        let export = agent.info().database.is_some() && matches!(place, Location::File(_));
        if !engine.store.keeps() {
            let what = "archiving is switched off in the configuration (persistence = \"none\"), and a session is \
                        replaced only if its original is archived";
            return Err(Error::new(ErrorKind::Refused, what).hint(Hint::WriteCopy));
        }
        if !export {
            in_reach(engine, agent, &place)?;
        }
        Ok(Self { agent, place, live: is_live(engine, opened), export })
    }

    /// Refuses a session that was written by a version of the agent newer than those whose format is known.
    pub(super) fn expect_known_version(&self, opened: &Opened) -> Result<()> {
        let head = opened.source.bytes(0..opened.source.len().min(VERSION_IN))?;
        let Some(version) = self.agent.untested_version(&history::json::mend(&head)) else { return Ok(()) };
        let what = format!(
            "applying: {} {version} wrote this session, and its format is known only for older versions; look for a \
             newer Epitome",
            self.agent.info().title
        );
        let refused = Error::new(ErrorKind::Refused, what).or_hint(Hint::WriteCopy);
        Err(refused.at_path(self.place.path()))
    }

    /// One shell command that resumes it, from any directory.
    pub(crate) fn resume(&self, engine: &Engine, path: &Path, id: &str, cwd: Option<&Path>) -> String {
        shell::resume_command(&engine.config.agents, self.agent, &[], self.export.then_some(path), id, cwd)
    }
}

/// Whether a result of this kind could be written back, as far as is known without doing it.
pub(crate) fn can_write_back(engine: &Engine, opened: &Opened, operation: Operation) -> bool {
    let checked = Target::of(engine, opened).and_then(|it| {
        it.agent.write_method(operation, it.live, it.export)?;
        it.expect_known_version(opened)
    });
    checked.is_ok()
}

/// Accepts only sessions that the agent itself would find, in files that may be replaced.
pub(crate) fn in_reach(engine: &Engine, agent: AgentRef, place: &Location) -> Result<()> {
    let path = place.path();
    let refused = |what: String| Error::new(ErrorKind::Refused, what).at_path(path);
    let about = std::fs::symlink_metadata(path)
        .map_err(|error| Error::new(ErrorKind::Input, "applying").at_path(path).because(error))?;
    if about.is_symlink() {
        let target = std::fs::read_link(path).unwrap_or_default();
        return Err(refused(format!(
            "applying would replace a symbolic link with a file; pass its target: {}",
            target.display()
        )));
    }
    if about.permissions().readonly() {
        let what = "applying: the file is not writable (chmod u+w)".to_owned();
        return Err(refused(what).or_hint(Hint::WriteCopy));
    }
    let env = &engine.config.agents;
    let is_found = || agent.looks_elsewhere(env) || canonical(path).starts_with(canonical(&agent.home(env)));
    if !is_found() {
        let what = format!(
            "applying: {} would not find the session there; expected it below {}",
            agent.info().title,
            agent.home(env).display()
        );
        return Err(refused(what).hint(Hint::WriteCopy));
    }
    Ok(())
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
    opened.live || write_back::is_live(&engine.config.agents, agent, id, place.path())
}
