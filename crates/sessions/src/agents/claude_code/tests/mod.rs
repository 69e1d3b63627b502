mod laws;
mod reading;
mod writing;

use serde_json::{Value, json};

use super::*;
use crate::{MemorySource, Mode, Session};
use history::{History, Kind, Message, Part, Role};

/// A transcript under construction: each row is a child of the one before, unless `parentUuid` is given.
#[derive(Default)]
struct Rows {
    lines: Vec<String>,
    last: Option<String>,
}

impl Rows {
    fn add(&mut self, uuid: &str, fields: Value) -> &mut Self {
        let at = format!("2026-01-01T00:00:{:02}.000Z", self.lines.len());
        let mut row = json!({"parentUuid": self.last, "isSidechain": false, "uuid": uuid, "timestamp": at,
            "sessionId": "s", "cwd": "/w", "version": "2.1.328"});
        for (key, value) in fields.as_object().unwrap() {
            row[key] = value.clone();
        }
        if row["isSidechain"] == json!(false) {
            self.last = Some(uuid.into());
        }
        self.line(&row.to_string())
    }
    fn line(&mut self, line: &str) -> &mut Self {
        self.lines.push(line.into());
        self
    }
    fn user(&mut self, uuid: &str, content: impl Into<Value>) -> &mut Self {
        self.add(uuid, json!({"type": "user", "message": {"role": "user", "content": content.into()}}))
    }
    fn block(&mut self, uuid: &str, id: &str, block: Value) -> &mut Self {
        self.add(uuid, assistant(id, block))
    }
    fn says(&mut self, uuid: &str, text: &str) -> &mut Self {
        self.block(uuid, &format!("msg_{uuid}"), json!({"type": "text", "text": text}))
    }
    fn result(&mut self, uuid: &str, call: &str, text: &str) -> &mut Self {
        self.user(uuid, json!([{"type": "tool_result", "tool_use_id": call, "content": text}]))
    }
    fn boundary(&mut self, uuid: &str, compact: Value) -> &mut Self {
        self.add(
            uuid,
            json!({"parentUuid": null, "type": "system", "subtype": "compact_boundary",
            "content": "Conversation compacted", "compactMetadata": compact}),
        )
    }
    fn summary(&mut self, uuid: &str, text: &str) -> &mut Self {
        self.add(
            uuid,
            json!({"type": "user", "isCompactSummary": true, "isVisibleInTranscriptOnly": true,
            "message": {"role": "user", "content": text}}),
        )
    }
    fn rendered(&mut self, uuid: &str, role: &str, text: &str) -> &mut Self {
        self.add(
            uuid,
            json!({"type": "attachment", "attachment": {"type": "date"},
            "rendered": [{"content": text}], "renderedRole": role}),
        )
    }
    fn leaf(&mut self, uuid: &str) -> &mut Self {
        self.line(&json!({"type": "last-prompt", "leafUuid": uuid, "sessionId": "s"}).to_string())
    }
    fn text(&self) -> String {
        self.lines.iter().map(|it| format!("{it}\n")).collect()
    }
    fn source(&self) -> MemorySource {
        MemorySource::new("t.jsonl", self.text())
    }
    fn shown(&self) -> String {
        show(&read(&self.source()).unwrap().history)
    }
}

fn rows() -> Rows {
    Rows::default()
}

fn assistant(id: &str, block: Value) -> Value {
    json!({"type": "assistant", "message": {"id": id, "type": "message", "role": "assistant", "model": "m",
        "content": [block], "usage": {"input_tokens": 5, "output_tokens": 2}}})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}})
}

fn show(history: &History) -> String {
    history.messages().iter().map(show_message).collect()
}

fn show_message(message: &Message) -> String {
    let who = match (message.role, message.kind) {
        (Role::User, Kind::Said) => "user",
        (Role::User, Kind::Context) => "context",
        (Role::User, Kind::Summary) => "summary",
        (Role::System, Kind::Context) => "system",
        (Role::Assistant, Kind::Said) => "model",
        other => panic!("{other:?}"),
    };
    let parts: Vec<String> = message
        .parts
        .iter()
        .map(|part| match part {
            Part::Text(it) => it.as_str().to_owned(),
            Part::Reasoning(it) => {
                format!("({}/{})", it.text.as_str(), it.signature.as_ref().map_or("", |it| it.as_str()))
            }
            Part::Call(it) => format!("{}?", it.id),
            Part::Output(it) => {
                let flags =
                    format!("{}{}", if it.failed { "!" } else { "" }, if it.cleared { "~" } else { "" });
                format!("{}={}{flags}{}", it.id, it.text.as_str(), "+media".repeat(it.media.len()))
            }
            Part::Media(it) => format!("<{:?} {} {:?}>", it.kind, it.mime, it.size),
            Part::Opaque(it) => format!("{{{} {}}}", it.kind, it.raw.as_str()),
        })
        .collect();
    format!("{who}: {}\n", parts.join(" | "))
}

/// A session with everything that a compaction has to carry over.
fn busy() -> Rows {
    let mut it = rows();
    it.user("u1", "first prompt")
        .rendered("x1", "system", "<system-reminder>\n# Env\n</system-reminder>")
        .rendered("x2", "user", "<system-reminder>\nRules\n</system-reminder>")
        .block("a1", "m1", json!({"type": "thinking", "thinking": "hm", "signature": "sig"}))
        .block("a2", "m1", json!({"type": "text", "text": "Looking."}))
        .block("a3", "m1", call("c1"))
        .block("a4", "m1", call("c2"))
        .add("r1", json!({"type": "user", "parentUuid": "a3", "toolUseResult": {"stdout": "one"},
            "message": {"role": "user", "content": [{"tool_use_id": "c1", "type": "tool_result", "content": "one"}]}}))
        .add("r2", json!({"type": "user", "parentUuid": "a4", "message": {"role": "user", "content": [
            {"type": "tool_result", "content": [{"type": "text", "text": "two"}, {"type": "text", "text": "2"}],
             "is_error": true, "tool_use_id": "c2"}]}}))
        .says("a5", "Found it.")
        .leaf("a5")
        .user("u2", "second prompt")
        .block("a6", "m3", call("c3"))
        .result("r3", "c3", "three, and quite a lot of it")
        .says("a7", "Done.")
        .leaf("a7");
    it
}

const BUSY: &str = "\
context: <system-reminder>\nRules\n</system-reminder>
user: first prompt
system: # Env
model: (hm/sig) | Looking. | c1? | c2?
user: c1=one | c2=two\n2!
model: Found it.
user: second prompt
model: c3?
user: c3=three, and quite a lot of it
model: Done.
";
