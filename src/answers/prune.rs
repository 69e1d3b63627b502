//! Outputs that were cleared.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Next, SessionInfo, Status, TakesEffect};

/// An output that is cleared or shortened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PrunedInfo {
    /// Number of the message.
    pub message: usize,
    pub call_id: String,
    pub tool: String,
    /// Tokens of the original.
    pub tokens_before: u64,
    /// Tokens of the replacement text.
    pub tokens_after: u64,
    /// The replacement text.
    pub text: String,
    /// Handle of the archived original.
    pub handle: String,
}

/// Which outputs a profile clears.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct PruneAnswer {
    pub session: SessionInfo,
    pub profile: String,
    /// `pruned`, `planned` or `noop`.
    #[schemars(with = "String")]
    pub status: Status,
    /// Tokens of the messages before.
    pub tokens_before: u64,
    pub tokens_after: u64,
    /// What was cleared or shortened.
    pub pruned: Vec<PrunedInfo>,
    /// Why nothing was done; empty otherwise.
    pub reason_code: String,
    pub reason: String,
    /// First message that differs from the original.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_changed: Option<usize>,
    /// Tokens before `first_changed`, which a provider's cache still covers.
    pub prefix_tokens: u64,
    /// Requests after which the smaller context has saved what the lost cache costs; absent if never or unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pays_after_requests: Option<u64>,
    /// Handle of the original session, once archived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// File that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Id of the session to resume; absent if nothing was installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// One shell command that resumes it, from any directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// When the agent starts to use the result; absent if nothing was installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_effect: Option<TakesEffect>,
    /// Who should do what next.
    pub next: Next,
    pub warnings: Vec<String>,
}
