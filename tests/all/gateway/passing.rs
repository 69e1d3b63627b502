//! What is no compaction passes byte by byte, both ways.

use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::channel;

use serde_json::json;

use super::*;

/// Numbers that are the same in every run.
struct Chance(u64);

impl Chance {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }

    fn bytes(&mut self, count: u64) -> Vec<u8> {
        (0..count).map(|_| self.next(256) as u8).collect()
    }
}

/// The answer to request `number`: its bytes on the wire.
fn reply(number: u64) -> Vec<u8> {
    let mut chance = Chance(number * 7_919 + 1);
    let status = [
        "200 OK",
        "201 Created",
        "400 Bad Request",
        "401 Unauthorized",
        "404 Not Found",
        "429 Slow Down, Please",
        "500 Internal Server Error",
        "503 Service Unavailable",
        "204 No Content",
    ];
    let status = status[chance.next(status.len() as u64) as usize];
    let mut head = format!(
        "HTTP/1.1 {status}\r\nX-Request-ID: req_{number}\r\nset-cookie: a={number}\r\nSet-Cookie: b=2\r\n"
    );
    head.push_str("OpenAI-Processing-MS: 12\r\nx-ratelimit-Remaining: 7\r\n");
    if status.starts_with("204") {
        return format!("{head}\r\n").into_bytes();
    }
    if status.starts_with("429") {
        head.push_str("Retry-After: 3\r\n");
    }
    if chance.next(2) == 0 {
        let count = chance.next(40_000);
        let body = chance.bytes(count);
        head.push_str(&format!("Content-Encoding: br\r\nContent-Length: {}\r\n\r\n", body.len()));
        return [head.as_bytes(), &body].concat();
    }
    head.push_str("Content-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n");
    let mut out = head.into_bytes();
    for event in 0..chance.next(30) {
        let data = format!("event: response.output_text.delta\ndata: {{\"delta\": \"{event} é\"}}\n\n");
        out.extend(format!("{:x}\r\n{data}\r\n", data.len()).as_bytes());
    }
    out.extend(b"0\r\n\r\n");
    out
}

