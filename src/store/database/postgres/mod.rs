//! The team's store: rows in PostgreSQL, packs in object storage.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use postgres::error::SqlState;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Config, Row, Statement};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rustls_platform_verifier::ConfigVerifierExt as _;
use tokio_postgres_rustls::MakeRustlsConnect;
use twox_hash::XxHash3_64;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use super::blobs::{Blobs, outside_runtime};
use super::error::{SqlError, SqlResult, unexpected};
use super::schema::{APPLICATION, LOCK_TIMEOUT};
use history::error::{Error, ErrorKind, Result};

/// Maximum connections of one server to its database.
const CONNECTIONS: usize = 8;

/// Maximum words in one row of an index: a `tsvector` has positions up to 16,383 and at most 1 MB.
const ROW_WORDS: usize = 4_000;

/// Words that a row has in common with the next, so that a phrase is found across their border.
const SHARED_WORDS: usize = 32;

/// Migrations of the schema, oldest first. As for SQLite, one is never changed once released.
const STEPS: &[&str] = &[include_str!("1.sql"), include_str!("2.sql"), include_str!("3.sql")];

/// The schema version that this program writes.
pub(crate) const VERSION: u32 = STEPS.len() as u32;

/// Opens the store, creating or upgrading it.
pub(crate) fn open(
    database: &str,
    blobs: &str,
    variables: &BTreeMap<String, String>,
) -> Result<Vec<PgSession>> {
    let doing = "opening the store";
    let wrong = |error: Box<dyn std::error::Error + Send + Sync>| {
        let expected = "expected an address such as postgres://user:password@host/database";
        Error::new(ErrorKind::Arguments, format!("--store: {expected}")).because(error)
    };
    let mut config: Config = database.parse().map_err(|error: postgres::Error| wrong(error.into()))?;
    config.application_name("epitome").keepalives_idle(Duration::from_secs(30));
    config.keepalives_interval(Duration::from_secs(10)).keepalives_retries(3);
    config.tcp_user_timeout(Duration::from_secs(30));
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(Duration::from_secs(10));
    }
    crate::llm::http::use_ring();
    let tls = rustls::ClientConfig::with_platform_verifier()
        .map_err(|error| Error::new(ErrorKind::Io, "reading this system's certificates").because(error))?;
    let server = Arc::new(PgServer {
        config,
        tls: MakeRustlsConnect::new(tls),
        blobs: Blobs::open(blobs, variables)?,
    });
    let first = PgSession { server: server.clone(), open: RefCell::default() };
    first.migrate().map_err(|it| match it {
        SqlError::Postgres(error) => failed(doing, error),
        other => Error::new(
            ErrorKind::Store,
            format!("{doing}: expected to make the tables, found {other:?}; try again"),
        ),
    })??;
    let session = |_| PgSession { server: server.clone(), open: RefCell::default() };
    Ok(std::iter::once(first).chain((1..CONNECTIONS).map(session)).collect())
}

struct PgServer {
    config: Config,
    tls: MakeRustlsConnect,
    blobs: Blobs,
}

/// A connection that is opened when first needed, and again after it was lost.
pub(crate) struct PgSession {
    server: Arc<PgServer>,
    open: RefCell<Option<Open>>,
}

struct Open {
    client: Client,
    statements: HashMap<String, Statement>,
    in_transaction: bool,
}

impl PgServer {
    fn connect(&self) -> Result<Open, postgres::Error> {
        let mut client = self.config.connect(self.tls.clone())?;
        client.batch_execute(
            "SET search_path TO epitome; SET statement_timeout TO '120s';
             SET idle_in_transaction_session_timeout TO '60s'; SET client_min_messages TO warning",
        )?;
        client.batch_execute(&format!("SET lock_timeout TO {}", LOCK_TIMEOUT.as_millis()))?;
        Ok(Open { client, statements: HashMap::new(), in_transaction: false })
    }
}

impl PgSession {
    pub(crate) fn blobs(&self) -> &Blobs {
        &self.server.blobs
    }

