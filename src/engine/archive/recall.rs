//! Searches the archive, the memories and the agents' prompt logs, and reads archived originals.

use std::collections::HashSet;

use serde::Serialize;
use twox_hash::XxHash3_128;

use crate::agents;
use crate::engine::{Engine, SessionRef, archive::passages, input::open};
use crate::store::search::words::{Terms, Words};
use crate::store::{
    Entry, Face, Filter, Found, FoundPassage, Hit, ItemKind, MAX_HITS, PassageKind, PassageMatch, Query,
    Range, Scope, SearchExtent, SearchScope, Slice, Snippet, range, unwrapped,
};
use compaction::plan;
use history::error::{Error, ErrorKind, Result};
use history::{History, Part};
use sessions::{self, MemorySource};

/// Maximum sessions that one search reads.
const MAX_SESSIONS: u32 = 1_000;
/// Maximum cleared outputs of a session (each has its own handle) that a search takes into account.
const MAX_CLEARED: u32 = 10_000;
/// Matching messages after which a search reads no further session.
const ENOUGH_MESSAGES: usize = 1_000;
/// Bytes of sessions after which a search without the index reads no further one: about a second's work.
const MAX_SCANNED_BYTES: u64 = 256 << 20;
/// Maximum bytes of sessions that one search adds to the index; the next search continues.
const MAX_INDEXED_BYTES: u64 = 64 << 20;

type Ranked = Vec<(Rank, Hit)>;

/// A prompt from an agent's own log of what the user typed. It has no handle because it is not archived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundPrompt {
    /// `prompt`.
    pub kind: &'static str,
    pub agent: &'static str,
    /// The session it was typed in.
    pub session: String,
    /// When, in milliseconds since 1970.
    pub at: i64,
    pub snippet: Snippet,
}

/// What was found in the archive, the memory and the agents' logs.
#[derive(Debug, Clone, PartialEq)]
pub struct Recalled {
    /// From the archive and the memories.
    pub found: Found,
    /// From the agents' logs, newest first.
    pub typed: Vec<FoundPrompt>,
    /// The scope that was searched.
    pub scope: SearchScope,
    /// Archived sessions that were not searched because the newer ones reached the limit.
    pub not_searched: usize,
}

/// Sort key of a result: smaller is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    /// Words of the query that the result lacks.
    missing: usize,
    class: ResultClass,
}

/// Kinds of results, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ResultClass {
    /// The user's decision, where the query asks for one; the agent's comes second.
    UserDecision,
    Decision,
    /// What the user wrote or answered, and memories.
    User,
    Other,
    /// A summary, which only repeats what other results say.
    Summary,
}

fn class_of(entry: &Entry) -> ResultClass {
    match entry.kind {
        ItemKind::Memory => ResultClass::User,
        ItemKind::Session | ItemKind::Message | ItemKind::Output => ResultClass::Other,
        ItemKind::Compaction => ResultClass::Summary,
    }
}

fn class_of_message(by_user: bool, decides: bool, asked_for_decision: bool) -> ResultClass {
    match (by_user, decides && asked_for_decision) {
        (true, true) => ResultClass::UserDecision,
        (false, true) => ResultClass::Decision,
        (true, false) => ResultClass::User,
        (false, false) => ResultClass::Other,
    }
}

/// Searches the scope `wanted`; by default the project, and everything if the project has no match. `session`
/// resolves [`SearchScope::Session`] to the scope and the id of a session. For a caller of the team's server,
/// the agents' logs are on another machine and are not searched.
///
/// # Errors
///
/// A session that is not found, or a store that cannot be read.
pub fn recall(
    engine: &Engine,
    query: &Query,
    wanted: Option<SearchScope>,
    session: &dyn Fn() -> Result<(Scope, String)>,
) -> Result<Recalled> {
    let elsewhere = engine.face == Face::Server;
    let here = if elsewhere { engine.shared() } else { engine.project() };
    let search = |scope: &Scope, extent: SearchExtent| -> Result<Recalled> {
        let query = Query { extent, ..query.clone() };
        let recalled = search(engine, scope, &query)?;
        if elsewhere || query.offset > 0 {
            return Ok(recalled);
        }
        let room = query.limit.saturating_sub(recalled.found.hits.len() as u32);
        Ok(Recalled { typed: typed(engine, &query, room)?, ..recalled })
    };
    match wanted {
        Some(SearchScope::All) => search(&here, SearchExtent::All),
        Some(SearchScope::Project) => search(&here, SearchExtent::Project),
        Some(SearchScope::Session) => {
            let (scope, id) = session()?;
            search(&scope, SearchExtent::Session(id))
        }
        None => {
            let near = search(&here, SearchExtent::Project)?;
            let nothing = near.found.hits.is_empty() && near.typed.is_empty() && query.offset == 0;
            if nothing { search(&here, SearchExtent::All) } else { Ok(near) }
        }
    }
}

