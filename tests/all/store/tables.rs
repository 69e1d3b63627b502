//! `sessions --parquet`: the tables, read back by the crate and, where it is at hand, by DuckDB.

use std::path::Path;

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Row, RowAccessor as _};

use super::program::{answer, claude, codex, command, keep};

const CLAUDE: &str = "00000000-0000-4000-8000-00000000000a";
const CODEX: &str = "00000000-0000-4000-8000-00000000000b";

fn rows(folder: &Path, table: &str) -> Vec<Row> {
    let file = std::fs::File::open(folder.join(format!("{table}.parquet"))).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    reader.get_row_iter(None).unwrap().map(|it| it.unwrap()).collect()
}

#[test]
fn sessions_become_tables() {
    let folder = tempfile::tempdir().unwrap();
    let home = std::fs::canonicalize(folder.path()).unwrap();
    keep(&home, &home, "claude-code", CLAUDE, claude(CLAUDE, &home, 0..30, 60).as_bytes());
    keep(&home, &home, "codex", CODEX, codex(CODEX, &home, 0..30, 60).as_bytes());
    let run = |arguments: &[&str]| answer(&command(&home, &home, arguments).output().unwrap());
    let made = run(&["compact", CODEX, "--budget", "30%", "--apply", "--json"]);
    assert_eq!(made["status"], "compacted", "{made}");
    let tables = home.join("out/tables");
    let written = run(&["sessions", "--parquet", tables.to_str().unwrap(), "--json"]);
    assert_eq!(written["output"], tables.to_str().unwrap(), "{written}");
    for table in ["sessions", "messages", "compactions", "facts", "tokens"] {
        assert_eq!(rows(&tables, table).len() as u64, written[table].as_u64().unwrap(), "{table}");
    }
    let sessions = rows(&tables, "sessions");
    let ids: Vec<_> = sessions.iter().map(|it| it.get_string(1).unwrap().as_str()).collect();
    assert!(ids.contains(&CLAUDE) && ids.contains(&CODEX), "{ids:?}");
    let messages = rows(&tables, "messages");
    let of_claude = messages.iter().filter(|it| it.get_string(1).unwrap() == CLAUDE);
    let tokens: i64 = of_claude.map(|it| it.get_long(6).unwrap()).sum();
    let row = sessions.iter().find(|it| it.get_string(1).unwrap() == CLAUDE).unwrap();
    assert_eq!(tokens, row.get_long(13).unwrap());
    // Ours, with what it kept.
    let compactions = rows(&tables, "compactions");
    let ours: Vec<_> = compactions.iter().filter(|it| it.get_string(2).unwrap() == "epitome").collect();
    assert_eq!(ours.len(), 1);
    assert_eq!(ours[0].get_long(7).unwrap() as u64, made["tokens_before"].as_u64().unwrap());
    assert!(ours[0].get_bool(9).unwrap());
    let facts = rows(&tables, "facts");
    let found: i64 = facts.iter().map(|it| it.get_long(4).unwrap()).sum();
    assert!(found > 0 && facts.iter().all(|it| it.get_long(5).unwrap() <= it.get_long(4).unwrap()));
    // Written again they take the place of the first.
    assert_eq!(run(&["sessions", "--parquet", tables.to_str().unwrap(), "--json"]), written);
    queried(&tables, sessions.len());
}

/// Asks DuckDB, by the Python that `EPITOME_DUCKDB` names (`pip install duckdb`).
fn queried(tables: &Path, sessions: usize) {
    let Some(python) = std::env::var_os("EPITOME_DUCKDB") else {
        eprintln!("SKIPPED: tables::queried: EPITOME_DUCKDB names no Python with duckdb");
        return;
    };
    let query = format!(
        "import duckdb; print(duckdb.sql(\"SELECT count(*) FROM '{0}/sessions.parquet' s WHERE (SELECT sum(tokens) \
         FROM '{0}/messages.parquet' m WHERE m.session = s.session) = s.tokens AND s.changed > TIMESTAMP '2000-01-01'\").fetchall()[0][0])",
        tables.display()
    );
    let output = std::process::Command::new(python).args(["-c", &query]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), sessions.to_string(), "{output:?}");
}
