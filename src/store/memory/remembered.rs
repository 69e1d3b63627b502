//! Memories in the database.

use super::duplicates;
use crate::store::Store;
use crate::store::archive::item::{Item, ItemPlace, NewItem, delete_item, item, put_item, put_place};
use crate::store::database::sql::{Connection, Row, SqlResult, Transaction, params, unexpected, write};
use crate::store::handle::identity;
use crate::store::search::index;
use crate::store::search::words::indexed;
use crate::store::{
    Handle, Imported, ItemKind, Memory, MemoryFilter, MemoryKind, MemoryScope, NewMemory, Scope, Tidied,
};
use history::error::{Error, ErrorKind, Result};
use history::secrets::Redactor;

const WRITING: &str = "remembering";
const READING: &str = "reading memories";

/// The scope that a memory is stored in: the user's own are in no project.
fn scoped(scope: &Scope, of: MemoryScope) -> Scope {
    match of {
        MemoryScope::User => Scope { owner: scope.owner.clone(), project: String::new() },
        MemoryScope::Project => scope.clone(),
    }
}

impl Store {
    /// Stores a memory. Storing the same content again refreshes the one there is.
    pub fn remember(&self, scope: &Scope, note: &NewMemory, at: i64) -> Result<Memory> {
        self.check_writable()?;
        let redactor = &self.redactor;
        let connection = &mut *self.lock();
        let transaction = write(connection, &scope.owner, WRITING)?;
        let (id, _) = put(&transaction, scope, note, at, redactor)?;
        let memory = one(&transaction, id)?;
        transaction.commit()?;
        Ok(memory)
    }

    /// Stores many memories; refused ones are skipped and reported.
    pub fn import(&self, scope: &Scope, notes: &[NewMemory], at: i64) -> Result<Imported> {
        let redactor = &self.redactor;
        let connection = &mut *self.lock();
        let transaction = write(connection, &scope.owner, WRITING)?;
        let mut out = Imported::default();
        for (number, note) in (0..).zip(notes) {
            match put(&transaction, scope, note, at, redactor) {
                Ok((_, false)) => out.added += 1,
                Ok((_, true)) => out.known += 1,
                Err(error) if matches!(error.kind(), ErrorKind::Refused | ErrorKind::Arguments) => {
                    out.refused.push((number, error.detail().to_owned()));
                }
                Err(error) => return Err(error),
            }
        }
        transaction.commit()?;
        Ok(out)
    }

    pub fn memory(&self, scope: &Scope, handle: &str) -> Result<Memory> {
        let connection = &*self.lock();
        one(connection, memory_item(connection, scope, handle)?.id)
    }

    /// Pins or unpins an item. A pinned memory is in every summary; a pinned original or compaction is never
    /// deleted as old.
    pub fn pin(&self, scope: &Scope, handle: &str, pinned: bool) -> Result<()> {
        let connection = &mut *self.lock();
        let transaction = write(connection, &scope.owner, WRITING)?;
        let item = item(&transaction, scope, handle)?;
        let change = match (item.sort.as_str(), pinned) {
            ("memory", true) => "UPDATE memory SET pinned = 1 WHERE item = ?1",
            ("memory", false) => "UPDATE memory SET pinned = 0 WHERE item = ?1",
            (_, true) => "INSERT INTO pinned (item) VALUES (?1) ON CONFLICT DO NOTHING",
            (_, false) => "DELETE FROM pinned WHERE item = ?1",
        };
        transaction.execute(WRITING, change, [item.id])?;
        transaction.commit()
    }

    /// Deletes a memory, with those that it superseded.
    pub fn forget(&self, scope: &Scope, handle: &str) -> Result<()> {
        let connection = &mut *self.lock();
        let doing = "forgetting";
        let transaction = write(connection, &scope.owner, doing)?;
        let item = memory_item(&transaction, scope, handle)?;
        let line: Vec<i64> = transaction.query_map(doing, LINE, [item.id], |row| row.get(0))?;
        for id in line {
            delete_item(&transaction, id)?;
        }
        transaction.commit()
    }

    /// Merges duplicates, if `of` is given only the user's or the project's; the newer supersedes the older.
    pub fn tidy(&self, scope: &Scope, of: Option<MemoryScope>, dry_run: bool) -> Result<Vec<Tidied>> {
        let connection = &mut *self.lock();
        let doing = "tidying memories";
        let transaction = write(connection, &scope.owner, doing)?;
        let found = duplicates(&memories(
            &transaction,
            scope,
            &MemoryFilter { scope: of, ..MemoryFilter::default() },
        )?);
        if dry_run {
            return Ok(found);
        }
        let id = |handle: &Handle| item(&transaction, scope, handle.as_str()).map(|it| it.id);
        for tidied in &found {
            let kept = id(&tidied.kept)?;
            for old in &tidied.superseded {
                let old = id(old)?;
                // If an old one was pinned, the one that supersedes it becomes pinned.
                for (sql, params) in [
                    ("UPDATE memory SET superseded = ?1 WHERE item = ?2", [kept, old]),
                    (
                        "UPDATE memory SET pinned = 1 WHERE item = ?1
                           AND EXISTS (SELECT 1 FROM memory old WHERE old.item = ?2 AND old.pinned = 1)",
                        [kept, old],
                    ),
                ] {
                    transaction.execute(doing, sql, params)?;
                }
                index::unindex(&transaction, old)?;
            }
        }
        transaction.commit()?;
        Ok(found)
    }

    /// Memories of the project and the user, newest first.
    pub fn memories(&self, scope: &Scope, filter: &MemoryFilter) -> Result<Vec<Memory>> {
        memories(&self.lock(), scope, filter)
    }

