//! Items, which is everything that has a handle: their owner, and their places in sessions.

use serde::{Deserialize, Serialize};

use super::READING;
use crate::store::Store;
use crate::store::database::sql::{Connection, Row, SqlResult, Transaction, params, unexpected, write};
use crate::store::search::index;
use crate::store::{Digest, Handle, Scope};
use history::error::{Error, ErrorKind, Hint, Result};
use history::named;

const STORING: &str = "storing in the archive";

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ItemKind {
        /// A whole session as it was.
        Session = "session",
        Message = "message",
        Output = "output",
        /// A compaction; its text is its summary (a snapshot), its original the session.
        Compaction = "compaction",
        Memory = "memory",
    }
}

/// What is stored about an item besides its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    pub handle: Handle,
    pub kind: ItemKind,
    /// Its project; empty when it belongs to the user.
    pub project: String,
    /// The session that it belongs to, if any; the newest of several.
    pub session: Option<String>,
    /// Number of the message in that session when it was stored.
    pub message: Option<u32>,
    /// The call that an output answers.
    pub call_id: Option<String>,
    /// The tool that made an output.
    pub tool: Option<String>,
    /// Tokens, where they were counted.
    pub tokens: Option<u64>,
    /// Bytes of the original, the summary or the memory.
    pub bytes: u64,
    /// When it was last stored, in milliseconds since 1970.
    pub at: i64,
}

/// The columns of a row of `item` that readers need.
pub(crate) struct Item {
    pub(crate) id: i64,
    pub(crate) handle: Handle,
    pub(crate) project: String,
    pub(crate) sort: String,
    pub(crate) content: Option<i64>,
}

pub(crate) struct NewItem<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) sort: &'static str,
    pub(crate) identity: Digest,
    pub(crate) content: Option<i64>,
    pub(crate) tokens: Option<u64>,
    pub(crate) bytes: u64,
    pub(crate) at: i64,
}

