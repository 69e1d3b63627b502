//! What we export from OpenCode's database is what OpenCode exports (skipped where its samples are not found).

use std::fs;

use epitome::agents;
use rusqlite::Connection;
use rusqlite::types::Value as Column;
use serde_json::Value;

use crate::corpus;

#[test]
fn exports_like_the_client() {
    let samples = corpus::samples().join("opencode");
    let (Ok(schema), Ok(rows), Ok(expected)) = (
        fs::read_to_string(samples.join("schema.sql")),
        fs::read(samples.join("rows.json")),
        fs::read(samples.join("mcp-results.json")),
    ) else {
        eprintln!("SKIPPED: exports_like_the_client: no samples of OpenCode found");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    let db = Connection::open(&path).unwrap();
    db.execute_batch(&schema).unwrap();
    let rows: Value = serde_json::from_slice(&rows).unwrap();
    for table in ["project", "session", "message", "part"] {
        for row in rows[table].as_array().unwrap() {
            let row = row.as_object().unwrap();
            let names = row.keys().cloned().collect::<Vec<_>>().join(", ");
            let marks = vec!["?"; row.len()].join(", ");
            let columns = row.values().map(|it| match it {
                Value::Null => Column::Null,
                Value::Number(it) => {
                    it.as_i64().map_or_else(|| Column::Real(it.as_f64().unwrap()), Column::Integer)
                }
                Value::String(it) => Column::Text(it.clone()),
                it => Column::Text(it.to_string()),
            });
            let sql = format!("INSERT INTO {table} ({names}) VALUES ({marks})");
            db.execute(&sql, rusqlite::params_from_iter(columns)).unwrap();
        }
    }
    let database = agents::named("opencode").and_then(|it| it.info().database).unwrap();
    let expected: Value = serde_json::from_slice(&expected).unwrap();
    let id = expected["info"]["id"].as_str().unwrap();
    let found: Value = serde_json::from_slice(&database.export(&path, id).unwrap()).unwrap();
    assert_eq!(found, expected);
    let order = |it: &Value| it["info"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(order(&found), order(&expected));
}
