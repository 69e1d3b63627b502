//! Applying, killed at any moment, beside a writer, and undone. How often: `EPITOME_ROUNDS` (by default few; 200 for the
//! figures that are reported).

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

fn rounds(few: usize) -> usize {
    std::env::var("EPITOME_ROUNDS").ok().and_then(|it| it.parse().ok()).unwrap_or(few)
}

/// The program under test. Long runs name a copy that no build replaces under them.
pub(crate) fn program() -> std::ffi::OsString {
    std::env::var_os("EPITOME_BINARY").unwrap_or(env!("CARGO_BIN_EXE_epitome").into())
}

pub(crate) fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").current_dir(home).args(arguments);
    command
}

pub(crate) fn epitome(home: &Path, arguments: &[&str]) -> Output {
    command(home, arguments).output().unwrap()
}

pub(crate) fn answer(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

pub(crate) fn example(name: &str) -> Vec<u8> {
    fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/sessions").join(name)).unwrap()
}

/// A home with one session in it, and how that is named.
pub(crate) struct Home {
    folder: tempfile::TempDir,
    pub(crate) session: String,
    /// What must be either as before or as after: a file, or a database.
    pub(crate) file: PathBuf,
}

impl Home {
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

pub(crate) fn home(agent: &str) -> Home {
    let folder = tempfile::tempdir().unwrap();
    let place = |inside: &str, bytes: &[u8]| {
        let path = folder.path().join(inside);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    };
    let file = match agent {
        "codex" => {
            let bytes = example("codex.jsonl");
            let first: Value =
                serde_json::from_slice(bytes.split(|it| *it == b'\n').next().unwrap()).unwrap();
            let id = first["payload"]["id"].as_str().unwrap();
            place(&format!(".codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-{id}.jsonl"), &bytes)
        }
        "claude-code" => place(
            ".claude/projects/-p/11111111-1111-4111-8111-111111111111.jsonl",
            &example("claude-code.jsonl"),
        ),
        "gemini-cli" => {
            place(".gemini/tmp/p/chats/session-2026-01-01T00-00-aaaaaaaa.jsonl", &example("gemini-cli.jsonl"))
        }
        "opencode" => {
            let path = place(".local/share/opencode/opencode.db", b"");
            let id = database(&path, &example("opencode.json"));
            return Home { session: format!("{}#{id}", path.display()), file: path, folder };
        }
        other => unreachable!("{other}"),
    };
    Home { session: file.display().to_string(), file, folder }
}

/// OpenCode's tables, as far as they matter, with a session of an export.
pub(crate) fn database(path: &Path, export: &[u8]) -> String {
    let db = rusqlite::Connection::open(path).unwrap();
    db.execute_batch(
        "PRAGMA journal_mode = WAL;
         CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, slug TEXT, directory TEXT, title TEXT,
            version TEXT, time_created INTEGER, time_updated INTEGER);
         CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
         CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER,
            time_updated INTEGER, data TEXT);",
    )
    .unwrap();
    let export: Value = serde_json::from_slice(export).unwrap();
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let id = text(&export["info"]["id"]);
    db.execute(
        "INSERT INTO session VALUES (?1, 'global', NULL, 's', ?2, ?3, '1.18.33', 1, 2)",
        (&id, text(&export["info"]["directory"]), text(&export["info"]["title"])),
    )
    .unwrap();
    let stored = |it: &Value| {
        let mut it = it.as_object().unwrap().clone();
        for key in ["id", "sessionID", "messageID"] {
            it.remove(key);
        }
        Value::Object(it).to_string()
    };
    for message in export["messages"].as_array().unwrap() {
        let (info, at) = (&message["info"], message["info"]["time"]["created"].as_i64().unwrap());
        let name = text(&info["id"]);
        db.execute("INSERT INTO message VALUES (?1, ?2, ?3, ?3, ?4)", (&name, &id, at, stored(info)))
            .unwrap();
        for part in message["parts"].as_array().unwrap() {
            let values = (text(&part["id"]), &name, &id, at, stored(part));
            db.execute("INSERT INTO part VALUES (?1, ?2, ?3, ?4, ?4, ?5)", values).unwrap();
        }
    }
    id
}

