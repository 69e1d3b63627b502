//! Which tool outputs are cleared or shortened.

use super::Reason;
use super::draft::{Draft, Replacement, Segment};
use crate::profile::{Outputs, Replace, ScanStop, Select};
use history::{Kind, Message, Output, Part, Role, Text};

/// An output that a pass looks at, as earlier passes left it.
struct Candidate {
    at: (usize, usize),
    tokens: u64,
    chars: u64,
    /// Already cleared: it counts among the newest outputs, but stays as it is.
    cleared: bool,
}

/// Runs the pass. `Err` says why nothing was replaced.
pub(super) fn run(draft: &mut Draft<'_>, step: &Outputs) -> Result<(), Reason> {
    if !draft.request.only.is_empty() {
        let at = requested(draft);
        if at.is_empty() {
            let text = format!("none of the calls {} has an output here", draft.request.only.join(", "));
            return Err(Reason::new("nothing_to_compact", text));
        }
        replace(draft, step, &at, "asked for by its id");
        return Ok(());
    }
    if step.idle_minutes > 0 {
        let newest = draft.history.messages().iter().rev().find_map(|it| it.at);
        let idle = newest.map_or(0, |at| draft.moment.now.saturating_sub(at) / 60_000);
        if idle < step.idle_minutes as i64 {
            let text =
                format!("last message {idle} minutes ago; outputs are cleared after {}", step.idle_minutes);
            return Err(Reason::new("below_threshold", text));
        }
    }
    let mut candidates = scan(draft, step);
    let found = candidates.iter().filter(|it| !it.cleared).count();
    if step.above > 0 && found <= step.above {
        let text = format!("{found} outputs; cleared above {}", step.above);
        return Err(Reason::new("below_threshold", text));
    }
    let why = match step.select {
        Select::Beyond(protect) => {
            let protect = draft.request.protect.unwrap_or(protect);
            let mut sum = 0;
            candidates.retain(|it| {
                sum += it.tokens;
                sum > protect
            });
            format!("older than the newest {protect} tokens of outputs")
        }
        Select::Unfit(most) => return replace_unfit(draft, step, &candidates, most),
        Select::AllButLast(count) => {
            candidates.drain(..count.min(candidates.len()));
            format!("not among the newest {count} outputs")
        }
        Select::Batch(limit) => return batches(draft, step, candidates, limit, true),
        Select::EachBatch(limit) => return batches(draft, step, candidates, limit, false),
    };
    candidates.retain(|it| !it.cleared && it.chars > step.longer_than);
    let gain: u64 = candidates.iter().map(|it| it.tokens).sum();
    if candidates.is_empty() || gain <= step.minimum {
        let text = format!(
            "not worth it: {found} outputs hold {gain} clearable tokens, and the profile's minimum is {}",
            step.minimum,
        );
        return Err(Reason::new("too_small", text));
    }
    let at: Vec<_> = candidates.iter().map(|it| it.at).collect();
    replace(draft, step, &at, &why);
    Ok(())
}

/// From the newest on, replaces each output that does not fit into the rest of a budget; replacements count.
fn replace_unfit(
    draft: &mut Draft<'_>,
    step: &Outputs,
    candidates: &[Candidate],
    most: u64,
) -> Result<(), Reason> {
    let (mut sum, mut done) = (0, 0);
    let why = format!("does not fit into the {most} tokens for outputs, the newest first");
    for it in candidates {
        if sum + it.tokens <= most || it.chars <= step.longer_than {
            sum += it.tokens;
            continue;
        }
        replace(draft, step, &[it.at], &why);
        match draft.replaced.get(&it.at) {
            Some((_, op)) => {
                sum += draft.native.text(&Text::new(op.text.as_str()));
                done += 1;
            }
            None => sum += it.tokens,
        }
    }
    if done > 0 {
        return Ok(());
    }
    let text = format!("{} outputs; none that does not fit could be shortened", candidates.len());
    Err(Reason::new("too_small", text))
}

/// The outputs of the calls that were named.
fn requested(draft: &Draft<'_>) -> Vec<(usize, usize)> {
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
        let Segment::Old(index) = *item else { continue };
        let message = &draft.history.messages()[index];
        turns += u32::from(starts_turn(message));
        if turns < step.protect_turns || age < step.protect_messages {
            continue;
        }
        if message.kind == Kind::Summary && step.stop_at.contains(&ScanStop::Summary) {
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
            if output.failed && step.except_failed {
                continue;
            }
            if output.cleared && step.stop_at.contains(&ScanStop::Cleared) {
                return out;
            }
            let at = (index, part);
            let replaced = draft.replaced.get(&at);
            let cleared = output.cleared || replaced.is_some_and(|(how, _)| *how == Replacement::Clear);
            if cleared && !matches!(step.select, Select::AllButLast(_)) {
                continue;
            }
            let shortened =
                replaced.map(|(_, op)| Output { text: op.text.as_str().into(), ..output.clone() });
            let output = shortened.as_ref().unwrap_or(output);
            let tokens = if step.whole_parts {
                draft.native.part(&Part::Output(output.clone()))
            } else {
                draft.native.text(&output.text)
            };
            out.push(Candidate { at, tokens, chars: output.text.size().utf16, cleared });
        }
    }
    out
}

