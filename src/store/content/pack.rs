//! Packs of compressed chunks: rows of the database or, in a team's store, objects that its rows name.

use crate::store::Digest;
use crate::store::database::sql::{Connection, Transaction, params};
use history::error::Result;

/// A compressed pack that is about to be stored.
pub(crate) struct Packed {
    sha: Digest,
    /// Uncompressed bytes.
    size: usize,
    place: PackPlace,
}

enum PackPlace {
    Inline(Vec<u8>),
    /// An object's name and size in bytes.
    #[cfg(feature = "team")]
    Object(String, usize),
}

impl Packed {
    /// Uploads the pack if packs are objects; otherwise holds it in memory until [`put`].
    pub(crate) fn new(
        connection: &Connection,
        owner: &str,
        sha: Digest,
        size: usize,
        packed: Vec<u8>,
    ) -> Result<Self> {
        let place = match connection {
            Connection::Sqlite(_) => {
                let _ = owner;
                PackPlace::Inline(packed)
            }
            #[cfg(feature = "team")]
            Connection::Postgres(session) => {
                let bytes = packed.len();
                PackPlace::Object(session.blobs().put(owner, &sha, packed)?, bytes)
            }
        };
        Ok(Self { sha, size, place })
    }

    /// Bytes of memory that it takes until it is stored.
    pub(crate) fn pending_bytes(&self) -> usize {
        match &self.place {
            PackPlace::Inline(packed) => packed.len(),
            #[cfg(feature = "team")]
            PackPlace::Object(..) => 0,
        }
    }
}

/// Stores a pack; returns its id. One that exists is replaced, since it may be damaged.
pub(crate) fn put(transaction: &Transaction<'_>, pack: &Packed) -> Result<i64> {
    let size = pack.size as i64;
    let doing = "archiving originals";
    match &pack.place {
        PackPlace::Inline(packed) => transaction.query_row(
            doing,
            "INSERT INTO pack (sha, size, packed) VALUES (?1, ?2, ?3)
             ON CONFLICT (sha) DO UPDATE SET size = excluded.size, packed = excluded.packed RETURNING id",
            params![pack.sha.0, size, packed],
            |row| row.get(0),
        ),
        #[cfg(feature = "team")]
        PackPlace::Object(name, bytes) => transaction.query_row(
            doing,
            "INSERT INTO pack (sha, size, stored, name) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (sha) DO UPDATE SET size = excluded.size, stored = excluded.stored, name = excluded.name
             RETURNING id",
            params![pack.sha.0, size, *bytes as i64, name],
            |row| row.get(0),
        ),
    }
}

/// Deletes objects that no row names any more. `at`: milliseconds since 1970.
pub(crate) fn sweep_objects(connection: &Connection, at: i64) -> Result<()> {
    match connection {
        Connection::Sqlite(_) => {
            let _ = at;
            Ok(())
        }
        #[cfg(feature = "team")]
        Connection::Postgres(session) => {
            let named: Vec<String> =
                connection
                    .query_map("deleting old data", "SELECT name FROM pack", params![], |row| row.get(0))?;
            session.blobs().sweep(&named.into_iter().collect(), at)
        }
    }
}

/// A pack's uncompressed size and its compressed bytes; `None` if it is missing.
pub(crate) fn read(connection: &Connection, pack: i64) -> Result<Option<(i64, Vec<u8>)>> {
    let doing = "reading the archive";
    match connection {
        Connection::Sqlite(_) => {
            connection.query_optional(doing, "SELECT size, packed FROM pack WHERE id = ?1", [pack], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
        }
        #[cfg(feature = "team")]
        Connection::Postgres(session) => {
            let sql = "SELECT size, name FROM pack WHERE id = ?1";
            let found: Option<(i64, String)> =
                connection.query_optional(doing, sql, [pack], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let Some((size, name)) = found else { return Ok(None) };
            Ok(session.blobs().get(&name)?.map(|packed| (size, packed)))
        }
    }
}
