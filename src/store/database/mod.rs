//! The store in a database: SQLite for one user, PostgreSQL for a team.

#[cfg(feature = "team")]
mod blobs;
mod error;
pub(in crate::store) mod place;
#[cfg(feature = "team")]
pub(in crate::store) mod postgres;
pub(in crate::store) mod schema;
pub(in crate::store) mod sql;

use std::path::PathBuf;
use std::sync::MutexGuard;
use std::time::Duration;

use crate::store::{StoreAt, TeamStore};
use history::error::{Error, ErrorKind, Result};
use history::secrets::Redactor;
use sql::{Connection, Pool, locked};

/// How long a preview or an audit entry waits for a store that another process holds: the operation is of use
/// without it.
const SHORT_LOCK_TIMEOUT: Duration = Duration::from_millis(300);

/// Where originals and memories are kept. All methods may be called from several threads, and several
/// processes may share one store; waiting for another process is bounded (30 s, then [`ErrorKind::Locked`]).
///
/// Handles are passed as text. One that is malformed, does not exist or is another owner's is
/// [`ErrorKind::Arguments`]; one of another project is [`ErrorKind::Refused`]. A failure of the database is
/// [`ErrorKind::Store`], with the remedy.
pub struct Store {
    pub(in crate::store) pool: Pool,
    pub(in crate::store) directory: Option<PathBuf>,
    keeps: bool,
    pub(in crate::store) redactor: Redactor,
    /// Why nothing can be stored, if the store could not be opened.
    refusal: Option<Refusal>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// The error of every method that would store something.
#[derive(Debug)]
struct Refusal {
    kind: ErrorKind,
    why: String,
}

impl Store {
    /// Opens the store, creating or upgrading it. `redactor` masks secrets in summaries and memories.
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

    /// Opens the store; if that fails, an empty one that refuses to store anything and says why.
    pub fn open_or_refuse(place: &StoreAt, redactor: Redactor) -> Result<Self> {
        let error = match Self::open(place, redactor.clone()) {
            Ok(store) => return Ok(store),
            Err(error) => error,
        };
        let why = error.full();
        tracing::warn!("{why}; continuing without the archive and memories");
        Ok(Self {
            refusal: Some(Refusal { kind: error.kind(), why }),
            ..Self::open(&StoreAt::Nowhere, redactor)?
        })
    }

    pub(in crate::store) fn check_writable(&self) -> Result<()> {
        match &self.refusal {
            None => Ok(()),
            Some(it) => Err(Error::new(it.kind, it.why.clone())),
        }
    }

    /// Runs `does`, or fails soon if another process holds the store: for what may go unstored.
    pub(in crate::store) fn with_short_wait<T>(
        &self,
        does: impl FnOnce(&mut Connection) -> Result<T>,
    ) -> Result<T> {
        self.check_writable()?;
        let mut connection = self.lock();
        connection.wait_at_most(SHORT_LOCK_TIMEOUT)?;
        let done = does(&mut connection);
        connection.wait_at_most(schema::LOCK_TIMEOUT)?;
        done
    }

    pub(in crate::store) fn lock(&self) -> MutexGuard<'_, Connection> {
        locked(&self.pool)
    }

    /// Whether it outlives this process (or, in tests, counts as if). If not, nothing may be replaced in
    /// place.
    pub fn keeps(&self) -> bool {
        self.keeps
    }
}

#[cfg(feature = "team")]
fn open_team(team: &TeamStore) -> Result<Vec<Connection>> {
    let sessions = postgres::open(&team.database, &team.blobs, &team.variables)?;
    Ok(sessions.into_iter().map(|it| Connection::Postgres(Box::new(it))).collect())
}

#[cfg(not(feature = "team"))]
fn open_team(_team: &TeamStore) -> Result<Vec<Connection>> {
    let what = "opening the store: expected a build with PostgreSQL support, found one without; build it with \
                `cargo install epitome --features team`";
    Err(Error::new(ErrorKind::Arguments, what))
}
