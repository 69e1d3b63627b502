//! Counts for Prometheus, as they are asked for.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use super::Shared;

pub(super) async fn show(State(shared): State<Shared>) -> Response {
    let sessions = shared.sessions.sessions.read().await.len();
    let text = shared.metrics.text(sessions, shared.streams.len());
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}
