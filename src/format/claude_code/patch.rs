//! Outputs replaced where they stand.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::blocks::content_of;
use super::fields::span;
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::format::{Session, Source, Written, replaced};
use crate::history::{History, Message, Output, Part};
use crate::json;

/// The session with the outputs that `after` changes, and no other byte moved.
pub(super) fn patch(source: &dyn Source, session: &Session, after: &History) -> Result<Written> {
    let before = session.history.messages();
    let refuse = |what: &str| {
        let what = format!("while patching outputs, expected {what}; write a new session instead");
        Error::new(ErrorKind::Bug, what).at(source.name(), None)
    };
    if before.len() != after.messages().len() {
        return Err(refuse("the messages that were read, found other ones"));
    }
    let (mut by, mut warnings) = (BTreeMap::new(), Vec::new());
    for (number, (old, new)) in before.iter().zip(after.messages()).enumerate() {
        if new.from != Some(number as u32) {
            return Err(refuse("the messages that were read in their order, found another order"));
        }
        let changed = changed(old, new).ok_or_else(|| refuse("changes of outputs alone, found others"))?;
        if changed.is_empty() {
            continue;
        }
        for &record in &session.of_message[number] {
            let place = session.records[record as usize];
            let bytes = source.bytes(place.range())?;
            let text = json::mend(&bytes);
            let mut at = 0;
            let mut out = Vec::new();
            for (range, new) in contents(&text, &changed) {
                out.extend_from_slice(&bytes[at..range.start]);
                out.extend_from_slice(new.as_bytes());
                at = range.end;
            }
            if at == 0 {
                continue;
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
    let pieces = replaced(source.len(), &session.records, by);
    Ok(Written { pieces, warnings, ..Written::default() })
}

/// The outputs of `new` that differ, by the call they answer; nothing if the messages differ in more.
pub(super) fn changed<'a>(old: &Message, new: &'a Message) -> Option<HashMap<&'a str, &'a Output>> {
    if old.role != new.role || old.parts.len() != new.parts.len() {
        return None;
    }
    let mut out = HashMap::new();
    for (old, new) in old.parts.iter().zip(&new.parts) {
        match (old, new) {
            (Part::Output(old), Part::Output(new)) if old.id == new.id => {
                if !old.text.same(&new.text) || old.media != new.media {
                    out.insert(&*new.id, new);
                }
            }
            _ if old == new => {}
            _ => return None,
        }
    }
    Some(out)
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    message: Body<'a>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    content: &'a RawValue,
}

#[derive(Deserialize)]
struct Answer<'a> {
    tool_use_id: String,
    #[serde(borrow)]
    content: &'a RawValue,
}

/// Blocks of a row's content, as they are written.
pub(super) fn raw_blocks(text: &str) -> Vec<&RawValue> {
    let content = serde_json::from_str::<Content>(text).map(|it| it.message.content.get());
    content.ok().and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default()
}

/// Where in a record the `content` of these outputs stands, in order, and what is to stand there.
pub(super) fn contents(text: &str, outputs: &HashMap<&str, &Output>) -> Vec<(Range<usize>, String)> {
    let mut left = outputs.clone();
    raw_blocks(text)
        .into_iter()
        .filter_map(|block| {
            let result: Answer = serde_json::from_str(block.get()).ok()?;
            let output = left.remove(result.tool_use_id.as_str())?;
            Some((span(text, result.content.get()), content_of(output)))
        })
        .collect()
}
