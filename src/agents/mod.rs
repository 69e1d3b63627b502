//! Where each agent keeps its sessions: list them, find one by its id, tell which is the caller's. And everything else
//! that differs from agent to agent: what a write can reach, hooks, settings, its place when it compacts.
//!
//! **Invariants.** Nothing is written but by a [`Database`] and by Codex' writer locks. The environment is a value
//! ([`Env`]), filled by `config`. Listing is cheap: of a file, at most its first 64 KB are read. A folder that is not
//! there holds no sessions; what cannot be read is left out, as an agent would.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

mod claude_code;
mod codex;
mod find;
mod gemini_cli;
pub mod hooks;
pub mod install;
mod opencode;
mod pi;
mod qwen_code;
pub mod reach;
pub mod seat;
pub mod settings;

pub use codex::gateway;
pub use find::{FoundSession, TypedPrompt, current, find, find_beginning, list, sub_agents, typed};

use history::error::{Error, Result};
use sessions::{Format, MemorySource, Session};

use find::scan::{HEAD, SessionFile, files, first_words, objects, spellings};
use hooks::AgentHooks;
use install::Registration;
use reach::{Job, Reach};
use seat::Seat;

/// An agent whose sessions can be found.
pub type AgentRef = &'static dyn Agent;

/// All agents, by name. A new one is a module with a value of the trait, and its place here.
pub const ALL: [AgentRef; 6] = [
    &claude_code::ClaudeCode,
    &codex::Codex,
    &gemini_cli::GeminiCli,
    &opencode::OpenCode,
    &pi::Pi,
    &qwen_code::QwenCode,
];

/// The agent that is meant where nothing says which one.
const ASSUMED: AgentRef = &claude_code::ClaudeCode;

/// What is constant about an agent.
pub struct AgentInfo {
    pub format: Format,
    pub title: &'static str,
    /// Other names that are understood, such as its program's.
    pub aliases: &'static [&'static str],
    /// How its environment tells that a process runs inside it.
    pub variables: Variables,
    /// Where it keeps sessions as rows of a database rather than files.
    pub database: Option<&'static dyn Database>,
    /// Whether its records name the directory that the shell is in, which need not be the session's own.
    pub records_follow_shell: bool,
    /// The fields of its records that name directories; none where its sessions cannot be moved to another machine.
    pub directory_fields: &'static [&'static str],
    /// What its hooks report and accept.
    pub hooks: AgentHooks,
    /// How our server and hooks are put into its settings; nothing where we do not edit them.
    pub registration: Option<&'static Registration>,
    /// How it asks us to compact in its place.
    pub seat: Option<&'static dyn Seat>,
    /// Whether its provider's requests can go through our gateway.
    pub has_gateway: bool,
}

impl AgentInfo {
    /// An agent of which nothing but sessions is known.
    pub const fn new(format: Format, title: &'static str) -> Self {
        Self {
            format,
            title,
            aliases: &[],
            variables: Variables::NONE,
            database: None,
            records_follow_shell: false,
            directory_fields: &[],
            hooks: AgentHooks::NONE,
            registration: None,
            seat: None,
            has_gateway: false,
        }
    }
}

/// What differs from agent to agent. What an agent does not define, it does not have.
pub trait Agent: Sync {
    fn info(&self) -> &'static AgentInfo;

    fn format(&self) -> Format {
        self.info().format
    }

    /// The name used in arguments and JSON; the same as its format's.
    fn name(&self) -> &'static str {
        self.format().name()
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
    fn search(&self, env: &Env, cwd: Option<&Path>, id: Option<&str>) -> Vec<FoundSession>;

    /// The directory of a session's file, where it is noted beside the session rather than in it.
    fn directory_of(&self, _env: &Env, _path: &Path) -> Option<PathBuf> {
        None
    }

    /// Where the session `id` lies now that lay at `path`.
    fn current_file(&self, _env: &Env, _id: &str, path: &Path) -> PathBuf {
        path.to_owned()
    }

    /// What the user typed, the newest last, from a log that it keeps of it.
    fn typed(&self, _env: &Env) -> Vec<TypedPrompt> {
        Vec::new()
    }

    /// Whether a session is in use, as far as it tells.
    fn is_running(&self, _env: &Env, _id: &str, _path: &Path) -> bool {
        false
    }

    /// Whether a call of the session is running: it may be what started this process.
    fn is_calling(&self, _session: &FoundSession) -> bool {
        false
    }

    /// Its own lock on a session, where it has one: held as long as the file is open.
    ///
    /// # Errors
    /// [`Live`](history::error::ErrorKind::Live) if it is held.
    fn lock(&self, _env: &Env, _id: &str) -> Result<Option<fs::File>> {
        Ok(None)
    }

    /// The version that wrote a session, if it is of a later generation than what was seen (Claude Code 2, Codex 0,
    /// OpenCode 1; Gemini CLI 0.61 does not say it): within one, unknown records and fields are kept. `head`: how the
    /// file begins.
    fn newer(&self, _head: &str) -> Option<String> {
        None
    }

