//! Evidence that a step is done: a successful run of what it names, the commit or push it asks for, the file it was to
//! create or delete. Without evidence a step stays open.

use std::cell::Cell;
use std::collections::HashMap;

use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::{FILE_NAME, clip};
use crate::facts::work::command::ParsedCommand;
use crate::facts::work::paths::file_name;
use crate::facts::{Detail, Fact, FileOp};

/// Something that a step can ask for and a command can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Activity {
    Commit,
    Push,
    /// Opens a pull request.
    OpenPullRequest,
    Merge,
    Test,
    /// Formats, lints or checks types.
    Check,
    Build,
    Install,
    /// Goes to another branch.
    Switch,
}

/// Words of a step that ask for an activity: lower case, whole words where they are ASCII.
const STEP_WORDS: [(&str, Activity); 36] = [
    ("commit", Activity::Commit),
    ("push", Activity::Push),
    ("pr", Activity::OpenPullRequest),
    ("pull", Activity::OpenPullRequest),
    ("merge", Activity::Merge),
    ("squash", Activity::Merge),
    ("test", Activity::Test),
    ("tests", Activity::Test),
    ("verification", Activity::Test),
    ("verify", Activity::Test),
    ("suite", Activity::Test),
    ("pytest", Activity::Test),
    ("vitest", Activity::Test),
    ("jest", Activity::Test),
    ("lint", Activity::Check),
    ("linter", Activity::Check),
    ("pylint", Activity::Check),
    ("eslint", Activity::Check),
    ("mypy", Activity::Check),
    ("fmt", Activity::Check),
    ("format", Activity::Check),
    ("formatter", Activity::Check),
    ("typecheck", Activity::Check),
    ("clippy", Activity::Check),
    ("vet", Activity::Check),
    ("tsc", Activity::Check),
    ("build", Activity::Build),
    ("compile", Activity::Build),
    ("install", Activity::Install),
    ("提交", Activity::Commit),
    ("推送", Activity::Push),
    ("测试", Activity::Test),
    ("コミット", Activity::Commit),
    ("プッシュ", Activity::Push),
    ("テスト", Activity::Test),
    ("커밋", Activity::Commit),
];

/// Words of a step that asks for a verification of all that was done: "Verify that everything works".
const WHOLE: [&str; 4] = ["everything", "works", "changes", "result"];

/// Words of [`STEP_WORDS`] that ask for a verification without naming its kind.
const VERIFIES: [&str; 2] = ["verify", "verification"];

/// Words of a command that performs an activity.
const COMMAND_WORDS: [(&str, Activity); 27] = [
    ("test", Activity::Test),
    ("tests", Activity::Test),
    ("pytest", Activity::Test),
    ("vitest", Activity::Test),
    ("jest", Activity::Test),
    ("nextest", Activity::Test),
    ("unittest", Activity::Test),
    ("lint", Activity::Check),
    ("fmt", Activity::Check),
    ("format", Activity::Check),
    ("check", Activity::Check),
    ("typecheck", Activity::Check),
    ("tsc", Activity::Check),
    ("clippy", Activity::Check),
    ("vet", Activity::Check),
    ("gofmt", Activity::Check),
    ("eslint", Activity::Check),
    ("pylint", Activity::Check),
    ("biome", Activity::Check),
    ("ruff", Activity::Check),
    ("mypy", Activity::Check),
    ("golangci-lint", Activity::Check),
    ("build", Activity::Build),
    ("make", Activity::Build),
    ("install", Activity::Install),
    ("ci", Activity::Install),
    ("sync", Activity::Install),
];

