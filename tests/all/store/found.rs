//! What was said in any session that is kept is found: by words of any script, by agent, kind and time.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use epitome::history::secrets::Redactor;
use epitome::store::{Retention, Scope, SearchExtent, Store, StoreAt};
use serde_json::{Value, json};

use super::program::{answer, asked, codex, command, epitome, keep, refused, store};

const ID: &str = "00000000-0000-4000-8000-00000000000f";

/// A session in which the user speaks two languages, a test fails and a file is changed.
fn session(cwd: &Path) -> String {
    let (mut out, mut parent, mut number) = (String::new(), Value::Null, 0);
    let mut line = |kind: &str, content: Value| {
        number += 1;
        let uuid = format!("00000000-0000-4000-8000-{number:012}");
        let mut message = json!({"role": kind, "content": content});
        if kind == "assistant" {
            (message["id"], message["model"]) = (json!(format!("m{number}")), json!("claude-x"));
        }
        let row = json!({"parentUuid": parent, "isSidechain": false, "cwd": cwd, "sessionId": ID, "version": "2.1.328",
            "type": kind, "message": message, "uuid": uuid, "timestamp": format!("2026-03-{number:02}T00:00:00.000Z")});
        parent = json!(uuid);
        out.push_str(&format!("{row}\n"));
    };
    line(
        "user",
        json!(
            "昨夜の障害を調べてください。缓存总是过期。The token is ghp_16C7e42F292c6912E7710c838347Ae178B4a."
        ),
    );
    let call = |id: &str, name: &str, input: Value| json!([{"type": "tool_use", "id": id, "name": name, "input": input}]);
    line("assistant", call("t1", "Bash", json!({"command": "make check"})));
    let failed = format!("{}\nassertion zanzibar failed", "a passing line\n".repeat(400));
    line("user", json!([{"type": "tool_result", "tool_use_id": "t1", "content": failed, "is_error": true}]));
    let edit = json!({"file_path": "src/quokka.rs", "old_string": "a", "new_string": "b"});
    line("assistant", call("t2", "Edit", edit));
    line(
        "user",
        json!([{"type": "tool_result", "tool_use_id": "t2", "content": "The file was updated, said wombat."}]),
    );
    line("assistant", json!([{"type": "text", "text": "We decided to expire entries after an hour."}]));
    out
}

/// A home with that session and one of Codex, both archived.
fn home() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let home = std::fs::canonicalize(folder.path()).unwrap();
    keep(&home, &home, "claude-code", ID, session(&home).as_bytes());
    let other = "00000000-0000-4000-8000-0000000000c0";
    keep(&home, &home, "codex", other, codex(other, &home, 0..2, 10).as_bytes());
    let kept = answer(&epitome(&home, &["sessions", "--keep", "--json"]));
    assert_eq!(kept["kept"], 2, "{kept}");
    (folder, home)
}

/// The messages that are found, and their snippets.
fn found(home: &Path, arguments: &[&str]) -> Vec<(u64, String)> {
    let answer = answer(&epitome(home, &[&["recall", "--json"], arguments].concat()));
    let hit = |it: &Value| {
        assert_eq!(it["kind"], "message", "{answer}");
        (it["message"].as_u64().unwrap(), it["snippet"]["text"].as_str().unwrap().to_owned())
    };
    answer["hits"].as_array().unwrap_or_else(|| panic!("{answer}")).iter().map(hit).collect()
}

fn messages(home: &Path, arguments: &[&str]) -> Vec<u64> {
    found(home, arguments).into_iter().map(|it| it.0).collect()
}

#[test]
pub(super) fn words_of_any_script_and_qualifiers() {
    let (_folder, home) = home();
    for (arguments, expected) in [
        (&["障害"][..], &[0][..]),
        (&["缓存"], &[0]),
        (&["过期"], &[0]),
        (&["zanzibar"], &[2]),
        (&["zanzibar", "--kind", "error"], &[2]),
        (&["zanzibar kind:user"], &[]),
        (&["quokka", "--kind", "file"], &[3]),
        (&["entries expire", "--kind", "decision"], &[5]),
        (&["entries expire", "--agent", "codex"], &[]),
        (&["entries expire agent:claude-code"], &[5]),
        (&["entries expire", "--since", "2026-03-06"], &[5]),
        (&["entries expire", "--before", "2026-03-06"], &[]),
        (&["entries expire", "--scope", "all"], &[5]),
        (&["entries expire", "--project", "/nowhere"], &[]),
        // Only the output of a tool that went well has it: sessions are looked through for it.
        (&["wombat"], &[4]),
    ] {
        assert_eq!(messages(&home, arguments), expected, "{arguments:?}");
    }
    let project = home.to_str().unwrap();
    assert_eq!(messages(Path::new(&home), &["entries expire", "--project", project]), [5]);
    assert!(!messages(&home, &["Look everything", "--agent", "codex"]).is_empty());
    let why = refused(&epitome(&home, &["recall", "x", "--agent", "nobody"]));
    assert!(why.contains("--agent: expected an agent (") && why.contains("\"nobody\""), "{why}");
    let why = refused(&epitome(&home, &["recall", "x", "--since", "soon"]));
    assert!(why.contains("--since: expected an age"), "{why}");
}

