//! `epitome compare`.

use crate::answers::{CompareAnswer, Status};
use crate::engine::{self, Engine};
use crate::interfaces::cli::Screen;
use crate::interfaces::cli::common::Common;
use crate::interfaces::cli::paint::wrapped;
use crate::report::size;
use history::error::Result;

pub(crate) fn run(engine: &Engine, common: &Common, screen: &mut Screen<'_>) -> Result<u8> {
    let ask = common.ask(&engine.config)?;
    let opened = common.open(engine)?;
    let answer = engine::compare(engine, &opened, &ask)?;
    screen.answer(&answer, show)
}

fn show(answer: &CompareAnswer, screen: &mut Screen<'_>) -> Result<()> {
    show_rows(answer, screen)?;
    let imitated = "the other systems' rows are offline imitations: their cuts, and our summary in their sections; what their models would write is not measured";
    for line in wrapped(imitated, screen.paint) {
        screen.line(&screen.paint.faint(&line))?;
    }
    screen.line("")?;
    show_reasons(answer, screen)
}

fn show_rows(answer: &CompareAnswer, screen: &mut Screen<'_>) -> Result<()> {
    const DISPENSABLE: [&str; 6] = ["ms", "valid for", "archive only", "pruned", "cut", "lost"];
    const HEAD: [&str; 11] = [
        "profile",
        "now",
        "cut",
        "pruned",
        "tokens",
        "saved",
        "facts kept",
        "archive only",
        "lost",
        "valid for",
        "ms",
    ];
    let mut rows = Vec::new();
    for it in &answer.rows {
        let name = it.profile.clone();
        let due = if it.due { "due" } else { "no" }.to_owned();
        if it.status != Status::Planned {
            let mut row = vec![name, due];
            row.resize(4, String::new());
            row.push(size(it.tokens_before));
            row.push(it.status.name().to_owned());
            rows.push(row);
            continue;
        }
        let saved = 100.0 * (1.0 - it.tokens_after as f64 / it.tokens_before.max(1) as f64);
        let kept = it.facts_kept.map_or_else(String::new, |it| format!("{:.0} %", (it * 100.0).floor()));
        rows.push(vec![
            name,
            due,
            it.split.map_or_else(String::new, |it| it.to_string()),
            it.pruned.to_string(),
            format!("{} → {}", size(it.tokens_before), size(it.tokens_after)),
            format!("{saved:.0} %"),
            kept,
            it.recoverable.to_string(),
            it.lost.to_string(),
            valid(&it.valid_for),
            it.milliseconds.to_string(),
        ]);
    }
    screen.table(&HEAD, rows, &DISPENSABLE)
}

/// Shows why each profile would act now or not.
fn show_reasons(answer: &CompareAnswer, screen: &mut Screen<'_>) -> Result<()> {
    for it in &answer.rows {
        let mut why = format!("now: {}", it.due_reason);
        if it.status != Status::Planned {
            why = format!("{why}; {}: {}", it.status.name(), it.reason);
        }
        if !it.why_same.is_empty() {
            why = format!("{why}; {}", it.why_same);
        }
        let name = it.profile.as_str();
        for line in wrapped(&format!("{name}  {why}"), screen.paint) {
            match line.strip_prefix(name) {
                Some(rest) => {
                    screen.line(&format!("{}{}", screen.paint.strong(name), screen.paint.faint(rest)))?;
                }
                None => screen.line(&screen.paint.faint(&line))?,
            }
        }
    }
    Ok(())
}

/// The APIs that accept a result, abbreviated if all do.
fn valid(apis: &[String]) -> String {
    match apis.len() {
        0 => "none".to_owned(),
        4 => "all four".to_owned(),
        _ => apis.join(", "),
    }
}
