//! What the user and the model said: goals, requests, questions, plans and modes.

use super::{
    History, Kind, Message, OfflineRequest, Opaque, Part, Role, SummaryStyle, Text, facts, offline, session,
    spec, summary,
};

fn page_of(history: &History) -> String {
    summary(history, &facts::read(history), &spec(), 100_000, &[])
}

pub(super) fn page(text: &str) -> String {
    page_of(&session(text))
}

#[test]
fn a_goal_is_answered_by_the_last_message_before_the_next_request() {
    let report = "The pump is in order, and so is the valve behind it. ".repeat(5);
    let page = page(&format!(
        "@user\nCheck the pump of the plant.\n@model\n{report}\n@user\nCheck the fan of the plant.\n@model\n{report}\n@user\nWrite both down."
    ));
    assert!(page.contains("\"Check the pump of the plant.\" [#0] (reply at [#1])"), "{page}");
}

#[test]
fn what_only_an_earlier_summary_tells_stands_behind_what_is_known() {
    let text = concat!(
        "@summary\n## Findings\n- The fan is loud since it turns too fast.\n## Done\n- The manual is complete\n",
        "@user\nLook at the pump.\n@model\nThe pump is loud because its bearing is worn down on one side.\n",
        "@call Bash a\n{\"command\":\"make measure\"}\n@out a\nok\n@model\nMeasured.",
    );
    let first = page(text);
    let at = |page: &str, what: &str| page.find(what).unwrap_or_else(|| panic!("{what}\n{page}"));
    assert!(at(&first, "The pump is loud") < at(&first, "The fan is loud"), "{first}");
    assert!(first.contains("From an earlier summary:\n- The fan is loud"), "{first}");
    assert!(first.contains("From an earlier summary:\n- done: The manual is complete"), "{first}");
    let second = page(&format!("@summary\n{first}\n@user\nGo on with the pump."));
    assert_eq!(second.matches("From an earlier summary:").count(), 2, "{second}");
}

#[test]
fn a_short_reply_to_a_question_is_no_goal() {
    let report = "Насос проверен и работает, а клапан ещё не подключён к управлению. ".repeat(4);
    let page = page(&format!(
        "@user\nПроверь насос и клапан.\n@model\n{report}\n@user\nЗапиши всё в отчёт.\n@model\n{report}\n\nХочешь, чтобы я подключил клапан?\n@user\nхочу"
    ));
    let goal = page.split("## ").find(|it| it.starts_with("Goal")).unwrap_or_default();
    assert!(goal.contains("Запиши всё в отчёт") && !goal.contains("хочу"), "{page}");
    assert!(page.contains("asked: Хочешь, чтобы я подключил клапан? → \"хочу\""), "{page}");
}

#[test]
fn what_begins_another_subject_answers_no_question() {
    for (reply, answers) in [
        ("yes please", true),
        ("don't touch the valve", true),
        ("got this error when running the valve project", false),
        ("never use the red boiler", false),
        ("let's go through them one-at-a-time", false),
        ("go ahead and use brass", true),
        ("OK, now we are supposed to have a boiler as well. Can we get started on that?", false),
        ("ok, now here are the bugs after that:\n1. the dial shows an error", false),
        ("The dial cannot be reached.", false),
        ("there are gauges, dials and drains", false),
        ("Does our plant support the changes we've made.", false),
        ("Why do we need a second one? I use the first.", false),
        ("You're not following your instructions!", false),
    ] {
        let page = page(&format!(
            "@user\nBuild the pump project.\n@model\nThe pump is built. Shall we proceed to the valve?\n@user\n{reply}"
        ));
        assert_eq!(page.contains("asked: "), answers, "{reply}\n{page}");
    }
}

#[test]
fn an_offer_is_told_with_its_heading_or_not_at_all() {
    let report =
        "- Added the pump to the plan of the plant, with its valve and both of its drains\n".repeat(12);
    let offers = "\nNext steps (optional)\n- Add a fan for the boiler\n- Draw the drains of the plant\n";
    let page = page(&format!(
        "@user\nPlan the pump.\n@model\nThe pump is planned.\n\n{report}{offers}@user\nNow plan the boiler.\n@model\nDone."
    ));
    assert!(page.contains("The pump is planned.") && !page.contains("Draw the drains"), "{page}");
}

