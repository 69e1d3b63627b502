//! What a model would be sent next, as a value: messages made of parts, grouped into units that are kept or
//! removed together.
//!
//! Every format is read into this and written from it; all decisions are made on it. A `History` owns its
//! text (cheap to clone, no lifetime), and each text carries its size, counted once.

mod instructions;
pub mod replaced;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::named;
use crate::text::Text;

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Role {
        /// System or developer instructions inside the messages.
        System = "system",
        /// The user, or the client in the user's place.
        User = "user",
        Assistant = "assistant",
        /// A tool answering, in APIs that have a role for it (results may also stand in user messages).
        Tool = "tool",
    }
}

/// The beginning of every summary that Epitome writes.
pub const SUMMARY_START: &str = "Earlier conversation compacted:";

named! {
    /// Why a message is there.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Kind {
        Said = "said",
        /// The client put it there: instructions, environment, reminders, hook output. Never the user's words.
        Context = "context",
        /// A summary that replaced earlier messages.
        Summary = "summary",
        /// Stands where something was taken out, or asks for the summary that follows.
        Marker = "marker",
        /// The acknowledgement some clients put after a summary.
        Ack = "ack",
        /// The client's own "go on".
        Continue = "continue",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reasoning {
    /// Its readable text; may be empty.
    pub text: Text,
    /// A signature or the encrypted thinking. With one, the part is kept or dropped whole, never edited.
    /// (Boxed, because most parts have none.)
    pub signature: Option<Box<Text>>,
}

/// An id for a call that has none: part `index` of message `number`.
pub fn made_up_id(number: usize, index: usize) -> String {
    format!("call_{number}_{index}")
}

/// Whether an id looks like those that readers make for calls and results without one: then no API sent it.
pub fn is_made_up(id: &str) -> bool {
    let digits = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit());
    let numbers = ["call_", "response_"].iter().find_map(|it| id.strip_prefix(it)?.split_once('_'));
    numbers.is_some_and(|(number, index)| digits(number) && digits(index))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The API's id, which the result refers to. Made up by the reader if the format has none.
    pub id: Arc<str>,
    /// The tool's name as the model wrote it.
    pub name: Arc<str>,
    /// The arguments as compact JSON, or free text if `freeform`.
    pub input: Text,
    /// Whether the tool takes free text, not JSON (Codex `custom_tool_call`).
    pub freeform: bool,
    /// A signature that travels with the call (Gemini `thoughtSignature`).
    pub signature: Option<Box<Text>>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The id of the call it answers.
    pub id: Arc<str>,
    /// The tool's name, if the format repeats it.
    pub name: Option<Arc<str>>,
    /// All its text; several blocks are joined by a line break.
    pub text: Text,
    /// The end of each block in `text`, in bytes; empty if it is one block, or the format has none.
    pub ends: Box<[usize]>,
    /// Images and other attachments.
    pub media: Box<[Media]>,
    /// Whether the tool failed, or the user refused the call.
    pub failed: bool,
    /// Whether the text is a placeholder: the agent or we cleared it before.
    pub cleared: bool,
    /// The exit code, if the format records it beside the text.
    pub exit: Option<i32>,
    /// Set if the user refused the call, as the agent itself recorded it.
    pub refusal: Option<Box<Refusal>>,
}

impl Output {
    /// An output of only a text.
    pub fn new(id: impl Into<Arc<str>>, text: impl Into<Text>) -> Self {
        Self {
            id: id.into(),
            name: None,
            text: text.into(),
            ends: [].into(),
            media: [].into(),
            failed: false,
            cleared: false,
            exit: None,
            refusal: None,
        }
    }

    /// The blocks of its text, if there are several and they are still whole.
    pub fn blocks(&self) -> Option<Vec<&str>> {
        let text = self.text.as_str();
        let starts = std::iter::once(0).chain(self.ends.iter().map(|it| it + 1));
        let blocks = starts.zip(&self.ends).map(|(from, to)| text.get(from..*to));
        if self.ends.last() == Some(&text.len()) { blocks.collect() } else { None }
    }
}

/// A call that the user refused. Only the readers of agents' formats make one: the text of an output alone
/// never does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Refusal {
    /// Why, in the user's words, if the agent records that.
    pub reason: Option<Box<str>>,
    /// Whether the user's settings refused it, or an automatic reviewer: nobody was asked.
    pub by_settings: bool,
}

/// The kinds of attachments, as far as their prices differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MediaKind {
    Image,
    Pdf,
    Audio,
    Other,
}

impl MediaKind {
    pub fn of_mime(mime: &str) -> Self {
        match mime.split('/').next() {
            Some("image") => Self::Image,
            Some("audio") => Self::Audio,
            _ if mime == "application/pdf" => Self::Pdf,
            _ => Self::Other,
        }
    }
}

/// An image, a document or a sound. Kept whole or replaced by a typed stub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media {
    pub kind: MediaKind,
    /// MIME type, or empty.
    pub mime: Arc<str>,
    /// Base64 data, or a URL, as the format had it.
    pub data: Arc<str>,
    /// Width and height in pixels, if they can be read from the data.
    pub size: Option<(u32, u32)>,
}

