//! Compaction for a running agent: its messages in, the new history out, the original archived first.
//!
//! An agent that asks is answered even where a profile would leave a small context alone. If the original
//! cannot be archived, there is no answer, and the caller leaves the agent to its own compaction.

pub(super) mod event;
pub(super) mod hook;
pub(super) mod items;
pub mod log;

use std::time::Duration;

use crate::agents::hooks::seat::SeatAsk;
use crate::engine::archive::PlanResult;
use crate::engine::archive::marks::SessionMark;
use crate::engine::compact::attempt::{AttemptRequest, HistoryFacts, header};
use crate::engine::input::measured::Measured;
use crate::engine::write_back::{WrittenFingerprint, agent_of};
use crate::engine::{
    Amount, Ask, CompactOptions, Counting, Engine, Event, Opened, archive, compact::attempt, compact::events,
    compact::memories, input::measured,
};
use crate::store::{Applied, AppliedMode, AuditVerb, Digest};
use compaction::plan::{self, Plan};
use compaction::profile::{Keep, Pass, Profile};
use history::error::{Error, ErrorKind, Result};
use history::verbatim::{self, Prompts};
use history::{History, Kind, Message, Part, Role, Text};
use score::Score;
use sessions::Session;

/// Tokens up to which a context is too small for a plan.
const SMALL: u64 = 3_000;
/// Minimum budget, in tokens, for the tail that such a context keeps word for word.
const SMALL_END: u64 = 1_000;
/// Time limit of each of the user's commands while an agent waits: both together take half of the shortest
/// timeout that a client has.
const HOOK_LIMIT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub struct Seated {
    /// The summary, then the end of the conversation as it was.
    pub history: History,
    /// Handle of the archived original; `None` if the history was left unchanged.
    pub handle: Option<String>,
    pub tokens_before: u64,
    pub tokens_after: u64,
}

impl Seated {
    /// The whole answer as one text, for agents that take no messages.
    pub fn one_text(&self, prompts: Prompts) -> String {
        let messages = self.history.messages();
        let Some(at) = messages.iter().position(is_summary) else {
            return String::new();
        };
        let end = verbatim::render(&messages[at + 1..], prompts);
        format!("{}\n\n{end}", messages[at].plain()).trim_end().to_owned()
    }
}

/// Compacts what a running agent is about to replace. `original` is archived instead of `opened`, if the
/// agent's own file holds more than what it handed over.
///
/// The user's own commands run before and after, as for any compaction that writes something.
///
/// # Errors
/// The conversation has no prompt or answer, the user's command refused, or the original cannot be archived:
/// the agent's own compaction should then go on.
pub fn seat(engine: &Engine, opened: Opened, original: Option<&Opened>, ask: &SeatAsk) -> Result<Seated> {
    let history = without_request(opened.session.history);
    let unchanged = nothing_new(&history);
    let history = numbered(history);
    let opened = Opened { session: Session { history, ..opened.session }, ..opened };
    let history = &opened.session.history;
    let original = original.unwrap_or(&opened);
    let tells = |it: &Message| matches!(it.kind, Kind::Said | Kind::Summary);
    if !history.messages().iter().any(tells) {
        return Err(Error::new(ErrorKind::Refused, "the conversation to compact has no prompt or answer"));
    }
    if !engine.store.keeps() {
        return Err(Error::new(ErrorKind::Refused, "archiving is switched off (persistence = \"none\")"));
    }
    let options = CompactOptions {
        trigger: Some(ask.cause),
        focus: ask.focus.clone(),
        pin: memories::pins(engine, history, &[])?,
        ..CompactOptions::default()
    };
    let counting = Counting { window: ask.window, ..Counting::default() };
    let profile = engine.config.default_profile()?;
    let mut ask = Ask { counting, options, ..Ask::new(profile) };
    let (tokens, window) = {
        let measured = measured::measure(engine, &opened.session, &ask);
        (measured.tokens, measured.limits.window)
    };
    if unchanged {
        return Ok(Seated {
            history: history.clone(),
            handle: None,
            tokens_before: tokens,
            tokens_after: tokens,
        });
    }
    ask.profile = within_window(ask.profile, window, tokens);
    let ask = ask;
    let measured = measured::measure(engine, &opened.session, &ask);
    let started = events::started(&opened, &ask, &measured);
    events::notify(engine, &started);
    events::run_before(engine, &started, HOOK_LIMIT).map_err(|why| Error::new(ErrorKind::Refused, why))?;
    #[cfg(feature = "otel")]
    let begun = std::time::Instant::now();
    let seated = make_and_archive(engine, original, &measured, &ask);
    #[cfg(feature = "otel")]
    events::otel::seated(engine, begun, original, &ask, &seated);
    let ended = match &seated {
        Ok(seated) => Event::Compacted {
            tokens_before: seated.tokens_before,
            tokens_after: seated.tokens_after,
            handle: seated.handle.clone(),
            output: None,
            notice: String::new(),
        },
        Err(error) => Event::Failed { reason_code: "failed".to_owned(), reason: error.to_string() },
    };
    events::notify(engine, &ended);
    if let Some(why) = events::run_after(engine, &ended, HOOK_LIMIT) {
        tracing::warn!("{why}");
    }
    seated
}

