//! Statements of the compacted history that nothing in the source supports.

mod rows;

use std::borrow::Cow;

use foldhash::{HashMap, HashSet};
use serde::Serialize;

use super::index::{Index, Line};
use super::phrases::looks_like_path;
use super::survive::states;
use crate::cues;
use crate::probe::{Fact, Probe};
use crate::program_words;
use crate::source::done::canonical;
use crate::source::error_line::plain;
use crate::source::git::renamed;
use crate::source::idents::is_hash;
use crate::source::said;
use crate::text::{Shape, clip, normal, strings, tokens, words, words_of};
use history::named;
use history::parallel;
use history::{Call, History, Message, Part, Role};
use rows::{NgramSet, hash};

named! {
    /// What kind of statement it is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Claim {
        /// A path that the source never names.
        Path = "path",
        /// A command that the source never names.
        Command = "command",
        /// A hash that the source never names.
        Hash = "hash",
        /// Words put into the user's mouth.
        Quote = "quote",
        /// A success that no command and nobody reported.
        Success = "success",
    }
}

/// A statement without support.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unsupported {
    pub claim: Claim,
    /// The path, command, hash, quote or phrase.
    pub text: String,
    /// The line it stands in.
    pub line: String,
    /// Index of its message in the compacted history.
    pub message: usize,
}

/// Maximum number of different claims that are looked up verbatim. A summary with more is not one of this source.
const LOOKED_UP: usize = 100;

/// A statement that needs support in the source.
enum Asked<'a> {
    Hash(&'a str),
    Path(&'a str),
    Command(&'a str),
    Quote(String),
    Success(Success, &'a str),
}

/// What a claim of success is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Success {
    Tests,
    Build,
    Shipped,
}

/// Statements in fresh lines that have no support in `source`.
pub(crate) fn unsupported<'p>(
    source: &History,
    probes: impl Iterator<Item = &'p Probe>,
    index: &Index,
) -> Vec<Unsupported> {
    let lines: Vec<&Line> = index.lines.iter().filter(|it| states(it)).collect();
    let asked: Vec<(&Line, Vec<Asked>)> = lines.into_iter().map(|it| (it, asked(it, index))).collect();
    if asked.iter().all(|it| it.1.is_empty()) {
        return Vec::new();
    }
    // The source is long and the claims are few: only what they need is looked for in it.
    let support = Support::new(source, probes, asked.iter().flat_map(|it| &it.1));
    let mut out: Vec<Unsupported> = Vec::new();
    for (line, asked) in &asked {
        for asked in asked {
            let (claim, text, holds) = match asked {
                Asked::Hash(it) => (Claim::Hash, *it, support.has_hash(it)),
                Asked::Path(it) => (Claim::Path, *it, support.has_path(it)),
                Asked::Command(it) => (Claim::Command, *it, support.all.has(whole_words(it))),
                Asked::Quote(it) => (Claim::Quote, it.as_str(), support.user.has(whole_words(it))),
                Asked::Success(what, it) => {
                    (Claim::Success, *it, support.succeeded(*what) || support.all.has(it))
                }
            };
            if !holds {
                out.push(Unsupported {
                    claim,
                    text: clip(text, 200).to_string(),
                    line: clip(&line.text, 300).to_string(),
                    message: line.message,
                });
            }
        }
    }
    // What the source has verbatim is supported, however oddly it is written.
    let texts: HashSet<String> = out.iter().map(|it| it.text.clone()).collect();
    if texts.len() <= LOOKED_UP {
        let mut known: HashMap<String, bool> = HashMap::default();
        out.retain(|it| {
            it.claim == Claim::Quote || !*known.entry(it.text.clone()).or_insert_with(|| stands(source, it))
        });
    }
    out
}

fn asked<'a>(line: &'a Line, index: &Index) -> Vec<Asked<'a>> {
    let mut out = Vec::new();
    for word in words(&line.text) {
        let text = word.text.trim_end_matches([',', ';']);
        let next = &line.text[word.at + word.text.len()..];
        if next.starts_with('…') || next.starts_with("...") {
            continue;
        }
        if is_hash(text) {
            out.push(Asked::Hash(text));
        } else if is_file(text) {
            out.push(Asked::Path(text));
        }
    }
    out.extend(code_spans(&line.text).into_iter().filter(|it| is_command(it)).map(Asked::Command));
    out.extend(quotes(line, index).into_iter().map(Asked::Quote));
    out.extend(success(&line.text).map(|it| Asked::Success(it, &line.text)));
    out
}

