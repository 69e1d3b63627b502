//! What a caller can do, as arguments of the tools.

use history::error::Hint;

/// How the tools say it.
pub(in crate::mcp) fn hint_words(hint: Hint) -> String {
    match hint {
        Hint::WriteCopy => r#"write the result with "to": "file""#.to_owned(),
        Hint::RestoreCopy => "read the original with recall".to_owned(),
        Hint::WriteMessages => r#"use "to": "file", which writes plain messages"#.to_owned(),
        Hint::NameFormat => "if you know the format, pass it with `format`".to_owned(),
        Hint::GiveWindow => "pass `window` in tokens, or the `model`".to_owned(),
        // No tool takes the next prompt.
        Hint::GiveNext => String::new(),
        Hint::SkipOutput => "leave that output out (`only`)".to_owned(),
        Hint::AllScopes => r#"use "scope": "all""#.to_owned(),
        Hint::RaiseBudget { tokens } => format!("a `budget` of {tokens} would keep it"),
    }
}
