//! What a summary by a provider costs: the cheaper form of asking, what was spent, and the limits.

use std::time::Duration;

use serde_json::Value;

use crate::answers::{CostInfo, EstimateAnswer, MethodInfo};
use crate::config::{Choice, Override, Summarizers};
use crate::engine::compact::CompactJob;
use crate::engine::compact::compacted::percent;
use crate::engine::{Ask, Engine, Opened, inspect::estimate};
use crate::llm::price::{self, RequestForm, RequestSizes};
use crate::llm::run;
use crate::report::counted;
use crate::store::Mark;
use compaction::plan::Need;
use compaction::summary::dialogue::Dialogue;
use compaction::summary::model::{Api, Endpoint, Prefix};
use compaction::summary::request::SummaryRequest;
use cost::{Price, cents};
use history::error::{Error, ErrorKind, Result};
use history::secrets::Redactor;
use sessions::{self, Format};

/// Consecutive failures after which a provider is not asked for [`COOL_DOWN_MS`].
const MAX_FAILURES: u32 = 3;
/// Milliseconds.
const COOL_DOWN_MS: i64 = 10 * 60 * 1_000;
/// Milliseconds that a provider's prompt cache lives (Anthropic; OpenAI 5 to 10 minutes).
const CACHE_LIFETIME_MS: i64 = 5 * 60 * 1_000;
const HOUR_MS: i64 = 3_600_000;

/// Marks of the hourly totals over all sessions: tokens, millionths of a dollar, milliseconds.
const TOKENS_MARK: &str = "summarizer.sent";
const DOLLARS_MARK: &str = "summarizer.spent";
const MILLISECONDS_MARK: &str = "summarizer.asked";

/// What asking will cost in the cheaper of two forms: a prompt of our own, or the session's own request,
/// returned as the prefix, which the provider may have cached. The second needs plain messages of the
/// provider's own API with their system prompt: from a session file, the agent's request cannot be rebuilt
/// byte for byte.
pub(crate) fn cost(
    job: &CompactJob<'_>,
    need: &Need,
    request: &SummaryRequest<'_>,
    endpoint: &Endpoint,
) -> (CostInfo, Option<Prefix>) {
    let CompactJob { engine, opened, measured, .. } = *job;
    let meta = &measured.history.meta;
    let same = meta.model.as_deref() == Some(endpoint.model.as_str());
    let known = opened.session.format == api_format(endpoint.api) && meta.system.is_some();
    let why_not = match (known, same) {
        (true, true) => None,
        (false, _) => Some("only the messages of the agent's request are known, not all of it"),
        (true, false) => Some("the session uses another model, with its own cache"),
    };
    let warm = meta.times.is_some_and(|it| engine.now.saturating_sub(it.1) < CACHE_LIFETIME_MS);
    let own: u64 = request.excerpts.iter().map(|it| (request.count)(&it.text) + 12).sum();
    let sizes = RequestSizes {
        own,
        prefix: why_not.is_none().then_some((measured.context(), warm)),
        output: need.max_tokens,
        saved: measured.tokens.saturating_sub(need.max_tokens),
        rewritten: need.max_tokens,
    };
    let mut out = CostInfo {
        model: endpoint.label(),
        form: "own".to_owned(),
        input_tokens: own,
        output_tokens: need.max_tokens,
        ..CostInfo::default()
    };
    let prices = &engine.config.prices;
    let asked = match prices.of(&endpoint.model) {
        Ok(asked) => asked,
        Err(why) => {
            out.why = why;
            return (out, None);
        }
    };
    out.prices = Some(asked.read_from());
    let session = meta.model.as_deref().and_then(|it| prices.of(it).ok());
    let predicted = price::predict(asked, session, &sizes);
    out.own_dollars = Some(cents(predicted.own));
    out.prefix_dollars = predicted.prefix.map(cents);
    out.pays_after_turns = predicted.pays_after;
    out.why = match (why_not, predicted.form, warm) {
        (Some(why), ..) => format!("asked with our own prompt: {why}"),
        (None, RequestForm::Own, _) => "our own prompt is cheaper than the session's own request".to_owned(),
        (None, RequestForm::Prefix, true) => {
            "the session's own request is still in the provider's cache".to_owned()
        }
        (None, RequestForm::Prefix, false) => "the session's own request is cheaper".to_owned(),
    };
    if predicted.form == RequestForm::Own {
        return (out, None);
    }
    let json = |text: &str| serde_json::from_str(text).ok();
    let (messages, _) =
        sessions::wire::messages_of(measured.history, Some(opened.session.format), api_format(endpoint.api));
    let Ok(messages) = serde_json::from_slice(&messages) else { return (out, None) };
    out.form = "prefix".to_owned();
    out.input_tokens = measured.context();
    // Not masked: the provider received these secrets already, and a changed prefix would miss its cache.
    let system = meta.system.as_ref().map(|it| json(it.as_str()).unwrap_or_else(|| it.as_str().into()));
    let tools = meta.tools.as_ref().and_then(|it| json(it.as_str()));
    (out, Some(Prefix { system, tools, messages }))
}

