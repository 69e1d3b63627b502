//! Records the outcomes of commands.

mod background;
pub(super) mod frame;

use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::{clip, flat, without_escapes};
use crate::facts::voice::ToolTopic;
use crate::facts::work::command::{Operation, ParsedCommand, Run};
use crate::facts::work::errors::resolution;
use crate::facts::work::files::regenerated::{after_delete, is_regenerated};
use crate::facts::work::git::is_of_other_tree;
use crate::facts::work::outcome::{self, Outcome, package_scripts, says_nothing, wrong_flag};
use crate::facts::work::paths::{self, is_absolute, is_at_or_below, path};
use crate::facts::work::{Work, command, failure_message, has_failed};
use crate::facts::{Detail, Fact, input_of};
use history::tools::{Action, Meaning};
use history::{Call, Output};

/// Number of last commands that decide in which directory the work takes place.
const RECENT_COMMANDS: usize = 6;

/// The shell could not enter a directory: whether the command did anything to files there is unknown.
static NOT_ENTERED: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?m)^\S*(?:sh|\(eval\))\S*[: ].{0,20}\bcd:.{0,400}(?:[Nn]o such file or directory|[Nn]ot a directory)",
);

/// The shell could not parse the command, and ran nothing of it.
static NOT_PARSED: AsciiFirstRegex = AsciiFirstRegex::new(
    r"^(?:(?:\S*/)?(?:ba|da|k|z)?sh|\(eval\)): ?(?:-c: )?(?:eval: )?(?:line )?\d*:? ?(?:syntax error near unexpected token|parse error near|Syntax error: |unexpected EOF while looking for matching)",
);

/// A file that a program says it wrote: `wrote docs/index.html (12 kB)`.
static WROTE: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?im)^\W{0,4}(?:wrote|generated|updated|(?:written|saved|exported|rendered)(?: \w+){0,3} to|output (?:written|saved) to):? [`'\x22]?((?:~?/)?(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.\w{1,8})(?:[`'\x22,;:(\s]|\.?$)",
);

/// What the exit code alone tells, of an output that the agent has cleared.
fn outcome_of_cleared(output: &Output, command: &ParsedCommand) -> Outcome {
    let ok = match output.exit {
        Some(0) => (!command.is_compound()).then_some(true),
        Some(_) if !command.hides_failure() && !command.exits_1_on_no_match() => Some(false),
        Some(_) | None => None,
    };
    Outcome { ok, exit: output.exit.filter(|_| ok.is_some()), ..Outcome::default() }
}

