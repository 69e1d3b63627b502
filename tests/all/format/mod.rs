//! What the tests of native formats share: real sessions, and the laws of reading and writing.

mod claude_code;
mod codex;
mod gemini_cli;
mod opencode;
mod opencode_export;
mod read_only;
mod wire;

use std::path::PathBuf;

use epitome::history::error::Result;
use epitome::history::{History, Kind, Message, Part, Role};
use epitome::sessions::{MemorySource, Mode, Session, Source, Written};

use crate::corpus;

type Read = fn(&dyn Source) -> Result<Session>;
type Write = fn(&dyn Source, &Session, &History, Mode) -> Result<Written>;

/// The sessions of the corpus and of the client samples; says so where there are none.
pub fn sessions(test: &str, corpus: &str, clients: &[&str]) -> Vec<(String, MemorySource)> {
    let mut folders = vec![corpus::corpus().join(corpus)];
    folders.extend(clients.iter().map(|it| corpus::samples().join(it)));
    let memory = |path: PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name.clone(), MemorySource::new(name, std::fs::read(&path).unwrap()))
    };
    corpus::sessions(test, &folders).into_iter().map(memory).collect()
}

/// A message on one line, as far as a model sees it.
pub fn shape(message: &Message) -> String {
    let parts: Vec<String> = message
        .parts
        .iter()
        .map(|it| match it {
            Part::Text(it) => it.as_str().to_owned(),
            Part::Reasoning(it) => {
                format!("think {} {}", it.text.as_str(), it.signature.as_ref().map_or("", |it| it.as_str()))
            }
            Part::Call(it) => format!("call {} {} {}", it.id, it.name, it.input.as_str()),
            Part::Output(it) => {
                let media: String = it.media.iter().map(|it| format!(" {:?} {}", it.kind, it.data)).collect();
                format!(
                    "output {}{} {}{media}",
                    it.id,
                    if it.failed { " failed" } else { "" },
                    it.text.as_str()
                )
            }
            Part::Media(it) => format!("{:?} {} {}", it.kind, it.mime, it.data),
            Part::Opaque(it) => format!("opaque {} {}", it.kind, it.raw.as_str()),
        })
        .collect();
    format!("{:?} {:?} {}", message.role, message.kind, parts.join(" | "))
}

fn shapes(history: &History) -> Vec<String> {
    history.messages().iter().map(shape).collect()
}

fn bytes(source: &dyn Source) -> Vec<u8> {
    source.bytes(0..source.len()).unwrap()
}

/// Unchanged: a patch is the same bytes; appended or new, the same history is read back.
pub fn after_laws(source: &MemorySource, read: Read, write: Write, session: &Session) {
    for (number, message) in session.history.messages().iter().enumerate() {
        assert_eq!(message.from, Some(number as u32));
        for record in &session.origins[number] {
            assert!((*record as usize) < session.records.len());
        }
    }
    assert_eq!(session.origins.len(), session.history.messages().len());
    let patched = write(source, session, &session.history, Mode::Patch).unwrap();
    assert!(
        patched.bytes(source).unwrap() == bytes(source),
        "{}: an empty patch changes bytes",
        source.name()
    );
    read_back(source, read, write, session, &session.history);
}

/// Appended and new, `after` is read back; appended, the old bytes stay.
pub fn read_back(source: &MemorySource, read: Read, write: Write, session: &Session, after: &History) {
    for mode in [Mode::Append, Mode::New] {
        let written = match write(source, session, after, mode) {
            Ok(written) => written,
            Err(error) if mode == Mode::New && error.detail().contains("session_meta") => continue,
            Err(error) => panic!("{error}"),
        };
        let text = written.bytes(source).unwrap();
        let back = read(&MemorySource::new(source.name(), text.clone())).unwrap();
        let (expected, found) = (shapes(after), shapes(&back.history));
        for (number, (expected, found)) in expected.iter().zip(&found).enumerate() {
            assert_eq!(found, expected, "{} {mode:?} message {number}", source.name());
        }
        assert_eq!(found.len(), expected.len(), "{} {mode:?}", source.name());
        let again = write(source, session, after, mode).unwrap();
        assert!(again == written, "{}: not the same bytes twice", source.name());
        assert_eq!(written.session.is_some(), mode == Mode::New);
        // Written again from what was read back: nothing piles up.
        let patched =
            write(&MemorySource::new("m", text.clone()), &back, &back.history, Mode::Patch).unwrap();
        assert!(patched.bytes(&MemorySource::new("m", text.clone())).unwrap() == text);
    }
}

/// With the largest output cleared, only its records differ, and it is read back.
pub fn stub_largest(source: &MemorySource, read: Read, write: Write, session: &Session) {
    let mut messages = session.history.messages().to_vec();
    let size = |it: &Message| it.outputs().map(|it| it.text.size().bytes).sum::<u64>();
    let Some(index) =
        (0..messages.len()).max_by_key(|it| size(&messages[*it])).filter(|it| size(&messages[*it]) > 0)
    else {
        return;
    };
    for part in &mut messages[index].parts {
        if let Part::Output(output) = part {
            output.text = "[cleared: \"x\"\n]".into();
            output.failed = false;
        }
    }
    let after = History::new(messages, session.history.meta.clone());
    let written = write(source, session, &after, Mode::Patch).unwrap();
    if !written.warnings.is_empty() {
        return;
    }
    let text = written.bytes(source).unwrap();
    let back = read(&MemorySource::new(source.name(), text.clone())).unwrap();
    let clean = |history: &History| {
        shapes(history).iter().map(|it| it.replacen(" failed ", " ", 1)).collect::<Vec<_>>()
    };
    assert_eq!(clean(&back.history), clean(&after), "{}", source.name());
    assert_eq!(back.records.len(), session.records.len());
    for (number, (old, new)) in session.records.iter().zip(&back.records).enumerate() {
        let same = bytes(source)[old.at as usize..][..old.len as usize]
            == text[new.at as usize..][..new.len as usize];
        assert_eq!(
            same,
            !session.origins[index].contains(&(number as u32)),
            "{} record {number} of message {index}",
            source.name()
        );
    }
}

/// A summary, an acknowledgement, and the second half of the units.
pub fn compacted(source: &MemorySource, read: Read, write: Write, session: &Session) {
    let history = &session.history;
    let cut = history.cut_at_or_before(history.messages().len() / 2);
    // What the client put first stays first.
    let head = history.messages().iter().take_while(|it| it.kind == Kind::Context).count();
    if head >= cut {
        return;
    }
    let mut messages = history.messages()[..head].to_vec();
    messages.push(Message::text(Role::User, Kind::Summary, "What happened so far: everything."));
    messages.push(Message::text(Role::Assistant, Kind::Ack, "Understood."));
    messages.extend_from_slice(&history.messages()[cut..]);
    // A client's context that stands between the turns comes back by itself; leave such sessions to the other law.
    let first = history.messages().iter().position(|it| it.kind == Kind::Context).unwrap_or(0);
    if head == 0 && first > 0 && first < cut {
        return;
    }
    read_back(source, read, write, session, &History::new(messages, history.meta.clone()));
}
