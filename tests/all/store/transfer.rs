//! A session exported in one home and imported in another, and a session file that comes from elsewhere.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::program::{answer, claude, codex, command, keep, refused, store};
use crate::apply::example;

const ID: &str = "00000000-0000-4000-8000-00000000000a";

/// A home with a project in it.
pub(super) struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Self { folder }
    }

    pub(super) fn home(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub(super) fn project(&self) -> PathBuf {
        self.home().join("work")
    }

    pub(super) fn run(&self, arguments: &[&str]) -> std::process::Output {
        command(&self.home(), &self.project(), arguments).output().unwrap()
    }

    pub(super) fn answer(&self, arguments: &[&str]) -> Value {
        answer(&self.run(&[arguments, &["--json"]].concat()))
    }

    /// Every file but the archive's own.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let mut out = Vec::new();
        let mut open = vec![self.home()];
        while let Some(folder) = open.pop() {
            for it in std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()) {
                if it.is_dir() { open.push(it) } else { out.push(it) }
            }
        }
        out.retain(|it| it.parent() != Some(store(&self.home()).as_path()));
        out.sort();
        out
    }
}

pub(super) fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn an_exported_session_is_found_and_whole_in_another_home_and_project() {
    for agent in ["claude-code", "codex"] {
        let (one, other) = (Machine::new(), Machine::new());
        let cwd = one.project();
        let bytes = if agent == "codex" { codex(ID, &cwd, 0..30, 60) } else { claude(ID, &cwd, 0..30, 60) };
        let path = keep(&one.home(), &cwd, agent, ID, bytes.as_bytes());
        if agent == "claude-code" {
            let beside = path.with_extension("").join("subagents");
            std::fs::create_dir_all(&beside).unwrap();
            std::fs::write(beside.join("agent-x.jsonl"), format!("{{\"cwd\":\"{}/deep\"}}\n", cwd.display()))
                .unwrap();
        }
        let done = one.answer(&["compact", ID, "--budget", "30%", "--apply"]);
        assert_eq!(done["status"], "compacted", "{agent}: {done}");
        let (id, handle) = (done["session_id"].as_str().unwrap(), done["handle"].as_str().unwrap());
        let archived = one.run(&["restore", handle, "--out", "-"]).stdout;
        assert!(!archived.is_empty());
        let file = one.project().join("s.epitome");
        let file = file.to_str().unwrap();
        let there = one.project().join("there");
        std::fs::write(&there, "mine").unwrap();
        let there = there.to_str().unwrap();
        // Whichever of the two is taken along: Claude Code's compaction made a new one.
        for id in [id, ID] {
            let _ = std::fs::remove_file(file);
            let exported = one.answer(&["export", id, "-o", file]);
            assert_eq!(exported["session_id"], id, "{agent}: {exported}");
            assert!(refused(&one.run(&["export", id, "-o", there])).contains("found another one"));
            let imported = other.answer(&["import", file, "--here"]);
            assert_eq!(
                (&imported["session_id"], &imported["agent"]),
                (&Value::from(id), &Value::from(agent))
            );
            let resume = imported["resume"].as_str().unwrap();
            assert!(
                resume.starts_with(&format!("cd {} && ", other.project().display())) && resume.contains(id),
                "{resume}"
            );
            // Only the directories differ.
            let found = |it: &Machine| {
                let listed = it.answer(&["sessions", "--here"]);
                let row =
                    listed["sessions"].as_array().unwrap().iter().find(|it| it["id"] == id).unwrap().clone();
                PathBuf::from(row["path"].as_str().unwrap())
            };
            let (from, to) = (found(&one), found(&other));
            let (old, new) = (one.project().display().to_string(), other.project().display().to_string());
            assert!(imported["directories_changed"].as_u64() > Some(0));
            assert_eq!(text(&to), text(&from).replace(&format!("\"{old}"), &format!("\"{new}")), "{agent}");
            // What the session's placeholders and summary name is there by the same handle.
            assert!(other.run(&["restore", handle, "--out", "-"]).stdout == archived, "{agent} {id}");
            let tokens = |it: &Machine| it.answer(&["estimate", id])["tokens"].clone();
            assert_eq!(tokens(&one), tokens(&other), "{agent}");
        }
        if agent == "claude-code" {
            let moved = other.files().into_iter().find(|it| it.ends_with("subagents/agent-x.jsonl")).unwrap();
            assert_eq!(text(&moved), format!("{{\"cwd\":\"{}/deep\"}}\n", other.project().display()));
        }
        let listed = other.answer(&["sessions", "--here"]);
        assert!(listed.to_string().contains("\"tokens_before\""), "{agent}: {listed}");
        // Imported again it is the same; not once it was written to.
        other.answer(&["import", file, "--here"]);
        let before = other.files();
        let listed = other.answer(&["sessions", "--here"]);
        let row = listed["sessions"].as_array().unwrap().iter().find(|it| it["id"] == ID).unwrap().clone();
        let path = PathBuf::from(row["path"].as_str().unwrap());
        std::fs::write(&path, text(&path) + "\n").unwrap();
        assert!(refused(&other.run(&["import", file, "--here"])).contains("nothing was"), "{agent}");
        let elsewhere = other.home().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        let output = command(&other.home(), &elsewhere, &["import", file, "--here"]).output().unwrap();
        assert!(!output.status.success() || agent == "codex", "{agent}");
        assert_eq!(other.files(), before, "{agent}");
    }
}

