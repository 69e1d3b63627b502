use super::*;

#[test]
fn reads_what_is_sent() {
    let session = read(&busy().source()).unwrap();
    assert_eq!(show(&session.history), BUSY);
    assert_eq!(session.notes, []);
    assert_eq!(session.origins[3], [3, 4, 5, 6]);
    let meta = &session.history.meta;
    assert_eq!(
        (meta.model.as_deref(), meta.cwd.as_deref(), meta.session.as_deref()),
        (Some("m"), Some("/w"), Some("s"))
    );
    let message = &session.history.messages()[3];
    assert_eq!((message.id.as_deref(), message.usage.unwrap().context()), (Some("a1"), 7));
    assert_eq!(message.at, Some(1_767_225_603_000));
}

#[test]
fn file_name_is_the_session_id() {
    let id = "0195f3a0-1111-8abc-9def-000000000001";
    let source = MemorySource::new(format!("/x/{id}.jsonl"), busy().text());
    assert_eq!(read(&source).unwrap().history.meta.session.as_deref(), Some(id));
}

/// Forms of compacted sessions that the real client was seen to accept, and what it sent.
#[test]
fn compacted_forms() {
    let tail = |it: &mut Rows| {
        it.user("n1", "copied prompt").block("n2", "copy", json!({"type": "text", "text": "copied answer"}));
    };
    let old = |it: &mut Rows| {
        it.user("u1", "old prompt").says("a1", "old answer").leaf("a1");
    };
    let copied = "summary: S\nuser: copied prompt\nmodel: copied answer\n";

    let mut it = rows();
    it.summary("s", "S");
    tail(&mut it);
    assert_eq!(it.shown(), copied, "new file without a boundary");

    let mut it = rows();
    it.boundary("b", json!({})).summary("s", "S");
    tail(&mut it);
    assert_eq!(it.shown(), copied, "new file with a boundary");

    let mut it = rows();
    old(&mut it);
    it.boundary("b", json!({"trigger": "manual", "preTokens": 9})).summary("s", "S");
    assert_eq!(it.shown(), "summary: S\n", "appended boundary overrides the older last-prompt");

    let mut it = rows();
    old(&mut it);
    it.boundary("b", json!({})).summary("s", "S");
    tail(&mut it);
    assert_eq!(it.shown(), copied, "appended boundary, summary, copies");

    let mut it = rows();
    old(&mut it);
    it.boundary("b", json!({})).summary("s", "S").user("n1", "p").block(
        "n2",
        "msg_a1",
        json!({"type": "text", "text": "copy"}),
    );
    assert_eq!(
        it.shown(),
        "summary: S\nuser: p\nmodel: old answer | copy\n",
        "a copy with the old message.id"
    );

    let mut it = rows();
    old(&mut it);
    it.add(
        "n0",
        json!({"parentUuid": null, "type": "user", "message": {"role": "user", "content": "new root"}}),
    );
    assert_eq!(
        it.shown(),
        "user: old prompt\nmodel: old answer\n",
        "a new root without a boundary is ignored"
    );
    it.leaf("n0");
    assert_eq!(it.shown(), "user: new root\n", "unless last-prompt points at it");

    let mut it = rows();
    old(&mut it);
    it.boundary("b", json!({})).summary("s", "S").leaf("a1");
    assert_eq!(
        it.shown(),
        "user: old prompt\nmodel: old answer\n",
        "a client that ran on: its last-prompt is newer"
    );

    let mut it = rows();
    old(&mut it);
    it.boundary("b", json!({})).summary("s", "S").add(
        "u9",
        json!({"type": "user", "parentUuid": "a1",
        "timestamp": "2020-01-01T00:00:00.000Z", "message": {"role": "user", "content": "went on"}}),
    );
    assert_eq!(it.shown(), "user: old prompt\nmodel: old answer\nuser: went on\n", "file order, not time");
}

