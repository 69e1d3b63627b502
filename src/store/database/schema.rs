//! SQLite: the schema as a list of migrations, how a connection is opened, and what errors mean to people.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use history::error::{Error, ErrorKind, Result};

/// The file in the data directory.
pub(crate) const FILE: &str = "epitome.db";

/// Marks what is ours, "eptm": the file (`PRAGMA application_id`); in PostgreSQL the advisory locks, as their first key.
pub(super) const APPLICATION: i32 = 0x6570_746d;

/// How long one process waits for another's lock.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Migrations, oldest first. A database's version is how many were applied to it. One is never changed once
/// released, only followed by another.
const STEPS: &[&str] = &[
    include_str!("sqlite/1.sql"),
    include_str!("sqlite/2.sql"),
    include_str!("sqlite/3.sql"),
    include_str!("sqlite/4.sql"),
    include_str!("sqlite/5.sql"),
    include_str!("sqlite/6.sql"),
];

/// The schema version that this program writes.
pub(crate) const VERSION: u32 = STEPS.len() as u32;

/// Opens the database in a directory, or one in memory, creating or upgrading it.
pub(crate) fn open(directory: Option<&Path>) -> Result<Connection> {
    let mut connection = match directory {
        Some(directory) => {
            let file = directory.join(FILE);
            let at = file.display().to_string();
            prepare(directory, &file).map_err(|error| {
                let what = "opening the store: expected a directory to write in; check its permissions or \
                    name another with --store";
                Error::new(ErrorKind::Store, what).at(&at, None).because(error)
            })?;
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            Connection::open_with_flags(&file, flags)
                .map_err(failed("opening the store"))
                .map_err(|it| it.at(at, None))?
        }
        None => Connection::open_in_memory().map_err(failed("opening a store in memory"))?,
    };
    set_up(&mut connection).map_err(|error| match directory {
        Some(directory) => error.at_path(&directory.join(FILE)),
        None => error,
    })?;
    Ok(connection)
}

