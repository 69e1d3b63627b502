//! Where each agent keeps its sessions: list them, find one by its id, identify the calling one. Also
//! everything else that differs between agents: how results are written back, hooks, settings, the seat.
//!
//! **Invariants.** Apart from [`install`], only a [`Database`] and the lock on a Codex thread write anything.
//! The environment is a value ([`Env`]), filled by `config`. Listing is cheap: at most the first 64 KB of a
//! file are read. A missing folder has no sessions; an unreadable session is skipped, as an agent would.

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
pub mod write_back;
pub mod settings;

pub use codex::gateway;
pub use find::{FoundSession, TypedPrompt, current, find, find_beginning, list, sub_agents, typed};

use history::error::{Error, ErrorKind, Hint, Result};
use sessions::{Format, MemorySource, Session};

use find::scan::{HEAD, SessionFile, files, first_words, is_wanted, objects, spellings};
use hooks::AgentHooks;
use hooks::seat::Seat;
use install::Registration;
use write_back::{Operation, WriteMethod, shell};

/// An agent whose sessions can be found.
pub type AgentRef = &'static dyn Agent;

/// All agents, sorted by name. A new agent is a module with an implementation of [`Agent`], added here.
pub const ALL: [AgentRef; 6] = [
    &claude_code::ClaudeCode,
    &codex::Codex,
    &gemini_cli::GeminiCli,
    &opencode::OpenCode,
    &pi::Pi,
    &qwen_code::QwenCode,
];

/// The default agent where nothing identifies one.
const ASSUMED: AgentRef = &claude_code::ClaudeCode;

pub struct AgentInfo {
    pub format: Format,
    pub title: &'static str,
    /// Other names accepted in arguments, such as its program's.
    pub aliases: &'static [&'static str],
    /// The environment variables that show that a process runs inside it.
    pub variables: Variables,
    /// Set if it keeps sessions in a database rather than in files.
    pub database: Option<&'static dyn Database>,
    /// Whether its records contain the shell's current directory, which may differ from the session's own.
    pub records_follow_shell: bool,
    /// Fields of its records that contain directories; empty if its sessions cannot move to another machine.
    pub directory_fields: &'static [&'static str],
    /// What its hooks report and accept.
    pub hooks: AgentHooks,
    /// How our server and hooks are added to its settings; `None` if we do not edit them.
    pub registration: Option<&'static Registration>,
    /// How it asks us to compact in its place; `None` if it cannot.
    pub seat: Option<&'static Seat>,
    /// Whether its provider's requests can go through our gateway.
    pub has_gateway: bool,
}

impl AgentInfo {
    /// For an agent of which we only read sessions.
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

/// What differs between agents. A default method means that the agent lacks the feature.
pub trait Agent: Sync {
    fn info(&self) -> &'static AgentInfo;

    fn format(&self) -> Format {
        self.info().format
    }

    /// The name used in arguments and JSON; the same as its format's.
    fn name(&self) -> &'static str {
        self.format().name()
    }

    /// The calling session's id, if the client sends it with each MCP call; `meta`: the call's `_meta`.
    fn calling_session(&self, _meta: &serde_json::Map<String, Value>) -> Option<String> {
        None
    }

    /// The folder below which it looks for sessions.
    fn home(&self, env: &Env) -> PathBuf;

    /// Whether the environment makes it look for sessions outside [`Self::home`].
    fn looks_elsewhere(&self, _env: &Env) -> bool {
        false
    }

    /// Its sessions, optionally only those of one directory or id; in any order.
    fn search(&self, env: &Env, cwd: Option<&Path>, id: Option<&str>) -> Vec<FoundSession>;

    /// The working directory of a session, if recorded outside the session's own records.
    fn directory_of(&self, _env: &Env, _path: &Path) -> Option<PathBuf> {
        None
    }

    /// The file that the session `id` uses now; `path`: the one it used before.
    fn current_file(&self, _env: &Env, _id: &str, path: &Path) -> PathBuf {
        path.to_owned()
    }

    /// The prompts in the log that it keeps of them, newest last.
    fn typed(&self, _env: &Env) -> Vec<TypedPrompt> {
        Vec::new()
    }

    /// Whether a session is in use, as far as the agent reveals it.
    fn is_running(&self, _env: &Env, _id: &str, _path: &Path) -> bool {
        false
    }

