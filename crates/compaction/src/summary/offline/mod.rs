//! The offline summarizer: the ledger as readable text. No model, no network; same input, same bytes.
//!
//! Every line says one thing, with the number of the message that it comes from. The user's words are quoted
//! verbatim, or with both ends where they are cut. `priority` says what comes first when space is short.

mod layout;
mod line;
mod priority;
mod quote;
mod script;
mod select;
mod style;
mod tail;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use crate::facts::{self, Detail, Fact, FileOp, Ledger, Outcome, Polarity, Topic, Voice};
use crate::profile::{Section, SummarySpec, SummaryStyle};
use history::{History, Message, Part, Role};

use layout::{Layout, contains_rule};
use line::SummaryLine;
use priority::LineKind;
use select::{changed_behind, facts_of_region, first_recent_reply, is_of_answered};
use style::LineStyle;
use tail::Tail;

/// The request for a summary.
#[derive(Debug, Clone)]
pub struct OfflineRequest<'a> {
    /// The messages it replaces.
    pub region: Range<usize>,
    /// Messages that stay but lose their outputs: only the summary tells how their commands ended. Ascending.
    pub cleared: &'a [usize],
    /// Messages of the region that stay word for word behind the summary. Ascending.
    pub kept: &'a [usize],
    /// Its sections and shape.
    pub spec: &'a SummarySpec,
    /// Maximum tokens of the whole summary, by `count`.
    pub max_tokens: u64,
    /// Set once the tail has its tokens: the shares of kinds of lines are of this number if it exceeds
    /// `max_tokens`, and what they leave is filled with facts to look things up in.
    pub budget_for_shares: Option<u64>,
    /// How deep it goes.
    pub style: SummaryStyle,
    /// What the user asked to focus on.
    pub focus: Option<&'a str>,
    /// Facts the user pinned, word for word.
    pub pins: &'a [String],
    /// The first line: who compacted what. Written by the caller.
    pub header: Option<&'a str>,
}

impl OfflineRequest<'_> {
    /// Whether the message of a fact stays behind the summary.
    fn stays(&self, fact: &Fact) -> bool {
        self.kept.binary_search(&fact.message).is_ok()
    }
}

/// A fact that has a section, and its line if one was admitted.
struct Candidate<'a> {
    fact: &'a Fact,
    kind: LineKind,
    section: usize,
    /// The topic under which it is listed in the section.
    topic: Topic,
    /// Whether it is about what the user asked to focus on.
    focused: bool,
    /// The outcome of the command that an error comes from, if the error's line tells it.
    ended: Option<&'a Outcome>,
    /// The admitted line, and its tokens.
    now: Option<(SummaryLine, u64)>,
}

/// Writes a summary of `ask.region`, never above `ask.max_tokens` by `count`. Pins that do not fit even alone
/// are left out, so a caller that must keep them has to check.
pub fn write(
    history: &History,
    ledger: &Ledger,
    ask: &OfflineRequest,
    count: &dyn Fn(&str) -> u64,
) -> String {
    let tail = Tail::of(history, ask);
    // Once for all slices: every command is parsed for it.
    let outdated = facts::outdated_checks(&ledger.facts);
    let slices = slices(history, ask);
    if slices.len() < 2 {
        return write_slice(history, ledger, ask, &tail, &outdated, count);
    }
    let spec = SummarySpec { slice_minutes: 0, ..ask.spec.clone() };
    // Newest first: each gets an equal share of what is left.
    let mut parts: Vec<String> = Vec::new();
    let mut left = ask.max_tokens;
    for (number, (title, region)) in slices.iter().enumerate().rev() {
        let first = number == 0;
        let heading = format!("# {title}\n");
        let max_tokens = (left / (number as u64 + 1)).saturating_sub(count(&heading) + 1);
        let ask = OfflineRequest {
            region: region.clone(),
            spec: &spec,
            max_tokens,
            budget_for_shares: None,
            pins: if first { ask.pins } else { &[] },
            header: ask.header.filter(|_| first),
            ..ask.clone()
        };
        let text = write_slice(history, ledger, &ask, &tail, &outdated, count);
        if !text.is_empty() {
            let part = format!("{heading}{text}\n\n");
            left = left.saturating_sub(count(&part));
            parts.push(part);
        }
    }
    parts.reverse();
    parts.concat().trim_end().to_owned()
}

