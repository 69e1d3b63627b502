//! A PostgreSQL of the tests' own, on loopback, gone when they are; and the switch that makes tests of the store use it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use epitome::store::TeamStore;

pub struct Server {
    pub port: u16,
    pub folder: PathBuf,
    /// Its input is open as long as this process lives.
    _child: Child,
}

/// Where a PostgreSQL may be installed.
const PLACES: [&str; 5] = [
    "/usr/lib/postgresql/18/bin",
    "/usr/lib/postgresql/17/bin",
    "/usr/lib/postgresql/16/bin",
    "/usr/lib/postgresql/15/bin",
    "/usr/local/bin",
];

/// Makes a database cluster, serves it until standard input ends, and takes it away. PostgreSQL refuses to run as root.
const SCRIPT: &str = r#"
trap "" TERM INT HUP
run() { if [ "$(id -u)" = 0 ]; then setpriv --reuid=postgres --regid=postgres --clear-groups -- "$@"; else "$@"; fi; }
mkdir "$FOLDER/data" "$FOLDER/blobs"
[ "$(id -u)" = 0 ] && chown -R postgres "$FOLDER"
run "$BIN/initdb" -D "$FOLDER/data" -U epitome -A trust -E UTF8 --locale=C -N >"$FOLDER/initdb.log" 2>&1 &&
run "$BIN/pg_ctl" -D "$FOLDER/data" -w -l "$FOLDER/log" -o "-p $PORT -k '' -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=200" start >/dev/null 2>&1 &&
echo ready || { cat "$FOLDER"/*log >&2; echo failed; }
read -r _
run "$BIN/pg_ctl" -D "$FOLDER/data" -m immediate stop >/dev/null 2>&1
rm -rf "$FOLDER"
"#;

/// The server, started by the first test that asks; nothing where none is installed.
pub fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    SERVER.get_or_init(start).as_ref()
}

fn start() -> Option<Server> {
    let bin = PLACES.into_iter().find(|it| Path::new(it).join("initdb").exists())?;
    let folder = tempfile::Builder::new().prefix("epitome-postgres-").tempdir().unwrap().keep();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut child = Command::new("sh")
        .args(["-c", SCRIPT])
        .envs([("BIN", bin), ("FOLDER", folder.to_str().unwrap()), ("PORT", &port.to_string())])
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "ready", "PostgreSQL of {bin} did not start");
    Some(Server { port, folder, _child: child })
}

impl Server {
    /// A new store in it: a database without tables, and an empty folder for objects.
    pub fn empty(&self) -> TeamStore {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("t{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        self.admin("postgres").batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        let blobs = self.folder.join("blobs").join(&name);
        std::fs::create_dir(&blobs).unwrap();
        TeamStore {
            database: format!("postgres://epitome@127.0.0.1:{}/{name}", self.port),
            blobs: format!("file://{}", blobs.display()),
            variables: BTreeMap::new(),
        }
    }

    /// A connection of somebody else.
    pub fn admin(&self, database: &str) -> postgres::Client {
        let address = format!("postgres://epitome@127.0.0.1:{}/{database}", self.port);
        postgres::Client::connect(&address, postgres::NoTls).unwrap()
    }
}

/// The database of a store.
pub fn name(store: &TeamStore) -> &str {
    store.database.rsplit('/').next().unwrap()
}

thread_local! {
    static IS_ON: Cell<bool> = const { Cell::new(false) };
    static OF_HOMES: RefCell<BTreeMap<PathBuf, TeamStore>> = const { RefCell::new(BTreeMap::new()) };
}

/// Runs a test of the store on PostgreSQL.
pub fn on(name: &str, test: fn()) {
    if server().is_none() {
        eprintln!("SKIPPED: {name}: no PostgreSQL installed");
        return;
    }
    IS_ON.set(true);
    test();
    IS_ON.set(false);
}

/// An empty store, where this test runs on PostgreSQL.
pub fn empty() -> Option<TeamStore> {
    if IS_ON.get() { server().map(Server::empty) } else { None }
}

/// What the program in this home is told, where this test runs on PostgreSQL.
pub fn variables(home: &Path) -> Vec<(&'static str, String)> {
    if !IS_ON.get() {
        return Vec::new();
    }
    OF_HOMES.with_borrow_mut(|stores| {
        let store = stores.entry(home.to_owned()).or_insert_with(|| empty().unwrap());
        vec![("EPITOME_STORE", store.database.clone()), ("EPITOME_BLOBS", store.blobs.clone())]
    })
}
