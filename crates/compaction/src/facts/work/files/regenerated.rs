//! Deleted files and directories that builds and installations regenerate.

use super::Files;
use crate::facts::FileOp;
use crate::facts::work::command::{ParsedCommand, program_is_read_only};
use crate::facts::work::paths::file_name;

impl Files<'_> {
    /// Forgets the deletion of files that an installation regenerated.
    pub(in crate::facts::work) fn forget_reinstalled(&mut self, command: &ParsedCommand) {
        let programs: Vec<Vec<&str>> = command.programs().collect();
        if programs.iter().flatten().any(|it| ["add", "ci", "i", "install", "sync"].contains(it)) {
            self.by_path.retain(|path, state| {
                let name = file_name(path);
                let installed = name == "node_modules" || LOCKS.iter().any(|it| it.0 == name);
                !(state.op == FileOp::Deleted && installed && is_regenerated(path, &programs))
            });
        }
    }
}

/// Lock files, and the package managers that write them.
const LOCKS: [(&str, &str); 10] = [
    ("Cargo.lock", "cargo"),
    ("Gemfile.lock", "bundle"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("composer.lock", "composer"),
    ("package-lock.json", "npm"),
    ("pnpm-lock.yaml", "pnpm"),
    ("poetry.lock", "poetry"),
    ("uv.lock", "uv"),
    ("yarn.lock", "yarn"),
];

/// Whether one of the programs that ran after its deletion regenerates a path: a directory of builds and tools, a
/// database, or the lock file of a package manager that installs.
pub(in crate::facts::work) fn is_regenerated(path: &str, after: &[Vec<&str>]) -> bool {
    const DIRECTORIES: [&str; 12] = [
        ".cache",
        ".godot",
        ".next",
        ".turbo",
        ".venv",
        "__pycache__",
        "build",
        "coverage",
        "dist",
        "node_modules",
        "out",
        "target",
    ];
    const INSTALLS: [&str; 10] =
        ["add", "build", "ci", "i", "install", "lock", "sync", "test", "up", "update"];
    const WRITES_ELSEWHERE: [&str; 7] = ["git", "kill", "mkdir", "mv", "pkill", "sleep", "touch"];
    let name = file_name(path);
    if let Some((_, manager)) = LOCKS.iter().find(|it| it.0 == name) {
        let installs = |it: &Vec<&str>| {
            file_name(it[0]) == *manager && it.get(1).is_none_or(|verb| INSTALLS.contains(verb))
        };
        return after.iter().any(installs);
    }
    let writes = |it: &Vec<&str>| {
        !program_is_read_only(it) && !WRITES_ELSEWHERE.contains(&file_name(it[0]).to_lowercase().as_str())
    };
    let database =
        ["db", "sqlite", "sqlite3"].iter().any(|it| name.rsplit_once('.').is_some_and(|at| at.1 == *it));
    (database || DIRECTORIES.contains(&name)) && after.iter().any(writes)
}

/// The programs that run after the last deletion of a command.
pub(in crate::facts::work) fn after_delete(command: &ParsedCommand) -> Vec<Vec<&str>> {
    let mut programs: Vec<Vec<&str>> = command.programs().collect();
    let deletes = |it: &Vec<&str>| ["rm", "remove-item"].contains(&file_name(it[0]).to_lowercase().as_str());
    let last = programs.iter().rposition(deletes);
    last.map_or(Vec::new(), |at| programs.split_off(at + 1))
}