    /// The pinned memories of the project and the user, newest first: they are in every summary.
    pub fn pinned(&self, scope: &Scope) -> Result<Vec<Memory>> {
        self.memories(scope, &MemoryFilter { pinned: true, ..MemoryFilter::default() })
    }
}

/// Inserts a memory, or refreshes the same one. The flag says whether it existed.
fn put(
    transaction: &Transaction<'_>,
    scope: &Scope,
    note: &NewMemory,
    at: i64,
    redactor: &Redactor,
) -> Result<(i64, bool)> {
    if note.content.trim().is_empty() {
        let what = "remembering: expected content, found none; say what to remember";
        return Err(Error::new(ErrorKind::Arguments, what));
    }
    let content = redactor.redact(note.content.trim());
    if redactor.is_all_private(&content) {
        // The wording of opencode-supermemory 2.0.
        let what = "Cannot store fully private content: expected something outside of what is marked private";
        return Err(Error::new(ErrorKind::Refused, what));
    }
    let tags: Vec<_> = note.tags.iter().map(|it| redactor.redact(it)).collect();
    let scope = scoped(scope, note.scope);
    let created = note.created.unwrap_or(at);
    let new = NewItem {
        scope: &scope,
        sort: "memory",
        identity: identity("memory", &scope, &[note.kind.name().as_bytes(), content.as_bytes()]),
        content: None,
        tokens: None,
        bytes: content.len() as u64,
        at,
    };
    let (id, _, known) = put_item(transaction, &new)?;
    let tags = history::json::compact(&tags);
    let sql = "INSERT INTO memory (item, kind, content, created, pinned, tags, session) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (item) DO UPDATE SET superseded = NULL, session = coalesce(excluded.session, memory.session),
               created = CASE WHEN memory.created > excluded.created THEN memory.created ELSE excluded.created END,
               pinned = CASE WHEN memory.pinned > excluded.pinned THEN memory.pinned ELSE excluded.pinned END,
               tags = CASE WHEN excluded.tags = '[]' THEN memory.tags ELSE excluded.tags END";
    transaction.execute(
        WRITING,
        sql,
        params![id, note.kind.name(), content, created, note.pinned, tags, note.session],
    )?;
    let session = note.session.as_deref().unwrap_or("");
    put_place(
        transaction,
        id,
        &ItemPlace { session, kind: ItemKind::Memory, call_id: "", tool: None, message: None, at },
    )?;
    if !index::is_indexed(transaction, id)? {
        index::index(transaction, id, &indexed(&content))?;
    }
    Ok((id, known))
}

const COLUMNS: &str = "i.handle, m.kind, m.content, m.created, m.pinned, m.tags, m.session, i.project
     FROM memory m JOIN item i ON i.id = m.item";

fn memory_of(row: &Row<'_>) -> SqlResult<Memory> {
    let (handle, kind): (String, String) = (row.get(0)?, row.get(1)?);
    let unexpected = |column: usize, error: Error| unexpected(column, error.detail());
    let scope = if row.get::<String>(7)?.is_empty() { MemoryScope::User } else { MemoryScope::Project };
    Ok(Memory {
        id: handle.parse().map_err(|error| unexpected(0, error))?,
        kind: MemoryKind::named(&kind).map_err(|error| unexpected(1, error))?,
        content: row.get(2)?,
        created: row.get(3)?,
        pinned: row.get(4)?,
        tags: serde_json::from_str(&row.get::<String>(5)?).unwrap_or_default(),
        session: row.get(6)?,
        scope,
    })
}

fn one(connection: &Connection, id: i64) -> Result<Memory> {
    connection.query_row(READING, &format!("SELECT {COLUMNS} WHERE i.id = ?1"), [id], memory_of)
}

pub(crate) fn content(connection: &Connection, id: i64) -> Result<String> {
    one(connection, id).map(|it| it.content)
}

/// The item of a handle that must be a memory.
fn memory_item(connection: &Connection, scope: &Scope, handle: &str) -> Result<Item> {
    let item = item(connection, scope, handle)?;
    if item.sort == "memory" {
        return Ok(item);
    }
    let found = format!("expected the handle of a memory, found that of a {}", item.sort);
    let what = format!("looking up {}: {found}; `epitome memory list` shows handles", item.handle);
    Err(Error::new(ErrorKind::Arguments, what))
}

pub(crate) fn memories(connection: &Connection, scope: &Scope, filter: &MemoryFilter) -> Result<Vec<Memory>> {
    let (user, project) = match filter.scope {
        None => (true, true),
        Some(MemoryScope::User) => (true, false),
        Some(MemoryScope::Project) => (false, true),
    };
    let kind = filter.kind.map(MemoryKind::name);
    let limit = filter.limit.map_or(i64::MAX, i64::from);
    let sql = format!(
        "SELECT {COLUMNS}
             WHERE m.superseded IS NULL AND i.owner = ?1
               AND ((?2 = 1 AND i.project = '') OR (?3 = 1 AND i.project = ?4 AND i.project <> ''))
               AND (CAST(?5 AS TEXT) IS NULL OR m.kind = ?5) AND (?6 = 0 OR m.pinned = 1)
             ORDER BY m.created DESC, i.id DESC LIMIT ?7"
    );
    let params = params![scope.owner, user, project, scope.project, kind, filter.pinned, limit];
    connection.query_map(READING, &sql, params, memory_of)
}

/// A memory and all that it superseded, directly or not; the oldest first, since each refers to its
/// successor.
pub(crate) const LINE: &str = "WITH RECURSIVE line(item, depth) AS (
       SELECT CAST(?1 AS BIGINT), 0 UNION SELECT m.item, depth + 1 FROM memory m JOIN line ON m.superseded = line.item
     ) SELECT item FROM line ORDER BY depth DESC";
