//! A scripted model that knows nothing but the tool list reaches what a user asks for, in each of the real clients.

use std::path::Path;
use std::process::Command;

use super::{EPITOME, Kit, plays_all};

fn reached(client: &str) {
    let Some(kit) = Kit::find(&format!("goals, {client}"), client) else { return };
    let mut command = Command::new(kit.folder.join("lib/netns.sh"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/goals.py");
    command.arg("python3").arg(script).args([client, &EPITOME]);
    let mut failed = Vec::new();
    kit.run(&format!("{client} goals"), command, &mut failed);
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn codex() {
    reached("codex");
}

#[test]
fn claude_code() {
    reached("claude");
}

#[test]
fn gemini_cli() {
    reached("gemini");
}

/// OpenCode takes minutes, and its model sees of an answer what Gemini CLI's does.
#[test]
fn opencode() {
    if plays_all("opencode", "goals") {
        reached("opencode");
    }
}
