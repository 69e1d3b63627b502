//! Commands that agents call, not people.

pub(super) mod hook;
pub(super) mod seat;
pub(super) mod serve;
pub(super) mod statusline;
