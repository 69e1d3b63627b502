//! How full a context is.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::cost::NextCost;
use super::{MethodInfo, SessionInfo};

/// Tokens by category.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct CategoryInfo {
    /// Instructions in the system's role, inside or outside the messages, and tool definitions.
    pub system: u64,
    /// Messages of the user and the client.
    pub user: u64,
    /// Text of the model.
    pub assistant: u64,
    /// Reasoning of the model.
    pub reasoning: u64,
    pub tool_calls: u64,
    pub tool_outputs: u64,
    pub media: u64,
    pub summary: u64,
}

/// Number of messages, turns and tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct ItemCounts {
    pub messages: usize,
    /// Turns: prompts of the user.
    pub turns: usize,
    pub tool_calls: usize,
}

/// Usage that the provider reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReportedUsage {
    /// The context, in tokens.
    pub tokens: u64,
    /// The message it came with.
    pub message: usize,
}

/// One of the largest parts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Large {
    /// Number of the message.
    pub message: usize,
    /// `tool_output`, `text`, `tool_call`, `reasoning`, `media` or `other`.
    pub kind: String,
    /// The tool, or the first words.
    pub what: String,
    pub tokens: u64,
}

/// A compaction that was made earlier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PastInfo {
    /// Number of the summary among the live messages, if it is still there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<usize>,
    /// `auto` or `manual`, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    /// Context before, as recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_before: Option<u64>,
    /// Context after, as recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_after: Option<u64>,
    /// The beginning of the summary.
    pub summary: String,
}

/// Whether a profile would compact now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TriggerInfo {
    pub due: bool,
    /// Context size at which it would, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// Why not; empty when due.
    pub reason_code: String,
    /// A sentence with the condition that decided and the numbers.
    pub reason: String,
}

/// How soon a session should be compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum AdviceLevel {
    #[default]
    Room,
    /// From 70 % of the window on.
    Soon,
    /// From 80 %.
    Now,
}

/// Whether compacting now is a good idea.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Advice {
    pub level: AdviceLevel,
    /// Whether this is a good moment: good after a finished plan item or a resolved error, bad with a pending call.
    pub good_moment: bool,
    pub why: String,
}

/// What `--next` would do to the context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NextInfo {
    /// Tokens of the next prompt.
    pub tokens: u64,
    /// Whether it fits into the usable part of the window.
    pub fits: bool,
}

/// How full the context is.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EstimateAnswer {
    pub session: SessionInfo,
    /// Tokens of the messages.
    pub tokens: u64,
    /// Tokens of system prompt and tools.
    pub overhead: u64,
    pub context: u64,
    /// How the tokens were counted.
    pub method: MethodInfo,
    /// Tokens by category.
    pub by_category: CategoryInfo,
    /// Number of messages, turns and tool calls.
    pub counts: ItemCounts,
    /// The model's context window, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The part of the window that the context can use: without the room for the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usable: Option<u64>,
    /// Context as percent of the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_percent: Option<f64>,
    /// The last usage that the provider reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported: Option<ReportedUsage>,
    pub largest: Vec<Large>,
    pub compactions: Vec<PastInfo>,
    /// Whether each profile would compact now.
    pub triggers: BTreeMap<String, TriggerInfo>,
    /// Whether compacting now is a good idea.
    pub advice: Advice,
    /// What `--next` would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextInfo>,
    /// Cost of the next request, and of a compaction; absent if costs are switched off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<NextCost>,
    pub warnings: Vec<String>,
}
