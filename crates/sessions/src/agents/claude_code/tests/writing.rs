use super::*;
use crate::Source as _;

fn edit(session: &Session, id: &str, text: &str) -> History {
    let mut messages = session.history.messages().to_vec();
    for part in messages.iter_mut().flat_map(|it| &mut it.parts) {
        if let Part::Output(output) = part
            && &*output.id == id
        {
            output.text = text.into();
        }
    }
    History::new(messages, session.history.meta.clone())
}

#[test]
fn a_patch_moves_nothing() {
    let source = busy().source();
    let session = read(&source).unwrap();
    let before = busy().text();
    let same = write(&source, &session, &session.history, Mode::Patch).unwrap();
    assert_eq!(same.pieces, [crate::Piece::Keep(0..before.len() as u64)]);

    let patched = write(&source, &session, &edit(&session, "c3", "[cut]"), Mode::Patch).unwrap();
    let bytes = patched.bytes(&source).unwrap();
    let expected = before.replace("\"three, and quite a lot of it\"", "\"[cut]\"");
    let (after, short) =
        (String::from_utf8(bytes).unwrap(), "three, and quite a lot of it".len() - "[cut]".len());
    assert_eq!(after.len(), before.len());
    let lines: Vec<_> = after.lines().zip(expected.lines()).filter(|it| it.0 != it.1).collect();
    let [(line, wanted)] = lines[..] else { panic!("{lines:?}") };
    assert_eq!(line, wanted.replace("\"[cut]\"", &format!("\"[cut]\"{}", " ".repeat(short))));
    let again = read(&MemorySource::new("t", after)).unwrap();
    assert_eq!(show(&again.history), BUSY.replace("three, and quite a lot of it", "[cut]"));

    // Blocks become a string; the mark of failure stays; the second copy in `toolUseResult` is never sent.
    for (id, from) in [("c1", "c1=one"), ("c2", "c2=two\n2")] {
        let after = edit(&session, id, "x \"y\" \\ \u{1}");
        let bytes = write(&source, &session, &after, Mode::Patch).unwrap().bytes(&source).unwrap();
        let again = read(&MemorySource::new("t", bytes)).unwrap();
        assert_eq!(show(&again.history), BUSY.replace(from, &format!("{id}=x \"y\" \\ \u{1}")));
    }
    let longer = write(&source, &session, &edit(&session, "c1", &"long ".repeat(30)), Mode::Patch).unwrap();
    assert_eq!(longer.warnings, ["record 8 grew by 147 bytes: what follows it moved"]);
}

#[test]
fn a_response_that_goes_on_behind_its_own_result_keeps_its_order() {
    let says = |text: &str| json!({"type": "text", "text": text});
    let mut it = rows();
    it.user("u1", "go")
        .block("a1", "m1", says("first"))
        .block("a2", "m1", call("c1"))
        .result("r1", "c1", "one");
    it.block("a3", "m1", says("then")).block("a4", "m1", call("c2")).result("r2", "c2", "two");
    it.block("b1", "m2", says("other")).block("a5", "m1", says("late")).user("u2", "on");
    let source = it.source();
    let session = read(&source).unwrap();
    let order = "user: go\nmodel: first | then | c1? | c2?\nuser: c1=one | c2=two\nmodel: other\nmodel: late\nuser: on\n";
    assert_eq!(show(&session.history), order);
    for mode in [Mode::New, Mode::Append] {
        let bytes = write(&source, &session, &session.history, mode).unwrap().bytes(&source).unwrap();
        assert_eq!(show(&read(&MemorySource::new("t", bytes)).unwrap().history), order, "{mode:?}");
    }
}

