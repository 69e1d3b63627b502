//! For each agent: how a result is written back, when it takes effect, whether the session is in use, and how
//! to resume. The agents' modules name the versions for which this holds.

use std::path::{Path, PathBuf};

use super::{AgentRef, Env};
use crate::answers::TakesEffect;
use history::error::{Error, ErrorKind, Hint};
use sessions::Mode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// Clears or shortens tool outputs.
    Prune,
    Compact,
    /// Restores a session to what it was, keeping its later turns.
    Restore,
}

/// How the bytes of a result are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Overwrites bytes of the file without moving any.
    InPlace,
    /// Replaces the whole file.
    Replace,
    /// Writes a new file, as a new session.
    Beside,
    /// Changes rows of a database, in one transaction.
    Rows,
}

/// How one [`Job`] on a running or idle session is written back (the test `the_table` shows all).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    pub mode: Mode,
    pub way: Way,
    pub takes_effect: TakesEffect,
}

/// Takes effect when the session is resumed.
pub fn on_resume(mode: Mode, way: Way) -> Reach {
    Reach { mode, way, takes_effect: TakesEffect::OnResume }
}

/// Takes effect with the next request.
pub fn at_once(mode: Mode, way: Way) -> Reach {
    Reach { mode, way, takes_effect: TakesEffect::NextRequest }
}

/// For an agent that reads its file only on resuming: changes to a running session's file would be lost.
pub fn at_rest(live: bool) -> Reach {
    if live { on_resume(Mode::New, Way::Beside) } else { on_resume(Mode::Append, Way::Replace) }
}

/// The error for an agent whose sessions we never write.
pub fn read_only(title: &str) -> Error {
    let what = format!("applying: {title} sessions are read-only");
    Error::new(ErrorKind::Refused, what).hint(Hint::WriteCopy)
}

/// `version`, if its major version is above `known`.
pub fn later(version: &str, known: u32) -> Option<String> {
    let major: u32 = version.split('.').next()?.parse().ok()?;
    (major > known).then(|| version.to_owned())
}

/// Whether the session is known to be in use: its lock is held, it is the calling session, or one of its tool
/// calls is running.
pub fn is_live(env: &Env, agent: AgentRef, id: &str, path: &Path) -> bool {
    let calls = env.inside == Some(agent) && env.session.as_deref() == Some(id);
    calls || agent.is_running(env, id, path)
}

/// Like [`is_live`], for a session to repair: in a database where nothing was written for 15 minutes, a call
/// that still seems to run may be the damage. `now`: ms since 1970.
pub fn is_in_use(env: &Env, agent: AgentRef, id: &str, path: &Path, now: i64) -> bool {
    const LONG: i64 = 15 * 60 * 1000;
    let changed = agent.info().database.and_then(|it| it.changed_ms(path, id));
    is_live(env, agent, id, path) && changed.is_none_or(|it| now - it < LONG)
}

/// One shell command that resumes a session from any directory (without the `cd`, an agent may silently start
/// a new one). `file`: imported first, after the files of its sub-agents.
pub fn resume(
    env: &Env,
    agent: AgentRef,
    sub_agents: &[PathBuf],
    file: Option<&Path>,
    id: &str,
    cwd: Option<&Path>,
) -> String {
    let word = |it: &Path| quoted(&it.to_string_lossy());
    let mut commands: Vec<String> = cwd.map(|it| format!("cd {}", word(it))).into_iter().collect();
    if let Some(file) = file {
        commands.extend(sub_agents.iter().filter_map(|it| agent.take_in(&word(it))));
        commands.push(agent.resume_file(env, &word(file), &quoted(id)));
    } else {
        commands.push(agent.resume(env, &quoted(id)));
    }
    commands.join(" && ")
}

