//! A budget is a promise: for models whose tokenizer is public, the outcome holds no more than that by their own count.

use epitome::compaction::plan;
use epitome::engine::{self, Amount, Ask, CompactOutcome, SessionRef};
use epitome::tokens::{TokenCounter, Tokenizer};

use crate::corpus;
use crate::score::card::engine;

/// Tokens that a first line, a goal and the last prompt take: smaller budgets cannot always be held (527 of 512 once).
const LEAST: u64 = 600;

#[test]
fn an_outcome_is_within_its_budget_by_the_models_own_tokenizer() {
    let engine = engine();
    let profile = || engine.config.profile("epitome").unwrap();
    let test = "an_outcome_is_within_its_budget_by_the_models_own_tokenizer";
    let (mut wrong, mut count) = (Vec::new(), 0);
    for path in corpus::of_corpus(test, &["codex", "opencode", "pi"]) {
        let name = path.display().to_string();
        let Ok(opened) = engine::open(&engine, &SessionRef::Named(name.clone()), None, None) else {
            continue;
        };
        let history = &opened.session.history;
        let own = TokenCounter::new(history, Tokenizer::Auto, None).own_tokenizer();
        let Some(own) = own else { continue };
        for share in [0.05, 0.1, 0.25] {
            let mut ask = Ask::new(profile());
            ask.options.budget = Some(Amount::Share(share));
            let done = engine::compact(&engine, &opened, &ask).unwrap();
            let (CompactOutcome::Planned(it) | CompactOutcome::Compacted { accepted: it, .. }) = done.outcome
            else {
                continue;
            };
            let budget = (done.about.tokens_before as f64 * share).ceil() as u64;
            let messages = it.attempt.outcome.history.messages();
            let exact: u64 = messages.iter().filter(|it| plan::counts(it)).map(|it| own.message(it)).sum();
            if budget < LEAST {
                continue;
            }
            count += 1;
            // What must stay, the last prompt and all behind it, can be more.
            if exact > budget && it.attempt.outcome.tokens <= budget {
                wrong.push(format!("{name} at {share}: {exact} of {budget}"));
            }
        }
    }
    println!("{count} outcomes, {} over their budget", wrong.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
