//! The messages that OpenCode makes of one element.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::CLEARED;
use crate::agents::token_count;
use crate::wire::OPENCODE_MARKER;
use crate::{is_cleared, refusal};
use history::{Call, Kind, Media, MediaKind, Message, Output, Part, Reasoning, Role, Text, Usage};

/// A message of the history and where it comes from.
pub(super) struct LiveElement {
    pub message: Message,
    /// The index of the element.
    pub record: usize,
    /// For each part of the message, its index among the element's parts.
    pub parts: Vec<usize>,
}

/// A user element. Text that the client added (`synthetic`: files read on mention, plugin notes, "continue")
/// is separated from the user's words, so one element can become several messages.
pub(super) fn user(record: usize, info: &Value, parts: &[Value], out: &mut Vec<LiveElement>) {
    let mut open: Option<LiveElement> = None;
    for (index, part) in parts.iter().enumerate() {
        let Some((kind, part)) = user_part(part) else { continue };
        if let Some(done) = open.take_if(|it| it.message.kind != kind) {
            out.push(done);
        }
        let live = open.get_or_insert_with(|| {
            let mut message = Message::new(Role::User, kind, Vec::new());
            message.id = info["id"].as_str().map(Into::into);
            message.at = info["time"]["created"].as_i64();
            LiveElement { message, record, parts: Vec::new() }
        });
        live.message.parts.push(part);
        live.parts.push(index);
    }
    out.extend(open);
}

fn user_part(part: &Value) -> Option<(Kind, Part)> {
    let text = |it: &str| Part::Text(Text::new(it));
    match part["type"].as_str()? {
        "text" if part["ignored"] == true => None,
        "text" => {
            let words = part["text"].as_str().filter(|it| !it.is_empty())?;
            let kind = match part["synthetic"] == true {
                true if is_continue(part, words) => Kind::Continue,
                true => Kind::Context,
                false => Kind::Said,
            };
            Some((kind, text(words)))
        }
        // Their content was put into a text part when they were attached.
        "file" if matches!(part["mime"].as_str(), Some("text/plain" | "application/x-directory")) => None,
        "file" => Some((Kind::Said, file(part))),
        "compaction" => Some((Kind::Marker, text(OPENCODE_MARKER))),
        "subtask" => Some((Kind::Context, text("The following tool was executed by the user"))),
        _ => None,
    }
}

/// OpenCode's own "go on" after an automatic compaction: known by its metadata, or in old sessions by its
/// beginning.
fn is_continue(part: &Value, text: &str) -> bool {
    part["metadata"]["compaction_continue"] == true || text.starts_with("Continue if you have next steps")
}

fn file(part: &Value) -> Part {
    media(part).map(Part::Media).unwrap_or_else(|| {
        let mime = part["mime"].as_str().unwrap_or_default();
        let name = part["filename"].as_str().unwrap_or("file");
        Part::Text(Text::new(format!("[Attached {mime}: {name}]")))
    })
}

fn media(part: &Value) -> Option<Media> {
    let mime = part["mime"].as_str().unwrap_or_default();
    let url = part["url"].as_str()?;
    let data = match url.strip_prefix("data:") {
        Some(rest) => rest.split_once(',')?.1,
        None if url.starts_with("http://") || url.starts_with("https://") => url,
        None => return None,
    };
    Some(Media { kind: MediaKind::of_mime(mime), mime: mime.into(), data: data.into(), size: None })
}

/// An assistant element: for each step a message, and one with the outputs of its tools. With `open`, for the
/// last element, a tool that is still running has no output yet; elsewhere OpenCode says that it was
/// interrupted.
pub(super) fn assistant(
    record: usize,
    info: &Value,
    parts: &[Value],
    same_model: bool,
    open: bool,
    out: &mut Vec<LiveElement>,
) {
    let unsent = |it: &Value| matches!(it["type"].as_str(), Some("step-start" | "reasoning"));
    // Of failed replies, only one that the user stopped is sent, if it has said or called anything.
    let stopped = info["error"]["name"] == "MessageAbortedError" && !parts.iter().all(unsent);
    if !info["error"].is_null() && !stopped {
        return;
    }
    let kind = if is_completed(info) { Kind::Summary } else { Kind::Said };
    let make = |role, at: &Value| {
        let mut message = Message::new(role, kind, Vec::new());
        if role == Role::Tool {
            message.kind = Kind::Said;
        }
        message.id = info["id"].as_str().map(Into::into);
        message.at = at.as_i64();
        LiveElement { message, record, parts: Vec::new() }
    };
    // Each part of an OpenAI reasoning item repeats the item's encrypted content; it is sent once (AI SDK).
    let mut items: HashSet<&str> = HashSet::new();
    // A program that hides secrets can give several calls the same id. They are told apart, since outputs are found by it.
    let mut ids: HashSet<&str> = HashSet::new();
    let first = out.len();
    let (mut reply, mut outputs) =
        (make(Role::Assistant, &info["time"]["created"]), make(Role::Tool, &Value::Null));
    for (index, part) in parts.iter().enumerate() {
        match part["type"].as_str() {
            Some("step-start") => {
                flush(&mut reply, make(Role::Assistant, &info["time"]["created"]), out);
                flush(&mut outputs, make(Role::Tool, &Value::Null), out);
            }
            Some("step-finish") => reply.message.usage = usage(&part["tokens"]),
            Some("text") => {
                let text = part["text"].as_str().unwrap_or_default();
                if !text.is_empty() {
                    reply.push(index, Part::Text(Text::new(text)));
                }
            }
            Some("reasoning") => {
                let text = Text::new(part["text"].as_str().unwrap_or_default());
                let repeated = item_id(&part["metadata"]).is_some_and(|it| !items.insert(it));
                let signature = if same_model && !repeated { signature(&part["metadata"]) } else { None };
                if !text.is_empty() || signature.is_some() {
                    reply.push(index, Part::Reasoning(Reasoning { text, signature }));
                }
            }
            Some("tool") => {
                let id = part["callID"].as_str().filter(|it| !it.is_empty() && ids.insert(it));
                let id = id.map_or_else(|| format!("call-{record}-{index}").into(), Into::into);
                let (call, output) = tool(part, id, same_model, open);
                reply.push(index, Part::Call(call));
                if let Some(output) = output {
                    outputs.message.at = part["state"]["time"]["end"].as_i64().or(outputs.message.at);
                    outputs.push(index, Part::Output(output));
                }
            }
            _ => {}
        }
    }
    flush(&mut reply, make(Role::Assistant, &Value::Null), out);
    flush(&mut outputs, make(Role::Tool, &Value::Null), out);
    let last = out[first..].iter_mut().rfind(|it| it.message.role == Role::Assistant);
    if let Some(last) = last.filter(|it| it.message.usage.is_none()) {
        last.message.usage = usage(&info["tokens"]);
    }
    let model: Option<Arc<str>> = info["modelID"].as_str().map(Into::into);
    for it in out[first..].iter_mut().filter(|it| it.message.usage.is_some()) {
        it.message.model.clone_from(&model);
    }
}

