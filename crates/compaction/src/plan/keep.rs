//! What stays beside a summary, and where the cut falls. Cuts fall between units only.

use super::draft::{Draft, How, Segment};
use super::outputs::{ends, thousands};
use super::split::share_split;
use super::{Op, Reason, is_work};
use crate::profile::{Budget, Cut, Keep, Slot, Snip, Summarize, SummaryRole, Turns, UserMessages};
use history::{Kind, Message, Part, Role, Text};
use tokens::middle;

/// Below this, a summary would cost more than it saves. Tokens.
const SMALLEST: u64 = 2_000;

/// Tokens that a summary's first line, its rules and the last request need in a session below that.
const LEAST: u64 = 500;

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
        let text = "the messages in the middle belong to calls at its edges".to_owned();
        return Err(Reason::new("nothing_to_compact", text));
    }
    if draft.items[head..tail].iter().all(|it| draft.message(it).is_some_and(|it| it.kind == Kind::Marker)) {
        let text = "the middle holds nothing but the mark of what was left out before".to_owned();
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

fn made(role: Role, kind: Kind, text: &str) -> Segment {
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
        // What is said beside an output stays with its call.
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

/// Whether a turn begins: somebody, or the client in the user's place, says something that is no compaction mark.
fn begins_turn(message: &Message) -> bool {
    message.is_prompt() || (message.role == Role::User && message.kind == Kind::Continue)
}

/// As much of the end as a budget leaves beside the summary.
fn within(
    draft: &mut Draft<'_>,
    step: &Summarize,
    budget: Budget,
    head: usize,
) -> Result<KeptRegion, Reason> {
    let total = draft.tokens();
    let refuse = |code, text| Err(Reason::new(code, text));
    // Who names a budget wants it; whether it gains something shows when it is done.
    if draft.request.budget.is_none() && total < SMALLEST {
        return refuse("too_small", format!("{total} tokens; below {SMALLEST} a summary would save nothing"));
    }
    // A share of what there was: outputs that were cleared on the way must not starve the end that one goes on from.
    // Half of what is left is enough, or nothing would be gained.
    let share = ((draft.whole() as f64 * budget.share) as u64).clamp(budget.minimum, budget.maximum);
    let own = share.min((total / 2).max(budget.minimum));
    let allowed = draft.request.budget.unwrap_or(own);
    if total < SMALLEST && allowed < LEAST {
        let text = format!(
            "{total} tokens; below {SMALLEST}, only a budget of {LEAST} or more leaves room for a summary"
        );
        return refuse("too_small", text);
    }
    if total <= allowed {
        return refuse("too_small", format!("{total} tokens are within the budget of {allowed} already"));
    }
    // What clients put in front, they put in front again; it stays unless it crowds out the conversation.
    let fixed: u64 = draft.items[..head].iter().map(|it| draft.size(it)).sum();
    let context = fixed <= allowed / 5;
    let fixed = if context { fixed } else { 0 };
    let share = (allowed as f64 * budget.summary) as u64;
    let most = if draft.request.budget.is_some() { share } else { share.min(step.summary.max_tokens) };
    let summary = draft.request.summary_tokens.map_or(most, |it| it.min(allowed));
    // What the end leaves goes back to the summary: units are whole, lines are small.
    let known = draft.request.summary_tokens.is_some();
    let reserved = known.then_some(most);
    let cap = if draft.request.budget.is_some() { allowed } else { most.max(summary) };
    let ack = acknowledgement(draft, step);
    let budget = |left: u64, first: Option<&Message>| {
        let ack = if first.is_some_and(|it| it.role == Role::User) { ack } else { 0 };
        let room = (summary + left).saturating_sub(ack);
        if known { room.min(cap) } else { room.min(summary) }
    };
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
    let prompt = draft.items.iter().rposition(|it| draft.message(it).is_some_and(Message::is_prompt));
    let (tail, left) = fitting(draft, head, room);
    let Some(prompt) = prompt.filter(|it| *it < tail) else {
        let why = format!("the newest whole units within {room} tokens stay");
        let max_tokens = budget(left, draft.items.get(tail).and_then(|it| draft.message(it)));
        return Ok(KeptRegion { tail, context, max_tokens, reserved, ..plain(step, why) });
    };
    let LastTurn { words, tail, left } = last_turn(draft, prompt, room, left)?;
    let why = format!(
        "the last turn exceeds the budget: its prompt and its newest units within {room} tokens stay",
        room = room.saturating_sub(draft.size(&words))
    );
    let max_tokens = budget(left, draft.message(&words));
    Ok(KeptRegion { user: vec![words], tail, context, max_tokens, reserved, ..plain(step, why) })
}

/// Tokens of what the model says to a summary that a prompt follows.
fn acknowledgement(draft: &Draft<'_>, step: &Summarize) -> u64 {
    let said = |it: &Slot| match it {
        Slot::AckPrompt(text) => {
            draft.counter.message(&Message::text(Role::Assistant, Kind::Ack, text.as_str()))
        }
        _ => 0,
    };
    step.layout.iter().map(said).sum()
}

/// A last turn that does not fit whole.
struct LastTurn {
    /// Its prompt, word for word if it can.
    words: Segment,
    /// Where the newest units begin that still fit.
    tail: usize,
    /// Tokens that nothing took.
    left: u64,
}

/// `room`: tokens for the end; `left`: of these, what no whole unit took.
fn last_turn(draft: &mut Draft<'_>, prompt: usize, room: u64, left: u64) -> Result<LastTurn, Reason> {
    let asked = draft.size(&draft.items[prompt]);
    let words = if asked <= room / 2 || asked <= left {
        apart(draft, &draft.items[prompt])
    } else {
        shortened(draft, prompt, room / 2)
    };
    let room = room.saturating_sub(draft.size(&words));
    let (mut tail, mut left) = fitting(draft, prompt + 1, room);
    if tail == draft.items.len() {
        // Not even the newest unit fits: its outputs are shortened to what does.
        let start = boundary_to(draft, draft.items.len() - 1).max(prompt + 1);
        if start < draft.items.len() {
            squeeze(draft, start, room);
            (tail, left) = fitting(draft, prompt + 1, room);
        }
    }
    let pending =
        draft.items[prompt..].iter().any(|it| draft.message(it).is_some_and(|it| is_pending(draft, it)));
    if tail == draft.items.len() && pending {
        let text = format!("a call waits for its output and does not fit into {room} tokens");
        return Err(Reason::new("budget_too_small", text));
    }
    let message = number(draft, prompt).unwrap_or(0);
    let why = "the last prompt stays although what follows it does not fit whole".to_owned();
    draft.others.push(Op::Move { message, why });
    Ok(LastTurn { words, tail, left })
}

/// Whether a message of the end holds a call that nobody answered.
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

/// Whether a message holds a call that nobody answered.
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
        let size: u64 = draft.items[start..tail].iter().map(|it| draft.size(it)).sum();
        if size > left {
            break;
        }
        (tail, left) = (start, left - size);
    }
    (tail, left)
}