/// Searches two indexes: outputs, summaries and memories; and the passages of archived sessions. Where both
/// find nothing, the archived sessions themselves are searched, outputs included.
///
/// Results with most of the words come first; among equals the user's words and decisions, then other
/// messages and outputs, then summaries, which only repeat.
///
/// # Errors
///
/// A query without a word to look for, or a store that cannot be read.
pub fn search(engine: &Engine, scope: &Scope, query: &Query) -> Result<Recalled> {
    let (text, filter) = passages::filter(&query.text, engine.now);
    let query = &Query { text, limit: query.limit.clamp(1, MAX_HITS), ..query.clone() };
    let words = Words::parse(&query.text)?;
    let (from, limit) = (query.offset as usize, query.limit as usize);
    let indexed = search_index(engine, scope, query, &words, &filter)?;
    let index_lacks = !indexed.iter().any(has_all_words);
    let (mut ranked, not_searched) = search_messages(engine, scope, query, &words, &filter, index_lacks)?;
    ranked.extend(indexed);
    let partial = !ranked.is_empty() && !ranked.iter().any(has_all_words);
    // A summary only repeats: partial results that say more are kept beside it, and come before it.
    let is_summary = |it: &(Rank, Hit)| it.0.class == ResultClass::Summary;
    if ranked.iter().any(|it| has_all_words(it) && !is_summary(it)) {
        ranked.retain(has_all_words);
    }
    // The sort is stable: within a rank, the newest messages and the index's best matches stay first.
    ranked.sort_by_key(|it| (is_summary(it), it.0));
    let next = (ranked.len() > from + limit).then(|| query.offset + query.limit);
    let hits: Vec<Hit> = ranked.into_iter().skip(from).take(limit).map(|it| it.1).collect();
    Ok(Recalled {
        found: Found { partial: partial && !hits.is_empty(), hits, next },
        typed: Vec::new(),
        scope: query.extent.scope(),
        not_searched,
    })
}

fn has_all_words(it: &(Rank, Hit)) -> bool {
    it.0.missing == 0
}

/// The matching outputs, summaries and memories of the pages up to the wanted one, and more.
fn search_index(
    engine: &Engine,
    scope: &Scope,
    query: &Query,
    words: &Words,
    filter: &Filter,
) -> Result<Ranked> {
    // These entries have neither an agent nor a kind to filter by.
    if filter.agent.is_some() || filter.kind.is_some() {
        return Ok(Vec::new());
    }
    let max = query.offset as usize + query.limit as usize;
    let mut out = Found { next: Some(0), ..Found::default() };
    while let Some(offset) = out.next.filter(|_| out.hits.len() <= max) {
        let more = engine.store.search(scope, &Query { offset, limit: MAX_HITS, ..query.clone() })?;
        out.hits.extend(more.hits);
        out.next = more.next;
        out.partial |= more.partial;
    }
    let in_time = |at: i64| filter.since.is_none_or(|it| at >= it) && filter.before.is_none_or(|it| at < it);
    let missing = if out.partial { words.count() } else { 0 };
    let ranked = |it: Hit| (Rank { missing, class: class_of(&it.entry) }, it);
    Ok(out.hits.into_iter().filter(|it| in_time(it.entry.at)).map(ranked).collect())
}

/// Matching messages, and how many archived sessions were not searched. `index_lacks`: no output, summary or
/// memory holds all words. Where no passage does either, the sessions themselves are searched.
fn search_messages(
    engine: &Engine,
    scope: &Scope,
    query: &Query,
    words: &Words,
    filter: &Filter,
    index_lacks: bool,
) -> Result<(Ranked, usize)> {
    if !query.only.is_empty() && !query.only.contains(&ItemKind::Message) {
        return Ok((Vec::new(), 0));
    }
    let unindexed = passages::index(engine, &scope.owner, MAX_INDEXED_BYTES)?;
    let found = search_passages(engine, scope, query, words, filter)?;
    if found.iter().any(has_all_words) || !index_lacks || *filter != Filter::default() {
        return Ok((found, unindexed));
    }
    // The match may be in a tool output, which is not indexed.
    search_sessions(engine, scope, query, words)
}