#[test]
fn a_step_of_an_earlier_summary_that_was_finished_loses_its_old_state() {
    let step = |state: &str| {
        page(&format!(
            "@summary\n## Pending Tasks\n- Task #7{state}\n@user\nGo on.\n@call TaskUpdate t\n{{\"taskId\":\"7\",\"status\":\"completed\"}}\n@out t\nUpdated task #7 status\n@model\nFinished."
        ))
    };
    let waiting = step(": PENDING - Connect the valve");
    assert!(waiting.contains("- done: Task #7: Connect the valve [#"), "{waiting}");
    let begun = step(" (valve): IN PROGRESS - the pipe has 3 leaks");
    assert!(begun.contains("- done: Task #7 (valve) [#"), "{begun}");
}

#[test]
fn the_state_in_an_earlier_summary_is_no_last_step_once_work_went_on() {
    let page = page(concat!(
        "@summary\n## Current Work\n- The pump should start slowly, it does not yet.\n@user\nGo on.\n",
        "@call Edit e\n{\"file_path\":\"/repo/src/pump.rs\",\"old_string\":\"a\",\"new_string\":\"b\"}\n@out e\nok\n",
        "@model\nThe pump starts slowly now, with a ramp of two seconds before it is at full speed.\n",
    ));
    let step = page.split("## ").find(|it| it.starts_with("Last step")).unwrap_or_default();
    assert!(step.contains("ramp of two seconds") && !step.contains("should start"), "{page}");
}

#[test]
fn a_teammate_works_for_the_lead_of_its_team() {
    let lead =
        |it: &str| format!("<teammate-message teammate_id=\"team-lead\">\n{it}\n</teammate-message>\n");
    let task = |number: u32, subject: &str| {
        lead(&format!(
            r#"{{"type":"task_assignment","taskId":"{number}","subject":"{subject}","description":"all of it","assignedBy":"team-lead"}}"#
        ))
    };
    let tasks = page(&format!("@user\n{}{}", task(1, "P-1: Mend the pump"), task(2, "P-2: Mend the fan")));
    assert!(tasks.contains("- \"P-1: Mend the pump\" [#0]\n- \"P-2: Mend the fan\" [#0]"), "{tasks}");
    let brief = page(&format!("@user\n{}", lead("Mend the pump. You work ONLY in plant/.")));
    assert!(brief.contains("- \"Mend the pump. You work ONLY in plant/.\" [#0]"), "{brief}");
    let peer =
        page("@user\n<teammate-message teammate_id=\"fan-dev\">\nThe fan is mended.\n</teammate-message>");
    assert!(!peer.contains("The fan is mended"), "{peer}");
}

#[test]
fn a_sealed_compaction_is_said_once() {
    let sealed = Opaque { api: "codex".into(), kind: "compaction".into(), raw: Text::new("{}") };
    let mut messages = vec![Message::text(Role::User, Kind::Said, "Mend the pump of the plant.")];
    messages.push(Message::new(Role::Assistant, Kind::Summary, vec![Part::Opaque(sealed)]));
    messages.push(Message::text(Role::User, Kind::Said, "Go on with the valve of the plant."));
    let first = page_of(&History::new(messages, Default::default()));
    assert_eq!(first.matches("an earlier compaction cannot be read").count(), 1, "{first}");
    assert!(first.contains("is missing here [#1]\n"), "{first}");
    let second = page(&format!("@summary\n{first}\n@user\nAnd now the fan."));
    assert_eq!(second.matches("an earlier compaction cannot be read").count(), 1, "{second}");
}

