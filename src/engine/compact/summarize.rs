//! Who writes the summary of a plan: no model (the offline summary), a provider, or, in two calls, the
//! calling agent's model.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use crate::answers::{CostInfo, Next, UsageInfo};
use crate::config::Choice;
use crate::config::profiles;
use crate::engine::compact::attempt::AttemptRequest;
use crate::engine::compact::compacted::{CompactOutcome, Question, Summarizer};
use crate::engine::compact::summary_cost::{affordable, failures_mark, sent_note};
use crate::engine::compact::{CompactJob, Ended};
use crate::engine::input::measured::Measured;
use crate::engine::input::request::one_more;
use crate::engine::{
    Ask, Edit, Engine, Event, HistoryFacts, Opened, archive, compact::attempt, compact::events,
    compact::memories, compact::summary_cost,
};
use crate::llm::http::Http;
use crate::llm::run::{self, Progress, Sampling, Watch};
use compaction::plan::{Need, Plan};
use compaction::profile::{Summarize, SummaryShape, TooLong};
use compaction::summary::dialogue::{self, Dialogue, GaveUp, Step};
use compaction::summary::model::{Endpoint, Reply, Speaker};
use compaction::summary::prompt::PromptOverrides;
use compaction::summary::render;
use compaction::summary::request::{Bounds, INPUT_REDUCTIONS, InputReduction, SummaryRequest};
use history::Text;
use history::error::{Error, ErrorKind, Result};

/// The result of asking for a summary.
#[derive(Default)]
pub(crate) struct SummaryDraft {
    /// What a model wrote; `None` if the offline summary is to be written.
    pub(crate) text: Option<String>,
    pub(crate) by: Summarizer,
    pub(crate) notes: Vec<String>,
}

impl SummaryDraft {
    fn offline(why: impl Into<String>) -> Self {
        Self { notes: vec![why.into()], ..Self::default() }
    }

    fn by_model(text: String, notes: Vec<String>, by: Summarizer, request: &SummaryRequest<'_>) -> Self {
        Self { text: Some(pinned(text, request)), by, notes }
    }
}

/// The answer of the calling agent's model, with the state of the call that asked for it.
pub(crate) struct HostReply {
    pub(crate) state: State,
    pub(crate) answer: String,
}

/// What is kept between the two calls of a host-run summary.
#[derive(Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) session: String,
    pub(crate) format: Option<String>,
    /// Number of messages when the summary was asked for.
    pub(crate) count: usize,
    pub(crate) digest: u64,
    region: (usize, usize),
    dialogue: Dialogue,
    pub(crate) ask: Ask,
}

/// Tokens reserved for the first line of every summary.
const HEADER: u64 = 80;

/// Gets the summary of a plan from whoever is to write it. Ends the job if that is the calling agent's own
/// model, which answers in a second call.
pub(crate) fn draft(job: &CompactJob<'_>, plan: &Plan, facts: &HistoryFacts) -> Result<SummaryDraft, Ended> {
    let CompactJob { engine, ask, measured, .. } = *job;
    let Some(need) = &plan.need else { return Ok(SummaryDraft::default()) };
    let Some(step) = ask.profile.summarizing(need.pass) else { return Ok(SummaryDraft::default()) };
    if ask.writer.summarizer == Choice::Offline {
        return Ok(SummaryDraft::default());
    }
    let excerpts = excerpts(engine, measured, need, step);
    let frame = measured.counter.text(&Text::new(format!("{}{}", step.before, step.after)));
    let own = own_prompts(step);
    let summarizers = &engine.config.summarizers;
    let tries = summarizers.written.tries.map(|it| it.max(1)).or(step.prompts.retries.map(|it| it + 1));
    let language =
        summarizers.written.language.as_deref().or_else(|| dialogue::language_of(measured.history));
    let recalled = memories::recalled(engine, measured.history, ask);
    let pins: Vec<String> = ask.options.pin.iter().cloned().chain(recalled).collect();
    let pinned: u64 = pins.iter().map(|it| measured.counter.str(it) + 6).sum();
    let request = SummaryRequest {
        texts: profiles::text,
        history: measured.history,
        ledger: facts.ledger(measured.history),
        region: need.from..need.to,
        spec: &step.summary,
        max_tokens: need.max_tokens.saturating_sub(frame + HEADER + pinned),
        style: ask.options.style,
        focus: ask.options.focus.as_deref(),
        pins: &pins,
        language,
        own: &own,
        reductions: reductions(step),
        window: None,
        thinking: 0,
        prefix: None,
        host: ask.writer.summarizer == Choice::Host && ask.writer.sampling.is_none(),
        count: &|text| measured.counter.str(text),
        excerpts: &excerpts,
        bounds: Bounds { tries: tries.unwrap_or(summarizers.bounds.tries), ..summarizers.bounds },
    };
    match (&ask.writer.summarizer, &ask.writer.sampling) {
        (Choice::Host, Some(sampling)) => Ok(by_sampling(engine, &request, sampling, ask)?),
        (Choice::Host, None) => by_host(job, plan, &request),
        _ => Ok(by_provider(job, step, need, request)?),
    }
}

