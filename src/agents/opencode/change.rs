//! Writing back into OpenCode's database: applies the difference between two exports, in one transaction.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rusqlite::types::{Value as Column, ValueRef};
use rusqlite::{Connection, OpenFlags, Row, Transaction, TransactionBehavior, params};
use serde_json::{Map, Value};

use history::error::{Error, ErrorKind, Hint, Result};

/// Changes the database from the export `from` to the export `to`.
///
/// If both are of the same session, messages and parts that only `to` has are inserted, those that only
/// `from` has are deleted, and those that differ are updated. If the ids differ, a new session is created,
/// its row copied from `from`'s session. Rows in neither export, such as later turns, are kept, so swapping
/// the two undoes a change.
///
/// [`ErrorKind::Changed`] if a row no longer matches `from`: then nothing is written.
pub(super) fn change(database: &Path, from: &[u8], to: &[u8]) -> Result<()> {
    let (from, to) = (SessionRows::of(from)?, SessionRows::of(to)?);
    let failed = |it: rusqlite::Error| failed(database, it);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(database, flags).map_err(failed)?;
    connection.busy_timeout(Duration::from_secs(5)).map_err(failed)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let same = from.session == to.session;
    if !same {
        copy_session(&transaction, &from.session, &to.info).map_err(failed)?;
    }
    let nothing = BTreeMap::new();
    let old = if same { &from.rows } else { &nothing };
    // Reversed, parts come before messages: deleting a message would delete its parts too.
    for (key, row) in old.iter().rev() {
        let (table, id) = key;
        let wanted = to.rows.get(key);
        if wanted.is_some_and(|it| it.data == row.data) {
            continue;
        }
        let sql = format!("SELECT data FROM {table} WHERE id = ?1");
        let found = transaction.query_row(&sql, [id], |it| Ok(text(it, 0)));
        let found = found.ok().map(|it| as_exported(&it));
        if found.as_ref() != Some(&row.data) {
            let what = format!("expected {id} as it was read, found it changed; read the session again");
            return Err(Error::new(ErrorKind::Changed, what).at_path(database));
        }
        let done = match wanted {
            Some(it) => {
                let sql = format!("UPDATE {table} SET data = ?2 WHERE id = ?1");
                transaction.execute(&sql, params![id, as_stored(&it.data)])
            }
            None => transaction.execute(&format!("DELETE FROM {table} WHERE id = ?1"), [id]),
        };
        done.map_err(failed)?;
    }
    // Messages sort before parts, which reference them.
    for (key, row) in to.rows.iter().filter(|it| !old.contains_key(it.0)) {
        let data = as_stored(&row.data);
        let done = match &row.message {
            None => transaction.execute(
                "INSERT INTO message (id, session_id, time_created, time_updated, data) VALUES (?1, ?2, ?3, ?3, ?4)",
                params![key.1, to.session, row.at, data],
            ),
            Some(message) => transaction.execute(
                "INSERT INTO part (id, message_id, session_id, time_created, time_updated, data) \
                 VALUES (?1, ?2, ?3, ?4, ?4, ?5)",
                params![key.1, message, to.session, row.at, data],
            ),
        };
        done.map_err(failed)?;
    }
    transaction.commit().map_err(failed)
}

/// A message or part as stored in the `data` column, without its ids.
struct StoredRow {
    /// The id of the part's message; `None` for a message.
    message: Option<String>,
    at: i64,
    data: Value,
}

