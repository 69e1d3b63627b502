//! How long a running agent waits for its compaction: from the event to the answer, with the process's start, by the size
//! of the conversation; beside reading as plain JSON what Claude Code would hand over, in the same run. Of the gateway,
//! from the request to the last byte of its answer, and what it adds to a request that it passes on. Prints tables of
//! medians; `cargo bench --bench seat [-- ROUNDS]`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program for people, of which a failure is the result"
)]

#[path = "table/sessions.rs"]
#[allow(dead_code, reason = "the table's own bench uses the rest")]
mod sessions;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sessions::Agent;

const SESSION: &str = "5f0c1a52-7f5e-4b1e-9d55-0a1b2c3d4e5f";
/// Bytes of a made-up session's text for one token.
const BYTES: usize = 4;

/// What was said, in order.
enum Step {
    User(String),
    Assistant(String),
    Call(String, Value),
    Output(String, String),
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

/// The steps of a transcript of Claude Code.
fn steps(path: &Path) -> Vec<Step> {
    let of = |row: &Value| -> Option<Step> {
        let content = &row["message"]["content"];
        let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        let block = &content[0];
        Some(match (row["type"].as_str()?, block["type"].as_str()) {
            ("user", Some("tool_result")) => {
                Step::Output(text(&block["tool_use_id"]), text(&block["content"]))
            }
            ("user", _) => Step::User(text(content)),
            (_, Some("tool_use")) => Step::Call(text(&block["id"]), block["input"].clone()),
            (_, _) => Step::Assistant(text(&block["text"])),
        })
    };
    lines(path).iter().filter_map(of).collect()
}

fn claude(home: &Path, bytes: usize) -> (Value, Vec<Step>) {
    let path = home.join(".claude/projects/-home-dev-shop").join(format!("{SESSION}.jsonl"));
    sessions::write(&path, Agent::Claude, bytes, bytes);
    let message = |it: &Step| match it {
        Step::User(text) => json!({"role": "user", "text": text, "toolUses": []}),
        Step::Assistant(text) => json!({"role": "assistant", "text": text, "toolUses": []}),
        Step::Call(id, input) => {
            json!({"role": "assistant", "text": "", "toolUses": [{"tool_use_id": id, "tool": "Read", "input": input}]})
        }
        Step::Output(id, text) => {
            json!({"role": "user", "text": "", "toolUses": [], "toolResults": [{"tool_use_id": id, "text": text, "isError": false}]})
        }
    };
    let steps = steps(&path);
    let last = lines(&path).last().unwrap()["uuid"].clone();
    let messages: Vec<Value> = steps.iter().map(message).collect();
    (json!({"trigger": "auto", "lastRow": last, "messages": messages}), steps)
}

fn gemini(home: &Path, bytes: usize) -> Value {
    let path = home.join(".gemini/tmp/shop/chats/session-2026-11-01T00-00-5f0c1a52.jsonl");
    sessions::write(&path, Agent::Gemini, bytes, bytes);
    json!({"session_id": SESSION, "transcript_path": path, "cwd": "/home/dev/shop", "hook_event_name": "AfterAgent",
        "prompt": "EPITOME: compact this conversation now. Focus: ", "stop_hook_active": false})
}

fn opencode(home: &Path, steps: &[Step]) -> Value {
    let path = home.join(".local/share/opencode/opencode.db");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut db = rusqlite::Connection::open(&path).unwrap();
    db.execute_batch(
        "PRAGMA journal_mode = WAL;
         CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, slug TEXT, directory TEXT, title TEXT,
            version TEXT, time_created INTEGER, time_updated INTEGER);
         CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
         CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
         CREATE INDEX of_session ON message (session_id); CREATE INDEX of_message ON part (message_id);
         INSERT INTO session VALUES ('ses_bench', 'global', NULL, 's', '/home/dev/shop', 'Bench', '1.18.33', 1, 2);",
    )
    .unwrap();
    let all = db.transaction().unwrap();
    let mut input = &Value::Null;
    for (number, step) in (0_i64..).zip(steps) {
        let (role, part) = match step {
            Step::User(text) => ("user", json!({"type": "text", "text": text})),
            Step::Assistant(text) => ("assistant", json!({"type": "text", "text": text})),
            Step::Call(_, it) => {
                input = it;
                continue;
            }
            Step::Output(id, text) => (
                "assistant",
                json!({"type": "tool", "callID": id, "tool": "read", "state": {"status": "completed", "input": input, "output": text,
                    "title": "", "metadata": {}, "time": {"start": number, "end": number}}}),
            ),
        };
        let info =
            json!({"role": role, "time": {"created": number}, "modelID": "gpt-5", "providerID": "openai"});
        let (message, id) = (format!("msg_{number:08}"), format!("prt_{number:08}"));
        let session = "ses_bench";
        all.execute(
            "INSERT INTO message VALUES (?1, ?2, ?3, ?4)",
            (&message, session, number, info.to_string()),
        )
        .unwrap();
        all.execute(
            "INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?5)",
            (id, &message, session, number, part.to_string()),
        )
        .unwrap();
    }
    all.commit().unwrap();
    json!({"session_id": "ses_bench", "hook_event_name": "Compact", "client": "opencode", "cwd": "/home/dev/shop"})
}

