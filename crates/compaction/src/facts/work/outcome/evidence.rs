//! What the signs in an output say together: whether the command succeeded, with which result, and why it failed.

use super::counts::{Counts, checked_nothing, packages_failed, packages_passed};
use super::error_line::{ErrorLine, first_line, is_informative, panic_location, raised};
use super::printed::{ends_as_failed, is_authenticated, is_pushed, is_rebased, pull_request};
use super::{CHECKED_NOTHING, TIMEOUT, UNANSWERED, is_error_object, starts_as_fatal};
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::work::command::{ParsedCommand, lets_through};

/// Errors of a shell or interpreter that could not start the command.
static COULD_NOT_START: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?m)^\S.*: (?:No module named \S+|command not found|(?:\[Errno 2\] )?[Nn]o such file or directory|error: (?:unrecognized|unexpected) .*)$",
);
/// The last line of a Python that did not find its script.
static NO_SCRIPT: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?:\A|\n)\S*python[\d.]*(?:\.exe)?: can't open file [^\n]*\s*\z");
/// Zsh found no file for a pattern.
static NO_MATCH: AsciiFirstRegex = AsciiFirstRegex::new(r"^(?:zsh|\(eval\)):(?:\d+:)? ?no matches found: ");
/// A program that the shell did not find.
static NOT_FOUND: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?m)^(?:/\S*/)?(?:zsh|(?:ba|da)?sh|\(eval\))(?:\.exe)?:(?: ?(?:line )?\d+:)? ",
    r"(?:command not found: (\S+)|(\S+): (?:command )?not found)\s*$",
));
/// An output that consists of a permission error.
static DENIED: AsciiFirstRegex =
    AsciiFirstRegex::new(r"^[^\n]*(?:: |\()(?:Operation not permitted|[Pp]ermission denied)\)?$");

/// What an output says about how its command ended.
pub(super) struct Evidence<'a> {
    pub(super) command: &'a str,
    pub(super) parsed: &'a ParsedCommand,
    pub(super) head: &'a str,
    pub(super) tail: &'a str,
    /// The agent marks the output as failed.
    pub(super) marked_failed: bool,
    /// An output that is not marked as failed means exit code 0.
    pub(super) unmarked_means_success: bool,
    /// Exit code, unless it is the 0 of `head` at the end of a pipe, or of `true`.
    pub(super) exit: Option<i32>,
    /// The output states an exit code.
    pub(super) printed: bool,
    /// The command discards its exit code.
    pub(super) hidden: bool,
    /// The exit code may be that of another program in a pipe or list.
    pub(super) masked: bool,
    /// The output is that of a script in Codex's code mode.
    pub(super) of_script: bool,
    /// The command prints files or logs: errors in them did not occur here.
    pub(super) prints_contents: bool,
    /// A look at what the command itself removed found nothing, as it should.
    pub(super) missing_as_meant: bool,
    pub(super) error: Option<(String, ErrorLine)>,
    pub(super) counts: Option<Counts>,
    pub(super) commits_made: Option<String>,
    /// The issue created, or the number that a counting command printed.
    pub(super) created_or_count: Option<String>,
    pub(super) wrong_flag: Option<String>,
    pub(super) conflict: Option<String>,
    /// What would show how it ended was filtered out.
    pub(super) tells_nothing: bool,
    /// The output ends where a program waits for an answer.
    pub(super) asks: bool,
    /// The failed step of a run on GitHub that it waited for.
    pub(super) failed_run: Option<String>,
    /// The line with which a runner says that what it ran failed.
    pub(super) failure_line: Option<String>,
}