/// Request `number`, as bytes and as it should arrive.
fn made(number: u64) -> Vec<u8> {
    let mut chance = Chance(number * 104_729 + 1);
    let methods = ["POST", "POST", "POST", "GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"];
    let method = methods[chance.next(methods.len() as u64) as usize];
    let paths = [
        "/v1/responses",
        "/v1/responses?api-version=1&x=%2F",
        "/v1/models",
        "/v1/files/a%20b//c/../d?",
        "/backend-api/codex/responses",
        "/v1/responses/resp_1/cancel",
        "/",
        "/v1/chat/completions",
        "/health/x",
    ];
    let path = paths[chance.next(paths.len() as u64) as usize];
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost:1\r\nX-Number: {number}\r\nAUTHORIZATION: Bearer sk-secret-{number}\r\n\
         accept: text/event-stream\r\nX-Codex-Turn-Metadata: {{\"a\": {number}}}\r\nx-Same: 1\r\nX-same: 2\r\n\
         User-Agent: codex_exec/0.169.0\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n"
    );
    if matches!(method, "GET" | "HEAD" | "OPTIONS") {
        return format!("{head}\r\n").into_bytes();
    }
    let said = with(conversation("parser"), trigger());
    let said = with(said, message("user", "why does it say \"compaction_trigger\"? EPITOME1. \u{2028}"));
    let mut body = match chance.next(6) {
        0 => Vec::new(),
        1 => chance.bytes(70_000),
        2 => b"{\"input\": [{\"type\": \"compaction_trigger\"".to_vec(),
        // Spacing, order and numbers that a parser would not give back.
        3 => b"{ \"input\" :[ {\"a\":1.0e0,\"a\":2} ,  {\"type\":\"message\"}\t], \"input2\": 1E5 }".to_vec(),
        4 => json!({"input": "compaction_trigger", "stream": true}).to_string().into_bytes(),
        _ => codex(&said, true).to_string().into_bytes(),
    };
    match chance.next(4) {
        0 => {
            head.push_str("Content-Encoding: zstd\r\n");
            body = zstd::encode_all(&body[..], 3).unwrap();
        }
        1 => head.push_str("content-encoding: br\r\n"),
        _ => {}
    }
    if chance.next(3) == 0 {
        head.push_str("Transfer-Encoding: chunked\r\n\r\n");
        let mut out = head.into_bytes();
        for piece in body.chunks(9_000) {
            out.extend(format!("{:X}\r\n", piece.len()).as_bytes());
            out.extend(piece);
            out.extend(b"\r\n");
        }
        out.extend(b"0\r\n\r\n");
        return out;
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    [head.as_bytes(), &body].concat()
}

#[test]
fn what_is_no_compaction_passes_byte_by_byte() {
    let provider = Provider::start(|request, out| {
        let number =
            request.headers.iter().find_map(|it| it.strip_prefix("X-Number: ")).unwrap().parse().unwrap();
        let reply = reply(number);
        let end = reply.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
        let end = if request.first.starts_with("HEAD ") { end } else { reply.len() };
        out.write_all(&reply[..end]).unwrap();
    });
    let web = provider.gateway();
    let mut kinds = std::collections::BTreeSet::new();
    for number in 0..240 {
        let sent = made(number);
        let got = exchange(web.port, &sent);
        let mut expected = Message::read(&mut &sent[..], |_| {}, false).unwrap();
        expected.headers.retain(|it| !it.starts_with("X-Hop"));
        let arrived = provider.take();
        assert_eq!(arrived, [expected], "request {number}");
        let reply = reply(number);
        let no_body = sent.starts_with(b"HEAD ") || reply.starts_with(b"HTTP/1.1 204");
        let expected = Message::read(&mut &reply[..], |_| {}, no_body).unwrap();
        assert_eq!(got, expected, "answer {number}");
        kinds.insert((got.status(), got.body.is_empty()));
    }
    assert!(kinds.len() > 12, "{kinds:?}");
}

#[test]
fn both_ways_are_streams() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
    let web = to(&url);
    let half = vec![b'x'; 300_000];
    let mut client = TcpStream::connect(("127.0.0.1", web.port)).unwrap();
    client.write_all(b"PUT /v1/files HTTP/1.1\r\nHost: localhost\r\nContent-Length: 600000\r\n\r\n").unwrap();
    client.write_all(&half).unwrap();
    // The provider has the first half before the second is sent.
    let (mut provider, _) = listener.accept().unwrap();
    let mut came = Vec::new();
    let mut buffer = [0; 65_536];
    while came.iter().filter(|it| **it == b'x').count() < 300_000 {
        let count = provider.read(&mut buffer).unwrap();
        assert!(count > 0);
        came.extend_from_slice(&buffer[..count]);
    }
    client.write_all(&half).unwrap();
    let mut rest = vec![0; 300_000];
    provider.read_exact(&mut rest).unwrap();
    // The client has the first event before the second is sent.
    provider.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nfirst\n\r\n").unwrap();
    let mut answer = BufReader::new(client);
    let mut line = String::new();
    while line != "first\n" {
        line.clear();
        assert!(answer.read_line(&mut line).unwrap() > 0);
    }
    provider.write_all(b"7\r\nsecond\n\r\n0\r\n\r\n").unwrap();
    while line != "second\n" {
        line.clear();
        assert!(answer.read_line(&mut line).unwrap() > 0);
    }
}

#[test]
fn a_body_that_is_too_large_to_look_into_passes() {
    let provider = Provider::plain();
    let web = provider.gateway();
    // It begins with a compaction of the newest kind, and is larger than what is looked into.
    let mut body = b"{\"input\": [{\"type\": \"compaction_trigger\"}], \"more\": \"".to_vec();
    body.resize(65 << 20, b'x');
    body.extend(b"\"}");
    assert_eq!(exchange(web.port, &request("POST", "/v1/responses", &[], &body)).text(), "PROVIDER");
    assert_eq!(provider.take()[0].body, body);
    let coded = [("Content-Encoding", "zstd")];
    let small = zstd::encode_all(&body[..], 1).unwrap();
    assert_eq!(exchange(web.port, &request("POST", "/v1/responses", &coded, &small)).text(), "PROVIDER");
    assert_eq!(provider.take()[0].body, small);
}

#[test]
fn a_body_of_200_mb_passes_and_is_not_held() {
    const MIB: usize = 200;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let web = to(&format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port()));
    let piece: Vec<u8> = Chance(7).bytes(1 << 20);
    let expected = piece.clone();
    let provider = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            assert!(reader.read_line(&mut line).unwrap() > 0);
        }
        let mut came = vec![0; 1 << 20];
        for _ in 0..MIB {
            reader.read_exact(&mut came).unwrap();
            assert!(came == expected);
        }
        reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole").unwrap();
    });
    let mut client = TcpStream::connect(("127.0.0.1", web.port)).unwrap();
    let length = MIB << 20;
    write!(client, "POST /v1/responses HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n")
        .unwrap();
    for _ in 0..MIB {
        client.write_all(&piece).unwrap();
    }
    let answer = Message::read(&mut BufReader::new(client), |_| {}, false).unwrap();
    assert_eq!((answer.status(), answer.text().as_str()), (200, "whole"));
    provider.join().unwrap();
    if let Some(peak) = super::tenants::memory(web.id(), "VmHWM:") {
        assert!(peak < 100 << 10, "{peak} KiB at most");
    }
}

