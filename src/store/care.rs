//! Letting go of what is old, and checking what is there.

use std::io::Read as _;
use std::sync::Mutex;

use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use super::content::open;
use super::item::delete_item;
use super::remembered::LINE;
use super::schema::{VERSION, failed, locked, write};
use super::{Checked, Collected, Handle, Retention, Stats};
use history::error::Result;

const LETTING_GO: &str = "letting go of what is old";

pub(super) fn collect(
    connection: &mut Connection,
    retention: &Retention,
    at: i64,
    dry_run: bool,
) -> Result<Collected> {
    // A dry run is the same, taken back: so its figures are exact.
    let transaction = write(connection, LETTING_GO)?;
    let mut out = Collected::default();
    for id in ids(&transaction, "SELECT item FROM ask WHERE expires <= ?1", at)? {
        delete_item(&transaction, id)?;
        out.expired += 1;
    }
    if let Some(before) = retention.before {
        for id in ids(&transaction, "SELECT id FROM item WHERE sort = 'compaction' AND at < ?1", before)? {
            delete_item(&transaction, id)?;
            out.compactions += 1;
        }
        for id in ids(&transaction, OLD_ORIGINALS, before)? {
            out.bytes += delete_original(&transaction, id)?;
            out.originals += 1;
        }
        let superseded = "SELECT i.id FROM item i JOIN memory m ON m.item = i.id
                          WHERE i.at < ?1 AND m.superseded IS NOT NULL ORDER BY i.id";
        for id in ids(&transaction, superseded, before)? {
            for id in ids(&transaction, LINE, id)? {
                delete_item(&transaction, id)?;
                out.memories += 1;
            }
        }
        out.expired += transaction
            .execute("DELETE FROM mark WHERE at < ?1", [before])
            .map_err(failed(LETTING_GO))? as u64;
    }
    if let Some(max) = retention.max_bytes {
        let mut stored = sum(&transaction, "SELECT ifnull(sum(length(packed)), 0) FROM chunk")?;
        while stored > max {
            if let Some(id) = ids(&transaction, &format!("{OLD_ORIGINALS} LIMIT 1"), i64::MAX)?.first() {
                let freed = delete_original(&transaction, *id)?;
                stored = stored.saturating_sub(freed);
                out.bytes += freed;
                out.originals += 1;
                continue;
            }
            let oldest = "SELECT id FROM item WHERE sort = 'compaction' AND at < ?1 ORDER BY at, id LIMIT 1";
            let oldest = match retention.before {
                Some(_) => None,
                None => ids(&transaction, oldest, i64::MAX)?.first().copied(),
            };
            let Some(id) = oldest else { break };
            delete_item(&transaction, id)?;
            out.compactions += 1;
        }
    }
    if !dry_run {
        transaction.commit().map_err(failed(LETTING_GO))?;
    }
    Ok(out)
}

/// Originals that no compaction holds, oldest first.
const OLD_ORIGINALS: &str = "SELECT id FROM item WHERE sort = 'original' AND at < ?1
     AND NOT EXISTS (SELECT 1 FROM holds WHERE original = item.id) ORDER BY at, id";

fn ids(connection: &Connection, sql: &str, parameter: i64) -> Result<Vec<i64>> {
    connection
        .prepare_cached(sql)
        .and_then(|mut it| it.query_map([parameter], |row| row.get(0))?.collect())
        .map_err(failed(LETTING_GO))
}

fn sum(connection: &Connection, sql: &str) -> Result<u64> {
    let sum: i64 = connection.query_row(sql, [], |row| row.get(0)).map_err(failed("summing up the store"))?;
    Ok(u64::try_from(sum).unwrap_or(0))
}

