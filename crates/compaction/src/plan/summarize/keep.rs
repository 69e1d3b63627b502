//! What stays beside a summary, and where the cut falls. Cuts fall between units only.

use super::shorten::{answer, shortened, squeeze};
use crate::plan::draft::{Draft, Segment, boundary_from, boundary_to, is_boundary, number, total_of};
use crate::plan::split::share_split;
use crate::plan::{Op, Reason, is_work, trigger};
use crate::profile::{Budget, Cut, Keep, Slot, Snip, Summarize, SummaryRole, Turns, UserMessages};
use history::{Kind, Message, Part, Role, Text};
use tokens::middle;

/// Tokens of a history below which a summary would cost more than it saves.
const MIN_HISTORY_TOKENS: u64 = 2_000;

/// Minimum budget below [`MIN_HISTORY_TOKENS`], which the summary's first line, its rules and the last request need.
const MIN_BUDGET: u64 = 500;

/// Minimum tokens of a summary; also the maximum reserved for the prompt of a pending call.
pub(super) const MIN_SUMMARY_TOKENS: u64 = 200;

/// Tokens of the tail below which the summary says more than shortened outputs would.
const MIN_TAIL_TOKENS: u64 = 1_000;

/// Percent of its budget that the summary must be left with if the last request's answer is kept whole.
const MIN_SUMMARY_PERCENT: u64 = 75;

/// As [`MIN_SUMMARY_PERCENT`], if only the last request is kept whole: the summary then need not quote it.
const MIN_SUMMARY_PERCENT_BESIDE_REQUEST: u64 = 25;

/// What a summary replaces and what stays.
pub(super) struct KeptRegion {
    /// User messages that are kept apart from the tail.
    pub(super) user: Vec<Segment>,
    /// Those messages as one text, where the profile joins them.
    pub(super) joined: String,
    /// Position of the first item of the kept tail.
    pub(super) tail: usize,
    /// Whether context in the user's role that stood before the first prompt stays.
    pub(super) context: bool,
    /// Maximum tokens of the summary.
    pub(super) max_tokens: u64,
    /// As [`Need::reserved`](crate::plan::Need::reserved).
    pub(super) reserved: Option<u64>,
    /// Why the cut falls there.
    pub(super) why: String,
}

/// Drops messages from the middle.
pub(in crate::plan) fn snip(draft: &mut Draft<'_>, step: &Snip) -> Result<(), Reason> {
    let count = draft.items.len();
    if count <= step.above {
        let text = format!("{count} messages; snipped above {}", step.above);
        return Err(Reason::new("below_threshold", text));
    }
    let head = boundary_from(draft, step.head);
    let tail = boundary_to(draft, count - step.tail);
    if head >= tail {
        let text = "the messages in the middle belong to calls at its edges";
        return Err(Reason::new("nothing_to_compact", text));
    }
    if draft.items[head..tail].iter().all(|it| draft.message(it).is_some_and(|it| it.kind == Kind::Marker)) {
        let text = "the middle contains only the marker of what was left out before";
        return Err(Reason::new("nothing_to_compact", text));
    }
    let marker = step.marker.replace("{count}", &(tail - head).to_string());
    let why = format!("more than {} messages: the first {head} and last {} stay", step.above, count - tail);
    if let (Some(from), Some(to)) = (number(draft, head), number(draft, tail - 1)) {
        draft.message_ops.push(Op::Drop { from, to: to + 1, why });
    }
    let marker = Message::text(Role::User, Kind::Marker, marker);
    draft.items.splice(head..tail, [Segment::Made(marker)]);
    Ok(())
}

