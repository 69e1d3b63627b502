//! OpenCode's SQLite database: a session as `opencode export` prints it, and the list of sessions.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};
use serde_json::{Map, Value, json};

use super::change::{UNREADABLE, change, failed, text};
use super::{OpenCode, home};
use crate::agents::{Database, Env, FoundSession, files, first_words};
use history::error::{Error, ErrorKind, Result};
use history::json::set;

/// Environment variable: the database, as an absolute path or as a name in the data folder.
pub(super) const VARIABLE: &str = "OPENCODE_DB";

impl Database for OpenCode {
    fn export(&self, database: &Path, id: &str) -> Result<Vec<u8>> {
        export(database, id)
    }

    fn change(&self, database: &Path, old: &[u8], new: &[u8]) -> Result<()> {
        change(database, old, new)
    }

    fn changed_ms(&self, database: &Path, id: &str) -> Option<i64> {
        let found = sessions(database, None, Some(id)).ok()?;
        found.first().map(|it| it.changed_ms)
    }

    fn ids(&self, export: &[u8]) -> Vec<String> {
        rows(&parsed(export)).into_iter().map(|it| it.0).collect()
    }

    fn differing(&self, old: &[u8], new: &[u8]) -> Vec<String> {
        let (old, new) = (parsed(old), parsed(new));
        let old: std::collections::BTreeMap<String, &Value> = rows(&old).into_iter().collect();
        rows(&new).into_iter().filter(|(id, row)| old.get(id) != Some(row)).map(|it| it.0).collect()
    }

    fn without(&self, now: &[u8], original: &[u8], ids: &[String]) -> Result<Vec<u8>> {
        let (mut now, original) = (parsed(now), parsed(original));
        let old: std::collections::BTreeMap<String, &Value> = rows(&original).into_iter().collect();
        let undone = |row: &mut Value| {
            let Some(id) = row["id"].as_str().map(str::to_owned) else { return true };
            if !ids.contains(&id) {
                return true;
            }
            match old.get(&id) {
                Some(old) => {
                    row.clone_from(old);
                    true
                }
                None => false,
            }
        };
        let messages = messages(&mut now)?;
        for message in messages.iter_mut() {
            if let Some(parts) = message.get_mut("parts").and_then(Value::as_array_mut) {
                parts.retain_mut(undone);
            }
        }
        messages.retain_mut(|it| it.get_mut("info").is_none_or(undone));
        Ok(history::json::compact(&now).into_bytes())
    }

    /// Removes the two messages with which OpenCode recorded our compaction, and the prompt that it adds
    /// after an automatic one.
    fn without_compaction(&self, now: &[u8], handle: &str) -> Result<Option<(Vec<u8>, usize)>> {
        let mut export = parsed(now);
        let messages = messages(&mut export)?;
        let says = |it: &Value| {
            it["info"]["summary"] == true
                && it["parts"].as_array().is_some_and(|parts| {
                    parts.iter().any(|it| it["text"].as_str().is_some_and(|it| it.contains(handle)))
                })
        };
        let Some(at) = messages.iter().position(says) else { return Ok(None) };
        let marker = messages[at]["info"]["parentID"].clone();
        // "Continue if you have next steps", which OpenCode adds after an automatic compaction.
        let synthetic = |it: &Value| {
            it["info"]["role"] == "user"
                && it["parts"]
                    .as_array()
                    .is_some_and(|it| !it.is_empty() && it.iter().all(|it| it["synthetic"] == true))
        };
        let go_on = messages.get(at + 1).is_some_and(synthetic);
        let later = messages[at + 1 + usize::from(go_on)..].len();
        let mut number = 0;
        messages.retain(|it| {
            let gone = number == at || (go_on && number == at + 1) || it["info"]["id"] == marker;
            number += 1;
            !gone
        });
        Ok(Some((history::json::compact(&export).into_bytes(), later)))
    }

    fn is_session(&self, id: &str) -> bool {
        id.starts_with("ses")
    }

    fn is_message(&self, id: &str) -> bool {
        id.starts_with("msg")
    }
}