impl Work<'_> {
    pub(super) fn read_run(&mut self, number: usize, call: &Call, actions: &[Action], output: &Output) {
        let commands: Vec<&str> = actions.iter().filter_map(|it| it.command.as_deref()).collect();
        let mut outcome =
            outcome::read(output, &commands.join("\n"), self.unmarked_means_success == Some(true));
        let parsed: Vec<ParsedCommand> = commands.iter().map(|it| ParsedCommand::of(it)).collect();
        let unread = outcome.result.is_none() || self.unmarked_means_success.is_none();
        if unread
            && outcome.ok.is_none()
            && outcome.exit.is_none()
            && outcome.running.is_none()
            && !outcome.is_stopped()
            && !output.cleared
        {
            let failed = has_failed(output);
            let text = output.text.as_str();
            let hides = |it: &ParsedCommand| {
                it.masks_exit_code() || it.hides_check(false) || outcome::tells_nothing(it, text)
            };
            let masked = parsed.iter().any(hides) || commands.iter().any(|it| wrong_flag(it, text).is_some());
            outcome.ok = (failed || self.unmarked_means_success.is_none() && !masked).then_some(!failed);
            outcome.error = failed.then(|| failure_message(output));
        }
        if outcome.ok != Some(false) && !NOT_ENTERED.is_match(output.text.as_str()) {
            self.record_files_of_run(number, actions, &parsed, output);
        }
        for (command, dir) in
            actions.iter().filter_map(|it| Some((it.command.as_deref()?, it.dir.as_deref())))
        {
            self.record_directory(command, dir);
            if let Some(session) = &outcome.running {
                self.background.insert(session.clone(), command.into());
            }
            let whole =
                dir.filter(|it| is_absolute(it)).and_then(|it| with_start_dir(command, it, self.base));
            let command = whole.as_deref().unwrap_or(command);
            let purpose = purpose(call);
            let is_script = command::has_inline_script(command) || command.trim().lines().count() > 2;
            let told = purpose.as_deref().filter(|_| is_script);
            let told = told.map(|it| format!("# {}\n{command}", flat(clip(it, 160).0)));
            self.record_outcome(number, told.as_deref().unwrap_or(command), outcome.clone(), output);
            if outcome.ok == Some(false) {
                self.errors.note_wanted_failure(number, command);
                purpose.into_iter().for_each(|it| self.errors.note_wanted_failure(number, &it));
            }
        }
    }

    /// Records what a command that is not known to have failed read, listed, changed and removed.
    fn record_files_of_run(
        &mut self,
        number: usize,
        actions: &[Action],
        parsed: &[ParsedCommand],
        output: &Output,
    ) {
        let absent: Vec<&str> =
            parsed.iter().flat_map(|it| it.missing_arguments(output.text.as_str())).collect();
        let is_absent = |it: &Action| {
            it.meaning == Meaning::Read && it.path.as_deref().is_some_and(|it| absent.contains(&it))
        };
        // Git takes `REV:path` relative to the root of the repository.
        let here: Vec<&ParsedCommand> = parsed.iter().filter(|it| !is_of_other_tree(it, self.base)).collect();
        // A file that was changed since the revision is another one.
        let same = |it: &String| {
            !absent.contains(&it.as_str())
                && !self.repository.uncommitted.is_changed(&path(it, None, self.base))
        };
        let shown: Vec<String> =
            here.into_iter().flat_map(ParsedCommand::files_of_revision).filter(same).collect();
        for path in shown {
            let read =
                Action { meaning: Meaning::Read, path: Some(path), to: None, command: None, dir: None };
            self.record_file_action(number, &read, output);
        }
        // `rm -rf dist && npm run build`: what was deleted is there again.
        let after: Vec<Vec<&str>> = parsed.iter().flat_map(after_delete).collect();
        let remade = |it: &Action| {
            it.meaning == Meaning::Delete
                && it.path.as_deref().is_some_and(|path| is_regenerated(path, &after))
        };
        actions
            .iter()
            .filter(|it| it.meaning != Meaning::Run && !is_absent(it) && !remade(it))
            .for_each(|it| self.record_file_action(number, it, output));
        actions.iter().filter(|it| remade(it)).for_each(|it| self.files.forget_deletion(it));
        let dir = actions.first().and_then(|it| it.dir.as_deref());
        // In `ls ~/go 2>/dev/null` the path may be a guess, and a missing one shows no error.
        let places = parsed.iter().filter(|it| it.is_read_only()).flat_map(|it| it.searched_paths());
        let places: Vec<String> = places.collect();
        let text = printed(output);
        let silenced = |it: &Action| it.command.as_ref().is_some_and(|it| it.contains("2>/dev/null"));
        let hidden = actions.iter().any(silenced) && (places.len() > 1 || text.trim().is_empty());
        for place in places.into_iter().filter(|it| !hidden || text.contains(it.as_str())) {
            self.files.note(number, path(&place, dir, self.base));
        }
        if parsed.iter().any(ParsedCommand::is_read_only) {
            self.files.note_found(number, actions, output);
        } else {
            self.record_reported_files(number, dir, output);
        }
    }

    /// Records the known files that a program says it wrote; others are mostly products of a build.
    fn record_reported_files(&mut self, number: usize, dir: Option<&str>, output: &Output) {
        /// Maximum number of files: more are products of a build.
        const MOST: usize = 8;
        let text = printed(output);
        let written: Vec<&str> =
            WROTE.captures_iter(text).filter_map(|it| Some(it.get(1)?.as_str())).collect();
        for written in written.iter().filter(|_| written.len() <= MOST) {
            let known = paths::printed(written, dir, self.base).filter(|it| self.files.last_op(it).is_some());
            if known.is_some() {
                let action =
                    Action { meaning: Meaning::Create, path: known, to: None, command: None, dir: None };
                self.record_file_action(number, &action, output);
            }
        }
    }

    fn record_directory(&mut self, command: &str, dir: Option<&str>) {
        let dir = match (command::directory(command), dir) {
            (Some(to), from) => path(to, from, self.base),
            (None, Some(from)) => path(from, None, self.base),
            (None, None) => String::new(),
        };
        self.files.command_dirs.extend((!dir.is_empty()).then(|| dir.clone()));
        let other = is_absolute(&dir) && self.base.is_none_or(|it| dir != path(it, None, self.base));
        if self.recent_dirs.len() == RECENT_COMMANDS {
            self.recent_dirs.remove(0);
        }
        self.recent_dirs.push(if other { dir } else { String::new() });
    }

    fn record_outcome(&mut self, number: usize, command: &str, mut outcome: Outcome, output: &Output) {
        let command = self.without_base(command.trim());
        if command.is_empty() {
            return;
        }
        let parsed = ParsedCommand::of(command);
        let read_only = parsed.is_read_only();
        if output.cleared {
            outcome = outcome_of_cleared(output, &parsed);
        }
        if outcome.ok == Some(true) && outcome.result.is_none() && is_silent(&parsed, command, output) {
            outcome = Outcome { ok: None, result: Some(outcome::PRINTED_NOTHING.into()), ..outcome };
        }
        if outcome.ok != Some(false)
            && let Some(line) =
                printed(output).trim_start().lines().next().filter(|it| NOT_PARSED.is_match(it))
        {
            outcome = Outcome { ok: Some(false), error: Some(flat(clip(line, 200).0)), ..outcome };
        }
        let run = Run { number, command, parsed: &parsed, output };
        let ended = outcome.running.is_none() && !outcome.is_stopped();
        let committed = outcome.result.as_deref().is_some_and(|it| it.starts_with("committed "));
        if read_only {
            outcome = self.record_read_only_run(&run, &outcome);
        } else {
            if outcome.ok == Some(false) {
                self.errors.abandoned = None;
            }
            if ended {
                self.errors.resolve_absent(&run, printed(output));
            }
            if outcome.ok == Some(false) {
                self.record_failure(&run, &outcome);
            } else if ended {
                self.record_finished_run(&run, &outcome, committed);
            }
        }
        self.checks.note(&run);
        if ended && !output.cleared {
            self.checks.read_report(&run, &outcome, printed(output), self.prompts.len());
        }
        // A commit stands even if something beside it failed.
        if (outcome.ok != Some(false) || committed) && outcome.running.is_none() {
            self.repository.read(&run, &mut self.files, &self.prompts);
        }
        if outcome.ok == Some(true) && outcome.result.is_none() {
            outcome.result = printed_answer(command, output).or_else(|| http_error(command, &parsed, output));
        }
        // Its files are facts of their own.
        if outcome.ok != Some(false) && parsed.only_writes_files() {
            return;
        }
        let detail = Detail::Command { outcome, read_only };
        self.commands.push(Fact::from_tools(ToolTopic::Commands, number, command.into(), detail));
    }

    /// A command without the `cd` to the working directory, which the summary states once.
    fn without_base<'c>(&self, command: &'c str) -> &'c str {
        let moves = command.strip_prefix("cd ").and_then(|it| it.split_once("&&"));
        let to_base =
            |dir: &str| self.base.is_some_and(|it| path(dir, None, Some(it)) == path(it, None, Some(it)));
        let rest = moves.filter(|(dir, _)| to_base(dir.trim().trim_matches('\''))).map(|it| it.1.trim());
        rest.unwrap_or(command)
    }

    /// Records a read-only command. A search without matches, or for the word "error", is no failure.
    fn record_read_only_run(&mut self, run: &Run, outcome: &Outcome) -> Outcome {
        let Run { number, command, parsed, output } = *run;
        let died = parsed.ends_in_viewer() && outcome::starts_as_fatal(output.text.as_str());
        let found = outcome.exit.map_or(!output.failed && !died, |it| it == 0);
        self.errors.note_try(run, found);
        if found {
            self.errors.record_success(number, command);
            self.errors.resolve_wrong_calls(run);
        } else if let Some(error) = fatal_line(output)
            && let Some(error) = self.errors.record_failure(number, command, error)
        {
            self.errors.expect_retry(error, run);
        }
        let told =
            outcome.exit.is_some() || output.failed || died || self.unmarked_means_success != Some(false);
        let nothing = outcome.exit == Some(1) && is_empty_output(output) && parsed.searches();
        Outcome {
            exit: outcome.exit,
            ok: (told && (found || outcome.exit != Some(1) && !parsed.only_asks())).then_some(found),
            result: nothing.then(|| "no matches".into()),
            ..Outcome::default()
        }
    }

    fn record_failure(&mut self, run: &Run, outcome: &Outcome) {
        let Run { number, command, parsed, .. } = *run;
        let text = outcome.error.clone().or_else(|| outcome.result.clone());
        self.errors.note_try(run, false);
        // A failure that says nothing resolves none.
        if let Some(error) = text.and_then(|it| self.errors.record_failure(number, command, it)) {
            self.errors.track_operations(error, parsed);
            self.errors.expect_retry(error, run);
        }
    }

    /// Records a command that ended and is not known to have failed.
    fn record_finished_run(&mut self, run: &Run, outcome: &Outcome, committed: bool) {
        let Run { number, command, parsed, output } = *run;
        let tells = |it: &str| it == outcome::CHECKED_NOTHING || it == outcome::PRINTED_NOTHING;
        let nothing = outcome.result.as_deref().is_some_and(tells) || outcome.says_failed();
        let ok = !nothing && outcome.ok == Some(true);
        let unmasked =
            outcome.exit.is_none_or(|it| it == 0) && !parsed.masks_exit_code() && !parsed.hides_failure();
        if ok || !nothing && unmasked {
            self.errors.record_success(number, command);
        }
        let well = ok && (!parsed.hides_failure() || is_empty_output(output));
        self.errors.note_try(run, well);
        // The program accepted its arguments, whatever its result.
        if well || !is_empty_output(output) && !resolution::is_wrong_call(output) {
            self.errors.resolve_wrong_calls(run);
        }
        if well {
            self.errors.end_operations(run);
            self.record_scripts(run);
            self.errors.resolve_by_success(run);
            self.files.forget_reinstalled(parsed);
            self.errors.resolve_probe(run);
            self.errors.resolve_by_green_commit(run, committed);
            let shown = outcome.result.as_deref().is_none_or(|it| it.starts_with("printed"));
            if shown && !parsed.is_setup() {
                self.errors.keep_printed(number, printed(output));
            }
        }
        let commits = |it: Vec<&str>| it.starts_with(&["git", "commit"]);
        if parsed.programs().any(commits) || command.contains("--continue") {
            self.errors.resolve_conflicts(number);
        }
        self.facts.extend(self.repository.read_discards(run, &mut self.files));
        if parsed.is_setup() {
            self.facts.push(Fact::from_tools(ToolTopic::Setup, number, command.into(), Detail::None));
        }
    }

    /// Records that the scripts which `npm test` says it runs succeeded.
    fn record_scripts(&mut self, run: &Run) {
        for script in package_scripts(run.parsed, printed(run.output)) {
            self.errors.record_success(run.number, &script);
            let parsed = ParsedCommand::of(&script);
            self.errors.end_operations(&Run { command: &script, parsed: &parsed, ..*run });
        }
    }

    /// Removes the hashes of lost commits (amended, rebased or reset since) from the results of commands.
    pub(super) fn drop_lost_commits(&mut self) {
        for fact in &mut self.commands {
            let Detail::Command { outcome, .. } = &mut fact.detail else { continue };
            let Some(result) = outcome.result.as_deref().and_then(|it| it.strip_prefix("committed ")) else {
                continue;
            };
            let Some((hashes, branch)) = result.split_once(" on ") else { continue };
            let left: Vec<&str> =
                hashes.split(", ").filter(|it| !self.repository.commits.is_lost(it)).collect();
            let branch = left.last().map(|it| self.repository.commits.branch_of(it, branch).to_owned());
            outcome.result = branch.map(|it| format!("committed {} on {it}", left.join(", ")));
        }
    }
}

