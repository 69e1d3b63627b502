//! A custom profile: clears old outputs, then keeps the last six messages after a summary in two sections.
//!
//!     cargo run --example custom_profile

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "an example talks"
)]

use epitome::config::{Config, Environment};
use epitome::engine::{self, Ask, Engine, SessionRef};

const PROFILE: &str = r#"
name = "mine"
about = "short and strict"
follows = "nobody"

[trigger]
share = 0.6

[[pass]]
do = "outputs"
select = { all-but-last = 2 }
longer-than = 200
replace = { placeholder = "[cleared: {tokens} tokens; {recall}]" }

[[pass]]
do = "summarize"
when = "due"
keep = { messages = 6 }
layout = ["head", "summary", "tail"]
summary = { max-tokens = 600, sections = [
  { title = "What must not be done", holds = ["constraints"] },
  { title = "Where we are", holds = ["goal", "last", "open", "files", "commands"] },
] }
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::new(Config::load(Environment::of_process())?)?;
    let session =
        engine::open(&engine, &SessionRef::Named("examples/sessions/gemini-cli.jsonl".into()), None, None)?;
    let answer =
        engine::compact(&engine, &session, &Ask::new(epitome::profiles::parse(PROFILE, "mine")?))?.answer();
    println!("{} → {} tokens", answer.tokens_before, answer.tokens_after);
    println!("{}", answer.summary.unwrap_or(answer.reason));
    Ok(())
}
