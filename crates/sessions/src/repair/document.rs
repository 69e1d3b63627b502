//! Sessions that are one JSON document: an end that is cut off, and messages in it that are no JSON.

use std::collections::BTreeSet;

use serde::de::IgnoredAny;

use super::lines::encoded;
use super::pairs::removals;
use super::{Damage, Findings};
use crate::{Record, Source, glimpse};
use history::error::Result;

/// Leaves a whole document with whole messages in it.
pub(crate) fn document(source: &dyn Source, found: &mut Findings<'_>) -> Result<()> {
    let bytes = source.whole()?;
    let text = encoded(Record { at: 0, len: source.len() }, &bytes, found);
    let mut begin = 0;
    if text.starts_with('\u{feff}') {
        found.note(Damage::ByteOrderMark, 0, "the file begins with EF BB BF");
        found.replace(0..3, "");
        begin = 3;
    }
    let Some(list) = crate::parse::document::member(&text, "messages") else { return Ok(()) };
    let messages = crate::parse::document::children(&text, list.clone());
    let spans: Vec<_> = messages.items.iter().map(|it| it.span.start as u64..it.span.end as u64).collect();
    let is_whole =
        |it: &std::ops::Range<usize>| serde_json::from_str::<IgnoredAny>(&text[it.clone()]).is_ok();
    let broken: BTreeSet<usize> =
        (0..spans.len()).filter(|it| !is_whole(&messages.items[*it].span)).collect();
    for it in &broken {
        let span = messages.items[*it].span.clone();
        found.note(Damage::BrokenRecord, span.start as u64, glimpse(&text[span]));
    }
    let closed = messages.closed && serde_json::from_str::<IgnoredAny>(&text[begin..]).is_ok();
    let whole_but_for_messages = messages.closed && !broken.is_empty();
    match removals(&spans, &broken) {
        Some(ranges) => ranges.into_iter().for_each(|it| found.replace(it, "")),
        None if spans.is_empty() => {}
        None => found.replace(spans[0].start..spans[spans.len() - 1].end, ""),
    }
    if !closed && !whole_but_for_messages {
        let end = spans.last().map_or(list.start as u64 + 1, |it| it.end);
        let lost = source.len() - end;
        found.note(
            Damage::CutRecord,
            end,
            format!("the document ends {lost} bytes behind the last whole message"),
        );
        found.replace(end..source.len(), "]}");
    }
    Ok(())
}
