//! Commands: what names one, whether it only looks around, how it ended, which line of its answer is the error.

use crate::cues;
use crate::probe::Outcome;
use crate::text::{clip, ending, normal};
use history::Output;

/// Codex: the number of the session that a command still runs in.
pub(crate) fn still_runs(text: &str) -> Option<String> {
    let head = clip(text, 400);
    if let Some((_, rest)) = head.split_once("Process running with session ID ") {
        return Some(rest.chars().take_while(char::is_ascii_alphanumeric).collect());
    }
    let background = ["running in background with ID", "was moved to the background (ID"];
    background.iter().any(|it| head.contains(it)).then(String::new)
}

/// Characters of a command that name it.
const KEY: usize = 120;

/// Whether what names a command is only the beginning of it.
pub(crate) fn is_cut(key: &str) -> bool {
    /// Signs that are taken off its end.
    const TRIMMED: usize = 4;
    key.chars().count() + TRIMMED > KEY
}

/// What names a command: the beginning of its [`whole_command`].
pub(crate) fn command_key(command: &str) -> String {
    clip(&whole_command(command), KEY).trim_end_matches([' ', '&', '|', ';']).to_string()
}

/// A command's first line up to a here-document, without what sets the scene before it and filters after it.
pub(crate) fn whole_command(command: &str) -> String {
    let mut rest = behind_its_scene(command.trim());
    let mut telling = rest.lines().filter(|it| !it.trim().is_empty() && !it.trim_start().starts_with('#'));
    let first = telling.clone().next().unwrap_or_default();
    rest = telling.find(|it| !assigns(it.trim())).unwrap_or(first);
    for mark in ["<<", "\"$(cat"] {
        if let Some((before, _)) = rest.split_once(mark) {
            rest = before;
        }
    }
    // The ends of longer lines are cut off below anyway.
    let mut key = normal(clip(rest, 4_000));
    loop {
        let before = key.len();
        for filter in
            [" | tail", " | head", " 2>&1", " 2>/dev/null", " >/dev/null", " > /dev/null", " || true"]
        {
            if let Some(at) = key.rfind(filter) {
                let tail = &key[at + filter.len()..];
                let plain = tail.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '+'));
                if plain && tail.len() <= 12 {
                    key.truncate(at);
                }
            }
        }
        for end in [" -m", " -F -", " --body", " -", " \\", ";", " &&"] {
            if let Some(cut) = key.strip_suffix(end) {
                key = cut.to_string();
            }
        }
        key.truncate(key.trim_end().len());
        if key.len() == before {
            break;
        }
    }
    key
}

/// What a command runs, `go test` of `./...` in `cd a && go test ./... | tail`.
pub(crate) struct Run {
    /// The program, the directory that git is told to go to, and the first word that is no flag.
    name: String,
    /// The other words that are no flags.
    operands: Vec<String>,
}

impl Run {
    pub(crate) fn all(command: &str) -> Vec<Self> {
        const AROUND: [&str; 6] = ["env", "sudo", "time", "command", "exec", "rtk"];
        let run = |part: &str| {
            let before = part.split('|').next().unwrap_or_default();
            let around = |it: &&str| it.contains('=') || AROUND.contains(it);
            let mut words = before.split_whitespace().skip_while(around).peekable();
            let program = words.next()?.rsplit('/').next()?;
            let place = words.next_if_eq(&"-C").and_then(|_| words.next()).unwrap_or_default();
            let mut bare = words.filter(|it| !it.starts_with('-') && !it.contains('>'));
            let name = format!("{program} {place} {}", bare.next().unwrap_or_default());
            (program != "cd").then(|| Self { name, operands: bare.map(str::to_owned).collect() })
        };
        clip(command, 4_000).split([';', '&', '\n']).filter_map(run).collect()
    }

    /// Whether it does what `other` did: on everything, or on one of the same things.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let all = self.operands.is_empty() || self.operands.iter().any(|it| it.ends_with("./..."));
        self.name == other.name && (all || self.operands.iter().any(|it| other.operands.contains(it)))
    }
}

