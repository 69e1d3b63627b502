//! A line of a transcript, read in one pass. A field of the wrong type counts as missing; of duplicate fields
//! the last counts, as in JavaScript.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;

use super::blocks::{API, attachment, is_clients};
use super::usage::reported;
use crate::parse::cursor::Cursor;
use crate::parse::texts::{Interner, Scratch, Texts};
use crate::{Keep, derive, is_cleared, is_our_summary, refusal};
use history::{Call, Kind, Media, Opaque, Output, Part, Reasoning, Text, Usage};

/// A parsed line, with its texts as `keep` leaves them.
#[derive(Default)]
pub(super) struct RowLine<'a> {
    pub(super) kind: Option<Cow<'a, str>>,
    pub(super) uuid: Option<Cow<'a, str>>,
    pub(super) parent: Option<Cow<'a, str>>,
    pub(super) answers: Option<Cow<'a, str>>,
    /// None if the field is missing.
    pub(super) sidechain: Option<bool>,
    pub(super) meta: bool,
    pub(super) summary: bool,
    pub(super) api_error: bool,
    pub(super) subtype: Option<Cow<'a, str>>,
    pub(super) at: Option<i64>,
    pub(super) session: Option<Cow<'a, str>>,
    pub(super) cwd: Option<Cow<'a, str>>,
    /// `permissionMode` of a prompt.
    pub(super) mode: Option<Cow<'a, str>>,
    pub(super) leaf: Option<Cow<'a, str>>,
    pub(super) compact: Option<Box<Compact>>,
    pub(super) message: Option<RowContent<'a>>,
    message_at: Range<usize>,
    /// The output of a command that ran in the client.
    pub(super) content: Option<Text>,
    pub(super) attached: Attached<'a>,
    refused: Refused<'a>,
}

/// What the client adds, as raw JSON.
#[derive(Default)]
pub(super) struct Attached<'a> {
    pub(super) attachment: Option<&'a str>,
    pub(super) rendered: Option<&'a str>,
    pub(super) role: Option<Cow<'a, str>>,
}

/// The fields of a row that say, beside the result of a call, whether the user refused the call.
#[derive(Default)]
struct Refused<'a> {
    kind: Option<Cow<'a, str>>,
    decision: Option<Cow<'a, str>>,
    /// Whether the row also has the result as it was shown (`toolUseResult`).
    shown: bool,
}

/// `compactMetadata` of a boundary.
pub(super) struct Compact {
    pub(super) trigger: Option<String>,
    pub(super) before: Option<u64>,
    pub(super) after: Option<u64>,
    pub(super) segment: Option<Segment>,
    pub(super) kept: Option<Kept>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Segment {
    pub(super) head_uuid: String,
    pub(super) anchor_uuid: String,
    pub(super) tail_uuid: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Kept {
    pub(super) anchor_uuid: String,
    pub(super) uuids: Vec<String>,
}

/// The content of a message.
#[derive(Default)]
pub(super) struct RowContent<'a> {
    pub(super) parts: Vec<Part>,
    /// Whether any text or attachment is the user's own.
    is_own: bool,
    /// Whether the last text is a summary of ours.
    pub(super) is_summary: bool,
    /// Whether it mentions a tool result.
    pub(super) has_result: bool,
    /// `message.id`.
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) model: Option<Cow<'a, str>>,
    pub(super) usage: Option<Usage>,
}

impl RowContent<'_> {
    /// Whether its words are the user's.
    pub(super) fn kind(&self) -> Kind {
        if self.is_own { Kind::Said } else { Kind::Context }
    }
}

#[derive(Default)]
pub(super) struct LineReader<'k> {
    /// Without a `keep`, only the places of rows in the tree are read.
    pub(super) texts: Texts<'k>,
    scratch: Scratch,
    /// Buffer for a text that is joined from several.
    joined: String,
    /// Buffer for the parts of a message.
    parts: Vec<Part>,
}

