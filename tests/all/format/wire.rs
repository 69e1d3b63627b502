//! Plain messages of four APIs: examples, laws over generated histories, and the corpus.

mod laws;

use std::collections::BTreeMap;

use epitome::history::{
    Call, History, Kind, Media, MediaKind, Message, Meta, Opaque, Output, Part, Reasoning, Role, Text,
};
use epitome::sessions::{Format, MemorySource, Mode, Piece, Session, validate, wire};

use crate::corpus;

const APIS: [Format; 4] = [Format::ANTHROPIC, Format::OPENAI_CHAT, Format::OPENAI_RESPONSES, Format::GEMINI];

fn read(text: &str, format: Format) -> Session {
    wire::read(&MemorySource::new("messages", text), format).unwrap()
}

fn written(text: &str, session: &Session, after: &History, mode: Mode) -> (String, Vec<String>) {
    let source = MemorySource::new("messages", text);
    let written = wire::write(&source, session, after, mode).unwrap();
    (String::from_utf8(written.bytes(&source).unwrap()).unwrap(), written.warnings)
}

fn crossed(history: &History, source: Option<Format>, api: Format) -> (String, Vec<String>) {
    let (bytes, warnings) = wire::messages_of(history, source, api);
    (String::from_utf8(bytes).unwrap(), warnings)
}

/// The history with every output cleared.
fn cleared(history: &History) -> History {
    let mut messages = history.messages().to_vec();
    for part in messages.iter_mut().flat_map(|it| &mut it.parts) {
        if let Part::Output(output) = part {
            output.text = "[cleared]".into();
            output.media = [].into();
        }
    }
    History::new(messages, history.meta.clone())
}

/// Of duplicate keys, reading takes the last: so must patching.
#[test]
fn an_output_that_stands_twice_is_cleared_where_it_is_read() {
    let text = r#"[{"type":"function_call","call_id":"c1","name":"bash","arguments":"{}"},{"type":"function_call_output","call_id":"c1","output":"first","output":"last"}]"#;
    let session = read(text, Format::OPENAI_RESPONSES);
    let after = cleared(&session.history);
    let (new, _) = written(text, &session, &after, Mode::Patch);
    assert_eq!(new, text.replace("last", "[cleared]"));
    let again = read(&new, Format::OPENAI_RESPONSES).history;
    assert!(again.messages().iter().zip(after.messages()).all(|(one, other)| one.parts == other.parts));
}

// Examples.

const ANTHROPIC: &str = r#"{
  "model": "claude-x",
  "system": [{"type": "text", "text": "Be brief."}],
  "tools": [{"name": "bash"}],
  "messages": [
    {"role": "user", "content": "Run the tests"},
    {"role": "assistant", "content": [
      {"type": "thinking", "thinking": "First ls.", "signature": "c2ln"},
      {"type": "text", "text": "I look."},
      {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "ls", "n": 1.50}},
      {"type": "tool_use", "id": "toolu_2", "name": "bash", "input": {}}
    ]},
    {"role": "user", "content": [
      {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "a"}, {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}]},
      {"type": "tool_result", "tool_use_id": "toolu_2", "is_error": true, "cache_control": {"type": "ephemeral"}},
      {"type": "text", "text": "And hurry."}
    ]},
    {"role": "assistant", "content": "Done.", "usage": {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 2}}
  ],
  "max_tokens": 10
}
"#;

const CHAT: &str = r#"[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO"}}]},{"role":"assistant","content":null,"reasoning_content":"Look first.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"look","arguments":"{\"at\": 1}"}}]},{"role":"tool","tool_call_id":"call_1","name":"look","content":"a cat"},{"role":"assistant","content":"A cat."}]"#;

const RESPONSES: &str = r#"{"model":"gpt-x","instructions":"Be brief.","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Fix it"}]},{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Patch it."}],"encrypted_content":"gAAA"},{"type":"custom_tool_call","call_id":"call_1","name":"apply_patch","input":"*** Begin Patch"},{"type":"custom_tool_call_output","call_id":"call_1","output":"ok"},{"type":"web_search_call","id":"ws_1","status":"completed"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Fixed."}]}]}"#;

const GEMINI: &str = r#"{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[{"role":"user","parts":[{"text":"Compare"}]},{"role":"model","parts":[{"text":"Both.","thought":true,"thoughtSignature":"c2ln"},{"functionCall":{"name":"read","args":{"p":"a"}},"thoughtSignature":"c2ln"},{"functionCall":{"name":"read","args":{"p":"b"}}}]},{"role":"user","parts":[{"functionResponse":{"name":"read","response":{"output":"A"}}},{"functionResponse":{"name":"read","response":{"error":"no b"}}}]},{"role":"model","parts":[{"text":"Only a."}]}]}"#;

