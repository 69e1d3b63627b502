//! Writes summaries, without I/O: the offline summarizer, and the dialogue with a model.
//!
//! ```text
//! SummaryRequest ─▶ dialogue: next ─▶ Ask ─▶ (the caller asks) ─▶ Reply or Failure ─▶ dialogue: on_reply ─▶ … ─▶ Done | GaveUp
//!                    └ prompt, render: what is sent              └ check, grounding: what is accepted
//! ```
//!
//! These decide what is asked and in which format, what a reply means, whether a summary is accepted and what
//! is tried next. Whenever a dialogue fails, the offline summary takes its place.

pub mod check;
pub mod dialogue;
pub mod failure;
pub mod grounding;
pub mod language;
pub mod model;
pub mod offline;
pub mod prompt;
pub mod providers;
pub mod render;
pub mod request;