#[test]
fn a_session_file_from_elsewhere_is_put_where_its_agent_finds_it() {
    for (agent, name, id) in [
        ("claude-code", "claude-code.jsonl", "3d0c7a52-6f1e-4c58-9a41-0b8e5f2c7d10"),
        ("codex", "codex.jsonl", ""),
        ("gemini-cli", "gemini-cli.jsonl", ""),
        ("opencode", "opencode.json", ""),
    ] {
        let machine = Machine::new();
        let file = machine.home().join(name);
        std::fs::write(&file, example(name)).unwrap();
        let file = file.to_str().unwrap();
        let why = refused(&machine.run(&["import", file]));
        assert!(why.contains("--here"), "{agent}: {why}");
        let done = machine.answer(&["import", file, "--here"]);
        assert_eq!(done["agent"], agent, "{done}");
        assert!(id.is_empty() || done["session_id"] == id);
        let output = Path::new(done["output"].as_str().unwrap());
        let said = |path: &str| machine.answer(&["estimate", path])["tokens"].clone();
        assert_eq!(said(output.to_str().unwrap()), said(file), "{agent}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(output.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        // Those that have a folder for it are asked by its id from now on.
        if ["claude-code", "codex"].contains(&agent) {
            let id = done["session_id"].as_str().unwrap();
            assert_eq!(machine.answer(&["estimate", id])["tokens"], said(file), "{agent}");
            let there = machine.answer(&["sessions", "--here"]);
            assert_eq!(there["sessions"][0]["directory"], machine.project().to_str().unwrap(), "{there}");
        } else {
            assert!(done["resume"].as_str().unwrap().contains(output.to_str().unwrap()), "{done}");
        }
        if agent != "codex" {
            let into = machine.answer(&["import", file, "--here", "--agent", "codex"]);
            assert_eq!(into["agent"], "codex", "{into}");
            let id = into["session_id"].as_str().unwrap();
            assert!(machine.answer(&["estimate", id])["tokens"].as_u64() > Some(0));
        }
    }
    let machine = Machine::new();
    let file = machine.home().join("messages.json");
    std::fs::write(&file, r#"{"messages":[{"role":"user","content":"hello"}]}"#).unwrap();
    let why = refused(&machine.run(&["import", file.to_str().unwrap(), "--here"]));
    assert!(why.contains("expected a session of"), "{why}");
}

#[test]
fn a_container_that_is_damaged_newer_or_hostile_changes_nothing() {
    let (one, other) = (Machine::new(), Machine::new());
    let cwd = one.project();
    keep(&one.home(), &cwd, "claude-code", ID, claude(ID, &cwd, 0..4, 40).as_bytes());
    let file = one.project().join("s.epitome");
    one.answer(&["export", ID, "-o", file.to_str().unwrap()]);
    let good = std::fs::read(&file).unwrap();
    let plain = zstd::stream::decode_all(good.as_slice()).unwrap();
    let edited = |from: &str, to: &str| {
        let at = plain.iter().position(|it| *it == b'\n').unwrap();
        let line = String::from_utf8(plain[..at].to_vec()).unwrap();
        assert!(line.contains(from), "{line}");
        let whole = [line.replacen(from, to, 1).as_bytes(), &plain[at..]].concat();
        zstd::stream::encode_all(whole.as_slice(), 3).unwrap()
    };
    let body = {
        let mut bytes = plain.clone();
        let last = bytes.len() - 20;
        bytes[last] ^= 1;
        zstd::stream::encode_all(bytes.as_slice(), 3).unwrap()
    };
    let name = format!("\"file\":\"{ID}.jsonl\"");
    let cut = good[..good.len() / 2].to_vec();
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 0x40;
    let longer = zstd::stream::encode_all([&plain[..], b"more"].concat().as_slice(), 3).unwrap();
    for (bytes, says) in [
        (cut, "cut or damaged"),
        (flipped, "damaged"),
        (body, "body 0 of 1 cut or damaged"),
        (longer, "more than it lists"),
        (edited("\"epitome-session\":1", "\"epitome-session\":2"), "version 2, which is newer"),
        (edited("\"epitome-session\":1", "\"something\":1"), "something else"),
        (edited("\"compactions\":[]", "\"compactions\":3"), "its list unreadable"),
        (edited("\"agent\":\"claude-code\"", "\"agent\":\"nobody\""), "nobody"),
        (edited("\"agent\":\"claude-code\"", "\"agent\":\"pi\""), "expected a session of"),
        (edited(&name, "\"file\":\"../../x.jsonl\""), "points outside"),
        (edited(&name, "\"file\":\"/etc/x.jsonl\""), "points outside"),
        (edited(&name, "\"file\":\"\""), "points outside"),
        (zstd::stream::encode_all(&b"{}\n"[..], 3).unwrap(), "something else"),
        (zstd::stream::encode_all(&b""[..], 3).unwrap(), "something else"),
        (b"\x28\xb5\x2f\xfd".to_vec(), "damaged"),
    ] {
        std::fs::write(&file, bytes).unwrap();
        let why = refused(&other.run(&["import", file.to_str().unwrap(), "--here"]));
        assert!(why.contains(says), "{says}: {why}");
        assert_eq!(other.files(), Vec::<PathBuf>::new(), "{says}");
        let beside = std::fs::read_dir(store(&other.home())).unwrap().map(|it| it.unwrap().file_name());
        let left: Vec<_> = beside.filter(|it| !it.to_string_lossy().starts_with("epitome.db")).collect();
        assert_eq!(left, Vec::<std::ffi::OsString>::new(), "{says}");
    }
    std::fs::write(&file, good).unwrap();
    assert_eq!(other.answer(&["import", file.to_str().unwrap(), "--here"])["session_id"], ID);
}
