//! Laws over generated rollouts.

use proptest::prelude::*;

use super::*;

/// Any line of a rollout, sensible or not.
fn any_line() -> impl Strategy<Value = (String, String)> {
    let id = 0..4u8;
    prop_oneof![
        3 => "[a-z <>é\"]{0,12}".prop_map(|it| said("user", &it)),
        2 => "[a-z é]{1,12}".prop_map(|it| said("assistant", &it)),
        1 => "[a-z]{1,5}".prop_map(|it| said("developer", &it)),
        1 => Just(line("response_item", ENVIRONMENT.1)),
        2 => id.clone().prop_map(|it| line("response_item", &format!(r#"{{"type":"function_call","name":"t","arguments":"{{}}","call_id":"c{it}"}}"#))),
        2 => (id.clone(), "[a-z]{0,9}").prop_map(|(it, text)| line("response_item", &format!(r#"{{"type":"function_call_output","call_id":"c{it}","output":"{text}"}}"#))),
        1 => id.clone().prop_map(|it| line("response_item", &format!(r#"{{"type":"custom_tool_call","name":"p","input":"x","call_id":"d{it}"}}"#))),
        1 => id.prop_map(|it| line("response_item", &format!(r#"{{"type":"custom_tool_call_output","call_id":"d{it}","output":"y"}}"#))),
        1 => Just(line("response_item", r#"{"type":"reasoning","summary":[],"encrypted_content":"E"}"#)),
        1 => "[a-z]{0,9}".prop_map(|it| line("compacted", &format!(r#"{{"message":"{it}"}}"#))),
        1 => "[a-z]{1,9}".prop_map(|it| line("compacted", &format!(r#"{{"message":"{it}","replacement_history":[{},{}]}}"#, said("user", "before").1, said("user", &it).1))),
        1 => (0..3u64).prop_map(rolled_back),
        1 => (0..9u8).prop_map(|it| started(&it.to_string())),
        1 => (0..9u8).prop_map(|it| ended(&it.to_string())),
        1 => Just(line("turn_context", CONTEXT.1)),
        1 => (0..900u64, 0..99u64).prop_map(|(input, so_far)| usage(input, input / 2, 3, so_far)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back(lines in prop::collection::vec(any_line(), 0..24)) {
        let mut lines = lines;
        lines.insert(0, line("session_meta", META.1));
        // Every rollback that Codex writes is followed by a turn.
        lines.push(started("9"));
        let source = of(&lines);
        let session = codex::read(&source).unwrap();
        after_laws(&source, codex::read, codex::write, &session);
        stub_largest(&source, codex::read, codex::write, &session);
    }

    #[test]
    fn damage_never_panics(
        lines in prop::collection::vec(any_line(), 1..9),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        keep in any::<prop::sample::Index>(),
    ) {
        let mut text = source_bytes(&of(&lines));
        let at = at.index(text.len());
        text[at] = byte;
        text.truncate(keep.index(text.len()).max(text.len() / 2));
        let source = MemorySource::new("m", text);
        if let Ok(session) = codex::read(&source) {
            after_laws(&source, codex::read, codex::write, &session);
        }
    }
}

#[test]
fn what_the_user_wrote_may_be_a_summary_word_for_word() {
    let items = format!("{},{}", said("user", "before").1, said("user", "d").1);
    let compacted = line("compacted", &format!(r#"{{"message":"d","replacement_history":[{items}]}}"#));
    let lines = vec![line("session_meta", META.1), compacted, said("user", "d"), started("9")];
    let source = of(&lines);
    let session = codex::read(&source).unwrap();
    after_laws(&source, codex::read, codex::write, &session);
}
