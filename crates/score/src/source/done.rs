//! Facts of what was done: files, commands, errors, the plan. Read from tool calls and what they answered.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::commands::{Run, command_key, only_looks, whole_command};
use super::error_line::{says_error, signature, strength};
use super::git::Listed;
use super::outcome::{outcome, still_runs};
use super::plan::Plan;
use crate::cues;
use crate::own_words::{outside_transcripts, own_words, typed};
use crate::probe::{Class, Fact, FileOp, Outcome, Probe};
use crate::text::{clip, normal};
use history::tools::{self, Action, Meaning};
use history::{Call, History, Kind, Output, Part, Role, Text};

/// File, command, error and plan facts of a history.
pub(crate) fn probes(source: &History) -> Vec<Probe> {
    deeds(source).into_probes()
}

/// Steps of the plan that are done at the end of a history.
pub(crate) fn finished(source: &History) -> Vec<String> {
    deeds(source).plan.finished()
}

fn deeds(source: &History) -> Deeds {
    let mut deeds = Deeds {
        cwd: source.meta.cwd.as_deref().unwrap_or_default().to_string(),
        silent: tools::reports_failures(source.meta.agent.as_deref()) == Some(false),
        ..Deeds::default()
    };
    let mut calls: HashMap<&str, (&Call, Vec<Action>)> = HashMap::new();
    for (number, message) in source.messages().iter().enumerate() {
        if message.role == Role::User && message.kind == Kind::Said {
            for text in outside_transcripts(message.texts().map(Text::as_str)) {
                deeds.reported(number, text);
            }
        }
        for part in &message.parts {
            match part {
                Part::Text(text) if message.role == Role::Assistant => {
                    deeds.plan.close_in_passing(text.as_str())
                }
                Part::Call(call) => {
                    calls.insert(&call.id, (call, tools::actions_in(call, source.shell_dir(message))));
                }
                Part::Output(output) => {
                    if let Some((call, actions)) = calls.remove(&*output.id) {
                        deeds.answer(number, call, &actions, output);
                    }
                }
                Part::Text(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {}
            }
        }
    }
    deeds.plan.read_checklist(source);
    deeds
}

/// What an output says of all file actions of its call.
struct Seen {
    failed: bool,
    overwrote: bool,
    /// The tool says that the file is new.
    made: bool,
}

impl Seen {
    fn of(actions: &[Action], output: &Output, silent: bool) -> Self {
        let text = output.text.as_str();
        let shell = actions.first().is_some_and(|it| it.meaning == Meaning::Run);
        Self {
            failed: output.failed
                || cues::FAILED_EDITS.iter().any(|it| text.trim_start().starts_with(it))
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
struct Deeds {
    cwd: String,
    /// The agent's shell reports no failures.
    silent: bool,
    /// By path, in the order of first touch: what was done, and where last.
    files: BTreeMap<String, Vec<(usize, FileOp)>>,
    /// Of files whose changes were undone, how many entries of `files` are from before.
    undone: HashMap<String, usize>,
    /// What git says of files, whoever changed them.
    listed: Listed,
    /// The file that SWE-agent's `edit` means.
    opened: Option<String>,
    commands: BTreeMap<String, Ran>,
    /// By signature: where it last showed, by which command, and since when it is gone.
    errors: BTreeMap<String, Trouble>,
    /// Signatures by the whole command that would show them gone.
    by_command: HashMap<String, Vec<String>>,
    /// Commands that failed last.
    failing: Vec<Failing>,
    /// Codex: commands that still ran when their output came back, by session number.
    running: HashMap<String, String>,
    plan: Plan,
    /// Signatures of conflicts that stand.
    conflicts: Vec<String>,
}

/// The last run of a command.
struct Ran {
    at: usize,
    outcome: Outcome,
    /// The whole commands that begin so, each with how it ended, the newest last.
    runs: Vec<(String, bool)>,
}

impl Ran {
    /// Whether commands that begin alike and go on differently ended differently: their beginning says of none how.
    fn unclear(&self) -> bool {
        self.runs.last().is_some_and(|last| self.runs.iter().any(|it| it.0 != last.0 && it.1 != last.1))
    }
}

struct Failing {
    whole: String,
    runs: Vec<Run>,
    signature: String,
    /// Commands since.
    since: usize,
}

struct Trouble {
    at: usize,
    resolved: Option<usize>,
    unknown: bool,
}

impl Deeds {
    fn answer(&mut self, number: usize, call: &Call, actions: &[Action], output: &Output) {
        let text = output.text.as_str();
        let refused = output.refusal.is_some();
        let seen = Seen::of(actions, output, self.silent);
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

    fn touched(&mut self, number: usize, action: &Action, seen: &Seen) {
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
                    self.file(number, to, FileOp::Created);
                }
                self.file(number, path, FileOp::Deleted);
            }
            _ => {}
        }
    }

    fn file(&mut self, number: usize, path: String, op: FileOp) {
        self.files.entry(path).or_default().push((number, op));
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
        let Some(outcome) = outcome(output, command, self.silent) else { return };
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
            // A chain over several lines is named by its first alone; what follows tells it from others.
            let chain =
                if command.trim().contains('\n') { normal(clip(command, 4_000)) } else { whole.clone() };
            let mut runs = self.commands.remove(&key).map_or_else(Vec::new, |it| it.runs);
            runs.retain(|it| it.0 != chain || it.1 != outcome.ok);
            runs.push((chain, outcome.ok));
            self.commands.insert(key, Ran { at: number, outcome, runs });
        }
        let concludes =
            ["git commit", "git merge --continue", "git rebase --continue", "git cherry-pick --continue"];
        if outcome.ok && concludes.iter().any(|it| command.contains(it)) {
            // Git commits nothing while a conflict stands.
            for signature in std::mem::take(&mut self.conflicts) {
                if let Some(trouble) = self.errors.get_mut(&signature).filter(|it| it.resolved.is_none()) {
                    trouble.resolved = Some(number);
                }
            }
        }
        if outcome.ok {
            for signature in self.by_command.remove(&whole).unwrap_or_default() {
                if let Some(trouble) = self.errors.get_mut(&signature) {
                    trouble.resolved = Some(number);
                }
            }
        } else if let Some(signature) = signature(output.text.as_str()).filter(|it| !looks || says_error(it))
        {
            if signature.starts_with("CONFLICT") {
                self.conflicts.push(signature.clone());
            }
            self.errors.insert(signature.clone(), Trouble { at: number, resolved: None, unknown: false });
            self.failing.push(Failing {
                whole: whole.clone(),
                runs: Run::all(command),
                signature: signature.clone(),
                since: 0,
            });
            self.by_command.entry(whole).or_default().push(signature);
        }
    }

    /// `git checkout -- FILE` and `git restore FILE` undo what was edited.
    fn restored(&mut self, number: usize, command: &str) {
        for part in command.split(['&', ';', '\n']) {
            let part = part.trim();
            // In a merge, one side of what conflicts is taken.
            if part.contains(" --ours") || part.contains(" --theirs") {
                continue;
            }
            let files = match part.strip_prefix("git restore ") {
                Some(rest) if !rest.contains("--staged") => rest,
                Some(_) => continue,
                None if part.starts_with("git checkout ") => match part.split_once(" -- ") {
                    Some((_, rest)) => rest,
                    // A branch or a file: only what is known as a file is one.
                    None => part.trim_start_matches("git checkout "),
                },
                None => continue,
            };
            for file in files.split_whitespace().map(|it| it.trim_matches(['"', '\''])) {
                let path = canonical(file, None, &self.cwd);
                if let Some(done) = self.files.get_mut(&path) {
                    // What stood here when it was undone before are readings.
                    let readings = self.undone.entry(path).or_default();
                    let since = done.split_off(*readings);
                    done.extend(since.into_iter().filter(|(_, op)| *op == FileOp::Read));
                    // It is as it was from here on.
                    if !done.is_empty() {
                        done.push((number, FileOp::Read));
                    }
                    *readings = done.len();
                }
            }
        }
    }

    /// A command that failed and soon went well in other words, or as a part of another: nobody can say that what it
    /// complained of is still there.
    fn tried_again(&mut self, command: &str, ok: bool) {
        /// Commands within which an agent tries again.
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
                && let Some(trouble) = self.errors.get_mut(signature)
            {
                trouble.unknown |= trouble.resolved.is_none();
            }
        }
        let old = self.failing.len().saturating_sub(KNOWN);
        self.failing.drain(..old);
    }

    /// What a program complained of before and does not now: nobody can say that it is still there.
    fn gone(&mut self, command: &str, whole: &str, printed: &str) {
        let now = Run::all(command);
        let printed = normal(printed);
        for Failing { whole: failed, runs, signature, .. } in &self.failing {
            if failed != whole
                && runs.iter().any(|it| now.iter().any(|run| run.covers(it)))
                && !printed.contains(signature.as_str())
                && let Some(trouble) = self.errors.get_mut(signature)
            {
                trouble.unknown |= trouble.resolved.is_none();
            }
        }
    }

    /// Errors that the user pasted. Whether they are gone cannot be seen.
    fn reported(&mut self, number: usize, text: &str) {
        let text = typed(text);
        let own = own_words(text);
        for (line, own) in text.lines().zip(own.lines()) {
            if own.trim().is_empty() && strength(line.trim()) >= 3 {
                let trouble = Trouble { at: number, resolved: None, unknown: true };
                let signature = normal(clip(line.trim(), 160));
                if signature.starts_with("CONFLICT") {
                    self.conflicts.push(signature.clone());
                }
                self.errors.entry(signature).or_insert(trouble);
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
            // What was made since it last did not exist may be said to be created, however often it was edited.
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
            let fact = Fact::Command { command, outcome: ran.outcome };
            out.push(Probe::new(Class::Command, ran.at, fact));
        }
        for (signature, trouble) in self.errors {
            let Trouble { at, resolved, unknown } = trouble;
            out.push(Probe::new(Class::Error, at, Fact::Error { signature, resolved, unknown }));
        }
        out.extend(self.plan.into_probes());
        out
    }
}

/// A path as the source names it best: relative to the working directory below it, with `/`, without `./`.
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
    // What Git Bash calls `/d/x` is `D:/x`, where the session is on a drive of Windows.
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
