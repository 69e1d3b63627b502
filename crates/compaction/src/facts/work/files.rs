//! The files of the work, each under one path, and what was last done to it.

use std::collections::{HashMap, HashSet};

use super::command::ParsedCommand;
use super::git::COMMITTED;
use super::git::listing::{Change, Listed, Listing, is_same, of_commit, renamed};
use super::paths::{MAX_PATH_BYTES, file_name, is_absolute, path, printed};
use super::runs::looked_in;
use super::{RECENT_MESSAGES, Work, file_mentions};
use crate::facts::text::clip;
use crate::facts::voice::ToolTopic;
use crate::facts::{Detail, Fact, FileOp};
use history::tools::{Action, Meaning};
use history::{History, Message, Output};

/// Directories at the root of a system, below which files are.
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
enum By {
    Session,
    /// Another agent that it gave work, or nobody knows.
    Other,
}

type File = (String, (usize, FileOp, Option<String>));

/// Drops files that were only mentioned if another path tells them, as the end of a longer one or a directory of it, or if
/// they are no part of the work.
pub(super) fn drop_idle(work: &Work, history: &History, files: &mut Vec<File>) {
    let (base, end) = (work.base, history.messages().len());
    let mut told: HashSet<String> = HashSet::new();
    for (path, (_, op, _)) in files.iter() {
        for (at, _) in path.match_indices('/').take(MAX_DEPTH) {
            told.extend((*op != FileOp::Mentioned).then(|| path[..at].to_owned()));
            // Elsewhere there may be another file of the same name.
            told.extend((!path.starts_with('/')).then(|| path[at + 1..].to_owned()));
        }
        // Where a path is told by what stands behind a space in it.
        told.extend(path.match_indices(' ').take(MAX_DEPTH).map(|(at, _)| path[at + 1..].to_owned()));
    }
    let roots: HashSet<String> = files
        .iter()
        .filter(|it| it.1.1 != FileOp::Mentioned)
        .map(|it| it.0.as_str())
        .chain(base)
        .filter_map(root)
        .map(str::to_owned)
        .collect();
    let names: HashSet<String> = files.iter().map(|it| it.0.clone()).collect();
    let in_passing = |path: &str, op: FileOp| op == FileOp::Mentioned && work.in_passing.contains(path);
    let seen = files.iter().filter(|(path, (_, op, _))| !in_passing(path, *op));
    let seen: HashSet<String> = seen.flat_map(|it| directories(&it.0)).map(str::to_owned).collect();
    let is_printed = |path: &str| {
        let mut outputs = history.messages().iter().flat_map(Message::outputs);
        outputs.any(|it| it.text.as_str().contains(path))
    };
    let strange = |path: &str| {
        !path.starts_with(['/', '~']) && directories(path).next().is_some_and(|it| !seen.contains(it))
    };
    let foreign = |path: &str| {
        // Two names, or a file of another project.
        work.in_passing.contains(path) && strange(path) && !is_printed(path)
            // An example.
            || work.announced.contains(path) && file_mentions::has_variable(path)
            // A route of an application, or the import of a module.
            || root(path).is_some_and(|it| !SYSTEM_ROOTS.contains(&it) && !roots.contains(it))
            // How a diff names it.
            || ["a/", "b/"].iter().any(|it| path.strip_prefix(it).is_some_and(|it| names.contains(it)))
            || file_mentions::is_of_other_tree(path, base)
            || file_mentions::is_placeholder(path)
    };
    files.retain(|(path, (_, op, _))| {
        *op != FileOp::Mentioned
            || !foreign(path) && !told.contains(path) && !file_mentions::is_kept_by_tools(path)
    });
    for (path, (number, op, _)) in files {
        if *op == FileOp::Mentioned && *number + RECENT_MESSAGES < end && work.listed.contains(path) {
            *op = FileOp::Listed;
        }
    }
}

