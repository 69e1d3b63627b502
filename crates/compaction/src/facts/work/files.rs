//! The files of the work, each under one path, and what was last done to it.

use std::collections::{HashMap, HashSet};

use super::command::ParsedCommand;
use super::git::COMMITTED;
use super::git::listing::{Change, Listed, Listing, may_be_same_file, of_commit, renamed};
use super::paths::{MAX_PATH_BYTES, file_name, is_absolute, path, printed};
use super::runs::output_directory;
use super::{FileState, RECENT_MESSAGES, Work, file_mentions};
use crate::facts::text::clip;
use crate::facts::voice::ToolTopic;
use crate::facts::{Detail, Fact, FileOp};
use history::tools::{Action, Meaning};
use history::{History, Message, Output};

/// Top-level directories of a file system: other absolute paths may be routes or imports.
const SYSTEM_ROOTS: [&str; 24] = [
    "Applications",
    "Library",
    "System",
    "Users",
    "Volumes",
    "bin",
    "data",
    "dev",
    "etc",
    "home",
    "lib",
    "media",
    "mnt",
    "opt",
    "private",
    "proc",
    "root",
    "run",
    "srv",
    "sys",
    "tmp",
    "usr",
    "var",
    "workspace",
];

/// Who changed a file in this session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangedBy {
    Session,
    /// A subagent, or unknown.
    Other,
}

/// Drops files that were only mentioned if another path contains theirs, as its end or as a directory of it,
/// or if they are no part of the work. Old ones from long listings become [`FileOp::Listed`].
pub(super) fn drop_idle(work: &Work, history: &History, files: &mut Vec<(String, FileState)>) {
    let (base, end) = (work.base, history.messages().len());
    let mut told: HashSet<String> = HashSet::new();
    for (path, FileState { op, .. }) in files.iter() {
        for (at, _) in path.match_indices('/').take(MAX_DEPTH) {
            told.extend((*op != FileOp::Mentioned).then(|| path[..at].to_owned()));
            // The end of an absolute path may also be another file in the working directory.
            told.extend((!path.starts_with('/')).then(|| path[at + 1..].to_owned()));
        }
        // A path with a space may also be found as only the part after the space.
        told.extend(path.match_indices(' ').take(MAX_DEPTH).map(|(at, _)| path[at + 1..].to_owned()));
    }
    let roots: HashSet<String> = files
        .iter()
        .filter(|it| it.1.op != FileOp::Mentioned)
        .map(|it| it.0.as_str())
        .chain(base)
        .filter_map(root)
        .map(str::to_owned)
        .collect();
    let names: HashSet<String> = files.iter().map(|it| it.0.clone()).collect();
    let in_passing = |path: &str, op: FileOp| op == FileOp::Mentioned && work.in_passing.contains(path);
    let seen = files.iter().filter(|(path, state)| !in_passing(path, state.op));
    let seen: HashSet<String> = seen.flat_map(|it| directories(&it.0)).map(str::to_owned).collect();
    let is_printed = |path: &str| {
        let mut outputs = history.messages().iter().flat_map(Message::outputs);
        outputs.any(|it| it.text.as_str().contains(path))
    };
    let strange = |path: &str| {
        !path.starts_with(['/', '~']) && directories(path).next().is_some_and(|it| !seen.contains(it))
    };
    let foreign = |path: &str| {
        // Two names (`env/.env`), or a file of another project.
        work.in_passing.contains(path) && strange(path) && !is_printed(path)
            // An example: `turn-N.md`.
            || work.announced.contains(path) && file_mentions::has_variable(path)
            // A route of an application, or a module that is imported.
            || root(path).is_some_and(|it| !SYSTEM_ROOTS.contains(&it) && !roots.contains(it))
            // The way that a diff names it: `a/src/x.rs`.
            || ["a/", "b/"].iter().any(|it| path.strip_prefix(it).is_some_and(|it| names.contains(it)))
            || file_mentions::is_of_other_tree(path, base)
            || file_mentions::is_placeholder(path)
    };
    files.retain(|(path, state)| {
        state.op != FileOp::Mentioned
            || !foreign(path) && !told.contains(path) && !file_mentions::is_kept_by_tools(path)
    });
    for (path, state) in files {
        let old = state.message + RECENT_MESSAGES < end;
        if state.op == FileOp::Mentioned && old && work.listed.contains(path) {
            state.op = FileOp::Listed;
        }
    }
}

