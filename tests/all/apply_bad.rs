//! What applying, `watch` and `doctor` meet in daily life: sessions that are half written, newer, replaced, torn, on another
//! disk, or not to be told apart; agents with settings of their own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use epitome::sessions::{self, Format, MemorySource, validate};
use serde_json::Value;

use crate::apply::{answer, apply, command, epitome, home, with_outputs};

const AGENTS: [&str; 4] = ["codex", "claude-code", "gemini-cli", "opencode"];

fn said(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The first line that a watch prints, which would go on for ever; ended once what it runs has done its work.
fn watched(home: &Path, arguments: &[&str], has_run: &dyn Fn() -> bool) -> String {
    let mut watch = command(home, arguments);
    watch.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut watch = watch.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(watch.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let begun = Instant::now();
    while !has_run() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    watch.kill().unwrap();
    watch.wait().unwrap();
    line
}

#[test]
fn a_half_written_last_line_is_no_obstacle() {
    for agent in ["codex", "claude-code", "gemini-cli"] {
        let there = home(agent);
        let mut bytes = fs::read(&there.file).unwrap();
        bytes.extend_from_slice(b"{\"timestamp\":\"2026-01-01T00:00:00.000Z\",\"type\":\"us");
        fs::write(&there.file, &bytes).unwrap();
        let done = answer(&epitome(there.path(), &apply(&there.session)));
        assert_eq!(done["status"], "compacted", "{agent}: {done}");
        assert!(fs::read(&there.file).unwrap().starts_with(&bytes), "{agent}: what stood there stands there");
        let read = answer(&epitome(there.path(), &["estimate", done["output"].as_str().unwrap(), "--json"]));
        assert!(read["tokens"].as_u64().unwrap() < done["tokens_before"].as_u64().unwrap(), "{agent}");
        let handle = done["handle"].as_str().unwrap();
        epitome(there.path(), &["restore", handle, "--apply", "--json"]);
        assert_eq!(fs::read(&there.file).unwrap(), bytes, "{agent}");
    }
}

#[test]
fn what_a_later_generation_wrote_is_refused() {
    for (agent, old, new) in [
        ("codex", "\"cli_version\":\"0.", "\"cli_version\":\"7."),
        ("claude-code", "\"version\":\"2.", "\"version\":\"3."),
    ] {
        let there = home(agent);
        let text = fs::read_to_string(&there.file).unwrap();
        assert!(text.contains(old), "{agent}");
        fs::write(&there.file, text.replace(old, new)).unwrap();
        let output = epitome(there.path(), &apply(&there.session));
        let said = said(&output);
        assert!(
            !output.status.success() && said.contains("newer") && said.contains("--out"),
            "{agent}: {said}"
        );
        assert_eq!(fs::read_to_string(&there.file).unwrap(), text.replace(old, new));
        assert_eq!(fs::read_dir(there.file.parent().unwrap()).unwrap().count(), 1, "{agent}");
        // It is still read, and written elsewhere.
        let out = there.path().join("out");
        let output = epitome(there.path(), &["compact", &there.session, "--out", &out.display().to_string()]);
        assert!(output.status.success() && out.exists(), "{agent}");
    }
}

#[cfg(unix)]
#[test]
fn a_session_replaced_meanwhile_is_not_overwritten() {
    for agent in ["codex", "gemini-cli"] {
        let there = home(agent);
        let before = fs::read_to_string(&there.file).unwrap();
        // Somebody rewrites it while the user looks at the summary.
        let other = there.path().join("other");
        let half: String =
            before.lines().take(before.lines().count() / 2).map(|it| format!("{it}\n")).collect();
        fs::write(&other, &half).unwrap();
        let editor = there.path().join("editor");
        fs::write(&editor, format!("#!/bin/sh\nmv '{}' '{}'\n", other.display(), there.session)).unwrap();
        let mut arguments = apply(&there.session).to_vec();
        arguments.push("--edit");
        let editor = format!("sh {}", editor.display());
        let output = command(there.path(), &arguments).env("EDITOR", editor).output().unwrap();
        let said = said(&output);
        assert!(
            !output.status.success() && said.contains("has changed since it was read"),
            "{agent}: {said}"
        );
        assert_eq!(fs::read_to_string(&there.file).unwrap(), half, "{agent}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_session_on_another_disk_than_the_archive() {
    use std::os::unix::fs::MetadataExt;
    let device = |it: &Path| fs::metadata(it).map(|it| it.dev()).ok();
    let (here, shared) = (std::env::temp_dir(), Path::new("/dev/shm"));
    if device(shared).is_none() || device(shared) == device(&here) {
        eprintln!("SKIPPED: a_session_on_another_disk_than_the_archive: /dev/shm is no other disk");
        return;
    }
    let disk = tempfile::tempdir_in(shared).unwrap();
    for agent in AGENTS {
        let there = home(agent);
        let before = epitome(there.path(), &["estimate", &there.session, "--json"]);
        let data = disk.path().join(agent);
        let mut all = command(there.path(), &apply(&there.session));
        // OpenCode's own data folder is found by the same variable.
        if agent != "opencode" {
            all.env("XDG_DATA_HOME", &data);
        }
        let done = answer(&all.output().unwrap());
        assert_eq!(done["status"], "compacted", "{agent}: {done}");
        assert!(answer(&before)["tokens"].as_u64() > done["tokens_after"].as_u64());
        // The result elsewhere, too.
        let out = disk.path().join(format!("{agent}.out"));
        let output = epitome(there.path(), &["compact", &there.session, "--out", &out.display().to_string()]);
        assert!(output.status.success(), "{agent}: {}", said(&output));
    }
}

#[test]
fn several_that_could_be_meant_are_listed() {
    let there = home("claude-code");
    let bytes = fs::read(&there.file).unwrap();
    let slug: String = fs::canonicalize(there.path()).unwrap().display().to_string();
    let slug: String = slug.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '-' }).collect();
    let folder = there.path().join(".claude/projects").join(slug);
    fs::create_dir_all(&folder).unwrap();
    let names = ["22222222-2222-4222-8222-222222222222", "33333333-3333-4333-8333-333333333333"];
    for name in names {
        fs::write(folder.join(format!("{name}.jsonl")), &bytes).unwrap();
    }
    let mut all = command(there.path(), &apply("current"));
    let output = all.env("CLAUDECODE", "1").output().unwrap();
    let said = said(&output);
    assert!(!output.status.success() && said.contains("several sessions match"), "{said}");
    // With id, last change and what the user said first.
    for name in names {
        let line = said.lines().find(|it| it.contains(name)).unwrap();
        assert!(line.contains("20") && line.contains('"') && line.len() > 60, "{line}");
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2, "nothing was done");
    // One that says which it is, is believed.
    let mut all = command(there.path(), &apply("current"));
    let output = all.env("CLAUDE_CODE_SESSION_ID", names[1]).output().unwrap();
    let done = answer(&output);
    assert_eq!(
        (done["status"].as_str(), done["session"]["id"].as_str().is_some()),
        (Some("compacted"), true)
    );
    assert!(done["session"]["path"].as_str().unwrap().contains(names[1]), "{done}");
}

#[test]
fn a_torn_placeholder_is_mended_by_restore() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".claude/projects/-p/s.jsonl");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let original = with_outputs().into_bytes();
    fs::write(&path, &original).unwrap();
    let session = path.display().to_string();
    let done = answer(&epitome(folder.path(), &["prune", &session, "--apply", "--json"]));
    let handle = done["handle"].as_str().unwrap();
    let pruned = fs::read(&path).unwrap();
    assert_eq!((done["status"].as_str(), pruned.len()), (Some("pruned"), original.len()));
    // As a kill between two pages leaves it: new up to there, old from there on.
    let first = (0..original.len()).find(|it| original[*it] != pruned[*it]).unwrap();
    let mut torn = original.clone();
    torn[..first + 4096].copy_from_slice(&pruned[..first + 4096]);
    torn.extend_from_slice(b"{\"type\":\"mode\",\"mode\":\"later\"}\n");
    fs::write(&path, &torn).unwrap();
    let undone = answer(&epitome(folder.path(), &["restore", handle, "--apply", "--json"]));
    assert_eq!(undone["status"], "restored", "{undone}");
    let found = fs::read(&path).unwrap();
    assert!(found.starts_with(&original) && found.ends_with(b"later\"}\n"));
    // What somebody else changed around it is not touched.
    let done = answer(&epitome(folder.path(), &["prune", &session, "--apply", "--json"]));
    let mut other = fs::read(&path).unwrap();
    other[2] = b'X';
    fs::write(&path, &other).unwrap();
    let output = epitome(folder.path(), &["restore", done["handle"].as_str().unwrap(), "--apply"]);
    assert!(!output.status.success() && said(&output).contains("changed since"), "{}", said(&output));
    assert_eq!(fs::read(&path).unwrap(), other);
}

