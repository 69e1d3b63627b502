//! The lines that Gemini CLI puts around what a command printed.

use std::borrow::Cow;

use history::Output;

/// Labels of the lines below what was printed, from the last one up.
const BELOW: [&str; 5] = ["Process Group PGID: ", "Background PIDs: ", "Signal: ", "Exit Code: ", "Error: "];

/// The output as the program printed it, with the exit code that the lines around it state.
pub(in crate::facts::work) fn unframed(output: &Output) -> Cow<'_, Output> {
    let text = output.text.as_str();
    let above = text.strip_prefix("Command: ").and_then(|it| it.split_once("\nDirectory: "));
    let printed = match above {
        Some((_, rest)) => rest.split_once("\nOutput: ").map(|it| it.1),
        None => text.strip_prefix("Output: "),
    };
    let mut lines: Vec<&str> = printed.map_or(Vec::new(), |it| it.lines().collect());
    let stated = BELOW.map(|label| {
        let value = lines.last()?.strip_prefix(label)?;
        lines.pop();
        (value != "(none)").then_some(value)
    });
    let [Some(_), _, signal, code, error] = stated else { return Cow::Borrowed(output) };
    if lines == ["(empty)"] {
        lines.clear();
    }
    let error = error.map(|it| format!("Error: {it}"));
    lines.extend(error.as_deref());
    // Newer versions state only codes other than 0.
    let exit = match code {
        Some(code) => code.parse().ok(),
        None => (above.is_none() && error.is_none()).then_some(0),
    };
    let killed = signal.is_some_and(|it| it != "0");
    let text = lines.join("\n").into();
    let (exit, failed) = (output.exit.or(exit), output.failed || killed);
    Cow::Owned(Output { text, ends: [].into(), exit, failed, ..output.clone() })
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
            (
                "Output: Signal: green\nExit Code: 2\nExit Code: 3\nProcess Group PGID: 7".to_owned(),
                "Signal: green\nExit Code: 2",
                Some(3),
            ),
            ("Output: (empty)\nProcess Group PGID: 7".to_owned(), "", Some(0)),
            ("Output: as it is".to_owned(), "Output: as it is", None),
        ] {
            assert_eq!(read(&text), (expected.to_owned(), exit), "{text}");
        }
    }
}
