//! `epitome hook`: what the agents' hooks call.

use std::io::Read;

use super::Screen;
use crate::agents::hooks::{self, Moment};
use crate::config::Config;
use crate::engine::Engine;
use crate::error::{Error, Kind, Result};

/// More than this an agent never says.
const MOST: u64 = 16 << 20;

/// Never fails: what an agent does must not depend on us. What went wrong is said on standard error.
pub(super) fn run(config: Config, now: i64, screen: &mut Screen<'_>) -> Result<u8> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MOST).read_to_end(&mut bytes);
    let Some(event) = read.ok().and_then(|_| hooks::read(&crate::json::mend(&bytes), config.agents.inside))
    else {
        return Ok(0);
    };
    if config.block_compaction && event.moment == Moment::BeforeCompaction {
        let what = "epitome: compaction is blocked by the configuration ([hooks] block-compaction); \
                    `epitome compact --apply` makes a compacted session to go on with";
        // Exit code 2 blocks, and shows this.
        return Err(Error::new(Kind::Refused, what));
    }
    let said = Engine::new(config, now).and_then(|engine| engine.hook(&event));
    match said {
        Ok(text) => {
            let answer = event.answer(&text);
            // An agent that does not read us is none of our business.
            let _ = screen.out.write_all(answer.as_bytes());
        }
        Err(error) => tracing::warn!("hook {}: {}", event.name, error.full()),
    }
    Ok(0)
}
