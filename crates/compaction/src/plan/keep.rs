//! What stays beside a summary, and where the cut falls. Cuts fall between units only.

use super::draft::{Draft, Segment, boundary_from, boundary_to, is_boundary, number, total_of};
use super::shorten::{answer, shortened, squeeze};
use super::split::share_split;
use super::{Op, Reason, is_work};
use crate::profile::{Budget, Cut, Keep, Slot, Snip, Summarize, SummaryRole, Turns, UserMessages};
use history::{Kind, Message, Part, Role, Text};
use tokens::middle;

/// Tokens below which a summary would cost more than it saves.
const SMALLEST: u64 = 2_000;

/// Tokens that a summary's first line, its rules and the last request need in a session below that.
const MIN_BUDGET: u64 = 500;

/// Tokens that a summary may always have, and the prompt of a call that waits.
pub(super) const SMALLEST_SUMMARY: u64 = 200;

/// Tokens of an end below which the summary says more than what is left of shortened outputs.
const WORTH: u64 = 1_000;

/// Percent of a summary's budget that the answer to the last request must leave it.
const MIN_SUMMARY_PERCENT: u64 = 75;

/// What a summary replaces and what stays.
pub(super) struct KeptRegion {
    /// User messages that stay apart from the end.
    pub(super) user: Vec<Segment>,
    /// The same as one text, where the profile joins them.
    pub(super) joined: String,
    /// Position of the first item of the kept end.
    pub(super) tail: usize,
    /// Whether context in the user's role that stood before the first prompt stays.
    pub(super) context: bool,
    /// Tokens that the summary may take.
    pub(super) max_tokens: u64,
    /// Tokens that it could have taken before its size was known; nothing while it is not.
    pub(super) reserved: Option<u64>,
    /// Why the cut falls there.
    pub(super) why: String,
}

/// Drops messages from the middle.
pub(super) fn snip(draft: &mut Draft<'_>, step: &Snip) -> Result<(), Reason> {
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
        let text = "the middle holds nothing but the mark of what was left out before";
        return Err(Reason::new("nothing_to_compact", text));
    }
    let marker = step.marker.replace("{count}", &(tail - head).to_string());
    let why = format!("more than {} messages: the first {head} and last {} stay", step.above, count - tail);
    if let (Some(from), Some(to)) = (number(draft, head), number(draft, tail - 1)) {
        draft.others.push(Op::Drop { from, to: to + 1, why });
    }
    let marker = Message::text(Role::User, Kind::Marker, marker);
    draft.items.splice(head..tail, [Segment::Made(marker)]);
    Ok(())
}

/// What stays beside a step's summary. `head`: the items of context before the first prompt.
pub(super) fn kept(draft: &mut Draft<'_>, step: &Summarize, head: usize) -> Result<KeptRegion, Reason> {
    match &step.keep {
        Keep::Nothing => Ok(whole(draft, step, Vec::new(), String::new())),
        Keep::UserMessages(rule) => {
            let (user, joined) = user_messages(draft, rule, &step.before);
            Ok(whole(draft, step, user, joined))
        }
        Keep::ShareBehind(share) => share_behind(draft, step, *share),
        Keep::Messages(count) => {
            let tail = boundary_to(draft, draft.items.len().saturating_sub(*count));
            let why = format!("the last {count} messages stay, calls with their outputs");
            Ok(KeptRegion { tail, ..plain(step, why) })
        }
        Keep::Turns(rule) => Ok(turns(draft, step, rule)),
        Keep::Budget(budget) => within(draft, step, *budget, head),
    }
}

pub(super) fn role(role: SummaryRole) -> Role {
    match role {
        SummaryRole::User => Role::User,
        SummaryRole::Assistant => Role::Assistant,
    }
}