    /// Runs `job` on the connection, which is opened first if need be. With `again`, a job that lost its
    /// connection outside of a transaction is repeated once, on a new one.
    fn on<T>(&self, again: bool, job: impl Fn(&mut Open) -> Result<T, postgres::Error>) -> SqlResult<T> {
        outside_runtime(|| {
            let mut open = self.open.borrow_mut();
            let mut is_new = false;
            loop {
                let now = match &mut *open {
                    Some(it) => it,
                    None => {
                        is_new = true;
                        open.insert(self.server.connect().map_err(SqlError::Postgres)?)
                    }
                };
                match job(now) {
                    Ok(it) => return Ok(it),
                    Err(error) if !is_lost(&error) && !now.client.is_closed() => {
                        return Err(SqlError::Postgres(error));
                    }
                    Err(_) => {}
                }
                let in_transaction = now.in_transaction;
                *open = None;
                if in_transaction || is_new || !again {
                    return Err(SqlError::Lost);
                }
            }
        })
    }

    pub(crate) fn query(&self, sql: &str, params: &[&dyn rusqlite::ToSql]) -> SqlResult<Vec<Row>> {
        let values = values(params)?;
        self.on(true, |open| {
            let statement = open.prepared(sql)?;
            open.client.query(&statement, &parameters(&values))
        })
    }

    /// Returns how many rows a statement changed. Never repeated: it may have taken effect.
    pub(crate) fn execute(&self, sql: &str, params: &[&dyn rusqlite::ToSql]) -> SqlResult<usize> {
        let values = values(params)?;
        // Preparing the statement first shows whether the connection is alive.
        let statement = self.on(true, |open| {
            if !open.in_transaction {
                open.client.batch_execute("")?;
            }
            open.prepared(sql)
        })?;
        self.on(false, |open| open.client.execute(&statement, &parameters(&values)).map(|it| it as usize))
    }

    /// Begins a transaction for which other writers of this owner wait or, without an owner, all writers.
    pub(crate) fn begin(&self, owner: Option<&str>) -> SqlResult<()> {
        let locks = match owner {
            Some(owner) => {
                let key = XxHash3_64::oneshot(owner.as_bytes()) as i32 | 1;
                format!(
                    "pg_advisory_xact_lock_shared({APPLICATION}, 0), pg_advisory_xact_lock({APPLICATION}, {key})"
                )
            }
            None => format!("pg_advisory_xact_lock({APPLICATION}, 0)"),
        };
        let begun = self.on(true, |open| open.client.batch_execute(&format!("BEGIN; SELECT {locks}")));
        match (&begun, &mut *self.open.borrow_mut()) {
            (Ok(()), Some(open)) => open.in_transaction = true,
            // A lock timeout leaves the failed transaction open.
            (Err(_), Some(open)) => {
                let _ = outside_runtime(|| open.client.batch_execute("ROLLBACK"));
            }
            (_, None) => {}
        }
        begun
    }

    pub(crate) fn end(&self, how: &str) -> SqlResult<()> {
        let done = self.on(false, |open| open.client.batch_execute(how));
        let done = done.map_err(|it| match it {
            SqlError::Lost if how == "COMMIT" => SqlError::Unsure,
            other => other,
        });
        if let Some(open) = &mut *self.open.borrow_mut() {
            open.in_transaction = false;
        }
        done
    }

    pub(crate) fn wait_at_most(&self, patience: Duration) -> SqlResult<()> {
        let set = format!("SET lock_timeout TO {}", patience.as_millis());
        self.on(true, |open| open.client.batch_execute(&set))
    }