#[test]
fn preserved_rows_stand_behind_their_anchor() {
    let old = || {
        let mut it = rows();
        it.user("u1", "old").says("a1", "gone").user("u2", "kept").block("a2", "m2", call("c1")).block(
            "a3",
            "m2",
            call("c2"),
        );
        it.result("r1", "c1", "forgotten").add(
            "r2",
            json!({"type": "user", "parentUuid": "a3", "message":
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c2", "content": "two"}]}}),
        );
        it.says("a4", "answer");
        it
    };
    let uuids = json!({"preservedMessages": {"anchorUuid": "s", "uuids": ["u2", "a2", "a3", "r2", "a4"]}});
    let kept = "summary: S\nuser: kept\nmodel: c2?\nuser: c2=two\nmodel: answer\n";

    let mut it = old();
    it.boundary("b", uuids.clone()).summary("s", "S");
    assert_eq!(it.shown(), "summary: S\n", "the leaf is the summary itself");
    it.user("u3", "next");
    assert_eq!(it.shown(), format!("{kept}user: next\n"), "next hangs on the summary");

    let mut it = old();
    it.boundary("b", uuids).summary("s", "S").add(
        "u3",
        json!({"type": "user", "parentUuid": "a4",
        "message": {"role": "user", "content": "next"}}),
    );
    assert_eq!(it.shown(), format!("{kept}user: next\n"), "next hangs on the last kept row");

    let mut it = old();
    it.boundary("b", json!({"preservedSegment": {"headUuid": "a4", "anchorUuid": "s", "tailUuid": "a4"}}))
        .summary("s", "S")
        .user("u3", "next");
    assert_eq!(it.shown(), "summary: S\nmodel: answer\nuser: next\n", "a segment");

    let mut it = old();
    it.boundary("b", json!({"preservedMessages": {"anchorUuid": "b", "uuids": ["u2"]}}))
        .summary("s", "S")
        .user("u3", "next");
    assert_eq!(it.shown(), "user: kept\nsummary: S\nuser: next\n", "anchored at the boundary: a kept head");

    let mut it = old();
    it.boundary("b", json!({"preservedMessages": {"anchorUuid": "s", "uuids": ["u2", "nowhere"]}}))
        .summary("s", "S");
    assert_eq!(it.shown(), "summary: S\n", "an unknown uuid preserves nothing");
}

#[test]
fn the_leaf_is_followed_down() {
    let mut it = rows();
    it.user("u1", "p1").says("a1", "a1").leaf("a1").user("u2", "p2").says("a2", "a2");
    let all = "user: p1\nmodel: a1\nuser: p2\nmodel: a2\n";
    assert_eq!(it.shown(), all, "rows written after the pointer");
    it.leaf("a1");
    assert_eq!(it.shown(), all, "and before it");
    it.add("u3", json!({"type": "user", "parentUuid": "a1", "message": {"role": "user", "content": "p3"}}))
        .leaf("u3");
    assert_eq!(it.shown(), "user: p1\nmodel: a1\nuser: p3\n", "another branch");
    it.leaf("nowhere");
    assert_eq!(it.shown(), "user: p1\nmodel: a1\nuser: p3\n", "a pointer at nothing: the last row");
}

/// The file between two writes: the parent of a progress row is not there yet. Measured on 2.1.328.
#[test]
fn the_path_ends_in_a_message_whatever_comes_last() {
    let progress = json!({"type": "progress", "data": {"type": "hook_progress"}});
    let mut rows = rows();
    rows.user("u1", "never change migrations/").says("a1", "Good.").add("p1", progress.clone());
    let mut lost = progress;
    lost["parentUuid"] = json!("not-written-yet");
    rows.add("p2", lost);
    let session = read(&rows.source()).unwrap();
    assert_eq!(session.notes, []);
    let plain: Vec<String> = session.history.messages().iter().map(Message::plain).collect();
    assert_eq!(plain, ["never change migrations/", "Good."]);
}

/// Where a parent is missing, the client continues from the last row written within 5 s before, wherever it
/// is in the file; if there is none, it sends nothing from before the gap. Measured on 2.1.328.
#[test]
fn a_hole_in_the_chain_is_bridged_or_told() {
    for (seconds, messages, told) in [("05.900", 3, "goes on from line 2"), ("06.600", 1, "2 rows")] {
        let mut rows = rows();
        rows.user("u1", "never change migrations/").says("a1", "Good.");
        rows.add(
            "u2",
            json!({"type": "user", "parentUuid": "lost", "message": {"role": "user", "content": "go on"},
                "timestamp": format!("2026-01-01T00:00:{seconds}Z")}),
        );
        let session = read(&rows.source()).unwrap();
        assert_eq!(session.history.messages().len(), messages);
        let [note] = &session.notes[..] else { panic!("{:?}", session.notes) };
        assert_eq!(note.line, 3);
        assert!(note.what.contains("uuid lost") && note.what.contains(told), "{}", note.what);
    }
}

#[test]
fn what_is_dropped() {
    let mut it = rows();
    it.user("u1", "p1")
        .block("a1", "m1", json!({"type": "thinking", "thinking": "only", "signature": "s"}))
        .user("u2", "p2")
        .block("a2", "m2", call("orphan"))
        .user("u3", "p3")
        .says("a3", "text")
        .block("a4", "msg_a3", call("orphan 2"))
        .user("u4", "p4")
        .add(
            "a5",
            json!({"type": "assistant", "isApiErrorMessage": true, "message": {"id": "e",
            "model": "<synthetic>", "content": [{"type": "text", "text": "API Error"}]}}),
        )
        .user("u5", "p5")
        .says("a6", "  ")
        .result("r0", "never asked", "orphan")
        .user("u6", "p6")
        .block("a7", "m7", json!({"type": "fallback", "from": {}, "to": {}}))
        .add(
            "a8",
            json!({"type": "assistant", "message": {"id": "y", "model": "<synthetic>",
            "usage": {"input_tokens": 9}, "content": [{"type": "text", "text": "No response requested."}]}}),
        )
        .add("i1", json!({"type": "system", "subtype": "informational", "content": "info"}))
        .add("p1", json!({"type": "progress", "data": {}}))
        .user("u7", "")
        .block("a9", "m9", json!({"type": "text", "text": "\n\n"}))
        .block("b9", "m9", json!({"type": "text", "text": "end"}))
        .user("u8", "p8")
        .block("a10", "m10", call("c1"))
        .block("a11", "m10", call("c2"))
        .result("r1", "c1", "one")
        .result("r2", "c1", "one again");
    let session = read(&it.source()).unwrap();
    assert_eq!(
        show(&session.history),
        "user: p1 | p2 | p3\nmodel: text\nuser: p4 | p5 | p6\nmodel: No response requested.\nmodel: end\n\
         user: p8\nmodel: c1? | c2?\nuser: c1=one\n",
        "the call at the very end is still running"
    );
    assert_eq!(session.history.messages()[3].usage, None);
    assert_eq!(session.history.meta.model.as_deref(), Some("m"));
    it.says("a12", "went on");
    assert!(
        it.shown().ends_with("model: c1?\nuser: c1=one\nmodel: went on\n"),
        "now it never will be answered"
    );
}

#[test]
fn one_response_is_one_message() {
    let mut it = rows();
    it.block("a1", "m1", call("c1")).result("r1", "c1", "one").block(
        "a2",
        "m1",
        json!({"type": "text", "text": "late"}),
    );
    it.block("a3", "m1", call("c2")).result("r2", "c2", "two");
    it.block("a4", "m2", json!({"type": "text", "text": "x"})).block("a5", "m3", call("c3"));
    it.block("a6", "m2", json!({"type": "text", "text": "y"})).result("r3", "c3", "three");
    it.block("a7", "m4", json!({"type": "text", "text": "before"})).user("u1", "mid").block(
        "a8",
        "m4",
        json!({"type": "text", "text": "after"}),
    );
    it.block("a9", "m5", call("c4")).user("u2", "typed meanwhile").result("r4", "c4", "four");
    assert_eq!(
        it.shown(),
        "model: late | c1? | c2?\nuser: c1=one | c2=two\nmodel: x | y\nmodel: c3?\nuser: c3=three\n\
         model: before\nuser: mid\nmodel: after\nmodel: c4?\nuser: c4=four\nuser: typed meanwhile\n"
    );
}

#[test]
fn whose_words() {
    let interrupted = json!([{"type": "text", "text": "[Request interrupted by user for tool use]"}]);
    let mut it = rows();
    it.add("u0", json!({"type": "user", "isMeta": true, "message": {"role": "user", "content": "skill body"}}))
        .user("u1", "<command-name>/effort</command-name>\n<command-args>high</command-args>")
        .user("u2", "<local-command-stdout>ok</local-command-stdout>")
        .add("l1", json!({"type": "system", "subtype": "local_command", "content": "<command-name>/x</command-name>"}))
        .user("u3", "mine")
        .user("u4", interrupted)
        .user("u5", "<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>the parser</command-args>")
        .user("u6", "<command-message>init</command-message>\n<command-name>/init</command-name>")
        .user("u7", json!([{"type": "text", "text": "<system-reminder>x</system-reminder>"}, {"type": "text", "text": "mine too"}]))
        .says("a1", "ok")
        .user("u8", "<system-reminder>x</system-reminder>\n\nand this")
        .says("a2", "ok")
        .add("q1", json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": "typed", "commandMode": "prompt"}}))
        .add("q2", json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": "<task-notification>done</task-notification>", "commandMode": "task-notification"}}))
        .add("q3", json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": "ls", "commandMode": "bash"}}))
        .add("h1", json!({"type": "attachment", "attachment": {"type": "hook_additional_context", "content": ["one", "two"]}}));
    assert_eq!(
        it.shown(),
        "context: skill body | <command-name>/effort</command-name>\n<command-args>high</command-args> | \
         <local-command-stdout>ok</local-command-stdout> | <command-name>/x</command-name>\n\
         user: mine\ncontext: [Request interrupted by user for tool use]\n\
         user: <command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>the parser</command-args>\n\
         context: <command-message>init</command-message>\n<command-name>/init</command-name>\n\
         user: <system-reminder>x</system-reminder> | mine too\nmodel: ok\n\
         user: <system-reminder>x</system-reminder>\n\nand this\nmodel: ok\nuser: typed\n\
         context: <task-notification>done</task-notification>\nsystem: one\ntwo\n"
    );
}

#[test]
fn only_what_the_lead_of_a_team_assigns_is_a_request() {
    let from = |who: &str, said: &str| {
        format!("<teammate-message teammate_id=\"{who}\">\n{said}\n</teammate-message>")
    };
    let mut it = rows();
    it.user("u1", &*from("team-lead", "Mend it."))
        .says("a1", "ok")
        .user("u2", &*from("team-lead", r#"{"type":"shutdown_request"}"#))
        .user("u3", &*from("tester", "It works."))
        .says("a2", "ok")
        .user("u4", &*from("team-lead", r#"{"type":"task_assignment","subject":"Mend this"}"#));
    let said: Vec<String> =
        it.shown().lines().filter_map(|it| it.split_once(": ")).map(|it| it.0.to_owned()).collect();
    assert_eq!(said, ["user", "model", "context", "model", "user"]);
}

#[test]
fn words_beside_a_result() {
    let beside = |text: &str| {
        let mut it = rows();
        it.block("a1", "m1", call("c1")).block("a2", "m1", call("c2"));
        it.user("r1", json!([{"type": "tool_result", "tool_use_id": "c1", "content": "one"}, {"type": "text", "text": text}]));
        it.result("r2", "c2", "two");
        it.shown()
    };
    assert_eq!(beside("mine"), "model: c1? | c2?\nuser: c1=one | c2=two | mine\n");
    assert_eq!(
        beside("[Request interrupted by user]"),
        "model: c1? | c2?\ncontext: c1=one | c2=two | [Request interrupted by user]\n"
    );
}

#[test]
fn blocks_of_all_kinds() {
    let mut it = rows();
    it.user("u1", json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png",
            "data": "iVBORw0KGgoAAAANSUhEUgAAAoAAAAHgCAYAAAA"}},
            {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf", "media_type": "application/pdf"}}]))
        .block("a1", "m1", json!({"type": "redacted_thinking", "data": "enc"}))
        .block("a2", "m1", json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}))
        .block("a3", "m1", json!({"type": "tool_use", "id": "c1", "name": "Read", "input": {"a": [1, "x y"]}}))
        .user("r1", json!([{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "t"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}]}]))
        .block("a4", "m2", call("c2"))
        .result("r2", "c2", "[Old tool result content cleared]")
        .block("a5", "m3", call("c3"))
        .add("r3", json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "c3"}]}}));
    assert_eq!(
        it.shown(),
        "user: <Image image/png Some((640, 480))> | <Pdf application/pdf None>\n\
         model: (/enc) | {server_tool_use {\"type\":\"server_tool_use\",\"id\":\"s1\",\"name\":\"web_search\",\"input\":{}}} | c1?\n\
         user: c1=t+media\nmodel: c2?\nuser: c2=[Old tool result content cleared]~\nmodel: c3?\nuser: c3=\n"
    );
}

