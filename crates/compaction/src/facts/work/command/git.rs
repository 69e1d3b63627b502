//! What a command does to a repository.

use super::program_is_read_only;
use super::{ParsedCommand, Program};

/// Whether a revision names a commit of the branch itself, not another branch.
fn is_own_commit(revision: &str) -> bool {
    let hash = revision.len() >= 7 && revision.bytes().all(|it| it.is_ascii_hexdigit());
    hash || ["HEAD", "@", "stash"].iter().any(|it| revision.starts_with(it))
}

/// The first line of the message of a commit, if the command does nothing else that tells something.
pub fn commit_subject(command: &str) -> Option<String> {
    let parsed = ParsedCommand::of(command);
    let commits = |it: &[&str]| it.starts_with(&["git", "commit"]);
    let prepares = |it: &[&str]| {
        matches!(it, ["git", "add" | "status" | "log" | "diff" | "show", ..] | ["cd" | "echo" | "true", ..])
    };
    let mut made = parsed.programs().filter(|it| commits(it));
    let words = made.next()?;
    if made.next().is_some() || !parsed.programs().all(|it| commits(&it) || prepares(&it)) {
        return None;
    }
    if words.iter().any(|it| ["--no-verify", "-n"].contains(it)) {
        return None;
    }
    let flag = words.iter().position(|it| ["-m", "-am", "--message"].contains(it))?;
    let message = words.get(flag + 1)?;
    // `-m "$(cat <<'EOF'`
    let body = match message.starts_with("$(cat <<") {
        true => command.split_once("$(cat <<")?.1.split_once('\n')?.1,
        false => message,
    };
    let subject = body.lines().map(str::trim).find(|it| !it.is_empty())?;
    (!subject.contains(['`', '$'])).then(|| subject.to_owned())
}

impl ParsedCommand {
    /// The files of a revision that it prints: `git show main:src/a.rs`.
    pub(in crate::facts) fn files_of_revision(&self) -> Vec<String> {
        let shown = self.programs().filter_map(|words| match words[..] {
            ["git", "show", what, ..] => what.split_once(':'),
            _ => None,
        });
        // Before a commit, `1a2b3c4^:`, the file may have been another one.
        let named = |it: &str| !it.is_empty() && !it.starts_with('-') && !it.contains(['^', '~']);
        let shown = shown.filter(|it| named(it.0) && !it.1.ends_with('/'));
        shown.map(|it| it.1.to_owned()).filter(|it| it.contains('.') && !it.contains(['$', '*'])).collect()
    }

    /// Whether it ends with a script of a package: `pnpm assist`.
    pub(in crate::facts) fn runs_package_script(&self) -> bool {
        self.programs().last().is_some_and(|it| matches!(it[..], ["npm" | "pnpm" | "yarn" | "bun", _, ..]))
    }

    /// Whether it commits or pushes without running hooks.
    pub(in crate::facts) fn skips_hooks(&self) -> bool {
        let short = |it: &&str| it.starts_with('-') && !it.starts_with("--") && it.contains('n');
        self.programs().any(|it| {
            let commits = it.contains(&"commit") && it.iter().any(short);
            it[0] == "git" && (commits || it.contains(&"--no-verify"))
        })
    }

    /// Whether it discards changes, other than by `git reset --hard`. `edited`: it names a file that the
    /// session edited; otherwise files of another branch may be checked out only to read them.
    pub(in crate::facts) fn discards_changes(&self, edited: bool) -> bool {
        self.programs().any(|words| match words[..] {
            ["git", "checkout", "--" | ".", ..] | ["git", "revert", _, ..] => true,
            ["git", "checkout", from, "--", _, ..] => edited || is_own_commit(from),
            ["git", "restore", ref rest @ ..] => !rest.contains(&"--staged") && !rest.contains(&"-S"),
            _ => false,
        })
    }

    /// The worktrees that it removes: `git worktree remove a`.
    pub(in crate::facts) fn removed_trees(&self) -> impl Iterator<Item = &str> {
        let trees = self.programs.iter().filter_map(|it| {
            let at = it.words.iter().position(|it| it == "worktree").filter(|_| it.words[0] == "git")?;
            let (_, given) = it.words[at + 1..].split_first().filter(|it| it.0 == "remove")?;
            given.iter().find(|it| !it.starts_with('-'))
        });
        trees.map(String::as_str).filter(|it| !it.contains('$'))
    }

    /// Whether git prints paths from the root of the repository, wherever it runs.
    pub(in crate::facts) fn prints_from_root(&self) -> bool {
        const COMMANDS: [&str; 4] = ["diff", "log", "show", "stash"];
        self.programs().any(|words| {
            let does = |it: &&str| COMMANDS.contains(it);
            words[0] == "git" && words.get(1).is_some_and(does) && !words.contains(&"--relative")
        })
    }

    /// The directory of its last git program, relative to where the command begins, if it is another.
    pub(in crate::facts) fn git_directory(&self) -> Option<String> {
        let last = self.programs.iter().rfind(|it| it.words[0] == "git")?;
        last.dir.as_deref().map(str::to_owned)
    }

    /// The files that it removes from git but not from disk: `git rm --cached a.rs`.
    pub(in crate::facts) fn untracked_files(&self) -> impl Iterator<Item = &str> {
        let takes = |it: &&Program| {
            let has = |word: &str| it.words.iter().any(|it| it == word);
            it.words[0] == "git" && has("rm") && has("--cached")
        };
        let given = self.programs.iter().filter(takes).flat_map(|it| &it.words[1..]);
        given.map(String::as_str).filter(|it| *it != "rm" && !it.starts_with('-'))
    }

    /// Whether it only moves files and hands them over: besides git, nothing in it could fail on its own.
    pub(in crate::facts) fn only_delivers(&self) -> bool {
        let moves = |it: &str| matches!(it, "git" | "find" | "rm" | "mv" | "cp" | "mkdir" | "touch");
        self.programs().all(|it| moves(it[0]) || program_is_read_only(&it))
            && self.programs().any(|it| matches!(it[..], ["git", .., "push"] | ["git", "push", ..]))
    }

    /// Whether it removes untracked files: `git clean`.
    pub(in crate::facts) fn cleans(&self) -> bool {
        self.programs().any(|it| matches!(it[..], ["git", "clean", ..]))
    }

    /// The files whose changes it discards, as far as it names them.
    pub(in crate::facts) fn restored_files(&self) -> Vec<String> {
        let named = |words: &[&str]| -> Vec<String> {
            let named = words.iter().filter(|it| !it.starts_with('-') && **it != ".");
            named.copied().map(str::to_owned).collect()
        };
        let files = self.programs().map(|words| match words[..] {
            ["git", "checkout", "--", ref rest @ ..] | ["git", "checkout", _, "--", ref rest @ ..] => {
                named(rest)
            }
            // A branch or files: the caller knows which files exist.
            ["git", "checkout", ref rest @ ..] if rest.iter().all(|it| !it.starts_with('-')) => named(rest),
            ["git", "restore", ref rest @ ..] if !rest.contains(&"--staged") && !rest.contains(&"-S") => {
                named(rest)
            }
            _ => Vec::new(),
        });
        files.flatten().collect()
    }
}
