//! What a compiler, linter or test runner reports file by file, which is a list of what is left to fix; and whether any ran
//! after the last edits.

use std::collections::{BTreeMap, HashSet};

use super::and_more;
use super::command::{self, Operation, ParsedCommand, Run};
use super::files::Files;
use super::outcome::Outcome;
use super::paths::{is_absolute, path};
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::{clip, flat, without_escapes};
use crate::facts::voice::ToolTopic;
use crate::facts::{Detail, Fact, FileOp, UNCHECKED};

/// `src/a.ts:3:1: error: …`, `a.go:12:3: undefined: x`, `src/a.ts(3,1): error TS1005: …`, `src/a.ts:3:1 - error …`,
/// `src/a.ts:3:1 lint/rule ━━━`.
static LOCATED: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"^\s{0,2}(?:[ew]: (?:file://)?)?((?:[A-Za-z]:)?[^\s:()]+\.[A-Za-z]\w{0,6})",
    r"(?::(\d+)(?::(\d+))?(?:: | - | )|\((\d+)(?:,(\d+))?\): )\s*(\S.*)$",
));
/// What the message of such a line begins with, if no column shows that a checker printed it.
static SEVERITY: AsciiFirstRegex =
    AsciiFirstRegex::new(r"^(?i:(?:fatal )?error|warning|note|info)\b|^\[?[A-Z]{1,5}\d{3,5}\b|^lint/");
/// A file on a line of its own, above its diagnostics (ESLint, Next.js).
static FILE_ABOVE: AsciiFirstRegex =
    AsciiFirstRegex::new(r"^(?:\./)?((?:[A-Za-z]:)?[^\s:<>|*][^:<>|*]*\.[A-Za-z]\w{0,6})$");
/// A diagnostic below its file: `  3:1  warning  message  rule`, `3:1  Error: message  rule`.
static BELOW: AsciiFirstRegex =
    AsciiFirstRegex::new(r"^\s*(\d+:\d+)\s+(?i:error|warning|info|✖|⚠):?\s+(\S.*)$");
/// The place of a diagnostic whose message stands above (rustc, Ruff).
static ARROW: AsciiFirstRegex =
    AsciiFirstRegex::new(r"^\s*--> ((?:[A-Za-z]:)?[^\s:]+\.[A-Za-z]\w{0,6}):(\d+:\d+)$");
static TITLE: AsciiFirstRegex =
    AsciiFirstRegex::new(r"^(?:(?:error|warning)(?:\[\w+\])?: |[A-Z]{1,5}\d{3,5} )(?:\[\*\] )?\S");
/// A failed test of pytest, vitest or jest, by file.
static FAILED_TEST: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"^\s*(?:FAILED|ERROR) ([^\s:]+\.py)(?:::(\S+))?(?: - (.*))?$",
    r"|^\s*(?:FAIL|×)\s+(?:\|\w+\|\s+)?([^\s:]+\.[cm]?[jt]sx?) > (\S.*)$",
));

/// Maximum bytes of an output that are read.
const MAX_READ: usize = 200_000;
/// Maximum characters of a message.
const MAX_MESSAGE: usize = 110;
/// Maximum diagnostics that are kept of a file: each is compared with those before it.
const MAX_KEPT: usize = 64;
/// Maximum diagnostics that are told of a file, and files that are told of a report.
const MAX_TOLD: usize = 8;
const MAX_FILES: usize = 24;
/// Maximum number of reports that are kept: of a linter, a type checker and the tests.
const MAX_REPORTS: usize = 3;

/// Extensions of code that a build, linter or test can check.
const CODE: [&str; 35] = [
    "c", "cc", "cpp", "cs", "cu", "dart", "ex", "exs", "go", "h", "hpp", "java", "js", "jsx", "kt", "lua",
    "m", "mjs", "php", "py", "rb", "rs", "scala", "sol", "svelte", "swift", "ts", "tsx", "vue", "zig",
    "bash", "fish", "ps1", "sh", "zsh",
];
/// Words of operations that show nothing about the code.
const PREPARES: [&str; 5] = ["dev", "fmt", "format", "install", "sync"];
/// Programs that check code, beside those whose name ends with `lint`.
const CHECKERS: [&str; 14] = [
    "biome",
    "flake8",
    "gofmt",
    "mypy",
    "phpstan",
    "prettier",
    "pyright",
    "rubocop",
    "ruff",
    "shellcheck",
    "staticcheck",
    "svelte-check",
    "vale",
    "vue-tsc",
];
/// Maximum files that are named as unchecked.
const MAX_NAMED: usize = 4;

