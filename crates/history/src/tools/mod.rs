//! What a tool call does, for all agents: one table of names, and the paths and commands in the arguments.
//!
//! It says only what a call asks for. Whether it worked is in its output, which is not looked at here.
//! Arguments may be broken or hostile: then there is an action without path or command, never an error.

pub mod code_mode;
mod json_report;
mod patch;
mod shell;

use std::sync::Arc;

use serde_json::Value;

use crate::Call;
pub use shell::{Document, Joint, Program};

/// What a tool is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Meaning {
    Read,
    /// Changes part of a file.
    Edit,
    /// Writes a whole file, which is new unless the output says otherwise.
    Create,
    Delete,
    /// Moves a file from `path` to `to`.
    Rename,
    /// Runs a shell command.
    Run,
    /// Waits for a command that is already running, types into it, or ends it.
    Attend,
    /// Looks for text or names in files.
    Search,
    List,
    /// Writes or changes the plan or to-do list.
    Plan,
    Ask,
    /// Fetches or searches the web.
    Fetch,
    /// Hands work to another model, or loads a skill.
    Delegate,
    /// Delivers an answer to the user, in place of text.
    Deliver,
    /// Anything else, such as the tools of an unknown MCP server.
    Other,
}

/// One thing that a call does. A call can do several: a patch touches three files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    pub meaning: Meaning,
    /// The file or directory, as the call wrote it. May be relative to `dir`.
    pub path: Option<String>,
    /// The new path of a moved file.
    pub to: Option<String>,
    /// The shell command, without a wrapping `bash -lc`.
    pub command: Option<String>,
    /// The directory that a relative path or the command is in, if the call names it or the shell's is known.
    pub dir: Option<Arc<str>>,
}

impl Action {
    fn new(meaning: Meaning) -> Self {
        Self { meaning, path: None, to: None, command: None, dir: None }
    }

    fn on(meaning: Meaning, path: impl Into<String>) -> Self {
        Self { path: Some(path.into()), ..Self::new(meaning) }
    }
}

