//! What OpenCode would send next, and from which parts of which elements it comes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use serde::Deserialize;
use serde_json::Value;

use super::{CLEARED, MARKER};
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::format::{Format, Note, PastCompaction, Record, Session, document};
use crate::history::{
    Call, History, Kind, Media, MediaKind, Message, Meta, Output, Part, Reasoning, Role, Text, Usage,
};

/// An export, opened: every element's head, but no part's content.
pub(super) struct Export<'a> {
    pub text: &'a str,
    /// The session's `info`.
    pub info: Value,
    pub entries: Vec<Entry>,
    /// Nothing is cut off at the end.
    pub whole: bool,
    pub notes: Vec<Note>,
    /// Where each message id stands.
    places: HashMap<String, usize>,
}

/// One element of `messages`.
pub(super) struct Entry {
    pub span: Range<usize>,
    /// Null if the element is broken.
    pub info: Value,
    /// The compaction part, if there is one.
    compaction: Option<Compaction>,
}

#[derive(Clone)]
struct Compaction {
    auto: bool,
    tail: Option<String>,
}

/// A message of the history and where it comes from.
pub(super) struct Live {
    pub message: Message,
    /// Number of the element.
    pub record: usize,
    /// For each part of the message, its number among the element's parts.
    pub parts: Vec<usize>,
}

