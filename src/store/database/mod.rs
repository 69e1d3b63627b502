//! The store in a database: SQLite for one user, PostgreSQL for a team.

#[cfg(feature = "team")]
mod blobs;
#[cfg(feature = "team")]
pub(in crate::store) mod postgres;
pub(in crate::store) mod schema;
pub(in crate::store) mod sql;
mod value;

use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::sync::MutexGuard;
use std::time::Duration;

use crate::store::memory::remembered;
use crate::store::search::passages;
use crate::store::search::words::{Terms, Words};
use crate::store::{
    Applied, AuditEntry, Batch, Checked, Collected, Compaction, Entry, Filter, Found, FoundPassage, Handle,
    Imported, Mark, Memory, MemoryFilter, MemoryScope, NewMemory, Passage, PassageMatch, Query, Range,
    Retention, Scope, SearchExtent, Slice, Stats, StoreAt, Stored, TeamStore, Tidied, Unindexed, archive,
    audit, care, item, marks, range, search, unwrapped,
};
use history::error::{Error, ErrorKind, Result};
use history::secrets::Redactor;
use sql::{Connection, Pool, locked};

/// How long a preview, or an entry of the audit log, waits for a store that another process holds: what was asked for
/// is of use without being kept.
const PREVIEW_PATIENCE: Duration = Duration::from_millis(300);

/// Where originals and memories are kept. All methods may be called from several threads, and several processes may
/// share one store; waiting for another process is bounded (30 s, then [`ErrorKind::Locked`]).
///
/// A handle is given as the text a caller has. One that is malformed, does not exist or is another owner's is
/// [`ErrorKind::Arguments`]; one of another project is [`ErrorKind::Refused`]. What the database cannot do is
/// [`ErrorKind::Store`], with the remedy.
pub struct Store {
    pub(in crate::store) pool: Pool,
    directory: Option<PathBuf>,
    keeps: bool,
    redactor: Redactor,
    /// Why nothing is kept, where the store could not be opened.
    refusal: Option<Refusal>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// The error that everything returns that would store.
#[derive(Debug)]
struct Refusal {
    kind: ErrorKind,
    why: String,
}

impl Store {
    /// Opens the store, makes or upgrades it. `redactor` is what summaries and memories are cut with.
    pub fn open(place: &StoreAt, redactor: Redactor) -> Result<Self> {
        let directory = match place {
            StoreAt::Path(directory) => Some(directory.clone()),
            StoreAt::Memory | StoreAt::Nowhere | StoreAt::Team(_) => None,
        };
        let connections = match place {
            StoreAt::Team(team) => open_team(team)?,
            StoreAt::Path(_) | StoreAt::Memory | StoreAt::Nowhere => {
                vec![Connection::Sqlite(schema::open(directory.as_deref())?)]
            }
        };
        Ok(Self {
            pool: Pool::new(connections),
            directory,
            keeps: *place != StoreAt::Nowhere,
            redactor,
            refusal: None,
        })
    }

    /// Opens the store; where that cannot be done, an empty one that refuses to store anything, and says why.
    pub fn open_or_refuse(place: &StoreAt, redactor: Redactor) -> Result<Self> {
        let error = match Self::open(place, redactor.clone()) {
            Ok(store) => return Ok(store),
            Err(error) => error,
        };
        let why = error.full();
        tracing::warn!("{why}; going on without what was archived and remembered");
        Ok(Self {
            refusal: Some(Refusal { kind: error.kind(), why }),
            ..Self::open(&StoreAt::Nowhere, redactor)?
        })
    }

    fn storing(&self) -> Result<()> {
        match &self.refusal {
            None => Ok(()),
            Some(it) => Err(Error::new(it.kind, it.why.clone())),
        }
    }

    pub(in crate::store) fn lock(&self) -> MutexGuard<'_, Connection> {
        locked(&self.pool)
    }

