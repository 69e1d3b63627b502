//! pi's session files (`.jsonl`; versions 1 to 3 of the format), read only.
//!
//! A header line, then entries. From version 2 on they form a tree by `parentId`, and the last entry is the
//! leaf; in version 1 they are a list. A compaction entry names the first entry that is kept. The history is
//! what pi sends: the summary, the kept entries, and what came after, without replies that failed or were
//! stopped, and with an output for every call.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::{JsonLine, json_lines, token_count};
use crate::format::{Api, FormatRow};
use crate::parse::beginning;
use crate::session::requests::{Collector, each_row, text, time};
use crate::{Format, Note, PastCompaction, Session, Source, derive, is_cleared};
use history::error::{Error, ErrorKind, Result};
use history::{Call, History, Kind, Media, MediaKind, Message, Meta, Output, Part, Reasoning, Role, Usage};

pub(crate) static ROW: FormatRow = FormatRow {
    recognise: Some(sniff),
    requests: Some(|source, out| each_row(source, |row| request(&row, out))),
    ..FormatRow::new("pi", Api::Anthropic, read)
};

/// What pi puts around a compaction's summary (pi 0.5x, `messages.ts`).
const SUMMARY: (&str, &str) = (
    "The conversation history before this point was compacted into the following summary:\n\n<summary>\n",
    "\n</summary>",
);
/// What pi puts around the summary of an abandoned branch.
const BRANCH: (&str, &str) = (
    "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n",
    "</summary>",
);

/// Whether the first line, mended, is pi's header: type `session` with an id, a time and a directory, which
/// other agents' headers do not all have. Oh My Pi writes a padded title before it.
pub fn sniff(first_lines: &str) -> bool {
    let Some(header) = beginning::values(first_lines).find(|it| it["type"] != "title") else { return false };
    header["type"] == "session" && ["id", "timestamp", "cwd"].iter().all(|it| header[*it].is_string())
}

/// Reads a session. Broken lines, which pi skips, become notes.
///
/// # Errors
/// As [`crate::read`].
pub fn read(source: &dyn Source) -> Result<Session> {
    let fault = |it: &Value| (!it["type"].is_string()).then_some("an entry with a type, found none");
    let (records, entries, mut notes) = json_lines(source, fault)?;
    if !entries.iter().any(|it| it.value["type"] == "session") {
        let what = "expected a pi session (a line of type session first), found none";
        return Err(Error::new(ErrorKind::Input, what).at(source.name(), None));
    }
    let path = path(&entries, &mut notes);
    let compaction = path.iter().rposition(|it| entries[*it].value["type"] == "compaction");
    let mut out = PiReader { notes, ..PiReader::default() };
    out.model = path.iter().rev().find_map(|it| model(&entries[*it].value));
    let compactions = path.iter().enumerate().map(|(place, index)| (place, &entries[*index].value));
    let compactions = compactions.filter(|(_, it)| it["type"] == "compaction");
    let past = compactions.map(|(place, it)| PastCompaction {
        message: (Some(place) == compaction).then_some(0),
        tokens_before: it["tokensBefore"].as_u64(),
        summary: it["summary"].as_str().unwrap_or_default().to_owned(),
        ..PastCompaction::default()
    });
    let past = past.collect();
    if let Some(at) = compaction {
        let entry = &entries[path[at]];
        out.framed(entry, SUMMARY, Kind::Summary);
        // Version 1 names the first kept entry by its place in the file.
        let kept = |it: &usize| match entry.value["firstKeptEntryId"].as_str() {
            Some(id) => entries[*it].value["id"] == id,
            None => entry.value["firstKeptEntryIndex"].as_u64() == Some(*it as u64),
        };
        let before = &path[..at];
        for index in before.iter().position(kept).map_or(&[][..], |it| &before[it..]) {
            out.entry(&entries[*index]);
        }
        // Their usage measured the context before the compaction.
        out.messages.iter_mut().for_each(|it| (it.0.usage, it.0.model) = (None, None));
    }
    for index in &path[compaction.map_or(0, |it| it + 1)..] {
        out.entry(&entries[*index]);
    }
    out.notes.sort_by_key(|it| it.line);
    let origins = out.messages.iter().map(|it| [it.1]).collect();
    let messages = out.messages.into_iter().map(|it| it.0).collect();
    let history = History::numbered(messages, meta(&entries, out.model));
    Ok(Session { format: Format::PI, records, origins, notes: out.notes, past, history })
}

