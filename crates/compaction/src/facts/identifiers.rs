//! Identifiers in use: what cannot be guessed again once it is gone.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::ascii_first::AsciiFirstRegex;
use super::text::{clip, own};
use super::voice::Seen;
use super::{Detail, Fact, Name, actions, command};
use history::tools::{self, Action, Meaning};
use history::{History, Kind, Part, Role, Text};

static KINDS: LazyLock<Vec<(Name, AsciiFirstRegex)>> = LazyLock::new(|| {
    [
        (Name::Url, r"\bhttps?://[^\s<>)\]{}'\x22`|\\，。）]+[^\s<>)\]{}'\x22`|\\，。）.,;:!?*]"),
        (Name::Id, r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"),
        (Name::Ticket, r"(?i)\b(?:PR|pull request|issue|MR|bug|ticket)s? ?#?\d{1,6}\b|(?-i)\b[A-Z][A-Z]{1,9}-\d{1,6}\b|(?:^|\s|\()#\d{2,5}\b"),
        (Name::Version, r"(?:[@\w./-]*[A-Za-z][@ :=^~v]{1,3}|\bv)\d+\.\d+(?:\.\d+)*(?:-[\w.]+)?\b"),
        (Name::Port, r"(?i)(?:\bport[ :=]+|localhost:|127\.0\.0\.1:|0\.0\.0\.0:)\d{2,5}\b"),
        (Name::Hash, r"\b(?:sha256:)?[0-9a-f]{7,64}\b"),
        (Name::Branch, r"(?i)(?:\bbranch(?:es)?(?: named| called)? [`'\x22]?|git (?:checkout|switch)(?: -[bc])? |git push (?:-u )?origin |origin/)([A-Za-z][\w.-]*/?[\w./-]*\w)"),
        (Name::Setting, r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]{2,}=[^\s'\x22`;$()]{1,80}"),
    ]
    .into_iter()
    .map(|(kind, pattern)| (kind, AsciiFirstRegex::new(pattern)))
    .collect()
});
/// What a written piece of code defines.
static DEFINED: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::new(
        r"(?m)^[\s+]*(?:export |pub(?:\([^)]*\))? |async |static |default |public |private |protected |func \([^)]*\) )*(?:fn|func|def|function|class|struct|enum|trait|interface|type|const|impl)?\s*\b(?:fn|func|def|function|class|struct|enum|trait|interface) ([A-Za-z_]\w{3,60})|(?m)^[\s+]*func \([^)]*\) ([A-Za-z_]\w{3,60})",
    )
});

/// No more than this many of a message of a tool or the model: a listing is not a name in use.
const FEW: usize = 40;

