//! The passes of a profile.

use serde::{Deserialize, Serialize};

use super::summary::{PromptFiles, SummarySpec};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    #[default]
    Always,
    /// When the threshold is passed, the user asked, or the model refused the input as too long.
    Due,
    /// When the threshold is still passed after the passes so far, or the user asked; not when the model
    /// refused the input as too long.
    Planned,
    /// Only when the model refused the input as too long.
    Overflow,
}

/// One step of a profile.
#[expect(clippy::large_enum_variant, reason = "a profile has a handful of them")]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Pass {
    /// Clears or shortens tool outputs.
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
    /// Skipped unless the user asks for a prune or a setting turns it on.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub off: bool,
    pub select: Select,
    /// Number of newest turns whose outputs are neither counted nor replaced.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub protect_turns: u32,
    /// Number of newest messages that are neither counted nor replaced.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub protect_messages: usize,
    /// What ends the scan, which goes from the newest message back.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub stop_at: Vec<ScanStop>,
    /// Tools whose outputs are never replaced (nor counted).
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub except_tools: Vec<String>,
    /// If not empty, only outputs of these tools are replaced.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub only_tools: Vec<String>,
    /// Outputs of calls that failed are never replaced (nor counted).
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub except_failed: bool,
    /// Measures an output's whole part with the profile's estimator, not only its text.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub whole_parts: bool,
    /// Only outputs with more characters than this (UTF-16 units).
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub longer_than: u64,
    /// Only if there are more candidate outputs than this, including those that stay.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub above: usize,
    /// Only if no message came for this many minutes.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub idle_minutes: u64,
    /// Nothing is replaced unless the outputs to replace have more tokens than this.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub minimum: u64,
    /// What takes an output's place.
    pub replace: Replace,
}

/// Which tool outputs a pass takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Select {
    /// Protects this many tokens of newest outputs; the output that crosses the limit is taken.
    Beyond(u64),
    /// Tokens for all outputs, newest first: each that does not fit into what is left is taken, and its
    /// replacement counts.
    Unfit(u64),
    /// Number of newest outputs that stay.
    AllButLast(usize),
    /// Maximum characters of the newest batch: its largest outputs are taken first, until it fits.
    Batch(u64),
    /// The same for every batch (consecutive messages with outputs).
    EachBatch(u64),
}

/// What ends a scan from the newest message back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScanStop {
    Summary,
    /// An output that was already cleared.
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
    /// Share of these characters at the beginning.
    pub head: f64,
    /// Text before. `{omitted}` is the number of characters left out; `{first}` and `{last}` stay.
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

/// Drops messages from the middle, never parting a call from its output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Snip {
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub when: When,
    /// Skipped unless a user's own profile turns it on.
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

/// Makes one line of each finished turn; a handle in the line brings the turn back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Collapse {
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub when: When,
    /// While it is on, the profile does not compact automatically.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub on: bool,
    /// Number of newest turns that stay as they are.
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
    /// What the summary message ends with.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub after: String,
    /// Whose message the summary is.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub role: SummaryRole,
    /// If the summary is refused, the passes before it are undone, and a run by hand does nothing at all.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub or_nothing: bool,
    /// Skipped in automatic runs after a failed compaction.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub not_after_failure: bool,
    /// A stored summary that covers what would be summarized replaces it, if it has at most this many tokens.
    pub snapshot: Option<u64>,
    /// Which messages the summarizing model is not shown if they are too long for it.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub too_long: TooLong,
    pub keep: Keep,
    /// The new history, in order.
    pub layout: Vec<Slot>,
    /// The layout of an automatic run; `None`: [`layout`](Self::layout).
    pub layout_auto: Option<Vec<Slot>>,
    /// The layout after the model refused the input; `None`: that of an automatic run.
    pub layout_overflow: Option<Vec<Slot>>,
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub prompts: PromptFiles,
    pub summary: SummarySpec,
}

/// Which messages the summarizing model is not shown if they are too long for it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum TooLong {
    /// None: the summary fails.
    #[default]
    Fails,
    /// The oldest units, one after the other, until the remaining ones fit.
    Oldest,
    /// The model's oldest rounds, this share of them at a time.
    Rounds(Rounds),
}

/// How rounds (an answer of the model and what follows it) are left out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rounds {
    /// Share of the rounds left out at a time.
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
    /// Number of newest messages; more where that would part a call from its output.
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
    /// Maximum number of turns; `None`: all that fit.
    pub count: Option<usize>,
    /// Maximum tokens, instead of share, minimum and maximum.
    pub tokens: Option<u64>,
}

/// The newest user messages within a budget; the one that crosses it is cut in the middle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct UserMessages {
    /// Maximum tokens, by the profile's own estimator.
    pub tokens: u64,
    /// All as one text with blank lines between, which goes into `before`; cut as a whole.
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub joined: bool,
    /// How the middle is cut out.
    #[serde(default)]
    pub cut: Cut,
    /// Not kept: messages that start and end with these two texts, ignoring case and outer white space.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fences: Vec<(String, String)>,
    /// Not kept: messages that start with one of these (earlier summaries in the user's role).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summaries: Vec<String>,
}

/// What marks the place where the middle of a text was cut out. Four bytes are a token.
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

/// How a budget is divided.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Budget {
    /// The default budget: share of the messages' tokens before any pass, at most half of those after.
    pub share: f64,
    /// Minimum tokens of the default budget.
    pub minimum: u64,
    /// Maximum tokens of the default budget.
    pub maximum: u64,
    /// Share of the budget that the summary may take.
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
    /// The kept user messages except the last.
    OlderUserMessages,
    LastUserMessage,
    Summary,
    /// The model's acknowledgement, always.
    Ack(String),
    /// The same, but only where a prompt follows: APIs would merge the prompt into the summary otherwise.
    AckPrompt(String),
    /// This text as a message in the user's role, marked as the client's.
    Marker(String),
    /// The client's "go on", in the user's role.
    Continue(String),
    /// The last prompt again as a new message, its media replaced by text.
    Replay,
    /// Text of the summarized part, put back.
    Restore(Restore),
    /// The kept tail of the history.
    Tail,
}

/// Text of the summarized part that is put back, in a message marked as the client's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Restore {
    pub what: Restored,
    /// Line before each; `{name}` is filled in.
    pub title: String,
    /// Maximum number of texts, newest first.
    pub count: usize,
    /// Maximum tokens of each; a larger one is only named, unless [`cut`](Self::cut).
    pub each: u64,
    pub total: u64,
    /// A larger text keeps its beginning.
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
