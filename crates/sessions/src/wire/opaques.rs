//! Opaque blocks: which of them the API would accept again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Api, opaque_json, openai_responses, string};
use history::{Message, Opaque, Part, Role};

/// Opaque blocks that `api` would not accept (another API's, broken ones, halves of pairs) as (message,
/// part), and the ids that the others use.
pub(super) fn dropped(messages: &[Message], api: Api) -> (HashSet<(usize, usize)>, HashSet<Arc<str>>) {
    let (mut dropped, mut used) = (HashSet::new(), HashSet::new());
    // Calls without an answer so far.
    let mut open: HashMap<Pair, (usize, usize)> = HashMap::new();
    for (number, message) in messages.iter().enumerate() {
        if api == Api::Anthropic {
            // Both halves are in one message (Anthropic documentation, "Web search").
            dropped.extend(open.drain().map(|it| it.1));
        }
        for (index, part) in message.parts.iter().enumerate() {
            let at = (number, index);
            let opaque = match part {
                Part::Opaque(opaque) => opaque,
                Part::Output(_) if api == Api::Anthropic => {
                    dropped.extend(open.drain().map(|it| it.1));
                    continue;
                }
                Part::Output(_) | Part::Text(_) | Part::Reasoning(_) | Part::Call(_) | Part::Media(_) => {
                    continue;
                }
            };
            let fits = match half(opaque, message.role, api) {
                Half::Unfit => false,
                Half::Whole => true,
                Half::Call(pair) => {
                    let new = used.insert(pair.id.as_str().into());
                    if new {
                        open.insert(pair, at);
                    }
                    new
                }
                Half::Answer(pair) => open.remove(&pair).is_some(),
            };
            if !fits {
                dropped.insert(at);
            }
        }
    }
    dropped.extend(open.into_values());
    (dropped, used)
}

/// What a call and its answer have in common.
#[derive(PartialEq, Eq, Hash)]
struct Pair {
    tool: String,
    id: String,
}

enum Half {
    Unfit,
    Whole,
    Call(Pair),
    Answer(Pair),
}

/// What an opaque block is to `api`.
fn half(opaque: &Opaque, role: Role, api: Api) -> Half {
    let raw = opaque_json(opaque).and_then(|it| serde_json::from_str::<serde_json::Value>(&it).ok());
    let Some(value) = raw.filter(|_| *opaque.api == *api.format().name()) else { return Half::Unfit };
    let kind = string(&value, "type");
    let id = |key: &str| string(&value, key).to_string();
    let assistant = role == Role::Assistant;
    match api {
        // Gemini tells parts apart by their key; opaque ones with a key that we read as a part would break
        // pairs.
        Api::Gemini => {
            let known = ["executableCode", "codeExecutionResult"];
            let fields = value.as_object();
            let only_known = fields.is_some_and(|it| {
                it.len() == 1 && it.iter().all(|(key, it)| known.contains(&key.as_str()) && it.is_object())
            });
            if only_known { Half::Whole } else { Half::Unfit }
        }
        _ if kind.is_empty() || *opaque.kind != *kind => Half::Unfit,
        Api::Anthropic => match kind {
            "redacted_thinking" if assistant && !id("data").is_empty() => Half::Whole,
            "compaction" if assistant => Half::Whole,
            // Readers leave only attachments opaque that the provider keeps; any other of these is broken.
            "image" | "document" if !assistant && by_id(value.get("source")) => Half::Whole,
            "search_result" | "container_upload" if !assistant => Half::Whole,
            "server_tool_use" | "mcp_tool_use" if assistant => {
                Half::Call(Pair { tool: String::new(), id: id("id") })
            }
            _ if assistant && kind != "tool_result" && kind.ends_with("_tool_result") => {
                Half::Answer(Pair { tool: String::new(), id: id("tool_use_id") })
            }
            _ => Half::Unfit,
        },
        Api::OpenAiChat => match kind {
            "file" if !assistant && role != Role::System && by_id(value.get("file")) => Half::Whole,
            _ => Half::Unfit,
        },
        Api::OpenAiResponses => match kind {
            "message" | "reasoning" | "function_call" | "function_call_output" => Half::Unfit,
            "custom_tool_call" | "custom_tool_call_output" => Half::Unfit,
            _ if openai_responses::is_content(opaque) => {
                if !assistant && by_id(Some(&value)) {
                    Half::Whole
                } else {
                    Half::Unfit
                }
            }
            _ if id("call_id").is_empty() => Half::Whole,
            _ => {
                let tool = kind.trim_end_matches("_output").trim_end_matches("_call").to_string();
                let pair = Pair { tool, id: id("call_id") };
                if kind.ends_with("_output") { Half::Answer(pair) } else { Half::Call(pair) }
            }
        },
    }
}

/// Whether the provider keeps an attachment, under an id.
fn by_id(value: Option<&serde_json::Value>) -> bool {
    value.is_some_and(|it| !string(it, "file_id").is_empty())
}
