//! The agents' own settings files, as far as profiles honour what stands in them. Only read; what is broken or missing
//! says nothing.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Agent, Env};

/// The value at `path` (names joined by dots) in an agent's settings; nothing if the agent is unknown or does not say.
/// `config`: where programs keep their settings (`~/.config`).
pub fn value(env: &Env, config: &Path, agent: &str, path: &str) -> Option<Value> {
    files(env, config, agent).iter().find_map(|file| {
        let whole = read(file)?;
        // A name may hold dots itself: whole first.
        whole.get(path).or_else(|| path.split('.').try_fold(&whole, |at, name| at.get(name))).cloned()
    })
}

/// `provider/model` that an agent would begin a session in `cwd` with, where a session has to name one that the agent
/// knows: OpenCode 1.18 goes on with the model of the last prompt and fails if it has none of that name. Its order: the
/// project's settings, the user's, what was used last.
pub fn model(env: &Env, config: &Path, agent: Agent, cwd: &Path) -> Option<String> {
    if agent != Agent::OpenCode {
        return None;
    }
    let project = ["opencode.jsonc", "opencode.json"].map(|it| cwd.join(it));
    let set = project.iter().chain(&files(env, config, agent.name())).find_map(|it| {
        let model = read(it)?.get("model")?.as_str()?.to_owned();
        model.contains('/').then_some(model)
    });
    set.or_else(|| {
        let used = read(&env.home.join(".local/state/opencode/model.json"))?;
        let newest = used.pointer("/recent/0")?;
        Some(format!("{}/{}", newest["providerID"].as_str()?, newest["modelID"].as_str()?))
    })
}

/// When an agent compacts by itself, in a few words, as its settings say it. `setting`: the value of `env:NAME` or
/// `AGENT:path`.
pub fn own_compaction(agent: Agent, setting: &dyn Fn(&str) -> Option<Value>) -> String {
    let is = |name: &str, wanted: bool| setting(name).is_some_and(|it| it == wanted);
    let set = |name: &str| {
        setting(name).is_some_and(|it| it.as_str().is_some_and(|it| !["", "0", "false"].contains(&it)))
    };
    let number = |name: &str| setting(name).and_then(|it| it.as_f64().or_else(|| it.as_str()?.parse().ok()));
    match agent {
        Agent::ClaudeCode
            if set("env:DISABLE_AUTO_COMPACT")
                || set("env:DISABLE_COMPACT")
                || is("claude-code:autoCompactEnabled", false) =>
        {
            "off".to_owned()
        }
        Agent::ClaudeCode => {
            let window = number("env:CLAUDE_CODE_AUTO_COMPACT_WINDOW")
                .or_else(|| number("claude-code:autoCompactWindow"));
            window.map_or("when the window is nearly full".to_owned(), |it| format!("near {it} tokens"))
        }
        Agent::Codex => number("codex:model_auto_compact_token_limit")
            .map_or("at 90 % of the window".to_owned(), |it| format!("at {it} tokens")),
        Agent::GeminiCli => {
            let share = number("gemini-cli:model.compressionThreshold").unwrap_or(0.5);
            format!("at {:.0} % of the window", share * 100.0)
        }
        Agent::OpenCode
            if set("env:OPENCODE_DISABLE_AUTOCOMPACT") || is("opencode:compaction.auto", false) =>
        {
            "off".to_owned()
        }
        Agent::OpenCode => "when the window is full".to_owned(),
    }
}

fn read(file: &Path) -> Option<Value> {
    let text = crate::files::read_to_string(file).ok()?;
    if file.extension().is_some_and(|it| it == "toml") {
        toml::from_str(&text).ok()
    } else {
        serde_json::from_str(&without_comments(text.trim_start_matches('\u{feff}'))).ok()
    }
}