/// Tool names in lower case. Sources: Claude Code 2.1, Codex 0.169, Gemini CLI 0.61, OpenCode 1.18, pi 0.50,
/// SWE-agent 1.1, OpenHands SDK 1, and the reference MCP servers for files and shells.
const TABLE: &[(&str, Meaning)] = &[
    ("read", Meaning::Read),
    ("read_file", Meaning::Read),
    ("read_text_file", Meaning::Read),
    ("read_many_files", Meaning::Read),
    ("read_multiple_files", Meaning::Read),
    ("view", Meaning::Read),
    ("view_file", Meaning::Read),
    ("view_image", Meaning::Read),
    ("open", Meaning::Read),
    ("open_file", Meaning::Read),
    ("notebookread", Meaning::Read),
    ("edit", Meaning::Edit),
    ("edit_file", Meaning::Edit),
    ("edit_block", Meaning::Edit),
    ("multiedit", Meaning::Edit),
    ("multi_edit", Meaning::Edit),
    ("notebookedit", Meaning::Edit),
    ("replace", Meaning::Edit),
    ("insert", Meaning::Edit),
    ("str_replace", Meaning::Edit),
    ("search_replace", Meaning::Edit),
    ("replace_in_file", Meaning::Edit),
    ("apply_patch", Meaning::Edit),
    ("patch", Meaning::Edit),
    ("apply_diff", Meaning::Edit),
    ("write", Meaning::Create),
    ("write_file", Meaning::Create),
    ("write_to_file", Meaning::Create),
    ("create", Meaning::Create),
    ("create_file", Meaning::Create),
    ("delete_file", Meaning::Delete),
    ("remove_file", Meaning::Delete),
    ("move_file", Meaning::Rename),
    ("rename_file", Meaning::Rename),
    ("bash", Meaning::Run),
    ("shell", Meaning::Run),
    ("shell_command", Meaning::Run),
    ("local_shell", Meaning::Run),
    ("local_shell_call", Meaning::Run),
    ("exec_command", Meaning::Run),
    ("container.exec", Meaning::Run),
    ("run_shell_command", Meaning::Run),
    ("execute_bash", Meaning::Run),
    ("execute_command", Meaning::Run),
    ("run_command", Meaning::Run),
    ("run_terminal_cmd", Meaning::Run),
    ("terminal", Meaning::Run),
    ("powershell", Meaning::Run),
    ("exec", Meaning::Run),
    // Claude Code: runs on, and tells the model of each line.
    ("monitor", Meaning::Run),
    ("bashoutput", Meaning::Attend),
    ("taskoutput", Meaning::Attend),
    ("killshell", Meaning::Attend),
    ("killbash", Meaning::Attend),
    ("taskstop", Meaning::Attend),
    ("write_stdin", Meaning::Attend),
    ("wait", Meaning::Attend),
    ("grep", Meaning::Search),
    ("glob", Meaning::Search),
    ("search_file_content", Meaning::Search),
    ("grep_search", Meaning::Search),
    ("codebase_search", Meaning::Search),
    ("file_search", Meaning::Search),
    ("search_files", Meaning::Search),
    ("find", Meaning::Search),
    ("find_file", Meaning::Search),
    ("search_dir", Meaning::Search),
    ("search_file", Meaning::Search),
    ("lsp", Meaning::Search),
    ("ls", Meaning::List),
    ("list", Meaning::List),
    ("list_directory", Meaning::List),
    ("list_dir", Meaning::List),
    ("list_files", Meaning::List),
    ("directory_tree", Meaning::List),
    ("todowrite", Meaning::Plan),
    ("todoread", Meaning::Plan),
    ("todo_write", Meaning::Plan),
    ("write_todos", Meaning::Plan),
    ("update_plan", Meaning::Plan),
    ("taskcreate", Meaning::Plan),
    ("taskupdate", Meaning::Plan),
    ("tasklist", Meaning::Plan),
    ("taskget", Meaning::Plan),
    ("task_tracker", Meaning::Plan),
    ("askuserquestion", Meaning::Ask),
    ("ask_user", Meaning::Ask),
    ("ask_user_question", Meaning::Ask),
    ("question", Meaning::Ask),
    ("request_user_input", Meaning::Ask),
    ("ask_followup_question", Meaning::Ask),
    ("exitplanmode", Meaning::Ask),
    ("exit_plan_mode", Meaning::Ask),
    ("plan_exit", Meaning::Ask),
    ("webfetch", Meaning::Fetch),
    ("websearch", Meaning::Fetch),
    ("web_fetch", Meaning::Fetch),
    ("web_search", Meaning::Fetch),
    ("web_search_call", Meaning::Fetch),
    ("google_web_search", Meaning::Fetch),
    ("codesearch", Meaning::Fetch),
    ("fetch", Meaning::Fetch),
    ("task", Meaning::Delegate),
    ("agent", Meaning::Delegate),
    ("skill", Meaning::Delegate),
    ("activate_skill", Meaning::Delegate),
    ("spawn_agent", Meaning::Delegate),
    ("delegate_to_agent", Meaning::Delegate),
    ("structuredoutput", Meaning::Deliver),
    ("structured_output", Meaning::Deliver),
    ("attempt_completion", Meaning::Deliver),
    ("complete_task", Meaning::Deliver),
    ("final_answer", Meaning::Deliver),
    ("submit_answer", Meaning::Deliver),
    ("submit_findings", Meaning::Deliver),
    ("submit_result", Meaning::Deliver),
    ("submitresult", Meaning::Deliver),
    ("submit_review", Meaning::Deliver),
    ("submitreview", Meaning::Deliver),
    ("save_memory", Meaning::Other),
    ("think", Meaning::Other),
    ("submit", Meaning::Other),
];

/// Single words that mean the same behind any server's prefix. Others (`create`, `list`, `task`) do not: an
/// issue tracker has them too.
const PLAIN_WORDS: [&str; 7] = ["bash", "shell", "grep", "glob", "webfetch", "websearch", "multiedit"];

/// Tools whose `command` argument says what to do to `path` (Anthropic's text editor, SWE-agent, OpenHands).
const EDITORS: [&str; 4] =
    ["str_replace_editor", "str_replace_based_edit_tool", "file_editor", "text_editor"];

/// Arguments that name a file or directory, the more specific ones first.
const PATHS: [&str; 13] = [
    "file_path",
    "filePath",
    "notebook_path",
    "absolute_path",
    "path",
    "filename",
    "file_name",
    "file",
    "target_file",
    "relative_path",
    "dir_path",
    "source",
    "old_path",
];

/// Arguments that hold a shell command.
const COMMANDS: [&str; 4] = ["command", "cmd", "script", "commands"];

