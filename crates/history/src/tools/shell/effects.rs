//! What one program of a command line does to the files that it names.

use super::Simple;
use crate::tools::{Action, Meaning, patch};

/// Whether a word names one file, as far as can be seen.
pub(super) fn file(word: &str) -> bool {
    !word.is_empty()
        && !word.starts_with('-')
        && !word.contains(['*', '?', '$', '`', '{', '<', '>', '|', '\n'])
        && (!word.contains('(') || has_route_groups(word))
        && !word.starts_with("/dev/")
        // A git pathspec: `:!dist`.
        && !word.starts_with([':'])
        && !word.contains("://")
        && word != "."
        && word != ".."
        && !word.ends_with('/')
}

/// Whether the parentheses in a word are those of web routers: `app/(shop)/page.tsx`.
fn has_route_groups(word: &str) -> bool {
    let plain = |it: &str| {
        let name = it.strip_prefix('(').and_then(|it| it.strip_suffix(')')).unwrap_or(it);
        !name.contains(['(', ')', ' ', '"', '\'', ';', '='])
    };
    word.contains(")/") && word.split('/').all(plain)
}

/// The patch that `apply_patch` gets, as an argument or in a here-document.
pub(super) fn patch_of<'a>(words: &'a [String], here: Option<&'a str>) -> Option<&'a str> {
    let (head, rest) = words.split_first()?;
    let name = head.rsplit('/').next().unwrap_or(head);
    let argument = || rest.iter().find(|it| it.contains("*** ")).map(String::as_str);
    ["apply_patch", "applypatch"].contains(&name).then(|| here.or_else(argument)).flatten()
}

pub(super) fn touched(words: &[String], simple: &Simple, out: &mut Vec<Action>) {
    let [head, rest @ ..] = words else { return };
    let head = head.rsplit('/').next().unwrap_or(head).to_string();
    let files = || rest.iter().filter(|it| file(it)).cloned();
    let flagged = |flag: &str| rest.iter().any(|it| it == flag);
    let all = |meaning: Meaning| move |path: String| Action::on(meaning, path);
    match head.as_str() {
        "apply_patch" | "applypatch" => {
            out.extend(patch::actions(patch_of(words, simple.here.as_deref()).unwrap_or_default()));
        }
        "rm" | "unlink" => out.extend(files().map(all(Meaning::Delete))),
        "mv" => out.extend(moves(rest)),
        // Making or restoring a backup leaves the file as it was.
        "cp" => {
            let pair = files().count() == 2 && !files().any(|it| is_backup(&it));
            out.extend(files().nth(1).filter(|_| pair).map(all(Meaning::Create)));
        }
        "touch" => out.extend(files().map(all(Meaning::Create))),
        "git" => match rest {
            [verb, ..] if verb == "rm" && !flagged("--cached") => {
                out.extend(files().skip(1).map(all(Meaning::Delete)));
            }
            [verb, rest @ ..] if verb == "mv" => out.extend(moves(rest)),
            _ => {}
        },
        "sed" | "perl" => {
            let short = |it: &&String| it.starts_with('-') && !it.starts_with("--") && it.len() < 6;
            let in_place = flagged("--in-place") || rest.iter().filter(short).any(|it| it.contains('i'));
            // The script follows each `-e`, or else is the first word that is no flag (macOS: `-i '' script`).
            let mut scripts = usize::from(!rest.iter().filter(short).any(|it| it.ends_with('e')));
            let mut before = "";
            for word in rest {
                let is_script = before.starts_with('-') && before.ends_with('e');
                before = word;
                if word.starts_with('-') || word.is_empty() || is_script {
                    continue;
                }
                if scripts > 0 {
                    scripts -= 1;
                } else if file(word) && named(word) {
                    out.push(Action::on(if in_place { Meaning::Edit } else { Meaning::Read }, word));
                }
            }
        }
        "tee" => out.extend(files().map(all(if flagged("-a") { Meaning::Edit } else { Meaning::Create }))),
        "cat" | "head" | "tail" | "nl" | "less" | "bat"
            if simple.writes.is_empty() && simple.appends.is_empty() =>
        {
            out.extend(files().filter(|it| it.parse::<i64>().is_err()).map(all(Meaning::Read)));
        }
        "Add-Content" | "Get-Content" | "Out-File" | "Remove-Item" | "Rename-Item" | "Set-Content" => {
            let appends = rest.iter().any(|it| it.eq_ignore_ascii_case("-append"));
            powershell(&head, &file_arguments(rest), appends, out);
        }
        // SWE-agent's own commands, which it mixes with those of the shell.
        "open" if !rest.iter().any(|it| it.starts_with('-')) => {
            out.extend(files().next().filter(|it| named(it)).map(all(Meaning::Read)));
        }
        "create" => out.extend(files().next().filter(|it| named(it)).map(all(Meaning::Create))),
        "edit" => out.push(Action::new(Meaning::Edit)),
        program => out.extend(manifest(program, rest).map(|it| Action::on(Meaning::Edit, it))),
    }
    // Appending an exit code to a log is not an edit.
    let to_logs = !simple.appends.is_empty() && simple.appends.iter().all(|it| it.ends_with(".log"));
    let logs = to_logs && rest.iter().any(|it| it.contains("$?"));
    let prints = ["Get-Content", "Write-Output", "cat", "echo", "jq", "printf"].contains(&head.as_str());
    if prints && !logs || simple.here.is_some() {
        out.extend(simple.writes.iter().filter(|it| file(it)).cloned().map(all(Meaning::Create)));
        out.extend(simple.appends.iter().filter(|it| file(it)).cloned().map(all(Meaning::Edit)));
    }
}

