//! The response to a compaction request, in the form that was asked for: the parts of the Responses API that
//! Codex 0.169 needs.

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Response, StatusCode};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::recognize::{AskedBy, message};
use crate::engine::ItemsDone;
use sessions::Format;

pub struct CompactedReply {
    pub done: ItemsDone,
    /// The summary as a capsule, if the request was a [`AskedBy::Trigger`].
    pub capsule: Option<String>,
    /// Seconds since 1970.
    pub at: i64,
    /// The model named in the request.
    pub model: Option<String>,
}

pub fn response(asked: AskedBy, stream: bool, reply: &CompactedReply) -> Response<Body> {
    let text = &reply.done.text;
    let id = id(text);
    if let Some(messages) = &reply.done.messages {
        return listed(asked, &id, messages, reply);
    }
    let item = match (asked, &reply.capsule) {
        (AskedBy::Trigger, Some(capsule)) => {
            json!({"type": "compaction", "id": format!("cmp_{id}"), "encrypted_content": capsule})
        }
        (AskedBy::Compact(_), _) => message(text),
        (AskedBy::Prompt | AskedBy::Trigger, _) => {
            let part = json!({"type": "output_text", "text": text, "annotations": []});
            json!({"type": "message", "role": "assistant", "id": format!("msg_{id}"), "status": "completed", "content": [part]})
        }
    };
    // Zero, since no model was called.
    let usage = json!({"input_tokens": 0, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 0});
    let compact = matches!(asked, AskedBy::Compact(_));
    let object = if compact { "response.compaction" } else { "response" };
    let document = json!({"id": format!("resp_{id}"), "object": object, "created_at": reply.at, "status": "completed",
        "model": reply.model, "output": [item], "usage": usage});
    if stream && !compact {
        return body("text/event-stream", events(&document));
    }
    body("application/json", document.to_string())
}

/// The response of another API: the messages that replace those in the request.
fn listed(asked: AskedBy, id: &str, messages: &[u8], reply: &CompactedReply) -> Response<Body> {
    let messages: Value = serde_json::from_slice(messages).unwrap_or_default();
    let document = match asked {
        AskedBy::Compact(api) if api == Format::ANTHROPIC => {
            json!({"id": format!("cmp_{id}"), "type": "compaction", "model": reply.model,
            "messages": messages, "usage": {"input_tokens": 0, "output_tokens": 0}})
        }
        AskedBy::Compact(_) | AskedBy::Prompt | AskedBy::Trigger => {
            json!({"id": format!("cmp_{id}"), "object": "chat.compaction",
            "created": reply.at, "model": reply.model, "messages": messages,
            "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}})
        }
    };
    body("application/json", document.to_string())
}

fn events(document: &Value) -> String {
    let begun = json!({"id": document["id"], "object": document["object"], "created_at": document["created_at"],
        "status": "in_progress", "model": document["model"], "output": []});
    let all = [
        json!({"type": "response.created", "sequence_number": 0, "response": begun}),
        json!({"type": "response.output_item.done", "sequence_number": 1, "output_index": 0, "item": document["output"][0]}),
        json!({"type": "response.completed", "sequence_number": 2, "response": document}),
    ];
    let event = |it: &Value| format!("event: {}\ndata: {it}\n\n", it["type"].as_str().unwrap_or_default());
    all.iter().map(event).collect()
}

fn body(kind: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An error in the API's own form.
pub fn error(status: StatusCode, kind: &str, what: &str) -> Response<Body> {
    let error =
        json!({"error": {"type": kind, "code": kind, "message": format!("Epitome: {what}"), "param": null}});
    let mut response = body("application/json", error.to_string());
    *response.status_mut() = status;
    response
}

/// An id derived from the text, so the same reply has the same id.
fn id(text: &str) -> String {
    sessions::derive::hex(&digest(&SHA256, text.as_bytes()).as_ref()[..12])
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn text(response: Response<Body>) -> String {
        let bytes = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    fn reply(capsule: bool) -> CompactedReply {
        CompactedReply {
            done: ItemsDone { text: "S\n\u{2028}".into(), messages: None, tokens: (0, 0), handle: None },
            capsule: capsule.then(|| "EPITOME1.x".into()),
            at: 7,
            model: None,
        }
    }

    #[tokio::test]
    async fn each_is_answered_as_it_asked() {
        let local = text(response(AskedBy::Prompt, true, &reply(false))).await;
        let data: Vec<Value> = local
            .lines()
            .filter_map(|it| it.strip_prefix("data: "))
            .map(|it| serde_json::from_str(it).unwrap())
            .collect();
        let names: Vec<_> = data.iter().map(|it| it["type"].as_str().unwrap()).collect();
        assert_eq!(names, ["response.created", "response.output_item.done", "response.completed"]);
        assert_eq!(data[1]["item"]["content"][0]["text"], "S\n\u{2028}");
        assert_eq!(data[2]["response"]["output"][0], data[1]["item"]);
        let remote = text(response(AskedBy::Trigger, true, &reply(true))).await;
        assert_eq!(remote.matches("EPITOME1.x").count(), 2);
        assert!(!remote.contains("output_text"));
        let document: Value =
            serde_json::from_str(&text(response(AskedBy::Trigger, false, &reply(true))).await).unwrap();
        assert_eq!(document["output"][0]["encrypted_content"], "EPITOME1.x");
        let items: Value = serde_json::from_str(
            &text(response(AskedBy::Compact(Format::OPENAI_RESPONSES), true, &reply(false))).await,
        )
        .unwrap();
        assert_eq!(items["object"], "response.compaction");
        assert_eq!(items["output"], json!([message("S\n\u{2028}")]));
    }
}
