//! The names under which the store knows what happened to a session.

/// Under this name the store knows when a session was compacted.
pub(super) fn compacted_mark(session: &str) -> String {
    format!("compacted/{session}")
}

/// Under this name the store knows what a session's system prompt and tools took when it was compacted, in tokens.
pub(super) fn overhead_mark(session: &str) -> String {
    format!("overhead/{session}")
}

/// Under this name the store knows in which session one goes on whose compaction was undone.
pub(super) fn undone_mark(session: &str) -> String {
    format!("undone/{session}")
}
