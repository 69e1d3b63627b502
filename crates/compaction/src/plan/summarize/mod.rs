//! The new history around a summary: what is summarized, what stays, and in which order.

pub(super) mod keep;
pub(super) mod mark;
mod restore;
mod shorten;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::plan::draft::{Draft, Segment, boundary_from, is_head, number};
use crate::plan::{Cause, Need, Op, Reason, counts, is_work};
use crate::profile::{Keep, Slot, Summarize, TooLong};
use history::{Kind, Media, MediaKind, Message, Part, Role, Text};
use keep::{KeptRegion, new_message};

/// At most one in this many of the summarized tokens is put back as text.
const RESTORE_DIVISOR: u64 = 4;

/// A summary may have at most one token for this many that it replaces.
const MIN_COMPRESSION: u64 = 3;

/// Replaces messages by a summary, in the profile's layout.
pub(super) fn run(draft: &mut Draft<'_>, step: &Summarize, pass: usize) -> Result<(), Reason> {
    mark::nothing_new(draft.history)?;
    let (items, done) = (draft.items.clone(), draft.message_ops.len());
    if matches!(step.keep, Keep::Budget(_)) {
        context_first(draft);
    }
    let result = replace(draft, step, pass);
    if result.is_err() {
        draft.items = items;
        draft.message_ops.truncate(done);
    }
    result
}

/// Moves context that an earlier compaction left behind prompts in front of them.
fn context_first(draft: &mut Draft<'_>) {
    let is = |it: &Segment, what: &dyn Fn(&Message) -> bool| draft.message(it).is_some_and(what);
    let summary = draft.items.iter().position(|it| is(it, &|it| it.kind == Kind::Summary)).unwrap_or(0);
    let before = &draft.items[..summary];
    if before.iter().any(|it| is(it, &|it| matches!(it.role, Role::Assistant | Role::Tool))) {
        return;
    }
    let first = before.iter().take_while(|it| is(it, &is_head)).count();
    let (context, prompts): (Vec<Segment>, Vec<Segment>) =
        before[first..].iter().cloned().partition(|it| is(it, &is_head));
    let why = "context that an earlier compaction left after prompts stays before them";
    let moved = context.iter().filter_map(Segment::old);
    draft.message_ops.extend(moved.map(|message| Op::Move { message, why: why.to_owned() }));
    draft.items.splice(first..summary, context.into_iter().chain(prompts));
}

fn replace(draft: &mut Draft<'_>, step: &Summarize, pass: usize) -> Result<(), Reason> {
    let head = draft.items.iter().take_while(|it| draft.message(it).is_some_and(is_head)).count();
    let layout = match draft.moment.cause {
        Cause::Manual => &step.layout,
        Cause::Auto => step.layout_auto.as_ref().unwrap_or(&step.layout),
        Cause::Overflow => {
            step.layout_overflow.as_ref().or(step.layout_auto.as_ref()).unwrap_or(&step.layout)
        }
    };
    let mut kept = keep::kept(draft, step, head)?;
    let replay = if layout.contains(&Slot::Replay) { replay(draft) } else { None };
    if replay.is_some() {
        kept.tail = draft.items.len();
        kept.why =
            "the model refused the input: everything becomes the summary, the last prompt is repeated".into();
    }
    // An earlier summary is folded into the new one, never kept beside it.
    let earlier =
        draft.items.iter().rposition(|it| draft.message(it).is_some_and(|it| it.kind == Kind::Summary));
    if let Some(earlier) = earlier.filter(|it| *it >= kept.tail) {
        kept.tail = boundary_from(draft, earlier + 1);
    }
    // A pending call must stay: without it, its future output would stand alone.
    let (pending, end) = (keep::pending(draft), draft.items.len());
    kept.tail = kept.tail.min(pending).max(head.min(pending));
    let region = &draft.items[head.min(kept.tail)..kept.tail];
    if !region.iter().any(|it| draft.message(it).is_some_and(is_work)) {
        let text = "there is no work to summarize: only context or an earlier summary";
        return Err(Reason::new("nothing_to_compact", text));
    }
    let summarized: u64 = region.iter().map(|it| draft.size(it)).sum();
    if !matches!(step.keep, Keep::Budget(_)) {
        // A summary nearly as large as what it replaces would gain nothing.
        kept.max_tokens = kept.max_tokens.min((summarized / MIN_COMPRESSION).max(keep::MIN_SUMMARY_TOKENS));
    }
    let from = number(draft, head).unwrap_or(0);
    let to = number(draft, kept.tail).unwrap_or(draft.history.messages().len());
    draft.split = Some(to);
    let snapshot = snapshot(draft, step, &kept, to);
    let why = match &snapshot {
        Some(_) => "a stored snapshot covers the removed messages and replaces them".to_owned(),
        None => std::mem::take(&mut kept.why),
    };
    draft.message_ops.push(Op::Summarize { from, to, why });
    if snapshot.is_none() {
        let shown_from = shown(draft, step, from, to);
        let KeptRegion { max_tokens, reserved, .. } = kept;
        draft.need = Some(Need { from, to, max_tokens, reserved, shown_from, pass });
    }
    let context = context(draft);
    let tail: Vec<Segment> = draft.items.split_off(kept.tail);
    let old_head = draft.items[..head.min(kept.tail)].to_vec();
    let old_head = if kept.context { old_head } else { without_context(draft, old_head) };
    let old_head = match step.keep {
        Keep::Budget(_) => with_newest_instructions(draft, old_head, head.min(kept.tail)..kept.tail, &tail),
        _ => old_head,
    };
    let around = Around {
        head: old_head,
        context,
        tail,
        replay,
        snapshot,
        to,
        restored: summarized / RESTORE_DIVISOR,
        call_waits: pending != end,
    };
    draft.items = assembled(draft, step, layout, &kept, &around);
    Ok(())
}

