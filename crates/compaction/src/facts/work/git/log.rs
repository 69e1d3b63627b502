//! The commits that the newest `git log` lists, and those that were made after it.

use super::super::command::{ParsedCommand, Run, greps};
use super::super::files::mentions;
use super::{COMMITTED, INITIALIZED, git_args, is_same_commit};
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::{clip, flat, sentences};

/// `1a2b3c4 (HEAD -> main) subject`, perhaps with the lines of `--graph` before it and parents' hashes after
/// the first.
static ONE_LINE: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?m)^[*|/\\_ ]*\b([0-9a-f]{7,40}) (?:[0-9a-f]{40} )*(?:\([^)\n]*\) )?(\S[^\n]*)$");
/// `commit 1a2b3c4...`, and the first line of its message.
static LONG: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?m)^commit ([0-9a-f]{7,40})\b[^\n]*\n(?:[A-Z][A-Za-z]+:[^\n]*\n)+\s*\n    (\S[^\n]*)$",
);

/// Prefix of the line that lists the commits.
const COMMITS: &str = "commits, newest first";

/// Maximum characters of a hash in that line.
const SHORT: usize = 10;

/// Maximum bytes of a subject in that line.
const SUBJECT: usize = 90;

/// What git prints instead of making a commit.
static NOT_COMMITTED: AsciiFirstRegex =
    AsciiFirstRegex::new(r"\bnothing (?:added )?to commit\b|\bno changes added to commit\b");

/// Whether a command makes one more commit without printing it: `git commit -q`.
fn commits_quietly(words: &[&str]) -> bool {
    let quiet =
        |it: &&str| *it == "--quiet" || it.starts_with('-') && !it.starts_with("--") && it.contains('q');
    let other = ["--amend", "--dry-run", "--help"];
    words.starts_with(&["git", "commit"])
        && words.iter().any(quiet)
        && !words.iter().any(|it| other.contains(it))
}

#[derive(Default)]
pub(in crate::facts::work) struct Log {
    /// Message of the newest `git log` of the current branch, if any.
    at: Option<usize>,
    /// Number of commits that git printed as made since then.
    since: usize,
    /// Number of newer commits that git did not print, so that they are missing in `commits`.
    unprinted: usize,
    /// Whether that log has only the commits of a branch: `main..HEAD`.
    range: bool,
    /// Hash and subject, newest first.
    commits: Vec<(String, String)>,
    /// Hash and subject of the commits that the session made.
    made: Vec<(String, String)>,
    /// The newest commit that the session did not make and whose subject is the beginning of a prompt: the
    /// message that lists it, its hash and subject.
    of_prompt: Option<(usize, String, String)>,
    /// Whether a commit was made that git did not print.
    silent: bool,
    /// Message and sentence in which the model says that commits are made automatically.
    claimed: Option<(usize, String)>,
}

impl Log {
    /// Reads a successful command. `tree`: the other worktree or repository in which it ran; `prompts`: the
    /// user's prompts so far.
    pub(super) fn read(&mut self, run: &Run, tree: Option<&str>, prompts: &[String]) {
        let (command, output) = (run.parsed, run.output.text.as_str());
        let amends = command.programs().any(|it| it.contains(&"--amend"));
        // What was listed before is of another repository.
        if tree.is_none() && (output.contains(INITIALIZED) || output.contains("(root-commit)")) {
            self.forget();
        }
        if command.programs().any(|it| moves_head(&it)) {
            self.forget();
        }
        let commits = |it: &Vec<&str>| git_args(it).is_some_and(|it| it.first() == Some(&"commit"));
        let printed = COMMITTED.captures_iter(output).count();
        let unprinted = command.programs().filter(commits).count().saturating_sub(printed);
        self.silent |= unprinted > 0 && printed == 0;
        if tree.is_none() && printed == 0 && !NOT_COMMITTED.is_match(output) {
            self.unprinted += command.programs().filter(|it| commits_quietly(it)).count();
        }
        for found in COMMITTED.captures_iter(output) {
            let (Some(all), Some(hash)) = (found.get(0), found.get(2)) else { continue };
            let subject = output[all.end()..].lines().next().unwrap_or_default().trim();
            let subject = match tree {
                Some(tree) => format!("{subject}{IN_TREE}{tree})"),
                None => subject.to_owned(),
            };
            if amends {
                let top = if self.commits.is_empty() { None } else { Some(self.commits.remove(0)) };
                let is_top = |hash: &str| top.as_ref().is_some_and(|top| is_same_commit(hash, &top.0));
                self.made.retain(|it| !is_top(&it.0));
                // Once amended, that commit is this session's own.
                self.of_prompt.take_if(|it| is_top(&it.1));
            }
            self.commits.insert(0, (hash.as_str().to_owned(), subject.clone()));
            // The unprinted commits are older than this one.
            self.unprinted = 0;
            self.since += 1;
            self.made.push((hash.as_str().to_owned(), subject));
        }
        self.read_listing(run, tree, if amends { 0 } else { unprinted }, prompts);
    }

