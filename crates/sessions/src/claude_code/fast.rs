//! The rows that make up nearly all of a transcript, read in one pass. Whatever is not exactly as expected here is left
//! to the reader that takes everything; where both read a row, they read the same.

use std::borrow::Cow;

use memchr::memmem;

use super::blocks::is_clients;
use super::row::{RowKind, RowPlace};
use super::usage::Reported;
use crate::cursor::{Cursor, Recent, Room, Seen};
use crate::wire::scan::compacted;
use crate::{derive, is_cleared, refusal};
use history::{Call, Kind, Output, Part, Reasoning, Text};

pub(super) struct Fast<'a> {
    pub(super) place: RowPlace<'a>,
    pub(super) said: Said<'a>,
}

/// What a row says.
#[derive(Default)]
pub(super) struct Said<'a> {
    pub(super) parts: Vec<Part>,
    /// Whether a text of it is the user's own.
    own: bool,
    /// Whether a block of it is a tool's result.
    result: bool,
    /// `message.id`.
    id: Option<Cow<'a, str>>,
    pub(super) model: Option<Cow<'a, str>>,
    pub(super) usage: Option<Reported>,
}

impl Said<'_> {
    /// Whose words they are.
    pub(super) fn kind(&self) -> Kind {
        if self.own { Kind::Said } else { Kind::Context }
    }
}

pub(super) struct Reader<'k> {
    /// What becomes of texts; without it, only the place of rows is read.
    pub(super) keep: Option<&'k dyn Fn(&str) -> Text>,
    pub(super) held: &'k mut Held,
}

/// Room for a text that stands escaped, for one that is put together of several, and for the parts of a row; names of
/// tools and ids of calls, which their outputs name too.
#[derive(Default)]
pub(super) struct Held {
    text: Room,
    joined: String,
    parts: Vec<Part>,
    names: Recent,
    ids: Recent,
}

