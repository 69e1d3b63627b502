//! Reads contents: takes chunks out of their packs, and checks each before returning it.

use std::collections::HashSet;
use std::io::Read;

use sha2::{Digest as _, Sha256};

use super::pack;
use crate::store::database::sql::{Connection, Pool, locked, params};
use crate::store::{Digest, Handle};
use history::error::{Error, ErrorKind, Result};

/// Maximum bytes of a content, from its beginning, that are searched: bounds what a giant log costs.
pub(crate) const SEARCHED: usize = 4 << 20;

/// Minimum bytes of a chunk; the last one of a content may be smaller.
pub(crate) const SMALLEST_CHUNK: usize = 8 << 10;

/// Maximum bytes of a chunk.
pub(crate) const LARGEST_CHUNK: usize = 128 << 10;

/// Uncompressed bytes at which a pack is closed; its last chunk may go beyond.
pub(crate) const PACK: usize = 1 << 20;

/// Unpacked packs that are cached while a content is read: repeated chunks are in earlier ones.
const UNPACKED: usize = 8;

/// Maximum uncompressed bytes of a pack; those of older versions hold 1 MiB.
const LARGEST_PACK: usize = PACK + LARGEST_CHUNK;

pub(crate) const READING: &str = "reading the archive";

/// A chunk's place in the database.
#[derive(Clone, Copy)]
pub(crate) struct ChunkPlace {
    pub(crate) pack: i64,
    pub(crate) start: u32,
    pub(crate) size: u32,
}

/// A cache of unpacked packs, the most recently used last.
#[derive(Default)]
pub(crate) struct Packs(Vec<(i64, Vec<u8>)>);

impl Packs {
    /// The bytes of a chunk; `None` if they do not match `digest`.
    pub(crate) fn chunk(
        &mut self,
        connection: &Connection,
        place: ChunkPlace,
        digest: &Digest,
    ) -> Result<Option<&[u8]>> {
        let ChunkPlace { pack, start, size } = place;
        let range = start as usize..start as usize + size as usize;
        let is_it = |bytes: &[u8]| bytes.get(range.clone()).is_some_and(|it| Digest::of(it) == *digest);
        // Ids are reused after a pack is deleted: the cached one may be an earlier pack with this id.
        match self.0.iter().position(|it| it.0 == pack) {
            Some(known) if is_it(&self.0[known].1) => self.0[known..].rotate_left(1),
            known => {
                let Some(bytes) = unpacked(connection, pack)?.filter(|it| is_it(it)) else { return Ok(None) };
                if known.is_some() || self.0.len() == UNPACKED {
                    self.0.remove(known.unwrap_or(0));
                }
                self.0.push((pack, bytes));
            }
        }
        Ok(self.0.last().and_then(|it| it.1.get(range)))
    }
}

/// The uncompressed bytes of a pack; `None` if it is missing or damaged.
fn unpacked(connection: &Connection, pack: i64) -> Result<Option<Vec<u8>>> {
    Ok(pack::read(connection, pack)?.and_then(|(size, packed)| {
        let size = usize::try_from(size).ok().filter(|it| *it <= LARGEST_PACK)?;
        zstd::bulk::decompress(&packed, size).ok()
    }))
}

pub(crate) fn find(connection: &Connection, owner: &str, sha: &Digest) -> Result<Option<(i64, ChunkPlace)>> {
    let sql = "SELECT id, pack, start, size FROM chunk WHERE owner = ?1 AND sha = ?2";
    connection.query_optional(READING, sql, params![owner, sha.0], |row| {
        Ok((row.get(0)?, ChunkPlace { pack: row.get(1)?, start: row.get(2)?, size: row.get(3)? }))
    })
}

struct ContentPart {
    chunk: i64,
    digest: Digest,
    size: u32,
}

/// The parts of a content, in order, and its digest. Fails if a row is missing.
fn parts(connection: &Connection, handle: Handle, content: i64) -> Result<(Vec<ContentPart>, Digest)> {
    let about: Option<([u8; 32], i64)> = connection.query_optional(
        READING,
        "SELECT sha, size FROM content WHERE id = ?1",
        [content],
        |row| Ok((row.get(0)?, row.get(1)?)),
    )?;
    let (digest, size) = about.ok_or_else(|| corrupted(handle, "its list of chunks missing"))?;
    let sql = "SELECT c.id, c.sha, c.size FROM part p JOIN chunk c ON c.id = p.chunk
               WHERE p.content = ?1 ORDER BY p.seq";
    let parts: Vec<ContentPart> = connection.query_map(READING, sql, [content], |row| {
        Ok(ContentPart { chunk: row.get(0)?, digest: Digest(row.get(1)?), size: row.get(2)? })
    })?;
    if parts.iter().map(|it| i64::from(it.size)).sum::<i64>() != size {
        return Err(corrupted(handle, "a row of its list of chunks missing or altered"));
    }
    Ok((parts, Digest(digest)))
}

/// Ids of the chunks that match their digests; each pack is unpacked once.
pub(crate) fn intact_chunks(store: &Pool) -> Result<HashSet<i64>> {
    let packs: Vec<i64> =
        locked(store).query_map(READING, "SELECT id FROM pack ORDER BY id", params![], |row| row.get(0))?;
    let mut intact = HashSet::new();
    for pack in packs {
        // Locked for one pack at a time, so that others can work in between.
        let connection = locked(store);
        let sql = "SELECT id, sha, start, size FROM chunk WHERE pack = ?1";
        let chunks: Vec<(i64, Digest, ChunkPlace)> = connection.query_map(READING, sql, [pack], |row| {
            let place = ChunkPlace { pack, start: row.get(2)?, size: row.get(3)? };
            Ok((row.get(0)?, Digest(row.get(1)?), place))
        })?;
        let mut unpacked = Packs::default();
        for (chunk, digest, place) in chunks {
            if unpacked.chunk(&connection, place, &digest)?.is_some() {
                intact.insert(chunk);
            }
        }
    }
    Ok(intact)
}