    /// Reads a log. `unprinted`: how many of its newest commits the same command made without printing them.
    fn read_listing(&mut self, run: &Run, tree: Option<&str>, unprinted: usize, prompts: &[String]) {
        // The log of another repository does not replace what is known of this one.
        let elsewhere = tree.is_some_and(|it| !mentions::is_of_other_tree(it, None));
        let here = elsewhere && self.commits.iter().any(|it| apart_from_tree(&it.1).1.is_empty());
        if let Some((range, mut listed)) = of_head(run.parsed, run.output.text.as_str()).filter(|_| !here) {
            for (_, subject) in listed.iter_mut() {
                subject.extend(tree.map(|it| format!("{IN_TREE}{it})")));
            }
            self.range = range;
            self.at = Some(run.number);
            (self.since, self.unprinted) = (0, 0);
            for commit in listed.iter().take(unprinted).rev() {
                if !self.commits.iter().any(|it| is_same_commit(&it.0, &commit.0)) {
                    self.commits.insert(0, commit.clone());
                    self.made.push(commit.clone());
                }
            }
            // A log of only the newest commits does not remove older known ones.
            let top =
                listed.iter().zip(&self.commits).take_while(|it| is_same_commit(&it.0.0, &it.1.0)).count();
            let one = listed.len() == 1 && self.commits.iter().any(|it| is_same_commit(&it.0, &listed[0].0));
            if top < listed.len() && !one {
                self.commits = listed;
            } else {
                // Commits known from another worktree are listed in this one now.
                for known in &mut self.commits {
                    if let Some(here) = listed.iter().find(|it| is_same_commit(&it.0, &known.0)) {
                        known.1.clone_from(&here.1);
                    }
                }
            }
            self.find_commit_of_prompt(run.number, prompts);
        }
    }

    fn forget(&mut self) {
        (self.at, self.range, self.unprinted) = (None, false, 0);
        self.commits.clear();
    }

    fn is_made(&self, commit: &(String, String)) -> bool {
        self.made.iter().any(|it| is_same_commit(&it.0, &commit.0) || it.1 == commit.1)
    }

    fn find_commit_of_prompt(&mut self, number: usize, prompts: &[String]) {
        /// Minimum bytes of a subject; the match of a shorter one may be a coincidence.
        const SUBJECT: usize = 15;
        if self.silent {
            return;
        }
        let found = self.commits.iter().find(|commit| {
            let subject = commit.1.trim_end_matches(['.', '…']);
            subject.len() >= SUBJECT
                && prompts.iter().any(|it| it.trim_start().starts_with(subject))
                && !self.made.iter().any(|it| is_same_commit(&it.0, &commit.0))
        });
        if let Some((hash, subject)) = found {
            self.of_prompt = Some((number, hash.clone(), subject.clone()));
        }
    }

