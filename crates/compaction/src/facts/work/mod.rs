//! Facts of tool calls: files, commands, errors, and what the user answered when a tool asked.

pub(super) mod checks;
pub(in crate::facts) mod command;
pub(in crate::facts) mod errors;
mod files;
pub(in crate::facts) mod git;
pub(in crate::facts) mod identifiers;
pub(in crate::facts) mod outcome;
pub(in crate::facts) mod paths;
mod runs;
mod task_lists;

use std::collections::HashMap;

use crate::facts::plan::{Answer, user_replies};
use crate::facts::skills;
use crate::facts::text::rule::rule_topic;
use crate::facts::text::typed::{spec_kit_command, user_text};
use crate::facts::text::{clip, flat, without_escapes};
use crate::facts::voice::{ToolTopic, UserReply};
use crate::facts::{Detail, Fact, FileOp, Topic, input_of};
use checks::Checks;
use errors::{Errors, equal};
use files::{Files, mentions};
use git::Repository;
use git::commits::Commits;
use paths::path;
use runs::frame::unframed;
use runs::moved_to;
use task_lists::TaskLists;

use history::tools::{self, Action, Meaning};
use history::{Call, History, Kind, Message, Output, Part, Role, RolledBack};

/// Prefixes, in lower case, of the output of an edit or read that failed (all agents).
const FAILURE_STARTS: [&str; 22] = [
    "<tool_use_error>",
    "apply_patch verification failed",
    "error",
    "failed to",
    "failed with",
    "string to replace not found",
    "your proposed edit has introduced",
    "no changes",
    "no replacement was performed",
    "file has not been read",
    "file does not exist",
    "file not found",
    "could not",
    "cannot",
    "invalid",
    "permission denied",
    "patch failed",
    "old_string",
    "oldstring",
    "no such file",
    "edit failed",
    "user rejected",
];

/// Prefixes of the output of a call that never ran because a parallel call failed (Claude Code 2.1).
const NEVER_RAN: [&str; 2] = ["Sibling tool call errored", "Cancelled: parallel tool call"];

/// Prefix of a line about the repository.
pub(crate) const REPOSITORY: &str = "git: ";

/// Number of messages within which an agent returns to what it listed or tried.
const RECENT_MESSAGES: usize = 60;

#[derive(Default)]
struct Work<'a> {
    base: Option<&'a str>,
    /// Whether the agent's shell reports every failure; `None` where the agent is unknown.
    unmarked_means_success: Option<bool>,
    files: Files<'a>,
    errors: Errors<'a>,
    repository: Repository,
    checks: Checks,
    task_lists: TaskLists,
    /// Background commands, by session id.
    background: HashMap<String, String>,
    /// A command that the user ran in the client, until its output follows.
    user_command: Option<String>,
    /// Directories of the last commands; an empty string for the working directory and those below it.
    recent_dirs: Vec<String>,
    /// The user's prompts so far.
    prompts: Vec<String>,
    /// Message numbers of `prompts`.
    turns: Vec<usize>,
    /// By question that a tool asked the user: index in `facts` of the last answer.
    questions: HashMap<String, usize>,
    commands: Vec<Fact>,
    facts: Vec<Fact>,
}

/// Returns all changes to files, in order, and the session's commits.
pub(in crate::facts) fn read(
    history: &History,
    base: Option<&str>,
    origin: &dyn Fn(usize) -> usize,
    facts: &mut Vec<Fact>,
) -> (Vec<Fact>, Commits) {
    let unmarked_means_success = tools::reports_failures(history.meta.agent.as_deref());
    let (files, errors) = (Files::new(base), Errors::new(base));
    let mut work = Work { base, unmarked_means_success, files, errors, ..Work::default() };
    work.resume(facts);
    work.replay(history);
    work.drop_lost_commits();
    let repository = work.repository.ledger_lines(origin);
    equal::drop_settled_errors(&mut work.errors.facts, history.messages().len());
    task_lists::tell(&work.task_lists, &mut work.files, work.turns.last().copied(), facts);
    work.drop_old_checks();
    work.files.complete_summary_paths();
    work.files.join_spellings();
    work.checks.tell_reports(&work.files, work.prompts.len(), facts);
    work.checks.tell_unchecked(&work.files, facts);
    work.files.tell(history, facts);
    facts.append(&mut work.errors.facts);
    facts.append(&mut work.commands);
    facts.append(&mut work.facts);
    // The first message that is not the client's own: those may stay in front of a summary.
    let client = |it: &Message| it.role == Role::System || it.kind == Kind::Context;
    let first = history.messages().iter().position(|it| !client(it)).unwrap_or(0);
    let place = |text: String| Fact::from_tools(ToolTopic::Directory, first, text, Detail::None);
    facts.extend(base.map(|it| place(work.directory_line(it, history))));
    facts.extend(repository.into_iter().map(|it| place(format!("{REPOSITORY}{it}"))));
    (work.files.changes, work.repository.commits)
}

