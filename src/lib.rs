//! Epitome compacts the sessions of coding agents without losing what matters.
//!
//! ```no_run
//! use epitome::{Amount, Ask, Config, Engine, Environment, SessionRef, To};
//!
//! let config = Config::load(Environment::of_process())?;
//! let mut ask = Ask::new(config.profile("epitome")?);
//! ask.options.budget = Some(Amount::Share(0.25));
//! ask.to = To::File("smaller.jsonl".into());
//!
//! let engine = Engine::new(config)?;
//! let session = epitome::open(&engine, &SessionRef::Named("session.jsonl".into()), None, None)?;
//! let answer = epitome::compact(&engine, &session, &ask)?.answer();
//! println!("{} → {} tokens", answer.tokens_before, answer.tokens_after);
//! # Ok::<(), epitome::Error>(())
//! ```
//!
//! The parts without effects are separate crates; `ARCHITECTURE.md` shows how they fit together:
//!
//! | crate | holds |
//! |---|---|
//! | [`history`] | a conversation as a value, and the errors of all crates |
//! | [`tokens`] | how large it is |
//! | [`sessions`] | agents' files and APIs' messages: read, write, validate |
//! | [`compaction`] | profiles, plans, facts, summaries |
//! | [`cost`] | what its requests cost, and when a compaction pays |
//! | [`score`] | what survived |
//!
//! The effects are in this crate: [`engine`] reads, plans, asks, archives, writes and reads back, one
//! function per verb; [`config`] is the resolved configuration, [`store`] keeps originals, [`agents`] knows
//! where agents keep their sessions, and [`answers`] has the verbs' result documents.

pub use ::{compaction, cost, history, score, sessions, tokens};

pub mod store;
pub mod agents;
pub mod config;
pub mod answers;
pub mod engine;

// Only for the program, its tests and benchmarks.
#[doc(hidden)]
pub mod report;
#[doc(hidden)]
pub mod llm;
#[doc(hidden)]
pub mod files;
#[doc(hidden)]
pub mod interfaces;

pub use config::{Config, Environment, profiles};
pub use engine::{
    Amount, Ask, Compacted, Engine, Opened, SessionRef, To, compact, estimate, open, prune, recall, split,
    undo,
};
pub use history::{Error, History, Result};
pub use sessions::Format;
