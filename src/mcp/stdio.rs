//! MCP over standard input and output, a JSON message a line.
//!
//! A thread reads and parses, a thread writes: rmcp's own transport hops to another thread for every 8 KB and drops
//! lines over 16 MB without a word. Here the arguments of a call stay JSON text until the tool looks at them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, GetMeta, JsonObject,
    ProtocolVersion, RequestId, RequestMetaObject, ServerJsonRpcMessage,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage, serve_server};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::arguments::Arguments;
use super::desk::Desk;
use super::server::Server;
use crate::config::Config;
use crate::error::{Error, Kind, Result};

/// A longer line is answered with an error: the client would do better to name a file.
const MAX_LINE: usize = 128 << 20;
/// How much of the ends of a line that is too long is looked through for its id.
const ENDS: usize = 4096;
/// What is read at once, at least.
const CHUNK: usize = 64 * 1024;
/// A line of at most this length is written whole or not at all by a pipe that takes anything.
#[cfg(unix)]
const AT_ONCE: usize = 4096;
/// Messages on their way in or out; more wait in the pipe.
const QUEUE: usize = 32;
/// How long a client that is gone may keep us from ending.
const FLUSH: Duration = Duration::from_secs(5);

/// Serves until the input ends or a signal comes. `now`: instead of the clock, in milliseconds since 1970.
pub fn serve(config: Config, now: Option<i64>) -> Result<()> {
    let io = |what: &'static str| move |error: std::io::Error| Error::new(Kind::Io, what).because(error);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(io("starting the server"))?;
    let (input, output) = pipes().map_err(io("opening standard input and output"))?;
    let server = Server::new(Desk::new(config, now, None));
    let served = runtime.block_on(async {
        let (transport, written) = start(input, output).map_err(io("starting a thread"))?;
        tokio::select! {
            served = talk(server, transport) => {
                // What was answered must reach the pipe before the process ends.
                let _ = tokio::time::timeout(FLUSH, written).await;
                served
            }
            () = super::signal() => Ok(()),
        }
    });
    // A call that is still at work must not keep the process: whatever it writes is put in place whole or not at all.
    runtime.shutdown_background();
    served
}

async fn talk(server: Server, transport: Stdio) -> Result<()> {
    match serve_server(server, transport).await {
        Ok(running) => {
            let ended = running.waiting().await;
            ended.map(|_| ()).map_err(|error| Error::new(Kind::Bug, "serving").because(error))
        }
        // Health checks look whether the process starts, and go.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(Error::new(Kind::Input, "the handshake failed").because(error)),
    }
}

/// Standard input and output as files, without the locks and buffers of the standard library.
#[cfg(unix)]
fn pipes() -> std::io::Result<(File, File)> {
    use std::os::fd::AsFd;
    let input = std::io::stdin().as_fd().try_clone_to_owned()?;
    let output = std::io::stdout().as_fd().try_clone_to_owned()?;
    Ok((input.into(), output.into()))
}

/// Standard input and output as files, without the locks and buffers of the standard library.
#[cfg(windows)]
fn pipes() -> std::io::Result<(File, File)> {
    use std::os::windows::io::AsHandle;
    let input = std::io::stdin().as_handle().try_clone_to_owned()?;
    let output = std::io::stdout().as_handle().try_clone_to_owned()?;
    Ok((input.into(), output.into()))
}

/// The transport, and what says that everything is written.
fn start(input: File, output: File) -> std::io::Result<(Stdio, oneshot::Receiver<()>)> {
    let (incoming_sender, incoming) = mpsc::channel(QUEUE);
    let (queue, queued) = mpsc::channel(QUEUE);
    let output = Arc::new(Output { file: Mutex::new(output), waiting: AtomicUsize::new(0) });
    let (done, written) = oneshot::channel();
    let replies = Replies { queue: queue.downgrade(), output: output.clone() };
    let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
    thread("stdin").spawn(move || read(input, &incoming_sender, &replies))?;
    let writer = output.clone();
    thread("stdout").spawn(move || {
        write(&writer, queued);
        // Whoever waited may have given up.
        let _ = done.send(());
    })?;
    Ok((Stdio { incoming, queue: Some(queue), output, opened: false }, written))
}

/// Standard output, and how many lines wait for the thread that writes.
struct Output {
    file: Mutex<File>,
    waiting: AtomicUsize,
}

