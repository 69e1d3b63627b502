//! One response item as a message, and a message as response items.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use crate::cursor::Cursor;
use crate::raw::{Fields, array, list, quoted, text};
use crate::wire::scan;
use crate::{is_cleared, refusal};
use history::{Call, Kind, Media, MediaKind, Message, Opaque, Output, Part, Reasoning, Role, Text};

/// Whose opaque parts these are.
pub(super) const API: &str = "openai-responses";

/// How Codex's own summary begins (Codex since 0.58, `summary_prefix`).
pub(super) const SUMMARY_PREFIX: &str = "Another language model started to solve this problem";

/// Frames a summary of ours. Codex takes what stands in an `external_` frame for injected context: it is sent, but its
/// own next compaction does not keep it as if the user had said it (Codex 0.169).
const OURS: (&str, &str) = ("<external_epitome>\n", "\n</external_epitome>");

/// The summary of ours that a text in the user's place holds.
pub fn own_summary(text: &str) -> Option<&str> {
    text.strip_prefix(OURS.0)?.strip_suffix(OURS.1)
}

/// The text in the user's place that holds a summary of ours.
pub fn framed_summary(summary: &str) -> String {
    format!("{}{summary}{}", OURS.0, OURS.1)
}

/// Fields of an item that are not sent, and belong to its place in the rollout.
pub(super) const NOT_SENT: [&str; 2] = ["metadata", "internal_chat_message_metadata_passthrough"];

