//! A message record, read in one pass: what the journal needs of it, and the messages that a resume makes of
//! it (Gemini CLI 0.61, `convertSessionToClientHistory`). A field of the wrong type counts as missing; of
//! duplicate fields the last counts, as in JavaScript.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use serde_json::{Value, json};

use super::KIND_FIELD;
use super::part::{NO_SIGNATURE, ReadPart, RecordReader, braced, id_len, piece, quoted};
use crate::parse::cursor::Cursor;
use crate::{derive, refusal};
use history::json::set;
use history::{Kind, Output, Part, Usage};

/// Prefix of the text that the client puts at the start of a session.
pub(super) const CONTEXT: &str = "<session_context>";

/// Occurs in every summary by Gemini CLI.
pub(super) const SNAPSHOT_TAG: &str = "<state_snapshot>";

#[derive(Debug)]
pub(super) struct JournalItem {
    /// A record without an id is no message.
    pub(super) id: Option<Arc<str>>,
    /// The line (or object of the document) that it is in; set later.
    pub(super) record: u32,
    /// The range of its JSON in the source.
    pub(super) at: Range<u64>,
    pub(super) time: Option<i64>,
    pub(super) model: Option<Arc<str>>,
    pub(super) reported: Option<Reported>,
    /// Whether a resume writes it again.
    pub(super) survives_resume: bool,
    /// Whether it is what the client puts at the start of a session.
    pub(super) context: bool,
    /// The first workspace directory that the session's context names.
    pub(super) workspace: Option<Box<str>>,
    /// Its text, if it is a summary.
    pub(super) summary: Option<Box<str>>,
    /// The messages it is sent as, or what is wrong with it; empty once a later record is known to replace
    /// it.
    pub(super) drafts: Result<Vec<MessageDraft>, String>,
}

/// The token usage reported with a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reported {
    /// Tokens of the context after the request.
    pub(super) total: Option<u64>,
    pub(super) usage: Option<Usage>,
}

/// Names of the token counts that Gemini CLI reports.
const REPORTED: [&str; 6] = ["input", "output", "cached", "thoughts", "tool", "total"];

impl Reported {
    /// Made of those counts in [`REPORTED`] that are there.
    pub(super) fn of(number: impl Fn(&str) -> Option<u64>) -> Self {
        let count = |key| number(key).unwrap_or(0);
        let cached = count("cached").min(count("input"));
        let usage = Usage {
            input: (count("input") - cached).saturating_add(count("tool")),
            output: count("output").saturating_add(count("thoughts")),
            cache_read: cached,
            reasoning: count("thoughts"),
            ..Usage::default()
        };
        Self { total: number("total"), usage: (usage.sent() > 0).then_some(usage) }
    }
}

/// `tokens` of a record.
pub(crate) fn usage(tokens: &serde_json::Value) -> Usage {
    Reported::of(|key| tokens[key].as_u64()).usage.unwrap_or_default()
}

/// A message that a record is sent as. A model record is sent as two, of which the first may be empty.
#[derive(Debug)]
pub(super) struct MessageDraft {
    pub(super) side: RecordSide,
    pub(super) parts: Vec<ReadPart>,
    /// The kind that the record states.
    pub(super) kind: Option<Kind>,
    /// Whether it is the user's, and a text mentions a snapshot.
    pub(super) snapshot: bool,
    /// Whether it is the user's, and a text is a summary by Gemini CLI.
    pub(super) summary: bool,
}

/// The part of a record that a message is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RecordSide {
    User,
    /// The words and calls of the model.
    Model,
    /// The results in a model record.
    Results,
}

/// The frame by which Gemini CLI knows its own summaries: its next compression merges such a summary into the
/// new one.
pub(super) const SNAPSHOT: (&str, &str) = ("<state_snapshot>\n", "\n</state_snapshot>");

