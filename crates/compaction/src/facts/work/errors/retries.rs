//! Failed commands that are expected to be tried again, step by step.

use super::resolution::MISSING_FILE;
use super::{Errors, unresolved};
use crate::facts::work::Run;
use crate::facts::work::command::{self, ParsedCommand};
use crate::facts::work::paths::file_name;

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
