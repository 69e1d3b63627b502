//! `epitome push`.

use clap::Args;

use crate::engine::{Engine, push};
use crate::interfaces::cli::Screen;
use crate::interfaces::cli::paint::bytes;
use crate::report::counted;
use history::error::Result;

#[derive(Debug, Args)]
pub struct PushArgs {
    /// Only this archived session: its id or a handle
    session: Option<String>,
}

pub(crate) fn run(engine: &Engine, arguments: &PushArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let answer = push::push(engine, arguments.session.as_deref())?;
    if !screen.json(&answer)? {
        let waiting =
            if answer.waiting > 0 { format!(", {} waiting", answer.waiting) } else { String::new() };
        screen.note(&format!(
            "{} pushed ({}){waiting}",
            counted(answer.pushed, "session"),
            bytes(answer.bytes)
        ))?;
        for it in answer.refused.iter().chain(&answer.away) {
            screen.line(&format!("{} {it}", screen.paint.warn("!")))?;
        }
    }
    Ok(u8::from(!answer.refused.is_empty() || answer.away.is_some()))
}
