//! The dialogue with a summarizer, as a state machine without I/O.
//!
//! ```text
//!            ┌──────────────── smaller input ◀─── too long ────┐
//!            ▼                                                 │
//! start ─▶ whole ─┬─▶ Ask ─▶ on_reply ─┬─▶ failure ─▶ Wait, or give up
//!          chunk ─┤                    ├─▶ faults  ─▶ one repair ─▶ cut by rank, or give up
//!          fold  ─┤                    └─▶ a summary ─▶ [second draft] ─▶ mended ─▶ Done
//!          repair ┘
//! ```
//!
//! The state serializes and holds nothing of the conversation except what the model wrote, so that a dialogue
//! can continue in another process, hours later ([`SummaryRequest`] is rebuilt from the session). Giving up
//! is not an error of the caller: the offline summary is used instead, with the reason.

mod ask;

use serde::{Deserialize, Serialize};

use ask::AfterAnswer;

use super::check::{self, AnswerForm, Fault};
use super::failure::{Failure, FailureCause};
use super::grounding;
use super::language;
use super::model::{Endpoint, ModelRequest, Reply};
use super::render::{self, Position};
use super::request::{Bounds, InputReduction, SummaryRequest};
use history::{History, Usage};

/// The language of a conversation: the one in which the user writes.
pub fn language_of(history: &History) -> Option<&'static str> {
    let mut text = String::new();
    // The newest prompts show best which language is used now.
    for message in history.messages().iter().rev().filter(|it| it.is_prompt()) {
        let plain = message.plain();
        text.extend(check::prose(&plain).chars().take(2_000));
        text.push('\n');
        if text.len() > 8_000 {
            break;
        }
    }
    language::of(&text)
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Stage {
    Whole,
    /// A part of the transcript, from a position on, with the notes on earlier parts.
    Chunk {
        at: Position,
        notes: Vec<String>,
        number: usize,
    },
    /// Notes are merged, from the front of the list.
    Fold {
        notes: Vec<String>,
    },
    /// Asks again, with the faults named. `notes`: what the summary is made of, if not the transcript.
    Repair {
        draft: String,
        faults: Vec<Fault>,
        notes: Option<Vec<String>>,
    },
    /// A second call checks a good draft.
    Verify {
        draft: String,
    },
    /// A summary was accepted.
    Done {
        text: String,
        notes: Vec<String>,
    },
    /// Nothing more is tried.
    Over {
        why: GaveUp,
    },
}

/// Why a dialogue ended without a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GaveUp {
    Failed(Failure),
    /// The answer cannot be used.
    Unusable(Vec<Fault>),
    /// A limit was reached; the text says which.
    Bound(String),
}