/// What stays beside a step's summary. `head`: number of items of context before the first prompt.
pub(super) fn kept(draft: &mut Draft<'_>, step: &Summarize, head: usize) -> Result<KeptRegion, Reason> {
    match &step.keep {
        Keep::Nothing => Ok(keep_none(draft, step, Vec::new(), String::new())),
        Keep::UserMessages(rule) => {
            let (user, joined) = user_messages(draft, rule, &step.before);
            Ok(keep_none(draft, step, user, joined))
        }
        Keep::ShareBehind(share) => keep_share_behind(draft, step, *share),
        Keep::Messages(count) => {
            let tail = boundary_to(draft, draft.items.len().saturating_sub(*count));
            let why = format!("the last {count} messages stay, calls with their outputs");
            Ok(KeptRegion { tail, ..base_region(step, why) })
        }
        Keep::Turns(rule) => Ok(keep_turns(draft, step, rule)),
        Keep::Budget(budget) => keep_budget(draft, step, *budget, head),
    }
}

pub(in crate::plan) fn role(role: SummaryRole) -> Role {
    match role {
        SummaryRole::User => Role::User,
        SummaryRole::Assistant => Role::Assistant,
    }
}

fn base_region(step: &Summarize, why: String) -> KeptRegion {
    KeptRegion {
        user: Vec::new(),
        joined: String::new(),
        tail: 0,
        context: true,
        max_tokens: step.summary.max_tokens,
        reserved: None,
        why,
    }
}

pub(super) fn new_message(role: Role, kind: Kind, text: &str) -> Segment {
    Segment::Made(Message::text(role, kind, text))
}

/// Everything becomes the summary, except some user messages.
fn keep_none(draft: &Draft<'_>, step: &Summarize, user: Vec<Segment>, joined: String) -> KeptRegion {
    let why = match (user.len(), joined.is_empty()) {
        (0, true) => "the whole history becomes the summary".to_owned(),
        (0, false) => {
            "the whole history becomes the summary, with what the user wrote in one message".to_owned()
        }
        (count, _) => format!("the whole history becomes the summary; {count} user messages stay"),
    };
    KeptRegion { user, joined, tail: draft.items.len(), ..base_region(step, why) }
}

/// The newest user messages within a budget; the one that crosses it is cut in the middle. With
/// `rule.joined`, all of them as one text instead.
fn user_messages(draft: &Draft<'_>, rule: &UserMessages, before: &str) -> (Vec<Segment>, String) {
    let bytes = rule.tokens.saturating_mul(4) as usize;
    let mut left = rule.tokens;
    let (mut out, mut texts) = (Vec::new(), Vec::new());
    for item in draft.items.iter().rev() {
        let Some(message) = draft.message(item) else { continue };
        if left == 0 && !rule.joined {
            break;
        }
        if rule.joined && message.kind == Kind::Summary {
            texts.extend(unjoined(&message.plain(), before));
        }
        if !(message.role == Role::User && message.kind == Kind::Said && message.texts().next().is_some()) {
            continue;
        }
        if rule.joined {
            let plain = message.plain();
            if !is_fenced(&plain, rule) {
                texts.push(plain);
            }
            continue;
        }
        let whole: String = message.texts().map(Text::as_str).collect();
        if is_fenced(&whole, rule) || message.texts().any(|it| is_fenced(it.as_str(), rule)) {
            continue;
        }
        let tokens = draft.native.text(&Text::new(whole.as_str()));
        if tokens <= left {
            left -= tokens;
            out.push(standalone(draft, item));
        } else {
            out.push(new_message(
                Role::User,
                Kind::Said,
                &cut(&whole, left.saturating_mul(4) as usize, &rule.cut),
            ));
            left = 0;
        }
    }
    out.reverse();
    texts.reverse();
    let joined = match (rule.joined, texts.is_empty()) {
        (false, _) => String::new(),
        (true, true) => "(none)".to_owned(),
        (true, false) => {
            let all = texts.join("\n\n");
            if all.len() > bytes { cut(&all, bytes, &rule.cut) } else { all }
        }
    };
    (out, joined)
}

