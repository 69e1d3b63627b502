//! Native session formats and plain messages: read, write, validate.
//!
//! **Invariants.** Reading never fails as a whole: a broken or unknown record becomes a [`Note`]; only "not
//! the format you named" is an error. Writing patches: untouched records keep their bytes, and unknown kinds
//! survive. What is written is derived from what was read, so the same input gives the same bytes. This crate
//! knows nothing about compaction: it gets a history before and a history after.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

pub mod agents;
pub mod derive;
mod format;
pub mod media;
mod refusal;
pub mod repair;
pub mod parse;
mod session;
#[cfg(test)]
mod tests;
pub mod validate;
pub mod wire;

use format::Api;
use history::error::{Error, ErrorKind, Hint, Result};
use history::{History, Message, Part, Role, Text, json};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

pub use format::Format;
pub use history::SUMMARY_START;
pub use session::source::{MemorySource, Source};
pub use session::{Note, Origins, PastCompaction, Record, Session, requests};
pub use wire::messages;

// Not in `format`: the format modules import that one, so it must not import them.
impl Format {
    /// Claude Code `.jsonl`.
    pub const CLAUDE_CODE: Self = Self(&agents::claude_code::ROW);
    /// Codex `rollout-*.jsonl`.
    pub const CODEX: Self = Self(&agents::codex::ROW);
    /// Gemini CLI `.jsonl` or the older `.json`.
    pub const GEMINI_CLI: Self = Self(&agents::gemini_cli::ROW);
    /// OpenCode's export `.json`.
    pub const OPENCODE: Self = Self(&agents::opencode::ROW);
    /// pi `.jsonl`; read only.
    pub const PI: Self = Self(&agents::pi::ROW);
    /// Qwen Code `.jsonl`; read only.
    pub const QWEN_CODE: Self = Self(&agents::qwen_code::ROW);
    /// SWE-agent `.traj`; read only.
    pub const SWE_AGENT: Self = Self(&agents::swe_agent::ROW);
    /// Anthropic Messages: an array, or a request body that holds one.
    pub const ANTHROPIC: Self = Self(&wire::ANTHROPIC);
    /// OpenAI chat completions messages.
    pub const OPENAI_CHAT: Self = Self(&wire::OPENAI_CHAT);
    /// OpenAI Responses input items.
    pub const OPENAI_RESPONSES: Self = Self(&wire::OPENAI_RESPONSES);
    pub const GEMINI: Self = Self(&wire::GEMINI);

    /// All formats, in the order in which they are tried on a source: agents' formats before plain messages,
    /// and Qwen Code before Claude Code, whose records are the same but for some extra fields.
    pub const ALL: [Self; 11] = [
        Self::QWEN_CODE,
        Self::CLAUDE_CODE,
        Self::CODEX,
        Self::GEMINI_CLI,
        Self::OPENCODE,
        Self::PI,
        Self::SWE_AGENT,
        Self::ANTHROPIC,
        Self::OPENAI_CHAT,
        Self::OPENAI_RESPONSES,
        Self::GEMINI,
    ];

    /// The format with this name.
    ///
    /// # Errors
    /// [`ErrorKind::Arguments`] if there is none.
    pub fn named(name: &str) -> Result<Self> {
        let names = Self::ALL.iter().map(|it| it.name());
        let found = Self::ALL.into_iter().find(|it| it.name() == name);
        found.ok_or_else(|| Error::unknown("a format", names, name))
    }

    /// The API whose messages this format's agent sends: itself for plain messages.
    pub fn api(self) -> Self {
        self.0.api.format()
    }
}

impl<'de> Deserialize<'de> for Format {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::named(&String::deserialize(deserializer)?).map_err(|error| D::Error::custom(error.detail()))
    }
}

impl Api {
    pub(crate) fn format(self) -> Format {
        match self {
            Self::Anthropic => Format::ANTHROPIC,
            Self::OpenAiChat => Format::OPENAI_CHAT,
            Self::OpenAiResponses => Format::OPENAI_RESPONSES,
            Self::Gemini => Format::GEMINI,
        }
    }
}

