//! `epitome seat`, through the program, as the clients call it: it always answers, what goes wrong is left to the client,
//! and what was compacted comes back.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::apply::{answer, command, database, epitome};

pub(crate) const MARK: &str = "Earlier conversation compacted";
pub(crate) const RULE: &str = "Never change anything under migrations/.";
const SESSION: &str = "11111111-2222-4333-8444-555555555555";

pub(crate) fn ask(home: &Path, client: &str, event: &[u8]) -> Output {
    ask_with(home, client, event, "")
}

fn ask_with(home: &Path, client: &str, event: &[u8], window: &str) -> Output {
    let mut command = command(home, &["seat", client]);
    command.env("CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS", SESSION);
    command.env("CLAUDE_CODE_AUTO_COMPACT_WINDOW", window);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // It may be done before it has read all.
    let _ = child.stdin.take().unwrap().write_all(event);
    child.wait_with_output().unwrap()
}

pub(crate) fn answered(home: &Path, client: &str, event: &Value) -> Value {
    let output = ask(home, client, event.to_string().as_bytes());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

pub(crate) fn log(home: &Path) -> Vec<Value> {
    let text = fs::read_to_string(home.join(".local/share/epitome/seat.jsonl")).unwrap_or_default();
    text.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

fn said(role: &str, text: &str) -> Value {
    json!({"role": role, "text": text, "toolUses": [], "handle": "row"})
}

/// What Claude Code hands over: a long look, then the end that one goes on from. Results come in another order than calls.
pub(crate) fn claude_messages() -> Vec<Value> {
    let long: String = (0..3000).map(|it| format!("line {it} of the notes\n")).collect();
    let call = |id: &str, path: &str| json!({"role": "assistant", "text": "", "toolUses": [{"tool_use_id": id, "tool": "Read", "input": {"file_path": path}}]});
    let result = |id: &str, text: &str| json!({"role": "user", "text": "", "toolUses": [], "toolResults": [{"tool_use_id": id, "text": text, "isError": false}]});
    vec![
        said("user", &format!("Read the notes. {RULE}")),
        said("assistant", "Looking."),
        call("t1", "/p/notes.txt"),
        call("t2", "/p/more.txt"),
        result("t2", "short"),
        result("t1", &long),
        said("assistant", "They are read."),
        said("user", "Fix the parser."),
        call("t3", "/p/parser.rs"),
        result("t3", "fn parse() {}"),
        said("assistant", "It fails in line 12; that is next."),
    ]
}

/// The transcript of these, in Claude Code's folder: its rows, and the file.
pub(crate) fn transcript(home: &Path, messages: &[Value]) -> PathBuf {
    let slug: String = fs::canonicalize(home)
        .unwrap()
        .to_string_lossy()
        .chars()
        .map(|it| if it.is_ascii_alphanumeric() { it } else { '-' })
        .collect();
    let path = home.join(".claude/projects").join(slug).join(format!("{SESSION}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, rows(home, messages, "a", &Value::Null)).unwrap();
    path
}

/// Messages as rows that follow `parent`.
fn rows(home: &Path, messages: &[Value], name: &str, parent: &Value) -> String {
    let mut parent = parent.clone();
    let mut out = String::new();
    for (number, it) in messages.iter().enumerate() {
        let mut content: Vec<Value> = Vec::new();
        for it in it["toolResults"].as_array().into_iter().flatten() {
            content.push(
                json!({"type": "tool_result", "tool_use_id": it["tool_use_id"], "content": it["text"]}),
            );
        }
        if it["text"] != "" {
            content.push(json!({"type": "text", "text": it["text"]}));
        }
        for it in it["toolUses"].as_array().into_iter().flatten() {
            content.push(json!({"type": "tool_use", "id": it["tool_use_id"], "name": it["tool"], "input": it["input"]}));
        }
        let uuid = format!("row-{name}-{number}");
        let mut message = json!({"role": it["role"], "content": content});
        if it["role"] == "assistant" {
            (message["id"], message["model"]) = (json!(format!("m{name}{number}")), json!("claude-x"));
        }
        let row = json!({"parentUuid": parent, "isSidechain": false, "cwd": fs::canonicalize(home).unwrap(), "sessionId": SESSION,
            "version": "2.1.328", "type": it["role"], "message": message, "uuid": uuid, "timestamp": format!("2026-01-01T00:00:{number:02}.000Z")});
        out.push_str(&format!("{row}\n"));
        parent = json!(uuid);
    }
    out
}

pub(crate) fn all_text(messages: &[Value]) -> String {
    json!(messages).to_string()
}

#[test]
fn claude_code_is_answered_and_a_compaction_is_taken_back() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let messages = claude_messages();
    let path = transcript(home, &messages);
    let event = json!({"trigger": "manual", "instructions": "the parser", "lastRow": "row-a-10", "messages": messages});
    let reply = answered(home, "claude-code", &event);
    let new = reply["messages"].as_array().unwrap();
    let first = new[0]["text"].as_str().unwrap();
    assert_eq!(first.lines().next().unwrap().matches(MARK).count(), 1);
    assert!(first.lines().next().unwrap().contains("epitome restore last --apply"), "{first}");
    assert!(first.contains(RULE), "{first}");
    let text = all_text(new);
    for kept in ["Fix the parser.", "fn parse() {}", "It fails in line 12; that is next."] {
        assert!(text.contains(kept), "{kept}");
    }
    assert!(!text.contains("line 77 of the notes") && !text.contains("handle"));
    let calls = new.iter().flat_map(|it| it["toolUses"].as_array().unwrap()).map(|it| &it["tool_use_id"]);
    let results = new
        .iter()
        .flat_map(|it| it["toolResults"].as_array().into_iter().flatten())
        .map(|it| &it["tool_use_id"]);
    assert_eq!(calls.collect::<Vec<_>>(), results.collect::<Vec<_>>());
    // What the client writes down, and a turn later.
    let boundary = json!({"parentUuid": null, "logicalParentUuid": "row-a-10", "isSidechain": false, "type": "system", "subtype": "compact_boundary",
        "content": "Conversation compacted", "compactMetadata": {"trigger": "manual", "preTokens": 9000}, "uuid": "row-b", "sessionId": SESSION,
        "cwd": fs::canonicalize(home).unwrap(), "version": "2.1.328", "timestamp": "2026-01-01T00:01:00.000Z"});
    let mut after = new.clone();
    after.extend([said("user", "And the tests?"), said("assistant", "They pass.")]);
    let more = format!("{boundary}\n{}", rows(home, &after, "c", &json!("row-b")));
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(more.as_bytes()).unwrap();
    let undone = answer(&epitome(home, &["restore", "last", "--apply", "--json"]));
    assert_eq!((&undone["status"], &undone["later_messages"]), (&json!("restored"), &json!(2)), "{undone}");
    let whole = fs::read_to_string(undone["output"].as_str().unwrap()).unwrap();
    for kept in ["line 77 of the notes", "They are read.", "And the tests?", "They pass."] {
        assert!(whole.contains(kept), "{kept}");
    }
    assert!(!whole.contains(MARK));
}

#[test]
fn small_contexts_are_answered_and_five_in_a_row_are_one_summary() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let tiny = [said("user", &format!("Hello. {RULE}")), said("assistant", "Hi.")];
    let mut messages = tiny.to_vec();
    for round in 0..5 {
        let reply = answered(home, "claude-code", &json!({"trigger": "manual", "messages": messages}));
        messages = reply["messages"].as_array().unwrap().clone();
        let text = all_text(&messages);
        assert_eq!(text.matches(MARK).count(), 1, "{text}");
        assert!(text.contains(RULE), "{text}");
        messages.push(said("user", &format!("Step {round}, please.")));
        messages
            .push(said("assistant", &format!("Step {round} is done. {}", "It took a while. ".repeat(200))));
    }
    let last = answered(home, "claude-code", &json!({"trigger": "auto", "messages": messages}));
    let text = all_text(last["messages"].as_array().unwrap());
    assert!(text.contains("Step 4, please.") && text.contains("Step 4 is done."), "{text}");
    // A sub-agent's, and one with nothing new.
    let again = answered(
        home,
        "claude-code",
        &json!({"trigger": "manual", "agentId": "a1", "messages": last["messages"]}),
    );
    assert_eq!(all_text(again["messages"].as_array().unwrap()).matches(MARK).count(), 1);
}

/// A transcript of Gemini CLI, and its hook's event.
fn gemini(home: &Path, prompts: &[String], prompt: &str) -> Value {
    let path = home.join(".gemini/tmp/p/chats/session-2026-01-01T00-00-aaaa.jsonl");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let start = json!({"sessionId": "aaaa", "projectHash": "p", "startTime": "2026-01-01T00:00:00.000Z",
        "lastUpdated": "2026-01-01T00:00:00.000Z", "kind": "main"});
    let mut text = format!("{start}\n");
    for (number, it) in prompts.iter().enumerate() {
        let user = json!({"id": format!("u{number}"), "timestamp": "2026-01-01T00:00:01.000Z", "type": "user", "content": [{"text": it}]});
        let model = json!({"id": format!("g{number}"), "timestamp": "2026-01-01T00:00:02.000Z", "type": "gemini", "content": format!("Answer {number}."),
            "model": "gemini-2.5-flash", "tokens": {"input": 3000, "output": 10, "cached": 0, "thoughts": 0, "tool": 0, "total": 3010}});
        text.push_str(&format!("{user}\n{model}\n"));
    }
    fs::write(&path, text).unwrap();
    json!({"session_id": "aaaa", "transcript_path": path, "cwd": home, "hook_event_name": "AfterAgent", "timestamp": "2026-01-01T00:00:03.000Z",
        "prompt": prompt, "prompt_response": "OK", "stop_hook_active": false})
}

#[test]
fn gemini_cli_is_answered_when_it_is_asked_and_only_then() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let long =
        format!("Here are the notes: {}", "a long line of notes that nobody needs twice, ".repeat(900));
    let by_hand = "EPITOME: compact this conversation now. Answer OK and call no tool. Focus: ";
    let prompts = [format!("{RULE} {long}"), "Fix the parser.".to_owned(), by_hand.to_owned()];
    let quiet = gemini(home, &prompts[..2], "Fix the parser.");
    assert_eq!(answered(home, "gemini-cli", &quiet), json!({}));
    assert!(log(home).is_empty());
    let mut event = gemini(home, &prompts, by_hand);
    let reply = answered(home, "gemini-cli", &event);
    assert_eq!(
        (&reply["decision"], &reply["hookSpecificOutput"]["clearContext"]),
        (&json!("deny"), &json!(true))
    );
    let reason = reply["reason"].as_str().unwrap();
    assert_eq!(reason.matches(MARK).count(), 1);
    assert!(
        reason.contains(RULE) && reason.contains("Fix the parser.") && reason.contains("Answer 1."),
        "{reason}"
    );
    assert!(
        reason.to_lowercase().contains("wait for the user") && !reason.contains("EPITOME: compact"),
        "{reason}"
    );
    event["stop_hook_active"] = true.into();
    assert_eq!(answered(home, "gemini-cli", &event), json!({}));
    // Compacted again, the verbatim end is read as what it was, and one summary stands.
    let next = [reason.to_owned(), "Now the tests.".to_owned(), by_hand.to_owned()];
    let reply = answered(home, "gemini-cli", &gemini(home, &next, by_hand));
    let reason = reply["reason"].as_str().unwrap();
    assert_eq!(reason.matches(MARK).count(), 1, "{reason}");
    assert_eq!(reason.matches("## The end of the conversation").count(), 1, "{reason}");
    assert!(reason.contains(RULE) && reason.contains("Now the tests."), "{reason}");
}

/// Gemini CLI 0.61 goes on in a file of the current minute when a compaction clears the conversation.
#[test]
fn undo_finds_the_file_in_which_gemini_cli_went_on() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let by_hand = "EPITOME: compact this conversation now. Answer OK and call no tool. Focus: ";
    let notes = format!("{RULE} Here are the notes: {}", "a line of notes, ".repeat(900));
    let prompts = [notes, "Fix the parser.".to_owned(), by_hand.to_owned()];
    let event = gemini(home, &prompts, by_hand);
    let reason = answered(home, "gemini-cli", &event)["reason"].as_str().unwrap().to_owned();
    let old = PathBuf::from(event["transcript_path"].as_str().unwrap());
    let archived = fs::read(&old).unwrap();

    gemini(home, &[reason.clone(), "Now the tests.".to_owned()], "Now the tests.");
    let new = old.with_file_name("session-2026-01-01T00-01-aaaa.jsonl");
    fs::rename(&old, &new).unwrap();
    fs::write(&old, &archived).unwrap();
    let at = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    fs::File::options().append(true).open(&old).unwrap().set_modified(at).unwrap();

    let handle = reason.split("epitome restore ").nth(1).unwrap().split(' ').next().unwrap();
    let undone = answer(&epitome(home, &["restore", handle, "--apply", "--json"]));
    assert_eq!((&undone["status"], &undone["later_messages"]), (&json!("restored"), &json!(3)), "{undone}");
    assert_eq!(undone["output"], json!(new), "{undone}");
    assert_eq!(fs::read(&old).unwrap(), archived);
    let newest = fs::read_to_string(&new).unwrap();
    let newest = newest.lines().rev().find(|it| it.starts_with("{\"$set\":{\"messages\"")).unwrap();
    for kept in [RULE, "Fix the parser.", "Now the tests."] {
        assert_eq!(newest.matches(kept).count(), 1, "{kept}");
    }
    assert!(!newest.contains(MARK));
}

