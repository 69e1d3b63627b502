//! What repeats is stored once, what is damaged is said by name, and what is large is never in memory.

use std::path::Path;

use epitome::history::secrets::Redactor;
use epitome::store::{Batch, Body, Original, Scope, SessionOrigin, Store, StoreAt};

fn me() -> Scope {
    Scope { owner: "me".into(), project: "/p".into() }
}

/// Bytes that do not compress.
pub(super) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// The same as text, as an attachment stands in a session.
fn picture(seed: u64, len: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    noise(seed, len).iter().map(|it| LETTERS[usize::from(it % 64)] as char).collect()
}

fn session(bytes: &[u8]) -> Original<'_> {
    Original::session(Body::Bytes(bytes), 1)
}

/// Stores sessions in one step; their handles.
fn put(store: &Store, scope: &Scope, sessions: &[&[u8]]) -> Vec<String> {
    let batch = Batch {
        session: SessionOrigin { id: "s".into(), ..SessionOrigin::default() },
        originals: sessions.iter().map(|it| session(it)).collect(),
        ..Batch::default()
    };
    store.put_all(scope, &batch).unwrap().handles.iter().map(ToString::to_string).collect()
}

fn memory() -> Store {
    super::fresh(Redactor::default())
}

fn stored(store: &Store) -> u64 {
    store.stats().unwrap().stored_bytes
}

/// A rollout in which every compacted record holds what was there before, with a picture in it.
fn rollout(records: usize, picture: &str) -> String {
    let mut out = String::from("{\"type\":\"session_meta\",\"payload\":{\"id\":\"x\"}}\n");
    let mut said = String::new();
    for number in 0..records {
        let words: String = noise(number as u64 + 7, 2_000).iter().map(|it| format!("{it:x} ")).collect();
        out.push_str(&format!("{{\"type\":\"response_item\",\"payload\":{{\"text\":\"{words}\"}}}}\n"));
        said.push_str(&format!("{{\"text\":\"{words}\"}},"));
        out.push_str(&format!(
            "{{\"timestamp\":\"2026-01-01T00:00:{number:02}Z\",\"type\":\"compacted\",\"payload\":{{\"replacement_history\":[{said}\
             {{\"image_url\":\"data:image/png;base64,{picture}\"}}]}}}}\n"
        ));
    }
    out
}

#[test]
pub(super) fn a_picture_that_repeats_inside_a_session_is_stored_once() {
    let picture = picture(1, 1_000_000);
    let (once, forty) = (rollout(1, &picture), rollout(40, &picture));
    let (one, all) = (memory(), memory());
    put(&one, &me(), &[once.as_bytes()]);
    let handles = put(&all, &me(), &[forty.as_bytes()]);
    let (one, all_bytes) = (stored(&one), stored(&all));
    eprintln!(
        "a picture of {} bytes: once {one}, in forty records of {} bytes {all_bytes}",
        picture.len(),
        forty.len()
    );
    assert!(all_bytes < 4 * one, "{one} {all_bytes}");
    assert!(all.restore(&me(), &handles[0]).unwrap() == forty.as_bytes());
}

#[test]
pub(super) fn a_change_costs_its_place_wherever_it_is() {
    let store = memory();
    let bytes = noise(1, 4 << 20);
    put(&store, &me(), &[&bytes]);
    let before = stored(&store);
    for at in [0, 1_000_003, 4 << 20] {
        let changed = [&bytes[..at], b"something that was not there", &bytes[at..]].concat();
        let handles = put(&store, &me(), &[&changed]);
        assert!(store.restore(&me(), &handles[0]).unwrap() == changed);
    }
    let grown = stored(&store) - before;
    assert!(grown < 3 * (128 << 10) + 3_000, "{grown}");
}

#[test]
pub(super) fn an_owner_shares_nothing_with_another() {
    let store = memory();
    let bytes = noise(1, 1 << 20);
    put(&store, &me(), &[&bytes]);
    let before = stored(&store);
    let you = Scope { owner: "you".into(), ..me() };
    let handles = put(&store, &you, &[&bytes]);
    assert!(stored(&store) >= 2 * before - 1_000);
    assert!(store.restore(&you, &handles[0]).unwrap() == bytes);
}

