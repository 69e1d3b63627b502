//! `epitome apply`.

use std::path::PathBuf;

use clap::Args;

use crate::engine::{self, Engine, To};
use crate::interfaces::cli::Screen;
use history::error::Result;

#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// The handle that the preview printed; valid for 24 hours
    handle: String,
    /// Write the result to this file instead of the session
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(engine: &Engine, arguments: &ApplyArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let to = arguments.out.clone().map_or(To::Session, To::File);
    let (compacted, _) = engine::apply_preview(engine, &arguments.handle, to)?;
    super::compact::report(&compacted.answer(), screen)
}
