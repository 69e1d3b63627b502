//! A profile: one system's way to compact, as data. Names no system.
//!
//! A profile is a trigger and an ordered list of passes. What differs between systems is a field here (what a scan
//! stops at, whose messages are kept, how a cleared output is marked, what comes after the summary), never a branch
//! on a name. The built-in ones lie in `prompts/NAME/profile.toml` and go through the same parser and the same
//! checks as a user's own.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind as ErrorKind, Result};
use crate::facts::Topic;
use crate::tokens::Estimator;

/// One system's way to compact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Profile {
    /// `name` or `name@version`.
    pub name: String,
    /// One line for the table.
    pub about: String,
    /// What it follows: program and version, or document.
    pub follows: String,
    /// The estimator that the system decides by; without one, the plan's own ruler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimator: Option<Estimator>,
    /// When it compacts by itself.
    pub trigger: Trigger,
    /// What it does, in this order.
    #[serde(rename = "pass")]
    pub passes: Vec<Pass>,
    /// The system's own names for what came out.
    #[serde(default)]
    pub native: NativeStatus,
    /// Where we deviate from the system, a sentence each, and why.
    #[serde(default)]
    pub deviations: Vec<String>,
}

/// When a profile compacts by itself. Every gate that is given must be passed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Trigger {
    /// Share of the window, in (0, 1].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Tokens left free below the window for the answer: the model's largest output, but at most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserve_output: Option<u64>,
    /// Tokens left free besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<u64>,
    /// A fixed size in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// A fixed size in characters of the messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chars: Option<u64>,
    /// Due only above the threshold, not at it.
    #[serde(default)]
    pub strict: bool,
    /// Never below so many tokens.
    #[serde(default)]
    pub minimum: u64,
    /// Not again within so many seconds.
    #[serde(default)]
    pub cool_down: u64,
    /// After so many failures in a row, not by itself any more. 0: no such limit.
    #[serde(default)]
    pub failures: u32,
    /// The window to assume for a model nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

/// One step of a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pass {
    /// When it runs.
    #[serde(default)]
    pub when: When,
    /// What it does.
    #[serde(flatten)]
    pub step: Step,
}

/// When a pass runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// Every time.
    #[default]
    Always,
    /// When the trigger is passed, or somebody asked.
    Due,
    /// Only when the model refused the input as too long.
    Overflow,
}

/// What a pass does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Step {
    /// Clears, shortens or spills tool outputs.
    Outputs(Outputs),
    /// Drops messages from the middle.
    Snip(Snip),
    /// Replaces messages by a summary.
    Summarize(Box<Summarize>),
}

/// Which tool outputs are replaced, and by what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Outputs {
    /// Which ones.
    pub select: Select,
    /// The newest turns whose outputs are neither counted nor replaced.
    #[serde(default)]
    pub protect_turns: u32,
    /// The newest messages that are neither counted nor replaced.
    #[serde(default)]
    pub protect_messages: usize,
    /// Where a scan from the newest ends for good.
    #[serde(default)]
    pub stop_at: Vec<Stop>,
    /// Tools whose outputs are never replaced (nor counted).
    #[serde(default)]
    pub except_tools: Vec<String>,
    /// Tools whose outputs alone are replaced; empty: all.
    #[serde(default)]
    pub only_tools: Vec<String>,
    /// Only outputs with more characters than this.
    #[serde(default)]
    pub longer_than: u64,
    /// Only if nothing was said for so many minutes.
    #[serde(default)]
    pub idle_minutes: u64,
    /// Nothing is replaced unless more tokens than this are gained.
    #[serde(default)]
    pub minimum: u64,
    /// What takes their place.
    pub replace: Replace,
}

/// Which tool outputs a pass takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Select {
    /// From the newest: those beyond so many tokens. The one that crosses the line is taken.
    Beyond(u64),
    /// All but the newest so many.
    AllButLast(usize),
    /// Of the newest batch, if it exceeds so many characters: the largest first, until it fits.
    Batch(u64),
}

/// Where a scan from the newest ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// At a summary.
    Summary,
    /// At an output that was cleared before.
    Cleared,
}

