//! Where each agent keeps its sessions: list them, find one by its id, tell which is the caller's. And everything else that
//! differs from agent to agent: what a write can reach, hooks, settings, its place when it compacts.
//!
//! **Invariants.** Nothing is written but by a [`Database`]. The environment is a value ([`Env`]), filled by `config`. Listing is cheap: of a
//! file, at most its first 64 KB are read. A folder that is not there holds no sessions; what cannot be read is left
//! out, as an agent would.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

mod claude_code;
mod codex;
mod gemini_cli;
pub mod hooks;
pub mod install;
mod opencode;
pub mod own_settings;
pub mod pi;
mod qwen_code;
pub mod reach;
pub mod seat;
pub mod sections;
pub mod settings;
pub mod statusline;

pub use codex::gateway;

use history::error::{Error, Kind, Result};
use sessions::{Format, Memory, Session, Source};

use hooks::AgentHooks;
use install::Registration;
use reach::{Job, Reach};
use seat::Seat;

/// An agent whose sessions can be found.
pub type AgentRef = &'static dyn Agent;

/// All agents, by name. A new one is a module with a value of the trait, and its place here.
pub const ALL: [AgentRef; 5] = [
    &claude_code::ClaudeCode,
    &codex::Codex,
    &gemini_cli::GeminiCli,
    &opencode::OpenCode,
    &qwen_code::QwenCode,
];

/// The agent that is meant where nothing says which one.
const ASSUMED: AgentRef = &claude_code::ClaudeCode;

/// What differs from agent to agent. What an agent does not define, it does not have.
pub trait Agent: Sync {
    /// The format of its sessions.
    fn format(&self) -> Format;

