//! Hindsight: of what an agent used after a cut, how much a compaction of what was before it still holds.
//!
//! This needs no definition of a fact. A thing counts once, when a tool call names it after the cut, it
//! occurred before the cut, and neither the user nor an output showed it again in between: the agent had it
//! from its context. Symbols and values in a file that an edit changes or replaces do not count: nobody edits a
//! file without reading it first. An error counts when it occurs or is mentioned again.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};
use serde::Serialize;

use super::kept::index::Index;
use super::kept::phrases::looks_like_path;
use super::probe::Fact;
use super::program_words;
use super::scripts_expanded;
use super::source::commands::{command_key, only_looks};
use super::source::done;
use super::source::idents::{is_hash, is_version, url_at};
use super::text::{clip, normal, strings, tokens};
use history::named;
use history::replaced;
use history::tools::{self, Action, Meaning};
use history::{Call, History, Message, Part};

named! {
    /// A kind of thing that is used, named in the plural.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum UsedKind {
        /// A file or directory.
        Path = "paths",
        /// A command that does more than look.
        Command = "commands",
        /// A function or type whose definition stood before the cut.
        Symbol = "symbols",
        /// A hash, URL, version, port or number of an issue.
        Value = "values",
        Error = "errors",
    }
}

/// A thing that occurred before the cut and was used after it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Used {
    pub kind: UsedKind,
    /// As the history has it; paths relative to the working directory if they are below it.
    pub text: String,
    /// A file's name, if it is unique among the paths before the cut, and so identifies the path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// How many of the things used a compacted history still holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct UseTally {
    pub used: usize,
    pub kept: usize,
}

/// Which of the things used later are still there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Hindsight {
    pub kinds: BTreeMap<UsedKind, UseTally>,
    pub missing: Vec<Used>,
}

impl Hindsight {
    /// Share of the things used that is still there; `None` if none were used.
    pub fn share(&self) -> Option<f64> {
        let sum = |of: fn(&UseTally) -> usize| self.kinds.values().map(of).sum::<usize>();
        let used = sum(|it| it.used);
        (used > 0).then(|| sum(|it| it.kept) as f64 / used as f64)
    }
}

/// The things before message `cut` that the agent used from there on.
pub fn used_later(source: &History, cut: usize) -> Vec<Used> {
    let replaced = replaced::expanded(source);
    // With a cut at or before a sealed compaction, the messages that it replaced are not before the cut.
    let replaced = replaced.filter(|(_, origins)| origins.is_sorted_by_key(|it| *it >= cut));
    let cut = replaced.as_ref().map_or(cut, |(_, origins)| origins.partition_point(|it| *it < cut));
    let source = &*scripts_expanded(replaced.as_ref().map_or(source, |it| &it.0));
    let cwd = source.meta.cwd.as_deref().unwrap_or_default();
    let (before, later) = source.messages().split_at(cut.min(source.messages().len()));
    let mut first = Vocabulary::new(cwd);
    let mut commands: HashSet<String> = HashSet::default();
    for message in before {
        first.message(message, true);
        commands.extend(message.calls().flat_map(commands_of));
    }
    let contents = contents(before, cwd);
    let mut names: HashMap<&str, usize> = HashMap::default();
    for path in &first.paths {
        *names.entry(file_name(path)).or_default() += 1;
    }
    let mut out: Vec<Used> = Vec::new();
    let mut seen: HashSet<(UsedKind, String)> = HashSet::default();
    let mut shown = Vocabulary::new(cwd);
    for message in later {
        for call in message.calls() {
            let mut named = Vocabulary::new(cwd);
            strings(call, &mut |it| named.text(it));
            named.paths = paths_of(call, cwd);
            for content in edited(call, cwd).filter_map(|it| contents.get(&it)) {
                named.words.retain(|it| !content.words.contains(it));
                named.values.retain(|it| !content.values.contains(it));
            }
            let paths = named.paths.intersection(&first.paths).filter(|it| !shown.paths.contains(*it));
            let symbols = named.words.intersection(&first.defined).filter(|it| !shown.words.contains(*it));
            let values = named.values.intersection(&first.values).filter(|it| !shown.values.contains(*it));
            let ran = commands_of(call).filter(|it| commands.contains(it));
            let found = (paths.map(|it| (UsedKind::Path, it.clone())))
                .chain(symbols.map(|it| (UsedKind::Symbol, it.clone())))
                .chain(values.map(|it| (UsedKind::Value, it.clone())))
                .chain(ran.map(|it| (UsedKind::Command, it)));
            let mut found: Vec<(UsedKind, String)> = found.filter(|it| !seen.contains(it)).collect();
            found.sort();
            for (kind, text) in found {
                let name = Some(file_name(&text))
                    .filter(|it| kind == UsedKind::Path && it.len() >= SHORTEST && names.get(it) == Some(&1));
                out.push(Used { kind, name: name.map(str::to_owned), text: text.clone() });
                seen.insert((kind, text));
            }
        }
        // Things that are shown again need not be remembered.
        shown.message(message, false);
    }
    out.extend(errors(source, before, later));
    out
}

