//! The server as a child process, and a client that speaks no more of the protocol than a line of JSON.

mod corpus;
mod host;
mod hostile;
mod http;
mod mistakes;
mod names;
mod soak;
mod stdio;
mod suites;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use serde_json::{Value, json};

pub fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/sessions").join(name)
}

pub fn example_messages(name: &str) -> Value {
    let whole: Value = serde_json::from_str(&std::fs::read_to_string(example(name)).unwrap()).unwrap();
    ["messages", "input", "contents"].iter().find_map(|it| whole.get(*it)).unwrap_or(&whole).clone()
}

/// `epitome` with a home of its own.
pub fn command(home: &Path) -> Command {
    // `EPITOME_BINARY`: the binary that is shipped, instead of the one just built.
    let binary = std::env::var_os("EPITOME_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_epitome").into());
    let mut command = Command::new(binary);
    command.env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").current_dir(home);
    command
}

pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    last: u64,
    modern: bool,
    pub home: tempfile::TempDir,
}

impl Client {
    /// Started, nothing said yet.
    pub fn start(change: impl FnOnce(&Path, &mut Command)) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut command = command(home.path());
        command.args(["serve", "--stdio"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        change(home.path(), &mut command);
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { input: child.stdin.take(), output, child, last: 0, modern: false, home }
    }

    /// With the handshake.
    pub fn legacy() -> Self {
        let mut client = Self::start(|_, _| {});
        client.handshake();
        client
    }

    pub fn handshake(&mut self) -> Value {
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        let result = self.request("initialize", hello).unwrap();
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        result
    }

    /// Without a handshake: every request says what the client is.
    pub fn modern() -> Self {
        let mut client = Self::start(|_, _| {});
        client.modern = true;
        client
    }

    pub fn send(&mut self, message: &Value) {
        self.send_line(message.to_string().as_bytes());
    }

    pub fn send_line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    /// What is sent is somebody else's business from here on.
    pub fn take_input(&mut self) -> ChildStdin {
        self.input.take().unwrap()
    }

    /// Waits for the beginning of an answer, which stays unread.
    pub fn has_answer(&mut self) -> bool {
        !self.output.fill_buf().unwrap().is_empty()
    }

    pub fn read(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line)
            .unwrap_or_else(|error| panic!("expected a message, found {line:?}: {error}"))
    }

