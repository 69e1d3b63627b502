//! "Compact as X does", asked as people ask it: by any name, with messages and with a session, forced and by itself.

use epitome::profiles::BUILT_IN;
use serde_json::{Value, json};

use super::{Client, command};

/// The systems, as people call them.
const NAMES: [(&str, &[&str]); 6] = [
    ("codex", &["Codex CLI", "codex cli", "OpenAI Codex"]),
    ("claude-code", &["Claude Code", "claude", "claude_code"]),
    ("gemini-cli", &["Gemini CLI", "gemini", "GeminiCLI"]),
    ("opencode", &["OpenCode", "open code"]),
    ("learn-claude-code", &["learn claude code", "Learn-Claude-Code"]),
    ("supermemory", &["Supermemory", "opencode-supermemory"]),
];

/// About 57,000 tokens by anybody's count of four characters: fourteen turns, each with a read and its output.
fn long() -> Vec<Value> {
    let mut messages = Vec::new();
    for turn in 0..14 {
        let id = format!("call_{turn}");
        let output =
            format!("line {turn} of the module, which keeps the time and nothing else\n").repeat(240);
        messages.push(json!({"role": "user", "content": format!("Please look at module {turn} and never touch its tests.")}));
        messages.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Read", "input": {"file_path": format!("src/module_{turn}.rs")}}]}));
        messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": output}]}));
        messages.push(json!({"role": "assistant", "content": format!("Module {turn} keeps the time.")}));
    }
    messages
}

/// The same as a Claude Code transcript.
fn transcript(messages: &[Value]) -> String {
    let line = |(at, it): (usize, &Value)| {
        let uuid = |at: usize| format!("00000000-0000-4000-8000-{at:012}");
        let parent = at.checked_sub(1).map(uuid);
        let minute = format!("2026-11-20T08:{at:02}:00.000Z");
        let mut message = it.clone();
        if it["role"] == "assistant" {
            message["id"] = json!(format!("msg_{at}"));
            message["model"] = json!("claude-sonnet-4-5");
        }
        json!({"type": it["role"], "uuid": uuid(at), "parentUuid": parent, "timestamp": minute, "isSidechain": false,
               "sessionId": "00000000-0000-4000-8000-000000000abc", "cwd": "/p", "version": "2.1.0", "message": message})
        .to_string()
            + "\n"
    };
    messages.iter().enumerate().map(line).collect()
}