    /// The name used in arguments and JSON; the same as its format's.
    fn name(&self) -> &'static str {
        self.format().name()
    }

    /// The name it goes by among people.
    fn title(&self) -> &'static str;

    /// Other names that are understood, such as its program's.
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    /// How its environment tells that a process runs inside it.
    fn variables(&self) -> Variables {
        Variables::default()
    }

    /// The session that calls, where each MCP call says it; `meta` is the call's `_meta`.
    fn calling_session(&self, _meta: &serde_json::Map<String, Value>) -> Option<String> {
        None
    }

    /// The folder below which it looks for sessions.
    fn home(&self, env: &Env) -> PathBuf;

    /// Whether the environment makes it look for sessions elsewhere than below [`Self::home`].
    fn looks_elsewhere(&self, _env: &Env) -> bool {
        false
    }

    /// Its sessions, of one directory and of one id if these are given; in any order.
    fn search(&self, env: &Env, cwd: Option<&Path>, id: Option<&str>) -> Vec<Found>;

    /// Where it keeps sessions as rows of a database rather than files.
    fn database(&self) -> Option<&'static dyn Database> {
        None
    }

    /// The directory of a session's file, where it is noted beside the session rather than in it.
    fn directory_of(&self, _env: &Env, _path: &Path) -> Option<PathBuf> {
        None
    }

    /// Whether its records name the directory that the shell is in, which need not be the session's own.
    fn records_follow_shell(&self) -> bool {
        false
    }

    /// Where the session `id` lies now that lay at `path`.
    fn current_file(&self, _env: &Env, _id: &str, path: &Path) -> PathBuf {
        path.to_owned()
    }

    /// What the user typed, the newest last, from a log that it keeps of it.
    fn typed(&self, _env: &Env) -> Vec<Typed> {
        Vec::new()
    }

    /// Whether a session is in use, as far as it tells.
    fn is_running(&self, _env: &Env, _id: &str, _path: &Path) -> bool {
        false
    }

    /// Whether a call of the session is running: it may be what started this process.
    fn is_calling(&self, _session: &Found) -> bool {
        false
    }

    /// Its own lock on a session, where it has one.
    ///
    /// # Errors
    /// [`Live`](history::error::Kind::Live) if it is held.
    fn lock(&self, _env: &Env, _id: &str) -> Result<Option<fs::File>> {
        Ok(None)
    }

    /// The version that wrote a session, if it is of a later generation than what was seen. `head`: how the file begins.
    fn newer(&self, _head: &str) -> Option<String> {
        None
    }

    /// How a result goes back. `export`: the session is a file that was exported from its database.
    ///
    /// # Errors
    /// [`Refused`](history::error::Kind::Refused) where its sessions are only read.
    fn reach(&self, _job: Job, _live: bool, _export: bool) -> Result<Reach> {
        Err(reach::read_only(self.title()))
    }

    /// Where a new session goes, so that it is found. `None`: it takes one in from any file.
    ///
    /// # Errors
    /// [`Refused`](history::error::Kind::Refused) where its name for the directory cannot be told.
    fn place(&self, _env: &Env, _cwd: &Path, _file_name: &str) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    /// The fields of its records that name directories; none where its sessions cannot be moved to another machine.
    fn directory_fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// By what its records name a directory, besides its path.
    fn directory_name(&self, _directory: &Path) -> Option<String> {
        None
    }

    /// The name that a session's file has to have. `name`: the one it has.
    fn file_name(&self, _session: &Session, name: &str) -> String {
        name.to_owned()
    }

    /// The files that belong to a session's.
    fn beside(&self, _path: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The shell command that resumes a session from its directory; `id` is quoted.
    fn resume(&self, env: &Env, id: &str) -> String;

    /// The shell command that takes a file in and resumes what it holds; both are quoted.
    fn resume_file(&self, env: &Env, _file: &str, id: &str) -> String {
        self.resume(env, id)
    }

    /// A session as it was before a compaction whose summary is message `at`, if the summary's own session holds that: the
    /// archived one may lack what was written a moment later.
    fn before_summary(
        &self,
        _source: &dyn Source,
        _session: &Session,
        _at: usize,
        _handle: &str,
    ) -> Result<Option<(Memory, Session)>> {
        Ok(None)
    }

    /// What its hooks tell and take.
    fn hooks(&self) -> &'static AgentHooks {
        &AgentHooks::NONE
    }

    /// The context that the provider reported in a row of a session, in tokens, and the model.
    fn reported(&self, _row: &Value) -> Option<(u64, Option<String>)> {
        None
    }

    /// The settings files that `owner` (this agent, or a plugin of it) is configured in, the one that wins first.
    /// `config`: where programs keep their settings (`~/.config`).
    fn settings_files(&self, _env: &Env, _config: &Path, _owner: &str) -> Vec<PathBuf> {
        Vec::new()
    }

    /// `provider/model` that it would begin a session in `cwd` with, where a session has to name one.
    fn default_model(&self, _env: &Env, _config: &Path, _cwd: &Path) -> Option<String> {
        None
    }

    /// The context window that its settings, and those of the current directory, give a model, in tokens.
    fn model_window(&self, _env: &Env, _config: &Path, _model: &str) -> Option<u64> {
        None
    }

    /// When it compacts by itself, in a few words. `setting`: the value of `env:NAME` or `AGENT:path`.
    fn own_compaction(&self, setting: &dyn Fn(&str) -> Option<Value>) -> String;

    /// How it is told of our server and hooks; nothing where we do not edit its settings.
    fn registration(&self) -> Option<&'static Registration> {
        None
    }

    /// How it asks us to compact in its place.
    fn seat(&self) -> Option<&'static dyn Seat> {
        None
    }

    /// Whether its provider's requests can go through our gateway.
    fn has_gateway(&self) -> bool {
        false
    }

    /// Why it does not ask us to compact although we are installed.
    fn unheard(&self, _env: &Env, _setting: &dyn Fn(&str) -> Option<Value>) -> Option<Problem> {
        None
    }

    /// Who else compacts in it, and faults of its own that lose sessions.
    fn known_problems(&self, _env: &Env, _config: &Path) -> Vec<Problem> {
        Vec::new()
    }
}

/// Sessions as rows of a database. A session's bytes are what the agent exports.
pub trait Database: Agent {
    /// The bytes of a session.
    fn export(&self, database: &Path, id: &str) -> Result<Vec<u8>>;
    /// Makes the rows of `old` those of `new`, in one transaction.
    fn change(&self, database: &Path, old: &[u8], new: &[u8]) -> Result<()>;
    /// When the session was last written, in ms since 1970.
    fn changed_ms(&self, database: &Path, id: &str) -> Option<i64>;
    /// The ids of the messages and parts of an export, in order.
    fn ids(&self, export: &[u8]) -> Vec<String>;
    /// Ids of the messages and parts that `new` has and `old` has not, or not so.
    fn differing(&self, old: &[u8], new: &[u8]) -> Vec<String>;
    /// The export `now` with the rows of these ids as they were in `original`, or gone if they were not in it.
    fn without(&self, now: &[u8], original: &[u8], ids: &[String]) -> Result<Vec<u8>>;
    /// The export `now` without the compaction whose summary holds `handle`, and how many messages follow it. `None`: it
    /// has no such summary.
    fn without_compaction(&self, now: &[u8], handle: &str) -> Result<Option<(Vec<u8>, usize)>>;
    /// Whether an id is one of a session, of those that it gives.
    fn is_session(&self, id: &str) -> bool;
    /// Whether an id is one of a message.
    fn is_message(&self, id: &str) -> bool;
}

