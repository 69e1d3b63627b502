//! What a caller can ask for: one struct, for the command line, MCP, the library, and what is kept between two calls. A new
//! option is a field here, its use, and how each face reads it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::MinKept;
use crate::config::{Choice, Said};
use crate::llm::run::{Sampling, Watch};
use compaction::plan::Cause;
use compaction::profile::{Profile, Style};
use history::error::{Error, Kind, Result};
use sessions::Format;
use tokens::Tokenizer;

/// A size: so many tokens, or a share of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Amount {
    Tokens(u64),
    /// Share of the messages' tokens, 0 to 1.
    Share(f64),
}

impl Amount {
    /// Reads `4000`, `4k`, `20%` or `0.2`.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || {
            let what = format!("expected tokens (4000, 4k) or a share (20%, 0.2), found {text:?}");
            Error::new(Kind::Arguments, what)
        };
        let outside = || {
            let what = format!("a share must be above 0% and at most 100%, found {text:?}");
            Error::new(Kind::Arguments, what)
        };
        let text = text.trim();
        let share =
            |value: f64| (0.0 < value && value <= 1.0).then_some(Self::Share(value)).ok_or_else(outside);
        if let Some(percent) = text.strip_suffix('%') {
            return share(percent.trim().parse::<f64>().map_err(|_| wrong())? / 100.0);
        }
        if let Some(thousands) = text.strip_suffix(['k', 'K']) {
            let value: f64 = thousands.parse().map_err(|_| wrong())?;
            return if value > 0.0 { Ok(Self::Tokens((value * 1000.0) as u64)) } else { Err(wrong()) };
        }
        if let Ok(tokens) = text.parse::<u64>() {
            return if tokens > 0 { Ok(Self::Tokens(tokens)) } else { Err(wrong()) };
        }
        share(text.parse::<f64>().map_err(|_| wrong())?)
    }

    /// In tokens, of so many.
    pub fn of(self, total: u64) -> u64 {
        match self {
            Self::Tokens(tokens) => tokens,
            Self::Share(share) => (total as f64 * share).floor() as u64,
        }
    }
}

/// What is to be done with a result.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum To {
    #[default]
    Plan,
    /// A file of that path; in the session's own format, or as the messages that were asked for.
    File(std::path::PathBuf),
    /// The bytes are handed back.
    Bytes,
    /// The session itself, so that its agent resumes from it.
    Session,
    /// A new session of this agent.
    Agent(crate::agents::AgentRef),
}

/// What a caller asks for, in the words of interface.md. Between the two calls of a summary that the calling agent's model
/// writes, and from a preview to what applies it, it is kept as JSON: all that decides about the result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ask {
    pub profile: Profile,
    /// Instead of the session's model.
    pub model: Option<String>,
    /// Instead of the model's window, in tokens.
    pub window: Option<u64>,
    /// Tokens of system prompt and tools of bare messages.
    pub overhead: Option<u64>,
    pub tokenizer: Tokenizer,
    /// What the messages may have afterwards.
    pub budget: Option<Amount>,
    /// How much of the end stays.
    pub keep: Option<Amount>,
    /// What to look at.
    pub focus: Option<String>,
    pub style: Style,
    /// Facts to carry word for word.
    pub pins: Vec<String>,
    /// Obey the profile's own trigger.
    #[serde(default)]
    pub auto: bool,
    pub cause: Cause,
    /// Plain messages of this API instead of the session's own format.
    pub messages_as: Option<Format>,
    /// Refuse to keep less of the facts than this.
    #[serde(flatten)]
    pub min_kept: MinKept,
    /// Instead of the profile's protected tokens of newest outputs.
    pub protect: Option<u64>,
    /// Tools whose outputs stay.
    pub exclude_tools: Vec<String>,
    /// Only the outputs of these calls.
    pub only: Vec<String>,
    /// Tokens of what is about to be sent besides.
    pub next: Option<u64>,
    /// Where the result goes.
    pub to: To,
    /// A summary that is written already: nobody is asked for one.
    #[serde(skip)]
    pub written: Option<String>,
    /// Who writes the summary.
    #[serde(skip)]
    pub summarizer: Choice,
    /// The user asks, who may name any provider; otherwise only what the configuration names is asked.
    #[serde(skip)]
    pub trusted: bool,
    /// Where that is, where the call says so.
    #[serde(skip)]
    pub endpoint: Said,
    /// Nobody is asked: what it would cost is told instead.
    #[serde(skip)]
    pub dry: bool,
    /// Whoever watches while a model writes.
    #[serde(skip)]
    pub watch: Watch,
    /// The calling client's own model, where it can be asked right away: then [`Choice::Host`] needs no second call.
    #[serde(skip)]
    pub sampling: Option<Sampling>,
    /// Lets the user change the summary before it is used.
    #[serde(skip)]
    pub edit: Option<Edit>,
    /// Files that a profile puts back come from disk, where they lie below the session's project.
    #[serde(default)]
    pub from_disk: bool,
}

/// Gets a summary and gives back what the user made of it.
#[derive(Clone)]
pub struct Edit(pub Arc<Editor>);

/// Opens a text and gives back what became of it.
pub type Editor = dyn Fn(&str) -> Result<String> + Send + Sync;

impl std::fmt::Debug for Edit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Edit")
    }
}

impl Ask {
    /// By this profile, with nothing else asked for.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            model: None,
            window: None,
            overhead: None,
            tokenizer: Tokenizer::Auto,
            budget: None,
            keep: None,
            focus: None,
            style: Style::default(),
            pins: Vec::new(),
            auto: false,
            cause: Cause::Manual,
            messages_as: None,
            min_kept: MinKept::default(),
            protect: None,
            exclude_tools: Vec::new(),
            only: Vec::new(),
            next: None,
            to: To::Plan,
            written: None,
            summarizer: Choice::Offline,
            trusted: false,
            endpoint: Said::default(),
            dry: false,
            watch: Watch::default(),
            sampling: None,
            edit: None,
            from_disk: false,
        }
    }
}