/// A message record, filled in as its fields are read.
#[derive(Default)]
pub(super) struct RecordFields<'a> {
    pub(super) id: Option<Cow<'a, str>>,
    time: Option<i64>,
    kind: Option<Cow<'a, str>>,
    ours: Option<Cow<'a, str>>,
    model: Option<Cow<'a, str>>,
    reported: Option<Reported>,
    content: Content,
    thinks: bool,
    calls: Vec<ReadPart>,
    results: Vec<ReadPart>,
}

/// The value of `content`.
#[derive(Default)]
struct Content {
    parts: Vec<ReadPart>,
    filled: bool,
}

impl RecordReader<'_> {
    /// Begins a record at offset `at` in the source.
    pub(super) fn begin<'a>(&mut self, at: u64) -> RecordFields<'a> {
        self.texts.at = at;
        self.shown.clear();
        RecordFields::default()
    }

    /// Reads a message record in a text that begins at `base` in the source.
    pub(super) fn message(&mut self, it: &mut Cursor<'_>, base: u64) -> Option<Result<JournalItem, String>> {
        if it.peek()? != b'{' {
            it.pass()?;
            return Some(Err("expected a message record, found no object; it is skipped".into()));
        }
        let mut found = self.begin(base + it.place() as u64);
        let ((), place) = it.span(|it| it.object(|it, name| self.field(&mut found, it, name)))?;
        Some(Ok(self.item(found, base + place.start as u64..base + place.end as u64)))
    }

    pub(super) fn field<'a>(
        &mut self,
        found: &mut RecordFields<'a>,
        it: &mut Cursor<'a>,
        name: &str,
    ) -> Option<()> {
        match name {
            "id" => found.id = it.optional_string()?,
            "timestamp" => found.time = it.optional_string()?.and_then(|it| derive::parse_time(&it)),
            "type" => found.kind = it.optional_string()?,
            "model" => found.model = it.optional_string()?,
            "content" => found.content = self.content(it)?,
            "thoughts" => {
                let mut many = 0;
                it.optional(b'[', |it| {
                    it.list(|it| {
                        many += 1;
                        it.pass()
                    })
                })?;
                found.thinks = many > 0;
            }
            "tokens" => found.reported = it.optional(b'{', reported)?,
            "toolCalls" => {
                (found.calls, found.results) = Default::default();
                it.optional(b'[', |it| it.list(|it| self.tool(found, it)))?;
            }
            KIND_FIELD => found.ours = it.optional_string()?,
            _ => it.pass()?,
        }
        Some(())
    }

    /// Makes the record of its fields.
    pub(super) fn item(&mut self, found: RecordFields<'_>, at: Range<u64>) -> JournalItem {
        let model = found.model.map(|it| self.scratch.names.of(&it));
        let shown = self.shown.as_str();
        let ours = found.ours.as_deref();
        let is_summary = is_snapshot(shown);
        let filled = found.content.filled;
        let kind = ours.and_then(Kind::find).filter(|it| *it != Kind::Said);
        let (survives_resume, drafts) = match found.kind.as_deref() {
            Some("user") => {
                let ignored = starts_ignored(shown);
                let drafts = if ignored || shown.trim().is_empty() {
                    Vec::new()
                } else {
                    let mut parts = found.content.parts;
                    // Text beside a tool's response is the tool's.
                    let own = !parts.iter().any(|it| matches!(it.part, Part::Output(_)));
                    if let (Some("summary"), [ReadPart { part: Part::Text(text), .. }]) = (ours, &mut *parts)
                        && let Some(inner) = unframed(shown)
                    {
                        *text = self.texts.of(inner);
                    }
                    let snapshot = own && shown.contains(SNAPSHOT_TAG);
                    let (side, parts) = (RecordSide::User, ready(parts));
                    vec![MessageDraft { side, parts, kind, snapshot, summary: is_summary }]
                };
                (filled && !ignored, Ok(drafts))
            }
            Some("gemini") => {
                let survives_resume = filled || !found.calls.is_empty() || found.thinks;
                (survives_resume, Ok(turn(found.content, found.thinks, found.calls, found.results, kind)))
            }
            Some("info" | "error" | "warning") => (false, Ok(Vec::new())),
            other => {
                let what = format!(
                    "expected a message of type user, gemini or info, found {other:?}; it is not sent"
                );
                (false, Err(what))
            }
        };
        JournalItem {
            id: found.id.as_deref().map(Into::into),
            record: 0,
            at,
            time: found.time,
            model,
            reported: found.reported,
            survives_resume,
            context: shown.trim_start().starts_with(CONTEXT),
            workspace: workspace(shown).map(Into::into),
            summary: (ours == Some("summary") || is_summary).then(|| shown.into()),
            drafts,
        }
    }

    /// A text, a part, or a list of both.
    fn content(&mut self, it: &mut Cursor<'_>) -> Option<Content> {
        self.shown.clear();
        let first = it.peek()?;
        let parts = self.parts(it)?;
        let filled = if first == b'"' { !self.shown.is_empty() } else { !parts.is_empty() };
        Some(Content { parts, filled })
    }

    /// Reads a call as it is recorded, with its results. A value that is no object is skipped; the writer
    /// drops it too.
    fn tool(&mut self, found: &mut RecordFields<'_>, it: &mut Cursor<'_>) -> Option<()> {
        if it.peek()? != b'{' {
            return it.pass();
        }
        let (before, start) = (self.shown.len(), it.place());
        let (mut answer, mut results, mut cancelled) = (None, Vec::new(), false);
        let (call, len) = self.call(it, |reader, it, name| {
            match name {
                "result" => {
                    (answer, results) = Default::default();
                    match it.peek()? {
                        b'"' => answer = Some(reader.answer(it)?.0),
                        _ => results = reader.parts(it)?,
                    }
                }
                "status" => cancelled = it.optional_string()?.as_deref() == Some("cancelled"),
                _ => it.pass()?,
            }
            Some(0)
        })?;
        self.shown.truncate(before);
        let fields = match self.raw {
            true => serde_json::from_str(&it.at(start).compact()?).ok(),
            false => None,
        };
        let field = |key: &str| fields.as_ref().and_then(|it: &Value| it.get(key)).cloned();
        if let Some(answer) = answer.filter(|it| !it.text.is_empty()) {
            let name = Some(call.name.clone()).filter(|it| !it.is_empty());
            let frame = r#"{"functionResponse":{"name":,"response":{"output":}}}"#.len() as u64;
            let id = if call.id.is_empty() { 0 } else { id_len(&call.id) };
            let len = frame + id + name.as_deref().map_or(4, quoted) + answer.text.size().json();
            let raw = fields.as_ref().map(|it| {
                let (id, name, text) = (&it["id"], &it["name"], &it["result"]);
                json!({ "functionResponse": { "id": id, "name": name, "response": { "output": text } } })
            });
            results.push(piece(Part::Output(Output { id: call.id.clone(), name, ..answer }), len, raw));
        }
        if cancelled {
            mark_refused(&mut results);
        }
        found.results.extend(results);
        let raw = fields.as_ref().map(|_| {
            let call: serde_json::Map<String, Value> = ["id", "name", "args"]
                .iter()
                .filter_map(|key| Some(((*key).to_owned(), field(key)?)))
                .collect();
            json!({ "functionCall": call })
        });
        found.calls.push(piece(Part::Call(call), braced("functionCall", len), raw));
        Some(())
    }
}

