//! Commands that look at sessions and change nothing.

pub(super) mod compare;
pub(super) mod cost;
pub(super) mod estimate;
pub(super) mod report;
pub(super) mod score;
pub(super) mod sessions;
pub(super) mod split;
