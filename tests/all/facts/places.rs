//! Paths of commands begin where the shell stood, as Claude Code's rows say it.

use epitome::compaction::facts;
use epitome::history::History;
use epitome::sessions::{self, Format, MemorySource};
use serde_json::{Value, json};

/// A session of Claude Code: a command and what it printed, each with the directory in which it was called.
fn session(runs: &[(&str, Value, &str)]) -> History {
    let mut rows =
        vec![json!({"type": "user", "uuid": "u", "parentUuid": null, "cwd": "/w", "sessionId": "s",
        "message": {"role": "user", "content": "Mend the pump."}})];
    let mut last = "u".to_owned();
    for (number, (dir, input, printed)) in runs.iter().enumerate() {
        let (called, printed_at) = (format!("a{number}"), format!("r{number}"));
        let name = if input.get("command").is_some() { "Bash" } else { "Read" };
        rows.push(
            json!({"type": "assistant", "uuid": called, "parentUuid": last, "cwd": dir, "sessionId": "s",
            "message": {"role": "assistant", "id": format!("m{number}"), "model": "m", "content": [
                {"type": "tool_use", "id": format!("c{number}"), "name": name, "input": input}]}}),
        );
        rows.push(
            json!({"type": "user", "uuid": printed_at, "parentUuid": called, "cwd": dir, "sessionId": "s",
            "message": {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": format!("c{number}"), "content": printed}]}}),
        );
        last = printed_at;
    }
    let text: String = rows.iter().map(|it| format!("{it}\n")).collect();
    sessions::read(&MemorySource::new("s.jsonl", text.as_bytes()), Some(Format::CLAUDE_CODE)).unwrap().history
}

fn files(history: &History) -> Vec<String> {
    let ledger = facts::read(history);
    let is_file = |it: &&facts::Fact| matches!(it.detail, facts::Detail::File { .. });
    ledger.facts.iter().filter(is_file).map(|it| it.text.to_string()).collect()
}

#[test]
fn relative_paths_begin_where_the_shell_stood() {
    let history = session(&[
        ("/w", json!({"command": "cd src && ls"}), "pump"),
        ("/w/src", json!({"command": "sed -i s/a/b/ pump/core.rs"}), ""),
        ("/w/src", json!({"command": "git add pump/core.rs && git commit -m pump"}), "[main 1a2b3c4] pump"),
        (
            "/w/src",
            json!({"command": "git diff --stat"}),
            " src/pump/core.rs | 2 +-\n src/pump/edge.rs | 2 +-\n",
        ),
        ("/w/src", json!({"command": "cd .. && git status --short"}), " M docs/pump.md\n"),
        ("/w/src", json!({"command": "git status --short"}), " M pump/edge.rs\n M ../docs/pump.md\n"),
        ("/w/src", json!({"command": "grep -n flow pump/*.rs"}), "pump/flow.rs:3: flow\n"),
    ]);
    let files = files(&history);
    for expected in ["src/pump/core.rs", "src/pump/flow.rs"] {
        assert!(files.iter().any(|it| it == expected), "{expected} in {files:?}");
    }
    let wrong = |it: &&String| it.starts_with("pump/") || it.contains("src/src") || it.contains("src/docs");
    assert_eq!(files.iter().find(wrong), None, "{files:?}");
    let ledger = facts::read(&history);
    let told = |it: &facts::Fact| it.text.contains("; the shell's working directory is src");
    assert!(ledger.facts.iter().any(told), "{:?}", ledger.facts);
}

#[test]
fn a_read_does_not_date_an_edit() {
    let history = session(&[
        ("/w", json!({"command": "cd src && sed -i s/a/b/ pump/core.rs"}), ""),
        ("/w", json!({"command": "sed -n 1,9p src/pump/core.rs"}), "b"),
    ]);
    let ledger = facts::read(&history);
    let edited = ledger.facts.iter().find(|it| &*it.text == "src/pump/core.rs").unwrap();
    assert_eq!(edited.message, 2);
}

#[test]
fn a_path_is_joined_only_where_it_is_certain() {
    let history = session(&[
        // Of the subshell.
        ("/w", json!({"command": "(cd lab && sed -i s/a/b/ a.rs); sed -i s/a/b/ src/b.rs"}), ""),
        ("/w", json!({"command": "AT=$(cd lab && pwd); cat notes/c.md"}), "text"),
        // Where nobody knows.
        ("/w", json!({"command": "cd \"$PLANT/x\" && cd .. && sed -i s/a/b/ d.rs"}), ""),
        // What a file says begins anywhere, what a search finds begins where it ran.
        ("/w", json!({"command": "cd lab && cat list.txt"}), "pipes/e.rs:3: x\n"),
        ("/w", json!({"command": "cd lab && grep -rn flow pipes"}), "pipes/f.rs:3: flow\n"),
        ("/w", json!({"command": "rg -l flow; cd lab && rg -l flow"}), "pipes/g.rs\n"),
        ("/w", json!({"command": "git -C lab grep -n flow"}), "pipes/h.rs:3: flow\n"),
        // Git takes it from the root.
        ("/w/lab", json!({"command": "git show main:lab/i.rs"}), "fn i() {}"),
    ]);
    let mut files = files(&history);
    files.sort_unstable();
    let expected = [
        "lab/a.rs",
        "lab/i.rs",
        "lab/list.txt",
        "lab/pipes/f.rs",
        "lab/pipes/h.rs",
        "notes/c.md",
        "pipes/e.rs",
        "pipes/g.rs",
        "src/b.rs",
    ];
    let missing = |it: &&&str| !files.iter().any(|known| known == **it);
    assert_eq!(expected.iter().find(missing), None, "{files:?}");
    let wrong =
        |it: &&String| it.ends_with("d.rs") || it.starts_with("lab/pipes/e") || it.starts_with("lab/pipes/g");
    assert_eq!(files.iter().find(wrong), None, "{files:?}");
}

#[test]
fn a_symbol_stands_in_the_file_that_the_search_found() {
    let history = session(&[
        ("/w", json!({"command": "cd lab && grep -rn 'fn ' ."}), "./pipes/a.rs:3:fn open_valve() {\n"),
        ("/w", json!({"command": "cat lab/pipes/b.rs"}), "open_valve()"),
    ]);
    let ledger = facts::read(&history);
    let valve = ledger.facts.iter().find(|it| &*it.text == "open_valve").unwrap();
    assert!(
        matches!(&valve.detail, facts::Detail::Symbol { file: Some(file), .. } if file == "lab/pipes/a.rs"),
        "{valve:?}"
    );
}

#[test]
fn paths_of_a_summary_are_where_others_of_it_are() {
    let told = "@summary\n## Files\n- created: test/pump_test.rs\n- mentioned: test/valve_test.rs, src/pump.rs, docs/pump.md\n@user\nGo on.\n";
    let read = |paths: &[&str]| {
        let reads = paths.iter().enumerate().map(|(at, path)| {
            format!("@call Read r{at}\n{{\"file_path\":\"/repo/{path}\"}}\n@out r{at}\n1\tfn a() {{}}\n")
        });
        let history = super::session(&format!("{told}{}", reads.collect::<String>()));
        let ledger = facts::read(&history);
        let mut names: Vec<String> =
            ledger.about(facts::Topic::Files).map(|it| it.text.to_string()).collect();
        names.sort_unstable();
        names.join(" ")
    };
    assert_eq!(
        read(&["plant/test/valve_test.rs", "plant/src/pump.rs"]),
        "docs/pump.md plant/src/pump.rs plant/test/pump_test.rs plant/test/valve_test.rs"
    );
    // One is not enough, and a folder that is here is this one.
    assert!(read(&["plant/test/valve_test.rs"]).contains(" test/pump_test.rs"));
    assert!(
        read(&["plant/test/valve_test.rs", "plant/src/pump.rs", "test/a.rs"]).contains(" test/pump_test.rs")
    );
}

/// What is known of the files of a session, as `operation path`.
fn operations(runs: &[(&str, &str)]) -> Vec<String> {
    let runs: Vec<_> =
        runs.iter().map(|(command, printed)| ("/w", json!({ "command": command }), *printed)).collect();
    let ledger = facts::read(&session(&runs));
    let told = ledger.facts.iter().filter_map(|it| match &it.detail {
        facts::Detail::File { op, to } => Some(match to {
            Some(to) => format!("{op:?} {} → {to}", it.text),
            None => format!("{op:?} {}", it.text),
        }),
        _ => None,
    });
    let mut told: Vec<String> = told.filter(|it| !it.starts_with("Mentioned")).collect();
    told.sort_unstable();
    told
}

#[test]
fn a_moved_directory_takes_its_files_along() {
    let status = " D plan.md\n D src/pump.ts\n D src/valve.ts\n?? app/\n";
    let told = operations(&[
        ("sed -i s/a/b/ src/pump.ts", ""),
        ("mkdir -p app && mv plan.md src app/", ""),
        ("git status --short", status),
        ("sed -i s/a/b/ app/plan.md", ""),
        ("git add -A && git status --short", "R  plan.md -> app/plan.md\nA  app/src/pump.ts\n"),
    ]);
    let expected = [
        "Edited app/plan.md",
        "Edited app/src/pump.ts",
        "Renamed plan.md → app/plan.md",
        "Renamed src → app/src",
    ];
    assert_eq!(told, expected);
}

#[test]
fn what_is_moved_into_a_known_directory_replaces_nothing_there() {
    let told = operations(&[
        ("sed -i s/a/b/ app/a.ts", ""),
        ("cat src/a.ts", "a"),
        ("rm src/old.ts", ""),
        ("mv src app", ""),
    ]);
    let expected = ["Deleted src/old.ts", "Edited app/a.ts", "Read app/src/a.ts", "Renamed src → app/src"];
    assert_eq!(told, expected);
}

#[test]
fn what_the_same_command_makes_again_is_not_deleted() {
    for (command, told) in [
        ("rm -rf .next && npx next build", &[][..]),
        ("rm -rf dist && cp -r web/dist dist", &["Created dist"]),
        ("npm test; rm -rf coverage", &["Deleted coverage"]),
        ("rm -rf dist && git status", &["Deleted dist"]),
        ("rm -rf node_modules package-lock.json && npm install", &[]),
        ("rm src/old.rs && cargo build", &["Deleted src/old.rs"]),
    ] {
        assert_eq!(operations(&[(command, "")]), told, "{command}");
    }
    let again = [("rm package-lock.json", ""), ("rm -f package-lock.json && npm install", "")];
    assert_eq!(operations(&again[..1]), ["Deleted package-lock.json"]);
    assert_eq!(operations(&again), [""; 0]);
}

#[test]
fn what_was_deleted_and_written_again_was_there_before() {
    let patch = |what: &str| format!("apply_patch << 'PATCH'\n*** Begin Patch\n{what}\n*** End Patch\nPATCH");
    let told = operations(&[
        ("cat plan.md", "pump"),
        (&patch("*** Delete File: plan.md"), "Success. Updated the following files:\nD plan.md"),
        (&patch("*** Add File: plan.md\n+pump"), "Success. Updated the following files:\nA plan.md"),
    ]);
    assert_eq!(told, ["Written plan.md"]);
    let told = operations(&[
        ("touch new.md", ""),
        ("rm new.md", ""),
        ("rm -f never.md", ""),
        ("touch new.md never.md", ""),
    ]);
    assert_eq!(told, ["Created never.md", "Created new.md"]);
}
