//! Full-text search: words of any script, within the extent that was asked for.

use proptest::prelude::*;

use epitome::history::error::ErrorKind;
use epitome::history::secrets::Redactor;
use epitome::store::{
    Batch, Body, ItemKind, MemoryScope, NewCompaction, NewMemory, Original, Query, Scope, SearchExtent,
    SessionOrigin, Store,
};

fn scope(owner: &str, project: &str) -> Scope {
    Scope { owner: owner.into(), project: project.into() }
}

fn put(store: &Store, scope: &Scope, session: &str, at: i64, what: ItemKind, text: &str) {
    let call = format!("call_{at}");
    let original = Original {
        kind: what,
        body: Body::Bytes(text.as_bytes()),
        message: Some(at as u32),
        call_id: (what == ItemKind::Output).then_some(call.as_str()),
        tool: None,
        tokens: 1,
    };
    let session = SessionOrigin { id: session.into(), ..SessionOrigin::default() };
    store.put_all(scope, &Batch { session, at, originals: vec![original], compaction: None }).unwrap();
}

fn query(text: &str, extent: SearchExtent) -> Query {
    Query { text: text.into(), extent, only: vec![], limit: 10, offset: 0 }
}

/// Messages (our numbers) of what was found.
fn found(store: &Store, scope: &Scope, query: &Query) -> Vec<u32> {
    let mut found: Vec<_> =
        store.search(scope, query).unwrap().hits.iter().filter_map(|it| it.entry.message).collect();
    found.sort_unstable();
    found
}

#[test]
pub(super) fn finds_words_of_any_script() {
    let store = super::fresh(Redactor::default());
    let me = scope("me", "/p");
    for (at, text) in [
        (1, "error: connection refused in get_user_name()"),
        (2, "修复数据库连接的超时问题"),
        (3, "データベースの設定を変更しました"),
        (4, "참조 무결성 오류가 발생했습니다"),
        (5, "Größe überprüfen: naïve café"),
        (6, "src/main.rs:12 fn main() { JSON数据 }"),
        (7, "参数"),
    ] {
        put(&store, &me, "s", at, ItemKind::Output, text);
    }
    for (words, expected) in [
        ("connection", vec![1]),
        ("REFUSED error", vec![1]),
        ("get_user_name", vec![1]),
        ("user_name", vec![1]),
        ("数据", vec![2, 6]),
        ("数据库", vec![2]),
        ("超时", vec![2]),
        ("题", vec![2]),
        ("数", vec![2, 6, 7]),
        ("設定", vec![3]),
        ("データ", vec![3]),
        ("無し", vec![]),
        ("무결성", vec![4]),
        ("grosse", vec![]),
        ("große", vec![5]),
        ("größe", vec![5]),
        ("cafe", vec![5]),
        ("main.rs:12", vec![6]),
        ("\"json数据\"", vec![6]),
        ("\"refused connection\"", vec![]),
        ("数据 超时", vec![2]),
    ] {
        assert_eq!(found(&store, &me, &query(words, SearchExtent::Project)), expected, "{words}");
    }
}

#[test]
pub(super) fn without_all_words_some_will_do() {
    let store = super::fresh(Redactor::default());
    let me = scope("me", "/p");
    put(&store, &me, "s", 1, ItemKind::Output, "postgres timed out");
    put(&store, &me, "s", 2, ItemKind::Output, "redis timed out");
    let found = store.search(&me, &query("broken postgres", SearchExtent::Project)).unwrap();
    assert!(found.partial && found.hits.len() == 1);
    assert_eq!(found.hits[0].entry.message, Some(1));
    assert!(!store.search(&me, &query("postgres", SearchExtent::Project)).unwrap().partial);
    let none = store.search(&me, &query("nothing here", SearchExtent::Project)).unwrap();
    assert!(!none.partial && none.hits.is_empty());
}

