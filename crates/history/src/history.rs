//! What a model would be sent next, as a value: messages made of parts, grouped into units that live or die together.
//!
//! Every format is read into this and written from it; everything that decides works on it. A `History` owns its
//! text (cheap to clone, no lifetime), and each text carries its size, counted once.

use std::ops::{Add, AddAssign, Range};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use crate::simd::{self, BLOCK, BLOCKS, Block, Kernel, count};

/// How much text there is, in the units that the systems' own estimates are made of. One pass over the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TextSize {
    /// UTF-8 bytes.
    pub bytes: u64,
    /// Unicode scalar values.
    pub chars: u64,
    /// Of these, the ones below U+0080.
    pub ascii: u64,
    /// UTF-16 code units: JavaScript's `length`.
    pub utf16: u64,
    /// UTF-16 code units that `JSON.stringify` adds by escaping, without the two quotes.
    pub escapes: u64,
}

impl TextSize {
    pub fn of(text: &str) -> Self {
        simd::over::<Weigh<true>>(text.as_bytes())
    }

    /// Weighs a text without `escapes`, which stay 0: at the speed of memory, and all that the estimates of plain text
    /// need.
    pub fn plain(text: &str) -> Self {
        simd::over::<Weigh<false>>(text.as_bytes())
    }

    /// Length in UTF-16 units of the text as a JSON string, quotes included.
    pub fn json(&self) -> u64 {
        self.utf16 + self.escapes + 2
    }
}

/// [`TextSize::of`], or without escapes [`TextSize::plain`].
struct Weigh<const ESCAPES: bool>;

impl<const ESCAPES: bool> Kernel for Weigh<ESCAPES> {
    type Found = TextSize;

    #[inline(always)]
    fn over(bytes: &[u8], _: impl Fn(&Block) -> [u64; 8]) -> TextSize {
        let mut out = TextSize::default();
        let (rows, rest) = bytes.as_chunks();
        // Few rows at a time, so that one foreign character makes few others be looked at twice, and so that what is
        // looked at twice is still in the first-level cache.
        for rows in rows.chunks(BLOCKS) {
            add_rows::<ESCAPES>(&mut out, rows);
        }
        if !rest.is_empty() {
            // Filled up by letters, which are taken off again: each is one byte, one character, one unit, no escape.
            let mut row = [b'x'; BLOCK];
            row[..rest.len()].copy_from_slice(rest);
            add_rows::<ESCAPES>(&mut out, &[row]);
            let filled = (BLOCK - rest.len()) as u64;
            out.bytes -= filled;
            out.chars -= filled;
            out.ascii -= filled;
            out.utf16 -= filled;
        }
        out
    }
}

#[inline(always)]
fn add_rows<const ESCAPES: bool>(out: &mut TextSize, rows: &[Block]) {
    let bytes = rows.as_flattened().len() as u64;
    let usual = |it: u8| (it == b'"') | (it == b'\\') | (it == b'\n') | (it == b'\t');
    let ascii = if ESCAPES {
        let [ascii, escaped, short] = count(rows, |it| [it < 0x80, (it < 0x20) | usual(it), usual(it)]);
        out.escapes += escaped;
        if escaped > short {
            let [long] = count(rows, |it| [(it < 0x20) & ((it.wrapping_sub(8) >= 6) | (it == 0x0B))]);
            out.escapes += 4 * long;
        }
        ascii
    } else {
        let [ascii] = count(rows, |it| [it < 0x80]);
        ascii
    };
    let [chars, two] =
        if ascii == bytes { [bytes, 0] } else { count(rows, |it| [it & 0xC0 != 0x80, it >= 0xF0]) };
    out.bytes += bytes;
    out.ascii += ascii;
    out.chars += chars;
    out.utf16 += chars + two;
}

impl Add for TextSize {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            chars: self.chars + other.chars,
            ascii: self.ascii + other.ascii,
            utf16: self.utf16 + other.utf16,
            escapes: self.escapes + other.escapes,
        }
    }
}