/// The handle of an identity with its item's id, or else the first handle that is free for it.
pub(crate) fn handle_for(connection: &Connection, identity: &Digest) -> Result<(Handle, Option<i64>)> {
    let find = "SELECT id, identity FROM item WHERE handle = ?1";
    for n in 0.. {
        let handle = Handle::nth(identity, n);
        let found: Option<(i64, [u8; 32])> =
            connection
                .query_optional(READING, find, [handle.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?;
        match found {
            None => return Ok((handle, None)),
            Some((id, same)) if same == identity.0 => return Ok((handle, Some(id))),
            Some(_) => {}
        }
    }
    Err(Error::new(ErrorKind::Bug, "choosing a handle: expected a free one"))
}

/// Inserts an item, or refreshes the one with the same identity. The flag says whether it existed.
pub(crate) fn put_item(transaction: &Transaction<'_>, new: &NewItem<'_>) -> Result<(i64, Handle, bool)> {
    let (handle, found) = handle_for(transaction, &new.identity)?;
    if let Some(id) = found {
        let sql = "UPDATE item SET at = CASE WHEN at > ?2 THEN at ELSE ?2 END, tokens = coalesce(?3, tokens),
               content = coalesce(?4, content) WHERE id = ?1";
        transaction.execute(STORING, sql, params![id, new.at, new.tokens.map(signed), new.content])?;
        return Ok((id, handle, true));
    }
    let sql = "INSERT INTO item (handle, identity, owner, project, sort, content, tokens, bytes, at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) RETURNING id";
    let id = transaction.query_row(
        STORING,
        sql,
        params![
            handle.as_str(),
            new.identity.0,
            new.scope.owner,
            new.scope.project,
            new.sort,
            new.content,
            new.tokens.map(signed),
            signed(new.bytes),
            new.at
        ],
        |row| row.get(0),
    )?;
    Ok((id, handle, false))
}

/// An item's place in a session.
pub(crate) struct ItemPlace<'a> {
    pub(crate) session: &'a str,
    pub(crate) kind: ItemKind,
    pub(crate) call_id: &'a str,
    pub(crate) tool: Option<&'a str>,
    pub(crate) message: Option<u32>,
    pub(crate) at: i64,
}

pub(crate) fn put_place(transaction: &Transaction<'_>, item: i64, place: &ItemPlace<'_>) -> Result<()> {
    let sql = "INSERT INTO place (item, session, what, call_id, tool, message, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (item, session, what, call_id) DO UPDATE
               SET tool = excluded.tool, message = excluded.message, at = excluded.at WHERE place.at <= excluded.at";
    transaction.execute(
        STORING,
        sql,
        params![item, place.session, place.kind.name(), place.call_id, place.tool, place.message, place.at],
    )?;
    Ok(())
}

/// SQL integers are signed; our counters never get that large.
pub(crate) fn signed(it: u64) -> i64 {
    i64::try_from(it).unwrap_or(i64::MAX)
}

fn unsigned(it: i64) -> u64 {
    u64::try_from(it).unwrap_or(0)
}

/// The item of that handle, if the scope may see it.
pub(crate) fn item(connection: &Connection, scope: &Scope, handle: &str) -> Result<Item> {
    let item = owned_item(connection, handle, &scope.owner)?;
    if item.project == scope.project || item.project.is_empty() {
        return Ok(item);
    }
    let what = format!(
        "looking up {handle}: expected a handle of this project, found one of another; run it in that project"
    );
    Err(Error::new(ErrorKind::Refused, what).or_hint(Hint::AllScopes))
}

/// The owner's item of that handle. Another owner's is reported as missing, so that handles do not leak.
fn owned_item(connection: &Connection, handle: &str, owner: &str) -> Result<Item> {
    let handle: Handle = handle.parse()?;
    let own = "SELECT id, project, sort, content FROM item WHERE handle = ?1 AND owner = ?2";
    let other = "SELECT id, project, sort, content FROM item
                 WHERE id = (SELECT item FROM alias WHERE handle = ?1 AND owner = ?2) AND owner = ?2";
    for sql in [own, other] {
        let found = connection.query_optional(READING, sql, [handle.as_str(), owner], |row| {
            Ok(Item {
                id: row.get(0)?,
                handle,
                project: row.get(1)?,
                sort: row.get(2)?,
                content: row.get(3)?,
            })
        })?;
        if let Some(item) = found {
            return Ok(item);
        }
    }
    Err(missing(handle))
}

impl Store {
    /// Adds handles that an item had on another machine, so that it is found by these too.
    pub fn put_aliases(&self, scope: &Scope, handle: &str, others: &[Handle]) -> Result<()> {
        self.check_writable()?;
        let connection = &mut *self.lock();
        let item = item(connection, scope, handle)?;
        let transaction = write(connection, &scope.owner, STORING)?;
        for other in others {
            let sql = "INSERT INTO alias (owner, handle, item) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
            transaction.execute(STORING, sql, params![scope.owner, other.as_str(), item.id])?;
        }
        transaction.commit()
    }

    /// The handles that an item had on other machines.
    pub fn aliases(&self, scope: &Scope, handle: &str) -> Result<Vec<Handle>> {
        let connection = &*self.lock();
        let item = item(connection, scope, handle)?;
        let sql = "SELECT handle FROM alias WHERE item = ?1 ORDER BY handle";
        let found: Vec<String> = connection.query_map(READING, sql, [item.id], |row| row.get(0))?;
        Ok(found.iter().filter_map(|it| Handle::parse(it)).collect())
    }

    /// The scope of an owner's handle in any project (for `--scope all`). The project is empty for the user's
    /// own memories.
    pub fn locate(&self, handle: &str, owner: &str) -> Result<Scope> {
        let connection = &*self.lock();
        let item = owned_item(connection, handle, owner)?;
        Ok(Scope { owner: owner.to_owned(), project: item.project })
    }
}

pub(crate) fn missing(handle: Handle) -> Error {
    let what = format!("unknown handle {handle}; `epitome recall` lists the newest ones");
    Error::new(ErrorKind::Arguments, what)
}

/// Deletes an item and all rows that depend on it, but not its content.
pub(crate) fn delete_item(transaction: &Transaction<'_>, id: i64) -> Result<()> {
    index::unindex(transaction, id)?;
    transaction.execute("deleting from the archive", "DELETE FROM item WHERE id = ?1", [id])?;
    Ok(())
}

/// The columns that [`entry_of`] reads.
pub(crate) const ENTRY: &str =
    "i.handle, p.what, i.project, p.session, p.message, p.call_id, p.tool, i.tokens, i.bytes, i.at";

pub(crate) fn entry_of(row: &Row<'_>) -> SqlResult<Entry> {
    let handle: String = row.get(0)?;
    let what: String = row.get(1)?;
    let filled = |it: String| Some(it).filter(|it| !it.is_empty());
    Ok(Entry {
        handle: Handle::parse(&handle).ok_or_else(|| unexpected(0, &handle))?,
        kind: ItemKind::find(&what).ok_or_else(|| unexpected(1, &what))?,
        project: row.get(2)?,
        session: filled(row.get(3)?),
        message: row.get(4)?,
        call_id: filled(row.get(5)?),
        tool: row.get(6)?,
        tokens: row.get::<Option<i64>>(7)?.map(unsigned),
        bytes: unsigned(row.get(8)?),
        at: row.get(9)?,
    })
}