#[derive(Debug)]
pub(super) struct Live {
    pub(super) message: Message,
    /// The record it was made from.
    pub(super) record: u32,
    /// Where its JSON stands in the source; `None` if it was made by a rule and stands nowhere.
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

/// A response item, read.
pub(super) struct Item {
    pub(super) message: Message,
    pub(super) pair: Pair,
    /// A summary of ours: to Codex it is injected context, and begins no turn.
    pub(super) ours: bool,
}

/// Reads a response item. `tag` is its type where it stands around the item (`{"Message":{…}}`), else the item says it.
/// `Ok(None)` is an item that is not sent to the model; `Err` says what was found instead of an item.
pub(super) fn parse(body: &str, tag: Option<&str>) -> Result<Option<Item>, String> {
    let fields = Fields::of(body).ok_or("expected a response item, found no object")?;
    let tag = match tag {
        Some(tag) => snake(tag),
        None => fields.text("type").ok_or("expected a response item with a type, found none")?,
    };
    let id = fields.text("id");
    let call_id: Option<Arc<str>> = fields.text("call_id").map(Into::into);
    // As it is sent: without what only the rollout needs.
    let sealed = || opaque(&tag, &fields.with(&NOT_SENT.map(|it| (it, None))));
    let mut kind = Kind::Said;
    let mut pair = Pair::None;
    let mut ours = false;
    let (role, mut parts) = match (tag.as_str(), call_id) {
        ("message", _) => match message(&fields)? {
            Some(it) => {
                kind = it.1;
                (it.0, it.2)
            }
            None => return Ok(None),
        },
        // What another agent sent: input to the model, but not the user's words.
        ("agent_message", _) => {
            kind = Kind::Context;
            (Role::User, content(&fields))
        }
        ("reasoning", _) => (Role::Assistant, vec![reasoning(&fields)]),
        ("function_call" | "custom_tool_call" | "local_shell_call", Some(call)) => {
            let (family, part) = tool_call(&tag, &fields, &call);
            pair = Pair::Call(family, call);
            (Role::Assistant, vec![part])
        }
        ("function_call_output" | "custom_tool_call_output", Some(call)) => {
            let family = if tag == "function_call_output" { Family::Function } else { Family::Custom };
            pair = Pair::Output(family, call.clone());
            (Role::Tool, vec![Part::Output(output(&fields, &call))])
        }
        // Tool definitions on demand: no text could stand in their place, so they are kept or dropped whole.
        ("tool_search_call", call) => {
            if let Some(call) = call {
                pair = Pair::Call(Family::Search, call);
            }
            (Role::Assistant, vec![sealed()])
        }
        ("tool_search_output", call) => {
            if let Some(call) = call
                && fields.text("execution").as_deref() != Some("server")
            {
                pair = Pair::Output(Family::Search, call);
            }
            (Role::Tool, vec![sealed()])
        }
        ("compaction" | "compaction_summary" | "context_compaction", _) => {
            kind = Kind::Summary;
            (Role::Assistant, vec![sealed()])
        }
        ("additional_tools", _) => {
            kind = Kind::Context;
            (Role::System, vec![sealed()])
        }
        ("ghost_snapshot" | "compaction_trigger" | "other", _) => return Ok(None),
        (
            "function_call"
            | "custom_tool_call"
            | "local_shell_call"
            | "function_call_output"
            | "custom_tool_call_output",
            None,
        ) => return Err(format!("expected a {tag} with a call_id, found none")),
        // web_search_call, image_generation_call, and what is newer than this reader.
        _ => (Role::Assistant, vec![sealed()]),
    };
    if let (Role::User, [Part::Text(text)]) = (role, parts.as_mut_slice())
        && let Some(inner) = own_summary(text.as_str())
    {
        (*text, kind, ours) = (inner.into(), Kind::Summary, true);
    }
    let message = Message { id: id.map(Into::into), ..Message::new(role, kind, parts) };
    Ok(Some(Item { message, pair, ours }))
}

/// Role, kind and parts; nothing where Codex drops the message from its history.
fn message(fields: &Fields) -> Result<Option<(Role, Kind, Vec<Part>)>, String> {
    let parts = content(fields);
    let role = match fields.text("role").as_deref() {
        // The system prompt travels elsewhere.
        Some("system") => return Ok(None),
        Some("developer") => Role::System,
        Some("assistant") => Role::Assistant,
        Some("user") => Role::User,
        other => {
            return Err(format!("expected a message by user, assistant or developer, found {other:?}"));
        }
    };
    if parts.is_empty() {
        return Ok(None);
    }
    let kind = match kind_of(role, &parts) {
        Kind::Said if role == Role::User => recorded_kind(fields),
        kind => kind,
    };
    Ok(Some((role, kind, parts)))
}

fn tool_call(tag: &str, fields: &Fields, call: &Arc<str>) -> (Family, Part) {
    let name = fields.text("name").unwrap_or_default();
    match tag {
        "custom_tool_call" => {
            let input = fields.text("input").unwrap_or_default();
            (Family::Custom, make_call(call, name.into(), input.into(), true))
        }
        "local_shell_call" => {
            let input = compacted(fields.get("action").unwrap_or("{}"));
            (Family::Function, make_call(call, "local_shell".into(), (&*input).into(), false))
        }
        _ => {
            let name = match fields.text("namespace") {
                Some(namespace) if namespace.starts_with("mcp__") => format!("{namespace}__{name}"),
                Some(_) | None => name,
            };
            let input = fields.text("arguments").unwrap_or_default();
            (Family::Function, make_call(call, name.into(), (&*compacted(&input)).into(), false))
        }
    }
}

fn reasoning(fields: &Fields) -> Part {
    let texts: Vec<String> = ["summary", "content"]
        .into_iter()
        .filter_map(|it| fields.list(it))
        .flatten()
        .filter_map(|it| Fields::of(it).and_then(|it| it.text("text")))
        .collect();
    let signature = fields.text("encrypted_content").map(Into::into);
    Part::Reasoning(Reasoning { text: texts.join("\n").into(), signature })
}

/// What Codex takes a message for by its texts.
pub(super) fn kind_of(role: Role, parts: &[Part]) -> Kind {
    let texts =
        || parts.iter().filter_map(|it| if let Part::Text(text) = it { Some(text.as_str()) } else { None });
    match role {
        Role::System => Kind::Context,
        Role::User if texts().any(is_contextual) => Kind::Context,
        Role::User if texts().next().is_some_and(|it| it.starts_with(SUMMARY_PREFIX)) => Kind::Summary,
        Role::User | Role::Assistant | Role::Tool => Kind::Said,
    }
}

/// What Codex 0.169 notes beside a user message about where it came from; older ones say nothing.
fn recorded_kind(fields: &Fields) -> Kind {
    let noted = fields.object("internal_chat_message_metadata_passthrough");
    let kinds = noted.and_then(|it| it.list("content_item_kinds")).unwrap_or_default();
    let kinds: Vec<String> = kinds.into_iter().filter_map(text).collect();
    if kinds.iter().any(|it| it == "compaction.summary") {
        return Kind::Summary;
    }
    let by_user = |it: &String| it.starts_with("user.") || it == "unknown";
    if kinds.is_empty() || kinds.iter().any(by_user) { Kind::Said } else { Kind::Context }
}

/// Begin and end of what Codex itself puts into user messages (Codex, `is_contextual_user_message_content`).
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

/// Whether a text in the user's place is what Codex itself puts there.
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

fn content(fields: &Fields) -> Vec<Part> {
    let Some(raw) = fields.get("content") else { return vec![] };
    match list(raw) {
        Some(list) => list.into_iter().map(part).collect(),
        None => text(raw).map(|it| Part::Text(it.into())).into_iter().collect(),
    }
}

fn part(raw: &str) -> Part {
    let Some(fields) = Fields::of(raw) else { return opaque("", raw) };
    let (tag, fields) = match fields.text("type") {
        Some(tag) => (tag, fields),
        // `{"OutputText":{"text":…}}`
        None => match fields.iter().next().and_then(|(name, body)| Some((snake(name), Fields::of(body)?))) {
            Some(inner) => inner,
            None => return opaque("", raw),
        },
    };
    let media = |kind, mime: &str, data: String| Part::Media(media(kind, mime, &data));
    match tag.as_str() {
        "input_text" | "output_text" | "text" => Part::Text(fields.text("text").unwrap_or_default().into()),
        "refusal" => Part::Text(fields.text("refusal").unwrap_or_default().into()),
        "input_image" => match fields.text("image_url") {
            Some(url) => media(MediaKind::Image, "", url),
            None => opaque(&tag, raw),
        },
        "input_audio" => match fields.text("audio_url") {
            Some(url) => media(MediaKind::Audio, "", url),
            None => opaque(&tag, raw),
        },
        _ => opaque(&tag, raw),
    }
}

/// A data URL taken apart; any other URL stays one.
fn media(kind: MediaKind, mime: &str, url: &str) -> Media {
    let data = url.strip_prefix("data:").and_then(|it| it.split_once(";base64,"));
    let (mime, data) = data.unwrap_or((mime, url));
    Media { kind, mime: mime.into(), data: data.into(), size: None }
}

fn opaque(tag: &str, raw: &str) -> Part {
    Part::Opaque(Opaque { api: API.into(), kind: tag.into(), raw: (&*compacted(raw)).into() })
}

pub(super) fn make_call(id: &Arc<str>, name: Arc<str>, input: Text, freeform: bool) -> Part {
    Part::Call(Call { id: id.clone(), name, input, freeform, signature: None })
}

fn output(fields: &Fields, call: &Arc<str>) -> Output {
    let raw = fields.get("output").unwrap_or("\"\"");
    let mut texts = Vec::new();
    let mut found = Vec::new();
    let mut failed = false;
    if let Some(list) = list(raw) {
        for it in list.into_iter().map(part) {
            match it {
                Part::Text(text) => texts.push(text.as_str().to_owned()),
                Part::Media(it) => found.push(it),
                Part::Opaque(it) => texts.push(it.raw.as_str().to_owned()),
                Part::Reasoning(_) | Part::Call(_) | Part::Output(_) => {}
            }
        }
    } else if let Some(object) = Fields::of(raw) {
        // Before 2025-10 an object: {content, success}.
        texts.push(object.text("content").unwrap_or_else(|| compacted(raw).into_owned()));
        failed = object.get("success") == Some("false");
    } else {
        texts.push(text(raw).unwrap_or_else(|| raw.to_owned()));
    }
    let text = texts.join("\n");
    let said = output_of(&text, &|it| it.into());
    let name = fields.text("name").map(Into::into);
    Output { id: call.clone(), name, failed: failed || said.failed, media: found.into(), ..said }
}

/// An output that is nothing but text, kept as `keep` leaves it; whose it is has to be said still.
pub(super) fn output_of(text: &str, keep: &dyn Fn(&str) -> Text) -> Output {
    let refusal = refusal::codex(text).map(Box::new);
    Output {
        id: "".into(),
        name: None,
        failed: refusal.is_some() || says_failed(text),
        cleared: is_cleared(text) || text == "Output exceeded the available model context and was truncated",
        text: keep(text),
        media: [].into(),
        exit: None,
        refusal,
    }
}

/// Whether an output says itself that the call failed: an exit code that is not 0 where Codex writes it (its head,
/// or `metadata` of the older JSON), or one of Codex's own refusals.
fn says_failed(text: &str) -> bool {
    const REFUSALS: [&str; 7] = [
        "aborted",
        "execution error:",
        "exec_command failed",
        "failed in sandbox",
        "apply_patch verification failed",
        "unsupported call",
        "tool call error",
    ];
    if REFUSALS.iter().any(|it| text.starts_with(it)) {
        return true;
    }
    if text.starts_with("{\"output\":") || text.starts_with("{\"metadata\":") {
        let code = Fields::of(text).and_then(|it| it.object("metadata")).and_then(|it| it.get("exit_code"));
        return code.is_some_and(|it| it != "0");
    }
    text.lines()
        .take(6)
        .take_while(|it| !it.starts_with("Output:"))
        .filter_map(|it| {
            it.strip_prefix("Process exited with code ").or_else(|| it.strip_prefix("Exit code: "))
        })
        .any(|it| it.trim() != "0")
}

/// JSON without white space between its tokens; what is not JSON stays as it is.
pub(super) fn compacted(raw: &str) -> Cow<'_, str> {
    match Cursor::whole(raw.as_bytes(), Cursor::value_tight) {
        Some((json, true)) => Cow::Borrowed(json),
        Some((json, false)) => Cow::Owned(scan::compacted(json)),
        None => Cow::Borrowed(raw),
    }
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for it in name.chars() {
        if it.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(it.to_ascii_lowercase());
    }
    out
}

