//! Too many clients, and those who take nothing: everybody else is served on.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::soak::{Kept, resident};
use super::{Client, Web, example_messages};
use serde_json::{Value, json};

/// What the process may take, in kilobytes.
const MEMORY: u64 = 300 * 1024;
/// A server that has not noticed by then that its clients left does not notice.
const GONE: Duration = Duration::from_secs(30);

fn hello() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
}

fn still_serves(web: &Web) {
    assert_eq!(web.call("estimate_tokens", json!({"text": "hello"}), &[])["structuredContent"]["tokens"], 1);
}

fn in_bounds(web: &Web, what: &str) {
    let Some(kilobytes) = resident(web.id()) else { return };
    eprintln!("{what}: {} MB", kilobytes / 1024);
    assert!(kilobytes < MEMORY, "{what}: {kilobytes} kB");
}

/// How many more descriptors this process may have, with some left for the tests beside this one.
fn descriptors() -> usize {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find(|it| it.starts_with("Max open files"));
    let limit = line.and_then(|it| it.split_whitespace().nth(3)?.parse::<usize>().ok()).unwrap_or(256);
    limit.saturating_sub(200)
}

/// Opens a session on each of `count` connections, all of them open at once; how many were served and refused.
fn crowd(web: &Web, count: usize) -> (usize, usize) {
    let body = hello().to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, \
         text/event-stream\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut streams: Vec<_> = (0..count).map(|_| web.connect()).collect();
    for stream in &mut streams {
        // Who is refused may find the connection closed already.
        let _ = stream.write_all(&[head.as_bytes(), body.as_bytes()].concat());
    }
    let mut answered = (0, 0);
    for stream in &mut streams {
        let mut status = [0; 12];
        match stream.read_exact(&mut status).map(|()| &status[9..]) {
            Ok(b"200") => answered.0 += 1,
            // The answer of who is refused may be lost where what was sent has not been read.
            Ok(b"503") | Err(_) => answered.1 += 1,
            Ok(other) => panic!("{}", String::from_utf8_lossy(other)),
        }
    }
    answered
}

#[test]
fn a_thousand_sessions_at_once_are_served() {
    let web = Web::start(|_, _| {});
    let count = descriptors().min(1_000);
    let (served, refused) = crowd(&web, count);
    eprintln!("{count} sessions at once: {served} served, {refused} refused");
    assert_eq!((served, refused), (count, 0));
    in_bounds(&web, "1,000 sessions at once");
    still_serves(&web);
}

#[test]
#[cfg(target_os = "linux")]
fn with_few_descriptors_a_thousand_are_refused_politely() {
    let web = Web::start(|home, command| {
        let server = std::mem::replace(command, Command::new("sh"));
        command.args(["-c", "ulimit -n 300 && exec \"$0\" \"$@\""]).arg(server.get_program());
        command.args(server.get_args()).env_clear().env("HOME", home).current_dir(home);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    });
    let (served, refused) = crowd(&web, descriptors().min(1_000));
    eprintln!("1,000 sessions at once with 300 descriptors: {served} served, {refused} refused");
    assert!(served >= 100 && refused > 0, "{served} {refused}");
    // The crowd has gone, and the server learns of it in its own time: until then whoever comes is told to come again.
    let left = Instant::now();
    let answer = loop {
        let answer =
            web.modern("tools/call", json!({"name": "estimate_tokens", "arguments": {"text": "hello"}}), &[]);
        if !matches!(answer.status, 0 | 503) {
            break answer;
        }
        assert!(left.elapsed() < GONE, "still refused {} s after everybody left", GONE.as_secs());
    };
    assert_eq!((answer.status, &answer.json()["result"]["structuredContent"]["tokens"]), (200, &json!(1)));
}

