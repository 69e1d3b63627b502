//! The JSON documents of the command line and MCP. Within `contract: 1`, fields are only added.
//!
//! The command line prints them with `--json`, the MCP tools return them, `epitome schema` describes them.

mod cost;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

pub use cost::*;

/// The version of the contract.
pub const CONTRACT: u32 = 1;

/// What came of a compaction or of clearing outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It would be done; nothing is written.
    Planned,
    Compacted,
    Pruned,
    /// A model must write the summary first.
    NeedsAnswer,
    /// There was nothing to do.
    Noop,
    /// What was made is not good enough, or may not be done.
    Rejected,
}

impl Status {
    /// The name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Planned => "planned",
            Self::Compacted => "compacted",
            Self::Pruned => "pruned",
            Self::NeedsAnswer => "needs_answer",
            Self::Noop => "noop",
            Self::Rejected => "rejected",
        }
    }

    /// Whether nothing came of it.
    pub fn is_nothing(self) -> bool {
        matches!(self, Self::Noop | Self::Rejected)
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
    /// How it is written down.
    pub format: String,
    /// The model that answered last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// How a figure was got and how far off it may be.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MethodInfo {
    /// `reported`, `exact` or `heuristic`.
    pub kind: String,
    /// The estimator that counts, or fills in where nothing was reported.
    pub estimator: String,
    /// Message whose reported usage anchors the count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<usize>,
    /// Plus or minus, in percent.
    pub margin_percent: f64,
}

/// Tokens by what they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct CategoryInfo {
    /// Instructions in the system's role, inside or outside the messages, and tool definitions.
    pub system: u64,
    /// What the user and the client said.
    pub user: u64,
    /// What the model said.
    pub assistant: u64,
    /// What the model thought.
    pub reasoning: u64,
    pub tool_calls: u64,
    pub tool_outputs: u64,
    pub media: u64,
    pub summary: u64,
}

/// How many there are.
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
    /// Number of the summary among the live messages, if it still is.
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
    /// From which context size on, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// Why not; empty when due.
    pub reason_code: String,
    /// A sentence with the gate and the numbers.
    pub reason: String,
}

/// Whether compacting now is a good idea.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Advice {
    /// `room`, `soon` (from 70 %) or `now` (from 80 %).
    pub level: String,
    /// Whether this is a good moment: good after a finished plan item or a resolved error, bad with a pending call.
    pub good_moment: bool,
    pub why: String,
}

/// What `--next` would do to the context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NextInfo {
    /// Tokens of what comes next.
    pub tokens: u64,
    /// Whether it fits into what is usable of the window.
    pub fits: bool,
}

/// How full the context is.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct EstimateAnswer {
    /// Version of the contract.
    pub contract: u32,
    pub session: SessionInfo,
    /// Tokens of the messages.
    pub tokens: u64,
    /// Tokens of system prompt and tools.
    pub overhead: u64,
    pub context: u64,
    /// How it was got.
    pub method: MethodInfo,
    /// Tokens by what they are.
    pub by_category: CategoryInfo,
    /// How many there are.
    pub counts: ItemCounts,
    /// The model's context window, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Of the window, what messages can use: without the room for the answer.
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
    /// What the next request costs, and a compaction; absent where costs are switched off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<NextCost>,
    pub warnings: Vec<String>,
}

/// A stretch of messages and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RangeInfo {
    pub from: usize,
    /// Message after the last.
    pub to: usize,
    /// `kept`, `summarized` or `dropped`.
    pub fate: String,
}

/// How much is on one side of a cut.
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
    /// Version of the contract.
    pub contract: u32,
    pub session: SessionInfo,
    pub profile: String,
    /// Messages before the cut: 0 nothing, all everything; absent where there is no place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<usize>,
    /// The native id of the first kept message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split_id: Option<String>,
    /// All messages by what becomes of them.
    pub ranges: Vec<RangeInfo>,
    /// What would be summarised or left out.
    pub compacted: Side,
    pub kept: Side,
    /// `prompt`, `unit`, `end` or `none`.
    pub boundary: String,
    /// Why not; empty if there is a cut.
    pub reason_code: String,
    pub reason: String,
    pub alternatives: Vec<Alternative>,
}

/// An output that is cleared or shortened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PrunedInfo {
    /// Number of the message.
    pub message: usize,
    pub call_id: String,
    pub tool: String,
    /// Tokens of the original.
    pub tokens_before: u64,
    /// Tokens of what takes its place.
    pub tokens_after: u64,
    /// What takes its place.
    pub text: String,
    /// Where the original is.
    pub handle: String,
}

