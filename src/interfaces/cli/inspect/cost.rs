//! `epitome cost`.

use crate::answers::{CostAnswer, MomentInfo, Spent};
use crate::engine::{self, Engine};
use crate::interfaces::cli::Screen;
use crate::interfaces::cli::common::Common;
use crate::report::{counted, size};
use history::error::Result;

pub(crate) fn run(engine: &Engine, common: &Common, screen: &mut Screen<'_>) -> Result<u8> {
    let ask = common.ask(&engine.config)?;
    let opened = common.open(engine)?;
    let answer = engine::cost_of(engine, &opened, &ask)?;
    screen.answer(&answer, show)
}

/// Maximum moments shown of the best savings, and of the worst losses.
const MOMENTS: usize = 5;

fn show(answer: &CostAnswer, screen: &mut Screen<'_>) -> Result<()> {
    let paint = screen.paint;
    let session = &answer.session;
    let name = session.id.as_deref().or(session.path.as_deref()).unwrap_or(&session.format);
    let spent = &answer.spent;
    screen.line(&format!("{} {name}", paint.strong(&session.format)))?;
    if spent.requests > 0 {
        screen.line(&format!(
            "{} for {} in {}, {} tokens",
            paint.strong(&money(spent.total)),
            counted(spent.requests, "request"),
            counted(answer.turns, "turn"),
            size(spent.total.tokens)
        ))?;
        screen.line("")?;
        parts(answer, screen)?;
        by_content(answer, screen)?;
        dearest(answer, screen)?;
        moments(answer, screen)?;
    }
    // Without requests, the warnings say why nothing is known.
    if let Some(next) = answer.next.as_ref().filter(|_| spent.requests > 0) {
        screen.line("")?;
        screen.line(&next.why)?;
    }
    for price in &answer.prices {
        let line = format!("prices of {}: {}, {}", price.model, price.date, price.source);
        screen.line(&paint.faint(&line))?;
    }
    for it in &answer.unpriced {
        screen.line(&paint.faint(&format!("{}: {}", it.model, it.why)))?;
    }
    screen.warnings(&answer.warnings)?;
    Ok(())
}

fn parts(answer: &CostAnswer, screen: &mut Screen<'_>) -> Result<()> {
    let it = &answer.spent;
    let mut rows = Vec::new();
    let mut row = |name: &str, spent: Spent| {
        if spent.tokens > 0 {
            rows.push(vec![format!("  {name}"), size(spent.tokens), money(spent)]);
        }
    };
    row("cache reads", it.cache_read);
    row("cache writes", it.cache_write);
    row("other input", it.input);
    row("output", it.output);
    row("of which side chains", answer.side.total);
    for it in &answer.paid_again {
        let why = match it.cause.as_str() {
            "compaction" => "sent again after compactions",
            "expired" => "sent again, cache expired",
            "missed" => "sent again, cache missed",
            _ => "sent again at the start",
        };
        row(&format!("{why} ({}×)", it.requests), it.spent);
    }
    screen.table(&["  where it went", "tokens", "cost"], rows, &[])
}

fn by_content(answer: &CostAnswer, screen: &mut Screen<'_>) -> Result<()> {
    if answer.by_content.is_empty() {
        return Ok(());
    }
    let behind = if answer.compactions > 0 { "input since the last compaction" } else { "input by content" };
    let rows = answer.by_content.iter().map(|it| {
        vec![format!("  {}", it.category.replace('_', " ")), size(it.spent.tokens), money(it.spent)]
    });
    screen.line("")?;
    screen.table(&[&format!("  {behind}"), "tokens", "cost"], rows, &[])
}

fn dearest(answer: &CostAnswer, screen: &mut Screen<'_>) -> Result<()> {
    let rows = answer.dearest.iter().map(|it| {
        let spent = &it.spent;
        let cells = [
            format!("  {}", it.turn),
            money(spent.total),
            spent.requests.to_string(),
            size(spent.total.tokens),
        ];
        [cells.as_slice(), std::slice::from_ref(&it.prompt)].concat()
    });
    screen.line("")?;
    screen.line("most expensive turns")?;
    screen.table(&["  turn", "cost", "requests", "tokens", "prompt"], rows, &[])
}

fn moments(answer: &CostAnswer, screen: &mut Screen<'_>) -> Result<()> {
    let saved = |it: &&MomentInfo| it.saved_dollars.unwrap_or(it.saved_tokens as f64);
    let (mut wins, mut losses): (Vec<_>, Vec<_>) = answer.moments.iter().partition(|it| saved(it) > 0.0);
    if wins.is_empty() && losses.is_empty() {
        return Ok(());
    }
    screen.line("")?;
    let what = if answer.spent.unpriced == 0 { "money" } else { "tokens" };
    screen.line(&format!(
        "a compaction before a turn would have saved {what} at {} of {} turns and cost more at {} (assuming the same \
         work)",
        wins.len(),
        answer.turns,
        losses.len()
    ))?;
    wins.sort_by(|a, b| saved(b).total_cmp(&saved(a)));
    losses.sort_by(|a, b| saved(a).total_cmp(&saved(b)));
    let row = |it: &&MomentInfo| {
        let saved = match it.saved_dollars {
            Some(dollars) if dollars < 0.0 => format!("-${:.2}", -dollars),
            Some(dollars) => format!("${dollars:.2}"),
            None => format!("{} tokens", it.saved_tokens),
        };
        let cache = if it.expired { "expired" } else { "warm" };
        vec![format!("  {}", it.turn), saved, size(it.context), cache.to_owned(), it.prompt.clone()]
    };
    let shown = wins.iter().take(MOMENTS).chain(losses.iter().take(MOMENTS)).map(row);
    screen.table(&["  before turn", "saved", "context", "cache", "prompt"], shown, &[])
}

/// Dollars, or "no price".
fn money(spent: Spent) -> String {
    spent.dollars.map_or_else(|| "no price".to_owned(), |it| format!("${it:.2}"))
}