/// What takes an output's place. `{handle}`, `{tokens}`, `{chars}`, `{tool}` are filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Replace {
    /// This text.
    Placeholder(String),
    /// Its beginning and its end.
    Ends {
        /// Characters that stay.
        chars: usize,
        /// Of these, the share at the beginning.
        head: f64,
        /// Text before; the omitted count is `{omitted}`.
        before: String,
        /// Text between.
        between: String,
        /// Text after.
        #[serde(default)]
        after: String,
    },
}

/// Drops messages from the middle, pairs kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Snip {
    /// Only with more messages than this.
    pub above: usize,
    /// Messages kept at the beginning.
    pub head: usize,
    /// Messages kept at the end.
    pub tail: usize,
    /// The user message in their place; `{count}` is filled in.
    pub marker: String,
}

/// Replaces messages by a summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Summarize {
    /// What stays beside the summary.
    pub keep: Keep,
    /// The summary's sections.
    pub summary: SummarySpec,
    /// The new history, in order.
    pub layout: Vec<Slot>,
    /// Whose message the summary is.
    #[serde(default)]
    pub role: SummaryRole,
    /// What the summary message starts with.
    #[serde(default)]
    pub before: String,
    /// What it ends with.
    #[serde(default)]
    pub after: String,
    /// Reject an outcome of the same size too, not only a larger one.
    #[serde(default)]
    pub must_shrink: bool,
}

/// What stays beside a summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Keep {
    /// Nothing.
    Nothing,
    /// As much of the end as the budget leaves: the last request with what follows it first, then whole units.
    Budget(Budget),
    /// The end of the history from the first prompt behind this share of its JSON characters.
    ShareBehind(f64),
    /// The newest messages, so many, moved back where that would part a call from its output.
    Messages(usize),
    /// The newest turns that fit.
    Turns {
        /// Share of the usable window.
        share: f64,
        /// At least so many tokens.
        minimum: u64,
        /// At most so many tokens.
        maximum: u64,
    },
    /// What the user wrote, newest first, within so many tokens; the one that crosses is cut in the middle.
    UserMessages(u64),
}

/// How a budget is shared out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Budget {
    /// Budget when none is asked for: share of the messages' tokens.
    pub share: f64,
    /// … but at least so many tokens
    pub minimum: u64,
    /// … and at most so many.
    pub maximum: u64,
    /// Of the budget, what the summary may take.
    pub summary: f64,
}

/// A place in the new history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Slot {
    /// Instructions and context that stood before the first prompt.
    Head,
    /// The kept user messages.
    UserMessages,
    /// The summary.
    Summary,
    /// The model's acknowledgement, always.
    Ack(String),
    /// The same, but only where a prompt follows: APIs would merge the prompt into the summary.
    AckPrompt(String),
    /// A message in the user's place, marked as the client's: this.
    Marker(String),
    /// The client's "go on", in the user's place.
    Continue(String),
    /// The kept end of the history.
    Tail,
}

/// Whose message the summary is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SummaryRole {
    /// The user's.
    #[default]
    User,
    /// The model's.
    Assistant,
}

/// The system's own names for what came out; empty where it has none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct NativeStatus {
    /// It was compacted.
    pub compacted: String,
    /// There was nothing to do, or it is not due.
    pub noop: String,
    /// It would have grown.
    pub grew: String,
    /// The summary was empty.
    pub empty: String,
}

/// How the summary is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SummarySpec {
    /// Markdown headings or XML elements.
    #[serde(default)]
    pub shape: Shape,
    /// With XML, the element around all sections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Its sections, in order.
    pub sections: Vec<Section>,
    /// Upper bound in tokens, unless the budget says otherwise.
    #[serde(default = "default_max_tokens")]
    pub max_tokens: u64,
    /// Keep a section whose topics are empty (with "(none)"), because a reader expects it.
    #[serde(default)]
    pub keep_empty: bool,
}

fn default_max_tokens() -> u64 {
    2_000
}

/// The shape of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// `## Title` and bullets.
    #[default]
    Markdown,
    /// `<name>` … `</name>`, text escaped.
    Xml,
    /// `Title:` and bullets.
    Plain,
}

/// A section of a summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Section {
    /// Heading or element name.
    pub title: String,
    /// What of the ledger goes into it, in order.
    pub holds: Vec<Topic>,
}

/// How deep a summary goes. Never changes what is pinned.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// Pinned facts and one line for the rest.
    Brief,
    /// Everything that fits.
    #[default]
    Detailed,
    /// Files, commands, errors and identifiers first.
    Technical,
}

