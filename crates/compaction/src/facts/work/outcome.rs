//! The outcome of a command, read from its output: exit code, counts, error line.

use std::sync::LazyLock;

use super::command::{self, ParsedCommand};
use super::counts::{checked_nothing, conflict, counts_in, created_issue, is_rebased, wrong_flag};
use super::git::COMMITTED;
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::{clip, flat, without_escapes};
use history::Output;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Whether it succeeded, if known.
    pub ok: Option<bool>,
    /// Its exit code, if known.
    pub exit: Option<i32>,
    /// Counts or other results as printed: `12 passed, 1 failed`, `committed a1b2c3d`.
    pub result: Option<String>,
    pub error: Option<String>,
    /// Session id, if it continues in the background (Codex).
    pub running: Option<String>,
}

static HEADER: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::new(
        r"^(?:Chunk ID: |Exit code: |Wall time: |Script completed\n|Process exited with code )[^\x00]*?\nOutput:\n",
    )
});
/// Numbered lines of code, as viewers print them: not an error message.
static NUMBERED: LazyLock<AsciiFirstRegex> = LazyLock::new(|| AsciiFirstRegex::new(r"^\s*\d+\s*[:|→\t]"));

/// The result of a checker that found nothing to check.
pub(super) const CHECKED_NOTHING: &str = "checked nothing";

/// Bytes that are read at each end of an output.
const END_BYTES: usize = 8_000;

static EXIT: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::new(concat!(
        r#"(?im)(?:^\s*|[\[(<. "])(?:process exited with code|command exited with code|exit code|exit_code|exited with code"#,
        r#"|exit status|returncode|return code|completed with exit code|finished with exit code)[":>=\s]*\(?(-?\d{1,5})\b"#,
    ))
});
/// Continues in the background, with its id (Codex 0.169, Claude Code 2.1).
static RUNNING: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::new(
        r"(?m)^(?:Process running with session ID |Command running in background with ID: |Command did not complete .*moved to the background \(ID: )(\w+)",
    )
});
/// An exit code that a command prints itself: `EXIT: 2`, `exit=0`, `rc=1`.
static PRINTED_EXIT: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::new(
        r"(?im)^\W*(?:[\w-]+[ _-])?(?:exit(?:[ _]?(?:code|status))?|rc|status)\s*[:=]\s*(-?\d{1,3})\s*\W*$",
    )
});
/// Lines of code and diffs: an error in them did not occur in this run.
static CODE: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::new(concat!(
        r"^\s*(?:(?:[-+]\s*)?(?:\}?\s*(?:except|catch)\b|raise\b|throw\b|return\b|if\b|elif\b|const\b|let\b|var\b|//|\*\s|<!--|#\s)",
        r"|[-+] ?[\w$./-]+=|@@ )|^[\w./\\@\[\]-]+\.\w+[:-]\d+[:-](?:\d+:)?\s*(?:except|catch|raise|throw|return|if|const|let|var|//|#|\*)\b",
    ))
});
/// Progress lines and separators.
static PROGRESS: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::new(concat!(
        r"^(?:[=*#~+_-]{3,}|[✓✔√] |(?:Already|Switched to|On branch|HEAD is now|Building|Built|Compiling|Checking|Creating|Downloading|Downloaded|Fetching|Finished|Installed|Installing|",
        r"Locking|Prepared|Resolved|Resolving|Running|Uninstalled|Updating|Using|Audited|Collecting|Cloning|Generating|yarn run|make\[?\d*\]?: (?:Entering|Leaving))\b)",
    ))
});
/// Errors of a shell or interpreter that could not start the command.
static COULD_NOT_START: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::new(
        r"(?m)^\S.*: (?:No module named \S+|command not found|[Nn]o such file or directory|error: (?:unrecognized|unexpected) .*)$",
    )
});
static PULL: LazyLock<AsciiFirstRegex> =
    LazyLock::new(|| AsciiFirstRegex::new(r"https://\S+/(?:pull|merge_requests|issues)/\d+\b"));
