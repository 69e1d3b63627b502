//! The `prune` verb: clears tool outputs as a profile does.

use std::path::Path;

use crate::agents::write_back::Operation;
use crate::answers::{NextCost, PruneAnswer, Status};
use crate::engine::archive::PlanResult;
use crate::engine::input::measured::warnings;
use crate::engine::inspect::session_cost::AfterChange;
use crate::engine::{
    Ask, Engine, Opened, To, archive, input::measured, input::request, inspect::session_cost, pruned,
    session_info, write_back, write_back::readback,
};
use crate::files::Reading;
use crate::store::AuditVerb;
use compaction::plan::{self, PlanOutcome, PlanRequest};
use history::History;
use history::error::{Error, ErrorKind, Result};
use sessions::Mode;

/// Clears, shortens or moves away tool outputs as `ask.profile` does.
///
/// # Errors
///
/// The original cannot be archived, or the result cannot be written where `ask.to` says. Nothing is changed
/// then.
pub fn prune(engine: &Engine, opened: &Opened, ask: &Ask) -> Result<PruneAnswer> {
    let ask = &request::with_agent_settings(engine, ask);
    let measured = measured::measure(engine, &opened.session, ask);
    let plan = request::with_request(engine, &measured, ask, |request, moment| {
        let request = PlanRequest { prune_only: true, ..request };
        plan::plan(measured.history, &measured.counter, &request, moment)
    });
    let mut answer = PruneAnswer {
        session: session_info(opened),
        profile: ask.profile.name.clone(),
        tokens_before: plan.tokens_before,
        tokens_after: plan.tokens_before,
        reason_code: plan.reason.code.to_owned(),
        reason: engine.hinted(plan.reason.text.clone(), plan.reason.hint),
        prefix_tokens: plan.tokens_before,
        warnings: warnings(engine, opened, &measured),
        ..PruneAnswer::default()
    };
    if !plan.act {
        return Ok(answer);
    }
    let outcome = match plan::apply(measured.history, &measured.counter, &plan, None) {
        Ok(outcome) => outcome,
        Err(rejected) => {
            answer.reason_code = rejected.code.to_owned();
            answer.reason = rejected.text;
            return Ok(answer);
        }
    };
    answer.pruned = pruned(&plan.ops);
    answer.tokens_after = outcome.tokens;
    answer.first_changed = Some(outcome.first_changed);
    answer.prefix_tokens = outcome.prefix_tokens;
    answer.status = Status::Planned;
    if engine.config.costs {
        let after = AfterChange { tokens: outcome.tokens, prefix: outcome.prefix_tokens, asked: 0.0 };
        let cost = session_cost::next_cost(engine, &measured, ask, Some(after));
        answer.pays_after_requests = cost.pays_after_requests;
        answer.warnings.extend(lost_cache(&cost));
    }
    let (history, tokens) = (&opened.session.history, outcome.tokens);
    let result = PlanResult { plan: &plan, history, tokens, summary: None, score: None };
    deliver(engine, opened, ask, result, &outcome, &mut answer)?;
    if let Some(handle) = &answer.handle {
        let (scope, session) = (engine.scope(measured.history), measured.history.meta.session.as_deref());
        engine.audit(AuditVerb::Prune, &scope, session, Some(handle));
    }
    Ok(answer)
}

/// Archives the session, and delivers the pruned one as `ask.to` says.
fn deliver(
    engine: &Engine,
    opened: &Opened,
    ask: &Ask,
    result: PlanResult<'_>,
    outcome: &PlanOutcome,
    answer: &mut PruneAnswer,
) -> Result<()> {
    match &ask.to {
        To::Session => {
            let archived = archive::archive(engine, opened, ask, result)?;
            let (installed, warnings) = write_back::install(
                engine,
                opened,
                &outcome.history,
                Operation::Prune,
                &archived.compaction,
            )?;
            answer.warnings.extend(warnings);
            answer.handle = Some(archived.session);
            answer.status = Status::Pruned;
            answer.output = Some(installed.output);
            answer.session_id = Some(installed.session_id);
            answer.resume = Some(installed.resume);
            answer.takes_effect = Some(installed.takes_effect);
            answer.next = installed.next;
        }
        // The caller will apply the edits: the originals must be archived by then.
        To::Bytes => {
            answer.handle = Some(archive::archive(engine, opened, ask, result)?.session);
        }
        To::File(path) => {
            answer.handle = Some(archive::archive(engine, opened, ask, result)?.session);
            answer.warnings.extend(write(path, opened, ask, &outcome.history)?);
            answer.status = Status::Pruned;
            answer.output = Some(path.display().to_string());
        }
        To::Plan => {}
        To::Agent(_) => {
            let what = "pruning: expected a session or a file for the result, found another agent";
            return Err(Error::new(ErrorKind::Arguments, what));
        }
    }
    Ok(())
}

/// Writes the pruned history to a file; returns warnings on what its format cannot express.
fn write(path: &Path, opened: &Opened, ask: &Ask, after: &History) -> Result<Vec<String>> {
    if let Some(api) = ask.messages_as {
        let (bytes, _) = sessions::wire::messages_of(after, Some(opened.session.format), api);
        return crate::files::install(path, &bytes).map(|()| Vec::new());
    }
    let written = readback::write_and_verify(opened, after, Mode::Patch)?;
    let content = written.over(&*opened.source);
    crate::files::install_from(path, &mut Reading::of(&content))?;
    Ok(written.warnings)
}

/// A lost cache that is paid back within this many requests is not reported.
const SOON_PAID: u64 = 3;

/// A warning if clearing early outputs loses more of the cache than it soon saves.
fn lost_cache(cost: &NextCost) -> Option<String> {
    let (next, first, date) =
        (cost.next_dollars?, cost.after_first_dollars?, cost.prices.as_deref()?.get(..10)?);
    let when = match cost.pays_after_requests {
        Some(it) if it <= SOON_PAID => return None,
        Some(it) => format!("which is recouped after {it} requests"),
        None => "which is never recouped".to_owned(),
    };
    Some(format!(
        "the provider's cache is lost from the first cleared output on: the next request costs ${first:.4} instead of ${next:.4}, \
         {when} (prices of {date})"
    ))
}
