//! The gateway between a client and a recording provider, both of them ours: what passes, what is answered, and what
//! happens when the one or the other fails.

mod compaction;
mod leaving;
mod passing;
mod sdk;
mod tenants;
mod tls;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::mcp::Web;

/// A request or an answer as it stood on the wire.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    /// The first line.
    pub first: String,
    /// `Name: value`, sorted; without those of the connection.
    pub headers: Vec<String>,
    pub body: Vec<u8>,
    /// The body ended where it was said to end.
    pub whole: bool,
}

/// Headers that belong to one connection, or name its other side.
const HOP: [&str; 4] = ["connection:", "transfer-encoding:", "host:", "content-length:"];

impl Message {
    /// Reads one. `begun` is told when the head is there.
    pub fn read(stream: &mut impl BufRead, begun: impl FnOnce(&Self), no_body: bool) -> Option<Self> {
        let mut out = Self { whole: true, ..Self::default() };
        let mut line = || -> Option<String> {
            let mut line = Vec::new();
            stream.read_until(b'\n', &mut line).ok().filter(|it| *it > 0)?;
            Some(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned())
        };
        out.first = line()?;
        let mut length = None;
        let mut chunked = false;
        loop {
            let header = line()?;
            if header.is_empty() {
                break;
            }
            let lower = header.to_ascii_lowercase();
            if let Some(it) = lower.strip_prefix("content-length:") {
                length = it.trim().parse::<usize>().ok();
            }
            chunked |= lower.starts_with("transfer-encoding:") && lower.contains("chunked");
            if !HOP.iter().any(|it| lower.starts_with(it)) {
                out.headers.push(header);
            }
        }
        out.headers.sort();
        begun(&out);
        if no_body {
            return Some(out);
        }
        if chunked {
            out.whole = chunks(stream, &mut out.body).is_some();
        } else {
            match length {
                Some(length) => {
                    let _ = stream.take(length as u64).read_to_end(&mut out.body);
                    out.whole = out.body.len() == length;
                }
                None if out.first.starts_with("HTTP/") => drop(stream.read_to_end(&mut out.body)),
                None => {}
            }
        }
        Some(out)
    }

    pub fn status(&self) -> u16 {
        self.first.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

fn chunks(stream: &mut impl BufRead, out: &mut Vec<u8>) -> Option<()> {
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|it| *it > 0)?;
        let size = usize::from_str_radix(line.trim(), 16).ok()?;
        let before = out.len();
        stream.take(size as u64).read_to_end(out).ok()?;
        (out.len() == before + size).then_some(())?;
        line.clear();
        stream.read_line(&mut line).ok()?;
        if size == 0 {
            return Some(());
        }
    }
}

/// What a provider does with a request whose head is there.
type Answerer = dyn Fn(&Message, &mut TcpStream) + Send + Sync;

/// A provider that keeps what reaches it.
pub struct Provider {
    pub port: u16,
    seen: Arc<Mutex<Vec<Message>>>,
    /// The heads of requests, as they come.
    pub heads: Mutex<Receiver<String>>,
}

impl Provider {
    /// `answer` writes the answer of a request that was read.
    pub fn start(answer: impl Fn(&Message, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen: Arc<Mutex<Vec<Message>>> = Arc::default();
        let answer: Arc<Answerer> = Arc::new(answer);
        let (send, heads) = channel();
        let kept = seen.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (kept, answer, send) = (kept.clone(), answer.clone(), send.clone());
                std::thread::spawn(move || {
                    let mut out = stream.try_clone().unwrap();
                    let mut reader = BufReader::new(stream);
                    let head = |it: &Message| drop(send.send(it.first.clone()));
                    while let Some(request) = Message::read(&mut reader, head, false) {
                        kept.lock().unwrap().push(request.clone());
                        answer(&request, &mut out);
                    }
                });
            }
        });
        Self { port, seen, heads: Mutex::new(heads) }
    }

    /// One that answers every request with a short text.
    pub fn plain() -> Self {
        Self::start(|_, out| {
            let _ = out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nPROVIDER");
        })
    }

    pub fn seen(&self) -> Vec<Message> {
        self.seen.lock().unwrap().clone()
    }

    /// What came since it was asked last.
    pub fn take(&self) -> Vec<Message> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }

    pub fn gateway(&self) -> Web {
        let url = format!("http://127.0.0.1:{}", self.port);
        to(&url)
    }
}

/// A gateway to an address.
pub fn to(url: &str) -> Web {
    Web::start(|_, command| {
        command.args(["--upstream", url]);
    })
}

/// One request on a connection of its own.
pub fn exchange(port: u16, request: &[u8]) -> Message {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(request).unwrap();
    Message::read(&mut BufReader::new(stream), |_| {}, request.starts_with(b"HEAD ")).unwrap_or_default()
}

/// A request in bytes, `Host`, `Connection: close` and `Content-Length` added.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut out = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        out.push_str(&format!("{name}: {value}\r\n"));
    }
    [out.as_bytes(), b"\r\n", body].concat()
}

pub fn post(port: u16, path: &str, headers: &[(&str, &str)], body: &Value) -> Message {
    exchange(port, &request("POST", path, headers, body.to_string().as_bytes()))
}

pub fn message(role: &str, text: &str) -> Value {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
}

/// The prompt of Codex's local compaction.
pub fn local_prompt() -> Value {
    message(
        "user",
        "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another LLM.",
    )
}

pub fn trigger() -> Value {
    json!({"type": "compaction_trigger"})
}

/// A conversation about `word`, with calls whose outputs are numbers.
pub fn conversation(word: &str) -> Vec<Value> {
    let mut items = vec![
        message("developer", "You are a coding agent."),
        message("user", "<environment_context>\n  <cwd>/home/dev/project</cwd>\n</environment_context>"),
        message(
            "user",
            &format!("Fix the parser of {word}. Never change anything under migrations/{word}/."),
        ),
    ];
    for round in 0..12 {
        let call = format!("call_{word}_{round}");
        let output: String = (0..400).map(|it| format!("{}\n", 1000 * round + it)).collect();
        items.extend([
            message("assistant", &format!("Looking at part {round}.")),
            json!({"type": "function_call", "call_id": call, "name": "exec_command",
                "arguments": json!({"cmd": format!("seq {round}000 {round}399")}).to_string()}),
            json!({"type": "function_call_output", "call_id": call, "output": output}),
        ]);
    }
    items.push(message(
        "assistant",
        &format!("The test TAIL-{word} fails in parser.rs, line 12; that is next."),
    ));
    items
}

/// A request of the Responses API as Codex makes it.
pub fn codex(items: &[Value], tools: bool) -> Value {
    let tools = if tools {
        json!([{"type": "function", "name": "exec_command", "parameters": {}}])
    } else {
        json!([])
    };
    json!({"model": "gpt-5-codex", "instructions": "You are a coding agent.", "input": items, "tools": tools, "stream": true,
        "store": false})
}

pub fn with(mut items: Vec<Value>, last: Value) -> Vec<Value> {
    items.push(last);
    items
}

/// The item of an answer that came as events.
pub fn item(answer: &Message) -> Value {
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let text = answer.text();
    let events: Vec<Value> = text
        .lines()
        .filter_map(|it| it.strip_prefix("data: "))
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    let done: Vec<&Value> = events.iter().filter(|it| it["type"] == "response.output_item.done").collect();
    assert_eq!(done.len(), 1, "{text}");
    assert_eq!(events.last().unwrap()["type"], "response.completed");
    done[0]["item"].clone()
}
