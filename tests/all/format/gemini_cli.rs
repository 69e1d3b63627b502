//! Gemini CLI sessions: what a resume sends, and that what is written reads back.

use epitome::history::{History, Kind, Message, Part, Role};
use epitome::sessions::agents::gemini_cli;
use epitome::sessions::{self, Format, MemorySource, Mode, Session, Source};
use epitome::tokens::{TokenCounter, Tokenizer};

use super::{after_laws, compacted, sessions, shape, stub_largest};

const META: &str = r#"{"sessionId":"s-1","projectHash":"h","startTime":"2026-01-02T03:04:05.000Z","lastUpdated":"2026-01-02T03:04:05.000Z","kind":"main"}"#;
const CONTEXT: &str = r#"{"id":"ctx","timestamp":"2026-01-02T03:04:05.000Z","type":"user","content":[{"text":"<session_context>\n- **Workspace Directories:**\n  - /p/q\n</session_context>"}]}"#;

fn user(id: &str, text: &str) -> String {
    let text = serde_json::to_string(text).unwrap();
    format!(
        r#"{{"id":"{id}","timestamp":"2026-01-02T03:04:06.000Z","type":"user","content":[{{"text":{text}}}]}}"#
    )
}

fn model(id: &str, text: &str, more: &str) -> String {
    format!(
        r#"{{"id":"{id}","timestamp":"2026-01-02T03:04:07.000Z","type":"gemini","content":"{text}","thoughts":[]{more}}}"#
    )
}