/// What kind of line states an error, the most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ErrorLine {
    /// A failed test: its name says more than what its assertion printed.
    Test,
    /// An error of a compiler, with the location.
    Compiler,
    /// A checker that crashed.
    Crash,
    Message,
    /// A phrase that a program which succeeds may print too.
    Phrase,
    /// Only marks a failure: beside an exit code of 0 it means nothing.
    Mark,
    /// A runner of hooks names the failed hook; the failure is printed below.
    Hook,
}

static ERROR_LINES: LazyLock<[(ErrorLine, AsciiFirstRegex); 7]> = LazyLock::new(|| {
    [
        (
            ErrorLine::Test,
            AsciiFirstRegex::new(
                r"(?m)^(?:\(fail\) |--- FAIL: |FAILED \S+::|test \S+ \.\.\. FAILED|not ok \d+ |\s*\d+ - \S+ \((?:Failed|Timeout)\))",
            ),
        ),
        (
            ErrorLine::Compiler,
            AsciiFirstRegex::new(
                r"(?m)^\s*[^\s:(]+[(:]\d+(?:[,:]\d+\)?)?:? (?:- )?(?:fatal )?error\b(?:: | TS\d)|^[A-Z]{1,4}\d{3,4} (?:\[\*\] )?[A-Z`]",
            ),
        ),
        (ErrorLine::Crash, AsciiFirstRegex::new(r"(?m)^Oops! Something went wrong! :\($")),
        (
            ErrorLine::Message,
            AsciiFirstRegex::new(concat!(
                r"(?m)(?:^|\s)(?:(?:error(?:\[\w+\])?|Error|[a-z]\w*[a-z](?:Error|Exception)|\w+\.?\w*(?:Error|Exception)):(?:[^:\n]|$)|Error \[[A-Z][A-Z0-9_]+\]:|ERROR\b|fatal:|FATAL\b|panic:",
                r"|error TS\d+|thread '.*' (?:\(\d+\) )?panicked|CONFLICT|! \[(?:remote )?rejected\]|AssertionError|SyntaxError|undefined reference",
                r"|npm (?:ERR!|error)|TypeError)",
            )),
        ),
        (
            ErrorLine::Phrase,
            AsciiFirstRegex::new(concat!(
                r"(?m)(?:command not found|[Nn]o such file or directory|[Pp]ermission denied|[Nn]ot found|[Cc]annot |[Cc]ould not |[Ff]ailed to |[Uu]nable to |[Ii]llegal option",
                r"|unrecognized|unexpected argument|is not recognized|declared and not used|undefined:|timed out|rejected|[Aa]ssertion .*failed|did not match|build failed|non-fast-forward|^\S+\.\w+:\d+:\d+: \S)",
            )),
        ),
        (
            ErrorLine::Mark,
            AsciiFirstRegex::new(r"(?m)^\s*(?:FAIL\b|--- FAIL|✗|✖|❌|×|not ok\b|FAILED\b|E\s{2,})"),
        ),
        (
            ErrorLine::Hook,
            AsciiFirstRegex::new(r"(?m)^.*\.{3,}\s*Failed\s*$|^\w*make(?:\[\d+\])?: \*\*\* .*Error \d+$"),
        ),
    ]
});
/// Lines that say no more than that something failed.
static UNINFORMATIVE: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::new(
        r"(?i)^\W*(?:debugger attached.*|waiting for the debugger.*|chunk id.*|wall time.*|> .*|\[[\w:-]+\] \$ .*|error: script \S+ exited with code \d+|error: failed to push some refs to .*|husky - .*failed.*|\[\w+\] error task failed|exit code:? -?\d+|error|fail(?:ed)?|errors?:|command exited with code \d+|process exited with code \d+|command aborted|npm (?:err!|error)(?: (?:errno|path|lifecycle|workspace|location|command)\b.*)?)\W*$",
    )
});

