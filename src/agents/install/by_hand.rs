//! What the user has to do by hand: add settings for clients that we do not edit, or remove a server first.

use std::path::Path;

use serde_json::json;

use super::NAME;
use history::error::{Error, ErrorKind};

/// For a server of our name that we did not register and could not restore on uninstalling.
pub(super) fn registered_by_hand(remedy: &str, path: &Path) -> Error {
    let what = format!("a server named epitome is registered by hand already; remove it first: {remedy}");
    Error::new(ErrorKind::Refused, what).at_path(path)
}

/// The settings to add by hand for a client that we do not edit: file and text.
pub fn snippet(client: &str, program: &Path) -> Option<(&'static str, String)> {
    let program = program.display().to_string();
    let args = json!(["serve", "--stdio"]);
    let pretty = |value: serde_json::Value| serde_json::to_string_pretty(&value).unwrap_or_default();
    Some(match client {
        "cursor" => {
            ("~/.cursor/mcp.json", pretty(json!({"mcpServers": {NAME: {"command": program, "args": args}}})))
        }
        "vscode" => (
            ".vscode/mcp.json",
            pretty(json!({"servers": {NAME: {"type": "stdio", "command": program, "args": args}}})),
        ),
        "zed" => (
            "~/.config/zed/settings.json",
            pretty(json!({"context_servers": {NAME: {"command": program, "args": args}}})),
        ),
        "goose" => (
            "~/.config/goose/config.yaml",
            format!(
                "extensions:\n  {NAME}:\n    name: {NAME}\n    type: stdio\n    cmd: {}\n    args: [serve, --stdio]\n    enabled: true\n    timeout: 300",
                json!(program)
            ),
        ),
        _ => return None,
    })
}