    /// Whether it outlives this process (or, in tests, is to be treated so). If not, nothing may be replaced in place.
    pub fn keeps(&self) -> bool {
        self.keeps
    }

    // ── Originals and compactions ──

    /// Stores everything or nothing, and returns when it is on disk. Storing the same again changes nothing but times
    /// and message numbers.
    pub fn put_all(&self, scope: &Scope, batch: &Batch<'_>) -> Result<Stored> {
        self.storing()?;
        archive::put_all(&self.pool, scope, batch, &self.redactor)
    }

    /// Says what became of a compaction.
    pub fn finish(&self, scope: &Scope, compaction: &str, applied: &Applied) -> Result<()> {
        archive::finish(&mut self.lock(), scope, compaction, applied)
    }

    /// The project that a handle of this owner is in (for `--scope all`), with the owner; empty project for the user's
    /// own memories.
    pub fn locate(&self, handle: &str, owner: &str) -> Result<Scope> {
        item::locate(&self.lock(), handle, owner)
    }

    /// Lets an item be named by the handles that it had elsewhere as well.
    pub fn put_aliases(&self, scope: &Scope, handle: &str, others: &[Handle]) -> Result<()> {
        self.storing()?;
        item::put_aliases(&mut self.lock(), scope, handle, others)
    }

    /// The handles that an item had elsewhere.
    pub fn aliases(&self, scope: &Scope, handle: &str) -> Result<Vec<Handle>> {
        item::aliases(&self.lock(), scope, handle)
    }

    pub fn entry(&self, scope: &Scope, handle: &str) -> Result<Entry> {
        archive::entry(&self.lock(), scope, handle)
    }

