//! The names of marks: what the store knows of a session besides its originals.

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

/// The handle under which a hook archived the session when its agent began to compact.
pub(crate) fn before_mark(session: &str) -> String {
    format!("before/{session}")
}

/// What the agent's own summary lost, to be added to the next prompt.
pub(crate) fn missing_mark(session: &str) -> String {
    format!("missing/{session}")
}

/// When the user was last reminded that the context is full, or that he may be again.
pub(crate) fn reminded_mark(session: &str) -> String {
    format!("reminded/{session}")
}

/// When the cache expired for which the user was last reminded.
pub(crate) fn expired_mark(session: &str) -> String {
    format!("expired/{session}")
}

/// A summary of the first messages of a session, kept for a later compaction.
pub(crate) fn snapshot_mark(session: &str) -> String {
    format!("snapshot/{session}")
}

/// How many compactions in a row failed.
pub(crate) fn failed_mark(session: &str) -> String {
    format!("failed/{session}")
}

/// The session that a process calls from.
pub(crate) fn caller_mark(process: u32) -> String {
    format!("caller/{process}")
}

/// What a session's file was when it was archived.
pub(crate) fn kept_mark(agent: &str, session: &str) -> String {
    format!("kept/{agent}/{session}")
}

/// The newest version of a session that the team's server has: its handle.
pub(crate) fn pushed_mark(session: &str) -> String {
    format!("pushed/{session}")
}
