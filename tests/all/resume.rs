//! Which session is meant, a watch that runs, a brief handed off, and sessions that somebody else is using.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use epitome::tokens::Estimator;
use serde_json::{Value, json};

use crate::apply::{answer, apply, command, epitome, example, home, with_outputs};

const AGENTS: [&str; 4] = ["codex", "claude-code", "gemini-cli", "opencode"];

fn said(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The lines of a stream as they come.
fn lines(stream: impl std::io::Read + Send + 'static) -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

#[test]
fn a_watch_says_when_the_threshold_is_crossed_while_it_runs() {
    const LONG: Duration = Duration::from_secs(60);
    let there = tempfile::tempdir().unwrap();
    let path = there.path().join(".claude/projects/-p/s.jsonl");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let whole = with_outputs();
    let few: String = whole.lines().take(4).map(|it| format!("{it}\n")).collect();
    fs::write(&path, &few).unwrap();
    let session = path.display().to_string();
    let arguments = ["watch", &session, "--every", "1", "--window", "20000"];
    let mut watch = command(there.path(), &arguments);
    watch.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut watch = Running(watch.spawn().unwrap());
    let out = lines(watch.0.stdout.take().unwrap());
    let greeting = out.recv_timeout(LONG).unwrap();
    assert!(greeting.starts_with("watching s: "), "{greeting}");
    // It has looked, and there was room; now the session grows.
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(&whole.as_bytes()[few.len()..]).unwrap();
    let told = out.recv_timeout(LONG).unwrap();
    assert!(
        told.starts_with("s: ")
            && told.ends_with(&format!(": epitome compact {session} --window 20000 --apply")),
        "{told}"
    );
    let copy = there.path().join(".local/share/epitome/prepared/s.session");
    assert!((1..fs::metadata(&path).unwrap().len()).contains(&fs::metadata(copy).unwrap().len()));
    assert_eq!(fs::read_to_string(&path).unwrap(), whole, "the session is as its client wrote it");
    // Told once; what comes next is another session's.
    fs::write(&path, whole.replace("\"s\"", "\"t\"")).unwrap();
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"{\"type\":\"mode\"}\n").unwrap();
    let next = out.recv_timeout(LONG).unwrap();
    assert!(next.starts_with("t: "), "{next}");
}

#[test]
fn a_brief_is_bounded_and_begins_a_session_of_any_agent() {
    let goal = "Write the replay test";
    let large = tempfile::tempdir().unwrap();
    let path = large.path().join("large.jsonl");
    fs::write(
        &path,
        with_outputs().replace("Go on", &"Never touch src/a.rs, src/b.rs or port 4711. ".repeat(40)),
    )
    .unwrap();
    let brief =
        answer(&epitome(large.path(), &["handoff", &path.display().to_string(), "--goal", goal, "--json"]));
    assert!(brief["tokens"].as_u64().unwrap() <= 3_000, "{}", brief["tokens"]);
    assert!(Estimator::O200k.text(brief["brief"].as_str().unwrap()) <= 3_000);
    for agent in AGENTS {
        let there = home(agent);
        let before = fs::read(&there.file).unwrap();
        // Markdown, here or in a file.
        let text = epitome(there.path(), &["handoff", &there.session, "--goal", goal]);
        let text = String::from_utf8(text.stdout).unwrap();
        assert!(
            text.starts_with(&format!("# Task\n\n{goal}\n")) && text.contains("## Files, and why"),
            "{agent}: {text}"
        );
        assert!(Estimator::O200k.text(&text) <= 3_000);
        let file = there.path().join("brief.md");
        let output = epitome(
            there.path(),
            &["handoff", &there.session, "--goal", goal, "-o", &file.display().to_string()],
        );
        assert!(
            output.status.success()
                && fs::read_to_string(&file).unwrap() == text.trim_end().to_owned() + "\n",
            "{agent}"
        );
        // A session that starts with it: of the same agent, and of every other one.
        for to in [None].into_iter().chain(AGENTS.map(Some)) {
            let mut arguments = vec!["handoff", &there.session, "--goal", goal, "--apply", "--json"];
            arguments.extend(to.into_iter().flat_map(|it| ["--as", it]));
            let done = answer(&epitome(there.path(), &arguments));
            let what = format!("{agent} to {to:?}: {done}");
            assert!(done["resume"].as_str().is_some_and(|it| it.contains("cd ")), "{what}");
            let output = done["output"].as_str().unwrap();
            let source = epitome::sessions::MemorySource::new("made", fs::read(output).unwrap());
            let made = epitome::sessions::read(&source, None).unwrap();
            assert_eq!(made.format.name(), to.unwrap_or(agent), "{what}");
            let first =
                made.history.messages().iter().find(|it| it.kind == epitome::history::Kind::Said).unwrap();
            assert_eq!(first.plain().trim_end(), text.trim_end(), "{what}");
        }
        if agent != "opencode" {
            assert_eq!(fs::read(&there.file).unwrap(), before, "{agent}: the session is as it was");
        }
    }
}

#[test]
fn archived_threads_and_sub_agents_are_listed() {
    let there = home("codex");
    let text = String::from_utf8(example("codex.jsonl")).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let id = first["payload"]["id"].as_str().unwrap();
    let place = |inside: &str, text: String| {
        let path = there.path().join(inside);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let archived = id.replace(|it: char| it.is_ascii_digit(), "7");
    place(
        &format!(".codex/archived_sessions/rollout-2025-12-31T00-00-00-{archived}.jsonl"),
        text.replace(id, &archived),
    );
    let child = id.replace(|it: char| it.is_ascii_digit(), "8");
    let source = json!({"subagent": {"thread_spawn": {"parent_thread_id": id, "depth": 1}}});
    let mut meta = first.clone();
    (meta["payload"]["id"], meta["payload"]["source"]) = (json!(child), source);
    let rest: String = text.lines().skip(1).map(|it| format!("{it}\n")).collect();
    place(
        &format!(".codex/sessions/2026/01/01/rollout-2026-01-01T01-00-00-{child}.jsonl"),
        format!("{meta}\n{rest}"),
    );
    let found = answer(&epitome(there.path(), &["sessions", "--json"]));
    let text = found.to_string();
    assert!(text.contains(&archived), "{text}");
    let at = |id: &str| text.find(&format!("\"id\":\"{id}\"")).unwrap_or_else(|| panic!("{id}: {text}"));
    assert!(at(id) < at(&child), "under its parent");
    assert!(text.contains(&format!("\"parent\":\"{id}\"")), "{text}");
    // An archived one is compacted like any other.
    let done = answer(&epitome(there.path(), &apply(&archived)));
    assert_eq!(done["status"], "compacted", "{done}");
}

/// Two sessions of an agent in one directory, both just changed, and what tells a process that this agent runs it.
fn two(agent: &str) -> (crate::apply::Home, (&'static str, &'static str)) {
    let there = home(agent);
    let cwd = fs::canonicalize(there.path()).unwrap().display().to_string();
    let inside = match agent {
        "claude-code" => {
            let bytes = fs::read(&there.file).unwrap();
            let slug: String =
                cwd.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '-' }).collect();
            let folder = there.path().join(".claude/projects").join(slug);
            fs::create_dir_all(&folder).unwrap();
            for name in ["22222222-2222-4222-8222-222222222222", "33333333-3333-4333-8333-333333333333"] {
                fs::write(folder.join(format!("{name}.jsonl")), &bytes).unwrap();
            }
            ("CLAUDECODE", "1")
        }
        "gemini-cli" => {
            fs::write(
                there.path().join(".gemini/projects.json"),
                json!({"projects": {cwd: "p"}}).to_string(),
            )
            .unwrap();
            let text = fs::read_to_string(&there.file).unwrap();
            let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
            let id = first["sessionId"].as_str().unwrap();
            let other = there.file.with_file_name("session-2026-01-01T00-01-bbbbbbbb.jsonl");
            fs::write(other, text.replace(id, "bbbbbbbb-2222-4222-8222-222222222222")).unwrap();
            ("GEMINI_CLI", "1")
        }
        _ => {
            let db = rusqlite::Connection::open(&there.file).unwrap();
            db.execute("UPDATE session SET directory = ?1", [&cwd]).unwrap();
            db.execute(
                "INSERT INTO session SELECT 'ses_other', project_id, parent_id, slug, directory, title, version, time_created, \
                 time_updated FROM session",
                [],
            )
            .unwrap();
            ("OPENCODE", "1")
        }
    };
    (there, inside)
}

