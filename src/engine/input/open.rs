//! Opens the session that a caller names.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::agents::{self, AgentRef, Database, FoundSession};
use crate::engine::Engine;
use crate::engine::archive::marks::SessionMark;
use crate::engine::{archive::readable, input::caller};
use crate::files::File;
use crate::store::{Handle, Scope};
use history::History;
use history::error::{Error, ErrorKind, Result};
use sessions::{self, Format, MemorySource, Session, Source};
use tokens::{self, Estimator, TokenCounter, Tokenizer};

/// Maximum compactions of a project that are searched for one.
pub(crate) const MAX_COMPACTIONS_SEARCHED: u32 = 500;

/// How a caller names a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionRef {
    /// A path, an id, a handle, `current` or `latest`.
    Named(String),
    Inline(Vec<u8>),
    Unnamed,
}

/// A session that was read, and what it was read from.
pub struct Opened {
    pub source: Box<dyn Source + Send>,
    pub session: Session,
    /// Its file or database address; `None` if it was passed inline or comes from the archive.
    pub path: Option<PathBuf>,
    /// Its directory, if the agent's folders tell it.
    pub cwd: Option<PathBuf>,
    /// Whether it is known to be the calling session.
    pub live: bool,
}

/// Bytes at a session's end whose texts are kept even if it is only measured: the advice whether this is a
/// good moment reads them.
const WHOLE_END: u64 = 1 << 20;

impl Opened {
    /// A session that is in no file of an agent.
    pub(crate) fn in_memory(source: Box<dyn Source + Send>, session: Session) -> Self {
        Self { source, session, path: None, cwd: None, live: false }
    }

    /// Its directory by its agent's folders, else by its own records.
    pub(crate) fn directory(&self) -> Option<PathBuf> {
        self.cwd.clone().or_else(|| self.session.history.meta.cwd.as_deref().map(PathBuf::from))
    }

    pub(crate) fn read_as(self, session: Session) -> Self {
        let cwd = self.cwd.clone();
        Self { session, ..self }.started_in(cwd)
    }

    /// Sets the directory that its agent files it under. It replaces that of the records if these have none
    /// (Gemini CLI's older `.json`) or name the shell's: the archive's scope depends on it.
    fn started_in(mut self, cwd: Option<PathBuf>) -> Self {
        let follows =
            || agents::of_format(self.session.format).is_some_and(|it| it.info().records_follow_shell);
        if let Some(cwd) = &cwd
            && (self.session.history.meta.cwd.is_none() || follows())
        {
            self.session.history.meta.cwd = Some(cwd.display().to_string().into());
        }
        Self { cwd, ..self }
    }
}

/// How to read a source into a session, with the format and the agent if known.
struct Reader<'a> {
    read: &'a dyn Fn(&dyn Source, Option<Format>) -> Result<Session>,
    format: Option<Format>,
    agent: Option<&'a str>,
}

/// Reads a session completely.
const WHOLE: Reader<'static> = Reader { read: &sessions::read, format: None, agent: None };

/// Minimum length of a prefix that is accepted for a session's id, if only one session has it.
const SHORTEST_ID: usize = 4;

/// # Errors
///
/// No such session, several of that name, or content that is of no known format.
pub fn open(
    engine: &Engine,
    what: &SessionRef,
    format: Option<Format>,
    agent: Option<&str>,
) -> Result<Opened> {
    open_by(engine, &Reader { format, agent, ..WHOLE }, what)
}

