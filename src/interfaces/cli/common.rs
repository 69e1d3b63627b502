//! What commands about a session share: which session, and how tokens are counted.

use std::io::Read;

use clap::Args;

use crate::agents::write_back::shell::quoted;
use crate::answers::LostInfo;
use crate::config::Config;
use crate::engine::{self, Ask, Counting, Engine, Opened, SessionRef, words};
use crate::interfaces::cli::Screen;
use history::error::{Error, ErrorKind, Result};
use sessions::Format;

/// Which session, and how it is measured.
#[derive(Debug, Args)]
pub struct Common {
    /// A session file, a session id, a handle, `current`, `latest`, or `-` for standard input
    pub session: Option<String>,
    /// Profile to compact by: a name or a .toml file [default: as configured, else epitome]
    #[arg(long, value_name = "NAME|FILE")]
    pub profile: Option<String>,
    #[command(flatten)]
    pub counting: Counting,
    /// Only sessions of this agent
    #[arg(long)]
    pub agent: Option<String>,
    /// Format of the session [default: detected]
    #[arg(long)]
    pub format: Option<String>,
}

impl Common {
    pub(super) fn session(&self) -> SessionRef {
        self.session.clone().map_or(SessionRef::Unnamed, SessionRef::Named)
    }

    /// The profile and counting options as typed, for a command that is printed.
    pub(super) fn typed(&self) -> String {
        let counting = &self.counting;
        let tokens = |it: Option<u64>| it.map(|it| it.to_string());
        let options = [
            ("--profile", self.profile.clone()),
            ("--model", counting.model.clone()),
            ("--window", tokens(counting.window)),
            ("--overhead", tokens(counting.overhead)),
            ("--tokenizer", counting.tokenizer.map(|it| it.name().to_owned())),
        ];
        let typed = options.into_iter().filter_map(|(name, it)| Some(format!(" {name} {}", quoted(&it?))));
        typed.collect()
    }

    pub(super) fn format(&self) -> Result<Option<Format>> {
        self.format.as_deref().map(Format::named).transpose()
    }

    pub(super) fn open(&self, engine: &Engine) -> Result<Opened> {
        engine::open(engine, &self.session(), self.format()?, self.agent.as_deref())
    }

    /// The part of an [`Ask`] that all commands share.
    pub(super) fn ask(&self, config: &Config) -> Result<Ask> {
        let name = self.profile.as_deref().unwrap_or(&config.profile);
        let mut ask = Ask::new(config.profile(name)?);
        ask.counting = self.counting.clone();
        ask.counting.tokenizer.get_or_insert(config.tokenizer);
        Ok(ask)
    }
}

/// Parses `--as`: one of the four APIs.
pub(super) fn wire(name: Option<&str>) -> Result<Option<Format>> {
    let Some(name) = name else { return Ok(None) };
    let format = Format::named(name).ok().filter(|it| it.is_wire());
    if format.is_some() {
        return Ok(format);
    }
    let what = format!("--as: expected anthropic, openai-chat, openai-responses or gemini, found {name:?}");
    Err(Error::new(ErrorKind::Arguments, what))
}

/// The text of a file, or of standard input (`-`). `doing`: the start of an error message.
pub(super) fn read_text_or_stdin(name: &str, doing: &str) -> Result<String> {
    let mut text = String::new();
    let read = match name {
        "-" => std::io::stdin().read_to_string(&mut text).map(drop),
        path => std::fs::read_to_string(path).map(|it| text = it),
    };
    read.map_err(|error| Error::new(ErrorKind::Input, doing).at(name, None).because(error))?;
    Ok(text)
}

/// Shows how to undo what was written, and how to resume.
pub(super) fn show_undo_and_resume(
    handle: Option<&str>,
    resume: &str,
    screen: &mut Screen<'_>,
) -> Result<()> {
    screen.note(&format!("undo     epitome undo {}", handle.unwrap_or("last")))?;
    screen.line(&format!("resume   {}", screen.paint.strong(resume)))
}

/// An RFC 3339 time as `2026-01-31 12:00`.
pub(super) fn minute(time: &str) -> String {
    time.get(..16).unwrap_or_default().replace('T', " ")
}

/// One line about a lost fact.
pub(super) fn lost_line(lost: &LostInfo) -> String {
    let at: Vec<String> = lost.messages.iter().rev().take(3).rev().map(|it| format!("#{it}")).collect();
    let back = if lost.recoverable { "" } else { " (gone)" };
    format!("  {:<20}{} [{}]{back}", lost.class, words(&lost.text, 100), at.join(" "))
}
