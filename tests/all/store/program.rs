//! What the tests of the program share: a folder with a home and a store, sessions made for it, and its answers.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

/// How often: `EPITOME_ROUNDS`, by default few.
pub(super) fn rounds(few: usize) -> usize {
    asked().unwrap_or(few)
}

/// What `EPITOME_ROUNDS` says, if anything.
pub(super) fn asked() -> Option<usize> {
    std::env::var("EPITOME_ROUNDS").ok().and_then(|it| it.parse().ok())
}

/// The program with a state of its own and nothing else of the environment. `EPITOME_BINARY` names another build.
pub(super) fn command(home: &Path, cwd: &Path, arguments: &[&str]) -> Command {
    let binary = std::env::var_os("EPITOME_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_epitome").into());
    let mut command = Command::new(binary);
    command.env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin").current_dir(cwd).args(arguments);
    #[cfg(feature = "team")]
    command.envs(super::team::server::variables(home));
    command
}

/// Runs it in its home.
pub(super) fn epitome(home: &Path, arguments: &[&str]) -> Output {
    command(home, home, arguments).output().unwrap()
}

/// What it says on stdout, when it succeeds.
pub(super) fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// What it says on stderr, when it fails.
pub(super) fn refused(output: &Output) -> String {
    assert!(!output.status.success(), "{}", text(&output.stdout));
    text(&output.stderr)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Its JSON.
pub(super) fn answer(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", text(&output.stdout), text(&output.stderr)))
}

/// The folder of the store in a home.
pub(super) fn store(home: &Path) -> PathBuf {
    home.join(".local/share/epitome")
}

/// An output as a tool prints it: some `lines` lines that no other number has.
pub(super) fn output(number: usize, lines: usize) -> String {
    let mut state = number as u64 * 2 + 1;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 40
    };
    (0..lines)
        .map(|line| format!("{line}: fn item_{:x}(it: &str) -> u{} {{ é \"{number}\" }}\n", next(), next()))
        .collect()
}

/// A Claude Code session of the project `cwd`: so many outputs of so many lines, read one after the other.
pub(super) fn claude(id: &str, cwd: &Path, outputs: std::ops::Range<usize>, lines: usize) -> String {
    let mut out = String::new();
    let mut parent = Value::Null;
    let mut number = 0;
    let mut line = |kind: &str, message: Value| {
        number += 1;
        let uuid = format!("00000000-0000-4000-8000-{number:012}");
        let at = format!("2026-01-01T{:02}:{:02}:00.000Z", number / 60 % 24, number % 60);
        let it = json!({"parentUuid": parent, "isSidechain": false, "userType": "external", "cwd": cwd, "sessionId": id,
            "version": "2.1.328", "type": kind, "message": message, "uuid": uuid, "timestamp": at});
        parent = json!(uuid);
        out.push_str(&format!("{it}\n"));
    };
    line("user", json!({"role": "user", "content": format!("Look at everything of {id}")}));
    for n in outputs {
        let call = json!([{"type": "tool_use", "id": format!("t{n}"), "name": "Read", "input": {"file_path": format!("{n}.rs")}}]);
        let result =
            json!([{"type": "tool_result", "tool_use_id": format!("t{n}"), "content": output(n, lines)}]);
        line(
            "assistant",
            json!({"id": format!("m{n}"), "role": "assistant", "model": "claude-x", "content": call}),
        );
        line("user", json!({"role": "user", "content": result}));
        line("user", json!({"role": "user", "content": format!("Go on with {n}")}));
    }
    out
}

/// A Codex rollout of the same kind.
pub(super) fn codex(id: &str, cwd: &Path, outputs: std::ops::Range<usize>, lines: usize) -> String {
    let mut out = String::new();
    let mut number = 0;
    let mut line = |kind: &str, payload: Value| {
        number += 1;
        let at = format!("2026-01-01T{:02}:{:02}:00.000Z", number / 60 % 24, number % 60);
        out.push_str(&format!("{}\n", json!({"timestamp": at, "type": kind, "payload": payload})));
    };
    let said = |role: &str, text: String| {
        let kind = if role == "user" { "input_text" } else { "output_text" };
        json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
    };
    line(
        "session_meta",
        json!({"id": id, "timestamp": "2026-01-01T00:00:00.000Z", "cwd": cwd, "originator": "codex_exec",
            "cli_version": "0.169.0", "source": "exec", "model_provider": "openai"}),
    );
    line(
        "turn_context",
        json!({"cwd": cwd, "approval_policy": "never", "sandbox_policy": {"type": "danger-full-access"},
        "model": "gpt-x", "summary": "auto"}),
    );
    line("response_item", said("user", format!("Look at everything of {id}")));
    for n in outputs {
        let arguments = json!({"cmd": format!("cat {n}.rs")}).to_string();
        line(
            "response_item",
            json!({"type": "function_call", "call_id": format!("c{n}"), "name": "exec_command", "arguments": arguments}),
        );
        line(
            "response_item",
            json!({"type": "function_call_output", "call_id": format!("c{n}"), "output": output(n, lines)}),
        );
        line("response_item", said("assistant", format!("{n}.rs is read.")));
        line("response_item", said("user", format!("Go on with {n}")));
    }
    out
}

/// Puts a session of the project `cwd` where its agent keeps it in a home.
pub(super) fn keep(home: &Path, cwd: &Path, agent: &str, id: &str, bytes: &[u8]) -> PathBuf {
    let plain = |it: char| if it.is_ascii_alphanumeric() { it } else { '-' };
    let folder: String = cwd.to_str().unwrap().chars().map(plain).collect();
    let path = match agent {
        "codex" => home.join(format!(".codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-{id}.jsonl")),
        "claude-code" => home.join(format!(".claude/projects/{folder}/{id}.jsonl")),
        other => unreachable!("{other}"),
    };
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    path
}
