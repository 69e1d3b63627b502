//! What a collector is sent of a compaction.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpListener;

use super::program::{answer, claude, codex, command, keep};

const ID: &str = "00000000-0000-4000-8000-00000000000a";

/// The path and the body of one request, which is answered.
fn taken(collector: &TcpListener) -> (String, Vec<u8>) {
    let (stream, _) = collector.accept().unwrap();
    let mut reader = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(it) = line.strip_prefix("content-length:") {
            length = it.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
    reader.into_inner().write_all(answer).unwrap();
    (first, body)
}

fn holds(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|it| it == text.as_bytes())
}

#[test]
fn a_compaction_is_a_span_and_without_an_endpoint_nothing_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let home = std::fs::canonicalize(folder.path()).unwrap();
    keep(&home, &home, "codex", ID, codex(ID, &home, 0..30, 60).as_bytes());
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", collector.local_addr().unwrap());
    let run = |arguments: &[&str], endpoint: Option<&str>| {
        let mut command = command(&home, &home, arguments);
        command.envs(endpoint.map(|it| ("OTEL_EXPORTER_OTLP_ENDPOINT", it)));
        command.output().unwrap()
    };
    let apply = ["compact", ID, "--budget", "30%", "--apply", "--json"];
    let (done, (first, body)) = std::thread::scope(|scope| {
        let taken = scope.spawn(|| taken(&collector));
        (answer(&run(&apply, Some(&endpoint))), taken.join().unwrap())
    });
    assert_eq!(done["status"], "compacted", "{done}");
    assert!(first.starts_with("POST /v1/traces "), "{first}");
    for text in [
        "gen_ai.operation.name",
        "gen_ai.conversation.id",
        ID,
        "gen_ai.conversation.compacted",
        "gen_ai.agent.name",
        "codex",
        "epitome.tokens.before",
        "epitome.tokens.after",
        "service.name",
    ] {
        assert!(holds(&body, text), "{text}");
    }
    // Nothing of what was said, and no attribute of a failure.
    assert!(!holds(&body, "Go on with") && !holds(&body, "error.type"));
    // A preview, and a compaction where no collector is named, tell nobody.
    let other = "00000000-0000-4000-8000-00000000000b";
    keep(&home, &home, "claude-code", other, claude(other, &home, 0..30, 60).as_bytes());
    collector.set_nonblocking(true).unwrap();
    assert!(run(&["compact", other, "--budget", "30%"], Some(&endpoint)).status.success());
    assert!(run(&["compact", other, "--budget", "30%", "--apply"], None).status.success());
    assert_eq!(collector.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    // A collector that is away stops nobody.
    drop(collector);
    let again = answer(&run(&["compact", other, "--budget", "40%", "--apply", "--json"], Some(&endpoint)));
    assert_eq!(again["status"], "compacted", "{again}");
}
