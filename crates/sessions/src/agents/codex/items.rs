//! How Codex sees response items, and messages written as response items.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use crate::parse::raw::{array, quoted};
use crate::wire::url_of;
use history::{Call, Kind, Media, MediaKind, Message, Opaque, Output, Part, Role};

/// The API that the opaque parts belong to.
pub(super) const API: &str = "openai-responses";

/// The beginning of Codex's own summaries (Codex since 0.58, `summary_prefix`).
const SUMMARY_PREFIX: &str = "Another language model started to solve this problem";

/// The frame around a summary of ours. Codex takes text in an `external_` frame for injected context: it is
/// sent, but Codex's next compaction does not keep it as the user's words (Codex 0.169).
const OURS: (&str, &str) = ("<external_epitome>\n", "\n</external_epitome>");

/// The summary of ours in the text of a user message, if it holds one.
pub fn own_summary(text: &str) -> Option<&str> {
    text.strip_prefix(OURS.0)?.strip_suffix(OURS.1)
}

/// The text of a user message that holds a summary of ours.
pub fn framed_summary(summary: &str) -> String {
    format!("{}{summary}{}", OURS.0, OURS.1)
}

/// Fields of an item that are not sent: they belong to its place in the rollout.
pub(super) const NOT_SENT: [&str; 2] = ["metadata", "internal_chat_message_metadata_passthrough"];

#[derive(Debug)]
pub(super) struct Live {
    pub(super) message: Message,
    /// The record it was made from.
    pub(super) record: u32,
    /// The range of its JSON in the source; `None` if we made it.
    pub(super) at: Option<Range<u64>>,
    pub(super) pair: Pair,
    pub(super) starts_turn: bool,
}

/// Which calls and outputs Codex pairs with each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pair {
    None,
    Call(Family, Arc<str>),
    Output(Family, Arc<str>),
}

/// Outputs answer only calls of their own family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Family {
    Function,
    Custom,
    Search,
}

pub(super) struct Item {
    pub(super) message: Message,
    pub(super) pair: Pair,
    /// Whether it is a summary of ours: to Codex it is injected context, and begins no turn.
    pub(super) ours: bool,
}

/// The kind of a message as Codex sees it, by its texts.
pub(super) fn kind_of(role: Role, parts: &[Part]) -> Kind {
    match role {
        Role::System => Kind::Context,
        Role::User if texts(parts).any(is_contextual) => Kind::Context,
        Role::User if texts(parts).next().is_some_and(|it| it.starts_with(SUMMARY_PREFIX)) => Kind::Summary,
        Role::User | Role::Assistant | Role::Tool => Kind::Said,
    }
}

/// The type of an item that another agent sent.
pub(super) const FROM_AGENT: &str = "agent_message";

/// Whether a message from another agent gives a task (Codex 0.169): then it is the prompt of a sub-agent.
/// Other messages between agents are only context.
pub(super) fn is_task(parts: &[Part]) -> bool {
    texts(parts).next().is_some_and(|it| it.starts_with("Message Type: NEW_TASK\n"))
}

fn texts(parts: &[Part]) -> impl Iterator<Item = &str> {
    parts.iter().filter_map(|it| if let Part::Text(text) = it { Some(text.as_str()) } else { None })
}

/// Beginning and end of texts that Codex itself puts into user messages (Codex,
/// `is_contextual_user_message_content`).
const FRAMES: [(&str, &str); 12] = [
    ("# AGENTS.md instructions", "</INSTRUCTIONS>"),
    ("<user_instructions>", "</user_instructions>"),
    ("<environment_context>", "</environment_context>"),
    ("<skill>", "</skill>"),
    ("<user_shell_command>", "</user_shell_command>"),
    ("<turn_aborted>", "</turn_aborted>"),
    ("<subagent_notification>", "</subagent_notification>"),
    ("<codex_internal_context", "</codex_internal_context>"),
    ("<goal_context>", "</goal_context>"),
    ("<recommended_plugins>", "</recommended_plugins>"),
    ("<hook_prompt", "</hook_prompt>"),
    ("<personality_spec>", "</personality_spec>"),
];

/// Whether a text in a user message is one that Codex itself puts there.
pub fn is_contextual(text: &str) -> bool {
    let text = text.trim().as_bytes();
    let starts = |it: &str| text.len() >= it.len() && text[..it.len()].eq_ignore_ascii_case(it.as_bytes());
    let ends = |it: &str| {
        text.len() >= it.len() && text[text.len() - it.len()..].eq_ignore_ascii_case(it.as_bytes())
    };
    if FRAMES.iter().any(|(begin, end)| starts(begin) && ends(end)) {
        return true;
    }
    let Some(rest) = text.strip_prefix(b"<external_") else { return false };
    let Some(end) = rest.iter().position(|it| *it == b'>') else { return false };
    let close = [b"</external_", &rest[..end], b">"].concat();
    text.ends_with(&close)
}

