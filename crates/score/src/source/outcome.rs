//! How a command ended, as far as its output tells.

use std::collections::HashSet;

use super::error_line::{plain, says_error, signature, strength};
use crate::probe::Outcome;
use crate::program_words;
use crate::text::{clip, ending};
use history::Output;

/// The session in which a command still runs (Codex), or an empty string if it runs in the background.
pub(crate) fn still_runs(text: &str) -> Option<String> {
    let head = clip(text, 400);
    if let Some((_, rest)) = head.split_once("Process running with session ID ") {
        return Some(rest.chars().take_while(char::is_ascii_alphanumeric).collect());
    }
    let background =
        ["running in background with ID", "was moved to the background (ID", "Monitor started (task "];
    background.iter().any(|it| head.contains(it)).then(String::new)
}

/// How a command ended, if its output tells. `silent`: an output that is not marked as failed proves nothing.
pub(crate) fn outcome(output: &Output, command: &str, silent: bool) -> Option<Outcome> {
    let text = &*plain(output.text.as_str());
    if output.cleared || was_stopped(output, text) {
        return None;
    }
    // A hook of Codex refused it.
    let refused = ["Command blocked by PreToolUse hook: ", "exec command rejected: "];
    if refused.iter().any(|it| text.starts_with(it)) {
        return Some(Outcome { ok: false, exit: None, passed: None, failed: None });
    }
    let start = clip(text, 400);
    // Codex's header about the run is not the command's output.
    let head = start.find("\nOutput:\n");
    let own = head.map_or(text, |it| &text[it + "\nOutput:\n".len()..]);
    let end = ending(text, 3_000);
    let exit = output.exit.map(i64::from);
    let exit = exit
        .filter(|it| *it != 0)
        .or_else(|| exit_code(start))
        .or_else(|| exit_code(ending(end, 300)))
        .or(exit);
    let exit = match printed_code(command, own) {
        Some(code) if exit.is_none_or(|it| it == 0) => Some(code),
        Some(_) | None => exit,
    };
    let shows = shows_contents(command);
    let (passed, failed) = if shows { (None, None) } else { sums(own).unwrap_or_else(|| counts(end)) };
    let package_failed = leaves_package_failed(end);
    let piped = !shows
        && package_failed != Some(false)
        && (command.contains('|') || own.len() < text.len() && text.starts_with("Script completed"))
        && signature(own).is_some_and(|it| strength(&it) >= 4)
        || crashed(end)
        || !shows && !command.is_empty() && package_failed == Some(true)
        || command.contains(['|', ';'])
            && !command.contains("||")
            && ending(end, 1_000).lines().any(counts_problems);
    // Codex's code mode reports that its script ended, not how the command in it did.
    if exit.is_none() && text.starts_with("Script completed") && failed.or(passed).is_none() && !piped {
        return None;
    }
    let ok = match exit {
        Some(code) => code == 0,
        // Without an exit code, look for the ways in which programs themselves tell a failure.
        None => {
            let refused = own.trim().lines().count() < 3 && own.trim().lines().any(refuses);
            !output.failed
                && !refused
                && !own.trim_start().starts_with("Traceback")
                && ![own.lines().next(), text.trim_end().lines().last()].into_iter().flatten().any(dies)
                && !ending(text, 400).lines().any(counts_problems)
        }
    };
    if exit.is_none_or(|it| it == 0)
        && (filtered(command) || asks(end) || lacks_verdict(command, text))
        && failed.is_none()
        && !piped
    {
        return None;
    }
    // One of several programs was refused by Docker.
    let lists = command.contains([';', '|', '\n']);
    if lists && !shows && own.lines().any(|it| it.starts_with("Error response from daemon: ")) && !piped {
        return None;
    }
    // Of commands on separate lines, only the last one's exit code is known.
    let unclear = command.trim().contains('\n')
        && !command.contains("<<")
        && signature(own).is_some_and(|it| says_error(&it));
    if exit.is_none_or(|it| it == 0) && unclear && failed.is_none() && !piped {
        return None;
    }
    let ok = ok && failed.is_none_or(|it| it == 0) && !piped;
    if ok && silent && exit.is_none() && passed.is_none() {
        return None;
    }
    Some(Outcome { ok, exit, passed, failed })
}

