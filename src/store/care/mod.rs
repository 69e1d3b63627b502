//! Maintenance of the store: deletes what is old, and checks what is there.

mod check;
mod collect;

use crate::store::database::sql::{Connection, params};
use history::error::Result;

pub use check::{Checked, Stats};
pub use collect::{Collected, Gone, Retention};

/// Begins the message of an error.
const DELETING: &str = "deleting old data";

fn ids(connection: &Connection, sql: &str, parameter: i64) -> Result<Vec<i64>> {
    connection.query_map(DELETING, sql, [parameter], |row| row.get(0))
}

fn sum(connection: &Connection, sql: &str) -> Result<u64> {
    let sum: i64 = connection.query_row("summing up the store", sql, params![], |row| row.get(0))?;
    Ok(u64::try_from(sum).unwrap_or(0))
}

fn sum_of_packs(connection: &Connection) -> Result<u64> {
    let bytes = connection.pack_bytes();
    sum(connection, &format!("SELECT CAST(coalesce(sum({bytes}), 0) AS BIGINT) FROM pack"))
}
