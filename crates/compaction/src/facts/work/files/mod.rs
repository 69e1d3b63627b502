//! The files of the work, each under one path, and what was last done to it.

pub(super) mod mentions;
pub(super) mod regenerated;
mod told;

use std::collections::{HashMap, HashSet};

use super::command::output_directory;
use super::paths::{MAX_PATH_BYTES, file_name, is_absolute, path, printed};
use crate::facts::text::clip;
use crate::facts::voice::ToolTopic;
use crate::facts::{Detail, Fact, FileOp};
use history::Output;
use history::tools::{Action, Meaning};

/// Whether a directory is named by a shell variable, whose value is unknown.
pub(super) fn is_unexpanded(dir: &str) -> bool {
    dir.contains('$')
}

/// The last operation on a file.
pub(super) struct FileState {
    pub(super) message: usize,
    pub(super) op: FileOp,
    /// The new path, if it was renamed.
    pub(super) to: Option<String>,
}

impl FileState {
    pub(super) fn new(message: usize, op: FileOp) -> Self {
        Self { message, op, to: None }
    }
}

#[derive(Default)]
pub(super) struct Files<'a> {
    pub(super) base: Option<&'a str>,
    /// By path.
    pub(super) by_path: HashMap<String, FileState>,
    /// Files and directories that were moved: from, to.
    pub(super) moved: Vec<(String, String)>,
    /// Deleted files that were there before the session.
    deleted_originals: HashSet<String>,
    /// Files that a call named by an absolute path.
    absolute_paths: HashSet<String>,
    /// Directories in which commands ran.
    pub(super) command_dirs: HashSet<String>,
    /// Files that only a reply of the model names: they may not exist.
    announced: HashSet<String>,
    /// Those of `announced` named without backticks, link or line number: "env/.env" may be two names.
    in_passing: HashSet<String>,
    /// Files seen only in long listings.
    listed: HashSet<String>,
    /// Message numbers of earlier summaries.
    summary_messages: HashSet<usize>,
    /// The file that was read or created last, which SWE-agent's `edit` refers to.
    open: Option<String>,
    /// Changes to files, in order.
    pub(super) changes: Vec<Fact>,
}

impl<'a> Files<'a> {
    pub(super) fn new(base: Option<&'a str>) -> Self {
        Self { base, ..Self::default() }
    }

    /// Takes over what an earlier summary says of a file. Returns whether it is about one.
    pub(super) fn resume(&mut self, fact: &Fact) -> bool {
        let Detail::File { op, to } = &fact.detail else { return false };
        self.summary_messages.insert(fact.message);
        let state = FileState { message: fact.message, op: *op, to: to.clone() };
        self.by_path.insert(fact.text.to_string(), state);
        true
    }

    pub(super) fn last_op(&self, path: &str) -> Option<FileOp> {
        self.by_path.get(path).map(|it| it.op)
    }

