//! Processes that are killed, that share one store, that run out of disk. This program starts itself: a child is the
//! test of its role, told by the environment what to do.
#![cfg(unix)]

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use epitome::history::error::ErrorKind;
use epitome::history::secrets::Redactor;
use epitome::store::{
    Batch, Body, ItemKind, NewCompaction, Original, Query, Retention, Scope, SearchExtent, SessionOrigin,
    Store, StoreAt,
};

use super::chunks::noise;
use super::{old, program};

const ROLE: &str = "EPITOME_TEST_STORE";

fn me() -> Scope {
    Scope { owner: "me".into(), project: "/p".into() }
}

fn open(directory: &Path) -> epitome::Result<Store> {
    Store::open(&StoreAt::Path(directory.into()), Redactor::default())
}

/// What a child writes as its `n`th: bytes that do not compress, with its name in front.
fn content(who: &str, n: u64) -> Vec<u8> {
    let mut state = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ who.len() as u64 | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        b'!' + (state % 90) as u8
    };
    let len = 1_000 + (n as usize * 7_919) % 200_000;
    let head = format!("who {who} wrote {n} ");
    head.bytes().chain(std::iter::repeat_with(next)).take(len).collect()
}

/// Puts a session and an output in one step and returns the compaction's handle.
fn put(store: &Store, who: &str, n: u64) -> epitome::Result<String> {
    let (session, output) = (content(who, 2 * n), content(who, 2 * n + 1));
    let original = |what, bytes, message| Original {
        kind: what,
        body: Body::Bytes(bytes),
        message,
        call_id: None,
        tool: None,
        tokens: 1,
    };
    let originals =
        vec![original(ItemKind::Session, &session, None), original(ItemKind::Output, &output, Some(1))];
    let compaction = Some(NewCompaction { summary: format!("did {n}"), ..NewCompaction::default() });
    let session = SessionOrigin { id: who.into(), ..SessionOrigin::default() };
    let batch = Batch { session, at: n as i64, originals, compaction };
    Ok(store.put_all(&me(), &batch)?.compaction.map(|it| it.to_string()).unwrap_or_default())
}

/// The compaction of that handle is there with all its originals, byte for byte.
fn assert_whole(store: &Store, handle: &str) {
    let compaction = store.compaction(&me(), handle).unwrap();
    let (who, n) = (compaction.session.id.as_str(), compaction.at as u64);
    let output = store.restore(&me(), compaction.removed[0].handle.as_str()).unwrap();
    assert!(store.restore(&me(), handle).unwrap() == content(who, 2 * n), "{handle}");
    assert!(output == content(who, 2 * n + 1), "{handle}");
}

