//! learn-claude-code s08: snip, micro, budget, reactive; what its code was executed with.

use epitome::compaction::plan::{Cause, ModelLimits, Moment, Op};
use epitome::compaction::profile::{Pass, Profile};
use epitome::history::{Message, Part};

use super::{
    Rows, Wish, call, history, laid_out, model, output, plan, profile, result, results, row, text, texts,
    user,
};

const NAME: &str = "learn-claude-code@7891c25";

/// A profile with only these of its passes.
fn only(which: &[usize]) -> Profile {
    let mut profile = profile(NAME);
    let mut number = 0;
    profile.passes.retain(|_| {
        number += 1;
        which.contains(&(number - 1))
    });
    profile
}

fn snipping(above: usize, head: usize, tail: usize) -> Profile {
    let mut profile = only(&[1]);
    let Pass::Snip(step) = &mut profile.passes[0] else { panic!() };
    (step.above, step.head, step.tail) = (above, head, tail);
    profile
}

/// User and model in turn, each with its number.
fn alternating(count: usize) -> Vec<Message> {
    (0..count).map(|it| if it % 2 == 0 { user(&it.to_string()) } else { model(&it.to_string()) }).collect()
}

fn snipped(profile: &Profile, messages: Vec<Message>) -> Vec<Message> {
    let history = history(messages);
    let plan = plan(profile, &history, Wish::default());
    if plan.act { laid_out(&history, &plan) } else { history.into_messages() }
}

fn with(messages: Vec<Message>, at: usize) -> Vec<Message> {
    let mut messages = messages;
    messages[at] = call("p", "bash");
    messages[at + 1] = result("p", "out");
    messages
}

pub(crate) fn rows() -> Rows {
    let mut out = Rows::new();
    row(&mut out, "learn.snip.50", || {
        assert_eq!(texts(&snipped(&only(&[1]), alternating(50))), texts(&alternating(50)))
    });
    for (count, gone) in [(51, 1), (52, 2), (60, 10), (160, 110)] {
        row(&mut out, format!("learn.snip.{count}"), move || {
            let found = texts(&snipped(&only(&[1]), alternating(count)));
            assert_eq!(found.len(), 51);
            assert_eq!(found[..3], ["0", "1", "2"]);
            assert_eq!(found[3], format!("[snipped {gone} messages]"));
            assert_eq!(found[4], (count - 47).to_string());
        });
    }
    row(&mut out, "learn.snip.again-on-51", || {
        // Its own step would replace the mark by `[snipped 1 messages]`; here the mark stays as it is.
        let once = snipped(&only(&[1]), alternating(160));
        let again = snipped(&only(&[1]), once.clone());
        assert_eq!(texts(&again), texts(&once));
        assert!(profile(NAME).deviations.iter().any(|it| it.starts_with("snip:")));
    });
    row(&mut out, "learn.snip.head-pair", || {
        let found = snipped(&only(&[1]), with(alternating(64), 2));
        assert_eq!(found.len(), 52);
        assert!(found[2].calls().next().is_some() && found[3].outputs().next().is_some());
        assert_eq!(text(&found[4]), "[snipped 13 messages]");
    });
    row(&mut out, "learn.snip.tail-pair", || {
        let found = snipped(&only(&[1]), with(alternating(60), 12));
        assert_eq!(found.len(), 52);
        assert_eq!(text(&found[3]), "[snipped 9 messages]");
        assert!(found[4].calls().next().is_some() && found[5].outputs().next().is_some());
    });
    for (most, count, gone) in [(3, 4, 7), (4, 5, 6), (5, 6, 5), (6, 7, 4)] {
        row(&mut out, format!("learn.snip.max-{most}-of-10"), move || {
            let found = texts(&snipped(&snipping(most, 3, most - 3), alternating(10)));
            assert_eq!(
                (found.len(), found[3].as_str()),
                (count, format!("[snipped {gone} messages]").as_str())
            );
        });
    }
    micro(&mut out);
    budget(&mut out);
    reactive(&mut out);
    newest(&mut out);
    out
}

fn tools(lens: &[usize]) -> Vec<Message> {
    let pair = |(it, len): (usize, &usize)| {
        let id = it.to_string();
        [call(&id, "bash"), result(&id, &"x".repeat(*len))]
    };
    [vec![user("go")], lens.iter().enumerate().flat_map(pair).collect()].concat()
}

