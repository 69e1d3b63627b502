//! Identifiers in use: what cannot be guessed again once it is gone.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::command;
use super::symbols::{FEW, Symbols, located};
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::{clip, own};
use crate::facts::voice::Seen;
use crate::facts::{Detail, Fact, Name};
use history::tools::{self, Action, Meaning};
use history::{History, Kind, Part, Role, Text};

static KINDS: LazyLock<Vec<(Name, AsciiFirstRegex)>> = LazyLock::new(|| {
    [
        (Name::Url, r"\bhttps?://[^\s<>)\]{}'\x22`|\\，。）]+[^\s<>)\]{}'\x22`|\\，。）.,;:!?*]"),
        (Name::Id, r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
        (Name::Ticket, r"(?i)\b(?:PR|pull request|issue|MR|bug|ticket)s? ?#?\d{1,6}\b|(?-i)\b[A-Z][A-Z]{1,9}-\d{1,6}\b|(?:^|[\s(`*|,])(#\d{2,5})\b|\[(#\d{2,5})\]\("),
        (Name::Version, r"(?:[@\w./-]*[A-Za-z][@ :=^~v]{1,3}|\bv)\d+\.\d+(?:\.\d+)*(?:-[\w.]+)?\b|\b\d+\.\d+\.\d+(?:\.\d+)*(?:-[\w.]+)?\b"),
        (Name::Port, r"(?i)(?:\bport[ :=]+|localhost:|127\.0\.0\.1:|0\.0\.0\.0:)\d{2,5}\b"),
        (Name::Hash, r"\b(?:sha256:)?[0-9a-f]{7,64}\b"),
        (Name::Branch, r"(?i)(?:\bbranch(?:es)?(?: named| called)? [`'\x22]?|git (?:checkout|switch)(?: -[bc])? |git push (?:-u )?origin |origin/)([A-Za-z][\w.-]*/?[\w./-]*\w)"),
        (Name::Setting, r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]{2,}=[^\s'\x22`;$()]{1,80}|[`'\x22]?\b[a-z]+(?:[A-Z][a-z0-9]*|_[a-z0-9]+)+[`'\x22]?\s?[:=]\s?\d+\b"),
        (Name::Colour, r"#[0-9A-Fa-f]{6}\b"),
    ]
    .into_iter()
    .map(|(kind, pattern)| (kind, AsciiFirstRegex::new(pattern)))
    .collect()
});
/// Reads the identifiers that the user or the model names, that commands hold, and that code written or searched here
/// defines. `base`: the directory that paths are told from.
pub(in crate::facts) fn read(history: &History, base: Option<&str>) -> Vec<Fact> {
    let mut facts = Vec::new();
    // How often, by kind and text; where first.
    let mut seen: HashMap<(Name, String), usize> = HashMap::new();
    let mut add = |number: usize, kind: Name, text: &str| {
        let text = trimmed(kind, text.trim().trim_start_matches('('));
        if !telling(kind, text) {
            return;
        }
        if seen.insert((kind, text.to_string()), number).is_none() {
            facts.push(Fact::seen(Seen::Identifiers, number, text.into(), Detail::Name(kind)));
        }
    };
    let mut symbols = Symbols::default();
    // Calls whose output shows code.
    let mut looks: HashMap<&str, Vec<Action>> = HashMap::new();
    for (number, message) in history.messages().iter().enumerate() {
        if matches!(message.kind, Kind::Context | Kind::Marker | Kind::Continue)
            || message.role == Role::System
        {
            continue;
        }
        for stretch in own(message.texts().map(Text::as_str)) {
            named(number, stretch, &mut add);
            if message.role == Role::Assistant {
                symbols.spoken(number, stretch);
                symbols.used(stretch);
            }
        }
        for part in &message.parts {
            match part {
                Part::Call(call) => {
                    let actions = tools::actions(call);
                    for action in &actions {
                        if let Some(command) = &action.command {
                            named(number, clip(command, 4_000).0, &mut add);
                        }
                    }
                    if actions.iter().any(|it| matches!(it.meaning, Meaning::Edit | Meaning::Create)) {
                        let mut files = actions.iter().filter_map(|it| located(it, base));
                        // Of a patch to several files, which of them defines it is not looked for.
                        let file = files.next().filter(|_| files.next().is_none());
                        symbols.written(number, call, file.as_deref());
                    }
                    symbols.used(call.input.as_str());
                    if actions.iter().any(|it| it.meaning == Meaning::Fetch) {
                        named(number, call.input.as_str(), &mut add);
                    }
                    if actions.iter().any(|it| it.meaning == Meaning::Read || searches_for(it)) {
                        looks.insert(&call.id, actions);
                    }
                }
                // Of what tools print, only what a commit or a new pull request is called.
                Part::Output(output) => {
                    if let Some(actions) = looks.remove(&*output.id) {
                        if actions.iter().any(searches_for) {
                            symbols.found(number, output.text.as_str(), &actions, base);
                        } else if let Some(file) = actions.iter().find_map(|it| located(it, base)) {
                            symbols.read(number, output.text.as_str(), &file);
                        }
                    }
                    let text = clip(output.text.as_str(), 2_000).0;
                    for line in text.lines().filter(|it| it.starts_with('[') && it.contains("] ")).take(3) {
                        for found in KINDS[5].1.find_iter(line).take(1) {
                            add(number, Name::Hash, found.as_str());
                        }
                    }
                    if text.len() < 400 && text.trim_start().starts_with("https://") {
                        named(number, text, &mut add);
                    }
                }
                Part::Text(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {}
            }
        }
    }
    facts.extend(symbols.into_facts());
    facts
}

/// Whether an action prints the lines that it finds.
fn searches_for(action: &Action) -> bool {
    let by = |it: &str| command::looks(it) && ["rg ", "grep "].iter().any(|of| it.contains(of));
    action.meaning == Meaning::Search || action.command.as_deref().is_some_and(by)
}

fn named(number: usize, text: &str, add: &mut impl FnMut(usize, Name, &str)) {
    for (kind, pattern) in KINDS.iter() {
        for found in pattern.captures_iter(text).take(FEW) {
            if let Some(it) = found.get(1).or_else(|| found.get(2)).or_else(|| found.get(0)) {
                // A hash or number inside a longer name or address is no name of its own.
                let inside = |at: Option<char>| at.is_some_and(|c| c.is_alphanumeric() || "-_/%".contains(c));
                let alone = !inside(text[..it.start()].chars().next_back())
                    && !inside(text[it.end()..].chars().next());
                if (alone || !matches!(kind, Name::Hash)) && !signs(text, it.start()) {
                    add(number, *kind, it.as_str());
                }
            }
        }
    }
}

/// Whether the line at `at` is one by which an agent signs its commits and pull requests.
fn signs(text: &str, at: usize) -> bool {
    let line = text[..at].rsplit('\n').next().unwrap_or_default();
    ["Co-Authored-By:", "Co-authored-by:", "Generated with ["].iter().any(|it| line.contains(it))
}

/// A version without a word before it that only happens to stand there.
fn trimmed(kind: Name, text: &str) -> &str {
    const FILLERS: [&str; 31] = [
        "already",
        "now",
        "now:",
        "dev:",
        "still",
        "at",
        "versions:",
        "version",
        "version:",
        "is",
        "to",
        "was",
        "the",
        "in",
        "of",
        "on",
        "and",
        "or",
        "from",
        "for",
        "origin",
        "step",
        "section",
        "release",
        "showed",
        "using",
        "a",
        "ref",
        "ref:",
        "run",
        "runs",
    ];
    let text = match kind {
        Name::Version => text.trim_start_matches(['-', '.', '/']),
        // Who sent somebody there is no part of the address.
        Name::Url => text.split_once("?utm_").or(text.split_once("&utm_")).map_or(text, |it| it.0),
        _ => text,
    };
    match text.split_once(' ') {
        Some((word, number)) if kind == Name::Version && FILLERS.contains(&word.to_lowercase().as_str()) => {
            number
        }
        _ => text.trim_end_matches(['.', ',', ')']),
    }
}

/// Whether a name ends as files do: `git checkout src/client.rs` names no branch.
fn is_file(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    last.rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty()
            && (1..=5).contains(&ending.len())
            && ending.bytes().all(|it| it.is_ascii_alphabetic())
    })
}

/// Whether a text ends with the four numbers of an address.
fn is_address(text: &str) -> bool {
    let numbers = text.rsplit(|c: char| !(c.is_ascii_digit() || c == '.')).next().unwrap_or_default();
    numbers.matches('.').count() > 2
}

/// Whether the word before a number says what was measured: `Wall time: 0.33` is no version.
fn is_measured(text: &str) -> bool {
    const MEASURES: [&str; 19] = [
        "accuracy",
        "average",
        "avg",
        "branches",
        "coverage",
        "current",
        "cvss",
        "duration",
        "elapsed",
        "lines",
        "mean",
        "median",
        "rate",
        "ratio",
        "score",
        "size",
        "statements",
        "time",
        "took",
    ];
    let word = text.split([' ', ':', '=', '~']).next().unwrap_or_default();
    word.len() < text.len() && MEASURES.contains(&word.to_lowercase().as_str())
}

/// Whether a find says something: a hash needs digits and letters, a branch is more than a word.
fn telling(kind: Name, text: &str) -> bool {
    match kind {
        Name::Hash => {
            text.len() >= 7
                && text.bytes().any(|b| b.is_ascii_digit())
                && text.bytes().any(|b| b.is_ascii_lowercase())
        }
        Name::Branch => {
            text.contains(['/', '-']) && text.len() >= 5 && !text.ends_with(['.', '/']) && !is_file(text)
                || text == "main"
                || text == "master"
                || text == "dev"
        }
        Name::Version => {
            !is_address(text)
                && !is_measured(text)
                && !text.starts_with("at ")
                && (text.contains(char::is_alphabetic) || text.matches('.').count() > 1)
                && !text.starts_with("0.0.0.0")
                && !text.starts_with("127.")
                && text.len() <= 60
        }
        Name::Ticket => {
            !["UTF-8", "UTF-16", "SHA-1", "SHA-256", "ISO-8601", "GPT-4", "GPT-5"].contains(&text)
                && !text.starts_with("UTF-")
        }
        Name::Url => {
            let host = text.split('/').nth(2).unwrap_or_default();
            text.len() <= 300
                && !text.contains("example.com")
                && ![".example", ".test", ".invalid"].iter().any(|it| host.ends_with(it))
        }
        Name::Port | Name::Id | Name::Setting | Name::Colour => true,
    }
}