#[test]
fn whatever_goes_wrong_is_left_to_the_client_and_told_by_doctor() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let good = json!({"trigger": "manual", "messages": claude_messages()}).to_string();
    for event in
        ["", "null", "{", "[]", "{}", r#"{"messages":[{"role":"oracle","text":"x"}]}"#, r#"{"messages":[]}"#]
    {
        for client in ["claude-code", "opencode", "pi"] {
            let output = ask(home, client, event.as_bytes());
            assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{client} {event}");
        }
        let output = ask(home, "gemini-cli", event.as_bytes());
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"{}\n"[..]), "{event}");
    }
    assert!(log(home).iter().all(|it| it["failed"].is_string()));
    // A store that cannot be opened: nothing is archived, so nothing is answered.
    fs::remove_dir_all(home.join(".local/share/epitome")).unwrap();
    fs::create_dir_all(home.join(".local/share/epitome/epitome.db")).unwrap();
    let output = ask(home, "claude-code", good.as_bytes());
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    fs::create_dir_all(home.join(".claude")).unwrap();
    assert!(epitome(home, &["install", "claude-code"]).status.success());
    let told = String::from_utf8(epitome(home, &["doctor"]).stdout).unwrap();
    assert!(told.contains("Claude Code's last compaction was left to the agent itself"), "{told}");
    fs::remove_dir(home.join(".local/share/epitome/epitome.db")).unwrap();
    assert!(ask(home, "claude-code", good.as_bytes()).status.success());
    let told = answer(&epitome(home, &["doctor", "--json"]));
    let claude = told["agents"].as_array().unwrap().iter().find(|it| it["agent"] == "claude-code").unwrap();
    assert_eq!(
        (&claude["seat"], &claude["seat_last"]["failed"]),
        (&json!("Epitome"), &Value::Null),
        "{claude}"
    );
}

