//! What a command does, in a form by which two runs can be compared.

use super::{ParsedCommand, SETUP_WORDS};
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::work::paths::file_name;

/// Errors that only some programs print, with words from the names of their operations.
static PRINTED_BY: [(AsciiFirstRegex, &[&str]); 7] = [
    printed_by(r"^--- FAIL: ", &["go test"]),
    printed_by(r"^(?:FAILED \S+::|E {2,}|ConftestImportFailure)", &["pytest", "test", "tests"]),
    printed_by(
        r"^(?:test \S+ \.\.\. FAILED|thread '.*panicked at)",
        &["cargo test", "cargo nextest", "cargo run"],
    ),
    printed_by(r"^\(fail\) ", &["bun test", "test"]),
    printed_by(r"\berror TS\d+", &["tsc", "typecheck", "check", "build"]),
    printed_by(r"^(?:fatal: pathspec |The following paths are ignored by )", &["git add", "git rm"]),
    printed_by(r"^(?:fatal: |! \[(?:remote )?rejected\]|CONFLICT)", &["git"]),
];

const fn printed_by(
    pattern: &'static str,
    names: &'static [&'static str],
) -> (AsciiFirstRegex, &'static [&'static str]) {
    (AsciiFirstRegex::new(pattern), names)
}

/// What a command does: the program with its subcommand, and the files and directories that it names.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::facts) struct Operation {
    pub(in crate::facts) name: String,
    pub(in crate::facts) targets: Vec<String>,
    /// What it is limited to, other than files: a package, the name of a test, a branch.
    pub(in crate::facts) limits: Vec<String>,
}

impl Operation {
    /// Whether this run includes `other`, a run of the same name; without targets and limits it includes all.
    pub(in crate::facts) fn covers(&self, other: &Self) -> bool {
        let within = |it: &String| self.targets.iter().any(|own| is_within(it, own));
        self.limits.iter().all(|it| other.limits.contains(it))
            && (self.targets.is_empty() || !other.targets.is_empty() && other.targets.iter().all(within))
    }

    /// Whether it only prepares what follows.
    fn prepares(&self) -> bool {
        ["source", ".", "export", "mkdir", "echo", "printf", "sleep", "set", "git add", "gofmt", "goimports"]
            .contains(&self.name.as_str())
    }

    /// Whether it builds or checks.
    pub(in crate::facts) fn checks(&self) -> bool {
        self.name.split([' ', ':']).any(|it| SETUP_WORDS.contains(&it))
    }

    fn tests(&self) -> bool {
        const TESTS: [&str; 6] = ["test", "tests", "pytest", "vitest", "jest", "nextest"];
        self.name.split(' ').any(|it| TESTS.contains(&it))
    }

    /// Whether it runs all tests: no target or other argument limits them.
    pub(in crate::facts) fn tests_all(&self) -> bool {
        self.targets.is_empty() && self.limits.is_empty() && self.tests()
    }
}

/// Whether `path` is `of` or below it: `./a/...` is all below `a`.
fn is_within(path: &str, of: &str) -> bool {
    let plain = |it: &str| {
        let it = it.trim_start_matches("./").trim_end_matches("...").trim_end_matches('/');
        it.to_owned()
    };
    let (path, of) = (plain(path), plain(of));
    // A glob, for files in one directory: `src/*.test.ts`.
    if let Some((before, after)) = of.split_once('*') {
        let file = path.split("::").next().unwrap_or(&path);
        let matched = file.strip_prefix(before).and_then(|it| it.strip_suffix(after));
        return matched.is_some_and(|it| !it.contains(['/', '*']));
    }
    path.strip_prefix(&of).is_some_and(|it| it.is_empty() || it.starts_with(['/', ':']))
}

/// Subcommands that need the next word to say what is done.
const NESTED_SUBCOMMANDS: [&str; 19] = [
    "run",
    "exec",
    "x",
    "pr",
    "issue",
    "release",
    "compose",
    "remote",
    "stash",
    "worktree",
    "submodule",
    "extension",
    "extensions",
    "plugin",
    "plugins",
    "mcp",
    "auth",
    "repo",
    "container",
];

/// Programs that run another one, with the subcommand that does.
const RUNNERS: [(&str, Option<&str>); 14] = [
    ("npx", None),
    ("bunx", None),
    ("corepack", None),
    ("pnpm", Some("exec")),
    ("pnpm", Some("dlx")),
    ("yarn", Some("exec")),
    ("npm", Some("exec")),
    ("bun", Some("x")),
    ("uv", Some("run")),
    ("poetry", Some("run")),
    ("bundle", Some("exec")),
    ("fnm", Some("exec")),
    ("mise", Some("exec")),
    ("mise", Some("x")),
];

