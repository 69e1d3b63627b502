//! Findings of the model that its later messages or work overtook: guesses, waiting, announced steps, defects
//! whose files changed since, reports that were given again.

use std::collections::HashSet;
use std::ops::Range;

use super::evidence::Evidence;
use super::step_index::MAX_CANDIDATES;
use super::temporary::{last_work, remove_sentences, states_the_moment};
use crate::facts::talk;
use crate::facts::talk::report::{is_report, says_remaining, speaks, text_of_model};
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::cues::{CUES, Lowercased};
use crate::facts::text::{content_words, is_question, sentences};
use crate::facts::voice::Prompt;
use crate::facts::{Detail, Fact, FileOp, Topic, Voice};
use history::{History, Message};

/// Prefix of a finding whose files were changed since, after which a check passed.
const CHANGED_SINCE: &str = "changed since, and checks passed: ";
/// Prefix of an earlier summary's finding if all its files, or the one it begins with, were changed since.
const FILE_CHANGED: &str = "changed since: ";
/// Prefix of an earlier summary's finding about what git had not committed, if a commit followed.
const COMMIT_FOLLOWED: &str = "a commit followed: ";
/// Prefix of a finding that the user ordered the model to act on, if the model reported that it did.
const WORKED_ON: &str = "worked on since: ";

/// Failures that are expected, or the only ones left: outdated once a check passes.
static EXPECTS_FAILURE: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)\bfail(?:s|ing|ed|ure)? as (?:expected|intended)\b|\b(?:n['’]t|not) (?:yet )?(?:exist|been (?:written|implemented)|implemented) yet\b",
    r"|\bonly\b.{0,80}\b(?:failures?|errors?|warnings?|failing)\b.{0,40}\bremains?\b",
));
/// Says that a check found something, but not what: outdated once a check passes.
static CHECK_FOUND: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)\b(?:checks?|lint(?:er)?|tests?|suite|build|typecheck|compiler|run)\b[^.]{0,40}\b(?:found|reports?|reported|flagged|surfaced|hit|shows?|showed)\b (?:[\w-]+ ){0,2}?(?:\d+|one|two|three|four|five|six|some|a few|several|a couple of|more|an?|another)(?: [\w-]+){0,3} (?:issues?|errors?|failures?|problems?)\W*$",
    r"|\b(?:test|lint|style|type|build|compile) (?:issues?|errors?|failures?|problems?) (?:surfaced|remain|came up|showed up)\W*$",
));
/// Proposes a fix: outdated once a check passed and the work was committed.
static PROPOSES_FIX: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)\bthe (?:right |correct |proper |simplest )?fix is to\b");

/// What git had not committed yet.
static UNCOMMITTED: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*git status\b|\b(?:uncommitted (?:changes|files|work|edits)|not (?:yet )?committed yet|not yet committed|(?:no commits?|nothing committed) yet|staged (?:changes|files|but))\b",
);

static LEFT_FOR_LATER: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\b(?:leave|left|later|unrelated|pre-?existing|not (?:mended|fixed|addressed)|out of scope)\b",
);

/// Maximum bytes of a prompt that orders what a report proposes; a longer one is a task of its own.
const MAX_ORDER_BYTES: usize = 600;

/// Drops findings that a later message of the model overtook, and marks defects that were worked on since.
pub(in crate::facts) fn drop_overtaken(history: &History, facts: &mut Vec<Fact>) {
    let messages = history.messages();
    let closing = closing_messages(messages);
    drop_passing(history, &closing, facts);
    drop_deleted(facts);
    let evidence = Evidence::of(facts);
    let (check, commit) = (evidence.last_check(), evidence.last_commit());
    let marks = facts.iter().map(|it| changed_since(it, &evidence)).collect::<Vec<_>>();
    for (fact, mark) in facts.iter_mut().zip(marks) {
        if let Some(mark) = mark {
            fact.text.reword(|it| format!("{mark}{it}"));
        }
    }
    drop_checked(check, commit, &closing, facts);
    mark_carried_out(history, facts);
    drop_repeated(history, facts);
}

