//! The fingerprint of what was written, by which an undo knows whether it is still there.

use serde::{Deserialize, Serialize};

use super::target::Location;
use crate::agents::write_back::Placement;
use crate::engine::Opened;
use crate::store::Digest;
use history::error::{Error, ErrorKind, Hint, Result};
use sessions::{Piece, Source as _, Written};

/// What an undo needs to know of what was written; the fingerprint in [`Applied`](crate::store::Applied).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct WrittenFingerprint {
    /// Bytes of the file.
    pub(crate) len: u64,
    /// Their SHA-256.
    pub(crate) digest: String,
    /// Live messages in it.
    pub(crate) messages: usize,
    /// Of these, how many came after the session was archived.
    pub(crate) grown: usize,
    /// Ids of rows that were added to a database, or changed in it.
    #[serde(default)]
    pub(crate) rows: Vec<String>,
    /// Byte ranges that were overwritten in place. If the process was killed meanwhile, these may be partly
    /// written; everything around them is unchanged.
    #[serde(default)]
    pub(crate) over: Vec<(u64, u64)>,
}

impl WrittenFingerprint {
    /// How many of the live messages were archived.
    pub(crate) fn archived(&self) -> usize {
        self.messages.saturating_sub(self.grown)
    }
}

pub(super) fn fingerprint(
    place: &Location,
    placement: Placement,
    current: &Opened,
    written: &Written,
    messages: usize,
    added: usize,
) -> Result<WrittenFingerprint> {
    let content = written.over(&*current.source);
    let rows = match place {
        Location::Rows(database, ..) => {
            let (old, new) = (&*current.source, &content);
            database.differing(&old.whole()?, &new.whole()?)
        }
        Location::File(_) => Vec::new(),
    };
    let over = match placement {
        Placement::InPlace => {
            edits(written, current)?.iter().map(|(at, it)| (*at, at + it.len() as u64)).collect()
        }
        Placement::Replace | Placement::NewFile | Placement::Database => Vec::new(),
    };
    let digest = Digest::of_source(&content, content.len())?.to_string();
    Ok(WrittenFingerprint { len: content.len(), digest, messages, grown: added, rows, over })
}

/// The differing ranges, each from its first differing byte to its last. A new piece must be as long as the
/// old one.
pub(super) fn edits(written: &Written, current: &Opened) -> Result<Vec<(u64, Vec<u8>)>> {
    let mut out = Vec::new();
    let mut at = 0;
    for piece in &written.pieces {
        match piece {
            Piece::Keep(range) if range.start == at => at = range.end,
            Piece::New(bytes) => {
                let end = (at + bytes.len() as u64).min(current.source.len());
                out.extend(crate::files::differing(at, &current.source.bytes(at..end)?, bytes));
                at += bytes.len() as u64;
            }
            Piece::Keep(_) => {
                let what = "a placeholder is longer than the output it replaces, and nothing may move in a file that its \
                            client appends to; compact instead";
                return Err(Error::new(ErrorKind::Refused, what).or_hint(Hint::SkipOutput));
            }
        }
    }
    if at != current.source.len() {
        return Err(Error::new(ErrorKind::Refused, "the file would change its length; nothing was written"));
    }
    Ok(out)
}