#[test]
pub(super) fn reaches_as_far_as_it_should() {
    let store = super::fresh(Redactor::default());
    let (here, there, other) = (scope("me", "/p"), scope("me", "/q"), scope("you", "/p"));
    put(&store, &here, "s", 1, ItemKind::Output, "needle one");
    put(&store, &here, "t", 2, ItemKind::Output, "needle two");
    put(&store, &there, "s", 3, ItemKind::Output, "needle three");
    put(&store, &other, "s", 4, ItemKind::Output, "needle four");
    let extent = |extent| found(&store, &here, &query("needle", extent));
    assert_eq!(extent(SearchExtent::Session("s".into())), [1]);
    assert_eq!(extent(SearchExtent::Project), [1, 2]);
    assert_eq!(extent(SearchExtent::All), [1, 2, 3]);
    let hits = store.search(&here, &query("three", SearchExtent::All)).unwrap().hits;
    assert_eq!(hits[0].entry.project, "/q");
    // One content of two sessions is found in both, as of the session asked for.
    put(&store, &here, "t", 9, ItemKind::Output, "needle one");
    let hits = store.search(&here, &query("\"needle one\"", SearchExtent::Session("s".into()))).unwrap().hits;
    assert_eq!(
        (hits.len(), hits[0].entry.message, hits[0].entry.session.as_deref()),
        (1, Some(1), Some("s"))
    );
}