impl Evidence<'_> {
    fn refused_push(&self) -> bool {
        !self.prints_contents
            && self.command.contains("push")
            && self.tail.contains("error: failed to push some refs")
    }

    /// Whether git did not know a path argument.
    fn lacks_path(&self) -> bool {
        let git = || self.parsed.programs().any(|it| it[0] == "git");
        self.tail.trim_end().ends_with("' did not match any file(s) known to git") && git()
    }

    /// Whether a check of a pull request failed.
    fn lists_failed_check(&self) -> bool {
        self.command.contains("gh pr checks") && self.tail.lines().any(|it| it.contains("\tfail\t"))
    }

    /// Whether the line of a failed package would pass the command's filters (Go).
    fn shows_failures(&self) -> bool {
        let through = |search: &[&str]| lets_through(search, "FAIL\tx\t0.1s");
        self.parsed.shows_all(self.tail.lines().count(), through)
    }

    /// `size`: bytes of the whole output.
    pub(super) fn result(&self, size: usize) -> Option<String> {
        let nothing = !self.prints_contents && checked_nothing(self.tail, self.counts.as_ref());
        // A filter may have cut off what was tested before.
        let all = || self.parsed.shows_all(self.tail.lines().count(), |_| false);
        self.commits_made
            .clone()
            .or_else(|| self.created_or_count.clone())
            .or_else(|| (nothing && all()).then(|| CHECKED_NOTHING.into()))
            .or_else(|| self.counts.as_ref().filter(|_| !nothing).map(|it| it.shown.clone()))
            .or_else(|| self.failure_line.clone())
            .or_else(|| pull_request(self.tail).filter(|_| size < 2_000))
            .or_else(|| self.asks.then(|| UNANSWERED.into()))
    }

    /// Whether it is Robocopy, which says by an exit code below 8 what it copied.
    fn copied(&self) -> bool {
        let last = self.parsed.programs().last();
        self.error.is_none() && last.is_some_and(|it| it[0].eq_ignore_ascii_case("robocopy"))
    }

    pub(super) fn succeeded(&self, has_result: bool) -> Option<bool> {
        let counts = self.counts.as_ref();
        let failed_count = counts.is_some_and(|it| it.failed);
        let failures = self.refused_push()
            || failed_count
            || self.failure_line.is_some()
            || packages_failed(self.tail)
            || self.lacks_path()
            || self.lists_failed_check()
            || ends_as_failed(self.tail);
        let passes = counts.is_some_and(|it| !it.failed && it.tests)
            || self.error.is_none() && packages_passed(self.tail) && self.shows_failures();
        let kind = self.error.as_ref().map(|it| it.1);
        let test_failed = kind == Some(ErrorLine::Test) || counts.is_some_and(|it| it.failed && it.tests);
        // A search without matches exits with 1, a look at what the command removed with 2.
        let asks = self.parsed.hides_failure() || self.error.is_none() && self.parsed.exits_1_on_no_match();
        let nothing_found = self.missing_as_meant
            || self.exit == Some(1) && (asks || is_authenticated(self.parsed, self.head));
        if nothing_found && kind.is_none() && !failures {
            return None;
        }
        match self.exit {
            Some(1..8) if self.copied() => return Some(true),
            _ if self.marked_failed || self.failed_run.is_some() => return Some(false),
            Some(code) if code != 0 => return Some(false),
            // The runner exited with 0, but its verdict says that what it ran failed.
            Some(_) if self.failure_line.is_some() && !self.masked => return None,
            Some(_) if !self.masked => return Some(true),
            _ => {}
        }
        let kind = kind.filter(|_| !self.prints_contents);
        let first = self.head.trim();
        let not_found = self.not_found();
        let could_not_start = self.could_not_start(first, not_found);
        // `head` at the end of the pipe hides the exit code of a program whose output states a failure.
        let cut_off = self.parsed.ends_in_viewer()
            && (starts_as_fatal(self.head) || !self.prints_contents && first.starts_with("Error: "));
        let ok = match self.exit {
            _ if self.masked && could_not_start => Some(false),
            None if cut_off => Some(false),
            None if is_error_object(first) => None,
            None if self.unmarked_means_success && !self.masked && self.failure_line.is_none() => Some(true),
            _ if self.refused_push() => Some(false),
            // A program before the commit did not run: with a commit, the outcome of the whole is unknown.
            _ if self.wrong_flag.is_some() => self.commits_made.is_none().then_some(false),
            // A conflict or failed test counts even if a commit was made beside it.
            _ if !self.prints_contents && (self.conflict.is_some() || self.masked && test_failed) => {
                Some(false)
            }
            _ if self.commits_made.is_some() => Some(true),
            _ if !self.prints_contents && is_rebased(self.command, self.tail) => Some(true),
            _ if failures && !self.prints_contents => Some(false),
            _ if self.parsed.only_delivers() && is_pushed(self.tail) => Some(true),
            // Another program of the command may have succeeded.
            _ if not_found.is_some() => None,
            _ if passes && !self.prints_contents => Some(true),
            // A failed test or compiler error counts, whatever ran after it.
            _ if kind.is_some_and(|it| it < ErrorLine::Message) => Some(false),
            _ if self.hidden || self.asks || self.shows_failed_part() => None,
            _ if !has_result && self.parsed.hides_check(!first.is_empty()) => None,
            Some(_) => Some(has_result || kind.is_none_or(|it| it < ErrorLine::Mark)),
            None if kind.is_some_and(|it| it != ErrorLine::Phrase) => Some(false),
            // The result of a script or pipe is unknown.
            None => (self.unmarked_means_success
                && !(self.masked && (self.prints_contents || self.of_script)))
                .then_some(true),
        };
        // Counted issues may mean that the program before a pipe failed.
        let uncertain = counts.is_some_and(|it| it.issues || it.failed)
            && self.masked
            && !self.prints_contents
            && !self.printed
            && self.commits_made.is_none()
            && self.created_or_count.is_none();
        ok.filter(|it| !(*it && (uncertain || self.tells_nothing && !passes && !has_result)))
    }

    /// Whether one of several programs says that it did not do its work, though the last one succeeded.
    fn shows_failed_part(&self) -> bool {
        let says = |line: &str| {
            line.starts_with("Error response from daemon: ")
                || line.starts_with("SCRIPT ERROR: ")
                || line.starts_with("✖ Failed to ")
                || NO_MATCH.is_match(line)
                || line.starts_with("Node.js v") && line.contains(" is not supported")
        };
        self.masked && !self.prints_contents && self.tail.lines().any(|it| says(it.trim_start()))
    }

    /// Whether the output, of which `first` is the beginning, only says that nothing ran. `not_found`: see
    /// [`Self::not_found`].
    fn could_not_start(&self, first: &str, not_found: Option<bool>) -> bool {
        let says = || COULD_NOT_START.is_match(first) || NO_MATCH.is_match(first);
        first.lines().count() <= 2 && !self.looks_for_program() && says()
            || not_found == Some(true)
            || self.crashes()
            || self.lacks_package(first)
            || !self.prints_contents && (DENIED.is_match(first) || NO_SCRIPT.is_match(self.tail))
    }

    /// Whether its first program is one of Python and ended with an exception.
    fn crashes(&self) -> bool {
        let prepares = |it: &Vec<&str>| it[0] == "cd" || it[0].contains('=');
        let first = self.parsed.programs().find(|it| !prepares(it));
        let is_python =
            |it: Vec<&str>| it[0].contains("python") || ["uv", "poetry", "pytest"].contains(&it[0]);
        // Another program may have run in its place, or its failure may be meant.
        let alone = !self.parsed.hides_failure() && !self.command.trim_start().starts_with('!');
        alone
            && self.head.trim_start().starts_with("Traceback (most recent call last):\n")
            && first.is_some_and(is_python)
    }

    /// Whether the program before a pipe says that it found nothing to run (Dart).
    fn lacks_package(&self, first: &str) -> bool {
        let piped = self.parsed.pipes().any(|it| it.1);
        piped
            && !self.prints_contents
            && !first.contains('\n')
            && first.starts_with("Could not find package ")
    }

    /// Whether it only finds out that a program is missing: `gauge --version || true`.
    fn looks_for_program(&self) -> bool {
        self.parsed.hides_failure() && self.head.lines().count() == 1 && NOT_FOUND.is_match(self.head)
    }

    /// `None` if the shell found every program that must be there; `Some(true)` if its messages are the only informative
    /// lines.
    fn not_found(&self) -> Option<bool> {
        let found = NOT_FOUND.captures(self.head).filter(|_| self.masked && !self.looks_for_program())?;
        let name = found.get(1).or_else(|| found.get(2))?.as_str();
        let mut words = self.command.split(|it: char| it.is_whitespace() || "|;&()\"'`".contains(it));
        let is_run = words.any(|it| it == name || it.rsplit('/').next() == Some(name));
        let alone = self.head.lines().filter(|it| is_informative(it)).all(|it| NOT_FOUND.is_match(it));
        (is_run && (alone || !self.parsed.hides_failure())).then_some(alone)
    }

    /// The line that says why it failed.
    pub(super) fn cause(&self) -> Option<String> {
        let raised = || raised(self.tail).or_else(|| raised(self.head));
        let line = match &self.error {
            Some((line, kind)) if *kind < ErrorLine::Phrase => Some(line.clone()),
            Some((line, _)) => raised().or_else(|| Some(line.clone())),
            None => raised().or_else(|| first_line(self.head).filter(|_| self.failure_line.is_none())),
        };
        // `timeout` exits with 124 when it stops a program.
        let stopped = self.exit == Some(124) && self.command.split_whitespace().any(|it| it == "timeout");
        let line = if stopped { Some(TIMEOUT.into()) } else { line };
        let told = self.failed_run.clone().or_else(|| self.wrong_flag.clone());
        let told = told.or_else(|| self.conflict.clone()).or(line);
        // A hook that refused a push may have printed no reason.
        let told = told.or_else(|| self.refused_push().then(|| "the push was refused".into()))?;
        let panic = panic_location(&told, self.head).or_else(|| panic_location(&told, self.tail));
        Some(panic.unwrap_or(told))
    }
}
