//! Sessions as the agents write them, a module an agent.

pub mod claude_code;
pub mod codex;
pub mod gemini_cli;
pub mod opencode;
pub mod pi;
pub mod qwen_code;
pub mod swe_agent;

use history::{Message, Part};

/// A message of another agent, without what only its API understands.
fn foreign(message: &Message) -> Message {
    let mut message = Message { from: None, ..message.clone() };
    message.parts.retain(|it| match it {
        Part::Reasoning(_) | Part::Opaque(_) => false,
        Part::Text(_) | Part::Call(_) | Part::Output(_) | Part::Media(_) => true,
    });
    for part in &mut message.parts {
        if let Part::Call(call) = part {
            call.signature = None;
        }
    }
    message
}
