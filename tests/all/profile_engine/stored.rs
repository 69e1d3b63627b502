//! What is remembered of a session, kept for the next time, and put back.

use std::path::Path;

use epitome::compaction::profile::Pass;
use epitome::engine::{self, Ask, Engine, To};
use epitome::store::{MemoryFilter, MemoryKind};
use serde_json::{Value, json};

use super::{ask, engine_at, listening, names, open, ready, scope, session, with};

#[test]
fn a_summary_is_remembered_without_what_is_private() {
    let home = tempfile::tempdir().unwrap();
    let engine = engine_at(home.path(), &[], &[]);
    let text = session(home.path(), 20)
        .replace("Please look at module 3.", "Please look <private>at my salary</private>.");
    let opened = open(&engine, &text);
    let made = engine::compact(&engine, &opened, &ask("supermemory")).unwrap();
    assert_eq!(made.answer().status.name(), "compacted", "{}", made.answer().reason);
    let scope = scope(&engine, home.path());
    let found = engine.store.memories(&scope, &MemoryFilter::default()).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].kind, MemoryKind::Conversation);
    assert!(found[0].content.starts_with("[Session Summary]\n"), "{}", found[0].content);
    assert!(!found[0].content.contains("salary"));
    // Another profile remembers nothing.
    let other = tempfile::tempdir().unwrap();
    let engine = engine_at(other.path(), &[], &[]);
    engine::compact(&engine, &open(&engine, &session(other.path(), 20)), &ask("opencode")).unwrap();
    let scope = super::scope(&engine, other.path());
    assert!(engine.store.memories(&scope, &MemoryFilter::default()).unwrap().is_empty());
}

#[test]
fn a_stored_snapshot_takes_the_place_of_a_summary() {
    let (home, mut engine, opened) = ready(20);
    let heard = listening(&mut engine);
    let history = &opened.session.history;
    engine::keep_snapshot(&engine, history, history.messages().len(), "All modules keep the clock.").unwrap();
    let made = engine::compact(&engine, &opened, &ask("claude-code")).unwrap();
    assert_eq!(made.answer().status.name(), "compacted", "{}", made.answer().reason);
    let first = made.history().unwrap().messages()[0].plain();
    assert!(first.ends_with("All modules keep the clock."), "{first}");
    assert_eq!(names(&heard), ["started", "compacted"], "no summary is asked for");
    // It does not cover what came after: then one is written.
    let longer = open(&engine, &session(home.path(), 21));
    assert!(engine::compact(&engine, &longer, &ask("claude-code")).unwrap().answer().summary.is_some());
}

#[test]
fn a_stored_snapshot_holds_no_secret() {
    const SECRET: &str = "AKIAIOSFODNN7EXAMPLQ";
    let (home, engine, opened) = ready(20);
    let history = &opened.session.history;
    let text = format!("aws_access_key_id = {SECRET}. All modules keep the clock.");
    engine::keep_snapshot(&engine, history, history.messages().len(), &text).unwrap();
    let scope = scope(&engine, home.path());
    let name = format!("snapshot/{}", history.meta.session.as_deref().unwrap());
    let mark = engine.store.marked(&scope, &name).unwrap().unwrap();
    assert!(mark.value.contains("[REDACTED") && !mark.value.contains(SECRET), "{}", mark.value);
    // It is used all the same.
    let made = engine::compact(&engine, &opened, &ask("claude-code")).unwrap();
    assert!(made.history().unwrap().messages()[0].plain().ends_with("All modules keep the clock."));
}

#[test]
fn collapsed_turns_are_archived_under_their_handles() {
    let (home, engine, opened) = ready(6);
    let mut profile = epitome::profiles::built_in("claude-code").unwrap();
    profile.passes.retain(|it| matches!(it, Pass::Collapse(_)));
    let Pass::Collapse(step) = &mut profile.passes[0] else { panic!() };
    step.on = true;
    let made = engine::compact(&engine, &opened, &Ask { to: To::Bytes, ..Ask::new(profile) }).unwrap();
    assert_eq!(made.answer().status.name(), "compacted", "{}", made.answer().reason);
    let line = made.history().unwrap().messages()[0].plain();
    assert!(line.starts_with("[turn collapsed: Please look at module 0."), "{line}");
    let handle = line.trim_end_matches(']').rsplit(' ').next().unwrap().to_owned();
    let scope = scope(&engine, home.path());
    let original = String::from_utf8(engine.store.restore(&scope, &handle).unwrap()).unwrap();
    assert!(original.contains("Please look at module 0.") && original.contains("fn part_0()"), "{handle}");
}

#[test]
fn files_come_back_from_disk_only_when_asked_and_only_from_the_project() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("project");
    std::fs::create_dir_all(project.join("src")).unwrap();
    std::fs::write(project.join("src/a.rs"), "as it is on disk").unwrap();
    std::fs::write(home.path().join("secret.txt"), "outside of the project").unwrap();
    let text = {
        let row = |number: usize, kind: &str, content: Value| {
            json!({"type": kind, "uuid": format!("u{number}"), "parentUuid": (number > 0).then(|| format!("u{}", number - 1)),
                "sessionId": "5e55", "cwd": &project, "isSidechain": false, "userType": "external", "version": "2.1.0",
                "timestamp": "2025-11-14T22:13:20.000Z", "message": {"role": kind, "id": format!("m{number}"), "content": content}})
        };
        let mut rows = vec![row(0, "user", json!("Look at the files."))];
        for (number, path) in ["src/a.rs", "../secret.txt"].iter().enumerate() {
            let path = project.join(path);
            rows.push(row(2 * number + 1, "assistant", json!([{"type": "tool_use", "id": format!("t{number}"), "name": "Read", "input": {"file_path": path}}])));
            rows.push(row(2 * number + 2, "user", json!([{"type": "tool_result", "tool_use_id": format!("t{number}"), "content": "as it was read"}])));
        }
        rows.push(row(5, "assistant", json!([{"type": "text", "text": "I read them. ".repeat(2_000)}])));
        rows.iter().map(|it| format!("{it}\n")).collect::<String>()
    };
    let engine_in = |cwd: &Path| {
        let mut engine = engine_at(home.path(), &[], &[]);
        engine.config.agents.cwd = cwd.to_owned();
        engine
    };
    let said = |engine: &Engine, from_disk: bool| {
        let made = engine::compact(
            engine,
            &open(engine, &text),
            &with(ask("claude-code"), |it| it.options.files_from_disk = from_disk),
        )
        .unwrap();
        let all = made.history().unwrap();
        all.messages().iter().map(|it| it.plain()).collect::<Vec<_>>().join("\n")
    };
    let there = engine_in(&project);
    let kept = said(&there, false);
    assert!(kept.contains("a.rs\nas it was read") && !kept.contains("on disk"), "{kept}");
    let kept = said(&there, true);
    assert!(kept.contains("a.rs\nas it is on disk") && !kept.contains("outside of the project"), "{kept}");
    assert!(kept.contains("secret.txt\nas it was read"), "{kept}");
    // A session file that somebody else made does not choose the folder.
    let kept = said(&engine_in(&home.path().join("elsewhere")), true);
    assert!(!kept.contains("on disk"), "{kept}");
}
