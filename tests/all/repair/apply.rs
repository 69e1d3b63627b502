//! `epitome repair` itself: a preview changes nothing, `--apply` archives first, `undo` brings the damage back.

use std::fs;
use std::io::Write as _;

use epitome::sessions::repair::Damage;
use serde_json::Value;

use super::damages;
use crate::apply::{Home, answer, database, epitome, home};

/// A home whose session is damaged.
fn damaged(agent: &str, damage: Damage) -> Home {
    let there = home(agent);
    let bytes = damages::made(agent, damage).unwrap().bytes;
    if agent == "opencode" {
        fs::remove_file(&there.file).unwrap();
        database(&there.file, &bytes);
    } else {
        fs::write(&there.file, bytes).unwrap();
    }
    there
}

/// What stands in the session's place.
fn content(there: &Home) -> Vec<u8> {
    if there.file.extension().is_none_or(|it| it != "db") {
        return fs::read(&there.file).unwrap();
    }
    let db = rusqlite::Connection::open(&there.file).unwrap();
    let mut all = db
        .prepare("SELECT id || data FROM message UNION ALL SELECT id || data FROM part ORDER BY 1")
        .unwrap();
    let rows = all.query_map([], |it| it.get::<_, String>(0)).unwrap();
    rows.map(|it| it.unwrap() + "\n").collect::<String>().into_bytes()
}

fn repair(there: &Home, options: &[&str]) -> Value {
    let arguments = [&["repair", there.session.as_str(), "--json"], options].concat();
    answer(&epitome(there.path(), &arguments))
}

#[test]
fn repaired_in_place_and_undone() {
    for (agent, damage) in [
        ("claude-code", Damage::UnknownParent),
        ("claude-code", Damage::ImageTooWide),
        ("codex", Damage::BadUtf8),
        ("codex", Damage::MissingHeader),
        ("gemini-cli", Damage::UnansweredCall),
        ("opencode", Damage::RunningTool),
        ("opencode", Damage::ImageTooLarge),
    ] {
        let there = damaged(agent, damage);
        let before = content(&there);
        let seen = repair(&there, &[]);
        assert_eq!(seen["status"], "damaged", "{agent}: {seen}");
        assert_eq!(seen["counts"][damage.name()], 1, "{agent}: {seen}");
        assert_eq!(content(&there), before, "{agent}: a preview writes nothing");
        let done = repair(&there, &["--apply"]);
        assert_eq!(done["status"], "repaired", "{agent}: {done}");
        assert_ne!(content(&there), before, "{agent}");
        let again = repair(&there, &["--apply"]);
        assert_eq!(again["status"], "sound", "{agent}: {again}");
        if matches!(damage, Damage::ImageTooWide | Damage::ImageTooLarge) {
            let text = String::from_utf8(content(&there)).unwrap();
            let (_, rest) = text.split_once("Original: epitome recall ").unwrap();
            let recalled = epitome(there.path(), &["restore", &rest[..10], "--out", "-"]);
            assert!(recalled.stdout.starts_with(b"iVBOR"), "{agent}: the image is archived under its handle");
        }
        let undone = answer(&epitome(there.path(), &["undo", done["handle"].as_str().unwrap(), "--json"]));
        assert_eq!(undone["status"], "restored", "{agent}: {undone}");
        assert_eq!(content(&there), before, "{agent}, {}", damage.name());
    }
}

#[test]
fn what_was_said_since_stays_when_it_is_undone() {
    let there = damaged("codex", Damage::CutRecord);
    let before = content(&there);
    let done = repair(&there, &["--apply"]);
    let later = b"{\"timestamp\":\"2026-06-01T00:00:00.000Z\",\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\
        \"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"And now?\"}]}}\n";
    let grown = [content(&there), later.to_vec()].concat();
    fs::write(&there.file, grown).unwrap();
    epitome(there.path(), &["undo", done["handle"].as_str().unwrap()]);
    assert_eq!(content(&there), [before.as_slice(), b"\n", later].concat());
}

#[test]
fn a_sound_session_is_left_alone() {
    for agent in super::AGENTS {
        let there = home(agent);
        let before = content(&there);
        let done = repair(&there, &["--apply"]);
        assert_eq!(
            (done["status"].as_str(), &done["handle"]),
            (Some("sound"), &Value::Null),
            "{agent}: {done}"
        );
        assert_eq!(content(&there), before, "{agent}");
        let said = epitome(there.path(), &["repair", &there.session]);
        assert_eq!(String::from_utf8(said.stdout).unwrap(), "nothing to repair\n", "{agent}");
    }
}

#[test]
fn doctor_names_the_command_for_a_damaged_session() {
    let there = damaged("claude-code", Damage::OrphanResult);
    let said = epitome(there.path(), &["doctor", &there.session]);
    let said = String::from_utf8(said.stdout).unwrap();
    assert!(said.contains("orphan_result") && said.contains("epitome repair"), "{said}");
    let there = home("claude-code");
    let said = epitome(there.path(), &["doctor", &there.session]);
    assert_eq!(String::from_utf8(said.stdout).unwrap(), "nothing to repair\n");
}

/// Memory of a repair, a measurement and a compaction of a rollout of 1 GB (`EPITOME_ROLLOUT_MB`), for the figures that are
/// reported: `cargo test --test all repair::apply::huge -- --ignored --nocapture`.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "writes 1 GB"]
fn huge_rollouts_are_repaired_in_little_memory() {
    let mb: usize = std::env::var("EPITOME_ROLLOUT_MB").ok().and_then(|it| it.parse().ok()).unwrap_or(1024);
    let there = home("codex");
    let mut out = std::io::BufWriter::new(fs::File::create(&there.file).unwrap());
    let example = String::from_utf8(crate::apply::example("codex.jsonl")).unwrap();
    let (first, rest) = example.split_once('\n').unwrap();
    let mut written = 0;
    writeln!(out, "{first}").unwrap();
    for round in 0.. {
        // Each call is one of its own.
        let again = rest.replace("call_0", &format!("call_{round}_"));
        written += again.len();
        out.write_all(again.as_bytes()).unwrap();
        if written >= mb << 20 {
            break;
        }
    }
    out.write_all(b"{\"timestamp\":\"2026").unwrap();
    drop(out);
    for arguments in [
        &["repair", &there.session] as &[&str],
        &["repair", &there.session, "--apply"],
        &["estimate", &there.session],
    ] {
        let began = std::time::Instant::now();
        let mut child = crate::apply::command(there.path(), arguments)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let status = format!("/proc/{}/status", child.id());
        let mut peak = 0;
        while child.try_wait().unwrap().is_none() {
            let text = fs::read_to_string(&status).unwrap_or_default();
            let line = text.lines().find_map(|it| it.strip_prefix("VmHWM:")).unwrap_or_default();
            let kb = line.trim().trim_end_matches(" kB").parse().unwrap_or(0);
            peak = std::cmp::max(peak, kb);
            std::thread::yield_now();
        }
        println!(
            "{} {:?}: {} MB at most, {:.1} s",
            arguments[0],
            &arguments[2..],
            peak >> 10,
            began.elapsed().as_secs_f64()
        );
        assert!(arguments[0] != "repair" || peak >> 10 <= 200, "{arguments:?}: {} MB", peak >> 10);
    }
}
