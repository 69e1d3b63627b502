//! A caller's options: one struct for the command line, MCP, the library, and what is kept between two calls.
//!
//! To add an option, add a field with its attributes, and use it. The doc comment is the help text of the
//! command line. The `schemars` description costs a model tokens in every request, so it is empty where the
//! name says enough. `schemars(skip)` hides an option from MCP.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::config::{Choice, Override};
use crate::engine::MinKept;
use crate::engine::input::values::{field, tokens, window};
use crate::llm::run::{Sampling, Watch};
use compaction::plan::Cause;
use compaction::profile::{Profile, SummaryStyle};
use history::error::{Error, ErrorKind, Result};
use sessions::Format;
use tokens::Tokenizer;

/// A size: a number of tokens, or a share of the messages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    Tokens(u64),
    /// Share of the messages' tokens, 0 to 1.
    Share(f64),
}

impl FromStr for Amount {
    type Err = Error;

    /// Reads `4000`, `4k`, `1.5M`, `20%` or `0.2`.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = || {
            let what = format!("expected tokens (4000, 4k) or a share (20%, 0.2), found {text:?}");
            Error::new(ErrorKind::Arguments, what)
        };
        let outside = || {
            let what = format!("a share must be above 0% and at most 100%, found {text:?}");
            Error::new(ErrorKind::Arguments, what)
        };
        let text = text.trim();
        let share =
            |value: f64| (0.0 < value && value <= 1.0).then_some(Self::Share(value)).ok_or_else(outside);
        if let Some(percent) = text.strip_suffix('%') {
            return share(percent.trim().parse::<f64>().map_err(|_| wrong())? / 100.0);
        }
        if text.ends_with(['k', 'K', 'm', 'M']) {
            return tokens(text).ok().filter(|it| *it > 0).map(Self::Tokens).ok_or_else(wrong);
        }
        if let Ok(tokens) = text.parse::<u64>() {
            return if tokens > 0 { Ok(Self::Tokens(tokens)) } else { Err(wrong()) };
        }
        share(text.parse::<f64>().map_err(|_| wrong())?)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tokens(tokens) => write!(f, "{tokens}"),
            // `1` would be read back as one token.
            Self::Share(1.0) => f.write_str("100%"),
            Self::Share(share) => write!(f, "{share}"),
        }
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Amount {
    /// The size in tokens; `total` is what a share is of.
    pub fn of(self, total: u64) -> u64 {
        match self {
            Self::Tokens(tokens) => tokens,
            Self::Share(share) => (total as f64 * share).floor() as u64,
        }
    }
}

/// The values of `--style`, each with its help.
const STYLES: [(&str, &str); 3] = [
    ("brief", "Pinned facts, and one line for the rest"),
    ("detailed", "Everything that fits"),
    ("technical", "Files, commands, errors and identifiers first"),
];

/// The values of `--trigger`, each with its help.
const CAUSES: [(&str, &str); 3] = [
    ("manual", "The user asked for it"),
    ("auto", "The context filled up"),
    ("overflow", "The model refused the input as too long"),
];