#[test]
fn what_a_sealed_compaction_replaced_is_told() {
    let before = session(concat!(
        "@user\nMend the pump of the plant.\n@call Edit e\n",
        "{\"file_path\":\"/repo/src/pump.rs\",\"old_string\":\"a\",\"new_string\":\"b\"}\n@out e\nok\n",
        "@call Bash b\n{\"command\":\"git commit -am pump\"}\n@out b\n[main 1a2b3c4] pump\n",
        "@call Bash l\n{\"command\":\"git log --oneline -1\"}\n@out l\n1a2b3c4 pump\n",
        "@model\nThe pump is mended.\n@user\nNow mend the valve of the plant.\n",
        "@call Edit f\n{\"file_path\":\"/repo/src/valve.rs\",\"old_string\":\"a\",\"new_string\":\"b\"}\n@out f\nok",
    ));
    let sealed = Opaque { api: "codex".into(), kind: "compaction".into(), raw: Text::new("{}") };
    let user = |text: &str| Message::text(Role::User, Kind::Said, text);
    let messages = vec![
        user("Mend the pump of the plant."),
        user("Now mend the valve of the plant."),
        Message {
            replaced: Some(before.messages().into()),
            ..Message::new(Role::Assistant, Kind::Summary, vec![Part::Opaque(sealed)])
        },
        Message::text(Role::Assistant, Kind::Said, "Next I look at the seal of the valve."),
    ];
    let page = page_of(&History::new(messages.clone(), before.meta.clone()));
    assert!(page.contains("the messages it replaced were read from the session file"), "{page}");
    assert!(page.contains("- \"Now mend the valve of the plant.\" [#1]\n"), "{page}");
    assert!(page.contains("- edited: src/pump.rs, src/valve.rs [#2]"), "{page}");
    assert!(page.contains("(git log: #2): 1a2b3c4 pump"), "{page}");
    // What a prompt asked for that was not kept was answered.
    let later = History::new(messages[1..].to_vec(), before.meta);
    let page = page_of(&later);
    assert!(page.contains("- \"Now mend the valve of the plant.\" [#0]\n"), "{page}");
    let goal = page.split("## ").find(|it| it.starts_with("Goal\n")).unwrap_or_default();
    assert!(!goal.contains("Mend the pump"), "{page}");
}

#[test]
fn a_pasted_plan_that_was_answered_is_shortened_to_its_bounds() {
    let body = "Build the pump of the plant in small steps, each with its test. ".repeat(20);
    let plan = format!(
        "Implement the following plan:\n\n# Pump\n\n## Steps\n{body}\n\n## Non-Goals\n- No second valve.\n"
    );
    let report = "The pump is built as planned, and its tests are green. ".repeat(5);
    let open = page(&format!("@user\n{plan}\n@model\n{report}"));
    assert!(open.contains("Build the pump of the plant in small steps"), "{open}");
    let then = |request: &str| page(&format!("@user\n{plan}\n@model\n{report}\n@user\n{request}"));
    let followed_up = then("Commit it.");
    assert!(!followed_up.contains("shortened"), "{followed_up}");
    let done = then("Write the manual of the pump, with a drawing of each of its parts and valves.");
    let begins =
        "\"Implement the following plan:\" … \"# Pump\" … \"Build the pump of the plant in small steps, ";
    let ends = "; bounds: \"- No second valve.\" (shortened; full text through recall) [#0] (reply at [#1])";
    assert!(done.contains(begins) && done.contains(ends), "{done}");
}

#[test]
fn what_was_announced_and_then_run_is_no_state() {
    let page = page(concat!(
        "@user\nCheck the pump.\n@model\nAll tests of the pump pass. Next I'm running the slow suite.\n",
        "@call Bash a\n{\"command\":\"make slow\"}\n@out a\nok",
    ));
    assert!(page.contains("All tests of the pump pass. [#1]"), "{page}");
}

#[test]
fn a_slash_command_is_told_by_its_name() {
    let answer = "Its bearing is worn on one side, so that the shaft knocks against the case. ".repeat(3);
    let page = page(&format!(
        concat!(
            "@user\n<command-message>review</command-message>\n<command-name>/review</command-name>\n",
            "<command-args>the pump, and never restart it</command-args>\n@model\nI look at it.\n@user\nWhy is it loud?\n",
            "@model\n{}",
        ),
        answer
    ));
    assert!(page.contains("- /review \"the pump, and never restart it\" [#0]"), "{page}");
    assert!(page.contains("- \"Why is it loud?\" [#2] (reply at [#3])"), "{page}");
    let again = self::page(&format!("@summary\n{page}\n@user\nGo on."));
    assert!(again.contains("/review \"the pump, and never restart it\" [#0]"), "{again}");
    assert!(again.contains("\"Why is it loud?\" [#0]") && !again.contains("reply at )"), "{again}");
}