/// The region to summarise, redacted.
fn excerpts(engine: &Engine, measured: &Measured<'_>, need: &Need, step: &Summarize) -> Vec<render::Excerpt> {
    let redactor = &engine.config.redactor;
    let shown = need.shown_from..need.to;
    let mut excerpts = render::excerpts(measured.history, shown, &|text| redactor.redact(text));
    if let Some(chars) = step.prompts.output_chars {
        for it in excerpts.iter_mut().filter(|it| it.output) {
            shorten(&mut it.text, chars);
        }
    }
    excerpts
}

fn own_prompts(step: &Summarize) -> PromptOverrides {
    let prompt = |name: &Option<String>| name.as_deref().map(|it| profiles::prompt(it).to_owned());
    PromptOverrides {
        system: prompt(&step.prompts.system),
        ask: prompt(&step.prompts.ask),
        again: prompt(&step.prompts.again),
        verify: prompt(&step.prompts.verify),
    }
}

/// The endpoint with the model that the profile names for its provider, unless the user names one.
fn as_profiled(job: &CompactJob<'_>, step: &Summarize, endpoint: Endpoint, thinking: u64) -> (Endpoint, u64) {
    let CompactJob { engine, ask, measured, .. } = *job;
    let prompts = &step.prompts;
    if prompts.provider.as_ref() != Some(&endpoint.provider)
        || ask.writer.endpoint.model.is_some()
        || engine.config.summarizers.names_model(&endpoint.provider)
    {
        return (endpoint, thinking);
    }
    let session = measured.limits.model.unwrap_or_default();
    match prompts.asked_model(session) {
        Some(model) => engine.config.summarizers.with_model(endpoint, model),
        None => (endpoint, thinking),
    }
}

fn by_provider(
    job: &CompactJob<'_>,
    step: &Summarize,
    need: &Need,
    request: SummaryRequest<'_>,
) -> Result<SummaryDraft> {
    let CompactJob { engine, ask, .. } = *job;
    let summarizers = &engine.config.summarizers;
    let writer = &ask.writer;
    let environment = &engine.config.environment;
    let chosen = summarizers.endpoint(&writer.summarizer, environment, writer.trusted, &writer.endpoint);
    // Without a key, the offline summary is written.
    let (endpoint, thinking) = match chosen {
        Ok(Some(chosen)) => chosen,
        Ok(None) => {
            return Ok(SummaryDraft::offline(
                "no provider API key was found; the offline summary was written",
            ));
        }
        Err(error) if error.kind() == ErrorKind::Provider => {
            return Ok(SummaryDraft::offline(offline_instead(&error.full())));
        }
        Err(error) => return Err(error),
    };
    let (endpoint, thinking) = as_profiled(job, step, endpoint, thinking);
    if let (Some(why), false) = (summary_cost::refusal(engine, &endpoint)?, writer.dry) {
        return Ok(SummaryDraft::offline(offline_instead(&why)));
    }
    let mut request = SummaryRequest { window: endpoint.window, thinking, ..request };
    let (cost, prefix) = summary_cost::cost(job, need, &request, &endpoint);
    if writer.dry {
        let by = Summarizer { cost: Some(cost), ..Summarizer::default() };
        return Ok(SummaryDraft {
            by,
            ..SummaryDraft::offline("dry run: no model was asked, this is the offline summary")
        });
    }
    request.prefix = prefix.as_ref();
    if let Some(most) = summarizers.written.dollars_per_call {
        let price = engine.config.prices.of(&endpoint.model).ok();
        request.bounds.tokens = request.bounds.tokens.min(affordable(most, price, request.max_tokens));
    }
    ask_provider(engine, &request, &endpoint, ask, cost)
}