    /// Creates the tables, or upgrades those of an older version.
    fn migrate(&self) -> SqlResult<Result<()>> {
        self.begin(None)?;
        self.on(false, |open| {
            open.client.batch_execute(
                "CREATE SCHEMA IF NOT EXISTS epitome; CREATE TABLE IF NOT EXISTS version (version INT NOT NULL)",
            )
        })?;
        let found = self.query("SELECT coalesce(max(version), 0) FROM version", &[])?;
        let found =
            found.first().map_or(Ok(0), |row| row.try_get::<_, i32>(0)).map_err(SqlError::Postgres)?;
        let version = u32::try_from(found).unwrap_or(0);
        if version > VERSION {
            self.end("ROLLBACK")?;
            return Ok(Err(crate::store::database::schema::newer(version, VERSION)));
        }
        for step in STEPS.iter().skip(version as usize) {
            self.on(false, |open| open.client.batch_execute(step))?;
        }
        if version < VERSION {
            let set = format!("DELETE FROM version; INSERT INTO version VALUES ({VERSION})");
            self.on(false, |open| open.client.batch_execute(&set))?;
        }
        self.end("COMMIT").map(Ok)
    }
}

impl Open {
    fn prepared(&mut self, sql: &str) -> Result<Statement, postgres::Error> {
        if let Some(it) = self.statements.get(sql) {
            return Ok(it.clone());
        }
        let statement = self.client.prepare(sql)?;
        self.statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

/// Whether the server closed the connection, or it broke.
fn is_lost(error: &postgres::Error) -> bool {
    let ends =
        [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT];
    error.is_closed() || error.code().is_some_and(|it| ends.contains(it))
}

/// What an error of the database means, and what to do about it.
pub(crate) fn failed(doing: &'static str, error: postgres::Error) -> Error {
    let (kind, found) = match error.code() {
        Some(it) if *it == SqlState::LOCK_NOT_AVAILABLE => {
            (ErrorKind::Locked, "expected the store to be free, found it locked by another server; try again")
        }
        Some(it) if *it == SqlState::DISK_FULL => {
            (ErrorKind::Store, "the database's disk is full; nothing was stored")
        }
        Some(it) if *it == SqlState::INSUFFICIENT_PRIVILEGE => {
            (ErrorKind::Store, "this database user lacks a privilege; see docs/team.md")
        }
        Some(_) => (ErrorKind::Store, "the database refused; run `epitome doctor`"),
        None => (
            ErrorKind::Io,
            "expected to reach the database; nothing was changed; check the address after --store",
        ),
    };
    Error::new(kind, format!("{doing}: {found}")).because(error)
}

// ── Values ──

/// A parameter in SQLite's types.
#[derive(Debug)]
struct Value<'a>(ToSqlOutput<'a>);

fn values<'a>(params: &[&'a dyn rusqlite::ToSql]) -> SqlResult<Vec<Value<'a>>> {
    params.iter().map(|it| Ok(Value(it.to_sql()?))).collect()
}

