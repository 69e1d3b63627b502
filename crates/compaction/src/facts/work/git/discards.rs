//! Changes that commands discard: files restored, commits reset, untracked files removed.

use crate::facts::text::{clip, flat};
use crate::facts::voice::ToolTopic;
use crate::facts::work::Work;
use crate::facts::work::command::ParsedCommand;
use crate::facts::work::files::FileState;
use crate::facts::work::git::commits::branches;
use crate::facts::work::paths::path;
use crate::facts::{Detail, Fact, FileOp};
use history::Output;

impl Work<'_> {
    /// Records what a command that is not known to have failed took back or removed.
    pub(in crate::facts::work) fn record_discarded_changes(
        &mut self,
        number: usize,
        command: &str,
        parsed: &ParsedCommand,
        output: &Output,
    ) {
        // If a test runs too, the change is taken back only to see the test fail without it.
        let name = |it: &String| path(it, parsed.git_directory().as_deref(), self.base);
        let changed = |it: &String| self.files.by_path.get(&name(it)).is_some_and(|it| it.op.changes());
        let edited = parsed.restored_files().iter().any(changed);
        let discards = self.resets_changes(number, parsed) || parsed.discards_changes(edited);
        if discards && !parsed.runs_tests() {
            let files = parsed.restored_files().join(", ");
            let more = |it: Vec<&str>| matches!(it[..], ["git", "clean" | "reset" | "revert" | "stash", ..]);
            let whole = files.is_empty() || parsed.programs().any(more);
            let what = if whole { command } else { &files };
            let text = format!("changes discarded: {}", flat(clip(what, 200).0));
            self.facts.push(Fact::from_tools(ToolTopic::Tried, number, text, Detail::None));
        }
        for named in parsed.restored_files() {
            let name = path(&named, parsed.git_directory().as_deref(), self.base);
            // `git checkout docs` may switch to a branch.
            let directory = command.contains("git restore") || command.contains(" -- ");
            let below = |it: &str| directory && it.strip_prefix(&name).is_some_and(|it| it.starts_with('/'));
            for (path, file) in &mut self.files.by_path {
                // Of a directory, git restores what it tracks.
                let edited = matches!(file.op, FileOp::Edited | FileOp::Written);
                if *path == name || below(path) && edited && self.uncommitted.is_changed(path) {
                    *file = FileState::new(number, FileOp::Restored);
                }
            }
        }
        for line in output.text.as_str().lines().filter(|_| parsed.cleans()) {
            let Some(named) = line.strip_prefix("Removing ") else { continue };
            let name = path(named.trim_end_matches('/'), parsed.git_directory().as_deref(), self.base);
            let below =
                |it: &str| it.strip_prefix(&name).is_some_and(|it| it.is_empty() || it.starts_with('/'));
            self.files
                .by_path
                .iter_mut()
                .filter(|it| below(it.0))
                .for_each(|it| *it.1 = FileState::new(number, FileOp::Deleted));
            self.uncommitted.delete(&name);
        }
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
        let mut work = Work::default();
        work.uncommitted.edit(1, "a.rs");
        let both = ParsedCommand::of("git reset --hard && git branch kept");
        assert!(work.resets_changes(2, &both));
        assert!(!work.resets_changes(20, &ParsedCommand::of("git reset --hard kept")));
    }
}