/// What is laid out around a summary.
struct Around {
    head: Vec<Segment>,
    context: Vec<Segment>,
    tail: Vec<Segment>,
    /// The last prompt, where it is sent again.
    replay: Option<Segment>,
    /// A stored text that takes the summary's place.
    snapshot: Option<String>,
    /// Index of the first message that is not summarized.
    to: usize,
    /// Maximum tokens of the texts that are put back.
    restored: u64,
    /// Whether the history ends with a pending call.
    call_waits: bool,
}

/// The head without the context that clients insert again by themselves.
fn without_context(draft: &mut Draft<'_>, head: Vec<Segment>) -> Vec<Segment> {
    let why = "context before the first prompt takes more than a fifth of the budget; clients add it again";
    let (gone, left): (Vec<Segment>, Vec<Segment>) =
        head.into_iter().partition(|it| draft.message(it).is_some_and(counts));
    draft.message_ops.extend(gone.iter().filter_map(Segment::old).map(|message| Op::Drop {
        from: message,
        to: message + 1,
        why: why.to_owned(),
    }));
    left
}

/// The head, in which the newest instructions of each tag (`<collaboration_mode>`) take the place of those that they
/// replace. `region`: positions of the items that become the summary.
fn with_newest_instructions(
    draft: &mut Draft<'_>,
    mut head: Vec<Segment>,
    region: Range<usize>,
    tail: &[Segment],
) -> Vec<Segment> {
    /// A longer text describes the model that is used, which a client gives by itself. Bytes.
    const LONG: usize = 8_192;
    let tag = |it: &Segment| Some(draft.message(it).and_then(Message::instruction_tag)?.to_owned());
    let newest: BTreeMap<String, Segment> =
        draft.items[region].iter().filter_map(|it| Some((tag(it)?, it.clone()))).collect();
    let in_tail: BTreeSet<String> = tail.iter().filter_map(tag).collect();
    let is_old = |it: &Segment| tag(it).is_some_and(|it| newest.contains_key(&it) || in_tail.contains(&it));
    let gone: Vec<Segment> = head.extract_if(.., |it| is_old(it)).collect();
    let is_short = |it: &Segment| draft.message(it).is_some_and(|it| it.plain().len() <= LONG);
    let replaces = |it: &str| gone.iter().any(|gone| tag(gone).as_deref() == Some(it));
    let moved: Vec<Segment> = newest
        .iter()
        .filter(|(tag, it)| !in_tail.contains(*tag) && (is_short(it) || replaces(tag)))
        .map(|it| it.1.clone())
        .collect();
    let drops = gone.iter().filter_map(Segment::old).map(|from| Op::Drop {
        from,
        to: from + 1,
        why: "later instructions replace these".to_owned(),
    });
    let moves = moved
        .iter()
        .filter_map(Segment::old)
        .map(|message| Op::Move { message, why: "the newest instructions of their kind stay".to_owned() });
    draft.message_ops.extend(drops.chain(moves));
    head.extend(moved);
    head
}

