//! `epitome schema`.

use super::Screen;
use super::arguments::SchemaArgs;
use crate::answers::{CompactAnswer, CompareAnswer, EstimateAnswer, PruneAnswer, ScoreAnswer, SplitAnswer};
use crate::error::{Error, Kind, Result};

pub(super) fn run(arguments: &SchemaArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let schema = match arguments.command.as_str() {
        "estimate" => schemars::schema_for!(EstimateAnswer),
        "split" => schemars::schema_for!(SplitAnswer),
        "prune" => schemars::schema_for!(PruneAnswer),
        "compare" => schemars::schema_for!(CompareAnswer),
        "compact" => schemars::schema_for!(CompactAnswer),
        "score" => schemars::schema_for!(ScoreAnswer),
        other => {
            let what = format!(
                "expected a command with --json (estimate, split, prune, compact, compare, score), found {other:?}"
            );
            return Err(Error::new(Kind::Arguments, what));
        }
    };
    screen.json = true;
    screen.json(&schema)?;
    Ok(0)
}