impl Output {
    /// Writes a short line at once, if nothing waits before it and the client has room for it; whether it did.
    #[cfg(unix)]
    fn at_once(&self, line: &[u8]) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let Ok(mut file) = self.file.try_lock() else { return false };
        if line.len() > AT_ONCE || self.waiting.load(Ordering::Acquire) > 0 {
            return false;
        }
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&*file, PollFlags::OUT)], Some(&now));
        // What cannot be written shows when the input ends.
        matches!(ready, Ok(1..)) && file.write_all(line).is_ok()
    }

    #[cfg(not(unix))]
    fn at_once(&self, _line: &[u8]) -> bool {
        false
    }
}

/// What the reading thread answers by itself.
struct Replies {
    queue: mpsc::WeakSender<Vec<u8>>,
    output: Arc<Output>,
}

impl Replies {
    /// Whether anybody still takes it.
    fn send(&self, line: Vec<u8>) -> bool {
        let Some(queue) = self.queue.upgrade() else { return false };
        self.output.waiting.fetch_add(1, Ordering::AcqRel);
        queue.blocking_send(line).is_ok()
    }
}

struct Stdio {
    incoming: mpsc::Receiver<ClientJsonRpcMessage>,
    queue: Option<mpsc::Sender<Vec<u8>>>,
    output: Arc<Output>,
    /// Whether the client has said which era it speaks.
    opened: bool,
}

impl Transport<RoleServer> for Stdio {
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = std::result::Result<(), Self::Error>> + Send + 'static {
        let gone = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let sent = || {
            let queue = self.queue.as_ref().ok_or_else(gone)?;
            let line = serialized(&message)?;
            if self.output.at_once(&line) {
                return Ok(None);
            }
            self.output.waiting.fetch_add(1, Ordering::AcqRel);
            Ok::<_, std::io::Error>(Some((queue.clone(), line)))
        };
        let sent = sent();
        async move {
            match sent? {
                None => Ok(()),
                Some((queue, line)) => queue.send(line).await.map_err(|_| gone()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.incoming.recv().await?;
            if self.opened {
                return Some(message);
            }
            // Before the handshake rmcp takes anything but a request for the end.
            if let ClientJsonRpcMessage::Request(request) = &message {
                self.opened = opens(&request.request);
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> std::result::Result<(), Self::Error> {
        self.queue = None;
        Ok(())
    }
}

/// Whether a request says which era it belongs to: the handshake, or one with the metadata of 2026-07-28.
fn opens(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => false,
        other => other.get_meta().missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty(),
    }
}

fn serialized(message: &ServerJsonRpcMessage) -> std::io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

fn write(output: &Output, mut queue: mpsc::Receiver<Vec<u8>>) {
    while let Some(mut line) = queue.blocking_recv() {
        let mut count = 1;
        // What else is ready goes in one write.
        while line.len() < CHUNK {
            match queue.try_recv() {
                Ok(next) => line.extend_from_slice(&next),
                Err(_) => break,
            }
            count += 1;
        }
        let written = output.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line);
        if written.is_err() {
            // The client is gone; its input ends too.
            return;
        }
        output.waiting.fetch_sub(count, Ordering::AcqRel);
    }
}

fn read(mut input: File, incoming: &mpsc::Sender<ClientJsonRpcMessage>, replies: &Replies) {
    let mut lines = Lines::default();
    let mut buffer = vec![0; CHUNK];
    loop {
        let count = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let alive = lines.push(&buffer[..count], &mut |line| take(line, incoming, replies));
        if !alive {
            return;
        }
        // A large message is read in large steps.
        if count == buffer.len() && buffer.len() < 1 << 20 {
            buffer.resize(buffer.len() * 2, 0);
        }
    }
    // The last line may lack its break.
    lines.end(&mut |line| take(line, incoming, replies));
}

/// A line of input.
enum Line<'a> {
    Whole(&'a [u8]),
    /// Too long: its beginning and its end.
    TooLong(&'a [u8], &'a [u8]),
}

/// Cuts what is read into lines, and holds no more of one than is allowed.
#[derive(Default)]
struct Lines {
    begun: Vec<u8>,
    /// Beginning and end of a line that is too long.
    too_long: Option<(Vec<u8>, Vec<u8>)>,
}

impl Lines {
    /// Calls `take` with every line that ended; whether it wants more.
    fn push(&mut self, mut bytes: &[u8], take: &mut dyn FnMut(Line<'_>) -> bool) -> bool {
        while let Some(at) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..at], &bytes[at + 1..]);
            bytes = rest;
            let more = if self.begun.is_empty() && self.too_long.is_none() {
                take(Line::Whole(line))
            } else {
                self.hold(line);
                self.end(take)
            };
            if !more {
                return false;
            }
        }
        self.hold(bytes);
        true
    }

