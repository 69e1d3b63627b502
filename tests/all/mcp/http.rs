//! The server over HTTP, as clients and others see it.

use std::io::{Read, Write};

use super::{Web, example, example_messages};
use serde_json::{Value, json};

const ANNA: &str = "anna-0123456789abcdef";
const BEN: &str = "ben-fedcba9876543210";

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

fn with_tokens() -> Web {
    Web::start(|home, command| {
        let file = home.join("tokens");
        std::fs::write(&file, format!("anna:{ANNA}\nben:{BEN}\n")).unwrap();
        command.arg("--token-file").arg(file);
    })
}

/// Starts a session of the older protocol; its id.
fn session(web: &Web) -> Result<String, u16> {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let headers = [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
    let answer = web.request("POST", "/mcp", &headers, hello.to_string().as_bytes());
    match answer.status {
        200 => Ok(answer.header("mcp-session-id").unwrap().to_owned()),
        other => Err(other),
    }
}

fn in_session(web: &Web, session: &str, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params}).to_string();
    let headers = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("Mcp-Session-Id", session),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    let answer = web.request("POST", "/mcp", &headers, body.as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()
}

#[test]
fn speaks_both_eras() {
    let web = Web::start(|_, _| {});
    let list = web.modern("tools/list", json!({}), &[]);
    assert_eq!(list.status, 200, "{}", list.body);
    assert!(list.header("content-type").unwrap().starts_with("application/json"));
    let modern = list.json()["result"]["tools"].clone();
    let session = session(&web).unwrap();
    assert_eq!(in_session(&web, &session, "tools/list", json!({}))["result"]["tools"], modern);
    let called = in_session(
        &web,
        &session,
        "tools/call",
        json!({"name": "estimate_tokens", "arguments": {"text": "hello world"}}),
    );
    assert_eq!(called["result"]["structuredContent"]["tokens"], 2);
    let called = web.call("estimate_tokens", json!({"text": "hello world"}), &[]);
    assert_eq!(called["structuredContent"]["tokens"], 2);
}

#[test]
fn strangers_are_refused() {
    let web = Web::start(|_, _| {});
    let port = web.port;
    let get = |headers: &[(&str, &str)]| web.request("POST", "/mcp", headers, b"{}").status;
    assert_eq!(get(&[("Host", "evil")]), 403);
    assert_eq!(get(&[("Host", &format!("evil.example:{port}"))]), 403);
    assert_eq!(get(&[("Origin", "http://evil")]), 403);
    assert_eq!(get(&[("Origin", "null")]), 403);
    assert_ne!(get(&[("Origin", &format!("http://localhost:{port}"))]), 403);
    assert_eq!(web.raw(b"GET /health HTTP/1.0\r\n\r\n").status, 200);
    assert_eq!(web.request("GET", "/sse", &[("Host", "evil")], b"").status, 403);
    assert_eq!(web.request("PUT", "/sessions", &[("Origin", "http://evil")], b"[]").status, 403);
    assert_eq!(web.request("GET", "/metrics", &[("Host", "evil")], b"").status, 403);
}

#[test]
fn nonsense_is_answered() {
    let web = Web::start(|_, _| {});
    let post = |body: &[u8]| {
        let headers =
            [("Content-Type", "application/json"), ("Accept", "application/json, text/event-stream")];
        web.request("POST", "/mcp", &headers, body).status
    };
    for body in [b"{oops".as_slice(), b"", b"[]", b"7", b"\xff\xfe"] {
        assert!((400..500).contains(&post(body)), "{body:?}");
    }
    assert!(
        (400..500).contains(&web.request("POST", "/mcp", &[("Content-Type", "text/plain")], b"{}").status)
    );
    // What is not there any more was ended.
    assert_eq!(web.request("DELETE", "/mcp", &[("Mcp-Session-Id", "nope")], b"").status, 202);
    assert_eq!(web.request("GET", "/nowhere", &[], b"").status, 404);
    assert!((400..500).contains(&web.raw(b"NONSENSE\r\n\r\n").status));
    // Too large, said or shown.
    assert_eq!(web.request("POST", "/mcp", &[("Content-Length", "99999999999")], b"").status, 413);
    let large = format!("X-Large: {}\r\n", "x".repeat(40_000));
    let head = format!("GET /mcp HTTP/1.1\r\nHost: localhost\r\n{large}\r\n");
    assert_eq!(web.raw(head.as_bytes()).status, 431);
    let unknown = web.modern("no/such/method", json!({}), &[]);
    assert_eq!(unknown.json()["error"]["code"], -32601);
    assert_eq!(web.call("estimate_tokens", json!({"text": "hello"}), &[])["structuredContent"]["tokens"], 1);
}

