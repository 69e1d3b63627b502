//! The model's messages as reports.

use serde_json::Value;

use super::shorten::{is_title, shortened, statements};
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::cues::{CUES, Lowercased};
use crate::facts::text::is_question;
use crate::facts::text::{clip_end, ends_with_colon, flat, lines, offset, sentences};
use history::tools::{Meaning, meaning};
use history::{Call, Kind, Message, Role};

/// What a message of the model says: its text, without the citation block that some models append for their
/// client and the thinking that Gemini sometimes shows in a code block, and the answers that it delivers by tool calls.
pub(in crate::facts) fn text_of_model(message: &Message) -> String {
    const SOURCES: &str = "<oai-mem-citation>";
    let mut text = message.plain();
    let line = if text.starts_with(SOURCES) { Some(0) } else { text.find(&format!("\n{SOURCES}")) };
    if let Some(at) = line {
        let end = text[at..].find("</oai-mem-citation>").map_or(text.len(), |it| at + it + SOURCES.len() + 1);
        text.replace_range(at..end, "");
    }
    // In its thinking, Gemini repeats its instructions.
    if let Some(at) = text.find("CRITICAL INSTRUCTION 1:") {
        text = text[at..].rsplit_once("\n```").map_or_else(String::new, |it| it.1.to_owned());
    }
    if let Some(value) = as_json(&text) {
        text = json_lines(&value);
    }
    for answer in message.calls().filter_map(delivered) {
        if !text.trim().is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(&answer);
    }
    text
}

/// Bytes, not characters: Chinese needs a third of the characters of English and has three times the bytes for each.
const MIN_REPORT_BYTES: usize = 200;

/// Whether the model ends its turn with a report: a message without calls, and long enough, or one that delivers its
/// answer by a tool.
pub(in crate::facts) fn is_report(message: &Message) -> bool {
    message.role == Role::Assistant
        && message.kind == Kind::Said
        && (delivers(message) || message.calls().next().is_none() && message.plain().len() > MIN_REPORT_BYTES)
}

/// Whether a text says that something remains to be done.
pub(in crate::facts) fn says_remaining(text: &str) -> bool {
    CUES.remaining.is_in(&Lowercased::of(text))
}

/// The heading of a step: "Task 8: Verification".
static STEP_HEADING: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?i)^\W*(?:task|step|phase|part|stage) \d{1,2}\W[^.!?]*$");

/// A sentence that takes back what was thought before it.
static RETRACTS: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:(?:but |no,? |hm+,? )?wait(?:[,.!…—-]|$)|actually,? (?:no|that|this|it|i (?:think|bet|need)|the)\b|hm+[,.!…]|hold on\b|on second thought\b|unless(?:\.\.\.|…)|(?:so )?(?:that|it|this)['’]s not (?:it|right|the)\b)",
);

/// A message of a turn that goes on, without what its last retraction takes back.
pub(super) fn after_retraction(text: &str) -> &str {
    let goes_on =
        |it: &str| CUES.announce.is_in(&Lowercased::of(it)) && it.to_lowercase().starts_with("actually");
    let last = statements(text).into_iter().rfind(|it| RETRACTS.is_match(it) && !goes_on(it));
    last.map_or(text, |it| &text[offset(it, text)..])
}