/// What stands there: every session file by name, or every row.
fn state(home: &Home) -> BTreeMap<String, Vec<u8>> {
    let mut out = BTreeMap::new();
    if home.file.extension().is_some_and(|it| it == "db") {
        let db = rusqlite::Connection::open(&home.file).unwrap();
        for sql in
            ["SELECT id, title FROM session", "SELECT id, data FROM message", "SELECT id, data FROM part"]
        {
            let mut all = db.prepare(sql).unwrap();
            let rows =
                all.query_map([], |it| Ok((it.get::<_, String>(0)?, it.get::<_, String>(1)?))).unwrap();
            out.extend(rows.map(|it| it.unwrap()).map(|(id, data)| (id, data.into_bytes())));
        }
        return out;
    }
    for entry in fs::read_dir(home.file.parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        // What a killed process left beside is no session to any agent.
        if path.extension().is_some_and(|it| it == "jsonl") {
            out.insert(path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(&path).unwrap());
        }
    }
    out
}

/// Deterministic, and different in every round.
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

pub(crate) fn apply(session: &str) -> [&str; 7] {
    ["compact", session, "--budget", "30%", "--apply", "--json", "--now=2026-11-20T12:00:00Z"]
}

fn killed_at_any_moment(agent: &str) {
    // The paths are in what is written, so every round uses the same home.
    let home = home(agent);
    let before = state(&home);
    let fresh = home.path().with_extension("fresh");
    let copy = |from: &Path, to: &Path| {
        let done = Command::new("cp").args(["-a", "--"]).arg(from).arg(to).status().unwrap();
        assert!(done.success());
    };
    copy(home.path(), &fresh);
    let reset = || {
        for entry in fs::read_dir(home.path()).unwrap() {
            let path = entry.unwrap().path();
            fs::remove_dir_all(&path).unwrap();
        }
        for entry in fs::read_dir(&fresh).unwrap() {
            let path = entry.unwrap().path();
            copy(&path, &home.path().join(path.file_name().unwrap()));
        }
    };
    let begun = Instant::now();
    let done = answer(&epitome(home.path(), &apply(&home.session)));
    assert_eq!(done["status"], "compacted", "{agent}: {done}");
    let whole = begun.elapsed();
    let after = state(&home);
    assert_ne!(before, after, "{agent}");
    let mut seed = 42;
    let (mut old, mut new) = (0, 0);
    for round in 0..rounds(10) {
        reset();
        let mut child = command(home.path(), &apply(&home.session))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Most kills fall where it writes, near the end.
        let share = if round % 4 == 0 { random(&mut seed) % 1100 } else { 600 + random(&mut seed) % 500 };
        std::thread::sleep(whole.mul_f64(share as f64 / 1000.0));
        let _ = child.kill();
        child.wait().unwrap();
        let found = state(&home);
        assert!(
            found == before || found == after,
            "{agent}: neither before nor after, killed at {share}/1000"
        );
        if found == before {
            old += 1
        } else {
            new += 1
        }
        // Whatever it is, it can be read, and the next try works on it.
        let read = answer(&epitome(home.path(), &["estimate", &home.session, "--json"]));
        assert!(read["tokens"].as_u64().unwrap() > 0);
    }
    reset();
    assert_eq!(answer(&epitome(home.path(), &apply(&home.session)))["status"], "compacted");
    assert_eq!(state(&home), after, "{agent}: the same again");
    fs::remove_dir_all(&fresh).unwrap();
    eprintln!("{agent}: killed {} times: {old} as before, {new} as compacted, 0 else", old + new);
}

#[test]
fn killed_codex() {
    killed_at_any_moment("codex");
}

#[test]
fn killed_claude_code() {
    killed_at_any_moment("claude-code");
}

#[test]
fn killed_gemini_cli() {
    killed_at_any_moment("gemini-cli");
}

#[test]
fn killed_opencode() {
    killed_at_any_moment("opencode");
}

