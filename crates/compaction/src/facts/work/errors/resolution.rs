//! Which earlier failures a later success resolves.

use std::collections::HashSet;

use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::{clip, flat, sentences, without_durations};
use crate::facts::work::Work;
use crate::facts::work::command::{self, Operation, ParsedCommand};
use crate::facts::work::paths::{file_name, is_elsewhere};
use crate::facts::{Detail, Fact};
use history::Output;
use history::tools::{self, Meaning};

/// Number of messages within which a wrong call is corrected: five calls with their outputs.
const NEAR: usize = 10;
/// Number of newest errors that are looked at.
const RECENT: usize = 32;

/// A program rejected its arguments or does not exist, or an inline script has a syntax error.
pub(in crate::facts::work) static WRONG_CALL: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)\b(?:unknown|unrecogni[sz]ed|unexpected|invalid|illegal|no such) (?:option|argument|flag|switch|command|subcommand)s?\b",
    r"|^usage:|command not found|\b(?:Syntax|Indentation)Error\b|unexpected (?:EOF|end of file)",
));
static MISSING_PROGRAM: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?:^|[\s:])([\w.-]+): (?:command )?not found\b");
pub(in crate::facts::work) static MISSING_FILE: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)no such file|not found|does not exist|did not match any|ENOENT|cannot find|can't open",
);
/// Whether an error says that a file is not there.
pub(crate) fn is_missing_file(error: &str) -> bool {
    MISSING_FILE.is_match(error)
}

/// Programs that run any query or script: the success of one says nothing about another.
const QUERIES: [&str; 6] = ["mongosh", "mysql", "psql", "redis-cli", "sqlite3", "ssh"];

/// A module or program is not installed; one of the groups captures its name.
static MISSING_MODULE_OR_PROGRAM: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r#"No module named ['"]?([A-Za-z_][\w.]*)|[Cc]annot find (?:module|package) ['"]([@A-Za-z][\w@/.-]*)"#,
    r#"|command not found: ([\w.-]+)|(?:^|[\s:])([\w.-]+): (?:command )?not found\b|exec: "([\w.-]+)": executable file not found"#,
    r"|[Tt]he command '([\w.-]+)' could not be found",
));
/// A module is missing or cannot be loaded.
static LACKS_MODULE: AsciiFirstRegex = AsciiFirstRegex::new(
    r"No module named|cannot open shared object|undefined symbol|[Cc]annot find (?:module|package)",
);
/// The model says that it takes another approach.
static INSTEAD: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)\binstead\b|\b(?:try|use|using|take|with) (?:a |an |the )?(?:different|another|other|alternative)\b|\bworkaround\b",
    r"|stattdessen|en su lugar|à la place|вместо|代わりに|改用|대신",
));
/// Programs whose `test` also compiles the project, so that passing tests prove the build.
const COMPILERS: [&str; 7] = ["go", "cargo", "gradle", "gradlew", "mvn", "dotnet", "swift"];
/// Subcommands of [`COMPILERS`] that `test` includes.
const COMPILES: [&str; 5] = ["build", "check", "vet", "compile", "test"];
/// An error of a compiler or checker with its location: `src/a.ts(3,1): error TS1005: …`,
/// `a.go:12:3: undefined: x`.
static LOCATED: AsciiFirstRegex =
    AsciiFirstRegex::new(r"^([^\s:(]+\.[A-Za-z]\w{0,4})[(:]\d+(?:[,:]\d+)?\)?:? (?:- )?(\S.*)$");
static ERROR_CODE: AsciiFirstRegex = AsciiFirstRegex::new(r"\b[A-Z]{1,5}\d{3,5}\b");
/// Prefixes, in lower case, of an editing tool's message that the edit did not fit the file.
const MISFITS: [&str; 15] = [
    "string to replace not found",
    "could not find oldstring",
    "could not find old_string",
    "oldstring not found",
    "oldstring and newstring",
    "old_string",
    "found multiple matches",
    "no changes to make",
    "no replacement was performed",
    "apply_patch verification failed",
    "failed to find expected lines",
    "failed to find context",
    // pi
    "could not find the exact text",
    "could not find edits[",
    // Gemini CLI
    "failed to edit, ",
];
/// A failed command whose retry is still expected.
pub(in crate::facts::work) struct Retry {
    error: usize,
    /// Number of further commands that may be the retry.
    left: usize,
    dir: Option<String>,
    /// Steps of the command that have not succeeded since.
    steps: Vec<Vec<String>>,
    /// No other command that changes something has succeeded since.
    first: bool,
}

