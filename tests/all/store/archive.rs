//! Originals: stored once, read back byte for byte, reached only from where they belong.

use std::io::Read as _;

use epitome::history::error::ErrorKind;
use epitome::history::secrets::Redactor;
use epitome::sessions::{MemorySource as Bytes, Source};
use epitome::store::{
    Applied, AppliedMode, Batch, Body, Digest, FactTally, Handle, ItemKind, NewCompaction, Original, Range,
    Scope, SessionOrigin, Store, StoreAt,
};

fn scope(owner: &str, project: &str) -> Scope {
    Scope { owner: owner.into(), project: project.into() }
}

fn me() -> Scope {
    scope("me", "/p")
}

fn memory() -> Store {
    super::fresh(Redactor::default())
}

fn session(id: &str) -> SessionOrigin {
    SessionOrigin { agent: "pi".into(), id: id.into(), path: Some("/s.jsonl".into()), format: "pi".into() }
}

fn output<'a>(bytes: &'a [u8], call: &'a str, message: u32) -> Original<'a> {
    Original {
        kind: ItemKind::Output,
        body: Body::Bytes(bytes),
        message: Some(message),
        call_id: Some(call),
        tool: Some("bash"),
        tokens: bytes.len() as u64 / 4,
    }
}

fn whole(bytes: &[u8]) -> Original<'_> {
    Original::session(Body::Bytes(bytes), 7)
}

fn batch<'a>(id: &str, at: i64, originals: Vec<Original<'a>>) -> Batch<'a> {
    Batch { session: session(id), at, originals, compaction: None }
}

#[test]
pub(super) fn gives_back_what_it_was_given() {
    let store = memory();
    let big: Vec<u8> = (0..3_000_000u32).flat_map(|it| (it / 7).to_le_bytes()).collect();
    let contents: [&[u8]; 5] = [b"", b"x", b"\xff\xfe\x00", "日本語\n".as_bytes(), &big];
    let originals =
        contents.iter().zip(["a", "b", "c", "d", "e"]).map(|(it, call)| output(it, call, 3)).collect();
    let stored = store.put_all(&me(), &batch("s", 1, originals)).unwrap();
    for ((content, handle), digest) in contents.iter().zip(&stored.handles).zip(&stored.digests) {
        assert_eq!(*digest, Digest::of(content));
        assert_eq!(*handle, Handle::of(&me(), digest));
        assert!(store.restore(&me(), handle.as_str()).unwrap() == *content);
        let entry = store.entry(&me(), &handle.to_string().to_uppercase()).unwrap();
        assert_eq!(
            (entry.bytes, entry.kind, entry.message),
            (content.len() as u64, ItemKind::Output, Some(3))
        );
    }
    assert_eq!(store.check().unwrap().originals, 5);
}

#[test]
pub(super) fn the_same_content_is_stored_once_and_a_grown_one_costs_its_growth() {
    let store = memory();
    let mut noise = 1u64;
    let mut bytes: Vec<u8> = std::iter::repeat_with(|| {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (noise >> 56) as u8
    })
    .take(5 << 20)
    .collect();
    let first = store.put_all(&me(), &batch("s", 1, vec![whole(&bytes)])).unwrap();
    let once = store.stats().unwrap().stored_bytes;
    assert_eq!(store.put_all(&me(), &batch("s", 2, vec![whole(&bytes)])).unwrap(), first);
    assert_eq!(store.stats().unwrap().stored_bytes, once);
    bytes.extend(b"and on it goes");
    let grown = store.put_all(&me(), &batch("s", 3, vec![whole(&bytes)])).unwrap();
    // The chunk that it ended in is another one now.
    assert!(store.stats().unwrap().stored_bytes < once + (128 << 10));
    assert!(store.restore(&me(), grown.handles[0].as_str()).unwrap() == bytes);
    assert!(store.restore(&me(), first.handles[0].as_str()).unwrap() == bytes[..5 << 20]);
}

/// A source of any length that is never in memory.
struct Endless {
    len: u64,
    short: bool,
}

impl Source for Endless {
    fn name(&self) -> &str {
        "endless"
    }
    fn len(&self) -> u64 {
        self.len
    }
    fn read_at(&self, at: u64, buffer: &mut [u8]) -> epitome::Result<()> {
        if self.short && at > 2 << 20 {
            return Err(epitome::Error::new(ErrorKind::Changed, "expected more"));
        }
        buffer.iter_mut().zip(at..).for_each(|(byte, at)| *byte = (at / 1_000 % 251) as u8);
        Ok(())
    }
}

