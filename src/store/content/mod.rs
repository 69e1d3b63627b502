//! Stores contents: in content-defined chunks, each stored once per owner, compressed a pack at a time.
//!
//! A repeated chunk costs a row, and a session that has grown costs its growth. Chunks are small so that an
//! image inside a record is recognized at any offset, packs large so that text compresses as well as in one
//! piece (measured on real sessions: 7.4 to 1 by packs, 4.6 to 1 chunk by chunk).

pub(crate) mod chunks;
pub(crate) mod pack;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::ops::Range;

use fastcdc::v2020::StreamCDC;
use sha2::{Digest as _, Sha256};

use crate::files::Reading;
use crate::store::archive::item::signed;
use crate::store::database::sql::{Pool, Transaction, locked, params, write};
use crate::store::handle::identity;
use crate::store::{Body, Digest, Scope};
use chunks::{LARGEST_CHUNK, PACK, Packs, SEARCHED, SMALLEST_CHUNK, find};
use history::error::{Error, ErrorKind, Result};
use pack::Packed;

/// Average bytes of a chunk.
const CHUNK: usize = 32 << 10;

/// Maximum compressed bytes that wait in memory. More are written before the transaction that stores their
/// content; a process that ends in between leaves chunks without a content, which `collect` deletes.
const MAX_PENDING_BYTES: usize = 8 << 20;

/// zstd's default level, a good compromise for text.
const LEVEL: i32 = 3;

pub(crate) const STORING: &str = "archiving originals";

/// A content whose chunks were found in the archive or packed.
pub(crate) struct Prepared {
    chunks: Vec<Digest>,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
}

/// New chunks, compressed together.
pub(crate) struct Pack {
    packed: Packed,
    chunks: Vec<NewChunk>,
}

struct NewChunk {
    digest: Digest,
    start: usize,
    size: usize,
}

impl Body<'_> {
    fn len(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Source(source) => source.len(),
        }
    }

    fn part(&self, range: Range<u64>) -> Result<Cow<'_, [u8]>> {
        match self {
            Self::Bytes(bytes) => {
                let part = bytes.get(range.start as usize..range.end as usize).unwrap_or_default();
                Ok(Cow::Borrowed(part))
            }
            Self::Source(source) => source.bytes(range).map(Cow::Owned),
        }
    }

    /// Its beginning, up to [`SEARCHED`] bytes.
    pub(crate) fn head(&self) -> Result<Cow<'_, [u8]>> {
        self.part(0..self.len().min(SEARCHED as u64))
    }
}

impl<'a> Body<'a> {
    /// Reads it from beginning to end.
    pub fn reader(self) -> Box<dyn Read + 'a> {
        match self {
            Self::Bytes(bytes) => Box::new(bytes),
            Self::Source(source) => Box::new(Reading::of(source)),
        }
    }
}

/// Prepares the contents of one transaction before it begins, so that others can write meanwhile.
pub(crate) struct Packer<'a> {
    connection: &'a Pool,
    owner: &'a str,
    /// Chunks that are intact in the archive, or in a pack of this transaction.
    known: HashSet<Digest>,
    unpacked: Packs,
    buffer: Vec<u8>,
    chunks: Vec<NewChunk>,
    pending: Vec<Pack>,
}