/// Parses one of these values by its name in JSON.
fn one_of<T>(values: &'static [(&str, &str)]) -> impl TypedValueParser<Value = T>
where
    T: serde::de::DeserializeOwned + Clone + Send + Sync + 'static,
{
    let values = values.iter().map(|(name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).try_map(|it| serde_json::from_value(it.into()))
}

/// For which model is counted, and how.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, Args, JsonSchema)]
#[serde(default)]
pub struct Counting {
    /// Model to count for, instead of the session's
    #[arg(long)]
    #[serde(deserialize_with = "field::text")]
    #[schemars(with = "String", description = "")]
    pub model: Option<String>,
    /// The model's context window, in tokens
    #[arg(long, value_name = "TOKENS", value_parser = window, allow_hyphen_values = true)]
    #[serde(deserialize_with = "field::window")]
    #[schemars(with = "u64", description = "")]
    pub window: Option<u64>,
    /// Tokens of system prompt and tools, if the input contains only messages
    #[arg(long, value_name = "TOKENS", value_parser = tokens, allow_hyphen_values = true)]
    #[schemars(skip)]
    pub overhead: Option<u64>,
    /// How to count tokens: auto, o200k, cl100k, chars4, bytes4, gemini-cli, gemini-cli@0.61, …
    #[arg(long)]
    #[serde(deserialize_with = "field::parsed")]
    #[schemars(with = "String", description = "")]
    pub tokenizer: Option<Tokenizer>,
}

/// What decides about a compaction besides its profile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, Args, JsonSchema)]
#[serde(default)]
pub struct CompactOptions {
    /// Size of the messages after compaction: tokens, or percent of the current size
    #[arg(long, value_name = "TOKENS|PERCENT%", allow_hyphen_values = true)]
    #[serde(deserialize_with = "field::parsed")]
    #[schemars(with = "String", description = "Size after: 4000 or 20%.")]
    pub budget: Option<Amount>,
    /// How much of the end to keep verbatim: tokens, or a share such as 30%
    #[arg(long, value_name = "SHARE|TOKENS", allow_hyphen_values = true)]
    #[serde(deserialize_with = "field::parsed")]
    #[schemars(with = "String", description = "8000 or 30%.")]
    pub keep: Option<Amount>,
    /// What the summary should focus on
    #[arg(long, value_name = "TEXT")]
    #[serde(deserialize_with = "field::text")]
    #[schemars(with = "String", description = "Topic, or the next session's goal.")]
    pub focus: Option<String>,
    /// How detailed the summary is
    #[arg(long, value_parser = one_of::<SummaryStyle>(&STYLES), default_value = "detailed")]
    #[serde(deserialize_with = "field::parsed_or_default")]
    #[schemars(with = "String", description = "", extend("enum" = ["brief", "detailed", "technical"]))]
    pub style: SummaryStyle,
    /// A fact to keep verbatim; may be repeated
    #[arg(long, value_name = "TEXT")]
    #[serde(deserialize_with = "field::texts")]
    #[schemars(description = "Facts kept verbatim.")]
    pub pin: Vec<String>,
    /// Act only if the profile's own trigger, switches and cool-down allow it
    #[arg(long)]
    #[serde(deserialize_with = "field::flag")]
    #[schemars(description = "Only if due.")]
    pub auto: bool,
    /// Cause of the compaction; selects a profile's emergency steps [default: auto with --auto, else manual]
    #[arg(long, value_parser = one_of::<Cause>(&CAUSES))]
    #[schemars(skip)]
    pub trigger: Option<Cause>,
    /// Reject a result that keeps less than this share of the facts: 0.9, 90%, or per class U=0.95,F=0.9
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    #[serde(deserialize_with = "field::parsed")]
    #[schemars(with = "String", description = "")]
    pub min_kept: Option<MinKept>,
    /// Read files that the profile puts back from disk as they are now, instead of as the agent last read them
    #[arg(long)]
    #[schemars(skip)]
    pub files_from_disk: bool,
}

/// What decides about which outputs are cleared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, Args, JsonSchema)]
#[serde(default)]
pub struct PruneOptions {
    /// Keep the newest outputs, up to this many tokens
    #[arg(long = "protect", value_name = "TOKENS", value_parser = tokens)]
    #[serde(deserialize_with = "field::number")]
    #[schemars(with = "u64", description = "Newest to keep.")]
    pub protect_tokens: Option<u64>,
    /// Tools whose outputs to keep, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[serde(deserialize_with = "field::names")]
    #[schemars(description = "")]
    pub exclude_tools: Vec<String>,
    /// Only outputs of the calls with these ids, separated by commas
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    #[serde(deserialize_with = "field::names")]
    #[schemars(description = "Call ids.")]
    pub only: Vec<String>,
}

/// Where a result goes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum To {
    #[default]
    Plan,
    /// A file at that path, in the session's own format or as messages of [`Ask::messages_as`].
    File(std::path::PathBuf),
    Bytes,
    /// The session itself, so that its agent resumes from it.
    Session,
    Agent(crate::agents::AgentRef),
}

/// A caller's request: everything that decides the result. Stored as JSON between the two calls of a host-run
/// summary, and from a preview until it is applied.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ask {
    pub profile: Profile,
    pub counting: Counting,
    pub options: CompactOptions,
    pub prune: PruneOptions,
    /// Plain messages of this API instead of the session's own format.
    pub messages_as: Option<Format>,
    /// Tokens that the caller is about to send in addition.
    pub next: Option<u64>,
    pub to: To,
    #[serde(skip)]
    pub writer: Writer,
}

