//! The `compact` verb: plan, summary, outcome, checks, archive, delivery.

pub(super) mod answered;
pub(super) mod attempt;
pub(super) mod compacted;
pub(super) mod events;
pub(super) mod memories;
pub(super) mod min_kept;
pub(super) mod preview;
pub(super) mod summarize;
pub(super) mod summary_cost;

use std::cell::OnceCell;
use std::time::Duration;

use crate::agents::write_back::Operation;
use crate::answers::{CompactAnswer, NextCost};
use crate::config::Choice;
use crate::engine::archive::PlanResult;
use crate::engine::archive::marks::SessionMark;
use crate::engine::compact::attempt::{Attempt, AttemptRequest};
use crate::engine::compact::compacted::{
    Accepted, CompactOutcome, Compacted, Delivered, Rejection, Summarizer, percent,
};
use crate::engine::compact::min_kept::MinKept;
use crate::engine::compact::summarize::HostReply;
use crate::engine::input::measured::{Measured, warnings};
use crate::engine::inspect::session_cost::AfterChange;
use crate::engine::{
    Ask, Engine, Event, HistoryFacts, Opened, To, archive, input::measured, input::request,
    inspect::session_cost, method_info, session_info, transfer::carry, write_back, write_back::readback,
};
use crate::store::AuditVerb;
use compaction::plan::{self, Plan};
use history::History;
use history::error::{Error, Hint, Result};
use history::parallel;
use sessions::{self, Format, Mode};

pub(crate) struct CompactJob<'a> {
    engine: &'a Engine,
    opened: &'a Opened,
    ask: &'a Ask,
    measured: &'a Measured<'a>,
    /// The answer of the calling agent's model, in the second call of a host-run summary.
    reply: Option<&'a HostReply>,
    /// Holds the `Started` event once it was sent.
    begun: &'a OnceCell<Event>,
    /// Who wrote the summary; offline until someone else has.
    summarizer: Summarizer,
    warnings: Vec<String>,
}

