//! Commits of this session that no longer exist: their branch was rebased, amended or reset.

use std::sync::LazyLock;

use crate::facts::text::ascii_first::AsciiFirstRegex;

/// `[branch 1a2b3c4] subject`, as `git commit` prints it.
pub(super) static COMMITTED: LazyLock<AsciiFirstRegex> =
    LazyLock::new(|| AsciiFirstRegex::new(r"(?m)^\[([^\s\]]+)(?: \([^)]*\))? ([0-9a-f]{7,40})\] "));
static REBASED: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::new(
        r"(?m)^Successfully rebased(?: and updated refs/heads/([^\s]*[^\s.]))?|^\s*✓ Rebased\b",
    )
});
/// A reset to another commit: without one, or to `HEAD`, only uncommitted changes are lost.
static RESET: LazyLock<AsciiFirstRegex> = LazyLock::new(|| {
    AsciiFirstRegex::new(r"\bgit\b[^\n;&|]* reset --hard (?:-\S+ )*(?:HEAD[~^]|[^-\s;&|H]|H[^E\s])")
});

#[derive(Default)]
pub(in crate::facts) struct Commits {
    /// Branch and hash, in order.
    made: Vec<(String, String)>,
    /// Branch of the last commit.
    branch: String,
    /// Hashes that no longer exist and were not named since.
    gone: Vec<String>,
}

impl Commits {
    /// Whether [`Self::record`] needs the output of a command.
    pub(in crate::facts) fn concerns(command: &str) -> bool {
        ["commit", "rebase", "reset --hard", "--continue"].iter().any(|it| command.contains(it))
    }

    /// Records a successful command.
    pub(in crate::facts) fn record(&mut self, command: &str, output: &str) {
        if RESET.is_match(command) && output.contains("HEAD is now at") {
            self.lose_newest(usize::MAX);
        }
        if let Some(found) = REBASED.captures(output) {
            if let Some(branch) = found.get(1) {
                self.branch = branch.as_str().to_owned();
            }
            self.lose_newest(usize::MAX);
        }
        for found in COMMITTED.captures_iter(output) {
            let (Some(branch), Some(hash)) = (found.get(1), found.get(2)) else { continue };
            self.branch = branch.as_str().to_owned();
            if command.contains("--amend") {
                self.lose_newest(1);
            }
            self.made.push((self.branch.clone(), hash.as_str().to_owned()));
        }
    }

    /// Marks the newest `most` commits of the branch as lost.
    fn lose_newest(&mut self, most: usize) {
        let of_branch = |it: &usize| self.made[*it].0 == self.branch;
        let over: Vec<usize> = (0..self.made.len()).rev().filter(of_branch).take(most).collect();
        self.gone.extend(over.into_iter().map(|it| self.made.remove(it).1));
    }

    /// A hash that is named still exists: another branch may contain it.
    pub(in crate::facts) fn keep_named(&mut self, text: &str) {
        self.gone.retain(|it| !text.contains(it.as_str()));
    }

    pub(in crate::facts) fn is_lost(&self, hash: &str) -> bool {
        self.gone.iter().any(|it| it.starts_with(hash) || hash.starts_with(it.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_go_with_what_rewrites_their_branch() {
        let lost = |commands: &[(&str, &str)]| {
            let mut commits = Commits::default();
            for (command, output) in commands {
                commits.keep_named(command);
                commits.record(command, output);
            }
            ["1111111", "2222222", "3333333"].map(|it| commits.is_lost(it))
        };
        let one = ("git commit -m a", "[one 1111111] a\n 1 file changed");
        let two = ("git commit -m b", "[one 2222222] b\n 1 file changed");
        let other = ("git commit -m c", "[two 3333333] c\n");
        for (last, expected) in [
            (("git rebase main", "Successfully rebased and updated refs/heads/one."), [true, true, false]),
            (("git rebase main", "Successfully rebased and updated refs/heads/two."), [false, false, true]),
            (("git commit --amend", "[one 4444444] b"), [false, true, false]),
            (("git reset --hard", "HEAD is now at 3333333 c"), [false; 3]),
            (("git reset --hard HEAD", "HEAD is now at 3333333 c"), [false; 3]),
            (("git reset --hard HEAD~1", "HEAD is now at 0000000 x"), [false, false, true]),
            (("git reset --hard origin/two", "HEAD is now at 0000000 x"), [false, false, true]),
        ] {
            assert_eq!(lost(&[one, two, other, last]), expected, "{}", last.0);
        }
        let rebased = ("git rebase main", "Successfully rebased and updated refs/heads/one.");
        assert_eq!(lost(&[one, two, rebased, ("git show 22222222aa", "")]), [true, false, false]);
    }
}