/// The new history, slot by slot.
fn assembled(
    draft: &Draft<'_>,
    step: &Summarize,
    layout: &[Slot],
    kept: &KeptRegion,
    around: &Around,
) -> Vec<Segment> {
    let Around { head, context, tail, replay, snapshot, to, restored, call_waits } = around;
    let staying: BTreeSet<usize> = tail.iter().chain(&kept.user).filter_map(Segment::old).collect();
    let stays = |index: usize| staying.contains(&index);
    let prompt_next = kept
        .user
        .first()
        .or(tail.first())
        .and_then(|it| draft.message(it))
        .is_some_and(|it| it.role == Role::User);
    let mut items = Vec::new();
    for slot in layout {
        match slot {
            Slot::Head => items.extend(head.iter().cloned()),
            Slot::Context => items.extend(context.iter().cloned()),
            Slot::UserMessages => items.extend(kept.user.iter().cloned()),
            Slot::OlderUserMessages => {
                items.extend(kept.user[..kept.user.len().saturating_sub(1)].iter().cloned());
            }
            Slot::LastUserMessage => items.extend(kept.user.last().cloned()),
            Slot::Summary => items.push(match snapshot {
                Some(text) => new_message(keep::role(step.role), Kind::Summary, text),
                None => Segment::Summary {
                    role: step.role,
                    before: step.before.replace("{user-messages}", &kept.joined),
                    after: step.after.clone(),
                },
            }),
            Slot::Ack(text) => items.push(new_message(Role::Assistant, Kind::Ack, text)),
            Slot::AckPrompt(text) if prompt_next => items.push(new_message(Role::Assistant, Kind::Ack, text)),
            Slot::AckPrompt(_) => {}
            Slot::Marker(text) => items.push(new_message(Role::User, Kind::Marker, text)),
            Slot::Continue(text) => {
                // A prompt that is sent again needs no "go on", and a pending call continues anyway.
                if replay.is_none() && !call_waits {
                    items.push(new_message(Role::User, Kind::Continue, text));
                }
            }
            Slot::Replay => items.extend(replay.clone()),
            Slot::Restore(it) => {
                items.extend(restore::message(draft, it, *to, &stays, *restored));
            }
            Slot::Tail => {
                // A last turn too large to keep whole: its prompt stays in front of what is kept of it.
                let apart = [Slot::UserMessages, Slot::OlderUserMessages, Slot::LastUserMessage];
                if !layout.iter().any(|it| apart.contains(it)) {
                    items.extend(kept.user.iter().cloned());
                }
                items.extend(tail.iter().cloned());
            }
        }
    }
    if !layout.contains(&Slot::Tail) {
        items.extend(tail.iter().cloned());
    }
    items
}

/// The stored summary that replaces a new one, if it covers everything that goes and fits.
fn snapshot(draft: &Draft<'_>, step: &Summarize, kept: &KeptRegion, to: usize) -> Option<String> {
    let (most, stored) = (step.snapshot?, draft.request.snapshot?);
    let text =
        format!("{}{}{}", step.before.replace("{user-messages}", &kept.joined), stored.text, step.after);
    let fits = draft.counter.text(&Text::new(text.as_str())) <= most;
    (fits && stored.covers >= to && !stored.text.trim().is_empty()).then_some(text)
}

/// Instructions and context as they were last given: the newest run of such messages that holds instructions, else the
/// first run.
fn context(draft: &Draft<'_>) -> Vec<Segment> {
    let is = |at: usize| draft.message(&draft.items[at]).is_some_and(is_head);
    let mut runs: Vec<Range<usize>> = Vec::new();
    for at in (0..draft.items.len()).filter(|it| is(*it)) {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end = at + 1,
            _ => runs.push(at..at + 1),
        }
    }
    let system = |run: &&Range<usize>| {
        draft.items[(*run).clone()]
            .iter()
            .any(|it| draft.message(it).is_some_and(|it| it.role == Role::System))
    };
    let run = runs.iter().rev().find(system).or(runs.first());
    run.map(|it| draft.items[it.clone()].to_vec()).unwrap_or_default()
}

