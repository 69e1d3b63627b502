//! The `repair` verb: finds the damage in a session, mends it, and puts the session back.
//!
//! A file over 64 MB is read and written piece by piece; a database session is always read whole.

use std::io::{BufReader, Read};
use std::ops::Range;
use std::path::PathBuf;

use crate::agents::{self, write_back};
use crate::answers::{FindingInfo, Next, RepairAnswer, RepairStatus, RestoreStatus, TakesEffect};
use crate::engine::archive::ArchivedHandles;
use crate::engine::undo::outcome::{Done, changed, original_of};
use crate::engine::write_back::{Location, Target, WrittenFingerprint, agent_of};
use crate::engine::{Engine, Opened, SessionRef, archive, input::open, session_info};
use crate::files::{File, Reading};
use crate::store::{
    Applied, AppliedMode, AuditVerb, Batch, Body, Compaction, Digest, Handle, ItemKind, NewCompaction,
    Original, Scope,
};
use history::error::{Error, ErrorKind, Result};
use sessions::repair::{Mended, Repair};
use sessions::{self, Format, MemorySource, Session, Source};

/// Maximum bytes of a mended session that is also read whole and checked against its API's rules.
const JUDGED: u64 = 64 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RepairTo {
    /// Nowhere: the damage is only reported.
    Preview,
    File(PathBuf),
    /// In the place of the damaged one, which is archived.
    Session,
}

/// Finds and mends the damage in a session, without compacting it.
///
/// # Errors
/// [`ErrorKind::Live`] for a session in use, [`ErrorKind::Refused`] for one that may not be written or
/// archived, [`ErrorKind::Changed`] if it was written to meanwhile. On an error nothing is replaced.
pub fn repair(
    engine: &Engine,
    what: &SessionRef,
    format: Option<Format>,
    agent: Option<&str>,
    to: &RepairTo,
) -> Result<RepairAnswer> {
    let unread = open::open_unread(engine, what, format, agent)?;
    let (format, source) = (unread.session.format, &*unread.source);
    // A first pass without handles: a handle depends on the project, which only the mended session tells.
    let first = sessions::repair::repair(source, format, &|_| String::new())?;
    let session = mended_session(&first.mended(source), format)?;
    let opened = unread.read_as(session);
    let scope = engine.scope(&opened.session.history);
    let source = &*opened.source;
    let found = match first.archived.is_empty() {
        true => first,
        false => damage(source, format, &scope)?,
    };
    let mended = found.mended(source);
    let left = remaining_problems(&opened, &mended)?;
    let written = match to {
        RepairTo::Preview => Written::default(),
        RepairTo::File(path) => {
            let handle = match found.archived.is_empty() {
                true => None,
                false => Some(archived(engine, &opened, &scope, &found)?.session),
            };
            crate::files::install_from(path, &mut Reading::of(&mended))?;
            Written { handle, output: Some(path.display().to_string()), resume: None }
        }
        RepairTo::Session if found.is_needed() => put_mended(engine, &opened, &scope, &found)?,
        RepairTo::Session => Written::default(),
    };
    let status = match (&written.resume, found.counts.is_empty()) {
        (Some(_), _) => RepairStatus::Repaired,
        (None, true) => RepairStatus::Sound,
        (None, false) => RepairStatus::Damaged,
    };
    let next = written.resume.as_ref().map(|it| Next::user(format!("Resume with: {it}")));
    Ok(RepairAnswer {
        session: session_info(&opened),
        status,
        findings: found.findings.iter().map(finding).collect(),
        counts: found.counts.iter().map(|(damage, count)| (damage.name().to_owned(), *count)).collect(),
        messages: (mended.len() <= JUDGED).then(|| opened.session.history.messages().len()),
        left,
        handle: written.handle,
        output: written.output,
        takes_effect: written.resume.as_ref().map(|_| TakesEffect::OnResume),
        resume: written.resume,
        next: next.unwrap_or_default(),
    })
}

/// The damage in a session. A note that replaces a piece names it by its handle in `scope`.
fn damage(source: &dyn Source, format: Format, scope: &Scope) -> Result<Repair> {
    sessions::repair::repair(source, format, &|data| Handle::of(scope, &Digest::of(data)).as_str().to_owned())
}

