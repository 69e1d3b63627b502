//! How full the context is, what fills it, who would compact it now, and whether this is a good moment.

use std::collections::{BTreeMap, HashSet};

use crate::answers::{
    Advice, AdviceLevel, CategoryInfo, EstimateAnswer, ItemCounts, Large, NextCost, NextInfo, PastInfo,
    ReportedUsage, TriggerInfo,
};
use crate::config::profiles::{self, BUILT_IN};
use crate::engine::compact::compacted::percent;
use crate::engine::input::measured::{Measured, warnings};
use crate::engine::{
    Ask, Engine, Opened, input::measured, input::request, inspect::session_cost, method_info, session_info,
};
use compaction::facts;
use compaction::plan::{self, Verdict};
use history::error::Result;
use history::parallel;
use history::{Message, Part};

/// Percent of the window from which compacting soon is advised.
const SOON: f64 = 70.0;
/// The same once the provider's cache has expired; percent.
pub(crate) const SOON_IF_EXPIRED: f64 = 50.0;
/// Percent of the window from which compacting now is advised.
const NOW: f64 = 80.0;

/// Whether the profile would compact a session by itself now.
pub fn due(engine: &Engine, opened: &Opened, ask: &Ask) -> plan::Verdict {
    let measured = measured::measure(engine, &opened.session, ask);
    let moment = request::moment(engine, measured.history, ask);
    let verdict = plan::verdict(measured.history, measured.filled(), &ask.profile, &measured.limits, &moment);
    Verdict { reason: engine.hinted(verdict.reason, verdict.hint), hint: None, ..verdict }
}

/// How full the context of a session is. `next`: tokens about to be added.
///
/// # Errors
///
/// An option that the profile or the session does not allow.
pub fn estimate(engine: &Engine, opened: &Opened, ask: &Ask, next: Option<u64>) -> Result<EstimateAnswer> {
    let measured = measured::measure(engine, &opened.session, ask);
    let history = measured.history;
    let counter = &measured.counter;
    let overhead = measured.overhead;
    let context = measured.context();
    let usable =
        measured.limits.window.map(|it| it.saturating_sub(measured.limits.output.unwrap_or(0).min(20_000)));
    let used = percent(context, measured.limits.window);
    let (moment, limits) =
        (request::moment(engine, history, ask), plan::ModelLimits { next, ..measured.limits });
    let mut triggers = BTreeMap::new();
    for (name, _) in BUILT_IN {
        let profile = profiles::built_in(name)?.honouring(&|from| engine.config.agent_setting(from));
        let it = plan::verdict(history, measured.filled(), &profile, &limits, &moment);
        let reason = engine.hinted(it.reason, it.hint);
        let info = TriggerInfo { due: it.due, at: it.at, reason_code: it.code.to_owned(), reason };
        triggers.insert((*name).to_owned(), info);
    }
    let cost = engine.config.costs.then(|| session_cost::next_cost(engine, &measured, ask, None));
    Ok(EstimateAnswer {
        session: session_info(opened),
        tokens: measured.tokens,
        overhead,
        context,
        method: method_info(counter),
        by_category: categories(counter, history),
        counts: ItemCounts {
            messages: history.messages().len(),
            turns: history.messages().iter().filter(|it| it.is_prompt()).count(),
            tool_calls: history.messages().iter().map(|it| it.calls().count()).sum(),
        },
        window: measured.limits.window,
        usable,
        used_percent: used,
        reported: counter.reported().map(|(message, tokens)| ReportedUsage { tokens, message }),
        largest: largest(&measured),
        compactions: opened.session.past.iter().map(past).collect(),
        triggers,
        advice: advice(&measured, used, cost.as_ref(), engine.now),
        cost,
        next: next.map(|tokens| NextInfo {
            tokens,
            fits: usable.is_none_or(|it| context.saturating_add(tokens) <= it),
        }),
        warnings: warnings(engine, opened, &measured),
    })
}

fn categories(counter: &tokens::TokenCounter, history: &history::History) -> CategoryInfo {
    let it = counter.by_category(history);
    CategoryInfo {
        system: it.system,
        user: it.user,
        assistant: it.assistant,
        reasoning: it.reasoning,
        tool_calls: it.tool_calls,
        tool_outputs: it.tool_outputs,
        media: it.media,
        summary: it.summary,
    }
}

