//! No answer is larger than promised, on any session of the corpus.

use std::path::PathBuf;

use super::{Client, example};
use epitome::tokens::Estimator;
use serde_json::{Value, json};

use crate::corpus;

/// Larger sessions are left to a server that is optimised: a test's own, or the one that `EPITOME_BINARY` names.
fn largest() -> u64 {
    let slow = cfg!(debug_assertions) && std::env::var_os("EPITOME_BINARY").is_none();
    if slow { 600_000 } else { u64::MAX }
}

/// Tokens of an answer after something was written, of a plan, of anything.
const WRITTEN: u64 = 400;
const PLAN: u64 = 1_500;
const ANSWER: u64 = 8_000;

fn sessions() -> Vec<PathBuf> {
    let found = corpus::KINDS.iter().flat_map(|it| corpus::files(&corpus::corpus().join(it)));
    let mut out: Vec<PathBuf> =
        found.filter(|it| it.metadata().is_ok_and(|it| it.len() <= largest())).collect();
    out.sort();
    if out.is_empty() {
        eprintln!("SKIPPED: no_answer_is_larger_than_promised: no corpus; the examples have to do");
        out.extend(["claude-code.jsonl", "codex.jsonl", "opencode.json"].map(example));
    }
    out
}

/// What is asked of a session, and how many tokens the answer may have.
fn questions() -> Vec<(&'static str, Value, u64)> {
    vec![
        ("estimate_tokens", json!({}), ANSWER),
        ("estimate_tokens", json!({"detail": "detailed"}), ANSWER),
        ("find_split_point", json!({}), PLAN),
        ("prune_tool_outputs", json!({}), PLAN),
        ("prune_tool_outputs", json!({"protect_tokens": 0, "to": "file"}), WRITTEN),
        ("summarize_history", json!({"budget": "20%"}), PLAN),
        ("summarize_history", json!({"focus": "go on with the tests"}), PLAN),
        ("summarize_history", json!({"budget": "20%", "to": "file"}), WRITTEN),
        ("summarize_history", json!({"budget": "20%", "summarizer": "host"}), ANSWER),
        ("recall", json!({"scope": "session", "query": "error"}), ANSWER),
        // Last, since the session is another one afterwards.
        ("prune_tool_outputs", json!({"protect_tokens": 0, "to": "session"}), WRITTEN),
        ("summarize_history", json!({"budget": "20%", "to": "session"}), WRITTEN),
    ]
}

#[test]
fn no_answer_is_larger_than_promised() {
    let mut client = Client::legacy();
    let mut largest = std::collections::BTreeMap::new();
    let mut wrong = Vec::new();
    let sessions = sessions();
    let mut ask = |tool: &str, arguments: &Value, limit: u64| {
        let result = client.result(tool, arguments.clone());
        // A file that is no session is refused, in few words too.
        let text = result["content"][0]["text"].as_str().unwrap();
        let size = Estimator::O200k.text(text);
        let mut key = arguments.clone();
        let key = key.as_object_mut().unwrap();
        key.retain(|name, _| name != "session" && name != "handle");
        let most = largest.entry(format!("{tool} {}", json!(key))).or_insert((0, limit));
        most.0 = size.max(most.0);
        if size > limit {
            wrong.push(format!("{tool} {arguments}: {size} tokens"));
        }
        result["structuredContent"].clone()
    };
    for session in &sessions {
        // What is written back is written to a copy.
        let copy = tempfile::tempdir().unwrap();
        let path = copy.path().join(session.file_name().unwrap());
        std::fs::copy(session, &path).unwrap();
        for (tool, mut arguments, limit) in questions() {
            arguments["session"] = json!(path);
            let answer = ask(tool, &arguments, limit);
            if arguments["to"] == "file"
                && let Some(handle) = answer["handle"].as_str()
            {
                ask("recall", &json!({"handle": handle}), ANSWER);
                ask("recall", &json!({"handle": handle, "limit": 100_000}), ANSWER);
            }
        }
    }
    eprintln!("largest answers on {} sessions, in tokens, and what they may have:", sessions.len());
    for (question, (size, limit)) in &largest {
        eprintln!("{size:>6} of {limit:>5}  {question}");
    }
    assert_eq!(wrong, Vec::<String>::new());
}