struct SessionRows {
    session: String,
    info: Value,
    /// Key: table and id.
    rows: BTreeMap<(&'static str, String), StoredRow>,
}

impl SessionRows {
    fn of(document: &[u8]) -> Result<Self> {
        let wrong = || {
            let what = "expected an export of OpenCode with ids everywhere, found something else";
            Error::new(ErrorKind::Input, what)
        };
        let mut document: Value =
            serde_json::from_str(&history::json::mend(document)).map_err(|it| wrong().because(it))?;
        let info = document.get_mut("info").map(Value::take).unwrap_or_default();
        let session = info["id"].as_str().ok_or_else(wrong)?.to_owned();
        let mut rows = BTreeMap::new();
        let messages = document.get_mut("messages").and_then(Value::as_array_mut);
        for message in messages.ok_or_else(wrong)? {
            let (id, data) = message.get_mut("info").map(Value::take).and_then(stored).ok_or_else(wrong)?;
            let at = data["time"]["created"].as_i64().unwrap_or_default();
            let parts = message.get_mut("parts").and_then(Value::as_array_mut);
            for part in parts.into_iter().flatten() {
                let (part, data) = stored(part.take()).ok_or_else(wrong)?;
                rows.insert(("part", part), StoredRow { message: Some(id.clone()), at, data });
            }
            rows.insert(("message", id), StoredRow { message: None, at, data });
        }
        Ok(Self { session, info, rows })
    }
}

/// The id, and the object without the fields that have their own columns.
fn stored(value: Value) -> Option<(String, Value)> {
    let Value::Object(object) = value else { return None };
    let id = object.get("id")?.as_str()?.to_owned();
    let own = |it: &str| matches!(it, "id" | "sessionID" | "messageID");
    let data: Map<_, _> = object.into_iter().filter(|it| !own(&it.0)).collect();
    Some((id, Value::Object(data)))
}

/// The field in which an export keeps the text of a row that is not a JSON object.
pub(super) const UNREADABLE: &str = "unreadable";

/// A row's `data` as it appears in an export.
fn as_exported(text: &str) -> Value {
    let read = serde_json::from_str(text).ok().filter(Value::is_object);
    read.unwrap_or_else(|| serde_json::json!({ UNREADABLE: text }))
}

/// A row's `data` as stored in the database.
fn as_stored(data: &Value) -> String {
    let unreadable = data.as_object().filter(|it| it.len() == 1).and_then(|it| it.get(UNREADABLE)?.as_str());
    unreadable.map_or_else(|| history::json::compact(data), str::to_owned)
}

/// Inserts a copy of the old session's row, in all columns but those that make it a new session.
fn copy_session(transaction: &Transaction<'_>, old: &str, info: &Value) -> rusqlite::Result<()> {
    let text = |key: &str| Column::Text(info[key].as_str().unwrap_or_default().to_owned());
    let time = |key: &str| Column::Integer(info["time"][key].as_i64().unwrap_or_default());
    let mut statement = transaction.prepare("SELECT * FROM session WHERE id = ?1")?;
    let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let values = statement.query_row([old], |row| {
        names
            .iter()
            .enumerate()
            .map(|(index, name)| {
                row.get::<_, Column>(index).map(|it| match &**name {
                    "id" => text("id"),
                    "slug" => text("slug"),
                    "title" => text("title"),
                    "time_created" => time("created"),
                    "time_updated" => time("updated"),
                    "parent_id" | "share_url" | "revert" | "time_compacting" | "time_archived" => {
                        Column::Null
                    }
                    name if name.starts_with("tokens_") || name == "cost" => Column::Integer(0),
                    _ => it,
                })
            })
            .collect::<rusqlite::Result<Vec<Column>>>()
    })?;
    let quoted: Vec<_> = names.iter().map(|it| format!("\"{}\"", it.replace('"', "\"\""))).collect();
    let marks = vec!["?"; names.len()].join(", ");
    let sql = format!("INSERT INTO session ({}) VALUES ({marks})", quoted.join(", "));
    transaction.execute(&sql, rusqlite::params_from_iter(values))?;
    Ok(())
}

pub(super) fn failed(path: &Path, error: rusqlite::Error) -> Error {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, ReadOnly};
    let failed = match error.sqlite_error_code() {
        Some(DatabaseBusy | DatabaseLocked) => {
            let what = "using OpenCode's database: another process is writing to it; nothing was changed; \
                try again when it is done";
            Error::new(ErrorKind::Locked, what)
        }
        Some(ReadOnly) => {
            let what = "using OpenCode's database: nothing was changed, since it is not writable (chmod u+w)";
            Error::new(ErrorKind::Refused, what).or_hint(Hint::WriteCopy)
        }
        _ => Error::new(
            ErrorKind::Input,
            "using OpenCode's database: expected its tables and rows, found an error",
        ),
    };
    failed.at_path(path).because(error)
}

