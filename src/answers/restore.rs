//! What an undo did.

use schemars::JsonSchema;
use serde::Serialize;

use super::Next;

/// The result of an undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreStatus {
    Restored,
    /// The session was already restored.
    Unchanged,
}

/// A session put back as it was.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RestoreAnswer {
    /// The compaction that was undone.
    pub handle: String,
    /// `restored`, or `unchanged` if the session was already restored.
    #[schemars(with = "String")]
    pub status: RestoreStatus,
    pub session_id: String,
    pub output: String,
    /// Later messages, which are kept.
    pub later_messages: usize,
    /// One shell command that resumes it, from any directory.
    pub resume: String,
    /// Who should do what next.
    pub next: Next,
    pub warnings: Vec<String>,
}
