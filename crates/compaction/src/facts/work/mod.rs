//! Facts of tool calls: files, commands, errors, and what the user refused or answered when a tool asked.

pub(in crate::facts) mod command;
pub(in crate::facts) mod commits;
mod counts;
pub(in crate::facts) mod file_mentions;
pub(in crate::facts) mod identifiers;
pub(in crate::facts) mod outcome;
pub(in crate::facts) mod paths;
pub(in crate::facts) mod resolution;
mod runs;
pub(in crate::facts) mod symbols;
mod uncommitted;

use std::collections::{HashMap, HashSet};

use crate::facts::plan::{Answer, user_replies};
use crate::facts::talk::orders::rule_topic;
use crate::facts::text::{clip, flat, without_durations, without_escapes};
use crate::facts::voice::{Prompt, Quote, ToolTopic, UserReply};
use crate::facts::{Detail, Fact, FileOp, Topic};
use command::{Operation, ParsedCommand};
use paths::{MAX_PATH_BYTES, is_unexpanded, path, printed};
use runs::has_moved;

use history::tools::{self, Action, Meaning};
use history::{Call, History, Kind, Message, Output, Refusal, Role, RolledBack};

/// How an output begins when an edit or a read failed, in lower case (all agents).
const FAILURE_STARTS: [&str; 22] = [
    "<tool_use_error>",
    "apply_patch verification failed",
    "error",
    "failed to",
    "failed with",
    "string to replace not found",
    "your proposed edit has introduced",
    "no changes",
    "no replacement was performed",
    "file has not been read",
    "file does not exist",
    "file not found",
    "could not",
    "cannot",
    "invalid",
    "permission denied",
    "patch failed",
    "old_string",
    "oldstring",
    "no such file",
    "edit failed",
    "user rejected",
];

/// Errors of the client itself, which the next call corrects (Claude Code 2.1, OpenCode 1.18).
const CLIENT_ERRORS: [&str; 4] = [
    "File has not been read yet",
    "File has been modified since read",
    "You must read the file",
    "File has been unexpectedly modified",
];

/// What an output says of a call that never ran, because another one that was made with it failed (Claude Code 2.1).
const NEVER_RAN: [&str; 2] = ["Sibling tool call errored", "Cancelled: parallel tool call"];

#[derive(Default)]
struct Work<'a> {
    base: Option<&'a str>,
    /// Whether the agent's shell reports every failure; `None` where the agent is unknown.
    reports: Option<bool>,
    files: HashMap<String, (usize, FileOp, Option<String>)>,
    /// Files that only long listings show.
    listed: HashSet<String>,
    /// Message numbers of earlier summaries.
    summary_messages: HashSet<usize>,
    /// The file that was read or created last, which SWE-agent's `edit` refers to.
    open: Option<String>,
    /// Background commands, by session id.
    background: HashMap<String, String>,
    /// A command that the user ran, until its output is read.
    typed: Option<String>,
    /// Directories of the last commands; empty for the working directory.
    recent_dirs: Vec<String>,
    /// Unresolved errors: indexes in `errors`, by command or tool, then by message.
    open_errors: HashMap<String, HashMap<String, Vec<usize>>>,
    /// Indexes in `errors` of merge conflicts that were not resolved yet.
    conflicts: Vec<usize>,
    /// By name of an operation: the indexes in `errors` of its failures, and what each was given.
    errors_by_operation: HashMap<String, Vec<(usize, Operation)>>,
    /// By index in `errors`: the operations of its command that did not succeed since.
    pending_operations: HashMap<usize, HashSet<String>>,
    /// Failed commands that may be tried again.
    retries: Vec<resolution::Retry>,
    /// Errors that a similar command's success may have ended, by name of the operation.
    mended: HashMap<String, Vec<usize>>,
    /// Index in `errors` of the failure after which the model goes another way.
    instead: Option<usize>,
    /// The last run of all tests that went well, its name and directory.
    green: Option<(usize, String, Option<String>)>,
    uncommitted: uncommitted::Uncommitted,
    commits: commits::Commits,
    /// Branches and tags that were made, with the message.
    saved: Vec<(usize, String)>,
    /// What the user wrote so far.
    prompts: Vec<String>,
    /// Changes of files, in order.
    changes: Vec<Fact>,
    /// Questions of tools: the index of the last answer in `facts`.
    questions: HashMap<String, usize>,
    errors: Vec<Fact>,
    commands: Vec<Fact>,
    facts: Vec<Fact>,
}

