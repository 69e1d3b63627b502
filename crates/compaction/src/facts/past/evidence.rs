//! What shows that a step is over: a run of what it names that ended well, the commit or push it asks for, the file it
//! was to create or remove. Silence shows nothing.

use std::cell::Cell;
use std::collections::HashMap;

use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::clip;
use crate::facts::work::command;
use crate::facts::{Detail, Fact, FileOp};
use std::sync::LazyLock;

/// Something that a step can ask for and a command can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Act {
    Commit,
    Push,
    /// Opens a pull request.
    Propose,
    Merge,
    Test,
    /// Formats, lints or checks types.
    Check,
    Build,
    Install,
}

/// Words of a step, by what they ask for; each a whole word in small letters.
const ASKED: [(&str, Act); 30] = [
    ("commit", Act::Commit),
    ("push", Act::Push),
    ("pr", Act::Propose),
    ("pull", Act::Propose),
    ("merge", Act::Merge),
    ("squash", Act::Merge),
    ("test", Act::Test),
    ("tests", Act::Test),
    ("verification", Act::Test),
    ("verify", Act::Test),
    ("suite", Act::Test),
    ("lint", Act::Check),
    ("linter", Act::Check),
    ("fmt", Act::Check),
    ("format", Act::Check),
    ("formatter", Act::Check),
    ("typecheck", Act::Check),
    ("clippy", Act::Check),
    ("vet", Act::Check),
    ("tsc", Act::Check),
    ("build", Act::Build),
    ("compile", Act::Build),
    ("install", Act::Install),
    ("提交", Act::Commit),
    ("推送", Act::Push),
    ("测试", Act::Test),
    ("コミット", Act::Commit),
    ("プッシュ", Act::Push),
    ("テスト", Act::Test),
    ("커밋", Act::Commit),
];

/// Words of a command that do what a step asks for.
const DONE: [(&str, Act); 26] = [
    ("test", Act::Test),
    ("tests", Act::Test),
    ("pytest", Act::Test),
    ("vitest", Act::Test),
    ("jest", Act::Test),
    ("nextest", Act::Test),
    ("unittest", Act::Test),
    ("lint", Act::Check),
    ("fmt", Act::Check),
    ("format", Act::Check),
    ("check", Act::Check),
    ("typecheck", Act::Check),
    ("tsc", Act::Check),
    ("clippy", Act::Check),
    ("vet", Act::Check),
    ("gofmt", Act::Check),
    ("eslint", Act::Check),
    ("biome", Act::Check),
    ("ruff", Act::Check),
    ("mypy", Act::Check),
    ("golangci-lint", Act::Check),
    ("build", Act::Build),
    ("make", Act::Build),
    ("install", Act::Install),
    ("ci", Act::Install),
    ("sync", Act::Install),
];

/// How a step begins that asks for acts alone. What else it names says on what.
static ACTS: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::new(concat!(
        r"(?i)^\W*(?:(?:(?:we|i) )?(?:still )?needs? to |(?:and |then |finally,? )|(?:final|full|focused|last) )*",
        r"(?:(?:re-?)?run|retry|commit|push|open|create|verify|verification|validate|check|test|lint|fmt|format|build|merge|squash|install)\b",
    ))
});
/// How a step begins that changes what there is.
static MENDS: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::new(
        r"(?i)^\W*(?:investigate(?: why| and fix)?|fix|implement|complete|update|refactor|apply|continue|enhance|extend)\b",
    )
});
/// How a step begins that is over when the files it names are there, or gone.
static MAKES: LazyLock<AsciiFirstRegex> =
    LazyLock::new(|| AsciiFirstRegex::new(r"(?i)^\W*(?:create|write|add|generate)\b"));
static REMOVES: LazyLock<AsciiFirstRegex> =
    LazyLock::new(|| AsciiFirstRegex::new(r"(?i)^\W*(?:delete|remove|drop)\b"));
/// A file in a step.
pub(super) static FILE: LazyLock<AsciiFirstRegex> =
    LazyLock::new(|| AsciiFirstRegex::new(r"(?:[\w.@-]+/)*[\w@-][\w.@-]*\.[a-z][a-z0-9]{0,4}\b"));

/// When each act was last done and ended well, and what became of files.
pub(in crate::facts) struct Evidence<'a> {
    acts: HashMap<Act, usize>,
    /// By name without directories: path, message, what was done.
    files: HashMap<&'a str, Vec<(&'a str, usize, FileOp)>>,
}

impl<'a> Evidence<'a> {
    pub(in crate::facts) fn of(facts: &'a [Fact]) -> Self {
        let mut out = Self { acts: HashMap::new(), files: HashMap::new() };
        for fact in facts {
            match &fact.detail {
                Detail::Command { outcome, looked: false } if outcome.ok == Some(true) => {
                    for act in acts(&fact.text) {
                        let last = out.acts.entry(act).or_default();
                        *last = fact.message.max(*last);
                    }
                }
                Detail::File { deed, .. } => {
                    let name = fact.text.rsplit('/').next().unwrap_or(&fact.text);
                    out.files.entry(name).or_default().push((&fact.text, fact.message, *deed));
                }
                _ => {}
            }
        }
        out
    }