/// The user messages quoted in an earlier summary of the same form, without the `before` text around them, so
/// that frames do not nest.
fn unjoined(text: &str, before: &str) -> Option<String> {
    let (start, end) = before.split_once("{user-messages}")?;
    let inner = text.strip_prefix(start)?;
    // The last occurrence, because the user's messages may contain the same text.
    let inner = &inner[..inner.rfind(end).filter(|_| !end.is_empty())?];
    (!inner.is_empty() && inner != "(none)").then(|| inner.to_owned())
}

/// Whether a text in the user's role is not the user's: it is between fences, or an earlier summary.
fn is_fenced(text: &str, rule: &UserMessages) -> bool {
    let text = text.trim();
    let starts = |it: &str| text.get(..it.len()).is_some_and(|start| start.eq_ignore_ascii_case(it));
    let ends = |it: &str| {
        text.len()
            .checked_sub(it.len())
            .and_then(|at| text.get(at..))
            .is_some_and(|end| end.eq_ignore_ascii_case(it))
    };
    rule.fences.iter().any(|(start, end)| starts(start) && ends(end))
        || rule.summaries.iter().any(|it| text.starts_with(it.as_str()))
}

/// Cuts the middle out of a text, down to `bytes`.
fn cut(text: &str, bytes: usize, how: &Cut) -> String {
    match how {
        Cut::Tokens => middle::by_tokens(text, bytes / 4),
        Cut::Lines => middle::within_bytes(text, bytes).0,
        Cut::Text(mark) => middle::with_mark(text, bytes, mark),
    }
}

/// An item that stays although its neighbors go. A message inside a unit (said while a call ran) stays as a
/// copy without its outputs, so that its unit is removed whole.
fn standalone(draft: &Draft<'_>, item: &Segment) -> Segment {
    match item {
        Segment::Old(index) if !(draft.history.can_cut(*index) && draft.history.can_cut(index + 1)) => {
            let old = &draft.history.messages()[*index];
            let said = old.parts.iter().filter(|it| !matches!(it, Part::Output(_))).cloned().collect();
            Segment::Made(Message { from: None, parts: said, wire_len: None, ..old.clone() })
        }
        Segment::Old(_) | Segment::Made(_) | Segment::Summary { .. } => item.clone(),
    }
}

/// The tail from the first prompt behind a share of the history's JSON characters.
fn keep_share_behind(draft: &Draft<'_>, step: &Summarize, share: f64) -> Result<KeptRegion, Reason> {
    let messages: Vec<&Message> = draft.items.iter().filter_map(|it| draft.message(it)).collect();
    let sizes: Vec<u64> = draft.items.iter().map(|it| draft.json_len(it)).collect();
    let tail = share_split(&messages, &sizes, share);
    if tail == 0 {
        let text = format!(
            "no user message after the first {:.0} % of the characters, so no place to cut",
            share * 100.0
        );
        return Err(Reason::new("nothing_to_compact", text));
    }
    // `share_split` looks at user messages only, and one may stand between a call and its output.
    let tail = boundary_to(draft, tail);
    let why = format!("the first user message after {:.0} % of the characters", share * 100.0);
    Ok(KeptRegion { tail, ..base_region(step, why) })
}

