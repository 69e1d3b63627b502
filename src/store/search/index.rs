//! The full-text indexes of items and of passages.

use std::borrow::Cow;

use rusqlite::ToSql;
use serde_json::Value;

use super::words::{Terms, Words};
use crate::store::ItemKind;
#[cfg(feature = "team")]
use crate::store::database::postgres;
use crate::store::database::sql::{Connection, Transaction, params};
use history::error::Result;

const INDEXING: &str = "indexing";

/// Indexes words (see [`crate::store::search::words::indexed`]) under `item`.
pub(crate) fn index(transaction: &Transaction<'_>, item: i64, words: &str) -> Result<()> {
    match &**transaction {
        Connection::Sqlite(_) => {
            put(transaction, "INSERT INTO words (rowid, body) VALUES (?1, ?2)", params![item, words])
        }
        #[cfg(feature = "team")]
        Connection::Postgres(_) => postgres::vectors(words, "").iter().try_for_each(|row| {
            let sql = "INSERT INTO words (item, body) VALUES (?1, CAST(CAST(?2 AS TEXT) AS tsvector))";
            put(transaction, sql, params![item, row])
        }),
    }
}

/// Indexes the words of a passage. `about`: tokens of its properties, which a search can require.
pub(crate) fn index_passage(
    transaction: &Transaction<'_>,
    passage: i64,
    words: &str,
    about: &str,
) -> Result<()> {
    match &**transaction {
        Connection::Sqlite(_) => put(
            transaction,
            "INSERT INTO passage_words (rowid, body, about) VALUES (?1, ?2, ?3)",
            params![passage, words, about],
        ),
        #[cfg(feature = "team")]
        Connection::Postgres(_) => postgres::vectors(words, about).iter().try_for_each(|row| {
            let sql =
                "INSERT INTO passage_words (passage, body) VALUES (?1, CAST(CAST(?2 AS TEXT) AS tsvector))";
            put(transaction, sql, params![passage, row])
        }),
    }
}

fn put(transaction: &Transaction<'_>, sql: &str, params: &[&dyn ToSql]) -> Result<()> {
    transaction.execute(INDEXING, sql, params).map(drop)
}

/// Removes the words of an item from the index.
pub(crate) fn unindex(transaction: &Transaction<'_>, item: i64) -> Result<()> {
    let sql = match &**transaction {
        Connection::Sqlite(_) => "DELETE FROM words WHERE rowid = ?1",
        #[cfg(feature = "team")]
        Connection::Postgres(_) => "DELETE FROM words WHERE item = ?1",
    };
    put(transaction, sql, params![item])
}

/// The parts of an SQL query that finds rows by their words.
pub(crate) struct FoundBy {
    /// The tables, among them the one that is wanted as `i` (item) or `s` (passage).
    pub(crate) from: &'static str,
    pub(crate) id: &'static str,
    pub(crate) condition: String,
    /// Parameters of the condition, which follow those of the query.
    expressions: Vec<String>,
}

impl FoundBy {
    pub(crate) fn params(&self) -> Vec<&dyn ToSql> {
        self.expressions.iter().map(|it| it as &dyn ToSql).collect()
    }
}

/// Finds items with these words. Its parameters are numbered from `first`.
pub(crate) fn items(connection: &Connection, words: &Words, wanted: Terms, first: usize) -> FoundBy {
    match connection {
        Connection::Sqlite(_) => FoundBy {
            from: "words CROSS JOIN item i ON i.id = words.rowid",
            id: "words.rowid",
            condition: format!("words MATCH ?{first}"),
            expressions: vec![words.expression(wanted)],
        },
        #[cfg(feature = "team")]
        Connection::Postgres(_) => {
            let (condition, expressions) = in_rows("i.id", "item FROM words", words, wanted, &[], first);
            FoundBy { from: "item i", id: "i.id", condition, expressions }
        }
    }
}

/// Finds passages with these words and with each token of `about`.
pub(crate) fn passages(
    connection: &Connection,
    words: &Words,
    wanted: Terms,
    about: &[String],
    first: usize,
) -> FoundBy {
    match connection {
        Connection::Sqlite(_) => FoundBy {
            from: "passage_words w CROSS JOIN passage s ON s.id = w.rowid",
            id: "w.rowid",
            condition: format!("w.passage_words MATCH ?{first}"),
            expressions: vec![format!(
                "body : ({}) AND about : ({})",
                words.expression(wanted),
                about.join(" AND ")
            )],
        },
        #[cfg(feature = "team")]
        Connection::Postgres(_) => {
            let (condition, expressions) =
                in_rows("s.id", "passage FROM passage_words", words, wanted, about, first);
            FoundBy { from: "passage s", id: "s.id", condition, expressions }
        }
    }
}

/// The words of one text may be in several rows, so each term is searched by itself.
#[cfg(feature = "team")]
fn in_rows(
    id: &str,
    rows: &str,
    words: &Words,
    wanted: Terms,
    about: &[String],
    first: usize,
) -> (String, Vec<String>) {
    let phrases: Vec<&str> = words.phrases().collect();
    let expressions: Vec<String> = match wanted {
        Terms::All => phrases.iter().map(|it| postgres::query(&[it], about)).collect(),
        Terms::Any => vec![postgres::query(&phrases, about)],
    };
    let one = |(number, _)| {
        format!("SELECT {rows} WHERE body @@ CAST(CAST(?{} AS TEXT) AS tsquery)", first + number)
    };
    let selects: Vec<String> = expressions.iter().enumerate().map(one).collect();
    (format!("{id} IN ({})", selects.join(" INTERSECT ")), expressions)
}

/// Leaves the words of `item` to the next search.
pub(crate) fn index_later(transaction: &Transaction<'_>, item: i64) -> Result<()> {
    transaction.execute(INDEXING, "INSERT INTO pending (item) VALUES (?1) ON CONFLICT DO NOTHING", [item])?;
    Ok(())
}

pub(crate) fn is_indexed(connection: &Connection, item: i64) -> Result<bool> {
    let sql = match connection {
        Connection::Sqlite(_) => "SELECT 1 FROM words_docsize WHERE id = ?1",
        #[cfg(feature = "team")]
        Connection::Postgres(_) => "SELECT 1 FROM words WHERE item = ?1",
    };
    connection.exists(INDEXING, sql, [item])
}

/// The readable text of a content: the strings of a message that is JSON, else all of it.
pub(crate) fn readable(head: &[u8], kind: ItemKind) -> Cow<'_, str> {
    if kind == ItemKind::Message && head.trim_ascii_start().starts_with(b"{") {
        let mended = history::json::mend(head);
        // serde_json refuses nesting deeper than 128, so that the recursion is bounded.
        if let Ok(value) = serde_json::from_str::<Value>(&mended) {
            let mut out = String::new();
            strings(&value, &mut out);
            return Cow::Owned(out);
        }
    }
    String::from_utf8_lossy(head)
}

fn strings(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => {
            out.push_str(text);
            out.push('\n');
        }
        Value::Array(values) => values.iter().for_each(|it| strings(it, out)),
        Value::Object(fields) => fields.values().for_each(|it| strings(it, out)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
