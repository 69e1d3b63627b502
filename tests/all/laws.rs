//! The invariants of the design as laws: over generated histories, and over every session of the corpus.

use std::collections::BTreeSet;

use epitome::compaction::plan::{self, ModelLimits, Moment, Op, Plan, PlanRequest};
use epitome::compaction::profile::Profile;
use epitome::history::{Call, History, Kind, Message, Meta, Output, Part, Reasoning, Role};
use epitome::profiles::BUILT_IN;
use epitome::sessions::{self, Format, MemorySource, validate, wire};
use epitome::tokens::{TokenCounter, Tokenizer};
use proptest::prelude::*;

use crate::corpus;

fn plan_of(history: &History, counter: &TokenCounter, profile: &Profile, budget: Option<u64>) -> Plan {
    let request = PlanRequest {
        budget,
        limits: ModelLimits { window: Some(200_000), output: Some(32_000), ..ModelLimits::default() },
        ..PlanRequest::new(profile, &|_| "0000000000".to_owned())
    };
    plan::plan(history, counter, &request, &Moment::default())
}

fn compacts_within_a_budget(profile: &Profile) -> bool {
    profile.name == "epitome"
}

/// Everything that must hold of a profile on a history.
fn check(history: &History, profile: &Profile, share: u64) -> Result<(), String> {
    let counter = TokenCounter::new(history, Tokenizer::Auto, None);
    let counted = |it: &&Message| plan::counts(it);
    let total: u64 = history.messages().iter().filter(counted).map(|it| counter.message(it)).sum();
    let budget = compacts_within_a_budget(profile).then_some(total * share / 100);
    let plan = plan_of(history, &counter, profile, budget);
    if plan != plan_of(history, &counter, profile, budget) {
        return Err("the same history gives another plan".into());
    }
    if !plan.act {
        return if plan.reason.code.is_empty() {
            Err("nothing is done, and nobody says why".into())
        } else {
            Ok(())
        };
    }
    // A summary that fills what was allowed.
    let words = plan.need.as_ref().map_or(0, |it| it.max_tokens.saturating_sub(26) / 2);
    let end = plan::end_mark(&plan::behind(history, &plan));
    let touched = plan.ops.iter().any(|it| matches!(it, Op::Shorten(_) | Op::Clear(_)));
    let summary = format!(
        "{}{}{}",
        sessions::SUMMARY_START,
        " s".repeat(words as usize / 2),
        end.map_or(String::new(), |it| format!(" [end {it}]"))
    );
    let outcome = match plan::apply(history, &counter, &plan, Some(&summary)) {
        Ok(outcome) => outcome,
        Err(rejected) if matches!(rejected.code, "grew") => return Ok(()),
        Err(rejected) => return Err(format!("rejected: {}: {}", rejected.code, rejected.text)),
    };
    let after = outcome.history.messages();
    if outcome.tokens > total {
        return Err(format!("{total} tokens became {}", outcome.tokens));
    }
    // In a short session, what cannot be cut may exceed a budget, and so may a last unit that is still open, which the
    // model has yet to see; it must shrink all the same.
    let last = history.units().last().map_or(&[][..], |it| &history.messages()[it.clone()]);
    let calls: usize = last.iter().map(|it| it.calls().count()).sum();
    let open = calls > last.iter().map(|it| it.outputs().count()).sum();
    let stays = if open { last.iter().map(|it| counter.message(it)).sum() } else { 0 };
    if let Some(budget) = budget
        && total >= 2_000
        && outcome.tokens > budget + stays + 8
    {
        return Err(format!("{} tokens in a budget of {budget}", outcome.tokens));
    }
    // Units whole: of each, all messages or none, but for the prompt that is kept in front of its turn.
    for unit in history.units() {
        let kept = unit.clone().filter(|it| after.iter().any(|new| new.from == Some(*it as u32))).count();
        if kept != 0 && kept != unit.len() {
            return Err(format!("{kept} messages of the unit {unit:?} are left"));
        }
    }
    // Calls and outputs in pairs, as they were: also in a message that carries words beside an output.
    let (alone, were) = (alone(after), alone(history.messages()));
    if let Some(new) = alone.difference(&were).next() {
        return Err(format!("{new:?} has lost its other half"));
    }
    // The last prompt and all after it, word for word, or the plan says why not.
    if let Some(last) = history.last_prompt() {
        for (number, message) in history.messages().iter().enumerate().skip(last) {
            let same = after.iter().any(|it| it == message);
            let said = plan.ops.iter().any(|op| match op {
                Op::Clear(op) | Op::Shorten(op) => op.message == number,
                Op::Drop { from, to, .. } | Op::Summarize { from, to, .. } => (*from..*to).contains(&number),
                Op::Collapse { from, to, .. } => (*from..*to).contains(&number),
                Op::Move { message, .. } => *message == number,
                Op::Skip { .. } => false,
            });
            if !same && !said {
                return Err(format!("message {number} behind the last prompt changed, and no op says so"));
            }
        }
    }
    // The edit gives the outcome.
    let replace = outcome.replace;
    let mut spliced = history.messages()[..replace.from].to_vec();
    spliced.extend_from_slice(&after[replace.from..replace.from + replace.count]);
    spliced.extend_from_slice(&history.messages()[replace.to..]);
    if spliced != after {
        return Err(format!("the edit {replace:?} does not give the outcome"));
    }
    for api in Format::ALL.into_iter().filter(|it| it.is_wire()) {
        let broken = validate::check(api, &wire::messages(&outcome.history, api).0);
        if let Some(first) = broken.first() {
            return Err(format!("{}: {first:?}", api.name()));
        }
    }
    // Forced on its own outcome with nothing new, nothing is done.
    if plan.need.is_some() && !touched {
        let counter = TokenCounter::new(&outcome.history, Tokenizer::Auto, None);
        let again = plan_of(&outcome.history, &counter, profile, budget);
        if again.act {
            return Err(format!("its own outcome is compacted again: {}", again.reason.text));
        }
    }
    // A history that grew since belongs to the end.
    let mut grown = history.messages().to_vec();
    grown.push(Message {
        from: Some(grown.len() as u32),
        ..Message::text(Role::User, Kind::Said, "one more thing")
    });
    let grown = History::new(grown, history.meta.clone());
    let rebased =
        plan::apply(&grown, &TokenCounter::new(&grown, Tokenizer::Auto, None), &plan, Some(&summary));
    match rebased {
        Ok(it) if it.history.messages().last() == grown.messages().last() => Ok(()),
        Ok(_) => Err("what came after the plan is not at the end".into()),
        Err(rejected) if rejected.code == "grew" => Ok(()),
        Err(rejected) => Err(format!("a history that grew: {}", rejected.text)),
    }
}

