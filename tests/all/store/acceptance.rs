//! Nothing is lost: every session of the corpus, killed processes, many processes at once. Short by default;
//! `EPITOME_ROUNDS` says how often, and that the whole corpus is meant. Figures go to stderr.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::Value;

use epitome::history::Message;
use epitome::history::secrets::Redactor;
use epitome::sessions::{self, MemorySource};
use epitome::store::{Compaction, Scope, Store, StoreAt};

use super::program::{answer, asked, claude, codex, command, epitome, keep, refused, rounds, said, store};

use crate::corpus;

/// What is done to each session: compacted and pruned, in its own format and as the messages of the APIs.
fn ways() -> Vec<(&'static str, Option<&'static str>)> {
    let short = [("compact", None), ("compact", Some("openai-chat")), ("prune", None)];
    let rest = [
        ("compact", Some("anthropic")),
        ("compact", Some("openai-responses")),
        ("compact", Some("gemini")),
        ("prune", Some("anthropic")),
    ];
    short.into_iter().chain(rest.into_iter().filter(|_| asked().is_some())).collect()
}

/// The sessions of the corpus by folder; without `EPITOME_ROUNDS` the smallest of each, and our examples where there
/// is no corpus.
fn sessions() -> Vec<PathBuf> {
    let files = |folder: PathBuf| {
        let mut out = corpus::files(&folder);
        out.sort_by_key(|it| std::fs::metadata(it).unwrap().len());
        out
    };
    let mut out = files(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/sessions"));
    let most = if asked().is_some() { usize::MAX } else { 1 };
    let found: Vec<PathBuf> =
        corpus::KINDS.iter().flat_map(|it| files(corpus::corpus().join(it)).into_iter().take(most)).collect();
    if found.is_empty() {
        eprintln!("SKIPPED: every_session_comes_back on real sessions: no corpus (set EPITOME_CORPUS)");
    }
    out.extend(found);
    out
}

/// What each handle of an answer must give back: the text of the output or message that it stands for.
fn expected(original: &[u8], answer: &Value) -> BTreeMap<String, String> {
    let history = sessions::read(&MemorySource::new("original", original), None).unwrap().history;
    let text = |it: &Value| {
        let message: &Message = &history.messages()[it["message"].as_u64().unwrap() as usize];
        let call = it["call_id"].as_str().unwrap_or_default();
        let output = message.outputs().find(|it| !call.is_empty() && &*it.id == call);
        output.map_or_else(|| message.plain(), |it| it.text.as_str().to_owned())
    };
    let pruned = answer["pruned"].as_array().unwrap().iter();
    let named = pruned.filter_map(|it| Some((it["handle"].as_str()?.to_owned(), text(it))));
    let (mut out, mut twice) = (BTreeMap::new(), Vec::new());
    for (handle, text) in named {
        if out.insert(handle.clone(), text.clone()).is_some_and(|it| it != text) {
            twice.push(handle);
        }
    }
    assert!(twice.is_empty(), "{twice:?} stand for two texts");
    out
}

#[derive(Default, Debug)]
struct Tally {
    compacted: usize,
    untouched: BTreeMap<String, usize>,
    restored: usize,
    handles: usize,
    outputs: usize,
}

#[test]
fn every_session_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    };
    let (home, here, elsewhere) = (place("home"), place("here"), place("else where"));
    let placeholder = Regex::new("epitome (?:recall|restore) ([0-9a-hjkmnp-tv-z]{10})").unwrap();
    let mut tally = Tally::default();
    let sessions = sessions();
    for session in &sessions {
        let name = session.file_name().unwrap().to_string_lossy().into_owned();
        let original = std::fs::read(session).unwrap();
        let (from, out, back) = (here.join(&name), here.join("compacted"), elsewhere.join("back"));
        for (verb, api) in ways() {
            std::fs::write(&from, &original).unwrap();
            let (from, out, back) = (from.to_str().unwrap(), out.to_str().unwrap(), back.to_str().unwrap());
            let how = if verb == "compact" { ["--budget", "30%"] } else { ["--protect", "0"] };
            let mut arguments = vec![verb, from, how[0], how[1], "--out", out, "--json"];
            arguments.extend(api.iter().flat_map(|it| ["--as", it]));
            let output = command(&home, &here, &arguments).output().unwrap();
            std::fs::remove_file(from).unwrap();
            let way = format!("{name} {verb} {}", api.unwrap_or("native"));
            if output.stdout.is_empty() {
                // pi and SWE-agent are read, not written.
                let why = refused(&output);
                assert!(why.contains("--as") && !Path::new(out).exists(), "{way}: {why}");
                *tally.untouched.entry("only read, not written".to_owned()).or_default() += 1;
                continue;
            }
            let answer = answer(&output);
            if answer["status"] != "compacted" && answer["status"] != "pruned" {
                assert!(!Path::new(out).exists(), "{way}: {answer}");
                let why = format!("{verb}: {}", answer["reason_code"].as_str().unwrap_or_default());
                *tally.untouched.entry(why).or_default() += 1;
                continue;
            }
            tally.compacted += 1;
            let handle = answer["handle"].as_str().unwrap();
            said(&command(&home, &elsewhere, &["restore", handle, "--out", back]).output().unwrap());
            assert!(std::fs::read(back).unwrap() == original, "{way}");
            std::fs::remove_file(back).unwrap();
            tally.restored += 1;
            let expected = expected(&original, &answer);
            let written = String::from_utf8_lossy(&std::fs::read(out).unwrap()).into_owned();
            std::fs::remove_file(out).unwrap();
            let mut handles: BTreeSet<&str> =
                placeholder.captures_iter(&written).map(|it| it.get(1).unwrap().as_str()).collect();
            assert!(handles.contains(handle) || !written.contains("Full original / undo"), "{way}");
            handles.extend(expected.keys().map(String::as_str));
            for it in handles {
                let got = command(&home, &elsewhere, &["recall", it]).output().unwrap();
                assert!(got.status.success(), "{way}: {it}: {}", String::from_utf8_lossy(&got.stderr));
                tally.handles += 1;
                if it == handle {
                    assert!(got.stdout == original, "{way}: {it}");
                } else {
                    let expected =
                        expected.get(it).unwrap_or_else(|| panic!("{way}: {it} is not in `pruned`"));
                    assert!(got.stdout == expected.as_bytes(), "{way}: {it}");
                    tally.outputs += 1;
                }
            }
        }
    }
    let opened = Store::open(&StoreAt::Path(store(&home)), Redactor::default()).unwrap();
    let checked = opened.check().unwrap();
    assert_eq!(checked.problems, Vec::<String>::new());
    let stats = opened.stats().unwrap();
    eprintln!(
        "{} sessions in {} ways: {} made, {} restored byte for byte with the source deleted, {} handles resolved exactly \
         ({} outputs and messages); not made: {:?}; store: {} originals checked, {} KB of {} KB",
        sessions.len(),
        ways().len(),
        tally.compacted,
        tally.restored,
        tally.handles,
        tally.outputs,
        tally.untouched,
        checked.originals,
        stats.stored_bytes >> 10,
        stats.bytes >> 10,
    );
    assert!(tally.compacted > 0 && tally.outputs > 0, "{tally:?}");
}

