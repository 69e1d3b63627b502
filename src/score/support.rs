//! Statements of the compacted history that nothing in the source supports.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;

use super::cues;
use super::done::canonical;
use super::idents::is_hash;
use super::index::{Index, Line};
use super::phrases::looks_like_path;
use super::probe::{Fact, Probe};
use super::survive::states;
use super::text::{Shape, clip, normal, tokens, words};
use crate::history::{History, Part, Role};

/// What kind of statement it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Claim {
    /// A path that the source never names.
    Path,
    /// A command that the source never names.
    Command,
    /// A hash that the source never names.
    Hash,
    /// Words put into the user's mouth.
    Quote,
    /// A success that no command and nobody reported.
    Success,
}

impl Claim {
    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Command => "command",
            Self::Hash => "hash",
            Self::Quote => "quote",
            Self::Success => "success",
        }
    }
}

/// A statement without support.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unsupported {
    /// Its kind.
    pub claim: Claim,
    /// The path, command, hash, quote or phrase.
    pub text: String,
    /// The line it stands in.
    pub line: String,
    /// Number of its message in the compacted history.
    pub message: usize,
}

/// So many claims are looked up letter for letter. A summary with more is no summary of this source.
const LOOKED_UP: usize = 100;

/// What the source can support.
struct Support {
    paths: HashSet<u64>,
    /// Hex words, sorted, so that a shortened hash finds its whole.
    hashes: Vec<String>,
    /// Three words in a row of anything said, run or answered.
    all: HashSet<u64>,
    /// The same of the user's words.
    user: HashSet<u64>,
    cwd: String,
    tests_passed: bool,
    built: bool,
}

/// Statements in fresh lines that have no support in `source`.
pub(super) fn unsupported(source: &History, probes: &[Probe], index: &Index) -> Vec<Unsupported> {
    if !index.lines.iter().any(states) {
        return Vec::new();
    }
    let support = Support::new(source, probes);
    let mut out: Vec<Unsupported> = Vec::new();
    for line in index.lines.iter().filter(|it| states(it)) {
        let mut say = |claim: Claim, text: &str| {
            out.push(Unsupported {
                claim,
                text: clip(text, 200).to_string(),
                line: clip(&line.text, 300).to_string(),
                message: line.message,
            });
        };
        let spans = code_spans(&line.text);
        for word in words(&line.text) {
            let text = word.text.trim_end_matches([',', ';']);
            let next = &line.text[word.at + word.text.len()..];
            if next.starts_with('…') || next.starts_with("...") {
                continue;
            }
            if is_hash(text) && !support.has_hash(text) {
                say(Claim::Hash, text);
            } else if is_file(text) && !support.has_path(text) {
                say(Claim::Path, text);
            }
        }
        for span in spans.iter().filter(|it| is_command(it)) {
            if !support.has(&support.all, whole_words(span)) {
                say(Claim::Command, span);
            }
        }
        for quote in quotes(line, index) {
            if !support.has(&support.user, whole_words(&quote)) {
                say(Claim::Quote, &quote);
            }
        }
        if let Some((phrase, holds)) = success(&line.text, &support)
            && !holds
            && !support.has(&support.all, &line.text)
        {
            say(Claim::Success, phrase);
        }
    }
    // What stands in the source letter for letter is supported, however oddly it is written.
    if out.len() <= LOOKED_UP {
        out.retain(|it| it.claim == Claim::Quote || !stands(source, it));
    }
    out
}

/// Whether the claim, or for a success the whole line, stands in a text of the source.
fn stands(source: &History, it: &Unsupported) -> bool {
    let line = it.line.trim_start_matches(['-', '*', ' ']);
    let line = line.rfind(" [#").map_or(line, |at| &line[..at]);
    let needle = if it.claim == Claim::Success { line } else { it.text.as_str() };
    let found = |text: &str| text.contains(needle);
    source.messages().iter().flat_map(|it| &it.parts).any(|part| match part {
        Part::Text(it) => found(it.as_str()),
        Part::Call(it) => found(it.input.as_str()),
        Part::Output(it) => found(it.text.as_str()),
        Part::Reasoning(it) => found(it.text.as_str()),
        Part::Media(_) | Part::Opaque(_) => false,
    })
}

