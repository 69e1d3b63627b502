//! The server over standard input and output, as a client sees it.

use std::collections::BTreeMap;

use super::{Client, example, example_messages, violations};
use epitome::tokens::Estimator;
use serde_json::{Value, json};

fn tools(client: &mut Client) -> Vec<Value> {
    client.request("tools/list", json!({})).unwrap()["tools"].as_array().unwrap().clone()
}

#[test]
fn speaks_both_eras() {
    let mut legacy = Client::start(|_, _| {});
    let hello = legacy.handshake();
    assert_eq!(hello["protocolVersion"], "2025-11-25");
    assert_eq!(hello["serverInfo"]["name"], "epitome");
    let mut modern = Client::modern();
    let found = modern.request("server/discover", json!({})).unwrap();
    assert!(found["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")), "{found}");
    assert_eq!(tools(&mut legacy), tools(&mut modern));
    for client in [&mut legacy, &mut modern] {
        let list = client.request("tools/list", json!({})).unwrap();
        assert!(list["ttlMs"].as_u64().unwrap() > 0);
        let answer = client.call("estimate_tokens", json!({"text": "hello world"}));
        assert_eq!(answer["tokens"], 2);
    }
    // A discover that is refused or answered may be followed by the handshake on the same process.
    let mut both = Client::modern();
    both.request("server/discover", json!({})).unwrap();
    both.handshake();
    assert_eq!(both.call("estimate_tokens", json!({"text": "hello"}))["tokens"], 1);
}

#[test]
fn health_checks_are_no_error() {
    let (rest, status) = Client::start(|_, _| {}).end();
    assert_eq!((rest.as_str(), status.code()), ("", Some(0)));
    let (_, status) = Client::legacy().end();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn what_was_asked_before_the_end_is_answered() {
    let mut client = Client::legacy();
    client.send(&json!({"jsonrpc": "2.0", "id": "last", "method": "tools/call", "params": {
        "name": "estimate_tokens", "arguments": {"session": example("codex.jsonl")}}}));
    let (rest, status) = client.end();
    let answer: Value = serde_json::from_str(rest.trim()).unwrap();
    assert_eq!((&answer["id"], answer["result"]["isError"].as_bool()), (&json!("last"), Some(false)));
    assert_eq!(status.code(), Some(0));
}

/// Who only listens is answered as well, and the server ends by itself: rmcp waits seconds for what is not answered.
#[test]
fn a_subscription_ends_with_the_input() {
    let mut client = Client::modern();
    client.request("server/discover", json!({})).unwrap();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    });
    client.send(&json!({"jsonrpc": "2.0", "id": "ear", "method": "subscriptions/listen", "params": {
        "_meta": meta, "notifications": {"promptsListChanged": true}}}));
    assert_eq!(client.read()["method"], "notifications/subscriptions/acknowledged");
    let (rest, status) = client.end();
    let answer: Value = serde_json::from_str(rest.trim()).unwrap();
    assert_eq!((&answer["id"], answer["error"].is_null()), (&json!("ear"), true));
    assert_eq!(status.code(), Some(0));
}

#[test]
fn answers_nonsense() {
    let mut client = Client::start(|_, _| {});
    // Before the handshake: what is no request is passed over, what is one is refused.
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    client.send(&json!({"jsonrpc": "2.0", "id": 8, "result": {}}));
    assert!(client.request("tools/list", json!({})).is_err());
    assert!(client.request("no/such/method", json!({})).is_err());
    client.handshake();
    for (line, code, id) in [
        ("{oh no", -32700, json!(null)),
        ("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", -32600, json!(null)),
        ("{\"jsonrpc\":\"2.0\",\"id\":\"x\"}", -32600, json!("x")),
        ("{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"no/such\"}", -32601, json!(9)),
    ] {
        client.send_line(line.as_bytes());
        let answer = client.read();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{line}: {answer}");
    }
    client.send_line(b"");
    let error = client.request("tools/call", json!({"name": "nope", "arguments": {}})).unwrap_err();
    assert_eq!(error["code"], -32602);
    assert!(error["message"].as_str().unwrap().contains("summarize_history"), "{error}");
    assert_eq!(client.request("tools/list", json!({"cursor": "bogus"})).unwrap_err()["code"], -32602);
    assert_eq!(client.call("estimate_tokens", json!({"text": "hello"}))["tokens"], 1);
}