/// A command that began in `dir`, with that directory in its own leading `cd` or in a `cd` line before it,
/// which the summary leaves out. `None` if it began in the working directory or its `cd` is absolute.
fn with_start_dir(command: &str, dir: &str, base: Option<&str>) -> Option<String> {
    let command = command.trim_start();
    match command::directory(command) {
        Some(to) if is_absolute(to) => None,
        Some(to) => {
            let rest = command.strip_prefix("cd ")?;
            Some(format!("cd {}", rest.replacen(to, &path(to, Some(dir), base), 1)))
        }
        None => {
            let dir = path(dir, None, base);
            base.is_none_or(|it| path(it, None, base) != dir).then(|| format!("cd {dir}\n{command}"))
        }
    }
}

/// Whether a test runner or installer printed nothing, though each prints at least a count: it did not run.
fn is_silent(parsed: &ParsedCommand, command: &str, output: &Output) -> bool {
    const PRINTS: [&str; 7] = ["vitest", "jest", "pytest", "nextest", "cargo test", "npm install", "npm ci"];
    const QUIET: [&str; 4] = ["-s", "-q", "--silent", "--quiet"];
    let prints = |it: &Operation| PRINTS.iter().any(|program| it.name.contains(program));
    let quiet = command.split_whitespace().any(|it| QUIET.contains(&it));
    let redirects = command.replace("2>&1", "").contains('>');
    // A message about a command in the background has no output, and answers no call.
    let seen = !output.id.is_empty();
    let empty =
        is_empty_output(output) || printed(output).lines().all(|it| outcome::exit_code::is_stated(it.trim()));
    // What `timeout` stops before a filter prints nothing and fails in silence.
    let timed = command.contains("timeout ") && (command.contains("| head") || command.contains("| tail"));
    seen && empty && !quiet && !redirects && (timed || parsed.operations().iter().any(prints))
}

