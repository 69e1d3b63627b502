//! The records that make up nearly all of a journal, read in one pass. Whatever is not exactly as expected here is left
//! to the reader that takes everything ([`super::record`]); where both read a record, they read the same.

use std::ops::Range;
use std::sync::Arc;

use memchr::memmem::{self, Finder};

use super::KIND_FIELD;
use super::record::{
    CONTEXT, Draft, JournalItem, MASKED, NO_SIGNATURE, Piece, REPORTED, Reported, SNAPSHOT_TAG, mark_refused,
    starts_ignored,
};
use crate::cursor::{Cursor, Recent, Room};
use crate::{Keep, derive, is_cleared};
use history::{Call, Output, Part, Text, TextSize};

/// Reads one record after another, and holds what it needs for that again and again.
pub(super) struct Fast<'a> {
    keep: Option<&'a Keep<'a>>,
    room: Room,
    /// Names of tools and models, which are few.
    names: Recent,
    /// Ids of calls, which their outputs name too.
    ids: Recent,
    masked: Finder<'static>,
}

/// What a signature adds to a part, but for itself.
const SIGNED: &str = r#","thoughtSignature":"#;

/// A message record as its fields come.
#[derive(Default)]
struct JournalRow {
    id: Option<Arc<str>>,
    time: Option<Option<i64>>,
    model: Option<Arc<str>>,
    reported: Option<Reported>,
    user: Option<bool>,
    content: Option<Content>,
    thinks: Option<bool>,
    calls: Option<Vec<Piece>>,
    results: Vec<Piece>,
}

/// What stands under `content`.
struct Content {
    parts: Vec<Piece>,
    filled: bool,
    /// How the text begins that a user's parts are shown as.
    begins: String,
    /// Thoughts stood among the parts.
    thoughts: bool,
    /// Number of the first call among the parts, and whether it is signed.
    call: Option<(usize, bool)>,
}

impl<'a> Fast<'a> {
    pub(super) fn new(keep: Option<&'a Keep<'a>>) -> Self {
        Self {
            keep,
            room: Room::default(),
            names: Recent::default(),
            ids: Recent::default(),
            masked: Finder::new(MASKED),
        }
    }

    /// Reads a message record, if it is one of the usual ones.
    pub(super) fn look(&mut self, json: &[u8], at: Range<u64>) -> Option<JournalItem> {
        let mut row = JournalRow::default();
        Cursor::whole(json, |it| it.object(|it, name| self.field(&mut row, it, name, at.start)))?;
        let id = row.id?;
        let user = row.user?;
        let content = row.content?;
        let (kept, draft) = if user {
            if row.calls.is_some() || row.thinks.is_some() {
                return None;
            }
            let ignored = starts_ignored(&content.begins);
            let mut parts = content.parts;
            parts.shrink_to_fit();
            let blank = parts.iter().all(|it| it.blank);
            let said = Draft::User { parts, kind: None, snapshot: false, summary: false };
            (content.filled && !ignored, if ignored || blank { Draft::Nothing } else { said })
        } else {
            let calls = row.calls.unwrap_or_default();
            let kept = content.filled || !calls.is_empty() || row.thinks == Some(true);
            let mut parts = content.parts;
            // What the model said is the content, if it is whole, else that and the calls.
            let (thinks, call) = if content.thoughts || content.call.is_some() {
                (content.thoughts, content.call)
            } else {
                let call = parts.len();
                parts.extend(calls);
                (row.thinks == Some(true), Some((call, false)))
            };
            // The client signs the first call of a turn whose thoughts it takes out.
            if let (true, Some((call, false))) = (thinks, call)
                && let Some(call) = parts.get_mut(call)
            {
                call.len += SIGNED.len() as u64 + 2 + NO_SIGNATURE.len() as u64;
            }
            let turn = !parts.is_empty() || thinks;
            let mut results = row.results;
            parts.shrink_to_fit();
            results.shrink_to_fit();
            let said = Draft::Model { parts, kind: None, results };
            (kept, if turn { said } else { Draft::Nothing })
        };
        Some(JournalItem {
            id: Some(id),
            record: 0,
            at,
            time: row.time.flatten(),
            model: row.model,
            reported: row.reported,
            kept,
            context: false,
            workspace: None,
            summary: None,
            draft,
        })
    }