/// The messages that a model record is sent as. Its calls are added to the content, unless that has calls or
/// thoughts.
fn turn(
    content: Content,
    thinks: bool,
    calls: Vec<ReadPart>,
    results: Vec<ReadPart>,
    kind: Option<Kind>,
) -> Vec<MessageDraft> {
    let is_call = |it: &ReadPart| matches!(it.part, Part::Call(_));
    let mut parts = if content.filled { content.parts } else { Vec::new() };
    let has_thoughts = parts.iter().any(|it| it.is_thought);
    let whole = has_thoughts || parts.iter().any(is_call);
    if whole {
        parts.retain(|it| !it.is_thought);
    } else {
        parts.extend(calls);
    }
    let thinks = if whole { has_thoughts } else { thinks };
    // A model turn that was thoughts only is still a turn for the client, but nothing of it is sent.
    if parts.is_empty() && !thinks {
        return Vec::new();
    }
    // The client signs the first call of a turn whose thoughts it removes.
    if thinks
        && let Some(first) = parts.iter_mut().find(|it| is_call(it))
        && !first.is_signed
    {
        first.len += r#","thoughtSignature":"""#.len() as u64 + NO_SIGNATURE.len() as u64;
        first.raw.iter_mut().for_each(|it| set(it, "thoughtSignature", NO_SIGNATURE));
    }
    let both = [(RecordSide::Model, parts), (RecordSide::Results, results)];
    both.map(|(side, parts)| MessageDraft {
        side,
        parts: ready(parts),
        kind,
        snapshot: false,
        summary: false,
    })
    .into()
}

