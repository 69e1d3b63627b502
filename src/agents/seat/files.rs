//! The files that put us into a client's seat, whole: nobody else writes them.

use std::path::{Path, PathBuf};

use super::gemini_cli;

const CLAUDE_HOOK: &str = include_str!("claude_code.ts");
/// The line of it that `compact_at` changes.
const THRESHOLD: &str = "const COMPACT_AT = 0\n";
const PI: &str = include_str!("pi.ts");

/// What stands in the first lines of each, so that another's file of that name is not taken for ours.
const OURS: &str = "epitome";

/// Claude Code's switch for function hooks (early access since 2.1.274), as `env` in its settings.
pub const CLAUDE_SWITCH: &str = "CLAUDE_CODE_ENABLE_FUNCTION_HOOKS";

/// The plugin in Claude Code's folder, found at its next start without a command. `compact_at`: percent of the window from
/// which the end of a turn compacts, or 0.
pub fn claude_plugin(folder: &Path, program: &Path, compact_at: u8) -> Vec<(PathBuf, String)> {
    let root = folder.join("skills/epitome");
    let threshold = THRESHOLD.replace('0', &compact_at.to_string());
    let manifest = serde_json::json!({
        "name": "epitome",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Answers /compact and automatic compaction: offline, reversible, no model asked",
        "author": {"name": "Epitome"},
        "license": "MIT OR Apache-2.0",
    });
    vec![
        (root.join(".claude-plugin/plugin.json"), format!("{manifest:#}\n")),
        (root.join("hooks/hooks.json"), "{ \"modules\": [\"./seat.ts\"] }\n".to_owned()),
        (root.join("hooks/seat.ts"), with_program(CLAUDE_HOOK, program).replace(THRESHOLD, &threshold)),
    ]
}

/// The command `/epitome:compact` in Gemini CLI's folder.
pub fn gemini_command(folder: &Path) -> (PathBuf, String) {
    (folder.join("commands/epitome/compact.toml"), gemini_cli::command_file())
}

pub fn pi_extension(folder: &Path, program: &Path) -> (PathBuf, String) {
    (folder.join("agent/extensions/epitome.ts"), with_program(PI, program))
}

/// The file with this program's path in it.
pub fn with_program(text: &str, program: &Path) -> String {
    let program = serde_json::to_string(&program.display().to_string()).unwrap_or_default();
    text.replace("\"@EPITOME@\"", &program)
}

/// Whether a file that lies in the place of one of ours is one of ours.
pub fn is_ours(text: &str) -> bool {
    text.get(..400.min(text.len())).unwrap_or(text).to_lowercase().contains(OURS)
        || text.contains("\"./seat.ts\"")
}
