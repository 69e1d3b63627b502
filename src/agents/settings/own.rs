//! Reads the settings files of agents, for profiles that depend on an agent's settings. A broken or missing
//! file counts as empty.

use std::path::Path;

use serde_json::Value;

use super::{skip, value_end};
use crate::agents::{Env, named};

/// The value at `path` (names joined by dots) in an agent's settings; `None` if the agent is unknown or the
/// value is not set. `config`: the folder of user configurations (`~/.config`).
pub fn value(env: &Env, config: &Path, agent: &str, path: &str) -> Option<Value> {
    let files = match agent {
        // An OpenCode plugin that compacts.
        "supermemory" => {
            ["supermemory.jsonc", "supermemory.json"].map(|it| config.join("opencode").join(it)).into()
        }
        _ => named(agent)?.settings_files(env, config),
    };
    files.iter().find_map(|file| {
        let whole = read(file)?;
        // The whole path may be one name that contains dots: try that first.
        whole.get(path).or_else(|| path.split('.').try_fold(&whole, |at, name| at.get(name))).cloned()
    })
}

/// A number, also if it is written as a string, as in an environment variable.
pub(crate) fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

/// Whether an environment variable switches something on.
pub(crate) fn is_on(value: &Value) -> bool {
    value.as_str().is_some_and(|it| !["", "0", "false"].contains(&it))
}

/// Parses a settings file in JSON (with comments) or TOML; `None` if that fails.
pub(crate) fn read(file: &Path) -> Option<Value> {
    let text = crate::files::read_to_string(file).ok()?;
    if file.extension().is_some_and(|it| it == "toml") {
        toml::from_str(&text).ok()
    } else {
        serde_json::from_str(&without_comments(text.trim_start_matches('\u{feff}'))?).ok()
    }
}

/// Removes `//` and `/* */` comments and trailing commas from JSON; `None` if the text cannot be scanned.
fn without_comments(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut at = skip(text, 0);
    while let Some(first) = text.as_bytes().get(at) {
        let mark = b"{}[],:".contains(first);
        let end = if mark { at + 1 } else { value_end(text, at)? };
        if b"}]".contains(first) && out.ends_with(',') {
            out.pop();
        }
        out.push_str(text.get(at..end)?);
        at = skip(text, end);
    }
    Some(out)
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
        let found = |agent: &str| {
            let agent = named(agent).unwrap();
            agent.default_model(&env, &home.path().join(".config"), &home.path().join("project"))
        };
        assert_eq!(found("opencode"), None);
        at(".local/state/opencode/model.json", r#"{"recent":[{"providerID":"a","modelID":"used"}]}"#);
        assert_eq!(found("opencode").as_deref(), Some("a/used"));
        at(".config/opencode/opencode.json", "{\"model\": \"b/set\", }");
        assert_eq!(found("opencode").as_deref(), Some("b/set"));
        at("project/opencode.json", "{\"model\": \"c/of-project\"}");
        assert_eq!(found("opencode").as_deref(), Some("c/of-project"));
        assert_eq!(found("codex"), None);
    }
}
