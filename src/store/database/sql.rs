//! The store's SQL, in the dialect that SQLite and PostgreSQL share: parameters are `?1`, values are those of
//! SQLite, and what differs is a function of [`Connection`].

use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) use rusqlite::params;
use rusqlite::types::{FromSql, ToSql};

pub(crate) use super::error::{SqlError, SqlResult, unexpected};
#[cfg(feature = "team")]
use super::postgres;
use super::schema;
use history::error::{Error, ErrorKind, Result};

/// The parameters of a statement.
pub(crate) trait Params {
    fn list(&self) -> Vec<&dyn ToSql>;
}

impl<T: ToSql, const N: usize> Params for [T; N] {
    fn list(&self) -> Vec<&dyn ToSql> {
        self.iter().map(|it| it as &dyn ToSql).collect()
    }
}

impl Params for &[&dyn ToSql] {
    fn list(&self) -> Vec<&dyn ToSql> {
        self.to_vec()
    }
}

pub(crate) enum Row<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    #[cfg(feature = "team")]
    Postgres(&'a ::postgres::Row),
}

impl Row<'_> {
    pub(crate) fn get<T: FromSql>(&self, column: usize) -> SqlResult<T> {
        let value = match self {
            Self::Sqlite(row) => row.get_ref(column)?,
            #[cfg(feature = "team")]
            Self::Postgres(row) => postgres::value(row, column)?,
        };
        T::column_result(value).map_err(|_| unexpected(column, "a value of another type"))
    }
}

/// What an error of the database means, and what to do about it.
pub(crate) fn failed(doing: &'static str) -> impl Fn(SqlError) -> Error {
    let other = "the database reported an error; `epitome doctor` checks it";
    move |error| match error {
        SqlError::Sqlite(error) => schema::failed(doing)(error),
        #[cfg(feature = "team")]
        SqlError::Postgres(error) => postgres::failed(doing, error),
        #[cfg(feature = "team")]
        SqlError::Lost => {
            let found =
                "expected the database to answer, found the connection lost; nothing was changed; try again";
            Error::new(ErrorKind::Io, format!("{doing}: {found}"))
        }
        #[cfg(feature = "team")]
        SqlError::Unsure => {
            let found = "expected the database to confirm the change, found the connection lost; it may have been \
                         made; try again: nothing is stored twice";
            Error::new(ErrorKind::Io, format!("{doing}: {found}"))
        }
        SqlError::Odd(found) => Error::new(ErrorKind::Store, format!("{doing}: {other} ({found})")),
    }
}

pub(crate) enum Connection {
    Sqlite(rusqlite::Connection),
    #[cfg(feature = "team")]
    Postgres(Box<postgres::PgSession>),
}

impl Connection {
    /// Returns how many rows a statement changed. `doing` begins the message of an error.
    pub(crate) fn execute(&self, doing: &'static str, sql: &str, params: impl Params) -> Result<usize> {
        let params = params.list();
        match self {
            // Prepared statements are cached here for SQLite, in the session for PostgreSQL.
            Self::Sqlite(it) => {
                let changed = it.prepare_cached(sql).and_then(|mut it| it.execute(&*params));
                changed.map_err(schema::failed(doing))
            }
            #[cfg(feature = "team")]
            Self::Postgres(it) => it.execute(&sql.replace('?', "$"), &params).map_err(failed(doing)),
        }
    }

    /// The first row; an error if there is none.
    pub(crate) fn query_row<T>(
        &self,
        doing: &'static str,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> SqlResult<T>,
    ) -> Result<T> {
        let found = self.query_optional(doing, sql, params, read)?;
        found.ok_or_else(|| failed(doing)(SqlError::Odd("a row is missing".to_owned())))
    }

    /// The first row, if there is one.
    pub(crate) fn query_optional<T>(
        &self,
        doing: &'static str,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> SqlResult<T>,
    ) -> Result<Option<T>> {
        let params = params.list();
        let found = || match self {
            Self::Sqlite(it) => {
                let mut statement = it.prepare_cached(sql)?;
                let mut rows = statement.query(&*params)?;
                rows.next()?.map(|row| read(&Row::Sqlite(row))).transpose()
            }
            #[cfg(feature = "team")]
            Self::Postgres(it) => {
                let rows = it.query(&sql.replace('?', "$"), &params)?;
                rows.first().map(|row| read(&Row::Postgres(row))).transpose()
            }
        };
        found().map_err(failed(doing))
    }

