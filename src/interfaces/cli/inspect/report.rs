//! `epitome report`.

use crate::engine::{self, Amount, Engine};
use crate::interfaces::cli::Screen;
use crate::interfaces::cli::common::Common;
use clap::Args;
use history::error::Result;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ReportArgs {
    #[command(flatten)]
    common: Common,
    /// Size of the messages after compaction: tokens, or percent of the current size
    #[arg(long, value_name = "TOKENS|PERCENT%", allow_hyphen_values = true)]
    budget: Option<Amount>,
    /// File to write the page to (- for standard output)
    #[arg(long, short, value_name = "FILE.html", default_value = "epitome-report.html")]
    out: PathBuf,
}

pub(crate) fn run(engine: &Engine, arguments: &ReportArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let mut ask = arguments.common.ask(&engine.config)?;
    ask.options.budget = arguments.budget;
    let opened = arguments.common.open(engine)?;
    let html = engine::report(engine, &opened, &ask)?.html();
    if arguments.out.as_os_str() == "-" {
        return screen.exact(&mut html.as_bytes()).map(|()| 0);
    }
    crate::files::install(&arguments.out, html.as_bytes())?;
    let path = arguments.out.display().to_string();
    if !screen.json(&serde_json::json!({"output": path}))? {
        screen.note(&format!("written  {path}"))?;
    }
    Ok(0)
}
