//! The shortcut: a call that is done sooner than handed on is answered where it was read, without a round through
//! rmcp's tasks and channels.

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetMeta, ProtocolVersion, RequestMetaObject, ServerJsonRpcMessage,
    ServerResult,
};

use super::lines::ToolCall;
use super::serialized;
use crate::mcp::server::Server;

pub(super) struct Shortcut {
    server: Server,
    /// How the client began, once it has.
    opened: Option<Era>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Era {
    /// The client begins with `initialize`.
    Handshake,
    /// With a request that says its version itself, as every one after it (2026-07-28).
    Metadata,
}

impl Shortcut {
    pub(super) fn new(server: Server) -> Self {
        Self { server, opened: None }
    }

    /// Whether the client has begun by a message, or had before. Before that rmcp takes anything but a request for the
    /// end.
    pub(super) fn has_begun(&mut self, message: &ClientJsonRpcMessage) -> bool {
        match (self.opened, message) {
            (Some(_), _) => true,
            (None, ClientJsonRpcMessage::Request(message)) => {
                self.opened = era(&message.request);
                true
            }
            (None, _) => false,
        }
    }

    /// The line that answers a call which is done at once, the same as rmcp would write.
    pub(super) fn answered(&self, call: &ToolCall) -> Option<Vec<u8>> {
        let typed = self.typed(&call.meta)?;
        let mut result = self.server.quick_result(&call.name, &call.arguments)?;
        tracing::debug!(id = %call.id, tool = call.name, "answered where it was read");
        if !typed {
            result.result_type = None;
        }
        let result = ServerResult::CallToolResult(result);
        serialized(&ServerJsonRpcMessage::response(result, call.id.clone())).ok()
    }

    /// Whether an answer says what type of result it is, as 2026-07-28 wants it. `None` where it depends on more than
    /// the request and how the client began: rmcp knows.
    fn typed(&self, meta: &RequestMetaObject) -> Option<bool> {
        match (complete(meta), self.opened?) {
            (Some(version), _) => Some(version.as_str() >= ProtocolVersion::V_2026_07_28.as_str()),
            (None, Era::Handshake) => meta.protocol_version().is_none().then_some(false),
            (None, Era::Metadata) => None,
        }
    }
}

/// The era that a request says it belongs to: the handshake, or one with the metadata of 2026-07-28.
fn era(request: &ClientRequest) -> Option<Era> {
    match request {
        ClientRequest::InitializeRequest(_) => Some(Era::Handshake),
        ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => None,
        other => complete(other.get_meta()).map(|_| Era::Metadata),
    }
}

/// The version that a request says itself, where it is one we speak and all that goes with it is there.
fn complete(meta: &RequestMetaObject) -> Option<ProtocolVersion> {
    let version = meta.protocol_version().filter(|it| ProtocolVersion::KNOWN_VERSIONS.contains(it))?;
    meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty().then_some(version)
}
