//! `epitome statusline`: the status line of Claude Code.

use std::io::IsTerminal;

use crate::agents::hooks::statusline;
use crate::answers::AdviceLevel;
use crate::config::Config;
use crate::engine::statusline::{StatusLine, status_line};
use crate::interfaces::cli::Screen;
use crate::report::size;
use history::error::Result;

/// Prints one line, or nothing if nothing is known: a status line must not show errors.
pub(crate) fn run(config: &Config, now: i64, screen: &mut Screen<'_>) -> Result<u8> {
    if std::io::stdin().is_terminal() {
        tracing::warn!(
            "statusline: expected Claude Code's JSON on standard input; `epitome install claude-code --statusline` sets it up"
        );
        return Ok(0);
    }
    let input = super::said_by_agent().and_then(|it| statusline::read(&it));
    let Some(status) = input.and_then(|it| status_line(config, &it, now)) else { return Ok(0) };
    if screen.json {
        screen.json_line(&status)?;
    } else {
        screen.line(&sentence(&status))?;
    }
    Ok(0)
}

fn sentence(status: &StatusLine) -> String {
    let (used, window) = (size(status.context), size(status.window));
    let mut parts = vec![format!("{:.0} % of the window ({used} of {window})", status.used_percent)];
    let after = status.after_percent.map(|it| format!("about {it:.0} %"));
    let urgent = match status.level {
        AdviceLevel::Room => None,
        AdviceLevel::Soon => Some("compact soon"),
        AdviceLevel::Now => Some("compact now"),
    };
    match (urgent, after) {
        (None, Some(after)) => parts.push(format!("compacted {after}")),
        (None, None) => {}
        (Some(urgent), Some(after)) => parts.push(format!("{urgent}: {after}")),
        (Some(urgent), None) => parts.push(urgent.to_owned()),
    }
    match (status.cache_warm, status.warm_minutes) {
        (Some(true), Some(minutes)) => parts.push(format!("cache warm for {minutes} min")),
        (Some(_), _) => parts.push("cache expired".to_owned()),
        (None, _) => {}
    }
    parts.join(" · ")
}