/// The command and container of `docker exec web pytest`, and the words of the program that it runs there.
fn in_container<'a, 'w>(words: &'a [&'w str]) -> Option<(String, &'a [&'w str])> {
    const VALUED: [&str; 8] = ["-u", "--user", "-e", "--env", "-w", "--workdir", "-n", "--namespace"];
    let (head, mut rest) = match words {
        ["docker" | "podman", "compose", "exec", rest @ ..] => ("docker compose exec", rest),
        ["docker" | "podman", "exec", rest @ ..] => ("docker exec", rest),
        ["kubectl", "exec", rest @ ..] => ("kubectl exec", rest),
        _ => return None,
    };
    while let [flag, behind @ ..] = rest
        && flag.starts_with('-')
    {
        rest = behind.get(usize::from(VALUED.contains(flag))..)?;
    }
    let (container, program) = rest.split_first()?;
    let program = program.strip_prefix(&["--"]).unwrap_or(program);
    (!program.is_empty()).then(|| (format!("{head} {container}"), program))
}

/// Options of runners that take a value.
const VALUED_FLAGS: [&str; 10] = [
    "-p",
    "--package",
    "-w",
    "--workspace",
    "--filter",
    "--with",
    "--extra",
    "--group",
    "--python",
    "--env-file",
];

fn without_flags<'a, 'w>(mut words: &'a [&'w str]) -> &'a [&'w str] {
    while let Some((flag, rest)) = words.split_first().filter(|it| it.0.starts_with('-')) {
        let value = usize::from(VALUED_FLAGS.contains(flag));
        words = rest.get(value..).unwrap_or_default();
    }
    words
}

/// Programs that take a package or directory before the subcommand, with the options whose value it is.
const SCOPED: [(&str, &[&str]); 5] = [
    ("npm", &["--prefix", "--workspace", "-w", "-C"]),
    ("pnpm", &["--filter", "-F", "--dir", "-C"]),
    ("yarn", &["--cwd"]),
    ("bun", &["--filter", "-F", "--cwd"]),
    ("make", &["-C", "--directory"]),
];

/// What a program is limited to before its subcommand, and the words from the subcommand on: `web` and `test` of
/// `pnpm -r --filter=web test`.
fn scopes<'a, 'w>(program: &str, mut words: &'a [&'w str]) -> (Vec<&'w str>, &'a [&'w str]) {
    let mut scopes = Vec::new();
    let options = SCOPED.iter().find(|it| it.0 == program).map_or(&[][..], |it| it.1);
    while let [option, rest @ ..] = words
        && option.starts_with('-')
        && !options.is_empty()
    {
        words = match (option.split_once('='), rest) {
            (Some((name, value)), _) if options.contains(&name) => {
                scopes.push(value);
                rest
            }
            (None, [value, rest @ ..]) if options.contains(option) => {
                scopes.push(value);
                rest
            }
            _ => rest,
        };
    }
    (scopes, words)
}

/// The words of the program that a runner starts: `pytest -q` of `uv run python -m pytest -q`.
fn without_runner<'a, 'w>(words: &'a [&'w str]) -> &'a [&'w str] {
    let mut words = words;
    while let Some((head, rest)) = words.split_first() {
        let name = file_name(head);
        let after = RUNNERS.iter().find_map(|(runner, verb)| match verb {
            _ if *runner != name => None,
            Some(verb) => rest.strip_prefix(&[*verb]),
            None => Some(rest),
        });
        let python = name.strip_prefix("python").filter(|it| !it.contains(char::is_alphabetic));
        let inner = match (after, rest) {
            (Some(after), _) => without_flags(after),
            (None, ["-m", module @ ..]) if python.is_some() => module,
            (None, _) => return words,
        };
        if inner.is_empty() {
            return words;
        }
        words = inner;
    }
    words
}

/// Maximum files and directories of one command.
const MAX_TARGETS: usize = 64;

/// Interpreters: what they do is named by their script and its first arguments.
const INTERPRETERS: [&str; 10] =
    ["node", "bun", "tsx", "ts-node", "deno", "python", "python3", "ruby", "perl", "php"];

/// Interpreters and shells with the option by which they only check the syntax of a script.
const SYNTAX_CHECKS: [(&str, &str); 7] = [
    ("node", "--check"),
    ("node", "-c"),
    ("ruby", "-c"),
    ("perl", "-c"),
    ("php", "-l"),
    ("bash", "-n"),
    ("sh", "-n"),
];

/// Whether a script is only checked, and not run.
pub(super) fn checks_syntax(words: &[&str]) -> bool {
    matches!(words, [program, option, ..] if SYNTAX_CHECKS.contains(&(file_name(program), option)))
}