#[test]
#[cfg(unix)]
fn the_users_own_commands_run_and_may_refuse() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let folder = home.join(".config/epitome");
    fs::create_dir_all(&folder).unwrap();
    let configure = |text: &str| fs::write(folder.join("config.toml"), text).unwrap();
    let said = |name: &str| fs::read_to_string(home.join(name)).unwrap_or_default();
    let (before, after) = (home.join("before"), home.join("after"));
    configure(&format!(
        "[hooks]\nbefore = \"cat > {}\"\nafter = \"cat > {}\"\n",
        before.display(),
        after.display()
    ));
    let event = json!({"trigger": "auto", "messages": claude_messages()});
    answered(home, "claude-code", &event);
    let started: Value = serde_json::from_str(&said("before")).unwrap();
    assert_eq!((&started["event"], &started["trigger"]), (&json!("started"), &json!("auto")));
    let done: Value = serde_json::from_str(&said("after")).unwrap();
    assert_eq!(done["event"], "compacted");
    assert!(
        done["handle"].is_string() && done["tokens_after"].as_u64() < done["tokens_before"].as_u64(),
        "{done}"
    );
    // One that refuses leaves the agent to its own compaction, with its reason in the log.
    fs::remove_file(&after).unwrap();
    configure(&format!(
        "[hooks]\nbefore = \"echo not today >&2; exit 3\"\nafter = \"cat > {}\"\n",
        after.display()
    ));
    let output = ask(home, "claude-code", event.to_string().as_bytes());
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
    assert!(log(home).last().unwrap()["failed"].as_str().unwrap().contains("not today"));
    assert!(!after.exists());
    // What the one after could not do changes nothing.
    configure("[hooks]\nafter = \"exit 3\"\n");
    answered(home, "claude-code", &event);
}