/// A command without the `cd DIR &&`, `export A=b;` and `a="b";` in front of it.
pub(crate) fn behind_its_scene(command: &str) -> &str {
    // Nobody goes into more directories, or into one by more words.
    const STEPS: usize = 64;
    const REACH: usize = 4_000;
    let mut rest = command;
    for _ in 0..STEPS {
        let target = rest.strip_prefix("cd ").or_else(|| rest.strip_prefix("export "));
        let Some(target) = target.or_else(|| value_assigned(rest)) else { break };
        let near = clip(target, REACH);
        let end = near.find("&&").map(|at| at + 2).or_else(|| near.find(';').map(|at| at + 1));
        let Some(end) = end else { break };
        rest = target[end..].trim_start_matches([' ', '\\', '\n']);
    }
    rest
}

/// Whether a line does nothing but to give a variable its value.
fn assigns(line: &str) -> bool {
    let Some((name, value)) = line.split_once('=') else { return false };
    let inner = value.strip_prefix("$(").and_then(|it| it.strip_suffix(')'));
    !name.is_empty()
        && name.bytes().all(|it| it == b'_' || it.is_ascii_alphanumeric())
        && (!value.contains(' ') || inner.is_some_and(|it| !it.contains("$(")))
}

/// What follows the value of an assignment that stands alone: `a="b"; ls`, not `A=b ls`.
fn value_assigned(text: &str) -> Option<&str> {
    let (name, rest) = text.split_once('=')?;
    if name.is_empty() || !name.bytes().all(|it| it == b'_' || it.is_ascii_alphanumeric()) {
        return None;
    }
    let rest = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?.1,
        None => rest.trim_start_matches(|c: char| !c.is_whitespace() && c != ';' && c != '&'),
    };
    rest.trim_start().starts_with([';', '&']).then_some(rest)
}

/// Whether a command only looks around, in all its parts.
pub(crate) fn only_looks(command: &str) -> bool {
    let mut parts: Vec<String> = vec![String::new()];
    let mut quote: Option<char> = None;
    for c in command.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if matches!(c, '|' | ';' | '&' | '\n') => parts.push(String::new()),
            None => {
                if let Some(last) = parts.last_mut() {
                    last.push(c);
                }
            }
        }
    }
    // Words that stand before a command, and say nothing of what it does.
    const AROUND: [&str; 7] = ["rtk", "{", "}", "!", "do", "then", "else"];
    parts.iter().all(|part| {
        let mut words: Vec<&str> =
            part.split_whitespace().skip_while(|it| it.contains('=') || AROUND.contains(it)).collect();
        if words.first() == Some(&"git") && words.get(1) == Some(&"-C") {
            words.drain(1..3.min(words.len()));
        }
        let head = words.first().map_or("", |it| it.rsplit('/').next().unwrap_or(it));
        // `bd --readonly show`: flags may stand before what is asked for.
        let bare: Vec<&str> = words.iter().copied().filter(|it| !it.starts_with('-')).collect();
        let first = |count: usize| bare.iter().take(count).copied().collect::<Vec<_>>().join(" ");
        let (two, three) = (first(2), first(3));
        let acts = cues::ACTING.iter().any(|it| *it == three)
            || cues::ACTING.contains(&words.iter().take(3).copied().collect::<Vec<_>>().join(" ").as_str());
        let lists = two == "git tag"
            && (bare.len() == 2 || words.iter().any(|it| ["-l", "--list", "--points-at"].contains(it)));
        // `npm owner ls`, `gh release list`; a script may be called anything.
        let asks = head != "git"
            && bare.get(1).is_some_and(|it| !["run", "exec", "x"].contains(it))
            && bare.get(2).is_some_and(|it| cues::LOOKING_SECOND.contains(it));
        head.is_empty()
            || head.chars().all(|c| c.is_ascii_digit() || c == '>')
            || !acts
                && (cues::LOOKING.contains(&head)
                    || cues::LOOKING_PAIRS.contains(&two.as_str())
                    || words.get(1).is_some_and(|it| cues::LOOKING_SECOND.contains(it))
                    || bare.get(1).is_some_and(|it| cues::LOOKING_SECOND.contains(it))
                    || lists
                    || asks
                    || words.contains(&"--help"))
    })
}

