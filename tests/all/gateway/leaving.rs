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
fn compacted(web: &Web, local: bool) -> (PathBuf, String) {
    let folder = web.home.path().join(".codex/sessions/2026/11/20");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(format!("rollout-2026-11-20T10-00-00-{THREAD}.jsonl"));
    let cwd = std::fs::canonicalize(web.home.path()).unwrap();
    let meta = json!({"id": THREAD, "cwd": cwd, "timestamp": "2026-11-20T10:00:00.000Z", "originator": "codex_exec",
        "cli_version": "0.169.0", "source": "exec", "model_provider": "openai"});
    let turn = json!({"turn_id": "t1", "cwd": cwd, "approval_policy": "never", "model": "m",
        "sandbox_policy": {"type": "danger-full-access"}});
    let items = conversation("rollout");
    let before: String = std::iter::once(line("session_meta", &meta))
        .chain(items[..2].iter().map(|it| line("response_item", it)))
        .chain(std::iter::once(line("turn_context", &turn)))
        .chain(items[2..].iter().map(|it| line("response_item", it)))
        .collect();
    std::fs::write(&path, &before).unwrap();
    let asked = if local { local_prompt() } else { trigger() };
    let body = codex(&with(items.clone(), asked), !local);
    let answer = item(&post(web.port, "/v1/responses", &[("thread-id", THREAD)], &body));
    // A summary that Codex asked for as a prompt stands in its rollout twice: as the assistant's words, then framed.
    let (noted, kept) = if local {
        let framed = format!(
            "Another language model started to solve this problem. The summary:\n{}",
            answer["content"][0]["text"].as_str().unwrap()
        );
        (line("response_item", &answer), message("user", &framed))
    } else {
        (String::new(), answer)
    };
    // Codex says its own words anew behind the first prompt.
    let history = json!({"message": "", "replacement_history": [items[2], items[0], items[1], kept]});
    let after = format!(
        "{before}{noted}{}{}{}",
        line("compacted", &history),
        line("turn_context", &turn),
        line("response_item", &message("user", "SAID-SINCE"))
    );
    std::fs::write(&path, after).unwrap();
    (path, before)
}

#[test]
fn uninstall_opens_what_sessions_hold() {
    let web = Provider::plain().gateway();
    let (path, before) = compacted(&web, false);
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

/// What a resume goes by, once the last compaction was taken back.
fn undone(local: bool) -> String {
    let web = Provider::plain().gateway();
    let (path, _) = compacted(&web, local);
    let done = epitome(web.home.path(), &["restore", "last", "--apply", "--json"]);
    assert!(
        done.status.success(),
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    assert_eq!(answer(&done)["status"], "restored", "{}", answer(&done));
    assert_eq!(answer(&done)["output"], path.display().to_string());
    let text = std::fs::read_to_string(&path).unwrap();
    let last = text.rsplit("\"compacted\"").next().unwrap().to_owned();
    for own in ["<environment_context>", "You are a coding agent."] {
        assert_eq!(last.matches(own).count(), 1, "{own}: {last}");
    }
    last
}

#[test]
fn a_sealed_compaction_is_undone() {
    // All outputs are there again, and what was said since, and nothing that is sealed.
    let last = undone(false);
    assert!(last.contains("11399") && last.contains("SAID-SINCE") && !last.contains("EPITOME1."), "{last}");
}

#[test]
fn a_compaction_by_prompt_is_undone_without_our_answer() {
    let last = undone(true);
    assert!(last.contains("11399") && last.contains("SAID-SINCE"), "{last}");
    assert!(
        !last.contains("Earlier conversation compacted") && last.matches("TAIL-rollout").count() == 1,
        "{last}"
    );
}
