//! Sessions archived, exported, imported, handed off.

use schemars::JsonSchema;
use serde::Serialize;

use super::Next;

/// Sessions sent to a team's server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct PushAnswer {
    /// Sessions that the server stored.
    pub pushed: usize,
    /// Bytes that were sent for them.
    pub bytes: u64,
    /// Sessions that wait for the next push.
    pub waiting: usize,
    /// Sessions that are not sent again until they change, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// Why the server could not be reached, if it could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub away: Option<String>,
}

/// Sessions put into the archive.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct KeepAnswer {
    /// Sessions that were archived.
    pub kept: usize,
    /// Sessions that are already in the archive, unchanged.
    pub unchanged: usize,
    /// Bytes of those that were archived.
    pub bytes: u64,
    /// Archived sessions deleted because of `max-age` or `max-bytes`: id, handle and directory of each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub let_go: Vec<String>,
    /// Sessions that could not be archived, and why.
    pub failed: Vec<String>,
}

/// Sessions as tables.
#[cfg(feature = "parquet")]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TablesAnswer {
    /// The folder that contains them.
    pub output: String,
    /// Rows of each table.
    pub sessions: u64,
    pub messages: u64,
    pub compactions: u64,
    pub facts: u64,
    pub tokens: u64,
}

/// A session in one file.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ExportAnswer {
    pub agent: String,
    pub session_id: String,
    pub output: String,
    /// Bytes of the file that was written.
    pub bytes: u64,
    /// Number of files: the session's own, and those that belong to it.
    pub files: usize,
    /// Compactions of it in the archive.
    pub compactions: usize,
    /// Originals that these compactions replaced.
    pub originals: usize,
}

/// A session put where its agent finds it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ImportAnswer {
    pub agent: String,
    pub session_id: String,
    pub output: String,
    /// Directory in which the session continues.
    pub directory: String,
    /// Number of fields in its records whose directory was changed.
    pub directories_changed: u64,
    /// Originals that were imported into the archive with it.
    pub originals: usize,
    /// One shell command that resumes it, from any directory.
    pub resume: String,
    /// Who should do what next.
    pub next: Next,
    pub warnings: Vec<String>,
}

/// A brief for a new session.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HandoffAnswer {
    /// The brief as Markdown: the first prompt of the new session.
    pub brief: String,
    /// Its tokens (o200k).
    pub tokens: u64,
    /// Id of the session to resume, if one was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// One shell command that resumes it, from any directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    pub warnings: Vec<String>,
}