#[test]
fn several_sessions_at_once_are_listed_and_nothing_is_done() {
    for agent in ["claude-code", "gemini-cli", "opencode"] {
        let (there, inside) = two(agent);
        let listing = |home: &Path| {
            let mut out = Vec::new();
            for entry in fs::read_dir(home).unwrap().flatten() {
                out.push((entry.path(), entry.metadata().unwrap().len()));
            }
            out.sort();
            out
        };
        let folder = there.file.parent().unwrap().to_owned();
        let before = listing(&folder);
        // By name, and without one.
        for arguments in [
            &["compact", "current", "--apply"][..],
            &["compact", "--apply"],
            &["prune", "--apply"],
            &["handoff", "--goal", "x", "--apply"],
        ] {
            let output = command(there.path(), arguments).env(inside.0, inside.1).output().unwrap();
            let said = said(&output);
            assert!(
                !output.status.success() && said.contains("several sessions match"),
                "{agent}: {arguments:?} {said}"
            );
            assert!(said.lines().filter(|it| it.starts_with("  ")).count() == 2, "{agent}: {said}");
        }
        if agent != "opencode" {
            assert_eq!(listing(&folder), before, "{agent}");
        }
    }
}

/// Its records name no directory: the folder that it lies in does.
#[test]
fn an_old_session_of_gemini_cli_is_undone_from_its_directory() {
    let there = home("gemini-cli");
    let project = fs::canonicalize(there.path()).unwrap();
    let known = json!({"projects": {project.display().to_string(): "p"}});
    fs::write(there.path().join(".gemini/projects.json"), known.to_string()).unwrap();
    let text = fs::read_to_string(&there.file).unwrap();
    let mut rows = text.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
    let mut old = rows.next().unwrap();
    old["messages"] = rows.filter(|it| it["id"].is_string()).collect();
    let file = there.file.with_extension("json");
    fs::write(&file, serde_json::to_string_pretty(&old).unwrap()).unwrap();
    fs::remove_file(&there.file).unwrap();
    let before = fs::read(&file).unwrap();
    let done = answer(&command(&project, &apply(&file.display().to_string())).output().unwrap());
    assert_eq!(done["status"], "compacted", "{done}");
    let undone = answer(&command(&project, &["undo", "--json"]).output().unwrap());
    assert_eq!(undone["status"], "restored", "{undone}");
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn who_resumes_the_compacted_session_goes_on_in_it() {
    let there = home("gemini-cli");
    let cwd = fs::canonicalize(there.path()).unwrap().display().to_string();
    fs::write(there.path().join(".gemini/projects.json"), json!({"projects": {&cwd: "p"}}).to_string())
        .unwrap();
    // An agent notes its own directory in what it writes.
    let inside = |arguments: &[&str]| {
        let mut all = command(&fs::canonicalize(there.path()).unwrap(), arguments);
        all.env("GEMINI_CLI", "1").output().unwrap()
    };
    let done = answer(&inside(&apply("current")));
    assert_eq!(done["status"], "compacted", "{done}");
    let (old, new) = (&done["session"]["id"], &done["session_id"]);
    assert_ne!(old, new);
    let now = answer(&inside(&["estimate", "current", "--json"]));
    assert_eq!(&now["session"]["id"], new, "{now}");
    // An undo writes what was said since into a third, behind the original.
    let more = json!({"id": "m900", "timestamp": "2026-05-28T21:00:00.000Z", "type": "user", "content": [{"text": "And now?"}]});
    let mut file = fs::File::options().append(true).open(done["output"].as_str().unwrap()).unwrap();
    writeln!(file, "{more}").unwrap();
    drop(file);
    let undone = answer(&inside(&["restore", done["handle"].as_str().unwrap(), "--apply", "--json"]));
    assert_eq!(undone["later_messages"], 1, "{undone}");
    let now = answer(&inside(&["estimate", "current", "--json"]));
    assert_eq!(&now["session"]["id"], &undone["session_id"], "{now}");
    // Gone on in the old one after all: it cannot be told.
    let later = std::time::SystemTime::now() + Duration::from_secs(30);
    fs::File::options().append(true).open(&there.file).unwrap().set_modified(later).unwrap();
    let output = inside(&["estimate", "current"]);
    assert!(!output.status.success() && said(&output).contains("several sessions"), "{}", said(&output));
}

#[test]
fn a_running_session_of_gemini_cli_is_never_written() {
    let there = home("gemini-cli");
    let bytes = fs::read(&there.file).unwrap();
    let first: Value = serde_json::from_slice(bytes.split(|it| *it == b'\n').next().unwrap()).unwrap();
    let id = first["sessionId"].as_str().unwrap();
    let live = |arguments: &[&str]| {
        let mut all = command(there.path(), arguments);
        all.env("GEMINI_CLI", "1").env("GEMINI_SESSION_ID", id).output().unwrap()
    };
    let pruned = answer(&live(&["prune", &there.session, "--protect", "0", "--apply", "--json"]));
    assert_eq!(pruned["status"], "pruned", "{pruned}");
    assert_ne!(pruned["session_id"].as_str(), Some(id));
    assert_eq!(fs::read(&there.file).unwrap(), bytes, "a new session beside it");
    let done = answer(&live(&apply(&there.session)));
    assert_eq!(done["status"], "compacted", "{done}");
    assert_ne!(done["session_id"].as_str(), Some(id));
    assert_eq!(fs::read(&there.file).unwrap(), bytes, "a new session beside it");
}

#[test]
fn a_database_that_is_locked_newer_or_not_to_be_written_is_left_alone() {
    let there = home("opencode");
    let refused = |words: &[&str]| {
        let output = epitome(there.path(), &apply(&there.session));
        let said = said(&output);
        assert!(!output.status.success() && words.iter().all(|it| said.contains(it)), "{words:?}: {said}");
    };
    let db = rusqlite::Connection::open(&there.file).unwrap();
    let count = |db: &rusqlite::Connection| {
        db.query_row("SELECT count(*) FROM part", [], |it| it.get::<_, i64>(0)).unwrap()
    };
    let before = count(&db);
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    refused(&["another process is writing", "try again"]);
    db.execute_batch("ROLLBACK; UPDATE session SET version = '2.0.0'").unwrap();
    refused(&["newer", "--out"]);
    db.execute_batch("UPDATE session SET version = '1.18.33'").unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let chmod = |mode| fs::set_permissions(&there.file, fs::Permissions::from_mode(mode)).unwrap();
        chmod(0o444);
        refused(&["is not writable", "chmod"]);
        chmod(0o644);
        let link = there.file.with_file_name("opencode-link.db");
        std::os::unix::fs::symlink(&there.file, &link).unwrap();
        let id = there.session.split_once('#').unwrap().1;
        let output = epitome(there.path(), &apply(&format!("{}#{id}", link.display())));
        assert!(!output.status.success() && said(&output).contains("symbolic link"), "{}", said(&output));
    }
    assert_eq!(count(&db), before);
    assert_eq!(answer(&epitome(there.path(), &apply(&there.session)))["status"], "compacted");
}

