//! Which programs change nothing.

use super::ParsedCommand;
use crate::facts::work::paths::file_name;

#[rustfmt::skip]
const READ_ONLY_PROGRAMS: &[&str] = &[
    "cat", "ls", "rg", "grep", "egrep", "fgrep", "head", "tail", "nl", "wc", "pwd", "tree", "which", "file",
    "stat", "du", "df", "echo", "printf", "cd", "true", "sort", "uniq", "cut", "awk", "jq", "tr", "test", "[",
    "[[", "type", "date", "ps", "sleep", "export", "set", "less", "more", "bat", "fd", "diff", "basename",
    "dirname", "realpath", "break", "cksum", "cmp", "column", "comm", "continue", "dig", "getent", "hexdump",
    "hostname", "ldd", "locate", "lsblk", "lscpu", "lsof", "md5sum", "mdfind", "mdls", "netstat", "nm",
    "nproc", "nslookup", "nvidia-smi", "od", "pgrep", "ping", "printenv", "read", "rev", "seq", "sha1sum",
    "sha256sum", "ss", "strings", "tac", "uname", "uptime", "whereis", "whoami", "xxd",
    // SWE-agent's own commands; its edits are read as file actions.
    "find_file", "search_dir", "search_file", "open", "goto", "scroll_up", "scroll_down", "set_cursors",
    "create", "edit", "insert",
    // PowerShell.
    "dir", "%", "Where-Object", "ForEach-Object", "Out-Null", "Out-String", "Sort-Object", "Write-Host",
    "Write-Output",
];

/// Verbs of PowerShell's commands that change nothing: `Get-Content`.
const READ_ONLY_VERBS: [&str; 14] = [
    "Compare",
    "ConvertFrom",
    "ConvertTo",
    "Find",
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
];

/// Flags with which git only lists branches and remotes.
const GIT_LIST_FLAGS: [&str; 6] = ["-a", "-r", "-v", "-vv", "-l", "-av"];

/// Read-only subcommands of any program.
const READ_ONLY_SUBCOMMANDS: [&str; 15] = [
    "describe", "help", "info", "inspect", "list", "logs", "ls", "outdated", "search", "show", "status",
    "statuses", "version", "view", "where",
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
    ("docker", &["images", "port", "ps", "stats", "top"]),
    ("gh", &["auth"]),
    ("go", &["doc", "env"]),
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

/// Programs of cloud providers, with whose words a read-only verb may stand anywhere: `compute networks list`.
const CLOUDS: [&str; 6] = ["aws", "az", "doctl", "flyctl", "gcloud", "heroku"];

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
        // With `-o` it saves a page, or checks a server without its page.
        ("curl", rest) => {
            let gets = |flag: &str, verb: Option<&&str>| {
                ["-X", "--request"].contains(&flag) && verb.is_some_and(|it| ["GET", "HEAD"].contains(it))
            };
            !rest.iter().enumerate().any(|(at, it)| {
                ["-X", "--request", "-o", "-O", "-T", "--json"].contains(it) && !gets(it, rest.get(at + 1))
                    || it.starts_with("-d")
                    || it.starts_with("--data")
            })
        }
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
        // Variables of PowerShell: `$text = Get-Content a.md`, `$text[2..4]`.
        (name, rest) if name.starts_with('$') => {
            let calls = [".Save(", ".Start(", ".Stop(", ".Kill(", ".Delete(", "::"];
            rest.first() == Some(&"=")
                || name.contains(['=', '['])
                    && !words.iter().any(|it| calls.iter().any(|call| it.contains(call)))
        }
        (name, _) if cmdlet(name).is_some() => true,
        (name, rest) if CLOUDS.contains(&name) => {
            let asks = ["describe-", "get-", "list-"];
            let mut bare = rest.iter().filter(|it| !it.starts_with('-'));
            bare.any(|it| {
                ["describe", "list", "show"].contains(it) || asks.iter().any(|verb| it.starts_with(verb))
            })
        }
        // A script of the project may have any name, and `npm version patch` raises it.
        (_, ["run" | "exec" | "x", ..]) | (_, ["version", _, ..]) => false,
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

fn cmdlet_is_read_only(cmdlet: &str) -> bool {
    let verb = cmdlet.split('-').next().unwrap_or_default();
    READ_ONLY_PROGRAMS.contains(&cmdlet) || READ_ONLY_VERBS.contains(&verb)
}

/// Whether a command only prepares others: it creates directories, sets permissions, fetches.
pub fn only_prepares(command: &str) -> bool {
    const PREPARES: [&str; 5] = ["mkdir", "touch", "chmod", "New-Item", "git fetch"];
    let prepares = |words: &[&str]| match words {
        ["mkdir" | "touch" | "chmod", ..] | ["git", "fetch", ..] => true,
        ["New-Item", rest @ ..] => rest.contains(&"Directory"),
        words => program_is_read_only(words),
    };
    PREPARES.iter().any(|it| command.contains(it))
        && !command.contains("<<")
        && ParsedCommand::of(command).programs().all(|it| prepares(&it))
}