#[test]
pub(super) fn finds_messages_summaries_and_memories_too() {
    let store = super::fresh(Redactor::default());
    let me = scope("me", "/p");
    put(&store, &me, "s", 1, ItemKind::Message, r#"{"text":"first\nneedle in JSON \u6570\u636e"}"#);
    put(&store, &me, "s", 2, ItemKind::Session, "needle of a whole session is not searched");
    let session = SessionOrigin { id: "s".into(), ..SessionOrigin::default() };
    let compaction = NewCompaction { summary: "## Goal\nthe needle".into(), ..NewCompaction::default() };
    store.put_all(&me, &Batch { session, at: 3, originals: vec![], compaction: Some(compaction) }).unwrap();
    for (scope, content) in [(MemoryScope::User, "my needle"), (MemoryScope::Project, "our needle")] {
        store
            .remember(&me, &NewMemory { content: content.into(), scope, ..NewMemory::default() }, 4)
            .unwrap();
    }
    let kinds = |only: &[ItemKind], extent| {
        let query = Query { only: only.to_vec(), ..query("needle", extent) };
        let mut kinds: Vec<_> = store
            .search(&me, &query)
            .unwrap()
            .hits
            .into_iter()
            .map(|it| (it.entry.kind, it.snippet.text))
            .collect();
        kinds.sort();
        kinds
    };
    let kind = |what, text: &str| (what, text.to_owned());
    assert_eq!(
        kinds(&[], SearchExtent::Project),
        [
            kind(ItemKind::Message, "first needle in JSON 数据"),
            kind(ItemKind::Compaction, "## Goal the needle"),
            kind(ItemKind::Memory, "my needle"),
            kind(ItemKind::Memory, "our needle"),
        ]
    );
    assert_eq!(kinds(&[ItemKind::Memory], SearchExtent::Project).len(), 2);
    assert_eq!(kinds(&[], SearchExtent::Session("s".into())).len(), 2);
    assert_eq!(found(&store, &me, &query("数据", SearchExtent::Project)), [1]);
    // The user's memory is found from every project.
    assert_eq!(
        store.search(&scope("me", "/q"), &query("needle", SearchExtent::Project)).unwrap().hits.len(),
        1
    );
}

#[test]
pub(super) fn the_same_text_first_a_session_then_an_output_is_found() {
    let store = super::fresh(Redactor::default());
    let me = scope("me", "/p");
    put(&store, &me, "s", 1, ItemKind::Session, "needle");
    assert!(found(&store, &me, &query("needle", SearchExtent::Project)).is_empty());
    put(&store, &me, "s", 2, ItemKind::Output, "needle");
    assert_eq!(found(&store, &me, &query("needle", SearchExtent::Project)), [2]);
}

#[test]
pub(super) fn pages_without_gaps_or_repeats() {
    let store = super::fresh(Redactor::default());
    let me = scope("me", "/p");
    (1..=25).for_each(|at| {
        put(&store, &me, "s", at, ItemKind::Output, &format!("needle {at} {}", "x ".repeat(at as usize)))
    });
    let (mut seen, mut offset) = (Vec::new(), Some(0));
    while let Some(at) = offset {
        let page =
            store.search(&me, &Query { offset: at, ..query("needle", SearchExtent::Project) }).unwrap();
        assert!(page.hits.len() <= 10);
        assert!(page.hits.windows(2).all(|it| it[0].score >= it[1].score));
        seen.extend(page.hits.iter().filter_map(|it| it.entry.message));
        offset = page.next;
    }
    // Shorter texts fit better.
    assert_eq!(seen.first(), Some(&1));
    seen.sort_unstable();
    assert_eq!(seen, (1..=25).collect::<Vec<_>>());
}

#[test]
pub(super) fn shows_the_line_to_read_on_from() {
    let store = super::fresh(Redactor::default());
    let me = scope("me", "/p");
    let text = format!("{}error[E0308]: mismatched types\n{}", "ok\n".repeat(99), "more\n".repeat(500));
    put(&store, &me, "s", 1, ItemKind::Output, &text);
    let hit = &store.search(&me, &query("mismatched", SearchExtent::Project)).unwrap().hits[0];
    assert_eq!(hit.snippet.line, 100);
    assert!(hit.snippet.text.contains("mismatched types more") && hit.snippet.text.chars().count() <= 210);
}

#[test]
pub(super) fn odd_queries_are_answered_or_refused_never_an_accident() {
    let store = super::fresh(Redactor::default());
    let me = scope("me", "/p");
    put(&store, &me, "s", 1, ItemKind::Output, "needle AND OR NOT NEAR body");
    for text in ["", " ", "?!", "\"\"", "***", "()", "\u{0}", "—…", "😀"] {
        let error = store.search(&me, &query(text, SearchExtent::Project)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Arguments, "{text:?}");
    }
    for text in [
        "needle AND",
        "NOT",
        "NEAR(needle body)",
        "needle:AND",
        "needle*",
        "\"needle",
        "^needle",
        "{needle}",
        "needle\u{0}",
    ] {
        assert_eq!(found(&store, &me, &query(text, SearchExtent::Project)), [1], "{text:?}");
    }
    let long = "needle ".repeat(10_000);
    assert_eq!(found(&store, &me, &query(&long, SearchExtent::Project)), [1]);
    assert!(store.search(&me, &query(&"a'\"b".repeat(2_000), SearchExtent::Project)).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// What stands in a text is found by any stretch of it that is made of whole words, where scripts without spaces
    /// have a word at every character.
    #[test]
    fn any_stretch_of_a_text_is_found(
        text in "[数据库連接超時設定データベースのカ무결성]{1,12}( [a-z]{1,6}[数据の]{0,3}){0,3}",
        from in 0usize..12,
        len in 1usize..12,
    ) {
        let store = super::fresh(Redactor::default());
        let me = scope("me", "/p");
        put(&store, &me, "s", 1, ItemKind::Output, &text);
        put(&store, &me, "s", 2, ItemKind::Output, "other 文章");
        let run: Vec<char> = text.split(' ').next().unwrap_or_default().chars().collect();
        let from = from % run.len();
        let stretch: String = run[from..run.len().min(from + len)].iter().collect();
        for query_text in [&stretch, &text, &format!("\"{text}\"")] {
            let found = found(&store, &me, &query(query_text, SearchExtent::Project));
            prop_assert!(found.contains(&1), "{query_text} in {text}");
        }
    }

    #[test]
    fn no_query_upsets_the_database(text in "(\\PC|[\"'a数 *():^{}+-]|AND|OR|NOT|NEAR){0,30}") {
        let store = super::fresh(Redactor::default());
        let me = scope("me", "/p");
        put(&store, &me, "s", 1, ItemKind::Output, "a 数 AND");
        if let Err(error) = store.search(&me, &query(&text, SearchExtent::Project)) {
            prop_assert_eq!(error.kind(), ErrorKind::Arguments, "{}", error);
        }
    }
}