#[test]
fn a_long_output_is_set_aside_by_a_short_write() {
    let text = "line \\ \"quoted\" é \u{1F600}\n".repeat(3000);
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A".repeat(90_000)}});
    let contents = [
        json!(text),
        json!([{"type": "text", "text": text}]),
        json!([{"text": "short", "type": "text"}, {"type": "text", "text": text, "more": "x"}]),
        json!([image, {"type": "text", "text": "and this"}]),
    ];
    for (content, start) in contents.iter().flat_map(|it| (0..4).map(move |start| (it, start))) {
        let mut it = rows();
        it.user("u1", "go").block("a1", "m1", call("c1")).result("r1", "c1", "RESULT").user("u2", "on");
        // Escapes are at different offsets, and a failed result keeps its mark.
        let content = content.to_string().replacen("line", &"line"[..start], 1);
        let row = it.text().replace("\"RESULT\"", &format!("{content},\"is_error\":true"));
        let source = MemorySource::new("t", row.clone());
        let session = read(&source).unwrap();
        let mut messages = session.history.messages().to_vec();
        for part in messages.iter_mut().flat_map(|it| &mut it.parts) {
            if let Part::Output(output) = part {
                (output.text, output.media) = ("[cleared: \"x\"]".into(), [].into());
            }
        }
        let after = History::new(messages, session.history.meta.clone());
        let written = write(&source, &session, &after, Mode::Patch).unwrap();
        let patched = String::from_utf8(written.bytes(&source).unwrap()).unwrap();
        assert_eq!(patched.len(), row.len());
        let mut changed = (0..row.len()).filter(|at| row.as_bytes()[*at] != patched.as_bytes()[*at]);
        let (first, last) = (changed.next().unwrap(), changed.next_back().unwrap());
        assert!(last - first < 300, "{}: {}", last - first, &patched[first..last]);
        assert_eq!(patched.lines().count(), row.lines().count());
        assert!(patched.lines().all(|it| serde_json::from_str::<Value>(it).is_ok()), "{content:.200}");
        let patched = MemorySource::new("t", patched);
        let again = read(&patched).unwrap();
        assert_eq!(show(&again.history), "user: go\nmodel: c1?\nuser: c1=[cleared: \"x\"]!\nuser: on\n");
        // What was set aside is not copied to a new file.
        let new = write(&patched, &again, &again.history, Mode::New);
        let new = new.unwrap().bytes(&patched).unwrap();
        assert!(new.len() < 6000, "{}", new.len());
    }
}

#[test]
fn a_patch_keeps_what_is_not_valid_text() {
    let mut it = rows();
    it.block("a1", "m1", call("c1")).result("r1", "c1", "CUT-ME");
    let mut bytes = it.text().into_bytes();
    let at = bytes.windows(6).rposition(|it| it == b"\"/w\",\"").unwrap();
    bytes.splice(at + 1..at + 2, [0xFF]);
    let source = MemorySource::new("t", bytes.clone());
    let session = read(&source).unwrap();
    let out =
        write(&source, &session, &edit(&session, "c1", "ab"), Mode::Patch).unwrap().bytes(&source).unwrap();
    assert_eq!(out.len(), bytes.len());
    assert!(out.contains(&0xFF));
}

#[test]
fn a_patch_is_nothing_else() {
    let source = busy().source();
    let session = read(&source).unwrap();
    let mut messages = session.history.messages().to_vec();
    messages[1].parts = vec![Part::Text("other words".into())];
    for messages in [messages, session.history.messages()[1..].to_vec()] {
        let after = History::new(messages, session.history.meta.clone());
        assert!(write(&source, &session, &after, Mode::Patch).is_err());
    }
}

/// Summary, then the last turn.
fn compacted(session: &Session) -> History {
    let from = session.history.last_prompt().unwrap();
    let mut messages = vec![Message::text(Role::User, Kind::Summary, "what was \"done\"")];
    messages.extend_from_slice(&session.history.messages()[from..]);
    History::new(messages, session.history.meta.clone())
}

