//! Originals and compactions in the database.

use std::io::Read;
use std::sync::Mutex;

use rusqlite::{Connection, OptionalExtension as _, Row, Transaction, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::handle::identity;
use super::schema::{failed, write};
use super::sqlite::locked;
use super::{
    Applied, Batch, Body, Compaction, Digest, Entry, Handle, Original, Removed, Scope, SessionRef, Stored,
    What, search,
};
use crate::error::{Error, Kind, Result};
use crate::secrets::Veil;

/// Bytes of an original in one chunk. A session that only grew shares all its chunks but the last.
const CHUNK: usize = 1 << 20;

/// The compressor's level: its own default, a good bargain for text.
const LEVEL: i32 = 3;

const STORING: &str = "archiving originals";
const READING: &str = "reading the archive";

// ── Items: whatever has a handle ──

/// A row of `item` as its reader needs it.
pub(super) struct Item {
    pub(super) id: i64,
    pub(super) handle: Handle,
    pub(super) project: String,
    pub(super) sort: String,
    pub(super) blob: Option<i64>,
}

/// What a new item is made of.
pub(super) struct NewItem<'a> {
    pub(super) scope: &'a Scope,
    pub(super) sort: &'static str,
    pub(super) identity: Digest,
    pub(super) blob: Option<i64>,
    pub(super) tokens: Option<u64>,
    pub(super) bytes: u64,
    pub(super) at: i64,
}

