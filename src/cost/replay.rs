//! What each request of a session should have been reported as, from the requests before it: the test of the cache rules,
//! and what the next request will be.

use std::collections::HashMap;
use std::sync::Arc;

use super::cache::{Cached, Rule, rule};
use history::Usage;
use sessions::requests::Request;

/// What is known of a session's caches after some of its requests.
#[derive(Debug, Clone, Default)]
pub struct Replay {
    /// By model, and whether it is a side chain's: each has a cache of its own.
    caches: HashMap<(Arc<str>, bool), Cached>,
}

/// Why tokens that were sent before are not read from a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// The first request that is known, or the first of its model.
    Start,
    /// The context was compacted.
    Compaction,
    /// The cache had expired.
    Expired,
    /// The cache was warm by its rule and what was sent before was not found: it was changed, or the provider lost it.
    Missed,
}

impl Replay {
    /// The rule and the cache of a model's main chain, or its side chains.
    pub fn cache(&self, model: &str, side: bool) -> Option<(&'static Rule, Cached)> {
        let rule = rule(model)?;
        let cached = self.caches.get(&(Arc::from(model), side)).copied();
        Some((rule, cached.unwrap_or_default()))
    }

    /// What a request would be reported as that sends so many tokens; none where no rule is known for its model. Its own
    /// usage is not looked at.
    pub fn predict(&self, request: &Request, sent: u64) -> Option<Usage> {
        let (rule, cached) = self.cache(request.model.as_deref()?, request.side)?;
        let same = if request.compacted { cached.base } else { u64::MAX };
        Some(cached.split(rule, sent, same, request.sent_at))
    }

    /// Tokens of a request that were sent before and had to be processed again, and why. `sent_before`: what the request
    /// before it sent.
    pub fn again(&self, request: &Request, sent_before: u64) -> Option<(u64, Cause)> {
        let (rule, cached) = self.cache(request.model.as_deref()?, request.side)?;
        let usage = &request.usage;
        let known = sent_before.min(usage.sent());
        let again = known.saturating_sub(usage.cache_read);
        let cause = match cached.tokens {
            _ if request.compacted => Cause::Compaction,
            0 => Cause::Start,
            _ if !cached.is_warm(rule, request.sent_at) => Cause::Expired,
            _ => Cause::Missed,
        };
        // What is behind the last whole step is processed again with every request.
        let usual = cause == Cause::Missed && again <= 2 * rule.step.max(512);
        (again > 0 && !usual).then_some((again, cause))
    }

    /// Takes in what a request was reported as.
    pub fn learn(&mut self, request: &Request) {
        let Some(model) = &request.model else { return };
        let Some(rule) = rule(model) else { return };
        let key = (Arc::clone(model), request.side);
        let base = self.caches.get(&key).map_or(0, |it| it.base);
        self.caches.insert(key, Cached::after(rule, &request.usage, request.sent_at.or(request.at), base));
    }
}
