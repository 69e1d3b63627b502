//! Who writes the summary: the offline summarizer, a model over HTTP, or the calling agent's own model.
//!
//! ```text
//! Material ─▶ talk: next ─▶ Ask ─▶ [http | host] ─▶ Reply or Failure ─▶ talk: heard ─▶ … ─▶ Done | GaveUp
//!                    └ prompt, render: what is sent              └ check, ground: what is accepted
//! ```
//!
//! Everything is a value but [`http`] and [`run`]: what is asked, how a provider wants it written, what its answer
//! means, whether the summary is accepted, what is tried next. At the end of every failure stands the offline summary.

pub mod anthropic;
pub mod check;
pub mod claims;
pub mod failure;
pub mod gemini;
pub mod ground;
pub mod http;
pub mod language;
pub mod model;
pub mod offline;
pub mod openai;
pub mod price;
pub mod prompt;
pub mod render;
pub mod run;
pub mod sse;
pub mod talk;
pub mod words;