/// Passages of the index that hold all words or, where none does, more than half of them.
fn search_passages(
    engine: &Engine,
    scope: &Scope,
    query: &Query,
    words: &Words,
    filter: &Filter,
) -> Result<Ranked> {
    let search = |wanted| engine.store.search_passages(scope, &query.extent, words, wanted, filter);
    let class = |it: &PassageMatch| {
        let is = |kind| it.kinds.contains(&kind);
        class_of_message(is(PassageKind::User), is(PassageKind::Decision), words.asks_for_decision())
    };
    let mut matches = search(Terms::All)?;
    let all_words = !matches.is_empty();
    if all_words {
        // Read only what the page shows, and one more to know whether there is a next page.
        matches.sort_by_key(class);
        matches.truncate(query.offset as usize + query.limit as usize + 1);
    } else if words.count() > 1 {
        matches = search(Terms::Any)?;
    }
    let mut out = Vec::new();
    for it in &matches {
        let Some(FoundPassage { entry, text }) = engine.store.passage(&engine.config.owner, it.id)? else {
            continue;
        };
        // After `Terms::All` trust the index, which folds accents; `found_in` does not.
        let missing = if all_words { 0 } else { words.count() - words.found_in(&text) };
        if missing == 0 || missing * 2 < words.count() {
            let number = u64::from(entry.message.unwrap_or_default());
            let range = Some(Range::Messages { from: number, to: number }.to_string());
            let hit = Hit { snippet: words.snippet(&text), entry, score: 0.0, range };
            out.push((Rank { missing, class: class(it) }, hit));
        }
    }
    out.sort_by_key(|it| it.0);
    Ok(out)
}

/// Messages of archived sessions, outputs included, that hold more than half of the words, newest first; and
/// how many sessions were not read because the newer ones reached a limit.
fn search_sessions(engine: &Engine, scope: &Scope, query: &Query, words: &Words) -> Result<(Ranked, usize)> {
    let sessions = engine.store.sessions(scope, &query.extent, MAX_SESSIONS)?;
    let (mut out, mut bytes, mut known) = (Vec::new(), 0, HashSet::new());
    for (looked, entry) in sessions.iter().enumerate() {
        bytes += entry.bytes;
        if looked > 0 && bytes > MAX_SCANNED_BYTES || out.len() >= ENOUGH_MESSAGES {
            return Ok((out, sessions.len() - looked));
        }
        let at = Scope { owner: scope.owner.clone(), project: entry.project.clone() };
        // A session that cannot be read is skipped; `doctor` reports it.
        let Ok(history) = history_of(engine, &at, entry.handle.as_str()) else { continue };
        // Cleared outputs have handles of their own and are in the index already.
        let cleared = engine.store.newest(&at, entry.session.as_deref(), MAX_CLEARED, 0)?;
        let cleared: HashSet<u32> = cleared.into_iter().filter_map(|it| it.message).collect();
        let matches = passages::searched(&history, |number, mut message, answers| {
            message.parts.retain(|it| !matches!(it, Part::Output(_)) || !cleared.contains(&number));
            let by_user = message.is_prompt() || message.outputs().any(|it| answers(&it.id));
            let text = plan::transcript(&[message]);
            let missing = words.count() - words.found_in(&text);
            (missing == 0 || missing * 2 < words.count()).then_some((number, missing, by_user, text))
        });
        for (number, missing, by_user, text) in matches.into_iter().rev() {
            // Each archived version of a session repeats the messages of the version before.
            if !known.insert(XxHash3_128::oneshot(text.as_bytes())) {
                continue;
            }
            let class = class_of_message(by_user, passages::is_decision(&text), words.asks_for_decision());
            let range = Range::Messages { from: number.into(), to: number.into() }.to_string();
            let entry =
                Entry { kind: ItemKind::Message, message: Some(number), tokens: None, ..entry.clone() };
            let hit = Hit { entry, score: 0.0, snippet: words.snippet(&text), range: Some(range) };
            out.push((Rank { missing, class }, hit));
        }
    }
    Ok((out, 0))
}

/// The history of an archived session.
pub(crate) fn history_of(engine: &Engine, scope: &Scope, handle: &str) -> Result<History> {
    let source = MemorySource::new(handle, engine.store.restore(scope, handle)?);
    Ok(sessions::read(&source, None)?.history)
}

