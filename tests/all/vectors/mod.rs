//! The systems' own vectors: every row of the references, by its name in `index.txt`, against the profile that follows
//! the program it was taken from.

mod claude;
mod codex;
mod gemini;
mod last;
mod laws;
mod learn;
mod mechanisms;
mod opencode;
mod references;
mod shapes;
mod supermemory;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use epitome::compaction::plan::{
    self, Cause, ModelLimits, Moment, Op, Plan, PlanOutcome, PlanRequest, Reason, Segment, Verdict,
};
use epitome::compaction::profile::Profile;
use epitome::history::{Call, History, Kind, Message, Meta, Output, Part, Role, Text};
use epitome::sessions::{self, Format, MemorySource};
use epitome::tokens::{Estimator, TokenCounter, Tokenizer};

/// A row: its name in the index, and what must hold.
pub(crate) type Rows = Vec<(String, Box<dyn Fn()>)>;

pub(crate) fn row(rows: &mut Rows, name: impl Into<String>, check: impl Fn() + 'static) {
    rows.push((name.into(), Box::new(check)));
}

/// Reads `index.txt`: the case's name, then after `|` what it says, or `outside: why` where the references tell of
/// something that no profile does.
#[test]
fn every_case_holds() {
    let mut rows: BTreeMap<String, Box<dyn Fn()>> = BTreeMap::new();
    let all = [
        claude::rows(),
        codex::rows(),
        gemini::rows(),
        last::rows(),
        learn::rows(),
        mechanisms::rows(),
        opencode::rows(),
        supermemory::rows(),
    ];
    for (name, check) in all.into_iter().flatten() {
        assert!(rows.insert(name.clone(), check).is_none(), "two cases are called {name}");
    }
    let mut failures = Vec::new();
    let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut listed = BTreeSet::new();
    for line in include_str!("index.txt").lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, says) = line.split_once('|').map(|(name, says)| (name.trim(), says.trim())).unwrap();
        assert!(listed.insert(name.to_owned()), "{name} is listed twice");
        let group: Vec<&str> = name.split('.').take(2).collect();
        let count = counts.entry(group.join(".")).or_default();
        if says.starts_with("outside: ") {
            count.1 += 1;
            continue;
        }
        match rows.get(name) {
            None => failures.push(format!("{name}: no case")),
            Some(check) => {
                count.0 += 1;
                if let Err(found) = catch_unwind(AssertUnwindSafe(check)) {
                    let text = found.downcast_ref::<String>().cloned();
                    let text = text.or_else(|| found.downcast_ref::<&str>().map(|it| (*it).to_owned()));
                    failures.push(format!("{name} ({says}): {}", text.unwrap_or_default()));
                }
            }
        }
    }
    failures
        .extend(rows.keys().filter(|it| !listed.contains(*it)).map(|it| format!("{it}: not in the index")));
    for (group, (run, outside)) in &counts {
        println!("{group}: {run} cases, {outside} outside");
    }
    assert_eq!(counts.get("gemini.split"), Some(&(18, 0)), "the split has 18 cases");
    assert!(failures.is_empty(), "{} rows fail:\n{}", failures.len(), failures.join("\n"));
}

// ── what the cases are made of ──

pub(crate) fn profile(name: &str) -> Profile {
    epitome::profiles::built_in(name).unwrap()
}

pub(crate) fn user(text: &str) -> Message {
    Message::text(Role::User, Kind::Said, text)
}

pub(crate) fn model(text: &str) -> Message {
    Message::text(Role::Assistant, Kind::Said, text)
}

pub(crate) fn call(id: &str, name: &str) -> Message {
    let call =
        Call { id: id.into(), name: name.into(), input: "{}".into(), freeform: false, signature: None };
    Message::new(Role::Assistant, Kind::Said, vec![Part::Call(call)])
}

pub(crate) fn output(id: &str, text: &str) -> Part {
    Part::Output(Output::new(id, text))
}

