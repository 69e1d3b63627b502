//! The repository as git's output shows it: uncommitted files, the commits, and who makes them.

mod changed_files;
pub(in crate::facts) mod commits;
mod discards;
mod listing;
pub(in crate::facts) mod log;
pub(super) mod uncommitted;

use std::collections::HashSet;

use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::clip;
use crate::facts::work::command::Run;
use crate::facts::work::files::Files;
use crate::facts::work::paths::path;
pub(super) use changed_files::is_of_other_tree;
use commits::Commits;
use log::Log;
use uncommitted::Uncommitted;

/// `[branch 1a2b3c4] subject`, as `git commit` prints it.
pub(in crate::facts::work) static COMMITTED: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?m)^\[([^\s\]]+)(?: \([^)]*\))? ([0-9a-f]{7,40})\] ");

/// What `git init` prints where no repository was.
const INITIALIZED: &str = "Initialized empty Git repository";

/// Prefix of the line about the current branch.
const CHECKED_OUT: &str = "checked out: ";

#[derive(Default)]
pub(super) struct Repository {
    pub(super) uncommitted: Uncommitted,
    pub(super) commits: Commits,
    pub(super) log: Log,
    /// Branches and tags that were created, with the message.
    created_refs: Vec<(usize, String)>,
    /// Files that git listed as changed before any delegation, or in its first list.
    changed_before: HashSet<String>,
    /// Files changed in worktrees that were removed since.
    changed_in_removed_worktrees: Vec<String>,
    /// Files taken out of git by `git rm --cached`: listed as deleted, but still on disk.
    untracked: HashSet<String>,
    /// The worktrees whose changed files git listed; `None` is the session's own.
    listed_in: HashSet<Option<String>>,
    /// The first complete list of uncommitted files, with untracked directories (`new/`).
    uncommitted_at_first: Option<HashSet<String>>,
}

impl Repository {
    /// Takes over what an earlier summary says. Returns whether it is about commits or the branch.
    pub(super) fn resume(&mut self, told: &str) -> bool {
        match told.strip_prefix(CHECKED_OUT) {
            Some(branch) => self.commits.resume(branch),
            None => return self.log.resume(told),
        }
        true
    }

    /// Reads what a command that is not known to have failed did. `prompts`: the user's, so far.
    pub(super) fn read(&mut self, run: &Run, files: &mut Files, prompts: &[String]) {
        let Run { command, parsed, output, .. } = *run;
        let text = output.text.as_str();
        self.commits.keep_named(command);
        self.commits.keep_named(clip(text, 20_000).0);
        self.commits.record(command, text);
        let elsewhere = is_of_other_tree(parsed, files.base);
        if elsewhere {
            self.commits.leave_tree();
        }
        let tree = parsed.git_directory().filter(|_| elsewhere && files.base.is_some());
        let tree = tree.map(|it| path(&it, None, files.base));
        self.drop_removed_trees(parsed, files);
        // What a status printed is unknown.
        if output.cleared && parsed.is_read_only() {
            return;
        }
        self.log.read(run, tree.as_deref(), prompts);
        self.read_changes(run, files);
    }

    /// The lines for the ledger: the commits, what is uncommitted, and the branch.
    pub(super) fn ledger_lines(&self, origin: &dyn Fn(usize) -> usize) -> Vec<String> {
        let mut lines = self.log.ledger_lines(|it| self.commits.is_lost(it), origin);
        lines.extend(self.uncommitted.ledger_line(self.log.commits_by_itself(), origin));
        lines.extend(self.commits.branch().map(|it| format!("{CHECKED_OUT}{it}")));
        lines
    }
}

/// Whether two hashes, which may be abbreviated, name the same commit.
fn is_same_commit(one: &str, other: &str) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// The arguments of a git command; `None` for another program.
fn git_args<'w, 'a>(words: &'w [&'a str]) -> Option<&'w [&'a str]> {
    words.strip_prefix(&["git"])
}
