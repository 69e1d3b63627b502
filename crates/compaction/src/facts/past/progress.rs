//! Steps of a plan that the model closes in its prose, without a plan tool: "`a.rs` done. Now `b.rs`."

use std::collections::HashMap;

use super::evidence::{Evidence, only_runs};
use crate::facts::talk::is_trivial;
use crate::facts::talk::report::says_remaining;
use crate::facts::text::FILE_NAME;
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::cues::{CUES, Lowercased};
use crate::facts::text::sentences;
use crate::facts::work::paths::file_name;
use crate::facts::{Fact, Topic, Voice};
use history::{History, Kind, Message, Role};

/// A sentence that only says that files are done: `a.rs and b.rs are done`.
static FILES_DONE: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*((?:[\w./@-]+\.[a-z][a-z0-9]{0,4}[`*]*(?:,? and |, |/| )[`*]*)+)(?:(?:is|are|now|all) )*(?:done|completed?|finished)[.!]?$",
);
/// A sentence that says that all edits, or all of one kind, are made: `All UI edits are in place`.
static ALL_EDITS_DONE: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*all (?:of )?(?:the )?((?:[\w/-]+ ){0,2})(?:edits|changes|fixes|updates) (?:(?:are|is|have been|now) )*(?:done|in|in place|made|applied|completed?|finished)[.!]?$",
);
/// A sentence in a report that says that the whole plan is done.
static ALL_STEPS_DONE: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*all (?:of )?(?:(?:the|my|our|these) )?(?:(?:\d+|two|three|four|five|six|seven|eight|nine|ten|planned|requested|remaining|implementation) )*",
    r"(?:tasks|steps|todos|items|phases|subtasks)\b(?: (?:are|have been|were|is|now|successfully|marked))* (?:done|completed?|finished)(?: successfully)?(?:\W*$|[,;:—–]| and | - )",
));
/// Opening of a report that says the same of the current work: "I applied all changes", "All are fixed",
/// "Done."
static WORK_DONE: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:(?:(?:i|we)(?:['’]ve| have)? )?(?:now |successfully )?(?:implemented|completed|finished|fixed|resolved|addressed|applied|made|added|updated)(?: and \w+)? all (?:[\w-]+ ){0,4}?(?:steps?|tasks?|items?|changes?|edits?|repairs?|fixes|findings?|issues?|comments?|points?|suggestions?|improvements?|them)\b",
    r"|(?:all|everything)(?: (?:of|the|my|our|these|those))*(?: [\w-]+){0,4}? (?:(?:are|is|were|have been|has been|now|successfully) )*(?:fixed|done|completed?|implemented|finished|applied|addressed|resolved|in place)\b",
    r"|(?:all )?done\b\W*(?:$|[.!]))",
));
/// Words that make such an opening claim less: "All but one are fixed", "All of these should be done".
static LIMITED: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\b(?:but|except|besides|apart|needs?|should|must|can|cannot|could|will|would|to|not|never|be)\b|n['’]t\b",
);
/// Words by which such a report says that something is left.
static LEFT: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\b(?:waits?|waiting|still|except|later|postponed|deferred|skipped|unchanged|untouched|left (?:out|open|for|as))\b",
);
/// A step that waits for the user, or for another one.
static WAITS: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)^\W*(?:when|once|if|upon|then|later|await|after (?:the user|approval))\b");
/// Steps that such a report does not close: delivery, steps of other people, steps for later.
static NOT_WORK: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:then |finally |also |need to |still )*(?:commit|push|merge|rebase|tag|deploy|release|publish)\b|\bgit (?:add|commit|push|tag|merge)\b",
    r"|\b(?:commit|push|merg)(?:e|ed|ing)? (?:and|the|all|it|to|them|this|these|changes|everything|yet)\b|\bpull requests?\b|\bprs?\b",
    r"|\b(?:await\w*|wait(?:s|ing)?|ask(?:s|ed)?|confirm\w*|approv\w*|users?|later|future|follow[- ]?ups?|optional(?:ly)?|backlog|out of scope|next (?:phase|session|release))\b",
));
static TURNS_TO: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)^\W*(?:now|next up|next|on to|moving (?:on )?to)\b");