    /// Takes over the commits from a line of an earlier summary. Returns whether the line lists commits.
    pub(super) fn resume(&mut self, told: &str) -> bool {
        let Some(rest) = told.strip_prefix(COMMITS) else { return false };
        let notes = rest.strip_prefix(" (").filter(|_| !rest.starts_with(IN_TREE));
        let listed = notes.and_then(|it| it.split_once(')')).map_or(rest, |it| it.1);
        let tree = listed.strip_prefix(IN_TREE).and_then(|it| it.split_once("): "));
        let (tree, listed) = match tree {
            Some((tree, listed)) => (format!("{IN_TREE}{tree})"), listed),
            None => (String::new(), listed.strip_prefix(": ").unwrap_or_default()),
        };
        let is_hash =
            |it: &str| (7..=SHORT).contains(&it.len()) && it.bytes().all(|it| it.is_ascii_hexdigit());
        for piece in listed.split("; ") {
            match (piece.split_once(' '), self.commits.last_mut()) {
                (Some((hash, subject)), _) if is_hash(hash) => {
                    self.commits.push((hash.to_owned(), format!("{subject}{tree}")));
                }
                // The rest of a subject that contains a semicolon.
                (_, Some(last)) if !piece.ends_with(" older") => last.1 += &format!("; {piece}"),
                _ => {}
            }
        }
        self.made.extend(self.commits.iter().cloned());
        true
    }

    /// Notes the sentence in which the model says that commits are made automatically.
    pub(in crate::facts::work) fn read_reply(&mut self, number: usize, text: &str) {
        const WORDS: [&str; 4] =
            ["auto-commit", "autocommit", "automatically commit", "committed automatically"];
        /// Maximum bytes of a sentence.
        const SENTENCE: usize = 200;
        let says = |it: &str| WORDS.iter().any(|of| it.to_lowercase().contains(of));
        if text.contains("ommit") && says(text) {
            let said = sentences(text).into_iter().find(|it| says(it) && it.contains("already"));
            self.claimed = said.map(|it| (number, flat(clip(it, SENTENCE).0))).or(self.claimed.take());
        }
    }

    /// Whether something other than the session makes commits.
    pub(super) fn commits_by_itself(&self) -> bool {
        self.of_prompt.is_some() || self.claimed.is_some()
    }

    /// The lines for the ledger: this session's commits that are not lost, and who else commits.
    pub(super) fn ledger_lines(
        &self,
        is_lost: impl Fn(&str) -> bool,
        origin: &dyn Fn(usize) -> usize,
    ) -> Vec<String> {
        /// Maximum number of commits that are listed.
        const MOST: usize = 12;
        let mut out = Vec::new();
        let live = || self.commits.iter().filter(|it| !is_lost(&it.0));
        // Commits newer than one of this session were made in it too.
        let own = match live().count() {
            all if self.range && (self.silent || !self.made.is_empty()) => all,
            _ => live().enumerate().filter(|it| self.is_made(it.1)).last().map_or(0, |it| it.0 + 1),
        };
        if own > 0 {
            let told = || live().take(own.min(MOST));
            // A worktree that all of them are in is named once.
            let tree = told().next().map_or("", |it| apart_from_tree(&it.1).1);
            let same = told().all(|it| apart_from_tree(&it.1).1 == tree);
            let named: Vec<String> = told()
                .map(|(hash, subject)| {
                    let (subject, tree) = apart_from_tree(subject);
                    let tree = if same { "" } else { tree };
                    format!("{} {}{tree}", clip(hash, SHORT).0, clip(subject, SUBJECT).0)
                })
                .collect();
            let tree = if same { tree } else { "" };
            let more = own - named.len();
            let more = if more > 0 { format!("; and {more} older") } else { String::new() };
            let mut notes = Vec::new();
            if let Some(at) = self.at.map(origin) {
                notes.push(format!("git log: #{at}"));
                notes.extend((self.since > 0).then(|| format!("plus {} made here since", self.since)));
            }
            notes.extend(
                (self.unprinted > 0).then(|| format!("{} newer that git did not print", self.unprinted)),
            );
            let at = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
            out.push(format!("{COMMITS}{at}{tree}: {}{more}", named.join("; ")));
        }
        if let Some((at, hash, subject)) = &self.of_prompt {
            out.push(format!(
                "something else commits here as well, naming commits after prompts: {} {} (#{})",
                clip(hash, SHORT).0,
                clip(subject, SUBJECT).0,
                origin(*at)
            ));
        }
        out.extend(
            self.claimed.iter().map(|(at, said)| format!("reported by the model: {said} (#{})", origin(*at))),
        );
        out
    }
}

