//! The names under which the store knows what happened to a session.

/// Under this name the store knows when a session was compacted.
pub(crate) fn compacted_mark(session: &str) -> String {
    format!("compacted/{session}")
}

/// Under this name the store knows what a session's system prompt and tools took when it was compacted, in tokens.
pub(crate) fn overhead_mark(session: &str) -> String {
    format!("overhead/{session}")
}

/// Under this name the store knows in which session one goes on whose compaction was undone.
pub(crate) fn undone_mark(session: &str) -> String {
    format!("undone/{session}")
}
