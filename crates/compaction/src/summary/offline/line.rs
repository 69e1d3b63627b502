//! How a fact is written as one line that can be read back.

use std::collections::HashMap;
use std::ops::Range;

use super::quote::{SHORTENED, cut, outline, words};
use super::script;
use super::style::LineStyle;
use crate::facts::text::{clip, flat, without_escapes};
use crate::facts::{
    BELOW, COMMITS, Detail, FILE_CHANGED, Fact, FileOp, Ledger, Name, OF_EARLIER_REQUEST, Outcome, Polarity,
    REPORTS, REPOSITORY, RESOLVED, Topic, UNREADABLE, Voice, attempt_key, commit_subject, is_misfit,
    is_read_only,
};

/// A fact as written; lines with the same label and group are joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SummaryLine {
    /// Such as `edited` or `URLs`; pieces with the same label and group share a line.
    pub(super) label: Option<String>,
    /// Sorts and separates joined lines: the directory of a file.
    pub(super) group: String,
    /// The line, or the piece of a joined line, with its message number.
    pub(super) text: String,
}

impl SummaryLine {
    fn ending(self, with: &str) -> Self {
        Self { text: self.text + with, ..self }
    }
}

/// Writes a fact with at most about `chars` characters of its own text. `ended`: the outcome of the command
/// that an error comes from, if the command has no line of its own.
pub(super) fn line(fact: &Fact, ended: Option<&Outcome>, chars: usize, style: &LineStyle) -> SummaryLine {
    let SummaryLine { label, group, text } = raw_line(fact, ended, chars, style);
    SummaryLine { label: label.map(one_line), group, text: one_line(text) }
}

/// A text without any line break: paths, commands and names come from the session, and none may begin a
/// heading or list item of its own.
fn one_line(text: String) -> String {
    let breaks = |it: char| it != '\t' && it.is_control() || matches!(it, '\u{2028}' | '\u{2029}');
    if !text.contains(breaks) {
        return text;
    }
    let text = if text.contains('\u{1b}') { without_escapes(&text) } else { text };
    text.split(breaks).map(str::trim).filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" ")
}

fn raw_line(fact: &Fact, ended: Option<&Outcome>, chars: usize, style: &LineStyle) -> SummaryLine {
    let at = format!("[#{}]", fact.message);
    let single = |text: String| {
        // The text may begin with the list marker that the line gets.
        let text = text.trim_start_matches("- ");
        SummaryLine { label: None, group: String::new(), text: format!("{text} {at}") }
    };
    let labelled =
        |label: String, text: String| SummaryLine { label: Some(label), group: String::new(), text };
    match &fact.detail {
        Detail::File { op, to } => file(fact, *op, to.as_deref(), style, &at),
        // A symbol can be found in its file, without the message number.
        Detail::Symbol { file: Some(file), .. } => {
            labelled(symbols_in(file), flat(clip(&fact.text, chars).0))
        }
        Detail::Symbol { file: None, .. } => {
            labelled("symbols".to_owned(), format!("{} {at}", flat(clip(&fact.text, chars).0)))
        }
        Detail::Name(kind) => {
            labelled(kind_label(*kind).to_owned(), format!("{} {at}", flat(clip(&fact.text, chars).0)))
        }
        // Successful read-only commands are joined in a list; others show how they ended.
        Detail::Command { outcome: Outcome { ok: Some(true), .. }, read_only: true } => {
            labelled("read-only, ok".to_owned(), format!("{} {at}", command(&fact.text, chars)))
        }
        Detail::Command { outcome, .. } => command_line(fact, outcome, chars, style, &at),
        Detail::Error { of, resolved, similar, excused } => {
            // Whether a later edit did what the failed one wanted is unknown.
            let over = if is_misfit(&fact.text) { FILE_CHANGED } else { RESOLVED };
            let known = error_state(fact.message, over, *resolved, *similar, *excused);
            let state = known.unwrap_or_else(|| style.state_of_unresolved(fact, of.as_deref()));
            single(error(fact, of.as_deref(), resolved.is_some(), &state, ended, chars))
        }
        Detail::Diagnostics { by } => {
            labelled(format!("`{by}`{REPORTS}"), format!("{} {at}", flat(clip(&fact.text, chars).0)))
        }
        Detail::Choice { asked, means, refused, superseded } => {
            let holds = !refused && superseded.is_none();
            let line = choice(fact, asked.as_deref(), means.as_deref(), *refused, *superseded, chars);
            single(line).ending(&style.report_of(fact, asked.as_deref().filter(|_| holds)))
        }
        Detail::Rule(_) | Detail::None => match fact.topic {
            Topic::Setup if fact.voice() == Voice::Tools => single(command(&fact.text, chars)),
            Topic::Directory if fact.text.starts_with(REPOSITORY) => {
                SummaryLine { label: None, group: String::new(), text: fact.text.to_string() }
            }
            Topic::Directory | Topic::Mode => {
                let mark = fact.topic.row().mark.unwrap_or("working directory");
                let text = format!("{} {}", style.mark(mark), fact.text);
                SummaryLine { label: None, group: String::new(), text }
            }
            Topic::Goal => {
                let (said, end) = goal(fact, chars, style);
                single(said).ending(&end)
            }
            Topic::Last => {
                let end = style.end_of_last(fact, chars);
                single(told_below(words(fact, chars), &end)).ending(&end)
            }
            // Others of an earlier request are told as what the user said.
            Topic::Directives if fact.detail == Detail::Rule(Polarity::Forbid) => {
                single(words(fact, chars)).ending(style.over_since(fact).map_or("", |_| OF_EARLIER_REQUEST))
            }
            Topic::Current => {
                let suffix = style.goes_on.as_ref().filter(|it| it.0 == fact.message);
                single(words(fact, chars)).ending(suffix.map_or("", |it| &it.1))
            }
            _ => match fact.topic.row().mark {
                Some(mark) => single(format!("{} {}", style.mark(mark), style.step(fact, chars))),
                None => single(style.replies_to(fact) + &style.refuted_by(fact) + &style.told(fact, chars)),
            },
        },
    }
}