#[test]
fn undone_byte_for_byte() {
    for agent in ["codex", "claude-code", "gemini-cli", "opencode"] {
        let home = home(agent);
        let before = state(&home);
        let done = answer(&epitome(home.path(), &apply(&home.session)));
        assert_eq!(done["status"], "compacted", "{agent}: {done}");
        let handle = done["handle"].as_str().unwrap();
        // A second one is refused within the cool-down, where there would be anything to compact again.
        let again = answer(&epitome(home.path(), &apply(&home.session)));
        let expected = if agent == "claude-code" {
            ("rejected", "cooling_down")
        } else {
            ("noop", "nothing_to_compact")
        };
        let found = (again["status"].as_str().unwrap(), again["reason_code"].as_str().unwrap());
        assert!(found == expected || found.1 == "cooling_down", "{agent}: {found:?}");
        let undone = epitome(home.path(), &["restore", handle, "--apply", "--json"]);
        let undone = answer(&undone);
        assert!(["restored", "unchanged"].contains(&undone["status"].as_str().unwrap()), "{agent}: {undone}");
        let mut found = state(&home);
        // A new session stays; the old one was never touched.
        found.retain(|name, _| before.contains_key(name));
        let same = |one: &BTreeMap<String, Vec<u8>>| -> Vec<(String, Value)> {
            let value = |it: &Vec<u8>| {
                serde_json::from_slice(it).unwrap_or_else(|_| json!(String::from_utf8_lossy(it)))
            };
            one.iter().map(|(name, bytes)| (name.clone(), value(bytes))).collect()
        };
        if agent == "opencode" {
            assert_eq!(same(&found), same(&before), "{agent}");
        } else {
            assert_eq!(found, before, "{agent}");
        }
        let twice = answer(&epitome(home.path(), &["restore", handle, "--apply", "--json"]));
        assert_eq!(twice["status"], "unchanged", "{agent}");
    }
}

/// A Claude Code session with outputs that are worth clearing.
pub(crate) fn with_outputs() -> String {
    with_outputs_of(250)
}

/// The same, each output of so many lines.
fn with_outputs_of(lines: usize) -> String {
    let mut out = String::new();
    let mut parent = Value::Null;
    let mut line = |number: usize, kind: &str, message: Value| {
        let uuid = format!("00000000-0000-4000-8000-{number:012}");
        let at = format!("2026-01-01T00:{:02}:00.000Z", number % 60);
        let it = json!({"parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": "/p", "sessionId": "s",
            "version": "2.1.328", "type": kind, "message": message, "uuid": uuid, "timestamp": at});
        parent = json!(uuid);
        out.push_str(&format!("{it}\n"));
    };
    line(0, "user", json!({"role": "user", "content": "Look at everything"}));
    for n in 0..12 {
        let call = json!([{"type": "tool_use", "id": format!("t{n}"), "name": "Read", "input": {"file_path": format!("/p/{n}.rs")}}]);
        let text = format!("line of file {n} with é and \"quotes\"\n").repeat(lines);
        let result = json!([{"type": "tool_result", "tool_use_id": format!("t{n}"), "content": text}]);
        line(
            1 + 3 * n,
            "assistant",
            json!({"id": format!("m{n}"), "role": "assistant", "model": "claude-x", "content": call}),
        );
        line(2 + 3 * n, "user", json!({"role": "user", "content": result}));
        line(3 + 3 * n, "user", json!({"role": "user", "content": format!("Go on {n}")}));
    }
    out
}

#[test]
fn a_writer_beside_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".claude/projects/-p/s.jsonl");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, with_outputs()).unwrap();
    let session = path.display().to_string();
    let stop = AtomicBool::new(false);
    let written = AtomicUsize::new(0);
    let applied = std::thread::scope(|scope| {
        scope.spawn(|| {
            // One that keeps the file open, and one that opens it for each line, as Claude Code does.
            let mut open = fs::OpenOptions::new().append(true).open(&path).unwrap();
            while !stop.load(Ordering::Relaxed) {
                let n = written.load(Ordering::Relaxed);
                let line = format!("{{\"type\":\"queue-operation\",\"sessionId\":\"s\",\"n\":{n}}}\n");
                if n.is_multiple_of(2) {
                    open.write_all(line.as_bytes()).unwrap();
                } else {
                    fs::OpenOptions::new()
                        .append(true)
                        .open(&path)
                        .unwrap()
                        .write_all(line.as_bytes())
                        .unwrap();
                }
                written.store(n + 1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_micros(500));
            }
        });
        let mut applied = 0;
        for _ in 0..rounds(8).div_ceil(2) {
            let done = answer(&epitome(folder.path(), &["prune", &session, "--apply", "--json"]));
            assert_eq!(done["status"], "pruned", "{done}");
            let handle = done["handle"].as_str().unwrap();
            let undone = answer(&epitome(folder.path(), &["restore", handle, "--apply", "--json"]));
            assert_eq!(undone["status"], "restored", "{undone}");
            applied += 2;
        }
        stop.store(true, Ordering::Relaxed);
        applied
    });
    let found = fs::read_to_string(&path).unwrap();
    let count = written.load(Ordering::Relaxed);
    let original = with_outputs();
    assert!(found.starts_with(&original), "the outputs are back where they were");
    let lines: Vec<Value> =
        found[original.len()..].lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let numbers: Vec<usize> = lines.iter().map(|it| it["n"].as_u64().unwrap() as usize).collect();
    assert_eq!(numbers, (0..count).collect::<Vec<_>>());
    eprintln!("{applied} applies beside a writer of {count} lines: none lost");
}

