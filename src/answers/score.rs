//! What survived a compaction, and what was used afterwards.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::SessionInfo;
use super::compact::{FactCount, LostInfo};

/// A statement of the compacted messages that the original does not bear out.
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

/// What compacted messages state as true now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TruthInfo {
    /// Steps stated as open; wrong where the original's plan has them done at its end.
    pub open: ToldCount,
    /// Commands stated with their outcome, of those whose exit code was reported.
    pub outcomes: ToldCount,
    /// Lines under a heading for rules; right where they are the user's own words.
    pub rules: ToldCount,
    /// The lines that are not right.
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
    /// The same, with half a point for what a handle brings back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_or_recoverable: Option<f64>,
    /// `kept`, less the share of facts that are contradicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_less_contradicted: Option<f64>,
    /// What became of the facts before the verbatim end, by class.
    pub facts: BTreeMap<String, FactCount>,
    /// Last request and open question; here being in the verbatim end counts.
    pub last_request: FactCount,
    /// Tokens of the original's messages.
    pub tokens_before: u64,
    /// Tokens of the compacted messages.
    pub tokens_after: u64,
    /// Messages of the original.
    pub messages_before: usize,
    /// Messages of the compacted session.
    pub messages_after: usize,
    /// Messages of the verbatim end that both have.
    pub messages_tail: usize,
    /// Facts that are only in the archive.
    pub lost: Vec<LostInfo>,
    /// What is asserted against the original.
    pub contradictions: Vec<DoubtInfo>,
    /// What is asserted without support in the original.
    pub unsupported: Vec<DoubtInfo>,
    /// What the compacted messages state as true now, and how much of it is.
    pub truth: TruthInfo,
    /// The API whose rules the compacted messages were checked against.
    pub api: String,
    /// The rules that they break.
    pub invalid: Vec<BrokenInfo>,
}

/// What of a session's own later needs each way to compact would have kept.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HindsightAnswer {
    pub session: SessionInfo,
    /// At 60 % of the messages, and at each compaction of the agent's own; none where nothing was used later.
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
    /// Things that stood before the cut and were used after it without being shown again.
    pub used: usize,
    pub ways: Vec<HindsightWay>,
}

/// What one way keeps of what was used later.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HindsightWay {
    pub way: String,
    /// What was asked for: `5 %`, `own size`.
    pub size: String,
    /// Tokens of the result.
    pub tokens: u64,
    /// Share kept, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<f64>,
    /// The same by kind: paths, commands, symbols, values, errors.
    pub kinds: BTreeMap<String, HindsightKind>,
    /// What is not there.
    pub missing: Vec<String>,
}

/// Counts of one kind of thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HindsightKind {
    pub used: usize,
    pub kept: usize,
}