#[test]
pub(super) fn a_secret_is_in_no_passage() {
    let (_folder, home) = home();
    let hits = found(&home, &["障害"]);
    assert!(hits[0].1.contains("The token is") && !hits[0].1.contains("ghp_16C7"), "{hits:?}");
}

#[test]
pub(super) fn a_session_that_grew_is_found_once_and_gone_when_it_is_let_go_of() {
    let (_folder, home) = home();
    let grown = format!(
        "{}{}\n",
        session(&home),
        json!({"parentUuid": "00000000-0000-4000-8000-000000000006", "isSidechain": false, "cwd": home, "sessionId": ID,
            "version": "2.1.328", "type": "user", "message": {"role": "user", "content": "Go on with the zeppelin."},
            "uuid": "00000000-0000-4000-8000-000000000007", "timestamp": "2026-03-07T00:00:00.000Z"})
    );
    keep(&home, &home, "claude-code", ID, grown.as_bytes());
    assert_eq!(answer(&epitome(&home, &["sessions", "--keep", "--json"]))["kept"], 1);
    assert_eq!(messages(&home, &["entries expire"]), [5]);
    assert_eq!(messages(&home, &["zeppelin"]), [6]);
    let later = ["memory", "gc", "--before", "2999-01-01T00:00:00Z", "--json"];
    assert_eq!(answer(&epitome(&home, &later))["collected"]["originals"], 3);
    assert!(messages(&home, &["zeppelin", "--scope", "all"]).is_empty());
    let sound = answer(&epitome(&home, &["doctor", "--json"]));
    assert!(!sound.to_string().contains("index of passages is damaged"), "{sound}");
}

#[test]
pub(super) fn what_a_compaction_archived_is_indexed_by_the_next_search() {
    let folder = tempfile::tempdir().unwrap();
    let home = std::fs::canonicalize(folder.path()).unwrap();
    let path = keep(&home, &home, "claude-code", ID, super::program::claude(ID, &home, 0..6, 60).as_bytes());
    let made = answer(&epitome(
        &home,
        &["compact", path.to_str().unwrap(), "--budget", "1500", "--apply", "--json"],
    ));
    assert_eq!(made["status"], "compacted", "{made}");
    let open = || Store::open(&StoreAt::Path(store(&home)), Redactor::default()).unwrap();
    assert_eq!(open().unindexed("local").unwrap().len(), 1);
    let hits = answer(&epitome(&home, &["recall", "Go on with", "--json"]));
    assert!(!hits["hits"].as_array().unwrap().is_empty(), "{hits}");
    assert_eq!(open().unindexed("local").unwrap(), []);
    // A later version goes by its age; what it shares with the one that the compaction holds is still found.
    let grown = [&std::fs::read(&path).unwrap()[..], b"{\"type\":\"queue-operation\"}\n"].concat();
    std::fs::write(&path, grown).unwrap();
    let kept = answer(&epitome(&home, &["sessions", "--keep", "--json"]));
    assert_ne!(kept["kept"], 0, "{kept}");
    let store = open();
    let configured = Retention { before: Some(i64::MAX), max_bytes: None, originals_only: true };
    let gone = store.collect(&configured, 0, false).unwrap();
    assert_eq!(Some(gone.sessions.len() as u64), kept["kept"].as_u64(), "{gone:?}");
    assert_eq!(store.unindexed("local").unwrap().len(), 1);
    drop(store);
    assert_eq!(answer(&epitome(&home, &["recall", "Go on with", "--json"])), hits);
}

