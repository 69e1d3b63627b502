//! Stores what a compaction removes, before it is removed.

pub mod keep;
pub mod push;
pub(super) mod marks;
pub(super) mod passages;
pub(super) mod readable;
pub(super) mod recall;
mod server;

use crate::engine::{Ask, Engine, Opened, session_info};
use crate::store::{
    Batch, Body, Digest, FactTally, Handle, ItemKind, NewCompaction, Original, Scope, SessionOrigin,
};
use compaction::plan::{self, Op, OutputOp, Plan};
use history::error::{Error, ErrorKind, Result};
use history::{History, Message, Part};
use score::{Class, Score, Tally};

pub(crate) struct ArchivedHandles {
    /// Handle of the whole session.
    pub(crate) session: String,
    pub(crate) compaction: String,
}

#[derive(Clone, Copy)]
pub(crate) struct PlanResult<'a> {
    pub(crate) plan: &'a Plan,
    /// The history that the plan was made for. A running client's view of a session may differ from its file.
    pub(crate) history: &'a History,
    /// Tokens of the messages after the compaction.
    pub(crate) tokens: u64,
    pub(crate) summary: Option<&'a str>,
    pub(crate) score: Option<&'a Score>,
}

/// Stores the whole session and every text that a plan replaces. Synced to disk when this returns.
pub(crate) fn archive(
    engine: &Engine,
    opened: &Opened,
    ask: &Ask,
    of: PlanResult<'_>,
) -> Result<ArchivedHandles> {
    let PlanResult { plan, history, tokens, summary, score } = of;
    let scope = engine.scope(history);
    let texts: Vec<(&OutputOp, String)> = plan
        .ops
        .iter()
        .filter_map(|op| if let Op::Clear(op) | Op::Shorten(op) = op { Some(op) } else { None })
        .map(|op| {
            let is_its =
                |text: &str| *Handle::of(&scope, &Digest::of(text.as_bytes())).as_str() == *op.handle;
            (op, original_text(&history.messages()[op.message], op, is_its))
        })
        .collect();
    let turns: Vec<(usize, u64, String)> = plan
        .ops
        .iter()
        .filter_map(|op| {
            let Op::Collapse { from, to, tokens, .. } = op else { return None };
            Some((*from, *tokens, plan::transcript(&history.messages()[*from..*to])))
        })
        .collect();
    let session = session_original(opened, plan.tokens_before);
    let parts = texts.iter().map(|(op, text)| Original {
        kind: if op.call_id.is_empty() { ItemKind::Message } else { ItemKind::Output },
        body: Body::Bytes(text.as_bytes()),
        message: Some(op.message as u32),
        call_id: Some(op.call_id.as_str()).filter(|it| !it.is_empty()),
        tool: Some(op.tool.as_str()).filter(|it| !it.is_empty()),
        tokens: op.tokens_before,
    });
    let turns = turns.iter().map(|(from, tokens, text)| Original {
        message: Some(*from as u32),
        ..Original::new(ItemKind::Message, Body::Bytes(text.as_bytes()), *tokens)
    });
    let batch = Batch {
        session: origin_of(opened),
        at: engine.now,
        originals: std::iter::once(session).chain(parts).chain(turns).collect(),
        compaction: Some(NewCompaction {
            profile: ask.profile.name.clone(),
            trigger: ask.cause().name().to_owned(),
            tokens_before: plan.tokens_before,
            tokens_after: tokens,
            summary: summary.unwrap_or_default().to_owned(),
            facts: score.map(facts).unwrap_or_default(),
        }),
    };
    store_compaction(engine, &scope, &batch)
}

/// Stores a compaction. The first original in `batch` must be the session.
pub(crate) fn store_compaction(engine: &Engine, scope: &Scope, batch: &Batch<'_>) -> Result<ArchivedHandles> {
    let stored = engine.store.put_all(scope, batch)?;
    let (Some(session), Some(compaction)) = (stored.handles.first(), stored.compaction) else {
        return Err(Error::new(ErrorKind::Bug, "archiving a session: expected its handle, found none"));
    };
    Ok(ArchivedHandles { session: session.as_str().to_owned(), compaction: compaction.as_str().to_owned() })
}

fn facts(score: &Score) -> Vec<FactTally> {
    let tally = |(class, it): (&Class, &Tally)| FactTally {
        class: class.name().to_owned(),
        found: it.found as u64,
        kept: it.kept as u64,
    };
    score.classes.iter().map(tally).collect()
}

/// Stores the whole session unchanged. Storing the same bytes again adds no copy.
pub(crate) fn archive_session(engine: &Engine, opened: &Opened) -> Result<Handle> {
    let batch = Batch {
        session: origin_of(opened),
        at: engine.now,
        originals: vec![session_original(opened, 0)],
        compaction: None,
    };
    let stored = engine.store.put_all(&engine.scope(&opened.session.history), &batch)?;
    let handle = stored.handles.into_iter().next();
    handle.ok_or_else(|| Error::new(ErrorKind::Bug, "keeping a session: expected its handle, found none"))
}

/// The handle under which the whole session is archived, or will be.
pub(crate) fn session_handle(engine: &Engine, opened: &Opened) -> Result<String> {
    let digest = Digest::of_source(&*opened.source, opened.source.len())?;
    Ok(Handle::of(&engine.scope(&opened.session.history), &digest).as_str().to_owned())
}

pub(crate) fn session_original(opened: &Opened, tokens: u64) -> Original<'_> {
    Original::session(Body::Source(&*opened.source), tokens)
}

/// The session's origin as the store records it.
pub(crate) fn origin_of(opened: &Opened) -> SessionOrigin {
    let info = session_info(opened);
    SessionOrigin {
        agent: info.agent.unwrap_or_default(),
        id: info.id.unwrap_or_default(),
        path: info.path,
        format: info.format,
    }
}

/// The text that an op removes from a message, or the attachment's data, whichever the op's handle names.
fn original_text(message: &Message, op: &OutputOp, is_its: impl Fn(&str) -> bool) -> String {
    let mut media = message.parts.get(op.part).into_iter().flat_map(plan::attached);
    if let Some(it) = media.find(|it| is_its(&it.data)) {
        return it.data.to_string();
    }
    match message.parts.get(op.part) {
        Some(Part::Output(output)) if !op.call_id.is_empty() => output.text.as_str().to_owned(),
        Some(_) | None => message.plain(),
    }
}