fn unresolved(error: &mut Fact) -> Option<(&str, Option<&str>, &mut Option<usize>)> {
    match &mut error.detail {
        Detail::Error { of, resolved: resolved @ None, .. } => Some((&error.text, of.as_deref(), resolved)),
        _ => None,
    }
}

impl Work<'_> {
    /// A command that changes something succeeded: resolves errors about a missing module or program that it
    /// installs or runs, and the error that the model set out to avoid by another approach.
    pub(in crate::facts::work) fn resolve_by_success(
        &mut self,
        number: usize,
        command: &str,
        parsed: &ParsedCommand,
    ) {
        let project = self.base.map(file_name);
        let key = command::attempt_key(command);
        // Commands of git alone deliver the work: they are no other approach to what failed.
        let delivers = parsed.names().iter().all(|it| it.starts_with("git "));
        let instead = self.abandoned_error.take().filter(|_| !delivers);
        for (at, error) in self.errors.iter_mut().enumerate().rev().take(RECENT) {
            let Some((text, Some(of), resolved)) = unresolved(error) else { continue };
            let missing =
                MISSING_MODULE_OR_PROGRAM.captures(text).and_then(|it| it.iter().skip(1).flatten().next());
            let there = missing.is_some_and(|it| {
                parsed.installs(it.as_str(), project) || parsed.runs(it.as_str()) && !parsed.only_asks()
            });
            let other_way = instead == Some(at) && command::attempt_key(of) != key;
            if there || other_way {
                *resolved = Some(number);
            }
        }
    }

    /// An inline script succeeded: resolves the failures of earlier ones about the same subject.
    pub(in crate::facts::work) fn resolve_probe(&mut self, number: usize, command: &str) {
        /// Maximum words of a script that does little more than load modules.
        const SHORT: usize = 8;
        let Some(words) = command::inline_script_words(command) else { return };
        for error in self.recent_errors() {
            let near = number.saturating_sub(error.message) <= 2 * NEAR;
            let Some((text, Some(of), resolved)) = unresolved(error) else { continue };
            let lacks_module = LACKS_MODULE.is_match(text);
            // Further away, or if a short script could not load a module, only if the new one has all its words.
            let again = |it: HashSet<&str>| {
                let alike = near && !(lacks_module && it.len() <= SHORT);
                is_same_subject(&it, &words) && (alike || it.is_subset(&words))
            };
            let same = interpreter(of) == interpreter(command);
            if same && command::inline_script_words(of).is_some_and(again) {
                *resolved = Some(number);
            }
        }
    }

    /// Notes that the model announces another approach after a failure: the next command is taken for it. A
    /// failed build or check is excluded, since nothing replaces it.
    pub(in crate::facts::work) fn note_other_way(&mut self, number: usize, text: &str) {
        /// Number of messages within which a model says so.
        const SOON: usize = 2;
        let Some(error) = self.errors.last().filter(|it| number.saturating_sub(it.message) <= SOON) else {
            return;
        };
        let Detail::Error { of: Some(of), resolved: None, .. } = &error.detail else { return };
        let says = |it: &&str| INSTEAD.is_match(it);
        if !ParsedCommand::of(of).is_setup() && sentences(text).iter().any(says) {
            self.abandoned_error = Some(self.errors.len() - 1);
        }
    }

    /// Once all tests passed and a commit followed: resolves earlier failures of these tests and of builds
    /// that they include.
    pub(in crate::facts::work) fn resolve_by_green_commit(
        &mut self,
        number: usize,
        command: &str,
        parsed: &ParsedCommand,
        committed: bool,
    ) {
        let whole = parsed.operations().into_iter().find(Operation::tests_all);
        if let Some(it) = whole {
            self.last_full_test_pass =
                Some((number, it.name, command::directory(command).map(str::to_owned)));
        }
        let Some((green, name, dir)) = self.last_full_test_pass.clone().filter(|_| committed) else { return };
        let head = |it: &str| it.split(' ').next().unwrap_or_default().to_owned();
        let program = head(&name);
        for error in self.errors.iter_mut().filter(|it| it.message < green) {
            let Some((text, Some(of), resolved)) = unresolved(error) else { continue };
            let failed = ParsedCommand::of(of).failed_operations(text);
            let included = |it: &Operation| {
                it.name == name
                    || COMPILERS.contains(&program.as_str())
                        && head(&it.name) == program
                        && it.name.split(' ').nth(1).is_some_and(|it| COMPILES.contains(&it))
            };
            let elsewhere = is_elsewhere(command::directory(of), dir.as_deref(), self.base);
            if !elsewhere && !failed.is_empty() && failed.iter().all(included) {
                *resolved = Some(green);
            }
        }
    }

    /// Records the operations that must succeed before an error of `command` may be gone.
    pub(in crate::facts::work) fn track_operations(&mut self, error: usize, command: &ParsedCommand) {
        /// Maximum number of errors that are kept per operation.
        const KEPT: usize = 64;
        let text = self.errors[error].text.to_string();
        let failed = command.failed_operations(&text);
        // With several candidates, which one failed (or even ran) is unknown.
        let certain = failed.len() == 1;
        for operation in failed {
            let known = self.maybe_resolved.entry(operation.name.clone()).or_default();
            let again = |it: &mut (usize, Operation)| {
                certain && operation.covers(&it.1) && !is_of_other_test(&text, &self.errors[it.0].text)
            };
            let again: Vec<_> = known.extract_if(.., again).collect();
            for (known, failed) in again {
                if let Detail::Error { similar, .. } = &mut self.errors[known].detail {
                    *similar = None;
                }
                // Only a check is tracked again: the next run of another program may be about something else.
                if failed.checks() {
                    self.pending_operations.entry(known).or_default().insert(operation.name.clone());
                    self.errors_by_operation.entry(operation.name.clone()).or_default().push((known, failed));
                }
            }
            self.pending_operations.entry(error).or_default().insert(operation.name.clone());
            let same = self.errors_by_operation.entry(operation.name.clone()).or_default();
            if same.len() == KEPT {
                same.remove(0);
            }
            same.push((error, operation));
        }
    }

    /// Records that `command` succeeded: errors whose operations have all succeeded since may be gone.
    pub(in crate::facts::work) fn record_success(
        &mut self,
        number: usize,
        command: &str,
        parsed: &ParsedCommand,
    ) {
        let here = command::directory(command);
        // With `--no-verify`, the hook that failed did not run.
        let skips = parsed.skips_hooks();
        for operation in parsed.operations().into_iter().filter(|it| !(skips && it.name.starts_with("git ")))
        {
            // A task includes its subtasks (`lint` runs `lint:types`), but `test` rarely `test:e2e`.
            let of_all = !operation.name.ends_with("test");
            let runs = |it: &&String| {
                let rest = it.strip_prefix(&operation.name);
                // A script run without arguments covers its runs with arguments.
                let of_script = operation.name.contains('.');
                rest.is_some_and(|it| {
                    it.is_empty() || of_all && it.starts_with(':') || of_script && it.starts_with(' ')
                })
            };
            let mut names: Vec<String> = self.errors_by_operation.keys().filter(runs).cloned().collect();
            names.sort_unstable();
            for name in names {
                self.end_errors(number, &name, &operation, here);
            }
        }
    }

    /// `operation` succeeded in directory `here`: errors of `name` that it covers no longer wait for `name`.
    fn end_errors(&mut self, number: usize, name: &str, operation: &Operation, here: Option<&str>) {
        let Some(same) = self.errors_by_operation.get_mut(name) else { return };
        let elsewhere = |error: usize| match &self.errors[error].detail {
            Detail::Error { of: Some(of), .. } => {
                !may_be_elsewhere(&self.errors[error].text)
                    && is_elsewhere(here, command::directory(of), self.base)
            }
            _ => false,
        };
        let (over, rest): (Vec<_>, _) =
            std::mem::take(same).into_iter().partition(|it| operation.covers(&it.1) && !elsewhere(it.0));
        *same = rest;
        for (error, failed) in over {
            let Some(left) = self.pending_operations.get_mut(&error) else { continue };
            left.remove(name);
            if left.is_empty() && self.pending_operations.remove(&error).is_some() {
                if let Detail::Error { similar, resolved: None, .. } = &mut self.errors[error].detail
                    && !QUERIES.contains(&name)
                {
                    *similar = Some(number);
                }
                self.maybe_resolved.entry(name.to_owned()).or_default().push((error, failed));
            }
        }
    }

    /// A check ran again, with whatever outcome: errors it prints still stand, errors it omits are resolved.
    pub(in crate::facts::work) fn resolve_absent(
        &mut self,
        number: usize,
        command: &str,
        parsed: &ParsedCommand,
        output: &str,
    ) {
        let lines = output.lines().count();
        // Only output with located errors proves that the checker ran at all.
        if !output.lines().any(|it| located(it.trim()).is_some()) {
            return;
        }
        let here = command::directory(command);
        let ran = parsed.operations();
        let base = self.base;
        for error in self.recent_errors() {
            let Fact { text, detail: Detail::Error { of: Some(of), resolved, .. }, .. } = error else {
                continue;
            };
            let Some((file, what)) = located(text) else { continue };
            // A script of several checks may have stopped before this one.
            if !output.lines().any(|it| located(it.trim()).is_some() && checker(it) == checker(text)) {
                continue;
            }
            let failed = ParsedCommand::of(of).failed_operations(text);
            let again = |it: &Operation| ran.iter().any(|run| run.name == it.name && run.covers(it));
            if is_elsewhere(here, command::directory(of), base) || !failed.iter().any(again) {
                continue;
            }
            if output.lines().any(|it| it.contains(file) && flat(it).contains(what)) {
                // Still there. That it was absent in between may be due to a syntax error elsewhere.
                *resolved = None;
            } else if resolved.is_none()
                && parsed.shows_all(lines, |search| command::lets_through(search, text))
            {
                *resolved = Some(number);
            }
        }
    }

    /// Takes back what message `number` resolved, if its output prints the error again: a script may catch it. A later
    /// success without it resolves the error.
    pub(in crate::facts::work) fn keep_printed_errors(&mut self, number: usize, output: &str) {
        /// Minimum bytes of an error that says what it is about.
        const DISTINCT: usize = 24;
        let mut printed: HashSet<usize> = HashSet::new();
        for (at, error) in self.errors.iter_mut().enumerate().rev().take(RECENT) {
            let Fact { text, detail: Detail::Error { resolved, similar, .. }, .. } = error else { continue };
            if *resolved != Some(number) && *similar != Some(number) {
                continue;
            }
            // `ValueError: bad input` may be printed as `result: bad input`.
            let class = |it: &&str| !it.contains(' ') && (it.ends_with("Error") || it.ends_with("Exception"));
            let said = text.split_once(": ").filter(|it| class(&it.0)).map_or(&**text, |it| it.1);
            if said.len() >= DISTINCT && output.contains(said) {
                (*resolved, *similar) = (None, None);
                printed.insert(at);
            }
        }
        if printed.is_empty() {
            return;
        }
        for (name, gone) in &mut self.maybe_resolved {
            for (error, operation) in gone.extract_if(.., |it| printed.contains(&it.0)) {
                self.pending_operations.entry(error).or_default().insert(name.clone());
                self.errors_by_operation.entry(name.clone()).or_default().push((error, operation));
            }
        }
    }

    /// Expects a retry of `command`, which failed with the error at index `error`.
    pub(in crate::facts::work) fn expect_retry(
        &mut self,
        error: usize,
        command: &str,
        parsed: &ParsedCommand,
    ) {
        /// Number of commands within which a failed one is retried.
        const TRIES: usize = 3;
        let mut steps: Vec<Vec<String>> =
            parsed.steps().iter().map(|it| it.iter().map(|it| (*it).to_owned()).collect()).collect();
        let text = &self.errors[error].text;
        // `git -C DIR` failed on DIR itself: git run elsewhere does not resolve that.
        if text.contains("cannot change to") {
            return;
        }
        // If a file is missing, only the steps that were given it have failed.
        let lacks =
            |it: &Vec<String>| it.iter().skip(1).any(|it| it.contains('/') && text.contains(it.as_str()));
        if MISSING_FILE.is_match(text) && steps.iter().any(lacks) {
            steps.retain(lacks);
        }
        if !steps.is_empty() {
            let dir = command::directory(command).map(str::to_owned);
            self.retries.push(Retry { error, left: TRIES, dir, steps, first: true });
        }
    }

    /// A command ran. If `ok`, its steps are removed from all expected retries; without steps left, an error
    /// is resolved.
    pub(in crate::facts::work) fn note_try(
        &mut self,
        number: usize,
        command: &str,
        parsed: &ParsedCommand,
        ok: bool,
    ) {
        let here = command::directory(command);
        let certain = ParsedCommand::of(command::surely_succeeded_part(command));
        let done = certain.steps();
        for retry in self.retries.iter_mut().filter(|_| ok) {
            let error = &mut self.errors[retry.error];
            let missing = MISSING_FILE.is_match(&error.text);
            let same_place = match (here, retry.dir.as_deref()) {
                (None, None) => true,
                (Some(a), Some(b)) => same_path(a, b),
                (None, Some(_)) | (Some(_), None) => false,
            };
            let one_unknown = here.is_none() != retry.dir.is_none();
            let again = |step: &Vec<String>| {
                let named = missing || step.iter().skip(1).any(|it| it.contains(['/', '.']));
                (same_place || one_unknown && named) && done.iter().any(|it| same_step(step, it, missing))
            };
            retry.steps.retain(|it| !again(it));
            let first = !parsed.is_read_only() && std::mem::take(&mut retry.first);
            let Some((_, of, resolved)) = unresolved(error) else { continue };
            let otherwise = || {
                let failed = of.map(ParsedCommand::of).filter(|it| first && !it.is_setup());
                !parsed.is_setup() && failed.is_some_and(|it| it.same_by_other_program(parsed))
            };
            if retry.steps.is_empty() || otherwise() {
                *resolved = Some(number);
            }
        }
        if !parsed.is_read_only() {
            self.retries.iter_mut().for_each(|it| it.left -= 1);
        }
        self.retries.retain(|it| it.left > 0 && !it.steps.is_empty());
    }

    pub(in crate::facts::work) fn recent_errors(&mut self) -> impl Iterator<Item = &mut Fact> {
        self.errors.iter_mut().rev().take(RECENT)
    }

    /// After a success: resolves recent wrong calls of its programs, or of a missing one that it replaces.
    pub(in crate::facts::work) fn resolve_wrong_calls(&mut self, number: usize, command: &ParsedCommand) {
        let names = command.names();
        for error in self.recent_errors().filter(|it| number.saturating_sub(it.message) <= NEAR) {
            let Some((text, Some(of), resolved)) = unresolved(error) else { continue };
            // A JSON syntax error is about data, not about the call.
            if !WRONG_CALL.is_match(text) || text.contains("JSON") {
                continue;
            }
            let failed = ParsedCommand::of(of);
            let missing = MISSING_PROGRAM.captures(text).and_then(|it| Some(it.get(1)?.as_str().to_owned()));
            let corrected = match &missing {
                Some(program) => {
                    failed.runs_under_other_name(program, command) || failed.goes_without(program, command)
                }
                None => failed.names().iter().any(|it| names.contains(it)),
            };
            if corrected {
                *resolved = Some(number);
            }
        }
    }

    /// A file was created: resolves errors about its absence.
    pub(in crate::facts::work) fn resolve_missing_file(&mut self, number: usize, path: &str) {
        if !path.contains(['.', '/']) {
            return;
        }
        let names = |word: &str| {
            let word = word.trim_start_matches("./").trim_end_matches(['.', ')', ']']);
            word == path || word.strip_suffix(path).is_some_and(|it| it.ends_with('/'))
        };
        for error in self.recent_errors() {
            let Some((text, _, resolved)) = unresolved(error) else { continue };
            let mut words = text.split(|c: char| c.is_whitespace() || "'\"`:,;(=[".contains(c));
            if MISSING_FILE.is_match(text) && words.any(names) {
                *resolved = Some(number);
            }
        }
    }

    /// A file was edited: resolves earlier edits of it that failed, and edits just before that named no file.
    pub(in crate::facts::work) fn resolve_edits(&mut self, number: usize, path: &str) {
        /// Tools that edit a file.
        const EDITS: [&str; 5] = ["Edit", "MultiEdit", "Write", "edit", "write"];
        for error in self.recent_errors() {
            let near = number.saturating_sub(error.message) <= NEAR;
            let Some((text, Some(of), resolved)) = unresolved(error) else { continue };
            let fits = match of.split_once(' ') {
                Some((tool, edited)) => {
                    let edits = matches!(tools::meaning(tool), Meaning::Edit | Meaning::Create);
                    // The same file from another directory: `src/a.rs` is not there, `tool/src/a.rs` is.
                    let below = || path.strip_suffix(edited).is_some_and(|it| it.ends_with('/'));
                    let same = edited == path || edited.contains('/') && may_be_elsewhere(text) && below();
                    same && (edits || is_misfit(text) || is_malformed(text))
                }
                None => near && EDITS.contains(&of) && is_malformed(text),
            };
            if fits {
                *resolved = Some(number);
            }
        }
    }
}

