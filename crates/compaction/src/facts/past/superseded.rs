//! What an earlier summary told as the present and the session since then shows to be over. It gives way only to what
//! is seen of the same: a task's new state, work on the same names, a turn that ended.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::evidence::Evidence;
use super::present::{self, is_report};
use super::progress;
use super::step_index::MAX_CANDIDATES;
use crate::facts::plan::TaskUpdate;
use crate::facts::talk::is_trivial;
use crate::facts::talk::orders::{for_one_request, polarity};
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::cues::{CUES, Lowercased};
use crate::facts::text::sentences;
use crate::facts::work::command;
use crate::facts::{Detail, Fact, Topic, Voice};
use history::{History, Kind, Message, Role};

/// The number that a line gives its task: `Task #3: …`.
static TASK: LazyLock<AsciiFirstRegex> =
    LazyLock::new(|| AsciiFirstRegex::new(r"(?i)^\W*(?:task\s+#?|#)(\d+)\b"));

/// A longer step is more than its verb says.
const MAX_RUN_STEP_BYTES: usize = 120;

/// A step from its verb on, without what only says that it is one.
static STEP: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::new(r"(?is)^\W*(?:(?:we |i )?(?:still )?needs? to |then |finally,? )?(\w.*)$")
});

/// What the model offers to do: verb and object.
static OFFER: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::new(r"(?is)(?:shall i|should i|may i|(?:want|like) me to) (?:also |now )?(\w+)(.*)$")
});

/// A refusal that only puts off.
static POSTPONES: LazyLock<AsciiFirstRegex> =
    LazyLock::new(|| AsciiFirstRegex::new(r"(?i)\b(?:not yet|not now|wait|hold on|later|first)\b"));

/// A task that is done or was dropped: what was to be done with which names, and when.
struct ClosedTask {
    verb: String,
    names: HashSet<String>,
    message: usize,
}

impl ClosedTask {
    fn of(text: &str, message: usize) -> Self {
        Self { verb: verb(text), names: code_names(text), message }
    }
}

/// The first word of a step.
fn verb(text: &str) -> String {
    let step = STEP.captures(text).and_then(|it| it.get(1)).map_or(text, |it| it.as_str());
    step.split(|c: char| !c.is_alphanumeric()).find(|it| !it.is_empty()).unwrap_or_default().to_lowercase()
}

/// Brings what earlier summaries said of the present up to date. `changed`: what became of tasks made before.
pub(in crate::facts) fn drop_superseded(history: &History, changed: &[TaskUpdate], facts: &mut Vec<Fact>) {
    let past = outdated_summaries(history);
    // What was asked last then is what was asked before.
    for fact in facts.iter_mut().filter(|it| it.topic == Topic::Last && past.contains(&it.message)) {
        fact.topic = Topic::UserMessages;
    }
    if !facts.iter().any(|it| it.voice() == Voice::Summary) {
        return;
    }
    let mut over = apply_task_updates(changed, facts);
    let done = facts.iter().filter(|it| it.topic == Topic::Done && it.voice() == Voice::Model);
    over.extend(done.map(|it| ClosedTask::of(&it.text, it.message)));
    // The newest last: of tasks with the same name those are looked at.
    over.sort_by_key(|it| it.message);
    let mut by_name: HashMap<&str, Vec<&ClosedTask>> = HashMap::new();
    for task in &over {
        task.names.iter().for_each(|it| by_name.entry(it).or_default().push(task));
    }
    facts.retain(|fact| !is_superseded(fact, &by_name));
    // When each was last run.
    let mut runs: HashMap<String, usize> = HashMap::new();
    for (message, stems) in facts.iter().filter_map(programs_run) {
        for stem in stems {
            let last = runs.entry(stem).or_default();
            *last = message.max(*last);
        }
    }
    facts.retain(|fact| {
        let step = STEP.captures(&fact.text).and_then(|it| it.get(1)).map_or("", |it| it.as_str());
        let run = ["run ", "rerun ", "re-run "].iter().any(|it| step.to_lowercase().starts_with(it));
        // Nothing but to run something, and all of that was run.
        let only = run
            && is_open_in_summary(fact)
            && step.len() <= MAX_RUN_STEP_BYTES
            && polarity(&fact.text).is_none();
        let step = if only { stems(step) } else { HashSet::new() };
        step.is_empty() || !step.iter().all(|it| runs.get(it).is_some_and(|it| *it > fact.message))
    });
    // A rule does not end with the turn it stands in.
    let since = present::last_work(history, facts).max(present::last_statement(history));
    let current = |fact: &mut Fact| {
        fact.topic == Topic::Current
            && fact.voice() == Voice::Summary
            && (fact.message < since || past.contains(&fact.message))
            && polarity(&fact.text).is_none()
    };
    let mut stood: Vec<Fact> = facts.extract_if(.., current).collect();
    // Where the work stood then is no longer where it stands; what it says beyond that was found out.
    for fact in &mut stood {
        fact.topic = Topic::Findings;
        fact.text.reword(|it| {
            let found = |it: &&str| CUES.found.is_in(&Lowercased::of(it)) && !says_remaining(it);
            sentences(it).into_iter().filter(found).collect::<Vec<_>>().join(" ")
        });
    }
    stood.retain(|it| !it.text.is_empty());
    // The newest of what that summary says.
    facts.splice(0..0, stood);
}

