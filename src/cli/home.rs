//! `epitome` alone: the sessions of this directory, how full they are, and the one command worth running.

use serde::Serialize;

use super::Screen;
use super::paint::{size, table};
use crate::agents::reach::quoted;
use crate::answers::CONTRACT;
use crate::engine::{Ask, Engine, SessionRef};
use crate::error::Result;

/// How many sessions are opened to see how full they are.
const SHOWN: usize = 6;

#[derive(Serialize)]
struct Answer {
    contract: u32,
    sessions: Vec<Row>,
    next: String,
    why: String,
}

#[derive(Serialize)]
struct Row {
    agent: &'static str,
    id: String,
    first_words: String,
    context: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    used_percent: Option<f64>,
    advice: String,
    live: bool,
}

pub(super) fn run(engine: &Engine, screen: &mut Screen<'_>) -> Result<u8> {
    let ask = Ask::new(engine.config.profile(&engine.config.profile)?);
    let mut sessions = Vec::new();
    for found in engine.sessions(None, true)?.into_iter().filter(|it| it.parent.is_none()).take(SHOWN) {
        // One that cannot be read is not worth a command.
        let named = SessionRef::Named(found.address());
        let Ok(opened) = engine.open_measured(&named, None, None, ask.tokenizer) else { continue };
        let Ok(estimate) = engine.estimate(&opened, &ask, None) else { continue };
        sessions.push(Row {
            agent: found.agent.name(),
            id: found.id,
            first_words: found.first_words,
            context: estimate.context,
            used_percent: estimate.used_percent,
            advice: estimate.advice.level,
            live: found.live,
        });
    }
    let (next, why) = worth(&sessions);
    let answer = Answer { contract: CONTRACT, sessions, next, why };
    if screen.json(&answer)? {
        return Ok(0);
    }
    let paint = screen.paint;
    if !answer.sessions.is_empty() {
        let mut rows = vec![["agent", "session", "context", "", "first words"].map(str::to_owned).to_vec()];
        for it in &answer.sessions {
            let bar = it.used_percent.map(|it| paint.gauge(it / 100.0, 20)).unwrap_or_default();
            let percent = it.used_percent.map(|it| format!(" {it:.0} %")).unwrap_or_default();
            let live = if it.live { " (running)" } else { "" };
            let words: String = it.first_words.chars().take(50).collect();
            rows.push(vec![
                it.agent.to_owned(),
                format!("{}{live}", it.id),
                format!("{}{percent}", size(it.context)),
                bar,
                words,
            ]);
        }
        for line in table(&rows, paint) {
            screen.line(&line)?;
        }
        screen.line("")?;
    }
    screen.line(&format!("{}  {}", paint.strong(&answer.next), paint.faint(&format!("# {}", answer.why))))?;
    Ok(0)
}

/// The one command worth running, and why.
fn worth(sessions: &[Row]) -> (String, String) {
    let fullest = sessions.iter().max_by(|a, b| {
        a.used_percent
            .unwrap_or(0.0)
            .total_cmp(&b.used_percent.unwrap_or(0.0))
            .then(a.context.cmp(&b.context))
    });
    match fullest {
        None => ("epitome sessions".to_owned(), "no session is of this directory; this lists all".to_owned()),
        Some(it) if it.advice != "room" => {
            let percent = it.used_percent.map(|it| format!("{it:.0} % full; ")).unwrap_or_default();
            (
                format!("epitome compact {} --apply", quoted(&it.id)),
                format!("{percent}without --apply a preview"),
            )
        }
        Some(it) => (
            format!("epitome estimate {}", quoted(&it.id)),
            "there is room everywhere; this shows what fills it".to_owned(),
        ),
    }
}
