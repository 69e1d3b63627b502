//! Whether a profile would compact by itself now, and why.

use serde::Serialize;

use super::Moment;
use crate::history::History;
use crate::profile::Profile;
use crate::tokens::Ruler;

/// The gate that decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gate {
    /// The threshold.
    Threshold,
    /// The smallest size worth it.
    Minimum,
    /// The time since the last run.
    CoolDown,
    /// The failures in a row.
    Failures,
    /// The window is unknown.
    Window,
}

/// Whether a profile would compact now, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Whether.
    pub due: bool,
    /// From which size of the context on, in tokens.
    pub at: Option<u64>,
    /// The gate that decided.
    pub gate: Gate,
    /// A `reason_code` of the contract; empty when due.
    pub code: &'static str,
    /// A sentence with the numbers.
    pub reason: String,
}

/// The size of the context in tokens from which on a profile compacts, for a window and a largest answer.
pub fn threshold(profile: &Profile, window: Option<u64>, max_output: Option<u64>) -> Option<u64> {
    let trigger = &profile.trigger;
    let window = window.or(trigger.window);
    let mut at: Option<u64> = trigger.tokens;
    let mut lower = |value: u64| at = Some(at.map_or(value, |it| it.min(value)));
    if let (Some(share), Some(window)) = (trigger.share, window) {
        lower((share * window as f64).ceil() as u64);
    }
    if let Some(window) = window
        && (trigger.reserve_output.is_some() || trigger.buffer.is_some())
    {
        let cap = trigger.reserve_output.unwrap_or(0);
        let reserve = max_output.filter(|it| *it > 0).map_or(cap, |it| it.min(cap));
        lower(window.saturating_sub(reserve).saturating_sub(trigger.buffer.unwrap_or(0)));
    }
    at
}

/// Decides.
pub fn verdict(
    history: &History,
    ruler: &Ruler,
    profile: &Profile,
    window: Option<u64>,
    max_output: Option<u64>,
    moment: &Moment,
) -> Verdict {
    let trigger = &profile.trigger;
    let context = ruler.overhead() + history.messages().iter().map(|it| ruler.message(it)).sum::<u64>();
    let no = |gate, at, code, reason| Verdict { due: false, at, gate, code, reason };
    if let Some(limit) = trigger.chars {
        let chars: u64 = history.messages().iter().map(super::json_len).sum();
        let reason = format!("{chars} characters of {limit}");
        return if chars > limit {
            Verdict { due: true, at: None, gate: Gate::Threshold, code: "", reason }
        } else {
            no(Gate::Threshold, None, "below_threshold", reason)
        };
    }
    let Some(at) = threshold(profile, window, max_output) else {
        let reason = "the model's window is not known; give it with --window".to_owned();
        return no(Gate::Window, None, "unknown_window", reason);
    };
    if trigger.failures > 0 && moment.failures >= trigger.failures {
        let reason =
            format!("{} compactions failed in a row; it takes {} to stop", moment.failures, trigger.failures);
        return no(Gate::Failures, Some(at), "switched_off", reason);
    }
    if let Some(last) = moment.last_run
        && trigger.cool_down > 0
        && moment.now.saturating_sub(last) < trigger.cool_down as i64 * 1000
    {
        let since = moment.now.saturating_sub(last) / 1000;
        let reason = format!("compacted {since} s ago; not again before {} s", trigger.cool_down);
        return no(Gate::CoolDown, Some(at), "cooling_down", reason);
    }
    if context < trigger.minimum {
        let reason = format!("{context} tokens; not below {}", trigger.minimum);
        return no(Gate::Minimum, Some(at), "too_small", reason);
    }
    let percent = if at == 0 { 100 } else { context * 100 / at };
    let reason = format!("{context} of {at} tokens ({percent} %)");
    let due = if trigger.strict { context > at } else { context >= at };
    if due {
        Verdict { due, at: Some(at), gate: Gate::Threshold, code: "", reason }
    } else {
        no(Gate::Threshold, Some(at), "below_threshold", reason)
    }
}
