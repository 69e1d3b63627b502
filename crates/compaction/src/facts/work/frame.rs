//! The lines that Gemini CLI puts around what a command printed.

use std::borrow::Cow;

use history::Output;

/// Labels of the lines below what was printed.
const BELOW: [&str; 5] = ["Error: ", "Exit Code: ", "Signal: ", "Background PIDs: ", "Process Group PGID: "];

/// The output as the program printed it, with the exit code that the lines around it state.
pub(super) fn unframed(output: &Output) -> Cow<'_, Output> {
    let text = output.text.as_str();
    let above = text.strip_prefix("Command: ").and_then(|it| it.split_once("\nDirectory: "));
    let printed = match above {
        Some((_, rest)) => rest.split_once("\nOutput: ").map(|it| it.1),
        None => text.strip_prefix("Output: "),
    };
    let is_below = |it: &&str| BELOW.iter().any(|label| it.starts_with(label));
    let Some(printed) = printed.filter(|it| it.lines().next_back().is_some_and(|it| is_below(&it))) else {
        return Cow::Borrowed(output);
    };
    let mut lines: Vec<&str> = printed.lines().collect();
    let below = lines.iter().rposition(|it| !is_below(&it)).map_or(0, |it| it + 1);
    let stated: Vec<&str> = lines.split_off(below);
    if lines == ["(empty)"] {
        lines.clear();
    }
    let exit = stated.iter().find_map(|it| it.strip_prefix("Exit Code: ")?.parse().ok());
    lines.extend(stated.into_iter().filter(|it| it.starts_with("Error: ") && !it.ends_with("(none)")));
    let text = lines.join("\n").into();
    Cow::Owned(Output { text, ends: [].into(), exit: output.exit.or(exit), ..output.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_printed_is_told_from_the_lines_around_it() {
        let read = |text: &str| {
            let output = Output::new("a", text);
            let unframed = unframed(&output);
            (unframed.text.as_str().to_owned(), unframed.exit)
        };
        let rest = "Signal: (none)\nBackground PIDs: (none)\nProcess Group PGID: 7";
        for (text, expected, exit) in [
            (
                format!(
                    "Command: a\nb\nDirectory: (root)\nOutput: [main 1a2b3c4] x\n 1 file\nError: (none)\nExit Code: 0\n{rest}"
                ),
                "[main 1a2b3c4] x\n 1 file",
                Some(0),
            ),
            (
                format!(
                    "Command: a\nDirectory: src\nOutput: (empty)\nError: spawn a ENOENT\nExit Code: (none)\n{rest}"
                ),
                "Error: spawn a ENOENT",
                None,
            ),
            ("Output: no\nExit Code: 3\nProcess Group PGID: 7".to_owned(), "no", Some(3)),
            ("Output: (empty)\nProcess Group PGID: 7".to_owned(), "", None),
            ("Output: as it is".to_owned(), "Output: as it is", None),
        ] {
            assert_eq!(read(&text), (expected.to_owned(), exit), "{text}");
        }
    }
}
