//! Which API's messages a document holds, by its beginning.

use serde_json::Value;

use super::frame::KEYS;
use super::string;
use crate::Format;
use crate::parse::beginning;

/// Top-level keys of documents of other formats: Gemini CLI (`sessionId`, `projectHash`), OpenCode (`info`),
/// SWE-agent (`trajectory`, `replay_config`), Claude Code and pi lines (`uuid`, `parentUuid`).
const FOREIGN: [&str; 8] =
    ["sessionId", "sessionID", "projectHash", "info", "trajectory", "replay_config", "uuid", "parentUuid"];

/// Maximum number of elements that are looked at.
const LOOK_AT: usize = 200;

/// The API whose messages a document holds, by its mended beginning; none if it is not plain messages.
///
/// The first element that only one API could hold decides: `parts` (Gemini); an item `type` besides `role`, or
/// `input_…`/`output_…` content (Responses); `tool_calls`, role `tool`, `function` or `developer`, `image_url`
/// (chat); blocks `tool_use`, `tool_result`, `thinking` and the like (Anthropic). Where all elements are just role
/// and text: the key decides (`contents` Gemini, `input` Responses), then a top-level `system` (Anthropic), a
/// message of role `system` (chat), content made of text blocks (Anthropic), and else it is chat.
pub fn sniff(first: &str) -> Option<Format> {
    let document = beginning::values(first).next()?;
    if FOREIGN.into_iter().any(|it| document.get(it).is_some()) {
        return None;
    }
    let key = KEYS.into_iter().find(|it| document[*it].is_array());
    let elements = key.map_or(&document, |it| &document[it]).as_array()?;
    let (mut system, mut blocks, mut messages) = (false, false, elements.is_empty());
    for it in elements.iter().take(LOOK_AT) {
        match clue(it) {
            Clue::Is(format) => return Some(format),
            Clue::Foreign => return None,
            Clue::Nothing => {}
            Clue::Message => {
                messages = true;
                system |= string(it, "role") == "system";
                blocks |= it.get("content").is_some_and(Value::is_array);
            }
        }
    }
    if !messages {
        return None;
    }
    Some(match key.unwrap_or_default() {
        "contents" => Format::GEMINI,
        "input" => Format::OPENAI_RESPONSES,
        _ if ["system", "anthropic_version"].iter().any(|it| document.get(it).is_some()) => Format::ANTHROPIC,
        _ if system => Format::OPENAI_CHAT,
        _ if blocks => Format::ANTHROPIC,
        _ => Format::OPENAI_CHAT,
    })
}

enum Clue {
    /// Only this API has such an element.
    Is(Format),
    /// Not a message of any API.
    Foreign,
    /// A message of several APIs.
    Message,
    /// Not an object; says nothing.
    Nothing,
}

fn clue(element: &Value) -> Clue {
    if !element.is_object() {
        return Clue::Nothing;
    }
    let (role, kind) = (string(element, "role"), string(element, "type"));
    if element.get("parts").is_some_and(Value::is_array) {
        // OpenCode has `info` beside `parts`.
        let ours =
            element.get("info").is_none() && matches!(role, "" | "user" | "model" | "function" | "system");
        return if ours { Clue::Is(Format::GEMINI) } else { Clue::Foreign };
    }
    if element.get("info").is_some() || element.get("message").is_some() {
        return Clue::Foreign;
    }
    if matches!(role, "tool" | "function" | "developer") && kind.is_empty()
        || ["tool_calls", "function_call", "tool_call_id", "reasoning_content"]
            .iter()
            .any(|it| element.get(it).is_some())
    {
        return Clue::Is(Format::OPENAI_CHAT);
    }
    let item = matches!(kind, "reasoning" | "compaction" | "item_reference")
        || kind.ends_with("_call")
        || kind.ends_with("_call_output");
    // Anthropic's own responses have `type: message` too, but an id that begins with `msg_01`.
    if item || (kind == "message" && !string(element, "id").starts_with("msg_01")) {
        return Clue::Is(Format::OPENAI_RESPONSES);
    }
    if role.is_empty() {
        return Clue::Foreign;
    }
    for block in element.get("content").and_then(Value::as_array).into_iter().flatten() {
        if block.get("cache_control").is_some() {
            return Clue::Is(Format::ANTHROPIC);
        }
        match string(block, "type") {
            "image_url" | "input_audio" | "file" => return Clue::Is(Format::OPENAI_CHAT),
            "input_text" | "output_text" | "input_image" | "input_file" | "summary_text" => {
                return Clue::Is(Format::OPENAI_RESPONSES);
            }
            "tool_use"
            | "tool_result"
            | "thinking"
            | "redacted_thinking"
            | "server_tool_use"
            | "image"
            | "document"
            | "web_search_tool_result"
            | "compaction" => return Clue::Is(Format::ANTHROPIC),
            _ => {}
        }
    }
    Clue::Message
}
