//! `epitome prune`.

use crate::engine::{self, Engine, PruneOptions, To};
use crate::interfaces::cli::Screen;
use crate::interfaces::cli::common::{Common, show_undo_and_resume, wire};
use crate::report::size;
use clap::Args;
use history::error::Result;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct PruneArgs {
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    options: PruneOptions,
    /// Act only if the profile's own trigger, switches and cool-down allow it
    #[arg(long)]
    auto: bool,
    /// Write plain messages of this API instead of the session's own format
    #[arg(long = "as", value_name = "FORMAT")]
    messages_as: Option<String>,
    /// Write the result to this file
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Change the session itself, so that its agent continues from the result; the originals are archived
    #[arg(long, conflicts_with_all = ["out", "messages_as"])]
    apply: bool,
}

pub(crate) fn run(engine: &Engine, arguments: &PruneArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let mut ask = arguments.common.ask(&engine.config)?;
    ask.prune.clone_from(&arguments.options);
    ask.options.auto = arguments.auto;
    ask.messages_as = wire(arguments.messages_as.as_deref())?;
    if let Some(path) = &arguments.out {
        ask.to = To::File(path.clone());
    }
    if arguments.apply {
        ask.to = To::Session;
    }
    let opened = arguments.common.open(engine)?;
    let answer = engine::prune(engine, &opened, &ask)?;
    if screen.json(&answer)? {
        return Ok(0);
    }
    let paint = screen.paint;
    if answer.pruned.is_empty() {
        return screen.line(&answer.reason).map(|()| 0);
    }
    let saved = answer.tokens_before.saturating_sub(answer.tokens_after);
    screen.line(&format!(
        "{} → {} tokens: {} outputs, {} tokens",
        size(answer.tokens_before),
        paint.strong(&size(answer.tokens_after)),
        answer.pruned.len(),
        paint.good(&format!("−{}", size(saved)))
    ))?;
    let rows = answer.pruned.iter().map(|it| {
        let cells =
            [format!("  #{}", it.message), it.tool.clone(), size(it.tokens_before), size(it.tokens_after)];
        [cells.to_vec(), vec![it.handle.clone()]].concat()
    });
    screen.table(&["  message", "tool", "before", "after", "handle"], rows, &[])?;
    if let Some(resume) = &answer.resume {
        screen.note(&format!("{} The originals are archived (epitome recall HANDLE).", answer.next.what))?;
        return show_undo_and_resume(answer.handle.as_deref(), resume, screen).map(|()| 0);
    }
    match &answer.output {
        Some(path) => {
            screen.note(&format!("written to {path}; the originals are archived (epitome recall HANDLE)"))?;
        }
        None => screen.note("nothing was written; --apply changes the session, --out FILE writes a copy")?,
    }
    Ok(0)
}
