//! What is told while a compaction runs, and the user's own commands around it.

use std::path::Path;

use epitome::compaction::plan::Cause;
use epitome::config::Choice;
use epitome::engine::{self, Ask, Event, To};
use epitome::store::Scope;
use serde_json::{Value, json};

use super::{ask, contents, engine_at, listening, names, open, ready, session, with};

#[test]
fn what_happens_is_told_with_the_real_percentage() {
    let (_home, mut engine, opened) = ready(20);
    let heard = listening(&mut engine);
    let wish = with(ask("supermemory"), |it| {
        it.counting.window = Some(100_000);
        it.options.trigger = Some(Cause::Auto);
    });
    let context = engine::estimate(&engine, &opened, &wish, None).unwrap().context;
    let made = engine::compact(&engine, &opened, &wish).unwrap();
    assert_eq!(made.answer().status.name(), "compacted", "{}", made.answer().reason);
    assert_eq!(names(&heard), ["started", "asked", "compacted"]);
    let heard = heard.lock().unwrap();
    let Event::Started { percent, notice, profile, trigger, .. } = &heard[0] else {
        panic!("{:?}", heard[0])
    };
    assert_eq!(
        (profile.as_str(), trigger.as_str(), *percent),
        ("supermemory", "auto", Some(context / 1_000))
    );
    assert!(notice.contains(&format!("Context at {}%", context / 1_000)), "{notice}");
    let Event::Compacted { tokens_before, tokens_after, handle, notice, .. } = &heard[2] else { panic!() };
    assert!(tokens_after < tokens_before && handle.is_some() && notice.starts_with("Compaction Complete"));
}

#[test]
fn a_preview_tells_nothing_but_asks() {
    let home = tempfile::tempdir().unwrap();
    let mut engine =
        engine_at(home.path(), &[], &[(".config/epitome/config.toml", "[hooks]\nbefore = \"exit 1\"\n")]);
    let heard = listening(&mut engine);
    let opened = open(&engine, &session(home.path(), 20));
    let made = engine::compact(&engine, &opened, &Ask { to: To::Plan, ..ask("codex") }).unwrap();
    assert_eq!(made.answer().status.name(), "planned");
    assert_eq!(names(&heard), ["asked"]);
}

#[test]
#[cfg(unix)]
fn the_users_commands_run_and_may_refuse() {
    let home = tempfile::tempdir().unwrap();
    let [before, after] = ["before", "after"].map(|it| home.path().join(it));
    let config =
        format!("[hooks]\nbefore = \"cat > {}\"\nafter = \"cat > {}\"\n", before.display(), after.display());
    let mut engine = engine_at(home.path(), &[], &[(".config/epitome/config.toml", &config)]);
    let opened = open(&engine, &session(home.path(), 20));
    assert_eq!(
        engine::compact(&engine, &opened, &ask("opencode")).unwrap().answer().status.name(),
        "compacted"
    );
    let read = |path: &Path| -> Value { serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap() };
    assert_eq!(
        (read(&before)["event"].as_str(), read(&before)["profile"].as_str()),
        (Some("started"), Some("opencode"))
    );
    assert_eq!(read(&after)["event"], "compacted");

    engine.config.hooks.before = Some("echo not now >&2; exit 3".to_owned());
    let heard = listening(&mut engine);
    let refused = engine::compact(&engine, &opened, &ask("opencode")).unwrap();
    assert_eq!(
        (refused.answer().status.name(), refused.answer().reason_code.as_str()),
        ("rejected", "hook_refused")
    );
    assert!(
        refused.answer().reason.contains("not now") && refused.bytes().is_none(),
        "{}",
        refused.answer().reason
    );
    assert_eq!(names(&heard), ["started", "failed"]);

    engine.config.hooks.before = Some("exec sleep 60".to_owned());
    engine.config.hooks.timeout_seconds = 1;
    let refused = engine::compact(&engine, &opened, &ask("opencode")).unwrap();
    assert!(refused.answer().reason.contains("took longer"), "{}", refused.answer().reason);
}