/// The handle that an identity has, or the first that is free for it.
fn chosen(connection: &Connection, identity: &Digest) -> Result<(Handle, Option<i64>)> {
    let mut find = connection
        .prepare_cached("SELECT id, identity FROM item WHERE handle = ?1")
        .map_err(failed(READING))?;
    for n in 0.. {
        let handle = Handle::nth(identity, n);
        let found: Option<(i64, [u8; 32])> = find
            .query_row([handle.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()
            .map_err(failed(READING))?;
        match found {
            None => return Ok((handle, None)),
            Some((id, same)) if same == identity.0 => return Ok((handle, Some(id))),
            Some(_) => {}
        }
    }
    Err(Error::new(Kind::Bug, "choosing a handle: expected a free one"))
}

/// Inserts an item, or makes the one with the same identity new. Says whether it was there.
pub(super) fn put_item(transaction: &Transaction<'_>, new: &NewItem<'_>) -> Result<(i64, Handle, bool)> {
    let (handle, found) = chosen(transaction, &new.identity)?;
    if let Some(id) = found {
        transaction
            .prepare_cached(
                "UPDATE item SET at = max(at, ?2), tokens = ifnull(?3, tokens), blob = ifnull(?4, blob) WHERE id = ?1",
            )
            .and_then(|mut it| it.execute(params![id, new.at, new.tokens.map(signed), new.blob]))
            .map_err(failed(STORING))?;
        return Ok((id, handle, true));
    }
    transaction
        .prepare_cached(
            "INSERT INTO item (handle, identity, owner, project, sort, blob, tokens, bytes, at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )
        .and_then(|mut it| {
            it.execute(params![
                handle.as_str(),
                new.identity.0,
                new.scope.owner,
                new.scope.project,
                new.sort,
                new.blob,
                new.tokens.map(signed),
                signed(new.bytes),
                new.at
            ])
        })
        .map_err(failed(STORING))?;
    Ok((transaction.last_insert_rowid(), handle, false))
}

/// Where a session has an item.
pub(super) struct Place<'a> {
    pub(super) session: &'a str,
    pub(super) what: What,
    pub(super) call_id: &'a str,
    pub(super) tool: Option<&'a str>,
    pub(super) message: Option<u32>,
    pub(super) at: i64,
}

pub(super) fn put_place(transaction: &Transaction<'_>, item: i64, place: &Place<'_>) -> Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO place (item, session, what, call_id, tool, message, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT DO UPDATE SET tool = ?5, message = ?6, at = ?7 WHERE at <= ?7",
        )
        .and_then(|mut it| {
            it.execute(params![
                item,
                place.session,
                place.what.name(),
                place.call_id,
                place.tool,
                place.message,
                place.at
            ])
        })
        .map_err(failed(STORING))?;
    Ok(())
}

/// Counters in the database are signed; ours never reach the sign.
pub(super) fn signed(it: u64) -> i64 {
    i64::try_from(it).unwrap_or(i64::MAX)
}

fn unsigned(it: i64) -> u64 {
    u64::try_from(it).unwrap_or(0)
}

/// The item of that handle, if the scope may see it.
pub(super) fn item(connection: &Connection, scope: &Scope, handle: &str) -> Result<Item> {
    let (item, owner) = any_item(connection, handle)?;
    let same_project = item.project == scope.project || item.project.is_empty();
    if owner == scope.owner && same_project { Ok(item) } else { Err(refused(item.handle)) }
}

fn refused(handle: Handle) -> Error {
    Error::new(
        Kind::Refused,
        format!(
            "looking up {handle}: expected a handle of this project, found one of another project or user; run it \
             in that project, or with --scope all if it is yours"
        ),
    )
}

fn any_item(connection: &Connection, handle: &str) -> Result<(Item, String)> {
    let handle: Handle = handle.parse()?;
    connection
        .prepare_cached("SELECT id, project, sort, blob, owner FROM item WHERE handle = ?1")
        .and_then(|mut it| {
            it.query_row([handle.as_str()], |row| {
                let item = Item {
                    id: row.get(0)?,
                    handle,
                    project: row.get(1)?,
                    sort: row.get(2)?,
                    blob: row.get(3)?,
                };
                Ok((item, row.get(4)?))
            })
            .optional()
        })
        .map_err(failed(READING))?
        .ok_or_else(|| missing(handle))
}

fn missing(handle: Handle) -> Error {
    Error::new(
        Kind::Arguments,
        format!(
            "looking up {handle}: expected a handle that exists, found none of that name; `epitome recall` lists the \
             newest ones"
        ),
    )
}

/// Deletes an item and what hangs on it, but not its blob.
pub(super) fn delete_item(transaction: &Transaction<'_>, id: i64) -> Result<()> {
    for sql in ["DELETE FROM words WHERE rowid = ?1", "DELETE FROM item WHERE id = ?1"] {
        transaction
            .prepare_cached(sql)
            .and_then(|mut it| it.execute([id]))
            .map_err(failed("deleting from the store"))?;
    }
    Ok(())
}

/// The scope of any item of this owner.
pub(super) fn locate(connection: &Connection, handle: &str, owner: &str) -> Result<Scope> {
    let (item, found) = any_item(connection, handle)?;
    if found == owner { Ok(Scope { owner: found, project: item.project }) } else { Err(refused(item.handle)) }
}

pub(super) fn handles(connection: &Connection, scope: &Scope, contents: &[Digest]) -> Result<Vec<Handle>> {
    let handle = |it: &Digest| Ok(chosen(connection, &identity("original", scope, &[&it.0]))?.0);
    contents.iter().map(handle).collect()
}

// ── Storing ──

/// What a compaction keeps besides its summary.
#[derive(Serialize, Deserialize)]
struct Kept {
    session: SessionRef,
    profile: String,
    trigger: String,
    tokens_before: u64,
    tokens_after: u64,
    original: Option<Handle>,
    removed: Vec<Removed>,
    #[serde(default)]
    applied: Option<Applied>,
}

pub(super) fn put_all(
    connection: &mut Connection,
    scope: &Scope,
    batch: &Batch<'_>,
    veil: &Veil,
) -> Result<Stored> {
    let transaction = write(connection, STORING)?;
    let mut stored = Stored { handles: Vec::new(), digests: Vec::new(), compaction: None };
    let mut ids = Vec::new();
    for original in &batch.originals {
        let (id, handle, digest) = put_original(&transaction, scope, batch, original)?;
        ids.push(id);
        stored.handles.push(handle);
        stored.digests.push(digest);
    }
    if let Some(new) = &batch.compaction {
        let pairs = || batch.originals.iter().zip(&stored.handles);
        let kept = Kept {
            session: batch.session.clone(),
            profile: new.profile.clone(),
            trigger: new.trigger.clone(),
            tokens_before: new.tokens_before,
            tokens_after: new.tokens_after,
            original: pairs().find(|(it, _)| it.what == What::Session).map(|(_, handle)| *handle),
            removed: pairs()
                .filter(|(it, _)| it.what != What::Session)
                .map(|(it, handle)| Removed {
                    handle: *handle,
                    what: it.what,
                    message: it.message,
                    call_id: it.call_id.map(Into::into),
                    tool: it.tool.map(Into::into),
                    tokens: it.tokens,
                })
                .collect(),
            applied: None,
        };
        let summary = veil.cut(&new.summary);
        let body = crate::json::compact(&kept);
        let at = batch.at.to_le_bytes();
        let item = NewItem {
            scope,
            sort: "compaction",
            identity: identity("compaction", scope, &[&at, body.as_bytes(), summary.as_bytes()]),
            blob: None,
            tokens: None,
            bytes: summary.len() as u64,
            at: batch.at,
        };
        let (id, handle, known) = put_item(&transaction, &item)?;
        if !known {
            transaction
                .execute(
                    "INSERT INTO compaction (item, session, at, summary, body) VALUES (?1, ?2, ?3, ?4, ?5)",
                    params![id, batch.session.id, batch.at, summary, body],
                )
                .map_err(failed(STORING))?;
            for original in &ids {
                transaction
                    .prepare_cached("INSERT OR IGNORE INTO holds (compaction, original) VALUES (?1, ?2)")
                    .and_then(|mut it| it.execute([id, *original]))
                    .map_err(failed(STORING))?;
            }
            let place = Place {
                session: &batch.session.id,
                what: What::Compaction,
                call_id: "",
                tool: None,
                message: None,
                at: batch.at,
            };
            put_place(&transaction, id, &place)?;
            search::index(&transaction, id, &summary)?;
        }
        stored.compaction = Some(handle);
    }
    transaction.commit().map_err(failed(STORING))?;
    Ok(stored)
}

fn put_original(
    transaction: &Transaction<'_>,
    scope: &Scope,
    batch: &Batch<'_>,
    original: &Original<'_>,
) -> Result<(i64, Handle, Digest)> {
    let content = put_content(transaction, original.body)?;
    let item = NewItem {
        scope,
        sort: "original",
        identity: identity("original", scope, &[&content.digest.0]),
        blob: Some(content.blob),
        tokens: Some(original.tokens),
        bytes: content.size,
        at: batch.at,
    };
    let (id, handle, known) = put_item(transaction, &item)?;
    let place = Place {
        session: &batch.session.id,
        what: original.what,
        call_id: original.call_id.unwrap_or(""),
        tool: original.tool,
        message: original.message,
        at: batch.at,
    };
    put_place(transaction, id, &place)?;
    // A session's words are those of its messages.
    if original.what != What::Session && !(known && search::is_indexed(transaction, id)?) {
        search::index(transaction, id, &search::readable(&content.head, original.what))?;
    }
    Ok((id, handle, content.digest))
}

struct Content {
    blob: i64,
    digest: Digest,
    size: u64,
    /// Its beginning, as much as is searched.
    head: Vec<u8>,
}

/// Stores a content in chunks, in one pass over it, if it is not there.
fn put_content(transaction: &Transaction<'_>, body: Body<'_>) -> Result<Content> {
    let mut hasher = Sha256::new();
    let mut chunks = Vec::new();
    let mut head = Vec::new();
    let size = match body {
        Body::Bytes(bytes) => bytes.len() as u64,
        Body::Source(source) => source.len(),
    };
    let mut add = |bytes: &[u8]| -> Result<()> {
        hasher.update(bytes);
        let room = search::SEARCHED.saturating_sub(head.len()).min(bytes.len());
        head.extend_from_slice(&bytes[..room]);
        chunks.push(put_chunk(transaction, bytes)?);
        Ok(())
    };
    match body {
        Body::Bytes(bytes) => bytes.chunks(CHUNK).try_for_each(&mut add)?,
        Body::Source(source) => {
            let mut at = 0;
            while at < size {
                let end = size.min(at + CHUNK as u64);
                add(&source.bytes(at..end)?)?;
                at = end;
            }
        }
    }
    let digest = Digest(hasher.finalize().into());
    let found = transaction
        .prepare_cached("SELECT id FROM blob WHERE sha = ?1")
        .and_then(|mut it| it.query_row([digest.0], |row| row.get(0)).optional())
        .map_err(failed(STORING))?;
    let blob = match found {
        Some(blob) => blob,
        None => {
            transaction
                .prepare_cached("INSERT INTO blob (sha, size) VALUES (?1, ?2)")
                .and_then(|mut it| it.execute(params![digest.0, signed(size)]))
                .map_err(failed(STORING))?;
            let blob = transaction.last_insert_rowid();
            for (seq, chunk) in chunks.iter().enumerate() {
                transaction
                    .prepare_cached("INSERT INTO piece (blob, seq, chunk) VALUES (?1, ?2, ?3)")
                    .and_then(|mut it| it.execute(params![blob, seq as i64, chunk]))
                    .map_err(failed(STORING))?;
            }
            blob
        }
    };
    Ok(Content { blob, digest, size, head })
}

/// The chunk of these bytes. One that is there already is read, because it is about to be relied on, and mended when
/// the disk has spoilt it.
fn put_chunk(transaction: &Transaction<'_>, bytes: &[u8]) -> Result<i64> {
    let digest = Digest::of(bytes);
    let found: Option<(i64, Vec<u8>)> = transaction
        .prepare_cached("SELECT id, packed FROM chunk WHERE sha = ?1")
        .and_then(|mut it| it.query_row([digest.0], |row| Ok((row.get(0)?, row.get(1)?))).optional())
        .map_err(failed(STORING))?;
    let pack = || {
        zstd::bulk::compress(bytes, LEVEL).map_err(|error| {
            Error::new(Kind::Store, format!("{STORING}: expected to compress")).because(error)
        })
    };
    match found {
        Some((id, packed)) => {
            if zstd::bulk::decompress(&packed, bytes.len()).ok().as_deref() != Some(bytes) {
                transaction
                    .execute("UPDATE chunk SET packed = ?2 WHERE id = ?1", params![id, pack()?])
                    .map_err(failed(STORING))?;
            }
            Ok(id)
        }
        None => {
            let packed = pack()?;
            transaction
                .prepare_cached("INSERT INTO chunk (sha, size, packed) VALUES (?1, ?2, ?3)")
                .and_then(|mut it| it.execute(params![digest.0, bytes.len() as i64, packed]))
                .map_err(failed(STORING))?;
            Ok(transaction.last_insert_rowid())
        }
    }
}

// ── Reading ──

/// Delivers a blob chunk by chunk, each checked before it is.
pub(super) struct Reader<'a> {
    connection: &'a Mutex<Connection>,
    handle: Handle,
    chunks: std::vec::IntoIter<i64>,
    now: std::io::Cursor<Vec<u8>>,
    hasher: Sha256,
    expected: [u8; 32],
    ended: bool,
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let read = self.now.read(buffer)?;
            if read > 0 || buffer.is_empty() || self.ended {
                return Ok(read);
            }
            match self.chunks.next() {
                Some(id) => {
                    let chunk = chunk(&locked(self.connection), id).map_err(std::io::Error::other)?;
                    let bytes = chunk.ok_or_else(|| std::io::Error::other(corrupted(self.handle)))?;
                    self.hasher.update(&bytes);
                    self.now = std::io::Cursor::new(bytes);
                }
                None => {
                    let digest: [u8; 32] = std::mem::take(&mut self.hasher).finalize().into();
                    if digest != self.expected {
                        return Err(std::io::Error::other(corrupted(self.handle)));
                    }
                    self.ended = true;
                }
            }
        }
    }
}