fn micro(out: &mut Rows) {
    const CLEARED: &str = "[Earlier tool result compacted. Re-run if needed.]";
    let lens = |messages: &[Message]| -> Vec<String> {
        let texts = messages.iter().flat_map(Message::outputs).map(|it| it.text.as_str().to_owned());
        texts.map(|it| if it == CLEARED { "cleared".to_owned() } else { it.len().to_string() }).collect()
    };
    row(out, "learn.micro.lengths", move || {
        let found = snipped(&only(&[2]), tools(&[500, 120, 500, 10, 10, 10]));
        assert_eq!(lens(&found), ["cleared", "120", "cleared", "10", "10", "10"]);
    });
    row(out, "learn.micro.121", move || {
        // 121 characters are above 120, so they are taken, and the placeholder of 50 is smaller.
        let found = snipped(&only(&[2]), tools(&[121, 120, 500, 10, 10, 10]));
        assert_eq!(lens(&found), ["cleared", "120", "cleared", "10", "10", "10"]);
    });
    row(out, "learn.micro.three", move || {
        assert_eq!(lens(&snipped(&only(&[2]), tools(&[500, 500, 500]))), ["500", "500", "500"]);
    });
}

fn budget(out: &mut Rows) {
    let batch = |lens: &[usize]| -> Vec<Message> {
        let calls =
            lens.iter().enumerate().map(|(it, _)| call(&it.to_string(), "bash").parts.remove(0)).collect();
        let outputs =
            lens.iter().enumerate().map(|(it, len)| output(&it.to_string(), &"x".repeat(*len))).collect();
        let calls = Message::new(epitome::history::Role::Assistant, epitome::history::Kind::Said, calls);
        vec![user("go"), calls, results(outputs)]
    };
    let lens = |messages: &[Message]| -> Vec<usize> {
        messages.iter().flat_map(Message::outputs).map(|it| it.text.as_str().chars().count()).collect()
    };
    row(out, "learn.budget.largest-first", move || {
        let found = snipped(&only(&[0]), batch(&[150_000, 60_000, 20_000]));
        let lens = lens(&found);
        assert!(lens[0] < 2_200 && lens[1..] == [60_000, 20_000], "{lens:?}");
        let text = text(&found[2]);
        assert!(
            text.starts_with("<persisted-output>\nFull output: epitome recall 0000000000\nPreview:\nxxx")
        );
        assert!(text.contains("x\n</persisted-output>"), "{}", &text[1990..2200]);
    });
    row(out, "learn.budget.ten-of-25k", move || {
        assert_eq!(lens(&snipped(&only(&[0]), batch(&[25_000; 10]))), [25_000; 10]);
    });
    row(out, "learn.budget.single", move || {
        assert_eq!(lens(&snipped(&only(&[0]), batch(&[200_000]))), [200_000]);
        assert!(lens(&snipped(&only(&[0]), batch(&[200_001])))[0] < 2_200);
    });
    row(out, "learn.budget.seed-has-no-floor", move || {
        // The README persists the largest whatever its size.
        let mut profile = profile("learn-claude-code");
        profile.passes.truncate(1);
        let found = lens(&snipped(&profile, batch(&[25_000; 10])));
        assert_eq!(found.iter().filter(|it| **it == 25_000).count(), 7, "{found:?}");
    });
    row(out, "learn.budget.empty", || {
        assert!(!plan(&only(&[0]), &history(vec![]), Wish::default()).act);
    });
    row(out, "learn.budget.last-message-only", move || {
        let messages = [batch(&[300_000]), vec![model("so")]].concat();
        assert_eq!(lens(&snipped(&only(&[0]), messages)), [300_000]);
    });
}