/// The region cut into time slices, each with its title. Empty if times are unknown.
fn slices(history: &History, ask: &OfflineRequest) -> Vec<(String, Range<usize>)> {
    /// Maximum number of slices: each is written from all facts, and more would have no room to say anything.
    const MOST: i64 = 64;
    let messages = history.messages().get(ask.region.clone()).unwrap_or_default();
    let (Some(start), minutes) = (messages.iter().find_map(|it| it.at), ask.spec.slice_minutes as i64) else {
        return Vec::new();
    };
    if minutes <= 0 {
        return Vec::new();
    }
    let end = messages.iter().filter_map(|it| it.at).max().unwrap_or(start);
    let whole = end.saturating_sub(start) / (minutes.saturating_mul(60_000));
    let minutes = minutes.saturating_mul(whole / MOST + 1);
    let length = minutes.saturating_mul(60_000);
    let mut out: Vec<(String, Range<usize>)> = Vec::new();
    let mut current = -1;
    for (at, message) in (ask.region.start..).zip(messages) {
        let slice =
            message.at.map_or(current.max(0), |it| (it.saturating_sub(start) / length).max(current.max(0)));
        match out.last_mut() {
            Some((_, range)) if slice == current => range.end = at + 1,
            _ => {
                let from = slice.saturating_mul(minutes);
                out.push((format!("Minutes {from} to {}", from.saturating_add(minutes)), at..at + 1));
                current = slice;
            }
        }
    }
    out
}

/// `outdated`: see [`LineStyle::outdated`].
fn write_slice(
    history: &History,
    ledger: &Ledger,
    ask: &OfflineRequest,
    tail: &Tail,
    outdated: &HashSet<(usize, &str)>,
    count: &dyn Fn(&str) -> u64,
) -> String {
    // A final answer behind the summary tells more than the last step.
    let ends = facts::final_answer(history).is_some_and(|it| it >= ask.region.end);
    let step = facts::last_step(history, &ask.region).filter(|_| !ends);
    let answered = facts::last_answered(history);
    let mut items = items(ledger, step.as_ref(), answered, ask, tail);
    let goals = ledger.about(Topic::Goal).filter(|it| !it.text.starts_with(facts::UNREADABLE));
    let pursued = goals.max_by_key(|it| it.message);
    let follows_up = pursued.is_some_and(|it| it.text.len() <= FOLLOW_UP);
    if !follows_up {
        let answered = items.iter_mut().filter(|it| it.kind == LineKind::Answered);
        answered.for_each(|it| it.kind = LineKind::Finished);
    }
    let errors_apart = ask.spec.sections.iter().any(|it| it.holds.contains(&Topic::Errors));
    let style = LineStyle {
        previous_answer: answered,
        last_answered: facts::question_answered(history).or_else(|| finished(history, ledger)),
        replied: facts::last_reply(history).filter(|it| *it >= ask.region.end),
        end: ask.region.end,
        goes_on: step
            .as_ref()
            .or(ledger.about(Topic::Current).last())
            .and_then(|it| Some((it.message, went_on(history, ledger, it.message, ask.region.end)?))),
        answers: facts::answers(history),
        refuted: facts::refuted_replies(history),
        requests: (listed_topic(&ask.spec.sections, Topic::Replies) == Topic::Replies)
            .then(|| facts::requests(history)),
        sealed: history.messages().iter().rposition(|it| it.replaced.is_some()),
        below: kept_requests(ledger, pursued, ask, tail),
        follows_up,
        roots: roots(&items),
        errors_apart,
        last_work: line::last_work(ledger),
        resolved: line::resolved_failures(ledger),
        outdated,
        last_runs: line::last_runs(ledger),
        went_ahead: ledger
            .about(Topic::Decisions)
            .filter_map(|it| Some((it.message, facts::report_of_turn(history, it.message)?)))
            .filter(|it| it.1 < ask.region.end)
            .collect(),
        long: newest_at_length(history, line::last_work(ledger), &items),
        numbered: &ledger.numbered_steps,
        words: ask.spec.words.clone(),
    };
    let quoted = items.iter().filter(|it| it.kind == LineKind::Quoted).count();
    let mut layout = Layout { ask, style, quoted, costs: HashMap::new(), count, used: 0 };
    layout.used = layout.measure(&layout.render(&[], ask.header.is_some(), ask.pins.len()));
    let header = ask.header.is_some() && layout.used <= ask.max_tokens;
    let mut pins = ask.pins.len();
    while pins > 0 && count(&layout.render(&[], header, pins)) > ask.max_tokens {
        pins -= 1;
    }
    layout.used = count(&layout.render(&[], header, pins));
    let order = layout.fill(&mut items, history);
    // The sum of lines is only close to the whole: the lines that were admitted last are taken back.
    let mut keep = order.len();
    let mut step = 1;
    loop {
        let text = layout.render(&admitted(&items, &order[..keep], ask), header, pins);
        if count(&text) <= ask.max_tokens {
            return text;
        }
        if keep == 0 {
            return String::new();
        }
        keep = keep.saturating_sub(step);
        step *= 2;
    }
}

