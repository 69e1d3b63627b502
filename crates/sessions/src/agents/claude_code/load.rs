//! The content of a row.

use std::sync::Arc;

use serde_json::Value;

use super::assemble::{ItemKind, RowItem};
use super::blocks::is_blank;
use super::line::{Attached, LineReader, RowContent, RowLine};
use super::row::{Loaded, Row, RowKind};
use super::usage::SYNTHETIC;
use crate::parse::raw::{Fields, list};
use crate::parse::texts::{Texts, WHOLE};
use crate::{Keep, Record, Source};
use history::error::Result;
use history::{Kind, Part, Text, Usage};

/// Where attachments hold their text in versions that did not record what was sent: type, JSON pointer.
const ATTACHED: [(&str, &str); 14] = [
    ("agent_listing_delta", "/addedLines"),
    ("batching_reminder_sent", "/text"),
    ("deferred_tools_delta", "/addedLines"),
    ("edited_text_file", "/snippet"),
    ("file", "/content/file/content"),
    ("hook_additional_context", "/content"),
    ("hook_success", "/content"),
    ("invoked_skills", "/skills"),
    ("mcp_instructions_delta", "/addedBlocks"),
    ("model", "/text"),
    ("nested_memory", "/content/content"),
    ("silent_turn_reminder", "/text"),
    ("skill_listing", "/content"),
    ("total_tokens_reminder", "/text"),
];

/// Reads the content of a row again.
///
/// # Errors
/// Errors of reading `source`.
pub(super) fn load(
    source: &dyn Source,
    records: &[Record],
    row: &Row,
    keep: &Keep,
) -> Result<Result<Loaded, String>> {
    let record = records[row.record as usize];
    let text = source.text(record.range())?;
    let mut reader = LineReader::new(Some(keep), record.at);
    let mut line = reader.line(text.as_bytes());
    let line = line.get_or_insert_default();
    let model = line.message.as_ref().and_then(|it| it.model.as_deref()).map(Arc::from);
    Ok(loaded(row, line, model, reader.texts))
}

/// The content of a row, with texts as `keep` leaves them. `model`: the interned name of the model that
/// replied.
///
/// # Errors
/// What the row lacks.
pub(super) fn loaded(
    row: &Row,
    line: &mut RowLine<'_>,
    model: Option<Arc<str>>,
    texts: Texts,
) -> Result<Loaded, String> {
    let missing = || "expected a message, found none; not used".to_owned();
    let item = match row.kind {
        RowKind::Boundary | RowKind::Link | RowKind::Assistant { api_error: true } => None,
        RowKind::Assistant { api_error: false } => {
            let content = line.message.take().ok_or_else(missing)?;
            return Ok(reply(row.response.clone().unwrap_or_default(), model, content.usage, content.parts));
        }
        RowKind::User { meta, summary, .. } => {
            Some(words(line.message.take().ok_or_else(missing)?, meta, summary))
        }
        RowKind::LocalCommand => {
            let parts = line.content.take().into_iter().map(Part::Text).collect();
            Some(RowItem { kind: ItemKind::Words(Kind::Context), parts })
        }
        RowKind::Attachment => {
            let mut item = attachment(&line.attached)?;
            let parts = item.iter_mut().flat_map(|it| &mut it.parts);
            parts.for_each(|it| texts.apply_keep(it));
            item
        }
    };
    Ok(Loaded { item: item.map(Box::new), model: None })
}

fn reply(response: Arc<str>, model: Option<Arc<str>>, usage: Option<Usage>, parts: Vec<Part>) -> Loaded {
    let synthetic = model.as_deref() == Some(SYNTHETIC);
    let usage = usage.filter(|it| !synthetic && it.context() > 0);
    let model = model.filter(|_| !synthetic);
    let kind = ItemKind::Reply { response, usage, model: model.clone().filter(|_| usage.is_some()) };
    Loaded { item: Some(Box::new(RowItem { kind, parts })), model }
}

fn words(content: RowContent<'_>, meta: bool, summary: bool) -> RowItem {
    let words_kind = if meta { Kind::Context } else { content.kind() };
    let parts = content.parts;
    let kind = if parts.iter().any(|it| matches!(it, Part::Output(_))) {
        ItemKind::Results(words_kind)
    } else if summary || content.is_summary && matches!(&*parts, [Part::Text(_)]) {
        ItemKind::Summary
    } else {
        ItemKind::Words(words_kind)
    };
    RowItem { kind, parts }
}

fn attachment(attached: &Attached<'_>) -> Result<Option<RowItem>, String> {
    let Some(raw) = attached.attachment else { return Ok(None) };
    let Some(fields) = Fields::of(raw) else { return Ok(None) };
    // Texts are read whole here; the caller applies `keep`.
    let mut reader = LineReader::new(Some(WHOLE), 0);
    let kind = fields.text("type").unwrap_or_default();
    // What the user typed while the model was working, and notices of background tasks that ended. The client
    // sends it wrapped in a sentence of its own; only the words themselves are read.
    let queued = || fields.text("commandMode").is_none_or(|it| it == "prompt" || it == "task-notification");
    if kind == "queued_command" && queued() {
        let content = reader.parts(fields.get("prompt").unwrap_or_default());
        return Ok(Some(RowItem { kind: ItemKind::Words(content.kind()), parts: content.parts }));
    }
    let user = attached.role.as_deref() == Some("user");
    let texts: Vec<Part> = match attached.rendered {
        Some(rendered) => {
            let rendered = list(rendered).and_then(|it| it.into_iter().map(Fields::of).collect());
            let Some::<Vec<Fields>>(rendered) = rendered else { return Ok(None) };
            let contents = rendered.iter().filter_map(|it| it.get("content"));
            contents.flat_map(|it| reader.parts(it).parts).collect()
        }
        None => {
            let Some((_, pointer)) = ATTACHED.iter().find(|it| it.0 == kind) else { return Ok(None) };
            let value: Value = serde_json::from_str(raw).map_err(|it| it.to_string())?;
            let text = match value.pointer(pointer) {
                Some(Value::Array(lines)) => lines
                    .iter()
                    .filter_map(|it| it.as_str().or_else(|| it.get("content")?.as_str()))
                    .collect::<Vec<_>>()
                    .join("\n"),
                Some(Value::String(text)) => text.clone(),
                _ => String::new(),
            };
            vec![Part::Text(text.into())]
        }
    };
    if user {
        return Ok(Some(RowItem { kind: ItemKind::Before, parts: texts }));
    }
    // In a `system` message the client sends it without the `<system-reminder>` tag.
    let bare = |part: Part| match part {
        Part::Text(text) => {
            let inner = text.as_str().strip_prefix("<system-reminder>\n");
            let inner = inner.and_then(|it| it.trim_end().strip_suffix("\n</system-reminder>"));
            Part::Text(inner.map(Text::from).unwrap_or(text))
        }
        other => other,
    };
    let parts = texts.into_iter().map(bare).filter(|it| !is_blank(it)).collect();
    Ok(Some(RowItem { kind: ItemKind::After, parts }))
}