/// Of a part, what decides whether its element is sent.
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
    pub(super) fn open(text: &'a str, name: &str) -> Result<Self> {
        let found =
            document::open(text, "messages").filter(|it| it.top.get("info").is_some()).ok_or_else(|| {
                Error::new(
                    ErrorKind::Input,
                    "expected an OpenCode export (an object with info and messages), found something else; \
                 make one with: opencode export SESSION",
                )
                .at(name, None)
            })?;
        let mut notes = Vec::new();
        let info =
            found.top.get("info").and_then(|it| document::value(text, it, "info").ok()).unwrap_or_default();
        let mut entries = Vec::with_capacity(found.records.len());
        for (index, span) in found.records.into_iter().enumerate() {
            let element = text.get(span.clone()).unwrap_or_default();
            let (info, compaction) = match serde_json::from_str::<Element>(element) {
                Ok(Element { mut info, parts }) if info.is_object() => {
                    // The file diffs of a turn, often larger than everything else, are never sent.
                    if let Some(info) =
                        info.as_object_mut().filter(|it| it.get("summary").is_some_and(Value::is_object))
                    {
                        info.remove("summary");
                    }
                    let compaction = parts.iter().find(|it| it.kind == "compaction").map(|it| Compaction {
                        auto: it.auto == true,
                        tail: it.tail_start_id.as_str().map(str::to_owned),
                    });
                    (info, compaction)
                }
                Ok(_) => {
                    notes.push(note(
                        index,
                        "expected a message with info and parts, found another shape; left out",
                    ));
                    (Value::Null, None)
                }
                Err(error) => {
                    notes.push(note(
                        index,
                        &format!("expected a message with info and parts: {error}; left out"),
                    ));
                    (Value::Null, None)
                }
            };
            entries.push(Entry { span, info, compaction });
        }
        if !found.whole {
            notes.push(note(entries.len(), "the document ends before it is closed; what is whole was read"));
        }
        let ids = entries.iter().enumerate().rev();
        let places = ids.filter_map(|(at, it)| Some((it.info["id"].as_str()?.to_owned(), at))).collect();
        Ok(Self { text, info, entries, whole: found.whole, notes, places })
    }

    /// The element, parsed whole.
    pub(super) fn element(&self, record: usize) -> Value {
        let span = self.entries.get(record).map_or(0..0, |it| it.span.clone());
        document::value(self.text, span, "a message").unwrap_or_default()
    }

    /// The messages that OpenCode would send next, in order.
    pub(super) fn live(&self) -> Vec<Live> {
        let order = self.order();
        let model = order.iter().rev().find_map(|it| model_of(&self.entries[it.0].info));
        let last = order.last().copied();
        let mut out = Vec::new();
        for (record, keep) in order {
            let info = &self.entries[record].info;
            let mut element = self.element(record);
            let Some(parts) = element.get_mut("parts").and_then(Value::as_array_mut) else { continue };
            parts.truncate(keep);
            match info["role"].as_str() {
                Some("user") => user(record, info, parts, &mut out),
                Some("assistant") => {
                    let same_model = model.is_none() || model == model_of(info);
                    let open = last == Some((record, keep));
                    assistant(record, info, parts, same_model, open, &mut out);
                }
                _ => {}
            }
        }
        // What a message before the summary reported was another context.
        let summary = out.iter().rposition(|it| it.message.kind == Kind::Summary);
        if let Some(summary) = summary {
            let since = out[summary].record;
            for it in out.iter_mut().filter(|it| it.record <= since) {
                it.message.usage = None;
            }
        }
        out
    }

    /// Which elements are sent, in which order, and how many of their parts count: a session that was reverted goes
    /// on from there (OpenCode 1.18, `info.revert`, applied with the next prompt).
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

    /// OpenCode's view of a session with compactions (1.18, `filterCompacted`): back to the newest marker whose
    /// summary is complete, and on to the start of its tail; then that tail behind the summary.
    fn filter_compacted(&self, end: usize) -> Vec<usize> {
        let mut completed = BTreeSet::new();
        let mut until: Option<&str> = None;
        let mut out = Vec::new();
        for index in (0..end).rev() {
            let Entry { info, compaction, .. } = &self.entries[index];
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
                match it.tail.as_deref() {
                    Some(tail) if tail != id => until = Some(tail),
                    Some(_) | None => break,
                }
            }
        }
        out.reverse();
        let tail_of = |it: usize| self.entries[it].compaction.as_ref().and_then(|it| it.tail.as_deref());
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

    pub(super) fn session(self) -> Session {
        let live = self.live();
        let records = self
            .entries
            .iter()
            .map(|it| Record { at: it.span.start as u64, len: it.span.len() as u64 })
            .collect();
        let of_message = live.iter().map(|it| vec![it.record as u32]).collect();
        let past = self.past(&live);
        let mut messages: Vec<_> = live.into_iter().map(|it| it.message).collect();
        for (index, message) in messages.iter_mut().enumerate() {
            message.from = Some(index as u32);
        }
        let history = History::new(messages, self.meta());
        Session { format: Format::OpenCode, records, of_message, notes: self.notes, past, history }
    }

    fn meta(&self) -> Meta {
        let infos = || self.entries.iter().map(|it| &it.info);
        let text = |it: &Value| it.as_str().filter(|it| !it.is_empty()).map(Into::into);
        let answered = infos().rev().find_map(|it| text(&it["modelID"]));
        let times = infos().flat_map(|it| [&it["time"]["created"], &it["time"]["completed"]]);
        let times = times.chain([&self.info["time"]["created"], &self.info["time"]["updated"]]);
        let times = times.filter_map(Value::as_i64).fold(None, |range: Option<(i64, i64)>, it| {
            Some(range.map_or((it, it), |(first, last)| (first.min(it), last.max(it))))
        });
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
            ..Meta::default()
        }
    }

    /// Each marker whose summary is complete. The context before it is what the last answer before it reported.
    fn past(&self, live: &[Live]) -> Vec<PastCompaction> {
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
                trigger: Some(if marker.auto { "auto" } else { "manual" }.to_owned()),
                tokens_before: reported.take(),
                tokens_after: None,
                summary: parts.join("\n"),
            });
        }
        out
    }
}

fn note(index: usize, what: &str) -> Note {
    Note { line: index as u64 + 1, what: what.to_owned() }
}

fn is_completed(info: &Value) -> bool {
    let there = |it: &Value| !matches!(it, Value::Null | Value::Bool(false));
    info["role"] == "assistant"
        && info["summary"] == true
        && info["finish"].as_str().is_some_and(|it| !it.is_empty())
        && !there(&info["error"])
}

fn model_of(info: &Value) -> Option<(&str, &str)> {
    let model = if info["role"] == "user" { &info["model"] } else { info };
    Some((model["providerID"].as_str()?, model["modelID"].as_str()?))
}

/// A user's element. Text that the client added (`synthetic`: files read on mention, plugin notes, "continue") is
/// told apart from the user's words, so that one element can become several messages.
fn user(record: usize, info: &Value, parts: &[Value], out: &mut Vec<Live>) {
    let mut open: Option<Live> = None;
    for (index, part) in parts.iter().enumerate() {
        let Some((kind, part)) = user_part(part) else { continue };
        if let Some(done) = open.take_if(|it| it.message.kind != kind) {
            out.push(done);
        }
        let live = open.get_or_insert_with(|| {
            let mut message = Message::new(Role::User, kind, Vec::new());
            message.id = info["id"].as_str().map(Into::into);
            message.at = info["time"]["created"].as_i64();
            Live { message, record, parts: Vec::new() }
        });
        live.message.parts.push(part);
        live.parts.push(index);
    }
    out.extend(open);
}

