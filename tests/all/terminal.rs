//! Every command on a session whose every field is hostile, in a folder with a hostile name: nothing that is printed for
//! people holds a character on which a terminal acts. (A pipe is no terminal: without colours of our own.)

use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::apply::{command, database, example};

/// Title, clipboard, a cleared screen, C1 controls, overwriting, a forged section, and a change of direction.
const HOSTILE: &str = "\u{1b}]0;title\u{7}\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}[2J\u{9b}31m\u{9d}0;x\u{9c}\r\u{8}\u{7f}\n- Rules:\u{202e}\u{2066}\u{85}\u{1}";

/// The id of the example session.
const ID: &str = "3d0c7a52-6f1e-4c58-9a41-0b8e5f2c7d10";

/// What decides how a record is read, and is written by the agent itself.
const STRUCTURE: [&str; 17] = [
    "type",
    "role",
    "subtype",
    "status",
    "timestamp",
    "startTime",
    "lastUpdated",
    "kind",
    "mime",
    "mimeType",
    "url",
    "media_type",
    "data",
    "version",
    "cli_version",
    "finish",
    "stop_reason",
];

/// Adds the hostile text to every string; in JSON within a string too. The same ids stay the same.
fn hostile(value: &mut Value, here: &str) {
    match value {
        Value::String(text) if text == "/home/ada/checkout" => here.clone_into(text),
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            Ok(mut inner @ (Value::Object(_) | Value::Array(_))) => {
                hostile(&mut inner, here);
                *text = inner.to_string();
            }
            // What is long is also seen where only its beginning is shown.
            _ if text.len() > 60 => *text = format!("{HOSTILE}{text}{HOSTILE}"),
            _ => text.push_str(HOSTILE),
        },
        Value::Array(all) => all.iter_mut().for_each(|it| hostile(it, here)),
        Value::Object(fields) => {
            for (key, field) in fields {
                if !STRUCTURE.contains(&key.as_str()) || !field.is_string() {
                    hostile(field, here);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn hostile_lines(name: &str, here: &str) -> Vec<u8> {
    let text = String::from_utf8(example(name)).unwrap();
    let line = |it: &str| {
        let mut value: Value = serde_json::from_str(it).unwrap();
        hostile(&mut value, here);
        format!("{value}\n")
    };
    match serde_json::from_str::<Value>(&text) {
        Ok(_) => line(&text).into_bytes(),
        Err(_) => text.lines().map(line).collect::<String>().into_bytes(),
    }
}

fn place(path: PathBuf, bytes: &[u8]) -> PathBuf {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Puts the session where its agent keeps it; how it is named.
fn session(home: &Path, agent: &str) -> String {
    let here = home.to_str().unwrap();
    let path = match agent {
        "claude-code" => {
            let slug: String =
                here.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '-' }).collect();
            let path = home.join(format!(".claude/projects/{slug}/{ID}{HOSTILE}.jsonl"));
            place(path, &hostile_lines("claude-code.jsonl", here))
        }
        "codex" => {
            let path =
                home.join(format!(".codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-{ID}.jsonl"));
            // Codex takes no other id.
            let bytes = String::from_utf8(hostile_lines("codex.jsonl", here)).unwrap();
            let (id, escaped) = (serde_json::json!(ID), serde_json::json!(format!("{ID}{HOSTILE}")));
            place(path, bytes.replace(&escaped.to_string(), &id.to_string()).as_bytes())
        }
        "gemini-cli" => {
            let path =
                home.join(format!(".gemini/tmp/p/chats/session-2026-01-01T00-00-aaaaaaaa{HOSTILE}.jsonl"));
            let projects = serde_json::json!({"projects": {here: "p"}});
            place(home.join(".gemini/projects.json"), projects.to_string().as_bytes());
            place(path, &hostile_lines("gemini-cli.jsonl", here))
        }
        "opencode" => {
            let path = place(home.join(".local/share/opencode/opencode.db"), b"");
            let id = database(&path, &hostile_lines("opencode.json", here));
            return format!("{}#{id}", path.display());
        }
        other => unreachable!("{other}"),
    };
    path.display().to_string()
}

fn harmless(output: &Output, what: &str) -> String {
    for bytes in [&output.stdout, &output.stderr] {
        let text = String::from_utf8_lossy(bytes);
        let active = |it: char| {
            (it.is_control() && it != '\n' && it != '\t')
                || matches!(it, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        if let Some(at) = text.find(active) {
            let before =
                text[..at].chars().rev().take(80).collect::<Vec<_>>().into_iter().rev().collect::<String>();
            panic!("{what}: {:?} after {before:?}", text[at..].chars().next());
        }
    }
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn every_command(agent: &str) {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join(format!("home{}", HOSTILE.replace('/', "")));
    std::fs::create_dir_all(&home).unwrap();
    let session = session(&home, agent);
    let run = |words: &[&str]| {
        let output = command(&home, words).output().unwrap();
        (harmless(&output, &format!("{agent}: {words:?}")), output)
    };
    // Where a text of the session must be seen, so that this tests something.
    let silent = std::cell::RefCell::new(Vec::new());
    let shows = |words: &[&str]| {
        let (text, output) = run(words);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        if !text.contains('␛') {
            silent.borrow_mut().push(format!("{words:?}: {text}{error}"));
        }
        text
    };
    shows(&[]);
    shows(&["sessions"]);
    shows(&["estimate", &session]);
    run(&["split", &session]);
    shows(&["prune", &session, "--protect", "0"]);
    run(&["compact", &session]);
    shows(&["compact", &session, "--focus", HOSTILE, "--pin", HOSTILE]);
    run(&["compact", &session, "--summarizer", "host"]);
    shows(&["handoff", &session, "--goal", HOSTILE]);
    shows(&["watch", "--once", &session, "--window", "22000"]);
    run(&["compare", &session]);
    let copy = home.join(format!("copy{HOSTILE}.json")).display().to_string();
    shows(&["compact", &session, "--out", &copy]);
    let (_, scored) = run(&["score", &session, &copy]);
    assert_eq!(scored.status.code(), Some(0), "{agent}: {}", String::from_utf8_lossy(&scored.stderr));
    shows(&["report", &session, "-o", &format!("{copy}.html")]);
    shows(&["prune", &session, "--protect", "0", "--out", &format!("{copy}.pruned")]);
    shows(&["handoff", &session, "--goal", "x", "--apply"]);
    shows(&["compact", &session, "--apply"]);
    shows(&["sessions"]);
    let found = shows(&["recall", "retry", "--scope", "all"]);
    let handle = found.split_whitespace().next().unwrap().to_owned();
    shows(&["recall", &handle, "--limit", "4000", "--scope", "all"]);
    run(&["recall"]);
    run(&["restore", "last"]);
    run(&["restore", "last", "--apply"]);
    run(&["memory", "add", HOSTILE]);
    run(&["memory", "add", "--pin", &format!("Never push. {HOSTILE}")]);
    let remembered = shows(&["memory", "list"]);
    shows(&["memory", "search", "push"]);
    let memory = remembered.lines().find(|it| it.contains("Never")).unwrap();
    shows(&["memory", "show", memory.split_whitespace().next().unwrap()]);
    for words in [
        ["estimate", HOSTILE].as_slice(),
        &["estimate", &format!("missing{HOSTILE}.jsonl")],
        &["estimate", &session, "--profile", HOSTILE],
        &["estimate", &session, "--format", HOSTILE],
        &["estimate", &session, "--agent", HOSTILE],
        &["estimate", &session, "--tokenizer", HOSTILE],
        &["estimate", &session, "--next", HOSTILE],
        &["estimate", &session, HOSTILE],
        &["compact", &session, "--style", HOSTILE],
        &["compact", "--handle", HOSTILE, "--answer", HOSTILE],
        &["recall", HOSTILE],
        &["recall", "--scope", HOSTILE, "x"],
        &["restore", HOSTILE],
        &["memory", "import", HOSTILE],
        &["memory", "tidy"],
        &["memory", "gc", "--before", HOSTILE],
        &["score", &session, HOSTILE],
        &["schema", HOSTILE],
        &["install", HOSTILE],
        &["install", agent, "--dry-run"],
        &["profiles", HOSTILE],
        &["profiles"],
        &["doctor"],
        &[HOSTILE],
        &["--now", HOSTILE],
        &["-vv", "compact", &session],
    ] {
        run(words);
    }
    assert_eq!(silent.into_inner(), Vec::<String>::new(), "{agent}: these print nothing of the session");
}

#[test]
#[cfg(unix)]
fn no_command_lets_a_session_act_on_the_terminal() {
    std::thread::scope(|scope| {
        for agent in ["claude-code", "codex", "gemini-cli", "opencode"] {
            scope.spawn(move || every_command(agent));
        }
    });
}

/// What is asked for as it is comes as it is.
#[test]
#[cfg(unix)]
fn what_goes_to_a_program_is_exact() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let session = session(home, "claude-code");
    let json = crate::apply::answer(&command(home, &["compact", &session, "--json"]).output().unwrap());
    assert!(json["session"]["id"].as_str().unwrap().ends_with(HOSTILE), "{}", json["session"]);
    let out = home.join("out.jsonl");
    let made = command(home, &["compact", &session, "--out", out.to_str().unwrap()]).output().unwrap();
    assert_eq!(made.status.code(), Some(0));
    let piped = command(home, &["compact", &session, "--out", "-"]).output().unwrap();
    assert_eq!(piped.stdout, std::fs::read(&out).unwrap());
    assert!(String::from_utf8_lossy(&piped.stdout).contains("\\u001b"));
    let original = command(home, &["restore", "last", "--out", "-"]).output().unwrap();
    assert_eq!(original.stdout, std::fs::read(&session).unwrap());
}
