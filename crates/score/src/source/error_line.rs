//! The line of an output that says what went wrong.

use crate::program_words;
use crate::text::{clip, normal};

/// A text without terminal color codes.
pub(crate) fn plain(text: &str) -> std::borrow::Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return text.into();
    }
    let mut parts = text.split('\u{1b}');
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).map_or(0, |it| it + 1);
        out.push_str(if part.starts_with('[') { &part[end..] } else { part });
    }
    out.into()
}

/// A line without the label that Gemini CLI puts before the first one.
pub(crate) fn printed(line: &str) -> &str {
    line.strip_prefix("Output: ").unwrap_or(line)
}

/// The most telling error line of an output, in normal form.
pub(crate) fn signature(text: &str) -> Option<String> {
    let text = &*plain(text);
    // What older versions of Codex put before what a command in the sandbox printed.
    let framed = text.strip_prefix("failed in sandbox ").and_then(|it| it.split_once(", stdout: "));
    let text = framed.map_or(text, |it| it.1.strip_prefix(", stderr: ").unwrap_or(it.1));
    let mut best: Option<(u8, &str)> = None;
    let printed = text.lines().take(4_000).map(|it| printed(it.trim()));
    let mut lines = printed.filter(|it| *it != "Error: (none)");
    while let Some(line) = lines.next() {
        // Biome marks the severity below the position: `×` is an error, `!` and `i` are not.
        let warns =
            || lines.clone().find(|it| !it.is_empty()).is_some_and(|it| it.starts_with(['!', 'i', 'ℹ']));
        let ignored = line.len() > 1_000 || line.ends_with("━━━") && warns();
        let strength = if ignored { 0 } else { strength(line) };
        if strength > best.map_or(0, |it| it.0) {
            best = Some((strength, line));
        }
    }
    best.map(|(_, line)| {
        // Biome's horizontal rule is not part of the message.
        let said = line.trim_end_matches('━').trim_end();
        let said = said.strip_prefix("at ").filter(|_| said.len() < line.len()).unwrap_or(said);
        normal(clip(said, 160))
    })
}

/// How certainly a line is an error: 0 not at all, 5 it names its kind.
pub(crate) fn strength(line: &str) -> u8 {
    let first = line.split_whitespace().next().unwrap_or_default();
    let kind = first.trim_end_matches(':');
    let named = first.ends_with(':')
        && (kind.ends_with("Error") || kind.ends_with("Exception"))
        && kind.len() > 5
        && kind.chars().all(|c| c.is_alphanumeric() || c == '.' || c == '_');
    let placed = placed_message(line);
    // Source code quoted with its line number is not a message, nor is what PowerShell prints below one.
    let below = ["+ CategoryInfo ", "+ FullyQualifiedErrorId "].iter().any(|it| line.starts_with(it));
    if below || line.split_once(" | ").is_some_and(|it| it.0.trim().parse::<u32>().is_ok()) {
        return 0;
    }
    // These only repeat that something above them failed, or announce hints below.
    if line.starts_with("error: failed to push some refs")
        || line.starts_with("error: script ") && line.contains(" exited with code ")
    {
        return 1;
    }
    // The name of a rule in a linter's warning may contain `error`.
    let warns = line.contains(": warning ");
    let starts = |cues: &[&str]| cues.iter().any(|it| line.starts_with(it));
    let holds = |cues: &[&str]| cues.iter().any(|it| line.contains(it));
    let lower = line.to_lowercase();
    if named || line.starts_with("--- FAIL") || holds(program_words::ERROR_NUMBERS) {
        5
    } else if starts(program_words::FAILURES) || placed && !warns && lower.contains("error") {
        4
    } else if placed
        || starts(program_words::ERROR_LABELS)
        || line.starts_with("Error ") && line.contains(": ")
        || holds(&["━━━", "Error: "])
    {
        3
    } else if holds(program_words::REFUSALS) || lower.contains("no such file or directory") {
        2
    } else {
        0
    }
}

/// Whether a line labels itself as an error: what a read-only command finds may only look like one.
pub(crate) fn says_error(line: &str) -> bool {
    ["fatal:", "error:", "Error:", "Error ", "ERROR:"].iter().any(|it| line.starts_with(it))
}

/// `path:line:column: message`, as compilers and linters write.
fn placed_message(line: &str) -> bool {
    let mut fields = line.splitn(4, ':');
    let (path, number, column) = (fields.next(), fields.next(), fields.next());
    let digits = |it: Option<&str>| {
        it.is_some_and(|it| !it.is_empty() && it.trim().chars().all(|c| c.is_ascii_digit()))
    };
    path.is_some_and(|it| it.contains('.') && !it.contains(' ') && it.len() > 2)
        && digits(number)
        && digits(column)
        && fields.next().is_some_and(|it| it.trim().len() > 3)
}

#[cfg(test)]
mod tests {
    use super::signature;

    #[test]
    fn takes_the_line_that_names_what_went_wrong() {
        for (text, expected) in [
            (
                "error: script \"test\" exited with code 1\n(fail) adds two numbers",
                Some("(fail) adds two numbers"),
            ),
            ("186 |     throw new TypeError: x\nerror: no such export", Some("error: no such export")),
            ("186 |     throw Error: x", None),
            (
                " ! [rejected] main -> main (fetch first)\nerror: failed to push some refs to 'x'",
                Some("! [rejected] main -> main (fetch first)"),
            ),
            ("Output: error: no\nError: (none)\nExit Code: 3", Some("error: no")),
            ("at ./a.json format ━━━━━", Some("./a.json format")),
            (
                "a.ts:1:2 lint/x ━━━━━\n\n  ! Avoid it.\n\nb.ts:3:4 lint/y ━━━━━\n\n  × Forbidden.",
                Some("b.ts:3:4 lint/y"),
            ),
        ] {
            assert_eq!(signature(text).as_deref(), expected, "{text}");
        }
    }
}
