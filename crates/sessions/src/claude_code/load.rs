//! What a row says.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::assemble::Item;
use super::blocks::{blocks, is_blank, kind_of};
use super::fast::Said;
use super::lenient::lenient;
use super::row::{Loaded, Row, RowKind};
use super::usage::Reported;
use crate::{Keep, hold, refusal};
use history::{Kind, Part, Text};

/// The model's name on rows that the client wrote in the model's place.
pub(super) const SYNTHETIC: &str = "<synthetic>";

/// Where attachments of versions that did not record what was sent hold it: type, JSON pointer.
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

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    message: Body<'a>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "lenient")]
    model: Option<Arc<str>>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<Reported>,
}

/// What an assistant's row says.
fn reply(response: Arc<str>, model: Option<Arc<str>>, usage: Option<Reported>, parts: Vec<Part>) -> Loaded {
    let synthetic = model.as_deref() == Some(SYNTHETIC);
    let usage = usage.filter(|_| !synthetic).map(Reported::usage).filter(|it| it.context() > 0);
    let model = model.filter(|_| !synthetic);
    let item = Item::Reply { response, parts, usage, model: model.clone().filter(|_| usage.is_some()) };
    Loaded { item: Some(Box::new(item)), model }
}

/// What a user's row says.
fn words(parts: Vec<Part>, kind: Kind, meta: bool, summary: bool, result: bool) -> Item {
    let kind = if meta { Kind::Context } else { kind };
    if result && parts.iter().any(|it| matches!(it, Part::Output(_))) {
        Item::Results { parts, kind }
    } else if summary || matches!(&*parts, [Part::Text(text)] if super::super::is_our_summary(text.as_str()))
    {
        Item::Summary(parts)
    } else {
        Item::Words { parts, kind }
    }
}

/// What a row says that was read in one pass; `model` is the one that answered.
pub(super) fn said(row: &Row, said: Said, model: Option<Arc<str>>) -> Loaded {
    let kind = said.kind();
    match row.kind {
        RowKind::User { meta, summary, result } => {
            Loaded { item: Some(Box::new(words(said.parts, kind, meta, summary, result))), model: None }
        }
        _ => reply(row.response.clone().unwrap_or_default(), model, said.usage, said.parts),
    }
}

/// What a row says, its texts as `keep` leaves them. `text` is its record's, which stands at `at`.
pub(super) fn load(row: &Row, text: &str, keep: &Keep, at: u64) -> Result<Loaded, String> {
    let mut loaded = loaded(row, text)?;
    loaded.item.iter_mut().flat_map(|it| it.parts_mut()).for_each(|it| hold(it, keep, at));
    Ok(loaded)
}

pub(super) fn loaded(row: &Row, text: &str) -> Result<Loaded, String> {
    let body = || -> Result<Body, String> {
        let content: Content =
            serde_json::from_str(text).map_err(|it| format!("expected a message: {it}; not used"))?;
        Ok(content.message)
    };
    let item = match row.kind {
        RowKind::Boundary | RowKind::Link | RowKind::Assistant { api_error: true } => None,
        RowKind::Assistant { api_error: false } => {
            let body = body()?;
            let response = row.response.clone().unwrap_or_default();
            return Ok(reply(response, body.model, body.usage, blocks(body.content)));
        }
        RowKind::User { meta, summary, result } => {
            let mut parts = blocks(body()?.content);
            refusals(text, &mut parts);
            let kind = kind_of(&parts);
            Some(words(parts, kind, meta, summary, result))
        }
        RowKind::LocalCommand => {
            #[derive(Deserialize)]
            struct Local {
                #[serde(default, deserialize_with = "lenient")]
                content: Option<String>,
            }
            let local: Local = serde_json::from_str(text).map_err(|it| it.to_string())?;
            let parts = local.content.into_iter().map(|it| Part::Text(it.into())).collect();
            Some(Item::Words { parts, kind: Kind::Context })
        }
        RowKind::Attachment => attachment(text)?,
    };
    Ok(Loaded { item: item.map(Box::new), model: None })
}

/// Marks the results of calls that the user refused. An MCP server's error could read the same: but since 2.1.328 a row
/// says how permission was decided, and in every row of Claude Code the result also stands as it was shown.
fn refusals(row: &str, parts: &mut [Part]) {
    #[derive(Deserialize)]
    struct Denied<'a> {
        #[serde(rename = "toolDenialKind", default, deserialize_with = "lenient")]
        kind: Option<String>,
        #[serde(rename = "permissionDecision", default, deserialize_with = "lenient")]
        permission: Option<Permission>,
        #[serde(rename = "toolUseResult", borrow, default)]
        shown: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Permission {
        decision: String,
    }
    for part in parts {
        if let Part::Output(output) = part
            && output.failed
            && let Some(refusal) = refusal::claude_code(output.text.as_str())
            && let Ok(denied) = serde_json::from_str::<Denied>(row)
            && denied.shown.is_some()
            && denied.kind.is_none_or(|it| it == "user-rejected")
            && denied.permission.is_none_or(|it| it.decision != "accept")
        {
            output.refusal = Some(Box::new(refusal));
        }
    }
}

fn attachment(text: &str) -> Result<Option<Item>, String> {
    #[derive(Deserialize)]
    struct Attached<'a> {
        #[serde(borrow, default)]
        attachment: Option<&'a RawValue>,
        #[serde(borrow, default)]
        rendered: Option<&'a RawValue>,
        #[serde(rename = "renderedRole", default, deserialize_with = "lenient")]
        role: Option<String>,
    }
    #[derive(Deserialize)]
    struct Kinded<'a> {
        #[serde(rename = "type", default, deserialize_with = "lenient")]
        kind: Option<String>,
        #[serde(rename = "commandMode", default, deserialize_with = "lenient")]
        mode: Option<String>,
        #[serde(borrow, default)]
        prompt: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Rendered<'a> {
        #[serde(borrow, default)]
        content: Option<&'a RawValue>,
    }
    let attached: Attached =
        serde_json::from_str(text).map_err(|it| format!("expected an attachment: {it}"))?;
    let raw = attached.attachment.map_or("", RawValue::get);
    let Ok(kinded) = serde_json::from_str::<Kinded>(raw) else { return Ok(None) };
    let kind = kinded.kind.unwrap_or_default();
    // What the user typed while the model was at work. The client sends it wrapped in a sentence of its own; here are
    // the words alone.
    if kind == "queued_command" && kinded.mode.as_deref().is_none_or(|it| it == "prompt") {
        let parts = blocks(kinded.prompt);
        return Ok(Some(Item::Words { kind: kind_of(&parts), parts }));
    }
    let user = attached.role.as_deref() == Some("user");
    let texts: Vec<Part> = match attached.rendered.map(|it| serde_json::from_str::<Vec<Rendered>>(it.get())) {
        Some(Ok(rendered)) => rendered.into_iter().flat_map(|it| blocks(it.content)).collect(),
        Some(Err(_)) => return Ok(None),
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
        return Ok(Some(Item::Before(texts)));
    }
    // As `system` it is sent without the tag that marks it elsewhere.
    let bare = |part: Part| match part {
        Part::Text(text) => {
            let inner = text.as_str().strip_prefix("<system-reminder>\n");
            let inner = inner.and_then(|it| it.trim_end().strip_suffix("\n</system-reminder>"));
            Part::Text(inner.map(Text::from).unwrap_or(text))
        }
        other => other,
    };
    Ok(Some(Item::After(texts.into_iter().map(bare).filter(|it| !is_blank(it)).collect())))
}
