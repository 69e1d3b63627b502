//! Undo of a compaction that the agent wrote down itself from our answer.
//!
//! What stands in its session is found by the handle in the summary's first line; what was said after it stays.

use std::path::Path;

use serde_json::Value;

use super::open::open_path;
use super::restore::{Done, Undo, changed};
use crate::agents::reach::{self, Job, Way};
use crate::agents::seat::codex::CAPSULE;
use crate::agents::{Agent, opencode};
use crate::engine::install::agent_of;
use crate::engine::{Engine, Opened};
use compaction::plan;
use history::error::{Error, Kind, Result};
use history::{History, Kind as Why, Message, Part, Role, Text};
use sessions::{self, Memory, Mode, Source};

impl Undo<'_> {
    fn seat_handle(&self) -> Result<&str> {
        let handle = self.compaction.original.as_ref().map(crate::store::Handle::as_str);
        handle.ok_or_else(|| {
            Error::new(Kind::Store, "undoing: expected the original in the archive, found none")
        })
    }

    /// OpenCode: the messages of the compaction go; all others were left where they stood.
    pub(super) fn seat_rows(&self, database: &Path, id: &str) -> Result<Done> {
        let handle = self.seat_handle()?;
        let now = opencode::export(database, id)?;
        let output = format!("{}#{id}", database.display());
        let mut export: Value = serde_json::from_str(&history::json::mend(&now)).unwrap_or_default();
        let Some(messages) = export.get_mut("messages").and_then(Value::as_array_mut) else {
            return Err(changed(database));
        };
        let says = |it: &Value| {
            it["info"]["summary"] == true
                && it["parts"].as_array().is_some_and(|parts| {
                    parts.iter().any(|it| it["text"].as_str().is_some_and(|it| it.contains(handle)))
                })
        };
        let Some(at) = messages.iter().position(says) else {
            return Ok(self.done("unchanged", Path::new(&output)));
        };
        let marker = messages[at]["info"]["parentID"].clone();
        // "Continue if you have next steps", which the client says behind an automatic one.
        let synthetic = |it: &Value| {
            it["info"]["role"] == "user"
                && it["parts"]
                    .as_array()
                    .is_some_and(|it| !it.is_empty() && it.iter().all(|it| it["synthetic"] == true))
        };
        let go_on = messages.get(at + 1).is_some_and(synthetic);
        let later = messages[at + 1 + usize::from(go_on)..].len();
        let mut number = 0;
        messages.retain(|it| {
            let gone = number == at || (go_on && number == at + 1) || it["info"]["id"] == marker;
            number += 1;
            !gone
        });
        opencode::change(database, &now, &history::json::compact(&export).into_bytes())?;
        Ok(Done { later, ..self.done("restored", Path::new(&output)) })
    }

    /// A file: the messages from before once more, then what was said since.
    pub(super) fn seat_file(&self, path: &Path) -> Result<Done> {
        let handle = self.seat_handle()?;
        let agent = agent_of(self.session.format)?;
        let now = open_path(path, Some(self.session.format))?;
        let messages = now.session.history.messages();
        let ours = |it: &Message| it.kind == Why::Summary && it.parts.iter().any(|it| names(it, handle));
        let Some(at) = messages.iter().rposition(ours) else {
            let bytes = now.source.bytes(0..now.source.len())?;
            return match memchr::memmem::find(&bytes, handle.as_bytes()) {
                Some(_) => Err(changed(path)),
                None => Ok(self.done("unchanged", path)),
            };
        };
        let later = said_since(&messages[at..]);
        let before = match agent {
            Agent::ClaudeCode => before_boundary(&now, at)?,
            Agent::Codex => before_line(&now, at, handle)?,
            Agent::GeminiCli | Agent::OpenCode => None,
        };
        let live = reach::is_live(&self.engine.config.agents, agent, &self.compaction.session.id, path);
        let reach = reach::reach(agent, Job::Restore, live, false)?;
        if later.is_empty() && reach.way == Way::Replace {
            crate::files::replace(path, now.source.len(), &self.source.bytes(0..self.source.len())?)?;
            return Ok(self.done("restored", path));
        }
        let (source, session) = before.unwrap_or_else(|| (self.source.clone(), self.session.clone()));
        let fresh = |it: &Message| Message { from: None, usage: None, wire_len: None, ..it.clone() };
        let new = |it: &Message| if reach.mode == Mode::New { it.clone() } else { fresh(it) };
        let all = session.history.messages().iter().map(new).chain(later.iter().map(fresh)).collect();
        let after = History::new(all, session.history.meta.clone());
        let opened = match reach.mode {
            Mode::New => Opened { source: Box::new(source), session, path: None, cwd: None, live: false },
            Mode::Append | Mode::Patch => now,
        };
        self.put_back(self.engine, &opened, &after, &reach, path, later.len())
    }

    fn put_back(
        &self,
        engine: &Engine,
        opened: &Opened,
        after: &History,
        reach: &reach::Reach,
        path: &Path,
        later: usize,
    ) -> Result<Done> {
        let mut warnings = Vec::new();
        let (bytes, written) = engine.written(opened, after, reach.mode, &mut warnings)?;
        let mut done = self.done("restored", path);
        match (reach.way, &written.file_name) {
            (Way::Beside, Some(name)) => {
                let beside = path.with_file_name(name);
                crate::files::create(&beside, &bytes, path)?;
                done.output = beside.display().to_string();
            }
            _ => crate::files::replace(path, opened.source.len(), &bytes)?,
        }
        done.id = written.session.unwrap_or(done.id);
        Ok(Done { later, warnings, ..done })
    }
}