#[test]
fn the_printed_list_of_tasks_is_their_state() {
    let page = page(concat!(
        "@summary\n## Pending Tasks\n- P-3 (#3): Mend the roof\n- Tasks #4 and #5: Paint the door and the wall\n",
        "@user\nMend the plant.\n@call TaskCreate a\n{\"subject\":\"Mend the pump\"}\n@out a\nTask #6 created successfully: Mend the pump\n",
        "@call TaskCreate b\n{\"subject\":\"Mend the fan\"}\n@out b\nTask #7 created successfully: Mend the fan\n",
        "@call TaskList c\n{}\n@out c\n#3 [completed] Mend the roof\n#4 [completed] Paint the door\n#5 [in_progress] Paint the wall (painter)\n",
        "#6 [completed] Mend the pump (pump-dev)\n#7 [pending] Mend the fan [blocked by #6]\n@model\nThe fan is next.",
    ));
    for told in [
        "- done: Mend the pump [#",
        "- open: Mend the fan (task #7) [#",
        "- done: P-3 (#3): Mend the roof [#",
    ] {
        assert!(page.contains(told), "{told}\n{page}");
    }
    assert!(!page.contains("done: Tasks #4"), "{page}");
}

#[test]
fn what_an_earlier_summary_says_of_a_file_is_told_with_its_name() {
    let page = page(concat!(
        "@summary\n1. Primary Request and Intent:\n   - Mend the plant\n\n2. Key Technical Concepts:\n   - Pumps with two valves, in the usual layout of plants\n\n3. Files and Code Sections:\n   - **`src/plant/pump.rs`** (MODIFIED)\n",
        "     - The constant for the largest pressure is 12 now\n   - Files READ for context (not yet modified):\n   - `src/fan.rs`\n\n4. Problem Solving:\n   The seal was worn. This means:\n@user\nGo on.",
    ));
    assert!(page.contains("- …/plant/pump.rs: The constant for the largest pressure is 12 now"), "{page}");
    assert!(page.contains("- The seal was worn. [#0]") && !page.contains("READ for context"), "{page}");
    let at = |what: &str| page.find(what).unwrap_or_else(|| panic!("{what}\n{page}"));
    assert!(at("Pumps with two valves") > at("The seal was worn"), "{page}");
}

/// Calls that enter and leave plan mode, and what the page says of it.
fn planned(calls: &str, planning: Option<bool>) -> Option<String> {
    let mut history = session(&format!("@user\nAdd a valve.\n{calls}"));
    history.meta.planning = planning;
    page_of(&history).lines().find(|it| it.contains("plan mode")).map(str::to_owned)
}

#[test]
fn plan_mode_is_told_until_the_plan_is_approved() {
    const ENTER: &str = "@call EnterPlanMode e\n{}\n@out e\nEntered plan mode.\n";
    const WRITE: &str =
        "@call Write w\n{\"file_path\":\"/me/.claude/plans/valve.md\",\"content\":\"# Plan\"}\n@out w\nok\n";
    let exit = |said: &str| {
        format!(
            "{ENTER}{WRITE}@call ExitPlanMode x\n{{\"plan\":\"# Plan\"}}\n@out x{said}\n@model\nI go on.\n"
        )
    };
    let on = "- mode: plan mode (make no changes until it ends)";
    let file = format!("{on}; plan file: /me/.claude/plans/valve.md");
    assert_eq!(planned(ENTER, None).as_deref(), Some(on));
    // The prompt was sent before the model entered it.
    assert_eq!(planned(ENTER, Some(false)).as_deref(), Some(on));
    assert_eq!(planned(WRITE, Some(true)).as_deref(), Some(&*file));
    assert_eq!(planned(&exit(" refused"), None).as_deref(), Some(&*file));
    assert_eq!(planned(&exit("\nUser has approved your plan."), None), None);
    let left = format!("{ENTER}@user\nJust do it.\n");
    assert_eq!(planned(&left, None).as_deref(), Some(on));
    assert_eq!(planned(&left, Some(false)), None);
    let again =
        format!("@summary\n## Goal\n- \"Add a valve.\"\n\n## Last step\n{on}\n@model\nI look around.\n");
    assert_eq!(planned(&again, None).as_deref(), Some(on));
    assert_eq!(planned(&format!("{again}{ENTER}"), None).as_deref(), Some(on));
    assert_eq!(planned(&format!("{again}@context\n<system-reminder>\n## Exited Plan Mode\n"), None), None);
}

