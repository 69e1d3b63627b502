//! `PUT /sessions`: stores a caller's history; the returned handle can be passed to the tools as `session`.
//! `epitome push` also names the session: `?session=ID&project=PATH&at=MILLISECONDS`. A named one is stored
//! even if it cannot be parsed.

use axum::Extension;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Shared;
use crate::answers::AnswerDocument;
use crate::interfaces::mcp::server_state::{Caller, ServerState};
use crate::store::{AuditVerb, Batch, Body, Original, SessionOrigin};
use history::History;
use history::error::{Error, ErrorKind, Result};
use sessions::{self, MemorySource};

/// Query parameters of a push.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pushed {
    session: Option<String>,
    project: Option<String>,
    at: Option<i64>,
}

pub(super) async fn store(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    Query(pushed): Query<Pushed>,
    bytes: Bytes,
) -> Response {
    let state = shared.server.state.clone();
    let stored = tokio::task::spawn_blocking(move || put(&state, &caller, &pushed, &bytes)).await;
    let (status, answer) = match stored {
        Ok(Ok(answer)) => (StatusCode::CREATED, json!(AnswerDocument::of(&answer))),
        Ok(Err(error)) => {
            let status = match error.kind() {
                ErrorKind::Input | ErrorKind::Arguments => StatusCode::UNPROCESSABLE_ENTITY,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            };
            (status, json!({"error": {"code": error.code(), "message": error.full()}}))
        }
        Err(_) => {
            let what = "storing this history ran into a bug in Epitome";
            (StatusCode::INTERNAL_SERVER_ERROR, json!({"error": {"code": "bug", "message": what}}))
        }
    };
    (status, Json(answer)).into_response()
}

fn put(state: &ServerState, caller: &Caller, pushed: &Pushed, bytes: &[u8]) -> Result<Value> {
    let read = sessions::read(&MemorySource::new("the history", bytes), None);
    let (history, format) = match (read, &pushed.session) {
        (Ok(session), _) => (session.history, session.format.name()),
        (Err(_), Some(_)) => (History::default(), ""),
        (Err(error), None) => return Err(error),
    };
    let meta = &history.meta;
    let text = |it: &Option<std::sync::Arc<str>>| it.as_deref().unwrap_or_default().to_owned();
    let mut scope = state.scope(caller);
    scope.project = pushed.project.clone().unwrap_or(scope.project);
    let original = Original::session(Body::Bytes(bytes), 0);
    let batch = Batch {
        session: SessionOrigin {
            agent: text(&meta.agent),
            id: pushed.session.clone().unwrap_or_else(|| text(&meta.session)),
            path: None,
            format: format.to_owned(),
        },
        at: pushed.at.unwrap_or_else(|| state.now()),
        originals: vec![original],
        compaction: None,
    };
    let engine = state.engine(caller)?;
    let stored = engine.store.put_all(&scope, &batch)?;
    let handle = stored
        .handles
        .first()
        .ok_or_else(|| Error::new(ErrorKind::Bug, "storing a history: expected its handle"))?;
    engine.audit(AuditVerb::Store, &scope, Some(&batch.session.id), Some(handle.as_str()));
    Ok(json!({
        "handle": handle.as_str(),
        "format": format,
        "messages": history.messages().len(),
        "bytes": bytes.len(),
    }))
}
