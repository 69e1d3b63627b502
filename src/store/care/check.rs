//! Checks the store's integrity, and rewrites originals that an older version stored.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{ids, sum, sum_of_packs};
use crate::store::content::chunks::{LARGEST_CHUNK, intact_chunks, is_intact, open};
use crate::store::content::{Packer, put_content, put_packs};
use crate::store::database::schema;
use crate::store::database::sql::{Connection, locked, params, write};
use crate::store::{Handle, Store, unwrapped};
use history::error::Result;

/// What an integrity check found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Checked {
    /// Originals that were read completely and match their digests.
    pub originals: u64,
    /// What is wrong, a sentence each; empty when all is well.
    pub problems: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Stats {
    /// Number of items of each kind (`session`, `message`, `output`, `compaction`, `memory`).
    pub items: BTreeMap<String, u64>,
    /// Bytes of the originals, each content once.
    pub bytes: u64,
    /// Their size compressed.
    pub stored_bytes: u64,
    /// Originals that [`Store::rewrite_old_format`] would rewrite.
    pub old_format: u64,
    /// Size of the database file; 0 in memory.
    pub file_bytes: u64,
}

impl Store {
    /// Rewrites the originals that an older version stored in larger chunks; returns how many. Nothing is
    /// lost if the process is killed meanwhile.
    pub fn rewrite_old_format(&self) -> Result<u64> {
        let store = &self.pool;
        let doing = "rewriting originals";
        let sql = "SELECT min(i.handle), c.id, c.owner FROM content c JOIN item i ON i.content = c.id
                 WHERE c.id IN (SELECT p.content FROM part p JOIN chunk h ON h.id = p.chunk WHERE h.size > ?1)
                 GROUP BY c.id ORDER BY c.id";
        let old: Vec<(String, i64, String)> =
            locked(store).query_map(doing, sql, [LARGEST_CHUNK as i64], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
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
            // Do not bring back an original that another process has deleted meanwhile.
            let sql = "SELECT 1 FROM content WHERE id = ?1 AND owner = ?2 AND sha = ?3";
            let is_there = transaction.exists(doing, sql, params![content, owner, prepared.digest.0])?;
            put_packs(&transaction, &owner, &packs)?;
            if is_there && put_content(&transaction, &owner, &prepared)?.is_some() {
                transaction.commit()?;
                moved += 1;
            }
        }
        Ok(moved)
    }

    /// Gives freed space back to the disk.
    pub fn vacuum(&self) -> Result<()> {
        let connection = &*self.lock();
        let doing = "freeing disk space";
        match connection {
            Connection::Sqlite(it) => schema::vacuum(it).map_err(schema::failed(doing)),
            // PostgreSQL vacuums by itself.
            #[cfg(feature = "team")]
            Connection::Postgres(_) => Ok(()),
        }
    }

    /// Checks the database, and reads every original.
    pub fn check(&self) -> Result<Checked> {
        let store = &self.pool;
        let doing = "checking the store";
        let mut out = Checked::default();
        let contents = {
            let connection = locked(store);
            match &*connection {
                Connection::Sqlite(it) => out.problems = schema::check(it).map_err(schema::failed(doing))?,
                // PostgreSQL enforces its constraints at every write.
                #[cfg(feature = "team")]
                Connection::Postgres(_) => {}
            }
            let sql = "SELECT min(handle), content FROM item WHERE content IS NOT NULL GROUP BY content ORDER BY content";
            let contents: Vec<(String, i64)> =
                connection.query_map(doing, sql, params![], |row| Ok((row.get(0)?, row.get(1)?)))?;
            contents
        };
        // Shared chunks are read only once. An original with a chunk that fails is read by itself, to report
        // what is wrong.
        let intact = intact_chunks(store)?;
        for (handle, content) in contents {
            let whole = handle.parse::<Handle>().and_then(|handle| {
                if is_intact(&locked(store), handle, content, &intact) {
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
        let sql = "SELECT what, count(DISTINCT item) FROM place GROUP BY what";
        let items: Vec<(String, i64)> =
            connection
                .query_map("counting what is stored", sql, params![], |row| Ok((row.get(0)?, row.get(1)?)))?;
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
        })
    }
}
