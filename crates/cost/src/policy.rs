//! What a session would have cost if it had been compacted at other moments: the same requests, with the
//! context that each would have had.
//!
//! Taken as it was: what each request added, what it answered, and when it was sent. Unknown: whether the
//! work would have gone the same way. Not modelled, for any policy: caches that were lost for other reasons
//! than time.

use super::bill::Amounts;
use super::cache::{Cached, Rule, rule};
use super::prices::Prices;
use history::Usage;
use sessions::requests::Request;

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Policy {
    /// When the agent compacted.
    Own,
    Never,
    /// At this share of the window or above.
    AtShare(f64),
    /// When the cache has expired, at this share of the window or above; and always from 80 %.
    AtExpiry(f64),
    /// Once, before the request with this index, in addition to all compactions of the agent, earlier and later.
    Before(usize),
}

/// What a compaction leaves, in tokens: the overhead, and a share of the messages within bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Remainder {
    /// System prompt and tools.
    pub overhead: u64,
    /// Share of the messages.
    pub share: f64,
    pub minimum: u64,
    pub maximum: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PolicyRun {
    pub amounts: Amounts,
    pub compactions: usize,
    /// Requests that would not have fit into the model's window.
    pub too_large: usize,
}

impl Remainder {
    /// Tokens of a context of `context` tokens after a compaction.
    pub fn after(&self, context: u64) -> u64 {
        let messages = context.saturating_sub(self.overhead);
        let kept =
            ((messages as f64 * self.share) as u64).clamp(self.minimum, self.maximum.max(self.minimum));
        context.min(self.overhead + kept)
    }
}

/// Share of the window from which [`Policy::AtExpiry`] compacts even with a warm cache.
const FULL: f64 = 0.8;
/// A request that sends less than this share of the one before it has another context: the agent compacted,
/// cleared or rewound.
const SHRUNK: f64 = 0.75;

/// The context that is simulated through the requests of a session.
struct Simulated<'a> {
    policy: Policy,
    window: Option<u64>,
    kept: &'a Remainder,
    prices: &'a Prices,
    context: u64,
    cached: Cached,
    run: PolicyRun,
}

/// Simulates the requests of a session's main chain.
pub fn run(
    requests: &[Request],
    policy: Policy,
    window: Option<u64>,
    kept: &Remainder,
    prices: &Prices,
) -> PolicyRun {
    let mut it = Simulated {
        policy,
        window,
        kept,
        prices,
        context: 0,
        cached: Cached::default(),
        run: PolicyRun::default(),
    };
    let mut before: Option<&Request> = None;
    for (number, request) in requests.iter().enumerate().filter(|it| !it.1.side) {
        it.step(number, request, before);
        before = Some(request);
    }
    it.run
}