/// Opening of a step that asks for activities only. Whatever else the step names is their object.
static STARTS_WITH_ACTIVITY: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:(?:(?:we|i) )?(?:still )?needs? to |(?:and |then |finally,? )|(?:final|full|focused|last) )*",
    r"(?:(?:re-?)?run|retry|commit|push|open|create|verify|verification|validate|check|test|lint|fmt|format|build|merge|squash|install)\b",
));
/// Opening of a step that asks for changes.
static STARTS_WITH_CHANGE: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:investigate(?: why| and fix)?|fix(?:ing)?|implement|complete|finish editing|edit|update|refactor|apply|continue|enhance|extend|save)\b",
);
/// Opening of a step that is done when the files it names exist, or are gone.
static STARTS_WITH_CREATE: AsciiFirstRegex = AsciiFirstRegex::new(r"(?i)^\W*(?:create|write|add|generate)\b");
/// Of these, the opening that asks for a file, not for something in it.
static STARTS_WITH_NEW_FILE: AsciiFirstRegex = AsciiFirstRegex::new(r"(?i)^\W*create\b");
/// Opening of a step that names the file to write: "`tests/valve.rs` — opens and closes".
static STARTS_WITH_NAME: AsciiFirstRegex =
    AsciiFirstRegex::new(r"^\W*`(?:[\w.@-]+/)*[\w@-][\w.@-]*\.[a-z][a-z0-9]{0,4}`(?:\s*[—–:-]|\s*$)");
static STARTS_WITH_DELETE: AsciiFirstRegex = AsciiFirstRegex::new(r"(?i)^\W*(?:delete|remove|drop)\b");
/// When each activity last succeeded, and the operations on files.
pub(in crate::facts) struct Evidence<'a> {
    acts: HashMap<Activity, usize>,
    /// By file name: path, message, operation.
    files: HashMap<&'a str, Vec<(&'a str, usize, FileOp)>>,
    /// Environment variables, `NAME=value`, with which a command succeeded or is running: its last message.
    environment: HashMap<&'a str, usize>,
}

/// A step that asks only to start something.
static STARTS_PROCESS: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:then |and )?(?:re)?(?:start|run|launch)\b|\bby (?:re)?(?:start|launch)ing\b",
);
static ENVIRONMENT: AsciiFirstRegex = AsciiFirstRegex::new(r"(?:^|[\s`])([A-Z][A-Z0-9_]+=[^\s`,;]+)");

/// The environment variables, `NAME=value`, that a text sets.
fn environment_in(text: &str) -> impl Iterator<Item = &str> {
    ENVIRONMENT.captures_iter(text).filter_map(|it| Some(it.get(1)?.as_str()))
}

impl<'a> Evidence<'a> {
    pub(in crate::facts) fn of(facts: &'a [Fact]) -> Self {
        let mut out = Self { acts: HashMap::new(), files: HashMap::new(), environment: HashMap::new() };
        for fact in facts {
            let newest = |last: &mut usize| *last = fact.message.max(*last);
            match &fact.detail {
                Detail::Command { outcome, read_only: false } => {
                    let succeeded = outcome.ok == Some(true);
                    if succeeded {
                        let acts = activities_of(&fact.text).into_iter();
                        acts.for_each(|it| newest(out.acts.entry(it).or_default()));
                    }
                    if succeeded || outcome.running.is_some() {
                        let set = environment_in(&fact.text);
                        set.for_each(|it| newest(out.environment.entry(it).or_default()));
                    }
                }
                Detail::File { op, .. } => {
                    let name = file_name(&fact.text);
                    out.files.entry(name).or_default().push((&fact.text, fact.message, *op));
                }
                _ => {}
            }
        }
        out
    }

    pub(super) fn last_commit(&self) -> Option<usize> {
        self.acts.get(&Activity::Commit).copied()
    }

    pub(super) fn last_switch(&self) -> Option<usize> {
        self.acts.get(&Activity::Switch).copied()
    }

    /// The last message in which a test, check or build succeeded.
    pub(super) fn last_check(&self) -> Option<usize> {
        let checks = [Activity::Test, Activity::Check, Activity::Build];
        checks.iter().filter_map(|it| self.acts.get(it)).max().copied()
    }

    /// The message of the last change to the files that a step names, if each was changed after `message`.
    pub(super) fn last_change(&self, step: &str, message: usize) -> Option<usize> {
        let last = Cell::new(message);
        let changed = |at: usize, op: FileOp| {
            last.set(last.get().max(if op.changes() { at } else { 0 }));
            op.changes()
        };
        self.all_files(step, message, changed).then(|| last.get())
    }

