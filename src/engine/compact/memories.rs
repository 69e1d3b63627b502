//! What carries over from session to session: pinned rules, the project's memories, remembered summaries.

use crate::engine::{Ask, Engine, Opened};
use crate::store::{MemoryFilter, MemoryKind, MemoryScope, NewMemory};
use compaction::facts::{self, Topic};
use compaction::profile::{Section, SummarySpec, SummaryStyle};
use compaction::summary::offline::{self, OfflineRequest};
use history::History;
use history::error::Result;
use tokens::Estimator;

/// Maximum tokens (o200k) that pinned rules take in a summary.
const PINNED: u64 = 1_000;

/// What a summary repeats word for word: what the caller passed, then the rules pinned for user and project,
/// newest first, within [`PINNED`].
pub(crate) fn pins(engine: &Engine, history: &History, said: &[String]) -> Result<Vec<String>> {
    let mut out = said.to_vec();
    let mut left = PINNED;
    for it in engine.store.pinned(&engine.memory_scope(history))? {
        let text = history::one_line(&it.content);
        let tokens = Estimator::O200k.text(&text);
        if tokens <= left && !out.contains(&text) {
            left -= tokens;
            out.push(text);
        }
    }
    Ok(out)
}

/// The pinned rules and the facts of a whole history as text, by topic: at most `budget` tokens (o200k).
pub(crate) fn pins_and_facts(
    engine: &Engine,
    history: &History,
    sections: &[(&str, &[Topic])],
    budget: u64,
    focus: Option<&str>,
) -> Result<String> {
    let pins = pins(engine, history, &[])?;
    let sections = sections.iter().map(|(title, holds)| Section {
        title: (*title).to_owned(),
        holds: holds.to_vec(),
        ..Section::default()
    });
    let spec = SummarySpec { sections: sections.collect(), max_tokens: budget, ..SummarySpec::default() };
    let asked = OfflineRequest {
        region: 0..history.messages().len(),
        cleared: &[],
        kept: &[],
        spec: &spec,
        max_tokens: budget,
        budget_for_shares: None,
        style: SummaryStyle::Detailed,
        focus,
        pins: &pins,
        header: None,
    };
    Ok(offline::write(history, &facts::read(history), &asked, &|text| Estimator::O200k.text(text)))
}

/// The project's memories that the profile adds to a summary, newest first.
pub(crate) fn recalled(engine: &Engine, history: &History, ask: &Ask) -> Vec<String> {
    let Some(rule) = &ask.profile.remember else { return Vec::new() };
    let filter = MemoryFilter {
        scope: Some(MemoryScope::Project),
        limit: Some(rule.recalled),
        ..MemoryFilter::default()
    };
    let found = engine.store.memories(&engine.memory_scope(history), &filter).unwrap_or_default();
    // A remembered summary describes a session, not the project.
    let notes = found.into_iter().filter(|it| it.kind != MemoryKind::Conversation);
    notes.map(|it| history::one_line(&it.content)).collect()
}

/// Stores the summary as a memory of the project, if the profile asks for it. Returns a warning if that
/// fails.
pub(crate) fn remember(engine: &Engine, opened: &Opened, ask: &Ask, summary: Option<&str>) -> Option<String> {
    let (rule, summary) = (ask.profile.remember.as_ref()?, summary?);
    let history = &opened.session.history;
    let session = history.meta.session.as_deref()?;
    if summary.chars().count() < rule.least_chars {
        return None;
    }
    let memory = NewMemory::summary(session, summary);
    let remembered = engine.store.remember(&engine.memory_scope(history), &memory, engine.now);
    remembered.err().map(|error| format!("the summary could not be saved as a memory: {error}"))
}