fn is_finding(fact: &Fact) -> bool {
    fact.topic == Topic::Findings && fact.voice() == Voice::Model
}

/// The last message of the model in each turn; its messages before that are interim remarks.
fn closing_messages(messages: &[Message]) -> HashSet<usize> {
    let mut closing: HashSet<usize> = HashSet::new();
    let mut last = None;
    for (number, message) in messages.iter().enumerate() {
        if message.is_prompt() {
            closing.extend(last.take());
        } else if speaks(message) {
            last = Some(number);
        }
    }
    closing.extend(last);
    closing
}

/// Drops interim findings that their turn's report repeats, and what was true only for the moment.
fn drop_passing(history: &History, closing: &HashSet<usize>, facts: &mut Vec<Fact>) {
    let messages = history.messages();
    let newest = messages.iter().rposition(speaks).unwrap_or(0);
    let reported = reported_turns(history);
    let worked = last_work(history, facts);
    facts.retain_mut(|fact| {
        let message = fact.message;
        let report = reported.iter().find(|it| it.0.contains(&message)).map(|it| &it.1);
        let told = |report: &String| !closing.contains(&message) && is_told_by(report, &fact.text);
        if is_finding(fact) && report.is_some_and(told) {
            return false;
        }
        !(is_finding(fact) && message < newest)
            || remove_sentences(fact, |it| {
                is_passing(it) || (message < worked || !closing.contains(&message)) && states_the_moment(it)
            })
    });
}

/// Drops what an earlier summary tells about files that were deleted since, by themselves or with their directory.
fn drop_deleted(facts: &mut Vec<Fact>) {
    let file = |it: &Fact| match it.detail {
        Detail::File { op, .. } => Some(op),
        _ => None,
    };
    let deleted: Vec<&Fact> = facts.iter().filter(|it| file(it) == Some(FileOp::Deleted)).collect();
    let ends =
        |whole: &str, end: &str| whole.strip_suffix(end).is_some_and(|it| it.is_empty() || it.ends_with('/'));
    let is_gone = |fact: &Fact| {
        let older = fact.topic == Topic::Findings && fact.voice() == Voice::Summary;
        let Some((place, _)) = fact.text.split_once(": ").filter(|_| older) else { return false };
        // Of a long path, the summary's reader keeps two names.
        let short = place.strip_prefix("…/");
        let path = short.unwrap_or(place);
        let is = |it: &Fact| if short.is_some() { ends(&it.text, path) } else { it.text.as_str() == path };
        // What is known of files in a deleted directory is forgotten.
        let within = |it: &Fact| match short {
            Some(_) => path.split_once('/').is_some_and(|(directory, _)| ends(&it.text, directory)),
            None => path.strip_prefix(it.text.as_str()).is_some_and(|it| it.starts_with('/')),
        };
        path.contains('.')
            && deleted.iter().any(|it| it.message > fact.message && (is(it) || within(it)))
            && !facts.iter().any(|it| file(it).is_some_and(|it| it != FileOp::Deleted) && is(it))
    };
    let mut gone = facts.iter().map(is_gone).collect::<Vec<_>>().into_iter();
    facts.retain(|_| !gone.next().unwrap_or(false));
}

/// The prefix of a defect whose files were changed and checked since, or of an earlier summary's finding
/// about a file that was changed since.
fn changed_since(fact: &Fact, evidence: &Evidence) -> Option<&'static str> {
    let text = fact.text.as_str();
    if is_finding(fact) {
        let at = evidence.last_change(text, fact.message).filter(|_| is_defect(text))?;
        return (evidence.last_check() > Some(at)).then_some(CHANGED_SINCE);
    }
    let older = fact.topic == Topic::Findings && fact.voice() == Voice::Summary;
    // A commit may contain what was changed before the summary.
    let edits = |_, op: FileOp| op.changes() && op != FileOp::Committed;
    let edited = |it: &str| evidence.all_files(it, fact.message, edits);
    let of_file = || text.split_once(": ").is_some_and(|it| edited(it.0));
    if !older || text.starts_with(FILE_CHANGED) || text.starts_with(COMMIT_FOLLOWED) {
        return None;
    }
    let uncommitted = || UNCOMMITTED.is_match(text) && !LEFT_FOR_LATER.is_match(text);
    if evidence.last_commit() > Some(fact.message) && uncommitted() {
        return Some(COMMIT_FOLLOWED);
    }
    (of_file() || edited(text)).then_some(FILE_CHANGED)
}

