//! What a script inside a command is for: on one line, its own code says little.

use crate::facts::text::ascii_first::AsciiFirstRegex;

/// The first line of a command with a script: an interpreter with a here-document or an open quotation.
static OPENS: AsciiFirstRegex = AsciiFirstRegex::new(
    r#"(?:^|[\s/;&|(])(?:python[\d.]*|node|ruby|perl|bun|deno|php|bash|sh|zsh|psql|sqlite3)\b(?:[^\n]*<<|[^\n]*\s-\w*[ce]\s+\$?['"][^'"]*$)"#,
);
/// Lines with which scripts begin, and which do not tell their purpose.
static PREAMBLE: AsciiFirstRegex = AsciiFirstRegex::new(
    r"^(?:import |from \S+ import|use |using |require\b|(?:const|let|var) [^=]*= *(?:await import|require)\b|set -|['\x22]use strict|[^\w#/-]*$)",
);

/// The purpose of a command of several lines: the comment that heads it. Of the script that begins in `line`:
/// the comment in front of it, its own first comment, or its first line that does something.
pub(super) fn purpose<'a>(command: &'a str, line: &str) -> Option<&'a str> {
    let comment = |it: &'a str| {
        let said = it.strip_prefix("# ").or_else(|| it.strip_prefix("// "))?.trim();
        (said.split_whitespace().count() > 1).then_some(said)
    };
    if !OPENS.is_match(line) {
        return command.lines().next().filter(|_| command.lines().count() > 3).and_then(comment);
    }
    let (before, body) = command.split_once(line)?;
    let lines = || body.lines().map(str::trim).filter(|it| !it.is_empty());
    let said = before.lines().rev().find_map(|it| comment(it.trim()));
    let said = said.or_else(|| lines().take(6).find_map(comment));
    said.or_else(|| lines().find(|it| !PREAMBLE.is_match(it)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_what_a_script_is_for() {
        for (command, expected) in [
            (
                "python3 - <<'E'\nimport json\n# Count the empty rows\nprint(1)\nE",
                Some("Count the empty rows"),
            ),
            ("# Count rows\npython3 - <<'E'\nprint(1)\nE", Some("Count rows")),
            ("node -e '\nconst a = require(\"a\");\na.run();\n'", Some("a.run();")),
            ("cat > x <<'E'\n# Some title\nE", None),
            ("node -e 'run()'", None),
            ("make\n# Not for make", None),
            (
                "# Find the unpushed branches\nfor p in a b\ndo\ngit -C $p fetch\ndone",
                Some("Find the unpushed branches"),
            ),
        ] {
            let line = command.lines().find(|it| !it.starts_with('#')).unwrap();
            assert_eq!(purpose(command, line), expected, "{command}");
        }
    }
}
