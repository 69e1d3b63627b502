//! Errors that are settled once what failed succeeds again: the steps of a command, or its operations.

use std::collections::HashSet;

use super::resolution::{MISSING_FILE, may_be_elsewhere};
use super::{Errors, RECENT, unresolved};
use crate::facts::text::without_durations;
use crate::facts::work::command::{self, Operation, ParsedCommand, Run};
use crate::facts::work::paths::{file_name, is_elsewhere};
use crate::facts::{Detail, Fact};

/// Programs that run any query or script: the success of one says nothing about another.
const QUERIES: [&str; 6] = ["mongosh", "mysql", "psql", "redis-cli", "sqlite3", "ssh"];

/// Programs whose `test` also compiles the project, so that passing tests prove the build.
const COMPILERS: [&str; 7] = ["go", "cargo", "gradle", "gradlew", "mvn", "dotnet", "swift"];
/// Subcommands of [`COMPILERS`] that `test` includes.
const COMPILES: [&str; 5] = ["build", "check", "vet", "compile", "test"];

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

impl Errors<'_> {
    /// Expects a retry of a command that failed with the error at index `error`.
    pub(in crate::facts::work) fn expect_retry(&mut self, error: usize, run: &Run) {
        /// Number of commands within which a failed one is retried.
        const TRIES: usize = 3;
        let mut steps: Vec<Vec<String>> =
            run.parsed.steps().iter().map(|it| it.iter().map(|it| (*it).to_owned()).collect()).collect();
        let text = &self.facts[error].text;
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
            let dir = command::directory(run.command).map(str::to_owned);
            self.retries.push(Retry { error, left: TRIES, dir, steps, first: true });
        }
    }

    /// A command ran. If `ok`, its steps are removed from all expected retries; without steps left, an error
    /// is resolved.
    pub(in crate::facts::work) fn note_try(&mut self, run: &Run, ok: bool) {
        let Run { number, command, parsed, .. } = *run;
        let here = command::directory(command);
        let certain = ParsedCommand::of(command::surely_succeeded_part(command));
        let done = certain.steps();
        for retry in self.retries.iter_mut().filter(|_| ok) {
            let error = &mut self.facts[retry.error];
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

    /// Records the operations that must succeed before an error may be gone.
    pub(in crate::facts::work) fn track_operations(&mut self, error: usize, parsed: &ParsedCommand) {
        /// Maximum number of errors that are kept per operation.
        const KEPT: usize = 64;
        let text = self.facts[error].text.to_string();
        let failed = parsed.failed_operations(&text);
        // With several candidates, which one failed (or even ran) is unknown.
        let certain = failed.len() == 1;
        for operation in failed {
            let known = self.maybe_resolved.entry(operation.name.clone()).or_default();
            let again = |it: &mut (usize, Operation)| {
                certain && operation.covers(&it.1) && !is_of_other_test(&text, &self.facts[it.0].text)
            };
            let again: Vec<_> = known.extract_if(.., again).collect();
            for (known, failed) in again {
                if let Detail::Error { similar, .. } = &mut self.facts[known].detail {
                    *similar = None;
                }
                // Only a check is tracked again: the next run of another program may be about something else.
                if failed.checks() {
                    self.pending_operations.entry(known).or_default().insert(operation.name.clone());
                    self.by_operation.entry(operation.name.clone()).or_default().push((known, failed));
                }
            }
            self.pending_operations.entry(error).or_default().insert(operation.name.clone());
            let same = self.by_operation.entry(operation.name.clone()).or_default();
            if same.len() == KEPT {
                same.remove(0);
            }
            same.push((error, operation));
        }
    }

    /// A command succeeded: errors whose operations have all succeeded since may be gone.
    pub(in crate::facts::work) fn end_operations(&mut self, run: &Run) {
        let Run { number, command, parsed, .. } = *run;
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
            let mut names: Vec<String> = self.by_operation.keys().filter(runs).cloned().collect();
            names.sort_unstable();
            for name in names {
                self.end_errors(number, &name, &operation, here);
            }
        }
    }

    /// `operation` succeeded in directory `here`: errors of `name` that it covers no longer wait for `name`.
    fn end_errors(&mut self, number: usize, name: &str, operation: &Operation, here: Option<&str>) {
        let Some(same) = self.by_operation.get_mut(name) else { return };
        let elsewhere = |error: usize| match &self.facts[error].detail {
            Detail::Error { of: Some(of), .. } => {
                !may_be_elsewhere(&self.facts[error].text)
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
                if let Detail::Error { similar, resolved: None, .. } = &mut self.facts[error].detail
                    && !QUERIES.contains(&name)
                {
                    *similar = Some(number);
                }
                self.maybe_resolved.entry(name.to_owned()).or_default().push((error, failed));
            }
        }
    }

    /// Takes back what message `number` resolved, if its output prints the error again: a script may catch it. A later
    /// success without it resolves the error.
    pub(in crate::facts::work) fn keep_printed(&mut self, number: usize, output: &str) {
        /// Minimum bytes of an error that says what it is about.
        const DISTINCT: usize = 24;
        let mut printed: HashSet<usize> = HashSet::new();
        for (at, error) in self.facts.iter_mut().enumerate().rev().take(RECENT) {
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
                self.by_operation.entry(name.clone()).or_default().push((error, operation));
            }
        }
    }

    /// Once all tests passed and a commit followed: resolves earlier failures of these tests and of builds
    /// that they include.
    pub(in crate::facts::work) fn resolve_by_green_commit(&mut self, run: &Run, committed: bool) {
        let Run { number, command, parsed, .. } = *run;
        let whole = parsed.operations().into_iter().find(Operation::tests_all);
        if let Some(it) = whole {
            self.last_full_test_pass =
                Some((number, it.name, command::directory(command).map(str::to_owned)));
        }
        let Some((green, name, dir)) = self.last_full_test_pass.clone().filter(|_| committed) else { return };
        let head = |it: &str| it.split(' ').next().unwrap_or_default().to_owned();
        let program = head(&name);
        for error in self.facts.iter_mut().filter(|it| it.message < green) {
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

/// Whether two errors are failures of different tests, by the names that test runners print.
fn is_of_other_test(a: &str, b: &str) -> bool {
    const MARKS: [&str; 5] = ["FAILED ", "--- FAIL: ", "(fail) ", "✖ ", "× "];
    let named = MARKS.iter().any(|it| a.starts_with(it) && b.starts_with(it));
    named && without_durations(a) != without_durations(b)
}
