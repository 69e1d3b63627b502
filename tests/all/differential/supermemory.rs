//! opencode-supermemory: when it compacts ahead of time (seed 004; reference 6.1).

use epitome::compaction::plan::{ModelLimits, Moment};
use epitome::history::Usage;

use super::{Dice, differences, due, rounds, same};
use crate::vectors::{model, profile, user};

/// The course: above 80 % of the limit, above 50,000 tokens, 30 seconds apart; an unknown model has 200,000.
fn course(used: u64, limit: Option<u64>, since: Option<i64>) -> bool {
    let limit = limit.unwrap_or(200_000);
    let cool = since.is_none_or(|it| it >= 30_000);
    // used / limit > 0.80
    cool && used > 50_000 && used * 10 > limit * 8
}

/// The code of 2.0.10: at least both; what was written to the cache is not counted.
fn code(used: u64, limit: Option<u64>, since: Option<i64>) -> bool {
    let cool = since.is_none_or(|it| it >= 30_000);
    cool && used >= 50_000 && used * 10 >= limit.unwrap_or(200_000) * 8
}

#[test]
fn triggers() {
    for (name, rule) in
        [("supermemory", course as fn(u64, Option<u64>, Option<i64>) -> bool), ("supermemory@2.0", code)]
    {
        let profile = profile(name);
        differences(name, rounds(), |dice: &mut Dice| {
            let window = dice.one(&[
                None,
                Some(32_000),
                Some(40_000),
                Some(62_500),
                Some(128_000),
                Some(200_000),
                Some(1_000_000),
            ]);
            let around = dice.one(&[50_000, window.unwrap_or(200_000) * 8 / 10, 160_000]);
            let tokens = around + dice.of(0, 4) - 2 + if dice.once_in(4) { dice.of(0, 90_000) } else { 0 };
            let since = dice.one(&[None, Some(0), Some(29_999), Some(30_000), Some(31_000)]);
            let written = if name.ends_with("2.0") { dice.one(&[0, 1, 5_000]) } else { 0 };
            let mut answer = model("a");
            answer.usage = Some(Usage { cache_write: written, ..Usage::default() });
            let limits = ModelLimits { window, window_given: window.is_some(), ..ModelLimits::default() };
            let moment =
                Moment { now: 1_000_000, last_run: since.map(|it| 1_000_000 - it), ..Moment::default() };
            let ours = due(&profile, vec![user("u"), answer], tokens, &limits, &moment);
            same(
                &format!("{tokens} of {window:?}, {since:?} ms, {written} written"),
                &ours,
                &rule(tokens - written, window, since),
            )
        });
    }
}