fn user_part(part: &Value) -> Option<(Kind, Part)> {
    let text = |it: &str| Part::Text(Text::new(it));
    match part["type"].as_str()? {
        "text" if part["ignored"] == true => None,
        "text" => {
            let said = part["text"].as_str().filter(|it| !it.is_empty())?;
            let kind = match part["synthetic"] == true {
                true if is_continue(part, said) => Kind::Continue,
                true => Kind::Context,
                false => Kind::Said,
            };
            Some((kind, text(said)))
        }
        // Their content was put into a text part when they were attached.
        "file" if matches!(part["mime"].as_str(), Some("text/plain" | "application/x-directory")) => None,
        "file" => Some((Kind::Said, file(part))),
        "compaction" => Some((Kind::Marker, text(MARKER))),
        "subtask" => Some((Kind::Context, text("The following tool was executed by the user"))),
        _ => None,
    }
}

/// OpenCode's own "go on" after an automatic compaction: by its mark, or in old sessions by how it begins.
fn is_continue(part: &Value, text: &str) -> bool {
    part["metadata"]["compaction_continue"] == true || text.starts_with("Continue if you have next steps")
}

fn file(part: &Value) -> Part {
    media(part).map(Part::Media).unwrap_or_else(|| {
        let mime = part["mime"].as_str().unwrap_or_default();
        let name = part["filename"].as_str().unwrap_or("file");
        Part::Text(Text::new(format!("[Attached {mime}: {name}]")))
    })
}

fn media(part: &Value) -> Option<Media> {
    let mime = part["mime"].as_str().unwrap_or_default();
    let url = part["url"].as_str()?;
    let data = match url.strip_prefix("data:") {
        Some(rest) => rest.split_once(',')?.1,
        None if url.starts_with("http://") || url.starts_with("https://") => url,
        None => return None,
    };
    let kind = match mime.split('/').next() {
        Some("image") => MediaKind::Image,
        Some("audio") => MediaKind::Audio,
        _ if mime == "application/pdf" => MediaKind::Pdf,
        _ => MediaKind::Other,
    };
    Some(Media { kind, mime: mime.into(), data: data.into(), size: None })
}

/// An answer: for each step of it a message, and one with the outputs of its tools. With `open`, the last element, a
/// tool that still runs has no output yet; anywhere else OpenCode says that it was interrupted.
fn assistant(
    record: usize,
    info: &Value,
    parts: &[Value],
    same_model: bool,
    open: bool,
    out: &mut Vec<Live>,
) {
    let unsent = |it: &Value| matches!(it["type"].as_str(), Some("step-start" | "reasoning"));
    // Of answers that failed, only one that the user stopped is sent, if it got to say something.
    let stopped = info["error"]["name"] == "MessageAbortedError" && !parts.iter().all(unsent);
    if !info["error"].is_null() && !stopped {
        return;
    }
    let kind = if is_completed(info) { Kind::Summary } else { Kind::Said };
    let make = |role, at: &Value| {
        let mut message = Message::new(role, kind, Vec::new());
        if role == Role::Tool {
            message.kind = Kind::Said;
        }
        message.id = info["id"].as_str().map(Into::into);
        message.at = at.as_i64();
        Live { message, record, parts: Vec::new() }
    };
    let first = out.len();
    let (mut said, mut answered) =
        (make(Role::Assistant, &info["time"]["created"]), make(Role::Tool, &Value::Null));
    for (index, part) in parts.iter().enumerate() {
        match part["type"].as_str() {
            Some("step-start") => {
                flush(&mut said, make(Role::Assistant, &info["time"]["created"]), out);
                flush(&mut answered, make(Role::Tool, &Value::Null), out);
            }
            Some("step-finish") => said.message.usage = usage(&part["tokens"]),
            Some("text") => {
                let text = part["text"].as_str().unwrap_or_default();
                if !text.is_empty() {
                    said.push(index, Part::Text(Text::new(text)));
                }
            }
            Some("reasoning") => {
                let text = Text::new(part["text"].as_str().unwrap_or_default());
                let signature = if same_model { signature(&part["metadata"]) } else { None };
                if !text.is_empty() || signature.is_some() {
                    said.push(index, Part::Reasoning(Reasoning { text, signature }));
                }
            }
            Some("tool") => {
                let (call, output) = tool(part, index, record, same_model, open);
                said.push(index, Part::Call(call));
                if let Some(output) = output {
                    answered.message.at = part["state"]["time"]["end"].as_i64().or(answered.message.at);
                    answered.push(index, Part::Output(output));
                }
            }
            _ => {}
        }
    }
    flush(&mut said, make(Role::Assistant, &Value::Null), out);
    flush(&mut answered, make(Role::Tool, &Value::Null), out);
    let last = out[first..].iter_mut().rfind(|it| it.message.role == Role::Assistant);
    if let Some(last) = last.filter(|it| it.message.usage.is_none()) {
        last.message.usage = usage(&info["tokens"]);
    }
}

