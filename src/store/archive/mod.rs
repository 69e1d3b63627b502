//! Originals and compactions in the database.

pub(crate) mod batch;
pub(crate) mod item;

use std::io::{BufReader, Read};

use serde_json::{Value, json};

use crate::store::Store;
use crate::store::content::chunks::{READING, corrupted, open};
use crate::store::content::{Packer, Prepared, STORING, put_content, put_packs};
use crate::store::database::sql::{Connection, Pool, Row, SqlResult, Transaction, locked, params, write};
use crate::store::handle::identity;
use crate::store::search::index;
use crate::store::search::words::indexed;
use crate::store::{
    Applied, Batch, Compaction, Digest, Entry, Handle, ItemKind, Original, Range, Removed, Scope,
    SearchExtent, Slice, Stored, range, unwrapped,
};
use history::error::{Error, ErrorKind, Result};
use history::json::set;
use history::secrets::Redactor;
use item::{ENTRY, ItemPlace, NewItem, entry_of, handle_for, item, missing, put_item, put_place};

// ── Storing ──

/// Maximum bytes of text that are indexed while storing: a quarter of a second's work. The next search
/// indexes the rest, so that a compaction of any size is not kept waiting.
const AT_ONCE: u64 = 8 << 20;

/// Maximum tries to store, while another process deletes chunks that are shared.
const TRIES: usize = 5;

/// An original with everything that can be computed before the lock is taken.
struct Ready<'a> {
    original: &'a Original<'a>,
    content: Prepared,
    identity: Digest,
    words: Words,
}

/// How an original's words get into the index.
enum Words {
    /// Not here: they are in the index already, or it is a session, which is searched by its passages.
    None,
    Now(String),
    /// The next search indexes them.
    Later,
}

/// `left`: bytes that may still be indexed at once.
fn ready<'a>(
    connection: &Pool,
    packer: &mut Packer<'_>,
    scope: &Scope,
    original: &'a Original<'a>,
    left: &mut u64,
) -> Result<Ready<'a>> {
    let content = packer.add(&mut original.body.reader())?;
    let identity = identity("original", scope, &[&content.digest.0]);
    let words = if original.kind == ItemKind::Session || is_known(&locked(connection), &identity)? {
        Words::None
    } else if let Some(rest) = left.checked_sub(content.size) {
        *left = rest;
        Words::Now(indexed(&index::readable(&original.body.head()?, original.kind)))
    } else {
        Words::Later
    };
    Ok(Ready { original, content, identity, words })
}

/// Whether an item with that identity exists and is indexed.
fn is_known(connection: &Connection, identity: &Digest) -> Result<bool> {
    match handle_for(connection, identity)? {
        (_, Some(id)) => index::is_indexed(connection, id),
        (_, None) => Ok(false),
    }
}

impl Store {
    /// Stores everything or nothing, and returns when it is on disk. Storing the same again changes nothing
    /// but times and message numbers.
    pub fn put_all(&self, scope: &Scope, batch: &Batch<'_>) -> Result<Stored> {
        self.check_writable()?;
        let redactor = &self.redactor;
        let connection = &self.pool;
        for _ in 0..TRIES {
            if let Some(stored) = try_put_all(connection, scope, batch, redactor)? {
                return Ok(stored);
            }
        }
        let found = "found that another process keeps deleting what they share with older ones; try again";
        Err(Error::new(ErrorKind::Locked, format!("{STORING}: {found}")))
    }

    pub fn entry(&self, scope: &Scope, handle: &str) -> Result<Entry> {
        let connection = &*self.lock();
        let item = item(connection, scope, handle)?;
        let sql = format!(
            "SELECT {ENTRY} FROM item i JOIN place p ON p.item = i.id WHERE i.id = ?1 ORDER BY p.at DESC LIMIT 1"
        );
        connection.query_optional(READING, &sql, [item.id], entry_of)?.ok_or_else(|| missing(item.handle))
    }

    /// The originals of a session (or of the project), newest first, without the session itself.
    pub fn newest(
        &self,
        scope: &Scope,
        session: Option<&str>,
        limit: u32,
        offset: u32,
    ) -> Result<Vec<Entry>> {
        let connection = &*self.lock();
        let is_its = of_session("p", session);
        let sql = format!(
            "SELECT {ENTRY} FROM place p JOIN item i ON i.id = p.item
             WHERE i.owner = ?1 AND i.project = ?2 AND i.sort = 'original' AND p.what <> 'session' AND {is_its}
             ORDER BY p.at DESC, p.message DESC, i.id DESC LIMIT ?4 OFFSET ?5"
        );
        connection.query_map(
            READING,
            &sql,
            params![scope.owner, scope.project, session, limit, offset],
            entry_of,
        )
    }

