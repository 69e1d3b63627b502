//! Facts of what was done: files, commands, errors, the plan. Read from tool calls and what they answered.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::cues;
use super::probe::{Class, Fact, FileOp, Outcome, Probe};
use super::text::{clip, normal, own_words};
use crate::history::{Call, History, Kind, Output, Part, Role};
use crate::tools::{self, Action, Meaning};

/// File, command, error and plan facts of a history.
pub(super) fn probes(source: &History) -> Vec<Probe> {
    let mut deeds =
        Deeds { cwd: source.meta.cwd.as_deref().unwrap_or_default().to_string(), ..Deeds::default() };
    let mut calls: HashMap<&str, (&Call, Vec<Action>)> = HashMap::new();
    for (number, message) in source.messages().iter().enumerate() {
        for part in &message.parts {
            match part {
                Part::Call(call) => {
                    calls.insert(&call.id, (call, tools::actions(call)));
                }
                Part::Output(output) => {
                    if let Some((call, actions)) = calls.remove(&*output.id) {
                        deeds.answer(number, call, &actions, output);
                    }
                }
                Part::Text(text) if message.role == Role::User && message.kind == Kind::Said => {
                    deeds.reported(number, text.as_str());
                }
                Part::Text(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {}
            }
        }
    }
    deeds.checklist(source);
    deeds.into_probes()
}

#[derive(Default)]
struct Deeds {
    cwd: String,
    /// By path, in the order of first touch: what was done, and where last.
    files: BTreeMap<String, Vec<(usize, FileOp)>>,
    /// The file that SWE-agent's `edit` means.
    opened: Option<String>,
    commands: BTreeMap<String, (usize, Outcome)>,
    /// By signature: where it last showed, by which command, and since when it is gone.
    errors: BTreeMap<String, Trouble>,
    /// Signatures by the command that would show them gone.
    by_command: HashMap<String, Vec<String>>,
    /// Codex: commands that still ran when their output came back, by session number.
    running: HashMap<String, String>,
    /// Plan items with the message that last set them; the tools with ids keep theirs.
    plan: Vec<(String, String, bool)>,
    planned_at: Option<usize>,
    list_at: HashMap<String, usize>,
}

struct Trouble {
    at: usize,
    resolved: Option<usize>,
    unknown: bool,
}

impl Deeds {
    fn answer(&mut self, number: usize, call: &Call, actions: &[Action], output: &Output) {
        let text = output.text.as_str();
        let refused = is_refusal(output);
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
                Meaning::Plan if !output.failed => self.planned(number, call, text),
                Meaning::Read | Meaning::Edit | Meaning::Create | Meaning::Delete | Meaning::Rename => {
                    self.touched(number, actions, action, output);
                }
                Meaning::Run
                | Meaning::Plan
                | Meaning::Search
                | Meaning::List
                | Meaning::Ask
                | Meaning::Fetch
                | Meaning::Delegate
                | Meaning::Other => {}
            }
        }
    }

    fn touched(&mut self, number: usize, all: &[Action], action: &Action, output: &Output) {
        let shell = all.first().is_some_and(|it| it.meaning == Meaning::Run);
        let text = output.text.as_str();
        let failed = output.failed
            || is_refusal(output)
            || FAILED_EDITS.iter().any(|it| text.trim_start().starts_with(it))
            || shell && (still_runs(text).is_some() || !outcome(output, "").is_none_or(|it| it.ok));
        if failed {
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
                let over = known || text.contains("has been updated") || text.contains("overwr");
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
            Meaning::Run
            | Meaning::Attend
            | Meaning::Search
            | Meaning::List
            | Meaning::Plan
            | Meaning::Ask
            | Meaning::Fetch
            | Meaning::Delegate
            | Meaning::Other => {}
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
        if key.is_empty() || only_looks(&key) || output.cleared {
            return;
        }
        let Some(outcome) = outcome(output, command) else { return };
        self.commands.insert(key.clone(), (number, outcome));
        if outcome.ok {
            for signature in self.by_command.remove(&key).unwrap_or_default() {
                if let Some(trouble) = self.errors.get_mut(&signature) {
                    trouble.resolved = Some(number);
                }
            }
        } else if let Some(signature) = signature(output.text.as_str()) {
            self.errors.insert(signature.clone(), Trouble { at: number, resolved: None, unknown: false });
            self.by_command.entry(key).or_default().push(signature);
        }
    }

    /// Errors that the user pasted. Whether they are gone cannot be seen.
    fn reported(&mut self, number: usize, text: &str) {
        let own = own_words(text);
        for (line, own) in text.lines().zip(own.lines()) {
            if own.trim().is_empty() && strength(line.trim()) >= 3 {
                let trouble = Trouble { at: number, resolved: None, unknown: true };
                self.errors.entry(normal(clip(line.trim(), 160))).or_insert(trouble);
                return;
            }
        }
    }

    fn planned(&mut self, number: usize, call: &Call, answer: &str) {
        let Ok(input) = serde_json::from_str::<Value>(call.input.as_str()) else { return };
        let text = |item: &Value, keys: &[&str]| {
            keys.iter().find_map(|key| item.get(*key)?.as_str()).map(normal).filter(|it| !it.is_empty())
        };
        let list = ["todos", "plan", "task_list", "items", "tasks"]
            .iter()
            .find_map(|key| input.get(key)?.as_array());
        if let Some(list) = list {
            self.plan.clear();
            for item in list {
                if let Some(content) =
                    text(item, &["content", "step", "description", "title", "text", "subject"])
                {
                    self.plan.push((String::new(), content, is_open(item)));
                }
            }
            self.planned_at = Some(number);
        } else if let Some(id) = text(&input, &["taskId", "task_id", "id"]) {
            let entry = self.plan.iter_mut().find(|(known, _, _)| *known == id);
            if let Some((_, content, open)) = entry {
                if let Some(new) = text(&input, &["subject"]) {
                    *content = new;
                }
                if input.get("status").is_some() {
                    *open = is_open(&input);
                }
                self.list_at.insert(id, number);
                self.planned_at = Some(number);
            }
        } else if let Some(content) = text(&input, &["subject", "title"]) {
            // Claude Code 2.1: `Task #3 created successfully: …`.
            let id: String = answer
                .split('#')
                .nth(1)
                .unwrap_or_default()
                .chars()
                .take_while(char::is_ascii_digit)
                .collect();
            let id = if id.is_empty() { (self.plan.len() + 1).to_string() } else { id };
            self.list_at.insert(id.clone(), number);
            self.plan.push((id, content, true));
            self.planned_at = Some(number);
        }
    }

    /// Without a plan tool, the last checklist of at least two items in what user or model wrote is the plan.
    fn checklist(&mut self, source: &History) {
        if self.planned_at.is_some() {
            return;
        }
        for (number, message) in source.messages().iter().enumerate().rev() {
            if message.kind != Kind::Said {
                continue;
            }
            let plain = message.plain();
            let boxes: Vec<(bool, &str)> = plain
                .lines()
                .map(|it| it.trim().trim_start_matches(['-', '*', ' ']))
                .filter_map(|it| {
                    it.strip_prefix("[ ]").map(|rest| (true, rest)).or_else(|| {
                        it.strip_prefix("[x]").or_else(|| it.strip_prefix("[X]")).map(|rest| (false, rest))
                    })
                })
                .collect();
            if boxes.len() >= 2 {
                self.plan = boxes.iter().map(|(open, text)| (String::new(), normal(text), *open)).collect();
                self.planned_at = Some(number);
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
            ops.sort_unstable();
            ops.dedup();
            let mut messages: Vec<usize> = done
                .iter()
                .filter(|(_, it)| op == FileOp::Read || *it != FileOp::Read)
                .map(|it| it.0)
                .collect();
            messages.dedup();
            out.push(Probe { class: Class::F, messages, fact: Fact::File { path, op, done: ops } });
        }
        for (command, (number, outcome)) in self.commands {
            out.push(Probe::new(Class::X, number, Fact::Command { command, outcome }));
        }
        for (signature, trouble) in self.errors {
            let Trouble { at, resolved, unknown } = trouble;
            out.push(Probe::new(Class::E, at, Fact::Error { signature, resolved, unknown }));
        }
        for (id, item, open) in self.plan {
            if let (true, Some(at)) = (open, self.list_at.get(&id).copied().or(self.planned_at)) {
                out.push(Probe::new(Class::P, at, Fact::Plan { item }));
            }
        }
        out
    }
}

/// How answers start that say no without being marked so.
const FAILED_EDITS: [&str; 5] =
    ["<tool_use_error>", "apply_patch verification failed", "Error:", "error:", "failed"];

/// Whether the user, asked for permission, said no.
pub(super) fn is_refusal(output: &Output) -> bool {
    let head = clip(output.text.as_str(), 400);
    output.failed && cues::REFUSALS.iter().any(|it| head.contains(it))
}

fn is_open(item: &Value) -> bool {
    let status = item.get("status").and_then(Value::as_str).unwrap_or("pending");
    !["completed", "done", "cancelled", "canceled", "deleted", "complete"].contains(&status)
}

/// A path as the source names it best: relative to the working directory below it, with `/`, without `./`.
pub(super) fn canonical(path: &str, dir: Option<&str>, cwd: &str) -> String {
    let mut whole = path.trim().replace('\\', "/");
    let absolute = |it: &str| it.starts_with(['/', '~']) || it.get(1..3) == Some(":/");
    if let Some(dir) = dir.filter(|_| !absolute(&whole)) {
        whole = format!("{}/{whole}", dir.trim_end_matches('/'));
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
    let whole = parts.join("/");
    let base = cwd.replace('\\', "/");
    match whole.strip_prefix(base.trim_end_matches('/')).and_then(|it| it.strip_prefix('/')) {
        Some(rest) if !base.is_empty() => rest.to_string(),
        _ => whole,
    }
}

/// Codex: the number of the session that a command still runs in.
fn still_runs(text: &str) -> Option<String> {
    let head = clip(text, 400);
    if let Some((_, rest)) = head.split_once("Process running with session ID ") {
        return Some(rest.chars().take_while(char::is_ascii_alphanumeric).collect());
    }
    head.contains("running in background with ID").then(String::new)
}

/// What names a command: its first line up to a here-document, without `cd … &&` before and filters after it, at most
/// 120 characters.
pub(super) fn command_key(command: &str) -> String {
    let mut rest = command.trim();
    while let Some(after) = rest
        .strip_prefix("cd ")
        .or_else(|| rest.strip_prefix("export "))
        .and_then(|it| it.split_once("&&").or_else(|| it.split_once(';')))
    {
        rest = after.1.trim_start_matches([' ', '\\', '\n']);
    }
    rest = rest
        .lines()
        .find(|it| !it.trim().is_empty() && !it.trim_start().starts_with('#'))
        .unwrap_or_default();
    for mark in ["<<", "\"$(cat"] {
        if let Some((before, _)) = rest.split_once(mark) {
            rest = before;
        }
    }
    let mut key = normal(rest);
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
    clip(&key, 120).trim_end_matches([' ', '&', '|', ';']).to_string()
}

/// Whether a command only looks around, in all its parts.
fn only_looks(command: &str) -> bool {
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
    parts.iter().all(|part| {
        let mut words: Vec<&str> =
            part.split_whitespace().skip_while(|it| it.contains('=') || *it == "rtk").collect();
        if words.first() == Some(&"git") && words.get(1) == Some(&"-C") {
            words.drain(1..3.min(words.len()));
        }
        let head = words.first().map_or("", |it| it.rsplit('/').next().unwrap_or(it));
        let two = words.iter().take(2).copied().collect::<Vec<_>>().join(" ");
        let three = words.iter().take(3).copied().collect::<Vec<_>>().join(" ");
        let acts = cues::ACTING.iter().any(|it| *it == three);
        head.is_empty()
            || head.chars().all(|c| c.is_ascii_digit() || c == '>')
            || !acts
                && (cues::LOOKING.contains(&head)
                    || cues::LOOKING_PAIRS.contains(&two.as_str())
                    || words.get(1).is_some_and(|it| cues::LOOKING_SECOND.contains(it))
                    || words.contains(&"--help"))
    })
}

/// How a command ended, if its answer tells.
fn outcome(output: &Output, command: &str) -> Option<Outcome> {
    let text = output.text.as_str();
    if output.cleared || clip(text, 200).contains("[Request interrupted") {
        return None;
    }
    let start = clip(text, 400);
    let end = tail(text, 3_000);
    let exit = exit_code(start).or_else(|| exit_code(tail(end, 300)));
    let (passed, failed) = counts(end);
    let piped = command.contains('|') && signature(text).is_some_and(|it| strength(&it) >= 4);
    let ok = match exit {
        Some(code) => code == 0,
        None => !output.failed,
    };
    let ok = ok && failed.is_none_or(|it| it == 0) && !piped;
    Some(Outcome { ok, exit, passed, failed })
}

fn tail(text: &str, limit: usize) -> &str {
    let mut at = text.len().saturating_sub(limit);
    while !text.is_char_boundary(at) {
        at += 1;
    }
    &text[at..]
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

/// Numbers of passed and failed tests in the last line that counts them.
pub(super) fn counts(text: &str) -> (Option<u64>, Option<u64>) {
    let (mut passed, mut failed) = (None, None);
    for line in text.lines().rev().take(40) {
        let lower = line.to_lowercase();
        if !lower.contains("pass") && !lower.contains("fail") || lower.contains("file") {
            continue;
        }
        let words: Vec<&str> =
            lower.split(|c: char| !(c.is_alphanumeric() || c == '#')).filter(|it| !it.is_empty()).collect();
        for pair in words.windows(2) {
            let number = |it: &str| it.parse::<u64>().ok();
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

/// The most telling error line of an answer, in normal form.
fn signature(text: &str) -> Option<String> {
    let mut best: Option<(u8, &str)> = None;
    for line in text.lines().take(4_000) {
        let line = line.trim();
        let strength = if line.len() > 1_000 { 0 } else { strength(line) };
        if strength > best.map_or(0, |it| it.0) {
            best = Some((strength, line));
        }
    }
    best.map(|(_, line)| normal(clip(line, 160)))
}

/// How surely a line is an error: 0 not at all; 5 it names its kind and place.
fn strength(line: &str) -> u8 {
    let first = line.split_whitespace().next().unwrap_or_default();
    let kind = first.trim_end_matches(':');
    let named = first.ends_with(':')
        && (kind.ends_with("Error") || kind.ends_with("Exception"))
        && kind.len() > 5
        && kind.chars().all(|c| c.is_alphanumeric() || c == '.' || c == '_');
    let placed = placed_message(line);
    if line.contains("error[E")
        || line.contains(": error TS")
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
        || placed && line.to_lowercase().contains("error")
        || line.starts_with("CONFLICT ")
    {
        4
    } else if placed
        || ["error:", "Error:", "ERROR:", "fatal:", "panic:", "npm ERR!", "npm error", "Uncaught "]
            .iter()
            .any(|it| line.starts_with(it))
        || line.contains("Error: ")
    {
        3
    } else if line.contains("command not found")
        || line.contains("No such file or directory")
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