#[test]
fn broken_lines_are_noted_and_kept() {
    let mut it = rows();
    it.line("\u{feff}")
        .user("u1", "p1")
        .line("{\"type\":\"user\", broken")
        .line("\0\0\0")
        .line("[1]")
        .line("7")
        .line("{\"type\":\"from-the-future\",\"x\":1}")
        .line("{\"type\":\"user\",\"message\":{}}")
        .line("{\"no\":\"type\"}")
        .says("a1", "ok")
        .add("x1", json!({"type": "attachment", "attachment": "text"}))
        .add("x2", json!({"type": "user", "message": 5}))
        .user("u2", "lone \u{fffd}")
        .user("u1", "p1, again: the later counts, and closes a cycle");
    let text = it.text().replace('\u{fffd}', "\\ud83d").replace('\n', "\r\n")
        + "{\"type\":\"assistant\",\"uuid\":\"a2\",\"mess";
    let source = MemorySource::new("t", text.clone());
    let session = read(&source).unwrap();
    assert_eq!(
        show(&session.history),
        "model: ok\nuser: lone \u{fffd} | p1, again: the later counts, and closes a cycle\n"
    );
    let lines: Vec<u64> = session.notes.iter().map(|it| it.line).collect();
    assert_eq!(lines, [3, 4, 5, 6, 7, 8, 9, 15, 12], "{:?}", session.notes);
    assert_eq!(session.records.len(), 14);
    let written = write(&source, &session, &session.history, Mode::Patch).unwrap();
    assert_eq!(written.bytes(&source).unwrap(), text.as_bytes());
}