#[test]
pub(super) fn a_source_is_streamed_and_one_that_shrinks_leaves_nothing() {
    let store = memory();
    let source = Endless { len: 20 << 20, short: false };
    let original = Original { body: Body::Source(&source), ..whole(b"") };
    let stored = store.put_all(&me(), &batch("s", 1, vec![original])).unwrap();
    let mut reader = store.reader(&me(), stored.handles[0].as_str()).unwrap();
    let (mut buffer, mut at) = (vec![0; 100_003], 0u64);
    loop {
        let read = reader.read(&mut buffer).unwrap();
        if read == 0 {
            break;
        }
        assert!(buffer[..read].iter().zip(at..).all(|(byte, at)| *byte == (at / 1_000 % 251) as u8));
        at += read as u64;
    }
    assert_eq!(at, 20 << 20);

    let store = memory();
    let source = Endless { len: 20 << 20, short: true };
    let originals = vec![output(b"first", "a", 1), Original { body: Body::Source(&source), ..whole(b"") }];
    let error = store.put_all(&me(), &batch("s", 1, originals)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed);
    let stats = store.stats().unwrap();
    assert_eq!((stats.bytes, stats.items.len()), (0, 0));
}

#[test]
pub(super) fn another_project_is_refused_and_another_user_finds_nothing() {
    let store = memory();
    let stored = store.put_all(&me(), &batch("s", 1, vec![output(b"mine", "a", 1)])).unwrap();
    let handle = stored.handles[0].as_str();
    for (other, kind) in [(scope("me", "/q"), ErrorKind::Refused), (scope("you", "/p"), ErrorKind::Arguments)]
    {
        for error in [
            store.restore(&other, handle).unwrap_err(),
            store.entry(&other, handle).unwrap_err(),
            store.compaction(&other, handle).unwrap_err(),
            store.memory(&other, handle).unwrap_err(),
            store.forget(&other, handle).unwrap_err(),
            store.ask(&other, handle, 0).unwrap_err(),
        ] {
            assert_eq!(error.kind(), kind, "{error}");
            assert!(!error.to_string().contains("/p"), "{error}");
        }
        assert!(store.newest(&other, None, 9, 0).unwrap().is_empty());
    }
    assert_eq!(store.locate(handle, "me").unwrap(), me());
    let unknown = "0123456abc";
    let nobodys = store.locate(unknown, "you").unwrap_err().full();
    assert_eq!(store.locate(handle, "you").unwrap_err().full().replace(handle, unknown), nobodys);
}

