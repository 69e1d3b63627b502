//! What applying a result can reach, for each agent: which way a session goes back, when it counts, who may be in the
//! way, and how to resume. The facts are those of the agents' versions named in their own modules.

use std::path::{Path, PathBuf};

use super::{AgentRef, Env};
use crate::answers::TakesEffect;
use history::error::{Error, ErrorKind, Hint};
use sessions::Mode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    /// Outputs cleared or shortened.
    Prune,
    Compact,
    /// A session put back as it was, with its later turns.
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

/// An agent that reads its file when it resumes and keeps its own history while it runs: what is written into the file
/// of a running session would be lost.
pub fn at_rest(live: bool) -> Reach {
    if live { on_resume(Mode::New, Way::Beside) } else { on_resume(Mode::Append, Way::Replace) }
}

/// The error of an agent whose sessions are never written.
pub fn read_only(title: &str) -> Error {
    let what = format!("applying: sessions of {title} are only read");
    Error::new(ErrorKind::Refused, what).hint(Hint::WriteCopy)
}

/// A version, if its first number is above `known`.
pub fn later(version: &str, known: u32) -> Option<String> {
    let major: u32 = version.split('.').next()?.parse().ok()?;
    (major > known).then(|| version.to_owned())
}

/// Whether the session is in use, as far as is known: its writer's lock is held, it is the one that calls, or a
/// call in it is running.
pub fn is_live(env: &Env, agent: AgentRef, id: &str, path: &Path) -> bool {
    let calls = env.inside == Some(agent) && env.session.as_deref() == Some(id);
    calls || agent.is_running(env, id, path)
}

/// The same for a session that may be damaged: a call that has run since long before `now` (ms since 1970) is no sign
/// of life, it may be what is to be mended.
pub fn is_in_use(env: &Env, agent: AgentRef, id: &str, path: &Path, now: i64) -> bool {
    const LONG: i64 = 15 * 60 * 1000;
    let changed = agent.info().database.and_then(|it| it.changed_ms(path, id));
    is_live(env, agent, id, path) && changed.is_none_or(|it| now - it < LONG)
}

/// One shell command that resumes a session, from any directory: resuming elsewhere silently starts a new one. A file
/// that the agent does not find by itself is taken in, after those of the session's sub-agents.
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
