//! What is over: errors that are gone, steps that were taken, requests that were fulfilled.

use super::{History, asked, facts, offline, session, spec, summary};

fn page(text: &str) -> String {
    let history = session(text);
    summary(&history, &facts::read(&history), &spec(), 100_000, &[])
}

fn under(page: &str, title: &str) -> String {
    let rest = page.split_once(&format!("## {title}\n")).map_or("", |it| it.1);
    rest.split("\n## ").next().unwrap_or_default().to_owned()
}

/// A session in which each command prints what follows it.
fn runs(commands: &[(&str, &str)]) -> String {
    let mut text = "@user\nMend the pump.\n".to_owned();
    for (number, (command, printed)) in commands.iter().enumerate() {
        let call = serde_json::json!({ "command": command });
        text += &format!("@call Bash c{number}\n{call}\n@out c{number}\n{printed}\n");
    }
    text
}

#[test]
fn an_error_is_over_that_the_same_check_no_longer_prints() {
    let first = "src/pump.ts(3,1): error TS1005: ',' expected.";
    let other = "src/valve.ts(8,2): error TS2322: Type 'a' is not assignable.";
    for (command, printed, over) in [
        ("npx tsc --noEmit", other, true),
        ("npx tsc --noEmit | grep 'error TS'", other, true),
        ("npx tsc --noEmit | grep valve", other, false),
        ("npx tsc --noEmit | head -1", other, false),
        ("npx tsc --noEmit", "src/pump.ts(9,1): error TS1005: ',' expected.", false),
        ("npx tsc --noEmit | grep -c 'error TS'", "1", false),
        ("npx other --noEmit", other, false),
    ] {
        let page = page(&runs(&[("npx tsc --noEmit | tail -20", first), (command, printed)]));
        let errors = under(&page, "Errors");
        let line = errors.lines().find(|it| it.contains("TS1005")).unwrap_or_default();
        assert_eq!(line.contains("resolved at #4"), over, "{command}: {printed}\n{page}");
    }
}

#[test]
fn an_error_that_is_printed_again_is_not_over() {
    let first = "src/pump.ts(3,1): error TS2322: Type 'a' is not assignable.";
    let page = page(&runs(&[
        ("npx tsc --noEmit", first),
        ("npx tsc --noEmit | grep error", "src/valve.ts(8,2): error TS1005: ',' expected."),
        ("npx tsc --noEmit | tail", first),
    ]));
    let errors = under(&page, "Errors");
    let line = errors.lines().find(|it| it.contains("TS2322")).unwrap_or_default();
    assert!(line.contains("unresolved [#6]"), "{page}");
}

#[test]
fn an_error_that_moved_to_another_line_is_told_once() {
    let page = page(&runs(&[
        ("npx tsc --noEmit | head -20", "src/pump.ts(3,1): error TS1005: ',' expected."),
        ("npx tsc --noEmit | grep error", "src/pump.ts(5,1): error TS1005: ',' expected."),
    ]));
    let errors = under(&page, "Errors");
    assert!(errors.contains("src/pump.ts(5,1)") && !errors.contains("src/pump.ts(3,1)"), "{page}");
}