impl Media {
    /// Whether `data` is a URL: base64 has no colon.
    pub fn is_url(&self) -> bool {
        self.data.contains(':')
    }
}

/// Something only one API understands: encrypted compactions, server tools, unknown blocks. Kept or dropped whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opaque {
    /// The API that it belongs to: a format's name such as `anthropic`.
    pub api: Arc<str>,
    pub kind: Arc<str>,
    /// Compact JSON, otherwise verbatim.
    pub raw: Text,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Text(Text),
    Reasoning(Reasoning),
    Call(Call),
    Output(Output),
    Media(Media),
    Opaque(Opaque),
}

impl Part {
    /// Its text: what is said or thought, a call's input, an output's text, or the raw block; none for an
    /// attachment.
    pub fn text(&self) -> Option<&Text> {
        match self {
            Self::Text(text) => Some(text),
            Self::Reasoning(reasoning) => Some(&reasoning.text),
            Self::Call(call) => Some(&call.input),
            Self::Output(output) => Some(&output.text),
            Self::Media(_) => None,
            Self::Opaque(opaque) => Some(&opaque.raw),
        }
    }
}

/// Tokens that the provider reported for the request which produced a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input tokens, not from a cache.
    pub input: u64,
    /// Output tokens, reasoning included.
    pub output: u64,
    /// Input tokens that were read from a cache.
    pub cache_read: u64,
    /// Input tokens that were written to a cache.
    pub cache_write: u64,
    /// The part of `cache_write` that is kept for an hour, if reported.
    pub cache_write_hour: u64,
    /// The part of `output` that is thinking, if reported.
    pub reasoning: u64,
}

impl Usage {
    /// An upper bound for the tokens of one request: twice the largest window there is. A larger figure
    /// cannot be a real report.
    pub const MOST: u64 = 20_000_000;

    /// Everything the request was sent: the context just before the message.
    pub fn sent(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Adds the usage of another request.
    pub fn add(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.cache_write_hour += other.cache_write_hour;
        self.reasoning += other.reasoning;
    }

    /// The context just after the message.
    pub fn context(&self) -> u64 {
        self.sent().saturating_add(self.output)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub role: Role,
    pub kind: Kind,
    pub parts: Vec<Part>,
    /// Its index in the history as it was read; `None` if we made it. Formats find its records by this.
    pub from: Option<u32>,
    /// The format's own id.
    pub id: Option<Arc<str>>,
    /// Milliseconds since 1970, UTC.
    pub at: Option<i64>,
    /// What the provider reported with it. If one response became several messages, the last one has it.
    pub usage: Option<Usage>,
    /// The model that `usage` is of, if the format says it for each response.
    pub model: Option<Arc<str>>,
    /// UTF-16 length of the message as compact JSON of its own API, if the reader knows it and it fits into
    /// 32 bits.
    pub wire_len: Option<u32>,
    /// For a compaction whose text is sealed: what it replaced, as far as the session still holds it.
    pub replaced: Option<Arc<[Message]>>,
}

impl Message {
    /// A message of ours, without origin.
    pub fn new(role: Role, kind: Kind, parts: Vec<Part>) -> Self {
        Self {
            role,
            kind,
            parts,
            from: None,
            id: None,
            at: None,
            usage: None,
            model: None,
            wire_len: None,
            replaced: None,
        }
    }

    /// A text message of ours.
    pub fn text(role: Role, kind: Kind, text: impl Into<Text>) -> Self {
        Self::new(role, kind, vec![Part::Text(text.into())])
    }

    /// Whether another message has the same role, kind and parts, wherever it is.
    pub fn says_same(&self, other: &Self) -> bool {
        self.role == other.role && self.kind == other.kind && self.parts == other.parts
    }

    /// Whether another message is the same except for the content of its outputs.
    pub fn differs_in_outputs_alone(&self, other: &Self) -> bool {
        let is_same = |(part, other): (&Part, &Part)| match (part, other) {
            (Part::Output(it), Part::Output(other)) => it.id == other.id,
            _ => part == other,
        };
        self.role == other.role
            && self.parts.len() == other.parts.len()
            && self.parts.iter().zip(&other.parts).all(is_same)
    }

    /// Whether a person wrote it: it starts a turn. Tool results, injected context and summaries do not.
    pub fn is_prompt(&self) -> bool {
        self.role == Role::User
            && self.kind == Kind::Said
            && self.parts.iter().any(|it| matches!(it, Part::Text(_) | Part::Media(_)))
    }

    /// Whether a client wrote it for a slash command whose text follows (Claude Code). The record of a local command such
    /// as `/model` begins with `<command-name>` instead.
    pub fn is_slash_command(&self) -> bool {
        self.role == Role::User
            && self.kind == Kind::Context
            && self.texts().any(|it| it.as_str().starts_with("<command-message>"))
    }

    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.parts.iter().filter_map(|it| if let Part::Call(call) = it { Some(call) } else { None })
    }

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

    /// Whether it is only signed thinking, which must stay with the assistant's next message.
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
    /// The agent that keeps it (`claude-code`, `codex`, …), or none for plain messages.
    pub agent: Option<Arc<str>>,
    /// The agent's id of the session.
    pub session: Option<Arc<str>>,
    /// The model that replied last.
    pub model: Option<Arc<str>>,
    pub cwd: Option<Arc<str>>,
    /// The directories of the agent's shell, if the format records them and it left `cwd`: the first message
    /// in each ([`Message::from`]), and the directory.
    pub shell_dirs: Vec<(u32, Arc<str>)>,
    /// The context window in tokens, if the session itself says it.
    pub window: Option<u64>,
    /// System prompt outside the messages, if the input holds it.
    pub system: Option<Text>,
    /// Tool definitions as compact JSON, if the input holds them.
    pub tools: Option<Text>,
    /// The first and last time stamps seen, ms since 1970.
    pub times: Option<(i64, i64)>,
    /// Whether the compaction that made it was automatic, because the context was full. Writers record it.
    pub automatic: bool,
    /// Turns that were rolled back, if the agent does not undo their changes of files.
    pub rolled_back: Option<RolledBack>,
    /// Whether the last prompt was sent in a mode that only reads and plans; none if the format does not say.
    pub planning: Option<bool>,
}

/// Turns whose messages are gone, while the effects of their calls remain.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RolledBack {
    pub turns: u64,
    /// The paths that their calls changed, as named by the calls, without repetitions.
    pub changed: Vec<String>,
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
    /// Made on first use: a history that is only measured needs none.
    units: OnceLock<Vec<Range<usize>>>,
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