#[test]
fn a_denied_call_is_told_once_until_it_runs() {
    const CALL: &str = "{\"command\":\"rm -rf build/old\"}\n@out ";
    let denied =
        |at: &str| format!("@call Bash {at}\n{CALL}{at} denied\nPermission to use Bash has been denied.\n");
    let twice = format!(
        "@user\nTidy up.\n{}{}@model\nThe removal was denied because of the permissions of the old directory.\n@user\nWhat else is there to tidy up?\n@model\nNothing is left.\n",
        denied("a"),
        denied("b")
    );
    let page_of_two = page(&twice);
    assert_eq!(page_of_two.matches("denied").count(), 1, "{page_of_two}");
    assert!(
        page_of_two.contains("- denied by the permission check: Bash rm -rf build/old [#4]"),
        "{page_of_two}"
    );
    assert!(!page_of_two.contains("## Errors"), "{page_of_two}");
    let ran = page(&format!("{twice}@call Bash c\n{CALL}c\nok\n"));
    assert!(!ran.contains("denied by"), "{ran}");
}

#[test]
fn a_question_that_the_user_refused_to_answer_decides_nothing() {
    let text = |said: &str| {
        format!(
            "@user\nAdd a pump.\n@call AskUserQuestion q\n{{\"questions\":[{{\"question\":\"Which size?\",\"options\":[{{\"label\":\"Small\"}},{{\"label\":\"Large\"}}]}}]}}\n@out q refused\n{said}\n@user\nWhere do I pay for it?\n"
        )
    };
    let silent = page(&text(""));
    assert!(
        silent.contains("- unanswered question to the user: Which size? (Small / Large) [#2]"),
        "{silent}"
    );
    assert!(!silent.contains("refused: AskUserQuestion"), "{silent}");
    let said = page(&text("the one we have"));
    assert!(said.contains("asked: Which size? (Small / Large) → \"the one we have\""), "{said}");
    let later = page(&format!("{}@model\nAt the desk.\n@user\nAnd how do I get there?\n", text("")));
    assert!(!later.contains("Which size?"), "{later}");
    let command = "@user\n<command-message>work</command-message>\n<command-name>/work</command-name>\n<command-args>the lid</command-args>\n";
    let other = page(&text("").replace("@user\nWhere do I pay for it?\n", command));
    assert!(!other.contains("Which size?"), "{other}");
}

#[test]
fn a_request_that_the_user_corrects_by_a_refusal_is_still_the_goal() {
    for (next, told) in [
        ("just take old/ out of the commit, and delete the folder then", true),
        ("Stop, leave the commit as it is and write down what you found", false),
        ("don't touch the commit, write down what you found", false),
    ] {
        let report =
            "It drains the cellar at eight litres a minute, and it is out of order since May. ".repeat(4);
        let page = page(&format!(
            "@user\nFind out what the pump of the plant does.\n@model\n{report}\n@user\nMend the pump valve by valve, and commit each of them.\n@call Bash c\n{{\"command\":\"git rm -r --cached old && git commit --amend\"}}\n@out c refused\n{next}\n@user\n{next}\n"
        ));
        let goal = page.split("\n## ").find(|it| it.starts_with("Goal")).unwrap_or_default();
        assert!(goal.contains(&format!("- \"{next}\"")), "{page}");
        assert_eq!(goal.contains("valve by valve"), told, "{next}\n{page}");
    }
}