const EXAMPLES: [(&str, Format); 4] = [
    (ANTHROPIC, Format::ANTHROPIC),
    (CHAT, Format::OPENAI_CHAT),
    (RESPONSES, Format::OPENAI_RESPONSES),
    (GEMINI, Format::GEMINI),
];

/// A history, a line a part.
fn shown(history: &History) -> String {
    let text = |it: &Option<Text>| it.as_ref().map(|it| it.as_str().to_string());
    let meta = &history.meta;
    let mut out =
        format!("system {:?} tools {:?} model {:?}\n", text(&meta.system), text(&meta.tools), meta.model);
    for (number, message) in history.messages().iter().enumerate() {
        let Message { role, kind, usage, wire_len, .. } = message;
        out += &format!("{number} {role:?} {kind:?} {}", wire_len.unwrap());
        out += &usage.map(|it| format!(" {} in, {} out", it.sent(), it.output)).unwrap_or_default();
        out.push('\n');
        for part in &message.parts {
            out += &match part {
                Part::Text(it) => format!("  text {:?}\n", it.as_str()),
                Part::Reasoning(it) => {
                    format!("  reasoning {:?}, signed: {}\n", it.text.as_str(), it.signature.is_some())
                }
                Part::Call(it) => {
                    let Call { id, name, input, freeform, signature } = it;
                    let signed = signature.is_some();
                    format!("  call {id} {name} {} freeform: {freeform}, signed: {signed}\n", input.as_str())
                }
                Part::Output(it) => {
                    let media = it.media.len();
                    format!(
                        "  output {} {:?} media: {media}, failed: {}\n",
                        it.id,
                        it.text.as_str(),
                        it.failed
                    )
                }
                Part::Media(it) => format!("  media {:?} {} {}\n", it.kind, it.mime, it.data),
                Part::Opaque(it) => format!("  opaque {} {} {}\n", it.api, it.kind, it.raw.as_str()),
            };
        }
    }
    out
}

/// The array that `history` becomes for each API, an element a line, then the warnings.
fn shown_for_all(history: &History, source: Option<Format>) -> String {
    let mut out = String::new();
    for api in APIS {
        let (array, warnings) = crossed(history, source, api);
        assert_eq!(validate::check(api, array.as_bytes()), [], "{array}");
        let array: Vec<serde_json::Value> = serde_json::from_str(&array).unwrap();
        out += &format!("\n{}\n", api.name());
        out.extend(array.iter().map(|it| format!("{it}\n")));
        out.extend(warnings.iter().map(|it| format!("! {it}\n")));
    }
    out
}

#[test]
fn reads_and_crosses_over() {
    for (text, format) in EXAMPLES {
        let session = read(text, format);
        assert_eq!(session.notes, []);
        assert_eq!(validate::check(format, text.as_bytes()), []);
        let out = shown(&session.history) + &shown_for_all(&session.history, Some(format));
        insta::assert_snapshot!(format.name(), out);
    }
}

#[test]
fn repairs_what_no_api_takes() {
    let history = History::new(
        vec![
            Message::text(Role::Assistant, Kind::Said, "I begin."),
            output("gone", "left over"),
            Message::text(Role::User, Kind::Summary, "[Epitome] 9 → 1 messages"),
            Message::text(Role::User, Kind::Said, "Go on"),
            call("a/1", "mcp.do it"),
            call("a/1", "mcp.do it"),
            Message::text(Role::User, Kind::Said, "stop"),
            output("a/1", "late"),
            Message::text(Role::Assistant, Kind::Said, " "),
            Message::text(Role::System, Kind::Context, "Be kind."),
            call("open", "read"),
        ],
        Meta::default(),
    );
    insta::assert_snapshot!(shown_for_all(&history, None));
}

#[test]
fn a_late_result_does_not_end_the_turn_it_stands_in() {
    let raw = r#"{"type":"compaction","content":"x"}"#;
    let compaction = Opaque { api: "anthropic".into(), kind: "compaction".into(), raw: raw.into() };
    let history = History::new(
        vec![
            Message::text(Role::User, Kind::Said, "hi"),
            call("a", "bash"),
            Message::text(Role::User, Kind::Said, "wait"),
            Message::text(Role::Assistant, Kind::Said, "Yes."),
            output("a", "late"),
            Message::new(Role::Assistant, Kind::Said, vec![Part::Opaque(compaction)]),
        ],
        Meta::default(),
    );
    let (array, warnings) = crossed(&history, None, Format::ANTHROPIC);
    assert_eq!(validate::check(Format::ANTHROPIC, array.as_bytes()), [], "{array}");
    assert_eq!(warnings.len(), 1, "{warnings:?}");
}

