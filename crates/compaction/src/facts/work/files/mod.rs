//! The files of the work, each under one path, and what was last done to it.

pub(super) mod mentions;
pub(super) mod regenerated;

use std::collections::{HashMap, HashSet};

use super::command::output_directory;
use super::paths::{MAX_PATH_BYTES, file_name, is_absolute, path, printed};
use super::{FileState, RECENT_MESSAGES, Work};
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
            || work.announced.contains(path) && mentions::has_variable(path)
            // A route of an application, or a module that is imported.
            || root(path).is_some_and(|it| !SYSTEM_ROOTS.contains(&it) && !roots.contains(it))
            // The way that a diff names it: `a/src/x.rs`.
            || ["a/", "b/"].iter().any(|it| path.strip_prefix(it).is_some_and(|it| names.contains(it)))
            || mentions::is_of_other_tree(path, base)
            || mentions::is_placeholder(path)
    };
    files.retain(|(path, state)| {
        state.op != FileOp::Mentioned
            || !foreign(path) && !told.contains(path) && !mentions::is_kept_by_tools(path)
    });
    // In a listing, a package's empty `__init__.py` says no more than the others in it.
    files.retain(|it| {
        it.1.op != FileOp::Mentioned || !(work.listed.contains(&it.0) && it.0.ends_with("/__init__.py"))
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
pub(super) fn is_unexpanded(dir: &str) -> bool {
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
        let found = mentions::in_output(output.text.as_str());
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

    /// Records the files that a list of finished work names, unless more is known of them.
    pub(super) fn note_listed_files(&mut self, number: usize, named: Vec<&str>) {
        for found in named {
            let name = path(found, None, self.base);
            if !self.files.contains_key(&name) {
                self.listed.insert(name.clone());
                self.note_file(number, name);
            }
        }
    }

    /// Records the files that a reply names: the model may be about to create them.
    pub(super) fn note_announced_files(&mut self, number: usize, reply: &str) {
        for found in mentions::in_reply(reply) {
            let name = path(found, None, self.base);
            self.listed.remove(&name);
            let new = !self.files.contains_key(&name);
            if mentions::is_marked(reply, found) {
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

    /// What an action deletes was made again: an earlier deletion of it no longer holds.
    pub(super) fn forget_deletion(&mut self, action: &Action) {
        if let Some(name) = self.named_by(action)
            && self.files.get(&name).is_some_and(|it| it.op == FileOp::Deleted)
        {
            self.files.remove(&name);
        }
    }

    pub(super) fn record_file_action(&mut self, number: usize, action: &Action, output: &Output) {
        // What git keeps is no file of the work: `rm -rf .git && git init`.
        let of_git = |it: &String| it == ".git" || it.ends_with("/.git");
        let Some(name) = self.named_by(action).filter(|it| !of_git(it)) else { return };
        let Some(op) = self.operation(&name, action.meaning, output) else {
            self.open = Some(name);
            return;
        };
        let to = action.to.as_deref().map(|it| path(it, action.dir.as_deref(), self.base));
        // `mv a/* b`
        if let (Some(from), Some(to)) =
            (name.strip_suffix('*'), to.as_deref().and_then(|it| it.strip_suffix('*')))
            && op == FileOp::Renamed
        {
            self.move_files(from, to, true);
            return;
        }
        let to = to.map(|it| self.moved_to(&name, it));
        if to.as_ref() == Some(&name) {
            return;
        }
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
        if let Some(to) = to.as_deref().filter(|_| op == FileOp::Renamed) {
            self.move_files(&format!("{name}/"), &format!("{to}/"), false);
        }
        if !matches!(op, FileOp::Deleted | FileOp::Renamed) {
            self.open = Some(name.clone());
        }
        if op.changes() {
            self.record_change(number, &name, op, to.clone());
        }
        if matches!(op, FileOp::Created | FileOp::Written | FileOp::CreatedThenEdited) {
            self.errors.resolve_missing_file(number, &name);
        }
        let name = if op == FileOp::Deleted { name.trim_end_matches('/').to_owned() } else { name };
        if op == FileOp::Deleted {
            // Deleting a directory deletes what is in it.
            let below = |path: &str| path.strip_prefix(&name).is_some_and(|it| it.starts_with('/'));
            self.files.retain(|path, _| !below(path));
            let before = self.files.get(&name).map(|it| it.op);
            if before.is_some_and(was_there_before) {
                self.deleted_originals.insert(name.clone());
            }
        }
        self.files.insert(name, FileState { message: number, op, to });
    }

    /// The path to which `from` is moved: in `to`, if that is a known directory.
    fn moved_to(&self, from: &str, to: String) -> String {
        let below = |it: &String| it.strip_prefix(&to).is_some_and(|it| it.starts_with('/'));
        if to != from && self.files.keys().any(below) { format!("{to}/{}", file_name(from)) } else { to }
    }

    /// What is in a directory was moved: what is known of its files is known under the new path. `from` and
    /// `to` end with a slash, or are empty. `visible`: only files whose names a glob matches.
    fn move_files(&mut self, from: &str, to: &str, visible: bool) {
        let moves = |it: &(&String, &FileState)| {
            let Some(rest) = it.0.strip_prefix(from) else { return false };
            let apart = rest.starts_with(['/', '~']) || visible && rest.starts_with('.');
            let there = to.starts_with(from) && it.0.starts_with(to);
            !apart && !there && !matches!(it.1.op, FileOp::Deleted | FileOp::Renamed)
        };
        let within: Vec<String> = self.files.iter().filter(moves).map(|it| it.0.clone()).collect();
        for name in within {
            let Some(state) = self.files.remove(&name) else { continue };
            let moved = format!("{to}{}", &name[from.len()..]);
            for named in [&mut self.listed, &mut self.announced, &mut self.in_passing] {
                if named.remove(&name) {
                    named.insert(moved.clone());
                }
            }
            self.files.insert(moved, state);
        }
        let (from, to) = (from.trim_end_matches('/'), to.trim_end_matches('/'));
        self.moved.retain(|(gone, _)| gone != to);
        self.moved.push((from.to_owned(), to.to_owned()));
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
                Some(
                    FileOp::Renamed
                    | FileOp::Deleted
                    | FileOp::Committed
                    | FileOp::ReadThenChanged
                    | FileOp::Listed,
                ) => None,
            },
            Meaning::Edit if made => Some(FileOp::CreatedThenEdited),
            Meaning::Edit => Some(FileOp::Edited),
            Meaning::Create if made => Some(FileOp::CreatedThenEdited),
            Meaning::Create => {
                let moved = || self.moved.iter().any(|(_, to)| to == name);
                let there = match before {
                    None => moved(),
                    Some(FileOp::Deleted) => self.deleted_originals.contains(name),
                    // A file that only a reply named is not there yet.
                    Some(FileOp::Mentioned) => !self.announced.contains(name),
                    Some(FileOp::Renamed) => false,
                    Some(
                        FileOp::Created
                        | FileOp::CreatedThenEdited
                        | FileOp::Written
                        | FileOp::Edited
                        | FileOp::Committed
                        | FileOp::Restored
                        | FileOp::ReadAfterEdit
                        | FileOp::Read
                        | FileOp::ReadThenChanged
                        | FileOp::Listed,
                    ) => true,
                };
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
        self.errors.resolve_edits(number, name);
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
        for (path, FileState { message, op, to: moved_to }) in &self.files {
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
            // A file moved from the session's directory to where a command ran has two names.
            let to = to.filter(|it| moved_to.as_ref() != Some(**it));
            joined.extend(to.map(|it| (path.clone(), (*it).clone())));
        }
        for (path, to) in joined {
            let Some(state) = self.files.remove(&path) else { continue };
            let Some(known) = self.files.get_mut(&to) else { continue };
            let changes = state.op.changes();
            let stays = !matches!(state.op, FileOp::Deleted | FileOp::Renamed);
            if !stays && state.message < known.message {
                continue;
            }
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
}

/// Whether a file with this last operation was there before the session.
fn was_there_before(op: FileOp) -> bool {
    match op {
        FileOp::Written
        | FileOp::Edited
        | FileOp::Committed
        | FileOp::Restored
        | FileOp::ReadAfterEdit
        | FileOp::Read
        | FileOp::ReadThenChanged => true,
        FileOp::Created
        | FileOp::CreatedThenEdited
        | FileOp::Renamed
        | FileOp::Deleted
        | FileOp::Mentioned
        | FileOp::Listed => false,
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
