//! Statements that hold for the moment: the state of the work in an earlier summary, until more work follows; what
//! waits for the user, until there is a reply.

use super::evidence::Evidence;
use crate::facts::talk::report::{is_report, speaks};
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::cues::{CUES, Lowercased};
use crate::facts::text::rule::polarity;
use crate::facts::text::{clip, sentences};
use crate::facts::{Detail, Fact, Polarity, Topic, Voice};
use history::{History, Kind, Message, Role};

/// A note in parentheses about what a finished step still waits for.
pub(super) static PENDING_NOTE: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\s*\([^()]*\b(?:pending|blocked|not (?:yet )?(?:committed|done|started|implemented|fixed)|in progress)\b[^()]*\)",
);
/// Words that describe the state of unfinished work.
static TEMPORARY_STATE: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)\bcurrent(?:ly)? block|\bblocked by\b|\bcommit (?:is )?blocked|\bin progress\b",
    r"|\b(?:not|never|n[o'’]t)(?: yet)?(?: been)? (?:committed|pushed|staged|merged|saved|attempted)",
    r"|\bnothing (?:(?:is|was|has been) )?(?:yet )?(?:committed|pushed|staged)|\bno commits? (?:(?:was|were) )?made\b",
    r"|\b(?:uncommitted|unsaved|unstaged|unpushed)\b|\bstaged (?:but|and ready)|\b(?:already|still) staged",
    r"|\bpending\s*(?:[.,;)]|$)|\bretry the (?:commit|push)\b|\b(?:half|partially)[- ]applied|^\W*last action\b",
    r"|\bassistant still needs to\b|^\W*not done\b",
    r"|\b(?:completely |totally |still )?(?:broken|failing|down|red|stuck|blocked) (?:right now|at the moment)\b",
));
/// What git showed at the time: true until a commit.
static STATE_OF_TREE: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)(?:^|[.!?;:] )\W*(?:the )?current(?:ly)?\b[\w ,:/-]{0,40}\b(?:work(?:ing)?[ -]?tree\W+(?:has|contains|state|status|changes|changed|is (?:clean|dirty))|(?:changed|modified|untracked) files?|git status)\b",
    r"|(?:^|[.!?;:] )\W*(?:the )?work(?:ing)?[ -]?tree(?:: | (?:currently |now )?)(?:has|contains|(?:is )?(?:clean|dirty))\b",
    r"|\b(?:is|are|was) (?:\w+ )?(?:ahead of|even with) `?(?:origin|upstream)\b|\b(?:status|branch): (?:is )?(?:already )?(?:ahead|up[ -]to[ -]date)\b",
));
/// Which branch was checked out: true until another one is.
static ON_BRANCH: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)\b(?:you|we|i)(?:['’]re|['’]m| are| am) (?:currently |still )?on (?:the )?",
    r"(?:[`*]+(?:main|master)[`*]+|(?:main|master)(?: branch\b|[.,;:]|\W*$))",
));
/// A stash is kept: true until one is dropped or popped.
static STASH_KEPT: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\bstash(?:es)?\b.{0,60}\b(?:still|remains?|kept|keeps|present|preserved|exists?)\b|\b(?:still|kept|preserved)\b.{0,40}\bstash",
);
/// A file was not there: true until it is seen.
static NOT_THERE: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)[\w@-]\.[a-z][a-z0-9]{0,4}`?(?: file)? (?:",
    r"(?:is|are|was) (?:still )?(?:absent|missing|not (?:found|there|present))|(?:does not|doesn['’]t) (?:yet )?exist",
    r")(?: yet)?(?:\W*$|[.,;:!]| [—–-])",
));
/// How a check ended at the time: true until one passes.
static CHECK_FAILED: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)\b(?:latest|last|most recent|current) (?:[\w-]+ ){0,2}(?:suite|run|build|tests?)\b.{0,40}\b(?:failed|fails|failing|failures?|errors?)\b",
    r"|\btests? (?:is|are) (?:currently |still |now )?failing\b",
));
/// The model offers to do more: open until the user asks for something. A question is left out: the user may have
/// answered it.
static OFFER: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)(?:^|[.!?;:] )\W*(?:if you(?:['’]d| would)? (?:want|like|prefer|wish),? i(?:['’]ll| can| could| will)\b|i can (?:also )?\b.{0,120}\bif you(?:['’]d| would)? (?:want|like|prefer|wish)\b|(?:please (?:\w+ ){0,6})?let me know (?:if|when|whether|how it)\b|(?:please )?(?:restart|reload|rerun|review|try)\b.{0,80}\b(?:and|then) (?:i(?:['’]ll| will)|let me know|tell me)\b)[^?:]*$",
);
static COMMIT_FAILED: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)\bcommit\b.{0,60}\b(?:fail|refus|reject)|\bfail\w*\b.{0,40}\bcommit\b");
/// A rule that is limited to one task.
static FOR_ONE_TASK: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\bfor (?:the|this|that) (?:[\w-]+ ){0,2}(?:commit|branch|pr|pull request|task|change|fix|cleanup|step)\b",
);
/// How much of a plan is done: "Completed: 23/29", "4 of 6 done", "down to 2 agents with 5 tasks remaining".
static PROGRESS: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:completed?|progress|done|status)\W{1,6}\d+\s*(?:/|of)\s*\d+\b",
    r"|\b\d+ ?(?:of|/) ?\d+ (?:(?:tasks?|agents?|steps?) )?(?:(?:are|is|now) )?(?:completed?|done|finished|remain\w*)\b",
    r"|\b\d+ (?:\w+ )?(?:tasks?|agents?|steps?) (?:left|remain(?:ing)?|to go)\b|\bdown to \d+ (?:\w+ )?(?:agents?|tasks?)\b",
));
static NEGATION: AsciiFirstRegex = AsciiFirstRegex::new(r"(?i)\b(?:no|not|never|without|don['’]?t)\b");

/// The last message that shows progress: a commit, a finished task, a report of the model, a newer summary.
pub(super) fn last_work(history: &History, facts: &[Fact]) -> usize {
    let done = facts.iter().filter(|it| it.topic == Topic::Done && it.voice() == Voice::Model);
    let shows_work = |it: &Message| is_report(it) || it.kind == Kind::Summary;
    let report = history.messages().iter().rposition(shows_work);
    let commit = Evidence::of(facts).last_commit();
    done.map(|it| it.message).chain(report).chain(commit).max().unwrap_or(0)
}

/// The last message of the model that is longer than an acknowledgement.
pub(super) fn last_statement(history: &History) -> usize {
    const SAYS: usize = 60;
    let said = |it: &Message| {
        it.role == Role::Assistant && it.kind == Kind::Said && it.plain().trim().chars().count() > SAYS
    };
    history.messages().iter().rposition(said).unwrap_or(0)
}

/// Removes the sentences for which `is_outdated` holds. Returns whether any are left.
pub(super) fn remove_sentences(fact: &mut Fact, is_outdated: impl Fn(&str) -> bool) -> bool {
    if is_outdated(&fact.text) {
        fact.text.reword(|it| {
            // What points back to a sentence that is gone means nothing, unless it is an order.
            let mut before = false;
            let stays = |it: &&str| {
                let back = before && CUES.back_reference.is_in(&Lowercased::of(it)) && polarity(it).is_none();
                before = back || is_outdated(it);
                !before
            };
            let left: Vec<&str> = sentences(it).into_iter().filter(stays).collect();
            left.join(" ").trim_end_matches(';').to_owned()
        });
    }
    !fact.text.is_empty()
}

/// Whether a sentence describes the state of unfinished work.
pub(super) fn states_the_moment(sentence: &str) -> bool {
    TEMPORARY_STATE.is_match(sentence)
        || CUES.unfinished.is_in(&Lowercased::of(sentence)) && polarity(sentence).is_none()
}

/// Drops statements that were true only when they were made.
pub(in crate::facts) fn drop_outdated(history: &History, facts: &mut Vec<Fact>) {
    let worked = last_work(history, facts);
    let evidence = Evidence::of(facts);
    let (commit, check, switch) = (evidence.last_commit(), evidence.last_check(), evidence.last_switch());
    let ends_stash = |it: &&Fact| {
        let ends = ["git stash drop", "git stash pop", "git stash clear"];
        let ran =
            |it: &Fact| matches!(&it.detail, Detail::Command { outcome, .. } if outcome.ok == Some(true));
        ran(it) && ends.iter().any(|end| it.text.contains(end))
    };
    let stash = facts.iter().filter(ends_stash).map(|it| it.message).max();
    let says_missing = facts.iter().filter(|it| it.topic.is_statement() && NOT_THERE.is_match(&it.text));
    let seen_since = says_missing.flat_map(|fact| {
        let seen = |it: &&str| NOT_THERE.is_match(it) && evidence.all_there(it, fact.message);
        let seen = sentences(&fact.text).into_iter().filter(seen);
        seen.map(|it| (fact.message, it.to_owned())).collect::<Vec<_>>()
    });
    let seen_since: Vec<(usize, String)> = seen_since.collect();
    let replied = history.last_prompt().unwrap_or(0);
    let says_progress = |it: &Message| speaks(it) && PROGRESS.is_match(clip(&it.plain(), 600).0);
    let progress = history.messages().iter().rposition(says_progress);
    facts.retain_mut(|fact| {
        // A table follows such a sentence.
        if fact.topic.is_statement()
            && fact.voice() == Voice::Model
            && progress > Some(fact.message)
            && sentences(&fact.text).first().is_some_and(|it| PROGRESS.is_match(it))
        {
            return false;
        }
        if fact.topic.is_statement()
            && fact.message < replied
            && !remove_sentences(fact, |it| CUES.waiting.is_in(&Lowercased::of(it)) || OFFER.is_match(it))
        {
            return false;
        }
        let unstashed = stash.is_some_and(|it| it > fact.message) && fact.topic.is_statement();
        if unstashed && !remove_sentences(fact, |it| STASH_KEPT.is_match(it)) {
            return false;
        }
        let stated_before = match fact.voice() {
            Voice::Summary => true,
            Voice::Model => fact.message < replied,
            Voice::User | Voice::Tools => false,
        };
        let since = |last: Option<usize>| last.is_some_and(|it| it > fact.message);
        let (committed, checked) = (since(commit), since(check));
        // It is unknown which check a finding of the model is about.
        let checked = checked && fact.voice() == Voice::Summary;
        let (switched, message) = (since(switch), fact.message);
        let is_outdated = |it: &str| {
            committed && STATE_OF_TREE.is_match(it)
                || checked && CHECK_FAILED.is_match(it)
                || switched && ON_BRANCH.is_match(it)
                || seen_since.iter().any(|seen| seen.0 == message && it.contains(&seen.1))
        };
        let states = stated_before && (fact.topic.is_statement() || fact.topic == Topic::Errors);
        if states && !remove_sentences(fact, is_outdated) {
            return false;
        }
        if fact.voice() != Voice::Summary {
            return true;
        }
        let step = fact.is_open_step();
        if fact.topic == Topic::Done || step && fact.message < worked {
            fact.text.reword(|it| PENDING_NOTE.replace_all(it, "").into_owned());
        }
        if fact.message >= worked {
            return true;
        }
        if matches!(fact.detail, Detail::Error { resolved: None, .. })
            && COMMIT_FAILED.is_match(&fact.text)
            && commit.is_some_and(|it| it > fact.message)
        {
            return false;
        }
        let state = |it: &str| TEMPORARY_STATE.is_match(it) || !step && states_the_moment(it);
        !(step || (fact.topic.is_statement() || fact.topic == Topic::Errors)) || remove_sentences(fact, state)
    });
    drop_fulfilled_prohibitions(history, facts);
}

/// Drops what an earlier summary forbids for one task, once the user orders it.
fn drop_fulfilled_prohibitions(history: &History, facts: &mut Vec<Fact>) {
    /// A longer prompt is a document. Bytes.
    const ORDER: usize = 2_000;
    const ACTS: [&str; 8] = ["tag", "push", "release", "bump", "commit", "merge", "publish", "deploy"];
    let acts = |text: &str| -> Vec<&str> {
        let lower = text.to_lowercase();
        let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
        ACTS.into_iter().filter(|it| words.contains(it)).collect()
    };
    let rule = |it: &Fact| {
        matches!(it.topic, Topic::Constraints | Topic::Directives) && it.voice() == Voice::Summary
    };
    let bound = facts.iter().any(|it| rule(it) && FOR_ONE_TASK.is_match(&it.text));
    let ordered: Vec<(usize, &str)> = history
        .messages()
        .iter()
        .enumerate()
        .filter(|it| bound && it.1.is_prompt())
        .flat_map(|(number, it)| {
            let said = Some(it.plain()).filter(|it| it.len() <= ORDER).unwrap_or_default();
            let orders = sentences(&said).into_iter().filter(|it| polarity(it) != Some(Polarity::Forbid));
            orders.flat_map(acts).map(|it| (number, it)).collect::<Vec<_>>()
        })
        .collect();
    let is_fulfilled = |it: &str, message: usize| {
        FOR_ONE_TASK.is_match(it)
            && NEGATION.find(it).is_some_and(|no| {
                acts(&it[no.end()..])
                    .iter()
                    .any(|it| ordered.iter().any(|(at, act)| *at > message && act == it))
            })
    };
    facts.retain_mut(|it| {
        let message = it.message;
        !rule(it) || remove_sentences(it, |text| is_fulfilled(text, message))
    });
}
