//! Prices of models: a table with date and source, and the user's configuration, which takes precedence.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use history::Usage;

/// The price of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Price {
    /// The model's name in the table.
    pub name: String,
    pub rates: Rates,
    /// The rates for a request that sends more than this many tokens.
    pub over: Option<(u64, Rates)>,
    /// Tokens sent above which the price is not known.
    pub up_to: Option<u64>,
    /// The day the price was read, `YYYY-MM-DD`.
    pub date: String,
    /// The page it was read from, or the user's configuration.
    pub source: String,
}

/// US dollars per million tokens, by how they are billed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Input that was neither read from a cache nor written to one.
    pub input: f64,
    /// Input read from a cache.
    pub read: f64,
    /// Input written to a cache.
    pub write: f64,
    /// Input written to a cache that keeps it for an hour.
    pub write_hour: f64,
    pub output: f64,
}

/// The prices that apply to a user.
#[derive(Debug, Clone, Default)]
pub struct Prices {
    /// The user's own, by the name a model's id begins with.
    own: BTreeMap<String, Result<Price, String>>,
}

/// Rates as they are written in a table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WrittenRates {
    input: f64,
    read: Option<f64>,
    write: Option<f64>,
    write_hour: Option<f64>,
    output: f64,
    over: Option<WrittenOver>,
    up_to: Option<u64>,
    /// Only in the user's own: the currency of the prices, US dollars if it is missing.
    currency: Option<String>,
    /// Only in the user's own: the day they were looked up.
    date: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct WrittenOver {
    tokens: u64,
    input: f64,
    read: f64,
    write: Option<f64>,
    write_hour: Option<f64>,
    output: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceTable {
    list: Vec<List>,
}

#[derive(Deserialize)]
struct List {
    source: String,
    date: String,
    /// Who read the page, if this was taken from elsewhere.
    #[serde(rename = "via")]
    _via: Option<String>,
    model: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    names: Vec<String>,
    price: WrittenRates,
}

impl WrittenRates {
    fn price(self, name: &str, date: String, source: String) -> Price {
        let rates = |input, read: Option<f64>, write: Option<f64>, hour: Option<f64>, output| {
            let write = write.unwrap_or(input);
            Rates { input, read: read.unwrap_or(input), write, write_hour: hour.unwrap_or(write), output }
        };
        let over = self
            .over
            .map(|it| (it.tokens, rates(it.input, Some(it.read), it.write, it.write_hour, it.output)));
        Price {
            name: name.to_owned(),
            rates: rates(self.input, self.read, self.write, self.write_hour, self.output),
            over,
            up_to: self.up_to,
            date,
            source,
        }
    }
}

/// The table, one price per name.
static TABLE: LazyLock<Vec<Price>> = LazyLock::new(|| {
    let table: PriceTable =
        toml::from_str(include_str!("prices.toml")).unwrap_or_else(|_| PriceTable { list: Vec::new() });
    let prices = |list: List| {
        let (date, source) = (list.date, list.source);
        list.model.into_iter().flat_map(move |model| {
            let (date, source, written) = (date.clone(), source.clone(), model.price);
            model
                .names
                .into_iter()
                .map(move |name| written.clone().price(&name, date.clone(), source.clone()))
        })
    };
    table.list.into_iter().flat_map(prices).collect()
});

/// A model's id without its provider, in lower case.
pub(super) fn bare(model: &str) -> String {
    let model = model.rsplit('/').next().unwrap_or(model).to_ascii_lowercase();
    let model = model.rsplit_once("anthropic.").map_or(model.as_str(), |it| it.1);
    // Some providers write a dot where Anthropic writes a dash.
    if model.starts_with("claude") { model.replace('.', "-") } else { model.to_owned() }
}

/// Whether a bare id is of the model with this name: what follows may be a date, or say how it is served.
fn is_same(model: &str, name: &str) -> bool {
    let Some(rest) = model.strip_prefix(name) else { return false };
    let Some(rest) = rest.strip_prefix(['-', '@', ':', '[']) else { return rest.is_empty() };
    let digits =
        rest.bytes().take_while(|it| it.is_ascii_digit() || *it == b'-').filter(u8::is_ascii_digit).count();
    digits >= 6 || rest == "latest" || rest == "1m]" || rest.starts_with("v1")
}

impl Prices {
    /// With the user's own, by the name a model's id begins with. The error says what is wrong with one of
    /// them.
    pub fn new(own: BTreeMap<String, WrittenRates>) -> Result<Self, String> {
        let mut out = Self::default();
        for (name, written) in own {
            let all =
                [Some(written.input), written.read, written.write, written.write_hour, Some(written.output)];
            let over = written
                .over
                .iter()
                .flat_map(|it| [Some(it.input), Some(it.read), it.write, it.write_hour, Some(it.output)]);
            if let Some(wrong) = all.into_iter().chain(over).flatten().find(|it| !(0.0..=1e6).contains(it)) {
                return Err(format!(
                    "cost.prices.{name}: expected dollars per million tokens, found {wrong}"
                ));
            }
            if let Some(day) = written.date.as_deref().filter(|it| !super::is_day(it)) {
                return Err(format!("cost.prices.{name}.date: expected YYYY-MM-DD, found {day:?}"));
            }
            let price = match written.currency.as_deref() {
                Some(other) if !other.eq_ignore_ascii_case("usd") => {
                    Err(format!("the price of {name} is in {other}, and only US dollars are counted"))
                }
                _ if written.input == 0.0 && written.output == 0.0 => {
                    Err(format!("the price of {name} is zero"))
                }
                _ => {
                    let date = written.date.clone().unwrap_or_else(|| "no date".to_owned());
                    Ok(written.price(&name, date, "config.toml".to_owned()))
                }
            };
            out.own.insert(bare(&name), price);
        }
        Ok(out)
    }

    /// The price of a model, or why there is none. The id may begin with a provider. The longest name wins,
    /// and the user's own prices over the table's.
    pub fn of(&self, model: &str) -> Result<&Price, String> {
        let model = bare(model);
        let own = self.own.iter().filter(|(name, _)| is_same(&model, name)).max_by_key(|it| it.0.len());
        if let Some((_, price)) = own {
            return price.as_ref().map_err(Clone::clone);
        }
        let table = TABLE.iter().filter(|it| is_same(&model, &it.name)).max_by_key(|it| it.name.len());
        table.ok_or_else(|| format!("the price of {model} is unknown"))
    }
}

impl Price {
    /// The day on which it was read, and where.
    pub fn read_from(&self) -> String {
        format!("{}, {}", self.date, self.source)
    }

    /// The rates of a request that sends `sent` tokens; none if they are not known.
    pub fn rates(&self, sent: u64) -> Option<&Rates> {
        match &self.over {
            _ if self.up_to.is_some_and(|it| sent > it) => None,
            Some((above, rates)) if sent > *above => Some(rates),
            Some(_) | None => Some(&self.rates),
        }
    }

    /// US dollars for a request; none if its price is not known.
    pub fn of(&self, usage: &Usage) -> Option<f64> {
        self.rates(usage.sent()).map(|it| it.of(usage))
    }
}

impl Rates {
    /// The cost in US dollars.
    pub fn of(&self, usage: &Usage) -> f64 {
        let hour = usage.cache_write_hour.min(usage.cache_write);
        let cost = |tokens: u64, rate: f64| tokens as f64 * rate / 1e6;
        cost(usage.input, self.input)
            + cost(usage.cache_read, self.read)
            + cost(usage.cache_write - hour, self.write)
            + cost(hour, self.write_hour)
            + cost(usage.output, self.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(model: &str) -> Result<String, String> {
        Prices::default().of(model).map(|it| it.name.clone())
    }

    #[test]
    fn every_price_has_a_date_and_a_source() {
        let table: PriceTable = toml::from_str(include_str!("prices.toml")).unwrap();
        assert!(table.list.iter().all(|it| !it.model.is_empty()) && !table.list.is_empty());
        assert!(TABLE.len() > 40);
        for price in TABLE.iter() {
            assert!(crate::is_day(&price.date), "{}: {}", price.name, price.date);
            assert!(price.source.starts_with("https://"), "{}: {}", price.name, price.source);
            for rates in std::iter::once(&price.rates).chain(price.over.iter().map(|it| &it.1)) {
                assert!(0.0 < rates.read && rates.read < rates.input, "{price:?}");
                assert!(rates.input <= rates.write && rates.write <= rates.write_hour, "{price:?}");
                assert!(rates.write_hour < rates.output, "{price:?}");
            }
            // Each name once.
            assert_eq!(TABLE.iter().filter(|it| it.name == price.name).count(), 1, "{}", price.name);
        }
        for without in
            ["date = \"2026-10-24\"", "source = \"https://platform.claude.com/docs/en/about-claude/pricing\""]
        {
            let text = include_str!("prices.toml").replacen(without, "", 1);
            assert!(toml::from_str::<PriceTable>(&text).is_err(), "{without}");
        }
    }

    #[test]
    fn the_longest_name_wins_and_nothing_is_guessed() {
        for (model, name) in [
            ("openai/gpt-5-mini-2025-08-07", "gpt-5-mini"),
            ("gpt-5.1", "gpt-5.1"),
            ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
            ("claude-sonnet-4-20250514", "claude-sonnet-4"),
            ("github-copilot/claude-opus-4.6", "claude-opus-4-6"),
            ("claude-opus-4-8[1m]", "claude-opus-4-8"),
            ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
            ("claude-3-7-sonnet-latest", "claude-3-7-sonnet"),
            ("MiniMax-M2.5", "minimax-m2.5"),
        ] {
            assert_eq!(of(model).as_deref(), Ok(name), "{model}");
        }
        for unknown in [
            "llama3",
            "gpt-5-pro",
            "gpt-5.9",
            "gemini-2.5-pro-tts",
            "claude-opus-4-9",
            "deepseek-v4-flash-free",
            "",
        ] {
            assert!(of(unknown).is_err(), "{unknown}");
        }
    }

    #[test]
    fn a_request_is_billed_by_its_parts_and_its_size() {
        let usage = Usage {
            input: 10,
            output: 1_000,
            cache_read: 50_000,
            cache_write: 3_000,
            cache_write_hour: 1_000,
            reasoning: 500,
        };
        let of = |model, usage| Prices::default().of(model).unwrap().of(&usage);
        let opus = of("claude-opus-4-6", usage).unwrap();
        assert!(
            (opus - (10.0 * 5.0 + 1_000.0 * 25.0 + 50_000.0 * 0.5 + 2_000.0 * 6.25 + 1_000.0 * 10.0) / 1e6)
                .abs()
                < 1e-12
        );
        let large = Usage { input: 272_001, ..Usage::default() };
        assert!((of("gpt-5.5", large).unwrap() - 2.72001).abs() < 1e-9);
        assert!((of("gpt-5.5", Usage { input: 272_000, ..large }).unwrap() - 1.36).abs() < 1e-9);
        assert_eq!(of("gpt-6-sol", large), None);
    }

    #[test]
    fn the_users_own_prices_win() {
        let own = |text: &str| Prices::new(toml::from_str(text).unwrap());
        let prices = own("[\"gpt-5.5\"]\ninput = 1\nread = 0.1\noutput = 2\ndate = \"2026-11-01\"").unwrap();
        let price = prices.of("openai/gpt-5.5").unwrap();
        assert_eq!(
            (price.rates.input, price.rates.write, &*price.source, &*price.date),
            (1.0, 1.0, "config.toml", "2026-11-01")
        );
        assert!(prices.of("gpt-5.4").is_ok());
        for (text, why) in [
            ("[x]\ninput = 1\noutput = 2\ncurrency = \"EUR\"", "EUR"),
            ("[x]\ninput = 0\noutput = 0", "zero"),
        ] {
            assert!(own(text).unwrap().of("x").unwrap_err().contains(why));
        }
        for wrong in [
            "[x]\ninput = -1\noutput = 2",
            "[x]\ninput = nan\noutput = 2",
            "[x]\ninput = 1\noutput = 2\ndate = \"soon\"",
        ] {
            assert!(own(wrong).is_err(), "{wrong}");
        }
    }
}
