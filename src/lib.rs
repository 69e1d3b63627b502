//! Epitome compacts the sessions of coding agents without losing what matters.
//!
//! ```text
//!  session file ─┐                                                       ┌─▶ edits to a session, or a new one
//!  or messages   ▼                                                       │   (or messages, or an edit list)
//!            format::read ──▶ History ──▶ compact::plan ──▶ Plan     format::write
//!                            (a value)      ▲     ▲           │          ▲
//!                               tokens ─────┘     │           ▼          │
//!                               facts ────────────┤    [summarizer]─▶ compact::apply ──▶ Outcome
//!                               profile ──────────┘           │
//!                                                         [store]            [ ] = the only effects
//! ```
//!
//! Everything outside the square brackets is a value or a pure function. The modules, in reading order:

pub mod error;
mod wide;
mod cores;
pub mod history;
pub mod verbatim;
pub mod json;
pub mod tokens;
pub mod tools;
pub mod facts;
pub mod score;
pub mod scorecard;
pub mod profile;
pub mod compact;
pub mod format;
pub mod cost;
pub mod secrets;
pub mod report;
pub mod summarizer;

pub mod store;
pub mod agents;
pub mod terminal;
pub mod files;
pub mod config;
pub mod answers;
pub mod engine;
pub mod gateway;
pub mod mcp;
pub mod cli;

pub use error::{Error, Result};
pub use history::History;