/// The indices of the entries from the root to the leaf.
fn path(entries: &[JsonLine], notes: &mut Vec<Note>) -> Vec<usize> {
    let header = entries.iter().find(|it| it.value["type"] == "session");
    let mut all = (0..entries.len()).filter(|it| entries[*it].value["type"] != "session");
    if header.and_then(|it| it.value["version"].as_u64()).unwrap_or(1) < 2 {
        return all.collect();
    }
    let ids: HashMap<&str, usize> =
        all.clone().filter_map(|it| Some((entries[it].value["id"].as_str()?, it))).collect();
    let mut seen = BTreeSet::new();
    let mut at = all.next_back();
    let mut out = Vec::new();
    while let Some(index) = at {
        if !seen.insert(index) {
            notes.push(Note {
                line: entries[index].line,
                what: "expected a tree of entries, found a cycle; read up to there".into(),
            });
            break;
        }
        out.push(index);
        at = entries[index].value["parentId"].as_str().and_then(|it| ids.get(it).copied());
    }
    out.reverse();
    out
}

/// Provider and model, of an assistant message or of a change of model.
fn model(entry: &Value) -> Option<(String, String)> {
    let text = |it: &Value| it.as_str().map(str::to_owned);
    match entry["type"].as_str()? {
        "model_change" => Some((text(&entry["provider"])?, text(&entry["modelId"])?)),
        "message" if entry["message"]["role"] == "assistant" => {
            Some((text(&entry["message"]["provider"])?, text(&entry["message"]["model"])?))
        }
        _ => None,
    }
}

fn meta(entries: &[JsonLine], model: Option<(String, String)>) -> Meta {
    let header = entries.iter().find(|it| it.value["type"] == "session").map(|it| &it.value);
    let get = |key: &str| header.and_then(|it| it[key].as_str()).map(Into::into);
    let times = entries.iter().filter_map(|it| derive::parse_time(it.value["timestamp"].as_str()?));
    Meta {
        agent: Some("pi".into()),
        session: get("id"),
        model: model.map(|it| it.1.into()).or_else(|| get("modelId")),
        cwd: get("cwd"),
        times: times.fold(None, derive::widened),
        ..Meta::default()
    }
}

#[derive(Default)]
struct PiReader {
    messages: Vec<(Message, u32)>,
    notes: Vec<Note>,
    model: Option<(String, String)>,
    /// Calls of the last reply that have no output yet: id, tool name, record.
    open: Vec<(std::sync::Arc<str>, std::sync::Arc<str>, u32)>,
    sent: BTreeSet<std::sync::Arc<str>>,
}

impl PiReader {
    fn entry(&mut self, entry: &JsonLine) {
        let value = &entry.value;
        match value["type"].as_str() {
            Some("message") => self.message(entry, &value["message"]),
            Some("custom_message") => self.push(entry, Role::User, Kind::Context, blocks(&value["content"])),
            Some("branch_summary") => self.framed(entry, BRANCH, Kind::Context),
            _ => {}
        }
    }

    fn framed(&mut self, entry: &JsonLine, frame: (&str, &str), kind: Kind) {
        let summary = entry.value["summary"].as_str().unwrap_or_default();
        if summary.is_empty() && kind != Kind::Summary {
            return;
        }
        let text = format!("{}{summary}{}", frame.0, frame.1);
        self.push(entry, Role::User, kind, vec![Part::Text(text.into())]);
    }

