//! Marks, asks; letting go; and what happens when the disk or somebody else spoils things.

use std::path::Path;

use super::chunks::noise;
use epitome::history::error::ErrorKind;
use epitome::history::secrets::Redactor;
use epitome::store::{
    Batch, Body, ItemKind, NewCompaction, NewMemory, Original, Retention, Scope, SessionOrigin, Store,
    StoreAt, Stored,
};

const DAY: i64 = 24 * 60 * 60 * 1_000;

fn me() -> Scope {
    Scope { owner: "me".into(), project: "/p".into() }
}

fn memory() -> Store {
    super::fresh(Redactor::default())
}

fn at(path: &Path) -> epitome::Result<Store> {
    Store::open(&StoreAt::Path(path.into()), Redactor::default())
}

fn put(store: &Store, at: i64, bytes: &[u8], compacted: bool) -> Stored {
    let original = Original {
        kind: ItemKind::Output,
        body: Body::Bytes(bytes),
        message: Some(1),
        call_id: Some("c"),
        tool: None,
        tokens: 1,
    };
    let compaction = compacted.then(NewCompaction::default);
    let session = SessionOrigin { id: format!("s{at}"), ..SessionOrigin::default() };
    store.put_all(&me(), &Batch { session, at, originals: vec![original], compaction }).unwrap()
}

#[test]
pub(super) fn marks_are_of_their_project() {
    let store = memory();
    assert_eq!(store.marked(&me(), "compacted/s").unwrap(), None);
    store.mark(&me(), "compacted/s", "1", 5).unwrap();
    store.mark(&me(), "compacted/s", "2", 6).unwrap();
    let mark = store.marked(&me(), "compacted/s").unwrap().unwrap();
    assert_eq!((mark.value.as_str(), mark.at), ("2", 6));
    assert_eq!(store.marked(&Scope { project: "/q".into(), ..me() }, "compacted/s").unwrap(), None);
    store.unmark(&me(), "compacted/s").unwrap();
    assert_eq!(store.marked(&me(), "compacted/s").unwrap(), None);
}

#[test]
pub(super) fn an_ask_expires_after_a_day() {
    let store = memory();
    let state = "{\"ask\":\"日本\"}".repeat(100);
    let handle = store.put_ask(&me(), &state, 1_000).unwrap();
    assert_eq!(store.ask(&me(), handle.as_str(), 1_000 + DAY - 1).unwrap(), state);
    let error = store.ask(&me(), handle.as_str(), 1_000 + DAY).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("expired"), "{error}");
    // Asked again, it lives on.
    assert_eq!(store.put_ask(&me(), &state, DAY).unwrap(), handle);
    assert!(store.ask(&me(), handle.as_str(), 1_000 + DAY).is_ok());
    assert_eq!(store.collect(&Retention::default(), 3 * DAY, false).unwrap().expired, 1);
    assert_eq!(store.ask(&me(), handle.as_str(), DAY).unwrap_err().kind(), ErrorKind::Arguments);
}

