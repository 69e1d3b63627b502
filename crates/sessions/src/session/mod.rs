//! A session as it was read, where its bytes are read from, and the requests in it.

pub mod requests;
pub(crate) mod source;

use std::ops::Range;

use crate::Format;
use history::History;

/// A session as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    pub format: Format,
    /// All records of the source, in order.
    pub records: Vec<Record>,
    /// For each live message, the numbers of the records it was made from.
    pub origins: Origins,
    /// What was not understood.
    pub notes: Vec<Note>,
    pub past: Vec<PastCompaction>,
    /// What the agent would send next. `messages()[i].from == Some(i)`.
    pub history: History,
}

impl Session {
    /// A session of a history that was read from no source.
    pub fn of(format: Format, history: History) -> Self {
        let (records, origins) = (Vec::new(), Origins::default());
        Self { format, records, origins, notes: Vec::new(), past: Vec::new(), history }
    }

    /// The agent's id of it, or empty.
    pub(crate) fn id(&self) -> &str {
        self.history.meta.session.as_deref().unwrap_or_default()
    }

    /// Drops records and origins, which only a writer needs.
    pub(crate) fn measured_only(mut self) -> Self {
        (self.records, self.origins) = (Vec::new(), Origins::default());
        self
    }
}

/// One line or object of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// Byte offset in the source.
    pub at: u64,
    /// Bytes, without the line break or comma after it.
    pub len: u64,
}

impl Record {
    /// Its byte range in the source.
    pub fn range(self) -> Range<u64> {
        self.at..self.at + self.len
    }
}

/// Something that was not understood; the record is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// 1-based line or record number.
    pub line: u64,
    /// What was expected and what was found.
    pub what: String,
}

/// A compaction that the agent (or we) made earlier in this session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PastCompaction {
    /// Index of the summary in the live messages, if it is still one of them.
    pub message: Option<usize>,
    /// `auto`, `manual`, or none if the format does not say.
    pub trigger: Option<String>,
    /// Tokens of the context before, as the agent recorded them.
    pub tokens_before: Option<u64>,
    /// Tokens of the context after, as the agent recorded them.
    pub tokens_after: Option<u64>,
    /// The summary's text; empty when it is encrypted.
    pub summary: String,
}

/// For each message, the numbers of the records it was made from. A flat list, since most messages have one
/// record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Origins {
    records: Vec<u32>,
    /// The end of each message's range in `records`.
    ends: Vec<u32>,
}

impl Origins {
    /// Adds the record numbers of the next message.
    pub fn push(&mut self, records: impl IntoIterator<Item = u32>) {
        self.records.extend(records);
        self.ends.push(self.records.len() as u32);
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The record numbers of each message.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &[u32]> {
        (0..self.len()).map(|it| &self[it])
    }
}

impl std::ops::Index<usize> for Origins {
    type Output = [u32];

    fn index(&self, message: usize) -> &[u32] {
        let begin = message.checked_sub(1).map_or(0, |it| self.ends[it]);
        &self.records[begin as usize..self.ends[message] as usize]
    }
}

impl<T: IntoIterator<Item = u32>> FromIterator<T> for Origins {
    fn from_iter<I: IntoIterator<Item = T>>(messages: I) -> Self {
        let mut out = Self::default();
        messages.into_iter().for_each(|it| out.push(it));
        out
    }
}
