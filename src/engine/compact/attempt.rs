//! One attempt at a compaction: its plan, summary, outcome and score.

use std::sync::OnceLock;

use crate::engine::compact::min_kept::MinKept;
use crate::engine::input::measured::Measured;
use crate::engine::{Amount, Ask, Engine, Event, compact::events, compact::memories, input::request};
use compaction::facts::{self, Ledger};
use compaction::plan::{self, Cause, Op, Plan, PlanOutcome, PlanRequest, Segment};
use compaction::profile::{Keep, Summarize};
use compaction::summary::offline;
use history::{History, Message, SUMMARY_START, Text, parallel};
use score::{self, Probe, Score};

/// A plan that was applied, before its result is checked.
pub struct Attempt {
    pub plan: Plan,
    pub outcome: PlanOutcome,
    /// The summary that was written, or the stored one that was used instead.
    pub summary: Option<String>,
    pub score: Score,
}

impl Attempt {
    /// Whether nothing but outputs was replaced.
    pub fn only_outputs(&self) -> bool {
        self.plan.ops.iter().all(|it| matches!(it, Op::Clear(_) | Op::Shorten(_)))
    }
}

/// What is read from a history without a model: computed on first use, then shared by all attempts.
#[derive(Debug, Default)]
pub struct HistoryFacts {
    pub(crate) ledger: OnceLock<Ledger>,
    pub(crate) probes: OnceLock<Vec<Probe>>,
}

impl HistoryFacts {
    /// Computes ledger and probes in parallel: each reads the whole history, and neither may depend on the
    /// other.
    pub(crate) fn read(&self, history: &History, full_history: &History) -> &Ledger {
        parallel::join(|| _ = self.probes(full_history), || self.ledger(history)).1
    }

    /// The facts that the summary is written from.
    pub(crate) fn ledger(&self, history: &History) -> &Ledger {
        self.ledger.get_or_init(|| facts::read(history))
    }

    /// The facts that an outcome is scored by.
    pub fn probes(&self, history: &History) -> &[Probe] {
        self.probes.get_or_init(|| score::probes(history))
    }
}

#[derive(Clone, Copy)]
pub(crate) struct AttemptRequest<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) measured: &'a Measured<'a>,
    pub(crate) ask: &'a Ask,
    /// Handle of the original, for the summary's first line.
    pub(crate) handle: &'a str,
    pub(crate) facts: &'a HistoryFacts,
    /// A summary that is already written; otherwise the offline one is written.
    pub(crate) written: Option<&'a str>,
}

pub(crate) fn plan_for(engine: &Engine, measured: &Measured<'_>, ask: &Ask) -> Plan {
    plan_with(engine, measured, ask, None)
}

/// As [`plan_for`], with the size of a summary that is already written.
fn plan_with(engine: &Engine, measured: &Measured<'_>, ask: &Ask, summary_tokens: Option<u64>) -> Plan {
    request::with_request(engine, measured, ask, |request, moment| {
        let request = PlanRequest { summary_tokens, ..request };
        plan::plan(measured.history, &measured.counter, &request, moment)
    })
}

/// Makes a plan and applies it. `None` if the plan does nothing or cannot be applied.
pub(crate) fn attempt(it: &AttemptRequest<'_>) -> Option<Attempt> {
    let plan = plan_for(it.engine, it.measured, it.ask);
    plan.act.then(|| apply_plan(it, plan).ok()).flatten()
}

/// The smallest budget above `refused` whose attempt passes `min_kept`; tries a fixed series of shares.
pub(crate) fn budget_that_keeps(it: &AttemptRequest<'_>, refused: u64, min_kept: &MinKept) -> Option<u64> {
    let budgets =
        [5, 10, 15, 20, 25, 30, 40, 50, 60, 70, 80, 90].map(|share| it.measured.tokens * share / 100);
    budgets.into_iter().filter(|budget| *budget > refused).find(|budget| {
        let ask = it.ask.with_budget(Amount::Tokens(*budget));
        attempt(&AttemptRequest { ask: &ask, ..*it }).is_some_and(|it| min_kept.missed(&it.score).is_none())
    })
}

/// As [`apply_plan`], then retries with smaller budgets until the outcome fits by the model's own tokenizer too, if
/// that is public. An outcome that is too large even by the estimate, because too much must stay, is left
/// alone.
pub(crate) fn apply_within_budget(it: &AttemptRequest<'_>, plan: Plan) -> Result<Attempt, plan::Reason> {
    /// Maximum times that the budget is reduced.
    const TRIES: usize = 6;
    let AttemptRequest { measured, ask, .. } = *it;
    let mut best = apply_plan(it, plan)?;
    let budget = ask.options.budget.map(|it| it.of(measured.tokens));
    let Some((budget, own)) = budget.zip(measured.counter.own_tokenizer()) else { return Ok(best) };
    let mut room = budget;
    for _ in 0..TRIES {
        let messages = best.outcome.history.messages();
        let exact: u64 = messages.iter().filter(|it| plan::counts(it)).map(|it| own.message(it)).sum();
        if exact <= budget || best.outcome.tokens > budget {
            break;
        }
        // 1 % less, so that rounding does not cost another try.
        room = room * budget / exact * 99 / 100;
        let ask = ask.with_budget(Amount::Tokens(room));
        let Some(smaller) = attempt(&AttemptRequest { ask: &ask, ..*it }) else { break };
        best = smaller;
    }
    Ok(best)
}