/// The newest turns that fit into a budget, and of the turn before them as much of its end as still fits.
/// Sizes are of the messages' JSON, four characters a token, rounded half up (OpenCode 1.18).
fn keep_turns(draft: &Draft<'_>, step: &Summarize, rule: &Turns) -> KeptRegion {
    let usable = trigger::size(draft.request.profile, &draft.request.limits);
    let share = usable.map_or(rule.maximum, |it| (it as f64 * rule.share).floor() as u64);
    let budget = rule.tokens.unwrap_or(share.clamp(rule.minimum, rule.maximum));
    let chars: Vec<u64> = draft.items.iter().map(|it| draft.json_len(it)).collect();
    let end = draft.items.len();
    // Characters before each item, and where each item's unit begins.
    let (mut before, mut begins) = (vec![0], Vec::with_capacity(end));
    for (at, chars) in chars.iter().enumerate() {
        before.push(before[at] + chars);
        begins.push(if at == 0 || is_boundary(draft, at) { at } else { begins[at - 1] });
    }
    let size = |from: usize, to: usize| (before[to] - before[from] + 2) / 4;
    let starts: Vec<usize> =
        (0..end).filter(|at| draft.message(&draft.items[*at]).is_some_and(begins_turn)).collect();
    let (mut left, mut tail) = (budget, end);
    for &start in starts.iter().rev().take(rule.count.unwrap_or(usize::MAX)) {
        // A prompt beside an output is part of its call's unit, so the turn starts with that unit.
        let start = begins[start];
        let turn = size(start.min(tail), tail);
        if turn <= left {
            (left, tail) = (left - turn, start);
            continue;
        }
        // The first boundary after the prompt from which what remains of the turn fits.
        let fits = (start + 1..tail).find(|at| size(*at, tail) <= left && is_boundary(draft, *at));
        tail = fits.unwrap_or(tail);
        break;
    }
    let first = draft.items.iter().position(|it| draft.message(it).is_some_and(is_work));
    if first.is_some_and(|it| tail <= it) {
        // Everything but an earlier summary fits, so nothing would be left to summarize: keep no turn.
        tail = end;
    }
    let why = if tail == end {
        format!("no turn stays: none, or all of them, fit into {budget} tokens")
    } else {
        format!("the newest turns within {budget} tokens stay")
    };
    KeptRegion { tail, ..base_region(step, why) }
}

/// Whether a message begins a turn: a prompt, or the client's "go on" in the user's role.
fn begins_turn(message: &Message) -> bool {
    message.is_prompt() || (message.role == Role::User && message.kind == Kind::Continue)
}

/// Maximum tokens of the messages afterwards; an error if the history is too small to gain from a summary.
fn allowed(draft: &Draft<'_>, budget: Budget) -> Result<u64, Reason> {
    let total = draft.tokens();
    let refuse = |text| Err(Reason::new("too_small", text));
    // A budget that the user names is always tried; whether it gains anything shows in the outcome.
    if draft.request.budget.is_none() && total < MIN_HISTORY_TOKENS {
        return refuse(format!("{total} tokens; below {MIN_HISTORY_TOKENS} a summary would save nothing"));
    }
    // A share of the tokens before any pass, so that outputs cleared since do not shrink the tail; but at
    // most half of what is left now, or nothing would be gained.
    let share = ((draft.tokens_before() as f64 * budget.share) as u64).clamp(budget.minimum, budget.maximum);
    let own = share.min((total / 2).max(budget.minimum));
    let allowed = draft.request.budget.unwrap_or(own);
    if total < MIN_HISTORY_TOKENS && allowed < MIN_BUDGET {
        let text = format!(
            "{total} tokens; below {MIN_HISTORY_TOKENS}, only a budget of {MIN_BUDGET} or more leaves room for a summary"
        );
        return refuse(text);
    }
    if total <= allowed {
        return refuse(format!("{total} tokens are already within the budget of {allowed}"));
    }
    Ok(allowed)
}

/// The end of a history that a budget has to leave room for, by positions.
struct End {
    prompt: Option<usize>,
    /// The model's answer to the last prompt.
    answer: Option<usize>,
    /// Tokens of the acknowledgement that stands between the summary and a prompt.
    ack: u64,
}

/// How a budget is divided between the context in front, the summary and the tail, in tokens.
struct Division {
    allowed: u64,
    /// Whether the context that clients put in front stays.
    context: bool,
    /// Maximum of the summary.
    most: u64,
    /// The summary's size where it is known, otherwise `most`.
    summary: u64,
    /// What is left for the tail.
    room: u64,
}

