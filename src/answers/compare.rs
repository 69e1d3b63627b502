//! What each profile would make of a session.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::compact::FactCount;
use super::{SessionInfo, Status};

/// What one profile would make of a session.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CompareRow {
    pub profile: String,
    /// Whether it would auto-compact now.
    pub due: bool,
    /// Context size at which it would, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// Why, or why not.
    pub due_reason: String,
    /// The status of a compaction by it: `planned`, `noop` or `rejected`.
    #[schemars(with = "String")]
    pub status: Status,
    /// The profile's own name for the status.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub native_status: String,
    /// Why nothing would be done; empty otherwise.
    pub reason_code: String,
    /// A sentence with the numbers.
    pub reason: String,
    /// Messages before the cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<usize>,
    /// Outputs that are cleared or shortened.
    pub pruned: usize,
    /// Tokens of the messages before.
    pub tokens_before: u64,
    pub tokens_after: u64,
    pub messages_after: usize,
    /// Weighted share of the facts that is kept, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts_kept: Option<f64>,
    /// Facts that are kept in a usable form.
    pub kept: usize,
    /// Facts that are only in the archive, behind a handle.
    pub recoverable: usize,
    /// Facts that are lost.
    pub lost: usize,
    /// Facts by class.
    pub facts: BTreeMap<String, FactCount>,
    /// APIs whose rules the result satisfies.
    pub valid_for: Vec<String>,
    /// Milliseconds that it took.
    pub milliseconds: u64,
    /// The profile of an earlier row with the same result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why_same: String,
}

/// All profiles on one session.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CompareAnswer {
    pub session: SessionInfo,
    /// Tokens of the messages.
    pub tokens_before: u64,
    /// A row for each profile.
    pub rows: Vec<CompareRow>,
}
