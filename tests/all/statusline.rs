//! `epitome statusline`, through the program: one line from what Claude Code says, or from the two ends of the session, and
//! nothing at all on bad input.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::apply::command;

const NOW: &str = "2026-11-01T12:00:00Z";

/// What it does with this on its standard input.
fn run(home: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = command(home, &[&["statusline", "--now", NOW], arguments].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may be done before it has read all.
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

fn line(home: &Path, input: &Value) -> String {
    let output = run(home, &[], input.to_string().as_bytes());
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn document(home: &Path, input: &Value) -> Value {
    let output = run(home, &["--json"], input.to_string().as_bytes());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// A session of Claude Code of some megabytes whose first request was of 20,000 tokens, and whose last, of 138,000, was
/// answered at 11:58.
fn session(home: &Path) -> PathBuf {
    let (mut text, mut parent) = (String::new(), Value::Null);
    let filler = "The gate keeps its port because clients pin it. ".repeat(200);
    for number in 0..200_u64 {
        let sent = 20_000 + number * (118_000 - 2_000) / 199;
        let at = if number == 199 { "2026-11-01T11:58:00.000Z" } else { "2026-11-01T11:00:00.000Z" };
        for role in ["user", "assistant"] {
            let uuid = format!("00000000-0000-4000-8000-{:012}", number * 2 + u64::from(role == "assistant"));
            let mut message = json!({"role": role, "content": format!("{number}: {filler}")});
            if role == "assistant" {
                message["id"] = json!(format!("m{number}"));
                message["model"] = json!("claude-opus-4-6");
                message["content"] = json!([{"type": "text", "text": "Done."}]);
                message["usage"] = json!({"input_tokens": 10, "cache_read_input_tokens": sent - 2_010,
                    "cache_creation_input_tokens": 2_000, "output_tokens": 2_000});
            }
            let row = json!({"parentUuid": parent, "isSidechain": false, "cwd": home, "sessionId": "s", "version": "2.1.328",
                "type": role, "message": message, "uuid": uuid, "timestamp": at});
            parent = json!(uuid);
            text.push_str(&format!("{row}\n"));
        }
    }
    assert!(text.len() > 1 << 20);
    let path = home.join("s.jsonl");
    std::fs::write(&path, text).unwrap();
    path
}

/// As Claude Code 2.1.251 and later say it: 138,000 of 200,000 tokens, the cache warm until a time.
fn told(path: &Path, expires: &str) -> Value {
    let until = expires.parse::<jiff::Timestamp>().unwrap().as_second();
    json!({"session_id": "s", "transcript_path": path, "model": {"id": "claude-opus-4-6", "display_name": "Opus"},
        "context_window": {"context_window_size": 200_000, "current_usage": {"input_tokens": 10,
            "cache_read_input_tokens": 133_990, "cache_creation_input_tokens": 2_000, "output_tokens": 2_000}},
        "prompt_cache": {"warm": true, "caching_observed": true, "ttl": "5m", "expires_at": until}})
}

#[test]
fn one_line_from_what_claude_code_says() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let path = session(home);
    // What is left of 138,000: the first request's 20,000 and 15 % of the rest.
    assert_eq!(
        line(home, &told(&path, "2026-11-01T12:03:20Z")),
        "69 % of the window (138k of 200k) · compacted about 19 % · cache warm for 4 min\n"
    );
    assert_eq!(
        line(home, &told(&path, "2026-11-01T11:59:00Z")),
        "69 % of the window (138k of 200k) · compact soon: about 19 % · cache expired\n"
    );
    let mut full = told(&path, "2026-11-01T12:50:00Z");
    full["context_window"]["current_usage"]["cache_read_input_tokens"] = json!(163_990);
    assert_eq!(
        line(home, &full),
        "84 % of the window (168k of 200k) · compact now: about 21 % · cache warm for 50 min\n"
    );
    let said = document(home, &told(&path, "2026-11-01T12:03:20Z"));
    let expected = json!({"contract": 1, "session": "s", "model": "claude-opus-4-6", "context": 138_000, "window": 200_000,
        "used_percent": 69.0, "after": 37_700, "after_percent": 18.9, "level": "room", "cache_warm": true,
        "warm_until": "2026-11-01T12:03:20.000Z", "warm_minutes": 4});
    assert_eq!(said, expected);
}

#[test]
fn what_is_not_known_is_left_out() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let mut input = told(Path::new("/nowhere.jsonl"), "2026-11-01T12:03:20Z");
    input["prompt_cache"] = Value::Null;
    assert_eq!(line(home, &input), "69 % of the window (138k of 200k)\n");
    // Right after a compaction nothing is known of the new context; the file still ends with the old one.
    let mut input = told(&session(home), "2026-11-01T12:03:20Z");
    input["context_window"]["current_usage"] = Value::Null;
    assert_eq!(line(home, &input), "");
    // A window that the user gives for the model goes first.
    std::fs::create_dir_all(home.join(".config/epitome")).unwrap();
    std::fs::write(home.join(".config/epitome/config.toml"), "[windows]\n\"claude-opus-4-6\" = 400_000\n")
        .unwrap();
    input = told(Path::new("/nowhere.jsonl"), "2026-11-01T12:03:20Z");
    assert_eq!(line(home, &input), "34 % of the window (138k of 400k) · cache warm for 4 min\n");
}

#[test]
fn older_versions_and_other_agents_are_read_from_the_session() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let said = document(home, &json!({"session_id": "s", "transcript_path": session(home)}));
    assert_eq!((&said["context"], &said["after"]), (&json!(138_000), &json!(37_700)));
    // Five minutes after the last request, which was sent at 11:58.
    assert_eq!(said["warm_until"], "2026-11-01T12:03:00.000Z");
    let rollout = home.join("rollout-2026-11-01T11-00-00-s.jsonl");
    let usage = |sent: u64| json!({"input_tokens": sent, "cached_input_tokens": 9_000, "output_tokens": 500, "total_tokens": sent + 500});
    let rows = [
        json!({"type": "session_meta", "payload": {"id": "s", "timestamp": "2026-11-01T11:50:00.000Z", "cwd": home, "cli_version": "0.169.0"}}),
        json!({"type": "turn_context", "payload": {"model": "gpt-5.5", "cwd": home}}),
        json!({"type": "response_item", "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Mend the gate."}]}}),
        json!({"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Looking."}]}}),
        json!({"type": "event_msg", "payload": {"type": "token_count", "info": {"last_token_usage": usage(10_000), "total_token_usage": usage(10_000), "model_context_window": 258_400}}}),
        json!({"type": "response_item", "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And the port."}]}}),
        json!({"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}}),
        json!({"type": "event_msg", "payload": {"type": "token_count", "info": {"last_token_usage": usage(128_700), "total_token_usage": usage(138_700), "model_context_window": 258_400}}}),
    ];
    let text: String = rows
        .into_iter()
        .map(|mut it| {
            it["timestamp"] = json!("2026-11-01T11:59:00.000Z");
            format!("{it}\n")
        })
        .collect();
    std::fs::write(&rollout, text).unwrap();
    let said = document(home, &json!({"transcript_path": rollout}));
    assert_eq!(
        (&said["context"], &said["window"], &said["used_percent"]),
        (&json!(129_200), &json!(258_400), &json!(50.0))
    );
}