/// Maximum number of directories of a path that are looked at.
const MAX_DEPTH: usize = 24;

/// The first directory of an absolute path.
fn root(path: &str) -> Option<&str> {
    path.strip_prefix('/').and_then(|it| it.split('/').next())
}

/// The names of the directories in a path.
fn directories(path: &str) -> impl Iterator<Item = &str> {
    let (dirs, _) = path.rsplit_once('/').unwrap_or_default();
    dirs.split('/').filter(|it| !it.is_empty() && *it != "~").take(MAX_DEPTH)
}

/// Whether a directory is named by a shell variable, whose value is unknown.
fn is_unexpanded(dir: &str) -> bool {
    dir.contains('$')
}

impl Work<'_> {
    /// Records the files in the output of a search or listing, unless an operation on them is known. If the
    /// directory that they are relative to is uncertain, unknown files are recorded as printed.
    pub(super) fn note_found_files(&mut self, number: usize, actions: &[Action], output: &Output) {
        /// Maximum number of files in an answer; more are a listing.
        const ANSWER: usize = 5;
        let at = output_directory(actions, self.base);
        let certain = at.is_some();
        let dir = at.unwrap_or_else(|| actions.first()?.dir.as_deref().map(str::to_owned));
        if certain && dir.as_deref().is_some_and(is_unexpanded) {
            return;
        }
        let found = file_mentions::in_output(output.text.as_str());
        let long = found.len() > ANSWER;
        for found in found {
            let below = printed(found, dir.as_deref(), self.base);
            let below = below.filter(|it| certain || self.files.contains_key(it));
            let name = below.or_else(|| printed(found, None, self.base).filter(|_| !certain));
            let Some(name) = name else { continue };
            if long && !self.files.contains_key(&name) {
                self.listed.insert(name.clone());
            } else if !long {
                self.listed.remove(&name);
            }
            self.announced.remove(&name);
            self.in_passing.remove(&name);
            self.note_file(number, name);
        }
    }

    /// Records the files that a prompt or a subagent's report names.
    pub(super) fn note_named_files(&mut self, number: usize, named: Vec<&str>) {
        for found in named {
            let name = path(found, None, self.base);
            self.listed.remove(&name);
            self.announced.remove(&name);
            self.in_passing.remove(&name);
            self.note_file(number, name);
        }
    }

    /// Records the files that a reply names: the model may be about to create them.
    pub(super) fn note_announced_files(&mut self, number: usize, reply: &str) {
        for found in file_mentions::in_reply(reply) {
            let name = path(found, None, self.base);
            self.listed.remove(&name);
            let new = !self.files.contains_key(&name);
            if file_mentions::is_marked(reply, found) {
                self.in_passing.remove(&name);
            } else if new {
                self.in_passing.insert(name.clone());
            }
            if new {
                self.announced.insert(name.clone());
            }
            self.note_file(number, name);
        }
    }

    pub(super) fn note_file(&mut self, number: usize, name: String) {
        let known = self.files.entry(name).or_insert(FileState::new(number, FileOp::Mentioned));
        if known.op == FileOp::Mentioned {
            known.message = number;
        }
    }

    pub(super) fn record_file_action(&mut self, number: usize, action: &Action, output: &Output) {
        let Some(name) = self.named_by(action) else { return };
        let Some(op) = self.operation(&name, action.meaning, output) else {
            self.open = Some(name);
            return;
        };
        let to = action.to.as_deref().map(|it| path(it, action.dir.as_deref(), self.base));
        if let Some(to) = to.clone()
            && let Some(before) = self.files.get(&name).map(|it| it.op)
            && !matches!(
                before,
                FileOp::Read | FileOp::Mentioned | FileOp::Restored | FileOp::Deleted | FileOp::Renamed
            )
        {
            // Earlier changes still apply to the file under its new name.
            self.files.insert(to, FileState::new(number, before));
        }
        if !matches!(op, FileOp::Deleted | FileOp::Renamed) {
            self.open = Some(name.clone());
        }
        if op.changes() {
            self.record_change(number, &name, op, to.clone());
        }
        if matches!(op, FileOp::Created | FileOp::Written | FileOp::CreatedThenEdited) {
            self.resolve_missing_file(number, &name);
        }
        if op == FileOp::Deleted {
            // Deleting a directory deletes what is in it.
            let below = |path: &str| path.strip_prefix(&name).is_some_and(|it| it.starts_with('/'));
            self.files.retain(|path, _| !below(path));
        }
        self.files.insert(name, FileState { message: number, op, to });
    }

    /// The file of an action; SWE-agent's edits name none, but concern the open one.
    fn named_by(&mut self, action: &Action) -> Option<String> {
        let named = action.path.as_deref().map(|it| path(it, action.dir.as_deref(), self.base));
        let name = named.or_else(|| self.open.clone().filter(|_| action.meaning == Meaning::Edit))?;
        let whole = action.path.as_deref().is_some_and(is_absolute);
        let unexpanded = action.dir.as_deref().is_some_and(is_unexpanded) && !whole;
        if name.is_empty() || name.len() > MAX_PATH_BYTES || unexpanded {
            return None;
        }
        if whole {
            self.absolute_paths.insert(name.clone());
        }
        Some(name)
    }

    /// The file's last operation after a successful action; `None` if that stays as it was.
    fn operation(&self, name: &str, meaning: Meaning, output: &Output) -> Option<FileOp> {
        let known = self.files.get(name);
        let before = known.map(|it| it.op);
        let made = matches!(before, Some(FileOp::Created | FileOp::CreatedThenEdited));
        match meaning {
            Meaning::Read => match before {
                None | Some(FileOp::Read | FileOp::Mentioned | FileOp::Restored) => Some(FileOp::Read),
                Some(
                    FileOp::Edited
                    | FileOp::CreatedThenEdited
                    | FileOp::Written
                    | FileOp::Created
                    | FileOp::ReadAfterEdit,
                ) => known
                    .filter(|it| self.summary_messages.contains(&it.message))
                    .map(|_| FileOp::ReadAfterEdit),
                Some(FileOp::Renamed | FileOp::Deleted | FileOp::ReadThenChanged | FileOp::Listed) => None,
            },
            Meaning::Edit if made => Some(FileOp::CreatedThenEdited),
            Meaning::Edit => Some(FileOp::Edited),
            Meaning::Create if made => Some(FileOp::CreatedThenEdited),
            Meaning::Create => {
                let there = before.is_some_and(|it| match it {
                    FileOp::Deleted | FileOp::Renamed => false,
                    // A file that only a reply named is not there yet.
                    FileOp::Mentioned => !self.announced.contains(name),
                    FileOp::Created
                    | FileOp::CreatedThenEdited
                    | FileOp::Written
                    | FileOp::Edited
                    | FileOp::Restored
                    | FileOp::ReadAfterEdit
                    | FileOp::Read
                    | FileOp::ReadThenChanged
                    | FileOp::Listed => true,
                });
                let overwritten = there && !says_created(output) || has_overwritten(output);
                Some(if overwritten { FileOp::Written } else { FileOp::Created })
            }
            Meaning::Delete => Some(FileOp::Deleted),
            Meaning::Rename => Some(FileOp::Renamed),
            Meaning::Run
            | Meaning::Attend
            | Meaning::Search
            | Meaning::List
            | Meaning::Plan
            | Meaning::Ask
            | Meaning::Fetch
            | Meaning::Delegate
            | Meaning::Deliver
            | Meaning::Other => None,
        }
    }

    fn record_change(&mut self, number: usize, name: &str, op: FileOp, to: Option<String>) {
        let detail = Detail::File { op, to: to.clone() };
        self.changes.push(Fact::from_tools(ToolTopic::Files, number, name.to_owned(), detail));
        if matches!(op, FileOp::Deleted | FileOp::Renamed) {
            self.uncommitted.delete(name);
        }
        if op != FileOp::Deleted {
            self.uncommitted.edit(number, to.as_deref().unwrap_or(name));
        }
        self.resolve_misfits(number, name);
    }

    /// Merges spellings of a file: a path relative to a directory in which commands ran, and a path of an
    /// earlier summary that is the end of exactly one other path, become that other path.
    pub(super) fn join_spellings(&mut self) {
        let whole: Vec<String> = self.files.keys().filter(|it| it.contains('/')).cloned().collect();
        let mut ends: HashMap<&str, Vec<&String>> = HashMap::new();
        for path in &whole {
            for (at, _) in path.match_indices('/').take(MAX_DEPTH) {
                ends.entry(&path[at + 1..]).or_default().push(path);
            }
        }
        let mut joined: Vec<(String, String)> = Vec::new();
        for (path, FileState { message, op, .. }) in &self.files {
            let longer = ends.get(path.as_str()).filter(|it| !it.is_empty());
            let Some(longer) =
                longer.filter(|_| *op != FileOp::Mentioned && !self.absolute_paths.contains(path))
            else {
                continue;
            };
            let below = |it: &&&String| {
                let dir = it.strip_suffix(path.as_str()).unwrap_or_default().trim_end_matches('/');
                self.command_dirs.contains(dir)
            };
            let mut there = longer.iter().filter(below);
            let to = match (there.next(), there.next(), &longer[..]) {
                (Some(one), None, _) => Some(one),
                (None, _, [one]) if self.summary_messages.contains(message) && path.contains('/') => {
                    Some(one)
                }
                _ => None,
            };
            joined.extend(to.map(|it| (path.clone(), (*it).clone())));
        }
        for (path, to) in joined {
            let Some(state) = self.files.remove(&path) else { continue };
            let Some(known) = self.files.get_mut(&to) else { continue };
            let changes = state.op.changes();
            let stays = !matches!(state.op, FileOp::Deleted | FileOp::Renamed);
            let of_summary = self.summary_messages.contains(&state.message);
            if changes && stays && known.op == FileOp::Read && of_summary {
                known.op = FileOp::ReadAfterEdit;
            } else if changes && (!known.op.changes() || state.message > known.message) {
                *known = state;
            } else if !known.op.changes() {
                known.message = known.message.max(state.message);
            }
        }
    }

    /// Completes paths of an earlier summary that are relative to a subdirectory: if other paths of the
    /// summary in the same folder are known there, and the working directory has no such folder.
    pub(super) fn complete_summary_paths(&mut self) {
        /// Minimum number of paths that prove the directory.
        const ENOUGH: usize = 2;
        let relative = self.files.iter().filter(|it| it.0.contains('/') && !is_absolute(it.0));
        let (told, known): (Vec<_>, Vec<_>) =
            relative.partition(|it| self.summary_messages.contains(&it.1.message));
        let mut ends: HashMap<&str, Vec<&str>> = HashMap::new();
        for (path, _) in &known {
            for (at, _) in path.match_indices('/').take(MAX_DEPTH) {
                ends.entry(&path[at + 1..]).or_default().push(&path[..at]);
            }
        }
        let placed = told.iter().filter_map(|it| match ends.get(it.0.as_str()).map(Vec::as_slice) {
            Some([dir]) => Some((it.0.as_str(), *dir)),
            Some(_) | None => None,
        });
        let placed: Vec<(&str, &str)> = placed.collect();
        let Some(&(_, dir)) = placed.first() else { return };
        if placed.len() < ENOUGH || placed.iter().any(|it| it.1 != dir) {
            return;
        }
        let first = |it: &str| it.split('/').next().unwrap_or_default().to_owned();
        let here: HashSet<String> = known.iter().map(|it| first(it.0)).collect();
        let moves = |it: &&str| {
            !ends.contains_key(*it)
                && !here.contains(&first(it))
                && placed.iter().any(|(other, _)| first(it) == first(other))
        };
        let moved = told.iter().map(|it| it.0.as_str()).filter(moves);
        let moved: Vec<(String, String)> = moved.map(|it| (it.to_owned(), format!("{dir}/{it}"))).collect();
        for (path, to) in moved {
            let Some(file) = self.files.remove(&path) else { continue };
            self.files.entry(to).or_insert(file);
        }
    }

    /// Reads which files git shows as changed, committed or gone.
    pub(super) fn read_changes(&mut self, number: usize, parsed: &ParsedCommand, output: &str) {
        /// Maximum number of files; a longer list is not of this work alone.
        const MOST: usize = 120;
        let dir = parsed.git_directory().map(|it| path(&it, None, self.base));
        let dir = dir.as_deref();
        let tree = dir.and_then(|it| file_mentions::tree_of(it, self.base));
        if dir.is_some_and(is_unexpanded) || tree.is_none() && self.is_of_other_tree(parsed) {
            return;
        }
        // If git ran in a subdirectory, an unknown path may be relative to it or to the root.
        let at_root = dir.is_none_or(is_absolute);
        self.untracked.extend(parsed.untracked_files().map(|it| path(it, dir, self.base)));
        let (files, base) = (&self.files, self.base);
        let resolve = |it: &Listed| known_path(files, it, if it.from_root { tree } else { dir }, base);
        let committed = self.uncommitted.run(number, parsed, output, resolve);
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
        let since = |it: &String| listed_before && !has_listed(self.changed_before.keys(), it);
        let mut changes = Vec::new();
        for (of_commit, it) in
            of_commit.iter().map(|it| (true, it)).chain(listed.iter().map(|it| (false, it)))
        {
            let Some(name) = resolve(it) else { continue };
            // A file may have been changed before the session, unless an earlier list lacks it.
            let new = self.uncommitted_at_first.as_ref().is_some_and(|it| !has_listed(it.iter(), &name));
            let since = since(&name);
            let stays = it.change == Change::Deleted && self.untracked.contains(&name);
            let by = if self.was_changed_in_removed_worktree(&name) {
                Some(ChangedBy::Session)
            } else {
                (self.uncommitted.has_delegated() && (of_commit || since)).then_some(ChangedBy::Other)
            };
            changes.extend((!stays).then_some((name, it.change, by, new)));
        }
        let named = |path| Listed { path, change: Change::Modified, from_root: false };
        let is_file = |it: &String| {
            file_name(it).split_once('.').is_some_and(|it| !it.0.is_empty() && !it.1.is_empty())
        };
        let committed = committed.into_iter().filter_map(|it| resolve(&named(it)));
        let committed = committed.filter(|it| is_file(it) && (at_root || files.contains_key(it)));
        // A file that was changed already when it was read may be unchanged since.
        let as_read = |it: &String| {
            let read = self.files.get(it).filter(|it| it.op == FileOp::Read);
            read.zip(self.changed_before.get(it)).is_some_and(|(read, listed)| *listed < read.message)
        };
        let by = |it: &String| (!as_read(it)).then_some(ChangedBy::Other);
        changes.extend(committed.map(|it| (it.clone(), Change::Modified, by(&it), false)));
        let names = || changes.iter().map(|it| it.0.clone());
        if !self.uncommitted.has_delegated() || !listed_before {
            names().for_each(|it| _ = self.changed_before.entry(it).or_insert(number));
        }
        if whole && self.uncommitted_at_first.is_none() {
            self.uncommitted_at_first = Some(names().collect());
        }
        self.listed_in.extend((!listed.is_empty()).then_some(here));
        changes.retain(|it| !it.0.ends_with('/'));
        let whole = |path: String| resolve(&Listed { path, change: Change::Modified, from_root: true });
        let renames = output.lines().filter_map(renamed).filter(|_| COMMITTED.is_match(output));
        let renames: Vec<_> = renames.filter_map(|[from, to]| Some((whole(from)?, whole(to)?))).collect();
        for (name, change, by, new) in changes {
            self.note_change(number, name, change, by, new);
        }
        // Until it was staged, git listed the old path as deleted.
        for (from, to) in renames {
            if let Some(file) = self.files.get_mut(&from).filter(|it| it.op == FileOp::Deleted) {
                *file = FileState { message: number, op: FileOp::Renamed, to: Some(to) };
            }
        }
    }

    /// Whether git ran in another worktree or repository, or in an unknown directory.
    pub(super) fn is_of_other_tree(&self, parsed: &ParsedCommand) -> bool {
        let Some(dir) = parsed.git_directory().map(|it| path(&it, None, self.base)) else { return false };
        let above = self.base.is_some_and(|it| path(it, None, self.base).starts_with(&dir));
        is_unexpanded(&dir) || is_absolute(&dir) && !above || file_mentions::is_of_other_tree(&dir, self.base)
    }

    /// Whether this session changed the same file in another worktree.
    fn was_changed_in_removed_worktree(&self, name: &str) -> bool {
        let is = |path: &str| path.strip_suffix(name).is_some_and(|it| it.ends_with('/'));
        self.changed_in_removed_worktrees.iter().any(|it| is(it))
            || self.files.iter().any(|(path, state)| {
                state.op.changes() && is(path) && file_mentions::is_of_other_tree(path, self.base)
            })
    }

    /// Drops the files of worktrees that git removed.
    pub(super) fn drop_removed_trees(&mut self, parsed: &ParsedCommand) {
        let dir = parsed.git_directory();
        for tree in parsed.removed_trees() {
            let tree = path(tree, dir.as_deref(), self.base) + "/";
            self.uncommitted.delete(tree.trim_end_matches('/'));
            let gone: Vec<String> = self.files.keys().filter(|it| it.starts_with(&tree)).cloned().collect();
            for name in gone {
                let changed = self.files.remove(&name).is_some_and(|it| it.op.changes());
                self.changed_in_removed_worktrees.extend(changed.then_some(name));
            }
        }
    }

    /// Notes that git shows a file as changed. `by`: who changed it, if it was changed in this session.
    /// `new`: the first complete list of uncommitted files lacks it.
    fn note_change(&mut self, number: usize, name: String, change: Change, by: Option<ChangedBy>, new: bool) {
        let (read_at, known) = self.files.get(&name).map(|it| (it.message, it.op)).unzip();
        let op = match (known, change) {
            (Some(FileOp::Deleted | FileOp::Renamed), _) => return,
            (Some(_), Change::Deleted) => FileOp::Deleted,
            // Created by a command or a subagent.
            (Some(FileOp::Edited), Change::Added | Change::Untracked) if new => FileOp::CreatedThenEdited,
            (Some(op), Change::Modified | Change::Added | Change::Untracked) if op.changes() => return,
            (Some(_) | None, _) if by.is_none() => return,
            (None, Change::Deleted) => FileOp::Deleted,
            (
                Some(FileOp::Read | FileOp::ReadAfterEdit),
                Change::Modified | Change::Added | Change::Untracked,
            ) if by == Some(ChangedBy::Other) => FileOp::ReadThenChanged,
            (_, Change::Modified) => FileOp::Edited,
            (_, Change::Added | Change::Untracked) => FileOp::Created,
        };
        let stays = |it: FileOp| matches!(it, FileOp::ReadThenChanged | FileOp::CreatedThenEdited);
        // The message of the read stays: a kept tail that holds only the commit does not show the read.
        let number = read_at.filter(|_| stays(op)).unwrap_or(number);
        self.files.insert(name, FileState::new(number, op));
    }
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
    let tree = file_mentions::tree_of(&name, base);
    let here = |it: &&String| file_mentions::tree_of(it, base) == tree;
    // Git's path may begin above the working directory.
    let above = |known: &&String| {
        let prefix = name.strip_suffix(known.as_str()).unwrap_or_default().trim_end_matches('/');
        let ends = |base: &str| base.replace('\\', "/").trim_end_matches('/').ends_with(prefix);
        prefix.is_empty() || base.is_none_or(ends)
    };
    let mut same =
        files.keys().filter(|it| it.contains('/') && may_be_same_file(it, &name) && above(it)).filter(here);
    match (same.next(), same.next()) {
        (Some(one), None) => Some(one.clone()),
        _ => Some(name).filter(|_| cut.is_none()),
    }
}

/// Whether a tool says that it created a new file.
fn says_created(output: &Output) -> bool {
    let start = clip(output.text.as_str(), 300).0;
    ["File created", "Created file", "created new file"].iter().any(|it| start.contains(it))
}

fn has_overwritten(output: &Output) -> bool {
    let start = clip(output.text.as_str(), 300).0;
    ["has been updated", "overwrote", "overwritten", "Updated file"].iter().any(|it| start.contains(it))
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
