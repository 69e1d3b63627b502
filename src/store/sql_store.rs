//! The store in a database: SQLite for one user, PostgreSQL for a team.

use std::io::Read;
use std::path::PathBuf;
use std::sync::MutexGuard;
use std::time::Duration;

#[cfg(feature = "team")]
use super::postgres;
use super::sql::{Connection, Pool, locked};
use super::words::Words;
use super::{
    Applied, AuditEntry, Batch, Checked, Collected, Compaction, Entry, Filter, Found, FoundPassage, Handle,
    Imported, Mark, Memory, MemoryFilter, Note, Passage, PassageMatch, Query, Reach, Retention, Scope, Stats,
    Store, Stored, TeamStore, Tidied, Unindexed, Where, archive, audit, care, item, marks, passages,
    remembered, schema, search,
};
use history::error::{Error, Kind, Result};
use history::secrets::Redactor;

/// How long a preview, or an entry of the audit log, waits for a store that another process holds: what was asked for is of
/// use without being kept.
const PREVIEW_PATIENCE: Duration = Duration::from_millis(300);

/// [`Store`] in `epitome.db`, or behind a team's servers. Several processes may open the same one.
pub struct SqlStore {
    pub(super) pool: Pool,
    directory: Option<PathBuf>,
    keeps: bool,
    redactor: Redactor,
    /// Why nothing is kept, where the store could not be opened.
    refusal: Option<Refusal>,
}

impl std::fmt::Debug for SqlStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqlStore").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// An error that is said again by everything that would store.
#[derive(Debug)]
struct Refusal {
    kind: Kind,
    why: String,
}

impl SqlStore {
    /// Opens the store, makes or upgrades it. `redactor` is what summaries and memories are cut with.
    pub fn open(place: &Where, redactor: Redactor) -> Result<Self> {
        let directory = match place {
            Where::Path(directory) => Some(directory.clone()),
            Where::Memory | Where::None | Where::Team(_) => None,
        };
        let connections = match place {
            Where::Team(team) => open_team(team)?,
            Where::Path(_) | Where::Memory | Where::None => {
                vec![Connection::Sqlite(schema::open(directory.as_deref())?)]
            }
        };
        Ok(Self {
            pool: Pool::new(connections),
            directory,
            keeps: *place != Where::None,
            redactor,
            refusal: None,
        })
    }

    /// Opens the store; where that cannot be done, an empty one that refuses to store anything, and says why.
    pub fn open_or_refuse(place: &Where, redactor: Redactor) -> Result<Self> {
        let error = match Self::open(place, redactor.clone()) {
            Ok(store) => return Ok(store),
            Err(error) => error,
        };
        let why = error.full();
        tracing::warn!("{why}; going on without what was archived and remembered");
        Ok(Self { refusal: Some(Refusal { kind: error.kind(), why }), ..Self::open(&Where::None, redactor)? })
    }

