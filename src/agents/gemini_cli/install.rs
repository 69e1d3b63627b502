//! Gemini CLI's settings, and the hook and the command by which we compact in its place.

use std::path::Path;

use serde_json::{Value, json};

use super::{home, seat};
use crate::agents::install::{
    InstallRequest, NAME, REMINDER, Registration, SeatSetting, SettingsStyle, command,
};
use crate::agents::reach::quoted;

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
        ("SessionStart", "notes which session it is (prints nothing)"),
        ("PreCompress", "archives the session (no tokens; runs every turn, nothing is stored twice)"),
        ("BeforeAgent", REMINDER),
        ("SessionEnd", "has sessions archived that changed, by a process of its own (no tokens)"),
    ],
    seat_explained: Some([
        "Epitome compacts at the end of a turn above the threshold, or with /epitome:compact; /compress stays Gemini CLI's own",
        "the original is archived first; `epitome undo` takes a compaction back",
        "to leave: epitome install gemini-cli --no-seat; if anything goes wrong, the session goes on as it is",
    ]),
    seat_files: |env, _, _| vec![(home(env).join("commands/epitome/compact.toml"), seat::command_file())],
    plugins: None,
    by_hand: "gemini mcp remove -s user epitome",
    prompts: None,
    has_threshold: false,
    status_line: None,
    note: |wanted| {
        let asks = "Gemini CLI asks before each call, and offers no tools with -p: --trust lets them run.";
        (!wanted.trust).then_some(asks)
    },
};

/// Seconds until the hook that compacts is ended from outside; it ends itself before.
const LIMIT: u32 = 9;

fn server(wanted: &InstallRequest) -> Value {
    let mut entry = json!({"command": wanted.program.display().to_string(), "args": ["serve", "--stdio"]});
    if wanted.trust {
        history::json::set(&mut entry, "trust", true);
    }
    // Of each call and of the start, for which a session waits: 10 minutes by default.
    if wanted.offline {
        history::json::set(&mut entry, "timeout", 20_000);
    }
    entry
}

/// With a timeout in milliseconds.
fn hook(program: &Path) -> Value {
    let command = unless_gone(&command(program));
    json!({ "hooks": [{"type": "command", "name": NAME, "command": command, "timeout": 5_000}] })
}

/// Gemini CLI (0.61) refuses the prompt when a hook ends with 2 or more, and so when the program is gone: 127. The
/// shell must become the program: the client ends only what it started, and would wait for a child that hangs.
fn unless_gone(command: &str) -> String {
    let program = command.strip_suffix(" hook").unwrap_or(command);
    if cfg!(windows) { command.to_owned() } else { format!("[ -x {program} ] || exit 0; exec {command}") }
}

fn seat_hook(program: &Path) -> Value {
    let program = quoted(&program.to_string_lossy());
    // The time limit holds also where the program itself hangs: Gemini CLI's own was seen not to end a child of the
    // hook.
    let command = if cfg!(windows) {
        format!("{program} seat gemini-cli")
    } else {
        format!(
            "exec 3<&0; {program} seat gemini-cli <&3 & p=$!; (sleep {LIMIT}; kill -9 $p) </dev/null >/dev/null 2>&1 3<&- & \
             wait $p || echo '{{}}'; kill $! 2>/dev/null"
        )
    };
    // Milliseconds.
    json!({ "hooks": [{"type": "command", "name": NAME, "command": command, "timeout": 20_000}] })
}