    /// The line that has begun is over.
    fn end(&mut self, take: &mut dyn FnMut(Line<'_>) -> bool) -> bool {
        let more = match self.too_long.take() {
            Some((first, last)) => take(Line::TooLong(&first, &last)),
            None => take(Line::Whole(&self.begun)),
        };
        if self.begun.capacity() > 1 << 20 {
            self.begun = Vec::new();
        }
        self.begun.clear();
        more
    }

    fn hold(&mut self, bytes: &[u8]) {
        if let Some((_, last)) = &mut self.too_long {
            last.extend_from_slice(&bytes[bytes.len().saturating_sub(ENDS)..]);
            last.drain(..last.len().saturating_sub(ENDS));
            return;
        }
        self.begun.extend_from_slice(bytes);
        if self.begun.len() > MAX_LINE {
            let first = self.begun[..ENDS].to_vec();
            let last = self.begun[self.begun.len() - ENDS..].to_vec();
            self.begun = Vec::new();
            self.too_long = Some((first, last));
        }
    }
}

/// Hands a line on, or answers it when it is no message; whether more can be taken.
fn take(line: Line<'_>, incoming: &mpsc::Sender<ClientJsonRpcMessage>, replies: &Replies) -> bool {
    let reply = match line {
        Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => return true,
        Line::Whole(line) => match message(line) {
            Ok(message) => return incoming.blocking_send(message).is_ok(),
            Err(None) => return true,
            Err(Some(reply)) => reply,
        },
        Line::TooLong(first, last) => {
            let what = format!(
                "expected a message of at most {} MB; pass large histories as a file",
                MAX_LINE >> 20
            );
            error_reply(id_in(first).or_else(|| id_in(last)).unwrap_or(Value::Null), -32600, &what)
        }
    };
    let mut reply = reply.to_string().into_bytes();
    reply.push(b'\n');
    replies.send(reply)
}

fn error_reply(id: Value, code: i32, what: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": what}})
}

/// A line as a message; or the error to answer, if it can be answered at all.
pub(super) fn message(line: &[u8]) -> std::result::Result<ClientJsonRpcMessage, Option<Value>> {
    if let Some(call) = tool_call(line) {
        return Ok(call);
    }
    let text = crate::json::mend(line);
    let parsed = serde_json::from_str::<ClientJsonRpcMessage>(&text);
    let Err(error) = parsed else { return parsed.map_err(|_| None) };
    match serde_json::from_str::<Value>(&text) {
        Err(_) => Err(Some(error_reply(Value::Null, -32700, &format!("expected a line of JSON: {error}")))),
        Ok(Value::Array(_)) => {
            Err(Some(error_reply(Value::Null, -32600, "expected one message a line, found a batch")))
        }
        Ok(Value::Object(it)) => match it.get("id") {
            Some(id @ (Value::String(_) | Value::Number(_))) => Err(Some(error_reply(
                id.clone(),
                -32600,
                "expected a JSON-RPC 2.0 request, found something else",
            ))),
            Some(_) => {
                Err(Some(error_reply(Value::Null, -32600, "expected an id that is a text or a whole number")))
            }
            // Nobody waits for an answer to a notification.
            None if it.contains_key("method") => Err(None),
            None => Err(Some(error_reply(Value::Null, -32600, "expected a JSON-RPC 2.0 request"))),
        },
        Ok(_) => Err(Some(error_reply(Value::Null, -32600, "expected a JSON-RPC 2.0 request"))),
    }
}

#[derive(Deserialize)]
struct CallLine<'a> {
    jsonrpc: &'a str,
    id: RequestId,
    method: &'a str,
    #[serde(borrow)]
    params: CallParams<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallParams<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<BTreeMap<String, &'a RawValue>>,
    #[serde(rename = "_meta")]
    meta: Option<JsonObject>,
    #[serde(borrow)]
    input_responses: Option<&'a RawValue>,
}

