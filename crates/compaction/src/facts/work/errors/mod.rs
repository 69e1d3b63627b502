//! The errors of the session, and what settles them: a success, a retry, an excuse of the model.

pub(super) mod equal;
pub(in crate::facts) mod excuses;
pub(in crate::facts) mod resolution;
mod retries;

use std::collections::{HashMap, HashSet};

use crate::facts::text::without_durations;
use crate::facts::voice::ToolTopic;
use crate::facts::work::command::{self, Operation, ParsedCommand};
use crate::facts::work::outcome;
use crate::facts::work::paths::{file_name, is_elsewhere};
use crate::facts::{Detail, Fact};

/// Prefixes of the client's own errors, which the next call corrects (Claude Code 2.1, OpenCode 1.18).
const CLIENT_ERRORS: [&str; 4] = [
    "File has not been read yet",
    "File has been modified since read",
    "You must read the file",
    "File has been unexpectedly modified",
];

/// Number of newest errors that are looked at.
const RECENT: usize = 32;

#[derive(Default)]
pub(super) struct Errors<'a> {
    base: Option<&'a str>,
    pub(super) facts: Vec<Fact>,
    /// Unresolved ones: indexes in `facts`, by key of the command or tool call, then by error text.
    open: HashMap<String, HashMap<String, Vec<usize>>>,
    /// Indexes in `facts` of merge conflicts that were not resolved yet.
    conflicts: Vec<usize>,
    /// By operation name: the indexes in `facts` of its failures, and the operation with its arguments.
    by_operation: HashMap<String, Vec<(usize, Operation)>>,
    /// By index in `facts`: names of the operations in its command that have not succeeded since.
    pending_operations: HashMap<usize, HashSet<String>>,
    /// Failed commands that may be tried again.
    pub(super) retries: Vec<retries::Retry>,
    /// By name of the failed operation: errors that the success of a similar command may have resolved.
    maybe_resolved: HashMap<String, Vec<(usize, Operation)>>,
    /// Index in `facts` of the failure after which the model says that it takes another approach.
    pub(super) abandoned: Option<usize>,
    /// The last successful run of all tests: message, operation name and directory.
    last_full_test_pass: Option<(usize, String, Option<String>)>,
}

fn unresolved(error: &mut Fact) -> Option<(&str, Option<&str>, &mut Option<usize>)> {
    match &mut error.detail {
        Detail::Error { of, resolved: resolved @ None, .. } => Some((&error.text, of.as_deref(), resolved)),
        _ => None,
    }
}

impl<'a> Errors<'a> {
    pub(super) fn new(base: Option<&'a str>) -> Self {
        Self { base, ..Self::default() }
    }

    /// Takes over an open error of an earlier summary. Returns whether it is one.
    pub(super) fn resume(&mut self, fact: &Fact) -> bool {
        let Detail::Error { of: Some(of), resolved: None, similar, .. } = &fact.detail else { return false };
        let known = self.facts.len();
        let same = self.open.entry(command::attempt_key(of)).or_default();
        same.entry(without_durations(&fact.text).into_owned()).or_default().push(known);
        self.push(fact.clone());
        if similar.is_none() {
            self.track_operations(known, &ParsedCommand::of(of));
        }
        true
    }

    fn push(&mut self, error: Fact) {
        if outcome::is_conflict(&error.text) {
            self.conflicts.push(self.facts.len());
        }
        self.facts.push(error);
    }

    /// Resolves the conflicts at which a merge or rebase stopped, which a commit concluded.
    pub(super) fn resolve_conflicts(&mut self, number: usize) {
        for conflict in std::mem::take(&mut self.conflicts) {
            if let Detail::Error { resolved: resolved @ None, .. } = &mut self.facts[conflict].detail {
                *resolved = Some(number);
            }
        }
    }

    /// Records a failure with its error text. Returns its index in `facts`; `None` if the next call corrects it.
    pub(super) fn record_failure(&mut self, number: usize, of: &str, text: String) -> Option<usize> {
        if text.is_empty() || CLIENT_ERRORS.iter().any(|it| text.starts_with(it)) {
            return None;
        }
        let same = self.open.entry(command::attempt_key(of)).or_default();
        let same = same.entry(without_durations(&text).into_owned()).or_default();
        if let Some(known) = same.first() {
            let error = &mut self.facts[*known];
            error.message = number;
            if let Detail::Error { resolved, similar, .. } = &mut error.detail {
                (*resolved, *similar) = (None, None);
            }
            return Some(*known);
        }
        same.push(self.facts.len());
        let detail = Detail::Error { of: Some(of.into()), resolved: None, similar: None, excused: None };
        self.push(Fact::from_tools(ToolTopic::Errors, number, text, detail));
        Some(self.facts.len() - 1)
    }

    /// Records a success, which resolves the failures of the same command or call.
    pub(super) fn record_success(&mut self, number: usize, of: &str) {
        let here = command::directory(of);
        let Some(same) = self.open.get_mut(&command::attempt_key(of)) else { return };
        let file = of.rsplit(' ').next().map(file_name).unwrap_or_default();
        for (text, known) in same {
            // An edit that did not fit one file is not mended by an edit of another one.
            if resolution::is_misfit(text) && text.contains('/') && !text.contains(file) {
                continue;
            }
            let moves = resolution::may_be_elsewhere(text);
            known.retain(|it| {
                let Detail::Error { of, resolved, .. } = &mut self.facts[*it].detail else { return false };
                let there = of.as_deref().and_then(command::directory);
                let elsewhere = !moves && is_elsewhere(here, there, self.base);
                *resolved = Some(number).filter(|_| !elsewhere);
                elsewhere
            });
        }
    }

    fn recent(&mut self) -> impl Iterator<Item = &mut Fact> {
        self.facts.iter_mut().rev().take(RECENT)
    }
}
