//! OpenCode's export, `{info, messages: [{info, parts[]}]}` (OpenCode 1.2 to 1.18; `opencode export`, `opencode
//! import`, and what the program makes of its database).
//!
//! **Invariants.** What is read is what OpenCode would send next: completed compactions hide what they
//! summarized, `tail_start_id` moves the kept tail behind the summary, cleared outputs have its placeholder,
//! and parts that it never sends are missing. One message element is one record; a tool part is found in it
//! again by its index.

mod draft;
mod element;
mod make;
mod patch;
mod repair;
mod read;
#[cfg(test)]
mod tests;

use crate::format::{Api, FormatRow};
use crate::parse::beginning;
use crate::session::requests::{Collector, each_message};
use crate::{Format, Keep, Mode, Session, Source, Written};
use element::usage;
use history::History;
use history::error::{Error, ErrorKind, Result};
use serde_json::Value;

// OpenCode talks to many providers, so the signer is not known.
pub(crate) static ROW: FormatRow = FormatRow {
    recognise: Some(sniff),
    scan: Some(scan),
    write: Some(write),
    requests: Some(requests),
    repair: &[crate::repair::document, repair::messages],
    ..FormatRow::new("opencode", Api::OpenAiChat, read)
};

/// What OpenCode sends in place of an output that it pruned (`state.time.compacted`).
pub const CLEARED: &str = "[Old tool result content cleared]";

/// Whether the first bytes, mended, are certainly an export: `info` with a `ses…` id, or a first message with
/// its `info` and `parts`, of which the last may be cut off.
pub fn sniff(first_lines: &str) -> bool {
    beginning::values(first_lines).next().is_some_and(|it| {
        let first = &it["messages"][0];
        let has = |key| first.get(key).is_some();
        it["info"]["id"].as_str().is_some_and(|it| it.starts_with("ses"))
            || has("info") && has("parts")
            || first["info"].get("sessionID").is_some()
            // `parts` may come first and be too long for anything behind them to be seen.
            || first["parts"][0].get("messageID").is_some()
    })
}

/// Reads an export. A broken element becomes a note; a document that is cut off is read up to there.
///
/// # Errors
/// As [`crate::read`].
pub fn read(source: &dyn Source) -> Result<Session> {
    let text = source.text(0..source.len())?;
    Ok(read::Export::open(&text, source.name())?.session(None))
}

/// [`read()`] for a session that is only measured: texts are as `keep` leaves them.
///
/// # Errors
/// As [`crate::scan`].
pub fn scan(source: &dyn Source, keep: &Keep) -> Result<Session> {
    let text = source.text(0..source.len())?;
    Ok(read::Export::open(&text, source.name())?.session(Some(keep)).measured_only())
}

/// Writes `after` back.
///
/// - [`Mode::Patch`] replaces outputs in place. OpenCode's own placeholder sets `state.time.compacted` and
///   keeps the output in storage, as OpenCode's prune does; any other text replaces the stored one.
/// - [`Mode::Append`] adds a compaction part, the summary and what follows it; `opencode import` adds just these to
///   the session of the same id.
/// - [`Mode::New`] makes a new session, from a session of any format.
///
/// A summary at the head of `after` becomes OpenCode's pair of compaction part and assistant message,
/// whatever its role was, so that OpenCode's next compaction recognizes it. Copied messages carry no token
/// counts: OpenCode would compact again at once.
///
/// # Errors
/// As [`crate::write`].
pub fn write(source: &dyn Source, session: &Session, after: &History, mode: Mode) -> Result<Written> {
    let text = source.text(0..source.len())?;
    let export = match session.format == Format::OPENCODE {
        true => Some(read::Export::open(&text, source.name())?),
        false => None,
    };
    match (mode, export) {
        (Mode::Patch, Some(export)) => patch::patch(source, &export, session, after),
        (Mode::Append, Some(export)) => draft::append(&export, session, after),
        (Mode::New, export) => Ok(draft::new(export.as_ref(), session, after)),
        (Mode::Patch | Mode::Append, None) => Err(Error::new(
            ErrorKind::Refused,
            format!(
                "expected an OpenCode export to write into, found {}; make a new session",
                session.format.name()
            ),
        )),
    }
}

/// Every reported request, including those whose messages are no longer sent.
fn requests(source: &dyn Source, out: &mut Collector) -> Result<()> {
    each_message(source, |element| request(&element, out)).map(|_| ())
}

fn request(element: &Value, out: &mut Collector) {
    let info = &element["info"];
    let parts = || element["parts"].as_array().into_iter().flatten();
    let at = |key: &str| info["time"][key].as_f64().map(|it| it as i64);
    match info["role"].as_str() {
        Some("user") => {
            if parts().any(|it| it["type"] == "compaction") {
                return out.compaction();
            }
            let texts = parts().filter(|it| it["type"] == "text" && it["synthetic"] != true);
            let texts: Vec<&str> = texts.filter_map(|it| it["text"].as_str()).collect();
            out.prompt(at("created"), &texts.join(" "));
        }
        Some("assistant") => {
            out.model(&info["modelID"]);
            out.sent(at("created"));
            let done = at("completed").or(at("created"));
            let steps: Vec<_> = parts()
                .filter(|it| it["type"] == "step-finish")
                .filter_map(|it| usage(&it["tokens"]))
                .collect();
            let total = usage(&info["tokens"]).filter(|_| steps.is_empty());
            steps.into_iter().chain(total).for_each(|it| out.response("", done, it, false));
        }
        _ => {}
    }
}
