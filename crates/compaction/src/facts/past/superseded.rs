//! Facts that an earlier summary states as current and the session since then supersedes. Evidence must be about the
//! same thing: a new status of the task, work on the same names, a finished turn.

use std::collections::{HashMap, HashSet};

use super::evidence::Evidence;
use super::progress;
use super::reader::headings::{BUT_LEFT, LOOKS, REPORTED, STATES, TOUCHED};
use super::step_index::MAX_CANDIDATES;
use super::temporary;
use crate::facts::plan::TaskUpdate;
use crate::facts::talk::replies::{
    AnsweredRequest, answers, is_answer, is_interruption, is_request, last_answered, last_report,
    last_turning_point, leaves_open,
};
use crate::facts::talk::report::{is_report, says_remaining, text_of_model};
use crate::facts::talk::{MAX_REPLY_BYTES, asks};
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::cues::{CUES, Lowercased};
use crate::facts::text::rule::polarity;
use crate::facts::text::{FILE_NAME, ends_with_colon, is_camel_case, sentences, without_sentences};
use crate::facts::voice::ModelTopic;
use crate::facts::work::command::ParsedCommand;
use crate::facts::{Detail, Fact, Polarity, Topic, Voice};
use history::tools::{self, Meaning};
use history::{Call, History, Kind, Message, Role};

/// The numbers of the tasks that a step is about: `Task #3: …`, `tasks #6 and #7`, `UI-5 (#16): …`.
static TASKS: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:task\s+#?|#)(\d+)\b|\btasks?:? ((?:#\d+(?:,? and |, | & )?)+)|\b[A-Z]+-\d+ \(#(\d+)\)|\(#(\d+)\):",
);

/// The status of a step after its number or name, with the space around it.
static STATUS: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\s*[:–-]\s*\**(pending|not started|in[ _]progress|blocked|unfixed)\b\**(?:\s*[:–-]\s*)?",
);

/// Maximum bytes of a step that asks only for a run.
const MAX_RUN_STEP_BYTES: usize = 120;

/// A step from its verb on, without "we still need to" and the like.
static STEP: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?is)^\W*(?:(?:we |i )?(?:still )?needs? to |then |finally,? )?(\w.*)$");

/// What the model offers to do: verb and object.
static OFFER: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?is)(?:shall i|should i|may i|(?:want|like) me to) (?:also |now )?(\w+)(.*)$");

/// A refusal that only postpones.
static POSTPONES: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)\b(?:not yet|not now|wait|hold on|later|first)\b");

/// A task that was finished or cancelled: verb, names of code, message.
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

fn from_verb(step: &str) -> Option<&str> {
    STEP.captures(step)?.get(1).map(|it| it.as_str())
}

/// The verb of a step: its first word.
fn verb(text: &str) -> String {
    from_verb(text)
        .unwrap_or(text)
        .split(|c: char| !c.is_alphanumeric())
        .find(|it| !it.is_empty())
        .unwrap_or_default()
        .to_lowercase()
}