/// Creates directory and file, readable by their owner only. SQLite's side files get the permissions of the
/// main one.
fn prepare(directory: &Path, file: &Path) -> std::io::Result<()> {
    let mut making = std::fs::DirBuilder::new();
    let mut opening = std::fs::OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        making.mode(0o700);
        opening.mode(0o600);
    }
    making.recursive(true).create(directory)?;
    match opening.write(true).create_new(true).open(file) {
        Ok(made) => {
            made.sync_all()?;
            // The new file's name is on disk only once its directory is synced.
            #[cfg(unix)]
            std::fs::File::open(directory)?.sync_all()?;
            Ok(())
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn set_up(connection: &mut Connection) -> Result<()> {
    let doing = "opening the store";
    wait_at_most(connection, LOCK_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(64);
    // Before anything is changed: is the database ours, and of a known version?
    let (version, application) = state(connection)?;
    if version == 0 && application == 0 {
        let tables: i64 = connection
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .map_err(failed(doing))?;
        // Another process may be creating the database at this moment.
        if tables > 0 && state(connection)? == (0, 0) {
            return Err(foreign());
        }
    } else if application != APPLICATION {
        return Err(foreign());
    }
    not_newer(version)?;
    journal(connection)?;
    connection
        .execute_batch(
            "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY;
             PRAGMA fullfsync = ON; PRAGMA journal_size_limit = 16777216;",
        )
        .map_err(failed(doing))?;
    if version != VERSION {
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed(doing))?;
        // Another process may have been faster.
        let (version, _) = state(&transaction)?;
        not_newer(version)?;
        for step in STEPS.iter().skip(version as usize) {
            transaction.execute_batch(step).map_err(failed(doing))?;
        }
        transaction.pragma_update(None, "application_id", APPLICATION).map_err(failed(doing))?;
        transaction.pragma_update(None, "user_version", VERSION).map_err(failed(doing))?;
        transaction.commit().map_err(failed(doing))?;
    }
    Ok(())
}

fn not_newer(version: u32) -> Result<()> {
    if version <= VERSION { Ok(()) } else { Err(newer(version, VERSION)) }
}

/// The error for a database that a newer version wrote.
pub(crate) fn newer(found: u32, known: u32) -> Error {
    let what = format!(
        "opening the store: expected a database of version {known} or older, found version {found}; upgrade Epitome, \
         or name another store with --store"
    );
    Error::new(ErrorKind::Store, what)
}

fn foreign() -> Error {
    let what = "opening the store: expected a database of Epitome, found one of another program; name \
        another directory with --store";
    Error::new(ErrorKind::Store, what)
}

fn state(connection: &Connection) -> Result<(u32, i32)> {
    connection
        .query_row(
            "SELECT user_version, application_id FROM pragma_user_version, pragma_application_id",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .map_err(failed("opening the store"))
}

/// Switches to the write-ahead log. If several processes do that to a new database, SQLite returns "busy" at
/// once instead of waiting, so we wait.
fn journal(connection: &Connection) -> Result<()> {
    let mut tries = 0;
    loop {
        let mode = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
        match mode {
            Ok(_) => return Ok(()),
            Err(error) if busy(&error) && tries < 500 => {
                tries += 1;
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(failed("opening the store")(error)),
        }
    }
}

fn busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Sets how long to wait while another process holds the store.
pub(crate) fn wait_at_most(connection: &Connection, patience: Duration) -> Result<()> {
    connection.busy_timeout(patience).map_err(failed("setting how long to wait for the store"))
}

/// Merges the indexes, gives freed space back, and empties the write-ahead log.
pub(crate) fn vacuum(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(
        "INSERT INTO words (words) VALUES ('optimize');
         INSERT INTO passage_words (passage_words) VALUES ('optimize'); VACUUM",
    )?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// What SQLite itself finds wrong, a sentence each.
pub(crate) fn check(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let found: Vec<String> = connection
        .prepare("PRAGMA integrity_check")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut problems: Vec<String> = found.into_iter().filter(|it| it != "ok").collect();
    let broken = |row: &rusqlite::Row<'_>| {
        let (table, parent): (String, String) = (row.get(0)?, row.get(1)?);
        Ok(format!("a row of {table} names a {parent} that is not there"))
    };
    for it in
        connection.prepare("SELECT \"table\", parent FROM pragma_foreign_key_check")?.query_map([], broken)?
    {
        problems.push(it?);
    }
    for (index, check) in [
        ("words", "INSERT INTO words (words) VALUES ('integrity-check')"),
        ("passages", "INSERT INTO passage_words (passage_words) VALUES ('integrity-check')"),
    ] {
        if let Err(error) = connection.execute(check, []) {
            problems.push(format!("the index of {index} is damaged ({error})"));
        }
    }
    Ok(problems)
}

/// What an error of the database means, and what to do about it.
pub(crate) fn failed(doing: &'static str) -> impl Fn(rusqlite::Error) -> Error {
    move |error| {
        let (kind, found) = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
                ErrorKind::Locked,
                "expected the store to be free, found it locked by another process; try again",
            ),
            Some(ErrorCode::DiskFull) => (
                ErrorKind::Store,
                "expected room on the disk, found it full; free some, or run `epitome memory gc`",
            ),
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => (
                ErrorKind::Store,
                "expected to be allowed to write; check the permissions of the store, or name another with --store",
            ),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => (
                ErrorKind::Store,
                "expected an intact database, found it damaged; `epitome doctor` shows what is left; if you move the \
                 file away, a new one is created",
            ),
            Some(ErrorCode::SystemIoFailure) => (
                ErrorKind::Store,
                "expected to read and write, but the operating system refused (disk full, a limit on file sizes, or \
                 a failing disk); nothing was stored",
            ),
            Some(ErrorCode::TooBig) => (ErrorKind::Store, "expected less than 1 GB in one piece, found more"),
            _ => (ErrorKind::Store, "the database reported an error; `epitome doctor` checks it"),
        };
        Error::new(kind, format!("{doing}: {found}")).because(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_database_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("a b#ü");
        let connection = open(Some(&place)).unwrap();
        connection.pragma_update(None, "user_version", VERSION + 7).unwrap();
        drop(connection);
        let error = open(Some(&place)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Store);
        let expected = format!("version {VERSION} or older, found version {}; upgrade", VERSION + 7);
        assert!(error.to_string().contains(&expected), "{error}");
    }

    #[test]
    fn what_is_committed_is_on_disk() {
        let directory = tempfile::tempdir().unwrap();
        let connection = open(Some(directory.path())).unwrap();
        let pragma = |name: &str| -> String {
            let sql = format!("SELECT CAST({name} AS TEXT) FROM pragma_{name}");
            connection.query_row(&sql, [], |row| row.get(0)).unwrap()
        };
        assert_eq!((pragma("journal_mode").as_str(), pragma("synchronous").as_str()), ("wal", "2"));
        assert_eq!(pragma("foreign_keys"), "1");
    }

    #[test]
    fn somebody_elses_database_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let other = Connection::open(directory.path().join(FILE)).unwrap();
        other.execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)").unwrap();
        drop(other);
        let error = open(Some(directory.path())).unwrap_err();
        assert!(error.to_string().contains("another program"), "{error}");
    }
}