/// Returns the changes of files that a later one replaced.
pub(in crate::facts) fn read(history: &History, base: Option<&str>, facts: &mut Vec<Fact>) -> Vec<Fact> {
    let reports = tools::reports_failures(history.meta.agent.as_deref());
    let mut work = Work { base, reports, ..Work::default() };
    for fact in facts.iter() {
        if let Detail::File { op, to } = &fact.detail {
            work.summary_messages.insert(fact.message);
            work.files.insert(fact.text.to_string(), (fact.message, *op, to.clone()));
        }
        if let Detail::Error { of: Some(of), resolved: None, similar, .. } = &fact.detail {
            let known = work.errors.len();
            let said = without_durations(&fact.text).into_owned();
            work.open_errors.entry(command::dedup_key(of)).or_default().entry(said).or_default().push(known);
            work.push_error(fact.clone());
            if similar.is_none() {
                work.track_operations(known, &ParsedCommand::of(of));
            }
        }
    }
    facts.retain(|it| {
        !matches!(it.detail, Detail::File { .. } | Detail::Error { of: Some(_), resolved: None, .. })
    });
    let mut open: HashMap<&str, &Call> = HashMap::new();
    for (number, message) in history.messages().iter().enumerate() {
        if message.is_prompt() {
            let prompt = message.plain();
            work.note_named_files(number, file_mentions::in_prompt(&prompt));
            work.prompts.push(prompt.to_string());
            work.retries.clear();
        }
        message.texts().for_each(|it| work.commits.keep_named(it.as_str()));
        for part in &message.parts {
            match part {
                history::Part::Call(call) => {
                    open.insert(&call.id, call);
                }
                history::Part::Output(output) => {
                    if let Some(call) = open.remove(&*output.id) {
                        work.read_output(number, call, output, history);
                    }
                }
                history::Part::Text(text) if message.role == Role::Assistant => {
                    work.note_named_files(number, file_mentions::in_prose(text.as_str()));
                    work.note_excuse(number, text.as_str());
                    work.note_other_way(number, text.as_str());
                }
                history::Part::Text(text) if message.kind == Kind::Context => {
                    work.read_client_text(number, text.as_str());
                }
                history::Part::Text(_)
                | history::Part::Reasoning(_)
                | history::Part::Media(_)
                | history::Part::Opaque(_) => {}
            }
        }
    }
    work.drop_lost_commits();
    same_errors(&mut work.errors);
    // An edit that is not retried soon was made in another way.
    let end = history.messages().len();
    work.errors.retain(|it| {
        let stands = matches!(it.detail, Detail::Error { resolved: None, .. });
        !(stands && it.message + RECENT_MESSAGES < end && resolution::is_misfit(&it.text))
    });
    // A map has no order of its own.
    let mut files: Vec<_> = work.files.into_iter().collect();
    drop_idle(&work.listed, end, &mut files);
    files.sort_by(|a, b| (a.1.0, &a.0).cmp(&(b.1.0, &b.0)));
    facts.extend(files.into_iter().map(|(path, (message, op, to))| {
        Fact::from_tools(ToolTopic::Files, message, path, Detail::File { op, to })
    }));
    facts.extend(work.errors);
    facts.extend(work.commands);
    facts.extend(work.facts);
    facts.extend(base.map(|it| {
        let at = work.recent_dirs.first().filter(|_| has_moved(&work.recent_dirs));
        let mut text = at.map_or(it.to_owned(), |at| format!("{it}; the last commands ran in {at}"));
        if let Some(left) = work.uncommitted.told() {
            text.push_str(&format!("; {left}"));
        }
        if let Some(taken) = history.meta.rolled_back.as_ref().filter(|it| !it.changed.is_empty()) {
            text.push_str(&format!("; {}", rolled_back(taken, it)));
        }
        // What a client writes before the first prompt may stay in front of a summary.
        let client = |it: &Message| it.role == Role::System || it.kind == Kind::Context;
        let first = history.messages().iter().position(|it| !client(it)).unwrap_or(0);
        Fact::from_tools(ToolTopic::Directory, first, text, Detail::None)
    }));
    work.changes
}

