//! The ledger: what a history says that must not be lost, read without a model. Each fact knows its message.
//!
//! Shares no extraction code with `score`, which checks it; both read tool calls through `tools`.

use serde::{Deserialize, Serialize};

/// What a fact is about. Profiles name topics to say what a section of their summary holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topic {
    /// What the session is for: the first request, and what replaced it.
    Goal,
    /// Standing orders, prohibitions, preferences of the user; verbatim.
    Constraints,
    /// What the user asked for along the way.
    Requests,
    /// Every word the user wrote, in order, shortened where long.
    UserMessages,
    /// What was settled, and what that replaced.
    Decisions,
    /// Path and what was last done to it.
    Files,
    /// Working directory.
    Directory,
    /// How to build, test, run; conventions.
    Setup,
    /// Command and outcome.
    Commands,
    /// Errors and whether they were resolved.
    Errors,
    /// Approaches given up, and why.
    Tried,
    /// Code said to need tests.
    Untested,
    /// Plan items that are done.
    Done,
    /// Plan items being worked on.
    Active,
    /// Plan items still open.
    Open,
    /// What was last being done, word for word where possible.
    Current,
    /// The latest request and the unanswered question.
    Last,
    /// URLs, versions, hashes, ports, symbols in use.
    Identifiers,
    /// What was found out and said by the model.
    Findings,
}