pub(super) fn operation(words: &[&str]) -> Option<Operation> {
    if let Some((container, program)) = in_container(words) {
        let inner = operation(program)?;
        return Some(Operation { name: format!("{container} {}", inner.name), ..inner });
    }
    let (head, rest) = without_runner(words).split_first()?;
    let mut name = file_name(head).to_owned();
    let (scopes, rest) = scopes(&name, rest);
    if let [_, option, script @ ..] = words
        && checks_syntax(words)
    {
        let targets = script.iter().take(MAX_TARGETS).map(|it| (*it).to_owned()).collect();
        return Some(Operation { name: format!("{name} {option}"), targets, limits: Vec::new() });
    }
    let mut bare = rest.iter().filter(|it| !it.starts_with('-')).peekable();
    // Index in `rest` at which the arguments after the subcommands begin.
    let mut verbs = 0;
    let verb = |it: &&&str| {
        it.starts_with(|c: char| c.is_ascii_alphabetic())
            && it.chars().all(|c| c.is_ascii_alphanumeric() || "-_:".contains(c))
    };
    while let Some(word) = bare.next_if(verb) {
        name.push(' ');
        name.push_str(word);
        verbs = rest.iter().position(|it| std::ptr::eq(it, word)).map_or(0, |it| it + 1);
        if !NESTED_SUBCOMMANDS.contains(word) {
            break;
        }
    }
    let is_target = |it: &str| it.contains(['/', '.']);
    if INTERPRETERS.contains(&name.as_str())
        && !rest.contains(&"--test")
        && let Some(script) = bare.next_if(|it| is_target(it))
    {
        let mut of_script = vec![script.trim_start_matches("./")];
        while of_script.len() < 3
            && let Some(word) = bare.next_if(verb)
        {
            of_script.push(word);
        }
        name = format!("{name} {}", of_script.join(" "));
    }
    let whole = |it: &str| matches!(it, "." | "./" | "..." | "./...");
    // The other arguments of a commit are its message.
    let given = bare.filter(|_| name != "git commit");
    let targets = given.filter(|it| is_target(it) && !whole(it)).take(MAX_TARGETS);
    let targets = targets.map(|it| (*it).to_owned()).collect();
    let checks = name.split([' ', ':']).any(|it| SETUP_WORDS.contains(&it));
    let limited = checks || ["git checkout", "git switch"].contains(&name.as_str());
    let mut limits = if limited { limits(&rest[verbs..]) } else { Vec::new() };
    limits.extend(scopes.into_iter().map(str::to_owned));
    Some(Operation { name, targets, limits })
}

/// What arguments limit an operation to, other than files: a package, the name of a test, a branch.
fn limits(words: &[&str]) -> Vec<String> {
    const FLAGS: [&str; 13] = [
        "-k",
        "-t",
        "-p",
        "-m",
        "-g",
        "-run",
        "--run",
        "--test",
        "--package",
        "--filter",
        "--grep",
        "--bin",
        "--testNamePattern",
    ];
    let counts = |at: usize| {
        let word = words[at];
        let before = at.checked_sub(1).map_or("", |it| words[it]);
        let given = !before.starts_with('-') || before == "--" || FLAGS.contains(&before);
        !word.starts_with('-')
            && word.parse::<f64>().is_err()
            && !word.contains(['/', '.'])
            && (given || word.contains("::") || word.contains('_'))
    };
    (0..words.len()).filter(|it| counts(*it)).map(|it| words[it].to_owned()).collect()
}

impl ParsedCommand {
    /// Whether it runs tests, among other things.
    pub(in crate::facts) fn runs_tests(&self) -> bool {
        self.operations().iter().any(Operation::tests)
    }

    /// Whether it runs the same tests more than once, and no others.
    pub(in crate::facts) fn repeats_tests(&self) -> bool {
        let is_loop = self.programs().any(|it| matches!(it[0], "for" | "while" | "until"));
        let moves = self.programs().any(|it| matches!(it[0], "cd" | "pushd"));
        let tests: Vec<_> =
            self.programs_with_dirs().filter(|it| operation(&it.0).is_some_and(|it| it.tests())).collect();
        let varies = || moves || tests.iter().flat_map(|it| &it.0).any(|it| it.contains('$'));
        tests.windows(2).all(|it| it[0] == it[1]) && (tests.len() > 1 || is_loop && !varies())
    }

    /// The operations that must succeed before `error`, with which it ended, may be gone: those that print
    /// errors of such wording, or else all that do not only prepare others.
    pub(in crate::facts) fn failed_operations(&self, error: &str) -> Vec<Operation> {
        let mut all = self.operations();
        let printed = PRINTED_BY.iter().find(|it| it.0.is_match(error)).map_or(&[][..], |it| it.1);
        let printed_by = |it: &Operation| {
            // It begins with the program's name: `make: ***`, `linter2 v1.4`.
            let named = |word: &str| {
                error.strip_prefix(word).is_some_and(|it| it.starts_with(": ") || it.starts_with(" v"))
            };
            it.name.split(' ').any(named)
                || printed.iter().any(|by| format!(" {} ", it.name).contains(&format!(" {by} ")))
        };
        if all.iter().any(printed_by) {
            all.retain(printed_by);
        } else if !all.iter().all(Operation::prepares) {
            all.retain(|it| !it.prepares());
        }
        all
    }
}
