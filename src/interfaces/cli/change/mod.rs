//! Commands that change a session or prepare a change, and those that undo one.

pub(super) mod apply;
pub(super) mod compact;
pub(super) mod prune;
pub(super) mod repair;
pub(super) mod restore;
pub(super) mod watch;
