//! `epitome hook`, through the program, as the agents call it: what it says is bounded, said once, and nothing that it is
//! told can make it fail.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use epitome::tokens::Estimator;
use serde_json::{Value, json};

use crate::apply::{command, epitome};

/// What joins a compaction prompt, and what is said after one, at most: tokens (o200k).
const BEFORE: u64 = 1_000;
const AFTER: u64 = 1_500;

fn tell(home: &Path, text: &[u8]) -> Output {
    let mut command = command(home, &["hook"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may be done before it has read all.
    let _ = child.stdin.take().unwrap().write_all(text);
    child.wait_with_output().unwrap()
}

/// What is printed for an event; it always ends well.
fn said(home: &Path, event: &Value) -> String {
    let output = tell(home, event.to_string().as_bytes());
    assert_eq!(output.status.code(), Some(0), "{event}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What of it reaches the model as additional context.
fn context(said: &str, event: &str) -> String {
    let said: Value = serde_json::from_str(said).unwrap();
    assert_eq!(said["hookSpecificOutput"]["hookEventName"], event);
    said["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned()
}

fn size(text: &str) -> u64 {
    Estimator::O200k.text(text)
}

/// Far more rules, files and errors than fit anywhere.
fn turns() -> impl Iterator<Item = (String, String)> {
    (0..250).map(|n| {
        let rule = format!("Never change the port {} of `src/gate_{n}.rs`; always run `cargo test gate_{n}` first.", 4000 + n);
        let answer = format!("I decided to keep port {} because clients pin it. error[E0{n:03}]: mismatched types in src/gate_{n}.rs:{n}", 4000 + n);
        (rule, answer)
    })
}

/// A home with such a session: its file.
fn session(home: &Path, agent: &str) -> std::path::PathBuf {
    let mut out = String::new();
    let inside = match agent {
        "claude-code" => {
            let mut parent = Value::Null;
            for (number, (prompt, reply)) in turns().enumerate() {
                for (kind, content) in
                    [("user", json!(prompt)), ("assistant", json!([{"type": "text", "text": reply}]))]
                {
                    let uuid = format!(
                        "00000000-0000-4000-8000-{number:06}{}",
                        if kind == "user" { "000000" } else { "000001" }
                    );
                    let mut message = json!({"role": kind, "content": content});
                    if kind == "assistant" {
                        (message["id"], message["model"]) = (json!(format!("m{number}")), json!("claude-x"));
                    }
                    let line = json!({"parentUuid": parent, "isSidechain": false, "cwd": home, "sessionId": "s", "version": "2.1.328",
                        "type": kind, "message": message, "uuid": uuid, "timestamp": "2026-01-01T00:00:00.000Z"});
                    parent = json!(uuid);
                    out.push_str(&format!("{line}\n"));
                }
            }
            ".claude/projects/-p/s.jsonl"
        }
        _ => {
            let meta = json!({"id": "s", "session_id": "s", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": home, "originator": "codex_exec",
                "cli_version": "0.169.0", "source": "exec", "history_mode": "paginated"});
            out.push_str(&codex_line(0, "session_meta", &meta));
            for (number, (prompt, reply)) in turns().enumerate() {
                for (place, (role, kind, text)) in
                    [("user", "input_text", prompt), ("assistant", "output_text", reply)]
                        .into_iter()
                        .enumerate()
                {
                    let item =
                        json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
                    out.push_str(&codex_line(1 + 2 * number + place, "response_item", &item));
                }
            }
            ".codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-s.jsonl"
        }
    };
    let path = home.join(inside);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, out).unwrap();
    path
}

fn codex_line(ordinal: usize, kind: &str, payload: &Value) -> String {
    let line = json!({"timestamp": "2026-01-01T00:00:00.000Z", "ordinal": ordinal, "type": kind, "payload": payload});
    format!("{line}\n")
}

#[test]
fn claude_codes_compaction_is_told_what_must_survive_and_completed_once() {
    let home = tempfile::tempdir().unwrap();
    let path = session(home.path(), "claude-code");
    let event = |name: &str, more: Value| {
        let mut event =
            json!({"session_id": "s", "transcript_path": path, "cwd": home.path(), "hook_event_name": name});
        event.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        event
    };
    let prompt =
        said(home.path(), &event("PreCompact", json!({"trigger": "auto", "custom_instructions": null})));
    assert!(prompt.starts_with("Carry these facts") && prompt.contains("port 42"), "{prompt}");
    assert!((300..=BEFORE).contains(&size(&prompt)), "{} tokens", size(&prompt));

    let start = said(home.path(), &event("SessionStart", json!({"source": "compact"})));
    let start = context(&start, "SessionStart");
    assert!(
        start.contains("From before the compaction") && (300..=AFTER).contains(&size(&start)),
        "{}",
        size(&start)
    );

    let summary = "<analysis>hm</analysis><summary>We looked at the gates.</summary>";
    assert_eq!(said(home.path(), &event("PostCompact", json!({"compact_summary": summary}))), "");
    let list = epitome(home.path(), &["memory", "list"]);
    assert!(
        String::from_utf8_lossy(&list.stdout).contains("We looked at the gates."),
        "the summary is remembered"
    );
    let missing = context(
        &said(home.path(), &event("UserPromptSubmit", json!({"prompt": "go on"}))),
        "UserPromptSubmit",
    );
    assert!(missing.starts_with("The summary left these out") && missing.contains("port"), "{missing}");
    assert!((300..=AFTER).contains(&size(&missing)), "{} tokens", size(&missing));
    // Once.
    for name in ["UserPromptSubmit", "PostToolUse"] {
        assert_eq!(said(home.path(), &event(name, json!({}))), "", "{name}");
    }
    // At other starts there is nothing to say.
    for source in ["startup", "resume"] {
        assert_eq!(said(home.path(), &event("SessionStart", json!({"source": source}))), "");
    }
}

#[test]
fn what_a_summary_left_out_is_kept_without_secrets() {
    const SECRET: &str = "AKIAIOSFODNN7EXAMPLQ";
    let home = tempfile::tempdir().unwrap();
    let path = session(home.path(), "claude-code");
    let all = fs::read_to_string(&path).unwrap();
    let few: Vec<&str> = all.lines().take(6).collect();
    let text = few.join("\n").replace("the port 4001 of", &format!("the key {SECRET} of"));
    fs::write(&path, text + "\n").unwrap();
    let event = |name: &str, summary: &str| {
        json!({"session_id": "s", "transcript_path": path, "cwd": home.path(), "hook_event_name": name, "trigger": "auto",
            "compact_summary": summary})
    };
    said(home.path(), &event("PreCompact", ""));
    said(home.path(), &event("PostCompact", "<summary>We looked at the gates.</summary>"));
    let missing = said(home.path(), &event("UserPromptSubmit", ""));
    assert!(missing.contains("The summary left these out"), "{missing}");
    assert!(missing.contains("the key [REDACTED"), "{missing}");
    assert!(!missing.contains(SECRET), "{missing}");
}

/// What others do is dated by the clock, not by when the watching began.
#[test]
fn watching_goes_on_when_the_session_has_cooled_down() {
    use std::io::BufRead;
    let home = tempfile::tempdir().unwrap();
    let path = session(home.path(), "claude-code");
    let config = home.path().join(".config/epitome");
    fs::create_dir_all(&config).unwrap();
    let profile = "[profiles.mine]\nextends = \"gemini-cli\"\nname = \"mine\"\n[profiles.mine.trigger]\ncool-down = 2\n";
    fs::write(config.join("config.toml"), profile).unwrap();
    let event = json!({"session_id": "s", "transcript_path": path, "cwd": home.path(), "hook_event_name": "PostCompact",
        "trigger": "auto", "compact_summary": "We looked at the gates."});
    said(home.path(), &event);
    let arguments =
        ["watch", path.to_str().unwrap(), "--profile", "mine", "--window", "10000", "--every", "1"];
    let mut watching = command(home.path(), &arguments).stdout(Stdio::piped()).spawn().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let lines = std::io::BufReader::new(watching.stdout.take().unwrap()).lines();
    let reads = std::thread::spawn(move || lines.map_while(Result::ok).all(|it| tell.send(it).is_ok()));
    let mut all = Vec::new();
    while !all.last().is_some_and(|it: &String| it.contains("epitome compact")) {
        match told.recv_timeout(std::time::Duration::from_secs(60)) {
            Ok(line) => all.push(line),
            Err(_) => break,
        }
    }
    watching.kill().unwrap();
    watching.wait().unwrap();
    drop(told);
    reads.join().unwrap();
    assert!(all.last().is_some_and(|it| it.contains("epitome compact")), "{all:?}");
}

#[test]
fn codex_is_told_what_its_summary_left_out() {
    let home = tempfile::tempdir().unwrap();
    let path = session(home.path(), "codex");
    let event = |name: &str, source: &str| {
        json!({"session_id": "s", "transcript_path": path, "cwd": home.path(), "hook_event_name": name, "source": source,
            "trigger": "auto", "turn_id": "t", "model": "m"})
    };
    assert_eq!(said(home.path(), &event("PreCompact", "")), "", "it ignores what is said there");
    let kept = [
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Another language model started to solve this problem and produced a summary of its thinking process.\nWe looked at the gates."}]}),
    ];
    let compacted = json!({"message": "We looked at the gates.", "replacement_history": kept});
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str(&codex_line(501, "compacted", &compacted));
    fs::write(&path, text).unwrap();
    assert_eq!(said(home.path(), &event("PostCompact", "")), "");
    let missing = context(&said(home.path(), &event("SessionStart", "compact")), "SessionStart");
    assert!(missing.starts_with("The summary left these out") && missing.contains("port"), "{missing}");
    assert!((300..=AFTER).contains(&size(&missing)), "{} tokens", size(&missing));
    assert_eq!(said(home.path(), &event("UserPromptSubmit", "")), "");
}

#[test]
fn opencodes_plugin_gets_sections_and_facts_within_bounds() {
    let there = crate::apply::home("opencode");
    let id = there.session.split_once('#').unwrap().1.to_owned();
    let event =
        json!({"client": "opencode", "hook_event_name": "PreCompact", "session_id": id, "cwd": there.path()});
    let prompt = said(there.path(), &event);
    assert!(prompt.starts_with("Carry these facts") && prompt.contains("Use these sections"), "{prompt}");
    assert!(size(&prompt) <= BEFORE, "{} tokens", size(&prompt));
    for name in ["SessionStart", "PostCompact"] {
        let mut event = event.clone();
        event["hook_event_name"] = json!(name);
        assert_eq!(said(there.path(), &event), "", "{name}");
    }
}

/// What a hook prints, and how it ends, by itself: far below the 30 s that another process may hold the store.
#[cfg(unix)]
fn ended(mut hook: std::process::Child) -> Output {
    let id = hook.id();
    let input = hook.stdin.take();
    let (done, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(hook.wait_with_output()));
    let Ok(output) = wait.recv_timeout(std::time::Duration::from_secs(20)) else {
        let _ = std::process::Command::new("kill").args(["-9", &id.to_string()]).status();
        panic!("the hook did not end");
    };
    drop(input);
    output.unwrap()
}

#[test]
#[cfg(unix)]
fn whatever_holds_it_it_ends_without_a_word() {
    let home = tempfile::tempdir().unwrap();
    let real = session(home.path(), "claude-code");
    let event = |name: &str, path: &Path| {
        json!({"session_id": "s", "transcript_path": path, "cwd": home.path(), "hook_event_name": name, "source": "compact",
            "trigger": "auto", "compact_summary": "We looked at the gates."})
    };
    // The store is made, and then another process writes to it all the time.
    said(home.path(), &event("PreCompact", &real));
    let store = home.path().join(".local/share/epitome/epitome.db");
    let other = rusqlite::Connection::open(&store).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let fifo = home.path().join("fifo.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // Begins as a session, and is then a line of two billion zeros that take no room.
    let vast = home.path().join("vast.jsonl");
    let head: String =
        fs::read_to_string(&real).unwrap().lines().take(4).map(|it| format!("{it}\n")).collect();
    fs::write(&vast, head).unwrap();
    fs::OpenOptions::new().write(true).open(&vast).unwrap().set_len(2 << 30).unwrap();
    let start = |home: &Path, text: Option<String>, limit: &str| {
        let mut shell = std::process::Command::new("sh");
        let program = env!("CARGO_BIN_EXE_epitome");
        shell.args(["-c", &format!("{limit} exec \"$0\" hook"), program]);
        let like = command(home, &[]);
        shell.env_clear().envs(like.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let mut child = shell
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        if let Some(text) = text {
            let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
        }
        child
    };
    let mut hooks = Vec::new();
    for name in
        ["SessionStart", "PreCompact", "PostCompact", "PreCompress", "UserPromptSubmit", "BeforeAgent"]
    {
        for path in [&real, &fifo] {
            hooks.push((
                format!("{name} {}", path.display()),
                start(home.path(), Some(event(name, path).to_string()), ""),
            ));
        }
    }
    // Its agent says nothing and never closes the pipe.
    hooks.push(("open input".to_owned(), start(home.path(), None, "")));
    // Another home, where nobody holds the store; its disk is full.
    let full = tempfile::tempdir().unwrap();
    for name in ["SessionStart", "PreCompact", "PostCompact", "UserPromptSubmit"] {
        let text = event(name, &real).to_string();
        hooks.push((format!("{name} full disk"), start(full.path(), Some(text), "ulimit -f 0;")));
    }
    let free = tempfile::tempdir().unwrap();
    let slow =
        ["SessionStart", "PreCompact"].map(|it| start(free.path(), Some(event(it, &vast).to_string()), ""));
    for (what, hook) in hooks {
        let output = ended(hook);
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0), "{what}: {log}");
    }
    for hook in slow {
        let output = ended(hook);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    }
    drop(other);
}

#[test]
#[cfg(unix)]
fn what_is_no_file_is_not_waited_for() {
    let home = tempfile::tempdir().unwrap();
    let fifo = home.path().join("fifo.jsonl");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let fifo = fifo.to_str().unwrap();
    for words in [
        ["estimate", fifo].as_slice(),
        &["compact", fifo],
        &["prune", fifo],
        &["split", fifo],
        &["compare", fifo],
        &["handoff", fifo, "--goal", "x"],
        &["score", fifo, fifo],
        &["report", fifo],
        &["watch", fifo],
        &["estimate", "/dev/zero"],
        &["estimate", home.path().to_str().unwrap()],
    ] {
        let mut command = command(home.path(), words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = ended(command.spawn().unwrap());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{words:?}: {said}");
        assert!(said.contains("expected a session file, found a"), "{words:?}: {said}");
    }
}

#[test]
fn nothing_that_it_is_told_makes_it_fail() {
    let home = tempfile::tempdir().unwrap();
    let fifo = home.path().join("session-x.jsonl");
    fs::create_dir_all(&fifo).unwrap();
    let event = |name: &str, path: &str| {
        json!({"session_id": "s", "hook_event_name": name, "transcript_path": path}).to_string().into_bytes()
    };
    let broken = home.path().join("rollout-x.jsonl");
    fs::write(&broken, b"{\"type\":\"session_meta\",\xff\0\n{{{{").unwrap();
    let mut all: Vec<Vec<u8>> = vec![
        b"".into(),
        b"{".into(),
        b"null".into(),
        b"[[[[".into(),
        b"\xff\xfe\0".into(),
        vec![b'['; 1 << 20],
    ];
    for name in [
        "SessionStart",
        "PreCompact",
        "PostCompact",
        "PreCompress",
        "UserPromptSubmit",
        "BeforeAgent",
        "Unheard",
    ] {
        for path in ["", "/nowhere/s.jsonl", &fifo.display().to_string(), &broken.display().to_string()] {
            all.push(event(name, path));
        }
    }
    for text in all {
        let output = tell(home.path(), &text);
        let what = String::from_utf8_lossy(&text[..text.len().min(200)]).into_owned();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0), "{what}");
    }
    // Only who asked for it has a compaction blocked.
    let config = home.path().join(".config/epitome");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.toml"), "[hooks]\nblock-compaction = true\n").unwrap();
    let output = tell(home.path(), &event("PreCompact", "/nowhere/s.jsonl"));
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("block-compaction"));
    assert_eq!(tell(home.path(), &event("SessionStart", "")).status.code(), Some(0));
}
