//! OpenAI's own SDK, where a Python that has it is named in `EPITOME_PYTHON`, lies in `target/openai`, or is first in the path.

use std::process::Command;

use super::*;

const TOKEN: &str = "anna-0123456789abcdef";

#[test]
fn openais_sdk_compacts_and_goes_on() {
    let own =
        std::path::Path::new(env!("CARGO_BIN_EXE_epitome")).ancestors().find(|it| it.ends_with("target"));
    let own = own.map(|it| it.join("openai/bin/python")).filter(|it| it.exists());
    let own = own.map_or("python3".to_owned(), |it| it.display().to_string());
    let python = std::env::var("EPITOME_PYTHON").unwrap_or(own);
    let known = "from openai.resources.responses import Responses; Responses.compact";
    let found = Command::new(&python).args(["-c", known]).output();
    if !found.is_ok_and(|it| it.status.success()) {
        eprintln!(
            "SKIPPED: openais_sdk_compacts_and_goes_on: {python} has no openai that knows responses.compact \
             (EPITOME_PYTHON, or: python3 -m venv target/openai && target/openai/bin/pip install openai)"
        );
        return;
    }
    let provider = Provider::start(|_, out| {
        let part = json!({"type": "output_text", "text": "GOES-ON", "annotations": []});
        let item = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]});
        let body = json!({"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "completed",
            "output": [item], "parallel_tool_calls": true, "tool_choice": "auto", "tools": []})
        .to_string();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length:";
        let _ = out.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes());
    });
    let url = format!("http://127.0.0.1:{}", provider.port);
    let web = Web::start(|home, command| {
        let file = home.join("tokens");
        std::fs::write(&file, format!("anna:{TOKEN}\n")).unwrap();
        command.args(["--upstream", &url, "--token-file"]).arg(file);
    });
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/gateway/sdk.py");
    let base = format!("http://127.0.0.1:{}/v1", web.port);
    let output = Command::new(&python).args([script, &base, TOKEN]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.trim(), "GOES-ON");
    // One request reached the provider, with what was compacted and without our token.
    let [request] = &provider.take()[..] else { panic!("expected one request") };
    assert!(request.text().contains("TAIL-sdk") && !request.text().contains("3399"));
    assert!(request.headers.iter().all(|it| !it.contains(TOKEN)), "{:?}", request.headers);
    assert!(request.headers.iter().any(|it| it.ends_with("Bearer sk-provider")));
}