/// Whether an error is about a missing file, which may exist in another directory.
pub(in crate::facts::work) fn may_be_elsewhere(error: &str) -> bool {
    let lower = error.to_lowercase();
    lower.contains("no such file") || lower.contains("enoent")
}

/// Whether a program says that it was called wrongly, for instance with an unknown option.
pub(in crate::facts::work) fn is_wrong_call(output: &Output) -> bool {
    /// Bytes at the beginning of the output that are searched.
    const START: usize = 4_000;
    WRONG_CALL.is_match(clip(output.text.as_str(), START).0)
}

/// The file of a located checker error, and its error code or else its message.
pub(in crate::facts::work) fn located(error: &str) -> Option<(&str, &str)> {
    let found = LOCATED.captures(error)?;
    let (file, says) = (found.get(1)?.as_str(), found.get(2)?.as_str());
    // With these marks, a linter prints the location on a line of its own.
    if says.contains(['×', '✖', '✗', '❌']) {
        return None;
    }
    let code = ERROR_CODE.find(says).map_or(says, |it| it.as_str());
    Some((file, code))
}

/// Whether two errors are failures of different tests, by the names that test runners print.
fn is_of_other_test(a: &str, b: &str) -> bool {
    const MARKS: [&str; 5] = ["FAILED ", "--- FAIL: ", "(fail) ", "✖ ", "× "];
    let named = MARKS.iter().any(|it| a.starts_with(it) && b.starts_with(it));
    named && without_durations(a) != without_durations(b)
}

