//! Text of the summarized part that is put back: files as last read, the plan, outputs of some tools.
//!
//! A file counts as unchanged if no edit follows the last time it was read. Its text comes from the history;
//! from disk only where the user asked for that.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::plan::draft::{Draft, Segment};
use crate::profile::{Restore, Restored};
use history::tools::{self, Meaning};
use history::{Call, Kind, Message, Role, Text};
use tokens::middle;

/// A text that could be put back, and what it is called.
struct Restorable<'a> {
    /// Number of the message that holds it.
    at: usize,
    name: String,
    body: RestoredText<'a>,
}

enum RestoredText<'a> {
    Whole(Cow<'a, str>),
    /// Only named, with the reason: the history does not hold the file's current content.
    Stale(&'static str),
    /// Only named, with the reason: the text is kept elsewhere in the new history.
    Kept(&'static str),
}

/// The message that puts texts back, if there are any. `kept` says which messages stay; `room` limits its
/// tokens in addition to the step's own limits.
pub(super) fn message(
    draft: &Draft<'_>,
    step: &Restore,
    to: usize,
    kept: &dyn Fn(usize) -> bool,
    room: u64,
) -> Option<Segment> {
    let messages = draft.history.messages();
    let mut found = match &step.what {
        Restored::Files => files(draft, messages, to, kept),
        Restored::Plan => plan(&messages[..to]),
        Restored::Outputs(names) => outputs(draft, names, to),
    };
    found.sort_by_key(|it| std::cmp::Reverse(it.at));
    found.truncate(step.count);
    if let (Restored::Files, Some(on_disk)) = (&step.what, draft.request.on_disk) {
        for it in &mut found {
            if let (RestoredText::Stale(_) | RestoredText::Whole(_), Some(text)) =
                (&it.body, on_disk(&it.name))
            {
                it.body = RestoredText::Whole(text.into());
            }
        }
    }
    let measure = |text: &str| draft.counter.text(&Text::new(text));
    let mut left = step.total.min(room);
    let mut out: Vec<String> = Vec::new();
    for it in found {
        let title = step.title.replace("{name}", &it.name);
        let said = |why: &str| format!("{title} ({why})");
        let piece = match it.body {
            RestoredText::Stale(why) | RestoredText::Kept(why) => said(why),
            RestoredText::Whole(text) if measure(&text) <= step.each.min(left) => format!("{title}\n{text}"),
            RestoredText::Whole(text) if step.cut && left > 0 => {
                format!("{title}\n{}", beginning(&text, step.each.min(left), &measure))
            }
            RestoredText::Whole(text) => {
                said(&format!("{} tokens; read it again if you need it", measure(&text)))
            }
        };
        let cost = measure(&piece);
        if cost > left {
            continue;
        }
        left -= cost;
        out.push(piece);
    }
    if out.is_empty() {
        return None;
    }
    // In the order in which things happened.
    out.reverse();
    Some(Segment::Made(Message::text(Role::User, Kind::Context, out.join("\n\n"))))
}

/// The beginning of a text, at most `tokens` of it, cut at a line break where possible.
fn beginning(text: &str, tokens: u64, measure: &dyn Fn(&str) -> u64) -> String {
    const MARK: &str = "\n[… cut here]";
    let budget = tokens.saturating_sub(measure(MARK));
    let mut keep = text.len();
    for _ in 0..6 {
        let (_, cut, _) = middle::split(text, keep, 0);
        let size = measure(cut);
        if size <= budget {
            let cut = cut.rfind('\n').filter(|at| *at > cut.len() / 2).map_or(cut, |at| &cut[..at]);
            return format!("{cut}{MARK}");
        }
        keep = (keep as u64 * budget / size.max(1)) as usize * 95 / 100;
    }
    MARK.trim_start().to_owned()
}

/// Every path that was read or changed, with its text as read unless it was changed since.
fn files<'a>(
    draft: &Draft<'a>,
    messages: &'a [Message],
    to: usize,
    kept: &dyn Fn(usize) -> bool,
) -> Vec<Restorable<'a>> {
    /// Where a path was last read, with its text, and where it was last changed.
    #[derive(Default)]
    struct Path<'a> {
        read: Option<(usize, &'a str)>,
        changed: Option<usize>,
    }
    let of_message = |(at, it): (usize, &'a Message)| it.outputs().map(move |it| (&*it.id, (at, it)));
    let outputs: BTreeMap<_, _> = messages.iter().enumerate().flat_map(of_message).collect();
    let mut paths: BTreeMap<String, Path<'a>> = BTreeMap::new();
    for (at, message) in messages.iter().enumerate() {
        for call in message.calls() {
            let Some((answer, output)) = outputs.get(&*call.id).copied() else { continue };
            if output.failed {
                continue;
            }
            for action in tools::actions(call) {
                let Some(path) = action.path else { continue };
                match action.meaning {
                    Meaning::Read if output.cleared || draft.is_replaced(answer) || !is_whole(call) => {}
                    Meaning::Read => {
                        paths.entry(path).or_default().read = Some((answer, output.text.as_str()));
                    }
                    Meaning::Edit | Meaning::Create => {
                        paths.entry(path).or_default().changed = Some(at);
                    }
                    Meaning::Delete | Meaning::Rename => {
                        paths.remove(&path);
                    }
                    _ => {}
                }
            }
        }
    }
    let found = paths.into_iter().filter_map(|(name, it)| {
        let (at, body) = match (it.read, it.changed) {
            (None, changed) => {
                (changed?, RestoredText::Stale("changed in this session; read it before editing"))
            }
            (Some((read, _)), Some(changed)) if changed > read => {
                (changed, RestoredText::Stale("changed since it was read; read it again before editing"))
            }
            (Some((read, _)), _) if kept(read) => {
                (read, RestoredText::Kept("unchanged since it was read below"))
            }
            (Some((read, text)), _) => (read, RestoredText::Whole(text.into())),
        };
        (at < to || kept(at)).then_some(Restorable { at, name, body })
    });
    found.collect()
}

/// Whether a call reads the whole file.
fn is_whole(call: &Call) -> bool {
    !["\"offset\"", "\"limit\"", "\"view_range\"", "\"start_line\"", "\"end_line\""]
        .iter()
        .any(|it| call.input.as_str().contains(it))
}

/// The plan as it was last written.
fn plan(messages: &[Message]) -> Vec<Restorable<'_>> {
    let last = messages.iter().enumerate().rev().find_map(|(at, message)| {
        let call = message
            .calls()
            .filter(|it| tools::actions(it).iter().any(|it| it.meaning == Meaning::Plan))
            .last()?;
        Some(Restorable {
            at,
            name: call.name.to_string(),
            body: RestoredText::Whole(call.input.as_str().into()),
        })
    });
    last.into_iter().collect()
}

/// Outputs of the named tools in the summarized part.
fn outputs<'a>(draft: &Draft<'a>, names: &[String], to: usize) -> Vec<Restorable<'a>> {
    let messages = &draft.history.messages()[..to];
    let mut out = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        for output in message.outputs() {
            let tool = draft.tool(output);
            if names.iter().any(|it| it == tool) && !output.cleared && !output.failed {
                out.push(Restorable {
                    at,
                    name: tool.to_owned(),
                    body: RestoredText::Whole(output.text.as_str().into()),
                });
            }
        }
    }
    out
}
