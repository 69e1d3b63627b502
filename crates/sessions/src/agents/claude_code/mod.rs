//! Claude Code's `~/.claude/projects/<folder>/<session id>.jsonl`.
//!
//! The file is a tree of rows (`uuid`, `parentUuid`) among lines that are not context. What the client sends
//! next is one path through the tree: `chain` reads the tree (each row by `line`) and finds the path,
//! `assemble` makes messages of its rows. What is not documented was measured: Claude Code 2.1.197 and
//! 2.1.328 resumed hand-made sessions, and the requests that the model got were compared.
//!
//! One deliberate difference: the client sends consecutive user rows as blocks of one message. Here they are one
//! message only if they are of the same [kind](history::Kind), so that what the client injects is never taken
//! for the user's words, and a history can be cut between a tool's result and the prompt that follows it.

mod assemble;
mod blocks;
mod chain;
mod line;
mod load;
mod read;
mod repair;
mod row;
mod usage;
mod write;
#[cfg(test)]
mod tests;

pub use read::{read, scan};
pub use write::write;

use crate::format::{Api, FormatRow};
use crate::parse::beginning;
use crate::session::requests::each_row;

pub(crate) static ROW: FormatRow = FormatRow {
    is_signed: true,
    folder: Some(("/.claude/projects/", &[".jsonl"])),
    recognise: Some(sniff),
    scan: Some(scan),
    write: Some(write),
    requests: Some(|source, out| each_row(source, |row| usage::request(&row, out))),
    repair: &[crate::repair::lines, repair::chain, repair::rows],
    ..FormatRow::new("claude-code", Api::Anthropic, read)
};

/// The types of rows in the tree.
const ROW_TYPES: [&str; 5] = ["user", "assistant", "system", "attachment", "progress"];

/// The types of lines outside the tree, seen in versions 1.0 to 2.1.328. They are never context.
const SIDE_TYPES: [&str; 25] = [
    "agent-name",
    "ai-title",
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "atis-latch",
    "bridge-session",
    "content-replacement",
    "cost-state",
    "custom-title",
    "file-history-delta",
    "file-history-snapshot",
    "frame-link",
    "last-prompt",
    "mode",
    "permission-mode",
    "pr-link",
    "queue-operation",
    "relocated",
    "result",
    "started",
    "summary",
    "tag",
    "tools-used",
    "worktree-state",
];

pub use blocks::is_clients;

/// Whether the first part of a file (about 64 KB, mended) is certainly a Claude Code transcript: one of its
/// lines is a row of the tree, or a line outside it with fields that only Claude Code writes.
pub fn sniff(first_lines: &str) -> bool {
    beginning::values(first_lines).any(|it| {
        let has = |key: &str| it.get(key).is_some();
        let in_tree = it["uuid"].is_string() && (has("parentUuid") || it["isSidechain"].is_boolean());
        // A line that was cut off: the uuid is at the end of a row, and the type is often after the message.
        let is_cut = has("parentUuid") && has("isSidechain") && !has("uuid");
        match it["type"].as_str() {
            Some(kind) if ROW_TYPES.contains(&kind) => is_cut || in_tree,
            Some("summary") => it["leafUuid"].is_string(),
            Some("file-history-snapshot") => has("messageId"),
            Some(kind) => SIDE_TYPES.contains(&kind) && it["sessionId"].is_string(),
            None => is_cut && has("message"),
        }
    })
}
