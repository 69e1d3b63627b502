//! Scores what of a session survives in its compacted form.

pub(super) mod compare;
pub(super) mod hindsight;
pub(super) mod scorecard;
pub(super) mod subject;

use crate::answers::{BrokenInfo, DoubtInfo, ScoreAnswer, ToldCount, TruthInfo};
use crate::engine::compact::compacted::{fact_count, fact_counts, round};
use crate::engine::compact::min_kept::lost;
use crate::engine::{Ask, Engine, Opened, input::measured, session_info};
use crate::store::Handle;
use history::{Message, Part};

/// Scores `after` against `before`; `ask` says how tokens are counted.
pub fn score(engine: &Engine, before: &Opened, after: &Opened, ask: &Ask) -> ScoreAnswer {
    let measured = measured::measure(engine, &before.session, ask);
    let compacted = &after.session.history;
    let behind = behind_handles(engine, before, compacted.messages());
    let count = |it: &Message| measured.counter.message(it);
    let recoverable = |message: usize| behind.get(message).copied().unwrap_or(false);
    let score = score::score(measured.history, compacted, &recoverable, &count);
    let api = after.session.format.api();
    let (messages, _) = sessions::wire::messages_of(compacted, Some(after.session.format), api);
    let broken = sessions::validate::check(api, &messages);
    ScoreAnswer {
        rules: score.version,
        session: session_info(before),
        compacted: session_info(after),
        kept: score.kept.map(round),
        kept_or_recoverable: score.kept_or_recoverable.map(round),
        kept_less_contradicted: score.kept_less_contradicted.map(round),
        facts: fact_counts(&score),
        last_request: fact_count(&score.last_request),
        tokens_before: score.tokens.before,
        tokens_after: score.tokens.after,
        messages_before: score.messages.0,
        messages_after: score.messages.1,
        messages_tail: score.tail_messages,
        lost: score.lost.iter().map(lost).collect(),
        contradictions: score
            .contradictions
            .iter()
            .map(|it| DoubtInfo {
                kind: "contradiction".to_owned(),
                text: format!("{} — the original says: {}", it.line, it.expected),
            })
            .collect(),
        unsupported: score
            .unsupported
            .iter()
            .map(|it| DoubtInfo { kind: it.claim.name().to_owned(), text: it.line.clone() })
            .collect(),
        truth: truth(score::truth(measured.history, compacted)),
        api: api.name().to_owned(),
        invalid: broken
            .into_iter()
            .map(|it| BrokenInfo { rule: it.rule.to_owned(), message: it.message, what: it.what })
            .collect(),
    }
}

fn truth(it: score::Truth) -> TruthInfo {
    let count = |it: score::StatementTally| ToldCount { told: it.told, right: it.right };
    TruthInfo { open: count(it.open), outcomes: count(it.outcomes), rules: count(it.rules), wrong: it.wrong }
}

/// For each message of a session, whether a handle in `after` that this archive knows can restore it.
fn behind_handles(engine: &Engine, before: &Opened, after: &[Message]) -> Vec<bool> {
    let messages = before.session.history.messages();
    let whole = before.source.whole().unwrap_or_default();
    let mut behind = vec![false; messages.len()];
    let outputs = after.iter().flat_map(Message::outputs).map(|it| it.text.as_str().to_owned());
    let texts: Vec<String> = after.iter().map(Message::plain).chain(outputs).collect();
    let words = texts.iter().flat_map(|it| it.split(|c: char| !c.is_ascii_alphanumeric()));
    let mut handles: Vec<&str> = words.filter(|it| Handle::parse(it).is_some()).collect();
    handles.sort_unstable();
    handles.dedup();
    for handle in handles {
        let original = engine
            .store
            .locate(handle, &engine.config.owner)
            .and_then(|scope| engine.store.restore(&scope, handle));
        let Ok(original) = original else { continue };
        if original == whole {
            return vec![true; messages.len()];
        }
        for (message, behind) in messages.iter().zip(&mut behind) {
            let holds = |part: &Part| match part {
                Part::Output(it) => it.text.as_str().as_bytes() == original,
                Part::Text(it) => it.as_str().as_bytes() == original,
                Part::Reasoning(_) | Part::Call(_) | Part::Media(_) | Part::Opaque(_) => false,
            };
            *behind |= message.parts.iter().any(holds);
        }
    }
    behind
}
