//! What kind of command a command is, and when two are the same.

use super::text::flat;
use crate::tools;

/// Programs that only look.
const LOOKERS: [&str; 55] = [
    "cat",
    "ls",
    "rg",
    "grep",
    "egrep",
    "find",
    "head",
    "tail",
    "nl",
    "wc",
    "pwd",
    "tree",
    "which",
    "file",
    "stat",
    "du",
    "df",
    "echo",
    "printf",
    "cd",
    "true",
    "sort",
    "uniq",
    "cut",
    "awk",
    "jq",
    "tr",
    "test",
    "[",
    "type",
    "date",
    "ps",
    "env",
    "sleep",
    "code",
    "export",
    "set",
    "less",
    "bat",
    "fd",
    "diff",
    "basename",
    "dirname",
    "realpath",
    "find_file",
    "search_dir",
    "search_file",
    "open",
    "goto",
    "scroll_up",
    "scroll_down",
    "set_cursors",
    "create",
    "edit",
    "insert",
];

/// Subcommands that only look, whatever the program.
const ASKING: [&str; 9] = ["status", "statuses", "list", "show", "view", "info", "where", "help", "ls"];

/// Subcommands that only look, by program.
const LOOKING: [(&str, &[&str]); 5] = [
    (
        "git",
        &[
            "status",
            "diff",
            "log",
            "show",
            "branch",
            "remote",
            "rev-parse",
            "ls-files",
            "grep",
            "blame",
            "merge-base",
            "config",
            "ls-tree",
            "cat-file",
            "describe",
            "reflog",
            "for-each-ref",
            "ls-remote",
            "rev-list",
            "show-ref",
            "symbolic-ref",
            "tag",
            "fetch",
            "-C",
            "--no-pager",
        ],
    ),
    ("sed", &["-n", "-ne"]),
    ("npm", &["view", "ls", "info"]),
    ("bd", &["show", "list", "ready", "--help", "stats", "search"]),
    ("gh", &["--version", "search", "auth"]),
];

/// Words that tell a command by which a project is built, checked or run.
const SETUP: [&str; 16] = [
    "test",
    "tests",
    "build",
    "lint",
    "fmt",
    "format",
    "check",
    "typecheck",
    "tsc",
    "install",
    "clippy",
    "vet",
    "pytest",
    "vitest",
    "sync",
    "dev",
];

/// What makes two runs the same command: without where it runs, and without what only trims its output.
pub(super) fn key(command: &str) -> String {
    let mut rest = command.trim();
    while let Some(after) =
        rest.strip_prefix("cd ").and_then(|it| it.split_once("&&")).map(|(_, it)| it.trim())
    {
        rest = after;
    }
    for cut in [" -m ", " <<", "2>&1", "| tail", "| head", "|tail", "|head", "; echo"] {
        if let Some((before, _)) = rest.split_once(cut) {
            rest = before.trim();
        }
    }
    flat(rest)
}

/// Whether a command only looks at things.
pub(super) fn looks(command: &str) -> bool {
    let programs = tools::programs(command);
    !programs.is_empty()
        && programs.iter().all(|words| {
            let head = words[0].rsplit('/').next().unwrap_or(&words[0]);
            let second = words.get(1).map(String::as_str).unwrap_or_default();
            let sub = LOOKING.iter().find(|(program, _)| *program == head);
            let shown = head == "gh"
                && words.get(2).is_some_and(|it| ["view", "list", "diff", "checks"].contains(&it.as_str()));
            let asks = words.iter().any(|it| it == "--help" || it == "--version")
                || ASKING.contains(&second) && head != "git";
            (asks || LOOKERS.contains(&head) || shown || sub.is_some_and(|(_, subs)| subs.contains(&second)))
                && !(head == "git"
                    && second == "-C"
                    && !words.iter().any(|it| ["status", "diff", "log", "show"].contains(&it.as_str())))
        })
}

/// Whether a project is built, checked or run by it.
pub(super) fn sets_up(command: &str) -> bool {
    tools::programs(command).iter().any(|words| {
        words.iter().take(4).any(|it| {
            SETUP
                .iter()
                .any(|known| it == known || it.strip_prefix(known).is_some_and(|rest| rest.starts_with(':')))
        })
    })
}

/// Whether a command throws changes away.
pub(super) fn discards(command: &str) -> bool {
    tools::programs(command).iter().any(|words| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["git", "checkout", "--" | ".", ..]
            | ["git", "checkout", _, "--", _, ..]
            | ["git", "revert", _, ..] => true,
            ["git", "restore", ref rest @ ..] => !rest.contains(&"--staged"),
            ["git", "reset", ref rest @ ..] => rest.contains(&"--hard"),
            _ => false,
        }
    })
}
