//! Results in the output of git, issue trackers, Go programs and runners, other than exit codes and counts.

use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::{clip, flat};
use crate::facts::work::command::ParsedCommand;
use crate::facts::work::git::COMMITTED;

/// A Go program rejected an option, so that it did not run.
static WRONG_FLAG: AsciiFirstRegex = AsciiFirstRegex::new(
    r#"(?m)^(?:invalid value "[^"\n]*" for flag -|flag provided but not defined: -).*$"#,
);
/// Git, or a program built on it, says that a merge or rebase stopped.
static CONFLICT: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?m)^(?:CONFLICT \([\w/ ]+\): .*|error: could not apply [0-9a-f]{7,40}\b.*|⚠ Rebasing \S+ onto \S+ — conflict)$",
);
/// Git says that a rebase succeeded.
static PUSHED: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?m)^ [ +*] (?:[0-9a-f]{7,40}\.\.\.?[0-9a-f]{7,40}|\[new (?:branch|tag)\]) +\S+ -> \S+",
);
static REBASED: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?m)(?:^|\r|\x1b\[K)Successfully rebased and updated ");
/// An issue that a command-line tracker created (beads).
static CREATED: AsciiFirstRegex = AsciiFirstRegex::new(r"(?m)^\W*Created issue: (\S+)");
static PULL: AsciiFirstRegex = AsciiFirstRegex::new(r"https://\S+/(?:pull|merge_requests|issues)/\d+\b");

/// A runner's verdict of failure, whatever its exit code: `RESULT: FAIL (1/2)`, and those of Xcode, Go, Nx,
/// and scripts that run several checks.
static VERDICT: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?m)^\W{0,4}(?:(?:[Oo]verall|[Ff]inal) )?(?:RESULT|Result|result|VERDICT|Verdict): *(?:FAIL|Fail)[a-zA-Z]*\b.*$|^\*\* (?:TEST|BUILD|ARCHIVE) FAILED \*\*$",
    r"|^FAIL\s+\S+ \[(?:build|setup) failed\]$|^go: cannot .*$",
    r"|^No tests found, exiting with code [1-9].*$|^\W*ELIFECYCLE\W+(?:Test|Command) failed\b.*$",
    r"|^nginx: .* test failed\s*$|^\W*This is not the tsc command you are looking for\b.*$",
    r"|^\W*NX\W+Running target.* failed\s*$|^\W*(?:Some|[1-9]\d*) (?:\w+ ){0,2}checks failed\b[^(\n]*$",
    r"|^\W*(?:❌|✗) ?FAILED\b[^\n]*$",
));
/// GitHub's answer to a successful `ssh -T`, which exits with 1.
static AUTHENTICATED: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?m)^Hi \S+ You've successfully authenticated");
/// A yes-or-no question that a program drew, and whose answer it did not draw (create-next-app).
static DRAWN_QUESTION: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?:^|\W)\? .*\? [»›] (?:No / Yes|Yes / No)\s*$");
/// A yes-or-no question of a waiting program (npm, apt), with its default answer (pnpm) or buttons (Astro).
static QUESTION: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?:\? *(?:\([Yy]/[Nn]\)|\[[Yy]/[Nn]\])(?: *› *(?:true|false))?|[●○] Yes / [●○] No)\s*$",
);
/// The last line of prettier on findings, of Node.js after an exception, of make, of mise's tasks, and of pip in an
/// environment that it may not change.
static LAST_WORDS: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?:^|\n)\[warn\] Code style issues found in [^\n]*\s*$|\n\nNode\.js v\d+\.\d+\.\d+\s*$",
    r"|(?:^|\n)g?make(?:\[\d+\])?: \*\*\* [^\n]*(?:Error \d+|Stop\.)\s*$|\] ERROR task failed\s*$",
    r"|(?:^|\n)hint: See PEP 668 for the detailed specification\.\s*$",
));