    /// Whether everything that a step asks for was seen after `message`, where the step was set.
    pub(in crate::facts) fn shows_done(&self, step: &str, message: usize) -> bool {
        /// A longer step asks for more than the activities it names. Characters.
        const SHORT: usize = 240;
        let step = clip(step, SHORT).0;
        let done = |act: &Activity| self.acts.get(act).is_some_and(|at| *at > message);
        let mut set = environment_in(step).map(|it| self.environment.get(it)).peekable();
        let starts = STARTS_PROCESS.is_match(step) && !step.contains(" then ");
        if starts && set.peek().is_some() && set.all(|at| at > Some(&message)) {
            return true;
        }
        if only_runs(step) {
            let asked = requested_activities(step);
            return !asked.is_empty() && asked.iter().all(done);
        }
        if STARTS_WITH_CHANGE.is_match(step) && names_failures(step) {
            return requested_activities(step).contains(&Activity::Test) && done(&Activity::Test);
        }
        if STARTS_WITH_CHANGE.is_match(step) {
            return self.committed(step, message);
        }
        let creates = STARTS_WITH_CREATE.is_match(step);
        let named = STARTS_WITH_NAME.is_match(step);
        if !creates && !named && !STARTS_WITH_DELETE.is_match(step) {
            return false;
        }
        self.all_files(step, message, |_, op| match op {
            FileOp::Created => creates || named,
            FileOp::CreatedThenEdited | FileOp::Written => creates,
            // A file that was edited or committed is there.
            FileOp::Edited | FileOp::Committed => STARTS_WITH_NEW_FILE.is_match(step),
            FileOp::Deleted => !creates && !named,
            _ => false,
        })
    }

    /// Whether the files that a step of an earlier summary names were changed after it and a check then
    /// passed, or all that the step lists was created: "Write suites (parser, lexer)".
    pub(in crate::facts) fn shows_worked_on(&self, step: &str, message: usize) -> bool {
        let creates = STARTS_WITH_CREATE.is_match(step);
        if !creates && (!STARTS_WITH_CHANGE.is_match(step) || names_failures(step)) {
            return false;
        }
        let changed = self.last_change(step, message);
        changed.zip(self.last_check()).is_some_and(|(changed, check)| changed < check)
            || creates && self.created_all_listed(step, message)
    }

    /// Whether each thing that a step lists in parentheses has the name of a file that was made after `message`.
    fn created_all_listed(&self, step: &str, message: usize) -> bool {
        /// A shorter file name is the prefix of too many words.
        const SHORTEST: usize = 4;
        let plain =
            |it: &str| it.chars().filter(|it| it.is_alphanumeric()).collect::<String>().to_lowercase();
        let lists: Option<Vec<&str>> =
            step.split('(').skip(1).map(|it| it.split_once(')').map(|it| it.0)).collect();
        let items = lists.unwrap_or_default().into_iter().flat_map(|it| it.split(','));
        let items: Vec<String> = items.map(plain).filter(|it| !it.is_empty()).collect();
        let made = |op: FileOp| matches!(op, FileOp::Created | FileOp::CreatedThenEdited | FileOp::Written);
        let new = self.files.iter().filter(|it| it.1.iter().any(|it| it.1 > message && made(it.2)));
        let names: Vec<String> = new.map(|it| plain(it.0.split('.').next().unwrap_or_default())).collect();
        let named = |item: &String| {
            names.iter().any(|it| item == it || it.len() >= SHORTEST && item.starts_with(it.as_str()))
        };
        !items.is_empty() && items.iter().all(named)
    }

    /// Whether the files that a step names were read or changed after it.
    pub(super) fn all_seen(&self, step: &str, message: usize) -> bool {
        self.all_files(step, message, |_, op| op != FileOp::Mentioned)
    }

    /// Whether the files that a sentence names were read or changed, and not removed, after `message`.
    pub(super) fn all_there(&self, sentence: &str, message: usize) -> bool {
        let gone = [FileOp::Mentioned, FileOp::Listed, FileOp::Deleted, FileOp::Renamed];
        self.all_files(sentence, message, |_, op| !gone.contains(&op))
    }

    /// Whether the files that a step names were changed after it, and a commit followed.
    fn committed(&self, step: &str, message: usize) -> bool {
        let last = self.last_commit().unwrap_or(0);
        self.all_files(step, message, |at, op| {
            at < last
                && matches!(
                    op,
                    FileOp::Created
                        | FileOp::CreatedThenEdited
                        | FileOp::Written
                        | FileOp::Edited
                        | FileOp::Committed
                )
        })
    }