/// Ids of outputs without a call before them, and of calls without an output behind them.
fn alone(messages: &[Message]) -> BTreeSet<String> {
    let (mut open, mut out) = (BTreeSet::new(), BTreeSet::new());
    for part in messages.iter().flat_map(|it| &it.parts) {
        match part {
            Part::Call(call) => {
                open.insert(call.id.to_string());
            }
            Part::Output(output) if !open.remove(&*output.id) => {
                out.insert(output.id.to_string());
            }
            Part::Output(_) | Part::Text(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {}
        }
    }
    out.extend(open);
    out
}

fn profiles() -> Vec<Profile> {
    BUILT_IN.iter().map(|(name, _)| epitome::profiles::built_in(name).unwrap()).collect()
}

#[derive(Debug, Clone)]
enum Step {
    Prompt(usize),
    Context(usize),
    Summary(usize),
    Answer(usize),
    Thought,
    /// Parallel calls, each with the size of its output or none.
    Calls(Vec<Option<usize>>),
    /// An output without a call.
    Orphan(usize),
    /// A call, and its output in one message with what the user says to it.
    Interrupted(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![8 => 0usize..400, 2 => 400usize..6_000, 1 => 6_000usize..60_000];
    let step = prop_oneof![
        4 => size.clone().prop_map(Step::Prompt),
        1 => (1usize..200).prop_map(Step::Context),
        1 => (1usize..600).prop_map(Step::Summary),
        4 => size.clone().prop_map(Step::Answer),
        1 => Just(Step::Thought),
        6 => prop::collection::vec(prop::option::weighted(0.95, size), 1..4).prop_map(Step::Calls),
        1 => (1usize..300).prop_map(Step::Orphan),
        2 => (1usize..3_000).prop_map(Step::Interrupted),
    ];
    prop::collection::vec(step, 0..40)
}

fn filler(number: usize, size: usize) -> String {
    let words = ["alpha", "Beta", "src/main.rs", "42", "error:", "日本語", "\n", "{\"a\": 1}", "never"];
    let mut out = String::new();
    let mut at = number;
    while out.len() < size {
        out.push_str(words[at % words.len()]);
        out.push(' ');
        at = at.wrapping_mul(31).wrapping_add(7);
    }
    out
}

fn build(steps: &[Step]) -> History {
    let mut messages: Vec<Message> = Vec::new();
    let mut push = |message: Message| {
        let from = Some(messages.len() as u32);
        messages.push(Message { from, ..message });
    };
    let output = |id: String, text: String| Output::new(id, text);
    let call = |number: usize, at: usize| {
        let id = format!("call_{number}_{at}").into();
        let input = "{\"command\":\"just check\"}".into();
        Part::Call(Call { id, name: "Bash".into(), input, freeform: false, signature: None })
    };
    for (number, step) in steps.iter().enumerate() {
        match step {
            Step::Prompt(size) => push(Message::text(Role::User, Kind::Said, filler(number, size + 1))),
            Step::Context(size) => push(Message::text(Role::User, Kind::Context, filler(number, *size))),
            Step::Summary(size) => push(Message::text(Role::User, Kind::Summary, filler(number, *size))),
            Step::Answer(size) => push(Message::text(Role::Assistant, Kind::Said, filler(number, size + 1))),
            Step::Thought => {
                let thought = Reasoning { text: "hm".into(), signature: Some("c2lnbmVk".into()) };
                push(Message::new(Role::Assistant, Kind::Said, vec![Part::Reasoning(thought)]));
            }
            Step::Calls(outputs) => {
                let calls = (0..outputs.len()).map(|at| call(number, at)).collect();
                push(Message::new(Role::Assistant, Kind::Said, calls));
                for (at, size) in outputs.iter().enumerate() {
                    if let Some(size) = size {
                        let it = output(format!("call_{number}_{at}"), filler(number + at, *size));
                        push(Message::new(Role::Tool, Kind::Said, vec![Part::Output(it)]));
                    }
                }
            }
            Step::Orphan(size) => {
                let it = output(format!("lost_{number}"), filler(number, *size));
                push(Message::new(Role::Tool, Kind::Said, vec![Part::Output(it)]));
            }
            Step::Interrupted(size) => {
                push(Message::new(Role::Assistant, Kind::Said, vec![call(number, 0)]));
                let it = output(format!("call_{number}_0"), filler(number, *size));
                let words = Part::Text(filler(number + 1, 60).as_str().into());
                push(Message::new(Role::User, Kind::Said, vec![Part::Output(it), words]));
            }
        }
    }
    History::new(messages, Meta::default())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn laws_hold_on_any_history(steps in steps(), share in 5u64..60) {
        let history = build(&steps);
        for profile in profiles() {
            if let Err(what) = check(&history, &profile, share) {
                prop_assert!(false, "{}: {}", profile.name, what);
            }
        }
    }
}

#[test]
fn a_batch_that_is_still_open_stays_whatever_the_budget() {
    let history = build(&[Step::Answer(1852), Step::Calls(vec![Some(4175), None, Some(86)])]);
    let profile = epitome::profiles::built_in("epitome").unwrap();
    check(&history, &profile, 5).unwrap();
}

#[test]
fn laws_hold_on_every_session_of_the_corpus() {
    let sessions = corpus::of_corpus("laws_hold_on_every_session_of_the_corpus", &corpus::KINDS);
    let mut wrong = Vec::new();
    for path in &sessions {
        let bytes = std::fs::read(path).unwrap();
        let source = MemorySource::new("session", bytes.as_slice());
        let session = sessions::read(&source, None).unwrap();
        let same = sessions::write(&source, &session, &session.history, sessions::Mode::Patch).unwrap();
        if same.bytes(&source).unwrap() != bytes {
            wrong.push(format!("{}: written back without a plan, it is not the same", path.display()));
        }
        for profile in profiles() {
            for share in [10, 20, 50] {
                if let Err(what) = check(&session.history, &profile, share) {
                    wrong.push(format!("{}: {} at {share} %: {what}", path.display(), profile.name));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
