//! Two servers of one store, of which one is killed again and again.

use std::collections::HashSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::faults::{open, put, scope, walk};
use super::server::{self, Server, server};
use crate::mcp::Web;
use epitome::store::{
    Batch, Body, Compaction, ItemKind, NewCompaction, Original, Scope, SessionOrigin, Store, TeamStore,
};
use serde_json::json;

/// What a server stores for the name of a token.
fn of(owner: &str) -> Scope {
    Scope { owner: owner.into(), project: String::new() }
}

#[test]
fn two_servers_compact_one_session_at_once() {
    let Some(server) = server() else {
        eprintln!("SKIPPED: two_servers_compact_one_session_at_once: no PostgreSQL installed");
        return;
    };
    let place = server.empty();
    let stores = [open(&place).unwrap(), open(&place).unwrap()];
    let whole = super::super::chunks::noise(1, 3 << 20);
    let outputs: Vec<Vec<u8>> = (2..8).map(|it| super::super::chunks::noise(it, 20_000)).collect();
    let original = |kind, bytes: &'static [u8]| Original {
        kind,
        body: Body::Bytes(bytes),
        message: Some(1),
        call_id: None,
        tool: Some("bash"),
        tokens: 1,
    };
    let leak = |bytes: Vec<u8>| -> &'static [u8] { bytes.leak() };
    let whole = leak(whole);
    let mut originals = vec![original(ItemKind::Session, whole)];
    originals.extend(outputs.into_iter().map(|it| original(ItemKind::Output, leak(it))));
    let session = SessionOrigin { agent: "pi".into(), id: "s".into(), ..SessionOrigin::default() };
    let new = NewCompaction { summary: "done".into(), ..NewCompaction::default() };
    let batch = Batch { session, at: 5, originals, compaction: Some(new) };
    let (me, batch) = (&scope("me"), &batch);
    let mut stored = std::thread::scope(|threads| {
        let put = |store| threads.spawn(move || Store::put_all(store, me, batch).unwrap());
        let putting: Vec<_> = stores.iter().chain(&stores).map(put).collect();
        putting.into_iter().map(|it| it.join().unwrap()).collect::<Vec<_>>()
    });
    let first = stored.pop().unwrap();
    assert!(stored.iter().all(|it| *it == first));
    for store in &stores {
        assert!(store.restore(&scope("me"), first.handles[0].as_str()).unwrap() == whole);
        let found: Vec<Compaction> = store.compactions(&scope("me"), Some("s"), 9).unwrap();
        assert_eq!((found.len(), found[0].removed.len()), (1, 6));
        assert_eq!(store.check().unwrap().problems, Vec::<String>::new());
    }
    let stats = stores[0].stats().unwrap();
    assert_eq!((stats.items["session"], stats.items["output"], stats.items["compaction"]), (1, 6, 1));
    assert!(stats.stored_bytes < (3 << 20) + 200_000, "{stats:?}");
}

/// A server of this store, with a token for each owner.
fn replica(place: &TeamStore, tokens: &Path) -> Web {
    Web::start(|_, command| {
        command.env("EPITOME_STORE", &place.database).arg("--blobs").arg(&place.blobs);
        command.arg("--token-file").arg(tokens);
    })
}

fn token(owner: usize) -> String {
    format!("token-of-owner-{owner:04}-0123456789")
}