/// Damages the database; the SQL says how.
fn spoil(directory: &Path, sql: &str) {
    let database = rusqlite::Connection::open(directory.join("epitome.db")).unwrap();
    database.execute_batch(&format!("PRAGMA foreign_keys = OFF; {sql}")).unwrap();
}

#[test]
fn a_chunk_that_is_damaged_or_missing_is_named_and_all_else_is_restored() {
    // Chunks 40 to 60 of the first session; the second shares its beginning only.
    let some = "(SELECT chunk FROM part WHERE content = 1 AND seq BETWEEN 40 AND 60)";
    for (sql, says) in [
        (
            format!(
                "UPDATE pack SET packed = x'28b52ffd' WHERE id IN (SELECT pack FROM chunk WHERE id IN {some})"
            ),
            "corrupted",
        ),
        (
            format!(
                "UPDATE pack SET packed = zeroblob(length(packed)) WHERE id IN (SELECT pack FROM chunk WHERE id IN {some})"
            ),
            "corrupted",
        ),
        (format!("DELETE FROM pack WHERE id IN (SELECT pack FROM chunk WHERE id IN {some})"), "corrupted"),
        (format!("UPDATE chunk SET start = start + 1 WHERE id IN {some}"), "corrupted"),
        (format!("DELETE FROM chunk WHERE id IN {some}"), "missing"),
        ("DELETE FROM part WHERE content = 1 AND seq = 50".to_owned(), "missing"),
        ("DELETE FROM content WHERE id = 1".to_owned(), "missing"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let open = || Store::open(&StoreAt::Path(directory.path().into()), Redactor::default()).unwrap();
        let first = noise(1, 4 << 20);
        let other = [&first[..100_000], &noise(2, 1 << 20)].concat();
        let store = open();
        let handles = [put(&store, &me(), &[&first]), put(&store, &me(), &[&other])].concat();
        drop(store);
        spoil(directory.path(), &sql);
        let store = open();
        let error = store.restore(&me(), &handles[0]).unwrap_err().full();
        assert!(error.contains(&handles[0]) && error.contains(says), "{sql}: {error}");
        assert!(store.restore(&me(), &handles[1]).unwrap() == other, "{sql}");
        let problems = store.check().unwrap().problems;
        assert!(problems.iter().any(|it| it.contains(&handles[0])), "{sql}: {problems:?}");
        // Whoever still has it stores it again, and it is whole.
        assert_eq!(put(&store, &me(), &[&first])[0], handles[0]);
        assert!(store.restore(&me(), &handles[0]).unwrap() == first, "{sql}");
    }
}

#[test]
pub(super) fn what_is_deleted_frees_its_room_and_takes_nothing_from_others() {
    use epitome::store::Retention;
    let store = memory();
    let shared = noise(1, 2 << 20);
    let (old, new) = ([&shared[..], &noise(2, 1 << 20)].concat(), [&shared[..], &noise(3, 1 << 20)].concat());
    put(&store, &me(), &[&old]);
    let originals = vec![session(&new)];
    let batch = Batch { at: 10, originals, ..Batch::default() };
    let kept = store.put_all(&me(), &batch).unwrap().handles[0];
    let before = stored(&store);
    let retention = Retention { before: Some(10), max_bytes: None, originals_only: false };
    let would = store.collect(&retention, 20, true).unwrap();
    assert_eq!(stored(&store), before);
    let gone = store.collect(&retention, 20, false).unwrap();
    assert_eq!((&would, gone.originals), (&gone, 1));
    assert_eq!(stored(&store), before - gone.bytes);
    assert!(gone.bytes > 700_000, "{gone:?}");
    assert!(store.restore(&me(), kept.as_str()).unwrap() == new);
    assert_eq!(store.check().unwrap().problems, Vec::<String>::new());
}

/// The most memory that this process had since the last call, in bytes; Linux tells it.
#[cfg(target_os = "linux")]
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|it| it.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    kib * 1024
}

