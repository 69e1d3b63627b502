//! Gemini CLI sessions: the JSONL journal (0.36 and later) and the older single `.json`; what a resume sends, and how
//! a compacted history goes back.
//!
//! This follows Gemini CLI 0.61 as measured and read in its bundle (`loadConversationRecord`,
//! `convertSessionToClientHistory`), with two differences. A resume of the client sends every function
//! response once more; here only the first in each turn counts. Consecutive messages of one role stay
//! separate here; the client joins them when it sends.

mod convert;
mod journal;
mod line;
mod part;
mod record;
mod repair;
mod write;

use crate::format::{Api, FormatRow};
use crate::parse::beginning;
use crate::parse::texts::WHOLE;
use crate::session::requests::{Collector, each_message, each_row, text, time};
use crate::{Format, Keep, PastCompaction, Session, Source};
use history::error::{Error, ErrorKind, Result};
use history::{History, Message, Meta};
use serde_json::Value;

pub use write::write;

use convert::{LiveMessage, converted};
use journal::Journal;
use part::Wanted;
use record::usage;

pub(crate) static ROW: FormatRow = FormatRow {
    is_signed: true,
    folder: Some(("/.gemini/tmp/", &[".json", ".jsonl"])),
    recognise: Some(sniff),
    scan: Some(scan),
    write: Some(write),
    requests: Some(requests),
    repair: &[repair::lines_or_document, repair::journal, repair::records],
    ..FormatRow::new("gemini-cli", Api::Gemini, read)
};

/// Whether the source is certainly a session of Gemini CLI: a line with `sessionId` and `projectHash`, as
/// every journal has, or a document with its messages, whatever comes before them.
pub fn sniff(first_lines: &str) -> bool {
    beginning::values(first_lines).any(|it| {
        if it["sessionId"].is_string() && it["projectHash"].is_string() {
            return it.get("type").is_none();
        }
        let first = &it["messages"][0];
        matches!(first["type"].as_str(), Some("user" | "gemini" | "info" | "error" | "warning"))
            && first.get("content").is_some()
            && first.get("role").is_none()
    })
}

/// The journal, its live messages, and its compactions.
struct Read {
    journal: Journal,
    live: Vec<LiveMessage>,
    past: Vec<PastCompaction>,
}

impl Read {
    /// Converts a journal; `origins`: whether its messages say where they came from.
    fn from(source: &dyn Source, mut journal: Journal, origins: bool) -> Result<Self> {
        if journal.is_foreign() {
            let what = "while reading a Gemini CLI session: expected a line or document with `sessionId`, \
                found none; name the format or another file";
            return Err(Error::new(ErrorKind::Input, what).at(source.name(), None));
        }
        let live = converted(&mut journal, origins);
        let past = journal
            .compactions
            .iter()
            .map(|it| PastCompaction {
                message: live.iter().position(|live| live.message.id.as_ref() == Some(&it.summary)),
                tokens_before: it.tokens_before,
                summary: it.text.clone(),
                ..PastCompaction::default()
            })
            .collect();
        Ok(Self { journal, live, past })
    }

    /// Reads everything that a writer needs.
    fn of(source: &dyn Source) -> Result<Self> {
        Self::from(source, Journal::of(source, Wanted { keep: WHOLE, raw: true })?, true)
    }
}

/// Reads what a resume would send.
///
/// Records that are never sent are left out: info, error and warning, thoughts, user records that begin with `/`,
/// `?`, `<session_context>` (made anew at each start) or `<hook_context>`. Usage that was reported before a
/// compaction is not carried over to records that the compaction kept.
///
/// # Errors
/// [`Input`](ErrorKind::Input) if there is no session of Gemini CLI; errors of [`Source::read_at`].
pub fn read(source: &dyn Source) -> Result<Session> {
    let wanted = Wanted { keep: WHOLE, raw: false };
    Read::from(source, Journal::of(source, wanted)?, true).map(session)
}

/// [`read`] for a session that is only measured: texts are as `keep` leaves them, and lines that the history
/// does not depend on are not read.
///
/// # Errors
/// As [`read`].
pub fn scan(source: &dyn Source, keep: &Keep) -> Result<Session> {
    let wanted = Wanted { keep, raw: false };
    Read::from(source, Journal::live_part(source, wanted)?, false).map(session).map(Session::measured_only)
}

fn session(Read { journal, live, past }: Read) -> Session {
    let field = |key: &str| journal.meta.get(key).and_then(|it| crate::parse::raw::text(it));
    let directories = journal.meta.get("directories").and_then(|it| crate::parse::raw::list(it));
    let first_directory = directories.and_then(|it| it.first().and_then(|it| crate::parse::raw::text(it)));
    let meta = Meta {
        agent: Some(Format::GEMINI_CLI.name().into()),
        session: field("sessionId").map(Into::into),
        model: journal.model,
        cwd: first_directory.or_else(|| journal.cwd.clone()).map(Into::into),
        times: journal.times,
        ..Meta::default()
    };
    let origins = live.iter().filter_map(|it| Some(it.origin.as_ref()?.records.clone())).collect();
    let messages: Vec<Message> = live.into_iter().map(|it| it.message).collect();
    Session {
        format: Format::GEMINI_CLI,
        records: journal.records,
        origins,
        notes: journal.notes,
        past,
        history: History::new(messages, meta),
    }
}

/// The field in which a record of ours states its kind, if the text alone does not tell it: Gemini CLI keeps
/// unknown fields.
const KIND_FIELD: &str = "epitome";

/// Every reported request, including those whose messages are no longer sent.
fn requests(source: &dyn Source, out: &mut Collector) -> Result<()> {
    if !each_message(source, |element| request(&element, out))? {
        each_row(source, |row| request(&row, out))?;
    }
    Ok(())
}

fn request(record: &Value, out: &mut Collector) {
    let (at, id) = (time(record), record["id"].as_str().unwrap_or_default());
    match record["type"].as_str() {
        // A record is written again when it grows.
        Some("user") if !out.is_first(id) => {}
        Some("user") => match text(&record["content"]) {
            Some(text) => out.prompt(at, &text),
            None => out.sent(at),
        },
        Some("gemini") => {
            out.model(&record["model"]);
            let usage = usage(&record["tokens"]);
            out.response(id, at, usage, false);
        }
        _ => {}
    }
}