    /// The last commit.
    pub(super) fn last_commit(&self) -> Option<usize> {
        self.acts.get(&Act::Commit).copied()
    }

    /// When the last of the files that a step names was changed, if each was after `message`.
    pub(super) fn last_change(&self, step: &str, message: usize) -> Option<usize> {
        let last = Cell::new(message);
        let changed = |at: usize, deed: FileOp| {
            last.set(last.get().max(if deed.changes() { at } else { 0 }));
            deed.changes()
        };
        self.all_files(step, message, changed).then(|| last.get())
    }

    /// Whether all that a step asks for was seen after `message`, in which it was set.
    pub(in crate::facts) fn shows_done(&self, step: &str, message: usize) -> bool {
        /// A longer step says more than what it asks to be run.
        const SHORT: usize = 240;
        let step = clip(step, SHORT).0;
        let done = |act: &Act| self.acts.get(act).is_some_and(|at| *at > message);
        if only_acts(step) {
            let asked = asked(step);
            return !asked.is_empty() && asked.iter().all(done);
        }
        if MENDS.is_match(step) && step.contains("failing") {
            return asked(step).contains(&Act::Test) && done(&Act::Test);
        }
        if MENDS.is_match(step) {
            return self.committed(step, message);
        }
        let made = MAKES.is_match(step);
        if !made && !REMOVES.is_match(step) {
            return false;
        }
        self.all_files(step, message, |_, deed| match deed {
            FileOp::Created | FileOp::CreatedThenEdited | FileOp::Written => made,
            FileOp::Deleted => !made,
            _ => false,
        })
    }

    /// Whether the files that a step names were changed after it, and that was committed.
    fn committed(&self, step: &str, message: usize) -> bool {
        let last = self.acts.get(&Act::Commit).copied().unwrap_or(0);
        self.all_files(step, message, |at, deed| {
            at < last
                && matches!(
                    deed,
                    FileOp::Created | FileOp::CreatedThenEdited | FileOp::Written | FileOp::Edited
                )
        })
    }

    /// Whether a step names files, and `is` holds of what was last done to each after `message`.
    fn all_files(&self, step: &str, message: usize, is: impl Fn(usize, FileOp) -> bool) -> bool {
        let mut named = FILE.find_iter(step).peekable();
        named.peek().is_some()
            && named.all(|it| {
                let path = it.as_str();
                let name = path.rsplit('/').next().unwrap_or(path);
                let done = self.files.get(name).into_iter().flatten();
                done.filter(|it| it.1 > message && (it.0.ends_with(path) || path.ends_with(it.0)))
                    .any(|it| is(it.1, it.2))
            })
    }
}

/// Whether a step asks for something to be run, and changes nothing itself.
pub(super) fn only_acts(step: &str) -> bool {
    ACTS.is_match(step) && !(MAKES.is_match(step) && FILE.is_match(step))
}

/// What a step asks for; of one that begins with a push, the commit is what is pushed.
fn asked(step: &str) -> Vec<Act> {
    let lower = step.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
    let mut out: Vec<Act> = ASKED
        .iter()
        .filter(|(word, _)| if word.is_ascii() { words.contains(word) } else { lower.contains(word) })
        .map(|it| it.1)
        .collect();
    out.dedup();
    let first = words.iter().find(|it| !it.is_empty() && **it != "need" && **it != "to");
    out.retain(|it| *it != Act::Commit || first != Some(&"push"));
    // What is installed for a check was installed when that ran.
    if out.len() > 1 {
        out.retain(|it| *it != Act::Install);
    }
    out
}

/// What a command does of what a step can ask for.
fn acts(command: &str) -> Vec<Act> {
    if command::hides(command) {
        return Vec::new();
    }
    let mut out = Vec::new();
    for words in history::tools::programs(command) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let words = match words[..] {
            ["git", "-C" | "-c", _, ref rest @ ..] | ["git", "--no-pager", ref rest @ ..] => {
                [&["git"], rest].concat()
            }
            _ => words,
        };
        match words[..] {
            ["git", "commit", ..] => out.push(Act::Commit),
            ["git", "push", ..] => out.push(Act::Push),
            ["git", "merge" | "rebase", ..] => out.push(Act::Merge),
            // What is merged was proposed.
            ["gh", "pr", "merge", ..] | ["glab", "mr", "merge", ..] => out.extend([Act::Propose, Act::Merge]),
            ["gh", "pr", "create", ..] | ["glab", "mr", "create", ..] => out.push(Act::Propose),
            ["git" | "gh" | "glab", ..] => {}
            _ => {
                let parts =
                    words.iter().take(5).filter_map(|it| it.rsplit('/').next()).flat_map(|it| it.split(':'));
                out.extend(parts.filter_map(|part| DONE.iter().find(|it| it.0 == part)).map(|it| it.1));
            }
        }
    }
    out
}