/// Makes the new history, archives the original, and notes the compaction for an undo.
fn make_and_archive(
    engine: &Engine,
    original: &Opened,
    measured: &Measured<'_>,
    ask: &Ask,
) -> Result<Seated> {
    let history = measured.history;
    let handle = archive::session_handle(engine, original)?;
    let plan = attempt::plan_for(engine, measured, ask);
    tracing::info!("{} messages, {} tokens; {}", history.messages().len(), measured.tokens, plan.reason.text);
    let facts = HistoryFacts::default();
    let request = AttemptRequest { engine, measured, ask, handle: &handle, facts: &facts, written: None };
    let SeatPlan { plan, after, tokens: tokens_after, score } = choose_outcome(&request, plan);
    let after = with_undo(after, &handle);
    let summary = after.messages().iter().find(|it| is_summary(it)).map(Message::plain);
    let (summary, score) = (summary.as_deref(), score.as_ref());
    let result = PlanResult { plan: &plan, history, tokens: tokens_after, summary, score };
    let archived = archive::archive(engine, original, ask, result)?;
    note_seat(engine, original, &archived.compaction)?;
    let meta = &original.session.history.meta;
    engine.audit_by(
        meta.agent.as_deref(),
        AuditVerb::Compact,
        &engine.scope(history),
        meta.session.as_deref(),
        Some(&archived.session),
    );
    Ok(Seated { history: after, handle: Some(handle), tokens_before: measured.tokens, tokens_after })
}

/// The answer to an agent, with the plan behind it.
struct SeatPlan {
    plan: Plan,
    after: History,
    tokens: u64,
    /// `None` if no plan was applied.
    score: Option<Score>,
}

/// The new history: by the profile; failing that by the profile with a budget of three quarters of the size;
/// failing that by [`minimal_outcome`].
fn choose_outcome(request: &AttemptRequest<'_>, plan: Plan) -> SeatPlan {
    let AttemptRequest { engine, measured, ask, .. } = *request;
    if measured.tokens <= SMALL {
        return minimal_outcome(request);
    }
    let less = ask.with_budget(Amount::Tokens(measured.tokens * 3 / 4));
    let second = attempt::plan_for(engine, measured, &less);
    for (plan, ask) in [(plan, ask), (second, &less)].into_iter().filter(|it| it.0.act) {
        if let Ok(attempt) = attempt::apply_plan(&AttemptRequest { ask, ..*request }, plan)
            && attempt.outcome.history.messages().iter().any(is_summary)
        {
            let (after, tokens) = (attempt.outcome.history, attempt.outcome.tokens);
            return SeatPlan { plan: attempt.plan, after, tokens, score: Some(attempt.score) };
        }
    }
    minimal_outcome(request)
}

