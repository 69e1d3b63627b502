//! What a session's requests cost, what the next one will cost, and whether a compaction pays.

use std::collections::BTreeMap;

use crate::answers::{
    ContentSpent, CostAnswer, MomentInfo, NextCost, PaidAgain, PriceInfo, Spent, SpentInfo, TurnSpent,
    UnpricedInfo,
};
use crate::engine::input::measured::{Measured, warnings};
use crate::engine::{Ask, Engine, Opened, input::measured, session_info};
use compaction::profile::{Keep, Profile};
use cost::bill::{Amounts, Charge};
use cost::forecast::{Forecast, ForecastSizes, forecast};
use cost::policy::{self, Policy, Remainder};
use cost::replay::Replay;
use cost::{Bill, Price, cents};
use history::error::Result;
use history::{Usage, secrets};
use sessions::derive::time;
use sessions::requests::{Request, Requests, live, requests};
use tokens::Categories;

/// Number of the most expensive turns that are shown.
const DEAREST: usize = 10;
/// Newest requests over which the growth of the context is averaged.
const RECENT: usize = 10;
/// Minimum tokens that a compaction must save to be listed.
const WORTH: u64 = 20_000;

/// The messages after a change, in tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AfterChange {
    pub(crate) tokens: u64,
    /// Tokens of the messages before the first changed one.
    pub(crate) prefix: u64,
    /// US dollars that the change itself costs.
    pub(crate) asked: f64,
}

/// A forecast of a session's next requests, and the price of its model.
struct Ahead<'a> {
    forecast: Forecast,
    sizes: ForecastSizes,
    price: Result<&'a Price, String>,
    requests_a_turn: f64,
}

/// What a session cost, by the usage that its provider reported, and what it would have cost compacted.
///
/// # Errors
///
/// The session cannot be found or read.
pub fn cost_of(engine: &Engine, opened: &Opened, ask: &Ask) -> Result<CostAnswer> {
    let measured = measured::measure(engine, &opened.session, ask);
    let requests = requests(opened.source.as_ref(), &opened.session)?;
    let bill = Bill::of(&requests, &engine.config.prices);
    let mut warnings = warnings(engine, opened, &measured);
    if requests.all.is_empty() {
        warnings.push("the session records no usage, so its cost is unknown".to_owned());
    }
    if bill.total.unpriced > 0 {
        warnings.push(format!(
            "{} of {} requests have no known price and are counted in tokens only; set one with [cost.prices.\"MODEL\"] in config.toml",
            bill.total.unpriced, bill.total.requests
        ));
    }
    if requests.all.windows(2).any(|it| it[0].at.zip(it[1].at).is_some_and(|(a, b)| b < a - 60_000)) {
        warnings.push("the session's clock jumps back: when its caches expired is uncertain".to_owned());
    }
    let dearest = bill.dearest(DEAREST).into_iter().map(|(prompt, it)| TurnSpent {
        turn: prompt.map_or(0, |it| it + 1),
        prompt: words(&requests, prompt),
        spent: spent_info(&it),
    });
    let again = bill.again.iter().map(|(cause, (count, amount))| PaidAgain {
        cause: cause.name().to_owned(),
        requests: *count,
        spent: spent(*amount, &bill.total),
    });
    Ok(CostAnswer {
        session: session_info(opened),
        currency: "USD".to_owned(),
        prices: bill
            .prices
            .iter()
            .map(|(model, (date, source))| PriceInfo {
                model: model.clone(),
                date: date.clone(),
                source: source.clone(),
            })
            .collect(),
        unpriced: bill
            .unpriced
            .iter()
            .map(|(model, why)| UnpricedInfo { model: model.clone(), why: why.clone() })
            .collect(),
        spent: spent_info(&bill.total),
        side: spent_info(&bill.side),
        by_content: by_content(engine, &measured),
        paid_again: again.collect(),
        turns: requests.prompts.len(),
        dearest: dearest.collect(),
        compactions: requests.compactions,
        moments: moments(engine, &requests, &measured, ask),
        next: Some(next_cost(engine, &measured, ask, None)),
        warnings,
    })
}