/// The databases that may contain sessions: the one in `OPENCODE_DB`, or those of all release channels.
pub(super) fn databases(env: &Env) -> Vec<PathBuf> {
    let data = home(env);
    if let Some(named) = env.text(VARIABLE) {
        // Joining an absolute path replaces the folder. `:memory:` becomes a file that does not exist.
        return vec![data.join(named)];
    }
    let is_database = |it: &str| it.starts_with("opencode") && it.ends_with(".db");
    let found = files(&data, 0).into_iter().filter(|it| is_database(it.name()));
    found.map(|it| it.path).collect()
}

fn parsed(export: &[u8]) -> Value {
    serde_json::from_str(&history::json::mend(export)).unwrap_or_default()
}

fn messages(export: &mut Value) -> Result<&mut Vec<Value>> {
    export.get_mut("messages").and_then(Value::as_array_mut).ok_or_else(|| {
        let what = "undoing in OpenCode's database: expected an export, found something else";
        Error::new(ErrorKind::Input, what)
    })
}

/// Every message's `info` and every part, with its id, in order.
fn rows(export: &Value) -> Vec<(String, &Value)> {
    let messages = export["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let all = messages
        .iter()
        .flat_map(|it| std::iter::once(&it["info"]).chain(it["parts"].as_array().into_iter().flatten()));
    all.filter_map(|it| Some((it["id"].as_str()?.to_owned(), it))).collect()
}

/// The OpenCode version of the most recently updated session.
pub(super) fn newest_version(env: &Env) -> Option<String> {
    let newest = |path: &PathBuf| -> Option<(i64, String)> {
        let query = "SELECT time_updated, version FROM session ORDER BY time_updated DESC LIMIT 1";
        open(path).ok()?.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?))).ok()
    };
    databases(env).iter().filter_map(newest).max().map(|it| it.1)
}

/// The session as `opencode export` prints it, but compact: the input of [`sessions::agents::opencode`]. Rows
/// that are not JSON objects are kept as text, so that the reader can report them.
pub(super) fn export(database: &Path, session: &str) -> Result<Vec<u8>> {
    let failed = |it: rusqlite::Error| failed(database, it);
    let mut connection = open(database)?;
    // One transaction, since OpenCode may be writing.
    let snapshot = connection.transaction().map_err(failed)?;
    let info = snapshot.query_row("SELECT * FROM session WHERE id = ?1", [session], info);
    let info = match info {
        Err(rusqlite::Error::QueryReturnedNoRows) => {
            let what = format!(
                "expected the session {session} in OpenCode's database, found none; list them with: opencode session list"
            );
            return Err(Error::new(ErrorKind::Arguments, what).at_path(database));
        }
        other => other.map_err(failed)?,
    };
    let mut parts =
        snapshot.prepare("SELECT id, data FROM part WHERE message_id = ?1 ORDER BY id").map_err(failed)?;
    let mut messages = snapshot
        .prepare("SELECT id, data FROM message WHERE session_id = ?1 ORDER BY time_created, id")
        .map_err(failed)?;
    let mut out = format!("{{\"info\":{info},\"messages\":[");
    let mut rows = messages.query([session]).map_err(failed)?;
    let mut first = true;
    while let Some(row) = rows.next().map_err(failed)? {
        let id: String = row.get(0).map_err(failed)?;
        let ids = [("id", &*id), ("sessionID", session)];
        out.push_str(if first { "{\"info\":" } else { ",{\"info\":" });
        first = false;
        with_ids(&mut out, &text(row, 1), &ids);
        out.push_str(",\"parts\":[");
        let mut rows = parts.query([&id]).map_err(failed)?;
        let mut comma = "";
        while let Some(row) = rows.next().map_err(failed)? {
            let part: String = row.get(0).map_err(failed)?;
            out.push_str(comma);
            with_ids(&mut out, &text(row, 1), &[("id", &part), ("sessionID", session), ("messageID", &id)]);
            comma = ",";
        }
        out.push_str("]}");
    }
    out.push_str("]}\n");
    Ok(out.into_bytes())
}