/// A message as response items that Codex accepts in a `replacement_history`. `freeform` tells whether the call that
/// an output answers was one. Parts that this API does not have are named in `warnings`.
pub(super) fn items(
    message: &Message,
    freeform: &dyn Fn(&str) -> bool,
    warnings: &mut Vec<String>,
) -> Vec<String> {
    let mut out = Vec::new();
    let mut said: Vec<String> = Vec::new();
    let role = match message.role {
        Role::System => "developer",
        Role::Assistant => "assistant",
        Role::User | Role::Tool => "user",
    };
    let flush = |said: &mut Vec<String>, out: &mut Vec<String>| {
        if !said.is_empty() {
            out.push(format!(r#"{{"type":"message","role":"{role}","content":{}}}"#, array(said)));
            said.clear();
        }
    };
    for part in &message.parts {
        match part {
            Part::Text(text) if role == "user" && message.kind == Kind::Summary => {
                said.push(text_item(false, &framed_summary(text.as_str())));
            }
            Part::Text(text) => said.push(text_item(role == "assistant", text.as_str())),
            Part::Media(media) => said.push(media_item(media)),
            Part::Opaque(it) if &*it.api == API => match is_item(it) {
                true => {
                    flush(&mut said, &mut out);
                    out.push(it.raw.as_str().to_owned());
                }
                false => said.push(it.raw.as_str().to_owned()),
            },
            Part::Opaque(it) => {
                warnings.push(format!("a block that only {} understands ({}) was left out", it.api, it.kind));
            }
            Part::Reasoning(it) => {
                flush(&mut said, &mut out);
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
                flush(&mut said, &mut out);
                out.push(call_item(call));
            }
            Part::Output(it) => {
                flush(&mut said, &mut out);
                let tag = if freeform(&it.id) { "custom_tool_call_output" } else { "function_call_output" };
                let (id, value) = (quoted(&it.id), output_value(it));
                out.push(format!(r#"{{"type":"{tag}","call_id":{id},"output":{value}}}"#));
            }
        }
    }
    flush(&mut said, &mut out);
    out
}

/// What stands in the `output` field.
pub(super) fn output_value(output: &Output) -> String {
    if output.media.is_empty() {
        return quoted(output.text.as_str());
    }
    let mut list = vec![text_item(false, output.text.as_str())];
    list.extend(output.media.iter().map(media_item));
    array(&list)
}

fn text_item(said: bool, text: &str) -> String {
    let tag = if said { "output_text" } else { "input_text" };
    format!(r#"{{"type":"{tag}","text":{}}}"#, quoted(text))
}

fn media_item(media: &Media) -> String {
    let url = match media.data.contains(':') {
        true => media.data.to_string(),
        false => format!("data:{};base64,{}", media.mime, media.data),
    };
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

/// Whether an opaque part is an item of its own and not a piece of a message's content.
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

    #[test]
    fn knows_failures() {
        for (text, failed) in [
            (
                "Chunk ID: 1\nWall time: 0 seconds\nProcess exited with code 0\nOutput:\nProcess exited with code 3",
                false,
            ),
            ("Chunk ID: 1\nWall time: 0 seconds\nProcess exited with code 3\nOutput:\n", true),
            ("Exit code: 1\nWall time: 0\nOutput:\nx", true),
            (r#"{"output":"x","metadata":{"exit_code":0,"duration_seconds":0.1}}"#, false),
            (r#"{"output":"x","metadata":{"exit_code":101,"duration_seconds":0.1}}"#, true),
            ("Plan updated", false),
            ("aborted", true),
            ("", false),
        ] {
            assert_eq!(says_failed(text), failed, "{text}");
        }
    }
}
