//! The archive of originals and the memories: the one place where data is kept.
//!
//! Nothing is replaced in a session before its originals are stored here and synced: [`Store::put_all`] does
//! that, all or nothing. Originals are identified by their content ([`Digest`]), stored once, and reached by
//! a short [`Handle`] within a [`Scope`]. The SQL in this folder runs on SQLite and on PostgreSQL (see
//! `sql`), so that no method is written for one of them alone.
//!
//! **Invariants.** A read returns exactly the bytes that were stored, or an error. An original that a
//! compaction holds stays as long as the compaction. Text between `<private>` and `</private>`, and what
//! looks like a secret, is never in a memory or a summary; an original keeps its own bytes. Time is an input:
//! milliseconds since 1970, UTC.

mod archive;
pub mod audit;
mod care;
mod content;
mod counts;
mod database;
pub mod handle;
mod marks;
pub mod memory;
pub mod range;
pub mod search;

pub use archive::batch::{
    Applied, AppliedMode, Batch, Body, Compaction, FactTally, NewCompaction, Original, Removed,
    SessionOrigin, Stored,
};
pub use archive::item::{Entry, ItemKind};
pub use audit::{AuditEntry, AuditVerb, Face};
pub use care::{Checked, Collected, Gone, Retention, Stats};
pub use content::unwrapped;
pub use counts::Counts;
pub use database::Store;
pub use database::place::{StoreAt, TeamStore};
pub use handle::{Digest, Handle, Scope};
pub use marks::Mark;
pub use memory::{Imported, Memory, MemoryFilter, MemoryKind, MemoryScope, NewMemory, Tidied};
pub use range::{Range, Slice};
pub use search::passages::{Filter, FoundPassage, Passage, PassageKind, PassageMatch, Unindexed};
pub use search::words::Snippet;
pub use search::{Found, Hit, MAX_HITS, Query, SearchExtent, SearchScope};
