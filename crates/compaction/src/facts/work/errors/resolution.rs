//! Which earlier failures a later success resolves.

use std::collections::HashSet;

use super::{Errors, RECENT, unresolved};
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::{clip, flat, sentences};
use crate::facts::work::command::{self, Operation, ParsedCommand, Run};
use crate::facts::work::paths::{file_name, is_elsewhere};
use crate::facts::{Detail, Fact};
use history::Output;
use history::tools::{self, Meaning};

/// Number of messages within which a wrong call is corrected: five calls with their outputs.
const NEAR: usize = 10;

/// A program rejected its arguments or does not exist, or an inline script has a syntax error.
pub(super) static WRONG_CALL: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)\b(?:unknown|unrecogni[sz]ed|unexpected|invalid|illegal|no such) (?:option|argument|flag|switch|command|subcommand)s?\b",
    r"|^usage:|command not found|\b(?:Syntax|Indentation)Error\b|unexpected (?:EOF|end of file)",
));
static MISSING_PROGRAM: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?:^|[\s:])([\w.-]+): (?:command )?not found\b");
pub(super) static MISSING_FILE: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)no such file|not found|does not exist|did not match any|ENOENT|cannot find|can't open",
);
/// Whether an error says that a file is not there.
pub(crate) fn is_missing_file(error: &str) -> bool {
    MISSING_FILE.is_match(error)
}

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

impl Errors<'_> {
    /// A command that changes something succeeded: resolves errors about a missing module or program that it
    /// installs or runs, and the error that the model set out to avoid by another approach.
    pub(in crate::facts::work) fn resolve_by_success(&mut self, run: &Run) {
        let Run { number, command, parsed, .. } = *run;
        let project = self.base.map(file_name);
        let key = command::attempt_key(command);
        // Commands of git alone deliver the work: they are no other approach to what failed.
        let delivers = parsed.names().iter().all(|it| it.starts_with("git "));
        let instead = self.abandoned.take().filter(|_| !delivers);
        for (at, error) in self.facts.iter_mut().enumerate().rev().take(RECENT) {
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
    pub(in crate::facts::work) fn resolve_probe(&mut self, run: &Run) {
        /// Maximum words of a script that does little more than load modules.
        const SHORT: usize = 8;
        let Some(words) = command::inline_script_words(run.command) else { return };
        for error in self.recent() {
            let near = run.number.saturating_sub(error.message) <= 2 * NEAR;
            let Some((text, Some(of), resolved)) = unresolved(error) else { continue };
            let lacks_module = LACKS_MODULE.is_match(text);
            // Further away, or if a short script could not load a module, only if the new one has all its words.
            let again = |it: HashSet<&str>| {
                let alike = near && !(lacks_module && it.len() <= SHORT);
                is_same_subject(&it, &words) && (alike || it.is_subset(&words))
            };
            let same = interpreter(of) == interpreter(run.command);
            if same && command::inline_script_words(of).is_some_and(again) {
                *resolved = Some(run.number);
            }
        }
    }

    /// Notes that the model announces another approach after a failure: the next command is taken for it. A
    /// failed build or check is excluded, since nothing replaces it.
    pub(in crate::facts::work) fn note_other_way(&mut self, number: usize, text: &str) {
        /// Number of messages within which a model says so.
        const SOON: usize = 2;
        let Some(error) = self.facts.last().filter(|it| number.saturating_sub(it.message) <= SOON) else {
            return;
        };
        let Detail::Error { of: Some(of), resolved: None, .. } = &error.detail else { return };
        let says = |it: &&str| INSTEAD.is_match(it);
        if !ParsedCommand::of(of).is_setup() && sentences(text).iter().any(says) {
            self.abandoned = Some(self.facts.len() - 1);
        }
    }

    /// A check ran again, with whatever outcome: errors it prints still stand, errors it omits are resolved.
    pub(in crate::facts::work) fn resolve_absent(&mut self, run: &Run, output: &str) {
        let Run { number, command, parsed, .. } = *run;
        let lines = output.lines().count();
        // Only output with located errors proves that the checker ran at all.
        if !output.lines().any(|it| located(it.trim()).is_some()) {
            return;
        }
        let here = command::directory(command);
        let ran = parsed.operations();
        let base = self.base;
        for error in self.recent() {
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

    /// After a success: resolves recent wrong calls of its programs, or of a missing one that it replaces.
    pub(in crate::facts::work) fn resolve_wrong_calls(&mut self, run: &Run) {
        let names = run.parsed.names();
        for error in self.recent().filter(|it| run.number.saturating_sub(it.message) <= NEAR) {
            let Some((text, Some(of), resolved)) = unresolved(error) else { continue };
            // A JSON syntax error is about data, not about the call.
            if !WRONG_CALL.is_match(text) || text.contains("JSON") {
                continue;
            }
            let failed = ParsedCommand::of(of);
            let missing = MISSING_PROGRAM.captures(text).and_then(|it| Some(it.get(1)?.as_str().to_owned()));
            let corrected = match &missing {
                Some(program) => {
                    failed.runs_under_other_name(program, run.parsed)
                        || failed.goes_without(program, run.parsed)
                }
                None => failed.names().iter().any(|it| names.contains(it)),
            };
            if corrected {
                *resolved = Some(run.number);
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
        for error in self.recent() {
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
        for error in self.recent() {
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
pub(super) fn may_be_elsewhere(error: &str) -> bool {
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
pub(super) fn located(error: &str) -> Option<(&str, &str)> {
    let found = LOCATED.captures(error)?;
    let (file, says) = (found.get(1)?.as_str(), found.get(2)?.as_str());
    // With these marks, a linter prints the location on a line of its own.
    if says.contains(['×', '✖', '✗', '❌']) {
        return None;
    }
    let code = ERROR_CODE.find(says).map_or(says, |it| it.as_str());
    Some((file, code))
}

/// The program that runs an inline script, as written: `python3` and `/opt/env/bin/python3` have other modules.
fn interpreter(command: &str) -> Option<&str> {
    let runs = |it: &&str| {
        let name = file_name(it.trim_matches(['"', '\'']));
        ["python", "node", "ruby", "perl", "php"].iter().any(|program| name.starts_with(program))
    };
    command.split_whitespace().find(runs)
}

/// Whether two scripts are about the same: they share most of the words of the shorter one.
fn is_same_subject(a: &HashSet<&str>, b: &HashSet<&str>) -> bool {
    /// Fewer shared words may be a coincidence.
    const LEAST: usize = 3;
    let shared = a.intersection(b).count();
    shared >= LEAST && shared * 2 >= a.len().min(b.len())
}

/// The kind of checker that an error names by its number or rule: `error TS2322`, `error eslint(sort-keys)`.
fn checker(error: &str) -> Option<&str> {
    static CHECKER: AsciiFirstRegex =
        AsciiFirstRegex::new(r"\b(?:error|warning) (TS)\d+|\b(?:error|warning) ([a-z][\w-]*)\([\w/-]+\)");
    CHECKER.captures(error).and_then(|it| it.get(1).map(|it| it.as_str()).or(it.get(2).map(|_| "linter")))
}

/// Whether an error only says that the file has what an edit wanted (Claude Code, pi).
pub(super) fn changes_nothing(text: &str) -> bool {
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
