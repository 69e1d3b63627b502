//! Parts of new elements: fields taken from the session, parts as OpenCode stores them, and changes to kept
//! parts.

use serde_json::{Value, json};

use super::element::is_compacted;
use super::patch::attachments;
use super::read::Export;
use crate::wire::url_of;
use history::json::set;
use history::{Kind, Media, Message, Meta, Output, Part, Text};

/// What messages of our own copy from the session.
pub(super) struct SessionDefaults {
    pub(super) agent: Value,
    pub(super) model: Value,
    pub(super) path: Value,
}

/// How a part of a kept element changed.
pub(super) enum Change<'m> {
    Same,
    Text(&'m Text),
    Output(&'m Output),
}

/// The version whose import format this is.
pub(super) const VERSION: &str = "1.18.33";

pub(super) fn no_tokens() -> Value {
    json!({ "total": 0, "input": 0, "output": 0, "reasoning": 0, "cache": { "read": 0, "write": 0 } })
}

impl SessionDefaults {
    pub(super) fn of(export: Option<&Export<'_>>, meta: &Meta) -> Self {
        let infos = || export.into_iter().flat_map(|it| it.entries.iter().rev()).map(|it| &it.info);
        let user = infos().find(|it| it["role"] == "user" && it["model"]["modelID"].is_string());
        let answer = infos().find(|it| it["role"] == "assistant" && it["path"].is_object());
        let model = meta.model.as_deref().unwrap_or_default();
        let (provider, model) = match model.split_once('/') {
            Some(both) => both,
            None if model.starts_with("claude") => ("anthropic", model),
            None if model.starts_with("gemini") => ("google", model),
            None => ("openai", model),
        };
        let cwd = meta.cwd.as_deref().unwrap_or("/");
        Self {
            agent: user.map_or_else(|| json!("build"), |it| it["agent"].clone()),
            model: user.map_or_else(
                || json!({ "providerID": provider, "modelID": model }),
                |it| it["model"].clone(),
            ),
            path: answer.map_or_else(|| json!({ "cwd": cwd, "root": "/" }), |it| it["path"].clone()),
        }
    }

    pub(super) fn user(&self) -> Value {
        json!({ "role": "user", "agent": self.agent, "model": self.model })
    }

    pub(super) fn assistant(&self) -> Value {
        json!({
            "role": "assistant", "mode": self.agent, "agent": self.agent, "path": self.path,
            "providerID": self.model["providerID"], "modelID": self.model["modelID"],
        })
    }
}

/// The index in `old` of each part of `new`, in order, and how it changed; none if the parts cannot be
/// matched.
pub(super) fn slots<'m>(new: &'m Message, old: &Message) -> Option<Vec<(usize, Change<'m>)>> {
    let mut out = Vec::new();
    let mut at = 0;
    for part in &new.parts {
        let found = old.parts[at..].iter().position(|it| match (part, it) {
            (Part::Output(new), Part::Output(old)) => new.id == old.id,
            _ => part == it,
        });
        let slot = match (found, old.parts.get(at), part) {
            (Some(found), _, _) => at + found,
            (None, Some(Part::Text(_)), Part::Text(_)) => at,
            _ => return None,
        };
        let change = match part {
            Part::Output(output) => Change::Output(output),
            Part::Text(text) if found.is_none() => Change::Text(text),
            _ => Change::Same,
        };
        out.push((slot, change));
        at = slot + 1;
    }
    (new.role == old.role).then_some(out)
}

/// Makes a tool part say `output`. A part that OpenCode cleared, and that still says so, stays as it is. A
/// state that is no object becomes that of a failed call.
pub(super) fn set_output(part: &mut Value, output: &Output) {
    let Some(state) = part.as_object_mut().map(|it| it.entry("state").or_insert(Value::Null)) else { return };
    if !state.is_object() {
        *state = json!({ "input": {}, "time": { "start": 0, "end": 0 } });
    }
    let text = output.text.as_str();
    match state["status"].as_str() {
        Some("completed") if is_compacted(state) && text == super::CLEARED => {}
        Some("completed") => {
            set(state, "output", text);
            if let Some(time) = state.pointer_mut("/time").and_then(Value::as_object_mut) {
                time.remove("compacted");
            }
            if state["attachments"].is_array() {
                let kept = attachments(state, output);
                set(state, "attachments", kept);
            }
        }
        Some("error") if state["metadata"]["interrupted"] == true => {
            match state.pointer_mut("/metadata/output").filter(|it| it.is_string()) {
                Some(partial) => *partial = text.into(),
                None => set(state, "error", text),
            }
        }
        _ => {
            set(state, "status", "error");
            set(state, "error", text);
        }
    }
}

pub(super) fn file(media: &Media) -> Value {
    json!({ "type": "file", "mime": &*media.mime, "url": url_of(media) })
}

/// A text part, `synthetic` if the user did not say it.
pub(super) fn text(text: &Text, kind: Kind, now: i64) -> Value {
    let mut part = json!({ "type": "text", "text": text.as_str(), "time": { "start": now, "end": now } });
    if kind != Kind::Said {
        set(&mut part, "synthetic", true);
    }
    if kind == Kind::Continue {
        set(&mut part, "metadata", json!({ "compaction_continue": true }));
    }
    part
}