/// Reads the output of `command`. A reported exit code counts first; where it may be that of another program in a pipe
/// or list, the runner's summary line is next. `reports`: an output that is not marked as failed means exit code 0.
pub(in crate::facts) fn read(output: &Output, command: &str, reports: bool) -> Outcome {
    let text = output.text.as_str();
    let (head, tail) = ends(text);
    let parsed = ParsedCommand::of(command);
    let removed = |it: &&str| parsed.says_what_it_removed(it);
    let as_meant = tail.lines().any(|it| removed(&it)) && parsed.ends_in_a_look();
    let without = |it: &str| -> String {
        let kept: Vec<&str> = it.split_inclusive('\n').filter(|it| !removed(it)).collect();
        kept.concat()
    };
    let (head, tail) = (without(&without_escapes(head)), without(&without_escapes(tail)));
    // In Codex's code mode this is the result of the script, not of the command in it.
    let masked = command::is_compound(command) || text.starts_with("Script completed\n");
    let shows = parsed.prints_contents();
    let printed = exit_code(&head, &tail, !shows && (masked || output.failed || !reports));
    let printed = printed.or_else(|| printed_exit_code(command, &tail));
    let hidden = printed.is_none() && command::masks_exit_code(command);
    let mut out =
        Outcome { exit: printed.filter(|it| *it != 0).or(output.exit).or(printed), ..Outcome::default() };
    if let Some(found) = RUNNING.captures(&head) {
        out.running = found.get(1).map(|it| it.as_str().into());
        return out;
    }
    // Codex's header is not the command's output.
    let head = &head[HEADER.find(&head).map_or(0, |it| it.end())..];
    let counts = counts_in(&tail).or_else(|| counts_in(head));
    // A task runner (mise) names the failed task last.
    let task = tail.trim_end().lines().last().is_some_and(|it| it.ends_with("] ERROR task failed"));
    let refused_push = !shows && command.contains("push") && tail.contains("error: failed to push some refs");
    let failures = task || refused_push || counts.as_ref().is_some_and(|it| it.failed);
    let wrong = [error_line(head), error_line(&tail)].into_iter().flatten().min_by_key(|it| it.1);
    // Errors in a file or log that is printed did not occur here.
    let telling = wrong.as_ref().filter(|_| !shows);
    let refused = head.trim().lines().count() <= 2 && COULD_NOT_START.is_match(head.trim());
    let committed = commits_in(head).or_else(|| commits_in(&tail));
    let misused = wrong_flag(command, head).or_else(|| wrong_flag(command, &tail));
    let passes = counts.as_ref().is_some_and(|it| !it.failed && it.tests);
    let stopped = conflict(command, head).or_else(|| conflict(command, &tail));
    let test_line = wrong.as_ref().is_some_and(|it| it.1 == ErrorLine::Test);
    let tests_failed = masked && (test_line || counts.as_ref().is_some_and(|it| it.failed && it.tests));
    let created = created_issue(&tail);
    let number = head.trim();
    let number = !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit());
    let counted = (number && parsed.ends_in_a_count()).then(|| head.trim().to_owned());
    let nothing = !shows && checked_nothing(&tail, counts.as_ref());
    // What stands before a pipe may have failed for them.
    let found = counts.as_ref().is_some_and(|it| it.issues || it.failed) && !shows;
    let uncertain = found
        && masked
        && printed.is_none()
        && [&committed, &created, &counted].iter().all(|it| it.is_none());
    out.result = committed.clone().or(created).or(counted);
    out.result = out.result.or_else(|| nothing.then(|| CHECKED_NOTHING.into()));
    out.result = out.result.or_else(|| counts.map(|it| it.shown));
    if out.result.is_none() && text.len() < 2_000 {
        out.result = PULL.find(&tail).map(|it| it.as_str().into());
    }
    // The exit code is that of `head` at the end of the pipe, or of `true`.
    out.exit = out.exit.filter(|it| *it != 0 || !hidden && !command::ends_in_viewer(command));
    // A search without matches exits with 1, a look at what was removed with 2.
    let nothing_found =
        (out.exit == Some(1) && command::hides_failure(command) || as_meant) && wrong.is_none() && !failures;
    out.ok = match (output.failed, out.exit) {
        _ if nothing_found => None,
        (true, _) => Some(false),
        (false, Some(code)) if code != 0 => Some(false),
        (false, Some(_)) if !masked => Some(true),
        _ if masked && refused => Some(false),
        // `head` at the end of the pipe hides the failure of a program that states it.
        (false, None) if command::ends_in_viewer(command) && starts_as_fatal(head) => Some(false),
        (false, None) if reports && !masked => Some(true),
        _ if refused_push => Some(false),
        // The commit was made, but what stands before it did not run.
        _ if misused.is_some() => committed.is_none().then_some(false),
        // Whatever was committed beside it.
        _ if !shows && (stopped.is_some() || tests_failed) => Some(false),
        _ if committed.is_some() || !shows && is_rebased(command, &tail) => Some(true),
        _ if failures && !shows => Some(false),
        _ if passes && !shows => Some(true),
        // A failed test or compiler error counts, whatever ran after it.
        _ if telling.is_some_and(|it| it.1 < ErrorLine::Message) => Some(false),
        _ if hidden => None,
        (false, Some(_)) => Some(out.result.is_some() || telling.is_none_or(|it| it.1 < ErrorLine::Mark)),
        (false, None) if telling.is_some_and(|it| it.1 != ErrorLine::Phrase) => Some(false),
        // The result of a script or pipe is unknown.
        (false, None) => {
            (reports && !(masked && (shows || text.starts_with("Script completed\n")))).then_some(true)
        }
    };
    out.ok = out.ok.filter(|ok| !(*ok && uncertain));
    if out.ok == Some(false) {
        // The 0 is the exit code of another program.
        out.exit = out.exit.filter(|it| *it != 0);
        let raised = || raised(&tail).or_else(|| raised(head));
        out.error = match wrong {
            Some((line, kind)) if kind < ErrorLine::Phrase => Some(line),
            Some((line, _)) => raised().or(Some(line)),
            None => raised().or_else(|| first_line(head)),
        };
        out.error = misused.or(stopped).or(out.error);
        // What refused it may have printed nothing that tells more.
        out.error = out.error.or_else(|| refused_push.then(|| "the push was refused".into()));
        let panicked = out
            .error
            .as_deref()
            .and_then(|it| panic_location(it, head).or_else(|| panic_location(it, &tail)));
        out.error = panicked.or(out.error);
    }
    out
}