/// Killed as soon as a certain output changes on disk, in the midst of a prune and in the midst of its undoing: every row
/// is one or the other, whole, however long the output.
#[cfg(unix)]
#[test]
fn killed_in_the_midst_of_a_prune() {
    use std::os::unix::fs::FileExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".claude/projects/-p/s.jsonl");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let original = with_outputs_of(5_000).into_bytes();
    fs::write(&path, &original).unwrap();
    let session = path.display().to_string();
    let prune = ["prune", &session, "--protect", "0", "--apply", "--json", "--now=2026-11-20T12:00:00Z"];
    let done = answer(&epitome(folder.path(), &prune));
    let handle = done["handle"].as_str().unwrap().to_owned();
    let restore = ["restore", &handle, "--apply", "--json"];
    let pruned = fs::read(&path).unwrap();
    let rows =
        |bytes: &[u8]| -> Vec<Vec<u8>> { bytes.split(|it| *it == b'\n').map(<[u8]>::to_vec).collect() };
    let (old, new) = (rows(&original), rows(&pruned));
    let changed: Vec<usize> = (0..old.len()).filter(|it| old[*it] != new[*it]).collect();
    assert!(changed.len() >= 10, "{}", changed.len());
    let first = |row: usize| {
        let at = old[..row].iter().map(|it| it.len() + 1).sum::<usize>();
        let inside = (0..old[row].len()).find(|it| old[row][*it] != new[row][*it]).unwrap();
        (at + inside) as u64
    };
    let mut seed = 7;
    let (mut midst, mut torn) = (0, 0);
    for round in 0..rounds(6) {
        let back = round % 2 == 1;
        fs::write(&path, if back { &pruned } else { &original }).unwrap();
        let file = fs::File::open(&path).unwrap();
        let at = first(changed[random(&mut seed) as usize % changed.len()]);
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        let mut child = command(folder.path(), if back { &restore } else { &prune })
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let before = byte;
        while byte == before && child.try_wait().unwrap().is_none() {
            file.read_exact_at(&mut byte, at).unwrap();
        }
        let _ = child.kill();
        child.wait().unwrap();
        let found = fs::read(&path).unwrap();
        midst += usize::from(found != original && found != pruned);
        let found = rows(&found);
        assert_eq!(found.len(), old.len());
        torn += (0..found.len()).filter(|it| found[*it] != old[*it] && found[*it] != new[*it]).count();
        // From wherever it stopped, it can be put back.
        answer(&epitome(folder.path(), &restore));
        assert_eq!(fs::read(&path).unwrap(), original, "round {round}");
    }
    eprintln!(
        "killed {} times while outputs were replaced, {midst} times between two of them: {torn} rows torn",
        rounds(6)
    );
    assert_eq!(torn, 0);
}