/// Finds a session and reads what is needed to measure it with a counter of this kind, in memory that does
/// not grow with its texts. The result is good for estimates only.
///
/// # Errors
///
/// As for [`open`].
pub fn open_measured(
    engine: &Engine,
    what: &SessionRef,
    format: Option<Format>,
    agent: Option<&str>,
    tokenizer: Tokenizer,
) -> Result<Opened> {
    let read = |source: &dyn Source, format| {
        // Exact counts need the texts, and so does an estimate that no reported usage corrects.
        let needs_texts = match tokenizer {
            Tokenizer::Fixed(Estimator::O200k | Estimator::Cl100k) => true,
            Tokenizer::Fixed(_) => false,
            Tokenizer::Auto => !may_report_usage(source)?,
        };
        if needs_texts {
            return sessions::read(source, format);
        }
        let whole_from = source.len().saturating_sub(WHOLE_END);
        let keep = |text: &str, at| (at < whole_from).then(|| tokens::measured_stub(text));
        let session = sessions::scan(source, format, &keep)?;
        let has_usage = tokenizer != Tokenizer::Auto || TokenCounter::is_reported(&session.history);
        if has_usage { Ok(session) } else { sessions::read(source, Some(session.format)) }
    };
    open_by(engine, &Reader { read: &read, format, agent }, what)
}

/// Finds a session but reads only its format, since it may be damaged.
pub(crate) fn open_unread(
    engine: &Engine,
    what: &SessionRef,
    format: Option<Format>,
    agent: Option<&str>,
) -> Result<Opened> {
    let unread = |source: &dyn Source, format: Option<Format>| {
        Ok(Session::of(format.map_or_else(|| sessions::sniff(source), Ok)?, History::default()))
    };
    open_by(engine, &Reader { read: &unread, format, agent }, what)
}

fn open_by(engine: &Engine, reader: &Reader<'_>, what: &SessionRef) -> Result<Opened> {
    match what {
        SessionRef::Inline(bytes) => {
            read_by(reader, Box::new(MemorySource::new("messages", bytes.as_slice())), None)
        }
        SessionRef::Named(name) if name == "-" => {
            let mut bytes = Vec::new();
            std::io::stdin()
                .read_to_end(&mut bytes)
                .map_err(|error| Error::new(ErrorKind::Io, "reading standard input").because(error))?;
            read_by(reader, Box::new(MemorySource::new("-", bytes)), None)
        }
        SessionRef::Named(name) => open_named(engine, reader, name),
        SessionRef::Unnamed => open_found(reader, &default_session(engine, reader.agent)?),
    }
}

fn open_named(engine: &Engine, reader: &Reader<'_>, name: &str) -> Result<Opened> {
    let path = Path::new(name);
    if path.exists() {
        let opened = read_by(reader, Box::new(File::open(path)?), Some(absolute(path)?))?;
        let agent = agents::of_format(opened.session.format);
        let cwd = agent.and_then(|it| it.directory_of(&engine.config.agents, path));
        return Ok(opened.started_in(cwd));
    }
    if let Some((database, path, id)) = agents::split_address(name)
        && path.exists()
    {
        return read_database(reader, database, &absolute(path)?, id);
    }
    if name == "current" || name == "latest" {
        return open_found(reader, &named_session(engine, name, reader.agent)?);
    }
    if Handle::parse(name).is_some() && engine.store.locate(name, &engine.config.owner).is_ok() {
        let scope = readable::readable(engine, name, None)?;
        let bytes = engine.store.restore(&scope, name)?;
        return read_by(reader, Box::new(MemorySource::new(name, bytes)), None);
    }
    if name.contains('/') || name.contains('\\') || name.contains('.') {
        let what = "no such file; `epitome sessions` lists the sessions";
        return Err(Error::new(ErrorKind::Input, what).at(name, None));
    }
    open_found(reader, &session_by_id(engine, name, reader.agent)?)
}

/// Absolute, because the archive stores the path and is read from other directories too.
fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| {
        Error::new(ErrorKind::Io, "finding the session's directory").at_path(path).because(error)
    })
}

/// Which directories' sessions to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Directories {
    Here,
    All,
}

/// The sessions on disk, of one agent if it is named.
///
/// # Errors
///
/// No agent has that name.
pub fn sessions(engine: &Engine, agent: Option<&str>, of: Directories) -> Result<Vec<FoundSession>> {
    let agent = agent.map(named_agent).transpose()?;
    let cwd = match of {
        Directories::Here => Some(engine.config.agents.cwd.as_path()),
        Directories::All => None,
    };
    Ok(agents::list(&engine.config.agents, agent, cwd))
}

