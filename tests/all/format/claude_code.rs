//! Laws of the Claude Code format over real sessions, where they are found.

use std::path::{Path, PathBuf};

use epitome::history::{History, Kind, Message, Part, Role};
use epitome::sessions::agents::claude_code::{read, sniff, write};
use epitome::sessions::parse::lines::each_line;
use epitome::sessions::{MemorySource, Mode, Piece, Session, Source as _};

use crate::corpus;

/// Transcripts of the corpus and of the client kit; says that the test is skipped where there are none.
fn sessions(test: &str) -> Vec<PathBuf> {
    corpus::sessions(test, &[corpus::corpus().join("claude-code"), corpus::samples().join("claude")])
}

fn open(path: &Path) -> (MemorySource, Session) {
    let source = MemorySource::new(path.to_string_lossy(), std::fs::read(path).unwrap());
    let session = read(&source).unwrap();
    (source, session)
}

/// What a history says, as far as a rewritten session has to say the same: neighbours of the user in one, because
/// they are so for the client; without ids, times and usage.
fn said(messages: &[Message]) -> Vec<(Role, Kind, Vec<Part>)> {
    let mut out: Vec<(Role, Kind, Vec<Part>)> = Vec::new();
    for it in messages {
        match out.last_mut().filter(|last| it.role == Role::User && (last.0, last.1) == (it.role, it.kind)) {
            Some(last) => last.2.extend(it.parts.iter().cloned()),
            None => out.push((it.role, it.kind, it.parts.clone())),
        }
    }
    out
}

#[test]
fn reads_every_session() {
    for path in sessions("reads_every_session") {
        let (source, session) = open(&path);
        let history = &session.history;
        let head = source.bytes(0..source.len().min(64 << 10)).unwrap();
        assert!(sniff(&epitome::history::json::mend(&head)), "{path:?}");
        let mut lines = 0;
        each_line(&source, |_, _, _| {
            lines += 1;
            Ok(true)
        })
        .unwrap();
        assert_eq!(session.records.len(), lines, "{path:?}");
        assert_eq!(session.origins.len(), history.messages().len());
        let mut used = std::collections::HashSet::new();
        for (number, message) in history.messages().iter().enumerate() {
            assert_eq!(message.from, Some(number as u32));
            assert!(!message.parts.is_empty(), "{path:?}: message {number}");
            assert!(
                session.origins[number].iter().all(|it| used.insert(*it)),
                "{path:?}: a record in two messages"
            );
            for output in message.outputs() {
                assert!(
                    history.call(&output.id, number).is_some(),
                    "{path:?}: an orphan in message {number}"
                );
            }
        }
        eprintln!(
            "{:>5} messages {:>4} prompts {:>5} outputs {:>2} past {:>3} notes  {}",
            history.messages().len(),
            history.messages().iter().filter(|it| it.is_prompt()).count(),
            history.messages().iter().flat_map(Message::outputs).count(),
            session.past.len(),
            session.notes.len(),
            path.file_name().unwrap().to_string_lossy()
        );
        for note in session.notes.iter().take(4) {
            eprintln!("        line {}: {}", note.line, note.what);
        }
    }
}

#[test]
fn without_a_change_no_byte_differs() {
    for path in sessions("without_a_change_no_byte_differs") {
        let (source, session) = open(&path);
        let written = write(&source, &session, &session.history, Mode::Patch).unwrap();
        assert_eq!(written.pieces, [Piece::Keep(0..source.len())], "{path:?}");
    }
}

#[test]
fn a_cleared_output_changes_its_record_alone() {
    for path in sessions("a_cleared_output_changes_its_record_alone") {
        let (source, session) = open(&path);
        let mut messages = session.history.messages().to_vec();
        let longest = messages
            .iter_mut()
            .flat_map(|it| &mut it.parts)
            .filter_map(|it| if let Part::Output(it) = it { Some(it) } else { None })
            .max_by_key(|it| it.text.size().bytes);
        let Some(output) = longest.filter(|it| it.text.size().bytes > 20) else { continue };
        output.text = "[cleared]".into();
        output.media = [].into();
        let after = History::new(messages, session.history.meta.clone());
        let written = write(&source, &session, &after, Mode::Patch).unwrap();
        assert_eq!(written.warnings, Vec::<String>::new(), "{path:?}");
        let (old, new) = (source.bytes(0..source.len()).unwrap(), written.bytes(&source).unwrap());
        assert_eq!(old.len(), new.len(), "{path:?}");
        let differ = session.records.iter().filter(|it| {
            let range = it.at as usize..(it.at + it.len) as usize;
            old[range.clone()] != new[range]
        });
        assert_eq!(differ.count(), 1, "{path:?}");
        let again = read(&MemorySource::new(source.name(), new)).unwrap();
        assert_eq!(said(again.history.messages()), said(after.messages()), "{path:?}");
    }
}

#[test]
fn what_is_written_reads_the_same() {
    for path in sessions("what_is_written_reads_the_same") {
        let (source, session) = open(&path);
        let old = session.history.messages();
        let mut cases = vec![("all of it", old.to_vec())];
        let prompts: Vec<usize> = (0..old.len()).filter(|it| old[*it].is_prompt()).collect();
        for from in [prompts.last(), prompts.get(prompts.len() / 2)].into_iter().flatten() {
            let from = session.history.cut_at_or_before(*from);
            let mut messages =
                vec![Message::text(Role::User, Kind::Summary, "What was done so far.\n\u{1F600} \"x\"")];
            messages.extend_from_slice(&old[from..]);
            cases.push(("summary and tail", messages));
        }
        for (what, mut messages) in cases {
            for part in messages.iter_mut().flat_map(|it| &mut it.parts) {
                if let Part::Output(it) = part
                    && it.text.size().bytes > 5000
                {
                    it.text = "[shortened]\nhere".into();
                }
            }
            let after = History::new(messages, session.history.meta.clone());
            for mode in [Mode::New, Mode::Append] {
                let written = write(&source, &session, &after, mode).unwrap();
                assert_eq!(written.warnings, Vec::<String>::new());
                let bytes = written.bytes(&source).unwrap();
                let again = read(&MemorySource::new(source.name(), bytes)).unwrap();
                assert_eq!(
                    said(again.history.messages()),
                    said(after.messages()),
                    "{path:?}: {what}, {mode:?}"
                );
                if mode == Mode::New {
                    assert_eq!(again.notes, []);
                    assert!(again.history.messages().iter().all(|it| it.usage.is_none()));
                }
            }
        }
    }
}
