//! Which programs change nothing.

use super::ParsedCommand;
use crate::facts::work::paths::file_name;

#[rustfmt::skip]
const READ_ONLY_PROGRAMS: &[&str] = &[
    "cat", "ls", "rg", "grep", "egrep", "fgrep", "head", "tail", "nl", "wc", "pwd", "tree", "which", "file",
    "stat", "du", "df", "echo", "printf", "cd", "true", "sort", "uniq", "cut", "awk", "jq", "tr", "test", "[",
    "[[", "type", "date", "ps", "sleep", "export", "set", "less", "more", "bat", "fd", "diff", "basename",
    "dirname", "realpath", "break", "cksum", "cmp", "column", "comm", "continue", "dig", "getent", "hexdump",
    "ldd", "locate", "lsblk", "lscpu", "lsof", "md5sum", "mdfind", "mdls", "netstat", "nm",
    "nproc", "nslookup", "nvidia-smi", "od", "pgrep", "ping", "printenv", "read", "rev", "seq", "sha1sum",
    "sha256sum", "ss", "strings", "tac", "uname", "uptime", "whereis", "whoami",
    // SWE-agent's own commands; its edits are read as file actions.
    "find_file", "search_dir", "search_file", "open", "goto", "scroll_up", "scroll_down", "set_cursors",
    "create", "edit", "insert",
    // PowerShell.
    "dir", "Out-Null", "Out-String", "Sort-Object", "Write-Host",
    "Write-Output",
];

/// Verbs of PowerShell's commands that change nothing: `Get-Content`.
const READ_ONLY_VERBS: [&str; 16] = [
    "Compare",
    "ConvertFrom",
    "ConvertTo",
    "Find",
    "ForEach",
    "Format",
    "Get",
    "Group",
    "Join",
    "Measure",
    "Resolve",
    "Select",
    "Show",
    "Split",
    "Test",
    "Where",
];

/// Flags with which git only lists branches and remotes.
const GIT_LIST_FLAGS: [&str; 6] = ["-a", "-r", "-v", "-vv", "-l", "-av"];

/// Read-only subcommands of any program.
const READ_ONLY_SUBCOMMANDS: [&str; 14] = [
    "describe", "help", "info", "inspect", "list", "logs", "ls", "outdated", "search", "show", "status",
    "statuses", "view", "where",
];

#[rustfmt::skip]
const READ_ONLY_BY_PROGRAM: &[(&str, &[&str])] = &[
    (
        "git",
        &[
            "status", "diff", "log", "show", "rev-parse", "ls-files", "ls-remote", "grep", "blame",
            "merge-base", "ls-tree", "cat-file", "describe", "reflog", "for-each-ref", "rev-list", "show-ref",
            "symbolic-ref",
        ],
    ),
    ("bd", &["ready", "stats", "blocked"]),
    ("brew", &["deps", "leaves"]),
    ("cargo", &["metadata", "tree"]),
    ("docker", &["images", "port", "ps", "stats", "top", "version"]),
    ("gh", &["auth"]),
    ("go", &["doc", "version"]),
    ("node", &["-v"]),
    ("npm", &["explain", "ping", "root", "-v"]),
    ("pip", &["check", "freeze"]),
    ("systemctl", &["cat", "is-active", "is-enabled", "list-units"]),
    ("tmux", &["capture-pane", "display-message", "has-session", "list-panes", "list-sessions"]),
];

const KUBECTL_CHANGES: [&str; 16] = [
    "annotate", "apply", "cordon", "cp", "create", "delete", "drain", "edit", "exec", "label", "patch",
    "replace", "rollout", "run", "scale", "set",
];

/// Programs of cloud providers, whose verb may stand behind any number of nouns: `compute networks list`.
const CLOUDS: [&str; 6] = ["aws", "az", "doctl", "flyctl", "gcloud", "heroku"];
const CLOUD_LOOKS: [&str; 4] = ["describe", "get", "list", "show"];
#[rustfmt::skip]
const CLOUD_CHANGES: [&str; 22] = [
    "add", "apply", "attach", "cancel", "copy", "create", "delete", "deploy", "disable", "enable", "invoke",
    "put", "remove", "reset", "restart", "run", "send", "set", "start", "stop", "terminate", "update",
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
    let cmdlets: Vec<&str> = words.iter().filter_map(|it| cmdlet(it)).collect();
    if !cmdlets.iter().all(|it| cmdlet_is_read_only(it)) {
        return false;
    }
    if words[0].starts_with('$') {
        return variable_is_read_only(words[0], rest);
    }
    if rest.iter().any(|it| ["--help", "--version"].contains(it)) || READ_ONLY_PROGRAMS.contains(&head) {
        return true;
    }
    arguments_are_read_only(head, rest)
}

