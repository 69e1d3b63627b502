//! Read-only verbs.

pub(super) mod estimate;
#[cfg(feature = "parquet")]
mod parquet;
pub(super) mod report;
pub(super) mod session_cost;
pub(super) mod split;
pub mod statusline;
#[cfg(feature = "parquet")]
pub(super) mod tables;
