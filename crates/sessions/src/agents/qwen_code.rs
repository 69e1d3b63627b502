//! Qwen Code's sessions (`~/.qwen/projects/<project>/chats/<session id>.jsonl`), read only.
//!
//! A fork of Gemini CLI. Its records look like Claude Code's (`uuid`, `parentUuid`, `sessionId`), its
//! messages are Gemini contents. According to its sources of 2026 (`chatRecordingService`,
//! `transcript-records`, `session-api-history`), versions 0.5 to 0.22, a resume sends the chain of
//! `parentUuid` from the last record back; records with the same `uuid` are one message; a `chat_compression`
//! record holds a whole history that replaces everything before it.
//!
//! Not implemented: `goal_turn_end`, which changes the message that a user's message is joined to.

use std::collections::{HashMap, HashSet};

use serde_json::{Value, json};

use super::{JsonLine, json_lines};
use crate::format::{Api, FormatRow};
use crate::parse::beginning;
use crate::session::requests::{Collector, each_row, text, time};
use crate::wire::GEMINI_ACK;
use crate::{Format, MemorySource, Note, PastCompaction, Session, Source, derive, wire};
use history::error::{Error, ErrorKind, Result};
use history::{History, Kind, Meta, Role};

pub(crate) static ROW: FormatRow = FormatRow {
    folder: Some(("/.qwen/projects/", &[".jsonl"])),
    recognise: Some(sniff),
    requests: Some(requests),
    // Qwen Code talks to many providers, so the signer is not known.
    ..FormatRow::new("qwen-code", Api::Gemini, read)
};

const TYPES: [&str; 4] = ["user", "assistant", "tool_result", "system"];
/// Subtypes of system records that are not part of the chain.
const SIDE: [&str; 6] = [
    "session_artifact_event",
    "session_artifact_snapshot",
    "session_sources_snapshot",
    "managed_session_header_v1",
    "managed_session_event_v1",
    "managed_session_commit_v1",
];

/// Whether a line is a record with Gemini's `parts`, or a system record with `systemPayload`: Claude Code's
/// rows, otherwise alike, have neither.
pub fn sniff(first_lines: &str) -> bool {
    beginning::values(first_lines).any(|it| {
        let is_whole = it["uuid"].is_string() && TYPES.iter().any(|kind| it["type"] == *kind);
        let message = &it["message"];
        // A line longer than the given beginning may be cut off before its type.
        let is_cut = matches!(message["role"].as_str(), Some("user" | "model"));
        (is_whole || is_cut)
            && it.get("parentUuid").is_some()
            && it["sessionId"].is_string()
            && (message["parts"].is_array() || it["type"] == "system" && it["systemPayload"].is_object())
    })
}

/// Reads what a resume would send. Broken or unknown records, which Qwen Code skips, become notes.
///
/// # Errors
/// [`Input`](ErrorKind::Input) if no line is a record of Qwen Code; errors of [`Source::read_at`].
pub fn read(source: &dyn Source) -> Result<Session> {
    let (records, lines, mut notes) = json_lines(source, fault)?;
    let Some(first) = lines.first() else {
        let what =
            "expected a session of Qwen Code (lines with uuid, parentUuid, sessionId and type), found none";
        return Err(Error::new(ErrorKind::Input, what).at(source.name(), None));
    };
    if let Some(other) = lines.iter().find(|it| it.value["sessionId"] != first.value["sessionId"]) {
        let what = "expected records of one session, found another's: Qwen Code does not resume such a file";
        notes.push(Note { line: other.line, what: what.into() });
    }
    let meta = meta(&lines);
    let mut out = Contents::default();
    for at in chain(&lines, &mut notes) {
        out.record(&lines[at], &mut notes);
    }
    session(out, &lines, records, notes, meta)
}

/// What a record lacks, if Qwen Code would skip it.
fn fault(value: &Value) -> Option<&'static str> {
    let is_id = |key: &str| value[key].as_str().is_some_and(|it| !it.is_empty());
    let parent = value.get("parentUuid").is_some_and(|it| it.is_string() || it.is_null());
    if !is_id("uuid") || !parent || !is_id("sessionId") {
        return Some("a record with uuid, parentUuid and sessionId");
    }
    if !TYPES.iter().any(|it| value["type"] == *it) {
        return Some("a record of type user, assistant, tool_result or system");
    }
    value.get("message").is_some_and(|it| !it["parts"].is_array()).then_some("a message with parts")
}

