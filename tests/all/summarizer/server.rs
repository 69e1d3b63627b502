//! A server that does what it is told, byte by byte.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use epitome::compaction::summary::model::{Api, Endpoint, Key};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const KEY: &str = "sk-live-4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c";

/// What is done with a request.
pub(crate) enum Does {
    /// Sends this and closes.
    Sends(Vec<u8>),
    /// Sends this and says nothing more.
    Hangs(Vec<u8>),
    /// Sends this again and again: at once, or a byte at a time.
    Repeats(Vec<u8>, Option<Duration>),
    /// Closes without a word.
    Closes,
}

/// What came in.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: Value,
}

#[derive(Clone, Default)]
pub(crate) struct Log {
    pub(crate) requests: Arc<Mutex<Vec<Request>>>,
    pub(crate) gone: Arc<tokio::sync::Notify>,
    pub(crate) came: Arc<tokio::sync::Notify>,
}

/// Serves until the runtime ends; its address.
pub(crate) async fn serve(does: impl Fn(usize, &Request) -> Does + Send + Sync + 'static) -> (String, Log) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let log = Log::default();
    let (does, shared) = (Arc::new(does), log.clone());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (does, log) = (does.clone(), shared.clone());
            tokio::spawn(async move {
                // Whoever hangs up early is what is being tested.
                let _ = answer(stream, &*does, &log).await;
            });
        }
    });
    (address, log)
}

async fn answer(
    mut stream: TcpStream,
    does: &(dyn Fn(usize, &Request) -> Does + Send + Sync),
    log: &Log,
) -> std::io::Result<()> {
    let Some(request) = read(&mut stream).await? else { return Ok(()) };
    let number = {
        let mut all = log.requests.lock().unwrap();
        all.push(request.clone());
        all.len() - 1
    };
    log.came.notify_one();
    match does(number, &request) {
        Does::Closes => {}
        Does::Sends(bytes) => stream.write_all(&bytes).await?,
        Does::Hangs(bytes) => {
            stream.write_all(&bytes).await?;
            // Ends when the other side does.
            while stream.read(&mut [0; 64]).await.is_ok_and(|it| it > 0) {}
            log.gone.notify_one();
        }
        Does::Repeats(bytes, None) => {
            let block = bytes.repeat(1 + (64 << 10) / bytes.len().max(1));
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
                .await?;
            while stream.write_all(&block).await.is_ok() {}
        }
        Does::Repeats(bytes, Some(pause)) => {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
                .await?;
            let mut tick = tokio::time::interval(pause);
            for byte in bytes.iter().cycle() {
                tick.tick().await;
                stream.write_all(&[*byte]).await?;
            }
        }
    }
    stream.shutdown().await
}