/// Where an agent's user keeps settings, the one that wins first.
fn files(env: &Env, config: &Path, agent: &str) -> Vec<PathBuf> {
    let opencode = config.join("opencode");
    match agent {
        "claude-code" => {
            let folder = env.claude_config.clone().unwrap_or_else(|| env.home.join(".claude"));
            vec![folder.join("settings.json"), env.home.join(".claude.json")]
        }
        "codex" => {
            vec![env.codex_home.clone().unwrap_or_else(|| env.home.join(".codex")).join("config.toml")]
        }
        "gemini-cli" => vec![env.home.join(".gemini/settings.json")],
        "opencode" => ["opencode.jsonc", "opencode.json", "config.json"].map(|it| opencode.join(it)).into(),
        "supermemory" => ["supermemory.jsonc", "supermemory.json"].map(|it| opencode.join(it)).into(),
        _ => Vec::new(),
    }
}

/// JSON out of JSON with `//` and `/* */` comments and trailing commas.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut quoted = false;
    while let Some(it) = chars.next() {
        match it {
            '\\' if quoted => {
                out.push(it);
                out.extend(chars.next());
            }
            '"' => {
                quoted = !quoted;
                out.push(it);
            }
            '/' if !quoted && chars.peek() == Some(&'/') => {
                while chars.next_if(|it| *it != '\n').is_some() {}
            }
            '/' if !quoted && chars.peek() == Some(&'*') => {
                chars.next();
                let mut last = ' ';
                for it in chars.by_ref() {
                    if last == '*' && it == '/' {
                        break;
                    }
                    last = it;
                }
            }
            '}' | ']' if !quoted => {
                let kept = out.trim_end().trim_end_matches(',').len();
                if out.trim_end().ends_with(',') {
                    out.truncate(kept);
                }
                out.push(it);
            }
            _ => out.push(it),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_found_in_each_agents_own_file() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str, text: &str| {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        at(".gemini/settings.json", r#"{"model":{"compressionThreshold":0.4}}"#);
        at(".codex/config.toml", "model_auto_compact_token_limit = 200000\n");
        at(".claude/settings.json", r#"{"autoCompactEnabled":false}"#);
        at(
            ".config/opencode/opencode.jsonc",
            "{ // mine\n \"compaction\": { \"auto\": false, /* \"x\" */ \"tail_turns\": 2, },\n \"url\": \"http://a//b\", }",
        );
        at(".config/opencode/supermemory.jsonc", "{\"compactionThreshold\": 0.9}");
        let env = Env { home: home.path().to_owned(), ..Env::default() };
        let config = home.path().join(".config");
        for (agent, path, expected) in [
            ("gemini-cli", "model.compressionThreshold", Some(Value::from(0.4))),
            ("codex", "model_auto_compact_token_limit", Some(200_000.into())),
            ("claude-code", "autoCompactEnabled", Some(false.into())),
            ("opencode", "compaction.auto", Some(false.into())),
            ("opencode", "compaction.tail_turns", Some(2.into())),
            ("opencode", "url", Some("http://a//b".into())),
            ("supermemory", "compactionThreshold", Some(0.9.into())),
            ("gemini-cli", "model.other", None),
            ("nobody", "x", None),
        ] {
            assert_eq!(value(&env, &config, agent, path), expected, "{agent} {path}");
        }
    }

    #[test]
    fn the_model_that_a_session_begins_with() {
        let home = tempfile::tempdir().unwrap();
        let at = |path: &str, text: &str| {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let env = Env { home: home.path().to_owned(), ..Env::default() };
        let found = |agent| model(&env, &home.path().join(".config"), agent, &home.path().join("project"));
        assert_eq!(found(Agent::OpenCode), None);
        at(".local/state/opencode/model.json", r#"{"recent":[{"providerID":"a","modelID":"used"}]}"#);
        assert_eq!(found(Agent::OpenCode).as_deref(), Some("a/used"));
        at(".config/opencode/opencode.json", "{\"model\": \"b/set\", }");
        assert_eq!(found(Agent::OpenCode).as_deref(), Some("b/set"));
        at("project/opencode.json", "{\"model\": \"c/of-project\"}");
        assert_eq!(found(Agent::OpenCode).as_deref(), Some("c/of-project"));
        assert_eq!(found(Agent::Codex), None);
    }
}