/// The known content of each file that was read, written or edited.
fn contents<'a>(messages: &[Message], cwd: &'a str) -> HashMap<String, Vocabulary<'a>> {
    let mut out: HashMap<String, Vocabulary> = HashMap::default();
    let mut asked: HashMap<&str, Vec<String>> = HashMap::default();
    for message in messages {
        for part in &message.parts {
            let (paths, text): (Vec<String>, &mut dyn FnMut(&mut Vocabulary)) = match part {
                Part::Call(call) => {
                    let named = tools::actions(call).into_iter().filter_map(|it| file_of(&it, cwd));
                    asked.insert(&call.id, named.collect());
                    (edited(call, cwd).collect(), &mut |it| strings(call, &mut |text| it.text(text)))
                }
                Part::Output(output) => {
                    let paths = asked.remove(&*output.id).unwrap_or_default();
                    (paths, &mut |it| it.text(output.text.as_str()))
                }
                Part::Text(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => continue,
            };
            for path in paths {
                text(out.entry(path).or_insert_with(|| Vocabulary::new(cwd)));
            }
        }
    }
    out
}

fn edited(call: &Call, cwd: &str) -> impl Iterator<Item = String> {
    let written = |it: &Action| matches!(it.meaning, Meaning::Edit | Meaning::Create);
    let edits = tools::actions(call).into_iter().filter(written);
    edits.filter_map(move |it| file_of(&it, cwd))
}

fn file_of(action: &Action, cwd: &str) -> Option<String> {
    action.path.as_ref().map(|it| done::canonical(it, action.dir.as_deref(), cwd))
}

/// Minimum bytes of a file name that identifies the file by itself.
const SHORTEST: usize = 5;

/// How many of the things `used` a history holds.
pub fn hindsight(used: &[Used], compacted: &History) -> Hindsight {
    let compacted = &*scripts_expanded(compacted);
    let mut held = Vocabulary::new(compacted.meta.cwd.as_deref().unwrap_or_default());
    let mut text = String::new();
    for message in compacted.messages() {
        held.message(message, true);
        for part in &message.parts {
            match part {
                Part::Text(it) => text.push_str(&normal(it.as_str())),
                Part::Output(it) => text.push_str(&normal(it.text.as_str())),
                Part::Call(it) => strings(it, &mut |it| {
                    text.push_str(&normal(it));
                    text.push('\n');
                }),
                Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {}
            }
            text.push('\n');
        }
    }
    let index = Index::new(compacted.messages(), &Default::default(), used.len());
    let mut out = Hindsight::default();
    for it in used {
        let is_there = match it.kind {
            UsedKind::Path => {
                it.name.as_ref().is_some_and(|it| held.names.contains(it.as_str())) || held.has_path(&it.text)
            }
            UsedKind::Symbol => held.words.contains(&it.text),
            UsedKind::Value => held.has_value(&it.text),
            UsedKind::Command => has_command(&text, &it.text),
            UsedKind::Error => index.lines_with(&tokens(&it.text), ERROR_SHARE).next().is_some(),
        };
        let tally = out.kinds.entry(it.kind).or_default();
        tally.used += 1;
        tally.kept += usize::from(is_there);
        if !is_there {
            out.missing.push(it.clone());
        }
    }
    out
}

/// Share of an error's words in a line from which on the line has that error.
const ERROR_SHARE: f64 = 0.9;

/// Errors from before the cut that occur again after it.
fn errors(source: &History, before: &[Message], later: &[Message]) -> Vec<Used> {
    let first = History::new(before.to_vec(), source.meta.clone());
    let mut signatures: Vec<String> = done::probes(&first)
        .into_iter()
        .filter_map(|it| if let Fact::Error { signature, .. } = it.fact { Some(signature) } else { None })
        .collect();
    signatures.dedup();
    let index = Index::new(later, &Default::default(), signatures.len());
    let again = |it: &String| index.lines_with(&tokens(it), ERROR_SHARE).next().is_some();
    let errors = signatures.into_iter().filter(again);
    errors.map(|text| Used { kind: UsedKind::Error, text, name: None }).collect()
}

