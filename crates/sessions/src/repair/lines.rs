//! Lines that are not records: cut, joined, torn or spoilt ones.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::{Damage, Findings};
use crate::parse::lines::each_line;
use crate::parse::raw::Fields;
use crate::{Record, Source, glimpse};
use history::error::Result;
use history::json;

/// Limits for finding an object after a fragment: positions that are tried, and bytes of a line that are
/// parsed.
const TRIED: usize = 10_000;
const PARSED: usize = 64 << 20;

/// Maximum bytes of a broken line that is held, in case the next one is its other half.
const HALF: usize = 16 << 20;

/// Mends the file so that each line is one whole JSON object.
pub(crate) fn lines(source: &dyn Source, found: &mut Findings<'_>) -> Result<()> {
    found.byte_order_mark(&source.bytes(0..source.len().min(3))?);
    let mut half: Option<(Record, String)> = None;
    each_line(source, |_, record, bytes| {
        let text = encoded(record, bytes, found);
        let broken = !is_object(&text);
        if let Some((first, begin)) = half.take() {
            if broken && is_object(&format!("{begin}\\n{text}")) {
                let gap = first.at + first.len..record.at;
                let between = source.bytes(gap.clone())?;
                found.note(Damage::SplitRecord, first.at, glimpse(&begin));
                found.replace(gap, escaped(&between));
                return Ok(true);
            }
            torn(source, first, &begin, found)?;
        }
        match (broken, text.len() < HALF) {
            (false, _) => {}
            (true, true) => half = Some((record, text.into_owned())),
            (true, false) => torn(source, record, &text, found)?,
        }
        Ok(true)
    })?;
    match half {
        Some((record, text)) => torn(source, record, &text, found),
        None => Ok(()),
    }
}

