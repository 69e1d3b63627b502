//! Facts read from the source: rules, decisions, commands, identifiers, and what was done.

pub(crate) mod commands;
pub(crate) mod decisions;
pub(crate) mod done;
pub(crate) mod error_line;
pub(crate) mod git;
pub(crate) mod idents;
pub(crate) mod outcome;
mod plan;
mod powershell;
pub(crate) mod rules;
pub(crate) mod said;
