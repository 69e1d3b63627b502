//! Where each agent keeps its sessions: list them, find one by its id, tell which is the caller's.
//!
//! **Invariants.** Nothing is written but by [`opencode::change`]. The environment is a value ([`Env`]), filled by `config`. Listing is cheap: of a
//! file, at most its first 64 KB are read. A folder that is not there holds no sessions; what cannot be read is left
//! out, as an agent would.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::Value;

pub mod claude_code;
pub mod codex;
pub mod gemini_cli;
pub mod hooks;
pub mod install;
pub mod opencode;
pub mod own_settings;
pub mod reach;
pub mod seat;
pub mod sections;
pub mod settings;

/// An agent whose sessions can be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Agent {
    /// Claude Code.
    ClaudeCode,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    GeminiCli,
    /// OpenCode.
    OpenCode,
}

impl Agent {
    pub const ALL: [Self; 4] = [Self::ClaudeCode, Self::Codex, Self::GeminiCli, Self::OpenCode];

    /// The name used in arguments and JSON; the same as its format's.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
            Self::OpenCode => "opencode",
        }
    }

    /// The name it goes by among people.
    pub fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::GeminiCli => "Gemini CLI",
            Self::OpenCode => "OpenCode",
        }
    }

    /// The agent of that name, of its program's name, or as people write it (`Claude Code`).
    pub fn named(name: &str) -> Option<Self> {
        let name = name.trim().to_lowercase().replace([' ', '_'], "-");
        let name = match name.as_str() {
            "claude" => "claude-code",
            "gemini" => "gemini-cli",
            "codex-cli" => "codex",
            other => other,
        };
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// What the environment says of agents and their folders.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Env {
    pub home: PathBuf,
    /// `XDG_DATA_HOME`, if set.
    pub data: Option<PathBuf>,
    /// `CLAUDE_CONFIG_DIR`, if set.
    pub claude_config: Option<PathBuf>,
    /// `CODEX_HOME`, if set.
    pub codex_home: Option<PathBuf>,
    /// `OPENCODE_DB`, if set: an absolute path, or a name in OpenCode's data folder.
    pub opencode_db: Option<String>,
    /// The folders of `PATH`.
    pub path: Vec<PathBuf>,
    pub cwd: PathBuf,
    /// The agent that started this process, if one did.
    pub inside: Option<Agent>,
    /// The session that calls, where the agent says it (`CLAUDE_CODE_SESSION_ID`, Codex `_meta.threadId`, a hook).
    pub session: Option<String>,
}

/// A session that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub agent: Agent,
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
        match self.agent {
            Agent::OpenCode => format!("{}#{}", self.path.display(), self.id),
            Agent::ClaudeCode | Agent::Codex | Agent::GeminiCli => self.path.display().to_string(),
        }
    }
}

/// All sessions, of one agent and one working directory if these are given: newest first, a sub-agent's right after
/// the session that started it.
pub fn list(env: &Env, agent: Option<Agent>, cwd: Option<&Path>) -> Vec<Found> {
    under_parents(search(env, agent, cwd, None))
}

/// A prompt that the user typed, as an agent logs it beside its sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Typed {
    /// Whose log it is.
    pub agent: Agent,
    /// The session it was typed in.
    pub session: String,
    /// When, ms since 1970.
    pub at: i64,
    pub text: String,
}

/// What the user typed, the newest last, from the logs that agents keep of it. They are only read.
pub fn typed(env: &Env) -> Vec<Typed> {
    codex::typed(env)
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

/// The directory of a session's file, where the agent notes it beside its sessions rather than in them.
pub fn directory_of(env: &Env, agent: &str, path: &Path) -> Option<PathBuf> {
    match Agent::named(agent)? {
        Agent::GeminiCli => gemini_cli::directory_of(env, path),
        Agent::ClaudeCode => claude_code::directory_of(path),
        Agent::Codex | Agent::OpenCode => None,
    }
}

/// The session that calls. Several if they could all be meant: ask, and do nothing. None if no agent is known to call.
///
/// An agent that says its session is believed. OpenCode, which does not, shows it by the tool call that is running.
/// Otherwise it is the newest of this directory, unless another one was changed within the same two minutes.
pub fn current(env: &Env) -> Vec<Found> {
    const SAME_TIME_MS: i64 = 120_000;
    let Some(agent) = env.inside else { return Vec::new() };
    if let Some(id) = &env.session {
        return search(env, Some(agent), None, Some(id));
    }
    let mut found = list(env, Some(agent), Some(&env.cwd));
    found.retain(|it| it.parent.is_none());
    if agent == Agent::OpenCode {
        let calling: Vec<_> = found.iter().filter(|it| opencode::is_calling(it)).cloned().collect();
        if !calling.is_empty() {
            found = calling;
        }
    }
    let newest = found.first().map_or(0, |it| it.changed_ms);
    found.retain(|it| newest.saturating_sub(it.changed_ms) <= SAME_TIME_MS);
    if let [only] = found.as_mut_slice() {
        only.live = true;
    }
    found
}

fn search(env: &Env, agent: Option<Agent>, cwd: Option<&Path>, id: Option<&str>) -> Vec<Found> {
    let mut out = Vec::new();
    for it in Agent::ALL.into_iter().filter(|it| agent.is_none_or(|agent| agent == *it)) {
        out.extend(match it {
            Agent::ClaudeCode => claude_code::search(env, cwd, id),
            Agent::Codex => codex::search(env, cwd, id),
            Agent::GeminiCli => gemini_cli::search(env, cwd, id),
            Agent::OpenCode => opencode::search(env, cwd, id),
        });
    }
    for it in &mut out {
        it.live |= env.inside == Some(it.agent) && env.session.as_ref() == Some(&it.id);
    }
    out.sort_by(|a, b| b.changed_ms.cmp(&a.changed_ms).then_with(|| (a.agent, &a.id).cmp(&(b.agent, &b.id))));
    out
}

fn under_parents(found: Vec<Found>) -> Vec<Found> {
    use std::collections::{BTreeMap, BTreeSet};
    let there: BTreeSet<(Agent, String)> = found.iter().map(|it| (it.agent, it.id.clone())).collect();
    let mut children: BTreeMap<(Agent, String), Vec<Found>> = BTreeMap::new();
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
struct File {
    path: PathBuf,
    changed_ms: i64,
    len: u64,
}

impl File {
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
fn files(folder: &Path, depth: usize) -> Vec<File> {
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
                out.push(File { path, changed_ms, len: about.len() });
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
            agent: Agent::Codex,
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