#[test]
fn a_provider_that_fails_fails_as_it_does() {
    let (end, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let provider =
        Provider::start(move |request, out| match request.first.as_str() {
            "POST /v1/reset HTTP/1.1" => drop(out.shutdown(std::net::Shutdown::Both)),
            "POST /v1/half HTTP/1.1" => {
                let _ = out.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nevent\r\n");
                drop(out.shutdown(std::net::Shutdown::Both));
            }
            "POST /v1/short HTTP/1.1" => {
                let _ = out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
                drop(out.shutdown(std::net::Shutdown::Both));
            }
            "POST /v1/hang HTTP/1.1" => drop(wait.lock().unwrap().recv()),
            _ => drop(out.write_all(
                b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 9\r\nContent-Length: 4\r\n\r\nslow",
            )),
        });
    let web = provider.gateway();
    let half = post(web.port, "/v1/half", &[], &json!({}));
    assert_eq!((half.status(), half.text().as_str(), half.whole), (200, "event", false));
    let short = post(web.port, "/v1/short", &[], &json!({}));
    assert_eq!((short.status(), short.text().as_str(), short.whole), (200, "half", false));
    let reset = post(web.port, "/v1/reset", &[("Authorization", "Bearer sk-secret")], &json!({}));
    assert_eq!(reset.status(), 502);
    assert!(reset.json()["error"]["message"].is_string() && !reset.text().contains("secret"));
    assert_eq!(provider.take().len(), 3, "nothing is sent twice");
    // One hangs; others go on.
    let heads = provider.heads.lock().unwrap();
    while heads.try_recv().is_ok() {}
    let mut hanging = TcpStream::connect(("127.0.0.1", web.port)).unwrap();
    hanging.write_all(&request("POST", "/v1/hang", &[], b"{}")).unwrap();
    assert_eq!(heads.recv().unwrap(), "POST /v1/hang HTTP/1.1");
    let slow = post(web.port, "/v1/responses", &[], &codex(&conversation("x"), true));
    assert_eq!((slow.status(), slow.text().as_str()), (429, "slow"));
    assert_eq!(slow.headers, ["Retry-After: 9"]);
    drop(end);
    let gone = to("http://127.0.0.1:1");
    assert_eq!(post(gone.port, "/v1/responses", &[], &codex(&conversation("x"), true)).status(), 502);
}

#[test]
fn a_websocket_is_refused_at_once() {
    let provider = Provider::plain();
    let web = provider.gateway();
    let upgrade =
        b"GET /v1/responses HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    let refused = exchange(web.port, upgrade);
    assert_eq!((refused.status(), refused.json()["error"]["code"].as_str()), (426, Some("upgrade_refused")));
    // The provider cannot take it for one that asks to switch.
    let arrived = provider.take().remove(0);
    assert!(arrived.headers.contains(&"Upgrade: websocket".to_owned()));
    let own = Provider::start(|_, out| {
        let _ = out.write_all(b"HTTP/1.1 426 Upgrade Required\r\nX-Own: 1\r\nContent-Length: 2\r\n\r\nno");
    });
    let refused = exchange(own.gateway().port, upgrade);
    assert_eq!((refused.status(), refused.text().as_str(), &*refused.headers[0]), (426, "no", "X-Own: 1"));
    // Without it, it is a request like others.
    assert_eq!(exchange(web.port, &request("GET", "/v1/responses", &[], b"")).text(), "PROVIDER");
    assert_eq!(provider.take().len(), 1);
}

#[test]
fn strangers_do_not_pass() {
    let provider = Provider::plain();
    let web = provider.gateway();
    for (host, origin) in [("evil.example", None), ("127.0.0.1", Some("http://evil.example"))] {
        let origin = origin.map(|it| format!("Origin: {it}\r\n")).unwrap_or_default();
        let head = format!("GET /v1/models HTTP/1.1\r\nHost: {host}\r\n{origin}Connection: close\r\n\r\n");
        assert_eq!(exchange(web.port, head.as_bytes()).status(), 403, "{host}");
    }
    assert!(provider.seen().is_empty());
    // Ours stay ours.
    let health = exchange(web.port, &request("GET", "/health", &[], b"")).json();
    assert_eq!(health, json!({"status": "ok", "gateway": format!("127.0.0.1:{}", provider.port)}));
}
