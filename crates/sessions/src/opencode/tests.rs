use serde_json::{Value, json};

use super::{CLEARED, History, Mode, Result, Session, read, sniff, write};
use crate::Source;
use crate::{Memory, PastCompaction};
use history::{Kind, Message, Part, Role};

/// A small session: elements get ids `msg_1`…, their parts ids and times.
fn export(elements: Vec<Value>) -> Memory {
    let mut elements = elements;
    for (index, element) in elements.iter_mut().enumerate() {
        let (info, id) = (&mut element["info"], format!("msg_{}", index + 1));
        if info["id"].is_null() {
            info["id"] = json!(id);
        }
        if info["time"].is_null() {
            info["time"] = json!({ "created": 1_000 + index });
        }
        info["sessionID"] = json!("ses_1");
        for (number, part) in element["parts"].as_array_mut().unwrap().iter_mut().enumerate() {
            part["id"] = json!(format!("prt_{}_{number}", index + 1));
        }
    }
    let info =
        json!({ "id": "ses_1", "slug": "s", "title": "t", "directory": "/p", "time": { "updated": 2_000 } });
    Memory::new("test", serde_json::to_string_pretty(&json!({ "info": info, "messages": elements })).unwrap())
}

fn user(text: &str) -> Value {
    json!({
        "info": { "role": "user", "agent": "build", "model": { "providerID": "p", "modelID": "m" } },
        "parts": [{ "type": "text", "text": text }],
    })
}

fn marker(auto: bool, tail: Option<&str>) -> Value {
    let mut it = user("");
    it["parts"] = json!([{ "type": "compaction", "auto": auto }]);
    if let Some(tail) = tail {
        it["parts"][0]["tail_start_id"] = json!(tail);
    }
    it
}

fn answer(parts: Value) -> Value {
    json!({ "info": { "role": "assistant", "providerID": "p", "modelID": "m", "finish": "stop" }, "parts": parts })
}

fn says(text: &str) -> Value {
    answer(json!([{ "type": "text", "text": text }]))
}

fn summary(text: &str, parent: &str) -> Value {
    let mut it = says(text);
    it["info"]["summary"] = json!(true);
    it["info"]["parentID"] = json!(parent);
    it
}

fn tool(id: &str, state: Value) -> Value {
    json!({ "type": "tool", "tool": "bash", "callID": id, "state": state })
}

fn done(id: &str, output: &str) -> Value {
    tool(
        id,
        json!({ "status": "completed", "input": {"command": "ls"}, "output": output, "time": {"start": 1, "end": 2} }),
    )
}

/// One line a message, one word a part.
fn shown(source: &Memory) -> String {
    lines(read(source).unwrap().history.messages())
}

fn lines(messages: &[Message]) -> String {
    let mut out = String::new();
    for message in messages {
        out.push_str(&format!("{:?} {:?}:", message.role, message.kind));
        for part in &message.parts {
            out.push_str(&match part {
                Part::Text(it) => format!(" {:?}", it.as_str()),
                Part::Reasoning(it) => {
                    format!(
                        " thought({:?}, {:?})",
                        it.text.as_str(),
                        it.signature.as_ref().map(|it| it.as_str())
                    )
                }
                Part::Call(it) => format!(" {}#{}{}", it.name, it.id, it.input.as_str()),
                Part::Output(it) => format!(
                    " #{}={:?}{}{}{}",
                    it.id,
                    it.text.as_str(),
                    if it.failed { " failed" } else { "" },
                    if it.cleared { " cleared" } else { "" },
                    if it.media.is_empty() { "" } else { " +media" },
                ),
                Part::Media(it) => format!(" {}:{}", it.mime, it.data),
                Part::Opaque(it) => format!(" {}", it.kind),
            });
        }
        out.push('\n');
    }
    out
}

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
        assert!(other.contains("info") || read(&Memory::new("x", other)).is_err());
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
        shown(&Memory::new("r", reverted)),
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
    // With a tail: it stands behind the summary.
    assert_eq!(
        with(vec![marker(false, Some("msg_3")), summary("sum", "msg_5"), user("three")]),
        "User Marker: \"What did we do so far?\"\nAssistant Summary: \"sum\"\n\
         User Said: \"two\"\nAssistant Said: \"second\"\nUser Said: \"three\"\n",
    );
    // Not complete: nothing is hidden, and the marker is a question like any other.
    let mut failed = summary("sum", "msg_5");
    failed["info"]["error"] = json!({ "name": "ContextOverflowError" });
    let out = with(vec![marker(false, None), failed]);
    assert!(
        out.starts_with("User Said: \"one\"") && out.ends_with("User Marker: \"What did we do so far?\"\n"),
        "{out}"
    );
    // A second one takes in the first.
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

    // Nonsense does not overflow.
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
    let session = read(&Memory::new("b", broken)).unwrap();
    assert_eq!(session.notes.iter().map(|it| it.line).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(session.history.messages().len(), 2);
    assert!(session.of_message.iter().eq([[3], [4]]));
}

