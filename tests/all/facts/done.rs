//! What is over: errors that are gone, steps that were taken, requests that were fulfilled.

use super::{History, asked, facts, offline, session, spec, summary};

fn page(text: &str) -> String {
    let history = session(text);
    summary(&history, &facts::read(&history), &spec(), 100_000, &[])
}

/// The page of a session that begins with another page.
fn summary_of_page(page: &str) -> String {
    let history = session(&format!("@summary\n{page}\n@user\nGo on.\n"));
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
fn a_test_runner_that_prints_nothing_did_not_pass() {
    for (command, told) in [
        ("npx vitest run src/pump.test.ts", "ran, printed nothing"),
        ("npx vitest run > test.log", "ok"),
        ("npx prettier --write src", "ok"),
    ] {
        let failed = "FAIL src/pump.test.ts > pump > starts";
        let page = page(&runs(&[("npx vitest run src/pump.test.ts", failed), (command, "")]));
        assert!(page.contains(&format!("`{command}` → {told}")), "{command}\n{page}");
        assert!(told == "ok" || !under(&page, "Errors").contains("resolved"), "{command}\n{page}");
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
fn an_error_is_unresolved_only_while_nothing_was_done_that_may_have_ended_it() {
    let failed = ("gauge calibrate", "gauge: Error: the needle is stuck\nexit code: 1");
    for (after, told) in [
        (&[][..], "unresolved [#2]"),
        (&[("cat src/gauge.rs", "needle")], "unresolved [#2]"),
        (&[("sed -i s/stuck/free/ src/gauge.rs", "")], "not run again in this form [#2]"),
        (&[("gauge calibrate", "calibrated")], "resolved at #4 [#2]"),
    ] {
        let page = page(&runs(&[&[failed], after].concat()));
        assert!(under(&page, "Errors").contains(told), "{after:?}\n{page}");
        let again = summary_of_page(&page);
        assert!(!under(&again, "Errors").contains("unresolved"), "{again}");
    }
}

#[test]
fn a_check_of_which_a_filter_shows_nothing_is_not_said_to_be_ok() {
    for (command, told) in [
        ("make test 2>&1 | grep -E '^(✗|fail)' | head -20", "→ ran [#2]"),
        ("make drawing 2>&1 | tail -3", "→ ok [#2]"),
    ] {
        let page = page(&runs(&[(command, "")]));
        assert!(under(&page, "Commands").contains(told), "{page}");
    }
}

#[test]
fn a_check_of_the_syntax_is_no_run() {
    for (command, told) in [
        ("node --check server/proxy.mjs", "not run again in this form"),
        ("node server/proxy.mjs --port 8081", "a similar run went well at #4"),
    ] {
        let failed = ("node server/proxy.mjs", "Error: listen EPERM: operation not permitted\nexit code: 1");
        let page = page(&runs(&[failed, (command, "up")]));
        assert!(under(&page, "Errors").contains(told), "{command}\n{page}");
    }
}

#[test]
fn an_error_that_several_runs_printed_is_told_once_when_it_is_over() {
    let printed = "src/pump.ts(3,1): error TS1005: ',' expected.";
    let failed = [("npx tsc --noEmit | head -5", printed), ("npx tsc --noEmit | grep TS", printed)];
    let errors =
        |last: &str| under(&page(&runs(&[failed[0], failed[1], ("npx tsc --noEmit", last)])), "Errors");
    assert_eq!(errors("src/fan.ts(1,1): error TS1005: ';' expected.").matches("src/pump.ts").count(), 1);
}

#[test]
fn an_error_is_over_only_by_what_could_have_ended_it() {
    let failing = ["./deploy.sh", "./build.sh"].map(|it| (it, "Error: Command failed\nexit code: 1"));
    let elsewhere = "fatal: cannot change to '/w/one': No such file or directory\nexit code: 128";
    for (commands, told) in [
        (
            &[failing[0], failing[1], ("./build.sh", "built")][..],
            "`./deploy.sh` → failed, exit 1: Error: Command failed → not run again in this form",
        ),
        (
            &[("git -C /w/one status", elsewhere), ("git -C /w/two status", "clean")],
            "No such file or directory → unresolved",
        ),
    ] {
        let page = page(&runs(commands));
        assert!(under(&page, "Errors").contains(told), "{page}");
    }
    let page = page(&format!(
        "{}@model\nThe header goes blank instead of telling why. I have it caught.\n@call Bash c\n{{\"command\":\"git commit -am caught\"}}\n@out c\n[main 1a2b3c4] caught\n",
        runs(&[("node -e 'load()'", "Error: Cannot find module 'gauge'\nexit code: 1")])
    ));
    assert!(under(&page, "Errors").contains("not run again in this form"), "{page}");
}

#[test]
fn a_run_that_went_well_is_told_though_another_test_failed_later() {
    let run = |name: &str| format!("cd plant && .venv/bin/python -m pytest -q tests/test_pump.py::{name}");
    let failed = |name: &str| format!("FAILED tests/test_pump.py::{name}\n1 failed in 0.1s");
    let (drain, fill) = (run("test_drain"), run("test_fill"));
    let other = run("test_drain").replace("::test_drain", "");
    let (first, second) = (failed("test_drain"), failed("test_fill"));
    for (last, printed, at, told) in [
        (fill.as_str(), second.as_str(), "[#2]", "a similar run went well at #4"),
        // It is not known that the tests ran.
        (
            "cd plant && black --check . && uv run pytest",
            "would reformat a.py",
            "[#2]",
            "a similar run went well at #4",
        ),
        // The same error again: it is told once.
        (other.as_str(), first.as_str(), "[#6]", "unresolved"),
    ] {
        let page = page(&runs(&[
            (&drain, &first),
            ("cd plant && uv run pytest tests/test_pump.py", "3 passed in 0.1s"),
            (last, printed),
        ]));
        let errors = under(&page, "Errors");
        let line = errors.lines().find(|it| it.ends_with(at)).unwrap_or_default();
        assert!(line.contains(told), "{last}\n{page}");
    }
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
    let ledger = facts::read(&session(&prompt("- Show the pressure, but don't copy the old gauge")));
    let asked = |it: &str| ledger.about(facts::Topic::Directives).any(|fact| fact.text.contains(it));
    assert!(asked("always open the newest valve"), "{told}");
    // The goal tells it whole.
    assert_eq!(told.matches("always open the newest valve").count(), 1, "{told}");
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
            "git: commits, newest first: 2222222 Mend the valve (in the tree /other); 1111111 Mend the pump",
        ),
        (&[tree], "git: commits, newest first (in the tree /other): 2222222 Mend the valve"),
        (&[base, log], "git: commits, newest first (git log: #4): 1111111 Mend the pump"),
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
        ("The pump is mended.", "(reply in the messages below)"),
        (
            "The pump is mended. The valve is not done yet.",
            "(the last message below is the reply; it says what remains)",
        ),
        ("The pump is mended. Shall I mend the valve?", ""),
        ("Now let me mend the valve.", ""),
    ] {
        let history = session(&format!("{}@model\n{reply}\n", runs(&[("gauge mend", "mended")])));
        let ledger = facts::read(&history);
        let spec = spec();
        let page = offline::write(&history, &ledger, &asked(&spec, 0..3, 10_000), &|it| it.len() as u64);
        let line = page.lines().find(|it| it.contains("Mend the pump.\"")).unwrap();
        assert!(line.ends_with(&format!("[#0]{}{mark}", if mark.is_empty() { "" } else { " " })), "{page}");
        let again = session(&format!("@summary\n{page}\n@user\nGo on.\n"));
        let again = summary(&again, &facts::read(&again), &spec, 10_000, &[]);
        assert!(!again.contains("it says what remains"), "{again}");
    }
}

#[test]
fn a_check_that_was_run_to_see_it_fail_is_told_so() {
    for (purpose, printed, told) in [
        ("Run the new test to verify it fails", "--- FAIL: TestPump (0.00s)", "reported as expected"),
        ("Run the new test", "--- FAIL: TestPump (0.00s)", "unresolved"),
        ("Run the new test to verify it fails", "bash: ./pump: No such file or directory", "unresolved"),
    ] {
        let call = serde_json::json!({ "command": "go test ./pump", "description": purpose });
        let page = page(&format!("@user\nMend the pump.\n@call Bash c\n{call}\n@out c failed\n{printed}\n"));
        assert!(under(&page, "Errors").contains(told), "{purpose}: {printed}\n{page}");
    }
}

#[test]
fn steps_of_an_earlier_summary_are_done_when_the_report_on_them_says_all() {
    let long = "Build a chimney of red bricks, as high as the roof, with a lid against the rain.";
    for (asked, report, over) in [
        ("Go on.", "Implemented and checked all three repairs. The pump drains.", true),
        ("continue", "All repairs are done.", true),
        ("continue", "All repairs but one are done.", false),
        ("Fix the typo in a.md.", "Done!", false),
        ("Go on.", "Done. The pump drains.", true),
        ("Go on.", "The pump drains.", false),
        ("Go on.", "Done. The valve is not oiled yet.", false),
        ("Go on.", "Done. The valve waits for oil.", false),
        (long, "All repairs are done.", false),
    ] {
        let page = page(&format!(
            "@summary\n## Next steps\n- Oil the valve\n- Ask the user for a gauge\n- Push the branch\n- Run:\n```\nmake\n```\n@user\n{asked}\n@call Edit e\n{{\"file_path\":\"/repo/src/pump.rs\",\"old_string\":\"a\",\"new_string\":\"b\"}}\n@out e\nok\n@model\n{report}\n@user\nPaint the boiler green, and all pipes that lead to it from the cellar.\n@model\nI begin with the boiler.\n"
        ));
        assert_eq!(page.contains("done: Oil the valve [#4]"), over, "{asked} {report}\n{page}");
        for left in ["Ask the user for a gauge", "Push the branch"] {
            assert!(!page.contains(&format!("done: {left}")) && page.contains(left), "{page}");
        }
        assert!(!page.contains("Run:"), "{page}");
    }
}

#[test]
fn a_report_right_behind_a_summary_ends_the_turn_that_it_was_made_in() {
    for (report, over) in [("Applied all repairs to the pump.", true), ("The pump drains.", false)] {
        let page = page(&format!(
            "@summary\n## Next steps\n- Oil the valve\n@model\n{report}\n@user\nPaint the boiler green, and all pipes that lead to it.\n@model\nI begin.\n"
        ));
        assert_eq!(page.contains("done: Oil the valve [#1]"), over, "{page}");
    }
}

#[test]
fn what_an_earlier_summary_saw_at_the_time_ends_with_a_commit_and_a_check() {
    let summary = concat!(
        "@summary\n## Notes\n- Current working tree has many changed files.\n",
        "- The latest full suite has one failure: lid. This appeared after the hinge moved.\n",
        "- The pump is blue.\n@user\nGo on.\n",
    );
    let run = |id: &str, command: &str, printed: &str| {
        format!("@call Bash {id}\n{}\n@out {id}\n{printed}\n", serde_json::json!({ "command": command }))
    };
    let test = run("t", "cargo test", "test result: ok. 3 passed; 0 failed");
    let commit = run("c", "git commit -m lid", "[main 1a2b3c4] lid\n 1 file changed");
    for (work, tree, suite) in
        [(String::new(), true, true), (test.clone(), true, false), (format!("{test}{commit}"), false, false)]
    {
        let page = page(&format!("{summary}{work}@model\nThe lid closes.\n"));
        assert_eq!(page.contains("working tree has"), tree, "{page}");
        assert_eq!(page.contains("one failure: lid"), suite, "{page}");
        assert_eq!(page.contains("after the hinge moved"), suite, "{page}");
        assert!(page.contains("The pump is blue."), "{page}");
    }
}

#[test]
fn an_offer_ends_with_the_next_request() {
    let said = "The pump leaks at the seal, because the ring is worn out and dry. If you want, I can replace the ring now.";
    for (next, told) in
        [("", true), ("@user\nPaint the boiler green, and all its pipes.\n@model\nI begin.\n", false)]
    {
        let page = page(&format!("@user\nWhy does the pump leak?\n@model\n{said}\n{next}"));
        assert_eq!(page.contains("replace the ring"), told, "{page}");
        assert!(page.contains("leaks at the seal"), "{page}");
    }
}

#[test]
fn a_file_that_only_a_reply_announced_is_made_by_the_write() {
    let write = "@call write w\n{\"path\":\"tools/drain.sh\",\"content\":\"a\"}\n@out w\nSuccessfully wrote 1 bytes to tools/drain.sh\n";
    for (before, told) in [
        ("@model\nI put the script into tools/drain.sh.\n", "created: tools/drain.sh"),
        ("@call bash b\n{\"command\":\"ls tools/*\"}\n@out b\ntools/drain.sh\n", "written: tools/drain.sh"),
    ] {
        let page =
            page(&format!("@user\nDrain the boiler by a script.\n{before}{write}@model\nIt drains.\n"));
        assert!(page.contains(told), "{page}");
    }
}

#[test]
fn a_change_that_was_taken_back_to_see_a_test_fail_is_not_given_up() {
    for (command, told) in [
        ("git checkout -- src/pump.rs && cargo test pump", false),
        (
            "cp src/pump.rs /tmp/pump.rs; git checkout -- src/pump.rs; go test ./pump; cp /tmp/pump.rs src/pump.rs",
            false,
        ),
        ("git checkout -- src/pump.rs && git status", true),
    ] {
        let page = page(&runs(&[(command, "ok")]));
        assert_eq!(page.contains("changes discarded"), told, "{command}\n{page}");
    }
}

#[test]
fn what_a_check_found_on_the_way_ends_when_it_goes_well() {
    let said = "@model\nConfirmed: the check found three style issues.\n";
    let check =
        |printed: &str| format!("@call Bash c\n{{\"command\":\"npm run check\"}}\n@out c\n{printed}\n");
    for (then, told) in [("Checked 9 files. No fixes applied.", false), ("exit code: 1", true)] {
        let page = page(&format!(
            "@user\nMend the pump.\n{said}{}@model\nThe pump drains well again.\n",
            check(then)
        ));
        assert_eq!(page.contains("three style issues"), told, "{then}\n{page}");
    }
}

#[test]
fn a_run_of_something_else_or_past_the_hooks_is_no_similar_one() {
    let hook = "error: the pump leaks\nexit code: 1";
    let commit = |flag: &str| format!("git commit {flag} -m \"$(cat <<'E'\npump\nE\n)\"");
    let made = "[main 1a2b3c4] pump\n 1 file changed";
    for (commands, told) in [
        (
            &[("git add a.rs && git commit -m \"$(cat <<'E'\npump\nE\n)\"", hook), (&*commit(""), made)][..],
            true,
        ),
        (
            &[
                ("git add a.rs && git commit -m \"$(cat <<'E'\npump\nE\n)\"", hook),
                (&*commit("--no-verify"), made),
            ],
            false,
        ),
        (
            &[
                ("plant wait pump", "Error: timeout"),
                ("plant wait valve", "ok"),
                ("plant wait lid", "Error: timeout"),
                ("plant wait lid", "ok"),
            ],
            false,
        ),
    ] {
        let page = page(&runs(commands));
        let errors = under(&page, "Errors");
        let line = errors.lines().find(|it| it.ends_with("[#2]")).unwrap_or_default();
        assert_eq!(line.contains("a similar run went well"), told, "{commands:?}\n{page}");
    }
}

#[test]
fn steps_that_the_last_turn_did_not_touch_are_unconfirmed_once_it_ends_as_done() {
    let plan = "@call TodoWrite t\n{\"todos\":[{\"content\":\"Port the five valves\",\"status\":\"pending\"}]}\n@out t\nTodos updated\n";
    let work = "@call Bash b\n{\"command\":\"make valves\"}\n@out b\nok\n";
    let told = |said: &str| {
        let page = page(&format!(
            "@user\nBuild the plant.\n{plan}@user\nPaint it red, please, with the old brush.\n{work}@model\n{said}"
        ));
        let line = page.lines().find(|it| it.contains("Port the five valves")).unwrap_or_default();
        line.split(':').next().unwrap_or_default().to_owned()
    };
    assert_eq!(told("Done. The plant is built, and the valves are ported."), "- not confirmed");
    assert_eq!(told("The paint is ordered."), "- open");
}

#[test]
fn steps_of_an_earlier_summary_are_over_once_what_they_ask_for_was_run() {
    for (step, over) in [
        ("Edit `src/pump.rs` to close the valve", true),
        ("Finish editing `src/pump.rs` (the only edit that is left)", true),
        ("Commit the pump (one commit). Do NOT push.", true),
        ("Commit and push the pump", false),
        ("Run gauge-check, all gates must be clear", false),
        ("Run the tests (`python -m pytest pump`)", true),
        ("Verify that the image does not push", false),
        ("Finish the twelve valves in `src/pump.rs`", false),
        ("Edit `src/fan.rs` to close the valve", false),
    ] {
        let commands = [
            ("sed -i s/a/b/ src/pump.rs", "ok"),
            ("cd src && python -m pytest -q pump", "13 passed in 0.1s"),
            ("valve-check --all", "all gates clear"),
            ("git commit -qam pump && git log --oneline -1", "1a2b3c4 pump"),
        ];
        let work: String =
            runs(&commands).split_once("@call").map_or_else(String::new, |it| format!("@call{}", it.1));
        let summary = format!("@summary\n## Pending tasks\n- [ ] {step}\n");
        let page = page(&format!("{summary}{work}@user\nAnd the fan? Paint it red, with the old brush.\n"));
        let line = page.lines().find(|it| it.contains(&step[..12])).unwrap_or_default();
        assert_eq!(!line.contains("not confirmed") && !line.contains("open"), over, "{step}\n{page}");
    }
}

#[test]
fn a_file_that_was_missing_before_its_rename_was_staged_is_renamed() {
    let page = page(&runs(&[
        ("cat skills/a/SKILL.md", "a"),
        (
            "git status",
            "On branch main\nChanges not staged for commit:\n\tdeleted:    skills/a/SKILL.md\n\nUntracked files:\n\tskills/plant-a/\n\nno changes added to commit",
        ),
        (
            "git add . && git commit -m names",
            "[main 1a2b3c4] names\n 1 file changed\n rename skills/{a => plant-a}/SKILL.md (100%)",
        ),
    ]));
    assert!(page.contains("renamed") && !page.contains("- deleted"), "{page}");
}

#[test]
fn symbols_go_with_the_directory_that_they_were_in() {
    for (command, told) in [("rm -rf src/pump", false), ("rm -rf src/fan", true)] {
        let grep = ("rg -n drain src", "src/pump/mod.rs:3:pub fn drain_valve(a: u8) {");
        let text = runs(&[grep, ("make", "ok"), (command, "")]);
        let page = page(&format!("{text}@model\nThe drain is `drain_valve`.\n@user\nGood. And the fan?\n"));
        assert_eq!(page.contains("src/pump/mod.rs [#2] (drain_valve)"), told, "{command}\n{page}");
    }
}

#[test]
fn what_another_tree_lists_first_was_there_before() {
    let task = "@call Task t\n{\"description\":\"paint\",\"prompt\":\"Paint the pump\"}\n@out t\nPainted.\n";
    let listed = |at: usize, command: &str, printed: &str| {
        let call = serde_json::json!({ "command": command });
        format!("@call Bash c{at}\n{call}\n@out c{at}\n{printed}\n")
    };
    let first = listed(0, "git status --short", " M src/pump.rs");
    for (command, told) in [("git status --short", true), ("cd .worktrees/red && git status --short", false)]
    {
        let page = page(&format!(
            "@user\nMend the pump.\n{first}{task}{}",
            listed(1, command, " M src/pump.rs\n?? docs/paint.md")
        ));
        assert_eq!(page.contains("created") && page.contains("paint.md"), told, "{command}\n{page}");
    }
}