    fn message(&mut self, entry: &JsonLine, message: &Value) {
        match message["role"].as_str() {
            Some("user") => self.push(entry, Role::User, Kind::Said, blocks(&message["content"])),
            Some("assistant") => self.answer(entry, message),
            Some("toolResult") => self.result(entry, message),
            // The user's `!command`; `!!command` is kept from the model.
            Some("bashExecution") if message["excludeFromContext"] != true => {
                let text = Part::Text(execution(message).into());
                self.push(entry, Role::User, Kind::Context, vec![text]);
            }
            Some("bashExecution") => {}
            // Its name in version 2 is `hookMessage`.
            Some("custom" | "hookMessage") => {
                self.push(entry, Role::User, Kind::Context, blocks(&message["content"]));
            }
            _ => self.notes.push(Note {
                line: entry.line,
                what: format!("expected a role of pi's, found {}; left out", message["role"]),
            }),
        }
    }

    fn push(&mut self, entry: &JsonLine, role: Role, kind: Kind, parts: Vec<Part>) {
        if parts.is_empty() {
            return;
        }
        self.answer_open();
        self.add(entry, role, kind, parts);
    }

    fn add(&mut self, entry: &JsonLine, role: Role, kind: Kind, parts: Vec<Part>) {
        let mut message = Message::new(role, kind, parts);
        message.id = entry.value["id"].as_str().map(Into::into);
        message.at = entry.value["timestamp"].as_str().and_then(derive::parse_time);
        self.messages.push((message, entry.record));
    }

    fn answer(&mut self, entry: &JsonLine, message: &Value) {
        if matches!(message["stopReason"].as_str(), Some("error" | "aborted")) {
            return;
        }
        let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        let own = (text(&message["provider"]), text(&message["model"]));
        let same_model = self.model.as_ref().is_none_or(|it| *it == own);
        let signature = |it: &Value| it.as_str().filter(|it| same_model && !it.is_empty()).map(Into::into);
        let mut parts = Vec::new();
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("text") if block["text"].as_str().is_some_and(|it| !it.is_empty()) => {
                    parts.push(Part::Text(text(&block["text"]).into()));
                }
                Some("thinking") => {
                    let (thought, signature) =
                        (text(&block["thinking"]), signature(&block["thinkingSignature"]));
                    match same_model {
                        true if !thought.is_empty() || signature.is_some() => {
                            parts.push(Part::Reasoning(Reasoning { text: thought.into(), signature }));
                        }
                        // Another model's thinking is sent as text; redacted thinking is not sent.
                        false if !thought.trim().is_empty() && block["redacted"] != true => {
                            parts.push(Part::Text(thought.into()));
                        }
                        _ => {}
                    }
                }
                Some("toolCall") => parts.push(Part::Call(Call {
                    id: text(&block["id"]).into(),
                    name: text(&block["name"]).into(),
                    input: history::json::compact(&block["arguments"]).into(),
                    freeform: false,
                    signature: signature(&block["thoughtSignature"]),
                })),
                _ => {}
            }
        }
        self.push(entry, Role::Assistant, Kind::Said, parts);
        let Some((last, _)) = self.messages.last_mut().filter(|it| it.1 == entry.record) else { return };
        last.usage = usage(&message["usage"]);
        last.model = message["model"].as_str().filter(|_| last.usage.is_some()).map(Into::into);
        let calls: Vec<_> = last.calls().map(|it| (it.id.clone(), it.name.clone(), entry.record)).collect();
        self.sent.extend(calls.iter().map(|it| it.0.clone()));
        self.open = calls;
    }

    fn result(&mut self, entry: &JsonLine, message: &Value) {
        let id = message["toolCallId"].as_str().unwrap_or_default();
        if !self.sent.contains(id) {
            self.notes.push(Note {
                line: entry.line,
                what: "an output whose call is not sent was left out".into(),
            });
            return;
        }
        self.open.retain(|it| &*it.0 != id);
        let (text, media) = super::text_and_media(blocks(&message["content"]));
        let output = Output {
            name: message["toolName"].as_str().map(Into::into),
            cleared: is_cleared(&text),
            media: media.into(),
            failed: message["isError"] == true,
            ..Output::new(id, text)
        };
        self.add(entry, Role::Tool, Kind::Said, vec![Part::Output(output)]);
    }

    /// Like pi, answers calls that have no output before the next message.
    fn answer_open(&mut self) {
        for (id, name, record) in std::mem::take(&mut self.open) {
            let output = Output { name: Some(name), failed: true, ..Output::new(id, "No result provided") };
            self.messages.push((Message::new(Role::Tool, Kind::Said, vec![Part::Output(output)]), record));
        }
    }
}