/// The label of symbols that are not listed beside their file.
pub(super) fn symbols_in(file: &str) -> String {
    format!("symbols in {file}")
}

/// A command with effects, and how it ended.
fn command_line(fact: &Fact, outcome: &Outcome, chars: usize, style: &LineStyle, at: &str) -> SummaryLine {
    /// With no more characters than these, room is short, and another command tells more than that one is outdated.
    const FEW: usize = 160;
    if let Some((commit, subject)) = commit(fact, outcome) {
        let subject = clip(&subject, chars.min(SUBJECT)).0;
        let text = format!("{commit}: {subject} {at}");
        return SummaryLine { label: Some(COMMITS.to_owned()), group: String::new(), text };
    }
    let mut ended = outcome_text(outcome, (!style.errors_apart).then_some(chars.max(120)));
    // An outcome that was read from a summary may say so already.
    let says = outcome.result.as_deref().is_some_and(|it| it.ends_with(EDITED_SINCE));
    if chars > FEW && !says && style.outdated.contains(&(fact.message, &*fact.text)) {
        ended = format!("{ended}, {EDITED_SINCE}");
    }
    let resolved = style.resolved.get(&(fact.message, fact.text.to_string()));
    let resolved = resolved.map(|by| format!(" → resolved at #{by}")).unwrap_or_default();
    let text = format!("{} → {ended}{resolved} {at}", command(&fact.text, chars));
    SummaryLine { label: None, group: String::new(), text }
}

/// The text of a goal, and its suffix.
fn goal(fact: &Fact, chars: usize, style: &LineStyle) -> (String, String) {
    let over = style.over_since(fact).filter(|_| !fact.text.starts_with(UNREADABLE));
    let end = style.end_of_goal(fact, over);
    let answered = !end.is_empty() && !style.follows_up;
    let short = fact.voice() == Voice::User && (answered || end == BELOW);
    let plan = if short { outline(&fact.text) } else { None };
    (told_below(plan.unwrap_or_else(|| words(fact, chars)), &end), end)
}

/// Words that are told in part, without a hint at recall if `end` says that the full text stands below.
fn told_below(said: String, end: &str) -> String {
    let short = said.strip_suffix(SHORTENED).filter(|_| end == BELOW);
    short.map(str::to_owned).unwrap_or(said)
}

/// Last part of the outcome of a check after which code was edited.
const EDITED_SINCE: &str = "code edited since";

/// Maximum characters of the subject of a commit.
const SUBJECT: usize = 120;

/// The hash and branch of the commit that a command made, and its subject, if the command did nothing else.
pub(super) fn commit<'f>(fact: &Fact, outcome: &'f Outcome) -> Option<(&'f str, String)> {
    let commit = outcome.result.as_deref()?.strip_prefix("committed ")?;
    let one = outcome.ok == Some(true) && !commit.contains(',');
    let subject = one.then(|| commit_subject(&fact.text)).flatten()?;
    Some((commit, flat(&subject)))
}