/// Shortens the outputs of the items from `start` on in the middle until all fit into `room` tokens, if they can.
fn squeeze(draft: &mut Draft<'_>, start: usize, room: u64) {
    let total: u64 = draft.items[start..].iter().map(|it| draft.size(it)).sum();
    let mut places: Vec<((usize, usize), u64)> = Vec::new();
    for item in &draft.items[start..] {
        let Segment::Old(index) = item else { continue };
        for (part, it) in draft.history.messages()[*index].parts.iter().enumerate() {
            if let Part::Output(output) = it {
                places.push(((*index, part), draft.counter.text(&output.text)));
            }
        }
    }
    let outputs: u64 = places.iter().map(|it| it.1).sum();
    let Some(mut allowed) = room.checked_sub(total.saturating_sub(outputs)) else { return };
    // Smallest first: what a small output leaves of its share goes to the larger ones.
    places.sort_by_key(|it| (it.1, it.0));
    let count = places.len() as u64;
    for (done, (at, tokens)) in places.into_iter().enumerate() {
        let share = allowed / (count - done as u64);
        if tokens > share {
            shorten_output(draft, at, tokens, share);
        }
        allowed = allowed.saturating_sub(tokens.min(share));
    }
}

/// Shortens one output to about `share` tokens, the note that says so included.
fn shorten_output(draft: &mut Draft<'_>, at: (usize, usize), tokens: u64, share: u64) {
    /// Tokens that the note in the middle takes.
    const NOTE: u64 = 40;
    let Some(output) = draft.output(at.0, at.1) else { return };
    let (original, recall) = (output.text.as_str(), draft.request.recall);
    let chars = output.text.weight().chars as usize;
    let mut keep = (chars as u64 * share.saturating_sub(NOTE) / tokens.max(1)) as usize;
    // The characters at the ends may be dearer than the average: give way until it fits.
    for _ in 0..6 {
        let Some((first, last, omitted)) = ends(original, keep, 0.5) else { return };
        let text = |handle: &str| {
            let recall = recall.replace("{handle}", handle);
            format!("{first}\n[… {} characters left out; whole: {recall}]\n{last}", thousands(omitted))
        };
        let size = draft.counter.text(&Text::new(text("0000000000").as_str()));
        if size <= share || keep == 0 {
            let why = format!("{tokens} tokens in one output; {share} fit");
            draft.replaced.remove(&at);
            draft.replace(at, How::Shorten, &why, text);
            return;
        }
        keep = (keep as u64 * share * 9 / (size * 10).max(1)) as usize;
    }
}

