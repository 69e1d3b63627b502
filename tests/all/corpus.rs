//! Where real sessions are: the corpus (`EPITOME_CORPUS`, else `../shared/corpus`) and the samples of the clients' kit
//! (`EPITOME_CLIENTS`, else `../shared/clients`). They are other people's and no part of the project; a test that does
//! not find them says so and passes.
//!
//! Of the corpus a fixed sixth is taken, so that a run keeps its time; all of it with `EPITOME_CORPUS_WHOLE=1`
//! (`just corpus`).

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use epitome::history::History;
use epitome::sessions::{self, MemorySource};

/// The folders of the corpus.
pub(crate) const KINDS: [&str; 7] =
    ["claude-code", "codex", "gemini", "openai-messages", "opencode", "pi", "sweagent-traj"];

/// Where the corpus would be.
pub(crate) fn corpus() -> PathBuf {
    shared("EPITOME_CORPUS", "corpus")
}

/// Where the sessions that the kit's agents have written would be, a folder an agent.
pub(crate) fn samples() -> PathBuf {
    shared("EPITOME_CLIENTS", "clients").join("samples")
}

/// The corpus, for a test that is nothing without it.
pub(crate) fn corpus_for(test: &str) -> Option<PathBuf> {
    let found = Some(corpus()).filter(|it| it.is_dir());
    if found.is_none() {
        eprintln!("SKIPPED: {test}: no corpus (set EPITOME_CORPUS)");
    }
    found
}

/// Whether everything is asked for: `just corpus`.
pub(crate) fn whole() -> bool {
    std::env::var_os("EPITOME_CORPUS_WHOLE").is_some()
}

/// The sessions of some folders, sorted by path; says so where there are none.
pub(crate) fn sessions(test: &str, folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = folders.iter().flat_map(|it| files(it)).collect();
    out.sort();
    if out.is_empty() {
        eprintln!("SKIPPED: {test}: no real sessions (set EPITOME_CORPUS, EPITOME_CLIENTS)");
    }
    out
}

/// The sessions of some folders of the corpus, sorted by path; says so where there are none.
pub(crate) fn of_corpus(test: &str, kinds: &[&str]) -> Vec<PathBuf> {
    let folders: Vec<PathBuf> = kinds.iter().map(|it| corpus().join(it)).collect();
    sessions(test, &folders)
}

/// The files of a folder that are sessions; none if it is not there. Of the corpus, those of the sample, with the first
/// that was cut between two writes, or the first if the sample has none of them.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all: Vec<PathBuf> = entries.map(|it| it.path()).filter(|it| is_session(it)).collect();
    if whole() || !folder.starts_with(corpus()) {
        return all;
    }
    all.sort();
    let first = all.first().cloned();
    let cut = all.iter().find(|it| name(it).contains(".cut.")).cloned();
    all.retain(|it| in_sample(it) || Some(it) == cut.as_ref());
    if all.is_empty() {
        all.extend(first);
    }
    all
}

fn name(path: &Path) -> Cow<'_, str> {
    path.file_name().unwrap_or_default().to_string_lossy()
}

/// Every sixth session by its name, whatever others are there.
fn in_sample(path: &Path) -> bool {
    name(path).bytes().fold(0_u32, |sum, byte| sum.wrapping_mul(37).wrapping_add(byte.into())) % 6 == 2
}

/// What a session would send next, if it can be read.
pub(crate) fn history(path: &Path) -> Option<History> {
    let source = MemorySource::new(path.display().to_string(), std::fs::read(path).unwrap());
    sessions::read(&source, None).ok().map(|it| it.history)
}

fn is_session(path: &Path) -> bool {
    // What the kit wrote beside them.
    let other = ["hooks.jsonl", "mcp-wire.jsonl", "first-request.json", "rows.json"];
    let ends = path.extension().is_some_and(|it| ["json", "jsonl", "traj"].iter().any(|end| it == *end));
    ends && path.is_file() && !other.iter().any(|other| path.file_name().is_some_and(|it| it == *other))
}

fn shared(key: &str, name: &str) -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared").join(name);
    std::env::var_os(key).map_or_else(beside, PathBuf::from)
}
