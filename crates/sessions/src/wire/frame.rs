//! The frame of a document: the position of its array of messages, and the other fields of a request body.

use std::sync::Arc;

use serde_json::Value;

use super::system;
use crate::parse::spans::{self, Items, Span};
use crate::{Note, Source, glimpse};
use history::error::{Error, ErrorKind, Result};
use history::{Meta, json};

/// Keys under which an object holds its messages, in the order in which they are tried.
pub const KEYS: [&str; 4] = ["messages", "input", "contents", "history"];

/// What is around the array of messages.
pub(super) struct Frame {
    /// The fields of the object around the array; none if it is bare.
    pub(super) fields: Vec<(String, Span)>,
    /// The array's key (empty if it is bare) and the position of its `[`.
    pub(super) array: Option<(String, usize)>,
}

/// Finds the array of messages; none if the text begins neither an array nor an object.
fn frame(text: &str) -> Option<Frame> {
    let start = spans::start(text);
    match text.as_bytes().get(start)? {
        b'[' => Some(Frame { fields: vec![], array: Some((String::new(), start)) }),
        b'{' => {
            let fields = spans::fields(text, start);
            let array = KEYS.into_iter().find_map(|key| {
                let open = fields.get(key)?.start;
                text.get(open..)?.starts_with('[').then(|| (key.to_string(), open))
            });
            Some(Frame { fields: fields.fields, array })
        }
        _ => None,
    }
}

pub(super) fn array(source: &dyn Source, text: &str) -> Result<(Frame, Items)> {
    let expected = "while reading plain messages, expected a JSON array, or an object that holds one as `messages`, `input`, `contents` or `history`";
    let fail = |found: String| {
        Error::new(ErrorKind::Input, format!("{expected}, found {found}; name the format if it is another"))
            .at(source.name(), None)
    };
    let Some(frame) = frame(text) else {
        return Err(fail(glimpse(text)));
    };
    let Some((_, open)) = frame.array else {
        let keys: Vec<&str> = frame.fields.iter().take(8).map(|it| it.0.as_str()).collect();
        return Err(fail(match frame.fields.iter().find(|it| KEYS.contains(&it.0.as_str())) {
            Some((key, _)) => format!("an object whose `{key}` is not an array"),
            None => format!("an object with the keys [{}]", keys.join(", ")),
        }));
    };
    let items = spans::items(text, open);
    Ok((frame, items))
}

/// Notes on parts of the document that could not be read.
pub(super) fn frame_notes(frame: &Frame, items: &Items, text: &str) -> Vec<Note> {
    let line = items.spans.len() as u64 + 1;
    let what = match (items.close, items.broken) {
        (None, Some(at)) => {
            let left = text.len() - at;
            format!(
                "expected a complete element, found {left} bytes that are truncated or broken; they are kept, not read"
            )
        }
        (None, None) => "expected the end of the array, found the end of the text".to_string(),
        (Some(close), _) => {
            let bare = frame.fields.is_empty();
            let rest = text.get(close + 1..).unwrap_or_default().trim();
            if !bare || rest.is_empty() {
                return vec![];
            }
            format!("expected nothing after the array, found {} bytes; they are kept, not read", rest.len())
        }
    };
    vec![Note { line, what }]
}

/// The other fields of a request body.
pub(super) fn meta(frame: &Frame, text: &str, notes: &mut Vec<Note>) -> Meta {
    let mut meta = Meta::default();
    for (key, span) in &frame.fields {
        let wanted = matches!(
            key.as_str(),
            "system" | "instructions" | "systemInstruction" | "system_instruction" | "tools" | "model"
        );
        if !wanted {
            continue;
        }
        let value: Value = match serde_json::from_str(&text[span.clone()]) {
            Ok(it) => it,
            Err(error) => {
                notes.push(Note { line: 0, what: format!("expected JSON in `{key}`, found {error}") });
                continue;
            }
        };
        match key.as_str() {
            "tools" if !value.is_null() => meta.tools = Some(json::compact(&value).into()),
            "model" => meta.model = value.as_str().map(Arc::from),
            _ => meta.system = system(&value).or(meta.system.take()),
        }
    }
    meta
}
