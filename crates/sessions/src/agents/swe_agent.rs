//! SWE-agent's trajectories (`.traj`), read only.
//!
//! One JSON document. `history` is what its model was last sent; files that have only `trajectory` are read
//! from its steps. In the function-calling style, calls and results are as in OpenAI chat. In the older style
//! the command is part of the text and its output is the next user message: these are read as a call of a
//! tool `bash` with free text as input, and its output, so that commands and their results are visible as
//! such.

use std::sync::Arc;

use serde_json::Value;

use crate::format::{Api, FormatRow};
use crate::parse::{beginning, document};
use crate::wire::media_of_url;
use crate::{Format, Note, Record, Session, Source};
use history::error::{Error, ErrorKind, Result};
use history::{Call, History, Kind, MediaKind, Message, Meta, Output, Part, Role};

pub(crate) static ROW: FormatRow =
    FormatRow { recognise: Some(sniff), ..FormatRow::new("swe-agent", Api::OpenAiChat, read) };

/// Whether the first bytes, mended, are certainly a trajectory: a first step with action and observation, or,
/// without steps, a history whose messages name their agent.
pub fn sniff(first_lines: &str) -> bool {
    beginning::values(first_lines).next().is_some_and(|it| {
        let has = |value: &Value, keys: [&str; 2]| keys.iter().all(|key| value.get(key).is_some());
        match it["trajectory"].as_array().map(|it| it.first()) {
            Some(Some(step)) => has(step, ["action", "observation"]),
            Some(None) => has(&it["history"][0], ["role", "agent"]),
            None => false,
        }
    })
}

/// Reads a trajectory. A broken element becomes a note.
///
/// # Errors
/// As [`crate::read`].
pub fn read(source: &dyn Source) -> Result<Session> {
    let text = source.text(0..source.len())?;
    let history = document::open(&text, "history").filter(|it| !it.records.is_empty());
    let steps = document::open(&text, "trajectory");
    let mut out = TrajectoryReader::default();
    let found = match (&history, &steps) {
        (Some(history), _) => history,
        (None, Some(steps)) => steps,
        (None, None) => {
            let what =
                "expected a SWE-agent trajectory (an object with history or trajectory), found neither";
            return Err(Error::new(ErrorKind::Input, what).at(source.name(), None));
        }
    };
    for (record, span) in found.records.iter().enumerate() {
        out.record = record as u32;
        match document::value(&text, span.clone(), "a message") {
            Ok(value) if history.is_some() => out.message(&value),
            Ok(value) => out.step(&value),
            Err(error) => out.note(format!("{}; left out", error.full())),
        }
    }
    if !found.is_complete {
        out.record = found.records.len() as u32;
        out.note("the document is truncated; what is complete was read".into());
    }
    let records: Vec<_> =
        found.records.iter().map(|it| Record { at: it.start as u64, len: it.len() as u64 }).collect();
    let last = steps.as_ref().and_then(|it| it.records.last().cloned());
    let last = last.and_then(|it| document::value(&text, it, "a step").ok()).unwrap_or_default();
    let config =
        found.top.get("replay_config").and_then(|it| document::value(&text, it, "a configuration").ok());
    let meta = Meta {
        agent: Some("swe-agent".into()),
        model: config
            .as_ref()
            .map(inner)
            .as_ref()
            .and_then(|it| it["agent"]["model"]["name"].as_str())
            .map(Into::into),
        cwd: inner(&last["state"])["working_dir"].as_str().map(Into::into),
        ..Meta::default()
    };
    let origins = out.messages.iter().map(|it| [it.1]).collect();
    let history = History::numbered(out.messages.into_iter().map(|it| it.0).collect(), meta);
    Ok(Session { format: Format::SWE_AGENT, records, origins, notes: out.notes, past: Vec::new(), history })
}

/// An object, possibly encoded as a JSON string.
fn inner(value: &Value) -> Value {
    match value.as_str() {
        Some(text) => serde_json::from_str(text).unwrap_or_default(),
        None => value.clone(),
    }
}

#[derive(Default)]
struct TrajectoryReader {
    messages: Vec<(Message, u32)>,
    notes: Vec<Note>,
    record: u32,
    /// The id of the call for a command in the text that has no output yet.
    open: Option<Arc<str>>,
    made: usize,
}