/// The commits that a command made, on the branch of the last.
fn commits_in(text: &str) -> Option<String> {
    /// Maximum number of commits that are named.
    const NAMED: usize = 8;
    let made: Vec<_> = COMMITTED.captures_iter(text).collect();
    let branch = made.last()?.get(1)?.as_str();
    let newest = &made[made.len().saturating_sub(NAMED)..];
    let hashes: Vec<&str> = newest.iter().filter_map(|it| Some(it.get(2)?.as_str())).collect();
    Some(format!("committed {} on {branch}", hashes.join(", ")))
}

/// Whether a program's output begins with a fatal error.
pub(super) fn starts_as_fatal(output: &str) -> bool {
    ["fatal: ", "error: "].iter().any(|it| output.trim_start().starts_with(it))
}

fn ends(text: &str) -> (&str, &str) {
    if text.len() <= 2 * END_BYTES {
        return (text, text);
    }
    let mut to = END_BYTES;
    while !text.is_char_boundary(to) {
        to -= 1;
    }
    let mut from = text.len() - END_BYTES;
    while !text.is_char_boundary(from) {
        from += 1;
    }
    (&text[..to], &text[from..])
}

/// Finds the exit code in the first or last lines; elsewhere it may be quoted. `within`: also in the middle of a line,
/// where a command that succeeded would only mention one.
fn exit_code(head: &str, tail: &str, within: bool) -> Option<i32> {
    let code = |line: &str| {
        let found = EXIT.captures(line)?;
        // Codex's code mode prints its shell's report as JSON, Claude Code the state of a task as XML.
        let starts = found.get(0)?.start() == 0 || line.starts_with('<') || line.starts_with("{\"chunk_id\"");
        found.get(1).filter(|_| within || starts)?.as_str().parse().ok()
    };
    let (first, last) = (head.lines().take(6).find_map(code), tail.lines().rev().take(6).find_map(code));
    // A script of Codex prints what it waited for last.
    if head.starts_with("Script completed\n") { last.or(first) } else { first.or(last) }
}