    /// Whether a step names files, and `is` holds for an operation on each after `message`.
    pub(super) fn all_files(&self, step: &str, message: usize, is: impl Fn(usize, FileOp) -> bool) -> bool {
        let mut named = FILE_NAME.find_iter(step).peekable();
        named.peek().is_some()
            && named.all(|it| {
                let path = it.as_str();
                let done = self.files.get(file_name(path)).into_iter().flatten();
                done.filter(|it| it.1 > message && (it.0.ends_with(path) || path.ends_with(it.0)))
                    .any(|it| is(it.1, it.2))
            })
    }
}

/// Whether a step is about tests that fail.
fn names_failures(step: &str) -> bool {
    step.contains("failing") || step.contains("test failure")
}

/// Whether a step asks only for something to be run, and changes nothing itself.
pub(super) fn only_runs(step: &str) -> bool {
    STARTS_WITH_ACTIVITY.is_match(step) && !(STARTS_WITH_CREATE.is_match(step) && FILE_NAME.is_match(step))
}

/// The activities that a step asks for. If it begins with a push, "commit" is what is pushed.
fn requested_activities(step: &str) -> Vec<Activity> {
    let lower = step.to_lowercase();
    let mut words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
    let forbidden = |at: usize| at > 1 && words[at - 2..at] == ["do", "not"];
    words = (0..words.len()).filter(|it| !forbidden(*it)).map(|it| words[it]).collect();
    let asked = |general: bool| -> Vec<Activity> {
        let named = |word: &str| if word.is_ascii() { words.contains(&word) } else { lower.contains(word) };
        let of = STEP_WORDS.iter().filter(|it| VERIFIES.contains(&it.0) == general && named(it.0));
        of.map(|it| it.1).collect()
    };
    // A specific activity beats a general "verify", which may be about anything if it has an object.
    let mut out = asked(false);
    let bare =
        words.iter().filter(|it| !it.is_empty()).count() <= 2 || WHOLE.iter().any(|it| words.contains(it));
    if out.is_empty() && bare {
        out = asked(true);
    }
    out.dedup();
    let first = words.iter().find(|it| !it.is_empty() && **it != "need" && **it != "to");
    out.retain(|it| *it != Activity::Commit || first != Some(&"push"));
    if first == Some(&"install") {
        return vec![Activity::Install];
    }
    // A check cannot have passed without what had to be installed for it.
    if out.len() > 1 {
        out.retain(|it| *it != Activity::Install);
    }
    out
}

/// The activities that a command performs.
fn activities_of(command: &str) -> Vec<Activity> {
    let command = ParsedCommand::of(command);
    if command.hides_failure() {
        return Vec::new();
    }
    let mut out = Vec::new();
    for words in command.programs() {
        match words[..] {
            ["git", "commit", ..] => out.push(Activity::Commit),
            ["git", "push", ..] => out.push(Activity::Push),
            ["git", "switch", ..] | ["git", "checkout", "-b" | "-B", ..] => out.push(Activity::Switch),
            ["git", "merge" | "rebase", ..] => out.push(Activity::Merge),
            // A pull request that is merged was opened before.
            ["gh", "pr", "merge", ..] | ["glab", "mr", "merge", ..] => {
                out.extend([Activity::OpenPullRequest, Activity::Merge])
            }
            ["gh", "pr", "create", ..] | ["glab", "mr", "create", ..] => out.push(Activity::OpenPullRequest),
            ["git" | "gh" | "glab", ..] => {}
            _ => {
                let parts = words.iter().take(5).map(|it| file_name(it)).flat_map(|it| it.split(':'));
                let found = parts.filter_map(|part| COMMAND_WORDS.iter().find(|it| it.0 == part));
                let mut found: Vec<Activity> = found.map(|it| it.1).collect();
                // `pip install pytest` tests nothing.
                if found.first() == Some(&Activity::Install) {
                    found.truncate(1);
                }
                out.extend(found);
            }
        }
    }
    out
}