/// Whether a text contains a command, whole or cut by an ellipsis after 40 characters.
fn has_command(text: &str, command: &str) -> bool {
    /// Characters that identify a command.
    const ENOUGH: usize = 40;
    let start = clip(command, ENOUGH);
    text.match_indices(start).any(|(at, _)| {
        let rest = &text[at..];
        let shared = rest.bytes().zip(command.bytes()).take_while(|(a, b)| a == b).count();
        shared == command.len()
            || rest.get(shared..).is_some_and(|it| it.trim_start_matches(['`', ' ']).starts_with(['…', '.']))
    })
}

fn commands_of(call: &Call) -> impl Iterator<Item = String> {
    tools::actions(call)
        .into_iter()
        .filter_map(|it| it.command)
        .map(|it| command_key(&it))
        .filter(|it| it.len() > 3 && !only_looks(it))
}

/// Paths that a call works on: its arguments, and those in its commands.
fn paths_of(call: &Call, cwd: &str) -> HashSet<String> {
    let mut out = HashSet::default();
    for action in tools::actions(call) {
        let dir = action.dir.as_deref();
        let in_command = action.command.iter().flat_map(|it| tools::programs(it)).flat_map(|it| it.words);
        let plain = |it: &String| !it.contains(|c: char| c.is_whitespace() || "|:*$()[]{}\\\"^".contains(c));
        let in_command =
            in_command.filter(|it| it.contains('/') && looks_like_path(it) && plain(it) && !is_revision(it));
        let all = action.path.iter().chain(&action.to).cloned().chain(in_command);
        let all = all.map(|it| done::canonical(it.trim_end_matches('/'), dir, cwd));
        out.extend(all.filter(|it| it.len() >= SHORTEST && !it.starts_with("/dev/")));
    }
    out
}

/// Whether a word is a git revision: `origin/main`, `main..HEAD`.
fn is_revision(word: &str) -> bool {
    ["origin/", "upstream/", "refs/"].iter().any(|it| word.starts_with(it))
        || word.trim_start_matches("../").contains("..")
}

fn file_name(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// What a text mentions, collected in one pass.
#[derive(Default)]
struct Vocabulary<'a> {
    cwd: &'a str,
    /// Identifiers of code.
    words: HashSet<String>,
    /// Those that follow a keyword such as `fn` or `class`.
    defined: HashSet<String>,
    paths: HashSet<String>,
    /// Last components of the paths.
    names: HashSet<String>,
    values: HashSet<String>,
}

impl<'a> Vocabulary<'a> {
    fn new(cwd: &'a str) -> Self {
        Self { cwd, ..Self::default() }
    }

    /// Adds what a message shows. `own`: also what the agent itself says and asks for in it.
    fn message(&mut self, message: &Message, own: bool) {
        for part in &message.parts {
            match part {
                Part::Text(it) if own || message.role == history::Role::User => self.text(it.as_str()),
                Part::Output(it) => self.text(it.text.as_str()),
                Part::Call(it) if own => self.call(it),
                Part::Text(_) | Part::Call(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {}
            }
        }
    }

    fn call(&mut self, call: &Call) {
        paths_of(call, self.cwd).iter().for_each(|it| self.path(it));
        strings(call, &mut |it| self.text(it));
    }

    /// Adds a path and the directories above it.
    fn path(&mut self, path: &str) {
        /// Maximum depth of directories.
        const DEEPEST: usize = 24;
        let path = path.trim_end_matches('/');
        if path.len() < SHORTEST || !self.paths.insert(path.to_owned()) {
            return;
        }
        self.names.insert(file_name(path).to_owned());
        for (at, _) in path.match_indices('/').take(DEEPEST).filter(|it| it.0 >= SHORTEST) {
            self.paths.insert(path[..at].to_owned());
        }
    }

    fn text(&mut self, text: &str) {
        let mut before = "";
        for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|it| !it.is_empty()) {
            if is_symbol(word) {
                if program_words::DEFINING.contains(&before) {
                    self.defined.insert(word.to_owned());
                }
                if !self.words.contains(word) {
                    self.words.insert(word.to_owned());
                }
            }
            before = word;
        }
        self.methods(text);
        let apart = |c: char| c.is_whitespace() || "\"'`<>()[]{}|,;*，。、：".contains(c);
        let ends = ['.', ':', '!', '?', '=', '\\'];
        for word in text.split(apart).map(|it| it.trim_start_matches(&ends[1..]).trim_end_matches(ends)) {
            if word.len() < 3 || word.len() > LONGEST {
                continue;
            }
            self.value(word);
            for piece in word.split(['=', ':']).filter(|it| !it.is_empty()) {
                if looks_like_path(piece) {
                    self.path(&done::canonical(piece, None, self.cwd));
                }
                if piece.len() < word.len() {
                    self.value(piece);
                }
            }
        }
        self.routes(text);
    }

