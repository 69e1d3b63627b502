//! Many clients for a long time: `just soak` for an hour, a minute by itself. Not run unless asked for.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::{Web, example_messages};
use serde_json::{Value, json};

const CLIENTS: u64 = 64;

/// A client that keeps its connection.
struct Kept {
    port: u16,
    stream: BufReader<TcpStream>,
    session: Option<String>,
}

impl Kept {
    fn connect(port: u16) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { port, stream: BufReader::new(stream), session: None }
    }

    fn post(&mut self, body: &Value, more: &str) -> (u16, String) {
        let body = body.to_string();
        let session = self.session.as_ref().map(|it| format!("Mcp-Session-Id: {it}\r\n")).unwrap_or_default();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nAccept: application/json, \
             text/event-stream\r\n{session}{more}Content-Length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        self.stream.get_mut().write_all(&[head.as_bytes(), body.as_bytes()].concat()).unwrap();
        self.answer()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.stream.read_line(&mut line).unwrap() > 0, "the server closed the connection");
        line.trim_end().to_owned()
    }

    fn answer(&mut self) -> (u16, String) {
        let first = self.line();
        let status = first.split_whitespace().nth(1).unwrap().parse().unwrap();
        let (mut length, mut chunked) = (0, false);
        loop {
            let line = self.line().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(it) = line.strip_prefix("content-length: ") {
                length = it.parse().unwrap();
            }
            if let Some(it) = line.strip_prefix("mcp-session-id: ") {
                self.session = Some(it.to_owned());
            }
            chunked |= line == "transfer-encoding: chunked";
        }
        let mut body = vec![0; length];
        if chunked {
            loop {
                let size = usize::from_str_radix(&self.line(), 16).unwrap();
                let mut chunk = vec![0; size + 2];
                self.stream.read_exact(&mut chunk).unwrap();
                if size == 0 {
                    break;
                }
                body.extend_from_slice(&chunk[..size]);
            }
        } else {
            self.stream.read_exact(&mut body).unwrap();
        }
        (status, String::from_utf8(body).unwrap())
    }

    /// Starts a session of the older protocol.
    fn open(&mut self) {
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "soak", "version": "1"}}});
        let (status, said) = self.post(&hello, "");
        assert_eq!(status, 200, "{said}");
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> (u16, String) {
        let mut params = json!({"name": tool, "arguments": arguments});
        let mut more = "MCP-Protocol-Version: 2025-11-25\r\n".to_owned();
        if self.session.is_none() {
            params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {}});
            more =
                format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\n");
        }
        self.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}), &more)
    }
}

/// What a bad client does; the connection is of no use afterwards.
fn hostile(port: u16, which: u64) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let sent: &[u8] = match which % 6 {
        0 => b"POST /mcp HTTP/1.1\r\nHost: evil\r\nContent-Length: 2\r\n\r\n{}",
        1 => b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil\r\nContent-Length: 2\r\n\r\n{}",
        2 => b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: 5\r\n\r\n{oops",
        3 => b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{\"jsonrpc\"",
        4 => b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        _ => b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: ../../etc/passwd\r\n\r\n",
    };
    // Whatever the server does to it is right, as long as it serves the others.
    let _ = stream.write_all(sent);
}

fn resident(id: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    status.lines().find(|it| it.starts_with("VmRSS"))?.split_whitespace().nth(1)?.parse().ok()
}

fn median(mut all: Vec<u64>) -> u64 {
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

#[test]
#[ignore = "a minute at least: `just soak`"]
fn many_clients_for_a_long_time() {
    let seconds = std::env::var("EPITOME_SOAK_SECONDS").ok().and_then(|it| it.parse().ok()).unwrap_or(60);
    let web = Web::start(|_, _| {});
    let messages = example_messages("anthropic.json");
    let stored = web.request("PUT", "/sessions", &[], messages.to_string().as_bytes());
    let handle = stored.json()["handle"].as_str().unwrap().to_owned();
    let calls = [
        ("estimate_tokens", json!({"text": "hello world"})),
        ("estimate_tokens", json!({"session": handle})),
        ("find_split_point", json!({"session": handle})),
        ("prune_tool_outputs", json!({"messages": messages})),
        ("summarize_history", json!({"messages": messages, "budget": "30%"})),
        ("recall", json!({"query": "timeout"})),
        ("recall", json!({"handle": handle, "limit": 500})),
    ];
    let (port, id) = (web.port, web.id());
    let stop = AtomicBool::new(false);
    let (count, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut times: Vec<u32> = Vec::new();
    let mut memory = Vec::new();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (calls, stop, count, refused) = (&calls, &stop, &count, &refused);
                scope.spawn(move || {
                    let mut client = Kept::connect(port);
                    if number % 2 == 0 {
                        client.open();
                    }
                    let mut times = Vec::new();
                    let mut step = number;
                    while !stop.load(Ordering::Relaxed) {
                        step += 1;
                        if step % 100 == 0 {
                            hostile(port, step / 100 + number);
                            refused.fetch_add(1, Ordering::Relaxed);
                        }
                        let (tool, arguments) = &calls[(step % calls.len() as u64) as usize];
                        let start = Instant::now();
                        let (status, said) = client.call(tool, arguments);
                        times.push(start.elapsed().as_micros().min(u128::from(u32::MAX)) as u32);
                        assert!(
                            status == 200 && !said.contains("\"isError\":true"),
                            "{tool}: {status} {said}"
                        );
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                    times
                })
            })
            .collect();
        let end = Instant::now() + Duration::from_secs(seconds);
        while Instant::now() < end {
            std::thread::sleep(Duration::from_millis(500));
            memory.extend(resident(id));
        }
        stop.store(true, Ordering::Relaxed);
        for client in clients {
            times.extend(client.join().unwrap());
        }
    });
    times.sort_unstable();
    let at = |share: f64| f64::from(times[((times.len() - 1) as f64 * share) as usize]) / 1000.0;
    // Tables and caches fill up first.
    let steady = &memory[memory.len() / 5..];
    let quarter = steady.len() / 4;
    let (first, last) =
        (median(steady[..quarter].to_vec()), median(steady[steady.len() - quarter..].to_vec()));
    eprintln!(
        "soak: {seconds} s, {CLIENTS} clients, {} calls ({:.0}/s), {} hostile requests, p50 {:.1} ms, p99 {:.1} ms, memory {} → {} MB",
        count.load(Ordering::Relaxed),
        count.load(Ordering::Relaxed) as f64 / seconds as f64,
        refused.load(Ordering::Relaxed),
        at(0.5),
        at(0.99),
        first / 1024,
        last / 1024
    );
    let most = if seconds >= 600 { 1.05 } else { 1.25 };
    assert!(last as f64 <= first as f64 * most, "memory grew from {first} to {last} kB");
}
