//! What is archived in one step, and what is stored about a compaction.

use serde::{Deserialize, Serialize};

use crate::store::{Digest, Handle, ItemKind};
use sessions::Source;

#[derive(Clone, Copy)]
pub enum Body<'a> {
    Bytes(&'a [u8]),
    /// Read piece by piece, never all at once.
    Source(&'a dyn Source),
}

impl std::fmt::Debug for Body<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Source(source) => write!(f, "Source({}, {})", source.name(), source.len()),
        }
    }
}

/// Something to be archived byte for byte.
#[derive(Debug, Clone)]
pub struct Original<'a> {
    /// [`ItemKind::Session`], [`ItemKind::Message`] or [`ItemKind::Output`].
    pub kind: ItemKind,
    /// Its bytes. A message may be its record's JSON: searching reads the strings in it.
    pub body: Body<'a>,
    /// Number of the message in the live messages of the session; `None` for the session itself.
    pub message: Option<u32>,
    /// The call that an output answers.
    pub call_id: Option<&'a str>,
    /// The tool that made an output.
    pub tool: Option<&'a str>,
    /// Its tokens, by the plan's counter.
    pub tokens: u64,
}

impl<'a> Original<'a> {
    /// An original without a message.
    pub fn new(kind: ItemKind, body: Body<'a>, tokens: u64) -> Self {
        Self { kind, body, message: None, call_id: None, tool: None, tokens }
    }

    pub fn session(body: Body<'a>, tokens: u64) -> Self {
        Self::new(ItemKind::Session, body, tokens)
    }
}

/// A session as a compaction names it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SessionOrigin {
    /// The agent, or empty for plain messages.
    pub agent: String,
    /// Its id: the agent's own; for plain messages whatever the engine uses in its place.
    pub id: String,
    pub path: Option<String>,
    pub format: String,
}

/// A compaction about to happen.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NewCompaction {
    pub profile: String,
    /// `manual`, `auto` or `overflow`.
    pub trigger: String,
    pub tokens_before: u64,
    pub tokens_after: u64,
    /// The summary, or empty if there is none. Private passages and secrets are removed before it is stored.
    pub summary: String,
    /// What it kept, where that was scored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<FactTally>,
}

/// Counts of one class's facts in what a compaction removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactTally {
    pub class: String,
    pub found: u64,
    /// Of these, still in the result in a usable form.
    pub kept: u64,
}

#[derive(Debug, Clone, Default)]
pub struct Batch<'a> {
    pub session: SessionOrigin,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// The session itself and whatever is to be removed from it. At most one is a [`ItemKind::Session`].
    pub originals: Vec<Original<'a>>,
    /// The compaction that removes them; it protects them from deletion.
    pub compaction: Option<NewCompaction>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// One for each original, in order.
    pub handles: Vec<Handle>,
    pub digests: Vec<Digest>,
    /// The compaction's, if there was one.
    pub compaction: Option<Handle>,
}

/// Something that a compaction removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    pub handle: Handle,
    pub kind: ItemKind,
    /// Number of its message in the live messages before the compaction.
    pub message: Option<u32>,
    /// The call that an output answers.
    pub call_id: Option<String>,
    /// The tool that made an output.
    pub tool: Option<String>,
    pub tokens: u64,
}

/// How a compaction was applied; set by [`Store::finish`](crate::store::Store::finish).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    pub path: Option<String>,
    /// The id under which the session continues, if it is new.
    pub session: Option<String>,
    pub mode: AppliedMode,
    /// What the file was like right after, to see later whether it was changed since.
    pub fingerprint: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AppliedMode {
    /// Records changed in place.
    Patch,
    /// Records added to the session.
    Append,
    /// A new session beside the old one.
    New,
    /// Written by the agent itself, from the answer to its seat.
    Seat,
    /// Mended in place.
    Repair,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    pub handle: Handle,
    /// When, in milliseconds since 1970.
    pub at: i64,
    pub session: SessionOrigin,
    #[serde(flatten)]
    pub about: NewCompaction,
    /// The whole session before, if it was stored.
    pub original: Option<Handle>,
    /// What was removed, in the order it was given.
    pub removed: Vec<Removed>,
    /// What became of it; `None` when nothing was written, or the process ended in between.
    pub applied: Option<Applied>,
}