fn divided(
    draft: &Draft<'_>,
    step: &Summarize,
    budget: Budget,
    head: usize,
    end: &End,
) -> Result<Division, Reason> {
    let (total, mut allowed) = (draft.tokens(), allowed(draft, budget)?);
    let refuse = |code, text| Err(Reason::new(code, text));
    // Clients insert this context again, so it stays only if it takes at most a fifth of the budget.
    let fixed = total_of(draft, 0..head);
    let context = fixed <= allowed / 5;
    let fixed = if context { fixed } else { 0 };
    let waits = pending_tokens(draft, end.prompt);
    let needed = fixed + waits + MIN_SUMMARY_TOKENS;
    if waits > 0 && draft.request.budget.is_none() {
        // What waits must not take the summary's share.
        let own = ((allowed as f64 * budget.summary) as u64).min(step.summary.max_tokens);
        allowed = allowed.max(fixed + waits + own.max(MIN_SUMMARY_TOKENS));
    } else if waits > 0 && allowed < needed {
        let text = format!(
            "a budget of {allowed} tokens; the call at the end waits for its output and must stay: with its \
             prompt, it takes {waits}; the smallest possible budget is {needed}"
        );
        return refuse("budget_too_small", text);
    }
    let share = (allowed as f64 * budget.summary) as u64;
    let most = if draft.request.budget.is_some() { share } else { share.min(step.summary.max_tokens) };
    let most = most.min(allowed.saturating_sub(fixed + waits));
    // The summary gives up to a quarter of its budget if that keeps the last request and its answer whole, and up to
    // three quarters if that keeps the request, which it then need not quote.
    let asked = end.prompt.map_or(0, |it| draft.size(&draft.items[it]));
    let whole = end.answer.map(|at| (total_of(draft, at..draft.items.len()) + end.ack, MIN_SUMMARY_PERCENT));
    let is_large = asked > allowed.saturating_sub(fixed + waits + most) / 2;
    let request_alone =
        is_large.then_some((waits + MIN_TAIL_TOKENS.max(allowed / 8), MIN_SUMMARY_PERCENT_BESIDE_REQUEST));
    let ways = [whole, request_alone].into_iter().flatten().filter(|_| draft.request.keep.is_none());
    let left = ways.map(|(kept, percent)| (allowed.saturating_sub(fixed + asked + kept).min(most), percent));
    let most = left.filter(|it| it.0 >= most * it.1 / 100).map(|it| it.0).next().unwrap_or(most);
    let summary = draft.request.summary_tokens.map_or(most, |it| it.min(allowed));
    let Some(mut room) = allowed.checked_sub(fixed + summary) else {
        let text = format!(
            "a budget of {allowed} tokens; context before the first prompt takes {fixed}, the summary \
                     {summary}"
        );
        return refuse("budget_too_small", text);
    };
    if let Some(keep) = draft.request.keep {
        // With a budget, the requested tail is only an upper bound; without one, it is granted in full.
        room = if draft.request.budget.is_some() { room.min(keep) } else { keep };
    }
    if room.saturating_add(fixed + summary) >= total {
        let text = format!("{total} tokens; the tail to keep takes {room}, and a summary {summary}");
        return refuse("too_small", text);
    }
    Ok(Division { allowed, context, most, summary, room })
}