impl AddAssign for TextSize {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// A text and its size. Cloning shares the text.
#[derive(Clone)]
pub struct Text {
    text: Arc<str>,
    figures: Figures,
}

/// What is known of a text in numbers. Histories are made of texts, and walks over them are as fast as few bytes come
/// out of memory: so numbers of 32 bits, and wider ones elsewhere for the few texts that need them.
enum Figures {
    /// The size, and what each measure found.
    Narrow([u32; 5], [AtomicU32; Measure::COUNT]),
    Wide(Box<(TextSize, [AtomicU64; Measure::COUNT])>),
}

/// Up to so many bytes nothing that is said of a text needs more than 32 bits: not the thousandths of its tokens, of
/// which it has no more than bytes, and not its escapes, of which each byte takes five at most.
const NARROW: u64 = 4 << 20;

/// Not measured yet; no measure returns this value.
const UNASKED: u64 = u64::MAX;
const UNASKED_NARROW: u32 = u32::MAX;

impl Figures {
    fn new(weight: TextSize) -> Self {
        let TextSize { bytes, chars, ascii, utf16, escapes } = weight;
        if bytes <= NARROW {
            let weight = [bytes, chars, ascii, utf16, escapes].map(|it| it as u32);
            Self::Narrow(weight, [const { AtomicU32::new(UNASKED_NARROW) }; Measure::COUNT])
        } else {
            Self::wide(weight)
        }
    }

    fn wide(weight: TextSize) -> Self {
        Self::Wide(Box::new((weight, [const { AtomicU64::new(UNASKED) }; Measure::COUNT])))
    }

    #[inline]
    fn weight(&self) -> TextSize {
        match self {
            Self::Narrow(weight, _) => {
                let [bytes, chars, ascii, utf16, escapes] = weight.map(u64::from);
                TextSize { bytes, chars, ascii, utf16, escapes }
            }
            Self::Wide(it) => it.0,
        }
    }

    #[inline]
    fn known(&self, which: Measure) -> Option<u64> {
        match self {
            Self::Narrow(_, found) => match found[which as usize].load(Relaxed) {
                UNASKED_NARROW => None,
                found => Some(found.into()),
            },
            Self::Wide(it) => Some(it.1[which as usize].load(Relaxed)).filter(|it| *it != UNASKED),
        }
    }

    /// Remembers what was found; whether there was room for it.
    fn remember(&self, which: Measure, found: u64) -> bool {
        match self {
            Self::Narrow(_, known) => match u32::try_from(found) {
                Ok(found) if found != UNASKED_NARROW => {
                    known[which as usize].store(found, Relaxed);
                    true
                }
                Ok(_) | Err(_) => false,
            },
            Self::Wide(it) => {
                it.1[which as usize].store(found, Relaxed);
                true
            }
        }
    }
}

impl Clone for Figures {
    fn clone(&self) -> Self {
        match self {
            Self::Narrow(weight, found) => {
                Self::Narrow(*weight, found.each_ref().map(|it| it.load(Relaxed).into()))
            }
            Self::Wide(it) => Self::Wide(Box::new((it.0, it.1.each_ref().map(|it| it.load(Relaxed).into())))),
        }
    }
}

/// What [`Text::measured`] remembers; what each means is the business of `tokens`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Told from the text's shape.
    Shape,
    Exact,
}

impl Measure {
    const COUNT: usize = 2;
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.weight() == other.weight() && self.text == other.text
    }
}

impl Eq for Text {}

impl Text {
    /// Weighs and owns `text`.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let figures = Figures::new(TextSize::of(&text));
        Self { text, figures }
    }

    /// The result of `measure`, cached once per [`Measure`].
    #[inline]
    pub fn measured(&self, which: Measure, measure: impl FnOnce(&str) -> u64) -> u64 {
        self.figures.known(which).unwrap_or_else(|| {
            let found = measure(&self.text);
            self.figures.remember(which, found);
            found
        })
    }

    /// Whether the result of [`Text::measured`] is cached.
    pub fn is_measured(&self, which: Measure) -> bool {
        self.figures.known(which).is_some()
    }

    /// The first words of a long text in its place, or a short one whole, with the weight and shape of the whole. For a
    /// history that is only measured.
    pub fn gist(text: &str, weight: TextSize, shape: u64) -> Self {
        /// Characters that anybody shows of a text.
        const SHOWN: usize = 60;
        let mut figures = Figures::new(weight);
        if !figures.remember(Measure::Shape, shape) {
            figures = Figures::wide(weight);
            figures.remember(Measure::Shape, shape);
        }
        if text.len() <= SHOWN {
            return Self { text: text.into(), figures };
        }
        let (mut out, mut chars) = (String::with_capacity(2 * SHOWN), 0);
        for word in text.split_whitespace() {
            if chars > SHOWN {
                break;
            }
            if chars > 0 {
                out.push(' ');
            }
            let long = word.len() > SHOWN;
            let end = if long { word.char_indices().nth(SHOWN) } else { None };
            let shown = &word[..end.map_or(word.len(), |(at, _)| at)];
            out.push_str(shown);
            chars += shown.chars().count() + 1;
        }
        Self { text: out.into(), figures }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its weight, known since it was made.
    #[inline]
    pub fn weight(&self) -> TextSize {
        self.figures.weight()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether both are the same text in memory or byte for byte.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.text, &other.text) || self == other
    }
}

