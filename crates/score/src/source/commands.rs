//! Commands: their keys, what they run, whether they only look around.

use super::powershell::{self, cmdlet_verb};
use crate::program_words;
use crate::text::{clip, normal};

/// Maximum characters of a command's key.
const KEY: usize = 120;

/// Whether a key is only the beginning of its command.
pub(crate) fn is_cut(key: &str) -> bool {
    /// Maximum characters that are trimmed off a key's end.
    const TRIMMED: usize = 4;
    key.chars().count() + TRIMMED > KEY
}

/// The key that identifies a command: the beginning of its [`whole_command`].
pub(crate) fn command_key(command: &str) -> String {
    clip(&whole_command(command), KEY).trim_end_matches([' ', '&', '|', ';']).to_string()
}

/// A command's first line that does something, up to a here-document, without setup (`cd a &&`) and filters.
pub(crate) fn whole_command(command: &str) -> String {
    let mut rest = without_setup(command.trim());
    let mut telling = rest.lines().filter(|it| !it.trim().is_empty() && !it.trim_start().starts_with('#'));
    let first = telling.clone().next().unwrap_or_default();
    rest = telling.find(|it| !assigns(it.trim())).unwrap_or(first);
    for mark in ["<<", "\"$(cat"] {
        if let Some((before, _)) = rest.split_once(mark) {
            rest = before;
        }
    }
    // Longer lines are cut below anyway.
    let mut key = normal(clip(rest, 4_000));
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
    key
}

/// What a command runs: `go test` of `./...` in `cd a && go test ./... | tail`.
pub(crate) struct Run {
    /// The program, the directory of git's `-C`, and the first word that is not a flag.
    name: String,
    /// The other words that are not flags.
    operands: Vec<String>,
}

impl Run {
    pub(crate) fn all(command: &str) -> Vec<Self> {
        const AROUND: [&str; 7] = ["env", "sudo", "time", "command", "exec", "rtk", "proxy"];
        let run = |part: &str| {
            let before = part.split('|').next().unwrap_or_default();
            let around = |it: &&str| it.contains('=') || AROUND.contains(it);
            let mut words = before.split_whitespace().skip_while(around).peekable();
            let program = words.next()?.rsplit('/').next()?;
            let place = words.next_if_eq(&"-C").and_then(|_| words.next()).unwrap_or_default();
            let mut bare = words.filter(|it| !it.starts_with('-') && !it.contains('>'));
            let name = format!("{program} {place} {}", bare.next().unwrap_or_default());
            (program != "cd").then(|| Self { name, operands: bare.map(str::to_owned).collect() })
        };
        clip(command, 4_000).split([';', '&', '\n']).filter_map(run).collect()
    }

    /// Whether it does what `other` did, on everything or on one of the same operands.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let all = self.operands.is_empty() || self.operands.iter().any(|it| it.ends_with("./..."));
        self.name == other.name && (all || self.operands.iter().any(|it| other.operands.contains(it)))
    }
}

/// A command without the `cd DIR &&`, `export A=b;` and `a="b";` in front of it.
pub(crate) fn without_setup(command: &str) -> &str {
    // Nobody changes the directory more often, or by a longer path.
    const STEPS: usize = 64;
    const REACH: usize = 4_000;
    let mut rest = command;
    for _ in 0..STEPS {
        let target = rest.strip_prefix("cd ").or_else(|| rest.strip_prefix("export "));
        let Some(target) = target.or_else(|| value_assigned(rest)) else { break };
        let near = clip(target, REACH);
        let end = near.find("&&").map(|at| at + 2).or_else(|| near.find(';').map(|at| at + 1));
        let Some(end) = end else { break };
        rest = target[end..].trim_start_matches([' ', '\\', '\n']);
    }
    rest
}

/// Whether a line only assigns a variable.
fn assigns(line: &str) -> bool {
    let Some(value) = behind_name(line) else { return false };
    let inner = value.strip_prefix("$(").and_then(|it| it.strip_suffix(')'));
    !value.contains(' ') || inner.is_some_and(|it| !it.contains("$("))
}

