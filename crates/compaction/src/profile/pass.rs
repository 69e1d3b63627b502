//! What a profile does, step by step.

use serde::{Deserialize, Serialize};

use super::summary::{PromptFiles, SummarySpec};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    #[default]
    Always,
    /// When the trigger is passed, or the user asked, or the model refused the input as too long.
    Due,
    /// When the trigger is still passed after the steps before it, or the user asked; not when the model refused the
    /// input as too long.
    Planned,
    /// Only when the model refused the input as too long.
    Overflow,
}

/// One step of a profile.
#[expect(clippy::large_enum_variant, reason = "a profile has a handful of them")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Pass {
    /// Clears, shortens or spills tool outputs.
    Outputs(Outputs),
    /// Drops messages from the middle.
    Snip(Snip),
    /// Makes one line of each finished turn.
    Collapse(Collapse),
    /// Replaces messages by a summary.
    Summarize(Box<Summarize>),
}

impl Pass {
    pub fn when(&self) -> When {
        match self {
            Self::Outputs(step) => step.when,
            Self::Snip(step) => step.when,
            Self::Collapse(step) => step.when,
            Self::Summarize(step) => step.when,
        }
    }
}

/// Which tool outputs are replaced, and by what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Outputs {
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub when: When,
    /// Left out unless the user asks for a prune, or a setting turns it on.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub off: bool,
    pub select: Select,
    /// The newest turns whose outputs are neither counted nor replaced.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub protect_turns: u32,
    /// The newest messages that are neither counted nor replaced.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub protect_messages: usize,
    /// Where a scan from the newest ends for good.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub stop_at: Vec<ScanStop>,
    /// Tools whose outputs are never replaced (nor counted).
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub except_tools: Vec<String>,
    /// Tools whose outputs alone are replaced; empty: all.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub only_tools: Vec<String>,
    /// Outputs of calls that failed are never replaced (nor counted).
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub except_failed: bool,
    /// An output's size is that of its whole part by the profile's estimator, not of its text.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub whole_parts: bool,
    /// Only outputs with more characters than this (UTF-16 units).
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub longer_than: u64,
    /// Only where more outputs than this could be taken, the ones that stay among them.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub above: usize,
    /// Minutes of silence required.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub idle_minutes: u64,
    /// Nothing is replaced unless more tokens than this are gained.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub minimum: u64,
    /// What takes their place.
    pub replace: Replace,
}

/// Which tool outputs a pass takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Select {
    /// Tokens of the newest outputs that are protected; the one that crosses the line is taken.
    Beyond(u64),
    /// Tokens for all outputs, the newest first: each that does not fit into what is left is taken, and what takes its
    /// place counts.
    Unfit(u64),
    /// Number of the newest outputs that stay.
    AllButLast(usize),
    /// Maximum characters of the newest batch: the largest are taken first, until it fits.
    Batch(u64),
    /// The same of every batch: the outputs between two messages of the model.
    EachBatch(u64),
}

/// Where a scan from the newest ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScanStop {
    Summary,
    /// At an output that was cleared before.
    Cleared,
}

/// What takes an output's place. `{handle}`, `{recall}`, `{tokens}`, `{chars}`, `{tool}` are filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Replace {
    Placeholder(String),
    /// Its beginning and its end.
    Ends(Ends),
}

/// The beginning and the end of an output stay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Ends {
    /// Characters that stay. A text with no more is left as it is.
    pub chars: usize,
    /// Of these, the share at the beginning.
    pub head: f64,
    /// Text before; the number of characters left out is `{omitted}`, of the first `{first}` and last `{last}`.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub before: String,
    pub between: String,
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub after: String,
    /// Outputs of these tools keep whole lines instead.
    pub lines: Option<Lines>,
}

/// The first and the last lines of an output stay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Lines {
    pub tools: Vec<String>,
    /// Lines at each end.
    pub each: usize,
    /// The line between; `{omitted}` lines are left out.
    pub between: String,
}

/// Drops messages from the middle, pairs kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Snip {
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub when: When,
    /// Left out, unless a user's own profile turns it on.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub off: bool,
    /// Only with more messages than this.
    pub above: usize,
    /// Messages kept at the beginning.
    pub head: usize,
    /// Messages kept at the end.
    pub tail: usize,
    /// The user message in their place; `{count}` is filled in.
    pub marker: String,
}

/// Makes one line of each finished turn; undone by its handle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Collapse {
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub when: When,
    /// The switch. While it is on, nothing is compacted by itself.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub on: bool,
    /// The newest turns that stay as they are.
    pub keep_turns: usize,
    /// The line; `{words}`, `{count}`, `{tokens}` and `{recall}` are filled in.
    pub line: String,
}