#[test]
fn bad_input_prints_nothing_and_ends_well() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let path = home.join("odd.jsonl");
    std::fs::write(
        &path,
        b"\xff\xfe{\"type\":\"assistant\",\"message\":{\"usage\":{\"input_tokens\":1e400}}}\n\0",
    )
    .unwrap();
    let odd = json!({"transcript_path": path, "context_window": {"context_window_size": "big"}}).to_string();
    let folder = json!({"transcript_path": home}).to_string();
    let deep = "[".repeat(100_000);
    let huge = r#"{"context_window":{"context_window_size":1,"current_usage":{"input_tokens":18446744073709551615,"output_tokens":5}},"prompt_cache":{"expires_at":1e300}}"#;
    for input in ["", "null", "[1]", "{", "\u{0}", &odd, &folder, &deep] {
        let output = run(home, &[], input.as_bytes());
        assert!(output.status.success() && output.stdout.is_empty(), "{input:.80}: {output:?}");
    }
    // No figure is too odd for the arithmetic.
    assert!(run(home, &["--json"], huge.as_bytes()).status.success());
    // A configuration that cannot be read is told on standard error, and the line stays empty.
    std::fs::create_dir_all(home.join(".config/epitome")).unwrap();
    std::fs::write(home.join(".config/epitome/config.toml"), "profil = 1\n").unwrap();
    let output = run(home, &[], told(&path, "2026-11-01T12:03:20Z").to_string().as_bytes());
    assert!(output.status.success() && output.stdout.is_empty() && !output.stderr.is_empty());
}

#[test]
fn nothing_is_written() {
    let home = tempfile::tempdir().unwrap();
    let path = session(home.path());
    line(home.path(), &told(&path, "2026-11-01T12:03:20Z"));
    let found: Vec<_> = std::fs::read_dir(home.path()).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(found, [path], "not even the archive is opened");
}