impl Default for Text {
    fn default() -> Self {
        Self::new("")
    }
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown: String = self.text.chars().take(60).collect();
        write!(f, "Text({} bytes: {shown:?})", self.weight().bytes)
    }
}

impl<T: Into<Arc<str>>> From<T> for Text {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

impl<T: Into<Arc<str>>> From<T> for Box<Text> {
    fn from(text: T) -> Self {
        Self::new(Text::new(text))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// System or developer instructions inside the messages.
    System,
    /// The user, or the client in the user's place.
    User,
    Assistant,
    /// A tool answering, in APIs that have a role for it (results may also stand in user messages).
    Tool,
}

/// How the first line of a summary begins that this crate writes, in every profile.
pub const SUMMARY_START: &str = "Earlier conversation compacted:";

/// Why a message is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Said,
    /// The client put it there: instructions, environment, reminders, hook output. Never the user's words.
    Context,
    /// A summary that replaced earlier messages.
    Summary,
    /// Stands where something was taken out, or asks for the summary that follows.
    Marker,
    /// The acknowledgement some clients put after a summary.
    Ack,
    /// The client's own "go on".
    Continue,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reasoning {
    /// What of it can be read; may be empty.
    pub text: Text,
    /// A signature or the encrypted thought. With one, the part is kept or dropped whole, never edited.
    /// (Boxed, as most parts have none and would hold its room.)
    pub signature: Option<Box<Text>>,
}

/// The id of a call that has none: part `index` of message `number`.
pub fn made_up_id(number: usize, index: usize) -> String {
    format!("call_{number}_{index}")
}

/// Whether an id looks as a reader makes them for calls and results without one: then no API sends it.
pub fn is_made_up(id: &str) -> bool {
    let digits = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    let numbers = ["call_", "response_"].iter().find_map(|it| id.strip_prefix(it)?.split_once('_'));
    numbers.is_some_and(|(number, index)| digits(number) && digits(index))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The API's id, which its result names. Made up by the reader where the format has none.
    pub id: Arc<str>,
    /// The tool's name as the model wrote it.
    pub name: Arc<str>,
    /// The arguments as compact JSON, or free text if `freeform`.
    pub input: Text,
    /// The tool takes text, not JSON (Codex `custom_tool_call`).
    pub freeform: bool,
    /// A signature that travels with the call (Gemini `thoughtSignature`).
    pub signature: Option<Box<Text>>,
}

/// What a tool answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The id of the call it answers.
    pub id: Arc<str>,
    /// The tool's name, where the format repeats it.
    pub name: Option<Arc<str>>,
    /// All its text; several blocks are joined by a line break.
    pub text: Text,
    /// Images and the like that came with it.
    pub media: Box<[Media]>,
    /// The tool, or the user in its place, said no.
    pub failed: bool,
    /// The text already is a placeholder: the agent or we cleared it before.
    pub cleared: bool,
    /// The exit code, where the format records it beside the text.
    pub exit: Option<i32>,
    /// The user refused the call, as the agent itself recorded it.
    pub refusal: Option<Box<Refusal>>,
}

/// A call that the user refused. Only the readers of the agents' formats make one: the text of an output never is one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refusal {
    /// Why, in the user's words, where the agent records that.
    pub reason: Option<Box<str>>,
}

/// A kind of attachment, as far as its price depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MediaKind {
    Image,
    Pdf,
    Audio,
    Other,
}

/// An image, a document, a sound. Kept whole or replaced by a typed stub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    /// What its price depends on.
    pub kind: MediaKind,
    /// MIME type, or empty.
    pub mime: Arc<str>,
    /// Base64 data, or a URL (anything with `:`), as the format had it.
    pub data: Arc<str>,
    /// Width and height in pixels, where they can be read from the data.
    pub size: Option<(u32, u32)>,
}

