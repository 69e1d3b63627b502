//! The parts of a content: texts, calls, responses, attachments, and opaque ones. Each has the length of its
//! compact JSON in UTF-16 units.

use std::borrow::Cow;

use memchr::memmem;
use serde_json::{Value, json};

use crate::parse::cursor::Cursor;
use crate::parse::raw::Fields;
use crate::parse::texts::{Scratch, Texts};
use crate::{Keep, is_cleared};
use history::{Call, Media, MediaKind, Opaque, Output, Part, Text, TextSize};

/// The signature that the client gives to a call without one (Gemini CLI 0.61).
pub(super) const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The API that the opaque parts belong to.
pub(super) const API: &str = "gemini";

/// Marks an output that the client cleared.
const MASKED: &str = "<tool_output_masked";

/// Fields of parts that the client renders as a name in brackets, ignoring any text beside them.
const NAMED: [&str; 8] = [
    "videoMetadata",
    "thought",
    "codeExecutionResult",
    "executableCode",
    "fileData",
    "functionCall",
    "functionResponse",
    "inlineData",
];

/// A part of a message.
#[derive(Debug)]
pub(super) struct ReadPart {
    pub(super) part: Part,
    /// UTF-16 length of its compact JSON, as sent.
    pub(super) len: u64,
    /// Whether the client sends nothing if all parts are like this one.
    pub(super) blank: bool,
    pub(super) is_thought: bool,
    /// Whether it has a signature.
    pub(super) is_signed: bool,
    /// Its JSON, as sent, if a writer requested it.
    pub(super) raw: Option<Box<Value>>,
}

#[derive(Default)]
struct PartFields<'a> {
    text: Option<Text>,
    call: Option<Call>,
    output: Option<Output>,
    media: [Option<Media>; 2],
    is_thought: bool,
    signature: Option<Cow<'a, str>>,
    is_signed: bool,
    /// Whether the client renders it as a name.
    is_named: bool,
    /// Where its rendering begins in `shown`.
    from: usize,
}

/// What to read of a record.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// Replaces texts.
    pub(super) keep: &'a Keep<'a>,
    /// Whether to keep the JSON of each part.
    pub(super) raw: bool,
}

/// Reads one record after another, reusing its buffers.
pub(super) struct RecordReader<'a> {
    pub(super) texts: Texts<'a>,
    pub(super) scratch: Scratch,
    /// Whether the JSON of each part is kept.
    pub(super) raw: bool,
    /// The current content as the client renders it for itself: texts, and a name in brackets for any other
    /// part.
    pub(super) shown: String,
}

impl<'w> RecordReader<'w> {
    pub(super) fn new(wanted: Wanted<'w>) -> Self {
        let texts = Texts { keep: Some(wanted.keep), at: 0 };
        Self { texts, scratch: Scratch::default(), raw: wanted.raw, shown: String::new() }
    }

    pub(super) fn parts(&mut self, it: &mut Cursor<'_>) -> Option<Vec<ReadPart>> {
        let mut parts = Vec::new();
        match it.peek()? {
            b'n' => it.pass()?,
            b'[' => it.list(|it| {
                parts.push(self.part(it)?);
                Some(())
            })?,
            _ => parts.push(self.part(it)?),
        }
        Some(parts)
    }

    fn part(&mut self, it: &mut Cursor<'_>) -> Option<ReadPart> {
        let from = self.shown.len();
        let (mut found, start) = (PartFields { from, ..PartFields::default() }, it.place());
        let len = match it.peek()? {
            b'"' => braced("text", self.text(&mut found.text, it)?),
            b'{' => size(it, |it, name| self.part_field(&mut found, it, name))?.max(2),
            _ => passed(it)?,
        };
        if found.is_named {
            self.shown.truncate(from);
            self.shown.push_str("[part]");
        }
        let json = || it.at(start).compact();
        let media = || found.media.into_iter().flatten().next();
        let part = if let Some(call) = found.call {
            let signature = found.signature.filter(|it| it != NO_SIGNATURE);
            let signature = signature.map(|it| Box::new(self.texts.of(&it)));
            Part::Call(Call { signature, ..call })
        } else if let Some(output) = found.output {
            Part::Output(output)
        } else if let Some(text) = found.text {
            Part::Text(text)
        } else if let Some(media) = media() {
            Part::Media(media)
        } else {
            let json = json()?;
            let kind = Fields::of(&json).and_then(|it| Some(it.iter().next()?.0.into())).unwrap_or_default();
            Part::Opaque(Opaque { api: API.into(), kind, raw: self.texts.of(&json) })
        };
        let raw = if self.raw { serde_json::from_str(&json()?).ok() } else { None };
        Some(ReadPart {
            part,
            len,
            blank: self.shown[from..].trim().is_empty(),
            is_thought: found.is_thought,
            is_signed: found.is_signed,
            raw: raw.map(|it: Value| Box::new(if it.is_string() { json!({ "text": it }) } else { it })),
        })
    }

