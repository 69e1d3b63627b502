//! Facts about what was done: files, commands, errors, the plan. Read from tool calls and their outputs.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::commands::{Run, command_key, only_looks, whole_command};
use super::error_line::{says_error, signature, strength};
use super::git::Listed;
use super::outcome::{outcome, still_runs};
use super::plan::Plan;
use crate::own_words::{outside_transcripts, own_words, typed};
use crate::probe::{Class, Fact, FileOp, Outcome, Probe};
use crate::program_words;
use crate::text::{clip, normal};
use history::tools::{self, Action, Meaning};
use history::{Call, History, Kind, Output, Part, Role, Text};

/// File, command, error and plan facts of a history.
pub(crate) fn probes(source: &History) -> Vec<Probe> {
    actions_of(source).into_probes()
}

/// Steps of the plan that are done at the end of a history.
pub(crate) fn finished(source: &History) -> Vec<String> {
    actions_of(source).plan.finished()
}

fn actions_of(source: &History) -> Actions {
    let mut done = Actions {
        cwd: source.meta.cwd.as_deref().unwrap_or_default().to_string(),
        shell_hides_failures: tools::reports_failures(source.meta.agent.as_deref()) == Some(false),
        ..Actions::default()
    };
    let mut calls: HashMap<&str, (&Call, Vec<Action>)> = HashMap::new();
    for (number, message) in source.messages().iter().enumerate() {
        if message.role == Role::User && message.kind == Kind::Said {
            for text in outside_transcripts(message.texts().map(Text::as_str)) {
                done.reported(number, text);
            }
        }
        for part in &message.parts {
            match part {
                Part::Text(text) if message.role == Role::Assistant => {
                    done.plan.close_in_passing(text.as_str())
                }
                Part::Call(call) => {
                    calls.insert(&call.id, (call, tools::actions_in(call, source.shell_dir(message))));
                }
                Part::Output(output) => {
                    if let Some((call, actions)) = calls.remove(&*output.id) {
                        done.answer(number, call, &actions, output);
                    }
                }
                Part::Text(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {}
            }
        }
    }
    done.plan.read_checklist(source);
    done
}

/// What an output tells about all file actions of its call.
struct OutputSigns {
    failed: bool,
    overwrote: bool,
    /// Whether the tool says that the file is new.
    made: bool,
}

impl OutputSigns {
    fn of(actions: &[Action], output: &Output, silent: bool) -> Self {
        let text = output.text.as_str();
        let shell = actions.first().is_some_and(|it| it.meaning == Meaning::Run);
        Self {
            failed: output.failed
                || program_words::FAILED_EDITS.iter().any(|it| text.trim_start().starts_with(it))
                || shell
                    && (text.contains(": cd: ") && text.contains("o such file or directory")
                        || still_runs(text).is_some()
                        || !outcome(output, "", silent).is_none_or(|it| it.ok)),
            overwrote: text.contains("has been updated") || text.contains("overwr"),
            made: text.starts_with("File created successfully"),
        }
    }
}

#[derive(Default)]
struct Actions {
    cwd: String,
    /// Whether the agent's shell reports no failures.
    shell_hides_failures: bool,
    /// By path: what was done, in order, each with its message.
    files: BTreeMap<String, Vec<(usize, FileOp)>>,
    /// For files whose changes were undone: how many entries of `files` are older than that.
    undone: HashMap<String, usize>,
    /// What git says about files, whoever changed them.
    listed: Listed,
    /// The file that SWE-agent's `edit` refers to.
    opened: Option<String>,
    commands: BTreeMap<String, CommandRun>,
    /// By signature: where it last occurred, and whether it is gone.
    errors: BTreeMap<String, ErrorState>,
    /// Signatures of errors, by the whole command whose success shows them gone.
    by_command: HashMap<String, Vec<String>>,
    failing: Vec<Failing>,
    /// Codex: commands that were still running when their output came, by session number.
    running: HashMap<String, String>,
    plan: Plan,
    /// Signatures of unresolved merge conflicts.
    conflicts: Vec<String>,
}

/// The hash of the commit that a command made, as git prints it: `[main 1a2b3c4] subject`.
fn commit_made(command: &str, output: &str) -> Option<String> {
    // What else a chain does, the commit does not tell.
    const AROUND: [&str; 6] = ["git add", "git status", "git log", "git diff", "git show", "cd "];
    let commits = |it: &str| it.starts_with("git ") && it.split(' ').any(|it| it == "commit");
    let around = |it: &str| it.starts_with("git -C ") || AROUND.iter().any(|of| it.starts_with(of));
    let chain = command.split(" -m ").next().unwrap_or(command);
    let only = chain.split("&&").map(str::trim).all(|it| commits(it) || around(it));
    if !only || !chain.split("&&").any(|it| commits(it.trim())) {
        return None;
    }
    let hash = |it: &str| Some(it.split_once(']')?.0.rsplit_once(' ')?.1.to_owned());
    let is_hash = |it: &String| it.len() >= 7 && it.bytes().all(|it| it.is_ascii_hexdigit());
    output.split('[').skip(1).filter_map(hash).find(is_hash)
}

/// The last run of a command.
struct CommandRun {
    at: usize,
    outcome: Outcome,
    /// The hash of the commit that it made.
    commit: Option<String>,
    /// The whole commands with this key, each with whether it succeeded, the newest last.
    runs: Vec<(String, bool)>,
}

impl CommandRun {
    /// Whether different commands with this key ended differently, so that it tells no outcome.
    fn unclear(&self) -> bool {
        self.runs.last().is_some_and(|last| self.runs.iter().any(|it| it.0 != last.0 && it.1 != last.1))
    }
}

struct Failing {
    whole: String,
    runs: Vec<Run>,
    signature: String,
    /// Number of commands since.
    since: usize,
}

struct ErrorState {
    at: usize,
    resolved: Option<usize>,
    unknown: bool,
}

impl Actions {
    fn answer(&mut self, number: usize, call: &Call, actions: &[Action], output: &Output) {
        let text = output.text.as_str();
        let refused = output.refusal.is_some();
        let seen = OutputSigns::of(actions, output, self.shell_hides_failures);
        for action in actions {
            match action.meaning {
                Meaning::Run if !refused => {
                    if let Some(command) = &action.command {
                        self.ran(number, command, output);
                    }
                }
                Meaning::Attend => {
                    let session = serde_json::from_str::<Value>(call.input.as_str()).ok().and_then(|it| {
                        it.get("session_id")
                            .map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_string))
                    });
                    if let Some(command) = session.and_then(|it| self.running.get(&it).cloned()) {
                        self.ran(number, &command, output);
                    }
                }
                Meaning::Plan if !output.failed => self.plan.read_call(number, call, text),
                Meaning::Read | Meaning::Edit | Meaning::Create | Meaning::Delete | Meaning::Rename => {
                    self.touched(number, action, &seen);
                }
                _ => {}
            }
        }
    }

    fn touched(&mut self, number: usize, action: &Action, seen: &OutputSigns) {
        if seen.failed {
            return;
        }
        let path =
            action.path.clone().or_else(|| self.opened.clone().filter(|_| action.meaning == Meaning::Edit));
        let Some(path) = path.map(|it| canonical(&it, action.dir.as_deref(), &self.cwd)) else { return };
        if path.is_empty() {
            return;
        }
        let known =
            self.files.get(&path).is_some_and(|it| it.last().is_some_and(|(_, op)| *op != FileOp::Deleted));
        match action.meaning {
            Meaning::Read => {
                self.opened = Some(path.clone());
                self.file(number, path, FileOp::Read);
            }
            Meaning::Edit => self.file(number, path, FileOp::Edited),
            Meaning::Create => {
                let over = known && !seen.made || seen.overwrote;
                self.opened = Some(path.clone());
                self.file(number, path, if over { FileOp::Edited } else { FileOp::Created });
            }
            Meaning::Delete => self.file(number, path, FileOp::Deleted),
            Meaning::Rename => {
                if let Some(to) = &action.to {
                    let to = canonical(to, action.dir.as_deref(), &self.cwd);
                    // `mv a/* b`
                    if let Some((from, to)) = path.strip_suffix('*').zip(to.strip_suffix('*')) {
                        let below: Vec<String> =
                            self.files.keys().filter(|it| it.starts_with(from)).cloned().collect();
                        for name in below {
                            let done = self.files.remove(&name).unwrap_or_default();
                            self.files.insert(format!("{to}{}", &name[from.len()..]), done);
                        }
                        return;
                    }
                    self.file(number, to, FileOp::Created);
                }
                self.file(number, path, FileOp::Deleted);
            }
            _ => {}
        }
    }

    fn file(&mut self, number: usize, path: String, op: FileOp) {
        // `rm -rf .git && git init`: what git keeps is no file of the work.
        if path != ".git" && !path.ends_with("/.git") {
            self.files.entry(path).or_default().push((number, op));
        }
    }

    fn ran(&mut self, number: usize, command: &str, output: &Output) {
        if let Some(session) = still_runs(output.text.as_str()) {
            self.running.insert(session, command.to_string());
            return;
        }
        let key = command_key(command);
        if key.is_empty() || output.cleared {
            return;
        }
        self.listed.read(command, output.text.as_str());
        let Some(outcome) = outcome(output, command, self.shell_hides_failures) else { return };
        if outcome.ok {
            self.restored(number, command);
        }
        let looks = only_looks(&key);
        let whole = whole_command(command);
        if !looks {
            self.tried_again(&whole, outcome.ok);
        }
        self.gone(command, &whole, output.text.as_str());
        if !looks {
            // The key of several lines is only the first one; the others tell it from other commands.
            let chain =
                if command.trim().contains('\n') { normal(clip(command, 4_000)) } else { whole.clone() };
            let mut runs = self.commands.remove(&key).map_or_else(Vec::new, |it| it.runs);
            runs.retain(|it| it.0 != chain || it.1 != outcome.ok);
            runs.push((chain, outcome.ok));
            let commit = outcome.ok.then(|| commit_made(command, output.text.as_str())).flatten();
            self.commands.insert(key, CommandRun { at: number, outcome, commit, runs });
        }
        let concludes =
            ["git commit", "git merge --continue", "git rebase --continue", "git cherry-pick --continue"];
        if outcome.ok && concludes.iter().any(|it| command.contains(it)) {
            // Git commits nothing while a conflict is unresolved.
            for signature in std::mem::take(&mut self.conflicts) {
                if let Some(error) = self.errors.get_mut(&signature).filter(|it| it.resolved.is_none()) {
                    error.resolved = Some(number);
                }
            }
        }
        if outcome.ok {
            for signature in self.by_command.remove(&whole).unwrap_or_default() {
                if let Some(error) = self.errors.get_mut(&signature) {
                    error.resolved = Some(number);
                }
            }
        } else if let Some(signature) = signature(output.text.as_str()).filter(|it| !looks || says_error(it))
        {
            if signature.starts_with("CONFLICT") {
                self.conflicts.push(signature.clone());
            }
            self.errors.insert(signature.clone(), ErrorState { at: number, resolved: None, unknown: false });
            self.failing.push(Failing {
                whole: whole.clone(),
                runs: Run::all(command),
                signature: signature.clone(),
                since: 0,
            });
            self.by_command.entry(whole).or_default().push(signature);
        }
    }

    /// `git checkout -- FILE` and `git restore FILE` undo edits.
    fn restored(&mut self, number: usize, command: &str) {
        for part in command.split(['&', ';', '\n']) {
            let part = part.trim();
            // In a merge, this only takes one side of a conflict.
            if part.contains(" --ours") || part.contains(" --theirs") {
                continue;
            }
            let files = match part.strip_prefix("git restore ") {
                Some(rest) if !rest.contains("--staged") => rest,
                Some(_) => continue,
                None if part.starts_with("git checkout ") => match part.split_once(" -- ") {
                    Some((_, rest)) => rest,
                    // A branch or a file: only a known file is one.
                    None => part.trim_start_matches("git checkout "),
                },
                None => continue,
            };
            for file in files.split_whitespace().map(|it| it.trim_matches(['"', '\''])) {
                let path = canonical(file, None, &self.cwd);
                if let Some(done) = self.files.get_mut(&path) {
                    // Older entries are reads: an earlier undo removed the edits.
                    let readings = self.undone.entry(path).or_default();
                    let since = done.split_off(*readings);
                    done.extend(since.into_iter().filter(|(_, op)| *op == FileOp::Read));
                    // Undone, the file is as it was read.
                    if !done.is_empty() {
                        done.push((number, FileOp::Read));
                    }
                    *readings = done.len();
                }
            }
        }
    }

    /// A command failed, and soon succeeded in other words or as part of another: whether its error is still
    /// there is unknown.
    fn tried_again(&mut self, command: &str, ok: bool) {
        /// Maximum number of commands after which an agent tries again.
        const SOON: usize = 3;
        const KNOWN: usize = 40;
        let operands = |it: &str| -> Vec<String> {
            let words = it.split(|c: char| c.is_whitespace() || "\"'`;|&()=".contains(c));
            let named =
                |it: &&str| it.len() > 4 && !it.starts_with('-') && it.contains(['/', '.', '-', '_', ':']);
            words.filter(named).map(|it| it.rsplit('/').next().unwrap_or(it).to_owned()).collect()
        };
        let now = operands(command);
        for Failing { whole: failed, signature, since, .. } in &mut self.failing {
            *since += 1;
            let again = *since <= SOON && operands(failed).iter().any(|it| it.len() > 4 && now.contains(it));
            if ok
                && (again || command.len() > failed.len() && command.contains(failed.as_str()))
                && let Some(error) = self.errors.get_mut(signature)
            {
                error.unknown |= error.resolved.is_none();
            }
        }
        let old = self.failing.len().saturating_sub(KNOWN);
        self.failing.drain(..old);
    }

    /// A program no longer prints an error that it printed before: whether that is still there is unknown.
    fn gone(&mut self, command: &str, whole: &str, printed: &str) {
        let now = Run::all(command);
        let printed = normal(printed);
        for Failing { whole: failed, runs, signature, .. } in &self.failing {
            if failed != whole
                && runs.iter().any(|it| now.iter().any(|run| run.covers(it)))
                && !printed.contains(signature.as_str())
                && let Some(error) = self.errors.get_mut(signature)
            {
                error.unknown |= error.resolved.is_none();
            }
        }
    }

    /// Errors that the user pasted. Whether they are gone is unknown.
    fn reported(&mut self, number: usize, text: &str) {
        let text = typed(text);
        let own = own_words(text);
        for (line, own) in text.lines().zip(own.lines()) {
            if own.trim().is_empty() && strength(line.trim()) >= 3 {
                let error = ErrorState { at: number, resolved: None, unknown: true };
                let signature = normal(clip(line.trim(), 160));
                if signature.starts_with("CONFLICT") {
                    self.conflicts.push(signature.clone());
                }
                self.errors.entry(signature).or_insert(error);
                return;
            }
        }
    }

    fn into_probes(self) -> Vec<Probe> {
        let mut out = Vec::new();
        for (path, done) in self.files {
            let last = done.iter().rev().find(|(_, op)| *op != FileOp::Read).or(done.last());
            let Some(&(_, op)) = last else { continue };
            let mut ops: Vec<FileOp> = done.iter().map(|it| it.1).collect();
            // A file that exists may be called created, however often it was edited since.
            if op == FileOp::Deleted {
                ops.retain(|it| *it != FileOp::Created);
            }
            ops.extend(self.listed.of(&path));
            ops.sort_unstable();
            ops.dedup();
            let mut messages: Vec<usize> = done
                .iter()
                .filter(|(_, it)| op == FileOp::Read || *it != FileOp::Read)
                .map(|it| it.0)
                .collect();
            messages.dedup();
            out.push(Probe { class: Class::File, messages, fact: Fact::File { path, op, done: ops } });
        }
        for (command, ran) in self.commands.into_iter().filter(|it| !it.1.unclear()) {
            let fact = Fact::Command { command, outcome: ran.outcome, commit: ran.commit };
            out.push(Probe::new(Class::Command, ran.at, fact));
        }
        for (signature, error) in self.errors {
            let ErrorState { at, resolved, unknown } = error;
            out.push(Probe::new(Class::Error, at, Fact::Error { signature, resolved, unknown }));
        }
        out.extend(self.plan.into_probes());
        out
    }
}

