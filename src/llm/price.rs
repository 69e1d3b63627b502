//! What a request costs, by a table of prices, and which of two forms is cheaper. Pure.

use std::sync::LazyLock;

use serde::Deserialize;

use compaction::summary::model::Tokens;

/// US dollars for a million tokens.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// What a model's id begins with.
    pub name: String,
    /// In.
    pub input: f64,
    /// In, from a cache.
    pub read: f64,
    /// In, into a cache.
    pub write: f64,
    /// Out.
    pub output: f64,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Table {
    model: Vec<Price>,
}

/// The price of a model, or nothing where it is not known. A provider may stand in front of the id.
pub fn price(model: &str) -> Option<&'static Price> {
    static TABLE: LazyLock<Table> =
        LazyLock::new(|| toml::from_str(include_str!("../../prompts/prices.toml")).unwrap_or_default());
    let model = model.rsplit('/').next().unwrap_or(model);
    // A date or a point release costs the same; `-pro` or `.5` is another model.
    let same = |rest: &str| {
        let rest = rest.strip_prefix(['-', '@', ':']);
        rest.is_some_and(|it| it.starts_with(|c: char| c.is_ascii_digit()) || it == "latest")
    };
    let of = |it: &&Price| model.strip_prefix(it.name.as_str()).is_some_and(|it| it.is_empty() || same(it));
    TABLE.model.iter().filter(of).max_by_key(|it| it.name.len())
}

impl Price {
    /// US dollars for so many tokens.
    pub fn of(&self, tokens: Tokens) -> f64 {
        let cost = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        cost(tokens.input, self.input)
            + cost(tokens.cache_read, self.read)
            + cost(tokens.cache_write, self.write)
            + cost(tokens.output, self.output)
    }
}

/// How a request can be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// With a prompt of our own and the conversation as text.
    Own,
    /// Behind the session's own request, which the provider has in its cache.
    Prefix,
}

/// What a summary will cost, in both forms, as far as they are possible.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Predicted {
    /// US dollars with our own prompt.
    pub own: f64,
    /// US dollars behind the session's own request; nothing where that cannot be built.
    pub prefix: Option<f64>,
    /// The cheaper form.
    pub form: Form,
    /// After so many turns of the session what the shorter context saves has paid for it; nothing if never.
    pub pays_after: Option<u64>,
}

/// What is known before asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Tokens sent with our own prompt.
    pub own: u64,
    /// Tokens of the session's own request, and whether its cache can be expected to be warm.
    pub prefix: Option<(u64, bool)>,
    /// Tokens of the summary.
    pub output: u64,
    /// Tokens of the context that go with every later turn, less what they are now.
    pub saved: u64,
    /// Tokens after the compaction that no cache has any more: written anew once.
    pub rewritten: u64,
}

/// Predicts. `session`: the price of the model that the session runs on, whose turns become cheaper, if it is known.
pub fn predict(summarizer: &Price, session: Option<&Price>, sizes: &Sizes) -> Predicted {
    let out = |input: Tokens| summarizer.of(Tokens { output: sizes.output, ..input });
    let own = out(Tokens { input: sizes.own, ..Tokens::default() });
    let prefix = sizes.prefix.map(|(tokens, warm)| match warm {
        true => out(Tokens { cache_read: tokens, ..Tokens::default() }),
        false => out(Tokens { cache_write: tokens, ..Tokens::default() }),
    });
    let form = if prefix.is_some_and(|it| it < own) { Form::Prefix } else { Form::Own };
    let cost = prefix.filter(|_| form == Form::Prefix).unwrap_or(own);
    // Later turns read the context from the cache; the first one after the change writes it.
    let pays_after = session.and_then(|session| {
        let lost = session.of(Tokens { cache_write: sizes.rewritten, ..Tokens::default() })
            - session.of(Tokens { cache_read: sizes.rewritten, ..Tokens::default() });
        let gain = session.of(Tokens { cache_read: sizes.saved, ..Tokens::default() });
        (gain > 0.0).then(|| ((cost + lost) / gain).ceil().max(1.0) as u64)
    });
    Predicted { own, prefix, form, pays_after }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_wins_and_nothing_is_guessed() {
        assert_eq!(price("openai/gpt-5-mini-2025-08-07").unwrap().name, "gpt-5-mini");
        assert_eq!(price("gpt-5.1").unwrap().name, "gpt-5.1");
        assert_eq!(price("claude-sonnet-4-5@20250929").unwrap().name, "claude-sonnet-4");
        for unknown in ["llama3", "gpt-5-pro", "gpt-5.9", "gemini-2.5-pro-tts"] {
            assert_eq!(price(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_warm_cache_wins_and_a_cold_one_loses() {
        let it = price("claude-haiku-4-5").unwrap();
        let sizes = Sizes {
            own: 60_000,
            prefix: Some((100_000, true)),
            output: 2_000,
            saved: 80_000,
            rewritten: 20_000,
        };
        let warm = predict(it, Some(it), &sizes);
        assert_eq!(warm.form, Form::Prefix);
        assert!((warm.prefix.unwrap() - 0.02).abs() < 1e-9 && (warm.own - 0.07).abs() < 1e-9);
        // 0.02 for the summary and 0.023 for writing the rest anew, 0.008 saved each turn.
        assert_eq!(warm.pays_after, Some(6));
        let cold = predict(it, Some(it), &Sizes { prefix: Some((100_000, false)), ..sizes });
        assert_eq!(cold.form, Form::Own);
        assert_eq!(predict(it, Some(it), &Sizes { saved: 0, ..sizes }).pays_after, None);
    }
}