/// Quotes a shell argument (POSIX; on Windows for `cmd`).
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
    use super::super::{ALL, named};
    use super::*;

    #[test]
    fn the_table() {
        let mut out = String::new();
        for agent in ALL {
            for (job, live) in
                [(Job::Compact, false), (Job::Prune, false), (Job::Prune, true), (Job::Compact, true)]
            {
                let cell = match agent.reach(job, live, false) {
                    Ok(it) => format!("{:?} {:?} {:?}", it.mode, it.way, it.takes_effect),
                    Err(error) => error.code().to_owned(),
                };
                let running = if live { "running" } else { "idle" };
                let job = format!("{job:?}");
                out.push_str(&format!("{:<12}{running:<8}{job:<10}{cell}\n", agent.name()));
            }
        }
        insta::assert_snapshot!(out, @r"
        claude-code idle    Compact   New Beside OnResume
        claude-code idle    Prune     Patch InPlace OnResume
        claude-code running Prune     Patch InPlace OnResume
        claude-code running Compact   New Beside OnResume
        codex       idle    Compact   Append Replace OnResume
        codex       idle    Prune     Append Replace OnResume
        codex       running Prune     New Beside OnResume
        codex       running Compact   New Beside OnResume
        gemini-cli  idle    Compact   Append Replace OnResume
        gemini-cli  idle    Prune     Append Replace OnResume
        gemini-cli  running Prune     New Beside OnResume
        gemini-cli  running Compact   New Beside OnResume
        opencode    idle    Compact   Append Rows NextRequest
        opencode    idle    Prune     Patch Rows NextRequest
        opencode    running Prune     Patch Rows NextRequest
        opencode    running Compact   New Rows OnResume
        pi          idle    Compact   refused
        pi          idle    Prune     refused
        pi          running Prune     refused
        pi          running Compact   refused
        qwen-code   idle    Compact   refused
        qwen-code   idle    Prune     refused
        qwen-code   running Prune     refused
        qwen-code   running Compact   refused
        ");
    }

    #[test]
    fn what_a_later_generation_wrote_is_told() {
        for (agent, head, expected) in [
            ("claude-code", "{\"type\":\"mode\"}\n{\"version\":\"2.9.1\"}\n", None),
            ("claude-code", "{\"version\":\"3.0.0\"}\n{\"cut", Some("3.0.0")),
            ("codex", "{\"payload\":{\"cli_version\":\"0.200.1\",\"history_mode\":\"paginated\"}}", None),
            ("codex", "{\"payload\":{\"cli_version\":\"1.0.0\"}}", Some("1.0.0")),
            ("codex", "{\"payload\":{\"cli_version\":\"0.9\",\"history_mode\":\"tree\"}}", Some("(tree)")),
            ("opencode", "{\"info\":{\"version\": \"1.30.0\"},\"messages\":[", None),
            ("opencode", "{\"info\":{\"id\":\"version\",\"version\":\"2.0.0\"}", Some("2.0.0")),
            ("gemini-cli", "{\"version\":\"9\"}", None),
            ("claude-code", "\u{0}\u{fffd}", None),
        ] {
            let agent = named(agent).unwrap();
            assert_eq!(agent.newer(head).as_deref(), expected, "{agent:?} {head}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn commands_work_from_anywhere() {
        let env = Env { variables: [("CODEX_HOME".into(), "/x y".into())].into(), ..Env::default() };
        let agent = |name| named(name).unwrap();
        let here = Path::new("/it's here");
        assert_eq!(
            resume(&env, agent("codex"), &[], None, "a-1", Some(here)),
            r"cd '/it'\''s here' && CODEX_HOME='/x y' codex resume a-1"
        );
        assert_eq!(resume(&env, agent("claude-code"), &[], None, "$(x)", None), "claude --resume '$(x)'");
        assert_eq!(
            resume(&env, agent("opencode"), &[], Some(Path::new("/e.json")), "ses_1", Some(Path::new("/p"))),
            "cd /p && opencode import /e.json && opencode --session ses_1"
        );
    }
}
