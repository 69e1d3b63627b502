//! From bytes to lines, JSON values and texts.

pub(crate) mod beginning;
pub(crate) mod cursor;
pub mod document;
pub mod lines;
pub mod raw;
pub(crate) mod spans;
pub(crate) mod texts;