/// Whatever stands where OpenCode writes a tool's state, an attachment or a part.
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
        let source = Memory::new("broken", text);
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
            let out = Memory::new("again", out.bytes(&source).unwrap());
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

/// A call without an id is named by its place, which moves when a message without parts is not written again.
#[test]
fn a_call_without_an_id_keeps_its_name_in_a_new_session() {
    let mut nameless = done("", "ok");
    nameless.as_object_mut().unwrap().remove("callID");
    let source = export(vec![user("go"), answer(json!([])), answer(json!([nameless]))]);
    let session = read(&source).unwrap();
    let out = write(&source, &session, &session.history, Mode::New).unwrap();
    let again = read(&Memory::new("again", out.bytes(&source).unwrap())).unwrap();
    let ids = |it: &Session| -> Vec<String> {
        it.history.messages().iter().flat_map(Message::calls).map(|it| it.id.to_string()).collect()
    };
    assert_eq!(ids(&session).len(), 1);
    assert_eq!(ids(&again), ids(&session));
}

fn changed(source: &Memory, text: &str) -> Result<String> {
    let session = read(source)?;
    let mut messages = session.history.messages().to_vec();
    for part in messages.iter_mut().flat_map(|it| &mut it.parts) {
        if let Part::Output(output) = part {
            output.text = text.into();
            output.media = [].into();
        }
    }
    let after = History::new(messages, session.history.meta.clone());
    let out = write(source, &session, &after, Mode::Patch)?.bytes(source)?;
    let again = Memory::new("again", out);
    assert_eq!(lines(after.messages()).replace(" cleared", ""), shown(&again).replace(" cleared", ""));
    Ok(String::from_utf8(again.bytes(0..again.len())?).unwrap())
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
    assert_eq!(changed(&Memory::new("n", native.clone()), CLEARED).unwrap(), native);
    // Another text for what OpenCode cleared: a false time, a new output.
    let other = changed(&Memory::new("n", native), "[gone]").unwrap();
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
    assert_eq!(changed(&source, "[gone]").unwrap_err().kind(), history::error::Kind::Refused);
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
    let again = Memory::new("again", bytes.clone());
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

    let cut = Memory::new("cut", &source.bytes(0..source.len() - 3).unwrap()[..]);
    let session = read(&cut).unwrap();
    assert_eq!(
        write(&cut, &session, &after(&[]), Mode::Append).unwrap_err().kind(),
        history::error::Kind::Refused
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
        Part::Output(Output {
            id: id.into(),
            name: None,
            text: "said".into(),
            media,
            failed,
            cleared: false,
            exit: None,
            refusal: None,
        })
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
        of_message: vec![[]; 7].into_iter().collect(),
        notes: vec![],
        past: vec![],
        history: history.clone(),
    };
    let source = Memory::new("x", "");
    let out = write(&source, &session, &history, Mode::New).unwrap();
    let again = Memory::new("again", out.bytes(&source).unwrap());
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
        history::error::Kind::Refused
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
                    let (name, text) = (Some("bash".into()), text.as_str().into());
                    Part::Output(Output {
                        id: id(index),
                        name,
                        text,
                        media: [].into(),
                        failed: *failed,
                        cleared: false,
                        exit: None,
                        refusal: None,
                    })
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

    fn written(history: &History) -> (Memory, Session) {
        let session = Session {
            format: crate::Format::CODEX,
            records: vec![],
            of_message: history.messages().iter().map(|_| []).collect(),
            notes: vec![],
            past: vec![],
            history: history.clone(),
        };
        let source = Memory::new("none", "");
        let out = write(&source, &session, history, Mode::New).unwrap();
        let source = Memory::new("new", out.bytes(&source).unwrap());
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
            // Then compacted, its tail perhaps shortened, in both ways.
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
            let head = vec![Message::text(Role::User, Kind::Marker, crate::opencode::MARKER), summary];
            let after = History::new([head, tail].concat(), session.history.meta.clone());
            for mode in [Mode::Append, Mode::New] {
                let out = write(&source, &session, &after, mode).unwrap();
                let again = read(&Memory::new("again", out.bytes(&source).unwrap())).unwrap();
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
            let source = Memory::new("broken", bytes.clone());
            if let Ok(session) = read(&source) {
                let out = write(&source, &session, &session.history, Mode::Patch).unwrap();
                prop_assert_eq!(out.bytes(&source).unwrap(), bytes);
                // A copy of what can be read can be read.
                let out = write(&source, &session, &session.history, Mode::New).unwrap();
                prop_assert!(read(&Memory::new("copy", out.bytes(&source).unwrap())).is_ok());
            }
        }
    }
}

/// The parts of one of OpenAI's reasoning items repeat its encrypted content; the request holds it once.
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

/// The exit code of a command stands beside its output.
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
