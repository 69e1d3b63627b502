//! Claude Code: the threshold, micro, collapse, snapshot, rounds, what is put back.

use epitome::compaction;
use epitome::compaction::plan::{Cause, ModelLimits, Moment, Op, PlanRequest, Snapshot};
use epitome::compaction::profile::{Pass, Profile};
use epitome::history::{Call, Kind, Message, Part, Role};

use super::{
    Rows, Wish, call, due, history, laid_out, model, output, plan, profile, result, results, row, text,
    texts, user,
};

const NAME: &str = "claude-code";

fn limits(window: u64) -> ModelLimits<'static> {
    ModelLimits { window: Some(window), output: Some(64_000), ..ModelLimits::default() }
}

fn set(key: &'static str, value: serde_json::Value) -> Profile {
    profile(NAME).honouring(&move |it| (it == key).then(|| value.clone()))
}

fn tool(id: &str, name: &str, input: &str) -> Message {
    let call =
        Call { id: id.into(), name: name.into(), input: input.into(), freeform: false, signature: None };
    Message::new(Role::Assistant, Kind::Said, vec![Part::Call(call)])
}

pub(crate) fn rows() -> Rows {
    let mut out = Rows::new();
    for (window, at) in [(200_000, 167_000), (1_000_000, 967_000)] {
        row(&mut out, format!("claude.threshold.{window}"), move || {
            assert_eq!(compaction::plan::threshold(&profile(NAME), &limits(window)), Some(at));
            assert!(due(&profile(NAME), limits(window), at) && !due(&profile(NAME), limits(window), at - 1));
        });
    }
    row(&mut out, "claude.threshold.small-output", || {
        let limits = ModelLimits { window: Some(200_000), output: Some(8_000), ..ModelLimits::default() };
        assert_eq!(compaction::plan::threshold(&profile(NAME), &limits), Some(179_000));
    });
    row(&mut out, "claude.threshold.percent-only-lowers", || {
        let with = |percent: f64| {
            compaction::plan::threshold(
                &set("env:CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", percent.into()),
                &limits(200_000),
            )
        };
        assert_eq!((with(50.0), with(100.0), with(0.0)), (Some(90_000), Some(167_000), Some(167_000)));
    });
    row(&mut out, "claude.threshold.window", || {
        let at = compaction::plan::threshold(
            &set("env:CLAUDE_CODE_AUTO_COMPACT_WINDOW", "500000".into()),
            &limits(1_000_000),
        );
        assert_eq!(at, Some(467_000));
        let capped = compaction::plan::threshold(
            &set("claude-code:autoCompactWindow", 500_000.into()),
            &limits(200_000),
        );
        assert_eq!(capped, Some(167_000));
    });
    for (key, value) in [
        ("claude-code:autoCompactEnabled", false),
        ("env:DISABLE_AUTO_COMPACT", true),
        ("env:DISABLE_COMPACT", true),
    ] {
        row(&mut out, format!("claude.switch.{}", key.replace([':', '.'], "-")), move || {
            assert!(!due(&set(key, value.into()), limits(200_000), 199_000));
        });
    }
    row(&mut out, "claude.breaker.three", || {
        let history = history(vec![user(&"x".repeat(4_000)), model("y")]);
        let profile = profile(NAME);
        let limits = ModelLimits { window: Some(33_900), output: Some(64_000), ..ModelLimits::default() };
        for (failures, expected) in [(2, true), (3, false)] {
            let moment = Moment { failures, ..Moment::default() };
            let found = super::verdict(&profile, &history, &limits, &moment);
            assert_eq!(found.due, expected, "{}", found.reason);
        }
    });
    micro(&mut out);
    collapse(&mut out);
    summary(&mut out);
    out
}