#[test]
fn a_new_session_starts_compacted() {
    let source = busy().source();
    let session = read(&source).unwrap();
    let after = compacted(&edit_session(&session, "c3", "[cut]"));
    let written = write(&source, &session, &after, Mode::New).unwrap();
    assert_eq!(written, write(&source, &session, &after, Mode::New).unwrap(), "same input, same bytes");
    let text = String::from_utf8(written.bytes(&source).unwrap()).unwrap();
    let id = written.session.unwrap();
    assert_eq!(written.file_name, Some(format!("{id}.jsonl")));
    let again = read(&MemorySource::new(format!("{id}.jsonl"), text.clone())).unwrap();
    let expected =
        "summary: what was \"done\"\nuser: second prompt\nmodel: c3?\nuser: c3=[cut]\nmodel: Done.\n";
    assert_eq!(show(&again.history), expected);
    assert_eq!(again.notes, []);
    assert_eq!(again.past.len(), 1);
    assert_eq!(again.past[0].message, Some(0));
    assert!(again.history.messages().iter().all(|it| it.usage.is_none()), "usage is reset");
    assert_eq!(again.history.meta.times.unwrap().1, session.history.meta.times.unwrap().1 + 1);
    for gone in ["\"m3\"", "toolUseResult", "quite a lot", "\"u2\"", "\"sessionId\":\"s\""] {
        assert!(!text.contains(gone), "{gone}");
    }
    let rows: Vec<Value> = text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let (last, pointer) = (&rows[rows.len() - 2], &rows[rows.len() - 1]);
    assert_eq!(pointer["leafUuid"], last["uuid"]);
    assert_eq!(pointer["lastPrompt"], "second prompt");
    assert_eq!(last["timestamp"], "2026-01-01T00:00:14.001Z");
    assert!(
        rows[..rows.len() - 1]
            .iter()
            .all(|it| it["sessionId"] == *id && it["cwd"] == "/w" && it["version"] == "2.1.328")
    );
    assert!(rows[..rows.len() - 1].windows(2).all(|it| it[1]["parentUuid"] == it[0]["uuid"]));
}

fn edit_session(session: &Session, id: &str, text: &str) -> Session {
    Session { history: edit(session, id, text), ..session.clone() }
}

#[test]
fn appended_it_goes_on() {
    let source = MemorySource::new("t.jsonl", busy().text() + "{\"type\":\"cut off");
    let session = read(&source).unwrap();
    let after = compacted(&session);
    let written = write(&source, &session, &after, Mode::Append).unwrap();
    assert_eq!((&written.session, &written.file_name), (&None, &None));
    let bytes = written.bytes(&source).unwrap();
    assert!(bytes.starts_with(&source.bytes(0..source.len()).unwrap()));
    let again = read(&MemorySource::new("t.jsonl", bytes)).unwrap();
    assert_eq!(
        show(&again.history),
        "summary: what was \"done\"\nuser: second prompt\nmodel: c3?\nuser: c3=three, and quite a lot of it\nmodel: Done.\n"
    );

    // And once more on top of that: nothing is nested, nothing collides.
    let source = MemorySource::new("t.jsonl", written.bytes(&source).unwrap());
    let mut messages = compacted(&again).into_messages();
    messages[0] = Message::text(Role::User, Kind::Summary, "shorter");
    let twice =
        write(&source, &again, &History::new(messages, again.history.meta.clone()), Mode::Append).unwrap();
    let last = read(&MemorySource::new("t.jsonl", twice.bytes(&source).unwrap())).unwrap();
    assert!(show(&last.history).starts_with("summary: shorter\nuser: second prompt\nmodel: c3?\n"));
    assert_eq!(last.past.len(), 2);
}

/// Only the response that began last may have calls that still run.
#[test]
fn responses_whose_rows_alternate_read_the_same_once_written() {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": id}});
    let mut rows = Rows::default();
    rows.user("u1", "fix it").block("a1", "m1", json!({"type": "text", "text": "Looking."}));
    rows.block("a2", "m2", call("c1")).block("a3", "m1", call("c2")).block("a4", "m2", call("c3"));
    rows.result("u2", "c1", "found");
    let source = rows.source();
    let session = read(&source).unwrap();
    assert_eq!(session.history.messages()[1].calls().count(), 0, "c2 was never answered");
    assert_eq!(session.history.messages()[2].calls().count(), 2, "c3 runs");
    for mode in [Mode::New, Mode::Append] {
        let written = write(&source, &session, &session.history, mode).unwrap();
        let again = read(&MemorySource::new("t", written.bytes(&source).unwrap())).unwrap();
        assert_eq!(show(&again.history), show(&session.history));
    }
}

