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

mod archive;
pub mod audit;
mod care;
mod content;
mod counts;
mod database;
pub mod handle;
mod marks;
pub mod memory;
mod place;
pub mod range;
pub mod search;

pub use archive::batch::{
    Applied, AppliedMode, Batch, Body, Compaction, FactTally, NewCompaction, Original, Removed,
    SessionOrigin, Stored,
};
pub use archive::item::{Entry, What};
pub use audit::{AuditEntry, AuditVerb, Face};
pub use care::{Checked, Collected, Gone, Retention, Stats};
pub use content::unwrapped;
pub use counts::Counts;
pub use database::Store;
pub use handle::{Digest, Handle, Scope};
pub use marks::Mark;
pub use memory::{Imported, Memory, MemoryFilter, MemoryKind, MemoryScope, NewMemory, Tidied};
pub use place::{StoreAt, TeamStore};
pub use range::{Range, Slice};
pub use search::passages::{Filter, FoundPassage, Passage, PassageKind, PassageMatch, Unindexed};
pub use search::words::Snippet;
pub use search::{Found, Hit, Query, SearchExtent, SearchScope};
