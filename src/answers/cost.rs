//! What requests cost.

use schemars::JsonSchema;
use serde::Serialize;

use super::SessionInfo;

/// What the next request costs, as things are and compacted; US dollars, by the price list that `prices` names.
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct NextCost {
    /// Tokens of the next request that the provider has in its cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// The other tokens of the next request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fresh: Option<u64>,
    /// The next request, without its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_dollars: Option<f64>,
    /// Tokens of the next request after a compaction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// That request: most of it is written to the cache anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_first_dollars: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_each_dollars: Option<f64>,
    /// Requests after which a compaction now has paid for itself; absent if it never does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pays_after_requests: Option<u64>,
    /// The same in turns, by how many requests a turn of this session has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pays_after_turns: Option<u64>,
    /// Until when the cache is likely to be kept; in the past if it has expired. RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_until: Option<String>,
    /// The day on which the prices were read, and where.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prices: Option<String>,
    /// In a sentence, or why there is nothing to say.
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
    /// US dollars; absent where no request has a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dollars: Option<f64>,
}

/// The sum of some requests.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct SpentInfo {
    pub requests: usize,
    /// Of these, those whose price is not known: counted in tokens, not in dollars.
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

/// What requests paid for carrying one kind of content again and again.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ContentSpent {
    /// A category of `estimate`'s `by_category`.
    pub category: String,
    /// Its share of the input of each request, by size.
    pub spent: Spent,
}

/// What was sent before and had to be processed again, because no cache had it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PaidAgain {
    /// `start`, `compaction`, `expired` or `missed`.
    pub cause: String,
    pub requests: usize,
    /// Tokens, and the dollars they cost more than read from a cache.
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
    /// Number of the turn it would have stood before, from 1.
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
    /// Its name in the list.
    pub model: String,
    /// The day it was read.
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
    /// All requests that the session records with their usage.
    pub spent: SpentInfo,
    /// Of these, those of side chains.
    pub side: SpentInfo,
    /// The input of the requests since the last compaction by what it carried, the most costly first.
    pub by_content: Vec<ContentSpent>,
    /// What was paid again, by cause.
    pub paid_again: Vec<PaidAgain>,
    pub turns: usize,
    /// The ten turns that cost most.
    pub dearest: Vec<TurnSpent>,
    /// Compactions that the agent made.
    pub compactions: usize,
    /// What a compaction before each turn would have saved or lost, in their order.
    pub moments: Vec<MomentInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<NextCost>,
    pub warnings: Vec<String>,
}