/// Whether the user, a timeout of the agent or a failure beside it stopped the command. `text`: the output without escapes.
fn was_stopped(output: &Output, text: &str) -> bool {
    // The third: Claude Code did not start it, since a call beside it failed.
    const MARKS: [&str; 3] =
        ["[Request interrupted", "User aborted the command", "Sibling tool call errored"];
    let stopped = |it: &str| MARKS.iter().any(|mark| it.contains(mark));
    // The timeouts of Codex, OpenCode and Gemini CLI: of a server, that is how it should end.
    let raw = output.text.as_str();
    let by_codex = output.exit == Some(124)
        || raw.starts_with("Exit code: 124")
        || raw.starts_with('{') && raw.contains(r#""exit_code":124"#);
    let timed_out = by_codex && clip(text, 200).contains("command timed out after ")
        || ending(text, 400).contains(" tool terminated command after exceeding timeout")
        || text.starts_with("Command was automatically cancelled because it exceeded the timeout of ");
    if stopped(clip(text, 200)) || timed_out {
        return true;
    }
    // Codex: the user stopped it. Some versions put a line with the time before that.
    let timed = text.strip_prefix("Wall time: ").and_then(|it| it.split_once('\n'));
    timed.map_or(text, |it| it.1).starts_with("aborted by user")
}

/// Whether a line says that a checker or runner found errors: `✖ 10 problems (3 errors, 7 warnings)` (ESLint),
/// `Found 0 warnings and 5 errors.` (oxlint), `no tests collected, 2 errors in 0.24s` (pytest), `error TS5112: …`.
fn counts_problems(line: &str) -> bool {
    let line = line.trim_start();
    let eslint = line.starts_with('✖') && line.contains(" problem") && !line.contains("(0 errors");
    let counted = line.split_once(" error").is_some_and(|(before, after)| {
        let count = before.rsplit(' ').find(|it| it.bytes().all(|it| it.is_ascii_digit())).unwrap_or("0");
        let seconds = after.trim_start_matches('s').strip_prefix(" in ").is_some_and(|it| {
            it.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').starts_with('s')
        });
        (line.starts_with("Found ") || seconds) && !matches!(count, "" | "0")
    });
    let nx = line.starts_with("NX ") && line.contains(" Running target");
    let told = line.trim_start_matches(|it: char| !it.is_alphanumeric());
    let checks = line.contains(" checks failed")
        && !line.starts_with(['-', '*', '|', '>'])
        && (told.starts_with("Some ") || told.starts_with(|it: char| ('1'..='9').contains(&it)));
    // A package that Go could not build.
    let unbuilt = line.starts_with("FAIL")
        && ["[build failed]", "[setup failed]"].iter().any(|it| line.trim_end().ends_with(it));
    let nginx = line.starts_with("nginx: ") && line.trim_end().ends_with(" test failed");
    eslint
        || nginx
        || line.trim_end().ends_with("' did not match any file(s) known to git")
        || counted
        || is_go_error(line)
        || unbuilt
        || nx && line.contains(" failed")
        || checks
        || program_words::COUNTED_AS_PROBLEM.iter().any(|it| line.starts_with(it))
}

/// Whether a line is an error of the Go compiler: `a.go:7:2: undefined: dial`.
fn is_go_error(line: &str) -> bool {
    let Some((_, place)) = line.split_once(".go:") else { return false };
    let told = place.trim_start_matches(|it: char| it.is_ascii_digit() || it == ':');
    let told = told.trim_start();
    let imported = told.starts_with('"') && told.contains(" imported ") && told.ends_with("and not used");
    place.len() - told.len() > 3
        && (imported || program_words::GO_ERRORS.iter().any(|it| told.starts_with(it)))
}

/// Whether a Go package failed and did not pass later: `FAIL\texample.org/a\t0.7s`. `None`: none failed.
fn leaves_package_failed(text: &str) -> Option<bool> {
    let (mut failed, mut any) = (HashSet::new(), false);
    for line in text.lines() {
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["FAIL", package, time] if time.ends_with('s') => {
                failed.insert(package);
                any = true;
            }
            ["ok  ", package, ..] => {
                failed.remove(package);
            }
            _ => {}
        }
    }
    any.then_some(!failed.is_empty())
}

/// Whether Node.js ended with an exception: its version, after a blank line, is the last that it prints.
fn crashed(text: &str) -> bool {
    text.trim_end()
        .rsplit_once("\n\n")
        .is_some_and(|it| it.1.starts_with("Node.js v") && !it.1.contains('\n'))
}

/// The exit code that a command itself prints: `make; echo "EXIT=$?"`.
fn printed_code(command: &str, text: &str) -> Option<i64> {
    if !command.contains("$?") && !command.contains("PIPESTATUS") {
        return None;
    }
    let codes: Vec<i64> = ending(text, 2_000)
        .lines()
        .filter_map(|line| {
            let (before, code) = line.trim().rsplit_once([':', '='])?;
            let before = before.to_lowercase();
            let named = ["exit", "code", "status", "rc"].iter().any(|it| before.trim_end().ends_with(it));
            code.trim().trim_matches(['=', '-', ' ']).parse().ok().filter(|_| named && before.len() < 40)
        })
        .collect();
    codes.iter().copied().find(|it| *it != 0).or_else(|| codes.first().copied())
}

/// Whether a command prints stored text: errors in its output may be part of that.
fn shows_contents(command: &str) -> bool {
    let shows = |part: &str| program_words::SHOWING.iter().any(|it| part.trim_start().starts_with(it));
    command.contains("Get-Content ") || command.split(['&', ';', '|', '\n', '(']).any(shows)
}

/// Whether a line says that a program or module does not exist.
fn refuses(line: &str) -> bool {
    line.contains(": No module named ") || line.ends_with(": command not found")
}

