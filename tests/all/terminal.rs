//! Every command on a session whose every field is hostile, in a folder with a hostile name: nothing that is printed for
//! people holds a character on which a terminal acts. (A pipe is no terminal: without colours of our own.)

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use serde_json::{Value, json};

use crate::apply::{command, database, example};
use crate::gateway;

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
    harmless_bytes(&output.stderr, what);
    harmless_bytes(&output.stdout, what)
}

fn harmless_bytes(bytes: &[u8], what: &str) -> String {
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
    text.into_owned()
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
    // A message is read by the handle of its session and its range, as printed.
    let first: Vec<&str> = found.split_whitespace().take(3).collect();
    let range = if first[1] == "--range" { &first[1..3] } else { &[] };
    shows(&[&["recall", first[0], "--limit", "4000", "--scope", "all"], range].concat());
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

/// The program in a home with a hostile name, all three streams ours.
fn started(home: &Path, words: &[&str]) -> Child {
    let mut command = command(home, words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn hostile_home(folder: &tempfile::TempDir) -> PathBuf {
    let home = folder.path().join(format!("home{}", HOSTILE.replace('/', "")));
    std::fs::create_dir_all(&home).unwrap();
    home
}

/// Standard output carries the protocol, exactly; what the log says of it is for people.
#[test]
#[cfg(unix)]
fn the_log_of_the_server_acts_on_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let home = hostile_home(&folder);
    let session = session(&home, "claude-code");
    let mut child = started(&home, &["-vv", "serve", "--stdio"]);
    let (mut input, mut output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": HOSTILE, "version": HOSTILE}});
    let tool = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    for (number, (method, params)) in [
        ("initialize", hello),
        ("tools/call", tool("estimate_tokens", json!({"text": HOSTILE}))),
        ("tools/call", tool("estimate_tokens", json!({"session": session}))),
        ("tools/call", tool("estimate_tokens", json!({"session": HOSTILE, "format": HOSTILE}))),
        (
            "tools/call",
            tool("summarize_history", json!({"session": session, "focus": HOSTILE, "to": "file"})),
        ),
        ("tools/call", tool("prune_tool_outputs", json!({"session": session, "protect_tokens": 0}))),
        ("tools/call", tool("recall", json!({"query": HOSTILE, "scope": "all"}))),
        ("tools/call", tool(HOSTILE, json!({HOSTILE: HOSTILE}))),
        ("prompts/get", json!({"name": HOSTILE, "arguments": {"goal": HOSTILE}})),
        ("resources/read", json!({"uri": format!("epitome://session/{HOSTILE}")})),
        (HOSTILE, json!({})),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("{number}{HOSTILE}");
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .unwrap();
        loop {
            let mut line = String::new();
            assert!(output.read_line(&mut line).unwrap() > 0, "no answer to {method:?}");
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == json!(id) {
                break;
            }
        }
    }
    drop(input);
    let log = harmless_bytes(&child.wait_with_output().unwrap().stderr, "serve --stdio");
    assert!(log.contains('␛') && log.contains("<U+202E>"), "the log tells nothing of what was sent: {log}");
}

/// Requests that it answers, passes on, refuses and cannot pass on.
#[test]
#[cfg(unix)]
fn the_log_of_the_gateway_acts_on_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let home = hostile_home(&folder);
    let provider = gateway::Provider::start(|request, out| {
        let body = request.text();
        let _ = match body.contains("hang up") {
            true => out.shutdown(std::net::Shutdown::Both),
            false => write!(out, "HTTP/1.1 500 {HOSTILE}\r\n\r\n{HOSTILE}"),
        };
    });
    let upstream = format!("http://127.0.0.1:{}", provider.port);
    let mut child = started(&home, &["-vv", "serve", "--http", "127.0.0.1:0", "--upstream", &upstream]);
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let (mut seen, mut line) = (Vec::new(), String::new());
    while !line.contains("serving MCP") {
        line.clear();
        assert!(log.read_line(&mut line).unwrap() > 0, "the server did not start");
        seen.extend_from_slice(line.as_bytes());
    }
    let address = line.trim().rsplit(':').next().and_then(|it| it.strip_suffix("/mcp")).unwrap();
    let port: u16 = address.parse().unwrap();
    let mut conversation = gateway::conversation(HOSTILE);
    conversation.push(json!({"type": HOSTILE, HOSTILE: HOSTILE}));
    let compaction = gateway::codex(&gateway::with(conversation.clone(), gateway::local_prompt()), false);
    let trigger = gateway::codex(&gateway::with(vec![json!(HOSTILE)], gateway::trigger()), true);
    // What HTTP lets through in a header or a path.
    let beyond_ascii = HOSTILE.replace(|it: char| it.is_ascii(), "");
    let thread = format!("thread-{beyond_ascii}");
    let headers = [("Content-Type", "application/json"), ("session_id", thread.as_str())];
    for body in [compaction, trigger, json!({"model": HOSTILE, "input": HOSTILE}), json!("hang up")] {
        gateway::post(port, "/v1/responses", &headers, &body);
        gateway::post(port, &format!("/v1/{beyond_ascii}"), &headers, &body);
    }
    // A call over MCP too: who called what stands in the log.
    let call = json!({"jsonrpc": "2.0", "id": HOSTILE, "method": "tools/call", "params": {
        "name": HOSTILE, "arguments": {"session": HOSTILE}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": HOSTILE, "version": "1"},
        },
    }});
    let modern = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
    ];
    gateway::post(port, "/mcp", &modern, &call);
    child.kill().unwrap();
    child.wait().unwrap();
    log.read_to_end(&mut seen).unwrap();
    harmless_bytes(&seen, "serve --http --upstream");
    assert!(provider.seen().len() > 2, "nothing reached the provider");
    println!("{}", String::from_utf8_lossy(&seen));
}

/// Its answer is JSON for a program; its log and its refusal are for people.
#[test]
#[cfg(unix)]
fn what_the_seat_tells_people_acts_on_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let home = hostile_home(&folder);
    let said =
        |role: &str, text: &str| json!({"role": role, "text": text, "toolUses": [], "handle": HOSTILE});
    let long = format!("{HOSTILE}{}", "one more line of the notes\n".repeat(4_000));
    let messages = json!([said("user", HOSTILE), said("assistant", &long), said("user", HOSTILE)]);
    let mut told = String::new();
    for client in ["claude-code", "opencode", "gemini-cli", "pi", HOSTILE] {
        for event in [
            json!({"messages": messages, "session_id": HOSTILE, "sessionId": HOSTILE, "cwd": HOSTILE,
                "transcript_path": HOSTILE, "hook_event_name": HOSTILE}),
            json!({"session_id": HOSTILE, "prompt": HOSTILE, "hook_event_name": "AfterAgent", "cwd": home,
                "transcript_path": format!("{}/{HOSTILE}", home.display())}),
            json!(HOSTILE),
        ] {
            let mut child = started(&home, &["-vv", "seat", client]);
            // It may be done before it has read all.
            let _ = child.stdin.take().unwrap().write_all(event.to_string().as_bytes());
            let output = child.wait_with_output().unwrap();
            told += &harmless_bytes(&output.stderr, &format!("seat {client}: {event}"));
        }
    }
    assert!(told.contains('␛') && told.contains("<U+202E>"), "nothing of the events is told: {told}");
}
