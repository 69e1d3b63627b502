//! Replaces outputs in place, so that the rows stay readable if the process is killed while it writes.
//!
//! Padding the placeholder with blanks up to the output's old end is not enough: a long output spans many
//! pages, which the system writes one after the other, and the closing quote would have to appear on the
//! first page and vanish from the last at once. So the old closing quote stays: the rest of the output
//! becomes a string that nobody reads, in a field of ours after the message, and only the few bytes between
//! are written.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use crate::parse::raw::{Fields, place};
use crate::wire::anthropic;
use crate::{Session, Source, Written, changed_outputs, replaced};
use history::error::Result;
use history::json;
use history::{History, Message, Output};

/// The session with the outputs that `after` changes. Other bytes move only if an output grows, with a
/// warning.
pub(super) fn patch(source: &dyn Source, session: &Session, after: &History) -> Result<Written> {
    let (mut by, mut warnings) = (BTreeMap::new(), Vec::new());
    for (number, old, new) in changed_outputs(source, session.history.messages(), after)? {
        let changed = changed(old, new).unwrap_or_default();
        for &record in &session.origins[number] {
            let place = session.records[record as usize];
            let bytes = source.bytes(place.range())?;
            let text = json::mend(&bytes);
            let contents = contents(&text, &changed);
            if contents.is_empty() {
                continue;
            }
            if let [(range, new)] = contents.as_slice()
                && let Some(stretch) = set_aside(&text, range, new)
            {
                let mut out = bytes;
                out[range.start..range.start + stretch.len()].copy_from_slice(stretch.as_bytes());
                by.insert(record, out);
                continue;
            }
            let fits = contents.iter().all(|(range, new)| new.len() <= range.len());
            let mut at = 0;
            let mut out = Vec::new();
            for (range, new) in contents {
                out.extend_from_slice(&bytes[at..range.start]);
                out.extend_from_slice(new.as_bytes());
                at = range.end;
                if fits {
                    out.resize(at, b' ');
                }
            }
            out.extend_from_slice(&bytes[at..]);
            if out.len() > bytes.len() {
                let more = out.len() - bytes.len();
                warnings.push(format!("record {} grew by {more} bytes: what follows it moved", record + 1));
            }
            out.resize(out.len().max(bytes.len()), b' ');
            by.insert(record, out);
        }
    }
    let pieces = replaced(source, &session.records, by);
    Ok(Written { pieces, warnings, ..Written::default() })
}

/// The field that holds the rest of a replaced output.
pub(super) const REST_FIELD: &str = "epitome";

/// Maximum bytes of the message after an output, which are written again before the rest of the output: the
/// ends of lists and objects, `is_error`.
const REWRITTEN_MAX: usize = 256;

/// The bytes to write from the start of `content` on, so that it becomes `new` and the other fields of the
/// row stay as they are. None if there is no room, or if too much of the message follows `content`.
fn set_aside(row: &str, content: &Range<usize>, new: &str) -> Option<String> {
    let message = place(row, Fields::of(row)?.get("message")?)?;
    let after = row.get(content.end..message.end).filter(|it| it.len() <= REWRITTEN_MAX)?;
    let mut out = format!("{new}{after},\"{REST_FIELD}\":");
    let (cut, opened) = inside_a_text(row, message.start..content.end, content.start, out.len())?;
    out.push_str(&" ".repeat(cut - content.start - out.len() - opened.len()));
    out.push_str(&opened);
    Some(out)
}

/// The first position inside a string with room between it and `from` for `used` bytes and for the returned
/// opening characters. These reopen what is open at that position (the objects and lists since the start of
/// `range`, and the string), so that the bytes that follow close the same as before.
fn inside_a_text(row: &str, range: Range<usize>, from: usize, used: usize) -> Option<(usize, String)> {
    let bytes = row.as_bytes();
    let mut open: Vec<u8> = Vec::new();
    let (mut at, mut names) = (range.start, false);
    while at < range.end {
        match bytes[at] {
            it @ (b'{' | b'[') => {
                open.push(it);
                names = it == b'{';
            }
            b'}' | b']' => drop(open.pop()),
            b',' => names = open.last() == Some(&b'{'),
            b':' => names = false,
            b'"' => {
                let opened = open.iter().map(|it| if *it == b'{' { "{\"\":" } else { "[" });
                let opened: String = opened.chain(["\""]).collect();
                let wanted = from + used + opened.len();
                let counts = at >= from && !names;
                at += 1;
                while at < range.end && bytes[at] != b'"' {
                    // Not inside a character, nor between surrogates.
                    if counts && at >= wanted && row.is_char_boundary(at) && !row[at..].starts_with("\\ud") {
                        return Some((at, opened));
                    }
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The changed outputs of `new` by call id; none if the messages also differ in something else.
pub(super) fn changed<'a>(old: &Message, new: &'a Message) -> Option<HashMap<&'a str, &'a Output>> {
    let outputs = old.outputs().zip(new.outputs());
    let changed = outputs.filter(|(old, new)| !old.text.same(&new.text) || old.media != new.media);
    old.differs_in_outputs_alone(new).then(|| changed.map(|(_, new)| (&*new.id, new)).collect())
}

/// The blocks of a row's content, as raw JSON.
pub(super) fn raw_blocks(text: &str) -> Vec<&str> {
    Fields::of(text).and_then(|it| it.object("message")?.list("content")).unwrap_or_default()
}

/// The ranges of the `content` of these outputs in a record, in order, and the JSON to put there.
pub(super) fn contents(text: &str, outputs: &HashMap<&str, &Output>) -> Vec<(Range<usize>, String)> {
    let mut left = outputs.clone();
    let changed = |block: &str| {
        let result = Fields::of(block)?;
        let output = left.remove(result.text("tool_use_id")?.as_str())?;
        Some((place(text, result.get("content")?)?, anthropic::output(output)))
    };
    raw_blocks(text).into_iter().filter_map(changed).collect()
}
