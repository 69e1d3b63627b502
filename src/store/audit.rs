//! The audit log: who did what with the archive, and when. It holds neither contents nor secrets.

use serde::Serialize;

use super::database::sql::{Row, SqlResult, params, unexpected, write};
use crate::store::Store;
use history::error::Result;
use history::named;

/// Maximum entries that are kept of one owner; the oldest are deleted.
const MOST: i64 = 10_000;

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum AuditVerb {
        Compact = "compact",
        Prune = "prune",
        Repair = "repair",
        Undo = "undo",
        /// An original written somewhere.
        Restore = "restore",
        /// An original, or a part of it, shown.
        Read = "read",
        Export = "export",
        Import = "import",
        /// A session sent to a team's server.
        Push = "push",
        /// A session that a server was sent.
        Store = "store",
    }
}

named! {
    /// The interface that called.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Face {
        /// A program that uses this crate.
        Library = "library",
        Cli = "cli",
        /// MCP over standard input.
        Mcp = "mcp",
        Hook = "hook",
        /// An agent that compacts.
        Seat = "seat",
        /// HTTP: MCP, `PUT /sessions` and the gateway.
        Server = "server",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditEntry {
    pub owner: String,
    /// Milliseconds since 1970.
    pub at: i64,
    pub verb: AuditVerb,
    pub face: Face,
    /// The agent that asked, where it is known.
    pub agent: Option<String>,
    /// Empty for what belongs to the user.
    pub project: String,
    pub session: Option<String>,
    pub handle: Option<String>,
}

impl Store {
    /// The entries of one owner, or of all, since a time in milliseconds since 1970; newest first.
    pub fn audit(&self, owner: Option<&str>, since: Option<i64>, limit: u32) -> Result<Vec<AuditEntry>> {
        let connection = &*self.lock();
        let sql = "SELECT owner, at, verb, face, agent, project, session, handle FROM audit
                 WHERE (CAST(?1 AS TEXT) IS NULL OR owner = ?1) AND at >= ?2 ORDER BY id DESC LIMIT ?3";
        connection.query_map(
            "reading the audit log",
            sql,
            params![owner, since.unwrap_or(i64::MIN), limit],
            entry_of,
        )
    }

    /// Adds an entry to the audit log; the oldest ones are deleted. Does not wait for a store that another
    /// process holds.
    pub fn put_audit(&self, entry: &AuditEntry) -> Result<()> {
        let (doing, owner) = ("writing to the audit log", entry.owner.as_str());
        let (verb, face) = (entry.verb.name(), entry.face.name());
        let AuditEntry { at, agent, project, session, handle, .. } = entry;
        self.with_short_wait(|connection| {
            let transaction = write(connection, owner, doing)?;
            let sql = "INSERT INTO audit (owner, at, verb, face, agent, project, session, handle)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
            let params = params![owner, at, verb, face, agent, project, session, handle];
            transaction.execute(doing, sql, params)?;
            let sql = "DELETE FROM audit WHERE owner = ?1
                     AND id <= (SELECT id FROM audit WHERE owner = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)";
            transaction.execute(doing, sql, params![owner, MOST])?;
            transaction.commit()
        })
    }
}

fn entry_of(row: &Row<'_>) -> SqlResult<AuditEntry> {
    let (verb, face): (String, String) = (row.get(2)?, row.get(3)?);
    Ok(AuditEntry {
        owner: row.get(0)?,
        at: row.get(1)?,
        verb: AuditVerb::find(&verb).ok_or_else(|| unexpected(2, &verb))?,
        face: Face::find(&face).ok_or_else(|| unexpected(3, &face))?,
        agent: row.get(4)?,
        project: row.get(5)?,
        session: row.get(6)?,
        handle: row.get(7)?,
    })
}
