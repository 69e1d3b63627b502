//! The rows that make up nearly all of a transcript, read in one pass. Whatever is not exactly as expected here is left
//! to the reader that takes everything; where both read a row, they read the same.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use memchr::memmem;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::blocks::output;
use super::chain::Line;
use super::fields::squeeze;
use super::read::{Loaded, Reported, reply, words};
use crate::format::raw::Str;
use crate::history::{Call, Part, Reasoning, Text};

/// A row, understood.
pub(super) struct Fast {
    pub(super) line: Line<'static>,
    /// Its message speaks of a tool's result.
    pub(super) said: bool,
    /// `message.id`.
    pub(super) response: Option<Arc<str>>,
    pub(super) loaded: Loaded,
}

#[derive(Deserialize)]
struct Row<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    uuid: Arc<str>,
    #[serde(rename = "parentUuid")]
    parent: Option<Arc<str>>,
    #[serde(rename = "sourceToolAssistantUUID")]
    answers: Option<Arc<str>>,
    #[serde(rename = "isSidechain")]
    sidechain: Option<bool>,
    #[serde(rename = "isMeta")]
    meta: Option<bool>,
    #[serde(rename = "isCompactSummary")]
    summary: Option<bool>,
    #[serde(rename = "isApiErrorMessage")]
    api_error: Option<bool>,
    subtype: Option<String>,
    timestamp: Option<String>,
    #[serde(rename = "sessionId")]
    session: Option<Arc<str>>,
    cwd: Option<Arc<str>>,
    #[serde(rename = "compactMetadata")]
    compact: Option<IgnoredAny>,
    #[serde(borrow)]
    message: Body<'a>,
}

#[derive(Deserialize)]
struct Body<'a> {
    id: Option<Arc<str>>,
    model: Option<Arc<str>>,
    usage: Option<Reported>,
    #[serde(borrow)]
    content: Content<'a>,
}

enum Content<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Str<'a>,
    #[serde(borrow)]
    text: Option<Str<'a>>,
    #[serde(borrow)]
    thinking: Option<Str<'a>>,
    #[serde(borrow)]
    signature: Option<Str<'a>>,
    id: Option<Arc<str>>,
    name: Option<Arc<str>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    tool_use_id: Option<Arc<str>>,
    #[serde(borrow)]
    content: Option<Content<'a>>,
    is_error: Option<bool>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Content<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or blocks")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut out = Vec::new();
                while let Some(block) = list.next_element()? {
                    out.push(block);
                }
                Ok(Content::Blocks(out))
            }
        }
        from.deserialize_any(Either)
    }
}

/// Reads a row of the user's or the model's, if there is nothing unusual in it.
pub(super) fn look(text: &str) -> Option<Fast> {
    let row: Row = serde_json::from_str(text).ok()?;
    let assistant = match row.kind.as_str() {
        "assistant" => true,
        "user" => false,
        _ => return None,
    };
    if row.compact.is_some() || row.api_error == Some(true) {
        return None;
    }
    let body = row.message;
    let is_result = |it: &Block| it.kind.as_str() == "tool_result";
    let result = matches!(&body.content, Content::Blocks(it) if it.iter().any(is_result));
    // It may also stand elsewhere, which the other reader takes for a sign of one.
    if !result && !assistant && memmem::find(text.as_bytes(), b"\"tool_result\"").is_some() {
        return None;
    }
    let parts = parts(body.content)?;
    let loaded = if assistant {
        let response = body.id.clone().unwrap_or_else(|| row.uuid.clone());
        reply(response, body.model, body.usage, parts)
    } else {
        let item = words(parts, row.meta == Some(true), row.summary == Some(true), result);
        Loaded { item: Some(item), model: None }
    };
    let line = Line {
        kind: Some(row.kind.as_str().to_owned()),
        uuid: Some(row.uuid),
        parent: row.parent,
        answers: row.answers,
        sidechain: row.sidechain,
        meta: row.meta,
        summary: row.summary,
        api_error: row.api_error,
        subtype: row.subtype,
        timestamp: row.timestamp,
        session: row.session,
        cwd: row.cwd,
        ..Line::default()
    };
    Some(Fast { line, said: result, response: body.id, loaded })
}

fn parts(content: Content<'_>) -> Option<Vec<Part>> {
    match content {
        Content::Text(text) if text.trim().is_empty() => Some(Vec::new()),
        Content::Text(text) => Some(vec![Part::Text(text.as_ref().into())]),
        Content::Blocks(blocks) => {
            let mut out = Vec::with_capacity(blocks.len());
            for block in blocks {
                out.extend(part(block)?);
            }
            Some(out)
        }
    }
}

/// `None` for a block that is left to the other reader, `Some(None)` for one that is not sent.
fn part(block: Block<'_>) -> Option<Option<Part>> {
    let text = |it: Option<Str<'_>>| it.map_or(Text::default(), |it| it.as_str().into());
    Some(match block.kind.as_str() {
        "text" => {
            let text = text(block.text);
            (!text.is_empty()).then_some(Part::Text(text))
        }
        "thinking" => {
            let signature = block.signature.filter(|it| !it.as_str().is_empty());
            let signature = signature.map(|it| it.as_str().into());
            Some(Part::Reasoning(Reasoning { text: text(block.thinking), signature }))
        }
        // What it holds is copied as it stands: nothing in it may have to be mended.
        "tool_use" if block.input.is_some_and(|it| it.get().contains("\\u")) => return None,
        "tool_use" => Some(Part::Call(Call {
            id: block.id.unwrap_or_default(),
            name: block.name.unwrap_or_default(),
            input: block.input.map_or("{}".into(), |it| squeeze(it.get()).into()),
            freeform: false,
            signature: None,
        })),
        "tool_result" => {
            let parts = match block.content {
                Some(Content::Text(text)) => vec![Part::Text(text.as_ref().into())],
                Some(Content::Blocks(blocks)) if blocks.iter().all(|it| it.kind.as_str() == "text") => {
                    parts(Content::Blocks(blocks))?
                }
                Some(Content::Blocks(_)) => return None,
                None => Vec::new(),
            };
            Some(output(block.tool_use_id.unwrap_or_default(), parts, block.is_error == Some(true)))
        }
        _ => return None,
    })
}