/// Whether two scripts are about the same: they share most of the words of the shorter one.
/// The program that runs an inline script, as written: `python3` and `/opt/env/bin/python3` have other modules.
fn interpreter(command: &str) -> Option<&str> {
    let runs = |it: &&str| {
        let name = file_name(it.trim_matches(['"', '\'']));
        ["python", "node", "ruby", "perl", "php"].iter().any(|program| name.starts_with(program))
    };
    command.split_whitespace().find(runs)
}

fn is_same_subject(a: &HashSet<&str>, b: &HashSet<&str>) -> bool {
    /// Fewer shared words may be a coincidence.
    const LEAST: usize = 3;
    let shared = a.intersection(b).count();
    shared >= LEAST && shared * 2 >= a.len().min(b.len())
}

/// Whether one path is a suffix of the other: the same file, seen from another directory.
fn same_path(a: &str, b: &str) -> bool {
    let plain = |it: &str| it.trim_start_matches(['.', '/']).trim_end_matches('/').to_owned();
    let (a, b) = (plain(a), plain(b));
    let ends = |long: &str, short: &str| {
        !short.is_empty() && long.strip_suffix(short).is_some_and(|it| it.is_empty() || it.ends_with('/'))
    };
    a == b || ends(&a, &b) || ends(&b, &a)
}

