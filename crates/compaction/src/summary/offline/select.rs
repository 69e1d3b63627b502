//! Which facts of the region the summary tells.

use std::collections::{BTreeMap, HashSet};

use regex::Regex;

use super::tail::Tail;
use super::{OfflineRequest, quoted_whole, section_of};
use crate::facts::{Detail, Fact, FileOp, Ledger, Topic, Voice};

/// Globs as regexes for paths: `*` within a name, `**` across directories, starting at any directory.
pub(super) fn patterns(globs: &[String]) -> Vec<Regex> {
    let pattern = |glob: &String| {
        let pattern =
            regex::escape(glob).replace(r"\*\*/", "(.*/)?").replace(r"\*\*", ".*").replace(r"\*", "[^/]*");
        Regex::new(&format!("(^|/){pattern}$")).ok()
    };
    globs.iter().filter_map(pattern).collect()
}

/// The facts to tell of the region, in the order of the ledger: its own, the current request if that is
/// behind it, and where the work stood at its end (`step`).
pub(super) fn facts_of_region<'a>(
    ledger: &'a Ledger,
    step: Option<&'a Fact>,
    answered: Option<usize>,
    changed_again: &HashSet<&str>,
    ask: &OfflineRequest,
    tail: &Tail,
) -> Vec<&'a Fact> {
    let only_files = patterns(&ask.spec.only_files);
    let is_summarized = |fact: &Fact| is_summarized(fact, &only_files, ask);
    let told = || !ledger.facts.iter().any(|it| it.topic == Topic::Current && is_summarized(it));
    let step = step.filter(|it| ask.region.len() > 1 && told() && is_summarized(it));
    // The step says what the finding from its message says.
    let of_step =
        |it: &&Fact| it.topic == Topic::Findings && step.is_some_and(|step| step.message == it.message);
    let pursued = pursued_behind(ledger, ask, tail);
    let last = ask.region.end == tail.from && section_of(&ask.spec.sections, Topic::Open).is_some();
    let own = ledger.facts.iter().filter(|it| is_summarized(it) || last && tail.leaves_unnamed(it));
    let own = own.filter(|it| !of_step(it));
    let facts = pursued.into_iter().chain(own).chain(step);
    let before = changed_before(ledger, changed_again, ask);
    let facts: Vec<&Fact> = facts.chain(before.into_iter().filter(|it| is_summarized(it))).collect();
    // Left out: directives of a finished task whose short prompt is quoted whole, and directives whose prompt
    // stays behind the summary.
    let stands = |it: &Fact| it.topic == Topic::Directives && ask.stays(it);
    let over = |it: &Fact| stands(it) || is_of_answered(it, answered) && quoted_whole(it, &facts);
    // Finished steps of a task after which another one was finished: its reply tells them.
    let requests = || ledger.about(Topic::UserMessages).map(|it| it.message);
    let past = |it: &Fact| {
        let since = |at: usize| at > it.message && answered.is_some_and(|answer| at < answer);
        it.topic == Topic::Done && it.voice() == Voice::Model && requests().any(since)
    };
    facts.iter().copied().filter(|it| !over(it) && !past(it)).collect()
}

/// Whether a directive belongs to a finished task.
pub(super) fn is_of_answered(fact: &Fact, answered: Option<usize>) -> bool {
    fact.topic == Topic::Directives && answered.is_some_and(|at| at > fact.message)
}

/// The current request, if it is behind the summary: it tells what the summary is for.
fn pursued_behind<'a>(ledger: &'a Ledger, ask: &OfflineRequest, tail: &Tail) -> Option<&'a Fact> {
    let newest = ledger.about(Topic::Goal).map(|it| it.message).max()?;
    let wanted = newest >= tail.from
        && ask.region.end == tail.from
        && section_of(&ask.spec.sections, Topic::Goal).is_some();
    // Of a prompt in several parts the first says what it is about.
    ledger.about(Topic::Goal).find(|it| wanted && it.message == newest)
}

/// The files that are changed behind the region. Those that are deleted or renamed there are no files of the work any
/// more, and of those that are restored no change is left.
pub(super) fn changed_behind<'a>(ledger: &'a Ledger, ask: &OfflineRequest) -> HashSet<&'a str> {
    const GONE: [FileOp; 3] = [FileOp::Deleted, FileOp::Renamed, FileOp::Restored];
    let gone = |it: &Fact| matches!(it.detail, Detail::File { op, .. } if GONE.contains(&op));
    let behind = ledger.about(Topic::Files).filter(|it| it.message >= ask.region.end && !gone(it));
    behind.map(|it| it.text.as_str()).collect()
}

/// The last changes in the region of files that were changed again behind it.
fn changed_before<'a>(ledger: &'a Ledger, again: &HashSet<&str>, ask: &OfflineRequest) -> Vec<&'a Fact> {
    let before = ledger.file_changes.iter().filter(|it| ask.region.contains(&it.message));
    let last: BTreeMap<&str, &Fact> =
        before.filter(|it| again.contains(it.text.as_str())).map(|it| (it.text.as_str(), it)).collect();
    last.into_values().collect()
}

/// Whether a fact has a section, and comes from the region or from an output that was cleared.
fn is_summarized(fact: &Fact, only_files: &[Regex], ask: &OfflineRequest) -> bool {
    let cleared = matches!(fact.topic, Topic::Commands | Topic::Errors | Topic::Identifiers)
        && ask.cleared.binary_search(&fact.message).is_ok();
    let wanted = fact.topic != Topic::Files
        || ask.spec.only_files.is_empty()
        || only_files.iter().any(|it| it.is_match(&fact.text));
    (ask.region.contains(&fact.message) || cleared)
        && section_of(&ask.spec.sections, fact.topic).is_some()
        && wanted
}

/// The message of the oldest of the newest replies to earlier requests.
pub(super) fn first_recent_reply(facts: &[&Fact]) -> usize {
    const RECENT: usize = 6;
    let is_reply = |it: &&&Fact| it.topic == Topic::Replies && it.voice() == Voice::Model;
    let mut replies: Vec<usize> = facts.iter().filter(is_reply).map(|it| it.message).collect();
    replies.dedup();
    replies.iter().rev().nth(RECENT - 1).copied().unwrap_or(0)
}
