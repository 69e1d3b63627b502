//! Deletes what is old, and checks what is stored.

use std::collections::BTreeMap;

use serde::Serialize;

use super::content::chunks::{LARGEST_CHUNK, consists_of, open, sound};
use super::content::{Packer, put_content, put_packs, sweep};
use super::database::sql::{
    Connection, Optional as _, Row, Transaction, failed, locked, params, write, write_all,
};
use super::item::delete_item;
use super::memory::remembered::LINE;
use super::{Handle, unwrapped};
use crate::store::Store;
use crate::store::content::pack;
use crate::store::database::schema;
use history::error::Result;

const DELETING: &str = "deleting what is old";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Everything last stored before this moment (milliseconds since 1970).
    pub before: Option<i64>,
    /// The oldest, until the originals take at most this many bytes on disk. With `before`, originals that a newer
    /// compaction holds stay even so.
    pub max_bytes: Option<u64>,
    /// Only originals that no compaction holds: compactions, memories and marks stay.
    pub originals_only: bool,
}

/// A session that was, or would be, deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gone {
    pub handle: String,
    pub session: String,
    pub project: String,
    pub bytes: u64,
    /// When it was last stored, in milliseconds since 1970.
    pub at: i64,
}

/// What was, or would be, deleted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Collected {
    /// The sessions among the originals, oldest first.
    pub sessions: Vec<Gone>,
    pub compactions: u64,
    pub originals: u64,
    pub memories: u64,
    /// Expired asks, marks and entries of the audit log.
    pub expired: u64,
    /// Bytes on disk that the originals took.
    pub bytes: u64,
}

/// What an integrity check found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Checked {
    /// Originals all of whose bytes were read and compared with their digests.
    pub originals: u64,
    /// What is wrong, a sentence each; empty when all is well.
    pub problems: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Stats {
    /// How many of each (`session`, `message`, `output`, `compaction`, `memory`).
    pub items: BTreeMap<String, u64>,
    /// Bytes of the originals, each content once.
    pub bytes: u64,
    /// What they take compressed.
    pub stored_bytes: u64,
    /// Originals that [`Store::rewrite_old_format`](super::Store::rewrite_old_format) would store anew.
    pub old_format: u64,
    /// Size of the database file; 0 in memory.
    pub file_bytes: u64,
    pub version: u32,
}

impl Store {
    /// Deletes what is old; with `dry_run` only reports what it would.
    pub fn collect(&self, retention: &Retention, at: i64, dry_run: bool) -> Result<Collected> {
        let connection = &mut *self.lock();
        // A dry run is the same, taken back: so its figures are exact.
        let transaction = write_all(connection, DELETING)?;
        let mut out = Collected::default();
        for id in ids(&transaction, "SELECT item FROM ask WHERE expires <= ?1", at)? {
            delete_item(&transaction, id)?;
            out.expired += 1;
        }
        if let Some(before) = retention.before {
            delete_old(&transaction, before, retention.originals_only, &mut out)?;
        }
        out.bytes += sweep_unnamed(&transaction)?;
        if let Some(max) = retention.max_bytes {
            // With an age given, newer compactions stay.
            let also_compactions = retention.before.is_none() && !retention.originals_only;
            delete_down_to(&transaction, max, also_compactions, &mut out)?;
        }
        let empty = "DELETE FROM conversation WHERE NOT EXISTS (SELECT 1 FROM passage WHERE passage.conversation = conversation.id)";
        transaction.execute(empty, params![]).map_err(failed(DELETING))?;
        if !dry_run {
            transaction.commit().map_err(failed(DELETING))?;
            pack::sweep_objects(connection, at)?;
        }
        Ok(out)
    }