/// Writes the summary and applies the plan. If the summary is smaller than reserved, plans again with a
/// larger tail. In the end the summary's first line gets the final numbers.
pub(crate) fn apply_plan(it: &AttemptRequest<'_>, mut plan: Plan) -> Result<Attempt, plan::Reason> {
    let AttemptRequest { engine, measured, ask, facts, written, .. } = *it;
    let apply = |plan: &Plan, summary: Option<&str>| {
        let applied = plan::apply(measured.full_history(), &measured.counter, plan, summary);
        applied.map(|mut it| {
            it.history.meta.automatic = ask.cause() != Cause::Manual;
            it
        })
    };
    let score = |outcome: &PlanOutcome| {
        let probes = facts.probes(measured.full_history());
        let count = |it: &Message| measured.counter.message(it);
        score::score_probes(measured.full_history(), probes, &outcome.history, &|_| true, &count)
    };
    let Some(step) = plan.need.as_ref().and_then(|it| ask.profile.summarizing(it.pass)) else {
        let outcome = apply(&plan, None)?;
        let score = score(&outcome);
        let summary = used_snapshot(&plan);
        return Ok(Attempt { plan, outcome, summary, score });
    };
    facts.read(measured.history, measured.full_history());
    let write = |plan: &Plan, header: &str| match written {
        Some(text) => format!("{header}\n{text}"),
        None => summary(it, step, plan, Some(header)),
    };
    let tail_mark = |plan: &Plan| plan::end_mark(&plan::behind(measured.full_history(), plan));
    // A placeholder as long as a header can get: no number has more digits.
    let placeholder_for = |plan: &Plan| header(it, 9_999, 1.0, tail_mark(plan));
    let mut placeholder = placeholder_for(&plan);
    let reserved = plan.need.as_ref().map_or(0, |it| it.max_tokens);
    if written.is_none() {
        events::notify(engine, &Event::Asked { summarizer: "offline".to_owned(), budget: reserved });
    }
    let mut summary = write(&plan, &placeholder);
    let used = measured.counter.text(&Text::new(format!("{}{summary}{}", step.before, step.after))) + 8;
    if used < reserved && matches!(step.keep, Keep::Budget(_)) {
        let wider = plan_with(engine, measured, ask, Some(used));
        if wider.act && wider.need.is_some() {
            plan = wider;
            placeholder = placeholder_for(&plan);
            summary = write(&plan, &placeholder);
        }
    }
    let outcome = apply(&plan, Some(&summary))?;
    let found = score(&outcome);
    let header = header(it, outcome.tokens, found.kept.unwrap_or(1.0), tail_mark(&plan));
    let summary = summary.replacen(&placeholder, &header, 1);
    let outcome = apply(&plan, Some(&summary))?;
    Ok(Attempt { plan, outcome, summary: Some(summary), score: found })
}

/// The offline summary of a plan.
pub(crate) fn summary(
    it: &AttemptRequest<'_>,
    step: &Summarize,
    plan: &Plan,
    header: Option<&str>,
) -> String {
    let AttemptRequest { engine, measured, ask, .. } = *it;
    let Some(need) = &plan.need else { return String::new() };
    let frame = measured.counter.text(&Text::new(format!("{}{}", step.before, step.after)));
    let known = memories::recalled(engine, measured.history, ask);
    let known = known.iter().filter(|it| !ask.options.pin.contains(it));
    let pins: Vec<String> = ask.options.pin.iter().chain(known).cloned().collect();
    let cleared: Vec<usize> = plan
        .ops
        .iter()
        .filter_map(|op| if let Op::Clear(op) | Op::Shorten(op) = op { Some(op.message) } else { None })
        .collect();
    let behind = plan.layout.iter().skip_while(|it| !matches!(it, Segment::Summary { .. }));
    let kept: Vec<usize> = behind
        .filter_map(|it| if let Segment::Old(message) = it { Some(*message) } else { None })
        .filter(|it| (need.from..need.to).contains(it))
        .collect();
    let asked = offline::OfflineRequest {
        region: need.from..need.to,
        cleared: &cleared,
        kept: &kept,
        spec: &step.summary,
        max_tokens: need.max_tokens.saturating_sub(frame + 8),
        budget_for_shares: need.reserved,
        style: ask.options.style,
        focus: ask.options.focus.as_deref(),
        pins: &pins,
        header,
    };
    let ledger = it.facts.ledger(measured.history);
    offline::write(measured.history, ledger, &asked, &|text| measured.counter.text(&Text::new(text)))
}

/// The stored summary that a plan uses instead of a new one.
fn used_snapshot(plan: &Plan) -> Option<String> {
    let is_summary = |it: &&Message| it.kind == history::Kind::Summary && plan.need.is_none();
    let mut made =
        plan.layout.iter().filter_map(|it| if let Segment::Made(it) = it { Some(it) } else { None });
    made.find(is_summary).map(Message::plain)
}

/// The summary's first line: the sizes, what was kept, how to restore the original. `tail_mark`: identifies the
/// kept tail.
pub(crate) fn header(it: &AttemptRequest<'_>, after: u64, kept: f64, tail_mark: Option<String>) -> String {
    let k = |tokens: u64| match tokens {
        0..1000 => tokens.to_string(),
        1000..10_000 => format!("{:.1}k", tokens as f64 / 1000.0),
        _ => format!("{}k", (tokens + 500) / 1000),
    };
    let end = tail_mark.map(|it| format!(" [end {it}]")).unwrap_or_default();
    format!(
        "{SUMMARY_START} {} messages, {} → {} tokens; {:.0} % of the checked facts kept. Full original / undo: epitome restore {}{end}",
        it.measured.history.messages().len(),
        k(it.measured.tokens),
        k(after),
        (kept * 100.0).floor(),
        it.handle,
    )
}
