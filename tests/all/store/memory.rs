//! Memories: what is remembered, for whom, and what must never be.

use epitome::history::error::ErrorKind;
use epitome::history::secrets::Redactor;
use epitome::store::memory::{from_json, to_json};
use epitome::store::{
    ItemKind, Memory, MemoryFilter, MemoryKind, MemoryScope, NewMemory, Query, Scope, SearchExtent, Store,
    StoreAt,
};

fn me() -> Scope {
    Scope { owner: "me".into(), project: "/p".into() }
}

fn elsewhere() -> Scope {
    Scope { owner: "me".into(), project: "/q".into() }
}

fn memory() -> Store {
    super::fresh(Redactor::new(&["internal-[0-9]+"]).unwrap())
}

fn note(content: &str) -> NewMemory {
    NewMemory { content: content.into(), ..NewMemory::default() }
}

fn contents(memories: &[Memory]) -> Vec<&str> {
    memories.iter().map(|it| it.content.as_str()).collect()
}

fn all(store: &Store, scope: &Scope) -> Vec<String> {
    store.memories(scope, &MemoryFilter::default()).unwrap().into_iter().map(|it| it.content).collect()
}

fn hits(store: &Store, text: &str) -> usize {
    let query = Query {
        text: text.into(),
        extent: SearchExtent::Project,
        only: vec![ItemKind::Memory],
        limit: 9,
        offset: 0,
    };
    store.search(&me(), &query).unwrap().hits.len()
}

#[test]
pub(super) fn remembers_lists_and_forgets() {
    let store = memory();
    let summary = store.remember(&me(), &NewMemory::summary("ses_1", "Goal: ship"), 1).unwrap();
    assert_eq!(summary.content, "[Session Summary]\nGoal: ship");
    assert_eq!((summary.kind, summary.scope), (MemoryKind::Conversation, MemoryScope::Project));
    let mine = NewMemory { scope: MemoryScope::User, kind: MemoryKind::Preference, ..note("likes tabs") };
    let mine = store.remember(&me(), &mine, 2).unwrap();
    store
        .remember(&me(), &NewMemory { tags: vec!["ci".into()], pinned: true, ..note("run just test") }, 3)
        .unwrap();

    assert_eq!(all(&store, &me()), ["run just test", "likes tabs", "[Session Summary]\nGoal: ship"]);
    assert_eq!(all(&store, &elsewhere()), ["likes tabs"]);
    assert_eq!(contents(&store.pinned(&me()).unwrap()), ["run just test"]);
    let filter =
        MemoryFilter { scope: Some(MemoryScope::Project), limit: Some(1), ..MemoryFilter::default() };
    assert_eq!(contents(&store.memories(&me(), &filter).unwrap()), ["run just test"]);
    let filter = MemoryFilter { kind: Some(MemoryKind::Conversation), ..filter };
    assert_eq!(contents(&store.memories(&me(), &filter).unwrap()), ["[Session Summary]\nGoal: ship"]);
    let filter = MemoryFilter { kind: Some(MemoryKind::Preference), ..MemoryFilter::default() };
    assert_eq!(contents(&store.memories(&me(), &filter).unwrap()), ["likes tabs"]);

    assert_eq!(store.memory(&elsewhere(), mine.id.as_str()).unwrap(), mine);
    assert_eq!(store.memory(&elsewhere(), summary.id.as_str()).unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(store.restore(&me(), mine.id.as_str()).unwrap(), b"likes tabs");
    store.pin(&me(), mine.id.as_str(), true).unwrap();
    assert_eq!(store.pinned(&elsewhere()).unwrap().len(), 1);

    assert_eq!(hits(&store, "ship"), 1);
    store.forget(&me(), summary.id.as_str()).unwrap();
    assert_eq!(hits(&store, "ship"), 0);
    assert_eq!(store.memory(&me(), summary.id.as_str()).unwrap_err().kind(), ErrorKind::Arguments);
}

#[test]
pub(super) fn the_same_again_is_the_same_memory() {
    let store = memory();
    let first = store.remember(&me(), &note("one"), 1).unwrap();
    store.remember(&me(), &note("two"), 2).unwrap();
    let again = store
        .remember(&me(), &NewMemory { pinned: true, tags: vec!["t".into()], ..note(" one\n") }, 3)
        .unwrap();
    assert_eq!((again.id, again.created, again.pinned), (first.id, 3, true));
    assert_eq!(again.tags, ["t"]);
    assert_eq!(all(&store, &me()), ["one", "two"]);
}

#[test]
fn private_passages_and_secrets_are_never_kept() {
    let directory = tempfile::tempdir().unwrap();
    let place = StoreAt::Path(directory.path().into());
    let store = Store::open(&place, Redactor::new(&["internal-[0-9]+"]).unwrap()).unwrap();
    let key = ["gh", "p_", "0123456789abcdefghijABCDEFGHIJ012345"].concat();
    let text = format!("use <Private>door code\n4711</PRIVATE> and {key} and internal-42 daily");
    let kept = store.remember(&me(), &NewMemory { tags: vec![key.clone()], ..note(&text) }, 1).unwrap();
    assert_eq!(kept.content, "use [REDACTED] and [REDACTED:github-token] and [REDACTED] daily");
    assert_eq!(kept.tags, ["[REDACTED:github-token]"]);
    for all_private in
        ["<private>x</private>", " <private>x</private>\n<PRIVATE>y</private>", "internal-7", &key]
    {
        let error = store.remember(&me(), &note(all_private), 2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains("Cannot store fully private content"), "{error}");
    }
    assert_eq!(store.remember(&me(), &note(" \n"), 2).unwrap_err().kind(), ErrorKind::Arguments);
    assert_eq!(all(&store, &me()).len(), 1);
    drop(store);
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        for secret in ["4711", &key[4..], "internal-"] {
            assert!(memchr::memmem::find(&bytes, secret.as_bytes()).is_none(), "{secret}");
        }
    }
}