/// Whether the newest tool part of a session is a call that is still running.
pub(super) fn is_running(database: &Path, id: &str) -> bool {
    let newest = || {
        let connection = open(database).ok()?;
        let sql = "SELECT data FROM part WHERE session_id = ?1 ORDER BY time_created DESC, id DESC LIMIT 20";
        let mut parts = connection.prepare(sql).ok()?;
        let rows = parts.query_map([id], |row| Ok(text(row, 0))).ok()?;
        let parts = rows.flatten().filter_map(|it| serde_json::from_str::<Value>(&it).ok());
        parts.into_iter().find(|it| it["type"] == "tool")
    };
    newest().is_some_and(|it| matches!(it["state"]["status"].as_str(), Some("running" | "pending")))
}

/// Opens read-only. If the write-ahead log cannot be opened (a folder without write permission), the database
/// file is read without it.
fn open(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let usable =
        |it: &Connection| it.query_row("SELECT count(*) FROM sqlite_schema", [], |it| it.get::<_, i64>(0));
    let open = || {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(Duration::from_secs(2))?;
        usable(&connection)?;
        Ok(connection)
    };
    open()
        .or_else(|error| {
            if !std::fs::metadata(path).is_ok_and(|it| it.is_file()) {
                return Err(error);
            }
            let escaped = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
            let uri = format!("file:{escaped}?immutable=1");
            let connection = Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI)?;
            usable(&connection)?;
            Ok(connection)
        })
        .map_err(|it| failed(path, it))
}

pub(super) fn sessions(file: &Path, cwd: Option<&[PathBuf]>, id: Option<&str>) -> Result<Vec<FoundSession>> {
    let failed = |it: rusqlite::Error| failed(file, it);
    let connection = open(file)?;
    let mut prompt = connection
        .prepare(
            "SELECT part.data FROM message JOIN part ON part.message_id = message.id WHERE message.session_id = ?1 \
             ORDER BY message.time_created, message.id, part.id LIMIT 20",
        )
        .map_err(failed)?;
    let mut all = connection
        .prepare("SELECT id, parent_id, directory, time_updated FROM session WHERE ?1 IS NULL OR id = ?1")
        .map_err(failed)?;
    let mut rows = all.query([id]).map_err(failed)?;
    let mut out = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let directory = PathBuf::from(text(row, 2));
        if cwd.is_some_and(|it| !it.contains(&directory)) {
            continue;
        }
        let id = text(row, 0);
        let mut first = String::new();
        let parts = prompt.query_map([&id], |row| Ok(text(row, 0))).map_err(failed)?;
        for part in parts.flatten().filter_map(|it| serde_json::from_str::<Value>(&it).ok()) {
            if part["type"] == "text" && part["synthetic"] != true {
                first = first_words(part["text"].as_str().unwrap_or_default());
                break;
            }
        }
        out.push(FoundSession {
            agent: &OpenCode,
            path: file.to_owned(),
            parent: Some(text(row, 1)).filter(|it| !it.is_empty()),
            cwd: Some(directory).filter(|it| !it.as_os_str().is_empty()),
            changed_ms: row.get(3).unwrap_or_default(),
            first_words: first,
            live: false,
            id,
        });
    }
    Ok(out)
}

/// Appends the stored object with its ids added at the end, as in an export; other members are copied byte
/// for byte.
fn with_ids(out: &mut String, data: &str, ids: &[(&str, &str)]) {
    let whole = serde_json::from_str::<Map<String, Value>>(data);
    let stored = data.trim_end().strip_suffix('}').filter(|_| whole.is_ok());
    match stored {
        Some(stored) => out.push_str(stored),
        None => out.push_str(&format!("{{\"{UNREADABLE}\":{}", Value::from(data))),
    }
    let mut comma = if whole.is_ok_and(|it| it.is_empty()) { "" } else { "," };
    for (key, id) in ids {
        out.push_str(&format!("{comma}\"{key}\":{}", Value::from(*id)));
        comma = ",";
    }
    out.push('}');
}