/// The built-in profiles: name and text, in the order of the table.
pub const BUILT_IN: [(&str, &str); 1] = [("epitome", include_str!("../prompts/epitome/profile.toml"))];

impl Profile {
    /// The built-in profile of that name.
    pub fn built_in(name: &str) -> Result<Self> {
        let (_, text) = BUILT_IN.iter().find(|(it, _)| *it == name).ok_or_else(|| {
            let names: Vec<_> = BUILT_IN.iter().map(|(it, _)| *it).collect();
            Error::new(
                ErrorKind::Arguments,
                format!("expected a profile ({}) or a .toml file, found {name:?}", names.join(", ")),
            )
        })?;
        Self::parse(text, name)
    }

    /// Reads and checks a profile. `place` names it in errors.
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        let profile: Self = toml::from_str(text).map_err(|error| {
            let line =
                error.span().map(|it| 1 + text[..it.start.min(text.len())].matches('\n').count() as u64);
            Error::new(ErrorKind::Arguments, format!("reading the profile: {}", error.message()))
                .at(place, line)
        })?;
        let problems = profile.problems();
        if problems.is_empty() {
            return Ok(profile);
        }
        Err(Error::new(
            ErrorKind::Arguments,
            format!("the profile contradicts itself: {}", problems.join("; ")),
        )
        .at(place, None))
    }

    /// What contradicts itself, a sentence each.
    fn problems(&self) -> Vec<String> {
        let mut out = Vec::new();
        let mut share = |what: &str, value: f64| {
            if !(0.0 < value && value <= 1.0) {
                out.push(format!("{what}: expected a share above 0 and up to 1, found {value}"));
            }
        };
        if let Some(value) = self.trigger.share {
            share("trigger.share", value);
        }
        for pass in &self.passes {
            match &pass.step {
                Step::Summarize(step) => match &step.keep {
                    Keep::ShareBehind(value) => share("keep.share-behind", *value),
                    Keep::Budget(budget) => {
                        share("keep.budget.share", budget.share);
                        share("keep.budget.summary", budget.summary);
                    }
                    Keep::Turns { share: value, .. } => share("keep.turns.share", *value),
                    Keep::Nothing | Keep::Messages(_) | Keep::UserMessages(_) => {}
                },
                Step::Outputs(step) => {
                    if let Replace::Ends { head, .. } = &step.replace {
                        share("replace.ends.head", *head);
                    }
                }
                Step::Snip(_) => {}
            }
        }
        if self.passes.is_empty() {
            out.push("pass: expected at least one, found none".into());
        }
        for (number, pass) in self.passes.iter().enumerate() {
            match &pass.step {
                Step::Outputs(step) => {
                    if let Select::Beyond(protect) = step.select
                        && protect < step.minimum
                    {
                        out.push(format!(
                            "pass {number}: protects {protect} tokens, fewer than the minimum of {}",
                            step.minimum
                        ));
                    }
                }
                Step::Snip(step) => {
                    if step.head + step.tail > step.above {
                        out.push(format!(
                            "pass {number}: keeps {} messages of histories above {}",
                            step.head + step.tail,
                            step.above
                        ));
                    }
                }
                Step::Summarize(step) => {
                    if !step.layout.contains(&Slot::Summary) {
                        out.push(format!("pass {number}: its layout has no place for the summary"));
                    }
                    if step.summary.sections.is_empty() {
                        out.push(format!("pass {number}: its summary has no sections"));
                    }
                    if let Keep::Budget(Budget { minimum, maximum, .. })
                    | Keep::Turns { minimum, maximum, .. } = step.keep
                        && minimum > maximum
                    {
                        out.push(format!(
                            "pass {number}: keeps at least {minimum} but at most {maximum} tokens"
                        ));
                    }
                }
            }
        }
        out
    }

    /// The step that summarises when nothing overflowed, if there is one.
    pub fn summarize(&self) -> Option<&Summarize> {
        self.passes.iter().find_map(|pass| match (&pass.step, pass.when) {
            (Step::Summarize(step), When::Always | When::Due) => Some(&**step),
            (Step::Summarize(_), When::Overflow) | (Step::Outputs(_) | Step::Snip(_), _) => None,
        })
    }
}
