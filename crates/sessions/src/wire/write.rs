//! Writes into the same document: what did not change is copied, the rest is put in its place.

use std::borrow::Cow;
use std::ops::Range;

use super::{Api, array, fit};
use crate::parse::spans::{self, Items, Span};
use crate::{Mode, Piece, Record, Session, Source, Written, replaced};
use history::error::{Error, ErrorKind, Result};
use history::json;
use history::{History, Message};

/// Writes a changed history back into its document.
///
/// [`Mode::Patch`] replaces the content of changed outputs and nothing else. [`Mode::Append`] and
/// [`Mode::New`] are the same here: the document with its array replaced by `after`, untouched messages
/// copied byte for byte, with the white space between elements that the document uses.
///
/// # Errors
/// [`ErrorKind::Bug`] if messages were added, removed or moved for [`Mode::Patch`]; [`ErrorKind::Input`] or
/// [`ErrorKind::Changed`] if the source is no longer what was read.
pub fn write(source: &dyn Source, session: &Session, after: &History, mode: Mode) -> Result<Written> {
    let mut warnings = vec![];
    let api = session.format.0.api;
    let freeform = fit::freeform_ids(after.messages());
    let mut entry =
        |it: &Message| entry(source, session, it, api, &|id| freeform.contains(id), &mut warnings);
    let entries = after.messages().iter().map(&mut entry).collect::<Result<Vec<_>>>()?;
    let in_place = after.messages().len() == session.records.len()
        && (0..).zip(after.messages()).all(|(number, it)| it.from == Some(number));
    let pieces = match mode {
        Mode::Patch if !in_place => {
            let expected = session.records.len();
            let found = after.messages().len();
            let what = format!(
                "while replacing outputs in place, expected the {expected} messages that were read, in their order, found {found} others"
            );
            return Err(Error::new(ErrorKind::Bug, what).at(source.name(), None));
        }
        Mode::Patch => {
            let new = (0..).zip(entries).filter_map(|(number, it)| match it {
                WireEntry::New(elements) => Some((number, elements.join(&b","[..]))),
                WireEntry::Keep(_) => None,
            });
            replaced(source, &session.records, new.collect())
        }
        Mode::Append | Mode::New if in_place && entries.iter().all(|it| matches!(it, WireEntry::Keep(_))) => {
            vec![Piece::Keep(0..source.len())]
        }
        Mode::Append | Mode::New => spliced(source, session, &entries, &mut warnings)?,
    };
    Ok(Written { pieces, session: None, file_name: None, warnings })
}

/// How a message is written.
enum WireEntry {
    /// The record of that number, unchanged.
    Keep(usize),
    New(Vec<Vec<u8>>),
}

fn entry(
    source: &dyn Source,
    session: &Session,
    message: &Message,
    api: Api,
    freeform: &dyn Fn(&str) -> bool,
    warnings: &mut Vec<String>,
) -> Result<WireEntry> {
    let rendered = || api.elements(message, freeform).into_iter().map(String::into_bytes).collect();
    let found = message.from.map(|it| it as usize).and_then(|number| {
        Some((number, session.history.messages().get(number)?, session.records.get(number)?))
    });
    let Some((number, before, record)) = found else { return Ok(WireEntry::New(rendered())) };
    if before.role == message.role && before.parts == message.parts {
        return Ok(WireEntry::Keep(number));
    }
    let bytes = source.bytes(record.range())?;
    if let Some(patched) = patched(&bytes, api, before, message) {
        return Ok(WireEntry::New(vec![patched]));
    }
    warnings.push(format!(
        "message {number} was rewritten, since more than its outputs changed; unknown fields are lost"
    ));
    let rendered: Vec<Vec<u8>> = rendered();
    Ok(if rendered.is_empty() { WireEntry::New(vec![bytes]) } else { WireEntry::New(rendered) })
}

/// An element with its changed outputs replaced; none if something else changed.
fn patched(bytes: &[u8], api: Api, before: &Message, after: &Message) -> Option<Vec<u8>> {
    let text = json::mend(bytes);
    let spots = api.spots(&text);
    if !before.differs_in_outputs_alone(after) || spots.len() != before.outputs().count() {
        return None;
    }
    let mut out = bytes.to_vec();
    // From the end backwards, so that earlier positions stay valid.
    let pairs: Vec<_> = before.outputs().zip(after.outputs()).zip(spots).collect();
    for ((_, new), spot) in pairs.into_iter().rev().filter(|((old, new), _)| old != new) {
        let fields = spans::fields(&text, spot.object.start);
        let value = api.output(new);
        let (place, value) = match fields.get(spot.key) {
            Some(span) => (span, value),
            None => {
                let close = fields.close?;
                let comma = if fields.fields.is_empty() { "" } else { "," };
                (close..close, format!("{comma}\"{}\":{value}", spot.key))
            }
        };
        out.splice(place, value.into_bytes());
    }
    Some(out)
}