#[test]
fn changed_messages_are_written_anew() {
    let source = busy().source();
    let session = read(&source).unwrap();
    let mut messages = session.history.messages().to_vec();
    messages[3].parts.remove(1);
    let mut call = messages[3].calls().next().unwrap().clone();
    call.input = "{\"command\":\"shorter\"}".into();
    messages[3].parts[1] = Part::Call(call);
    messages[6].parts = vec![Part::Text("second\nprompt, shortened".into())];
    messages.insert(7, Message::text(Role::Assistant, Kind::Ack, "I see."));
    messages.insert(8, Message::text(Role::User, Kind::Continue, "Go on."));
    let after = History::new(messages, session.history.meta.clone());
    for mode in [Mode::New, Mode::Append] {
        let written = write(&source, &session, &after, mode).unwrap();
        assert_eq!(written.warnings, Vec::<String>::new());
        let again = read(&MemorySource::new("t", written.bytes(&source).unwrap())).unwrap();
        let expected = BUSY
            .replace(" | Looking.", "")
            .replace("second prompt\n", "second\nprompt, shortened\nmodel: I see.\ncontext: Go on.\n");
        assert_eq!(show(&again.history), expected);
        assert_eq!(
            again.history.messages()[3].calls().next().unwrap().input.as_str(),
            "{\"command\":\"shorter\"}"
        );
        assert_eq!(
            again.history.messages()[3].parts[0],
            session.history.messages()[3].parts[0],
            "signed thinking"
        );
    }
}

#[test]
fn another_agents_session_is_carried_over() {
    let source = MemorySource::new("rollout", "not ours");
    let call = history::Call {
        id: "call_1".into(),
        name: "apply_patch".into(),
        input: "*** Begin".into(),
        freeform: true,
        signature: None,
    };
    let thought = history::Reasoning { text: "".into(), signature: Some("encrypted elsewhere".into()) };
    let output = history::Output { failed: true, ..history::Output::new("call_1", "Exit code 1") };
    let mut messages = vec![
        Message::text(Role::User, Kind::Said, "do it"),
        Message::new(Role::Assistant, Kind::Said, vec![Part::Reasoning(thought), Part::Call(call)]),
        Message::new(Role::Tool, Kind::Said, vec![Part::Output(output)]),
        Message::text(Role::Assistant, Kind::Said, "done"),
    ];
    for (number, message) in messages.iter_mut().enumerate() {
        message.from = Some(number as u32);
    }
    let meta = history::Meta { cwd: Some("/elsewhere".into()), ..Default::default() };
    let session = Session {
        format: crate::Format::CODEX,
        records: vec![crate::Record { at: 0, len: 8 }],
        origins: vec![[0]; 4].into_iter().collect(),
        notes: vec![],
        past: vec![],
        history: History::new(messages, meta),
    };
    let written = write(&source, &session, &session.history, Mode::New).unwrap();
    assert_eq!(written.warnings, ["message 1: thinking that is not signed for this API is left out"]);
    let again = read(&MemorySource::new("t", written.bytes(&source).unwrap())).unwrap();
    assert_eq!(show(&again.history), "user: do it\nmodel: call_1?\nuser: call_1=Exit code 1!\nmodel: done\n");
    assert_eq!(
        again.history.messages()[1].calls().next().unwrap().input.as_str(),
        "{\"input\":\"*** Begin\"}"
    );
    assert_eq!(again.history.meta.cwd.as_deref(), Some("/elsewhere"));
    assert!(write(&source, &session, &session.history, Mode::Append).is_err());
}