    /// A request and the answer to it; the error if it is one.
    pub fn request(&mut self, method: &str, mut params: Value) -> Result<Value, Value> {
        self.last += 1;
        if self.modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
            params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
        }
        let id = self.last;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut answer = self.read();
            if answer["id"] == json!(id) {
                return if answer["error"].is_null() {
                    Ok(answer["result"].take())
                } else {
                    Err(answer["error"].take())
                };
            }
        }
    }

    /// The result of a tool, whatever it is.
    pub fn result(&mut self, tool: &str, arguments: Value) -> Value {
        self.request("tools/call", json!({"name": tool, "arguments": arguments})).unwrap()
    }

    /// What a tool answers; it must not be an error, and both forms must say the same.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let mut result = self.result(tool, arguments);
        assert_ne!(result["isError"], json!(true), "{tool}: {result}");
        assert_eq!(result["content"].as_array().unwrap().len(), 1);
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structuredContent"], "text and structured content differ");
        result["structuredContent"].take()
    }

    /// What a tool says is wrong.
    pub fn refusal(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.result(tool, arguments);
        assert_eq!(result["isError"], json!(true), "{tool}: {result}");
        assert!(result.get("structuredContent").is_none(), "an error need not fit the output schema");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Ends the input; what is still written, and how the process ended.
    pub fn end(mut self) -> (String, ExitStatus) {
        drop(self.input.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        (rest, self.child.wait().unwrap())
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The HTTP server as a child process.
pub struct Web {
    child: Child,
    pub port: u16,
    pub home: tempfile::TempDir,
}

/// An answer: status, headers in lower case, body.
pub struct Answer {
    pub status: u16,
    pub headers: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        let json =
            self.body.lines().rev().find_map(|it| it.strip_prefix("data: {").map(|it| format!("{{{it}")));
        let text = json.unwrap_or_else(|| self.body.clone());
        serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("expected JSON, found {:?}: {error}", self.body))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.lines().find_map(|it| it.strip_prefix(&format!("{name}: ")))
    }
}

impl Web {
    pub fn start(change: impl FnOnce(&Path, &mut Command)) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut command = command(home.path());
        command
            .args(["serve", "--http", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        change(home.path(), &mut command);
        let mut child = command.spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("serving") {
            line.clear();
            assert!(log.read_line(&mut line).unwrap() > 0, "the server did not start");
        }
        let port = line
            .trim()
            .rsplit(':')
            .next()
            .and_then(|it| it.strip_suffix("/mcp"))
            .and_then(|it| it.parse().ok());
        let port = port.unwrap_or_else(|| panic!("expected where it serves, found {line:?}"));
        // What it logs must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        Self { child, port, home }
    }

    /// One request on a connection of its own. `Host` and `Content-Length` are added unless they are there.
    pub fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        let has = |name: &str| headers.iter().any(|(it, _)| it.eq_ignore_ascii_case(name));
        if !has("host") {
            head.push_str(&format!("Host: 127.0.0.1:{}\r\n", self.port));
        }
        if !has("content-length") && !has("transfer-encoding") {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.raw(&[head.as_bytes(), b"\r\n", body].concat())
    }

    pub fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).unwrap()
    }

    /// Sends bytes and reads until the server closes.
    pub fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // The server may have answered and closed before everything was sent.
        let _ = stream.write_all(bytes);
        let mut all = Vec::new();
        let _ = stream.read_to_end(&mut all);
        let all = String::from_utf8_lossy(&all).into_owned();
        let (head, body) = all.split_once("\r\n\r\n").unwrap_or((&all, ""));
        let status = head.split_whitespace().nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
        let headers = head.lines().map(|it| {
            it.split_once(": ")
                .map_or(it.to_owned(), |(name, value)| format!("{}: {value}", name.to_ascii_lowercase()))
        });
        let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        let body = if chunked { unchunked(body) } else { body.to_owned() };
        Answer { status, headers: headers.collect::<Vec<_>>().join("\n"), body }
    }

    /// A request of 2026-07-28, which needs no session.
    pub fn modern(&self, method: &str, mut params: Value, headers: &[(&str, &str)]) -> Answer {
        let name = params["name"].as_str().map(str::to_owned);
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let mut all = vec![
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
        ];
        if let Some(name) = &name {
            all.push(("Mcp-Name", name));
        }
        all.extend_from_slice(headers);
        self.request("POST", "/mcp", &all, body.as_bytes())
    }

    pub fn call(&self, tool: &str, arguments: Value, headers: &[(&str, &str)]) -> Value {
        let answer = self.modern("tools/call", json!({"name": tool, "arguments": arguments}), headers);
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json()["result"].take()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn wait(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn unchunked(body: &str) -> String {
    let mut out = String::new();
    let mut rest = body;
    while let Some((size, after)) = rest.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else { break };
        if size == 0 || after.len() < size {
            break;
        }
        out.push_str(&after[..size]);
        rest = after[size..].trim_start_matches("\r\n");
    }
    out
}

/// What a value breaks of a schema, as far as our schemas go.
pub fn violations(schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let mut out = Vec::new();
    let fits = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_u64() || value.is_i64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        other => panic!("{at}: expected a type, found {other:?}"),
    };
    if !fits {
        return vec![format!("{at}: expected {}, found {value}", schema["type"])];
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        if value.get(name.as_str().unwrap()).is_none() {
            out.push(format!("{at}: expected {name}"));
        }
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(value) = value.get(name) {
            out.extend(violations(schema, value, &format!("{at}.{name}")));
        }
    }
    for (number, value) in value.as_array().into_iter().flatten().enumerate() {
        out.extend(violations(&schema["items"], value, &format!("{at}[{number}]")));
    }
    out
}