fn open_found(reader: &Reader<'_>, found: &FoundSession) -> Result<Opened> {
    let opened = match found.agent.info().database {
        Some(database) => read_database(reader, database, &found.path, &found.id),
        None => read_by(reader, Box::new(File::open(&found.path)?), Some(found.path.clone())),
    }?;
    Ok(Opened { live: found.live, ..opened.started_in(found.cwd.clone()) })
}

fn named_session(engine: &Engine, name: &str, agent: Option<&str>) -> Result<FoundSession> {
    if name == "current" {
        let mut env = engine.config.agents.clone();
        if let (Some(agent), None) = (env.inside, &env.session) {
            env.session = caller::recorded(engine, agent.name());
        }
        let found = agents::current(&env);
        return exactly_one(
            without_continued(engine, found),
            "expected the calling agent's session, found no calling agent",
        );
    }
    let newest = sessions(engine, agent, Directories::Here)?.into_iter().find(|it| it.parent.is_none());
    newest.ok_or_else(|| {
        let what = "expected a session of this directory, found none; `epitome sessions` lists all";
        Error::new(ErrorKind::Input, what)
    })
}

/// The sessions in `found` that continue in another one: each id with that of the session that a compaction
/// or an undo made of it. A session that was used again since is left out.
pub fn continued(engine: &Engine, found: &[FoundSession]) -> BTreeMap<String, String> {
    // Sessions that record no directory are stored without a project.
    let nowhere = engine.shared();
    let scopes: Vec<Scope> = engine.projects().into_iter().chain([nowhere]).collect();
    let compacted = scopes
        .iter()
        .flat_map(|it| engine.store.compactions(it, None, MAX_COMPACTIONS_SEARCHED).unwrap_or_default())
        .filter_map(|it| Some((it.session.id, it.applied?.session?)));
    let undone = scopes.iter().flat_map(|scope| {
        let into = |it: &FoundSession| {
            let mark = engine.store.marked(scope, &SessionMark::Undone.of(&it.id)).ok().flatten()?;
            Some((it.id.clone(), mark.value))
        };
        found.iter().filter_map(into)
    });
    let changed = |id: &str| found.iter().filter(|it| it.id == id).map(|it| it.changed_ms).max();
    let goes_on =
        |(old, new): &(String, String)| new != old && changed(new).is_some_and(|it| Some(it) >= changed(old));
    compacted.chain(undone).filter(goes_on).collect()
}

/// Leaves out sessions that continue in another one of `found`.
fn without_continued(engine: &Engine, mut found: Vec<FoundSession>) -> Vec<FoundSession> {
    if found.len() < 2 {
        return found;
    }
    let continued = continued(engine, &found);
    found.retain(|it| !continued.contains_key(&it.id));
    if let [only] = found.as_mut_slice() {
        only.live = true;
    }
    found
}

fn session_by_id(engine: &Engine, id: &str, agent: Option<&str>) -> Result<FoundSession> {
    let agent = agent.map(named_agent).transpose()?;
    let mut found = agents::find(&engine.config.agents, id);
    if found.is_empty() && id.len() >= SHORTEST_ID {
        found = agents::find_beginning(&engine.config.agents, id);
    }
    found.retain(|it| agent.is_none_or(|agent| it.agent == agent));
    exactly_one(found, "expected a session file, a session id or a handle, found nothing of that name; `epitome sessions` lists the sessions")
        .map_err(|error| error.at(id, None))
}