impl Live {
    fn push(&mut self, index: usize, part: Part) {
        self.message.parts.push(part);
        self.parts.push(index);
    }
}

fn flush(live: &mut Live, next: Live, out: &mut Vec<Live>) {
    let done = std::mem::replace(live, next);
    if !done.message.parts.is_empty() {
        out.push(done);
    }
}

fn tool(part: &Value, index: usize, record: usize, same_model: bool, open: bool) -> (Call, Option<Output>) {
    let state = &part["state"];
    let id = part["callID"].as_str().filter(|it| !it.is_empty());
    let id = id.map_or_else(|| format!("call-{record}-{index}").into(), Into::into);
    let name = part["tool"].as_str().unwrap_or_default();
    let input =
        if state["input"].is_null() { "{}".to_owned() } else { crate::json::compact(&state["input"]) };
    let call = Call {
        id,
        name: name.into(),
        input: Text::new(input),
        freeform: false,
        signature: if same_model { signature(&part["metadata"]) } else { None },
    };
    let say = |text: &str, failed: bool| Output {
        id: call.id.clone(),
        name: Some(name.into()),
        text: Text::new(text),
        media: Vec::new(),
        failed,
        cleared: text == CLEARED,
    };
    let output = match state["status"].as_str() {
        Some("completed") if is_compacted(state) => say(CLEARED, false),
        Some("completed") => {
            let mut output = say(state["output"].as_str().unwrap_or_default(), false);
            output.media = state["attachments"].as_array().into_iter().flatten().filter_map(media).collect();
            output
        }
        Some("error")
            if state["metadata"]["interrupted"] == true && state["metadata"]["output"].is_string() =>
        {
            say(state["metadata"]["output"].as_str().unwrap_or_default(), false)
        }
        Some("error") => say(state["error"].as_str().unwrap_or_default(), true),
        _ if open => return (call, None),
        _ => say("[Tool execution was interrupted]", true),
    };
    (call, Some(output))
}

/// JavaScript's idea of a true `time.compacted`.
pub(super) fn is_compacted(state: &Value) -> bool {
    !matches!(&state["time"]["compacted"], Value::Null | Value::Bool(false))
        && state["time"]["compacted"].as_f64() != Some(0.0)
}

/// What a provider wants back with its thought: under the provider's name, a signature or the encrypted thought.
fn signature(metadata: &Value) -> Option<Text> {
    const KEYS: [&str; 5] =
        ["signature", "redactedData", "reasoningEncryptedContent", "thoughtSignature", "reasoningOpaque"];
    let providers = metadata.as_object()?;
    let found = providers.values().find_map(|of| KEYS.iter().find_map(|it| of[*it].as_str()))?;
    (!found.is_empty()).then(|| Text::new(found))
}

/// `tokens` of a message or step. Some versions count thinking in `output` and some beside it; `total`, where it is
/// there, settles it. All zeros means that nothing was reported.
pub(super) fn usage(tokens: &Value) -> Option<Usage> {
    let get = |it: &Value| it.as_u64().unwrap_or_default();
    let (input, output, reasoning) =
        (get(&tokens["input"]), get(&tokens["output"]), get(&tokens["reasoning"]));
    let (cache_read, cache_write) = (get(&tokens["cache"]["read"]), get(&tokens["cache"]["write"]));
    let sent = input.saturating_add(cache_read).saturating_add(cache_write);
    let output = match tokens["total"].as_u64() {
        Some(total) if total >= sent.saturating_add(output) => total - sent,
        _ if reasoning > output => output.saturating_add(reasoning),
        _ => output,
    };
    (sent > 0 || output > 0).then_some(Usage { input, output, cache_read, cache_write, reasoning })
}