/// Replaces messages by a summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Summarize {
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub when: When,
    /// What the summary message starts with. `{user-messages}` stands for the kept user messages, joined.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub before: String,
    /// What it ends with.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub after: String,
    /// Whose message the summary is.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub role: SummaryRole,
    /// Where there is nothing to summarise, what was done before it is taken back; and unless it runs by itself,
    /// nothing else is done either.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub or_nothing: bool,
    /// By itself, left out after a compaction that failed.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub not_after_failure: bool,
    /// A stored snapshot that covers what would be summarised is used instead, if it has at most this many tokens.
    pub snapshot: Option<u64>,
    /// Which messages are not shown to a model when they are too many for it.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub too_long: TooLong,
    pub keep: Keep,
    /// The new history, in order.
    pub layout: Vec<Slot>,
    /// The same, when it ran by itself; otherwise as [`layout`](Self::layout).
    pub layout_auto: Option<Vec<Slot>>,
    /// The same, when the model refused the input; otherwise as when it ran by itself.
    pub layout_overflow: Option<Vec<Slot>>,
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub prompts: PromptFiles,
    pub summary: SummarySpec,
}

/// Which messages are not shown to a model when they are too many for it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum TooLong {
    /// None: the summary fails.
    #[default]
    Fails,
    /// The oldest with its partner, one after the other, until the rest is accepted.
    Oldest,
    /// The oldest rounds of the model, at least this share of them at a time.
    Rounds(Rounds),
}

/// How rounds are left out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rounds {
    /// Share of the rounds that goes at a time, where the gap is not known.
    pub share: f64,
    pub tries: u32,
}

/// What stays beside a summary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Keep {
    Nothing,
    /// As much of the end as the budget leaves: the last request with what follows it first, then whole units.
    Budget(Budget),
    /// The end of the history from the first prompt behind this share of its JSON characters.
    ShareBehind(f64),
    /// Number of the newest messages, more where that would part a call from its output.
    Messages(usize),
    /// The newest turns that fit.
    Turns(Turns),
    /// What the user wrote.
    UserMessages(UserMessages),
}

/// The newest turns that fit, measured by their JSON.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Turns {
    /// Share of the usable window.
    pub share: f64,
    /// Minimum tokens.
    pub minimum: u64,
    /// Maximum tokens.
    pub maximum: u64,
    /// Maximum number of turns; 0 none, absent all that fit.
    pub count: Option<usize>,
    /// Maximum tokens, instead of all that.
    pub tokens: Option<u64>,
}

/// What the user wrote, newest first, within a budget; the one that crosses is cut in the middle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct UserMessages {
    /// Tokens of them, by the profile's own estimator.
    pub tokens: u64,
    /// All as one text, blank lines between them, which goes into `before`; cut as a whole.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub joined: bool,
    /// How the middle is cut out.
    #[serde(default)]
    pub cut: Cut,
    /// Not kept: what starts with the first and ends with the second, without regard to case or outer white space.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fences: Vec<(String, String)>,
    /// Not kept: what starts with this (an earlier summary in the user's place).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summaries: Vec<String>,
}

/// How the middle of a text is cut out. Four bytes are a token.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Cut {
    /// `…N tokens truncated…`, which comes on top of the budget.
    #[default]
    Tokens,
    /// The same within the budget, at line breaks.
    Lines,
    /// This text, which comes on top of the budget.
    Text(String),
}

/// How a budget is shared out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Budget {
    /// Budget when none is asked for: share of the messages' tokens before any pass, at most half of those after.
    pub share: f64,
    /// Minimum tokens of that budget.
    pub minimum: u64,
    /// Maximum tokens of that budget.
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
    /// Instructions and context as they were last given, wherever they stood.
    Context,
    UserMessages,
    /// The kept user messages but the last.
    OlderUserMessages,
    LastUserMessage,
    Summary,
    /// The model's acknowledgement, always.
    Ack(String),
    /// The same, but only where a prompt follows: APIs would merge the prompt into the summary.
    AckPrompt(String),
    /// A message in the user's place, marked as the client's: this.
    Marker(String),
    /// The client's "go on", in the user's place.
    Continue(String),
    /// The last prompt once more, as new, its media as text.
    Replay,
    /// Text of the summarised part put back.
    Restore(Restore),
    /// The kept end of the history.
    Tail,
}

/// Text of the summarised part that is put back, in a message of the client's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Restore {
    pub what: Restored,
    /// Line before each; `{name}` is filled in.
    pub title: String,
    /// Maximum number, the newest first.
    pub count: usize,
    /// Tokens of each; what is larger is only named, unless [`cut`](Self::cut).
    pub each: u64,
    pub total: u64,
    /// What is larger keeps its beginning.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub cut: bool,
}

/// What is put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Restored {
    /// Files that were read and not changed since.
    Files,
    /// The plan as it was last written.
    Plan,
    /// The outputs of these tools.
    Outputs(Vec<String>),
}

/// Whose message the summary is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SummaryRole {
    #[default]
    User,
    Assistant,
}
