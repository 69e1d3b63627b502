//! MCP over standard input and output, a JSON message a line.
//!
//! The thread that answers also reads, when the system says that there is something, and writes short lines, when the
//! client has room for them: rmcp's own transport hops to another thread for every 8 KB and drops lines over 16 MB
//! without a word. Here the arguments of a call stay JSON text until the tool looks at them, and a call that is done
//! sooner than handed on is answered where it was read, without a round through rmcp's tasks and channels.

pub(super) mod lines;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetMeta, ProtocolVersion, RequestMetaObject, ServerJsonRpcMessage,
    ServerResult,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage, ServerInitializeError, TxJsonRpcMessage, serve_server};
use rmcp::transport::Transport;
use tokio::io::AsyncReadExt;
use tokio::sync::{Notify, mpsc, oneshot};

use self::lines::{Incoming, InputLine, LineBuffer, ToolCall, taken};
use super::server::Server;
use super::server_state::ServerState;
use crate::config::Config;
use history::error::{Error, ErrorKind, Result};

/// What is read at once, at least.
const CHUNK: usize = 64 * 1024;
/// A line of at most this length is written whole or not at all by a pipe that takes anything.
#[cfg(unix)]
const AT_ONCE: usize = 4096;
/// Lines on their way to the thread that writes.
const QUEUE: usize = 32;
/// As long as more bytes of answers than this wait for the client to read them, nothing more is read from it.
const UNREAD: usize = 16 << 20;
/// How long a client that is gone may keep us from ending.
const FLUSH: Duration = Duration::from_secs(5);