fn pi(steps: &[Step]) -> Value {
    let header = json!({"type": "session", "version": 3, "id": SESSION, "timestamp": "2026-11-01T00:00:00.000Z", "cwd": "/home/dev/shop"});
    let text = |it: &str| json!([{"type": "text", "text": it}]);
    let mut rows = vec![header];
    for (number, step) in steps.iter().enumerate() {
        let message = match step {
            Step::User(it) => json!({"role": "user", "content": text(it)}),
            Step::Assistant(it) => {
                json!({"role": "assistant", "provider": "openai", "model": "gpt-5", "content": text(it)})
            }
            Step::Call(id, input) => json!({"role": "assistant", "provider": "openai", "model": "gpt-5",
                "content": [{"type": "toolCall", "id": id, "name": "read", "arguments": input}]}),
            Step::Output(id, it) => {
                json!({"role": "toolResult", "toolCallId": id, "toolName": "read", "content": text(it), "isError": false})
            }
        };
        let parent = number.checked_sub(1).map(|it| format!("{it:08x}"));
        rows.push(json!({"type": "message", "id": format!("{number:08x}"), "parentId": parent,
            "timestamp": "2026-11-01T00:00:01.000Z", "message": message}));
    }
    let session: String = rows.iter().map(|it| format!("{it}\n")).collect();
    json!({"session": session})
}

/// A request for Codex's local compaction of the session that lies in `home`.
fn codex(home: &Path, bytes: usize) -> Value {
    let path = home.join(format!(".codex/sessions/2026/11/01/rollout-2026-11-01T00-00-00-{SESSION}.jsonl"));
    sessions::write(&path, Agent::Codex, bytes, bytes);
    let mut items: Vec<Value> = lines(&path)
        .into_iter()
        .filter(|it| it["type"] == "response_item")
        .map(|it| it["payload"].clone())
        .collect();
    items.push(json!({"type": "message", "role": "user", "content": [{"type": "input_text",
        "text": "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary."}]}));
    json!({"model": "gpt-5-codex", "instructions": "Work.", "input": items, "tools": [], "stream": true})
}

fn program(home: &Path, arguments: &[&str]) -> Command {
    let binary = std::env::var_os("EPITOME_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_epitome").into());
    let mut command = Command::new(binary);
    command.args(arguments).env_clear().env("HOME", home).env("CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS", SESSION);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// One event answered by a process of its own.
fn seat(home: &Path, client: &str, event: &Value) -> Duration {
    let event = event.to_string();
    let start = Instant::now();
    let mut child = program(home, &["seat", client]).spawn().unwrap();
    child.stdin.take().unwrap().write_all(event.as_bytes()).unwrap();
    let answer = child.wait_with_output().unwrap();
    let took = start.elapsed();
    assert!(answer.status.success() && answer.stdout.len() > 500, "{client}: no answer");
    took
}

/// A gateway before an upstream, and its address.
fn start_gateway(home: &Path, upstream: &str) -> (Child, String) {
    let mut child = program(home, &["serve", "--http", "127.0.0.1:0", "--upstream", upstream])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("http://127.0.0.1:") {
        line.clear();
        assert!(log.read_line(&mut line).unwrap() > 0);
    }
    std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
    let address = line.split("http://").nth(1).unwrap();
    let end =
        address.find(|it: char| it != ':' && it != '.' && !it.is_ascii_digit()).unwrap_or(address.len());
    (child, address[..end].to_owned())
}

