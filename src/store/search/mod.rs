//! Full-text search in the database.

pub(crate) mod index;
pub mod passages;
pub mod words;

use std::str::FromStr;

use serde::Serialize;

use crate::store::Store;
use crate::store::archive::item::{ENTRY, entry_of};
use crate::store::content::chunks;
use crate::store::database::sql::{Connection, Pool, Row, locked, params, write};
use crate::store::memory::remembered;
use crate::store::{Entry, ItemKind, Scope, Snippet, archive};
use history::error::{Error, Result};
use history::named;
use index::{index, is_indexed, readable};
use words::{Terms, Words, indexed};

/// Maximum results of one search.
pub const MAX_HITS: u32 = 100;

/// Maximum matches that are considered, the newest. Words that occur in more texts than this rank them no
/// better than age does.
const MAX_MATCHES: u32 = 5_000;

/// Bytes of the newest matches that are read to rank them by their text; older ones follow by age. FTS5's own
/// `bm25` looks through every match of every phrase in the whole index: a tenth of a second and more for
/// 100,000.
const SCORED_BYTES: usize = 1 << 20;

const DOING: &str = "searching";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchExtent {
    /// The session with this id.
    Session(String),
    /// The scope's project, with the user's own memories.
    Project,
    /// Everything of the scope's owner.
    All,
}

impl SearchExtent {
    pub fn scope(&self) -> SearchScope {
        match self {
            Self::Session(_) => SearchScope::Session,
            Self::Project => SearchScope::Project,
            Self::All => SearchScope::All,
        }
    }
}

named! {
    /// How far a caller wants to see.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SearchScope {
        Session = "session",
        Project = "project",
        All = "all",
    }
}