/// Who writes the summary and who watches. Never stored: valid for this call only.
#[derive(Debug, Clone, Default)]
pub struct Writer {
    /// A summary that is written already: no model is asked for one.
    pub written: Option<String>,
    pub summarizer: Choice,
    /// True if the user is the caller and may name any provider; otherwise only configured ones are allowed.
    pub trusted: bool,
    /// The provider's model and address, where the call names them.
    pub endpoint: Override,
    /// Dry run: no model is asked; its cost is reported instead.
    pub dry: bool,
    /// Receives progress while a model writes.
    pub watch: Watch,
    /// MCP sampling: the calling client's model can be asked directly, so that [`Choice::Host`] needs no
    /// second call.
    pub sampling: Option<Sampling>,
    /// Lets the user change the summary before it is used.
    pub edit: Option<Edit>,
}

/// Lets the user edit a summary.
#[derive(Clone)]
pub struct Edit(pub Arc<Editor>);

/// Takes a text and returns the edited one.
pub type Editor = dyn Fn(&str) -> Result<String> + Send + Sync;

impl fmt::Debug for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Edit")
    }
}

impl Ask {
    /// A request for this profile with default options.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            counting: Counting::default(),
            options: CompactOptions::default(),
            prune: PruneOptions::default(),
            messages_as: None,
            next: None,
            to: To::Plan,
            writer: Writer::default(),
        }
    }

    /// The same with another budget.
    pub fn with_budget(&self, budget: Amount) -> Self {
        let mut ask = self.clone();
        ask.options.budget = Some(budget);
        ask
    }

    /// The cause given, else `Auto` if it obeys the profile's trigger, else `Manual`.
    pub fn cause(&self) -> Cause {
        let unsaid = if self.options.auto { Cause::Auto } else { Cause::Manual };
        self.options.trigger.unwrap_or(unsaid)
    }

    pub fn tokenizer(&self) -> Tokenizer {
        self.counting.tokenizer.unwrap_or(Tokenizer::Auto)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_written_as_it_is_read() {
        for amount in [Amount::Tokens(1), Amount::Tokens(4000), Amount::Share(1.0), Amount::Share(0.07)] {
            assert_eq!(amount.to_string().parse::<Amount>().unwrap(), amount);
        }
        for (text, tokens) in [("4k", 4_000), ("0.5K", 500), ("1.5M", 1_500_000)] {
            assert_eq!(text.parse::<Amount>().unwrap(), Amount::Tokens(tokens));
        }
        for wrong in ["0k", "0.0001k", "-1k", "k", "xM"] {
            assert!(wrong.parse::<Amount>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_ask_is_kept_with_what_it_demands() {
        let options = CompactOptions {
            budget: Some(Amount::Share(0.25)),
            pin: vec!["a, b".to_owned()],
            min_kept: Some("0.9,U=1".parse().unwrap()),
            auto: true,
            files_from_disk: true,
            ..CompactOptions::default()
        };
        let profile = crate::config::profiles::built_in("codex").unwrap();
        let ask = Ask { options, next: Some(7), ..Ask::new(profile) };
        let mut kept = serde_json::to_value(&ask).unwrap();
        let read = |it: &serde_json::Value| serde_json::from_value::<Ask>(it.clone());
        let again = read(&kept).unwrap();
        assert_eq!((again.options, again.next), (ask.options, Some(7)));
        history::json::set(&mut kept["options"], "min_kept", "?=1");
        assert!(read(&kept).unwrap_err().to_string().contains("also per class"));
    }
}
