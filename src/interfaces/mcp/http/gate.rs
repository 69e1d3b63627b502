//! Checks before the gateway: host and origin as for MCP, and the caller's token if tokens are configured.
//! The token has its own header, since `Authorization` is meant for the provider.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse, Response};

use super::Shared;
use super::guard::{OrRefusal, admitted, bearer_token};
use crate::interfaces::gateway::{Engines, GatewayCaller};
use crate::interfaces::mcp::server::Server;
use crate::interfaces::mcp::server_state::Caller;

/// Carries the caller's token; never passed on to the provider.
const TOKEN: HeaderName = HeaderName::from_static("x-epitome-token");

/// Makes engines that use the server's store.
pub(super) fn engines(server: &Server) -> Engines {
    let state = server.state.clone();
    Arc::new(move |owner| state.engine(&Caller::of(owner)))
}

pub(super) async fn health(State(shared): State<Shared>) -> Response {
    let mut health = serde_json::json!({"status": "ok"});
    if let Some(host) = shared.gateway.host() {
        history::json::set(&mut health, "gateway", host);
    }
    axum::Json(health).into_response()
}

/// Metrics in Prometheus' text format.
pub(super) async fn metrics(State(shared): State<Shared>) -> Response {
    let sessions = shared.sessions.sessions.read().await.len();
    let text = shared.metrics.text(sessions, shared.streams.len());
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

pub(super) async fn handle(
    State(shared): State<Shared>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
) -> Response {
    let response = match caller(&shared, peer, request.headers_mut()).await {
        Ok(caller) => shared.gateway.clone().handle(caller, request).await,
        Err(refusal) => refusal.into_response(),
    };
    shared.metrics.response(response.status().as_u16());
    response
}

async fn caller(shared: &Shared, peer: SocketAddr, headers: &mut HeaderMap) -> OrRefusal<GatewayCaller> {
    let guard = &shared.guard;
    guard.host(headers)?;
    guard.origin(headers)?;
    let token = headers.remove(TOKEN);
    let own_token = token.is_none() && guard.has_tokens();
    let token = match &token {
        Some(it) => it.to_str().ok().map(str::trim),
        None => bearer_token(headers),
    };
    let owner = admitted(shared, peer, token, "expected X-Epitome-Token: TOKEN").await?;
    // Without tokens only this machine can connect: treat the caller as the user of the command line.
    let local = !guard.has_tokens();
    let owner = if local { shared.server.state.config.owner.clone() } else { owner };
    Ok(GatewayCaller { owner, local, own_token })
}