#[test]
fn watch_prepares_a_copy_and_names_the_command() {
    for agent in AGENTS {
        let there = home(agent);
        let before = fs::read(&there.file).unwrap();
        let note = there.path().join("note");
        let notify = format!("printf '%s' \"$EPITOME_MESSAGE\" > '{}'", note.display());
        let watch = |window: &str, more: &[&str], has_run: &dyn Fn() -> bool| {
            let mut arguments = vec!["watch", &there.session, "--window", window, "--notify", &notify];
            arguments.extend(more);
            watched(there.path(), &arguments, has_run)
        };
        // Room: it says so, and does nothing.
        let line = watch("1000000", &[], &|| true);
        assert!(line.starts_with("watching") && line.contains("800000"), "{agent}: {line}");
        assert!(!note.exists(), "{agent}");
        // Past the threshold.
        let noted = || fs::read_to_string(&note).is_ok_and(|it| !it.is_empty());
        let found: Value = serde_json::from_str(&watch("20000", &["--json"], &noted)).unwrap();
        let prepared = Path::new(found["prepared"].as_str().unwrap());
        assert!(prepared.is_file() && found["tokens_after"].as_u64() < found["tokens_before"].as_u64());
        if agent != "opencode" {
            assert_eq!(fs::read(&there.file).unwrap(), before, "{agent}: the session is as it was");
        }
        assert!(fs::read_to_string(&note).unwrap().contains("epitome compact"), "{agent}");
        // The command that it names does it.
        let line = found["command"].as_str().unwrap().to_owned();
        let words = line.split(' ').skip(1).map(|it| it.trim_matches('\''));
        let words: Vec<&str> = words.chain(["--json", "--budget", "30%"]).collect();
        let done = answer(&epitome(there.path(), &words));
        assert_eq!(done["status"], "compacted", "{agent}: {line}: {done}");
    }
}