/// A block, filled in as its fields are read.
#[derive(Default)]
struct Block<'a> {
    kind: Option<Cow<'a, str>>,
    text: Option<Text>,
    is_own: bool,
    is_summary: bool,
    thinking: Option<Text>,
    signature: Option<Text>,
    data: Option<Text>,
    id: Option<Cow<'a, str>>,
    name: Option<Cow<'a, str>>,
    input: Option<Text>,
    call: Option<Cow<'a, str>>,
    result: Option<Output>,
    failed: bool,
    source: Option<&'a str>,
}

impl<'k> LineReader<'k> {
    pub(super) fn new(keep: Option<&'k Keep<'k>>, at: u64) -> Self {
        Self { texts: Texts { keep, at }, ..Self::default() }
    }

    /// Reads a line, if it is an object that needs no mending.
    pub(super) fn line<'a>(&mut self, line: &'a [u8]) -> Option<RowLine<'a>> {
        let mut out = RowLine::default();
        Cursor::whole(line, |it| it.object(|it, name| self.field(&mut out, it, name)))?;
        let Some(content) = &mut out.message else { return Some(out) };
        // Searched for anywhere in the message.
        content.has_result |= out.kind.as_deref() == Some("user")
            && memmem::find(&line[out.message_at.clone()], b"\"tool_result\"").is_some();
        for part in &mut content.parts {
            if let Part::Output(output) = part {
                // The error of an MCP server could read like a refusal.
                output.refusal.take_if(|it| !out.refused.is_real(it));
            }
        }
        Some(out)
    }

    fn field<'a>(&mut self, out: &mut RowLine<'a>, it: &mut Cursor<'a>, name: &str) -> Option<()> {
        match name {
            "type" => out.kind = it.optional_string()?,
            "uuid" => out.uuid = it.optional_string()?,
            "parentUuid" => out.parent = it.optional_string()?,
            "sourceToolAssistantUUID" => out.answers = it.optional_string()?,
            "isSidechain" => {
                let is_bool = matches!(it.peek()?, b't' | b'f');
                out.sidechain = Some(it.begins_with(b't')?).filter(|_| is_bool);
            }
            "isMeta" => out.meta = it.begins_with(b't')?,
            "isCompactSummary" => out.summary = it.begins_with(b't')?,
            "isApiErrorMessage" => out.api_error = it.begins_with(b't')?,
            "subtype" => out.subtype = it.optional_string()?,
            "timestamp" => out.at = it.optional_string()?.and_then(|it| derive::parse_time(&it)),
            "sessionId" => out.session = it.optional_string()?,
            "cwd" => out.cwd = it.optional_string()?,
            "permissionMode" => out.mode = it.optional_string()?,
            "leafUuid" => out.leaf = it.optional_string()?,
            "compactMetadata" => {
                out.compact = Some(it.json()?).filter(Value::is_object).map(|it| Box::new(compact(&it)))
            }
            "message" => {
                let (content, place) = it.span(|it| it.optional(b'{', |it| self.message(it)))?;
                (out.message, out.message_at) = (content, place);
            }
            "content" => out.content = it.optional(b'"', |it| self.text(it))?,
            "attachment" => out.attached.attachment = Some(it.raw()?).filter(|it| *it != "null"),
            "rendered" => out.attached.rendered = Some(it.raw()?).filter(|it| *it != "null"),
            "renderedRole" => out.attached.role = it.optional_string()?,
            "toolDenialKind" => out.refused.kind = it.optional_string()?,
            "permissionDecision" => {
                out.refused.decision = it.member("decision", Cursor::optional_string)?.flatten();
            }
            "toolUseResult" => out.refused.shown = !it.begins_with(b'n')?,
            _ => it.pass()?,
        }
        Some(())
    }

    fn message<'a>(&mut self, it: &mut Cursor<'a>) -> Option<RowContent<'a>> {
        let mut content = RowContent::default();
        it.object(|it, name| {
            match name {
                "id" => content.id = it.optional_string()?,
                "model" => content.model = it.optional_string()?,
                "usage" => content.usage = it.optional(b'{', reported)?,
                "content" => self.content(it, &mut content)?,
                _ => it.pass()?,
            }
            Some(())
        })?;
        Some(content)
    }

    /// `content`: a string, or blocks.
    fn content(&mut self, it: &mut Cursor<'_>, content: &mut RowContent<'_>) -> Option<()> {
        (content.is_own, content.is_summary, content.has_result) = (false, false, false);
        self.parts.clear();
        match (it.peek()?, self.texts.keep) {
            (b'"', Some(_)) => {
                let text = it.text(&mut self.scratch.buffer)?;
                if !text.trim().is_empty() {
                    (content.is_own, content.is_summary) = (!is_clients(text), is_our_summary(text));
                    self.parts.push(Part::Text(self.texts.of(text)));
                }
            }
            (b'[', _) => it.list(|it| self.block(it, content))?,
            _ => it.pass()?,
        }
        // Collected, because that gives an exact capacity.
        content.parts = self.parts.drain(..).collect();
        Some(())
    }

    /// The parts of a `content` value outside a message.
    pub(super) fn parts<'a>(&mut self, raw: &'a str) -> RowContent<'a> {
        let mut content = RowContent::default();
        // Invalid JSON has no content.
        let _: Option<()> = Cursor::whole(raw.as_bytes(), |it| self.content(it, &mut content));
        content
    }

    /// Reads a block; one that is not sent, or not an object, gives no part.
    fn block(&mut self, it: &mut Cursor<'_>, content: &mut RowContent<'_>) -> Option<()> {
        if it.peek()? != b'{' {
            return it.pass();
        }
        let mut block = Block::default();
        let ((), place) = it.span(|it| it.object(|it, key| self.block_field(&mut block, it, key)))?;
        let owned = |it: Option<Cow<'_, str>>, known: &mut Interner| known.of(&it.unwrap_or_default());
        let kind = block.kind.unwrap_or_default();
        let part = match &*kind {
            "text" => {
                (content.is_own, content.is_summary) = (content.is_own | block.is_own, block.is_summary);
                block.text.map(Part::Text)
            }
            "thinking" => {
                let signature = block.signature.filter(|it| !it.is_empty()).map(Box::new);
                Some(Part::Reasoning(Reasoning { text: block.thinking.unwrap_or_default(), signature }))
            }
            "redacted_thinking" => {
                let signature = block.data.map(Box::new);
                Some(Part::Reasoning(Reasoning { text: Text::default(), signature }))
            }
            "tool_use" => {
                let (id, name) =
                    (owned(block.id, &mut self.scratch.ids), owned(block.name, &mut self.scratch.names));
                let input = block.input.unwrap_or_else(|| self.texts.of("{}"));
                Some(Part::Call(Call { id, name, input, freeform: false, signature: None }))
            }
            "tool_result" => {
                content.has_result = true;
                let result = block.result.unwrap_or_else(|| output(Text::default(), "", Vec::new()));
                let refusal = result.refusal.filter(|_| block.failed);
                let id = owned(block.call, &mut self.scratch.ids);
                Some(Part::Output(Output { id, failed: block.failed, refusal, ..result }))
            }
            // Marks that another model took over; not sent (2.1.328).
            "fallback" => None,
            _ if self.texts.keep.is_none() => None,
            kind => Some(match block.source.and_then(|it| attachment(kind, it)) {
                Some(media) => {
                    content.is_own = true;
                    Part::Media(media)
                }
                None => {
                    let raw = self.texts.of(&it.at(place.start).compact()?);
                    Part::Opaque(Opaque { api: API.into(), kind: kind.into(), raw })
                }
            }),
        };
        self.parts.extend(part.filter(|_| self.texts.keep.is_some()));
        Some(())
    }

    fn block_field<'a>(&mut self, block: &mut Block<'a>, it: &mut Cursor<'a>, key: &str) -> Option<()> {
        match (key, self.texts.keep) {
            ("type", _) => block.kind = it.optional_string()?,
            ("text", Some(_)) => {
                (block.text, block.is_own, block.is_summary) = (None, false, false);
                it.optional(b'"', |it| {
                    let text = it.text(&mut self.scratch.buffer)?;
                    if !text.is_empty() {
                        (block.is_own, block.is_summary) = (!is_clients(text), is_our_summary(text));
                        block.text = Some(self.texts.of(text));
                    }
                    Some(())
                })?;
            }
            ("thinking", Some(_)) => block.thinking = it.optional(b'"', |it| self.text(it))?,
            ("signature", Some(_)) => block.signature = it.optional(b'"', |it| self.text(it))?,
            ("data", Some(_)) => block.data = it.optional(b'"', |it| self.text(it))?,
            ("id", Some(_)) => block.id = it.optional_string()?,
            ("name", Some(_)) => block.name = it.optional_string()?,
            ("input", Some(_)) => block.input = it.some(|it| Some(self.texts.of(&it.compact()?)))?,
            ("tool_use_id", Some(_)) => block.call = it.optional_string()?,
            ("content", Some(_)) => block.result = Some(self.result(it)?),
            ("is_error", _) => block.failed = it.begins_with(b't')?,
            ("source", Some(_)) => block.source = Some(it.raw()?),
            _ => it.pass()?,
        }
        Some(())
    }

    fn text(&mut self, it: &mut Cursor<'_>) -> Option<Text> {
        match self.texts.keep {
            Some(_) => it.text(&mut self.scratch.buffer).map(|it| self.texts.of(it)),
            None => it.pass().map(|()| Text::default()),
        }
    }

    /// The content of a tool's result: a string, or blocks, of which texts, attachments and unknown ones
    /// count. The caller sets the id.
    fn result(&mut self, it: &mut Cursor<'_>) -> Option<Output> {
        let texts = self.texts;
        let of = |text: &str, media| output(texts.of(text), text, media);
        let mut media = Vec::new();
        match it.peek()? {
            b'"' => it.text(&mut self.scratch.buffer).map(|it| of(it, media)),
            b'[' => {
                let mut joined = std::mem::take(&mut self.joined);
                joined.clear();
                let read = it.list(|it| self.piece(it, &mut joined, &mut media));
                let output = read.map(|()| of(&joined, media));
                self.joined = joined;
                output
            }
            _ => it.pass().map(|()| of("", media)),
        }
    }

    /// A block of a result: adds a line to the text, or an attachment.
    fn piece(&mut self, it: &mut Cursor<'_>, joined: &mut String, media: &mut Vec<Media>) -> Option<()> {
        if it.peek()? != b'{' {
            return it.pass();
        }
        let (mut kind, mut source, from) = (None, None, joined.len());
        let line = |joined: &mut String, text: &str| {
            joined.truncate(from);
            if !text.is_empty() {
                joined.push_str(if from > 0 { "\n" } else { "" });
                joined.push_str(text);
            }
        };
        let ((), place) = it.span(|it| {
            it.object(|it, key| {
                match key {
                    "type" => kind = it.optional_string()?,
                    "text" => {
                        joined.truncate(from);
                        it.optional(b'"', |it| it.text(&mut self.scratch.buffer).map(|it| line(joined, it)))?;
                    }
                    "source" => source = Some(it.raw()?),
                    _ => it.pass()?,
                }
                Some(())
            })
        })?;
        match &*kind.unwrap_or_default() {
            "text" => {}
            "thinking" | "redacted_thinking" | "tool_use" | "tool_result" | "fallback" => {
                joined.truncate(from);
            }
            kind => match source.and_then(|it| attachment(kind, it)) {
                Some(it) => {
                    joined.truncate(from);
                    media.push(it);
                }
                None => line(joined, &it.at(place.start).compact()?),
            },
        }
        Some(())
    }
}