/// Asks a provider for the summary and counts its failures.
fn ask_provider(
    engine: &Engine,
    request: &SummaryRequest<'_>,
    endpoint: &Endpoint,
    ask: &Ask,
    cost: CostInfo,
) -> Result<SummaryDraft> {
    let mut dialogue = Dialogue::new(engine.now.unsigned_abs());
    events::notify(engine, &Event::Asked { summarizer: endpoint.label(), budget: request.max_tokens });
    let watch = watching(engine, &ask.writer.watch, request.bounds.tries);
    let began = std::time::Instant::now();
    let provider = Http::new(endpoint.clone(), engine.config.summarizers.limits)?;
    let result = run::with_transport(&mut dialogue, request, &provider, &watch)?;
    // The summary is paid for already: a locked store must not lose it.
    let uncounted = summary_cost::count(engine, endpoint, &dialogue, began.elapsed())
        .err()
        .map(|error| format!("the usage could not be counted toward the hourly limits: {}", error.full()));
    match result {
        None => {
            if let Some(why) = uncounted {
                tracing::warn!("{why}");
            }
            Err(cancelled())
        }
        Some(Ok((text, mut notes))) => {
            let not_recorded =
                engine.store.unmark(&engine.shared(), &failures_mark(endpoint)).err().map(not_recorded);
            let who = dialogue
                .model
                .as_deref()
                .map_or_else(|| endpoint.label(), |it| format!("{}/{it}", endpoint.provider));
            notes.extend(sent_note(endpoint, &dialogue));
            notes.extend(uncounted.into_iter().chain(not_recorded));
            let cost = Some(cost.spent(summary_cost::spent(engine, endpoint, &dialogue)));
            let by = Summarizer { name: who, usage: usage(&dialogue), cost };
            Ok(SummaryDraft::by_model(text, notes, by, request))
        }
        Some(Err(why)) => {
            // Hitting the user's own limit is not the provider's failure, unless it was asked and never
            // answered.
            let failed =
                !matches!(why, GaveUp::Bound(_)) || (dialogue.requests > 0 && dialogue.model.is_none());
            let more = |old| one_more(old, engine.now);
            let count = || engine.store.update_mark(&engine.shared(), &failures_mark(endpoint), &more);
            let noted = if failed { count() } else { Ok(()) };
            let mut draft = SummaryDraft::offline(offline_instead(&why.sentence(Some(endpoint))));
            draft.notes.extend(sent_note(endpoint, &dialogue));
            draft.notes.extend(uncounted.into_iter().chain(noted.err().map(not_recorded)));
            Ok(draft)
        }
    }
}

