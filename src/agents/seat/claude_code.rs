//! Claude Code's `session.compact`: a message for each block, results apart from their calls and in any order.

use serde_json::{Value, json};

use history::error::{Error, Kind, Result};
use history::{Message, Part, Role};

/// The event's messages as an array of Anthropic messages: what the model said in one go is one message, and so are the
/// results of its calls. What the user said stays apart.
///
/// # Errors
/// [`Kind::Input`] if there are none, or one is of a form that is not known: nothing may be lost by guessing.
pub fn messages(event: &Value) -> Result<Vec<u8>> {
    let wrong = |what: String| Error::new(Kind::Input, format!("reading the event's messages: {what}"));
    let all = event["messages"].as_array().ok_or_else(|| wrong("expected a list, found none".to_owned()))?;
    let mut out: Vec<Value> = Vec::new();
    for (number, message) in all.iter().enumerate() {
        let role = message["role"].as_str().filter(|it| matches!(*it, "user" | "assistant"));
        let Some(role) = role else {
            return Err(wrong(format!(
                "expected the role user or assistant in message {number}, found {}",
                message["role"]
            )));
        };
        let list = |key: &str| message[key].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut blocks: Vec<Value> = list("toolResults")
            .iter()
            .map(|it| {
                json!({"type": "tool_result", "tool_use_id": it["tool_use_id"], "content": it["text"].as_str().unwrap_or_default(),
                    "is_error": it["isError"] == true})
            })
            .collect();
        let results_only = !blocks.is_empty();
        let text = message["text"].as_str().unwrap_or_default();
        if !text.is_empty() {
            blocks.push(json!({"type": "text", "text": text}));
        }
        let results_only = results_only && text.is_empty();
        blocks.extend(list("toolUses").iter().map(|it| {
            let input = if it["input"].is_object() { it["input"].clone() } else { json!({}) };
            json!({"type": "tool_use", "id": it["tool_use_id"], "name": it["tool"], "input": input})
        }));
        if blocks.is_empty() {
            continue;
        }
        let joins = |before: &Value| {
            before["role"] == role
                && match role {
                    "assistant" => true,
                    _ => results_only && is_results(before),
                }
        };
        match out.last_mut().filter(|it| joins(it)).and_then(|it| it.get_mut("content")?.as_array_mut()) {
            Some(content) => content.append(&mut blocks),
            None => out.push(json!({"role": role, "content": blocks})),
        }
    }
    if out.is_empty() {
        return Err(wrong("expected messages, found none".to_owned()));
    }
    Ok(history::json::compact(&out).into_bytes())
}

fn is_results(message: &Value) -> bool {
    let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    !blocks.is_empty() && blocks.iter().all(|it| it["type"] == "tool_result")
}

/// The answer: fresh messages without `handle`, one for each block, as the event has them. With handles, the next resume
/// brings the whole old history back.
pub fn reply(messages: &[Message]) -> Value {
    let mut out: Vec<Value> = Vec::new();
    for message in messages.iter().filter(|it| it.role != Role::System) {
        let role = if message.role == Role::Assistant { "assistant" } else { "user" };
        for part in &message.parts {
            out.extend(match part {
                Part::Text(text) if text.is_empty() => None,
                Part::Text(text) => Some(json!({"role": role, "text": text.as_str(), "toolUses": []})),
                Part::Call(call) => {
                    let input: Value =
                        serde_json::from_str(call.input.as_str()).unwrap_or_else(|_| json!({}));
                    let call = json!({"tool_use_id": &*call.id, "tool": &*call.name, "input": input});
                    Some(json!({"role": "assistant", "text": "", "toolUses": [call]}))
                }
                Part::Output(it) => {
                    let result =
                        json!({"tool_use_id": &*it.id, "text": it.text.as_str(), "isError": it.failed});
                    Some(json!({"role": "user", "text": "", "toolUses": [], "toolResults": [result]}))
                }
                Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => None,
            });
        }
    }
    json!({ "messages": out })
}

/// Whether a message is the client's record of a `/compact`.
pub fn is_compact_command(text: &str) -> bool {
    let text = text.trim_start();
    ["<command-name>/compact<", "<local-command-caveat>", "<local-command-stdout>Compacted"]
        .iter()
        .any(|it| text.starts_with(it))
}

/// The id of the newest message's row in the transcript.
pub fn last_row(event: &Value) -> Option<&str> {
    event["lastRow"].as_str().filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::Kind;
    use sessions::{self, Format, Memory};

    #[test]
    fn an_event_becomes_a_history_and_comes_back_without_handles() {
        let event = json!({"trigger": "auto", "messages": [
            {"role": "user", "text": "[Epitome] Earlier conversation compacted: x", "toolUses": [], "handle": "h0"},
            {"role": "user", "text": "go", "toolUses": [], "handle": "h1"},
            {"role": "assistant", "text": "Looking.", "toolUses": [], "handle": "h2"},
            {"role": "assistant", "text": "", "toolUses": [{"tool_use_id": "t1", "tool": "Read", "input": {"f": 1}, "text": "out", "result": {}}]},
            {"role": "assistant", "text": "", "toolUses": [{"tool_use_id": "t2", "tool": "Bash", "input": {"c": 2}}]},
            {"role": "user", "text": "", "toolUses": [], "toolResults": [{"tool_use_id": "t2", "text": "two", "isError": true}]},
            {"role": "user", "text": "", "toolUses": [], "toolResults": [{"tool_use_id": "t1", "text": "one", "isError": false}]},
        ]});
        let session =
            sessions::read(&Memory::new("event", messages(&event).unwrap()), Some(Format::ANTHROPIC))
                .unwrap();
        let found = session.history.messages();
        let shape: Vec<_> = found.iter().map(|it| (it.role, it.kind, it.parts.len())).collect();
        assert_eq!(
            shape,
            [
                (Role::User, Kind::Summary, 1),
                (Role::User, Kind::Said, 1),
                (Role::Assistant, Kind::Said, 3),
                (Role::User, Kind::Said, 2)
            ]
        );
        assert_eq!(session.history.units().len(), 3);
        let back = reply(found);
        assert_eq!(back["messages"].as_array().unwrap().len(), 7);
        assert_eq!(
            back["messages"][3]["toolUses"][0],
            json!({"tool_use_id": "t1", "tool": "Read", "input": {"f": 1}})
        );
        assert_eq!(
            back["messages"][5]["toolResults"][0],
            json!({"tool_use_id": "t2", "text": "two", "isError": true})
        );
        assert!(!back.to_string().contains("handle"));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for event in [
            json!({}),
            json!({"messages": []}),
            json!({"messages": [{"role": "oracle", "text": "x"}]}),
            json!({"messages": [3]}),
        ] {
            assert!(messages(&event).is_err(), "{event}");
        }
    }
}
