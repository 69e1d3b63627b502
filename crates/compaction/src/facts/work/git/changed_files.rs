//! Files that git lists as changed, committed or gone.

use std::collections::HashMap;

use super::listing::{Change, Listed, Listing, may_be_same_file, of_commit, renamed};
use super::{COMMITTED, Repository};
use crate::facts::FileOp;
use crate::facts::work::command::{ParsedCommand, Run};
use crate::facts::work::files::{FileState, Files, is_unexpanded, mentions};
use crate::facts::work::paths::{file_name, is_absolute, is_at_or_below, path, printed};

/// Who changed a file in this session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangedBy {
    Session,
    Subagent,
    /// Only the commit shows the change.
    Unknown,
}

impl Repository {
    /// Reads which files git shows as changed, committed or gone.
    pub(super) fn read_changes(&mut self, run: &Run, files: &mut Files) {
        /// Maximum number of files; a longer list is not of this work alone.
        const MOST: usize = 120;
        let Run { number, parsed, .. } = *run;
        let (output, base) = (run.output.text.as_str(), files.base);
        let dir = parsed.git_directory().map(|it| path(&it, None, base));
        let dir = dir.as_deref();
        let tree = dir.and_then(|it| mentions::tree_of(it, base));
        if dir.is_some_and(is_unexpanded) || tree.is_none() && is_of_other_tree(parsed, base) {
            return;
        }
        // If git ran in a subdirectory, an unknown path may be relative to it or to the root.
        let at_root = dir.is_none_or(is_absolute);
        self.untracked.extend(parsed.untracked_files().map(|it| path(it, dir, base)));
        let known = &files.by_path;
        let resolve = |it: &Listed| known_path(known, it, if it.from_root { tree } else { dir }, base);
        let committed = self.uncommitted.read(run, resolve);
        let listings: Vec<Listing> =
            parsed.programs().filter_map(|it| Listing::of(&it, parsed, output)).collect();
        let whole = listings.iter().any(|it| it.whole);
        let listed: Vec<Listed> = listings.into_iter().flat_map(|it| it.files).collect();
        let of_commit = if COMMITTED.is_match(output) { of_commit(output) } else { Vec::new() };
        if listed.len() + of_commit.len() > MOST {
            return;
        }
        // A list of another worktree says nothing about this one.
        let here = tree.map(str::to_owned);
        let listed_before = self.listed_in.contains(&here);
        let since = |it: &String| listed_before && !has_listed(self.changed_before.iter(), it);
        let mut changes = Vec::new();
        for (of_commit, it) in
            of_commit.iter().map(|it| (true, it)).chain(listed.iter().map(|it| (false, it)))
        {
            let Some(name) = resolve(it) else { continue };
            // A file may have been changed before the session, unless an earlier list lacks it.
            let new = self.uncommitted_at_first.as_ref().is_some_and(|it| !has_listed(it.iter(), &name));
            let since = since(&name);
            let stays = it.change == Change::Deleted && self.untracked.contains(&name);
            let by = if self.was_changed_in_removed_worktree(&name, files) {
                Some(ChangedBy::Session)
            } else {
                (self.uncommitted.has_delegated() && (of_commit || since)).then_some(ChangedBy::Subagent)
            };
            // What was read before a subagent worked was there before.
            let was_there = by == Some(ChangedBy::Subagent)
                && files
                    .by_path
                    .get(&name)
                    .is_some_and(|it| is_read(it.op) && it.message < self.uncommitted.delegated());
            let change = if was_there && it.change != Change::Deleted { Change::Modified } else { it.change };
            changes.extend((!stays).then_some((name, change, by, new)));
        }
        let named = |path| Listed { path, change: Change::Modified, from_root: false };
        let is_file = |it: &String| {
            file_name(it).split_once('.').is_some_and(|it| !it.0.is_empty() && !it.1.is_empty())
        };
        let committed = committed.into_iter().filter_map(|it| resolve(&named(it)));
        let committed = committed.filter(|it| is_file(it) && (at_root || known.contains_key(it)));
        changes.extend(committed.map(|it| (it, Change::Modified, Some(ChangedBy::Unknown), false)));
        let names = || changes.iter().map(|it| it.0.clone());
        if !self.uncommitted.has_delegated() || !listed_before {
            self.changed_before.extend(names());
        }
        if whole && self.uncommitted_at_first.is_none() {
            self.uncommitted_at_first = Some(names().collect());
        }
        self.listed_in.extend((!listed.is_empty()).then_some(here));
        // What was read in a directory that is untracked since a subagent worked is new, too.
        let is_new = |it: &&(String, Change, Option<ChangedBy>, bool)| {
            it.0.ends_with('/') && it.1 == Change::Untracked && it.2 == Some(ChangedBy::Subagent)
        };
        let new: Vec<String> = changes.iter().filter(is_new).map(|it| it.0.clone()).collect();
        let read = |it: &&String| {
            let state = &files.by_path[*it];
            is_read(state.op) && state.message > self.uncommitted.delegated()
        };
        let within = files.by_path.keys().filter(|it| new.iter().any(|of| it.starts_with(of.as_str())));
        let within: Vec<String> = within.filter(read).cloned().collect();
        changes.extend(within.into_iter().map(|it| (it, Change::Untracked, Some(ChangedBy::Subagent), true)));
        changes.retain(|it| !it.0.ends_with('/'));
        let whole = |path: String| resolve(&Listed { path, change: Change::Modified, from_root: true });
        let renames = output.lines().filter_map(renamed).filter(|_| COMMITTED.is_match(output));
        let renames: Vec<_> = renames.filter_map(|[from, to]| Some((whole(from)?, whole(to)?))).collect();
        for (name, change, by, new) in changes {
            note(files, number, name, change, by, new);
        }
        // Until it was staged, git listed the old path as deleted.
        for (from, to) in renames {
            if let Some(file) = files.by_path.get_mut(&from).filter(|it| it.op == FileOp::Deleted) {
                *file = FileState { message: number, op: FileOp::Renamed, to: Some(to) };
            }
        }
    }

