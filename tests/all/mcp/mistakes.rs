//! Calls that mean something else than they say, and what the model is told to do then.

use super::stdio::{THREAD, with_a_session};
use super::{Client, Web, example, example_messages};
use serde_json::{Value, json};

const WRITES: [&str; 2] = ["session", "file"];

/// A text of a list, joined: warnings of an answer.
fn warnings(answer: &Value) -> String {
    answer["warnings"].to_string()
}

/// The arguments of the example in an error.
fn example_of(said: &str, tool: &str) -> Value {
    let (_, call) = said.split_once("A call that works: ").unwrap_or_else(|| panic!("{said}"));
    let arguments = call.strip_prefix(tool).unwrap_or_else(|| panic!("{said}"));
    serde_json::from_str(arguments).unwrap_or_else(|error| panic!("{said}: {error}"))
}

fn with_outputs() -> Vec<Value> {
    let output = "line of a long log\n".repeat(2_000);
    let mut messages = vec![json!({"role": "user", "content": "Run everything."})];
    for turn in 0..6 {
        let (id, tool) = (format!("call_{turn}"), if turn % 2 == 0 { "Bash" } else { "Read" });
        messages.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": tool, "input": {"x": turn}}]}));
        messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": format!("{turn}: {output}")}]}));
    }
    messages.push(json!({"role": "assistant", "content": "All ran."}));
    messages.push(json!({"role": "user", "content": "Go on."}));
    messages
}

#[test]
fn other_names_of_a_session_are_understood() {
    let mut client = with_a_session();
    let other = example("claude-code.jsonl");
    let expected = client.call("estimate_tokens", json!({"session": other}))["tokens"].clone();
    for name in ["path", "file", "session_path", "sessionPath", "file_path"] {
        for tool in ["estimate_tokens", "find_split_point", "prune_tool_outputs", "summarize_history"] {
            let answer = client.call(tool, json!({name: other, "wait_for_previous": true}));
            assert_eq!(answer["session"]["format"], "claude-code", "{tool} {name}");
            assert!(!warnings(&answer).contains("ignored"), "{tool} {name}: {answer}");
        }
        assert_eq!(client.call("estimate_tokens", json!({name: other}))["tokens"], expected);
        let both = client.call("estimate_tokens", json!({name: other, "text": "hello"}));
        assert_eq!(both["tokens"], expected);
    }
    for name in ["session_id", "sessionId"] {
        assert_eq!(client.call("estimate_tokens", json!({name: THREAD}))["session"]["id"], THREAD);
        client.refusal("estimate_tokens", json!({name: "no-such-session"}));
    }
}

#[test]
fn what_is_not_understood_is_said_and_nothing_is_written_by_it() {
    let mut client = with_a_session();
    let folder = client.home.path().join(".codex");
    let before = contents(&folder);
    let other = example("codex.jsonl");
    for to in WRITES {
        for tool in ["prune_tool_outputs", "summarize_history"] {
            for (name, arguments) in [
                ("transcript", json!({"transcript": other, "to": to})),
                ("dry_run", json!({"session": THREAD, "dry_run": true, "to": to})),
                ("path", json!({"session": THREAD, "path": other, "to": to})),
            ] {
                let said = client.refusal(tool, arguments.clone());
                assert!(
                    said.starts_with(&format!("arguments: expected only those of {tool} (session, ")),
                    "{said}"
                );
                assert!(said.contains(&format!("found {name}; nothing was done")), "{said}");
                if let Some(session) = arguments.get("session") {
                    assert_eq!(&example_of(&said, tool)["session"], session, "{said}");
                }
            }
        }
    }
    assert_eq!(contents(&folder), before);
    assert!(!client.home.path().join(".local/share/epitome/results").exists());
    for (tool, arguments) in [
        ("estimate_tokens", json!({"session": THREAD, "depth": 3})),
        ("estimate_tokens", json!({"depth": 3, "text": "hello"})),
        ("find_split_point", json!({"session": THREAD, "depth": 3})),
        ("prune_tool_outputs", json!({"session": THREAD, "depth": 3})),
        ("summarize_history", json!({"session": THREAD, "depth": 3})),
        ("recall", json!({"depth": 3})),
        ("recall", json!({"depth": 3, "query": "nothing"})),
    ] {
        let answer = client.call(tool, arguments.clone());
        assert!(warnings(&answer).contains("ignored: depth;"), "{tool} {arguments}: {answer}");
    }
    // What one client adds to every call stops none.
    let done =
        client.call("summarize_history", json!({"session": other, "to": "file", "wait_for_previous": true}));
    assert_eq!(done["status"], "compacted", "{done}");
}

