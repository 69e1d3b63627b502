//! `epitome export` and `epitome import`.

use std::path::PathBuf;

use clap::Args;

use super::handoff::agent;
use crate::agents::write_back::shell::quoted;
use crate::engine::transfer::{ImportTo, export, import};
use crate::engine::{self, Engine, SessionRef};
use crate::interfaces::cli::Screen;
use crate::interfaces::cli::paint::bytes;
use history::error::Result;

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// A session file, a session id, `current` or `latest`
    session: String,
    /// File to write, usually named *.epitome
    #[arg(long, short, value_name = "FILE")]
    out: PathBuf,
    /// Only sessions of this agent
    #[arg(long)]
    agent: Option<String>,
}

#[derive(Debug, Args)]
pub struct ImportArgs {
    /// File that `export` wrote, or an agent's session file
    file: PathBuf,
    /// Target agent [default: the session's own]
    #[arg(long)]
    agent: Option<String>,
    /// Import into this directory, instead of the one in which the session was started
    #[arg(long)]
    here: bool,
}

pub(crate) fn run_export(engine: &Engine, arguments: &ExportArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let named = SessionRef::Named(arguments.session.clone());
    let opened = engine::open(engine, &named, None, arguments.agent.as_deref())?;
    let answer = export(engine, &opened, &arguments.out)?;
    if screen.json(&answer)? {
        return Ok(0);
    }
    let archived = match answer.compactions {
        0 => String::new(),
        1 => format!(", 1 compaction with {} originals", answer.originals),
        many => format!(", {many} compactions with {} originals", answer.originals),
    };
    screen.line(&format!(
        "{} {}: {}, session {}{archived}",
        screen.paint.good("exported"),
        answer.output,
        bytes(answer.bytes),
        answer.session_id
    ))?;
    let import = format!("epitome import {} --here", quoted(&answer.output));
    screen.note(&format!(
        "import   {}  {}",
        screen.paint.strong(&import),
        screen.paint.faint("# in its new directory")
    ))?;
    Ok(0)
}

pub(crate) fn run_import(engine: &Engine, arguments: &ImportArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let to = ImportTo {
        agent: arguments.agent.as_deref().map(|it| agent("--agent", it)).transpose()?,
        here: arguments.here,
    };
    let answer = import(engine, &arguments.file, &to)?;
    screen.answer(&answer, |answer, screen| {
        screen.line(&format!("{} {}", screen.paint.good("imported"), answer.output))?;
        screen.warnings(&answer.warnings)?;
        screen.line(&format!("resume   {}", screen.paint.strong(&answer.resume)))
    })
}
