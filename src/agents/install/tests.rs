use std::path::PathBuf;

use super::*;
use crate::agents::{ALL, AgentRef, Env, named};

const JSON: [&str; 12] = [
    "{}",
    "{ }\n",
    "",
    " \n\t\r\n",
    "{\n  // mine\n  \"mcpServers\": {\"other\": {\"command\": \"y\"}},\n  \"mcp\": {\"x\": {}}, /* , */\n  \"hooks\" : {\"PreCompact\":[ {\"hooks\":[{\"command\":\"z\"}]} ], },\n  \"model\":\"x\" }",
    "{\r\n  \"mcpServers\": {\r\n  },\r\n  \"mcp\": {},\r\n  \"hooks\": {\"SessionStart\": []}\r\n}\r\n",
    "\u{feff}{\"model\": \"x\"}",
    "{\"hooks\": {\"SessionStart\": [{\"matcher\": \"*\", \"hooks\": [{\"command\": \"/opt/other hook\"}]}], \"BeforeAgent\": []}}",
    "// first\n{\"mcpServers\": {}, \"mcp\": {}, \"a\": \"}{\\\"//\"}\n// last",
    "{\"mcpServers\":{\"epitome2\":{}},\"mcp\":{\"epitome2\":{}}}\n\n\n",
    "{\n\t\"ключ\": \"é\u{1F600}\",\n\t\"mcpServers\": {\n\t\t\"a\": {}, // trailing\n\t},\n}",
    "{\"hooks\":{},\"mcpServers\":{},\"mcp\":{}}",
];
const TOML: [&str; 9] = [
    "",
    "\n",
    "# mine\nmodel = \"x\"\n[mcp_servers.other]\ncommand = \"y\"\n[[hooks.PreCompact]]\n[[hooks.PreCompact.hooks]]\ntype = \"command\"\ncommand = \"z\"",
    "model = \"x\"\r\n[projects.\"/p q\"]\r\ntrust_level = \"trusted\"\r\n",
    "a = 1 # no line break at the end",
    "[features]\nhooks = true\n\n\n",
    "text = \"\"\"\n# epitome: begin\n\"\"\"\n",
    "[tui]\n  theme = 'é'\n  [tui.sub]\n  x = [1,\n 2, # two\n ]\n",
    "\u{feff}model = \"x\"\n",
];

/// Installs twice and uninstalls, as the commands do.
fn round(env: &Env, config: &Path, agent: AgentRef, hooks: bool, seat: bool) -> Vec<PathBuf> {
    let of = agent.info().registration.unwrap();
    let program = "/opt/my tools/epitome".into();
    let wanted = InstallRequest {
        program,
        hooks,
        seat,
        trust: false,
        entry_is_ours: false,
        offline: true,
        compact_at: 0,
        status_line: true,
    };
    let write = |changes: &[FileChange]| {
        for it in changes {
            match &it.after {
                Some(text) => {
                    std::fs::create_dir_all(it.path.parent().unwrap()).unwrap();
                    std::fs::write(&it.path, text).unwrap();
                }
                None => drop(std::fs::remove_file(&it.path)),
            }
        }
    };
    let InstallPlan { changes, made } = install(env, config, of, &wanted).unwrap();
    write(&changes);
    let plugin = is_plugin(of) && seat;
    assert_eq!(installed(env, config, of), (true, hooks || plugin), "{agent:?}");
    assert_eq!(has_seat(env, config, of), seat && of.seat_explained.is_some(), "{agent:?}");
    let again = install(env, config, of, &wanted).unwrap();
    assert!(again.changes.iter().all(|it| it.before == it.after), "{agent:?} {again:?}");
    assert!(again.made.values().all(Vec::is_empty), "{again:?}");
    // A newer program at another path replaces it.
    let moved = InstallRequest { program: "/new/epitome".into(), entry_is_ours: true, ..wanted };
    write(&install(env, config, of, &moved).unwrap().changes);
    let undone = uninstall(env, config, of, &made).unwrap();
    write(&undone);
    assert_eq!(installed(env, config, of), (false, false));
    assert!(!has_seat(env, config, of));
    changes.into_iter().map(|it| it.path).collect()
}

fn is_plugin(of: &Registration) -> bool {
    matches!(of.style, SettingsStyle::Plugin { .. })
}

fn all() -> impl Iterator<Item = (AgentRef, &'static Registration)> {
    let all = ALL.into_iter().filter_map(|it| Some((it, it.info().registration?)));
    all.filter(|(_, of)| !matches!(of.style, SettingsStyle::SeatFiles))
}

#[test]
fn every_byte_is_as_before() {
    for (agent, of) in all() {
        for (hooks, seat) in [(true, true), (true, false), (false, true), (false, false)] {
            let home = tempfile::tempdir().unwrap();
            let env = Env { home: home.path().to_owned(), ..Env::default() };
            let config = home.path().join(".config");
            // No files yet.
            for path in round(&env, &config, agent, hooks, seat) {
                assert!(!path.exists(), "{path:?}");
            }
            // Existing files of all kinds.
            let (server, other) = (of.files)(&env, &config);
            let texts = if matches!(of.style, SettingsStyle::Toml) { &TOML[..] } else { &JSON[..] };
            for text in texts {
                for path in [&server, &other] {
                    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                    std::fs::write(path, text).unwrap();
                }
                if is_plugin(of) {
                    std::fs::remove_file(&other).unwrap();
                }
                round(&env, &config, agent, hooks, seat);
                for path in [&server, &other].into_iter().filter(|it| it.exists()) {
                    assert_eq!(std::fs::read_to_string(path).unwrap(), *text, "{agent:?}");
                }
                assert_eq!(other.exists(), !is_plugin(of));
            }
        }
    }
}

#[test]
fn what_was_registered_by_hand_is_not_touched() {
    for (agent, of) in all() {
        let home = tempfile::tempdir().unwrap();
        let env = Env { home: home.path().to_owned(), ..Env::default() };
        let (server, _) = (of.files)(&env, home.path());
        let text = match of.style {
            SettingsStyle::Toml => "[mcp_servers.epitome]\ncommand = \"mine\"\n",
            _ => "{\"mcpServers\":{\"epitome\":{\"command\":\"mine\"}},\"mcp\":{\"epitome\":{}}}",
        };
        std::fs::create_dir_all(server.parent().unwrap()).unwrap();
        std::fs::write(&server, text).unwrap();
        let wanted = everything();
        let error = install(&env, home.path(), of, &wanted).unwrap_err();
        assert!(error.full().contains("by hand"), "{agent:?} {error}");
    }
}

#[test]
fn what_does_not_parse_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let env = Env { home: home.path().to_owned(), ..Env::default() };
    let wanted = everything();
    for (agent, text) in
        [("claude-code", "{\"a\":"), ("gemini-cli", "[]"), ("codex", "a = "), ("gemini-cli", "{\"hooks\":3}")]
    {
        let of = named(agent).unwrap().info().registration.unwrap();
        let (server, _) = (of.files)(&env, home.path());
        std::fs::create_dir_all(server.parent().unwrap()).unwrap();
        std::fs::write(&server, text).unwrap();
        let error = install(&env, home.path(), of, &wanted).unwrap_err();
        assert!(error.place().is_some(), "{agent:?} {error}");
        assert_eq!(std::fs::read_to_string(&server).unwrap(), text);
    }
}

fn everything() -> InstallRequest {
    InstallRequest {
        program: "/e".into(),
        hooks: true,
        seat: true,
        trust: true,
        entry_is_ours: false,
        offline: true,
        compact_at: 0,
        status_line: true,
    }
}
