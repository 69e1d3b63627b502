//! `epitome` alone: the sessions of this directory, how full they are, and the one command worth running.

use serde::Serialize;

use super::Screen;
use super::paint::{short_ids, size, table};
use crate::agents::reach::quoted;
use crate::answers::CONTRACT;
use crate::engine::{Ask, Engine, SessionRef};
use history::error::Result;

/// Sessions that are listed, the newest; a fuller one that is older takes the place of the last.
const SHOWN: usize = 8;
/// Sessions that are opened to see how full they are.
const MEASURED: usize = 60;
/// Older sessions are measured only to fill the list; ms.
const RECENT: i64 = 14 * 24 * 3_600_000;

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
    /// The session that a compaction made of it, used since.
    #[serde(skip_serializing_if = "Option::is_none")]
    continued_as: Option<String>,
}

pub(super) fn run(engine: &Engine, screen: &mut Screen<'_>) -> Result<u8> {
    let ask = Ask::new(engine.config.profile(&engine.config.profile)?);
    let mut sessions = Vec::new();
    let mut found = engine.sessions(None, true)?;
    found.retain(|it| it.parent.is_none());
    let continued = engine.continued(&found);
    for found in found.into_iter().take(MEASURED) {
        if sessions.len() >= SHOWN && found.changed_ms < engine.now - RECENT {
            break;
        }
        // One that cannot be read is not worth a command.
        let named = SessionRef::Named(found.address());
        let Ok(opened) = engine.open_measured(&named, None, None, ask.tokenizer) else { continue };
        let Ok(estimate) = engine.estimate(&opened, &ask, None) else { continue };
        sessions.push(Row {
            agent: found.agent.name(),
            continued_as: continued.get(&found.id).cloned(),
            id: found.id,
            first_words: found.first_words,
            context: estimate.context,
            used_percent: estimate.used_percent,
            advice: estimate.advice.level,
            live: found.live,
        });
    }
    let fullest = fullest(&sessions);
    let (next, why) = worth(fullest.and_then(|it| sessions.get(it)));
    if let Some(at) = fullest.filter(|it| *it >= SHOWN) {
        sessions.swap(SHOWN - 1, at);
    }
    sessions.truncate(SHOWN);
    let answer = Answer { contract: CONTRACT, sessions, next, why };
    if screen.json(&answer)? {
        return Ok(0);
    }
    let paint = screen.paint;
    if !answer.sessions.is_empty() {
        let ids = short_ids(answer.sessions.iter().map(|it| it.id.as_str()));
        let mut rows =
            vec![["agent", "session", "full", "", "context", "first words"].map(str::to_owned).to_vec()];
        for (it, id) in answer.sessions.iter().zip(ids) {
            let bar = it.used_percent.map(|it| paint.gauge(it / 100.0, 10)).unwrap_or_default();
            let percent = it.used_percent.map(|it| format!("{it:.0} %")).unwrap_or_default();
            let live = if it.live { " (running)" } else { "" };
            let words = match &it.continued_as {
                Some(new) => format!("compacted; continues as {new}"),
                None => it.first_words.clone(),
            };
            rows.push(vec![
                it.agent.to_owned(),
                format!("{id}{live}"),
                percent,
                bar,
                size(it.context),
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

/// The place of the fullest session that is still in use.
fn fullest(sessions: &[Row]) -> Option<usize> {
    let full = |it: &Row| it.used_percent.unwrap_or(0.0);
    let in_use = sessions.iter().enumerate().filter(|(_, it)| it.continued_as.is_none());
    let most = in_use.max_by(|(_, a), (_, b)| full(a).total_cmp(&full(b)).then(a.context.cmp(&b.context)));
    most.map(|it| it.0)
}

/// The one command worth running, and why.
fn worth(fullest: Option<&Row>) -> (String, String) {
    match fullest {
        None => ("epitome sessions".to_owned(), "no sessions for this directory; this lists all".to_owned()),
        Some(it) if it.advice != "room" => {
            let percent = it.used_percent.map(|it| format!("{it:.0} % full; ")).unwrap_or_default();
            (
                format!("epitome compact {}", quoted(&it.id)),
                format!("{percent}a preview that changes nothing"),
            )
        }
        Some(it) => (
            format!("epitome estimate {}", quoted(&it.id)),
            "no session is close to its limit; this shows what uses the context".to_owned(),
        ),
    }
}