    /// Whether a tool call of the session is running, which may be what started this process.
    fn is_calling(&self, _session: &FoundSession) -> bool {
        false
    }

    /// Takes the agent's own lock on a session, if it has one; held until the file is dropped.
    ///
    /// # Errors
    /// [`Live`](history::error::ErrorKind::Live) if it is held.
    fn lock(&self, _env: &Env, _id: &str) -> Result<Option<fs::File>> {
        Ok(None)
    }

    /// The version that wrote a session, if its major version is newer than those tested (Claude Code 2,
    /// Codex 0, OpenCode 1; Gemini CLI 0.61 does not record it). Within a major version, unknown records and
    /// fields are kept. `head`: the beginning of the file.
    fn untested_version(&self, _head: &str) -> Option<String> {
        None
    }

    /// How a result is written back. `export`: the session is a file exported from the agent's database.
    ///
    /// # Errors
    /// [`Refused`](history::error::ErrorKind::Refused) if we only read its sessions.
    fn write_method(&self, _operation: Operation, _live: bool, _export: bool) -> Result<WriteMethod> {
        let what = format!("applying: {} sessions are read-only", self.info().title);
        Err(Error::new(ErrorKind::Refused, what).hint(Hint::WriteCopy))
    }

    /// The path at which it will find a new session. `None`: it can import a session from any file.
    ///
    /// # Errors
    /// [`Refused`](history::error::ErrorKind::Refused) if its folder name for `cwd` cannot be determined.
    fn new_session_path(&self, _env: &Env, _cwd: &Path, _file_name: &str) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    /// What its records call a directory besides its path, such as a hash.
    fn directory_name(&self, _directory: &Path) -> Option<String> {
        None
    }

    /// The file name that a session must have. `name`: its current one.
    fn session_file_name(&self, _session: &Session, name: &str) -> String {
        name.to_owned()
    }