/// What follows an assignment that is a statement of its own: `a="b"; ls`, not `A=b ls`.
fn value_assigned(text: &str) -> Option<&str> {
    let value = behind_name(text)?;
    let rest = match value.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?.1,
        None => value.trim_start_matches(|c: char| !c.is_whitespace() && c != ';' && c != '&'),
    };
    rest.trim_start().starts_with([';', '&']).then_some(rest)
}

/// What follows `NAME=` at the beginning of a text.
fn behind_name(text: &str) -> Option<&str> {
    let (name, value) = text.split_once('=')?;
    let is_name = !name.is_empty() && name.bytes().all(|it| it == b'_' || it.is_ascii_alphanumeric());
    is_name.then_some(value)
}

/// The quoted line that a command runs on another machine, `ssh HOST "LINE"`, and what follows it.
fn over_ssh(command: &str) -> Option<(&str, &str)> {
    let rest = command.trim_start().strip_prefix("ssh ")?;
    let quote = rest.find(['"', '\''])?;
    let mark = rest[quote..].chars().next()?;
    rest[quote + 1..].rsplit_once(mark)
}

/// The line that a shell is started to run, and what follows it: `zsh -lc 'LINE' && more`, `pwsh -NoLogo -Command 'LINE'`.
/// The end of a long command may be cut off.
fn of_shell(command: &str) -> Option<(&str, &str)> {
    let (shell, rest) = command.trim().split_once(" -")?;
    let name = shell.rsplit(['/', '\\']).next().unwrap_or(shell);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let line = match name {
        "pwsh" | "powershell" => rest.split_once("Command ")?.1.trim(),
        "bash" | "dash" | "sh" | "zsh" => rest.split_once("c ").filter(|it| it.0.len() <= 2)?.1.trim(),
        _ => return None,
    };
    let mark = line.chars().next().filter(|it| matches!(it, '\'' | '"'))?;
    let line = &line[1..];
    let ends = |at: &usize| !line[..*at].ends_with('\\');
    let end = line.match_indices(mark).map(|it| it.0).find(ends);
    Some(end.map_or((line, ""), |at| (&line[..at], &line[at + 1..])))
}

/// Whether all parts of a command only look around.
pub(crate) fn only_looks(command: &str) -> bool {
    if let Some((line, rest)) = over_ssh(command) {
        return only_looks(line) && only_looks(rest);
    }
    if let Some((line, rest)) = of_shell(command) {
        return only_looks(line) && only_looks(rest);
    }
    if powershell::looks(command) {
        return true;
    }
    programs(command).iter().all(|it| program_only_looks(it))
}

/// The commands of a list or pipe, without what is quoted.
fn programs(command: &str) -> Vec<String> {
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
    parts
}