impl Support {
    fn new(source: &History, probes: &[Probe]) -> Self {
        let mut support = Self {
            paths: HashSet::new(),
            hashes: Vec::new(),
            all: HashSet::new(),
            user: HashSet::new(),
            cwd: source.meta.cwd.as_deref().unwrap_or_default().replace('\\', "/"),
            tests_passed: false,
            built: false,
        };
        let mut seen = HashSet::new();
        let cwd = support.cwd.clone();
        support.add_path(&cwd, &mut seen);
        for message in source.messages() {
            for part in &message.parts {
                let (text, user) = match part {
                    Part::Text(it) => (it.as_str(), message.role == Role::User),
                    Part::Reasoning(it) => (it.text.as_str(), false),
                    // Arguments are JSON: take its escapes out, or line breaks grow onto words.
                    Part::Call(it) => (it.input.as_str(), false),
                    Part::Output(it) => (it.text.as_str(), false),
                    Part::Opaque(it) => (it.raw.as_str(), false),
                    Part::Media(_) => continue,
                };
                let unescaped;
                let text = if matches!(part, Part::Call(_) | Part::Opaque(_)) {
                    unescaped = text.replace("\\n", "\n").replace("\\t", "\t").replace("\\\"", "\"");
                    unescaped.as_str()
                } else {
                    text
                };
                support.add(text, user, &mut seen);
            }
        }
        for probe in probes {
            match &probe.fact {
                Fact::Command { command, outcome } => {
                    shingles(command, |it| {
                        support.all.insert(it);
                    });
                    if outcome.ok {
                        let tokens = tokens(&command.replace([':', '/', '-'], " "));
                        support.tests_passed |= tokens.iter().any(|it| cues::TESTING.contains(&it.as_str()));
                        support.built |= tokens.iter().any(|it| cues::BUILDING.contains(&it.as_str()));
                    }
                }
                Fact::File { path, .. } => support.add_path(path, &mut seen),
                Fact::Rule { .. }
                | Fact::Error { .. }
                | Fact::Plan { .. }
                | Fact::Decision { .. }
                | Fact::Identifier { .. }
                | Fact::Tried { .. }
                | Fact::Words { .. } => {}
            }
        }
        support.hashes.sort_unstable();
        support.hashes.dedup();
        support
    }

    fn add(&mut self, text: &str, user: bool, seen: &mut HashSet<u64>) {
        shingles(text, |it| {
            self.all.insert(it);
            if user {
                self.user.insert(it);
            }
        });
        for word in words(text) {
            if word.text.contains(['/', '\\']) || looks_like_path(word.text) {
                self.add_path(word.text, seen);
            }
            for hex in word.text.split(|c: char| !c.is_ascii_hexdigit()).filter(|it| it.len() >= 7) {
                if is_hash(hex) {
                    self.hashes.push(hex.to_string());
                }
            }
        }
    }

    /// A path supports every stretch of its components: the file name, a directory above it, the path below a root.
    fn add_path(&mut self, path: &str, seen: &mut HashSet<u64>) {
        // Compilers write `path:line:column`, git `a/path`, patches `path)`.
        let path =
            path.split([':', '=', '#', '@']).find(|it| it.contains('/') || it.contains('.')).unwrap_or(path);
        if !seen.insert(hash(path)) {
            return;
        }
        let path = path.replace('\\', "/");
        let parts: Vec<&str> = path.split('/').filter(|it| !it.is_empty() && *it != ".").take(24).collect();
        for from in 0..parts.len() {
            let mut stretch = String::new();
            for part in &parts[from..] {
                if !stretch.is_empty() {
                    stretch.push('/');
                }
                stretch.push_str(part);
                self.paths.insert(hash(&stretch));
            }
        }
    }

    fn has_path(&self, word: &str) -> bool {
        let word = word.split([':', '=', '#']).next().unwrap_or(word);
        let known = |it: &str| {
            let bare: Vec<&str> = it.split('/').filter(|it| !it.is_empty() && *it != ".").collect();
            bare.is_empty() || self.paths.contains(&hash(&bare.join("/")))
        };
        let plain = word.replace('\\', "/");
        let below = canonical(&plain, None, &self.cwd);
        // `~/x` is some home's x.
        known(&plain) || known(&below) || plain.strip_prefix("~/").is_some_and(known)
    }

    fn has_hash(&self, word: &str) -> bool {
        let at = self.hashes.partition_point(|it| it.as_str() < word);
        self.hashes.get(at).is_some_and(|it| it.starts_with(word))
    }

