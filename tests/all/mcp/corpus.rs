//! No answer is larger than promised, on any session of the corpus.

use std::path::{Path, PathBuf};

use super::{Client, example};
use epitome::tokens::Estimator;
use serde_json::{Value, json};

/// Larger sessions are left to a build that is optimised.
const LARGEST: u64 = if cfg!(debug_assertions) { 1_500_000 } else { u64::MAX };

fn sessions() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus =
        std::env::var_os("EPITOME_CORPUS").map_or_else(|| root.join("../shared/corpus"), PathBuf::from);
    let mut out = Vec::new();
    for folder in std::fs::read_dir(corpus).into_iter().flatten().flatten() {
        for file in std::fs::read_dir(folder.path()).into_iter().flatten().flatten() {
            let path = file.path();
            let session = path.extension().is_some_and(|it| it == "jsonl" || it == "json" || it == "traj");
            if session && path.metadata().is_ok_and(|it| it.is_file() && it.len() <= LARGEST) {
                out.push(path);
            }
        }
    }
    out.sort();
    if out.is_empty() {
        eprintln!("SKIPPED: no_answer_is_larger_than_promised: no corpus; the examples have to do");
        out.extend(["claude-code.jsonl", "codex.jsonl", "opencode.json"].map(example));
    }
    out
}

#[test]
fn no_answer_is_larger_than_promised() {
    let mut client = Client::legacy();
    let mut largest = std::collections::BTreeMap::new();
    let mut wrong = Vec::new();
    let sessions = sessions();
    for session in &sessions {
        for (tool, arguments, limit) in [
            ("estimate_tokens", json!({"detail": "detailed"}), 8_000),
            ("find_split_point", json!({}), 1_500),
            ("prune_tool_outputs", json!({}), 1_500),
            ("summarize_history", json!({"budget": "20%"}), 1_500),
            ("summarize_history", json!({"budget": "20%", "to": "file"}), 400),
        ] {
            let mut arguments = arguments;
            arguments["session"] = json!(session);
            let result = client.result(tool, arguments.clone());
            // A file that is no session is refused, in few words too.
            let size = Estimator::O200k.text(result["content"][0]["text"].as_str().unwrap());
            let key = format!("{tool} {}", arguments["to"].as_str().unwrap_or("plan"));
            let most = largest.entry(key).or_insert(0);
            *most = size.max(*most);
            if size > limit {
                wrong.push(format!("{tool} {arguments}: {size} tokens"));
            }
        }
    }
    let read: Value = json!(largest);
    eprintln!("largest answers on {} sessions, in tokens: {read}", sessions.len());
    assert_eq!(wrong, Vec::<String>::new());
}
