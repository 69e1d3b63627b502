//! An archive as an older version left it: read as it lies, and stored anew by `doctor --fix`.

use std::path::Path;

use epitome::history::secrets::Redactor;
use epitome::store::{Batch, Body, Digest, Handle, Original, Scope, SessionOrigin, Store, StoreAt};
use rusqlite::{Connection, params};
use sha2::{Digest as _, Sha256};

use super::chunks::noise;

/// What an older version put into one chunk.
const CHUNK: usize = 1 << 20;

/// When these originals were stored; ms since 1970.
const AT: i64 = 1_700_000_000_000;

pub(super) fn me() -> Scope {
    Scope { owner: "me".into(), project: "/p".into() }
}

fn open(directory: &Path) -> Store {
    Store::open(&StoreAt::Path(directory.into()), Redactor::default()).unwrap()
}

/// The identity of an original, as its handle is made of it.
fn identity(scope: &Scope, digest: &Digest) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for field in [b"original", scope.owner.as_bytes(), scope.project.as_bytes(), &digest.0] {
        hasher.update((field.len() as u64).to_le_bytes());
        hasher.update(field);
    }
    hasher.finalize().into()
}

/// Makes a database of version 2 in which these scopes have these originals, whole sessions.
pub(super) fn make(directory: &Path, originals: &[(Scope, Vec<u8>)]) {
    std::fs::create_dir_all(directory).unwrap();
    let mut database = Connection::open(directory.join("epitome.db")).unwrap();
    database.execute_batch(include_str!("../../cases/store/version-2.sql")).unwrap();
    let write = database.transaction().unwrap();
    for (number, (scope, bytes)) in originals.iter().enumerate() {
        let digest = Digest::of(bytes);
        write
            .execute(
                "INSERT OR IGNORE INTO blob (sha, size) VALUES (?1, ?2)",
                params![digest.0, bytes.len() as i64],
            )
            .unwrap();
        let blob: i64 =
            write.query_row("SELECT id FROM blob WHERE sha = ?1", [digest.0], |it| it.get(0)).unwrap();
        for (seq, chunk) in bytes.chunks(CHUNK).enumerate() {
            let (sha, packed) = (Digest::of(chunk), zstd::bulk::compress(chunk, 3).unwrap());
            let row = params![sha.0, chunk.len() as i64, packed];
            write
                .execute("INSERT OR IGNORE INTO chunk (sha, size, packed) VALUES (?1, ?2, ?3)", row)
                .unwrap();
            let piece = "INSERT OR IGNORE INTO piece SELECT ?1, ?2, id FROM chunk WHERE sha = ?3";
            write.execute(piece, params![blob, seq as i64, sha.0]).unwrap();
        }
        let handle = Handle::of(scope, &digest);
        write
            .execute(
                "INSERT INTO item (handle, identity, owner, project, sort, blob, bytes, at)
                 VALUES (?1, ?2, ?3, ?4, 'original', ?5, ?6, ?7)",
                params![
                    handle.as_str(),
                    identity(scope, &digest),
                    scope.owner,
                    scope.project,
                    blob,
                    bytes.len() as i64,
                    AT + number as i64
                ],
            )
            .unwrap();
        let place = "INSERT INTO place (item, session, what, call_id, at) VALUES (?1, ?2, 'session', '', ?3)";
        write
            .execute(place, params![write.last_insert_rowid(), format!("s{number}"), AT + number as i64])
            .unwrap();
    }
    write.commit().unwrap();
}

/// Three versions of a session that grew in its middle, one of another owner, and some of no length.
pub(super) fn originals() -> Vec<(Scope, Vec<u8>)> {
    let you = Scope { owner: "you".into(), project: "/q".into() };
    let first = noise(1, 3_300_000);
    let second = [&first[..1_500_000], &noise(2, 9_000), &first[1_500_000..]].concat();
    let third = [&second[..], &noise(3, 400_000)].concat();
    [
        (me(), first.clone()),
        (me(), second),
        (me(), third),
        (you, first),
        (me(), Vec::new()),
        (me(), b"short".to_vec()),
    ]
    .into()
}

pub(super) fn assert_all_there(store: &Store, originals: &[(Scope, Vec<u8>)]) {
    for (scope, bytes) in originals {
        let handle = Handle::of(scope, &Digest::of(bytes));
        assert!(store.restore(scope, handle.as_str()).unwrap() == *bytes, "{handle}");
    }
    assert_eq!(store.check().unwrap().problems, Vec::<String>::new());
}

