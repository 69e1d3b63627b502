//! Scans folders for sessions: file names, times, and at most the first [`HEAD`] bytes of a file.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde_json::Value;

use super::FoundSession;
use crate::agents::AgentRef;

/// A file that may be a session, with its metadata.
#[derive(Debug, Clone)]
pub(crate) struct SessionFile {
    pub(crate) path: PathBuf,
    pub(crate) changed_ms: i64,
    pub(crate) len: u64,
}

impl SessionFile {
    pub(crate) fn name(&self) -> &str {
        self.path.file_name().and_then(|it| it.to_str()).unwrap_or_default()
    }

    /// Its name without the last extension.
    pub(crate) fn stem(&self) -> &str {
        self.path.file_stem().and_then(|it| it.to_str()).unwrap_or_default()
    }

    /// A session with only what the metadata tells; the caller adds the other fields.
    pub(crate) fn session(&self, agent: AgentRef, id: &str) -> FoundSession {
        FoundSession {
            agent,
            id: id.to_owned(),
            path: self.path.clone(),
            parent: None,
            cwd: None,
            changed_ms: self.changed_ms,
            first_words: String::new(),
            live: false,
        }
    }

    pub(crate) fn head(&self) -> String {
        let mut bytes = Vec::new();
        if let Ok(file) = crate::files::open(&self.path) {
            // On an error, use what was read before it.
            let _ = file.take(HEAD).read_to_end(&mut bytes);
        }
        history::json::mend(&bytes).into_owned()
    }
}

/// How much of a file is read, in bytes.
pub(crate) const HEAD: u64 = 65_536;

/// The regular files below `folder`, at most `depth` levels down. Opening a FIFO or device can block.
pub(crate) fn files(folder: &Path, depth: usize) -> Vec<SessionFile> {
    let mut out = Vec::new();
    let mut open = vec![(folder.to_owned(), 0)];
    while let Some((folder, level)) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(about) = fs::metadata(&path) else { continue };
            if about.is_dir() && level < depth {
                open.push((path, level + 1));
            } else if about.is_file() {
                let changed = about.modified().ok().and_then(|it| it.duration_since(UNIX_EPOCH).ok());
                let changed_ms = changed.map_or(0, |it| it.as_millis() as i64);
                out.push(SessionFile { path, changed_ms, len: about.len() });
            }
        }
    }
    out.sort_by(|a, b| a.path.cmp(&b.path));
    out
}

/// The lines that are JSON objects; the last one may be cut off and is then skipped.
pub(crate) fn objects(head: &str) -> impl Iterator<Item = Value> {
    head.lines()
        .filter_map(|it| serde_json::from_str(it.trim_start_matches('\u{feff}')).ok())
        .filter(Value::is_object)
}

/// The first 80 characters, white space collapsed.
pub(crate) fn first_words(text: &str) -> String {
    let start: String = history::one_line(text).chars().take(80).collect();
    start.trim_end().to_owned()
}

/// Whether a session was started in one of these directories and has this id, where they are given.
pub(crate) fn is_wanted(found: &FoundSession, cwd: Option<&[PathBuf]>, id: Option<&str>) -> bool {
    cwd.is_none_or(|all| found.cwd.as_ref().is_some_and(|it| all.contains(it)))
        && id.is_none_or(|it| it == found.id)
}

/// A directory as given and, if different, with symbolic links resolved, as most agents record it.
pub(crate) fn spellings(cwd: &Path) -> Vec<PathBuf> {
    let mut out = vec![cwd.to_owned()];
    out.extend(fs::canonicalize(cwd).ok().filter(|it| it != cwd));
    out
}
