//! Commands that set up Epitome and show its setup.

pub(super) mod completions;
pub(super) mod doctor;
pub(super) mod gateway;
pub(super) mod install;
pub(super) mod profiles;
pub(super) mod schema;
