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
    /// The cheaper form: `own` (a prompt of ours with the conversation in it) or `prefix` (one instruction behind the
    /// session's own request, which the provider has in its cache).
    pub form: String,
    /// Tokens that this form sends, by our count.
    pub input_tokens: u64,
    /// Tokens of the summary at most.
    pub output_tokens: u64,
    /// With a prompt of ours; missing where the price is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_dollars: Option<f64>,
    /// Behind the session's own request; missing where that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_dollars: Option<f64>,
    /// What was spent, all tries together; missing before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent_dollars: Option<f64>,
    /// Turns after which the smaller context has saved what the summary cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pays_after_turns: Option<u64>,
    /// The day on which the prices were read, and where.
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

/// A fact that is only in the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LostInfo {
    pub class: String,
    /// The fact in one line.
    pub text: String,
    /// Numbers of the messages that it is in.
    pub messages: Vec<usize>,
    /// Whether a handle brings one of them back.
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
    /// The profile's own name for it.
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
    /// What a provider's summary costs: predicted with `--dry-run`, else spent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostInfo>,
    /// What the next requests cost, as things are and after this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cost: Option<NextCost>,
    pub session: SessionInfo,
    /// Tokens of the messages before.
    pub tokens_before: u64,
    pub tokens_after: u64,
    /// Tokens of system prompt and tools, in neither of the two.
    pub overhead: u64,
    /// How tokens were counted.
    pub method: MethodInfo,
    /// The model's context window, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Percent of the window that messages, system prompt and tools take before.
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
    /// The edit, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replace: Option<ReplaceInfo>,
    /// All messages, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<BTreeMap<String, String>>")]
    pub messages: Option<Vec<serde_json::Value>>,
    /// The APIs whose rules the result obeys.
    pub valid_for: Vec<String>,
    /// What became of the facts, by class.
    pub facts: BTreeMap<String, FactCount>,
    /// Weighted share of the facts that is kept, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts_kept: Option<f64>,
    /// With `lost_too_much`: the facts required by `min_kept` that would be lost.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<LostInfo>,
    /// With `lost_too_much`: the smallest budget found that keeps what was asked for, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_needed: Option<u64>,
    /// First message that differs from the original.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_changed: Option<usize>,
    /// Tokens before it: what a provider's cache still serves.
    pub prefix_tokens: u64,
    /// Handle of the original session, once archived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// With `needs_answer`: what the calling agent's model is to write, and in which form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ask: Option<String>,
    /// File that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// What to resume, after it was installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// One shell command that resumes it, from any directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// Absent when nothing was installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_effect: Option<TakesEffect>,
    /// Who should do what next.
    pub next: Next,
    pub warnings: Vec<String>,
}