/// Whether the claim (for a success: the whole line) occurs in a text of the source.
fn stands(source: &History, it: &Unsupported) -> bool {
    let line = it.line.trim_start_matches(['-', '*', ' ']);
    let line = line.rfind(" [#").map_or(line, |at| &line[..at]);
    let needle = if it.claim == Claim::Success { line } else { it.text.as_str() };
    let needle = memchr::memmem::Finder::new(needle);
    let found = |text: &str| needle.find(text.as_bytes()).is_some();
    let asked = |call: &Call| {
        let mut holds = found(call.input.as_str());
        strings(call, &mut |it| holds |= found(it));
        holds
    };
    source.messages().iter().flat_map(|it| &it.parts).any(|part| match part {
        Part::Text(it) => found(it.as_str()),
        Part::Call(it) => asked(it),
        Part::Output(it) => found(&plain(it.text.as_str())),
        Part::Reasoning(it) => found(it.text.as_str()),
        Part::Media(_) | Part::Opaque(_) => false,
    })
}

/// The directories below the working directory in which the shell was, relative to it.
fn shell_dirs(source: &History) -> Vec<String> {
    let cwd = source.meta.cwd.as_deref().unwrap_or_default();
    let stood = source.meta.shell_dirs.iter().map(|it| canonical(&it.1, None, cwd));
    let below = stood.filter(|it| !it.starts_with('/') && it.get(1..2) != Some(":"));
    let dirs: std::collections::BTreeSet<String> = below.collect();
    dirs.into_iter().take(8).collect()
}

/// The directories that commands entered most often, outside the working directory.
fn entered_dirs(source: &History) -> Vec<String> {
    const MOST: usize = 24;
    let ends = |it: char| it.is_whitespace() || "\"'\\;&|)".contains(it);
    let mut count: HashMap<String, usize> = HashMap::default();
    for call in source.messages().iter().flat_map(|it| it.calls()) {
        let entered = call.input.as_str().split("cd ").skip(1).filter(|it| it.starts_with(['/', '~']));
        for dir in entered.filter_map(|it| it.split(ends).next()) {
            *count.entry(dir.trim_end_matches('/').to_owned()).or_default() += 1;
        }
    }
    let mut dirs: Vec<(String, usize)> = count.into_iter().collect();
    dirs.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    dirs.into_iter().take(MOST).map(|it| it.0).collect()
}

/// What the source says about the statements.
#[derive(Clone, Default)]
struct Support {
    /// Hashes of the paths that are asked for, and whether they were found.
    paths: HashMap<u64, bool>,
    /// Hex words, sorted, so that an abbreviated hash finds its full form. Empty unless hashes are asked for.
    hashes: Vec<String>,
    asks_hashes: bool,
    /// N-grams in anything said, run or printed.
    all: NgramSet,
    /// N-grams in what the user said.
    user: NgramSet,
    cwd: String,
    /// Where the shell was below `cwd`, relative to it.
    shell_dirs: Vec<String>,
    /// Where commands ran outside `cwd`.
    entered: Vec<String>,
    tests_passed: bool,
    built: bool,
}

