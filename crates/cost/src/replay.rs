//! What each request of a session should have been reported with, given the requests before it: this tests
//! the cache rules, and predicts the next request.

use std::collections::HashMap;
use std::sync::Arc;

use super::cache::{Cached, Rule, rule};
use history::{Usage, named};
use sessions::requests::Request;

/// What is known of a session's caches after some of its requests.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    /// By model, and whether it is a side chain's: each of them has its own cache.
    caches: HashMap<(Arc<str>, bool), Cached>,
    /// By model: tokens that were found in a warm cache, and tokens that were not.
    found: HashMap<Arc<str>, (u64, u64)>,
}

/// Weight of the rule's measured loss against what the session shows, in tokens of the session.
const PRIOR: f64 = 4_000_000.0;

named! {
    /// Why tokens that were sent before are not read from a cache.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum MissCause {
        /// The first request that is known, or the first of its model.
        Start = "start",
        /// The context was compacted.
        Compaction = "compaction",
        /// The cache had expired.
        Expired = "expired",
        /// The cache was warm by its rule and what was sent before was not found: it was changed, or the provider lost it.
        Missed = "missed",
    }
}

impl Replay {
    /// The rule and the cache of a model's main chain, or its side chains.
    pub fn cache(&self, model: &str, side: bool) -> Option<(&'static Rule, Cached)> {
        let rule = rule(model)?;
        let cached = self.caches.get(&(Arc::from(model), side)).copied();
        Some((rule, cached.unwrap_or_default()))
    }

    /// The usage that a request would be reported with if it sent `sent` tokens; none if no rule is known for
    /// its model. Its own usage is ignored.
    pub fn predict(&self, request: &Request, sent: u64) -> Option<Usage> {
        let (rule, cached) = self.cache(request.model.as_deref()?, request.side)?;
        let same = if request.compacted { cached.base } else { u64::MAX };
        Some(cached.predict_usage(rule, sent, same, request.sent_at))
    }

    /// [`Replay::predict`] on average: a warm cache sometimes misses, and then its tokens are paid again. For
    /// sums of money; `predict` says what is most likely.
    pub fn expect(&self, request: &Request, sent: u64) -> Option<Usage> {
        let likely = self.predict(request, sent)?;
        let lost = (likely.cache_read as f64 * self.lost(request.model.as_deref()?)) as u64;
        let cache_read = likely.cache_read - lost;
        Some(match likely.cache_write {
            0 => Usage { cache_read, input: likely.input + lost, ..likely },
            _ => {
                let hour = if likely.cache_write_hour > 0 { lost } else { 0 };
                let cache_write_hour = likely.cache_write_hour + hour;
                Usage { cache_read, cache_write: likely.cache_write + lost, cache_write_hour, ..likely }
            }
        })
    }

    /// The share of tokens that a warm cache does not return, by the rule and by the session so far.
    fn lost(&self, model: &str) -> f64 {
        let Some(rule) = rule(model) else { return 0.0 };
        let (found, lost) = self.found.get(model).copied().unwrap_or_default();
        (rule.lost * PRIOR + lost as f64) / (PRIOR + found as f64 + lost as f64)
    }

    /// Tokens that were found in warm caches so far, and tokens that were not.
    pub fn found(&self) -> (u64, u64) {
        self.found.values().fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1))
    }

    /// Tokens of a request that were sent before and had to be processed again, and why. `sent_before`: the
    /// tokens that the request before it sent.
    pub fn again(&self, request: &Request, sent_before: u64) -> Option<(u64, MissCause)> {
        let (rule, cached) = self.cache(request.model.as_deref()?, request.side)?;
        let usage = &request.usage;
        let known = sent_before.min(usage.sent());
        let again = known.saturating_sub(usage.cache_read);
        let cause = match cached.tokens {
            _ if request.compacted => MissCause::Compaction,
            0 => MissCause::Start,
            _ if !cached.is_warm(rule, request.sent_at) => MissCause::Expired,
            _ => MissCause::Missed,
        };
        // What comes after the last whole step is processed again with every request.
        let usual = cause == MissCause::Missed && again <= 2 * rule.step.max(512);
        (again > 0 && !usual).then_some((again, cause))
    }

    /// Learns from the usage that was reported for a request.
    pub fn learn(&mut self, request: &Request) {
        let Some(model) = &request.model else { return };
        let Some(rule) = rule(model) else { return };
        let key = (Arc::clone(model), request.side);
        let before = self.caches.get(&key).copied().unwrap_or_default();
        if !request.compacted && before.tokens > 0 && before.is_warm(rule, request.sent_at) {
            let likely =
                before.predict_usage(rule, request.usage.sent(), u64::MAX, request.sent_at).cache_read;
            let found = likely.min(request.usage.cache_read);
            let sums = self.found.entry(Arc::clone(model)).or_default();
            *sums = (sums.0 + found, sums.1 + likely - found);
        }
        let base = before.base;
        self.caches.insert(key, Cached::after(rule, &request.usage, request.sent_at.or(request.at), base));
    }
}
