//! `epitome watch`: reports when a session passes a profile's threshold. It never writes a session: it
//! prepares a compacted copy and prints the command that applies it.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::agents::write_back::shell::quoted;
use crate::answers::{CompactAnswer, Status};
use crate::engine::{self, Ask, Engine, Opened, SessionRef, To};
use crate::interfaces::cli::Screen;
use crate::interfaces::cli::common::Common;
use crate::interfaces::terminal::{LineMode, visible};
use crate::report::size;
use compaction::plan::{Gate, Verdict};
use history::error::{ErrorKind, Result};

#[derive(Debug, Args)]
pub struct WatchArgs {
    #[command(flatten)]
    common: Common,
    /// Shell command to run when the threshold is passed, with EPITOME_SESSION and EPITOME_MESSAGE in its environment
    #[arg(long, value_name = "COMMAND")]
    notify: Option<String>,
    /// Seconds between checks
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
}

#[derive(Default)]
struct Watched {
    /// The session's id and length at the last check.
    seen: Option<(String, u64)>,
    /// The session last reported as past the threshold.
    notified: Option<String>,
    greeted: bool,
}

/// A result that has not been reported yet.
enum News {
    NotYet(String, Verdict),
    /// The session has passed the threshold; with the session and the prepared compaction.
    Due(String, Verdict, Box<(Opened, CompactAnswer)>),
}

pub(crate) fn run(engine: &Engine, arguments: &WatchArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let mut ask = arguments.common.ask(&engine.config)?;
    // The clock continues from `--now`, so that later events get later times.
    let ahead = engine.now.saturating_sub(clock());
    let mut watched = Watched::default();
    let mut now = engine.now;
    loop {
        match look(&at(engine, now), arguments, &mut ask, &mut watched) {
            Ok(None) => {}
            Ok(Some(news)) => tell(news, arguments, &mut watched, screen)?,
            // Temporary: the agent is writing the session, or another process has locked the store.
            Err(error) if matches!(error.kind(), ErrorKind::Locked | ErrorKind::Io | ErrorKind::Changed) => {
                tracing::warn!("{}", error.full());
            }
            Err(error) => return Err(error),
        }
        std::thread::sleep(Duration::from_secs(arguments.every));
        now = clock().saturating_add(ahead);
    }
}

/// Checks the session, and prepares a compacted copy if it has passed the threshold.
fn look(
    engine: &Engine,
    arguments: &WatchArgs,
    ask: &mut Ask,
    watched: &mut Watched,
) -> Result<Option<News>> {
    let common = &arguments.common;
    let (format, agent) = (common.format()?, common.agent.as_deref());
    let named = common.session();
    // Standard input can be read only once.
    let once = named == SessionRef::Named("-".to_owned());
    let opened = match once {
        true => engine::open(engine, &named, format, agent)?,
        false => engine::open_measured(engine, &named, format, agent, ask.tokenizer())?,
    };
    let id = opened.session.history.meta.session.as_deref().unwrap_or_default().to_owned();
    let state = (id.clone(), opened.source.len());
    if watched.seen.as_ref() == Some(&state) {
        return Ok(None);
    }
    let verdict = engine::due(engine, &opened, ask);
    let cools_down = verdict.gate == Gate::CoolDown;
    let news = if !verdict.due {
        Some(News::NotYet(id, verdict))
    } else if watched.notified.as_ref() == Some(&id) {
        None
    } else {
        // Read the same session again in full: it was only measured so far.
        let place = opened.path.as_ref().map(|it| SessionRef::Named(it.display().to_string()));
        let opened =
            if once { opened } else { engine::open(engine, &place.unwrap_or(named), format, agent)? };
        let answer = prepared(engine, &opened, ask, &id)?;
        Some(News::Due(id, verdict, Box::new((opened, answer))))
    };
    // A cool-down ends even if the session does not change, so check again.
    watched.seen = (!cools_down).then_some(state);
    Ok(news)
}

fn tell(news: News, arguments: &WatchArgs, watched: &mut Watched, screen: &mut Screen<'_>) -> Result<()> {
    match news {
        News::NotYet(id, verdict) => {
            watched.notified.take_if(|it| *it == id);
            if !watched.greeted && !screen.json {
                screen.note(&format!("watching {id}: {}", verdict.reason))?;
                let _ = screen.out.flush();
            }
        }
        News::Due(id, verdict, made) => {
            say(&made.0, &made.1, &id, &verdict.reason, arguments, screen)?;
            watched.notified = Some(id);
        }
    }
    watched.greeted = true;
    Ok(())
}

/// Milliseconds since 1970.
fn clock() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// A copy of the engine with another current time.
fn at(engine: &Engine, now: i64) -> Engine {
    let (store, listener) = (Arc::clone(&engine.store), engine.listener.clone());
    let Engine { face, hint_words, .. } = *engine;
    Engine { config: engine.config.clone(), store, now, listener, face, hint_words }
}

/// Writes a compacted copy into the folder `prepared`, for inspection.
fn prepared(engine: &Engine, opened: &Opened, ask: &mut Ask, id: &str) -> Result<CompactAnswer> {
    let folder = engine.config.data_dir.join("prepared");
    let name: String =
        id.chars().map(|it| if it.is_ascii_alphanumeric() || it == '-' { it } else { '_' }).collect();
    let copy = folder.join(format!("{name}.session"));
    crate::files::make_folder(&folder, "preparing a compacted copy")?;
    ask.to = To::File(copy);
    Ok(engine::compact(engine, opened, ask)?.answer())
}

fn say(
    opened: &Opened,
    answer: &CompactAnswer,
    id: &str,
    reason: &str,
    arguments: &WatchArgs,
    screen: &mut Screen<'_>,
) -> Result<()> {
    // By its path, which works from any directory.
    let place = opened.path.as_ref().map_or_else(|| id.to_owned(), |it| it.display().to_string());
    let command = (answer.status == Status::Compacted)
        .then(|| format!("epitome compact {}{} --apply", quoted(&place), arguments.common.typed()));
    let percent = |it: Option<f64>| it.map(|it| format!("{it:.0} % of the window, ")).unwrap_or_default();
    let outlook = match &command {
        Some(command) => format!(
            "compacting would leave {}{} tokens: {command}",
            percent(answer.used_percent_after),
            size(answer.tokens_after)
        ),
        None => format!("but it cannot be compacted: {}", answer.reason),
    };
    let message = format!("{id}: {}{reason}; {outlook}", percent(answer.used_percent));
    let document = json!({
        "session": id, "due": true, "reason": reason, "tokens_before": answer.tokens_before,
        "tokens_after": answer.tokens_after, "prepared": answer.output, "command": command,
    });
    if screen.json {
        screen.json_line(&document)?;
    } else {
        screen.line(&message)?;
    }
    // For a pipe's reader that waits for lines.
    let _ = screen.out.flush();
    if let Some(notify) = &arguments.notify {
        // The command probably prints the message on a terminal: remove control characters.
        let message = visible(&message, LineMode::Line);
        let mut child = engine::shell(notify);
        child.env("EPITOME_SESSION", id).env("EPITOME_MESSAGE", &*message);
        let status = child.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null()).status();
        if !status.is_ok_and(|it| it.success()) {
            tracing::warn!("--notify: the command failed");
        }
    }
    Ok(())
}
