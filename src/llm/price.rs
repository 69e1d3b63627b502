//! Predicts which of two forms of a summary request is cheaper. Pure.

use cost::Price;
use history::Usage;

/// The two forms of a summary request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestForm {
    /// Our own prompt, with the conversation as text.
    Own,
    /// The session's own request, which the provider has in its cache, with an instruction appended.
    Prefix,
}

/// The predicted cost of a summary in both forms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Predicted {
    /// US dollars with [`RequestForm::Own`].
    pub own: f64,
    /// US dollars with [`RequestForm::Prefix`]; `None` if that request cannot be built.
    pub prefix: Option<f64>,
    pub form: RequestForm,
    /// Turns after which the smaller context has saved the cost of the summary; `None` if never or unknown.
    pub pays_after: Option<u64>,
}

/// Input of the prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestSizes {
    /// Tokens sent with our own prompt.
    pub own: u64,
    /// Tokens of the session's own request, and whether its cache is expected to be warm.
    pub prefix: Option<(u64, bool)>,
    /// Tokens of the summary.
    pub output: u64,
    /// Tokens by which the compaction reduces the context of every later turn.
    pub saved: u64,
    /// Tokens after the compaction that are no longer cached, and must be written to the cache once.
    pub rewritten: u64,
}

/// `session`: the price of the session's own model, whose turns become cheaper, if known.
pub fn predict(summarizer: &Price, session: Option<&Price>, sizes: &RequestSizes) -> Predicted {
    let none = Usage::default();
    let cost = |price: &Price, it: Usage| price.rates(it.sent()).unwrap_or(&price.rates).of(&it);
    let out = |input: Usage| cost(summarizer, Usage { output: sizes.output, ..input });
    let own = out(Usage { input: sizes.own, ..none });
    let prefix = sizes.prefix.map(|(tokens, warm)| match warm {
        true => out(Usage { cache_read: tokens, ..none }),
        false => out(Usage { cache_write: tokens, ..none }),
    });
    let form = if prefix.is_some_and(|it| it < own) { RequestForm::Prefix } else { RequestForm::Own };
    let asked = prefix.filter(|_| form == RequestForm::Prefix).unwrap_or(own);
    // Later turns read the context from the cache; the first one after the change writes it.
    let pays_after = session.and_then(|session| {
        let lost = cost(session, Usage { cache_write: sizes.rewritten, ..none })
            - cost(session, Usage { cache_read: sizes.rewritten, ..none });
        let gain = cost(session, Usage { cache_read: sizes.saved, ..none });
        (gain > 0.0).then(|| ((asked + lost) / gain).ceil().max(1.0) as u64)
    });
    Predicted { own, prefix, form, pays_after }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warm_cache_wins_and_a_cold_one_loses() {
        let prices = cost::Prices::default();
        let it = prices.of("claude-haiku-4-5").unwrap();
        let sizes = RequestSizes {
            own: 60_000,
            prefix: Some((100_000, true)),
            output: 2_000,
            saved: 80_000,
            rewritten: 20_000,
        };
        let warm = predict(it, Some(it), &sizes);
        assert_eq!(warm.form, RequestForm::Prefix);
        assert!((warm.prefix.unwrap() - 0.02).abs() < 1e-9 && (warm.own - 0.07).abs() < 1e-9);
        // 0.02 for the summary, 0.023 for writing the rest to the cache; 0.008 saved per turn.
        assert_eq!(warm.pays_after, Some(6));
        let cold = predict(it, Some(it), &RequestSizes { prefix: Some((100_000, false)), ..sizes });
        assert_eq!(cold.form, RequestForm::Own);
        assert_eq!(predict(it, Some(it), &RequestSizes { saved: 0, ..sizes }).pays_after, None);
    }
}