    /// Whether this session changed the same file in another worktree.
    fn was_changed_in_removed_worktree(&self, name: &str, files: &Files) -> bool {
        let is = |path: &str| path.strip_suffix(name).is_some_and(|it| it.ends_with('/'));
        self.changed_in_removed_worktrees.iter().any(|it| is(it))
            || files.by_path.iter().any(|(path, state)| {
                state.op.changes() && is(path) && mentions::is_of_other_tree(path, files.base)
            })
    }

    /// Drops the files of worktrees that git removed.
    pub(super) fn drop_removed_trees(&mut self, parsed: &ParsedCommand, files: &mut Files) {
        let dir = parsed.git_directory();
        for tree in parsed.removed_trees() {
            let tree = path(tree, dir.as_deref(), files.base) + "/";
            self.uncommitted.forget_at_or_below(tree.trim_end_matches('/'));
            let gone: Vec<String> =
                files.by_path.keys().filter(|it| it.starts_with(&tree)).cloned().collect();
            for name in gone {
                let changed = files.by_path.remove(&name).is_some_and(|it| it.op.changes());
                self.changed_in_removed_worktrees.extend(changed.then_some(name));
            }
        }
    }
}

fn is_read(op: FileOp) -> bool {
    matches!(op, FileOp::Read | FileOp::ReadAfterEdit)
}

/// Whether git ran in another worktree or repository, or in an unknown directory.
pub(in crate::facts::work) fn is_of_other_tree(parsed: &ParsedCommand, base: Option<&str>) -> bool {
    let Some(dir) = parsed.git_directory().map(|it| path(&it, None, base)) else { return false };
    let above = base.is_some_and(|it| path(it, None, base).starts_with(&dir));
    is_unexpanded(&dir) || is_absolute(&dir) && !above || mentions::is_of_other_tree(&dir, base)
}