/// Environment variables by which an agent tells of itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Variables {
    /// One of them is set in every process that it starts.
    pub inside: &'static [&'static str],
    /// The id of the session that started the process.
    pub session: Option<&'static str>,
    pub project: Option<&'static str>,
}

/// Something that is wrong, and what can be done about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub what: String,
    pub remedy: String,
}

impl Problem {
    pub fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }
}

impl PartialEq for dyn Agent {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for dyn Agent {}

impl PartialOrd for dyn Agent {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn Agent {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}

impl fmt::Debug for dyn Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for dyn Agent {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for AgentRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        named(&name).ok_or_else(|| D::Error::custom(format!("expected an agent, found {name:?}")))
    }
}

/// The agent of that name, of its program's name, or as people write it (`Claude Code`).
pub fn named(name: &str) -> Option<AgentRef> {
    let name = name.trim().to_lowercase().replace([' ', '_'], "-");
    ALL.into_iter().find(|it| it.name() == name || it.aliases().contains(&name.as_str()))
}

/// The agent that keeps sessions of a format.
pub fn of_format(format: Format) -> Option<AgentRef> {
    ALL.into_iter().find(|it| it.format() == format)
}

/// The names of the agents that `which` chooses, for a sentence.
pub fn names(which: impl Fn(AgentRef) -> bool) -> String {
    let names: Vec<_> = ALL.into_iter().filter(|it| which(*it)).map(|it| it.name()).collect();
    names.join(", ")
}

/// The client of that name that lets us compact in its place.
///
/// # Errors
/// [`Arguments`](Kind::Arguments) for one that is not known.
pub fn seat_named(name: &str) -> Result<&'static dyn Seat> {
    let all = || ALL.into_iter().filter_map(|it| it.seat()).chain([&pi::PiSeat as &dyn Seat]);
    all().find(|it| it.name() == name).ok_or_else(|| {
        let names: Vec<_> = all().map(|it| it.name()).collect();
        Error::new(Kind::Arguments, format!("expected a client ({}), found {name:?}", names.join(", ")))
    })
}

/// What the environment says of agents and their folders.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Env {
    pub home: PathBuf,
    pub variables: BTreeMap<String, String>,
    /// The folders of `PATH`.
    pub path: Vec<PathBuf>,
    pub cwd: PathBuf,
    /// The agent that started this process, if one did.
    pub inside: Option<AgentRef>,
    /// The session that calls, where the agent says it.
    pub session: Option<String>,
}

impl Env {
    /// A variable that is set and not empty.
    pub fn text(&self, variable: &str) -> Option<&str> {
        self.variables.get(variable).map(String::as_str).filter(|it| !it.is_empty())
    }

    /// A variable as an absolute path; others are ignored.
    pub fn folder(&self, variable: &str) -> Option<PathBuf> {
        self.text(variable).map(PathBuf::from).filter(|it| it.is_absolute())
    }

    /// `NAME=value ` in front of a shell command that needs the same folder; nothing if the variable is not set.
    fn assigned(&self, variable: &str) -> String {
        let value = self.folder(variable).map(|it| reach::quoted(&it.to_string_lossy()));
        value.map(|it| format!("{variable}={it} ")).unwrap_or_default()
    }
}

/// A session that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub agent: AgentRef,
    /// The agent's id for it.
    pub id: String,
    /// Its file, or the database that holds it.
    pub path: PathBuf,
    /// The session that started it, for a sub-agent's.
    pub parent: Option<String>,
    /// Where it was started, as far as it can be told.
    pub cwd: Option<PathBuf>,
    /// Last change, ms since 1970.
    pub changed_ms: i64,
    /// The first 80 characters that the user said, white space folded; empty if they are not near its start.
    pub first_words: String,
    /// It is known to be running: its writer's lock is held, or it is the session that calls.
    pub live: bool,
}

