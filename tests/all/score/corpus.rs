//! The corpus, read.

use std::path::{Path, PathBuf};

use epitome::format::{self, Memory, Session};

/// Where the corpus lies: `EPITOME_CORPUS`, else beside the crate; nothing, said in one line, if it is not there.
pub(crate) fn folder(test: &str) -> Option<PathBuf> {
    #[allow(clippy::disallowed_methods)]
    let given = std::env::var_os("EPITOME_CORPUS").map(PathBuf::from);
    let path = given.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"));
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("SKIPPED: {test}: no corpus at {}", path.display());
    None
}

/// A session of the corpus by its path in it, such as `codex/NAME.jsonl`.
pub(crate) fn read(folder: &Path, name: &str) -> Option<Session> {
    let bytes = std::fs::read(folder.join(name)).ok()?;
    let source = Memory::new(name, bytes);
    let read = match name.split('/').next()? {
        "claude-code" => format::claude_code::read(&source),
        "codex" => format::codex::read(&source),
        "gemini" => format::gemini_cli::read(&source),
        "opencode" => format::opencode::read(&source),
        "pi" => format::pi::read(&source),
        "sweagent-traj" => format::swe_agent::read(&source),
        _ => return None,
    };
    read.ok()
}

/// Names of all sessions that [`read`] reads, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut out = Vec::new();
    for agent in ["claude-code", "codex", "gemini", "opencode", "pi", "sweagent-traj"] {
        let files = std::fs::read_dir(folder.join(agent)).into_iter().flatten().flatten();
        out.extend(files.map(|it| format!("{agent}/{}", it.file_name().to_string_lossy())));
    }
    out.sort();
    out
}