/// Arguments that name the directory in which a command runs.
const DIRS: [&str; 5] = ["workdir", "cwd", "working_directory", "directory", "dir_path"];

/// The meaning of a tool's name, without MCP prefixes (`mcp__srv__tool`, `mcp_srv_tool`, `srv_tool`).
pub fn meaning(name: &str) -> Meaning {
    match known(name) {
        Some((_, meaning)) => meaning,
        None if editor(name) => Meaning::Edit,
        None => Meaning::Other,
    }
}

/// Tools by which an agent asks the user, by agent, in lower case. OpenCode calls servers' tools
/// `server_tool`, so only a name without `_` is its own.
const QUESTIONS: [(&str, &[&str]); 4] = [
    ("claude-code", &["askuserquestion", "exitplanmode", "exit_plan_mode"]),
    ("codex", &["request_user_input"]),
    ("gemini-cli", &["ask_user", "exit_plan_mode"]),
    ("opencode", &["question"]),
];

/// Whether this is the agent's own tool for asking the user: then its output is the user's answer.
pub fn asks_user(agent: Option<&str>, name: &str) -> bool {
    match QUESTIONS.iter().find(|it| Some(it.0) == agent) {
        Some((_, own)) => own.iter().any(|it| name.eq_ignore_ascii_case(it)),
        None => meaning(name) == Meaning::Ask,
    }
}

/// Agents whose shell tool reports every failure: by an exit code, or by marking the output as failed.
const REPORTING: [&str; 5] = ["claude-code", "codex", "gemini-cli", "opencode", "pi"];

/// Whether an output of the agent's shell that is not marked as failed means exit code 0; none if the agent
/// is not known.
pub fn reports_failures(agent: Option<&str>) -> Option<bool> {
    agent.map(|it| REPORTING.contains(&it))
}

/// Everything that a call does, in order. Never empty: an unknown tool gives one [`Meaning::Other`].
pub fn actions(call: &Call) -> Vec<Action> {
    actions_in(call, None)
}

/// [`actions`], with the directory of the agent's shell: commands run there unless the call names another.
pub fn actions_in(call: &Call, shell_dir: Option<&str>) -> Vec<Action> {
    let text = call.input.as_str();
    let input = if call.freeform { Value::Null } else { serde_json::from_str(text).unwrap_or(Value::Null) };
    if editor(&call.name) {
        return vec![edited_by_command(&input)];
    }
    if code_mode::is_script(call) {
        let actions: Vec<Action> =
            code_mode::calls(call).iter().flat_map(|it| actions_in(it, shell_dir)).collect();
        return if actions.is_empty() { vec![Action::new(Meaning::Other)] } else { actions };
    }
    let (name, meaning) = known(&call.name).unwrap_or(("", Meaning::Other));
    let patch_text = ["patchText", "input", "patch", "diff"].iter().find_map(|key| input.get(key)?.as_str());
    match meaning {
        Meaning::Run => ran(&input, text, call.freeform, shell_dir),
        // Oh My Pi's `edit` takes a patch.
        Meaning::Edit
            if name.ends_with("patch")
                || name == "apply_diff"
                || patch_text.is_some_and(patch::is_envelope) =>
        {
            let patch = patch_text.unwrap_or(text);
            let found = patch::actions(patch);
            if found.is_empty() { vec![located(Meaning::Edit, &input)] } else { found }
        }
        Meaning::Read if several(&input).next().is_some() => {
            several(&input).map(|path| Action::on(Meaning::Read, path)).collect()
        }
        Meaning::Rename => {
            let to = ["destination", "to", "new_path"].iter().find_map(|key| input.get(key)?.as_str());
            vec![Action { to: to.map(Into::into), ..located(Meaning::Rename, &input) }]
        }
        _ => vec![located(meaning, &input)],
    }
}

/// The programs that a shell command line runs, without words that only change how they run (`sudo`, `A=b`).
pub fn programs(command: &str) -> Vec<Program> {
    shell::programs(command)
}

/// The here-documents that a shell command line writes to files, and its patches. `dir` is where it runs.
pub fn documents(command: &str, dir: Option<&str>) -> Vec<Document> {
    shell::documents(command, dir)
}