/// Who should do what next.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Next {
    /// `user`, `model` or `nobody`.
    pub who: String,
    #[serde(rename = "do")]
    pub what: String,
}

/// Which outputs a profile clears.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PruneAnswer {
    /// Version of the contract.
    pub contract: u32,
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
    /// First message that is not as it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_changed: Option<usize>,
    /// Tokens before it: what a provider's cache still serves.
    pub prefix_tokens: u64,
    /// Requests after which what the smaller context saves has paid for the cache that is lost; absent if never, or where
    /// that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pays_after_requests: Option<u64>,
    /// Handle of the original session, once archived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// File that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// What to resume, after it was installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// One shell command that resumes it, from any directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// `now`, `next_request` or `on_resume`; absent when nothing was installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_effect: Option<String>,
    /// Who should do what next.
    pub next: Next,
    pub warnings: Vec<String>,
}

/// What a model's provider was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct UsageInfo {
    pub requests: u32,
    pub input: u64,
    pub output: u64,
    /// Of the tokens in, those from a cache.
    pub cache_read: u64,
}

/// What a summary by a provider costs, by the price table; dollars are US dollars.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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
    /// After so many turns the smaller context has saved what it cost.
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
    /// It, in one line.
    pub text: String,
    /// Numbers of the messages that it stands in.
    pub messages: Vec<usize>,
    /// Whether a handle brings one of them back.
    pub recoverable: bool,
}

/// The edit that turns the old messages into the new ones: history[..from] + with + history[to..].
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ReplaceInfo {
    /// First message that goes.
    pub from: usize,
    /// Message after the last that goes.
    pub to: usize,
    /// What stands in their place, as messages of the target API.
    #[schemars(with = "Vec<BTreeMap<String, String>>")]
    pub with: Vec<serde_json::Value>,
}

/// The result of a compaction.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CompactAnswer {
    /// Version of the contract.
    pub contract: u32,
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
    /// What a provider was asked.
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
    /// Tokens of system prompt and tools, in neither.
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
    /// First message that is not as it was.
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
    /// `now`, `next_request` or `on_resume`; absent when nothing was installed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_effect: Option<String>,
    /// Who should do what next.
    pub next: Next,
    pub warnings: Vec<String>,
}

/// What came of an undo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreStatus {
    Restored,
    /// The session was as it should be already.
    Unchanged,
}

/// What is wrong with a session, and what was done about it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RepairAnswer {
    /// Version of the contract.
    pub contract: u32,
    pub session: SessionInfo,
    /// `sound`, `damaged`, or `repaired` where the session was replaced.
    pub status: String,
    /// In the order of the file; of each kind the first hundred.
    pub findings: Vec<FindingInfo>,
    /// How often each kind was found.
    pub counts: BTreeMap<String, u64>,
    pub bytes_before: u64,
    /// Size in bytes once it is mended.
    pub bytes_after: u64,
    /// Messages that the agent sends, without damage; absent for a session of more than 64 MB, which is not read as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<usize>,
    /// What is not understood all the same, or breaks a rule of the agent's API.
    pub left: Vec<String>,
    /// Of the archived original.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// Path of the file or session that was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// One shell command that resumes it, from any directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub takes_effect: Option<String>,
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
    /// What the agent or its API makes of it.
    pub why: String,
    pub mend: String,
}

/// A session put back as it was.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RestoreAnswer {
    /// Version of the contract.
    pub contract: u32,
    /// The compaction that was undone.
    pub handle: String,
    /// `restored`, or `unchanged` where the session is as it was already.
    #[schemars(with = "String")]
    pub status: RestoreStatus,
    pub session_id: String,
    pub output: String,
    /// Later messages, which are kept.
    pub later_messages: usize,
    /// One shell command that resumes it, from any directory.
    pub resume: String,
    /// Who should do what next.
    pub next: Next,
    pub warnings: Vec<String>,
}

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

/// What survived a compaction.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ScoreAnswer {
    /// Version of the contract.
    pub contract: u32,
    /// Version of the rules by which facts are found; scores of different versions cannot be compared.
    pub rules: u32,
    pub session: SessionInfo,
    /// What was made of it.
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
    /// Of the compacted ones.
    pub tokens_after: u64,
    /// Of the verbatim end that both have.
    pub tokens_tail: u64,
    /// Messages of the original.
    pub messages_before: usize,
    /// Of the compacted one.
    pub messages_after: usize,
    /// Of the verbatim end that both have.
    pub messages_tail: usize,
    /// Facts that are only in the archive.
    pub lost: Vec<LostInfo>,
    /// What is asserted against the original.
    pub contradictions: Vec<DoubtInfo>,
    /// What is asserted without support in the original.
    pub unsupported: Vec<DoubtInfo>,
    /// The API whose rules the compacted messages were checked against.
    pub api: String,
    /// The rules that they break.
    pub invalid: Vec<BrokenInfo>,
}

