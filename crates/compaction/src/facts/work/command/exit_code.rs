//! What the exit code of a command line says about the programs in it.

use super::{Operation, ParsedCommand, greps};
use history::tools::{Joint, Program};

fn name(program: &Program) -> &str {
    program.words.first().map_or("", String::as_str)
}

/// Whether a program filters text, so that its exit code says nothing about the program before it.
fn filters(program: &str) -> bool {
    const FILTERS: [&str; 10] =
        ["wc", "awk", "cut", "sort", "uniq", "sed", "jq", "Select-String", "sls", "findstr"];
    greps(program) || FILTERS.contains(&program)
}

/// Whether a program lets only the lines of its input through that match a pattern.
fn searches(program: &Program) -> bool {
    greps(name(program)) || ["Select-String", "sls", "findstr"].contains(&name(program))
}

/// Whether an option makes a search let through what does not match: `-v`, `-vi`.
fn inverts(word: &str) -> bool {
    let flags = word.starts_with('-') && !word.starts_with("--") && word.len() <= 4;
    flags && word.contains('v') || word == "--invert-match" || word == "-NotMatch"
}

/// Programs that print their input and always succeed.
const VIEWERS: [&str; 8] = ["cat", "cut", "head", "less", "sed", "tail", "tee", "tr"];

impl ParsedCommand {
    /// The words of each program, and whether its input is piped from the one before.
    pub(in crate::facts) fn pipes(&self) -> impl Iterator<Item = (Vec<&str>, bool)> {
        self.programs().zip(self.programs.iter().map(|it| it.joint == Joint::Pipe))
    }

    /// Whether it is a pipe or list, whose exit code may not be that of its main program.
    pub(in crate::facts) fn is_compound(&self) -> bool {
        self.programs.iter().skip(1).any(|it| matches!(it.joint, Joint::Then | Joint::Or | Joint::Pipe))
    }

    /// Whether the exit code does not show a failure within it: `make | grep error`, `make || true`.
    pub(in crate::facts) fn hides_failure(&self) -> bool {
        let piped = self.programs.iter().rev().find(|it| it.joint == Joint::Pipe);
        piped.is_some_and(|it| filters(name(it))) || self.programs.iter().any(|it| it.joint == Joint::Or)
    }

    /// Whether it only searches the output of a program: `alias | grep ls | head`.
    pub(in crate::facts) fn searches_output(&self) -> bool {
        const PREPARES: [&str; 5] = ["cd", "source", ".", "export", "set"];
        let prepares = |it: &Program| PREPARES.contains(&name(it)) || name(it).contains('=');
        let from = self.programs.iter().rposition(|it| it.joint != Joint::Pipe).unwrap_or(0);
        let (before, pipe) = self.programs.split_at(from);
        let finds = |it: &Program| {
            let is_quiet = |it: &str| it.starts_with('-') && !it.starts_with("--") && it.contains('q');
            greps(name(it)) && !it.words.iter().any(|it| inverts(it) || is_quiet(it))
        };
        let Some((_, filters)) = pipe.split_first() else { return false };
        before.iter().all(prepares)
            && filters.first().is_some_and(finds)
            && filters.iter().all(|it| finds(it) || VIEWERS.contains(&name(it)))
    }

    /// Whether a filter hides how a check ended: `make test | grep -A 5 failure | head`. If a search for a
    /// compiler's errors finds none, all is well, but tests may print failures in other words. `found`: the
    /// filter printed something.
    pub(in crate::facts) fn hides_check(&self, found: bool) -> bool {
        let mut piped = self.programs.iter().rev().take_while(|it| it.joint == Joint::Pipe).map(name);
        let filtered = piped.find(|it| !VIEWERS.contains(it)).is_some_and(filters);
        let tests = || {
            let names =
                |it: &Operation| it.name.contains("test") || it.targets.iter().any(|it| it.contains(":test"));
            self.operations().iter().any(names)
        };
        self.is_setup() && filtered && (found || tests())
    }

    /// Whether a search for errors in what a program printed found some: `a 2>&1 | grep -i error`.
    pub(in crate::facts) fn finds_errors(&self, output: &str) -> bool {
        let is_about_errors = |text: &str| {
            let lower = text.to_lowercase();
            ["error", "fail", "exception", "panic"].iter().any(|it| lower.contains(it))
        };
        let finds = |it: &Program| {
            let words = &it.words[1..];
            searches(it) && words.iter().any(|it| is_about_errors(it)) && !words.iter().any(|it| inverts(it))
        };
        let mut last_pipe = self.programs.iter().rev().take_while(|it| it.joint == Joint::Pipe);
        !self.is_read_only() && last_pipe.any(finds) && is_about_errors(output)
    }

    /// Whether its last program exits with 1 if it finds nothing or a difference, so that an exit code of 1
    /// may be its own: `make && grep x y`.
    pub(in crate::facts) fn exits_1_on_no_match(&self) -> bool {
        const LOOKS: [&str; 9] = ["ls", "diff", "cmp", "test", "[", "which", "command", "lsof", "pgrep"];
        self.programs.last().is_some_and(|it| greps(name(it)) || LOOKS.contains(&name(it)))
    }

    /// Whether it ends in a program that always succeeds, so that its exit code says nothing about what ran
    /// before: `make || true`, `make; exit 0`.
    pub(in crate::facts) fn masks_exit_code(&self) -> bool {
        let Some(last) = self.programs.get(1..).and_then(|it| it.last()) else { return false };
        match (last.joint, name(last)) {
            (Joint::Or, "echo" | "printf") => !self.has_here_document,
            (Joint::Or | Joint::Then, "true" | ":") => true,
            (Joint::Or | Joint::Then, "exit") => last.words.get(1).is_some_and(|it| it == "0"),
            _ => false,
        }
    }

    /// Whether it ends in a pipe to a program that prints its input and always succeeds.
    pub(in crate::facts) fn ends_in_viewer(&self) -> bool {
        self.programs.last().is_some_and(|it| it.joint == Joint::Pipe && VIEWERS.contains(&name(it)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_whose_exit_code_it_is() {
        // Expected: is compound, hides a failure, masks the exit code, ends in a viewer.
        for (command, expected) in [
            ("make", [false; 4]),
            ("make && make test", [false; 4]),
            ("rg 'a|b; c' src", [false; 4]),
            ("git commit -m \"$(cat <<'EOF'\na \"b | c\" || d\nEOF\n)\"", [false; 4]),
            ("make | grep -i error", [true, true, false, false]),
            ("make | grep 'a|b'", [true, true, false, false]),
            ("make | grep x; ls", [true, true, false, false]),
            ("make | tail -3", [true, false, false, true]),
            ("(make | tail -3)", [true, false, false, true]),
            ("make | tail -3 && ls", [true, false, false, false]),
            ("make || true", [true, true, true, false]),
            ("make || echo no", [true, true, true, false]),
            ("make || exit 1", [true, true, false, false]),
            ("make; exit 0", [true, false, true, false]),
            ("make\ntrue;", [true, false, true, false]),
            ("make; echo done", [true, false, false, false]),
            ("make && echo done", [false; 4]),
            ("echo a | make", [true, false, false, false]),
            ("true", [false; 4]),
        ] {
            let it = ParsedCommand::of(command);
            let found = [it.is_compound(), it.hides_failure(), it.masks_exit_code(), it.ends_in_viewer()];
            assert_eq!(found, expected, "{command}");
        }
    }
}
