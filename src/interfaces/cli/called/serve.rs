//! `epitome serve`.

use clap::Args;
use std::io::Write;
use std::path::PathBuf;

use crate::config::Config;
use crate::interfaces::mcp::{self, HttpOptions};
use crate::store::StoreAt;
use history::error::{Error, ErrorKind, Result};

#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Serve over standard input and output (the default)
    #[arg(long, conflicts_with = "http")]
    stdio: bool,
    /// Serve over HTTP on this address (127.0.0.1:8765): /mcp, and /sse for old clients; terminate TLS in a proxy
    #[arg(long, value_name = "ADDR")]
    pub(crate) http: Option<String>,
    /// Token file, one name:token per line, reloaded when it changes; required if other machines can connect
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
    #[allow(rustdoc::bare_urls, reason = "the help shows it as it is typed")]
    /// Act as a gateway: answer compaction requests and forward all others unchanged to this provider
    /// (https://api.openai.com); set this server's address as the agent's base URL
    #[arg(long, value_name = "URL", requires = "http")]
    upstream: Option<String>,
    /// Object storage of a team's store (--store postgres://…): s3://BUCKET/PREFIX, configured by the AWS_*
    /// variables, or file:///DIRECTORY
    #[arg(long, value_name = "URL", requires = "http")]
    blobs: Option<String>,
    /// Folder below which clients may read sessions; may be repeated
    #[arg(long, value_name = "DIR", requires = "http")]
    allow_root: Vec<PathBuf>,
    /// Host name to accept in requests, besides this machine's own; may be repeated
    #[arg(long, value_name = "HOST", requires = "http")]
    allow_host: Vec<String>,
}

pub(crate) fn run(mut config: Config, arguments: &ServeArgs, now: Option<i64>) -> Result<u8> {
    match (&arguments.blobs, &mut config.store) {
        (None, _) => {}
        (Some(blobs), StoreAt::Team(team)) => team.blobs.clone_from(blobs),
        (Some(_), StoreAt::Path(_) | StoreAt::Memory | StoreAt::Nowhere) => {
            let what = "--blobs: expected a team's store (--store postgres://…), found a local one";
            return Err(Error::new(ErrorKind::Arguments, what));
        }
    }
    match &arguments.http {
        None => mcp::serve_stdio(config, now)?,
        Some(address) => {
            let http = HttpOptions {
                address: address.clone(),
                token_file: arguments.token_file.clone(),
                roots: arguments.allow_root.clone(),
                hosts: arguments.allow_host.clone(),
                upstream: arguments.upstream.clone(),
            };
            mcp::serve_http(config, now, &http, |address| {
                // Standard output is for results; the address goes to standard error.
                let _ = writeln!(std::io::stderr().lock(), "epitome: serving MCP on http://{address}/mcp");
            })?;
        }
    }
    Ok(0)
}