/// The messages of the current request that stay word for word behind the summary. `pursued`: the newest goal.
fn kept_requests(ledger: &Ledger, pursued: Option<&Fact>, ask: &OfflineRequest, tail: &Tail) -> Vec<usize> {
    // A later message may ask for something else.
    let last = ledger.about(Topic::Last).map(|it| it.message).max();
    let goal = pursued.filter(|it| last.is_none_or(|last| last <= it.message));
    let goal = goal.filter(|it| it.message >= tail.from || ask.stays(it));
    let last = ledger.about(Topic::Last).filter(|it| it.voice() == Voice::User && ask.stays(it));
    goal.into_iter().chain(last).map(|it| it.message).collect()
}

/// The newest findings and replies, at length: what the current request refers to. After more work, parts of them may no
/// longer hold, which is known of the short form alone; what a sub-agent found for the current request is worked from.
fn newest_at_length(
    history: &History,
    last_work: Option<usize>,
    items: &[Candidate],
) -> HashMap<(usize, String), String> {
    const NEWEST: usize = 3;
    let found = items.iter().rev().filter(|it| {
        let delegated = || facts::is_of_subagent(it.fact) && history.last_prompt() < Some(it.fact.message);
        it.kind == LineKind::Finding
            && it.fact.voice() == Voice::Model
            && (last_work.is_none_or(|work| work <= it.fact.message) || delegated())
    });
    let long = |it: &Candidate| {
        let key = (it.fact.message, it.fact.text.to_string());
        Some((key, facts::at_length(history, it.fact)?))
    };
    found.take(NEWEST).filter_map(long).collect()
}

/// The reply that ended the work, if the ledger has no open step.
fn finished(history: &History, ledger: &Ledger) -> Option<usize> {
    let left = |it: &Fact| matches!(it.topic, Topic::Open | Topic::Active);
    facts::final_answer(history).filter(|_| !ledger.facts.iter().any(left))
}