    fn field(&mut self, row: &mut JournalRow, it: &mut Cursor<'_>, name: &str, at: u64) -> Option<()> {
        match name {
            "id" => once(&mut row.id, it.text(&mut self.room)?.into()),
            "timestamp" => once(&mut row.time, derive::parse_time(it.text(&mut self.room)?)),
            "type" => match it.text(&mut self.room)? {
                "user" => once(&mut row.user, true),
                "gemini" => once(&mut row.user, false),
                _ => None,
            },
            "model" => once(&mut row.model, self.name(it)?),
            "content" => {
                let content = self.content(it, row.user?, at)?;
                once(&mut row.content, content)
            }
            "thoughts" => {
                let list = it.value()?.strip_prefix('[')?;
                let empty = list.trim_start().starts_with(']');
                (empty == (list == "]")).then(|| once(&mut row.thinks, !empty))?
            }
            "tokens" => {
                let mut told = [None; REPORTED.len()];
                it.object(|it, name| match REPORTED.iter().position(|it| *it == name) {
                    Some(place) => once(&mut told[place], it.number()?),
                    None => it.pass(),
                })?;
                let place = |key: &str| REPORTED.iter().position(|it| *it == key);
                once(&mut row.reported, Reported::of(|key| told[place(key)?]))
            }
            "toolCalls" => {
                let mut calls = Vec::new();
                it.list(|it| {
                    calls.push(self.call(&mut row.results, it, at)?);
                    Some(())
                })?;
                once(&mut row.calls, calls)
            }
            KIND_FIELD => None,
            _ if name.starts_with('$') => None,
            _ => it.pass(),
        }
    }

    /// A text or a list of parts: of the user's, texts or responses; of the model's, thoughts, texts and calls.
    fn content(&mut self, it: &mut Cursor<'_>, user: bool, at: u64) -> Option<Content> {
        let mut out =
            Content { parts: Vec::new(), filled: true, begins: String::new(), thoughts: false, call: None };
        if it.peek()? == b'"' {
            let text = it.text(&mut self.room)?;
            out.filled = !text.is_empty();
            // What a user says is a part though it be empty.
            if user || out.filled {
                let part = said(text, user, &mut out.begins, self.keep, at)?;
                out.parts.push(part);
            }
            return Some(out);
        }
        let (mut responses, mut many) = (false, 0);
        it.list(|it| {
            many += 1;
            let (mut part, mut thought, mut signature) = (None, None, None);
            it.object(|it, name| match name {
                "text" => {
                    once(&mut part, said(it.text(&mut self.room)?, user, &mut out.begins, self.keep, at)?)
                }
                "functionResponse" if user => {
                    responses = true;
                    once(&mut part, self.response(it, None, at)?)
                }
                "functionCall" if !user => once(&mut part, self.called(it, at)?),
                "thought" if !user => once(&mut thought, it.bool()?),
                "thoughtSignature" if !user => {
                    let text = it.text(&mut self.room)?;
                    once(&mut signature, (hold(text, self.keep, at), text == NO_SIGNATURE))
                }
                _ => None,
            })?;
            let mut part = part?;
            match thought {
                None => {}
                Some(true) => {
                    out.thoughts = true;
                    return Some(());
                }
                Some(false) => return None,
            }
            let signed = signature.is_some();
            if let Some((signature, none)) = signature {
                part.len += SIGNED.len() as u64 + signature.weight().json();
                if let (Part::Call(call), false) = (&mut part.part, none) {
                    call.signature = Some(Box::new(signature));
                }
            }
            if let Part::Call(_) = part.part {
                out.call = out.call.or(Some((out.parts.len(), signed)));
            }
            out.parts.push(part);
            Some(())
        })?;
        out.filled = many > 0;
        // Texts beside responses are looked at in two ways, which is for the other reader.
        let mixed = responses && out.parts.iter().any(|it| matches!(it.part, Part::Text(_)));
        (!mixed).then_some(out)
    }

    /// A function call as it is sent.
    fn called(&mut self, it: &mut Cursor<'_>, at: u64) -> Option<Piece> {
        let (mut id, mut tool, mut input) = (None, None, None);
        it.object(|it, name| match name {
            "id" => once(&mut id, self.id(it)?),
            "name" => once(&mut tool, self.name(it)?),
            "args" => once(&mut input, self.arguments(it, at)?),
            _ => None,
        })?;
        Some(call(id?, tool?, input?))
    }

