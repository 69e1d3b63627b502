//! Archives sessions before their agents delete them.

use crate::agents::FoundSession;
use crate::answers::KeepAnswer;
use crate::engine::archive::marks::kept_mark;
use crate::engine::{Engine, archive::passages};
use crate::files::File;
use crate::store::{Batch, Body, Collected, Gone, Original, Retention, SessionOrigin};
use history::error::Result;
use sessions::{MemorySource, Source};

/// Archives each session that changed since it was last archived. A session that cannot be read is reported
/// and does not stop the others.
pub fn keep(engine: &Engine, found: &[FoundSession]) -> KeepAnswer {
    let mut out = KeepAnswer::default();
    // Oldest first, because a search looks first at what was indexed last.
    for it in found.iter().rev() {
        match keep_one(engine, it) {
            Ok(None) => out.unchanged += 1,
            Ok(Some(bytes)) => {
                out.kept += 1;
                out.bytes += bytes;
            }
            Err(error) => out.failed.push(format!("{}: {}", it.address(), error.full())),
        }
    }
    match apply_retention(engine) {
        Ok(gone) => {
            let line = |it: Gone| format!("{} ({}) {}", it.session, it.handle, it.project);
            out.let_go = gone.sessions.into_iter().map(line).collect();
        }
        Err(error) => out.failed.push(error.full()),
    }
    out
}

/// The configured age and size limits for archived sessions that no compaction needs; by default there are
/// none.
pub fn retention(engine: &Engine) -> Retention {
    const DAY: i64 = 24 * 60 * 60 * 1_000;
    let age = engine.config.max_age_days.map(|days| i64::from(days) * DAY);
    Retention {
        before: age.map(|it| engine.now.saturating_sub(it)),
        max_bytes: engine.config.max_bytes,
        originals_only: true,
    }
}

/// Deletes what exceeds the age or size that the configuration sets, if it sets one.
fn apply_retention(engine: &Engine) -> Result<Collected> {
    let retention = retention(engine);
    if retention.before.is_none() && retention.max_bytes.is_none() {
        return Ok(Collected::default());
    }
    engine.store.collect(&retention, engine.now, false)
}

/// Returns the number of bytes archived, or `None` if the session is unchanged.
fn keep_one(engine: &Engine, found: &FoundSession) -> Result<Option<u64>> {
    let project = found.cwd.as_ref().map(|it| it.display().to_string()).unwrap_or_default();
    let scope = engine.scope_of(project);
    let mark = kept_mark(found.agent.name(), &found.id);
    let last = engine.store.marked(&scope, &mark)?;
    let is_same = |version: &str| last.as_ref().is_some_and(|it| it.value == version);
    let source: Box<dyn Source> = match found.agent.info().database {
        // Checked before the export, so that unchanged rows are not read.
        Some(_) if is_same(&found.changed_ms.to_string()) => return Ok(None),
        Some(database) => {
            Box::new(MemorySource::new(found.address().as_str(), database.export(&found.path, &found.id)?))
        }
        None => Box::new(File::open(&found.path)?),
    };
    let version = match found.agent.info().database {
        Some(_) => found.changed_ms.to_string(),
        None => format!("{} {}", found.changed_ms, source.len()),
    };
    if is_same(&version) {
        return Ok(None);
    }
    let batch = Batch {
        session: SessionOrigin {
            agent: found.agent.name().to_owned(),
            id: found.id.clone(),
            path: Some(found.address()),
            format: found.agent.format().name().to_owned(),
        },
        // Retention by age uses this date: when the session last changed, not when it was archived.
        at: found.changed_ms,
        originals: vec![Original::session(Body::Source(&*source), 0)],
        compaction: None,
    };
    let stored = engine.store.put_all(&scope, &batch)?;
    if let Some(handle) = stored.handles.first() {
        // A session that cannot be parsed is archived anyway, without passages.
        let read = sessions::read(&*source, Some(found.agent.format()));
        let history = read.map(|it| it.history).unwrap_or_default();
        passages::index_session(engine, &scope, handle.as_str(), &history)?;
    }
    engine.store.mark(&scope, &mark, &version, engine.now)?;
    Ok(Some(source.len()))
}
