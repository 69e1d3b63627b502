//! What applying a result can reach, for each agent: which way a session goes back, when it counts, who may be in the
//! way, and how to resume. The facts are those of the agents' versions named in their own modules.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Agent, Env, claude_code, codex, gemini_cli, opencode};
use history::error::{Error, Kind, Result};
use sessions::Mode;

/// What is to be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// Outputs cleared or shortened.
    Prune,
    Compact,
    /// A session put back as it was, with what was said since.
    Restore,
}

/// How bytes are put where the agent finds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Over the old bytes of the same file, none of which moves.
    InPlace,
    /// A whole file in the place of the old one.
    Replace,
    /// A new file beside it.
    Beside,
    /// Rows of a database, in one transaction.
    Rows,
}

/// One cell of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    /// How it is written.
    pub mode: Mode,
    /// How it is installed.
    pub way: Way,
    /// When it counts: `next_request` or `on_resume`.
    pub takes_effect: &'static str,
}

/// The table "what applying can reach". `export`: the session is a file that OpenCode exported, not its database.
///
/// # Errors
/// [`Kind::Live`] where nothing can be done while the agent runs.
pub fn reach(agent: Agent, job: Job, live: bool, export: bool) -> Result<Reach> {
    let on_resume = |mode, way| Ok(Reach { mode, way, takes_effect: "on_resume" });
    let at_once = |mode, way| Ok(Reach { mode, way, takes_effect: "next_request" });
    match (agent, job, live) {
        // An import adds messages to a session of the same id, but changes none: cleared outputs need a new session.
        (Agent::OpenCode, Job::Compact, _) if export => on_resume(Mode::Append, Way::Replace),
        (Agent::OpenCode, Job::Prune | Job::Restore, _) if export => on_resume(Mode::New, Way::Replace),
        (Agent::OpenCode, Job::Prune, _) => at_once(Mode::Patch, Way::Rows),
        (Agent::OpenCode, Job::Compact, false) => at_once(Mode::Append, Way::Rows),
        (Agent::OpenCode, Job::Compact | Job::Restore, _) => on_resume(Mode::New, Way::Rows),
        (Agent::ClaudeCode, Job::Prune, _) => on_resume(Mode::Patch, Way::InPlace),
        (Agent::ClaudeCode, Job::Compact | Job::Restore, _) => on_resume(Mode::New, Way::Beside),
        (Agent::Codex | Agent::GeminiCli, _, false) => on_resume(Mode::Append, Way::Replace),
        (Agent::Codex | Agent::GeminiCli, Job::Compact | Job::Restore, true) => {
            on_resume(Mode::New, Way::Beside)
        }
        (Agent::Codex | Agent::GeminiCli, Job::Prune, true) => {
            let what = format!(
                "clearing outputs of a running session: {} keeps its own history until it is resumed, so nothing would \
                 change and later turns would be lost; end it first, or compact into a new session",
                agent.title()
            );
            Err(Error::new(Kind::Live, what))
        }
    }
}

/// The version that wrote a session, if it is of a later generation than what was seen: `head` is how the file begins.
/// The generations: Claude Code 2, Codex 0, OpenCode 1; within one, unknown records and fields are kept. Gemini CLI 0.61
/// does not say which version wrote.
pub fn newer(agent: Agent, head: &[u8]) -> Option<String> {
    let text = history::json::mend(head);
    let later = |version: &str, known: u32| {
        let major: u32 = version.split('.').next()?.parse().ok()?;
        (major > known).then(|| version.to_owned())
    };
    match agent {
        Agent::ClaudeCode => super::objects(&text).find_map(|it| later(it["version"].as_str()?, 2)),
        Agent::Codex => super::objects(&text).find_map(|it| {
            let payload = &it["payload"];
            let unknown =
                |mode: &str| (!["legacy", "paginated"].contains(&mode)).then(|| format!("({mode})"));
            later(payload["cli_version"].as_str()?, 0)
                .or_else(|| payload["history_mode"].as_str().and_then(unknown))
        }),
        Agent::OpenCode => {
            let (_, rest) = text.split_once("\"version\":")?;
            later(rest.split('"').nth(1)?, 1)
        }
        Agent::GeminiCli => None,
    }
}