/// A compaction long before the window is full goes down to a share of the window, not of what little there is.
#[test]
fn the_room_follows_the_window() {
    let home = tempfile::tempdir().unwrap();
    let round = |number: usize| {
        let text: String = (0..300).map(|it| format!("round {number}, line {it} of the log\n")).collect();
        [said("user", &format!("Step {number}, please.")), said("assistant", &text)]
    };
    let messages: Vec<Value> = (0..20).flat_map(round).collect();
    let event = json!({"trigger": "manual", "messages": messages}).to_string();
    let size = |window: &str| {
        let output = ask_with(home.path(), "claude-code", event.as_bytes(), window);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout.len()
    };
    let (unknown, small, large) = (size(""), size("60000"), size("200000"));
    assert!(small <= unknown * 5 / 4, "{unknown} {small}");
    assert!(large > small * 2 && large < event.len() * 2 / 3, "{small} {large} {}", event.len());
}

#[test]
fn doctor_says_who_does_not_ask_us() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    for folder in [".gemini", ".config/opencode", ".local/share/opencode"] {
        fs::create_dir_all(home.join(folder)).unwrap();
    }
    fs::write(home.join(".gemini/settings.json"), r#"{"hooksConfig": {"enabled": false}}"#).unwrap();
    let database = rusqlite::Connection::open(home.join(".local/share/opencode/opencode.db")).unwrap();
    database
        .execute_batch(
            "CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT,
                time_created INTEGER, time_updated INTEGER);
             CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
             CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, data TEXT);
             INSERT INTO session VALUES ('ses_1', 'global', NULL, '/p', 'T', '1.18.33', 1, 5), ('ses_2', 'global', NULL, '/p', 'T', '2.0.3', 1, 6);",
        )
        .unwrap();
    for agent in ["gemini-cli", "opencode"] {
        let done = epitome(home, &["install", agent]);
        assert!(done.status.success(), "{agent}: {}", String::from_utf8_lossy(&done.stderr));
    }
    let told = answer(&epitome(home, &["doctor", "--json"]));
    let problems = told["problems"].to_string();
    assert!(
        problems.contains("OpenCode 2.0.3 calls plugins in a way that ours does not support"),
        "{problems}"
    );
    assert!(problems.contains("Gemini CLI's hooks are switched off"), "{problems}");
    database.execute("DELETE FROM session WHERE id = 'ses_2'", []).unwrap();
    fs::remove_file(home.join(".gemini/settings.json")).unwrap();
    assert!(epitome(home, &["install", "gemini-cli"]).status.success());
    let told = answer(&epitome(home, &["doctor", "--json"]));
    let problems = told["problems"].to_string();
    assert!(!problems.contains("OpenCode 2") && !problems.contains("switched off"), "{problems}");
}

