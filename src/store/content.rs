//! Contents in the database: chunks that are compressed, checked, and stored once.

use std::io::Read;
use std::sync::Mutex;

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use sha2::{Digest as _, Sha256};

use super::item::signed;
use super::schema::failed;
use super::sqlite::locked;
use super::{Body, Digest, Handle, search};
use crate::error::{Error, Kind, Result};

/// Bytes of an original in one chunk. A session that only grew shares all its chunks but the last.
const CHUNK: usize = 1 << 20;

/// The compressor's level: its own default, a good bargain for text.
const LEVEL: i32 = 3;

const STORING: &str = "archiving originals";
const READING: &str = "reading the archive";

/// A content that was stored.
pub(super) struct Content {
    pub(super) blob: i64,
    pub(super) digest: Digest,
    pub(super) size: u64,
    /// Its beginning, as much as is searched.
    pub(super) head: Vec<u8>,
}

/// Stores a content in chunks, in one pass over it, if it is not there.
pub(super) fn put_content(transaction: &Transaction<'_>, body: Body<'_>) -> Result<Content> {
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

pub(super) fn corrupted(handle: Handle) -> Error {
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
