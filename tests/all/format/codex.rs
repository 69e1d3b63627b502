//! Codex rollouts: what a resume rebuilds, and that what is written reads back.

mod laws;

use epitome::history::{History, Kind, Message, Output, Part, Role};
use epitome::sessions::agents::codex;
use epitome::sessions::{Format, MemorySource, Mode, Session, wire};

use super::{after_laws, compacted, sessions, shape, stub_largest};

/// Lines of a rollout: `tag payload`, numbered like a paginated one if `ordinals`.
fn rollout(ordinals: bool, lines: &[(&str, &str)]) -> MemorySource {
    let mut text = String::new();
    for (number, (tag, payload)) in lines.iter().enumerate() {
        let ordinal = if ordinals { format!("\"ordinal\":{number},") } else { String::new() };
        text += &format!(
            "{{\"timestamp\":\"2026-01-02T03:04:{number:02}.000Z\",{ordinal}\"type\":\"{tag}\",\"payload\":{payload}}}\n"
        );
    }
    MemorySource::new("rollout.jsonl", text)
}

const META: (&str, &str) = (
    "session_meta",
    r#"{"id":"t-1","session_id":"t-1","timestamp":"2026-01-02T03:04:00.000Z","cwd":"/p","originator":"codex_exec","cli_version":"0.169.0","base_instructions":{"text":"Be good."},"history_mode":"paginated","context_window":{"window_id":"w-1"}}"#,
);
const CONTEXT: (&str, &str) = ("turn_context", r#"{"turn_id":"u-1","cwd":"/p/q","model":"gpt-x"}"#);
const WORLD: (&str, &str) = ("world_state", r#"{"full":true,"state":{"a":1}}"#);
const DEVELOPER: (&str, &str) = (
    "response_item",
    r#"{"type":"message","id":"m0","role":"developer","content":[{"type":"input_text","text":"<permissions instructions>x</permissions instructions>"}]}"#,
);
const ENVIRONMENT: (&str, &str) = (
    "response_item",
    r#"{"type":"message","id":"m1","role":"user","content":[{"type":"input_text","text":"<environment_context>\n<cwd>/p</cwd>\n</environment_context>"}],"internal_chat_message_metadata_passthrough":{"turn_id":"u-1"}}"#,
);

fn said(role: &str, text: &str) -> (String, String) {
    let tag = if role == "assistant" { "output_text" } else { "input_text" };
    let text = serde_json::to_string(text).unwrap();
    (
        "response_item".into(),
        format!(r#"{{"type":"message","role":"{role}","content":[{{"type":"{tag}","text":{text}}}]}}"#),
    )
}

fn of(lines: &[(String, String)]) -> MemorySource {
    let lines: Vec<(&str, &str)> = lines.iter().map(|(tag, payload)| (&**tag, &**payload)).collect();
    rollout(false, &lines)
}

fn texts(session: &Session) -> Vec<String> {
    session.history.messages().iter().map(shape).collect()
}

fn line(tag: &str, payload: &str) -> (String, String) {
    (tag.into(), payload.into())
}

fn started(turn: &str) -> (String, String) {
    line("event_msg", &format!(r#"{{"type":"task_started","turn_id":"{turn}","model_context_window":1000}}"#))
}

fn ended(turn: &str) -> (String, String) {
    line("event_msg", &format!(r#"{{"type":"task_complete","turn_id":"{turn}"}}"#))
}

fn rolled_back(turns: u64) -> (String, String) {
    line("event_msg", &format!(r#"{{"type":"thread_rolled_back","num_turns":{turns}}}"#))
}

fn usage(input: u64, cached: u64, output: u64, so_far: u64) -> (String, String) {
    line(
        "event_msg",
        &format!(
            r#"{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{so_far},"output_tokens":{so_far}}},"last_token_usage":{{"input_tokens":{input},"cached_input_tokens":{cached},"output_tokens":{output},"total_tokens":{}}},"model_context_window":2000}}}}"#,
            input + output
        ),
    )
}

#[test]
fn sniffs_only_rollouts() {
    for (text, expected) in [
        (r#"{"timestamp":"x","type":"session_meta","payload":{}}"#, true),
        ("junk\n{\"type\":\"response_item\",\"payload\":{\"type\":\"message\"}}\n", true),
        (
            "\u{feff}{\"timestamp\": \"x\", \"type\": \"session_meta\", \"payload\": {\"id\": \"cut off he",
            true,
        ),
        (r#"{"type":"user","message":{"role":"user"},"payload":1}"#, false),
        (r#"{"model":"m","input":"{\"type\":\"session_meta\",\"payload\":{}}"}"#, false),
        (r#"{"type":"session","version":3}"#, false),
        ("", false),
    ] {
        assert_eq!(codex::sniff(text), expected, "{text}");
    }
}

#[test]
fn reads_every_kind_of_item() {
    let source = rollout(
        true,
        &[
            META,
            CONTEXT,
            DEVELOPER,
            ENVIRONMENT,
            ("event_msg", r#"{"type":"user_message","message":"never counted"}"#),
            (
                "response_item",
                r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}"#,
            ),
            (
                "response_item",
                r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"content":null,"encrypted_content":"E"}"#,
            ),
            (
                "response_item",
                r#"{"type":"function_call","name":"echo","namespace":"mcp__srv","arguments":"{ \"a\": 1 }","call_id":"c1"}"#,
            ),
            (
                "response_item",
                r#"{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin","call_id":"c2"}"#,
            ),
            (
                "response_item",
                r#"{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]}"#,
            ),
            (
                "response_item",
                r#"{"type":"custom_tool_call_output","call_id":"c2","output":"{\"output\":\"no\",\"metadata\":{\"exit_code\":1}}"}"#,
            ),
            (
                "response_item",
                r#"{"type":"local_shell_call","call_id":"c3","status":"completed","action":{"type":"exec","command":["ls"]}}"#,
            ),
            (
                "response_item",
                r#"{"type":"function_call_output","call_id":"c3","output":{"content":"old form","success":false}}"#,
            ),
            (
                "response_item",
                r#"{"type":"web_search_call","status":"completed","action":{"type":"search"}}"#,
            ),
            ("response_item", r#"{"type":"ghost_snapshot","ghost_commit":{}}"#),
            (
                "response_item",
                r#"{"type":"message","role":"system","content":[{"type":"input_text","text":"dropped"}]}"#,
            ),
            (
                "response_item",
                r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}"#,
            ),
        ],
    );
    let session = codex::read(&source).unwrap();
    assert_eq!(
        texts(&session),
        [
            "System Context <permissions instructions>x</permissions instructions>",
            "User Context <environment_context>\n<cwd>/p</cwd>\n</environment_context>",
            "User Said see | Image image/png AAAA",
            "Assistant Said think hm E",
            r#"Assistant Said call c1 mcp__srv__echo {"a":1}"#,
            "Assistant Said call c2 apply_patch *** Begin",
            "Tool Said output c1 a\nb",
            r#"Tool Said output c2 failed {"output":"no","metadata":{"exit_code":1}}"#,
            r#"Assistant Said call c3 local_shell {"type":"exec","command":["ls"]}"#,
            "Tool Said output c3 failed old form",
            r#"Assistant Said opaque web_search_call {"type":"web_search_call","status":"completed","action":{"type":"search"}}"#,
            "Assistant Said done",
        ]
    );
    let meta = &session.history.meta;
    assert_eq!(meta.session.as_deref(), Some("t-1"));
    assert_eq!(meta.model.as_deref(), Some("gpt-x"));
    assert_eq!(meta.cwd.as_deref(), Some("/p/q"));
    assert_eq!(meta.system.as_ref().map(|it| it.as_str()), Some("Be good."));
    assert!(session.notes.is_empty(), "{:?}", session.notes);
    assert_eq!(session.origins[2], [5]);
}

#[test]
fn pairs_calls_and_outputs_as_codex_sends_them() {
    let call = |id: &str| {
        line(
            "response_item",
            &format!(r#"{{"type":"function_call","name":"t","arguments":"{{}}","call_id":"{id}"}}"#),
        )
    };
    let output = |id: &str| {
        line("response_item", &format!(r#"{{"type":"function_call_output","call_id":"{id}","output":"ok"}}"#))
    };
    let source = of(&[
        output("nobody"),
        said("user", "go"),
        output("early"),
        call("lost"),
        said("user", "again"),
        call("early"),
        call("a"),
        call("b"),
        output("b"),
    ]);
    let session = codex::read(&source).unwrap();
    assert_eq!(
        texts(&session),
        [
            "User Said go",
            "Assistant Said call lost t {}",
            "Tool Said output lost failed aborted",
            "User Said again",
            "Assistant Said call early t {}",
            "Tool Said output early ok",
            "Assistant Said call a t {}",
            "Assistant Said call b t {}",
            "Tool Said output b ok",
        ]
    );
}

#[test]
fn rebuilds_after_compactions() {
    let history = r#"[{"type":"message","role":"developer","content":[{"type":"input_text","text":"D"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"kept"}]},{"type":"message","role":"user","content":[{"type":"input_text","text":"S2"}]}]"#;
    let source = of(&[
        said("user", "one"),
        said("assistant", "two"),
        line("compacted", r#"{"message":"S1"}"#),
        said("user", "three"),
        line("compacted", &format!(r#"{{"message":"S2","replacement_history":{history}}}"#)),
        said("assistant", "four"),
    ]);
    let session = codex::read(&source).unwrap();
    assert_eq!(
        texts(&session),
        ["System Context D", "User Said kept", "User Summary S2", "Assistant Said four"]
    );
    assert_eq!(session.past.iter().map(|it| it.message).collect::<Vec<_>>(), [None, Some(2)]);

    // Without a history of its own: user messages within the budget, then the message as it stands.
    let source = of(&[
        line("response_item", ENVIRONMENT.1),
        said("user", &"x".repeat(100_000)),
        said("user", "middle"),
        said("user", "Another language model started to solve this problem and …\nold"),
        said("assistant", "gone"),
        said("user", &"y".repeat(70_000)),
        line("compacted", r#"{"message":"S"}"#),
        said("user", "new"),
    ]);
    let session = codex::read(&source).unwrap();
    let texts = texts(&session);
    assert_eq!(texts.len(), 5);
    assert!(texts[0].contains("xx…") && texts[0].contains(" tokens truncated…x"), "{}", &texts[0][..80]);
    assert_eq!(texts[1], "User Said middle");
    assert!(texts[2].starts_with("User Said yyy"));
    assert_eq!(texts[3..], ["User Summary S", "User Said new"]);
    assert_eq!(session.past[0].message, Some(3));
}

#[test]
fn a_sealed_compaction_knows_what_it_replaced() {
    let sealed = |id: &str| format!(r#"{{"type":"compaction","id":"{id}","encrypted_content":"E"}}"#);
    let compacted = |user: &str, id: &str| {
        let kept = said("user", user).1;
        line("compacted", &format!(r#"{{"message":"","replacement_history":[{kept},{}]}}"#, sealed(id)))
    };
    let turn = |id: &str, text: &str| {
        vec![started(id), said("user", text), said("assistant", &format!("re {text}")), ended(id)]
    };
    let mut lines = turn("1", "one");
    lines.push(compacted("one", "c1"));
    lines.extend(turn("2", "two"));
    lines.extend(turn("3", "taken back"));
    lines.push(rolled_back(1));
    lines.extend([started("4"), compacted("two", "c2"), said("user", "three"), ended("4")]);
    let replaced = |session: &Session| -> Vec<Option<Vec<String>>> {
        let of = |it: &Message| Some(it.replaced.as_ref()?.iter().map(Message::plain).collect());
        session.history.messages().iter().map(of).collect()
    };
    let source = of(&lines);
    let session = codex::read(&source).unwrap();
    let before: Vec<String> = ["one", "re one", "two", "re two"].map(Into::into).into();
    assert_eq!(replaced(&session), [None, Some(before.clone()), None]);
    let measured = codex::scan(&source, &|_, _| None).unwrap();
    assert_eq!(replaced(&measured), [None, None, None]);

    // Put back behind another compaction and later messages, it stands for no more than before.
    let append = |source: &MemorySource, after: &History| {
        let session = codex::read(source).unwrap();
        let written = codex::write(source, &session, after, Mode::Append).unwrap();
        MemorySource::new("rollout.jsonl", written.bytes(source).unwrap())
    };
    let summary = Message::text(Role::User, Kind::Summary, "S");
    let other = append(&source, &History::new(vec![summary], session.history.meta.clone()));
    assert_eq!(replaced(&codex::read(&other).unwrap()), [None]);
    let back = append(&other, &session.history);
    assert_eq!(replaced(&codex::read(&back).unwrap()), [None, Some(before), None]);

    // One that was taken back with its turn leaves the one before.
    lines.push(rolled_back(1));
    let session = codex::read(&of(&lines)).unwrap();
    let first: Vec<String> = ["one", "re one"].map(Into::into).into();
    assert_eq!(replaced(&session), [None, Some(first), None, None]);
}

#[test]
fn rolls_back_turns_and_the_compactions_in_them() {
    let turn = |id: &str, text: &str| {
        vec![started(id), said("user", text), said("assistant", &format!("re {text}")), ended(id)]
    };
    let mut lines = turn("1", "one");
    lines.extend(turn("2", "two"));
    lines.push(rolled_back(1));
    lines.extend(turn("3", "three"));
    let session = codex::read(&of(&lines)).unwrap();
    assert_eq!(
        texts(&session),
        ["User Said one", "Assistant Said re one", "User Said three", "Assistant Said re three"]
    );

    let mut lines = turn("1", "one");
    lines.extend([
        started("2"),
        line("response_item", ENVIRONMENT.1),
        said("user", "two"),
        line("compacted", r#"{"message":"S","replacement_history":[]}"#),
        said("assistant", "re two"),
        ended("2"),
        rolled_back(1),
    ]);
    let session = codex::read(&of(&lines)).unwrap();
    assert_eq!(texts(&session), ["User Said one", "Assistant Said re one"]);
    assert!(session.past.is_empty());

    // Codex leaves files as the turn left them.
    let mut lines = turn("1", "one");
    let patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-a\n+b\n*** End Patch";
    let call = serde_json::json!({"type": "custom_tool_call", "name": "apply_patch", "input": patch, "call_id": "p"});
    lines.extend(turn("2", "two"));
    lines.insert(lines.len() - 1, line("response_item", &call.to_string()));
    lines.push(rolled_back(1));
    let session = codex::read(&of(&lines)).unwrap();
    assert_eq!(texts(&session), ["User Said one", "Assistant Said re one"]);
    let taken = session.history.meta.rolled_back.unwrap();
    assert_eq!((taken.turns, taken.changed), (1, vec!["src/a.rs".to_owned()]));

    // A compaction before the turn that is rolled back survives it.
    let mut lines = turn("1", "one");
    lines.push(line("compacted", r#"{"message":"S","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"S"}]}]}"#));
    lines.extend(turn("2", "two"));
    lines.push(rolled_back(1));
    let session = codex::read(&of(&lines)).unwrap();
    assert_eq!(texts(&session), ["User Summary S"]);
    let mut lines = turn("1", "one");
    lines.push(rolled_back(9));
    assert!(codex::read(&of(&lines)).unwrap().history.messages().is_empty());
}

#[test]
fn counts_each_report_once() {
    let source = of(&[
        said("user", "q"),
        said("assistant", "a"),
        line("response_item", r#"{"type":"function_call","name":"t","arguments":"{}","call_id":"c"}"#),
        line(
            "token_usage_record",
            r#"{"usage":{"input_tokens":100,"cached_input_tokens":60,"cache_write_input_tokens":10,"output_tokens":7,"reasoning_output_tokens":2,"total_tokens":107},"thread_token_usage":{"input_tokens":100,"output_tokens":100}}"#,
        ),
        line("response_item", r#"{"type":"function_call_output","call_id":"c","output":"ok"}"#),
        usage(100, 60, 7, 100),
        said("assistant", "b"),
        usage(100, 60, 7, 100),
        usage(120, 60, 8, 300),
        line("compacted", r#"{"message":"S"}"#),
        usage(0, 0, 0, 300),
    ]);
    let session = codex::read(&source).unwrap();
    let past = &session.past[0];
    assert_eq!((past.tokens_before, past.tokens_after), (Some(128), Some(0)));
    assert_eq!(session.history.meta.window, Some(2000));
    let lines: Vec<_> =
        String::from_utf8(source_bytes(&source)).unwrap().lines().take(9).map(str::to_owned).collect();
    let session = codex::read(&MemorySource::new("m", lines.join("\n"))).unwrap();
    let usages: Vec<_> = session
        .history
        .messages()
        .iter()
        .map(|it| it.usage.map(|it| (it.input, it.cache_read, it.cache_write, it.output, it.reasoning)))
        .collect();
    assert_eq!(usages, [None, None, Some((30, 60, 10, 7, 2)), None, Some((60, 60, 0, 8, 0))]);
}

fn source_bytes(source: &MemorySource) -> Vec<u8> {
    use epitome::sessions::Source;
    source.bytes(0..source.len()).unwrap()
}

#[test]
fn reads_the_illustrated_form() {
    let source = of(&[
        line(
            "rollout_item",
            r#"{"ResponseItem":{"Message":{"role":"user","content":[{"InputText":{"text":"hi"}}]}}}"#,
        ),
        line(
            "rollout_item",
            r#"{"ResponseItem":{"FunctionCall":{"name":"shell","arguments":"{}","call_id":"c"}}}"#,
        ),
        line("rollout_item", r#"{"ResponseItem":{"FunctionCallOutput":{"call_id":"c","output":"ok"}}}"#),
        line("rollout_item", r#"{"Compacted":{"message":"S"}}"#),
        line(
            "rollout_item",
            r#"{"ResponseItem":{"Message":{"id":"m","role":"assistant","content":[{"OutputText":{"text":"ho"}}]}}}"#,
        ),
    ]);
    let session = codex::read(&source).unwrap();
    assert_eq!(texts(&session), ["User Said hi", "User Summary S", "Assistant Said ho"]);
    after_laws(&source, codex::read, codex::write, &session);
}

#[test]
fn bad_lines_become_notes() {
    let mut text = b"\xEF\xBB\xBFjunk \0\n[1]\n{\"type\":\"x\"}\n{\"type\":\"response_item\",\"payload\":{\"role\":1}}\r\n".to_vec();
    text.extend(br#"{"timestamp":7,"type":"unknown_line","payload":{}}"#);
    text.extend(b"\n{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"x\\ud83d\"}]}}\r\n");
    text.extend(br#"{"type":"response_item","payload":{"type":"mess"#);
    let source = MemorySource::new("m", text);
    let session = codex::read(&source).unwrap();
    assert_eq!(texts(&session), ["User Said x\u{fffd}"]);
    assert_eq!(session.notes.iter().map(|it| it.line).collect::<Vec<_>>(), [1, 2, 3, 4, 7]);
    after_laws(&source, codex::read, codex::write, &session);
    let error = codex::read(&MemorySource::new("m", "{\"type\":\"user\"}\n")).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(codex::read(&MemorySource::new("m", "")).is_err());
}

#[test]
fn patches_only_the_output() {
    let source = rollout(
        true,
        &[
            META,
            ("response_item", r#"{"type":"function_call","name":"t","arguments":"{}","call_id":"c1"}"#),
            ("response_item", r#"{"type":"custom_tool_call","name":"t","input":"","call_id":"c2"}"#),
            (
                "response_item",
                r#"{"type":"function_call_output", "call_id":"c1", "output" : "lo\nng", "id":"o" }"#,
            ),
            (
                "response_item",
                r#"{"type":"custom_tool_call_output","call_id":"c2","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"https://x/y.png"}]}"#,
            ),
        ],
    );
    let session = codex::read(&source).unwrap();
    let mut messages = session.history.messages().to_vec();
    for message in &mut messages {
        for part in &mut message.parts {
            if let Part::Output(output) = part {
                output.text = "[\"gone\"]".into();
            }
        }
    }
    let after = History::new(messages, session.history.meta.clone());
    let written = codex::write(&source, &session, &after, Mode::Patch).unwrap();
    let before = String::from_utf8(source_bytes(&source)).unwrap();
    let expected = before
        .replace(r#""output" : "lo\nng""#, r#""output" : "[\"gone\"]""#)
        .replace(r#"{"type":"input_text","text":"a"}"#, r#"{"type":"input_text","text":"[\"gone\"]"}"#);
    assert_eq!(String::from_utf8(written.bytes(&source).unwrap()).unwrap(), expected);

    let fewer = History::new(after.messages()[1..].to_vec(), after.meta.clone());
    assert!(codex::write(&source, &session, &fewer, Mode::Patch).is_err());
}

#[test]
fn appends_in_the_native_form() {
    let lines = [
        META,
        DEVELOPER,
        ENVIRONMENT,
        WORLD,
        CONTEXT,
        (
            "response_item",
            r#"{"type":"message","id":"m2","role":"user","content":[{"type":"input_text","text":"go"}],"metadata":{"x":1}}"#,
        ),
        (
            "event_msg",
            r#"{"type":"item_completed","thread_id":"t-1","turn_id":"u-1","item":{"type":"UserMessage","content":[{"type":"text","text":"go"}]}}"#,
        ),
        ("response_item", r#"{"type":"function_call","id":"f","name":"t","arguments":"{}","call_id":"c1"}"#),
        ("response_item", r#"{"type":"function_call_output","call_id":"c1","output":"long"}"#),
        (
            "event_msg",
            r#"{"type":"token_count","info":{"total_token_usage":{"input_tokens":9000,"total_tokens":9010},"last_token_usage":{"input_tokens":9000,"output_tokens":10,"total_tokens":9010},"model_context_window":10000},"rate_limits":null}"#,
        ),
    ];
    let source = rollout(true, &lines);
    let session = codex::read(&source).unwrap();
    let mut kept: Vec<Message> = session.history.messages()[3..].to_vec();
    if let Part::Output(output) = &mut kept[1].parts[0] {
        output.text = "cut".into();
    }
    let mut messages = vec![Message::text(Role::User, Kind::Summary, "what was")];
    messages.append(&mut kept);
    messages.push(Message::text(Role::User, Kind::Continue, "Go on."));
    let after = History::new(messages, session.history.meta.clone());
    let written = codex::write(&source, &session, &after, Mode::Append).unwrap();
    let text = String::from_utf8(written.bytes(&source).unwrap()).unwrap();
    let before = String::from_utf8(source_bytes(&source)).unwrap();
    insta::assert_snapshot!("codex_append", text.strip_prefix(&before).unwrap());

    let back = codex::read(&MemorySource::new("m", text)).unwrap();
    assert_eq!(
        texts(&back),
        [
            "System Context <permissions instructions>x</permissions instructions>",
            "User Context <environment_context>\n<cwd>/p</cwd>\n</environment_context>",
            "User Summary what was",
            "Assistant Said call c1 t {}",
            "Tool Said output c1 cut",
            "User Continue Go on.",
        ]
    );
    assert!(back.notes.is_empty());
    assert!(back.history.messages().iter().all(|it| it.usage.is_none()));

    let written = codex::write(&source, &session, &after, Mode::New).unwrap();
    insta::assert_snapshot!(
        "codex_new",
        format!("{:?}\n{}", written.file_name, String::from_utf8(written.bytes(&source).unwrap()).unwrap())
    );
    assert_eq!(written, codex::write(&source, &session, &after, Mode::New).unwrap());
}

/// Otherwise a session that left its plan mode would be in it again.
#[test]
fn instructions_that_newer_ones_replace_are_not_put_first() {
    let mode = |text: &str| said("developer", &format!("<collaboration_mode>{text}</collaboration_mode>"));
    let owned = |it: (&str, &str)| line(it.0, it.1);
    let source = of(&[
        owned(META),
        owned(DEVELOPER),
        mode("plan"),
        owned(CONTEXT),
        said("user", "go"),
        said("assistant", "done"),
        mode("build"),
        owned(CONTEXT),
        said("user", "on"),
    ]);
    let session = codex::read(&source).unwrap();
    let old = session.history.messages();
    let newest = old.iter().position(|it| it.plain().contains("build")).unwrap();
    let messages = vec![old[newest].clone(), Message::text(Role::User, Kind::Summary, "what was")];
    let after = History::new(messages, session.history.meta.clone());
    let written = codex::write(&source, &session, &after, Mode::Append).unwrap();
    let back = codex::read(&MemorySource::new("m", written.bytes(&source).unwrap())).unwrap();
    assert_eq!(
        texts(&back),
        [
            "System Context <permissions instructions>x</permissions instructions>",
            "System Context <collaboration_mode>build</collaboration_mode>",
            "User Summary what was",
        ]
    );
}

/// A sub-agent is given its task by another agent; what is sealed in it stands in no other item.
#[test]
fn a_task_of_another_agent_is_a_prompt_and_its_item_stays_whole() {
    let item = |kind: &str, more: &str| {
        let text = format!(r"Message Type: {kind}\nTask name: /root/kiln\nSender: /root\nPayload:\n");
        format!(
            r#"{{"type":"agent_message","author":"/root","recipient":"/root/kiln","content":[{{"type":"input_text","text":"{text}"}}{more}]}}"#
        )
    };
    let sealed = r#",{"type":"encrypted_content","encrypted_content":"c2VhbGVk"}"#;
    let (task, message) = (item("NEW_TASK", sealed), item("MESSAGE", sealed));
    let answer = item("FINAL_ANSWER", "");
    let items = [&task, &message, &answer].map(|it| line("response_item", it));
    let source = of(&items);
    let session = codex::read(&source).unwrap();
    let kinds: Vec<_> = session.history.messages().iter().map(|it| (it.role, it.kind)).collect();
    assert_eq!(kinds, [(Role::User, Kind::Said), (Role::User, Kind::Context), (Role::User, Kind::Context)]);
    assert_eq!(session.history.last_prompt(), Some(0));

    // Also where it stands nowhere in the rollout any more.
    let apart = session.history.messages().iter().map(|it| Message { from: None, ..it.clone() });
    let apart = History::new(apart.collect(), session.history.meta.clone());
    for after in [&session.history, &apart] {
        let written = codex::write(&source, &session, after, Mode::Append).unwrap();
        let text = String::from_utf8(written.bytes(&source).unwrap()).unwrap();
        let compacted = text.lines().last().unwrap();
        assert!(compacted.contains(&task) && compacted.contains(&message), "{compacted}");
        assert_eq!(compacted.matches("NEW_TASK").count(), 1, "{compacted}");
        let back = codex::read(&MemorySource::new("m", text.as_str())).unwrap();
        let back: Vec<_> = back.history.messages().iter().map(|it| (it.role, it.kind)).collect();
        assert_eq!(back, kinds);
    }
    let format = Format::OPENAI_RESPONSES;
    let (messages, _) = wire::messages_of(&session.history, Some(Format::CODEX), format);
    let messages = String::from_utf8(messages).unwrap();
    assert!(messages.contains(&task) && !messages.contains(r#"[{"type":"encrypted_content""#), "{messages}");
    assert_eq!(messages.matches("NEW_TASK").count(), 1, "{messages}");
}

#[test]
fn believes_what_codex_noted_about_a_message() {
    let noted = |kind: &str| {
        let (tag, payload) = said("user", kind);
        let note =
            format!(r#","internal_chat_message_metadata_passthrough":{{"content_item_kinds":["{kind}"]}}}}"#);
        (tag, format!("{}{note}", payload.strip_suffix('}').unwrap()))
    };
    let source = of(&[
        line("session_meta", r#"{"id":"t"}"#),
        noted("environments.environment_context"),
        noted("user.text"),
        noted("compaction.summary"),
        noted("unknown"),
    ]);
    let session = codex::read(&source).unwrap();
    let kinds: Vec<Kind> = session.history.messages().iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [Kind::Context, Kind::Said, Kind::Summary, Kind::Said]);
    after_laws(&source, codex::read, codex::write, &session);
}

#[test]
fn a_summary_in_a_frame_that_codex_drops_is_still_a_summary() {
    // Codex takes `<external_…>` for context and leaves it out of its own next compaction: nothing nests.
    let source = of(&[line("session_meta", r#"{"id":"t"}"#), said("user", "x"), said("assistant", "y")]);
    let session = codex::read(&source).unwrap();
    let mut messages =
        vec![Message::text(Role::User, Kind::Summary, "<external_s>\nwhat was\n</external_s>")];
    messages.extend_from_slice(session.history.messages());
    let after = History::new(messages, session.history.meta.clone());
    super::read_back(&source, codex::read, codex::write, &session, &after);
}

#[test]
fn goes_on_from_the_last_window() {
    let source = of(&[
        line("session_meta", r#"{"id":"t"}"#),
        line("compacted", r#"{"message":"S","replacement_history":[],"window_id":3}"#),
        said("user", "x"),
    ]);
    let session = codex::read(&source).unwrap();
    let written = codex::write(&source, &session, &session.history, Mode::Append).unwrap();
    let text = String::from_utf8(written.bytes(&source).unwrap()).unwrap();
    assert!(text.contains(r#""window_number":4"#) && !text.contains("previous_window_id"), "{text}");
    assert!(!text.contains("ordinal"));
    assert!(text.ends_with('\n'));
}

#[test]
fn every_real_session_reads_and_writes_back() {
    for (name, source) in sessions("every_real_session_reads_and_writes_back (codex)", "codex", &["codex"]) {
        let head: String = String::from_utf8_lossy(&source_bytes(&source)).chars().take(60_000).collect();
        assert!(codex::sniff(&head), "{name}");
        let session = codex::read(&source).unwrap();
        after_laws(&source, codex::read, codex::write, &session);
        stub_largest(&source, codex::read, codex::write, &session);
        compacted(&source, codex::read, codex::write, &session);
        let outputs: Vec<&Output> = session.history.messages().iter().flat_map(Message::outputs).collect();
        eprintln!(
            "{name}: {} records, {} live messages, {} outputs, {} past, {} notes, reported {:?}",
            session.records.len(),
            session.history.messages().len(),
            outputs.len(),
            session.past.len(),
            session.notes.len(),
            session.history.messages().iter().rev().find_map(|it| it.usage).map(|it| it.context()),
        );
    }
}