/// The export of a session of OpenCode: two prompts, a long output between them.
fn opencode_export(home: &Path, id: &str) -> Value {
    let long: String = (0..3000).map(|it| format!("line {it} of the notes\n")).collect();
    let text = |text: &str| json!({"type": "text", "text": text});
    let looked = json!({"type": "tool", "tool": "read", "callID": format!("call_{id}"), "state": {"status": "completed",
        "input": {"filePath": "/p/notes.txt"}, "output": long, "title": "notes", "metadata": {}, "time": {"start": 1, "end": 2}}});
    let said = [
        ("user", vec![text(&format!("Read the notes of {id}. {RULE}"))]),
        ("assistant", vec![text("Looking."), looked]),
        ("assistant", vec![text("They are read.")]),
        ("user", vec![text("Fix the parser.")]),
        ("assistant", vec![text("It fails in line 12; that is next.")]),
    ];
    let messages = said.into_iter().enumerate().map(|(number, (role, parts))| {
        let message = format!("msg_{number}{id}");
        let parts = parts.into_iter().enumerate().map(|(part, mut it)| {
            it["id"] = json!(format!("prt_{number}{part}{id}"));
            (it["messageID"], it["sessionID"]) = (json!(message), json!(id));
            it
        });
        let mut info = json!({"id": message, "sessionID": id, "role": role, "time": {"created": number, "completed": number}});
        if role == "assistant" {
            (info["modelID"], info["providerID"], info["parentID"]) = (json!("m"), json!("p"), json!("msg_0"));
        }
        json!({"info": info, "parts": parts.collect::<Vec<_>>()})
    });
    let directory = fs::canonicalize(home).unwrap();
    json!({"info": {"id": id, "directory": directory, "title": "T"}, "messages": messages.collect::<Vec<_>>()})
}