/// The exit code that a command prints itself: `make | tail; echo "EXIT: ${PIPESTATUS[0]}"`.
fn printed_exit_code(command: &str, tail: &str) -> Option<i32> {
    if !command.contains("$?") && !command.contains("PIPESTATUS") {
        return None;
    }
    let codes = tail.lines().filter_map(|it| PRINTED_EXIT.captures(it)?.get(1)?.as_str().parse().ok());
    // A code other than 0 shows a failure.
    let codes: Vec<i32> = codes.collect();
    codes.iter().copied().find(|it| *it != 0).or_else(|| codes.last().copied())
}

/// The first line of the most certain kind.
fn error_line(text: &str) -> Option<(String, ErrorLine)> {
    for (kind, pattern) in ERROR_LINES.iter() {
        for found in pattern.find_iter(text).take(20) {
            // The match may begin with the preceding line break.
            let start = text[..found.end()].rfind('\n').map_or(0, |it| it + 1);
            let line = text[start..].lines().next().unwrap_or_default().trim();
            if !UNINFORMATIVE.is_match(line)
                && !NUMBERED.is_match(line)
                && !CODE.is_match(line)
                && !line.starts_with("0 errors")
                && !line.contains("(0 errors, ")
                && line.len() > 3
            {
                let (above, from) = text.split_at(start);
                let marked = line.starts_with(['×', '✖', '✗', '❌']);
                let before = marked.then(|| linter_location(above)).flatten();
                let told = before.map_or(line.to_string(), |it| format!("{it}: {line}"));
                let mut told = npm_error(line, from).unwrap_or(told);
                if matches!(kind, ErrorLine::Test | ErrorLine::Crash)
                    && let Some(cause) = cause(above, from)
                {
                    told.push_str(&format!(": {cause}"));
                }
                return Some((flat(clip(&told, 220).0), *kind));
            }
        }
    }
    None
}

/// The cause of a failed test, whose line `from` begins with: bun prints it above that line, Go and TAP below.
fn cause<'a>(above: &'a str, from: &'a str) -> Option<&'a str> {
    /// Maximum lines between a test's name and its cause, which may include a stack trace.
    const NEAR: usize = 20;
    static CAUSE: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
        AsciiFirstRegex::new(r"^\s*(?:\w+(?:\.\w+)*(?:Error|Exception): |[Ee]rror: |\S+_test\.go:\d+: )\S")
    });
    let of_a_test = |line: &&str| {
        ["(fail)", "(pass)", "--- ", "not ok ", "ok ", "=== "].iter().any(|it| line.starts_with(it))
    };
    let says = |line: &&str| line.len() < 400 && CAUSE.is_match(line) && !UNINFORMATIVE.is_match(line);
    let bun = from.starts_with("(fail)");
    let near: Vec<&str> = if bun {
        above.lines().rev().take(NEAR).collect()
    } else {
        from.lines().skip(1).take(NEAR).collect()
    };
    near.into_iter().take_while(|it| !of_a_test(it)).find(says).map(str::trim)
}