/// Every file below a folder, with what is in it.
fn contents(folder: &std::path::Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut out = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                out.push((path.clone(), std::fs::read(path).unwrap()));
            }
        }
    }
    out.sort();
    out
}

#[test]
fn a_handle_alone_is_not_the_live_session() {
    let mut client = with_a_session();
    for handle in ["zzzzzzzzzz", "abcdefgh23"] {
        let said = client.refusal("summarize_history", json!({"handle": handle}));
        assert!(said.contains(handle) && said.contains("handle"), "{said}");
    }
    let made = client
        .call("summarize_history", json!({"messages": example_messages("anthropic.json"), "budget": "30%"}));
    let said = client.refusal("summarize_history", json!({"handle": made["handle"]}));
    assert!(said.starts_with("answer: expected") && said.contains("pass it as session"), "{said}");
    client.call("summarize_history", json!({"session": made["handle"]}));
}

#[test]
fn lists_and_tools_are_read_as_models_write_them() {
    let mut client = Client::legacy();
    let messages = with_outputs();
    for tools in [json!(["Read"]), json!("Read"), json!("[\"Read\"]"), json!("read"), json!(["READ"])] {
        let answer = client.call(
            "prune_tool_outputs",
            json!({"messages": messages, "protect_tokens": 1000, "exclude_tools": tools}),
        );
        let pruned = answer["pruned"].as_array().unwrap();
        assert!(!pruned.is_empty() && pruned.iter().all(|it| it["tool"] == "Bash"), "{tools}: {answer}");
        assert!(!warnings(&answer).contains("exclude_tools"), "{tools}: {answer}");
    }
    let answer = client.call(
        "prune_tool_outputs",
        json!({"messages": messages, "protect_tokens": 1000, "exclude_tools": "Grep, bash"}),
    );
    assert!(warnings(&answer).contains("called Grep; its tools: Bash, Read"), "{answer}");
    assert!(answer["pruned"].as_array().unwrap().iter().all(|it| it["tool"] == "Read"), "{answer}");
    let only = client.call("prune_tool_outputs", json!({"messages": messages, "only": "[\"call_1\"]"}));
    assert_eq!(only["pruned"].as_array().unwrap().len(), 1, "{only}");
    let pinned = client.call(
        "summarize_history",
        json!({"session": example("codex.jsonl"), "pin": "[\"The port is 4001.\"]"}),
    );
    let summary = pinned["summary"].as_str().unwrap();
    assert!(summary.contains("The port is 4001.") && !summary.contains("[\""), "{summary}");
}