/// Whether a text is a summary of ours. Some agents record one as an ordinary user message, so only the text
/// tells.
fn is_our_summary(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("[Epitome] ").unwrap_or(first).starts_with(SUMMARY_START)
        && first.contains("epitome restore ")
}

/// Prefixes of cleared outputs: of Claude Code (2.1, time-based) and OpenCode, which use the same, and of our
/// profiles.
const CLEARED: [&str; 2] = [agents::opencode::CLEARED, "[output cleared: "];

fn is_cleared(text: &str) -> bool {
    CLEARED.iter().any(|it| text.starts_with(it))
}

/// The first few characters of a file that is not a session, for an error message. Errors are shown to models
/// and the file may hold secrets, so it stops at the first `=` or `:`.
fn glimpse(text: &str) -> String {
    let text = text.trim_start();
    let found: String =
        text.chars().take(8).take_while(|it| !matches!(it, '=' | ':' | '\n' | '\r')).collect();
    if text.is_empty() { "nothing".to_owned() } else { format!("{found:?}") }
}

/// How a changed history is written back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Only outputs changed: replaces them in place; ids, order and everything else stay.
    Patch,
    /// Continues the session with what the agent itself would append after a compaction. Old records stay.
    Append,
    /// A new session of the same agent that starts compacted.
    New,
}

/// A piece of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Bytes of the source, as they are.
    Keep(Range<u64>),
    New(Vec<u8>),
}

/// The output of a write, and what could not be expressed in the format.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Written {
    /// The pieces of the new file, in order.
    pub pieces: Vec<Piece>,
    /// The id by which the agent resumes the session, if it is a new one.
    pub session: Option<String>,
    /// The file name (no folder) that the agent expects, if it is a new one.
    pub file_name: Option<String>,
    /// What could not be carried over, one sentence each.
    pub warnings: Vec<String>,
}

impl Written {
    /// All bytes, read from `source` where they were kept.
    ///
    /// # Errors
    /// Those of reading `source`.
    pub fn bytes(&self, source: &dyn Source) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Keep(range) => out.extend(source.bytes(range.clone())?),
                Piece::New(bytes) => out.extend_from_slice(bytes),
            }
        }
        Ok(out)
    }

    /// The result as a source that reads kept ranges from `source`, so only new bytes are in memory.
    pub fn over<'a>(&self, source: &'a dyn Source) -> repair::Mended<'a> {
        repair::Mended::of(source, self.pieces.clone())
    }
}

/// How many bytes of a source are read to recognize its format.
const PREFIX: u64 = 64 * 1024;

/// Recognizes the format of a source.
///
/// # Errors
/// [`ErrorKind::Input`], quoting the beginning, if no format matches; errors of reading `source`.
pub fn sniff(source: &dyn Source) -> Result<Format> {
    let bytes = source.bytes(0..source.len().min(PREFIX))?;
    if bytes.starts_with(b"SQLite format 3\0") {
        let what = "expected a session, found a database; if it is OpenCode's, add #ses_… (`epitome sessions` lists them)";
        return Err(Error::new(ErrorKind::Input, what).at(source.name(), None));
    }
    let first = json::mend(&bytes);
    let first = json::without_byte_order_mark(&first);
    let native = Format::ALL.into_iter().find(|it| it.0.recognise.is_some_and(|it| it(first)));
    let found = native.or_else(|| wire::sniff(first)).or_else(|| of_folder(source.name(), first));
    found.ok_or_else(|| {
        if first.trim().is_empty() {
            return Error::new(ErrorKind::Input, "the file is empty; expected a session").at(source.name(), None);
        }
        if agents::codex::is_before_payload(first) {
            let what = "expected a session, found a Codex rollout of before August 2025 (no `payload`), which today's \
                        Codex does not resume either; it is not read";
            return Error::new(ErrorKind::Input, what).at(source.name(), None);
        }
        let found = glimpse(first);
        let names: Vec<_> = Format::ALL.iter().map(|it| it.name()).collect();
        let what = format!(
            "expected a session or an array of messages ({}), found a file that begins with {found}",
            names.join(", ")
        );
        Error::new(ErrorKind::Input, what).hint(Hint::NameFormat).at(source.name(), None)
    })
}

