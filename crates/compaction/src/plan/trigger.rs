//! Whether a profile would auto-compact now, and why.

use serde::Serialize;

use super::Moment;
use crate::profile::{NextRequest, NextRule, Pass, Profile, Trigger};
use history::History;
use history::error::Hint;
use tokens::Filled;

/// A model's limits in tokens, as far as they are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ModelLimits<'a> {
    pub model: Option<&'a str>,
    pub window: Option<u64>,
    /// The window comes from the user or the session, not from a table.
    pub window_given: bool,
    /// Maximum input, where the provider states it separately from the window.
    pub input: Option<u64>,
    pub output: Option<u64>,
    /// Tokens of the next request, besides the history.
    pub next: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    Switch,
    Threshold,
    /// The minimum size of the context.
    Minimum,
    /// The minimum time since the last run.
    CoolDown,
    Failures,
    /// The window is unknown, or too small for anything.
    Window,
    /// The size of the next request.
    Next,
}

/// Whether a profile would compact now, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    pub due: bool,
    /// The threshold: tokens of the context from which on it is due.
    pub at: Option<u64>,
    pub gate: Gate,
    /// The `reason_code` of the answer; empty when due.
    pub code: &'static str,
    /// A sentence with the numbers.
    pub reason: String,
    /// What the caller can do about it.
    #[serde(skip)]
    pub hint: Option<Hint>,
}

/// The window that a profile assumes.
pub(super) fn window(trigger: &Trigger, limits: &ModelLimits<'_>) -> Option<u64> {
    let named = |name: &str| trigger.windows.iter().find(|(it, _)| it == name).map(|(_, tokens)| *tokens);
    let own = limits.model.filter(|_| !limits.window_given).and_then(named);
    let found = own.or(limits.window).or(trigger.window).or_else(|| named("*"));
    match trigger.window_at_most {
        Some(most) => Some(found.map_or(most, |it| it.min(most))),
        None => found,
    }
}

/// The size of the context in tokens from which on a profile compacts.
pub fn threshold(profile: &Profile, limits: &ModelLimits<'_>) -> Option<u64> {
    size(profile, limits).map(|it| it.max(profile.trigger.minimum))
}

/// The [`threshold`] without the trigger's minimum.
pub(super) fn size(profile: &Profile, limits: &ModelLimits<'_>) -> Option<u64> {
    /// A share such as 0.9 is inexact in binary; this keeps a whole number of tokens whole.
    const ROUNDING: f64 = 1e-6;
    let trigger = &profile.trigger;
    let window = window(trigger, limits);
    let mut at: Option<u64> = trigger.tokens;
    let mut lower = |value: u64| at = Some(at.map_or(value, |it| it.min(value)));
    if let (Some(share), Some(window)) = (trigger.share, window) {
        let exact = share * window as f64;
        lower(if trigger.whole { (exact + ROUNDING).floor() } else { (exact - ROUNDING).ceil() } as u64);
    }
    let Some(window) = window else { return at };
    let output = limits.output.filter(|it| *it > 0);
    let cap = trigger.reserve_output.unwrap_or(0);
    let reserve = output.map_or(cap, |it| it.min(cap));
    if let Some(percent) = trigger.usable_percent {
        lower((window.saturating_sub(reserve) as f64 * percent / 100.0 + ROUNDING).floor() as u64);
    }
    match (trigger.input_buffer, limits.input) {
        (Some(buffer), Some(input)) => {
            let buffer = if trigger.input_buffer_fixed { buffer } else { buffer.min(reserve) };
            lower(input.saturating_sub(buffer));
        }
        (Some(_), None) | (None, _) if trigger.reserve_output.is_some() || trigger.buffer.is_some() => {
            lower(window.saturating_sub(reserve).saturating_sub(trigger.buffer.unwrap_or(0)));
        }
        (Some(_), None) | (None, _) => {}
    }
    at
}

/// Whether the tokens of a context pass a threshold.
pub fn passes(trigger: &Trigger, context: u64, at: u64) -> bool {
    at > 0 && if trigger.strict { context > at } else { context >= at }
}

/// Whether the characters of a context pass a fixed size.
fn passes_chars(trigger: &Trigger, chars: u64, limit: u64) -> bool {
    if trigger.strict { chars > limit } else { chars >= limit }
}

/// Whether a context that was due still is, at the size to which the passes so far have brought it.
pub(super) fn still_due(profile: &Profile, limits: &ModelLimits<'_>, context: u64, chars: u64) -> bool {
    match profile.trigger.chars {
        Some(limit) => passes_chars(&profile.trigger, chars, limit),
        None => threshold(profile, limits).is_none_or(|at| passes(&profile.trigger, context, at)),
    }
}

/// Milliseconds since the last run, if that is too recent to run again. A last run in the future (the clock
/// was set back) must not block all later ones.
fn cooling_down(trigger: &Trigger, now: i64, last: i64) -> Option<i64> {
    let wait = i64::try_from(trigger.cool_down).unwrap_or(i64::MAX).saturating_mul(1000);
    Some(now.saturating_sub(last)).filter(|it| (0..wait).contains(it))
}

