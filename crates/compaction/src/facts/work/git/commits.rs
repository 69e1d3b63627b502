//! Commits of this session that no longer exist: their branch was rebased, amended or reset.

use super::super::command::{Operation, ParsedCommand};
use super::{COMMITTED, INITIALIZED, git_args, is_same_commit, log};
use crate::facts::text::ascii_first::AsciiFirstRegex;

static REBASED: AsciiFirstRegex = AsciiFirstRegex::new(
    // In a terminal, progress output precedes it on the same line.
    r"(?m)(?:^|\r|\x1b\[K)Successfully rebased(?: and updated refs/heads/([^\s]*[^\s.]))?|^\s*✓ Rebased\b",
);
static NOW_AT: AsciiFirstRegex = AsciiFirstRegex::new(r"(?m)^HEAD is now at ([0-9a-f]{7,40})\b");

/// Where `git status` and `git checkout` name the current branch.
static ON_BRANCH: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?m)^(?:On branch (\S+)$|## (\S+?)\.\.\.\S|(?:Switched to (?:a new )?|Already on )(?:branch )?'([^']+)'$)",
);

/// First line of a short status of a branch without upstream: `## main`.
static BARE_BRANCH: AsciiFirstRegex = AsciiFirstRegex::new(r"(?m)^## (\S+)$");

/// Whether a program is a `git status` that names the branch in its short form.
fn asks_for_branch(words: &[&str]) -> bool {
    let short = |it: &&str| it.starts_with('-') && !it.starts_with("--") && it.contains('b');
    words.starts_with(&["git", "status"]) && words.iter().any(|it| *it == "--branch" || short(it))
}

/// The branch that a command printed which ends by asking for it, `git branch --show-current`, and before only prints lines
/// of several words.
fn printed_branch<'o>(parsed: &ParsedCommand, output: &'o str) -> Option<&'o str> {
    let (last, is_piped) = parsed.pipes().last()?;
    let asks = matches!(
        git_args(&last).unwrap_or_default(),
        ["branch", "--show-current"] | ["rev-parse", "--abbrev-ref", "HEAD"]
    );
    // With no branch checked out, nothing is printed, and the last line is of a program before. Those must print
    // lines of several words; a hash is one of `git log --format=%h`.
    let several_words = |it: &Vec<&str>| it[0] == "cd" || matches!(it[..], ["git", "log" | "status", ..]);
    let all: Vec<Vec<&str>> = parsed.programs().collect();
    let known = all[..all.len() - 1].iter().all(several_words);
    let name = output.trim_end().lines().last()?;
    let is_name = name != "HEAD" && !name.is_empty() && !name.contains([' ', ':']);
    let is_hash = name.len() >= 7 && name.bytes().all(|it| it.is_ascii_hexdigit());
    (asks && !is_piped && known && is_name && !is_hash).then_some(name)
}

#[derive(Default)]
pub(in crate::facts) struct Commits {
    /// Branch and hash of existing commits, in order; a commit is in it once per branch.
    existing: Vec<(String, String)>,
    /// The current branch, as far as known; may be empty.
    branch: String,
    /// Whether `branch` is certain: git named it, or the session created it.
    branch_is_certain: bool,
    /// Hashes that no longer exist and were not named since.
    lost: Vec<String>,
    /// Hashes that were pushed: a rebase onto the branch's own upstream keeps them.
    pushed: Vec<String>,
    /// For each `git log`: how many commits had been made before, and the hash of the newest listed.
    bases: Vec<(usize, String)>,
}

impl Commits {
    /// Whether [`Self::record`] needs the output of a command.
    pub(in crate::facts) fn concerns(command: &str) -> bool {
        [
            "git init",
            // A script may switch the branch.
            ".sh",
            "commit",
            "rebase",
            "reset",
            "--continue",
            "branch",
            "checkout",
            "switch",
            "git log",
            "git status",
        ]
        .iter()
        .any(|it| command.contains(it))
    }

