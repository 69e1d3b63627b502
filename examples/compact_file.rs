//! Compacts a session file into another, offline, as `epitome compact FILE --out OTHER` does.
//!
//!     cargo run --example compact_file -- examples/sessions/codex.jsonl /tmp/compacted.jsonl

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "an example talks"
)]

use epitome::config::{Config, Environment};
use epitome::engine::{self, Amount, Ask, Engine, SessionRef, To};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (from, to) = (arguments.next().ok_or("from which file?")?, arguments.next().ok_or("to which file?")?);
    let config = Config::load(Environment::of_process())?;
    let mut ask = Ask::new(config.profile("epitome")?);
    ask.options.budget = Some(Amount::Share(0.25));
    ask.to = To::File(to.into());
    let engine = Engine::new(config)?;
    let session = engine::open(&engine, &SessionRef::Named(from), None, None)?;
    let answer = engine::compact(&engine, &session, &ask)?.answer();
    println!(
        "{}: {} → {} tokens; {}",
        answer.status.name(),
        answer.tokens_before,
        answer.tokens_after,
        answer.reason
    );
    println!("{}", answer.summary.unwrap_or_default());
    Ok(())
}