/// Tool outputs as the Anthropic API has them: in a user message.
pub(crate) fn results(outputs: Vec<Part>) -> Message {
    Message::new(Role::User, Kind::Said, outputs)
}

pub(crate) fn result(id: &str, text: &str) -> Message {
    results(vec![output(id, text)])
}

pub(crate) fn history(mut messages: Vec<Message>) -> History {
    for (number, message) in (0..).zip(&mut messages) {
        message.from = Some(number);
    }
    History::new(messages, Meta::default())
}

pub(crate) fn read(json: &str, format: Format) -> History {
    sessions::read(&MemorySource::new("case", json), Some(format)).unwrap().history
}

/// What a case asks for.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wish<'a> {
    pub(crate) auto: bool,
    pub(crate) prune: bool,
    pub(crate) cause: Cause,
    pub(crate) limits: ModelLimits<'a>,
    pub(crate) moment: Moment,
}

pub(crate) fn plan(profile: &Profile, history: &History, wish: Wish<'_>) -> Plan {
    let counter = counter(profile, history);
    let request = PlanRequest {
        prune_only: wish.prune,
        auto: wish.auto,
        limits: wish.limits,
        ..PlanRequest::new(profile, &|_| "0000000000".to_owned())
    };
    plan::plan(history, &counter, &request, &Moment { cause: wish.cause, ..wish.moment })
}

pub(crate) fn counter(profile: &Profile, history: &History) -> TokenCounter {
    TokenCounter::new(history, Tokenizer::Fixed(profile.estimator.unwrap_or(Estimator::Chars4)), Some(0))
}

pub(crate) fn verdict(
    profile: &Profile,
    history: &History,
    limits: &ModelLimits<'_>,
    moment: &Moment,
) -> Verdict {
    let counter = counter(profile, history);
    let filled = counter.filled(&counter.messages(history.messages()));
    plan::verdict(history, filled, profile, limits, moment)
}

pub(crate) fn apply(
    profile: &Profile,
    history: &History,
    plan: &Plan,
    summary: &str,
) -> Result<PlanOutcome, Reason> {
    let summary = plan.need.as_ref().map(|_| summary);
    plan::apply(history, &counter(profile, history), plan, summary)
}

/// The new history of a plan that acts, the summary being `S`, without the check that it shrinks: cases are small.
pub(crate) fn laid_out(history: &History, plan: &Plan) -> Vec<Message> {
    assert!(plan.act, "{}", plan.reason.text);
    let outputs: BTreeMap<(usize, usize), &str> = plan
        .ops
        .iter()
        .filter_map(|op| match op {
            Op::Clear(it) | Op::Shorten(it) => Some(((it.message, it.part), it.text.as_str())),
            _ => None,
        })
        .collect();
    let message = |item: &Segment| match item {
        Segment::Made(message) => message.clone(),
        Segment::Summary { before, after, .. } => {
            Message::text(Role::User, Kind::Summary, format!("{before}S{after}"))
        }
        Segment::Old(index) => {
            let mut message = history.messages()[*index].clone();
            for (number, part) in message.parts.iter_mut().enumerate() {
                if let (Part::Output(it), Some(text)) = (part, outputs.get(&(*index, number))) {
                    it.text = Text::new(*text);
                }
            }
            message
        }
    };
    plan.layout.iter().map(message).collect()
}

/// The text of a message, outputs included.
pub(crate) fn text(message: &Message) -> String {
    let outputs = message.outputs().map(|it| it.text.as_str().to_owned());
    outputs.chain((!message.plain().is_empty()).then(|| message.plain())).collect::<Vec<_>>().join("\n")
}

pub(crate) fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(text).collect()
}

/// Whether a profile is due at so many tokens in such a window.
pub(crate) fn due(profile: &Profile, limits: ModelLimits<'_>, tokens: u64) -> bool {
    !profile.trigger.off
        && plan::threshold(profile, &limits).is_some_and(|at| plan::passes(&profile.trigger, tokens, at))
}
