//! What a format is: the facts and functions that its module fills in. [`Format::ALL`] lists them.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Serialize, Serializer};

use crate::requests::Collector;
use crate::{Keep, Mode, Session, Source, Written};
use history::History;
use history::error::Result;

/// How a session is written down. A small value: a reference to its module's `FormatRow`.
#[derive(Clone, Copy)]
pub struct Format(pub(crate) &'static FormatRow);

pub(crate) type ReadFormat = fn(&dyn Source) -> Result<Session>;

/// One format, as its module describes it.
pub(crate) struct FormatRow {
    /// The name used in arguments and JSON.
    pub(crate) name: &'static str,
    /// The API whose messages its agent sends.
    pub(crate) api: Api,
    /// Whether its thinking is signed by that API. Agents that talk to several providers do not say which one signed.
    pub(crate) is_signed: bool,
    /// Part of the path of its agent's folder, and how a session's file name ends: enough to recognise a session in
    /// which too little is written.
    pub(crate) folder: Option<(&'static str, &'static [&'static str])>,
    /// Whether the first 64 KB, mended, are surely of this format. Plain messages are recognised by
    /// [`crate::wire::sniff`].
    pub(crate) recognise: Option<fn(&str) -> bool>,
    pub(crate) read: ReadFormat,
    /// Reads what is needed to measure it; otherwise all of it is read.
    pub(crate) scan: Option<fn(&dyn Source, &Keep<'_>) -> Result<Session>>,
    /// Writes a changed history back, or, where it was read in another format, makes a new session of it; a format
    /// without it is only read.
    pub(crate) write: Option<fn(&dyn Source, &Session, &History, Mode) -> Result<Written>>,
    /// Reads the requests that the provider reported, also those whose messages are not sent any more; otherwise only
    /// those of the history are known.
    pub(crate) requests: Option<fn(&dyn Source, &mut Collector) -> Result<()>>,
    /// What looks for damage, in this order; a format without it is not repaired.
    pub(crate) repair: &'static [crate::repair::Stage],
}

impl FormatRow {
    /// A format that is only read, and whose thinking is not known to be signed.
    pub(crate) const fn read_only(name: &'static str, api: Api, read: ReadFormat) -> Self {
        Self {
            name,
            api,
            is_signed: false,
            folder: None,
            recognise: None,
            read,
            scan: None,
            write: None,
            requests: None,
            repair: &[],
        }
    }
}

/// An API that takes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Anthropic,
    OpenAiChat,
    OpenAiResponses,
    Gemini,
}

impl Format {
    /// The name used in arguments and JSON.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Whether it is plain messages of an API.
    pub fn is_wire(self) -> bool {
        self.api() == self
    }

    /// Whether damage in sessions of this format is mended.
    pub fn is_repaired(self) -> bool {
        !self.0.repair.is_empty()
    }

    /// Whether sessions of this format are only read: their content is written as plain messages of [`Self::api`].
    pub fn is_read_only(self) -> bool {
        self.0.write.is_none()
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Format {}

impl Hash for Format {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
