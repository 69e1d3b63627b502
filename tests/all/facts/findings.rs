//! What the model found: which of it is still true at the end, and what of a long report is told.

use super::said::page;

const PROSE: &str = "The pump was looked at from all sides, and most of it is as it was last year. ";

#[test]
fn what_a_tool_delivers_is_the_answer() {
    let page = page(concat!(
        "@user\nReview the pump for leaks.\n@call Read r\n{\"file_path\":\"/repo/src/pump.rs\"}\n@out r\nfn pump() {}\n",
        "@call StructuredOutput s\n{\"findings\":[{\"title\":\"The valve stays open\",\"file\":\"src/pump.rs\",\"line\":12}],\"skipped\":[]}\n",
        "@out s\nStructured output provided successfully\n@user\nNow write the manual.",
    ));
    assert!(page.contains("title: The valve stays open; file: src/pump.rs; line: 12"), "{page}");
    assert!(page.contains("skipped: none"), "{page}");
    assert!(page.contains("\"Review the pump for leaks.\" [#0] (reply at [#3])"), "{page}");
}

#[test]
fn an_answer_in_json_is_cut_by_items() {
    let items: Vec<String> =
        (0..40).map(|it| format!("{{\"part\":\"number {it} of the pump\",\"state\":\"worn\"}}")).collect();
    let page =
        page(&format!("@user\nList the parts.\n@model\n```json\n{{\"parts\":[{}]}}\n```", items.join(",")));
    assert!(page.contains("part: number 0 of the pump; state: worn"), "{page}");
    assert!(page.contains("more items omitted)") && !page.contains('{'), "{page}");
}

#[test]
fn a_long_report_keeps_its_places_rows_and_conclusion() {
    let prose = "The pump was looked at from all sides, and most of it is as it was last year. ".repeat(6);
    let page = page(&format!(
        "@user\nHow is the pump?\n@model\n{prose}\n\n{prose}\n\n| part | state |\n|---|---|\n| valve | worn |\n\nCritical: `src/pump.rs:42` opens twice.\n\n{prose}\n\nThe gate is shut by day.\n→ The basin is dry at noon.\n→ So the mill stops at `src/mill.rs:13`.\n\n{prose}\n\nThe valve must be replaced first."
    ));
    let step = page.lines().find(|it| it.contains("The valve must be replaced first")).unwrap();
    assert!(step.contains("valve | worn") && step.contains("`src/pump.rs:42` opens twice."), "{page}");
    let chain =
        "The gate is shut by day. → The basin is dry at noon. → So the mill stops at `src/mill.rs:13`.";
    assert!(step.contains(chain), "{page}");
}

#[test]
fn what_was_guessed_or_announced_is_no_finding_later() {
    let page = page(concat!(
        "@user\nWhy is the export slow?\n",
        "@model\nThe export is probably slow because the disk of the server is full.\n",
        "@call Bash a\n{\"command\":\"df\"}\n@out a\nhalf full\n",
        "@model\nThe export is not yet measured because the server is down.\n",
        "@call Bash b\n{\"command\":\"make measure\"}\n@out b\nok\n",
        "@model\nThe export is slow because the lock of the table is never released.\nI'm about to: release it.\n",
        "@user\nAnd the import?\n@model\nThe import is fast, since it takes no lock at all.",
    ));
    assert!(page.contains("the lock of the table is never released"), "{page}");
    for gone in ["disk of the server", "not yet measured", "about to"] {
        assert!(!page.contains(gone), "{gone}\n{page}");
    }
}

