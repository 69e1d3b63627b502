//! Splits the input into lines and parses them as messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, RequestId, RequestMetaObject,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::interfaces::mcp::tools::arguments::Arguments;

/// Maximum length of a line, in bytes; a longer one gets an error: the client should pass a file instead.
const MAX_LINE: usize = 128 << 20;
/// How many bytes at each end of a too long line are searched for its id.
const ENDS: usize = 4096;

pub(super) enum Incoming {
    ToolCall(ToolCall),
    Other(Box<ClientJsonRpcMessage>),
}

pub(super) enum InputLine<'a> {
    Whole(&'a [u8]),
    /// A too long line: its first and its last [`ENDS`] bytes.
    TooLong(&'a [u8], &'a [u8]),
}

/// Splits input into lines, buffering at most [`MAX_LINE`] bytes of one.
#[derive(Default)]
pub(super) struct LineBuffer {
    line: Vec<u8>,
    /// The first and last bytes of a too long line.
    too_long: Option<(Vec<u8>, Vec<u8>)>,
}

impl LineBuffer {
    /// Adds bytes, and calls `take` with every line that is now complete.
    pub(super) fn push(&mut self, mut bytes: &[u8], take: &mut dyn FnMut(InputLine<'_>)) {
        while let Some(at) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..at], &bytes[at + 1..]);
            bytes = rest;
            if self.line.is_empty() && self.too_long.is_none() {
                take(InputLine::Whole(line));
            } else {
                self.buffer(line);
                self.end(take);
            }
        }
        self.buffer(bytes);
    }

    /// Ends the current line.
    pub(super) fn end(&mut self, take: &mut dyn FnMut(InputLine<'_>)) {
        match self.too_long.take() {
            Some((first, last)) => take(InputLine::TooLong(&first, &last)),
            None => take(InputLine::Whole(&self.line)),
        }
        if self.line.capacity() > 1 << 20 {
            self.line = Vec::new();
        }
        self.line.clear();
    }

    fn buffer(&mut self, bytes: &[u8]) {
        if let Some((_, last)) = &mut self.too_long {
            last.extend_from_slice(&bytes[bytes.len().saturating_sub(ENDS)..]);
            last.drain(..last.len().saturating_sub(ENDS));
            return;
        }
        self.line.extend_from_slice(bytes);
        if self.line.len() > MAX_LINE {
            let first = self.line[..ENDS].to_vec();
            let last = self.line[self.line.len() - ENDS..].to_vec();
            self.line = Vec::new();
            self.too_long = Some((first, last));
        }
    }
}

/// A line as a message, or the error to reply (`Err`); `None` if nothing is to be done.
pub(super) fn parse_line(line: InputLine<'_>) -> Option<Result<Incoming, Vec<u8>>> {
    let reply = match line {
        InputLine::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => return None,
        InputLine::Whole(line) => match parsed(line) {
            Ok(message) => return Some(Ok(message)),
            Err(None) => return None,
            Err(Some(reply)) => reply,
        },
        InputLine::TooLong(first, last) => {
            let what = format!(
                "expected a message of at most {} MB; pass large histories as a file",
                MAX_LINE >> 20
            );
            error_reply(id_in(first).or_else(|| id_in(last)).unwrap_or(Value::Null), -32600, &what)
        }
    };
    let mut reply = reply.to_string().into_bytes();
    reply.push(b'\n');
    Some(Err(reply))
}

fn error_reply(id: Value, code: i32, what: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": what}})
}

/// A line as a message; or the error to reply, `None` if no reply is expected.
pub(crate) fn message(line: &[u8]) -> Result<ClientJsonRpcMessage, Option<Value>> {
    parsed(line).map(|it| match it {
        Incoming::ToolCall(call) => call.message(),
        Incoming::Other(message) => *message,
    })
}

/// The same, with a tool call not yet converted to rmcp's type.
fn parsed(line: &[u8]) -> Result<Incoming, Option<Value>> {
    if let Some(call) = tool_call(line) {
        return Ok(Incoming::ToolCall(call));
    }
    let text = history::json::mend(line);
    let error = match serde_json::from_str::<ClientJsonRpcMessage>(&text) {
        Ok(message) => return Ok(Incoming::Other(Box::new(message))),
        Err(error) => error,
    };
    match serde_json::from_str::<Value>(&text) {
        Err(_) => Err(Some(error_reply(Value::Null, -32700, &format!("expected a line of JSON: {error}")))),
        Ok(Value::Array(_)) => {
            Err(Some(error_reply(Value::Null, -32600, "expected one message a line, found a batch")))
        }
        Ok(Value::Object(it)) => match it.get("id") {
            Some(id @ (Value::String(_) | Value::Number(_))) => Err(Some(error_reply(
                id.clone(),
                -32600,
                "expected a JSON-RPC 2.0 request, found something else",
            ))),
            Some(_) => {
                Err(Some(error_reply(Value::Null, -32600, "expected an id that is a text or a whole number")))
            }
            // A notification gets no reply.
            None if it.contains_key("method") => Err(None),
            None => Err(Some(error_reply(Value::Null, -32600, "expected a JSON-RPC 2.0 request"))),
        },
        Ok(_) => Err(Some(error_reply(Value::Null, -32600, "expected a JSON-RPC 2.0 request"))),
    }
}