fn response(id: &str, text: &str) -> String {
    format!(r#"{{"functionResponse":{{"id":"{id}","name":"t","response":{{"output":"{text}"}}}}}}"#)
}

fn tool(id: &str, results: &str) -> String {
    format!(r#"{{"id":"{id}","name":"t","args":{{"a": 1}},"result":[{results}],"status":"success"}}"#)
}

fn set(messages: &[String]) -> String {
    format!(r#"{{"$set":{{"messages":[{}],"lastUpdated":"2026-01-02T03:05:00.000Z"}}}}"#, messages.join(","))
}

fn of(lines: &[String]) -> MemorySource {
    MemorySource::new("session.jsonl", format!("{META}\n{}\n", lines.join("\n")))
}

fn bytes(source: &MemorySource) -> String {
    String::from_utf8(source.bytes(0..source.len()).unwrap()).unwrap()
}

fn texts(session: &Session) -> Vec<String> {
    session.history.messages().iter().map(shape).collect()
}

fn read(source: &MemorySource) -> Session {
    let session = gemini_cli::read(source).unwrap();
    after_laws(source, gemini_cli::read, gemini_cli::write, &session);
    session
}

#[test]
fn sniffs_only_sessions() {
    for (text, expected) in [
        (META, true),
        (
            "{\n  \"sessionId\": \"x\",\n  \"projectHash\": \"y\",\n  \"messages\": [\n    {\n      \"id\"",
            true,
        ),
        ("junk\n{\"sessionId\":\"x\",\"projectHash\":\"y\",\"kind\":\"main\"}\n", true),
        (r#"{"type":"user","sessionId":"x","uuid":"u","projectHash":"y"}"#, false),
        (r#"{"messages":[{"sessionId":"","projectHash":""}]}"#, false),
        ("", false),
    ] {
        assert_eq!(gemini_cli::sniff(text), expected, "{text}");
    }
}

#[test]
fn sends_each_response_once() {
    // As after a resume: each call's result holds all responses, and two records repeat them.
    let both = format!("{},{}", response("c1", "one"), response("c2", "two"));
    let calls = format!(r#","toolCalls":[{},{}]"#, tool("c1", &both), tool("c2", &both));
    let repeat = |id: &str| format!(r#"{{"id":"{id}","type":"user","content":[{both}]}}"#);
    let source = of(&[
        CONTEXT.into(),
        user("u1", "go"),
        model("g1", "looking", &calls),
        repeat("g1_response"),
        repeat("r1"),
        model(
            "g2",
            "done",
            r#","tokens":{"input":100,"cached":40,"output":5,"thoughts":3,"tool":1,"total":109},"model":"m-1""#,
        ),
    ]);
    let session = read(&source);
    assert_eq!(
        texts(&session),
        [
            "User Said go",
            r#"Assistant Said looking | call c1 t {"a":1} | call c2 t {"a":1}"#,
            "User Said output c1 one | output c2 two",
            "Assistant Said done",
        ]
    );
    assert!(session.origins.iter().eq([vec![2], vec![3], vec![3, 4, 5], vec![6]]));
    let usage = session.history.messages()[3].usage.unwrap();
    assert_eq!((usage.input, usage.cache_read, usage.output, usage.reasoning), (61, 40, 8, 3));
    let meta = &session.history.meta;
    assert_eq!(
        (meta.session.as_deref(), meta.model.as_deref(), meta.cwd.as_deref()),
        (Some("s-1"), Some("m-1"), Some("/p/q"))
    );
    // `{"role":"user","parts":[{"text":"go"}]}`
    assert_eq!(session.history.messages()[0].wire_len, Some(39));

    let mut messages = session.history.messages().to_vec();
    if let Part::Output(output) = &mut messages[2].parts[1] {
        output.text = "gone".into();
    }
    let after = History::new(messages, meta.clone());
    let written = gemini_cli::write(&source, &session, &after, Mode::Patch).unwrap();
    let patched = String::from_utf8(written.bytes(&source).unwrap()).unwrap();
    assert_eq!(patched, bytes(&source).replace(r#""output":"two""#, r#""output":"gone""#));
}

#[test]
fn leaves_out_what_is_not_sent() {
    let source = of(&[
        user("u0", "/help"),
        user("u1", " ?"),
        user("u2", "<hook_context>x</hook_context>\n\nlost"),
        user("u3", "  "),
        r#"{"id":"i","type":"info","content":"x"}"#.into(),
        user("u4", "real"),
        model("g0", "", ""),
        model("g1", "", r#","thoughts":[{"subject":"S","description":"D"}]"#),
        r#"{"id":"g2","type":"gemini","content":[{"text":"T","thought":true},{"text":"said"},{"functionCall":{"name":"t","args":{}},"thoughtSignature":"sig"}]}"#.into(),
        r#"{"id":"r2","type":"user","content":[{"functionResponse":{"name":"t","response":{"error":"no"}}},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}"#.into(),
        r#"{"id":"x","type":"later","content":"x"}"#.into(),
        user("u5", "Please continue."),
    ]);
    let session = read(&source);
    assert_eq!(
        texts(&session),
        [
            "User Said real",
            "Assistant Said said | call t:1 t {}",
            "User Context output t:1 failed no | Image image/png AAAA",
            "User Continue Please continue.",
        ]
    );
    let call = session.history.messages()[1].calls().next().unwrap();
    assert_eq!(call.signature.as_ref().map(|it| it.as_str()), Some("sig"));
    assert_eq!(session.notes.iter().map(|it| it.line).collect::<Vec<_>>(), [12]);
}

#[test]
fn replays_the_journal() {
    let source = of(&[
        user("a", "one"),
        model("b", "two", ""),
        user("a", "one again"),
        user("c", "three"),
        r#"{"$rewindTo":"c"}"#.into(),
        user("d", "four"),
        r#"{"$set":{"summary":"title"}}"#.into(),
    ]);
    assert_eq!(texts(&read(&source)), ["User Said one again", "Assistant Said two", "User Said four"]);
    let source = of(&[user("a", "one"), r#"{"$rewindTo":"nobody"}"#.into(), user("b", "two")]);
    assert_eq!(texts(&read(&source)), ["User Said two"]);
}

#[test]
fn knows_a_compression_and_drops_stale_usage() {
    let tokens = r#","tokens":{"input":60000,"output":10,"cached":0,"thoughts":0,"tool":0,"total":60010}"#;
    let snapshot = "<state_snapshot>\nx\n</state_snapshot>";
    let ctx: String = CONTEXT.into();
    let old = [
        ctx.clone(),
        user("a", "one"),
        model("b", "two", tokens),
        user("c", "three"),
        model("d", "four", tokens),
    ];
    let new = [
        ctx.clone(),
        user("s", snapshot),
        model("k", "Got it. Thanks for the additional context!", ""),
        user("c", "three"),
        model("d", "four", tokens),
    ];
    let mut lines = old.to_vec();
    // A resume: first the context alone, then all again. Nothing is stale.
    let mut again = old;
    // The client writes its records down again without what was reported.
    again[4] = model("d", "four", "");
    lines.extend([set(std::slice::from_ref(&ctx)), set(&again)]);
    let session = read(&of(&lines));
    assert!(session.history.messages()[3].usage.is_some() && session.past.is_empty());
    // A compression, then a resume, then a new turn.
    lines.push(set(&new));
    lines.extend([set(&[ctx]), set(&new), user("e", "five"), model("f", "six", tokens)]);
    let session = read(&of(&lines));
    assert_eq!(
        texts(&session),
        [
            "User Summary <state_snapshot>\nx\n</state_snapshot>",
            "Assistant Ack Got it. Thanks for the additional context!",
            "User Said three",
            "Assistant Said four",
            "User Said five",
            "Assistant Said six",
        ]
    );
    let usages: Vec<bool> = session.history.messages().iter().map(|it| it.usage.is_some()).collect();
    assert_eq!(usages, [false, false, false, false, false, true]);
    assert_eq!(session.past.len(), 1);
    assert_eq!((session.past[0].message, session.past[0].tokens_before), (Some(0), Some(60010)));
    assert_eq!(session.past[0].summary, snapshot);
}

#[test]
fn reads_and_rewrites_the_older_document() {
    let text = format!(
        "{{\n  \"sessionId\": \"s\",\n  \"projectHash\": \"h\",\n  \"lastUpdated\": \"2026-01-02T03:04:05.000Z\",\n  \"messages\": [\n    {},\n    {}\n  ],\n  \"x\": 1.0\n}}\n",
        user("a", "one"),
        model("b", "two", &format!(r#","toolCalls":[{}]"#, tool("c", &response("c", "ok"))))
    );
    for text in [text.clone(), text.replace('\n', "")] {
        let source = MemorySource::new("s.json", text);
        let session = read(&source);
        assert_eq!(
            texts(&session),
            ["User Said one", r#"Assistant Said two | call c t {"a":1}"#, "User Said output c ok"]
        );
        assert_eq!(session.records.len(), 2);
        stub_largest(&source, gemini_cli::read, gemini_cli::write, &session);
        let written = gemini_cli::write(&source, &session, &session.history, Mode::Append).unwrap();
        let text = String::from_utf8(written.bytes(&source).unwrap()).unwrap();
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
        assert!(text.contains("\"x\": 1.0") && text.contains("03:04:07.001Z"), "{text}");
    }
}

#[test]
fn writes_the_forms_the_client_reads() {
    let calls = format!(
        r#","tokens":{{"input":9000,"output":1}},"toolCalls":[{}]"#,
        tool("c1", &response("c1", "long"))
    );
    let source = of(&[
        CONTEXT.into(),
        user("u1", "go"),
        model("g1", "looking", &calls),
        format!(r#"{{"id":"r1","type":"user","content":[{}]}}"#, response("c1", "long")),
        user("u2", "and then?"),
    ]);
    let session = gemini_cli::read(&source).unwrap();
    let mut kept = session.history.messages()[1..].to_vec();
    if let Part::Output(output) = &mut kept[1].parts[0] {
        output.text = "cut".into();
    }
    let mut messages = vec![
        Message::text(Role::User, Kind::Summary, "what was"),
        Message::text(Role::Assistant, Kind::Ack, "Understood."),
    ];
    messages.extend(kept);
    let after = History::new(messages, session.history.meta.clone());
    super::read_back(&source, gemini_cli::read, gemini_cli::write, &session, &after);
    let written = gemini_cli::write(&source, &session, &after, Mode::Append).unwrap();
    let text = String::from_utf8(written.bytes(&source).unwrap()).unwrap();
    insta::assert_snapshot!("gemini_append", text.strip_prefix(&bytes(&source)).unwrap());
    let written = gemini_cli::write(&source, &session, &after, Mode::New).unwrap();
    insta::assert_snapshot!(
        "gemini_new",
        format!("{:?}\n{}", written.file_name, String::from_utf8(written.bytes(&source).unwrap()).unwrap())
    );
}

#[test]
fn a_message_that_would_not_be_sent_is_made_one_that_is() {
    let source = of(&[user("u1", "go")]);
    let session = gemini_cli::read(&source).unwrap();
    let after = History::new(
        vec![Message::text(Role::User, Kind::Said, "/p was read")],
        session.history.meta.clone(),
    );
    let written = gemini_cli::write(&source, &session, &after, Mode::Append).unwrap();
    assert_eq!(written.warnings.len(), 1);
    let back = gemini_cli::read(&MemorySource::new("m", written.bytes(&source).unwrap())).unwrap();
    assert_eq!(texts(&back), ["User Said Note: /p was read"]);
}

#[test]
fn bad_lines_become_notes() {
    let mut text = format!("\u{feff}{META}\r\nno json\0\n{{\"x\":1}}\n[1]\n").into_bytes();
    text.extend(format!("{}\r\n", user("a", "Z").replace('Z', "\\ud83d")).bytes());
    text.extend(br#"{"$set":{"messages":[{"id":"b","type":"us"#);
    let source = MemorySource::new("m", text);
    let session = read(&source);
    assert_eq!(texts(&session), ["User Said \u{fffd}"]);
    assert_eq!(session.notes.iter().map(|it| it.line).collect::<Vec<_>>(), [2, 3, 4, 6]);
    for foreign in ["", "{}", "[{\"role\":\"user\"}]", "{\"type\":\"user\"}\n"] {
        assert_eq!(
            gemini_cli::read(&MemorySource::new("m", foreign)).unwrap_err().exit_code(),
            2,
            "{foreign}"
        );
    }
}

#[test]
fn every_real_session_reads_and_writes_back() {
    for (name, source) in sessions("every_real_session_reads_and_writes_back (gemini)", "gemini", &["gemini"])
    {
        let head: String = bytes(&source).chars().take(60_000).collect();
        assert!(gemini_cli::sniff(&head), "{name}");
        let session = read(&source);
        stub_largest(&source, gemini_cli::read, gemini_cli::write, &session);
        compacted(&source, gemini_cli::read, gemini_cli::write, &session);
        eprintln!(
            "{name}: {} records, {} live messages, {} outputs, {} past, {} notes, reported {:?}",
            session.records.len(),
            session.history.messages().len(),
            session.history.messages().iter().flat_map(Message::outputs).count(),
            session.past.len(),
            session.notes.len(),
            session.history.messages().iter().rev().find_map(|it| it.usage).map(|it| it.context()),
        );
    }
}

mod laws {
    use super::*;
    use proptest::prelude::*;

    /// Any line of a journal, sensible or not.
    fn any_line() -> impl Strategy<Value = String> {
        let id = 0..6u8;
        let call = 0..4u8;
        prop_oneof![
            3 => (id.clone(), "[a-z /?é\"]{0,9}").prop_map(|(id, text)| user(&format!("m{id}"), &text)),
            2 => (id.clone(), "[a-z]{0,9}").prop_map(|(id, text)| model(&format!("m{id}"), &text, r#","tokens":{"input":9,"output":1,"total":10}"#)),
            3 => (id.clone(), call.clone(), "[a-z]{0,9}").prop_map(|(id, call, text)| {
                let call = format!("c{call}");
                model(&format!("m{id}"), "x", &format!(r#","toolCalls":[{},{}]"#, tool(&call, &response(&call, &text)), tool("z", "")))
            }),
            2 => (id.clone(), call, "[a-z]{0,9}").prop_map(|(id, call, text)| {
                let response = response(&format!("c{call}"), &text);
                format!(r#"{{"id":"m{id}","type":"user","content":[{response},{response}]}}"#)
            }),
            1 => (id.clone(), id.clone()).prop_map(|(a, b)| set(&[CONTEXT.into(), user(&format!("m{a}"), "s"), model(&format!("m{b}"), "t", "")])),
            1 => id.prop_map(|id| format!(r#"{{"$rewindTo":"m{id}"}}"#)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_is_read_back(lines in prop::collection::vec(any_line(), 0..16)) {
            let source = of(&lines);
            let session = read(&source);
            stub_largest(&source, gemini_cli::read, gemini_cli::write, &session);
        }

        #[test]
        fn damage_never_panics(
            lines in prop::collection::vec(any_line(), 1..9),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            keep in any::<prop::sample::Index>(),
        ) {
            let mut text = bytes(&of(&lines)).into_bytes();
            let at = at.index(text.len());
            text[at] = byte;
            text.truncate(keep.index(text.len()).max(text.len() / 2));
            let source = MemorySource::new("m", text);
            if let Ok(session) = gemini_cli::read(&source) {
                after_laws(&source, gemini_cli::read, gemini_cli::write, &session);
            }
        }
    }
}

/// What is written of a session whose hash is no text is read without being told its format.
#[test]
fn a_hash_that_is_a_number_is_not_carried_on() {
    for hash in ["7", "null", "[]", "{\"a\":\"b\"}", "1e400"] {
        let changed = format!(r#"{{"$set":{{"projectHash":{hash}}}}}"#);
        let lines = [META, &changed, &user("u1", "go"), &model("g1", "gone", "")].join("\n") + "\n";
        let whole = format!(
            "{{\"sessionId\":\"s\",\"projectHash\":{hash},\"messages\":[{},{}]}}",
            user("u1", "go"),
            model("g1", "gone", "")
        );
        for text in [lines, whole] {
            let source = MemorySource::new("session", text.as_str());
            let session = gemini_cli::read(&source).unwrap();
            assert_eq!(texts(&session), ["User Said go", "Assistant Said gone"], "{text}");
            let written = gemini_cli::write(&source, &session, &session.history, Mode::New).unwrap();
            let written = MemorySource::new("written", written.bytes(&source).unwrap());
            let again = sessions::read(&written, None).unwrap();
            assert_eq!(again.format, Format::GEMINI_CLI, "{text}");
            assert_eq!(texts(&again), texts(&session), "{text}");
        }
    }
}

/// A response is sent once for an id; what stands beside the second one is sent too, and written once.
#[test]
fn two_calls_of_one_id_have_their_results_once() {
    let odd = format!(r#"{},{{"odd":1}}"#, response("c", "two"));
    let tools = format!(r#","toolCalls":[{},{}]"#, tool("c", &response("c", "one")), tool("c", &odd));
    let source = of(&[user("u1", "go"), model("g1", "", &tools), user("u2", "on")]);
    let session = read(&source);
    let written = gemini_cli::write(&source, &session, &session.history, Mode::New).unwrap();
    let again = gemini_cli::read(&MemorySource::new("again", written.bytes(&source).unwrap())).unwrap();
    let parts = |it: &Session| it.history.messages().iter().map(|it| it.parts.clone()).collect::<Vec<_>>();
    let outputs = session.history.messages().iter().flat_map(Message::outputs);
    assert_eq!(outputs.map(|it| it.text.as_str()).collect::<Vec<_>>(), ["one"]);
    assert_eq!(parts(&again), parts(&session));
}

/// Sums of such figures do not overflow, and no context size is made of them.
#[test]
fn usage_that_no_model_has_is_not_believed() {
    let huge = u64::MAX;
    let figures = [
        format!(r#"{{"input":{huge},"cached":{huge},"output":{huge},"thoughts":{huge},"tool":{huge},"total":{huge}}}"#),
        format!(r#"{{"input":{huge},"cached":0,"output":1,"thoughts":0,"tool":0,"total":0}}"#),
        r#"{"input":99999999999999999999999,"cached":-5,"output":1e300,"thoughts":"x","tool":[],"total":null}"#
            .to_owned(),
    ];
    let plain = of(&[user("u1", "go"), model("g1", "done", r#","model":"m-1""#)]);
    let unreported = TokenCounter::new(&read(&plain).history, Tokenizer::Auto, None);
    for tokens in figures {
        let source =
            of(&[user("u1", "go"), model("g1", "done", &format!(r#","tokens":{tokens},"model":"m-1""#))]);
        let session = read(&source);
        let counter = TokenCounter::new(&session.history, Tokenizer::Auto, None);
        assert_eq!(counter.reported(), None, "{tokens}");
        assert_eq!(
            counter.filled(&counter.messages(session.history.messages())),
            unreported.filled(&unreported.messages(read(&plain).history.messages())),
            "{tokens}"
        );
    }
}