/// The reason code if the size of the next request prevents compaction. `left`: tokens free in the window.
fn next_gate(gate: NextRequest, next: Option<u64>, left: u64, reason: &mut String) -> Option<&'static str> {
    let tokens = next?;
    let large = tokens as f64 > gate.share * left as f64;
    let is = if large { "is more" } else { "is not more" };
    reason.push_str(&format!(
        "; the next request of {tokens} tokens {is} than {:.0} % of the {left} left",
        gate.share * 100.0
    ));
    match (gate.rule, large) {
        (NextRule::Required, false) => Some("below_threshold"),
        (NextRule::EndsBefore, true) => Some("next_too_large"),
        (NextRule::Required, true) | (NextRule::EndsBefore, false) | (NextRule::EndsAfter, true | false) => {
            None
        }
    }
}

/// Whether a profile would compact automatically now, and why.
pub fn verdict(
    history: &History,
    filled: Filled,
    profile: &Profile,
    limits: &ModelLimits<'_>,
    moment: &Moment,
) -> Verdict {
    let trigger = &profile.trigger;
    let at = threshold(profile, limits);
    let no = |gate, code, reason: String| Verdict { due: false, at, gate, code, reason, hint: None };
    if trigger.off {
        return no(Gate::Switch, "switched_off", "auto-compaction is switched off".to_owned());
    }
    if profile.passes.iter().any(|it| matches!(it, Pass::Collapse(it) if it.on)) {
        let reason = "collapsing finished turns is switched on and replaces auto-compaction";
        return no(Gate::Switch, "switched_off", reason.to_owned());
    }
    if trigger.failures > 0 && moment.failures >= trigger.failures {
        let reason = format!(
            "{} compactions failed in a row; auto-compaction stops after {}",
            moment.failures, trigger.failures
        );
        return no(Gate::Failures, "switched_off", reason);
    }
    if let Some(last) = moment.last_run
        && let Some(since) = cooling_down(trigger, moment.now, last)
    {
        let reason = format!("compacted {} s ago; the cool-down is {} s", since / 1000, trigger.cool_down);
        return no(Gate::CoolDown, "cooling_down", reason);
    }
    if let Some(limit) = trigger.chars {
        let chars: u64 = history.messages().iter().map(super::json_len).sum();
        let due = passes_chars(trigger, chars, limit);
        let code = if due { "" } else { "below_threshold" };
        let reason = format!("{chars} characters of {limit}");
        return Verdict { due, at: None, gate: Gate::Threshold, code, reason, hint: None };
    }
    let Some(at) = at else {
        let (reason, hint) = if trigger.share.is_none() && trigger.reserve_output.is_none() {
            ("it has no threshold of its own", None)
        } else {
            ("the model's window is unknown", Some(Hint::GiveWindow))
        };
        return Verdict { hint, ..no(Gate::Window, "unknown_window", reason.to_owned()) };
    };
    let Filled { overhead, messages } = filled;
    if at <= overhead {
        let reason = format!(
            "system prompt and tools alone take {overhead} tokens of {at}: compacting messages would not help"
        );
        return no(Gate::Window, "window_too_small", reason);
    }
    let written = if trigger.without_cache_writes {
        history.messages().iter().rev().find_map(|it| it.usage).map_or(0, |it| it.cache_write)
    } else {
        0
    };
    let context = (overhead + messages).saturating_sub(written);
    if trigger.minimum > 0 && !passes(trigger, context, trigger.minimum) {
        let from = if trigger.strict { "only above" } else { "only at or above" };
        let reason = format!("{context} tokens; compacts {from} {}", trigger.minimum);
        return no(Gate::Minimum, "too_small", reason);
    }
    let mut reason = format!("{context} tokens; the threshold is {at}");
    let hint = Some(Hint::GiveNext).filter(|_| trigger.next.is_some() && limits.next.is_none());
    if let Some(next) = trigger.next {
        let left = window(trigger, limits).unwrap_or(0).saturating_sub(context);
        if let Some(code) = next_gate(next, limits.next, left, &mut reason) {
            return no(Gate::Next, code, reason);
        }
    }
    if passes(trigger, context, at) {
        Verdict { due: true, at: Some(at), gate: Gate::Threshold, code: "", reason, hint }
    } else {
        Verdict { hint, ..no(Gate::Threshold, "below_threshold", reason) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_cools_down_only_after_a_run_of_the_past() {
        let mut trigger = Trigger { cool_down: 30, ..Trigger::default() };
        let cooling = |now| cooling_down(&trigger, now, 100_000);
        assert_eq!([99_999, 100_000, 129_999, 130_000].map(cooling), [None, Some(0), Some(29_999), None]);
        trigger.cool_down = u64::MAX;
        assert_eq!(cooling_down(&trigger, 100_000, 0), Some(100_000));
        trigger.cool_down = 0;
        assert_eq!(cooling_down(&trigger, 0, 0), None);
    }
}