/// Attributes the input of each request since the last compaction to the categories of content that it
/// carried.
fn by_content(engine: &Engine, measured: &Measured<'_>) -> Vec<ContentSpent> {
    let (history, counter) = (measured.history, &measured.counter);
    let mut carried = Categories { system: counter.overhead(), ..Categories::default() };
    let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    let (mut unpriced, requests) = (0, live(history).all);
    let mut next = requests.iter().peekable();
    for message in history.messages() {
        if let Some(request) = next.next_if(|it| message.at == it.at && message.usage == Some(it.usage)) {
            let input = Usage { output: 0, ..request.usage };
            let price = request.model.as_deref().and_then(|it| engine.config.prices.of(it).ok());
            let dollars = price.and_then(|it| it.of(&input));
            unpriced += usize::from(dollars.is_none());
            for (name, tokens) in carried.named() {
                let share = tokens as f64 / carried.total().max(1) as f64;
                let sum = sums.entry(name).or_default();
                sum.0 += share * input.sent() as f64;
                sum.1 += share * dollars.unwrap_or_default();
            }
        }
        carried = carried + counter.categories(std::slice::from_ref(message));
    }
    let spent = |(tokens, dollars): (f64, f64)| Spent {
        tokens: tokens.round() as u64,
        dollars: (unpriced < requests.len()).then(|| cents(dollars)),
    };
    let mut out: Vec<_> = sums
        .into_iter()
        .map(|(name, sum)| ContentSpent { category: name.to_owned(), spent: spent(sum) })
        .filter(|it| it.spent.tokens > 0)
        .collect();
    out.sort_by_key(|it| std::cmp::Reverse(it.spent.tokens));
    out
}

/// What a compaction before each turn would have saved.
fn moments(engine: &Engine, requests: &Requests, measured: &Measured<'_>, ask: &Ask) -> Vec<MomentInfo> {
    let Some(remainder) = remainder(&ask.profile, measured.counter.overhead()) else { return Vec::new() };
    let (all, prices) = (&requests.all, &engine.config.prices);
    let run = |policy| policy::run(all, policy, measured.limits.window, &remainder, prices).amounts;
    let as_it_was = run(Policy::Own);
    let (mut out, mut replay, mut before): (Vec<MomentInfo>, _, _) = (Vec::new(), Replay::default(), None);
    for (number, request) in all.iter().enumerate().filter(|it| !it.1.side) {
        let context = request.usage.sent();
        let begins = before.is_some_and(|it: &Request| it.prompt != request.prompt);
        if begins && !request.compacted && context > remainder.after(context) + WORTH {
            let other = run(Policy::Before(number));
            let cache = request.model.as_deref().and_then(|it| replay.cache(it, false));
            out.push(MomentInfo {
                turn: request.prompt.map_or(0, |it| it + 1),
                prompt: words(requests, request.prompt),
                at: request.sent_at.map(time),
                context,
                expired: cache.is_some_and(|(rule, it)| !it.is_warm(rule, request.sent_at)),
                saved_tokens: as_it_was.tokens() as i64 - other.tokens() as i64,
                saved_dollars: (other.unpriced == 0).then(|| cents(as_it_was.dollars() - other.dollars())),
            });
        }
        replay.learn(request);
        before = Some(request);
    }
    out
}

/// Forecasts a session's next requests, if its provider reported usage and its model's cache rule is known.
/// Without `after`, assumes that a compaction leaves what the profile's budget says.
fn ahead<'a>(
    engine: &'a Engine,
    measured: &Measured<'_>,
    ask: &Ask,
    after: Option<AfterChange>,
) -> Option<Ahead<'a>> {
    let model = ask.counting.model.as_deref().or(measured.history.meta.model.as_deref())?;
    let requests = live(measured.history);
    let mut replay = Replay::default();
    requests.all.iter().for_each(|it| replay.learn(it));
    let (rule, cached) = replay.cache(model, false)?;
    let (context, overhead) = (measured.context(), measured.counter.overhead());
    let all = &requests.all;
    let grown =
        all.windows(2).rev().take(RECENT).map(|it| it[1].usage.sent().saturating_sub(it[0].usage.sent()));
    let growth = grown.sum::<u64>() / (all.len().saturating_sub(1).clamp(1, RECENT) as u64);
    let prefix = after.map_or(0, |it| it.prefix);
    let after = match after {
        Some(it) => Some(overhead + it.tokens),
        None => remainder(&ask.profile, overhead).map(|it| it.after(context)),
    };
    let sizes = ForecastSizes { context, after: after.unwrap_or(context), same: overhead + prefix, growth };
    (!all.is_empty()).then(|| Ahead {
        forecast: forecast(rule, &cached, &sizes, engine.now),
        sizes,
        price: engine.config.prices.of(model),
        requests_a_turn: all.len() as f64 / requests.prompts.len().max(1) as f64,
    })
}