/// Words before "edits" that do not limit which edits are meant.
const NOT_A_LIMIT: [&str; 6] = ["planned", "requested", "remaining", "necessary", "file", "these"];

/// Which files the model said were done, and when.
pub(super) struct Progress<'h> {
    /// By file name, the last message that says it is done.
    done: HashMap<&'h str, usize>,
    /// Message of each "all edits are done", and the words that limit it; without words, all edits are meant.
    edits_done: Vec<(usize, Vec<String>)>,
    /// Reports that say that the whole plan is done.
    plan_done: Vec<usize>,
    /// By message of a summary, the report that ends the work resumed from it and says that all is done.
    resumed: HashMap<usize, usize>,
    /// The files that the model announced to work on next, in order.
    moved_on: Vec<(usize, Vec<&'h str>)>,
}

fn file_names(text: &str) -> Vec<&str> {
    FILE_NAME.find_iter(text).map(|it| file_name(it.as_str())).collect()
}

impl<'h> Progress<'h> {
    pub(super) fn of(history: &'h History) -> Self {
        let messages = history.messages();
        let mut out = Self {
            done: HashMap::new(),
            edits_done: Vec::new(),
            plan_done: Vec::new(),
            resumed: resumed(messages),
            moved_on: Vec::new(),
        };
        let said = |it: &Message| it.role == Role::Assistant && it.kind == Kind::Said;
        for (number, message) in messages.iter().enumerate().filter(|it| said(it.1)) {
            let ends =
                message.calls().next().is_none() && messages.get(number + 1).is_none_or(Message::is_prompt);
            for sentence in message.texts().flat_map(|it| sentences(it.as_str())) {
                if let Some(files) = FILES_DONE.captures(sentence).and_then(|it| it.get(1)) {
                    out.done.extend(file_names(files.as_str()).into_iter().map(|it| (it, number)));
                } else if let Some(of) = ALL_EDITS_DONE.captures(sentence).and_then(|it| it.get(1)) {
                    let words = of.as_str().to_lowercase();
                    let words =
                        words.split([' ', '/']).filter(|it| !it.is_empty() && !NOT_A_LIMIT.contains(it));
                    out.edits_done.push((number, words.map(str::to_owned).collect()));
                } else if ends && ALL_STEPS_DONE.is_match(sentence) {
                    out.plan_done.push(number);
                } else if TURNS_TO.is_match(sentence) {
                    out.moved_on.push((number, file_names(sentence)));
                }
            }
        }
        out
    }

    /// The message in which a step that changes files was finished. `steps`: the paths in open steps, by file name.
    fn closed_at(&self, step: &Fact, evidence: &Evidence, steps: &HashMap<&str, Vec<&str>>) -> Option<usize> {
        // A step that was set after the report belongs to a later list.
        if let Some(report) =
            self.plan_done.iter().find(|it| **it > step.message && step.voice() == Voice::Model)
        {
            return Some(*report);
        }
        if step.voice() == Voice::Summary
            && !WAITS.is_match(&step.text)
            && let Some(report) = self.resumed.get(&step.message).filter(|_| !NOT_WORK.is_match(&step.text))
        {
            return Some(*report);
        }
        let files = file_names(&step.text);
        let unclear = |it: &&str| steps.get(it).is_none_or(|it| it.iter().any(|path| *path != it[0]));
        if files.is_empty() || only_runs(&step.text) || files.iter().any(unclear) {
            return None;
        }
        let since = |it: &&usize| **it > step.message;
        let said: Option<Vec<usize>> =
            files.iter().map(|it| self.done.get(it).filter(since).copied()).collect();
        if let Some(last) = said.and_then(|it| it.into_iter().max()) {
            return Some(last);
        }
        let changed = evidence.last_change(&step.text, step.message)?;
        let lower = step.text.to_lowercase();
        let meant = |of: &[String]| of.is_empty() || of.iter().any(|it| it == "code" || lower.contains(it));
        let turns = |it: &&(usize, Vec<&str>)| {
            it.0 > changed && !it.1.is_empty() && it.1.iter().all(|it| !files.contains(it))
        };
        let all = self.edits_done.iter().find(|it| it.0 > changed && meant(&it.1)).map(|it| it.0);
        // A step in an earlier summary asks for more than an edit to its file.
        let only = step.voice() == Voice::Model && steps[files[0]].len() == 1 && files.len() == 1;
        let turned = self.moved_on.iter().find(turns).filter(|_| only).map(|it| it.0);
        all.into_iter().chain(turned).min()
    }
}