/// By file as printed: place and message of each diagnostic, in order.
type Diagnostics = BTreeMap<String, Vec<String>>;

/// What one run of a check reported.
struct CheckReport {
    message: usize,
    command: String,
    operations: Vec<Operation>,
    /// What the paths are relative to, if not the working directory.
    dir: Option<String>,
    /// Number of prompts before the run.
    prompts: usize,
    files: Diagnostics,
}

#[derive(Default)]
pub(super) struct Checks {
    /// What checks reported last.
    reports: Vec<CheckReport>,
    /// The last check that ended, and its message.
    last: Option<(usize, String)>,
}

/// Whether a path is that of code which a check reads.
fn is_code(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|it| CODE.contains(&it.1))
}

/// The builds, linters and tests that a command runs, without what only prepares them.
fn checks_of(command: &str, parsed: &ParsedCommand) -> Vec<Operation> {
    let only_prepares = |it: &Operation| it.name.split([' ', ':']).any(|it| PREPARES.contains(&it));
    let checker = |it: &str| it.ends_with("lint") || CHECKERS.contains(&it);
    let checks =
        |it: &Operation| it.name.split(' ').next().is_some_and(checker) || it.checks() && !only_prepares(it);
    if command::has_inline_script(command) {
        return Vec::new();
    }
    parsed.operations().into_iter().filter(checks).collect()
}

/// The successful checks after which code of the project was edited that is still there, and which no later command
/// repeated with success: message and command.
pub(crate) fn outdated(facts: &[Fact]) -> HashSet<(usize, &str)> {
    let edited = |it: &&Fact| match it.detail {
        Detail::File { op, .. } => {
            matches!(op, FileOp::Created | FileOp::CreatedThenEdited | FileOp::Written | FileOp::Edited)
                && is_code(&it.text)
                && !is_absolute(&it.text)
        }
        _ => false,
    };
    let last = facts.iter().filter(edited).map(|it| it.message).max().unwrap_or(0);
    let passed = facts.iter().filter_map(|it| {
        let Detail::Command { outcome, .. } = &it.detail else { return None };
        let passed = outcome.ok == Some(true);
        let checks = passed.then(|| checks_of(&it.text, &ParsedCommand::of(&it.text)))?;
        (!checks.is_empty()).then_some((it.message, it.text.as_str(), checks))
    });
    let passed: Vec<(usize, &str, Vec<Operation>)> = passed.collect();
    let again = |message: usize, check: &Operation| {
        let later = passed.iter().filter(|it| it.0 > message).flat_map(|it| &it.2);
        later.into_iter().any(|it| it.name == check.name && it.covers(check))
    };
    let is_outdated = |(message, _, checks): &&(usize, &str, Vec<Operation>)| {
        *message < last && !checks.iter().all(|it| again(*message, it))
    };
    passed.iter().filter(is_outdated).map(|it| (it.0, it.1)).collect()
}

