//! The archive of originals and the memory of what was learnt: the one place where things are kept.
//!
//! Nothing is replaced in a session before its originals lie here, synced: [`Store::put_all`] is that one step, all of
//! it or nothing. Originals are named by their content ([`Digest`]), stored once, and reached by a short [`Handle`]
//! within a [`Scope`]. The SQL in this folder is spoken by two databases (`sql`), SQLite and PostgreSQL, so that no
//! method is written for one of them.
//!
//! **Invariants.** What is read is what was put, byte for byte, or an error. An original that a compaction holds stays
//! as long as the compaction. What is between `<private>` and `</private>`, and what looks like a secret, is never in
//! a memory or a summary; an original keeps its own bytes. Time is an input: milliseconds since 1970, UTC.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

mod archive;
pub mod audit;
mod care;
mod content;
mod counts;
mod database;
pub mod handle;
mod item;
mod marks;
pub mod memory;
pub mod range;
pub mod search;

pub use audit::{AuditEntry, AuditVerb, Face};
pub use content::BodyReader;
pub use counts::Counts;
pub use database::Store;
pub use handle::{Digest, Handle};
pub use memory::{Memory, MemoryKind, MemoryScope, NewMemory};
pub use range::{Range, Slice};
pub use search::passages::{Filter, FoundPassage, Passage, PassageKind, PassageMatch, Unindexed};
pub use search::words::Snippet;

use history::error::{Error, ErrorKind, Result};
use history::named;
use sessions::Source;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreAt {
    /// `epitome.db` in this directory, which is made when it is not there.
    Path(PathBuf),
    /// In this process, for tests: behaves as if it were kept.
    Memory,
    /// In this process, because the user wants nothing kept: [`Store::keeps`] says so, and nothing may be replaced in
    /// place.
    Nowhere,
    /// On a team's server.
    Team(TeamStore),
}

/// A database and object storage that several servers share.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct TeamStore {
    /// `postgres://user:password@host/database`.
    pub database: String,
    /// `s3://bucket/prefix` or `file:///directory`.
    pub blobs: String,
    /// The environment, for what `AWS_*` say.
    pub variables: BTreeMap<String, String>,
}

impl TeamStore {
    /// Host and name of the database. A password may stand in front of them and, as a parameter, behind them.
    pub fn address(&self) -> &str {
        let address = self.database.split('?').next().unwrap_or_default();
        match address.rsplit_once('@') {
            Some((_, host)) => host,
            // A password with a question mark in it.
            None if self.database.contains('@') => "",
            None => address.split_once("://").map_or("", |(_, host)| host),
        }
    }
}

impl std::fmt::Debug for TeamStore {
    /// Without passwords and keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TeamStore(postgres {}, {})", self.address(), self.blobs)
    }
}

/// Owner and project, within which handles are looked up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// The user, as the engine names them.
    pub owner: String,
    /// The project, as a rule the path of its root. Not empty: that stands for no project.
    pub project: String,
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum What {
        /// A whole session as it was.
        Session = "session",
        /// A message of one.
        Message = "message",
        Output = "output",
        /// A compaction; its text is its summary (a snapshot), its original the session.
        Compaction = "compaction",
        Memory = "memory",
    }
}

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

/// Something to be kept as it is.
#[derive(Debug, Clone)]
pub struct Original<'a> {
    /// [`What::Session`], [`What::Message`] or [`What::Output`].
    pub what: What,
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
    /// A whole session.
    pub fn session(body: Body<'a>, tokens: u64) -> Self {
        Self { what: What::Session, body, message: None, call_id: None, tool: None, tokens }
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewCompaction {
    pub profile: String,
    /// `manual`, `auto` or `overflow`.
    pub trigger: String,
    /// Tokens of the messages before.
    pub tokens_before: u64,
    /// Tokens of the messages after.
    pub tokens_after: u64,
    /// The summary, or empty when there is none. Private passages and secrets are cut from what is kept.
    pub summary: String,
    /// What it kept, where that was scored.
    pub facts: Vec<FactTally>,
}

/// Facts of one class that a compaction took away, counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactTally {
    pub class: String,
    pub found: u64,
    /// Of these, still said in a usable form.
    pub kept: u64,
}