/// A chunk's bytes; `None` when they are not what they were.
fn chunk(connection: &Connection, id: i64) -> Result<Option<Vec<u8>>> {
    let found: Option<([u8; 32], i64, Vec<u8>)> = connection
        .prepare_cached("SELECT sha, size, packed FROM chunk WHERE id = ?1")
        .and_then(|mut it| it.query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional())
        .map_err(failed(READING))?;
    Ok(found.and_then(|(sha, size, packed)| {
        let size = usize::try_from(size).ok().filter(|it| *it <= CHUNK)?;
        let bytes = zstd::bulk::decompress(&packed, size).ok()?;
        (Digest::of(&bytes).0 == sha).then_some(bytes)
    }))
}

fn corrupted(handle: Handle) -> Error {
    Error::new(
        Kind::Store,
        format!(
            "reading {handle}: expected the bytes that were stored, found them corrupted; nothing of it was \
             restored; `epitome doctor` says what else is damaged"
        ),
    )
}

/// Opens a blob for reading.
pub(super) fn open<'a>(connection: &'a Mutex<Connection>, handle: Handle, blob: i64) -> Result<Reader<'a>> {
    let guard = locked(connection);
    let expected: Option<[u8; 32]> = guard
        .prepare_cached("SELECT sha FROM blob WHERE id = ?1")
        .and_then(|mut it| it.query_row([blob], |row| row.get(0)).optional())
        .map_err(failed(READING))?;
    let chunks: Vec<i64> = guard
        .prepare_cached("SELECT chunk FROM piece WHERE blob = ?1 ORDER BY seq")
        .and_then(|mut it| it.query_map([blob], |row| row.get(0))?.collect())
        .map_err(failed(READING))?;
    Ok(Reader {
        connection,
        handle,
        chunks: chunks.into_iter(),
        now: std::io::Cursor::new(Vec::new()),
        hasher: Sha256::new(),
        expected: expected.ok_or_else(|| corrupted(handle))?,
        ended: false,
    })
}