    /// Reads a field of a part; returns its length.
    fn part_field<'a>(&mut self, found: &mut PartFields<'a>, it: &mut Cursor<'a>, name: &str) -> Option<u64> {
        found.is_named |= NAMED.contains(&name);
        match name {
            "text" => {
                self.shown.truncate(found.from);
                self.text(&mut found.text, it)
            }
            "functionCall" => sized(&mut found.call, it, b'{', |it| self.call(it, |_, it, _| passed(it))),
            "functionResponse" => sized(&mut found.output, it, b'{', |it| self.response(it)),
            "inlineData" => media(&mut found.media[0], it, "data"),
            "fileData" => media(&mut found.media[1], it, "fileUri"),
            "thought" => {
                found.is_thought = !matches!(it.peek()?, b'f' | b'n');
                passed(it)
            }
            "thoughtSignature" => {
                found.is_signed = true;
                string(&mut found.signature, it)
            }
            _ => passed(it),
        }
    }

    /// Reads a text, and appends it to `shown`.
    fn text(&mut self, text: &mut Option<Text>, it: &mut Cursor<'_>) -> Option<u64> {
        sized(text, it, b'"', |it| {
            let found = it.text(&mut self.scratch.buffer)?;
            self.shown.push_str(found);
            let text = self.texts.of(found);
            let len = text.size().json();
            Some((text, len))
        })
    }

    /// A function call and its length. `beside` reads the other fields and returns their lengths, 0 if not
    /// sent.
    pub(super) fn call(
        &mut self,
        it: &mut Cursor<'_>,
        mut beside: impl FnMut(&mut Self, &mut Cursor<'_>, &str) -> Option<u64>,
    ) -> Option<(Call, u64)> {
        let (mut id, mut name, mut input) = (None, None, None);
        let len = size(it, |it, key| match key {
            "id" => nonempty_id(&mut id, it),
            "name" => string(&mut name, it),
            "args" => {
                let args = self.texts.of(&it.compact()?);
                let len = args.size().utf16;
                input = Some(args);
                Some(len)
            }
            _ => beside(self, it, key),
        })?;
        let call = Call {
            id: self.scratch.ids.of(&id.unwrap_or_default()),
            name: self.scratch.names.of(&name.unwrap_or_default()),
            input: input.unwrap_or_else(|| self.texts.of("{}")),
            freeform: false,
            signature: None,
        };
        Some((call, len))
    }

    fn response(&mut self, it: &mut Cursor<'_>) -> Option<(Output, u64)> {
        let (mut id, mut name, mut body, mut attached) = (None, None, None, Vec::new());
        let len = size(it, |it, key| match key {
            "id" => nonempty_id(&mut id, it),
            "name" => string(&mut name, it),
            "response" => {
                let (output, len) = self.response_body(it)?;
                body = Some(output);
                Some(len)
            }
            "parts" => {
                let start = it.place();
                attached.clear();
                it.optional(b'[', |it| {
                    it.list(|it| {
                        let mut found = [None, None];
                        it.optional(b'{', |it| {
                            size(it, |it, name| match name {
                                "inlineData" => media(&mut found[0], it, "data"),
                                "fileData" => media(&mut found[1], it, "fileUri"),
                                _ => passed(it),
                            })
                        })?;
                        attached.extend(found.into_iter().flatten().next());
                        Some(())
                    })
                })?;
                passed(&mut it.at(start))
            }
            _ => passed(it),
        })?;
        let body = body.unwrap_or_else(|| output("", Text::default()));
        let (id, name) =
            (self.scratch.ids.of(&id.unwrap_or_default()), name.map(|it| self.scratch.names.of(&it)));
        Some((Output { id, name, media: attached.into(), ..body }, len))
    }

    /// The response of a function as text: its `output` or `error`, or all of it.
    fn response_body(&mut self, it: &mut Cursor<'_>) -> Option<(Output, u64)> {
        let start = it.place();
        let (mut body, mut has_output, mut has_error) = ([None, None], false, false);
        let [output_text, error_text] = &mut body;
        let len = match it.peek()? {
            b'{' => size(it, |it, name| match name {
                "output" => {
                    has_output = true;
                    sized(output_text, it, b'"', |it| self.answer(it))
                }
                "error" => {
                    has_error = true;
                    sized(error_text, it, b'"', |it| self.answer(it))
                }
                _ => passed(it),
            })?
            .max(2),
            b'"' => return self.answer(it),
            _ => passed(it)?,
        };
        let body = match body.into_iter().flatten().next() {
            Some(body) => body,
            None => {
                let json = it.at(start).compact()?;
                output(&json, self.texts.of(&json))
            }
        };
        Some((Output { failed: has_error && !has_output, ..body }, len))
    }

    pub(super) fn answer(&mut self, it: &mut Cursor<'_>) -> Option<(Output, u64)> {
        let text = it.text(&mut self.scratch.buffer)?;
        let output = output(text, self.texts.of(text));
        let len = output.text.size().json();
        Some((output, len))
    }
}