    /// Records a successful command.
    pub(in crate::facts) fn record(&mut self, command: &str, output: &str) {
        if output.contains(INITIALIZED) {
            self.lost.extend(self.existing.drain(..).map(|it| it.1));
        }
        let now = NOW_AT.captures_iter(output).last().and_then(|it| it.get(1));
        let mut rewritten = None;
        let parsed = ParsedCommand::of(command);
        let mut on_upstream: Vec<bool> = Vec::new();
        for words in parsed.programs() {
            self.follow_branches(&words);
            match git_args(&words).unwrap_or_default() {
                // A push after a rebase does not push the old commits.
                ["push", rest @ ..]
                    if on_upstream.is_empty()
                        && !rest.contains(&"--dry-run")
                        && is_pushed(output, &self.branch) =>
                {
                    let here = self.existing.iter().filter(|it| it.0 == self.branch);
                    self.pushed.extend(here.map(|it| it.1.clone()));
                }
                ["rebase", .., onto] => {
                    on_upstream.push(onto.strip_prefix("origin/") == Some(&self.branch));
                }
                ["pull", rest @ ..] if rest.iter().any(|it| ["-r", "--rebase"].contains(it)) => {
                    let named = rest.iter().filter(|it| !it.starts_with('-')).nth(1);
                    on_upstream.push(named.is_none_or(|it| *it == self.branch));
                }
                _ => {}
            }
            if let Some(most) = self.commits_removed_by_reset(&words, now.map(|it| it.as_str())) {
                self.lose_newest(most);
                rewritten = now.map(|it| it.end());
            }
        }
        if let Some(found) = REBASED.captures(output) {
            if let Some(branch) = found.get(1) {
                self.branch = branch.as_str().to_owned();
            }
            let unpushed = || {
                let of_branch = self.existing.iter().rev().filter(|it| it.0 == self.branch);
                of_branch.take_while(|it| !self.pushed.contains(&it.1)).count()
            };
            let keeps = !on_upstream.is_empty() && on_upstream.iter().all(|it| *it);
            self.lose_newest(if keeps { unpushed() } else { usize::MAX });
            rewritten = found.get(0).map(|it| it.end());
        }
        for found in COMMITTED.captures_iter(output) {
            let (Some(branch), Some(hash)) = (found.get(1), found.get(2)) else { continue };
            self.branch = branch.as_str().to_owned();
            self.branch_is_certain = true;
            if command.contains("--amend") {
                self.lose_newest(1);
            }
            self.existing.push((self.branch.clone(), hash.as_str().to_owned()));
        }
        let mut named = ON_BRANCH.captures_iter(output).last();
        // A script may say in git's words that it switched, but tests do so in repositories of their own.
        let switches = || !parsed.prints_contents() && !parsed.operations().iter().any(Operation::checks);
        named = named.filter(|it| command.contains("git ") || it.get(3).is_some() && switches());
        // Only the first match: what is printed after it may have headings (`## x`) of its own.
        let asked = || parsed.programs().any(|it| asks_for_branch(&it));
        if named.is_none() && asked() {
            named = BARE_BRANCH.captures(output);
        }
        if let Some(found) = named {
            self.branch = found.iter().skip(1).flatten().next().map_or("", |it| it.as_str()).to_owned();
            self.branch_is_certain = true;
        } else if let Some(name) = printed_branch(&parsed, output) {
            (self.branch, self.branch_is_certain) = (name.to_owned(), true);
        }
        // Hashes that are printed after the rewrite still exist.
        if let Some(at) = rewritten {
            self.keep_named(&output[at..]);
        }
        if let Some((_, listed)) = log::of_head(&parsed, output) {
            self.lose_unlisted(&listed);
        }
    }

    /// Marks as lost the commits of the branch that its log omits although it lists an older one.
    fn lose_unlisted(&mut self, listed: &[(String, String)]) {
        let lists = |hash: &str| listed.iter().any(|it| is_same_commit(&it.0, hash));
        let base = self.bases.iter().filter(|it| lists(&it.1)).map(|it| it.0).min();
        let made = |it: &(usize, &(String, String))| it.1.0 == self.branch && lists(&it.1.1);
        let oldest = self.existing.iter().enumerate().find(made).map(|it| it.0);
        let from = base.into_iter().chain(oldest).min().unwrap_or(usize::MAX);
        let over = |it: &usize| self.existing[*it].0 == self.branch && !lists(&self.existing[*it].1);
        let over: Vec<usize> =
            (0..self.existing.len()).rev().take_while(|it| *it >= from).filter(over).collect();
        self.lost.extend(over.into_iter().map(|it| self.existing.remove(it).1));
        self.bases.extend(listed.first().map(|it| (self.existing.len(), it.0.clone())));
    }

    /// The current branch, if it is certain.
    pub(in crate::facts) fn branch(&self) -> Option<&str> {
        Some(self.branch.as_str()).filter(|it| self.branch_is_certain && !it.is_empty())
    }

    /// Takes over the branch that an earlier summary states.
    pub(in crate::facts) fn resume(&mut self, branch: &str) {
        (self.branch, self.branch_is_certain) = (branch.to_owned(), true);
    }

    /// The last command ran in another worktree, so that the current branch is uncertain.
    pub(in crate::facts) fn leave_tree(&mut self) {
        self.branch_is_certain = false;
    }

    /// A branch that has a commit: `told` if it still does, otherwise the last one known.
    pub(in crate::facts) fn branch_of<'a>(&'a self, hash: &str, told: &'a str) -> &'a str {
        let mut has = self.existing.iter().filter(|it| is_same_commit(&it.1, hash)).map(|it| it.0.as_str());
        has.clone().find(|it| *it == told).or_else(|| has.next_back()).unwrap_or(told)
    }