/// Whether the session is in use, as far as it can be told: its writer's lock is held, it is the one that calls, or a
/// call in it is running.
pub fn is_live(env: &Env, agent: Agent, id: &str, path: &Path) -> bool {
    let calls = env.inside == Some(agent) && env.session.as_deref() == Some(id);
    calls
        || match agent {
            Agent::Codex => codex::is_live(env, id),
            Agent::OpenCode => opencode::is_running(path, id),
            Agent::ClaudeCode | Agent::GeminiCli => false,
        }
}

/// Keeps an agent from writing while it is held.
#[derive(Debug)]
pub struct Claim(#[expect(dead_code, reason = "the lock lasts as long as the open file")] Option<fs::File>);

/// Takes the agent's own lock on a session, where it has one.
///
/// # Errors
/// [`Kind::Live`] if the agent holds it.
pub fn claim(env: &Env, agent: Agent, id: &str) -> Result<Claim> {
    match agent {
        Agent::Codex => codex::claim(env, id).map(|it| Claim(Some(it))),
        Agent::ClaudeCode | Agent::GeminiCli | Agent::OpenCode => Ok(Claim(None)),
    }
}

/// The folder below which an agent looks for sessions.
pub fn home(env: &Env, agent: Agent) -> PathBuf {
    match agent {
        Agent::ClaudeCode => claude_code::projects(env),
        Agent::Codex => codex::home(env),
        Agent::GeminiCli => gemini_cli::home(env).join("tmp"),
        Agent::OpenCode => opencode::home(env),
    }
}

/// Where a new session of an agent goes, so that it is found. `None`: the agent takes it in from any file.
///
/// # Errors
/// [`Kind::Refused`] where the agent's name for the directory cannot be told.
pub fn place(env: &Env, agent: Agent, cwd: &Path, file_name: &str) -> Result<Option<PathBuf>> {
    match agent {
        Agent::ClaudeCode => {
            let slug = claude_code::slug(cwd);
            if !claude_code::is_slug(&slug, cwd) {
                let what = "Claude Code's name for so long a directory is not known; start Claude Code there once, or use --out";
                return Err(Error::new(Kind::Refused, what).at(cwd.display().to_string(), None));
            }
            Ok(Some(claude_code::projects(env).join(slug).join(file_name)))
        }
        Agent::Codex => {
            // `rollout-YYYY-MM-DD…` lies in `YYYY/MM/DD`.
            let date = file_name.trim_start_matches("rollout-").get(..10).unwrap_or_default();
            let folder: PathBuf = date.split('-').collect();
            Ok(Some(codex::home(env).join("sessions").join(folder).join(file_name)))
        }
        Agent::GeminiCli | Agent::OpenCode => Ok(None),
    }
}

/// One shell command that resumes a session, from any directory: resuming elsewhere silently starts a new one.
pub fn resume(env: &Env, agent: Agent, id: &str, cwd: Option<&Path>) -> String {
    let variable = |name: &str, value: &Option<PathBuf>| {
        value.as_ref().map(|it| format!("{name}={} ", quoted(&it.to_string_lossy()))).unwrap_or_default()
    };
    let command = match agent {
        Agent::ClaudeCode => {
            format!("{}claude --resume {}", variable("CLAUDE_CONFIG_DIR", &env.claude_config), quoted(id))
        }
        Agent::Codex => format!("{}codex resume {}", variable("CODEX_HOME", &env.codex_home), quoted(id)),
        Agent::GeminiCli => format!("gemini --resume {}", quoted(id)),
        Agent::OpenCode => {
            format!("{}opencode --session {}", variable("XDG_DATA_HOME", &env.data), quoted(id))
        }
    };
    in_directory(cwd, &command)
}

/// One shell command that takes a file in and resumes what it holds.
pub fn resume_file(env: &Env, agent: Agent, file: &Path, id: &str, cwd: Option<&Path>) -> String {
    let name = quoted(&file.to_string_lossy());
    match agent {
        Agent::GeminiCli => in_directory(cwd, &format!("gemini --session-file {name}")),
        Agent::OpenCode => {
            in_directory(cwd, &format!("opencode import {name} && opencode --session {}", quoted(id)))
        }
        Agent::ClaudeCode | Agent::Codex => resume(env, agent, id, cwd),
    }
}

fn in_directory(cwd: Option<&Path>, command: &str) -> String {
    match cwd {
        Some(cwd) => format!("cd {} && {command}", quoted(&cwd.to_string_lossy())),
        None => command.to_owned(),
    }
}

/// A word of a shell command (POSIX; on Windows for `cmd`).
pub fn quoted(word: &str) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric() || "/._-+=:,@%".contains(it);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if cfg!(windows) {
        return format!("\"{}\"", word.replace('"', "\"\""));
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table() {
        let mut out = String::new();
        for agent in Agent::ALL {
            for (job, live) in
                [(Job::Compact, false), (Job::Prune, false), (Job::Prune, true), (Job::Compact, true)]
            {
                let cell = match reach(agent, job, live, false) {
                    Ok(it) => format!("{:?} {:?} {}", it.mode, it.way, it.takes_effect),
                    Err(error) => error.code().to_owned(),
                };
                let running = if live { "running" } else { "idle" };
                let job = format!("{job:?}");
                out.push_str(&format!("{:<12}{running:<8}{job:<10}{cell}\n", agent.name()));
            }
        }
        insta::assert_snapshot!(out, @r"
        claude-code idle    Compact   New Beside on_resume
        claude-code idle    Prune     Patch InPlace on_resume
        claude-code running Prune     Patch InPlace on_resume
        claude-code running Compact   New Beside on_resume
        codex       idle    Compact   Append Replace on_resume
        codex       idle    Prune     Append Replace on_resume
        codex       running Prune     live
        codex       running Compact   New Beside on_resume
        gemini-cli  idle    Compact   Append Replace on_resume
        gemini-cli  idle    Prune     Append Replace on_resume
        gemini-cli  running Prune     live
        gemini-cli  running Compact   New Beside on_resume
        opencode    idle    Compact   Append Rows next_request
        opencode    idle    Prune     Patch Rows next_request
        opencode    running Prune     Patch Rows next_request
        opencode    running Compact   New Rows on_resume
        ");
    }

    #[test]
    fn what_a_later_generation_wrote_is_told() {
        for (agent, head, expected) in [
            (Agent::ClaudeCode, "{\"type\":\"mode\"}\n{\"version\":\"2.9.1\"}\n", None),
            (Agent::ClaudeCode, "{\"version\":\"3.0.0\"}\n{\"cut", Some("3.0.0")),
            (
                Agent::Codex,
                "{\"payload\":{\"cli_version\":\"0.200.1\",\"history_mode\":\"paginated\"}}",
                None,
            ),
            (Agent::Codex, "{\"payload\":{\"cli_version\":\"1.0.0\"}}", Some("1.0.0")),
            (
                Agent::Codex,
                "{\"payload\":{\"cli_version\":\"0.9\",\"history_mode\":\"tree\"}}",
                Some("(tree)"),
            ),
            (Agent::OpenCode, "{\"info\":{\"version\": \"1.30.0\"},\"messages\":[", None),
            (Agent::OpenCode, "{\"info\":{\"id\":\"version\",\"version\":\"2.0.0\"}", Some("2.0.0")),
            (Agent::GeminiCli, "{\"version\":\"9\"}", None),
            (Agent::ClaudeCode, "\u{0}\u{fffd}", None),
        ] {
            assert_eq!(newer(agent, head.as_bytes()).as_deref(), expected, "{agent:?} {head}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn commands_work_from_anywhere() {
        let env = Env { codex_home: Some("/x y".into()), ..Env::default() };
        let here = Path::new("/it's here");
        assert_eq!(
            resume(&env, Agent::Codex, "a-1", Some(here)),
            r"cd '/it'\''s here' && CODEX_HOME='/x y' codex resume a-1"
        );
        assert_eq!(resume(&env, Agent::ClaudeCode, "$(x)", None), "claude --resume '$(x)'");
        assert_eq!(
            resume_file(&env, Agent::OpenCode, Path::new("/e.json"), "ses_1", Some(Path::new("/p"))),
            "cd /p && opencode import /e.json && opencode --session ses_1"
        );
    }
}