#[test]
fn large_arguments_are_taken() {
    let web = Web::start(|_, _| {});
    let text = "word ".repeat(10 << 20);
    let answer = web.call("estimate_tokens", json!({"text": text, "tokenizer": "bytes4"}), &[]);
    assert_eq!(answer["structuredContent"]["tokens"], (text.len() as u64).div_ceil(4));
}

#[test]
fn tokens_are_needed_told_apart_and_revoked() {
    let web = with_tokens();
    let status = |headers: &[(&str, &str)]| web.request("GET", "/metrics", headers, b"").status;
    assert_eq!(status(&[]), 401);
    assert_eq!(status(&[("Authorization", "Bearer wrong-0123456789")]), 401);
    assert_eq!(status(&[("Authorization", "Basic YTpi")]), 401);
    assert_eq!(status(&[("Authorization", &bearer(ANNA))]), 200);
    assert_eq!(web.request("GET", "/health", &[], b"").status, 200);
    let refused = web.modern("tools/list", json!({}), &[]);
    assert_eq!(refused.status, 401);
    assert!(refused.header("www-authenticate").unwrap().starts_with("Bearer"));

    // What one stores, the other does not see.
    let (anna, ben) = (bearer(ANNA), bearer(BEN));
    let body = std::fs::read(example("anthropic.json")).unwrap();
    let stored = web.request("PUT", "/sessions", &[("Authorization", &anna)], &body);
    assert_eq!(stored.status, 201, "{}", stored.body);
    let handle = stored.json()["handle"].as_str().unwrap().to_owned();
    let mine = web.call("estimate_tokens", json!({"session": handle}), &[("Authorization", &anna)]);
    assert!(mine["structuredContent"]["tokens"].as_u64().unwrap() > 1_000, "{mine}");
    for (tool, arguments) in
        [("estimate_tokens", json!({"session": handle})), ("recall", json!({"handle": handle}))]
    {
        let theirs = web.call(tool, arguments.clone(), &[("Authorization", &ben)]);
        assert_eq!(theirs["isError"], true, "{theirs}");
        let unknown = arguments.to_string().replace(&handle, "0123456abc");
        let unknown = serde_json::from_str(&unknown).unwrap();
        let nobodys = web.call(tool, unknown, &[("Authorization", &ben)]);
        assert_eq!(theirs.to_string().replace(&handle, "0123456abc"), nobodys.to_string(), "{tool}");
    }
    let made = web.call(
        "summarize_history",
        json!({"session": handle, "budget": "30%"}),
        &[("Authorization", &anna)],
    );
    assert_eq!(made["structuredContent"]["status"], "compacted", "{made}");
    let search = json!({"query": "rules", "scope": "all"});
    let found = |token: &str| {
        web.call("recall", search.clone(), &[("Authorization", token)])["structuredContent"]["hits"]
            .as_array()
            .unwrap()
            .len()
    };
    assert!(found(&anna) > 0);
    assert_eq!(found(&ben), 0);

    std::fs::write(web.home.path().join("tokens"), format!("anna:{ANNA}\n")).unwrap();
    assert_eq!(status(&[("Authorization", &ben)]), 401);
    assert_eq!(status(&[("Authorization", &anna)]), 200);
}