/// One request; nothing where the server is not there, or ends before it has answered.
fn ask(port: u16, owner: usize, request: &str, headers: &str, body: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
    let token = token(owner);
    let head = format!(
        "{request} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n{headers}\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split_whitespace().nth(1)?.parse().ok()?, body.to_owned()))
}

/// What the tool `recall` answers about a handle: whether it shows it.
fn reads(port: u16, owner: usize, handle: &str) -> Option<bool> {
    let headers = "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
                   MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: recall\r\n";
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}, "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"}});
    let params = json!({"name": "recall", "arguments": {"handle": handle}, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let (status, answer) = ask(port, owner, "POST /mcp", headers, &body)?;
    (status == 200).then(|| !answer.contains("\"isError\":true"))
}

struct Acknowledged {
    owner: usize,
    handle: String,
    body: String,
}

#[derive(Debug, Default)]
struct Figures {
    tries: AtomicU64,
    foreign_tries: AtomicU64,
    foreign_reads: AtomicU64,
    own_missing: AtomicU64,
}

/// So many clients store and read for so long, or until each has stored `each`, while every `pause` one server is killed.
fn under_load(server: &Server, clients: usize, each: usize, lasts: Duration, pause: Duration) {
    const OWNERS: usize = 8;
    let place = server.empty();
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    let lines: String = (0..OWNERS).map(|it| format!("owner{it}:{}\n", token(it))).collect();
    std::fs::write(&tokens, lines).unwrap();
    let mut replicas = [replica(&place, &tokens), replica(&place, &tokens)];
    let ports = [AtomicU16::new(replicas[0].port), AtomicU16::new(replicas[1].port)];
    let (done, figures) = (Mutex::new(Vec::<Acknowledged>::new()), Figures::default());
    let (over, begun) = (AtomicBool::new(false), Instant::now());
    let client = |number: usize| {
        let owner = number % OWNERS;
        let port = |turn: usize| ports[turn % 2].load(Ordering::Relaxed);
        for round in 0..each {
            if over.load(Ordering::Relaxed) {
                return;
            }
            // What all of an owner's clients store too, and what only this one does.
            let shared = super::super::program::output(owner, 40);
            let own = super::super::program::output(1_000 + number * 100_000 + round, 40);
            let body = json!([{"role": "user", "content": shared}, {"role": "assistant", "content": own}])
                .to_string();
            // A client tries again, elsewhere, until it is told that it was stored.
            let handle = (0..10_000).find_map(|turn| {
                figures.tries.fetch_add(1, Ordering::Relaxed);
                let put = ask(
                    port(turn + number),
                    owner,
                    "PUT /sessions",
                    "Content-Type: application/json\r\n",
                    &body,
                );
                match put {
                    Some((201, answer)) => {
                        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
                        Some(answer["handle"].as_str().unwrap().to_owned())
                    }
                    Some((status @ 400..500, answer)) => panic!("{status}: {answer}"),
                    Some(_) => None,
                    None => {
                        std::thread::sleep(Duration::from_millis(50));
                        None
                    }
                }
            });
            let handle = handle.expect("a server that stores it");
            if reads(port(round), owner, &handle) == Some(false) {
                figures.own_missing.fetch_add(1, Ordering::Relaxed);
            }
            let foreign = {
                let mut done = done.lock().unwrap();
                done.push(Acknowledged { owner, handle, body });
                let from = done.len().saturating_sub(64);
                done[from..].iter().find(|it| it.owner != owner).map(|it| it.handle.clone())
            };
            if let Some(foreign) = foreign
                && let Some(read) = reads(port(round + 1), owner, &foreign)
            {
                figures.foreign_tries.fetch_add(1, Ordering::Relaxed);
                figures.foreign_reads.fetch_add(u64::from(read), Ordering::Relaxed);
            }
        }
    };
    let mut kills = 0;
    std::thread::scope(|threads| {
        let client = &client;
        let working: Vec<_> = (0..clients).map(|it| threads.spawn(move || client(it))).collect();
        let mut killed = Instant::now();
        while working.iter().any(|it| !it.is_finished()) {
            std::thread::sleep(Duration::from_millis(20));
            if begun.elapsed() > lasts {
                over.store(true, Ordering::Relaxed);
            }
            // The first early: a quick machine is done before the pause is over.
            let early = kills == 0 && done.lock().unwrap().len() >= clients;
            if early || killed.elapsed() > pause {
                let victim = kills % 2;
                // Dropped, it is killed; another one takes its place.
                replicas[victim] = replica(&place, &tokens);
                ports[victim].store(replicas[victim].port, Ordering::Relaxed);
                (killed, kills) = (Instant::now(), kills + 1);
            }
        }
    });
    let done = done.into_inner().unwrap();
    let store = open(&place).unwrap();
    for it in &done {
        let restored = store.restore(&of(&format!("token:owner{}", it.owner)), &it.handle).unwrap();
        assert!(restored == it.body.as_bytes(), "{}", it.handle);
        let other = of(&format!("token:owner{}", (it.owner + 1) % OWNERS));
        assert!(store.restore(&other, &it.handle).is_err());
    }
    let distinct: HashSet<_> = done.iter().map(|it| (it.owner, &it.handle)).collect();
    let mut admin = server.admin(server::name(&place));
    let mut count = |sql: &str| admin.query_one(sql, &[]).unwrap().get::<_, i64>(0) as usize;
    let sessions = count("SELECT count(*) FROM epitome.item WHERE sort = 'original'");
    let doubled =
        count("SELECT count(*) - count(DISTINCT (owner, content)) FROM epitome.item WHERE sort = 'original'");
    let unnamed =
        count("SELECT count(*) FROM epitome.chunk WHERE id NOT IN (SELECT chunk FROM epitome.part)");
    let packs = count("SELECT count(*) FROM epitome.pack");
    let objects = walk(place.blobs.strip_prefix("file://").unwrap().as_ref()).len();
    println!(
        "replicas: {clients} clients, {:.0} s, {kills} kills, {} acknowledged, {figures:?}, {packs} packs, {objects} objects, \
         {unnamed} chunks that nothing names",
        begun.elapsed().as_secs_f64(),
        done.len()
    );
    assert_eq!((distinct.len(), sessions, doubled), (done.len(), done.len(), 0));
    assert_eq!(figures.foreign_reads.into_inner(), 0);
    assert_eq!(figures.own_missing.into_inner(), 0);
    assert!(kills > 0 && figures.foreign_tries.into_inner() > 0);
    assert_eq!(store.check().unwrap().problems, Vec::<String>::new());
}

#[test]
fn nothing_is_lost_doubled_or_shown_while_servers_are_killed() {
    match server() {
        Some(it) => under_load(it, 8, 12, Duration::from_secs(60), Duration::from_millis(700)),
        None => eprintln!("SKIPPED: nothing_is_lost_doubled_or_shown: no PostgreSQL installed"),
    }
}

#[test]
#[ignore = "ten minutes; `just team`, or EPITOME_TEAM_SECONDS for less"]
fn ten_minutes_of_64_clients() {
    let Some(server) = server() else {
        eprintln!("SKIPPED: ten_minutes_of_64_clients: no PostgreSQL installed");
        return;
    };
    let seconds = std::env::var("EPITOME_TEAM_SECONDS").ok().and_then(|it| it.parse().ok()).unwrap_or(600);
    under_load(
        server,
        64,
        usize::MAX,
        Duration::from_secs(seconds),
        Duration::from_secs((seconds / 10).min(60)),
    );
}

#[test]
fn what_one_server_stores_another_restores() {
    let Some(server) = server() else {
        eprintln!("SKIPPED: what_one_server_stores_another_restores: no PostgreSQL installed");
        return;
    };
    let place = server.empty();
    let (one, other) = (open(&place).unwrap(), open(&place).unwrap());
    let bytes = super::super::chunks::noise(3, 200_000);
    let handle = put(&one, &scope("me"), "s", &bytes).unwrap();
    assert!(other.restore(&scope("me"), &handle).unwrap() == bytes);
    drop(one);
    assert!(other.restore(&scope("me"), &handle).unwrap() == bytes);
}