/// For a context that no plan makes smaller: the summary's first line, a summary of what is removed, if
/// anything is, and the newest units word for word.
fn minimal_outcome(request: &AttemptRequest<'_>) -> SeatPlan {
    let AttemptRequest { engine, measured, ask, .. } = *request;
    let history = measured.history;
    let messages = history.messages();
    let size = |it: &Message| measured.counter.message(it);
    let (mut tail, mut left) = (messages.len(), (measured.tokens * 3 / 4).clamp(SMALL_END, SMALL));
    for unit in history.units().iter().rev() {
        let tokens: u64 = messages[unit.clone()].iter().map(size).sum();
        if tokens > left || messages[unit.clone()].iter().any(is_summary) {
            break;
        }
        (tail, left) = (unit.start, left - tokens);
    }
    let mut plan = attempt::plan_for(engine, measured, ask);
    (plan.ops, plan.act, plan.split) = (Vec::new(), true, Some(tail));
    plan.need = ask
        .profile
        .passes
        .iter()
        .position(|it| matches!(it, Pass::Summarize(_)))
        .map(|pass| plan::Need { from: 0, to: tail, max_tokens: SMALL, reserved: None, shown_from: 0, pass });
    let after = messages[tail..].iter().map(size).sum::<u64>();
    let first = header(request, after, 1.0, plan::end_mark(&messages[tail..]));
    let (before, text, behind) = match ask.profile.summarize() {
        Some(step) => {
            let text = attempt::summary(request, step, &plan, Some(&first));
            (step.before.replace("{user-messages}", ""), text, step.after.as_str())
        }
        None => (String::new(), first.clone(), ""),
    };
    let text = if text.is_empty() { first } else { text };
    let summary = Message::text(Role::User, Kind::Summary, format!("{before}{text}{behind}"));
    let tokens = after + size(&summary);
    let new = std::iter::once(summary).chain(messages[tail..].iter().cloned()).collect();
    SeatPlan { plan, after: History::new(new, history.meta.clone()), tokens, score: None }
}

/// Notes that the agent writes our answer into its session, so that it can be undone.
fn note_seat(engine: &Engine, original: &Opened, compaction: &str) -> Result<()> {
    let history = &original.session.history;
    let Some(path) = original.path.as_deref().filter(|_| agent_of(original.session.format).is_ok()) else {
        return Ok(());
    };
    let scope = engine.scope(history);
    let mark = WrittenFingerprint {
        len: original.source.len(),
        digest: Digest::of(&original.source.whole()?).to_string(),
        messages: history.messages().len(),
        ..WrittenFingerprint::default()
    };
    let applied = Applied {
        path: Some(path.display().to_string()),
        session: history.meta.session.as_deref().map(str::to_owned),
        mode: AppliedMode::Seat,
        fingerprint: history::json::compact(&mark),
    };
    engine.store.finish(&scope, compaction, &applied)?;
    match history.meta.session.as_deref() {
        Some(id) => engine.store.mark(&scope, &SessionMark::Compacted.of(id), compaction, engine.now),
        None => Ok(()),
    }
}

/// The profile with its share scaled to the model's window instead of the conversation: a user may compact
/// long before the window is full, and a share of little would leave almost nothing. A window smaller than
/// the conversation is ignored.
fn within_window(mut profile: Profile, window: Option<u64>, tokens: u64) -> Profile {
    let times = window.map_or(1.0, |it| it as f64 / tokens.max(1) as f64).max(1.0);
    for pass in &mut profile.passes {
        if let Pass::Summarize(step) = pass
            && let Keep::Budget(budget) = &mut step.keep
        {
            budget.share *= times;
        }
    }
    profile
}

/// Drops the client's own request for a summary from the end.
fn without_request(history: History) -> History {
    let meta = history.meta.clone();
    let mut messages = history.into_messages();
    while messages
        .last()
        .is_some_and(|it| matches!(it.kind, Kind::Marker | Kind::Continue) || it.parts.is_empty())
    {
        messages.pop();
    }
    History::new(messages, meta)
}

/// Whether a history is only our own last answer, as in a second compaction in a row.
fn nothing_new(history: &History) -> bool {
    let messages = history.messages();
    let Some(at) = messages.iter().rposition(is_summary) else { return false };
    let behind = &messages[at + 1..];
    plan::ends_here(&messages[at], behind) || !behind.iter().any(|it| it.kind == Kind::Said)
}

/// Turns the verbatim end of an earlier answer into messages again, and numbers all messages by position.
fn numbered(history: History) -> History {
    let history = verbatim::expanded(&history).map_or(history, |it| it.0);
    let meta = history.meta.clone();
    History::numbered(history.into_messages(), meta)
}

fn is_summary(it: &Message) -> bool {
    it.kind == Kind::Summary
}

/// Puts the complete undo command into the summary's first line.
fn with_undo(history: History, handle: &str) -> History {
    let meta = history.meta.clone();
    let mut messages = history.into_messages();
    let command = format!("epitome restore {handle}");
    let texts = messages
        .iter_mut()
        .filter(|it| is_summary(it))
        .flat_map(|it| &mut it.parts)
        .filter_map(|it| if let Part::Text(text) = it { Some(text) } else { None });
    for text in texts {
        *text = Text::new(text.as_str().replacen(
            &format!("Full original / undo: {command}"),
            &format!("Undo: {command} --apply (or: epitome restore last --apply)"),
            1,
        ));
    }
    History::new(messages, meta)
}