/// The suffix of the step in message `at` if its turn went on: before message `end`, or behind the summary.
fn went_on(history: &History, ledger: &Ledger, at: usize, end: usize) -> Option<String> {
    let messages = history.messages();
    if messages[at + 1..end.max(at + 1)].iter().any(|it| it.calls().next().is_some()) {
        let done = line::last_done(ledger, at + 1..end);
        let colon = if done.is_empty() { "" } else { ": " };
        return Some(format!("{}{colon}{done})", facts::MORE_DONE));
    }
    let same_turn =
        messages[at + 1..].iter().position(|it| it.is_prompt()).is_none_or(|it| at + 1 + it >= end);
    let spoken = |it: &Message| {
        it.role == Role::Assistant && it.parts.iter().any(|it| !matches!(it, Part::Reasoning(_)))
    };
    let behind = same_turn && messages[end..].iter().take_while(|it| !it.is_prompt()).any(spoken);
    if behind {
        return Some(facts::GOES_ON.to_owned());
    }
    messages[end..].iter().any(Message::is_prompt).then(|| facts::FOLLOWED.to_owned())
}

fn admitted<'i, 'a>(
    items: &'i [Candidate<'a>],
    order: &[usize],
    ask: &OfflineRequest,
) -> Vec<&'i Candidate<'a>> {
    let mut numbers: Vec<usize> = order.to_vec();
    numbers.sort_unstable();
    let all: Vec<&Candidate> = numbers.into_iter().map(|it| &items[it]).collect();
    let again = |it: &Candidate, later: &[&Candidate]| {
        it.kind == LineKind::Command && later.iter().any(|later| says_the_same(it, later))
    };
    let told = |(at, it): (usize, &&Candidate)| {
        !is_in_line_of_message(it, all.iter().copied(), ask) && !again(it, &all[at + 1..])
    };
    all.iter().enumerate().filter(|it| told(*it)).map(|it| *it.1).collect()
}

/// Whether two lines differ only in their message numbers: what makes long commands differ may be cut off.
fn says_the_same(one: &Candidate, other: &Candidate) -> bool {
    let text = |it: &Candidate| Some(it.now.as_ref()?.0.text.rsplit_once(" [#")?.0.to_owned());
    one.section == other.section && text(one).is_some_and(|it| text(other) == Some(it))
}

/// Whether the line of a directive's own message says it. In a request, a prohibition could be overlooked, so
/// it keeps a line of its own.
fn is_in_line_of_message<'i>(
    item: &Candidate,
    mut all: impl Iterator<Item = &'i Candidate<'i>>,
    ask: &OfflineRequest,
) -> bool {
    /// Tokens below which the next compaction would cut the goal's line.
    const ROOM: u64 = 2_000;
    if item.kind != LineKind::Directive {
        return false;
    }
    let roomy = ask.budget_for_shares.unwrap_or(0).max(ask.max_tokens) >= ROOM;
    let forbids = item.fact.detail == Detail::Rule(Polarity::Forbid);
    let text = facts::flat(&item.fact.text);
    all.any(|it| {
        let told = match it.kind {
            LineKind::Goal | LineKind::Last | LineKind::Answered | LineKind::Finished => roomy && !forbids,
            LineKind::Said => it.section == item.section,
            _ => false,
        };
        told && it.fact.message == item.fact.message
            && it.now.as_ref().is_some_and(|it| it.0.text.contains(&text))
    })
}

