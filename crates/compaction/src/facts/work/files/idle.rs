//! Files that were only mentioned and are no part of the work.

use std::collections::HashSet;

use super::{FileState, Files, MAX_DEPTH, mentions};
use crate::facts::FileOp;
use crate::facts::work::RECENT_MESSAGES;
use history::{History, Message};

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
    /// Drops files that were only mentioned if another path contains theirs, as its end or as a directory of it,
    /// or if they are no part of the work. Old ones from long listings become [`FileOp::Listed`].
    pub(super) fn drop_idle(&mut self, history: &History) {
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
        let in_passing = |path: &str, op: FileOp| op == FileOp::Mentioned && self.in_passing.contains(path);
        let seen = self.by_path.iter().filter(|(path, state)| !in_passing(path, state.op));
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
