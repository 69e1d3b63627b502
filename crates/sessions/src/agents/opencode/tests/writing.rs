use super::*;

/// A call without an id is named by its position, which changes if a message without parts is not written
/// again.
#[test]
fn a_call_without_an_id_keeps_its_name_in_a_new_session() {
    let mut nameless = done("", "ok");
    nameless.as_object_mut().unwrap().remove("callID");
    let source = export(vec![user("go"), answer(json!([])), answer(json!([nameless]))]);
    let session = read(&source).unwrap();
    let out = write(&source, &session, &session.history, Mode::New).unwrap();
    let again = read(&MemorySource::new("again", out.bytes(&source).unwrap())).unwrap();
    let ids = |it: &Session| -> Vec<String> {
        it.history.messages().iter().flat_map(Message::calls).map(|it| it.id.to_string()).collect()
    };
    assert_eq!(ids(&session).len(), 1);
    assert_eq!(ids(&again), ids(&session));
}

#[test]
fn calls_with_the_same_id_in_one_message_are_told_apart() {
    let source = export(vec![user("go"), answer(json!([done("REDACTED", "one"), done("REDACTED", "two")]))]);
    let session = read(&source).unwrap();
    let messages = session.history.messages();
    let calls: Vec<_> = messages.iter().flat_map(Message::calls).map(|it| it.id.clone()).collect();
    let outputs: Vec<_> = messages.iter().flat_map(Message::outputs).map(|it| it.id.clone()).collect();
    assert_eq!(calls, outputs);
    assert_eq!((calls.len(), &*calls[0], calls[0] == calls[1]), (2, "REDACTED", false));
}

#[test]
fn patches_in_place() {
    let source = export(vec![user("one"), answer(json!([done("a", "long output")])), says("end")]);
    let old = String::from_utf8(source.bytes(0..source.len()).unwrap()).unwrap();
    let stub = changed(&source, "[gone]").unwrap();
    assert_eq!(stub, old.replace("long output", "[gone]"));
    // OpenCode's own placeholder keeps the output in storage, as its prune does.
    let native = changed(&source, CLEARED).unwrap();
    assert!(native.contains("long output") && native.contains("\"compacted\":2001"), "{native}");
    assert_eq!(changed(&MemorySource::new("n", native.clone()), CLEARED).unwrap(), native);
    // A new text for an output that OpenCode cleared: the time is reset, the output replaced.
    let other = changed(&MemorySource::new("n", native), "[gone]").unwrap();
    assert!(other.contains("\"compacted\":0") && !other.contains("long output"));

    let media = tool(
        "d",
        json!({ "status": "completed", "input": {}, "output": "pic", "time": {},
        "attachments": [{ "mime": "image/png", "url": "data:image/png;base64,AA" }] }),
    );
    let failed = tool("e", json!({ "status": "error", "input": {}, "error": "no such file" }));
    let stopped = tool(
        "f",
        json!({ "status": "error", "error": "x", "metadata": { "interrupted": true, "output": "half" } }),
    );
    let source = export(vec![user("one"), answer(json!([media, failed, stopped])), says("end")]);
    let out = changed(&source, "[gone]").unwrap();
    assert!(!out.contains("base64") && out.matches("[gone]").count() == 3, "{out}");

    let running = tool("g", json!({ "status": "running", "input": {} }));
    let source = export(vec![user("one"), answer(json!([running])), says("end")]);
    assert_eq!(changed(&source, "[gone]").unwrap_err().kind(), history::error::ErrorKind::Refused);
}

