//! Lines of outputs that the current request needs: what was read and searched for it is lost with its outputs, and the
//! model has not yet reported it.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::command::{ParsedCommand, is_read_only};
use super::runs::output_directory;
use super::symbols::{definition, is_symbol, single_file};
use super::{has_failed, paths};
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::{clip, flat};
use crate::facts::voice::ToolTopic;
use crate::facts::{Detail, Fact, Topic, Voice};
use history::tools::{self, Action, Meaning};
use history::{History, Output, Part, Role, secrets};

/// Maximum lines of one file or page.
const MAX_LINES: usize = 5;
/// Maximum lines altogether.
const MAX_ALL_LINES: usize = 30;
/// Maximum characters of a line.
const MAX_CHARS: usize = 140;
/// What stands between two lines.
const BETWEEN: &str = " · ";

/// A line of an output.
struct Line {
    /// The file, URL or helper that it comes from.
    source: String,
    /// Its number in the file, if the output tells it.
    number: Option<usize>,
    text: String,
    message: usize,
}

/// The lines that name what the request, the model and its searches name. Those of files that were changed later are left
/// out. `changes`: all changes to files, in order.
pub(in crate::facts) fn read(history: &History, base: Option<&str>, changes: &[Fact]) -> Vec<Fact> {
    let Some(from) = history.last_prompt() else { return Vec::new() };
    let mut terms = Terms::default();
    terms.add_request(&history.messages()[from].plain());
    let mut calls: HashMap<&str, Vec<Action>> = HashMap::new();
    let mut lines: Vec<Line> = Vec::new();
    for (number, message) in history.messages().iter().enumerate().skip(from + 1) {
        for part in &message.parts {
            match part {
                Part::Text(text) if message.role == Role::Assistant => {
                    terms.add_names(text.as_str(), Terms::OF_MODEL)
                }
                Part::Reasoning(thought) => terms.add_names(thought.text.as_str(), Terms::OF_MODEL),
                Part::Call(call) => {
                    let actions = tools::actions_in(call, history.shell_dir(message));
                    if actions.iter().all(|it| shows_files(it)) {
                        // What stands in paths is no subject of the work.
                        let sought = call.input.as_str().split_whitespace().filter(|it| !it.contains('/'));
                        sought.for_each(|it| terms.add_names(it, Terms::OF_MODEL));
                    }
                    calls.insert(&call.id, actions);
                }
                Part::Output(output) => {
                    if let Some(actions) = calls.remove(&*output.id) {
                        lines.extend(lines_of(number, &actions, output, base));
                    }
                }
                Part::Text(_) | Part::Media(_) | Part::Opaque(_) => {}
            }
        }
    }
    let changed: HashMap<&str, usize> = changes.iter().map(|it| (it.text.as_str(), it.message)).collect();
    lines.retain(|it| changed.get(it.source.as_str()).is_none_or(|at| *at < it.message));
    facts_of(terms.best(lines))
}

/// Drops the lines that an earlier summary quotes, once their request was followed by another or their file was changed.
pub(in crate::facts) fn drop_outdated(history: &History, changes: &[Fact], facts: &mut Vec<Fact>) {
    let changed = |it: &Fact| {
        let of_file =
            |change: &Fact| it.text.strip_prefix(change.text.as_str()).is_some_and(|it| it.starts_with(": "));
        changes.iter().any(|change| change.message >= it.message && of_file(change))
    };
    let asked = history.last_prompt();
    facts.retain(|it| {
        let quoted = it.topic == Topic::Excerpts && it.voice() == Voice::Summary;
        !(quoted && (asked > Some(it.message) || changed(it)))
    });
}

/// The lines of an output that shows files, what a search found, a page, or a helper's report.
fn lines_of(message: usize, actions: &[Action], output: &Output, base: Option<&str>) -> Vec<Line> {
    /// Bytes of an output that are read.
    const MOST: usize = 60_000;
    if !actions.iter().all(shows_files) || output.cleared || has_failed(output) {
        return Vec::new();
    }
    let commands = actions.iter().filter_map(|it| it.command.as_deref());
    let alone = commands.map(ParsedCommand::of).all(|it| it.prints_files_only());
    let own = single_file(actions, base).filter(|it| alone && it.contains('.'));
    let dir = output_directory(actions, base).flatten();
    // Some searches print the file above its lines.
    let mut above: Option<String> = None;
    // Whether a document lists what it does not want.
    let mut excluded = false;
    let mut out = Vec::new();
    for line in clip(output.text.as_str(), MOST).0.lines() {
        let (source, number, text) = match Printed::of(line) {
            Printed::Found { path, number, text } => {
                (paths::printed(path, dir.as_deref(), base), Some(number), text)
            }
            Printed::File(path) => {
                above = paths::printed(path, dir.as_deref(), base);
                continue;
            }
            Printed::Numbered { number, text } => (above.clone().or_else(|| own.clone()), Some(number), text),
            Printed::Plain(text) => (own.clone(), None, text),
        };
        let Some(source) = source.filter(|it| is_quotable(it)) else { continue };
        if text.trim_start().starts_with('#') && is_document(&source) {
            excluded = EXCLUDES.is_match(text);
        }
        // A longer line is data.
        let tells = |it: &str| it.len() < 600 && !imports(it) && !it.starts_with(['#', '<']);
        if !excluded && tells(text.trim_start()) {
            out.push(Line { source, number, text: flat(text), message });
        }
    }
    out
}

