//! Epitome compacts the sessions of coding agents without losing what matters.
//!
//! ```text
//!  session file ─┐                                                       ┌─▶ edits to a session, or a new one
//!  or messages   ▼                                                       │   (or messages, or an edit list)
//!            sessions::read ──▶ History ──▶ compact::plan ──▶ Plan     sessions::write
//!                            (a value)      ▲     ▲           │          ▲
//!                               tokens ─────┘     │           ▼          │
//!                               facts ────────────┤    [summarizer]─▶ compact::apply ──▶ Outcome
//!                               profile ──────────┘           │
//!                                                         [store]            [ ] = the only effects
//! ```
//!
//! Everything outside the square brackets is a value or a pure function. The modules, in reading order:

pub use ::{compaction, history, score, sessions, tokens};

pub mod scorecard;
pub mod profiles;
pub mod report;
pub mod llm;

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

pub use history::{Error, History, Result};
