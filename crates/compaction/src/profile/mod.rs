//! A profile: one system's way to compact, as data. No code here names a system.
//!
//! A profile is a trigger and an ordered list of passes. What differs between systems is a field here (what a scan
//! stops at, whose messages are kept, how a cleared output is marked, what comes after the summary), never a branch
//! on a name. Built-in profiles go through the same parser and the same checks as a user's own.

mod check;
mod pass;
mod settings;
mod summary;

use serde::{Deserialize, Serialize};

use history::error::{Error, ErrorKind, Result};
use tokens::Estimator;

pub use pass::{
    Budget, Collapse, Cut, Ends, Keep, Lines, Outputs, Pass, Replace, Restore, Restored, Rounds, ScanStop,
    Select, Slot, Snip, Summarize, SummaryRole, TooLong, Turns, UserMessages, When,
};
pub use settings::{Sets, Setting};
pub use summary::{PromptFiles, Section, SummaryShape, SummarySpec, SummaryStyle};

/// One system's way to compact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Profile {
    /// `name` or `name@version`.
    pub name: String,
    /// One line for the table.
    #[serde(default)]
    pub about: String,
    /// What it follows: program and version, or document.
    #[serde(default)]
    pub follows: String,
    /// Where we deviate from the system, a sentence each, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deviations: Vec<String>,
    /// The estimator that the system decides by; `None`: the plan's own counter.
    pub estimator: Option<Estimator>,
    /// When it compacts automatically.
    #[serde(default)]
    pub trigger: Trigger,
    /// The system's own names for outcomes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub native: NativeStatus,
    /// What the user is shown when a compaction starts and ends.
    #[serde(default, skip_serializing_if = "is_default")]
    pub notices: Notices,
    /// What is remembered of a compaction.
    pub remember: Option<Remember>,
    /// The agent's own settings that it honors in automatic runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<Setting>,
    /// What it does, in this order.
    #[serde(default, rename = "pass")]
    pub passes: Vec<Pass>,
}

/// When a profile compacts automatically. Every gate that is given must be passed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Trigger {
    /// Switched off: never compacts automatically.
    #[serde(skip_serializing_if = "is_default")]
    pub off: bool,
    /// Share of the window, in (0, 1].
    pub share: Option<f64>,
    /// Rounds that share down to whole tokens; otherwise it is compared exactly.
    #[serde(skip_serializing_if = "is_default")]
    pub whole: bool,
    /// Tokens left free below the window for the answer: the model's largest output, but at most this.
    pub reserve_output: Option<u64>,
    /// Tokens left free in addition.
    pub buffer: Option<u64>,
    /// Where the provider states a maximum input: tokens left free below that instead, at most the reserve
    /// for the answer.
    pub input_buffer: Option<u64>,
    /// The user set that buffer, so it is not limited to the reserve.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub input_buffer_fixed: bool,
    /// Percent of the window without the reserve; only ever lowers the threshold.
    pub usable_percent: Option<f64>,
    /// Threshold in tokens.
    pub tokens: Option<u64>,
    /// Threshold in characters of the messages, instead of tokens.
    pub chars: Option<u64>,
    /// Due only above the threshold, not at it.
    #[serde(skip_serializing_if = "is_default")]
    pub strict: bool,
    /// Tokens that the newest request wrote to a cache are not counted.
    #[serde(skip_serializing_if = "is_default")]
    pub without_cache_writes: bool,
    /// Minimum tokens of the context.
    #[serde(skip_serializing_if = "is_default")]
    pub minimum: u64,
    /// Minimum seconds between two automatic compactions.
    #[serde(skip_serializing_if = "is_default")]
    pub cool_down: u64,
    /// Failures in a row after which it no longer runs automatically; 0: no limit.
    #[serde(skip_serializing_if = "is_default")]
    pub failures: u32,
    /// The window to assume for an unknown model.
    pub window: Option<u64>,
    /// Upper bound of the window, however large the model's is.
    pub window_at_most: Option<u64>,
    /// Windows that the system assumes, where they differ from our table: model, tokens. `*` is any other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<(String, u64)>,
    /// What the size of the next request decides.
    pub next: Option<NextRequest>,
}

/// What the size of the next request decides.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NextRequest {
    /// The request is large if it takes more than this share of what is left of the window.
    pub share: f64,
    /// What happens if it is large.
    pub rule: NextRule,
}

/// What happens if the next request is large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NextRule {
    /// It compacts only then.
    Required,
    /// The turn ends before compacting.
    EndsBefore,
    /// It compacts if due; the turn ends if the request is still too large then.
    EndsAfter,
}

/// The system's own names for outcomes; empty where it has none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct NativeStatus {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub compacted: String,
    /// Only outputs were shortened.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub shortened: String,
    /// There was nothing to do, or it is not due.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub noop: String,
    /// It would have grown.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub grew: String,
    /// The summary was empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub empty: String,
    /// The result could not be counted.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uncounted: String,
}

/// What the user is shown; `{percent}` of the window is filled in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Notices {
    pub started: String,
    pub compacted: String,
}

