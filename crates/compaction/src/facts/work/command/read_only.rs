//! Which programs change nothing.

use crate::facts::work::paths::file_name;

const READ_ONLY_PROGRAMS: [&str; 67] = [
    "cat",
    "ls",
    "rg",
    "grep",
    "egrep",
    "fgrep",
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
    "[[",
    "type",
    "date",
    "ps",
    "sleep",
    "export",
    "set",
    "less",
    "bat",
    "fd",
    "diff",
    "basename",
    "dirname",
    "realpath",
    // SWE-agent's own commands; its edits are read as file actions.
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
    // PowerShell.
    "Format-List",
    "Format-Table",
    "Get-ChildItem",
    "Get-Command",
    "Get-Content",
    "Get-Item",
    "Get-Location",
    "Measure-Object",
    "Select-Object",
    "Select-String",
    "Sort-Object",
    "Test-Path",
    "Write-Output",
];

/// Flags with which git only lists branches and remotes.
const GIT_LIST_FLAGS: [&str; 6] = ["-a", "-r", "-v", "-vv", "-l", "-av"];

/// Read-only subcommands of any program.
const READ_ONLY_SUBCOMMANDS: [&str; 9] =
    ["status", "statuses", "list", "show", "view", "info", "where", "help", "ls"];

const READ_ONLY_BY_PROGRAM: [(&str, &[&str]); 5] = [
    (
        "git",
        &[
            "status",
            "diff",
            "log",
            "show",
            "rev-parse",
            "ls-files",
            "grep",
            "blame",
            "merge-base",
            "ls-tree",
            "cat-file",
            "describe",
            "reflog",
            "for-each-ref",
            "rev-list",
            "show-ref",
            "symbolic-ref",
        ],
    ),
    ("sed", &["-n", "-ne"]),
    ("npm", &["view", "ls", "info"]),
    ("bd", &["show", "list", "ready", "--help", "stats", "search"]),
    ("gh", &["--version", "search", "auth"]),
];

const KUBECTL_CHANGES: [&str; 16] = [
    "annotate", "apply", "cordon", "cp", "create", "delete", "drain", "edit", "exec", "label", "patch",
    "replace", "rollout", "run", "scale", "set",
];

pub(in crate::facts::work) fn program_is_read_only(words: &[&str]) -> bool {
    let [head, rest @ ..] = words else { return true };
    // Shell keywords.
    match *head {
        "for" | "done" | "fi" | "esac" | "in" | "}" | "exit" | "return" => return true,
        "do" | "then" | "else" | "elif" | "if" | "while" | "until" | "{" | "!" => {
            return program_is_read_only(rest);
        }
        _ => {}
    }
    let head = file_name(head);
    if rest.iter().any(|it| ["--help", "--version"].contains(it)) || READ_ONLY_PROGRAMS.contains(&head) {
        return true;
    }
    match (head, rest) {
        // Without a name, or with a flag that only lists, these change nothing.
        ("git", ["branch" | "tag" | "remote" | "config", rest @ ..]) => {
            let lists = |it: &&str| {
                ["show", "get-url", "list"].contains(it)
                    || it.starts_with("--")
                    || GIT_LIST_FLAGS.contains(it)
            };
            rest.first().is_none_or(lists) && !rest.contains(&"--unset") && !rest.contains(&"--delete")
        }
        ("git", ["worktree" | "stash" | "submodule", "list" | "show" | "status", ..]) => true,
        ("find", rest) => {
            let writes = ["-delete", "-fprint", "-fprintf", "-fls"];
            let runs = rest.iter().position(|it| ["-exec", "-execdir", "-ok", "-okdir"].contains(it));
            !rest.iter().any(|it| writes.contains(it))
                && runs.is_none_or(|at| program_is_read_only(&rest[at + 1..]))
        }
        ("xargs", mut rest) => {
            while let [flag, behind @ ..] = rest
                && flag.starts_with('-')
            {
                let valued = ["-I", "-n", "-P", "-L", "-d", "-s", "-a", "-E"].contains(flag);
                rest = behind.get(usize::from(valued)..).unwrap_or_default();
            }
            program_is_read_only(rest)
        }
        ("ast-grep" | "sg", rest) => {
            !rest.iter().any(|it| ["-U", "-i", "--update-all", "--interactive"].contains(it))
        }
        // Flags with values stand before the verb: `kubectl --context a get pods`.
        ("kubectl", rest) => {
            let looks = ["api-resources", "describe", "explain", "get", "logs", "top", "version"];
            let verb = rest.iter().find(|it| looks.contains(it) || KUBECTL_CHANGES.contains(it));
            verb.is_some_and(|it| looks.contains(it))
        }
        ("curl", rest) => !rest.iter().any(|it| {
            ["-X", "--request", "-o", "-O", "-T", "--json"].contains(it)
                || it.starts_with("-d")
                || it.starts_with("--data")
        }),
        ("gh", ["api", rest @ ..]) => !rest
            .iter()
            .any(|it| ["-X", "--method", "-f", "-F", "--field", "--raw-field", "--input"].contains(it)),
        ("git", ["check-ignore", ..]) | ("command", ["-v" | "-V", ..]) => true,
        // The settings of a shell or environment: `source ~/.zshrc`.
        ("source" | ".", [file]) => {
            let name = file_name(file);
            name == "nvm.sh" || name.starts_with('.') && (name.ends_with("rc") || name.ends_with("profile"))
        }
        ("gh", [_, verb, ..]) if ["view", "list", "diff", "checks"].contains(verb) => true,
        // `bd worktree info`, `kubectl config view`.
        (_, [verb, rest @ ..]) => {
            head != "git"
                && [Some(verb), rest.first()]
                    .into_iter()
                    .flatten()
                    .any(|it| READ_ONLY_SUBCOMMANDS.contains(it))
                || READ_ONLY_BY_PROGRAM
                    .iter()
                    .any(|(program, verbs)| *program == head && verbs.contains(verb))
        }
        (_, []) => false,
    }
}
