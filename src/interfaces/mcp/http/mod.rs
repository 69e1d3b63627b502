//! MCP over HTTP: streamable HTTP at `/mcp` (with sessions for the older protocol, without for 2026-07-28),
//! HTTP+SSE at `/sse` for older clients, histories at `PUT /sessions`, `/health` and `/metrics`. Every other
//! path goes to the gateway ([`crate::interfaces::gateway`]).
//!
//! **Invariants.** Except `/health`, every request passes [`guard`]: host, origin, size, token, rate. Beyond
//! this machine a token is required. Everything a client can occupy is bounded: connections, sessions,
//! bodies, the time to send a request and to read its response. Terminate TLS in a reverse proxy.

mod gate;
mod guard;
mod histories;
mod listen;
mod sse;
mod tokens;

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post, put};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::metrics::Metrics;
use super::server::Server;
use super::server_state::{Remote, ServerState};
use crate::config::Config;
use crate::interfaces::gateway::Gateway;
use crate::store::StoreAt;
use guard::Guard;
use history::error::{Error, ErrorKind, Result};
use sse::Streams;
use tokens::TokenFile;

/// Maximum request body, in bytes; larger histories can be read from files below `--allow-root`.
const MAX_BODY: usize = 64 << 20;
/// Maximum bytes of all bodies held at the same time.
const ALL_BODIES: usize = 128 << 20;
/// Maximum open sessions of the older protocol; idle ones end after five minutes.
const MAX_SESSIONS: usize = 1_000;
/// How long running requests may delay the end of the process.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);

/// How the server can be reached.
#[derive(Debug, Clone, Default)]
pub struct HttpOptions {
    /// `host:port`; port 0 for any.
    pub address: String,
    /// Who may call: one `name:token` per line.
    pub token_file: Option<PathBuf>,
    /// Sessions below these folders may be read.
    pub roots: Vec<PathBuf>,
    /// Host names accepted in requests, besides this machine's own.
    pub hosts: Vec<String>,
    /// The provider to which the gateway forwards all other paths.
    pub upstream: Option<String>,
}

#[derive(Clone)]
struct Shared {
    server: Server,
    guard: Arc<Guard>,
    sessions: Arc<LocalSessionManager>,
    streams: Arc<Streams>,
    metrics: Arc<Metrics>,
    gateway: Arc<Gateway>,
}

/// Serves until a signal comes. `now`: replaces the clock, in ms since 1970. `ready` gets the bound address.
pub fn serve(
    config: Config,
    now: Option<i64>,
    http: &HttpOptions,
    ready: impl FnOnce(SocketAddr),
) -> Result<()> {
    serve_with(config, now, http, ready, Server::clone)
}

/// The same with another handler, made from ours, so that the MCP conformance suite can add its tools.
pub fn serve_with<H: ServerHandler + Clone>(
    config: Config,
    now: Option<i64>,
    http: &HttpOptions,
    ready: impl FnOnce(SocketAddr),
    handler: impl FnOnce(&Server) -> H,
) -> Result<()> {
    let address = resolve(&http.address)?;
    let tokens = http.token_file.as_ref().map(|it| TokenFile::open(it)).transpose()?;
    if !address.ip().is_loopback() && tokens.is_none() {
        let what = format!(
            "--http {}: expected --token-file, since other machines can connect, found none; a line is name:token, \
             with a token of at least {} characters",
            http.address,
            tokens::SHORTEST
        );
        return Err(Error::new(ErrorKind::Arguments, what));
    }
    let roots = http.roots.iter().map(|it| resolved_root(it)).collect::<Result<_>>()?;
    let folder = config.data_dir.clone();
    let server = Server::new(ServerState::new(config, now, Some(Remote { roots })));
    // Fail now, not at the first call, if a team's store cannot be reached.
    if let StoreAt::Team(_) = server.state.config.store {
        server.state.store()?;
    }
    let gateway = Gateway::new(http.upstream.as_deref(), folder, gate::engines(&server))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(32)
        .build()
        .map_err(|error| Error::new(ErrorKind::Io, "starting the server").because(error))?;
    let served = runtime.block_on(async {
        let listener = listen::bind(address)
            .map_err(|error| Error::new(ErrorKind::Io, format!("listening on {address}")).because(error))?;
        let bound =
            listener.local_addr().map_err(|error| Error::new(ErrorKind::Io, "listening").because(error))?;
        let stop = CancellationToken::new();
        let guard = Guard::new(bound, &http.hosts, tokens);
        let handler = handler(&server);
        let passes_on = http.upstream.is_some();
        let router = router(server, handler, guard, gateway, &stop);
        ready(bound);
        let ending = stop.clone();
        tokio::spawn(async move {
            super::signal().await;
            ending.cancel();
        });
        listen::accept(listener, router, stop, SHUTDOWN_GRACE, passes_on).await;
        Ok(())
    });
    runtime.shutdown_background();
    served
}

fn resolve(address: &str) -> Result<SocketAddr> {
    let wrong = || {
        let what = format!("--http: expected an address such as 127.0.0.1:8765, found {address:?}");
        Error::new(ErrorKind::Arguments, what)
    };
    let found = address.to_socket_addrs().map_err(|error| wrong().because(error))?.next();
    found.ok_or_else(wrong)
}

fn resolved_root(root: &std::path::Path) -> Result<PathBuf> {
    let found = std::fs::canonicalize(root).map_err(|error| {
        Error::new(ErrorKind::Arguments, "--allow-root: expected a folder").at_path(root).because(error)
    })?;
    if found.is_dir() {
        return Ok(found);
    }
    Err(Error::new(ErrorKind::Arguments, "--allow-root: expected a folder, found a file").at_path(root))
}

fn router<H: ServerHandler + Clone>(
    server: Server,
    handler: H,
    guard: Guard,
    gateway: Gateway,
    stop: &CancellationToken,
) -> Router {
    let sessions = Arc::new(LocalSessionManager::default());
    // The guard has already checked host, origin and size.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(true)
        .with_json_response(true)
        .disable_allowed_hosts()
        .with_max_request_body_bytes(MAX_BODY)
        .with_cancellation_token(stop.child_token());
    let mcp = StreamableHttpService::new(move || Ok(handler.clone()), sessions.clone(), config);
    let shared = Shared {
        metrics: server.state.metrics.clone(),
        server,
        guard: Arc::new(guard),
        sessions,
        streams: Arc::new(Streams::new(stop.clone())),
        gateway: Arc::new(gateway),
    };
    Router::new()
        .route_service("/mcp", mcp)
        .route("/sse", get(sse::open))
        .route("/messages", post(sse::message))
        .route("/sessions", put(histories::store))
        .route("/metrics", get(gate::metrics))
        .layer(axum::middleware::from_fn_with_state(shared.clone(), guard::check))
        .route("/health", get(gate::health))
        .fallback(gate::handle)
        .with_state(shared)
}
