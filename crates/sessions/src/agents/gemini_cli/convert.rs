//! Converts the message records in force to the messages that a resume sends.

use std::collections::BTreeSet;
use std::collections::hash_map::Entry as Slot;
use std::ops::Range;
use std::sync::Arc;

use foldhash::HashMap;
use serde_json::Value;

use super::journal::{Journal, JournalEntry};
use super::part::ReadPart;
use super::record::{JournalItem, MessageDraft, RecordSide, is_snapshot};
use crate::Note;
use crate::wire::GEMINI_ACK;
use history::{Kind, Message, Part, Role};

/// A live message and where it came from.
pub(super) struct LiveMessage {
    pub(super) message: Message,
    /// RecordSide part of the record became this message.
    pub(super) side: RecordSide,
    /// Whether it is the user's and mentions a snapshot.
    snapshot: bool,
    /// Only for a writer.
    pub(super) origin: Option<Box<JournalOrigin>>,
}

/// Where a live message came from.
pub(super) struct JournalOrigin {
    /// The records it was made from; the first one is its own.
    pub(super) records: Vec<u32>,
    /// The range of its own record's JSON in the source.
    pub(super) at: Range<u64>,
    pub(super) record_id: Arc<str>,
    /// The JSON of each part, as sent, if it was requested and is not nested too deep.
    pub(super) raw: Vec<Option<Value>>,
    /// The ranges of all records that hold a function response of this message.
    pub(super) also: Vec<Range<u64>>,
}

/// All live messages, with their origins if requested. What cannot be read becomes a note.
pub(super) fn converted(journal: &mut Journal, origins: bool) -> Vec<LiveMessage> {
    let mut all = Messages { origins, ..Messages::default() };
    for mut entry in std::mem::take(&mut journal.entries) {
        match std::mem::replace(&mut entry.item.drafts, Ok(Vec::new())) {
            Ok(drafts) => drafts.into_iter().for_each(|it| all.push(&entry, it)),
            Err(what) => journal.notes.push(Note { line: journal.line_of(entry.item.record), what }),
        }
    }
    all.live
}

#[derive(Default)]
struct Messages {
    live: Vec<LiveMessage>,
    /// The message of each function response since the last model message, by call id: the client stores
    /// responses twice, and once more after each resume.
    answered: HashMap<Arc<str>, usize>,
    origins: bool,
}

impl Messages {
    /// Adds a message, without responses that the turn already has.
    fn push(&mut self, entry: &JournalEntry, draft: MessageDraft) {
        let item = &entry.item;
        let MessageDraft { side, parts: mut pieces, kind, snapshot, summary } = draft;
        let model = side == RecordSide::Model;
        if model {
            self.answered.clear();
        }
        self.drop_repeated(&mut pieces, item);
        // Without repetitions, only parts may be left that the client would not send.
        if pieces.is_empty() || (side == RecordSide::User && pieces.iter().all(|it| it.blank)) {
            return;
        }
        let frame = if model { r#"{"role":"model","parts":[]}"# } else { r#"{"role":"user","parts":[]}"# };
        let commas = pieces.len() as u64 - 1;
        let wire_len = frame.len() as u64 + commas + pieces.iter().map(|it| it.len).sum::<u64>();
        let origin = self.origins.then(|| {
            Box::new(JournalOrigin {
                records: vec![item.record],
                at: item.at.clone(),
                record_id: item.id.clone().unwrap_or_default(),
                raw: pieces.iter_mut().map(|it| it.raw.take().map(|it| *it)).collect(),
                also: vec![item.at.clone()],
            })
        });
        let mut parts: Vec<Part> = pieces.into_iter().map(|it| it.part).collect();
        parts.shrink_to_fit();
        // The client acknowledges only its own summary, whatever text surrounds the snapshot.
        if let (Some(last), true) = (self.live.last_mut(), model && is_text(&parts, GEMINI_ACK))
            && last.snapshot
        {
            last.message.kind = Kind::Summary;
        }
        let before = self.live.last().map(|it| &it.message);
        let kind = match (side, kind) {
            // Text beside a tool's response is the tool's, not the user's words.
            (RecordSide::User | RecordSide::Results, None) if is_beside(&parts) => Kind::Context,
            (RecordSide::Results, _) => Kind::Said,
            (_, Some(kind)) => kind,
            (_, None) => kind_of(before, model, &parts, summary),
        };
        let message = Message {
            from: Some(self.live.len() as u32),
            id: item.id.clone(),
            at: item.time,
            usage: entry.usage.filter(|_| model),
            wire_len: u32::try_from(wire_len).ok(),
            ..Message::new(if model { Role::Assistant } else { Role::User }, kind, parts)
        };
        self.live.push(LiveMessage { message, side, snapshot, origin });
    }

    /// Removes responses that the turn already has; this record becomes another origin of the message that
    /// has them.
    fn drop_repeated(&mut self, pieces: &mut Vec<ReadPart>, item: &JournalItem) {
        let here = self.live.len();
        let mut repeated = BTreeSet::new();
        pieces.retain(|it| {
            let Part::Output(output) = &it.part else { return true };
            match self.answered.entry(output.id.clone()) {
                Slot::Vacant(slot) => {
                    slot.insert(here);
                    true
                }
                // Within one message too: the client writes all responses of a batch into each call's result.
                Slot::Occupied(slot) => {
                    if *slot.get() != here {
                        repeated.insert(*slot.get());
                    }
                    false
                }
            }
        });
        for first in repeated {
            if let Some(origin) = self.live.get_mut(first).and_then(|it| it.origin.as_mut()) {
                origin.also.push(item.at.clone());
                if !origin.records.contains(&item.record) {
                    origin.records.push(item.record);
                }
            }
        }
    }
}

fn is_text(parts: &[Part], expected: &str) -> bool {
    matches!(parts, [Part::Text(text)] if text.as_str() == expected)
}

/// Whether there is anything beside a tool's response.
fn is_beside(parts: &[Part]) -> bool {
    let output = |it: &Part| matches!(it, Part::Output(_));
    parts.iter().any(output) && !parts.iter().all(output)
}

/// The kind of a message by its text alone.
pub(super) fn read_kind(before: Option<&Message>, is_model: bool, parts: &[Part]) -> Kind {
    let summary = matches!(parts, [Part::Text(text)] if is_snapshot(text.as_str()));
    kind_of(before, is_model, parts, summary)
}

/// [`read_kind`], if it is known whether the text is a summary.
fn kind_of(before: Option<&Message>, is_model: bool, parts: &[Part], summary: bool) -> Kind {
    let [Part::Text(text)] = parts else { return Kind::Said };
    match is_model {
        false if summary || crate::is_our_summary(text.as_str()) => Kind::Summary,
        false if matches!(text.as_str(), "Please continue." | "System: Please continue.") => Kind::Continue,
        true if text.as_str() == GEMINI_ACK && before.is_some_and(|it| it.kind == Kind::Summary) => Kind::Ack,
        _ => Kind::Said,
    }
}