fn plain(step: &Summarize, why: String) -> KeptRegion {
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

pub(super) fn made(role: Role, kind: Kind, text: &str) -> Segment {
    Segment::Made(Message::text(role, kind, text))
}

/// Everything becomes the summary, but for some user messages.
fn whole(draft: &Draft<'_>, step: &Summarize, user: Vec<Segment>, joined: String) -> KeptRegion {
    let why = match (user.len(), joined.is_empty()) {
        (0, true) => "the whole history becomes the summary".to_owned(),
        (0, false) => {
            "the whole history becomes the summary, with what the user wrote in one message".to_owned()
        }
        (count, _) => format!("the whole history becomes the summary; {count} user messages stay"),
    };
    KeptRegion { user, joined, tail: draft.items.len(), ..plain(step, why) }
}

/// What the user wrote, newest first, within a budget; the message that crosses is cut in the middle. Or all of it as
/// one text.
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
            out.push(apart(draft, item));
        } else {
            out.push(made(Role::User, Kind::Said, &cut(&whole, left.saturating_mul(4) as usize, &rule.cut)));
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

/// What the user wrote, as it stands in an earlier summary message of the same form, so that it is carried on without
/// the frame around it.
fn unjoined(text: &str, before: &str) -> Option<String> {
    let (start, end) = before.split_once("{user-messages}")?;
    let inner = text.strip_prefix(start)?;
    // The last one: what the user wrote may hold anything.
    let inner = &inner[..inner.rfind(end).filter(|_| !end.is_empty())?];
    (!inner.is_empty() && inner != "(none)").then(|| inner.to_owned())
}

/// Whether a text is something else in the user's place: it starts and ends with a fence, or is an earlier summary.
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

/// Cuts the middle out of a text, to `bytes`.
fn cut(text: &str, bytes: usize, how: &Cut) -> String {
    match how {
        Cut::Tokens => middle::by_tokens(text, bytes / 4),
        Cut::Lines => middle::within_bytes(text, bytes).0,
        Cut::Text(mark) => middle::with_mark(text, bytes, mark),
    }
}

/// An item that stays although its neighbours go: a message said while a call ran stays as a copy, so that its unit
/// goes whole, and with it the outputs that the message carries besides.
fn apart(draft: &Draft<'_>, item: &Segment) -> Segment {
    match item {
        Segment::Old(index) if !(draft.history.can_cut(*index) && draft.history.can_cut(index + 1)) => {
            let old = &draft.history.messages()[*index];
            let said = old.parts.iter().filter(|it| !matches!(it, Part::Output(_))).cloned().collect();
            Segment::Made(Message { from: None, parts: said, wire_len: None, ..old.clone() })
        }
        Segment::Old(_) | Segment::Made(_) | Segment::Summary { .. } => item.clone(),
    }
}

/// The end from the first prompt behind a share of the history's JSON characters.
fn share_behind(draft: &Draft<'_>, step: &Summarize, share: f64) -> Result<KeptRegion, Reason> {
    let messages: Vec<&Message> = draft.items.iter().filter_map(|it| draft.message(it)).collect();
    let sizes: Vec<u64> = draft.items.iter().map(|it| draft.json_len(it)).collect();
    let tail = share_split(&messages, &sizes, share);
    if tail == 0 {
        let text = format!("no user message behind {:.0} % of the characters to cut before", share * 100.0);
        return Err(Reason::new("nothing_to_compact", text));
    }
    // The walk looks at user messages only: one may stand between a call and its output.
    let tail = boundary_to(draft, tail);
    let why = format!("the first user message behind {:.0} % of the characters", share * 100.0);
    Ok(KeptRegion { tail, ..plain(step, why) })
}

/// The newest turns that fit into a budget, and of the next one as much of its end as still fits. Sizes are those of
/// the messages' JSON, four characters a token, rounded half up (OpenCode 1.18).
fn turns(draft: &Draft<'_>, step: &Summarize, rule: &Turns) -> KeptRegion {
    let usable = super::trigger::size(draft.request.profile, &draft.request.limits);
    let share = usable.map_or(rule.maximum, |it| (it as f64 * rule.share).floor() as u64);
    let budget = rule.tokens.unwrap_or(share.clamp(rule.minimum, rule.maximum));
    let chars: Vec<u64> = draft.items.iter().map(|it| draft.json_len(it)).collect();
    let end = draft.items.len();
    // Characters before each item, and where the unit of each begins.
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
        // Text beside an output stays with its call.
        let start = begins[start];
        let turn = size(start.min(tail), tail);
        if turn <= left {
            (left, tail) = (left - turn, start);
            continue;
        }
        // The smallest start behind the prompt from which on the rest of the turn fits.
        let fits = (start + 1..tail).find(|at| size(*at, tail) <= left && is_boundary(draft, *at));
        tail = fits.unwrap_or(tail);
        break;
    }
    let first = draft.items.iter().position(|it| draft.message(it).is_some_and(is_work));
    if first.is_some_and(|it| tail <= it) {
        // All of it fits, but for an earlier summary: then all of it is summarised.
        tail = end;
    }
    let why = if tail == end {
        format!("no turn stays: none, or all of them, fit into {budget} tokens")
    } else {
        format!("the newest turns within {budget} tokens stay")
    };
    KeptRegion { tail, ..plain(step, why) }
}

