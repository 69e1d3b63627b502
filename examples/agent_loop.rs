//! Inside an agent's loop: measures the messages after each turn, and replaces part of them when they are too large.
//!
//!     cargo run --example agent_loop

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "an example talks"
)]

use epitome::config::{Config, Environment};
use epitome::engine::{self, Amount, Ask, Engine, SessionRef, To};
use epitome::sessions::Format;
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let config = Config::load(Environment::of_process())?;
    let mut ask = Ask::new(config.profile("epitome")?);
    ask.options.budget = Some(Amount::Tokens(2_000));
    // The messages are sent on to a provider; whatever is removed from them is archived first.
    ask.to = To::Bytes;
    let engine = Engine::new(config)?;
    let mut messages: Vec<Value> = Vec::new();
    for turn in 0..12 {
        messages.push(
            json!({"role": "user", "content": format!("Step {turn}: run the checks. Never push to main.")}),
        );
        let id = format!("call_{turn}");
        let call = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "just check"}});
        messages.push(json!({"role": "assistant", "content": [call]}));
        let log = format!("check {turn}: ok\n").repeat(150);
        messages.push(
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": log}]}),
        );
        messages.push(json!({"role": "assistant", "content": format!("Step {turn} is done.")}));

        let session = engine::open(
            &engine,
            &SessionRef::Inline(serde_json::to_vec(&messages)?),
            Some(Format::ANTHROPIC),
            None,
        )?;
        let before = engine::estimate(&engine, &session, &ask, None)?.tokens;
        if before > 6_000 {
            let compacted = engine::compact(&engine, &session, &ask)?;
            if let Some(bytes) = compacted.bytes() {
                messages = serde_json::from_slice(bytes)?;
            }
            println!(
                "turn {turn}: {before} → {} tokens, {} messages",
                compacted.answer().tokens_after,
                messages.len()
            );
        }
    }
    Ok(())
}