/// Drops what a later check or commit outdates: expected failures, proposed fixes, failed checks.
fn drop_checked(
    check: Option<usize>,
    commit: Option<usize>,
    closing: &HashSet<usize>,
    facts: &mut Vec<Fact>,
) {
    facts.retain_mut(|fact| {
        let message = fact.message;
        if !is_finding(fact) || check.is_none_or(|it| it <= message) {
            return true;
        }
        let committed = commit.is_some_and(|it| it > message);
        let passing = !closing.contains(&message);
        remove_sentences(fact, |it| {
            EXPECTS_FAILURE.is_match(it)
                || committed && PROPOSES_FIX.is_match(it)
                || passing && CHECK_FOUND.is_match(it)
        })
    });
}

/// Marks findings about defects that the user ordered to be fixed and the model reported as done.
fn mark_carried_out(history: &History, facts: &mut [Fact]) {
    let carried_out = carried_out_turns(history);
    for fact in facts.iter_mut().filter(|it| is_finding(it)) {
        let said = sentences(&fact.text);
        let defects = said.iter().filter(|it| is_defect(it)).count();
        // A report on the work may mention a defect in passing.
        if defects > 0 && defects * 2 >= said.len() && carried_out.iter().any(|it| it.contains(&fact.message))
        {
            fact.text.reword(|it| format!("{WORKED_ON}{}", it.strip_prefix(CHANGED_SINCE).unwrap_or(it)));
        }
    }
}

/// The turns that ended with a report, except the last turn, each with the report's text.
fn reported_turns(history: &History) -> Vec<(Range<usize>, String)> {
    let messages = history.messages();
    let prompts: Vec<usize> = history.prompts().collect();
    let turns = prompts.windows(2).map(|it| it[0]..it[1]);
    let reported = |turn: Range<usize>| {
        let closing = messages[turn.clone()].iter().rev().find(|it| speaks(it)).filter(|it| is_report(it))?;
        Some((turn, text_of_model(closing)))
    };
    turns.filter_map(reported).collect()
}

/// Whether a report covers a finding, which must leave nothing for later and have all its names in the
/// report.
fn is_told_by(report: &str, finding: &str) -> bool {
    let words = finding.split(|it: char| it.is_whitespace() || "`()[]\"'".contains(it));
    let mut names =
        words.map(|it| it.trim_matches(['.', ',', ':', ';'])).filter(|it| it.contains(['/', '.', '_', ':']));
    !LEFT_FOR_LATER.is_match(finding) && !says_remaining(finding) && names.all(|it| report.contains(it))
}

/// Some of the jobs that run are done, the others are not: "Three of four analyses are done".
static PARTLY_DONE: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)\b(?:one|two|three|four|five|six|\d+) (?:out )?of (?:the )?(?:two|three|four|five|six|seven|eight|\d+) (?:[\w-]+ ){0,2}(?:(?:sub-?)?agents?|analyses|reviews?|reviewers?|jobs?|runs?|batches)(?: \([^)]*\))? (?:is|are|have|has) (?:now )?(?:back|done|in|complete|completed|finished|reported)\b(?:\W|$)",
    r"|\bstill waiting (?:for|on)\b.{0,80}\b(?:to finish|to complete|to report|in the background|agents?)\b",
));

