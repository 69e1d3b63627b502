//! Reads the lines of a journal.

use std::ops::Range;

use super::part::{RecordReader, Wanted};
use super::record::JournalItem;
use crate::parse::cursor::Cursor;
use crate::parse::lines;
use crate::{Record, Source};
use history::error::Result as OrError;

#[derive(Debug)]
pub(super) enum JournalLine {
    Message(Box<JournalItem>),
    /// The id of the message that is dropped with everything after it.
    Rewind(String),
    /// Session fields set by `$set`.
    Set(Set),
}

/// A message record, or what is wrong with it.
pub(super) type ReadItem = Result<Box<JournalItem>, String>;

/// Session fields and messages.
#[derive(Debug)]
pub(super) struct Set {
    /// Names and JSON values, without the messages.
    pub(super) fields: Vec<(String, String)>,
    pub(super) messages: Vec<ReadItem>,
    /// Whether only these messages are in force from here on.
    pub(super) replaces: bool,
}

impl JournalLine {
    fn records(&self) -> (Option<&JournalItem>, &[ReadItem]) {
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
        let (one, list): (Option<&mut JournalItem>, &mut [ReadItem]) = match self {
            Self::Message(item) => (Some(item), &mut []),
            Self::Rewind(_) => (None, &mut []),
            Self::Set(set) => (None, &mut set.messages),
        };
        one.into_iter().chain(list.iter_mut().filter_map(|it| it.as_deref_mut().ok()))
    }
}

/// The lines that begin in a range.
#[derive(Debug)]
pub(super) struct ParsedLines {
    /// The line's number within the range, its place, and its content or what is wrong with it.
    pub(super) lines: Vec<(u64, Record, Result<JournalLine, String>)>,
    /// The number of lines, including blank ones.
    pub(super) count: u64,
}

impl ParsedLines {
    pub(super) fn of(source: &dyn Source, range: Range<u64>, wanted: Wanted) -> OrError<Self> {
        let mut reader = RecordReader::new(wanted);
        let mut lines = Vec::new();
        let count = lines::each_line_in(source, range, |number, record, bytes| {
            lines.push((number, record, reader.line(bytes, record)));
            Ok(true)
        })?;
        Ok(Self { lines, count })
    }
}

impl RecordReader<'_> {
    fn line(&mut self, bytes: &[u8], record: Record) -> Result<JournalLine, String> {
        Cursor::mended(bytes, |it| self.fields(it, record)).unwrap_or_else(|| {
            Err("expected a JSON object, found something else; the line is skipped".into())
        })
    }

    fn fields(&mut self, it: &mut Cursor<'_>, record: Record) -> Option<Result<JournalLine, String>> {
        let (mut rewind, mut set, mut is_session) = (None, None, [false; 2]);
        let mut found = self.begin(record.at);
        it.object(|it, name| {
            match name {
                "$rewindTo" => rewind = it.optional_string()?,
                "$set" => {
                    let (is_object, place) = it.span(|it| it.begins_with(b'{'))?;
                    set = is_object.then_some(place.start);
                }
                "sessionId" => is_session[0] = it.begins_with(b'"')?,
                "messages" => is_session[1] = it.begins_with(b'[')?,
                _ => self.field(&mut found, it, name)?,
            }
            Some(())
        })?;
        Some(if let Some(id) = rewind {
            Ok(JournalLine::Rewind(id.into_owned()))
        } else if found.id.is_some() {
            Ok(JournalLine::Message(Box::new(self.item(found, record.range()))))
        } else if let Some(place) = set {
            Ok(JournalLine::Set(self.set(&mut it.at(place), record.at, true)?))
        } else if is_session.contains(&true) {
            Ok(JournalLine::Set(self.set(&mut it.at(0), record.at, false)?))
        } else {
            Err("expected a message, $set, $rewindTo or session line, found another; it is skipped".into())
        })
    }

    /// The fields and messages of an object, in a text that begins at `base` in the source.
    fn set(&mut self, it: &mut Cursor<'_>, base: u64, replaces: bool) -> Option<Set> {
        let (mut fields, mut messages) = (Vec::new(), None);
        it.object(|it, name| {
            match name {
                "messages" => {
                    messages = it.optional(b'[', |it| {
                        let mut all = Vec::new();
                        it.list(|it| {
                            all.push(self.message(it, base)?.map(Box::new));
                            Some(())
                        })?;
                        Some(all)
                    })?;
                }
                _ => fields.push((name.to_owned(), it.raw()?.to_owned())),
            }
            Some(())
        })?;
        Some(Set { fields, replaces: replaces && messages.is_some(), messages: messages.unwrap_or_default() })
    }
}