#[test]
fn next_names_what_works() {
    let mut client = with_a_session();
    // Beside the agents' folders, only read, or plain messages: nothing is written back, and a copy always can be.
    let mut seen = 0;
    for name in [
        "claude-code.jsonl",
        "codex.jsonl",
        "gemini-cli.jsonl",
        "pi.jsonl",
        "qwen-code.jsonl",
        "swe-agent.traj",
        "anthropic.json",
        "openai-responses.json",
    ] {
        for (tool, more) in [
            ("summarize_history", json!({"budget": "30%"})),
            ("prune_tool_outputs", json!({"protect_tokens": 100})),
        ] {
            let mut arguments = more.clone();
            arguments["session"] = json!(example(name));
            let planned = client.call(tool, arguments.clone());
            if planned["status"] != "planned" {
                continue;
            }
            seen += 1;
            let next = planned["next"]["do"].as_str().unwrap();
            assert!(next.contains(r#""to": "file""#) && !next.contains("\"session\""), "{name}: {next}");
            arguments["to"] = json!("file");
            let done = client.call(tool, arguments.clone());
            let read = client.call("estimate_tokens", json!({"session": done["output"]}));
            assert!(read["tokens"].as_u64() < done["tokens_before"].as_u64(), "{name}: {read}");
            let only_read = ["pi", "qwen", "swe"].iter().any(|it| name.starts_with(it));
            assert_eq!(warnings(&done).contains("read-only: the file contains"), only_read, "{name}: {done}");
            arguments["to"] = json!("session");
            let said = client.refusal(tool, arguments);
            assert!(!said.contains("--out") && said.contains("file"), "{name}: {said}");
        }
    }
    assert!(seen >= 9, "{seen}");
    let planned = client.call("summarize_history", json!({"session": THREAD, "budget": "30%"}));
    assert!(planned["next"]["do"].as_str().unwrap().contains(r#""to": "session""#), "{planned}");
    let done = client.call("summarize_history", json!({"session": THREAD, "budget": "30%", "to": "session"}));
    assert_eq!(done["status"], "compacted", "{done}");
    let said = client.refusal("prune_tool_outputs", json!({"messages": with_outputs(), "to": "session"}));
    assert!(said.contains("splice `pruned`") && !said.contains("`replace`"), "{said}");
}

#[test]
fn a_server_elsewhere_names_no_writing() {
    let web = Web::start(|_, command| {
        command.arg("--allow-root").arg(example("").parent().unwrap());
    });
    let session = example("claude-code.jsonl");
    for (tool, arguments) in [
        ("summarize_history", json!({"session": session, "budget": "30%"})),
        ("prune_tool_outputs", json!({"session": session, "protect_tokens": 100})),
    ] {
        let result = web.call(tool, arguments, &[]);
        let answer = &result["structuredContent"];
        assert_eq!(answer["status"], "planned", "{result}");
        assert_eq!(answer.get("next"), None, "{answer}");
    }
}

/// Originals of a session of another project, so that only scope `all` finds them.
fn elsewhere(client: &mut Client) {
    let file = client.home.path().join("other.jsonl");
    let output = "xylophone ".repeat(300);
    let mut lines = Vec::new();
    let mut last = Value::Null;
    let mut line = |uuid: String, kind: &str, message: Value| {
        let line = json!({"type": kind, "uuid": uuid, "parentUuid": last, "sessionId": "other", "cwd": "/somewhere/else",
            "version": "2.0.0", "timestamp": "2026-01-02T00:00:00.000Z", "message": message});
        last = json!(uuid);
        lines.push(line.to_string());
    };
    line("u0".into(), "user", json!({"role": "user", "content": "Play."}));
    for turn in 0..14 {
        let id = format!("toolu_{turn}");
        line(
            format!("a{turn}"),
            "assistant",
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Bash", "input": {"n": turn}}]}),
        );
        line(
            format!("r{turn}"),
            "user",
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": format!("{turn} {output}")}]}),
        );
    }
    line("end".into(), "user", json!({"role": "user", "content": "Go on."}));
    std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    let ids: Vec<String> = (0..14).map(|turn| format!("toolu_{turn}")).collect();
    let done = client.call("prune_tool_outputs", json!({"session": file, "only": ids, "to": "file"}));
    assert_eq!(done["status"], "pruned", "{done}");
}

#[test]
fn every_page_of_what_was_found_can_be_had() {
    let mut client = Client::legacy();
    elsewhere(&mut client);
    let mut found: Vec<String> = Vec::new();
    let mut arguments = json!({"query": "xylophone"});
    loop {
        let page = client.call("recall", arguments.clone());
        assert_eq!(page["scope"], "all", "{page}");
        let hits = page["hits"].as_array().unwrap();
        assert!(!hits.is_empty() && page.get("text").is_none(), "{arguments}: {page}");
        found.extend(hits.iter().map(|it| format!("{} {}", it["handle"], it["range"])));
        let Some(next) = page.get("next") else { break };
        arguments["range"] = next.clone();
    }
    let count = found.len();
    found.sort();
    found.dedup();
    assert!(count >= 11 && found.len() == count, "{found:?}");
    let beyond = client.call("recall", json!({"query": "xylophone", "range": "101-105"}));
    assert!(beyond["text"].as_str().unwrap().contains("no more results"), "{beyond}");
}

#[test]
fn recall_says_why_there_is_nothing() {
    let mut client = with_a_session();
    let text = |answer: &Value| {
        assert_eq!(answer["hits"], json!([]));
        answer["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    for (arguments, expected) in [
        (json!({}), "no outputs were cleared here yet"),
        (json!({"session": THREAD}), "no outputs of session"),
        (json!({"session": "nope"}), "it was not found"),
        (json!({"sessionId": "nope"}), "it was not found"),
        (json!({"query": "gargoyle"}), "fewer or other words"),
    ] {
        let said = text(&client.call("recall", arguments.clone()));
        assert!(said.contains(expected), "{arguments}: {said}");
    }
    let said = text(&client.call("recall", json!({"query": "gargoyle", "scope": "all"})));
    assert!(!said.contains("scope"), "{said}");
    let said = text(&client.call("recall", json!({"query": "gargoyle", "scope": "project"})));
    assert!(said.contains("scope \"all\""), "{said}");
    let answer = client.call("recall", json!({"query": "gargoyle", "session": "nope"}));
    assert!(warnings(&answer).contains("session: not only nope was searched"), "{answer}");
    elsewhere(&mut client);
    for name in ["q", "text", "query"] {
        assert_ne!(client.call("recall", json!({name: "xylophone"}))["hits"], json!([]), "{name}");
    }
}

#[test]
fn the_call_that_works_works() {
    let mut client = Client::legacy();
    let session = example("codex.jsonl");
    for (tool, arguments, kept) in [
        ("estimate_tokens", json!({}), None),
        ("estimate_tokens", json!({"session": "latest"}), None),
        ("summarize_history", json!({"session": "latest", "budget": "20%"}), None),
        ("prune_tool_outputs", json!({"session": "current"}), None),
        ("find_split_point", json!({"session": "/no/such.jsonl"}), None),
        ("find_split_point", json!({"session": session, "keep": "lots"}), Some("session")),
        ("find_split_point", json!({"session": session, "profile": "nope"}), Some("session")),
        ("estimate_tokens", json!({"path": session, "format": "word"}), Some("session")),
        ("estimate_tokens", json!({"session": session, "tokenizer": "word"}), Some("session")),
        ("estimate_tokens", json!({"session": session, "detail": "full"}), Some("session")),
        ("estimate_tokens", json!({"session": session, "format": "codex", "messages": []}), None),
        ("summarize_history", json!({"session": session, "style": "long"}), Some("session")),
        ("recall", json!({"query": "parser", "scope": "moon"}), Some("query")),
        ("recall", json!({"query": "parser", "range": "many"}), Some("query")),
    ] {
        let said = client.result(tool, arguments.clone());
        if said["isError"] != true {
            continue;
        }
        let said = said["content"][0]["text"].as_str().unwrap();
        let works = example_of(said, tool);
        assert_ne!(works, arguments, "{said}");
        client.call(tool, works.clone());
        if let Some(name) = kept {
            let own = arguments.get(name).or_else(|| arguments.get("path")).unwrap();
            assert_eq!(&works[name], own, "{said}");
        }
    }
    // Where there is a newest session, it is named.
    let mut here = Client::start(|home, _| {
        let folder = home.join(".codex/sessions/2026/01/02");
        std::fs::create_dir_all(&folder).unwrap();
        let text = std::fs::read_to_string(example("codex.jsonl")).unwrap();
        let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        let old = first["payload"]["cwd"].as_str().unwrap();
        let home = std::fs::canonicalize(home).unwrap();
        let name = format!("rollout-2026-01-02T00-00-00-{THREAD}.jsonl");
        std::fs::write(folder.join(name), text.replace(old, home.to_str().unwrap())).unwrap();
    });
    here.handshake();
    let said = here.refusal("estimate_tokens", json!({"session": "/no/such.jsonl"}));
    assert_eq!(example_of(&said, "estimate_tokens"), json!({"session": "latest"}));
    let web = Web::start(|_, _| {});
    let result = web.call("estimate_tokens", json!({"messages": "x", "detail": "full"}), &[]);
    let said = result["content"][0]["text"].as_str().unwrap().to_owned();
    let result = web.call("estimate_tokens", example_of(&said, "estimate_tokens"), &[]);
    assert_ne!(result["isError"], true, "{result}");
}

#[test]
fn remedies_name_arguments() {
    let mut client = Client::legacy();
    let odd = client.home.path().join("odd.txt");
    std::fs::write(&odd, "neither a session nor messages").unwrap();
    let outside = client.home.path().join("outside.jsonl");
    std::fs::copy(example("claude-code.jsonl"), &outside).unwrap();
    for (tool, arguments, expected) in [
        ("estimate_tokens", json!({"session": odd}), "`format`"),
        ("summarize_history", json!({"session": outside, "to": "session"}), r#""to": "file""#),
        ("summarize_history", json!({"session": example("pi.jsonl"), "to": "session"}), "\"file\""),
    ] {
        let said = client.refusal(tool, arguments.clone());
        assert!(said.contains(expected) && !said.contains("--"), "{arguments}: {said}");
    }
}

#[test]
fn a_call_that_is_none_is_told_so() {
    for mut client in [Client::legacy(), Client::modern()] {
        for (params, expected) in [
            (
                json!({"name": "estimate_tokens", "arguments": ["x"]}),
                "arguments: expected an object, such as",
            ),
            (json!({"name": "estimate_tokens", "arguments": "{}"}), "found a text"),
            (json!({"arguments": {}}), "name: expected the name of a tool"),
            (json!({"name": 7}), "found a number"),
        ] {
            let error = client.request("tools/call", params.clone()).unwrap_err();
            assert_eq!(error["code"], -32602, "{params}: {error}");
            assert!(error["message"].as_str().unwrap().contains(expected), "{params}: {error}");
        }
        assert_eq!(client.request("no/such", json!({})).unwrap_err()["code"], -32601);
    }
}

#[test]
fn doubtful_sizes_are_said() {
    let mut client = Client::legacy();
    let session = example("codex.jsonl");
    for budget in [json!(20), json!("20")] {
        let answer = client.call("summarize_history", json!({"session": session, "budget": budget}));
        assert!(warnings(&answer).contains(r#"20 means 20 tokens; a share is \"20%\""#), "{answer}");
    }
    let answer = client.call("find_split_point", json!({"session": session, "keep": 30}));
    assert!(warnings(&answer).contains("keep: 30 means 30 tokens"), "{answer}");
    for budget in [json!("20%"), json!(4000)] {
        let answer = client.call("summarize_history", json!({"session": session, "budget": budget}));
        assert!(!warnings(&answer).contains("means"), "{answer}");
    }
    for arguments in [json!({"session": session, "detail": "full"}), json!({"text": "x", "detail": "full"})] {
        let said = client.refusal("estimate_tokens", arguments);
        assert!(said.contains(r#"detail: expected concise or detailed, found "full""#), "{said}");
    }
}

/// What an agent sends: outputs that come in one message with the user's words, files that were read.
fn mixed() -> Vec<Value> {
    let output = "fn main() { println!(\"hello\"); }\n".repeat(400);
    let mut messages = vec![json!({"role": "user", "content": "Read all files and say what they do."})];
    for turn in 0..4 {
        let id = format!("toolu_{turn}");
        let input = json!({"file_path": format!("/p/src/part{turn}.rs")});
        messages.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Read", "input": input}]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": id, "content": format!("{turn}: {output}")},
            {"type": "text", "text": format!("And never touch part {turn}.")},
        ]}));
    }
    messages.push(json!({"role": "assistant", "content": "They all print a greeting."}));
    messages.push(json!({"role": "user", "content": "Go on."}));
    messages
}

#[test]
fn what_is_to_be_spliced_in_is_valid_whatever_the_messages_mix() {
    let mut client = Client::legacy();
    let messages = mixed();
    for (profile, _) in epitome::profiles::BUILT_IN {
        let answer = client.call("summarize_history", json!({"messages": messages, "profile": profile}));
        if answer["status"] == "noop" {
            continue;
        }
        assert_eq!(answer["status"], "compacted", "{profile}: {answer}");
        let replace = &answer["replace"];
        let at =
            |name: &str| replace[name].as_u64().unwrap_or_else(|| panic!("{profile}: {answer}")) as usize;
        let mut after = messages[..at("from")].to_vec();
        after.extend(replace["with"].as_array().unwrap().iter().cloned());
        after.extend_from_slice(&messages[at("to")..]);
        let bytes = Value::Array(after).to_string();
        let found =
            epitome::sessions::validate::check(epitome::sessions::Format::ANTHROPIC, bytes.as_bytes());
        assert_eq!(found, [], "{profile}: {bytes}");
    }
}

#[test]
fn a_file_that_is_no_session_is_not_quoted() {
    let mut client = Client::start(|home, _| {
        std::fs::write(home.join(".env"), "API_KEY=sk-proj-0123456789abcdef0123456789abcdef\n").unwrap();
    });
    client.handshake();
    let said = client.refusal("estimate_tokens", json!({"session": client.home.path().join(".env")}));
    assert!(said.contains("API_KEY") && !said.contains("sk-proj"), "{said}");
}

#[test]
fn of_several_sessions_the_example_names_one() {
    let ids = ["22222222-2222-4222-8222-222222222222", "33333333-3333-4333-8333-333333333333"];
    let mut client = Client::start(|home, command| {
        let home = std::fs::canonicalize(home).unwrap();
        let slug: String = home.display().to_string().replace(|it: char| !it.is_ascii_alphanumeric(), "-");
        let folder = home.join(".claude/projects").join(slug);
        std::fs::create_dir_all(&folder).unwrap();
        for id in ids {
            std::fs::copy(example("claude-code.jsonl"), folder.join(format!("{id}.jsonl"))).unwrap();
        }
        command.current_dir(&home).env("CLAUDECODE", "1");
    });
    client.handshake();
    let said = client.refusal("summarize_history", json!({}));
    assert!(said.contains("several sessions match"), "{said}");
    let call = example_of(&said, "summarize_history");
    assert!(ids.contains(&call["session"].as_str().unwrap()), "{said}");
    client.call("summarize_history", call);
}

#[test]
fn an_undo_with_nothing_to_undo_names_no_other_call() {
    let mut client = with_a_session();
    let said = client.refusal("summarize_history", json!({"to": "undo"}));
    assert!(said.contains("expected a compaction") && !said.contains("A call that works"), "{said}");
    let said = client.refusal("summarize_history", json!({"to": "undo", "session": "no-such-session"}));
    assert!(said.contains("no-such-session") && !said.contains("A call that works"), "{said}");
}

#[test]
fn an_undo_takes_back_what_is_named_and_nothing_else() {
    let ids = ["22222222-2222-4222-8222-222222222222", "33333333-3333-4333-8333-333333333333"];
    let mut client = Client::start(|home, command| {
        let home = std::fs::canonicalize(home).unwrap();
        let folder = home.join(".claude/projects/-p");
        std::fs::create_dir_all(&folder).unwrap();
        for id in ids {
            std::fs::copy(example("claude-code.jsonl"), folder.join(format!("{id}.jsonl"))).unwrap();
        }
        command.current_dir(&home);
    });
    client.handshake();
    let pruned = |client: &mut Client, id: &str| {
        client.call("summarize_history", json!({"session": id, "to": "session", "budget": "30%"}))
    };
    let done = ids.map(|it| pruned(&mut client, it));
    for arguments in [
        json!({"to": "undo", "sesion": ids[0]}),
        json!({"to": "undo", "session": ids[0], "handle": done[1]["handle"]}),
        json!({"to": "undo", "messages": example_messages("anthropic.json")}),
    ] {
        client.refusal("summarize_history", arguments);
    }
    for id in [ids[0], done[1]["session_id"].as_str().unwrap()] {
        let undone = client.call("summarize_history", json!({"to": "undo", "session": id}));
        let handle = &done[usize::from(id != ids[0])]["handle"];
        assert!(
            undone["handle"] == *handle || undone["session_id"] == ids[usize::from(id != ids[0])],
            "{undone} {done:?}"
        );
    }
}