/// Whether a program's first or last line says that it did not do what it was asked to. A task runner (mise)
/// puts the task's name in brackets in front.
fn dies(line: &str) -> bool {
    line.starts_with("fatal: ")
        || line.starts_with("error: ")
        || line.starts_with("failed to run git: ")
        || line.starts_with("npm error ")
        || line.starts_with("OCI runtime exec failed")
        || line.ends_with("(Operation not permitted)")
        || line.starts_with('[') && line.trim_end().ends_with("] ERROR task failed")
}

/// Whether a text ends with a yes/no question that nobody answers.
fn asks(text: &str) -> bool {
    let last = text.trim_end().lines().last().unwrap_or_default();
    let choice = ["(y/n)", "[y/n]"].iter().any(|it| last.to_lowercase().contains(&format!("? {it}")));
    let drawn = (last.contains("? » ") || last.contains("? › "))
        && (last.ends_with("No / Yes") || last.ends_with("Yes / No"));
    choice || drawn || last.ends_with("Yes / ○ No") || last.ends_with("Yes / ● No")
}

/// Whether Xcode's verdict is missing behind a pipe, whose exit code is not Xcode's.
fn lacks_verdict(command: &str, text: &str) -> bool {
    let asks = ["-list", "-show", "-version", "-help"].iter().any(|it| command.contains(it));
    command.contains("xcodebuild ")
        && command.contains('|')
        && !command.contains("pipefail")
        && !asks
        && !ending(text, 600).to_lowercase().contains("succeeded")
}

/// Whether a filter decides the exit code of a pipe: `make | grep error` succeeds if there are errors. `head`
/// and `tail` after it do not change that.
fn filtered(command: &str) -> bool {
    // A pattern may contain `|` or `;`, too, but without a space after it.
    let stages = command.rsplit("| ").flat_map(|it| it.rsplit("; "));
    let mut stages = stages.map(|it| it.split_whitespace().next().unwrap_or_default());
    command.contains('|')
        && stages
            .find(|it| !["head", "tail"].contains(it))
            .is_some_and(|it| program_words::FILTERS.contains(&it))
}

/// The exit code that an output tells.
fn exit_code(text: &str) -> Option<i64> {
    program_words::EXIT_CODES.iter().find_map(|phrase| {
        let (_, rest) = text.split_once(phrase)?;
        let number: String =
            rest.trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == '-').collect();
        number.parse().ok()
    })
}

/// Passed and failed tests, summed over the result lines of several test programs (Cargo) or of consecutive
/// runs (vitest, jest, Node.js). The same line twice in a row counts once.
fn sums(text: &str) -> Option<(Option<u64>, Option<u64>)> {
    let lines = text.lines().map(str::trim);
    let totals = |it: &&str| it.starts_with("Tests ") || it.starts_with("Tests:") || is_total(it);
    let mut programs: Vec<&str> = lines.clone().filter(|it| it.starts_with("test result: ")).collect();
    if programs.is_empty() {
        programs = lines.filter(totals).collect();
        programs.dedup();
    }
    let each: Vec<_> = programs.into_iter().map(counts).collect();
    let sum =
        |of: fn(&(Option<u64>, Option<u64>)) -> Option<u64>| each.iter().filter_map(of).reduce(|a, b| a + b);
    (each.len() > 1).then(|| (sum(|it| it.0), sum(|it| it.1)))
}

/// Numbers of passed and failed tests in the last lines that count them.
pub(crate) fn counts(text: &str) -> (Option<u64>, Option<u64>) {
    let (mut passed, mut failed) = (None, None);
    for line in text.lines().rev().take(40) {
        let lower = line.to_lowercase();
        if !lower.contains("pass") && !lower.contains("fail") || lower.contains("file") {
            continue;
        }
        let words: Vec<&str> = lower
            .split(|c: char| !(c.is_alphanumeric() || "#.".contains(c)))
            .filter(|it| !it.is_empty())
            .collect();
        // `Passed: 4  Failed: 0` has the label before the number.
        let number_behind = |label: &&str| {
            lower
                .split_once(*label)
                .is_some_and(|it| it.1.trim_start().starts_with(|c: char| c.is_ascii_digit()))
        };
        let labelled = is_total(line)
            || ["passed:", "failed:"].iter().any(number_behind)
            || [["pass:", "fail:"], ["pass=", "fail="]].iter().any(|it| it.iter().all(number_behind));
        for pair in words.windows(2) {
            let number = |it: &str| it.parse::<u64>().ok();
            let pair = if labelled { [pair[1], pair[0]] } else { [pair[0], pair[1]] };
            match (pair[0], pair[1]) {
                (n, "passed" | "pass" | "passing") if passed.is_none() => passed = number(n),
                (n, "failed" | "fail" | "failing" | "failures") if failed.is_none() => failed = number(n),
                _ => {}
            }
        }
        if passed.is_some() && failed.is_some() {
            break;
        }
    }
    (passed, failed)
}

/// Whether a line is a total of the Node.js test runner: `ℹ pass 4`.
fn is_total(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    matches!(words[..], ["ℹ" | "#", "pass" | "fail", _])
}