fn read(text: &str) -> Diagnostics {
    let text = without_escapes(clip(text, MAX_READ).0);
    let mut all = Diagnostics::new();
    let mut add = |file: &str, told: String| {
        let (told, cut) = clip(told.trim_end_matches(['━', '─', ' ']), MAX_MESSAGE);
        let told = flat(told) + if cut { " …" } else { "" };
        let of_file = all.entry(file.strip_prefix("./").unwrap_or(file).to_owned()).or_default();
        if of_file.len() < MAX_KEPT && !of_file.contains(&told) {
            of_file.push(told);
        }
    };
    let (mut above, mut title) = (None, None);
    let mut rest = text.lines().map(str::trim_end);
    while let Some(line) = rest.next() {
        let bare = line.trim_start();
        if bare.starts_with("--> ") {
            let place = ARROW.captures(line).and_then(|it| Some((it.get(1)?.as_str(), it.get(2)?.as_str())));
            // Further places of a diagnostic belong to its notes.
            if let (Some((file, at)), Some(title)) = (place, std::mem::take(&mut title)) {
                add(file, format!("{at} {title}"));
            }
        } else if line.starts_with(|it: char| "ew".contains(it) || it.is_ascii_uppercase())
            && TITLE.is_match(line)
        {
            title = Some(line);
        } else if let Some((file, found)) = above.and_then(|it| Some((it, BELOW.captures(line)?))) {
            let [place, said] = [1, 2].map(|it| found.get(it).map_or("", |it| it.as_str()));
            add(file, format!("{place} {}", squeezed(said)));
        } else if let Some((file, told)) = located(line) {
            add(file, with_cause(&told, rest.clone()));
        } else if ["FAIL", "ERROR ", "×"].iter().any(|it| bare.starts_with(it)) {
            if let Some((file, told)) = failed_test(line) {
                add(file, told);
            }
        } else if line.is_empty() {
            above = None;
        } else if let Some(found) = FILE_ABOVE.captures(line) {
            above = found.get(1).map(|it| it.as_str());
        }
    }
    all
}

/// Shortens a long TypeScript error to half of [`MAX_MESSAGE`] and appends its cause, the last indented line below it.
/// Other messages are returned as they are.
fn with_cause<'a>(told: &str, below: impl Iterator<Item = &'a str>) -> String {
    /// Maximum lines of a message.
    const LINES: usize = 40;
    if !told.contains("error TS") || told.chars().count() <= MAX_MESSAGE {
        return told.to_owned();
    }
    let cause = below.take(LINES).take_while(|it| it.starts_with("  ")).last();
    cause.map_or_else(|| told.to_owned(), |it| format!("{} … {}", clip(told, MAX_MESSAGE / 2).0, it.trim()))
}

/// A line that begins with the place of a diagnostic: the file, and place and message.
fn located(line: &str) -> Option<(&str, String)> {
    // Most lines of an output are none: a digit after a colon or bracket is cheaper to find.
    let placed = |it: &[u8]| matches!(it[0], b':' | b'(') && it[1].is_ascii_digit();
    if !line.as_bytes().windows(2).any(placed) {
        return None;
    }
    let found = LOCATED.captures(line)?;
    let group = |it: usize| found.get(it).map(|it| it.as_str());
    let (row, column) = (group(2).or(group(4))?, group(3).or(group(5)));
    let said = group(6)?;
    let column = match column {
        Some(column) => format!(":{column}"),
        None if SEVERITY.is_match(said) => String::new(),
        None => return None,
    };
    Some((group(1)?, format!("{row}{column} {said}")))
}

/// A line that names a failed test: the file, and test and cause.
fn failed_test(line: &str) -> Option<(&str, String)> {
    let found = FAILED_TEST.captures(line)?;
    let group = |it: usize| found.get(it).map(|it| it.as_str());
    let told: Vec<&str> = [group(2).or(group(5)), group(3)].into_iter().flatten().collect();
    let told = if told.is_empty() { "failed".to_owned() } else { told.join(": ") };
    Some((group(1).or(group(4))?, told))
}

/// A message without the columns of a table: the rule stands apart.
fn squeezed(text: &str) -> String {
    let parts: Vec<&str> = text.split("  ").map(str::trim).filter(|it| !it.is_empty()).collect();
    match parts[..] {
        [said, rule] => format!("{rule}: {said}"),
        _ => parts.join(" "),
    }
}