/// Text and image parts; a plain string is one text.
fn blocks(content: &Value) -> Vec<Part> {
    super::parts_of(content, |it| {
        let data = it["data"].as_str().filter(|_| it["type"] == "image")?.into();
        let mime = it["mimeType"].as_str().unwrap_or_default().into();
        Some(Part::Media(Media { kind: MediaKind::Image, mime, data, size: None }))
    })
}

/// The text by which pi tells the model about a command that the user ran.
fn execution(message: &Value) -> String {
    let command = message["command"].as_str().unwrap_or_default();
    let mut out = format!("Ran `{command}`\n");
    match message["output"].as_str().filter(|it| !it.is_empty()) {
        Some(output) => out.push_str(&format!("```\n{output}\n```")),
        None => out.push_str("(no output)"),
    }
    match message["exitCode"].as_i64() {
        _ if message["cancelled"] == true => out.push_str("\n\n(command cancelled)"),
        Some(code) if code != 0 => out.push_str(&format!("\n\nCommand exited with code {code}")),
        _ => {}
    }
    if let Some(path) = message["fullOutputPath"].as_str().filter(|_| message["truncated"] == true) {
        out.push_str(&format!("\n\n[Output truncated. Full output: {path}]"));
    }
    out
}

fn usage(usage: &Value) -> Option<Usage> {
    let get = |key: &str| token_count(&usage[key]);
    let out = Usage {
        input: get("input"),
        output: get("output"),
        cache_read: get("cacheRead"),
        cache_write: get("cacheWrite"),
        ..Usage::default()
    };
    (out.context() > 0).then_some(out)
}