impl Reader<'_> {
    /// Reads a row of the user's or the model's, if there is nothing unusual in it.
    pub(super) fn look<'a>(&mut self, record: &'a [u8]) -> Option<Fast<'a>> {
        let (mut kind, mut uuid, mut said, mut seen) = (None, None, None, Seen::default());
        let (mut meta, mut summary) = (None, None);
        let mut place = RowPlace::default();
        Cursor::whole(record, |it| {
            it.object(|it, name| {
                match name {
                    "type" => kind = Some(seen.once(0, it.string())?),
                    "uuid" => uuid = Some(seen.once(1, it.string())?),
                    "parentUuid" => place.parent = seen.once(2, it.some(Cursor::string))?,
                    "sourceToolAssistantUUID" => place.answers = seen.once(3, it.some(Cursor::string))?,
                    "isSidechain" => place.sidechain = seen.once(4, it.some(Cursor::bool))? == Some(true),
                    "isMeta" => meta = seen.once(5, it.some(Cursor::bool))?,
                    "isCompactSummary" => summary = seen.once(6, it.some(Cursor::bool))?,
                    "timestamp" => {
                        let time = seen.once(7, it.some(Cursor::string))?;
                        place.at = time.and_then(|it| derive::parse_time(&it));
                    }
                    "sessionId" => place.session = seen.once(8, it.some(Cursor::string))?,
                    "cwd" => place.cwd = seen.once(9, it.some(Cursor::string))?,
                    "message" => said = Some(seen.once(10, self.message(it))?),
                    "isApiErrorMessage" if seen.once(11, it.some(Cursor::bool))? == Some(true) => {
                        return None;
                    }
                    "isApiErrorMessage" => {}
                    "subtype" => seen.once(12, it.pass())?,
                    "leafUuid" => seen.once(13, it.pass())?,
                    "compactMetadata" => return None,
                    _ => it.pass()?,
                }
                Some(())
            })
        })?;
        let mut said = said?;
        place.uuid = uuid?;
        place.response = said.id.take();
        place.kind = match &*kind? {
            "assistant" => RowKind::Assistant { api_error: false },
            // It may also stand elsewhere, which the other reader takes for a sign of one.
            "user" if !said.result && memmem::find(record, b"\"tool_result\"").is_some() => {
                return None;
            }
            "user" => {
                let (meta, summary) = (meta == Some(true), summary == Some(true));
                RowKind::User { meta, summary, result: said.result }
            }
            _ => return None,
        };
        Some(Fast { place, said })
    }

    fn message<'a>(&mut self, it: &mut Cursor<'a>) -> Option<Said<'a>> {
        let (mut said, mut seen) = (Said::default(), Seen::default());
        self.held.parts.clear();
        it.object(|it, name| {
            match name {
                "id" => said.id = seen.once(0, it.some(Cursor::string))?,
                "model" => said.model = seen.once(1, it.some(Cursor::string))?,
                "usage" => said.usage = seen.once(2, it.some(Reported::of))?,
                "content" => seen.once(3, self.content(it, &mut said))?,
                _ => it.pass()?,
            }
            Some(())
        })?;
        // No more room than they take.
        said.parts = self.held.parts.drain(..).collect();
        seen.has(3).then_some(said)
    }

    fn content(&mut self, it: &mut Cursor<'_>, said: &mut Said<'_>) -> Option<()> {
        if it.peek()? != b'"' {
            return it.list(|it| self.block(it, said));
        }
        let Some(keep) = self.keep else { return it.pass() };
        let text = it.text(&mut self.held.text)?;
        if !text.trim().is_empty() {
            said.own |= !is_clients(text);
            let part = Part::Text(keep(text));
            self.held.parts.push(part);
        }
        Some(())
    }

    /// A block; one that is not sent becomes nothing.
    fn block(&mut self, it: &mut Cursor<'_>, said: &mut Said<'_>) -> Option<()> {
        let (mut kind, mut own, mut seen) = (None, false, Seen::default());
        let (mut text, mut thinking, mut signature) = (None, None, None);
        let (mut id, mut name, mut input) = (None, None, None);
        let (mut call, mut content, mut failed) = (None, None, None);
        it.object(|it, key| {
            match key {
                "type" => kind = Some(seen.once(0, it.string())?),
                "text" => {
                    let mut look = |text: &str| own = !text.is_empty() && !is_clients(text);
                    text = seen.once(1, it.some(|it| self.text(it, &mut look)))?;
                }
                "thinking" => thinking = seen.once(2, it.some(|it| self.text(it, &mut |_| {})))?,
                "signature" => signature = seen.once(3, it.some(|it| self.text(it, &mut |_| {})))?,
                "id" => id = seen.once(4, it.some(Cursor::string))?,
                "name" => name = seen.once(5, it.some(Cursor::string))?,
                "input" => input = seen.once(6, it.some(|it| self.input(it)))?,
                "tool_use_id" => call = seen.once(7, it.some(Cursor::string))?,
                "content" => content = seen.once(8, it.some(|it| self.result(it)))?,
                "is_error" => failed = seen.once(9, it.some(Cursor::bool))?,
                _ => it.pass()?,
            }
            Some(())
        })?;
        let owned =
            |it: Option<Cow<'_, str>>, known: &mut Recent| known.of(it.as_deref().unwrap_or_default());
        let part = match &*kind? {
            "text" => {
                said.own |= own;
                text.filter(|it: &Text| !it.is_empty()).map(Part::Text)
            }
            "thinking" => {
                let signature = signature.filter(|it: &Text| !it.is_empty()).map(Box::new);
                Some(Part::Reasoning(Reasoning { text: thinking.unwrap_or_default(), signature }))
            }
            "tool_use" => {
                let input = input.unwrap_or_else(|| "{}".into());
                let (id, name) = (owned(id, &mut self.held.ids), owned(name, &mut self.held.names));
                Some(Part::Call(Call { id, name, input, freeform: false, signature: None }))
            }
            "tool_result" => {
                said.result = true;
                let (text, cleared) = content.unwrap_or_default();
                let failed = failed == Some(true);
                Some(Part::Output(Output {
                    id: owned(call, &mut self.held.ids),
                    name: None,
                    text,
                    media: [].into(),
                    failed,
                    cleared,
                    exit: None,
                    refusal: None,
                }))
            }
            _ => return None,
        };
        self.held.parts.extend(part.filter(|_| self.keep.is_some()));
        Some(())
    }

    /// A text, looked at before it is kept.
    fn text(&mut self, it: &mut Cursor<'_>, look: &mut dyn FnMut(&str)) -> Option<Text> {
        let Some(keep) = self.keep else { return it.pass().map(|()| Text::default()) };
        let text = it.text(&mut self.held.text)?;
        look(text);
        Some(keep(text))
    }

    /// Arguments. They are copied as they stand: nothing in them may have to be mended.
    fn input(&mut self, it: &mut Cursor<'_>) -> Option<Text> {
        let (raw, tight) = it.value_tight()?;
        let Some(keep) = self.keep else { return Some(Text::default()) };
        if memmem::find(raw.as_bytes(), b"\\u").is_some() {
            return None;
        }
        Some(if tight { keep(raw) } else { keep(&compacted(raw)) })
    }

    /// What a tool answered, if it is text alone, and whether that was cleared.
    fn result(&mut self, it: &mut Cursor<'_>) -> Option<(Text, bool)> {
        let Some(keep) = self.keep else { return it.pass().map(|()| Default::default()) };
        let Held { text, joined, .. } = &mut *self.held;
        // What may be a refusal is told by other fields of the row.
        let of = |text: &str| {
            let usual = !refusal::CLAUDE_CODE.iter().any(|it| text.starts_with(it));
            usual.then(|| (keep(text), is_cleared(text)))
        };
        if it.peek()? == b'"' {
            return it.text(text).and_then(of);
        }
        joined.clear();
        it.list(|it| {
            let (mut kind, mut seen) = (None, Seen::default());
            it.object(|it, key| {
                match key {
                    "type" => kind = Some(seen.once(0, it.string())?),
                    "text" => {
                        if let Some(text) =
                            seen.once(1, it.some(|it| it.text(text)))?.filter(|it| !it.is_empty())
                        {
                            joined.push_str(if joined.is_empty() { "" } else { "\n" });
                            joined.push_str(text);
                        }
                    }
                    _ => it.pass()?,
                }
                Some(())
            })?;
            (kind? == "text").then_some(())
        })?;
        of(joined)
    }
}
