//! Gemini CLI's settings, and the hook and custom command with which Epitome compacts in its place.

use std::path::Path;

use serde_json::{Value, json};

use super::{home, seat};
use crate::agents::install::{
    InstallRequest, NAME, REMINDER, Registration, SeatSetting, SettingsStyle, command,
};
use crate::agents::write_back::shell::quoted;

pub(super) static REGISTRATION: Registration = Registration {
    program: "gemini",
    folder: |env, _| home(env),
    files: |env, _| (home(env).join("settings.json"), home(env).join("settings.json")),
    style: SettingsStyle::Json {
        section: "mcpServers",
        server,
        hook,
        seat: SeatSetting::Hook { event: "AfterAgent", hook: seat_hook },
    },
    events: &[
        ("SessionStart", "records the session's id (prints nothing)"),
        ("PreCompress", "archives the session (no tokens; runs every turn, nothing is stored twice)"),
        ("BeforeAgent", REMINDER),
        ("SessionEnd", "archives changed sessions in a background process (no tokens)"),
    ],
    seat_explained: Some([
        "Epitome compacts at the end of a turn above the threshold, or with /epitome:compact; /compress stays Gemini CLI's own",
        "the original is archived first; `epitome undo` undoes a compaction",
        "to leave: epitome install gemini-cli --no-seat; if anything goes wrong, the session goes on as it is",
    ]),
    seat_files: |env, _, _| vec![(home(env).join("commands/epitome/compact.toml"), seat::command_file())],
    plugins: None,
    manual_removal: "gemini mcp remove -s user epitome",
    prompts: None,
    has_threshold: false,
    status_line: None,
    note: |wanted| {
        let asks = "Gemini CLI asks before each call, and offers no tools with -p: --trust lets them run.";
        (!wanted.trust).then_some(asks)
    },
};

/// Seconds after which a watchdog kills the compacting hook; normally the hook ends earlier by itself.
const LIMIT: u32 = 9;

fn server(wanted: &InstallRequest) -> Value {
    let mut entry = json!({"command": wanted.program.display().to_string(), "args": ["serve", "--stdio"]});
    if wanted.trust {
        history::json::set(&mut entry, "trust", true);
    }
    // Milliseconds for the server's start, for which a session waits, and for each call. Default: 10 minutes.
    if wanted.offline {
        history::json::set(&mut entry, "timeout", 20_000);
    }
    entry
}

/// Gemini CLI's timeout is in milliseconds.
fn hook(program: &Path) -> Value {
    let command = unless_gone(&command(program));
    json!({ "hooks": [{"type": "command", "name": NAME, "command": command, "timeout": 5_000}] })
}

/// Gemini CLI 0.61 rejects the prompt if a hook exits with 2 or more, so also with 127 if our program is
/// gone. `exec` replaces the shell, because Gemini CLI kills only its direct child and would wait for a
/// hanging grandchild.
fn unless_gone(command: &str) -> String {
    let program = command.strip_suffix(" hook").unwrap_or(command);
    if cfg!(windows) { command.to_owned() } else { format!("[ -x {program} ] || exit 0; exec {command}") }
}

fn seat_hook(program: &Path) -> Value {
    let program = quoted(&program.to_string_lossy());
    // Our own watchdog, because Gemini CLI's timeout was seen not to kill a child of the hook.
    let command = if cfg!(windows) {
        format!("{program} seat gemini-cli")
    } else {
        format!(
            "exec 3<&0; {program} seat gemini-cli <&3 & p=$!; (sleep {LIMIT}; kill -9 $p) </dev/null >/dev/null 2>&1 3<&- & \
             wait $p || echo '{{}}'; kill $! 2>/dev/null"
        )
    };
    // The timeout is in milliseconds.
    json!({ "hooks": [{"type": "command", "name": NAME, "command": command, "timeout": 20_000}] })
}
