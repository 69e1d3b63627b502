//! Sessions that are one JSON document: an end that is cut off, and messages that are no JSON.

use std::collections::BTreeSet;

use serde::de::IgnoredAny;

use super::lines::encoded;
use super::pairs::removals;
use super::{Damage, Findings};
use crate::parse::document::{elements, member};
use crate::{Record, Source, glimpse};
use history::error::Result;
use history::json;

/// Mends the document so that it is complete, and every message is JSON.
pub(crate) fn document(source: &dyn Source, found: &mut Findings<'_>) -> Result<()> {
    let bytes = source.whole()?;
    let text = encoded(Record { at: 0, len: source.len() }, &bytes, found);
    found.byte_order_mark(&bytes);
    let Some(list) = member(&text, "messages") else { return Ok(()) };
    let Some(messages) = elements(&text, list.start) else { return Ok(()) };
    let spans: Vec<_> = messages.spans.iter().map(|it| it.start as u64..it.end as u64).collect();
    let is_json = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    let broken: BTreeSet<usize> =
        (0..spans.len()).filter(|it| !is_json(&text[messages.spans[*it].clone()])).collect();
    for it in &broken {
        let span = messages.spans[*it].clone();
        found.note(Damage::BrokenRecord, span.start as u64, glimpse(&text[span]));
    }
    let closed = messages.close.is_some() && is_json(json::without_byte_order_mark(&text));
    let whole_but_for_messages = messages.close.is_some() && !broken.is_empty();
    match removals(&spans, &broken) {
        Some(ranges) => ranges.into_iter().for_each(|it| found.replace(it, "")),
        None if spans.is_empty() => {}
        None => found.replace(spans[0].start..spans[spans.len() - 1].end, ""),
    }
    if !closed && !whole_but_for_messages {
        let end = spans.last().map_or(list.start as u64 + 1, |it| it.end);
        let lost = source.len() - end;
        let what = format!("the document ends {lost} bytes behind the last whole message");
        found.note(Damage::CutRecord, end, what);
        found.replace(end..source.len(), "]}");
    }
    Ok(())
}