fn micro(out: &mut Rows) {
    let reads = |count: usize, chars: usize, at: i64| {
        let mut messages = vec![user("go")];
        for it in 0..count {
            let id = it.to_string();
            messages.extend([call(&id, "Read"), result(&id, &"x".repeat(chars))]);
        }
        for message in &mut messages {
            message.at = Some(at);
        }
        messages
    };
    let cleared = |messages: Vec<Message>, now: i64| {
        let wish = Wish { prune: true, moment: Moment { now, ..Moment::default() }, ..Wish::default() };
        let plan = plan(&profile(NAME), &history(messages), wish);
        plan.ops.iter().filter(|it| matches!(it, Op::Clear(_))).count()
    };
    row(out, "claude.micro.after-60-minutes", move || {
        assert_eq!(cleared(reads(8, 2_000, 0), 60 * 60_000), 3);
        assert_eq!(cleared(reads(8, 2_000, 0), 59 * 60_000), 0);
    });
    row(out, "claude.micro.by-count", move || {
        // 101 results of 250 tokens: all but five. 100 are left alone, and so is what gains too little.
        assert_eq!(cleared(reads(101, 1_000, 0), 0), 96);
        assert_eq!(cleared(reads(100, 1_000, 0), 0), 0);
        assert_eq!(cleared(reads(101, 800, 0), 0), 0);
    });
    row(out, "claude.micro.by-size", move || {
        assert_eq!(cleared(reads(8, 40_000, 0), 0), 4);
        assert_eq!(cleared(reads(5, 40_000, 0), 0), 0);
    });
    row(out, "claude.micro.only-its-tools", move || {
        let mut messages = reads(8, 2_000, 0);
        for message in &mut messages {
            for part in &mut message.parts {
                if let Part::Call(call) = part {
                    call.name = "mcp__x__y".into();
                }
            }
        }
        assert_eq!(cleared(messages, 60 * 60_000), 0);
    });
    row(out, "claude.batch.200k", || {
        let calls = ["a", "b", "c"].map(|it| call(it, "Bash").parts.remove(0)).to_vec();
        let outputs = [150_000, 60_000, 20_000]
            .iter()
            .zip(["a", "b", "c"])
            .map(|(len, id)| output(id, &"x".repeat(*len)));
        let messages = vec![
            user("go"),
            Message::new(Role::Assistant, Kind::Said, calls),
            results(outputs.collect()),
            model("so"),
            user("on"),
        ];
        let history = history(messages);
        let plan = plan(&profile(NAME), &history, Wish { prune: true, ..Wish::default() });
        let found = laid_out(&history, &plan);
        let lens: Vec<usize> = found[2].outputs().map(|it| it.text.as_str().len()).collect();
        assert!(lens[0] < 2_200 && lens[1..] == [60_000, 20_000], "{lens:?}");
        assert!(text(&found[2]).starts_with("<persisted-output>\n"));
    });
    row(out, "claude.order", || {
        let order: Vec<&str> = profile(NAME)
            .passes
            .iter()
            .map(|it| match it {
                Pass::Outputs(it) if it.only_tools.is_empty() => "budget",
                Pass::Outputs(it) if it.idle_minutes > 0 => "micro by time",
                Pass::Outputs(it) if it.above > 0 => "micro by count",
                Pass::Outputs(_) => "micro by size",
                Pass::Snip(_) => "snip",
                Pass::Collapse(_) => "collapse",
                Pass::Summarize(_) => "summarize",
            })
            .collect();
        let expected =
            ["budget", "snip", "micro by time", "micro by count", "micro by size", "collapse", "summarize"];
        assert_eq!(order, expected);
    });
}

fn collapse(out: &mut Rows) {
    let on = || {
        let mut profile = profile(NAME);
        for pass in &mut profile.passes {
            if let Pass::Collapse(step) = pass {
                step.on = true;
            }
        }
        profile
    };
    let turns = || -> Vec<Message> {
        (0..4).flat_map(|it| [user(&format!("turn {it}")), model(&"x".repeat(2_000))]).collect()
    };
    row(out, "claude.collapse.turns", move || {
        let mut profile = on();
        profile.passes.retain(|it| matches!(it, Pass::Collapse(_)));
        let history = history(turns());
        let plan = plan(&profile, &history, Wish::default());
        let found = texts(&laid_out(&history, &plan));
        assert_eq!(found.len(), 6);
        assert_eq!(
            found[0],
            "[turn collapsed: turn 0 · 2 messages, 502 tokens; whole: epitome recall 0000000000]"
        );
        let op = plan
            .ops
            .iter()
            .find_map(|it| if let Op::Collapse { from, to, .. } = it { Some((*from, *to)) } else { None });
        assert_eq!(op, Some((0, 2)));
        assert!(compaction::plan::transcript(&history.messages()[..2]).contains("turn 0"));
    });
    row(out, "claude.collapse.no-auto", move || {
        let wish = Wish { auto: true, cause: Cause::Auto, limits: limits(34_000), ..Wish::default() };
        let plan = plan(&on(), &history(turns()), wish);
        assert_eq!((plan.act, plan.reason.code), (false, "switched_off"));
        assert!(plan.reason.text.contains("collapsing"), "{}", plan.reason.text);
    });
    row(out, "claude.collapse.manual-and-overflow", move || {
        for cause in [Cause::Manual, Cause::Overflow] {
            let wish = Wish { cause, auto: cause == Cause::Overflow, ..Wish::default() };
            assert!(plan(&on(), &history(turns()), wish).need.is_some());
        }
    });
}