fn past(it: &sessions::PastCompaction) -> PastInfo {
    PastInfo {
        message: it.message,
        trigger: it.trigger.clone(),
        tokens_before: it.tokens_before,
        tokens_after: it.tokens_after,
        summary: words(&it.summary, 200),
    }
}

/// Number of the largest parts that are shown.
const LARGEST: usize = 10;

fn largest(measured: &Measured<'_>) -> Vec<Large> {
    // Equal sizes stay in the order of the history.
    let order = |it: &(u64, usize, usize, &Part)| (std::cmp::Reverse(it.0), it.1, it.2);
    let first = |out: &mut Vec<_>| {
        out.sort_unstable_by_key(order);
        out.truncate(LARGEST);
    };
    let shares =
        parallel::par_chunks(measured.history.messages(), tokens::MIN_MESSAGES_PER_THREAD, |from, share| {
            let mut out = Vec::new();
            for (index, message) in share.iter().enumerate() {
                for (place, part) in message.parts.iter().enumerate() {
                    out.push((measured.counter.part(part), from + index, place, part));
                }
                // Drop all but the largest now and then, to bound memory.
                if out.len() > 100 * LARGEST {
                    first(&mut out);
                }
            }
            out
        });
    let mut out = shares.into_iter().flatten().collect();
    first(&mut out);
    let describe = |(tokens, message, _, part): (u64, usize, usize, &Part)| {
        let (kind, what) = match part {
            Part::Text(it) => ("text", words(it.as_str(), 60)),
            Part::Reasoning(it) => ("reasoning", words(it.text.as_str(), 60)),
            Part::Call(it) => ("tool_call", format!("{} {}", it.name, words(it.input.as_str(), 50))),
            Part::Output(it) => {
                let call = measured.history.call(&it.id, message + 1).map(|it| &*it.1.name);
                let tool = call.or(it.name.as_deref()).unwrap_or("unknown tool");
                ("tool_output", format!("{tool}: {}", words(it.text.as_str(), 50)))
            }
            Part::Media(it) => ("media", it.mime.to_string()),
            Part::Opaque(it) => ("other", it.kind.to_string()),
        };
        Large { message, kind: kind.to_owned(), what, tokens }
    };
    out.into_iter().map(describe).collect()
}

/// The first words of a text, on one line.
pub(crate) fn words(text: &str, most: usize) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        let long = out.chars().count() + word.chars().count() + 1 > most;
        if long {
            if out.is_empty() {
                out.extend(word.chars().take(most));
            }
            out.push('…');
            return out;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// How urgent a compaction is. `used`: percent of the window; `expired`: the provider's cache is lost anyway.
pub(crate) fn level(used: Option<f64>, expired: bool) -> AdviceLevel {
    match used {
        Some(it) if it >= NOW => AdviceLevel::Now,
        Some(it) if it >= SOON || expired && it >= SOON_IF_EXPIRED => AdviceLevel::Soon,
        Some(_) | None => AdviceLevel::Room,
    }
}

/// Whether compacting now is a good idea, and why.
fn advice(measured: &Measured<'_>, used: Option<f64>, cost: Option<&NextCost>, now: i64) -> Advice {
    let expired = cost.is_some_and(|it| it.is_expired(now) && it.pays_after_requests == Some(1));
    let level = level(used, expired);
    let messages = measured.history.messages();
    let newest = || messages.iter().rev().take(50);
    let answered: HashSet<&str> = newest().flat_map(Message::outputs).map(|it| &*it.id).collect();
    let pending = newest().flat_map(Message::calls).any(|it| !answered.contains(&*it.id));
    let (good_moment, why) = if pending {
        (false, "a tool call waits for its output".to_owned())
    } else if expired && level != AdviceLevel::Room {
        (true, "the provider's cache has expired, so a compaction loses no cached tokens".to_owned())
    } else if let Some(why) = facts::pause(measured.history) {
        (true, why)
    } else {
        (false, "work is under way: no plan item was just finished and no error just resolved".to_owned())
    };
    let filled = match (used, measured.limits.window) {
        (Some(used), Some(window)) => format!("{used:.0} % of {window} tokens"),
        _ => "the model's window is unknown".to_owned(),
    };
    Advice { level, good_moment, why: format!("{filled}; {why}") }
}