fn reactive(out: &mut Rows) {
    let wish = Wish { cause: Cause::Overflow, ..Wish::default() };
    for (count, kept) in [(6, 5), (9, 5)] {
        row(out, format!("learn.reactive.{count}"), move || {
            let history = history(alternating(count));
            let found = texts(&laid_out(&history, &plan(&profile(NAME), &history, wish)));
            assert_eq!(found.len(), kept + 1);
            assert_eq!(found[0], "[Reactive compact]\n\nS");
            assert_eq!(found[1], (count - 5).to_string());
        });
    }
    for count in [3, 5] {
        row(out, format!("learn.reactive.{count}"), move || {
            // Nothing would go, and the summary would make it grow.
            let plan = plan(&profile(NAME), &history(alternating(count)), wish);
            assert_eq!((plan.act, plan.reason.code), (false, "nothing_to_compact"));
            assert!(profile(NAME).deviations.iter().any(|it| it.starts_with("reactive:")));
        });
    }
    row(out, "learn.reactive.pair", move || {
        let history = history(with(alternating(9), 3));
        let plan = plan(&profile(NAME), &history, wish);
        assert_eq!(plan.split, Some(3));
        assert_eq!(laid_out(&history, &plan).len(), 7);
    });
    row(out, "learn.compact.threshold", || {
        let large = vec![user(&"x".repeat(49_900)), model("y")];
        let due = |messages| {
            let history = history(messages);
            super::verdict(&profile(NAME), &history, &ModelLimits::default(), &Moment::default()).due
        };
        assert!(!due(large.clone()));
        assert!(due([large, alternating(10)].concat()));
    });
    row(out, "learn.compact.whole", || {
        let history = history(alternating(9));
        assert_eq!(
            texts(&laid_out(&history, &plan(&profile(NAME), &history, Wish::default()))),
            ["[Compacted]\n\nS"]
        );
    });
    row(out, "learn.compact.empty-summary", || {
        let (profile, history) = (profile(NAME), history(alternating(9)));
        let plan = plan(&profile, &history, Wish::default());
        assert_eq!(super::apply(&profile, &history, &plan, "").unwrap_err().code, "empty");
    });
    row(out, "learn.compact.tool-leaves-no-orphan", || {
        // The call stands last and is answered after the compaction: it stays, with everything it belongs to.
        let history = history([alternating(60), vec![call("c", "compact")]].concat());
        let mut profile = profile(NAME);
        profile.passes.retain(|it| matches!(it, Pass::Summarize(_)));
        let plan = plan(&profile, &history, Wish::default());
        let found = laid_out(&history, &plan);
        assert!(found.last().unwrap().calls().next().is_some(), "{:?}", texts(&found));
    });
    row(out, "learn.breaker.three", || {
        let moment = Moment { failures: 3, ..Moment::default() };
        let history = history(vec![user(&"x".repeat(60_000)), model("y")]);
        let due = |name| super::verdict(&profile(name), &history, &ModelLimits::default(), &moment).due;
        assert!(!due("learn-claude-code") && due(NAME));
    });
    row(out, "learn.order", || {
        // Budget before micro: a large output is persisted whole before it could be cleared.
        let profile = profile("learn-claude-code");
        let order: Vec<&str> = profile
            .passes
            .iter()
            .map(|it| match it {
                Pass::Outputs(it) if it.longer_than == 120 => "micro",
                Pass::Outputs(_) => "budget",
                Pass::Snip(_) => "snip",
                Pass::Collapse(_) => "collapse",
                Pass::Summarize(_) => "summarize",
            })
            .collect();
        assert_eq!(order, ["budget", "snip", "micro", "summarize", "summarize"]);
    });
}

/// The snip of the newest code (1d055686) is the same pass with other numbers.
fn newest(out: &mut Rows) {
    for (count, expected) in [(49, 49), (50, 30), (55, 30)] {
        row(out, format!("learn.newest.snip-{count}"), move || {
            let found = snipped(&snipping(49, 3, 26), alternating(count));
            assert_eq!(found.len(), expected);
        });
    }
    row(out, "learn.newest.head-pair", || {
        // Trigger 7, target 6 on 10 messages.
        let found = snipped(&snipping(6, 3, 2), with(alternating(10), 2));
        assert_eq!(found.len(), 7);
    });
    row(out, "learn.newest.tail-pair", || {
        let found = snipped(&snipping(8, 3, 3), with(alternating(10), 6));
        assert_eq!(found.len(), 8);
    });
    row(out, "learn.newest.bad-thresholds", || {
        let text = "extends = \"learn-claude-code\"\nname = \"x\"\n[[pass]]\ndo = \"snip\"\nabove = 10\nhead = 3\ntail = 9\nmarker = \"m\"\n";
        let error = epitome::profiles::parse(text, "x.toml").unwrap_err();
        assert_eq!(error.place().unwrap().line, Some(3));
        assert!(error.to_string().contains("keeps 12 messages of histories above 10"), "{error}");
    });
    row(out, "learn.newest.reactive-head-only", || {
        let wish = Wish { cause: Cause::Overflow, ..Wish::default() };
        let plan_of = |messages| plan(&profile(NAME), &history(messages), wish);
        assert_eq!(plan_of(alternating(9)).split, Some(4));
        assert_eq!(plan_of(with(alternating(9), 3)).split, Some(3));
        let ops = plan_of(alternating(9)).ops;
        assert!(ops.iter().any(|it| matches!(it, Op::Summarize { from: 0, to: 4, .. })));
        let _ = Part::Text("".into());
    });
}