#[test]
fn steps_of_an_earlier_summary_are_over_once_their_files_are_made_and_checked() {
    let steps = concat!(
        "- [ ] Save the edits of src/pump.rs\n- [ ] Write suites (pump, valveTest, boiler)\n",
        "- [ ] Write pages (pump, chimney)\n- [ ] Update docs/manual.md\n- [ ] Verify: `npx tsc --noEmit`, lint.\n",
    );
    let mut text = format!("@summary\n## Pending tasks\n{steps}@user\nGo on.\n");
    for (number, (path, input)) in [
        ("src/pump.rs", r#""old_string":"a","new_string":"b""#),
        ("test/pump.test.ts", r#""content":"a""#),
        ("test/valveTest.ts", r#""content":"a""#),
        ("test/boiler.test.ts", r#""content":"a""#),
    ]
    .iter()
    .enumerate()
    {
        let name = if input.contains("content") { "Write" } else { "Edit" };
        text += &format!(
            "@call {name} e{number}\n{{\"file_path\":\"/repo/{path}\",{input}}}\n@out e{number}\nFile created successfully\n"
        );
    }
    text += "@call Bash t\n{\"command\":\"npx tsc --noEmit && npm run lint\"}\n@out t\nok\n@model\nOn to the manual.\n";
    let page = page(&text);
    for (step, left) in [
        ("Save the edits", false),
        ("Write suites", false),
        ("Write pages", true),
        ("Update docs/manual.md", true),
        ("Verify:", false),
    ] {
        assert_eq!(page.contains(step), left, "{step}\n{page}");
    }
}

#[test]
fn tasks_in_a_list_are_no_rules() {
    let prompt = |third: &str| {
        format!(
            "@user\nMake these changes:\n\n- Paint the pump green\n- At start, always open the newest valve\n{third}\n- Grease the seals\n- Remove the old boiler\n@model\nI begin.\n"
        )
    };
    let told = page(&prompt("- Show the pressure, but don't copy the old gauge"));
    assert!(!under(&told, "Rules").contains("always open"), "{told}");
    assert!(under(&told, "Asked for in this task").contains("always open the newest valve"), "{told}");
    let told = page(&prompt("- no new chimney"));
    assert!(under(&told, "Rules").contains("no new chimney"), "{told}");
    let told = page(&prompt("- Never touch the chimney"));
    assert!(under(&told, "Rules").contains("Never touch the chimney"), "{told}");
    let told =
        page("@user\n- Always run the tests\n- Never push\n- Write British English\n@model\nI begin.\n");
    assert!(under(&told, "Rules").contains("Always run the tests"), "{told}");
}

#[test]
fn what_a_reviewer_was_given_is_not_our_change() {
    let text = |kind: &str| {
        format!(
            concat!(
                "@user\nReview the pump.\n@call Bash a\n{{\"command\":\"git status --short\"}}\n@out a\nM  src/pump.rs\n",
                "@call Task b\n{{\"subagent_type\":\"{kind}\",\"prompt\":\"look\"}}\n@out b\nNo defects.\n",
                "@call Bash c\n{{\"command\":\"git status --short\"}}\n@out c\nM  src/pump.rs\nM  src/valve.rs\n",
            ),
            kind = kind
        )
    };
    assert!(!page(&text("code-reviewer")).contains("edited: src/valve.rs"));
    assert!(page(&text("builder")).contains("edited: src/valve.rs"));
}

#[test]
fn a_command_that_was_called_wrongly_is_over_when_it_is_called_rightly() {
    let missing = "open /tmp/note.md: no such file or directory";
    let conflict = "⚠ Rebasing two onto one — conflict\nConflicted files: src/pump.rs";
    for (failed, printed, then, over) in [
        ("gauge post --file /tmp/note.md", missing, "gauge post --file /repo/note.md", true),
        ("gauge post --file /tmp/note.md", missing, "gauge post --file /repo/other.md", false),
        (
            "npm run paint | tail -3",
            "npm error enoent This is about a file.",
            "cd paint && npm run paint",
            true,
        ),
        ("gauge stack rebase", conflict, "git add src/pump.rs && gauge stack rebase --continue", true),
        ("gauge stack rebase", conflict, "git add src/pump.rs", false),
        ("gauge print --deep", "Error: unknown flag: --deep", "gauge print a || echo none", true),
        ("gauge print --deep", "Error: unknown flag: --deep", "gauge count a || echo none", false),
    ] {
        let mut text = runs(&[(failed, printed), (then, "pumps: 3")]);
        text = text.replacen("@out c0", "@out c0 failed", 1);
        let page = page(&text);
        let errors = under(&page, "Errors");
        assert!(!errors.is_empty(), "{page}");
        assert_eq!(errors.contains("resolved at #4"), over, "{failed}: {then}\n{page}");
    }
}

#[test]
fn commits_are_told_with_the_tree_that_they_are_in() {
    let base = ("git commit -m one", "[main 1111111] Mend the pump");
    let tree = ("cd /other && git commit -m two", "[side 2222222] Mend the valve");
    let log = ("git commit -m one | tail -1 && git log --oneline -2", "1111111 Mend the pump\n3333333 Begin");
    for (commands, expected) in [
        (
            &[base, tree][..],
            "git: commits, newest first: 2222222 Mend the valve (in the tree /other); 1111111 Mend the pump\n",
        ),
        (&[tree], "git: commits, newest first (in the tree /other): 2222222 Mend the valve\n"),
        (&[base, log], "git: commits, newest first (git log: #4): 1111111 Mend the pump\n"),
    ] {
        let first = page(&runs(commands));
        assert!(first.contains(expected), "{first}");
        // The next compaction reads it back.
        let again = page(&format!("@summary\n{first}\n@user\nGo on.\n@model\nIt is mended.\n"));
        assert!(again.contains(&expected[expected.len() - 20..]), "{again}");
    }
}

#[test]
fn an_older_summary_behind_a_newer_one_tells_only_its_rules() {
    let text = "@summary\n## Constraints\n- Never run the old pump.\n## Progress\n### Done\n- Pump mended.\n@user\nGo on.\n@summary\n## Constraints\n- Never run the old pump!\n- Always close the valve.\n## Key Decisions\n- Pump before valve.\n## Progress\n### Done\n- Plan made.\n## Next Steps\n- Mend the pump.\n@model\nThe valve is next.\n";
    let told = |times: [i64; 4]| {
        let mut history = session(text);
        let mut messages = history.messages().to_vec();
        messages.iter_mut().zip(times).for_each(|(message, at)| message.at = Some(at));
        history = History::new(messages, history.meta.clone());
        summary(&history, &facts::read(&history), &spec(), 100_000, &[])
    };
    let page = told([9, 1, 2, 10]);
    for (words, times) in [("old pump", 1), ("close the valve", 1), ("Pump mended", 1), ("Plan made", 0)] {
        assert_eq!(page.matches(words).count(), times, "{words}: {page}");
    }
    assert!(told([1, 2, 3, 4]).contains("Plan made"));
}

#[test]
fn a_reply_that_leaves_something_open_is_no_answer() {
    for (reply, mark) in [
        ("The pump is mended.", "(answered in the messages below)"),
        (
            "The pump is mended. The valve is not done yet.",
            "(the messages below end with a reply, which tells what is left)",
        ),
        ("The pump is mended. Shall I mend the valve?", ""),
    ] {
        let history = session(&format!("{}@model\n{reply}\n", runs(&[("gauge mend", "mended")])));
        let ledger = facts::read(&history);
        let spec = spec();
        let page = offline::write(&history, &ledger, &asked(&spec, 0..3, 10_000), &|it| it.len() as u64);
        let line = page.lines().find(|it| it.contains("Mend the pump.\"")).unwrap();
        assert!(line.ends_with(&format!("[#0]{}{mark}", if mark.is_empty() { "" } else { " " })), "{page}");
        let again = session(&format!("@summary\n{page}\n@user\nGo on.\n"));
        let again = summary(&again, &facts::read(&again), &spec, 10_000, &[]);
        assert!(!again.contains("which tells what is left"), "{again}");
    }
}

#[test]
fn a_check_that_was_run_to_see_it_fail_is_told_so() {
    for (purpose, printed, told) in [
        ("Run the new test to verify it fails", "--- FAIL: TestPump (0.00s)", "called expected"),
        ("Run the new test", "--- FAIL: TestPump (0.00s)", "unresolved"),
        ("Run the new test to verify it fails", "bash: ./pump: No such file or directory", "unresolved"),
    ] {
        let call = serde_json::json!({ "command": "go test ./pump", "description": purpose });
        let page = page(&format!("@user\nMend the pump.\n@call Bash c\n{call}\n@out c failed\n{printed}\n"));
        assert!(under(&page, "Errors").contains(told), "{purpose}: {printed}\n{page}");
    }
}