impl Refused<'_> {
    /// Whether a result that reads like a refusal is one: every row of Claude Code also has the result as it
    /// was shown, and since 2.1.328 it says how permission was decided.
    fn is_real(&self, refusal: &history::Refusal) -> bool {
        self.shown
            && self.kind.as_deref().is_none_or(|it| refusal.by_settings || it == "user-rejected")
            && self.decision.as_deref().is_none_or(|it| it != "accept")
    }
}

/// `read`: the text of the result before `keep` replaced it.
fn output(text: Text, read: &str, media: Vec<Media>) -> Output {
    Output {
        cleared: is_cleared(read),
        media: media.into(),
        refusal: refusal::claude_code(read).map(Box::new),
        ..Output::new("", text)
    }
}

/// What was preserved counts only if all of its fields are there.
fn compact(found: &Value) -> Compact {
    Compact {
        trigger: found["trigger"].as_str().map(str::to_owned),
        before: found["preTokens"].as_u64(),
        after: found["postTokens"].as_u64(),
        segment: Segment::deserialize(&found["preservedSegment"]).ok(),
        kept: Kept::deserialize(&found["preservedMessages"]).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::texts::WHOLE;

    fn read<T>(line: &str, look: impl FnOnce(RowLine<'_>) -> T) -> Option<T> {
        LineReader::new(Some(WHOLE), 0).line(line.as_bytes()).map(look)
    }

    fn parts(content: &str) -> (Vec<Part>, Kind) {
        let line = format!(r#"{{"message":{{"content":{content}}},"type":"user"}}"#);
        let content = read(&line, |it| it.message.map(|it| (it.kind(), it.parts))).flatten();
        content.map(|(kind, parts)| (parts, kind)).unwrap()
    }

    #[test]
    fn the_last_field_counts_and_one_of_the_wrong_type_is_missing() {
        let line = r#"{"uuid":"a","type":"user","uuid":"b","parentUuid":7,"cwd":"/p","cwd":null,"isMeta":true,
            "message":5,"message":{"content":"first","id":[],"content":[{"type":"text","text":"x"}]}}"#;
        let found = read(line, |it| {
            assert_eq!((it.uuid.as_deref(), it.parent, it.cwd, it.meta), (Some("b"), None, None, true));
            it.message.map(|it| it.parts)
        });
        assert_eq!(found.flatten(), Some(vec![Part::Text("x".into())]));
        let (found, kind) =
            parts(r#"[{"text":"own","type":"text"},7,{"type":"text","text":"own","text":1}]"#);
        assert_eq!((found, kind), (vec![Part::Text("own".into())], Kind::Said));
        assert!(read(r#"{"type":"user""#, |_| ()).is_none() && read("[]", |_| ()).is_none());
    }

    #[test]
    fn blocks_that_are_not_known_stay_as_they_stand() {
        let (found, kind) =
            parts(r#"[{"type":"new", "content":[ 1 ]},{"type":"image","source":{"type":"x"}}]"#);
        let raw: Vec<&str> = found
            .iter()
            .map(|it| if let Part::Opaque(it) = it { it.raw.as_str() } else { panic!("{it:?}") })
            .collect();
        let image = r#"{"type":"image","source":{"type":"x"}}"#;
        assert_eq!((raw, kind), (vec![r#"{"type":"new","content":[1]}"#, image], Kind::Context));
        // A lone surrogate must be mended where it is copied, but not where it is skipped.
        assert!(read(r#"{"message":{"content":[{"type":"new","x":"\ud83d"}]}}"#, |_| ()).is_none());
        assert!(read(r#"{"message":{"content":[]},"x":"\ud83d"}"#, |_| ()).is_some());
    }

    #[test]
    fn a_result_is_lines_and_attachments() {
        let (found, _) = parts(
            r#"[{"type":"tool_result","is_error":true,"tool_use_id":"c","content":[{"text":"a","type":"text"},
                {"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA"}},{"text":"no"},
                {"type":"tool_use","text":"nor this"},{"type":"text","text":""},{"type":"text","text":"b"}]}]"#,
        );
        let [Part::Output(output)] = &*found else { panic!("{found:?}") };
        assert_eq!(
            (output.text.as_str(), output.media.len(), output.failed),
            ("a\n{\"text\":\"no\"}\nb", 1, true)
        );
    }

    #[test]
    fn what_was_preserved_is_named_whole_or_not_at_all() {
        let kept = |fields: &str| {
            let line = format!(r#"{{"compactMetadata":{{"preTokens":5,"preservedMessages":{fields}}}}}"#);
            let compact = read(&line, |it| it.compact).flatten().unwrap();
            assert_eq!(compact.before, Some(5));
            compact.kept.map(|it| it.uuids)
        };
        assert_eq!(kept(r#"{"anchorUuid":"a","uuids":["b"]}"#), Some(vec!["b".to_owned()]));
        assert_eq!(kept(r#"{"anchorUuid":"a","uuids":["b",1]}"#), None);
        assert_eq!(kept(r#"{"uuids":["b"]}"#), None);
    }
}