#[test]
fn wrong_versions_are_negotiated() {
    let mut client = Client::start(|_, _| {});
    let hello = json!({"protocolVersion": "2099-01-01", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    assert_eq!(client.request("initialize", hello).unwrap()["protocolVersion"], "2025-11-25");
}

#[test]
fn long_lines_are_answered() {
    let mut client = Client::legacy();
    // Longer than rmcp's own transport takes.
    let text = "word ".repeat(17 << 18);
    let answer = client.call("estimate_tokens", json!({"text": text, "tokenizer": "bytes4"}));
    assert_eq!(answer["tokens"], (text.len() as u64).div_ceil(4));
    // Longer than ours takes: an error with the id, wherever that stands.
    for (before, after) in [
        (r#"{"jsonrpc":"2.0","id":"long","x":""#, r#""}"#),
        (r#"{"x":""#, r#"","jsonrpc":"2.0","id":"long"}"#),
    ] {
        let line = [before.as_bytes(), &vec![b'x'; 129 << 20], after.as_bytes()].concat();
        client.send_line(&line);
        let answer = client.read();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("long"), &json!(-32600)), "{answer}");
    }
    assert_eq!(client.call("estimate_tokens", json!({"text": "hello"}))["tokens"], 1);
}

#[test]
fn cancelled_calls_stay_unanswered_and_others_go_on() {
    let mut client = Client::legacy();
    let text = "some text to be counted ".repeat(1 << 17);
    let call = |id: u64, text: &str| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
            "name": "estimate_tokens", "arguments": {"text": text, "tokenizer": "o200k"}}})
    };
    // More than work at once, so that the last one waits.
    for id in 100..140 {
        client.send(&call(id, &text));
    }
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 139}}));
    let mut answered: Vec<u64> = (100..139).map(|_| client.read()["id"].as_u64().unwrap()).collect();
    answered.sort_unstable();
    assert_eq!(answered, (100..139).collect::<Vec<_>>());
    // Of a call that has ended, as one client does after each.
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 100}}));
    assert_eq!(client.call("estimate_tokens", json!({"text": "hello"}))["tokens"], 1);
}

#[test]
#[cfg(unix)]
fn signals_end_it_quietly() {
    for signal in ["INT", "TERM"] {
        let mut client = Client::legacy();
        let status = std::process::Command::new("kill")
            .args(["-s", signal, &client.id().to_string()])
            .status()
            .unwrap();
        assert!(status.success());
        assert_eq!(client.wait().code(), Some(0), "{signal}");
    }
}

/// Every schema of a tool, with its place.
fn walk(schema: &Value, at: &str, visit: &mut dyn FnMut(&str, &Value)) {
    visit(at, schema);
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        walk(schema, &format!("{at}.{name}"), visit);
    }
    if let Some(items) = schema.get("items") {
        walk(items, &format!("{at}[]"), visit);
    }
}

#[test]
fn schemas_are_flat_and_portable() {
    let allowed = ["type", "description", "enum", "items", "properties", "required"];
    for tool in tools(&mut Client::legacy()) {
        for side in ["inputSchema", "outputSchema"] {
            walk(&tool[side], &format!("{}.{side}", tool["name"]), &mut |at, schema| {
                let schema = schema.as_object().unwrap_or_else(|| panic!("{at}: expected an object schema"));
                let odd: Vec<_> = schema.keys().filter(|it| !allowed.contains(&it.as_str())).collect();
                assert!(odd.is_empty(), "{at}: {odd:?}");
                assert!(schema["type"].is_string(), "{at}");
            });
        }
        assert!(tool["inputSchema"].get("required").is_none(), "every parameter is optional");
        let name = tool["name"].as_str().unwrap();
        assert!(name.len() <= 30 && name.bytes().all(|it| it.is_ascii_lowercase() || it == b'_'), "{name}");
    }
}

