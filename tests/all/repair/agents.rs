//! What the real agents do with each damage, before and after `epitome repair`; needs the kit of clients.

use std::process::Command;

use epitome::sessions::repair::Damage;
use epitome::sessions::{Format, validate};
use serde_json::Value;

use super::{AGENTS, attachments, damages, missing, repaired, texts};
use crate::corpus;

/// Name of the agent's program.
fn client(agent: &str) -> &str {
    agent.trim_end_matches("-code").trim_end_matches("-cli")
}

/// The API that the kit's model speaks with it.
fn api(agent: &str) -> Format {
    if agent == "opencode" { Format::OPENAI_CHAT } else { Format::named(agent).unwrap().api() }
}

/// Every text of a request, whatever it stands in.
fn leaves(value: &Value, out: &mut String) {
    match value {
        Value::String(it) => {
            out.push_str(it);
            out.push('\n');
        }
        Value::Array(all) => all.iter().for_each(|it| leaves(it, out)),
        Value::Object(fields) => fields.values().for_each(|it| leaves(it, out)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Why the client did not go on, or what a strict provider refuses of what it sent.
fn refused(agent: &str, outcome: &Value) -> Vec<String> {
    let request = &outcome["request"];
    if request.is_null() || outcome["exit"] != 0 {
        let said = outcome["error"].as_str().unwrap_or_default();
        let said = said.lines().rfind(|it| !it.trim().is_empty()).unwrap_or("no request");
        return vec![format!("exit {}: {said:.80}", outcome["exit"])];
    }
    let mut request = request.clone();
    // Claude Code puts what it says itself between the messages, as the beta header of its API allows.
    if let Some(messages) = request["messages"].as_array_mut().filter(|_| agent == "claude-code") {
        messages.retain(|it| it["role"] != "system");
    }
    // Gemini CLI sends the results of a resumed session twice.
    for content in request["contents"].as_array_mut().into_iter().flatten() {
        let mut seen: Vec<Value> = Vec::new();
        if let Some(parts) = content["parts"].as_array_mut() {
            parts.retain(|it| {
                let again = !it["functionResponse"].is_null() && seen.contains(it);
                seen.push(it.clone());
                !again
            });
        }
    }
    let found = validate::check(api(agent), request.to_string().as_bytes());
    let mut out: Vec<String> = found.into_iter().map(|it| format!("{}: {}", it.rule, it.what)).collect();
    attachments(&request, api(agent), &mut out);
    out
}

#[test]
#[ignore = "drives the four agents for a quarter of an hour: just clients"]
fn the_agents_resume_what_was_mended() {
    let kit = corpus::samples().with_file_name("lib");
    if !kit.join("netns.sh").is_file() {
        eprintln!(
            "SKIPPED: the_agents_resume_what_was_mended: no kit in {} (set EPITOME_CLIENTS)",
            kit.display()
        );
        return;
    }
    let only = std::env::var("EPITOME_AGENT").ok();
    let mut wrong = Vec::new();
    for agent in AGENTS.into_iter().filter(|it| only.as_deref().is_none_or(|only| only == *it)) {
        let (folder, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let cases: Vec<_> =
            Damage::ALL.iter().filter_map(|it| Some((*it, damages::made(agent, *it)?))).collect();
        for (damage, made) in &cases {
            std::fs::write(folder.path().join(damage.name()), &made.bytes).unwrap();
        }
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/damaged.py");
        let output = Command::new(kit.join("netns.sh"))
            .args(["python3", script, client(agent), env!("CARGO_BIN_EXE_epitome")])
            .arg(folder.path())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONPATH", &kit)
            .env("AGENT_CLIENTS_WORK", work.path())
            .output()
            .unwrap();
        for (damage, made) in cases {
            let cell = format!("{agent:<12}{:<20}", damage.name());
            let Ok(outcomes) = std::fs::read(folder.path().join(format!("{}.json", damage.name()))) else {
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                wrong.push(format!("{cell} did not run: {}", said.lines().last().unwrap_or_default()));
                continue;
            };
            let outcomes: Value = serde_json::from_slice(&outcomes).unwrap();
            let format = Format::named(agent).unwrap();
            let source = epitome::sessions::MemorySource::new(damages::file_name(agent), made.bytes);
            let expected = texts(&repaired(&source, format).1, format);
            let [before, after] = ["damaged", "mended"].map(|way| {
                let mut sent = String::new();
                leaves(&outcomes[way]["request"], &mut sent);
                (refused(agent, &outcomes[way]), missing(&expected, &[sent]).len())
            });
            println!(
                "{cell}damaged: {:>3} lines missing, {}; mended: {:>3} missing, {}",
                before.1,
                before.0.first().map_or("accepted", String::as_str),
                after.1,
                after.0.first().map_or("accepted", String::as_str),
            );
            if !after.0.is_empty() || outcomes["mended"]["repair"][0] != 0 {
                wrong.push(format!("{cell} mended: {:?}, repair {}", after.0, outcomes["mended"]["repair"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
