//! Summaries that the client's own model writes, in two calls or by sampling, and those that a provider writes while the
//! client watches or walks away.

use serde_json::{Value, json};

use super::Client;
use crate::summarizer::server::{Does, KEY, events, serve, stream};
use epitome::compaction::summary::model::Api;

fn messages() -> Vec<Value> {
    let mut out = vec![
        json!({"role": "user", "content": "Fix the parser in src/parse.rs. Never touch the files in vendor/, they are not ours."}),
    ];
    for number in 0..60 {
        let text = format!("Step {number}: {}", "I looked at the parser and wrote it down. ".repeat(20));
        out.push(json!({"role": "assistant", "content": text}));
        out.push(json!({"role": "user", "content": format!("Go on with step {number}, please.")}));
    }
    out
}

const WRITTEN: &str = "<summary>\n## Goal\n- Fix the parser in src/parse.rs\n## Rules\n- Never touch the files in vendor/\n## Last request and what is open\n- Go on with the steps\n## State of the work\n- the parser was looked at step by step\n</summary>";

/// A server whose user configured a provider.
fn configured(base: &str) -> Client {
    let mut client = Client::start(|home, command| {
        let folder = home.join(".config/epitome");
        std::fs::create_dir_all(&folder).unwrap();
        let config =
            format!("[summarizer]\nuse = \"anthropic\"\n[summarizer.anthropic]\nbase-url = \"{base}\"\n");
        std::fs::write(folder.join("config.toml"), config).unwrap();
        command.env("ANTHROPIC_API_KEY", KEY);
    });
    client.handshake();
    client
}

#[test]
fn the_second_call_says_where_the_result_goes_as_the_first_does() {
    let mut client = Client::legacy();
    for (session, first, second, ends, warns) in [
        ("codex.jsonl", json!({}), json!({"to": "file"}), ".jsonl", false),
        ("pi.jsonl", json!({"to": "file"}), json!({}), ".json", true),
    ] {
        let mut ask = json!({"session": super::example(session), "budget": "20%", "summarizer": "host"});
        ask.as_object_mut().unwrap().extend(first.as_object().unwrap().clone());
        let mut last = client.call("summarize_history", ask);
        for _ in 0..2 {
            let mut answer = json!({"handle": last["handle"], "answer": "Sure!"});
            answer.as_object_mut().unwrap().extend(second.as_object().unwrap().clone());
            last = client.call("summarize_history", answer);
        }
        assert!(last["output"].as_str().is_some_and(|it| it.ends_with(ends)), "{session}: {last}");
        assert_eq!(last["warnings"].to_string().contains("are read-only"), warns, "{session}: {last}");
    }
}

#[test]
fn the_agents_own_model_writes_in_two_calls() {
    let mut client = Client::legacy();
    let asked = client
        .call("summarize_history", json!({"messages": messages(), "budget": "20%", "summarizer": "host"}));
    assert_eq!(asked["status"], "needs_answer", "{asked}");
    assert!(asked["ask"].as_str().unwrap().contains("## Rules"), "{asked}");
    assert_eq!(asked["next"]["who"], "model");
    let handle = asked["handle"].as_str().unwrap().to_owned();
    // What does not do is asked for once more, under a new handle.
    let again = client.call("summarize_history", json!({"handle": handle, "answer": "Sure!"}));
    assert_eq!(again["status"], "needs_answer", "{again}");
    assert!(again["ask"].as_str().unwrap().contains("cannot be used"), "{again}");
    let handle = again["handle"].as_str().unwrap();
    let done = client.call("summarize_history", json!({"handle": handle, "answer": WRITTEN}));
    assert_eq!((done["status"].as_str(), done["summarizer"].as_str()), (Some("compacted"), Some("host")));
    assert!(done["replace"]["with"].to_string().contains("looked at step by step"), "{done}");
    // And what does not do twice is not used.
    let asked = client
        .call("summarize_history", json!({"messages": messages(), "budget": "20%", "summarizer": "host"}));
    let mut last = asked;
    for _ in 0..2 {
        last = client.call("summarize_history", json!({"handle": last["handle"], "answer": "Sure!"}));
    }
    assert_eq!(last["summarizer"], "offline", "{last}");
    assert!(last["warnings"].to_string().contains("the offline summary was written instead"), "{last}");
    let refused = client.refusal("summarize_history", json!({"answer": WRITTEN}));
    assert!(refused.contains("expected the handle from the first call"), "{refused}");
}

