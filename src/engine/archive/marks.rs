//! Names of the marks that the engine keeps per session or process.

use history::named;

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum SessionMark {
        /// When it was compacted.
        Compacted = "compacted",
        /// What its system prompt and tools took when it was compacted, in tokens.
        Overhead = "overhead",
        /// In which session it goes on whose compaction was undone.
        Undone = "undone",
        /// The handle under which a hook archived it when its agent began to compact.
        Before = "before",
        /// What the agent's own summary lost, to be added to the next prompt.
        Missing = "missing",
        /// When the user was last reminded that the context is full, or that he may be again.
        Reminded = "reminded",
        /// When the cache expired for which the user was last reminded.
        Expired = "expired",
        /// A summary of its first messages, kept for a later compaction.
        Snapshot = "snapshot",
        /// How many of its compactions in a row failed.
        Failed = "failed",
        /// Its newest version that the team's server has: the handle.
        Pushed = "pushed",
    }
}

impl SessionMark {
    /// The mark's name for one session, such as `compacted/SESSION`.
    pub(crate) fn of(self, session: &str) -> String {
        format!("{}/{session}", self.name())
    }
}

/// The mark that says which session a process belongs to.
pub(crate) fn caller_mark(process: u32) -> String {
    format!("caller/{process}")
}

/// The mark that holds a session's version (time and size) when it was last archived.
pub(crate) fn kept_mark(agent: &str, session: &str) -> String {
    format!("kept/{agent}/{session}")
}