/// The purpose of a call, where the agent states it (Claude Code, OpenCode).
fn purpose(call: &Call) -> Option<String> {
    input_of(call).get("description")?.as_str().map(str::to_owned).filter(|it| !it.trim().is_empty())
}

/// What a command printed, without the header that Codex puts before it.
fn printed(output: &Output) -> &str {
    let text = output.text.as_str();
    text.split_once("\nOutput:").map_or(text, |it| it.1)
}

/// What an inline script printed, if it is a line or two: that is what the script was run for.
fn printed_answer(command: &str, output: &Output) -> Option<String> {
    const SHORT: usize = 200;
    if output.cleared || command::inline_script_words(command).is_none() {
        return None;
    }
    let text = without_escapes(clip(printed(output), 4 * SHORT).0);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
    let short =
        (1..=2).contains(&lines.len()) && lines.iter().map(|it| it.chars().count()).sum::<usize>() <= SHORT;
    let says = |it: &&str| it.contains(char::is_alphanumeric) && !says_nothing(it);
    let told = lines.join(" / ").replace('→', "->").replace('`', "'");
    (short && lines.iter().any(says)).then(|| format!("printed: {told}"))
}

/// An HTTP status that says that a request failed, in a line or as all that is in it: `curl -w '%{http_code}'`.
static HTTP_ERROR: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\b(?:status(?:[_ ]?code)?|http(?:/[\d.]+)?)\W{1,4}[45]\d\d\b|^\W*[45]\d\d(?: (?:Unauthorized|Forbidden|Not Found|Bad Request|Internal Server Error).*)?$",
);