    /// Adds paths with brackets, as web routers have them: `app/[id]/page.tsx`, `app/(tabs)/index.tsx`.
    fn routes(&mut self, text: &str) {
        let apart = |c: char| c.is_whitespace() || "\"'`<>{}|,;*，。、：".contains(c);
        for word in
            text.split(apart).filter(|it| it.len() <= LONGEST && (it.contains("/[") || it.contains("/(")))
        {
            // A link's target follows its text and `](`; a compiler's `(line,column)` follows a path.
            let word = word.rsplit("](").next().unwrap_or(word).trim_start_matches(['[', '(']);
            let end = word.match_indices(['(', ':']).find(|it| !word[..it.0].ends_with('/')).map(|it| it.0);
            let mut path = word[..end.unwrap_or(word.len())].trim_end_matches(['.', '!', '?', '=', '\\']);
            while path.ends_with([']', ')'])
                && path.matches([']', ')']).count() > path.matches(['[', '(']).count()
            {
                path = &path[..path.len() - 1];
            }
            if looks_like_path(path) {
                self.path(&done::canonical(path, None, self.cwd));
            }
        }
    }

    /// Adds Go's methods, whose names follow their receiver: `func (it *T) Name(`.
    fn methods(&mut self, text: &str) {
        for rest in text.split("func (").skip(1) {
            let name = clip(rest, 200).split_once(") ").map_or("", |it| it.1);
            let name = name.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
            if is_symbol(name) {
                self.defined.insert(name.to_owned());
            }
        }
    }

    fn value(&mut self, word: &str) {
        let numbered = |it: &str| (2..=6).contains(&it.len()) && it.bytes().all(|it| it.is_ascii_digit());
        let uuid =
            |it: &str| it.len() == 36 && it.split('-').count() == 5 && it.get(..8).is_some_and(is_hash);
        let local =
            |it: &str| it.split_once(':').is_some_and(|(host, port)| host == "localhost" && numbered(port));
        let version = |it: &str| is_version(it) && (it.starts_with('v') || it.matches('.').count() > 1);
        if is_hash(word)
            || uuid(word)
            || local(word)
            || version(word)
            || word.strip_prefix('#').is_some_and(numbered)
            || url_at(word, 0).is_some()
        {
            self.values.insert(word.to_owned());
        }
    }

    /// Whether a path, or one that ends with it, is held. A line may name a directory once and then only
    /// paths below it, so the end of the path counts, too.
    fn has_path(&self, path: &str) -> bool {
        let mut rest = path;
        loop {
            let ends = |it: &String| it.strip_suffix(rest).is_some_and(|it| it.ends_with('/'));
            if self.paths.contains(rest) || self.paths.iter().any(ends) {
                return true;
            }
            match rest.split_once('/') {
                Some((_, below)) if below.contains('/') => rest = below,
                Some(_) | None => return false,
            }
        }
    }

    /// Whether a value is held; of a hash, seven digits are enough.
    fn has_value(&self, value: &str) -> bool {
        self.values.contains(value)
            || is_hash(value)
                && self
                    .values
                    .iter()
                    .any(|it| it.starts_with(value) || is_hash(it) && value.starts_with(it.as_str()))
    }
}

/// Maximum bytes of a word; a longer one is data.
const LONGEST: usize = 400;

/// Whether a word is a name of code, not of a language: it has an underscore or capitals inside.
fn is_symbol(word: &str) -> bool {
    word.len() >= 5
        && word.len() <= 80
        && !word.starts_with(|c: char| c.is_ascii_digit())
        && (word.trim_matches('_').contains('_')
            || word.chars().skip(1).any(char::is_uppercase) && word.chars().any(char::is_lowercase))
}
