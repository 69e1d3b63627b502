//! What the next request costs as things are, what it would cost compacted, and after how many requests that pays.

use super::cache::{Cached, Rule};
use super::prices::Price;
use history::Usage;

/// What is known of the next requests, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ForecastSizes {
    /// The next request if nothing is compacted.
    pub context: u64,
    /// The next request after a compaction.
    pub after: u64,
    /// The beginning of both, which a compaction does not change: system prompt and tools.
    pub same: u64,
    /// What each request adds to the next one, including its answer.
    pub growth: u64,
}

/// The next requests, as they would be reported, without outputs, which a compaction does not change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// The next one if nothing is compacted.
    pub next: Usage,
    /// A later one, while the cache stays warm.
    pub later: Usage,
    /// The first one after a compaction: its context is written to the cache anew.
    pub compacted_next: Usage,
    pub compacted_later: Usage,
    pub warm: bool,
    /// Milliseconds since 1970 until which the cache is warm.
    pub warm_until: Option<i64>,
}

/// Forecasts the next requests for a time in milliseconds since 1970.
pub fn forecast(rule: &Rule, cached: &Cached, sizes: &ForecastSizes, at: i64) -> Forecast {
    let at = Some(at);
    let later = |cached: &Cached, now: &Usage, context: u64| {
        Cached::after(rule, now, at, cached.base).predict_usage(rule, context + sizes.growth, u64::MAX, at)
    };
    let next = cached.predict_usage(rule, sizes.context, u64::MAX, at);
    let compacted_next = cached.predict_usage(rule, sizes.after, sizes.same, at);
    Forecast {
        next,
        later: later(cached, &next, sizes.context),
        compacted_next,
        compacted_later: later(cached, &compacted_next, sizes.after),
        warm: cached.tokens > 0 && cached.is_warm(rule, at),
        warm_until: cached.warm_until(rule).filter(|_| cached.tokens > 0),
    }
}

impl Forecast {
    /// After how many requests a compaction has paid for itself; none if never, or if a price is not known.
    /// `asked`: US dollars for the summary itself, 0 if no model writes it.
    pub fn pays_after(&self, price: &Price, asked: f64) -> Option<u64> {
        let saved_next = price.of(&self.next)? - price.of(&self.compacted_next)? - asked;
        let saved_later = price.of(&self.later)? - price.of(&self.compacted_later)?;
        if saved_next >= 0.0 && saved_later >= 0.0 {
            return Some(1);
        }
        (saved_later > 0.0).then(|| 1 + (-saved_next / saved_later).ceil() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Prices, cache};

    const SIZES: ForecastSizes =
        ForecastSizes { context: 120_000, after: 40_000, same: 20_000, growth: 1_000 };

    fn of(at: i64, sizes: &ForecastSizes) -> (Forecast, Option<u64>) {
        let rule = cache::rule("claude-opus-4-6").unwrap();
        let last = Usage { input: 3, cache_read: 100_000, cache_write: 19_000, ..Usage::default() };
        let cached = Cached::after(rule, &last, Some(0), 20_000);
        let forecast = forecast(rule, &cached, sizes, at);
        let prices = Prices::default();
        (forecast, forecast.pays_after(prices.of("claude-opus-4-6").unwrap(), 0.0))
    }

    #[test]
    fn a_warm_cache_is_lost_and_paid_back() {
        let (it, pays) = of(1_000, &SIZES);
        assert_eq!((it.warm, it.warm_until), (true, Some(300_000)));
        assert_eq!((it.next.cache_read, it.next.cache_write), (119_000, 1_000));
        assert_eq!((it.compacted_next.cache_read, it.compacted_next.cache_write), (20_000, 20_000));
        assert_eq!((it.later.cache_read, it.compacted_later.cache_read), (120_000, 40_000));
        // The first costs 0.135 instead of 0.06575; each later one saves 80,000 tokens read for 0.04.
        assert_eq!(pays, Some(3));
    }

    #[test]
    fn at_a_cold_cache_it_pays_at_once() {
        let (it, pays) = of(300_000, &SIZES);
        assert!(!it.warm);
        assert_eq!((it.next.cache_write, it.compacted_next.cache_write, pays), (120_000, 40_000, Some(1)));
    }

    #[test]
    fn what_saves_nothing_never_pays() {
        assert_eq!(of(1_000, &ForecastSizes { after: 120_000, ..SIZES }).1, None);
        let (it, _) = of(1_000, &SIZES);
        let prices = Prices::default();
        let price = prices.of("claude-opus-4-6").unwrap();
        // A summary that a model writes is paid back, too.
        assert_eq!(it.pays_after(price, 0.4), Some(13));
    }
}
