//! OpenCode: overflow and prune (seed 000; reference 1.2 and 1.4).

use epitome::compaction::plan::{ModelLimits, Moment};
use epitome::compaction::profile::{Pass, Profile, Select};
use epitome::history::{Call, Kind, Message, Output, Part, Role};

use super::{Dice, differences, due, replaced, rounds, same};
use crate::vectors::{Wish, history, model, plan, profile, user};

#[derive(Debug, Clone, PartialEq)]
enum State {
    Completed(String),
    Compacted,
    Error(String),
}

#[derive(Debug, Clone)]
enum Said {
    User,
    Text,
    Summary,
    Tools(Vec<(&'static str, State)>),
}

/// Where the scan begins to clear, what makes it worth it, which tools it leaves out, how a text is counted.
struct Rules {
    protect: u64,
    minimum: u64,
    protected: &'static [&'static str],
    tokens: fn(u64) -> u64,
}

/// `prune`: which parts are compacted, by the number of the message and of the tool in it.
fn prune(messages: &[Said], rules: &Rules) -> Vec<(usize, usize)> {
    let (mut total, mut pruned, mut turns) = (0, 0, 0);
    let mut marked = Vec::new();
    'scan: for (at, message) in messages.iter().enumerate().rev() {
        if matches!(message, Said::User) {
            turns += 1;
        }
        if turns < 2 {
            continue;
        }
        match message {
            Said::Summary => break 'scan,
            Said::Tools(parts) => {
                for (part, (tool, state)) in parts.iter().enumerate().rev() {
                    if rules.protected.contains(tool) {
                        continue;
                    }
                    let output = match state {
                        State::Error(_) => continue,
                        State::Compacted => break 'scan,
                        State::Completed(output) => output,
                    };
                    let estimate = (rules.tokens)(output.encode_utf16().count() as u64);
                    total += estimate;
                    if total > rules.protect {
                        pruned += estimate;
                        marked.push((at, part));
                    }
                }
            }
            Said::User | Said::Text => {}
        }
    }
    marked.sort_unstable();
    if pruned > rules.minimum { marked } else { Vec::new() }
}

fn session(dice: &mut Dice) -> Vec<Said> {
    let mut out = vec![Said::User];
    for _ in 0..dice.length(1, 14) {
        out.push(match dice.of(0, 9) {
            0..=2 => Said::User,
            3 => Said::Text,
            4 if dice.once_in(3) => Said::Summary,
            _ => {
                let parts = (0..dice.length(1, 3)).map(|_| {
                    // Not shorter than the placeholder: that is a stated deviation.
                    let chars = dice.length(60, 700);
                    let text = dice.text(chars);
                    let state = match dice.of(0, 11) {
                        0 => State::Error(text),
                        1 if dice.once_in(2) => State::Compacted,
                        _ => State::Completed(text),
                    };
                    (dice.one(&["bash", "read", "skill"]), state)
                });
                Said::Tools(parts.collect())
            }
        });
    }
    out
}

fn ours(session: &[Said]) -> Vec<Message> {
    let message = |(at, said): (usize, &Said)| match said {
        Said::User => user("go on"),
        Said::Text => model("so it is"),
        Said::Summary => Message::text(Role::Assistant, Kind::Summary, "what was done"),
        Said::Tools(parts) => {
            let calls = parts.iter().enumerate().map(|(part, (tool, _))| {
                let (id, name) = (format!("{at}.{part}").into(), (*tool).into());
                Part::Call(Call { id, name, input: "{}".into(), freeform: false, signature: None })
            });
            let outputs = parts.iter().enumerate().map(|(part, (tool, state))| {
                let (text, failed, cleared) = match state {
                    State::Completed(text) => (text.as_str(), false, false),
                    State::Error(text) => (text.as_str(), true, false),
                    State::Compacted => ("[Old tool result content cleared]", false, true),
                };
                let id = format!("{at}.{part}");
                Part::Output(Output { name: Some((*tool).into()), failed, cleared, ..Output::new(id, text) })
            });
            // As its own format is read: calls and outputs in one message.
            Message::new(Role::Assistant, Kind::Said, calls.chain(outputs).collect())
        }
    };
    session.iter().enumerate().map(message).collect()
}