impl FromStr for SearchScope {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::find(name).ok_or_else(|| {
            Error::of_argument("scope", format!("expected session, project or all, found {name:?}"))
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Words; `"…"` is a phrase.
    pub text: String,
    pub extent: SearchExtent,
    /// Only these; empty means all.
    pub only: Vec<ItemKind>,
    /// Maximum number of results; [`MAX_HITS`] at most.
    pub limit: u32,
    /// Results to skip.
    pub offset: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    #[serde(flatten)]
    pub entry: Entry,
    /// How well it fits: higher is better; comparable within one search.
    pub score: f64,
    pub snippet: Snippet,
    /// The range that reads just this, if the handle names something larger: a message of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Found {
    pub hits: Vec<Hit>,
    /// The offset of the next page, if there is one.
    pub next: Option<u32>,
    /// Nothing held all words, so these hold some of them.
    pub partial: bool,
}

/// Indexes what was left to the next search, in batches, so that no other process waits long.
fn catch_up(store: &Pool, owner: &str) -> Result<()> {
    loop {
        let sql = "SELECT i.id, i.content, coalesce((SELECT what FROM place p WHERE p.item = i.id AND what <> 'session' LIMIT 1), '')
                 FROM pending JOIN item i ON i.id = pending.item WHERE i.content IS NOT NULL AND i.owner = ?1
                 ORDER BY pending.item LIMIT 32";
        let some: Vec<(i64, i64, String)> = locked(store)
            .query_map(DOING, sql, [owner], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        if some.is_empty() {
            return Ok(());
        }
        let mut words = Vec::new();
        for (item, content, what) in some {
            let what = if what == ItemKind::Message.name() { ItemKind::Message } else { ItemKind::Output };
            let head = chunks::head(&locked(store), content)?;
            words.push((item, indexed(&readable(&head, what))));
        }
        let mut connection = locked(store);
        let transaction = write(&mut connection, owner, DOING)?;
        for (item, words) in words {
            // Another process may have been faster, or have deleted it.
            let taken = transaction.execute(DOING, "DELETE FROM pending WHERE item = ?1", [item])?;
            if taken == 1 && !is_indexed(&transaction, item)? {
                index(&transaction, item, &words)?;
            }
        }
        transaction.commit()?;
    }
}

/// A match before its entry and snippet are read.
struct Match {
    id: i64,
    content: Option<i64>,
    kind: ItemKind,
    score: f64,
}

impl Store {
    /// Searches outputs, messages, summaries and memories.
    pub fn search(&self, scope: &Scope, query: &Query) -> Result<Found> {
        let store = &self.pool;
        let words = Words::parse(&query.text)?;
        catch_up(store, &scope.owner)?;
        let mut found = find_matches(&locked(store), scope, query, &words, Terms::All)?;
        let partial = found.is_empty() && words.count() > 1;
        if partial {
            found = find_matches(&locked(store), scope, query, &words, Terms::Any)?;
        }
        score_matches(&locked(store), &words, &mut found)?;
        let (from, limit) = (query.offset as usize, query.limit.clamp(1, MAX_HITS) as usize);
        let more = found.len() > from + limit;
        let mut hits = Vec::new();
        for found in found.into_iter().skip(from).take(limit) {
            hits.extend(to_hit(store, scope, query, &words, found)?);
        }
        Ok(Found {
            partial: partial && !hits.is_empty(),
            hits,
            next: more.then(|| query.offset + limit as u32),
        })
    }
}

/// Scores the newest matches (BM25 with FTS5's k1 = 1.2 and b = 0.75) and puts the best first.
fn score_matches(connection: &Connection, words: &Words, found: &mut [Match]) -> Result<()> {
    let mut left = SCORED_BYTES / words.count().max(1);
    let mut counted: Vec<(Vec<u32>, f64)> = Vec::new();
    for it in found.iter() {
        let text = text_of(connection, it)?;
        counted.push((words.counts(&text), text.len() as f64));
        left = left.saturating_sub(text.len());
        if left == 0 {
            break;
        }
    }
    let all = counted.len() as f64;
    let mean = counted.iter().map(|(_, len)| len).sum::<f64>() / all.max(1.0);
    let rare: Vec<f64> = (0..words.count())
        .map(|term| {
            let with = counted.iter().filter(|(counts, _)| counts.get(term).is_some_and(|it| *it > 0)).count()
                as f64;
            (1.0 + (all - with + 0.5) / (with + 0.5)).ln()
        })
        .collect();
    for (found, (counts, len)) in found.iter_mut().zip(&counted) {
        let length = 1.2 * (0.25 + 0.75 * len / mean.max(1.0));
        let term =
            |(count, rare): (&u32, &f64)| rare * f64::from(*count) * 2.2 / (f64::from(*count) + length);
        found.score = counts.iter().zip(&rare).map(term).sum();
    }
    found.sort_by(|one, other| other.score.total_cmp(&one.score).then(other.id.cmp(&one.id)));
    Ok(())
}

/// The searched text of an item.
fn text_of(connection: &Connection, found: &Match) -> Result<String> {
    match (found.kind, found.content) {
        (ItemKind::Compaction, _) => archive::summary(connection, found.id),
        (ItemKind::Memory, _) => remembered::content(connection, found.id),
        (ItemKind::Session | ItemKind::Message | ItemKind::Output, Some(content)) => {
            Ok(readable(&chunks::head(connection, content)?, found.kind).into_owned())
        }
        (ItemKind::Session | ItemKind::Message | ItemKind::Output, None) => Ok(String::new()),
    }
}

/// The session and the kinds (as JSON) that a query is limited to.
fn limits(query: &Query) -> (Option<&str>, Option<String>) {
    let only = (!query.only.is_empty()).then(|| history::json::compact(&query.only));
    match &query.extent {
        SearchExtent::Session(session) => (Some(session.as_str()), only),
        SearchExtent::Project | SearchExtent::All => (None, only),
    }
}

/// SQL condition: a place is of the session `?3` and one of the kinds `?4`, a JSON array; each may be null.
const IS_WANTED_PLACE: &str = "(CAST(?3 AS TEXT) IS NULL OR p.session = ?3)
     AND (CAST(?4 AS TEXT) IS NULL OR ?4 LIKE '%\"' || p.what || '\"%')";

fn find_matches(
    connection: &Connection,
    scope: &Scope,
    query: &Query,
    words: &Words,
    wanted: Terms,
) -> Result<Vec<Match>> {
    let (session, only) = limits(query);
    let project = match query.extent {
        SearchExtent::Session(_) | SearchExtent::Project => Some(scope.project.as_str()),
        SearchExtent::All => None,
    };
    // Items of one session were stored at about the same time: only their range of ids is searched.
    let (from, to): (i64, i64) = match session {
        Some(session) => connection.query_row(
            DOING,
            "SELECT coalesce(min(item), 0), coalesce(max(item), 0) FROM place WHERE session = ?1",
            [session],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?,
        None => (0, i64::MAX),
    };
    let found = |row: &Row<'_>| {
        let sort: String = row.get(2)?;
        let kind = match sort.as_str() {
            "compaction" => ItemKind::Compaction,
            "memory" => ItemKind::Memory,
            // Also for a message: it is scored by its raw bytes, not only by the strings of its JSON.
            _ => ItemKind::Output,
        };
        Ok(Match { id: row.get(0)?, content: row.get(1)?, kind, score: 0.0 })
    };
    let found_by = index::items(connection, words, wanted, 8);
    let (tables, condition, id) = (&found_by.from, &found_by.condition, found_by.id);
    let params =
        [params![scope.owner, project, session, only, MAX_MATCHES, from, to], &found_by.params()].concat();
    connection.query_map(
        DOING,
        &format!(
            "SELECT i.id, i.content, i.sort FROM {tables}
             WHERE {condition} AND {id} BETWEEN ?6 AND ?7 AND i.owner = ?1
               AND (CAST(?2 AS TEXT) IS NULL OR i.project IN (?2, ''))
               AND (coalesce(CAST(?3 AS TEXT), CAST(?4 AS TEXT)) IS NULL OR EXISTS (
                 SELECT 1 FROM place p WHERE p.item = i.id AND {IS_WANTED_PLACE}))
             ORDER BY {id} DESC LIMIT ?5"
        ),
        &*params,
        found,
    )
}

/// A match with its entry and snippet; `None` if another process has just deleted it.
fn to_hit(store: &Pool, scope: &Scope, query: &Query, words: &Words, found: Match) -> Result<Option<Hit>> {
    let connection = locked(store);
    let (session, only) = limits(query);
    let entry: Option<crate::store::Entry> = connection.query_optional(
        DOING,
        &format!(
            "SELECT {ENTRY} FROM item i JOIN place p ON p.item = i.id
             WHERE i.id = ?1 AND i.owner = ?2 AND {IS_WANTED_PLACE} ORDER BY p.at DESC LIMIT 1"
        ),
        params![found.id, scope.owner, session, only],
        entry_of,
    )?;
    let Some(entry) = entry else { return Ok(None) };
    let found = Match { kind: entry.kind, ..found };
    let snippet = words.snippet(&text_of(&connection, &found)?);
    Ok(Some(Hit { snippet, score: found.score, entry, range: None }))
}