pub(super) fn reader<'a>(
    connection: &'a Mutex<Connection>,
    scope: &Scope,
    handle: &str,
) -> Result<Box<dyn Read + Send + 'a>> {
    let mut item = item(&locked(connection), scope, handle)?;
    if item.sort == "compaction" {
        let compaction = compaction(&locked(connection), scope, handle)?;
        let original = compaction.original.ok_or_else(|| {
            let found = "found a compaction of which no session was stored";
            Error::new(Kind::Arguments, format!("reading {}: expected an original, {found}", item.handle))
        })?;
        item = self::item(&locked(connection), scope, original.as_str())?;
    }
    match (item.blob, item.sort.as_str()) {
        (Some(blob), _) => Ok(Box::new(open(connection, item.handle, blob)?)),
        (None, "memory") => {
            let content = super::remembered::content(&locked(connection), item.id)?;
            Ok(Box::new(std::io::Cursor::new(content.into_bytes())))
        }
        (None, _) => Err(missing(item.handle)),
    }
}

/// The beginning of a blob, as much as is searched; up to what is damaged, which is told when it is read.
pub(super) fn head(connection: &Connection, blob: i64) -> Result<Vec<u8>> {
    let chunks: Vec<i64> = connection
        .prepare_cached("SELECT chunk FROM piece WHERE blob = ?1 ORDER BY seq LIMIT ?2")
        .and_then(|mut it| {
            it.query_map(params![blob, search::SEARCHED.div_ceil(CHUNK) as i64], |row| row.get(0))?.collect()
        })
        .map_err(failed(READING))?;
    let mut out = Vec::new();
    for id in chunks {
        match chunk(connection, id)? {
            Some(bytes) => out.extend(bytes),
            None => break,
        }
    }
    Ok(out)
}