    /// Further files that belong to a session's file.
    fn companion_files(&self, _path: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The shell command that resumes a session from its directory; `id` is already quoted.
    fn resume_command(&self, env: &Env, id: &str) -> String;

    /// The shell command that imports a file and resumes its session; `file` and `id` are already quoted.
    fn import_and_resume_command(&self, env: &Env, _file: &str, id: &str) -> String {
        self.resume_command(env, id)
    }

    /// The shell command that only imports a file, if the agent needs one; `file` is already quoted.
    fn import_command(&self, _file: &str) -> Option<String> {
        None
    }

    /// The session as it was before a compaction, if that can be read from `before`, the bytes of its file up
    /// to the summary: the archived original may lack rows written a moment later. `handle`: the archived
    /// original's.
    fn before_summary(&self, _before: &[u8], _handle: &str) -> Result<Option<(MemorySource, Session)>> {
        Ok(None)
    }

    /// The context size in tokens, and the model, as reported by the provider in this row of a session.
    fn reported(&self, _row: &Value) -> Option<(u64, Option<String>)> {
        None
    }

    /// Its settings files, in order of precedence. `config`: the folder of user configurations (`~/.config`).
    fn settings_files(&self, _env: &Env, _config: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The `provider/model` with which it would start a session in `cwd`, if its sessions must name one.
    fn default_model(&self, _env: &Env, _config: &Path, _cwd: &Path) -> Option<String> {
        None
    }

    /// A model's context window, in tokens, from its settings and those of the current directory.
    fn model_window(&self, _env: &Env, _config: &Path, _model: &str) -> Option<u64> {
        None
    }

    /// When it compacts by itself, in a few words. `setting` returns the value of `env:NAME` or `AGENT:path`.
    fn own_compaction(&self, setting: &dyn Fn(&str) -> Option<Value>) -> String;

    /// Why it never asks us to compact, although we are installed.
    fn seat_blocked_by(&self, _env: &Env, _setting: &dyn Fn(&str) -> Option<Value>) -> Option<Problem> {
        None
    }

    /// Other plugins that compact in it, and bugs of its own that lose sessions.
    fn known_problems(&self, _env: &Env, _config: &Path) -> Vec<Problem> {
        Vec::new()
    }
}

/// Sessions in a database. A session's bytes are those that the agent exports (an "export").
pub trait Database: Agent {
    fn export(&self, database: &Path, id: &str) -> Result<Vec<u8>>;
    /// Changes the rows from those of the export `old` to those of `new`, in one transaction.
    fn change(&self, database: &Path, old: &[u8], new: &[u8]) -> Result<()>;
    /// When the session was last written, in ms since 1970.
    fn changed_ms(&self, database: &Path, id: &str) -> Option<i64>;
    /// The ids of the messages and parts of an export, in order.
    fn ids(&self, export: &[u8]) -> Vec<String>;
    /// Ids of the messages and parts of `new` that `old` lacks or has differently.
    fn differing(&self, old: &[u8], new: &[u8]) -> Vec<String>;
    /// The export `now` with these ids' messages and parts as in `original`, or removed if new.
    fn without(&self, now: &[u8], original: &[u8], ids: &[String]) -> Result<Vec<u8>>;
    /// The export `now` without the compaction whose summary contains `handle`, and how many messages follow
    /// it. `None`: there is no such summary.
    fn without_compaction(&self, now: &[u8], handle: &str) -> Result<Option<(Vec<u8>, usize)>>;
    /// Whether an id is a session's, by its prefix.
    fn is_session(&self, id: &str) -> bool;
    /// Whether an id is a message's, by its prefix.
    fn is_message(&self, id: &str) -> bool;
}

/// Environment variables by which an agent identifies itself.
#[derive(Debug, Clone, Copy)]
pub struct Variables {
    /// At least one of them is set in every process that the agent starts.
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

/// The agent with that name or alias, also as people write it (`Claude Code`).
pub fn named(name: &str) -> Option<AgentRef> {
    let name = name.trim().to_lowercase().replace([' ', '_'], "-");
    ALL.into_iter().find(|it| it.name() == name || it.info().aliases.contains(&name.as_str()))
}

/// The agent that writes sessions of this format.
pub fn of_format(format: Format) -> Option<AgentRef> {
    ALL.into_iter().find(|it| it.format() == format)
}

/// The names of the agents for which `which` returns true, comma-separated.
pub fn names(which: impl Fn(AgentRef) -> bool) -> String {
    let names: Vec<_> = ALL.into_iter().filter(|it| which(*it)).map(Agent::name).collect();
    names.join(", ")
}

/// The seat of the agent with that name.
///
/// # Errors
/// [`Arguments`](history::error::ErrorKind::Arguments) if no agent with a seat has that name.
pub fn seat_named(name: &str) -> Result<&'static Seat> {
    let all = || ALL.into_iter().filter_map(|it| it.info().seat);
    let found = all().find(|it| it.name() == name);
    found.ok_or_else(|| Error::unknown("a client", all().map(Seat::name), name))
}

/// What the environment tells about agents and their folders.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Env {
    pub home: PathBuf,
    pub variables: BTreeMap<String, String>,
    /// The folders in `PATH`.
    pub path: Vec<PathBuf>,
    pub cwd: PathBuf,
    /// The agent that started this process, if one did.
    pub inside: Option<AgentRef>,
    /// The calling session's id, if the agent provides it.
    pub session: Option<String>,
}

impl std::fmt::Debug for Env {
    /// Only the names of variables: their values may be API keys.
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

    /// A variable as a path; a relative path is ignored.
    pub fn folder(&self, variable: &str) -> Option<PathBuf> {
        self.text(variable).map(PathBuf::from).filter(|it| it.is_absolute())
    }

    /// `NAME=value ` for the start of a shell command that needs the same folder; empty if the variable is
    /// not set.
    fn assigned(&self, variable: &str) -> String {
        let value = self.folder(variable).map(|it| shell::quoted(&it.to_string_lossy()));
        value.map(|it| format!("{variable}={it} ")).unwrap_or_default()
    }
}

/// The address of a session in a database: `database#id`.
pub fn address(database: &Path, id: &str) -> String {
    format!("{}#{id}", database.display())
}

/// Splits `database#id` into the agent's [`Database`], the file and the session's id.
pub fn split_address(address: &str) -> Option<(&'static dyn Database, &Path, &str)> {
    let (path, id) = address.rsplit_once('#')?;
    let database = ALL.into_iter().filter_map(|it| it.info().database).find(|it| it.is_session(id))?;
    (!path.is_empty()).then(|| (database, Path::new(path), id))
}