impl Checks {
    /// Says which code was edited after the last check. The line belongs to the check: the edits may be in messages that
    /// are kept.
    pub(super) fn tell_unchecked(&self, files: &Files, facts: &mut Vec<Fact>) {
        let Some((last, command)) = &self.last else { return };
        let differs = |it: &str| files.last_op(it).is_some_and(|it| it.changes() && it != FileOp::Deleted);
        let since = files.changes.iter().filter(|it| it.message > *last && is_code(&it.text));
        let mut names: Vec<&str> = since.map(|it| it.text.as_str()).filter(|it| differs(it)).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return;
        }
        let more = and_more(names.len().saturating_sub(MAX_NAMED));
        names.truncate(MAX_NAMED);
        let command =
            flat(&clip(command, MAX_MESSAGE).0.replace("\\\n", " ").replace('\n', "; ")).replace('`', "'");
        let text = format!("{UNCHECKED}{command}` ran: {}{more}", names.join(", "));
        facts.push(Fact::from_tools(ToolTopic::Commands, *last, text, Detail::None));
    }

    /// Notes that a check ran, however it ended.
    pub(super) fn note(&mut self, run: &Run) {
        if !checks_of(run.command, run.parsed).is_empty() {
            self.last = Some((run.number, run.command.to_owned()));
        }
    }

    /// Keeps the report of a check that ended, instead of the earlier ones that its run includes. `prompts`: how many
    /// there are so far.
    pub(super) fn read_report(&mut self, run: &Run, outcome: &Outcome, printed: &str, prompts: usize) {
        let Run { number: message, command, parsed, .. } = *run;
        let operations: Vec<Operation> = parsed.operations().into_iter().filter(Operation::checks).collect();
        if operations.is_empty() {
            return;
        }
        let files = read(printed);
        let program = |it: &Operation| it.name.split(' ').next().unwrap_or_default().to_owned();
        let passed = outcome.ok == Some(true) && files.is_empty();
        self.reports.retain(|report| {
            let again = |it: &Operation| {
                operations.iter().any(|run| {
                    run.name == it.name && run.covers(it)
                        || passed && run.tests_all() && program(run) == program(it)
                })
            };
            let same_files = || files.keys().any(|it| report.files.contains_key(it));
            !(report.operations.iter().any(again) || same_files())
        });
        // A single failure is told as an error.
        let count: usize = files.values().map(Vec::len).sum();
        if count > 1 || count == 1 && outcome.ok == Some(true) {
            if self.reports.len() == MAX_REPORTS {
                self.reports.remove(0);
            }
            let dir = command::directory(command).map(str::to_owned);
            let command = flat(clip(command, 100).0).replace('`', "'");
            self.reports.push(CheckReport { message, command, operations, dir, prompts, files });
        }
    }

    /// Takes over what an earlier summary says of a report. Returns whether it is about one.
    pub(super) fn resume(&mut self, fact: &Fact) -> bool {
        let Detail::Diagnostics { by } = &fact.detail else { return false };
        let Some((file, told)) = fact.text.split_once(": ") else { return true };
        let entry = (file.to_owned(), vec![told.to_owned()]);
        match self.reports.iter_mut().find(|it| it.command == *by) {
            Some(report) => drop(report.files.insert(entry.0, entry.1)),
            None => self.reports.push(CheckReport {
                message: fact.message,
                command: by.clone(),
                operations: ParsedCommand::of(by).operations(),
                dir: None,
                prompts: 0,
                files: Diagnostics::from([entry]),
            }),
        }
        true
    }

    /// Tells the newest reports, without the files that were changed since.
    pub(super) fn tell_reports(&self, files: &Files, prompts: usize, facts: &mut Vec<Fact>) {
        for CheckReport { message, command, dir, prompts: before, files: reported, .. } in &self.reports {
            // What an earlier turn left as it was is not the task, unless the next request asks for it.
            if before + 1 < prompts {
                continue;
            }
            let changed = |it: &String| {
                files.changes.iter().any(|change| change.message > *message && *change.text == **it)
            };
            let left = reported.iter().map(|(file, told)| (path(file, dir.as_deref(), files.base), told));
            let mut left: Vec<(String, &Vec<String>)> = left.filter(|it| !changed(&it.0)).collect();
            // What the session changed comes first.
            left.sort_by_key(|it| !files.last_op(&it.0).is_some_and(FileOp::changes));
            let mut tell = |text: String| {
                let detail = Detail::Diagnostics { by: command.clone() };
                facts.push(Fact::from_tools(ToolTopic::Errors, *message, text, detail));
            };
            for (file, told) in left.iter().take(MAX_FILES) {
                let more = match told.len() {
                    0..=MAX_TOLD => String::new(),
                    MAX_KEPT.. => "; and many more".to_owned(),
                    all => format!("; and {} more", all - MAX_TOLD),
                };
                tell(format!("{file}: {}{more}", told[..told.len().min(MAX_TOLD)].join("; ")));
            }
            if left.len() > MAX_FILES {
                tell(format!("and in {} more files", left.len() - MAX_FILES));
            }
        }
    }
}
