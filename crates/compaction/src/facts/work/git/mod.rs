//! The repository, as far as outputs of git show it: which files are not committed, which commits there are, and who makes
//! them.

pub(in crate::facts) mod commits;
pub(super) mod listing;
pub(in crate::facts) mod log;
pub(super) mod uncommitted;

/// The words of a program of git, without the directory that it runs in.
fn of_git<'a>(words: &[&'a str]) -> Option<Vec<&'a str>> {
    match words {
        ["git", "-C", _, rest @ ..] | ["git", "--no-pager", rest @ ..] | ["git", rest @ ..] => {
            Some(rest.to_vec())
        }
        _ => None,
    }
}