    /// Whole sessions within `extent`, newest first; every stored version of each.
    pub fn sessions(&self, scope: &Scope, extent: &SearchExtent, limit: u32) -> Result<Vec<Entry>> {
        let connection = &*self.lock();
        let (project, session) = match extent {
            SearchExtent::All => (None, None),
            SearchExtent::Project => (Some(scope.project.as_str()), None),
            SearchExtent::Session(id) => (Some(scope.project.as_str()), Some(id.as_str())),
        };
        let is_its = of_session("p", session);
        let sql = format!(
            "SELECT {ENTRY} FROM place p JOIN item i ON i.id = p.item
             WHERE i.owner = ?1 AND (CAST(?2 AS TEXT) IS NULL OR i.project = ?2) AND i.sort = 'original' AND p.what = 'session'
               AND {is_its}
             ORDER BY p.at DESC, i.id DESC LIMIT ?4"
        );
        connection.query_map(READING, &sql, params![scope.owner, project, session, limit], entry_of)
    }

    /// The compactions of a session (or of the project), newest first.
    pub fn compactions(&self, scope: &Scope, session: Option<&str>, limit: u32) -> Result<Vec<Compaction>> {
        let connection = &*self.lock();
        let is_its = of_session("c", session);
        let found: Vec<_> = connection.query_map(
            READING,
            &format!(
                "SELECT i.handle, c.at, c.summary, c.body FROM compaction c JOIN item i ON i.id = c.item
                 WHERE i.owner = ?1 AND i.project = ?2 AND {is_its}
                 ORDER BY c.at DESC, c.item DESC LIMIT ?4",
            ),
            params![scope.owner, scope.project, session, limit],
            compaction_of,
        )?;
        found.into_iter().map(unpacked).collect()
    }

    /// Records how a compaction was applied.
    pub fn finish(&self, scope: &Scope, handle: &str, applied: &Applied) -> Result<()> {
        let connection = &mut *self.lock();
        let doing = "recording the result of a compaction";
        let item = item(connection, scope, handle)?;
        let transaction = write(connection, &scope.owner, doing)?;
        let sql = "SELECT body FROM compaction WHERE item = ?1";
        let body: Option<String> = transaction.query_optional(doing, sql, [item.id], |row| row.get(0))?;
        let mut kept = kept(item.handle, &body.ok_or_else(|| missing(item.handle))?)?;
        set(&mut kept, "applied", json!(applied));
        let sql = "UPDATE compaction SET body = ?2 WHERE item = ?1";
        transaction.execute(doing, sql, params![item.id, kept.to_string()])?;
        transaction.commit()
    }

    /// Reads an original; for a compaction the session before it, for a memory its text. Bytes that do not
    /// match their digest are never returned. An [`std::io::Error`] of the reader holds an [`Error`] of this
    /// crate.
    pub fn reader<'a>(&'a self, scope: &Scope, handle: &str) -> Result<Box<dyn Read + Send + 'a>> {
        let connection = &self.pool;
        let mut item = item(&locked(connection), scope, handle)?;
        if item.sort == "compaction" {
            let compaction = self.compaction(scope, handle)?;
            let original = compaction.original.ok_or_else(|| {
                let found = "found a compaction whose session was not stored";
                let what = format!("reading {}: expected an original, {found}", item.handle);
                Error::new(ErrorKind::Arguments, what)
            })?;
            item = item::item(&locked(connection), scope, original.as_str())?;
        }
        match (item.content, item.sort.as_str()) {
            (Some(content), _) => Ok(Box::new(open(connection, item.handle, content)?)),
            (None, "memory") => {
                let content = crate::store::memory::remembered::content(&locked(connection), item.id)?;
                Ok(Box::new(std::io::Cursor::new(content.into_bytes())))
            }
            (None, _) => Err(missing(item.handle)),
        }
    }

    pub fn compaction(&self, scope: &Scope, handle: &str) -> Result<Compaction> {
        let connection = &*self.lock();
        let item = item(connection, scope, handle)?;
        let sql = "SELECT i.handle, c.at, c.summary, c.body FROM compaction c JOIN item i ON i.id = c.item WHERE i.id = ?1";
        let found = connection.query_optional(READING, sql, [item.id], compaction_of)?;
        found.map(unpacked).unwrap_or_else(|| {
            let found = format!("expected the handle of a compaction, found that of a {}", item.sort);
            Err(Error::new(ErrorKind::Arguments, format!("looking up {}: {found}", item.handle)))
        })
    }

    /// An original byte for byte, in memory.
    pub fn restore(&self, scope: &Scope, handle: &str) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.reader(scope, handle)?.read_to_end(&mut out).map_err(unwrapped)?;
        Ok(out)
    }

    /// A part of an original (of a compaction: its session; of a memory: its text), at most `limit` tokens by
    /// `count`.
    pub fn recall(
        &self,
        scope: &Scope,
        handle: &str,
        range: &Range,
        limit: u64,
        count: &dyn Fn(&str) -> u64,
    ) -> Result<Slice> {
        let mut reader = BufReader::with_capacity(64 * 1024, self.reader(scope, handle)?);
        range::slice(&mut reader, range, limit, count).map_err(unwrapped)
    }
}