/// Serves until the input ends or a signal comes. `now`: instead of the clock, in milliseconds since 1970.
pub fn serve(config: Config, now: Option<i64>) -> Result<()> {
    let io = |what: &'static str| move |error: std::io::Error| Error::new(ErrorKind::Io, what).because(error);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(io("starting the server"))?;
    let (input, output) = pipes().map_err(io("opening standard input and output"))?;
    let server = Server::new(ServerState::new(config, now, None));
    let served = runtime.block_on(async {
        let (transport, written) = start(server.clone(), input, output).map_err(io("starting a thread"))?;
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
            ended.map(|_| ()).map_err(|error| Error::new(ErrorKind::Bug, "serving").because(error))
        }
        // Health checks look whether the process starts, and go.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(Error::new(ErrorKind::Input, "the handshake failed").because(error)),
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

#[cfg(windows)]
fn pipes() -> std::io::Result<(File, File)> {
    use std::os::windows::io::AsHandle;
    let input = std::io::stdin().as_handle().try_clone_to_owned()?;
    let output = std::io::stdout().as_handle().try_clone_to_owned()?;
    Ok((input.into(), output.into()))
}

/// The transport, and what says that everything is written.
fn start(server: Server, input: File, output: File) -> std::io::Result<(Stdio, oneshot::Receiver<()>)> {
    let (queue, queued) = mpsc::channel(QUEUE);
    let output = Arc::new(StandardOutput {
        file: Mutex::new(output),
        waiting: AtomicUsize::new(0),
        taken: Notify::new(),
    });
    let (done, written) = oneshot::channel();
    let writer = output.clone();
    thread("stdout").spawn(move || {
        write(&writer, queued);
        // The receiver may be gone.
        let _ = done.send(());
    })?;
    let stdio = Stdio {
        input: StandardInput::of(input)?,
        buffer: vec![0; CHUNK],
        lines: LineBuffer::default(),
        messages: VecDeque::new(),
        replies: VecDeque::new(),
        ended: false,
        queue: Some(queue),
        output,
        opened: None,
        server,
    };
    Ok((stdio, written))
}

fn thread(name: &str) -> std::thread::Builder {
    std::thread::Builder::new().name(name.to_owned())
}

enum StandardInput {
    /// A pipe of which the system says when it can be read. Opened again, so that other processes that hold it are not
    /// affected; only Linux can do that.
    #[cfg(target_os = "linux")]
    Pipe(tokio::net::unix::pipe::Receiver),
    /// What Node gives its children.
    #[cfg(unix)]
    Socket(tokio::net::UnixStream),
    /// Anything else: a thread reads it.
    Thread(mpsc::Receiver<Vec<u8>>),
}

impl StandardInput {
    fn of(file: File) -> std::io::Result<Self> {
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd;
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            if let Ok(pipe) = tokio::net::unix::pipe::OpenOptions::new().open_receiver(path) {
                return Ok(Self::Pipe(pipe));
            }
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::FileTypeExt;
            if file.metadata()?.file_type().is_socket() {
                let socket = std::os::unix::net::UnixStream::from(std::os::fd::OwnedFd::from(file));
                socket.set_nonblocking(true)?;
                return Ok(Self::Socket(tokio::net::UnixStream::from_std(socket)?));
            }
        }
        let (sender, chunks) = mpsc::channel(1);
        thread("stdin").spawn(move || read(file, &sender))?;
        Ok(Self::Thread(chunks))
    }

    /// What comes next, in `buffer`, and how much it is; nothing at the end. Nothing is lost when it is dropped.
    async fn read(&mut self, buffer: &mut Vec<u8>) -> usize {
        // A client that breaks off has ended.
        match self {
            #[cfg(target_os = "linux")]
            Self::Pipe(pipe) => pipe.read(buffer).await.unwrap_or(0),
            #[cfg(unix)]
            Self::Socket(socket) => socket.read(buffer).await.unwrap_or(0),
            Self::Thread(chunks) => {
                let Some(chunk) = chunks.recv().await else { return 0 };
                let count = chunk.len();
                *buffer = chunk;
                count
            }
        }
    }
}

/// Reads for [`StandardInput::Thread`] until the end.
fn read(mut input: File, chunks: &mpsc::Sender<Vec<u8>>) {
    loop {
        let mut chunk = vec![0; CHUNK];
        match input.read(&mut chunk) {
            Ok(0) => return,
            Ok(count) => {
                chunk.truncate(count);
                if chunks.blocking_send(chunk).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Standard output, and how many bytes wait for the thread that writes.
struct StandardOutput {
    file: Mutex<File>,
    waiting: AtomicUsize,
    /// Some of what waited has been written.
    taken: Notify,
}

impl StandardOutput {
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

    /// Writes all of it, however long the client takes.
    fn write(&self, mut line: &[u8]) -> std::io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        while !line.is_empty() {
            match file.write(line) {
                Ok(count) => line = &line[count..],
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // Where input and output are one socket, reading made it so.
                #[cfg(unix)]
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    use rustix::event::{PollFd, PollFlags, poll};
                    poll(&mut [PollFd::new(&*file, PollFlags::OUT)], None)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends when the client has read enough of what it asked for.
    async fn room(&self) {
        while self.waiting.load(Ordering::Acquire) > UNREAD {
            self.taken.notified().await;
        }
    }
}

struct Stdio {
    input: StandardInput,
    buffer: Vec<u8>,
    lines: LineBuffer,
    /// Read, and not yet handed on.
    messages: VecDeque<Incoming>,
    /// Answers of our own that the client had no room for yet.
    replies: VecDeque<Vec<u8>>,
    ended: bool,
    queue: Option<mpsc::Sender<Vec<u8>>>,
    output: Arc<StandardOutput>,
    /// How the client began, once it has.
    opened: Option<Era>,
    /// Answers what is done at once.
    server: Server,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Era {
    /// The client begins with `initialize`.
    Handshake,
    /// With a request that says its version itself, as every one after it (2026-07-28).
    Metadata,
}

impl Stdio {
    /// The next message. Nothing is lost when it is dropped while it waits.
    async fn next(&mut self) -> Option<Incoming> {
        loop {
            while let (false, Some(queue)) = (self.replies.is_empty(), &self.queue) {
                let Ok(place) = queue.reserve().await else { return None };
                if let Some(reply) = self.replies.pop_front() {
                    self.output.waiting.fetch_add(reply.len(), Ordering::AcqRel);
                    place.send(reply);
                }
            }
            if let Some(message) = self.messages.pop_front() {
                return Some(message);
            }
            if self.ended {
                return None;
            }
            self.output.room().await;
            let count = self.input.read(&mut self.buffer).await;
            let mut take = |line: InputLine<'_>| match taken(line) {
                Some(Ok(message)) => self.messages.push_back(message),
                Some(Err(reply)) => self.replies.push_back(reply),
                None => {}
            };
            if count == 0 {
                // The last line may lack its break.
                self.ended = true;
                self.lines.end(&mut take);
                continue;
            }
            self.lines.push(&self.buffer[..count], &mut take);
            // A large message is read in large steps.
            if count == self.buffer.len() && count < 1 << 20 {
                self.buffer.resize(count * 2, 0);
            }
        }
    }

    /// The line that answers a call which is done sooner than handed on, the same as rmcp would write.
    fn answered(&self, call: &ToolCall) -> Option<Vec<u8>> {
        let typed = self.typed(&call.meta)?;
        let mut result = self.server.quick_result(&call.name, &call.arguments)?;
        tracing::debug!(id = %call.id, tool = call.name, "answered where it was read");
        if !typed {
            result.result_type = None;
        }
        let result = ServerResult::CallToolResult(result);
        serialized(&ServerJsonRpcMessage::response(result, call.id.clone())).ok()
    }

    /// Whether an answer says what type of result it is, as 2026-07-28 wants it. `None` where it depends on more than
    /// the request and how the client began: rmcp knows.
    fn typed(&self, meta: &RequestMetaObject) -> Option<bool> {
        match (complete(meta), self.opened?) {
            (Some(version), _) => Some(version.as_str() >= ProtocolVersion::V_2026_07_28.as_str()),
            (None, Era::Handshake) => meta.protocol_version().is_none().then_some(false),
            (None, Era::Metadata) => None,
        }
    }
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
            self.output.waiting.fetch_add(line.len(), Ordering::AcqRel);
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
            let message = match self.next().await? {
                Incoming::Other(message) => *message,
                Incoming::ToolCall(call) => match self.answered(&call) {
                    None => call.message(),
                    Some(line) => {
                        if !self.output.at_once(&line) {
                            self.replies.push_back(line);
                        }
                        // Many of them must not keep the others waiting.
                        tokio::task::consume_budget().await;
                        continue;
                    }
                },
            };
            if self.opened.is_some() {
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

/// The era that a request says it belongs to: the handshake, or one with the metadata of 2026-07-28.
fn opens(request: &ClientRequest) -> Option<Era> {
    match request {
        ClientRequest::InitializeRequest(_) => Some(Era::Handshake),
        ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => None,
        other => complete(other.get_meta()).map(|_| Era::Metadata),
    }
}

/// The version that a request says itself, where it is one we speak and all that goes with it is there.
fn complete(meta: &RequestMetaObject) -> Option<ProtocolVersion> {
    let version = meta.protocol_version().filter(|it| ProtocolVersion::KNOWN_VERSIONS.contains(it))?;
    meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty().then_some(version)
}

fn serialized(message: &ServerJsonRpcMessage) -> std::io::Result<Vec<u8>> {
    let mut line = Vec::with_capacity(512);
    serde_json::to_writer(&mut line, message)?;
    line.push(b'\n');
    Ok(line)
}

fn write(output: &StandardOutput, mut queue: mpsc::Receiver<Vec<u8>>) {
    while let Some(mut line) = queue.blocking_recv() {
        // What else is ready goes in one write.
        while line.len() < CHUNK
            && let Ok(next) = queue.try_recv()
        {
            line.extend_from_slice(&next);
        }
        if output.write(&line).is_err() {
            // The client is gone; its input ends too.
            return;
        }
        output.waiting.fetch_sub(line.len(), Ordering::AcqRel);
        output.taken.notify_one();
    }
}
