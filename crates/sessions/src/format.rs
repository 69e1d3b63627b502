//! The facts and functions that each format's module provides. [`Format::ALL`] lists the formats.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Serialize, Serializer};

use crate::session::requests::Collector;
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
    /// Whether its thinking is signed by that API. Agents that talk to several providers do not record the
    /// signer.
    pub(crate) is_signed: bool,
    /// A substring of the path of the agent's session folder and the suffixes of session file names: enough
    /// to recognize a session with too little content.
    pub(crate) folder: Option<(&'static str, &'static [&'static str])>,
    /// Whether the first 64 KB, mended, are certainly of this format. Plain messages are recognized by
    /// [`crate::wire::sniff`].
    pub(crate) recognise: Option<fn(&str) -> bool>,
    pub(crate) read: ReadFormat,
    /// Reads only what measuring needs; without it, `read` is used.
    pub(crate) scan: Option<fn(&dyn Source, &Keep<'_>) -> Result<Session>>,
    /// Writes a changed history back, or makes a new session of one that was read in another format. A format
    /// without it is read-only.
    pub(crate) write: Option<fn(&dyn Source, &Session, &History, Mode) -> Result<Written>>,
    /// Reads all requests that the provider reported, including those whose messages are no longer sent;
    /// without it, only those of the history are known.
    pub(crate) requests: Option<fn(&dyn Source, &mut Collector) -> Result<()>>,
    /// The checks that a repair runs, in this order; empty for a format that is not repaired.
    pub(crate) repair: &'static [crate::repair::Stage],
}

impl FormatRow {
    /// A format that is only read, and whose thinking is not known to be signed; rows override the rest.
    pub(crate) const fn new(name: &'static str, api: Api, read: ReadFormat) -> Self {
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
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// Whether it is the plain messages of an API.
    pub fn is_wire(self) -> bool {
        self.api() == self
    }

    /// Whether sessions of this format can be repaired.
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
