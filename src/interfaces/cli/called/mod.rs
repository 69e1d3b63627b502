//! Commands that agents call rather than people.

pub(super) mod hook;
pub(super) mod seat;
pub(super) mod serve;
pub(super) mod statusline;

use std::io::Read;

/// What an agent wrote to standard input; `None` if it cannot be read. No agent writes more than 16 MB.
fn said_by_agent() -> Option<String> {
    const MOST: u64 = 16 << 20;
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(MOST).read_to_end(&mut bytes).ok()?;
    Some(history::json::mend(&bytes).into_owned())
}
