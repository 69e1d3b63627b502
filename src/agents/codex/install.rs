//! Codex's settings.

use super::home;
use crate::agents::install::{REMINDER, Registration, SettingsStyle};

pub(super) static REGISTRATION: Registration = Registration {
    program: "codex",
    folder: |env, _| home(env),
    files: |env, _| (home(env).join("config.toml"), home(env).join("config.toml")),
    style: SettingsStyle::Toml,
    events: &[
        (
            "SessionStart",
            "records the session's id; after a compaction, adds what the summary left out, once (at most 1,500 tokens)",
        ),
        ("PreCompact", "archives the session (no tokens; under 2 s)"),
        ("PostCompact", "saves the summary (no tokens)"),
        ("UserPromptSubmit", REMINDER),
        ("PostToolUse", "the same, within a turn"),
    ],
    // In Codex only a base URL can replace the built-in compaction: see the gateway.
    seat_explained: None,
    seat_files: |_, _, _| Vec::new(),
    plugins: None,
    manual_removal: "codex mcp remove epitome",
    prompts: Some(|env, _| home(env).join("prompts")),
    has_threshold: false,
    status_line: None,
    note: |wanted| wanted.hooks.then_some("Codex asks once whether it may run the hooks."),
};
