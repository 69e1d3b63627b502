//! What of it a compacted history still says, and what it says beside it.

pub(crate) mod index;
pub(crate) mod phrases;
pub(crate) mod support;
pub(crate) mod survive;
pub(crate) mod truth;