/// How a command ended, if its answer tells. `silent`: an answer that is not marked as failed says nothing.
pub(crate) fn outcome(output: &Output, command: &str, silent: bool) -> Option<Outcome> {
    let text = &*plain(output.text.as_str());
    let stopped = |it: &str| it.contains("[Request interrupted") || it.contains("User aborted the command");
    if output.cleared || stopped(clip(text, 200)) {
        return None;
    }
    let start = clip(text, 400);
    // What Codex says of the run itself is not the command's.
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
    let piped = !shows
        && (command.contains('|') || own.len() < text.len() && text.starts_with("Script completed"))
        && signature(own).is_some_and(|it| strength(&it) >= 4)
        || crashed(end)
        || command.contains(['|', ';'])
            && !command.contains("||")
            && ending(end, 1_000).lines().any(counts_problems);
    // Codex's code mode says that its script ended, not how the command in it did.
    if exit.is_none() && text.starts_with("Script completed") && failed.or(passed).is_none() && !piped {
        return None;
    }
    let ok = match exit {
        Some(code) => code == 0,
        // Where no exit code is told, the three ways in which programs end that say so themselves.
        None => {
            let refused = own.trim().lines().count() < 3 && own.trim().lines().any(refuses);
            !output.failed
                && !refused
                && !own.trim_start().starts_with("Traceback")
                && ![own.lines().next(), text.trim_end().lines().last()].into_iter().flatten().any(dies)
                && !ending(text, 400).lines().any(counts_problems)
        }
    };
    if exit.is_none_or(|it| it == 0) && filtered(command) && failed.is_none() && !piped {
        return None;
    }
    // Of what stands on lines of their own, the exit code is the last one's.
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
    const WHOLE: [&str; 8] = [
        "error TS",
        "error: Failed to spawn",
        "make: *** ",
        "[warn] Code style issues found",
        "✖ failing tests:",
        "level=error",
        "Error: unknown flag: ",
        "error: unknown option ",
    ];
    eslint || counted || WHOLE.iter().any(|it| line.starts_with(it))
}

/// Whether Node.js ended with an exception: a blank line and its version are the last that it prints.
fn crashed(text: &str) -> bool {
    text.trim_end()
        .rsplit_once("\n\n")
        .is_some_and(|it| it.1.starts_with("Node.js v") && !it.1.contains('\n'))
}

/// The exit code that a command prints of its own accord: `make; echo "EXIT=$?"`.
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

/// Whether a command prints stored text: errors in its output may be that text's.
fn shows_contents(command: &str) -> bool {
    const SHOWING: [&str; 14] = [
        "cat ",
        "nl ",
        "sed -n",
        "git show",
        "git diff",
        "git log",
        "git blame",
        "rg ",
        "ast-grep ",
        "gh api ",
        "gh run view",
        "gh pr view",
        "curl ",
        "xargs sed",
    ];
    let shows = |part: &str| SHOWING.iter().any(|it| part.trim_start().starts_with(it));
    command.contains("Get-Content ") || command.split(['&', ';', '|', '\n', '(']).any(shows)
}

/// Whether a line says that the program or module does not exist.
fn refuses(line: &str) -> bool {
    line.contains(": No module named ") || line.ends_with(": command not found")
}

/// Whether a program says with its first or last line that it did not do what it was asked to. A task runner (mise)
/// puts the task in brackets before what it says.
fn dies(line: &str) -> bool {
    line.starts_with("fatal: ")
        || line.starts_with("error: ")
        || line.starts_with("failed to run git: ")
        || line.ends_with("(Operation not permitted)")
        || line.starts_with('[') && line.trim_end().ends_with("] ERROR task failed")
}

