//! The files that are not committed: what `git status` lists, and what was edited and committed since.

use std::collections::{BTreeMap, BTreeSet};

use super::super::and_more;
use super::super::command::Run;
use super::super::paths::is_at_or_below;
use super::listing::{Change, Listed, Listing, may_be_same_file, of_commit};
use super::{COMMITTED, git_args};

#[derive(Default)]
pub(in crate::facts::work) struct Uncommitted {
    /// Message of the last commit.
    committed: Option<usize>,
    /// Message of the last `git status` that showed all that was uncommitted.
    status: Option<usize>,
    /// Whether the client shortened its output.
    cut: bool,
    /// How many files outside of the working directory that `git status` listed.
    elsewhere: usize,
    /// Uncommitted files: the last message that shows the change, and the change.
    changed: BTreeMap<String, (usize, Change)>,
    /// Files that the session edited.
    edited: BTreeSet<String>,
    /// Files that git listed as modified or deleted, so that it knows them.
    tracked: BTreeSet<String>,
    /// Files that were untracked before the session changed anything.
    untracked_before: BTreeSet<String>,
    /// Arguments of `git add` since the last commit, as written.
    staged: Vec<String>,
    /// As [`Self::delegated`].
    delegated: usize,
}

impl Uncommitted {
    pub(in crate::facts::work) fn edit(&mut self, number: usize, path: &str) {
        /// Hidden files that git usually ignores.
        const IGNORED: [&str; 5] = [".env", ".git/", ".venv/", ".entire/", "../"];
        let outside = path.starts_with(['/', '~', '\\']) || path.get(1..2) == Some(":");
        if !outside && !IGNORED.iter().any(|it| path.starts_with(it)) {
            let new = self.changed.get(path).map(|it| it.1);
            let new = new.filter(|it| matches!(it, Change::Added | Change::Untracked));
            let change = new.unwrap_or(Change::Modified);
            self.changed.insert(path.to_owned(), (number, change));
            self.edited.insert(path.to_owned());
        }
    }

    /// Notes that a file or directory was deleted. The deletion of a file that git knows is left to commit; of another
    /// file nothing is.
    pub(in crate::facts::work) fn delete(&mut self, number: usize, path: &str) {
        let tracked = &self.tracked;
        self.changed.retain(|it, change| {
            let gone = is_at_or_below(it, path);
            if gone {
                *change = (number, Change::Deleted);
            }
            !gone || tracked.contains(it)
        });
    }

    /// Forgets a file, or a directory and what is in it, that is no part of the repository any more.
    pub(in crate::facts::work) fn forget_at_or_below(&mut self, path: &str) {
        self.changed.retain(|it, _| !is_at_or_below(it, path));
    }

    pub(in crate::facts::work) fn is_changed(&self, path: &str) -> bool {
        self.changed.contains_key(path)
    }