/// A message as response items that Codex accepts in a `replacement_history`. `freeform`: the ids of the
/// calls that take free text. `warnings` gets the parts that this API does not have.
pub(super) fn items(
    message: &Message,
    freeform: &BTreeSet<Arc<str>>,
    warnings: &mut Vec<String>,
) -> Vec<String> {
    let mut out = Vec::new();
    let mut content: Vec<String> = Vec::new();
    let role = match message.role {
        Role::System => "developer",
        Role::Assistant => "assistant",
        Role::User | Role::Tool => "user",
    };
    let flush = |content: &mut Vec<String>, out: &mut Vec<String>| {
        if !content.is_empty() {
            out.push(format!(r#"{{"type":"message","role":"{role}","content":{}}}"#, array(content)));
            content.clear();
        }
    };
    let from_agent = message.parts.iter().any(|it| matches!(it, Part::Opaque(it) if &*it.kind == FROM_AGENT));
    for part in &message.parts {
        match part {
            // The opaque item has these texts already.
            Part::Text(_) if from_agent => {}
            Part::Text(text) if role == "user" && message.kind == Kind::Summary => {
                content.push(text_item("input_text", &framed_summary(text.as_str())));
            }
            Part::Text(text) => {
                let kind = if role == "assistant" { "output_text" } else { "input_text" };
                content.push(text_item(kind, text.as_str()));
            }
            Part::Media(media) => content.push(media_item(media)),
            Part::Opaque(it) if &*it.api == API => match is_item(it) {
                true => {
                    flush(&mut content, &mut out);
                    out.push(it.raw.as_str().to_owned());
                }
                false => content.push(it.raw.as_str().to_owned()),
            },
            Part::Opaque(it) => {
                warnings.push(format!("a block that only {} understands ({}) was left out", it.api, it.kind));
            }
            Part::Reasoning(it) => {
                flush(&mut content, &mut out);
                let summary = match it.text.is_empty() {
                    true => String::new(),
                    false => format!(r#"{{"type":"summary_text","text":{}}}"#, quoted(it.text.as_str())),
                };
                let sealed = it.signature.as_ref().map_or("null".to_owned(), |it| quoted(it.as_str()));
                out.push(format!(
                    r#"{{"type":"reasoning","summary":[{summary}],"encrypted_content":{sealed}}}"#
                ));
            }
            Part::Call(call) => {
                flush(&mut content, &mut out);
                out.push(call_item(call));
            }
            Part::Output(it) => {
                flush(&mut content, &mut out);
                let tag = if freeform.contains(&it.id) {
                    "custom_tool_call_output"
                } else {
                    "function_call_output"
                };
                let (id, value) = (quoted(&it.id), output_value(it));
                out.push(format!(r#"{{"type":"{tag}","call_id":{id},"output":{value}}}"#));
            }
        }
    }
    flush(&mut content, &mut out);
    out
}

/// The value of the `output` field.
pub(super) fn output_value(output: &Output) -> String {
    if output.media.is_empty() {
        return quoted(output.text.as_str());
    }
    let mut list = vec![text_item("input_text", output.text.as_str())];
    list.extend(output.media.iter().map(media_item));
    array(&list)
}

fn text_item(kind: &str, text: &str) -> String {
    format!(r#"{{"type":"{kind}","text":{}}}"#, quoted(text))
}

fn media_item(media: &Media) -> String {
    let url = url_of(media);
    match media.kind {
        MediaKind::Audio => format!(r#"{{"type":"input_audio","audio_url":{}}}"#, quoted(&url)),
        MediaKind::Image | MediaKind::Pdf | MediaKind::Other => {
            format!(r#"{{"type":"input_image","image_url":{}}}"#, quoted(&url))
        }
    }
}

fn call_item(call: &Call) -> String {
    let (id, input) = (quoted(&call.id), quoted(call.input.as_str()));
    if call.freeform {
        let name = quoted(&call.name);
        return format!(r#"{{"type":"custom_tool_call","call_id":{id},"name":{name},"input":{input}}}"#);
    }
    let server = call.name.strip_prefix("mcp__").and_then(|it| it.split_once("__"));
    let (name, namespace) = match server {
        Some((server, tool)) => {
            (quoted(tool), format!(r#","namespace":{}"#, quoted(&format!("mcp__{server}"))))
        }
        None => (quoted(&call.name), String::new()),
    };
    format!(r#"{{"type":"function_call","name":{name}{namespace},"arguments":{input},"call_id":{id}}}"#)
}

/// Whether an opaque part is an item of its own, not a piece of a message's content.
fn is_item(it: &Opaque) -> bool {
    !it.kind.is_empty() && !it.kind.starts_with("input_") && !it.kind.starts_with("encrypted_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_what_the_client_put_there() {
        let kind = |text: &str| kind_of(Role::User, &[Part::Text(text.into())]);
        for (text, expected) in [
            ("hello", Kind::Said),
            ("# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>", Kind::Context),
            (" <ENVIRONMENT_CONTEXT>cwd</environment_context>\n", Kind::Context),
            ("<environment_context> is what?", Kind::Said),
            ("see <environment_context>x</environment_context>", Kind::Said),
            ("<external_a>1</external_a>", Kind::Context),
            ("<external_a>1</external_b>", Kind::Said),
            ("<turn_aborted>\nx\n</turn_aborted>", Kind::Context),
            ("Another language model started to solve this problem and …\nS", Kind::Summary),
            ("<external_", Kind::Said),
            ("日本", Kind::Said),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }
}
