//! From a plan and a summary to a new history, or a refusal.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use super::draft::Segment;
use super::summarize::keep;
use super::{Op, OutputOp, Plan, Reason, counts, prefix_of};
use history::{History, Kind, Message, Part, Text};
use tokens::TokenCounter;

#[derive(Debug, Clone, PartialEq)]
pub struct PlanOutcome {
    pub history: History,
    pub tokens: u64,
    /// The edit that turns the old messages into the new ones.
    pub replace: Splice,
    /// Index of the first message that differs from the old history.
    pub first_changed: usize,
    /// Tokens before it: what a provider's cache still serves.
    pub prefix_tokens: u64,
    /// Outputs removed because their call is summarized: if a call was answered twice, the second output can
    /// stand behind the cut.
    pub orphans: usize,
}

/// history' = history[..from] + new[at..at + count] + history[to..].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Splice {
    /// First message that goes.
    pub from: usize,
    /// Message after the last that goes.
    pub to: usize,
    /// How many new messages stand in their place (they begin at `from` in the new history).
    pub count: usize,
}

/// Carries out a plan. `history` may have grown since the plan was made: newer messages are kept at the end.
///
/// # Errors
/// A [`Reason`]: another history, an empty summary, or an outcome that is no smaller or cannot be counted.
pub fn apply(
    history: &History,
    counter: &TokenCounter,
    plan: &Plan,
    summary: Option<&str>,
) -> Result<PlanOutcome, Reason> {
    let old = history.messages();
    if old.len() < plan.made_for.count || prefix_of(&old[..plan.made_for.count]) != plan.made_for {
        let text = format!(
            "the plan was made for {} messages that this history of {} does not begin with",
            plan.made_for.count,
            old.len()
        );
        return Err(Reason::new("changed", text));
    }
    let summary = match (&plan.need, summary.map(str::trim)) {
        (None, _) => "",
        (Some(_), Some(text)) if !text.is_empty() => text,
        (Some(_), _) => return Err(Reason::new("empty", "the summary is empty")),
    };
    let outputs = replaced(plan);
    let mut messages: Vec<Message> = plan.layout.iter().map(|it| built(old, &outputs, it, summary)).collect();
    messages.extend(old[plan.made_for.count..].iter().cloned());
    let orphans = drop_orphans(&mut messages, &gone(old, plan));
    let before: u64 = old.iter().filter(|it| counts(it)).map(|it| counter.message(it)).sum();
    let tokens: u64 = messages.iter().filter(|it| counts(it)).map(|it| counter.message(it)).sum();
    if tokens == 0 && !messages.is_empty() {
        return Err(Reason::new("uncounted", "the new messages have 0 tokens"));
    }
    if tokens > before || (tokens == before && plan.need.is_none()) {
        return Err(Reason::new("grew", format!("{before} tokens would become {tokens}")));
    }
    let same = |new: &Message, old: &Message| new.from.is_some() && new == old;
    let front = messages.iter().zip(old).take_while(|(new, old)| same(new, old)).count();
    let most = messages.len().min(old.len()) - front;
    let back = messages
        .iter()
        .rev()
        .zip(old.iter().rev())
        .take(most)
        .take_while(|(new, old)| same(new, old))
        .count();
    let prefix = old[..front].iter().filter(|it| counts(it)).map(|it| counter.message(it)).sum();
    Ok(PlanOutcome {
        replace: Splice { from: front, to: old.len() - back, count: messages.len() - front - back },
        first_changed: front,
        prefix_tokens: prefix,
        tokens,
        orphans,
        history: History::new(messages, history.meta.clone()),
    })
}

/// The messages that will follow the summary when a plan is carried out on `history`.
pub fn behind(history: &History, plan: &Plan) -> Vec<Message> {
    let summary = plan.layout.iter().rposition(|it| matches!(it, Segment::Summary { .. }));
    let (old, outputs) = (history.messages(), replaced(plan));
    let kept = plan.layout[summary.map_or(0, |it| it + 1)..].iter().map(|it| built(old, &outputs, it, ""));
    let mut out: Vec<Message> = kept.chain(old.iter().skip(plan.made_for.count).cloned()).collect();
    drop_orphans(&mut out, &gone(old, plan));
    out
}

/// The ids of calls that are not kept.
fn gone<'a>(old: &'a [Message], plan: &Plan) -> HashSet<&'a str> {
    let laid_out: HashSet<usize> = plan.layout.iter().filter_map(Segment::old).collect();
    let stays = |at: usize| at >= plan.made_for.count || laid_out.contains(&at);
    let calls = |wanted: bool| {
        let such = old.iter().enumerate().filter(move |(at, _)| stays(*at) == wanted);
        such.flat_map(|(_, it)| it.calls()).map(|it| &*it.id)
    };
    let mut out: HashSet<&str> = calls(false).collect();
    for id in calls(true) {
        out.remove(id);
    }
    out
}

/// Removes the outputs of calls that are gone; returns how many.
fn drop_orphans(messages: &mut Vec<Message>, gone: &HashSet<&str>) -> usize {
    let is_orphan = |it: &Part| matches!(it, Part::Output(output) if gone.contains(&*output.id));
    let mut dropped = 0;
    messages.retain_mut(|message| {
        let before = message.parts.len();
        // A message that loses nothing keeps its known length.
        if message.parts.iter().any(is_orphan) {
            message.parts.retain(|it| !is_orphan(it));
            message.wire_len = None;
        }
        dropped += before - message.parts.len();
        before == 0 || !message.parts.is_empty()
    });
    dropped
}

/// The outputs that a plan replaces, by message.
fn replaced(plan: &Plan) -> BTreeMap<usize, Vec<&OutputOp>> {
    let mut outputs: BTreeMap<usize, Vec<&OutputOp>> = BTreeMap::new();
    for op in &plan.ops {
        if let Op::Clear(op) | Op::Shorten(op) = op {
            outputs.entry(op.message).or_default().push(op);
        }
    }
    outputs
}

/// The message that a segment of the layout becomes.
fn built(
    old: &[Message],
    outputs: &BTreeMap<usize, Vec<&OutputOp>>,
    item: &Segment,
    summary: &str,
) -> Message {
    match item {
        Segment::Made(message) => message.clone(),
        Segment::Summary { role, before, after } => {
            Message::text(keep::role(*role), Kind::Summary, format!("{before}{summary}{after}"))
        }
        Segment::Old(index) => {
            let mut message = old[*index].clone();
            for op in outputs.get(index).into_iter().flatten() {
                match message.parts.get_mut(op.part) {
                    Some(Part::Output(output)) => {
                        // A text that only got a note appended lost nothing but its attachment.
                        let whole = !output.text.is_empty() && op.text.starts_with(output.text.as_str());
                        output.text = Text::new(op.text.as_str());
                        output.media = [].into();
                        output.cleared = !whole;
                    }
                    Some(part @ Part::Media(_)) => *part = Part::Text(Text::new(op.text.as_str())),
                    Some(Part::Text(_) | Part::Reasoning(_) | Part::Call(_) | Part::Opaque(_)) | None => {
                        continue;
                    }
                }
                message.wire_len = None;
            }
            message
        }
    }
}
