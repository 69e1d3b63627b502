//! `epitome split`.

use crate::engine::{self, Amount, Engine};
use crate::interfaces::cli::Screen;
use crate::interfaces::cli::common::Common;
use crate::report::size;
use clap::Args;
use history::error::Result;

#[derive(Debug, Args)]
pub struct SplitArgs {
    #[command(flatten)]
    common: Common,
    /// How much of the end to keep: tokens, or a share such as 30%
    #[arg(long, value_name = "SHARE|TOKENS", allow_hyphen_values = true)]
    keep: Option<Amount>,
}

pub(crate) fn run(engine: &Engine, arguments: &SplitArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let mut ask = arguments.common.ask(&engine.config)?;
    ask.options.keep = arguments.keep;
    let opened = arguments.common.open(engine)?;
    let answer = engine::split(engine, &opened, &ask);
    if screen.json(&answer)? {
        return Ok(0);
    }
    let paint = screen.paint;
    match answer.split {
        Some(at) => screen.line(&format!(
            "{} would cut before message {}",
            answer.profile,
            paint.strong(&at.to_string())
        ))?,
        None => screen.line(&format!("{} would not cut", answer.profile))?,
    }
    screen.line(&format!("  {}", answer.reason))?;
    let side = |it: crate::answers::Side| format!("{} messages, {} tokens", it.messages, size(it.tokens));
    screen.line(&format!("  compacted  {}", side(answer.compacted)))?;
    screen.line(&format!("  kept       {}", side(answer.kept)))?;
    let or = if answer.split.is_some() { "or" } else { "possible" };
    for it in &answer.alternatives {
        let what = format!(
            "  {or} before {} ({} tokens compacted): {}",
            it.split,
            size(it.compacted_tokens),
            it.what
        );
        screen.line(&paint.faint(&what))?;
    }
    Ok(0)
}