/// Whether a content's list of chunks is complete and all of them are in `intact`.
pub(crate) fn is_intact(
    connection: &Connection,
    handle: Handle,
    content: i64,
    intact: &HashSet<i64>,
) -> bool {
    parts(connection, handle, content)
        .is_ok_and(|(parts, _)| parts.iter().all(|it| intact.contains(&it.chunk)))
}

fn place(connection: &Connection, part: &ContentPart) -> Result<Option<ChunkPlace>> {
    let sql = "SELECT pack, start, size FROM chunk WHERE id = ?1 AND sha = ?2";
    connection.query_optional(READING, sql, params![part.chunk, part.digest.0], |row| {
        Ok(ChunkPlace { pack: row.get(0)?, start: row.get(1)?, size: row.get(2)? })
    })
}

/// Reads a content chunk by chunk.
pub(crate) struct Reader<'a> {
    connection: &'a Pool,
    handle: Handle,
    content: i64,
    parts: std::vec::IntoIter<ContentPart>,
    packs: Packs,
    now: std::io::Cursor<Vec<u8>>,
    /// Bytes of the content read so far, up to the end of `now`.
    at: u64,
    /// Leading bytes of the next part that were read already, as part of an older chunk.
    skip: usize,
    /// The list of parts was read again, and no part has been read since.
    list_reread: bool,
    hasher: Sha256,
    expected: Digest,
    ended: bool,
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let read = self.now.read(buffer)?;
            if read > 0 || buffer.is_empty() || self.ended {
                return Ok(read);
            }
            self.advance().map_err(std::io::Error::other)?;
        }
    }
}

impl Reader<'_> {
    /// Reads the next chunk, or at the end checks the digest of the content.
    fn advance(&mut self) -> Result<()> {
        let connection = locked(self.connection);
        let Some(part) = self.parts.next() else {
            let digest = Digest(std::mem::take(&mut self.hasher).finalize().into());
            self.ended = digest == self.expected;
            return if self.ended { Ok(()) } else { Err(corrupted(self.handle, "them corrupted")) };
        };
        let Some(place) = place(&connection, &part)? else {
            if self.list_reread {
                return Err(self.damaged(&part, "missing"));
            }
            // Another process has chunked the content again since this read began: continue with the new
            // list.
            self.list_reread = true;
            let mut skip = self.at;
            let (parts, _) = parts(&connection, self.handle, self.content)?;
            let was_read = |it: &&ContentPart| match skip.checked_sub(it.size.into()) {
                Some(left) => {
                    skip = left;
                    true
                }
                None => false,
            };
            let count = parts.iter().take_while(was_read).count();
            self.parts = parts.into_iter();
            self.parts.by_ref().take(count).for_each(drop);
            self.skip = skip as usize;
            return Ok(());
        };
        let Some(bytes) = self.packs.chunk(&connection, place, &part.digest)? else {
            return Err(self.damaged(&part, "corrupted"));
        };
        let bytes = bytes.get(self.skip..).unwrap_or_default().to_vec();
        (self.skip, self.list_reread) = (0, false);
        self.hasher.update(&bytes);
        self.at += bytes.len() as u64;
        self.now = std::io::Cursor::new(bytes);
        Ok(())
    }

    fn damaged(&self, part: &ContentPart, how: &str) -> Error {
        let digest = part.digest.to_string();
        let name = digest.get(..12).unwrap_or_default();
        let last = (self.at + u64::from(part.size)).saturating_sub(1);
        corrupted(self.handle, &format!("chunk {name} (bytes {} to {last}) {how}", self.at))
    }
}

pub(crate) fn corrupted(handle: Handle, found: &str) -> Error {
    let what = format!(
        "reading {handle}: expected the bytes that were stored, found {found}; nothing of it was restored; \
         `epitome doctor` says what else is damaged"
    );
    Error::new(ErrorKind::Store, what)
}

pub(crate) fn open<'a>(connection: &'a Pool, handle: Handle, content: i64) -> Result<Reader<'a>> {
    let (parts, expected) = parts(&locked(connection), handle, content)?;
    Ok(Reader {
        connection,
        handle,
        content,
        parts: parts.into_iter(),
        packs: Packs::default(),
        now: std::io::Cursor::new(Vec::new()),
        at: 0,
        skip: 0,
        list_reread: false,
        hasher: Sha256::new(),
        expected,
        ended: false,
    })
}

/// The searched beginning of a content. Ends silently before a damaged chunk, which a full read reports.
pub(crate) fn head(connection: &Connection, content: i64) -> Result<Vec<u8>> {
    // Enough rows: all chunks but the last have at least the minimum size.
    let sql = "SELECT c.sha, c.pack, c.start, c.size FROM part p JOIN chunk c ON c.id = p.chunk
             WHERE p.content = ?1 ORDER BY p.seq LIMIT ?2";
    let parts =
        connection.query_map(READING, sql, [content, (SEARCHED / SMALLEST_CHUNK) as i64 + 1], |row| {
            Ok((Digest(row.get(0)?), ChunkPlace { pack: row.get(1)?, start: row.get(2)?, size: row.get(3)? }))
        })?;
    let mut packs = Packs::default();
    let mut out = Vec::new();
    for (digest, place) in parts {
        if out.len() >= SEARCHED {
            break;
        }
        match packs.chunk(connection, place, &digest)? {
            Some(bytes) => out.extend_from_slice(bytes),
            None => break,
        }
    }
    out.truncate(SEARCHED);
    Ok(out)
}
