//! Sessions as the agents write them, a module an agent.

pub mod claude_code;
pub mod codex;
pub mod gemini_cli;
pub mod opencode;
pub mod pi;
pub mod qwen_code;
pub mod swe_agent;
