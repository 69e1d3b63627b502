//! All profiles on one session, side by side.

use std::time::Instant;

use crate::answers::{CompareAnswer, CompareRow};
use crate::engine::{Ask, Engine, Opened, To, compact, due, input::request, session_info};
use compaction::profile::Profile;
use history::error::Result;

/// What each profile would make of a session: the built-in ones and the user's own. Nothing is written.
///
/// # Errors
///
/// A profile of the user that is not valid.
pub fn compare(engine: &Engine, opened: &Opened, ask: &Ask) -> Result<CompareAnswer> {
    let profiles = engine.config.all_profiles()?;
    let mut rows: Vec<CompareRow> = Vec::new();
    let mut tokens_before = 0;
    for (number, profile) in profiles.iter().enumerate() {
        let mut ask = Ask { profile: profile.clone(), to: To::Plan, ..ask.clone() };
        ask.options.auto = false;
        let mut row = row(engine, opened, &ask)?;
        tokens_before = row.tokens_before;
        let alike = rows.iter().position(|it| it.repeats(&row));
        if let Some((other, before)) = alike.and_then(|at| Some((profiles.get(at)?, rows.get(at)?))) {
            row.same_as = Some(before.profile.clone());
            row.why_same =
                difference(&profiles[number], other, row.tokens_after.abs_diff(before.tokens_after));
        }
        rows.push(row);
    }
    Ok(CompareAnswer { session: session_info(opened), tokens_before, rows })
}

fn row(engine: &Engine, opened: &Opened, ask: &Ask) -> Result<CompareRow> {
    let mut when_due = ask.clone();
    when_due.options.auto = true;
    let profile = request::with_agent_settings(engine, &when_due).profile;
    let verdict = due(engine, opened, &Ask { profile, ..ask.clone() });
    let begun = Instant::now();
    let answer = compact::compact(engine, opened, ask)?.answer();
    let milliseconds = begun.elapsed().as_millis() as u64;
    let sum = |which: fn(&crate::answers::FactCount) -> usize| answer.facts.values().map(which).sum();
    Ok(CompareRow {
        profile: ask.profile.name.clone(),
        due: verdict.due,
        at: verdict.at,
        due_reason: verdict.reason,
        status: answer.status,
        native_status: answer.native_status,
        reason_code: answer.reason_code,
        reason: answer.reason,
        split: answer.split,
        pruned: answer.pruned.len(),
        tokens_before: answer.tokens_before,
        tokens_after: answer.tokens_after,
        messages_after: answer.messages_after,
        facts_kept: answer.facts_kept,
        kept: sum(|it| it.kept),
        recoverable: sum(|it| it.recoverable),
        lost: sum(|it| it.lost),
        facts: answer.facts,
        valid_for: answer.valid_for,
        milliseconds,
        same_as: None,
        why_same: String::new(),
    })
}

/// Sizes that differ by less than one in this many of the session's tokens count as equal.
const TOLD_APART: u64 = 200;

impl CompareRow {
    /// Whether another row shows practically the same result.
    fn repeats(&self, other: &Self) -> bool {
        let said = |it: &Self| (it.status, it.split, it.pruned, it.messages_after, it.kept, it.lost);
        let apart = self.tokens_after.abs_diff(other.tokens_after) * TOLD_APART > self.tokens_before;
        said(self) == said(other) && !apart
    }
}

/// A sentence that says in what two profiles with the same result differ.
fn difference(one: &Profile, other: &Profile, tokens: u64) -> String {
    let parts = [
        (one.passes != other.passes, "steps that had nothing to do on this session"),
        (one.trigger != other.trigger, "when they run"),
        (one.native != other.native, "what they call the result"),
        (one.remember != other.remember, "what they remember"),
    ];
    let mut in_what: Vec<&str> = parts.into_iter().filter(|it| it.0).map(|it| it.1).collect();
    if in_what.is_empty() {
        in_what.push("name alone");
    }
    let but = if tokens == 0 { String::new() } else { format!(", but for {tokens} tokens") };
    format!(
        "same result as {} on this session{but}; the profiles differ only in {}",
        other.name,
        in_what.join(", ")
    )
}
