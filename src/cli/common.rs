//! What commands about a session have in common: which session, and how it is counted.

use clap::Args;

use crate::agents::reach::quoted;
use crate::config::Config;
use crate::engine::{Amount, Ask, SessionRef};
use history::error::{Error, Kind, Result};
use sessions::Format;
use tokens::Tokenizer;

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
    #[arg(long, value_name = "TOKENS", value_parser = window, allow_hyphen_values = true)]
    pub window: Option<u64>,
    /// Tokens of system prompt and tools of bare messages
    #[arg(long, value_name = "TOKENS", value_parser = tokens, allow_hyphen_values = true)]
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

    /// Which profile and how it counts, as typed: for a command that is printed.
    pub(super) fn typed(&self) -> String {
        let tokens = |it: Option<u64>| it.map(|it| it.to_string());
        let options = [
            ("--profile", self.profile.clone()),
            ("--model", self.model.clone()),
            ("--window", tokens(self.window)),
            ("--overhead", tokens(self.overhead)),
            ("--tokenizer", self.tokenizer.clone()),
        ];
        let typed = options.into_iter().filter_map(|(name, it)| Some(format!(" {name} {}", quoted(&it?))));
        typed.collect()
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

/// A number of tokens: 200000, 200k, 1.5M.
pub(super) fn tokens(text: &str) -> std::result::Result<u64, String> {
    let (number, unit) = match text.trim().char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text.trim()[..at], 1e3),
        Some((at, 'm' | 'M')) => (&text.trim()[..at], 1e6),
        _ => (text.trim(), 1.0),
    };
    match number.parse::<f64>() {
        Ok(it) if it >= 0.0 && it * unit < 1e12 && (unit > 1.0 || it.fract() == 0.0) => {
            Ok((it * unit) as u64)
        }
        _ => Err("expected tokens, such as 200000, 200k or 1.5M".to_owned()),
    }
}

/// A window has room for something.
fn window(text: &str) -> std::result::Result<u64, String> {
    match tokens(text)? {
        0 => Err("expected tokens above 0, such as 200000, 200k or 1.5M".to_owned()),
        tokens => Ok(tokens),
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