/// A rollout of a gigabyte that holds one picture of a megabyte, eighteen times in each of forty compacted records.
#[test]
#[ignore = "writes a gigabyte: cargo test --release --test all gigabyte -- --ignored --exact --nocapture"]
#[cfg(target_os = "linux")]
fn a_rollout_of_a_gigabyte() {
    use epitome::sessions::Source as _;
    use std::io::{BufWriter, Read as _, Write as _};
    let folder = tempfile::tempdir().unwrap();
    let (path, picture) = (folder.path().join("rollout.jsonl"), picture(1, 1_400_000));
    let mut file = BufWriter::new(std::fs::File::create(&path).unwrap());
    for record in 0..40 {
        let mut line = format!(
            "{{\"timestamp\":\"2026-01-01T00:00:{record:02}Z\",\"type\":\"compacted\",\"payload\":{{\"replacement_history\":["
        );
        for copy in 0..18 {
            let words: String = noise(copy + 7, 1_000).iter().map(|it| format!("{it:x} ")).collect();
            line.push_str(&format!(
                "{{\"text\":\"{words}\"}},{{\"image_url\":\"data:image/png;base64,{picture}\"}},"
            ));
        }
        file.write_all(line.as_bytes()).unwrap();
        file.write_all(b"{}]}}\n").unwrap();
    }
    file.into_inner().unwrap().sync_all().unwrap();
    let source = epitome::files::File::open(&path).unwrap();
    let store = Store::open(&StoreAt::Path(folder.path().join("kept")), Redactor::default()).unwrap();
    peak_memory();
    let begun = std::time::Instant::now();
    let batch = Batch {
        originals: vec![Original { body: Body::Source(&source), ..session(b"") }],
        ..Batch::default()
    };
    let handle = store.put_all(&me(), &batch).unwrap().handles[0];
    let (took, archive_peak) = (begun.elapsed(), peak_memory());
    store.vacuum().unwrap();
    let size = store.stats().unwrap().file_bytes;
    peak_memory();
    let begun = std::time::Instant::now();
    let mut reader = store.reader(&me(), handle.as_str()).unwrap();
    let (mut buffer, mut at) = (vec![0; 1 << 20], 0u64);
    loop {
        let read = reader.read(&mut buffer).unwrap();
        if read == 0 {
            break;
        }
        assert!(source.bytes(at..at + read as u64).unwrap() == buffer[..read]);
        at += read as u64;
    }
    let restore_peak = peak_memory();
    eprintln!(
        "{} bytes: archive {size} bytes in {took:.1?} with {archive_peak} bytes of memory, restored in {:.1?} with {restore_peak}",
        source.len(),
        begun.elapsed()
    );
    assert_eq!(at, source.len());
    assert!(size <= 5 << 20 && archive_peak.max(restore_peak) <= 200 << 20);
}

/// Every file of the corpus, archived twice; how much smaller, by agent.
#[test]
fn the_corpus_archived_twice_costs_it_once() {
    let corpus = crate::corpus::corpus();
    let Ok(agents) = std::fs::read_dir(&corpus) else {
        return eprintln!(
            "SKIPPED: the_corpus_archived_twice_costs_it_once: {} is not there",
            corpus.display()
        );
    };
    for agent in agents.map(|it| it.unwrap().path()).filter(|it| it.is_dir() && !it.ends_with("licenses")) {
        let store = memory();
        let mut files: Vec<_> = std::fs::read_dir(&agent).unwrap().map(|it| it.unwrap().path()).collect();
        files.retain(|it| it.is_file());
        for turn in 0..2 {
            let before = stored(&store);
            for file in &files {
                let bytes = std::fs::read(file).unwrap();
                let handles = put(&store, &me(), &[&bytes]);
                assert!(
                    turn == 0 || store.restore(&me(), &handles[0]).unwrap() == bytes,
                    "{}",
                    file.display()
                );
            }
            assert!(turn == 0 || stored(&store) == before);
        }
        let stats = store.stats().unwrap();
        let (name, ratio) =
            (agent.file_name().unwrap().display(), stats.bytes as f64 / stats.stored_bytes as f64);
        eprintln!(
            "{name}: {} sessions, {} bytes in {}: {ratio:.1} to 1",
            files.len(),
            stats.bytes,
            stats.stored_bytes
        );
        assert!(ratio > 2.0, "{name}");
    }
}