/// The last prompt as a new message, its media replaced by text. `None` if there is no earlier prompt.
fn replay(draft: &Draft<'_>) -> Option<Segment> {
    let at = draft.items.iter().rposition(|it| draft.message(it).is_some_and(Message::is_prompt))?;
    let earlier = draft.items[..at].iter().any(|it| draft.message(it).is_some_and(Message::is_prompt));
    if !earlier {
        return None;
    }
    let message = draft.message(&draft.items[at])?;
    if !message.parts.iter().any(|it| matches!(it, Part::Media(_))) {
        return Some(draft.items[at].clone());
    }
    let parts = message.parts.iter().map(|part| match part {
        Part::Media(it) => Part::Text(format!("[Attached {}: {}]", it.mime, attachment(it)).into()),
        Part::Text(_) | Part::Reasoning(_) | Part::Call(_) | Part::Output(_) | Part::Opaque(_) => {
            part.clone()
        }
    });
    Some(Segment::Made(Message::new(Role::User, Kind::Said, parts.collect())))
}

/// A word for an attachment, which has no name of its own.
fn attachment(media: &Media) -> &'static str {
    match media.kind {
        MediaKind::Image => "image",
        MediaKind::Pdf => "document",
        MediaKind::Audio => "sound",
        MediaKind::Other => "file",
    }
}

