//! `epitome handoff`.

use clap::Args;

use crate::agents::{self, AgentRef};
use crate::answers::HandoffAnswer;
use crate::engine::{self, Engine};
use crate::interfaces::cli::Screen;
use crate::interfaces::cli::common::Common;
use history::error::{Error, ErrorKind, Result};
use tokens::Estimator;

#[derive(Debug, Args)]
pub struct HandoffArgs {
    #[command(flatten)]
    common: Common,
    /// Goal of the new session
    #[arg(long, value_name = "TEXT")]
    goal: String,
    /// Target agent: claude-code, codex, gemini-cli, opencode [default: the session's own]
    #[arg(long = "as", value_name = "AGENT", requires = "apply")]
    to: Option<String>,
    /// File to write the brief to, instead of standard output
    #[arg(long, short, value_name = "FILE", conflicts_with = "apply")]
    out: Option<std::path::PathBuf>,
    /// Make a new session that starts with the brief
    #[arg(long)]
    apply: bool,
}

pub(crate) fn run(engine: &Engine, arguments: &HandoffArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let common = &arguments.common;
    let opened = common.open(engine)?;
    let brief = engine::brief(engine, &opened, &arguments.goal)?;
    let answer = match arguments.apply {
        true => {
            let to = arguments.to.as_deref().map(|it| agent("--as", it)).transpose()?;
            engine::hand_off(engine, &opened, &brief, to)?
        }
        false => HandoffAnswer {
            tokens: Estimator::O200k.text(&brief),
            brief,
            session_id: None,
            output: arguments.out.as_ref().map(|it| it.display().to_string()),
            resume: None,
            warnings: Vec::new(),
        },
    };
    if let Some(path) = &arguments.out {
        crate::files::install(path, answer.brief.as_bytes())?;
    }
    if screen.json(&answer)? {
        return Ok(0);
    }
    match (&answer.resume, &arguments.out) {
        (Some(resume), _) => screen.line(&format!("resume   {}", screen.paint.strong(resume)))?,
        (None, Some(path)) => {
            screen.note(&format!("{} tokens written to {}", answer.tokens, path.display()))?;
        }
        (None, None) => screen.block(answer.brief.trim_end())?,
    }
    Ok(0)
}

/// The agent with that name; `option` is named in the error.
pub(crate) fn agent(option: &str, name: &str) -> Result<AgentRef> {
    agents::named(name).ok_or_else(|| {
        let what = format!("{option}: expected {}, found {name:?}", agents::names(|_| true));
        Error::new(ErrorKind::Arguments, what)
    })
}