/// Whether a part names an archived original: in a summary, or in front of one that is sealed.
fn names(part: &Part, handle: &str) -> bool {
    match part {
        Part::Text(text) => text.as_str().contains(handle),
        Part::Opaque(sealed) => sealed.raw.as_str().contains(&format!("{CAPSULE}{handle}.")),
        Part::Reasoning(_) | Part::Call(_) | Part::Output(_) | Part::Media(_) => false,
    }
}

/// What follows a summary of ours and the end of the conversation that was kept with it.
fn said_since(from_summary: &[Message]) -> Vec<Message> {
    let Some((summary, rest)) = from_summary.split_first() else { return Vec::new() };
    let rest = &rest[plan::made_with(summary, rest).unwrap_or(0)..];
    // Where the summary was a message of the user, the model has answered it with a word.
    let answer = |it: &Message| {
        it.role == Role::Assistant
            && it.calls().next().is_none()
            && it.texts().map(Text::as_str).collect::<String>().trim() == "OK"
    };
    let rest = if rest.first().is_some_and(answer) { &rest[1..] } else { rest };
    rest.to_vec()
}

/// The part of a rollout in front of the line that brought message `at`, without our answer as Codex records it there: the
/// assistant's last words. The archived one may lack what was written a moment later.
fn before_line(now: &Opened, at: usize, handle: &str) -> Result<Option<(Memory, sessions::Session)>> {
    let Some(record) = now.session.of_message[at].first() else { return Ok(None) };
    let bytes = now.source.bytes(0..now.session.records[*record as usize].at)?;
    if !bytes.ends_with(b"\n") {
        return Ok(None);
    }
    let source = Memory::new("the rollout before the compaction", &*bytes);
    let mut session = sessions::read(&source, Some(now.session.format))?;
    let meta = session.history.meta.clone();
    let mut messages = session.history.into_messages();
    let answer = |it: &Message| it.role == Role::Assistant && it.parts.iter().any(|it| names(it, handle));
    while messages.last().is_some_and(answer) {
        messages.pop();
    }
    session.history = History::new(messages, meta);
    Ok(Some((source, session)))
}

/// The part of a transcript in front of the compaction whose summary is message `at`. The archived one may lack rows that
/// were written a moment later.
fn before_boundary(now: &Opened, at: usize) -> Result<Option<(Memory, sessions::Session)>> {
    let Some(record) = now.session.of_message[at].first() else { return Ok(None) };
    let end = now.session.records[*record as usize].at;
    let bytes = now.source.bytes(0..end)?;
    let Some(mark) = memchr::memmem::rfind(&bytes, b"\"compact_boundary\"") else { return Ok(None) };
    let start = memchr::memrchr(b'\n', &bytes[..mark]).map_or(0, |it| it + 1);
    let source = Memory::new("the transcript before the compaction", &bytes[..start]);
    let session = sessions::read(&source, Some(now.session.format))?;
    Ok(Some((source, session)))
}