impl Work<'_> {
    /// Moves what an earlier summary says about files, open errors, reports of checks and the repository from `facts`
    /// to `self`.
    fn resume(&mut self, facts: &mut Vec<Fact>) {
        facts.retain(|it| {
            let known = self.files.resume(it) || self.errors.resume(it) || self.checks.resume(it);
            !(known || it.text.strip_prefix(REPOSITORY).is_some_and(|it| self.repository.resume(it)))
        });
    }

    fn replay(&mut self, history: &History) {
        let mut open: HashMap<&str, (&Call, Vec<Action>)> = HashMap::new();
        for (number, message) in history.messages().iter().enumerate() {
            if message.is_prompt() {
                let prompt = message.plain();
                let mut named = mentions::in_prompt(&prompt);
                // The other files that Spec Kit's templates name are examples.
                if spec_kit_command(&prompt).is_some() {
                    let typed = user_text([&*prompt].into_iter()).concat();
                    named.retain(|it| it.starts_with(".specify/") || typed.contains(it));
                }
                self.files.note_named(number, named);
                self.prompts.push(prompt.to_string());
                self.turns.push(number);
                self.errors.retries.clear();
            }
            message.texts().for_each(|it| self.repository.commits.keep_named(it.as_str()));
            for part in &message.parts {
                match part {
                    Part::Call(call) => {
                        let actions = tools::actions_in(call, history.shell_dir(message));
                        open.insert(&call.id, (call, actions));
                    }
                    Part::Output(output) => {
                        if let Some((call, actions)) = open.remove(&*output.id) {
                            self.read_output(number, call, &actions, output, history);
                        }
                    }
                    Part::Text(text) if message.role == Role::Assistant => {
                        self.repository.log.read_reply(number, text.as_str());
                        self.files.note_announced(number, text.as_str());
                        self.errors.note_excuse(number, text.as_str());
                        self.errors.note_other_way(number, text.as_str());
                    }
                    Part::Text(text) if message.kind == Kind::Context => {
                        self.read_client_text(number, text.as_str());
                    }
                    Part::Text(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {}
                }
            }
        }
    }

    /// The working directory, where the last commands ran, the shell's directory, and rolled-back turns.
    fn directory_line(&self, base: &str, history: &History) -> String {
        let at = moved_to(&self.recent_dirs);
        // As all paths, with `/` for `\\`.
        let here = path(base, None, None);
        let mut text =
            at.map_or(here.clone(), |at| format!("{here}; the last commands ran in or below {at}"));
        let shell_dir = history.messages().last().and_then(|it| history.shell_dir(it));
        let stood = shell_dir.map(|dir| path(dir, None, Some(base))).filter(|_| at.is_none());
        text.extend(stood.map(|dir| format!("; the shell's working directory is {dir}")));
        if let Some(taken) = history.meta.rolled_back.as_ref().filter(|it| !it.changed.is_empty()) {
            text.push_str(&format!("; {}", rolled_back(taken, base)));
        }
        text
    }

    fn read_output(
        &mut self,
        number: usize,
        call: &Call,
        actions: &[Action],
        output: &Output,
        history: &History,
    ) {
        let main = actions.first().map_or(Meaning::Other, |it| it.meaning);
        if output.refusal.is_some()
            || output.failed && NEVER_RAN.iter().any(|it| failure_message(output).starts_with(it))
        {
            return;
        }
        if let Some(answered) = UserReply::of(history, call, output) {
            return self.record_replies(number, call, &answered);
        }
        if !output.failed {
            task_lists::read(&mut self.task_lists, number, call, actions, output, self.base);
        }
        match main {
            Meaning::Run => self.read_run(number, call, actions, &unframed(output)),
            Meaning::Attend => self.read_background_output(number, call, output),
            _ => self.read_tool_output(number, call, actions, output),
        }
    }

    /// Reads the output of a call that ran no command.
    fn read_tool_output(&mut self, number: usize, call: &Call, actions: &[Action], output: &Output) {
        let main = actions.first().map_or(Meaning::Other, |it| it.meaning);
        let named = actions.first().and_then(|it| it.path.as_deref());
        let subject = match named {
            Some(it) => format!("{} {}", call.name, path(it, None, self.base)),
            // With its URL: a page that loads does not resolve the failure of another one.
            None => match fetched(call).filter(|_| main == Meaning::Fetch) {
                Some(what) => format!("{} {}", call.name, flat(clip(&what, 200).0)),
                None => call.name.to_string(),
            },
        };
        if !has_failed(output) {
            actions.iter().for_each(|it| self.record_file_action(number, it, output));
            match main {
                Meaning::Search | Meaning::List => self.files.note_found(number, actions, output),
                Meaning::Delegate if !skills::is_loaded(output.text.as_str()) => {
                    self.read_report(number, call, output.text.as_str());
                }
                _ => {}
            }
            return self.errors.record_success(number, &subject);
        }
        let mut asked = false;
        if let Some(read) = named.filter(|_| main == Meaning::Read) {
            let name = path(read, None, self.base);
            asked = self.prompts.iter().any(|it| it.contains(read) || it.contains(&name));
            // A file that could not be read may not exist.
            if self.files.last_op(&name) == Some(FileOp::Mentioned) {
                self.files.by_path.remove(&name);
            }
        }
        let reports = matches!(main, Meaning::Edit | Meaning::Create | Meaning::Delete | Meaning::Rename)
            || matches!(main, Meaning::Fetch | Meaning::Delegate | Meaning::Other) && output.failed;
        if reports || asked {
            self.errors.record_failure(number, &subject, failure_message(output));
        }
    }

    /// Records a successful action on a file, which may resolve errors about that file.
    fn record_file_action(&mut self, number: usize, action: &Action, output: &Output) {
        let Some(change) = self.files.record(number, action, output) else { return };
        let (path, Detail::File { op, to }) = (&change.text, &change.detail) else { return };
        if matches!(op, FileOp::Deleted | FileOp::Renamed) {
            self.repository.uncommitted.delete(number, path);
        }
        if *op != FileOp::Deleted {
            self.repository.uncommitted.edit(number, to.as_deref().unwrap_or(path));
        }
        self.errors.resolve_edits(number, path);
        if matches!(op, FileOp::Created | FileOp::Written | FileOp::CreatedThenEdited) {
            self.errors.resolve_missing_file(number, path);
        }
    }

    /// Reads the report of a subagent, whose own calls are not in this session.
    fn read_report(&mut self, number: usize, call: &Call, report: &str) {
        const CLEAN: [&str; 3] = ["working tree clean", "working tree is clean", "working tree: clean"];
        let lower = report.to_lowercase();
        if CLEAN.iter().any(|it| lower.contains(it)) {
            self.repository.uncommitted.forget();
        } else if !only_looks(call) {
            self.repository.uncommitted.delegate(number);
        }
        self.files.note_named(number, mentions::in_prose(report));
    }

    fn record_replies(&mut self, number: usize, call: &Call, answered: &UserReply) {
        for Answer { question, said, rules, means } in user_replies(call, answered) {
            self.facts.extend(rules.into_iter().map(|(polarity, it)| {
                Fact::from_user(rule_topic(&it, polarity), number, it, Detail::Rule(polarity))
            }));
            let before = question.as_ref().and_then(|it| self.questions.get(it).copied());
            if let Some(fact) = before.and_then(|it| self.facts.get_mut(it)) {
                // The same answer again, perhaps about something else, takes back nothing.
                if let Detail::Choice { superseded, means: before, .. } = &mut fact.detail {
                    let again = fact.text.as_str() == &*said;
                    if again && *before == means {
                        fact.message = number;
                        continue;
                    }
                    *superseded = (!again).then_some(number);
                }
            }
            self.questions.extend(question.clone().map(|it| (it, self.facts.len())));
            let refused = answered.output.failed;
            let detail = Detail::Choice { asked: question, means, refused, superseded: None };
            self.facts.push(Fact::from_user(Topic::Decisions, number, said, detail));
        }
    }
}