    /// A call as the record notes it; its results go to `results`.
    fn call(&mut self, results: &mut Vec<Piece>, it: &mut Cursor<'_>, at: u64) -> Option<Piece> {
        let (mut id, mut tool, mut input, mut answered) = (None, None, None, None);
        let (before, mut cancelled) = (results.len(), None);
        it.object(|it, name| match name {
            "id" => once(&mut id, self.id(it)?),
            "name" => once(&mut tool, self.name(it)?),
            "args" => once(&mut input, self.arguments(it, at)?),
            "result" => {
                // The call it answers is named before it.
                once(&mut answered, ())?;
                let id: &Arc<str> = id.as_ref()?;
                match it.peek()? {
                    b'n' => it.some(|_| None).map(|_: Option<()>| ()),
                    b'[' => it.list(|it| {
                        let mut part = None;
                        it.object(|it, name| match name {
                            "text" => {
                                let text = it.text(&mut self.room)?;
                                once(&mut part, said(text, false, &mut String::new(), self.keep, at)?)
                            }
                            "functionResponse" => once(&mut part, self.response(it, Some(id), at)?),
                            _ => None,
                        })?;
                        results.push(part?);
                        Some(())
                    }),
                    _ => None,
                }
            }
            "status" => once(&mut cancelled, it.text(&mut self.room)? == "cancelled"),
            _ => it.pass(),
        })?;
        if cancelled == Some(true) {
            mark_refused(&mut results[before..]);
        }
        Some(call(id?, tool?, input?))
    }

    /// Arguments that are sent as they stand.
    fn arguments(&mut self, it: &mut Cursor<'_>, at: u64) -> Option<Text> {
        let (raw, tight) = it.value_tight()?;
        (tight && is_as_written(raw)).then(|| hold(raw, self.keep, at))
    }

    /// A function response whose text is an output or an error, to the call named, if one is known.
    fn response(&mut self, it: &mut Cursor<'_>, call: Option<&Arc<str>>, at: u64) -> Option<Piece> {
        let (mut id, mut tool, mut text) = (None, None, None);
        it.object(|it, name| match name {
            "id" => {
                let found = it.text(&mut self.room)?;
                let same = call.filter(|it| ***it == *found).cloned();
                (!found.is_empty()).then(|| once(&mut id, same.unwrap_or_else(|| found.into())))?
            }
            "name" => once(&mut tool, self.name(it)?),
            "response" => it.object(|it, name| {
                let failed = match name {
                    "output" => false,
                    "error" => true,
                    _ => return None,
                };
                let found = it.text(&mut self.room)?;
                let cleared = self.masked.find(found.as_bytes()).is_some() || is_cleared(found);
                once(&mut text, (hold(found, self.keep, at), failed, cleared))
            }),
            _ => None,
        })?;
        let (id, name, (text, failed, cleared)) = (id?, tool?, text?);
        let frame = if failed {
            r#"{"functionResponse":{"id":,"name":,"response":{"error":}}}"#
        } else {
            r#"{"functionResponse":{"id":,"name":,"response":{"output":}}}"#
        };
        let len = frame.len() as u64 + quoted(&id) + quoted(&name) + text.weight().json();
        let part = Part::Output(Output {
            id,
            name: Some(name),
            failed,
            cleared,
            text,
            media: [].into(),
            exit: None,
            refusal: None,
        });
        Some(Piece { part, len, blank: false, raw: None })
    }

    fn id(&mut self, it: &mut Cursor<'_>) -> Option<Arc<str>> {
        let id = it.text(&mut self.room)?;
        (!id.is_empty()).then(|| self.ids.of(id))
    }

    fn name(&mut self, it: &mut Cursor<'_>) -> Option<Arc<str>> {
        it.text(&mut self.room).map(|it| self.names.of(it))
    }
}

fn call(id: Arc<str>, name: Arc<str>, input: Text) -> Piece {
    let frame = r#"{"functionCall":{"id":,"name":,"args":}}"#.len() as u64;
    let len = frame + quoted(&id) + quoted(&name) + input.weight().utf16;
    let part = Part::Call(Call { id, name, input, freeform: false, signature: None });
    Piece { part, len, blank: false, raw: None }
}

/// A text part. Of the user's, it is remembered how they begin; what the client puts there is left to the other reader.
fn said(text: &str, user: bool, begins: &mut String, keep: Option<&Keep>, at: u64) -> Option<Piece> {
    /// More than what is told from a beginning.
    const BEGINNING: usize = 32;
    if user {
        if begins.len() < BEGINNING {
            let rest = if begins.is_empty() { text.trim_start() } else { text };
            begins.extend(rest.chars().take(BEGINNING));
        }
        if begins.starts_with(CONTEXT) || memmem::find(text.as_bytes(), SNAPSHOT_TAG.as_bytes()).is_some() {
            return None;
        }
    }
    let blank = text.trim_start().is_empty();
    let text = hold(text, keep, at);
    let len = r#"{"text":}"#.len() as u64 + text.weight().json();
    Some(Piece { part: Part::Text(text), len, blank, raw: None })
}

