//! Commands about the archive, memories, and the team's server.

pub(super) mod keep;
pub(super) mod memory;
pub(super) mod push;
pub(super) mod recall;