#[test]
fn an_old_archive_is_read_as_it_lies_and_takes_less_room_when_it_is_stored_anew() {
    let directory = tempfile::tempdir().unwrap();
    let originals = originals();
    make(directory.path(), &originals);
    let store = open(directory.path());
    assert_all_there(&store, &originals);
    let before = store.stats().unwrap();
    assert_eq!(before.old_format, 4);
    assert_eq!(store.rewrite_old_format().unwrap(), 4);
    assert_all_there(&store, &originals);
    let after = store.stats().unwrap();
    assert_eq!((after.old_format, after.bytes), (0, before.bytes));
    // Its middle moved everything behind it, so that three versions of mine lay there; now one and what it grew by. The
    // other owner's is his own.
    eprintln!("an old archive of {} bytes takes {} stored anew", before.stored_bytes, after.stored_bytes);
    assert!(after.stored_bytes < 2 * 3_300_000 + 409_000 + 400_000, "{after:?}");
    assert_eq!(store.rewrite_old_format().unwrap(), 0);
    let batch = Batch {
        session: SessionOrigin { id: "s0".into(), ..SessionOrigin::default() },
        originals: vec![Original::session(Body::Bytes(&originals[0].1), 1)],
        ..Batch::default()
    };
    let again = store.put_all(&me(), &batch).unwrap();
    assert_eq!(again.handles[0], Handle::of(&me(), &Digest::of(&originals[0].1)));
    assert_eq!(store.stats().unwrap().stored_bytes, after.stored_bytes);
}

#[test]
fn what_is_damaged_in_an_old_archive_stays_and_all_else_is_stored_anew() {
    let directory = tempfile::tempdir().unwrap();
    let originals = originals();
    make(directory.path(), &originals);
    let database = Connection::open(directory.path().join("epitome.db")).unwrap();
    // The end of the third version, which no other has.
    let last = "(SELECT chunk FROM piece WHERE blob = 3 ORDER BY seq DESC LIMIT 1)";
    database.execute(&format!("UPDATE chunk SET packed = x'00' WHERE id = {last}"), []).unwrap();
    let (store, lost) = (open(directory.path()), Handle::of(&me(), &Digest::of(&originals[2].1)));
    assert_eq!(store.rewrite_old_format().unwrap(), 3);
    let problems = store.check().unwrap().problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].contains(lost.as_str()) && problems[0].contains("chunk "), "{problems:?}");
    for (scope, bytes) in originals.iter().enumerate().filter(|(number, _)| *number != 2).map(|it| it.1) {
        assert!(store.restore(scope, Handle::of(scope, &Digest::of(bytes)).as_str()).unwrap() == *bytes);
    }
}

#[test]
fn a_reader_goes_on_while_another_process_stores_its_original_anew() {
    use std::io::Read as _;
    let directory = tempfile::tempdir().unwrap();
    let originals = originals();
    make(directory.path(), &originals);
    let (one, other) = (open(directory.path()), open(directory.path()));
    let mut reader = one.reader(&me(), Handle::of(&me(), &Digest::of(&originals[1].1)).as_str()).unwrap();
    let mut read = vec![0; 1_200_000];
    reader.read_exact(&mut read).unwrap();
    assert_eq!(other.rewrite_old_format().unwrap(), 4);
    reader.read_to_end(&mut read).unwrap();
    assert!(read == originals[1].1);
}

#[test]
#[cfg(unix)]
fn a_disk_that_fills_while_old_originals_are_moved_loses_none() {
    let home = tempfile::tempdir().unwrap();
    let (directory, originals) = (super::program::store(home.path()), originals());
    make(&directory, &originals);
    let size = directory.join("epitome.db").metadata().unwrap().len() / 512;
    // A limit on the size of files, in blocks of 512 bytes, stands for the full disk: at the new tables, at the first
    // originals that move, at later ones.
    for blocks in [64, 400, size / 2, size + 200, size + 2_000, size + 6_000] {
        let program = super::program::command(home.path(), home.path(), &[]).get_program().to_owned();
        let mut limited = std::process::Command::new("/bin/sh");
        limited.args(["-c", &format!("ulimit -f {blocks}; exec \"$0\" doctor --fix")]).arg(program);
        let output =
            limited.env_clear().env("HOME", home.path()).env("PATH", "/usr/bin:/bin").output().unwrap();
        eprintln!("{blocks} blocks: {}", output.status);
        let store = open(&directory);
        for (scope, bytes) in &originals {
            let handle = Handle::of(scope, &Digest::of(bytes));
            assert!(store.restore(scope, handle.as_str()).unwrap() == *bytes, "{blocks}: {handle}");
        }
        assert_eq!(store.check().unwrap().problems, Vec::<String>::new(), "{blocks}");
    }
    // With room it goes on.
    let store = open(&directory);
    store.rewrite_old_format().unwrap();
    assert_eq!(store.stats().unwrap().old_format, 0);
    assert_all_there(&store, &originals);
}