/// The session if none is named: the calling agent's, else the newest here. Otherwise the error lists the
/// newest elsewhere.
pub(crate) fn default_session(engine: &Engine, agent: Option<&str>) -> Result<FoundSession> {
    let inside = engine.config.agents.inside.map(|it| it.name());
    if inside.is_some() && agent.is_none_or(|it| inside == Some(it)) {
        match named_session(engine, "current", agent) {
            Ok(found) => return Ok(found),
            // The newest of several may belong to another caller.
            Err(error) if error.kind() == ErrorKind::Ambiguous => return Err(error),
            Err(_) => {}
        }
    }
    if let Ok(found) = named_session(engine, "latest", agent) {
        return Ok(found);
    }
    let anywhere: Vec<FoundSession> =
        sessions(engine, agent, Directories::All)?.into_iter().take(5).collect();
    if anywhere.is_empty() {
        let what = "which session? No agent's sessions were found here; give a file";
        return Err(Error::new(ErrorKind::Input, what));
    }
    let what =
        format!("which session? This directory has none. The newest elsewhere:{}", session_lines(&anywhere));
    Err(Error::new(ErrorKind::Input, what))
}

fn named_agent(name: &str) -> Result<AgentRef> {
    agents::named(name).ok_or_else(|| Error::unknown("an agent", agents::ALL.map(agents::Agent::name), name))
}

/// The only session, or an error that lists the candidates.
fn exactly_one(mut found: Vec<FoundSession>, none: &str) -> Result<FoundSession> {
    match found.len() {
        0 => Err(Error::new(ErrorKind::Input, none)),
        1 => Ok(found.remove(0)),
        _ => {
            let what = format!("several sessions match; name one by its id:{}", session_lines(&found));
            let ids = found.into_iter().map(|it| it.id).collect();
            Err(Error::new(ErrorKind::Ambiguous, what).candidates(ids))
        }
    }
}

fn session_lines(found: &[FoundSession]) -> String {
    let line = |it: &FoundSession| {
        let changed = sessions::derive::time(it.changed_ms);
        format!(
            "\n  {} {}  {}  {:?}",
            it.agent.name(),
            it.id,
            changed.get(..16).unwrap_or_default(),
            it.first_words
        )
    };
    found.iter().map(line).collect()
}

/// Whether a session may report usage: every format's key for it begins with `usage` or ends with `tokens`.
/// Stops at the first match, mostly in the first reply. A session without one is read whole at once, not
/// scanned first.
fn may_report_usage(source: &dyn Source) -> Result<bool> {
    const NAMES: [&[u8]; 2] = [b"\"usage", b"tokens\""];
    const BLOCK: u64 = 1 << 16;
    // A key that lies across two blocks is found in the second.
    const OVERLAP: u64 = 8;
    let mut at = 0;
    while at < source.len() {
        let end = source.len().min(at + BLOCK);
        let block = source.bytes(at.saturating_sub(OVERLAP)..end)?;
        if NAMES.iter().any(|it| memchr::memmem::find(&block, it).is_some()) {
            return Ok(true);
        }
        at = end;
    }
    Ok(false)
}

pub(crate) fn open_database(database: &dyn Database, path: &Path, id: &str) -> Result<Opened> {
    read_database(&WHOLE, database, path, id)
}

fn read_database(reader: &Reader<'_>, database: &dyn Database, path: &Path, id: &str) -> Result<Opened> {
    let bytes = database.export(path, id)?;
    let name = agents::address(path, id);
    let source = Box::new(MemorySource::new(name.as_str(), bytes));
    let reader = Reader { format: Some(database.format()), ..*reader };
    read_by(&reader, source, Some(PathBuf::from(name)))
}

pub(crate) fn open_path(path: &Path, format: Option<Format>) -> Result<Opened> {
    read(Box::new(File::open(path)?), format, Some(path.to_owned()))
}

pub(crate) fn read(
    source: Box<dyn Source + Send>,
    format: Option<Format>,
    path: Option<PathBuf>,
) -> Result<Opened> {
    read_by(&Reader { format, ..WHOLE }, source, path)
}

fn read_by(reader: &Reader<'_>, source: Box<dyn Source + Send>, path: Option<PathBuf>) -> Result<Opened> {
    let session = (reader.read)(&*source, reader.format)?;
    Ok(Opened { path, ..Opened::in_memory(source, session) })
}
