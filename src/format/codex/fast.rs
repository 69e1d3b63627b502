//! The lines that make up nearly all of a rollout, read in one pass. Whatever is not exactly as expected here is left to
//! the reader that takes everything ([`super::rollout`]); where both read a line, they read the same.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::items::{Family, Item, Pair, compacted, kind_of, make_call, output_of};
use crate::format::derive;
use crate::format::raw::Str;
use crate::history::{Kind, Message, Part, Role};

/// A line: an item, or nothing that a replay needs.
pub(super) struct Fast {
    pub(super) ordinal: Option<u64>,
    pub(super) at: Option<i64>,
    pub(super) item: Option<Item>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    timestamp: Option<Str<'a>>,
    ordinal: Option<u64>,
    #[serde(borrow, rename = "type")]
    tag: Str<'a>,
    #[serde(borrow)]
    payload: Payload<'a>,
}

#[derive(Deserialize)]
struct Payload<'a> {
    #[serde(borrow, rename = "type")]
    tag: Str<'a>,
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    role: Option<Str<'a>>,
    #[serde(borrow)]
    call_id: Option<Str<'a>>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
    namespace: Option<IgnoredAny>,
    #[serde(borrow)]
    arguments: Option<Str<'a>>,
    #[serde(borrow)]
    input: Option<Str<'a>>,
    #[serde(borrow)]
    output: Option<Str<'a>>,
    #[serde(borrow)]
    content: Option<Vec<Block<'a>>>,
    model_context_window: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    tag: Str<'a>,
    #[serde(borrow)]
    text: Str<'a>,
}

/// Events that a replay goes by.
const EVENTS: [&str; 9] = [
    "task_started",
    "turn_started",
    "task_complete",
    "turn_complete",
    "turn_aborted",
    "thread_rolled_back",
    "user_message",
    "item_completed",
    "token_count",
];

/// Reads a line, if it is one of the usual ones.
pub(super) fn look(text: &str) -> Option<Fast> {
    let line: Line = serde_json::from_str(text).ok()?;
    let it = line.payload;
    let item = match line.tag.as_str() {
        "event_msg" if it.model_context_window.is_none() && !EVENTS.contains(&it.tag.as_str()) => None,
        "response_item" => Some(item(it)?),
        _ => return None,
    };
    let at = line.timestamp.and_then(|it| derive::parse_time(it.as_str()));
    Some(Fast { ordinal: line.ordinal, at, item })
}

fn item(it: Payload<'_>) -> Option<Item> {
    let text = |it: &Option<Str<'_>>| it.as_ref().map_or(String::new(), |it| it.as_str().to_owned());
    let (role, parts, pair) = match (it.tag.as_str(), &it.call_id) {
        ("message", _) if it.role.as_ref()?.as_str() == "assistant" => {
            let blocks = it.content?;
            let is_text = |it: &Block| matches!(it.tag.as_str(), "output_text" | "input_text" | "text");
            if blocks.is_empty() || !blocks.iter().all(is_text) {
                return None;
            }
            let parts = blocks.iter().map(|it| Part::Text(it.text.as_str().into())).collect();
            (Role::Assistant, parts, Pair::None)
        }
        ("function_call", Some(call)) if it.namespace.is_none() => {
            let input = compacted(it.arguments.as_ref().map_or("", Str::as_str));
            let part = make_call(call.as_str(), it.name.as_ref().map_or("", Str::as_str), &input, false);
            (Role::Assistant, vec![part], Pair::Call(Family::Function, call.as_str().to_owned()))
        }
        ("custom_tool_call", Some(call)) => {
            let part =
                make_call(call.as_str(), &text(&it.name), it.input.as_ref().map_or("", Str::as_str), true);
            (Role::Assistant, vec![part], Pair::Call(Family::Custom, call.as_str().to_owned()))
        }
        (tag @ ("function_call_output" | "custom_tool_call_output"), Some(call)) => {
            let family = if tag == "function_call_output" { Family::Function } else { Family::Custom };
            let name = it.name.as_ref().map(|it| it.as_str().into());
            let part = Part::Output(output_of(call.as_str(), name, it.output.as_ref()?.as_str()));
            (Role::Tool, vec![part], Pair::Output(family, call.as_str().to_owned()))
        }
        _ => return None,
    };
    let kind = kind_of(role, &parts);
    debug_assert_eq!(kind, Kind::Said);
    let id = it.id.map(|it| it.as_str().into());
    Some(Item { message: Message { id, ..Message::new(role, kind, parts) }, pair, ours: false })
}

#[cfg(test)]
mod tests {
    use super::super::items::parse;
    use super::*;
    use crate::format::raw::Fields;

    #[test]
    fn reads_what_the_other_reader_reads() {
        let payloads = [
            r#"{"type":"message","role":"assistant","id":"m","content":[{"type":"output_text","text":"a\nb"}]}"#,
            r#"{"type":"function_call","name":"shell","call_id":"c","arguments":"{ \"a\": 1 }"}"#,
            r#"{"type":"custom_tool_call","name":"apply_patch","call_id":"c","input":"*** Begin"}"#,
            r#"{"type":"function_call_output","call_id":"c","output":"Exit code: 1\nOutput:\nno"}"#,
            r#"{"type":"custom_tool_call_output","call_id":"c","name":"exec","output":""}"#,
        ];
        for payload in payloads {
            let line = format!(
                r#"{{"timestamp":"2026-11-20T09:15:35.675Z","type":"response_item","payload":{payload}}}"#
            );
            let fast = look(&line).unwrap();
            let item = fast.item.unwrap();
            let other = parse(payload, None).unwrap().unwrap();
            assert_eq!((item.message, item.pair, item.ours), (other.message, other.pair, other.ours));
            assert_eq!(fast.at, Some(1_795_166_135_675));
        }
    }

    #[test]
    fn leaves_the_rest_to_the_other_reader() {
        for line in [
            r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}}"#,
            r#"{"type":"response_item","payload":{"type":"message","role":"assistant","content":[]}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":[]}}"#,
            r#"{"type":"response_item","payload":{"type":"function_call","namespace":"mcp__x","call_id":"c"}}"#,
            r#"{"type":"event_msg","payload":{"type":"token_count"}}"#,
            r#"{"type":"event_msg","payload":{"type":"new","model_context_window":1}}"#,
            r#"{"type":"compacted","payload":{"type":"x"}}"#,
            r#"{"type":"event_msg","type":"event_msg","payload":{"type":"agent_message"}}"#,
            r#"{"type":"event_msg","payload":{"type":"agent_message"}"#,
        ] {
            assert!(Fields::of(line).is_some() || !line.ends_with("}}"), "{line}");
            assert!(look(line).is_none(), "{line}");
        }
        assert!(look(r#"{"type":"event_msg","payload":{"type":"agent_message","message":"x"}}"#).is_some());
    }
}