#[test]
fn annotations_let_every_client_call() {
    let mut always = Vec::new();
    for tool in tools(&mut Client::legacy()) {
        let hints = &tool["annotations"];
        let said = |name: &str| {
            hints[name].as_bool().unwrap_or_else(|| panic!("{}: {name} is not said", tool["name"]))
        };
        assert!(said("readOnlyHint") || (!said("destructiveHint") && !said("openWorldHint")), "{tool}");
        assert!(!said("openWorldHint"), "no provider is configured");
        assert!(tool["title"].is_string());
        if tool["_meta"]["anthropic/alwaysLoad"] == json!(true) {
            always.push(tool["name"].as_str().unwrap().to_owned());
        }
        assert!(tool["_meta"]["anthropic/searchHint"].is_string());
    }
    assert_eq!(always, ["summarize_history"]);
}

/// What each client sends its model of a tool, as it was seen on the wire.
fn forms(tool: &Value) -> BTreeMap<&'static str, Value> {
    let name = tool["name"].as_str().unwrap();
    let (description, schema) = (&tool["description"], &tool["inputSchema"]);
    let mut strict = schema.clone();
    strict["additionalProperties"] = json!(false);
    let mut waiting = schema.clone();
    waiting["properties"]["wait_for_previous"] = json!({"type": "boolean", "description":
        "Set to true to wait for all previously requested tools in this turn to complete before starting. Set to false (or \
         omit) to run in parallel. Use true when this tool depends on the output of previous tools."});
    BTreeMap::from([
        (
            "claude-code",
            json!({"name": format!("mcp__epitome__{name}"), "description": description, "input_schema": schema}),
        ),
        (
            "codex",
            json!({"type": "function", "name": name, "description": description, "strict": false, "parameters": strict}),
        ),
        (
            "gemini-cli",
            json!({"name": format!("mcp_epitome_{name}"), "description": description, "parametersJsonSchema": waiting}),
        ),
        (
            "opencode",
            json!({"type": "function", "function": {"name": format!("epitome_{name}"), "description": description, "parameters": strict}}),
        ),
    ])
}

#[test]
fn definitions_cost_little() {
    let count = |value: &Value| Estimator::O200k.text(&value.to_string());
    let mut client = Client::start(|_, _| {});
    let hello = client.handshake();
    let tools = tools(&mut client);
    let outputs: u64 = tools.iter().map(|it| count(&it["outputSchema"])).sum();
    let mut largest = 0;
    for agent in ["claude-code", "codex", "gemini-cli", "opencode"] {
        let input: u64 = tools.iter().map(|it| count(&forms(it)[agent])).sum();
        eprintln!("tool definitions as {agent} sends them: {input} tokens, output schemas {outputs} more");
        largest = largest.max(input);
    }
    assert!(largest <= 1_200, "{largest}");
    assert!(largest + outputs <= 2_000, "{largest} + {outputs}");
    let instructions = hello["instructions"].as_str().unwrap();
    let said = Estimator::O200k.text(instructions);
    eprintln!("instructions: {said} tokens");
    assert!(said <= 120, "{said}");
    let all: String = tools.iter().map(|it| it["description"].as_str().unwrap().to_lowercase()).collect();
    for word in ["compact", "compress", "context window", "full", "clear", "handoff"] {
        assert!(all.contains(word), "a tool search for {word:?} would find nothing");
    }
}

#[test]
fn answers_fit_their_schemas() {
    let mut client = Client::legacy();
    let schemas: BTreeMap<String, Value> = tools(&mut client)
        .iter()
        .map(|it| (it["name"].as_str().unwrap().to_owned(), it["outputSchema"].clone()))
        .collect();
    let mut check = |tool: &str, arguments: Value| {
        let answer = client.call(tool, arguments);
        assert_eq!(violations(&schemas[tool], &answer, tool), Vec::<String>::new());
        assert_eq!(answer["contract"], 1);
        answer
    };
    for name in [
        "claude-code.jsonl",
        "codex.jsonl",
        "gemini-cli.jsonl",
        "opencode.json",
        "pi.jsonl",
        "qwen-code.jsonl",
        "swe-agent.traj",
    ] {
        let session = json!({"session": example(name)});
        check("estimate_tokens", session.clone());
        check("find_split_point", session.clone());
        check("prune_tool_outputs", session.clone());
        check("summarize_history", session);
    }
    check("estimate_tokens", json!({"text": "x"}));
    check(
        "estimate_tokens",
        json!({"session": example("codex.jsonl"), "detail": "detailed", "wait_for_previous": true}),
    );
    let found = check("recall", json!({"query": "nothing holds this"}));
    assert_eq!(found["hits"], json!([]));
    check("recall", json!({}));
}