/// Notes that git shows a file as changed. `by`: who changed it, if it was changed in this session.
/// `new`: the first complete list of uncommitted files lacks it.
fn note(files: &mut Files, number: usize, name: String, change: Change, by: Option<ChangedBy>, new: bool) {
    // The move tells it: until both paths are staged, git lists one as deleted and the other as new.
    let gone = files.moved.iter().any(|(from, _)| is_at_or_below(&name, from));
    // Whether it was itself moved here, rather than a directory above it.
    let come = files.moved.iter().find(|it| is_at_or_below(&name, &it.1)).map(|it| it.1 == name);
    let change = match (change, come) {
        (Change::Deleted, _) if gone => return,
        (Change::Added | Change::Untracked, Some(true)) => return,
        // Whether a file in a directory that was moved is new is unknown.
        (Change::Added | Change::Untracked, Some(false)) => Change::Modified,
        (other, _) => other,
    };
    let (read_at, known) = files.by_path.get(&name).map(|it| (it.message, it.op)).unzip();
    let op = match (known, change) {
        (Some(FileOp::Deleted | FileOp::Renamed), _) => return,
        (Some(_), Change::Deleted) => FileOp::Deleted,
        // Created by a command or a subagent.
        (Some(FileOp::Edited), Change::Added | Change::Untracked) if new => FileOp::CreatedThenEdited,
        (Some(op), Change::Modified | Change::Added | Change::Untracked) if op.changes() => return,
        (Some(_) | None, _) if by.is_none() => return,
        (None, Change::Deleted) => FileOp::Deleted,
        (_, Change::Modified) if by == Some(ChangedBy::Unknown) => FileOp::Committed,
        (Some(FileOp::Read | FileOp::ReadAfterEdit), Change::Modified) if by == Some(ChangedBy::Subagent) => {
            FileOp::ReadThenChanged
        }
        (_, Change::Modified) => FileOp::Edited,
        (_, Change::Added | Change::Untracked) => FileOp::Created,
    };
    let stays =
        |it: FileOp| matches!(it, FileOp::ReadThenChanged | FileOp::CreatedThenEdited | FileOp::Committed);
    // The message of the read stays: a kept tail that holds only the commit does not show the read.
    let number = read_at.filter(|_| stays(op) && known != Some(FileOp::Mentioned)).unwrap_or(number);
    files.by_path.insert(name, FileState::new(number, op));
}

/// Whether a list of git contains a file, or the untracked directory that it is in.
fn has_listed<'l>(mut list: impl Iterator<Item = &'l String>, name: &str) -> bool {
    list.any(|it| it == name || it.ends_with('/') && name.starts_with(it.as_str()))
}

/// The known path of a file that git printed; `None` if outside, or cut (`.../a.rs`) and ambiguous.
fn known_path(
    files: &HashMap<String, FileState>,
    listed: &Listed,
    dir: Option<&str>,
    base: Option<&str>,
) -> Option<String> {
    let written = listed.path.as_str();
    let cut = written.strip_prefix(".../");
    let folder = if written.ends_with('/') { "/" } else { "" };
    let name = match cut {
        Some(rest) => Some(rest.to_owned()),
        None => printed(written, dir, base).map(|it| it + folder),
    };
    let name = name.filter(|it| cut.is_some() || !it.starts_with(".."))?;
    if cut.is_none() && (files.contains_key(&name) || !name.trim_end_matches('/').contains('/')) {
        return Some(name);
    }
    // Every worktree has files of the same names.
    let tree = mentions::tree_of(&name, base);
    let here = |it: &&String| mentions::tree_of(it, base) == tree;
    // A file outside of the working directory is not in its repository, and git's path may begin above it.
    let above = |known: &&String| {
        let prefix = name.strip_suffix(known.as_str()).unwrap_or_default().trim_end_matches('/');
        let ends = |base: &str| base.replace('\\', "/").trim_end_matches('/').ends_with(prefix);
        let outside = base.is_some() && is_absolute(known) && !is_absolute(&name);
        !outside && (prefix.is_empty() || base.is_none_or(ends))
    };
    let mut same =
        files.keys().filter(|it| it.contains('/') && may_be_same_file(it, &name) && above(it)).filter(here);
    match (same.next(), same.next()) {
        (Some(one), None) => Some(one.clone()),
        _ => Some(name).filter(|_| cut.is_none()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_the_root_is_not_one_below() {
        let files =
            ["go/.tool/", "go/src/a.go"].map(|it| (it.to_owned(), FileState::new(1, FileOp::Mentioned)));
        let files = HashMap::from(files);
        let known = |path: &str| {
            let listed = Listed { path: path.to_owned(), change: Change::Untracked, from_root: false };
            known_path(&files, &listed, None, Some("/repo"))
        };
        assert_eq!(known(".tool/").as_deref(), Some(".tool/"));
        assert_eq!(known("src/a.go").as_deref(), Some("go/src/a.go"));
    }
}