#[derive(Deserialize)]
struct CallLine<'a> {
    jsonrpc: &'a str,
    id: RequestId,
    method: &'a str,
    #[serde(borrow)]
    params: CallParams<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallParams<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<BTreeMap<String, &'a RawValue>>,
    #[serde(rename = "_meta")]
    meta: Option<RequestMetaObject>,
    #[serde(borrow)]
    input_responses: Option<&'a RawValue>,
}

pub(super) struct ToolCall {
    pub(super) id: RequestId,
    pub(super) name: String,
    pub(super) arguments: Arguments,
    pub(super) meta: RequestMetaObject,
}

impl ToolCall {
    pub(super) fn message(self) -> ClientJsonRpcMessage {
        let mut request = CallToolRequest::new(CallToolRequestParams::new(self.name));
        request.extensions.insert(Arc::new(self.arguments));
        request.extensions.insert(self.meta);
        ClientJsonRpcMessage::request(ClientRequest::CallToolRequest(request), self.id)
    }
}

/// Parses a tool call, the frequent and possibly large message, in one go: rmcp's own parser reads it three
/// times. `None` for every other message.
fn tool_call(line: &[u8]) -> Option<ToolCall> {
    let line: CallLine<'_> = serde_json::from_slice(line).ok()?;
    if line.jsonrpc != "2.0" || line.method != "tools/call" || line.params.input_responses.is_some() {
        return None;
    }
    let arguments = line.params.arguments.unwrap_or_default();
    let arguments = Arguments(arguments.into_iter().map(|(name, raw)| (name, raw.to_owned())).collect());
    let meta = line.params.meta.unwrap_or_default();
    Some(ToolCall { id: line.id, name: line.params.name, arguments, meta })
}

/// The first `"id": …` with a text or number in a piece of a message.
fn id_in(piece: &[u8]) -> Option<Value> {
    let at = memchr::memmem::find(piece, b"\"id\"")?;
    let text = String::from_utf8_lossy(&piece[at + 4..]);
    let value = text.trim_start().strip_prefix(':')?.trim_start();
    let end = match value.strip_prefix('"') {
        Some(rest) => rest.find('"')? + 2,
        None => value.find(|it: char| !it.is_ascii_digit() && it != '-')?,
    };
    serde_json::from_str(&value[..end]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::GetMeta;

    fn lines(pieces: &[&[u8]]) -> Vec<String> {
        let mut out = Vec::new();
        let mut lines = LineBuffer::default();
        let mut take = |line: InputLine<'_>| {
            out.push(match line {
                InputLine::Whole(it) => String::from_utf8_lossy(it).into_owned(),
                InputLine::TooLong(first, last) => format!("{}…{}", first.len(), last.len()),
            });
        };
        for piece in pieces {
            lines.push(piece, &mut take);
        }
        lines.end(&mut take);
        out
    }

    #[test]
    fn cuts_lines() {
        assert_eq!(lines(&[b"a\nb", b"c\n", b"d"]), ["a", "bc", "d"]);
        assert_eq!(lines(&[b"\n\n"]), ["", "", ""]);
        let long = vec![b'x'; 1 << 20];
        let mut pieces: Vec<&[u8]> = vec![&long; 130];
        pieces.extend([b"end\n".as_slice(), b"next\n"]);
        assert_eq!(lines(&pieces), ["4096…4096", "next", ""]);
    }

    #[test]
    fn finds_ids() {
        assert_eq!(id_in(br#"{"jsonrpc":"2.0","id": 17,"method""#), Some(json!(17)));
        assert_eq!(id_in(br#"xxx","jsonrpc":"2.0","id":"a-1"}"#), Some(json!("a-1")));
        assert_eq!(id_in(br#"{"id":"cut"#), None);
        assert_eq!(id_in(b"nothing"), None);
    }

    #[test]
    fn reads_calls_like_rmcp() {
        let line = br#"{"method":"tools/call","params":{"_meta":{"progressToken":3,"threadId":"t"},"name":"recall","arguments":{"query":"x"}},"jsonrpc":"2.0","id":5}"#;
        let ClientJsonRpcMessage::Request(fast) = tool_call(line).unwrap().message() else { panic!() };
        let ClientJsonRpcMessage::Request(slow) =
            serde_json::from_slice::<ClientJsonRpcMessage>(line).unwrap()
        else {
            panic!()
        };
        assert_eq!(fast.id, slow.id);
        assert_eq!(fast.request.get_meta(), slow.request.get_meta());
        assert!(tool_call(br#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).is_none());
    }

    #[test]
    fn answers_what_is_no_message() {
        let code = |line: &[u8]| {
            message(line).unwrap_err().map(|it| (it["error"]["code"].as_i64().unwrap(), it["id"].clone()))
        };
        assert_eq!(code(b"{oh"), Some((-32700, Value::Null)));
        assert_eq!(code(b"[]"), Some((-32600, Value::Null)));
        assert_eq!(code(br#"{"jsonrpc":"2.0","id":7}"#), Some((-32600, json!(7))));
        assert_eq!(code(br#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#), Some((-32600, json!("a"))));
        assert_eq!(code(b"7"), Some((-32600, Value::Null)));
    }
}