impl Found {
    /// How to name it as a SESSION: its file, or `database#id`.
    pub fn address(&self) -> String {
        match self.agent.database() {
            Some(_) => format!("{}#{}", self.path.display(), self.id),
            None => self.path.display().to_string(),
        }
    }
}

/// A session's rows: the database, by the agent whose it is, and the id; of an address `database#id`.
pub fn split_address(address: &str) -> Option<(&'static dyn Database, &Path, &str)> {
    let (path, id) = address.rsplit_once('#')?;
    let database = ALL.into_iter().filter_map(|it| it.database()).find(|it| it.is_session(id))?;
    (!path.is_empty()).then(|| (database, Path::new(path), id))
}

/// All sessions, of one agent and one working directory if these are given: newest first, a sub-agent's right after
/// the session that started it.
pub fn list(env: &Env, agent: Option<AgentRef>, cwd: Option<&Path>) -> Vec<Found> {
    under_parents(search(env, agent, cwd, None))
}

/// A prompt that the user typed, as an agent logs it beside its sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    /// Whose log it is.
    pub agent: AgentRef,
    /// The session it was typed in.
    pub session: String,
    /// When, ms since 1970.
    pub at: i64,
    pub text: String,
}

/// What the user typed, the newest last, from the logs that agents keep of it. They are only read.
pub fn typed(env: &Env) -> Vec<Typed> {
    ALL.into_iter().flat_map(|it| it.typed(env)).collect()
}

/// The sessions of that id: usually one or none.
pub fn find(env: &Env, id: &str) -> Vec<Found> {
    under_parents(search(env, None, None, Some(id)))
}

/// The sessions whose id begins so.
pub fn find_beginning(env: &Env, id: &str) -> Vec<Found> {
    let mut found = search(env, None, None, None);
    found.retain(|it| it.id.starts_with(id));
    under_parents(found)
}

/// The session that calls. Several if they could all be meant: ask, and do nothing. None if no agent is known to call.
///
/// An agent that says its session is believed. One that does not may show it by the tool call that is running.
/// Otherwise it is the newest of this directory, unless another one was changed within the same two minutes.
pub fn current(env: &Env) -> Vec<Found> {
    const SAME_TIME_MS: i64 = 120_000;
    let Some(agent) = env.inside else { return Vec::new() };
    if let Some(id) = &env.session {
        return search(env, Some(agent), None, Some(id));
    }
    let mut found = list(env, Some(agent), Some(&env.cwd));
    found.retain(|it| it.parent.is_none());
    let calling: Vec<_> = found.iter().filter(|it| agent.is_calling(it)).cloned().collect();
    if !calling.is_empty() {
        found = calling;
    }
    let newest = found.first().map_or(0, |it| it.changed_ms);
    found.retain(|it| newest.saturating_sub(it.changed_ms) <= SAME_TIME_MS);
    if let [only] = found.as_mut_slice() {
        only.live = true;
    }
    found
}

fn search(env: &Env, agent: Option<AgentRef>, cwd: Option<&Path>, id: Option<&str>) -> Vec<Found> {
    let asked = ALL.into_iter().filter(|it| agent.is_none_or(|agent| agent == *it));
    let mut out: Vec<Found> = asked.flat_map(|it| it.search(env, cwd, id)).collect();
    for it in &mut out {
        it.live |= env.inside == Some(it.agent) && env.session.as_ref() == Some(&it.id);
    }
    out.sort_by(|a, b| b.changed_ms.cmp(&a.changed_ms).then_with(|| (a.agent, &a.id).cmp(&(b.agent, &b.id))));
    out
}

fn under_parents(found: Vec<Found>) -> Vec<Found> {
    use std::collections::BTreeSet;
    let there: BTreeSet<(AgentRef, String)> = found.iter().map(|it| (it.agent, it.id.clone())).collect();
    let mut children: BTreeMap<(AgentRef, String), Vec<Found>> = BTreeMap::new();
    let mut tops = Vec::new();
    for it in found {
        let parent = it.parent.clone().filter(|id| *id != it.id).map(|id| (it.agent, id));
        match parent.filter(|it| there.contains(it)) {
            Some(parent) => children.entry(parent).or_default().push(it),
            None => tops.push(it),
        }
    }
    // Depth first, without recursion: a stack whose top is next.
    let mut stack: Vec<Found> = tops.into_iter().rev().collect();
    let mut out = Vec::new();
    while let Some(it) = stack.pop() {
        if let Some(below) = children.remove(&(it.agent, it.id.clone())) {
            stack.extend(below.into_iter().rev());
        }
        out.push(it);
    }
    // Sub-agents that name each other in a circle have no top; they are not lost.
    out.extend(children.into_values().flatten());
    out
}