/// The indices of the lines from the root to the last record; lines with the same id are adjacent.
fn chain(lines: &[JsonLine], notes: &mut Vec<Note>) -> Vec<usize> {
    let in_tree = |it: &usize| {
        !(lines[*it].value["type"] == "system"
            && SIDE.iter().any(|side| lines[*it].value["subtype"] == *side))
    };
    let mut of_id: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut last = None;
    for at in (0..lines.len()).filter(in_tree) {
        last = lines[at].value["uuid"].as_str();
        of_id.entry(last.unwrap_or_default()).or_default().push(at);
    }
    let mut out = Vec::new();
    let mut seen = HashSet::new();
    while let Some(id) = last {
        let Some(same) = of_id.get(id) else { break };
        if !seen.insert(id) {
            let what = "expected a tree of records, found a cycle; read up to there";
            notes.push(Note { line: lines[same[0]].line, what: what.into() });
            break;
        }
        out.extend(same.iter().rev());
        last = lines[same[0]].value["parentUuid"].as_str().filter(|it| !it.is_empty());
        if last.is_some_and(|it| !of_id.contains_key(it)) {
            let what = "its parent is not in the file: what came before is not sent";
            notes.push(Note { line: lines[same[0]].line, what: what.into() });
        }
    }
    out.reverse();
    out
}

/// A Gemini content as it would be sent, and its origin.
#[derive(Default)]
struct Content {
    value: Value,
    records: Vec<u32>,
    id: Option<String>,
    at: Option<i64>,
    usage: Option<Value>,
    model: Option<String>,
    /// Whether the program wrote it, not the user.
    is_context: bool,
}

#[derive(Default)]
struct Contents {
    all: Vec<Content>,
    past: Vec<PastCompaction>,
    /// How many contents the last compaction left.
    compacted: usize,
    /// The text of the last message record, if that was a user's with a single part.
    typed: Option<String>,
}

impl Contents {
    fn record(&mut self, line: &JsonLine, notes: &mut Vec<Note>) {
        let value = &line.value;
        let subtype = value["subtype"].as_str();
        match (value["type"].as_str(), subtype) {
            (Some("system"), Some("chat_compression")) => self.compaction(line, notes),
            (Some("system"), Some("slash_command")) => self.command(&value["systemPayload"]),
            // Not sent: other system records, calls that the program made itself, and speech (next arm).
            (Some("system"), _) | (Some("tool_result"), Some("code_mode_tool_result")) => {}
            (_, Some("realtime_message")) => {}
            (kind, _) if value["message"].is_object() => self.message(line, kind == Some("user"), subtype),
            _ => {}
        }
    }

    fn message(&mut self, line: &JsonLine, is_user: bool, subtype: Option<&str>) {
        let value = &line.value;
        let content = content(&value["message"]);
        let parts = content["parts"].as_array().cloned().unwrap_or_default();
        let id = value["uuid"].as_str();
        // Another line of the same message, or what the user said while the model was working.
        let joins = |last: &Content| {
            last.id.as_deref() == id
                || subtype == Some("mid_turn_user_message") && last.value["role"] == "user"
        };
        self.typed = match parts.as_slice() {
            [only] if is_user && subtype.is_none() => only["text"].as_str().map(str::to_owned),
            _ => None,
        };
        let usage = value.get("usageMetadata").filter(|it| it.is_object()).cloned();
        let model = value["model"].as_str().map(str::to_owned);
        if let Some(last) = self.all.last_mut().filter(|it| joins(it)) {
            if let Some(Value::Array(before)) = last.value.get_mut("parts") {
                before.extend(parts);
            }
            last.records.push(line.record);
            (last.usage, last.model) = (usage.or(last.usage.take()), last.model.take().or(model));
            return;
        }
        let provenance = value["provenance"].as_str();
        let injected = matches!(subtype, Some("notification" | "background_task_completed"));
        self.all.push(Content {
            value: content,
            records: vec![line.record],
            id: id.map(str::to_owned),
            at: time(value),
            usage,
            model,
            is_context: is_user && (injected || provenance.is_some_and(|it| it != "real_user")),
        });
    }