/// Why a compaction ends before it has a result.
pub(crate) enum Ended {
    Failed(Error),
    Decided(Box<CompactOutcome>),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<CompactOutcome> for Ended {
    fn from(outcome: CompactOutcome) -> Self {
        Self::Decided(Box::new(outcome))
    }
}

impl From<Rejection> for Ended {
    fn from(why: Rejection) -> Self {
        CompactOutcome::Rejected(why).into()
    }
}

/// Compacts a session as `ask` says, sends events to the listener, and runs the user's commands when
/// something is written.
///
/// # Errors
/// Errors of the store and of files, or a place that cannot be written. A compaction that is refused is a
/// [`CompactOutcome::Rejected`], not an error.
pub fn compact(engine: &Engine, opened: &Opened, ask: &Ask) -> Result<Compacted> {
    compact_with(engine, opened, &request::with_agent_settings(engine, ask), None)
}

/// As [`compact`], for an `ask` that has been through `with_agent_settings`. With `reply`, plans for the messages that
/// the summary was asked for.
fn compact_with(engine: &Engine, opened: &Opened, ask: &Ask, reply: Option<&HostReply>) -> Result<Compacted> {
    #[cfg(feature = "otel")]
    let started = std::time::Instant::now();
    let begun = OnceCell::new();
    let mut compacted = run_job(engine, opened, ask, reply, &begun);
    // Without a `Started` event (the job was a preview) there is no end to report.
    if let Some(Event::Started { percent, .. }) = begun.get() {
        report_end(engine, opened, ask, *percent, &mut compacted);
    }
    #[cfg(feature = "otel")]
    if ask.to != To::Plan {
        events::otel::compacted(engine, started, opened, ask, &compacted);
    }
    compacted
}

/// Reports how a started compaction ended. `percent`: its context before, in percent of the window.
fn report_end(
    engine: &Engine,
    opened: &Opened,
    ask: &Ask,
    percent: Option<u64>,
    compacted: &mut Result<Compacted>,
) {
    let ended = match compacted {
        Ok(compacted) => closing_event(compacted, ask, percent),
        Err(error) => Some(Event::Failed { reason_code: "failed".to_owned(), reason: error.to_string() }),
    };
    let Some(ended) = ended else { return };
    events::notify(engine, &ended);
    let refused = |it: &Compacted| matches!(it.outcome, CompactOutcome::Rejected(Rejection::HookRefused(_)));
    if compacted.as_ref().is_ok_and(refused) {
        return;
    }
    let mut warnings = Vec::new();
    if (ask.options.auto || matches!(ended, Event::Compacted { .. }))
        && let Err(error) =
            request::count_failure(engine, &opened.session.history, matches!(ended, Event::Failed { .. }))
    {
        // Only a warning: the outcome is already decided.
        warnings.push(format!("the count of failed compactions could not be stored: {error}"));
    }
    warnings.extend(events::run_after(engine, &ended, Duration::MAX));
    if let Ok(compacted) = compacted {
        compacted.about.warnings.extend(warnings);
    }
}

fn run_job(
    engine: &Engine,
    opened: &Opened,
    ask: &Ask,
    reply: Option<&HostReply>,
    begun: &OnceCell<Event>,
) -> Result<Compacted> {
    let full_history = &opened.session.history;
    let mut ask = ask.clone();
    ask.options.pin = memories::pins(engine, full_history, &ask.options.pin)?;
    let ask = &ask;
    let base = reply.map(|it| {
        let messages = full_history.messages().iter().take(it.state.count).cloned().collect();
        History::new(messages, full_history.meta.clone())
    });
    let mut measured =
        measured::measure_history(engine, &opened.session, base.as_ref().unwrap_or(full_history), ask);
    measured.grown_history = base.is_some().then_some(full_history);
    let plan = attempt::plan_for(engine, &measured, ask);
    let about = about(opened, ask, &measured, &plan);
    let warnings = warnings(engine, opened, &measured);
    let summarizer = Summarizer::default();
    let mut job = CompactJob { engine, opened, ask, measured: &measured, reply, begun, summarizer, warnings };
    let outcome = match outcome(&mut job, plan) {
        Ok(outcome) => outcome,
        Err(Ended::Decided(outcome)) => *outcome,
        Err(Ended::Failed(error)) => return Err(error),
    };
    let Summarizer { name: summarizer, usage, cost } = job.summarizer;
    let about = CompactAnswer { summarizer, usage, cost, warnings: job.warnings, ..about };
    Ok(Compacted { about, native: ask.profile.native.clone(), outcome })
}

/// Carries a plan out as far as `ask.to` says.
fn outcome(job: &mut CompactJob<'_>, plan: Plan) -> Result<CompactOutcome, Ended> {
    let CompactJob { engine, opened, ask, measured, .. } = *job;
    if !plan.act {
        let mut carried = None;
        // Nothing to compact, but the session is still to be carried to the other agent.
        if let To::Agent(agent) = ask.to {
            let (installed, warnings) = carry::carry(engine, opened, measured.history, agent)?;
            carried = Some(installed);
            job.warnings.extend(warnings);
        }
        let reason = engine.hinted(plan.reason.text, plan.reason.hint);
        return Ok(CompactOutcome::Noop { code: plan.reason.code, reason, carried });
    }
    if ask.to == To::Session
        && let Some(why) = write_back::cooling_down(engine, measured.history, ask.profile.trigger.cool_down)
    {
        return Err(Rejection::CoolingDown(why).into());
    }
    let facts = HistoryFacts::default();
    let written = get_summary(job, &plan, &facts)?;
    let handle = archive::session_handle(engine, opened)?;
    let request =
        AttemptRequest { engine, measured, ask, handle: &handle, facts: &facts, written: written.as_deref() };
    let (attempt, valid_for, messages) = checked_attempt(job, &request, plan)?;
    let next_cost = engine.config.costs.then(|| next_cost(job, &attempt));
    let accepted = Box::new(Accepted { attempt, valid_for, next_cost, written });
    if ask.to == To::Plan {
        return Ok(CompactOutcome::Planned(accepted));
    }
    let (handle, output) = deliver(job, &accepted.attempt, messages)?;
    let session = measured.history.meta.session.as_deref();
    engine.audit(AuditVerb::Compact, &engine.scope(measured.history), session, Some(&handle));
    store_for_later(job, &accepted, &output);
    Ok(CompactOutcome::Compacted { accepted, handle, output })
}

/// Makes an attempt that keeps enough facts and breaks no rule of its API. Returns also the APIs that accept
/// it, and its messages in the form of the requested API.
fn checked_attempt(
    job: &mut CompactJob<'_>,
    request: &AttemptRequest<'_>,
    plan: Plan,
) -> Result<(Attempt, Vec<String>, Vec<u8>), Rejection> {
    let CompactJob { engine, opened, ask, .. } = *job;
    let attempt = attempt::apply_within_budget(request, plan).map_err(Rejection::Plan)?;
    if attempt.outcome.orphans > 0 {
        job.warnings.push(format!(
            "{} tool outputs were left out: each is a second output of a summarized call",
            attempt.outcome.orphans
        ));
    }
    if let Some(min_kept) = &ask.options.min_kept
        && let Some(missed) = min_kept.missed(&attempt.score)
    {
        let needed = attempt::budget_that_keeps(request, attempt.outcome.tokens, min_kept);
        return Err(lost_too_much(engine, attempt, &missed, min_kept, needed));
    }
    let api = ask.messages_as.unwrap_or(opened.session.format.api());
    let after = &attempt.outcome.history;
    let (valid_for, (messages, lost)) = parallel::join(
        || valid_for(after),
        || sessions::wire::messages_of(after, Some(opened.session.format), api),
    );
    if ask.messages_as.is_some() {
        job.warnings.extend(lost);
    }
    if let Some(first) = sessions::validate::check(api, &messages).first() {
        let reason = format!("the result breaks {first}");
        return Err(Rejection::Invalid { attempt: Box::new(attempt), reason });
    }
    Ok((attempt, valid_for, messages))
}

/// What the next request would cost; a paid summary counts towards the cost of the compaction.
fn next_cost(job: &CompactJob<'_>, attempt: &Attempt) -> NextCost {
    let asked = job.summarizer.cost.as_ref().and_then(|it| it.spent_dollars).unwrap_or(0.0);
    let after = AfterChange { tokens: attempt.outcome.tokens, prefix: attempt.outcome.prefix_tokens, asked };
    session_cost::next_cost(job.engine, job.measured, job.ask, Some(after))
}

/// The summary that a model or the user wrote, if any. Sends the `Started` event.
fn get_summary(job: &mut CompactJob<'_>, plan: &Plan, facts: &HistoryFacts) -> Result<Option<String>, Ended> {
    let CompactJob { engine, ask, measured, .. } = *job;
    let writer = &ask.writer;
    // A job starts before a provider is paid, but with a host-run summary only once its answer is here, since
    // that may never come.
    let begins_with_answer = writer.summarizer == Choice::Host && writer.sampling.is_none();
    if !begins_with_answer {
        begin(job)?;
    }
    let text = if writer.written.is_some() {
        writer.written.clone()
    } else {
        let draft = summarize::draft(job, plan, facts)?;
        job.summarizer = draft.by;
        job.warnings.extend(draft.notes);
        match &writer.edit {
            None => draft.text,
            Some(edit) => {
                let written = draft.text.as_deref();
                let request = AttemptRequest { engine, measured, ask, handle: "", facts, written };
                summarize::edited(&request, plan, edit)?
            }
        }
    };
    if begins_with_answer {
        begin(job)?;
    }
    Ok(text)
}

fn lost_too_much(
    engine: &Engine,
    attempt: Attempt,
    missed: &str,
    min_kept: &MinKept,
    budget_needed: Option<u64>,
) -> Rejection {
    let reason = match budget_needed {
        Some(tokens) => {
            let hint = Hint::RaiseBudget { tokens };
            engine.hinted(format!("this would keep {missed}"), Some(hint))
        }
        None => format!("this would keep {missed}; no budget smaller than the session would be enough"),
    };
    Rejection::LostTooMuch {
        reason,
        lost: min_kept.lost(&attempt.score),
        budget_needed,
        attempt: Box::new(attempt),
    }
}

/// Unless this is a preview, sends the `Started` event and runs `hooks.before`, which may refuse.
fn begin(job: &CompactJob<'_>) -> Result<(), Ended> {
    if job.ask.to == To::Plan {
        return Ok(());
    }
    let started = job.begun.get_or_init(|| events::started(job.opened, job.ask, job.measured));
    events::notify(job.engine, started);
    Ok(events::run_before(job.engine, started, Duration::MAX).map_err(Rejection::HookRefused)?)
}

/// Archives the original and delivers the outcome; returns the original's handle. `messages`: the outcome as
/// messages of an API, written instead of a session if the caller named one.
fn deliver(job: &mut CompactJob<'_>, attempt: &Attempt, messages: Vec<u8>) -> Result<(String, Delivered)> {
    let CompactJob { engine, opened, ask, .. } = *job;
    let (after, summary) = (&attempt.outcome.history, attempt.summary.as_deref());
    let result = PlanResult {
        plan: &attempt.plan,
        history: &opened.session.history,
        tokens: attempt.outcome.tokens,
        summary,
        score: Some(&attempt.score),
    };
    let archived = archive::archive(engine, opened, ask, result)?;
    if !engine.store.keeps() {
        let what = "archiving is switched off (store.persistence = \"none\"): the handles in the result cannot be \
                    restored";
        job.warnings.push(what.to_owned());
    }
    let written = || -> Result<_> {
        if ask.messages_as.is_some() {
            return Ok((messages, Vec::new()));
        }
        let written = readback::write_and_verify(opened, after, Mode::New)?;
        Ok((written.bytes(&*opened.source)?, written.warnings))
    };
    let (output, warnings) = match &ask.to {
        To::File(path) => {
            let (bytes, warnings) = written()?;
            crate::files::install(path, &bytes)?;
            (Delivered::File(path.display().to_string()), warnings)
        }
        To::Plan | To::Bytes => {
            let (bytes, warnings) = written()?;
            (Delivered::Bytes(bytes), warnings)
        }
        To::Agent(agent) => {
            let (installed, warnings) = carry::carry(engine, opened, after, *agent)?;
            (Delivered::Session(installed), warnings)
        }
        To::Session => {
            let job = if attempt.only_outputs() { Operation::Prune } else { Operation::Compact };
            let (installed, mut warnings) =
                write_back::install(engine, opened, after, job, &archived.compaction)?;
            warnings.extend(crate::engine::repair::left_behind(opened).unwrap_or_else(|error| {
                Some(format!("it could not be checked whether the session is damaged: {}", error.full()))
            }));
            (Delivered::Session(installed), warnings)
        }
    };
    job.warnings.extend(warnings);
    Ok((archived.session, output))
}

/// Stores what later calls need from a written compaction: overhead, memory, snapshot. A failure is only a
/// warning.
fn store_for_later(job: &mut CompactJob<'_>, accepted: &Accepted, output: &Delivered) {
    let CompactJob { engine, opened, ask, measured, .. } = *job;
    let Accepted { attempt, written, .. } = accepted;
    if let Delivered::Session(installed) = output {
        note_overhead(engine, measured.history, measured.counter.overhead(), &installed.session_id);
    }
    job.warnings.extend(memories::remember(engine, opened, ask, attempt.summary.as_deref()));
    if let (Some(written), Some(need)) = (written, &attempt.plan.need)
        && measured.history.meta.session.is_some()
        && let Err(error) = request::keep_snapshot(engine, measured.history, need.to, written)
    {
        job.warnings.push(format!("the summary could not be saved for the next compaction: {error}"));
    }
}

/// Stores the tokens of system prompt and tools, for later estimates of the installed session.
fn note_overhead(engine: &Engine, history: &History, overhead: u64, installed: &str) {
    if overhead == 0 {
        return;
    }
    let scope = engine.scope(history);
    for id in [Some(installed), history.meta.session.as_deref()].into_iter().flatten() {
        // On failure the next estimate is only less exact.
        let _ = engine.store.mark(&scope, &SessionMark::Overhead.of(id), &overhead.to_string(), engine.now);
    }
}

fn about(opened: &Opened, ask: &Ask, measured: &Measured<'_>, plan: &Plan) -> CompactAnswer {
    let messages = measured.full_history().messages();
    let counted = messages.iter().filter(|it| plan::counts(it));
    let tokens: u64 = counted.map(|it| measured.counter.message(it)).sum();
    let Measured { overhead, .. } = *measured;
    CompactAnswer {
        session: session_info(opened),
        profile: ask.profile.name.clone(),
        trigger: ask.cause().name().to_owned(),
        tokens_before: tokens,
        tokens_after: tokens,
        overhead,
        method: method_info(&measured.counter),
        window: measured.limits.window,
        used_percent: percent(tokens + overhead, measured.limits.window),
        messages_before: messages.len(),
        messages_after: messages.len(),
        split: plan.split,
        // If the session has grown since, only the messages that the plan was made for.
        prefix_tokens: measured.tokens,
        ..CompactAnswer::default()
    }
}

/// The APIs that would accept a history.
fn valid_for(history: &History) -> Vec<String> {
    let apis = Format::ALL.into_iter().filter(|it| it.is_wire());
    apis.filter(|api| sessions::validate::check(*api, &sessions::messages(history, *api).0).is_empty())
        .map(|it| it.name().to_owned())
        .collect()
}

/// The event that ends a started compaction. `percent`: its context before, in percent of the window.
fn closing_event(compacted: &Compacted, ask: &Ask, percent: Option<u64>) -> Option<Event> {
    match &compacted.outcome {
        CompactOutcome::Compacted { accepted, handle, output } => Some(Event::Compacted {
            tokens_before: compacted.about.tokens_before,
            tokens_after: accepted.attempt.outcome.tokens,
            handle: Some(handle.clone()),
            output: match output {
                Delivered::Bytes(_) => None,
                Delivered::File(path) => Some(path.clone()),
                Delivered::Session(it) => Some(it.output.clone()),
            },
            notice: events::notice(&ask.profile.notices.compacted, percent),
        }),
        CompactOutcome::Rejected(it) => {
            Some(Event::Failed { reason_code: it.code().to_owned(), reason: it.reason().to_owned() })
        }
        // These end before the `Started` event.
        CompactOutcome::Planned(_) | CompactOutcome::NeedsAnswer(_) | CompactOutcome::Noop { .. } => None,
    }
}