/// Whether these arguments make `git branch` and the like change nothing: no name, or a flag that only lists.
fn git_only_lists(arguments: &[&str]) -> bool {
    let lists = |it: &&str| {
        ["show", "get-url", "list"].contains(it) || it.starts_with("--") || GIT_LIST_FLAGS.contains(it)
    };
    arguments.first().is_none_or(lists) && !arguments.iter().any(|it| ["--unset", "--delete"].contains(it))
}

/// Whether a program that may change something changes nothing with these arguments.
fn arguments_are_read_only(head: &str, rest: &[&str]) -> bool {
    match (head, rest) {
        ("git", ["branch" | "tag" | "remote" | "config", rest @ ..]) => git_only_lists(rest),
        ("git", ["worktree" | "stash" | "submodule", "list" | "show" | "status", ..]) => true,
        ("find", rest) => {
            let writes = ["-delete", "-fprint", "-fprintf", "-fls"];
            let runs = rest.iter().position(|it| ["-exec", "-execdir", "-ok", "-okdir"].contains(it));
            !rest.iter().any(|it| writes.contains(it))
                && runs.is_none_or(|at| program_is_read_only(&rest[at + 1..]))
        }
        ("xargs", rest) => {
            program_is_read_only(behind_flags(rest, &["-I", "-n", "-P", "-L", "-d", "-s", "-a", "-E"]))
        }
        ("docker" | "podman", ["exec", rest @ ..]) => {
            let flags = ["-u", "--user", "-w", "--workdir", "-e", "--env"];
            program_is_read_only(behind_flags(rest, &flags).get(1..).unwrap_or_default())
        }
        ("docker" | "podman", ["compose", "images" | "logs" | "ps" | "top", ..]) => true,
        ("sed", rest) => {
            let in_place = |it: &str| it.starts_with('-') && !it.starts_with("--") && it.contains('i');
            !rest.iter().any(|it| in_place(it) || it.starts_with("--in-place"))
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
        ("curl", rest) => !curl_writes(rest),
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
        ("ForEach-Object" | "Where-Object" | "%", rest) => {
            match rest.iter().position(|it| it.starts_with('{')) {
                Some(at) => block_is_read_only(&rest[at..]),
                None => true,
            }
        }
        (name, _) if cmdlet(name).is_some() => true,
        (name, rest) if CLOUDS.contains(&name) => {
            let verbs =
                rest.iter().take_while(|it| !it.starts_with('-')).filter_map(|it| it.split('-').next());
            let mut known = verbs.filter(|it| CLOUD_LOOKS.contains(it) || CLOUD_CHANGES.contains(it));
            known.next().is_some_and(|it| CLOUD_LOOKS.contains(&it))
        }
        ("go", ["env", rest @ ..]) => !rest.iter().any(|it| ["-w", "-u"].contains(it)),
        ("hostname", rest) => rest.iter().all(|it| it.starts_with('-')),
        ("xxd", rest) => !rest.contains(&"-r"),
        // A script of the project may have any name.
        (_, ["run" | "exec" | "x", ..]) => false,
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

/// Whether curl sends data, or saves what it gets; with `-o /dev/null` it checks a server.
fn curl_writes(words: &[&str]) -> bool {
    let gets = |verb: &str| verb.is_empty() || ["GET", "HEAD"].contains(&verb);
    let next = |at: usize| words.get(at + 1).copied().unwrap_or_default();
    words.iter().enumerate().any(|(at, it)| match it.strip_prefix("--") {
        Some(name) => {
            let (name, value) = name.split_once('=').unwrap_or((name, next(at)));
            name == "request" && !gets(value)
                || ["data", "form"].iter().any(|sends| name.starts_with(sends))
                || ["json", "output", "remote-name", "upload-file"].contains(&name)
        }
        // Several flags may share a word, the last of them with its value: `-sX POST`, `-XPOST`.
        None => it.strip_prefix('-').is_some_and(|flags| {
            let valued = flags.find(['X', 'H', 'A', 'b', 'e', 'm', 'u', 'w', 'x']).unwrap_or(flags.len());
            let verb = flags[valued..].strip_prefix('X');
            flags[..valued].contains(['d', 'F', 'T', 'o', 'O'])
                || verb.is_some_and(|it| !gets(if it.is_empty() { next(at) } else { it }))
        }),
    })
}

/// Whether an expression of PowerShell that begins with a variable changes nothing else: `$text = Get-Content a.md`,
/// `$path='a.md'`, `$text[2..4]`.
fn variable_is_read_only(first: &str, rest: &[&str]) -> bool {
    match (first.split_once('='), rest) {
        (Some((_, value)), []) => !calls_method(value),
        (None, ["=", value]) => !calls_method(value),
        (Some((_, value)), rest) => program_is_read_only(&[&[value], rest].concat()),
        (None, ["=", value @ ..]) => program_is_read_only(value),
        (None, rest) => {
            first.contains('[') && !calls_method(first) && !rest.iter().any(|it| calls_method(it))
        }
    }
}

/// Whether a script block of PowerShell, `{ $_.FullName }`, changes nothing.
fn block_is_read_only(words: &[&str]) -> bool {
    let plain = |it: &&'_ str| -> bool { !it.trim_matches(['{', '}']).is_empty() };
    let inner: Vec<&str> =
        words.iter().filter(|it| plain(it)).map(|it| it.trim_matches(['{', '}'])).collect();
    match inner.first() {
        Some(first) if first.starts_with(['$', '"', '\'', '(']) => !inner.iter().any(|it| calls_method(it)),
        _ => program_is_read_only(&inner),
    }
}

/// Whether an expression of PowerShell calls a method that may change something: `$doc.Save()`.
pub(super) fn calls_method(word: &str) -> bool {
    const CALLS: [&str; 8] = ["Close", "Delete", "Invoke", "Kill", "MoveTo", "Save", "Start", "Stop"];
    let name =
        |it: &str| it.split(|c: char| !c.is_alphanumeric()).next().is_some_and(|it| CALLS.contains(&it));
    word.contains("::") || word.split('.').skip(1).any(name)
}

/// What follows a program's flags, of which those in `valued` take a value.
fn behind_flags<'w, 's>(mut words: &'w [&'s str], valued: &[&str]) -> &'w [&'s str] {
    while let [flag, behind @ ..] = words
        && flag.starts_with('-')
    {
        words = behind.get(usize::from(valued.contains(flag))..).unwrap_or_default();
    }
    words
}

/// A command of PowerShell, `Verb-Noun`, at the beginning of a word.
fn cmdlet(word: &str) -> Option<&str> {
    let word = word.trim_start_matches(['(', '{', '$', '@']);
    let (verb, noun) = word.split_once('-')?;
    let capital = |it: &str| it.starts_with(|c: char| c.is_ascii_uppercase());
    let letters = |it: &str| it.bytes().all(|it| it.is_ascii_alphabetic());
    (capital(verb) && capital(noun) && letters(verb) && letters(noun.trim_end_matches([')', '}', ';'])))
        .then_some(word)
}

pub(super) fn cmdlet_is_read_only(cmdlet: &str) -> bool {
    let verb = cmdlet.split('-').next().unwrap_or_default();
    READ_ONLY_PROGRAMS.contains(&cmdlet) || READ_ONLY_VERBS.contains(&verb)
}

/// Whether a command only prepares others: it creates directories, makes scripts executable, fetches.
pub fn only_prepares(command: &str) -> bool {
    const PREPARES: [&str; 4] = ["mkdir", "chmod", "New-Item", "git fetch"];
    let prepares = |words: &[&str]| match words {
        ["mkdir", ..] => true,
        ["chmod", mode, ..] => mode.ends_with("+x"),
        // `main:main` and `pull/7/head` make branches.
        ["git", "fetch", rest @ ..] => !rest.iter().any(|it| it.contains(':') || it.starts_with("pull/")),
        ["New-Item", rest @ ..] => rest.contains(&"Directory"),
        words => program_is_read_only(words),
    };
    if !PREPARES.iter().any(|it| command.contains(it)) || command.contains("<<") {
        return false;
    }
    let parsed = ParsedCommand::of(command);
    !parsed.writes_files() && parsed.programs().all(|it| prepares(&it))
}