impl TrajectoryReader {
    fn note(&mut self, what: String) {
        self.notes.push(Note { line: u64::from(self.record) + 1, what });
    }

    fn push(&mut self, role: Role, kind: Kind, parts: Vec<Part>) {
        if !parts.is_empty() {
            self.messages.push((Message::new(role, kind, parts), self.record));
        }
    }

    fn message(&mut self, message: &Value) {
        let content = content(&message["content"]);
        let demo = message["is_demo"] == true;
        match message["role"].as_str() {
            Some("system") => self.push(Role::System, Kind::Context, content),
            Some("user") => match self.open.take() {
                Some(id) => self.output(id, content),
                None => self.push(Role::User, if demo { Kind::Context } else { Kind::Said }, content),
            },
            Some("assistant") => self.answer(message, content),
            Some("tool") => {
                let ids = &message["tool_call_ids"];
                let id = ids[0].as_str().or(message["tool_call_id"].as_str()).unwrap_or_default();
                self.output(id.into(), content);
            }
            _ => self.note(format!("expected a role, found {}; left out", message["role"])),
        }
    }

    fn answer(&mut self, message: &Value, content: Vec<Part>) {
        self.open = None;
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        let action = message["action"].as_str().filter(|it| !it.trim().is_empty());
        let mut parts = content;
        if !calls.is_empty() {
            for call in calls {
                let function = &call["function"];
                let input = match &function["arguments"] {
                    Value::String(text) => match serde_json::from_str::<Value>(text) {
                        Ok(value) => history::json::compact(&value),
                        Err(_) => text.clone(),
                    },
                    value => history::json::compact(value),
                };
                parts.push(Part::Call(Call {
                    id: call["id"].as_str().unwrap_or_default().into(),
                    name: function["name"].as_str().unwrap_or_default().into(),
                    freeform: !input.starts_with('{'),
                    input: input.into(),
                    signature: None,
                }));
            }
        } else if let Some(action) = action {
            parts = thought(message);
            parts.push(self.command(action));
        }
        self.push(Role::Assistant, Kind::Said, parts);
    }

    /// A step of a file without `history`: the first query, the reply, the observation.
    fn step(&mut self, step: &Value) {
        if self.messages.is_empty() {
            for message in step["query"].as_array().into_iter().flatten() {
                self.message(message);
            }
        }
        let mut parts = thought(step);
        match step["action"].as_str().filter(|it| !it.trim().is_empty()) {
            Some(action) => parts.push(self.command(action)),
            None if parts.is_empty() => parts = content(&step["response"]),
            None => {}
        }
        self.push(Role::Assistant, Kind::Said, parts);
        if let (Some(id), Some(observation)) = (self.open.take(), step["observation"].as_str()) {
            self.output(id, vec![Part::Text(observation.into())]);
        }
    }

    fn command(&mut self, action: &str) -> Part {
        self.made += 1;
        let id: Arc<str> = format!("action-{}", self.made).into();
        self.open = Some(id.clone());
        Part::Call(Call { id, name: "bash".into(), input: action.into(), freeform: true, signature: None })
    }

    fn output(&mut self, id: Arc<str>, content: Vec<Part>) {
        let (text, media) = super::text_and_media(content);
        let output = Output { media: media.into(), ..Output::new(id, text) };
        self.push(Role::Tool, Kind::Said, vec![Part::Output(output)]);
    }
}

/// The text before the command.
fn thought(message: &Value) -> Vec<Part> {
    let text = message["thought"].as_str().filter(|it| !it.trim().is_empty());
    text.map(|it| Part::Text(it.into())).into_iter().collect()
}