/// Updates or drops what earlier summaries state as current. `changed`: updates of tasks older than the
/// history.
pub(in crate::facts) fn drop_superseded(history: &History, changed: &[TaskUpdate], facts: &mut Vec<Fact>) {
    let outdated = outdated_summaries(history);
    // The last request at that time is an earlier one now.
    for fact in facts.iter_mut().filter(|it| it.topic == Topic::Last && outdated.contains(&it.message)) {
        fact.topic = Topic::UserMessages;
    }
    if !facts.iter().any(|it| it.voice() == Voice::Summary) {
        return;
    }
    let mut closed = apply_task_updates(changed, facts);
    let done = facts.iter().filter(|it| it.topic == Topic::Done && it.voice() == Voice::Model);
    closed.extend(done.map(|it| ClosedTask::of(&it.text, it.message)));
    // In ascending order: of the tasks that share a name, the last ones are compared.
    closed.sort_by_key(|it| it.message);
    let mut by_name: HashMap<&str, Vec<&ClosedTask>> = HashMap::new();
    for task in &closed {
        task.names.iter().for_each(|it| by_name.entry(it).or_default().push(task));
    }
    facts.retain(|fact| !is_superseded(fact, &by_name));
    // By word of a program's name, the last message in which the program ran.
    let mut runs: HashMap<String, usize> = HashMap::new();
    for (message, stems) in facts.iter().filter_map(programs_run) {
        for stem in stems {
            let last = runs.entry(stem).or_default();
            *last = message.max(*last);
        }
    }
    facts.retain(|fact| {
        let step = from_verb(&fact.text).unwrap_or_default();
        let run = ["run ", "rerun ", "re-run "].iter().any(|it| step.to_lowercase().starts_with(it));
        // Dropped: a step that only asks for runs, all of which ran since.
        let only = run
            && is_open_in_summary(fact)
            && step.len() <= MAX_RUN_STEP_BYTES
            && polarity(&fact.text).is_none();
        let step = if only { stems(step) } else { HashSet::new() };
        step.is_empty() || !step.iter().all(|it| runs.get(it).is_some_and(|it| *it > fact.message))
    });
    let since = temporary::last_work(history, facts).max(temporary::last_statement(history));
    let status = |it: &Fact| {
        let kind = matches!(it.topic, Topic::Errors | Topic::Findings | Topic::Open | Topic::Active);
        kind && it.voice() == Voice::Summary && it.message < since && STATES.is_match(&it.text)
    };
    facts.retain(|it| !status(it));
    let stated = |it: &Fact| it.topic == Topic::Current && it.voice() == Voice::Summary;
    let is_outdated = |it: &Fact| stated(it) && (it.message < since || outdated.contains(&it.message));
    // Rules do not become outdated with the turn, unless they say what was to be done in it.
    for fact in facts.iter_mut().filter(|it| is_outdated(it)) {
        let holds = match polarity(&fact.text) {
            None => false,
            Some(Polarity::Forbid) => true,
            Some(Polarity::Require | Polarity::Prefer) => !outdated.contains(&fact.message),
        };
        if holds {
            fact.topic = Topic::Findings;
        }
    }
    let current = |it: &mut Fact| is_outdated(it);
    let mut old_state: Vec<Fact> = facts.extract_if(.., current).collect();
    // The old state of the work is dropped; findings in it are kept.
    for fact in &mut old_state {
        fact.topic = Topic::Findings;
        fact.text.reword(|it| {
            let found = |it: &&str| CUES.found.is_in(&Lowercased::of(it)) && !says_remaining(it);
            sentences(it).into_iter().filter(found).collect::<Vec<_>>().join(" ")
        });
    }
    old_state.retain(|it| !it.text.is_empty());
    // In front: the sort by message is stable, so they stay before the other facts of their summary.
    facts.splice(0..0, old_state);
}

/// Applies status changes to the numbered steps of summaries. Returns the steps that were finished or cancelled.
fn apply_task_updates(changed: &[TaskUpdate], facts: &mut Vec<Fact>) -> Vec<ClosedTask> {
    let mut closed = Vec::new();
    let last: HashMap<&str, &TaskUpdate> = changed.iter().map(|it| (it.id.as_str(), it)).collect();
    facts.retain_mut(|fact| {
        if !is_open_in_summary(fact) {
            return true;
        }
        // A step about several tasks changes once all of them did, to the status of the least finished.
        let of = |id: &str| last.get(id).copied().filter(|it| it.message > fact.message);
        let now: Option<Vec<&TaskUpdate>> = task_numbers(&fact.text).into_iter().map(of).collect();
        let now = now.unwrap_or_default().into_iter();
        let Some(now) =
            now.max_by_key(|it| (it.topic == Some(Topic::Open), it.topic == Some(Topic::Active), it.message))
        else {
            return true;
        };
        if now.topic != Some(Topic::Open) {
            closed
                .extend((now.topic != Some(Topic::Active)).then(|| ClosedTask::of(&fact.text, now.message)));
            fact.message = now.message;
        }
        if now.topic == Some(Topic::Done) {
            fact.text.reword(|it| {
                let step = without_status(it);
                let rest = without_sentences(&step, temporary::states_the_moment);
                if rest.trim().is_empty() { step } else { rest.trim().to_owned() }
            });
        }
        fact.topic = now.topic.unwrap_or(fact.topic);
        now.topic.is_some()
    });
    closed
}

