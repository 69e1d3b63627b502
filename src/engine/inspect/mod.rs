//! Verbs that only look.

pub(super) mod estimate;
pub(super) mod report;
pub(super) mod session_cost;
pub(super) mod split;
pub mod statusline;
#[cfg(feature = "parquet")]
pub(super) mod tables;