/// How full the context is, with the messages counted by a provider's API: that of the maker of the session's
/// model, unless `choice` names another. Secrets are masked before anything is sent.
///
/// # Errors
///
/// As for [`estimate`](crate::engine::estimate); a provider that may not be asked or does not answer.
pub fn estimate_by_provider(
    engine: &Engine,
    opened: &Opened,
    ask: &Ask,
    next: Option<u64>,
    choice: Choice,
    said: &Override,
) -> Result<EstimateAnswer> {
    let mut answer = estimate::estimate(engine, opened, ask, next)?;
    let history = &opened.session.history;
    let model = ask.counting.model.as_deref().or(history.meta.model.as_deref());
    let maker = model.and_then(Summarizers::maker);
    let choice = match choice {
        Choice::Auto => maker.clone().unwrap_or(Choice::Auto),
        other => other,
    };
    // Only the model's maker can count for that very model.
    let own = model.filter(|_| maker.as_ref() == Some(&choice)).map(|it| it.rsplit('/').next().unwrap_or(it));
    let said = Override { model: said.model.clone().or(own.map(str::to_owned)), ..said.clone() };
    let summarizers = &engine.config.summarizers;
    let chosen = summarizers.endpoint(&choice, &engine.config.environment, true, &said)?;
    let Some((endpoint, _)) = chosen else {
        let what = "counting by a provider: expected a provider's key in its usual variable, found none";
        return Err(Error::new(ErrorKind::Provider, what));
    };
    let api = api_format(endpoint.api);
    let (messages, _) = sessions::wire::messages_of(history, Some(opened.session.format), api);
    let mut messages: Value = serde_json::from_slice(&messages)
        .map_err(|error| Error::new(ErrorKind::Bug, "counting by a provider").because(error))?;
    mask(&mut messages, &engine.config.redactor);
    let tokens = run::count_tokens(messages, &endpoint, summarizers.limits)?;
    answer.warnings.push(format!(
        "the messages were sent to {} at {} to be counted; shares and triggers use our own count",
        endpoint.label(),
        endpoint.host()
    ));
    answer.tokens = tokens;
    answer.context = tokens + answer.overhead;
    answer.used_percent = percent(answer.context, answer.window);
    answer.method = MethodInfo {
        kind: "exact".to_owned(),
        estimator: endpoint.label(),
        anchor: None,
        margin_percent: 0.0,
    };
    Ok(answer)
}

