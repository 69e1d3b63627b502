//! `epitome seat` under what goes wrong around it: the agent gets an answer, or goes on by itself, and nothing is lost.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::apply::{answer, command, epitome};
use crate::seat::{MARK, RULE, all_text, answered, ask, claude_messages, log, transcript};

fn event() -> Value {
    json!({"trigger": "auto", "messages": claude_messages()})
}

/// What is left to the agent: no answer, and why in the log.
fn left_to_the_agent(home: &Path, output: &Output) -> String {
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    log(home).last().unwrap()["failed"].as_str().unwrap().to_owned()
}

fn fed(mut command: Command, event: &[u8]) -> Output {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(event);
    child.wait_with_output().unwrap()
}

#[test]
fn an_event_of_200_mb_is_left_to_the_agent() {
    let home = tempfile::tempdir().unwrap();
    let mut command = command(home.path(), &["seat", "claude-code"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"{\"messages\": [{\"role\": \"user\", \"text\": \"").unwrap();
    let piece = vec![b'x'; 1 << 20];
    let taken = (0..200).take_while(|_| input.write_all(&piece).is_ok()).count();
    assert!((64..200).contains(&taken), "it reads no further than it must: {taken} MiB");
    drop(input);
    let why = left_to_the_agent(home.path(), &child.wait_with_output().unwrap());
    assert!(why.contains("64 MiB"), "{why}");
}

#[test]
fn an_event_of_a_newer_version_is_answered_as_far_as_it_is_understood() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let mut newer = event();
    newer["trigger"] = "from-the-future".into();
    newer["schema"] = json!({"version": 99, "deep": [[{"x": null}]]});
    newer["instructions"] = json!(["no", "text"]);
    for message in newer["messages"].as_array_mut().unwrap() {
        message["blocks"] = json!([{"type": "hologram", "data": "AAAA"}]);
        message["text_v2"] = json!({"rich": true});
    }
    let reply = answered(home, "claude-code", &newer);
    let text = all_text(reply["messages"].as_array().unwrap());
    assert_eq!(text.matches(MARK).count(), 1);
    assert!(text.contains(RULE) && text.contains("Fix the parser."), "{text}");
    // A message that nobody knows is none that may be dropped in silence.
    newer["messages"][1]["role"] = "oracle".into();
    let output = ask(home, "claude-code", newer.to_string().as_bytes());
    left_to_the_agent(home, &output);
}

#[test]
fn compactions_at_once_are_all_answered_and_all_archived() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    transcript(home, &claude_messages());
    let texts: Vec<String> = std::thread::scope(|scope| {
        let one = || all_text(answered(home, "claude-code", &event())["messages"].as_array().unwrap());
        let running: Vec<_> = (0..6).map(|_| scope.spawn(one)).collect();
        running.into_iter().map(|it| it.join().unwrap()).collect()
    });
    for text in &texts {
        assert_eq!(text.matches(MARK).count(), 1);
        assert!(text.contains(RULE));
    }
    let entries = log(home);
    assert_eq!(entries.len(), 6);
    for entry in &entries {
        assert_eq!(entry["failed"], Value::Null, "{entry}");
        let whole = epitome(home, &["recall", entry["handle"].as_str().unwrap(), "--range", "1-100000"]);
        assert!(String::from_utf8_lossy(&whole.stdout).contains("line 77 of the notes"), "{entry}");
    }
}

/// What pi's extension hands over.
fn pi_event(first: &str) -> Value {
    let said = |number: u32, role: &str, text: &str| {
        json!({"type": "message", "id": format!("e{number}"), "parentId": format!("e{}", number - 1), "timestamp": "2026-01-01T00:00:00.000Z",
            "message": {"role": role, "content": [{"type": "text", "text": text}], "timestamp": number}})
    };
    let header = json!({"type": "session", "version": 3, "id": "s1", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/p"});
    let lines = [
        header,
        said(1, "user", &format!("{first} {RULE}")),
        said(2, "assistant", &"It is read. ".repeat(2_000)),
    ];
    json!({"session": lines.map(|it| format!("{it}\n")).concat()})
}

/// It waits as long as pi does for us: eight seconds.
#[test]
fn a_store_that_stays_locked_leaves_the_agent_to_itself() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    answered(home, "pi", &pi_event("Read the notes."));
    let database = home.join(".local/share/epitome/epitome.db");
    let other = rusqlite::Connection::open(&database).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let again = pi_event("Read the notes again.");
    let output = ask(home, "pi", again.to_string().as_bytes());
    let why = left_to_the_agent(home, &output);
    assert!(why.contains("no answer within 8 s"), "{why}");
    other.execute_batch("ROLLBACK").unwrap();
    let reply = answered(home, "pi", &again);
    assert!(reply["summary"].as_str().unwrap().contains(RULE), "{reply}");
}

#[test]
#[cfg(unix)]
fn a_full_disk_leaves_the_agent_to_itself() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let before = answered(home, "claude-code", &event());
    let handle = log(home)[0]["handle"].as_str().unwrap().to_owned();
    // New text that does not compress, larger than what a file may have.
    let noise: String =
        (0u64..40_000).map(|it| format!("{:016x}", it.wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect();
    let mut large = event();
    large["messages"][4]["toolResults"][0]["text"] = json!(noise);
    let seat = command(home, &["seat", "claude-code"]);
    let mut limited = Command::new("/bin/sh");
    limited.arg("-c").arg("ulimit -f 300; exec \"$0\" \"$@\"").arg(seat.get_program()).args(seat.get_args());
    limited.env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").current_dir(home);
    let output = fed(limited, large.to_string().as_bytes());
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{output:?}");
    // What was archived before is whole, and with room again it goes on.
    let kept = epitome(home, &["recall", &handle, "--range", "1-100000"]);
    assert!(String::from_utf8_lossy(&kept.stdout).contains("line 77 of the notes"));
    assert!(before["messages"].is_array());
    answered(home, "claude-code", &large);
    let checked = answer(&epitome(home, &["doctor", "--json"]));
    assert!(!checked.to_string().contains("damaged"), "{checked}");
}
