//! Sampling: the client's own model writes the summary, in one call instead of two. The protocol 2026-07-28
//! has no requests from server to client; there the first call returns the prompt for the summary.
#![allow(deprecated, reason = "SEP-2577 deprecates sampling; clients of today offer it all the same")]

use std::sync::Arc;

use rmcp::Peer;
use rmcp::model::{
    ContextInclusion, CreateMessageRequestParams, CreateMessageResult, Role, SamplingMessage,
    SamplingMessageContentBlock,
};
use rmcp::service::RoleServer;

use crate::llm::run::Sampling;
use compaction::summary::failure::{Failure, FailureCause};
use compaction::summary::model::{ModelRequest, Reply, Speaker, StopReason};

/// Access to the client's model, if the client supports sampling.
pub(super) fn offered(peer: &Peer<RoleServer>) -> Option<Sampling> {
    peer.peer_info()?.capabilities.sampling.as_ref()?;
    let peer = peer.clone();
    Some(Sampling(Arc::new(move |ask: &ModelRequest| {
        let (peer, asked) = (peer.clone(), params(ask));
        Box::pin(async move {
            match peer.create_message(asked).await {
                Ok(answer) => Ok(reply(&answer)),
                // The user may have declined; asking again would only annoy.
                Err(error) => {
                    Err(Failure::new(FailureCause::Forbidden, format!("the client did not sample: {error}")))
                }
            }
        })
    })))
}

fn params(ask: &ModelRequest) -> CreateMessageRequestParams {
    let message = |turn: &compaction::summary::model::Turn| {
        let role = match turn.speaker {
            Speaker::Us => Role::User,
            Speaker::Model => Role::Assistant,
        };
        SamplingMessage::new(role, SamplingMessageContentBlock::text(&turn.text))
    };
    let most = u32::try_from(ask.max_output).unwrap_or(u32::MAX);
    let mut out = CreateMessageRequestParams::new(ask.turns.iter().map(message).collect(), most);
    out.system_prompt = Some(ask.system.clone());
    out.include_context = Some(ContextInclusion::None);
    out
}

fn reply(answer: &CreateMessageResult) -> Reply {
    let text: Vec<&str> = answer
        .message
        .content
        .iter()
        .filter_map(|it| match it {
            SamplingMessageContentBlock::Text(it) => Some(it.text.as_str()),
            _ => None,
        })
        .collect();
    let stop = match answer.stop_reason.as_deref() {
        Some(CreateMessageResult::STOP_REASON_END_MAX_TOKEN) => StopReason::Length,
        Some(CreateMessageResult::STOP_REASON_TOOL_USE) => StopReason::ToolCall,
        Some(_) | None => StopReason::End,
    };
    Reply { text: text.join("\n"), stop, model: Some(answer.model.clone()), ..Reply::default() }
}
