//! The second call of a host-run summary: one that the calling agent's model writes.

use crate::config::Choice;
use crate::engine::compact::compacted::Compacted;
use crate::engine::compact::summarize::{HostReply, State};
use crate::engine::{Engine, Opened, SessionRef, To, compact, input::open};
use compaction::plan;
use history::error::{Error, ErrorKind, Result};
use sessions::Format;

/// Continues a host-run summary with the model's `answer` to the prompt stored under `handle`. `to` may
/// override the destination given in the first call.
///
/// # Errors
///
/// No request is stored under the handle, its session has changed, or as for
/// [`compact`](crate::engine::compact).
pub fn answered(
    engine: &Engine,
    handle: &str,
    answer: &str,
    to: impl FnOnce(&Opened) -> Result<Option<To>>,
) -> Result<(Compacted, Opened)> {
    let scope = engine.store.locate(handle, &engine.config.owner)?;
    let kept = engine.store.ask(&scope, handle, engine.now)?;
    let state: State = serde_json::from_str(&kept).map_err(|error| {
        let what = format!(
            "answering {handle}: expected a request of this version of Epitome, found another; start \
                            over with the first call"
        );
        Error::new(ErrorKind::Store, what).because(error)
    })?;
    let format = state.format.as_deref().map(Format::named).transpose()?;
    let opened = open::open(engine, &SessionRef::Named(state.session.clone()), format, None)?;
    let mut ask = state.ask.clone();
    ask.writer.summarizer = Choice::Host;
    ask.to = to(&opened)?.unwrap_or(ask.to);
    let messages = opened.session.history.messages();
    let same = messages.len() >= state.count && {
        let some =
            history::History::new(messages[..state.count].to_vec(), opened.session.history.meta.clone());
        plan::prefix(&some).digest == state.digest
    };
    if !same {
        let what = format!(
            "answering {handle}: expected a session that begins with the {} messages to summarize, found another; \
             start over with the first call",
            state.count
        );
        return Err(Error::new(ErrorKind::Changed, what));
    }
    let reply = HostReply { state, answer: answer.to_owned() };
    let compacted = compact::compact_with(engine, &opened, &ask, Some(&reply))?;
    Ok((compacted, opened))
}