    pub(crate) fn query_map<T>(
        &self,
        doing: &'static str,
        sql: &str,
        params: impl Params,
        mut read: impl FnMut(&Row<'_>) -> SqlResult<T>,
    ) -> Result<Vec<T>> {
        let params = params.list();
        let mut found = || match self {
            Self::Sqlite(it) => {
                let mut statement = it.prepare_cached(sql)?;
                let mut rows = statement.query(&*params)?;
                let mut out = Vec::new();
                while let Some(row) = rows.next()? {
                    out.push(read(&Row::Sqlite(row))?);
                }
                Ok(out)
            }
            #[cfg(feature = "team")]
            Self::Postgres(it) => {
                let rows = it.query(&sql.replace('?', "$"), &params)?;
                rows.iter().map(|row| read(&Row::Postgres(row))).collect()
            }
        };
        found().map_err(failed(doing))
    }

    /// Whether there is a row.
    pub(crate) fn exists(&self, doing: &'static str, sql: &str, params: impl Params) -> Result<bool> {
        Ok(self.query_optional(doing, sql, params, |_| Ok(()))?.is_some())
    }

    fn end(&self, how: &str) -> SqlResult<()> {
        match self {
            Self::Sqlite(it) => Ok(it.execute_batch(how)?),
            #[cfg(feature = "team")]
            Self::Postgres(it) => it.end(how),
        }
    }

    /// The expression for a pack's bytes on disk.
    pub(crate) fn pack_bytes(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "length(packed)",
            #[cfg(feature = "team")]
            Self::Postgres(_) => "stored",
        }
    }

    /// Sets how long to wait for other writers.
    pub(crate) fn wait_at_most(&self, patience: Duration) -> Result<()> {
        match self {
            Self::Sqlite(it) => schema::wait_at_most(it, patience),
            #[cfg(feature = "team")]
            Self::Postgres(it) => {
                it.wait_at_most(patience).map_err(failed("setting how long to wait for the store"))
            }
        }
    }
}

/// A transaction, which is rolled back when dropped before [`Transaction::commit`].
pub(crate) struct Transaction<'a> {
    connection: &'a mut Connection,
    doing: &'static str,
    is_open: bool,
}

impl Transaction<'_> {
    pub(crate) fn commit(mut self) -> Result<()> {
        self.connection.end("COMMIT").map_err(failed(self.doing))?;
        self.is_open = false;
        Ok(())
    }
}

impl Deref for Transaction<'_> {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.is_open {
            // Nothing more can be done on a connection that fails even here.
            let _ = self.connection.end("ROLLBACK");
        }
    }
}

/// Begins a transaction that changes one owner's data, for which other writers of it wait. Locks at its
/// beginning, so that nothing waits in the middle.
pub(crate) fn write<'a>(
    connection: &'a mut Connection,
    owner: &str,
    doing: &'static str,
) -> Result<Transaction<'a>> {
    begin(connection, Some(owner), doing)
}

/// Begins a transaction that changes any owner's data, for which all other writers wait.
pub(crate) fn write_all<'a>(connection: &'a mut Connection, doing: &'static str) -> Result<Transaction<'a>> {
    begin(connection, None, doing)
}

fn begin<'a>(
    connection: &'a mut Connection,
    owner: Option<&str>,
    doing: &'static str,
) -> Result<Transaction<'a>> {
    match connection {
        // SQLite has one writer at a time, of all owners.
        Connection::Sqlite(it) => {
            let _ = owner;
            it.execute_batch("BEGIN IMMEDIATE").map_err(schema::failed(doing))?;
        }
        #[cfg(feature = "team")]
        Connection::Postgres(it) => it.begin(owner).map_err(failed(doing))?,
    }
    Ok(Transaction { connection, doing, is_open: true })
}

/// The connections of a store: one to a file, several to a server.
pub(crate) struct Pool {
    connections: Vec<Mutex<Connection>>,
    next: AtomicUsize,
}

impl Pool {
    pub(crate) fn new(connections: impl IntoIterator<Item = Connection>) -> Self {
        let connections = connections.into_iter().map(Mutex::new).collect();
        Self { connections, next: AtomicUsize::new(0) }
    }
}

/// Takes a free connection, or waits for the next in turn. A poisoned lock is fine: the thread that panicked
/// has rolled its transaction back.
pub(crate) fn locked(pool: &Pool) -> MutexGuard<'_, Connection> {
    let free = pool.connections.iter().find_map(|it| it.try_lock().ok());
    let next = || pool.next.fetch_add(1, Ordering::Relaxed) % pool.connections.len();
    free.unwrap_or_else(|| pool.connections[next()].lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_held_longer_is_an_error_that_says_so() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        let (one, two) = (schema::open(Some(place)).unwrap(), schema::open(Some(place)).unwrap());
        two.busy_timeout(Duration::from_millis(20)).unwrap();
        let (mut one, mut two) = (Connection::Sqlite(one), Connection::Sqlite(two));
        let held = write(&mut one, "me", "testing").unwrap();
        let error = write(&mut two, "me", "archiving originals").err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Locked);
        assert!(error.to_string().contains("locked by another process; try again"), "{error}");
        drop(held);
        write(&mut two, "me", "archiving originals").unwrap();
    }
}
