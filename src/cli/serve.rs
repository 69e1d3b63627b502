//! `epitome serve`.

use std::io::Write;

use super::arguments::ServeArgs;
use crate::config::Config;
use crate::mcp::{self, Http};
use history::error::Result;

pub(super) fn run(config: Config, arguments: &ServeArgs, now: Option<i64>) -> Result<u8> {
    match &arguments.http {
        None => mcp::serve_stdio(config, now)?,
        Some(address) => {
            let http = Http {
                address: address.clone(),
                token_file: arguments.token_file.clone(),
                roots: arguments.allow_root.clone(),
                hosts: arguments.allow_host.clone(),
                upstream: arguments.upstream.clone(),
            };
            mcp::serve_http(config, now, &http, |address| {
                // Standard output is for answers; who started us reads where we are on standard error.
                let _ = writeln!(std::io::stderr().lock(), "epitome: serving MCP on http://{address}/mcp");
            })?;
        }
    }
    Ok(0)
}