    fn storing(&self) -> Result<()> {
        match &self.refusal {
            None => Ok(()),
            Some(it) => Err(Error::new(it.kind, it.why.clone())),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Connection> {
        locked(&self.pool)
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
    Err(Error::new(Kind::Arguments, what))
}

impl Store for SqlStore {
    fn keeps(&self) -> bool {
        self.keeps
    }

    fn put_all(&self, scope: &Scope, batch: &Batch<'_>) -> Result<Stored> {
        self.storing()?;
        archive::put_all(&self.pool, scope, batch, &self.redactor)
    }

    fn finish(&self, scope: &Scope, compaction: &str, applied: &Applied) -> Result<()> {
        archive::finish(&mut self.lock(), scope, compaction, applied)
    }

    fn locate(&self, handle: &str, owner: &str) -> Result<Scope> {
        item::locate(&self.lock(), handle, owner)
    }

    fn put_aliases(&self, scope: &Scope, handle: &str, others: &[Handle]) -> Result<()> {
        self.storing()?;
        item::put_aliases(&mut self.lock(), scope, handle, others)
    }

    fn aliases(&self, scope: &Scope, handle: &str) -> Result<Vec<Handle>> {
        item::aliases(&self.lock(), scope, handle)
    }

    fn entry(&self, scope: &Scope, handle: &str) -> Result<Entry> {
        archive::entry(&self.lock(), scope, handle)
    }

    fn reader<'a>(&'a self, scope: &Scope, handle: &str) -> Result<Box<dyn Read + Send + 'a>> {
        archive::reader(&self.pool, scope, handle)
    }

    fn newest(&self, scope: &Scope, session: Option<&str>, limit: u32, offset: u32) -> Result<Vec<Entry>> {
        archive::newest(&self.lock(), scope, session, limit, offset)
    }

    fn sessions(&self, scope: &Scope, reach: &Reach, limit: u32) -> Result<Vec<Entry>> {
        archive::sessions(&self.lock(), scope, reach, limit)
    }

    fn compaction(&self, scope: &Scope, handle: &str) -> Result<Compaction> {
        archive::compaction(&self.lock(), scope, handle)
    }

    fn compactions(&self, scope: &Scope, session: Option<&str>, limit: u32) -> Result<Vec<Compaction>> {
        archive::compactions(&self.lock(), scope, session, limit)
    }

    fn search(&self, scope: &Scope, query: &Query) -> Result<Found> {
        search::search(&self.pool, scope, query)
    }

    fn unindexed(&self, owner: &str) -> Result<Vec<Unindexed>> {
        passages::unindexed(&self.lock(), owner)
    }

    fn put_passages(&self, scope: &Scope, handle: &str, agent: &str, found: &[Passage]) -> Result<()> {
        self.storing()?;
        passages::put(&self.pool, scope, handle, agent, found, &self.redactor)
    }

    fn search_passages(
        &self,
        scope: &Scope,
        reach: &Reach,
        words: &Words,
        all: bool,
        filter: &Filter,
    ) -> Result<Vec<PassageMatch>> {
        passages::search(&self.pool, scope, reach, words, all, filter)
    }

    fn passage(&self, owner: &str, id: i64) -> Result<Option<FoundPassage>> {
        passages::passage(&self.lock(), owner, id)
    }

    fn remember(&self, scope: &Scope, note: &Note, at: i64) -> Result<Memory> {
        self.storing()?;
        remembered::remember(&mut self.lock(), scope, note, at, &self.redactor)
    }

    fn import(&self, scope: &Scope, notes: &[Note], at: i64) -> Result<Imported> {
        remembered::import(&mut self.lock(), scope, notes, at, &self.redactor)
    }

    fn memory(&self, scope: &Scope, handle: &str) -> Result<Memory> {
        remembered::memory(&self.lock(), scope, handle)
    }

    fn memories(&self, scope: &Scope, filter: &MemoryFilter) -> Result<Vec<Memory>> {
        remembered::memories(&self.lock(), scope, filter)
    }

    fn pin(&self, scope: &Scope, handle: &str, pinned: bool) -> Result<()> {
        remembered::pin(&mut self.lock(), scope, handle, pinned)
    }

    fn forget(&self, scope: &Scope, handle: &str) -> Result<()> {
        remembered::forget(&mut self.lock(), scope, handle)
    }

    fn tidy(&self, scope: &Scope, dry_run: bool) -> Result<Vec<Tidied>> {
        remembered::tidy(&mut self.lock(), scope, dry_run)
    }

    fn mark(&self, scope: &Scope, name: &str, value: &str, at: i64) -> Result<()> {
        marks::mark(&self.lock(), scope, name, value, at)
    }

    fn marked(&self, scope: &Scope, name: &str) -> Result<Option<Mark>> {
        marks::marked(&self.lock(), scope, name)
    }

    fn mark_anew(&self, scope: &Scope, name: &str, value: &str, at: i64) -> Result<bool> {
        marks::mark_anew(&self.lock(), scope, name, value, at)
    }

    fn unmark(&self, scope: &Scope, name: &str) -> Result<bool> {
        marks::unmark(&self.lock(), scope, name)
    }

    fn put_ask(&self, scope: &Scope, state: &str, at: i64) -> Result<Handle> {
        self.storing()?;
        marks::put_ask(&mut self.lock(), scope, state, at)
    }

    fn put_preview(&self, scope: &Scope, state: &str, at: i64) -> Result<Handle> {
        self.storing()?;
        let mut connection = self.lock();
        connection.wait_at_most(PREVIEW_PATIENCE)?;
        let kept = marks::put_ask(&mut connection, scope, state, at);
        connection.wait_at_most(schema::PATIENCE)?;
        kept
    }

    fn ask(&self, scope: &Scope, handle: &str, at: i64) -> Result<String> {
        marks::ask(&self.lock(), scope, handle, at)
    }

    fn counts(&self, estimator: &str, contents: &[u128]) -> Result<Vec<Option<u32>>> {
        marks::counts(&self.lock(), estimator, contents)
    }

    fn put_counts(&self, estimator: &str, counts: &[(u128, u32)]) -> Result<()> {
        marks::put_counts(&mut self.lock(), estimator, counts)
    }

    fn put_audit(&self, entry: &AuditEntry) -> Result<()> {
        self.storing()?;
        let mut connection = self.lock();
        connection.wait_at_most(PREVIEW_PATIENCE)?;
        let noted = audit::put(&mut connection, entry);
        connection.wait_at_most(schema::PATIENCE)?;
        noted
    }

    fn audit(&self, owner: Option<&str>, since: Option<i64>, limit: u32) -> Result<Vec<AuditEntry>> {
        audit::entries(&self.lock(), owner, since, limit)
    }

    fn collect(&self, retention: &Retention, at: i64, dry_run: bool) -> Result<Collected> {
        care::collect(&mut self.lock(), retention, at, dry_run)
    }

    fn modernize(&self) -> Result<u64> {
        care::modernize(&self.pool)
    }

    fn vacuum(&self) -> Result<()> {
        care::vacuum(&self.lock())
    }

    fn check(&self, deep: bool) -> Result<Checked> {
        care::check(&self.pool, deep)
    }

    fn stats(&self) -> Result<Stats> {
        let file = self.directory.as_ref().and_then(|it| std::fs::metadata(it.join(schema::FILE)).ok());
        care::stats(&self.lock(), file.map_or(0, |it| it.len()))
    }
}
