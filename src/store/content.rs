//! Contents in the database: chunks that are compressed, checked, and stored once.

use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;
use std::sync::Mutex;

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};
use sha2::{Digest as _, Sha256};

use super::item::signed;
use super::schema::{failed, locked};
use super::{Body, Digest, Handle};
use history::error::{Error, Kind, Result};

/// Bytes of a content that are searched: its beginning. Bounds what one giant log can cost.
pub(super) const SEARCHED: usize = 4 << 20;

/// Bytes of an original in one chunk. A session that only grew shares all its chunks but the last.
const CHUNK: usize = 1 << 20;

/// The compressor's level: its own default, a good bargain for text.
const LEVEL: i32 = 3;

const STORING: &str = "archiving originals";
const READING: &str = "reading the archive";

/// A content made ready to be stored, while others may write: hashed, and compressed where it is new.
pub(super) struct Prepared<'a> {
    body: Body<'a>,
    chunks: Vec<Chunk>,
    pub(super) digest: Digest,
    pub(super) size: u64,
}

struct Chunk {
    digest: Digest,
    len: usize,
    /// Compressed; `None` when it lies there already, whole.
    packed: Option<Vec<u8>>,
}

impl Body<'_> {
    fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Source(source) => source.len(),
        }
    }

    /// A range of it that is there.
    fn part(&self, range: Range<u64>) -> Result<Cow<'_, [u8]>> {
        match self {
            Self::Bytes(bytes) => {
                let part = bytes.get(range.start as usize..range.end as usize).unwrap_or_default();
                Ok(Cow::Borrowed(part))
            }
            Self::Source(source) => source.bytes(range).map(Cow::Owned),
        }
    }

    /// Its beginning, as much as is searched.
    pub(super) fn head(&self) -> Result<Cow<'_, [u8]>> {
        self.part(0..self.len().min(SEARCHED as u64))
    }

    fn chunk(&self, number: usize) -> Result<Cow<'_, [u8]>> {
        let from = number as u64 * CHUNK as u64;
        self.part(from..self.len().min(from + CHUNK as u64))
    }
}

/// Hashes a content and compresses what of it is not there yet, in one pass over it.
pub(super) fn prepare<'a>(connection: &Mutex<Connection>, body: Body<'a>) -> Result<Prepared<'a>> {
    let size = body.len();
    let mut whole = Sha256::new();
    let mut chunks = Vec::new();
    for number in 0..size.div_ceil(CHUNK as u64) as usize {
        let bytes = body.chunk(number)?;
        // The one chunk of a small content is the content.
        if size > CHUNK as u64 {
            whole.update(&bytes);
        }
        let digest = Digest::of(&bytes);
        let packed = if is_there(connection, &digest, &bytes)? { None } else { Some(pack(&bytes)?) };
        chunks.push(Chunk { digest, len: bytes.len(), packed });
    }
    let digest = match chunks.as_slice() {
        [only] => only.digest,
        _ => Digest(whole.finalize().into()),
    };
    Ok(Prepared { body, chunks, digest, size })
}

/// Whether a chunk lies there with these bytes. It is read, because it is about to be relied on.
fn is_there(connection: &Mutex<Connection>, digest: &Digest, bytes: &[u8]) -> Result<bool> {
    let packed: Option<Vec<u8>> = locked(connection)
        .prepare_cached("SELECT packed FROM chunk WHERE sha = ?1")
        .and_then(|mut it| it.query_row([digest.0], |row| row.get(0)).optional())
        .map_err(failed(STORING))?;
    Ok(packed.is_some_and(|it| zstd::bulk::decompress(&it, bytes.len()).ok().as_deref() == Some(bytes)))
}

fn pack(bytes: &[u8]) -> Result<Vec<u8>> {
    zstd::bulk::compress(bytes, LEVEL)
        .map_err(|error| Error::new(Kind::Store, format!("{STORING}: expected to compress")).because(error))
}

/// Stores a content that was prepared; its blob.
pub(super) fn put_content(transaction: &Transaction<'_>, content: &Prepared<'_>) -> Result<i64> {
    let chunks: Vec<i64> = content
        .chunks
        .iter()
        .enumerate()
        .map(|(number, chunk)| put_chunk(transaction, content.body, number, chunk))
        .collect::<Result<_>>()?;
    let found = transaction
        .prepare_cached("SELECT id FROM blob WHERE sha = ?1")
        .and_then(|mut it| it.query_row([content.digest.0], |row| row.get(0)).optional())
        .map_err(failed(STORING))?;
    if let Some(blob) = found {
        return Ok(blob);
    }
    transaction
        .prepare_cached("INSERT INTO blob (sha, size) VALUES (?1, ?2)")
        .and_then(|mut it| it.execute(params![content.digest.0, signed(content.size)]))
        .map_err(failed(STORING))?;
    let blob = transaction.last_insert_rowid();
    for (seq, chunk) in chunks.iter().enumerate() {
        transaction
            .prepare_cached("INSERT INTO piece (blob, seq, chunk) VALUES (?1, ?2, ?3)")
            .and_then(|mut it| it.execute(params![blob, seq as i64, chunk]))
            .map_err(failed(STORING))?;
    }
    Ok(blob)
}

fn put_chunk(transaction: &Transaction<'_>, body: Body<'_>, number: usize, chunk: &Chunk) -> Result<i64> {
    let found: Option<i64> = transaction
        .prepare_cached("SELECT id FROM chunk WHERE sha = ?1")
        .and_then(|mut it| it.query_row([chunk.digest.0], |row| row.get(0)).optional())
        .map_err(failed(STORING))?;
    let insert = |packed: &[u8]| {
        transaction
            .prepare_cached("INSERT INTO chunk (sha, size, packed) VALUES (?1, ?2, ?3)")
            .and_then(|mut it| it.execute(params![chunk.digest.0, chunk.len as i64, packed]))
            .map_err(failed(STORING))?;
        Ok(transaction.last_insert_rowid())
    };
    match (found, &chunk.packed) {
        (Some(id), None) => Ok(id),
        // The disk has spoilt it, or another process has stored the same in the meantime.
        (Some(id), Some(packed)) => {
            transaction
                .prepare_cached("UPDATE chunk SET packed = ?2 WHERE id = ?1")
                .and_then(|mut it| it.execute(params![id, packed]))
                .map_err(failed(STORING))?;
            Ok(id)
        }
        (None, Some(packed)) => insert(packed),
        // Another process has let go of it in the meantime.
        (None, None) => {
            let bytes = body.chunk(number)?;
            if Digest::of(&bytes) != chunk.digest {
                let what = format!("{STORING}: expected the same bytes again, found others");
                return Err(Error::new(Kind::Changed, what));
            }
            insert(&pack(&bytes)?)
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
            it.query_map(params![blob, SEARCHED.div_ceil(CHUNK) as i64], |row| row.get(0))?.collect()
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