/// Keeps as much of the tail as a budget leaves beside the summary.
fn keep_budget(
    draft: &mut Draft<'_>,
    step: &Summarize,
    budget: Budget,
    head: usize,
) -> Result<KeptRegion, Reason> {
    let holds = |it: &Segment, is: fn(&Message) -> bool| draft.message(it).is_some_and(is);
    let prompt = draft.items.iter().rposition(|it| holds(it, Message::is_prompt));
    // A prompt moved in front of what a later slash command started would look like the request for it.
    let prompt =
        prompt.filter(|at| !draft.items[*at..].iter().any(|it| holds(it, Message::is_slash_command)));
    let answer = answer::position(draft).filter(|it| prompt.is_none_or(|prompt| prompt < *it));
    let end = End { prompt, answer, ack: acknowledgement(draft, step) };
    let Division { allowed, context, most, summary, room } = divided(draft, step, budget, head, &end)?;
    // Room too small for another whole unit goes to the summary, which grows line by line.
    let known = draft.request.summary_tokens.is_some();
    let reserved = known.then_some(most);
    let cap = if draft.request.budget.is_some() { allowed } else { most.max(summary) };
    let budget = |left: u64, first: Option<&Message>| {
        let ack = if first.is_some_and(|it| it.role == Role::User) { end.ack } else { 0 };
        let room = (summary + left).saturating_sub(ack);
        if known { room.min(cap) } else { room.min(summary) }
    };
    // In a small budget, an answer that must be cut leaves the summary half of the room that it did not use.
    let spare = if allowed < MIN_HISTORY_TOKENS { most.saturating_sub(summary) / 2 } else { 0 };
    let (tail, left) = fitting(draft, head, room);
    let (LastTurn { prompt: words, tail, left }, why) = if let Some(prompt) = prompt.filter(|it| *it < tail) {
        let turn = last_turn(draft, prompt, answer.map(|it| (it, spare)), room, left);
        let kept =
            if turn.prompt.is_some() { "its prompt and its newest units" } else { "what fits of its answer" };
        let room = room.saturating_sub(turn.prompt.as_ref().map_or(0, |it| draft.size(it)));
        (turn, format!("the last turn exceeds the budget: {kept} within {room} tokens stay"))
    } else {
        let cut = answer.filter(|it| *it < tail && answer::shorten(draft, *it, room.saturating_sub(spare)));
        let (tail, left) = cut.map_or((tail, left), |at| fitting(draft, at, room));
        let turn = LastTurn { prompt: None, tail, left };
        (turn, format!("keeps the newest messages that fit into {room} tokens"))
    };
    let first = words.as_ref().or(draft.items.get(tail)).and_then(|it| draft.message(it));
    let max_tokens = budget(left, first);
    Ok(KeptRegion {
        user: words.into_iter().collect(),
        tail,
        context,
        max_tokens,
        reserved,
        ..base_region(step, why)
    })
}

/// Tokens of a pending call at the end and of as much of its prompt as must stay; 0 if no call is pending.
fn pending_tokens(draft: &Draft<'_>, prompt: Option<usize>) -> u64 {
    let waiting = total_of(draft, pending(draft)..draft.items.len());
    let asked = prompt.map_or(0, |it| draft.size(&draft.items[it]).min(MIN_SUMMARY_TOKENS));
    if waiting == 0 { 0 } else { waiting + asked }
}

fn acknowledgement(draft: &Draft<'_>, step: &Summarize) -> u64 {
    let said = |it: &Slot| match it {
        Slot::AckPrompt(text) => {
            draft.counter.message(&Message::text(Role::Assistant, Kind::Ack, text.as_str()))
        }
        _ => 0,
    };
    step.layout.iter().map(said).sum()
}

/// What is kept of the last turn.
struct LastTurn {
    /// The prompt, where the turn does not fit whole: word for word if possible, otherwise shortened. `None`
    /// if only the summary quotes it.
    prompt: Option<Segment>,
    /// Position from which on the newest units fit.
    tail: usize,
    /// Tokens that are left over.
    left: u64,
}