    /// Whether every three words in a row of `text` stand so in the source.
    fn has(&self, within: &HashSet<u64>, text: &str) -> bool {
        let mut holds = true;
        shingles(text, |it| holds &= within.contains(&it));
        // Shorter texts: their words stand in the source as one or two.
        holds
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Hashes of every one, two and three words in a row; of a text to be looked up, only the longest matter, and the
/// shorter ones are there whenever they are.
fn shingles(text: &str, mut take: impl FnMut(u64)) {
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|it| !it.is_empty()).collect();
    for at in 0..words.len() {
        let mut hasher = DefaultHasher::new();
        for word in words[at..].iter().take(3) {
            word.hash(&mut hasher);
            take(hasher.finish());
        }
    }
}

/// A text without an ellipsis at its end and the word that it may have cut.
fn whole_words(text: &str) -> &str {
    match text.strip_suffix('…').or_else(|| text.strip_suffix("...")) {
        Some(cut) => cut.rsplit_once(' ').map_or(cut, |it| it.0),
        None => text,
    }
}

/// Texts between backticks.
fn code_spans(line: &str) -> Vec<&str> {
    line.split('`').skip(1).step_by(2).filter(|it| !it.is_empty()).collect()
}

/// Whether a code span is a command line: it starts with a program that agents run, and has an argument.
fn is_command(span: &str) -> bool {
    const PROGRAMS: [&str; 40] = [
        "git",
        "gh",
        "npm",
        "npx",
        "pnpm",
        "yarn",
        "bun",
        "bunx",
        "node",
        "deno",
        "cargo",
        "rustc",
        "go",
        "python",
        "python3",
        "pip",
        "pip3",
        "uv",
        "pytest",
        "make",
        "docker",
        "kubectl",
        "terraform",
        "curl",
        "wget",
        "mvn",
        "gradle",
        "dotnet",
        "swift",
        "ruby",
        "bundle",
        "rake",
        "php",
        "composer",
        "mix",
        "tsc",
        "eslint",
        "ruff",
        "just",
        "bash",
    ];
    let mut parts = span.split_whitespace();
    parts.next().is_some_and(|it| PROGRAMS.contains(&it)) && parts.next().is_some()
}

/// A word that names a file: it has an ending, or two slashes. `and/or` and `client/server` do not.
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
    // Node.js, Vue.js.
    let brand = name.ends_with(".js") && name.starts_with(char::is_uppercase) && !path.contains('/');
    let call = brand || name.contains('(') || path.contains('=');
    !web && !call
        && looks_like_path(path)
        && (ending && path.contains('/')
            || deep
            || ending && KNOWN_ENDINGS.iter().any(|it| name.ends_with(it)))
}

/// Endings that make a bare name a file rather than `object.member` or `e.g`.
const KNOWN_ENDINGS: [&str; 24] = [
    ".rs", ".ts", ".tsx", ".js", ".jsx", ".py", ".go", ".md", ".json", ".toml", ".yaml", ".yml", ".html",
    ".css", ".sh", ".java", ".kt", ".swift", ".cpp", ".hpp", ".rb", ".php", ".sql", ".txt",
];

/// Quotations of at least four words that a line puts into the user's mouth.
fn quotes(line: &Line, index: &Index) -> Vec<String> {
    let lower = line.text.to_lowercase();
    let speaks = [
        "user said",
        "user asked",
        "user says",
        "user wants",
        "user wrote",
        "user told",
        "user:",
        "you said",
        "you asked",
        "用户说",
        "用戶說",
        "ユーザーは",
        "ユーザー：",
    ]
    .iter()
    .any(|it| lower.contains(it));
    let under = || {
        let heads = [
            "user message",
            "user's word",
            "user said",
            "user quote",
            "verbatim",
            "用户原话",
            "ユーザーの発言",
        ];
        index.labels(line).any(|label| heads.iter().any(|it| label.to_lowercase().contains(it)))
    };
    let mut out = Vec::new();
    if line.shape == Shape::Quote && under() {
        out.push(normal(&line.text));
    }
    if speaks || under() {
        for (open, close) in [('"', '"'), ('“', '”'), ('「', '」')] {
            let mut rest = line.text.as_str();
            while let Some((_, after)) = rest.split_once(open) {
                let Some((inside, more)) = after.split_once(close) else { break };
                if inside.split_whitespace().count() >= 4
                    || inside.chars().filter(|c| super::text::is_dense(*c)).count() >= 6
                {
                    out.push(inside.to_string());
                }
                rest = more;
            }
        }
    }
    out
}

/// A claim that all is well, and whether some command ended so.
fn success<'a>(line: &'a str, support: &Support) -> Option<(&'a str, bool)> {
    let lower = line.to_lowercase();
    let tests = [
        "all tests pass",
        "tests pass",
        "tests now pass",
        "tests are passing",
        "tests are green",
        "test suite passes",
        "测试通过",
        "测试全部通过",
        "測試通過",
        "テストは成功",
        "テストが通",
        "テストはすべて",
    ];
    let builds = [
        "build succeeds",
        "build succeeded",
        "build passes",
        "build is green",
        "builds successfully",
        "compiles cleanly",
        "构建成功",
        "ビルド成功",
    ];
    let shipped =
        ["deployed to", "successfully deployed", "was deployed", "released to", "已部署", "デプロイ済"];
    let denied = cues::NEGATORS.iter().any(|it| tokens(line).iter().any(|word| word == it));
    if denied {
        None
    } else if tests.iter().any(|it| lower.contains(it)) {
        Some((line, support.tests_passed))
    } else if builds.iter().any(|it| lower.contains(it)) {
        Some((line, support.built))
    } else if shipped.iter().any(|it| lower.contains(it)) {
        let said = ["deploy", "publish", "release", "push"].iter().any(|it| {
            support.all.contains(&{
                let mut hasher = DefaultHasher::new();
                it.hash(&mut hasher);
                hasher.finish()
            })
        });
        Some((line, said))
    } else {
        None
    }
}
