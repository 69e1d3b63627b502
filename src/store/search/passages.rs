//! The passages of archived sessions, for searching: each text once per session, with its place.
//!
//! The text of a passage is stored beside the index. The archive holds whole sessions: to show one line, all
//! of one would have to be unpacked and read.

use twox_hash::{XxHash3_64, XxHash3_128};

use super::words::{Terms, Words, indexed};
use super::{DOING, index};
use crate::store::Store;
use crate::store::archive::item::{ENTRY, entry_of, item};
use crate::store::database::sql::{Row, Transaction, locked, params, write};
use crate::store::{Entry, ItemKind, Scope, SearchExtent};
use history::error::Result;
use history::named;
use history::secrets::Redactor;

const INDEXING: &str = "indexing a session";

/// Maximum matches of a search that are considered, the newest.
const LOOKED_AT: u32 = 1_000;

named! {
    /// What a passage is; it may be several of them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum PassageKind {
        /// What the user wrote or answered.
        User = "user",
        /// It says what was chosen.
        Decision = "decision",
        /// The output of a tool that failed.
        Error = "error",
        /// A call that reads or changes a file, or a text that names it.
        File = "file",
    }
}

impl PassageKind {
    fn bit(self) -> i64 {
        1 << self as i64
    }
}

/// The searched text of one message of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// Its number in the session.
    pub message: u32,
    pub kinds: Vec<PassageKind>,
    /// Milliseconds since 1970; `None` for the session's own time.
    pub at: Option<i64>,
    pub text: String,
}

/// Which passages are wanted, besides their words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    pub agent: Option<String>,
    pub kind: Option<PassageKind>,
    /// Milliseconds since 1970, inclusive.
    pub since: Option<i64>,
    /// Milliseconds since 1970, exclusive.
    pub before: Option<i64>,
}

/// An archived session whose passages are not in the index yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unindexed {
    pub scope: Scope,
    pub handle: String,
    pub bytes: u64,
}

/// A passage that a search matched, before its text is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PassageMatch {
    pub id: i64,
    pub kinds: Vec<PassageKind>,
    /// Its message's time, in milliseconds since 1970.
    pub at: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPassage {
    /// The newest archived session that holds it; `message` and `at` are the passage's.
    pub entry: Entry,
    pub text: String,
}