/// Whether a turn begins: the user, or the client in the user's place, says something that is no compaction mark.
fn begins_turn(message: &Message) -> bool {
    message.is_prompt() || (message.role == Role::User && message.kind == Kind::Continue)
}

/// Tokens that the messages may have afterwards.
fn allowed(draft: &Draft<'_>, budget: Budget) -> Result<u64, Reason> {
    let total = draft.tokens();
    let refuse = |text| Err(Reason::new("too_small", text));
    // Who names a budget wants it; whether it gains something shows when it is done.
    if draft.request.budget.is_none() && total < SMALLEST {
        return refuse(format!("{total} tokens; below {SMALLEST} a summary would save nothing"));
    }
    // A share of what there was: outputs that were cleared on the way must not starve the end that one goes on from.
    // Half of what is left is enough, or nothing would be gained.
    let share = ((draft.whole() as f64 * budget.share) as u64).clamp(budget.minimum, budget.maximum);
    let own = share.min((total / 2).max(budget.minimum));
    let allowed = draft.request.budget.unwrap_or(own);
    if total < SMALLEST && allowed < MIN_BUDGET {
        let text = format!(
            "{total} tokens; below {SMALLEST}, only a budget of {MIN_BUDGET} or more leaves room for a summary"
        );
        return refuse(text);
    }
    if total <= allowed {
        return refuse(format!("{total} tokens are within the budget of {allowed} already"));
    }
    Ok(allowed)
}

/// The end of a history, which a budget has to leave room for.
struct End {
    prompt: Option<usize>,
    /// Where the model answers the last prompt.
    answer: Option<usize>,
    /// Tokens of what the model says to a summary that a prompt follows.
    ack: u64,
}