#[test]
fn messages_come_back_as_an_edit() {
    for name in ["anthropic.json", "openai-chat.json", "openai-responses.json", "gemini.json"] {
        let mut client = Client::legacy();
        let messages = example_messages(name);
        let before = messages.as_array().unwrap();
        let answer = client.call("summarize_history", json!({"messages": messages, "budget": "30%"}));
        assert_eq!(answer["status"], "compacted", "{name}: {answer}");
        let edit = &answer["replace"];
        let (from, to) = (edit["from"].as_u64().unwrap() as usize, edit["to"].as_u64().unwrap() as usize);
        let with = edit["with"].as_array().unwrap();
        let after = [&before[..from], with, &before[to..]].concat();
        assert!(after.len() < before.len(), "{name}");
        assert!(answer.get("summary").is_none(), "the summary is in the edit");
        // What was spliced is a history that can be gone on with, of the size that was said.
        let again = client.call("estimate_tokens", json!({"messages": after}));
        let (said, found) = (answer["tokens_after"].as_f64().unwrap(), again["tokens"].as_f64().unwrap());
        assert!((said - found).abs() <= said * 0.1 + 50.0, "{name}: {said} said, {found} found");
        // The handle in it works.
        let handle = answer["handle"].as_str().unwrap();
        let original = client.call("recall", json!({"handle": handle, "limit": 500}));
        assert_eq!(original["kind"], "session");
        // As a text, as some models pass it.
        let text =
            client.call("estimate_tokens", json!({"messages": Value::Array(after.clone()).to_string()}));
        assert_eq!(text["tokens"], again["tokens"]);
    }
}

#[test]
fn pruned_texts_are_recalled() {
    let mut client = Client::legacy();
    let output = "line of a long log\n".repeat(2_000);
    let mut messages = vec![json!({"role": "user", "content": "Run everything."})];
    for turn in 0..6 {
        let id = format!("call_{turn}");
        messages.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "make"}}]}));
        messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": format!("{turn}: {output}")}]}));
    }
    messages.push(json!({"role": "assistant", "content": "All ran."}));
    messages.push(json!({"role": "user", "content": "Go on."}));
    let answer = client.call("prune_tool_outputs", json!({"messages": messages, "protect_tokens": 1000}));
    let pruned = answer["pruned"].as_array().unwrap();
    assert!(!pruned.is_empty(), "{answer}");
    let first = &pruned[0];
    assert!(
        first["text"].is_string() && first["call_id"].is_string(),
        "an edit needs its text and its place: {first}"
    );
    let back = client.call("recall", json!({"handle": first["handle"], "range": "1-2"}));
    assert!(back["text"].as_str().unwrap().contains("line of a long log"), "{back}");
    let found = client.call("recall", json!({"query": "long log"}));
    assert!(!found["hits"].as_array().unwrap().is_empty(), "{found}");
}

#[test]
fn results_go_to_a_file() {
    let mut client = Client::legacy();
    let answer =
        client.call("summarize_history", json!({"session": example("claude-code.jsonl"), "to": "file"}));
    assert!(answer.get("summary").is_none());
    assert!(Estimator::O200k.text(&answer.to_string()) <= 400, "{answer}");
    let path = answer["output"].as_str().unwrap();
    assert!(std::path::Path::new(path).starts_with(client.home.path()));
    assert!(std::fs::metadata(path).unwrap().len() > 0);
    let again = client.call("estimate_tokens", json!({"session": path}));
    assert!(again["tokens"].as_u64().unwrap() < answer["tokens_before"].as_u64().unwrap());
}