/// The summary of a compaction.
pub(super) fn summary(connection: &Connection, item: i64) -> Result<String> {
    connection
        .prepare_cached("SELECT summary FROM compaction WHERE item = ?1")
        .and_then(|mut it| it.query_row([item], |row| row.get(0)))
        .map_err(failed(READING))
}

/// The columns that [`entry_of`] reads.
pub(super) const ENTRY: &str =
    "i.handle, p.what, i.project, p.session, p.message, p.call_id, p.tool, i.tokens, i.bytes, i.at";

pub(super) fn entry_of(row: &Row<'_>) -> rusqlite::Result<Entry> {
    let handle: String = row.get(0)?;
    let what: String = row.get(1)?;
    let odd = |column: usize, what: &str| {
        let error = format!("found {what:?}");
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, error.into())
    };
    let filled = |it: String| Some(it).filter(|it| !it.is_empty());
    Ok(Entry {
        handle: Handle::parse(&handle).ok_or_else(|| odd(0, &handle))?,
        what: What::ALL.into_iter().find(|it| it.name() == what).ok_or_else(|| odd(1, &what))?,
        project: row.get(2)?,
        session: filled(row.get(3)?),
        message: row.get(4)?,
        call_id: filled(row.get(5)?),
        tool: row.get(6)?,
        tokens: row.get::<_, Option<i64>>(7)?.map(unsigned),
        bytes: unsigned(row.get(8)?),
        at: row.get(9)?,
    })
}

