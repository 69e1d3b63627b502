//! The laws of the formats that are only read, over real sessions (skipped where they are not found).

use epitome::history::Message;
use epitome::history::error::Result;
use epitome::sessions::agents::{opencode, pi, swe_agent};
use epitome::sessions::{MemorySource, Mode, Session, Source, write};

use crate::corpus;

type Read = fn(&dyn Source) -> Result<Session>;

fn laws(folder: &str, sniff: fn(&str) -> bool, read: Read) {
    for path in corpus::of_corpus(&format!("laws of {folder}"), &[folder]) {
        let name = path.display();
        let bytes = std::fs::read(&path).unwrap();
        assert!(sniff(&epitome::history::json::mend(&bytes[..bytes.len().min(65_536)])), "{name}");
        let source = MemorySource::new(name.to_string(), bytes.clone());
        let session = read(&source).unwrap();
        let messages = session.history.messages();
        assert!(messages.len() >= 4 && messages.iter().any(Message::is_prompt), "{name}");
        let mut outputs = 0;
        for (index, message) in messages.iter().enumerate() {
            assert_eq!(message.from, Some(index as u32));
            for output in message.outputs() {
                outputs += 1;
                assert!(session.history.call(&output.id, index).is_some(), "{name} {index}");
            }
        }
        let calls = messages.iter().flat_map(Message::calls).count();
        assert!(calls - outputs <= 1, "{name}: {calls} calls, {outputs} outputs");
        let out = write(&source, &session, &session.history, Mode::Patch).unwrap();
        assert_eq!(out.bytes(&source).unwrap(), bytes, "{name}");
        let cut = MemorySource::new("cut", &bytes[..bytes.len() * 9 / 10]);
        let cut = read(&cut).unwrap();
        assert!(!cut.notes.is_empty() || folder == "sweagent-traj", "{name}");
        assert_eq!(cut.records[..cut.records.len() - 1], session.records[..cut.records.len() - 1], "{name}");
    }
}

#[test]
fn pi_sessions() {
    laws("pi", pi::sniff, pi::read);
}

#[test]
fn swe_agent_trajectories() {
    laws("sweagent-traj", swe_agent::sniff, swe_agent::read);
}

#[test]
fn each_knows_only_its_own() {
    let Ok(folders) = std::fs::read_dir(corpus::corpus()) else {
        eprintln!("SKIPPED: each_knows_only_its_own: no corpus found");
        return;
    };
    for folder in
        folders.map(|it| it.unwrap()).filter(|it| it.path().is_dir() && it.file_name() != "licenses")
    {
        for path in std::fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().path()) {
            let bytes = std::fs::read(&path).unwrap();
            let head = epitome::history::json::mend(&bytes[..bytes.len().min(65_536)]);
            let said = [opencode::sniff(&head), pi::sniff(&head), swe_agent::sniff(&head)];
            let name = folder.file_name();
            assert_eq!(
                said,
                [name == "opencode", name == "pi", name == "sweagent-traj"],
                "{}",
                path.display()
            );
        }
    }
}