/// Whether a filter at the end of a pipe decides what its end says: `make | grep error` ends well when there are errors.
/// `head` and `tail` after it say nothing either.
fn filtered(command: &str) -> bool {
    // A pattern may have a bar or a semicolon, too, but then without a space.
    let stages = command.rsplit("| ").flat_map(|it| it.rsplit("; "));
    let mut stages = stages.map(|it| it.split_whitespace().next().unwrap_or_default());
    command.contains('|')
        && stages.find(|it| !["head", "tail"].contains(it)).is_some_and(|it| {
            const FILTERS: [&str; 12] = [
                "grep",
                "egrep",
                "rg",
                "wc",
                "awk",
                "cut",
                "sort",
                "uniq",
                "sed",
                "xargs",
                "jq",
                "Select-Object",
            ];
            FILTERS.contains(&it)
        })
}

/// The exit code in an answer. Phrases of Claude Code 2.1, Codex 0.169, Gemini CLI 0.61, pi 0.50, OpenHands SDK 1.
fn exit_code(text: &str) -> Option<i64> {
    const PHRASES: [&str; 7] = [
        "Exit code ",
        "exited with code ",
        "Exit Code: ",
        "\"exit_code\":",
        "exit code: ",
        "exit code ",
        "exit status ",
    ];
    PHRASES.iter().find_map(|phrase| {
        let (_, rest) = text.split_once(phrase)?;
        let number: String =
            rest.trim_start().chars().take_while(|c| c.is_ascii_digit() || *c == '-').collect();
        number.parse().ok()
    })
}

/// The sums of the lines that Cargo prints for several test programs, and of those that one run after another prints
/// (vitest, jest, Node.js); a run that is filtered twice counts once.
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

/// Numbers of passed and failed tests in the last line that counts them.
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
        // `Passed: 4  Failed: 0` names first what it counts.
        let number_behind = |label: &&str| {
            lower
                .split_once(*label)
                .is_some_and(|it| it.1.trim_start().starts_with(|c: char| c.is_ascii_digit()))
        };
        let labelled = is_total(line)
            || ["passed:", "failed:"].iter().any(number_behind)
            || ["pass:", "fail:"].iter().all(number_behind);
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

/// Whether a line is a count of Node.js' test runner: `ℹ pass 4`.
fn is_total(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    matches!(words[..], ["ℹ" | "#", "pass" | "fail", _])
}

/// A text without the escape sequences that colour terminals.
pub(crate) fn plain(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return text.into();
    }
    let mut parts = text.split('\u{1b}');
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(0, |it| it + 1);
        out.push_str(if part.starts_with('[') { &part[end..] } else { part });
    }
    out.into()
}

/// The most telling error line of an answer, in normal form.
pub(crate) fn signature(text: &str) -> Option<String> {
    let text = &*plain(text);
    let mut best: Option<(u8, &str)> = None;
    let mut lines = text.lines().take(4_000).map(str::trim);
    while let Some(line) = lines.next() {
        // Biome marks what it says below the place: `×` is an error, `!` and `i` are none.
        let warns =
            || lines.clone().find(|it| !it.is_empty()).is_some_and(|it| it.starts_with(['!', 'i', 'ℹ']));
        let ignored = line.len() > 1_000 || line.ends_with("━━━") && warns();
        let strength = if ignored { 0 } else { strength(line) };
        if strength > best.map_or(0, |it| it.0) {
            best = Some((strength, line));
        }
    }
    best.map(|(_, line)| {
        // The rule that biome draws to the edge is no part of what it says.
        let said = line.trim_end_matches('━').trim_end();
        let said = said.strip_prefix("at ").filter(|_| said.len() < line.len()).unwrap_or(said);
        normal(clip(said, 160))
    })
}