fn parameters<'a>(values: &'a [Value<'a>]) -> Vec<&'a (dyn ToSql + Sync)> {
    values.iter().map(|it| it as &(dyn ToSql + Sync)).collect()
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        column: &Type,
        out: &mut bytes::BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        let value = match &self.0 {
            ToSqlOutput::Borrowed(it) => *it,
            ToSqlOutput::Owned(it) => it.into(),
            _ => return Err("a value that only SQLite takes".into()),
        };
        match value {
            ValueRef::Null => Ok(IsNull::Yes),
            ValueRef::Integer(it) if *column == Type::INT4 => i32::try_from(it)?.to_sql(column, out),
            ValueRef::Integer(it) => it.to_sql(column, out),
            ValueRef::Real(it) => it.to_sql(column, out),
            // PostgreSQL's text type cannot hold NUL.
            ValueRef::Text(it) => std::str::from_utf8(it)?.replace('\0', "\u{fffd}").to_sql(column, out),
            ValueRef::Blob(it) => it.to_sql(column, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// A column's value in SQLite's types.
pub(crate) fn value(row: &Row, column: usize) -> SqlResult<ValueRef<'_>> {
    let of = row.columns().get(column).ok_or_else(|| unexpected(column, "nothing"))?.type_();
    let found = match *of {
        Type::INT8 => row.try_get(column).map(|it: Option<i64>| it.map(ValueRef::Integer)),
        Type::INT4 => row.try_get(column).map(|it: Option<i32>| it.map(|it| ValueRef::Integer(it.into()))),
        Type::BYTEA => row.try_get(column).map(|it: Option<&[u8]>| it.map(ValueRef::Blob)),
        _ => row.try_get(column).map(|it: Option<&str>| it.map(|it| ValueRef::Text(it.as_bytes()))),
    };
    Ok(found.map_err(SqlError::Postgres)?.unwrap_or(ValueRef::Null))
}

// ── Words ──

/// Splits words (see [`crate::store::search::words::indexed`]) as SQLite's index does: lower case, without
/// accents.
fn tokens(words: &str) -> Vec<String> {
    let has_accents = |it: char| it < '\u{500}' || ('\u{1e00}'..='\u{1fff}').contains(&it);
    let mut plain = String::with_capacity(words.len());
    for it in words.chars() {
        if has_accents(it) {
            plain.extend(std::iter::once(it).nfd().filter(|it| !is_combining_mark(*it)));
        } else if !is_combining_mark(it) || it.is_alphanumeric() {
            plain.push(it);
        }
    }
    let plain = plain.to_lowercase();
    plain.split(|it: char| !it.is_alphanumeric()).filter(|it| !it.is_empty()).map(str::to_owned).collect()
}

/// The index rows for these words, each a `tsvector` that also has all tokens of `about`; at least one row.
pub(crate) fn vectors(words: &str, about: &str) -> Vec<String> {
    let tokens = tokens(words);
    let about: String = about.split_whitespace().map(|it| format!(" '#{it}'")).collect();
    let rows = tokens.len().max(1).div_ceil(ROW_WORDS);
    let row = |number: usize| {
        let from = number * ROW_WORDS;
        let to = tokens.len().min(from + ROW_WORDS + SHARED_WORDS);
        let words = tokens.get(from..to).unwrap_or_default().iter().enumerate();
        words.map(|(at, it)| format!("'{it}':{}", at + 1)).collect::<Vec<_>>().join(" ") + &about
    };
    (0..rows).map(row).collect()
}

/// FTS5 phrases (see [`crate::store::search::words::Words`]) as a `tsquery`: any of them, and all of `about`.
pub(crate) fn query(phrases: &[&str], about: &[String]) -> String {
    let one = |phrase: &&str| {
        let prefix = if phrase.ends_with('*') { ":*" } else { "" };
        let words: Vec<_> = tokens(phrase).into_iter().map(|it| format!("'{it}'")).collect();
        (!words.is_empty()).then(|| format!("({}{prefix})", words.join(" <-> ")))
    };
    let any: Vec<_> = phrases.iter().filter_map(one).collect();
    let all = std::iter::once(format!("({})", any.join(" | ")));
    all.chain(about.iter().map(|it| format!("'#{it}'"))).collect::<Vec<_>>().join(" & ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_out_of_reach_is_no_damage() {
        // Nothing listens on port 1.
        let error = postgres::Client::connect("postgres://me@127.0.0.1:1/db", postgres::NoTls).err().unwrap();
        assert_eq!(failed("reading", error).kind(), ErrorKind::Io);
    }

    #[test]
    fn words_are_folded_as_sqlite_folds_them() {
        assert_eq!(tokens("Café_au LAIT, naïve Ünï 数据"), ["cafe", "au", "lait", "naive", "uni", "数据"]);
        assert_eq!(vectors("a B", "o1 k2"), ["'a':1 'b':2 '#o1' '#k2'"]);
        assert_eq!(vectors("", ""), [""]);
        let many = "x ".repeat(ROW_WORDS + 1);
        let rows = vectors(&many, "");
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[1], "'x':1");
    }

    #[test]
    fn phrases_become_queries() {
        assert_eq!(query(&["\"a b\"", "\" 数\"*"], &["o1".to_owned()]), "(('a' <-> 'b') | ('数':*)) & '#o1'");
    }
}
