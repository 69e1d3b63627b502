//! Which lines of the output of its programs a command's filters let through.

use super::{ParsedCommand, greps};
use crate::facts::work::paths::file_name;
use regex::RegexBuilder;

impl ParsedCommand {
    /// Whether the output, of `lines` lines, is all that the programs printed: no filter can have dropped
    /// lines. `through`: whether a search with these words lets all relevant lines through.
    pub(in crate::facts::work) fn shows_all(&self, lines: usize, through: impl Fn(&[&str]) -> bool) -> bool {
        self.programs().all(|words| passes_all(&words, lines, &through))
    }

    /// Whether no filter can have dropped any of the `lines` lines that `program` printed.
    pub(in crate::facts::work) fn shows_all_of(&self, program: &[&str], lines: usize) -> bool {
        let after = self.pipes().skip_while(|it| it.0 != program).skip(1);
        after.take_while(|it| it.1).all(|it| passes_all(&it.0, lines, &|_: &[&str]| false))
    }

    /// Whether `head` at its end may have cut off how a build or test ended. Of a preview, the number of lines is unknown.
    pub(in crate::facts::work) fn cuts_off_the_end(&self, output: &str) -> bool {
        let last = self.programs().last().filter(|words| self.ends_in_viewer() && words[0] == "head");
        let full =
            |words: &[&str]| output.starts_with(PREVIEW) || output.lines().count() >= most_lines(words);
        last.is_some_and(|words| self.is_setup() && full(&words))
    }
}

/// Whether a program prints all lines that it reads, if its output has `lines` of them.
fn passes_all(words: &[&str], lines: usize, through: &impl Fn(&[&str]) -> bool) -> bool {
    const FILTERS: [&str; 8] = ["wc", "awk", "sed", "cut", "Select-String", "xargs", "findstr", "jq"];
    match file_name(words[0]) {
        "head" | "tail" => lines < most_lines(words),
        it if greps(it) => through(words),
        other => !FILTERS.contains(&other),
    }
}

/// Prefix of the first lines of an output that the client saved to a file (Claude Code 2.1).
const PREVIEW: &str = "<persisted-output>\n";

/// The lines that `head` or `tail` prints at most.
fn most_lines(words: &[&str]) -> usize {
    let given = words.iter().find_map(|it| it.trim_start_matches(['-', 'n']).parse().ok());
    given.unwrap_or(10)
}

/// Whether a search lets through a line that it reads from a pipe; false if that is unclear.
pub(in crate::facts::work) fn lets_through(words: &[&str], line: &str) -> bool {
    /// Maximum bytes of the compiled pattern.
    const LARGEST: usize = 1 << 16;
    let (flags, given): (Vec<&str>, Vec<&str>) = words[1..].iter().partition(|it| it.starts_with('-'));
    let has = |flag: char| flags.iter().any(|it| it.contains(flag));
    let plain = |it: &&str| it[1..].chars().all(|it| "Eivn".contains(it));
    let [pattern] = given[..] else { return false };
    // Basic regular expressions write alternation as `\|`.
    let pattern =
        if file_name(words[0]) == "grep" { pattern.replace("\\|", "|") } else { pattern.to_owned() };
    let built = RegexBuilder::new(&pattern).case_insensitive(has('i')).size_limit(LARGEST).build();
    flags.iter().all(plain) && built.is_ok_and(|it| it.is_match(line) != has('v'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_what_a_search_lets_through() {
        let line = "src/a.ts(3,1): error TS1005: ',' expected.";
        for (words, expected) in [
            (&["grep", "error TS"][..], true),
            (&["grep", "b.ts\\|a.ts"], true),
            (&["rg", "-v", "TS2307|TS5024"], true),
            (&["rg", "-v", "TS1005"], false),
            (&["grep", "-ci", "ERROR"], false),
            (&["grep", "error", "log.txt"], false),
            (&["grep", "b.ts"], false),
            (&["rg", "("], false),
        ] {
            assert_eq!(lets_through(words, line), expected, "{words:?}");
        }
        let shows = |it: &str, lines| ParsedCommand::of(it).shows_all(lines, |_| true);
        assert!(shows("tsc | grep error | head -20", 19) && !shows("tsc | head -20", 20));
        assert!(!shows("tsc | wc -l", 1));
        let shows = |it: &str| ParsedCommand::of(it).shows_all_of(&["git", "status", "-s"], 3);
        assert!(shows("nl a.rs | sed -n 1,9p; git status -s") && shows("git status -s; git log | head -1"));
        assert!(!shows("git status -s | sed -n 1,2p") && !shows("ls; git status -s | head -3"));
        let cuts = |it: &str| ParsedCommand::of(it).cuts_off_the_end("a\nb\nc\n");
        let preview = "<persisted-output>\nOutput too large (49.4KB). Full output saved to: /tmp/a.txt\n";
        assert!(
            ParsedCommand::of("xcodebuild build | grep -E 'error:|BUILD' | head -30")
                .cuts_off_the_end(preview)
        );
        assert!(cuts("npm test 2>&1 | head -3") && cuts("cd a && cargo build | head -n 2"));
        assert!(!cuts("npm test | head -4") && !cuts("npm test | tail -3") && !cuts("ls | head -3"));
    }
}