type File = (String, (usize, FileOp, Option<String>));

/// Drops files that were only mentioned if another path tells them, as the end of a longer one or a directory of it, or if
/// they are no part of the work. `listed`: what long listings showed.
fn drop_idle(listed: &HashSet<String>, end: usize, files: &mut Vec<File>) {
    let mut told: HashSet<String> = HashSet::new();
    for (path, (_, op, _)) in files.iter() {
        for (at, _) in path.match_indices('/').take(MAX_DEPTH) {
            told.extend((*op != FileOp::Mentioned).then(|| path[..at].to_owned()));
            // Elsewhere there may be another file of the same name.
            told.extend((!path.starts_with('/')).then(|| path[at + 1..].to_owned()));
        }
        // Where a path is told by what stands behind a space in it.
        told.extend(path.match_indices(' ').take(MAX_DEPTH).map(|(at, _)| path[at + 1..].to_owned()));
    }
    files.retain(|(path, (_, op, _))| {
        *op != FileOp::Mentioned || !told.contains(path) && !file_mentions::is_kept_by_tools(path)
    });
    for (path, (number, op, _)) in files {
        if *op == FileOp::Mentioned && *number + RECENT_MESSAGES < end && listed.contains(path) {
            *op = FileOp::Listed;
        }
    }
}

/// Messages within which an agent comes back to what it listed or tried.
const RECENT_MESSAGES: usize = 60;

/// Directories of a path that are looked at.
const MAX_DEPTH: usize = 24;

fn rolled_back(taken: &RolledBack, base: &str) -> String {
    /// Maximum number of files that are named.
    const NAMED: usize = 8;
    let named: Vec<String> = taken.changed.iter().take(NAMED).map(|it| path(it, None, Some(base))).collect();
    let more = taken.changed.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let turns =
        if taken.turns == 1 { "1 turn was".to_owned() } else { format!("{} turns were", taken.turns) };
    format!("{turns} rolled back; what they changed may still be on disk: {}{more}", named.join(", "))
}

/// The same line from two commands is the same error: if one of them succeeded later, it is resolved.
fn same_errors(errors: &mut [Fact]) {
    let mut gone: HashMap<String, usize> = HashMap::new();
    for error in errors.iter() {
        if let Detail::Error { resolved: Some(at), .. } = error.detail {
            let newest = gone.entry(without_durations(&error.text).into_owned()).or_default();
            *newest = at.max(*newest);
        }
    }
    // Each edit that did not fit is one of its own.
    for error in errors.iter_mut().filter(|it| !resolution::is_misfit(&it.text)) {
        if let Detail::Error { resolved: resolved @ None, .. } = &mut error.detail {
            *resolved = gone.get(&*without_durations(&error.text)).copied().filter(|it| *it > error.message);
        }
    }
}

