//! What survived a compaction, and what was used afterwards.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::SessionInfo;
use super::compact::{FactCount, LostInfo};

/// A statement of the compacted messages that the original does not support.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DoubtInfo {
    /// What kind of statement: `contradiction`, or what is claimed without support.
    pub kind: String,
    pub text: String,
}

/// A rule of an API that messages break.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BrokenInfo {
    pub rule: String,
    /// Number of the message.
    pub message: usize,
    /// What was expected and what was found.
    pub what: String,
}

/// Statements of one kind, and how many of them are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ToldCount {
    pub told: usize,
    pub right: usize,
}

/// What compacted messages state as currently true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TruthInfo {
    /// Steps stated as open; wrong if the original's plan ends with them done.
    pub open: ToldCount,
    /// Commands stated with their outcome; only commands whose exit code was reported count.
    pub outcomes: ToldCount,
    /// Lines under a heading for rules; right if they are the user's own words.
    pub rules: ToldCount,
    /// The wrong lines.
    pub wrong: Vec<String>,
}

/// What survived a compaction.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ScoreAnswer {
    /// Version of the rules by which facts are found; scores of different versions cannot be compared.
    pub rules: u32,
    pub session: SessionInfo,
    /// The compacted session.
    pub compacted: SessionInfo,
    /// Weighted share of the facts that is kept, 0 to 1; absent when nothing was evicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<f64>,
    /// Like `kept`, but a recoverable fact counts half.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_or_recoverable: Option<f64>,
    /// `kept`, less the share of facts that are contradicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_less_contradicted: Option<f64>,
    /// What became of the facts before the verbatim tail, by class.
    pub facts: BTreeMap<String, FactCount>,
    /// Last request and open question; these also count as kept in the verbatim tail.
    pub last_request: FactCount,
    /// Tokens of the original's messages.
    pub tokens_before: u64,
    /// Tokens of the compacted messages.
    pub tokens_after: u64,
    /// Messages of the original.
    pub messages_before: usize,
    /// Messages of the compacted session.
    pub messages_after: usize,
    /// Messages of the verbatim tail, which both sessions have.
    pub messages_tail: usize,
    /// Facts that the compacted messages no longer state.
    pub lost: Vec<LostInfo>,
    /// Statements that contradict the original.
    pub contradictions: Vec<DoubtInfo>,
    /// Statements without support in the original.
    pub unsupported: Vec<DoubtInfo>,
    /// What the compacted messages state as currently true, and how much of it is.
    pub truth: TruthInfo,
    /// The API whose rules the compacted messages were checked against.
    pub api: String,
    /// The rules that they break.
    pub invalid: Vec<BrokenInfo>,
}

/// How much of what the agent used later each way to compact would have kept.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HindsightAnswer {
    pub session: SessionInfo,
    /// At 60 % of the messages, and at each of the agent's own compactions; empty if nothing was used later.
    pub cuts: Vec<HindsightCut>,
}

/// A place at which a session is cut.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HindsightCut {
    /// `60 %`, or `own compaction 1`.
    pub at: String,
    /// Messages before it.
    pub messages: usize,
    /// Their tokens.
    pub tokens: u64,
    /// Things from before the cut that were used after it without being shown again.
    pub used: usize,
    pub ways: Vec<HindsightWay>,
}

/// How much of what was used later one way to compact keeps.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HindsightWay {
    pub way: String,
    /// Requested size: `5 %`, `own size`.
    pub size: String,
    /// Tokens of the result.
    pub tokens: u64,
    /// Share kept, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<f64>,
    /// The same by kind: paths, commands, symbols, values, errors.
    pub kinds: BTreeMap<String, HindsightKind>,
    /// What was used later and is not kept.
    pub missing: Vec<String>,
}

/// Counts of one kind of thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HindsightKind {
    pub used: usize,
    pub kept: usize,
}