#[test]
fn a_defect_that_was_changed_and_checked_is_told_so() {
    let text = |check: &str| {
        format!(
            "@user\nLook at the pump.\n@model\nI found the cause: `src/pump.rs` never closes the valve because the guard is missing.\n@call Edit e\n{{\"file_path\":\"/repo/src/pump.rs\",\"old_string\":\"a\",\"new_string\":\"b\"}}\n@out e\nok\n{check}@model\nHave a look at it."
        )
    };
    let checked = page(&text(
        "@call Bash t\n{\"command\":\"cargo test\"}\n@out t\ntest result: ok. 3 passed; 0 failed\n",
    ));
    assert!(checked.contains("changed since, and checks passed: I found the cause"), "{checked}");
    let unchecked = page(&text(""));
    assert!(unchecked.contains("- I found the cause: `src/pump.rs` never closes"), "{unchecked}");
}

#[test]
fn of_reports_of_the_same_the_last_is_told() {
    let page = page(concat!(
        "@user\nMeasure the pump.\n",
        "@model\nThe pump loses pressure because the seal of the second valve is worn, by 3 bar.\n@call Bash a\n{\"command\":\"make measure\"}\n@out a\nok\n",
        "@model\nThe pump loses pressure because the seal of the second valve is worn, by 5 bar in all.\n@call Bash b\n{\"command\":\"make measure\"}\n@out b\nok\n@model\nMeasured.",
    ));
    assert!(page.contains("by 5 bar") && !page.contains("by 3 bar"), "{page}");
}

#[test]
fn advice_that_was_refused_is_no_result() {
    let page = page(concat!(
        "@user\nWhere should the readings go?\n@call Bash a\n{\"command\":\"wc -l data\"}\n@out a\n90 data\n",
        "@model\nThere are 90 readings, all of them small. I recommend a server of its own for them.\n",
        "@user\nNo, that is too much. Put them in a file.\n@model\nThey are in `readings.csv` now.",
    ));
    assert!(page.contains("There are 90 readings") && !page.contains("I recommend"), "{page}");
}

#[test]
fn a_sentence_that_turns_the_one_before_is_told_with_it() {
    let prose = PROSE.repeat(6);
    let page = page(&format!(
        "@user\nWrite the manual of the pump.\n@model\nThe manual has no chapter about the valve.\n\n{prose}\n\nThe manual is complete as it is. But the request names the valve, so a chapter about the valve has to be written in the style of the others, with a drawing of the valve, a table of its pressures, and a note on who may open it and when that is allowed."
    ));
    assert!(page.contains("complete as it is. But the request names the valve"), "{page}");
}

#[test]
fn of_a_long_report_the_causes_are_told_before_what_is_no_issue() {
    let prose = PROSE.repeat(3);
    let page = page(&format!(
        "@user\nReview the pump.\n@model\nThe review is done.\n\n{prose}\n\n**Two defects:**\n\n- **Broken valve.** The valve of `pump.rs` opens twice.\n\n{prose}\n\n- **Broken seal.** The seal of `pump.rs` melts when it is hot.\n\n{prose}\n\n**Confirmed non-issues:** {prose}{prose}{prose}\n\n{prose}\n\nFor completeness: the paint was confirmed to be of the year before last, and nobody minds that at all as long as it holds.\n@user\nThanks, now the fan.\n@model\nMeasured."
    ));
    assert!(page.contains("opens twice") && page.contains("melts when it is hot"), "{page}");
    assert!(!page.contains("Confirmed non-issues"), "{page}");
}

#[test]
fn points_that_the_user_refers_to_are_told_with_their_numbers() {
    let prose = PROSE.repeat(8);
    let page = page(&format!(
        "@user\nHow should the pump be mended?\n@model\n{prose}\n\n1. Replace the valve.\n2. Weld the seal.\n3. Paint the hull.\n\n{prose}\n@user\nFor point 1 take the old valve, and point 3 is fine.\n@model\nMeasured."
    ));
    assert!(
        page.contains("#0: (1) Replace the valve.") && page.contains("#0: (3) Paint the hull."),
        "{page}"
    );
}

