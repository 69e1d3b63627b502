//! `epitome repair`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;

use crate::answers::{RepairAnswer, RepairStatus};
use crate::engine::{self, Engine, RepairTo, SessionRef};
use crate::interfaces::cli::Screen;
use crate::interfaces::cli::common::show_undo_and_resume;
use history::error::Result;
use sessions::Format;

#[derive(Debug, Args)]
pub struct RepairArgs {
    /// A session file, a session id, `current` or `latest`
    session: Option<String>,
    /// Only sessions of this agent
    #[arg(long)]
    agent: Option<String>,
    /// Format of the session [default: detected]
    #[arg(long)]
    format: Option<String>,
    /// Write the repaired session to this file
    #[arg(long, short, value_name = "FILE", conflicts_with = "apply")]
    out: Option<PathBuf>,
    /// Repair the session in place; the original is archived, `epitome undo` restores it
    #[arg(long)]
    apply: bool,
}

/// Maximum findings shown per kind of damage.
const SHOWN: usize = 5;

pub(crate) fn run(engine: &Engine, arguments: &RepairArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let session = arguments.session.clone().map_or(SessionRef::Unnamed, SessionRef::Named);
    let format = arguments.format.as_deref().map(Format::named).transpose()?;
    let to = match (&arguments.out, arguments.apply) {
        (Some(path), _) => RepairTo::File(path.clone()),
        (None, true) => RepairTo::Session,
        (None, false) => RepairTo::Preview,
    };
    let answer = engine::repair(engine, &session, format, arguments.agent.as_deref(), &to)?;
    screen.answer(&answer, show)
}

/// Shows the findings, grouped by kind of damage, with what each kind means.
pub(crate) fn show(answer: &RepairAnswer, screen: &mut Screen<'_>) -> Result<()> {
    let paint = screen.paint;
    let mut kinds = BTreeSet::new();
    for first in answer.findings.iter().filter(|it| kinds.insert(it.damage.as_str())) {
        let count = answer.counts.get(&first.damage).copied().unwrap_or(1);
        let times = if count > 1 { format!(" ({count} times)") } else { String::new() };
        screen.line(&format!("{}{times}", paint.warn(&first.damage)))?;
        screen.line(&format!("  {}", first.why))?;
        screen.line(&format!("  fix: {}", first.mend))?;
        let of_kind = answer.findings.iter().filter(|it| it.damage == first.damage);
        for it in of_kind.take(SHOWN) {
            screen.line(&format!("  line {}: {}", it.line, it.detail))?;
        }
        if count > SHOWN as u64 {
            screen.line(&format!("  … {} more", count - SHOWN as u64))?;
        }
    }
    for it in &answer.left {
        screen.note(&format!("not repaired: {it}"))?;
    }
    let file = answer.output.as_deref();
    match (answer.status, &answer.resume) {
        (RepairStatus::Sound, _) => screen.line("nothing to repair"),
        (_, Some(resume)) => {
            screen.note(&format!("repaired {}; the original is archived", file.unwrap_or_default()))?;
            show_undo_and_resume(answer.handle.as_deref(), resume, screen)
        }
        _ => match file {
            Some(file) => screen.note(&format!("written to {file}")),
            None => screen.note("nothing was written; --apply repairs the session, --out FILE writes a copy"),
        },
    }
}
