//! How a fact is written on one line, so that it can be used and read back.

use crate::facts::text::{clip, clip_end, flat};
use crate::facts::{Deed, Detail, Fact, Name, Outcome, Topic, Voice};

/// A fact as written: lines with the same label and directory are joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// `edited`, `URLs`; pieces with the same label and group share a line.
    pub(super) label: Option<String>,
    /// What sorts and separates joined lines: the directory of a file.
    pub(super) group: String,
    /// The line, or the piece of a joined one, with its message number.
    pub(super) text: String,
}

/// How lines are written on this page.
pub(super) struct Manner {
    /// Cut from the front of paths, and said once a line.
    pub(super) root: Option<String>,
    /// Errors have a section of their own, so commands do not repeat them.
    pub(super) errors_apart: bool,
}

/// Writes a fact with at most about `chars` characters of its own text.
pub(super) fn line(fact: &Fact, chars: usize, manner: &Manner) -> Line {
    let root = manner.root.as_deref();
    let at = format!("[#{}]", fact.message);
    let single = |text: String| Line { label: None, group: String::new(), text: format!("{text} {at}") };
    match &fact.detail {
        Detail::File { deed, to } => file(fact, *deed, to.as_deref(), root, &at),
        Detail::Name(kind) => {
            let label = named(*kind).to_string();
            Line {
                label: Some(label),
                group: String::new(),
                text: format!("{} {at}", flat(clip(&fact.text, chars).0)),
            }
        }
        Detail::Command { outcome, .. } => single(format!(
            "{} → {}",
            command(&fact.text, chars),
            came_to(outcome, (!manner.errors_apart).then_some(chars.max(120)))
        )),
        Detail::Error { of, resolved } => {
            let text = cut(&fact.text, chars);
            let state = match resolved {
                Some(at) if *at != fact.message => format!("resolved [#{at}]"),
                Some(_) => "resolved".into(),
                None => "unresolved".into(),
            };
            match of {
                // What is over need not be run again; and a command with an old error beside it reads as failing.
                Some(of) if resolved.is_none() => {
                    single(format!("{}: {text} → {state}", command(of, chars.min(110))))
                }
                Some(_) => single(format!("{text} → {state}")),
                None => single(text),
            }
        }
        Detail::Choice { asked, means, refused, superseded } => {
            let said = if fact.text.is_empty() { String::new() } else { words(fact, chars) };
            let mut out = match (asked, means) {
                (_, Some(what)) if *refused => joined(&format!("refused: {}", cut(what, 140)), &said),
                (Some(asked), None) if *refused => joined(&format!("asked: {}", cut(asked, chars)), &said),
                (Some(asked), Some(means)) => format!(
                    "{} = {}",
                    joined(&format!("asked: {}", cut(asked, chars)), &said),
                    cut(means, 200)
                ),
                (Some(asked), None) => joined(&format!("asked: {}", cut(asked, chars)), &said),
                (None, Some(means)) => format!("{said} = {}", cut(means, 200)),
                (None, None) => said,
            };
            match superseded {
                Some(by) if *by != fact.message => out.push_str(&format!(" (superseded by [#{by}])")),
                Some(_) => out.push_str(" (superseded)"),
                None => {}
            }
            single(out)
        }
        Detail::Rule(_) | Detail::None => match fact.topic {
            Topic::Done => single(format!("done: {}", cut(&fact.text, chars))),
            Topic::Active => single(format!("doing: {}", cut(&fact.text, chars))),
            Topic::Open => single(format!("open: {}", cut(&fact.text, chars))),
            Topic::Setup if fact.voice == Voice::Seen => single(command(&fact.text, chars)),
            Topic::Directory => {
                Line { label: None, group: String::new(), text: format!("working directory: {}", fact.text) }
            }
            Topic::Goal
            | Topic::Constraints
            | Topic::Requests
            | Topic::UserMessages
            | Topic::Decisions
            | Topic::Files
            | Topic::Setup
            | Topic::Commands
            | Topic::Errors
            | Topic::Tried
            | Topic::Untested
            | Topic::Current
            | Topic::Last
            | Topic::Identifiers
            | Topic::Findings => single(words(fact, chars)),
        },
    }
}

fn joined(question: &str, answer: &str) -> String {
    if answer.is_empty() { question.into() } else { format!("{question} → {answer}") }
}

/// What was done to a file, in a word or two. `facts` reads these back from earlier summaries.
pub(super) fn deed(deed: Deed) -> &'static str {
    match deed {
        Deed::Created => "created",
        Deed::Grown => "created, edited",
        Deed::Written => "written",
        Deed::Edited => "edited",
        Deed::Renamed => "renamed",
        Deed::Deleted => "deleted",
        Deed::Restored => "read, changes undone",
        Deed::Reread => "edited earlier, read",
        Deed::Read => "read",
        Deed::Noted => "noted",
    }
}

fn named(kind: Name) -> &'static str {
    match kind {
        Name::Url => "URLs",
        Name::Hash => "hashes",
        Name::Ticket => "tickets",
        Name::Branch => "branches",
        Name::Version => "versions",
        Name::Port => "ports",
        Name::Id => "ids",
        Name::Setting => "settings",
        Name::Symbol => "symbols",
    }
}