/// What joins the next step to the one after it.
static AND_THEN: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\b(?:and|,) then\b|\b(?:after that|afterwards|once (?:that|this|it)(?:['’]s| is))\b|\bdanach\b|\b(?:y|e) (?:luego|después|depois)\b|\bet (?:ensuite|puis)\b|然后|然後|その後|それから|そのあと|그런 다음|그 후",
);

/// Whether a sentence announces a step, and nothing that follows it: a plan of several steps outlives the first.
pub(super) fn announces(sentence: &str) -> bool {
    let bare = sentence.trim_start_matches(|it: char| !it.is_alphanumeric());
    // "Now" is a cue of `fixed`, but here it says that the step before is done, not this one.
    let after_now = ["now ", "Now "].iter().find_map(|it| bare.strip_prefix(it)).unwrap_or(sentence);
    CUES.announce.is_in(&Lowercased::of(sentence))
        && !CUES.fixed.is_in(&Lowercased::of(after_now))
        && !AND_THEN.is_match(sentence)
}

/// A text without announcements and headings of steps at its end.
pub(super) fn without_closing_announcements(text: &str) -> &str {
    let announces = |it: &str| CUES.announce.is_in(&Lowercased::of(it)) && !AND_THEN.is_match(it);
    let is_closing =
        |it: &&str| announces(it) || ends_with_colon(it) || is_title(it) || STEP_HEADING.is_match(it);
    let mut rest = text.trim_end();
    while let Some(last) = statements(clip_end(rest, 1_000)).pop().filter(is_closing) {
        let Some(before) = rest.strip_suffix(last) else { break };
        rest = before.trim_end();
    }
    rest
}

/// Whether a message is the model's and says something, as text or as an answer that a tool delivers.
pub(in crate::facts) fn speaks(message: &Message) -> bool {
    message.role == Role::Assistant
        && message.kind == Kind::Said
        && (message.texts().any(|it| !it.as_str().trim().is_empty()) || delivers(message))
}

/// Whether a message of the model delivers its answer by a tool call.
pub(in crate::facts) fn delivers(message: &Message) -> bool {
    message.calls().any(|it| meaning(&it.name) == Meaning::Deliver || report_to_lead(it).is_some())
}

/// The answer that a call delivers; `None` for other calls.
fn delivered(call: &Call) -> Option<String> {
    if meaning(&call.name) != Meaning::Deliver {
        return report_to_lead(call);
    }
    let parsed = serde_json::from_str(call.input.as_str());
    Some(parsed.map_or_else(|_| call.input.as_str().to_owned(), |it| json_lines(&it)))
}

/// What a teammate reports to the lead of a Claude Code agent team. A short message is only a progress note.
fn report_to_lead(call: &Call) -> Option<String> {
    const MIN_BYTES: usize = 200;
    if &*call.name != "SendMessage" {
        return None;
    }
    let input: Value = serde_json::from_str(call.input.as_str()).ok()?;
    let text = |keys: [&str; 2]| keys.iter().find_map(|it| input.get(*it)?.as_str());
    let to_lead = text(["recipient", "to"]) == Some("team-lead");
    text(["content", "message"]).filter(|it| to_lead && it.len() > MIN_BYTES).map(str::to_owned)
}

/// A text that is a JSON object or array and nothing else, in a code block or not.
fn as_json(text: &str) -> Option<Value> {
    let bare = text.trim();
    let block = bare.strip_prefix("```").and_then(|it| it.strip_suffix("```"));
    let bare = block.map_or(bare, |it| it.strip_prefix("json").unwrap_or(it).trim());
    let parsed = bare.starts_with(['{', '[']).then(|| serde_json::from_str(bare).ok()).flatten();
    parsed.filter(|it: &Value| it.is_object() || it.is_array())
}

/// A JSON value as lines, one for each item, so that shortening drops whole items.
fn json_lines(value: &Value) -> String {
    let items = |all: &[Value]| all.iter().map(|it| format!("- {}", json_inline(it))).collect::<Vec<_>>();
    let entry = |(key, value): (&String, &Value)| match value {
        Value::Array(all) if all.is_empty() => vec![format!("{key}: none")],
        Value::Array(all) => std::iter::once(format!("{key}:")).chain(items(all)).collect(),
        Value::String(text) => vec![format!("{key}: {text}")],
        _ => vec![format!("{key}: {}", json_inline(value))],
    };
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => items(all).join("\n"),
        Value::Object(all) => match all.values().next() {
            Some(Value::String(only)) if all.len() == 1 => only.clone(),
            _ => all.iter().flat_map(entry).collect::<Vec<_>>().join("\n"),
        },
        _ => json_inline(value),
    }
}

fn json_inline(value: &Value) -> String {
    match value {
        Value::String(text) => flat(text),
        Value::Array(all) if all.is_empty() => "none".into(),
        Value::Array(all) => all.iter().map(json_inline).collect::<Vec<_>>().join(", "),
        Value::Object(all) => {
            all.iter().map(|(key, it)| format!("{key}: {}", json_inline(it))).collect::<Vec<_>>().join("; ")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// Without questions and announcements at the end, which are not findings.
pub(super) fn without_closing_questions(text: &str) -> &str {
    let over = |it: &&str| is_question(it) || CUES.announce.is_in(&Lowercased::of(it));
    let mut rest = text.trim_end();
    for _ in 0..4 {
        let last = sentences(clip_end(rest, 1_000)).pop().filter(over);
        let Some(last) = last else { break };
        // Code or a table may follow the sentence: then it is not the end.
        let Some((before, behind)) = rest.rsplit_once(last) else { break };
        if behind.contains(char::is_alphanumeric) {
            break;
        }
        // The number of the question in a list.
        let bare = before.trim_end().strip_suffix(['.', ')']).unwrap_or_default();
        let bare = bare.trim_end_matches(|it: char| it.is_ascii_digit());
        rest = if bare.ends_with('\n') { bare.trim_end() } else { before.trim_end() };
    }
    rest
}

/// The state of the work according to a message of the model.
pub(super) fn current_state(plain: &str) -> String {
    const WHOLE: usize = 700;
    let length: usize = lines(plain).iter().map(|it| it.chars().count()).sum();
    // A report states its purpose at its beginning and its results at its end.
    let plain = if length > WHOLE { without_closing_questions(plain) } else { plain };
    shortened(&lines(plain), WHOLE)
}