/// Whether a sentence says only what was true, planned or guessed for the moment.
fn is_passing(sentence: &str) -> bool {
    let lower = Lowercased::of(sentence);
    CUES.waiting.is_in(&lower)
        || PARTLY_DONE.is_match(sentence)
        || CUES.passing.is_in(&lower)
        || CUES.announce.is_in(&lower) && !CUES.fixed.is_in(&lower)
}

/// The turns whose findings the user ordered to be carried out, if the next turn reports that this was done.
fn carried_out_turns(history: &History) -> Vec<Range<usize>> {
    let messages = history.messages();
    let prompts: Vec<usize> = history.prompts().collect();
    let end = |turn: usize| prompts.get(turn + 1).copied().unwrap_or(messages.len());
    let report = |turn: usize| (prompts[turn]..end(turn)).rev().find(|it| speaks(&messages[*it]));
    let ordered = |turn: usize| {
        let Some(prompt) = Prompt::of(&messages[prompts[turn + 1]]).map(|it| it.whole()) else {
            return false;
        };
        let orders = |it: &&str| !talk::asks(it) && CUES.carry_out.is_in(&Lowercased::of(it));
        let agrees = || {
            let asked = report(turn)
                .is_some_and(|it| talk::answers_question(&messages[prompts[turn + 1]], &messages[it]));
            asked && CUES.approve.is_in(&Lowercased::of(&prompt))
        };
        prompt.len() <= MAX_ORDER_BYTES && (sentences(&prompt).iter().any(orders) || agrees())
    };
    let done = |turn: usize| {
        let text = report(turn).map(|it| text_of_model(&messages[it])).unwrap_or_default();
        let says = |it: &&str| {
            let lower = Lowercased::of(it);
            CUES.carried_out.is_in(&lower) && !CUES.unfinished.is_in(&lower) && !is_question(it)
        };
        sentences(&text).iter().take(2).any(says)
    };
    (0..prompts.len().saturating_sub(1))
        .filter(|it| ordered(*it) && done(*it + 1))
        .map(|it| prompts[it]..prompts[it + 1])
        .collect()
}

fn is_defect(text: &str) -> bool {
    let lower = Lowercased::of(text);
    CUES.defect.is_in(&lower) && !CUES.fixed.is_in(&lower) && !text.starts_with(CHANGED_SINCE)
}

/// Of findings that say the same in other words, keeps the last. One of a later turn must be about as long.
fn drop_repeated(history: &History, facts: &mut Vec<Fact>) {
    let prompts: Vec<usize> = history.prompts().collect();
    let turn = |fact: &Fact| match fact.voice() {
        Voice::Model => prompts.partition_point(|it| *it <= fact.message),
        Voice::Summary | Voice::User | Voice::Tools => usize::MAX,
    };
    let mut findings: Vec<usize> = (0..facts.len())
        .filter(|at| {
            facts[*at].topic.is_statement() && matches!(facts[*at].voice(), Voice::Model | Voice::Summary)
        })
        .collect();
    findings.sort_by_key(|at| (turn(&facts[*at]), facts[*at].message));
    let words: Vec<HashSet<String>> = findings.iter().map(|at| content_words(&facts[*at].text)).collect();
    let again = |(place, at): (usize, &usize)| {
        let later = (place + 1..findings.len()).take(MAX_CANDIDATES);
        later
            .take_while(|it| facts[findings[*it]].voice() == facts[*at].voice())
            .filter(|it| facts[findings[*it]].message > facts[*at].message)
            .any(|it| {
                let shared = words[place].intersection(&words[it]).count();
                let same_turn = turn(&facts[findings[it]]) == turn(&facts[*at]);
                let least = if same_turn { 4 } else { 8 };
                let as_long = same_turn || words[it].len() * 5 >= words[place].len() * 4;
                shared >= least && as_long && shared * 10 >= words[place].len() * 7
            })
    };
    let over: HashSet<usize> = findings.iter().enumerate().filter(|it| again(*it)).map(|it| *it.1).collect();
    let mut at = 0..;
    facts.retain(|_| at.next().is_none_or(|it| !over.contains(&it)));
}
