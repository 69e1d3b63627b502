//! `epitome hook`: what the agents' hooks call.

use std::path::Path;
use std::time::Duration;

use crate::agents::hooks::{self, HookMoment};
use crate::config::Config;
use crate::engine::{self, Engine};
use crate::interfaces::cli::Screen;
use crate::store::Face;
use history::error::{Error, ErrorKind, Result};

/// Maximum run time of a hook, which the agent waits for; the installed timeout is 10 s.
const DEADLINE: Duration = Duration::from_secs(5);
/// Maximum time to report a timeout on standard error, which may block if nobody reads it.
const LAST_WORD: Duration = Duration::from_millis(100);

/// Ends the process at the deadline, without output to the agent. Must be called first. Writes are atomic, so
/// the process may end anywhere.
pub fn end_in_time() {
    let watch = || {
        std::thread::sleep(DEADLINE);
        let late = || tracing::warn!("hook: not done after {} s; ended", DEADLINE.as_secs());
        let _ = std::thread::Builder::new().spawn(late);
        std::thread::sleep(LAST_WORD);
        std::process::exit(0)
    };
    // If no thread can be started, only the agent's timeout remains.
    let _ = std::thread::Builder::new().spawn(watch);
}

/// Fails only to block a compaction, if the configuration says so. Other errors are only logged: the agent
/// must work without us.
pub(crate) fn run(config: Config, now: i64, store: Option<&Path>, screen: &mut Screen<'_>) -> Result<u8> {
    let event = super::said_by_agent().and_then(|it| hooks::read(&it, config.agents.inside));
    let Some(event) = event else { return Ok(0) };
    if config.hooks.block_compaction && event.moment == HookMoment::BeforeCompaction {
        let what = "epitome: compaction is blocked by the configuration ([hooks] block-compaction); \
                    to continue in a compacted session, run `epitome compact --apply`";
        // Becomes exit code 2, which blocks the compaction and shows this message.
        return Err(Error::new(ErrorKind::Refused, what));
    }
    let said = Engine::at(config.clone(), now).and_then(|engine| {
        if matches!(event.moment, HookMoment::Start | HookMoment::End)
            && let Err(error) = crate::interfaces::cli::archive::keep::later(&engine, &config, store)
        {
            tracing::warn!("hook {}: {}", event.name, error.full());
        }
        engine::hook(&Engine { face: Face::Hook, ..engine }, &event)
    });
    match said {
        Ok(text) => {
            let answer = event.answer(&text);
            // Ignored if the agent does not read the output.
            let _ = screen.out.write_all(answer.as_bytes());
        }
        Err(error) => tracing::warn!("hook {}: {}", event.name, error.full()),
    }
    Ok(0)
}
