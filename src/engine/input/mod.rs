//! What a call means: its options, its session opened and measured.

pub(super) mod caller;
pub(super) mod measured;
pub(super) mod open;
pub(super) mod options;
pub(super) mod request;
pub(crate) mod values;