#[derive(Debug, Clone, Default)]
pub struct Batch<'a> {
    /// The session that all this is of.
    pub session: SessionOrigin,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// The session itself and whatever is to be removed from it. At most one is a [`What::Session`].
    pub originals: Vec<Original<'a>>,
    /// The compaction that removes them, and holds them from now on.
    pub compaction: Option<NewCompaction>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// One for each original, in order.
    pub handles: Vec<Handle>,
    /// The digest of each.
    pub digests: Vec<Digest>,
    /// The compaction's, if there was one.
    pub compaction: Option<Handle>,
}

/// What is known of a stored thing besides its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    pub handle: Handle,
    #[serde(rename = "kind")]
    pub what: What,
    /// Its project; empty when it belongs to the user.
    pub project: String,
    /// The session it is of, if any; the newest where it is of several.
    pub session: Option<String>,
    /// Number of the message in that session when it was stored.
    pub message: Option<u32>,
    /// The call that an output answers.
    pub call_id: Option<String>,
    /// The tool that made an output.
    pub tool: Option<String>,
    /// Tokens, where they were counted.
    pub tokens: Option<u64>,
    /// Bytes of the original, the summary or the memory.
    pub bytes: u64,
    /// When it was last stored, in milliseconds since 1970.
    pub at: i64,
}

/// Something that a compaction removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    /// Where its bytes are.
    pub handle: Handle,
    #[serde(rename = "kind")]
    pub what: What,
    /// Number of its message in the live messages before.
    pub message: Option<u32>,
    /// The call that an output answers.
    pub call_id: Option<String>,
    /// The tool that made an output.
    pub tool: Option<String>,
    pub tokens: u64,
}

/// What became of a compaction; set by [`Store::finish`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    pub path: Option<String>,
    /// The id under which the session goes on, where that is new.
    pub session: Option<String>,
    pub mode: AppliedMode,
    /// What the file was like right after, to see later whether it was changed since.
    pub fingerprint: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AppliedMode {
    /// Records changed where they stand.
    Patch,
    /// Records added to the session.
    Append,
    /// A new session beside the old one.
    New,
    /// By the agent, of what its seat was answered.
    Seat,
    /// Mended where it stands.
    Repair,
}

/// A compaction that was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    pub handle: Handle,
    /// When, in milliseconds since 1970.
    pub at: i64,
    pub session: SessionOrigin,
    pub profile: String,
    /// `manual`, `auto` or `overflow`.
    pub trigger: String,
    /// Tokens of the messages before.
    pub tokens_before: u64,
    /// Tokens of the messages after.
    pub tokens_after: u64,
    /// The whole session before, if it was stored.
    pub original: Option<Handle>,
    /// What was removed, in the order it was given.
    pub removed: Vec<Removed>,
    /// The summary as it is kept: without private passages and secrets.
    pub summary: String,
    /// What it kept, where that was scored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<FactTally>,
    /// What became of it; `None` when nothing was written, or the process ended in between.
    pub applied: Option<Applied>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchExtent {
    /// Of the session with this id.
    Session(String),
    /// Of the scope's project, with the user's own memories.
    Project,
    /// Of the scope's owner.
    All,
}

impl SearchExtent {
    pub fn scope(&self) -> SearchScope {
        match self {
            Self::Session(_) => SearchScope::Session,
            Self::Project => SearchScope::Project,
            Self::All => SearchScope::All,
        }
    }
}

named! {
    /// How far a caller wants to see.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SearchScope {
        Session = "session",
        Project = "project",
        All = "all",
    }
}

