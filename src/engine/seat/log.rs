//! Log of the compactions that agents asked for: JSON lines in a file beside the store, since the store may
//! be what failed.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// Size in bytes above which the older half is dropped.
const LARGEST: u64 = 256 << 10;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SeatEntry {
    /// Milliseconds since 1970.
    pub at: i64,
    pub client: String,
    /// Its session, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// From the start of the process to the answer, in milliseconds.
    pub ms: u64,
    /// Tokens of the messages, before and after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<(u64, u64)>,
    /// Handle of the archived original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// Why the compaction was left to the agent, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

impl SeatEntry {
    /// An entry for a client that was answered at `at`; `begun`: when the process started.
    pub fn new(client: &str, at: i64, begun: Instant) -> Self {
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        Self { at, client: client.to_owned(), ms, ..Self::default() }
    }
}

/// Appends an entry. Errors are only logged, since the agent is waiting.
pub fn append(folder: &Path, entry: &SeatEntry) {
    let path = folder.join("seat.jsonl");
    let add = || -> std::io::Result<()> {
        std::fs::create_dir_all(folder)?;
        if std::fs::metadata(&path).is_ok_and(|it| it.len() > LARGEST) {
            let text = text_of(&path)?;
            let lines: Vec<&str> = text.lines().collect();
            let newer = lines[lines.len() / 2..].join("\n") + "\n";
            crate::files::install(&path, newer.as_bytes()).map_err(std::io::Error::other)?;
        }
        let mut options = std::fs::OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&path)?.write_all((history::json::compact(entry) + "\n").as_bytes())
    };
    if let Err(error) = add() {
        tracing::warn!("{}: {error}", path.display());
    }
}

/// Lossy, so that invalid UTF-8 in one line does not lose the others.
fn text_of(path: &Path) -> std::io::Result<String> {
    Ok(String::from_utf8_lossy(&std::fs::read(path)?).into_owned())
}

/// The newest entry of a client; `None` also where the log cannot be read.
pub fn newest(folder: &Path, client: &str) -> Option<SeatEntry> {
    let text = text_of(&folder.join("seat.jsonl")).ok()?;
    let entries = text.lines().rev().filter_map(|it| serde_json::from_str::<SeatEntry>(it).ok());
    entries.into_iter().find(|it| it.client == client)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_byte_neither_stops_nor_empties_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = b"x\n".repeat(LARGEST as usize / 2);
        bytes.extend(b"\xff\n");
        std::fs::write(folder.path().join("seat.jsonl"), bytes).unwrap();
        let entry = SeatEntry { at: 1, client: "codex".into(), ..SeatEntry::default() };
        append(folder.path(), &entry);
        assert_eq!(newest(folder.path(), "codex"), Some(entry));
        assert!(std::fs::metadata(folder.path().join("seat.jsonl")).unwrap().len() < LARGEST);
    }
}