/// Directories of a path that are looked at.
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
    /// Records the files in the output of a search or listing, unless an operation on them is known. Where it is not
    /// certain what they are below, they are written as printed, but for those that are known.
    pub(super) fn note_found_files(&mut self, number: usize, actions: &[Action], output: &Output) {
        /// Maximum files that are an answer rather than a listing.
        const ANSWER: usize = 5;
        let at = looked_in(actions, self.base);
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

    /// Records the files that a prompt or another model's report names.
    pub(super) fn note_named_files(&mut self, number: usize, named: Vec<&str>) {
        for found in named {
            let name = path(found, None, self.base);
            self.listed.remove(&name);
            self.announced.remove(&name);
            self.in_passing.remove(&name);
            self.note_file(number, name);
        }
    }

    /// Records the files that a reply names, which the model may be about to make.
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
        let known = self.files.entry(name).or_insert((number, FileOp::Mentioned, None));
        if known.1 == FileOp::Mentioned {
            known.0 = number;
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
            && let Some((_, before, _)) = self.files.get(&name)
            && !matches!(
                before,
                FileOp::Read | FileOp::Mentioned | FileOp::Restored | FileOp::Deleted | FileOp::Renamed
            )
        {
            // Earlier changes still apply to the file under its new name.
            self.files.insert(to, (number, *before, None));
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
            // A directory takes what is in it with it.
            let below = |path: &str| path.strip_prefix(&name).is_some_and(|it| it.starts_with('/'));
            self.files.retain(|path, _| !below(path));
        }
        self.files.insert(name, (number, op, to));
    }

    /// The file of an action; SWE-agent's edits are of the one that is open.
    fn named_by(&mut self, action: &Action) -> Option<String> {
        let named = action.path.as_deref().map(|it| path(it, action.dir.as_deref(), self.base));
        let name = named.or_else(|| self.open.clone().filter(|_| action.meaning == Meaning::Edit))?;
        let whole = action.path.as_deref().is_some_and(is_absolute);
        let unexpanded = action.dir.as_deref().is_some_and(is_unexpanded) && !whole;
        if name.is_empty() || name.len() > MAX_PATH_BYTES || unexpanded {
            return None;
        }
        if whole {
            self.whole_paths.insert(name.clone());
        }
        Some(name)
    }

    /// What the last operation on a file is after an action that went well; `None` if that changes nothing of it.
    fn operation(&self, name: &str, meaning: Meaning, output: &Output) -> Option<FileOp> {
        let known = self.files.get(name);
        let before = known.map(|it| it.1);
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
                ) => known.filter(|it| self.summary_messages.contains(&it.0)).map(|_| FileOp::ReadAfterEdit),
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

    /// A path that was given from a directory that commands went to, and one of an earlier summary that is the end of one
    /// other path, are that other path.
    pub(super) fn join_spellings(&mut self) {
        let whole: Vec<String> = self.files.keys().filter(|it| it.contains('/')).cloned().collect();
        let mut ends: HashMap<&str, Vec<&String>> = HashMap::new();
        for path in &whole {
            for (at, _) in path.match_indices('/').take(MAX_DEPTH) {
                ends.entry(&path[at + 1..]).or_default().push(path);
            }
        }
        let mut joined: Vec<(String, String)> = Vec::new();
        for (path, (number, op, _)) in &self.files {
            let longer = ends.get(path.as_str()).filter(|it| !it.is_empty());
            let Some(longer) =
                longer.filter(|_| *op != FileOp::Mentioned && !self.whole_paths.contains(path))
            else {
                continue;
            };
            let below = |it: &&&String| {
                let dir = it.strip_suffix(path.as_str()).unwrap_or_default().trim_end_matches('/');
                self.went_to.contains(dir)
            };
            let mut there = longer.iter().filter(below);
            let to = match (there.next(), there.next(), &longer[..]) {
                (Some(one), None, _) => Some(one),
                (None, _, [one]) if self.summary_messages.contains(number) && path.contains('/') => Some(one),
                _ => None,
            };
            joined.extend(to.map(|it| (path.clone(), (*it).clone())));
        }
        for (path, to) in joined {
            let Some((number, op, other)) = self.files.remove(&path) else { continue };
            let Some(known) = self.files.get_mut(&to) else { continue };
            let stays = !matches!(op, FileOp::Deleted | FileOp::Renamed);
            if op.changes() && stays && known.1 == FileOp::Read && self.summary_messages.contains(&number) {
                known.1 = FileOp::ReadAfterEdit;
            } else if op.changes() && (!known.1.changes() || number > known.0) {
                *known = (number, op, other);
            } else if !known.1.changes() {
                known.0 = known.0.max(number);
            }
        }
    }

    /// Completes paths of an earlier summary that are relative to a directory below the working directory: if other
    /// paths of the summary in the same folder are known there, and the working directory has no such folder.
    pub(super) fn place_told_paths(&mut self) {
        /// Paths that are enough to tell the directory.
        const ENOUGH: usize = 2;
        let relative = self.files.iter().filter(|it| it.0.contains('/') && !is_absolute(it.0));
        let (told, known): (Vec<_>, Vec<_>) =
            relative.partition(|it| self.summary_messages.contains(&it.1.0));
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

    /// Reads which files git says are changed, committed or gone.
    pub(super) fn read_changes(&mut self, number: usize, parsed: &ParsedCommand, output: &str) {
        /// A longer list is not of this work alone.
        const MOST: usize = 120;
        let dir = parsed.git_directory().map(|it| path(&it, None, self.base));
        let dir = dir.as_deref();
        let tree = dir.and_then(|it| file_mentions::tree_of(it, self.base));
        if dir.is_some_and(is_unexpanded) || tree.is_none() && self.is_of_other_tree(parsed) {
            return;
        }
        // Where git ran below the root, a path that nothing else named may begin at either.
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
        // A list of another tree says nothing about this one.
        let here = tree.map(str::to_owned);
        let listed_before = self.listed_in.contains(&here);
        let since = |it: &String| listed_before && !has_listed(self.changed_before.keys(), it);
        let mut changes = Vec::new();
        for (of_commit, it) in
            of_commit.iter().map(|it| (true, it)).chain(listed.iter().map(|it| (false, it)))
        {
            let Some(name) = resolve(it) else { continue };
            // It may have been changed before the session, unless an earlier list does not have it.
            let new = self.uncommitted_at_first.as_ref().is_some_and(|it| !has_listed(it.iter(), &name));
            let since = since(&name);
            let stays = it.change == Change::Deleted && self.untracked.contains(&name);
            let by = if self.is_carried(&name) {
                Some(By::Session)
            } else {
                (self.delegated && (of_commit || since)).then_some(By::Other)
            };
            changes.extend((!stays).then_some((name, it.change, by, new)));
        }
        let named = |path| Listed { path, change: Change::Modified, from_root: false };
        let is_file = |it: &String| {
            file_name(it).split_once('.').is_some_and(|it| !it.0.is_empty() && !it.1.is_empty())
        };
        let committed = committed.into_iter().filter_map(|it| resolve(&named(it)));
        let committed = committed.filter(|it| is_file(it) && (at_root || files.contains_key(it)));
        // One that was changed before it was read may be as it was then.
        let as_read = |it: &String| match self.files.get(it) {
            Some((at, FileOp::Read, _)) => self.changed_before.get(it).is_some_and(|listed| listed < at),
            Some(_) | None => false,
        };
        let by = |it: &String| (!as_read(it)).then_some(By::Other);
        changes.extend(committed.map(|it| (it.clone(), Change::Modified, by(&it), false)));
        let names = || changes.iter().map(|it| it.0.clone());
        if !self.delegated || !listed_before {
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
        // What stood as deleted before it was staged.
        for (from, to) in renames {
            if let Some(file) = self.files.get_mut(&from).filter(|it| it.1 == FileOp::Deleted) {
                *file = (number, FileOp::Renamed, Some(to));
            }
        }
    }

    /// Whether git ran in another tree or repository than the one that is worked in.
    pub(super) fn is_of_other_tree(&self, parsed: &ParsedCommand) -> bool {
        let Some(dir) = parsed.git_directory().map(|it| path(&it, None, self.base)) else { return false };
        let above = self.base.is_some_and(|it| path(it, None, self.base).starts_with(&dir));
        is_unexpanded(&dir) || is_absolute(&dir) && !above || file_mentions::is_of_other_tree(&dir, self.base)
    }

    /// Whether a file of the same name in another tree of the repository was changed here.
    fn is_carried(&self, name: &str) -> bool {
        let is = |path: &str| path.strip_suffix(name).is_some_and(|it| it.ends_with('/'));
        self.carried.iter().any(|it| is(it))
            || self.files.iter().any(|(path, (_, op, _))| {
                op.changes() && is(path) && file_mentions::is_of_other_tree(path, self.base)
            })
    }

    /// Drops the files of trees that git removed.
    pub(super) fn drop_removed_trees(&mut self, parsed: &ParsedCommand) {
        let dir = parsed.git_directory();
        for tree in parsed.removed_trees() {
            let tree = path(tree, dir.as_deref(), self.base) + "/";
            self.uncommitted.delete(tree.trim_end_matches('/'));
            let gone: Vec<String> = self.files.keys().filter(|it| it.starts_with(&tree)).cloned().collect();
            for name in gone {
                let changed = self.files.remove(&name).is_some_and(|it| it.1.changes());
                self.carried.extend(changed.then_some(name));
            }
        }
    }

    /// Notes that git calls a file changed. `by`: who of this session's changed it, if it was changed in it. `new`:
    /// whether the first list of all that was uncommitted does not have it.
    fn note_change(&mut self, number: usize, name: String, change: Change, by: Option<By>, new: bool) {
        let (read_at, known) = self.files.get(&name).map(|it| (it.0, it.1)).unzip();
        let op = match (known, change) {
            (Some(FileOp::Deleted | FileOp::Renamed), _) => return,
            (Some(_), Change::Deleted) => FileOp::Deleted,
            // Made by a command or another agent.
            (Some(FileOp::Edited), Change::Added | Change::Untracked) if new => FileOp::CreatedThenEdited,
            (Some(op), Change::Modified | Change::Added | Change::Untracked) if op.changes() => return,
            (Some(_) | None, _) if by.is_none() => return,
            (None, Change::Deleted) => FileOp::Deleted,
            (
                Some(FileOp::Read | FileOp::ReadAfterEdit),
                Change::Modified | Change::Added | Change::Untracked,
            ) if by == Some(By::Other) => FileOp::ReadThenChanged,
            (_, Change::Modified) => FileOp::Edited,
            (_, Change::Added | Change::Untracked) => FileOp::Created,
        };
        let stays = |it: FileOp| matches!(it, FileOp::ReadThenChanged | FileOp::CreatedThenEdited);
        // Where it was read stays: a kept end that holds the commit alone does not tell that.
        let number = read_at.filter(|_| stays(op)).unwrap_or(number);
        self.files.insert(name, (number, op, None));
    }
}

/// Whether a list of git has a file, or the new directory that it is in.
fn has_listed<'l>(mut list: impl Iterator<Item = &'l String>, name: &str) -> bool {
    list.any(|it| it == name || it.ends_with('/') && name.starts_with(it.as_str()))
}

/// A path that git printed, as the file is known; none if it is cut and could be of several.
fn known_path(
    files: &HashMap<String, (usize, FileOp, Option<String>)>,
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
    // Every tree has files of the same names.
    let tree = file_mentions::tree_of(&name, base);
    let here = |it: &&String| file_mentions::tree_of(it, base) == tree;
    // Git may name what is above the working directory.
    let above = |known: &&String| {
        let prefix = name.strip_suffix(known.as_str()).unwrap_or_default().trim_end_matches('/');
        let ends = |base: &str| base.replace('\\', "/").trim_end_matches('/').ends_with(prefix);
        prefix.is_empty() || base.is_none_or(ends)
    };
    let mut same = files.keys().filter(|it| it.contains('/') && is_same(it, &name) && above(it)).filter(here);
    match (same.next(), same.next()) {
        (Some(one), None) => Some(one.clone()),
        _ => Some(name).filter(|_| cut.is_none()),
    }
}

/// Whether a tool says that there was no such file before.
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
        let files = ["go/.tool/", "go/src/a.go"].map(|it| (it.to_owned(), (1, FileOp::Mentioned, None)));
        let files = HashMap::from(files);
        let known = |path: &str| {
            let listed = Listed { path: path.to_owned(), change: Change::Untracked, from_root: false };
            known_path(&files, &listed, None, Some("/repo"))
        };
        assert_eq!(known(".tool/").as_deref(), Some(".tool/"));
        assert_eq!(known("src/a.go").as_deref(), Some("go/src/a.go"));
    }
}
