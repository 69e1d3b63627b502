//! Handles an agent's hooks: notes the caller, archives the original before the agent compacts, adds what
//! must survive to the compaction prompt, adds once what the summary left out, and reminds when the context
//! crosses a threshold.

use crate::agents::hooks::{self, AfterCompaction, HookEvent, HookMoment};
use crate::answers::NextCost;
use crate::engine::archive::marks::SessionMark;
use crate::engine::archive::recall::history_of;
use crate::engine::inspect::estimate::SOON_IF_EXPIRED;
use crate::engine::{
    Ask, Engine, Opened, SessionRef, archive, compact::memories, input::caller, input::measured, input::open,
    inspect::session_cost, prune,
};
use crate::store::{NewMemory, Scope};
use compaction::facts::{self, Topic};
use history::error::Result;
use history::{History, Kind, Message, Role, Text};
use tokens::{self, Estimator};

/// Token limit of the text added to a compaction prompt.
const MAX_PINNED_TOKENS: u64 = 1_000;
/// Token limit of the text added after a compaction.
const MAX_AFTER_TOKENS: u64 = 1_500;
/// Share of the window from which a reminder is given.
const REMIND_SHARE: f64 = 0.8;
/// Share of the window below which the reminder is armed again.
const REARM_SHARE: f64 = 0.6;
/// Minimum milliseconds between two reminders: 10 minutes.
const REMIND_AGAIN_MS: i64 = 600_000;
/// Milliseconds after a compaction of ours within which an agent runs its hooks.
const HOOKS_AFTER_SEAT_MS: i64 = 60_000;
/// Value of the reminder's mark once the context is small again.
const ARMED: &str = "armed";

/// Handles an event; returns the text for the model, empty if there is none.
///
/// # Errors
///
/// An event without what it needs, or a store that cannot be written.
pub fn hook(engine: &Engine, event: &HookEvent) -> Result<String> {
    let cwd = event.cwd.as_ref().unwrap_or(&engine.config.agents.cwd);
    let scope = engine.scope_of(crate::files::canonical(cwd).display().to_string());
    let no_text = |()| String::new();
    match event.moment {
        HookMoment::Start => caller::record(engine, &scope, event).map(no_text),
        HookMoment::StartCompacted => {
            caller::record(engine, &scope, event)?;
            let done = compacted_by_us(engine, event, &scope)?;
            if done { Ok(String::new()) } else { after_compaction(engine, event, &scope) }
        }
        HookMoment::BeforeCompaction => before_compaction(engine, event, &scope),
        HookMoment::BeforeCheck => keep_original(engine, &hook_session(engine, event)?, &scope).map(no_text),
        HookMoment::AfterCompaction if compacted_by_us(engine, event, &scope)? => Ok(String::new()),
        HookMoment::AfterCompaction => note_compaction(engine, event, &scope).map(no_text),
        HookMoment::Turn => turn(engine, event, &scope),
        HookMoment::End | HookMoment::Other => Ok(String::new()),
    }
}

/// Whether Epitome itself made the agent's last compaction; then the hook adds nothing.
fn compacted_by_us(engine: &Engine, event: &HookEvent, scope: &Scope) -> Result<bool> {
    let mark = engine.store.marked(scope, &SessionMark::Compacted.of(&event.session))?;
    let ours = |it: &crate::store::Mark| {
        crate::store::Handle::parse(&it.value).is_some()
            && engine.now.saturating_sub(it.at) < HOOKS_AFTER_SEAT_MS
    };
    Ok(mark.as_ref().is_some_and(ours))
}

fn hook_session(engine: &Engine, event: &HookEvent) -> Result<Opened> {
    let name = match &event.path {
        Some(path) => path.display().to_string(),
        None => event.session.clone(),
    };
    open::open(engine, &SessionRef::Named(name), None, Some(event.agent.name()))
}

/// Archives a session as it is, and notes its handle.
fn keep_original(engine: &Engine, opened: &Opened, scope: &Scope) -> Result<()> {
    let handle = archive::archive_session(engine, opened)?;
    if let Some(id) = &opened.session.history.meta.session {
        engine.store.mark(scope, &SessionMark::Before.of(id), handle.as_str(), engine.now)?;
    }
    Ok(())
}

fn before_compaction(engine: &Engine, event: &HookEvent, scope: &Scope) -> Result<String> {
    let opened = hook_session(engine, event)?;
    keep_original(engine, &opened, scope)?;
    if !event.agent.info().hooks.reply_reaches_model_at.contains(&event.moment) {
        return Ok(String::new());
    }
    let history = &opened.session.history;
    let sections = [
        ("Must hold", &[Topic::Constraints, Topic::Decisions][..]),
        ("Last request and what is open", &[Topic::Last, Topic::Active, Topic::Open]),
    ];
    let mut text = memories::pins_and_facts(engine, history, &sections, MAX_PINNED_TOKENS - 40, None)?;
    if event.agent.info().hooks.wants_sections {
        // This agent reads no instruction files: the prompt gets the profile's sections and recalled memories
        // too.
        text = [profile_template(engine), recalled_memories(engine, history)?, text]
            .into_iter()
            .filter(|it| !it.trim().is_empty())
            .collect::<Vec<_>>()
            .join("\n\n");
    }
    if text.trim().is_empty() {
        return Ok(String::new());
    }
    Ok(format!(
        "Carry these facts into the summary word for word; they were checked against the conversation:\n\n{text}"
    ))
}

