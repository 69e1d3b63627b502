//! What OpenCode would send next, and the elements and parts that it comes from.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use serde::Deserialize;
use serde_json::Value;

use super::element::{LiveElement, assistant, is_completed, usage, user};
use crate::parse::document;
use crate::{Format, Keep, Note, PastCompaction, Record, Session, apply_keep, derive};
use history::error::{Error, ErrorKind, Result as OrError};
use history::parallel;
use history::{History, Kind, Meta};

/// Minimum number of elements per thread.
const MANY: usize = 64;

/// An opened export: the head of every element, without the content of its parts.
pub(super) struct Export<'a> {
    pub text: &'a str,
    /// The session's `info`.
    pub info: Value,
    pub entries: Vec<ExportEntry>,
    /// Whether the end is there: nothing is cut off.
    pub is_complete: bool,
    pub notes: Vec<Note>,
    /// Indices in `entries` by message id.
    places: HashMap<String, usize>,
}

/// One element of `messages`.
pub(super) struct ExportEntry {
    pub span: Range<usize>,
    /// Null if the element is broken.
    pub info: Value,
    /// The compaction part, if there is one.
    compaction: Option<PartHead>,
}

/// The fields of a part that decide whether its element is sent.
#[derive(Deserialize)]
struct PartHead {
    #[serde(default, rename = "type")]
    kind: Value,
    #[serde(default)]
    auto: Value,
    #[serde(default)]
    tail_start_id: Value,
}

#[derive(Deserialize)]
struct Element {
    info: Value,
    parts: Vec<PartHead>,
}

impl<'a> Export<'a> {
    pub(super) fn open(text: &'a str, name: &str) -> OrError<Self> {
        let found =
            document::open(text, "messages").filter(|it| it.top.get("info").is_some()).ok_or_else(|| {
                let what = "expected an OpenCode export (an object with info and messages), found something \
                    else; make one with: opencode export SESSION";
                Error::new(ErrorKind::Input, what).at(name, None)
            })?;
        let mut notes = Vec::new();
        let info =
            found.top.get("info").and_then(|it| document::value(text, it, "info").ok()).unwrap_or_default();
        let mut entries = Vec::with_capacity(found.records.len());
        let heads =
            parallel::par_map(&found.records, MANY, |it| head(text.get(it.clone()).unwrap_or_default()));
        for (index, (span, head)) in found.records.into_iter().zip(heads).enumerate() {
            let (info, compaction) = head.unwrap_or_else(|what| {
                notes.push(note(index, &what));
                (Value::Null, None)
            });
            entries.push(ExportEntry { span, info, compaction });
        }
        if !found.is_complete {
            notes.push(note(entries.len(), "the document is truncated; what is complete was read"));
        }
        let ids = entries.iter().enumerate().rev();
        let places = ids.filter_map(|(at, it)| Some((it.info["id"].as_str()?.to_owned(), at))).collect();
        Ok(Self { text, info, entries, is_complete: found.is_complete, notes, places })
    }

    /// The whole element, parsed.
    pub(super) fn element(&self, record: usize) -> Value {
        let span = self.entries.get(record).map_or(0..0, |it| it.span.clone());
        document::value(self.text, span, "a message").unwrap_or_default()
    }