/// The facts that have a section, each once: nothing that the user said is listed twice.
/// `step`: where the work stood at the region's end. `answered`: what answered the request before the last.
fn items<'a>(
    ledger: &'a Ledger,
    step: Option<&'a Fact>,
    answered: Option<usize>,
    ask: &OfflineRequest,
    tail: &Tail,
) -> Vec<Candidate<'a>> {
    let section = |topic: Topic| section_of(&ask.spec.sections, topic);
    let every = |fact: &Fact| {
        fact.topic == Topic::UserMessages && section(fact.topic).is_some_and(|at| ask.spec.sections[at].every)
    };
    let focus: Vec<String> = ask.focus.map(focus_words).unwrap_or_default();
    let changed_again = changed_behind(ledger, ask);
    let facts = facts_of_region(ledger, step, answered, &changed_again, ask, tail);
    let words = |topic: Topic| {
        facts.iter().filter(move |it| it.topic == topic).map(|it| (it.message, it.text.as_str()))
    };
    // Of a report, the last step tells more than a finding or reply that begins alike.
    let steps: Vec<_> = words(Topic::Current).collect();
    let goal: HashSet<_> = words(Topic::Goal).collect();
    let last: HashSet<_> = words(Topic::Last).collect();
    let answers: HashSet<_> = words(Topic::Decisions).collect();
    let recent = first_recent_reply(&facts);
    let logs: Vec<&str> =
        words(Topic::Directory).map(|it| it.1).filter(|it| it.starts_with(facts::REPOSITORY)).collect();
    // What is listed elsewhere is left out of the list of the user's messages.
    let mut said: HashSet<_> = words(Topic::Constraints).chain(words(Topic::Directives)).collect();
    said.extend(goal.iter().chain(&last).chain(&answers));
    let Failures { told, ends } = match section(Topic::Errors) {
        Some(_) => failures(&facts),
        None => Failures::default(),
    };
    let mut out = Vec::new();
    for &fact in &facts {
        // A finished task's directive moves to the user's messages if directives have a section of their own.
        let earlier = is_of_answered(fact, answered)
            && fact.detail != Detail::Rule(Polarity::Forbid)
            && listed_topic(&ask.spec.sections, fact.topic) == fact.topic;
        let said_in = section(Topic::UserMessages).filter(|_| earlier);
        let Some(place) = said_in.or_else(|| section_for(&ask.spec.sections, fact)) else { continue };
        let me = (fact.message, fact.text.as_str());
        let twice = match fact.topic {
            Topic::UserMessages if every(fact) => false,
            Topic::Constraints | Topic::Directives if ask.spec.sections[place].every => {
                quoted_whole(fact, &facts)
            }
            // The goal in the same section already says it.
            Topic::Constraints | Topic::Directives if section(Topic::Goal) == Some(place) => {
                goal.contains(&me) && me.1.chars().count() <= SHORT
            }
            Topic::Requests | Topic::UserMessages => {
                !said.insert(me) || facts::only_agrees(&fact.text) || is_covered_by_rules(fact, &facts)
            }
            Topic::Last => goal.contains(&me),
            Topic::Commands | Topic::Errors => told.contains(&me) || is_logged(fact, &logs),
            Topic::Files | Topic::Identifiers => tail.says(fact),
            Topic::Findings | Topic::Replies => {
                steps.iter().any(|it| it.0 == me.0 && begins_alike(it.1, me.1))
            }
            // It is listed with its outcome among the commands, if these have a section.
            Topic::Setup => fact.voice() == Voice::Tools && section(Topic::Commands).is_some(),
            _ => false,
        };
        if twice {
            continue;
        }
        let kind = match kind_of(fact, &last, &changed_again) {
            _ if every(fact) => LineKind::Quoted,
            LineKind::Finding if fact.topic == Topic::Replies && fact.message < recent => LineKind::OldReply,
            LineKind::Goal if answered.is_some_and(|at| at > fact.message) => LineKind::Answered,
            kind => kind,
        };
        let lower = if focus.is_empty() { String::new() } else { fact.text.to_lowercase() };
        let focused = focus.iter().any(|it| lower.contains(it));
        let ended = ends.get(&std::ptr::from_ref(fact)).copied();
        let topic = listed_topic(&ask.spec.sections, said_in.map_or(fact.topic, |_| Topic::UserMessages));
        out.push(Candidate { fact, kind, section: place, topic, focused, ended, now: None });
    }
    out
}