    /// How a result goes back. `export`: the session is a file that was exported from its database.
    ///
    /// # Errors
    /// [`Refused`](history::error::ErrorKind::Refused) where its sessions are only read.
    fn reach(&self, _job: Job, _live: bool, _export: bool) -> Result<Reach> {
        Err(reach::read_only(self.info().title))
    }

    /// Where a new session goes, so that it is found. `None`: it takes one in from any file.
    ///
    /// # Errors
    /// [`Refused`](history::error::ErrorKind::Refused) where its name for the directory is not known.
    fn place(&self, _env: &Env, _cwd: &Path, _file_name: &str) -> Result<Option<PathBuf>> {
        Ok(None)
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

    /// The shell command that takes a file in without resuming what it holds, where it needs one; it is quoted.
    fn take_in(&self, _file: &str) -> Option<String> {
        None
    }

    /// A session as it was before a compaction, if what stands before its summary in the file tells: the archived one
    /// may lack what was written a moment later. `handle`: of the archived one, as the summary names it.
    fn before_summary(&self, _before: &[u8], _handle: &str) -> Result<Option<(MemorySource, Session)>> {
        Ok(None)
    }

    /// The context that the provider reported in a row of a session, in tokens, and the model.
    fn reported(&self, _row: &Value) -> Option<(u64, Option<String>)> {
        None
    }

    /// The settings files that `owner` (this agent, or a plugin of it) is configured in, the one that wins first.
    /// `config`: where programs keep their settings (`~/.config`).
    fn settings_files(&self, _env: &Env, _config: &Path) -> Vec<PathBuf> {
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
    /// The export `now` without the compaction whose summary holds `handle`, and how many messages follow it. `None`:
    /// it has no such summary.
    fn without_compaction(&self, now: &[u8], handle: &str) -> Result<Option<(Vec<u8>, usize)>>;
    /// Whether an id is one of a session, of those that it gives.
    fn is_session(&self, id: &str) -> bool;
    /// Whether an id is one of a message.
    fn is_message(&self, id: &str) -> bool;
}

/// Environment variables by which an agent identifies itself.
#[derive(Debug, Clone, Copy)]
pub struct Variables {
    /// One of them is set in every process that it starts.
    pub inside: &'static [&'static str],
    /// The id of the session that started the process.
    pub session: Option<&'static str>,
    pub project: Option<&'static str>,
}

impl Variables {
    const NONE: Self = Self { inside: &[], session: None, project: None };
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

impl fmt::Debug for dyn Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for dyn Agent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for AgentRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        named(&name).ok_or_else(|| D::Error::custom(format!("expected an agent, found {name:?}")))
    }
}

/// The agent of that name, of its program's name, or as people write it (`Claude Code`).
pub fn named(name: &str) -> Option<AgentRef> {
    let name = name.trim().to_lowercase().replace([' ', '_'], "-");
    ALL.into_iter().find(|it| it.name() == name || it.info().aliases.contains(&name.as_str()))
}

/// The agent that keeps sessions of a format.
pub fn of_format(format: Format) -> Option<AgentRef> {
    ALL.into_iter().find(|it| it.format() == format)
}

/// The names of the agents that `which` chooses, for a sentence.
pub fn names(which: impl Fn(AgentRef) -> bool) -> String {
    let names: Vec<_> = ALL.into_iter().filter(|it| which(*it)).map(Agent::name).collect();
    names.join(", ")
}

/// The client of that name that lets us compact in its place.
///
/// # Errors
/// [`Arguments`](history::error::ErrorKind::Arguments) for one that is not known.
pub fn seat_named(name: &str) -> Result<&'static dyn Seat> {
    let all = || ALL.into_iter().filter_map(|it| it.info().seat);
    let found = all().find(|it| it.name() == name);
    found.ok_or_else(|| Error::unknown("a client", all().map(Seat::name), name))
}

/// What the environment says of agents and their folders.
#[derive(Clone, PartialEq, Eq, Default)]
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

impl std::fmt::Debug for Env {
    /// Variables without their values: keys stand there.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&String> = self.variables.keys().collect();
        f.debug_struct("Env")
            .field("home", &self.home)
            .field("variables", &names)
            .field("cwd", &self.cwd)
            .field("inside", &self.inside)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
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

/// How a session in a database is named: `database#id`.
pub fn address(database: &Path, id: &str) -> String {
    format!("{}#{id}", database.display())
}

/// A session's rows: the database, by the agent whose it is, and the id; of an address `database#id`.
pub fn split_address(address: &str) -> Option<(&'static dyn Database, &Path, &str)> {
    let (path, id) = address.rsplit_once('#')?;
    let database = ALL.into_iter().filter_map(|it| it.info().database).find(|it| it.is_session(id))?;
    (!path.is_empty()).then(|| (database, Path::new(path), id))
}