#[test]
fn the_branch_is_the_one_that_git_printed_last() {
    let call = |at: usize, command: &str, printed: &str| {
        let input = serde_json::json!({ "command": command });
        format!("@call Bash c{at}\n{input}\n@out c{at}\n{printed}\n")
    };
    let start =
        format!("@user\nMend the pump.\n{}", call(0, "git status -sb", "## fixes...origin/fixes\n M a.rs"));
    for (command, printed, branch) in [
        ("git branch --show-current", "main", "main"),
        ("cd src && git rev-parse --abbrev-ref HEAD", "main", "main"),
        ("git rev-parse --abbrev-ref HEAD", "HEAD", "fixes"),
        ("git branch --show-current; ls", "main\nsrc", "fixes"),
    ] {
        let page = page(&format!("{start}{}", call(1, command, printed)));
        assert!(page.contains(&format!("- git: checked out: {branch}")), "{command}\n{page}");
    }
}

#[test]
fn the_last_question_stays_open_when_the_user_asks_for_something_else() {
    let text = |next: &str| {
        format!(
            "@user\nMend the pump.\n@model\nThe pump runs again. The valve is worn. Would you like me to replace the valve too?\n@user\n{next}\n"
        )
    };
    let other = page(&text("Write down in the manual how the pump is opened and closed, and who may do it."));
    let open = "- unanswered question to the user: Would you like me to replace the valve too? [#1]";
    assert!(other.contains(open), "{other}");
    for answer in ["yes", "no, leave it"] {
        let page = page(&text(answer));
        assert!(!page.contains("unanswered question"), "{answer}\n{page}");
    }
}

/// The page for all messages before the last `tail`.
fn page_before(text: &str, tail: usize) -> String {
    let history = session(text);
    let ask = OfflineRequest {
        region: 0..history.messages().len() - tail,
        cleared: &[],
        kept: &[],
        spec: &spec(),
        max_tokens: 10_000,
        budget_for_shares: None,
        style: SummaryStyle::Detailed,
        focus: None,
        pins: &[],
        header: None,
    };
    offline::write(&history, &facts::read(&history), &ask, &super::count)
}

#[test]
fn a_last_step_that_ended_its_turn_says_that_another_request_follows() {
    let page = page_before(
        "@user\nMend the pump.\n@call Bash a\n{\"command\":\"make\"}\n@out a\nok\n@model\nI mended the pump and built it; the valve behind it is as it was.\n@user\nCheck the fan.\n",
        1,
    );
    let step = page.split_once("## Last step\n").map_or("", |it| it.1);
    assert!(step.contains("[#3] (the next request is in the messages below)"), "{page}");
}

#[test]
fn an_announcement_that_is_carried_out_below_is_no_last_step() {
    let step = |said: &str, end: &str| {
        let page = page_before(
            &format!(
                "@user\nMend the pump.\n@call Bash a\n{{\"command\":\"make\"}}\n@out a\nok\n@model\n{said}\n@call Bash b\n{{\"command\":\"git commit -m x\"}}\n@out b\n[main 1234567] x\n@model\n{end}\n"
            ),
            3,
        );
        page.split_once("## Last step\n- ").map(|it| it.1.lines().next().unwrap_or_default().to_owned())
    };
    for gone in [
        "Now let me commit.",
        "Now replace the whole `open` function:",
        "Task 8: Verification",
        "**Task 8: Verification**",
        "It is clean. Let me commit it.",
    ] {
        assert_eq!(step(gone, "It is committed."), None, "{gone}");
    }
    let result = "The valve of the pump closes now, and all 12 tests pass.";
    let said = format!("{result} Now let me commit.");
    let told = format!("{result} [#3] (continues in the messages below)");
    assert_eq!(step(&said, "It is committed. Now let me push it.").as_deref(), Some(&*told));
    // The end of the work says more.
    assert_eq!(step(&said, "It is committed."), None);
}