#[test]
pub(super) fn tidy_lets_the_newer_stand() {
    let store = memory();
    for (at, text) in [(1, "Use tabs."), (2, "other"), (3, "use  TABS"), (4, "Use tabs!")] {
        store.remember(&me(), &NewMemory { pinned: at == 1, ..note(text) }, at).unwrap();
    }
    let before = all(&store, &me());
    let planned = store.tidy(&me(), None, true).unwrap();
    assert_eq!(planned.len(), 1);
    assert_eq!((planned[0].superseded.len(), planned[0].why), (2, "same words"));
    assert_eq!(all(&store, &me()), before);
    assert_eq!(hits(&store, "tabs"), 3);

    assert_eq!(store.tidy(&me(), None, false).unwrap(), planned);
    assert_eq!(all(&store, &me()), ["Use tabs!", "other"]);
    assert_eq!(hits(&store, "tabs"), 1);
    assert_eq!(contents(&store.pinned(&me()).unwrap()), ["Use tabs!"]);
    assert!(store.tidy(&me(), None, false).unwrap().is_empty());
    // What was superseded can be read by its id, and comes back when it is said again.
    let old = planned[0].superseded[1];
    assert_eq!(store.memory(&me(), old.as_str()).unwrap().content, "Use tabs.");
    store.remember(&me(), &note("use  TABS"), 9).unwrap();
    assert_eq!(all(&store, &me()), ["use  TABS", "Use tabs!", "other"]);
    assert_eq!(hits(&store, "tabs"), 2);
    // Forgetting takes along what it stood for.
    store.forget(&me(), planned[0].kept.as_str()).unwrap();
    assert_eq!(store.memory(&me(), old.as_str()).unwrap_err().kind(), ErrorKind::Arguments);
    assert!(store.check().unwrap().problems.is_empty());
}

#[test]
pub(super) fn what_is_exported_can_be_imported() {
    let (from, to) = (memory(), memory());
    for (at, scope) in [(1, MemoryScope::User), (2, MemoryScope::Project)] {
        let note = NewMemory {
            scope,
            kind: MemoryKind::ErrorSolution,
            pinned: at == 1,
            tags: vec!["a b".into()],
            session: Some("s".into()),
            ..note("cargo clean\nhelps 日本")
        };
        from.remember(&me(), &note, at).unwrap();
    }
    let exported = from.memories(&me(), &MemoryFilter::default()).unwrap();
    let mut notes = from_json(&to_json(&exported)).unwrap();
    notes.push(note("<private>x</private>"));
    let imported = to.import(&me(), &notes, 99).unwrap();
    assert_eq!((imported.added, imported.known, imported.refused.len()), (2, 0, 1));
    assert_eq!(to.memories(&me(), &MemoryFilter::default()).unwrap(), exported);
    assert_eq!(to.import(&me(), &notes, 99).unwrap().known, 2);
}
