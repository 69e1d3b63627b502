//! Agents' own settings that affect compaction. A profile lists where each is found and what it sets; the
//! caller reads the values.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Keep, Pass, Profile};

/// A setting of an agent that a profile honors in automatic runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Setting {
    /// Where it is found: `env:NAME`, or the agent's file and the path in it, as `AGENT:a.b`.
    pub from: String,
    pub sets: Sets,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sets {
    /// The share of the window; ignored outside (0, 1].
    Share,
    /// A fixed size in tokens.
    Tokens,
    WindowAtMost,
    /// Percent of the usable window.
    UsablePercent,
    /// The tokens kept free for the answer.
    ReserveOutput,
    /// The tokens kept free below the largest input.
    InputBuffer,
    /// `false` turns automatic compaction off.
    On,
    /// `true` turns automatic compaction off.
    Off,
    /// Whether old outputs are cleared.
    Prune,
    /// `true` leaves old outputs as they are.
    NoPrune,
    KeepTurns,
    /// Maximum tokens of kept turns.
    KeepTokens,
    /// The request to the summarizer.
    Ask,
}

impl Sets {
    /// The trigger's field that it sets, or its own name if it sets none.
    pub fn name(self) -> &'static str {
        match self {
            Self::Share => "share",
            Self::Tokens => "tokens",
            Self::WindowAtMost => "window-at-most",
            Self::UsablePercent => "usable-percent",
            Self::ReserveOutput => "reserve-output",
            Self::InputBuffer => "input-buffer",
            Self::On | Self::Off => "off",
            Self::Prune | Self::NoPrune => "prune",
            Self::KeepTurns => "keep-turns",
            Self::KeepTokens => "keep-tokens",
            Self::Ask => "ask",
        }
    }
}

impl Profile {
    /// The profile with the agent's own settings applied. `value` finds a setting by `Setting::from`; invalid
    /// values are ignored, as the agents ignore them.
    #[must_use]
    pub fn honouring(&self, value: &dyn Fn(&str) -> Option<Value>) -> Self {
        let mut out = self.clone();
        for setting in &self.settings {
            if let Some(value) = value(&setting.from) {
                set(&mut out, setting.sets, &value);
            }
        }
        out
    }
}

fn set(profile: &mut Profile, sets: Sets, value: &Value) {
    let trigger = &mut profile.trigger;
    let number = number(value);
    let whole = number.filter(|it| *it >= 1.0).map(|it| it as u64);
    match sets {
        Sets::Share => {
            if let Some(share) = number.filter(|it| *it > 0.0 && *it <= 1.0) {
                trigger.share = Some(share);
            }
        }
        Sets::Tokens => trigger.tokens = whole.or(trigger.tokens),
        Sets::WindowAtMost => trigger.window_at_most = whole.or(trigger.window_at_most),
        Sets::UsablePercent => {
            if let Some(percent) = number.filter(|it| *it > 0.0 && *it <= 100.0) {
                trigger.usable_percent = Some(percent);
            }
        }
        Sets::ReserveOutput => trigger.reserve_output = whole.or(trigger.reserve_output),
        Sets::InputBuffer => {
            if let Some(tokens) = number.filter(|it| *it >= 0.0) {
                (trigger.input_buffer, trigger.input_buffer_fixed) = (Some(tokens as u64), true);
            }
        }
        Sets::On => trigger.off |= truth(value) == Some(false),
        Sets::Off => trigger.off |= truth(value) == Some(true),
        Sets::Prune => switch_outputs(profile, truth(value).map(|it| !it)),
        Sets::NoPrune => switch_outputs(profile, truth(value).filter(|it| *it)),
        Sets::KeepTurns | Sets::KeepTokens => {
            let Some(amount) = number.filter(|it| *it >= 0.0) else { return };
            for pass in &mut profile.passes {
                if let Pass::Summarize(step) = pass
                    && let Keep::Turns(turns) = &mut step.keep
                {
                    if sets == Sets::KeepTurns {
                        turns.count = Some(amount as usize);
                    } else {
                        turns.tokens = Some(amount as u64);
                    }
                }
            }
        }
        Sets::Ask => {
            let Some(text) = value.as_str().map(str::trim).filter(|it| !it.is_empty()) else { return };
            for pass in &mut profile.passes {
                if let Pass::Summarize(step) = pass {
                    step.prompts.ask = Some(text.to_owned());
                }
            }
        }
    }
}

fn switch_outputs(profile: &mut Profile, off: Option<bool>) {
    let Some(off) = off else { return };
    for pass in &mut profile.passes {
        if let Pass::Outputs(step) = pass {
            step.off = off;
        }
    }
}

/// A number, or a string that holds one.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().replace('_', "").parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A Boolean, a number (0 is false), or a string: `1`, `true`, `yes` and `on` are true.
fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(truth) => Some(*truth),
        Value::Number(number) => number.as_f64().map(|it| it != 0.0),
        Value::String(text) => {
            Some(matches!(text.trim().to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "on"))
        }
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