    /// Records the files in the output of a search or listing, unless an operation on them is known. If the
    /// directory that they are relative to is uncertain, unknown files are recorded as printed.
    pub(super) fn note_found(&mut self, number: usize, actions: &[Action], output: &Output) {
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
            let below = below.filter(|it| certain || self.by_path.contains_key(it));
            let name = below.or_else(|| printed(found, None, self.base).filter(|_| !certain));
            let Some(name) = name else { continue };
            if long && !self.by_path.contains_key(&name) {
                self.listed.insert(name.clone());
            } else if !long {
                self.listed.remove(&name);
            }
            self.announced.remove(&name);
            self.in_passing.remove(&name);
            self.note(number, name);
        }
    }

    /// Records the files that a prompt or a subagent's report names.
    pub(super) fn note_named(&mut self, number: usize, named: Vec<&str>) {
        for found in named {
            let name = path(found, None, self.base);
            self.listed.remove(&name);
            self.announced.remove(&name);
            self.in_passing.remove(&name);
            self.note(number, name);
        }
    }

    /// Records the files that a list of finished work names, unless more is known of them.
    pub(super) fn note_listed(&mut self, number: usize, named: Vec<&str>) {
        for found in named {
            let name = path(found, None, self.base);
            if !self.by_path.contains_key(&name) {
                self.listed.insert(name.clone());
                self.note(number, name);
            }
        }
    }

    /// Records the files that a reply names: the model may be about to create them.
    pub(super) fn note_announced(&mut self, number: usize, reply: &str) {
        for found in mentions::in_reply(reply) {
            let name = path(found, None, self.base);
            self.listed.remove(&name);
            let new = !self.by_path.contains_key(&name);
            if mentions::is_marked(reply, found) {
                self.in_passing.remove(&name);
            } else if new {
                self.in_passing.insert(name.clone());
            }
            if new {
                self.announced.insert(name.clone());
            }
            self.note(number, name);
        }
    }

    pub(super) fn note(&mut self, number: usize, name: String) {
        let known = self.by_path.entry(name).or_insert(FileState::new(number, FileOp::Mentioned));
        if known.op == FileOp::Mentioned {
            known.message = number;
        }
    }

    /// What an action deletes was made again: an earlier deletion of it no longer holds.
    pub(super) fn forget_deletion(&mut self, action: &Action) {
        if let Some(name) = self.named_by(action)
            && self.last_op(&name) == Some(FileOp::Deleted)
        {
            self.by_path.remove(&name);
        }
    }

    /// Records a successful action. Returns the change, if it is one.
    pub(super) fn record(&mut self, number: usize, action: &Action, output: &Output) -> Option<&Fact> {
        // What git keeps is no file of the work: `rm -rf .git && git init`.
        let of_git = |it: &String| it == ".git" || it.ends_with("/.git");
        let name = self.named_by(action).filter(|it| !of_git(it))?;
        let Some(op) = self.operation(&name, action.meaning, output) else {
            self.open = Some(name);
            return None;
        };
        let to = action.to.as_deref().map(|it| path(it, action.dir.as_deref(), self.base));
        // `mv a/* b`
        if let (Some(from), Some(to)) =
            (name.strip_suffix('*'), to.as_deref().and_then(|it| it.strip_suffix('*')))
            && op == FileOp::Renamed
        {
            self.move_files(from, to, true);
            return None;
        }
        let to = to.map(|it| self.moved_to(&name, it));
        if to.as_ref() == Some(&name) {
            return None;
        }
        if let Some(to) = to.clone()
            && let Some(before) = self.last_op(&name)
            && !matches!(
                before,
                FileOp::Read | FileOp::Mentioned | FileOp::Restored | FileOp::Deleted | FileOp::Renamed
            )
        {
            // Earlier changes still apply to the file under its new name.
            self.by_path.insert(to, FileState::new(number, before));
        }
        if let Some(to) = to.as_deref().filter(|_| op == FileOp::Renamed) {
            self.move_files(&format!("{name}/"), &format!("{to}/"), false);
        }
        if !matches!(op, FileOp::Deleted | FileOp::Renamed) {
            self.open = Some(name.clone());
        }
        let path = if op == FileOp::Deleted { name.trim_end_matches('/') } else { &name };
        if op == FileOp::Deleted {
            // Deleting a directory deletes what is in it.
            let below = |it: &str| it.strip_prefix(path).is_some_and(|it| it.starts_with('/'));
            self.by_path.retain(|it, _| !below(it));
            if self.last_op(path).is_some_and(was_there_before) {
                self.deleted_originals.insert(path.to_owned());
            }
        }
        self.by_path.insert(path.to_owned(), FileState { message: number, op, to: to.clone() });
        if !op.changes() {
            return None;
        }
        self.changes.push(Fact::from_tools(ToolTopic::Files, number, name, Detail::File { op, to }));
        self.changes.last()
    }

    /// The path to which `from` is moved: in `to`, if that is a known directory.
    fn moved_to(&self, from: &str, to: String) -> String {
        let below = |it: &String| it.strip_prefix(&to).is_some_and(|it| it.starts_with('/'));
        if to != from && self.by_path.keys().any(below) { format!("{to}/{}", file_name(from)) } else { to }
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
        let within: Vec<String> = self.by_path.iter().filter(moves).map(|it| it.0.clone()).collect();
        for name in within {
            let Some(state) = self.by_path.remove(&name) else { continue };
            let moved = format!("{to}{}", &name[from.len()..]);
            for named in [&mut self.listed, &mut self.announced, &mut self.in_passing] {
                if named.remove(&name) {
                    named.insert(moved.clone());
                }
            }
            self.by_path.insert(moved, state);
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
        let known = self.by_path.get(name);
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