/// Index of the first message that the model is shown; after it refused the input, not the oldest.
fn shown(draft: &mut Draft<'_>, step: &Summarize, from: usize, to: usize) -> usize {
    if draft.moment.cause != Cause::Overflow {
        return from;
    }
    let units: Vec<_> =
        draft.history.units().iter().filter(|it| it.start >= from && it.end <= to).cloned().collect();
    let size = |unit: &Range<usize>| -> u64 {
        draft.history.messages()[unit.clone()]
            .iter()
            .filter(|it| counts(it))
            .map(|it| draft.native.message(it))
            .sum()
    };
    let window = draft.request.limits.window.unwrap_or(u64::MAX);
    let most = window - step.summary.max_tokens.min(window / 2);
    let mut left: u64 = units.iter().map(size).sum();
    let skipped = match step.too_long {
        TooLong::Fails => 0,
        // Refused even if our count says that it fits: leave out at least one unit, and keep one.
        TooLong::Oldest => {
            let mut gone = 0;
            while gone + 1 < units.len() && (gone == 0 || left > most) {
                left = left.saturating_sub(size(&units[gone]));
                gone += 1;
            }
            gone
        }
        TooLong::Rounds(rounds) => {
            let is_round = |it: &&Range<usize>| draft.history.messages()[it.start].role == Role::Assistant;
            let count = units.iter().filter(is_round).count();
            if count < 2 {
                0
            } else {
                let step = ((count as f64 * rounds.share).floor() as usize).max(1);
                let mut gone = 0;
                for _ in 0..rounds.tries {
                    if gone > 0 && left <= most {
                        break;
                    }
                    // A round is an answer of the model with everything up to its next answer.
                    let mut seen = 0;
                    while gone + 1 < units.len() && seen < step {
                        left = left.saturating_sub(size(&units[gone]));
                        gone += 1;
                        seen += usize::from(units.get(gone).is_some_and(|it| is_round(&it)));
                    }
                }
                gone
            }
        }
    };
    let Some(unit) = units.get(skipped).filter(|_| skipped > 0) else { return from };
    let (to, why) = (
        unit.start,
        "the model refused the input: the oldest messages are not shown to it; an offline summary reads them all",
    );
    draft.message_ops.push(Op::Skip { from, to, why: why.to_owned() });
    to
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::summarize::shorten::answer::tests::{PROFILE, compacted};
    use crate::plan::{Moment, PlanRequest, plan};
    use crate::profile::Profile;
    use history::{Call, History, Meta, Output};
    use tokens::{TokenCounter, Tokenizer};

    #[test]
    fn context_that_an_earlier_compaction_left_behind_prompts_stays() {
        let said = |role, text: &str| Message::text(role, Kind::Said, text);
        let context = |role, text: &str| Message::text(role, Kind::Context, text);
        let messages = vec![
            said(Role::User, "Build the kiln."),
            context(Role::System, "Ask before you fire it."),
            context(Role::User, "The yard is /yard."),
            said(Role::User, "And its chimney."),
            Message::text(Role::Assistant, Kind::Summary, "The base is laid."),
            said(Role::Assistant, &"Another brick is laid. ".repeat(900)),
            said(Role::User, "How far is it?"),
            said(Role::Assistant, "The chimney is left."),
        ];
        let short = compacted(&History::new(messages, Meta::default()), 1_000);
        let texts: Vec<&str> = short.iter().map(|it| it.2.as_str()).collect();
        let kept = ["Ask before you fire it.", "The yard is /yard.", "The kiln.", "Understood."];
        assert_eq!(texts, [&kept[..], &["How far is it?", "The chimney is left."]].concat());
    }

    #[test]
    fn the_newest_instructions_of_a_kind_replace_the_older_ones() {
        let said = |role, text: &str| Message::text(role, Kind::Said, text);
        let tells = |text: &str| Message::text(Role::System, Kind::Context, text);
        let messages = vec![
            tells("<permissions> Write in /yard."),
            tells("<mode> Plan, and change nothing."),
            said(Role::User, "Build the kiln."),
            said(Role::Assistant, &"Another brick is planned. ".repeat(300)),
            tells("<mode> You may build."),
            tells("<tools> The hod is new."),
            tells(&format!("<model> {}", "You lay bricks. ".repeat(600))),
            said(Role::User, "Start."),
            said(Role::Assistant, &"Another brick is laid. ".repeat(600)),
            said(Role::User, "How far is it?"),
            said(Role::Assistant, "The chimney is left."),
        ];
        let short = compacted(&History::new(messages, Meta::default()), 1_000);
        let told = short.iter().filter(|it| it.0 == Role::System).map(|it| it.2.as_str());
        assert_eq!(
            told.collect::<Vec<_>>(),
            ["<permissions> Write in /yard.", "<mode> You may build.", "<tools> The hod is new."]
        );
    }

    #[test]
    fn beside_a_large_call_that_waits_the_summary_has_its_share() {
        let call = |id: &str| {
            let (id, name) = (id.into(), "read".into());
            Part::Call(Call { id, name, input: "{}".into(), freeform: false, signature: None })
        };
        let (one, other) = (call("1"), call("2"));
        let output = Part::Output(Output::new("1", "A brick of clay. ".repeat(2_000)));
        let messages = vec![
            Message::text(Role::User, Kind::Said, "Build the kiln."),
            Message::text(Role::Assistant, Kind::Said, "Another brick is laid. ".repeat(4_000)),
            Message::text(Role::User, Kind::Said, "Plan its chimney."),
            Message { from: Some(3), ..Message::new(Role::Assistant, Kind::Said, vec![one, other]) },
            Message { from: Some(4), ..Message::new(Role::Tool, Kind::Said, vec![output]) },
        ];
        let history = History::new(messages, Meta::default());
        let profile = Profile::parse(PROFILE, "short.toml", &[]).unwrap();
        let counter = TokenCounter::new(&history, Tokenizer::Auto, None);
        let handle = |_: &str| "0000000000".to_owned();
        let planned = plan(&history, &counter, &PlanRequest::new(&profile, &handle), &Moment::default());
        let most = planned.need.map(|it| it.max_tokens);
        assert!(most > Some(1_000), "{most:?} tokens for the summary: {}", planned.reason.text);
    }

    #[test]
    fn a_call_that_waits_stays_whole_and_the_summary_gives_way() {
        let input = format!("{{\"prompt\":\"{}\"}}", "Lay brick upon brick. ".repeat(100));
        let (id, name) = ("1".into(), "delegate".into());
        let call = Call { id, name, input: input.as_str().into(), freeform: false, signature: None };
        let messages = vec![
            Message::text(Role::User, Kind::Said, "Build the kiln."),
            Message::text(Role::Assistant, Kind::Said, "Another brick is laid. ".repeat(900)),
            Message::text(Role::User, Kind::Said, "Plan its chimney."),
            Message { from: Some(3), ..Message::new(Role::Assistant, Kind::Said, vec![Part::Call(call)]) },
        ];
        let history = History::new(messages, Meta::default());
        // The summary's usual share of 1,100 tokens would leave the tail about 300.
        let short = compacted(&history, 1_100);
        let kinds: Vec<_> = short.iter().map(|it| (it.0, it.1)).collect();
        assert_eq!(kinds[..1], [(Role::User, Kind::Summary)]);
        assert_eq!(short[short.len() - 2].2, "Plan its chimney.");
        assert_eq!(kinds[kinds.len() - 1], (Role::Assistant, Kind::Said));
    }
}
