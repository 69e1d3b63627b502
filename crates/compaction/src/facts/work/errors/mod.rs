//! The errors of the session, and what settles them.

pub(super) mod equal;
pub(in crate::facts) mod excuses;
pub(in crate::facts) mod resolution;