    /// `from`: the current branch if `None`.
    fn rename_branch(&mut self, from: Option<&str>, to: &str) {
        let from = from.map_or(self.branch.clone(), str::to_owned);
        self.existing.iter_mut().filter(|it| it.0 == from).for_each(|it| it.0 = to.to_owned());
        if self.branch == from {
            self.branch = to.to_owned();
        }
    }

    /// Follows a program to another branch; a new branch gets the commits of the one that it starts from.
    fn follow_branches(&mut self, words: &[&str]) {
        let (created, to) = branches(words);
        match git_args(words).unwrap_or_default() {
            ["branch", "-m" | "-M" | "--move", from, to] => self.rename_branch(Some(from), to),
            ["branch", "-m" | "-M" | "--move", to] => self.rename_branch(None, to),
            ["branch", rest @ ..] if rest.iter().any(|it| ["-D", "-d", "--delete"].contains(it)) => {
                let deleted = self.existing.extract_if(.., |it| rest.contains(&it.0.as_str()));
                self.lost.extend(deleted.map(|it| it.1));
            }
            _ => {}
        }
        if let Some(name) = created {
            // An argument after the name is the start point.
            let from = words.last().filter(|it| **it != name).map_or(self.branch.as_str(), |it| *it);
            let here = self.existing.iter().filter(|it| it.0 == from);
            let there: Vec<_> = here.map(|it| (name.to_owned(), it.1.clone())).collect();
            self.existing.extend(there);
        }
        if let Some(name) = to {
            self.branch = name.to_owned();
            // `git checkout NAME` may also restore a file.
            self.branch_is_certain = created.is_some();
        }
        match words {
            ["gh", "pr" | "stack", "checkout" | "up" | "down" | "top" | "bottom", ..]
            | [
                "gt",
                "create" | "c" | "checkout" | "co" | "up" | "down" | "top" | "bottom" | "delete" | "sync",
                ..,
            ]
            | ["jj", "new" | "edit" | "next" | "prev" | "bookmark", ..]
            | ["sl" | "hg", "checkout" | "co" | "update" | "up" | "goto" | "bookmark" | "branch", ..] => {
                self.branch.clear()
            }
            _ => {}
        }
    }

    /// Number of commits that a reset takes off the branch (`usize::MAX`: all); `None` if only uncommitted
    /// changes are lost, as with `HEAD`. `now`: the hash that it printed.
    fn commits_removed_by_reset(&self, words: &[&str], now: Option<&str>) -> Option<usize> {
        let ["reset", rest @ ..] = git_args(words)? else { return None };
        let hard = rest.contains(&"--hard");
        let target = rest.iter().find(|it| !it.starts_with('-'))?;
        let steps = match target.strip_prefix("HEAD") {
            Some("") => return None,
            Some("^" | "~") => Some(1),
            Some(rest) => rest.strip_prefix('~').and_then(|it| it.parse().ok()),
            // Files, or a commit that is not known.
            None if !hard => return None,
            None => None,
        };
        let mut of_branch = self.existing.iter().rev().filter(|it| it.0 == self.branch);
        let known = now.filter(|_| hard).and_then(|now| of_branch.position(|it| is_same_commit(&it.1, now)));
        Some(known.or(steps).unwrap_or(usize::MAX))
    }

    /// Marks the newest `most` commits of the branch as lost.
    fn lose_newest(&mut self, most: usize) {
        let of_branch = |it: &usize| self.existing[*it].0 == self.branch;
        let over: Vec<usize> = (0..self.existing.len()).rev().filter(of_branch).take(most).collect();
        self.lost.extend(over.into_iter().map(|it| self.existing.remove(it).1));
    }

    /// Hashes in `text` still exist: another branch may contain them.
    pub(in crate::facts) fn keep_named(&mut self, text: &str) {
        // A forced push also names the hash that it replaced.
        let named = |it: &String| {
            text.lines().any(|line| line.contains(it.as_str()) && !line.contains("(forced update)"))
        };
        self.lost.retain(|it| !named(it));
    }

    pub(in crate::facts) fn is_lost(&self, hash: &str) -> bool {
        self.lost.iter().any(|it| is_same_commit(it, hash))
            && !self.existing.iter().any(|it| is_same_commit(&it.1, hash))
    }
}

/// Whether git says that it pushed to the branch: `1a2b3c4..5d6e7f8  main -> main`.
fn is_pushed(output: &str, branch: &str) -> bool {
    output.lines().any(|it| {
        let to = it.rsplit_once(" -> ").is_some_and(|(_, to)| to.trim() == branch);
        to && !it.contains("rejected") && !it.trim_start().starts_with('+')
    })
}

