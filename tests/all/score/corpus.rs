//! The corpus, as it is scored: what agents wrote, by its path in it.

use std::path::Path;

use epitome::sessions::{self, MemorySource, Session};

use crate::corpus;

/// A session of the corpus by its path in it, such as `codex/NAME.jsonl`.
pub(crate) fn read(folder: &Path, name: &str) -> Option<Session> {
    let source = MemorySource::new(name, std::fs::read(folder.join(name)).ok()?);
    sessions::read(&source, None).ok()
}

/// Names of all of them, sorted. Bare messages have no agent and are left out.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let agents = corpus::KINDS.iter().filter(|it| **it != "openai-messages");
    let mut out: Vec<String> = agents
        .flat_map(|it| corpus::files(&folder.join(it)))
        .map(|it| it.strip_prefix(folder).unwrap().to_string_lossy().into_owned())
        .collect();
    out.sort();
    out
}