#[test]
fn ten_thousand_idle_sessions_are_served_or_refused() {
    let web = Web::start(|_, _| {});
    let body = hello().to_string();
    let port = web.port;
    let mut statuses = std::collections::BTreeMap::new();
    std::thread::scope(|scope| {
        let open = || {
            let mut client = Kept::connect(port);
            let open = |_| {
                let (status, _) = client.post("POST", &body, "");
                client.session = None;
                status
            };
            (0..1_250).map(open).collect::<Vec<u16>>()
        };
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        for status in clients.into_iter().flat_map(|it| it.join().unwrap()) {
            *statuses.entry(status).or_insert(0) += 1;
        }
    });
    eprintln!("10,000 idle sessions: {statuses:?}");
    assert!(statuses.keys().all(|it| [200, 429, 503].contains(it)), "{statuses:?}");
    // Some may pass while others are being opened.
    assert!((1_000..1_010).contains(&statuses[&200]), "{statuses:?}");
    in_bounds(&web, "10,000 idle sessions");
    // The caller has used up what it may ask in a second.
    let mut client = Kept::connect(port);
    let asked = (0..10_000).map(|_| client.request("tools/list", &json!({})).0);
    assert!(asked.into_iter().any(|it| it == 200));
}

#[test]
fn who_never_reads_over_http_is_nobody_elses_loss() {
    let web = Web::start(|_, _| {});
    let messages = example_messages("anthropic.json").to_string();
    let stored = web.request("PUT", "/sessions", &[], messages.as_bytes());
    let arguments = json!({"handle": stored.json()["handle"], "limit": 100_000});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "recall",
        "arguments": arguments, "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}}})
    .to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: recall\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let silent: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = web.connect();
            stream.write_all(request.repeat(20).as_bytes()).unwrap();
            stream
        })
        .collect();
    still_serves(&web);
    in_bounds(&web, "20 clients that never read");
    drop(silent);
    still_serves(&web);
}

#[test]
fn who_reads_late_over_stdio_misses_nothing() {
    const CALLS: usize = 3_000;
    let mut client = Client::legacy();
    let id = client.id();
    let mut input = client.take_input();
    let writer = std::thread::spawn(move || {
        for number in 0..CALLS {
            writeln!(input, r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/list"}}"#).unwrap();
        }
        input
    });
    // Until the answers fill the pipe, and then whatever the server holds back.
    while !client.has_answer() {}
    if let Some(kilobytes) = resident(id) {
        assert!(kilobytes < MEMORY, "{kilobytes} kB");
    }
    let mut answered: Vec<u64> = (0..CALLS).map(|_| client.read()["id"].as_u64().unwrap()).collect();
    answered.sort_unstable();
    assert_eq!(answered, (0..CALLS as u64).collect::<Vec<_>>());
    drop(writer.join().unwrap());
    assert_eq!(client.wait().code(), Some(0));
}

#[test]
fn the_protocol_is_kept_over_http() {
    let web = Web::start(|_, _| {});
    let post = |headers: &[(&str, &str)], body: &Value| {
        let mut all =
            vec![("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        all.extend_from_slice(headers);
        web.request("POST", "/mcp", &all, body.to_string().as_bytes()).status
    };
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    for (what, status) in [
        ("no session", post(&[], &list)),
        ("a session that is not open", post(&[("Mcp-Session-Id", "nope")], &list)),
        ("a version that is none", post(&[("MCP-Protocol-Version", "2099-01-01")], &list)),
        (
            "a header that says another method",
            post(&[("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "ping")], &list),
        ),
        ("a batch", post(&[("MCP-Protocol-Version", "2026-07-28")], &json!([list]))),
    ] {
        assert!((400..500).contains(&status), "{what}: {status}");
    }
    still_serves(&web);
}

#[test]
#[cfg(unix)]
fn pipes_links_and_devices_are_no_sessions_on_this_machine_either() {
    let mut client = Client::start(|home, _| {
        assert!(Command::new("mkfifo").arg(home.join("fifo")).status().unwrap().success());
        std::os::unix::fs::symlink("fifo", home.join("link.jsonl")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", home.join("zero.jsonl")).unwrap();
    });
    client.handshake();
    let home = client.home.path().to_owned();
    for name in ["fifo", "link.jsonl", "zero.jsonl"] {
        let said = client.refusal("estimate_tokens", json!({"session": home.join(name)}));
        assert!(said.contains("expected") && said.contains("device"), "{name}: {said}");
    }
}