impl<'a> Packer<'a> {
    pub(crate) fn new(connection: &'a Pool, owner: &'a str) -> Self {
        Self {
            connection,
            owner,
            known: HashSet::new(),
            unpacked: Packs::default(),
            buffer: Vec::new(),
            chunks: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// Hashes a content and packs its new chunks, in one pass.
    pub(crate) fn add(&mut self, content: &mut dyn Read) -> Result<Prepared> {
        let mut out = Prepared { chunks: Vec::new(), digest: Digest::of(b""), size: 0 };
        let mut whole = Sha256::new();
        for chunk in StreamCDC::new(content, SMALLEST_CHUNK, CHUNK, LARGEST_CHUNK) {
            let bytes = chunk.map_err(|it| unwrapped(it.into()))?.data;
            let digest = Digest::of(&bytes);
            whole.update(&bytes);
            out.size += bytes.len() as u64;
            out.chunks.push(digest);
            if !self.known.insert(digest) || self.is_archived(&digest, &bytes)? {
                continue;
            }
            self.chunks.push(NewChunk { digest, start: self.buffer.len(), size: bytes.len() });
            self.buffer.extend_from_slice(&bytes);
            if self.buffer.len() >= PACK {
                self.close_pack()?;
            }
        }
        // The next content begins its own pack: what is searched is small, and must unpack quickly.
        self.close_pack()?;
        out.digest = Digest(whole.finalize().into());
        Ok(out)
    }

    /// Whether the archive has this chunk with these bytes. Reads it, because the content will rely on it.
    fn is_archived(&mut self, digest: &Digest, bytes: &[u8]) -> Result<bool> {
        let connection = locked(self.connection);
        match find(&connection, self.owner, digest)? {
            Some((_, place)) => Ok(self.unpacked.chunk(&connection, place, digest)? == Some(bytes)),
            None => Ok(false),
        }
    }

    fn close_pack(&mut self) -> Result<()> {
        if self.chunks.is_empty() {
            return Ok(());
        }
        let packed = compress(&self.buffer)?;
        let scope = Scope { owner: self.owner.to_owned(), project: String::new() };
        let sha = identity("pack", &scope, &[&packed]);
        let packed = Packed::new(&locked(self.connection), self.owner, sha, self.buffer.len(), packed)?;
        let chunks = std::mem::take(&mut self.chunks);
        self.pending.push(Pack { packed, chunks });
        self.buffer.clear();
        if self.pending.iter().map(|it| it.packed.pending_bytes()).sum::<usize>() >= MAX_PENDING_BYTES {
            let mut connection = locked(self.connection);
            let transaction = write(&mut connection, self.owner, STORING)?;
            put_packs(&transaction, self.owner, &self.pending)?;
            transaction.commit()?;
            self.pending.clear();
        }
        Ok(())
    }

    /// The packs that are not written yet.
    pub(crate) fn finish(self) -> Vec<Pack> {
        self.pending
    }
}

fn compress(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut packed = zstd::bulk::compress(bytes, LEVEL).map_err(|error| {
        Error::new(ErrorKind::Store, format!("{STORING}: expected to compress")).because(error)
    })?;
    // zstd allocates for the worst case, and packs that wait would hold on to that memory.
    packed.shrink_to_fit();
    Ok(packed)
}

/// Stores packs with their chunks. A chunk that exists already (damaged, or stored by another process
/// meanwhile) now refers to its new pack.
pub(crate) fn put_packs(transaction: &Transaction<'_>, owner: &str, packs: &[Pack]) -> Result<()> {
    for pack in packs {
        let id = pack::put(transaction, &pack.packed)?;
        for chunk in &pack.chunks {
            let sql = "INSERT INTO chunk (owner, sha, size, pack, start) VALUES (?1, ?2, ?3, ?4, ?5)
                     ON CONFLICT (owner, sha) DO UPDATE SET pack = excluded.pack, start = excluded.start";
            transaction.execute(
                STORING,
                sql,
                params![owner, chunk.digest.0, chunk.size as i64, id, chunk.start as i64],
            )?;
        }
    }
    Ok(())
}

/// Stores a content whose packs are stored; returns its id. `None`: another process has deleted a chunk
/// meanwhile, and the content must be prepared again.
pub(crate) fn put_content(
    transaction: &Transaction<'_>,
    owner: &str,
    content: &Prepared,
) -> Result<Option<i64>> {
    let mut ids: HashMap<Digest, i64> = HashMap::new();
    let mut parts = Vec::with_capacity(content.chunks.len());
    for digest in &content.chunks {
        let id = match ids.get(digest) {
            Some(id) => *id,
            None => {
                let Some((id, _)) = find(transaction, owner, digest)? else { return Ok(None) };
                ids.insert(*digest, id);
                id
            }
        };
        parts.push(id);
    }
    let sql = "SELECT id FROM content WHERE owner = ?1 AND sha = ?2";
    let found: Option<i64> =
        transaction.query_optional(STORING, sql, params![owner, content.digest.0], |row| row.get(0))?;
    let Some(id) = found else {
        let sql = "INSERT INTO content (owner, sha, size) VALUES (?1, ?2, ?3) RETURNING id";
        let id = transaction.query_row(
            STORING,
            sql,
            params![owner, content.digest.0, signed(content.size)],
            |row| row.get(0),
        )?;
        put_parts(transaction, id, &parts)?;
        return Ok(Some(id));
    };
    let sql = "SELECT chunk FROM part WHERE content = ?1 ORDER BY seq";
    let before: Vec<i64> = transaction.query_map(STORING, sql, [id], |row| row.get(0))?;
    if before != parts {
        // An older version chunked it differently, or rows of its list are lost.
        transaction.execute(STORING, "DELETE FROM part WHERE content = ?1", [id])?;
        put_parts(transaction, id, &parts)?;
        sweep(transaction, before.into_iter().collect::<HashSet<_>>())?;
    }
    Ok(Some(id))
}

fn put_parts(transaction: &Transaction<'_>, content: i64, chunks: &[i64]) -> Result<()> {
    let insert = "INSERT INTO part (content, seq, chunk) VALUES (?1, ?2, ?3)";
    for (seq, chunk) in chunks.iter().enumerate() {
        transaction.execute(STORING, insert, params![content, seq as i64, chunk])?;
    }
    Ok(())
}

/// Deletes those of `chunks` that no content uses, and packs left without a chunk. Returns the bytes this
/// frees on disk.
pub(crate) fn sweep(transaction: &Transaction<'_>, chunks: impl IntoIterator<Item = i64>) -> Result<u64> {
    let doing = "deleting old data";
    let mut packs = HashSet::new();
    for chunk in chunks {
        let sql = "DELETE FROM chunk WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM part WHERE chunk = ?1)
                 RETURNING pack";
        let pack: Option<i64> = transaction.query_optional(doing, sql, [chunk], |row| row.get(0))?;
        packs.extend(pack);
    }
    let mut freed = 0;
    for pack in packs {
        let sql = format!(
            "DELETE FROM pack WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM chunk WHERE pack = ?1) RETURNING {}",
            transaction.pack_bytes()
        );
        let size: Option<i64> = transaction.query_optional(doing, &sql, [pack], |row| row.get(0))?;
        freed += size.and_then(|it| u64::try_from(it).ok()).unwrap_or(0);
    }
    Ok(freed)
}

/// Takes our error out of a reader's I/O error; wraps any other I/O error in one of ours.
pub fn unwrapped(error: std::io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(ours) => ours,
        Err(error) => Error::new(ErrorKind::Io, "reading an original: expected to read on").because(error),
    }
}