/// What OpenCode writes down of our answer: a marker, and the summary as the assistant's.
fn opencode_writes(database: &rusqlite::Connection, id: &str, summary: &str) {
    let (marker, answer) = (format!("msg_8{id}"), format!("msg_9{id}"));
    let rows = [
        (
            &marker,
            json!({"role": "user", "time": {"created": 8}}),
            json!({"type": "compaction", "auto": false}),
        ),
        (
            &answer,
            json!({"role": "assistant", "summary": true, "parentID": marker, "modelID": "m", "providerID": "p",
                "time": {"created": 9, "completed": 9}}),
            json!({"type": "text", "text": summary}),
        ),
    ];
    for (at, (message, info, part)) in (8..).zip(rows) {
        database
            .execute("INSERT INTO message VALUES (?1, ?2, ?3, ?3, ?4)", (message, id, at, info.to_string()))
            .unwrap();
        let name = format!("prt_{at}{id}");
        database
            .execute(
                "INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?4, ?5)",
                (name, message, id, at, part.to_string()),
            )
            .unwrap();
    }
}

#[test]
fn undo_takes_the_users_session_and_not_the_sub_agents() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let folder = home.join(".local/share/opencode");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("opencode.db");
    let (user, sub) = ("ses_user", "ses_sub");
    database(&path, opencode_export(home, user).to_string().as_bytes());
    // Both in the one database.
    let other = folder.join("other.db");
    database(&other, opencode_export(home, sub).to_string().as_bytes());
    let db = rusqlite::Connection::open(&path).unwrap();
    db.execute("ATTACH ?1 AS other", [other.to_str().unwrap()]).unwrap();
    for table in ["session", "message", "part"] {
        db.execute(&format!("INSERT INTO main.{table} SELECT * FROM other.{table}"), []).unwrap();
    }
    db.execute_batch("DETACH other").unwrap();
    fs::remove_file(other).unwrap();
    db.execute("UPDATE session SET parent_id = ?1 WHERE id = ?2", (user, sub)).unwrap();
    let mut handles = Vec::new();
    for id in [user, sub] {
        let reply = answered(home, "opencode", &json!({"session_id": id}));
        opencode_writes(&db, id, reply["text"].as_str().unwrap());
        handles.push(log(home).last().unwrap()["handle"].as_str().unwrap().to_owned());
    }
    let summaries = |id: &str| {
        let query = "SELECT count(*) FROM part WHERE session_id = ?1 AND data LIKE '%Earlier conversation compacted%'";
        db.query_row(query, [id], |it| it.get::<_, i64>(0)).unwrap()
    };
    assert_eq!((summaries(user), summaries(sub)), (1, 1));
    let undone = epitome(home, &["restore", "last", "--apply", "--json"]);
    assert_eq!(answer(&undone)["session_id"], user, "{}", answer(&undone));
    assert!(String::from_utf8_lossy(&undone.stderr).contains("a sub-agent's"));
    assert_eq!((summaries(user), summaries(sub)), (0, 1));
    // By its handle it comes back, too.
    let undone = epitome(home, &["restore", &handles[1], "--apply", "--json"]);
    assert_eq!(answer(&undone)["session_id"], sub, "{}", answer(&undone));
    assert_eq!(summaries(sub), 0);
}
