//! Outputs replaced in place; every other byte stays.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Value, json};

use super::CLEARED;
use super::element::is_compacted;
use super::read::Export;
use crate::parse::document::{elements, find, value};
use crate::{Session, Source, Written, changed_outputs, spliced};
use history::error::{Error, ErrorKind, Result};
use history::json::compact;
use history::{History, Output, Part};

pub(super) fn patch(
    source: &dyn Source,
    export: &Export<'_>,
    session: &Session,
    after: &History,
) -> Result<Written> {
    let live = export.live(None);
    let mut changed: BTreeMap<u32, Vec<(usize, &Output)>> = BTreeMap::new();
    let at = export.info["time"]["updated"].as_i64().or(session.history.meta.times.map(|it| it.1));
    for (number, old, new) in changed_outputs(source, session.history.messages(), after)? {
        let live = live.get(number).ok_or_else(|| lost(0, number as u32))?;
        for ((old, new), part) in old.parts.iter().zip(&new.parts).zip(&live.parts) {
            if let (Part::Output(old), Part::Output(new)) = (old, new)
                && (old.text != new.text || old.media != new.media)
            {
                changed.entry(live.record as u32).or_default().push((*part, new));
            }
        }
    }
    let mut edits = Vec::new();
    for (record, outputs) in changed {
        let element = export.entries[record as usize].span.clone();
        let parts = find(export.text, element, &["parts"]);
        let parts = parts.and_then(|it| elements(export.text, it.start)).unwrap_or_default().spans;
        for (part, new) in outputs {
            let span = parts.get(part).cloned().ok_or_else(|| lost(part, record))?;
            let found = output(export.text, span, new, at.unwrap_or(0).saturating_add(1))?;
            let found = found.ok_or_else(|| lost(part, record))?.into_iter();
            edits.extend(found.map(|(it, new)| (it.start as u64..it.end as u64, new)));
        }
    }
    Ok(Written { pieces: spliced(source, edits), ..Written::default() })
}

fn lost(part: usize, record: u32) -> Error {
    Error::new(ErrorKind::Bug, format!("expected a tool part {part} in message {record} again, found none"))
}

type Edit = (Range<usize>, String);

/// The edits that give the tool part at `part` a new output; none if it is not as it was read.
fn output(text: &str, part: Range<usize>, new: &Output, at: i64) -> Result<Option<Vec<Edit>>> {
    let state = &value(text, part.clone(), "a part")?["state"];
    let place = |path: &[&str]| find(text, part.clone(), path);
    let json = Value::from(new.text.as_str()).to_string();
    Ok(match state["status"].as_str() {
        Some("completed") if new.text.as_str() == CLEARED && new.media.is_empty() => {
            let time = place(&["state", "time"]).zip(state["time"].as_object());
            match (place(&["state", "time", "compacted"]), time) {
                (Some(span), _) => Some(vec![(span, at.to_string())]),
                (None, Some((span, time))) => {
                    let comma = if time.is_empty() { "" } else { "," };
                    Some(vec![(span.end - 1..span.end - 1, format!("{comma}\"compacted\":{at}"))])
                }
                (None, None) => place(&["state", "output"]).map(|it| vec![(it, json)]),
            }
        }
        Some("completed") => place(&["state", "output"]).map(|span| {
            let mut edits = vec![(span, json)];
            if let Some(span) = place(&["state", "time", "compacted"]).filter(|_| is_compacted(state)) {
                edits.push((span, "0".to_owned()));
            }
            if let Some(span) = place(&["state", "attachments"]) {
                edits.push((span, compact(&attachments(state, new))));
            }
            edits
        }),
        Some("error")
            if state["metadata"]["interrupted"] == true && state["metadata"]["output"].is_string() =>
        {
            place(&["state", "metadata", "output"]).map(|it| vec![(it, json)])
        }
        Some("error") => place(&["state", "error"]).map(|it| vec![(it, json)]),
        _ => {
            let what = "patching an OpenCode export: expected only outputs to differ, but a tool that never finished has \
                        no output to replace; append or make a new session";
            return Err(Error::new(ErrorKind::Refused, what));
        }
    })
}

/// The attachments whose data is still in `wanted`.
pub(super) fn attachments(state: &Value, wanted: &Output) -> Value {
    let all = state["attachments"].as_array().map(Vec::as_slice).unwrap_or_default();
    let url = |it: &Value| it["url"].as_str().unwrap_or_default().to_owned();
    let kept = all.iter().filter(|it| wanted.media.iter().any(|media| url(it).ends_with(&*media.data)));
    json!(kept.collect::<Vec<_>>())
}
