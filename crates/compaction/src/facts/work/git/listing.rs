//! The files that `git status`, `git diff --stat` and `git commit` list.

use super::super::command::ParsedCommand;
use super::git_args;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Modified,
    /// Staged, and not in the last commit.
    Added,
    Untracked,
    Deleted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) path: String,
    pub(super) change: Change,
    /// Whether the path is relative to the root of the repository, wherever git ran.
    pub(super) from_root: bool,
}

/// What a command lists as not committed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Listing {
    pub(super) files: Vec<Listed>,
    /// Whether the list is complete.
    pub(super) whole: bool,
    /// Whether the client shortened the output, so that even a complete list shows only a part.
    pub(super) cut: bool,
}

impl Listing {
    /// Reads the output of the program `words` of `command`; `None` if it does not list uncommitted files.
    pub(super) fn of(words: &[&str], command: &ParsedCommand, output: &str) -> Option<Self> {
        match git_args(words)? {
            ["status", rest @ ..] => Self::of_status(words, rest, command, output),
            ["diff", rest @ ..] => {
                let lists = ["--stat", "--name-only", "--name-status", "--numstat"];
                let form = rest.iter().find(|it| lists.contains(it))?;
                let of_work = rest
                    .iter()
                    .all(|it| it.starts_with('-') && *it != "--" && *it != "--cached" || *it == "HEAD");
                let alone = command.programs().filter(|it| git_args(it).is_some()).count() == 1;
                (of_work && alone).then(|| Self { files: of_diff(form, output), whole: false, cut: false })
            }
            _ => None,
        }
    }

    fn of_status(words: &[&str], flags: &[&str], command: &ParsedCommand, output: &str) -> Option<Self> {
        let short = flags.iter().any(|it| {
            ["--short", "--porcelain"].iter().any(|of| it.starts_with(of))
                || it.starts_with("-s") && !it.starts_with("--")
        });
        let all = flags.iter().all(|it| it.starts_with('-') && *it != "--" && !it.starts_with("-u"));
        // Git quotes a path with a space. An unquoted space means that other output follows on the same line.
        let joined = |it: &Listed| it.path.contains(' ') && !it.path.ends_with('"');
        let (joined, mut files): (Vec<Listed>, Vec<Listed>) = if short {
            output.lines().enumerate().filter_map(|(at, it)| short_line(at, it)).partition(joined)
        } else {
            (Vec::new(), long(output, command)?)
        };
        for it in &mut files {
            it.from_root = flags.iter().any(|it| it.starts_with("--porcelain"));
            it.path = it.path.trim_matches('"').to_owned();
        }
        let cut = CUT.iter().any(|it| output.contains(it));
        let whole = all && joined.is_empty() && command.shows_all_of(words, files.len());
        Some(Self { whole, cut, files })
    }
}

/// ` M src/a.rs`, `?? new/`, `R  a.rs -> b.rs`, ` M "a b.rs"`.
fn short_line(at: usize, line: &str) -> Option<Listed> {
    let state = |it: &str| it.bytes().all(|it| b" MADRCUT?".contains(&it)) && !it.trim().is_empty();
    let (state, path) = match (line.get(..2), line.get(2..3), line.get(3..)) {
        (Some(two), Some(" "), Some(path)) if state(two) => (two, path),
        // Clients trim the output, and so the leading space of the first line (` M src/a.rs`).
        (Some(two), _, _) if at == 0 && two.ends_with(' ') && state(two) => (two, &line[2..]),
        _ => return None,
    };
    let path = path.rsplit_once(" -> ").map_or(path, |it| it.1);
    if path.is_empty() || path.starts_with(' ') {
        return None;
    }
    let change = match state {
        it if it.contains('?') => Change::Untracked,
        it if it.contains(['A', 'R', 'C']) => Change::Added,
        it if it.contains('D') => Change::Deleted,
        _ => Change::Modified,
    };
    Some(Listed { path: path.to_owned(), change, from_root: false })
}

/// Marks that Codex puts in the middle of an output that it shortens.
const CUT: [&str; 2] = [" tokens truncated…", "[... omitted "];

/// Heading of the untracked files in the long format.
const UNTRACKED: &str = "Untracked files:";

/// Last line of the long format if nothing is uncommitted.
const CLEAN: &str = "nothing to commit, working tree clean";