/// The message of the last call that changed something or ran a program, even if it failed.
pub(super) fn last_work(ledger: &Ledger) -> Option<usize> {
    let works = |it: &&Fact| match &it.detail {
        Detail::File { op, .. } => op.changes(),
        Detail::Command { read_only, .. } => !read_only,
        Detail::None
        | Detail::Rule(_)
        | Detail::Error { .. }
        | Detail::Diagnostics { .. }
        | Detail::Choice { .. }
        | Detail::Name(_)
        | Detail::Symbol { .. } => false,
    };
    ledger.facts.iter().filter(works).map(|it| it.message).max()
}

/// The last change of a file and the last command with effects in a range of messages, in order on one line; empty if
/// there are none.
pub(super) fn last_done(ledger: &Ledger, within: Range<usize>) -> String {
    /// Characters of the command.
    const COMMAND: usize = 80;
    let (mut change, mut run) = (None, None);
    let facts = ledger.facts.iter().filter(|it| within.contains(&it.message));
    for fact in facts {
        let (last, text) = match &fact.detail {
            Detail::File { op, .. } if op.changes() => {
                (&mut change, format!("{} {}", op_words(*op), fact.text))
            }
            Detail::Command { outcome, read_only: false } => {
                (&mut run, format!("{} → {}", command(&fact.text, COMMAND), outcome_text(outcome, None)))
            }
            _ => continue,
        };
        *last = last.take().max(Some((fact.message, text)));
    }
    let mut done: Vec<(usize, String)> = change.into_iter().chain(run).collect();
    done.sort_unstable();
    one_line(done.iter().map(|(at, it)| format!("{it} [#{at}]")).collect::<Vec<_>>().join(", "))
}

/// Failed commands whose failure a later message resolved: message and command, and the later message.
pub(super) fn resolved_failures(ledger: &Ledger) -> HashMap<(usize, String), usize> {
    let resolved = |it: &Fact| match &it.detail {
        Detail::Error { of: Some(of), resolved: Some(by), .. } if *by > it.message => {
            Some(((it.message, of.clone()), *by))
        }
        _ => None,
    };
    ledger.facts.iter().filter_map(resolved).collect()
}

/// The last message in which each command of the session ran, by its key, and whether it succeeded there.
pub(super) fn last_runs(ledger: &Ledger) -> HashMap<String, (usize, Option<bool>)> {
    let mut out: HashMap<String, (usize, Option<bool>)> = HashMap::new();
    for fact in &ledger.facts {
        let Detail::Command { outcome, .. } = &fact.detail else { continue };
        let last = out.entry(attempt_key(&fact.text)).or_default();
        *last = (*last).max((fact.message, outcome.ok));
    }
    out
}

/// What became of an error in message `at`, if anything shows it.
fn error_state(
    at: usize,
    over: &str,
    resolved: Option<usize>,
    similar: Option<usize>,
    excused: Option<(usize, &str)>,
) -> Option<String> {
    Some(match (resolved, similar, excused) {
        (Some(by), _, _) if by != at => format!("{over} at #{by}"),
        (Some(_), _, _) => over.into(),
        // A similar run does not show that this error is gone.
        (None, Some(by), _) if by != at => format!("a similar run went well at #{by}"),
        (None, Some(_), _) => "a similar run went well".into(),
        (None, None, Some((by, word))) if by != at => format!("reported as {word} at #{by}"),
        (None, None, Some((_, word))) => format!("reported as {word}"),
        (None, None, None) => return None,
    })
}

fn error(
    fact: &Fact,
    of: Option<&str>,
    resolved: bool,
    state: &str,
    ended: Option<&Outcome>,
    chars: usize,
) -> String {
    let text = cut(fact.text.trim_start_matches("- "), chars);
    match (of, ended) {
        (Some(of), Some(ended)) if !resolved => {
            format!("{} → {}: {text} → {state}", command(of, chars.min(260)), outcome_text(ended, None))
        }
        // Only unresolved errors name their command: beside an old error, it would seem to fail still.
        (Some(of), None) if !resolved => {
            format!("{}: {text} → {state}", command(of, chars.min(110)))
        }
        (Some(_), _) => format!("{text} → {state}"),
        // The end of the text, which tells how it was resolved, is cut off.
        (None, _) if resolved && text.ends_with('…') => format!("{text} → {state}"),
        (None, _) => text,
    }
}