#[test]
fn mistakes_can_be_mended() {
    let mut client = Client::legacy();
    let session = example("codex.jsonl");
    for (tool, arguments, expected) in [
        ("estimate_tokens", json!({"session": "/no/such/file.jsonl"}), "no such file"),
        ("estimate_tokens", json!({"session": "../../etc/passwd"}), "expected"),
        ("estimate_tokens", json!({"session": "-"}), "standard input"),
        ("estimate_tokens", json!({"session": "/dev/zero"}), "a pipe, socket or device"),
        ("estimate_tokens", json!({"messages": "no JSON"}), "expected"),
        ("estimate_tokens", json!({"text": ["a"]}), "text: expected a text"),
        ("find_split_point", json!({"session": session, "profile": "nope"}), "epitome"),
        ("find_split_point", json!({"session": session, "keep": "lots"}), "keep: expected tokens"),
        (
            "prune_tool_outputs",
            json!({"session": session, "protect_tokens": "x"}),
            "protect_tokens: expected a whole number",
        ),
        ("summarize_history", json!({"session": session, "style": "long"}), "style: expected brief"),
        (
            "summarize_history",
            json!({"session": session, "to": "mars"}),
            "to: expected plan, file, session or undo",
        ),
        ("recall", json!({"handle": "nothandle1"}), "handle"),
        ("recall", json!({"query": "x", "scope": "moon"}), "scope: expected"),
        ("estimate_tokens", json!({"session": session, "format": "word"}), "expected a format"),
        ("estimate_tokens", json!({}), "which session"),
    ] {
        let said = client.refusal(tool, arguments.clone());
        assert!(said.contains(expected), "{tool} {arguments}: {said}");
        assert!(said.contains("A call that works") || said.contains("handle"), "{tool} {arguments}: {said}");
    }
}

pub(super) const THREAD: &str = "0199aaaa-0000-7000-8000-000000000001";

/// With a session of Codex that has that id.
pub(super) fn with_a_session() -> Client {
    let mut client = Client::start(|home, _| {
        let folder = home.join(".codex/sessions/2026/01/02");
        std::fs::create_dir_all(&folder).unwrap();
        let text = std::fs::read_to_string(example("codex.jsonl")).unwrap();
        let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        let old = first["payload"]["id"].as_str().unwrap().to_owned();
        let name = format!("rollout-2026-01-02T00-00-00-{THREAD}.jsonl");
        std::fs::write(folder.join(name), text.replace(&old, THREAD)).unwrap();
    });
    client.handshake();
    client
}

#[test]
fn a_thread_of_the_client_is_the_current_session() {
    let mut client = with_a_session();
    let params = json!({"name": "estimate_tokens", "arguments": {}, "_meta": {"threadId": THREAD}});
    let result = client.request("tools/call", params).unwrap();
    assert_eq!(result["structuredContent"]["session"]["id"], THREAD, "{result}");
}

#[test]
fn what_is_typed_is_completed() {
    let mut client = with_a_session();
    let made = client
        .call("summarize_history", json!({"messages": example_messages("anthropic.json"), "budget": "30%"}));
    let handle = made["handle"].as_str().unwrap();
    for (template, argument, typed, expected) in [
        ("session/{id}", "id", "0199", THREAD),
        ("profile/{profile}", "profile", "learn", "learn-claude-code"),
        ("archive/{handle}", "handle", &handle[..3], handle),
        ("snapshot/{handle}", "handle", "", handle),
    ] {
        let params = json!({"ref": {"type": "ref/resource", "uri": format!("epitome://{template}")},
            "argument": {"name": argument, "value": typed}});
        let found = client.request("completion/complete", params).unwrap();
        let values = found["completion"]["values"].as_array().unwrap();
        assert!(values.contains(&json!(expected)), "{template}: {found}");
        assert!(values.iter().all(|it| it.as_str().unwrap().starts_with(typed)), "{template}: {found}");
    }
    let params = json!({"ref": {"type": "ref/prompt", "name": "compact"}, "argument": {"name": "focus", "value": "x"}});
    assert_eq!(client.request("completion/complete", params).unwrap()["completion"]["values"], json!([]));
}