#[test]
pub(super) fn lets_go_of_what_is_old_but_not_of_what_a_newer_compaction_holds() {
    let store = memory();
    let old = put(&store, DAY, &noise(1, 10_000), true);
    let shared = put(&store, DAY, &noise(2, 10_000), true);
    let held = put(&store, 9 * DAY, &noise(2, 10_000), true);
    let loose = put(&store, DAY, &noise(3, 10_000), false);
    assert_eq!(shared.handles, held.handles);
    let retention = Retention { before: Some(5 * DAY), max_bytes: None, originals_only: false };
    let planned = store.collect(&retention, 10 * DAY, true).unwrap();
    assert_eq!((planned.compactions, planned.originals), (2, 2));
    assert!((20_000..20_200).contains(&planned.bytes), "{planned:?}");
    assert_eq!(store.stats().unwrap().items["output"], 3);

    assert_eq!(store.collect(&retention, 10 * DAY, false).unwrap(), planned);
    assert_eq!(store.restore(&me(), held.handles[0].as_str()).unwrap(), noise(2, 10_000));
    for gone in [old.handles[0], loose.handles[0], old.compaction.unwrap()] {
        assert_eq!(store.entry(&me(), gone.as_str()).unwrap_err().kind(), ErrorKind::Arguments);
    }
    // By size, what a compaction newer than the age holds stays even so.
    let retention = Retention { before: Some(5 * DAY), max_bytes: Some(0), originals_only: false };
    assert_eq!(store.collect(&retention, 10 * DAY, false).unwrap().originals, 0);
    // By size alone, the oldest goes first.
    put(&store, 10 * DAY, &noise(4, 10_000), true);
    let retention = Retention { before: None, max_bytes: Some(15_000), originals_only: false };
    let collected = store.collect(&retention, 10 * DAY, false).unwrap();
    assert_eq!((collected.compactions, collected.originals), (1, 1));
    assert_eq!(store.entry(&me(), held.handles[0].as_str()).unwrap_err().kind(), ErrorKind::Arguments);
    assert!(store.check().unwrap().problems.is_empty());
    assert_eq!(store.stats().unwrap().bytes, 10_000);
}

#[test]
pub(super) fn letting_go_also_takes_superseded_memories() {
    let store = memory();
    for (at, content) in [(1, "a"), (2, "A"), (3, "a!"), (4, "b")] {
        store.remember(&me(), &NewMemory { content: content.into(), ..NewMemory::default() }, at).unwrap();
        store.tidy(&me(), None, false).unwrap();
    }
    assert_eq!(
        store
            .collect(&Retention { before: Some(9), max_bytes: None, originals_only: false }, 9, false)
            .unwrap()
            .memories,
        2
    );
    assert_eq!(store.stats().unwrap().items["memory"], 2);
}

#[test]
fn vacuum_gives_space_back() {
    let directory = tempfile::tempdir().unwrap();
    let store = at(directory.path()).unwrap();
    put(&store, 1, &noise(1, 3 << 20), false);
    store.vacuum().unwrap();
    let before = store.stats().unwrap().file_bytes;
    store.collect(&Retention { before: Some(2), max_bytes: None, originals_only: false }, 2, false).unwrap();
    store.vacuum().unwrap();
    let after = store.stats().unwrap().file_bytes;
    assert!(before > 3 << 20 && after < 1 << 20, "{before} {after}");
}

#[test]
fn a_directory_that_is_a_file_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "x").unwrap();
    for place in [file.clone(), file.join("below")] {
        let error = at(&place).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Store);
        assert!(error.to_string().contains("--store"), "{error}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"x");
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    for bytes in [noise(1, 100_000), b"SQLite format 3\0".to_vec(), b"hello".to_vec()] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("epitome.db");
        std::fs::write(&file, &bytes).unwrap();
        let error = at(directory.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Store, "{error}");
        assert!(error.to_string().contains("found it damaged"), "{error}");
        assert_eq!(std::fs::read(&file).unwrap(), bytes);
    }
}

/// The database file after everything has been moved into it from the log.
fn closed(directory: &Path) -> std::path::PathBuf {
    let store = at(directory).unwrap();
    store.vacuum().unwrap();
    directory.join("epitome.db")
}

#[test]
fn a_truncated_database_is_an_error_not_a_loss() {
    let directory = tempfile::tempdir().unwrap();
    let store = at(directory.path()).unwrap();
    let handle = put(&store, 1, &noise(1, 2 << 20), true).handles[0];
    drop(store);
    let file = closed(directory.path());
    let bytes = std::fs::read(&file).unwrap();
    for share in [1, 3, 5, 7, 9] {
        std::fs::write(&file, &bytes[..bytes.len() * share / 10]).unwrap();
        // Whatever still works gives the right bytes.
        let got = at(directory.path()).and_then(|store| store.restore(&me(), handle.as_str()));
        match got {
            Ok(got) => assert!(got == noise(1, 2 << 20)),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Store, "{error}"),
        }
    }
    let error = at(directory.path()).and_then(|store| store.check()).map(|it| it.problems.len());
    assert!(!matches!(error, Ok(0)));
}

