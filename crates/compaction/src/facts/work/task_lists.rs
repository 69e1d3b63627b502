//! Task lists that the work keeps in a file, as Spec Kit does: `- [ ] T012 Build the pump in src/pump.rs`.

use std::collections::BTreeMap;

use super::and_more;
use super::command::is_read_only;
use super::files::{Files, mentions};
use super::paths::{file_name, path};
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::{clip, flat};
use crate::facts::voice::ToolTopic;
use crate::facts::{Detail, Fact, FileOp, input_of};
use history::tools::Action;
use history::{Call, Output};

/// A task, perhaps behind the line's number or a patch's sign.
static TASK: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?m)^(?:\s*\d+\s*[\t|→:])?([+-])?\s*[-*] \[([ xX])\] \**(T\d{3,4})\b\**:?[ \t]*([^\n]*)$",
);
/// A command that ticks a task: `sed 's/- \[ \] T003/- [X] T003/'`.
static TICKS: AsciiFirstRegex = AsciiFirstRegex::new(r"\[[xX]\\*\] \**(T\d{3,4})\b");

/// What is said of a list. An earlier summary's line about the same list is no longer true.
const NOT_TICKED: &str = " tasks that were seen are not ticked, first ";

/// Between the list and the tasks that follow the first open one.
const THEN: &str = ", then: ";

/// Between the list and the open tasks whose files were changed after the list was first seen.
const BEGUN: &str = ", tasks whose files were changed since: ";

/// Maximum number of tasks that are told after the first open one, and characters of each.
const MAX_TOLD: usize = 6;
const MAX_TASK: usize = 120;

/// Maximum number of open, and of ticked, tasks whose files are noted.
const MAX_TASKS: usize = 60;

struct Task {
    /// The last message that showed it.
    at: usize,
    ticked: bool,
    text: String,
}

#[derive(Default)]
pub(super) struct TaskList {
    /// The last message that showed or changed it.
    at: usize,
    /// By number: `T012`.
    tasks: BTreeMap<String, Task>,
    /// By number, the first message that showed the task.
    first_seen: BTreeMap<String, usize>,
}

/// By file.
pub(super) type TaskLists = BTreeMap<String, TaskList>;

impl TaskList {
    fn read(&mut self, at: usize, text: &str) {
        for found in TASK.captures_iter(text) {
            let [sign, mark, number, told] =
                [1, 2, 3, 4].map(|it| found.get(it).map_or("", |it| it.as_str()));
            self.at = at;
            if sign == "-" {
                self.tasks.remove(number);
            } else {
                self.first_seen.entry(number.to_owned()).or_insert(at);
                let task = Task { at, ticked: mark != " ", text: told.trim().to_owned() };
                self.tasks.insert(number.to_owned(), task);
            }
        }
    }

    /// Reads what an edit replaced: the tasks in it are those of the new text, which is read after it.
    fn forget(&mut self, old: &str) {
        for found in TASK.captures_iter(old) {
            self.tasks.remove(found.get(3).map_or("", |it| it.as_str()));
        }
    }

    fn open(&self) -> impl Iterator<Item = (&String, &Task)> {
        self.tasks.iter().filter(|it| !it.1.ticked)
    }
}

/// Reads the tasks in what a call wrote to a list, and in what it printed of one.
pub(super) fn read(
    lists: &mut TaskLists,
    at: usize,
    call: &Call,
    actions: &[Action],
    output: &Output,
    base: Option<&str>,
) {
    forget_rewritten(lists, actions);
    let written = call.input.as_str();
    let printed = output.text.as_str();
    if ![written, printed]
        .iter()
        .any(|it| it.contains("] T0") || it.contains("] **T0") || it.contains("] T1"))
    {
        return;
    }
    let mut texts = String::new();
    let mut input = input_of(call);
    let old = ["old_string", "oldString"].iter().find_map(|it| input.as_object_mut()?.remove(*it));
    match input {
        serde_json::Value::Null => texts.push_str(written),
        input => join_strings(&input, &mut texts),
    }
    let is_list = |it: &str| it.ends_with(".md") && !it.contains("template");
    let named = |it: &&Action| it.path.as_deref().is_some_and(is_list);
    let tasks = |it: &&Action| named(it) && it.path.as_deref().is_some_and(|it| it.contains("task"));
    let file = actions.iter().find(tasks).or_else(|| actions.iter().find(named));
    if let Some(action) = file {
        let name = path(action.path.as_deref().unwrap_or_default(), action.dir.as_deref(), base);
        let list = lists.entry(name).or_default();
        old.iter().filter_map(|it| it.as_str()).for_each(|it| list.forget(it));
        list.read(at, &texts);
        list.read(at, printed);
    }
    for found in TICKS.captures_iter(&texts) {
        let number = found.get(1).map_or("", |it| it.as_str());
        let last = lists.values_mut().filter(|it| it.tasks.contains_key(number)).max_by_key(|it| it.at);
        if let Some(list) = last
            && let Some(task) = list.tasks.get_mut(number)
        {
            task.ticked = true;
            list.at = at;
        }
    }
}