/// Reads the long format; `None` if no English heading is found, since git prints the user's language.
fn long(output: &str, command: &ParsedCommand) -> Option<Vec<Listed>> {
    let asked = |it: &Vec<&str>| git_args(it).is_some_and(|it| it.first() == Some(&"status"));
    let again = command.programs().filter(asked).count() > 1;
    let mut out = Vec::new();
    let mut known = output.contains("nothing to commit");
    // After a section's heading: whether its files are untracked, and the number of files read before it.
    let mut section: Option<(bool, usize)> = None;
    for line in output.lines() {
        let text = line.trim();
        // What came before is of an earlier `git status` in the same command.
        if again && text == CLEAN {
            out.clear();
        }
        match text {
            "Changes to be committed:" | "Changes not staged for commit:" | "Unmerged paths:" => {
                section = Some((false, out.len()));
            }
            UNTRACKED => section = Some((true, out.len())),
            "" if section.is_some_and(|it| out.len() > it.1) => section = None,
            "" => {}
            _ if text.starts_with('(') => {}
            _ if line.starts_with(['\t', ' ']) => {
                let Some((new, _)) = section else { continue };
                let listed = if new { Some((UNTRACKED, text)) } else { text.split_once(':') };
                out.extend(listed.and_then(|(state, path)| long_line(state, path.trim())));
            }
            _ => section = None,
        }
        known |= section.is_some();
    }
    known.then_some(out)
}

fn long_line(state: &str, path: &str) -> Option<Listed> {
    let change = match state {
        "modified" | "typechange" | "both modified" => Change::Modified,
        UNTRACKED => Change::Untracked,
        "new file" | "renamed" | "copied" | "both added" => Change::Added,
        "deleted" | "deleted by us" | "deleted by them" => Change::Deleted,
        _ => return None,
    };
    let path = path.rsplit_once(" -> ").map_or(path, |it| it.1);
    let path = path.split_once(" (").map_or(path, |it| it.0).trim_matches('"');
    Some(Listed { path: path.to_owned(), change, from_root: false })
}

/// `src/a.rs | 3 ++-`, `.../deep/a.rs | 3 ++-`, `M<tab>src/a.rs`, `3<tab>1<tab>src/a.rs`, `src/a.rs`.
fn of_diff(form: &str, output: &str) -> Vec<Listed> {
    let path = |line: &str| match form {
        "--stat" => line.rsplit_once(" | ").map(|it| it.0.trim().to_owned()),
        "--name-only" => Some(line.trim().to_owned()).filter(|it| it.contains(['.', '/'])),
        _ => line.rsplit_once('\t').map(|it| it.1.trim().to_owned()),
    };
    let plain = |it: &String| !it.is_empty() && !it.contains(" => ") && !it.contains(' ');
    let listed = output.lines().filter_map(|line| {
        let change = match line.split_once('\t').map(|it| it.0) {
            Some("D") => Change::Deleted,
            Some("A") => Change::Added,
            _ => Change::Modified,
        };
        Some(Listed { path: path(line).filter(plain)?, change, from_root: true })
    });
    listed.collect()
}

/// The files that a commit says it made, deleted or renamed.
pub(super) fn of_commit(output: &str) -> Vec<Listed> {
    let mut out = Vec::new();
    for line in output.lines().map(str::trim) {
        for (mark, change) in [("create mode ", Change::Added), ("delete mode ", Change::Deleted)] {
            let path = line.strip_prefix(mark).and_then(|it| it.split_once(' '));
            out.extend(path.map(|it| Listed { path: it.1.to_owned(), change, from_root: true }));
        }
        if let Some([from, to]) = renamed(line) {
            out.push(Listed { path: from, change: Change::Deleted, from_root: true });
            out.push(Listed { path: to, change: Change::Added, from_root: true });
        }
    }
    out
}

/// The old and new path in a commit's line about a rename: ` rename src/{a => b}/c.rs (98%)`.
pub(super) fn renamed(line: &str) -> Option<[String; 2]> {
    let (renamed, _) = line.trim().strip_prefix("rename ")?.rsplit_once(" (")?;
    let (before, rest) = renamed.split_once('{').unwrap_or(("", renamed));
    let (names, behind) = rest.split_once('}').unwrap_or((rest, ""));
    let (from, to) = names.split_once(" => ")?;
    Some([from, to].map(|name| format!("{before}{name}{behind}").replace("//", "/")))
}

/// Whether one path ends with the other, perhaps cut by `git diff --stat` (`.../a.rs`): they may be one file.
pub(super) fn may_be_same_file(one: &str, other: &str) -> bool {
    let bare = |it: &str| it.strip_prefix(".../").unwrap_or(it).to_owned();
    let (one, other) = (bare(one), bare(other));
    let ends = |long: &str, short: &str| {
        long.strip_suffix(short).is_some_and(|it| it.is_empty() || it.ends_with('/'))
    };
    ends(&one, &other) || ends(&other, &one)
}
