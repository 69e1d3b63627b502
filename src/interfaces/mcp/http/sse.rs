//! HTTP+SSE, the predecessor of streamable HTTP, for older clients: a stream of events, and a path to post
//! messages to.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use futures_util::stream;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage, serve_server_with_ct};
use rmcp::transport::Transport;
use rmcp::transport::common::server_side_http::session_id;
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{MAX_SESSIONS, Shared};
use crate::interfaces::mcp::server_state::Caller;
use crate::interfaces::mcp::stdio;

/// Maximum events waiting for a client to read them.
const QUEUE: usize = 32;

pub(super) struct Streams {
    open: Mutex<HashMap<Arc<str>, Stream>>,
    stop: CancellationToken,
}

struct Stream {
    owner: String,
    incoming: mpsc::Sender<ClientJsonRpcMessage>,
}

impl Streams {
    pub(super) fn new(stop: CancellationToken) -> Self {
        Self { open: Mutex::default(), stop }
    }

    pub(super) fn len(&self) -> usize {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// Removes a stream when its client disconnects.
struct Closing {
    id: Arc<str>,
    streams: Arc<Streams>,
    _work: DropGuard,
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.streams.open.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// `GET /sse`.
pub(super) async fn open(State(shared): State<Shared>, Extension(caller): Extension<Caller>) -> Response {
    let id = session_id();
    let (incoming, messages) = mpsc::channel(QUEUE);
    {
        let mut open = shared.streams.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= MAX_SESSIONS {
            return (StatusCode::SERVICE_UNAVAILABLE, [("Retry-After", "1")], "too many streams are open")
                .into_response();
        }
        open.insert(id.clone(), Stream { owner: caller.owner, incoming });
    }
    let (outgoing, events) = mpsc::channel(QUEUE);
    let work = shared.streams.stop.child_token();
    let closing =
        Closing { id: id.clone(), streams: shared.streams.clone(), _work: work.clone().drop_guard() };
    let transport = Channel { incoming: messages, outgoing: Some(outgoing) };
    let server = shared.server;
    tokio::spawn(async move {
        // A client that disconnects during the handshake is not an error.
        if let Ok(running) = serve_server_with_ct(server, transport, work).await {
            let _ = running.waiting().await;
        }
    });
    let first = Event::default().event("endpoint").data(format!("/messages?sessionId={id}"));
    let events = stream::unfold((events, closing), |(mut events, closing)| async move {
        let line: String = events.recv().await?;
        Some((Event::default().event("message").data(line), (events, closing)))
    });
    let all = stream::once(async move { first }).chain(events).map(Ok::<_, Infallible>);
    Sse::new(all).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))).into_response()
}

#[derive(Deserialize)]
pub(super) struct To {
    #[serde(rename = "sessionId")]
    session: String,
}

/// `POST /messages?sessionId=…`.
pub(super) async fn message(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Query(to): Query<To>,
    body: Bytes,
) -> Response {
    let incoming = {
        let open = shared.streams.open.lock().unwrap_or_else(PoisonError::into_inner);
        // Another caller's stream is treated as not open.
        open.get(to.session.as_str()).filter(|it| it.owner == caller.owner).map(|it| it.incoming.clone())
    };
    let Some(incoming) = incoming else {
        return (StatusCode::NOT_FOUND, "this stream is not open; GET /sse opens one").into_response();
    };
    let mut message = match stdio::lines::message(&body) {
        Ok(message) => message,
        Err(Some(error)) => return (StatusCode::BAD_REQUEST, axum::Json(error)).into_response(),
        Err(None) => return StatusCode::ACCEPTED.into_response(),
    };
    if let ClientJsonRpcMessage::Request(request) = &mut message {
        request.request.extensions_mut().insert(caller);
    }
    match incoming.send(message).await {
        Ok(()) => StatusCode::ACCEPTED.into_response(),
        Err(_) => (StatusCode::GONE, "this stream has ended").into_response(),
    }
}

/// The two directions of a stream.
struct Channel {
    incoming: mpsc::Receiver<ClientJsonRpcMessage>,
    outgoing: Option<mpsc::Sender<String>>,
}

impl Transport<RoleServer> for Channel {
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        let line = serde_json::to_string(&message);
        async move {
            let gone = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
            outgoing.ok_or_else(gone)?.send(line?).await.map_err(|_| gone())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.outgoing = None;
        Ok(())
    }
}
