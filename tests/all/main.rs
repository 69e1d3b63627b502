//! Everything that `cargo test` checks from outside, in one program: it links once and fills all cores. Only what drives
//! the real agents stands apart, in `tests/clients.rs`.
//!
//! What needs real sessions, the clients' kit, Node or PyPI looks for it and is skipped, with its reason, without it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test may stop, prints its tables, and finds what it needs by the environment"
)]

mod apply;
mod apply_bad;
mod budgets;
mod cost;
mod differential;
mod ends;
mod exact;
mod facts;
mod format;
mod fuzz;
mod gateway;
mod resume;
mod predicted_growth;
mod hostile;
mod hooks;
mod install;
mod laws;
mod layers;
mod end_to_end;
mod margins;
mod mcp;
mod agent_cuts;
mod once;
mod packaging;
mod page;
mod cli_mcp_parity;
mod policies;
mod printed;
mod profile_engine;
mod corpus;
mod repair;
mod replay;
mod score;
mod seat;
mod seat_bad;
mod statusline;
mod store;
mod summarizer;
mod terminal;
mod trigger;
mod vectors;
mod voice;
