//! Changes that commands discard: files restored, commits reset, untracked files removed.

use super::Repository;
use super::commits::branches;
use crate::facts::text::{clip, flat};
use crate::facts::voice::ToolTopic;
use crate::facts::work::command::{ParsedCommand, Run};
use crate::facts::work::files::{FileState, Files};
use crate::facts::work::paths::{is_at_or_below, path};
use crate::facts::{Detail, Fact, FileOp};

impl Repository {
    /// Reads what a command that is not known to have failed took back or removed. Returns a fact about discarded changes.
    pub(in crate::facts::work) fn read_discards(&mut self, run: &Run, files: &mut Files) -> Option<Fact> {
        let Run { number, command, parsed, output } = *run;
        // If a test runs too, the change is taken back only to see the test fail without it.
        let name = |it: &String| path(it, parsed.git_directory().as_deref(), files.base);
        let changed = |it: &String| files.last_op(&name(it)).is_some_and(FileOp::changes);
        let edited = parsed.restored_files().iter().any(changed);
        let discards = self.resets_changes(number, parsed) || parsed.discards_changes(edited);
        let discarded = (discards && !parsed.runs_tests()).then(|| {
            let named = parsed.restored_files().join(", ");
            let more = |it: Vec<&str>| matches!(it[..], ["git", "clean" | "reset" | "revert" | "stash", ..]);
            let whole = named.is_empty() || parsed.programs().any(more);
            let what = if whole { command } else { &named };
            let text = format!("changes discarded: {}", flat(clip(what, 200).0));
            Fact::from_tools(ToolTopic::Tried, number, text, Detail::None)
        });
        for named in parsed.restored_files() {
            let name = path(&named, parsed.git_directory().as_deref(), files.base);
            // `git checkout docs` may switch to a branch.
            let directory = command.contains("git restore") || command.contains(" -- ");
            let below = |it: &str| directory && it.strip_prefix(&name).is_some_and(|it| it.starts_with('/'));
            for (path, file) in &mut files.by_path {
                // Of a directory, git restores what it tracks.
                let edited = matches!(file.op, FileOp::Edited | FileOp::Written);
                if *path == name || below(path) && edited && self.uncommitted.is_changed(path) {
                    *file = FileState::new(number, FileOp::Restored);
                }
            }
        }
        for line in output.text.as_str().lines().filter(|_| parsed.cleans()) {
            let Some(named) = line.strip_prefix("Removing ") else { continue };
            let name = path(named.trim_end_matches('/'), parsed.git_directory().as_deref(), files.base);
            for (_, file) in files.by_path.iter_mut().filter(|it| is_at_or_below(it.0, &name)) {
                *file = FileState::new(number, FileOp::Deleted);
            }
            self.uncommitted.forget_at_or_below(&name);
        }
        discarded
    }

    /// Notes new branches. Returns whether `git reset --hard` discards known edits, or commits that no branch keeps.
    fn resets_changes(&mut self, number: usize, command: &ParsedCommand) -> bool {
        let mut discards = false;
        for words in command.programs() {
            self.created_refs.extend(branches(&words).0.map(|it| (number, it.to_owned())));
            discards |= self.is_discarding_reset(number, &words);
        }
        discards
    }

    fn is_discarding_reset(&self, number: usize, words: &[&str]) -> bool {
        /// Number of messages; a branch created earlier was made for something else.
        const SOON: usize = 8;
        let ["git", "reset", rest @ ..] = words else { return false };
        let soon = self.created_refs.last().is_some_and(|it| number - it.0 <= SOON);
        rest.contains(&"--hard")
            && match rest.iter().find(|it| !it.starts_with('-')) {
                None | Some(&"HEAD") => self.uncommitted.has_edits(),
                Some(to) if to.starts_with("origin/") || to.contains("@{") => {
                    !soon && self.uncommitted.has_edits()
                }
                Some(to) => !soon && !self.created_refs.iter().any(|it| it.1 == *to),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_that_follows_a_reset_is_noted() {
        let mut repository = Repository::default();
        repository.uncommitted.edit(1, "a.rs");
        let both = ParsedCommand::of("git reset --hard && git branch kept");
        assert!(repository.resets_changes(2, &both));
        assert!(!repository.resets_changes(20, &ParsedCommand::of("git reset --hard kept")));
    }
}