fn file(fact: &Fact, what: Deed, to: Option<&str>, root: Option<&str>, at: &str) -> Line {
    let within = |path: &str| {
        root.and_then(|root| path.strip_prefix(root)).map(|it| it.trim_start_matches('/').to_string())
    };
    let short = within(&fact.text);
    let label = match (root, &short) {
        (Some(root), Some(_)) => format!("{} in {root}", deed(what)),
        _ => deed(what).to_string(),
    };
    let group = fact.text.rsplit_once('/').map_or("", |it| it.0).to_string();
    let path = short.unwrap_or_else(|| fact.text.clone());
    let text = match to {
        Some(to) => format!("{path} → {} {at}", within(to).unwrap_or_else(|| to.into())),
        None => format!("{path} {at}"),
    };
    Line { label: Some(label), group, text }
}

/// Somebody's words: the user's in quotation marks, cut in the middle so that both ends stay verbatim.
fn words(fact: &Fact, chars: usize) -> String {
    let text = flat(&fact.text);
    if fact.voice != Voice::User {
        return cut(&text, chars);
    }
    let (typed, pasted) = unpasted(&fact.text);
    if !typed.is_empty() && !pasted.is_empty() {
        return apart(&typed, &pasted, chars);
    }
    if text.chars().count() <= chars {
        return format!("\"{text}\"");
    }
    let head = paired(clip(&text, chars * 2 / 3).0);
    let tail = clip_end(&text, chars / 3);
    // A quotation of code that was opened before the cut would begin with its end.
    let tail = match tail.find('`').filter(|_| tail.matches('`').count() % 2 == 1) {
        Some(at) => tail[at..].trim_start_matches('`').trim_start(),
        None => tail,
    };
    format!("\"{head}\" … \"{tail}\"")
}

/// What was typed, then what was pasted between it in blocks of code: what is wanted comes first.
fn apart(typed: &[String], pasted: &[String], chars: usize) -> String {
    let mut left = chars;
    let mut out = String::new();
    let mut quote = |before: &str, text: &str, least: usize| {
        if left < least {
            return;
        }
        let (head, short) = clip(text, left);
        let head = if short { paired(head) } else { head };
        left = if short { 0 } else { left - text.chars().count() };
        out.push_str(&format!("{before}\"{head}\"{}", if short { " …" } else { "" }));
    };
    for (at, text) in typed.iter().enumerate() {
        quote(if at == 0 { "" } else { " … " }, text, 1);
    }
    for text in pasted {
        quote("; pasted: ", text, 60);
    }
    out
}

/// The stretches of a text outside and inside of fenced blocks of code, each on one line.
fn unpasted(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut typed, mut pasted) = (vec![String::new()], Vec::new());
    let mut code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
            if code { &mut pasted } else { &mut typed }.push(String::new());
        } else if let Some(last) = if code { pasted.last_mut() } else { typed.last_mut() } {
            last.push_str(line);
            last.push('\n');
        }
    }
    let kept = |all: Vec<String>| all.iter().map(|it| flat(it)).filter(|it| !it.is_empty()).collect();
    (kept(typed), kept(pasted))
}

fn cut(text: &str, chars: usize) -> String {
    let flat = flat(text);
    let (head, cut) = clip(&flat, chars);
    if cut { format!("{} …", paired(head)) } else { head.into() }
}

/// Without a quotation of code that is opened and not closed.
fn paired(text: &str) -> &str {
    match text.rfind('`').filter(|_| text.matches('`').count() % 2 == 1) {
        Some(at) => text[..at].trim_end_matches('`').trim_end(),
        None => text,
    }
}

/// A command between backticks: its telling line, verbatim as far as it goes.
fn command(text: &str, chars: usize) -> String {
    let idle = |it: &&str| {
        let it = it.trim();
        it.is_empty()
            || it.starts_with('#')
            || it.starts_with("set -")
            || it.starts_with("tmp=")
            || (it.starts_with("export ") && it.ends_with('\\'))
            || (it.starts_with("cd ") && !it.contains("&&"))
    };
    let (text, whole) = text.trim().strip_suffix(" …").map_or((text.trim(), true), |it| (it, false));
    let line = text.lines().find(|it| !idle(it)).unwrap_or(text).trim();
    // A backtick would end the quotation.
    let plain = line.split('`').next().unwrap_or(line).trim_end().trim_end_matches('\\').trim_end();
    let more = !whole || plain.len() < text.len();
    let (head, cut) = clip(unfiltered(plain), chars);
    let more = if cut || more { " …" } else { "" };
    format!("`{head}`{more}")
}

/// Without what only shortens what is shown of the output: `2>&1 | tail -20`.
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

/// An outcome in a few words, with the error if so many characters are given for it.
fn came_to(outcome: &Outcome, chars: Option<usize>) -> String {
    let mut parts: Vec<String> = Vec::new();
    match outcome.ok {
        Some(true) => parts.push("ok".into()),
        Some(false) => parts.push("failed".into()),
        None if outcome.running.is_some() => parts.push("still running".into()),
        // A search without a match: the code says it all.
        None if outcome.exit.is_some() => {}
        None => parts.push("ran".into()),
    }
    parts.extend(outcome.exit.map(|it| format!("exit {it}")));
    parts.extend(outcome.result.clone());
    let mut out = parts.join(", ");
    if let (Some(error), Some(chars)) = (&outcome.error, chars) {
        out.push_str(&format!(": {}", cut(error, chars)));
    }
    out
}
