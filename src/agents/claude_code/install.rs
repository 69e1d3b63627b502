//! Claude Code's settings, and the plugin with which Epitome compacts in its place.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::folder;
use crate::agents::Env;
use crate::agents::install::{
    InstallRequest, MISSING_AND_REMINDER, Plugins, Registration, SeatSetting, SettingsStyle,
    StatusLineSetting, command, fill_program_path,
};
use crate::agents::write_back::shell::quoted;

pub(super) static REGISTRATION: Registration = Registration {
    program: "claude",
    folder: |env, _| folder(env),
    files: |env, _| match env.folder(super::FOLDER) {
        Some(folder) => (folder.join(".claude.json"), folder.join("settings.json")),
        None => (env.home.join(".claude.json"), env.home.join(".claude/settings.json")),
    },
    style: SettingsStyle::Json {
        section: "mcpServers",
        server,
        hook,
        seat: SeatSetting::Switch(FUNCTION_HOOKS),
    },
    events: &[
        (
            "SessionStart",
            "records the session's id; after a compaction, repeats the rules, the open work and the last request (at \
             most 1,500 tokens)",
        ),
        ("PreCompact", "archives the session and names what must survive (at most 1,000 tokens; under 2 s)"),
        ("PostCompact", "saves the summary (no tokens)"),
        ("UserPromptSubmit", MISSING_AND_REMINDER),
        ("PostToolUse", "the same, within a turn"),
        ("SessionEnd", "archives changed sessions in a background process (no tokens)"),
    ],
    seat_explained: Some([
        "from the next start of Claude Code on, Epitome answers /compact and automatic compaction at once, without \
         asking a model",
        "the original is archived first; `epitome undo` undoes a compaction",
        "to leave: epitome install claude-code --no-seat; if anything goes wrong, Claude Code compacts by itself",
    ]),
    seat_files: plugin,
    plugins: Some(Plugins { folder: |env, _| folder(env).join("skills"), depth: 2, word: "session.compact" }),
    manual_removal: "claude mcp remove epitome",
    prompts: None,
    has_threshold: true,
    status_line: Some(StatusLineSetting { key: "statusLine", value: status_line }),
    note: |_| None,
};

/// Set in the `env` section of its settings: enables function hooks (early access since 2.1.274).
const FUNCTION_HOOKS: &str = "CLAUDE_CODE_ENABLE_FUNCTION_HOOKS";

const HOOK: &str = include_str!("seat.ts");
/// The line of [`HOOK`] in which `compact_at` replaces the `0`.
const THRESHOLD: &str = "const COMPACT_AT = 0\n";

fn server(wanted: &InstallRequest) -> Value {
    json!({"type": "stdio", "command": wanted.program.display().to_string(), "args": ["serve", "--stdio"]})
}

/// Claude Code's timeout is in seconds.
fn hook(program: &Path) -> Value {
    json!({ "hooks": [{"type": "command", "command": command(program), "timeout": 10}] })
}

/// Refreshed every minute even when idle, because it shows remaining minutes.
fn status_line(program: &Path) -> Value {
    let command = format!("{} statusline", quoted(&program.to_string_lossy()));
    json!({"type": "command", "command": command, "refreshInterval": 60})
}

/// The files of the plugin, which Claude Code loads at its next start without an install command.
/// `compact_at`: percent of the window at which the plugin compacts at the end of a turn; 0: never.
fn plugin(env: &Env, program: &Path, compact_at: u8) -> Vec<(PathBuf, String)> {
    let root = folder(env).join("skills/epitome");
    let threshold = THRESHOLD.replace('0', &compact_at.to_string());
    let manifest = json!({
        "name": "epitome",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Answers /compact and automatic compaction: offline, reversible, no model asked",
        "author": {"name": "Epitome"},
        "license": "MIT OR Apache-2.0",
    });
    vec![
        (root.join(".claude-plugin/plugin.json"), format!("{manifest:#}\n")),
        (root.join("hooks/hooks.json"), "{ \"modules\": [\"./seat.ts\"] }\n".to_owned()),
        (root.join("hooks/seat.ts"), fill_program_path(HOOK, program).replace(THRESHOLD, &threshold)),
    ]
}
