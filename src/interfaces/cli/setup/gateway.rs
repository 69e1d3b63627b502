//! The parts of `install`, `uninstall` and `doctor` for Codex's gateway.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::agents::gateway as codex;
use crate::agents::install::FileChange;
use crate::config::Config;
use crate::interfaces::cli::Screen;
use crate::interfaces::gateway::rollouts;
use history::error::Result;

/// The base URL of `--gateway` without a value.
pub(crate) const DEFAULT: &str = "http://127.0.0.1:8765/v1";
/// Maximum time for a local gateway to answer a health check.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);

/// Adds the gateway's line to Codex's new settings.
pub(crate) fn put(settings: &mut FileChange, url: &str) -> Result<()> {
    let place = |error: history::error::Error| error.at_path(&settings.path);
    settings.after =
        Some(codex::with_gateway(settings.after.as_deref().unwrap_or_default(), url).map_err(place)?);
    Ok(())
}

/// Removes the gateway's line from Codex's settings. `made_file`: we created the file; remove it if empty.
pub(crate) fn take_out(config: &Config, changes: &mut Vec<FileChange>, made_file: bool) {
    let path = codex::settings(&config.agents);
    let at = changes.iter().position(|it| it.path == path);
    let at = at.unwrap_or_else(|| {
        let text = std::fs::read_to_string(&path).ok();
        changes.push(FileChange { path, before: text.clone(), after: text });
        changes.len() - 1
    });
    let without = changes[at].after.as_deref().map(codex::without_gateway);
    changes[at].after = without.filter(|it| !(made_file && it.trim().is_empty()));
}

/// What `install codex` prints about the gateway.
pub(crate) fn explanation(url: Option<&str>) -> Vec<String> {
    let Some(url) = url else {
        return vec![
            "Codex compacts by itself; only a gateway as its base URL can change that: `epitome install codex \
             --gateway` sets it".to_owned(),
        ];
    };
    let address = authority(url);
    let chatgpt = format!("http://{address}/backend-api/codex");
    vec![
        format!("Epitome answers /compact and automatic compaction while this runs: epitome serve --http {address} \
                 --upstream https://api.openai.com"),
        "without it, Codex cannot reach its model; `epitome doctor` checks it. To remove it: epitome install codex \
         --no-seat".to_owned(),
        format!("with a ChatGPT login (untested): --gateway {chatgpt}, and --upstream https://chatgpt.com"),
    ]
}

/// Replaces capsules in Codex's sessions by their summaries, and reports each session.
pub(crate) fn open_capsules(config: &Config, dry_run: bool, screen: &mut Screen<'_>) -> Result<()> {
    for session in rollouts::holding(&config.agents) {
        let path = session.path.display().to_string();
        let line = if dry_run {
            format!(
                "{path}  would be changed: its compactions, which no provider can read, are replaced by their \
                     summaries"
            )
        } else {
            match rollouts::open(&config.agents, &session, &config.data_dir, &config.owner) {
                Ok(count) => {
                    format!(
                        "{path}  changed: {count} compactions, which no provider can read, were replaced by \
                             their summaries"
                    )
                }
                Err(error) => format!("{path}  unchanged; resuming it needs the gateway: {}", error.full()),
            }
        };
        if screen.json {
            tracing::info!("{line}");
        } else {
            screen.line(&line)?;
        }
    }
    Ok(())
}

/// Checks the gateway that Codex's settings name: its description, or a problem and its remedy. `None` if
/// they name none.
pub(crate) fn probe(config: &Config) -> Option<Result<String, (String, String)>> {
    let settings = codex::settings(&config.agents);
    let url = codex::gateway(&std::fs::read_to_string(settings).ok()?)?;
    let address = authority(&url);
    match ask(&address) {
        Some(upstream) => Some(Ok(format!("{address} answers and forwards to {upstream}"))),
        None => Some(Err((
            format!(
                "Codex's base URL is our gateway at {address}, but no gateway answers there, so Codex cannot reach \
                 its model"
            ),
            format!(
                "epitome serve --http {address} --upstream https://api.openai.com, or epitome install codex --no-seat"
            ),
        ))),
    }
}

/// The host to which a gateway forwards, from its health check.
fn ask(address: &str) -> Option<String> {
    let to = address.to_socket_addrs().ok()?.next()?;
    let mut stream = TcpStream::connect_timeout(&to, CONNECT_TIMEOUT).ok()?;
    stream.set_read_timeout(Some(CONNECT_TIMEOUT)).ok()?;
    let request = format!("GET /health HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.take(4096).read_to_string(&mut answer).ok()?;
    let health: serde_json::Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
    health["gateway"].as_str().map(str::to_owned)
}

fn authority(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |it| it.1);
    rest.split('/').next().unwrap_or_default().to_owned()
}