/// What is remembered of a compaction, and how much of that is given to later ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Remember {
    /// Minimum characters of a summary to be remembered for the project.
    pub least_chars: usize,
    /// Maximum number of the project's memories that are given to the next summary, the newest first.
    pub recalled: u32,
}

/// For `skip_serializing_if`: reading fills in the default again.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Profile {
    /// Reads and checks a profile. `place` names it in errors. With `extends = "NAME"`, whatever it leaves
    /// out comes from that profile in `bases` (name and text); lists are replaced as a whole.
    ///
    /// # Errors
    /// [`ErrorKind::Arguments`] with `place` and line: invalid TOML, an unknown key, a base that is not in
    /// `bases`, or settings that contradict each other.
    pub fn parse(text: &str, place: &str, bases: &[(&str, &str)]) -> Result<Self> {
        Self::parse_over(text, place, bases, 0)
    }

    fn parse_over(text: &str, place: &str, bases: &[(&str, &str)], depth: u32) -> Result<Self> {
        /// `name@version` extends `name`, a user's own profile extends that: a longer chain must be a cycle.
        const DEEPEST: u32 = 8;
        let wrong = |error: toml::de::Error| {
            let line =
                error.span().map(|it| 1 + text[..it.start.min(text.len())].matches('\n').count() as u64);
            Error::new(ErrorKind::Arguments, format!("reading the profile: {}", error.message()))
                .at(place, line)
        };
        let mut written: toml::Table = toml::from_str(text).map_err(wrong)?;
        let profile: Self = match written.remove("extends") {
            None => toml::from_str(text).map_err(wrong)?,
            Some(toml::Value::String(base)) if depth < DEEPEST => {
                let Some((_, base_text)) = bases.iter().find(|(it, _)| *it == base) else {
                    let names: Vec<_> = bases.iter().map(|(it, _)| *it).collect();
                    let what = format!("extends: expected one of {}, found {base:?}", names.join(", "));
                    let line = check::line_of_mistake(text, &format!("`{base}`"));
                    return Err(Error::new(ErrorKind::Arguments, what).at(place, line));
                };
                let mut base = Self::parse_over(base_text, &base, bases, depth + 1)?;
                // What this profile says about the trigger overrides the agent's own settings.
                if let Some(toml::Value::Table(trigger)) = written.get("trigger") {
                    base.settings.retain(|it| !trigger.contains_key(it.sets.name()));
                }
                let what = |error: toml::ser::Error| {
                    Error::new(ErrorKind::Bug, "extending a profile").at(place, None).because(error)
                };
                let mut whole = toml::Table::try_from(&base).map_err(what)?;
                merge(&mut whole, written);
                let whole = toml::to_string(&whole).map_err(what)?;
                toml::from_str(&whole).map_err(|error| {
                    let message = error.message();
                    let what = format!("reading the profile: {message}");
                    Error::new(ErrorKind::Arguments, what).at(place, check::line_of_mistake(text, message))
                })?
            }
            Some(toml::Value::String(base)) => {
                let what = format!(
                    "extends: expected a chain of at most {DEEPEST} profiles, found a cycle or a longer chain at \
                     {base:?}"
                );
                return Err(Error::new(ErrorKind::Arguments, what).at(place, None));
            }
            Some(other) => {
                let what = format!("extends: expected the name of a built-in profile, found {other}");
                return Err(Error::new(ErrorKind::Arguments, what).at(place, None));
            }
        };
        let problems = check::problems(&profile, text);
        let Some(first) = problems.first() else { return Ok(profile) };
        let all: Vec<&str> = problems.iter().map(|it| it.what.as_str()).collect();
        Err(Error::new(ErrorKind::Arguments, format!("the profile contradicts itself: {}", all.join("; ")))
            .at(place, first.line))
    }

    /// As TOML that parses back to an equal profile.
    ///
    /// # Errors
    /// [`ErrorKind::Bug`] for a value that TOML cannot hold.
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string_pretty(self)
            .map_err(|error| Error::new(ErrorKind::Bug, "writing a profile").because(error))
    }

    /// The pass of that index, if it summarizes.
    pub fn summarizing(&self, pass: usize) -> Option<&Summarize> {
        match self.passes.get(pass)? {
            Pass::Summarize(step) => Some(step),
            Pass::Outputs(_) | Pass::Snip(_) | Pass::Collapse(_) => None,
        }
    }

    /// The first summarizing step that is not only for overflow.
    pub fn summarize(&self) -> Option<&Summarize> {
        self.passes.iter().find_map(|pass| match pass {
            Pass::Summarize(step) if step.when != When::Overflow => Some(&**step),
            Pass::Summarize(_) | Pass::Outputs(_) | Pass::Snip(_) | Pass::Collapse(_) => None,
        })
    }
}

/// Merges `over` into `base`: tables key by key, everything else is replaced.
fn merge(base: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(value)) => merge(inner, value),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
pub(crate) fn read(name: &str) -> Profile {
    let path = format!("{}/../../prompts/{name}/profile.toml", env!("CARGO_MANIFEST_DIR"));
    Profile::parse(&std::fs::read_to_string(path).unwrap(), name, &[]).unwrap()
}
