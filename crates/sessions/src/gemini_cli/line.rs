//! The lines of a journal, each looked at once.

use std::ops::Range;

use super::fast::Fast;
use super::record::{self, JournalItem, Wanted};
use crate::raw::{Fields, place};
use crate::{Record, Source, lines};
use history::error::Result as OrError;
use history::json;

/// What a line says.
#[derive(Debug)]
pub(super) enum JournalLine {
    Message(Box<JournalItem>),
    /// The id of the message that is dropped with all after it.
    Rewind(String),
    /// Session fields set by `$set`.
    Set(Set),
}

/// Fields of a session, and its messages.
#[derive(Debug)]
pub(super) struct Set {
    /// Names and JSON, the messages not among them.
    pub(super) fields: Vec<(String, String)>,
    pub(super) messages: Vec<Result<Box<JournalItem>, String>>,
    /// The messages are all that are in force from there on.
    pub(super) replaces: bool,
}

impl JournalLine {
    fn records(&self) -> (Option<&JournalItem>, &[Result<Box<JournalItem>, String>]) {
        match self {
            Self::Message(item) => (Some(item), &[]),
            Self::Rewind(_) => (None, &[]),
            Self::Set(set) => (None, &set.messages),
        }
    }

    /// Its message records, in order.
    pub(super) fn items(&self) -> impl Iterator<Item = &JournalItem> {
        let (one, list) = self.records();
        one.into_iter().chain(list.iter().filter_map(|it| it.as_deref().ok()))
    }

    /// Its message records, in order.
    pub(super) fn items_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut JournalItem> {
        let (one, list): (Option<&mut JournalItem>, &mut [Result<Box<JournalItem>, String>]) = match self {
            Self::Message(item) => (Some(item), &mut []),
            Self::Rewind(_) => (None, &mut []),
            Self::Set(set) => (None, &mut set.messages),
        };
        one.into_iter().chain(list.iter_mut().filter_map(|it| it.as_deref_mut().ok()))
    }
}

/// The lines that begin in a range.
#[derive(Debug)]
pub(super) struct Seen {
    /// Number from the first on, place, and what the line says, or what is wrong with it.
    pub(super) said: Vec<(u64, Record, Result<JournalLine, String>)>,
    /// How many there are, blank ones too.
    pub(super) lines: u64,
}

impl Seen {
    pub(super) fn of(source: &dyn Source, range: Range<u64>, wanted: Wanted) -> OrError<Self> {
        let mut reader = Reader::new(wanted);
        let mut said = Vec::new();
        let lines = lines::each_line_in(source, range, |number, record, bytes| {
            said.push((number, record, reader.line(bytes, record)));
            Ok(true)
        })?;
        Ok(Self { said, lines })
    }
}

/// Looks at lines and records, the usual ones at once.
pub(super) struct Reader<'a> {
    wanted: Wanted<'a>,
    fast: Fast<'a>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(wanted: Wanted<'a>) -> Self {
        Self { wanted, fast: Fast::new(wanted.keep) }
    }

    pub(super) fn message(&mut self, json: &str, at: Range<u64>) -> Result<JournalItem, String> {
        match self.usual(json.as_bytes(), &at) {
            Some(item) => Ok(item),
            None => record::look(json, at, self.wanted),
        }
    }

    fn usual(&mut self, json: &[u8], at: &Range<u64>) -> Option<JournalItem> {
        if self.wanted.raw { None } else { self.fast.look(json, at.clone()) }
    }

    fn line(&mut self, bytes: &[u8], record: Record) -> Result<JournalLine, String> {
        if let Some(item) = self.usual(bytes, &record.range()) {
            return Ok(JournalLine::Message(Box::new(item)));
        }
        let text = &*json::mend(bytes);
        let fields =
            Fields::of(text).ok_or("expected a JSON object, found something else; the line is skipped")?;
        let mut set = |fields: &Fields, replaces| {
            let messages = fields.list("messages");
            let placed = messages.iter().flatten().filter_map(|it| Some((*it, place(text, it)?)));
            let at = |it: Range<usize>| record.at + it.start as u64..record.at + it.end as u64;
            let read = |(json, it)| self.message(json, at(it)).map(Box::new);
            JournalLine::Set(Set {
                messages: placed.map(read).collect(),
                fields: fields.iter().map(|(name, raw)| (name.to_owned(), raw.to_owned())).collect(),
                replaces: replaces && messages.is_some(),
            })
        };
        if let Some(id) = fields.text("$rewindTo") {
            Ok(JournalLine::Rewind(id))
        } else if fields.text("id").is_some() {
            record::look(text, record.range(), self.wanted).map(|it| JournalLine::Message(Box::new(it)))
        } else if let Some(fields) = fields.object("$set") {
            Ok(set(&fields, true))
        } else if fields.text("sessionId").is_some() || fields.list("messages").is_some() {
            Ok(set(&fields, false))
        } else {
            Err("expected a message, $set, $rewindTo or session line, found another; it is skipped".into())
        }
    }
}
