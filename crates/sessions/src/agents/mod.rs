//! Sessions as the agents write them, one module per agent.

pub mod claude_code;
pub mod codex;
pub mod gemini_cli;
pub mod opencode;
pub mod pi;
pub mod qwen_code;
pub mod swe_agent;

use crate::parse::lines::each_line;
use crate::{Note, Record, Source};
use history::error::Result;
use history::{Media, Message, Part};
use serde_json::Value;

/// A line of a session, parsed as one JSON value.
struct JsonLine {
    record: u32,
    line: u64,
    value: Value,
}

/// All records, the lines that the agent accepts, and notes on those it skips: not JSON, or `fault` says what
/// was expected.
fn json_lines(
    source: &dyn Source,
    fault: impl Fn(&Value) -> Option<&'static str>,
) -> Result<(Vec<Record>, Vec<JsonLine>, Vec<Note>)> {
    let (mut records, mut lines, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    each_line(source, |line, record, bytes| {
        let number = records.len() as u32;
        records.push(record);
        let value = serde_json::from_str::<Value>(&history::json::mend(bytes));
        let value = value.map_err(|error| format!("JSON: {error}"));
        match value.and_then(|it| fault(&it).map_or(Ok(it), |what| Err(what.to_owned()))) {
            Ok(value) => lines.push(JsonLine { record: number, line, value }),
            Err(what) => notes.push(Note { line, what: format!("expected {what}; skipped") }),
        }
        Ok(true)
    })?;
    Ok((records, lines, notes))
}

/// A reported number of tokens, 0 if there is none. Limited far above any real value, so that sums cannot
/// overflow.
fn token_count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default().min(1 << 48)
}

/// The parts of a content that is a string or a list of blocks; an empty string gives none. `other` reads the
/// blocks that are not of type `text`.
fn parts_of(content: &Value, other: impl Fn(&Value) -> Option<Part>) -> Vec<Part> {
    let text = |it: &Value| it.as_str().filter(|it| !it.is_empty()).map(|it| Part::Text(it.into()));
    let part = |it: &Value| if it["type"] == "text" { text(&it["text"]) } else { other(it) };
    let blocks = content.as_array().into_iter().flatten().filter_map(part);
    text(content).into_iter().chain(blocks).collect()
}

/// The text of an output (its texts, joined by newlines) and its media.
fn text_and_media(parts: Vec<Part>) -> (String, Vec<Media>) {
    let (mut texts, mut media) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text(it) => texts.push(it.as_str().to_owned()),
            Part::Media(it) => media.push(it),
            Part::Reasoning(_) | Part::Call(_) | Part::Output(_) | Part::Opaque(_) => {}
        }
    }
    (texts.join("\n"), media)
}

/// A copy of another agent's message, without reasoning, opaque parts and signatures, which only its API
/// understands.
fn foreign(message: &Message) -> Message {
    let mut message = Message { from: None, ..message.clone() };
    message.parts.retain(|it| match it {
        Part::Reasoning(_) | Part::Opaque(_) => false,
        Part::Text(_) | Part::Call(_) | Part::Output(_) | Part::Media(_) => true,
    });
    for part in &mut message.parts {
        if let Part::Call(call) = part {
            call.signature = None;
        }
    }
    message
}
