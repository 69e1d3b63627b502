mod reading;
mod writing;

use serde_json::{Value, json};

use super::{CLEARED, History, Mode, Result, Session, read, sniff, write};
use crate::Source;
use crate::{MemorySource, PastCompaction};
use history::{Kind, Message, Part, Role};

/// A small session: elements get ids `msg_1`…, their parts ids and times.
fn export(elements: Vec<Value>) -> MemorySource {
    let mut elements = elements;
    for (index, element) in elements.iter_mut().enumerate() {
        let (info, id) = (&mut element["info"], format!("msg_{}", index + 1));
        if info["id"].is_null() {
            info["id"] = json!(id);
        }
        if info["time"].is_null() {
            info["time"] = json!({ "created": 1_000 + index });
        }
        info["sessionID"] = json!("ses_1");
        for (number, part) in element["parts"].as_array_mut().unwrap().iter_mut().enumerate() {
            part["id"] = json!(format!("prt_{}_{number}", index + 1));
        }
    }
    let info =
        json!({ "id": "ses_1", "slug": "s", "title": "t", "directory": "/p", "time": { "updated": 2_000 } });
    MemorySource::new(
        "test",
        serde_json::to_string_pretty(&json!({ "info": info, "messages": elements })).unwrap(),
    )
}

fn user(text: &str) -> Value {
    json!({
        "info": { "role": "user", "agent": "build", "model": { "providerID": "p", "modelID": "m" } },
        "parts": [{ "type": "text", "text": text }],
    })
}

fn marker(auto: bool, tail: Option<&str>) -> Value {
    let mut it = user("");
    it["parts"] = json!([{ "type": "compaction", "auto": auto }]);
    if let Some(tail) = tail {
        it["parts"][0]["tail_start_id"] = json!(tail);
    }
    it
}

fn answer(parts: Value) -> Value {
    json!({ "info": { "role": "assistant", "providerID": "p", "modelID": "m", "finish": "stop" }, "parts": parts })
}

fn says(text: &str) -> Value {
    answer(json!([{ "type": "text", "text": text }]))
}

fn summary(text: &str, parent: &str) -> Value {
    let mut it = says(text);
    it["info"]["summary"] = json!(true);
    it["info"]["parentID"] = json!(parent);
    it
}

fn tool(id: &str, state: Value) -> Value {
    json!({ "type": "tool", "tool": "bash", "callID": id, "state": state })
}

fn done(id: &str, output: &str) -> Value {
    tool(
        id,
        json!({ "status": "completed", "input": {"command": "ls"}, "output": output, "time": {"start": 1, "end": 2} }),
    )
}

/// One message per line, one word per part.
fn shown(source: &MemorySource) -> String {
    lines(read(source).unwrap().history.messages())
}

fn lines(messages: &[Message]) -> String {
    let mut out = String::new();
    for message in messages {
        out.push_str(&format!("{:?} {:?}:", message.role, message.kind));
        for part in &message.parts {
            out.push_str(&match part {
                Part::Text(it) => format!(" {:?}", it.as_str()),
                Part::Reasoning(it) => {
                    format!(
                        " thought({:?}, {:?})",
                        it.text.as_str(),
                        it.signature.as_ref().map(|it| it.as_str())
                    )
                }
                Part::Call(it) => format!(" {}#{}{}", it.name, it.id, it.input.as_str()),
                Part::Output(it) => format!(
                    " #{}={:?}{}{}{}",
                    it.id,
                    it.text.as_str(),
                    if it.failed { " failed" } else { "" },
                    if it.cleared { " cleared" } else { "" },
                    if it.media.is_empty() { "" } else { " +media" },
                ),
                Part::Media(it) => format!(" {}:{}", it.mime, it.data),
                Part::Opaque(it) => format!(" {}", it.kind),
            });
        }
        out.push('\n');
    }
    out
}

fn changed(source: &MemorySource, text: &str) -> Result<String> {
    let session = read(source)?;
    let mut messages = session.history.messages().to_vec();
    for part in messages.iter_mut().flat_map(|it| &mut it.parts) {
        if let Part::Output(output) = part {
            output.text = text.into();
            output.media = [].into();
        }
    }
    let after = History::new(messages, session.history.meta.clone());
    let out = write(source, &session, &after, Mode::Patch)?.bytes(source)?;
    let again = MemorySource::new("again", out);
    assert_eq!(lines(after.messages()).replace(" cleared", ""), shown(&again).replace(" cleared", ""));
    Ok(String::from_utf8(again.bytes(0..again.len())?).unwrap())
}