/// Knowing a session's id is not enough: to another's token it is one that does not exist.
#[test]
fn sessions_belong_to_the_token_that_opened_them() {
    let web = with_tokens();
    let (anna, ben) = (bearer(ANNA), bearer(BEN));
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let ask = |verb: &str, token: &str, session: Option<&str>, body: &Value| {
        let mut headers = vec![
            ("Authorization", token),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", "2025-11-25"),
        ];
        headers.extend(session.map(|it| ("Mcp-Session-Id", it)));
        let body = if verb == "POST" { body.to_string() } else { String::new() };
        web.request(verb, "/mcp", &headers, body.as_bytes())
    };
    let opened = ask("POST", &anna, None, &hello);
    let session = opened.header("mcp-session-id").unwrap();
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}});
    for (verb, unknown) in [("POST", 404), ("GET", 404), ("DELETE", 202)] {
        let theirs = ask(verb, &ben, Some(session), &list);
        let nobodys = ask(verb, &ben, Some("01234567-89ab-cdef-0123-456789abcdef"), &list);
        assert_eq!((theirs.status, &theirs.body), (unknown, &nobodys.body), "{verb}");
        assert_eq!(nobodys.status, unknown, "{verb}");
    }
    assert_eq!(ask("POST", &anna, Some(session), &list).status, 200, "it goes on");
    assert_eq!(ask("DELETE", &anna, Some(session), &list).status, 202);
    assert_eq!(ask("POST", &anna, Some(session), &list).status, 404, "its owner ended it");
}