/// A path as the source names it best: relative to the working directory if below it, with `/`, without `./`.
pub(crate) fn canonical(path: &str, dir: Option<&str>, cwd: &str) -> String {
    let mut whole = path.trim().replace('\\', "/");
    let absolute = |it: &str| it.starts_with(['/', '~', '$']) || it.get(1..3) == Some(":/");
    if let Some(dir) = dir.filter(|_| !absolute(&whole)) {
        whole = format!("{}/{whole}", dir.replace('\\', "/").trim_end_matches('/'));
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|it| !it.is_empty() && *it != "..") => {
                parts.pop();
            }
            "" if !parts.is_empty() => {}
            part => parts.push(part),
        }
    }
    let mut whole = parts.join("/");
    let base = cwd.replace('\\', "/");
    // Git Bash writes `D:/x` as `/d/x`; only undone if the session is on a Windows drive.
    if base.get(1..3) == Some(":/")
        && let Some((letter, rest)) = whole.strip_prefix('/').and_then(|it| it.split_once('/'))
        && letter.len() == 1
    {
        whole = format!("{}:/{rest}", letter.to_uppercase());
    }
    match whole.strip_prefix(base.trim_end_matches('/')).and_then(|it| it.strip_prefix('/')) {
        Some(rest) if !base.is_empty() => rest.to_string(),
        _ => whole,
    }
}
