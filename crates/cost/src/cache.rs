//! Which part of a request a provider has in its cache: rules by model, as data.

use std::sync::LazyLock;

use serde::Deserialize;

use super::prices::bare;
use history::Usage;

/// How a provider caches the beginning of a request.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rule {
    /// Prefixes of the ids of its models.
    models: Vec<String>,
    /// Seconds that a prefix is kept after its last use.
    pub seconds: u32,
    /// The same for a prefix that was written to be kept for an hour.
    pub hour_seconds: u32,
    /// Minimum tokens of a prefix that is cached.
    pub minimum: u64,
    /// The tokens that are read are a multiple of this, plus a constant.
    pub step: u64,
    /// The share of a warm cache's tokens that is not read from it nevertheless; measured.
    pub lost: f64,
    /// Whether writes are reported and billed separately from other input.
    pub writes: bool,
    /// The page that documents it.
    pub source: String,
    /// The day it was read, `YYYY-MM-DD`.
    pub date: String,
    /// What was measured, because the page does not say it.
    #[serde(default)]
    pub measured: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CacheTable {
    cache: Vec<Rule>,
}

/// The rule of a model; none if it is unknown.
pub fn rule(model: &str) -> Option<&'static Rule> {
    static TABLE: LazyLock<Vec<Rule>> = LazyLock::new(|| {
        toml::from_str::<CacheTable>(include_str!("caches.toml")).map(|it| it.cache).unwrap_or_default()
    });
    let model = bare(model);
    let fit = |rule: &'static Rule| {
        let lengths = rule.models.iter().filter(|it| model.starts_with(it.as_str())).map(String::len);
        Some((lengths.max()?, rule))
    };
    TABLE.iter().filter_map(fit).max_by_key(|it| it.0).map(|it| it.1)
}

/// What a cache holds of a session's requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cached {
    /// Tokens of the last request that the next one finds while the cache is warm.
    pub tokens: u64,
    /// Those of `tokens` that stay the same across a compaction: system prompt and tools.
    pub base: u64,
    /// The tokens that were last read, modulo the step: what is read differs by whole steps.
    phase: u64,
    /// Whether it was written to be kept for an hour.
    hour: bool,
    /// Milliseconds since 1970 of the last use.
    at: Option<i64>,
}

impl Cached {
    /// The cache after a request that was sent at this time and reported this usage. `base`: the one known
    /// before.
    pub fn after(rule: &Rule, usage: &Usage, at: Option<i64>, base: u64) -> Self {
        // Without breakpoints all of a request is cached. With them, what is after the last one is reported
        // as input.
        let tokens =
            if rule.writes && usage.cache_write > 0 { usage.sent() - usage.input } else { usage.sent() };
        let tokens = if tokens < rule.minimum { 0 } else { tokens };
        // A new session finds only what all sessions begin with; so does a session after a compaction.
        let base = match (base, usage.cache_read) {
            (0, read) => read,
            (base, 0) => base,
            (base, read) => base.min(read),
        };
        let hour = usage.cache_write_hour > 0;
        Self { tokens, base, phase: usage.cache_read % rule.step.max(1), hour, at }
    }

    /// Milliseconds since 1970 until which it is warm, if the time of its last use is known.
    pub fn warm_until(&self, rule: &Rule) -> Option<i64> {
        let lifetime = i64::from(if self.hour { rule.hour_seconds } else { rule.seconds });
        self.at.map(|it| it.saturating_add(1_000 * lifetime))
    }

    /// Whether it is warm at this time. If the time is unknown, or before the last use, it is assumed to be.
    pub fn is_warm(&self, rule: &Rule, at: Option<i64>) -> bool {
        self.warm_until(rule).zip(at).is_none_or(|(until, at)| at < until)
    }

    /// The usage that a request of `sent` tokens, sent at this time, will be reported with. `same`: how many
    /// tokens at its beginning are unchanged.
    pub fn predict_usage(&self, rule: &Rule, sent: u64, same: u64, at: Option<i64>) -> Usage {
        let found = if self.is_warm(rule, at) { self.tokens.min(same).min(sent) } else { 0 };
        let step = rule.step.max(1);
        let whole = found.checked_sub(self.phase).map_or(0, |it| it / step * step + self.phase);
        let cache_read = if whole < rule.minimum { 0 } else { whole };
        let rest = sent - cache_read;
        if rule.writes && sent >= rule.minimum {
            let cache_write_hour = if self.hour { rest } else { 0 };
            return Usage { cache_read, cache_write: rest, cache_write_hour, ..Usage::default() };
        }
        Usage { input: rest, cache_read, ..Usage::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_a_date_and_a_source() {
        let table: CacheTable = toml::from_str(include_str!("caches.toml")).unwrap();
        for rule in &table.cache {
            assert!(crate::is_day(&rule.date), "{:?}", rule.models);
            assert!(rule.source.starts_with("https://"), "{:?}", rule.models);
            assert!(
                rule.step > 0 && rule.seconds > 0 && rule.hour_seconds >= rule.seconds,
                "{:?}",
                rule.models
            );
        }
    }

    #[test]
    fn a_warm_prefix_is_read_and_a_cold_one_written() {
        let rule = rule("claude-opus-4-6").unwrap();
        assert_eq!(rule.minimum, 4_096);
        let first = Usage { input: 3, cache_read: 16_000, cache_write: 20_000, ..Usage::default() };
        let cached = Cached::after(rule, &first, Some(0), 0);
        assert_eq!((cached.tokens, cached.base, cached.warm_until(rule)), (36_000, 16_000, Some(300_000)));
        let warm = cached.predict_usage(rule, 40_000, u64::MAX, Some(299_999));
        assert_eq!((warm.cache_read, warm.cache_write, warm.input), (36_000, 4_000, 0));
        let cold = cached.predict_usage(rule, 40_000, u64::MAX, Some(300_000));
        assert_eq!((cold.cache_read, cold.cache_write), (0, 40_000));
        let changed = cached.predict_usage(rule, 40_000, 17_000, Some(1));
        assert_eq!((changed.cache_read, changed.cache_write), (17_000, 23_000));
        // A clock that jumps back is no evidence that it is cold.
        assert!(cached.is_warm(rule, Some(i64::MIN)) && cached.is_warm(rule, None));
        let hour = Cached::after(rule, &Usage { cache_write_hour: 1, ..first }, Some(0), 0);
        assert_eq!(hour.warm_until(rule), Some(3_600_000));
    }

    #[test]
    fn what_is_read_comes_in_steps() {
        let rule = rule("openai/gpt-5.5-2026-04-23").unwrap();
        let cached =
            Cached::after(rule, &Usage { input: 1_004, cache_read: 30_080, ..Usage::default() }, None, 0);
        let next = cached.predict_usage(rule, 31_539, u64::MAX, None);
        assert_eq!((next.cache_read, next.input, next.cache_write), (30_592, 947, 0));
        assert_eq!(cached.predict_usage(rule, 900, u64::MAX, None).input, 900);
        assert_eq!(super::rule("llama"), None);
    }
}