/// A budget, divided between what stands in front, the summary and the end. In tokens.
struct Division {
    allowed: u64,
    /// Whether what clients put in front stays.
    context: bool,
    /// What the summary may take.
    most: u64,
    /// What it takes where that is known; else the same.
    summary: u64,
    /// What is left for the end.
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
    // What clients put in front, they put in front again; it stays unless it crowds out the conversation.
    let fixed = total_of(draft, 0..head);
    let context = fixed <= allowed / 5;
    let fixed = if context { fixed } else { 0 };
    let waits = waiting(draft, end.prompt);
    let needed = fixed + waits + SMALLEST_SUMMARY;
    if waits > 0 && allowed < needed {
        if draft.request.budget.is_some() {
            let text = format!(
                "{allowed} tokens; the call at the end waits for its output and has to stay: with its prompt, it takes \
                 {waits}; the least budget that holds it is {needed}"
            );
            return refuse("budget_too_small", text);
        }
        allowed = needed;
    }
    let share = (allowed as f64 * budget.summary) as u64;
    let most = if draft.request.budget.is_some() { share } else { share.min(step.summary.max_tokens) };
    let most = most.min(allowed.saturating_sub(fixed + waits));
    // What answers the last request goes before what one looks things up in, if that keeps it whole.
    let most = match end.answer.filter(|_| draft.request.keep.is_none()) {
        Some(answer) => {
            let asked = end.prompt.map_or(0, |it| draft.size(&draft.items[it]));
            let whole = asked + total_of(draft, answer..draft.items.len()) + end.ack;
            let left = allowed.saturating_sub(fixed + whole).min(most);
            if left >= most * MIN_SUMMARY_PERCENT / 100 { left } else { most }
        }
        None => most,
    };
    let summary = draft.request.summary_tokens.map_or(most, |it| it.min(allowed));
    let Some(mut room) = allowed.checked_sub(fixed + summary) else {
        let text =
            format!("{allowed} tokens; context before the first prompt takes {fixed}, the summary {summary}");
        return refuse("budget_too_small", text);
    };
    if let Some(keep) = draft.request.keep {
        // Within a budget less may be kept; without one, what was asked for is.
        room = if draft.request.budget.is_some() { room.min(keep) } else { keep };
    }
    if room.saturating_add(fixed + summary) >= total {
        let text = format!("{total} tokens; the end that is to stay takes {room}, and a summary {summary}");
        return refuse("too_small", text);
    }
    Ok(Division { allowed, context, most, summary, room })
}

/// As much of the end as a budget leaves beside the summary.
fn within(
    draft: &mut Draft<'_>,
    step: &Summarize,
    budget: Budget,
    head: usize,
) -> Result<KeptRegion, Reason> {
    let holds = |it: &Segment, is: fn(&Message) -> bool| draft.message(it).is_some_and(is);
    let prompt = draft.items.iter().rposition(|it| holds(it, Message::is_prompt));
    // Moved in front of what a later slash command started, the prompt would look like the request for it.
    let prompt =
        prompt.filter(|at| !draft.items[*at..].iter().any(|it| holds(it, Message::is_slash_command)));
    let answer = answer::position(draft).filter(|it| prompt.is_none_or(|prompt| prompt < *it));
    let end = End { prompt, answer, ack: acknowledgement(draft, step) };
    let Division { allowed, context, most, summary, room } = divided(draft, step, budget, head, &end)?;
    // What the end leaves goes back to the summary: units are whole, lines are small.
    let known = draft.request.summary_tokens.is_some();
    let reserved = known.then_some(most);
    let cap = if draft.request.budget.is_some() { allowed } else { most.max(summary) };
    let budget = |left: u64, first: Option<&Message>| {
        let ack = if first.is_some_and(|it| it.role == Role::User) { end.ack } else { 0 };
        let room = (summary + left).saturating_sub(ack);
        if known { room.min(cap) } else { room.min(summary) }
    };
    // In a small budget, an answer that is cut leaves half of what the summary did not need to what one looks up.
    let spare = if allowed < SMALLEST { most.saturating_sub(summary) / 2 } else { 0 };
    let (tail, left) = fitting(draft, head, room);
    let (LastTurn { words, tail, left }, why) = if let Some(prompt) = prompt.filter(|it| *it < tail) {
        let turn = last_turn(draft, prompt, answer.map(|it| (it, spare)), room, left);
        let kept =
            if turn.words.is_some() { "its prompt and its newest units" } else { "what fits of its answer" };
        let room = room.saturating_sub(turn.words.as_ref().map_or(0, |it| draft.size(it)));
        (turn, format!("the last turn exceeds the budget: {kept} within {room} tokens stay"))
    } else {
        let cut = answer.filter(|it| *it < tail && answer::shorten(draft, *it, room.saturating_sub(spare)));
        let (tail, left) = cut.map_or((tail, left), |at| fitting(draft, at, room));
        let turn = LastTurn { words: None, tail, left };
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
        ..plain(step, why)
    })
}