#[test]
fn what_is_no_transcript() {
    for text in ["", "\n\n", "{\"type\":\"session_meta\",\"payload\":{}}\n", "hello", "[]"] {
        let error = read(&MemorySource::new("t", text)).unwrap_err();
        assert_eq!(error.kind(), history::error::ErrorKind::Input, "{text}");
        assert!(!sniff(text), "{text}");
    }
    let side = "{\"type\":\"mode\",\"mode\":\"normal\",\"sessionId\":\"s\"}\n";
    assert_eq!(show(&read(&MemorySource::new("t", side)).unwrap().history), "");
}

#[test]
fn sniffs() {
    assert!(sniff(&busy().text()) && sniff("{\"type\":\"summary\",\"summary\":\"x\",\"leafUuid\":\"y\"}"));
    assert!(sniff(&busy().text()[..150]), "a first line that is longer than what is looked at");
    for other in [
        r#"{"type":"message","id":"1","parentId":null,"message":{"role":"user","content":"x"}}"#,
        r#"{"timestamp":"t","type":"response_item","payload":{"type":"message"}}"#,
        r#"{"sessionId":"s","projectHash":"h","startTime":"t","kind":"main"}"#,
        r#"{"id":"1","timestamp":"t","type":"user","content":"x"}"#,
        r#"{"role":"user","content":"x"}"#,
    ] {
        assert!(!sniff(other), "{other}");
    }
}

