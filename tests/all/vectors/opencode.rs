//! OpenCode: the overflow test, the prune scan, the kept turns, what a summary stands in.

use epitome::compaction::plan::{Cause, ModelLimits, Op};
use epitome::compaction::profile::{Keep, Pass, Profile, When};
use epitome::history::{Kind, Media, MediaKind, Message, Part, Role};

use super::{Rows, Wish, call, due, history, laid_out, model, plan, profile, result, row, text, texts, user};

fn limits(window: u64, input: Option<u64>, output: u64) -> ModelLimits<'static> {
    ModelLimits { window: Some(window), input, output: Some(output), ..ModelLimits::default() }
}

/// The turns' rule of the profile, changed.
fn tail(count: Option<usize>, tokens: u64) -> Profile {
    let mut profile = profile("opencode@1.18");
    for pass in &mut profile.passes {
        if let Pass::Summarize(step) = pass
            && let Keep::Turns(turns) = &mut step.keep
        {
            (turns.count, turns.tokens) = (count, Some(tokens));
        }
    }
    profile
}

/// The large output of the tests, then so many more turns.
fn large(tool: &str, chars: usize, turns: usize) -> Vec<Message> {
    let mut out = vec![user("first"), call("a", tool), result("a", &"x".repeat(chars)), model("so")];
    for turn in 0..turns {
        out.extend([user(&format!("turn {turn}")), model("yes")]);
    }
    out
}

fn cleared(profile: &Profile, messages: Vec<Message>, wish: Wish<'_>) -> Vec<usize> {
    let plan = plan(profile, &history(messages), wish);
    plan.ops.iter().filter_map(|op| if let Op::Clear(it) = op { Some(it.message) } else { None }).collect()
}

