//! What a compaction would do, and why: no effects, no store, no summary.
//!
//!     cargo run --example plan_only -- examples/sessions/claude-code.jsonl

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "an example talks"
)]

use epitome::compaction::plan::{self, Moment, PlanRequest};
use epitome::sessions::{self, MemorySource};
use epitome::tokens::{TokenCounter, Tokenizer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which session?")?;
    let session = sessions::read(&MemorySource::new(&*path, std::fs::read(&path)?), None)?;
    let history = session.history;
    let counter = TokenCounter::new(&history, Tokenizer::Auto, None);
    let profile = epitome::profiles::built_in("epitome")?;
    let request =
        PlanRequest { budget: Some(4_000), ..PlanRequest::new(&profile, &|_| "0000000000".to_owned()) };
    let plan = plan::plan(&history, &counter, &request, &Moment::default());
    println!("{}", serde_json::to_string_pretty(&plan)?);
    Ok(())
}
