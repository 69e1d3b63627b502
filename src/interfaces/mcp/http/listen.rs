//! Accepts connections: a bounded number at once, with time limits that axum's own server loop lacks.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A request's headers must arrive within this time.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// A client that reads nothing for this long is disconnected.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum connections at once, if the descriptor limit allows.
const MAX_CONNECTIONS: usize = 2_048;
/// File descriptors reserved for everything else.
const RESERVED: usize = 64;
/// Listen backlog. The usual 128 is too small for many clients at once: a client that finds it full retries
/// only after a second.
const BACKLOG: u32 = 1_024;

pub(super) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Allows an immediate restart. On Windows the same option would let other programs share the address.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until `stop`; then running requests have `grace` to finish. `passes_on` (gateway): header names keep
/// their case, and no `Date` is added to responses.
pub(super) async fn accept(
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
    grace: Duration,
    passes_on: bool,
) {
    let slots = Arc::new(Semaphore::new(max_connections()));
    let open = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            // Out of descriptors, or the client has disconnected: keep accepting.
            Err(_) => {
                sleep(Duration::from_millis(20)).await;
                continue;
            }
        };
        match slots.clone().try_acquire_owned() {
            Ok(slot) => {
                let connection = connection(stream, peer, router.clone(), stop.clone(), passes_on);
                open.spawn(async move {
                    connection.await;
                    drop(slot);
                });
            }
            Err(_) => refuse(stream),
        }
    }
    drop(listener);
    open.close();
    // Connections still open after that end with the process.
    let _ = tokio::time::timeout(grace, open.wait()).await;
}

/// How many connections the descriptor limit allows.
fn max_connections() -> usize {
    // Without `unsafe`, the limit can only be read from `/proc`.
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find(|it| it.starts_with("Max open files"));
    let limit = line.and_then(|it| it.split_whitespace().nth(3)?.parse::<usize>().ok());
    // Elsewhere assume a common default (macOS: 256).
    limit.unwrap_or(256).saturating_sub(RESERVED).clamp(16, MAX_CONNECTIONS)
}

async fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    stop: CancellationToken,
    passes_on: bool,
) {
    // Without it, a response in two packets waits 40 ms for the other side's acknowledgement.
    let _ = stream.set_nodelay(true);
    let router = router.layer(axum::Extension(ConnectInfo(peer)));
    let service = TowerToHyperService::new(router);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(64 * 1024);
    builder.preserve_header_case(passes_on).auto_date_header(!passes_on);
    let connection = builder.serve_connection(TokioIo::new(WriteTimeoutStream::new(stream)), service);
    tokio::pin!(connection);
    tokio::select! {
        // A client that disconnects is not an error.
        _ = connection.as_mut() => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Replies 503. The response fits the socket's empty buffer, so the descriptor is released at once.
fn refuse(stream: TcpStream) {
    const ANSWER: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    // Not tokio's `try_write`, which needs readiness first. Errors are ignored: the client is gone.
    let _ = stream.into_std().and_then(|mut it| it.write_all(ANSWER));
}

/// A connection whose writes time out after [`WRITE_TIMEOUT`].
struct WriteTimeoutStream {
    stream: TcpStream,
    /// Deadline of the pending write.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl WriteTimeoutStream {
    fn new(stream: TcpStream) -> Self {
        Self { stream, stalled: None }
    }

    fn wait<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stalled =
            self.stalled.get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + WRITE_TIMEOUT)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for WriteTimeoutStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for WriteTimeoutStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wait(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.wait(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