/// Whether two steps run the same program with the same arguments. `moved`: a file was missing, so that its
/// name in another directory counts as the same.
fn same_step(a: &[String], b: &[&str], moved: bool) -> bool {
    let same = |(a, b): (&String, &&str)| {
        a == b
            || a.contains(['/', '.']) && same_path(a, b)
            || moved && a.contains('/') && b.contains('/') && file_name(a) == file_name(b)
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// The kind of checker that an error names by its number or rule: `error TS2322`, `error eslint(sort-keys)`.
fn checker(error: &str) -> Option<&str> {
    static CHECKER: AsciiFirstRegex =
        AsciiFirstRegex::new(r"\b(?:error|warning) (TS)\d+|\b(?:error|warning) ([a-z][\w-]*)\([\w/-]+\)");
    CHECKER.captures(error).and_then(|it| it.get(1).map(|it| it.as_str()).or(it.get(2).map(|_| "linter")))
}

/// Whether an error only says that the file has what an edit wanted (Claude Code, pi).
pub(in crate::facts::work) fn changes_nothing(text: &str) -> bool {
    let starts = ["No changes to make: ", "No changes made to ", "No changes to apply: "];
    starts.iter().any(|it| text.starts_with(it))
}

/// Whether an error says that a tool rejected its arguments (Claude Code, pi).
fn is_malformed(text: &str) -> bool {
    text.starts_with("InputValidationError") || text.starts_with("Validation failed for tool")
}

/// Whether an error only says that an edit did not fit the file.
pub(crate) fn is_misfit(text: &str) -> bool {
    let start: String = text.chars().take(60).collect::<String>().to_lowercase();
    let start = start.trim_start_matches("error: ");
    let several = start.starts_with("found ") && start.contains(" matches of the string to replace");
    several || MISFITS.iter().any(|it| start.starts_with(it))
}