#[test]
fn a_session_may_grow_before_the_answer() {
    let mut client = Client::legacy();
    let path = client.home.path().join("session.json");
    let mut all = messages();
    std::fs::write(&path, Value::from(all.clone()).to_string()).unwrap();
    let asked = client.call(
        "summarize_history",
        json!({"session": path, "budget": "20%", "summarizer": "host", "to": "file"}),
    );
    all.push(json!({"role": "assistant", "content": "Something new was said."}));
    std::fs::write(&path, Value::from(all).to_string()).unwrap();
    let done = client.call("summarize_history", json!({"handle": asked["handle"], "answer": WRITTEN}));
    assert_eq!(done["status"], "compacted", "{done}");
    let written = std::fs::read_to_string(done["output"].as_str().unwrap()).unwrap();
    assert!(written.contains("looked at step by step") && written.contains("Something new was said."));
    std::fs::write(&path, "[{\"role\":\"user\",\"content\":\"something else\"}]").unwrap();
    let refused = client.refusal("summarize_history", json!({"handle": asked["handle"], "answer": WRITTEN}));
    assert!(refused.contains("start over"), "{refused}");
}

#[test]
fn a_client_that_samples_is_asked_in_one_call() {
    let mut client = Client::start(|_, _| {});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"sampling": {}}, "clientInfo": {"name": "test", "version": "1"}});
    client.request("initialize", hello).unwrap();
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    for answers in [true, false] {
        client.send(&json!({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {
            "name": "summarize_history", "arguments": {"messages": messages(), "budget": "20%", "summarizer": "host"}}}));
        let asked = client.read();
        assert_eq!(asked["method"], "sampling/createMessage", "{asked}");
        assert!(asked["params"]["messages"][0]["content"]["text"].as_str().unwrap().contains("Step 3:"));
        assert!(asked["params"].get("tools").is_none());
        let reply = if answers {
            json!({"result": {"model": "theirs-1", "role": "assistant", "stopReason": "endTurn", "content": {"type": "text", "text": WRITTEN}}})
        } else {
            json!({"error": {"code": -1, "message": "User rejected sampling request"}})
        };
        let mut reply = reply;
        reply["jsonrpc"] = json!("2.0");
        reply["id"] = asked["id"].clone();
        client.send(&reply);
        let done = client.read()["result"]["structuredContent"].take();
        if answers {
            assert_eq!(done["summarizer"], "host/theirs-1", "{done}");
            assert!(done["replace"]["with"].to_string().contains("looked at step by step"), "{done}");
        } else {
            assert_eq!(done["summarizer"], "offline", "{done}");
            assert!(done["warnings"].to_string().contains("User rejected sampling request"), "{done}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_is_asked_only_where_the_user_configured_one() {
    let (address, log) = serve(|_, _| Does::Sends(stream(Api::Anthropic, WRITTEN))).await;
    let base = format!("http://{address}");
    tokio::task::block_in_place(|| {
        let mut client = configured(&base);
        let hint = |client: &mut Client| {
            let tools = client.request("tools/list", json!({})).unwrap();
            let tools = tools["tools"].as_array().unwrap().clone();
            let mine = tools.into_iter().find(|it| it["name"] == "summarize_history").unwrap();
            mine["annotations"]["openWorldHint"].clone()
        };
        assert_eq!(hint(&mut client), json!(true));
        let done = client.call("summarize_history", json!({"messages": messages(), "budget": "20%"}));
        assert_eq!(done["summarizer"], "anthropic/model-x-1", "{done}");
        assert_eq!(done["usage"]["requests"], 1);
        let refused = client.refusal(
            "summarize_history",
            json!({"messages": messages(), "budget": "20%", "summarizer": "openai"}),
        );
        assert!(refused.contains("the user's configuration names"), "{refused}");
        let mut client = Client::legacy();
        assert_eq!(hint(&mut client), json!(false));
        let done = client.call(
            "summarize_history",
            json!({"messages": messages(), "budget": "20%", "summarizer": "auto"}),
        );
        assert_eq!(done["summarizer"], "offline", "{done}");
    });
    assert_eq!(log.requests.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_walks_away_stops_the_request() {
    let (address, log) = serve(|_, _| {
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_vec();
        Does::Hangs([head, events(Api::Anthropic, WRITTEN)[..5].concat().into_bytes()].concat())
    })
    .await;
    let base = format!("http://{address}");
    let mut client = tokio::task::block_in_place(|| configured(&base));
    tokio::task::block_in_place(|| {
        client.send(&json!({"jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {
            "name": "summarize_history", "_meta": {"progressToken": "p"},
            "arguments": {"messages": messages(), "budget": "20%"}}}));
    });
    log.came.notified().await;
    tokio::task::block_in_place(|| {
        // Signs of life come until one says what the model does; the first were sent before it was asked.
        while !client.read()["params"]["message"].to_string().contains("the model") {}
        client.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "call"}}),
        );
    });
    // The provider sees the connection end; if it did not, this would not.
    log.gone.notified().await;
}