fn request(row: &Value, out: &mut Collector) {
    let (at, message) = (time(row), &row["message"]);
    match (row["type"].as_str(), message["role"].as_str()) {
        (Some("compaction"), _) => out.compaction(),
        (Some("message"), Some("user")) => out.prompt(at, &text(&message["content"]).unwrap_or_default()),
        (Some("message"), Some("assistant")) => {
            out.model(&message["model"]);
            if let Some(usage) = usage(&message["usage"]) {
                out.response(row["id"].as_str().unwrap_or_default(), at, usage, false);
            }
        }
        (Some("message"), _) => out.sent(at),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::shown;
    use crate::{MemorySource, Mode, write};

    const V1: &str = r#"{"type":"session","id":"s","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/p"}"#;
    const V3: &str =
        r#"{"type":"session","version":3,"id":"s","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/p"}"#;

    #[test]
    fn sniffs() {
        assert!(sniff(V1) && sniff(&format!("\u{feff}\n{V3}\n{{")));
        assert!(
            !sniff("")
                && !sniff(r#"{"type":"session_meta","payload":{}}"#)
                && !sniff(r#"{"type":"session"}"#)
        );
        assert!(read(&MemorySource::new("t", r#"{"type":"user"}"#)).is_err());
    }

    #[test]
    fn lists_and_gaps() {
        let (out, session) = shown(&[
            V1,
            r#"{"type":"message","message":{"role":"user","content":"go"}}"#,
            r#"{"type":"message","message":{"role":"assistant","provider":"a","model":"old","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"S"},{"type":"toolCall","id":"1","name":"read","arguments":{"path":"x"}},{"type":"toolCall","id":"2","name":"bash","arguments":{}}],"stopReason":"toolUse","usage":{"input":5,"output":2,"cacheRead":1,"cacheWrite":0}}}"#,
            r#"{"type":"message","message":{"role":"toolResult","toolCallId":"1","toolName":"read","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}],"isError":false}}"#,
            r#"{"type":"message","message":{"role":"assistant","provider":"a","model":"new","content":[{"type":"toolCall","id":"3","name":"bash","arguments":{}}],"stopReason":"aborted"}}"#,
            r#"{"type":"message","message":{"role":"toolResult","toolCallId":"3","toolName":"bash","content":[]}}"#,
            "not json",
            r#"{"type":"message","message":{"role":"bashExecution","command":"ls","output":"a","exitCode":2}}"#,
            r#"{"type":"message","message":{"role":"assistant","provider":"a","model":"new","content":[{"type":"text","text":"done"}],"stopReason":"stop"}}"#,
        ]);
        insta::assert_snapshot!(out, @r#"
        User Said: "go"
        Assistant Said: "hm" read#1{"path":"x"} bash#2{}
        Tool Said: #1="one\ntwo"
        Tool Said: #2="No result provided"
        User Context: "Ran `ls`\n```\na\n```\n\nCommand exited with code 2"
        Assistant Said: "done"
        "#);
        assert_eq!(session.notes.iter().map(|it| it.line).collect::<Vec<_>>(), [6, 7]);
        assert_eq!(session.history.messages()[1].usage.unwrap().context(), 8);
        assert!(session.origins.iter().eq([[1], [2], [3], [2], [7], [8]]));
    }

    #[test]
    fn trees_and_compactions() {
        let said = |id: &str, parent: &str, text: &str| {
            format!(
                r#"{{"type":"message","id":"{id}","parentId":"{parent}","message":{{"role":"user","content":"{text}"}}}}"#
            )
        };
        let lines = [
            V3.to_owned(),
            said("a", "", "one"),
            said("b", "a", "two"),
            said("x", "a", "a branch that was left"),
            r#"{"type":"compaction","id":"c","parentId":"b","summary":"sum","firstKeptEntryId":"b","tokensBefore":9}"#.to_owned(),
            r#"{"type":"branch_summary","id":"d","parentId":"c","fromId":"x","summary":"left"}"#.to_owned(),
            r#"{"type":"custom_message","id":"e","parentId":"d","customType":"t","content":"note","display":true}"#.to_owned(),
            said("f", "e", "three"),
        ];
        let (out, session) = shown(&lines.iter().map(String::as_str).collect::<Vec<_>>());
        insta::assert_snapshot!(out, @r#"
        User Summary: "The conversation history before this point was compacted into the following summary:\n\n<summary>\nsum\n</summary>"
        User Said: "two"
        User Context: "The following is a summary of a branch that this conversation came back from:\n\n<summary>\nleft</summary>"
        User Context: "note"
        User Said: "three"
        "#);
        assert_eq!(session.past[0].tokens_before, Some(9));
        assert_eq!(session.past[0].message, Some(0));
        // A cycle ends the walk.
        let (out, session) = shown(&[V3, &said("a", "b", "one"), &said("b", "a", "two")]);
        assert_eq!((out.lines().count(), session.notes.len()), (2, 1));
    }

    #[test]
    fn writes_nothing_else() {
        let source = MemorySource::new(
            "t",
            format!("{V1}\n{}", r#"{"type":"message","message":{"role":"user","content":"go"}}"#),
        );
        let session = read(&source).unwrap();
        let out = write(&source, &session, &session.history, Mode::Patch).unwrap();
        assert_eq!(out.bytes(&source).unwrap(), source.whole().unwrap());
        let error = write(&source, &session, &History::default(), Mode::Patch).unwrap_err();
        assert_eq!((error.kind(), error.detail()), (ErrorKind::Refused, "pi is read only"));
        assert!(write(&source, &session, &session.history, Mode::New).is_err());
    }
}
