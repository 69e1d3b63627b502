//! Models over HTTP: what the dialogue of [`compaction::summary`] asks for is sent, and what it cost.

pub mod http;
pub mod price;
pub mod run;