pub(super) fn piece(part: Part, len: u64, raw: Option<Value>) -> ReadPart {
    ReadPart { part, len, blank: false, is_thought: false, is_signed: false, raw: raw.map(Box::new) }
}

/// `read`: the text of the output before `keep` replaced it. The caller sets the id.
fn output(read: &str, text: Text) -> Output {
    let cleared = memmem::find(read.as_bytes(), MASKED.as_bytes()).is_some() || is_cleared(read);
    Output { cleared, ..Output::new("", text) }
}

/// An attachment; returns the length of its JSON.
fn media(media: &mut Option<Media>, it: &mut Cursor<'_>, key: &str) -> Option<u64> {
    let (mut mime, mut data) = (None, None);
    *media = None;
    if it.peek()? != b'{' {
        return passed(it);
    }
    let len = size(it, |it, name| match name {
        "mimeType" => string(&mut mime, it),
        _ if name == key => string(&mut data, it),
        _ => passed(it),
    })?
    .max(2);
    let mime = mime.unwrap_or_default();
    *media = data.map(|data| Media {
        kind: MediaKind::of_mime(&mime),
        mime: (&*mime).into(),
        data: (&*data).into(),
        size: None,
    });
    Some(len)
}

// These readers return the length of the value as compact JSON, in UTF-16 units.

/// The length of a nonempty object; a field for which `each` returns 0 is not sent.
fn size<'a>(it: &mut Cursor<'a>, mut each: impl FnMut(&mut Cursor<'a>, &str) -> Option<u64>) -> Option<u64> {
    let mut len = 1;
    it.object(|it, name| {
        let value = each(it, name)?;
        len += if value > 0 { quoted(name) + 2 + value } else { 0 };
        Some(())
    })?;
    Some(len)
}

/// Reads a value that begins with `first` by `take`; any other counts as missing.
fn sized<'a, T>(
    into: &mut Option<T>,
    it: &mut Cursor<'a>,
    first: u8,
    take: impl FnOnce(&mut Cursor<'a>) -> Option<(T, u64)>,
) -> Option<u64> {
    *into = None;
    if it.peek()? != first {
        return passed(it);
    }
    let (value, len) = take(it)?;
    *into = Some(value);
    Some(len)
}

fn string<'a>(into: &mut Option<Cow<'a, str>>, it: &mut Cursor<'a>) -> Option<u64> {
    sized(into, it, b'"', |it| {
        let text = it.string()?;
        let len = quoted(&text);
        Some((text, len))
    })
}

/// An id; an empty one counts as missing.
fn nonempty_id<'a>(id: &mut Option<Cow<'a, str>>, it: &mut Cursor<'a>) -> Option<u64> {
    let len = string(id, it)?;
    *id = id.take().filter(|it| !it.is_empty());
    Some(if id.is_some() { len } else { 0 })
}

fn passed(it: &mut Cursor<'_>) -> Option<u64> {
    it.compact().map(|it| TextSize::of(&it).utf16)
}

/// The length of an object with one field.
pub(super) fn braced(name: &str, value: u64) -> u64 {
    3 + quoted(name) + value
}

pub(super) fn id_len(id: &str) -> u64 {
    r#""id":,"#.len() as u64 + quoted(id)
}

pub(super) fn quoted(text: &str) -> u64 {
    TextSize::of(text).json()
}