/// Why the provider must not be asked now; `None` if it may be.
pub(crate) fn refusal(engine: &Engine, endpoint: &Endpoint) -> Result<Option<String>> {
    if let Some(mark) = engine.store.marked(&engine.shared(), &failures_mark(endpoint))? {
        let count: u32 = mark.value.parse().unwrap_or(0);
        let left = mark.at.saturating_add(COOL_DOWN_MS).saturating_sub(engine.now);
        if count >= MAX_FAILURES && left > 0 && left <= COOL_DOWN_MS {
            return Ok(Some(format!(
                "{} failed {count} times in a row and is not asked for another {} s",
                endpoint.provider,
                left / 1000 + 1
            )));
        }
    }
    if let Some(why) = limits_unenforceable(engine, endpoint) {
        return Ok(Some(why));
    }
    let limits = &engine.config.summarizers.written;
    let reached = |name: &str, most: Option<u64>| -> Result<Option<u64>> {
        let Some(most) = most else { return Ok(None) };
        let mark = engine.store.marked(&engine.shared(), name)?;
        Ok(Some(used_this_hour(engine, mark.as_ref())).filter(|it| *it >= most))
    };
    if let Some(sent) = reached(TOKENS_MARK, limits.tokens_per_hour)? {
        let most = limits.tokens_per_hour.unwrap_or_default();
        return Ok(Some(format!("the limit of {most} tokens an hour was reached ({sent} were sent)")));
    }
    if let Some(spent) = reached(DOLLARS_MARK, limits.dollars_per_hour.map(millionths))? {
        let most = limits.dollars_per_hour.unwrap_or_default();
        let spent = spent as f64 / 1e6;
        return Ok(Some(format!("the limit of ${most} an hour was reached (${spent:.4} were spent)")));
    }
    if let Some(asked) =
        reached(MILLISECONDS_MARK, limits.seconds_per_hour.map(|it| it.saturating_mul(1_000)))?
    {
        let most = limits.seconds_per_hour.unwrap_or_default();
        let asked = asked / 1_000;
        return Ok(Some(format!("the limit of {most} s an hour was reached ({asked} s were used)")));
    }
    Ok(None)
}

/// Why the hourly limits cannot be enforced, if any are set. Each command and each agent's server is its own
/// process: counts in memory would start at zero in each, and never reach a limit.
fn limits_unenforceable(engine: &Engine, endpoint: &Endpoint) -> Option<String> {
    let limits = &engine.config.summarizers.written;
    // Dollars are counted only where the price is known.
    let dollars = limits.dollars_per_hour.is_some() && engine.config.prices.of(&endpoint.model).is_ok();
    let set = [
        (limits.tokens_per_hour.is_some(), "tokens-per-hour"),
        (dollars, "dollars-per-hour"),
        (limits.seconds_per_hour.is_some(), "seconds-per-hour"),
    ];
    let (_, name) = set.into_iter().find(|it| it.0 && !engine.store.keeps())?;
    Some(format!(
        "summarizer.{name}: expected a persistent store to count the usage of an hour, found none (store.persistence = \
         \"none\", or it could not be opened), so {} is not asked; repair or enable the store, or remove the limit",
        endpoint.provider
    ))
}

/// Adds what a dialogue used to the hourly totals.
pub(crate) fn count(engine: &Engine, endpoint: &Endpoint, dialogue: &Dialogue, took: Duration) -> Result<()> {
    let spent = spent(engine, endpoint, dialogue).unwrap_or(0.0);
    let took = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    for (name, more) in
        [(TOKENS_MARK, dialogue.sent), (DOLLARS_MARK, millionths(spent)), (MILLISECONDS_MARK, took)]
    {
        engine.store.update_mark(&engine.shared(), name, &|old| {
            let before = used_this_hour(engine, old.as_ref());
            // The hour begins with its first request.
            let at = old.filter(|_| before > 0).map_or(engine.now, |it| it.at);
            Mark { value: before.saturating_add(more).to_string(), at }
        })?;
    }
    Ok(())
}

/// What a dialogue cost in US dollars, if the price is known.
pub(crate) fn spent(engine: &Engine, endpoint: &Endpoint, dialogue: &Dialogue) -> Option<f64> {
    engine.config.prices.of(&endpoint.model).ok()?.of(&dialogue.tokens)
}

fn used_this_hour(engine: &Engine, mark: Option<&Mark>) -> u64 {
    let fresh = mark.filter(|it| (0..HOUR_MS).contains(&engine.now.saturating_sub(it.at)));
    fresh.and_then(|it| it.value.parse().ok()).unwrap_or(0)
}