fn hold(text: &str, keep: Option<&Keep>, at: u64) -> Text {
    keep.and_then(|it| it(text, at)).unwrap_or_else(|| text.into())
}

/// UTF-16 length as a JSON string.
fn quoted(text: &str) -> u64 {
    TextSize::of(text).json()
}

/// Fills what may come only once.
fn once<T>(field: &mut Option<T>, with: T) -> Option<()> {
    field.replace(with).is_none().then_some(())
}

/// Whether JSON without white space would be written as it stands: no name comes twice, no number has another form, and
/// nothing is escaped that need not be.
fn is_as_written(json: &str) -> bool {
    let escapes = |it: &[u8; 2]| memmem::find(json.as_bytes(), it).is_none();
    escapes(b"\\u") && escapes(b"\\/") && Cursor::whole(json.as_bytes(), |it| as_written(it, 0)).is_some()
}

fn as_written(it: &mut Cursor<'_>, depth: usize) -> Option<()> {
    /// What the other reader takes at least.
    const DEEPEST: usize = 64;
    if depth == DEEPEST {
        return None;
    }
    match it.peek()? {
        b'{' => {
            let mut names: Vec<String> = Vec::new();
            it.object(|it, name| {
                // Many names are for who looks them up.
                let new = names.len() < 32 && names.iter().all(|it| it != name);
                names.push(name.to_owned());
                new.then(|| as_written(it, depth + 1))?
            })
        }
        b'[' => it.list(|it| as_written(it, depth + 1)),
        b'"' | b't' | b'f' | b'n' => it.pass(),
        _ => {
            let number = it.value()?;
            let digits = number.strip_prefix('-').filter(|it| !it.starts_with('0')).unwrap_or(number);
            (digits.len() < 16 && digits.bytes().all(|it| it.is_ascii_digit())).then_some(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{self, Wanted};
    use super::*;

    /// As both readers read it; the second whether the first does too.
    fn both(json: &str) -> (Option<JournalItem>, Option<JournalItem>) {
        let at = 7..7 + json.len() as u64;
        let fast = Fast::new(None).look(json.as_bytes(), at.clone());
        let mended = history::json::mend(json.as_bytes());
        (fast, record::look(&mended, at, Wanted { keep: None, raw: false }).ok())
    }

    fn model(rest: &str) -> String {
        format!(
            r#"{{"id":"m","timestamp":"2026-11-20T09:15:35.675Z","type":"gemini","model":"gemini-3-pro",{rest}}}"#
        )
    }

    fn user(content: &str) -> String {
        format!(r#"{{"id":"u","timestamp":"2026-11-20T09:15:35.675Z","type":"user","content":{content}}}"#)
    }

    fn tool(rest: &str) -> String {
        model(&format!(
            r#""content":"Reads.","thoughts":[],"toolCalls":[{{"id":"c1","name":"read_file",{rest}}}]"#
        ))
    }

    const ANSWER: &str = r#"{"functionResponse":{"id":"c1","name":"read_file","response":{"output":"1\t\u001b[1mé😀\ud83d\ude00\n"}}}"#;

    #[test]
    fn reads_what_the_other_reader_reads() {
        let whole = r#"[{"text":"Hm.","thought":true},{"functionCall":{"name":"a","args":{},"id":"x"}},{"functionCall":{"id":"y","name":"b","args":{"k":1}},"thoughtSignature":"c2ln\u0061"}]"#;
        for json in [
            user(r#"[{"text":"Do it.\n"},{"text":" Now \"please\""}]"#),
            user(r#""Do it.""#),
            user(r#""""#),
            user("[]"),
            user(r#"[{"text":" \t "}]"#),
            user(r#"[{"text":"  /compress"}]"#),
            user(r#"[{"text":" "},{"text":"<hook_context>x"}]"#),
            user(&format!(
                r#"[{ANSWER},{{"functionResponse":{{"id":"c2","name":"x","response":{{"error":"no"}}}}}}]"#
            )),
            format!(
                r#"{{"displayContent":[{{"text":1.50}}],"id":"","type":"user","content":[{{"text":"{}é"}}]}}"#,
                "x".repeat(40)
            ),
            model(
                r#""content":"Yes.","thoughts":[{"subject":"a","description":"b"}],"tokens":{"input":10,"output":2,"cached":4,"thoughts":1,"tool":3,"total":16,"new":null}"#,
            ),
            model(r#""content":"","thoughts":[{"subject":"a"}]"#),
            model(r#""content":"""#),
            model(r#""content":[{"text":"a"},{"text":""}],"thoughts":[],"toolCalls":[]"#),
            model(&format!(r#""content":{whole},"thoughts":[{{"subject":"a"}}]"#)),
            model(
                r#""content":[{"functionCall":{"id":"x","name":"a","args":{}},"thoughtSignature":"skip_thought_signature_validator"}],"tokens":{"total":0}"#,
            ),
            model(&format!(
                r#""content":{whole},"toolCalls":[{{"id":"x","name":"a","args":{{}},"result":[{ANSWER},{{"text":"more"}}]}}]"#
            )),
            model(&format!(
                r#""content":"a","thoughts":[{{"subject":"b"}}],"toolCalls":[{{"id":"x","name":"a","args":{{"k":[-1,"\"",null]}},"result":[{ANSWER}],"status":"success","resultDisplay":{{"fileDiff":"\ud83d"}}}},{{"id":"y","name":"b","args":{{}}}}]"#
            )),
            tool(&format!(r#""args":{{"file_path":"a\nb","offset":120}},"result":[{ANSWER}]"#)),
            tool(r#""args":{},"result":null"#),
            tool(
                r#""args":{},"result":[{"functionResponse":{"id":"other","name":"read_file","response":{"output":"<tool_output_masked>\nx"}}}]"#,
            ),
        ] {
            let (fast, other) = both(&json);
            assert!(fast.is_some(), "{json}");
            assert_eq!(fast, other, "{json}");
        }
    }

    #[test]
    fn leaves_the_rest_to_the_other_reader() {
        let lone = r#"{"text":"\ud83d"}"#;
        for json in [
            r#"{"type":"user","content":"no id"}"#.to_owned(),
            r#"{"id":"i","content":"before its type","type":"user"}"#.to_owned(),
            r#"{"id":"i","type":"info","content":"x"}"#.to_owned(),
            r#"{"id":"i","type":"user","content":"x","$rewindTo":"j"}"#.to_owned(),
            r#"{"id":"i","type":"user","content":"x","epitome":"context"}"#.to_owned(),
            r#"{"id":"i","id":"j","type":"user","content":"x"}"#.to_owned(),
            user(&format!("[{lone}]")),
            user(r#"[{"text":"<session_context>x"}]"#),
            user(r#"[{"text":"<session_"},{"text":"context>"}]"#),
            user(r#"[{"text":"<state_snapshot>x</state_snapshot>"}]"#),
            user(r#"[{"inlineData":{"mimeType":"image/png","data":"AA"}}]"#),
            user(r#"["plain"]"#),
            user(r#"{"text":"single"}"#),
            user("null"),
            user(&format!(r#"[{ANSWER},{{"text":"beside"}}]"#)),
            user(r#"[{"text":"a","thought":false}]"#),
            model(r#""content":"a","thoughts":null"#),
            model(r#""content":"a","thoughts":[ ]"#),
            model(r#""content":"a","tokens":{"input":1.5}"#),
            tool(r#""args":{"a": 1}"#),
            tool(r#""args":{"a":1,"a":2}"#),
            tool(r#""args":{"a":1.0}"#),
            tool(r#""args":{"a":-0}"#),
            tool(r#""args":{"a":"\u00e9"}"#),
            tool(r#""args":{"a":"\/"}"#),
            tool(&format!(r#""args":{}1{}"#, "[".repeat(200), "]".repeat(200))),
            tool(r#""args":{},"result":"text""#),
            tool(r#""result":[]"#),
            tool(
                r#""args":{},"result":[{"functionResponse":{"id":"c1","name":"x","response":{"output":{}}}}]"#,
            ),
            tool(r#""args":{},"result":[{"functionResponse":{"name":"x","response":{"output":""}}}]"#),
            tool(
                r#""args":{},"result":[{"functionResponse":{"id":"c1","name":"x","response":{"output":"","a":1}}}]"#,
            ),
        ] {
            assert_eq!(both(&json).0, None, "{json}");
        }
    }

    /// Every record of the corpus, also those that stand in a `$set`.
    #[test]
    fn reads_real_records_as_the_other_reader_does() {
        use crate::raw::Fields;
        let (mut read, mut all) = (0, 0);
        for (name, bytes) in crate::tests::sessions() {
            let text = history::json::mend(&bytes);
            for line in text.lines() {
                let Some(fields) = Fields::of(line) else { continue };
                let set = fields.object("$set").and_then(|it| it.list("messages")).unwrap_or_default();
                for json in std::iter::once(line).chain(set) {
                    let (fast, other) = both(json);
                    (read, all) = (read + usize::from(fast.is_some()), all + 1);
                    assert!(fast.is_none() || fast == other, "{name}: {json}");
                }
            }
        }
        println!("{read} of {all} records read at once");
    }
}
