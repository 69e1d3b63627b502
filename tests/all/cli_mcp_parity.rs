//! Each tool over stdio says what its command says with `--json`: on a session of each agent, each tool in both protocol
//! eras, to a client that is not ours (the MCP Inspector's command line).

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::corpus;

fn inspector() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(|it| PathBuf::from(it).join(".cache/agent-clients"));
    let folder = std::env::var_os("AGENT_CLIENTS_DIR").map(PathBuf::from).or(home)?;
    Some(folder.join("bin/mcp-inspector")).filter(|it| it.exists())
}

/// A real session of each agent, or the example.
fn sessions() -> Vec<PathBuf> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let pick = |kind: &str, example: &str| {
        let middle =
            |path: &PathBuf| (100_000..2_000_000).contains(&path.metadata().map_or(0, |it| it.len()));
        let mut paths: Vec<PathBuf> =
            corpus::files(&corpus::corpus().join(kind)).into_iter().filter(middle).collect();
        paths.sort();
        paths.pop().unwrap_or_else(|| root.join("examples/sessions").join(example))
    };
    vec![
        pick("claude-code", "claude-code.jsonl"),
        pick("codex", "codex.jsonl"),
        pick("gemini", "gemini-cli.jsonl"),
        pick("opencode", "opencode.json"),
    ]
}

/// What is said by both must be the same. A tool says less: fields may be left out, and lists cut.
fn agree(tool: &Value, command: &Value, place: &str, wrong: &mut Vec<String>) {
    match (tool, command) {
        (Value::Object(tool), Value::Object(command)) => {
            for (key, value) in tool {
                // Who should do what next, and what was cut, depend on who asks.
                if ["next", "cut", "output"].contains(&key.as_str()) {
                    continue;
                }
                match command.get(key) {
                    Some(other) => agree(value, other, &format!("{place}.{key}"), wrong),
                    None => wrong.push(format!("{place}.{key}: only the tool says it: {value}")),
                }
            }
        }
        (Value::Array(tool), Value::Array(command)) => {
            for (at, value) in tool.iter().enumerate() {
                let mut best: Option<Vec<String>> = None;
                for other in command {
                    let mut here = Vec::new();
                    agree(value, other, &format!("{place}[{at}]"), &mut here);
                    if best.as_ref().is_none_or(|it| here.len() < it.len()) {
                        best = Some(here);
                    }
                }
                wrong
                    .extend(best.unwrap_or_else(|| vec![format!("{place}[{at}]: the command says nothing")]));
            }
        }
        // Placeholders name the way back that the reader has.
        (Value::String(tool), Value::String(command))
            if tool.replace("recall ", "epitome recall ") == *command => {}
        // A text that is too long for a tool's answer says so where it ends.
        (Value::String(tool), Value::String(command))
            if tool.rfind("\n[… cut; ").is_some_and(|at| command.starts_with(&tool[..at])) => {}
        // JavaScript writes 5.0 as 5.
        (Value::Number(tool), Value::Number(command)) if tool.as_f64() == command.as_f64() => {}
        _ if tool == command => {}
        _ => wrong.push(format!("{place}: the tool says {tool}, the command {command}")),
    }
}

#[test]
fn tools_say_what_commands_say() {
    let Some(inspector) = inspector() else {
        eprintln!("SKIPPED: tools_say_what_commands_say: no MCP Inspector (set AGENT_CLIENTS_DIR)");
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let run = |program: &Path, arguments: &[&str]| -> Value {
        let output = Command::new(program)
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", &path)
            .env("MCP_INSPECTOR_SECRET_STORE", "memory")
            .args(arguments)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        serde_json::from_str(&text).unwrap_or_else(|error| {
            panic!("{arguments:?}: {error}: {text}{}", String::from_utf8_lossy(&output.stderr))
        })
    };
    let epitome = Path::new(env!("CARGO_BIN_EXE_epitome"));
    let mut wrong = Vec::new();
    let mut calls = 0;
    for (number, session) in sessions().into_iter().enumerate() {
        let session = session.to_str().unwrap();
        for (at, (tool, command)) in [
            ("estimate_tokens", "estimate"),
            ("find_split_point", "split"),
            ("prune_tool_outputs", "prune"),
            ("summarize_history", "compact"),
        ]
        .into_iter()
        .enumerate()
        {
            let said = run(epitome, &[command, session, "--json"]);
            // The inspector takes a second to start: each tool meets both eras, and so does each session.
            let era = ["legacy", "modern"][(number + at) % 2];
            let arguments = json!({ "session": session }).to_string();
            let result = run(
                &inspector,
                &[
                    "--cli",
                    epitome.to_str().unwrap(),
                    "serve",
                    "--stdio",
                    "--protocol-era",
                    era,
                    "--method",
                    "tools/call",
                    "--tool-name",
                    tool,
                    "--tool-args-json",
                    &arguments,
                    "--format",
                    "json",
                ],
            );
            let result = &result["result"];
            let structured = &result["structuredContent"];
            let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
            let mut forms = Vec::new();
            agree(&text, structured, tool, &mut forms);
            agree(structured, &text, tool, &mut forms);
            assert_eq!(forms, Vec::<String>::new(), "{tool}: both forms of the result say the same");
            calls += 1;
            let mut here = Vec::new();
            agree(structured, &said, tool, &mut here);
            // A plan is asked for here, the messages themselves there.
            here.retain(|it| !it.starts_with("summarize_history.status"));
            wrong.extend(here.into_iter().map(|it| format!("{session} ({era}): {it}")));
        }
    }
    println!("{calls} calls");
    assert_eq!(wrong, Vec::<String>::new());
}
