//! Commands that set Epitome up and say how it is set up.

pub(super) mod completions;
pub(super) mod doctor;
pub(super) mod gateway;
pub(super) mod install;
pub(super) mod profiles;
pub(super) mod schema;