#[test]
#[cfg(unix)]
fn the_users_commands_run_once_around_what_the_hosts_answer_writes() {
    let home = tempfile::tempdir().unwrap();
    let mut engine = engine_at(home.path(), &[], &[]);
    let [before, after] = ["before", "after"].map(|it| home.path().join(it));
    engine.config.hooks.before = Some(format!("cat >> {}", before.display()));
    engine.config.hooks.after = Some(format!("cat >> {}", after.display()));
    let runs = |path: &Path| std::fs::read_to_string(path).unwrap_or_default().lines().count();
    let heard = listening(&mut engine);
    let opened = open(&engine, &session(home.path(), 20));
    let wish = with(ask("opencode"), |it| it.writer.summarizer = Choice::Host);
    let asked = engine::compact(&engine, &opened, &wish).unwrap().answer();
    assert_eq!(asked.status.name(), "needs_answer", "{}", asked.reason);
    // What does not do is asked for once more; what does not do twice is replaced by the offline summary.
    let asked = engine::answered(&engine, &asked.handle.unwrap(), "Sure!", |_| Ok(None)).unwrap().0.answer();
    assert_eq!(asked.status.name(), "needs_answer", "{}", asked.reason);
    assert_eq!((runs(&before), runs(&after), names(&heard)), (0, 0, Vec::new()), "nothing is written yet");
    let handle = asked.handle.unwrap();

    let command = engine.config.hooks.before.replace("echo not now >&2; exit 1".to_owned());
    let refused = engine::answered(&engine, &handle, "Sure!", |_| Ok(None)).unwrap().0;
    assert_eq!(refused.answer().reason_code, "hook_refused", "{}", refused.answer().reason);
    assert!(refused.bytes().is_none() && refused.answer().reason.contains("not now"));
    assert_eq!(names(&heard), ["started", "failed"]);
    assert_eq!(runs(&after), 0);

    engine.config.hooks.before = command;
    let done = engine::answered(&engine, &handle, "Sure!", |_| Ok(None)).unwrap().0;
    assert_eq!(done.answer().status.name(), "compacted", "{}", done.answer().reason);
    assert_eq!((runs(&before), runs(&after)), (1, 1));
    assert_eq!(names(&heard)[2..], ["started", "asked", "compacted"], "the offline one is asked for");
}

#[test]
fn over_mcp_what_happens_is_progress() {
    let mut client = crate::mcp::Client::legacy();
    let arguments = json!({"messages": contents(0, 20), "profile": "supermemory", "window": 20_000});
    let call = |token: Value| {
        let mut params = json!({"name": "summarize_history", "arguments": arguments});
        if !token.is_null() {
            params["_meta"] = json!({"progressToken": token});
        }
        json!({"jsonrpc": "2.0", "id": 90, "method": "tools/call", "params": params})
    };
    client.send(&call(json!("p1")));
    let mut said = Vec::new();
    let answer = loop {
        let message = client.read();
        if message["id"] == 90 {
            break message;
        }
        assert_eq!(
            (message["method"].as_str(), message["params"]["progressToken"].as_str()),
            (Some("notifications/progress"), Some("p1"))
        );
        said.push(message["params"].clone());
    };
    assert_eq!(answer["result"]["structuredContent"]["status"], "compacted", "{answer}");
    let words: Vec<&str> = said.iter().map(|it| it["message"].as_str().unwrap()).collect();
    let told: Vec<&&str> = words.iter().filter(|it| **it != "working on the session").collect();
    assert_eq!(told.len(), 3, "{words:?}");
    assert!(told[0].starts_with("Preemptive Compaction: Context at "), "{told:?}");
    assert!(told[1].starts_with("asking offline for a summary of at most "), "{told:?}");
    assert!(told[2].starts_with("Compaction Complete"), "{told:?}");
    let steps: Vec<f64> = said.iter().map(|it| it["progress"].as_f64().unwrap()).collect();
    assert!(steps.windows(2).all(|it| it[0] < it[1]), "{steps:?}");
    // Who asks for no progress gets none.
    client.send(&call(Value::Null));
    assert_eq!(client.read()["id"], 90);
}

#[test]
fn gemini_clis_hook_before_a_compression_keeps_the_original_and_says_nothing() {
    let home = tempfile::tempdir().unwrap();
    let engine = engine_at(home.path(), &[], &[]);
    let file = home.path().join("session-2026-05-28T20-26-3d0c7a52.jsonl");
    let id = "3d0c7a52-6f1e-4c58-9a41-0b8e5f2c7d10";
    let bytes = include_bytes!("../../../examples/sessions/gemini-cli.jsonl");
    std::fs::write(&file, bytes).unwrap();
    for trigger in ["manual", "auto"] {
        let said = json!({"session_id": id, "transcript_path": file, "cwd": home.path(),
            "hook_event_name": "PreCompress", "timestamp": "2026-05-28T20:40:00.000Z", "trigger": trigger});
        let event = epitome::agents::hooks::read(&said.to_string(), None).unwrap();
        let text = engine::hook(&engine, &event).unwrap();
        // It is advisory, and fires at every check: no word of ours, and nothing that would block.
        assert_eq!((text.as_str(), event.answer(&text).as_str()), ("", ""), "{trigger}");
        let project = std::fs::canonicalize(home.path()).unwrap().display().to_string();
        let scope = Scope { owner: engine.config.owner.clone(), project };
        let handle = engine.store.marked(&scope, &format!("before/{id}")).unwrap().unwrap().value;
        let scope = engine.store.locate(&handle, &engine.config.owner).unwrap();
        assert_eq!(engine.store.restore(&scope, &handle).unwrap(), bytes);
    }
}