/// The format by the agent's folder that the file is in: for sessions too short to be recognized by their
/// content.
fn of_folder(path: &str, first_lines: &str) -> Option<Format> {
    if !first_lines.trim_start().starts_with('{') {
        return None;
    }
    let path = path.replace('\\', "/");
    let lies =
        |(folder, ends): (&str, &[&str])| path.contains(folder) && ends.iter().any(|it| path.ends_with(it));
    Format::ALL.into_iter().find(|it| it.0.folder.is_some_and(lies))
}

/// Reads a session in the given format, or in the one that it is recognized as.
///
/// ```
/// use sessions::{Format, MemorySource};
///
/// let messages = br#"[{"role": "user", "content": "Fix the tests."}, {"role": "assistant", "content": "Done."}]"#;
/// let session = sessions::read(&MemorySource::new("messages", messages.to_vec()), Some(Format::ANTHROPIC))?;
/// assert_eq!(session.history.messages()[0].plain(), "Fix the tests.");
/// // What was not understood is noted, not refused.
/// assert!(session.notes.is_empty());
/// # Ok::<(), history::error::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Input`] if `source` is not a session of that format, or of any known one; errors of reading
/// `source`. A record that is broken or unknown is no error, but a [`Note`].
pub fn read(source: &dyn Source, format: Option<Format>) -> Result<Session> {
    let format = format.map_or_else(|| sniff(source), Ok)?;
    let session = (format.0.read)(source)?;
    Ok(Session { history: session.history.side_by_side(), ..session })
}

/// Gives the replacement of a text in a session that is only measured, so that the text need not stay in
/// memory. Gets the text as read and the byte offset of its record in the source; `None` keeps the text
/// itself.
pub type Keep<'a> = dyn Fn(&str, u64) -> Option<Text> + Sync + 'a;

/// Applies `keep` to the texts of a finished part.
fn apply_keep(part: &mut Part, keep: &Keep, at: u64) {
    let apply = |text: &mut Text| *text = keep(text.as_str(), at).unwrap_or_else(|| std::mem::take(text));
    match part {
        Part::Text(text) => apply(text),
        Part::Reasoning(reasoning) => {
            apply(&mut reasoning.text);
            reasoning.signature.as_deref_mut().into_iter().for_each(apply);
        }
        Part::Call(call) => {
            apply(&mut call.input);
            call.signature.as_deref_mut().into_iter().for_each(apply);
        }
        Part::Output(output) => apply(&mut output.text),
        Part::Media(_) => {}
        Part::Opaque(opaque) => apply(&mut opaque.raw),
    }
}

/// Maximum bytes of a session that is read whole even for measuring, so that all its earlier compactions are
/// known.
const READ_WHOLE_MAX: u64 = if cfg!(test) { 1 } else { 8 << 20 };

/// Reads a session only to measure it. Its history is that of [`read`], except that `keep` replaces texts and
/// that what a sealed compaction replaced is missing. Where the format allows it, records that the history
/// does not depend on are not read, so compactions before the newest may be missing in [`Session::past`]. It
/// cannot be written.
///
/// # Errors
/// As [`read`].
pub fn scan(source: &dyn Source, format: Option<Format>, keep: &Keep) -> Result<Session> {
    let format = format.map_or_else(|| sniff(source), Ok)?;
    match format.0.scan {
        Some(scan) => scan(source, keep),
        None => read(source, Some(format)),
    }
}

/// The bytes to write so that `session` becomes `after`.
///
/// # Errors
/// [`ErrorKind::Arguments`] for a format or mode that cannot be written; [`ErrorKind::Bug`] if the result
/// would lose a message.
pub fn write(source: &dyn Source, session: &Session, after: &History, mode: Mode) -> Result<Written> {
    match session.format.0.write {
        Some(write) => write(source, session, after, mode),
        None => unchanged(source, session, after, mode),
    }
}