impl Store {
    /// Archived sessions of an owner whose passages are not in the index, newest first.
    pub fn unindexed(&self, owner: &str) -> Result<Vec<Unindexed>> {
        let connection = &*self.lock();
        let row = |row: &Row<'_>| {
            let bytes: i64 = row.get(2)?;
            Ok(Unindexed {
                scope: Scope { owner: owner.to_owned(), project: row.get(1)? },
                handle: row.get(0)?,
                bytes: bytes.unsigned_abs(),
            })
        };
        let sql = "SELECT i.handle, i.project, i.bytes FROM unindexed u JOIN item i ON i.id = u.item
                 WHERE i.owner = ?1 ORDER BY i.at DESC, i.id DESC";
        connection.query_map(DOING, sql, [owner], row)
    }

    /// Passages that hold the words, newest first, each text once.
    pub fn search_passages(
        &self,
        scope: &Scope,
        extent: &SearchExtent,
        words: &Words,
        wanted: Terms,
        filter: &Filter,
    ) -> Result<Vec<PassageMatch>> {
        let store = &self.pool;
        let mut about = vec![token('o', &scope.owner)];
        match extent {
            SearchExtent::All => {}
            SearchExtent::Project => about.push(token('p', &scope.project)),
            SearchExtent::Session(id) => about.extend([token('p', &scope.project), token('s', id)]),
        }
        about.extend(filter.agent.iter().map(|it| token('a', it)));
        about.extend(filter.kind.iter().map(|it| token('k', it.name())));
        let project = match extent {
            SearchExtent::All => None,
            SearchExtent::Project | SearchExtent::Session(_) => Some(scope.project.as_str()),
        };
        // Owner and project are checked in the rows again, since a token is only a hash.
        let connection = locked(store);
        let found_by = index::passages(&connection, words, wanted, &about, 6);
        let (from, condition, id) = (&found_by.from, &found_by.condition, found_by.id);
        let sql = format!(
            "SELECT s.id, s.kinds, s.at, s.hash FROM {from} CROSS JOIN conversation c
             WHERE c.id = s.conversation AND {condition} AND c.owner = ?1 AND (CAST(?2 AS TEXT) IS NULL OR c.project = ?2)
               AND s.at >= ?3 AND s.at < ?4
             ORDER BY {id} DESC LIMIT ?5"
        );
        let found = |row: &Row<'_>| {
            let hash: [u8; 16] = row.get(3)?;
            Ok((PassageMatch { id: row.get(0)?, kinds: kinds(row.get(1)?), at: row.get(2)? }, hash))
        };
        let (since, before) = (filter.since.unwrap_or(i64::MIN), filter.before.unwrap_or(i64::MAX));
        let params = [params![scope.owner, project, since, before, LOOKED_AT], &found_by.params()].concat();
        let mut out: Vec<(PassageMatch, [u8; 16])> = connection.query_map(DOING, &sql, &*params, found)?;
        out.sort_by_key(|it| std::cmp::Reverse(it.0.at));
        let mut known = std::collections::HashSet::new();
        Ok(out.into_iter().filter(|it| known.insert(it.1)).map(|it| it.0).collect())
    }

    /// A match with its text; `None` if another process has deleted it.
    pub fn passage(&self, owner: &str, id: i64) -> Result<Option<FoundPassage>> {
        let connection = &*self.lock();
        let found = |row: &Row<'_>| {
            let message: u32 = row.get(10)?;
            let at = row.get(11)?;
            let entry =
                Entry { kind: ItemKind::Message, message: Some(message), tokens: None, at, ..entry_of(row)? };
            Ok(FoundPassage { entry, text: row.get(12)? })
        };
        let sql = format!(
            "SELECT {ENTRY}, s.message, s.at, s.body FROM passage s JOIN conversation c ON c.id = s.conversation
                 JOIN item i ON i.id = s.item
                 JOIN place p ON p.item = i.id AND p.session = c.session AND p.what = 'session' AND p.call_id = ''
                 WHERE s.id = ?1 AND c.owner = ?2"
        );
        connection.query_optional(DOING, &sql, params![id, owner], found)
    }

    /// Indexes the passages of an archived session, without secrets and private text. An empty list marks the
    /// session as indexed.
    pub fn put_passages(&self, scope: &Scope, handle: &str, agent: &str, passages: &[Passage]) -> Result<()> {
        self.check_writable()?;
        let redactor = &self.redactor;
        let connection = &self.pool;
        // Looking for secrets takes longest, so it comes before the lock.
        let redacted: Vec<Redacted<'_>> = passages.iter().map(|it| Redacted::of(it, redactor)).collect();
        let mut connection = locked(connection);
        let item = item(&connection, scope, handle)?.id;
        let transaction = write(&mut connection, &scope.owner, INDEXING)?;
        transaction.execute(INDEXING, "DELETE FROM unindexed WHERE item = ?1", [item])?;
        let sql =
            "SELECT session, at FROM place WHERE item = ?1 AND what = 'session' ORDER BY at DESC LIMIT 1";
        let place: Option<(String, i64)> =
            transaction.query_optional(INDEXING, sql, [item], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let Some((session, at)) = place else { return transaction.commit() };
        let sql = "INSERT INTO conversation (owner, project, session) VALUES (?1, ?2, ?3)
                 ON CONFLICT (owner, project, session) DO UPDATE SET session = excluded.session RETURNING id";
        let conversation: i64 =
            transaction
                .query_row(INDEXING, sql, params![scope.owner, scope.project, session], |row| row.get(0))?;
        let about =
            [token('o', &scope.owner), token('p', &scope.project), token('s', &session), token('a', agent)];
        let from = Origin { conversation, item, at, about: about.join(" ") };
        for it in &redacted {
            put_one(&transaction, &from, it)?;
        }
        transaction.commit()
    }
}

/// A passage as it is stored.
struct Redacted<'a> {
    passage: &'a Passage,
    text: String,
    /// XXH3-128 of the text.
    hash: [u8; 16],
}

impl<'a> Redacted<'a> {
    fn of(passage: &'a Passage, redactor: &Redactor) -> Self {
        let text = redactor.redact(&passage.text);
        let hash = XxHash3_128::oneshot(text.as_bytes()).to_le_bytes();
        Self { passage, text, hash }
    }
}

/// The archived session that passages belong to.
struct Origin {
    conversation: i64,
    item: i64,
    /// Milliseconds since 1970.
    at: i64,
    /// Tokens of its properties, for the index.
    about: String,
}

fn put_one(transaction: &Transaction<'_>, from: &Origin, redacted: &Redacted<'_>) -> Result<()> {
    let Redacted { passage, text, hash } = redacted;
    let sql = "UPDATE passage SET item = ?3, message = ?4 WHERE conversation = ?1 AND hash = ?2";
    let known =
        transaction.execute(INDEXING, sql, params![from.conversation, hash, from.item, passage.message])?;
    if known > 0 {
        return Ok(());
    }
    let kinds = passage.kinds.iter().fold(0, |bits, it| bits | it.bit());
    let about =
        passage.kinds.iter().fold(from.about.clone(), |about, it| about + " " + &token('k', it.name()));
    let at = passage.at.unwrap_or(from.at);
    let sql = "INSERT INTO passage (conversation, item, message, kinds, at, hash, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id";
    let id = transaction.query_row(
        INDEXING,
        sql,
        params![from.conversation, from.item, passage.message, kinds, at, hash, text],
        |row| row.get(0),
    )?;
    index::index_passage(transaction, id, &indexed(text), &about)
}

/// An index word for a property such as the project, so that the index itself narrows a search down.
fn token(letter: char, value: &str) -> String {
    format!("{letter}{:016x}", XxHash3_64::oneshot(value.as_bytes()))
}

fn kinds(bits: i64) -> Vec<PassageKind> {
    PassageKind::ALL.into_iter().filter(|it| bits & it.bit() != 0).collect()
}
