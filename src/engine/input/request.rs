//! What a plan is made from besides the history: the request, the moment, and what earlier compactions stored
//! (summaries, consecutive failures).

use std::path::PathBuf;

use crate::engine::archive::marks::SessionMark;
use crate::engine::input::measured::Measured;
use crate::engine::{Ask, Engine, write_back};
use crate::store::{Digest, Handle, Mark};
use compaction::facts;
use compaction::plan::{Moment, PlanRequest, Snapshot};
use compaction::profile::Pass;
use history::History;
use history::error::{Error, ErrorKind, Result};

/// How a placeholder tells a reader to get the original: a shell command, or the tool of the same name.
const RECALL: &str = "epitome recall {handle}";

#[derive(serde::Serialize, serde::Deserialize)]
struct StoredSnapshot {
    text: String,
    covers: usize,
    /// Digest of the covered messages; a string, since JSON would round the number.
    digest: String,
}

/// The ask. With `auto`, the agent's own settings are applied to its profile.
pub(crate) fn with_agent_settings(engine: &Engine, ask: &Ask) -> Ask {
    let mut ask = ask.clone();
    if ask.options.auto {
        ask.profile = ask.profile.honouring(&|from| engine.config.agent_setting(from));
    }
    ask
}

/// The session's project, if its files may be read: `--files-from-disk` was given, from within that project.
fn project_on_disk(engine: &Engine, history: &History, ask: &Ask) -> Option<PathBuf> {
    let project = history.meta.cwd.as_deref().filter(|_| ask.options.files_from_disk)?;
    let project = std::fs::canonicalize(project).ok()?;
    // A session file may come from anywhere: it must not choose which folder of this machine is read.
    let here = std::fs::canonicalize(&engine.config.agents.cwd).ok()?;
    here.starts_with(&project).then_some(project)
}

/// The stored summary of a session, if the session still begins with the messages it covers and nothing is
/// asked for (pins, focus, edit) that it would miss.
fn snapshot(engine: &Engine, history: &History, ask: &Ask) -> Option<(String, usize)> {
    let wanted = |it: &Pass| matches!(it, Pass::Summarize(it) if it.snapshot.is_some());
    let asked = !ask.options.pin.is_empty() || ask.options.focus.is_some() || ask.writer.edit.is_some();
    if asked || !ask.profile.passes.iter().any(wanted) {
        return None;
    }
    let name = SessionMark::Snapshot.of(history.meta.session.as_deref()?);
    let mark = engine.store.marked(&engine.scope(history), &name).ok().flatten()?;
    let stored: StoredSnapshot = serde_json::from_str(&mark.value).ok()?;
    let prefix = history.messages().get(..stored.covers)?;
    let same = compaction::plan::prefix_of(prefix).digest.to_string() == stored.digest;
    same.then_some((stored.text, stored.covers))
}

/// Stores a summary of a session's first `covers` messages for a later compaction. Called for each summary
/// that a model wrote or the user edited.
///
/// # Errors
///
/// The store cannot be written.
pub fn keep_snapshot(engine: &Engine, history: &History, covers: usize, text: &str) -> Result<()> {
    let (Some(session), Some(prefix)) = (history.meta.session.as_deref(), history.messages().get(..covers))
    else {
        let what = format!(
            "a snapshot: expected a session with an id and {covers} messages, found neither or fewer"
        );
        return Err(Error::new(ErrorKind::Arguments, what));
    };
    let digest = compaction::plan::prefix_of(prefix).digest.to_string();
    // A model may repeat a secret from elsewhere in its context, and a user may type one.
    let stored = StoredSnapshot { text: engine.config.redactor.redact(text), covers, digest };
    let value = history::json::compact(&stored);
    engine.store.mark(&engine.scope(history), &SessionMark::Snapshot.of(session), &value, engine.now)
}

/// Consecutive failures of a session's automatic compactions.
fn failures(engine: &Engine, history: &History) -> u32 {
    let Some(session) = history.meta.session.as_deref() else { return 0 };
    let mark = engine.store.marked(&engine.scope(history), &SessionMark::Failed.of(session)).ok().flatten();
    mark.and_then(|it| it.value.parse().ok()).unwrap_or(0)
}

/// Counts a failed automatic compaction, or resets the count.
pub(crate) fn count_failure(engine: &Engine, history: &History, failed: bool) -> Result<()> {
    let Some(session) = history.meta.session.as_deref() else { return Ok(()) };
    let (scope, name) = (engine.scope(history), SessionMark::Failed.of(session));
    match (failed, failures(engine, history)) {
        (true, _) => engine.store.update_mark(&scope, &name, &|old| one_more(old, engine.now)),
        (false, 0) => Ok(()),
        (false, _) => engine.store.unmark(&scope, &name).map(drop),
    }
}

/// A counting mark, incremented.
pub(crate) fn one_more(old: Option<Mark>, at: i64) -> Mark {
    let count = old.and_then(|it| it.value.parse::<u32>().ok()).unwrap_or(0);
    Mark { value: count.saturating_add(1).to_string(), at }
}

/// Calls `with` with the plan's request and moment. A callback, because the request borrows local values.
pub(crate) fn with_request<T>(
    engine: &Engine,
    measured: &Measured<'_>,
    ask: &Ask,
    with: impl FnOnce(PlanRequest<'_>, &Moment) -> T,
) -> T {
    let scope = engine.scope(measured.history);
    let snapshot = snapshot(engine, measured.history, ask);
    let project = project_on_disk(engine, measured.history, ask);
    let on_disk = |path: &str| crate::files::text_below(project.as_deref()?, path);
    let handle = |text: &str| Handle::of(&scope, &Digest::of(text.as_bytes())).as_str().to_owned();
    let request = PlanRequest {
        profile: &ask.profile,
        prune_only: false,
        auto: ask.options.auto,
        budget: ask.options.budget.map(|it| it.of(measured.tokens)),
        keep: ask.options.keep.map(|it| it.of(measured.tokens)),
        summary_tokens: None,
        protect: ask.prune.protect_tokens,
        exclude_tools: &ask.prune.exclude_tools,
        only: &ask.prune.only,
        limits: measured.limits,
        snapshot: snapshot.as_ref().map(|(text, covers)| Snapshot { text, covers: *covers }),
        on_disk: project.as_ref().map(|_| &on_disk as &dyn Fn(&str) -> Option<String>),
        handle: &handle,
        recall: RECALL,
        error_lines: facts::error_lines,
    };
    with(request, &moment(engine, measured.history, ask))
}

pub(crate) fn moment(engine: &Engine, history: &History, ask: &Ask) -> Moment {
    Moment {
        now: engine.now,
        cause: ask.cause(),
        last_run: write_back::last_compaction(engine, history),
        failures: failures(engine, history),
    }
}
