//! `epitome schema`.

use crate::answers::{
    CompactAnswer, CompareAnswer, CostAnswer, EstimateAnswer, ExportAnswer, HandoffAnswer, HindsightAnswer,
    ImportAnswer, KeepAnswer, PruneAnswer, RepairAnswer, RestoreAnswer, ScoreAnswer, SplitAnswer,
};
use crate::engine::statusline::StatusLine;
use crate::interfaces::cli::Screen;
use clap::Args;
use history::error::{Error, ErrorKind, Result};
use schemars::Schema;
use serde_json::{Value, json};

/// The schema of each command's JSON document.
const SCHEMAS: [(&str, fn() -> Schema); 15] = [
    ("estimate", || schemars::schema_for!(EstimateAnswer)),
    ("cost", || schemars::schema_for!(CostAnswer)),
    ("split", || schemars::schema_for!(SplitAnswer)),
    ("prune", || schemars::schema_for!(PruneAnswer)),
    ("compare", || schemars::schema_for!(CompareAnswer)),
    ("compact", || schemars::schema_for!(CompactAnswer)),
    ("repair", || schemars::schema_for!(RepairAnswer)),
    ("restore", || schemars::schema_for!(RestoreAnswer)),
    ("handoff", || schemars::schema_for!(HandoffAnswer)),
    ("export", || schemars::schema_for!(ExportAnswer)),
    ("import", || schemars::schema_for!(ImportAnswer)),
    ("score", || schemars::schema_for!(ScoreAnswer)),
    ("score --hindsight", || schemars::schema_for!(HindsightAnswer)),
    ("sessions --keep", || schemars::schema_for!(KeepAnswer)),
    ("statusline", || schemars::schema_for!(StatusLine)),
];

#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Command whose --json output to describe
    command: String,
}

pub(crate) fn run(arguments: &SchemaArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let known = SCHEMAS.iter().find(|(command, _)| *command == arguments.command).ok_or_else(|| {
        let names: Vec<&str> = SCHEMAS.iter().map(|it| it.0).collect();
        let what =
            format!("expected a command with --json ({}), found {:?}", names.join(", "), arguments.command);
        Error::new(ErrorKind::Arguments, what)
    })?;
    screen.json = true;
    screen.document(&with_contract((known.1)()))?;
    Ok(0)
}

/// Adds the contract's version, as in [`AnswerDocument`](crate::answers::AnswerDocument).
fn with_contract(mut answer: Schema) -> Schema {
    let version = json!({"type": "integer", "format": "uint32", "minimum": 0, "description": "Version of the contract."});
    if let Some(Value::Object(fields)) = answer.get_mut("properties") {
        fields.shift_insert(0, "contract".to_owned(), version);
    }
    if let Some(Value::Array(required)) = answer.get_mut("required") {
        required.insert(0, json!("contract"));
    }
    answer
}