/// Begins the suffix of a subject that names the other worktree or repository of the commit.
const IN_TREE: &str = " (in the tree ";

/// Splits the worktree suffix, which may be empty, from a subject.
fn apart_from_tree(subject: &str) -> (&str, &str) {
    let at = subject.rfind(IN_TREE).filter(|_| subject.ends_with(')'));
    at.map_or((subject, ""), |at| subject.split_at(at))
}

/// The commits of the current branch that a command lists, newest first, and whether they are only those of a
/// range. `None` if it lists others: of another branch, of a file, or by a search.
pub(in crate::facts) fn of_head(
    command: &ParsedCommand,
    output: &str,
) -> Option<(bool, Vec<(String, String)>)> {
    let mut range = None;
    // `$(git merge-base main HEAD)..HEAD`, which the parser splits into programs.
    let forked = command.programs().any(|it| it[0] == "..HEAD")
        && command.programs().any(|it| git_args(&it).is_some_and(|it| it.first() == Some(&"merge-base")));
    // Whether the pipe that began with `git log` still continues.
    let mut piped = false;
    for (words, is_piped) in command.pipes() {
        piped &= is_piped;
        let ["log", rest @ ..] = git_args(&words).unwrap_or_default() else {
            let filters = greps(words[0]) || ["tail", "awk", "sed", "sort", "cut"].contains(&words[0]);
            let other = matches!(words[..], ["git", "blame" | "reflog" | "show" | "rev-list", ..]);
            if piped && filters || other {
                return None;
            }
            continue;
        };
        piped = true;
        if range.is_some() {
            return None;
        }
        range = Some(match rest {
            [rest @ .., "$"] if forked => range_to_head(rest).map(|_| true)?,
            rest => range_to_head(rest)?,
        });
    }
    let found = |it: &AsciiFirstRegex| -> Vec<(String, String)> {
        it.captures_iter(output)
            .filter_map(|it| Some((it.get(1)?.as_str().to_owned(), it.get(2)?.as_str().trim().to_owned())))
            .collect()
    };
    let listed = Some(found(&ONE_LINE)).filter(|it| !it.is_empty()).unwrap_or_else(|| found(&LONG));
    range.filter(|_| !listed.is_empty()).map(|it| (it, listed))
}

/// Whether a command of git leaves the newest commit unknown: it switches to another one, rebases or resets.
fn moves_head(words: &[&str]) -> bool {
    match git_args(words) {
        Some(["rebase" | "reset", ..]) => !words.contains(&"HEAD"),
        Some(["checkout" | "switch", rest @ ..]) if !rest.contains(&"--") => {
            let named: Vec<&&str> = rest.iter().filter(|it| !it.starts_with('-')).collect();
            let new = rest.iter().any(|it| ["-b", "-c", "-B", "-C"].contains(it));
            // A new branch starts at the current commit, unless a start point is given.
            if new { named.len() > 1 && *named[1] != "HEAD" } else { rest.len() == 1 }
        }
        _ => false,
    }
}

/// Whether the arguments of `git log` name a range that ends with the current commit; `None` if they ask for
/// anything but the current branch.
fn range_to_head(arguments: &[&str]) -> Option<bool> {
    const OTHERS: [&str; 9] = [
        "--all",
        "--branches",
        "--remotes",
        "--grep",
        "--author",
        "--reverse",
        "--walk-reflogs",
        "--merges",
        "--tags",
    ];
    let mut range = false;
    for word in arguments {
        if let Some(flag) = word.strip_prefix('-') {
            let other = OTHERS.iter().any(|it| word.starts_with(it));
            if other || *word == "--" || flag.starts_with(['S', 'G', 'g', 'L']) {
                return None;
            }
        } else if word.parse::<u32>().is_ok() || *word == "HEAD" {
        } else if word.split_once("..").is_some_and(|it| it.1.is_empty() || it.1 == "HEAD") {
            range = true;
        } else if !word.contains(['%', ' ']) {
            return None;
        }
    }
    Some(range)
}