impl CostInfo {
    /// Sets what was really spent, and adjusts the number of turns until it pays off.
    pub(crate) fn spent(mut self, dollars: Option<f64>) -> Self {
        let predicted = if self.form == "prefix" { self.prefix_dollars } else { self.own_dollars };
        self.spent_dollars = dollars.map(cents);
        if let (Some(turns), Some(spent), Some(predicted)) =
            (self.pays_after_turns, self.spent_dollars, predicted)
            && predicted > 0.0
        {
            self.pays_after_turns = Some(((turns as f64 * spent / predicted).ceil() as u64).max(1));
        }
        self
    }

    pub fn sentence(&self) -> String {
        let dollars = |it: f64| format!("${it:.4}");
        let mut out = match (self.spent_dollars, self.own_dollars, self.prefix_dollars) {
            (Some(spent), ..) => format!("{} cost {}", self.model, dollars(spent)),
            (None, Some(own), Some(prefix)) => format!(
                "{} would cost about {} with our own prompt, {} appended to the session's own request ({} of about \
                 {} tokens)",
                self.model,
                dollars(own),
                dollars(prefix),
                self.form,
                self.input_tokens
            ),
            (None, Some(own), None) => format!(
                "{} would cost about {} for {} tokens in and {} out",
                self.model,
                dollars(own),
                self.input_tokens,
                self.output_tokens
            ),
            (None, None, _) => format!("{} would be sent about {} tokens", self.model, self.input_tokens),
        };
        match self.pays_after_turns {
            Some(1) => out.push_str("; the smaller context saves that in 1 turn"),
            Some(turns) => {
                out.push_str(&format!("; the smaller context saves that in {turns} turns"));
            }
            None => {}
        }
        if let Some(day) = self.prices.as_deref().and_then(|it| it.split(',').next()) {
            out.push_str(&format!("; prices of {day}"));
        }
        if self.spent_dollars.is_none() && !self.why.is_empty() {
            out.push_str(&format!(" ({})", self.why));
        }
        out
    }
}

pub(crate) fn sent_note(endpoint: &Endpoint, dialogue: &Dialogue) -> Option<String> {
    if dialogue.sent == 0 {
        return None;
    }
    let reported = dialogue.tokens.input + dialogue.tokens.cache_read + dialogue.tokens.cache_write;
    let sent = if reported > 0 { format!("{reported}") } else { format!("about {}", dialogue.sent) };
    let (label, host) = (endpoint.label(), endpoint.host());
    let times = counted(dialogue.requests as usize, "request");
    Some(format!("{sent} tokens were sent to {label} at {host} in {times}"))
}

/// Input tokens that `dollars` buy besides `output` tokens; unlimited if the price is unknown.
pub(crate) fn affordable(dollars: f64, price: Option<&Price>, output: u64) -> u64 {
    let Some(rates) = price.map(|it| &it.rates).filter(|it| it.input > 0.0) else { return u64::MAX };
    let left = dollars - output as f64 * rates.output / 1e6;
    (left.max(0.0) / rates.input * 1e6) as u64
}

/// Masks secrets in all strings of a JSON value, at any depth.
fn mask(value: &mut Value, redactor: &Redactor) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => *text = redactor.redact(text),
            Value::Array(all) => open.extend(all),
            Value::Object(all) => open.extend(all.values_mut()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn millionths(dollars: f64) -> u64 {
    (dollars * 1e6).round() as u64
}

fn api_format(api: Api) -> Format {
    match api {
        Api::Anthropic => Format::ANTHROPIC,
        Api::OpenaiChat => Format::OPENAI_CHAT,
        Api::OpenaiResponses => Format::OPENAI_RESPONSES,
        Api::Gemini => Format::GEMINI,
    }
}

/// The mark under which a provider's failures are counted.
pub(crate) fn failures_mark(endpoint: &Endpoint) -> String {
    format!("summarizer.failures.{}", endpoint.provider)
}
