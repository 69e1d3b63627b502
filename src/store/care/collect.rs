//! Deletes what exceeds the limits on age and size.

use serde::Serialize;

use super::{DELETING, ids, sum_of_packs};
use crate::store::Store;
use crate::store::archive::item::delete_item;
use crate::store::content::{pack, sweep};
use crate::store::database::sql::{Connection, Row, Transaction, params, write_all};
use crate::store::memory::remembered::LINE;
use history::error::Result;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retention {
    /// Deletes everything last stored before this moment (milliseconds since 1970).
    pub before: Option<i64>,
    /// Deletes the oldest until the originals take at most this many bytes on disk. With `before`, originals
    /// that a newer compaction holds stay even then.
    pub max_bytes: Option<u64>,
    /// Deletes only originals that no compaction holds: compactions, memories and marks stay.
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

impl Store {
    /// Deletes what exceeds `retention` or has expired; with `dry_run` only reports it.
    pub fn collect(&self, retention: &Retention, at: i64, dry_run: bool) -> Result<Collected> {
        let connection = &mut *self.lock();
        // A dry run does the same and rolls it back, so that its figures are exact.
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
        transaction.execute(DELETING, empty, params![])?;
        if !dry_run {
            transaction.commit()?;
            pack::sweep_objects(connection, at)?;
        }
        Ok(out)
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

/// Deletes what is older than `before`: compactions first, because they hold originals.
fn delete_old(
    transaction: &Transaction<'_>,
    before: i64,
    originals_only: bool,
    out: &mut Collected,
) -> Result<()> {
    let execute = |sql| transaction.execute(DELETING, sql, [before]).map(|count| count as u64);
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

/// Deletes the oldest until no more than `max` bytes are stored: originals that no compaction holds, then
/// compactions, which releases their originals.
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
    out.sessions.extend(original_session(transaction, id)?);
    let freed = delete_original(transaction, id)?;
    out.bytes += freed;
    out.originals += 1;
    Ok(freed)
}

/// What to report of an original, if it is a session.
fn original_session(connection: &Connection, id: i64) -> Result<Option<Gone>> {
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
    let sql = "SELECT i.handle, p.session, i.project, i.bytes, i.at FROM item i JOIN place p ON p.item = i.id
             WHERE i.id = ?1 AND p.what = 'session' ORDER BY p.at DESC LIMIT 1";
    connection.query_optional(DELETING, sql, [id], row)
}

/// Deletes an original, and its content unless another item shares it. Returns the bytes this frees.
fn delete_original(transaction: &Transaction<'_>, id: i64) -> Result<u64> {
    let content: Option<i64> = transaction
        .query_optional(DELETING, "SELECT content FROM item WHERE id = ?1", [id], |row| row.get(0))?
        .flatten();
    // Deleting it also deletes passages that other versions of its session share: those are indexed again.
    let others = "INSERT INTO unindexed (item) SELECT DISTINCT o.item FROM place g
         JOIN place o ON o.session = g.session AND o.what = 'session' AND o.item <> g.item
         WHERE g.item = ?1 AND g.what = 'session' ON CONFLICT DO NOTHING";
    transaction.execute(DELETING, others, [id])?;
    delete_item(transaction, id)?;
    let Some(content) = content else { return Ok(0) };
    let shared = transaction.exists(DELETING, "SELECT 1 FROM item WHERE content = ?1", [content])?;
    if shared {
        return Ok(0);
    }
    let chunks = ids(transaction, "SELECT DISTINCT chunk FROM part WHERE content = ?1", content)?;
    transaction.execute(DELETING, "DELETE FROM content WHERE id = ?1", [content])?;
    sweep(transaction, chunks)
}

/// Deletes chunks left by a process that ended before it stored their content, and packs whose chunks were
/// rewritten. Returns the bytes this frees. A process that is about to use them notices and writes them
/// again.
fn sweep_unnamed(transaction: &Transaction<'_>) -> Result<u64> {
    let unnamed =
        "SELECT id FROM chunk WHERE id >= ?1 AND NOT EXISTS (SELECT 1 FROM part WHERE part.chunk = chunk.id)";
    let freed = sweep(transaction, ids(transaction, unnamed, 0)?)?;
    let sql = format!(
        "DELETE FROM pack WHERE NOT EXISTS (SELECT 1 FROM chunk WHERE chunk.pack = pack.id) RETURNING {}",
        transaction.pack_bytes()
    );
    let sizes: Vec<i64> = transaction.query_map(DELETING, &sql, params![], |row| row.get(0))?;
    Ok(freed + sizes.into_iter().map(i64::unsigned_abs).sum::<u64>())
}
