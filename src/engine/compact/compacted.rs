//! What a compaction did, and the document that CLI and MCP show of it.

use std::collections::BTreeMap;

use crate::answers::{CompactAnswer, CostInfo, FactCount, LostInfo, Next, NextCost, Status, UsageInfo};
use crate::engine::compact::attempt::Attempt;
use crate::engine::write_back::Installed;
use compaction::plan;
use compaction::profile::NativeStatus;
use history::History;
use score::{self, Score};

pub struct Compacted {
    /// The answer before any outcome: the session as it was, and the request.
    pub about: CompactAnswer,
    /// The profile's own names for statuses.
    pub native: NativeStatus,
    pub outcome: CompactOutcome,
}

/// Who wrote the summary, and what it cost.
pub struct Summarizer {
    /// `offline`, a provider with its model, or `host`.
    pub name: String,
    pub usage: UsageInfo,
    pub cost: Option<CostInfo>,
}

impl Default for Summarizer {
    fn default() -> Self {
        Self { name: "offline".to_owned(), usage: UsageInfo::default(), cost: None }
    }
}

pub enum CompactOutcome {
    /// Preview: the result that would be written.
    Planned(Box<Accepted>),
    /// The original is archived, and the result is written to the requested place.
    Compacted {
        accepted: Box<Accepted>,
        /// Handle of the archived original.
        handle: String,
        output: Delivered,
    },
    /// The calling agent's model is to write the summary first.
    NeedsAnswer(Question),
    Noop {
        /// A `reason_code` of the contract.
        code: &'static str,
        reason: String,
        /// Set if the session was carried to another agent unchanged.
        carried: Option<Installed>,
    },
    Rejected(Rejection),
}

/// A result that passed the checks.
pub struct Accepted {
    pub attempt: Attempt,
    /// The APIs whose rules the result obeys.
    pub valid_for: Vec<String>,
    /// Absent where costs are switched off.
    pub next_cost: Option<NextCost>,
    /// The summary that a model or the user wrote. [`Writer::written`](crate::engine::Writer::written)
    /// accepts it, to make the same result again.
    pub written: Option<String>,
}

pub enum Delivered {
    Bytes(Vec<u8>),
    File(String),
    Session(Installed),
}

/// What the calling agent's model is asked.
pub struct Question {
    /// The handle to pass with the answer.
    pub handle: String,
    pub ask: String,
    pub next: Next,
    pub reason: String,
}

pub enum Rejection {
    /// The session was compacted too recently.
    CoolingDown(String),
    /// The user's own command in `hooks.before` refused.
    HookRefused(String),
    /// The plan could not be applied, or its result saves too little.
    Plan(plan::Reason),
    /// Fewer facts would be kept than `min_kept` requires.
    LostTooMuch {
        attempt: Box<Attempt>,
        reason: String,
        /// The facts required by `min_kept` that would be lost.
        lost: Vec<LostInfo>,
        /// The smallest budget found that satisfies `min_kept`, in tokens.
        budget_needed: Option<u64>,
    },
    /// The result breaks a rule of its API.
    Invalid { attempt: Box<Attempt>, reason: String },
}

impl Rejection {
    /// The `reason_code` of the contract.
    pub fn code(&self) -> &'static str {
        match self {
            Self::CoolingDown(_) => "cooling_down",
            Self::HookRefused(_) => "hook_refused",
            Self::Plan(it) => it.code,
            Self::LostTooMuch { .. } => "lost_too_much",
            Self::Invalid { .. } => "invalid",
        }
    }

    /// A sentence with the numbers.
    pub fn reason(&self) -> &str {
        match self {
            Self::CoolingDown(reason) | Self::HookRefused(reason) => reason,
            Self::Plan(it) => &it.text,
            Self::LostTooMuch { reason, .. } | Self::Invalid { reason, .. } => reason,
        }
    }

    fn attempt(&self) -> Option<&Attempt> {
        match self {
            Self::CoolingDown(_) | Self::HookRefused(_) | Self::Plan(_) => None,
            Self::LostTooMuch { attempt, .. } | Self::Invalid { attempt, .. } => Some(attempt),
        }
    }

    /// The profile's own name for this rejection.
    fn native(&self, native: &NativeStatus) -> String {
        match self {
            Self::CoolingDown(_) | Self::HookRefused(_) | Self::LostTooMuch { .. } => String::new(),
            Self::Plan(it) => match it.code {
                "grew" => native.grew.clone(),
                "empty" => native.empty.clone(),
                "uncounted" => native.uncounted.clone(),
                _ => String::new(),
            },
            Self::Invalid { attempt, .. } => done(native, attempt),
        }
    }
}

impl Compacted {
    /// The result, if it passed the checks.
    pub fn accepted(&self) -> Option<&Accepted> {
        match &self.outcome {
            CompactOutcome::Planned(accepted) | CompactOutcome::Compacted { accepted, .. } => Some(accepted),
            CompactOutcome::NeedsAnswer(_) | CompactOutcome::Noop { .. } | CompactOutcome::Rejected(_) => {
                None
            }
        }
    }