/// The failed step of the run on GitHub that a command waited for: `X Health check`. Without `--exit-status`, the command
/// succeeds all the same.
pub(super) fn failed_run(command: &str, tail: &str) -> Option<String> {
    /// The mark, workflow and id of the run, above its jobs: `X main Deploy · 12`.
    static RUN: AsciiFirstRegex = AsciiFirstRegex::new(r"(?m)^\S .+ · \d+$");
    let (above, jobs) = tail.rsplit_once("\nJOBS\n").filter(|_| command.contains("gh run watch"))?;
    let failed = RUN.find_iter(above).last().is_some_and(|it| it.as_str().starts_with("X "));
    // Jobs are marked at the beginning of the line, their steps are indented.
    let marked =
        |indent: &str| jobs.lines().find_map(|it| it.strip_prefix(indent).filter(|it| it.starts_with("X ")));
    let step = failed.then(|| marked("  ").or_else(|| marked(""))).flatten()?;
    Some(step.trim_end().to_owned())
}

/// Whether the last line says that the command failed, whatever exit code is reported.
pub(super) fn ends_as_failed(text: &str) -> bool {
    LAST_WORDS.is_match(text)
}

/// Whether the text ends with a question that got no answer, not even from piped input.
pub(super) fn ends_unanswered(text: &str) -> bool {
    DRAWN_QUESTION.is_match(text)
}

/// Whether the text ends with a question at which a program waits.
pub(super) fn ends_in_question(text: &str) -> bool {
    QUESTION.is_match(text)
}

/// Whether an exit code of 1 only means that GitHub gives no shell.
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

/// The line with which a Go program rejects an option, if it did.
pub(in crate::facts::work) fn wrong_flag(command: &str, text: &str) -> Option<String> {
    let found = WRONG_FLAG.find(text).filter(|_| command.contains("go "))?;
    Some(found.as_str().to_owned())
}

/// The line that says where a merge or rebase of `command` stopped.
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

/// Whether git says that it pushed a branch or tag: `   1a2b3c4..5d6e7f8  main -> main`.
pub(super) fn is_pushed(text: &str) -> bool {
    // `main -> origin/main` is what a fetch prints. Of several pushes, one may have failed.
    let pushed = PUSHED.find_iter(text).any(|it| !it.as_str().contains("-> origin/"));
    pushed && !text.lines().any(|it| it.starts_with("fatal: "))
}

/// `committed ` with the hashes of the commits that a command made, and the branch of the last one.
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

/// The URL of a pull request or issue.
pub(super) fn pull_request(text: &str) -> Option<String> {
    Some(PULL.find(text)?.as_str().to_owned())
}

/// Whether a text is a client's placeholder for empty output.
pub(in crate::facts::work) fn says_nothing(text: &str) -> bool {
    let lower = clip(text, 60).0.to_lowercase();
    text.lines().count() == 1
        && (lower.starts_with("(no output") || lower == "(bash completed with no output)")
}

/// The scripts of a package that npm or pnpm says it runs, `> pump@1.0.0 lint`, and, if the command runs a package's
/// script, those in what it says it runs: `$ pnpm lint && pnpm test`.
pub(in crate::facts::work) fn package_scripts(command: &ParsedCommand, text: &str) -> Vec<String> {
    static SCRIPT: AsciiFirstRegex =
        AsciiFirstRegex::new(r"(?m)^> (?:@[\w.-]+/)?[\w.-]+@\d\S* ([\w:.-]+)(?: [/~]\S*)?$");
    static CHAIN: AsciiFirstRegex =
        AsciiFirstRegex::new(r"(?m)^\$ ((?:p?npm|yarn|bun) [\w:. -]+(?: && [\w:. -]+)*)$");
    let text = clip(text, 20_000).0;
    let named = SCRIPT.captures_iter(text).filter_map(|it| Some(format!("npm run {}", it.get(1)?.as_str())));
    let echoed = if command.runs_package_script() { text } else { "" };
    let chained = CHAIN.captures_iter(echoed).filter_map(|it| Some(it.get(1)?.as_str()));
    named.chain(chained.flat_map(|it| it.split(" && ")).map(str::to_owned)).collect()
}