/// An npm error code, with the message on the line below.
fn npm_error(line: &str, rest: &str) -> Option<String> {
    let prefix = ["npm error ", "npm ERR! "].into_iter().find(|it| line.starts_with(it))?;
    line[prefix.len()..].strip_prefix("code ")?;
    let next = rest.lines().skip(1).find(|it| !UNINFORMATIVE.is_match(it))?;
    Some(format!("{line}: {}", next.strip_prefix(prefix)?))
}

/// Location and message of the panic in a failed Rust test, which include the test's name.
fn panic_location(error: &str, text: &str) -> Option<String> {
    let name = error.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
    let start = text.find(&format!("thread '{name}' "))?;
    let mut lines = text[start..].lines();
    let place = lines.next().filter(|it| it.contains("panicked at"))?;
    let why = lines.next().unwrap_or_default();
    Some(flat(clip(&format!("{place} {why}"), 220).0))
}

/// The exception at the end of the last Python traceback.
fn raised(text: &str) -> Option<String> {
    let (_, below) = text.rsplit_once("Traceback (most recent call last):\n")?;
    let line = below.lines().find(|it| !it.starts_with(char::is_whitespace) && !it.is_empty())?;
    Some(flat(clip(line, 220).0))
}

/// The location on the line above a message, as linters print it: `src/a.ts:1:2 lint/rule ━━━`.
fn linter_location(text: &str) -> Option<&str> {
    let line = text
        .lines()
        .rev()
        .take(3)
        .map(|it| it.trim().trim_end_matches(['━', '─', ' ']))
        .find(|it| !it.is_empty())?;
    let line = line.strip_prefix("at ").unwrap_or(line);
    let first = line.split_whitespace().next()?;
    (line.len() < 200 && first.contains(['/', '.']) && !line.ends_with(['.', ':'])).then_some(line)
}