#[test]
fn beyond_this_machine_a_token_is_needed() {
    let home = tempfile::tempdir().unwrap();
    let output = super::command(home.path()).args(["serve", "--http", "0.0.0.0:0"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--token-file"), "{output:?}");
}

#[test]
#[cfg(unix)]
fn only_what_is_below_a_root_is_read() {
    let web = Web::start(|home, command| {
        let root = home.join("root");
        std::fs::create_dir_all(root.join("inside")).unwrap();
        let session = example("codex.jsonl");
        for to in [root.join("inside/session.jsonl"), home.join("secret.jsonl")] {
            std::fs::copy(&session, to).unwrap();
        }
        std::os::unix::fs::symlink(home.join("secret.jsonl"), root.join("link.jsonl")).unwrap();
        std::os::unix::fs::symlink(home, root.join("up")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", root.join("zero")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(root.join("fifo")).status().unwrap();
        assert!(made.success());
        command.arg("--allow-root").arg(root);
    });
    let home = web.home.path().display().to_string();
    let tokens = |session: &str| web.call("estimate_tokens", json!({"session": session}), &[]);
    let inside = tokens("inside/session.jsonl");
    assert!(inside["structuredContent"]["tokens"].as_u64().unwrap() > 1_000, "{inside}");
    assert_eq!(
        tokens(&format!("{home}/root/inside/session.jsonl"))["structuredContent"]["tokens"],
        inside["structuredContent"]["tokens"]
    );
    for session in [
        "../secret.jsonl",
        "..%2fsecret.jsonl",
        "%2e%2e/secret.jsonl",
        "inside/../../secret.jsonl",
        "link.jsonl",
        "up/secret.jsonl",
        &format!("{home}/secret.jsonl"),
        "../../etc/passwd",
        "/etc/passwd",
        "fifo",
        "zero",
        "/dev/zero",
        "inside",
        "",
        "file:///etc/passwd",
        "..\\secret.jsonl",
        "secret.jsonl\u{0}",
        "current",
        "latest",
        "-",
        "0199aaaa-0000-7000-8000-000000000001",
        "secret.jsonl#ses_1",
        "../secret.jsonl#ses_1",
    ] {
        let answer = tokens(session);
        assert_eq!(answer["isError"], true, "{session}: {answer}");
    }
    let local = tokens("current")["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(local.contains("epitome install") && local.contains("PUT /sessions"), "{local}");
    for to in ["session", "file"] {
        let answer = web.call("summarize_history", json!({"session": "inside/session.jsonl", "to": to}), &[]);
        assert_eq!(answer["isError"], true, "{answer}");
    }
    let profile = web.call(
        "summarize_history",
        json!({"session": "inside/session.jsonl", "profile": "/etc/x.toml"}),
        &[],
    );
    assert_eq!(profile["isError"], true, "{profile}");
}

#[test]
fn old_streams_work_under_the_same_checks() {
    let web = with_tokens();
    let (anna, ben) = (bearer(ANNA), bearer(BEN));
    assert_eq!(web.request("GET", "/sse", &[], b"").status, 401);
    let mut stream = web.connect();
    write!(stream, "GET /sse HTTP/1.1\r\nHost: localhost\r\nAuthorization: {anna}\r\n\r\n").unwrap();
    let mut heard = String::new();
    let mut until = |wanted: &str| {
        let mut buffer = [0; 4096];
        while !heard.contains(wanted) {
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "expected {wanted:?}, found {heard:?}");
            heard.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        heard.clone()
    };
    let first = until("sessionId=");
    let first = if first.ends_with('=') { until("\n\n") } else { first };
    let path = first.split("data: ").nth(1).unwrap().lines().next().unwrap().trim().to_owned();
    let post = |token: &str, message: Value| {
        web.request(
            "POST",
            &path,
            &[("Authorization", token), ("Content-Type", "application/json")],
            message.to_string().as_bytes(),
        )
        .status
    };
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    assert_eq!(post(&ben, hello.clone()), 404, "somebody else's stream");
    assert_eq!(post(&anna, hello), 202);
    assert!(until("serverInfo").contains("2024-11-05"));
    assert_eq!(post(&anna, json!({"jsonrpc": "2.0", "method": "notifications/initialized"})), 202);
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "estimate_tokens", "arguments": {"text": "hello world"}}});
    assert_eq!(post(&anna, call), 202);
    until("\"tokens\":2");
    assert_eq!(
        web.request("POST", "/messages?sessionId=nope", &[("Authorization", &anna)], b"{}").status,
        404
    );
    drop(stream);
}

#[test]
fn histories_are_checked_before_they_are_stored() {
    let web = Web::start(|_, _| {});
    for body in [b"".as_slice(), b"no history", b"{}", b"\x00\x01"] {
        let answer = web.request("PUT", "/sessions", &[], body);
        assert_eq!(answer.status, 422, "{body:?}: {}", answer.body);
        assert!(answer.json()["error"]["message"].as_str().unwrap().contains("expected"));
    }
    let messages = example_messages("openai-chat.json").to_string();
    let answer = web.request("PUT", "/sessions", &[], messages.as_bytes());
    assert_eq!(answer.status, 201);
    assert_eq!(answer.json()["format"], "openai-chat");
    // Again is the same.
    assert_eq!(
        web.request("PUT", "/sessions", &[], messages.as_bytes()).json()["handle"],
        answer.json()["handle"]
    );
}

#[test]
fn sessions_are_limited_and_the_server_goes_on() {
    let web = Web::start(|_, _| {});
    let mut open = 0;
    let refused = loop {
        match session(&web) {
            Ok(_) => open += 1,
            Err(status) => break status,
        }
        assert!(open <= 1_000);
    };
    assert_eq!((refused, open), (503, 1_000));
    assert_eq!(web.call("estimate_tokens", json!({"text": "hello"}), &[])["structuredContent"]["tokens"], 1);
    let metrics = web.request("GET", "/metrics", &[], b"").body;
    assert!(metrics.contains("epitome_sessions{transport=\"http\"} 1000"), "{metrics}");
    assert!(metrics.contains("epitome_calls_total{tool=\"estimate_tokens\",outcome=\"ok\"} 1"), "{metrics}");
    #[cfg(target_os = "linux")]
    {
        let status = std::fs::read_to_string(format!("/proc/{}/status", web.id())).unwrap();
        let line = status.lines().find(|it| it.starts_with("VmRSS")).unwrap();
        let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        eprintln!("1,000 sessions: {} MB", kilobytes / 1024);
        assert!(kilobytes < 300 * 1024, "{line}");
    }
}

#[test]
fn a_client_that_vanishes_harms_nobody() {
    let web = Web::start(|_, _| {});
    let text = "some text ".repeat(1 << 18);
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "estimate_tokens",
        "arguments": {"text": text}, "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}}}})
        .to_string();
    for sent in [body.len(), body.len() / 2] {
        let mut stream = web.connect();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: estimate_tokens\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )
        .unwrap();
        stream.write_all(&body.as_bytes()[..sent]).unwrap();
        drop(stream);
    }
    assert_eq!(web.call("estimate_tokens", json!({"text": "hello"}), &[])["structuredContent"]["tokens"], 1);
}

#[test]
#[cfg(unix)]
fn signals_end_it_quietly() {
    for signal in ["INT", "TERM"] {
        let mut web = Web::start(|_, _| {});
        // An open stream does not keep it.
        let mut stream = web.connect();
        stream.write_all(b"GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut buffer = [0; 64];
        assert!(stream.read(&mut buffer).unwrap() > 0);
        let status =
            std::process::Command::new("kill").args(["-s", signal, &web.id().to_string()]).status().unwrap();
        assert!(status.success());
        assert_eq!(web.wait().code(), Some(0), "{signal}");
    }
}