fn summary(out: &mut Rows) {
    row(out, "claude.summary.nine-sections", || {
        let profile = profile(NAME);
        let sections = &profile.summarize().unwrap().summary.sections;
        assert_eq!(sections.len(), 9);
        assert!(sections[0].title.contains("Primary Request and Intent"));
    });
    row(out, "claude.summary.guard-rails", || {
        let ask = epitome::profiles::prompt("claude-code/ask.md");
        assert!(ask.starts_with("Answer with text only") && ask.trim_end().ends_with("no tool call."));
    });
    row(out, "claude.summary.known-beginning", || {
        let history = history(vec![user("a"), model(&"x".repeat(400))]);
        let found = laid_out(&history, &plan(&profile(NAME), &history, Wish::default()));
        assert!(text(&found[0]).starts_with(
            "This session is being continued from a previous conversation that ran out of context."
        ));
    });
    row(out, "claude.summary.snapshot", || {
        let history =
            history(vec![user("a"), model(&"x".repeat(4_000)), user("b"), model(&"y".repeat(4_000))]);
        let profile = profile(NAME);
        let counter = super::counter(&profile, &history);
        let with = |covers| {
            let request = PlanRequest {
                snapshot: Some(Snapshot { text: "kept before", covers }),
                ..PlanRequest::new(&profile, &|_| String::new())
            };
            compaction::plan::plan(&history, &counter, &request, &Moment::default())
        };
        let used = with(4);
        assert!(used.act && used.need.is_none());
        let after = compaction::plan::apply(&history, &counter, &used, None).unwrap();
        assert!(text(&after.history.messages()[0]).ends_with("kept before"));
        assert!(with(3).need.is_some(), "it does not cover what goes");
    });
    row(out, "claude.too-long.rounds", || {
        let mut messages = vec![user("go")];
        for it in 0..10 {
            let id = it.to_string();
            messages.extend([call(&id, "Bash"), result(&id, &"x".repeat(400))]);
        }
        let shown = |messages: &[Message], window: Option<u64>| {
            let limits = ModelLimits { window, ..ModelLimits::default() };
            let wish = Wish { cause: Cause::Overflow, limits, ..Wish::default() };
            plan(&profile(NAME), &history(messages.to_vec()), wish).need.unwrap().shown_from
        };
        // A fifth of ten rounds, with what stood before them.
        assert_eq!(shown(&messages, None), 3);
        // Three times at most.
        assert_eq!(shown(&messages, Some(2)), 11);
        // One round cannot give way.
        assert_eq!(shown(&messages[..3], None), 0);
    });
    files(out);
}

fn files(out: &mut Rows) {
    let path = |it: &str| format!(r#"{{"file_path":"/p/{it}"}}"#);
    let read = move |id: &str, file: &str, chars: usize| {
        vec![tool(id, "Read", &path(file)), result(id, &"x".repeat(chars))]
    };
    let restored = |messages: Vec<Message>| {
        let history = history(messages);
        let found = laid_out(&history, &plan(&profile(NAME), &history, Wish::default()));
        texts(&found)[1..].join("\n---\n")
    };
    row(out, "claude.restore.read-file", move || {
        let messages = [vec![user("go")], read("a", "a.rs", 400), vec![model(&"y".repeat(8_000))]].concat();
        assert_eq!(restored(messages), format!("File /p/a.rs\n{}", "x".repeat(400)));
    });
    row(out, "claude.restore.edited-since", move || {
        let edit = vec![
            tool("e", "Edit", r#"{"file_path":"/p/a.rs","old_string":"x","new_string":"y"}"#),
            result("e", "ok"),
        ];
        let messages =
            [vec![user("go")], read("a", "a.rs", 400), edit, vec![model(&"y".repeat(8_000))]].concat();
        assert_eq!(
            restored(messages),
            "File /p/a.rs (changed since it was read; read it again before editing)"
        );
    });
    row(out, "claude.restore.read-after-edit", move || {
        let edit = vec![
            tool("e", "Edit", r#"{"file_path":"/p/a.rs","old_string":"x","new_string":"y"}"#),
            result("e", "ok"),
        ];
        let messages =
            [vec![user("go")], edit, read("a", "a.rs", 400), vec![model(&"y".repeat(8_000))]].concat();
        assert!(restored(messages).starts_with("File /p/a.rs\nxxx"));
    });
    row(out, "claude.restore.five-files", move || {
        let reads: Vec<Message> =
            (0..8).flat_map(|it| read(&it.to_string(), &format!("{it}.rs"), 400)).collect();
        let found = restored([vec![user("go")], reads, vec![model(&"y".repeat(80_000))]].concat());
        assert_eq!(found.matches("File /p/").count(), 5);
        assert!(found.starts_with("File /p/3.rs") && found.contains("File /p/7.rs"));
    });
    row(out, "claude.restore.large-is-named", move || {
        let messages =
            [vec![user("go")], read("a", "a.rs", 24_000), vec![model(&"y".repeat(200_000))]].concat();
        assert_eq!(restored(messages), "File /p/a.rs (6000 tokens; read it again if you need it)");
    });
    row(out, "claude.restore.skill-cut", move || {
        let skill = vec![tool("s", "Skill", r#"{"skill":"pdf"}"#), result("s", &"do this\n".repeat(4_000))];
        let found = restored([vec![user("go")], skill, vec![model(&"y".repeat(200_000))]].concat());
        assert!(found.starts_with("Skill in use (Skill):\ndo this") && found.ends_with("[… cut here]"));
        assert!(found.len() < 21_000 && found.len() > 15_000, "{}", found.len());
    });
    row(out, "claude.restore.plan", move || {
        let todo = r#"{"todos":[{"content":"write it","status":"in_progress"}]}"#;
        let messages =
            vec![user("go"), tool("t", "TodoWrite", todo), result("t", "ok"), model(&"y".repeat(8_000))];
        assert!(restored(messages).contains(todo));
    });
}
