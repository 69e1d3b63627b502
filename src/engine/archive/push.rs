//! Sends archived sessions to the team's server.
//!
//! The archive is the queue: the newest version of each session waits there until it is delivered. So nothing
//! is stored twice, the queue outlives this process, and nothing is lost while the server is unreachable.

use std::collections::HashSet;

use super::server::{Delivery, SessionLabel, VaultClient};
use crate::answers::PushAnswer;
use crate::engine::Engine;
use crate::engine::archive::marks::SessionMark;
use crate::store::{AuditVerb, Entry, Scope, SearchExtent};
use history::error::{Error, ErrorKind, Result};

/// Maximum archived versions that one push looks at, newest first.
const LOOKED_AT: u32 = 10_000;

/// Maximum sessions that one push sends; the next push continues.
const MAX_SENT: usize = 1_000;

/// Maximum bytes of a session to send: the server accepts no larger body.
const LARGEST: u64 = 64 << 20;

/// Sends all waiting sessions, or only `session` (an id or a handle).
pub fn push(engine: &Engine, session: Option<&str>) -> Result<PushAnswer> {
    let Some(vault) = &engine.config.vault else {
        let what = "pushing: expected the address of a server, found none; write url = \"https://…\" under [vault], or \
                    set EPITOME_VAULT_URL";
        return Err(Error::new(ErrorKind::Arguments, what));
    };
    let server = VaultClient::new(vault)?;
    let mut waiting = waiting(engine, session)?;
    let mut out = PushAnswer { waiting: waiting.len().saturating_sub(MAX_SENT), ..PushAnswer::default() };
    waiting.truncate(MAX_SENT);
    // Oldest first: those are the next to be deleted from the archive.
    while let Some(entry) = waiting.pop() {
        match send(engine, &server, &entry) {
            Ok(Delivery::Stored) => {
                let handle = Some(entry.handle.as_str());
                engine.audit(AuditVerb::Push, &scope(engine, &entry), entry.session.as_deref(), handle);
                out.pushed += 1;
                out.bytes += entry.bytes;
            }
            Ok(Delivery::Refused(why)) => out.refused.push(format!("{}: {why}", name(&entry))),
            // A damaged session is skipped; a server that does not answer ends the push.
            Err(error) if error.kind() == ErrorKind::Store => out.refused.push(error.full()),
            Err(error) => {
                out.waiting += waiting.len() + 1;
                out.away = Some(error.full());
                return Ok(out);
            }
        }
    }
    Ok(out)
}

fn name(entry: &Entry) -> &str {
    entry.session.as_deref().unwrap_or(entry.handle.as_str())
}

/// The newest version of each session that was not delivered yet, newest first. `session` is included even if
/// it was.
fn waiting(engine: &Engine, session: Option<&str>) -> Result<Vec<Entry>> {
    let everything = engine.shared();
    let mut known = HashSet::new();
    let mut out = Vec::new();
    for entry in engine.store.sessions(&everything, &SearchExtent::All, LOOKED_AT)? {
        let is_meant = session.is_none_or(|it| name(&entry) == it || entry.handle.as_str() == it);
        if !is_meant || !known.insert((entry.project.clone(), name(&entry).to_owned())) {
            continue;
        }
        let delivered = engine.store.marked(&scope(engine, &entry), &SessionMark::Pushed.of(name(&entry)))?;
        if session.is_some() || delivered.is_none_or(|it| it.value != entry.handle.as_str()) {
            out.push(entry);
        }
    }
    if let (Some(session), true) = (session, out.is_empty()) {
        let what = "expected the id of an archived session or its handle; `epitome sessions --keep` archives the \
                    sessions of this machine";
        return Err(Error::new(ErrorKind::Arguments, format!("pushing {session}: {what}, found none")));
    }
    Ok(out)
}

fn scope(engine: &Engine, entry: &Entry) -> Scope {
    engine.scope_of(entry.project.as_str())
}

fn send(engine: &Engine, server: &VaultClient, entry: &Entry) -> Result<Delivery> {
    let scope = scope(engine, entry);
    let delivery = if entry.bytes > LARGEST {
        Delivery::Refused(format!("{} MB, and the server takes {} MB", entry.bytes >> 20, LARGEST >> 20))
    } else {
        let bytes = engine.store.restore(&scope, entry.handle.as_str())?;
        server.send(&SessionLabel { session: name(entry), project: &entry.project, at: entry.at }, bytes)?
    };
    // A refused session is marked too: it is sent again only after it changes.
    engine.store.mark(&scope, &SessionMark::Pushed.of(name(entry)), entry.handle.as_str(), engine.now)?;
    Ok(delivery)
}
