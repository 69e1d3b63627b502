//! What commands about a session have in common: which session, and how it is counted.

use clap::Args;

use crate::config::Config;
use crate::engine::{Amount, Ask, SessionRef};
use crate::error::{Error, Kind, Result};
use crate::format::Format;
use crate::tokens::Tokenizer;

/// Which session, and how it is measured.
#[derive(Debug, Args)]
pub(super) struct Common {
    /// A session file, a session id, a handle, `current`, `latest`, or `-` for standard input
    pub session: Option<String>,
    /// How to compact: a profile's name or a .toml file
    #[arg(long, value_name = "NAME|FILE")]
    pub profile: Option<String>,
    /// The model to count for, instead of the session's
    #[arg(long)]
    pub model: Option<String>,
    /// The model's context window, in tokens
    #[arg(long, value_name = "TOKENS")]
    pub window: Option<u64>,
    /// Tokens of system prompt and tools of bare messages
    #[arg(long, value_name = "TOKENS")]
    pub overhead: Option<u64>,
    /// auto, o200k, cl100k, chars4, bytes4, gemini-cli, gemini-cli@0.61, …
    #[arg(long)]
    pub tokenizer: Option<String>,
    /// Only sessions of this agent
    #[arg(long)]
    pub agent: Option<String>,
    /// How the session is written down, instead of finding out
    #[arg(long)]
    pub format: Option<String>,
}

impl Common {
    /// The session that was named.
    pub(super) fn session(&self) -> SessionRef {
        self.session.clone().map_or(SessionRef::Unsaid, SessionRef::Named)
    }

    /// The format that was named.
    pub(super) fn format(&self) -> Result<Option<Format>> {
        self.format.as_deref().map(Format::named).transpose()
    }

    /// What is asked for, as far as all commands share it.
    pub(super) fn ask(&self, config: &Config) -> Result<Ask> {
        let name = self.profile.as_deref().unwrap_or(&config.profile);
        let mut ask = Ask::new(config.profile(name)?);
        ask.model = self.model.clone();
        ask.window = self.window;
        ask.overhead = self.overhead;
        ask.tokenizer = Tokenizer::named(self.tokenizer.as_deref().unwrap_or(&config.tokenizer))?;
        Ok(ask)
    }
}

/// `--as`: one of the four APIs.
pub(super) fn wire(name: Option<&str>) -> Result<Option<Format>> {
    let Some(name) = name else { return Ok(None) };
    let format = Format::named(name)?;
    if format.is_wire() {
        return Ok(Some(format));
    }
    let what = format!("--as: expected anthropic, openai-chat, openai-responses or gemini, found {name:?}");
    Err(Error::new(Kind::Arguments, what))
}

/// `--keep`, `--budget`, `--min-kept`.
pub(super) fn amount(option: &str, text: Option<&str>) -> Result<Option<Amount>> {
    let parse = |text| {
        Amount::parse(text)
            .map_err(|error| Error::new(Kind::Arguments, format!("{option}: {}", error.detail())))
    };
    text.map(parse).transpose()
}
