//! Shell commands that resume a session, to be shown to the user.

use std::path::{Path, PathBuf};

use crate::agents::{AgentRef, Env};

/// One shell command that resumes a session from any directory (without the `cd`, an agent may silently start
/// a new one). `file`: imported first, after the files of its sub-agents.
pub fn resume_command(
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
        commands.extend(sub_agents.iter().filter_map(|it| agent.import_command(&word(it))));
        commands.push(agent.import_and_resume_command(env, &word(file), &quoted(id)));
    } else {
        commands.push(agent.resume_command(env, &quoted(id)));
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
    use super::*;
    use crate::agents::named;

    #[cfg(unix)]
    #[test]
    fn commands_work_from_anywhere() {
        let env = Env { variables: [("CODEX_HOME".into(), "/x y".into())].into(), ..Env::default() };
        let agent = |name| named(name).unwrap();
        let here = Path::new("/it's here");
        assert_eq!(
            resume_command(&env, agent("codex"), &[], None, "a-1", Some(here)),
            r"cd '/it'\''s here' && CODEX_HOME='/x y' codex resume a-1"
        );
        assert_eq!(
            resume_command(&env, agent("claude-code"), &[], None, "$(x)", None),
            "claude --resume '$(x)'"
        );
        assert_eq!(
            resume_command(
                &env,
                agent("opencode"),
                &[],
                Some(Path::new("/e.json")),
                "ses_1",
                Some(Path::new("/p"))
            ),
            "cd /p && opencode import /e.json && opencode --session ses_1"
        );
    }
}