/// The kind of a fact's line. `last`: last request with its message; `changed_again`: files the tail changes.
fn kind_of(fact: &Fact, last: &HashSet<(usize, &str)>, changed_again: &HashSet<&str>) -> LineKind {
    let found = matches!(fact.detail, Detail::File { op: FileOp::Mentioned, .. });
    match fact.topic {
        // A session's only request is goal and last request; as the last request, it gives way later.
        Topic::Goal if last.contains(&(fact.message, fact.text.as_str())) => LineKind::Last,
        // The tail shows the change.
        Topic::Files if changed_again.contains(fact.text.as_str()) => LineKind::Read,
        Topic::Files if found && last.iter().any(|it| it.0 == fact.message) => LineKind::Asked,
        _ => LineKind::of(fact),
    }
}

/// Whether two texts of one message tell the same: they begin with the same words.
fn begins_alike(one: &str, other: &str) -> bool {
    const ENOUGH: usize = 60;
    one.chars().take(ENOUGH).eq(other.chars().take(ENOUGH))
}

fn section_of(sections: &[Section], topic: Topic) -> Option<usize> {
    let topic = listed_topic(sections, topic);
    sections.iter().position(|it| it.holds.contains(&topic))
}

fn focus_words(focus: &str) -> Vec<String> {
    let lower = focus.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric());
    words.filter(|it| it.chars().count() > 2).map(Into::into).collect()
}

/// Failures that the line of another fact tells, so that each is told once.
#[derive(Default)]
struct Failures<'a> {
    /// Message and text of commands whose error has a line, and of resolved errors that came again.
    told: HashSet<(usize, &'a str)>,
    /// The outcomes of these commands, by the address of the error.
    ends: HashMap<*const Fact, &'a Outcome>,
}

fn failures<'a>(facts: &[&'a Fact]) -> Failures<'a> {
    let mut failed: HashMap<(usize, &str), &Outcome> = HashMap::new();
    for fact in facts {
        if let Detail::Command { outcome: outcome @ Outcome { ok: Some(false), .. }, .. } = &fact.detail {
            failed.insert((fact.message, &fact.text), outcome);
        }
    }
    let mut out = Failures::default();
    let mut resolved: HashMap<&str, usize> = HashMap::new();
    for &fact in facts {
        if LineKind::of(fact) == LineKind::Mended {
            let before = resolved.insert(&fact.text, fact.message).filter(|it| *it < fact.message);
            out.told.extend(before.map(|it| (it, fact.text.as_str())));
        }
        if let Detail::Error { of: Some(of), resolved: None, .. } = &fact.detail
            && let Some(outcome) = failed.get(&(fact.message, of.as_str()))
            && out.told.insert((fact.message, of))
        {
            out.ends.insert(std::ptr::from_ref(fact), outcome);
        }
    }
    out
}

/// The topic under which a fact is listed: another one if no section holds its own.
fn listed_topic(sections: &[Section], topic: Topic) -> Topic {
    if sections.iter().any(|it| it.holds.contains(&topic)) {
        return topic;
    }
    match topic {
        Topic::Directives => Topic::Constraints,
        Topic::Unconfirmed => Topic::Open,
        Topic::Mode => Topic::Current,
        Topic::Approved | Topic::Replies => Topic::Findings,
        other => other,
    }
}

/// The section of a fact: the first that holds its topic, or a narrower one for prohibitions and plans.
fn section_for(sections: &[Section], fact: &Fact) -> Option<usize> {
    let holds = |topic: Topic| move |it: &Section| it.holds.contains(&topic);
    let topic = listed_topic(sections, fact.topic);
    let first = sections.iter().position(|it| holds(topic)(it) && !it.forbidden_only);
    if fact.detail == Detail::Rule(Polarity::Forbid) {
        let narrow = sections.iter().position(|it| holds(topic)(it) && it.forbidden_only);
        return narrow.or(first);
    }
    if matches!(topic, Topic::Findings | Topic::Current) && facts::is_plan(&fact.text) {
        let plan = sections.iter().position(|it| holds(Topic::Open)(it) && holds(topic)(it));
        return plan.or(first);
    }
    first.or_else(|| sections.iter().position(holds(topic)))
}

