//! What a command prints: files and their contents, lists of paths, counts, and what does not exist.

use super::{ParsedCommand, greps};
use crate::facts::work::paths::{file_name, is_absolute, is_at_or_below, path};
use history::tools::{Action, Joint, Program};

/// Programs that list files.
const LISTS: [&str; 4] = ["find", "fd", "ls", "tree"];

impl ParsedCommand {
    /// Whether it prints files, logs or pages: errors in its output may be their content.
    pub(in crate::facts) fn prints_contents(&self) -> bool {
        self.programs().any(|words| {
            let head = file_name(words[0]);
            // In a pipe, `head` and the like print the output of the command before.
            let named = words[1..].iter().any(|it| !it.starts_with('-') && it.parse::<u32>().is_err());
            match (head, words.get(1).copied()) {
                ("cat" | "nl" | "bat" | "less" | "head" | "tail", _) => named,
                (it, _) if greps(it) || it == "sed" => {
                    words[1..].iter().filter(|it| !it.starts_with('-')).count() > 1
                }
                ("ast-grep" | "sg" | "curl" | "strings" | "journalctl", _) => true,
                // With these options it prints no contents.
                ("git", Some("diff")) => {
                    let only = ["--check", "--quiet", "--stat", "--name-only", "--name-status"];
                    !words[2..].iter().any(|it| only.contains(it))
                }
                ("git", Some("show" | "log" | "blame" | "grep" | "cat-file")) => true,
                ("kubectl" | "docker" | "podman", Some("logs")) => true,
                ("gh", Some("api")) => true,
                ("gh", Some(_)) => matches!(words.get(2), Some(&("view" | "diff"))),
                ("xargs", _) => words.iter().any(|it| ["cat", "sed", "head", "tail", "nl"].contains(it)),
                ("Get-Content", _) => true,
                _ => false,
            }
        })
    }

    /// Whether an output line only reports as missing what an earlier program removed: `rm x; ls x`.
    pub(in crate::facts) fn says_what_it_removed(&self, line: &str) -> bool {
        const MISSING: [&str; 3] = ["No such file", "cannot access", "does not exist"];
        let Some((says, what)) = line.split_once(": ").filter(|_| MISSING.iter().any(|it| line.contains(it)))
        else {
            return false;
        };
        let mut removed: Vec<&str> = Vec::new();
        for words in self.programs() {
            let [head, ref rest @ ..] = words[..] else { continue };
            if file_name(head) == file_name(says) && !["rm", "rmdir", "mv", "git"].contains(&head) {
                let plain = |it: &str| it.trim_start_matches("./").trim_end_matches('/').to_owned();
                let names = |word: &str| {
                    let gone = |it: &&str| is_at_or_below(&plain(word), &plain(it));
                    removed.iter().any(gone)
                };
                return what
                    .split(|c: char| c.is_whitespace() || "'\"`‘’:".contains(c))
                    .filter(|it| !it.is_empty())
                    .any(names);
            }
            let taken = match (head, rest) {
                ("rm" | "rmdir" | "unlink", rest) | ("git", ["rm", rest @ ..]) => rest,
                ("mv", [from, _]) | ("git", ["mv", from, _]) => std::slice::from_ref(from),
                _ => &[],
            };
            removed.extend(taken.iter().filter(|it| !it.starts_with('-')));
        }
        false
    }

    /// Whether its last program prints a count: `wc -l`, `grep -c`, `--count`.
    pub(in crate::facts) fn ends_in_count(&self) -> bool {
        let short = |it: &str| it.starts_with('-') && !it.starts_with("--") && it.contains('c');
        self.programs().last().is_some_and(|words| match file_name(words[0]) {
            "wc" => true,
            it if greps(it) => words.iter().any(|it| short(it) || *it == "--count"),
            _ => words.contains(&"--count"),
        })
    }

    /// Files and directories that it searches or lists, relative to where it begins: arguments with a slash.
    pub(in crate::facts) fn searched_paths(&self) -> Vec<String> {
        let plain = |it: &&str| {
            it.contains('/')
                && it.starts_with(|c: char| c.is_ascii_alphanumeric() || "./~_@".contains(c))
                && it.chars().all(|c| c.is_alphanumeric() || "/._-@+~".contains(c))
                && !it.starts_with("/dev/")
                && it.len() >= 5
        };
        let searches = self.programs_with_dirs().filter(|it| greps(it.0[0]) || LISTS.contains(&it.0[0]));
        let below = |(words, dir): (Vec<&str>, Option<&str>)| -> Vec<String> {
            let named = words[1..].iter().filter(|it| plain(it)).map(|it| it.trim_end_matches('/'));
            let place = |it: &str| match dir {
                Some(dir) if !is_absolute(it) => format!("{dir}/{it}"),
                _ => it.to_owned(),
            };
            named.map(place).collect()
        };
        searches.flat_map(below).filter(|it| !it.contains('$')).collect()
    }

