//! OpenCode's settings, and our plugin, which provides the hooks and compacts in OpenCode's place.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::agents::install::{InstallRequest, NAME, Plugins, Registration, SettingsStyle};
use crate::agents::{Problem, settings};

pub(super) static REGISTRATION: Registration = Registration {
    program: "opencode",
    folder: |_, config| config.join("opencode"),
    files: |_, config| files(config),
    style: SettingsStyle::Plugin { section: "mcp", server, text: include_str!("plugin.js") },
    events: &[
        ("chat.message", "records the session's id (prints nothing)"),
        (
            "experimental.session.compacting",
            "archives the session, adds sections and what must survive to the prompt (under 2 s)",
        ),
        ("session.compacted", "saves the summary (no tokens)"),
        ("start", "OpenCode tries an npm install when there is a plugin (slow without a network)"),
    ],
    seat_explained: Some([
        "/compact and automatic compaction use Epitome's summary; the model is still asked for one word",
        "the original is archived first; `epitome undo` undoes a compaction",
        "to leave: epitome install opencode --no-seat; if anything goes wrong, OpenCode compacts by itself",
    ]),
    seat_files: |_, _, _| Vec::new(),
    plugins: Some(Plugins {
        folder: |_, config| config.join("opencode/plugins"),
        depth: 0,
        word: "experimental.session.compacting",
    }),
    manual_removal: "remove \"epitome\" from \"mcp\"",
    prompts: None,
    has_threshold: false,
    status_line: None,
    note: |_| None,
};

fn files(config: &Path) -> (PathBuf, PathBuf) {
    let folder = config.join("opencode");
    let jsonc = folder.join("opencode.jsonc");
    let server = if jsonc.exists() { jsonc } else { folder.join("opencode.json") };
    (server, folder.join("plugins/epitome.js"))
}

fn server(wanted: &InstallRequest) -> Value {
    let program = wanted.program.display().to_string();
    json!({"type": "local", "command": [program, "serve", "--stdio"], "enabled": true})
}

/// Other plugins that compact in OpenCode, and how to switch them off.
pub(super) fn known_problems(config: &Path) -> Vec<Problem> {
    let mut out = Vec::new();
    for name in ["opencode.json", "opencode.jsonc"] {
        let file = std::fs::read_to_string(config.join("opencode").join(name)).unwrap_or_default();
        let plugins = settings::elements(&file, &["plugin"]).join(" ");
        if plugins.contains("oh-my-opencode") {
            out.push(Problem::new(
                "oh-my-opencode compacts too (context-window-limit-recovery)",
                "add \"context-window-limit-recovery\" to disabled_hooks in oh-my-opencode.json, or switch ours off",
            ));
        }
        if plugins.contains("supermemory") {
            out.push(Problem::new(
                "opencode-supermemory compacts too, at its compactionThreshold",
                "set compactionThreshold to 1 in supermemory.jsonc, or use our profile supermemory without it",
            ));
        }
        if settings::get(&file, &["mcp", NAME]).is_some()
            && settings::get(&file, &["compaction", "auto"]) != Some("false")
        {
            out.push(Problem::new(
                "OpenCode compacts by itself when the window is full",
                "\"compaction\": {\"auto\": false} in opencode.json, if you want only ours",
            ));
        }
    }
    out
}