#[derive(Default)]
struct Written {
    /// Handle of the archived original.
    handle: Option<String>,
    /// Path of the file or session.
    output: Option<String>,
    /// The command that resumes the session, if it was replaced in place.
    resume: Option<String>,
}

/// Replaces the damaged session by the mended one.
fn put_mended(engine: &Engine, opened: &Opened, scope: &Scope, found: &Repair) -> Result<Written> {
    let target = Target::of(engine, opened)?;
    let Target { agent, place, .. } = &target;
    let env = &engine.config.agents;
    let id = opened.session.history.meta.session.as_deref().unwrap_or_default().to_owned();
    if write_back::is_in_use(env, *agent, &id, place.path(), engine.now) {
        let what = "repairing: the session is in use; end it in its agent first";
        return Err(Error::new(ErrorKind::Live, what).at_path(place.path()));
    }
    let _lock = agent.lock(env, &id)?;
    let ArchivedHandles { session: handle, compaction } = archived(engine, opened, scope, found)?;
    let source = &*opened.source;
    let mended = found.mended(source);
    let (digest, len) = (Digest::of_source(&mended, mended.len())?, mended.len());
    let output = opened.path.as_ref().map(|it| it.display().to_string()).unwrap_or_default();
    let mark = WrittenFingerprint { len, digest: digest.to_string(), ..WrittenFingerprint::default() };
    let applied = Applied {
        path: Some(output.clone()),
        session: None,
        mode: AppliedMode::Repair,
        fingerprint: history::json::compact(&mark),
    };
    engine.store.finish(scope, &compaction, &applied)?;
    match place {
        Location::File(path) => crate::files::replace(path, source.len(), &mut Reading::of(&mended))?,
        Location::Rows(database, path, _) => {
            database.change(path, &source.whole()?, &mended.whole()?)?;
        }
    }
    engine.audit(AuditVerb::Repair, scope, Some(&id), Some(&handle));
    let cwd = opened.session.history.meta.cwd.as_deref().map(PathBuf::from);
    let resume = target.resume(engine, place.path(), &id, cwd.as_deref());
    Ok(Written { handle: Some(handle), output: Some(output), resume: Some(resume) })
}

/// Archives the session as it is, and each piece that a note replaces.
fn archived(engine: &Engine, opened: &Opened, scope: &Scope, found: &Repair) -> Result<ArchivedHandles> {
    let part = |range: &Range<u64>| Mended::part(&*opened.source, range.clone());
    let parts: Vec<Mended<'_>> = found.archived.iter().map(part).collect();
    let taken = parts.iter().map(|it| Original::new(ItemKind::Output, Body::Source(it), 0));
    let batch = Batch {
        session: archive::origin_of(opened),
        at: engine.now,
        originals: std::iter::once(archive::session_original(opened, 0)).chain(taken).collect(),
        compaction: Some(NewCompaction {
            profile: "repair".to_owned(),
            trigger: "manual".to_owned(),
            ..NewCompaction::default()
        }),
    };
    archive::store_compaction(engine, scope, &batch)
}

