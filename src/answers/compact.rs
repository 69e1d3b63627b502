//! What a compaction did, and what it kept.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::cost::NextCost;
use super::prune::PrunedInfo;
use super::{MethodInfo, Next, SessionInfo, Status, TakesEffect};

/// What a provider's model used for the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct UsageInfo {
    pub requests: u32,
    pub input: u64,
    pub output: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
}

/// What a summary by a provider costs, by the price table; dollars are US dollars.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct CostInfo {
    /// Who is asked: `anthropic/claude-…`.
    pub model: String,
    /// The cheaper form: `own` (our own prompt with the conversation in it) or `prefix` (one instruction appended to
    /// the session's own request, which the provider has cached).
    pub form: String,
    /// Input tokens of this form, by our count.
    pub input_tokens: u64,
    /// Maximum tokens of the summary.
    pub output_tokens: u64,
    /// Price of the form `own`; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_dollars: Option<f64>,
    /// Price of the form `prefix`; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_dollars: Option<f64>,
    /// What was spent, over all tries; absent before the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent_dollars: Option<f64>,
    /// Turns after which the smaller context has saved what the summary cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pays_after_turns: Option<u64>,
    /// Date and source of the prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<String>,
    pub why: String,
}

/// What became of the facts of one class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct FactCount {
    /// Facts in the part that was compacted.
    pub found: usize,
    /// Of these, kept in a usable form.
    pub kept: usize,
    /// Only in the archive, behind a handle.
    pub recoverable: usize,
    pub lost: usize,
}

/// A fact that the result no longer states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LostInfo {
    pub class: String,
    /// The fact in one line.
    pub text: String,
    /// Numbers of the messages that contain it.
    pub messages: Vec<usize>,
    /// Whether a handle restores one of these messages.
    pub recoverable: bool,
}

/// The edit that turns the old messages into the new ones: history[..from] + with + history[to..].
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReplaceInfo {
    /// First message that is replaced.
    pub from: usize,
    /// Message after the last that is replaced.
    pub to: usize,
    /// What takes their place, as messages of the target API.
    #[schemars(with = "Vec<BTreeMap<String, String>>")]
    pub with: Vec<serde_json::Value>,
}

/// The result of a compaction.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct CompactAnswer {
    /// `compacted`, `planned`, `needs_answer`, `noop` or `rejected`.
    #[schemars(with = "String")]
    pub status: Status,
    /// The profile's own name for the status.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub native_status: String,
    /// Why nothing was done; empty otherwise.
    pub reason_code: String,
    /// A sentence with the numbers.
    pub reason: String,
    pub profile: String,
    /// Why it ran: `manual`, `auto` or `overflow`.
    pub trigger: String,
    /// Who wrote the summary: `offline`, a provider with its model, or `host`.
    pub summarizer: String,
    /// What a provider's model used.
    pub usage: UsageInfo,
    /// Cost of a provider's summary: predicted with `--dry-run`, else spent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostInfo>,
    /// Cost of the next requests, without and with this compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cost: Option<NextCost>,
    pub session: SessionInfo,
    /// Tokens of the messages before.
    pub tokens_before: u64,
    pub tokens_after: u64,
    /// Tokens of system prompt and tools, not included in `tokens_before` and `tokens_after`.
    pub overhead: u64,
    /// How tokens were counted.
    pub method: MethodInfo,
    /// The model's context window, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Percent of the window that messages, system prompt and tools took before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_percent_after: Option<f64>,
    pub messages_before: usize,
    pub messages_after: usize,
    /// Messages before the cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<usize>,
    /// Outputs that were cleared or shortened.
    pub pruned: Vec<PrunedInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The edit, if it was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace: Option<ReplaceInfo>,
    /// All messages, if they were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<BTreeMap<String, String>>")]
    pub messages: Option<Vec<serde_json::Value>>,
    /// APIs whose rules the result satisfies.
    pub valid_for: Vec<String>,
    /// What became of the facts, by class.
    pub facts: BTreeMap<String, FactCount>,
    /// Weighted share of the facts that is kept, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts_kept: Option<f64>,
    /// With `lost_too_much`: the facts required by `min_kept` that would be lost.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostInfo>,
    /// With `lost_too_much`: the smallest budget found that satisfies `min_kept`, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_needed: Option<u64>,
    /// First message that differs from the original.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_changed: Option<usize>,
    /// Tokens before `first_changed`, which a provider's cache still covers.
    pub prefix_tokens: u64,
    /// Handle of the original session, once archived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// With `needs_answer`: the instructions for the summary that the calling agent's model must write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
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