pub(super) fn entry(connection: &Connection, scope: &Scope, handle: &str) -> Result<Entry> {
    let item = item(connection, scope, handle)?;
    connection
        .prepare_cached(&format!(
            "SELECT {ENTRY} FROM item i JOIN place p ON p.item = i.id WHERE i.id = ?1 ORDER BY p.at DESC LIMIT 1"
        ))
        .and_then(|mut it| it.query_row([item.id], entry_of).optional())
        .map_err(failed(READING))?
        .ok_or_else(|| missing(item.handle))
}

pub(super) fn newest(
    connection: &Connection,
    scope: &Scope,
    session: Option<&str>,
    limit: u32,
    offset: u32,
) -> Result<Vec<Entry>> {
    connection
        .prepare_cached(&format!(
            "SELECT {ENTRY} FROM place p JOIN item i ON i.id = p.item
             WHERE i.owner = ?1 AND i.project = ?2 AND i.sort = 'original' AND p.what <> 'session'
               AND (?3 IS NULL OR p.session = ?3)
             ORDER BY p.at DESC, p.message DESC, i.id DESC LIMIT ?4 OFFSET ?5"
        ))
        .and_then(|mut it| {
            it.query_map(params![scope.owner, scope.project, session, limit, offset], entry_of)?.collect()
        })
        .map_err(failed(READING))
}

// ── Compactions ──

pub(super) fn finish(
    connection: &mut Connection,
    scope: &Scope,
    handle: &str,
    applied: &Applied,
) -> Result<()> {
    let doing = "noting what became of a compaction";
    let item = item(connection, scope, handle)?;
    let transaction = write(connection, doing)?;
    let changed = transaction
        .execute(
            "UPDATE compaction SET body = json_set(body, '$.applied', json(?2)) WHERE item = ?1",
            params![item.id, crate::json::compact(applied)],
        )
        .map_err(failed(doing))?;
    transaction.commit().map_err(failed(doing))?;
    if changed == 1 { Ok(()) } else { Err(missing(item.handle)) }
}

fn compaction_of(row: &Row<'_>) -> rusqlite::Result<(String, i64, String, String)> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
}