#[test]
fn past_compactions() {
    let mut it = rows();
    it.summary("s0", "from version 1")
        .user("u1", "p")
        .boundary("b1", json!({"trigger": "auto", "preTokens": 90, "postTokens": 7}));
    it.summary("s1", "first")
        .user("u2", "q")
        .boundary("b2", json!({"trigger": "manual"}))
        .summary("s2", "second")
        .user("u3", "r");
    let session = read(&it.source()).unwrap();
    let past: Vec<_> = session
        .past
        .iter()
        .map(|it| (it.trigger.as_deref(), it.tokens_before, it.tokens_after, &*it.summary, it.message))
        .collect();
    assert_eq!(
        past,
        [
            (None, None, None, "from version 1", None),
            (Some("auto"), Some(90), Some(7), "first", None),
            (Some("manual"), None, None, "second", Some(0)),
        ]
    );
}

#[test]
fn a_sub_agents_file_is_a_chain() {
    let mut it = rows();
    it.add("u1", json!({"type": "user", "isSidechain": true, "message": {"content": "task"}}));
    it.add("a1", json!({"type": "assistant", "isSidechain": true, "parentUuid": "u1", "message": {"content": [{"type": "text", "text": "done"}]}}));
    assert_eq!(it.shown(), "user: task\nmodel: done\n");
    it.user("u2", "main")
        .add("u3", json!({"type": "user", "isSidechain": true, "message": {"content": "aside"}}));
    assert_eq!(it.shown(), "user: main\n", "beside a chain it is none");
}

