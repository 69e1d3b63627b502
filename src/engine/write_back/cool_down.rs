//! Whether a session was compacted too recently.

use crate::engine::Engine;
use crate::engine::archive::marks::SessionMark;
use crate::store::{Handle, Mark};
use history::History;

/// How long after a compaction a session is not compacted again, unless its profile says more: 30 seconds, as
/// in opencode-supermemory 2.0.
const COOL_DOWN_MS: i64 = 30_000;

/// When a session was last compacted by us or, as a hook reported, by its agent; ms since 1970.
pub(crate) fn last_compaction(engine: &Engine, history: &History) -> Option<i64> {
    compaction_mark(engine, history).map(|it| it.at)
}

fn compaction_mark(engine: &Engine, history: &History) -> Option<Mark> {
    let name = SessionMark::Compacted.of(history.meta.session.as_deref()?);
    engine.store.marked(&engine.scope(history), &name).ok().flatten()
}

/// Why a session may not be compacted again yet, if so.
pub(crate) fn cooling_down(engine: &Engine, history: &History, profile_seconds: u64) -> Option<String> {
    let wait = COOL_DOWN_MS.max(i64::try_from(profile_seconds).unwrap_or(i64::MAX).saturating_mul(1000));
    let mark = compaction_mark(engine, history)?;
    let since = engine.now.saturating_sub(mark.at);
    // Only our own compactions can be undone: the mark of an agent's own holds no handle.
    let undo = Handle::parse(&mark.value)
        .map(|it| format!("; `epitome undo {}` undoes it", it.as_str()))
        .unwrap_or_default();
    (0..wait).contains(&since).then(|| {
        let (since, wait) = (since / 1000, wait / 1000);
        format!("this session was compacted {since} s ago; wait {wait} s between compactions{undo}")
    })
}