/// The branch or tag that a program creates, and the branch that it switches to.
pub(in crate::facts::work) fn branches<'a>(words: &[&'a str]) -> (Option<&'a str>, Option<&'a str>) {
    let quiet = ["-q", "--quiet", "-f"];
    let given = git_args(words).unwrap_or_default().iter().copied();
    let loud: Vec<&str> = given.filter(|it| !quiet.contains(it)).collect();
    match loud[..] {
        ["branch" | "tag", name, ..] if !name.starts_with('-') => (Some(name), None),
        ["checkout" | "switch", "-b" | "-B" | "-c" | "-C", name, ..] => (Some(name), Some(name)),
        ["checkout" | "switch", name] if !name.starts_with('-') => (None, Some(name)),
        _ => (None, None),
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
            (
                (
                    "git checkout one && git push && git rebase origin/one",
                    "   1111111..2222222  one -> one\nSuccessfully rebased and updated refs/heads/one.",
                ),
                [false; 3],
            ),
            (
                (
                    "git checkout one && git push && git rebase origin/main",
                    "   1111111..2222222  one -> one\nSuccessfully rebased and updated refs/heads/one.",
                ),
                [true, true, false],
            ),
            (
                (
                    "git checkout one && git pull --rebase && git push",
                    "Successfully rebased and updated refs/heads/one.\n   0000000..4444444  one -> one",
                ),
                [true, true, false],
            ),
            (
                (
                    "git checkout one && git push; git pull --rebase",
                    " ! [rejected]  one -> one (fetch first)\nSuccessfully rebased and updated refs/heads/one.",
                ),
                [true, true, false],
            ),
            (("git checkout one && git reset -q --hard other", ""), [true, true, false]),
            (("git checkout one; git reset --hard HEAD~1", "HEAD is now at 1111111 a"), [false, true, false]),
            (
                ("git checkout one; git reset --hard 1111111", "HEAD is now at 1111111 a"),
                [false, true, false],
            ),
            (
                ("git checkout one; git branch kept; git reset --hard HEAD~2", "HEAD is now at 0000000 x"),
                [false; 3],
            ),
            (("git checkout one && git reset --soft HEAD~1", ""), [false, true, false]),
            (
                ("git checkout one; git branch a; git reset -q --hard b; git branch -D a", ""),
                [true, true, false],
            ),
            (("git checkout one; git branch a two; git reset -q --hard b", ""), [true, true, false]),
            (
                ("git rebase -i x", "Successfully rebased and updated refs/heads/one.\n1111111 a\n5555555 b"),
                [false, true, false],
            ),
            (("git checkout one; git log --oneline -3", "1111111 a\n5555555 z"), [false, true, false]),
            (("git checkout one; git log --oneline -1", "2222222 b"), [false; 3]),
            (("git checkout one; git log --oneline -- src", "1111111 a\n5555555 z"), [false; 3]),
            (
                (
                    "git commit --amend && git push -f",
                    "[one 4444444] b\n + 2222222...4444444 one -> one (forced update)",
                ),
                [false, true, false],
            ),
        ] {
            assert_eq!(lost(&[one, two, other, last]), expected, "{}", last.0);
        }
        let mut commits = Commits::default();
        for (command, output) in [
            one,
            ("git branch -m one fresh", ""),
            ("git commit -m b", "[fresh 2222222] b\n 1 file changed"),
            ("git branch kept; git reset --hard HEAD~1", "HEAD is now at 1111111 a"),
            ("git status", "On branch kept\nnothing to commit"),
        ] {
            commits.record(command, output);
        }
        assert_eq!(commits.branch(), Some("kept"));
        commits.record("gt create -m c", "");
        assert_eq!(commits.branch(), None);
        commits.record("git log --oneline -1 && git branch --show-current", "2222222 b\nnext\n");
        assert_eq!(commits.branch(), Some("next"));
        commits.record("git log --oneline -1 && git branch --show-current", "2222222 b\n");
        assert_eq!(commits.branch(), Some("next"));
        commits.record("npm test", "Switched to a new branch 'of-a-test'\n");
        assert_eq!(commits.branch(), Some("next"));
        commits.record("git switch kept; git status", "On branch kept\nnothing to commit");
        assert_eq!(commits.branch_of("1111111", "one"), "kept");
        assert_eq!(commits.branch_of("1111111", "fresh"), "fresh");
        assert_eq!(commits.branch_of("2222222", "one"), "kept");
        let rebased = ("git rebase main", "Successfully rebased and updated refs/heads/one.");
        assert_eq!(lost(&[one, two, rebased, ("git show 22222222aa", "")]), [true, false, false]);
    }
}