/// Reads the identifiers that the user or the model names, that commands hold, and that code written or searched here
/// defines. `base`: the directory that paths are told from.
pub(super) fn read(history: &History, base: Option<&str>) -> Vec<Fact> {
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
    let mut searches: HashMap<&str, Vec<Action>> = HashMap::new();
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
                        defined(call.input.as_str(), call.freeform, &mut |it| {
                            symbols.add(number, it, file.clone())
                        });
                    }
                    if actions.iter().any(searches_for) {
                        searches.insert(&call.id, actions.clone());
                    }
                    if actions.iter().any(|it| it.meaning == Meaning::Fetch) {
                        named(number, call.input.as_str(), &mut add);
                    }
                }
                // Of what tools print, only what a commit or a new pull request is called.
                Part::Output(output) => {
                    if let Some(actions) = searches.remove(&*output.id) {
                        symbols.found(number, output.text.as_str(), &actions, base);
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
    facts.extend(symbols.facts);
    facts
}

/// Whether an action prints the lines that it finds.
fn searches_for(action: &Action) -> bool {
    let by = |it: &str| command::looks(it) && ["rg ", "grep "].iter().any(|of| it.contains(of));
    action.meaning == Meaning::Search || action.command.as_deref().is_some_and(by)
}

/// The file of an action, told from `base`.
fn located(action: &Action, base: Option<&str>) -> Option<String> {
    action.path.as_deref().map(|it| actions::path(it, action.dir.as_deref(), base))
}

/// Functions and types, each once.
#[derive(Default)]
struct Symbols {
    facts: Vec<Fact>,
    /// Where each stands in `facts`.
    known: HashMap<String, usize>,
}

impl Symbols {
    fn add(&mut self, number: usize, name: &str, file: Option<String>) {
        let at = *self.known.entry(name.to_owned()).or_insert(self.facts.len());
        match self.facts.get_mut(at).map(|it| &mut it.detail) {
            Some(Detail::Symbol { file: known }) => *known = file.or(known.take()),
            _ => self.facts.push(Fact::seen(Seen::Identifiers, number, name.into(), Detail::Symbol { file })),
        }
    }

    /// Those that the model names in backticks.
    fn spoken(&mut self, number: usize, text: &str) {
        let quoted = text.split('`').skip(1).step_by(2).map(|it| it.trim_end_matches("()"));
        for name in quoted.filter(|it| is_symbol(it)).take(FEW) {
            self.add(number, name, None);
        }
    }

    /// Those whose definition a search printed: `path:12:fn name(`.
    fn found(&mut self, number: usize, output: &str, actions: &[Action], base: Option<&str>) {
        /// More are an index, not an answer.
        const ANSWER: usize = 20;
        let dir = actions.first().and_then(|it| it.dir.as_deref());
        let own = actions.iter().find_map(|it| located(it, base)).filter(|it| it.contains('.'));
        let mut out = Vec::new();
        for line in clip(output, 20_000).0.lines() {
            let numbered = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
            let Some((first, rest)) = line.split_once(':') else { continue };
            let (file, code) = match rest.split_once(':') {
                _ if numbered(first) => (own.clone(), rest),
                Some((line, code)) if numbered(line) => (actions::printed(first, dir, base), code),
                Some(_) | None => continue,
            };
            let name = DEFINED.captures_iter(code).next();
            out.extend(name.and_then(|it| Some((it.get(1).or(it.get(2))?.as_str().to_owned(), file))));
        }
        if out.len() <= ANSWER {
            out.into_iter().for_each(|(name, file)| self.add(number, &name, file));
        }
    }
}

/// Whether a word is a name of code and of nothing else: an underscore, or capitals inside.
fn is_symbol(word: &str) -> bool {
    (5..=60).contains(&word.len())
        && word.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
        && word.starts_with(|it: char| it.is_ascii_alphabetic())
        && word.bytes().any(|it| it.is_ascii_lowercase())
        && (word.contains('_') || word.bytes().skip(1).any(|it| it.is_ascii_uppercase()))
}

fn named(number: usize, text: &str, add: &mut impl FnMut(usize, Name, &str)) {
    for (kind, pattern) in KINDS.iter() {
        for found in pattern.captures_iter(text).take(FEW) {
            if let Some(it) = found.get(1).or_else(|| found.get(0)) {
                // A hash or number inside a longer name or address is no name of its own.
                let inside = |at: Option<char>| at.is_some_and(|c| c.is_alphanumeric() || "-_/%".contains(c));
                let alone = !inside(text[..it.start()].chars().next_back())
                    && !inside(text[it.end()..].chars().next());
                if alone || !matches!(kind, Name::Hash) {
                    add(number, *kind, it.as_str());
                }
            }
        }
    }
}

fn defined(input: &str, freeform: bool, add: &mut impl FnMut(&str)) {
    let mut each = |text: &str, patch: bool| {
        for found in DEFINED.captures_iter(text).take(FEW) {
            let line = found.get(0).map_or("", |it| it.as_str()).trim_start_matches('\n');
            // In a patch only what is added.
            if patch && !line.starts_with('+') {
                continue;
            }
            if let Some(it) = found.get(1).or_else(|| found.get(2)) {
                add(it.as_str());
            }
        }
    };
    if freeform {
        each(input, true);
        return;
    }
    let input: serde_json::Value = serde_json::from_str(input).unwrap_or_default();
    for key in
        ["new_string", "newString", "newText", "content", "file_text", "new_str", "replace", "patchText"]
    {
        if let Some(text) = input.get(key).and_then(|it| it.as_str()) {
            each(text, key == "patchText");
        }
    }
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
            !is_measured(text)
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
        Name::Port | Name::Id | Name::Setting => true,
    }
}