async fn read(stream: &mut TcpStream) -> std::io::Result<Option<Request>> {
    let mut bytes = Vec::new();
    let mut block = vec![0; 64 << 10];
    loop {
        let n = stream.read(&mut block).await?;
        if n == 0 {
            return Ok(None);
        }
        bytes.extend_from_slice(&block[..n]);
        let Some(end) = bytes.windows(4).position(|it| it == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length = head.lines().find_map(|it| {
            it.to_lowercase().strip_prefix("content-length:").map(|it| it.trim().parse::<usize>().unwrap())
        });
        if bytes.len() >= end + 4 + length.unwrap_or(0) {
            let body = serde_json::from_slice(&bytes[end + 4..]).unwrap_or(Value::Null);
            return Ok(Some(Request { head, body }));
        }
    }
}

pub(crate) const APIS: [Api; 4] = [Api::Anthropic, Api::OpenaiResponses, Api::OpenaiChat, Api::Gemini];

pub(crate) fn endpoint(api: Api, base_url: &str) -> Endpoint {
    Endpoint {
        provider: api.name().to_owned(),
        api,
        base_url: base_url.to_owned(),
        model: "model-x".to_owned(),
        key: Some(Key::new(KEY)),
        key_variable: "SOME_API_KEY".to_owned(),
        window: None,
    }
}

pub(crate) fn http(status: &str, kind: &str, more: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n{more}\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// A whole answer in the provider's stream.
pub(crate) fn stream(api: Api, text: &str) -> Vec<u8> {
    http("200 OK", "text/event-stream; charset=utf-8", "", events(api, text).concat().as_bytes())
}

/// The events of an answer, as the providers send them.
pub(crate) fn events(api: Api, text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = chars.chunks(40).map(|it| it.iter().collect()).collect();
    let named = |it: Value| format!("event: {}\ndata: {it}\n\n", it["type"].as_str().unwrap());
    let plain = |it: Value| format!("data: {it}\r\n\r\n");
    let mut out = Vec::new();
    match api {
        Api::Anthropic => {
            out.push(named(json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "model-x-1", "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 90, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 10, "output_tokens": 1}}})));
            out.push(named(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}})));
            out.push(named(json!({"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Let me see"}})));
            out.push(named(json!({"type": "content_block_stop", "index": 0})));
            out.push(named(json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}})));
            out.push(named(json!({"type": "ping"})));
            out.extend(pieces.iter().map(|it| named(json!({"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": it}}))));
            out.push(named(json!({"type": "content_block_stop", "index": 1})));
            out.push(named(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null}, "usage": {"output_tokens": 50}})));
            out.push(named(json!({"type": "message_stop"})));
        }
        Api::OpenaiResponses => {
            out.push(named(json!({"type": "response.created", "sequence_number": 0, "response": {"id": "resp_1", "object": "response", "status": "in_progress", "error": null, "output": []}})));
            out.push(named(json!({"type": "response.output_item.added", "output_index": 0, "item": {"id": "rs_1", "type": "reasoning", "summary": []}})));
            out.push(named(json!({"type": "response.output_item.added", "output_index": 1, "item": {"id": "msg_1", "type": "message", "role": "assistant", "content": []}})));
            out.extend(pieces.iter().map(|it| named(json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 1, "content_index": 0, "delta": it}))));
            out.push(named(json!({"type": "response.output_text.done", "text": text})));
            out.push(named(json!({"type": "response.completed", "response": {"id": "resp_1", "object": "response", "model": "model-x-1", "status": "completed", "error": null, "incomplete_details": null, "output": [], "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 10}, "output_tokens": 50}}})));
        }
        Api::OpenaiChat => {
            let chunk = |delta: Value, why: Value| {
                plain(
                    json!({"id": "c1", "object": "chat.completion.chunk", "model": "model-x-1", "choices": [{"index": 0, "delta": delta, "finish_reason": why}]}),
                )
            };
            out.push(chunk(json!({"role": "assistant", "content": ""}), Value::Null));
            out.extend(pieces.iter().map(|it| chunk(json!({"content": it}), Value::Null)));
            out.push(chunk(json!({}), json!("stop")));
            out.push(plain(json!({"id": "c1", "object": "chat.completion.chunk", "model": "model-x-1", "choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 50, "prompt_tokens_details": {"cached_tokens": 10}}})));
            out.push("data: [DONE]\n\n".to_owned());
        }
        Api::Gemini => {
            let chunk = |parts: Value, why: Option<&str>| {
                let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
                if let Some(why) = why {
                    candidate["finishReason"] = json!(why);
                }
                plain(
                    json!({"candidates": [candidate], "modelVersion": "model-x-1", "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 40, "thoughtsTokenCount": 10, "cachedContentTokenCount": 10}}),
                )
            };
            out.push(chunk(json!([{"text": "Let me see", "thought": true}]), None));
            out.extend(pieces.iter().map(|it| chunk(json!([{"text": it}]), None)));
            out.push(chunk(json!([{"text": ""}]), Some("STOP")));
        }
    }
    out
}

/// An error as the provider words it.
pub(crate) fn refusal(api: Api, status: u16) -> Vec<u8> {
    let reason = "it says no";
    let body = match api {
        Api::Anthropic => json!({"type": "error", "error": {"type": "some_error", "message": reason}}),
        Api::OpenaiResponses | Api::OpenaiChat => {
            json!({"error": {"message": reason, "type": "some_error", "param": null, "code": null}})
        }
        Api::Gemini => json!({"error": {"code": status, "message": reason, "status": "SOME"}}),
    };
    http(&format!("{status} No"), "application/json", "", body.to_string().as_bytes())
}

/// The provider's own way to say that the input is too long.
pub(crate) fn overflow(api: Api, sent: u64, limit: u64) -> Vec<u8> {
    let body = match api {
        Api::Anthropic => {
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": format!("prompt is too long: {sent} tokens > {limit} maximum")}})
        }
        Api::OpenaiResponses => {
            json!({"error": {"message": "Your input exceeds the context window of this model. Please adjust your input and try again.", "type": "invalid_request_error", "param": "input", "code": "context_length_exceeded"}})
        }
        Api::OpenaiChat => {
            json!({"error": {"message": format!("This model's maximum context length is {limit} tokens. However, your messages resulted in {sent} tokens. Please reduce the length of the messages."), "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}})
        }
        Api::Gemini => {
            json!({"error": {"code": 400, "message": format!("The input token count ({sent}) exceeds the maximum number of tokens allowed ({limit})."), "status": "INVALID_ARGUMENT"}})
        }
    };
    http("400 Bad Request", "application/json", "", body.to_string().as_bytes())
}