/// By the message of each summary, the report that ends the first turn after it, if the report says that all
/// is done. A prompt between the two may say no more than "continue": anything else is another request.
fn resumed(messages: &[Message]) -> HashMap<usize, usize> {
    /// Number of sentences at the beginning of a report in which it may say so.
    const FIRST: usize = 2;
    let summaries = (0..messages.len()).filter(|it| messages[*it].kind == Kind::Summary);
    let ends = |at: usize| {
        let (message, next) = (&messages[at], messages.get(at + 1));
        message.role == Role::Assistant
            && message.kind == Kind::Said
            && message.calls().next().is_none()
            && next.is_none_or(Message::is_prompt)
    };
    let finished = |summary: usize| {
        let end = (summary + 1..messages.len()).find(|it| ends(*it))?;
        let between = &messages[summary + 1..end];
        let same =
            between.iter().all(|it| it.kind != Kind::Summary && (!it.is_prompt() || is_trivial(&it.plain())));
        // After a summary that was made within a turn, the report may come at once.
        let worked = between.is_empty() || between.iter().any(|it| it.calls().next().is_some());
        let report = messages[end].plain();
        let says = sentences(&report).into_iter().take(FIRST).any(says_done);
        let unfinished = CUES.unfinished.is_in(&Lowercased::of(&report))
            || says_remaining(&report)
            || LEFT.is_match(&report);
        (same && worked && says && !unfinished).then_some((summary, end))
    };
    summaries.filter_map(finished).collect()
}

pub(super) fn says_done(sentence: &str) -> bool {
    WORK_DONE.find(sentence).is_some_and(|it| !LIMITED.is_match(it.as_str()))
}

/// Whether the history ends with a reply that begins by saying that the work is done.
pub(super) fn ends_as_done(history: &History) -> bool {
    history.messages().last().is_some_and(|it| {
        let reply = it.role == Role::Assistant && it.kind == Kind::Said && it.calls().next().is_none();
        reply && sentences(&it.plain()).first().is_some_and(|it| says_done(it))
    })
}

/// Closes the steps that the model said were done. Earlier steps of the same list that were active become unconfirmed.
/// `kept_up`: the model ticks the steps of its list off itself, so that what it turns to next closes none.
pub(super) fn close_steps(history: &History, kept_up: bool, facts: &mut [Fact]) {
    let open = Fact::is_open_step;
    if !facts.iter().any(open) {
        return;
    }
    let mut progress = Progress::of(history);
    if kept_up {
        progress.moved_on.clear();
    }
    let evidence = Evidence::of(facts);
    let mut steps: HashMap<&str, Vec<&str>> = HashMap::new();
    for step in facts.iter().filter(|it| open(it) && !only_runs(&it.text)) {
        for path in FILE_NAME.find_iter(&step.text).map(|it| it.as_str()) {
            steps.entry(file_name(path)).or_default().push(path);
        }
    }
    let closed: Vec<(usize, usize)> = facts
        .iter()
        .enumerate()
        .filter(|it| open(it.1))
        .filter_map(|(at, it)| Some((at, progress.closed_at(it, &evidence, &steps)?)))
        .collect();
    for (at, message) in closed.into_iter().rev() {
        let list = facts[at].message;
        for earlier in &mut facts[..at] {
            if earlier.topic == Topic::Active && earlier.message == list && earlier.voice() == Voice::Model {
                earlier.topic = Topic::Unconfirmed;
            }
        }
        facts[at].topic = Topic::Done;
        facts[at].message = message;
    }
}