#[test]
fn appends_with_a_named_tail() {
    let source = export(vec![user("one"), says("first"), user("two"), says("second")]);
    let session = read(&source).unwrap();
    let summary = Message::text(Role::User, Kind::Summary, "sum");
    let after = |tail: &[Message]| {
        History::new([vec![summary.clone()], tail.to_vec()].concat(), session.history.meta.clone())
    };
    let tail = &session.history.messages()[2..];
    let out = write(&source, &session, &after(tail), Mode::Append).unwrap();
    let bytes = out.bytes(&source).unwrap();
    let again = MemorySource::new("again", bytes.clone());
    assert_eq!(
        shown(&again),
        "User Marker: \"What did we do so far?\"\nAssistant Summary: \"sum\"\nUser Said: \"two\"\nAssistant Said: \"second\"\n"
    );
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(document["messages"].as_array().unwrap().len(), 6, "the tail is named, not copied");
    let pair = &document["messages"][4];
    assert_eq!(pair["parts"][0]["tail_start_id"], "msg_3");
    assert_eq!(pair["info"]["time"]["created"], 2_001);
    assert_eq!(pair["info"]["sessionID"], "ses_1");
    assert_eq!(document["messages"][5]["info"]["parentID"], pair["info"]["id"]);

    // A tail whose last answer reports a full context is copied, without the report.
    let mut full = says("second");
    full["info"]["tokens"] = json!({ "total": 97_000, "input": 97_000, "output": 0 });
    let source = export(vec![user("one"), says("first"), user("two"), full]);
    let session = read(&source).unwrap();
    let out = write(&source, &session, &after(&session.history.messages()[2..]), Mode::Append).unwrap();
    let document: Value = serde_json::from_slice(&out.bytes(&source).unwrap()).unwrap();
    assert_eq!(document["messages"].as_array().unwrap().len(), 8);
    assert_eq!(document["messages"][7]["info"]["tokens"]["total"], 0);
    let ids: Vec<_> = document["messages"].as_array().unwrap()[4..]
        .iter()
        .map(|it| it["info"]["id"].as_str().unwrap())
        .collect();
    assert!(ids.is_sorted() && ids.iter().all(|it| it.len() == 30), "{ids:?}");

    let cut = MemorySource::new("cut", &source.bytes(0..source.len() - 3).unwrap()[..]);
    let session = read(&cut).unwrap();
    assert_eq!(
        write(&cut, &session, &after(&[]), Mode::Append).unwrap_err().kind(),
        history::error::ErrorKind::Refused
    );
}