/// A file that may be a session, with what the folder says of it.
#[derive(Debug, Clone)]
struct SessionFile {
    path: PathBuf,
    changed_ms: i64,
    len: u64,
}

impl SessionFile {
    fn name(&self) -> &str {
        self.path.file_name().and_then(|it| it.to_str()).unwrap_or_default()
    }

    /// Its name without the last extension.
    fn stem(&self) -> &str {
        self.path.file_stem().and_then(|it| it.to_str()).unwrap_or_default()
    }

    fn head(&self) -> String {
        let mut bytes = Vec::new();
        if let Ok(file) = crate::files::open(&self.path) {
            // What was read before an error counts.
            let _ = file.take(HEAD).read_to_end(&mut bytes);
        }
        history::json::mend(&bytes).into_owned()
    }
}

/// How much of a file is looked at.
const HEAD: u64 = 65_536;

/// The regular files below `folder`, at most `depth` folders down. Never a FIFO or a device: opening these can hang.
fn files(folder: &Path, depth: usize) -> Vec<SessionFile> {
    let mut out = Vec::new();
    let mut open = vec![(folder.to_owned(), 0)];
    while let Some((folder, level)) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(about) = fs::metadata(&path) else { continue };
            if about.is_dir() && level < depth {
                open.push((path, level + 1));
            } else if about.is_file() {
                let changed = about.modified().ok().and_then(|it| it.duration_since(UNIX_EPOCH).ok());
                let changed_ms = changed.map_or(0, |it| it.as_millis() as i64);
                out.push(SessionFile { path, changed_ms, len: about.len() });
            }
        }
    }
    out.sort_by(|a, b| a.path.cmp(&b.path));
    out
}

/// The whole lines of a head that are JSON objects.
fn objects(head: &str) -> impl Iterator<Item = Value> {
    head.lines()
        .filter_map(|it| serde_json::from_str(it.trim_start_matches('\u{feff}')).ok())
        .filter(Value::is_object)
}

/// The first 80 characters, white space folded.
fn first_words(text: &str) -> String {
    let mut out = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        if count > 0 {
            out.push(' ');
            count += 1;
        }
        for it in word.chars() {
            if count >= 80 {
                return out.trim_end().to_owned();
            }
            out.push(it);
            count += 1;
        }
        if count >= 80 {
            break;
        }
    }
    out.trim_end().to_owned()
}

/// Both spellings of a directory: as given, and with symbolic links followed, as most agents record it.
fn spellings(cwd: &Path) -> Vec<PathBuf> {
    let mut out = vec![cwd.to_owned()];
    out.extend(fs::canonicalize(cwd).ok().filter(|it| it != cwd));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str, parent: Option<&str>, changed_ms: i64) -> Found {
        Found {
            agent: ASSUMED,
            id: id.into(),
            path: PathBuf::from("/x"),
            parent: parent.map(Into::into),
            cwd: None,
            changed_ms,
            first_words: String::new(),
            live: false,
        }
    }

    #[test]
    fn sub_agents_follow_their_parent() {
        let found = vec![
            session("c", Some("a"), 9),
            session("b", None, 8),
            session("d", Some("c"), 7),
            session("a", None, 6),
            session("x", Some("gone"), 5),
            session("p", Some("q"), 4),
            session("q", Some("p"), 3),
        ];
        let ids: Vec<_> = under_parents(found).into_iter().map(|it| it.id).collect();
        assert_eq!(ids, ["b", "a", "c", "d", "x", "q", "p"]);
    }

    #[test]
    fn folds_first_words() {
        assert_eq!(first_words("  a\n b\t c "), "a b c");
        assert_eq!(first_words(&"é ".repeat(100)).chars().count(), 79);
        assert_eq!(first_words(&"x".repeat(100)).len(), 80);
        assert_eq!(first_words(""), "");
    }

    #[test]
    fn nobody_calls() {
        let home = tempfile::tempdir().unwrap();
        let env = Env { home: home.path().to_owned(), ..Env::default() };
        assert_eq!((list(&env, None, None), current(&env), find(&env, "x")), (vec![], vec![], vec![]));
    }
}