    /// The messages that OpenCode would send next, in order. With `keep`, texts are as it leaves them.
    pub(super) fn live(&self, keep: Option<&Keep>) -> Vec<LiveElement> {
        let order = self.order();
        let model = order.iter().rev().find_map(|it| model_of(&self.entries[it.0].info));
        let last = order.last().copied();
        let messages_of = |&(record, keep_parts): &(usize, usize)| {
            let ExportEntry { info, span, .. } = &self.entries[record];
            let mut out = Vec::new();
            let mut element = self.element(record);
            let Some(parts) = element.get_mut("parts").and_then(Value::as_array_mut) else { return out };
            parts.truncate(keep_parts);
            match info["role"].as_str() {
                Some("user") => user(record, info, parts, &mut out),
                Some("assistant") => {
                    let same_model = model.is_none() || model == model_of(info);
                    let open = last == Some((record, keep_parts));
                    assistant(record, info, parts, same_model, open, &mut out);
                }
                _ => {}
            }
            if let Some(keep) = keep {
                let parts = out.iter_mut().flat_map(|it| &mut it.message.parts);
                parts.for_each(|it| apply_keep(it, keep, span.start as u64));
            }
            out
        };
        let mut out: Vec<LiveElement> =
            parallel::par_map(&order, MANY, messages_of).into_iter().flatten().collect();
        // Messages before the summary reported the usage of another context.
        let summary = out.iter().rposition(|it| it.message.kind == Kind::Summary);
        if let Some(summary) = summary {
            let since = out[summary].record;
            for it in out.iter_mut().filter(|it| it.record <= since) {
                (it.message.usage, it.message.model) = (None, None);
            }
        }
        out
    }

    /// The elements that are sent, in order, with how many of their parts count: a session that was reverted
    /// continues from there (OpenCode 1.18, `info.revert`, applied with the next prompt).
    fn order(&self) -> Vec<(usize, usize)> {
        let revert = &self.info["revert"];
        let mut end = self.entries.len();
        let mut cut = None;
        if let Some(at) = revert["messageID"].as_str().and_then(|it| self.position(it)) {
            end = at;
            let parts = self.element(at);
            let parts = parts["parts"].as_array().map(Vec::as_slice).unwrap_or_default();
            let place = revert["partID"].as_str().and_then(|id| parts.iter().position(|it| it["id"] == id));
            if let Some(place) = place.filter(|it| *it > 0) {
                (end, cut) = (at + 1, Some((at, place)));
            }
        }
        let keep = |record: usize| cut.filter(|it| it.0 == record).map_or(usize::MAX, |it| it.1);
        self.filter_compacted(end).into_iter().map(|it| (it, keep(it))).collect()
    }

    fn position(&self, id: &str) -> Option<usize> {
        self.places.get(id).copied()
    }

    /// OpenCode's view of a session with compactions (1.18, `filterCompacted`): the elements back to the
    /// newest marker with a complete summary, and on to the start of its tail, which is then moved behind the
    /// summary.
    fn filter_compacted(&self, end: usize) -> Vec<usize> {
        let mut completed = BTreeSet::new();
        let mut until: Option<&str> = None;
        let mut out = Vec::new();
        for index in (0..end).rev() {
            let ExportEntry { info, compaction, .. } = &self.entries[index];
            if info.is_null() {
                continue;
            }
            out.push(index);
            let id = info["id"].as_str().unwrap_or_default();
            if let Some(until) = until {
                if id == until {
                    break;
                }
            } else if is_completed(info) {
                completed.insert(info["parentID"].as_str().unwrap_or_default());
            } else if let Some(it) =
                compaction.as_ref().filter(|_| info["role"] == "user" && completed.contains(id))
            {
                match it.tail_start_id.as_str() {
                    Some(tail) if tail != id => until = Some(tail),
                    Some(_) | None => break,
                }
            }
        }
        out.reverse();
        let tail_of =
            |it: usize| self.entries[it].compaction.as_ref().and_then(|it| it.tail_start_id.as_str());
        let Some(marker) = out.iter().rposition(|it| tail_of(*it).is_some()) else { return out };
        let id = &self.entries[out[marker]].info["id"];
        let is_summary = |it: usize| {
            let info = &self.entries[it].info;
            info["role"] == "assistant" && info["summary"] == true && &info["parentID"] == id
        };
        let summary = (marker + 1..out.len()).find(|it| is_summary(out[*it]));
        let tail = tail_of(out[marker]).and_then(|id| self.position(id));
        let tail = tail.and_then(|it| out.binary_search(&it).ok());
        match (tail, summary) {
            (Some(tail), Some(summary)) if tail < marker => {
                [&out[marker..=summary], &out[tail..marker], &out[summary + 1..]].concat()
            }
            _ => out,
        }
    }

