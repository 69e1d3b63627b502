//! Which tool outputs are cleared or shortened.

use super::Reason;
use super::draft::{Draft, How, Item};
use crate::history::{Kind, Message, Part, Role};
use crate::profile::{Outputs, Replace, Select, Stop};

/// An output that a pass looks at.
struct Candidate {
    at: (usize, usize),
    tokens: u64,
    chars: u64,
}

/// Runs the pass. `Err` says why nothing was replaced.
pub(super) fn run(draft: &mut Draft<'_>, step: &Outputs) -> Result<(), Reason> {
    if !draft.request.only.is_empty() {
        let at = named(draft);
        if at.is_empty() {
            let text = format!("none of the calls {} has an output here", draft.request.only.join(", "));
            return Err(Reason { code: "nothing_to_compact", text });
        }
        return replace(draft, step, &at, "asked for by its id");
    }
    if step.idle_minutes > 0 {
        let newest = draft.history.messages().iter().rev().find_map(|it| it.at);
        let idle = newest.map_or(0, |at| draft.moment.now.saturating_sub(at) / 60_000);
        if idle < step.idle_minutes as i64 {
            let text =
                format!("last message {idle} minutes ago; outputs are cleared after {}", step.idle_minutes);
            return Err(Reason { code: "below_threshold", text });
        }
    }
    let candidates = scan(draft, step);
    let (taken, why): (Vec<Candidate>, String) = match step.select {
        Select::Beyond(protect) => {
            let protect = draft.request.protect.unwrap_or(protect);
            let mut sum = 0;
            let beyond = candidates.into_iter().filter(|it| {
                sum += it.tokens;
                sum > protect
            });
            (beyond.collect(), format!("older than the newest {protect} tokens of outputs"))
        }
        Select::AllButLast(count) => {
            (candidates.into_iter().skip(count).collect(), format!("not among the newest {count} outputs"))
        }
        Select::Batch(limit) => {
            (batch(draft, candidates, limit), format!("its batch exceeds {limit} characters"))
        }
    };
    let taken: Vec<Candidate> = taken.into_iter().filter(|it| it.chars > step.longer_than).collect();
    let gain: u64 = taken.iter().map(|it| it.tokens).sum();
    if taken.is_empty() || gain <= step.minimum {
        let text = format!(
            "{gain} tokens of outputs could be cleared; worth it above {} ({} outputs found)",
            step.minimum,
            taken.len()
        );
        return Err(Reason { code: "too_small", text });
    }
    let at: Vec<_> = taken.iter().map(|it| it.at).collect();
    replace(draft, step, &at, &why)
}

/// The outputs of the calls that were named.
fn named(draft: &Draft<'_>) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    for (index, message) in draft.history.messages().iter().enumerate() {
        for (part, it) in message.parts.iter().enumerate() {
            if let Part::Output(output) = it
                && draft.request.only.iter().any(|id| **id == *output.id)
            {
                out.push((index, part));
            }
        }
    }
    out
}

/// The outputs that a pass may take, newest first.
fn scan(draft: &Draft<'_>, step: &Outputs) -> Vec<Candidate> {
    let mut out = Vec::new();
    let mut turns = 0;
    for (age, item) in draft.items.iter().rev().enumerate() {
        let Item::Old(index) = *item else { continue };
        let message = &draft.history.messages()[index];
        turns += u32::from(starts_turn(message));
        if turns < step.protect_turns || age < step.protect_messages {
            continue;
        }
        if message.kind == Kind::Summary && step.stop_at.contains(&Stop::Summary) {
            return out;
        }
        for (part, it) in message.parts.iter().enumerate().rev() {
            let Part::Output(output) = it else { continue };
            let tool = draft.tool(output);
            let is = |names: &[String]| names.iter().any(|it| it == tool);
            if is(&step.except_tools)
                || is(draft.request.exclude_tools)
                || (!step.only_tools.is_empty() && !is(&step.only_tools))
            {
                continue;
            }
            if output.cleared {
                if step.stop_at.contains(&Stop::Cleared) {
                    return out;
                }
                continue;
            }
            if draft.replaced.contains_key(&(index, part)) {
                continue;
            }
            let chars = output.text.weight().utf16;
            out.push(Candidate { at: (index, part), tokens: draft.native.text(&output.text), chars });
        }
    }
    out
}

/// Whether a message is in the user's role and more than tool outputs: what a scan counts turns by.
fn starts_turn(message: &Message) -> bool {
    message.role == Role::User && message.parts.iter().any(|it| !matches!(it, Part::Output(_)))
}

/// Of the newest batch of outputs, the largest first until the rest fits.
fn batch(draft: &Draft<'_>, candidates: Vec<Candidate>, limit: u64) -> Vec<Candidate> {
    let from =
        draft.history.messages().iter().rposition(|it| it.outputs().next().is_none()).map_or(0, |it| it + 1);
    let mut batch: Vec<Candidate> = candidates.into_iter().filter(|it| it.at.0 >= from).collect();
    let mut sum: u64 = batch.iter().map(|it| it.chars).sum();
    batch.sort_by_key(|it| (std::cmp::Reverse(it.chars), it.at));
    batch.retain(|it| {
        let take = sum > limit;
        if take {
            sum -= it.chars;
        }
        take
    });
    batch
}

/// Replaces the outputs at these places.
fn replace(draft: &mut Draft<'_>, step: &Outputs, at: &[(usize, usize)], why: &str) -> Result<(), Reason> {
    for &at in at {
        let Some(output) = draft.output(at.0, at.1) else { continue };
        let tokens = draft.ruler.text(&output.text);
        let chars = output.text.weight().utf16;
        let (tool, original) = (draft.tool(output), output.text.as_str());
        let recall = draft.request.recall;
        let fill = |text: &str, handle: &str, omitted: u64| {
            text.replace("{recall}", recall)
                .replace("{handle}", handle)
                .replace("{tokens}", &thousands(tokens))
                .replace("{chars}", &thousands(chars))
                .replace("{omitted}", &thousands(omitted))
                .replace("{tool}", tool)
        };
        match &step.replace {
            Replace::Placeholder(text) => {
                draft.replace(at, How::Clear, why, |handle| fill(text, handle, chars))
            }
            Replace::Ends { chars: keep, head, before, between, after } => {
                let Some((first, last, omitted)) = ends(original, *keep, *head) else { continue };
                draft.replace(at, How::Shorten, why, |handle| {
                    let [before, between, after] =
                        [before, between, after].map(|it| fill(it, handle, omitted));
                    format!("{before}{first}{between}{last}{after}")
                });
            }
        }
    }
    Ok(())
}

/// The first and last characters of a text, `keep` in all, and how many are left out. None if nothing would be.
pub(super) fn ends(text: &str, keep: usize, head: f64) -> Option<(&str, &str, u64)> {
    let count = text.chars().count();
    if count <= keep {
        return None;
    }
    let first = (keep as f64 * head).floor() as usize;
    let last = keep - first;
    let at = |chars: usize| text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    Some((&text[..at(first)], &text[at(count - last)..], (count - keep) as u64))
}

/// `1234567` as `1,234,567`.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
