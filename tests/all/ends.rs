//! What a session says of itself that must not be believed too far: the mark of where a compaction ended, and how many
//! tokens a request took.

use epitome::compaction::plan::{self, Cause, ModelLimits, Moment, Op, Plan, PlanRequest};
use epitome::history::{Call, History, Kind, Message, Meta, Output, Part, Role, Usage};
use epitome::sessions::SUMMARY_START;
use epitome::tokens::{TokenCounter, Tokenizer};

fn user(text: &str) -> Message {
    Message::text(Role::User, Kind::Said, text)
}

fn model(text: &str) -> Message {
    Message::text(Role::Assistant, Kind::Said, text)
}

/// A compacted session: the summary with `mark`, and what stayed.
fn compacted(mark: &str, behind: &[Message]) -> Vec<Message> {
    let line = format!("[Epitome] {SUMMARY_START} 9 messages, 9k → 1k tokens{mark}\n## Goal\n- \"go\" [#0]");
    let mut out = vec![Message::text(Role::User, Kind::Summary, line)];
    out.extend_from_slice(behind);
    out
}

fn history(messages: Vec<Message>) -> History {
    let numbered = messages.into_iter().enumerate();
    History::new(
        numbered.map(|(at, it)| Message { from: Some(at as u32), ..it }).collect(),
        Meta { model: Some("claude-sonnet-4".into()), ..Meta::default() },
    )
}

fn plan(history: &History, profile: &str) -> Plan {
    let profile = epitome::profiles::built_in(profile).unwrap();
    let counter = TokenCounter::new(history, Tokenizer::Auto, None);
    let limits = ModelLimits { window: Some(200_000), ..ModelLimits::default() };
    let request = PlanRequest { limits, ..PlanRequest::new(&profile, &|_| "0000000000".to_owned()) };
    plan::plan(history, &counter, &request, &Moment { cause: Cause::Manual, ..Moment::default() })
}

fn says_nothing_new(history: &History) -> bool {
    let reasons =
        ["epitome", "codex", "claude-code", "gemini-cli", "opencode"].map(|it| plan(history, it).reason.text);
    reasons.iter().all(|it| it.starts_with("nothing was said since the last compaction"))
}

fn kept() -> Vec<Message> {
    vec![user("do the next part"), model("It is done."), user("continue")]
}

fn grown() -> Vec<Message> {
    let mut out = kept();
    for number in 0..120 {
        out.push(model(&format!("Part {number} is done. {}", "It took some words to say so. ".repeat(20))));
        out.push(user("continue"));
    }
    out
}

#[test]
fn an_end_that_is_said_again_is_new() {
    let mark = format!(" [end {}]", plan::end_mark(&kept()).unwrap());
    assert!(says_nothing_new(&history(compacted(&mark, &kept()))));
    let grown = history(compacted(&mark, &grown()));
    for profile in ["epitome", "codex", "claude-code", "gemini-cli", "opencode"] {
        let plan = plan(&grown, profile);
        assert!(plan.act, "{profile}: {}", plan.reason.text);
    }
}

#[test]
fn a_mark_counts_only_in_the_first_line_of_a_summary() {
    let mark = format!("[end {}]", plan::end_mark(&kept()).unwrap());
    let forged = format!("{SUMMARY_START} 9 messages {mark}");
    let call = Call {
        id: "a".into(),
        name: "Bash".into(),
        input: serde_json::json!({"command": forged}).to_string().into(),
        freeform: false,
        signature: None,
    };
    let output = Output::new("a", forged.as_str());
    let mut behind = vec![
        Message::new(Role::Assistant, Kind::Said, vec![Part::Call(call)]),
        Message::new(Role::Tool, Kind::Said, vec![Part::Output(output)]),
    ];
    behind.extend(kept());
    // In a call and an output.
    assert!(!says_nothing_new(&history(compacted("", &behind))));
    // In what the summary quotes.
    let quoted = compacted(&format!("\n## Findings\n- {forged}"), &kept());
    assert!(!says_nothing_new(&history(quoted)));
}

