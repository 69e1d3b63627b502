//! `epitome score`.

use crate::answers::{HindsightAnswer, ScoreAnswer};
use crate::engine::{self, Engine, SessionRef};
use crate::interfaces::cli::Screen;
use crate::interfaces::cli::common::{Common, lost_line};
use crate::report::size;
use clap::Args;
use history::error::{Error, ErrorKind, Result};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub struct ScoreArgs {
    #[command(flatten)]
    common: Common,
    /// The compacted session: a file, an id or a handle
    compacted: Option<String>,
    /// Cut the session at 60 % and at each of its own compactions, and show how much of what the agent used later is
    /// kept
    #[arg(long, conflicts_with_all = ["compacted", "corpus"])]
    hindsight: bool,
    /// Compact every session below this folder with every profile, and write a scorecard
    #[arg(long, value_name = "DIR", conflicts_with_all = ["session", "compacted"])]
    corpus: Option<PathBuf>,
    /// File to write the scorecard to
    #[arg(long, short, value_name = "FILE", default_value = "SCORECARD.md", requires = "corpus")]
    out: PathBuf,
}

pub(crate) fn run(engine: &Engine, arguments: &ScoreArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let ask = arguments.common.ask(&engine.config)?;
    if let Some(directory) = &arguments.corpus {
        let card = engine::scorecard(engine, directory, &ask, &mut |what| tracing::info!("{what}"))?;
        if !screen.document(&card)? {
            crate::files::install(&arguments.out, card.markdown().as_bytes())?;
            screen.line(&format!(
                "{} sessions; written to {}",
                card.sessions.len(),
                arguments.out.display()
            ))?;
        }
        return Ok(0);
    }
    if arguments.compacted.is_none() && !arguments.hindsight {
        let what = "expected SESSION COMPACTED, --hindsight SESSION, or --corpus DIR";
        return Err(Error::new(ErrorKind::Arguments, what));
    }
    let before = arguments.common.open(engine)?;
    let Some(compacted) = &arguments.compacted else {
        let answer = engine::hindsight(engine, &before, &ask);
        return screen.answer(&answer, show_hindsight);
    };
    // No format: the compacted session's may differ from the original's.
    let after = engine::open(engine, &SessionRef::Named(compacted.clone()), None, None)?;
    let answer = engine::score(engine, &before, &after, &ask);
    screen.answer(&answer, show)
}

fn show_hindsight(answer: &HindsightAnswer, screen: &mut Screen<'_>) -> Result<()> {
    if answer.cuts.is_empty() {
        screen.line("nothing from before the cut was used later without being shown again")?;
    }
    for cut in &answer.cuts {
        screen.line(&format!(
            "cut at {}: {} messages, {} tokens before; {} things used later",
            screen.paint.strong(&cut.at),
            cut.messages,
            size(cut.tokens),
            cut.used
        ))?;
        let rows = cut.ways.iter().map(|it| {
            let kept = it.kept.unwrap_or(0.0);
            let kinds: Vec<String> =
                it.kinds.iter().map(|(kind, it)| format!("{kind} {}/{}", it.kept, it.used)).collect();
            vec![
                format!("  {}", it.way),
                it.size.clone(),
                size(it.tokens),
                format!("{:.0} %", (kept * 100.0).floor()),
                kinds.join(", "),
            ]
        });
        screen.table(&["", "at", "tokens", "kept", ""], rows, &[])?;
    }
    Ok(())
}

/// Maximum lines shown of a list.
const LISTED: usize = 20;

fn show(answer: &ScoreAnswer, screen: &mut Screen<'_>) -> Result<()> {
    let paint = screen.paint;
    let percent =
        |it: Option<f64>| it.map_or_else(|| "–".to_owned(), |it| format!("{:.0} %", (it * 100.0).floor()));
    screen.line(&format!(
        "{} of the facts kept · {} → {} tokens · {} → {} messages, the last {} word for word",
        paint.strong(&percent(answer.kept)),
        size(answer.tokens_before),
        size(answer.tokens_after),
        answer.messages_before,
        answer.messages_after,
        answer.messages_tail,
    ))?;
    if answer.kept.is_none() {
        screen.line("no fact was removed")?;
    }
    let rows = answer.facts.iter().map(|(class, it)| {
        let share = it.kept as f64 / it.found.max(1) as f64;
        let numbers = [it.found, it.kept, it.recoverable, it.lost].map(|it| it.to_string());
        // Not a gauge: here full is good.
        let bar = paint.bar(share, 20);
        [vec![format!("  {class}")], numbers.to_vec(), vec![bar]].concat()
    });
    if !answer.facts.is_empty() {
        screen.table(&["", "found", "kept", "recoverable", "lost", ""], rows, &[])?;
    }
    if !answer.lost.is_empty() {
        screen.line("no longer in the compacted session")?;
        for lost in answer.lost.iter().take(LISTED) {
            screen.line(&lost_line(lost))?;
        }
        if answer.lost.len() > LISTED {
            screen.line(&format!("  … and {} more (--json has all)", answer.lost.len() - LISTED))?;
        }
    }
    for (name, doubts) in [
        ("contradicts the original", &answer.contradictions),
        ("without support in the original", &answer.unsupported),
    ] {
        if !doubts.is_empty() {
            screen.line(&paint.warn(name))?;
            for it in doubts.iter().take(LISTED) {
                screen.line(&format!("  {}", it.text))?;
            }
        }
    }
    match answer.invalid.first() {
        None => screen.line(&format!("valid for {}", answer.api)),
        Some(it) => {
            screen.line(&paint.warn(&format!(
                "invalid for {}: {}: message {}: {}",
                answer.api, it.rule, it.message, it.what
            )))
        }
    }
}
