//! For each agent: how a result is written back, when it takes effect, whether the session is in use, and the command
//! that resumes it. The agents' modules name the versions for which this holds.

pub mod shell;

use std::path::Path;

use super::{AgentRef, Env};
use crate::answers::TakesEffect;
use sessions::Mode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Clears or shortens tool outputs.
    Prune,
    Compact,
    /// Restores a session to what it was, keeping its later turns.
    Restore,
}

/// How the bytes of a result are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Overwrites bytes of the file without moving any.
    InPlace,
    /// Replaces the whole file.
    Replace,
    /// Writes a new file, as a new session.
    NewFile,
    /// Changes rows of a database, in one transaction.
    Database,
}

/// How one [`Operation`] on a running or idle session is written back (the test `the_table` shows all).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteMethod {
    pub mode: Mode,
    pub placement: Placement,
    pub takes_effect: TakesEffect,
}

/// Takes effect when the session is resumed.
pub fn on_resume(mode: Mode, placement: Placement) -> WriteMethod {
    WriteMethod { mode, placement, takes_effect: TakesEffect::OnResume }
}

/// Takes effect with the next request.
pub fn on_next_request(mode: Mode, placement: Placement) -> WriteMethod {
    WriteMethod { mode, placement, takes_effect: TakesEffect::NextRequest }
}

/// For an agent that reads its file only on resuming: changes to a running session's file would be lost.
pub fn replace_when_idle(live: bool) -> WriteMethod {
    if live { on_resume(Mode::New, Placement::NewFile) } else { on_resume(Mode::Append, Placement::Replace) }
}

/// `version`, if its major version is above `known`.
pub fn if_major_above(version: &str, known: u32) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::{ALL, named};

    #[test]
    fn the_table() {
        let mut out = String::new();
        for agent in ALL {
            for (operation, live) in [
                (Operation::Compact, false),
                (Operation::Prune, false),
                (Operation::Prune, true),
                (Operation::Compact, true),
            ] {
                let cell = match agent.write_method(operation, live, false) {
                    Ok(it) => format!("{:?} {:?} {:?}", it.mode, it.placement, it.takes_effect),
                    Err(error) => error.code().to_owned(),
                };
                let running = if live { "running" } else { "idle" };
                let operation = format!("{operation:?}");
                out.push_str(&format!("{:<12}{running:<8}{operation:<10}{cell}\n", agent.name()));
            }
        }
        insta::assert_snapshot!(out, @r"
        claude-code idle    Compact   New NewFile OnResume
        claude-code idle    Prune     Patch InPlace OnResume
        claude-code running Prune     Patch InPlace OnResume
        claude-code running Compact   New NewFile OnResume
        codex       idle    Compact   Append Replace OnResume
        codex       idle    Prune     Append Replace OnResume
        codex       running Prune     New NewFile OnResume
        codex       running Compact   New NewFile OnResume
        gemini-cli  idle    Compact   Append Replace OnResume
        gemini-cli  idle    Prune     Append Replace OnResume
        gemini-cli  running Prune     New NewFile OnResume
        gemini-cli  running Compact   New NewFile OnResume
        opencode    idle    Compact   Append Database NextRequest
        opencode    idle    Prune     Patch Database NextRequest
        opencode    running Prune     Patch Database NextRequest
        opencode    running Compact   New Database OnResume
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
            assert_eq!(agent.untested_version(head).as_deref(), expected, "{agent:?} {head}");
        }
    }
}