fn is_object(text: &str) -> bool {
    text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// White space between two halves of a string, escaped as inside a string.
fn escaped(between: &[u8]) -> String {
    between
        .iter()
        .map(|it| match it {
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            _ => " ",
        })
        .collect()
}

/// The text of a line. Invalid bytes in it are noted, and mended without moving anything.
pub(super) fn encoded<'a>(record: Record, bytes: &'a [u8], found: &mut Findings<'_>) -> Cow<'a, str> {
    let text = json::mend(bytes);
    if let Cow::Owned(new) = &text {
        let is_text = simdutf8::basic::from_utf8(bytes).is_ok();
        let damage = if is_text { Damage::LoneSurrogate } else { Damage::BadUtf8 };
        let mut at = 0;
        let mut first = true;
        let new = new.as_bytes();
        while let Some(from) = (at..bytes.len()).find(|it| bytes[*it] != new[*it]) {
            let to = (from..bytes.len()).find(|it| bytes[*it] == new[*it]).unwrap_or(bytes.len());
            if std::mem::take(&mut first) {
                found.note(damage, record.at + from as u64, format!("at byte {from} of the record"));
            }
            found.replace(record.at + from as u64..record.at + to as u64, &new[from..to]);
            at = to;
        }
    }
    text
}

/// Removes from a line what is not a whole object, and gives each object its own line.
fn torn(source: &dyn Source, record: Record, text: &str, found: &mut Findings<'_>) -> Result<()> {
    let at = |range: Range<usize>| record.at + range.start as u64..record.at + range.end as u64;
    // NUL bytes are not white space in JSON, but they occur between records.
    let blank = |it: char| it == '\0' || it.is_ascii_whitespace();
    let (mut from, mut objects, mut fragments, mut budget) = (0, Vec::new(), Vec::new(), PARSED);
    while from < text.len() {
        let rest = &text[from..];
        let skipped = rest.len() - rest.trim_start_matches(blank).len();
        from += skipped;
        let rest = &text[from..];
        if rest.is_empty() {
            break;
        }
        match first_object(rest) {
            Ok(len) => {
                objects.push(from..from + len);
                from += len;
            }
            Err(_) => {
                let next = next_object(rest, &mut budget).map_or(text.len(), |it| from + it);
                fragments.push(from..next);
                from = next;
            }
        }
    }
    let nul = text.contains('\0');
    let last = record.at + record.len + 2 >= source.len();
    let damage = match (objects.len(), fragments.is_empty()) {
        (0, true) => Damage::NulBytes,
        (0, false) if last => Damage::CutRecord,
        (0, false) => Damage::BrokenRecord,
        (_, false) => Damage::Fragment,
        (_, true) if nul => Damage::NulBytes,
        (_, true) => Damage::JoinedRecords,
    };
    let begin = fragments.first().filter(|_| objects.is_empty()).map_or(0, |it| it.start);
    let detail = match objects.len() {
        0 => format!("{} bytes that begin with {}", text.len(), glimpse(&text[begin..])),
        1 => format!("{} bytes next to a complete record", text.len() - objects[0].len()),
        many => format!("{many} records"),
    };
    found.note(damage, record.at, detail);
    if objects.is_empty() {
        found.replace(whole_line(source, record)?, "");
        return Ok(());
    }
    let mut done = 0;
    for it in &objects {
        if it.start > done || done > 0 {
            found.replace(at(done..it.start), if done > 0 { "\n" } else { "" });
        }
        done = it.end;
    }
    if done < text.len() {
        found.replace(at(done..text.len()), "");
    }
    Ok(())
}

/// The length of the object that a text begins with, or the bytes after which it is clear that there is none.
fn first_object(text: &str) -> Result<usize, usize> {
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let first = stream.next().ok_or(0_usize)?.map_err(|it| it.column())?.get();
    if first.starts_with('{') { Ok(first.len()) } else { Err(first.len()) }
}

/// Where a whole object begins after a fragment: one that ends the line, or that another one follows.
/// `budget`: bytes that may still be parsed.
fn next_object(text: &str, budget: &mut usize) -> Option<usize> {
    memmem::find_iter(text.as_bytes(), b"{\"").filter(|it| *it > 0).take(TRIED).find(|it| {
        let rest = &text[*it..];
        if *budget == 0 {
            return false;
        }
        let object = first_object(rest);
        *budget = budget.saturating_sub(object.unwrap_or_else(|it| it));
        object.is_ok_and(|len| {
            let behind = rest[len..].trim_start_matches(|it: char| it == '\0' || it.is_ascii_whitespace());
            is_record(&rest[..len]) && (behind.is_empty() || behind.starts_with("{\""))
        })
    })
}

/// Whether an object is a record of an agent, not a value within one.
fn is_record(text: &str) -> bool {
    let Some(fields) = Fields::of(text) else { return false };
    let has = |key| fields.get(key).is_some();
    has("$set") || has("$rewindTo") || (has("type") && (has("timestamp") || has("sessionId")))
}

pub(crate) fn whole_line(source: &dyn Source, record: Record) -> Result<Range<u64>> {
    const BLOCK: u64 = 4 << 10;
    let mut end = record.at + record.len;
    while end < source.len() {
        let block = source.bytes(end..(end + BLOCK).min(source.len()))?;
        match block.iter().position(|it| *it == b'\n' || !it.is_ascii_whitespace()) {
            Some(at) => {
                let line_break = u64::from(block[at] == b'\n');
                return Ok(record.at..end + at as u64 + line_break);
            }
            None => end += block.len() as u64,
        }
    }
    Ok(record.at..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemorySource;

    #[test]
    fn a_line_goes_to_its_break() {
        for (blank, behind, whole) in
            [(9_000, "\nx", 9_004), (4_096, "x\n", 4_099), (5, "", 8), (0, "\n\n", 4)]
        {
            let source = MemorySource::new("t", format!("{{1}}{}{behind}", " ".repeat(blank)));
            assert_eq!(
                whole_line(&source, Record { at: 0, len: 3 }).unwrap(),
                0..whole,
                "{blank} {behind:?}"
            );
        }
    }
}