/// Whether a message in the user's role holds more than tool outputs: the scan counts turns by these.
fn starts_turn(message: &Message) -> bool {
    message.role == Role::User && message.parts.iter().any(|it| !matches!(it, Part::Output(_)))
}

/// In batches larger than `limit` characters, replaces the largest outputs until the batch fits.
/// `newest`: only in the last batch.
fn batches(
    draft: &mut Draft<'_>,
    step: &Outputs,
    candidates: Vec<Candidate>,
    limit: u64,
    newest: bool,
) -> Result<(), Reason> {
    let messages = draft.history.messages();
    // Consecutive messages with outputs are one batch, identified by the index after its last message.
    let mut ends = vec![0; messages.len()];
    let mut end = messages.len();
    for (at, message) in messages.iter().enumerate().rev() {
        if message.outputs().next().is_none() {
            end = at;
        }
        ends[at] = end;
    }
    let mut all: std::collections::BTreeMap<usize, Vec<Candidate>> = std::collections::BTreeMap::new();
    for it in candidates {
        let end = ends[it.at.0];
        if !newest || end == messages.len() {
            all.entry(end).or_default().push(it);
        }
    }
    let why = format!("its batch exceeds {limit} characters");
    let (mut largest, mut done) = (0, 0);
    for mut batch in all.into_values() {
        let mut sum: u64 = batch.iter().map(|it| it.chars).sum();
        largest = largest.max(sum);
        batch.sort_by_key(|it| (std::cmp::Reverse(it.chars), it.at));
        for it in batch.iter().filter(|it| it.chars > step.longer_than) {
            if sum <= limit {
                break;
            }
            replace(draft, step, &[it.at], &why);
            if let Some((_, op)) = draft.replaced.get(&it.at) {
                sum = sum - it.chars + op.text.encode_utf16().count() as u64;
                done += 1;
            }
        }
    }
    if done > 0 {
        return Ok(());
    }
    let text = format!("the largest batch of outputs has {largest} characters of {limit}");
    Err(Reason::new("too_small", text))
}

/// Replaces the outputs at these places.
fn replace(draft: &mut Draft<'_>, step: &Outputs, at: &[(usize, usize)], why: &str) {
    for &at in at {
        let Some(output) = draft.output(at.0, at.1) else { continue };
        let tokens = draft.counter.text(&output.text);
        let chars = output.text.size().utf16;
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
                draft.replace(at, Replacement::Clear, why, |handle| fill(text, handle, chars));
            }
            Replace::Ends(it) => {
                let by_lines = it.lines.as_ref().filter(|lines| lines.tools.iter().any(|it| it == tool));
                let (first, between, last, omitted) = match by_lines {
                    Some(lines) => {
                        let Some((first, last, omitted)) = end_lines(original, lines.each) else { continue };
                        (first, lines.between.as_str(), last, omitted)
                    }
                    None => {
                        let Some((first, last, omitted)) = ends(original, it.chars, it.head) else {
                            continue;
                        };
                        (first, it.between.as_str(), last, omitted)
                    }
                };
                let count = |text: &str| thousands(text.chars().count() as u64);
                draft.replace(at, Replacement::Shorten, why, |handle| {
                    let [before, between, after] =
                        [it.before.as_str(), between, it.after.as_str()].map(|it| {
                            fill(it, handle, omitted)
                                .replace("{first}", &count(first))
                                .replace("{last}", &count(last))
                        });
                    format!("{before}{first}{between}{last}{after}")
                });
            }
        }
    }
}

/// The first and the last `each` lines of a text, and how many lines are left out. `None` if none would be.
fn end_lines(text: &str, each: usize) -> Option<(&str, &str, u64)> {
    let breaks: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let lines = breaks.len() + 1;
    if each == 0 || lines <= 2 * each {
        return None;
    }
    Some((&text[..breaks[each - 1]], &text[breaks[lines - each - 1] + 1..], (lines - 2 * each) as u64))
}

/// The beginning and end of a text, `keep` characters in all (`head`: share at the beginning), and how many
/// are left out. `None` if none would be.
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
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