/// A text with other words in it: about every fifth of the longer ones.
fn reworded(value: &mut Value, copy: usize) {
    match value {
        Value::String(text) if text.len() > 40 && text.contains(' ') => {
            let word = |it: &str| {
                let plain = it.len() >= 6 && it.bytes().all(|it| it.is_ascii_lowercase());
                let sum: usize = it.bytes().map(usize::from).sum();
                if plain && (sum + copy).is_multiple_of(5) { format!("{it}{copy}") } else { it.to_owned() }
            };
            *text = text.split(' ').map(word).collect::<Vec<_>>().join(" ");
        }
        Value::Array(all) => all.iter_mut().for_each(|it| reworded(it, copy)),
        Value::Object(all) => all.values_mut().for_each(|it| reworded(it, copy)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Sessions of the corpus, made many by other ids and words; where each lies.
fn multiplied(home: &Path, corpus: &Path, many: usize) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for agent in ["claude-code", "codex"] {
        let all = std::fs::read_dir(corpus.join(agent)).unwrap().map(|it| it.unwrap().path());
        let small = all.filter(|it| it.metadata().is_ok_and(|it| it.len() < 200_000));
        files.extend(small.filter(|it| it.extension().is_some_and(|it| it == "jsonl")).map(|it| (agent, it)));
    }
    files.sort();
    let mut out = Vec::new();
    for copy in 0..many {
        let (agent, path) = &files[copy % files.len()];
        let id = format!("00000000-0000-4000-8000-{copy:012x}");
        let project = home.join(format!("project{}", copy % 200));
        let mut lines = String::new();
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let Ok(mut value) = serde_json::from_str::<Value>(line) else { continue };
            reworded(&mut value, copy);
            for key in ["sessionId", "cwd"] {
                if value.get(key).is_some() {
                    value[key] = if key == "cwd" { json!(project) } else { json!(id) };
                }
            }
            if value["type"] == "session_meta" {
                (value["payload"]["id"], value["payload"]["cwd"]) = (json!(id), json!(project));
            }
            lines.push_str(&format!("{value}\n"));
        }
        out.push(keep(home, &project, agent, &id, lines.as_bytes()));
    }
    out
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Prints what it takes to index and find 10,000 sessions, and compares all that is restored.
#[test]
#[ignore = "archives 10,000 sessions: EPITOME_BINARY=… cargo test --test all ten_thousand -- --ignored --nocapture"]
fn ten_thousand_sessions() {
    let Some(corpus) = crate::corpus::corpus_for("ten_thousand_sessions") else { return };
    let folder = tempfile::tempdir().unwrap();
    let home = std::fs::canonicalize(folder.path()).unwrap();
    let paths = multiplied(&home, &corpus, asked().unwrap_or(10_000));
    let bytes: u64 = paths.iter().map(|it| it.metadata().unwrap().len()).sum();
    let begun = Instant::now();
    let kept = answer(&epitome(&home, &["sessions", "--keep", "--json"]));
    eprintln!("{} sessions, {bytes} bytes: kept and indexed in {:.1?}", kept["kept"], begun.elapsed());
    assert_eq!(kept["kept"].as_u64(), Some(paths.len() as u64), "{}", kept["failed"]);
    let database = store(&home).join("epitome.db");
    eprintln!("epitome.db: {} bytes", database.metadata().unwrap().len());
    let cold = |arguments: &[&str]| {
        // The file leaves the page cache: its next reader waits for the disk.
        let drop = format!("of={}", database.display());
        std::process::Command::new("dd")
            .args([&*drop, "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"])
            .status()
            .unwrap();
        timed(&home, arguments)
    };
    let queries = [
        "cache",
        "error handling",
        "what did we decide about tests",
        "database migration",
        "refactor parser",
        "接続",
        "timeout retry",
        "docker build failed",
        "json schema",
        "git rebase",
    ];
    for scope in
        [&["--scope", "all"][..], &["--scope", "all", "--agent", "codex"], &["--project", "project7"]]
    {
        let run = |run: &dyn Fn(&[&str]) -> Duration| -> Vec<Duration> {
            queries.iter().map(|it| run(&[&["recall", it], scope].concat())).collect()
        };
        let first = run(&cold);
        let warm: Vec<Duration> = (0..5).flat_map(|_| run(&|it| timed(&home, it))).collect();
        let slowest = warm.iter().max().unwrap();
        eprintln!(
            "{scope:?}: cold {:.0?} (slowest {:.0?}), warm {:.0?} (slowest {slowest:.0?})",
            median(first.clone()),
            first.iter().max().unwrap(),
            median(warm.clone()),
        );
    }
    let store = Store::open(&StoreAt::Path(store(&home)), Redactor::default()).unwrap();
    let nowhere = Scope { owner: "local".into(), project: String::new() };
    let mut archived = std::collections::BTreeMap::new();
    for it in store.sessions(&nowhere, &SearchExtent::All, u32::MAX).unwrap() {
        let scope = Scope { project: it.project.clone(), ..nowhere.clone() };
        archived.insert(it.session.unwrap(), store.restore(&scope, it.handle.as_str()).unwrap());
    }
    for path in &paths {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let id = &stem[stem.len() - 36..];
        assert!(archived[id] == std::fs::read(path).unwrap(), "{id}");
    }
}

fn timed(home: &Path, arguments: &[&str]) -> Duration {
    let begun = Instant::now();
    let output = command(home, home, arguments).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    begun.elapsed()
}
