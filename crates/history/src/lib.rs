//! What a model would be sent next, as a value, and what is needed to make and read one.
//!
//! [`History`] is messages made of parts, grouped into units that are kept or removed together. Beside it is
//! what every other crate needs: errors with their place ([`error`]), session JSON ([`json`]), what a tool
//! call asks for ([`tools`]), secrets that must not be shown ([`secrets`]).

pub mod error;
mod history;
pub mod json;
mod named;
pub mod parallel;
pub mod secrets;
pub mod simd;
mod text;
pub mod tools;
pub mod verbatim;

pub use error::{Error, Result};
pub use history::*;
pub use text::{Measure, Text, TextSize, edited, middle, one_line};