/// Maximum bytes of a follow-up request such as "commit it", which only the request before it explains.
const FOLLOW_UP: usize = 60;

/// Maximum characters of a text that is written whole if it gets a line at all.
const SHORT: usize = 160;

/// Whether a rule is part of a user message that is short enough to be quoted whole.
fn quoted_whole(rule: &Fact, facts: &[&Fact]) -> bool {
    let short = |it: &&Fact| it.topic == Topic::UserMessages && it.text.chars().count() <= SHORT;
    facts_of_message(rule, facts).filter(short).any(|it| contains_rule(it, rule))
}

/// The facts of the same message, at most [`MAX_FACTS_OF_MESSAGE`]. `facts` are in the order of their messages.
fn facts_of_message<'f, 'a>(
    fact: &Fact,
    facts: &'f [&'a Fact],
) -> impl Iterator<Item = &'a Fact> + use<'f, 'a> {
    let message = fact.message;
    let from = &facts[facts.partition_point(|it| it.message < message)..];
    from.iter().copied().take_while(move |it| it.message == message).take(MAX_FACTS_OF_MESSAGE)
}

/// Whether a command only made a commit that one of `logs`, the lines about the repository, lists.
fn is_logged(fact: &Fact, logs: &[&str]) -> bool {
    let Detail::Command { outcome, .. } = &fact.detail else { return false };
    let hash = line::commit(fact, outcome).and_then(|it| it.0.split(' ').next());
    hash.is_some_and(|it| logs.iter().any(|log| log.contains(it)))
}

/// Whether rules already say what the user said, but for a few words.
fn is_covered_by_rules(said: &Fact, facts: &[&Fact]) -> bool {
    /// Maximum characters of these words.
    const FEW: usize = 40;
    if said.text.len() > MAX_REPLACED_PROMPT {
        return false;
    }
    let orders =
        |it: &&Fact| matches!(it.topic, Topic::Constraints | Topic::Directives) && contains_rule(said, it);
    let rules = facts_of_message(said, facts).filter(orders);
    let told: usize = rules.map(|it| it.text.chars().count()).sum();
    let all = said.text.chars().count();
    told * 5 >= all * 4 && all.saturating_sub(told) <= FEW
}

/// Maximum number of facts of a message that are looked at; maximum bytes of a prompt that rules may replace.
const MAX_FACTS_OF_MESSAGE: usize = 400;
const MAX_REPLACED_PROMPT: usize = 16_000;

/// Directories of several files that are outside the working directory or were only found: paths are written
/// from there, after the directory once a line. Each is the one that saves most of what is left.
fn roots(items: &[Candidate]) -> Vec<String> {
    /// Minimum number of files; fewer are listed with their whole paths.
    const FILES: usize = 4;
    /// Minimum characters that a root must save.
    const SAVED: usize = 160;
    let mut paths: Vec<&str> = items
        .iter()
        .filter(|it| it.fact.topic == Topic::Files)
        .filter(|it| it.fact.text.starts_with('/') || it.kind == LineKind::Found)
        .map(|it| it.fact.text.as_str())
        .collect();
    let mut out: Vec<String> = Vec::new();
    while out.len() < 4 {
        let mut holds: BTreeMap<&str, usize> = BTreeMap::new();
        for path in &paths {
            let above = if path.starts_with('/') { 2 } else { 0 };
            for (at, _) in path.match_indices('/').skip(above).take(24) {
                *holds.entry(&path[..at]).or_default() += 1;
            }
        }
        let saved = |(root, count): &(&str, usize)| count.saturating_sub(1) * root.len();
        let best = holds.into_iter().filter(|it| it.1 >= FILES && saved(it) >= SAVED).max_by_key(saved);
        let Some((root, _)) = best else { break };
        out.push(root.to_owned());
        paths.retain(|it| !it.strip_prefix(root).is_some_and(|rest| rest.starts_with('/')));
    }
    out
}