impl Support {
    fn new<'p, 'a>(
        source: &History,
        probes: impl Iterator<Item = &'p Probe>,
        asked: impl Iterator<Item = &'a Asked<'a>>,
    ) -> Self {
        let mut support = Self {
            cwd: source.meta.cwd.as_deref().unwrap_or_default().replace('\\', "/"),
            shell_dirs: shell_dirs(source),
            entered: entered_dirs(source),
            ..Self::default()
        };
        for asked in asked {
            match asked {
                Asked::Hash(_) => support.asks_hashes = true,
                Asked::Path(it) => {
                    for form in support.forms(it) {
                        let joined = joined(&form).into_iter().flatten().map(hash);
                        support.paths.extend(joined.chain([hash(&form)]).map(|it| (it, false)));
                    }
                }
                Asked::Command(it) => support.all.ask(whole_words(it)),
                Asked::Quote(it) => support.user.ask(whole_words(it)),
                Asked::Success(what, it) => {
                    support.all.ask(it);
                    if *what == Success::Shipped {
                        cues::SHIPPING.iter().for_each(|it| support.all.ask(it));
                    }
                }
            }
        }
        let (first, second) = source.messages().split_at(source.messages().len() / 2);
        let asked = support.clone();
        let other_half = || {
            let mut rest = asked.clone();
            rest.read(second);
            rest
        };
        let (rest, ()) = parallel::join(other_half, || support.read(first));
        support.join(rest);
        said::answers_to_tools(source).for_each(|it| support.user.find(it.text.as_str()));
        let mut seen = HashSet::default();
        let cwd = support.cwd.clone();
        support.find_path(&cwd, &mut seen);
        // The messages of turns that were rolled back are gone, but not their changes.
        for path in source.meta.rolled_back.iter().flat_map(|it| &it.changed) {
            support.find_path(path, &mut seen);
        }
        for (_, dir) in &source.meta.shell_dirs {
            support.find_path(dir, &mut seen);
        }
        for probe in probes {
            match &probe.fact {
                Fact::Command { command, outcome, .. } => {
                    support.all.find(command);
                    if outcome.ok {
                        let tokens = tokens(&command.replace([':', '/', '-'], " "));
                        support.tests_passed |=
                            tokens.iter().any(|it| program_words::TESTING.contains(&it.as_str()));
                        support.built |=
                            tokens.iter().any(|it| program_words::BUILDING.contains(&it.as_str()));
                    }
                }
                Fact::File { path, .. } => support.find_path(path, &mut seen),
                _ => {}
            }
        }
        support.hashes.sort_unstable();
        support.hashes.dedup();
        support
    }

