//! `PUT /sessions`: stores a caller's history; the handle it returns is a `session` for the tools.

use axum::Extension;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::Shared;
use crate::answers::CONTRACT;
use crate::mcp::desk::{Caller, Desk};
use crate::store::{Batch, Body, Original, SessionRef, What};
use history::error::{Error, Kind, Result};
use sessions::{self, Memory};

pub(super) async fn store(
    State(shared): State<Shared>,
    Extension(caller): Extension<Caller>,
    bytes: Bytes,
) -> Response {
    let desk = shared.server.desk.clone();
    let stored = tokio::task::spawn_blocking(move || put(&desk, &caller, &bytes)).await;
    let (status, answer) = match stored {
        Ok(Ok(answer)) => (StatusCode::CREATED, answer),
        Ok(Err(error)) => {
            let status = match error.kind() {
                Kind::Input | Kind::Arguments => StatusCode::UNPROCESSABLE_ENTITY,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            };
            (status, json!({"error": {"code": error.code(), "message": error.full()}}))
        }
        Err(_) => {
            let what = "storing this history ran into a bug of epitome";
            (StatusCode::INTERNAL_SERVER_ERROR, json!({"error": {"code": "bug", "message": what}}))
        }
    };
    (status, Json(answer)).into_response()
}

fn put(desk: &Desk, caller: &Caller, bytes: &[u8]) -> Result<Value> {
    let session = sessions::read(&Memory::new("the history", bytes), None)?;
    let meta = &session.history.meta;
    let text = |it: &Option<std::sync::Arc<str>>| it.as_deref().unwrap_or_default().to_owned();
    let original = Original {
        what: What::Session,
        body: Body::Bytes(bytes),
        message: None,
        call_id: None,
        tool: None,
        tokens: 0,
    };
    let batch = Batch {
        session: SessionRef {
            agent: text(&meta.agent),
            id: text(&meta.session),
            path: None,
            format: session.format.name().to_owned(),
        },
        at: desk.now(),
        originals: vec![original],
        compaction: None,
    };
    let stored = desk.engine(caller)?.store.put_all(&desk.scope(caller), &batch)?;
    let handle = stored
        .handles
        .first()
        .ok_or_else(|| Error::new(Kind::Bug, "storing a history: expected its handle"))?;
    Ok(json!({
        "contract": CONTRACT,
        "handle": handle.as_str(),
        "format": session.format.name(),
        "messages": session.history.messages().len(),
        "bytes": bytes.len(),
    }))
}
