//! The agents' own settings, as far as they bear on compacting. A profile lists where a value stands and what it sets;
//! who finds the values is not known here.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Keep, Pass, Profile};

/// A setting of an agent that a profile honours when it runs by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Setting {
    /// Where it stands: `env:NAME`, or the agent's file and the path in it, as `AGENT:a.b`.
    pub from: String,
    pub sets: Sets,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sets {
    /// The share of the window; outside (0, 1] it is not heeded.
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
    /// False turns compacting by itself off.
    On,
    /// True turns compacting by itself off.
    Off,
    /// Whether old outputs are cleared.
    Prune,
    /// True leaves old outputs as they are.
    NoPrune,
    KeepTurns,
    /// How many tokens of turns stay.
    KeepTokens,
    /// The request to the summarizer.
    Ask,
}

impl Sets {
    /// The field of the trigger that it sets, or its own name where it is none.
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
    /// The profile as the agent's own settings would have it. `value` finds a setting by where it stands; what makes no
    /// sense is not heeded, as the agents do not heed it.
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

/// A number, or text that is one.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().replace('_', "").parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A truth value, or text that stands for one: `1`, `true`, `yes`, `on`.
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