/// The sections that the configured profile wants, for a client that takes them into its own prompt.
fn profile_template(engine: &Engine) -> String {
    let Ok(profile) = engine.config.default_profile() else { return String::new() };
    let Some(step) = profile.summarize() else { return String::new() };
    let titles: Vec<String> = step.summary.sections.iter().map(|it| format!("## {}", it.title)).collect();
    format!("Use these sections:\n{}", titles.join("\n"))
}

/// The project's memories that the configured profile adds to a summary.
fn recalled_memories(engine: &Engine, history: &History) -> Result<String> {
    let ask = Ask::new(engine.config.default_profile()?);
    let lines: Vec<String> =
        memories::recalled(engine, history, &ask).iter().map(|it| format!("- {it}")).collect();
    Ok(if lines.is_empty() { String::new() } else { format!("Known of the project:\n{}", lines.join("\n")) })
}

/// The text for a session that continues after the agent's compaction: what the summary left out or, for an
/// agent that has no summary yet at that moment, what would be worst to lose.
fn after_compaction(engine: &Engine, event: &HookEvent, scope: &Scope) -> Result<String> {
    let opened = hook_session(engine, event)?;
    let history = &opened.session.history;
    match event.agent.info().hooks.after {
        AfterCompaction::Missing => {
            let Some(before) = original(engine, scope, event)? else { return Ok(String::new()) };
            Ok(missing(&before, history))
        }
        AfterCompaction::Facts => {
            let sections = [
                ("Must hold", &[Topic::Constraints][..]),
                ("Open", &[Topic::Active, Topic::Open]),
                ("Last request", &[Topic::Last]),
            ];
            let text = memories::pins_and_facts(engine, history, &sections, MAX_AFTER_TOKENS - 40, None)?;
            Ok(if text.is_empty() { text } else { format!("From before the compaction:\n\n{text}") })
        }
        AfterCompaction::Nothing => Ok(String::new()),
    }
}

/// The history that was archived before the agent compacted.
fn original(engine: &Engine, scope: &Scope, event: &HookEvent) -> Result<Option<History>> {
    let Some(mark) = engine.store.marked(scope, &SessionMark::Before.of(&event.session))? else {
        return Ok(None);
    };
    let scope = engine.store.locate(&mark.value, &engine.config.owner)?;
    history_of(engine, &scope, &mark.value).map(Some)
}

/// After the agent's own compaction: remembers its summary, and notes what it lacks for the next turn.
fn note_compaction(engine: &Engine, event: &HookEvent, scope: &Scope) -> Result<()> {
    engine.store.mark(scope, &SessionMark::Compacted.of(&event.session), event.agent.name(), engine.now)?;
    let hooks = &event.agent.info().hooks;
    let summary = match &event.summary {
        Some(summary) => Some(summary.clone()),
        None if hooks.summary_in_session => {
            let opened = hook_session(engine, event)?;
            opened.session.past.last().map(|it| it.summary.clone())
        }
        None => None,
    };
    let Some(summary) = summary.filter(|it| !it.trim().is_empty()) else { return Ok(()) };
    engine.store.remember(scope, &NewMemory::summary(&event.session, &summary), engine.now)?;
    if hooks.missing_at_turn
        && let Some(before) = original(engine, scope, event)?
    {
        let after = vec![Message::text(Role::User, Kind::Summary, Text::new(summary))];
        let text = missing(&before, &History::new(after, before.meta.clone()));
        // These facts quote the session, and the store must not hold its secrets.
        let text = engine.config.redactor.redact(&text);
        if !text.is_empty() {
            engine.store.mark(scope, &SessionMark::Missing.of(&event.session), &text, engine.now)?;
        }
    }
    Ok(())
}

/// Called at least once a turn. Returns what a summary left out (once), else the reminder if it is due.
fn turn(engine: &Engine, event: &HookEvent, scope: &Scope) -> Result<String> {
    let missing = SessionMark::Missing.of(&event.session);
    // Hooks of parallel tool calls run at the same time: only the one that removes the mark adds the text.
    if let Some(mark) = engine.store.marked(scope, &missing)?
        && engine.store.unmark(scope, &missing)?
    {
        return Ok(mark.value);
    }
    match reported_context(engine, event, scope)? {
        Some((tokens, window)) => reminder(engine, event, scope, tokens, window),
        None => Ok(String::new()),
    }
}