/// A column as text, repaired by `json::mend`; empty if it is null or a number.
pub(super) fn text(row: &Row<'_>, column: usize) -> String {
    match row.get_ref(column) {
        Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => history::json::mend(bytes).into_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::opencode::database::export;
    use history::{History, Message, Part, Role};
    use sessions::agents::opencode;
    use sessions::wire::OPENCODE_MARKER;
    use sessions::{MemorySource, Mode};

    fn database(path: &Path) -> Connection {
        let db = Connection::open(path).unwrap();
        db.execute_batch(
            "CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, slug TEXT, directory TEXT, title TEXT,
                version TEXT, cost REAL, tokens_input INTEGER, future TEXT, time_created INTEGER, time_updated INTEGER);
             CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT REFERENCES session(id), time_created INTEGER,
                time_updated INTEGER, data TEXT);
             CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT REFERENCES message(id) ON DELETE CASCADE,
                session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
             INSERT INTO session VALUES ('ses_1', 'global', 'ses_0', 's', '/p', 'T', '1.18.33', 1.5, 7, 'kept', 1, 40);",
        )
        .unwrap();
        let rows = [
            ("msg_1", 10, r#"{"role":"user","time":{"created":10}}"#, r#"{"type":"text","text":"Fix it"}"#),
            (
                "msg_2",
                20,
                r#"{"role":"assistant","time":{"created":20}}"#,
                r#"{"type":"tool","tool":"bash","callID":"c","state":{"status":"completed","input":{},"output":"long","time":{"start":1.50}}}"#,
            ),
            ("msg_3", 30, r#"{"role":"user","time":{"created":30}}"#, r#"{"type":"text","text":"Next"}"#),
        ];
        for (id, at, info, part) in rows {
            db.execute("INSERT INTO message VALUES (?1, 'ses_1', ?2, ?2, ?3)", params![id, at, info])
                .unwrap();
            let values = params![format!("prt_{id}"), id, at, part];
            db.execute("INSERT INTO part VALUES (?1, ?2, 'ses_1', ?3, ?3, ?4)", values).unwrap();
        }
        db
    }

    fn written(before: &[u8], mode: Mode) -> Vec<u8> {
        let source = MemorySource::new("db", before);
        let session = opencode::read(&source).unwrap();
        let mut messages = session.history.messages().to_vec();
        if mode == Mode::Patch {
            for part in messages.iter_mut().flat_map(|it| &mut it.parts) {
                if let Part::Output(output) = part {
                    output.text = "[gone]".into();
                }
            }
        } else {
            messages.splice(..3, [Message::text(Role::User, history::Kind::Summary, "sum")]);
        }
        let after = History::new(messages, session.history.meta.clone());
        opencode::write(&source, &session, &after, mode).unwrap().bytes(&source).unwrap()
    }

    fn dump(db: &Connection) -> String {
        let mut out = String::new();
        for table in ["session", "message", "part"] {
            let mut all = db.prepare(&format!("SELECT * FROM {table} ORDER BY id")).unwrap();
            let columns = all.column_count();
            let mut rows = all.query([]).unwrap();
            while let Some(row) = rows.next().unwrap() {
                for index in 0..columns {
                    out.push_str(&format!("{:?} ", row.get::<_, Column>(index).unwrap()));
                }
                out.push('\n');
            }
        }
        out
    }

    #[test]
    fn there_and_back() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [Mode::Patch, Mode::Append] {
            let path = folder.path().join(format!("{mode:?}.db"));
            let db = database(&path);
            let original = dump(&db);
            let before = export(&path, "ses_1").unwrap();
            let after = written(&before, mode);
            change(&path, &before, &after).unwrap();
            let found: Value = serde_json::from_slice(&export(&path, "ses_1").unwrap()).unwrap();
            assert_eq!(found["messages"], serde_json::from_slice::<Value>(&after).unwrap()["messages"]);
            // A second time it fails: the rows no longer match `from`, or exist already.
            let done = dump(&db);
            assert!(change(&path, &before, &after).is_err());
            assert_eq!(dump(&db), done, "nothing is written by halves");
            // A later turn is kept when the change is undone.
            db.execute("INSERT INTO message VALUES ('msg_9', 'ses_1', 90, 90, '{}')", []).unwrap();
            change(&path, &after, &before).unwrap();
            db.execute("DELETE FROM message WHERE id = 'msg_9'", []).unwrap();
            assert_eq!(dump(&db).replace("1.5}", "1.50}"), original);
        }
    }

    #[test]
    fn a_session_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let db = database(&path);
        let before = export(&path, "ses_1").unwrap();
        let after = written(&before, Mode::New);
        change(&path, &before, &after).unwrap();
        assert_eq!(export(&path, "ses_1").unwrap(), before, "the old one is as it was");
        let info: Value = serde_json::from_slice::<Value>(&after).unwrap()["info"].take();
        let id = info["id"].as_str().unwrap();
        let session = opencode::read(&MemorySource::new("new", export(&path, id).unwrap())).unwrap();
        let said: Vec<_> = session.history.messages().iter().map(Message::plain).collect();
        assert_eq!(said, [OPENCODE_MARKER, "sum", "Next"]);
        let row = |sql: &str| db.query_row(sql, [id], |it| it.get::<_, Option<String>>(0)).unwrap();
        assert_eq!(row("SELECT future FROM session WHERE id = ?1").as_deref(), Some("kept"));
        assert_eq!(row("SELECT parent_id FROM session WHERE id = ?1"), None);
        let other = before.as_slice();
        assert_eq!(
            change(&folder.path().join("none.db"), other, other).unwrap_err().kind(),
            ErrorKind::Input
        );
        assert_eq!(change(&path, b"{}", other).unwrap_err().kind(), ErrorKind::Input);
    }

    #[test]
    fn what_changed_meanwhile_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let db = database(&path);
        let before = export(&path, "ses_1").unwrap();
        let after = written(&before, Mode::Patch);
        db.execute("UPDATE part SET data = '{}' WHERE id = 'prt_msg_2'", []).unwrap();
        let found = dump(&db);
        assert_eq!(change(&path, &before, &after).unwrap_err().kind(), ErrorKind::Changed);
        assert_eq!(dump(&db), found);
    }
}
