//! Laws over generated histories.

use proptest::prelude::*;

use super::*;

fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        5 => "[a-d]",
        1 => Just(String::new()),
        1 => Just("functions.bash:0".to_string()),
        1 => Just("é/ü".to_string()),
        1 => Just("x".repeat(70)),
        1 => Just("x".repeat(200)),
        1 => Just("a_2".to_string()),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just("bash".to_string()),
        1 => Just(String::new()),
        1 => Just("mcp.server: tool".to_string()),
        1 => Just("1st".to_string()),
        1 => Just("ñ".repeat(90)),
    ]
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z]{1,8}",
        1 => Just(String::new()),
        1 => Just(" \n".to_string()),
        1 => Just("[Epitome] short".to_string()),
        1 => Just("\u{0}\"\\😀\u{2028} ".to_string()),
        1 => ".{0,12}",
    ]
}

fn input() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just(r#"{"command": "ls", "n": 1.5}"#.to_string()),
        1 => Just(String::new()),
        1 => Just("[1, 2]".to_string()),
        1 => Just("*** Begin Patch".to_string()),
        1 => Just(r#"{"a": "#.to_string()),
        1 => Just(format!(r#"{{"a":{}{}}}"#, "[".repeat(500), "]".repeat(500))),
    ]
}

fn media() -> impl Strategy<Value = Media> {
    let kinds = [MediaKind::Image, MediaKind::Pdf, MediaKind::Audio, MediaKind::Other];
    let mimes = ["image/png", "image/bmp", "application/pdf", "audio/wav", "", "text"];
    let data = ["", "iVBORw0KGgo=", "https://x/y", "cut …", "x:y"];
    (0..kinds.len(), 0..mimes.len(), 0..data.len()).prop_map(move |(kind, mime, it)| Media {
        kind: kinds[kind],
        mime: mimes[mime].into(),
        data: data[it].into(),
        size: None,
    })
}

fn opaque() -> impl Strategy<Value = Opaque> {
    const RAW: [&str; 27] = [
        r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{}}"#,
        r#"{"type":"web_search_tool_result","tool_use_id":"s","content":[]}"#,
        r#"{"type":"redacted_thinking","data":"x"}"#,
        r#"{"type":"compaction","content":"x"}"#,
        r#"{"type":"compaction","encrypted_content":"x"}"#,
        r#"{"type":"tool_use","id":"a","name":"t","input":{}}"#,
        r#"{"type":"tool_result","tool_use_id":"a"}"#,
        r#"{"type":"search_result","source":"x","title":"y","content":[]}"#,
        r#"{"type":"function_call","call_id":"a","name":"t","arguments":"{}"}"#,
        r#"{"type":"computer_call","call_id":"z"}"#,
        r#"{"type":"computer_call_output","call_id":"z","output":{}}"#,
        r#"{"type":"tool_search_output","call_id":"a"}"#,
        r#"{"type":"tool_search_call","call_id":"a"}"#,
        r#"{"type":"web_search_call","id":"ws"}"#,
        r#"{"type":"message","role":"user","content":"x"}"#,
        r#"{"type":"input_file","file_id":"f"}"#,
        r#"{"type":"input_image","image_url":"cut"}"#,
        r#"{"type":"image","source":{"type":"file","file_id":"f"}}"#,
        r#"{"type":"image","source":{"type":"base64","data":"cut …"}}"#,
        r#"{"type":"file","file":{"file_id":"f"}}"#,
        r#"{"type":"file"}"#,
        r#"{"type":"mystery"}"#,
        r#"{"executableCode":{"code":"x"}}"#,
        r#"{"executableCode":{},"functionCall":{"name":"x"}}"#,
        r#"{"functionCall":{"name":"x"}}"#,
        "not json",
        "3",
    ];
    (0..APIS.len(), 0..RAW.len()).prop_map(|(api, raw)| {
        let raw = RAW[raw];
        let value: serde_json::Value = serde_json::from_str(raw).unwrap_or_default();
        let kind = value.get("type").and_then(|it| it.as_str()).unwrap_or("element");
        Opaque { api: APIS[api].name().into(), kind: kind.into(), raw: raw.into() }
    })
}

fn part() -> impl Strategy<Value = Part> {
    let signature = || proptest::option::of(prop_oneof![3 => Just("c2ln"), 1 => Just("")]);
    let media_list = proptest::collection::vec(media(), 0..2);
    prop_oneof![
        4 => words().prop_map(|it| Part::Text(it.into())),
        2 => (words(), signature()).prop_map(|(text, signature)| {
            Part::Reasoning(Reasoning { text: text.into(), signature: signature.map(Into::into) })
        }),
        4 => (id(), name(), input(), any::<bool>(), signature()).prop_map(|(id, name, input, freeform, signature)| {
            let signature = signature.map(Into::into);
            Part::Call(Call { id: id.into(), name: name.into(), input: input.into(), freeform, signature })
        }),
        4 => (id(), words(), media_list, any::<bool>()).prop_map(|(id, text, media, failed)| {
            Part::Output(Output { media: media.into(), failed, ..output_part(&id, &text) })
        }),
        1 => media().prop_map(Part::Media),
        2 => opaque().prop_map(Part::Opaque),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![
        2 => Just(Role::User),
        3 => Just(Role::Assistant),
        2 => Just(Role::Tool),
        1 => Just(Role::System),
    ];
    let kind = prop_oneof![
        4 => Just(Kind::Said),
        1 => Just(Kind::Context),
        1 => Just(Kind::Summary),
        1 => Just(Kind::Ack),
    ];
    let parts = proptest::collection::vec(part(), 0..4);
    (role, kind, parts).prop_map(|(role, kind, parts)| Message::new(role, kind, parts))
}

fn history() -> impl Strategy<Value = History> {
    let agents = ["claude-code", "codex", "gemini-cli", "opencode"];
    let agent = proptest::option::of(0..agents.len());
    (proptest::collection::vec(message(), 0..14), agent).prop_map(move |(messages, agent)| {
        History::new(messages, Meta { agent: agent.map(|it| agents[it].into()), ..Meta::default() })
    })
}

/// How often each text occurs, blank ones apart.
fn counted(history: &History) -> BTreeMap<String, usize> {
    let mut out = BTreeMap::new();
    for it in history.messages().iter().flat_map(Message::texts).map(Text::as_str) {
        if !it.trim().is_empty() {
            *out.entry(it.to_string()).or_default() += 1;
        }
    }
    out
}

pub(super) fn calls(history: &History) -> usize {
    history.messages().iter().flat_map(Message::calls).count()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The heart of it: whatever the history, the array is one that the API accepts.
    #[test]
    fn any_history_becomes_valid(history in history()) {
        for api in APIS {
            let (bytes, _) = wire::messages(&history, api);
            prop_assert_eq!(validate::check(api, &bytes), [], "{}", String::from_utf8_lossy(&bytes));
        }
    }

    /// No text, call or result is lost on the way.
    #[test]
    fn crossing_over_keeps_texts_calls_and_results(history in history()) {
        for api in APIS {
            let (array, _) = crossed(&history, None, api);
            let again = read(&array, api);
            prop_assert_eq!(&again.notes, &[]);
            let now = counted(&again.history);
            for (text, times) in counted(&history) {
                prop_assert!(now.get(&text).is_some_and(|it| *it >= times), "{text:?} lost in {array}");
            }
            prop_assert_eq!(calls(&history), calls(&again.history));
            for output in history.messages().iter().flat_map(Message::outputs) {
                let text = output.text.as_str().trim();
                let found = again.history.messages().iter().any(|it| {
                    it.outputs().any(|it| it.text.as_str().contains(text))
                        || it.texts().any(|it| it.as_str().contains(text))
                });
                prop_assert!(found, "{text:?} lost in {array}");
            }
        }
    }

    /// What was crossed over once stays as it is: the same bytes, so that caches live on.
    #[test]
    fn crossing_over_again_changes_nothing(history in history()) {
        for api in APIS {
            let (once, _) = wire::messages(&history, api);
            let once = String::from_utf8(once).unwrap();
            let (twice, _) = crossed(&read(&once, api).history, Some(api), api);
            prop_assert_eq!(once, twice);
        }
    }

    /// Reading and writing back gives the same bytes in every mode and style; patching changes only what it should.
    #[test]
    fn writing_back_changes_only_what_changed(history in history(), pretty in any::<bool>(), wrapped in any::<bool>()) {
        for api in APIS {
            let (array, _) = crossed(&history, None, api);
            let value: serde_json::Value = serde_json::from_str(&array).unwrap();
            let value = if wrapped { serde_json::json!({"model": "m", "messages": value, "n": 1}) } else { value };
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let text = text.unwrap();
            let session = read(&text, api);
            for mode in [Mode::Patch, Mode::Append, Mode::New] {
                let source = MemorySource::new("m", text.as_str());
                let written = wire::write(&source, &session, &session.history, mode).unwrap();
                prop_assert!(written.pieces.iter().all(|it| matches!(it, Piece::Keep(_))));
                prop_assert_eq!(written.bytes(&source).unwrap(), text.as_bytes());
            }
            let after = cleared(&session.history);
            let (patched, warnings) = written(&text, &session, &after, Mode::Patch);
            prop_assert_eq!(warnings, Vec::<String>::new());
            let again = read(&patched, api);
            for (number, before) in session.history.messages().iter().enumerate() {
                if before.outputs().count() == 0 {
                    let (old, new) = (session.records[number].range(), again.records[number].range());
                    let old = &text[old.start as usize..old.end as usize];
                    prop_assert_eq!(old, &patched[new.start as usize..new.end as usize]);
                }
                let mut outputs = again.history.messages()[number].outputs();
                prop_assert!(outputs.all(|it| it.text.as_str() == "[cleared]"));
            }
            prop_assert_eq!(written(&text, &session, &after, Mode::Append).0, patched);
        }
    }

    /// Nothing that is thrown at it makes it panic, and all of it can be written back.
    #[test]
    fn survives_broken_text(history in history(), api in 0..4usize, at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = crossed(&history, None, APIS[api]).0.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        for bytes in [&bytes[..], &bytes[..at]] {
            wire::sniff(&epitome::history::json::mend(bytes));
            for format in APIS {
                validate::check(format, bytes);
                let source = MemorySource::new("m", bytes);
                let Ok(session) = wire::read(&source, format) else { continue };
                prop_assert_eq!(session.history.messages().len(), session.records.len());
                let written = wire::write(&source, &session, &session.history, Mode::New).unwrap();
                prop_assert_eq!(written.bytes(&source).unwrap(), bytes);
            }
        }
    }
}