fn task_numbers(step: &str) -> Vec<&str> {
    let Some(found) = TASKS.captures(step) else { return Vec::new() };
    let groups = (1..=4).filter_map(|it| found.get(it));
    groups
        .flat_map(|it| it.as_str().split(|c: char| !c.is_ascii_digit()))
        .filter(|it| !it.is_empty())
        .collect()
}

/// The text of a finished step, without its status and explanation from the summary.
fn without_status(step: &str) -> String {
    let step = step.split_once(" — ").map_or(step, |it| it.0);
    match STATUS.captures(step).and_then(|it| Some((it.get(0)?, it.get(1)?))) {
        // What follows such a status is what was left to do.
        Some((label, status)) if !status.as_str().eq_ignore_ascii_case("pending") => {
            step[..label.start()].to_owned()
        }
        Some((label, _)) => format!("{}: {}", &step[..label.start()], &step[label.end()..]),
        None => step.to_owned(),
    }
}

/// Drops steps of earlier summaries that the model offered to take and the user declined: "Shall I commit?" "No".
pub(in crate::facts) fn drop_refused_steps(facts: &mut Vec<Fact>) {
    let refusal = |fact: &Fact| match &fact.detail {
        // "Not yet" is not a refusal.
        Detail::Choice { asked: Some(asked), refused: true, .. } if !POSTPONES.is_match(&fact.text) => {
            let found = OFFER.captures(asked)?;
            let verb = found.get(1)?.as_str().to_lowercase();
            Some((fact.message, verb, stems(found.get(2).map_or("", |it| it.as_str()))))
        }
        _ => None,
    };
    // By verb: the last refusal for each object, and the last one without an object.
    let mut refused: HashMap<String, (HashMap<String, usize>, Option<usize>)> = HashMap::new();
    for (message, verb, object) in facts.iter().filter_map(refusal) {
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
        let Some(step) = from_verb(&fact.text).filter(|_| is_open_in_summary(fact)) else { return true };
        let step = step.to_lowercase();
        let (first, rest) = step.split_once(|c: char| !c.is_alphanumeric()).unwrap_or((&step, ""));
        let Some((objects, bare)) = refused.get(first) else { return true };
        let rest = stems(rest);
        // "Shall I commit?" concerns a step without an object.
        let bare = rest.is_empty() && bare.is_some_and(|it| it > fact.message);
        !(bare || rest.iter().any(|it| objects.get(it).is_some_and(|it| *it > fact.message)))
    });
}

/// What a list says of a step that waits for another one.
static BLOCKED: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)\s*(?:[:–—-]\s+|\()blocked by [^()]*(?:\([^()]*\)[^()]*)?\)?$");

