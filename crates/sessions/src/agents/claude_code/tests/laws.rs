use super::*;
use crate::Source as _;

/// What a client would send: adjacent user messages of one kind are joined. Calls without a result are left
/// out: in random sessions, which of them still run at the end depends on what else is dropped.
fn said(history: &History) -> Vec<(Role, Kind, Vec<Part>)> {
    let answered: Vec<_> =
        history.messages().iter().flat_map(Message::outputs).map(|it| it.id.clone()).collect();
    let mut out: Vec<(Role, Kind, Vec<Part>)> = Vec::new();
    for it in history.messages() {
        let mut parts = it.parts.clone();
        parts.retain(|it| !matches!(it, Part::Call(call) if !answered.contains(&call.id)));
        if parts.iter().all(|it| matches!(it, Part::Reasoning(_))) {
            continue;
        }
        match out.last_mut().filter(|last| it.role == Role::User && (last.0, last.1) == (it.role, it.kind)) {
            Some(last) => last.2.extend(parts),
            None => out.push((it.role, it.kind, parts)),
        }
    }
    out
}

/// A random transcript: each triple of numbers is a row, a child of the last row or of an earlier one.
fn thrown(dice: &[(u8, u8, u8)]) -> Rows {
    let mut it = rows();
    let (mut ids, mut calls): (Vec<String>, Vec<String>) = Default::default();
    let mut response = 0;
    for (number, &(what, parent, small)) in dice.iter().enumerate() {
        if parent < 40 && !ids.is_empty() {
            it.last = Some(ids[parent as usize % ids.len()].clone());
        }
        let (uuid, text) = (format!("r{number}"), format!("text {number}"));
        // Now and then a response continues after another one, or after a result of its own.
        let id = format!("m{}", response - usize::from(small) % 7 / 4 % (response + 1));
        response += usize::from(!matches!(what % 14, 2..=5 | 8) || small % 3 == 0);
        let tool = calls.get(small as usize % calls.len().max(1)).cloned().unwrap_or("c?".into());
        match what % 14 {
            0 | 1 => it.user(&uuid, text),
            2 => it.block(&uuid, &id, json!({"type": "text", "text": text})),
            3..=5 => {
                calls.push(format!("c{number}"));
                it.block(&uuid, &id, call(&format!("c{number}")))
            }
            6 | 7 => it.result(&uuid, &tool, &text),
            8 => it.block(&uuid, &id, json!({"type": "thinking", "thinking": text, "signature": "s"})),
            9 => it.rendered(&uuid, if small % 2 == 0 { "user" } else { "system" }, &text),
            10 => it.user(&uuid, "<local-command-stdout>x</local-command-stdout>"),
            11 if small % 3 == 0 => it.boundary(&uuid, json!({})).summary(&format!("s{number}"), &text),
            11 => {
                let kept = ids.iter().rev().take(small as usize % 4).rev().cloned().collect::<Vec<_>>();
                it.boundary(
                    &uuid,
                    json!({"preservedMessages": {"anchorUuid": format!("s{number}"), "uuids": kept}}),
                );
                it.summary(&format!("s{number}"), &text)
            }
            12 if !ids.is_empty() => {
                let leaf = ids[small as usize % ids.len()].clone();
                it.leaf(&leaf)
            }
            _ => it.add(&uuid, json!({"type": "progress", "data": {}})),
        };
        if it.lines.last().is_some_and(|line| line.contains(&format!("\"uuid\":\"{uuid}\""))) {
            ids.push(uuid);
        }
    }
    it
}

proptest::proptest! {
    #[test]
    fn laws(dice in proptest::collection::vec(proptest::prelude::any::<(u8, u8, u8)>(), 1..60), cut in 0usize..4000) {
        let source = thrown(&dice).source();
        let Ok(session) = read(&source) else { return Ok(()) };
        let history = &session.history;
        let same = write(&source, &session, history, Mode::Patch).unwrap();
        proptest::prop_assert_eq!(same.pieces, [crate::Piece::Keep(0..source.len())]);
        for (number, message) in history.messages().iter().enumerate() {
            proptest::prop_assert!(message.outputs().all(|it| history.call(&it.id, number).is_some()));
        }
        for mode in [Mode::New, Mode::Append] {
            let written = write(&source, &session, history, mode).unwrap();
            let bytes = written.bytes(&source).unwrap();
            if history.messages().is_empty() {
                continue;
            }
            let again = read(&MemorySource::new("t", bytes)).unwrap();
            proptest::prop_assert_eq!(said(&again.history), said(history), "{:?}\n{}", mode, thrown(&dice).text());
        }
        // Cut anywhere, with garbage at the end: if anything is read, writing it back loses nothing.
        let mut bytes = source.bytes(0..source.len()).unwrap();
        bytes.truncate(cut);
        bytes.extend_from_slice(b"\xFF{\0");
        let source = MemorySource::new("t", bytes.clone());
        if let Ok(session) = read(&source) {
            let same = write(&source, &session, &session.history, Mode::Patch).unwrap();
            proptest::prop_assert_eq!(same.bytes(&source).unwrap(), bytes);
        }
    }
}