/// A new session in another agent's format that starts with `after`, a history read from `session`. Leading
/// system messages and context (instructions, permissions, environment) and all later system messages are
/// left out: the other agent sends its own.
///
/// # Errors
/// [`ErrorKind::Arguments`] if `to` is not an agent's format that can be written.
pub fn carry(source: &dyn Source, session: &Session, after: &History, to: Format) -> Result<Written> {
    if session.format == to {
        return write(source, session, after, Mode::New);
    }
    let Some(write) = to.0.write.filter(|_| !to.is_wire()) else {
        let what = format!("expected an agent to carry a session over to, found {}", to.name());
        return Err(Error::new(ErrorKind::Arguments, what));
    };
    write(source, session, &without_instructions(after), Mode::New)
}

fn without_instructions(after: &History) -> History {
    let messages = after.messages();
    let first = messages.iter().position(|it| it.role != Role::System && it.kind != history::Kind::Context);
    let rest = messages.get(first.unwrap_or(messages.len())..).unwrap_or_default();
    let rest = rest.iter().filter(|it| it.role != Role::System).cloned().collect();
    History::new(rest, after.meta.clone())
}

/// The source with some records replaced, by number.
fn replaced(source: &dyn Source, records: &[Record], by: BTreeMap<u32, Vec<u8>>) -> Vec<Piece> {
    let edits =
        by.into_iter().filter_map(|(number, bytes)| Some((records.get(number as usize)?.range(), bytes)));
    spliced(source, edits.collect())
}

/// The source with some ranges replaced.
fn spliced(source: &dyn Source, edits: Vec<(Range<u64>, impl Into<Vec<u8>>)>) -> Vec<Piece> {
    let edits = edits.into_iter().map(|(range, new)| (range, new.into())).collect();
    repair::Mended::part(source, 0..source.len()).edited(edits).into_pieces()
}

/// The messages that `after` changes: number, old, new. Only their outputs may differ.
///
/// # Errors
/// [`ErrorKind::Bug`] if anything else differs.
fn changed_outputs<'a>(
    source: &dyn Source,
    before: impl IntoIterator<Item = &'a Message>,
    after: &'a History,
) -> Result<Vec<(usize, &'a Message, &'a Message)>> {
    let before: Vec<&Message> = before.into_iter().collect();
    let pairs = || before.iter().zip(after.messages()).enumerate();
    let is_patch = |(_, (old, new)): (usize, (&&Message, &Message))| {
        old.from == new.from && old.differs_in_outputs_alone(new)
    };
    if before.len() != after.messages().len() || !pairs().all(is_patch) {
        let what = "while replacing outputs in place, expected the messages that were read with other outputs, found \
                    others; write a new session instead";
        return Err(Error::new(ErrorKind::Bug, what).at(source.name(), None));
    }
    let changed = pairs().filter(|(_, (old, new))| old.parts != new.parts);
    Ok(changed.map(|(number, (old, new))| (number, *old, new)).collect())
}

/// The writer of read-only formats: an unchanged history gives the source, anything else is an error.
fn unchanged(source: &dyn Source, session: &Session, after: &History, mode: Mode) -> Result<Written> {
    if mode == Mode::Patch && session.history.messages() == after.messages() {
        return Ok(Written { pieces: vec![Piece::Keep(0..source.len())], ..Written::default() });
    }
    let what = format!("{} is read only", session.format.name());
    Err(Error::new(ErrorKind::Refused, what).hint(Hint::WriteMessages))
}

/// A rule of an API that an array of messages breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The rule's name, e.g. `anthropic/result-follows-call`.
    pub rule: &'static str,
    /// Index of the message in the array.
    pub message: usize,
    /// What was expected and what was found.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: message {}: {}", self.rule, self.message, self.what)
    }
}