/// The heading of a list of what is not wanted or no longer holds.
static EXCLUDES: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\b(?:non-?goals?|not goals?|out of scope|not in scope|rejected|alternatives|deprecated|removed|obsolete|changelog)\b",
);

/// Whether an action shows lines of files and changes nothing.
fn shows_files(action: &Action) -> bool {
    match action.meaning {
        Meaning::Read | Meaning::Search => true,
        Meaning::Run => action.command.as_deref().is_some_and(is_read_only),
        _ => false,
    }
}

/// Whether lines of a file may be quoted: it is none of the agent's own, holds no data, and is not made to hold secrets.
fn is_quotable(source: &str) -> bool {
    let name = paths::file_name(source);
    let secret = name.starts_with(".env") && !name.ends_with("example") || name.ends_with(".pem");
    !secret && !name.ends_with(".jsonl") && !super::file_mentions::is_kept_by_tools(source)
}

/// A line as reading and searching tools print it.
enum Printed<'a> {
    /// `src/a.rs:12:text`
    Found {
        path: &'a str,
        number: usize,
        text: &'a str,
    },
    /// `src/a.rs:`, above its lines
    File(&'a str),
    /// `12→text`, `12: text`, `00012| text`, `  Line 12: text`
    Numbered {
        number: usize,
        text: &'a str,
    },
    Plain(&'a str),
}

impl<'a> Printed<'a> {
    fn of(line: &'a str) -> Self {
        let is_path = |it: &str| it.contains(['/', '.']) && !it.contains([' ', '(', '"', '\'', '=']);
        let number = |it: &str| it.parse::<usize>().ok().filter(|_| it.len() < 8);
        let lead = line.trim_start();
        let lead = lead.strip_prefix("Line ").unwrap_or(lead);
        let digits = lead.len() - lead.trim_start_matches(|it: char| it.is_ascii_digit()).len();
        let behind = &lead[digits..];
        if let Some(number) = number(&lead[..digits])
            && let Some(text) = behind.strip_prefix(['→', '\t', ':', '|'])
        {
            return Self::Numbered { number, text };
        }
        if let Some((path, rest)) = line.split_once(':').filter(|it| is_path(it.0)) {
            if rest.trim().is_empty() {
                return Self::File(path);
            }
            if let Some((number, text)) = rest.split_once(':').and_then(|it| Some((number(it.0)?, it.1))) {
                return Self::Found { path, number, text };
            }
        }
        Self::Plain(line)
    }
}

/// What lines are chosen by, in lower case.
#[derive(Default)]
struct Terms {
    /// Names of code, each with its weight.
    names: HashMap<String, f64>,
    /// The other words of the request, which documents may answer.
    words: HashSet<String>,
}

impl Terms {
    const OF_REQUEST: f64 = 2.0;
    const OF_MODEL: f64 = 1.0;
    /// Weight of a word, and how many of them a line needs.
    const OF_WORD: f64 = 0.5;
    const WORDS: usize = 3;
    /// Maximum number of lines that have a term: one that stands everywhere says nothing of a line.
    const FEW: usize = 30;

    fn add_request(&mut self, text: &str) {
        self.add_names(text, Self::OF_REQUEST);
        self.words.extend(words(clip(text, 20_000).0).map(str::to_lowercase));
    }

    fn add_names(&mut self, text: &str, weight: f64) {
        for name in words(clip(text, 20_000).0).filter(|it| is_name(it)) {
            let known = self.names.entry(name.to_lowercase()).or_default();
            *known = known.max(weight);
        }
    }

    /// The lines that say the most, in their order: terms that few of the lines have count more.
    fn best(&self, lines: Vec<Line>) -> Vec<Line> {
        let mut seen: HashSet<(String, String)> = HashSet::new();
        let lines: Vec<Line> =
            lines.into_iter().rev().filter(|it| seen.insert((it.source.clone(), it.text.clone()))).collect();
        let known: Vec<HashMap<String, f64>> = lines.iter().map(|it| self.in_line(it)).collect();
        let mut frequency: HashMap<&str, usize> = HashMap::new();
        known.iter().flatten().for_each(|it| *frequency.entry(it.0).or_default() += 1);
        let rarity =
            |it: &str| (2.0 * Self::FEW as f64 / frequency.get(it).copied().unwrap_or(1) as f64).ln();
        let is_rare = |it: &str| frequency.get(it).is_none_or(|it| *it <= Self::FEW);
        let mut ranked: Vec<(f64, usize)> = Vec::new();
        for (at, terms) in known.iter().enumerate() {
            let rare = || terms.iter().filter(|it| is_rare(it.0));
            let named = rare().any(|it| self.names.contains_key(it.0));
            if named || rare().count() >= Self::WORDS {
                let defines =
                    definition(&lines[at].text).is_some_and(|it| terms.contains_key(&it.to_lowercase()));
                let score: f64 = rare().map(|it| it.1 * rarity(it.0)).sum();
                ranked.push((if defines { score * 2.0 } else { score }, at));
            }
        }
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut of_source: HashMap<&str, usize> = HashMap::new();
        let fits = |it: &&(f64, usize)| {
            let count = of_source.entry(&lines[it.1].source).or_default();
            *count += 1;
            *count <= MAX_LINES
        };
        let best: HashSet<usize> = ranked.iter().filter(fits).take(MAX_ALL_LINES).map(|it| it.1).collect();
        lines.into_iter().enumerate().filter(|it| best.contains(&it.0)).map(|it| it.1).collect()
    }

    /// The terms in a line, each with its weight.
    fn in_line(&self, line: &Line) -> HashMap<String, f64> {
        let document = is_document(&line.source);
        let weighed = |it: &str| {
            let word = it.to_lowercase();
            let name = self.names.get(&word).copied();
            let weight =
                name.or_else(|| (document && self.words.contains(&word)).then_some(Self::OF_WORD))?;
            Some((word, weight))
        };
        words(clip(&line.text, MAX_CHARS).0).filter_map(weighed).collect()
    }
}

/// Whether a file is prose.
fn is_document(path: &str) -> bool {
    [".md", ".mdx", ".txt", ".rst", ".adoc"].iter().any(|it| path.ends_with(it))
}

/// Whether a word is a name of code: a symbol, or a constant.
fn is_name(word: &str) -> bool {
    let constant = |it: u8| it.is_ascii_uppercase() || it.is_ascii_digit() || it == b'_';
    is_symbol(word) || word.len() > 4 && word.contains('_') && word.bytes().all(constant)
}

/// Whether a line only imports what is defined elsewhere.
fn imports(line: &str) -> bool {
    ["import ", "from ", "use ", "#include", "export {", "export *"].iter().any(|it| line.starts_with(it))
}

/// The words of a text that may tell what it is about.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|it: char| !(it.is_ascii_alphanumeric() || it == '_'));
    words.filter(|it| it.len() > 3 && it.bytes().any(|it| it.is_ascii_alphabetic()))
}

/// One fact for each source, in the order of its last message.
fn facts_of(lines: Vec<Line>) -> Vec<Fact> {
    let mut by_source: BTreeMap<String, Vec<Line>> = BTreeMap::new();
    for line in lines {
        by_source.entry(line.source.clone()).or_default().push(line);
    }
    let mut facts: Vec<Fact> = Vec::new();
    for (source, mut lines) in by_source {
        let message = lines.iter().map(|it| it.message).max().unwrap_or_default();
        lines.sort_by_key(|it| (it.number, it.message));
        let quoted = lines.iter().filter(|it| secrets::mask(&it.text) == it.text).map(|it| {
            let (text, cut) = clip(&it.text, MAX_CHARS);
            let number = it.number.map(|it| format!("{it} ")).unwrap_or_default();
            format!("{number}`{}{}`", text.replace('`', "'"), if cut { "…" } else { "" })
        });
        let quoted: Vec<String> = quoted.collect();
        if !quoted.is_empty() {
            let text = format!("{source}: {}", quoted.join(BETWEEN));
            facts.push(Fact::from_tools(ToolTopic::Excerpts, message, text, Detail::None));
        }
    }
    facts.sort_by_key(|it| it.message);
    facts
}