    pub(in crate::facts::work) fn has_edits(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Reads a successful command; in doubt, a file counts as committed. `resolve`: the known path of a
    /// listed file. Returns the files that were staged by name and committed.
    pub(super) fn read(&mut self, run: &Run, resolve: impl Fn(&Listed) -> Option<String>) -> Vec<String> {
        let (number, command, output) = (run.number, run.parsed, run.output.text.as_str());
        let mut named = Vec::new();
        // What is printed before the commit's own line shows the state before it; the rest, that after it.
        let commits =
            command.programs().any(|it| git_args(&it).is_some_and(|it| it.first() == Some(&"commit")));
        let committed = COMMITTED.find_iter(output).last().filter(|_| commits);
        let (mut printed, after) = output.split_at(committed.map_or(output.len(), |it| it.start()));
        for words in command.programs() {
            if let Some(listing) = Listing::of(&words, command, printed) {
                self.list(number, &listing, &resolve);
            }
            if let ["jj" | "gt" | "sl" | "hg" | "svn", ..] = words[..] {
                self.forget();
            }
            match *git_args(&words).unwrap_or_default() {
                ["add", ref rest @ ..] => {
                    self.staged.extend(rest.iter().map(|it| it.trim_start_matches("./").to_owned()));
                }
                ["commit", ref rest @ ..] if !rest.contains(&"--dry-run") => {
                    named.extend(self.commit(number, rest));
                    printed = if after.is_empty() { printed } else { after };
                }
                // Creating a branch leaves the files as they are.
                ["checkout" | "switch", "-b" | "-B" | "-c" | "-C", ..] => {}
                [
                    "stash" | "reset" | "clean" | "am" | "cherry-pick" | "revert" | "merge" | "checkout",
                    ..,
                ] => self.forget(),
                _ => {}
            }
        }
        if COMMITTED.is_match(output) {
            // Committed by another program, such as a script: `git commit` itself was not seen.
            if self.committed != Some(number) {
                self.forget();
                self.committed = Some(number);
            }
            let listed = of_commit(output);
            self.changed.retain(|path, _| !listed.iter().any(|it| may_be_same_file(&it.path, path)));
        }
        for path in command.restored_files() {
            let named = Listed { path, change: Change::Modified, from_root: false };
            resolve(&named).map(|it| self.changed.remove(&it));
        }
        named
    }

    /// Notes the work of a subagent, whose edits are not in this session.
    pub(in crate::facts::work) fn delegate(&mut self, number: usize) {
        self.delegated = number;
    }

    /// Message of the last report of a subagent that may have edited files; 0 if there is none.
    pub(in crate::facts::work) fn delegated(&self) -> usize {
        self.delegated
    }

    /// Whether a subagent was given work, which may change files without a call in this history.
    pub(in crate::facts::work) fn has_delegated(&self) -> bool {
        self.delegated > 0
    }

    pub(in crate::facts::work) fn forget(&mut self) {
        self.changed.clear();
        self.tracked.clear();
        self.status = None;
    }

    /// Returns the paths that were staged by name.
    fn commit(&mut self, number: usize, flags: &[&str]) -> Vec<String> {
        /// Long options that do not affect which files are committed.
        const NEUTRAL: [&str; 5] = ["--message", "--no-verify", "--no-gpg-sign", "--signoff", "--quiet"];
        let chooses =
            |it: &&str| it.starts_with("--") && !NEUTRAL.contains(&it.split('=').next().unwrap_or_default());
        let short = |it: &&str| it.starts_with('-') && !it.starts_with("--") && it.contains('a');
        let plain = |it: &String| !it.starts_with('-') && !it.contains(['*', '$', '?', '{']) && it != ".";
        let whole = self.staged.is_empty()
            || !self.staged.iter().all(plain)
            || flags.iter().any(|it| short(it) || chooses(it));
        let staged = std::mem::take(&mut self.staged);
        self.changed.retain(|path, _| {
            let of = |it: &String| {
                let it = it.trim_end_matches('/');
                path == it
                    || path.strip_prefix(it).is_some_and(|it| it.starts_with('/'))
                    // `git add` may have named it from another directory.
                    || path.ends_with(it)
                    || path.contains(&format!("/{it}/"))
                    || it.ends_with(path.as_str())
            };
            !whole && !staged.iter().any(of)
        });
        self.committed = Some(number);
        self.tracked.clear();
        staged.into_iter().filter(plain).collect()
    }

    fn list(&mut self, number: usize, listing: &Listing, resolve: &impl Fn(&Listed) -> Option<String>) {
        // Git lists an untracked directory by its name alone: `new/`.
        let is = |listed: &Listed, path: &str| {
            may_be_same_file(&listed.path, path)
                || listed.path.ends_with('/') && format!("/{path}").contains(&format!("/{}", listed.path))
        };
        let first = self.status.is_none() && self.committed.is_none() && self.edited.is_empty();
        if listing.whole {
            self.changed.retain(|path, _| listing.cut || listing.files.iter().any(|it| is(it, path)));
            self.status = Some(number);
            self.cut = listing.cut;
        }
        let resolved: Vec<Option<String>> = listing.files.iter().map(resolve).collect();
        if listing.whole {
            self.elsewhere = resolved.iter().filter(|it| it.is_none()).count();
        }
        let others: BTreeSet<&String> = resolved.iter().flatten().collect();
        for (listed, name) in listing.files.iter().zip(&resolved) {
            // A file that is itself in the list is not taken for another one whose path ends alike.
            let is = |it: &&String| is(listed, it) && (name.as_ref() == Some(*it) || !others.contains(it));
            let known: Vec<String> = self.changed.keys().filter(is).cloned().collect();
            let names = if known.is_empty() { name.iter().cloned().collect() } else { known };
            if first && listing.whole && listed.change == Change::Untracked {
                self.untracked_before.extend(names.iter().cloned());
            }
            for name in names {
                if matches!(listed.change, Change::Modified | Change::Deleted) {
                    self.tracked.insert(name.clone());
                }
                // `git diff --stat` only repeats what `git status` listed: the message stays.
                let at =
                    self.changed.get(&name).map_or(number, |it| if listing.whole { number } else { it.0 });
                self.changed.insert(name, (at, listed.change));
            }
        }
    }

    /// The line for the ledger; `None` if the session neither edits nor commits and git lists no change to a
    /// tracked file. `unseen`: commits are made that no command shows.
    pub(super) fn ledger_line(&self, unseen: bool, origin: &dyn Fn(usize) -> usize) -> Option<String> {
        /// Maximum number of files that are named.
        const NAMED: usize = 16;
        /// Maximum number of earlier untracked files that are named.
        const FEW: usize = 4;
        let works = !self.edited.is_empty() || self.committed.is_some();
        // Untracked files alone may have been there for long.
        let tracked = self.status.is_some() && self.changed.values().any(|it| it.1 != Change::Untracked);
        if !works && !tracked {
            return None;
        }
        let of_before = |it: &(&String, &(usize, Change))| {
            it.1.1 == Change::Untracked && self.untracked_before.contains(it.0) && !self.edited.contains(it.0)
        };
        let (before, mut newest): (Vec<_>, Vec<_>) = self.changed.iter().partition(of_before);
        if newest.is_empty() {
            if self.cut {
                return None;
            }
            let at = self.status.filter(|it| self.committed.is_none_or(|at| at < *it))?;
            let but = match (before.is_empty(), self.elsewhere) {
                (true, 0) => "",
                (false, 0) => " but files that were untracked before",
                (_, _) => " in the working directory; the repository has other uncommitted files",
            };
            let since = self.delegated_since(at);
            return Some(format!("nothing uncommitted at #{}{but} (git status){since}", origin(at)));
        }
        let (known, at) = match (self.status, self.committed) {
            (Some(status), Some(commit)) if commit > status => {
                (format!("git status: #{}, last commit: #{}", origin(status), origin(commit)), status)
            }
            (Some(status), _) => {
                let cut = if self.cut { ", cut" } else { "" };
                let edited = newest.iter().any(|it| it.1.0 > status);
                let since = match (edited, unseen) {
                    (true, true) => "; edits since may be committed",
                    (true, false) => ", and edits since",
                    (false, _) => "",
                };
                (format!("git status: #{}{cut}{since}", origin(status)), status)
            }
            (None, Some(_)) if unseen => return None,
            (None, Some(commit)) => (format!("as far as seen; last commit: #{}", origin(commit)), commit),
            (None, None) => return None,
        };
        let known = known + self.delegated_since(self.committed.map_or(at, |it| it.max(at)));
        newest.retain(|it| !unseen || it.1.0 <= at);
        newest.sort_by_key(|it| std::cmp::Reverse(it.1.0));
        let name = |(path, (_, change)): &(&String, &(usize, Change))| match change {
            Change::Modified => path.to_string(),
            // With the marks of `git status --short`.
            Change::Added => format!("A {path}"),
            Change::Untracked => format!("?? {path}"),
            Change::Deleted => format!("D {path}"),
        };
        let named: Vec<String> = newest.iter().take(NAMED).map(name).collect();
        let more = and_more(newest.len() - named.len());
        let within = |dir: &str| newest.iter().any(|it| it.0.starts_with(dir));
        let before: Vec<&str> = before.iter().map(|it| it.0.as_str()).filter(|it| !within(it)).collect();
        let others = match &before[..] {
            [] => String::new(),
            some if some.len() <= FEW => format!("; also untracked: {}", some.join(", ")),
            [one, rest @ ..] => format!("; also untracked: {one} and {} more", rest.len()),
        };
        (!named.is_empty()).then(|| format!("uncommitted ({known}): {}{more}{others}", named.join(", ")))
    }

    /// What is unknown if a subagent worked after `number`.
    fn delegated_since(&self, number: usize) -> &'static str {
        if self.delegated > number { ", not counting a subagent's work since" } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::work::command::ParsedCommand;
    use history::Output;

    #[test]
    fn says_what_a_subagent_may_have_changed() {
        let mut work = Uncommitted::default();
        work.delegate(1);
        work.edit(2, "src/a.rs");
        run(&mut work, 3, "git status -s", " M src/a.rs\n");
        let told = |it: &Uncommitted| it.ledger_line(false, &|it| it).unwrap_or_default();
        assert_eq!(told(&work), "uncommitted (git status: #3): src/a.rs");
        work.delegate(4);
        let expected = "uncommitted (git status: #3, not counting a subagent's work since): src/a.rs";
        assert_eq!(told(&work), expected);
    }

    fn run(work: &mut Uncommitted, number: usize, command: &str, output: &str) {
        let (parsed, output) = (&ParsedCommand::of(command), &Output::new("", output));
        let run = Run { number, command, parsed, output };
        work.read(&run, |it| Some(it.path.trim_start_matches(".../").to_owned()));
    }

    #[test]
    fn knows_what_a_commit_left_out() {
        let told = |commands: &[(&str, &str)]| {
            let mut work = Uncommitted::default();
            run(&mut work, 1, "git add -A && git commit -m start", "[main 1a2b3c4] start");
            work.edit(2, "src/a.rs");
            work.edit(3, "src/b.rs");
            work.edit(4, "/tmp/c.rs");
            work.edit(4, "C:/Users/me/notes.md");
            for (number, (command, output)) in (5..).zip(commands) {
                run(&mut work, number, command, output);
            }
            work.ledger_line(false, &|it| it).unwrap_or_default()
        };
        for (command, output, expected) in [
            ("ls", "", "uncommitted (as far as seen; last commit: #1): src/b.rs, src/a.rs"),
            (
                "git add src/a.rs && git commit -m a",
                "",
                "uncommitted (as far as seen; last commit: #5): src/b.rs",
            ),
            ("git add src && git commit -m a", "", ""),
            ("git commit -am a", "", ""),
            ("just ship", "[main 2b3c4d5] a", ""),
            ("git stash", "", ""),
            ("git status", "nothing to commit, working tree clean", "nothing uncommitted at #5 (git status)"),
            (
                "git status -s && git add -A && git commit -m a && git status -s",
                " M src/a.rs\n[main 2b3c4d5] a\n?? src/z.rs\n",
                "uncommitted (git status: #5): ?? src/z.rs",
            ),
            (
                "git status -s && git diff --stat HEAD~1",
                " M src/a.rs=== changes ===\n",
                "uncommitted (as far as seen; last commit: #1): src/b.rs, src/a.rs",
            ),
            (
                "git status --short",
                " M src/b.rs\n?? new/\n",
                "uncommitted (git status: #5): ?? new/, src/b.rs",
            ),
            (
                "git status -s | head -1",
                " M src/b.rs\n",
                "uncommitted (as far as seen; last commit: #1): src/b.rs, src/a.rs",
            ),
            (
                "git diff --stat",
                " .../b.rs | 2 +-\n src/d.rs | 1 +\n",
                "uncommitted (as far as seen; last commit: #1): src/d.rs, src/b.rs, src/a.rs",
            ),
            (
                "git status",
                "On branch main\nChanges not staged for commit:\n  (use \"git add\" …)\n\tmodified:   docs/c.md\n\tdeleted:    src/d.rs\n\nUntracked files:\n\tsrc/a.rs\n\nno changes added to commit\n",
                "uncommitted (git status: #5): docs/c.md, ?? src/a.rs, D src/d.rs",
            ),
            ("git checkout -b next", "", "uncommitted (as far as seen; last commit: #1): src/b.rs, src/a.rs"),
            ("cd deep && git add src/ && git commit -m a", "[main 2b3c4d5] a", ""),
            (
                "git add x && git commit -m a",
                "[main 2b3c4d5] a\n 2 files changed\n create mode 100644 src/b.rs",
                "uncommitted (as far as seen; last commit: #5): src/a.rs",
            ),
            (
                "git add x && git commit -m a",
                "[main 2b3c4d5] a\n rename src/{c.rs => b.rs} (98%)\n delete mode 100644 src/a.rs",
                "",
            ),
            ("git restore src/b.rs", "", "uncommitted (as far as seen; last commit: #1): src/a.rs"),
        ] {
            assert_eq!(told(&[(command, output)]), expected, "{command}");
        }
        let mut work = Uncommitted::default();
        run(&mut work, 1, "git commit -am start", "[main 1a2b3c4] start");
        for (number, path) in (2..).zip(["src/a/mod.rs", "src/b/mod.rs", "gone/c.rs", "gone.rs"]) {
            work.edit(number, path);
        }
        work.delete(6, "gone");
        assert_eq!(
            work.ledger_line(false, &|it| it).unwrap(),
            "uncommitted (as far as seen; last commit: #1): gone.rs, src/b/mod.rs, src/a/mod.rs"
        );
        // The path tells which of two files of one name is deleted; earlier untracked files are listed apart.
        let mut work = Uncommitted::default();
        run(&mut work, 1, "git status --short", "?? .tool/\n?? notes.md\n");
        work.edit(2, "lib/a.toml");
        work.edit(2, "notes.md");
        run(&mut work, 3, "git status --short", " M a.toml\n D lib/a.toml\n?? .tool/\n?? notes.md\n?? b/\n");
        assert_eq!(
            work.ledger_line(false, &|it| it).unwrap(),
            "uncommitted (git status: #3): a.toml, ?? b/, D lib/a.toml, ?? notes.md; also untracked: .tool/"
        );
        run(&mut work, 4, "git commit -am all && git status --short", "?? .tool/\n");
        assert_eq!(work.ledger_line(false, &|it| it), None);
        run(&mut work, 5, "git status --short", "?? .tool/\n");
        assert_eq!(
            work.ledger_line(false, &|it| it).unwrap(),
            "nothing uncommitted at #5 but files that were untracked before (git status)"
        );
        run(&mut work, 6, "git status --short", " M lib/b.toml\n?? c.toml\n");
        work.delete(7, "lib/b.toml");
        work.delete(7, "c.toml");
        assert_eq!(
            work.ledger_line(false, &|it| it).unwrap(),
            "uncommitted (git status: #6, and edits since): D lib/b.toml"
        );
        let mut never = Uncommitted::default();
        never.edit(1, "a.rs");
        assert_eq!(never.ledger_line(false, &|it| it), None);
    }
}