fn choice(
    fact: &Fact,
    asked: Option<&str>,
    means: Option<&str>,
    refused: bool,
    superseded: Option<usize>,
    chars: usize,
) -> String {
    let said = if fact.text.is_empty() { String::new() } else { words(fact, chars) };
    let question = |asked: &str| joined(&format!("asked: {}", subject(asked, chars)), &said);
    let mut out = match (asked, means) {
        (_, Some(what)) if refused => {
            let by = match fact.voice() {
                Voice::Tools => "denied by the permission check",
                _ if said.is_empty() => "denied by the user",
                _ => "refused",
            };
            joined(&format!("{by}: {}", subject(what, 140)), &said)
        }
        (Some(asked), None) => question(asked),
        (Some(asked), Some(means)) => format!("{} = {}", question(asked), cut(means, 200)),
        (None, Some(means)) => format!("{said} = {}", cut(means, 200)),
        (None, None) => said,
    };
    match superseded {
        Some(by) if by != fact.message => out.push_str(&format!(" (superseded by [#{by}])")),
        Some(_) => out.push_str(" (superseded)"),
        None => {}
    }
    out
}

/// What was asked or refused, without `→`, which stands before the user's words.
fn subject(text: &str, chars: usize) -> String {
    cut(&text.replace('→', "->"), chars)
}

fn joined(question: &str, answer: &str) -> String {
    if answer.is_empty() { question.into() } else { format!("{question} → {answer}") }
}

/// What was done to a file, in a word or two. `facts` parses these in earlier summaries.
pub(super) fn op_words(op: FileOp) -> &'static str {
    match op {
        FileOp::Created => "created",
        FileOp::CreatedThenEdited => "created, edited",
        FileOp::Written => "written",
        FileOp::Edited => "edited",
        FileOp::Committed => "changed, committed",
        FileOp::Renamed => "renamed",
        FileOp::Deleted => "deleted",
        FileOp::Restored => "read, changes undone",
        FileOp::ReadAfterEdit => "edited earlier, read",
        FileOp::Read => "read",
        FileOp::ReadThenChanged => "read, changed since",
        FileOp::Mentioned => "mentioned",
        FileOp::Listed => "listed",
    }
}

fn kind_label(kind: Name) -> &'static str {
    match kind {
        Name::Url => "URLs",
        Name::Hash => "hashes",
        Name::Ticket => "references",
        Name::Branch => "branches",
        Name::Version => "versions",
        Name::Port => "ports",
        Name::Id => "ids",
        Name::Setting => "values",
        Name::Colour => "colours",
    }
}

fn file(fact: &Fact, what: FileOp, to: Option<&str>, style: &LineStyle, at: &str) -> SummaryLine {
    let done = style.word(op_words(what));
    // A file of the working directory that was changed or read has its whole path there.
    let applies = |it: &&String| it.starts_with('/') || matches!(what, FileOp::Mentioned | FileOp::Listed);
    let above = style.roots.iter().filter(applies).filter(|it| below(&fact.text, it).is_some());
    let root = above.max_by_key(|it| it.len());
    let within = |path: &str| root.and_then(|root| below(path, root)).unwrap_or(path).to_string();
    let (label, group) = match root {
        Some(root) => (format!("{done} in {root}"), String::new()),
        None if what == FileOp::Mentioned => (done.to_string(), String::new()),
        None => (done.to_string(), fact.text.rsplit_once('/').map_or("", |it| it.0).to_string()),
    };
    let path = within(&fact.text);
    let text = match to {
        Some(to) => format!("{path} → {} {at}", within(to)),
        // Without message numbers, since one line holds all listed files.
        None if what == FileOp::Listed => {
            return SummaryLine { label: Some(label), group: String::new(), text: path };
        }
        None => format!("{path} {at}"),
    };
    SummaryLine { label: Some(label), group, text }
}

/// A path relative to a directory above it.
fn below<'a>(path: &'a str, root: &str) -> Option<&'a str> {
    path.strip_prefix(root)?.strip_prefix('/').filter(|it| !it.is_empty())
}

