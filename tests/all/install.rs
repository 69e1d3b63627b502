//! `install` and `uninstall`, through the program: every byte is as before, whatever stood there and whoever wrote meanwhile,
//! and what may not be changed is refused with nothing changed. And the blocks to copy for the other clients.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::apply::{answer, epitome};

const AGENTS: [&str; 4] = ["claude-code", "codex", "gemini-cli", "opencode"];

/// The settings of an agent: where the server stands, where the hooks do.
fn settings(agent: &str) -> [&'static str; 2] {
    match agent {
        "claude-code" => [".claude.json", ".claude/settings.json"],
        "codex" => [".codex/config.toml"; 2],
        "gemini-cli" => [".gemini/settings.json"; 2],
        "opencode" => [".config/opencode/opencode.json"; 2],
        other => unreachable!("{other}"),
    }
}

const JSON: [&str; 7] = [
    "{}",
    "",
    "{\n  // mine\n  \"mcpServers\": {\"other\": {\"command\": \"y\"}},\n  \"mcp\": {\"x\": {}}, /* , */\n  \"hooks\" : {\"PreCompact\":[ {\"hooks\":[{\"command\":\"z\"}]} ], },\n  \"model\":\"x\" }",
    "{\r\n  \"z\": 1,\r\n  \"mcpServers\": {\r\n  },\r\n  \"mcp\": {},\r\n  \"hooks\": {\"SessionStart\": []}\r\n}\r\n",
    "\u{feff}{\"model\": \"x\"}",
    "// first\n{\"b\": 1, \"a\": \"}{\\\"//\"}\n// last, without a line break",
    "{\n\t\"ключ\": \"é\u{1F600}\",\n\t\"mcpServers\": {\n\t\t\"a\": {}, // trailing\n\t},\n}",
];

const TOML: [&str; 6] = [
    "",
    "# mine\nmodel = \"x\"\n[mcp_servers.other]\ncommand = \"y\"\n[[hooks.PreCompact]]\n[[hooks.PreCompact.hooks]]\ntype = \"command\"\ncommand = \"z\"",
    "model = \"x\"\r\n[projects.\"/p q\"]\r\ntrust_level = \"trusted\"\r\n",
    "a = 1 # no line break at the end",
    "text = \"\"\"\n# epitome: begin\n[mcp_servers.epitome]\n\"\"\"\n\n\n",
    "\u{feff}[tui]\n  theme = 'é'\n  [tui.sub]\n  x = [1,\n 2, # two\n ]\n",
];

fn texts(agent: &str) -> &'static [&'static str] {
    if agent == "codex" { &TOML } else { &JSON }
}

