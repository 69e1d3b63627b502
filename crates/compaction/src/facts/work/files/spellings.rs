//! Paths that name the same file.

use std::collections::{HashMap, HashSet};

use super::{FileState, Files, MAX_DEPTH};
use crate::facts::FileOp;
use crate::facts::work::paths::is_absolute;

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
}