#[test]
fn the_request_that_is_pursued_is_named_first() {
    let long = "Then write the manual. ".repeat(30);
    let page = page_before(
        &format!(
            "@user\nMend the pump.\n@model\nThe pump is mended: the valve was worn, and all 12 tests pass now, also those of the old boiler, which nobody had run since the move. The seal was replaced as well, since it leaked whenever the pressure rose above the limit.\n@user\nReplace the boiler before winter. {long}\n@model\nI look at it.\n"
        ),
        2,
    );
    let goal: Vec<&str> = page.lines().skip_while(|it| *it != "## Goal").skip(1).take(2).collect();
    assert!(goal[0].starts_with("- \"Replace the boiler before winter.") && goal[0].len() < 300, "{page}");
    assert!(goal[0].ends_with("[#2] (current request; full text below)"), "{page}");
    assert_eq!(goal[1], "- \"Mend the pump.\" [#0] (reply at [#1])", "{page}");
    // Read back, the request itself stands there.
    let again = page_of(&session(&format!("@summary\n{page}\n@user\nReplace the boiler before winter.\n")));
    assert_eq!(again.matches("Replace the boiler").count(), 1, "{again}");
}

#[test]
fn what_the_kept_end_answers_is_not_told_as_open() {
    let goal = |end: &str| {
        let page = page_before(
            &format!(
                "@user\nMend the pump.\n@model\nFirst I look at it.\n@call Bash a\n{{\"command\":\"make\"}}\n@out a\nok\n@model\n{end}\n"
            ),
            2,
        );
        page.lines().find(|it| it.contains("Mend the pump")).unwrap_or_default().to_owned()
    };
    let answered = "- \"Mend the pump.\" [#0] (reply in the messages below)";
    assert_eq!(goal("The valve closes again."), answered);
    for open in ["The valve closes again. Shall I test it?", "Now let me look at the valve."] {
        assert_eq!(goal(open), "- \"Mend the pump.\" [#0]", "{open}");
    }
    let long = "The valve closes again: its spring was too weak for the pressure of the new boiler, and 12 tests pass now that it is replaced. The lid was not touched, since nobody said that it leaks. Shall I test it, too?";
    assert!(goal(long).ends_with("(the last message below is the reply; it says what remains)"));
    // Read back, it is what the user said once.
    let again = page_of(&session(&format!("@summary\n## Goal\n{answered}\n@user\nPaint the boiler.\n")));
    assert!(again.contains("- \"Mend the pump.\" [#0]") && !again.contains("below)"), "{again}");
}

#[test]
fn what_was_asked_for_in_an_earlier_task_is_no_part_of_this_one() {
    let page = page(concat!(
        "@user\nImplement this plan:\n\n# Plan\n\n## Checks\n\nThe valve must be closed first. Never open the boiler.\n\n## Why\n\nThe pump was bought in spring and has run for half a year, by day and by night, so that its seals are worn and want to be replaced soon.\n",
        "@call Bash a\n{\"command\":\"make\"}\n@out a\nok\n",
        "@model\nThe plan is carried out: the valve is closed before the pump is opened, the seal was replaced, and all 12 tests pass, also those of the old boiler, which nobody had run since the move to the new house.\n",
        "@user\nPaint the pump green.\n@call Bash b\n{\"command\":\"make paint\"}\n@out b\nok\n",
    ));
    let under = |title: &str| {
        let rest = page.split_once(title).map_or("", |it| it.1);
        rest.split("\n## ").next().unwrap_or_default().to_owned()
    };
    assert!(!under("## Asked for in this task").contains("The valve must be closed first."), "{page}");
    let kept = "\"Never open the boiler.\" [#0] (of an earlier request)";
    assert!(under("## Asked for in this task").contains(kept), "{page}");
    assert!(under("## Goal").contains("The valve must be closed first."), "{page}");
    assert!(!page.contains("## User said"), "{page}");
}