/// The line in which a request, or a script that may make one, prints that the server refused it.
fn http_error(command: &str, parsed: &ParsedCommand, output: &Output) -> Option<String> {
    const LINE: usize = 100;
    let requests = || ["curl", "wget", "http", "xh"].iter().any(|it| parsed.runs(it));
    if output.cleared || !requests() && command::inline_script_words(command).is_none() {
        return None;
    }
    let text = without_escapes(clip(printed(output), 4_000).0);
    let line = text.lines().map(str::trim).find(|it| it.len() <= 2 * LINE && HTTP_ERROR.is_match(it))?;
    Some(format!("printed: {}", clip(line, LINE).0.replace('→', "->").replace('`', "'")))
}

/// The error message of a read-only program that failed.
fn fatal_line(output: &Output) -> Option<String> {
    const STARTS: [&str; 5] = ["fatal: ", "error: ", "Error: ", "ERROR: ", "Error "];
    let text = without_escapes(clip(printed(output), 4_000).0);
    let line = text.lines().map(str::trim).find(|it| !it.is_empty() && !it.starts_with("Exit code"))?;
    STARTS.iter().any(|it| line.starts_with(it)).then(|| flat(clip(line, 200).0))
}

fn is_empty_output(output: &Output) -> bool {
    let text = printed(output).trim();
    let code = text.strip_prefix("Exit code ").map(|it| it.trim_start_matches(|c: char| c.is_ascii_digit()));
    let text = code.unwrap_or(text).trim();
    text.is_empty() || says_nothing(text)
}

/// The directory, other than the working directory, in or below which the last commands all ran.
pub(super) fn moved_to(recent_dirs: &[String]) -> Option<&str> {
    let above = recent_dirs.iter().min_by_key(|it| it.len()).filter(|it| !it.is_empty())?;
    let enough = recent_dirs.len() >= RECENT_COMMANDS;
    (enough && recent_dirs.iter().all(|it| is_at_or_below(it, above))).then_some(above)
}