fn call(id: &str, name: &str) -> Message {
    let call =
        Call { id: id.into(), name: name.into(), input: "{}".into(), freeform: false, signature: None };
    Message::new(Role::Assistant, Kind::Said, vec![Part::Call(call)])
}

fn output(id: &str, text: &str) -> Message {
    Message::new(Role::Tool, Kind::Said, vec![Part::Output(output_part(id, text))])
}

fn output_part(id: &str, text: &str) -> Output {
    Output::new(id, text)
}

#[test]
fn sniffs_by_shape() {
    for (text, format) in EXAMPLES {
        assert_eq!(wire::sniff(text), Some(format));
        // Cut off anywhere after the first telling element, it is still told.
        let end = text.char_indices().map(|it| it.0).nth(text.len() * 4 / 5).unwrap();
        assert_eq!(wire::sniff(&text[..end]), Some(format));
    }
    for (text, format) in [
        ("", None),
        ("x", None),
        ("{}", None),
        ("3", None),
        ("[3]", None),
        ("[]", Some(Format::OPENAI_CHAT)),
        (r#"{"contents":[]}"#, Some(Format::GEMINI)),
        (r#"[{"role":"user","content":"x"}]"#, Some(Format::OPENAI_CHAT)),
        (r#"[{"role":"system","content":"x"}]"#, Some(Format::OPENAI_CHAT)),
        (r#"{"system":"s","messages":[{"role":"user","content":"x"}]}"#, Some(Format::ANTHROPIC)),
        (r#"{"input":[{"role":"user","content":"x"}]}"#, Some(Format::OPENAI_RESPONSES)),
        (r#"[{"role":"user","content":[{"type":"text","text":"x"}]}]"#, Some(Format::ANTHROPIC)),
        (r#"[{"type":"function_call","call_id":"#, Some(Format::OPENAI_RESPONSES)),
        (r#"[{"role":"user","content":[{"type":"tool_result","content":"long"#, Some(Format::ANTHROPIC)),
        (r#"[{"role":"system","content":"a very long pro"#, Some(Format::OPENAI_CHAT)),
        ("\u{feff} [{\"parts\":[]}]", Some(Format::GEMINI)),
        // Others' documents: OpenCode, Gemini CLI, SWE-agent, Claude Code, pi, Codex.
        (r#"{"info":{"id":"ses_1"},"messages":[{"info":{},"parts":[]}]}"#, None),
        (r#"[{"info":{"role":"user"},"parts":[{"type":"text"}]}]"#, None),
        (r#"{"sessionId":"x","projectHash":"y","messages":[{"id":"1","type":"user","content":"x"}]}"#, None),
        (
            r#"{"environment":"e","trajectory":[{"action":"ls"}],"history":[{"role":"user","content":"x"}]}"#,
            None,
        ),
        (r#"{"type":"user","message":{"role":"user","content":"x"},"uuid":"1"}"#, None),
        (r#"{"type":"session","version":3,"id":"x","cwd":"/"}"#, None),
        (r#"{"timestamp":"x","type":"session_meta","payload":{"id":"x"}}"#, None),
        (r#"[{"name":"not a message"}]"#, None),
    ] {
        assert_eq!(wire::sniff(text), format, "{text}");
    }
}

#[test]
fn bad_input_is_an_error_or_a_note() {
    for text in ["", "  ", "x", "null", r#"{"a":1}"#, r#"{"messages":"x"}"#, r#"{"input":{}}"#, "\0["] {
        let error = wire::read(&MemorySource::new("m", text), Format::ANTHROPIC).unwrap_err();
        assert_eq!(error.kind(), epitome::history::error::ErrorKind::Input, "{text}");
        assert!(error.full().contains("expected a JSON array"), "{}", error.full());
    }
    let (deep, back) = ("[".repeat(100_000), "]".repeat(100_000));
    let bomb = format!(r#"[{{"role":"user","content":{deep}"#);
    let closed = format!(r#"[{{"role":"user","content":{deep}{back}}},{{"role":"user","content":"b"}}]"#);
    for (text, messages, notes) in [
        ("[]", 0, 0),
        ("[", 0, 1),
        (r#"{"messages":[{"role":"user","content":"a"},{"role":"us"#, 1, 1),
        (r#"[{"role":"user","content":"a"}"#, 1, 1),
        (r#"[{"role":"user","content":"a"} {"role":"user","content":"b"}]"#, 1, 1),
        (r#"[{"role":"user","content":"a"},{"role":"user" "b"},{"role":"user","content":"c"}]"#, 3, 1),
        (r#"[1,"x",null,[],{},{"role":"martian","content":"x"}]"#, 6, 6),
        (r#"[{"role":"user","content":7}]"#, 1, 1),
        (r#"[{"role":"user","content":"a"}] trailing"#, 1, 1),
        (r#"[{"role":"user","content":"cut \ud83d emoji"}]"#, 1, 0),
        ("[{\"role\":\"user\",\"content\":\"a\0b\"}]", 1, 1),
        ("\u{feff}[\r\n{\"role\":\"user\",\"content\":\"a\"}\r\n]\r\n", 1, 0),
        (&bomb, 0, 1),
        (&closed, 2, 1),
    ] {
        let session = read(text, Format::ANTHROPIC);
        let found = (session.history.messages().len(), session.notes.len());
        assert_eq!(found, (messages, notes), "{text:.100}: {:?}", session.notes);
        assert!(session.notes.iter().all(|it| it.what.starts_with("expected")), "{:?}", session.notes);
        for mode in [Mode::Patch, Mode::Append, Mode::New] {
            assert_eq!(written(text, &session, &session.history, mode).0, text);
        }
        // Whatever it was, it crosses over into something valid.
        for api in APIS {
            let (array, _) = crossed(&session.history, Some(Format::ANTHROPIC), api);
            assert_eq!(validate::check(api, array.as_bytes()), []);
        }
    }
}

#[test]
fn known_summaries_and_acknowledgements_are_told_apart() {
    let text = r#"[{"role":"user","content":"<state_snapshot>x</state_snapshot>"},{"role":"assistant","content":"Understood."},{"role":"user","content":"hi"},{"role":"assistant","content":"Understood."}]"#;
    let session = read(text, Format::OPENAI_CHAT);
    let kinds: Vec<Kind> = session.history.messages().iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [Kind::Summary, Kind::Ack, Kind::Said, Kind::Said]);
    assert_eq!(session.past.len(), 1);
    assert_eq!(session.past[0].summary, "<state_snapshot>x</state_snapshot>");
}

#[test]
fn patching_touches_the_output_and_nothing_else() {
    for (text, format) in EXAMPLES {
        let session = read(text, format);
        let after = cleared(&session.history);
        let (patched, warnings) = written(text, &session, &after, Mode::Patch);
        assert_eq!(warnings, Vec::<String>::new());
        let again = read(&patched, format);
        for (before, now) in after.messages().iter().zip(again.history.messages()) {
            assert_eq!(before.parts, now.parts, "{patched}");
        }
        insta::assert_snapshot!(format!("{}-patched", format.name()), patched);
    }
}

#[test]
fn splicing_keeps_the_documents_style() {
    for (text, expected) in [
        (
            "[\n  {\"role\": \"user\", \"content\": \"a\"},\n  {\"role\":\"user\",\"content\":\"b\"},\n  {\"role\":\"user\",\"content\":\"c\"}\n]\n",
            "[\n  {\"role\":\"user\",\"content\":\"[Epitome] short\"},\n  {\"role\":\"user\",\"content\":\"b\"},\n  {\"role\":\"user\",\"content\":\"c\"}\n]\n",
        ),
        (
            r#"{"messages":[{"role":"user","content":"a"},{"content":"b","role":"user","x":1.0} , {"role":"user","content":"c"}],"n":1}"#,
            r#"{"messages":[{"role":"user","content":"[Epitome] short"},{"content":"b","role":"user","x":1.0} , {"role":"user","content":"c"}],"n":1}"#,
        ),
        (
            r#"{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"user","content":"c"},{"ro"#,
            r#"{"messages":[{"role":"user","content":"[Epitome] short"},{"role":"user","content":"b"},{"role":"user","content":"c"}]}"#,
        ),
    ] {
        let session = read(text, Format::ANTHROPIC);
        let mut messages = vec![Message::text(Role::User, Kind::Summary, "[Epitome] short")];
        messages.extend_from_slice(&session.history.messages()[1..]);
        let after = History::new(messages, session.history.meta.clone());
        assert_eq!(written(text, &session, &after, Mode::Append).0, expected);
        assert_eq!(written(text, &session, &after, Mode::New).0, expected);
        let refused = wire::write(&MemorySource::new("m", text), &session, &after, Mode::Patch).unwrap_err();
        assert_eq!(refused.kind(), epitome::history::error::ErrorKind::Bug, "a summary is no patch");
        let (none, _) = written(text, &session, &History::default(), Mode::New);
        assert!(read(&none, Format::ANTHROPIC).history.messages().is_empty(), "{none}");
    }
}

#[test]
fn a_source_that_changed_is_not_written_to() {
    let text = r#"[{"role":"user","content":"a"},{"role":"user","content":"b"}]"#;
    let session = read(text, Format::ANTHROPIC);
    let other = MemorySource::new("m", text.replace("\"a\"", "\"aa\""));
    let error = wire::write(&other, &session, &History::default(), Mode::New).unwrap_err();
    assert_eq!(error.kind(), epitome::history::error::ErrorKind::Changed);
}

#[test]
fn bytes_that_cannot_be_read_are_kept() {
    let bytes = b"[{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"a\",\"content\":\"x\"},{\"type\":\"text\",\"text\":\"\\ud83d \xff\"}]}]";
    let source = MemorySource::new("m", &bytes[..]);
    let session = wire::read(&source, Format::ANTHROPIC).unwrap();
    let after = cleared(&session.history);
    let out = wire::write(&source, &session, &after, Mode::Patch).unwrap().bytes(&source).unwrap();
    let expected = String::from_utf8_lossy(bytes).replace("\"x\"", "\"[cleared]\"");
    assert_eq!(String::from_utf8_lossy(&out), expected);
    assert!(out.contains(&0xff));
}

#[test]
fn a_hundred_thousand_messages() {
    let mut text = String::from("[");
    for number in 0..25_000 {
        let comma = if number == 0 { "" } else { "," };
        text += &format!(
            r#"{comma}{{"role":"user","content":"n {number}"}},{{"role":"assistant","tool_calls":[{{"id":"call_0","type":"function","function":{{"name":"t","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"call_0","content":"x"}},{{"role":"assistant","content":"ok"}}"#
        );
    }
    text.push(']');
    let session = read(&text, Format::OPENAI_CHAT);
    assert_eq!(session.history.messages().len(), 100_000);
    let after = cleared(&session.history);
    let (patched, _) = written(&text, &session, &after, Mode::Patch);
    assert_eq!(patched.matches("[cleared]").count(), 25_000);
    for api in APIS {
        let (array, _) = crossed(&after, None, api);
        assert_eq!(validate::check(api, array.as_bytes()), []);
    }
}

// The corpus.

#[test]
fn corpus_sessions_of_agents_are_not_claimed() {
    for folder in ["claude-code", "codex", "gemini", "opencode", "pi", "sweagent-traj"] {
        for path in corpus::of_corpus("corpus_sessions_of_agents_are_not_claimed", &[folder]) {
            let bytes = std::fs::read(&path).unwrap();
            let first = epitome::history::json::mend(&bytes[..bytes.len().min(64 << 10)]);
            assert_eq!(wire::sniff(&first), None, "{}", path.display());
        }
    }
}

#[test]
fn corpus_files_are_read_written_and_crossed_over() {
    for path in corpus::of_corpus("corpus_files_are_read_written_and_crossed_over", &["openai-messages"]) {
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(wire::sniff(&text), Some(Format::OPENAI_CHAT), "{file}");
        let session = read(&text, Format::OPENAI_CHAT);
        assert_eq!(session.notes, [], "{file}");
        assert!(session.history.messages().len() >= 8, "{file}");
        let outputs = session.history.messages().iter().flat_map(Message::outputs).count();
        assert_eq!(laws::calls(&session.history), outputs, "{file}");
        for mode in [Mode::Patch, Mode::Append, Mode::New] {
            assert_eq!(written(&text, &session, &session.history, mode).0, text, "{file}");
        }
        // SWE-agent's own file names calls by `tool_call_ids`, which is not the API's field; the others are as sent.
        let violations = validate::check(Format::OPENAI_CHAT, text.as_bytes());
        assert_eq!(violations.is_empty(), !text.contains("\"tool_call_ids\""), "{file}: {violations:?}");
        let after = cleared(&session.history);
        let (patched, warnings) = written(&text, &session, &after, Mode::Patch);
        assert_eq!(warnings, Vec::<String>::new(), "{file}");
        assert_eq!(patched.matches("\"[cleared]\"").count(), outputs, "{file}");
        for api in APIS {
            let (array, warnings) = crossed(&session.history, Some(Format::OPENAI_CHAT), api);
            assert_eq!(validate::check(api, array.as_bytes()), [], "{file}");
            // The API does not mind an id that comes back in a later turn; crossing over makes them unique.
            assert!(warnings.iter().all(|it| it.contains("call ids rewritten")), "{file}: {warnings:?}");
            assert_eq!(laws::calls(&read(&array, api).history), outputs, "{file}");
        }
    }
}