/// The document with other elements in its array.
fn spliced(
    source: &dyn Source,
    session: &Session,
    entries: &[WireEntry],
    warnings: &mut Vec<String>,
) -> Result<Vec<Piece>> {
    let text = source.text(0..source.len())?;
    let (frame, items) = array(source, &text)?;
    let same =
        |(span, record): (&Span, &Record)| span.start as u64 == record.at && span.len() as u64 == record.len;
    let open = frame.array.as_ref().map_or(0, |it| it.1);
    if items.spans.len() != session.records.len() || !items.spans.iter().zip(&session.records).all(same) {
        let what = "while writing messages back, expected the document that was read, found another";
        return Err(Error::new(ErrorKind::Changed, what).at(source.name(), None));
    }
    let style = Style::of(&text, open, &items);
    let mut pieces = Pieces::default();
    pieces.keep(0..open + 1);
    let (mut first, mut before) = (true, None);
    for entry in entries {
        let next_in_source = match entry {
            WireEntry::Keep(number) => before.is_some_and(|it: usize| it + 1 == *number),
            WireEntry::New(_) => false,
        };
        let elements: Cow<'_, [Vec<u8>]> = match entry {
            WireEntry::Keep(_) => Cow::Owned(vec![vec![]]),
            WireEntry::New(it) => Cow::Borrowed(it),
        };
        for element in elements.iter() {
            match before.and_then(|it| items.spans.get(it..it + 2)) {
                Some([last, this]) if next_in_source => pieces.keep(last.end..this.start),
                _ if first => pieces.add(style.lead.as_bytes()),
                _ => pieces.add(style.between.as_bytes()),
            }
            first = false;
            pieces.add(element);
        }
        before = match entry {
            WireEntry::Keep(number) => {
                pieces.keep(items.spans.get(*number).cloned().unwrap_or(0..0));
                Some(*number)
            }
            WireEntry::New(_) => None,
        };
    }
    if !first {
        pieces.add(style.tail.as_bytes());
    }
    match items.close {
        Some(close) => pieces.keep(close..text.len()),
        None => {
            let left = items.spans.last().map_or(open + 1, |it| it.end);
            let lost = text.get(left..).unwrap_or_default().trim().len();
            warnings.push(format!(
                "the document was truncated or broken; it is closed, and its last {lost} bytes are left out"
            ));
            pieces.add(if frame.fields.is_empty() { b"]" } else { b"]}" });
        }
    }
    Ok(pieces.0)
}

/// The white space and commas around elements.
struct Style<'a> {
    lead: &'a str,
    between: Cow<'a, str>,
    tail: &'a str,
}

impl<'a> Style<'a> {
    fn of(text: &'a str, open: usize, items: &Items) -> Self {
        let Some(first) = items.spans.first() else {
            return Self { lead: "", between: ",".into(), tail: "" };
        };
        let lead = &text[open + 1..first.start];
        let between = match items.spans.get(1) {
            Some(second) => Cow::Borrowed(&text[first.end..second.start]),
            None => Cow::Owned(format!(",{lead}")),
        };
        let last = items.spans.last().map_or(first.end, |it| it.end);
        Self { lead, between, tail: items.close.map_or("", |close| &text[last..close]) }
    }
}

/// The pieces of the output; adjacent ranges are merged.
#[derive(Default)]
struct Pieces(Vec<Piece>);

impl Pieces {
    fn keep(&mut self, range: Range<usize>) {
        let range = range.start as u64..range.end as u64;
        match self.0.last_mut() {
            _ if range.is_empty() => {}
            Some(Piece::Keep(last)) if last.end == range.start => last.end = range.end,
            _ => self.0.push(Piece::Keep(range)),
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        match self.0.last_mut() {
            _ if bytes.is_empty() => {}
            Some(Piece::New(last)) => last.extend_from_slice(bytes),
            _ => self.0.push(Piece::New(bytes.to_vec())),
        }
    }
}