#[test]
fn what_may_not_be_applied_to_is_refused() {
    let refused = |home: &Path, session: &str, why: &str| {
        let output = epitome(home, &["compact", session, "--budget", "30%", "--apply"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(why), "{why}: {said}");
    };
    let there = home("codex");
    let bytes = fs::read(&there.file).unwrap();
    // Outside the agent's folder.
    let outside = there.path().join("rollout.jsonl");
    fs::write(&outside, &bytes).unwrap();
    refused(there.path(), &outside.display().to_string(), "would not find the session there");
    // Plain messages.
    let plain = there.path().join("messages.json");
    fs::write(&plain, example("anthropic.json")).unwrap();
    refused(there.path(), &plain.display().to_string(), "expected the session of an agent");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // A link.
        let link = there.file.with_file_name("rollout-link.jsonl");
        std::os::unix::fs::symlink(&there.file, &link).unwrap();
        refused(there.path(), &link.display().to_string(), "symbolic link");
        fs::remove_file(&link).unwrap();
        // Not to be written.
        fs::set_permissions(&there.file, fs::Permissions::from_mode(0o444)).unwrap();
        refused(there.path(), &there.session, "is not writable");
        fs::set_permissions(&there.file, fs::Permissions::from_mode(0o640)).unwrap();
    }
    // Nothing kept, nothing replaced.
    let output =
        command(there.path(), &apply(&there.session)).env("EPITOME_PERSISTENCE", "none").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("archiving is switched off"));
    // Running: a new thread, and the old file as it was.
    let first: Value = serde_json::from_slice(bytes.split(|it| *it == b'\n').next().unwrap()).unwrap();
    let locks = there.path().join(".codex/thread-writer-locks");
    fs::create_dir_all(&locks).unwrap();
    let lock =
        fs::File::create(locks.join(format!("{}.lock", first["payload"]["id"].as_str().unwrap()))).unwrap();
    lock.lock().unwrap();
    assert_eq!(fs::read(&there.file).unwrap(), bytes, "nothing was changed by what was refused");
    let pruned =
        answer(&epitome(there.path(), &["prune", &there.session, "--protect", "0", "--apply", "--json"]));
    assert_eq!(pruned["status"], "pruned", "{pruned}");
    assert_ne!(pruned["session_id"], first["payload"]["id"]);
    assert_eq!(fs::read(&there.file).unwrap(), bytes);
    let live = answer(&epitome(there.path(), &apply(&there.session)));
    assert_eq!(live["status"], "compacted");
    assert_ne!(live["session_id"], first["payload"]["id"]);
    assert_eq!(fs::read(&there.file).unwrap(), bytes);
    drop(lock);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &str| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(live["output"].as_str().unwrap()), 0o640, "permissions are the old session's");
    }
}

/// The words of a session as the reader gives them, by who said them: `(role, kind is a summary, text)`.
fn words(path: &str) -> Vec<(String, bool, String)> {
    use epitome::history::{Kind, Role};
    let source = epitome::sessions::MemorySource::new("made", fs::read(path).unwrap());
    let session = epitome::sessions::read(&source, None).unwrap();
    let mut out = Vec::new();
    for message in session.history.messages() {
        for text in message.texts() {
            let role = if message.role == Role::User { "user" } else { "other" };
            out.push((role.to_owned(), message.kind == Kind::Summary, text.as_str().to_owned()));
        }
    }
    out
}

#[test]
fn every_session_is_carried_to_every_agent() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/sessions");
    let mut names: Vec<_> = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path()).collect();
    names.retain(|it| it.extension().is_some_and(|it| it != "py"));
    names.sort();
    assert_eq!(names.len(), 11);
    let each = |agent: &str| {
        for path in &names {
            // The default; and, from an agent's own session, one whose summary stands behind the user's words.
            let native = path.extension().is_some_and(|it| it == "jsonl");
            for profile in ["epitome", "codex@0.169"].into_iter().take(if native { 2 } else { 1 }) {
                let home = tempfile::tempdir().unwrap();
                let session = path.display().to_string();
                let arguments =
                    ["compact", &session, "--profile", profile, "--as", agent, "--apply", "--json"];
                let done = answer(&epitome(home.path(), &arguments));
                let what = format!("{session} {profile} to {agent}: {done}");
                assert_eq!(done["status"], "compacted", "{what}");
                let found = words(done["output"].as_str().unwrap());
                let summary = done["summary"].as_str().unwrap();
                let holds = |it: &&(String, bool, String)| it.2.contains(summary.lines().next().unwrap());
                let summaries: Vec<_> = found.iter().filter(holds).collect();
                assert_eq!(summaries.len(), 1, "{what}");
                // OpenCode knows its own summary only in front.
                assert!(summaries[0].1 || (agent, profile) == ("opencode", "codex@0.169"), "{what}");
                let last = "mention https://docs.example.com/idempotency#keys and that keys live 24 h";
                let said = found.iter().any(|(role, _, text)| role == "user" && text.ends_with(last));
                assert!(said, "{what}: {found:#?}");
            }
        }
    };
    std::thread::scope(|scope| {
        for agent in ["codex", "claude-code", "gemini-cli", "opencode"] {
            scope.spawn(|| each(agent));
        }
    });
}