/// The message at a position with its text cut in the middle to about `tokens`.
fn shortened(draft: &mut Draft<'_>, at: usize, tokens: u64) -> Segment {
    let Some(message) = draft.message(&draft.items[at]) else { return draft.items[at].clone() };
    let plain = message.plain();
    let size = draft.counter.text(&Text::new(plain.as_str()));
    let keep = (plain.chars().count() as u64 * tokens.saturating_sub(40) / size.max(1)) as usize;
    let handle = (draft.request.handle)(&plain);
    let recall = draft.request.recall.replace("{handle}", &handle);
    let text = match ends(&plain, keep, 0.6) {
        Some((first, last, omitted)) => {
            format!("{first}\n[… {} characters left out; whole: {recall}]\n{last}", thousands(omitted))
        }
        None => plain,
    };
    let after = draft.counter.text(&Text::new(text.as_str()));
    if let Some(message) = number(draft, at) {
        draft.others.push(Op::Shorten(super::OutputOp {
            message,
            part: 0,
            call_id: String::new(),
            tool: String::new(),
            tokens_before: size,
            tokens_after: after,
            text: text.clone(),
            handle,
            why: format!("the last prompt alone has {size} tokens; {tokens} fit"),
        }));
    }
    made(Role::User, Kind::Said, &text)
}

/// The first position at or after `at` where no unit is cut.
pub(super) fn boundary_from(draft: &Draft<'_>, at: usize) -> usize {
    (at..draft.items.len()).find(|it| is_boundary(draft, *it)).unwrap_or(draft.items.len())
}

/// The last position at or before `at` where no unit is cut.
fn boundary_to(draft: &Draft<'_>, at: usize) -> usize {
    (0..=at).rev().find(|it| is_boundary(draft, *it)).unwrap_or(0)
}

pub(super) fn is_boundary(draft: &Draft<'_>, at: usize) -> bool {
    match draft.items.get(at) {
        Some(Segment::Old(index)) => draft.history.can_cut(*index),
        Some(Segment::Made(_) | Segment::Summary { .. }) | None => true,
    }
}

/// Number of the message at a position, or of the next one that has a number.
pub(super) fn number(draft: &Draft<'_>, at: usize) -> Option<usize> {
    draft
        .items
        .get(at..)?
        .iter()
        .find_map(|it| if let Segment::Old(index) = it { Some(*index) } else { None })
}