/// How surely a line is an error: 0 not at all; 5 it names its kind and place.
pub(crate) fn strength(line: &str) -> u8 {
    let first = line.split_whitespace().next().unwrap_or_default();
    let kind = first.trim_end_matches(':');
    let named = first.ends_with(':')
        && (kind.ends_with("Error") || kind.ends_with("Exception"))
        && kind.len() > 5
        && kind.chars().all(|c| c.is_alphanumeric() || c == '.' || c == '_');
    let placed = placed_message(line);
    // Code with its number, as runners quote it, is no message.
    if line.split_once(" | ").is_some_and(|it| it.0.trim().parse::<u32>().is_ok()) {
        return 0;
    }
    // These only repeat that something above them failed, or why in hints below.
    if line.starts_with("error: failed to push some refs")
        || line.starts_with("error: script ") && line.contains(" exited with code ")
    {
        return 1;
    }
    // What a linter warns of may have `error` for a name.
    let warns = line.contains(": warning ");
    if line.contains("error[E")
        || line.contains(": error TS")
        || line.contains(" - error TS")
        || line.contains(" error MD")
        || line.starts_with("--- FAIL")
        || line.contains("panicked at")
        || named
    {
        5
    } else if line.starts_with("FAIL ")
        || line.starts_with("FAILED ")
        || line.starts_with("(fail)")
        || line.starts_with("✗ ")
        || line.starts_with("not ok ")
        || placed && !warns && line.to_lowercase().contains("error")
        || line.starts_with("CONFLICT ")
        || line.starts_with("! [rejected]")
        || line.starts_with("! [remote rejected]")
    {
        4
    } else if placed
        || line.contains("━━━")
        || line.starts_with("Error ") && line.contains(": ")
        || ["error:", "Error:", "ERROR:", "fatal:", "panic:", "npm ERR!", "npm error", "Uncaught "]
            .iter()
            .any(|it| line.starts_with(it))
        || line.contains("Error: ")
    {
        3
    } else if line.contains("command not found")
        || line.to_lowercase().contains("no such file or directory")
        || line.contains("are ignored by one of your")
        || line.contains("ermission denied")
        || line.contains(" error: ")
        || line.contains(": not found")
        || line.contains("ERROR ")
    {
        2
    } else {
        0
    }
}

/// Whether a line starts by saying that it is an error: what a command finds may only look like one.
pub(crate) fn says_error(line: &str) -> bool {
    ["fatal:", "error:", "Error:", "Error ", "ERROR:"].iter().any(|it| line.starts_with(it))
}

/// `path:line:column: message`, as compilers and linters write.
fn placed_message(line: &str) -> bool {
    let mut fields = line.splitn(4, ':');
    let (path, number, column) = (fields.next(), fields.next(), fields.next());
    let digits = |it: Option<&str>| {
        it.is_some_and(|it| !it.is_empty() && it.trim().chars().all(|c| c.is_ascii_digit()))
    };
    path.is_some_and(|it| it.contains('.') && !it.contains(' ') && it.len() > 2)
        && digits(number)
        && digits(column)
        && fields.next().is_some_and(|it| it.trim().len() > 3)
}

#[cfg(test)]
mod tests {
    use super::signature;

    #[test]
    fn takes_the_line_that_names_what_went_wrong() {
        for (text, expected) in [
            (
                "error: script \"test\" exited with code 1\n(fail) adds two numbers",
                Some("(fail) adds two numbers"),
            ),
            ("186 |     throw new TypeError: x\nerror: no such export", Some("error: no such export")),
            ("186 |     throw Error: x", None),
            (
                " ! [rejected] main -> main (fetch first)\nerror: failed to push some refs to 'x'",
                Some("! [rejected] main -> main (fetch first)"),
            ),
            ("at ./a.json format ━━━━━", Some("./a.json format")),
            (
                "a.ts:1:2 lint/x ━━━━━\n\n  ! Avoid it.\n\nb.ts:3:4 lint/y ━━━━━\n\n  × Forbidden.",
                Some("b.ts:3:4 lint/y"),
            ),
        ] {
            assert_eq!(signature(text).as_deref(), expected, "{text}");
        }
    }
}
