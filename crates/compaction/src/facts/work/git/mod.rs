//! The repository as git's output shows it: uncommitted files, the commits, and who makes them.

mod changed_files;
pub(in crate::facts) mod commits;
mod discards;
pub(super) mod listing;
pub(in crate::facts) mod log;
pub(super) mod uncommitted;

use crate::facts::text::ascii_first::AsciiFirstRegex;

/// `[branch 1a2b3c4] subject`, as `git commit` prints it.
pub(in crate::facts::work) static COMMITTED: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?m)^\[([^\s\]]+)(?: \([^)]*\))? ([0-9a-f]{7,40})\] ");

/// What `git init` prints where no repository was.
const INITIALIZED: &str = "Initialized empty Git repository";

/// Whether two hashes, which may be abbreviated, name the same commit.
fn is_same_commit(one: &str, other: &str) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// The arguments of a git command; `None` for another program.
fn git_args<'w, 'a>(words: &'w [&'a str]) -> Option<&'w [&'a str]> {
    words.strip_prefix(&["git"])
}