/// Deterministic, and different each time.
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

/// A compaction of a session with everything it holds, byte for byte.
fn assert_whole(store: &Store, scope: &Scope, compaction: &Compaction, original: &[u8]) {
    let session = compaction.original.unwrap();
    assert!(store.restore(scope, session.as_str()).unwrap() == original, "{session}");
    let history = sessions::read(&MemorySource::new("original", original), None).unwrap().history;
    for it in &compaction.removed {
        let text = store.restore(scope, it.handle.as_str()).unwrap();
        let message = &history.messages()[it.message.unwrap() as usize];
        let same = message.outputs().any(|it| it.text.as_str().as_bytes() == text);
        assert!(same || message.plain().as_bytes() == text, "{}", it.handle);
    }
}

#[test]
fn killed_while_it_archives() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let scope = Scope { owner: "local".into(), project: home.display().to_string() };
    let database = store(home).join("epitome.db-wal");
    let size = || std::fs::metadata(&database).map_or(0, |it| it.len());
    let (mut seed, mut whole) = (7, [Duration::from_millis(500); 2]);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    // The first two go to the end.
    let total = rounds(8) + 1;
    for round in 0..=total {
        // In turn: Codex, whose file is replaced, and Claude Code, in whose file outputs are overwritten.
        let kind = round % 2;
        let (agent, id) = (["codex", "claude-code"][kind], format!("00000000-0000-4000-8000-{round:012}"));
        let outputs = round * 100..round * 100 + 40;
        let original =
            if kind == 0 { codex(&id, home, outputs, 120) } else { claude(&id, home, outputs, 120) };
        let path = keep(home, home, agent, &id, original.as_bytes());
        let session = path.to_str().unwrap();
        let arguments = match kind {
            0 => vec!["compact", session, "--budget", "30%", "--apply", "--json"],
            _ => vec!["prune", session, "--protect", "4000", "--apply", "--json"],
        };
        let begun = Instant::now();
        if round < 2 {
            // Once each to the end: how long that takes, and that it does something.
            let done = answer(&epitome(home, &arguments));
            assert!(["compacted", "pruned"].contains(&done["status"].as_str().unwrap()), "{done}");
            assert_ne!(std::fs::read(&path).unwrap(), original.as_bytes(), "{agent}");
            whole[kind] = begun.elapsed();
            continue;
        }
        let before = size();
        let mut child =
            command(home, home, &arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let until = |share: u64| whole[kind].mul_f64(share as f64 / 1000.0);
        match round / 2 % 2 {
            // At any moment of the whole.
            0 => std::thread::sleep(until(random(&mut seed) % 1100)),
            // Around the moment at which the store is written to.
            _ => {
                while size() == before && child.try_wait().unwrap().is_none() {
                    std::thread::yield_now();
                }
                std::thread::sleep(Duration::from_micros(random(&mut seed) % 20_000));
            }
        }
        let _ = child.kill();
        child.wait().unwrap();

        let opened = Store::open(&StoreAt::Path(store(home)), Redactor::default()).unwrap();
        assert_eq!(opened.check().unwrap().problems, Vec::<String>::new(), "round {round}");
        let stored = opened.compactions(&scope, Some(&id), 9).unwrap();
        stored.iter().for_each(|it| assert_whole(&opened, &scope, it, original.as_bytes()));
        let touched = std::fs::read(&path).unwrap() != original.as_bytes();
        assert!(!touched || !stored.is_empty(), "round {round}: replaced without its original");
        let outcome = match (stored.first(), touched) {
            (None, _) => "nothing stored, session untouched",
            (Some(it), false) if it.applied.is_none() => "originals stored, session untouched",
            (Some(_), false) => "originals stored and the write announced, session untouched",
            (Some(_), true) => "originals stored, session replaced",
        };
        *counts.entry(outcome).or_default() += 1;
        if let Some(it) = stored.first().filter(|_| touched) {
            // And it comes back, in place.
            said(&epitome(home, &["restore", it.handle.as_str(), "--apply"]));
            assert!(std::fs::read(&path).unwrap() == original.as_bytes(), "round {round}");
        }
    }
    let kills: usize = counts.values().sum();
    eprintln!("{kills} kills during compact and prune, every store opened and sound: {counts:#?}");
}

