use super::*;

#[test]
fn sniffs() {
    assert!(
        sniff(r#"{ "info": {"id": "ses_1", "x": [1"#) && sniff(r#"{ "info": {"id": "ses_1"}, "messages": ["#)
    );
    assert!(sniff(r#"{"info":{"id":"ses_1"},"messages":[{"info":{"#));
    assert!(sniff(r#"{"messages":[{"info":{},"parts":[]}]}"#));
    for other in
        ["", "{}", r#"{"info":{"id":"x"},"messages":[]}"#, r#"{"messages":[{"role":"user"}]}"#, "[1]", "x"]
    {
        assert!(!sniff(other), "{other}");
        assert!(other.contains("info") || read(&MemorySource::new("x", other)).is_err());
    }
}

#[test]
fn parts_as_they_are_sent() {
    let mut first = user("look at @a.rs");
    first["parts"] = json!([
        { "type": "text", "text": "look" },
        { "type": "file", "mime": "text/plain", "url": "file:///a.rs" },
        { "type": "text", "synthetic": true, "text": "Called the Read tool" },
        { "type": "text", "ignored": true, "text": "for the interface only" },
        { "type": "file", "mime": "image/png", "url": "data:image/png;base64,AAAA" },
        { "type": "file", "mime": "application/pdf", "filename": "x.pdf", "url": "file:///x.pdf" },
        { "type": "agent", "name": "plan" },
        { "type": "subtask", "prompt": "p" },
    ]);
    let thinking =
        json!({ "type": "reasoning", "text": "hm", "metadata": { "anthropic": { "signature": "SIG" } } });
    let old = {
        let mut it = answer(json!([thinking, { "type": "text", "text": "other model" }]));
        it["info"]["modelID"] = json!("older");
        it
    };
    let cleared = tool(
        "c",
        json!({ "status": "completed", "input": {}, "output": "long", "time": { "compacted": 5 },
        "attachments": [{ "mime": "image/png", "url": "data:image/png;base64,AA" }] }),
    );
    let media = tool(
        "d",
        json!({ "status": "completed", "input": {}, "output": "pic", "time": { "compacted": 0 },
        "attachments": [{ "mime": "image/png", "url": "data:image/png;base64,AA" }] }),
    );
    let failed = tool("e", json!({ "status": "error", "input": {}, "error": "no such file" }));
    let stopped = tool(
        "f",
        json!({ "status": "error", "error": "x", "metadata": { "interrupted": true, "output": "half" } }),
    );
    let running = tool("g", json!({ "status": "running", "input": {} }));
    let step = json!({ "type": "step-start" });
    let source = export(vec![
        first,
        old,
        answer(
            json!([step, thinking, { "type": "text", "text": "I see" }, done("a", "x"), done("b", "y"), { "type": "patch" },
            step, cleared, media, failed, stopped, running]),
        ),
        answer(json!([running])),
    ]);
    insta::assert_snapshot!(shown(&source), @r##"
    User Said: "look"
    User Context: "Called the Read tool"
    User Said: image/png:AAAA "[Attached application/pdf: x.pdf]"
    User Context: "The following tool was executed by the user"
    Assistant Said: thought("hm", None) "other model"
    Assistant Said: thought("hm", Some("SIG")) "I see" bash#a{"command":"ls"} bash#b{"command":"ls"}
    Tool Said: #a="x" #b="y"
    Assistant Said: bash#c{} bash#d{} bash#e{} bash#f{} bash#g{}
    Tool Said: #c="[Old tool result content cleared]" cleared #d="pic" +media #e="no such file" failed #f="half" #g="[Tool execution was interrupted]" failed
    Assistant Said: bash#g{}
    "##);
}

#[test]
fn errors_and_reverts() {
    let with_error = |name: &str, parts: Value| {
        let mut it = answer(parts);
        it["info"]["error"] = json!({ "name": name, "data": {} });
        it
    };
    let text = json!([{ "type": "text", "text": "half an answer" }]);
    let elements = vec![
        user("one"),
        with_error("APIError", text.clone()),
        with_error("MessageAbortedError", text),
        with_error("MessageAbortedError", json!([{ "type": "step-start" }])),
        answer(json!([])),
        user("two"),
        says("gone"),
    ];
    let source = export(elements);
    assert_eq!(
        shown(&source),
        "User Said: \"one\"\nAssistant Said: \"half an answer\"\nUser Said: \"two\"\nAssistant Said: \"gone\"\n"
    );
    let text = String::from_utf8(source.bytes(0..source.len()).unwrap()).unwrap();
    let reverted = text.replacen(r#""slug": "s""#, r#""revert": {"messageID": "msg_6"}"#, 1);
    assert_eq!(
        shown(&MemorySource::new("r", reverted)),
        "User Said: \"one\"\nAssistant Said: \"half an answer\"\n"
    );
}

#[test]
fn compactions_hide_and_reorder() {
    let start = || vec![user("one"), says("first"), user("two"), says("second")];
    let with = |more: Vec<Value>| shown(&export([start(), more].concat()));
    // Complete: only marker, summary and what follows.
    let mut go_on = user("Continue if you have next steps, or stop.");
    go_on["parts"][0]["synthetic"] = json!(true);
    assert_eq!(
        with(vec![marker(true, None), summary("sum", "msg_5"), go_on, says("more")]),
        "User Marker: \"What did we do so far?\"\nAssistant Summary: \"sum\"\n\
         User Continue: \"Continue if you have next steps, or stop.\"\nAssistant Said: \"more\"\n",
    );
    // With a tail: it comes after the summary.
    assert_eq!(
        with(vec![marker(false, Some("msg_3")), summary("sum", "msg_5"), user("three")]),
        "User Marker: \"What did we do so far?\"\nAssistant Summary: \"sum\"\n\
         User Said: \"two\"\nAssistant Said: \"second\"\nUser Said: \"three\"\n",
    );
    // Not complete: nothing is hidden, and the marker is an ordinary question.
    let mut failed = summary("sum", "msg_5");
    failed["info"]["error"] = json!({ "name": "ContextOverflowError" });
    let out = with(vec![marker(false, None), failed]);
    assert!(
        out.starts_with("User Said: \"one\"") && out.ends_with("User Marker: \"What did we do so far?\"\n"),
        "{out}"
    );
    // A second compaction includes the first.
    let out = with(vec![
        marker(true, None),
        summary("sum", "msg_5"),
        user("three"),
        marker(false, Some("msg_7")),
        summary("all", "msg_8"),
    ]);
    assert_eq!(
        out,
        "User Marker: \"What did we do so far?\"\nAssistant Summary: \"all\"\nUser Said: \"three\"\n"
    );
}

#[test]
fn past_compactions_and_usage() {
    let mut first = says("first");
    first["info"]["tokens"] = json!({ "total": 160, "input": 100, "output": 20, "reasoning": 30, "cache": { "read": 10, "write": 0 } });
    let mut second = says("second");
    second["info"]["tokens"] =
        json!({ "input": 7, "output": 2, "reasoning": 0, "cache": { "read": 0, "write": 0 } });
    let session = read(&export(vec![user("one"), first.clone()])).unwrap();
    let usage = session.history.messages()[1].usage.unwrap();
    assert_eq!((usage.sent(), usage.output, usage.reasoning), (110, 50, 30));

    // Absurd numbers do not overflow.
    let mut absurd = says("first");
    absurd["info"]["tokens"] =
        json!({ "total": u64::MAX, "input": u64::MAX, "output": u64::MAX, "cache": { "read": u64::MAX } });
    absurd["info"]["time"] = json!({ "created": i64::MAX });
    let source = export(vec![
        user("one"),
        absurd,
        marker(true, None),
        summary("sum", "msg_3"),
        answer(json!([done("a", "x")])),
    ]);
    assert!(read(&source).unwrap().past[0].tokens_before > Some(0));
    assert!(changed(&source, CLEARED).is_ok());

    let session =
        read(&export(vec![user("one"), first, marker(true, Some("msg_2")), summary("sum", "msg_3"), second]))
            .unwrap();
    let expected = PastCompaction {
        message: Some(1),
        trigger: Some("auto".into()),
        tokens_before: Some(160),
        tokens_after: None,
        summary: "sum".into(),
    };
    assert_eq!(session.past, [expected]);
    let usage: Vec<_> = session.history.messages().iter().map(|it| it.usage.map(|it| it.context())).collect();
    assert_eq!(
        usage,
        [None, None, None, Some(9)],
        "what was reported before the summary was another context"
    );
}

#[test]
fn broken_elements_are_notes() {
    let source = export(vec![user("one"), says("first")]);
    let text = String::from_utf8(source.bytes(0..source.len()).unwrap()).unwrap();
    let broken =
        text.replacen(r#""messages": ["#, r#""messages": [7, {"info": {}}, {"info": 1, "parts": []},"#, 1);
    let session = read(&MemorySource::new("b", broken)).unwrap();
    assert_eq!(session.notes.iter().map(|it| it.line).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(session.history.messages().len(), 2);
    assert!(session.origins.iter().eq([[3], [4]]));
}

/// Any value can be in the place of a tool's state, an attachment or a part.
#[test]
fn broken_parts_are_written() {
    let states = [
        "1",
        "null",
        r#""done""#,
        "[]",
        r#"{"status":1}"#,
        r#"{"status":"completed","output":"x","time":3,"metadata":[]}"#,
        r#"{"status":"completed","output":"x","time":{},"attachments":[1,"x",null,{"url":3},{"url":"data:,x","mime":"image/png"}]}"#,
        r#"{"status":"completed","output":"x","time":{"compacted":"x"},"attachments":{}}"#,
        r#"{"status":"error","metadata":7}"#,
        r#"{"status":"error","error":[],"metadata":{"interrupted":true}}"#,
        r#"{"status":"error","metadata":{"interrupted":true,"output":"half"}}"#,
        r#"{"status":"running","input":[]}"#,
    ];
    for state in states {
        let source =
            export(vec![user("one"), answer(json!([tool("a", json!("STATE"))])), says("two"), user("x")]);
        let text = String::from_utf8(source.bytes(0..source.len()).unwrap()).unwrap();
        let text = text.replace(r#""STATE""#, state);
        let source = MemorySource::new("broken", text);
        let session = read(&source).unwrap();
        let mut messages = session.history.messages().to_vec();
        assert!(
            messages.iter().any(|it| it.calls().next().is_some()),
            "{state}: {:?} {}",
            session.notes,
            shown(&source)
        );
        for part in messages.iter_mut().flat_map(|it| &mut it.parts) {
            if let Part::Output(output) = part {
                output.text = "[gone]".into();
                output.media = [].into();
            }
        }
        let cleared = History::new(messages.clone(), session.history.meta.clone());
        messages.insert(0, Message::text(history::Role::User, Kind::Summary, "sum"));
        let summed = History::new(messages, session.history.meta.clone());
        for (mode, after) in
            [(Mode::Patch, &cleared), (Mode::New, &cleared), (Mode::New, &summed), (Mode::Append, &summed)]
        {
            let Ok(out) = write(&source, &session, after, mode) else {
                assert_eq!(mode, Mode::Patch, "{state}");
                continue;
            };
            let out = MemorySource::new("again", out.bytes(&source).unwrap());
            let again = read(&out).unwrap();
            let outputs = |it: &History| it.messages().iter().map(|it| it.outputs().count()).sum::<usize>();
            assert_eq!(outputs(&again.history), outputs(after), "{state} {mode:?}");
            if mode == Mode::New {
                let new: Value = serde_json::from_slice(&out.bytes(0..out.len()).unwrap()).unwrap();
                let parts =
                    new["messages"].as_array().unwrap().iter().flat_map(|it| it["parts"].as_array().unwrap());
                assert!(parts.clone().all(Value::is_object), "{state}");
                let files =
                    parts.flat_map(|it| it["state"]["attachments"].as_array().cloned().unwrap_or_default());
                assert!(files.into_iter().all(|it| it["id"].is_string()), "{state}");
            }
        }
    }
}

/// Every part of an OpenAI reasoning item repeats its encrypted content; the request holds it once.
#[test]
fn encrypted_reasoning_stands_once_an_item() {
    let thought = |text: &str, item: &str| {
        let sealed = "e".repeat(4_000);
        json!({ "type": "reasoning", "text": text,
            "metadata": { "openai": { "itemId": item, "reasoningEncryptedContent": sealed } } })
    };
    let parts = json!([
        thought("one", "rs_1"),
        thought("two", "rs_1"),
        thought("three", "rs_1"),
        thought("other", "rs_2"),
        { "type": "text", "text": "done" }
    ]);
    let source = export(vec![user("go"), answer(parts)]);
    let session = read(&source).unwrap();
    let thoughts: Vec<_> = session.history.messages()[1]
        .parts
        .iter()
        .filter_map(|it| if let Part::Reasoning(it) = it { Some(it) } else { None })
        .map(|it| (it.text.as_str(), it.signature.is_some()))
        .collect();
    assert_eq!(thoughts, [("one", true), ("two", false), ("three", false), ("other", true)]);
    let written = write(&source, &session, &session.history, Mode::Patch).unwrap();
    assert_eq!(written.bytes(&source).unwrap(), source.bytes(0..source.len()).unwrap());
}

/// The exit code of a command is beside its output.
#[test]
fn exit_codes_are_read() {
    let run = |exit: Value| {
        tool(
            "c",
            json!({ "status": "completed", "input": {"command": "make"}, "output": "…", "metadata": { "exit": exit },
                "time": {"start": 1, "end": 2} }),
        )
    };
    let source = export(vec![user("go"), answer(json!([run(json!(2)), run(json!(0)), run(Value::Null)]))]);
    let session = read(&source).unwrap();
    let exits: Vec<_> = session.history.messages()[2].outputs().map(|it| it.exit).collect();
    assert_eq!(exits, [Some(2), Some(0), None]);
}