#[test]
pub(super) fn handles_that_are_malformed_or_missing_say_so() {
    let store = memory();
    let missing = Handle::of(&me(), &Digest::of(b"never stored")).to_string();
    let applied = Applied { path: None, session: None, mode: AppliedMode::New, fingerprint: String::new() };
    for (handle, says) in [
        ("", "expected a handle of 10 characters"),
        ("../../etc/passwd", "expected a handle of 10 characters"),
        ("' OR 1=1 --", "expected a handle of 10 characters"),
        ("日本語日本語日本語日", "expected a handle of 10 characters"),
        (missing.as_str(), "unknown handle"),
    ] {
        for error in [
            store.restore(&me(), handle).unwrap_err(),
            store.entry(&me(), handle).unwrap_err(),
            store.compaction(&me(), handle).unwrap_err(),
            store.finish(&me(), handle, &applied).unwrap_err(),
            store.forget(&me(), handle).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Arguments);
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}

#[test]
pub(super) fn a_compaction_keeps_what_it_removed() {
    let store = memory();
    let secret = ["gh", "p_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
    let bytes = format!("{{\"token\":\"{secret}\"}}\n");
    let new = NewCompaction {
        profile: "epitome".into(),
        trigger: "manual".into(),
        tokens_before: 100,
        tokens_after: 10,
        summary: format!("Done with {secret}. <private>nobody's business</private>"),
        facts: vec![FactTally { class: "decisions".into(), found: 3, kept: 2 }],
    };
    let originals = vec![whole(bytes.as_bytes()), output(b"out", "call_1", 4), output(b"out", "call_2", 6)];
    let batch = Batch { session: session("s"), at: 1_000, originals, compaction: Some(new) };
    let stored = store.put_all(&me(), &batch).unwrap();
    let handle = stored.compaction.unwrap();
    assert_eq!(store.put_all(&me(), &batch).unwrap(), stored);

    let kept = store.compaction(&me(), handle.as_str()).unwrap();
    assert_eq!(kept.about.summary, "Done with [REDACTED:github-token]. [REDACTED]");
    assert_eq!(kept.original, Some(stored.handles[0]));
    let removed: Vec<_> =
        kept.removed.iter().map(|it| (it.handle, it.message, it.call_id.as_deref())).collect();
    assert_eq!(
        removed,
        [(stored.handles[1], Some(4), Some("call_1")), (stored.handles[2], Some(6), Some("call_2"))]
    );
    assert_eq!((kept.about.tokens_before, kept.about.tokens_after, kept.applied.clone()), (100, 10, None));
    assert_eq!(kept.about.facts, [FactTally { class: "decisions".into(), found: 3, kept: 2 }]);
    // The archive's own bytes are as they were, and the compaction's handle leads to them.
    assert_eq!(store.restore(&me(), handle.as_str()).unwrap(), bytes.as_bytes());

    let applied = Applied {
        path: Some("/new.jsonl".into()),
        session: None,
        mode: AppliedMode::Append,
        fingerprint: "12:34".into(),
    };
    store.finish(&me(), handle.as_str(), &applied).unwrap();
    assert_eq!(store.compactions(&me(), Some("s"), 1).unwrap()[0].applied, Some(applied));
    assert!(store.compactions(&me(), Some("t"), 1).unwrap().is_empty());
    let error = store.compaction(&me(), stored.handles[1].as_str()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Arguments);
}

#[test]
pub(super) fn the_newest_come_first() {
    let store = memory();
    let first = batch("s", 1, vec![output(b"one", "a", 1), output(b"two", "b", 2), whole(b"all")]);
    store.put_all(&me(), &first).unwrap();
    store.put_all(&me(), &batch("t", 2, vec![output(b"three", "c", 1), output(b"one", "z", 9)])).unwrap();
    let names = |session: Option<&str>, limit, offset| -> Vec<_> {
        let found = store.newest(&me(), session, limit, offset).unwrap();
        found.into_iter().map(|it| format!("{}/{}", it.session.unwrap(), it.call_id.unwrap())).collect()
    };
    assert_eq!(names(Some("s"), 9, 0), ["s/b", "s/a"]);
    assert_eq!(names(None, 2, 0), ["t/z", "t/c"]);
    assert_eq!(names(None, 9, 2), ["s/b", "s/a"]);
}

#[test]
pub(super) fn recall_reads_a_part_and_how_to_read_on() {
    let store = memory();
    let text: String = (1..=500).map(|it| format!("line {it}\n")).collect();
    let source = Bytes::new("s", text);
    let original = Original { body: Body::Source(&source), ..output(b"", "a", 1) };
    let handle = store.put_all(&me(), &batch("s", 1, vec![original])).unwrap().handles[0];
    let count = |text: &str| text.len() as u64 / 4 + 1;
    let recall = |range: &str, limit| {
        store.recall(&me(), handle.as_str(), &Range::parse(range).unwrap(), limit, &count).unwrap()
    };
    let some = recall("10-40", 20);
    assert!(some.text.starts_with("line 10\nline 11\n") && count(&some.text) <= 20, "{some:?}");
    assert_eq!(recall(&some.next.unwrap(), 1_000).text.lines().last(), Some("line 40"));
    assert_eq!(recall("/line 49\\d/±1", 1_000).text.lines().count(), 12);
    assert_eq!(recall("b0-6", 1_000).text, "line 1");
}

#[test]
fn persistence_none_says_that_nothing_may_be_replaced() {
    assert!(!Store::open(&StoreAt::Nowhere, Redactor::default()).unwrap().keeps());
    assert!(memory().keeps());
}

#[test]
fn a_store_survives_its_process_and_is_for_its_owner_only() {
    let directory = tempfile::tempdir().unwrap();
    let place = StoreAt::Path(directory.path().join("a b#ü").join("epitome"));
    let store = Store::open(&place, Redactor::default()).unwrap();
    let handle = store.put_all(&me(), &batch("s", 1, vec![output(b"kept", "a", 1)])).unwrap().handles[0];
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let StoreAt::Path(path) = &place else { unreachable!() };
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(path), 0o700);
        let files: Vec<_> = std::fs::read_dir(path).unwrap().map(|it| it.unwrap().path()).collect();
        assert!(files.len() >= 2, "{files:?}");
        files.iter().for_each(|it| assert_eq!(mode(it), 0o600, "{it:?}"));
    }
    drop(store);
    let store = Store::open(&place, Redactor::default()).unwrap();
    assert_eq!(store.restore(&me(), handle.as_str()).unwrap(), b"kept");
    assert!(store.stats().unwrap().file_bytes > 0);
    assert!(store.keeps());
}