/// Restores the session from before its repair; what was appended since stays at its end.
pub(crate) fn undo_repair(
    engine: &Engine,
    scope: &Scope,
    compaction: &Compaction,
    mark: &WrittenFingerprint,
) -> Result<Done> {
    let original = original_of(compaction)?;
    let output = compaction.applied.as_ref().and_then(|it| it.path.clone()).unwrap_or_default();
    let path = PathBuf::from(&output);
    let format = Format::named(&compaction.session.format)?;
    let done = |status, later| Done {
        status,
        id: compaction.session.id.clone(),
        output: output.clone(),
        later,
        warnings: Vec::new(),
    };
    match Location::of(Some(&path))? {
        Location::File(path) => {
            let now = File::open(&path)?;
            let as_written =
                now.len() >= mark.len && Digest::of_source(&now, mark.len)?.to_string() == mark.digest;
            if !as_written {
                let is_other =
                    crate::files::has_other_content(&path, &mut *engine.store.reader(scope, original)?)?;
                return if is_other { Err(changed(&path)) } else { Ok(done(RestoreStatus::Unchanged, 0)) };
            }
            let since = now.bytes(mark.len..now.len())?;
            let agent = agent_of(format)?;
            let _lock = agent.lock(&engine.config.agents, &compaction.session.id)?;
            // What was appended must begin on a line of its own.
            let last = BufReader::new(engine.store.reader(scope, original)?).bytes().last();
            let last = last.transpose().map_err(crate::store::unwrapped)?;
            let between: &[u8] = if since.is_empty() || last == Some(b'\n') { b"" } else { b"\n" };
            let mut all = engine.store.reader(scope, original)?.chain(between).chain(&*since);
            crate::files::replace(&path, now.len(), &mut all)?;
            Ok(done(RestoreStatus::Restored, since.iter().filter(|it| **it == b'\n').count()))
        }
        Location::Rows(database, path, id) => {
            let bytes = engine.store.restore(scope, original)?;
            let source = MemorySource::new(agents::address(&path, &id), bytes.as_slice());
            let mended = damage(&source, format, scope)?.mended(&source).whole()?;
            if Digest::of(&mended).to_string() != mark.digest {
                return Err(changed(&path));
            }
            database.change(&path, &mended, &bytes)?;
            Ok(done(RestoreStatus::Restored, 0))
        }
    }
}

/// A warning if a compacted session was damaged. The compacted one was made from what could be read, so it
/// has none of that damage.
pub(crate) fn left_behind(opened: &Opened) -> Result<Option<String>> {
    let format = opened.session.format;
    if !format.is_repaired() || opened.source.len() > JUDGED {
        return Ok(None);
    }
    let found = sessions::repair::repair(&*opened.source, format, &|_| String::new())?;
    let kinds: Vec<String> =
        found.counts.iter().map(|(damage, count)| format!("{count} {}", damage.name())).collect();
    Ok((!kinds.is_empty()).then(|| {
        format!(
            "the session was damaged ({}); the compacted part is repaired, `epitome repair` repairs the rest",
            kinds.join(", ")
        )
    }))
}

fn finding(it: &sessions::repair::Finding) -> FindingInfo {
    FindingInfo {
        damage: it.damage.name().to_owned(),
        line: it.line,
        detail: it.detail.clone(),
        why: it.damage.why().to_owned(),
        mend: it.damage.mend().to_owned(),
    }
}

/// The mended session. Of one over [`JUDGED`] bytes only the two ends are read, for its id and directory.
fn mended_session(mended: &dyn Source, format: Format) -> Result<Session> {
    let scan = |source: &dyn Source| {
        sessions::scan(source, Some(format), &|text, _| Some(tokens::measured_stub(text)))
    };
    if mended.len() <= JUDGED {
        return scan(mended);
    }
    const END: u64 = 8 << 20;
    let head = mended.bytes(0..END)?;
    let tail = mended.bytes(mended.len() - END..mended.len())?;
    let whole = |it: &[u8]| it.iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
    let begin = tail.iter().position(|it| *it == b'\n').map_or(tail.len(), |it| it + 1);
    let ends = [&head[..whole(&head)], &tail[begin..]].concat();
    let mut session = scan(&MemorySource::new(mended.name(), ends)).or_else(|_| scan(mended))?;
    session.notes.clear();
    Ok(session)
}

/// What is still not understood in the mended session, or breaks a rule of its API.
fn remaining_problems(opened: &Opened, mended: &dyn Source) -> Result<Vec<String>> {
    let session = &opened.session;
    let mut out: Vec<String> =
        session.notes.iter().map(|it| format!("line {}: {}", it.line, it.what)).collect();
    if mended.len() <= JUDGED {
        let read = sessions::read(mended, Some(session.format))?;
        let api = session.format.api();
        let (messages, _) = sessions::wire::messages_of(&read.history, Some(session.format), api);
        let found = sessions::validate::check(api, &messages);
        out.extend(found.into_iter().map(|it| format!("message {}: {}: {}", it.message, it.rule, it.what)));
    }
    Ok(out)
}