impl FromStr for SearchScope {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::find(name).ok_or_else(|| {
            Error::of_argument("scope", format!("expected session, project or all, found {name:?}"))
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Words; `"…"` is a phrase.
    pub text: String,
    pub extent: SearchExtent,
    /// Only these; empty means all.
    pub only: Vec<What>,
    /// Maximum number of results; 100 at most.
    pub limit: u32,
    /// Results to skip.
    pub offset: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    #[serde(flatten)]
    pub entry: Entry,
    /// How well it fits: higher is better; comparable within one search.
    pub score: f64,
    pub snippet: Snippet,
    /// The range that brings just this, where the handle names something larger: a message of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Found {
    pub hits: Vec<Hit>,
    /// The offset to go on with, if there is more.
    pub next: Option<u32>,
    /// Nothing held all words, so these hold some of them.
    pub partial: bool,
}

/// A prompt from an agent's own log of what the user typed. It has no handle: nothing of it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundPrompt {
    /// `prompt`.
    pub kind: &'static str,
    pub agent: &'static str,
    /// The session it was typed in.
    pub session: String,
    /// When, in milliseconds since 1970.
    pub at: i64,
    pub snippet: Snippet,
}

/// What was found in the archive, the memory and the agents' logs.
#[derive(Debug, Clone, PartialEq)]
pub struct Recalled {
    /// In archive and memory.
    pub found: Found,
    /// In the logs, the newest first.
    pub typed: Vec<FoundPrompt>,
    /// How far was searched.
    pub scope: SearchScope,
    /// Archived sessions that were not looked through, because the newer ones are large enough.
    pub passed: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryFilter {
    /// The user's or the project's; `None` for both.
    pub scope: Option<MemoryScope>,
    /// Only of this type.
    pub kind: Option<MemoryKind>,
    pub pinned: bool,
    /// Maximum number; `None` for all.
    pub limit: Option<u32>,
    /// Memories to skip.
    pub offset: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Imported {
    pub added: u32,
    pub known: u32,
    /// Number of a note (from 0) that was refused, and why.
    pub refused: Vec<(u32, String)>,
}

/// Memories that were merged into one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tidied {
    /// The one that stays.
    pub kept: Handle,
    /// The ones it stands for. They are not deleted, only no longer listed or found.
    pub superseded: Vec<Handle>,
    pub why: &'static str,
}

/// A value put down under a name, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub value: String,
    /// Milliseconds since 1970.
    pub at: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Everything last stored before this moment (milliseconds since 1970).
    pub before: Option<i64>,
    /// The oldest, until the originals take at most this many bytes on disk. With `before`, originals that a newer
    /// compaction holds stay even so.
    pub max_bytes: Option<u64>,
    /// Only originals that no compaction holds: compactions, memories and marks stay.
    pub originals_only: bool,
}

/// A session that was, or would be, deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gone {
    pub handle: String,
    pub session: String,
    pub project: String,
    pub bytes: u64,
    /// When it was last stored, in milliseconds since 1970.
    pub at: i64,
}

/// What was, or would be, deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Collected {
    /// The sessions among the originals, oldest first.
    pub sessions: Vec<Gone>,
    pub compactions: u64,
    pub originals: u64,
    pub memories: u64,
    /// Expired asks, marks and entries of the audit log.
    pub expired: u64,
    /// Bytes on disk that the originals took.
    pub bytes: u64,
}

/// What an integrity check found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Checked {
    /// Originals all of whose bytes were read and compared with their digests.
    pub originals: u64,
    /// What is wrong, a sentence each; empty when all is well.
    pub problems: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Stats {
    /// How many of each (`session`, `message`, `output`, `compaction`, `memory`).
    pub items: BTreeMap<String, u64>,
    /// Bytes of the originals, each content once.
    pub bytes: u64,
    /// What they take compressed.
    pub stored_bytes: u64,
    /// Originals that [`Store::modernize`] would store anew.
    pub old: u64,
    /// Size of the database file; 0 in memory.
    pub file_bytes: u64,
    pub version: u32,
}

/// The project's error, out of the one that a reader had to wrap it in; a new one around any other.
pub fn unwrapped(error: std::io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(ours) => ours,
        Err(error) => Error::new(ErrorKind::Io, "reading an original: expected to read on").because(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_of_a_team_is_shown() {
        for (address, shown) in [
            ("postgres://me:secret@host/db", "host/db"),
            ("postgres://me@host/db?password=secret", "host/db"),
            ("postgres://host/db?password=secret", "host/db"),
            ("postgres://me@host/db?password=a@secret", "host/db"),
            ("postgres://me:a?secret@host/db", ""),
        ] {
            let team = TeamStore { database: address.to_owned(), ..TeamStore::default() };
            assert_eq!(team.address(), shown, "{address}");
            assert!(!format!("{team:?}").contains("secret"), "{address}");
        }
    }
}