#[test]
fn doctor_says_what_it_finds_and_what_to_do() {
    let there = home("claude-code");
    let at = |path: &str, text: &str| {
        let path = there.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    at(".codex/config.toml", "model_auto_compact_token_limit = 150000\n");
    at(".gemini/settings.json", "{\"model\": {\"compressionThreshold\": 0.7}}");
    at(
        ".config/opencode/opencode.json",
        "{\"plugin\": [\"oh-my-opencode\", \"opencode-supermemory\"], \"compaction\": {\"auto\": false}}",
    );
    epitome(there.path(), &["install", "claude-code"]);
    let output =
        command(there.path(), &["doctor", "--json"]).env("OPENAI_API_KEY", "sk-secret-1").output().unwrap();
    let found = answer(&output);
    assert!(!said(&output).contains("sk-secret-1"), "a key is never shown");
    assert_eq!(found["keys"], serde_json::json!(["OPENAI_API_KEY"]));
    let of = |name: &str| -> Value {
        found["agents"].as_array().unwrap().iter().find(|it| it["agent"] == name).unwrap().clone()
    };
    assert_eq!((&of("claude-code")["server"], &of("claude-code")["hooks"]), (&true.into(), &true.into()));
    assert_eq!(of("claude-code")["sessions"], 1);
    for (agent, own) in [
        ("claude-code", "when the window is nearly full"),
        ("codex", "at 150000 tokens"),
        ("gemini-cli", "at 70 % of the window"),
        ("opencode", "off"),
    ] {
        assert_eq!(of(agent)["own_compaction"], own, "{agent}");
    }
    let problems = found["problems"].to_string();
    for word in
        ["context-window-limit-recovery", "compactionThreshold", "sessionRetention", "epitome install codex"]
    {
        assert!(problems.contains(word), "{word}: {problems}");
    }
    assert!(!problems.contains("epitome install claude-code"), "{problems}");
    // An archive that is broken is told, with what to do.
    let store = fs::read_dir(there.path().join(".local/share/epitome")).unwrap();
    let db =
        store.map(|it| it.unwrap().path()).find(|it| it.extension().is_some_and(|it| it == "db")).unwrap();
    for rest in ["-wal", "-shm"] {
        let _ = fs::remove_file(format!("{}{rest}", db.display()));
    }
    fs::write(&db, b"this is no database, and never was one: 0123456789".repeat(200)).unwrap();
    let found = answer(&epitome(there.path(), &["doctor", "--json"]));
    assert_eq!(found["store"]["whole"], false, "{found}");
}

/// Two outputs under one id, at once, behind other items, and with their call: whatever of them stays in the outcome has
/// one call and one output.
#[test]
fn doubled_outputs_of_one_call_are_mended() {
    let is_output = |it: &&str| it.contains("_call_output\"");
    let text = String::from_utf8(crate::apply::example("codex.jsonl")).unwrap();
    let outputs: Vec<&str> = text.lines().filter(is_output).collect();
    let last = *outputs.last().unwrap();
    let id = last.split("\"call_id\":\"").nth(1).unwrap().split('"').next().unwrap();
    let of_last: Vec<&str> = text.lines().filter(|it| it.contains(id)).collect();
    assert!(outputs.len() > 5 && of_last.len() > 1);
    let each_twice: Vec<&str> =
        text.lines().flat_map(|it| if is_output(&it) { vec![it, it] } else { vec![it] }).collect();
    let changed = last.replacen("\"output\":\"", "\"output\":\"another one: ", 1);
    assert_ne!(changed, last);
    let cases = [
        ("each at once", each_twice.join("\n")),
        ("all again at the end", [text.trim_end(), &outputs.join("\n")].join("\n")),
        ("the last call again", [text.trim_end(), &of_last.join("\n")].join("\n")),
        ("another output of the last call", [text.trim_end(), &changed].join("\n")),
    ];
    let mut warned = false;
    for (what, session) in cases {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rollout.jsonl");
        fs::write(&file, session + "\n").unwrap();
        for profile in
            ["epitome", "codex", "codex@0.46", "codex@0.169", "gemini-cli", "opencode", "claude-code"]
        {
            let out = folder.path().join(format!("{profile}.jsonl"));
            let [file, out_name] = [&file, &out].map(|it| it.to_str().unwrap());
            let words = ["compact", file, "--profile", profile, "--out", out_name, "--json"];
            let done = answer(&epitome(folder.path(), &words));
            assert_eq!(done["status"], "compacted", "{what}, {profile}: {done}");
            warned |= done["warnings"].to_string().contains("a second output of a summarized call");
            let made = MemorySource::new("made", fs::read(&out).unwrap());
            let history = sessions::read(&made, Some(Format::CODEX)).unwrap().history;
            let (messages, _) = sessions::messages(&history, Format::OPENAI_RESPONSES);
            assert_eq!(validate::check(Format::OPENAI_RESPONSES, &messages), [], "{what}, {profile}");
        }
    }
    assert!(warned, "what was left out is told nowhere");
}

#[test]
fn a_session_named_from_its_own_directory_is_undone_from_any() {
    for agent in ["codex", "claude-code", "gemini-cli"] {
        let there = home(agent);
        let elsewhere = tempfile::tempdir().unwrap();
        let name = there.file.file_name().unwrap().to_str().unwrap();
        let here = there.file.parent().unwrap();
        let before = fs::read(&there.file).unwrap();
        let preview = ["compact", name, "--budget", "30%", "--now=2026-11-20T12:00:00Z"];
        let shown = said(&command(there.path(), &preview).current_dir(here).output().unwrap());
        let (_, handle) = shown.split_once("epitome apply ").unwrap_or_else(|| panic!("{agent}: {shown}"));
        let handle = handle.split_whitespace().next().unwrap();
        let done = ["apply", handle, "--json", "--now=2026-11-20T12:00:00Z"];
        let done = answer(&command(there.path(), &done).current_dir(elsewhere.path()).output().unwrap());
        assert_eq!(done["status"], "compacted", "{agent}: {done}");
        fs::remove_file(&there.file).unwrap();
        let undo = ["undo", done["handle"].as_str().unwrap(), "--json"];
        let undone = command(there.path(), &undo).current_dir(elsewhere.path()).output().unwrap();
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0, "{agent}: {}", said(&undone));
        if agent == "claude-code" {
            assert_eq!(fs::read(&there.file).unwrap(), before, "{}", said(&undone));
        }
    }
}

