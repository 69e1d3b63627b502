//! `epitome statusline`: the status line of Claude Code.

use std::io::{IsTerminal, Read};

use super::Screen;
use crate::agents::statusline;
use crate::config::Config;
use crate::engine::statusline::status_line;
use history::error::Result;

/// More than this no agent writes.
const MOST: u64 = 16 << 20;

/// One line, or nothing where nothing is known: a status line must not show errors.
pub(super) fn run(config: &Config, now: i64, screen: &mut Screen<'_>) -> Result<u8> {
    if std::io::stdin().is_terminal() {
        tracing::warn!(
            "statusline: expected Claude Code's JSON on standard input; `epitome install claude-code --statusline` sets it up"
        );
        return Ok(0);
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MOST).read_to_end(&mut bytes);
    let input = read.ok().and_then(|_| statusline::read(&history::json::mend(&bytes)));
    let Some(status) = input.and_then(|it| status_line(config, &it, now)) else { return Ok(0) };
    if screen.json {
        screen.json_line(&serde_json::to_value(&status).unwrap_or_default())?;
    } else {
        screen.line(&status.sentence())?;
    }
    Ok(0)
}