#[test]
fn several_points_that_the_user_chooses_are_told_with_their_numbers() {
    let prose = PROSE.repeat(8);
    for (choice, told) in [("1, then 3", 3), ("all 3 one by one", 3), ("1", 0), ("3 of the pumps are old", 0)]
    {
        let page = page(&format!(
            "@user\nHow should the pump be mended?\n@model\n{prose}\n\nWhich would you like?\n\n1. Replace the valve.\n2. Weld the seal.\n3. Paint the hull.\n@user\n{choice}\n@model\nMeasured."
        ));
        assert_eq!(page.matches("#0: (").count(), told, "{choice}\n{page}");
        assert_eq!(page.contains("= Replace the valve"), choice.starts_with('1'), "{choice}\n{page}");
    }
}

#[test]
fn a_heading_without_its_list_is_not_told() {
    let prose = PROSE.repeat(4);
    let item = prose.replace('.', ",");
    let page = page(&format!(
        "@user\nWhy is the pump loud?\n@model\nThe pump is loud for reasons of its age.\n\n## Causes (two)\n\n**What changed**\n\n## How it was found\n\n{prose}\n\nThree things remain as they are:\n\n- {item}\n- {item}\n- {item}\n\n{prose}\n\nIt was found because `pump.rs:12` is loud.\n@user\nNow the fan.\n@model\nMeasured."
    ));
    assert!(page.contains("The pump was looked at") && page.contains("`pump.rs:12` is loud"), "{page}");
    assert!(page.contains("How it was found: "), "{page}");
    for gone in ["Causes", "What changed", "Three things remain"] {
        assert!(!page.contains(gone), "{gone}\n{page}");
    }
}

#[test]
fn defects_that_the_user_had_fixed_are_told_so() {
    let text = |reply: &str, report: &str| {
        page(&format!(
            "@user\nReview the pump.\n@model\nThe review is complete. The valve of `pump.rs` fails when it is hot, and the seal is missing.\n@user\n{reply}\n@model\n{report}\n@user\nNow the manual.\n@model\nWritten."
        ))
    };
    let worked_on = "to #0: worked on since: The review is complete. The valve of `pump.rs` fails";
    let done = text(
        "fix everything",
        "All findings are fixed, in commit `abc1234`, and the tests of the pump are green.",
    );
    assert!(done.contains(worked_on), "{done}");
    for open in [
        text(
            "fix everything",
            "The valve of the pump could not be opened since the key of the cover is not here.",
        ),
        text(
            "what does it cost?",
            "It is done in a day, for a price of 40 for the seal and 12 for the valve.",
        ),
    ] {
        assert!(open.contains("to #0: The review is complete."), "{open}");
    }
}

#[test]
fn of_reports_of_the_same_in_several_turns_the_last_is_told() {
    let report = |bar: u32| {
        format!(
            "The pump loses {bar} bar because the seal of the second valve behind the filter is worn and the spring before the outlet was bent by the last repair."
        )
    };
    let page = page(&format!(
        "@user\nMeasure the pump.\n@model\n{}\n@user\nMeasure again.\n@model\n{}\n@user\nNow the fan.\n@model\nMeasured.",
        report(3),
        report(5)
    ));
    assert!(page.contains("5 bar") && !page.contains("3 bar"), "{page}");
}

#[test]
fn what_a_teammate_sends_to_its_lead_is_a_report() {
    let checked = "All checks of the plant went well but one. ".repeat(5);
    let send = |to: &str| {
        page(&format!(
            "@user\nCheck the plant.\n@call SendMessage s\n{{\"type\":\"message\",\"recipient\":\"{to}\",\"content\":\"{checked}The valve leaks 18 drops an hour.\"}}\n@out s\nSent.\n@model\nWaiting for the next task.\n@user\nWait.\n@model\nWaiting."
        ))
    };
    assert!(send("team-lead").contains("The valve leaks 18 drops an hour."), "{}", send("team-lead"));
    assert!(!send("fan-dev").contains("18 drops"), "{}", send("fan-dev"));
}

