//! Claude Code's function hook `session.compact`. Its event has one message per content block; tool results
//! are separate messages, in any order.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::ClaudeCode;
use crate::agents::hooks::seat::{Conversation, Seat, SeatAsk, SeatContext, SeatSession, SentConversation};
use crate::agents::{self, Agent};
use crate::files;
use history::error::{Error, ErrorKind, Result};
use history::{History, Message, Meta, Part, Role};
use sessions::Format;
use sessions::agents::claude_code::is_clients;

/// How long to wait for the transcript to catch up with the event: Claude Code writes rows with a delay.
const LAG: Duration = Duration::from_millis(400);

/// Called by the plugin's function hook `session.compact`; replies with messages.
pub(super) static SEAT: Seat = Seat {
    format: Format::CLAUDE_CODE,
    // Claude Code's own timeout is 30 s.
    limit: Duration::from_secs(18),
    answers_failure: false,
    requested,
    reply: |messages, _| reply(messages),
};

/// The messages in the event are compacted; the transcript is archived, since that is what a user would
/// want back.
fn requested(event: &Value, context: &SeatContext<'_>) -> Result<Option<(SeatAsk, Conversation)>> {
    let mut conversation = SeatSession::from_bytes(&messages(event)?, Format::ANTHROPIC)?;
    // A sub-agent has no transcript that can be resumed.
    let sub_agent = event["agentId"].is_string();
    let transcript = if sub_agent { None } else { transcript(context, last_row(event)) };
    let meta = match &transcript {
        Some((it, _)) => Meta { agent: None, ..it.session.history.meta.clone() },
        None => Meta { cwd: Some(context.project.into()), ..Meta::default() },
    };
    let mut messages = std::mem::take(&mut conversation.session.history).into_messages();
    // Claude Code's own records of `/compact` commands, this one and earlier ones.
    messages.retain(|it| !(it.role == Role::User && is_compact_command(&it.plain())));
    for it in &mut messages {
        let clients = it.kind == history::Kind::Said && it.texts().all(|it| is_clients(it.as_str()));
        if it.role == Role::User && clients && it.texts().next().is_some() {
            it.kind = history::Kind::Context;
        }
    }
    conversation.session.history = History::new(messages, meta);
    let archive_both = transcript.as_ref().is_some_and(|it| !it.1);
    let transcript = transcript.map(|it| it.0);
    let sent = SentConversation { conversation, transcript, archive_both };
    let set = |from: &str| {
        let found = (context.setting)(from)?;
        found.as_u64().or_else(|| found.as_str()?.parse().ok())
    };
    let of_settings =
        || set("env:CLAUDE_CODE_AUTO_COMPACT_WINDOW").or_else(|| set("claude-code:autoCompactWindow"));
    let window = event["window"].as_u64().or_else(of_settings).filter(|it| *it > 0);
    Ok(Some((SeatAsk { window, ..SeatAsk::of(event) }, Conversation::Sent(Box::new(sent)))))
}

/// The calling session's transcript, and whether it contains `last_row` yet (waits up to [`LAG`] for it).
fn transcript(context: &SeatContext<'_>, last_row: Option<&str>) -> Option<(SeatSession, bool)> {
    let launched = context.env.text("CLAUDE_CODE_LAUNCHED_BY_SESSION_IDS");
    let launched = launched.and_then(|it| it.rsplit(',').next()).map(|it| it.trim().to_owned());
    let id = (context.caller)().or(launched)?;
    let found = agents::find(context.env, &id);
    let path = found.into_iter().find(|it| it.agent.name() == ClaudeCode.name() && it.id == id)?.path;
    let begun = Instant::now();
    let holds = || {
        let row = last_row?;
        // The newest row is near the end of the file.
        let end = files::tail(&path, 8 << 20).ok()?;
        memchr::memmem::find(&end, row.as_bytes())
    };
    let whole = loop {
        if last_row.is_none() || holds().is_some() {
            break true;
        }
        if begun.elapsed() > LAG {
            break false;
        }
        std::thread::sleep(Duration::from_millis(40));
    };
    Some((SeatSession::from_file(&path, Format::CLAUDE_CODE).ok()?, whole))
}

/// The event's messages as a JSON array in Anthropic's format. Consecutive assistant messages are merged into
/// one, and so are consecutive tool results; user texts stay separate.
///
/// # Errors
/// [`ErrorKind::Input`] if there are no messages or one has an unknown role: guessing could lose content.
fn messages(event: &Value) -> Result<Vec<u8>> {
    let wrong = |what: String| Error::new(ErrorKind::Input, format!("reading the event's messages: {what}"));
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

/// The reply: one message per content block, as in the event, but without `handle` fields. With those, the
/// next resume would bring back the whole old history.
fn reply(messages: &[Message]) -> Value {
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

/// Whether a message is Claude Code's record of a `/compact` command or its output.
fn is_compact_command(text: &str) -> bool {
    let text = text.trim_start();
    ["<command-name>/compact<", "<local-command-caveat>", "<local-command-stdout>Compacted"]
        .iter()
        .any(|it| text.starts_with(it))
}

/// The id of the newest message's row in the transcript.
fn last_row(event: &Value) -> Option<&str> {
    event["lastRow"].as_str().filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sessions::MemorySource;

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
            sessions::read(&MemorySource::new("event", messages(&event).unwrap()), Some(Format::ANTHROPIC))
                .unwrap();
        let found = session.history.messages();
        let shape: Vec<_> = found.iter().map(|it| (it.role, it.kind, it.parts.len())).collect();
        assert_eq!(
            shape,
            [
                (Role::User, history::Kind::Summary, 1),
                (Role::User, history::Kind::Said, 1),
                (Role::Assistant, history::Kind::Said, 3),
                (Role::User, history::Kind::Said, 2)
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
