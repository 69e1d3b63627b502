//! How long a search takes among many archived outputs, within one process. Prints a table.
//!
//! `cargo bench --bench store [-- NUMBER]`; 100,000 outputs when no number is given.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program for people, of which a failure is the result"
)]

use std::time::{Duration, Instant};

use epitome::history::secrets::Redactor;
use epitome::store::{
    Batch, Body, ItemKind, Original, Query, Scope, SearchExtent, SessionOrigin, Store, StoreAt,
};

const PATHS: [&str; 8] = [
    "src/main.rs",
    "lib/parser.ts",
    "app/models/user.rb",
    "cmd/serve.go",
    "tests/api_test.py",
    "index.html",
    "Makefile",
    "docs/设计.md",
];
const WORDS: [&str; 24] = [
    "error",
    "warning",
    "connection",
    "timeout",
    "postgres",
    "schema",
    "token",
    "render",
    "component",
    "handler",
    "refused",
    "mismatched",
    "types",
    "expected",
    "found",
    "struct",
    "lifetime",
    "migration",
    "index",
    "cache",
    "queue",
    "worker",
    "retry",
    "deadline",
];
const SCRIPTS: [&str; 6] = [
    "数据库连接超时，请检查配置",
    "修复了参数错误",
    "データベースの設定を変更しました",
    "テストが失敗した",
    "编译通过",
    "設定ファイルを読み込む",
];

fn me() -> Scope {
    Scope { owner: "me".into(), project: "/p".into() }
}

/// The `n`th output: some 60 lines as a tool prints them, one in ten with Chinese or Japanese in it.
fn output(n: u64) -> String {
    let mut state = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = move |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as usize % below
    };
    let mut out = String::new();
    for line in 0..20 + next(80) {
        out.push_str(&format!("{}:{}: ", PATHS[next(PATHS.len())], next(2_000)));
        for _ in 0..3 + next(6) {
            // The lower the number, the more frequent the word.
            let most = 1 + next(WORDS.len());
            out.push_str(WORDS[next(most)]);
            out.push(' ');
        }
        out.push_str(&format!("fn item_{}\n", next(50_000)));
        if line == 3 && n.is_multiple_of(10) {
            out.push_str(SCRIPTS[next(SCRIPTS.len())]);
            out.push('\n');
        }
    }
    out
}

/// Puts `number` outputs into the store, a thousand to a step.
fn fill(store: &Store, number: u64) {
    for from in (0..number).step_by(1_000) {
        let texts: Vec<_> =
            (from..number.min(from + 1_000)).map(|n| (format!("call_{n}"), output(n))).collect();
        let originals = texts
            .iter()
            .zip(0..)
            .map(|((call, text), message)| Original {
                kind: ItemKind::Output,
                body: Body::Bytes(text.as_bytes()),
                message: Some(message),
                call_id: Some(call),
                tool: Some("bash"),
                tokens: text.len() as u64 / 4,
            })
            .collect();
        let session = SessionOrigin { id: format!("s{from}"), ..SessionOrigin::default() };
        store.put_all(&me(), &Batch { session, at: from as i64, originals, compaction: None }).unwrap();
    }
}

fn main() {
    let number = std::env::args().filter_map(|it| it.parse().ok()).next().unwrap_or(100_000);
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&StoreAt::Path(directory.path().into()), Redactor::default()).unwrap();
    let start = Instant::now();
    fill(&store, number);
    let stats = store.stats().unwrap();
    println!(
        "{number} outputs, {} MB of text, filled in {:.1} s; database {} MB",
        stats.bytes >> 20,
        start.elapsed().as_secs_f64(),
        stats.file_bytes >> 20
    );
    println!("{:<28} {:>9} {:>9}", "query", "median ms", "worst ms");
    let mut medians = Vec::new();
    for text in [
        "item_4711",
        "deadline",
        "error",
        "error warning",
        "worker retry deadline",
        "\"connection timeout\"",
        "数据",
        "数据库",
        "超时",
        "設定",
        "失敗",
        "データベース",
        "设计",
        "nothing_like_it",
    ] {
        for extent in [SearchExtent::Project, SearchExtent::Session("s0".into())] {
            let shown = format!("{text}{}", if extent == SearchExtent::Project { "" } else { "  (session)" });
            let query = Query { text: text.into(), extent, only: vec![], limit: 10, offset: 0 };
            let mut times: Vec<Duration> = (0..11)
                .map(|_| {
                    let start = Instant::now();
                    store.search(&me(), &query).unwrap();
                    start.elapsed()
                })
                .collect();
            times.sort_unstable();
            println!(
                "{shown:<28} {:>9.2} {:>9.2}",
                times[5].as_secs_f64() * 1e3,
                times[10].as_secs_f64() * 1e3
            );
            medians.push(times[5]);
        }
    }
    medians.sort_unstable();
    println!("median of all {:.2} ms", medians[medians.len() / 2].as_secs_f64() * 1e3);
}