fn unpacked((handle, at, summary, body): (String, i64, String, String)) -> Result<Compaction> {
    let handle: Handle = handle.parse()?;
    let kept: Kept = serde_json::from_str(&body).map_err(|error| corrupted(handle).because(error))?;
    Ok(Compaction {
        handle,
        at,
        session: kept.session,
        profile: kept.profile,
        trigger: kept.trigger,
        tokens_before: kept.tokens_before,
        tokens_after: kept.tokens_after,
        original: kept.original,
        removed: kept.removed,
        summary,
        applied: kept.applied,
    })
}

pub(super) fn compaction(connection: &Connection, scope: &Scope, handle: &str) -> Result<Compaction> {
    let item = item(connection, scope, handle)?;
    let found = connection
        .prepare_cached(
            "SELECT i.handle, c.at, c.summary, c.body FROM compaction c JOIN item i ON i.id = c.item WHERE i.id = ?1",
        )
        .and_then(|mut it| it.query_row([item.id], compaction_of).optional())
        .map_err(failed(READING))?;
    found.map(unpacked).unwrap_or_else(|| {
        let found = format!("expected the handle of a compaction, found that of a {}", item.sort);
        Err(Error::new(Kind::Arguments, format!("looking up {}: {found}", item.handle)))
    })
}

pub(super) fn compactions(
    connection: &Connection,
    scope: &Scope,
    session: Option<&str>,
    limit: u32,
) -> Result<Vec<Compaction>> {
    let found: Vec<_> = connection
        .prepare_cached(
            "SELECT i.handle, c.at, c.summary, c.body FROM compaction c JOIN item i ON i.id = c.item
             WHERE i.owner = ?1 AND i.project = ?2 AND (?3 IS NULL OR c.session = ?3)
             ORDER BY c.at DESC, c.item DESC LIMIT ?4",
        )
        .and_then(|mut it| {
            it.query_map(params![scope.owner, scope.project, session, limit], compaction_of)?.collect()
        })
        .map_err(failed(READING))?;
    found.into_iter().map(unpacked).collect()
}

#[cfg(test)]
mod tests {
    use crate::store::{Sqlite, Store as _, Where};

    use super::*;

    #[test]
    fn two_contents_never_share_a_handle() {
        let store = Sqlite::open(&Where::Memory, Veil::default()).unwrap();
        let scope = Scope { owner: "me".into(), project: "/p".into() };
        let first = Handle::of(&scope, &Digest::of(b"late"));
        // Somebody else's content is in the place, as if its hash began with the same 50 bits.
        let other = Scope { owner: "you".into(), project: "/q".into() };
        let taken = NewItem {
            scope: &other,
            sort: "original",
            identity: Digest([7; 32]),
            blob: None,
            tokens: None,
            bytes: 0,
            at: 0,
        };
        {
            let mut connection = store.lock();
            let transaction = write(&mut connection, STORING).unwrap();
            let (id, ..) = put_item(&transaction, &taken).unwrap();
            transaction
                .execute("UPDATE item SET handle = ?2 WHERE id = ?1", params![id, first.as_str()])
                .unwrap();
            transaction.commit().unwrap();
        }
        let announced = store.handles(&scope, &[Digest::of(b"late")]).unwrap();
        let original = Original {
            what: What::Output,
            body: Body::Bytes(b"late"),
            message: None,
            call_id: None,
            tool: None,
            tokens: 1,
        };
        let batch = Batch { originals: vec![original], ..Batch::default() };
        let stored = store.put_all(&scope, &batch).unwrap();
        assert_ne!(stored.handles[0], first);
        assert_eq!(stored.handles, announced);
        assert_eq!(store.put_all(&scope, &batch).unwrap(), stored);
        assert_eq!(store.restore(&scope, stored.handles[0].as_str()).unwrap(), b"late");
        assert_eq!(store.restore(&scope, first.as_str()).unwrap_err().kind(), Kind::Refused);
    }
}