#[test]
fn prompts_and_resources() {
    let mut client = Client::start(|home, _| {
        let folder = home.join(".config/epitome/prompts");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(
            folder.join("tidy.md"),
            "---\ndescription: Tidy up\nargument-hint: what\n---\nTidy $1 of $ARGUMENTS.",
        )
        .unwrap();
    });
    client.handshake();
    let prompts = client.request("prompts/list", json!({})).unwrap();
    let names: Vec<&str> =
        prompts["prompts"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names[..3], ["compact", "handoff", "context"]);
    assert_eq!(names.last(), Some(&"tidy"));
    // Every one can be had.
    for prompt in prompts["prompts"].as_array().unwrap() {
        let required =
            prompt["arguments"].as_array().into_iter().flatten().filter(|it| it["required"] == true);
        let arguments: serde_json::Map<String, Value> =
            required.map(|it| (it["name"].as_str().unwrap().to_owned(), json!("x"))).collect();
        client.request("prompts/get", json!({"name": prompt["name"], "arguments": arguments})).unwrap();
    }
    let get = |client: &mut Client, name: &str, arguments: Value| {
        let found = client.request("prompts/get", json!({"name": name, "arguments": arguments}))?;
        Ok::<_, Value>(found["messages"][0]["content"]["text"].as_str().unwrap().to_owned())
    };
    assert_eq!(get(&mut client, "tidy", json!({"arguments": "a b"})).unwrap(), "Tidy a of a b.");
    let focused = get(&mut client, "compact", json!({"focus": "the \"tests\""})).unwrap();
    assert!(focused.contains(r#""focus": "the \"tests\"""#), "{focused}");
    assert_eq!(get(&mut client, "handoff", json!({})).unwrap_err()["code"], -32602);
    assert_eq!(get(&mut client, "nope", json!({})).unwrap_err()["code"], -32602);

    let made = client
        .call("summarize_history", json!({"messages": example_messages("anthropic.json"), "budget": "30%"}));
    let handle = made["handle"].as_str().unwrap().to_owned();
    let read = |client: &mut Client, uri: String| {
        let found = client.request("resources/read", json!({"uri": uri}))?;
        Ok::<_, Value>(found["contents"][0]["text"].as_str().unwrap().to_owned())
    };
    assert!(read(&mut client, "epitome://profiles".into()).unwrap().contains("\"epitome\""));
    assert!(!read(&mut client, format!("epitome://archive/{handle}")).unwrap().is_empty());
    for uri in [
        "epitome://profile/nope",
        "epitome://profile/../x.toml",
        "epitome://nope",
        "file:///etc/passwd",
        "epitome://archive/nothandle1",
        "epitome://session/",
    ] {
        assert!(read(&mut client, uri.into()).is_err(), "{uri}");
    }
    let listed = client.request("resources/list", json!({})).unwrap();
    assert_eq!(listed["resources"][0]["uri"], "epitome://profiles");
    let templates = client.request("resources/templates/list", json!({})).unwrap();
    assert_eq!(templates["resourceTemplates"].as_array().unwrap().len(), 4);
    let profile = read(&mut client, "epitome://profile/codex".into()).unwrap();
    assert_eq!(toml::from_str::<toml::Table>(&profile).unwrap()["name"].as_str(), Some("codex"));
}

#[test]
fn new_prompts_are_announced() {
    let mut client =
        Client::start(|home, _| std::fs::create_dir_all(home.join(".config/epitome/prompts")).unwrap());
    client.handshake();
    // The folder is looked at from here on.
    client.request("prompts/list", json!({})).unwrap();
    std::fs::write(client.home.path().join(".config/epitome/prompts/new.md"), "New").unwrap();
    assert_eq!(client.read()["method"], "notifications/prompts/list_changed");
}

/// A small call is answered where it was read; by rmcp where it opens the session, or says a version and not the rest.
#[test]
fn a_small_call_is_answered_alike_on_both_ways() {
    for arguments in [
        json!({"text": "some words"}),
        json!({"text": "some words", "tokenizer": "bytes4", "model": "claude-opus-4", "detail": "detailed"}),
        json!({"text": "some words", "tokenizer": "no such"}),
        json!({"text": "some words", "detail": {}}),
    ] {
        let params = json!({"name": "estimate_tokens", "arguments": arguments});
        let mut by_rmcp = params.clone();
        by_rmcp["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2025-06-18");
        let mut legacy = Client::legacy();
        let answer = legacy.request("tools/call", params.clone());
        assert_eq!(answer, legacy.request("tools/call", by_rmcp));
        assert_eq!(answer.unwrap().get("resultType"), None);
        let mut modern = Client::modern();
        let by_rmcp = modern.request("tools/call", params.clone());
        let answer = modern.request("tools/call", params);
        assert_eq!(answer, by_rmcp);
        assert_eq!(answer.unwrap()["resultType"], "complete");
    }
}
