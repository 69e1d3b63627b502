//! The exit code that an output states.

use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::work::command::ParsedCommand;

static EXIT: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r#"(?im)(?:^\s*|[\[(<. "])(?:process exited with code|command exited with code|exit code|exit_code|exited with code"#,
    r#"|exit status|returncode|return code|completed with exit code|finished with exit code)[":>=\s]*\(?(-?\d{1,5})\b"#,
));
/// An exit code that a command prints itself: `EXIT: 2`, `exit=0`, `rc=1`.
static PRINTED_EXIT: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?im)^\W*(?:[\w-]+[ _-])?(?:(?:exit(?:[ _]?(?:code|status))?|rc|status)\s*[:=]\s*(-?\d{1,3})\s*\W*$|(?:exit|rc)=(-?\d{1,3}) )",
);

/// Whether a line states an exit code.
pub(in crate::facts::work) fn is_stated(line: &str) -> bool {
    EXIT.is_match(line) || PRINTED_EXIT.is_match(line)
}

/// Finds the exit code in the first or last lines; elsewhere it may be quoted. `within`: also in the middle
/// of a line, where the output of a successful command would only mention one.
pub(super) fn reported(head: &str, tail: &str, within: bool) -> Option<i32> {
    let code = |line: &str| {
        let found = EXIT.captures(line)?;
        // Codex's code mode prints the shell's report as JSON, Claude Code the task's state as XML.
        let starts = found.get(0)?.start() == 0 || line.starts_with('<') || line.starts_with("{\"chunk_id\"");
        found.get(1).filter(|_| within || starts)?.as_str().parse().ok()
    };
    // Codex may print the whole command, of several lines, before its report.
    let report = head.strip_prefix("Command: ").and_then(|it| it.split_once("\nChunk ID: "));
    let head = report.map_or(head, |it| it.1);
    let (first, last) = (head.lines().take(6).find_map(code), tail.lines().rev().take(6).find_map(code));
    // A script in Codex's code mode prints last the result that it waited for.
    if head.starts_with("Script completed\n") { last.or(first) } else { first.or(last) }
}

/// The exit codes that a command prints itself: `make | tail; echo "EXIT: ${PIPESTATUS[0]}"`.
pub(super) struct Echoed {
    /// The first nonzero code, else 0; `None` if none was printed.
    pub(super) code: Option<i32>,
    /// Several programs are compared, which need not all succeed.
    pub(super) compares: bool,
}

impl Echoed {
    pub(super) fn of(command: &str, parsed: &ParsedCommand, tail: &str) -> Self {
        let code = |line: &str| {
            let found = PRINTED_EXIT.captures(line)?;
            found.get(1).or(found.get(2))?.as_str().parse().ok()
        };
        let prints = command.contains("$?") || command.contains("PIPESTATUS");
        let codes: Vec<i32> = tail.lines().filter(|_| prints).filter_map(code).collect();
        let code = codes.iter().copied().find(|it| *it != 0).or_else(|| codes.last().copied());
        Self { code, compares: codes.contains(&0) && code != Some(0) && !parsed.is_setup() }
    }
}
