//! The files that were edited since the last commit, as far as commands show it.

use std::collections::BTreeMap;

use super::command::ParsedCommand;
use super::commits::COMMITTED;
use super::paths::file_name;

#[derive(Default)]
pub(super) struct Uncommitted {
    /// Message of the last commit.
    committed: Option<usize>,
    /// Files of the working directory that were edited since.
    edited: BTreeMap<String, usize>,
    /// What was staged, as named.
    staged: Vec<String>,
}

impl Uncommitted {
    pub(super) fn edit(&mut self, number: usize, path: &str) {
        // Elsewhere, or beside the repository.
        let drive = path.get(1..2) == Some(":");
        if !path.starts_with(['/', '~', '.', '\\']) && !drive {
            self.edited.insert(path.to_owned(), number);
        }
    }

    /// Edits of a deleted file are not left to commit.
    pub(super) fn delete(&mut self, path: &str) {
        let below = |it: &str| it.strip_prefix(path).is_some_and(|it| it.is_empty() || it.starts_with('/'));
        self.edited.retain(|it, _| !below(it));
    }

    pub(super) fn has_edits(&self) -> bool {
        !self.edited.is_empty()
    }

    /// Reads a command that succeeded. What cannot be told counts as committed.
    pub(super) fn run(&mut self, number: usize, command: &ParsedCommand, output: &str) {
        for words in command.programs() {
            let words = match words[..] {
                ["git", "-C", _, ..] => [&["git"], &words[3..]].concat(),
                _ => words,
            };
            match words[..] {
                ["git", "add", ref rest @ ..] => {
                    self.staged.extend(rest.iter().map(|it| it.trim_start_matches("./").to_owned()));
                }
                ["git", "commit", ref rest @ ..] if !rest.contains(&"--dry-run") => {
                    self.commit(number, rest);
                }
                [
                    "git",
                    "stash" | "reset" | "clean" | "am" | "cherry-pick" | "revert" | "merge" | "checkout",
                    ..,
                ]
                | ["jj" | "gt" | "sl" | "hg" | "svn", ..] => self.edited.clear(),
                ["git", "status", ref rest @ ..] => self.status(rest, command, output),
                _ => {}
            }
        }
        // By a program that commits for itself.
        if COMMITTED.is_match(output) && self.committed != Some(number) {
            self.edited.clear();
            self.committed = Some(number);
        }
        if COMMITTED.is_match(output) {
            let ends = |long: &str, short: &str| {
                long.strip_suffix(short).is_some_and(|it| it.is_empty() || it.ends_with('/'))
            };
            let listed = listed(output);
            self.edited.retain(|path, _| !listed.iter().any(|it| ends(it, path) || ends(path, it)));
        }
        for path in command.restored_files() {
            self.edited.remove(&path);
        }
    }

    fn commit(&mut self, number: usize, flags: &[&str]) {
        /// Long flags that do not choose what is committed.
        const NEUTRAL: [&str; 5] = ["--message", "--no-verify", "--no-gpg-sign", "--signoff", "--quiet"];
        let chooses =
            |it: &&str| it.starts_with("--") && !NEUTRAL.contains(&it.split('=').next().unwrap_or_default());
        let short = |it: &&str| it.starts_with('-') && !it.starts_with("--") && it.contains('a');
        let plain = |it: &String| !it.starts_with('-') && !it.contains(['*', '$', '?', '{']) && it != ".";
        let whole = self.staged.is_empty()
            || !self.staged.iter().all(plain)
            || flags.iter().any(|it| short(it) || chooses(it));
        let staged = std::mem::take(&mut self.staged);
        self.edited.retain(|path, _| {
            let of = |it: &String| {
                let it = it.trim_end_matches('/');
                path == it
                    || path.strip_prefix(it).is_some_and(|it| it.starts_with('/'))
                    // Named from another directory.
                    || path.ends_with(it)
                    || path.contains(&format!("/{it}/"))
                    || it.ends_with(path.as_str())
            };
            !whole && !staged.iter().any(of)
        });
        self.committed = Some(number);
    }

    /// What `git status` shows is all that is uncommitted.
    fn status(&mut self, flags: &[&str], command: &ParsedCommand, output: &str) {
        let short =
            flags.iter().any(|it| ["--short", "-s", "--porcelain"].contains(it) || it.starts_with("-s"));
        if output.contains("working tree clean") {
            self.edited.clear();
        } else if short && command.programs().count() == 1 {
            // A new folder is listed by its name alone.
            let listed = |path: &str| {
                output.lines().filter_map(|it| it.get(3..)).any(|it| {
                    let it = it.trim().trim_matches('"');
                    it == path || it.ends_with('/') && path.starts_with(it) || it.ends_with(path)
                })
            };
            self.edited.retain(|path, _| listed(path));
        }
    }

