//! Commands that write a session, or prepare to, and those that undo it.

pub(super) mod apply;
pub(super) mod compact;
pub(super) mod prune;
pub(super) mod repair;
pub(super) mod restore;
pub(super) mod watch;