/// `None`: another process has deleted a chunk in the meantime.
fn try_put_all(
    connection: &Pool,
    scope: &Scope,
    batch: &Batch<'_>,
    redactor: &Redactor,
) -> Result<Option<Stored>> {
    // Hashing and compressing take long, so they come before the lock.
    let mut left = AT_ONCE;
    let mut packer = Packer::new(connection, &scope.owner);
    let ready: Vec<Ready<'_>> = batch
        .originals
        .iter()
        .map(|it| ready(connection, &mut packer, scope, it, &mut left))
        .collect::<Result<_>>()?;
    let packs = packer.finish();
    let mut connection = locked(connection);
    let transaction = write(&mut connection, &scope.owner, STORING)?;
    put_packs(&transaction, &scope.owner, &packs)?;
    let mut stored = Stored { handles: Vec::new(), digests: Vec::new(), compaction: None };
    let mut ids = Vec::new();
    for it in &ready {
        let Some(content) = put_content(&transaction, &scope.owner, &it.content)? else { return Ok(None) };
        let (id, handle) = put_original(&transaction, scope, batch, it, content)?;
        ids.push(id);
        stored.handles.push(handle);
        stored.digests.push(it.content.digest);
    }
    stored.compaction = put_compaction(&transaction, scope, batch, &stored.handles, &ids, redactor)?;
    transaction.commit()?;
    Ok(Some(stored))
}

/// Stores the compaction of a batch, if it has one. `handles` and `ids` are those of the batch's originals.
fn put_compaction(
    transaction: &Transaction<'_>,
    scope: &Scope,
    batch: &Batch<'_>,
    handles: &[Handle],
    ids: &[i64],
    redactor: &Redactor,
) -> Result<Option<Handle>> {
    let Some(new) = &batch.compaction else { return Ok(None) };
    let pairs = || batch.originals.iter().zip(handles);
    let removed = pairs().filter(|(it, _)| it.kind != ItemKind::Session).map(|(it, handle)| Removed {
        handle: *handle,
        kind: it.kind,
        message: it.message,
        call_id: it.call_id.map(Into::into),
        tool: it.tool.map(Into::into),
        tokens: it.tokens,
    });
    // The fields of a [`Compaction`] that have no column of their own.
    let mut body = json!({
        "session": batch.session, "profile": new.profile, "trigger": new.trigger,
        "tokens_before": new.tokens_before, "tokens_after": new.tokens_after,
        "original": pairs().find(|(it, _)| it.kind == ItemKind::Session).map(|it| it.1),
        "removed": removed.collect::<Vec<_>>(), "applied": null,
    });
    if !new.facts.is_empty() {
        set(&mut body, "facts", json!(new.facts));
    }
    let summary = redactor.redact(&new.summary);
    let body = body.to_string();
    let at = batch.at.to_le_bytes();
    let item = NewItem {
        scope,
        sort: "compaction",
        identity: identity("compaction", scope, &[&at, body.as_bytes(), summary.as_bytes()]),
        content: None,
        tokens: None,
        bytes: summary.len() as u64,
        at: batch.at,
    };
    let (id, handle, known) = put_item(transaction, &item)?;
    if !known {
        let sql = "INSERT INTO compaction (item, session, at, summary, body) VALUES (?1, ?2, ?3, ?4, ?5)";
        transaction.execute(STORING, sql, params![id, batch.session.id, batch.at, summary, body])?;
        for original in ids {
            let sql = "INSERT INTO holds (compaction, original) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
            transaction.execute(STORING, sql, [id, *original])?;
        }
        let place = ItemPlace {
            session: &batch.session.id,
            kind: ItemKind::Compaction,
            call_id: "",
            tool: None,
            message: None,
            at: batch.at,
        };
        put_place(transaction, id, &place)?;
        index::index(transaction, id, &indexed(&summary))?;
    }
    Ok(Some(handle))
}