#[test]
fn what_a_sub_agent_reports_is_told_unless_the_model_repeats_it() {
    let report =
        "The valve of pump.rs leaks 18 drops an hour, since its spring was bent during the last repair. "
            .repeat(3);
    let text = |said: &str| {
        page(&format!(
            "@user\nCheck the plant.\n@call Task t\n{{\"prompt\":\"check\"}}\n@out t\n{report}\n@call Bash b\n{{\"command\":\"ls\"}}\n@out b\nx\n@model\n{said}\n@call Bash c\n{{\"command\":\"ls\"}}\n@out c\nx"
        ))
    };
    let silent = text("Now the fan of the plant.");
    assert!(silent.contains("- a sub-agent reports: The valve of pump.rs leaks 18 drops"), "{silent}");
    let repeated = text(&report);
    assert!(!repeated.contains("a sub-agent reports"), "{repeated}");
}

#[test]
fn what_was_found_on_the_way_is_told_by_the_report_that_ended_the_turn() {
    let text = |report: &str, next: &str| {
        page(&format!(
            "@user\nMend the pump.\n@model\nThe valve is stuck because two of the tests fail in `src/valve.rs`.\n@call Bash a\n{{\"command\":\"make valve\"}}\n@out a\nok\n@model\n{report}\n{next}"
        ))
    };
    let report =
        "The pump is mended in `src/valve.rs`: the seal was the cause, since it was of the wrong size. "
            .repeat(4);
    let told = text(&report, "@user\nNow the fan.\n@model\nI look at the fan.");
    assert!(told.contains("the seal was the cause") && !told.contains("The valve is stuck"), "{told}");
    let other = report.replace("src/valve.rs", "src/seal.rs");
    let next = "@user\nNow the fan.\n@model\nI look at the fan.";
    for (report, next) in [("Mended.", "@user\nNow the fan."), (report.as_str(), ""), (other.as_str(), next)]
    {
        let told = text(report, next);
        assert!(told.contains("The valve is stuck because two of the tests fail"), "{told}");
    }
}

#[test]
fn replies_of_earlier_turns_stand_with_their_requests() {
    let first = "@user\nWhy is the pump loud?\n@model\nThe pump is loud because its seal is worn.\n";
    let page = page(&format!(
        "{first}@user\nAnd the fan?\n@model\nThe fan is loud because a blade is bent.\n@call Bash a\n{{\"command\":\"make fan\"}}\n@out a\nok\n@model\nI bend it back.\n"
    ));
    let found =
        "Findings before later work (may be outdated):\n- The fan is loud because a blade is bent. [#3]";
    let turns = "## Replies in earlier turns (may be outdated)\n- to #0: The pump is loud because its seal is worn. [#1]";
    assert!(page.contains(found) && page.contains(turns), "{page}");
    let again = super::said::page(&format!("@summary\n{page}\n@user\nGo on.\n"));
    assert!(again.contains("- The pump is loud because its seal is worn. [#0]"), "{again}");
}

#[test]
fn how_the_tree_was_at_the_end_of_a_turn_is_no_finding_after_a_commit() {
    let text = |commit: &str| {
        page(&format!(
            "@user\nIs anything left to commit?\n@model\nYes, because the drawing of the pump is new. Working tree: dirty. `main` is ahead of `origin/main` by 2 commits.\n@user\nCommit it.\n{commit}@model\nI go on."
        ))
    };
    let committed = text(
        "@call Bash a\n{\"command\":\"git commit -am drawing\"}\n@out a\n[main 1a2b3c4] drawing\n 1 file changed\n",
    );
    assert!(committed.contains("the drawing of the pump is new"), "{committed}");
    assert!(!committed.contains("dirty") && !committed.contains("ahead of"), "{committed}");
    assert!(text("").contains("Working tree: dirty"), "{}", text(""));
}
