//! Full-text search in the database.

use std::borrow::Cow;

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use serde_json::Value;

use super::item::{ENTRY, entry_of};
use super::schema::{failed, write};
use super::words::{Words, indexed};
use super::{Found, Hit, Query, Reach, Scope, What, archive, content, remembered, sqlite};
use crate::error::Result;

/// Bytes of a content that are searched: its beginning. Bounds what one giant log can cost.
pub(super) const SEARCHED: usize = 4 << 20;

/// Results of one search, at most.
const MAX_HITS: u32 = 100;

/// Matches that are ranked: the newest. Words that more texts than this hold tell them apart no better than their age
/// does, and ranking 100,000 takes a tenth of a second and more.
const RANKED: u32 = 5_000;

const DOING: &str = "searching";

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

/// Puts the words into the index that were left to the next search, some at a time, so that nobody waits long.
fn catch_up(store: &sqlite::Sqlite) -> Result<()> {
    loop {
        let some: Vec<(i64, i64, String)> = store
            .lock()
            .prepare_cached(
                "SELECT i.id, i.blob, ifnull((SELECT what FROM place p WHERE p.item = i.id AND what <> 'session' LIMIT 1), '')
                 FROM pending JOIN item i ON i.id = pending.item WHERE i.blob IS NOT NULL ORDER BY i.id LIMIT 32",
            )
            .and_then(|mut it| {
                it.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
            })
            .map_err(failed(DOING))?;
        if some.is_empty() {
            return Ok(());
        }
        let mut words = Vec::new();
        for (item, blob, what) in some {
            let what = if what == What::Message.name() { What::Message } else { What::Output };
            let head = content::head(&store.lock(), blob)?;
            words.push((item, indexed(&readable(&head, what))));
        }
        let mut connection = store.lock();
        let transaction = write(&mut connection, DOING)?;
        for (item, words) in words {
            // Another process may have been faster, or have let go of it.
            let taken = transaction
                .prepare_cached("DELETE FROM pending WHERE item = ?1")
                .and_then(|mut it| it.execute([item]))
                .map_err(failed(DOING))?;
            if taken == 1 && !is_indexed(&transaction, item)? {
                index(&transaction, item, &words)?;
            }
        }
        transaction.commit().map_err(failed(DOING))?;
    }
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
        let mended = crate::json::mend(head);
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

/// A match before it is dressed: item and score.
type Match = (i64, f64);

pub(super) fn search(store: &sqlite::Sqlite, scope: &Scope, query: &Query) -> Result<Found> {
    let words = Words::parse(&query.text)?;
    catch_up(store)?;
    let limit = query.limit.clamp(1, MAX_HITS);
    let matches = |all: bool, limit: u32, offset: u32| {
        matching(&store.lock(), scope, query, &words.expression(all), limit, offset)
    };
    // One more than asked for tells whether there is more.
    let mut found = matches(true, limit + 1, query.offset)?;
    let none = found.is_empty() && (query.offset == 0 || matches(true, 1, 0)?.is_empty());
    let partial = none && words.len() > 1;
    if partial {
        found = matches(false, limit + 1, query.offset)?;
    }
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let mut hits = Vec::new();
    for found in found {
        hits.extend(dressed(store, query, &words, found)?);
    }
    Ok(Found { partial: partial && !hits.is_empty(), hits, next: more.then(|| query.offset + limit) })
}

/// The session and the kinds (as JSON) that a query is limited to.
fn limits(query: &Query) -> (Option<&str>, Option<String>) {
    let only = (!query.only.is_empty()).then(|| crate::json::compact(&query.only));
    match &query.reach {
        Reach::Session(session) => (Some(session.as_str()), only),
        Reach::Project | Reach::All => (None, only),
    }
}

fn matching(
    connection: &Connection,
    scope: &Scope,
    query: &Query,
    expression: &str,
    limit: u32,
    offset: u32,
) -> Result<Vec<Match>> {
    let (session, only) = limits(query);
    let project = match query.reach {
        Reach::Session(_) | Reach::Project => Some(scope.project.as_str()),
        Reach::All => None,
    };
    // What is of one session was stored at about the same time: no need to look through the rest.
    let (from, to) = match session {
        Some(session) => connection
            .prepare_cached("SELECT ifnull(min(item), 0), ifnull(max(item), 0) FROM place WHERE session = ?1")
            .and_then(|mut it| it.query_row([session], |row| Ok((row.get(0)?, row.get(1)?))))
            .map_err(failed(DOING))?,
        None => (0, i64::MAX),
    };
    connection
        .prepare_cached(
            "SELECT id, score FROM (
               SELECT i.id AS id, -bm25(words) AS score FROM words CROSS JOIN item i ON i.id = words.rowid
               WHERE words MATCH ?1 AND words.rowid BETWEEN ?9 AND ?10 AND i.owner = ?2
                 AND (?3 IS NULL OR i.project IN (?3, ''))
                 AND (ifnull(?4, ?5) IS NULL OR EXISTS (
                   SELECT 1 FROM place p WHERE p.item = i.id AND (?4 IS NULL OR p.session = ?4)
                     AND (?5 IS NULL OR p.what IN (SELECT value FROM json_each(?5)))))
               ORDER BY words.rowid DESC LIMIT ?8)
             ORDER BY score DESC, id DESC LIMIT ?6 OFFSET ?7",
        )
        .and_then(|mut it| {
            let params =
                params![expression, scope.owner, project, session, only, limit, offset, RANKED, from, to];
            it.query_map(params, |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        })
        .map_err(failed(DOING))
}

/// A result with its place and snippet; `None` when another process has just deleted it.
fn dressed(store: &sqlite::Sqlite, query: &Query, words: &Words, (id, score): Match) -> Result<Option<Hit>> {
    let connection = store.lock();
    let (session, only) = limits(query);
    let found = connection
        .prepare_cached(&format!(
            "SELECT {ENTRY}, i.blob FROM item i JOIN place p ON p.item = i.id
             WHERE i.id = ?1 AND (?2 IS NULL OR p.session = ?2)
               AND (?3 IS NULL OR p.what IN (SELECT value FROM json_each(?3)))
             ORDER BY p.at DESC LIMIT 1"
        ))
        .and_then(|mut it| {
            it.query_row(params![id, session, only], |row| Ok((entry_of(row)?, row.get(10)?))).optional()
        })
        .map_err(failed(DOING))?;
    let Some((entry, blob)): Option<(super::Entry, Option<i64>)> = found else { return Ok(None) };
    let snippet = match (entry.what, blob) {
        (What::Compaction, _) => words.snippet(&archive::summary(&connection, id)?),
        (What::Memory, _) => words.snippet(&remembered::content(&connection, id)?),
        (What::Session | What::Message | What::Output, Some(blob)) => {
            let head = content::head(&connection, blob)?;
            words.snippet(&readable(&head, entry.what))
        }
        (What::Session | What::Message | What::Output, None) => return Ok(None),
    };
    Ok(Some(Hit { entry, score, snippet }))
}
