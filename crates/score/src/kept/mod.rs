//! What a compacted history still says of the source's facts, and what else it says.

pub(crate) mod index;
pub(crate) mod phrases;
pub(crate) mod support;
pub(crate) mod survive;
pub(crate) mod truth;
