//! What goes wrong around a team's store: lost connections, lost objects, newer databases.

use super::server::{self, Server, server};
use epitome::history::error::ErrorKind;
use epitome::history::secrets::Redactor;
use epitome::store::{Batch, Body, NewMemory, Original, Scope, SessionOrigin, Store, StoreAt, TeamStore};

pub fn scope(owner: &str) -> Scope {
    Scope { owner: owner.into(), project: "/p".into() }
}

pub fn open(store: &TeamStore) -> epitome::Result<Store> {
    Store::open(&StoreAt::Team(store.clone()), Redactor::default())
}

/// Archives a session; its handle.
pub fn put(store: &Store, scope: &Scope, id: &str, bytes: &[u8]) -> epitome::Result<String> {
    let original = Original::session(Body::Bytes(bytes), 1);
    let session = SessionOrigin { agent: "pi".into(), id: id.into(), ..SessionOrigin::default() };
    let batch = Batch { session, at: 1, originals: vec![original], compaction: None };
    Ok(store.put_all(scope, &batch)?.handles[0].to_string())
}

fn with(name: &str, test: impl FnOnce(&Server)) {
    match server() {
        Some(it) => test(it),
        None => eprintln!("SKIPPED: {name}: no PostgreSQL installed"),
    }
}

#[test]
fn a_newer_database_is_left_alone() {
    with("a_newer_database_is_left_alone", |server| {
        let place = server.empty();
        drop(open(&place).unwrap());
        server.admin(server::name(&place)).batch_execute("UPDATE epitome.version SET version = 99").unwrap();
        let error = open(&place).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Store);
        assert!(error.full().contains("found version 99"), "{}", error.full());
    });
}

#[test]
fn many_servers_make_one_database() {
    with("many_servers_make_one_database", |server| {
        let place = server.empty();
        std::thread::scope(|threads| {
            let opening: Vec<_> = (0..6).map(|_| threads.spawn(|| open(&place).map(drop))).collect();
            opening.into_iter().for_each(|it| it.join().unwrap().unwrap());
        });
        let versions = server.admin(server::name(&place)).query("SELECT version FROM epitome.version", &[]);
        assert_eq!(versions.unwrap().len(), 1);
    });
}

#[test]
fn a_lost_connection_is_opened_again() {
    with("a_lost_connection_is_opened_again", |server| {
        let place = server.empty();
        let store = open(&place).unwrap();
        let bytes = super::super::chunks::noise(1, 100_000);
        let handle = put(&store, &scope("me"), "s", &bytes).unwrap();
        let cut = || {
            let ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                         WHERE datname = current_database() AND application_name = 'epitome'";
            assert!(!server.admin(server::name(&place)).query(ended, &[]).unwrap().is_empty());
        };
        cut();
        assert_eq!(store.restore(&scope("me"), &handle).unwrap(), bytes);
        cut();
        let other = put(&store, &scope("me"), "t", &bytes[..50_000]).unwrap();
        cut();
        store.mark(&scope("me"), "m", "1", 1).unwrap();
        cut();
        store
            .remember(&scope("me"), &NewMemory { content: "tabs".into(), ..NewMemory::default() }, 1)
            .unwrap();
        assert_eq!(store.restore(&scope("me"), &other).unwrap(), bytes[..50_000]);
        assert_eq!(store.marked(&scope("me"), "m").unwrap().unwrap().value, "1");
    });
}

#[test]
fn what_cannot_be_reached_says_what_to_check() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let place = TeamStore {
        database: format!("postgres://me:secret@{nobody}/x"),
        blobs: "file:///nowhere".into(),
        ..TeamStore::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let blobs = format!("file://{}", folder.path().display());
    let error = open(&TeamStore { blobs, ..place.clone() }).err().unwrap();
    assert!(error.full().contains("check the address after --store"), "{}", error.full());
    assert!(!error.full().contains("secret") && !format!("{place:?}").contains("secret"));
    for (blobs, says) in
        [("", "expected s3://"), ("http://x", "expected s3://"), ("file://x", "not absolute")]
    {
        let error = open(&TeamStore { blobs: blobs.into(), ..place.clone() }).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Arguments);
        assert!(error.full().contains(says), "{}", error.full());
    }
}

#[test]
fn an_object_that_is_damaged_or_missing_is_named_and_all_else_is_restored() {
    with("an_object_that_is_damaged_or_missing", |server| {
        for damage in [
            (|path| std::fs::remove_file(path).unwrap()) as fn(&std::path::Path),
            |path| std::fs::write(path, b"\x28\xb5\x2f\xfd").unwrap(),
            |path| {
                let bytes = std::fs::read(path).unwrap();
                std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
            },
        ] {
            let place = server.empty();
            let store = open(&place).unwrap();
            let (first, other) =
                (super::super::chunks::noise(1, 300_000), super::super::chunks::noise(2, 300_000));
            let handle = put(&store, &scope("me"), "s", &first).unwrap();
            let objects: Vec<_> = walk(place.blobs.strip_prefix("file://").unwrap().as_ref());
            assert_eq!(objects.len(), 1);
            let whole = put(&store, &scope("me"), "t", &other).unwrap();
            damage(&objects[0]);
            let error = store.restore(&scope("me"), &handle).unwrap_err().full();
            assert!(error.contains(&handle) && error.contains("corrupted"), "{error}");
            assert!(store.restore(&scope("me"), &whole).unwrap() == other);
            assert!(store.check().unwrap().problems.iter().any(|it| it.contains(&handle)));
            // Whoever still has it stores it again, and it is whole.
            assert_eq!(put(&store, &scope("me"), "s", &first).unwrap(), handle);
            assert!(store.restore(&scope("me"), &handle).unwrap() == first);
        }
    });
}

#[test]
fn objects_that_nothing_names_go_when_they_are_old() {
    with("objects_that_nothing_names_go_when_they_are_old", |server| {
        let place = server.empty();
        let store = open(&place).unwrap();
        let bytes = super::super::chunks::noise(1, 300_000);
        let handle = put(&store, &scope("me"), "s", &bytes).unwrap();
        let folder: std::path::PathBuf = place.blobs.strip_prefix("file://").unwrap().into();
        let mine = walk(&folder).remove(0);
        let orphan = mine.with_file_name("left-by-a-server-that-was-killed");
        std::fs::write(&orphan, b"x").unwrap();
        let now = jiff::Timestamp::now().as_millisecond();
        let retention = epitome::store::Retention::default();
        store.collect(&retention, now, false).unwrap();
        assert!(orphan.exists(), "it may be that of a compaction under way");
        store.collect(&retention, now + 25 * 60 * 60 * 1_000, false).unwrap();
        assert!(!orphan.exists() && mine.exists());
        assert!(store.restore(&scope("me"), &handle).unwrap() == bytes);
    });
}

/// The files below a folder.
pub fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    entries.flat_map(|it| if it.is_dir() { walk(&it) } else { vec![it] }).collect()
}