impl Work<'_> {
    fn read_output(&mut self, number: usize, call: &Call, output: &Output, history: &History) {
        let actions = tools::actions(call);
        let main = actions.first().map_or(Meaning::Other, |it| it.meaning);
        if let Some(refusal) = &output.refusal {
            self.record_refusal(number, call, &actions, refusal, history);
            return;
        }
        if output.failed && NEVER_RAN.iter().any(|it| failure_message(output).starts_with(it)) {
            return;
        }
        if let Some(answered) = UserReply::of(history, call, output) {
            return self.record_replies(number, call, &answered);
        }
        match main {
            Meaning::Run => self.read_run(number, call, &actions, output),
            Meaning::Attend => self.read_background_output(number, call, output),
            Meaning::Read
            | Meaning::Edit
            | Meaning::Create
            | Meaning::Delete
            | Meaning::Rename
            | Meaning::Search
            | Meaning::List
            | Meaning::Plan
            | Meaning::Ask
            | Meaning::Fetch
            | Meaning::Delegate
            | Meaning::Deliver
            | Meaning::Other => {
                let subject = match actions.first().and_then(|it| it.path.as_deref()) {
                    Some(it) => format!("{} {}", call.name, path(it, None, self.base)),
                    // Another page that loads says nothing of this one.
                    None => match fetched(call).filter(|_| main == Meaning::Fetch) {
                        Some(what) => format!("{} {}", call.name, flat(clip(&what, 200).0)),
                        None => call.name.to_string(),
                    },
                };
                let failed = has_failed(output);
                if !failed {
                    actions.iter().for_each(|it| self.record_file_action(number, it, output));
                    match main {
                        Meaning::Search | Meaning::List => self.note_found_files(number, &actions, output),
                        // Another model's report.
                        Meaning::Delegate => {
                            self.note_named_files(number, file_mentions::in_prose(output.text.as_str()));
                        }
                        _ => {}
                    }
                }
                let asked =
                    actions.first().and_then(|it| it.path.as_deref()).filter(|_| main == Meaning::Read);
                if let Some(asked) = asked.filter(|_| failed) {
                    let name = path(asked, None, self.base);
                    // What could not be read may not be there.
                    if self.files.get(&name).is_some_and(|it| it.1 == FileOp::Mentioned) {
                        self.files.remove(&name);
                    }
                }
                let reports =
                    matches!(main, Meaning::Edit | Meaning::Create | Meaning::Delete | Meaning::Rename)
                        || matches!(main, Meaning::Fetch | Meaning::Delegate | Meaning::Other)
                            && output.failed;
                let asked = asked.is_some_and(|it| {
                    let short = path(it, None, self.base);
                    self.prompts.iter().any(|prompt| prompt.contains(it) || prompt.contains(&short))
                });
                if reports || asked || !failed {
                    let text = failed.then(|| failure_message(output));
                    self.record_result(number, &subject, text);
                }
            }
        }
    }

    fn push_error(&mut self, error: Fact) {
        if error.text.starts_with("CONFLICT") {
            self.conflicts.push(self.errors.len());
        }
        self.errors.push(error);
    }

    /// Records a failure with `error`, or a success. Returns the index in `errors` of the failure.
    fn record_result(&mut self, number: usize, of: &str, error: Option<String>) -> Option<usize> {
        if error.as_deref().is_some_and(|it| CLIENT_ERRORS.iter().any(|of| it.starts_with(of))) {
            return None;
        }
        match error {
            Some(text) if !text.is_empty() => {
                let same = self.open_errors.entry(command::dedup_key(of)).or_default();
                let same = same.entry(without_durations(&text).into_owned()).or_default();
                if let Some(known) = same.first() {
                    let error = &mut self.errors[*known];
                    error.message = number;
                    if let Detail::Error { resolved, similar, .. } = &mut error.detail {
                        (*resolved, *similar) = (None, None);
                    }
                    Some(*known)
                } else {
                    same.push(self.errors.len());
                    let detail =
                        Detail::Error { of: Some(of.into()), resolved: None, similar: None, excused: None };
                    self.push_error(Fact::from_tools(ToolTopic::Errors, number, text, detail));
                    Some(self.errors.len() - 1)
                }
            }
            Some(_) => None,
            None => {
                let here = command::directory(of);
                let same = self.open_errors.get_mut(&command::dedup_key(of))?;
                for known in same.values_mut() {
                    known.retain(|it| {
                        let Detail::Error { of, resolved, .. } = &mut self.errors[*it].detail else {
                            return false;
                        };
                        let there = of.as_deref().and_then(command::directory);
                        let elsewhere = here.zip(there).is_some_and(|it| it.0 != it.1);
                        *resolved = Some(number).filter(|_| !elsewhere);
                        elsewhere
                    });
                }
                None
            }
        }
    }

    /// Records the files in the output of a search or listing, unless an operation on them is known.
    fn note_found_files(&mut self, number: usize, actions: &[Action], output: &Output) {
        /// Maximum files that are an answer rather than a listing.
        const ANSWER: usize = 5;
        let dir = actions.first().and_then(|it| it.dir.as_deref());
        if dir.is_some_and(is_unexpanded) {
            return;
        }
        let found = file_mentions::in_output(output.text.as_str());
        let long = found.len() > ANSWER;
        for found in found {
            let Some(name) = printed(found, dir, self.base) else { continue };
            if long && !self.files.contains_key(&name) {
                self.listed.insert(name.clone());
            } else if !long {
                self.listed.remove(&name);
            }
            self.note_file(number, name);
        }
    }

    /// Records the files that a prompt or a reply names.
    fn note_named_files(&mut self, number: usize, named: Vec<&str>) {
        for found in named {
            let name = path(found, None, self.base);
            self.listed.remove(&name);
            self.note_file(number, name);
        }
    }

    fn note_file(&mut self, number: usize, name: String) {
        let known = self.files.entry(name).or_insert((number, FileOp::Mentioned, None));
        if known.1 == FileOp::Mentioned {
            known.0 = number;
        }
    }

    fn record_file_action(&mut self, number: usize, action: &Action, output: &Output) {
        let named = action.path.as_deref().map(|it| path(it, action.dir.as_deref(), self.base));
        let Some(name) = named.or_else(|| self.open.clone().filter(|_| action.meaning == Meaning::Edit))
        else {
            return;
        };
        if name.is_empty()
            || name.len() > MAX_PATH_BYTES
            || action.dir.as_deref().is_some_and(is_unexpanded) && name.contains('$')
        {
            return;
        }
        let before = self.files.get(&name).map(|it| it.1);
        let there = before.is_some_and(|it| !matches!(it, FileOp::Deleted | FileOp::Renamed));
        let made = matches!(before, Some(FileOp::Created | FileOp::CreatedThenEdited));
        let told = self.files.get(&name).is_some_and(|it| self.summary_messages.contains(&it.0));
        let op = match action.meaning {
            Meaning::Read
                if told
                    && matches!(
                        before,
                        Some(
                            FileOp::Edited
                                | FileOp::CreatedThenEdited
                                | FileOp::Written
                                | FileOp::Created
                                | FileOp::ReadAfterEdit
                        )
                    ) =>
            {
                FileOp::ReadAfterEdit
            }
            Meaning::Read
                if before
                    .is_none_or(|it| matches!(it, FileOp::Read | FileOp::Mentioned | FileOp::Restored)) =>
            {
                FileOp::Read
            }
            Meaning::Edit if made => FileOp::CreatedThenEdited,
            Meaning::Edit => FileOp::Edited,
            Meaning::Create if made => FileOp::CreatedThenEdited,
            Meaning::Create if there || has_overwritten(output) => FileOp::Written,
            Meaning::Create => FileOp::Created,
            Meaning::Delete => FileOp::Deleted,
            Meaning::Rename => FileOp::Renamed,
            Meaning::Read
            | Meaning::Run
            | Meaning::Attend
            | Meaning::Search
            | Meaning::List
            | Meaning::Plan
            | Meaning::Ask
            | Meaning::Fetch
            | Meaning::Delegate
            | Meaning::Deliver
            | Meaning::Other => {
                self.open = Some(name);
                return;
            }
        };
        let to = action.to.as_deref().map(|it| path(it, action.dir.as_deref(), self.base));
        if let Some(to) = to.clone() {
            // Earlier changes still apply to the file under its new name.
            let op = before.filter(|it| {
                !matches!(
                    it,
                    FileOp::Read | FileOp::Mentioned | FileOp::Restored | FileOp::Deleted | FileOp::Renamed
                )
            });
            if let Some(op) = op {
                self.files.insert(to, (number, op, None));
            }
        }
        if !matches!(op, FileOp::Deleted | FileOp::Renamed) {
            self.open = Some(name.clone());
        }
        if op.changes() {
            let detail = Detail::File { op, to: to.clone() };
            self.changes.push(Fact::from_tools(ToolTopic::Files, number, name.clone(), detail));
            match op {
                FileOp::Deleted => self.uncommitted.delete(&name),
                FileOp::Renamed => {
                    self.uncommitted.delete(&name);
                    self.uncommitted.edit(number, to.as_deref().unwrap_or(&name));
                }
                _ => self.uncommitted.edit(number, to.as_deref().unwrap_or(&name)),
            }
            self.resolve_misfits(number, &name);
        }
        if matches!(op, FileOp::Created | FileOp::Written | FileOp::CreatedThenEdited) {
            self.resolve_missing_file(number, &name);
        }
        if op == FileOp::Deleted {
            // A directory takes what is in it with it.
            let below = |path: &str| path.strip_prefix(&name).is_some_and(|it| it.starts_with('/'));
            self.files.retain(|path, _| !below(path));
        }
        self.files.insert(name, (number, op, to));
    }

    fn record_refusal(
        &mut self,
        number: usize,
        call: &Call,
        actions: &[Action],
        refusal: &Refusal,
        history: &History,
    ) {
        let what = actions.iter().find_map(|it| {
            it.command.clone().or_else(|| it.path.as_deref().map(|it| path(it, None, self.base)))
        });
        let what = match what {
            Some(it) => format!("{} {}", call.name, flat(clip(&it, 120).0)),
            None => call.name.to_string(),
        };
        // Without a recorded reason, the next prompt is the reason.
        let next = || {
            let after = &history.messages()[number + 1..];
            let prompt = after.iter().take(3).find_map(Prompt::of)?;
            let text = prompt.parts().first()?.trim();
            prompt.quote(text).filter(|it| !it.starts_with('[') && it.chars().count() < 400)
        };
        let text = Quote::of_refusal(refusal).or_else(next).unwrap_or_else(Quote::empty);
        let detail = Detail::Choice { asked: None, means: Some(what), refused: true, superseded: None };
        self.facts.push(Fact::from_user(Topic::Decisions, number, text, detail));
    }

    fn record_replies(&mut self, number: usize, call: &Call, answered: &UserReply) {
        for Answer { question, said, rules } in user_replies(call, answered) {
            self.facts.extend(rules.into_iter().map(|(polarity, it)| {
                Fact::from_user(rule_topic(&it, polarity), number, it, Detail::Rule(polarity))
            }));
            let here = self.facts.len();
            if let Some(before) = question.clone().and_then(|it| self.questions.insert(it, here))
                && let Some(Fact { detail: Detail::Choice { superseded, .. }, .. }) =
                    self.facts.get_mut(before)
            {
                *superseded = Some(number);
            }
            let refused = answered.output.failed;
            let detail = Detail::Choice { asked: question, means: None, refused, superseded: None };
            self.facts.push(Fact::from_user(Topic::Decisions, number, said, detail));
        }
    }
}

/// The address or words that a call looks up in the web.
fn fetched(call: &Call) -> Option<String> {
    let input: serde_json::Value = serde_json::from_str(call.input.as_str()).ok()?;
    ["url", "query", "prompt"].iter().find_map(|key| input.get(key)?.as_str().map(str::to_owned))
}

fn has_failed(output: &Output) -> bool {
    let start = clip(output.text.as_str().trim_start(), 60).0.to_lowercase();
    output.failed
        || !output.cleared && FAILURE_STARTS.iter().any(|it| start.starts_with(it))
        || start.starts_with("exit code: ") && !start.starts_with("exit code: 0")
}

/// The tool's error message, without the element that Claude Code puts around it.
fn failure_message(output: &Output) -> String {
    let text = without_escapes(clip(output.text.as_str().trim(), 4_000).0);
    let text = text.strip_prefix("<tool_use_error>").unwrap_or(&text);
    flat(clip(text.strip_suffix("</tool_use_error>").unwrap_or(text), 200).0)
}

fn has_overwritten(output: &Output) -> bool {
    let start = clip(output.text.as_str(), 300).0;
    ["has been updated", "overwrote", "overwritten", "Updated file"].iter().any(|it| start.contains(it))
}