/// Deletes an original with the content that nothing else has. Returns the bytes this frees.
fn delete_original(transaction: &Transaction<'_>, id: i64) -> Result<u64> {
    let blob: Option<i64> = transaction
        .query_row("SELECT blob FROM item WHERE id = ?1", [id], |row| row.get(0))
        .optional()
        .map_err(failed(LETTING_GO))?
        .flatten();
    delete_item(transaction, id)?;
    let Some(blob) = blob else { return Ok(0) };
    let shared = transaction
        .prepare_cached("SELECT 1 FROM item WHERE blob = ?1")
        .and_then(|mut it| it.exists([blob]))
        .map_err(failed(LETTING_GO))?;
    if shared {
        return Ok(0);
    }
    let chunks = ids(transaction, "SELECT DISTINCT chunk FROM piece WHERE blob = ?1", blob)?;
    transaction.execute("DELETE FROM blob WHERE id = ?1", [blob]).map_err(failed(LETTING_GO))?;
    let mut freed = 0;
    for chunk in chunks {
        let size: Option<i64> = transaction
            .prepare_cached(
                "DELETE FROM chunk WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM piece WHERE chunk = ?1)
                 RETURNING length(packed)",
            )
            .and_then(|mut it| it.query_row([chunk], |row| row.get(0)).optional())
            .map_err(failed(LETTING_GO))?;
        freed += u64::try_from(size.unwrap_or(0)).unwrap_or(0);
    }
    Ok(freed)
}

pub(super) fn vacuum(connection: &Connection) -> Result<()> {
    let doing = "giving space back";
    connection
        .execute_batch("INSERT INTO words (words) VALUES ('optimize'); VACUUM")
        .map_err(failed(doing))?;
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).map_err(failed(doing))
}

pub(super) fn check(store: &Mutex<Connection>, deep: bool) -> Result<Checked> {
    let doing = "checking the store";
    let mut out = Checked::default();
    let blobs = {
        let connection = locked(store);
        let found: Vec<String> = connection
            .prepare("PRAGMA integrity_check")
            .and_then(|mut it| it.query_map([], |row| row.get(0))?.collect())
            .map_err(failed(doing))?;
        out.problems.extend(found.into_iter().filter(|it| it != "ok"));
        let broken: Vec<String> = connection
            .prepare("SELECT \"table\", parent FROM pragma_foreign_key_check")
            .and_then(|mut it| {
                let broken = |row: &rusqlite::Row<'_>| {
                    let (table, parent): (String, String) = (row.get(0)?, row.get(1)?);
                    Ok(format!("a row of {table} names a {parent} that is not there"))
                };
                it.query_map([], broken)?.collect()
            })
            .map_err(failed(doing))?;
        out.problems.extend(broken);
        let words = connection.execute("INSERT INTO words (words) VALUES ('integrity-check')", []);
        if let Err(error) = words {
            out.problems.push(format!("the index of words is damaged ({error})"));
        }
        if !deep {
            return Ok(out);
        }
        let blobs: Vec<(String, i64)> = connection
            .prepare("SELECT min(handle), blob FROM item WHERE blob IS NOT NULL GROUP BY blob ORDER BY blob")
            .and_then(|mut it| it.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
            .map_err(failed(doing))?;
        blobs
    };
    let mut buffer = vec![0; 64 * 1024];
    for (handle, blob) in blobs {
        let whole = handle.parse::<Handle>().and_then(|handle| {
            let mut reader = open(store, handle, blob)?;
            while reader.read(&mut buffer).map_err(super::unwrapped)? > 0 {}
            Ok(())
        });
        match whole {
            Ok(()) => out.originals += 1,
            Err(error) => out.problems.push(error.full()),
        }
    }
    Ok(out)
}

pub(super) fn stats(connection: &Connection, file_bytes: u64) -> Result<Stats> {
    let items: Vec<(String, i64)> = connection
        .prepare("SELECT what, count(DISTINCT item) FROM place GROUP BY what")
        .and_then(|mut it| it.query_map(params![], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_err(failed("counting what is stored"))?;
    Ok(Stats {
        items: items.into_iter().map(|(what, count)| (what, u64::try_from(count).unwrap_or(0))).collect(),
        bytes: sum(connection, "SELECT ifnull(sum(size), 0) FROM blob")?,
        stored_bytes: sum(connection, "SELECT ifnull(sum(length(packed)), 0) FROM chunk")?,
        file_bytes,
        version: VERSION,
    })
}