pub(crate) fn rows() -> Rows {
    let mut out = Rows::new();
    let tests: [(&str, ModelLimits<'static>, u64, bool); 8] = [
        ("80k-of-100k", limits(100_000, None, 32_000), 80_000, true),
        ("110k-of-200k", limits(200_000, None, 32_000), 110_000, false),
        ("cache-counts", limits(100_000, None, 32_000), 60_000 + 10_000 + 10_000, true),
        ("input-274k-of-272k", limits(400_000, Some(272_000), 128_000), 274_000, true),
        ("input-230k-of-272k", limits(400_000, Some(272_000), 128_000), 230_000, false),
        ("input-120k-out-10k", limits(200_000, Some(120_000), 10_000), 59_999, false),
        ("context-0", limits(0, None, 0), 10, false),
        ("input-200k-198k", limits(200_000, Some(200_000), 32_000), 198_000, true),
    ];
    for (name, limits, tokens, expected) in tests {
        row(&mut out, format!("opencode.overflow.{name}"), move || {
            assert_eq!(due(&profile("opencode@1.18"), limits, tokens), expected);
        });
    }
    row(&mut out, "opencode.overflow.auto-false", || {
        let profile = profile("opencode@1.18")
            .honouring(&|key| (key == "opencode:compaction.auto").then(|| false.into()));
        assert!(!due(&profile, limits(100_000, None, 32_000), 99_000));
    });
    row(&mut out, "opencode.overflow.seed-is-strict", || {
        let (old, new) = (profile("opencode"), profile("opencode@1.18"));
        let limits = limits(100_000, None, 64_000);
        assert!(!due(&old, limits, 68_000) && due(&old, limits, 68_001) && due(&new, limits, 68_000));
    });
    row(&mut out, "opencode.overflow.seed-unknown-output", || {
        let limits = ModelLimits { window: Some(100_000), ..ModelLimits::default() };
        assert!(due(&profile("opencode"), limits, 68_001));
    });
    prune(&mut out);
    process(&mut out);
    row(&mut out, "opencode.estimate.round", || {
        use epitome::tokens::Estimator::{Chars4, Chars4Round};
        for (chars, up, half) in [(0, 0, 0), (1, 1, 0), (2, 1, 1), (4, 1, 1), (5, 2, 1), (6, 2, 2)] {
            let text = "x".repeat(chars);
            assert_eq!((Chars4.text(&text), Chars4Round.text(&text)), (up, half), "{chars}");
        }
    });
    out
}

fn prune(out: &mut Rows) {
    let asked = Wish { prune: true, ..Wish::default() };
    let by_itself = Wish { prune: true, auto: true, cause: Cause::Auto, ..Wish::default() };
    let on = |key: &str| (key == "opencode:compaction.prune").then(|| true.into());
    row(out, "opencode.prune.bash-cleared", move || {
        let profile = profile("opencode@1.18").honouring(&on);
        assert_eq!(cleared(&profile, large("bash", 200_000, 2), by_itself), [2]);
        let history = history(large("bash", 200_000, 2));
        let plan = plan(&profile, &history, asked);
        assert_eq!(text(&laid_out(&history, &plan)[2]), "[Old tool result content cleared]");
    });
    row(out, "opencode.prune.skill-stays", move || {
        assert!(
            cleared(&profile("opencode@1.18").honouring(&on), large("skill", 200_000, 2), by_itself)
                .is_empty()
        );
    });
    row(out, "opencode.prune.unset", move || {
        assert!(cleared(&profile("opencode@1.18"), large("bash", 200_000, 2), by_itself).is_empty());
        // The seed's runs unless it is switched off.
        assert_eq!(cleared(&profile("opencode"), large("bash", 200_000, 2), by_itself), [2]);
        let off =
            profile("opencode").honouring(&|key| (key == "env:OPENCODE_DISABLE_PRUNE").then(|| "1".into()));
        assert!(cleared(&off, large("bash", 200_000, 2), by_itself).is_empty());
    });
    row(out, "opencode.prune.two-turns-protected", move || {
        assert!(cleared(&profile("opencode"), large("bash", 200_000, 0), asked).is_empty());
        assert!(cleared(&profile("opencode"), large("bash", 200_000, 1), asked).is_empty());
        assert_eq!(cleared(&profile("opencode"), large("bash", 200_000, 2), asked), [2]);
    });
    row(out, "opencode.prune.crossing-is-cleared", move || {
        // 30k and 30k tokens: the older crosses 40,000.
        let mut messages = large("bash", 120_000, 0);
        messages.extend([call("b", "bash"), result("b", &"x".repeat(120_000)), user("two"), user("three")]);
        assert_eq!(cleared(&profile("opencode"), messages, asked), [2]);
    });
    row(out, "opencode.prune.minimum-is-strict", move || {
        // 40,000 protected and exactly 20,000 behind: not worth it; one character more is.
        for (chars, expected) in [(80_000, vec![]), (80_001, vec![2])] {
            let mut messages = large("bash", chars, 0);
            messages.extend([
                call("b", "bash"),
                result("b", &"x".repeat(160_000)),
                user("two"),
                user("three"),
            ]);
            assert_eq!(cleared(&profile("opencode"), messages, asked), expected, "{chars}");
        }
    });
    row(out, "opencode.prune.stops-at-summary", move || {
        let mut messages = large("bash", 400_000, 0);
        messages.push(Message::text(Role::Assistant, Kind::Summary, "summary"));
        messages.extend([user("two"), model("a"), user("three"), user("four")]);
        assert!(cleared(&profile("opencode"), messages, asked).is_empty());
    });
    row(out, "opencode.prune.stops-at-cleared", move || {
        let mut messages = large("bash", 400_000, 0);
        let mut old = result("b", "[Old tool result content cleared]");
        let Part::Output(it) = &mut old.parts[0] else { panic!() };
        it.cleared = true;
        messages.extend([call("b", "bash"), old, user("two"), user("three")]);
        assert!(cleared(&profile("opencode"), messages, asked).is_empty());
    });
}

/// Three turns of a prompt and an answer of so many characters.
fn three(chars: [usize; 3]) -> Vec<Message> {
    ["one", "two", "three"]
        .iter()
        .zip(chars)
        .flat_map(|(it, chars)| [user(it), model(&"x".repeat(chars))])
        .collect()
}

fn process(out: &mut Rows) {
    row(out, "opencode.tail.two-turns", || {
        let history = history(three([100, 100, 100]));
        let plan = plan(&tail(Some(2), 10_000), &history, Wish::default());
        assert_eq!(plan.split, Some(2));
        assert_eq!(texts(&laid_out(&history, &plan))[..3], ["What did we do so far?", "S", "two"]);
    });
    row(out, "opencode.tail.shrinks-to-budget", || {
        let plan = plan(&tail(Some(2), 100), &history(three([100, 2_000, 10])), Wish::default());
        assert_eq!(plan.split, Some(4));
    });
    row(out, "opencode.tail.newest-too-large", || {
        // Neither the turn nor its answer fits: everything is summarised.
        let plan = plan(&tail(Some(2), 20), &history(three([100, 100, 2_000])), Wish::default());
        assert_eq!(plan.split, Some(6));
    });
    row(out, "opencode.tail.media-counts", || {
        let mut messages = three([100, 100, 10]);
        let data = "A".repeat(4_000);
        let media = Media { kind: MediaKind::Image, mime: "image/png".into(), data: data.into(), size: None };
        messages.push(Message::new(Role::User, Kind::Said, vec![Part::Media(media)]));
        assert_eq!(plan(&tail(None, 100), &history(messages), Wish::default()).split, Some(7));
    });
    row(out, "opencode.tail.split-turn", || {
        let messages = vec![user("one"), model(&"x".repeat(100)), user(&"y".repeat(2_000)), model("kept")];
        let plan = plan(&tail(None, 100), &history(messages), Wish::default());
        assert_eq!(plan.split, Some(3));
    });
    row(out, "opencode.tail.all-fits", || {
        assert_eq!(plan(&tail(None, 10_000), &history(three([9, 9, 9])), Wish::default()).split, Some(6));
    });
    row(out, "opencode.tail.none", || {
        assert_eq!(plan(&tail(Some(0), 10_000), &history(three([9, 9, 9])), Wish::default()).split, Some(6));
    });
    row(out, "opencode.tail.budget-default", || {
        // min(15,000, max(2,000, floor(usable / 4))), usable 68,000 of 100,000.
        let messages: Vec<Message> = (0..100).flat_map(|_| [user("q"), model(&"x".repeat(4_000))]).collect();
        let wish = |window| Wish { limits: limits(window, None, 32_000), ..Wish::default() };
        let kept = |window| {
            200 - plan(&profile("opencode@1.18"), &history(messages.clone()), wish(window)).split.unwrap()
        };
        assert_eq!([kept(100_000), kept(60_000), kept(36_000)], [28, 12, 2]);
    });
    row(out, "opencode.tail.earlier-summaries-do-not-count", || {
        // The summary in the last turn but one is far larger than the budget, and the turn fits all the same.
        let mut messages = three([4_000, 100, 100]);
        let large = "s".repeat(80_000);
        messages.splice(
            2..2,
            [
                Message::text(Role::User, Kind::Marker, "What did we do so far?"),
                Message::text(Role::Assistant, Kind::Summary, large),
            ],
        );
        let history = history(messages);
        let plan = plan(&tail(None, 200), &history, Wish::default());
        assert_eq!(plan.split, Some(4));
        assert_eq!(texts(&laid_out(&history, &plan))[2..4], ["two", &"x".repeat(100)]);
    });
    row(out, "opencode.process.head-only", || {
        let plan = plan(&tail(Some(2), 10_000), &history(three([100, 100, 100])), Wish::default());
        let need = plan.need.unwrap();
        assert_eq!((need.from, need.shown_from, need.to), (0, 0, 2));
    });
    row(out, "opencode.order", || {
        // Before the next request the summary, if the last step overflowed; at the end of the loop, always, the clearing.
        for name in ["opencode", "opencode@1.18"] {
            let passes = profile(name).passes;
            let [Pass::Summarize(first), Pass::Outputs(then)] = passes.as_slice() else { panic!("{name}") };
            assert_eq!((first.when, then.when), (When::Due, When::Always), "{name}");
        }
        // Below the threshold only the second runs.
        let wish =
            Wish { auto: true, cause: Cause::Auto, limits: limits(400_000, None, 32_000), ..Wish::default() };
        let found = plan(&profile("opencode"), &history(large("bash", 400_000, 2)), wish);
        assert!(found.act && found.need.is_none());
    });
    row(out, "opencode.constant.transcript", || {
        let chars = |name| profile(name).summarize().unwrap().prompts.output_chars;
        assert_eq!((chars("opencode@1.18"), chars("opencode")), (Some(2_000), None));
    });
    row(out, "opencode.process.auto-continues", || {
        let history = history(three([100, 100, 100]));
        let wish = Wish { cause: Cause::Auto, ..Wish::default() };
        let found = laid_out(&history, &plan(&profile("opencode@1.18"), &history, wish));
        assert_eq!(found.last().unwrap().kind, Kind::Continue);
        let found = laid_out(&history, &plan(&profile("opencode@1.18"), &history, Wish::default()));
        assert!(found.iter().all(|it| it.kind != Kind::Continue));
    });
    for name in ["opencode", "opencode@1.18"] {
        row(out, format!("opencode.process.replay.{name}"), move || {
            let media =
                Media { kind: MediaKind::Image, mime: "image/png".into(), data: "AAAA".into(), size: None };
            let mut messages = three([100, 100, 100]);
            messages.push(Message::new(
                Role::User,
                Kind::Said,
                vec![Part::Text("look".into()), Part::Media(media)],
            ));
            let history = history(messages);
            let wish = Wish { cause: Cause::Overflow, ..Wish::default() };
            let found = laid_out(&history, &plan(&profile(name), &history, wish));
            assert_eq!(texts(&found), ["What did we do so far?", "S", "look\n[Attached image/png: image]"]);
        });
        row(out, format!("opencode.process.nothing-to-replay.{name}"), move || {
            let history = history(vec![user("one"), model(&"x".repeat(400))]);
            let wish = Wish { cause: Cause::Overflow, ..Wish::default() };
            let found = laid_out(&history, &plan(&profile(name), &history, wish));
            assert_eq!(found.last().unwrap().kind, Kind::Continue);
            assert!(text(found.last().unwrap()).contains("too large"));
        });
        row(out, format!("opencode.process.second-compaction.{name}"), move || {
            // The first summary is part of what is summarised, and stands nowhere else.
            let first = Message::text(Role::Assistant, Kind::Summary, "FIRST");
            let mark = Message::text(Role::User, Kind::Marker, "What did we do so far?");
            let history = history([vec![mark, first], three([4_000, 40_000, 90_000])].concat());
            let plan = plan(&profile(name), &history, Wish::default());
            let need = plan.need.clone().unwrap();
            assert_eq!(need.from, 0);
            let found = laid_out(&history, &plan);
            assert_eq!(found.iter().filter(|it| it.kind == Kind::Summary).count(), 1);
            assert!(!texts(&found).join("\n").contains("FIRST"));
        });
    }
}