    /// Marks what messages of the source have.
    fn read(&mut self, messages: &[Message]) {
        let mut seen = HashSet::default();
        for message in messages {
            for part in &message.parts {
                let Some(text) = part.text() else { continue };
                let user = matches!(part, Part::Text(_)) && message.role == Role::User;
                // Arguments are JSON: unescape them, or `\n` would become part of words.
                let text = match part {
                    Part::Call(_) | Part::Opaque(_) => Cow::Owned(
                        text.as_str().replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\""),
                    ),
                    _ => Cow::Borrowed(text.as_str()),
                };
                self.find(&text, user, &mut seen);
            }
        }
    }

    /// Marks what another one, made for the same statements, found.
    fn join(&mut self, other: Self) {
        self.paths.extend(other.paths.into_iter().filter(|it| it.1));
        self.all.join(other.all);
        self.user.join(other.user);
        self.hashes.extend(other.hashes);
    }

    /// Marks what a text of the source has.
    fn find(&mut self, text: &str, user: bool, seen: &mut HashSet<u64>) {
        self.all.find(text);
        if user {
            self.user.find(text);
        }
        if self.paths.is_empty() && !self.asks_hashes {
            return;
        }
        if self.asks_hashes {
            for word in words_of(text) {
                let hexes = word.text.split(|c: char| !c.is_ascii_hexdigit());
                self.hashes.extend(hexes.filter(|it| is_hash(it)).map(str::to_owned));
            }
        }
        let names = text.contains(" => ").then(|| text.lines().filter_map(renamed));
        for (path, _) in names.into_iter().flatten().flatten() {
            self.find_path(&path, seen);
        }
        // A path has one of these characters, and no word contains a space.
        let (bytes, mut at) = (text.as_bytes(), 0);
        while let Some(sign) = memchr::memchr3(b'.', b'/', b'\\', &bytes[at..]) {
            let sign = at + sign;
            let start =
                bytes[at..sign].iter().rposition(u8::is_ascii_whitespace).map_or(at, |it| at + it + 1);
            at = bytes[sign..].iter().position(u8::is_ascii_whitespace).map_or(bytes.len(), |it| sign + it);
            for word in words_of(&text[start..at]) {
                if word.text.contains(['/', '\\']) || looks_like_path(word.text) {
                    self.find_path(word.text, seen);
                }
            }
        }
    }

    /// Marks all runs of a path's components: the file name, a directory above it, the path below a root.
    fn find_path(&mut self, path: &str, seen: &mut HashSet<u64>) {
        // Compilers write `path:line:column`, git `a/path`, patches `path)`.
        let path =
            path.split([':', '=', '#', '@']).find(|it| it.contains('/') || it.contains('.')).unwrap_or(path);
        if !seen.insert(hash(path)) {
            return;
        }
        let mut path = path.replace('\\', "/");
        if path.starts_with("../") {
            path = canonical(&path, Some(&self.cwd), "");
        }
        let parts: Vec<&str> = path.split('/').filter(|it| !it.is_empty() && *it != ".").take(24).collect();
        for from in 0..parts.len() {
            let mut stretch = String::new();
            for part in &parts[from..] {
                if !stretch.is_empty() {
                    stretch.push('/');
                }
                stretch.push_str(part);
                if let Some(found) = self.paths.get_mut(&hash(&stretch)) {
                    *found = true;
                }
            }
        }
        // The shell may print paths relative to its directory, unless they begin with that directory.
        for dir in &self.shell_dirs {
            let below = !path.starts_with('/') && dir.split('/').next() != parts.first().copied();
            if below && let Some(found) = self.paths.get_mut(&hash(&canonical(&path, Some(dir), ""))) {
                *found = true;
            }
        }
    }

    /// The forms that a path may have in the source. Empty: every source has it.
    fn forms(&self, word: &str) -> Vec<String> {
        let word = word.split([':', '=', '#']).next().unwrap_or(word);
        let plain = word.replace('\\', "/");
        let below = canonical(&plain, None, &self.cwd);
        // `~/x` may be the x of any home directory.
        let home = plain.strip_prefix("~/").map(str::to_owned);
        let bare =
            |it: &str| it.split('/').filter(|it| !it.is_empty() && *it != ".").collect::<Vec<_>>().join("/");
        // A path printed in an entered directory: that directory, or its last components, may precede it.
        let printed = self.entered.iter().filter_map(|dir| {
            let starts = std::iter::once(0).chain(dir.match_indices('/').map(|it| it.0 + 1));
            let rest = starts.into_iter().find_map(|at| plain.strip_prefix(&dir[at..])?.strip_prefix('/'));
            // A bare name may be that of another file.
            rest.filter(|it| it.contains('/')).map(bare)
        });
        let forms: Vec<String> = [Some(bare(&plain)), Some(bare(&below)), home.as_deref().map(bare)]
            .into_iter()
            .flatten()
            .chain(printed)
            .collect();
        if forms.iter().any(String::is_empty) { Vec::new() } else { forms }
    }

    fn has_path(&self, word: &str) -> bool {
        let forms = self.forms(word);
        let found = |it: &str| self.paths.get(&hash(it)).copied().unwrap_or_default();
        forms.is_empty()
            || forms.iter().any(|it| found(it) || joined(it).is_some_and(|it| it.into_iter().all(found)))
    }

    fn has_hash(&self, word: &str) -> bool {
        let at = self.hashes.partition_point(|it| it.as_str() < word);
        self.hashes.get(at).is_some_and(|it| it.starts_with(word))
    }

    fn succeeded(&self, what: Success) -> bool {
        match what {
            Success::Tests => self.tests_passed,
            Success::Build => self.built,
            Success::Shipped => cues::SHIPPING.iter().any(|it| self.all.has(it)),
        }
    }
}

/// The directory of a path, and its last two components: with `src/api/users/` known, `users/a.py` is one in it.
fn joined(path: &str) -> Option<[&str; 2]> {
    let (dir, name) = path.rsplit_once('/')?;
    let parent = dir.rfind('/')? + 1;
    Some([dir, &path[parent..]]).filter(|_| !name.is_empty())
}

/// A text without an ellipsis at its end and the word that the ellipsis may have cut.
fn whole_words(text: &str) -> &str {
    match text.strip_suffix('…').or_else(|| text.strip_suffix("...")) {
        Some(cut) => cut.rsplit_once(' ').map_or(cut, |it| it.0),
        None => text,
    }
}