/// Something only one API understands: encrypted compactions, server tools, unknown blocks. Kept or dropped whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opaque {
    /// Whose it is: a format's name such as `anthropic`.
    pub api: Arc<str>,
    pub kind: Arc<str>,
    /// Compact JSON, verbatim but for white space.
    pub raw: Text,
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Text(Text),
    Reasoning(Reasoning),
    Call(Call),
    Output(Output),
    Media(Media),
    Opaque(Opaque),
}

/// Tokens that the provider reported for the request which produced a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens in, not from a cache.
    pub input: u64,
    /// Tokens out, reasoning included.
    pub output: u64,
    /// Tokens in that came from a cache.
    pub cache_read: u64,
    /// Tokens in that were written to a cache.
    pub cache_write: u64,
    /// Of `cache_write`, what was written to be kept for an hour, where it is told.
    pub cache_write_hour: u64,
    /// Of `output`, the thinking, where it is told.
    pub reasoning: u64,
}

impl Usage {
    /// Tokens that no model takes or answers in one request: twice the largest window there is. A larger figure is no
    /// report.
    pub const MOST: u64 = 20_000_000;

    /// Everything the request was sent: the context just before the message.
    pub fn sent(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// The context just after the message.
    pub fn context(&self) -> u64 {
        self.sent().saturating_add(self.output)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub role: Role,
    /// Why it is there.
    pub kind: Kind,
    /// What it is made of, in order.
    pub parts: Vec<Part>,
    /// Its number in the history as it was read; `None` if we made it. Formats find its records by this.
    pub from: Option<u32>,
    /// The format's own id.
    pub id: Option<Arc<str>>,
    /// Milliseconds since 1970, UTC.
    pub at: Option<i64>,
    /// What the provider reported with it. Where one response is several messages, it stands on the last.
    pub usage: Option<Usage>,
    /// The model that `usage` is of, where the format says it for each response.
    pub model: Option<Arc<str>>,
    /// UTF-16 length of the message as the compact JSON of its own API, where the reader knows it and it is no more than
    /// 32 bits say.
    pub wire_len: Option<u32>,
}

impl Message {
    /// A message of ours, without origin.
    pub fn new(role: Role, kind: Kind, parts: Vec<Part>) -> Self {
        Self { role, kind, parts, from: None, id: None, at: None, usage: None, model: None, wire_len: None }
    }

    /// A text message of ours.
    pub fn text(role: Role, kind: Kind, text: impl Into<Text>) -> Self {
        Self::new(role, kind, vec![Part::Text(text.into())])
    }

    /// Whether a person wrote it: it starts a turn. Tool results, injected context and summaries do not.
    pub fn is_prompt(&self) -> bool {
        self.role == Role::User
            && self.kind == Kind::Said
            && self.parts.iter().any(|it| matches!(it, Part::Text(_) | Part::Media(_)))
    }

    /// The tool calls in it.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.parts.iter().filter_map(|it| if let Part::Call(call) = it { Some(call) } else { None })
    }

    /// The tool outputs in it.
    pub fn outputs(&self) -> impl Iterator<Item = &Output> {
        self.parts.iter().filter_map(|it| if let Part::Output(output) = it { Some(output) } else { None })
    }

    /// Its plain text parts, in order.
    pub fn texts(&self) -> impl Iterator<Item = &Text> {
        self.parts.iter().filter_map(|it| if let Part::Text(text) = it { Some(text) } else { None })
    }

    /// All its plain text, parts joined by a line break.
    pub fn plain(&self) -> String {
        let mut out = String::new();
        for text in self.texts() {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(text.as_str());
        }
        out
    }

    /// Whether it holds thinking or blocks that must stay next to what follows them.
    fn leads_on(&self) -> bool {
        self.role == Role::Assistant
            && !self.parts.is_empty()
            && self.parts.iter().all(|it| matches!(it, Part::Reasoning(_)))
            && self.parts.iter().any(|it| matches!(it, Part::Reasoning(Reasoning { signature: Some(_), .. })))
    }
}

/// What is known of the session besides its messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Meta {
    /// The agent that keeps it (`claude-code`, `codex`, …), or nothing for plain messages.
    pub agent: Option<Arc<str>>,
    /// The agent's id for it.
    pub session: Option<Arc<str>>,
    /// The model that answered last.
    pub model: Option<Arc<str>>,
    pub cwd: Option<Arc<str>>,
    /// The context window in tokens, where the session itself says it.
    pub window: Option<u64>,
    /// System prompt outside the messages, where the input holds it.
    pub system: Option<Text>,
    /// Tool definitions as compact JSON, where the input holds them.
    pub tools: Option<Text>,
    /// The first and last time stamps seen, ms since 1970.
    pub times: Option<(i64, i64)>,
    /// The compaction that made it ran by itself, because the context was full. Writers record it.
    pub automatic: bool,
}