#[test]
fn six_systems_by_the_names_people_use() {
    let mut client = Client::legacy();
    let messages = long();
    let session = client.home.path().join("00000000-0000-4000-8000-000000000abc.jsonl");
    std::fs::write(&session, transcript(&messages)).unwrap();
    for (profile, names) in NAMES {
        for name in names {
            let split = client.call("find_split_point", json!({"messages": messages, "profile": name}));
            assert_eq!(split["profile"], profile, "{name}");
            let pruned = client.call("prune_tool_outputs", json!({"messages": messages, "profile": name}));
            assert_eq!(pruned["profile"], profile, "{name}");
        }
        let name = names[0];
        // Forced and by itself, messages: the edit is there, and what it makes is smaller.
        for auto in [false, true] {
            let arguments = json!({"messages": messages, "profile": name, "auto": auto, "window": 64_000});
            let answer = client.call("summarize_history", arguments);
            assert_eq!(answer["profile"], profile);
            assert_eq!(answer["status"], "compacted", "{name}, auto: {auto}: {answer}");
            assert!(answer["tokens_after"].as_u64() < answer["tokens_before"].as_u64());
            if answer["replace"].is_null() {
                // With the files that it puts back: more than an answer holds, so the way to all of it is said.
                let said = answer["warnings"][0].as_str().unwrap();
                assert!(
                    said.starts_with("replace has ") && said.contains(r#""to": "file""#),
                    "{name}: {said}"
                );
                let arguments = json!({"messages": messages, "profile": name, "auto": auto, "window": 64_000, "to": "file"});
                let answer = client.call("summarize_history", arguments);
                let file = std::fs::read_to_string(answer["output"].as_str().unwrap()).unwrap();
                assert!(file.contains("This session is being continued"), "{name}");
            } else {
                assert!(
                    answer["replace"]["with"].as_array().is_some_and(|it| !it.is_empty()),
                    "{name}: {answer}"
                );
                assert_eq!(answer["warnings"], Value::Null, "{name}: {}", answer["warnings"]);
            }
            // A session is planned.
            let arguments = json!({"session": session, "profile": name, "auto": auto, "window": "64k"});
            let answer = client.call("summarize_history", arguments);
            assert_eq!(
                (&answer["status"], &answer["profile"]),
                (&json!("planned"), &json!(profile)),
                "{name}: {answer}"
            );
        }
        // In a window in which it is not due nothing is done, and the answer says by which numbers; learn-claude-code
        // counts characters, whatever the window.
        let arguments = json!({"messages": messages, "profile": name, "auto": true, "window": "1000k"});
        let answer = client.call("summarize_history", arguments);
        match profile {
            "learn-claude-code" => assert_eq!(answer["status"], "compacted", "{answer}"),
            // What is always cleared is cleared all the same.
            _ if answer["status"] == "compacted" => assert!(answer["summary"].is_null(), "{answer}"),
            _ => {
                assert_eq!(answer["reason_code"], "below_threshold", "{name}: {answer}");
                assert!(answer["reason"].as_str().unwrap().contains("the threshold is"), "{answer}");
            }
        }
    }
}

#[test]
fn a_window_or_a_model_is_enough_to_run_by_itself() {
    let mut client = Client::legacy();
    let messages = long();
    for (profile, _) in NAMES {
        let by = |more: Value| {
            let mut arguments = json!({"messages": messages, "profile": profile, "auto": true});
            arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            arguments
        };
        // By its name: the window of that model.
        let answer = client.call("summarize_history", by(json!({"model": "gpt-4"})));
        assert_ne!(answer["reason_code"], "unknown_window", "{profile}: {answer}");
        // Nothing is known: what to pass is said in the words of the tool.
        let answer = client.call("summarize_history", by(json!({})));
        let reason = answer["reason"].as_str().unwrap_or_default();
        assert!(!reason.contains("--"), "{profile}: {reason}");
        if answer["reason_code"] == "unknown_window" {
            assert!(reason.contains("`window`") && reason.contains("`model`"), "{profile}: {reason}");
        }
    }
    let said = client.refusal("summarize_history", json!({"messages": messages, "window": "20%"}));
    assert!(said.starts_with("window: expected tokens"), "{said}");
    let said = client.refusal("summarize_history", json!({"messages": messages, "profile": "aider"}));
    assert!(said.contains("gemini-cli") && said.contains("found \"aider\""), "{said}");
}

#[test]
fn the_names_are_offered() {
    let mut client = Client::legacy();
    let tools = client.request("tools/list", json!({})).unwrap();
    let summarize =
        tools["tools"].as_array().unwrap().iter().find(|it| it["name"] == "summarize_history").unwrap();
    let said = summarize["inputSchema"]["properties"]["profile"]["description"].as_str().unwrap();
    let listed: Vec<&str> =
        said.split([' ', ',', '.']).filter(|it| BUILT_IN.iter().any(|name| name.0 == *it)).collect();
    let systems: Vec<&str> =
        BUILT_IN.iter().map(|it| it.0).filter(|it| !it.contains('@') && *it != "epitome").collect();
    assert_eq!(listed.len(), systems.len(), "{said}");
    assert!(systems.iter().all(|it| listed.contains(it)), "{said}");
    // And on the command line.
    let home = tempfile::tempdir().unwrap();
    let run = command(home.path()).args(["profiles", "Gemini CLI"]).output().unwrap();
    assert!(String::from_utf8_lossy(&run.stdout).starts_with("name = \"gemini-cli\"\n"), "{run:?}");
}
