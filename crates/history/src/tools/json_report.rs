//! The JSON in which older versions of Codex (up to 0.46) report a shell command:
//! `{"output":"…","metadata":{"exit_code":0,"duration_seconds":0.1}}`.

use serde::Deserialize;

use crate::{Output, Text};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Report {
    output: String,
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    exit_code: i32,
    #[serde(rename = "duration_seconds")]
    _duration: f64,
}

pub(super) fn is_report(output: &Output) -> bool {
    let text = output.text.as_str();
    (text.starts_with("{\"output\":") || text.starts_with("{\"metadata\":")) && text.ends_with('}')
}

/// What the command printed, with its exit code; any other output as it is.
pub(super) fn unwrapped(output: Output) -> Output {
    if !is_report(&output) {
        return output;
    }
    let Ok(report) = serde_json::from_str::<Report>(output.text.as_str()) else { return output };
    let printed = report.output.strip_prefix("Total output lines: ").and_then(|it| it.split_once("\n\n"));
    let printed = printed.map_or(report.output.as_str(), |it| it.1);
    Output { text: Text::new(printed), ends: Box::default(), exit: Some(report.metadata.exit_code), ..output }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_the_output_out_of_its_report() {
        for (text, printed, exit) in [
            (r#"{"output":"a\nb\n","metadata":{"exit_code":2,"duration_seconds":0.1}}"#, "a\nb\n", Some(2)),
            (
                r#"{"metadata":{"exit_code":0,"duration_seconds":1.0},"output":"Total output lines: 9\n\na"}"#,
                "a",
                Some(0),
            ),
            (r#"{"output":"a"}"#, r#"{"output":"a"}"#, None),
            (
                r#"{"output":"a","metadata":{"exit_code":0}}"#,
                r#"{"output":"a","metadata":{"exit_code":0}}"#,
                None,
            ),
            ("plain", "plain", None),
        ] {
            let it = unwrapped(Output::new("1", text));
            assert_eq!((it.text.as_str(), it.exit), (printed, exit));
        }
    }
}
