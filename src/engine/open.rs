//! From what a caller calls a session to a session that was read.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::Engine;
use crate::error::{Error, Kind, Result};
use crate::files::File;
use crate::format::{self, Format, Memory, Session, Source};

/// What a caller calls a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionRef {
    /// A path, an id, a handle, `current` or `latest`.
    Named(String),
    /// Messages given in the call.
    Inline(Vec<u8>),
    /// Nothing was said.
    Unsaid,
}

/// A session that was read, and what it was read from.
pub struct Opened {
    /// What it was read from.
    pub source: Box<dyn Source + Send>,
    /// It.
    pub session: Session,
    /// Where it lies, if in a file of the caller's.
    pub path: Option<PathBuf>,
}

impl Engine {
    /// Finds and reads a session.
    pub fn open(&self, what: &SessionRef, format: Option<Format>, agent: Option<&str>) -> Result<Opened> {
        match what {
            SessionRef::Inline(bytes) => read(Box::new(Memory::new("messages", bytes.as_slice())), format, None),
            SessionRef::Named(name) if name == "-" => {
                let mut bytes = Vec::new();
                std::io::stdin()
                    .read_to_end(&mut bytes)
                    .map_err(|error| Error::new(Kind::Io, "reading standard input").because(error))?;
                read(Box::new(Memory::new("-", bytes)), format, None)
            }
            SessionRef::Named(name) => self.open_named(name, format, agent),
            SessionRef::Unsaid => self.open_found(self.default_session(agent)?, format),
        }
    }

    fn open_named(&self, name: &str, format: Option<Format>, agent: Option<&str>) -> Result<Opened> {
        let path = Path::new(name);
        if path.exists() {
            return open_path(path, format);
        }
        if let Some((database, id)) = name.rsplit_once('#')
            && Path::new(database).exists()
        {
            return self.open_database(Path::new(database), id);
        }
        if name == "current" || name == "latest" {
            return self.open_found(self.named_session(name, agent)?, format);
        }
        if crate::store::looks_like_handle(name)
            && let Some(bytes) = self.original(name)?
        {
            return read(Box::new(Memory::new(name, bytes)), format, None);
        }
        if name.contains('/') || name.contains('\\') || name.contains('.') {
            let what = "expected a session file, found nothing there; `epitome sessions` lists the sessions";
            return Err(Error::new(Kind::Input, what).at(name, None));
        }
        self.open_found(self.session_by_id(name, agent)?, format)
    }
}

pub(super) fn open_path(path: &Path, format: Option<Format>) -> Result<Opened> {
    read(Box::new(File::open(path)?), format, Some(path.to_owned()))
}

pub(super) fn read(
    source: Box<dyn Source + Send>,
    format: Option<Format>,
    path: Option<PathBuf>,
) -> Result<Opened> {
    let session = format::read(&*source, format)?;
    Ok(Opened { source, session, path })
}