/// The caller's watch, which also reports each retry to the listener.
fn watching(engine: &Engine, watch: &Watch, tries: u32) -> Watch {
    let Some(listener) = engine.listener.clone() else { return watch.clone() };
    let (progress, number) = (watch.progress.clone(), AtomicU32::new(0));
    let tell = move |it: &Progress| {
        match it {
            Progress::Waiting(why) => {
                let number = number.fetch_add(1, Ordering::Relaxed) + 1;
                listener(&Event::Retry { number, of: tries.saturating_sub(1), why: why.clone() });
            }
            // The provider is answering: the next failure belongs to another request.
            Progress::Writing(..) => number.store(0, Ordering::Relaxed),
            Progress::Asking(_) => {}
        }
        if let Some(progress) = &progress {
            progress(it);
        }
    };
    Watch { progress: Some(Arc::new(tell)), cancel: watch.cancel.clone() }
}

/// MCP sampling: the calling client asks its own model on our behalf.
fn by_sampling(
    engine: &Engine,
    request: &SummaryRequest<'_>,
    sampling: &Sampling,
    ask: &Ask,
) -> Result<SummaryDraft> {
    let mut dialogue = Dialogue::new(engine.now.unsigned_abs());
    events::notify(engine, &Event::Asked { summarizer: "host".to_owned(), budget: request.max_tokens });
    let watch = watching(engine, &ask.writer.watch, request.bounds.tries);
    match run::with_transport(&mut dialogue, request, sampling, &watch)? {
        None => Err(cancelled()),
        Some(Ok((text, notes))) => {
            let who = dialogue.model.as_deref().map_or_else(|| "host".to_owned(), |it| format!("host/{it}"));
            let by = Summarizer { name: who, usage: usage(&dialogue), cost: None };
            Ok(SummaryDraft::by_model(text, notes, by, request))
        }
        Some(Err(why)) => Ok(SummaryDraft::offline(offline_instead(&why.sentence(None)))),
    }
}

/// The calling agent's model writes the summary: the first call returns the prompt, the second reads the
/// answer.
fn by_host(job: &CompactJob<'_>, plan: &Plan, request: &SummaryRequest<'_>) -> Result<SummaryDraft, Ended> {
    let CompactJob { engine, opened, ask, measured, reply, .. } = *job;
    let mut dialogue =
        reply.map_or_else(|| Dialogue::new(engine.now.unsigned_abs()), |it| it.state.dialogue.clone());
    if let Some(reply) = reply {
        if reply.state.region != (request.region.start, request.region.end) {
            let why = "the plan changed since the summary was asked for; the offline summary was written";
            return Ok(SummaryDraft::offline(why));
        }
        dialogue.on_reply(request, Ok(Reply { text: reply.answer.clone(), ..Reply::default() }), 0);
    }
    match dialogue.next(request) {
        Step::Done(text, notes) => {
            let by = Summarizer { name: "host".to_owned(), usage: usage(&dialogue), cost: None };
            Ok(SummaryDraft::by_model(text, notes, by, request))
        }
        Step::GaveUp(why) => Ok(SummaryDraft::offline(offline_instead(&why.sentence(None)))),
        // The dialogue asks for a pause before a retry, which a host cannot make: use the offline summary.
        Step::Wait(..) => Ok(SummaryDraft::default()),
        Step::Ask(asked) => {
            let state = State {
                session: reopenable_name(engine, opened)?,
                format: Some(opened.session.format.name().to_owned()),
                count: measured.history.messages().len(),
                digest: plan.made_for.digest,
                region: (request.region.start, request.region.end),
                dialogue,
                ask: ask.clone(),
            };
            let scope = engine.scope(measured.history);
            let handle = engine.store.put_ask(&scope, &history::json::compact(&state), engine.now)?;
            let handle = handle.as_str().to_owned();
            let next = Next::model(format!(
                "write the summary as `ask` says, then call again with handle {handle} and the summary as answer"
            ));
            // Earlier turns are in the caller's context already.
            let mut turns = asked.turns.iter().filter(|it| it.speaker == Speaker::Us);
            let text = if reply.is_some() { turns.next_back() } else { turns.next() };
            let ask = text.map(|it| it.text.clone()).unwrap_or_default();
            let reason = plan.reason.text.clone();
            Err(CompactOutcome::NeedsAnswer(Question { handle, ask, next, reason }).into())
        }
    }
}

