//! What requests cost.

use schemars::JsonSchema;
use serde::Serialize;

use super::SessionInfo;

/// Cost of the next request, without and with a compaction, in US dollars by the price list that `prices` names.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct NextCost {
    /// Tokens of the next request that the provider has cached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// Tokens of the next request that are not cached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fresh: Option<u64>,
    /// Price of the next request, without its output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_dollars: Option<f64>,
    /// Tokens of the next request after a compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Price of the first request after a compaction, most of which is written to the cache anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_first_dollars: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_each_dollars: Option<f64>,
    /// Requests after which a compaction now has paid for itself; absent if never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pays_after_requests: Option<u64>,
    /// The same in turns, at this session's requests per turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pays_after_turns: Option<u64>,
    /// When the cache is likely to expire; in the past if it has. RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_until: Option<String>,
    /// Date and source of the prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<String>,
    /// A sentence with the numbers, or why there are none.
    pub why: String,
}

impl NextCost {
    /// Whether the cache was used and has expired by `now` (ms since 1970).
    pub fn is_expired(&self, now: i64) -> bool {
        let until = self.warm_until.as_deref().and_then(sessions::derive::parse_time);
        until.is_some_and(|it| it <= now)
    }
}

/// Tokens, and US dollars for those that have a price.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct Spent {
    pub tokens: u64,
    /// US dollars; absent if no request has a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dollars: Option<f64>,
}

/// The sum of some requests.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct SpentInfo {
    pub requests: usize,
    /// Requests whose price is unknown, counted in tokens but not in dollars.
    pub unpriced: usize,
    pub total: Spent,
    /// Input tokens not from a cache.
    pub input: Spent,
    /// Input tokens read from a cache.
    pub cache_read: Spent,
    /// Input tokens written to a cache.
    pub cache_write: Spent,
    pub output: Spent,
}

/// What it cost to send one kind of content again with each request.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ContentSpent {
    /// A category of `estimate`'s `by_category`.
    pub category: String,
    /// Its share of each request's input, by size.
    pub spent: Spent,
}

/// Input that was sent before and had to be processed again, because it was not cached.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PaidAgain {
    /// `start`, `compaction`, `expired` or `missed`.
    pub cause: String,
    pub requests: usize,
    /// Tokens, and what they cost on top of the price of a cache read.
    pub spent: Spent,
}

/// The sum of a turn.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TurnSpent {
    /// Number of the prompt, from 1; 0 for what came before the first.
    pub turn: usize,
    pub prompt: String,
    /// The sum of its requests.
    pub spent: SpentInfo,
}

/// What a compaction before a turn would have saved, up to the end of the session.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MomentInfo {
    /// Number of the turn that the compaction would have preceded, from 1.
    pub turn: usize,
    /// The turn's first words.
    pub prompt: String,
    /// Its time, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The context then, in tokens.
    pub context: u64,
    /// Whether the cache had expired.
    pub expired: bool,
    /// Tokens that would not have been sent.
    pub saved_tokens: i64,
    /// US dollars saved (negative: lost); absent without prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved_dollars: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PriceInfo {
    /// The model's name in the price list.
    pub model: String,
    /// Date on which the price was read.
    pub date: String,
    pub source: String,
}

/// A model without a price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct UnpricedInfo {
    pub model: String,
    pub why: String,
}

/// What a session cost.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CostAnswer {
    pub session: SessionInfo,
    /// Always `USD`.
    pub currency: String,
    /// The prices that were used.
    pub prices: Vec<PriceInfo>,
    /// Models whose requests are counted in tokens only.
    pub unpriced: Vec<UnpricedInfo>,
    /// All requests whose usage the session records.
    pub spent: SpentInfo,
    /// Of these, the requests of side chains.
    pub side: SpentInfo,
    /// Input of the requests since the last compaction, by kind of content, most expensive first.
    pub by_content: Vec<ContentSpent>,
    /// Input that was paid for again, by cause.
    pub paid_again: Vec<PaidAgain>,
    pub turns: usize,
    /// The ten most expensive turns.
    pub dearest: Vec<TurnSpent>,
    /// Compactions that the agent made.
    pub compactions: usize,
    /// What a compaction before each turn would have saved or lost, in the order of the turns.
    pub moments: Vec<MomentInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextCost>,
    pub warnings: Vec<String>,
}
