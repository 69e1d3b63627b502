//! Where a history would be cut.

use schemars::JsonSchema;
use serde::Serialize;

use super::SessionInfo;

/// A range of messages and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RangeInfo {
    pub from: usize,
    /// Message after the last.
    pub to: usize,
    pub fate: RangeFate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum RangeFate {
    Kept,
    Summarized,
    Dropped,
}

/// The size of one side of a cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Side {
    pub messages: usize,
    pub tokens: u64,
}

/// Another place to cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Alternative {
    /// Messages before the cut.
    pub split: usize,
    pub compacted_tokens: u64,
    pub what: String,
}

/// Where a profile would cut.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SplitAnswer {
    pub session: SessionInfo,
    pub profile: String,
    /// Messages before the cut: with 0 nothing is compacted, with all of them everything; absent if there is no place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<usize>,
    /// The native id of the first kept message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_id: Option<String>,
    /// All messages by what becomes of them.
    pub ranges: Vec<RangeInfo>,
    /// What would be summarized or dropped.
    pub compacted: Side,
    pub kept: Side,
    /// `prompt`, `unit`, `end` or `none`.
    pub boundary: String,
    /// Why not; empty if there is a cut.
    pub reason_code: String,
    pub reason: String,
    pub alternatives: Vec<Alternative>,
}