fn code_spans(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).filter(|it| !it.is_empty()).collect()
}

/// Whether a code span is a command line: it starts with a program that agents run, and has an argument.
fn is_command(span: &str) -> bool {
    let mut parts = span.split_whitespace();
    parts.next().is_some_and(|it| program_words::PROGRAMS.contains(&it)) && parts.next().is_some()
}

/// Whether a word names a file: it has an extension, or two slashes. `and/or` and `client/server` do not.
fn is_file(word: &str) -> bool {
    let path = word.split([':', '#']).next().unwrap_or(word);
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let ending = name.rsplit_once('.').is_some_and(|(stem, it)| {
        (1..=5).contains(&it.len())
            && !stem.is_empty()
            && it.chars().all(|c| c.is_ascii_alphanumeric())
            && it.starts_with(|c: char| c.is_ascii_lowercase())
    });
    let web = word.contains("://")
        || word.starts_with("www.")
        || [".com", ".org", ".io", ".dev", ".net"].iter().any(|it| name.ends_with(it));
    let deep = path.starts_with(['/', '~', '.']) && path.matches('/').count() >= 2;
    // Such as Node.js, Vue.js.
    let brand = name.ends_with(".js") && name.starts_with(char::is_uppercase) && !path.contains('/');
    let call = brand || name.contains('(') || path.contains('=');
    !web && !call
        && looks_like_path(path)
        && (ending && path.contains('/')
            || deep
            || ending && program_words::FILE_ENDINGS.iter().any(|it| name.ends_with(it)))
}

/// Quotations of at least four words that a line attributes to the user, except in a leading command.
fn quotes(line: &Line, index: &Index) -> Vec<String> {
    // The command that a line begins with.
    let command =
        line.text.trim_start_matches(['-', ' ']).strip_prefix('`').and_then(|it| it.split_once('`'));
    let said = command.map_or(line.text.as_str(), |it| it.1);
    let lower = said.to_lowercase();
    // "a user said", as in a forum or an issue, is not about the person who types here.
    let of_another = |before: &str| before.ends_with("a ") || before.ends_with("another ");
    let speaks =
        cues::SPEAKS.iter().any(|it| lower.match_indices(it).any(|(at, _)| !of_another(&lower[..at])));
    let under = || {
        index.labels(line).any(|label| cues::QUOTE_LABELS.iter().any(|it| label.to_lowercase().contains(it)))
    };
    let mut out = Vec::new();
    if line.shape == Shape::Quote && under() {
        out.push(normal(&line.text));
    }
    if speaks || under() {
        for (open, close) in [('"', '"'), ('“', '”'), ('「', '」')] {
            let mut rest = said;
            while let Some((before, after)) = rest.split_once(open) {
                let Some((inside, more)) = after.split_once(close) else { break };
                // The value of a JSON field is not a quotation.
                let field = rest.len() < said.len() && before.trim() == ":";
                if field {
                    rest = more;
                    continue;
                }
                if inside.split_whitespace().count() >= 4
                    || inside.chars().filter(|c| crate::text::is_dense(*c)).count() >= 6
                {
                    out.push(inside.to_string());
                }
                rest = more;
            }
        }
    }
    out
}

/// The success that a line claims, if it claims one.
fn success(line: &str) -> Option<Success> {
    // The command that a line begins with may search for the words: `make | grep 'build succeeded'`.
    let command = line.trim_start_matches(['-', ' ']).strip_prefix('`').and_then(|it| it.split_once('`'));
    let lower = command.map_or(line, |it| it.1).to_lowercase();
    let claims = |list: &[&str]| list.iter().any(|it| lower.contains(it));
    let claim = if claims(cues::TESTS_PASS) {
        Success::Tests
    } else if claims(cues::BUILDS) {
        Success::Build
    } else if claims(cues::SHIPPED) {
        Success::Shipped
    } else {
        return None;
    };
    let denied = tokens(line).iter().any(|it| cues::NEGATORS.contains(&it.as_str()));
    (!denied).then_some(claim)
}