    /// A history of messages that are numbered in order, as a reader numbers them ([`Message::from`]).
    pub fn numbered(mut messages: Vec<Message>, meta: Meta) -> Self {
        for (number, message) in messages.iter_mut().enumerate() {
            message.from = u32::try_from(number).ok();
        }
        Self::new(messages, meta)
    }

    /// The directory of the agent's shell when a message was written, if it is known and not `cwd`.
    pub fn shell_dir(&self, message: &Message) -> Option<&str> {
        let number = message.from?;
        let after = self.meta.shell_dirs.partition_point(|it| it.0 <= number);
        let dir = &*self.meta.shell_dirs.get(after.checked_sub(1)?)?.1;
        Some(dir).filter(|it| self.meta.cwd.as_deref() != Some(it))
    }

    /// The same history with its parts side by side in memory. As they were read, each lies between the texts
    /// of its neighbors, so a walk over the parts alone would touch as many pages of memory as the texts
    /// take.
    pub fn side_by_side(mut self) -> Self {
        // All old buffers are held until the last part has moved, so that no new one reuses the place of an
        // old one.
        let mut scattered: Vec<Vec<Part>> =
            self.messages.iter_mut().map(|it| std::mem::take(&mut it.parts)).collect();
        for (message, parts) in self.messages.iter_mut().zip(&mut scattered) {
            message.parts.reserve_exact(parts.len());
            message.parts.append(parts);
        }
        self
    }

    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Ranges of messages that may only be kept or dropped together: calls with their outputs, parallel batches, and
    /// signed thinking with the message it leads to. They are contiguous, in order, and cover all messages.
    pub fn units(&self) -> &[Range<usize>] {
        self.units.get_or_init(|| units(&self.messages))
    }

    /// Whether a cut before message `index` leaves every unit whole. At both ends it does.
    pub fn can_cut(&self, index: usize) -> bool {
        index == 0
            || index >= self.messages.len()
            || self.units().binary_search_by(|it| it.start.cmp(&index)).is_ok()
    }

    /// The last index at or before `index` where a cut leaves every unit whole.
    pub fn cut_at_or_before(&self, index: usize) -> usize {
        if index >= self.messages.len() {
            return self.messages.len();
        }
        let unit = self.units().partition_point(|it| it.start <= index);
        if unit == 0 { 0 } else { self.units()[unit - 1].start }
    }

    /// Indexes of the messages that a person wrote.
    pub fn prompts(&self) -> impl Iterator<Item = usize> {
        (0..self.messages.len()).filter(|it| self.messages[*it].is_prompt())
    }

    /// Index of the last message that a person wrote.
    pub fn last_prompt(&self) -> Option<usize> {
        self.messages.iter().rposition(Message::is_prompt)
    }

    /// The call that an output with this id answers: the last one before message `before`, with the index of
    /// its message.
    pub fn call(&self, id: &str, before: usize) -> Option<(usize, &Call)> {
        self.messages[..before.min(self.messages.len())]
            .iter()
            .enumerate()
            .rev()
            .find_map(|(index, message)| message.calls().find(|it| &*it.id == id).map(|it| (index, it)))
    }

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
                    // Removed: a second output with the same id is an orphan.
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

    fn call(id: &str) -> Message {
        let call =
            Call { id: id.into(), name: "t".into(), input: "{}".into(), freeform: false, signature: None };
        Message::new(Role::Assistant, Kind::Said, vec![Part::Call(call)])
    }

    fn output(id: &str) -> Message {
        let output = Output::new(id, "");
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