/// Gives steps that summaries told with their number the state that they have since; gives back those that are over.
fn apply_task_updates(changed: &[TaskUpdate], facts: &mut Vec<Fact>) -> Vec<ClosedTask> {
    let mut over = Vec::new();
    let last: HashMap<&str, &TaskUpdate> = changed.iter().map(|it| (it.id.as_str(), it)).collect();
    facts.retain_mut(|fact| {
        if !is_open_in_summary(fact) {
            return true;
        }
        let found = TASK.captures(&fact.text).and_then(|it| Some(it.get(1)?.as_str().to_owned()));
        let now = found.and_then(|it| last.get(it.as_str())).filter(|it| it.message > fact.message);
        let Some(now) = now else { return true };
        if now.topic != Some(Topic::Open) {
            over.extend((now.topic != Some(Topic::Active)).then(|| ClosedTask::of(&fact.text, now.message)));
            fact.message = now.message;
        }
        // How it was to be done is over with it.
        if now.topic == Some(Topic::Done) {
            fact.text.truncate(fact.text.find(" — ").unwrap_or(fact.text.len()));
        }
        fact.topic = now.topic.unwrap_or(fact.topic);
        now.topic.is_some()
    });
    over
}

/// Drops the steps of earlier summaries that the user did not want taken when the model asked: "Shall I commit?" "No".
pub(in crate::facts) fn drop_refused_steps(facts: &mut Vec<Fact>) {
    let no = |fact: &Fact| match &fact.detail {
        // "Not yet" is no no.
        Detail::Choice { asked: Some(asked), refused: true, .. } if !POSTPONES.is_match(&fact.text) => {
            let found = OFFER.captures(asked)?;
            let verb = found.get(1)?.as_str().to_lowercase();
            Some((fact.message, verb, stems(found.get(2).map_or("", |it| it.as_str()))))
        }
        _ => None,
    };
    // By verb: when each object was last refused, and when none was named.
    let mut refused: HashMap<String, (HashMap<String, usize>, Option<usize>)> = HashMap::new();
    for (message, verb, object) in facts.iter().filter_map(no) {
        let (objects, bare) = refused.entry(verb).or_default();
        if object.is_empty() {
            *bare = Some(message).max(*bare);
        }
        for stem in object {
            let last = objects.entry(stem).or_default();
            *last = message.max(*last);
        }
    }
    if refused.is_empty() {
        return;
    }
    facts.retain(|fact| {
        let Some(rest) =
            STEP.captures(&fact.text).and_then(|it| it.get(1)).filter(|_| is_open_in_summary(fact))
        else {
            return true;
        };
        let step = rest.as_str().to_lowercase();
        let (first, rest) = step.split_once(|c: char| !c.is_alphanumeric()).unwrap_or((&step, ""));
        let Some((objects, bare)) = refused.get(first) else { return true };
        let rest = stems(rest);
        // "Shall I commit?" is about a step that says no more than that.
        let bare = rest.is_empty() && bare.is_some_and(|it| it > fact.message);
        !(bare || rest.iter().any(|it| objects.get(it).is_some_and(|it| *it > fact.message)))
    });
}

