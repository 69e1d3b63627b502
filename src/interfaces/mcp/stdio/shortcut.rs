//! The shortcut: a call that is faster to execute than to hand on is answered right after reading, without
//! rmcp's tasks and channels.

use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, GetMeta, ProtocolVersion, RequestMetaObject, ServerJsonRpcMessage,
    ServerResult,
};

use super::lines::ToolCall;
use super::serialized;
use crate::interfaces::mcp::server::Server;

pub(super) struct Shortcut {
    server: Server,
    /// The protocol era of the client's first request; `None` before that.
    opened: Option<Era>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Era {
    /// The client begins with `initialize`.
    Handshake,
    /// The client sends its version in every request (2026-07-28).
    Metadata,
}

impl Shortcut {
    pub(super) fn new(server: Server) -> Self {
        Self { server, opened: None }
    }

    /// Whether the client has sent a request, with this message or before. A notification before the first
    /// request is dropped, since rmcp would end the connection.
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

    /// The reply to a call that can be answered at once, exactly as rmcp would write it.
    pub(super) fn answered(&self, call: &ToolCall) -> Option<Vec<u8>> {
        let typed = self.typed(&call.meta)?;
        let mut result = self.server.result_without_thread(&call.name, &call.arguments)?;
        tracing::debug!(id = %call.id, tool = call.name, "answered where it was read");
        if !typed {
            result.result_type = None;
        }
        let result = ServerResult::CallToolResult(result);
        serialized(&ServerJsonRpcMessage::response(result, call.id.clone())).ok()
    }

    /// Whether a result includes its type, as 2026-07-28 requires. `None` if that depends on more than the
    /// request and the client's era: then rmcp decides.
    fn typed(&self, meta: &RequestMetaObject) -> Option<bool> {
        match (complete(meta), self.opened?) {
            (Some(version), _) => Some(version.as_str() >= ProtocolVersion::V_2026_07_28.as_str()),
            (None, Era::Handshake) => meta.protocol_version().is_none().then_some(false),
            (None, Era::Metadata) => None,
        }
    }
}

/// The era that a request shows; `None` if it could be either.
fn era(request: &ClientRequest) -> Option<Era> {
    match request {
        ClientRequest::InitializeRequest(_) => Some(Era::Handshake),
        ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => None,
        other => complete(other.get_meta()).map(|_| Era::Metadata),
    }
}

/// The version in a request's metadata, if we support it and all required metadata is present.
fn complete(meta: &RequestMetaObject) -> Option<ProtocolVersion> {
    let version = meta.protocol_version().filter(|it| ProtocolVersion::KNOWN_VERSIONS.contains(it))?;
    meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty().then_some(version)
}
