//! What git, trackers of issues and programs of Go print of their result, beside exit codes and counts.

use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::{clip, flat};
use crate::facts::work::command::ParsedCommand;
use crate::facts::work::git::COMMITTED;

/// A program of Go was given a flag that it does not take, so that it did not run.
static WRONG_FLAG: AsciiFirstRegex = AsciiFirstRegex::new(
    r#"(?m)^(?:invalid value "[^"\n]*" for flag -|flag provided but not defined: -).*$"#,
);
/// Where git, and programs over it, say that a merge or rebase stopped.
static CONFLICT: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?m)^(?:CONFLICT \([\w/ ]+\): .*|error: could not apply [0-9a-f]{7,40}\b.*|⚠ Rebasing \S+ onto \S+ — conflict)$",
);
/// The end of a rebase (git).
static REBASED: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?m)(?:^|\r|\x1b\[K)Successfully rebased and updated ");
/// An issue that a tracker on the command line created (beads).
static CREATED: AsciiFirstRegex = AsciiFirstRegex::new(r"(?m)^\W*Created issue: (\S+)");
static PULL: AsciiFirstRegex = AsciiFirstRegex::new(r"https://\S+/(?:pull|merge_requests|issues)/\d+\b");

/// The verdict of a runner that failed, whatever its exit code: `RESULT: FAIL (1/2)`, that of Xcode, of Go, of Nx, and
/// of what runs several checks.
static VERDICT: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?m)^\W{0,4}(?:(?:[Oo]verall|[Ff]inal) )?(?:RESULT|Result|result|VERDICT|Verdict): *(?:FAIL|Fail)[a-zA-Z]*\b.*$|^\*\* (?:TEST|BUILD|ARCHIVE) FAILED \*\*$",
    r"|^FAIL\s+\S+ \[(?:build|setup) failed\]$|^go: cannot .*$",
    r"|^\W*NX\W+Running target.* failed\s*$|^\W*(?:Some|[1-9]\d*) (?:\w+ ){0,2}checks failed\b[^(\n]*$",
));
/// What GitHub's shell access ends with, with exit code 1.
static AUTHENTICATED: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?m)^Hi \S+ You've successfully authenticated");
/// A question for yes or no that a program waits at (npm, apt), with the answer that it would take (pnpm), or with
/// buttons (Astro).
static QUESTION: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?:\? *(?:\([Yy]/[Nn]\)|\[[Yy]/[Nn]\])(?: *› *(?:true|false))?|[●○] Yes / [●○] No)\s*$",
);
/// The last line of prettier when it found something, of Node.js after an exception, of make, and of mise's tasks.
static LAST_WORDS: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?:^|\n)\[warn\] Code style issues found in [^\n]*\s*$|\n\nNode\.js v\d+\.\d+\.\d+\s*$",
    r"|(?:^|\n)g?make(?:\[\d+\])?: \*\*\* [^\n]*(?:Error \d+|Stop\.)\s*$|\] ERROR task failed\s*$",
));

/// Whether its last line says that it failed, whatever exit code is left of it.
pub(super) fn ends_as_failed(text: &str) -> bool {
    LAST_WORDS.is_match(text)
}

/// Whether it ends where a program waits for an answer.
pub(super) fn ends_in_question(text: &str) -> bool {
    QUESTION.is_match(text)
}

/// Whether an exit code of 1 only says that GitHub gives no shell.
pub(super) fn is_authenticated(command: &ParsedCommand, text: &str) -> bool {
    let last = command.programs().last();
    last.is_some_and(|it| it[0] == "ssh" && it.contains(&"-T")) && AUTHENTICATED.is_match(text)
}

/// The line with which a runner says that what it ran failed.
pub(super) fn failed_verdict(text: &str) -> Option<String> {
    /// Maximum bytes of the line.
    const LINE: usize = 100;
    // A colon would begin the error in a line of the summary.
    Some(flat(clip(VERDICT.find(text)?.as_str().trim(), LINE).0).replace(": ", " "))
}

/// Why a program of Go did not run, if that was for a flag.
pub(in crate::facts::work) fn wrong_flag(command: &str, text: &str) -> Option<String> {
    let found = WRONG_FLAG.find(text).filter(|_| command.contains("go "))?;
    Some(found.as_str().to_owned())
}

/// Where a merge or rebase of `command` stopped.
pub(super) fn conflict(command: &str, text: &str) -> Option<String> {
    let merges = ["merge", "rebase", "cherry-pick", "revert", "pull", "stash", " am "];
    let found = CONFLICT.find(text).filter(|_| merges.iter().any(|it| command.contains(it)))?;
    Some(found.as_str().trim().to_owned())
}

/// Whether an error is that a merge or rebase stopped.
pub(in crate::facts::work) fn is_conflict(error: &str) -> bool {
    CONFLICT.is_match(error)
}

pub(super) fn is_rebased(command: &str, text: &str) -> bool {
    command.contains("rebase") && REBASED.is_match(text)
}

/// The commits that a command made, on the branch of the last.
pub(super) fn commits_in(text: &str) -> Option<String> {
    /// Maximum number of commits that are named.
    const NAMED: usize = 8;
    let made: Vec<_> = COMMITTED.captures_iter(text).collect();
    let branch = made.last()?.get(1)?.as_str();
    let newest = &made[made.len().saturating_sub(NAMED)..];
    let hashes: Vec<&str> = newest.iter().filter_map(|it| Some(it.get(2)?.as_str())).collect();
    Some(format!("committed {} on {branch}", hashes.join(", ")))
}

/// `created ` and the id of the issue.
pub(super) fn created_issue(text: &str) -> Option<String> {
    Some(format!("created {}", CREATED.captures(text)?.get(1)?.as_str()))
}

/// The address of a pull request or issue.
pub(super) fn pull_request(text: &str) -> Option<String> {
    Some(PULL.find(text)?.as_str().to_owned())
}
