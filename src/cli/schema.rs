//! `epitome schema`.

use super::Screen;
use crate::answers::{
    CompactAnswer, CompareAnswer, CostAnswer, EstimateAnswer, ExportAnswer, HandoffAnswer, HindsightAnswer,
    ImportAnswer, PruneAnswer, RepairAnswer, RestoreAnswer, ScoreAnswer, SplitAnswer,
};
use crate::engine::statusline::StatusLine;
use clap::Args;
use history::error::{Error, Kind, Result};

#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// The command whose --json is described
    command: String,
}

pub(super) fn run(arguments: &SchemaArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let schema = match arguments.command.as_str() {
        "estimate" => schemars::schema_for!(EstimateAnswer),
        "cost" => schemars::schema_for!(CostAnswer),
        "split" => schemars::schema_for!(SplitAnswer),
        "prune" => schemars::schema_for!(PruneAnswer),
        "compare" => schemars::schema_for!(CompareAnswer),
        "compact" => schemars::schema_for!(CompactAnswer),
        "repair" => schemars::schema_for!(RepairAnswer),
        "restore" => schemars::schema_for!(RestoreAnswer),
        "handoff" => schemars::schema_for!(HandoffAnswer),
        "export" => schemars::schema_for!(ExportAnswer),
        "import" => schemars::schema_for!(ImportAnswer),
        "score" => schemars::schema_for!(ScoreAnswer),
        "score --hindsight" => schemars::schema_for!(HindsightAnswer),
        "statusline" => schemars::schema_for!(StatusLine),
        other => {
            let what = format!(
                "expected a command with --json (estimate, cost, split, prune, compact, compare, repair, restore, handoff, export, import, score, score --hindsight, statusline), found {other:?}"
            );
            return Err(Error::new(Kind::Arguments, what));
        }
    };
    screen.json = true;
    screen.json(&schema)?;
    Ok(0)
}