/// The file arguments of a PowerShell cmdlet: its words without flags and their values.
fn file_arguments(words: &[String]) -> Vec<String> {
    const VALUES: [&str; 8] =
        ["-encoding", "-totalcount", "-tail", "-first", "-last", "-erroraction", "-value", "-width"];
    let mut before = String::new();
    let mut out = Vec::new();
    for word in words {
        let is_value = VALUES.contains(&before.as_str());
        before = word.to_lowercase();
        if !is_value && file(word) {
            out.push(word.clone());
        }
    }
    out
}

/// What a PowerShell cmdlet does to its file arguments.
fn powershell(program: &str, files: &[String], appends: bool, out: &mut Vec<Action>) {
    match (program, files) {
        ("Rename-Item", [from, name]) => {
            let dir = from.rfind(['/', '\\']).map_or("", |at| &from[..=at]);
            let to = Some(format!("{dir}{name}"));
            out.push(Action { to, ..Action::on(Meaning::Rename, from.clone()) });
        }
        (_, [first, ..]) if first.contains('.') && !first.contains(',') => {
            let meaning = match program {
                "Get-Content" => Meaning::Read,
                "Remove-Item" => Meaning::Delete,
                "Add-Content" => Meaning::Edit,
                "Out-File" | "Set-Content" if appends => Meaning::Edit,
                "Out-File" | "Set-Content" => Meaning::Create,
                _ => return,
            };
            out.push(Action::on(meaning, first.clone()));
        }
        _ => {}
    }
}

/// What `mv` renames: one file or directory, or several into a directory; `a/*` for what is in `a`.
fn moves(words: &[String]) -> Vec<Action> {
    // `-t DIR` and `-S SUFFIX` change what the words mean.
    if words.iter().any(|it| it.starts_with("-t") || it.starts_with("-S") || it.starts_with("--t")) {
        return Vec::new();
    }
    let mut paths: Vec<&str> = words.iter().map(String::as_str).filter(|it| !it.starts_with('-')).collect();
    let Some(last) = paths.pop() else { return Vec::new() };
    let to = last.trim_end_matches('/');
    let here = matches!(to, "." | "..");
    let into = here || paths.len() > 1 || last.ends_with('/') || paths.iter().any(|it| it.ends_with("/*"));
    let is_one = |it: &&str| file(it.strip_suffix("/*").unwrap_or(it)) && !is_backup(it);
    let rename = |from: &str| {
        let name = from.rsplit('/').next().unwrap_or(from);
        let to = if into { format!("{to}/{name}") } else { to.to_owned() };
        Action { to: Some(to), ..Action::on(Meaning::Rename, from) }
    };
    let from = paths.into_iter().map(|it| it.trim_end_matches('/')).filter(is_one);
    if here || is_one(&to) { from.map(rename).collect() } else { Vec::new() }
}

fn is_backup(path: &str) -> bool {
    [".bak", ".orig", ".backup", "~"].iter().any(|it| path.ends_with(it))
}

/// The manifest that a package manager edits when it adds or removes a package.
fn manifest(program: &str, rest: &[String]) -> Option<&'static str> {
    /// Flags that select another manifest.
    const ELSEWHERE: [&str; 10] = [
        "-p",
        "--package",
        "--manifest-path",
        "-C",
        "--prefix",
        "-w",
        "--workspace",
        "--filter",
        "-g",
        "--global",
    ];
    let elsewhere = |it: &String| ELSEWHERE.contains(&it.split('=').next().unwrap_or(it));
    let mut words = rest.iter().filter(|it| !it.starts_with('-')).map(String::as_str);
    let verb = words.next()?;
    words.next().filter(|_| !rest.iter().any(elsewhere))?;
    match (program, verb) {
        ("cargo", "add" | "remove" | "rm") => Some("Cargo.toml"),
        ("npm" | "pnpm" | "yarn" | "bun", "add" | "remove") | ("npm", "install" | "i" | "uninstall") => {
            Some("package.json")
        }
        ("uv" | "poetry", "add" | "remove") => Some("pyproject.toml"),
        _ => None,
    }
}

/// Whether a word looks like a file's name rather than a script or a number.
pub(super) fn named(word: &str) -> bool {
    (word.contains('.') || word.contains('/') || word.chars().next().is_some_and(char::is_uppercase))
        && !word.contains([' ', ';', ',', '\\'])
}