    /// Replaces everything before by the history of a compaction record.
    fn compaction(&mut self, line: &JsonLine, notes: &mut Vec<Note>) {
        let payload = &line.value["systemPayload"];
        let Some(history) = payload["compressedHistory"].as_array() else {
            let what = "expected the compressed history of a compaction, found none; left out";
            notes.push(Note { line: line.line, what: what.into() });
            return;
        };
        let made = |it: &Value| Content {
            value: content(it),
            records: vec![line.record],
            at: time(&line.value),
            ..Content::default()
        };
        self.all = history.iter().filter(|it| it["parts"].is_array()).map(made).collect();
        (self.compacted, self.typed) = (self.all.len(), None);
        self.past.push(PastCompaction {
            tokens_before: payload["info"]["originalTokenCount"].as_u64(),
            tokens_after: payload["info"]["newTokenCount"].as_u64(),
            ..PastCompaction::default()
        });
    }

    /// A slash command that was answered locally: what the user typed was recorded as a message but is not
    /// sent.
    fn command(&mut self, payload: &Value) {
        let shown = payload["outputHistoryItems"].as_array().map(Vec::as_slice).unwrap_or_default();
        let answered = payload["phase"] == "result"
            && payload["sentToModel"] != true
            && !shown.is_empty()
            && shown.iter().all(|it| it["type"] == "assistant");
        if self.typed.take().is_some_and(|it| answered && payload["rawCommand"] == it) {
            self.all.pop();
        }
    }
}

/// Role and parts only: the API takes nothing else of a content.
fn content(message: &Value) -> Value {
    json!({"role": message["role"].as_str().unwrap_or("user"), "parts": message["parts"]})
}

fn session(
    mut out: Contents,
    lines: &[JsonLine],
    records: Vec<crate::Record>,
    mut notes: Vec<Note>,
    meta: Meta,
) -> Result<Session> {
    let contents: Vec<Value> = out.all.iter_mut().map(|it| it.value.take()).collect();
    let array = MemorySource::new("contents", history::json::compact(&contents).into_bytes());
    let read = wire::read(&array, Format::GEMINI)?;
    notes
        .extend(read.notes.into_iter().map(|it| Note { line: line_of(&out, lines, it.line), what: it.what }));
    notes.sort_by_key(|it| it.line);
    let mut messages = read.history.into_messages();
    for (message, from) in messages.iter_mut().zip(&out.all) {
        message.id = from.id.as_deref().map(Into::into);
        message.at = from.at;
        message.usage = from.usage.as_ref().and_then(wire::usage);
        message.model = from.model.as_deref().filter(|_| message.usage.is_some()).map(Into::into);
        if from.is_context && message.kind == Kind::Said {
            message.kind = Kind::Context;
        }
    }
    let summary = summary(&mut messages[..out.compacted]);
    if let (Some(at), Some(last)) = (summary, out.past.last_mut()) {
        (last.message, last.summary) = (Some(at), messages[at].plain());
    }
    let origins = out.all.into_iter().map(|it| it.records).collect();
    Ok(Session {
        format: Format::QWEN_CODE,
        records,
        origins,
        notes,
        past: out.past,
        history: History::new(messages, meta),
    })
}

/// The line of the content with this 1-based number.
fn line_of(out: &Contents, lines: &[JsonLine], number: u64) -> u64 {
    let content = usize::try_from(number).ok().and_then(|it| out.all.get(it.checked_sub(1)?));
    let record = content.and_then(|it| it.records.first());
    let line = record.and_then(|it| lines.binary_search_by_key(it, |line| line.record).ok());
    line.map_or(number, |it| lines[it].line)
}

/// Finds and marks the summary in the messages of a compaction: recognized by its text or by the reply after
/// it.
fn summary(compacted: &mut [history::Message]) -> Option<usize> {
    let known = compacted.iter().position(|it| it.kind == Kind::Summary);
    let answered =
        || compacted.windows(2).position(|it| it[0].role == Role::User && it[1].plain().trim() == GEMINI_ACK);
    let at = known.or_else(answered)?;
    compacted[at].kind = Kind::Summary;
    if let Some(next) = compacted.get_mut(at + 1).filter(|it| it.plain().trim() == GEMINI_ACK) {
        next.kind = Kind::Ack;
    }
    Some(at)
}

fn meta(lines: &[JsonLine]) -> Meta {
    let first = |key: &str| lines.first().and_then(|it| it.value[key].as_str()).map(Into::into);
    let times = lines.iter().filter_map(|it| derive::parse_time(it.value["timestamp"].as_str()?));
    Meta {
        agent: Some(ROW.name.into()),
        session: first("sessionId"),
        model: lines.iter().rev().find_map(|it| it.value["model"].as_str()).map(Into::into),
        cwd: first("cwd"),
        window: lines.iter().rev().find_map(|it| it.value["contextWindowSize"].as_u64()),
        times: times.fold(None, derive::widened),
        ..Meta::default()
    }
}