/// Drops steps that are over by [`Evidence`], and sets those apart that nothing confirms since: of an earlier summary, or
/// of a plan that the model reported on before the user asked for something else.
pub(in crate::facts) fn settle_steps(history: &History, facts: &mut Vec<Fact>) {
    progress::close_steps(history, facts);
    let evidence = Evidence::of(facts);
    let step = |it: &Fact| matches!(it.topic, Topic::Open | Topic::Active | Topic::Unconfirmed);
    // "All requested work appears complete" is nothing that is open.
    let nothing_left =
        |it: &Fact| it.voice() == Voice::Summary && CUES.finished.is_in(&Lowercased::of(&it.text));
    let over: Vec<bool> = facts
        .iter()
        .map(|it| step(it) && (nothing_left(it) || evidence.shows_done(&it.text, it.message)))
        .collect();
    let mut over = over.into_iter();
    facts.retain(|_| !over.next().unwrap_or(false));
    let (left, went_on) = (last_answered(history), last_turning_point(history));
    for fact in facts.iter_mut().filter(|it| step(it)) {
        let over = if fact.voice() == Voice::Summary { went_on } else { left };
        if over.is_some_and(|it| it > fact.message) {
            fact.topic = Topic::Unconfirmed;
        }
    }
}

/// Drops rules that were given for one request, once the user has made another.
pub(in crate::facts) fn drop_expired_rules(history: &History, facts: &mut Vec<Fact>) {
    let asks = |it: &Message| it.is_prompt() && !is_trivial(&it.plain());
    let Some(newest) = history.messages().iter().rposition(asks) else { return };
    let rule = |it: &Fact| matches!(it.topic, Topic::Constraints | Topic::Directives);
    facts.retain(|it| {
        !(rule(it) && it.voice() == Voice::User && it.message < newest && for_one_request(&it.text))
    });
}

/// Where what the session began with was answered, the goal is what is asked now.
pub(in crate::facts) fn replace_answered_goal(history: &History, facts: &mut Vec<Fact>) {
    let goal = facts.iter().filter(|it| it.topic == Topic::Goal).map(|it| it.message).min();
    let Some(at) = last_answered(history).filter(|it| goal.is_some_and(|goal| goal < *it)) else { return };
    let asked = |it: &&Fact| it.topic == Topic::Last && it.voice() == Voice::User && it.message > at;
    let now: Vec<Fact> =
        facts.iter().filter(asked).map(|it| Fact { topic: Topic::Goal, ..it.clone() }).collect();
    facts.extend(now);
}

/// The last report of the model, or summary, after which the user asked for something else, or the last prompt of which
/// that is known: what was planned before it was left.
pub fn last_answered(history: &History) -> Option<usize> {
    let messages = history.messages();
    let mut asked = false;
    // Whether a prompt is the next that anybody says.
    let mut next = false;
    for (number, message) in messages.iter().enumerate().rev() {
        if message.is_prompt() {
            asked |= !is_trivial(&message.plain());
            next = true;
        } else if message.kind == Kind::Summary && asked {
            return Some(number);
        } else if message.role == Role::Assistant {
            if asked && next && is_report(message) {
                return Some(number);
            }
            next = false;
        }
    }
    answered_before_summary(messages)
}

/// The last but one of the prompts that a session begins with up to a summary. A compaction took the replies away: each of
/// them but the last was answered.
fn answered_before_summary(messages: &[Message]) -> Option<usize> {
    let summary = messages.iter().position(|it| it.kind == Kind::Summary)?;
    let begins = &messages[..summary];
    if begins.iter().any(|it| it.role == Role::Assistant) {
        return None;
    }
    let asks = |it: &(usize, &Message)| it.1.is_prompt() && !is_trivial(&it.1.plain());
    begins.iter().enumerate().filter(asks).rev().nth(1).map(|it| it.0)
}