#[test]
fn of_a_plan_only_its_bounds_bind() {
    let ledger = facts::read(&session(concat!(
        "@user\nImplement the following plan:\n\n# Plan: a new pump\n\n## Context\n\nThe old pump should never run dry. It must be stopped by hand.\n\n",
        "## Files to modify\n\n### 1. `src/pump.rs`\n\nUse `Valve` only in the new way.\n\n1. The pump must call `close` first.\n\n- A retry must end in one run.\n\n",
        "All changes are in `src/pump.rs`; the boiler remains unchanged.\n\n",
        "## What NOT to change\n\n- `src/boiler.rs` stays as-is\n- the names of the pipes\n\n## Verification\n\nAlways run the whole suite before a commit.\n\n",
        "@model\nI begin.\n",
    )));
    let asked: Vec<_> = ledger.about(facts::Topic::Directives).map(|it| facts::flat(&it.text)).collect();
    let bounds = [
        "What NOT to change - `src/boiler.rs` stays as-is - the names of the pipes",
        "All changes are in `src/pump.rs`; the boiler remains unchanged.",
        "A retry must end in one run.",
        "Always run the whole suite before a commit.",
    ];
    assert_eq!(asked, bounds);
}

#[test]
fn an_order_that_refers_back_is_told_with_what_it_refers_to() {
    let page = page(
        "@user\nThe file pumps.csv comes from the maker. It must never be changed by hand.\n@model\nGood.\n",
    );
    let rule = "- \"The file pumps.csv comes from the maker. It must never be changed by hand.\"";
    let rules = page.split_once("## Rules\n").map(|it| it.1).unwrap_or_default();
    assert!(rules.starts_with(rule), "{page}");
}

#[test]
fn the_bounds_of_a_plan_do_not_count_as_its_requirements() {
    let musts: String = (0..7).map(|it| format!("- Pipe {it} must be closed before winter.\n")).collect();
    let kept: String = (0..3).map(|it| format!("- The boiler number {it} remains unchanged.\n")).collect();
    let ledger = facts::read(&session(&format!(
        "@user\nImplement this plan:\n\n# Plan\n\n## Changes\n\n{musts}{kept}\n@model\nI begin.\n"
    )));
    let asked: Vec<&str> = ledger.about(facts::Topic::Directives).map(|it| &*it.text).collect();
    assert!(asked.contains(&"Pipe 6 must be closed before winter."), "{asked:?}");
    assert!(asked.contains(&"The boiler number 2 remains unchanged."), "{asked:?}");
}

#[test]
fn what_a_pasted_review_says_of_the_code_is_no_order() {
    let review = |end: &str| {
        page(&format!(
            "@user\nNew findings\n\n1. Valve is not closed (src/valve.rs:34, also pump.rs:12 and seal.rs:7). This works only if the pump reads it later. The guard around open only catches leaks of the call itself. {end}\n@model\nI look at them."
        ))
    };
    let page = review("Never touch the seal.");
    assert!(page.contains("- \"Never touch the seal.\""), "{page}");
    for described in ["- \"This works only", "- \"The guard around"] {
        assert!(!page.contains(described), "{page}");
    }
    let places = super::said::page(
        "@user\nMend src/pump.rs:41 and src/fan.rs:120, and ask plant.example.com:443. No new parts. No force pushes.\n@model\nI do.",
    );
    assert!(places.contains("- \"No new parts.\"") && places.contains("- \"No force pushes.\""), "{places}");
    assert!(review("The valve must only open by hand.").contains("- \"The valve must only open by hand.\""));
}

#[test]
fn an_order_does_not_stand_behind_the_message_that_it_is_from() {
    let report =
        "The seal was of the wrong size; a new one is in. The handle is red and stops the pump at once. ";
    let page = page_before(
        &format!(
            "@user\nLook at the pump first.\n@model\nIt is loud.\n@user\nAlso, I need to be able to save my changes. That needs keyboard shortcut, menu item, and a button on the interface itself. Also, a lamp that is on while it runs.\n@call bash a\n{{\"command\":\"mend pump\"}}\n@out a\nok\n@model\n{}\n@user\nNow the fan.\n@model\nI look at it.\n@user\nNow read notes.txt and tell me of what it is.\n@call bash b\n{{\"command\":\"cat notes.txt\"}}\n@out b\nfine\n@model\nIt is of the weather. {}\n@user\nthanks, and how is it?\n@model\nfine",
            report.repeat(4),
            "Line 5 speaks of the sea. ".repeat(40)
        ),
        1,
    );
    assert_eq!(page.matches("I need to be able to save my changes").count(), 1, "{page}");
}