/// This program again, as the child in `role`, after `before` in a shell.
fn child(before: &str, role: &str, directory: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new("/bin/sh")
        .arg("-c")
        .arg(format!("{before} exec \"$0\" store::processes::role --exact --nocapture --test-threads 1"))
        .arg(std::env::current_exe().unwrap())
        .env(ROLE, role)
        .env("EPITOME_TEST_DIRECTORY", directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    (child, out)
}

/// Does what the environment says; nothing when the tests are run as usual.
#[test]
fn role() {
    let Some(role) = std::env::var(ROLE).ok() else { return };
    let directory = PathBuf::from(std::env::var_os("EPITOME_TEST_DIRECTORY").unwrap());
    let mut out = std::io::stdout();
    let mut say = |text: String| {
        writeln!(out, "\n{text}").unwrap();
        out.flush().unwrap();
    };
    match role.split_once(' ').unwrap() {
        ("forever", who) => {
            let store = open(&directory).unwrap();
            for n in 0..u64::MAX / 2 {
                say(format!("stored {}", put(&store, who, n).unwrap()));
            }
        }
        ("share", who) => {
            let store = open(&directory).unwrap();
            for n in 0..12 {
                let handle = put(&store, who, n).unwrap();
                assert_whole(&store, &handle);
                let query = Query {
                    text: format!("\"who {who} wrote\""),
                    extent: SearchExtent::Project,
                    only: vec![],
                    limit: 50,
                    offset: 0,
                };
                assert_eq!(store.search(&me(), &query).unwrap().hits.len() as u64, n + 1);
                store.mark(&me(), who, &n.to_string(), n as i64).unwrap();
                say(format!("stored {handle}"));
            }
            say("done".into());
        }
        ("churn", who) => {
            let store = open(&directory).unwrap();
            for n in 0.. {
                if let Some(handle) = churn(&store, who, n).unwrap() {
                    say(format!("stored {handle}"));
                }
            }
        }
        ("until-full", who) => {
            let store = match open(&directory) {
                Ok(store) => store,
                Err(error) => return say(format!("failed {:?} {error}", error.kind())),
            };
            for n in 0..200 {
                match put(&store, who, n) {
                    Ok(handle) => say(format!("stored {handle}")),
                    Err(error) => return say(format!("failed {:?} {error}", error.kind())),
                }
            }
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn killed_at_any_moment_it_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let mut acknowledged = BTreeSet::new();
    for round in 0..20usize {
        let (mut child, out) = child("", &format!("forever round{round}"), directory.path());
        // Killed after so many were stored, and then somewhere in the next.
        let mut lines = out.lines().map_while(Result::ok).filter(|it| it.starts_with("stored "));
        acknowledged.extend(lines.by_ref().take(round % 5).map(|it| it[7..].to_owned()));
        (0..round * 60_000).for_each(|it| {
            std::hint::black_box(it);
        });
        child.kill().unwrap();
        child.wait().unwrap();
        // What it still said before it died counts as well.
        acknowledged.extend(lines.filter(|it| it.len() == 17).map(|it| it[7..].to_owned()));
    }
    let store = open(directory.path()).unwrap();
    let checked = store.check().unwrap();
    assert_eq!(checked.problems, Vec::<String>::new());
    let stored = store.compactions(&me(), None, 100_000).unwrap();
    stored.iter().for_each(|it| assert_whole(&store, it.handle.as_str()));
    let stored: BTreeSet<_> = stored.iter().map(|it| it.handle.to_string()).collect();
    assert!(acknowledged.is_subset(&stored), "{} of {}", stored.len(), acknowledged.len());
    assert!(acknowledged.len() >= 40);
    eprintln!("20 kills: {} stored, {} acknowledged, all whole", stored.len(), acknowledged.len());
}

#[test]
fn eight_processes_share_one_store() {
    let directory = tempfile::tempdir().unwrap();
    // All start on a store that is not there yet.
    let children: Vec<_> =
        (0..8).map(|who| child("", &format!("share process{who}"), directory.path())).collect();
    let mut handles = BTreeSet::new();
    for (mut child, out) in children {
        let lines: Vec<_> = out.lines().map_while(Result::ok).collect();
        assert!(child.wait().unwrap().success(), "{lines:?}");
        assert!(lines.iter().any(|it| it == "done"), "{lines:?}");
        handles.extend(lines.iter().filter_map(|it| it.strip_prefix("stored ")).map(String::from));
    }
    assert_eq!(handles.len(), 8 * 12);
    let store = open(directory.path()).unwrap();
    handles.iter().for_each(|it| assert_whole(&store, it));
    assert_eq!(store.check().unwrap().problems, Vec::<String>::new());
}

#[test]
fn a_full_disk_is_an_error_and_nothing_half_stored() {
    // A limit on the size of files, in blocks of 512 bytes, with its signal ignored, is as near as one gets to a full
    // disk: for making the schema, and for some originals.
    for (blocks, stores_some) in [(16, false), (200, false), (4_000, true)] {
        let directory = tempfile::tempdir().unwrap();
        let before = format!("trap '' XFSZ; ulimit -f {blocks};");
        let (mut child, out) = child(&before, "until-full limited", directory.path());
        let lines: Vec<_> = out.lines().map_while(Result::ok).collect();
        child.wait().unwrap();
        let failed: Vec<_> = lines.iter().filter_map(|it| it.strip_prefix("failed ")).collect();
        assert_eq!(failed.len(), 1, "{lines:?}");
        assert!(failed[0].starts_with(&format!("{:?} ", ErrorKind::Store)), "{failed:?}");
        assert!(failed[0].contains("disk"), "{failed:?}");
        // With room again, what was stored is whole, and it goes on.
        let store = open(directory.path()).unwrap();
        let handles: Vec<_> = lines.iter().filter_map(|it| it.strip_prefix("stored ")).collect();
        assert_eq!(!handles.is_empty(), stores_some, "{blocks}: {lines:?}");
        handles.iter().for_each(|it| assert_whole(&store, it));
        assert_eq!(store.compactions(&me(), None, 1_000).unwrap().len(), handles.len());
        assert_eq!(store.check().unwrap().problems, Vec::<String>::new());
        assert_whole(&store, &put(&store, "later", 0).unwrap());
    }
}

/// What was stored before this goes at every turn of [`churn`]; ms since 1970.
const OLD: i64 = 1_000;

/// A session that shares its beginning with all others. One in twenty does not fit into what a process packs ahead.
fn shared(name: &str) -> Vec<u8> {
    let seed = name.bytes().fold(7u64, |sum, it| sum.wrapping_mul(131).wrapping_add(it.into()));
    let own = if seed % 20 == 0 { 9 << 20 } else { 30_000 };
    [name.as_bytes(), b" ", &noise(0, 300_000), &noise(seed, own)].concat()
}

/// Stores what is to stay, and what is not; lets go of that; brings an old archive up to date. The handle of what
/// stays.
fn churn(store: &Store, who: &str, n: u64) -> epitome::Result<Option<String>> {
    let name = format!("{who}-{n}");
    let (bytes, stays) = (shared(&name), n % 4 < 2);
    match n % 4 {
        0..=2 => {
            let original = Original::session(Body::Bytes(&bytes), 1);
            let at = if stays { OLD + n as i64 } else { OLD - 1 };
            let session = SessionOrigin { id: name, ..SessionOrigin::default() };
            let batch = Batch { session, at, originals: vec![original], compaction: None };
            let stored = store.put_all(&me(), &batch)?;
            Ok(stays.then(|| stored.handles[0].to_string()))
        }
        _ => {
            store.collect(
                &Retention { before: Some(OLD), max_bytes: None, originals_only: false },
                OLD,
                false,
            )?;
            store.rewrite_old_format()?;
            Ok(None)
        }
    }
}

#[test]
fn two_that_store_delete_and_move_are_killed_at_any_moment() {
    const ROUNDS_EACH: usize = 10;
    let rounds = program::rounds(ROUNDS_EACH);
    let (mut kills, mut restored, mut moved) = (0, 0, 0);
    for first in (0..rounds).step_by(ROUNDS_EACH) {
        let directory = tempfile::tempdir().unwrap();
        let originals = old::originals();
        old::make(directory.path(), &originals);
        let mut acknowledged = BTreeSet::new();
        for round in first..rounds.min(first + ROUNDS_EACH) {
            let mut children = [0, 1].map(|it| child("", &format!("churn {round}x{it}"), directory.path()));
            // Killed after so many were stored, and then somewhere in the next step.
            let spin = noise(round as u64, 3).iter().fold(0, |sum, it| sum << 7 | usize::from(*it));
            for (child, out) in &mut children {
                let mut line = String::new();
                for _ in 0..round % 4 {
                    line.clear();
                    while !line.starts_with("stored ") && out.read_line(&mut line).unwrap() > 0 {
                        if !line.starts_with("stored ") {
                            line.clear();
                        }
                    }
                    acknowledged.insert(line.trim_end().trim_start_matches("stored ").to_owned());
                }
                // About a tenth of a second at most: longer than a step.
                (0..spin * 3).for_each(|it| {
                    std::hint::black_box(it);
                });
                child.kill().unwrap();
            }
            for (child, out) in &mut children {
                child.wait().unwrap();
                kills += 1;
                let lines = out.lines().map_while(Result::ok).filter(|it| it.starts_with("stored "));
                acknowledged.extend(lines.filter(|it| it.len() == 17).map(|it| it[7..].to_owned()));
            }
        }
        let store = open(directory.path()).unwrap();
        old::assert_all_there(&store, &originals);
        for handle in &acknowledged {
            let entry = store.entry(&me(), handle).unwrap();
            assert!(store.restore(&me(), handle).unwrap() == shared(&entry.session.unwrap()), "{handle}");
        }
        moved += usize::from(store.stats().unwrap().old_format == 0);
        restored += acknowledged.len() + originals.len();
        // What a killed process left goes with the next collection, and nothing else.
        store.collect(&Retention::default(), OLD, false).unwrap();
        let before = store.stats().unwrap();
        assert_eq!(store.collect(&Retention::default(), OLD, false).unwrap().bytes, 0);
        assert_eq!(store.stats().unwrap(), before);
        assert_eq!(store.check().unwrap().problems, Vec::<String>::new());
    }
    eprintln!("{kills} kills: {restored} originals restored; {moved} archives moved over wholly");
}
