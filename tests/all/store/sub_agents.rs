//! The sessions of sub-agents, which Codex and OpenCode keep as any other, taken along with the one that started them.

use std::path::Path;

use serde_json::json;

use super::program::{codex, keep, refused};
use super::transfer::{Machine, text};
use crate::apply::{database, example};

const PARENT: &str = "00000000-0000-4000-8000-00000000000a";
const CHILD: &str = "00000000-0000-4000-8000-00000000000b";
const GRANDCHILD: &str = "00000000-0000-4000-8000-00000000000c";
const OTHER: &str = "00000000-0000-4000-8000-00000000000d";

/// A rollout of the project that another thread started.
fn started_by(parent: &str, id: &str, cwd: &Path) -> String {
    let source = json!({"subagent": {"thread_spawn": {"parent_thread_id": parent, "depth": 1}}});
    codex(id, cwd, 0..20, 40).replacen("\"source\":\"exec\"", &format!("\"source\":{source}"), 1)
}

#[test]
fn threads_that_codex_started_travel_with_the_one_that_started_them() {
    let (one, other) = (Machine::new(), Machine::new());
    let cwd = one.project();
    keep(&one.home(), &cwd, "codex", PARENT, codex(PARENT, &cwd, 0..30, 60).as_bytes());
    let child = keep(&one.home(), &cwd, "codex", CHILD, started_by(PARENT, CHILD, &cwd).as_bytes());
    keep(&one.home(), &cwd, "codex", GRANDCHILD, started_by(CHILD, GRANDCHILD, &cwd).as_bytes());
    keep(&one.home(), &cwd, "codex", OTHER, started_by("gone", OTHER, &cwd).as_bytes());
    let done = one.answer(&["compact", CHILD, "--budget", "30%", "--apply"]);
    assert_eq!(done["status"], "compacted", "{done}");
    let handle = done["handle"].as_str().unwrap();
    let archived = one.run(&["restore", handle, "--out", "-"]).stdout;
    assert!(!archived.is_empty());
    let file = one.project().join("s.epitome");
    let file = file.to_str().unwrap();
    let exported = one.answer(&["export", PARENT, "-o", file]);
    assert_eq!(
        (exported["files"].as_u64(), exported["compactions"].as_u64()),
        (Some(3), Some(1)),
        "{exported}"
    );
    let imported = other.answer(&["import", file, "--here"]);
    assert_eq!(imported["session_id"], PARENT);
    let listed = other.answer(&["sessions", "--here"]);
    let parent = |id: &str| {
        let found = listed["sessions"].as_array().unwrap().iter().find(|it| it["id"] == id);
        found.map(|it| it["parent"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(parent(PARENT).as_deref(), Some(""), "{listed}");
    assert_eq!(parent(CHILD).as_deref(), Some(PARENT), "{listed}");
    assert_eq!(parent(GRANDCHILD).as_deref(), Some(CHILD), "{listed}");
    assert_eq!(parent(OTHER), None);
    // Only the directories differ, and what was archived of the sub-agent is there by the same handle.
    let moved = other.home().join(child.strip_prefix(one.home()).unwrap());
    let (old, new) = (one.project().display().to_string(), other.project().display().to_string());
    assert_eq!(text(&moved), text(&child).replace(&format!("\"{old}"), &format!("\"{new}")));
    assert!(other.run(&["restore", handle, "--out", "-"]).stdout == archived);
    // Imported again it is the same; not once one of them was written to, and then nothing of it is written.
    other.answer(&["import", file, "--here"]);
    let third = Machine::new();
    let mine = keep(&third.home(), &cwd, "codex", GRANDCHILD, b"mine");
    let before = third.files();
    let why = refused(&third.run(&["import", file, "--here"]));
    assert!(why.contains("found another one"), "{why}");
    assert_eq!((third.files(), text(&mine)), (before, "mine".to_owned()));
    // Another agent has no place for them.
    let into = third.answer(&["import", file, "--here", "--agent", "claude-code"]);
    assert!(into["warnings"].to_string().contains("2 sub-agents were not imported"), "{into}");
}

#[test]
fn sessions_that_opencode_started_travel_and_are_taken_in_before_the_one_is_resumed() {
    let (one, other) = (Machine::new(), Machine::new());
    let folder = one.home().join(".local/share/opencode");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("opencode.db");
    let id = database(&path, &example("opencode.json"));
    let child = "ses_ffffffffffffchildchildchil";
    {
        let rows = rusqlite::Connection::open(&path).unwrap();
        rows.execute("UPDATE session SET directory = ?1", [one.project().to_str().unwrap()]).unwrap();
        for sql in [
            "INSERT INTO session SELECT ?1, project_id, id, slug, directory, 'Its part', version, 1, 2 FROM session",
            "INSERT INTO message SELECT 'msg_sub', ?1, time_created, time_updated, data FROM message ORDER BY id LIMIT 1",
            "INSERT INTO part VALUES ('prt_sub', 'msg_sub', ?1, 1, 1, '{\"type\":\"text\",\"text\":\"look around\"}')",
        ] {
            rows.execute(sql, [child]).unwrap();
        }
    }
    let file = one.project().join("s.epitome");
    let file = file.to_str().unwrap();
    let exported = one.answer(&["export", &id, "-o", file]);
    assert_eq!(exported["files"].as_u64(), Some(2), "{exported}");
    let imported = other.answer(&["import", file, "--here"]);
    let resume = imported["resume"].as_str().unwrap();
    let placed = other.files().into_iter().find(|it| it.ends_with(format!("{child}.json"))).unwrap();
    let import = format!("opencode import {} && opencode import ", placed.display());
    assert!(resume.contains(&import) && resume.ends_with(&format!("--session {id}")), "{resume}");
    let whole: serde_json::Value = serde_json::from_str(&text(&placed)).unwrap();
    assert_eq!((&whole["info"]["parentID"], &whole["info"]["id"]), (&json!(id), &json!(child)));
    assert_eq!(whole["info"]["directory"], other.project().to_str().unwrap());
    assert!(whole.to_string().contains("look around"));
}

#[test]
fn a_sub_agent_whose_file_points_elsewhere_is_refused() {
    let (one, other) = (Machine::new(), Machine::new());
    let cwd = one.project();
    keep(&one.home(), &cwd, "codex", OTHER, codex(OTHER, &cwd, 0..4, 40).as_bytes());
    keep(&one.home(), &cwd, "codex", CHILD, started_by(OTHER, CHILD, &cwd).as_bytes());
    let file = one.project().join("s.epitome");
    one.answer(&["export", OTHER, "-o", file.to_str().unwrap()]);
    let plain = zstd::stream::decode_all(std::fs::read(&file).unwrap().as_slice()).unwrap();
    let name = format!("\"file\":\"rollout-2026-01-01T00-00-00-{CHILD}.jsonl\"");
    for elsewhere in ["\"file\":\"../../x.jsonl\"", "\"file\":\"a/x.jsonl\"", "\"file\":\"/etc/x.jsonl\""] {
        let at = plain.iter().position(|it| *it == b'\n').unwrap();
        let line = String::from_utf8(plain[..at].to_vec()).unwrap();
        assert!(line.contains(&name), "{line}");
        let whole = [line.replacen(&name, elsewhere, 1).as_bytes(), &plain[at..]].concat();
        std::fs::write(&file, zstd::stream::encode_all(whole.as_slice(), 3).unwrap()).unwrap();
        let why = refused(&other.run(&["import", file.to_str().unwrap(), "--here"]));
        assert!(why.contains("points outside"), "{elsewhere}: {why}");
        assert!(other.files().is_empty());
    }
}
