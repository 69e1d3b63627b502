//! What a call costs a client, beside a plain rmcp server on rmcp's own standard transport that does the same work: both
//! are asked by turns, in one run. Prints a table of medians; `cargo bench --bench serving [-- ROUNDS]`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    missing_docs,
    reason = "a program for people, of which a failure is the result"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rmcp::handler::server::wrapper::Parameters;
use rmcp::{Json, ServiceExt, schemars, tool, tool_router};
use serde_json::{Value, json};

/// The server to compare with: as the SDK's own examples are written.
#[derive(Clone)]
struct Plain;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Asked {
    text: String,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Counted {
    tokens: u64,
}

#[tool_router(server_handler)]
impl Plain {
    #[tool(description = "Counts tokens")]
    fn estimate_tokens(&self, Parameters(asked): Parameters<Asked>) -> Json<Counted> {
        Json(Counted { tokens: asked.text.len().div_ceil(4) as u64 })
    }
}

#[tokio::main]
async fn plain() {
    Plain.serve(rmcp::transport::stdio()).await.unwrap().waiting().await.unwrap();
}

/// A server over standard input and output, started and greeted.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Server {
    /// With the time until it had answered the greeting.
    fn start(command: &mut Command) -> (Self, Duration) {
        let start = Instant::now();
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut server = Self { child, input, output };
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}});
        server.ask(&line(&hello));
        let took = start.elapsed();
        server
            .input
            .write_all(&line(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})))
            .unwrap();
        (server, took)
    }

    fn ask(&mut self, line: &[u8]) -> Duration {
        let start = Instant::now();
        self.input.write_all(line).unwrap();
        let mut answer = String::new();
        assert!(self.output.read_line(&mut answer).unwrap() > 0);
        let took = start.elapsed();
        assert!(answer.contains("\"result\"") && !answer.contains("\"isError\":true"), "{answer}");
        took
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn line(message: &Value) -> Vec<u8> {
    format!("{message}\n").into_bytes()
}

fn call(arguments: &Value) -> Value {
    let params = json!({"name": "estimate_tokens", "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1_000.0
}

fn ours(arguments: &[&str]) -> Command {
    let binary = std::env::var_os("EPITOME_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_epitome").into());
    let mut command = Command::new(binary);
    command.args(arguments).env("EPITOME_STORE", "none");
    command
}

fn theirs() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("--plain");
    command
}

/// The median of one call over HTTP, on a connection that is kept.
fn http(rounds: usize) -> f64 {
    let mut child = ours(&["serve", "--http", "127.0.0.1:0"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("/mcp") {
        said.clear();
        log.read_line(&mut said).unwrap();
    }
    // What it logs must not fill the pipe.
    std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
    let address = said.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    let mut body = call(&json!({"text": "a".repeat(100), "tokenizer": "bytes4"}));
    body["params"]["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let body = body.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: estimate_tokens\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let stream = TcpStream::connect(&address).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut stream = BufReader::new(stream);
    let mut ask = || {
        let start = Instant::now();
        stream.get_mut().write_all(request.as_bytes()).unwrap();
        let mut length = 0;
        loop {
            let mut header = String::new();
            assert!(stream.read_line(&mut header).unwrap() > 0);
            if let Some(it) = header.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = it.trim().parse().unwrap();
            }
            if header == "\r\n" {
                break;
            }
        }
        let mut answer = vec![0; length];
        stream.read_exact(&mut answer).unwrap();
        start.elapsed()
    };
    // Until the connection and the caches are warm.
    for _ in 0..rounds / 10 {
        ask();
    }
    let found = median((0..rounds).map(|_| ask()).collect());
    child.kill().unwrap();
    child.wait().unwrap();
    found
}

fn main() {
    if std::env::args().any(|it| it == "--plain") {
        return plain();
    }
    let rounds: usize = std::env::args().skip(1).find_map(|it| it.parse().ok()).unwrap_or(2_000);
    println!("{:<28} {:>10} {:>10} {:>7}", "median", "epitome", "rmcp", "ratio");
    let row = |what: &str, ours: f64, theirs: f64, target: &str| {
        println!("{what:<28} {ours:>7.3} ms {theirs:>7.3} ms {:>7.2}  {target}", ours / theirs);
    };

    let starts = (0..20.min(rounds))
        .map(|_| (Server::start(&mut ours(&["serve", "--stdio"])).1, Server::start(&mut theirs()).1));
    let (one, other): (Vec<_>, Vec<_>) = starts.unzip();
    let fastest = |times: &[Duration]| times.iter().min().unwrap().as_secs_f64() * 1_000.0;
    row("start to initialize, fastest", fastest(&one), fastest(&other), "");
    row("start to initialize", median(one), median(other), "≤ 5 ms");

    let mut server = Server::start(&mut ours(&["serve", "--stdio"])).0;
    let mut plain = Server::start(&mut theirs()).0;
    for (what, size, rounds, target) in [
        ("stdio call, 100 B", 100, rounds, "≤ 0.33"),
        ("stdio call, 100 kB", 100_000, rounds / 10, ""),
        ("stdio call, 1 MB", 1_000_000, rounds / 20, "≤ 0.65"),
        ("stdio call, 10 MB", 10_000_000, rounds / 200, ""),
    ] {
        let text = "a".repeat(size);
        let (one, other) =
            (line(&call(&json!({"text": text, "tokenizer": "bytes4"}))), line(&call(&json!({"text": text}))));
        let asked = (0..rounds.max(3)).map(|_| (server.ask(&one), plain.ask(&other)));
        let (one, other): (Vec<_>, Vec<_>) = asked.unzip();
        row(what, median(one), median(other), target);
    }
    println!("{:<28} {:>7.3} ms {:>10} {:>7}  ≤ 1 ms", "HTTP call, 100 B", http(rounds), "", "");
}