/// The profile with its numbers a hundredth.
fn small(name: &str) -> Profile {
    let mut profile = profile(name);
    for pass in &mut profile.passes {
        if let Pass::Outputs(step) = pass {
            assert_eq!((&step.select, step.minimum), (&Select::Beyond(40_000), 20_000));
            (step.select, step.minimum) = (Select::Beyond(400), 200);
        }
    }
    profile
}

#[test]
fn prunes() {
    let seed = Rules { protect: 400, minimum: 200, protected: &[], tokens: |it| it.div_ceil(4) };
    // Math.round of a quarter.
    let new = Rules { protected: &["skill"], tokens: |it| (2 * it + 4) / 8, ..seed };
    for (name, rules) in [("opencode", seed), ("opencode@1.18", new)] {
        let profile = small(name);
        let mut some = 0;
        differences(name, rounds(), |dice| {
            let session = session(dice);
            let theirs = prune(&session, &rules);
            some += u64::from(!theirs.is_empty());
            let plan = plan(&profile, &history(ours(&session)), Wish { prune: true, ..Wish::default() });
            // Outputs stand behind the calls.
            let calls = |at: usize| if let Said::Tools(parts) = &session[at] { parts.len() } else { 0 };
            let found: Vec<(usize, usize)> =
                replaced(&plan).into_keys().map(|(at, part)| (at, part - calls(at))).collect();
            let all = plan.ops.iter().all(|it| matches!(it, epitome::compaction::plan::Op::Clear(it) if it.text == "[Old tool result content cleared]"));
            same(&format!("{session:?}"), &(found, all), &(theirs, true))
        });
        assert!(some > rounds() / 20, "only {some} histories have anything to prune");
    }
}

/// `isOverflow` of December 2025.
fn overflow_then(count: u64, context: u64, output: u64) -> bool {
    let reserved = output.min(32_000);
    let reserved = if reserved == 0 { 32_000 } else { reserved };
    context > 0 && count as i64 > context as i64 - reserved as i64
}

/// `isOverflow` of 1.18.
fn overflow_now(count: u64, context: u64, output: u64, input: Option<u64>) -> bool {
    let max = output.min(32_000);
    let max = if max == 0 { 32_000 } else { max };
    let usable = match input {
        Some(input) => input.saturating_sub(max.min(20_000)),
        None => context.saturating_sub(max),
    };
    context > 0 && count >= usable
}

#[test]
fn overflows() {
    differences("opencode overflow", rounds(), |dice| {
        // A model whose answer takes its whole window overflows at nothing; there is no such model.
        let context: u64 = dice.one(&[64_000, 100_000, 128_000, 200_000, 400_000, 1_000_000]);
        let output = dice.one(&[0, 4_096, 10_000, 32_000, 64_000, 128_000]);
        let input = if dice.once_in(3) { Some(context - dice.one(&[0, 8_000, 32_000])) } else { None };
        let reserve = if output == 0 { 32_000 } else { output.min(32_000) };
        let around = dice.one(&[
            context - reserve,
            input.unwrap_or(context).saturating_sub(reserve.min(20_000)),
            context / 2,
        ]);
        let count = around + dice.of(0, 4) - 2;
        let limits = |input| ModelLimits {
            window: Some(context),
            output: Some(output),
            input,
            ..ModelLimits::default()
        };
        let messages = || vec![user("u"), model("a")];
        let found = due(&profile("opencode"), messages(), count, &limits(input), &Moment::default());
        same(
            &format!("seed: {count} of {context}, {output} out"),
            &found,
            &overflow_then(count, context, output),
        )?;
        let found = due(&profile("opencode@1.18"), messages(), count, &limits(input), &Moment::default());
        same(
            &format!("1.18: {count} of {context}, {output} out, {input:?} in"),
            &found,
            &overflow_now(count, context, output, input),
        )
    });
}