/// The message that is large and comes often, read in one go: rmcp's own way reads it three times over. `None` for
/// everything else.
fn tool_call(line: &[u8]) -> Option<ClientJsonRpcMessage> {
    let line: CallLine<'_> = serde_json::from_slice(line).ok()?;
    if line.jsonrpc != "2.0" || line.method != "tools/call" || line.params.input_responses.is_some() {
        return None;
    }
    let arguments = line.params.arguments.unwrap_or_default();
    let arguments = Arguments(arguments.into_iter().map(|(name, raw)| (name, raw.to_owned())).collect());
    let mut request = CallToolRequest::new(CallToolRequestParams::new(line.params.name));
    request.extensions.insert(Arc::new(arguments));
    if let Some(meta) = line.params.meta {
        request.extensions.insert(RequestMetaObject(rmcp::model::MetaObject(meta)));
    }
    Some(ClientJsonRpcMessage::request(ClientRequest::CallToolRequest(request), line.id))
}

/// The first `"id": …` in a piece of a message, with a text or a number.
fn id_in(piece: &[u8]) -> Option<Value> {
    let at = memchr::memmem::find(piece, b"\"id\"")?;
    let text = String::from_utf8_lossy(&piece[at + 4..]);
    let value = text.trim_start().strip_prefix(':')?.trim_start();
    let end = match value.strip_prefix('"') {
        Some(rest) => rest.find('"')? + 2,
        None => value.find(|it: char| !it.is_ascii_digit() && it != '-')?,
    };
    serde_json::from_str(&value[..end]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let mut out = Vec::new();
        let mut lines = Lines::default();
        let mut take = |line: Line<'_>| {
            out.push(match line {
                Line::Whole(it) => String::from_utf8_lossy(it).into_owned(),
                Line::TooLong(first, last) => format!("{}…{}", first.len(), last.len()),
            });
            true
        };
        for piece in pieces {
            lines.push(piece, &mut take);
        }
        lines.end(&mut take);
        out
    }

    #[test]
    fn cuts_lines() {
        assert_eq!(lines(&[b"a\nb", b"c\n", b"d"]), ["a", "bc", "d"]);
        assert_eq!(lines(&[b"\n\n"]), ["", "", ""]);
        let long = vec![b'x'; 1 << 20];
        let mut pieces: Vec<&[u8]> = vec![&long; 130];
        pieces.extend([b"end\n".as_slice(), b"next\n"]);
        assert_eq!(lines(&pieces), ["4096…4096", "next", ""]);
    }

    #[test]
    fn finds_ids() {
        assert_eq!(id_in(br#"{"jsonrpc":"2.0","id": 17,"method""#), Some(json!(17)));
        assert_eq!(id_in(br#"xxx","jsonrpc":"2.0","id":"a-1"}"#), Some(json!("a-1")));
        assert_eq!(id_in(br#"{"id":"cut"#), None);
        assert_eq!(id_in(b"nothing"), None);
    }

    #[test]
    fn reads_calls_like_rmcp() {
        let line = br#"{"method":"tools/call","params":{"_meta":{"progressToken":3,"threadId":"t"},"name":"recall","arguments":{"query":"x"}},"jsonrpc":"2.0","id":5}"#;
        let ClientJsonRpcMessage::Request(fast) = tool_call(line).unwrap() else { panic!() };
        let ClientJsonRpcMessage::Request(slow) =
            serde_json::from_slice::<ClientJsonRpcMessage>(line).unwrap()
        else {
            panic!()
        };
        assert_eq!(fast.id, slow.id);
        assert_eq!(fast.request.get_meta(), slow.request.get_meta());
        assert!(tool_call(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).is_none());
    }

    #[test]
    fn answers_what_is_no_message() {
        let code = |line: &[u8]| {
            message(line).unwrap_err().map(|it| (it["error"]["code"].as_i64().unwrap(), it["id"].clone()))
        };
        assert_eq!(code(b"{oh"), Some((-32700, Value::Null)));
        assert_eq!(code(b"[]"), Some((-32600, Value::Null)));
        assert_eq!(code(br#"{"jsonrpc":"2.0","id":7}"#), Some((-32600, json!(7))));
        assert_eq!(code(br#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#), Some((-32600, json!("a"))));
        assert_eq!(code(b"7"), Some((-32600, Value::Null)));
    }
}
