//! What is wrong with a session, and what was repaired.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Next, SessionInfo, TakesEffect};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum RepairStatus {
    Sound,
    Damaged,
    /// The session was replaced.
    Repaired,
}

/// What is wrong with a session, and what was done about it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RepairAnswer {
    pub session: SessionInfo,
    pub status: RepairStatus,
    /// In file order; at most the first hundred of each kind.
    pub findings: Vec<FindingInfo>,
    /// How often each kind was found.
    pub counts: BTreeMap<String, u64>,
    /// Messages of the repaired session; absent for sessions of more than 64 MB, which are not read as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<usize>,
    /// Problems that remain: what is still not understood, or breaks a rule of the agent's API.
    pub left: Vec<String>,
    /// Handle of the archived original.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// Path of the file or session that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// One shell command that resumes it, from any directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_effect: Option<TakesEffect>,
    /// Who should do what next.
    pub next: Next,
}

/// One thing that is wrong with a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FindingInfo {
    /// Id of the kind of damage, as in docs/repair.md.
    pub damage: String,
    /// 1-based line of the file.
    pub line: u64,
    /// What was found there.
    pub detail: String,
    /// How the agent or its API reacts to it.
    pub why: String,
    pub mend: String,
}