/// Reads a range of an archived original: at most `limit` tokens by `count`. Ranges of messages are read
/// here, all others by the store.
///
/// # Errors
///
/// No such handle, an original whose chunks are damaged, or a range outside the original.
pub fn read(
    engine: &Engine,
    scope: &Scope,
    handle: &str,
    range: &Range,
    limit: u64,
    count: &dyn Fn(&str) -> u64,
) -> Result<Slice> {
    let Range::Messages { from, to } = *range else {
        return engine.store.recall(scope, handle, range, limit, count);
    };
    let what = engine.store.entry(scope, handle)?.kind;
    if !matches!(what, ItemKind::Session | ItemKind::Compaction) {
        let what =
            format!("range {range}: expected the handle of a session, found that of a {}", what.name());
        return Err(Error::new(ErrorKind::Arguments, what));
    }
    let messages = history_of(engine, scope, handle)?.into_messages();
    let Some(last) = messages.len().checked_sub(1).map(|it| it as u64) else {
        let what = format!("range {range}: expected a session with messages, found none in it");
        return Err(Error::new(ErrorKind::Arguments, what));
    };
    if from > last {
        let what = format!("range {range}: expected messages from m0 to m{last}, found none there");
        return Err(Error::new(ErrorKind::Arguments, what));
    }
    let (mut out, mut left) = (String::new(), limit);
    for number in from..=to.min(last) {
        let message = &messages[number as usize];
        // A sealed compaction has no text of its own: show the messages that it replaced.
        let shown = message.replaced.as_deref().unwrap_or(std::slice::from_ref(message));
        let text = plan::transcript(shown);
        let tokens = count(&text);
        if tokens > left {
            let rest = if out.is_empty() { number + 1 } else { number };
            if out.is_empty() {
                let all = Range::WHOLE;
                let head = range::slice(&mut text.as_bytes(), &all, left, count).map_err(unwrapped)?;
                out = format!(
                    "{}\n[… of {tokens} tokens; the range /word/±2 reads around a word]\n",
                    head.text
                );
            }
            let next = (rest <= to.min(last)).then(|| Range::Messages { from: rest, to }.to_string());
            return Ok(Slice { text: out, next });
        }
        left -= tokens;
        out.push_str(&text);
    }
    Ok(Slice { text: out, next: None })
}

/// The prompts in the agents' own logs that hold all words, the newest first.
fn typed(engine: &Engine, query: &Query, limit: u32) -> Result<Vec<FoundPrompt>> {
    let (text, filter) = passages::filter(&query.text, engine.now);
    if filter.kind.is_some_and(|it| it != PassageKind::User) {
        return Ok(Vec::new());
    }
    let words = Words::parse(&text)?;
    let env = &engine.config.agents;
    let of_project: Option<Vec<String>> = match &query.extent {
        SearchExtent::All => None,
        SearchExtent::Session(id) => Some(vec![id.clone()]),
        SearchExtent::Project => {
            Some(agents::list(env, None, Some(&env.cwd)).into_iter().map(|it| it.id).collect())
        }
    };
    let wanted = |it: &agents::TypedPrompt| {
        of_project.as_ref().is_none_or(|ids| ids.contains(&it.session))
            && filter.agent.as_deref().is_none_or(|agent| agent == it.agent.name())
            && filter.since.is_none_or(|since| it.at >= since)
            && filter.before.is_none_or(|before| it.at < before)
    };
    let found = agents::typed(env).into_iter().rev().filter(wanted).filter_map(|it| {
        let snippet = words.find(&it.text)?;
        Some(FoundPrompt { kind: "prompt", agent: it.agent.name(), session: it.session, at: it.at, snippet })
    });
    Ok(found.take(limit as usize).collect())
}

/// The newest originals of the named session. Without a name: of the calling session or else the newest one
/// here; if it has none, of this project.
///
/// # Errors
///
/// A session that is not found, or a store that cannot be read.
pub fn newest(engine: &Engine, session: Option<&str>, limit: u32, offset: u32) -> Result<Vec<Entry>> {
    let mut scopes = engine.projects();
    let id = match session {
        // A session that is gone from disk may still be in the archive under its id.
        Some(name) => match open::open(engine, &SessionRef::Named(name.to_owned()), None, None) {
            Ok(opened) => {
                scopes.insert(0, engine.scope(&opened.session.history));
                opened.session.history.meta.session.as_deref().map(str::to_owned)
            }
            Err(_) => Some(name.to_owned()),
        },
        None => open::default_session(engine, None).ok().map(|it| it.id),
    };
    let wider = (session.is_none() && id.is_some()).then_some(None);
    for id in std::iter::once(id.as_deref()).chain(wider) {
        for scope in &scopes {
            if !engine.store.newest(scope, id, 1, 0)?.is_empty() {
                return engine.store.newest(scope, id, limit, offset);
            }
        }
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Environment};
    use crate::store::{Batch, Body, Original, StoreAt};

    #[test]
    fn a_session_without_messages_has_none_to_read() {
        let mut config = Config::load(Environment::default()).unwrap();
        config.store = StoreAt::Memory;
        let engine = Engine::at(config, 0).unwrap();
        let scope = engine.shared();
        let batch = Batch { originals: vec![Original::session(Body::Bytes(b"[]"), 0)], ..Batch::default() };
        let handle = engine.store.put_all(&scope, &batch).unwrap().handles[0];
        let range = Range::Messages { from: 0, to: 0 };
        let error = read(&engine, &scope, handle.as_str(), &range, 100, &|_| 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Arguments);
    }
}