/// A last turn that does not fit whole. `answer`: position of the model's answer, and tokens withheld from it
/// if it is cut. `room`: tokens for the tail. `left`: those of them that no whole unit took.
fn last_turn(
    draft: &mut Draft<'_>,
    prompt: usize,
    answer: Option<(usize, u64)>,
    room: u64,
    left: u64,
) -> LastTurn {
    let end = draft.items.len();
    let asked = draft.size(&draft.items[prompt]);
    if let Some((at, spare)) = answer {
        let done = draft.message_ops.len();
        let least = total_of(draft, at..end).min(answer::MIN_TOKENS.max(room / 8));
        let words = if asked + least <= room {
            Some(standalone(draft, &draft.items[prompt]))
        } else if asked <= room * 2 {
            Some(shortened(draft, prompt, room / 2))
        } else {
            // What the summary quotes of the prompt says more than its two ends would.
            None
        };
        let room = room.saturating_sub(words.as_ref().map_or(0, |it| draft.size(it)));
        let (mut tail, mut left) = fitting(draft, prompt + 1, room);
        if tail > at {
            if !answer::shorten(draft, at, room.saturating_sub(spare).max(room.min(answer::MIN_TOKENS))) {
                draft.message_ops.truncate(done);
                return LastTurn { prompt: None, tail: end, left: room };
            }
            (tail, left) = fitting(draft, at, room);
        }
        if words.is_some() {
            note_moved_prompt(draft, prompt);
        }
        return LastTurn { prompt: words, tail, left };
    }
    let waits = pending(draft);
    let free = room.saturating_sub(total_of(draft, waits..end));
    let most = free.min(room / 2);
    let words = if asked <= most || asked <= left || asked + MIN_TAIL_TOKENS <= free {
        standalone(draft, &draft.items[prompt])
    } else {
        shortened(draft, prompt, most)
    };
    let room = room.saturating_sub(draft.size(&words));
    let (mut tail, mut left) = fitting(draft, prompt + 1, room);
    let bare = room >= MIN_TAIL_TOKENS
        && draft.items[tail..].iter().all(|it| draft.message(it).is_some_and(is_thinking));
    if tail == end || bare {
        // Not even the newest unit that did something fits: shorten its outputs until it does.
        let start = if tail > prompt + 1 { boundary_to(draft, tail - 1).max(prompt + 1) } else { end };
        if start < end {
            squeeze(draft, start, room);
            (tail, left) = fitting(draft, prompt + 1, room);
        }
    }
    note_moved_prompt(draft, prompt);
    LastTurn { prompt: Some(words), tail, left }
}

/// Whether a message holds only reasoning.
fn is_thinking(message: &Message) -> bool {
    message.parts.iter().all(|it| matches!(it, Part::Reasoning(_)))
}

fn note_moved_prompt(draft: &mut Draft<'_>, prompt: usize) {
    let message = number(draft, prompt).unwrap_or(0);
    let why = "the last prompt stays, although not everything after it fits".to_owned();
    draft.message_ops.push(Op::Move { message, why });
}

/// Whether this is the history's last message and holds a call without an output.
fn is_pending(draft: &Draft<'_>, message: &Message) -> bool {
    message.from.is_some_and(|it| it as usize + 1 >= draft.history.messages().len())
        && has_unanswered(draft, message)
}

/// Position of a unit at the end that has a pending call; the number of items if there is none.
pub(super) fn pending(draft: &Draft<'_>) -> usize {
    let end = draft.items.len();
    match draft.items.last().and_then(|it| draft.message(it)) {
        Some(last) if last.calls().next().is_some() && is_pending(draft, last) => boundary_to(draft, end - 1),
        Some(last) if last.outputs().next().is_some() => {
            let start = boundary_to(draft, end - 1);
            let waits = draft.items[start..]
                .iter()
                .filter_map(|it| draft.message(it))
                .any(|it| has_unanswered(draft, it));
            if waits { start } else { end }
        }
        Some(_) | None => end,
    }
}

/// Whether a message holds a call without an output.
fn has_unanswered(draft: &Draft<'_>, message: &Message) -> bool {
    message.calls().any(|it| !draft.is_answered(&it.id))
}

/// Position from which on whole units fit into `room` tokens, not before `first`; and the tokens left over.
fn fitting(draft: &Draft<'_>, first: usize, room: u64) -> (usize, u64) {
    let (mut tail, mut left) = (draft.items.len(), room);
    while tail > first {
        let start = boundary_to(draft, tail - 1);
        if start < first {
            break;
        }
        let size = total_of(draft, start..tail);
        if size > left {
            break;
        }
        (tail, left) = (start, left - size);
    }
    (tail, left)
}
