//! Sessions that hold our capsules, once the gateway is left or a compaction undone.

use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::apply::{answer, epitome};

const THREAD: &str = "01a1f83d-508c-7961-8bf6-cd5f627fa999";

fn line(kind: &str, payload: &Value) -> String {
    format!("{}\n", json!({"timestamp": "2026-11-20T10:00:00.000Z", "type": kind, "payload": payload}))
}

/// A session of Codex on the gateway's machine, compacted by the gateway as Codex notes it; its file and its text before.
fn compacted(web: &Web) -> (PathBuf, String) {
    let folder = web.home.path().join(".codex/sessions/2026/11/20");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("rollout-2026-11-20T10-00-00-{THREAD}.jsonl"));
    let cwd = std::fs::canonicalize(web.home.path()).unwrap();
    let meta = json!({"id": THREAD, "cwd": cwd, "timestamp": "2026-11-20T10:00:00.000Z", "originator": "codex_exec",
        "cli_version": "0.169.0", "source": "exec", "model_provider": "openai"});
    let items = conversation("rollout");
    let before: String = std::iter::once(line("session_meta", &meta))
        .chain(items.iter().map(|it| line("response_item", it)))
        .collect();
    std::fs::write(&path, &before).unwrap();
    let body = codex(&with(items.clone(), trigger()), true);
    let capsule = item(&post(web.port, "/v1/responses", &[("thread-id", THREAD)], &body));
    let history = json!({"message": "", "replacement_history": [items[2], capsule]});
    let after = format!(
        "{before}{}{}",
        line("compacted", &history),
        line("response_item", &message("user", "SAID-SINCE"))
    );
    std::fs::write(&path, after).unwrap();
    (path, before)
}

#[test]
fn uninstall_opens_what_sessions_hold() {
    let web = Provider::plain().gateway();
    let (path, before) = compacted(&web);
    let sealed = std::fs::read_to_string(&path).unwrap();
    assert!(sealed.contains("EPITOME1."));
    let dry = epitome(web.home.path(), &["uninstall", "codex", "--dry-run"]);
    assert!(String::from_utf8_lossy(&dry.stdout).contains("would be changed"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), sealed);
    let done = epitome(web.home.path(), &["uninstall", "codex"]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let opened = std::fs::read_to_string(&path).unwrap();
    assert!(!opened.contains("EPITOME1.") && opened.starts_with(&before));
    assert_eq!(opened.lines().count(), sealed.lines().count());
    assert!(
        opened.contains("<external_epitome>")
            && opened.contains("TAIL-rollout")
            && opened.contains("SAID-SINCE")
    );
    // A key that is lost opens nothing: the session is named, and stays.
    std::fs::write(&path, &sealed).unwrap();
    std::fs::remove_file(web.home.path().join(".local/share/epitome/gateway.key")).unwrap();
    let left = epitome(web.home.path(), &["uninstall", "codex"]);
    assert!(String::from_utf8_lossy(&left.stdout).contains("needs the gateway"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), sealed);
}

#[test]
fn a_sealed_compaction_is_undone() {
    let web = Provider::plain().gateway();
    let (path, _) = compacted(&web);
    let done = epitome(web.home.path(), &["restore", "last", "--apply", "--json"]);
    assert!(
        done.status.success(),
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    assert_eq!(answer(&done)["status"], "restored", "{}", answer(&done));
    assert_eq!(answer(&done)["output"], path.display().to_string());
    // All outputs are there again, and what was said since, and nothing that is sealed, in what a resume goes by.
    let text = std::fs::read_to_string(&path).unwrap();
    let last = text.rsplit("\"compacted\"").next().unwrap();
    assert!(last.contains("11399") && last.contains("SAID-SINCE") && !last.contains("EPITOME1."), "{last}");
}
