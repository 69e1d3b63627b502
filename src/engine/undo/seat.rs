//! Undo of a compaction that the agent itself wrote into its session, from our answer.
//!
//! The compaction is found there by the handle in the summary's first line; later turns stay.

use std::path::Path;

use crate::agents::gateway::names;
use crate::agents::write_back::{Operation, Placement};
use crate::agents::{self, Database};
use crate::answers::RestoreStatus;
use crate::engine::Opened;
use crate::engine::undo::outcome::{Done, changed, original_of};
use crate::engine::undo::put_back::{Undo, detached};
use crate::engine::write_back::agent_of;
use crate::files::Reading;
use compaction::plan;
use history::error::Result;
use history::{History, Message, Role, Text};
use sessions::Mode;

impl Undo<'_> {
    /// In a database: deletes the compaction's messages; the agent left all others where they were.
    pub(crate) fn undo_seat_rows(&self, database: &dyn Database, path: &Path, id: &str) -> Result<Done> {
        let now = database.export(path, id)?;
        let output = agents::address(path, id);
        let before =
            database.without_compaction(&now, original_of(self.compaction)?).map_err(|_| changed(path))?;
        let Some((before, later)) = before else {
            return Ok(self.done(RestoreStatus::Unchanged, &output));
        };
        database.change(path, &now, &before)?;
        Ok(Done { later, ..self.done(RestoreStatus::Restored, &output) })
    }

    /// In a file: writes the messages from before the compaction again, then the later turns.
    pub(crate) fn undo_seat_file(&self, path: &Path) -> Result<Done> {
        let handle = original_of(self.compaction)?;
        let agent = agent_of(self.session.format)?;
        let (path, now, live, _lock) = &self.lock_current_file(agent, path)?;
        let messages = now.session.history.messages();
        let ours =
            |it: &Message| it.kind == history::Kind::Summary && it.parts.iter().any(|it| names(it, handle));
        let Some(at) = messages.iter().rposition(ours) else {
            let bytes = now.source.whole()?;
            return match memchr::memmem::find(&bytes, handle.as_bytes()) {
                Some(_) => Err(changed(path)),
                None => Ok(self.done(RestoreStatus::Unchanged, path.display())),
            };
        };
        let later = said_since(&messages[at..]);
        let before = match now.session.origins[at].first() {
            Some(record) => {
                let end = now.session.records[*record as usize].at;
                agent.before_summary(&now.source.bytes(0..end)?, handle)?
            }
            None => None,
        };
        let method = agent.write_method(Operation::Restore, *live, false)?;
        if later.is_empty() && method.placement == Placement::Replace {
            crate::files::replace(path, now.source.len(), &mut Reading::of(&self.source))?;
            return Ok(self.done(RestoreStatus::Restored, path.display()));
        }
        let (source, session) = before.unwrap_or_else(|| (self.source.clone(), self.session.clone()));
        let new = |it: &Message| if method.mode == Mode::New { it.clone() } else { detached(it) };
        let all = session.history.messages().iter().map(new).chain(later.iter().map(detached)).collect();
        let after = History::new(all, session.history.meta.clone());
        let opened = match method.mode {
            Mode::New => &Opened::in_memory(Box::new(source), session),
            Mode::Append | Mode::Patch => now,
        };
        self.write_messages(opened, &after, &method, path, later.len())
    }
}

/// The messages after our summary and the tail that was kept with it.
fn said_since(from_summary: &[Message]) -> Vec<Message> {
    let Some((summary, rest)) = from_summary.split_first() else { return Vec::new() };
    let rest = &rest[plan::made_with(summary, rest).unwrap_or(0)..];
    // The model acknowledges a summary that came as the user's message with `OK`.
    let answer = |it: &Message| {
        it.role == Role::Assistant
            && it.calls().next().is_none()
            && it.texts().map(Text::as_str).collect::<String>().trim() == "OK"
    };
    let rest = if rest.first().is_some_and(answer) { &rest[1..] } else { rest };
    rest.to_vec()
}