/// A step that only waits for the user.
static AWAITS_USER: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:wait(?:ing)? for|await(?:ing)?) (?:the )?(?:user|(?:(?:user|[\w-]+['’]s) )?(?:feedback|reply|answer|response|approval|input|confirmation|go-ahead))",
    r"(?: (?:on|about) [^,;]*)?\W*$|^\W*(?:the )?user has(?:n['’]t| not) (?:yet )?(?:provided|given|replied|responded|answered)\b[^;]*$",
    r"|^\W*(?:the )?user has(?:n['’]t| not) (?:yet |explicitly )?(?:requested|asked for) (?:any|further|more|pr creation|an? (?:pr|pull request))\b[^;,]*$",
));

fn plans(call: &&Call) -> bool {
    tools::meaning(&call.name) == Meaning::Plan
}

/// Drops steps that [`Evidence`] shows to be done. Marks as unconfirmed the steps of an earlier summary, and those of a
/// plan that the model reported on before the user asked for something else, if nothing since confirms them.
pub(in crate::facts) fn settle_steps(history: &History, facts: &mut Vec<Fact>) {
    // Steps that the model ticked off show that it kept its list up to date, unless the only call set them so.
    let kept_up = facts.iter().any(|it| it.topic == Topic::Done && it.voice() == Voice::Model)
        && history.messages().iter().flat_map(Message::calls).filter(plans).take(2).count() != 1;
    // What is being worked on is not blocked, whatever the list says.
    for fact in facts.iter_mut().filter(|it| it.topic == Topic::Active && BLOCKED.is_match(&it.text)) {
        fact.text.reword(|it| BLOCKED.replace_all(it, "").into_owned());
    }
    progress::close_steps(history, kept_up, facts);
    let evidence = Evidence::of(facts);
    let step = Fact::is_open_step;
    // "All requested work appears complete" is not an open step.
    let nothing_left = |it: &Fact| {
        it.voice() == Voice::Summary
            && CUES.finished.is_in(&Lowercased::of(&it.text))
            && !BUT_LEFT.is_match(&it.text)
    };
    // What introduces or quotes is no step: "The next steps, in this order:".
    let introduces =
        |it: &Fact| it.voice() == Voice::Summary && (ends_with_colon(&it.text) || it.text.starts_with("> "));
    let last_prompt = history.last_prompt();
    let done_steps: Vec<bool> = facts
        .iter()
        .map(|it| {
            let answered = || {
                last_prompt > Some(it.message)
                    && sentences(&it.text).first().is_some_and(|it| AWAITS_USER.is_match(it))
            };
            let overtaken = || {
                let looked = || LOOKS.is_match(&it.text) && evidence.all_seen(&it.text, it.message);
                let worked_on = || evidence.shows_worked_on(&it.text, it.message);
                it.voice() == Voice::Summary && (worked_on() || looked() || answered())
            };
            let done = || evidence.shows_done(&it.text, it.message) || overtaken();
            step(it) && (nothing_left(it) || introduces(it) || done())
        })
        .collect();
    let of_model = |it: &Fact| step(it) && it.voice() == Voice::Model;
    let touched: Vec<bool> =
        facts.iter().map(|it| of_model(it) && evidence.last_change(&it.text, it.message).is_some()).collect();
    for (fact, _) in facts.iter_mut().zip(touched).filter(|it| it.1) {
        fact.text.reword(|it| format!("{it}{TOUCHED}"));
    }
    let mut done_steps = done_steps.into_iter();
    facts.retain(|_| !done_steps.next().unwrap_or(false));
    let answers = answers(history);
    let goal = |it: &&Fact| it.topic == Topic::Goal && it.voice() == Voice::Summary;
    let goals = facts.iter().filter(goal).map(|it| (it.message, stems(&it.text))).collect();
    let abandoned =
        |it: &Fact| !(kept_up && it.voice() == Voice::Model) && is_abandoned(history, &answers, &goals, it);
    facts.retain(|it| !(step(it) && abandoned(it)));
    // If the last turn ends as done, a list that it did not touch may be done, too.
    let ended = history.last_prompt().filter(|_| progress::ends_as_done(history));
    let left = last_report(history.messages(), |_| false).max(ended);
    let went_on = last_turning_point(history);
    let set = facts.iter().filter(|it| step(it) && it.voice() == Voice::Model).map(|it| it.message).max();
    let forgotten = set.filter(|it| !kept_up && is_forgotten(history, *it));
    for fact in facts.iter_mut().filter(|it| step(it)) {
        let summarized = fact.voice() == Voice::Summary;
        let settled_at = if summarized { went_on } else { left };
        if settled_at.is_some_and(|it| it > fact.message) {
            fact.topic = Topic::Unconfirmed;
        }
    }
    if let Some(set) = forgotten {
        // The report on the request that it served leaves nothing open, and the user went on.
        let reported = |it: &AnsweredRequest| {
            (it.request..it.reply).contains(&set)
                && !it.leaves_open
                && !it.passed_over
                && last_prompt > Some(it.reply)
        };
        join_forgotten(facts, answers.iter().any(reported));
    }
    note_reported(facts);
}

/// Marks the finished steps in whose files a check has reported errors since.
fn note_reported(facts: &mut [Fact]) {
    let report = |it: &Fact| match (&it.detail, it.text.split_once(": ")) {
        (Detail::Diagnostics { .. }, Some((path, told))) if told.to_lowercase().contains("error") => {
            Some((path.to_owned(), it.message))
        }
        _ => None,
    };
    let reports: Vec<(String, usize)> = facts.iter().filter_map(report).collect();
    for step in facts.iter_mut().filter(|it| it.topic == Topic::Done && it.voice() == Voice::Model) {
        let is = |path: &str, name: &str| {
            path.strip_suffix(name).is_some_and(|it| it.is_empty() || it.ends_with('/'))
        };
        let named = |path: &String| FILE_NAME.find_iter(&step.text).any(|it| is(path, it.as_str()));
        if reports.iter().any(|it| it.1 > step.message && named(&it.0)) {
            step.text.reword(|it| format!("{it}{REPORTED}"));
        }
    }
}

/// Joins the steps of a plan that was not kept up: of each alone, nothing shows whether it is done. `reported`: a report
/// says that all of it is, so that the steps go.
fn join_forgotten(facts: &mut Vec<Fact>, reported: bool) {
    let planned = |it: &Fact| it.is_open_step() && it.voice() == Voice::Model;
    let steps: Vec<Fact> = facts.extract_if(.., |it| planned(it)).collect();
    let Some(at) = steps.iter().map(|it| it.message).max().filter(|_| !reported) else { return };
    let told: Vec<&str> = steps.iter().map(|it| it.text.as_str()).collect();
    let text = format!("planned, never ticked: {}", told.join("; "));
    facts.push(Fact { topic: Topic::Unconfirmed, ..Fact::from_model(ModelTopic::Open, at, text) });
}

/// Whether many calls changed files since message `set`, the last to change a list of which no step was ticked off.
fn is_forgotten(history: &History, set: usize) -> bool {
    /// Minimum calls that change files.
    const MANY: usize = 5;
    let changes = |it: &&Call| {
        let mut actions = tools::actions(it).into_iter();
        actions.any(|it| matches!(it.meaning, Meaning::Edit | Meaning::Create))
    };
    history.messages()[set + 1..].iter().flat_map(Message::calls).filter(changes).nth(MANY - 1).is_some()
}

/// Whether a step was planned in a turn that ended with a report which leaves nothing open, and other requests were
/// answered since: nobody speaks of it any more. A step of an earlier summary ends with a report that all of the
/// summary's goal is done. `goals`: the words of these goals, by message.
fn is_abandoned(
    history: &History,
    answers: &[AnsweredRequest],
    goals: &HashMap<usize, HashSet<String>>,
    step: &Fact,
) -> bool {
    /// Minimum requests answered since.
    const SINCE: usize = 2;
    /// Minimum words that a report has in common with the goal.
    const COMMON: usize = 2;
    let closes = |reply: usize| {
        let report = &history.messages()[reply];
        is_report(report) && !leaves_open(&text_of_model(report))
    };
    let reaches_goal = |reply: usize| {
        let text = text_of_model(&history.messages()[reply]);
        let done = sentences(&text).into_iter().take(2).find(|it| progress::says_done(it));
        let goal = goals.get(&step.message);
        done.is_some_and(|it| goal.is_some_and(|goal| stems(it).intersection(goal).count() >= COMMON))
    };
    let turn = match step.voice() {
        Voice::Summary => answers.iter().find(|it| it.reply > step.message && reaches_goal(it.reply)),
        _ => answers.iter().find(|it| (it.request..it.reply).contains(&step.message)),
    };
    let Some(end) = turn.map(|it| it.reply).filter(|it| closes(*it)) else { return false };
    answers.iter().filter(|it| it.request > end).count() >= SINCE
}

/// Maximum bytes of a question that is no task of its own.
const MAX_QUESTION_BYTES: usize = 120;

/// If the first request was answered, the goal is the current request.
pub(in crate::facts) fn replace_answered_goal(history: &History, facts: &mut Vec<Fact>) {
    let goal = facts.iter().filter(|it| it.topic == Topic::Goal).map(|it| it.message).min();
    let Some(at) = last_answered(history).filter(|it| goal.is_some_and(|goal| goal < *it)) else { return };
    // A short question is answered in passing. `asks` also accepts slash commands, which are tasks.
    let question = |it: &str| asks(it) && !it.starts_with('/') && it.len() <= MAX_QUESTION_BYTES;
    let messages = history.messages();
    let reply = |it: &Fact| it.text.len() <= MAX_REPLY_BYTES && is_answer(messages, it.message);
    let asked = |it: &&Fact| {
        let new = it.topic == Topic::Requests && it.voice() == Voice::User && it.message > at;
        new && !question(&it.text) && !reply(it)
    };
    let Some(newest) = facts.iter().filter(asked).map(|it| it.message).max() else { return };
    let mut current = vec![newest];
    let before = facts.iter().filter(|it| asked(it) && it.message < newest).map(|it| it.message).max();
    current.extend(before.filter(|it| is_corrected(messages, *it, newest)));
    let now = facts.iter().filter(|it| current.contains(&it.message) && asked(it));
    let now: Vec<Fact> = now.map(|it| Fact { topic: Topic::Goal, ..it.clone() }).collect();
    facts.extend(now);
}

/// Drops goals and last requests that are the titles of finished tasks (a team lead assigns those), if others are left.
pub(in crate::facts) fn drop_finished_requests(facts: &mut Vec<Fact>) {
    let done: Vec<String> = facts
        .iter()
        .filter(|it| it.topic == Topic::Done && it.voice() == Voice::Model && it.text.starts_with("Task #"))
        .filter_map(|it| Some(it.text.split_once(": ")?.1.to_owned()))
        .collect();
    for topic in [Topic::Goal, Topic::Last] {
        let request = |it: &Fact| it.topic == topic && it.voice() == Voice::User;
        let finished = |it: &Fact| request(it) && done.iter().any(|title| *title == *it.text);
        if facts.iter().any(|it| request(it) && !finished(it)) {
            facts.retain(|it| !finished(it));
        }
    }
}

/// A request that ends the one before it.
static STOPS: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)\b(?:stop|forget|cancel|abort|wait|leave it|never ?mind)\b");

/// Whether the request `next` corrects `request`: the user refused one of its steps, or interrupted the work with a few
/// words, and did not end it.
fn is_corrected(messages: &[Message], request: usize, next: usize) -> bool {
    /// Maximum characters of such words.
    const FEW: usize = 240;
    /// Minimum characters of a word that they share with the call that was refused or interrupted.
    const MIN_SHARED_CHARS: usize = 5;
    let since = &messages[request..next];
    let said = messages[next].plain();
    let first = sentences(&said).first().copied().unwrap_or_default();
    let lower = Lowercased::of(first);
    let ends = STOPS.is_match(first)
        || [&CUES.refuse, &CUES.withdraws, &CUES.forbid].iter().any(|it| it.is_in(&lower));
    let last = since.iter().rposition(|it| it.role == Role::Assistant && it.kind == Kind::Said);
    let refused =
        last.is_some_and(|at| since[at..].iter().flat_map(Message::outputs).any(|it| it.refusal.is_some()));
    let after = &since[last.unwrap_or(0)..];
    let interrupted = after.iter().any(is_interruption) && said.chars().count() <= FEW;
    // "Review it with the other model instead" is about the refused call, not about the request.
    let called: String =
        after.iter().flat_map(Message::calls).map(|it| it.input.as_str().to_lowercase()).collect();
    let about_call = || {
        stems(&said).iter().any(|it| it.chars().count() >= MIN_SHARED_CHARS && called.contains(it.as_str()))
    };
    let replaces = first.to_lowercase().contains("instead") && !about_call();
    !ends && (refused && !replaces || interrupted && about_call())
}

fn is_open_in_summary(fact: &Fact) -> bool {
    fact.voice() == Voice::Summary && fact.is_open_step()
}

/// The last word of each program that a successful command ran: `fmt` of `npm run fmt`.
fn programs_run(fact: &Fact) -> Option<(usize, HashSet<String>)> {
    let Detail::Command { outcome, read_only: false } = &fact.detail else { return None };
    if outcome.ok != Some(true) {
        return None;
    }
    let kinds = ParsedCommand::of(&fact.text).operations();
    let last = kinds.iter().flat_map(|it| stems(it.name.rsplit(' ').next().unwrap_or_default()));
    Some((fact.message, last.collect()))
}

/// Content words of a text, without plural endings.
fn stems(text: &str) -> HashSet<String> {
    const EMPTY: [&str; 14] = [
        "the", "this", "that", "them", "these", "and", "for", "now", "all", "too", "you", "like", "then",
        "run",
    ];
    let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
    let words = words.filter(|it| it.chars().count() > 2 && !EMPTY.contains(&it.as_str()));
    words.map(|it| it.trim_end_matches('s').to_owned()).collect()
}

/// Whether `fact` is open in an earlier summary and concerns a task that was finished or cancelled.
fn is_superseded(fact: &Fact, closed: &HashMap<&str, Vec<&ClosedTask>>) -> bool {
    if fact.voice() != Voice::Summary || closed.is_empty() || polarity(&fact.text).is_some() {
        return false;
    }
    let states_open = match fact.topic {
        Topic::Open | Topic::Active | Topic::Unconfirmed | Topic::Current => true,
        Topic::Findings | Topic::Replies => says_remaining(&fact.text),
        _ => false,
    };
    if !states_open {
        return false;
    }
    let own = code_names(&fact.text);
    // Two steps may concern the same files and differ in their verb.
    let step = is_open_in_summary(fact);
    let verb = verb(&fact.text);
    let near = own
        .iter()
        .filter_map(|it| closed.get(it.as_str()))
        .flat_map(|it| it.iter().rev().take(MAX_CANDIDATES));
    near.filter(|it| it.message > fact.message && (!step || it.verb == verb)).any(|it| {
        let shared = own.intersection(&it.names).count();
        shared >= 2 && shared * 2 >= own.len()
    })
}

/// Names of code in a text: words that cannot be prose.
fn code_names(text: &str) -> HashSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"_./-".contains(c));
    let words = words.map(|it| it.trim_matches(['.', '-', '/']));
    let code = |it: &&str| it.len() > 3 && (is_camel_case(it) || it.contains(['_', '.', '/']));
    words.filter(code).map(str::to_lowercase).collect()
}

/// The summaries after which the model answered and the user made another request.
fn outdated_summaries(history: &History) -> HashSet<usize> {
    let mut out = HashSet::new();
    // Backwards: whether a prompt follows, and whether an answer and then a prompt follow.
    let (mut asked, mut went_on) = (false, false);
    for (number, message) in history.messages().iter().enumerate().rev() {
        match (message.role, message.kind) {
            (_, Kind::Summary) if went_on => {
                out.insert(number);
            }
            (Role::Assistant, Kind::Said) if asked && !went_on => {
                went_on = message.texts().any(|it| !it.as_str().trim().is_empty());
            }
            _ => asked = asked || is_request(message),
        }
    }
    out
}
