//! Models over HTTP: sends the requests of the dialogue in [`compaction::summary`], and predicts their cost.

pub mod http;
pub mod price;
pub mod run;
