//! `epitome serve`.

use super::arguments::ServeArgs;
use crate::config::Config;
use crate::error::{Error, Kind, Result};
use crate::mcp;

pub(super) fn run(config: Config, arguments: &ServeArgs, now: Option<i64>) -> Result<u8> {
    match &arguments.http {
        None => mcp::serve_stdio(config, now)?,
        Some(_) => return Err(Error::new(Kind::Arguments, "--http is not there yet")),
    }
    Ok(0)
}