#[test]
fn carries_over_from_elsewhere() {
    use history::{Call, Media, MediaKind, Meta, Output, Reasoning};
    let call = |id: &str, input: &str| {
        Part::Call(Call {
            id: id.into(),
            name: "shell".into(),
            input: input.into(),
            freeform: false,
            signature: None,
        })
    };
    let output = |id: &str, failed| {
        let media = Media { kind: MediaKind::Image, mime: "image/png".into(), data: "AA".into(), size: None };
        let media = if failed { [].into() } else { [media].into() };
        Part::Output(Output { media, failed, ..Output::new(id, "said") })
    };
    let thought = Part::Reasoning(Reasoning { text: "hm".into(), signature: Some("S".into()) });
    let messages = vec![
        Message::text(Role::User, Kind::Summary, "sum"),
        Message::text(Role::User, Kind::Context, "rules"),
        Message::text(Role::User, Kind::Said, "go"),
        Message::new(Role::Assistant, Kind::Said, vec![thought, call("a", r#"{"x":1}"#), call("b", "free")]),
        Message::new(Role::Tool, Kind::Said, vec![output("a", false)]),
        Message::new(Role::Tool, Kind::Said, vec![output("b", true)]),
        Message::text(Role::User, Kind::Continue, "on"),
    ];
    let meta = Meta {
        model: Some("claude-x".into()),
        cwd: Some("/w".into()),
        times: Some((1, 2)),
        ..Meta::default()
    };
    let history = History::new(messages, meta);
    let session = Session {
        format: crate::Format::CLAUDE_CODE,
        records: vec![],
        origins: vec![[]; 7].into_iter().collect(),
        notes: vec![],
        past: vec![],
        history: history.clone(),
    };
    let source = MemorySource::new("x", "");
    let out = write(&source, &session, &history, Mode::New).unwrap();
    let again = MemorySource::new("again", out.bytes(&source).unwrap());
    insta::assert_snapshot!(shown(&again), @r##"
    User Marker: "What did we do so far?"
    Assistant Summary: "sum"
    User Context: "rules"
    User Said: "go"
    Assistant Said: thought("hm", None) shell#a{"x":1} shell#b{"input":"free"}
    Tool Said: #a="said" +media #b="said" failed
    User Continue: "on"
    "##);
    assert_eq!(out.warnings.len(), 3, "{:?}", out.warnings);
    assert_eq!(read(&again).unwrap().history.meta.model.as_deref(), Some("claude-x"));
    assert_eq!(
        write(&source, &session, &history, Mode::Append).unwrap_err().kind(),
        history::error::ErrorKind::Refused
    );
}

mod laws {
    use proptest::prelude::*;

    use super::*;
    use history::{Call, Meta, Output, Reasoning};

    /// What OpenCode can store, one unit at a time: prompts, context, answers, calls with their outputs.
    fn unit() -> impl Strategy<Value = Vec<Message>> {
        let word = "[a-z\"\\\\é😀\n]{1,12}";
        let kind = prop_oneof![Just(Kind::Said), Just(Kind::Context), Just(Kind::Continue)];
        let said = (kind, word).prop_map(|(kind, text)| vec![Message::text(Role::User, kind, text)]);
        let thought = |text: String| Part::Reasoning(Reasoning { text: text.into(), signature: None });
        let answer = (word, word).prop_map(move |(text, thinking)| {
            vec![Message::new(Role::Assistant, Kind::Said, vec![thought(thinking), Part::Text(text.into())])]
        });
        let calls =
            (prop::collection::vec((word, any::<bool>()), 1..4), any::<u32>()).prop_map(|(outputs, seed)| {
                let id = |index: usize| std::sync::Arc::from(format!("c{seed}-{index}"));
                let call = |index| {
                    let (name, input) = ("bash".into(), "{\"command\":\"ls\"}".into());
                    Part::Call(Call { id: id(index), name, input, freeform: false, signature: None })
                };
                let output = |(index, (text, failed)): (usize, &(String, bool))| {
                    let name = Some("bash".into());
                    Part::Output(Output { name, failed: *failed, ..Output::new(id(index), text.as_str()) })
                };
                let said = (0..outputs.len()).map(call).collect();
                let answered = outputs.iter().enumerate().map(output).collect();
                vec![
                    Message::new(Role::Assistant, Kind::Said, said),
                    Message::new(Role::Tool, Kind::Said, answered),
                ]
            });
        prop_oneof![said, answer, calls]
    }

    fn history() -> impl Strategy<Value = History> {
        prop::collection::vec(unit(), 1..12).prop_map(|units| {
            let meta = Meta { session: Some("ses_1".into()), times: Some((1, 2)), ..Meta::default() };
            History::new(units.concat(), meta)
        })
    }

    fn written(history: &History) -> (MemorySource, Session) {
        let session = Session {
            format: crate::Format::CODEX,
            records: vec![],
            origins: history.messages().iter().map(|_| []).collect(),
            notes: vec![],
            past: vec![],
            history: history.clone(),
        };
        let source = MemorySource::new("none", "");
        let out = write(&source, &session, history, Mode::New).unwrap();
        let source = MemorySource::new("new", out.bytes(&source).unwrap());
        let session = read(&source).unwrap();
        (source, session)
    }

    fn said(messages: &[Message]) -> Vec<(Role, Vec<Part>)> {
        messages.iter().map(|it| (it.role, it.parts.clone())).collect()
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(history in history(), at in any::<prop::sample::Index>(), clear in any::<bool>()) {
            let (source, session) = written(&history);
            prop_assert_eq!(said(session.history.messages()), said(history.messages()));
            // Then compacted in both modes, with the outputs of the tail perhaps cleared.
            let old = session.history.messages();
            let cut = session.history.cut_at_or_before(at.index(old.len() + 1));
            let mut tail = old[cut..].to_vec();
            if clear {
                for part in tail.iter_mut().flat_map(|it| &mut it.parts) {
                    if let Part::Output(output) = part {
                        output.text = "[gone]".into();
                    }
                }
            }
            let summary = Message::text(Role::Assistant, Kind::Summary, "sum");
            let head = vec![Message::text(Role::User, Kind::Marker, crate::wire::OPENCODE_MARKER), summary];
            let after = History::new([head, tail].concat(), session.history.meta.clone());
            for mode in [Mode::Append, Mode::New] {
                let out = write(&source, &session, &after, mode).unwrap();
                let again = read(&MemorySource::new("again", out.bytes(&source).unwrap())).unwrap();
                prop_assert_eq!(said(again.history.messages()), said(after.messages()), "{:?}", mode);
                prop_assert_eq!(again.past.len(), 1);
            }
        }

        #[test]
        fn broken_bytes_never_panic(history in history(), cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
            let (source, _) = written(&history);
            let mut bytes = source.bytes(0..source.len()).unwrap();
            for (at, byte) in cuts {
                let at = at.index(bytes.len());
                if byte % 5 == 0 { bytes.truncate(at.max(1)) } else { bytes[at] = byte }
            }
            let source = MemorySource::new("broken", bytes.clone());
            if let Ok(session) = read(&source) {
                let out = write(&source, &session, &session.history, Mode::Patch).unwrap();
                prop_assert_eq!(out.bytes(&source).unwrap(), bytes);
                // A copy of what can be read can be read.
                let out = write(&source, &session, &session.history, Mode::New).unwrap();
                prop_assert!(read(&MemorySource::new("copy", out.bytes(&source).unwrap())).is_ok());
            }
        }
    }
}
