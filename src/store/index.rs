//! The full-text index: what of a content is in it.

use std::borrow::Cow;

use rusqlite::{Connection, Transaction, params};
use serde_json::Value;

use super::What;
use super::schema::failed;
use history::error::Result;

/// Puts words (see [`super::words::indexed`]) into the index as those of `item`.
pub(super) fn index(transaction: &Transaction<'_>, item: i64, words: &str) -> Result<()> {
    transaction
        .prepare_cached("INSERT INTO words (rowid, body) VALUES (?1, ?2)")
        .and_then(|mut it| it.execute(params![item, words]))
        .map_err(failed("indexing"))?;
    Ok(())
}

/// Leaves the words of `item` to the next search.
pub(super) fn index_later(transaction: &Transaction<'_>, item: i64) -> Result<()> {
    transaction
        .prepare_cached("INSERT OR IGNORE INTO pending (item) VALUES (?1)")
        .and_then(|mut it| it.execute([item]))
        .map_err(failed("indexing"))?;
    Ok(())
}

/// Whether an item is in the index.
pub(super) fn is_indexed(connection: &Connection, item: i64) -> Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM words_docsize WHERE id = ?1")
        .and_then(|mut it| it.exists([item]))
        .map_err(failed("indexing"))
}

/// What of a content is for reading: of a message that is JSON its strings, else all of it.
pub(super) fn readable(head: &[u8], what: What) -> Cow<'_, str> {
    if what == What::Message && head.trim_ascii_start().starts_with(b"{") {
        let mended = history::json::mend(head);
        // serde_json refuses what is nested deeper than 128, so that walking it is safe.
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