/// What a model would be sent next.
///
/// ```
/// use history::{History, Kind, Message, Meta, Role};
///
/// let prompt = Message::text(Role::User, Kind::Said, "Fix the tests.");
/// let answer = Message::text(Role::Assistant, Kind::Said, "Done.");
/// let history = History::new(vec![prompt, answer], Meta::default());
/// assert_eq!(history.last_prompt(), Some(0));
/// assert!(history.can_cut(1));
/// ```
#[derive(Debug, Clone, Default)]
pub struct History {
    messages: Vec<Message>,
    /// Made when they are first asked for: a history that is only measured needs none.
    units: OnceLock<Vec<Range<usize>>>,
    /// What is known besides.
    pub meta: Meta,
}

impl PartialEq for History {
    fn eq(&self, other: &Self) -> bool {
        let Self { messages, units: _, meta } = self;
        (messages, meta) == (&other.messages, &other.meta)
    }
}

impl Eq for History {}

impl History {
    pub fn new(messages: Vec<Message>, meta: Meta) -> Self {
        Self { messages, units: OnceLock::new(), meta }
    }

    /// The same with its parts side by side. As they were read, each lies between the texts of its neighbours, and whoever
    /// walks over parts alone goes through as many pages of memory as the texts take.
    pub fn side_by_side(mut self) -> Self {
        // All old places are held until the last part has moved, so that none moves into one of them.
        let mut scattered: Vec<Vec<Part>> =
            self.messages.iter_mut().map(|it| std::mem::take(&mut it.parts)).collect();
        for (message, parts) in self.messages.iter_mut().zip(&mut scattered) {
            message.parts.reserve_exact(parts.len());
            message.parts.append(parts);
        }
        self
    }

    /// All messages, in order.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Ranges of messages that may only be kept or dropped together: calls with their outputs, parallel batches, and
    /// signed thinking with the message it leads to. They are contiguous, in order, and cover all messages.
    pub fn units(&self) -> &[Range<usize>] {
        self.units.get_or_init(|| units(&self.messages))
    }

    /// Whether a cut before message `index` leaves every unit whole. The ends always are such places.
    pub fn can_cut(&self, index: usize) -> bool {
        index == 0
            || index >= self.messages.len()
            || self.units().binary_search_by(|it| it.start.cmp(&index)).is_ok()
    }

    /// The last place at or before `index` where a cut leaves every unit whole.
    pub fn cut_at_or_before(&self, index: usize) -> usize {
        if index >= self.messages.len() {
            return self.messages.len();
        }
        let unit = self.units().partition_point(|it| it.start <= index);
        if unit == 0 { 0 } else { self.units()[unit - 1].start }
    }

    /// Number of the last message that a person wrote.
    pub fn last_prompt(&self) -> Option<usize> {
        self.messages.iter().rposition(Message::is_prompt)
    }

    /// The call that an output answers.
    pub fn call(&self, id: &str, before: usize) -> Option<(usize, &Call)> {
        self.messages[..before.min(self.messages.len())]
            .iter()
            .enumerate()
            .rev()
            .find_map(|(index, message)| message.calls().find(|it| &*it.id == id).map(|it| (index, it)))
    }

    /// The messages, taken out.
    pub fn into_messages(self) -> Vec<Message> {
        self.messages
    }
}

