//! A preview kept for a day, so that `epitome apply HANDLE` installs what was shown and nothing else.

use serde::{Deserialize, Serialize};

use crate::engine::write_back::{Location, agent_of};
use crate::engine::{Ask, Compacted, Engine, Opened, SessionRef, To, compact, input::open, write_back};
use compaction::plan;
use history::History;
use history::error::{Error, ErrorKind, Result};
use sessions::Format;

#[derive(Serialize, Deserialize)]
struct Preview {
    session: String,
    format: String,
    before: Fingerprint,
    after: Fingerprint,
    summary: Option<String>,
    ask: Ask,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Fingerprint {
    messages: usize,
    digest: u64,
}

impl Fingerprint {
    fn of(history: &History) -> Self {
        Self { messages: history.messages().len(), digest: plan::prefix(history).digest }
    }
}

/// Stores a preview and returns its handle; `None` if the store keeps nothing or the session is not in a
/// file.
///
/// # Errors
///
/// The store cannot be written.
pub fn keep_preview(engine: &Engine, opened: &Opened, ask: &Ask, done: &Compacted) -> Result<Option<String>> {
    let (Some(path), Some(after)) = (&opened.path, done.history()) else { return Ok(None) };
    if !engine.store.keeps() {
        return Ok(None);
    }
    let state = Preview {
        session: path.display().to_string(),
        format: opened.session.format.name().to_owned(),
        before: Fingerprint::of(&opened.session.history),
        after: Fingerprint::of(after),
        summary: done.accepted().and_then(|it| it.written.clone()),
        ask: ask.clone(),
    };
    let scope = engine.scope(&opened.session.history);
    let handle = engine.store.put_preview(&scope, &history::json::compact(&state), engine.now)?;
    Ok(Some(handle.as_str().to_owned()))
}

/// Whether `--apply` would find the session where its agent keeps sessions.
pub fn can_apply(engine: &Engine, opened: &Opened) -> bool {
    let agent = agent_of(opened.session.format);
    let place = Location::of(opened.path.as_deref());
    matches!((agent, place), (Ok(agent), Ok(place)) if write_back::in_reach(engine, agent, &place).is_ok())
}

/// Carries out a preview. The session must be unchanged since then, to the last message.
///
/// # Errors
///
/// No preview under that handle, a session that has changed since, or as for
/// [`compact`](crate::engine::compact).
pub fn apply_preview(engine: &Engine, handle: &str, to: To) -> Result<(Compacted, Opened)> {
    let scope = engine.store.locate(handle, &engine.config.owner)?;
    let kept = engine.store.ask(&scope, handle, engine.now)?;
    let state: Preview = serde_json::from_str(&kept).map_err(|error| {
        let what = format!(
            "applying {handle}: expected the handle of a preview of this version of Epitome, found another; run the \
             preview again"
        );
        Error::new(ErrorKind::Arguments, what).because(error)
    })?;
    let changed = |what: &str| {
        let what =
            format!("applying {handle}: {what}; run `epitome compact` again to see what it would do now");
        Error::new(ErrorKind::Changed, what).at(state.session.clone(), None)
    };
    let format = Format::named(&state.format)?;
    let opened = open::open(engine, &SessionRef::Named(state.session.clone()), Some(format), None)?;
    if Fingerprint::of(&opened.session.history) != state.before {
        let now = opened.session.history.messages().len();
        return Err(changed(&format!(
            "expected the {} messages that were previewed, found {now} messages that differ",
            state.before.messages
        )));
    }
    let mut ask = Ask { to: To::Plan, ..state.ask.clone() };
    ask.writer.written.clone_from(&state.summary);
    let again = compact::compact(engine, &opened, &ask)?;
    if again.history().map(Fingerprint::of) != Some(state.after) {
        return Err(changed(
            "expected the result that was previewed, found another (the profile depends on the time, or Epitome was \
             updated)",
        ));
    }
    let done = compact::compact(engine, &opened, &Ask { to, ..ask })?;
    Ok((done, opened))
}