/// A name by which the second call can open the session: its path, or the handle of an archived copy.
fn reopenable_name(engine: &Engine, opened: &Opened) -> Result<String> {
    if let Some(path) = &opened.path {
        return Ok(path.display().to_string());
    }
    Ok(archive::archive_session(engine, opened)?.as_str().to_owned())
}

/// The summary as edited by the user, with the user's lines marked.
pub(crate) fn edited(request: &AttemptRequest<'_>, plan: &Plan, edit: &Edit) -> Result<Option<String>> {
    let Some(step) = plan.need.as_ref().and_then(|it| request.ask.profile.summarizing(it.pass)) else {
        return Ok(None);
    };
    let before = request.written.map_or_else(|| attempt::summary(request, step, plan, None), str::to_owned);
    let after = (edit.0)(&before)?;
    Ok(Some(marked(&before, &after, step.summary.shape)))
}

/// Truncates a text to `chars` characters and appends a note, as OpenCode 1.18 does.
fn shorten(text: &mut String, chars: usize) {
    if let Some((at, _)) = text.char_indices().nth(chars) {
        text.truncate(at);
        text.push_str("\n[truncated]");
    }
}

fn not_recorded(error: Error) -> String {
    format!("the provider's success or failure could not be recorded: {}", error.full())
}

fn cancelled() -> Error {
    Error::new(ErrorKind::Provider, "the compaction was cancelled; nothing was changed")
}

fn offline_instead(why: &str) -> String {
    format!("{why}; the offline summary was written instead")
}

fn usage(dialogue: &Dialogue) -> UsageInfo {
    UsageInfo {
        requests: dialogue.requests,
        input: dialogue.tokens.input + dialogue.tokens.cache_read + dialogue.tokens.cache_write,
        output: dialogue.tokens.output,
        cache_read: dialogue.tokens.cache_read,
    }
}

/// How input that is too long is reduced, step by step; the last resort is to summarize it in chunks.
fn reductions(step: &Summarize) -> &'static [InputReduction] {
    match step.too_long {
        TooLong::Fails => &INPUT_REDUCTIONS,
        TooLong::Oldest | TooLong::Rounds(_) => &[
            InputReduction::Whole,
            InputReduction::Oldest(99),
            InputReduction::Outputs(2_000),
            InputReduction::Chunks,
        ],
    }
}

/// A summary with the pinned texts, word for word, at its top.
fn pinned(text: String, request: &SummaryRequest<'_>) -> String {
    let lines: String = request.pins.iter().map(|it| format!("- pinned: {it}\n")).collect();
    match request.spec.root.as_deref().filter(|_| request.spec.shape == SummaryShape::Xml) {
        _ if lines.is_empty() => text,
        Some(root) => text.replacen(&format!("<{root}>\n"), &format!("<{root}>\n{lines}"), 1),
        None => format!("{lines}\n{text}"),
    }
}

/// `after`, with a mark on every line that is not in `before`.
fn marked(before: &str, after: &str, shape: SummaryShape) -> String {
    let old: std::collections::BTreeSet<&str> = before.lines().map(str::trim).collect();
    let frame = |line: &str| match shape {
        SummaryShape::Markdown => line.starts_with('#'),
        SummaryShape::Xml => line.starts_with('<'),
        SummaryShape::Plain => line.ends_with(':'),
    };
    let line = |line: &str| match line.trim() {
        it if it.is_empty() || old.contains(it) || frame(it) => line.to_owned(),
        _ => format!("{line} [the user's own words]"),
    };
    after.trim().lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_changed_is_marked() {
        let out = marked("## Goal\n- a\n- b", "## Goal\n- a\n- c\n\n## New\n", SummaryShape::Markdown);
        assert_eq!(out, "## Goal\n- a\n- c [the user's own words]\n\n## New");
    }
}
