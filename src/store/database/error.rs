//! Errors of both databases.

#[derive(Debug)]
pub(crate) enum SqlError {
    Sqlite(rusqlite::Error),
    #[cfg(feature = "team")]
    Postgres(::postgres::Error),
    /// The connection is gone: a transaction that was open on it is rolled back.
    #[cfg(feature = "team")]
    Lost,
    /// The connection was lost during a commit: whether that took effect is unknown.
    #[cfg(feature = "team")]
    Unsure,
    /// A row holds an invalid value.
    Odd(String),
}

pub(crate) type SqlResult<T> = Result<T, SqlError>;

pub(crate) fn unexpected(column: usize, found: &str) -> SqlError {
    SqlError::Odd(format!("column {column}: found {found}"))
}

impl From<rusqlite::Error> for SqlError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}
