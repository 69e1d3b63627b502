//! Every session in the archive: those that lie there now, and what the hooks leave to a process.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use epitome::history::secrets::Redactor;
use epitome::store::{Scope, SearchExtent, Store, StoreAt};
use serde_json::json;

use super::program::{answer, claude, codex, command, epitome, keep, refused, store};

const IDS: [&str; 2] = ["00000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000b"];

/// Puts a session of Claude Code and one of Codex into a home.
fn home() -> (tempfile::TempDir, [std::path::PathBuf; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let one = keep(home, home, "claude-code", IDS[0], claude(IDS[0], home, 0..3, 40).as_bytes());
    let two = keep(home, home, "codex", IDS[1], codex(IDS[1], home, 0..3, 40).as_bytes());
    (folder, [one, two])
}

fn archived(home: &Path) -> Vec<Vec<u8>> {
    let store = Store::open(&StoreAt::Path(store(home)), Redactor::default()).unwrap();
    let here = Scope { owner: "local".into(), project: home.display().to_string() };
    let found = store.sessions(&here, &SearchExtent::All, 100).unwrap();
    let restored = found.iter().map(|it| {
        let scope = store.locate(it.handle.as_str(), "local").unwrap();
        store.restore(&scope, it.handle.as_str()).unwrap()
    });
    restored.collect()
}

#[test]
fn sessions_are_archived_once_and_again_when_they_changed() {
    let (folder, paths) = home();
    let home = folder.path();
    let run = |arguments: &[&str]| answer(&epitome(home, arguments));
    let first = run(&["sessions", "--keep", "--json"]);
    assert_eq!((first["kept"].as_u64(), first["failed"].as_array().unwrap().len()), (Some(2), 0), "{first}");
    let again = run(&["sessions", "--keep", "--json"]);
    assert_eq!((again["kept"].as_u64(), again["unchanged"].as_u64()), (Some(0), Some(2)), "{again}");
    let before: Vec<_> = paths.iter().map(|it| std::fs::read(it).unwrap()).collect();
    let grown = [&before[0][..], b"{\"type\":\"queue-operation\"}\n"].concat();
    std::fs::write(&paths[0], &grown).unwrap();
    assert_eq!(run(&["sessions", "--keep", "--json"])["kept"], 1);
    let all = archived(home);
    assert_eq!(all.len(), 3);
    assert!([&before[0], &before[1], &grown].iter().all(|it| all.contains(it)));
    // The agent deletes them; nothing is lost, and what was said is found.
    paths.iter().for_each(|it| std::fs::remove_file(it).unwrap());
    assert_eq!(run(&["sessions", "--keep", "--json"])["unchanged"], 0);
    assert_eq!(archived(home).len(), 3);
    let found = run(&["recall", "Look at everything", "--json"]);
    assert!(found.to_string().contains(IDS[0]) && found.to_string().contains(IDS[1]), "{found}");
    // What is let go of by age goes by the session's age, and only when somebody says so.
    let gone = run(&["memory", "gc", "--before", "90d", "--dry-run", "--json"]);
    assert_eq!(gone["collected"]["originals"], 0, "{gone}");
    let gone = run(&["memory", "gc", "--before", "2999-01-01T00:00:00Z", "--dry-run", "--json"]);
    assert_eq!(gone["collected"]["originals"], 3, "{gone}");
    assert_eq!(archived(home).len(), 3);
}

#[test]
fn nothing_is_archived_where_the_user_wants_nothing_kept() {
    let (folder, _) = home();
    let mut none = command(folder.path(), folder.path(), &["sessions", "--keep"]);
    let why = refused(&none.env("EPITOME_PERSISTENCE", "none").output().unwrap());
    assert!(why.contains("archiving is switched off"), "{why}");
    assert!(!store(folder.path()).exists());
}

/// Runs the hook with an event.
fn hook(home: &Path, event: &str) {
    let said = json!({"session_id": IDS[0], "hook_event_name": event, "cwd": home, "reason": "exit"});
    let mut child =
        command(home, home, &["hook"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(said.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
}

#[test]
fn hooks_leave_it_to_a_process_and_can_be_told_not_to() {
    for (event, config, keeps) in [
        ("SessionEnd", "", true),
        ("SessionStart", "", true),
        ("SessionEnd", "[store]\nkeep-sessions = false\n", false),
        ("UserPromptSubmit", "", false),
    ] {
        let (folder, _) = home();
        let home = folder.path();
        std::fs::create_dir_all(home.join(".config/epitome")).unwrap();
        std::fs::write(home.join(".config/epitome/config.toml"), config).unwrap();
        hook(home, event);
        if !keeps {
            // It is noted before it begins.
            let store = Store::open(&StoreAt::Path(store(home)), Redactor::default()).unwrap();
            let nowhere = Scope { owner: "local".into(), project: String::new() };
            assert_eq!(store.marked(&nowhere, "keeping").unwrap(), None, "{event} {config}");
            continue;
        }
        let begun = Instant::now();
        while archived(home).len() < 2 {
            assert!(begun.elapsed() < Duration::from_secs(60), "{event}: nothing was archived");
            std::thread::yield_now();
        }
    }
}
