//! Inline scripts in a command line.

use std::collections::HashSet;

use super::{ParsedCommand, program_is_read_only, step};
use crate::facts::work::paths::file_name;

/// The significant words of an inline script, if the command does nothing but run it (and read): such a
/// script looks something up, or tries something out.
pub(in crate::facts) fn inline_script_words(command: &str) -> Option<HashSet<&str>> {
    const INTERPRETERS: [&str; 8] = ["python", "node", "ruby", "perl", "deno", "bun", "php", "tsx"];
    const SCRIPT_FLAGS: [&str; 7] = ["-c", "-e", "-p", "-pe", "-", "--eval", "--print"];
    /// Words that say nothing about its subject.
    const COMMON: [&str; 14] = [
        "import", "from", "print", "console", "require", "const", "with", "open", "await", "async", "None",
        "True", "False", "json",
    ];
    let parsed = ParsedCommand::of(command);
    let is_script = |it: &Vec<&str>| {
        let plain = |it: &str| {
            let name = file_name(it);
            INTERPRETERS.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
        };
        it.iter().take(5).position(|it| plain(it)).is_some_and(|at| {
            let given = &it[at + 1..];
            given.iter().any(|it| SCRIPT_FLAGS.contains(it)) || parsed.has_here_document && given.is_empty()
        })
    };
    let idle = |it: Vec<&str>| {
        program_is_read_only(&it)
            || is_script(&it)
            || step(it).is_none_or(|it| matches!(it[0], "source" | "."))
    };
    if !parsed.programs().any(|it| is_script(&it)) || !parsed.programs().all(idle) {
        return None;
    }
    // Without the leading comment, which states the purpose.
    let script = command.strip_prefix("# ").and_then(|it| it.split_once('\n')).map_or(command, |it| it.1);
    let words = script.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    Some(words.filter(|it| it.chars().count() > 3 && !COMMON.contains(it)).collect())
}