/// Who takes part, and what it came to.
#[derive(Default)]
struct Worker {
    compacted: usize,
    recalled: usize,
    searched: usize,
    longest: Duration,
    /// Handle and what it must give back.
    kept: Vec<(String, Vec<u8>)>,
}

#[test]
fn eight_processes_compact_and_recall_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    // With `EPITOME_ROUNDS` for 30 seconds, else twice each.
    let until = asked().map(|_| Instant::now() + Duration::from_secs(30));
    let goes_on = |done: usize| until.map_or(done < 2, |it| Instant::now() < it);
    let work = |who: usize| {
        let mut out = Worker::default();
        let mut timed = |arguments: &[&str]| {
            let begun = Instant::now();
            let output = epitome(home, arguments);
            out.longest = out.longest.max(begun.elapsed());
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            output
        };
        let (mut kept, mut compacted, mut recalled, mut searched) = (Vec::new(), 0, 0, 0);
        while goes_on(compacted) {
            let from = who * 100_000 + compacted * 20;
            let original = claude(&format!("s{from}"), home, from..from + 20, 60);
            let session = home.join(format!("{who}.jsonl"));
            std::fs::write(&session, &original).unwrap();
            let result = home.join(format!("{who}.out"));
            let (session, result) = (session.to_str().unwrap(), result.to_str().unwrap());
            let done = answer(&timed(&["compact", session, "--budget", "60%", "--out", result, "--json"]));
            assert_eq!(done["status"], "compacted", "{done}");
            compacted += 1;
            kept.push((done["handle"].as_str().unwrap().to_owned(), original.clone().into_bytes()));
            for (handle, text) in expected(original.as_bytes(), &done).into_iter().take(2) {
                assert!(timed(&["recall", &handle]).stdout == text.as_bytes(), "{handle}");
                recalled += 1;
                kept.push((handle, text.into_bytes()));
            }
            let found = answer(&timed(&["recall", &format!("\"everything of s{from}\""), "--json"]));
            assert!(found["hits"].is_array());
            searched += 1;
        }
        Worker { kept, compacted, recalled, searched, longest: out.longest }
    };
    let begun = Instant::now();
    let workers: Vec<Worker> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..8).map(|who| scope.spawn(move || work(who))).collect();
        all.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let took = begun.elapsed();
    let opened = Store::open(&StoreAt::Path(store(home)), Redactor::default()).unwrap();
    assert_eq!(opened.check().unwrap().problems, Vec::<String>::new());
    let scope = Scope { owner: "local".into(), project: home.display().to_string() };
    for (handle, bytes) in workers.iter().flat_map(|it| &it.kept) {
        assert!(opened.restore(&scope, handle).unwrap() == *bytes, "{handle}");
    }
    let sum = |of: fn(&Worker) -> usize| workers.iter().map(of).sum::<usize>();
    eprintln!(
        "8 processes at once for {:.1} s: {} compactions, {} recalls, {} searches, no error, longest command {:.2} s; {} originals \
         all there",
        took.as_secs_f64(),
        sum(|it| it.compacted),
        sum(|it| it.recalled),
        sum(|it| it.searched),
        workers.iter().map(|it| it.longest).max().unwrap().as_secs_f64(),
        sum(|it| it.kept.len()),
    );
}
