//! What a database says in place of an answer.

#[derive(Debug)]
pub(crate) enum SqlError {
    Sqlite(rusqlite::Error),
    #[cfg(feature = "team")]
    Postgres(::postgres::Error),
    /// The connection is gone: nothing of a transaction that was open on it is stored.
    #[cfg(feature = "team")]
    Lost,
    /// The connection was lost while a transaction was committed: it is not known whether it was.
    #[cfg(feature = "team")]
    Unsure,
    /// A row holds what cannot be there.
    Odd(String),
}

pub(crate) type SqlResult<T> = Result<T, SqlError>;

pub(crate) fn odd(column: usize, found: &str) -> SqlError {
    SqlError::Odd(format!("column {column}: found {found}"))
}

impl From<rusqlite::Error> for SqlError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}