/// The table's own name for a tool, and its meaning.
fn known(name: &str) -> Option<(&'static str, Meaning)> {
    // No tool has a longer name: APIs allow 64 characters, and there may be a server's prefix.
    let name = name.get(..200).unwrap_or(name).to_ascii_lowercase();
    let find = |it: &str| TABLE.iter().find(|(known, _)| *known == it).copied();
    find(&name).or_else(|| {
        let rest = name.rsplit("__").next().unwrap_or(&name);
        let mut tails =
            std::iter::once(rest).chain(rest.match_indices(['_', '.']).map(|(at, _)| &rest[at + 1..]));
        let same = |tail: &str, meaning: Meaning| {
            // Not a tool that asks the user: a server's tool of that name could answer in the user's place.
            meaning != Meaning::Ask && (tail.contains('_') || PLAIN_WORDS.contains(&tail))
        };
        tails.find_map(|tail| find(tail).filter(|it| same(tail, it.1)))
    })
}

fn editor(name: &str) -> bool {
    EDITORS.iter().any(|it| name.ends_with(it))
}

fn located(meaning: Meaning, input: &Value) -> Action {
    let path = PATHS.iter().find_map(|key| input.get(key)?.as_str()).filter(|it| !is_address(it));
    Action { path: path.map(|it| without_lines(it).into()), ..Action::new(meaning) }
}

/// Whether it names something other than a file: `https://…`, `pr:/143` (Oh My Pi).
fn is_address(path: &str) -> bool {
    path.split_once(":/").is_some_and(|(scheme, _)| {
        scheme.len() > 1 && scheme != "file" && scheme.bytes().all(|it| it.is_ascii_lowercase())
    })
}

/// A path without its range of lines: `a.rs:10-40` (Oh My Pi).
fn without_lines(path: &str) -> &str {
    let lines = |it: &str| {
        it.starts_with(|it: char| it.is_ascii_digit())
            && it.bytes().all(|it| it.is_ascii_digit() || it == b'-')
    };
    path.rsplit_once(':').filter(|it| !it.0.is_empty() && lines(it.1)).map_or(path, |it| it.0)
}

/// Paths in a list argument.
fn several(input: &Value) -> impl Iterator<Item = &str> {
    let list = ["paths", "include", "files"].iter().find_map(|key| input.get(key)?.as_array());
    list.into_iter().flatten().filter_map(Value::as_str)
}

fn edited_by_command(input: &Value) -> Action {
    let meaning = match input.get("command").and_then(Value::as_str).unwrap_or_default() {
        "view" => Meaning::Read,
        "create" => Meaning::Create,
        "delete" => Meaning::Delete,
        _ => Meaning::Edit,
    };
    located(meaning, input)
}

fn ran(input: &Value, text: &str, freeform: bool, shell_dir: Option<&str>) -> Vec<Action> {
    // Codex's `local_shell` has its arguments in `action`.
    let input = input.get("action").filter(|it| it.is_object()).unwrap_or(input);
    let dir = DIRS.iter().find_map(|key| input.get(key)?.as_str()).or(shell_dir);
    let command = COMMANDS.iter().find_map(|key| match input.get(key)? {
        Value::String(it) => Some(it.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            Some(match shell::script_of(&words) {
                Some((0, script)) if script + 1 == words.len() => words[script].into(),
                _ => shell::join(&words),
            })
        }
        _ => None,
    });
    match command.or_else(|| freeform.then(|| text.into())) {
        Some(command) => commanded(&command, dir),
        None => vec![Action::new(Meaning::Run)],
    }
}