/// One compaction by a gateway that runs.
fn gateway(home: &Path, body: &Value) -> Duration {
    let (mut child, address) = start_gateway(home, "http://127.0.0.1:9");
    let body = body.to_string();
    let start = Instant::now();
    let mut stream = TcpStream::connect(&address).unwrap();
    let head = format!(
        "POST /v1/responses HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nthread-id: {SESSION}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let took = start.elapsed();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(answer.contains("Earlier conversation compacted"), "{answer}");
    took
}

const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A provider that answers every request with two letters.
fn upstream() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                stream.set_nodelay(true).unwrap();
                let mut reader = BufReader::new(&stream);
                loop {
                    let (mut line, mut length) = (String::new(), 0);
                    while line != "\r\n" {
                        line.clear();
                        if reader.read_line(&mut line).unwrap_or(0) == 0 {
                            return;
                        }
                        if let Some(it) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                            length = it.trim().parse().unwrap();
                        }
                    }
                    std::io::copy(&mut (&mut reader).take(length), &mut std::io::sink()).unwrap();
                    (&stream).write_all(REPLY).unwrap();
                }
            });
        }
    });
    address
}

/// The same request again and again on one connection.
fn passed(address: &str, body: &str, rounds: usize) -> Vec<Duration> {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(&stream);
    let request = format!(
        "POST /v1/responses HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let one = |_| {
        let start = Instant::now();
        (&stream).write_all(request.as_bytes()).unwrap();
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            assert!(reader.read_line(&mut line).unwrap() > 0);
        }
        reader.read_exact(&mut [0; 2]).unwrap();
        start.elapsed()
    };
    (0..rounds).map(one).collect()
}

/// What the gateway adds to requests that it passes on, beside the same requests sent to the provider itself.
fn passing() {
    const ROUNDS: usize = 400;
    let (home, provider) = (tempfile::tempdir().unwrap(), upstream());
    let (mut child, gateway) = start_gateway(home.path(), &format!("http://{provider}"));
    println!("\n{:<16} {:>10} {:>12} {:>10}", "passed request", "direct", "by gateway", "added");
    for bytes in [10_000, 100_000, 1_000_000] {
        let item = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x".repeat(bytes)}]});
        let body = json!({"model": "gpt-5-codex", "input": [item], "tools": [{"type": "function", "name": "shell"}], "stream": true});
        let body = body.to_string();
        passed(&gateway, &body, 20);
        let [direct, through] = [&provider, &gateway].map(|it| median(passed(it, &body, ROUNDS)));
        println!(
            "{:<16} {direct:>7.2} ms {through:>9.2} ms {:>7.2} ms",
            format!("{} kB", bytes / 1_000),
            through - direct
        );
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1_000.0
}

/// Tokens before and after, as they were logged last.
fn logged(home: &Path) -> String {
    let log = std::fs::read_to_string(home.join(".local/share/epitome/seat.jsonl")).unwrap_or_default();
    let last: Value = log.lines().last().and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    format!("{} → {}", last["tokens"][0], last["tokens"][1])
}

/// The first compaction of a session, nothing of which is archived: how long, and its tokens.
fn once(agent: &str, tokens: usize) -> (Duration, String) {
    let home = tempfile::tempdir().unwrap();
    let (home, bytes) = (home.path(), tokens * BYTES);
    let took = match agent {
        "claude-code" => seat(home, agent, &claude(home, bytes).0),
        "opencode" => seat(home, agent, &opencode(home, &claude(home, bytes).1)),
        "gemini-cli" => seat(home, agent, &gemini(home, bytes)),
        "pi" => seat(home, agent, &pi(&claude(home, bytes).1)),
        _ => gateway(home, &codex(home, bytes)),
    };
    (took, logged(home))
}

fn main() {
    let rounds: usize = std::env::args().skip(1).find_map(|it| it.parse().ok()).unwrap_or(5);
    println!(
        "{:<8} {:<14} {:>18} {:>11} {:>22}",
        "size", "agent", "tokens", "answer", "beside reading as JSON"
    );
    for (size, tokens) in [("20k", 20_000), ("200k", 200_000), ("110 %", 0), ("900k", 900_000)] {
        for agent in ["claude-code", "opencode", "gemini-cli", "pi", "codex"] {
            // The windows of the models that the sessions name.
            let over = match agent {
                "codex" => 299_000,
                "gemini-cli" => 1_153_000,
                _ => 220_000,
            };
            let tokens = if tokens == 0 { over } else { tokens };
            let home = tempfile::tempdir().unwrap();
            let plain = claude(home.path(), tokens * BYTES).0.to_string();
            let read = || {
                let start = Instant::now();
                assert!(serde_json::from_str::<Value>(&plain).unwrap().is_object());
                start.elapsed()
            };
            let (times, reads): (Vec<_>, Vec<_>) = (0..rounds).map(|_| (once(agent, tokens), read())).unzip();
            let (times, found): (Vec<_>, Vec<_>) = times.into_iter().unzip();
            let (ours, read) = (median(times), median(reads));
            println!("{size:<8} {agent:<14} {:>18} {ours:>8.0} ms {:>20.0} ×", found[0], ours / read);
        }
    }
    passing();
}
