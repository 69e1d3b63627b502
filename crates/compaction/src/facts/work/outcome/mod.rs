//! The outcome of a command, read from its output: exit code, counts, error line.

mod counts;
mod error_line;
mod evidence;
pub(super) mod exit_code;
mod printed;

use super::command::ParsedCommand;
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::{clip, flat, without_escapes};
use counts::counts_in;
pub use error_line::error_lines;
use error_line::{ErrorLine, error_line};
use evidence::Evidence;
use exit_code::Echoed;
use history::Output;
use printed::{
    commits_in, conflict, created_issue, ends_in_question, ends_unanswered, failed_run, failed_verdict,
};
pub(super) use printed::{is_conflict, package_scripts, says_nothing, wrong_flag};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Whether it succeeded, if known.
    pub ok: Option<bool>,
    /// Its exit code, if known.
    pub exit: Option<i32>,
    /// Counts or other results as printed: `12 passed, 1 failed`, `committed a1b2c3d`.
    pub result: Option<String>,
    pub error: Option<String>,
    /// Session or task id, if it continues in the background.
    pub running: Option<String>,
}

impl Outcome {
    /// Whether it was stopped before it ended.
    pub(super) fn is_stopped(&self) -> bool {
        let stopped = |it: &str| it == STOPPED || it == KILLED || it.starts_with(TIMEOUT);
        self.ok.is_none() && self.result.as_deref().is_some_and(stopped)
    }

    /// Whether it exited with 0, but has a result that speaks of failure.
    pub(super) fn says_failed(&self) -> bool {
        self.ok.is_none() && self.exit == Some(0) && self.result.is_some()
    }
}

static HEADER: AsciiFirstRegex = AsciiFirstRegex::new(
    r"^(?:Command: |Chunk ID: |Exit code: |Wall time: |Script completed\n|Process exited with code )[^\x00]*?\nOutput:\n",
);
/// What older versions of Codex put before the output of a command that failed in the sandbox.
static SANDBOX_HEADER: AsciiFirstRegex = AsciiFirstRegex::new(
    r"^failed in sandbox(?: \w+ with execution error: sandbox denied exec error, exit code: -?\d+, stdout: (?:, stderr: )?|: )",
);
/// Prefix of the output if a hook refused the command, so that it did not run (Codex).
const BLOCKED: [&str; 2] = ["Command blocked by PreToolUse hook: ", "exec command rejected: "];
/// The result of a command that the user stopped.
const STOPPED: &str = "stopped by the user";
pub(super) const KILLED: &str = "killed before it ended";
/// The result of a program that asked on the terminal, where nobody answers.
const UNANSWERED: &str = "stopped at its question";
/// What in a command answers such a question in advance.
const ANSWERS: [&str; 6] = ["echo ", "printf ", "yes ", "<<", " -y", "--yes"];
/// The result of a checker that found nothing to check.
pub(super) const CHECKED_NOTHING: &str = "checked nothing";
/// The result of a test runner without any output.
pub(super) const PRINTED_NOTHING: &str = "printed nothing";

/// Bytes that are read at each end of an output.
const END_BYTES: usize = 8_000;

/// The command continues in the background, with this id (Codex 0.169, Claude Code 2.1).
static RUNNING: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?m)^(?:Process running with session ID |Command running in background with ID: |Monitor started \(task |Command did not complete .*moved to the background \(ID: )(\w+)",
);
/// What OpenCode appends to the output of a command that the user stopped, and what Codex puts in its place.
static ABORTED: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?m)^<(?:shell|bash)_metadata>\nUser aborted the command$|\A(?:Wall time: [\d.]+ seconds\n)?aborted by user(?: after \d[\d.]*s)?\s*\z",
);

/// The result of a command that a timeout stopped.
const TIMEOUT: &str = "stopped by its timeout";

/// What OpenCode and Gemini CLI add to the output of a command that their timeout stopped.
static TIMED_OUT: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?m)^<(?:shell|bash)_metadata>\n(?:shell|bash) tool terminated command after exceeding timeout",
    r"|^Command was automatically cancelled because it exceeded the timeout of ",
));

/// What Codex puts before the output of a command that its timeout stopped.
static STOPPED_BY_CODEX: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r#"\A(?:\{"output":"|Exit code: 124\n(?:[^\n]*\n){0,2}?Output:\n)?"#,
    r"command timed out after \d+ milliseconds(?:\n|\\n|\z)",
));