/// The tokens of the context that the provider reported since the last compaction, and the window. `None` too
/// if reminders are switched off.
fn reported_context(engine: &Engine, event: &HookEvent, scope: &Scope) -> Result<Option<(u64, u64)>> {
    let path = event.path.as_deref().filter(|_| engine.config.hooks.reminder);
    let Some((path, reported)) = path.and_then(|it| Some((it, hooks::reported(event.agent, it)?))) else {
        return Ok(None);
    };
    let compacted = engine.store.marked(scope, &SessionMark::Compacted.of(&event.session))?;
    if compacted.is_some_and(|mark| reported.at.is_some_and(|at| at < mark.at)) {
        return Ok(None);
    }
    let known = reported.model.as_deref().and_then(|it| engine.config.window(it));
    let window = hooks::window(path).or(known).filter(|it| *it > 0);
    Ok(window.map(|it| (reported.tokens, it)))
}

/// The reminder that the context is nearly full: again only after it was small, or that its cache expired.
fn reminder(engine: &Engine, event: &HookEvent, scope: &Scope, tokens: u64, window: u64) -> Result<String> {
    let share = tokens as f64 / window as f64;
    let name = SessionMark::Reminded.of(&event.session);
    let last = engine.store.marked(scope, &name)?;
    if share < REARM_SHARE
        && let Some(last) = &last
    {
        engine.store.mark(scope, &name, ARMED, last.at)?;
    }
    let lately =
        last.is_some_and(|it| it.value == ARMED && engine.now.saturating_sub(it.at) < REMIND_AGAIN_MS);
    if share * 100.0 >= SOON_IF_EXPIRED && share < REMIND_SHARE {
        return expiry(engine, event, scope, share);
    }
    if share < REMIND_SHARE || lately || !engine.store.mark_anew(scope, &name, "given", engine.now)? {
        return Ok(String::new());
    }
    let opened = hook_session(engine, event).ok();
    let cost = opened.as_ref().and_then(|it| next_cost(engine, it));
    let cost = cost.map(|it| format!(" Costs: {}.", it.why)).unwrap_or_default();
    let prunable = opened.as_ref().and_then(|it| prunable(engine, it));
    let prunable = prunable.map(|it| format!(", {it} of them in old tool outputs")).unwrap_or_default();
    Ok(format!(
        "The context is {:.0} % full ({tokens} of {window} tokens{prunable}). At a good moment call prune_tool_outputs or \
         summarize_history with \"to\": \"session\".{cost}",
        share * 100.0
    ))
}

/// A reminder, once per expiry, that the provider's cache has expired while the context is half full: a
/// compaction then loses no cache. Only on a prompt: within a turn the cache does not expire.
fn expiry(engine: &Engine, event: &HookEvent, scope: &Scope, share: f64) -> Result<String> {
    if !event.is_prompt() || !engine.config.costs {
        return Ok(String::new());
    }
    let cost = hook_session(engine, event).ok().and_then(|it| next_cost(engine, &it));
    let Some(cost) = cost.filter(|it| it.is_expired(engine.now) && it.pays_after_requests == Some(1)) else {
        return Ok(String::new());
    };
    let (name, until) = (SessionMark::Expired.of(&event.session), cost.warm_until.unwrap_or_default());
    if engine.store.marked(scope, &name)?.is_some_and(|it| it.value == until) {
        return Ok(String::new());
    }
    engine.store.mark(scope, &name, &until, engine.now)?;
    Ok(format!(
        "The context is {:.0} % full and the provider's cache of it has expired, so a compaction now loses no cached \
         tokens: call summarize_history with \"to\": \"session\" unless little is left to do. Costs: {}.",
        share * 100.0,
        cost.why
    ))
}

/// What the next request costs; `None` if costs are switched off or no figure can be given.
fn next_cost(engine: &Engine, opened: &Opened) -> Option<NextCost> {
    let profile = engine.config.costs.then(|| engine.config.default_profile())?;
    let ask = Ask::new(profile.ok()?);
    let measured = measured::measure(engine, &opened.session, &ask);
    Some(session_cost::next_cost(engine, &measured, &ask, None)).filter(|it| it.cached.is_some())
}

/// Tokens that a prune by the configured profile would save.
fn prunable(engine: &Engine, opened: &Opened) -> Option<u64> {
    let ask = Ask::new(engine.config.default_profile().ok()?);
    let answer = prune::prune(engine, opened, &ask).ok()?;
    Some(answer.tokens_before.saturating_sub(answer.tokens_after)).filter(|it| *it > 0)
}

/// The facts of `before` that `after` does not say, heaviest first, within [`MAX_AFTER_TOKENS`] tokens.
fn missing(before: &History, after: &History) -> String {
    let count = |text: &str| Estimator::O200k.text(text);
    let lost = score::score(before, after, &|_| true, &|_| 0).lost;
    let mut out = String::from("The summary left these out:");
    let mut used = count(&out);
    let mut any = false;
    for loss in &lost {
        let line = format!("\n- {}", facts::flat(&loss.text));
        let cost = count(&line) + 1;
        if used + cost > MAX_AFTER_TOKENS {
            break;
        }
        used += cost;
        any = true;
        out.push_str(&line);
    }
    if any { out } else { String::new() }
}