/// The last message by which the work came to an end or to something else: a report, or a request of the user.
fn last_turning_point(history: &History) -> Option<usize> {
    let asks = |it: &Message| it.is_prompt() && !is_trivial(&it.plain());
    history.messages().iter().rposition(|it| asks(it) || is_report(it))
}

fn is_open_in_summary(fact: &Fact) -> bool {
    fact.voice() == Voice::Summary && matches!(fact.topic, Topic::Open | Topic::Active | Topic::Unconfirmed)
}

/// What a command that went well ran, by its last word: `fmt` of `npm run fmt`.
fn programs_run(fact: &Fact) -> Option<(usize, HashSet<String>)> {
    let Detail::Command { outcome, read_only: false } = &fact.detail else { return None };
    if outcome.ok != Some(true) {
        return None;
    }
    let kinds = command::operations(&fact.text);
    let last = kinds.iter().flat_map(|it| stems(it.name.rsplit(' ').next().unwrap_or_default()));
    Some((fact.message, last.collect()))
}

/// The words of a text that say what it is about, without what their number adds.
fn stems(text: &str) -> HashSet<String> {
    const EMPTY: [&str; 14] = [
        "the", "this", "that", "them", "these", "and", "for", "now", "all", "too", "you", "like", "then",
        "run",
    ];
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    let words = words.filter(|it| it.chars().count() > 2 && !EMPTY.contains(&it.as_str()));
    words.map(|it| it.trim_end_matches('s').to_owned()).collect()
}

/// Whether an earlier summary told `fact` as open, and it is about what is over.
fn is_superseded(fact: &Fact, over: &HashMap<&str, Vec<&ClosedTask>>) -> bool {
    if fact.voice() != Voice::Summary || over.is_empty() || polarity(&fact.text).is_some() {
        return false;
    }
    let told = match fact.topic {
        Topic::Open | Topic::Active | Topic::Unconfirmed | Topic::Current => true,
        Topic::Findings => says_remaining(&fact.text),
        _ => false,
    };
    if !told {
        return false;
    }
    let own = code_names(&fact.text);
    // Of two things that are to be done to the same files, one may be done and the other not.
    let step = is_open_in_summary(fact);
    let verb = verb(&fact.text);
    let near =
        own.iter().filter_map(|it| over.get(it.as_str())).flat_map(|it| it.iter().rev().take(MAX_CANDIDATES));
    near.filter(|it| it.message > fact.message && (!step || it.verb == verb)).any(|it| {
        let shared = own.intersection(&it.names).count();
        shared >= 2 && shared * 2 >= own.len()
    })
}

/// Whether a text says that something is left to do.
fn says_remaining(text: &str) -> bool {
    let lower = Lowercased::of(text);
    CUES.remaining.is_in(&lower) || text.to_lowercase().contains("in progress")
}

/// The names of code in a text: what no prose is made of.
fn code_names(text: &str) -> HashSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"_./-".contains(c));
    let words = words.map(|it| it.trim_matches(['.', '-', '/']));
    let code = |it: &&str| {
        let humped =
            it.as_bytes().windows(2).any(|it| it[0].is_ascii_lowercase() && it[1].is_ascii_uppercase());
        it.len() > 3 && (humped || it.contains(['_', '.', '/']))
    };
    words.filter(code).map(str::to_lowercase).collect()
}

/// The summaries since which the model came to an answer and the user asked for something again.
fn outdated_summaries(history: &History) -> HashSet<usize> {
    let mut out = HashSet::new();
    // Walked backwards: whether a prompt follows, and whether an answer with a prompt behind it does.
    let (mut asked, mut went_on) = (false, false);
    for (number, message) in history.messages().iter().enumerate().rev() {
        match (message.role, message.kind) {
            (_, Kind::Summary) if went_on => {
                out.insert(number);
            }
            (Role::Assistant, Kind::Said) if asked && !went_on => {
                went_on = message.texts().any(|it| !it.as_str().trim().is_empty());
            }
            _ => asked |= !asked && message.is_prompt() && !is_trivial(&message.plain()),
        }
    }
    out
}