/// Calls and responses without an id get one from name and number, the same on both sides, as the client does it.
fn ready(mut pieces: Vec<ReadPart>) -> Vec<ReadPart> {
    let mut counts: HashMap<Arc<str>, usize> = HashMap::new();
    for piece in &mut pieces {
        let (key, id, name) = match &mut piece.part {
            Part::Call(it) => ("functionCall", &mut it.id, it.name.clone()),
            Part::Output(it) => ("functionResponse", &mut it.id, it.name.clone().unwrap_or_default()),
            Part::Text(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => continue,
        };
        if id.is_empty() {
            let count = counts.entry(name.clone()).or_default();
            *count += 1;
            *id = format!("{name}:{count}").into();
            piece.len += id_len(id);
            piece.raw.iter_mut().filter_map(|it| it.get_mut(key)).for_each(|it| set(it, "id", &**id));
        }
    }
    pieces.shrink_to_fit();
    pieces
}

fn reported(it: &mut Cursor<'_>) -> Option<Reported> {
    let place = |name: &str| REPORTED.iter().position(|it| *it == name);
    let mut counts = [None; REPORTED.len()];
    it.object(|it, name| match place(name) {
        Some(place) => it.optional_number().map(|it| counts[place] = it),
        None => it.pass(),
    })?;
    Some(Reported::of(|name| counts[place(name)?]))
}

/// The first workspace directory in the session's context.
fn workspace(plain: &str) -> Option<&str> {
    let text = plain.trim_start().strip_prefix(CONTEXT)?;
    let (_, list) = text.split_once("Workspace Directories:**")?;
    let line = list.lines().map(str::trim).find(|it| !it.is_empty())?;
    line.strip_prefix("- ")
}

/// Whether a text is a summary by Gemini CLI.
pub(super) fn is_snapshot(text: &str) -> bool {
    text.trim_end().ends_with("</state_snapshot>") && text.contains(SNAPSHOT_TAG)
}

/// Whether Gemini CLI does not send a user message with this text, because of how it begins.
pub(super) fn starts_ignored(text: &str) -> bool {
    ["/", "?", CONTEXT, "<hook_context>"].iter().any(|it| text.trim().starts_with(it))
}

/// A summary of ours without its frame: the record itself states its kind.
fn unframed(text: &str) -> Option<&str> {
    text.strip_prefix(SNAPSHOT.0)?.strip_suffix(SNAPSHOT.1)
}

/// Marks the results of a call with the status `cancelled` that the user refused.
fn mark_refused(results: &mut [ReadPart]) {
    for piece in results {
        if let Part::Output(output) = &mut piece.part
            && output.failed
        {
            output.refusal = refusal::gemini_cli(output.text.as_str()).map(Box::new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::part::{API, Wanted};
    use super::*;
    use crate::parse::raw::{Fields, list};
    use crate::parse::texts::WHOLE;
    use history::{Opaque, TextSize};

    fn look(json: &str) -> Option<JournalItem> {
        let mut reader = RecordReader::new(Wanted { keep: WHOLE, raw: true });
        Cursor::mended(json.as_bytes(), |it| reader.message(it, 7)).and_then(Result::ok)
    }

    /// The JSON of what is sent; checks that each part has the length that it states.
    fn sent(json: &str) -> String {
        let drafts = look(json).unwrap().drafts.unwrap_or_default();
        let json = |it: &ReadPart| {
            let json = history::json::compact(it.raw.as_deref().unwrap());
            assert_eq!(it.len, TextSize::of(&json).utf16, "{json}");
            json
        };
        drafts.iter().flat_map(|it| &it.parts).map(json).collect::<Vec<_>>().join(" ")
    }

    fn user(content: &str) -> String {
        format!(r#"{{"id":"u","type":"user","content":{content}}}"#)
    }

    fn model(rest: &str) -> String {
        format!(r#"{{{rest},"id":"m","type":"gemini"}}"#)
    }

    const ANSWER: &str =
        r#"{"functionResponse":{"id":"c","name":"r","response":{"output":"1\t\u001b[1mé😀\n"}}}"#;

    #[test]
    fn what_is_sent_is_what_stands_there() {
        for content in [
            ANSWER,
            r#"{"text":""}"#,
            r#"{"text":"a \"b\"\n😀","thoughtSignature":"c2ln"}"#,
            r#"{"functionCall":{"name":"a","args":{"k":[1,null]},"id":"x"},"thoughtSignature":"c2ln"}"#,
            r#"{"functionResponse":{"id":"c","name":"r","response":{"output":{},"error":"no"},"parts":[{"inlineData":{"mimeType":"image/png","data":"AA"}}],"new":1}}"#,
            r#"{"functionResponse":{"id":"c","response":"text"}}"#,
            r#"{"functionCall":5}"#,
            r#"{"inlineData":{"mimeType":"image/png","data":"AA","displayName":"é"}}"#,
            r#"{"fileData":{"mimeType":"application/pdf","fileUri":"gs://a"},"videoMetadata":{}}"#,
            r#"{"executableCode":{"code":"x"}}"#,
            "{}",
        ] {
            assert_eq!(
                sent(&user(&format!(r#"["Look:", {content}]"#))),
                format!(r#"{{"text":"Look:"}} {content}"#)
            );
            assert_eq!(sent(&model(&format!(r#""content":{content}"#))), content);
        }
    }

    #[test]
    fn calls_and_results_stand_beside_the_content() {
        let calls = format!(
            r#"[7,{{"result":[{ANSWER},"more"],"args":{{"a": 1}},"name":"r","id":"c","status":"success"}},
                {{"name":"s","result":"text","resultDisplay":{{"fileDiff":"\ud83d"}}}},{{"id":[],"name":"s","result":null}}]"#
        );
        let calls_sent = r#"{"functionCall":{"id":"c","name":"r","args":{"a":1}}"#;
        let rest = r#"{"functionCall":{"name":"s","id":"s:1"}} {"functionCall":{"id":"s:2","name":"s"}}"#;
        let results = format!(
            r#"{ANSWER} {{"text":"more"}} {{"functionResponse":{{"id":"s:1","name":"s","response":{{"output":"text"}}}}}}"#
        );
        assert_eq!(
            sent(&model(&format!(r#""toolCalls":{calls},"content":"","thoughts":[]"#))),
            format!("{calls_sent}}} {rest} {results}")
        );
        // Thoughts are removed, and the first call is signed because of that.
        let signed = r#","thoughtSignature":"skip_thought_signature_validator"}"#;
        assert_eq!(
            sent(&model(&format!(r#""toolCalls":{calls},"content":"a","thoughts":[{{}}]"#))),
            format!(r#"{{"text":"a"}} {calls_sent}{signed} {rest} {results}"#)
        );
        let whole = r#"[{"text":"Hm.","thought":true},{"functionCall":{"name":"a","id":"x"}},{"text":"b"}]"#;
        assert_eq!(
            sent(&model(&format!(r#""toolCalls":{calls},"content":{whole}"#))),
            format!(r#"{{"functionCall":{{"name":"a","id":"x"}}{signed} {{"text":"b"}} {results}"#)
        );
        assert_eq!(sent(&model(r#""content":"","thoughts":[{}]"#)), "");
    }

    #[test]
    fn the_last_field_counts_and_one_of_the_wrong_type_is_missing() {
        let item = look(
            r#"{"id":5,"id":"i","type":"gemini","content":"first","timestamp":1,"model":{},"content":[{"text":"x","text":7},
                {"text":7,"text":"y"}],"tokens":{"input":10,"input":1.5,"output":2,"total":12},"toolCalls":{},"type":"user"}"#,
        )
        .unwrap();
        assert_eq!(
            (item.id.as_deref(), item.time, item.model, item.survives_resume),
            (Some("i"), None, None, true)
        );
        assert_eq!(item.reported.map(|it| (it.total, it.usage)), Some((Some(12), None)));
        let parts: Vec<Part> = item.drafts.unwrap().remove(0).parts.into_iter().map(|it| it.part).collect();
        let raw = r#"{"text":"x","text":7}"#.into();
        let opaque = Part::Opaque(Opaque { api: API.into(), kind: "text".into(), raw });
        assert_eq!(parts, [opaque, Part::Text("y".into())]);
        assert!(look("[]").is_none() && look(r#"{"id":"i""#).is_none());
    }

    #[test]
    fn what_the_client_would_not_send_is_left_out() {
        for content in [
            "null",
            "[]",
            r#""""#,
            r#"[" ",{"text":" /compress"}]"#,
            r#"[{"text":"<session_"},{"text":"context>"}]"#,
        ] {
            assert!(look(&user(content)).unwrap().drafts.unwrap().is_empty(), "{content}");
        }
        assert_eq!(sent(&user(&format!(r#"[{ANSWER},"/x"]"#))), format!(r#"{ANSWER} {{"text":"/x"}}"#));
        let context = r#""<session_context>\n**Workspace Directories:**\n  - /w\n""#;
        let item = look(&user(context)).unwrap();
        assert_eq!(
            (item.context, item.survives_resume, item.workspace.as_deref()),
            (true, false, Some("/w"))
        );
        for kind in ["\"info\"", "5"] {
            let item = look(&format!(r#"{{"id":"i","type":{kind},"content":"x"}}"#)).unwrap();
            assert_eq!((item.survives_resume, item.drafts.unwrap_or_default().len()), (false, 0));
        }
    }

    #[test]
    fn a_summary_of_ours_is_without_its_frame() {
        let text = r#""<state_snapshot>\nS\n</state_snapshot>""#;
        for (ours, expected) in
            [(r#","epitome":"summary""#, "S"), ("", "<state_snapshot>\nS\n</state_snapshot>")]
        {
            let item = look(&format!(r#"{{"id":"i","type":"user","content":{text}{ours}}}"#)).unwrap();
            assert!(item.summary.is_some_and(|it| it.starts_with(SNAPSHOT.0)));
            let [draft] = &item.drafts.unwrap()[..] else { panic!("{ours}") };
            assert!(draft.summary && draft.snapshot);
            assert_eq!(draft.parts[0].part, Part::Text(expected.into()));
        }
    }

    #[test]
    fn nothing_lies_too_deep() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let item =
            look(&user(&format!(r#"[{{"functionCall":{{"id":"c","args":{deep}}}}},{deep}]"#))).unwrap();
        let parts = item.drafts.unwrap().remove(0).parts;
        assert!(matches!(&parts[0].part, Part::Call(call) if call.input.as_str() == deep));
        assert!(matches!(&parts[1].part, Part::Opaque(it) if it.raw.as_str() == deep));
        assert!(parts.iter().all(|it| it.raw.is_none()));
    }

    /// Every record of the corpus, including those in a `$set`.
    #[test]
    fn parts_of_real_records_are_as_long_as_they_say() {
        for (_, bytes) in crate::tests::sessions() {
            let text = history::json::mend(&bytes);
            for line in text.lines() {
                let Some(fields) = Fields::of(line) else { continue };
                let set = fields.object("$set").and_then(|it| it.get("messages")).and_then(list);
                std::iter::once(line).chain(set.unwrap_or_default()).for_each(|it| drop(sent(it)));
            }
        }
    }
}