fn content(content: &Value) -> Vec<Part> {
    super::parts_of(content, |it| {
        let url = it["image_url"]["url"].as_str().filter(|_| it["type"] == "image_url")?;
        Some(Part::Media(media_of_url(MediaKind::Image, url)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemorySource;

    fn shown(text: &str) -> (String, Session) {
        let session = read(&MemorySource::new("t", text)).unwrap();
        let mut out = String::new();
        for message in session.history.messages() {
            out.push_str(&format!("{:?} {:?}:", message.role, message.kind));
            for part in &message.parts {
                match part {
                    Part::Text(it) => out.push_str(&format!(" {:?}", it.as_str())),
                    Part::Call(it) => {
                        out.push_str(&format!(" {}#{}({:?})", it.name, it.id, it.input.as_str()))
                    }
                    Part::Output(it) => out.push_str(&format!(" #{}={:?}", it.id, it.text.as_str())),
                    Part::Media(it) => out.push_str(&format!(" {}:{}", it.mime, it.data)),
                    Part::Reasoning(_) | Part::Opaque(_) => {}
                }
            }
            out.push('\n');
        }
        (out, session)
    }

    const STEP: &str = r#"{"action":"ls\n","observation":"a.py","response":"Look.\n```\nls\n```","thought":"Look.\n","state":"{\"working_dir\": \"/repo\"}"}"#;

    #[test]
    fn sniffs() {
        assert!(sniff(&format!(r#"{{"environment":"e","trajectory":[{STEP},{{"act"#)));
        assert!(sniff(r#"{"trajectory":[],"history":[{"role":"system","content":"x","agent":"main"}"#));
        for other in [
            "",
            "{}",
            r#"{"trajectory":[]}"#,
            r#"{"history":[{"role":"user"}]}"#,
            r#"{"trajectory":[{"x":1}]}"#,
        ] {
            assert!(!sniff(other), "{other}");
        }
        assert!(read(&MemorySource::new("t", "{}")).is_err());
    }

    #[test]
    fn commands_in_the_text() {
        let (out, session) = shown(&format!(
            r#"{{"trajectory":[{STEP}],"history":[
            {{"role":"system","content":"You are","agent":"main"}},
            {{"role":"user","content":"A demonstration","is_demo":true,"agent":"main"}},
            {{"role":"user","content":"Fix it","agent":"main"}},
            {{"role":"assistant","content":"Look.\n```\nls\n```","thought":"Look.\n","action":"ls\n","agent":"main"}},
            {{"role":"user","content":"a.py","agent":"main"}}, 7,
            {{"role":"assistant","content":"Just talk","thought":"Just talk","action":"","agent":"main"}},
            {{"role":"user","content":[{{"type":"text","text":"And?"}},{{"type":"image_url","image_url":{{"url":"data:image/png;base64,AA"}}}}]}},
            {{"role":"assistant","content":"\n```\nsubmit\n```","thought":"\n","action":"submit"}}],
            "replay_config":"{{\"agent\":{{\"model\":{{\"name\":\"gpt-x\"}}}}}}"}}"#
        ));
        insta::assert_snapshot!(out, @r#"
        System Context: "You are"
        User Context: "A demonstration"
        User Said: "Fix it"
        Assistant Said: "Look.\n" bash#action-1("ls\n")
        Tool Said: #action-1="a.py"
        Assistant Said: "Just talk"
        User Said: "And?" image/png:AA
        Assistant Said: bash#action-2("submit")
        "#);
        assert_eq!(session.notes.len(), 1);
        assert_eq!(session.origins[5], [6]);
        assert_eq!(session.history.meta.model.as_deref(), Some("gpt-x"));
        assert_eq!(session.history.meta.cwd.as_deref(), Some("/repo"));
    }

    #[test]
    fn function_calls_and_steps() {
        let (out, _) = shown(
            r#"{"history":[{"role":"user","content":"Fix it"},
            {"role":"assistant","content":"Look.","action":"ls","tool_calls":[{"function":{"name":"bash","arguments":"{ \"command\": \"ls\" }"},"id":"c1","type":"function"}]},
            {"role":"tool","content":"a.py","tool_call_ids":["c1"]}],"trajectory":[]}"#,
        );
        insta::assert_snapshot!(out, @r##"
        User Said: "Fix it"
        Assistant Said: "Look." bash#c1("{\"command\":\"ls\"}")
        Tool Said: #c1="a.py"
        "##);
        let (out, session) =
            shown(&format!(r#"{{"trajectory":[{STEP},{{"action":"","thought":"Done."}},{{"#));
        insta::assert_snapshot!(out, @r##"
        Assistant Said: "Look.\n" bash#action-1("ls\n")
        Tool Said: #action-1="a.py"
        Assistant Said: "Done."
        "##);
        assert_eq!(session.notes.len(), 1, "it is cut off");
    }
}