/// The output of such a command, without the exit code, which is Codex's own.
fn stopped_by_codex(output: &Output) -> Option<Output> {
    let text = output.text.as_str();
    let printed = &text[STOPPED_BY_CODEX.find(text)?.end()..];
    if output.exit != Some(124) && !text.starts_with("Exit code: 124") && !text.contains(r#""exit_code":124"#)
    {
        return None;
    }
    let printed = printed.rsplit_once(r#"","metadata":{"exit_code":124"#).map_or(printed, |it| it.0);
    let (text, ends) = (printed.into(), [].into());
    Some(Output { text, ends, failed: false, exit: None, ..output.clone() })
}

/// Reads the output of `command`. A reported exit code counts first; where it may be that of another program
/// in a pipe or list, the runner's summary line is next. `unmarked_means_success`: an output that is not
/// marked as failed means exit code 0.
pub(in crate::facts) fn read(output: &Output, command: &str, unmarked_means_success: bool) -> Outcome {
    if let Some(printed) = stopped_by_codex(output) {
        let outcome = read(&printed, command, unmarked_means_success);
        return stopped_by_timeout(outcome, ends(printed.text.as_str()).1);
    }
    let parsed = ParsedCommand::of(command);
    let (head, tail) = ends(output.text.as_str());
    let removed = |it: &&str| parsed.says_what_it_removed(it);
    let missing_as_meant = tail.lines().any(|it| removed(&it)) && parsed.ends_read_only();
    let without_removed = |it: &str| -> String {
        without_escapes(it).split_inclusive('\n').filter(|it| !removed(it)).collect()
    };
    let (head, tail) = (without_removed(head), without_removed(tail));
    // In Codex's code mode, the result is that of the script, not of the command in it.
    let of_script = head.starts_with("Script completed\n");
    let masked = of_script || parsed.is_compound();
    let prints_contents = parsed.prints_contents();
    let within_lines = !prints_contents && (masked || output.failed || !unmarked_means_success);
    let printed = exit_code::reported(&head, &tail, within_lines);
    let echoed = Echoed::of(command, &parsed, &tail);
    // With an echoed code, the shell's own is that of `echo`.
    let printed = printed.filter(|it| *it != 0).or(echoed.code.filter(|_| !echoed.compares)).or(printed);
    let exit = printed.filter(|it| *it != 0).or(output.exit).or(printed);
    if let Some(outcome) = unfinished(&head, &tail, exit) {
        return outcome;
    }
    // Without Codex's header.
    let again = parsed.repeats_tests();
    let head = last_run(&head[HEADER.find(&head).map_or(0, |it| it.end())..], again);
    let head = &head[SANDBOX_HEADER.find(head).map_or(0, |it| it.end())..];
    let tail = last_run(&tail, again);
    let tail = &tail[SANDBOX_HEADER.find(tail).map_or(0, |it| it.end())..];
    // The shell's own code is that of `true` at the end of the list.
    let hidden = echoed.compares || echoed.code.is_none() && parsed.masks_exit_code();
    let unanswered = !prints_contents && ends_unanswered(tail);
    let evidence = Evidence {
        command,
        parsed: &parsed,
        head,
        tail,
        marked_failed: output.failed,
        unmarked_means_success,
        exit: exit.filter(|it| *it != 0 || !hidden && !parsed.ends_in_viewer()),
        printed: printed.is_some(),
        hidden,
        masked,
        of_script,
        prints_contents,
        missing_as_meant,
        error: [error_line(head), error_line(tail)].into_iter().flatten().min_by_key(|it| it.1),
        counts: counts_in(tail, again).or_else(|| counts_in(head, again)),
        commits_made: commits_in(head).or_else(|| commits_in(tail)),
        created_or_count: created_issue(tail).or_else(|| printed_count(&parsed, head)),
        wrong_flag: wrong_flag(command, head).or_else(|| wrong_flag(command, tail)),
        conflict: conflict(command, head).or_else(|| conflict(command, tail)),
        tells_nothing: tells_nothing(&parsed, output.text.as_str()),
        asks: unanswered
            || parsed.ends_in_viewer()
                && !prints_contents
                && !ANSWERS.iter().any(|it| command.contains(it))
                && ends_in_question(tail),
        failed_run: failed_run(command, tail),
        failure_line: failed_verdict(tail).or_else(|| failed_verdict(head)).filter(|_| !prints_contents),
    };
    let result = evidence.result(output.text.as_str().len());
    let ok = evidence.succeeded(result.is_some()).filter(|it| !(*it && unanswered));
    let timed_out = TIMED_OUT.is_match(tail);
    let result = result.filter(|it| ok.is_none() || it != UNANSWERED);
    let failed = ok == Some(false);
    let outcome = Outcome {
        ok,
        // If it failed, 0 is the exit code of another program.
        exit: evidence.exit.filter(|it| *it != 0 || !failed && !timed_out),
        error: failed.then(|| evidence.cause()).flatten(),
        result,
        running: None,
    };
    if timed_out { stopped_by_timeout(outcome, tail) } else { outcome }
}

/// The number that a command which counts something printed.
fn printed_count(parsed: &ParsedCommand, head: &str) -> Option<String> {
    let number = head.trim();
    let is_number = !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit());
    (is_number && parsed.ends_in_count()).then(|| number.into())
}

/// The outcome of a command that still runs, was not allowed to, or was stopped.
fn unfinished(head: &str, tail: &str, exit: Option<i32>) -> Option<Outcome> {
    if let Some(found) = RUNNING.captures(head) {
        let running = found.get(1).map(|it| it.as_str().into());
        return Some(Outcome { exit, running, ..Outcome::default() });
    }
    if BLOCKED.iter().any(|it| head.starts_with(it)) {
        let told = flat(clip(head.lines().next().unwrap_or_default(), 220).0);
        return Some(Outcome { ok: Some(false), error: Some(told), ..Outcome::default() });
    }
    ABORTED.is_match(tail).then(|| Outcome { result: Some(STOPPED.into()), ..Outcome::default() })
}

/// The outcome of a command that a timeout stopped: of a server, that is how it should end, and of others it is unknown,
/// unless an error was printed before.
fn stopped_by_timeout(outcome: Outcome, tail: &str) -> Outcome {
    let error = error_line(tail).filter(|it| it.1 <= ErrorLine::Message).map(|it| it.0);
    let result = outcome.result.map_or(TIMEOUT.to_owned(), |it| format!("{TIMEOUT}, {it}"));
    let failed = outcome.ok == Some(false) || error.is_some();
    Outcome {
        ok: failed.then_some(false),
        exit: None,
        error: outcome.error.or(error),
        result: Some(result),
        running: None,
    }
}

/// Whether the output of a pipe tells nothing about how its program ended: `head` cut off the end of a build or test,
/// a search of the output found nothing or found errors, or the last words of Xcode are missing.
pub(super) fn tells_nothing(command: &ParsedCommand, output: &str) -> bool {
    let found_nothing = || {
        let text = output.trim();
        !command.is_setup() && command.searches_output() && (text.is_empty() || says_nothing(text))
    };
    command.cuts_off_the_end(output) && !ends_with_success(output)
        || command.finds_errors(output) && !ends_with_success(output)
        || found_nothing()
        || lacks_verdict(command, output)
}

/// Whether a pipe hides the exit code of Xcode, and its last words do not say that it succeeded.
fn lacks_verdict(command: &ParsedCommand, output: &str) -> bool {
    /// Lines at the end among which the verdict stands.
    const LAST: usize = 12;
    let asks = |it: &&str| ["-show", "-list", "-version", "-help"].iter().any(|flag| it.starts_with(flag));
    let builds = |it: Vec<&str>| it[0] == "xcodebuild" && !it.iter().any(asks);
    let reports = |it: Vec<&str>| it[0] == "set" && it.contains(&"pipefail");
    command.is_compound()
        && command.programs().any(builds)
        && !command.programs().any(reports)
        && !output.lines().rev().take(LAST).any(|it| it.to_lowercase().contains("succeeded"))
}

/// Whether the last line says that all went well: `✓ built in 2.3s`.
fn ends_with_success(output: &str) -> bool {
    const WELL: [&str; 7] = ["finished", "built in", "success", "passed", "compiled", "done in", "0 errors"];
    let last = output.trim_end().lines().last().unwrap_or_default().to_lowercase();
    WELL.iter().any(|it| last.contains(it))
}

/// Whether an output is nothing but a JSON object with an error: the request was not fulfilled.
fn is_error_object(output: &str) -> bool {
    let names = output.starts_with("{\"error\"") || output.starts_with("{ \"error\"");
    names
        && output.ends_with('}')
        && !["null", "false", "0", "[]", "{}", "\"\""]
            .iter()
            .any(|it| output.split_once(':').is_some_and(|(_, value)| value.trim_start().starts_with(it)))
}

/// The output after the last failed package, if every failed package later passed in the same command (Go).
/// `again`: it ran the same tests more than once, so that a pass at the end cancels earlier failures.
fn last_run(text: &str, again: bool) -> &str {
    let package = |line: &str, state: &str| {
        let mut words = line.split_whitespace();
        (words.next() == Some(state)).then(|| words.next()).flatten().map(str::to_owned)
    };
    let (mut at, mut end, mut passed) = (0, 0, 0);
    let mut failed = std::collections::BTreeSet::new();
    for line in text.split_inclusive('\n') {
        at += line.len();
        if let Some(it) = package(line, "FAIL") {
            failed.insert(it);
            end = at;
        } else if let Some(it) = package(line, "ok") {
            failed.remove(&it);
            passed = at;
        } else if again && (line.starts_with("--- FAIL") || line.trim_end() == "FAIL") {
            end = at;
        }
    }
    if failed.is_empty() && (passed > end || end == 0) { &text[end..] } else { text }
}

/// Whether a program's output begins with a fatal error.
pub(super) fn starts_as_fatal(output: &str) -> bool {
    let output = output.trim();
    // In `docker exec app bash -c 'ps | head'` the shell of the container has no `ps`.
    let only_missing =
        !output.contains('\n') && output.contains("sh: ") && output.ends_with(": command not found");
    ["fatal: ", "error: "].iter().any(|it| output.starts_with(it)) || only_missing
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

#[cfg(test)]
mod tests;