fn put_original(
    transaction: &Transaction<'_>,
    scope: &Scope,
    batch: &Batch<'_>,
    ready: &Ready<'_>,
    content: i64,
) -> Result<(i64, Handle)> {
    let original = ready.original;
    let item = NewItem {
        scope,
        sort: "original",
        identity: ready.identity,
        content: Some(content),
        tokens: Some(original.tokens),
        bytes: ready.content.size,
        at: batch.at,
    };
    let (id, handle, _) = put_item(transaction, &item)?;
    let place = ItemPlace {
        session: &batch.session.id,
        kind: original.kind,
        call_id: original.call_id.unwrap_or(""),
        tool: original.tool,
        message: original.message,
        at: batch.at,
    };
    put_place(transaction, id, &place)?;
    match &ready.words {
        Words::Now(words) if !index::is_indexed(transaction, id)? => index::index(transaction, id, words)?,
        Words::Now(_) => {}
        Words::Later => index::index_later(transaction, id)?,
        // Another process may have deleted the item and its words since `is_known`.
        Words::None if original.kind != ItemKind::Session && !index::is_indexed(transaction, id)? => {
            index::index_later(transaction, id)?;
        }
        Words::None => {}
    }
    Ok((id, handle))
}

// ── Reading ──

pub(super) fn summary(connection: &Connection, item: i64) -> Result<String> {
    connection.query_row(READING, "SELECT summary FROM compaction WHERE item = ?1", [item], |row| row.get(0))
}

/// SQL for: a row is of session `?3`, if one is named. Two forms, so that the database uses the index on
/// sessions.
fn of_session(table: &str, session: Option<&str>) -> String {
    match session {
        Some(_) => format!("{table}.session = ?3"),
        None => "CAST(?3 AS TEXT) IS NULL".to_owned(),
    }
}

// ── Compactions ──

fn compaction_of(row: &Row<'_>) -> SqlResult<(String, i64, String, String)> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
}

/// A compaction's stored JSON: everything but its handle, time and summary.
fn kept(handle: Handle, body: &str) -> Result<Value> {
    serde_json::from_str(body).map_err(|error| corrupted(handle, "its record corrupted").because(error))
}

fn unpacked((handle, at, summary, body): (String, i64, String, String)) -> Result<Compaction> {
    let handle: Handle = handle.parse()?;
    let mut kept = kept(handle, &body)?;
    for (key, value) in [("handle", json!(handle)), ("at", at.into()), ("summary", summary.into())] {
        set(&mut kept, key, value);
    }
    serde_json::from_value(kept).map_err(|error| corrupted(handle, "its record corrupted").because(error))
}

#[cfg(test)]
mod tests {
    use crate::store::{Body, Store, StoreAt};

    use super::*;

    #[test]
    fn two_contents_never_share_a_handle() {
        let store = Store::open(&StoreAt::Memory, Redactor::default()).unwrap();
        let scope = Scope { owner: "me".into(), project: "/p".into() };
        let first = Handle::of(&scope, &Digest::of(b"late"));
        // Another user's content has that handle already, as if its hash began with the same 50 bits.
        let other = Scope { owner: "you".into(), project: "/q".into() };
        let taken = NewItem {
            scope: &other,
            sort: "original",
            identity: Digest([7; 32]),
            content: None,
            tokens: None,
            bytes: 0,
            at: 0,
        };
        {
            let mut connection = store.lock();
            let transaction = write(&mut connection, "you", STORING).unwrap();
            let (id, ..) = put_item(&transaction, &taken).unwrap();
            transaction
                .execute(STORING, "UPDATE item SET handle = ?2 WHERE id = ?1", params![id, first.as_str()])
                .unwrap();
            transaction.commit().unwrap();
        }
        let original = Original::new(ItemKind::Output, Body::Bytes(b"late"), 1);
        let batch = Batch { originals: vec![original], ..Batch::default() };
        let stored = store.put_all(&scope, &batch).unwrap();
        assert_ne!(stored.handles[0], first);
        assert_eq!(store.put_all(&scope, &batch).unwrap(), stored);
        assert_eq!(store.restore(&scope, stored.handles[0].as_str()).unwrap(), b"late");
        assert_eq!(store.restore(&scope, first.as_str()).unwrap_err().kind(), ErrorKind::Arguments);
    }
}
