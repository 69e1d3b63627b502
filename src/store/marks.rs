//! Small values that outlive a process: marks, which have a name, and asks, which have a handle and expire.

use super::archive::item::{NewItem, item, put_item, signed};
use super::database::sql::{Connection, params, write};
use super::handle::identity;
use super::{Handle, Scope};
use crate::store::Store;
use history::error::{Error, ErrorKind, Result};

/// How long an ask waits for its answer: 24 hours.
const ASK_LIVES: i64 = 24 * 60 * 60 * 1_000;

/// A value stored under a name, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    pub value: String,
    /// Milliseconds since 1970.
    pub at: i64,
}

/// Sets a mark. An existing one is replaced only if `only`, an SQL condition, holds. Returns whether it was
/// set.
fn put(connection: &Connection, scope: &Scope, name: &str, value: &str, at: i64, only: &str) -> Result<bool> {
    let sql = format!(
        "INSERT INTO mark (owner, project, name, value, at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (owner, project, name) DO UPDATE SET value = excluded.value, at = excluded.at {only}"
    );
    let changed =
        connection.execute("setting a mark", &sql, params![scope.owner, scope.project, name, value, at])?;
    Ok(changed > 0)
}

pub(super) fn mark(connection: &Connection, scope: &Scope, name: &str, value: &str, at: i64) -> Result<()> {
    put(connection, scope, name, value, at, "").map(drop)
}

impl Store {
    /// Replaces a mark by what `new` makes of it. Concurrent processes wait for each other.
    pub fn update_mark(&self, scope: &Scope, name: &str, new: &dyn Fn(Option<Mark>) -> Mark) -> Result<()> {
        let connection = &mut *self.lock();
        let doing = "counting";
        let transaction = write(connection, &scope.owner, doing)?;
        let Mark { value, at } = new(marked(&transaction, scope, name)?);
        mark(&transaction, scope, name, &value, at)?;
        transaction.commit()
    }

    /// Sets a mark unless it has this value already; returns whether it was set. Of two concurrent callers,
    /// one sets it.
    pub fn mark_anew(&self, scope: &Scope, name: &str, value: &str, at: i64) -> Result<bool> {
        let connection = &*self.lock();
        put(connection, scope, name, value, at, "WHERE mark.value <> excluded.value")
    }

    /// Removes a mark; returns whether it existed. Of two concurrent callers, one removes it.
    pub fn unmark(&self, scope: &Scope, name: &str) -> Result<bool> {
        let connection = &*self.lock();
        let sql = "DELETE FROM mark WHERE owner = ?1 AND project = ?2 AND name = ?3";
        let gone =
            connection.execute("taking a mark away", sql, [scope.owner.as_str(), &scope.project, name])?;
        Ok(gone > 0)
    }

    /// The state stored by [`Store::put_ask`] or [`Store::put_preview`]; [`ErrorKind::Refused`] if it has
    /// expired.
    pub fn ask(&self, scope: &Scope, handle: &str, at: i64) -> Result<String> {
        let connection = &*self.lock();
        let item = item(connection, scope, handle)?;
        let sql = "SELECT state, size, expires FROM ask WHERE item = ?1";
        let found: Option<(Vec<u8>, i64, i64)> =
            connection.query_optional("reading a summary request", sql, [item.id], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?;
        let Some((packed, size, expires)) = found else {
            let found =
                format!("expected the handle of a preview or summary request, found that of a {}", item.sort);
            return Err(Error::new(ErrorKind::Arguments, format!("using {}: {found}", item.handle)));
        };
        if expires <= at {
            let what = format!(
                "using {}: expected a preview or summary request of the last 24 hours, found an expired one; \
                 start over",
                item.handle
            );
            return Err(Error::new(ErrorKind::Refused, what));
        }
        let state = usize::try_from(size).ok().and_then(|size| zstd::bulk::decompress(&packed, size).ok());
        state.and_then(|it| String::from_utf8(it).ok()).ok_or_else(|| {
            let what = format!("using {}: expected its state, found it corrupted", item.handle);
            Error::new(ErrorKind::Store, what)
        })
    }

    /// Sets the mark of a name within the project, such as `compacted/SESSION`.
    pub fn mark(&self, scope: &Scope, name: &str, value: &str, at: i64) -> Result<()> {
        mark(&self.lock(), scope, name, value, at)
    }

    pub fn marked(&self, scope: &Scope, name: &str) -> Result<Option<Mark>> {
        marked(&self.lock(), scope, name)
    }

    /// Stores the state of a host-run summary until the answer comes, for 24 hours.
    pub fn put_ask(&self, scope: &Scope, state: &str, at: i64) -> Result<Handle> {
        self.check_writable()?;
        put_ask(&mut self.lock(), scope, state, at)
    }

    /// As [`Store::put_ask`], for a preview. It is shown in any case, so this does not wait long for another
    /// process.
    pub fn put_preview(&self, scope: &Scope, state: &str, at: i64) -> Result<Handle> {
        self.with_short_wait(|connection| put_ask(connection, scope, state, at))
    }
}

pub(super) fn marked(connection: &Connection, scope: &Scope, name: &str) -> Result<Option<Mark>> {
    let sql = "SELECT value, at FROM mark WHERE owner = ?1 AND project = ?2 AND name = ?3";
    connection.query_optional("reading a mark", sql, [scope.owner.as_str(), &scope.project, name], |row| {
        Ok(Mark { value: row.get(0)?, at: row.get(1)? })
    })
}

pub(super) fn put_ask(connection: &mut Connection, scope: &Scope, state: &str, at: i64) -> Result<Handle> {
    let doing = "storing a summary request";
    let transaction = write(connection, &scope.owner, doing)?;
    let new = NewItem {
        scope,
        sort: "ask",
        identity: identity("ask", scope, &[state.as_bytes()]),
        content: None,
        tokens: None,
        bytes: state.len() as u64,
        at,
    };
    let (id, handle, _) = put_item(&transaction, &new)?;
    let packed = zstd::bulk::compress(state.as_bytes(), 0).map_err(|error| {
        Error::new(ErrorKind::Store, format!("{doing}: expected to compress")).because(error)
    })?;
    let sql = "INSERT INTO ask (item, state, size, expires) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (item) DO UPDATE SET state = excluded.state, size = excluded.size, expires = excluded.expires";
    transaction.execute(doing, sql, params![id, packed, signed(state.len() as u64), at + ASK_LIVES])?;
    transaction.commit()?;
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Store, StoreAt};
    use history::secrets::Redactor;

    #[test]
    fn processes_that_count_at_once_lose_no_count() {
        let folder = tempfile::tempdir().unwrap();
        let scope = Scope { owner: "me".into(), project: String::new() };
        let open = || Store::open(&StoreAt::Path(folder.path().to_owned()), Redactor::default()).unwrap();
        let count = |it: Option<Mark>| {
            let before: u64 = it.and_then(|it| it.value.parse().ok()).unwrap_or(0);
            Mark { value: (before + 1).to_string(), at: 1 }
        };
        let store = open();
        std::thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| {
                    let store = open();
                    for _ in 0..50 {
                        store.update_mark(&scope, "counted", &count).unwrap();
                    }
                });
            }
        });
        assert_eq!(store.marked(&scope, "counted").unwrap().unwrap().value, "100");
    }
}
