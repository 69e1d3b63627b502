//! Epitome compacts the sessions of coding agents without losing what matters.
//!
//! ```text
//!  session file ─┐                                                     ┌─▶ edits to a session, or a new one
//!  or messages   ▼                                                     │   (or messages, or an edit list)
//!          sessions::read ─▶ History ───▶ plan::plan ──▶ Plan    sessions::write
//!                           (a value)      ▲     ▲         │           ▲
//!                              tokens ─────┘     │         ▼           │
//!                              facts ────────────┤      [llm] ─▶ plan::apply ─▶ Outcome
//!                              profile ──────────┘         │
//!                                                       [store]           [ ] = the only effects
//! ```
//!
//! Everything outside the square brackets is a value or a pure function, and lies in a crate of its own:
//!
//! | crate | holds |
//! |---|---|
//! | [`history`] | a conversation as a value, and the errors of all crates |
//! | [`tokens`] | how large it is |
//! | [`sessions`] | agents' files and APIs' messages: read, write, validate |
//! | [`compaction`] | profiles, plans, facts, summaries |
//! | [`score`] | what survived |
//!
//! Here stand the effects: [`engine`] is the one sequence that reads, plans, archives, asks, writes and reads back;
//! [`config`] says what the user wants, [`store`] keeps originals, [`agents`] knows where agents keep their sessions.

pub use ::{compaction, history, score, sessions, tokens};

pub mod scorecard;
pub mod profiles;
pub mod cost;
pub mod report;
pub mod llm;

pub mod store;
pub mod agents;
pub mod terminal;
pub mod files;
pub mod config;
pub mod answers;
pub mod engine;
#[doc(hidden)]
pub mod gateway;
#[doc(hidden)]
pub mod mcp;
#[doc(hidden)]
pub mod cli;

pub use history::{Error, History, Result};