impl GaveUp {
    /// A sentence for the user. `endpoint`: the provider that was asked; `None`: the calling agent's model.
    pub fn sentence(&self, endpoint: Option<&Endpoint>) -> String {
        let who = endpoint.map_or_else(|| "the calling agent's model".to_owned(), Endpoint::label);
        match (self, endpoint) {
            (Self::Failed(failure), Some(endpoint)) => failure.sentence(endpoint),
            (Self::Failed(failure), None) => failure.found.clone(),
            (Self::Unusable(faults), _) => {
                let clauses: Vec<String> = faults.iter().map(Fault::clause).collect();
                format!("the summary of {who} cannot be used: {}", clauses.join("; "))
            }
            (Self::Bound(bound), _) => format!("asking {who}: {bound}"),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Ask(Box<ModelRequest>),
    /// Milliseconds to wait before [`Dialogue::waited`] is called. The text is for the progress callback.
    Wait(u64, String),
    Done(String, Vec<String>),
    /// There is no summary; write the offline one.
    GaveUp(GaveUp),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dialogue {
    stage: Stage,
    /// Index into `SummaryRequest::reductions`.
    reduction: usize,
    /// Maximum input tokens of the model, as far as its refusals told.
    limit: Option<u64>,
    /// Randomness, passed in so that the state machine stays pure.
    seed: u64,
    /// Failed attempts of the current request.
    failed: u32,
    /// Milliseconds to wait before the next attempt, and why.
    wait: Option<(u64, String)>,
    /// Usage of all requests, as reported.
    pub tokens: Usage,
    pub requests: u32,
    /// Tokens that were sent, by our own count.
    pub sent: u64,
    /// Whether an answer was empty before, by which some servers mean that the input is too long.
    was_empty: bool,
    /// The model that answered last, as the provider names it.
    pub model: Option<String>,
}

/// Milliseconds before the first retry, by chance down to half; doubled for every further one.
const FIRST_WAIT: u64 = 500;
/// Maximum milliseconds of a wait that the provider did not ask for.
const LONGEST_WAIT: u64 = 30_000;
/// Percent of the window to use where only our own count says how full it is.
const SAFE_PERCENT: u64 = 85;
/// Input tokens below which a request is not worth it.
const MIN_INPUT: u64 = 300;

impl Dialogue {
    /// A new dialogue. The same seed gives the same waits.
    pub fn new(seed: u64) -> Self {
        Self {
            stage: Stage::Whole,
            reduction: 0,
            limit: None,
            seed,
            failed: 0,
            wait: None,
            tokens: Usage::default(),
            requests: 0,
            sent: 0,
            was_empty: false,
            model: None,
        }
    }

    /// The next step; the same until `on_reply` or `waited` is called.
    pub fn next(&self, request: &SummaryRequest<'_>) -> Step {
        match &self.stage {
            Stage::Done { text, notes } => return Step::Done(text.clone(), notes.clone()),
            Stage::Over { why } => return Step::GaveUp(why.clone()),
            Stage::Whole
            | Stage::Chunk { .. }
            | Stage::Fold { .. }
            | Stage::Repair { .. }
            | Stage::Verify { .. } => {}
        }
        if let Some((ms, why)) = &self.wait {
            return Step::Wait(*ms, why.clone());
        }
        let ask = match self.ask(request) {
            Ok((ask, _)) => ask,
            Err(why) => return Step::GaveUp(why),
        };
        // A host's model is not sent its own conversation, so nothing counts toward the limit.
        let size = if request.host { 0 } else { (request.count)(&ask.text()) };
        let most = request.bounds.tokens;
        if self.sent.saturating_add(size) > most {
            let all = self.sent.saturating_add(size);
            let why = format!("the limit of {most} tokens for one summary does not allow the {all} it takes");
            return Step::GaveUp(GaveUp::Bound(why));
        }
        Step::Ask(Box::new(ask))
    }

    /// To be called when the wait is over.
    pub fn waited(&mut self) {
        self.wait = None;
    }

    /// Number of the part being asked about, and about how many there are; for the progress callback.
    pub fn part(&self, request: &SummaryRequest<'_>) -> Option<(usize, usize)> {
        match &self.stage {
            Stage::Chunk { number, .. } => Some((*number, self.parts(request).max(*number))),
            Stage::Whole
            | Stage::Fold { .. }
            | Stage::Repair { .. }
            | Stage::Verify { .. }
            | Stage::Done { .. }
            | Stage::Over { .. } => None,
        }
    }

    /// Takes the result of the last request. `elapsed`: milliseconds since the dialogue began.
    pub fn on_reply(&mut self, request: &SummaryRequest<'_>, result: Result<Reply, Failure>, elapsed: u64) {
        let (asked, next) = match self.ask(request) {
            Ok(it) => it,
            Err(why) => return self.give_up(why),
        };
        let size = (request.count)(&asked.text());
        self.requests += 1;
        // Without a connection, nothing was sent.
        if !matches!(&result, Err(it) if it.status.is_none() && matches!(it.cause, FailureCause::Network | FailureCause::Tls))
        {
            self.sent += size;
        }
        match result {
            Ok(reply) => {
                self.tokens.add(reply.tokens);
                self.model = reply.model.clone().or(self.model.take());
                self.replied(request, &reply, next, size);
            }
            Err(failure) => self.failure(request, failure, size, elapsed),
        }
        self.enforce_limits(&request.bounds, elapsed);
    }

    fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Done { .. } | Stage::Over { .. })
    }

    fn enforce_limits(&mut self, bounds: &Bounds, elapsed: u64) {
        if self.is_over() {
            return;
        }
        let wait = self.wait.as_ref().map_or(0, |it| it.0);
        let why = if elapsed + wait >= bounds.total_ms {
            format!("the limit of {} s for one summary was reached", bounds.total_ms / 1000)
        } else if self.requests >= bounds.requests {
            format!("the limit of {} requests for one summary was reached", bounds.requests)
        } else if self.sent >= bounds.tokens {
            format!("the limit of {} tokens for one summary was reached", bounds.tokens)
        } else {
            return;
        };
        self.give_up(GaveUp::Bound(why));
    }

    fn give_up(&mut self, why: GaveUp) {
        self.stage = Stage::Over { why };
    }

    fn failure(&mut self, request: &SummaryRequest<'_>, failure: Failure, size: u64, elapsed: u64) {
        if let FailureCause::Overflow { sent, limit } = failure.cause {
            let known = match (sent, limit) {
                // The provider counts tokens differently, so only the ratio of its two numbers is used.
                (Some(sent), Some(limit)) if sent > limit => {
                    (size.saturating_mul(limit) / sent).saturating_mul(9) / 10
                }
                (_, Some(limit)) => {
                    limit.saturating_sub(self.max_output(request)).saturating_mul(SAFE_PERCENT) / 100
                }
                (_, None) => size.saturating_mul(7) / 10,
            };
            return self.shrink(request, known.min(size.saturating_mul(9) / 10), failure);
        }
        self.failed += 1;
        let bounds = &request.bounds;
        // A request that is slow once is slow again, and a third attempt would cost minutes.
        let tries = if failure.cause == FailureCause::Slow { bounds.tries.min(2) } else { bounds.tries };
        if !failure.passes() || self.failed >= tries {
            return self.give_up(GaveUp::Failed(failure));
        }
        let own = backoff(self.seed, self.failed);
        let wait = failure.wait_ms.map_or(own, |it| it.max(FIRST_WAIT / 5));
        if elapsed.saturating_add(wait) >= bounds.total_ms {
            let found = format!(
                "{}; it asks us to wait {} s, which is longer than the limit allows",
                failure.found,
                wait / 1000
            );
            return self.give_up(GaveUp::Failed(Failure { found, ..failure }));
        }
        let seconds = wait as f64 / 1000.0;
        self.wait = Some((
            wait,
            format!("{}; retry {} of {tries} in {seconds:.1} s", failure.found, self.failed + 1),
        ));
    }

    /// The input was too long: remembers the limit and moves to the next way of making it smaller.
    fn shrink(&mut self, request: &SummaryRequest<'_>, limit: u64, failure: Failure) {
        if limit < MIN_INPUT {
            return self.give_up(GaveUp::Failed(failure));
        }
        self.limit = Some(self.limit.map_or(limit, |it| it.min(limit)));
        if let Stage::Whole = self.stage {
            self.reduce_input(request);
        }
        // Chunks and folds follow the limit by themselves; a repair leaves out the transcript.
        if let Stage::Verify { draft } = &self.stage {
            let draft = draft.clone();
            self.accept(request, &draft);
        }
    }

    /// Moves to the first reduction whose input fits, or else to chunks.
    fn reduce_input(&mut self, request: &SummaryRequest<'_>) {
        while let Some(reduction) = request.reductions.get(self.reduction) {
            if *reduction == InputReduction::Chunks {
                break;
            }
            self.reduction += 1;
            if self.whole(request).is_some()
                && request.reductions.get(self.reduction) != Some(&InputReduction::Chunks)
            {
                return;
            }
        }
        self.stage = Stage::Chunk { at: (0, 0), notes: Vec::new(), number: 1 };
    }

    fn replied(&mut self, request: &SummaryRequest<'_>, reply: &Reply, next: AfterAnswer, size: u64) {
        if reply.text.trim().is_empty() && !self.was_empty && !request.host {
            // LM Studio answers 200 with an empty text if the input is too long.
            self.was_empty = true;
            let smaller = Failure::new(FailureCause::Overflow { sent: None, limit: None }, "an empty answer");
            return self.shrink(request, size * 7 / 10, smaller);
        }
        match next {
            AfterAnswer::Final => {
                self.failed = 0;
                self.finish(request, reply);
            }
            AfterAnswer::Chunk { .. } | AfterAnswer::Folded(_) => match check::notes(reply, request.spec) {
                Ok(text) => self.noted(request, text, next),
                // Notes that were cut off are still notes; what is missing is in the ledger.
                Err(faults) if faults == [Fault::CutOff] && !reply.text.trim().is_empty() => {
                    let text = reply.text.replace("<summary>", "");
                    self.noted(request, text.trim().to_owned(), next);
                }
                Err(faults) => {
                    self.failed += 1;
                    if self.failed > 1 {
                        self.give_up(GaveUp::Unusable(faults));
                    }
                }
            },
        }
    }

    fn noted(&mut self, request: &SummaryRequest<'_>, text: String, next: AfterAnswer) {
        self.failed = 0;
        // Notes that are far too long could never be merged.
        let text = render::beginning(&text, self.note_size(request) * 2, request.count).to_owned();
        self.stage = match (std::mem::replace(&mut self.stage, Stage::Whole), next) {
            (Stage::Chunk { mut notes, number, .. }, AfterAnswer::Chunk { at, end }) => {
                notes.push(text);
                if end { Stage::Fold { notes } } else { Stage::Chunk { at, notes, number: number + 1 } }
            }
            // `ask` moved on to chunks because the input was too long for one request.
            (Stage::Whole, AfterAnswer::Chunk { at, end }) => {
                let notes = vec![text];
                if end { Stage::Fold { notes } } else { Stage::Chunk { at, notes, number: 2 } }
            }
            (Stage::Fold { notes }, AfterAnswer::Folded(front)) => {
                let mut rest = vec![text];
                rest.extend(notes.into_iter().skip(front));
                Stage::Fold { notes: rest }
            }
            (stage, _) => stage,
        };
        if let Stage::Chunk { .. } | Stage::Fold { .. } = self.stage {
            self.reduction = request
                .reductions
                .iter()
                .position(|it| *it == InputReduction::Chunks)
                .unwrap_or(self.reduction);
        }
    }

    /// A final answer: accepted, repaired once, cut, or given up.
    fn finish(&mut self, request: &SummaryRequest<'_>, reply: &Reply) {
        let needed = needed(request);
        let of: u64 = request.excerpts.iter().map(|it| (request.count)(&it.text)).sum();
        let form = AnswerForm {
            spec: request.spec,
            needed: &needed,
            max_tokens: request.max_tokens,
            replaced_tokens: of,
            language: request.language,
            count: request.count,
        };
        let result = check::form(reply, &form);
        if let Stage::Verify { draft } = &self.stage {
            // The second draft is taken if it passes; otherwise the first, which did.
            let text = if result.is_ok() { reply.text.clone() } else { draft.clone() };
            return self.accept(request, &text);
        }
        match result {
            Ok(_)
                if request.own.verify.is_some()
                    && !matches!(self.stage, Stage::Repair { .. } | Stage::Fold { .. }) =>
            {
                self.stage = Stage::Verify { draft: reply.text.clone() };
            }
            Ok(_) => self.accept(request, &reply.text),
            Err((faults, parsed)) => {
                let (again, notes) = match &self.stage {
                    Stage::Repair { .. } => (false, None),
                    Stage::Fold { notes } => (true, Some(notes.clone())),
                    Stage::Whole
                    | Stage::Chunk { .. }
                    | Stage::Verify { .. }
                    | Stage::Done { .. }
                    | Stage::Over { .. } => (true, None),
                };
                let long = |it: &Fault| matches!(it, Fault::TooLong { .. });
                match parsed {
                    _ if again => self.stage = Stage::Repair { draft: reply.text.clone(), faults, notes },
                    // Still too long, but otherwise good: lines are cut by rank.
                    Some(_) if faults.iter().all(long) => self.accept(request, &reply.text),
                    Some(_) | None => self.give_up(GaveUp::Unusable(faults)),
                }
            }
        }
    }

    fn accept(&mut self, request: &SummaryRequest<'_>, text: &str) {
        let Some(parsed) = check::read(text, request.spec) else {
            return self.give_up(GaveUp::Unusable(vec![Fault::CutOff]));
        };
        let mended = grounding::mend(parsed, request);
        if mended.text.is_empty() {
            return self.give_up(GaveUp::Unusable(vec![Fault::Empty]));
        }
        self.stage = Stage::Done { notes: mended.notes(), text: mended.text };
    }
}

/// Indexes of the sections that must not be missing, since there are facts for them.
fn needed(request: &SummaryRequest<'_>) -> Vec<usize> {
    let within = |it: &&crate::facts::Fact| request.region.contains(&it.message) && grounding::protected(it);
    let topics: Vec<_> = request.ledger.facts.iter().filter(within).map(|it| it.topic).collect();
    let sections = request.spec.sections.iter().enumerate();
    sections.filter(|(_, it)| it.holds.iter().any(|it| topics.contains(it))).map(|it| it.0).collect()
}

/// Half a second, doubled with every attempt, up to half a minute; of that, a random half to all.
fn backoff(seed: u64, failed: u32) -> u64 {
    let full = FIRST_WAIT.saturating_mul(1 << failed.saturating_sub(1).min(10)).min(LONGEST_WAIT);
    let chance = twox_hash::XxHash3_64::oneshot_with_seed(seed, &failed.to_le_bytes()) % 1_000;
    full / 2 + full * chance / 2_000
}