/// The end of a list whose other items are left out.
fn and_more(items: usize) -> String {
    if items > 0 { format!(" and {items} more") } else { String::new() }
}

fn rolled_back(undone: &RolledBack, base: &str) -> String {
    /// Maximum number of files that are named.
    const NAMED: usize = 8;
    let named: Vec<String> = undone.changed.iter().take(NAMED).map(|it| path(it, None, Some(base))).collect();
    let more = and_more(undone.changed.len() - named.len());
    let turns =
        if undone.turns == 1 { "1 turn was".to_owned() } else { format!("{} turns were", undone.turns) };
    format!("{turns} rolled back; what they changed may still be on disk: {}{more}", named.join(", "))
}

/// Whether a call delegates to a kind of subagent that changes no files (Claude Code, OpenCode, Codex).
fn only_looks(call: &Call) -> bool {
    const KINDS: [&str; 8] =
        ["explor", "plan", "librarian", "oracle", "claude-code-guide", "review", "architect", "research"];
    let input = input_of(call);
    let kind = ["subagent_type", "agent_type"].iter().find_map(|it| input.get(*it)?.as_str());
    let kind = kind.unwrap_or_default().to_lowercase();
    KINDS.iter().any(|it| kind.contains(it))
}

/// The URL or query of a web call.
fn fetched(call: &Call) -> Option<String> {
    let input: serde_json::Value = serde_json::from_str(call.input.as_str()).ok()?;
    ["url", "query", "prompt"].iter().find_map(|key| input.get(key)?.as_str().map(str::to_owned))
}

fn has_failed(output: &Output) -> bool {
    let start = clip(output.text.as_str().trim_start(), 60).0.to_lowercase();
    output.failed
        || !output.cleared && FAILURE_STARTS.iter().any(|it| start.starts_with(it))
        || start.starts_with("exit code: ") && !start.starts_with("exit code: 0")
}

/// The tool's error message, without Claude Code's `<tool_use_error>` element around it.
fn failure_message(output: &Output) -> String {
    let text = without_escapes(clip(output.text.as_str().trim(), 4_000).0);
    let text = text.strip_prefix("<tool_use_error>").unwrap_or(&text);
    flat(clip(text.strip_suffix("</tool_use_error>").unwrap_or(text), 200).0)
}
