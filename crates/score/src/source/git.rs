//! What git lists as changed: files that another agent or a script changed, which no tool call shows.

use std::collections::HashSet;

use crate::probe::FileOp;

/// What git lists as done to files, by path as printed.
#[derive(Default)]
pub(super) struct Listed {
    /// The first list, which shows no changes: what the files were before is unknown.
    first: Option<HashSet<(String, FileOp)>>,
    found: HashSet<(String, FileOp)>,
}

impl Listed {
    /// Reads what a command printed.
    pub(super) fn read(&mut self, command: &str, output: &str) {
        if !command.contains("git ") {
            return;
        }
        let renamed = output.lines().filter_map(renamed).flatten();
        let files: HashSet<(String, FileOp)> = output.lines().filter_map(line).chain(renamed).collect();
        let committed = output
            .lines()
            .any(|it| ["create mode ", "rename "].iter().any(|of| it.trim_start().starts_with(of)));
        if files.is_empty() {
            return;
        }
        let gone = |it: &&(String, FileOp)| it.1 == FileOp::Deleted;
        match &self.first {
            // A deleted file is gone, whoever deleted it.
            None if !committed => {
                self.found.extend(files.iter().filter(gone).cloned());
                self.first = Some(files);
            }
            first => {
                let before = first.as_ref();
                let new = files.into_iter().filter(|it| before.is_none_or(|all| !all.contains(it)));
                self.found.extend(new);
            }
        }
    }

    /// What git says was done to a file, if either path ends with the other.
    pub(super) fn of<'a>(&'a self, path: &'a str) -> impl Iterator<Item = FileOp> + 'a {
        let ends = |long: &str, short: &str| {
            long.strip_suffix(short).is_some_and(|it| it.is_empty() || it.ends_with('/'))
        };
        let is = move |it: &&(String, FileOp)| ends(path, &it.0) || ends(&it.0, path);
        self.found.iter().filter(is).map(|it| it.1)
    }
}

/// ` rename src/{old => new}/a.rs (98%)`: the old path is deleted, the new one created.
pub(crate) fn renamed(line: &str) -> Option<[(String, FileOp); 2]> {
    let (paths, _) = line.trim_start().strip_prefix("rename ")?.rsplit_once(" (")?;
    let (old, new) = match paths.split_once('{').zip(paths.split_once('}')) {
        Some(((before, inner), (_, after))) => {
            let (old, new) = inner.split_once('}')?.0.split_once(" => ")?;
            let whole = |it: &str| format!("{before}{it}{after}").replace("//", "/");
            (whole(old), whole(new))
        }
        None => paths.split_once(" => ").map(|it| (it.0.to_owned(), it.1.to_owned()))?,
    };
    Some([(old, FileOp::Deleted), (new, FileOp::Created)])
}

/// Parses ` M a.rs`, `modified:   a.rs`, `M<tab>a.rs`, `a.rs | 3 ++-` or `create mode 100644 a.rs`.
fn line(line: &str) -> Option<(String, FileOp)> {
    const LETTERS: &str = " MADRCUT?";
    let op = |state: &str| match state {
        it if it.contains('D') => FileOp::Deleted,
        it if it.contains(['A', 'R', 'C', '?']) => FileOp::Created,
        _ => FileOp::Edited,
    };
    let long = [
        ("modified:", FileOp::Edited),
        ("deleted:", FileOp::Deleted),
        ("new file:", FileOp::Created),
        ("renamed:", FileOp::Created),
        ("create mode ", FileOp::Created),
        ("delete mode ", FileOp::Deleted),
    ];
    let text = line.trim();
    let (path, op) = if let Some((head, op)) = long.iter().find(|it| text.starts_with(it.0)) {
        let rest = text[head.len()..].trim();
        (rest.split_once(' ').filter(|_| head.ends_with("mode ")).map_or(rest, |it| it.1), *op)
    } else if let Some((path, _)) = text.rsplit_once(" | ").filter(|it| it.1.ends_with(['+', '-'])) {
        (path, FileOp::Edited)
    } else {
        let (state, path) = line.split_once('\t').or_else(|| {
            let at = usize::from(line.as_bytes().get(2) == Some(&b' ')) + 1;
            line.split_at_checked(at).map(|it| (it.0, it.1.strip_prefix(' ').unwrap_or_default()))
        })?;
        let known = (1..=2).contains(&state.len()) && state.chars().all(|it| LETTERS.contains(it));
        (known && !state.trim().is_empty()).then_some((path, op(state)))?
    };
    let path = path.rsplit_once(" -> ").map_or(path, |it| it.1).trim().trim_matches('"');
    let path = path.trim_start_matches("../").trim_start_matches(".../");
    (!path.is_empty() && !path.contains(' ')).then(|| (path.to_owned(), op))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_git_lists_later_than_at_first_was_changed() {
        let mut listed = Listed::default();
        listed.read("git status --short", " M src/old.rs\n D src/gone.rs\n?? notes/\n");
        listed.read(
            "git status",
            "\tmodified:   src/old.rs\n\tmodified:   src/new.rs\n\tnew file:   src/made.rs\n",
        );
        listed.read("git diff --stat", " .../deep/far.rs | 3 ++-\n 1 file changed\n");
        listed.read("git commit -m a", "[main 1a2b3c4] a\n delete mode 100644 src/left.rs\n");
        listed.read(
            "git commit -m b",
            "[main 2b3c4d5] b\n rename src/{one => two}/it.rs (97%)\n rename a.md => b.md (100%)\n",
        );
        listed.read("ls", " M src/other.rs\n");
        for (path, expected) in [
            ("src/old.rs", None),
            ("src/gone.rs", Some(FileOp::Deleted)),
            ("src/new.rs", Some(FileOp::Edited)),
            ("new.rs", Some(FileOp::Edited)),
            ("src/made.rs", Some(FileOp::Created)),
            ("src/very/deep/far.rs", Some(FileOp::Edited)),
            ("src/left.rs", Some(FileOp::Deleted)),
            ("src/one/it.rs", Some(FileOp::Deleted)),
            ("src/two/it.rs", Some(FileOp::Created)),
            ("b.md", Some(FileOp::Created)),
            ("src/other.rs", None),
        ] {
            assert_eq!(listed.of(path).next(), expected, "{path}");
        }
    }
}