#[test]
fn an_undo_that_cannot_read_what_was_said_since_leaves_none_of_it_out() {
    let there = home("claude-code");
    let done = answer(&epitome(there.path(), &apply(&there.session)));
    let new = done["output"].as_str().unwrap();
    fs::write(new, "no session\n").unwrap();
    let undone = epitome(there.path(), &["undo", done["handle"].as_str().unwrap()]);
    assert!(!undone.status.success(), "{}", said(&undone));
}

#[test]
fn what_cannot_be_noted_after_a_write_is_a_warning() {
    for agent in AGENTS {
        let there = home(agent);
        epitome(there.path(), &["memory", "list"]);
        let store = there.path().join(".local/share/epitome/epitome.db");
        let store = rusqlite::Connection::open(store).unwrap();
        let fails = |verb: &str| {
            let sql = format!(
                "CREATE TRIGGER no_{verb} BEFORE {verb} ON mark BEGIN SELECT RAISE(FAIL, 'no mark'); END"
            );
            store.execute_batch(&sql).unwrap();
        };
        fails("insert");
        let done = answer(&epitome(there.path(), &apply(&there.session)));
        assert_eq!(done["status"], "compacted", "{agent}: {done}");
        assert!(done["warnings"].to_string().contains("could not be recorded"), "{agent}: {done}");
        store.execute_batch("DROP TRIGGER no_insert").unwrap();
        let id = done["session_id"].as_str().unwrap();
        store
            .execute(
                "INSERT INTO mark SELECT owner, project, 'compacted/' || ?1, 'x', 1 FROM item LIMIT 1",
                [id],
            )
            .unwrap();
        fails("delete");
        let undone = answer(&epitome(there.path(), &["undo", done["handle"].as_str().unwrap(), "--json"]));
        assert!(undone["warnings"].to_string().contains("could not be recorded"), "{agent}: {undone}");
    }
}

#[test]
fn watch_says_so_where_nothing_can_be_compacted() {
    let there = home("claude-code");
    let folder = there.path().join(".config/epitome");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), "[hooks]\nbefore = \"echo not today >&2; exit 1\"\n").unwrap();
    let watch = |more: &[&str]| {
        let arguments = ["watch", &there.session, "--window", "20000"];
        watched(there.path(), &[&arguments[..], more].concat(), &|| true)
    };
    let found: Value = serde_json::from_str(&watch(&["--json"])).unwrap();
    assert!(found["due"] == true && found["command"].is_null() && found["prepared"].is_null(), "{found}");
    let told = watch(&[]);
    assert!(told.contains("cannot be compacted") && !told.contains("would leave"), "{told}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_no_success_and_a_closed_pipe_no_failure() {
    let there = home("claude-code");
    let full = || std::process::Stdio::from(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    let output = command(there.path(), &["profiles"]).stdout(full()).output().unwrap();
    let said = said(&output);
    assert!(!output.status.success() && said.contains("writing to standard output"), "{said}");
    let mut child =
        command(there.path(), &["profiles"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}
