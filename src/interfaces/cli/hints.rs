//! What a caller can do about an error, in terms of command line options.

use history::error::Hint;

pub fn hint_words(hint: Hint) -> String {
    match hint {
        Hint::WriteCopy => "write the result with --out".to_owned(),
        Hint::RestoreCopy => "restore the original with --out".to_owned(),
        Hint::WriteMessages => "use --as FORMAT".to_owned(),
        Hint::NameFormat => "if you know the format, pass it with --format".to_owned(),
        Hint::GiveWindow => "give it with --window".to_owned(),
        Hint::GiveNext => "prompt-size check skipped (pass --next)".to_owned(),
        Hint::SkipOutput => "leave that output out (--only)".to_owned(),
        Hint::AllScopes => "use --scope all".to_owned(),
        Hint::RaiseBudget { tokens } => format!("--budget {tokens} would keep it"),
    }
}