    /// The new history, if there is one.
    pub fn history(&self) -> Option<&History> {
        self.accepted().map(|it| &it.attempt.outcome.history)
    }

    /// What survived; also for a rejected result.
    pub fn score(&self) -> Option<&Score> {
        let rejected = || match &self.outcome {
            CompactOutcome::Rejected(it) => it.attempt(),
            _ => None,
        };
        self.accepted().map(|it| &it.attempt).or_else(rejected).map(|it| &it.score)
    }

    /// The result, if it was requested as [`To::Bytes`](crate::engine::To::Bytes).
    pub fn bytes(&self) -> Option<&[u8]> {
        match &self.outcome {
            CompactOutcome::Compacted { output: Delivered::Bytes(bytes), .. } => Some(bytes),
            _ => None,
        }
    }

    pub fn answer(&self) -> CompactAnswer {
        let mut answer = self.about.clone();
        match &self.outcome {
            CompactOutcome::Planned(accepted) => {
                answer.status = Status::Planned;
                answer.accepted(accepted, &self.native);
            }
            CompactOutcome::Compacted { accepted, handle, output } => {
                answer.status = Status::Compacted;
                answer.accepted(accepted, &self.native);
                answer.handle = Some(handle.clone());
                match output {
                    Delivered::Bytes(_) => {}
                    Delivered::File(path) => answer.output = Some(path.clone()),
                    Delivered::Session(it) => answer.installed(it),
                }
            }
            CompactOutcome::NeedsAnswer(question) => {
                answer.status = Status::NeedsAnswer;
                "host".clone_into(&mut answer.summarizer);
                answer.reason.clone_from(&question.reason);
                answer.handle = Some(question.handle.clone());
                answer.ask = Some(question.ask.clone());
                answer.next = question.next.clone();
            }
            CompactOutcome::Noop { code, reason, carried } => {
                answer.status = Status::Noop;
                (*code).clone_into(&mut answer.reason_code);
                answer.reason.clone_from(reason);
                answer.native_status.clone_from(&self.native.noop);
                if let Some(it) = carried {
                    answer.installed(it);
                }
            }
            CompactOutcome::Rejected(rejection) => {
                if let Some(attempt) = rejection.attempt() {
                    answer.attempted(attempt);
                }
                answer.status = Status::Rejected;
                rejection.code().clone_into(&mut answer.reason_code);
                rejection.reason().clone_into(&mut answer.reason);
                answer.native_status = rejection.native(&self.native);
                if let Rejection::LostTooMuch { lost, budget_needed, .. } = rejection {
                    answer.lost.clone_from(lost);
                    answer.budget_needed = *budget_needed;
                }
            }
        }
        answer
    }
}

impl CompactAnswer {
    fn attempted(&mut self, attempt: &Attempt) {
        let outcome = &attempt.outcome;
        self.split = attempt.plan.split;
        self.pruned = crate::engine::pruned(&attempt.plan.ops);
        self.tokens_after = outcome.tokens;
        self.used_percent_after = percent(outcome.tokens + self.overhead, self.window);
        self.messages_after = outcome.history.messages().len();
        self.first_changed = Some(outcome.first_changed);
        self.prefix_tokens = outcome.prefix_tokens;
        self.facts = fact_counts(&attempt.score);
        self.facts_kept = attempt.score.kept.map(round);
        self.reason.clone_from(&attempt.plan.reason.text);
    }

    fn accepted(&mut self, accepted: &Accepted, native: &NativeStatus) {
        self.attempted(&accepted.attempt);
        self.native_status = done(native, &accepted.attempt);
        self.valid_for.clone_from(&accepted.valid_for);
        self.next_cost.clone_from(&accepted.next_cost);
        self.summary.clone_from(&accepted.attempt.summary);
    }

    fn installed(&mut self, it: &Installed) {
        self.output = Some(it.output.clone());
        self.session_id = Some(it.session_id.clone());
        self.resume = Some(it.resume.clone());
        self.takes_effect = Some(it.takes_effect);
        self.next = it.next.clone();
    }
}

/// The profile's own name for a completed compaction.
fn done(native: &NativeStatus, attempt: &Attempt) -> String {
    let shortened = attempt.only_outputs() && !native.shortened.is_empty();
    if shortened { native.shortened.clone() } else { native.compacted.clone() }
}

pub(crate) fn fact_counts(score: &Score) -> BTreeMap<String, FactCount> {
    score.classes.iter().map(|(class, it)| (class.name().to_owned(), fact_count(it))).collect()
}

pub(crate) fn fact_count(it: &score::Tally) -> FactCount {
    FactCount { found: it.found, kept: it.kept, recoverable: it.recoverable, lost: it.lost }
}

/// Percent of the window, with one decimal.
pub(crate) fn percent(tokens: u64, window: Option<u64>) -> Option<f64> {
    window.filter(|it| *it > 0).map(|it| (tokens as f64 * 1000.0 / it as f64).round() / 10.0)
}

/// Rounded to three decimals.
pub(crate) fn round(share: f64) -> f64 {
    (share * 1000.0).round() / 1000.0
}