    /// With `keep`, texts are as it leaves them.
    pub(super) fn session(self, keep: Option<&Keep>) -> Session {
        let live = self.live(keep);
        let records = self
            .entries
            .iter()
            .map(|it| Record { at: it.span.start as u64, len: it.span.len() as u64 })
            .collect();
        let origins = live.iter().map(|it| [it.record as u32]).collect();
        let past = self.past(&live);
        let history = History::numbered(live.into_iter().map(|it| it.message).collect(), self.meta());
        Session { format: Format::OPENCODE, records, origins, notes: self.notes, past, history }
    }

    fn meta(&self) -> Meta {
        let infos = || self.entries.iter().map(|it| &it.info);
        let text = |it: &Value| it.as_str().filter(|it| !it.is_empty()).map(Into::into);
        let answered = infos().rev().find_map(|it| text(&it["modelID"]));
        let times = infos().flat_map(|it| [&it["time"]["created"], &it["time"]["completed"]]);
        let times = times.chain([&self.info["time"]["created"], &self.info["time"]["updated"]]);
        let times = times.filter_map(Value::as_i64).fold(None, derive::widened);
        Meta {
            agent: Some("opencode".into()),
            session: text(&self.info["id"]),
            model: answered
                .or_else(|| infos().rev().find_map(|it| text(&it["model"]["modelID"])))
                .or_else(|| text(&self.info["model"]["id"])),
            cwd: infos()
                .rev()
                .find_map(|it| text(&it["path"]["cwd"]))
                .or_else(|| text(&self.info["directory"])),
            times,
            planning: infos().rev().filter(|it| it["role"] == "user").find_map(|it| {
                let agent = it["agent"].as_str().or_else(|| it["mode"].as_str())?;
                Some(agent == "plan")
            }),
            ..Meta::default()
        }
    }

    /// One per marker with a complete summary. The context before it is what the last reply before it
    /// reported.
    fn past(&self, live: &[LiveElement]) -> Vec<PastCompaction> {
        let place: BTreeMap<usize, usize> =
            live.iter().enumerate().rev().map(|(at, it)| (it.record, at)).collect();
        let mut out = Vec::new();
        let mut reported = None;
        for (index, entry) in self.entries.iter().enumerate() {
            let info = &entry.info;
            if !is_completed(info) {
                reported = usage(&info["tokens"]).map(|it| it.context()).or(reported);
                continue;
            }
            let parent = info["parentID"].as_str().and_then(|it| self.position(it));
            let Some(marker) = parent.and_then(|it| self.entries[it].compaction.as_ref()) else { continue };
            let mut parts = Vec::new();
            let element = self.element(index);
            for it in element["parts"].as_array().into_iter().flatten().filter(|it| it["type"] == "text") {
                parts.extend(it["text"].as_str());
            }
            out.push(PastCompaction {
                message: place.get(&index).copied(),
                trigger: Some(if marker.auto == true { "auto" } else { "manual" }.to_owned()),
                tokens_before: reported.take(),
                tokens_after: None,
                summary: parts.join("\n"),
            });
        }
        out
    }
}

/// What decides whether an element is sent: its info, and its compaction part, if there is one.
fn head(element: &str) -> Result<(Value, Option<PartHead>), String> {
    let Element { mut info, parts } = serde_json::from_str(element)
        .map_err(|error| format!("expected a message with info and parts: {error}; left out"))?;
    let Some(fields) = info.as_object_mut() else {
        return Err("expected a message with info and parts, found another shape; left out".into());
    };
    // The file diffs of a turn, often larger than everything else, are never sent.
    if fields.get("summary").is_some_and(Value::is_object) {
        fields.remove("summary");
    }
    Ok((info, parts.into_iter().find(|it| it.kind == "compaction")))
}

fn note(index: usize, what: &str) -> Note {
    Note { line: index as u64 + 1, what: what.to_owned() }
}

fn model_of(info: &Value) -> Option<(&str, &str)> {
    let model = if info["role"] == "user" { &info["model"] } else { info };
    Some((model["providerID"].as_str()?, model["modelID"].as_str()?))
}