/// What of a session's own later needs each way to compact would have kept.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HindsightAnswer {
    /// Version of the contract.
    pub contract: u32,
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

/// Things of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HindsightKind {
    pub used: usize,
    pub kept: usize,
}

/// Sessions sent to a team's server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct PushAnswer {
    /// Version of the contract.
    pub contract: u32,
    /// Sessions that the server stored.
    pub pushed: usize,
    /// Bytes of them.
    pub bytes: u64,
    /// Sessions that wait for the next push.
    pub waiting: usize,
    /// Sessions that are not sent again until they change, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// Why the server could not be reached, if it could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub away: Option<String>,
}

/// Sessions put into the archive.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct KeepAnswer {
    /// Version of the contract.
    pub contract: u32,
    /// Sessions that were archived.
    pub kept: usize,
    /// Sessions that are in the archive as they are.
    pub unchanged: usize,
    /// Bytes of those that were archived.
    pub bytes: u64,
    /// Archived sessions deleted because of `max-age` or `max-bytes`: id, handle and directory of each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub let_go: Vec<String>,
    /// Sessions that could not be, and why.
    pub failed: Vec<String>,
}

/// A session in one file.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ExportAnswer {
    /// Version of the contract.
    pub contract: u32,
    pub agent: String,
    pub session_id: String,
    pub output: String,
    /// Of the file that was written.
    pub bytes: u64,
    /// The session's own, and those that belong to it.
    pub files: usize,
    /// Compactions of it in the archive.
    pub compactions: usize,
    /// How many originals the compactions took.
    pub originals: usize,
}

/// A session put where its agent finds it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ImportAnswer {
    /// Version of the contract.
    pub contract: u32,
    pub agent: String,
    pub session_id: String,
    pub output: String,
    /// Where the session goes on.
    pub directory: String,
    /// Fields of its records that name another directory now.
    pub directories_changed: u64,
    /// What came with it into the archive.
    pub originals: usize,
    /// One shell command that resumes it, from any directory.
    pub resume: String,
    /// Who should do what next.
    pub next: Next,
    pub warnings: Vec<String>,
}

/// A brief for a new session.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HandoffAnswer {
    /// Version of the contract.
    pub contract: u32,
    /// It, as Markdown: the first prompt of the new session.
    pub brief: String,
    /// Its tokens (o200k).
    pub tokens: u64,
    /// What to resume, where a session was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// One shell command that resumes it, from any directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    pub warnings: Vec<String>,
}

/// What one profile would make of a session.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CompareRow {
    pub profile: String,
    /// Whether it would auto-compact now.
    pub due: bool,
    /// From which size of the context on, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// Why, or why not.
    pub due_reason: String,
    /// What comes of it when it is asked for: `planned`, `noop` or `rejected`.
    #[schemars(with = "String")]
    pub status: Status,
    /// The profile's own name for it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub native_status: String,
    /// Why nothing would be done; empty otherwise.
    pub reason_code: String,
    /// A sentence with the numbers.
    pub reason: String,
    /// Messages before the cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<usize>,
    /// Outputs that are cleared or shortened.
    pub pruned: usize,
    /// Tokens of the messages before.
    pub tokens_before: u64,
    pub tokens_after: u64,
    pub messages_after: usize,
    /// Weighted share of the facts that is kept, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub facts_kept: Option<f64>,
    /// Facts that are still said.
    pub kept: usize,
    /// Facts that are behind a handle.
    pub recoverable: usize,
    /// Facts that are gone.
    pub lost: usize,
    /// The same of each class.
    pub facts: BTreeMap<String, FactCount>,
    /// The APIs whose rules the result obeys.
    pub valid_for: Vec<String>,
    /// How long it took.
    pub milliseconds: u64,
    /// The profile of an earlier row with the same result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why_same: String,
}

/// All profiles on one session.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CompareAnswer {
    /// Version of the contract.
    pub contract: u32,
    pub session: SessionInfo,
    /// Tokens of the messages.
    pub tokens_before: u64,
    /// A row for each profile.
    pub rows: Vec<CompareRow>,
}
