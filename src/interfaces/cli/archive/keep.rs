//! `epitome sessions --keep`, and the background process that runs it for hooks.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::agents::FoundSession;
use crate::config::Config;
use crate::engine::{Engine, keep, push};
use crate::interfaces::cli::Screen;
use crate::interfaces::cli::paint::bytes;
use crate::report::counted;
use history::error::{Error, ErrorKind, Result};

/// Minimum milliseconds between two background processes: OpenCode reports each message as a start.
const SELDOM: i64 = 60_000;

pub(crate) fn run(engine: &Engine, found: &[FoundSession], screen: &mut Screen<'_>) -> Result<u8> {
    if !engine.store.keeps() {
        let what = "archiving is switched off in the configuration (persistence = \"none\")";
        return Err(Error::new(ErrorKind::Refused, what));
    }
    let answer = keep::keep(engine, found);
    // What cannot be pushed now is pushed the next time.
    let pushed = engine.config.vault.as_ref().map(|_| push::push(engine, None)).transpose();
    if !screen.json(&answer)? {
        let (kept, size) = (counted(answer.kept, "session"), bytes(answer.bytes));
        screen.note(&format!("{kept} archived ({size}), {} unchanged", answer.unchanged))?;
        for it in &answer.let_go {
            screen.note(&format!("deleted {it} (max-age or max-bytes)"))?;
        }
        for it in &answer.failed {
            screen.line(&format!("{} {it}", screen.paint.warn("!")))?;
        }
    }
    match pushed {
        Ok(Some(it)) if it.away.is_some() || !it.refused.is_empty() => {
            for it in it.away.iter().chain(&it.refused) {
                tracing::warn!("{it}");
            }
        }
        Ok(_) => {}
        Err(error) => tracing::warn!("{}", error.full()),
    }
    Ok(u8::from(!answer.failed.is_empty()))
}

/// Archives in a background process, because the agent waits for its hook and a session may be large. What
/// fails is done the next time.
pub(crate) fn later(engine: &Engine, config: &Config, store: Option<&Path>) -> Result<()> {
    const MARK: &str = "keeping";
    let scope = engine.shared();
    let lately = |it: crate::store::Mark| engine.now.saturating_sub(it.at) < SELDOM;
    if !config.keep_sessions
        || !engine.store.keeps()
        || engine.store.marked(&scope, MARK)?.is_some_and(lately)
    {
        return Ok(());
    }
    engine.store.mark(&scope, MARK, "", engine.now)?;
    let program = std::env::current_exe()
        .map_err(|error| Error::new(ErrorKind::Io, "looking for this program").because(error))?;
    let mut command = Command::new(program);
    command
        .args(["sessions", "--keep", "--quiet"])
        .args(store.map(|it| ["--store".as_ref(), it.as_os_str()]).into_iter().flatten());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Its own process group, so that it survives when the agent's processes are killed.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
        .spawn()
        .map(drop)
        .map_err(|error| Error::new(ErrorKind::Io, "starting this program").because(error))
}