    /// Reads an original; for a compaction the session before it, for a memory its text. Nothing that does not match
    /// its digest is ever delivered; an [`std::io::Error`] from it holds an [`Error`] of this crate.
    pub fn reader<'a>(&'a self, scope: &Scope, handle: &str) -> Result<Box<dyn Read + Send + 'a>> {
        archive::reader(&self.pool, scope, handle)
    }

    /// The originals of a session (or of the project), newest first, without the session itself.
    pub fn newest(
        &self,
        scope: &Scope,
        session: Option<&str>,
        limit: u32,
        offset: u32,
    ) -> Result<Vec<Entry>> {
        archive::newest(&self.lock(), scope, session, limit, offset)
    }

    /// Whole sessions as far as `extent` goes, newest first; of one that was stored several times, each time.
    pub fn sessions(&self, scope: &Scope, extent: &SearchExtent, limit: u32) -> Result<Vec<Entry>> {
        archive::sessions(&self.lock(), scope, extent, limit)
    }

    pub fn compaction(&self, scope: &Scope, handle: &str) -> Result<Compaction> {
        archive::compaction(&self.lock(), scope, handle)
    }

    /// The compactions of a session (or of the project), newest first.
    pub fn compactions(&self, scope: &Scope, session: Option<&str>, limit: u32) -> Result<Vec<Compaction>> {
        archive::compactions(&self.lock(), scope, session, limit)
    }

    /// Searches outputs, messages, summaries and memories.
    pub fn search(&self, scope: &Scope, query: &Query) -> Result<Found> {
        search::search(&self.pool, scope, query)
    }

    /// Archived sessions of an owner whose passages are not in the index, newest first.
    pub fn unindexed(&self, owner: &str) -> Result<Vec<Unindexed>> {
        passages::unindexed(&self.lock(), owner)
    }

    /// Puts the passages of an archived session into the index, without secrets and private passages. An empty list
    /// says that there is nothing to be indexed.
    pub fn put_passages(&self, scope: &Scope, handle: &str, agent: &str, found: &[Passage]) -> Result<()> {
        self.storing()?;
        passages::put(&self.pool, scope, handle, agent, found, &self.redactor)
    }

    /// Passages that hold the words, newest first, each text once.
    pub fn search_passages(
        &self,
        scope: &Scope,
        extent: &SearchExtent,
        words: &Words,
        wanted: Terms,
        filter: &Filter,
    ) -> Result<Vec<PassageMatch>> {
        passages::search(&self.pool, scope, extent, words, wanted, filter)
    }

    /// A match with its text; nothing if another process has deleted it.
    pub fn passage(&self, owner: &str, id: i64) -> Result<Option<FoundPassage>> {
        passages::passage(&self.lock(), owner, id)
    }

    // ── Memory ──

    /// Remembers something. The same content again is the same memory, made new.
    pub fn remember(&self, scope: &Scope, note: &NewMemory, at: i64) -> Result<Memory> {
        self.storing()?;
        remembered::remember(&mut self.lock(), scope, note, at, &self.redactor)
    }

    /// Remembers many, all but the refused ones.
    pub fn import(&self, scope: &Scope, notes: &[NewMemory], at: i64) -> Result<Imported> {
        remembered::import(&mut self.lock(), scope, notes, at, &self.redactor)
    }

    pub fn memory(&self, scope: &Scope, handle: &str) -> Result<Memory> {
        remembered::memory(&self.lock(), scope, handle)
    }

    /// Memories of the project and the user, newest first.
    pub fn memories(&self, scope: &Scope, filter: &MemoryFilter) -> Result<Vec<Memory>> {
        remembered::memories(&self.lock(), scope, filter)
    }

    /// Pins or unpins a memory: it is in every summary. A pinned original or compaction stays, whatever its age.
    pub fn pin(&self, scope: &Scope, handle: &str, pinned: bool) -> Result<()> {
        remembered::pin(&mut self.lock(), scope, handle, pinned)
    }

    /// Deletes one, with those it superseded.
    pub fn forget(&self, scope: &Scope, handle: &str) -> Result<()> {
        remembered::forget(&mut self.lock(), scope, handle)
    }

    /// Merges duplicates, of the user's or the project's alone if `of` says so; the newer supersedes.
    pub fn tidy(&self, scope: &Scope, of: Option<MemoryScope>, dry_run: bool) -> Result<Vec<Tidied>> {
        remembered::tidy(&mut self.lock(), scope, of, dry_run)
    }

    // ── Small things that outlive a process ──

    /// Puts down a value under a name within the project, such as `compacted/SESSION`.
    pub fn mark(&self, scope: &Scope, name: &str, value: &str, at: i64) -> Result<()> {
        marks::mark(&self.lock(), scope, name, value, at)
    }

    pub fn marked(&self, scope: &Scope, name: &str) -> Result<Option<Mark>> {
        marks::marked(&self.lock(), scope, name)
    }

    /// Puts down what `new` makes of the value that stands there. Processes that do it at once wait for each other.
    pub fn update_mark(&self, scope: &Scope, name: &str, new: &dyn Fn(Option<Mark>) -> Mark) -> Result<()> {
        marks::update_mark(&mut self.lock(), scope, name, new)
    }

    /// Puts a value down where another one stands, or none; whether it did. Of two processes that do it at once, one
    /// does.
    pub fn mark_anew(&self, scope: &Scope, name: &str, value: &str, at: i64) -> Result<bool> {
        marks::mark_anew(&self.lock(), scope, name, value, at)
    }

    /// Takes it away; whether it was there. Of two processes that do it at once, one does.
    pub fn unmark(&self, scope: &Scope, name: &str) -> Result<bool> {
        marks::unmark(&self.lock(), scope, name)
    }

    /// Keeps the state of a host-run talk until the answer comes, for 24 hours.
    pub fn put_ask(&self, scope: &Scope, state: &str, at: i64) -> Result<Handle> {
        self.storing()?;
        marks::put_ask(&mut self.lock(), scope, state, at)
    }

    /// The same for a preview, which is shown all the same: a store that another process holds is not waited for.
    pub fn put_preview(&self, scope: &Scope, state: &str, at: i64) -> Result<Handle> {
        self.storing()?;
        let mut connection = self.lock();
        connection.wait_at_most(PREVIEW_PATIENCE)?;
        let kept = marks::put_ask(&mut connection, scope, state, at);
        connection.wait_at_most(schema::PATIENCE)?;
        kept
    }

    /// That state; [`ErrorKind::Refused`] when it expired.
    pub fn ask(&self, scope: &Scope, handle: &str, at: i64) -> Result<String> {
        marks::ask(&self.lock(), scope, handle, at)
    }

    // ── Audit ──

    /// Adds an entry to the audit log; the oldest ones are deleted. A store that another process holds is not waited
    /// for.
    pub fn put_audit(&self, entry: &AuditEntry) -> Result<()> {
        self.storing()?;
        let mut connection = self.lock();
        connection.wait_at_most(PREVIEW_PATIENCE)?;
        let noted = audit::put(&mut connection, entry);
        connection.wait_at_most(schema::PATIENCE)?;
        noted
    }

    /// What was done by an owner, or by everybody, since then, newest first.
    pub fn audit(&self, owner: Option<&str>, since: Option<i64>, limit: u32) -> Result<Vec<AuditEntry>> {
        audit::entries(&self.lock(), owner, since, limit)
    }

    // ── Care ──

    /// Deletes what is old; with `dry_run` only reports what it would.
    pub fn collect(&self, retention: &Retention, at: i64, dry_run: bool) -> Result<Collected> {
        care::collect(&mut self.lock(), retention, at, dry_run)
    }

    /// Stores originals anew that an older version stored in another way; how many. To be killed in between loses
    /// nothing.
    pub fn rewrite_old_format(&self) -> Result<u64> {
        care::rewrite_old_format(&self.pool)
    }

    /// Gives freed space back to the disk.
    pub fn vacuum(&self) -> Result<()> {
        care::vacuum(&self.lock())
    }

    /// Checks the database and, if `deep`, reads every original.
    pub fn check(&self, deep: bool) -> Result<Checked> {
        care::check(&self.pool, deep)
    }

    pub fn stats(&self) -> Result<Stats> {
        let file = self.directory.as_ref().and_then(|it| std::fs::metadata(it.join(schema::FILE)).ok());
        care::stats(&self.lock(), file.map_or(0, |it| it.len()))
    }

    // ── Made of the above ──

    /// An original byte for byte, in memory.
    pub fn restore(&self, scope: &Scope, handle: &str) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.reader(scope, handle)?.read_to_end(&mut out).map_err(unwrapped)?;
        Ok(out)
    }

    /// A part of an original (of a compaction: its session; of a memory: its text), at most `limit` tokens as `count`
    /// counts them.
    pub fn recall(
        &self,
        scope: &Scope,
        handle: &str,
        range: &Range,
        limit: u64,
        count: &dyn Fn(&str) -> u64,
    ) -> Result<Slice> {
        let mut reader = BufReader::with_capacity(64 * 1024, self.reader(scope, handle)?);
        range::slice(&mut reader, range, limit, count).map_err(unwrapped)
    }

    /// The pinned memories of the project and the user, newest first: they are in every summary.
    pub fn pinned(&self, scope: &Scope) -> Result<Vec<Memory>> {
        self.memories(scope, &MemoryFilter { pinned: true, ..MemoryFilter::default() })
    }
}

#[cfg(feature = "team")]
fn open_team(team: &TeamStore) -> Result<Vec<Connection>> {
    let sessions = postgres::open(&team.database, &team.blobs, &team.variables)?;
    Ok(sessions.into_iter().map(|it| Connection::Postgres(Box::new(it))).collect())
}

#[cfg(not(feature = "team"))]
fn open_team(_team: &TeamStore) -> Result<Vec<Connection>> {
    let what = "opening the store: expected a build with PostgreSQL, found one without; build it with \
                `cargo install epitome --features team`";
    Err(Error::new(ErrorKind::Arguments, what))
}
