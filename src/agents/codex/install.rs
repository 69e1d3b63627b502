//! Codex's settings.

use super::home;
use crate::agents::install::{Registration, Style};

pub(super) static REGISTRATION: Registration = Registration {
    program: "codex",
    folder: |env, _| home(env),
    files: |env, _| (home(env).join("config.toml"), home(env).join("config.toml")),
    style: Style::Toml,
    events: &["SessionStart", "PreCompact", "PostCompact", "UserPromptSubmit", "PostToolUse"],
    hooks_explained: [
        "before a compaction: archives the session and names what must survive (at most 1,000 tokens; under 2 s)",
        "after it: adds what the summary left out, once (at most 1,500 tokens)",
        "each turn: one line when the context passes 80 % (a few milliseconds; off with [hooks] reminder = false)",
    ],
    // Only its base URL can change who compacts: see the gateway.
    seat_explained: None,
    seat_files: |_, _, _| Vec::new(),
    plugins: None,
    by_hand: "codex mcp remove epitome",
    prompts: Some(|env, _| home(env).join("prompts")),
    has_threshold: false,
    note: |wanted| wanted.hooks.then_some("Codex asks once whether it may run the hooks."),
};