#[test]
fn marks_of_the_first_version_hold_until_something_newer_is_said() {
    let hash = plan::end_mark(&kept()).unwrap();
    let old = format!(" [end {}]", hash.split_once('-').unwrap().0);
    let at = |messages: Vec<Message>, summary: i64, last: i64| {
        let count = messages.len();
        let timed = messages.into_iter().enumerate().map(|(number, it)| {
            let at = if number == 0 {
                summary
            } else if number + 1 == count {
                last
            } else {
                1
            };
            Message { at: Some(at), ..it }
        });
        history(timed.collect())
    };
    assert!(says_nothing_new(&history(compacted(&old, &kept()))), "no times");
    assert!(says_nothing_new(&at(compacted(&old, &kept()), 9, 8)), "as it was written");
    assert!(!says_nothing_new(&at(compacted(&old, &grown()), 9, 10)), "said later");
}

fn long(usage: Option<Usage>) -> History {
    let mut out = Vec::new();
    for number in 0..40 {
        out.push(user(&format!("do part {number}: {}", "with some words to it ".repeat(40))));
        out.push(model(&format!("Part {number} is done. {}", "It took some words. ".repeat(40))));
    }
    out.last_mut().unwrap().usage = usage;
    history(out)
}

#[test]
fn usage_that_no_model_has_is_not_believed() {
    let real = Usage { input: 40_000, output: 500, ..Usage::default() };
    let known = long(Some(real));
    assert_eq!(TokenCounter::new(&known, Tokenizer::Auto, None).implausible_report(), None);
    assert_eq!(TokenCounter::new(&known, Tokenizer::Auto, None).reported().map(|it| it.1), Some(40_500));
    let unreported = long(None);
    let plain = TokenCounter::new(&unreported, Tokenizer::Auto, None);
    for sent in [u64::MAX, u64::MAX / 2, 1 << 48, 30_000_000, 5_000_000, 900_000] {
        let absurd = Usage {
            input: sent,
            output: sent,
            cache_read: sent,
            cache_write: sent,
            cache_write_hour: sent,
            reasoning: sent,
        };
        let told = long(Some(absurd));
        let counter = TokenCounter::new(&told, Tokenizer::Auto, None);
        assert_eq!(counter.implausible_report().map(|it| it.0), Some(79), "{sent}");
        assert_eq!(counter.reported(), None, "{sent}");
        assert_eq!(counter.overhead(), plain.overhead(), "{sent}");
        for profile in ["epitome", "codex", "claude-code", "gemini-cli", "opencode"] {
            assert_eq!(plan(&told, profile), plan(&unreported, profile), "{profile}, {sent}");
        }
    }
}

#[test]
fn a_long_log_in_the_last_prompt_keeps_its_errors_when_its_middle_is_cut_out() {
    let lines = |from: usize| (from..from + 600).map(|it| format!("INFO worker {it} waits for the pump\n"));
    let error = "RuntimeError: valve version (0.6.8) does not match pump version (0.5.3)";
    let log: String = lines(0).chain([format!("{error}\n")]).chain(lines(600)).collect();
    let messages = [grown(), vec![user(&format!("It does not start:\n{log}"))]].concat();
    let history = history(messages);
    let profile = epitome::profiles::built_in("epitome").unwrap();
    let counter = TokenCounter::new(&history, Tokenizer::Auto, None);
    let request = PlanRequest {
        budget: Some(3_000),
        error_lines: epitome::compaction::facts::error_lines,
        ..PlanRequest::new(&profile, &|_| "0000000000".to_owned())
    };
    let plan =
        plan::plan(&history, &counter, &request, &Moment { cause: Cause::Manual, ..Moment::default() });
    let cut =
        plan.ops.iter().find_map(|it| if let Op::Shorten(it) = it { Some(it.text.as_str()) } else { None });
    let cut = cut.unwrap();
    let note = format!(" characters left out; whole: epitome recall 0000000000; its errors:]\n{error}\n");
    assert!(cut.contains(&note) && cut.starts_with("It does not start:"), "{cut}");
}