/// Every reported request, including those whose messages are no longer sent.
fn requests(source: &dyn Source, out: &mut Collector) -> Result<()> {
    each_row(source, |row| {
        let at = time(&row);
        let side = row["isSidechain"] == true;
        match (row["type"].as_str(), row["subtype"].as_str()) {
            (Some("system"), Some("chat_compression")) => out.compaction(),
            (Some("user"), None) => out.prompt(at, &text(&row["message"]["parts"]).unwrap_or_default()),
            (Some("user" | "tool_result"), _) => out.sent(at),
            (Some("assistant"), _) => {
                out.model(&row["model"]);
                if let Some(usage) = wire::usage(&row["usageMetadata"]) {
                    out.response(row["uuid"].as_str().unwrap_or_default(), at, usage, side);
                }
            }
            _ => {}
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::shown;
    use crate::{Mode, write};

    fn row(id: &str, parent: &str, kind: &str, more: &str) -> String {
        let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
        format!(
            "{{\"uuid\":\"{id}\",\"parentUuid\":{parent},\"sessionId\":\"s-1\",\"timestamp\":\"2026-01-01T00:00:0{}.000Z\",\
             \"type\":\"{kind}\",\"cwd\":\"/p\",\"version\":\"0.22.2\",{more}}}",
            id.len()
        )
    }

    fn said(id: &str, parent: &str, text: &str) -> String {
        row(
            id,
            parent,
            "user",
            &format!("\"message\":{{\"role\":\"user\",\"parts\":[{{\"text\":\"{text}\"}}]}}"),
        )
    }

    fn model(id: &str, parent: &str, parts: &str) -> String {
        let more = format!(
            "\"model\":\"qwen3-coder\",\"message\":{{\"role\":\"model\",\"parts\":[{parts}]}},\"contextWindowSize\":1000,\
             \"usageMetadata\":{{\"promptTokenCount\":100,\"candidatesTokenCount\":7,\"thoughtsTokenCount\":3,\
             \"cachedContentTokenCount\":40,\"totalTokenCount\":110}}"
        );
        row(id, parent, "assistant", &more)
    }

    fn system(id: &str, parent: &str, subtype: &str, payload: &str) -> String {
        row(id, parent, "system", &format!("\"subtype\":\"{subtype}\",\"systemPayload\":{payload}"))
    }

    fn output(id: &str, parent: &str, response: &str) -> String {
        let part = format!(
            "{{\"functionResponse\":{{\"id\":\"call_1\",\"name\":\"run_shell_command\",\"response\":{response}}}}}"
        );
        row(id, parent, "tool_result", &format!("\"message\":{{\"role\":\"user\",\"parts\":[{part}]}}"))
    }

    const CALL: &str = r#"{"text":"hm","thought":true},{"functionCall":{"id":"call_1","name":"run_shell_command","args":{"command":"ls"}}}"#;

    #[test]
    fn a_session_is_read_as_it_would_be_sent() {
        let lines = [
            said("a", "", "List the files"),
            system("b", "a", "ui_telemetry", r#"{"uiEvent":{}}"#),
            model("c", "b", CALL),
            output("d", "c", r#"{"output":"x.txt"}"#),
            row(
                "e",
                "d",
                "user",
                r#""subtype":"mid_turn_user_message","message":{"role":"user","parts":[{"text":"also count"}]}"#,
            ),
            row(
                "f",
                "e",
                "user",
                r#""subtype":"notification","provenance":"system","message":{"role":"user","parts":[{"text":"<task-notification>"}]}"#,
            ),
            model("g", "f", r#"{"text":"One file."}"#),
        ];
        let (out, session) = shown(&lines);
        insta::assert_snapshot!(out, @r#"
        User Said: "List the files"
        Assistant Said: (hm) run_shell_command#call_1{"command":"ls"}
        User Said: #call_1="x.txt" "also count"
        User Context: "<task-notification>"
        Assistant Said: "One file."
        "#);
        assert_eq!(session.notes, []);
        assert!(session.origins.iter().eq([&[0][..], &[2], &[3, 4], &[5], &[6]]));
        let meta = &session.history.meta;
        assert_eq!(
            (meta.session.as_deref(), meta.cwd.as_deref(), meta.window),
            (Some("s-1"), Some("/p"), Some(1000))
        );
        let usage = session.history.messages()[1].usage.unwrap();
        assert_eq!((usage.input, usage.cache_read, usage.output), (60, 40, 10));
        let source = MemorySource::new("t", lines.join("\n"));
        assert_eq!(crate::sniff(&source).unwrap(), Format::QWEN_CODE);
        let requests = crate::session::requests::requests(&source, &session).unwrap();
        assert_eq!((requests.all.len(), requests.prompts), (2, vec!["List the files".to_owned()]));
    }

    #[test]
    fn a_compaction_replaces_what_was_before_and_a_rewind_leaves_a_branch() {
        let compaction = r#"{"info":{"originalTokenCount":900,"newTokenCount":90},"compressedHistory":[
            {"role":"user","parts":[{"text":"Summary of the work"}]},{"role":"model","parts":[{"text":"Got it. Thanks for the additional context!"}]},
            {"role":"user","parts":[{"text":"kept"}]}]}"#
            .replace('\n', "");
        let (out, session) = shown(&[
            said("a", "", "one"),
            model("b", "a", r#"{"text":"two"}"#),
            system("c", "b", "chat_compression", &compaction),
            said("x", "c", "rewound"),
            system("d", "c", "rewind", r#"{"truncatedCount":1}"#),
            // Two lines of one message.
            model("e", "d", r#"{"text":"three"}"#),
            model("e", "d", r#"{"text":" four"}"#),
        ]);
        insta::assert_snapshot!(out, @r#"
        User Summary: "Summary of the work"
        Assistant Ack: "Got it. Thanks for the additional context!"
        User Said: "kept"
        Assistant Said: "three" " four"
        "#);
        let past = &session.past[0];
        assert_eq!((past.message, past.tokens_before, past.tokens_after), (Some(0), Some(900), Some(90)));
        assert_eq!((&*past.summary, session.past.len()), ("Summary of the work", 1));
    }

    #[test]
    fn a_command_that_was_answered_here_is_not_sent() {
        let payload =
            r#"{"phase":"result","rawCommand":"/about","outputHistoryItems":[{"type":"assistant"}]}"#;
        let (out, _) = shown(&[
            said("a", "", "go"),
            said("b", "a", "/about"),
            system("c", "b", "slash_command", payload),
            said("d", "c", "/other"),
            system("e", "d", "slash_command", payload),
        ]);
        assert_eq!(out, "User Said: \"go\"\nUser Said: \"/other\"\n");
    }

    #[test]
    fn what_is_broken_is_noted() {
        let (out, session) = shown(&[
            said("a", "gone", "one"),
            "{\"cut".to_owned(),
            "[]".to_owned(),
            row("y", "a", "oracle", "\"message\":{}"),
            row("z", "a", "user", "\"message\":{\"role\":\"user\",\"parts\":3}"),
            system("b", "a", "chat_compression", "{}"),
            said("c", "b", "two").replace("s-1", "s-2"),
        ]);
        assert_eq!(out, "User Said: \"one\"\nUser Said: \"two\"\n");
        assert_eq!(session.notes.iter().map(|it| it.line).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7]);
        let (out, session) = shown(&[said("a", "b", "one"), said("b", "a", "two")]);
        assert_eq!((out.lines().count(), session.notes.len()), (2, 1));
        for text in ["", "{}", "[]", "x", r#"{"uuid":"a"}"#] {
            assert_eq!(read(&MemorySource::new("t", text)).unwrap_err().kind(), ErrorKind::Input, "{text}");
        }
    }

    #[test]
    fn rows_of_claude_code_are_not_taken_for_it() {
        let claude = r#"{"parentUuid":null,"isSidechain":false,"type":"user","message":{"role":"user","content":"say \"parts\":[ and \"systemPayload\":"},"uuid":"u","sessionId":"s"}"#;
        assert_eq!(crate::sniff(&MemorySource::new("t", claude)).unwrap(), Format::CLAUDE_CODE);
        let long = said("a", "", &"long ".repeat(20_000));
        assert_eq!(crate::sniff(&MemorySource::new("t", long)).unwrap(), Format::QWEN_CODE);
        let source = MemorySource::new("t", said("a", "", "go"));
        let session = read(&source).unwrap();
        let error = write(&source, &session, &History::default(), Mode::Append).unwrap_err();
        assert_eq!((error.kind(), error.detail()), (ErrorKind::Refused, "qwen-code is read only"));
    }
}