/// A session's row as in an export. Columns that this version lacks or that are null are omitted.
fn info(row: &Row<'_>) -> rusqlite::Result<Value> {
    let mut columns = Map::new();
    for (index, name) in row.as_ref().column_names().enumerate() {
        let value = match row.get_ref(index)? {
            ValueRef::Null => continue,
            ValueRef::Integer(it) => json!(it),
            ValueRef::Real(it) if it.fract() == 0.0 && it.abs() < 1e15 => json!(it as i64),
            ValueRef::Real(it) => json!(it),
            ValueRef::Text(it) | ValueRef::Blob(it) => json!(&*history::json::mend(it)),
        };
        columns.insert(name.to_owned(), value);
    }
    let plain = |column: &str| columns.get(column).cloned();
    // A text column that contains JSON.
    let parsed = |column: &str| {
        plain(column).map(|it| it.as_str().and_then(|it| serde_json::from_str(it).ok()).unwrap_or(it))
    };
    let group = |columns: &[(&str, &str)]| {
        let found = columns.iter().filter_map(|(key, column)| Some(((*key).to_owned(), parsed(column)?)));
        Some(found.collect::<Map<_, _>>()).filter(|it| !it.is_empty()).map(Value::Object)
    };
    let tokens =
        group(&[("input", "tokens_input"), ("output", "tokens_output"), ("reasoning", "tokens_reasoning")]);
    let cache = group(&[("read", "tokens_cache_read"), ("write", "tokens_cache_write")]);
    let tokens = tokens.map(|mut it| {
        set(&mut it, "cache", cache.unwrap_or_else(|| json!({})));
        it
    });
    let summary = [
        ("additions", "summary_additions"),
        ("deletions", "summary_deletions"),
        ("files", "summary_files"),
        ("diffs", "summary_diffs"),
    ];
    let time = [
        ("created", "time_created"),
        ("updated", "time_updated"),
        ("compacting", "time_compacting"),
        ("archived", "time_archived"),
    ];
    let fields = [
        ("id", plain("id")),
        ("slug", plain("slug")),
        ("projectID", plain("project_id")),
        ("workspaceID", plain("workspace_id")),
        ("directory", plain("directory")),
        ("path", plain("path")),
        ("parentID", plain("parent_id")),
        ("title", plain("title")),
        ("agent", plain("agent")),
        ("model", parsed("model")),
        ("version", plain("version")),
        ("summary", group(&summary)),
        ("cost", plain("cost")),
        ("tokens", tokens),
        ("share", group(&[("url", "share_url")])),
        ("metadata", parsed("metadata")),
        ("revert", parsed("revert")),
        ("permission", parsed("permission")),
        ("time", group(&time)),
    ];
    Ok(fields.into_iter().filter_map(|(key, value)| Some((key, value?))).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::agents::{current, find, list, split_address};
    use sessions::MemorySource;
    use sessions::agents::opencode;

    const SCHEMA: &str = "
        CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, slug TEXT, directory TEXT, title TEXT,
            version TEXT, summary_additions INTEGER, cost REAL, tokens_input INTEGER, tokens_cache_read INTEGER,
            permission TEXT, time_created INTEGER, time_updated INTEGER);
        CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
        CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, data TEXT);";

    fn database(path: &Path) -> Connection {
        let db = Connection::open(path).unwrap();
        db.execute_batch("PRAGMA journal_mode = WAL").unwrap();
        db.execute_batch(SCHEMA).unwrap();
        for (id, parent, changed) in
            [("ses_1", None, 5_000_000), ("ses_2", Some("ses_1"), 6_000_000), ("ses_3", None, 4_900_000)]
        {
            db.execute(
                "INSERT INTO session VALUES (?1, 'global', ?2, 's', '/p', 'Title', '1.18.33', 0, 0.0, 7, 0, '[1]', 1, ?3)",
                (id, parent, changed),
            )
            .unwrap();
        }
        let message = |id: &str, session: &str, at: i64, data: &str| {
            db.execute("INSERT INTO message VALUES (?1, ?2, ?3, ?4)", (id, session, at, data)).unwrap();
        };
        let part = |id: &str, message: &str, session: &str, data: &str| {
            db.execute("INSERT INTO part VALUES (?1, ?2, ?3, 1, ?4)", (id, message, session, data)).unwrap();
        };
        message("msg_2", "ses_1", 20, r#"{"role":"assistant","modelID":"m","providerID":"p"}"#);
        message("msg_1", "ses_1", 10, r#"{"role":"user","n":1.50}"#);
        message("msg_3", "ses_1", 30, "broken");
        part("prt_2", "msg_1", "ses_1", r#"{"type":"text","text":"Fix it \ud83d"}"#);
        part("prt_1", "msg_1", "ses_1", r#"{"type":"text","text":"Called","synthetic":true}"#);
        part("prt_3", "msg_2", "ses_1", "{}");
        part("prt_4", "msg_2", "ses_1", r#"{"type":"text","text":"Done"}"#);
        part("prt_5", "msg_x", "ses_3", r#"{"type":"tool","state":{"status":"running"}}"#);
        db
    }

    #[test]
    fn lists_finds_and_exports() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("da ta#1/opencode");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("opencode-dev.db"), "no database").unwrap();
        let path = folder.join("opencode.db");
        // Kept open, so that the write-ahead log is not checkpointed yet.
        let _writer = database(&path);
        let env = Env {
            home: home.path().to_owned(),
            variables: [(super::super::DATA.to_owned(), home.path().join("da ta#1").display().to_string())]
                .into(),
            cwd: "/p".into(),
            ..Env::default()
        };
        let found = list(&env, None, None);
        let all: Vec<_> = found.iter().map(|it| (&*it.id, it.parent.as_deref(), &*it.first_words)).collect();
        assert_eq!(
            all,
            [("ses_1", None, "Fix it \u{fffd}"), ("ses_2", Some("ses_1"), ""), ("ses_3", None, "")]
        );
        assert_eq!(find(&env, "ses_3").len(), 1);
        assert_eq!(list(&env, None, Some(Path::new("/q"))), []);
        assert_eq!(newest_version(&env).as_deref(), Some("1.18.33"));

        let address = found[0].address();
        assert_eq!(split_address(&address).map(|it| (it.1, it.2)), Some((&*path, "ses_1")));
        let bytes = export(&path, "ses_1").unwrap();
        insta::assert_snapshot!(String::from_utf8(bytes.clone()).unwrap().replace(",{", ",\n{"), @r##"
        {"info":{"id":"ses_1","slug":"s","projectID":"global","directory":"/p","title":"Title","version":"1.18.33","summary":{"additions":0},"cost":0,"tokens":{"input":7,"cache":{"read":0}},"permission":[1],"time":{"created":1,"updated":5000000}},"messages":[{"info":{"role":"user","n":1.50,"id":"msg_1","sessionID":"ses_1"},"parts":[{"type":"text","text":"Called","synthetic":true,"id":"prt_1","sessionID":"ses_1","messageID":"msg_1"},
        {"type":"text","text":"Fix it \ufffd","id":"prt_2","sessionID":"ses_1","messageID":"msg_1"}]},
        {"info":{"role":"assistant","modelID":"m","providerID":"p","id":"msg_2","sessionID":"ses_1"},"parts":[{"id":"prt_3","sessionID":"ses_1","messageID":"msg_2"},
        {"type":"text","text":"Done","id":"prt_4","sessionID":"ses_1","messageID":"msg_2"}]},
        {"info":{"unreadable":"broken","id":"msg_3","sessionID":"ses_1"},"parts":[]}]}
        "##);
        let session = opencode::read(&MemorySource::new("x", bytes)).unwrap();
        assert_eq!(session.history.messages().len(), 3);
        assert_eq!(export(&path, "ses_x").unwrap_err().kind(), ErrorKind::Arguments);
        assert_eq!(export(&folder.join("opencode-dev.db"), "ses_1").unwrap_err().kind(), ErrorKind::Input);
        assert_eq!(export(&folder.join("none.db"), "ses_1").unwrap_err().kind(), ErrorKind::Input);
        assert!(!folder.join("none.db").exists());

        // The session with a running tool call is the calling one, although another is newer.
        let inside = Env { inside: Some(&OpenCode), ..env };
        let calling = current(&inside);
        assert_eq!((calling.len(), &*calling[0].id, calling[0].live), (1, "ses_3", true));
    }

    #[test]
    fn names_databases() {
        let named = |name: &str| [(VARIABLE.to_owned(), name.to_owned())].into();
        let env = Env { home: "/h".into(), variables: named("x.db"), ..Env::default() };
        assert_eq!(databases(&env), [PathBuf::from("/h/.local/share/opencode/x.db")]);
        let env = Env { variables: named("/abs/y.db"), ..env };
        assert_eq!(databases(&env), [PathBuf::from("/abs/y.db")]);
        assert!(split_address("/a#b/opencode.db").is_none() && split_address("#ses_1").is_none());
    }
}
