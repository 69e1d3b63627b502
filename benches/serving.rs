//! What a call costs a client, beside a plain rmcp server on rmcp's own standard transport that does the same work: both
//! are asked by turns, in one run; the start also beside a server on Node. Prints a table of medians and fails where a
//! target is missed; `cargo bench --bench serving [-- ROUNDS]`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program for people, of which a failure is the result"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
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

/// A server on Node, if `just bench-peers` installed one.
fn node() -> Option<Command> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target"));
    let script = target.join("bench-peers/node_modules/@modelcontextprotocol/server-memory/dist/index.js");
    let mut command = Command::new("node");
    command.arg(&script);
    script.exists().then_some(command)
}

/// Milliseconds of ours and of another's, and what is held to the target.
struct Row<'a> {
    what: &'a str,
    ours: f64,
    theirs: Option<f64>,
    found: f64,
    most: Option<f64>,
}

/// Prints the row; whether it is within its target.
fn print(row: &Row) -> bool {
    let theirs = row.theirs.map_or_else(String::new, |it| format!("{it:.3} ms"));
    let ratio = row.theirs.map_or_else(String::new, |it| format!("{:.3}", row.ours / it));
    let met = row.most.is_none_or(|it| row.found <= it);
    let target =
        row.most.map_or_else(String::new, |it| format!("≤ {it}{}", if met { "" } else { "  MISSED" }));
    println!("{:<36} {:>7.3} ms {theirs:>11} {ratio:>7}  {target}", row.what, row.ours);
    met
}

fn main() -> ExitCode {
    if std::env::args().any(|it| it == "--plain") {
        plain();
        return ExitCode::SUCCESS;
    }
    let rounds: usize = std::env::args().skip(1).find_map(|it| it.parse().ok()).unwrap_or(2_000);
    println!("{:<36} {:>10} {:>11} {:>7}", "median", "epitome", "beside it", "ratio");
    let mut met = true;

    let start = |command: &mut Command| Server::start(command).1;
    let starts = (0..20.min(rounds)).map(|_| (start(&mut ours(&["serve", "--stdio"])), start(&mut theirs())));
    let (one, other): (Vec<_>, Vec<_>) = starts.unzip();
    let (one, other) = (median(one), median(other));
    let what = "start to initialize, ms: rmcp";
    met &= print(&Row { what, ours: one, theirs: Some(other), found: one, most: Some(5.0) });
    match node() {
        Some(mut node) => {
            let starts = (0..10).map(|_| (start(&mut ours(&["serve", "--stdio"])), start(&mut node)));
            let (one, other): (Vec<_>, Vec<_>) = starts.unzip();
            // Few rounds, and what Node leaves behind in the caches: the least of each tells most.
            let least = |it: Vec<Duration>| it.into_iter().min().unwrap().as_secs_f64() * 1_000.0;
            let (one, other) = (least(one), least(other));
            let what = "start to initialize, least: on Node";
            met &= print(&Row { what, ours: one, theirs: Some(other), found: one / other, most: Some(0.02) });
        }
        None => println!(
            "start to initialize: a server on Node: skipped, it is not installed; `just bench-peers`"
        ),
    }

    // Whether a process shares a core with us is decided when it starts, and by it what a short call costs.
    const PAIRS: usize = 5;
    let sizes = [
        ("stdio call, 100 B: rmcp", 100, rounds, Some(0.33)),
        ("stdio call, 100 kB: rmcp", 100_000, rounds / 10, None),
        ("stdio call, 1 MB: rmcp", 1_000_000, rounds / 20, Some(0.65)),
        ("stdio call, 10 MB: rmcp", 10_000_000, rounds / 200, None),
    ];
    let mut times = sizes.map(|_| (Vec::new(), Vec::new()));
    for _ in 0..PAIRS {
        let mut server = Server::start(&mut ours(&["serve", "--stdio"])).0;
        let mut plain = Server::start(&mut theirs()).0;
        for ((_, size, rounds, _), (one, other)) in sizes.iter().zip(&mut times) {
            let text = "a".repeat(*size);
            let with = line(&call(&json!({"text": text, "tokenizer": "bytes4"})));
            let without = line(&call(&json!({"text": text})));
            for _ in 0..(*rounds).max(3) {
                one.push(server.ask(&with));
                other.push(plain.ask(&without));
            }
        }
    }
    for ((what, _, _, most), (one, other)) in sizes.into_iter().zip(times) {
        let (one, other) = (median(one), median(other));
        met &= print(&Row { what, ours: one, theirs: Some(other), found: one / other, most });
    }
    let took = http(rounds);
    met &=
        print(&Row { what: "HTTP call, 100 B, ms", ours: took, theirs: None, found: took, most: Some(1.0) });
    if met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
