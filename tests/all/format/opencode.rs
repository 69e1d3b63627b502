//! The laws of the OpenCode format over real sessions (skipped where they are not found).

use epitome::history::{History, Kind, Message, Part, Role};
use epitome::sessions::agents::opencode;
use epitome::sessions::{Format, MemorySource, Mode, Session, Source};

use super::sessions;

/// What has to be the same: roles and parts.
fn said(messages: &[Message]) -> Vec<(Role, Vec<Part>)> {
    messages.iter().map(|it| (it.role, it.parts.clone())).collect()
}

fn written(source: &MemorySource, session: &Session, after: &History, mode: Mode) -> MemorySource {
    let written = opencode::write(source, session, after, mode).unwrap();
    MemorySource::new(source.name(), written.bytes(source).unwrap())
}

fn with(session: &Session, messages: Vec<Message>) -> History {
    History::new(messages, session.history.meta.clone())
}

#[test]
fn reads_what_is_there() {
    for (name, source) in sessions("reads_what_is_there", "opencode", &["opencode"]) {
        let session = opencode::read(&source).unwrap();
        assert_eq!(session.format, Format::OPENCODE);
        assert_eq!(session.notes, [], "{name}");
        let messages = session.history.messages();
        assert!(messages.len() > 1, "{name}");
        assert_eq!(session.origins.len(), messages.len());
        let text = source.bytes(0..source.len()).unwrap();
        for record in &session.records {
            let element: serde_json::Value =
                serde_json::from_slice(&text[record.at as usize..(record.at + record.len) as usize]).unwrap();
            assert!(element["parts"].is_array());
        }
        // Every output follows its call.
        for (index, message) in messages.iter().enumerate() {
            for output in message.outputs() {
                assert!(session.history.call(&output.id, index).is_some(), "{name} {index}");
            }
        }
        let usage = messages.iter().any(|it| it.usage.is_some());
        assert!(usage || name.contains("compact"), "{name}");
        assert!(session.history.meta.model.is_some() && session.history.meta.cwd.is_some());
    }
}

#[test]
fn unchanged_is_the_same_bytes() {
    for (name, source) in sessions("unchanged_is_the_same_bytes", "opencode", &["opencode"]) {
        let session = opencode::read(&source).unwrap();
        let out = written(&source, &session, &session.history, Mode::Patch);
        assert_eq!(out.bytes(0..out.len()).unwrap(), source.bytes(0..source.len()).unwrap(), "{name}");
    }
}

#[test]
fn one_output_changes_one_record() {
    for (name, source) in sessions("one_output_changes_one_record", "opencode", &["opencode"]) {
        let session = opencode::read(&source).unwrap();
        let found = session.history.messages().iter().position(|it| it.outputs().next().is_some());
        let Some(index) = found else { continue };
        for text in ["[gone: \"é😀\n]", opencode::CLEARED] {
            let mut messages = session.history.messages().to_vec();
            for part in &mut messages[index].parts {
                if let Part::Output(output) = part {
                    output.text = text.into();
                    output.cleared = text == opencode::CLEARED;
                    break;
                }
            }
            let after = with(&session, messages);
            let out = written(&source, &session, &after, Mode::Patch);
            let again = opencode::read(&out).unwrap();
            assert_eq!(said(again.history.messages()), said(after.messages()), "{name}");
            assert_eq!(again.records.len(), session.records.len());
            for (number, (old, new)) in session.records.iter().zip(&again.records).enumerate() {
                let same = source.bytes(old.range()).unwrap() == out.bytes(new.range()).unwrap();
                assert_eq!(same, session.origins[index] != [number as u32], "{name} {number}");
            }
        }
    }
}

#[test]
fn a_new_session_says_the_same() {
    for (name, source) in sessions("a_new_session_says_the_same", "opencode", &["opencode"]) {
        let session = opencode::read(&source).unwrap();
        let out = opencode::write(&source, &session, &session.history, Mode::New).unwrap();
        let id = out.session.clone().unwrap();
        assert_eq!(out.warnings, [] as [String; 0], "{name}");
        let again = MemorySource::new("new", out.bytes(&source).unwrap());
        let again = opencode::read(&again).unwrap();
        assert_eq!(said(again.history.messages()), said(session.history.messages()), "{name}");
        assert_eq!(again.history.meta.session.as_deref(), Some(&*id));
        assert_ne!(again.history.meta.session, session.history.meta.session);
        assert!(again.history.messages().iter().all(|it| it.usage.is_none()), "{name}: usage must be reset");
        // The same input gives the same bytes.
        assert_eq!(opencode::write(&source, &session, &session.history, Mode::New).unwrap(), out);
    }
}

#[test]
fn compacted_sessions_read_back() {
    for (name, source) in sessions("compacted_sessions_read_back", "opencode", &["opencode"]) {
        let session = opencode::read(&source).unwrap();
        let old = session.history.messages();
        let units = session.history.units();
        for unit in units.iter().step_by(1 + units.len() / 4) {
            for changed in [false, true] {
                let mut tail = old[unit.start..].to_vec();
                if changed {
                    for part in tail.iter_mut().flat_map(|it| &mut it.parts) {
                        if let Part::Output(output) = part {
                            output.text = "[shortened]".into();
                        }
                    }
                }
                let summary = Message::text(Role::User, Kind::Summary, "What was done.");
                let after = with(&session, [vec![summary], tail.clone()].concat());
                let head = [
                    Message::text(Role::User, Kind::Marker, sessions::wire::OPENCODE_MARKER),
                    Message::text(Role::Assistant, Kind::Summary, "What was done."),
                ];
                let expected = [head.to_vec(), tail].concat();
                for mode in [Mode::Append, Mode::New] {
                    let out = written(&source, &session, &after, mode);
                    let again = opencode::read(&out).unwrap();
                    assert_eq!(again.notes, []);
                    assert_eq!(said(again.history.messages()), said(&expected), "{name} {unit:?} {mode:?}");
                    assert_eq!(again.history.messages()[1].kind, Kind::Summary);
                    assert_eq!(again.past.last().unwrap().message, Some(1));
                    let ids: Vec<_> = again.history.messages().iter().flat_map(|it| it.id.clone()).collect();
                    assert_eq!(ids.len(), again.history.messages().len());
                    if mode == Mode::Append {
                        assert_eq!(again.records[..session.records.len()], session.records);
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_cut_off_is_read_up_to_there() {
    for (name, source) in sessions("what_is_cut_off_is_read_up_to_there", "opencode", &["opencode"]) {
        let bytes = source.bytes(0..source.len()).unwrap();
        let whole = opencode::read(&source).unwrap();
        let cut = MemorySource::new("cut", &bytes[..bytes.len() * 9 / 10]);
        let session = opencode::read(&cut).unwrap();
        assert!(!session.notes.is_empty() && session.records.len() < whole.records.len(), "{name}");
        assert_eq!(session.records, whole.records[..session.records.len()], "{name}");
    }
}