/// A command that changes a list without naming its tasks, `perl -i -pe 's/\[ \]/[X]/' tasks.md`, leaves unknown which
/// are ticked.
fn forget_rewritten(lists: &mut TaskLists, actions: &[Action]) {
    for command in actions.iter().filter_map(|it| it.command.as_deref()) {
        let named = |name: &String| names(command, name);
        if lists.keys().any(named) && !TICKS.is_match(command) && !is_read_only(command) {
            lists.retain(|name, _| !named(name));
        }
    }
}

/// Notes the files of the tasks, and says how many are open and which come first. `turn`: the message of the last prompt.
pub(super) fn tell(lists: &TaskLists, files: &mut Files, turn: Option<usize>, facts: &mut Vec<Fact>) {
    for (name, list) in lists {
        for task in list.tasks.values().filter(|it| it.ticked).take(MAX_TASKS) {
            files.note_listed(task.at, mentions::in_prose(&task.text));
        }
        let told = |it: &Fact| [NOT_TICKED, THEN, BEGUN].iter().any(|of| it.text.contains(of));
        facts.retain(|it| !(it.topic.is_open_step() && it.text.starts_with(name) && told(it)));
        let gone = matches!(files.last_op(name), Some(FileOp::Deleted | FileOp::Renamed));
        let mut tasks =
            list.open().map(|(number, it)| format!("{number} {}", clip(&flat(&it.text), MAX_TASK).0));
        let Some(first) = tasks.next().filter(|_| !gone) else { continue };
        let then: Vec<String> = tasks.take(MAX_TOLD).collect();
        let (open, all) = (list.open().count(), list.tasks.len());
        // Later messages may show other tasks only.
        let at = list.open().map(|it| it.1.at).min().unwrap_or(list.at);
        let since = turn.is_none_or(|it| list.at >= it);
        let topic = if since { ToolTopic::Open } else { ToolTopic::Unconfirmed };
        let mut tell = |told: String| facts.push(Fact::from_tools(topic, at, told, Detail::None));
        tell(format!("{name}: {open} of {all}{NOT_TICKED}{first}"));
        if !then.is_empty() {
            tell(format!("{name}{THEN}{}", then.join("; ")));
        }
        let begun = list.open().filter_map(|(number, task)| {
            let mut named = mentions::in_prose(&task.text).into_iter().map(|it| path(it, None, files.base));
            let since = list.first_seen[number];
            let file = named
                .find(|it| files.by_path.get(it).is_some_and(|it| it.op.changes() && it.message > since));
            Some(format!("{number} {}", file?))
        });
        let begun: Vec<String> = begun.collect();
        if !begun.is_empty() {
            let told = begun[..begun.len().min(MAX_TOLD)].join("; ");
            tell(format!("{name}{BEGUN}{told}{}", and_more(begun.len().saturating_sub(MAX_TOLD))));
        }
        for (_, task) in list.open().take(MAX_TASKS) {
            files.note_named(task.at, mentions::in_prose(&task.text));
        }
    }
}

/// Whether a command names a file, also relative to another directory or to one in a variable.
fn names(command: &str, path: &str) -> bool {
    let name = file_name(path);
    command.match_indices(name).any(|(at, _)| {
        let before = &command[..at];
        let start =
            before.rfind(|it: char| it.is_whitespace() || "'\"=>(".contains(it)).map_or(0, |it| it + 1);
        let dir = before[start..].trim_start_matches(['.', '/']);
        dir.contains('$') || path.strip_suffix(name).is_some_and(|it| it.ends_with(dir) || dir.ends_with(it))
    })
}

/// All strings in a JSON value, one after the other.
fn join_strings(value: &serde_json::Value, out: &mut String) {
    match value {
        serde_json::Value::String(it) => {
            out.push_str(it);
            out.push('\n');
        }
        serde_json::Value::Array(all) => all.iter().for_each(|it| join_strings(it, out)),
        serde_json::Value::Object(all) => all.values().for_each(|it| join_strings(it, out)),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
    }
}
