//! The JSON documents of the command line and MCP. Within `contract: 1`, fields are only added.
//!
//! The command line prints them with `--json`, the MCP tools return them, `epitome schema` describes them.

mod cost;
mod compact;
mod compare;
mod estimate;
mod prune;
mod repair;
mod restore;
mod score;
mod split;
mod transfer;

use schemars::JsonSchema;
use serde::Serialize;

use history::named;

pub use compact::{CompactAnswer, CostInfo, FactCount, LostInfo, ReplaceInfo, UsageInfo};
pub use compare::{CompareAnswer, CompareRow};
pub use cost::*;
pub use estimate::{
    Advice, AdviceLevel, CategoryInfo, EstimateAnswer, ItemCounts, Large, NextInfo, PastInfo, ReportedUsage,
    TriggerInfo,
};
pub use prune::{PruneAnswer, PrunedInfo};
pub use repair::{FindingInfo, RepairAnswer, RepairStatus};
pub use restore::{RestoreAnswer, RestoreStatus};
pub use score::{
    BrokenInfo, DoubtInfo, HindsightAnswer, HindsightCut, HindsightKind, HindsightWay, ScoreAnswer,
    ToldCount, TruthInfo,
};
pub use split::{Alternative, RangeFate, RangeInfo, Side, SplitAnswer};
#[cfg(feature = "parquet")]
pub use transfer::TablesAnswer;
pub use transfer::{ExportAnswer, HandoffAnswer, ImportAnswer, KeepAnswer, PushAnswer};

/// The version of the contract.
pub const CONTRACT: u32 = 1;

/// An answer as printed or returned: the contract's version, then the answer's fields.
#[derive(Serialize)]
pub struct AnswerDocument<'a, T> {
    contract: u32,
    #[serde(flatten)]
    answer: &'a T,
}

impl<'a, T> AnswerDocument<'a, T> {
    pub fn of(answer: &'a T) -> Self {
        Self { contract: CONTRACT, answer }
    }
}

named! {
    /// The result of a compaction or of clearing outputs.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Status {
        /// It would be done; nothing is written.
        Planned = "planned",
        Compacted = "compacted",
        Pruned = "pruned",
        /// A model must write the summary first.
        NeedsAnswer = "needs_answer",
        /// There was nothing to do.
        #[default]
        Noop = "noop",
        /// The result is not good enough, or the action is not allowed.
        Rejected = "rejected",
    }
}

/// Which session an answer is about.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct SessionInfo {
    /// The agent that keeps it; absent for plain messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The agent's id for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Where it was read from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its format.
    pub format: String,
    /// The model that answered last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// How a figure was counted and how far off it may be.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct MethodInfo {
    /// `reported`, `exact` or `heuristic`.
    pub kind: String,
    /// The estimator that counted what the provider did not report.
    pub estimator: String,
    /// Message whose reported usage anchors the count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<usize>,
    /// Margin of error, plus or minus, in percent.
    pub margin_percent: f64,
}

/// Who should do what next.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Next {
    pub who: Who,
    #[serde(rename = "do")]
    pub what: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Who {
    User,
    Model,
    #[default]
    Nobody,
}

impl Next {
    pub(crate) fn user(what: String) -> Self {
        Self { who: Who::User, what }
    }

    pub(crate) fn model(what: String) -> Self {
        Self { who: Who::Model, what }
    }
}

/// When the agent starts to use what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum TakesEffect {
    NextRequest,
    OnResume,
}
