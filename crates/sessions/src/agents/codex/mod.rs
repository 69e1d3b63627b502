//! Codex rollouts (`rollout-*.jsonl`): what a resume sends, and how a compacted history goes back.
//!
//! This follows Codex 0.169 as measured, and its sources up to 2026-08; older files (no `ordinal`, no
//! `world_state`) are read by the same rules. `event_msg` lines are for display: they are never part of the
//! context.

mod item;
mod items;
mod line;
mod repair;
mod replay;
mod rollout;
mod usage;
mod write;

use crate::format::{Api, FormatRow};
use crate::parse::beginning;
use crate::parse::lines::Coverage;
use crate::parse::raw::Fields;
use crate::parse::texts::WHOLE;
use crate::session::requests::each_row;
use crate::{Format, Keep, Session, Source};
use history::error::Result;
use history::{History, Meta};
use serde_json::Value;

use replay::Replayed;
use rollout::Rollout;

pub use items::{framed_summary, is_contextual, own_summary};
pub use write::write;

pub(crate) static ROW: FormatRow = FormatRow {
    is_signed: true,
    folder: Some(("/.codex/sessions/", &[".jsonl"])),
    recognise: Some(sniff),
    scan: Some(scan),
    write: Some(write),
    requests: Some(|source, out| each_row(source, |row| usage::request(&row, out))),
    repair: &[crate::repair::lines, repair::envelope, repair::repetitions, repair::items],
    ..FormatRow::new("codex", Api::OpenAiResponses, read)
};

/// The types of line that only Codex writes around a `payload`.
const LINES: [&str; 9] = [
    "session_meta",
    "response_item",
    "turn_context",
    "event_msg",
    "compacted",
    "world_state",
    "token_usage_record",
    "inter_agent_communication_metadata",
    "rollout_item",
];

/// Whether the source is certainly a rollout: one of its lines is `{type, payload}` with a type of Codex's,
/// possibly cut off.
pub fn sniff(first_lines: &str) -> bool {
    let is_line =
        |it: Value| it["payload"].is_object() && it["type"].as_str().is_some_and(|it| LINES.contains(&it));
    beginning::values(first_lines).any(is_line)
}

/// Whether it is an old rollout, whose lines have no `payload`: the first line is the session, items are
/// unwrapped.
pub fn is_before_payload(first_lines: &str) -> bool {
    let mut lines = beginning::values(first_lines);
    let is_session =
        |it: Value| it["id"].is_string() && it["timestamp"].is_string() && !it["type"].is_string();
    let is_bare = |it: Value| {
        let kind = it["type"].as_str().unwrap_or_default();
        let is_item = matches!(kind, "message" | "reasoning") || kind.ends_with("_call");
        it.get("payload").is_none() && (is_item || it["record_type"].is_string())
    };
    lines.next().is_some_and(is_session) && lines.any(is_bare)
}

/// Reads what a resume would send.
///
/// A call without an output is followed by the output `aborted` that Codex sends in its place (this message
/// has the call's record), except at the very end, where it may still be answered. Outputs without a call are
/// left out, as Codex leaves them out. Of several `session_meta` the first counts.
///
/// # Errors
/// [`Input`](history::error::ErrorKind::Input) if no line is Codex's; errors of [`Source::read_at`].
pub fn read(source: &dyn Source) -> Result<Session> {
    let mut rollout = Rollout::of(source, WHOLE, Coverage::Whole)?;
    let mut replayed = rollout.replay(source, WHOLE, rollout.survivors())?;
    rollout.unseal(source, &mut replayed.items)?;
    session(source, rollout, replayed)
}

/// [`read`] for a session that is only measured: texts are as `keep` leaves them, and lines that the history
/// does not depend on are not read.
///
/// # Errors
/// As [`read`].
pub fn scan(source: &dyn Source, keep: &Keep) -> Result<Session> {
    let mut rollout = Rollout::of(source, keep, Coverage::History)?;
    let survivors = rollout.survivors();
    // A compaction without a history keeps the texts of user messages, so these texts are needed.
    if rollout.needs_words(&survivors) {
        return read(source);
    }
    let replayed = rollout.replay(source, keep, survivors)?;
    session(source, rollout, replayed).map(Session::measured_only)
}

fn session(source: &dyn Source, rollout: Rollout, replayed: Replayed) -> Result<Session> {
    let first = rollout.text(source, rollout.session_meta)?;
    let last = rollout.text(source, rollout.turn_context)?;
    let first = Fields::of(&first).and_then(|it| it.object("payload"));
    let last = Fields::of(&last).and_then(|it| it.object("payload"));
    let field = |at: &Option<Fields>, key: &str| at.as_ref().and_then(|it| it.text(key));
    let system = first.as_ref().and_then(|it| it.object("base_instructions")).and_then(|it| it.text("text"));
    let meta = Meta {
        agent: Some(Format::CODEX.name().into()),
        session: field(&first, "id").map(Into::into),
        model: field(&last, "model").map(Into::into),
        cwd: field(&last, "cwd").or_else(|| field(&first, "cwd")).map(Into::into),
        window: rollout.window,
        system: system.or_else(|| field(&first, "instructions")).map(Into::into),
        times: rollout.times,
        rolled_back: replayed.rolled_back,
        planning: last
            .as_ref()
            .and_then(|it| it.object("collaboration_mode"))
            .and_then(|it| it.text("mode"))
            .map(|it| it == "plan"),
        ..Meta::default()
    };
    let origins = replayed.items.iter().map(|it| [it.record]).collect();
    let history = History::new(replayed.items.into_iter().map(|it| it.message).collect(), meta);
    Ok(Session {
        format: Format::CODEX,
        records: rollout.records,
        origins,
        notes: rollout.notes,
        past: replayed.past,
        history,
    })
}
