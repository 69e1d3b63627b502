//! Who writes the summary, without the writing's effects: the offline summarizer, and the dialogue with a model.
//!
//! ```text
//! SummaryRequest ─▶ dialogue: next ─▶ Ask ─▶ (the caller asks) ─▶ Reply or Failure ─▶ dialogue: on_reply ─▶ … ─▶ Done | GaveUp
//!                    └ prompt, render: what is sent              └ check, grounding: what is accepted
//! ```
//!
//! What is asked, how a provider wants it written, what its answer means, whether the summary is accepted, what is tried
//! next. At the end of every failure stands the offline summary.

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