fn program_only_looks(program: &str) -> bool {
    /// Words before a command that do not tell what it does.
    const AROUND: [&str; 8] = ["rtk", "proxy", "{", "}", "!", "do", "then", "else"];
    let mut words: Vec<&str> =
        program.split_whitespace().skip_while(|it| it.contains('=') || AROUND.contains(it)).collect();
    if words.first() == Some(&"git") && words.get(1) == Some(&"-C") {
        words.drain(1..3.min(words.len()));
    }
    let head = words.first().map_or("", |it| it.rsplit('/').next().unwrap_or(it));
    // `bd --readonly show`: flags may precede the subcommand.
    let bare: Vec<&str> = words.iter().copied().filter(|it| !it.starts_with('-')).collect();
    let first = |count: usize| bare.iter().take(count).copied().collect::<Vec<_>>().join(" ");
    let (two, three) = (first(2), first(3));
    let acts = program_words::ACTING.iter().any(|it| *it == three)
        || program_words::ACTING
            .contains(&words.iter().take(3).copied().collect::<Vec<_>>().join(" ").as_str());
    let lists = two == "git tag"
        && (bare.len() == 2 || words.iter().any(|it| ["-l", "--list", "--points-at"].contains(it)));
    let reads_settings = matches!(head, "source" | ".")
        && bare.get(1).and_then(|it| it.rsplit('/').next()).is_some_and(|it| {
            it == "nvm.sh" || it.starts_with('.') && (it.ends_with("rc") || it.ends_with("profile"))
        });
    // `npm owner ls`, `gh release list`; not `npm run list`, since a script may have any name.
    let asks = head != "git"
        && bare.get(1).is_some_and(|it| !["run", "exec", "x"].contains(it))
        && bare.get(2).is_some_and(|it| program_words::LOOKING_SECOND.contains(it));
    // What runs in a container: `docker exec -it app cat a`.
    if let [_, "exec", rest @ ..] = &words[..]
        && matches!(head, "docker" | "podman")
    {
        let name = rest.iter().position(|it| !it.starts_with('-')).unwrap_or(rest.len());
        return only_looks(&rest[rest.len().min(name + 1)..].join(" "));
    }
    // A block of PowerShell: `ForEach-Object { $_.Name }`.
    if matches!(head, "ForEach-Object" | "Where-Object" | "%") {
        const CALLS: [&str; 4] = [".Delete(", ".Kill(", ".Save(", "::"];
        let block = program.split_once('{').map_or("", |it| it.1.trim_end_matches([' ', '}']).trim());
        let plain = block.starts_with(['$', '"', '(']) && !CALLS.iter().any(|it| block.contains(it));
        return plain || only_looks(block);
    }
    let cmdlets: Vec<&str> = words.iter().filter_map(|it| cmdlet_verb(it)).collect();
    if !cmdlets.iter().all(|it| program_words::LOOKING_VERBS.contains(it)) {
        return false;
    }
    // Of `$out = npm test`, what follows decides.
    if head.starts_with('$') && (head.contains('=') || words.get(1) == Some(&"=")) {
        let value = head.split_once('=').map_or("", |it| it.1);
        let rest = words[if head.contains('=') { 1 } else { 2 }..].join(" ");
        let literal = rest.is_empty() || !value.is_empty() && rest.starts_with(['-', '[']);
        return literal || only_looks(format!("{value} {rest}").trim());
    }
    // The first verb before the flags: of `aws ec2 describe-instances --filters a`, "describe".
    let nouns = words.iter().take_while(|it| !it.starts_with('-'));
    let verb = nouns
        .filter_map(|it| it.split('-').next())
        .find(|it| program_words::CLOUD_LOOKING.contains(it) || program_words::CLOUD_ACTING.contains(it));
    let of_cloud = program_words::CLOUDS.contains(&head)
        && verb.is_some_and(|it| program_words::CLOUD_LOOKING.contains(&it));
    let fetches = head == "curl" && !words.iter().skip(1).any(|it| makes_curl_write(it));
    head.is_empty()
        || of_cloud
        || fetches
        || cmdlet_verb(head).is_some()
        || head.chars().all(|c| c.is_ascii_digit() || c == '>')
        || !acts
            && (program_words::LOOKING.contains(&head)
                || program_words::LOOKING_PAIRS.contains(&two.as_str())
                || words.get(1).is_some_and(|it| program_words::LOOKING_SECOND.contains(it))
                || bare.get(1).is_some_and(|it| program_words::LOOKING_SECOND.contains(it))
                || lists
                || asks
                || reads_settings
                // After flags with values: `kubectl --context a get pods`.
                || head == "kubectl" && words.iter().any(|it| ["describe", "get", "logs"].contains(it))
                || words.contains(&"--help"))
}

/// Whether a flag makes curl send something, or write a file.
fn makes_curl_write(flag: &str) -> bool {
    const LONG: [&str; 7] = ["request", "data", "form", "json", "output", "remote-name", "upload-file"];
    if let Some(name) = flag.strip_prefix("--") {
        return LONG.iter().any(|it| name.starts_with(it));
    }
    // These flags take a value, which may follow without a space: `-HX-Id:1`.
    let flags = flag.strip_prefix('-').and_then(|it| it.split(['H', 'A', 'b', 'm', 'u', 'w']).next());
    flags.is_some_and(|it| it.contains(['X', 'd', 'F', 'T', 'o', 'O']))
}