    /// Whether it prints nothing but the files that it names: `git diff` or `rg` would print parts of others.
    pub(in crate::facts) fn prints_files_only(&self) -> bool {
        const PRINTERS: [&str; 14] = [
            "cat", "sed", "head", "tail", "nl", "awk", "less", "bat", "cd", "echo", "printf", "pwd", "wc",
            "true",
        ];
        self.programs().all(|it| it.first().is_some_and(|it| PRINTERS.contains(it)))
    }

    /// The directory that the printed paths are relative to; `Some(None)` is where the command begins. `None`
    /// if some of the output comes from elsewhere.
    pub(in crate::facts) fn printed_from(&self) -> Option<Option<String>> {
        /// Programs that print no paths of their own.
        const PASSES: [&str; 12] =
            ["cd", "echo", "printf", "true", "pwd", "head", "tail", "sort", "uniq", "wc", "pushd", "popd"];
        let mut places = Vec::new();
        for (words, dir) in self.programs_with_dirs() {
            match words[..] {
                ["git", "grep" | "ls-files" | "status", ..] => places.push(dir),
                [head, ..] if greps(file_name(head)) || LISTS.contains(&file_name(head)) => places.push(dir),
                [head, ..] if PASSES.contains(&head) => {}
                _ => return None,
            }
        }
        places.dedup();
        let [one] = places[..] else { return None };
        Some(one.map(str::to_owned))
    }

    /// The arguments that do not exist, as the output shows: `a` of `cat a || echo none`.
    pub(in crate::facts) fn missing_arguments<'a>(&'a self, output: &str) -> Vec<&'a str> {
        let instead = |it: &Program| {
            let told = it.words[1..].join(" ");
            let echoes = it.joint == Joint::Or && it.words[0] == "echo" && !told.contains('$');
            echoes.then_some(told).filter(|it| it.contains(char::is_alphanumeric))
        };
        let all: Vec<String> = self.programs.iter().filter_map(instead).collect();
        let printed = |told: &str| output.lines().filter(|it| it.trim() == told.trim()).count();
        // If several programs print the same text, all must have printed it.
        let failed = |told: &String| printed(told) >= all.iter().filter(|it| *it == told).count();
        let pairs = self.programs.windows(2).filter(|it| instead(&it[1]).is_some_and(|it| failed(&it)));
        let given =
            pairs.map(|it| it[0].words[1..].iter().map(String::as_str).filter(|it| !it.starts_with('-')));
        // `nl: src/a.rs: No such file or directory`
        let refused = |program: &Program, word: &String| {
            let head = format!("{}: ", program.words[0]);
            let mut lines = output.lines().filter_map(|it| it.strip_prefix(&head));
            lines.any(|it| it.contains(word.as_str()) && it.ends_with(": No such file or directory"))
        };
        // `fatal: path 'src/a.rs' does not exist in 'HEAD'`
        let not_in_revision = |word: &&str| {
            let quoted = format!("'{word}'");
            output.lines().any(|it| it.contains("fatal: ") && it.contains(&quoted))
        };
        let of_git = self.programs.iter().filter(|it| it.words[0] == "git").flat_map(|it| &it.words);
        let revised = of_git.filter_map(|it| Some(it.split_once(':')?.1)).filter(not_in_revision);
        let words = self.programs.iter().flat_map(|it| it.words.iter().skip(1).map(move |word| (it, word)));
        let refused = words.filter(|(program, word)| refused(program, word)).map(|it| it.1.as_str());
        // Of several files, some may exist.
        given.filter(|it| it.clone().count() == 1).flatten().chain(refused).chain(revised).collect()
    }
}

/// What the paths that a call prints are relative to, if certain; `Some(None)` is the working directory.
pub(in crate::facts) fn output_directory(actions: &[Action], base: Option<&str>) -> Option<Option<String>> {
    let dir = actions.first().and_then(|it| it.dir.as_deref());
    let mut commands = actions.iter().filter_map(|it| it.command.as_deref()).map(ParsedCommand::of);
    let Some(command) = commands.next() else { return Some(dir.map(str::to_owned)) };
    if commands.next().is_some() {
        return None;
    }
    if command.prints_from_root() {
        return Some(None);
    }
    if let Some(at) = command.printed_from() {
        return Some(at.map(|it| path(&it, dir, base)).or(dir.map(str::to_owned)));
    }
    // All programs ran in one directory outside of the working directory.
    let mut places = command.programs_with_dirs().filter(|it| !["cd", "}"].contains(&it.0[0])).map(|it| it.1);
    let place = places.next().flatten()?;
    let elsewhere = path(place, dir, base);
    (is_absolute(&elsewhere) && places.all(|it| it == Some(place))).then_some(Some(elsewhere))
}