impl LiveElement {
    fn push(&mut self, index: usize, part: Part) {
        self.message.parts.push(part);
        self.parts.push(index);
    }
}

fn flush(live: &mut LiveElement, next: LiveElement, out: &mut Vec<LiveElement>) {
    let done = std::mem::replace(live, next);
    if !done.message.parts.is_empty() {
        out.push(done);
    }
}

fn tool(part: &Value, id: Arc<str>, same_model: bool, open: bool) -> (Call, Option<Output>) {
    let state = &part["state"];
    let name = part["tool"].as_str().unwrap_or_default();
    let input =
        if state["input"].is_null() { "{}".to_owned() } else { history::json::compact(&state["input"]) };
    let call = Call {
        id,
        name: name.into(),
        input: Text::new(input),
        freeform: false,
        signature: if same_model { signature(&part["metadata"]) } else { None },
    };
    let say = |text: &str, failed: bool| Output {
        name: Some(name.into()),
        failed,
        cleared: is_cleared(text),
        // Only OpenCode's shell records an exit code; the text does not contain it.
        exit: state["metadata"]["exit"].as_i64().and_then(|it| i32::try_from(it).ok()),
        ..Output::new(call.id.clone(), Text::new(text))
    };
    let output = match state["status"].as_str() {
        Some("completed") if is_compacted(state) => say(CLEARED, false),
        Some("completed") => {
            let mut output = say(state["output"].as_str().unwrap_or_default(), false);
            output.media = state["attachments"].as_array().into_iter().flatten().filter_map(media).collect();
            output
        }
        Some("error")
            if state["metadata"]["interrupted"] == true && state["metadata"]["output"].is_string() =>
        {
            say(state["metadata"]["output"].as_str().unwrap_or_default(), false)
        }
        Some("error") => {
            let error = state["error"].as_str().unwrap_or_default();
            let refusal = refusal::opencode(name, error).map(Box::new);
            Output { refusal, ..say(error, true) }
        }
        _ if open => return (call, None),
        _ => say("[Tool execution was interrupted]", true),
    };
    (call, Some(output))
}

/// Whether `time.compacted` is truthy in JavaScript.
pub(super) fn is_compacted(state: &Value) -> bool {
    !matches!(&state["time"]["compacted"], Value::Null | Value::Bool(false))
        && state["time"]["compacted"].as_f64() != Some(0.0)
}

/// The provider's id of the reasoning item that a part belongs to.
fn item_id(metadata: &Value) -> Option<&str> {
    metadata.as_object()?.values().find_map(|of| of["itemId"].as_str())
}

/// What a provider needs back with its thinking, under the provider's name: a signature or the encrypted
/// text. Copilot's `reasoningOpaque` does not count: it is not charged for (240 steps of GPT-5.4: the
/// reported usage fits to 1 % without it, to 10 % with it).
fn signature(metadata: &Value) -> Option<Box<Text>> {
    const KEYS: [&str; 4] = ["signature", "redactedData", "reasoningEncryptedContent", "thoughtSignature"];
    let providers = metadata.as_object()?;
    let found = providers.values().find_map(|of| KEYS.iter().find_map(|it| of[*it].as_str()))?;
    (!found.is_empty()).then(|| found.into())
}

/// `tokens` of a message or step. Some versions count thinking in `output` and some beside it; `total`, if
/// present, decides. All zeros means that nothing was reported.
pub(crate) fn usage(tokens: &Value) -> Option<Usage> {
    let [input, output, reasoning] = ["input", "output", "reasoning"].map(|it| token_count(&tokens[it]));
    let [cache_read, cache_write] = ["read", "write"].map(|it| token_count(&tokens["cache"][it]));
    let sent = input + cache_read + cache_write;
    let output = match token_count(&tokens["total"]) {
        total if total >= sent + output => total - sent,
        _ if reasoning > output => output + reasoning,
        _ => output,
    };
    (sent > 0 || output > 0).then_some(Usage {
        input,
        output,
        cache_read,
        cache_write,
        cache_write_hour: 0,
        reasoning,
    })
}

/// Whether OpenCode accepts it as a complete summary.
pub(super) fn is_completed(info: &Value) -> bool {
    let is_truthy = |it: &Value| !matches!(it, Value::Null | Value::Bool(false));
    info["role"] == "assistant"
        && info["summary"] == true
        && info["finish"].as_str().is_some_and(|it| !it.is_empty())
        && !is_truthy(&info["error"])
}