/// The first line that is informative and not progress.
fn first_line(text: &str) -> Option<String> {
    let says = |it: &&str| it.len() > 3 && !UNINFORMATIVE.is_match(it) && !EXIT.is_match(it);
    let lines = || text.lines().map(str::trim).filter(says);
    let line = lines().find(|it| !PROGRESS.is_match(it)).or_else(|| lines().next())?;
    Some(flat(clip(line, 220).0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, failed: bool) -> String {
        let output = Output { failed, ..Output::new("c", text) };
        let it = read(&output, "", false);
        format!(
            "{:?} {:?} {} | {}",
            it.ok,
            it.exit,
            it.result.unwrap_or_default(),
            it.error.unwrap_or_default()
        )
    }

    #[test]
    fn reads_what_runners_print() {
        for (text, failed, expected) in [
            ("", false, "None None  | "),
            ("Exit code 1\nerror: no such thing\nmore", true, "Some(false) Some(1)  | error: no such thing"),
            ("Wall time: 1s\nProcess exited with code 0\nOutput:\nfine", false, "Some(true) Some(0)  | "),
            (
                "test result: ok. 3 passed; 0 failed;\ntest result: FAILED. 4 passed; 1 failed;",
                false,
                "Some(false) None 7 passed, 1 failed | test result: ok. 3 passed; 0 failed;",
            ),
            (
                " Tests  2 failed | 6 passed (8)\n",
                false,
                "Some(false) None 2 failed, 6 passed | Tests 2 failed | 6 passed (8)",
            ),
            (
                "[main 1a2b3c4] fix: error: x\n 1 file changed",
                false,
                "Some(true) None committed 1a2b3c4 on main | ",
            ),
            (
                "[main 1a2b3c4] one\n 1 file changed\n[main 2b3c4d5] two",
                false,
                "Some(true) None committed 1a2b3c4, 2b3c4d5 on main | ",
            ),
            (
                "Exit code 2\n✓ Switched to one\nsh run.sh\nmake: *** [Makefile:3: check] Error 1",
                true,
                "Some(false) Some(2)  | make: *** [Makefile:3: check] Error 1",
            ),
            ("Exit code 2\n✓ Switched to one\nno luck", true, "Some(false) Some(2)  | no luck"),
            ("✓ Created issue: ab-12", false, "None None created ab-12 | "),
            (
                "test a::b ... FAILED\n\n---- a::b ----\nthread 'a::b' panicked at src/a.rs:8:9:\nassertion failed: x",
                true,
                "Some(false) None  | thread 'a::b' panicked at src/a.rs:8:9: assertion failed: x",
            ),
            (
                "# pass 2\n# fail 0\n# skipped 1\n# todo 3\n",
                false,
                "Some(true) None 2 passed, 0 failed, 1 skipped, 3 todo | ",
            ),
            ("0 issues.", false, "None None 0 issues | "),
            (
                "Exit code 1\nLint.........Failed\n  ./a.json format ━━━━━\n\n    × Formatter would have printed this",
                true,
                "Some(false) Some(1)  | ./a.json format: × Formatter would have printed this",
            ),
            (
                "node:internal:6\n\nError [ERR_NO_SUCH]: Package a is none\n  at x",
                false,
                "Some(false) None  | Error [ERR_NO_SUCH]: Package a is none",
            ),
            (
                "npm error code ENEEDAUTH\nnpm error need auth You must log in\nnpm error more",
                false,
                "Some(false) None  | npm error code ENEEDAUTH: need auth You must log in",
            ),
            (
                "TypeError: a.b is no function\n      at x (t.ts:3:1)\n(fail) adds two numbers [0.2ms]\n 0 pass\n 1 fail",
                true,
                "Some(false) None 1 fail | (fail) adds two numbers [0.2ms]: TypeError: a.b is no function",
            ),
            (
                "=== RUN TestA\n--- FAIL: TestA (0.00s)\n    a_test.go:7: want 1, got 2\nFAIL",
                true,
                "Some(false) None  | --- FAIL: TestA (0.00s): a_test.go:7: want 1, got 2",
            ),
            (
                "error: 1 hook did not pass\nsrc/a.ts(3,1): error TS2304: Cannot find name 'b'.",
                true,
                "Some(false) None  | src/a.ts(3,1): error TS2304: Cannot find name 'b'.",
            ),
            (
                " ! [rejected] main -> main (non-fast-forward)\nerror: failed to push some refs to 'x'",
                true,
                "Some(false) None  | ! [rejected] main -> main (non-fast-forward)",
            ),
            (
                "at src/a.json format ━━━━━\n\n  × Formatter would have printed this",
                true,
                "Some(false) None  | src/a.json format: × Formatter would have printed this",
            ),
            (
                "bash: foo: command not found\nexit status 127",
                false,
                "Some(false) Some(127)  | bash: foo: command not found",
            ),
        ] {
            assert_eq!(shown(text, failed), expected, "{text}");
        }
    }

    #[test]
    fn tells_what_was_counted_and_when_nothing_was_checked() {
        for (command, text, exit, expected) in [
            ("gauge check | grep dial | wc -l", "18\n", 0, "Some(true) Some(0) 18"),
            ("gauge check | grep -ic dial", "0", 1, "None Some(1) 0"),
            ("git rev-list --count main", "7", 0, "Some(true) Some(0) 7"),
            ("gauge check | grep -c dial; ls", "18\na.rs", 0, "Some(true) Some(0) "),
            ("gauge print", "18", 0, "Some(true) Some(0) "),
            ("gauge check | tail -3", "768 issues found", 0, "None None 768 issues"),
            ("gauge check; echo rc=$?", "768 issues found\nrc=0", 0, "Some(true) Some(0) 768 issues"),
            ("gauge check", "768 issues found", 0, "Some(true) Some(0) 768 issues"),
            ("gauge check | tail -3", "0 issues found", 0, "Some(true) None 0 issues"),
            ("prose a.mdx", "✔ 0 errors, 0 warnings in 0 files.", 0, "Some(true) Some(0) checked nothing"),
            ("prose a.md", "✔ 0 errors, 0 warnings in 1 file.", 0, "Some(true) Some(0) 0 errors"),
            (
                "go test ./a -run No",
                "ok  \tx/a\t0.1s [no tests to run]",
                0,
                "Some(true) Some(0) checked nothing",
            ),
            ("go test ./...", "ok  \tx/a\t0.1s\nok  \tx/b\t0.1s [no tests to run]", 0, "Some(true) Some(0) "),
            (
                "go test ./... -run One",
                "testing: warning: no tests to run\n--- FAIL: TestOne (0.00s)\nFAIL",
                1,
                "Some(false) Some(1) ",
            ),
            (
                "cargo test none",
                "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 5 filtered out",
                0,
                "Some(true) Some(0) checked nothing",
            ),
            (
                "cargo test",
                "running 1 test\ntest result: ok. 1 passed; 0 failed\n\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed",
                0,
                "Some(true) Some(0) 1 passed, 0 failed",
            ),
        ] {
            let it = read(&Output { exit: Some(exit), ..Output::new("c", text) }, command, true);
            let shown = format!("{:?} {:?} {}", it.ok, it.exit, it.result.unwrap_or_default());
            assert_eq!(shown, expected, "{command}: {text}");
        }
    }

    #[test]
    fn believes_the_exit_code_before_the_text() {
        let ok = |command: &str, text: &str, exit: Option<i32>, reports: bool| {
            let output = Output { exit, ..Output::new("c", text) };
            read(&output, command, reports).ok
        };
        for (command, text, exit, reports, expected) in [
            ("make", "all is well", Some(254), true, Some(false)),
            ("./run.sh", "PASS=35 FAIL=0", Some(0), true, Some(true)),
            ("git show", "a1b2c3d Mend the 3 fail screens", Some(0), true, Some(true)),
            ("node x.js | tail", "{ \"n\": 2, \"fail\": 1 }", Some(0), true, Some(true)),
            ("npm test | tail -3", "Tests: 2 failed, 6 passed, 8 total", Some(0), true, Some(false)),
            ("npm test | tail -3", "Tests: 2 failed, 6 passed, 8 total", None, true, Some(false)),
            ("npx tsc 2>&1 | head -20", "a.ts(1,2): error TS2344: no", Some(0), true, Some(false)),
            ("npx tsc 2>&1 | head -20", "", Some(0), true, Some(true)),
            ("mise run lint | head", "a.go:38:16: thrice\n[lint] ERROR task failed", None, true, Some(false)),
            ("npm test; echo \"exit code: $?\"", "exit code: 3", Some(0), true, Some(false)),
            ("cat notes", "it ends with exit code 3 then", None, true, Some(true)),
            ("npm test || true", "done", Some(0), true, None),
            ("npm test || echo no", "Tests: 1 failed, 6 passed, 7 total", Some(0), true, Some(false)),
            ("npm test; true", "Tests: 6 passed, 6 total", Some(0), true, Some(true)),
            ("npm test; echo \"web-tests exit=$?\"", "web-tests exit=3", Some(0), true, Some(false)),
            ("npm test || true; echo rc=$?", "rc=0", Some(0), true, Some(true)),
            (
                "git push | tail -2",
                "husky - pre-push failed\nerror: failed to push some refs to 'x'",
                Some(0),
                true,
                Some(false),
            ),
            (
                "gh pr create --fill",
                "error: failed to push some refs to 'x'\nhttps://example.org/a/b/pull/7",
                Some(0),
                true,
                Some(true),
            ),
            ("git log x 2>&1 | head -3", "fatal: ambiguous argument 'x'", None, true, Some(false)),
            ("submit x", "Wrong flag!", None, false, None),
            ("x", "Wrong flag!", None, true, Some(true)),
        ] {
            assert_eq!(ok(command, text, exit, reports), expected, "{command}: {text}");
        }
    }
}