    /// Stores originals anew that an older version stored in another way; how many. To be killed in between loses
    /// nothing.
    pub fn rewrite_old_format(&self) -> Result<u64> {
        let store = &self.pool;
        let doing = "storing originals anew";
        let old: Vec<(String, i64, String)> = locked(store)
            .query_map(
                "SELECT min(i.handle), c.id, c.owner FROM content c JOIN item i ON i.content = c.id
                 WHERE c.id IN (SELECT p.content FROM part p JOIN chunk h ON h.id = p.chunk WHERE h.size > ?1)
                 GROUP BY c.id ORDER BY c.id",
                [LARGEST_CHUNK as i64],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
            .map_err(failed(doing))?;
        let mut moved = 0;
        for (handle, content, owner) in old {
            let mut packer = Packer::new(store, &owner);
            let reader = || open(store, handle.parse()?, content);
            let is_damaged = || {
                reader()
                    .and_then(|mut it| std::io::copy(&mut it, &mut std::io::sink()).map_err(unwrapped))
                    .is_err()
            };
            let prepared = match reader().and_then(|mut it| packer.add(&mut it)) {
                Ok(prepared) => prepared,
                Err(_) if is_damaged() => continue,
                Err(error) => return Err(error),
            };
            let packs = packer.finish();
            let mut connection = locked(store);
            let transaction = write(&mut connection, &owner, doing)?;
            // One that another process has deleted meanwhile is not brought back.
            let is_there = transaction
                .exists(
                    "SELECT 1 FROM content WHERE id = ?1 AND owner = ?2 AND sha = ?3",
                    params![content, owner, prepared.digest.0],
                )
                .map_err(failed(doing))?;
            put_packs(&transaction, &owner, &packs)?;
            if is_there && put_content(&transaction, &owner, &prepared)?.is_some() {
                transaction.commit().map_err(failed(doing))?;
                moved += 1;
            }
        }
        Ok(moved)
    }

    /// Gives freed space back to the disk.
    pub fn vacuum(&self) -> Result<()> {
        let connection = &*self.lock();
        let doing = "giving space back";
        match connection {
            Connection::Sqlite(it) => schema::vacuum(it).map_err(schema::failed(doing)),
            // PostgreSQL does it by itself.
            #[cfg(feature = "team")]
            Connection::Postgres(_) => Ok(()),
        }
    }

    /// Checks the database and, if `deep`, reads every original.
    pub fn check(&self, deep: bool) -> Result<Checked> {
        let store = &self.pool;
        let doing = "checking the store";
        let mut out = Checked::default();
        let contents = {
            let connection = locked(store);
            match &*connection {
                Connection::Sqlite(it) => out.problems = schema::check(it).map_err(schema::failed(doing))?,
                // PostgreSQL holds to its constraints.
                #[cfg(feature = "team")]
                Connection::Postgres(_) => {}
            }
            if !deep {
                return Ok(out);
            }
            let sql = "SELECT min(handle), content FROM item WHERE content IS NOT NULL GROUP BY content ORDER BY content";
            let contents: Vec<(String, i64)> = connection
                .query_map(sql, params![], |row| Ok((row.get(0)?, row.get(1)?)))
                .map_err(failed(doing))?;
            contents
        };
        // What many originals share is read once; one that does not hold together so is read itself, which says what is
        // wrong.
        let sound = sound(store)?;
        for (handle, content) in contents {
            let whole = handle.parse::<Handle>().and_then(|handle| {
                if consists_of(&locked(store), handle, content, &sound) {
                    return Ok(());
                }
                let mut reader = open(store, handle, content)?;
                std::io::copy(&mut reader, &mut std::io::sink()).map(drop).map_err(unwrapped)
            });
            match whole {
                Ok(()) => out.originals += 1,
                Err(error) => out.problems.push(error.full()),
            }
        }
        Ok(out)
    }

    pub fn stats(&self) -> Result<Stats> {
        let file = self.directory.as_ref().and_then(|it| std::fs::metadata(it.join(schema::FILE)).ok());
        let connection = &*self.lock();
        let items: Vec<(String, i64)> = connection
            .query_map("SELECT what, count(DISTINCT item) FROM place GROUP BY what", params![], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .map_err(failed("counting what is stored"))?;
        Ok(Stats {
            items: items.into_iter().map(|(what, count)| (what, u64::try_from(count).unwrap_or(0))).collect(),
            bytes: sum(connection, "SELECT CAST(coalesce(sum(size), 0) AS BIGINT) FROM content")?,
            stored_bytes: sum_of_packs(connection)?,
            old_format: ids(
                connection,
                "SELECT count(DISTINCT p.content) FROM part p JOIN chunk h ON h.id = p.chunk WHERE h.size > ?1",
                LARGEST_CHUNK as i64,
            )?
            .first()
            .map_or(0, |it| it.unsigned_abs()),
            file_bytes: file.map_or(0, |it| it.len()),
            version: connection.version(),
        })
    }
}

/// Originals that no compaction holds and that are not pinned, oldest first.
const OLD_ORIGINALS: &str = "SELECT id FROM item WHERE sort = 'original' AND at < ?1
     AND NOT EXISTS (SELECT 1 FROM holds WHERE original = item.id)
     AND NOT EXISTS (SELECT 1 FROM pinned WHERE pinned.item = item.id) ORDER BY at, id";

/// Compactions that are not pinned, oldest first.
const OLD_COMPACTIONS: &str = "SELECT id FROM item WHERE sort = 'compaction' AND at < ?1
     AND NOT EXISTS (SELECT 1 FROM pinned WHERE pinned.item = item.id) ORDER BY at, id";

/// Memories that a newer one replaced.
const SUPERSEDED: &str = "SELECT i.id FROM item i JOIN memory m ON m.item = i.id
     WHERE i.at < ?1 AND m.superseded IS NOT NULL ORDER BY i.id";

/// Deletes what is older than `before`, compactions first: they hold originals.
fn delete_old(
    transaction: &Transaction<'_>,
    before: i64,
    originals_only: bool,
    out: &mut Collected,
) -> Result<()> {
    let execute =
        |sql| transaction.execute(sql, [before]).map(|count| count as u64).map_err(failed(DELETING));
    if !originals_only {
        for id in ids(transaction, OLD_COMPACTIONS, before)? {
            delete_item(transaction, id)?;
            out.compactions += 1;
        }
    }
    for id in ids(transaction, OLD_ORIGINALS, before)? {
        collect_original(transaction, id, out)?;
    }
    if !originals_only {
        for id in ids(transaction, SUPERSEDED, before)? {
            for id in ids(transaction, LINE, id)? {
                delete_item(transaction, id)?;
                out.memories += 1;
            }
        }
        out.expired += execute("DELETE FROM mark WHERE at < ?1")?;
    }
    out.expired += execute("DELETE FROM audit WHERE at < ?1")?;
    Ok(())
}

/// Deletes the oldest until no more than `max` bytes are stored: originals that no compaction holds, then compactions,
/// which lets go of more originals.
fn delete_down_to(
    transaction: &Transaction<'_>,
    max: u64,
    also_compactions: bool,
    out: &mut Collected,
) -> Result<()> {
    let oldest = |such: &str| -> Result<Option<i64>> {
        Ok(ids(transaction, &format!("{such} LIMIT 1"), i64::MAX)?.first().copied())
    };
    let mut stored = sum_of_packs(transaction)?;
    while stored > max {
        if let Some(id) = oldest(OLD_ORIGINALS)? {
            stored = stored.saturating_sub(collect_original(transaction, id, out)?);
        } else if also_compactions && let Some(id) = oldest(OLD_COMPACTIONS)? {
            delete_item(transaction, id)?;
            out.compactions += 1;
        } else {
            break;
        }
    }
    Ok(())
}

/// Deletes an original and counts it. Returns the bytes this frees.
fn collect_original(transaction: &Transaction<'_>, id: i64, out: &mut Collected) -> Result<u64> {
    out.sessions.extend(gone(transaction, id)?);
    let freed = delete_original(transaction, id)?;
    out.bytes += freed;
    out.originals += 1;
    Ok(freed)
}

/// An original as what goes with it, if it is a session.
fn gone(connection: &Connection, id: i64) -> Result<Option<Gone>> {
    let row = |row: &Row<'_>| {
        let bytes: i64 = row.get(3)?;
        Ok(Gone {
            handle: row.get(0)?,
            session: row.get(1)?,
            project: row.get(2)?,
            bytes: bytes.unsigned_abs(),
            at: row.get(4)?,
        })
    };
    connection
        .query_row(
            "SELECT i.handle, p.session, i.project, i.bytes, i.at FROM item i JOIN place p ON p.item = i.id
             WHERE i.id = ?1 AND p.what = 'session' ORDER BY p.at DESC LIMIT 1",
            [id],
            row,
        )
        .optional()
        .map_err(failed(DELETING))
}

fn ids(connection: &Connection, sql: &str, parameter: i64) -> Result<Vec<i64>> {
    connection.query_map(sql, [parameter], |row| row.get(0)).map_err(failed(DELETING))
}

fn sum(connection: &Connection, sql: &str) -> Result<u64> {
    let sum: i64 =
        connection.query_row(sql, params![], |row| row.get(0)).map_err(failed("summing up the store"))?;
    Ok(u64::try_from(sum).unwrap_or(0))
}

fn sum_of_packs(connection: &Connection) -> Result<u64> {
    let bytes = connection.pack_bytes();
    sum(connection, &format!("SELECT CAST(coalesce(sum({bytes}), 0) AS BIGINT) FROM pack"))
}

/// Deletes an original with the content that nothing else has. Returns the bytes this frees.
fn delete_original(transaction: &Transaction<'_>, id: i64) -> Result<u64> {
    let content: Option<i64> = transaction
        .query_row("SELECT content FROM item WHERE id = ?1", [id], |row| row.get(0))
        .optional()
        .map_err(failed(DELETING))?
        .flatten();
    // What it and other versions of its session hold goes with it from the index: the others are indexed anew.
    let others = "INSERT INTO unindexed (item) SELECT DISTINCT o.item FROM place g
         JOIN place o ON o.session = g.session AND o.what = 'session' AND o.item <> g.item
         WHERE g.item = ?1 AND g.what = 'session' ON CONFLICT DO NOTHING";
    transaction.execute(others, [id]).map_err(failed(DELETING))?;
    delete_item(transaction, id)?;
    let Some(content) = content else { return Ok(0) };
    let shared =
        transaction.exists("SELECT 1 FROM item WHERE content = ?1", [content]).map_err(failed(DELETING))?;
    if shared {
        return Ok(0);
    }
    let chunks = ids(transaction, "SELECT DISTINCT chunk FROM part WHERE content = ?1", content)?;
    transaction.execute("DELETE FROM content WHERE id = ?1", [content]).map_err(failed(DELETING))?;
    sweep(transaction, chunks)
}

/// Deletes chunks that a process wrote which ended before it stored what they are of, and packs whose chunks were
/// stored anew. Returns the bytes this frees. A process that is still about to use them finds them gone and writes them
/// again.
fn sweep_unnamed(transaction: &Transaction<'_>) -> Result<u64> {
    let unnamed =
        "SELECT id FROM chunk WHERE id >= ?1 AND NOT EXISTS (SELECT 1 FROM part WHERE part.chunk = chunk.id)";
    let freed = sweep(transaction, ids(transaction, unnamed, 0)?)?;
    let sql = format!(
        "DELETE FROM pack WHERE NOT EXISTS (SELECT 1 FROM chunk WHERE chunk.pack = pack.id) RETURNING {}",
        transaction.pack_bytes()
    );
    let sizes: Vec<i64> =
        transaction.query_map(&sql, params![], |row| row.get(0)).map_err(failed(DELETING))?;
    Ok(freed + sizes.into_iter().map(i64::unsigned_abs).sum::<u64>())
}