    /// What is told of it at the end; nothing where the session does not commit.
    pub(super) fn told(&self) -> Option<String> {
        /// Maximum number of files that are named.
        const NAMED: usize = 8;
        let at = self.committed.filter(|_| !self.edited.is_empty())?;
        let mut newest: Vec<(&String, &usize)> = self.edited.iter().collect();
        newest.sort_by_key(|it| std::cmp::Reverse(it.1));
        // The list of files has the paths, but which of two is meant must be said here.
        let shared = |name: &str| newest.iter().filter(|it| file_name(it.0) == name).count() > 1;
        let name = |(path, _): &(&String, &usize)| match file_name(path) {
            name if shared(name) => path.to_string(),
            name => name.to_owned(),
        };
        let named: Vec<String> = newest.iter().take(NAMED).map(name).collect();
        let more = newest.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Some(format!("edited since the last commit (#{at}): {}{more}", named.join(", ")))
    }
}

/// The files that a commit says it made, deleted or renamed.
fn listed(output: &str) -> Vec<String> {
    let mut out = Vec::new();
    for line in output.lines().map(str::trim) {
        let changed = line.strip_prefix("create mode ").or_else(|| line.strip_prefix("delete mode "));
        out.extend(changed.and_then(|it| Some(it.split_once(' ')?.1.to_owned())));
        let Some((renamed, _)) = line.strip_prefix("rename ").and_then(|it| it.rsplit_once(" (")) else {
            continue;
        };
        // `src/{a => b}/c.rs`
        let (before, rest) = renamed.split_once('{').unwrap_or(("", renamed));
        let (names, behind) = rest.split_once('}').unwrap_or((rest, ""));
        let names = names.split_once(" => ").map(|it| [it.0, it.1]);
        out.extend(names.into_iter().flatten().map(|it| format!("{before}{it}{behind}").replace("//", "/")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_what_a_commit_left_out() {
        let told = |commands: &[(&str, &str)]| {
            let mut work = Uncommitted::default();
            work.run(1, &ParsedCommand::of("git add -A && git commit -m start"), "[main 1a2b3c4] start");
            work.edit(2, "src/a.rs");
            work.edit(3, "src/b.rs");
            work.edit(4, "/tmp/c.rs");
            work.edit(4, "C:/Users/me/notes.md");
            for (number, (command, output)) in (5..).zip(commands) {
                work.run(number, &ParsedCommand::of(command), output);
            }
            work.told().unwrap_or_default()
        };
        for (command, output, expected) in [
            ("ls", "", "edited since the last commit (#1): b.rs, a.rs"),
            ("git add src/a.rs && git commit -m a", "", "edited since the last commit (#5): b.rs"),
            ("git add src && git commit -m a", "", ""),
            ("git commit -am a", "", ""),
            ("just ship", "[main 2b3c4d5] a", ""),
            ("git stash", "", ""),
            ("git status", "nothing to commit, working tree clean", ""),
            ("git status --short", " M src/b.rs\n", "edited since the last commit (#1): b.rs"),
            ("cd deep && git add src/ && git commit -m a", "[main 2b3c4d5] a", ""),
            (
                "git add x && git commit -m a",
                "[main 2b3c4d5] a\n 2 files changed\n create mode 100644 src/b.rs",
                "edited since the last commit (#5): a.rs",
            ),
            (
                "git add x && git commit -m a",
                "[main 2b3c4d5] a\n rename src/{c.rs => b.rs} (98%)\n delete mode 100644 src/a.rs",
                "",
            ),
            ("git restore src/b.rs", "", "edited since the last commit (#1): a.rs"),
        ] {
            assert_eq!(told(&[(command, output)]), expected, "{command}");
        }
        let mut work = Uncommitted::default();
        work.run(1, &ParsedCommand::of("git commit -am start"), "[main 1a2b3c4] start");
        for (number, path) in (2..).zip(["src/a/mod.rs", "src/b/mod.rs", "gone/c.rs", "gone.rs"]) {
            work.edit(number, path);
        }
        work.delete("gone");
        assert_eq!(
            work.told().unwrap(),
            "edited since the last commit (#1): gone.rs, src/b/mod.rs, src/a/mod.rs"
        );
        let mut never = Uncommitted::default();
        never.edit(1, "a.rs");
        assert_eq!(never.told(), None);
    }
}
