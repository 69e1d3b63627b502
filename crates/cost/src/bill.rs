//! What a session's requests cost: in all, by part of the bill, by turn, and what was paid again.

use std::collections::BTreeMap;

use super::prices::Prices;
use super::replay::{MissCause, Replay};
use history::Usage;
use sessions::requests::{Request, Requests};

/// Tokens, and US dollars for those of them that have a price.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Charge {
    pub tokens: u64,
    pub dollars: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Amounts {
    pub requests: usize,
    /// Those of `requests` whose price is not known: they are counted in tokens only.
    pub unpriced: usize,
    /// Input tokens, not from a cache.
    pub input: Charge,
    /// Input read from a cache.
    pub cache_read: Charge,
    /// Input written to a cache.
    pub cache_write: Charge,
    pub output: Charge,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Bill {
    pub total: Amounts,
    /// The part of `total` that is of side chains.
    pub side: Amounts,
    /// By index of the prompt; none for what came before the first one.
    pub turns: Vec<(Option<usize>, Amounts)>,
    /// What was sent before, was not found in a cache, and was paid again, by cause: requests, tokens, and
    /// the dollars above the price of reading them from the cache.
    pub again: BTreeMap<MissCause, (usize, Charge)>,
    /// Models without a price, and why.
    pub unpriced: BTreeMap<String, String>,
    /// Models with a price: the day it was read, and where.
    pub prices: BTreeMap<String, (String, String)>,
}

impl Amounts {
    /// US dollars in all.
    pub fn dollars(&self) -> f64 {
        self.input.dollars + self.cache_read.dollars + self.cache_write.dollars + self.output.dollars
    }

    pub fn tokens(&self) -> u64 {
        [self.input, self.cache_read, self.cache_write, self.output]
            .iter()
            .fold(0, |sum, it| sum.saturating_add(it.tokens))
    }

    pub fn add(&mut self, usage: &Usage, price: Option<&super::Price>) {
        self.requests += 1;
        let rates = price.and_then(|it| it.rates(usage.sent()));
        self.unpriced += usize::from(rates.is_none());
        let Usage { input, cache_read, cache_write, cache_write_hour, output, .. } = *usage;
        let none = Usage::default();
        for (amount, part) in [
            (&mut self.input, Usage { input, ..none }),
            (&mut self.cache_read, Usage { cache_read, ..none }),
            (&mut self.cache_write, Usage { cache_write, cache_write_hour, ..none }),
            (&mut self.output, Usage { output, ..none }),
        ] {
            amount.tokens = amount.tokens.saturating_add(part.context());
            amount.dollars += rates.map_or(0.0, |it| it.of(&part));
        }
    }
}

impl Bill {
    /// The bill for all requests of a session.
    pub fn of(requests: &Requests, prices: &Prices) -> Self {
        let (mut out, mut replay) = (Self::default(), Replay::default());
        let mut before: BTreeMap<bool, u64> = BTreeMap::new();
        for request in &requests.all {
            out.add(request, prices);
            if let Some(again) = before.get(&request.side).and_then(|sent| replay.again(request, *sent)) {
                out.paid_again(request, again, prices);
            }
            replay.learn(request);
            before.insert(request.side, request.usage.sent());
        }
        out
    }

    /// The most expensive turns, by dollars if all have a price, else by tokens.
    pub fn dearest(&self, most: usize) -> Vec<(Option<usize>, Amounts)> {
        let mut out = self.turns.clone();
        let priced = self.total.unpriced == 0;
        let cost = |it: &Amounts| if priced { it.dollars() } else { it.tokens() as f64 };
        out.sort_by(|a, b| cost(&b.1).total_cmp(&cost(&a.1)));
        out.truncate(most);
        out
    }

    fn add(&mut self, request: &Request, prices: &Prices) {
        let model = request.model.as_deref().unwrap_or("unknown");
        let price = prices.of(model);
        match &price {
            Ok(it) if it.rates(request.usage.sent()).is_some() => {
                let known = || (it.date.clone(), it.source.clone());
                self.prices.entry(it.name.clone()).or_insert_with(known);
            }
            Ok(it) => {
                let most = it.up_to.unwrap_or_default();
                let why = format!("its price for requests of more than {most} tokens is unknown");
                self.unpriced.insert(model.to_owned(), why);
            }
            Err(why) => {
                self.unpriced.insert(model.to_owned(), why.clone());
            }
        }
        let price = price.ok();
        self.total.add(&request.usage, price);
        if request.side {
            self.side.add(&request.usage, price);
        }
        if self.turns.last().is_none_or(|it| it.0 != request.prompt) {
            self.turns.push((request.prompt, Amounts::default()));
        }
        if let Some((_, turn)) = self.turns.last_mut() {
            turn.add(&request.usage, price);
        }
    }

    fn paid_again(&mut self, request: &Request, (tokens, cause): (u64, MissCause), prices: &Prices) {
        let usage = &request.usage;
        let rates = request.model.as_deref().and_then(|it| prices.of(it).ok()?.rates(usage.sent()));
        let written = match (usage.cache_write, usage.cache_write_hour) {
            (0, _) => Usage { input: tokens, ..Usage::default() },
            (_, 0) => Usage { cache_write: tokens, ..Usage::default() },
            _ => Usage { cache_write: tokens, cache_write_hour: tokens, ..Usage::default() },
        };
        let read = Usage { cache_read: tokens, ..Usage::default() };
        let entry = self.again.entry(cause).or_default();
        entry.0 += 1;
        entry.1.tokens = entry.1.tokens.saturating_add(tokens);
        entry.1.dollars += rates.map_or(0.0, |it| it.of(&written) - it.of(&read));
    }
}