#[test]
fn bytes_that_rotted_are_never_given_back_and_storing_again_mends_them() {
    let directory = tempfile::tempdir().unwrap();
    let store = at(directory.path()).unwrap();
    let content = noise(1, 2 << 20);
    let handle = put(&store, 1, &content, true).handles[0];
    drop(store);
    let file = closed(directory.path());
    let mut bytes = std::fs::read(&file).unwrap();
    // Noise does not compress, so it stands in the file as it is.
    let at_byte = memchr::memmem::find(&bytes, &content[1_000_000..1_000_100]).unwrap();
    bytes[at_byte] ^= 1;
    std::fs::write(&file, &bytes).unwrap();

    let store = at(directory.path()).unwrap();
    let error = store.restore(&me(), handle.as_str()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store);
    assert!(error.to_string().contains("corrupted"), "{error}");
    let checked = store.check().unwrap();
    assert_eq!((checked.originals, checked.problems.len()), (0, 1));
    assert!(checked.problems[0].contains(handle.as_str()), "{checked:?}");

    put(&store, 2, &content, true);
    assert!(store.restore(&me(), handle.as_str()).unwrap() == content);
    assert_eq!(store.check().unwrap().originals, 1);
}

#[test]
fn a_lock_held_by_another_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let (one, two) = (at(directory.path()).unwrap(), at(directory.path()).unwrap());
    let handles: Vec<_> = std::thread::scope(|scope| {
        let writers: Vec<_> = [&one, &two, &one, &two]
            .into_iter()
            .zip(0i64..)
            .map(|(store, who)| {
                let store: &Store = store;
                let put_one =
                    move |it: i64| put(store, it, format!("{who} {it}").as_bytes(), true).handles[0];
                scope.spawn(move || (0..20).map(put_one).collect::<Vec<_>>())
            })
            .collect();
        writers.into_iter().flat_map(|it| it.join().unwrap()).collect()
    });
    assert_eq!(handles.len(), 80);
    for handle in handles {
        assert!(one.restore(&me(), handle.as_str()).is_ok());
    }
    assert_eq!(two.check().unwrap().originals, 80);
}

#[test]
pub(super) fn what_is_pinned_or_compacted_from_stays() {
    let (store, me) = (memory(), me());
    let put = |id: &str, text: &str, compaction| {
        let original = Original::session(Body::Bytes(text.as_bytes()), 1);
        let session = SessionOrigin { id: id.into(), ..SessionOrigin::default() };
        store.put_all(&me, &Batch { session, at: DAY, originals: vec![original], compaction }).unwrap()
    };
    let (plain, pinned) = (put("a", "plain", None), put("b", "pinned", None));
    let held = put("c", "held", Some(NewCompaction::default()));
    store.pin(&me, pinned.handles[0].as_str(), true).unwrap();
    let configured = Retention { before: Some(9 * DAY), max_bytes: Some(0), originals_only: true };
    let gone = store.collect(&configured, 9 * DAY, true).unwrap();
    let named: Vec<_> = gone.sessions.iter().map(|it| (it.session.as_str(), it.bytes)).collect();
    assert_eq!((named, gone.originals, gone.compactions), (vec![("a", 5)], 1, 0));
    assert_eq!(store.collect(&configured, 9 * DAY, false).unwrap(), gone);
    assert!(store.entry(&me, plain.handles[0].as_str()).is_err());
    for kept in [pinned.handles[0], held.handles[0], held.compaction.unwrap()] {
        store.entry(&me, kept.as_str()).unwrap();
    }
    // Somebody who asks for it lets go of compactions too, and of what is no longer pinned; not of what is.
    let asked = Retention { originals_only: false, ..configured };
    assert_eq!(store.collect(&asked, 9 * DAY, true).unwrap().originals, 1);
    store.pin(&me, pinned.handles[0].as_str(), false).unwrap();
    assert_eq!(store.collect(&asked, 9 * DAY, false).unwrap().originals, 2);
}