impl Simulated<'_> {
    fn step(&mut self, number: usize, request: &Request, before: Option<&Request>) {
        let (sent, sent_before) = (request.usage.sent(), before.map_or(0, |it| it.usage.sent()));
        let shrunk = request.compacted || (sent as f64) < sent_before as f64 * SHRUNK;
        let Some(rule) = request.model.as_deref().and_then(rule) else {
            self.context = sent;
            return self.add(request, Usage { output: request.usage.output, ..request.usage });
        };
        // What a step that compacted added is not known; at least it was the answer before it.
        let added = match before {
            Some(it) if shrunk => it.usage.output,
            Some(_) | None => sent.saturating_sub(sent_before),
        };
        let own = shrunk && matches!(self.policy, Policy::Own | Policy::Before(_));
        let grown = self.context + added;
        let (context, compacted) = match own {
            // If the context is already smaller, an agent's own compaction does not enlarge it.
            true => (sent.min(grown), true),
            false if self.is_due(number, grown, rule, request) => (self.kept.after(grown), true),
            false => (grown, false),
        };
        if compacted && own && request.compacted {
            self.ask_for_summary(rule, request, sent);
        }
        self.run.compactions += usize::from(compacted && before.is_some());
        let same = if compacted { self.kept.overhead } else { u64::MAX };
        let parts = self.cached.predict_usage(rule, context, same, request.sent_at);
        let hour = request.usage.cache_write_hour > 0 && parts.cache_write > 0;
        let cache_write_hour = if hour { parts.cache_write } else { 0 };
        let usage = Usage { output: request.usage.output, cache_write_hour, ..parts };
        self.context = context;
        self.cached = Cached::after(rule, &usage, request.sent_at, self.cached.base);
        self.add(request, usage);
    }

    fn is_due(&self, number: usize, context: u64, rule: &Rule, request: &Request) -> bool {
        let share = self.window.map_or(0.0, |it| context as f64 / it.max(1) as f64);
        let cold = self.cached.tokens > 0 && !self.cached.is_warm(rule, request.sent_at);
        match self.policy {
            Policy::Own | Policy::Never => false,
            Policy::AtShare(from) => share >= from,
            Policy::AtExpiry(from) => share >= FULL || cold && share >= from,
            Policy::Before(at) => number == at,
        }
    }

    /// The agent's own compaction asks the model, which reads the context and writes what is beyond the
    /// overhead afterwards.
    fn ask_for_summary(&mut self, rule: &Rule, request: &Request, after: u64) {
        /// Maximum tokens of a summary: agents limit it.
        const LONGEST: u64 = 8_000;
        let parts = self.cached.predict_usage(rule, self.context, u64::MAX, request.sent_at);
        let output = after.saturating_sub(self.kept.overhead).min(LONGEST);
        self.add(request, Usage { output, ..parts });
    }

    fn add(&mut self, request: &Request, usage: Usage) {
        self.run.too_large += usize::from(self.window.is_some_and(|it| usage.sent() > it));
        let price = request.model.as_deref().and_then(|it| self.prices.of(it).ok());
        self.run.amounts.add(&usage, price);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEPT: Remainder = Remainder { overhead: 20_000, share: 0.15, minimum: 3_000, maximum: 32_000 };

    /// Requests sent at these minutes, each adding 2,000 tokens.
    fn session(minutes: &[i64]) -> Vec<Request> {
        let request = |(number, at): (usize, &i64)| {
            let sent = 30_000 + 2_000 * number as u64;
            let read = if number == 0 { 20_000 } else { sent - 2_000 };
            Request {
                sent_at: Some(at * 60_000),
                model: Some("claude-opus-4-6".into()),
                usage: Usage { cache_read: read, cache_write: sent - read, output: 500, ..Usage::default() },
                ..Request::default()
            }
        };
        minutes.iter().enumerate().map(request).collect()
    }

    fn dollars(requests: &[Request], policy: Policy) -> f64 {
        run(requests, policy, Some(200_000), &KEPT, &Prices::default()).amounts.dollars()
    }

    #[test]
    fn an_undisturbed_session_is_billed_as_it_was() {
        let requests = session(&(0..60).collect::<Vec<_>>());
        let prices = Prices::default();
        let price = prices.of("claude-opus-4-6").unwrap();
        // The first request finds nothing here: what other sessions left in the cache is not known.
        let first = Usage { cache_read: 0, cache_write: 30_000, ..requests[0].usage };
        let rest = requests[1..].iter().map(|it| it.usage);
        let reported: f64 = std::iter::once(first).chain(rest).map(|it| price.of(&it).unwrap()).sum();
        for policy in [Policy::Own, Policy::Never, Policy::AtShare(0.8)] {
            assert!((dollars(&requests, policy) - reported).abs() < 1e-9, "{policy:?}");
        }
    }

    #[test]
    fn a_cold_cache_is_the_moment() {
        // A pause of an hour in the middle.
        let minutes: Vec<i64> = (0..40).chain(100..140).collect();
        let requests = session(&minutes);
        let never = dollars(&requests, Policy::Never);
        assert!(dollars(&requests, Policy::AtExpiry(0.3)) < never);
        assert!(dollars(&requests, Policy::Before(40)) < never);
        // Shortly before the end with a warm cache it does not pay.
        assert!(dollars(&requests, Policy::Before(79)) > never);
        let run = run(&requests, Policy::Never, Some(100_000), &KEPT, &prices());
        assert_eq!((run.compactions, run.too_large), (0, 44));
    }

    fn prices() -> Prices {
        Prices::default()
    }
}