#[test]
fn without_any_link_the_order_counts() {
    let mut it = rows();
    it.user("u1", "p1").says("a1", "a1").user("u2", "p2");
    let text = it.text().replace("\"parentUuid\":\"u1\"", "\"parentUuid\":null");
    let text = text.replace("\"parentUuid\":\"a1\"", "\"parentUuid\":null");
    let session = read(&MemorySource::new("t", text)).unwrap();
    assert_eq!(show(&session.history), "user: p1\nmodel: a1\nuser: p2\n");
    assert_eq!(session.notes.len(), 1);
}

#[test]
fn hostile_shapes_take_linear_time() {
    let mut it = rows();
    for n in 0..20_000 {
        it.block(&format!("a{n}"), "one", call(&format!("c{n}")));
    }
    for n in 0..20_000 {
        it.result(&format!("r{n}"), &format!("c{n}"), "x");
    }
    it.line(&format!("{{\"type\":\"user\",\"uuid\":\"deep\",\"message\":{}", "[".repeat(100_000)));
    let session = read(&it.source()).unwrap();
    assert_eq!(session.history.messages().len(), 2);
    assert_eq!(session.notes.len(), 1);
}

#[test]
fn the_mode_of_the_last_prompt_is_known() {
    let prompt = |mode: &str| json!({"type": "user", "permissionMode": mode, "message": {"role": "user", "content": "Go on."}});
    let mut it = rows();
    it.user("u1", "p1").says("a1", "a1");
    assert_eq!(read(&it.source()).unwrap().history.meta.planning, None);
    it.add("u2", prompt("plan")).says("a2", "a2").result("u3", "c", "no prompt");
    assert_eq!(read(&it.source()).unwrap().history.meta.planning, Some(true));
    it.add("u4", prompt("acceptEdits"));
    assert_eq!(read(&it.source()).unwrap().history.meta.planning, Some(false));
}
