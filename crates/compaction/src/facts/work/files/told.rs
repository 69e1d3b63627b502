//! Which files are told at the end of the work, each under one path.

use std::collections::{HashMap, HashSet};

use super::{FileState, Files, mentions};
use crate::facts::voice::ToolTopic;
use crate::facts::work::RECENT_MESSAGES;
use crate::facts::work::paths::is_absolute;
use crate::facts::{Detail, Fact, FileOp};
use history::{History, Message};

/// Maximum number of directories of a path that are looked at.
const MAX_DEPTH: usize = 24;

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

impl Files<'_> {
    /// Merges spellings of a file: a path relative to a directory in which commands ran, and a path of an
    /// earlier summary that is the end of exactly one other path, become that other path.
    pub(in crate::facts::work) fn join_spellings(&mut self) {
        let whole: Vec<String> = self.by_path.keys().filter(|it| it.contains('/')).cloned().collect();
        let mut ends: HashMap<&str, Vec<&String>> = HashMap::new();
        for path in &whole {
            for (at, _) in path.match_indices('/').take(MAX_DEPTH) {
                ends.entry(&path[at + 1..]).or_default().push(path);
            }
        }
        let mut joined: Vec<(String, String)> = Vec::new();
        for (path, FileState { message, op, to: moved_to }) in &self.by_path {
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
            let Some(state) = self.by_path.remove(&path) else { continue };
            let Some(known) = self.by_path.get_mut(&to) else { continue };
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
    pub(in crate::facts::work) fn complete_summary_paths(&mut self) {
        /// Minimum number of paths that prove the directory.
        const ENOUGH: usize = 2;
        let relative = self.by_path.iter().filter(|it| it.0.contains('/') && !is_absolute(it.0));
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
            let Some(file) = self.by_path.remove(&path) else { continue };
            self.by_path.entry(to).or_insert(file);
        }
    }

    /// Tells the last operation on each file that is part of the work.
    pub(in crate::facts::work) fn tell(&mut self, history: &History, facts: &mut Vec<Fact>) {
        self.drop_idle(history);
        // A hash map has no stable order.
        let mut files: Vec<_> = std::mem::take(&mut self.by_path).into_iter().collect();
        files.sort_by(|a, b| (a.1.message, &a.0).cmp(&(b.1.message, &b.0)));
        facts.extend(files.into_iter().map(|(path, FileState { message, op, to })| {
            Fact::from_tools(ToolTopic::Files, message, path, Detail::File { op, to })
        }));
    }

    /// Drops files that were only mentioned if another path contains theirs, as its end or as a directory of it,
    /// or if they are no part of the work. Old ones from long listings become [`FileOp::Listed`].
    fn drop_idle(&mut self, history: &History) {
        let (base, end) = (self.base, history.messages().len());
        let mut told: HashSet<String> = HashSet::new();
        for (path, FileState { op, .. }) in &self.by_path {
            for (at, _) in path.match_indices('/').take(MAX_DEPTH) {
                told.extend((*op != FileOp::Mentioned).then(|| path[..at].to_owned()));
                // The end of an absolute path may also be another file in the working directory.
                told.extend((!path.starts_with('/')).then(|| path[at + 1..].to_owned()));
            }
            // A path with a space may also be found as only the part after the space.
            told.extend(path.match_indices(' ').take(MAX_DEPTH).map(|(at, _)| path[at + 1..].to_owned()));
        }
        let roots: HashSet<String> = self
            .by_path
            .iter()
            .filter(|it| it.1.op != FileOp::Mentioned)
            .map(|it| it.0.as_str())
            .chain(base)
            .filter_map(root)
            .map(str::to_owned)
            .collect();
        let names: HashSet<String> = self.by_path.keys().cloned().collect();
        let seen = self.by_path.iter();
        let seen = seen.filter(|it| it.1.op != FileOp::Mentioned || !self.in_passing.contains(it.0));
        let seen: HashSet<String> = seen.flat_map(|it| directories(it.0)).map(str::to_owned).collect();
        let is_printed = |path: &str| {
            let mut outputs = history.messages().iter().flat_map(Message::outputs);
            outputs.any(|it| it.text.as_str().contains(path))
        };
        let strange = |path: &str| {
            !path.starts_with(['/', '~']) && directories(path).next().is_some_and(|it| !seen.contains(it))
        };
        let foreign = |path: &str| {
            // Two names (`env/.env`), or a file of another project.
            self.in_passing.contains(path) && strange(path) && !is_printed(path)
                // An example: `turn-N.md`.
                || self.announced.contains(path) && mentions::has_variable(path)
                // A route of an application, or a module that is imported.
                || root(path).is_some_and(|it| !SYSTEM_ROOTS.contains(&it) && !roots.contains(it))
                // The way that a diff names it: `a/src/x.rs`.
                || ["a/", "b/"].iter().any(|it| path.strip_prefix(it).is_some_and(|it| names.contains(it)))
                || mentions::is_of_other_tree(path, base)
                || mentions::is_placeholder(path)
        };
        self.by_path.retain(|path, state| {
            state.op != FileOp::Mentioned
                || !foreign(path) && !told.contains(path) && !mentions::is_kept_by_tools(path)
        });
        // In a listing, a package's empty `__init__.py` says no more than the others in it.
        self.by_path.retain(|path, state| {
            state.op != FileOp::Mentioned || !(self.listed.contains(path) && path.ends_with("/__init__.py"))
        });
        for (path, state) in &mut self.by_path {
            let old = state.message + RECENT_MESSAGES < end;
            if state.op == FileOp::Mentioned && old && self.listed.contains(path) {
                state.op = FileOp::Listed;
            }
        }
    }
}

/// The first directory of an absolute path.
fn root(path: &str) -> Option<&str> {
    path.strip_prefix('/').and_then(|it| it.split('/').next())
}

/// The names of the directories in a path.
fn directories(path: &str) -> impl Iterator<Item = &str> {
    let (dirs, _) = path.rsplit_once('/').unwrap_or_default();
    dirs.split('/').filter(|it| !it.is_empty() && *it != "~").take(MAX_DEPTH)
}