/// A command, and what it visibly does to files.
fn commanded(command: &str, dir: Option<&str>) -> Vec<Action> {
    // A model that does not know that the shell is still there writes `cd apps/api && …` in `/w/apps/api`.
    let to = command.strip_prefix("cd ").and_then(|it| it.split([' ', ';', '&', '\n']).next());
    let to = to.map(|it| it.trim_matches(['"', '\'']).trim_start_matches("./").trim_end_matches('/'));
    let to = to.filter(|it| it.contains('/') && !it.starts_with('/'));
    let above = dir.zip(to).and_then(|(dir, to)| dir.strip_suffix(to)?.strip_suffix('/'));
    let dir = above.or(dir);
    let run = Action { command: Some(command.into()), dir: dir.map(Into::into), ..Action::new(Meaning::Run) };
    let mut out = vec![run];
    out.extend(shell::actions(command, dir));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, input: &str, freeform: bool) -> Call {
        Call { id: "c".into(), name: name.into(), input: input.into(), freeform, signature: None }
    }

    /// One line per action: `edit a -> b`, `run (in dir) command`.
    fn shown(name: &str, input: &str, freeform: bool) -> String {
        let line = |it: Action| {
            let mut out = format!("{:?}", it.meaning).to_lowercase();
            if let Some(dir) = it.dir {
                out += &format!(" (in {dir})");
            }
            for part in [it.path, it.command].into_iter().flatten() {
                out += &format!(" {part}");
            }
            if let Some(to) = it.to {
                out += &format!(" -> {to}");
            }
            out
        };
        actions(&call(name, input, freeform)).into_iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn names_of_all_agents_and_prefixes() {
        for (name, expected) in [
            ("Read", Meaning::Read),
            ("NotebookEdit", Meaning::Edit),
            ("TaskUpdate", Meaning::Plan),
            ("mcp__files__read_file", Meaning::Read),
            ("mcp_files_write_file", Meaning::Create),
            ("box_run_shell_command", Meaning::Run),
            ("functions.exec_command", Meaning::Run),
            ("mcp__box__bash", Meaning::Run),
            ("mcp__linear__create", Meaning::Other),
            ("linear_list_issues", Meaning::Other),
            ("update_reservation_flights", Meaning::Other),
            ("str_replace_editor", Meaning::Edit),
            ("", Meaning::Other),
            ("日本語__", Meaning::Other),
        ] {
            assert_eq!(meaning(name), expected, "{name}");
        }
        let mut names: Vec<_> = TABLE.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLE.len(), "a name stands twice");
    }

    #[test]
    fn reads_arguments() {
        for (name, input, expected) in [
            ("Read", r#"{"file_path":"/a b.rs"}"#, "read /a b.rs"),
            ("Read", r#"{"file_path":"#, "read"),
            ("read", r#"{"path":"src/a.rs:10-40"}"#, "read src/a.rs"),
            ("read", r#"{"path":"D:/a.rs"}"#, "read D:/a.rs"),
            ("read", r#"{"path":"pr:/143"}"#, "read"),
            ("Bash", "[1]", "run"),
            ("read_many_files", r#"{"paths":["a","b"]}"#, "read a\nread b"),
            ("str_replace_editor", r#"{"command":"view","path":"/x"}"#, "read /x"),
            ("str_replace_editor", r#"{"command":"str_replace","path":"/x"}"#, "edit /x"),
            ("shell", r#"{"command":["bash","-lc","ls"],"workdir":"/w"}"#, "run (in /w) ls"),
            (
                "shell",
                r#"{"command":"cd b/c && rm x","workdir":"/a/b/c"}"#,
                "run (in /a) cd b/c && rm x\ndelete (in /a/b/c) x",
            ),
            ("shell", r#"{"command":["git","commit","-m","a b"]}"#, "run git commit -m 'a b'"),
            ("local_shell", r#"{"action":{"command":["rm","x.rs"]}}"#, "run rm x.rs\ndelete x.rs"),
            ("move_file", r#"{"source":"a","destination":"b"}"#, "rename a -> b"),
            (
                "apply_patch",
                r#"{"patchText":"*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: b\n*** End Patch"}"#,
                "create a\ndelete b",
            ),
            (
                "apply_patch",
                r#"{"patchText":"*** Begin Patch\n*** Delete File: a\n*** Add File: a\n+x\n*** End Patch"}"#,
                "edit a",
            ),
            (
                "edit",
                r#"{"i":"Mend it","input":"*** Begin Patch\n*** Update File: /w/a\n@@\n-x\n+y\n*** End Patch"}"#,
                "edit /w/a",
            ),
            ("mcp__x__y", "{}", "other"),
        ] {
            assert_eq!(shown(name, input, false), expected, "{name} {input}");
        }
    }

    #[test]
    fn reads_free_text() {
        let patch = "*** Begin Patch\n*** Update File: a.rs\n*** Move to: b.rs\n@@\n-x\n+y\n*** End Patch";
        assert_eq!(shown("apply_patch", patch, true), "rename a.rs -> b.rs\nedit b.rs");
        let script = r#"text(await tools.exec_command({cmd:"rm \"a b.rs\""}));"#;
        assert_eq!(shown("exec", script, true), "run rm \"a b.rs\"\ndelete a b.rs");
        let script =
            "const p = `*** Begin Patch\n*** Add File: n.rs\n+x\n*** End Patch`; tools.apply_patch(p)";
        assert_eq!(shown("exec", script, true), "create n.rs");
        assert_eq!(shown("exec", "1 + 1", true), "other");
    }
}