fn units(messages: &[Message]) -> Vec<Range<usize>> {
    use foldhash::{HashMap, HashMapExt};
    // end[i]: the last message that must stay with message i.
    let mut end: Vec<usize> = (0..messages.len()).collect();
    let mut open: HashMap<&str, usize> = HashMap::new();
    // The last call, which most outputs answer.
    let mut last: Option<(&str, usize)> = None;
    for (index, message) in messages.iter().enumerate() {
        if message.leads_on() && messages.get(index + 1).is_some_and(|it| it.role == Role::Assistant) {
            end[index] = index + 1;
        }
        for part in &message.parts {
            match part {
                Part::Call(call) => {
                    open.extend(last.replace((&call.id, index)));
                }
                Part::Output(output) => {
                    // Taken out: a second output of the same id is an orphan of its own.
                    let answered = last.take_if(|it| it.0 == &*output.id).map(|it| it.1);
                    if let Some(call) = answered.or_else(|| open.remove(&*output.id)) {
                        end[call] = end[call].max(index);
                    }
                }
                Part::Text(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {}
            }
        }
    }
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut index = 0;
    while index < messages.len() {
        let (start, mut last) = (index, end[index]);
        while index <= last {
            last = last.max(end[index]);
            index += 1;
        }
        out.push(start..index);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::narrow;

    #[test]
    fn weighs_like_javascript() {
        let weight = TextSize::of("a\"\n\u{1}é😀");
        assert_eq!(weight, TextSize { bytes: 10, chars: 6, ascii: 4, utf16: 7, escapes: 1 + 1 + 5 });
    }

    #[test]
    fn weighs_blocks_as_it_weighs_bytes() {
        // The slow way to say it, over texts longer than a block.
        let slow = |text: &str| {
            let escape = |c: char| match c {
                '"' | '\\' | '\u{8}' | '\t' | '\n' | '\u{c}' | '\r' => 1,
                '\0'..='\u{1f}' => 5,
                _ => 0,
            };
            TextSize {
                bytes: text.len() as u64,
                chars: text.chars().count() as u64,
                ascii: text.chars().filter(char::is_ascii).count() as u64,
                utf16: text.encode_utf16().count() as u64,
                escapes: text.chars().map(escape).sum(),
            }
        };
        let all: String = (0u8..0x80).map(char::from).chain("é漢字😀ß".chars()).collect();
        for len in [0, 1, 63, 64, 65, 127, 128, 130, 20_000, 40_001] {
            for text in [all.chars().cycle().take(len).collect::<String>(), "\u{b}\u{1b}".repeat(len)] {
                let weight = slow(&text);
                assert_eq!(TextSize::of(&text), weight, "{len}");
                assert_eq!(TextSize::plain(&text), TextSize { escapes: 0, ..weight }, "{len}");
                assert_eq!(narrow::<Weigh<true>>(text.as_bytes()), weight, "{len}");
                assert_eq!(
                    narrow::<Weigh<false>>(text.as_bytes()),
                    TextSize { escapes: 0, ..weight },
                    "{len}"
                );
            }
        }
    }

    #[test]
    fn wide_figures_are_kept_as_narrow_ones_are() {
        for len in [NARROW as usize - 1, NARROW as usize, NARROW as usize + 1] {
            let text = "\u{1}".repeat(len);
            let whole = Text::new(text.as_str());
            assert_eq!(whole.weight(), TextSize::of(&text));
            assert_eq!(whole.clone(), whole);
            assert_eq!(whole.measured(Measure::Exact, |_| 7), 7);
            assert_eq!(whole.clone().measured(Measure::Exact, |_| 8), 7);
            assert!(!whole.is_measured(Measure::Shape));
            for shape in [0, u64::from(u32::MAX) - 1, u64::from(u32::MAX), 1 << 40] {
                let gist = Text::gist(&text, whole.weight(), shape);
                assert_eq!((gist.weight(), gist.measured(Measure::Shape, |_| 9)), (whole.weight(), shape));
            }
        }
    }

    fn call(id: &str) -> Message {
        let call =
            Call { id: id.into(), name: "t".into(), input: "{}".into(), freeform: false, signature: None };
        Message::new(Role::Assistant, Kind::Said, vec![Part::Call(call)])
    }

    fn output(id: &str) -> Message {
        let output = Output {
            id: id.into(),
            name: None,
            text: "".into(),
            media: [].into(),
            failed: false,
            cleared: false,
            exit: None,
            refusal: None,
        };
        Message::new(Role::Tool, Kind::Said, vec![Part::Output(output)])
    }

    #[test]
    fn interleaved_calls_are_one_unit() {
        let user = Message::text(Role::User, Kind::Said, "hi");
        let thought = Reasoning { text: "".into(), signature: Some("s".into()) };
        let thought = Message::new(Role::Assistant, Kind::Said, vec![Part::Reasoning(thought)]);
        let messages = vec![
            user,
            thought,
            call("a"),
            call("b"),
            output("a"),
            output("b"),
            call("c"),
            output("x"),
            output("c"),
        ];
        let history = History::new(messages, Meta::default());
        assert_eq!(history.units(), [0..1, 1..6, 6..9]);
        assert!(history.can_cut(6) && !history.can_cut(3));
        assert_eq!(history.cut_at_or_before(5), 1);
    }
}