/// A command in backticks: its most telling line, verbatim up to `chars`.
fn command(text: &str, chars: usize) -> String {
    let idle = |it: &&str| {
        let it = it.trim();
        // `#`: a comment; `-`: options of the line before.
        it.is_empty()
            || ["\\", "wait", "else", "then", "fi", "do", "done", "esac"].contains(&it)
            || it.starts_with("if ") && it.ends_with("then")
            || it.starts_with(['#', '-'])
            || it.starts_with("set -")
            || assigns(it)
            || it.starts_with("trap ")
            || it.strip_prefix("export ").is_some_and(|it| assigns(it) || it.ends_with('\\'))
            || (it.starts_with("cd ") && !it.contains("&&"))
    };
    let text = text.trim().trim_start_matches("\\\n").trim_start();
    let (text, whole) = text.strip_suffix(" …").map_or((text, true), |it| (it, false));
    // Skips a first line that only changes the directory.
    let text = match text.split_once('\n') {
        Some((first, rest)) if first.starts_with("cd ") && !first.contains("&&") => rest.trim_start(),
        Some(_) | None => text,
    };
    let first = text.lines().find(|it| !idle(it)).unwrap_or(text);
    // What a script prints before it does something says little.
    let prints = |it: &&str| {
        let closed = ['"', '\''].iter().all(|quote| it.matches(*quote).count().is_multiple_of(2));
        idle(it) || closed && is_read_only(it)
    };
    let line = text.lines().find(|it| !prints(it)).filter(|_| prints(&first)).unwrap_or(first).trim();
    // The command that takes a PowerShell here-string is on the line that ends the string.
    let here = ["@'", "@\""].iter().any(|it| line.ends_with(it));
    let takes = |it: &&str| it.starts_with("'@ |") || it.starts_with("\"@ |");
    let line = text.lines().filter(|_| here).find(takes).unwrap_or(line);
    // A backtick would end the code span.
    let plain = line.split('`').next().unwrap_or(line).trim_end().trim_end_matches('\\').trim_end();
    let more = !whole || plain.len() < text.len();
    let (head, cut) = clip(unfiltered(plain), chars);
    let more = if cut || more { " …" } else { "" };
    // Outside the code span: it is not part of what ran.
    let purpose = script::purpose(text, line).map(|it| clip(it, chars.min(120)).0.replace(['`', '→'], "'"));
    let purpose = purpose.map_or(String::new(), |it| format!(" ({it})"));
    format!("`{head}`{more}{purpose}")
}

/// Whether a line only assigns a variable: `tmp=$(mktemp -d)`.
fn assigns(line: &str) -> bool {
    let Some((name, value)) = line.split_once('=') else { return false };
    let plain = |it: char| it == '_' || it.is_ascii_alphanumeric();
    !name.is_empty()
        && name.chars().all(plain)
        && (!value.contains(char::is_whitespace)
            || value.starts_with("$(") && value.ends_with(')') && value.matches("$(").count() == 1)
}

/// Removes suffixes that only limit the shown output: `2>&1 | tail -20`.
fn unfiltered(command: &str) -> &str {
    let mut rest = command.trim_end();
    loop {
        let shorter = ["2>&1", "2>/dev/null"].iter().find_map(|it| rest.strip_suffix(it));
        let shorter = shorter.or_else(|| {
            let (before, filter) = rest.rsplit_once('|')?;
            let mut words = filter.split_whitespace();
            let shows = matches!(words.next(), Some("head" | "tail" | "cat" | "less"));
            // `head -20 FILE` would read something else.
            (shows && words.all(|it| it.starts_with('-') || it.parse::<u32>().is_ok())).then_some(before)
        });
        match shorter.map(str::trim_end).filter(|it| !it.is_empty() && !it.ends_with('|')) {
            Some(it) => rest = it,
            None => return rest,
        }
    }
}

/// An outcome in a few words. `chars`: maximum characters of the error; `None` leaves it out.
fn outcome_text(outcome: &Outcome, chars: Option<usize>) -> String {
    let mut parts: Vec<String> = Vec::new();
    match outcome.ok {
        Some(true) => parts.push("ok".into()),
        Some(false) => parts.push("failed".into()),
        None if outcome.running.is_some() => parts.push("running when last seen".into()),
        // Such as a search without a match: the exit code says it all.
        None if outcome.exit.is_some() => {}
        None => parts.push("ran".into()),
    }
    // Exit code 0 says no more than `ok`.
    parts.extend(
        outcome.exit.filter(|it| *it != 0 || outcome.ok != Some(true)).map(|it| format!("exit {it}")),
    );
    parts.extend(outcome.result.clone());
    let mut out = parts.join(", ");
    if let (Some(error), Some(chars)) = (&outcome.error, chars) {
        out.push_str(&format!(": {}", cut(error, chars)));
    }
    out
}