/// Tokens of a call at the end that waits for its output, with what its prompt needs in front of it; 0 if none waits.
fn waiting(draft: &Draft<'_>, prompt: Option<usize>) -> u64 {
    let waiting = total_of(draft, pending(draft)..draft.items.len());
    let asked = prompt.map_or(0, |it| draft.size(&draft.items[it]).min(SMALLEST_SUMMARY));
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

/// What stays of the end.
struct LastTurn {
    /// The prompt of a last turn that does not fit whole, word for word if it can; nothing where it was answered and is
    /// in the summary alone.
    words: Option<Segment>,
    /// Where the newest units begin that still fit.
    tail: usize,
    /// Tokens that nothing took.
    left: u64,
}

/// A last turn that does not fit whole. `answer`: where the turn was answered, and the tokens that the answer does not
/// get if it is cut. `room`: tokens for the end. `left`: those of them that no whole unit took.
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
        let done = draft.others.len();
        let least = total_of(draft, at..end).min(answer::MIN_TOKENS.max(room / 8));
        let words = if asked + least <= room {
            Some(apart(draft, &draft.items[prompt]))
        } else if asked <= room * 2 {
            Some(shortened(draft, prompt, room / 2))
        } else {
            // What the summary quotes of it says more than its ends would.
            None
        };
        let room = room.saturating_sub(words.as_ref().map_or(0, |it| draft.size(it)));
        let (mut tail, mut left) = fitting(draft, prompt + 1, room);
        if tail > at {
            if !answer::shorten(draft, at, room.saturating_sub(spare).max(room.min(answer::MIN_TOKENS))) {
                draft.others.truncate(done);
                return LastTurn { words: None, tail: end, left: room };
            }
            (tail, left) = fitting(draft, at, room);
        }
        if words.is_some() {
            moved(draft, prompt);
        }
        return LastTurn { words, tail, left };
    }
    let waits = pending(draft);
    let most =
        if waits < end { room.saturating_sub(total_of(draft, waits..end)).min(room / 2) } else { room / 2 };
    let words = if asked <= most || asked <= left {
        apart(draft, &draft.items[prompt])
    } else {
        shortened(draft, prompt, most)
    };
    let room = room.saturating_sub(draft.size(&words));
    let (mut tail, mut left) = fitting(draft, prompt + 1, room);
    let bare =
        room >= WORTH && draft.items[tail..].iter().all(|it| draft.message(it).is_some_and(is_thinking));
    if tail == end || bare {
        // Not even the newest unit that did something fits: its outputs are shortened to what does.
        let start = if tail > prompt + 1 { boundary_to(draft, tail - 1).max(prompt + 1) } else { end };
        if start < end {
            squeeze(draft, start, room);
            (tail, left) = fitting(draft, prompt + 1, room);
        }
    }
    moved(draft, prompt);
    LastTurn { words: Some(words), tail, left }
}

/// Whether the model only thought.
fn is_thinking(message: &Message) -> bool {
    message.parts.iter().all(|it| matches!(it, Part::Reasoning(_)))
}

fn moved(draft: &mut Draft<'_>, prompt: usize) {
    let message = number(draft, prompt).unwrap_or(0);
    let why = "the last prompt stays although what follows it does not fit whole".to_owned();
    draft.others.push(Op::Move { message, why });
}

/// Whether a message of the end holds a call without an output.
fn is_pending(draft: &Draft<'_>, message: &Message) -> bool {
    message.from.is_some_and(|it| it as usize + 1 >= draft.history.messages().len())
        && has_unanswered(draft, message)
}

/// Position from which on the end waits for the outputs of calls; the number of items if nothing waits.
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

/// From which item on whole units fit into `room` tokens, none before `first`; and what is left of the room.
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
