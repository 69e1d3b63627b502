//! Commands that carry a session to another machine or agent.

pub(super) mod carry;
pub(super) mod handoff;