#[cfg(unix)]
#[test]
fn files_that_may_not_be_replaced_are_not() {
    use std::os::unix::fs::PermissionsExt;
    for agent in ["codex", "claude-code", "gemini-cli"] {
        let there = home(agent);
        let bytes = fs::read(&there.file).unwrap();
        let folder = there.file.parent().unwrap();
        let refused = |session: &str, words: &[&str]| {
            let output = epitome(there.path(), &apply(session));
            let said = said(&output);
            assert!(
                !output.status.success() && words.iter().all(|it| said.contains(it)),
                "{agent}: {words:?}: {said}"
            );
        };
        fs::set_permissions(&there.file, fs::Permissions::from_mode(0o444)).unwrap();
        refused(&there.session, &["is not writable", "chmod", "--out"]);
        fs::set_permissions(&there.file, fs::Permissions::from_mode(0o600)).unwrap();
        let name = there.file.file_name().unwrap().to_string_lossy().into_owned();
        let link = there.path().join(&name);
        std::os::unix::fs::symlink(&there.file, &link).unwrap();
        refused(&link.display().to_string(), &["symbolic link", "pass its target"]);
        fs::remove_file(&link).unwrap();
        fs::write(&link, &bytes).unwrap();
        refused(&link.display().to_string(), &["would not find the session there", "--out"]);
        assert_eq!(fs::read(&there.file).unwrap(), bytes);
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1, "{agent}");
    }
}