/// What the next request costs; `after` as for [`ahead`].
pub(crate) fn next_cost(
    engine: &Engine,
    measured: &Measured<'_>,
    ask: &Ask,
    after: Option<AfterChange>,
) -> NextCost {
    let asked = after.map_or(0.0, |it| it.asked);
    let Some(ahead) = ahead(engine, measured, ask, after) else {
        let model = measured.history.meta.model.as_deref().unwrap_or("an unknown model");
        let why = match live(measured.history).all.is_empty() {
            true => "the session records no usage".to_owned(),
            false => format!("the caching rules of {model}'s provider are unknown"),
        };
        return NextCost { why, ..NextCost::default() };
    };
    let Ahead { forecast, sizes, .. } = &ahead;
    let saves = sizes.after < sizes.context;
    let mut out = NextCost {
        cached: Some(forecast.next.cache_read),
        fresh: Some(forecast.next.sent() - forecast.next.cache_read),
        after: saves.then_some(sizes.after),
        warm_until: forecast.warm_until.map(time),
        ..NextCost::default()
    };
    if let Ok(price) = ahead.price {
        let dollars = |it| price.of(&it).map(cents);
        out.next_dollars = dollars(forecast.next);
        out.after_first_dollars = dollars(forecast.compacted_next).filter(|_| saves);
        out.after_each_dollars = dollars(forecast.compacted_later).filter(|_| saves);
        out.pays_after_requests = forecast.pays_after(price, asked).filter(|_| saves);
        out.pays_after_turns =
            out.pays_after_requests.map(|it| (it as f64 / ahead.requests_a_turn).ceil().max(1.0) as u64);
        out.prices = Some(price.read_from());
    }
    out.why = sentence(&ahead, &out);
    out
}

/// What a profile keeps, if it defines that by a budget.
pub(crate) fn remainder(profile: &Profile, overhead: u64) -> Option<Remainder> {
    match &profile.summarize()?.keep {
        Keep::Budget(it) => {
            Some(Remainder { overhead, share: it.share, minimum: it.minimum, maximum: it.maximum })
        }
        Keep::Nothing | Keep::ShareBehind(_) | Keep::Messages(_) | Keep::Turns(_) | Keep::UserMessages(_) => {
            None
        }
    }
}

fn sentence(ahead: &Ahead<'_>, cost: &NextCost) -> String {
    let Ahead { forecast, sizes, .. } = ahead;
    let thousands = |it: u64| format!("{}k", (it + 500) / 1_000);
    let state = match (forecast.warm, &cost.warm_until) {
        (true, Some(until)) => {
            format!("{} cached until about {}", thousands(forecast.next.cache_read), clock(until))
        }
        (true, None) => format!("{} cached", thousands(forecast.next.cache_read)),
        (false, Some(until)) => format!("the cache expired at about {}", clock(until)),
        (false, None) => "nothing is cached".to_owned(),
    };
    let mut out = match cost.next_dollars {
        Some(dollars) => format!("next request ${dollars:.4} ({} tokens, {state})", thousands(sizes.context)),
        None => format!("next request {} tokens, {state}", thousands(sizes.context)),
    };
    if let (Some(first), Some(each)) = (cost.after_first_dollars, cost.after_each_dollars) {
        out.push_str(&format!("; if compacted, ${first:.4}, then ${each:.4} each: "));
        out.push_str(&match cost.pays_after_requests {
            Some(1) => "pays off at once".to_owned(),
            Some(count) => format!("pays off after {count} requests"),
            None => "does not pay off".to_owned(),
        });
    }
    match &ahead.price {
        Ok(price) if cost.next_dollars.is_some() => out.push_str(&format!("; prices of {}", price.date)),
        Ok(_) => out.push_str("; its price at this size is unknown"),
        Err(why) => out.push_str(&format!("; {why}")),
    }
    out
}

/// The hour and minute of an RFC 3339 time.
fn clock(time: &str) -> String {
    time.get(11..16).map_or_else(|| time.to_owned(), |it| format!("{it} UTC"))
}

fn words(requests: &Requests, prompt: Option<usize>) -> String {
    prompt
        .and_then(|it| requests.prompts.get(it))
        .map(|it| secrets::mask(it).into_owned())
        .unwrap_or_default()
}

fn spent(amount: Charge, of: &Amounts) -> Spent {
    Spent { tokens: amount.tokens, dollars: (of.unpriced < of.requests).then(|| cents(amount.dollars)) }
}

fn spent_info(it: &Amounts) -> SpentInfo {
    SpentInfo {
        requests: it.requests,
        unpriced: it.unpriced,
        total: spent(Charge { tokens: it.tokens(), dollars: it.dollars() }, it),
        input: spent(it.input, it),
        cache_read: spent(it.cache_read, it),
        cache_write: spent(it.cache_write, it),
        output: spent(it.output, it),
    }
}