/// Everything below a home but our own state: bytes, or where a link points.
fn everything(home: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut out = BTreeMap::new();
    let mut open = vec![home.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let about = fs::symlink_metadata(&path).unwrap();
            if about.is_symlink() {
                out.insert(path.clone(), fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes());
            } else if about.is_dir() {
                if !path.ends_with(".local/share/epitome") {
                    open.push(path);
                }
            } else {
                out.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
    }
    out
}

fn write(home: &Path, inside: &str, text: &str) {
    let path = home.join(inside);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A home in which an agent was started once.
fn home(agent: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let folder = match agent {
        "claude-code" => ".claude",
        "codex" => ".codex",
        "gemini-cli" => ".gemini",
        _ => ".config/opencode",
    };
    fs::create_dir_all(home.path().join(folder)).unwrap();
    home
}

/// Runs it; what it changed.
fn changed(home: &Path, arguments: &[&str]) -> Vec<String> {
    let output = epitome(home, &[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_value(answer(&output)["changed"].clone()).unwrap()
}

fn round(home: &Path, agent: &str, more: &[&str]) {
    let before = everything(home);
    let arguments = [&["install", agent], more].concat();
    assert!(!changed(home, &arguments).is_empty(), "{agent}");
    let once = everything(home);
    assert_ne!(once, before, "{agent}");
    assert!(changed(home, &arguments).is_empty(), "{agent}: again");
    assert_eq!(everything(home), once, "{agent}: again");
    changed(home, &["uninstall", agent]);
    assert_eq!(everything(home), before, "{agent} {more:?}");
    assert!(changed(home, &["uninstall", agent]).is_empty(), "{agent}: again");
}

fn every_byte(agent: &str) {
    // Nothing there: the files that were made are gone.
    let there = home(agent);
    round(there.path(), agent, &[]);
    for text in texts(agent) {
        let there = home(agent);
        for inside in settings(agent) {
            write(there.path(), inside, text);
        }
        round(there.path(), agent, &[]);
        round(there.path(), agent, &["--no-hooks"]);
        round(there.path(), agent, &["--no-seat"]);
        round(there.path(), agent, &["--no-hooks", "--no-seat"]);
        if agent == "codex" {
            round(there.path(), agent, &["--gateway"]);
            round(there.path(), agent, &["--gateway", "http://127.0.0.1:9/backend-api/codex", "--no-hooks"]);
        }
    }
}

#[test]
fn every_byte_of_claude_code() {
    every_byte("claude-code");
}

#[test]
fn every_byte_of_codex() {
    every_byte("codex");
}

#[test]
fn codex_gets_the_gateway_only_where_it_is_wanted() {
    let there = home("codex");
    let settings = || fs::read_to_string(there.path().join(".codex/config.toml")).unwrap();
    changed(there.path(), &["install", "codex"]);
    assert!(!settings().contains("openai_base_url"), "not by itself");
    changed(there.path(), &["install", "codex", "--gateway"]);
    assert!(settings().starts_with("openai_base_url = \"http://127.0.0.1:8765/v1\""));
    changed(there.path(), &["install", "codex"]);
    assert!(settings().contains("openai_base_url"), "it stays");
    let doctor = |what: &str| {
        let doctor = answer(&epitome(there.path(), &["doctor", "--json"])).to_string();
        assert_eq!(doctor.contains("no gateway answers there"), what == "gone", "{doctor}");
    };
    // Nothing listens on port 9 of this machine.
    changed(there.path(), &["install", "codex", "--gateway", "http://127.0.0.1:9/v1"]);
    doctor("gone");
    changed(there.path(), &["install", "codex", "--no-seat"]);
    assert!(!settings().contains("openai_base_url"));
    doctor("not wanted");
    write(there.path(), ".codex/config.toml", "model_provider = \"mine\"\n");
    let refused = epitome(there.path(), &["install", "codex", "--gateway"]);
    assert!(!refused.status.success());
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("[model_providers.mine]"),
        "it says what to do by hand"
    );
    assert_eq!(settings(), "model_provider = \"mine\"\n");
    let other = epitome(home("claude-code").path(), &["install", "claude-code", "--gateway"]);
    assert_eq!(other.status.code(), Some(2));
}

#[test]
fn claude_code_compacts_earlier_only_where_that_is_wanted() {
    let home = home("claude-code");
    let home = home.path();
    let before = everything(home);
    let line = || {
        let text = fs::read_to_string(home.join(".claude/skills/epitome/hooks/seat.ts")).unwrap();
        text.lines().find(|it| it.starts_with("const COMPACT_AT")).unwrap().to_owned()
    };
    for (more, expected) in [(&["--compact-at", "60"][..], "60"), (&[], "0")] {
        let done = epitome(home, &[&["install", "claude-code"], more].concat());
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(line(), format!("const COMPACT_AT = {expected}"));
    }
    assert!(epitome(home, &["uninstall", "claude-code"]).status.success());
    assert_eq!(everything(home), before);
    for wrong in [["codex", "60"], ["pi", "60"], ["claude-code", "0"], ["claude-code", "100"]] {
        let refused = epitome(home, &["install", wrong[0], "--compact-at", wrong[1]]);
        assert_eq!(refused.status.code(), Some(2), "{wrong:?}");
    }
    assert_eq!(everything(home), before);
}

#[test]
fn every_byte_of_gemini_cli() {
    every_byte("gemini-cli");
}

/// Gemini CLI refuses a prompt when a hook ends with 2 or more: a program that is gone must not look like that.
#[test]
#[cfg(unix)]
fn gemini_cli_goes_on_when_the_program_is_gone() {
    let home = home("gemini-cli");
    let home = home.path();
    assert!(epitome(home, &["install", "gemini-cli"]).status.success());
    let text = fs::read_to_string(home.join(".gemini/settings.json")).unwrap();
    let settings: Value = serde_json::from_str(&text).unwrap();
    let hooks = settings["hooks"].as_object().unwrap().values().flat_map(|it| it.as_array().unwrap());
    let commands: Vec<&str> = hooks
        .flat_map(|it| it["hooks"].as_array().unwrap())
        .map(|it| it["command"].as_str().unwrap())
        .collect();
    assert!(commands.len() >= 4, "{commands:?}");
    let script = home.join("epitome-script");
    let ended = |command: &str, program: &str| {
        let ours = crate::apply::program().into_string().unwrap();
        assert!(command.contains(&ours), "{command}");
        let mut shell = std::process::Command::new("/bin/bash");
        let output =
            shell.arg("-c").arg(command.replace(&ours, program)).stdin(Stdio::null()).output().unwrap();
        output.status.code()
    };
    for command in commands {
        assert_eq!(ended(command, "/nowhere/epitome"), Some(0), "{command}");
        for code in [0, 1, 2, 3, 126] {
            fs::write(&script, format!("#!/bin/sh\nexit {code}\n")).unwrap();
            fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            let expected = if command.ends_with(" hook") { code } else { 0 };
            assert_eq!(ended(command, script.to_str().unwrap()), Some(expected), "{command} {code}");
        }
    }
}

#[test]
fn every_byte_of_opencode() {
    every_byte("opencode");
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    for agent in AGENTS {
        let there = home(agent);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        for (number, inside) in settings(agent).into_iter().enumerate() {
            let target = there.path().join(format!("dotfiles/{number}"));
            let link = there.path().join(inside);
            if !link.is_symlink() {
                write(there.path(), &format!("dotfiles/{number}"), texts(agent)[2]);
                fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
                symlink(&target, &link).unwrap();
            }
        }
        changed(there.path(), &["install", agent]);
        let link = there.path().join(settings(agent)[0]);
        assert!(link.is_symlink() && fs::read_to_string(&link).unwrap().contains("serve"), "{agent}");
        assert_eq!(mode(&link), 0o640, "{agent}");
        changed(there.path(), &["uninstall", agent]);
        assert!(link.is_symlink(), "{agent}");
        round(there.path(), agent, &[]);
        assert_eq!(mode(&link), 0o640, "{agent}");
    }
}

/// What came of a command that is refused: nothing changed, and it was said why and what to do.
fn refused(home: &Path, agent: &str, words: &[&str]) {
    let before = everything(home);
    let output = epitome(home, &["install", agent]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{agent}: {words:?}");
    assert!(words.iter().all(|it| said.contains(it)), "{agent}: {said}");
    assert_eq!(everything(home), before, "{agent}: {said}");
}

#[test]
fn what_may_not_be_changed_is_refused() {
    for agent in AGENTS {
        // Not there at all.
        let nowhere = tempfile::tempdir().unwrap();
        refused(nowhere.path(), agent, &["is not installed here", "install it"]);
        assert_eq!(fs::read_dir(nowhere.path()).unwrap().count(), 0, "{agent}");
        for inside in settings(agent) {
            // It does not parse.
            let there = home(agent);
            for text in ["{\"a\": [1, }", "a = [\n", "[]", "{\"hooks\": 3}\u{0}"] {
                write(there.path(), inside, text);
                refused(there.path(), agent, &[inside, "expected"]);
            }
            // Registered by hand, or by somebody else.
            let theirs = match agent {
                "codex" => "[mcp_servers.epitome]\ncommand = \"mine\"\n",
                _ => "{\"mcpServers\":{\"epitome\":{\"command\":\"mine\"}},\"mcp\":{\"epitome\":{}}}",
            };
            if inside == settings(agent)[0] {
                write(there.path(), inside, theirs);
                refused(there.path(), agent, &[inside, "by hand", "remove"]);
            }
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                let chmod = |path: &Path, mode| {
                    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
                };
                // The file may not be written, or its folder.
                let path = there.path().join(inside);
                write(there.path(), inside, texts(agent)[2]);
                chmod(&path, 0o444);
                refused(there.path(), agent, &["is not writable", "chmod"]);
                chmod(&path, 0o644);
                let folder = path.parent().unwrap();
                chmod(folder, 0o555);
                refused(there.path(), agent, &["is not writable", "chmod"]);
                chmod(folder, 0o755);
                // A link to nothing.
                fs::remove_file(&path).unwrap();
                std::os::unix::fs::symlink(there.path().join("nothing"), &path).unwrap();
                refused(there.path(), agent, &["symbolic link without a target", "remove the link"]);
                fs::remove_file(&path).unwrap();
                // After all of which it can be done.
                round(there.path(), agent, &[]);
            }
        }
    }
}

/// As a client writes settings again: parsed and printed, with a server and a hook of somebody else's added.
fn with_others(agent: &str, text: &str) -> String {
    let mut all: Value = serde_json::from_str(text).unwrap();
    let section = if agent == "opencode" { "mcp" } else { "mcpServers" };
    all[section]["another"] = json!({"command": "/opt/another"});
    all["theme"] = json!("dark");
    if let Some(events) = all.get_mut("hooks").and_then(Value::as_object_mut) {
        for list in events.values_mut() {
            list.as_array_mut()
                .unwrap()
                .insert(0, json!({"hooks": [{"type": "command", "command": "theirs"}]}));
        }
    }
    serde_json::to_string_pretty(&all).unwrap() + "\n"
}

#[test]
fn what_others_add_meanwhile_stays() {
    for agent in ["claude-code", "gemini-cli", "opencode"] {
        for before in ["{}", "{\"mcpServers\": {\"first\": {}}, \"mcp\": {\"first\": {}}, \"model\": \"x\"}"]
        {
            let there = home(agent);
            for inside in settings(agent) {
                write(there.path(), inside, before);
            }
            changed(there.path(), &["install", agent]);
            for path in everything(there.path())
                .into_keys()
                .filter(|it| it.extension().is_some_and(|it| it == "json"))
            {
                let text = fs::read_to_string(&path).unwrap();
                fs::write(&path, with_others(agent, &text)).unwrap();
            }
            // A newer one takes the old one's place, theirs in between.
            changed(there.path(), &["install", agent]);
            changed(there.path(), &["uninstall", agent]);
            for inside in settings(agent) {
                let text = fs::read_to_string(there.path().join(inside)).unwrap();
                assert!(!text.contains("epitome"), "{agent}: {text}");
                let found: Value = serde_json::from_str(&text).unwrap();
                let section = if agent == "opencode" { "mcp" } else { "mcpServers" };
                assert_eq!(found[section]["another"]["command"], "/opt/another", "{agent}: {text}");
                assert_eq!(found[section].get("first").is_some(), before.contains("first"), "{agent}");
                let theirs = text.matches("\"theirs\"").count();
                let events = found["hooks"].as_object().map_or(0, serde_json::Map::len);
                assert_eq!(theirs, events, "{agent}: {text}");
                assert_eq!(found["theme"], "dark");
            }
        }
    }
}

/// What Codex 0.169 makes of the file when its own `mcp add` and `features enable` run: the comment in front of our first
/// section goes, its own sections come in between ours and in front of our last comment.
fn as_codex_writes(text: &str) -> String {
    let start = text.find("# epitome: begin").unwrap();
    let end = text[start..].find('\n').unwrap() + start + 1;
    let other = "\n[mcp_servers.other]\ncommand = \"/bin/other\"\nargs = [\"x\"]\n\n[mcp_servers.other.env]\nA = \"b\"\n";
    let text = format!("{}{}", &text[..start], &text[end..]);
    let text = text.replacen("[[hooks.SessionStart]]", &format!("{other}[[hooks.SessionStart]]"), 1);
    text.replace("# epitome: end", "\n[features]\nhooks = true\n# epitome: end")
}

#[test]
fn what_codex_adds_in_our_midst_stays() {
    let before = "# mine\nmodel = \"x\"\n[tui]\ntheme = \"a\"";
    let other = "\n\n[mcp_servers.other]\ncommand = \"/bin/other\"\nargs = [\"x\"]\n\n[mcp_servers.other.env]\nA = \"b\"\n\n[features]\nhooks = true\n";
    for again in [false, true] {
        let there = home("codex");
        let path = there.path().join(".codex/config.toml");
        fs::write(&path, before).unwrap();
        changed(there.path(), &["install", "codex"]);
        let text = as_codex_writes(&fs::read_to_string(&path).unwrap());
        fs::write(&path, &text).unwrap();
        if again {
            assert!(!changed(there.path(), &["install", "codex"]).is_empty());
            assert!(changed(there.path(), &["install", "codex"]).is_empty());
            let found: toml::Table = fs::read_to_string(&path).unwrap().parse().unwrap();
            assert!(
                found["mcp_servers"].get("other").is_some() && found["mcp_servers"].get("epitome").is_some()
            );
            assert_eq!(found["hooks"]["PostToolUse"].as_array().unwrap().len(), 1);
        }
        changed(there.path(), &["uninstall", "codex"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{before}{other}"), "{again}");
    }
    // Its own `mcp remove epitome` leaves the hooks; uninstalling takes them.
    let there = home("codex");
    let path = there.path().join(".codex/config.toml");
    fs::write(&path, before).unwrap();
    changed(there.path(), &["install", "codex"]);
    let text = fs::read_to_string(&path).unwrap();
    let server = text.find("[mcp_servers.epitome]").unwrap();
    let hooks = text.find("[[hooks").unwrap();
    fs::write(&path, format!("{}{}", &text[..server], &text[hooks..])).unwrap();
    changed(there.path(), &["uninstall", "codex"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}

/// The command that a block to copy names. JSON as Cursor, VS Code and Zed read it; of YAML, what Goose's block uses:
/// mappings by indentation, JSON in place of a scalar, a list in one line.
fn named(client: &str, text: &str) -> (String, Vec<String>) {
    let list = |it: &Value| serde_json::from_value::<Vec<String>>(it["args"].clone()).unwrap();
    let section = match client {
        "cursor" => "mcpServers",
        "vscode" => "servers",
        "zed" => "context_servers",
        _ => {
            let mut path: Vec<&str> = Vec::new();
            let mut found = BTreeMap::new();
            for line in text.lines() {
                let depth = (line.len() - line.trim_start().len()) / 2;
                let (key, value) = line.trim_start().split_once(':').unwrap();
                path.truncate(depth);
                path.push(key);
                if !value.is_empty() {
                    found.insert(path.join("/"), value.strip_prefix(' ').unwrap().to_owned());
                }
            }
            assert_eq!(found["extensions/epitome/type"], "stdio");
            assert_eq!(found["extensions/epitome/enabled"], "true");
            assert!(found["extensions/epitome/timeout"].parse::<u32>().unwrap() > 0);
            let args = found["extensions/epitome/args"].strip_prefix('[').unwrap().strip_suffix(']').unwrap();
            let command = serde_json::from_str(&found["extensions/epitome/cmd"]).unwrap();
            return (command, args.split(", ").map(str::to_owned).collect());
        }
    };
    let found: Value = serde_json::from_str(text).unwrap();
    let server = &found[section]["epitome"];
    (server["command"].as_str().unwrap().to_owned(), list(server))
}

#[test]
fn the_blocks_to_copy_start_a_server() {
    use std::io::{BufRead, BufReader, Write};
    let there = tempfile::tempdir().unwrap();
    for client in ["cursor", "vscode", "goose", "zed"] {
        let output = epitome(there.path(), &["install", client, "-q"]);
        assert!(output.status.success(), "{client}");
        let (program, arguments) = named(client, &String::from_utf8(output.stdout.clone()).unwrap());
        assert!(Path::new(&program).is_absolute(), "{client}: {program}");
        let told = answer(&epitome(there.path(), &["install", client, "--json"]));
        assert_eq!(
            told["text"].as_str().unwrap().trim_end(),
            String::from_utf8_lossy(&output.stdout).trim_end()
        );
        let people = String::from_utf8(epitome(there.path(), &["install", client]).stdout).unwrap();
        assert!(
            people.starts_with(&format!("add this to {}:\n", told["file"].as_str().unwrap())),
            "{people}"
        );
        let mut server = std::process::Command::new(&program);
        server.env_clear().env("HOME", there.path()).current_dir(there.path()).args(&arguments);
        let mut child =
            server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": client, "version": "1"}}});
        writeln!(input, "{hello}").unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        drop(input);
        let said: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(said["result"]["serverInfo"]["name"], "epitome", "{client}: {line}");
        assert!(child.wait().unwrap().success(), "{client}");
    }
    // Nothing was written.
    assert!(everything(there.path()).is_empty());
}

#[test]
fn the_status_line_is_set_where_it_is_wanted_and_no_other_is_there() {
    let there = home("claude-code");
    let there = there.path();
    let settings = || -> Value {
        serde_json::from_str(&fs::read_to_string(there.join(".claude/settings.json")).unwrap()).unwrap()
    };
    round(there, "claude-code", &["--statusline"]);
    write(there, ".claude/settings.json", "{\n  \"model\": \"x\" // mine\n}\n");
    round(there, "claude-code", &["--statusline"]);
    fs::write(there.join(".claude/settings.json"), "{}").unwrap();
    changed(there, &["install", "claude-code"]);
    assert_eq!(settings()["statusLine"], Value::Null, "not by itself");
    changed(there, &["install", "claude-code", "--statusline"]);
    let command = settings()["statusLine"]["command"].as_str().unwrap().to_owned();
    assert!(command.ends_with("epitome statusline"), "{command}");
    assert!(changed(there, &["install", "claude-code"]).is_empty(), "it stays");
    changed(there, &["uninstall", "claude-code"]);
    assert_eq!(fs::read_to_string(there.join(".claude/settings.json")).unwrap(), "{}");
    // The user's own.
    let own = "{\"statusLine\": {\"type\": \"command\", \"command\": \"~/bin/mine.sh\"}}";
    write(there, ".claude/settings.json", own);
    let output = epitome(there, &["install", "claude-code", "--statusline"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("already has a status line, which is kept"), "{said}");
    assert_eq!(settings()["statusLine"]["command"], "~/bin/mine.sh");
    changed(there, &["uninstall", "claude-code"]);
    assert_eq!(fs::read_to_string(there.join(".claude/settings.json")).unwrap(), own);
    assert_eq!(epitome(there, &["install", "codex", "--statusline"]).status.code(), Some(2));
}

/// What is called through a link, as version managers have it, is registered by that link: an update moves what it points to.
#[cfg(unix)]
#[test]
fn the_path_that_was_called_is_registered() {
    let there = home("claude-code");
    let there = there.path();
    let bin = there.join("shims");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(crate::apply::program(), bin.join("epitome")).unwrap();
    let link = bin.join("epitome").display().to_string();
    let registered = || {
        let text = fs::read_to_string(there.join(".claude.json")).unwrap();
        let all: Value = serde_json::from_str(&text).unwrap();
        all["mcpServers"]["epitome"]["command"].as_str().unwrap().to_owned()
    };
    // By its path, below the directory, and by the PATH.
    for call in [&*link, "./shims/epitome", "epitome"] {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &format!("{call} install claude-code")]).current_dir(there);
        shell.env_clear().env("HOME", there).env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        assert!(shell.output().unwrap().status.success(), "{call}");
        assert_eq!(registered(), link, "{call}");
        changed(there, &["uninstall", "claude-code"]);
    }
}

#[test]
fn every_hook_that_is_written_is_named() {
    for agent in ["claude-code", "codex", "gemini-cli"] {
        let there = home(agent);
        let output = epitome(there.path(), &["install", agent]);
        let said = String::from_utf8(output.stdout).unwrap();
        let text = fs::read_to_string(there.path().join(settings(agent)[1])).unwrap();
        let hooks = match agent {
            "codex" => serde_json::to_value(toml::from_str::<toml::Table>(&text).unwrap()).unwrap(),
            _ => serde_json::from_str(&text).unwrap(),
        };
        let events: Vec<&String> = hooks["hooks"].as_object().unwrap().keys().collect();
        assert!(events.len() >= 4, "{agent}: {events:?}");
        for event in events {
            assert!(said.contains(event.as_str()), "{agent}: {event} is not named in\n{said}");
        }
    }
}

/// Its extension is the seat, and the seat is all that there is.
#[test]
fn pi_is_installed_found_and_told_by_doctor() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    write(
        home,
        ".pi/agent/sessions/--w--/2026_3d0c7a52.jsonl",
        "{\"type\":\"session\",\"id\":\"3d0c7a52\",\"timestamp\":\"2026-05-28T20:26:40.000Z\",\"cwd\":\"/w\"}\n",
    );
    let told = || {
        let told = answer(&epitome(home, &["doctor", "--json"]));
        let agents = told["agents"].as_array().unwrap().clone();
        let pi = agents.into_iter().find(|it| it["agent"] == "pi").unwrap();
        (pi, told["problems"].to_string())
    };
    let (before, problems) = told();
    assert_eq!((&before["seat"], &before["sessions"]), (&json!("pi"), &json!(1)));
    assert!(problems.contains("epitome install pi"), "{problems}");
    assert_eq!(changed(home, &["install", "pi", "--no-seat"]), Vec::<String>::new());
    round(home, "pi", &[]);
    let refused = epitome(home, &["install", "pi", "--no-hooks"]);
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && text.contains("--no-hooks"), "{text}");
    assert_eq!(changed(home, &["install", "pi"]).len(), 1);
    let (after, problems) = told();
    assert_eq!(after["seat"], "Epitome");
    assert!(!problems.contains("install pi"), "{problems}");
    assert_eq!(changed(home, &["install", "pi", "--no-seat"]).len(), 1);
    assert_eq!(told().0["seat"], "pi");
    let other = epitome(home, &["install", "foo"]);
    let text = String::from_utf8_lossy(&other.stderr);
    assert!(text.contains("opencode, pi"), "{text}");
}

/// Every folder below a home.
fn folders(home: &Path) -> Vec<PathBuf> {
    let (mut out, mut open) = (Vec::new(), vec![home.to_owned()]);
    while let Some(folder) = open.pop() {
        let inside = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path());
        open.extend(inside.filter(|it| it.is_dir() && !it.is_symlink()));
        out.push(folder);
    }
    out.sort();
    out
}

#[test]
fn no_folder_that_was_made_is_left() {
    let there = tempfile::tempdir().unwrap();
    let there = there.path();
    for folder in [".claude/skills", ".codex", ".gemini", ".config/opencode", ".pi"] {
        fs::create_dir_all(there.join(folder)).unwrap();
    }
    let before = folders(there);
    let agents = ["claude-code", "codex", "gemini-cli", "opencode", "pi"];
    for agent in agents {
        assert!(epitome(there, &["install", agent]).status.success(), "{agent}");
    }
    assert!(epitome(there, &["install", "codex", "--prompts"]).status.success());
    assert!(folders(there).len() > before.len() + 5);
    // Somebody else's file keeps its folder.
    write(there, ".config/opencode/plugins/theirs.js", "");
    for agent in agents {
        assert!(epitome(there, &["uninstall", agent]).status.success(), "{agent}");
    }
    fs::remove_file(there.join(".config/opencode/plugins/theirs.js")).unwrap();
    fs::remove_dir(there.join(".config/opencode/plugins")).unwrap();
    // An empty folder of the user's own stays.
    assert_eq!(folders(there), before);
}
