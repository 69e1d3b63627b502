//! `epitome sessions`, and `epitome` without a command: the sessions, how full they are, their compactions,
//! and the one command worth running.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use crate::agents::FoundSession;
use crate::agents::write_back::shell::quoted;
use crate::answers::AdviceLevel;
use crate::engine::{self, Ask, Directories, Engine, SessionRef};
use crate::interfaces::cli::Screen;
use crate::interfaces::cli::common::minute;
use crate::interfaces::cli::paint::{Paint, fitted, short_ids};
use crate::report::size;
use history::error::Result;
#[cfg(not(feature = "parquet"))]
use history::error::{Error, ErrorKind};
use sessions::derive;

/// Maximum sessions of this directory listed by default: the newest; if an older one is the fullest, it
/// replaces the last.
const SHOWN: usize = 8;
/// Maximum sessions of this directory opened to find the fullest.
const MEASURED: usize = 60;
/// Sessions older than this (in ms) are measured only to fill the list.
const RECENT: i64 = 14 * 24 * 3_600_000;
/// Maximum compactions shown per session.
const COMPACTIONS: u32 = 5;

#[derive(Debug, Args)]
pub struct SessionsArgs {
    /// Only sessions of this directory
    #[arg(long)]
    here: bool,
    /// Only sessions of this agent
    #[arg(long)]
    agent: Option<String>,
    /// Maximum number of sessions
    #[arg(long, default_value_t = 30)]
    limit: usize,
    /// Archive the sessions that changed, instead of listing sessions
    #[arg(long, conflicts_with = "limit")]
    pub(crate) keep: bool,
    /// Write tables of all sessions into this folder, as one Parquet file each: sessions, messages, compactions,
    /// facts, tokens
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["limit", "keep"])]
    parquet: Option<PathBuf>,
}

#[derive(Serialize)]
struct SessionsAnswer {
    sessions: Vec<SessionRow>,
    next: String,
    why: String,
}

#[derive(Serialize)]
struct SessionRow {
    agent: &'static str,
    id: String,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
    changed: String,
    first_words: String,
    /// Tokens; `None` if the session cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    used_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<AdviceLevel>,
    live: bool,
    /// The session that a compaction of this one created, if used since.
    #[serde(skip_serializing_if = "Option::is_none")]
    continued_as: Option<String>,
    compactions: Vec<CompactionRow>,
}

/// A compaction that we made of a session.
#[derive(Serialize)]
struct CompactionRow {
    handle: String,
    at: String,
    profile: String,
    tokens_before: u64,
    tokens_after: u64,
    applied: bool,
    /// The session that continues from it, if a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
}

/// `epitome` without a command: the sessions of this directory, without sub-agents.
pub(crate) fn here(engine: &Engine, screen: &mut Screen<'_>) -> Result<u8> {
    let mut found = engine::sessions(engine, None, Directories::Here)?;
    found.retain(|it| it.parent.is_none());
    let continued = engine::continued(engine, &found);
    let mut sessions = Vec::new();
    for it in found.into_iter().take(MEASURED) {
        if sessions.len() >= SHOWN && it.changed_ms < engine.now - RECENT {
            break;
        }
        sessions.push(row(engine, it, &continued)?);
    }
    let fullest = fullest(&sessions);
    let (next, why) = worth_running(fullest.and_then(|it| sessions.get(it))).unwrap_or_else(|| {
        ("epitome sessions".to_owned(), "no sessions for this directory; this lists all".to_owned())
    });
    if let Some(at) = fullest.filter(|it| *it >= SHOWN) {
        sessions.swap(SHOWN - 1, at);
    }
    sessions.truncate(SHOWN);
    screen.answer(&SessionsAnswer { sessions, next, why }, show)
}

pub(crate) fn run(engine: &Engine, arguments: &SessionsArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let of = if arguments.here { Directories::Here } else { Directories::All };
    let mut found = engine::sessions(engine, arguments.agent.as_deref(), of)?;
    if arguments.keep {
        return crate::interfaces::cli::archive::keep::run(engine, &found, screen);
    }
    if let Some(folder) = &arguments.parquet {
        return tables(engine, &found, folder, screen);
    }
    let all = found.len();
    let continued = engine::continued(engine, &found);
    found.truncate(arguments.limit);
    let sessions: Vec<SessionRow> =
        found.into_iter().map(|it| row(engine, it, &continued)).collect::<Result<_>>()?;
    let (next, why) =
        worth_running(fullest(&sessions).and_then(|it| sessions.get(it))).unwrap_or_else(|| {
            ("epitome doctor".to_owned(), "no readable sessions; this shows where Epitome looks".to_owned())
        });
    let listed = sessions.len();
    let code = screen.answer(&SessionsAnswer { sessions, next, why }, show)?;
    if all > listed && !screen.json {
        screen.note(&format!("… and {} older ones (--limit)", all - listed))?;
    }
    Ok(code)
}

#[cfg(feature = "parquet")]
fn tables(engine: &Engine, found: &[FoundSession], folder: &Path, screen: &mut Screen<'_>) -> Result<u8> {
    let answer = engine::tables(engine, found, folder)?;
    screen.answer(&answer, |it, screen| {
        let crate::answers::TablesAnswer { output, sessions, messages, compactions, facts, tokens } = it;
        let written = screen.paint.good("written to");
        screen.line(&format!(
            "{written} {output}: {sessions} sessions, {messages} messages, {compactions} compactions, {facts} facts, {tokens} tokens",
        ))?;
        let query =
            format!("duckdb -c \"SELECT agent, sum(tokens) FROM '{output}/sessions.parquet' GROUP BY agent\"");
        screen.note(&screen.paint.faint(&query))
    })
}

#[cfg(not(feature = "parquet"))]
fn tables(_: &Engine, _: &[FoundSession], _: &Path, _: &mut Screen<'_>) -> Result<u8> {
    let what = "--parquet: expected a build with Parquet support, found one without; build it with \
                `cargo install epitome --features parquet`";
    Err(Error::new(ErrorKind::Arguments, what))
}

fn row(engine: &Engine, found: FoundSession, continued: &BTreeMap<String, String>) -> Result<SessionRow> {
    let ask = Ask::new(engine.config.default_profile()?);
    let named = SessionRef::Named(found.address());
    // An unreadable session is listed without a size; `estimate` tells why.
    let opened = engine::open_measured(engine, &named, None, None, ask.tokenizer());
    let estimate = opened.and_then(|it| engine::estimate(engine, &it, &ask, None)).ok();
    let directory = found.cwd.as_ref().map(|it| it.display().to_string());
    let scope = engine.scope_of(directory.clone().unwrap_or_default());
    let compactions = engine.store.compactions(&scope, Some(&found.id), COMPACTIONS)?;
    let compactions = compactions.into_iter().map(|it| CompactionRow {
        handle: it.handle.as_str().to_owned(),
        at: derive::time(it.at),
        profile: it.about.profile,
        tokens_before: it.about.tokens_before,
        tokens_after: it.about.tokens_after,
        session_id: it.applied.as_ref().and_then(|it| it.session.clone()),
        applied: it.applied.is_some(),
    });
    Ok(SessionRow {
        agent: found.agent.name(),
        path: found.address(),
        continued_as: continued.get(&found.id).cloned(),
        id: found.id,
        parent: found.parent,
        directory,
        changed: derive::time(found.changed_ms),
        first_words: found.first_words,
        context: estimate.as_ref().map(|it| it.context),
        used_percent: estimate.as_ref().and_then(|it| it.used_percent),
        advice: estimate.map(|it| it.advice.level),
        live: found.live,
        compactions: compactions.collect(),
    })
}

fn show(answer: &SessionsAnswer, screen: &mut Screen<'_>) -> Result<()> {
    let paint = screen.paint;
    if !answer.sessions.is_empty() {
        let mut rows = table(answer, paint);
        // Omit the column if all directories are the same.
        if answer.sessions.iter().all(|it| it.directory == answer.sessions[0].directory) {
            rows.iter_mut().for_each(|it| drop(it.remove(PROJECT)));
        }
        let (lines, _) = fitted(&rows, &["", "changed", "project", "context"], paint);
        for line in lines {
            screen.line(&line)?;
        }
        screen.line("")?;
    }
    screen.line(&format!("{}  {}", paint.strong(&answer.next), paint.faint(&format!("# {}", answer.why))))
}

/// Index of the column `project`.
const PROJECT: usize = 6;

/// The rows of the table; the first is the header.
fn table(answer: &SessionsAnswer, paint: Paint) -> Vec<Vec<String>> {
    let head = ["agent", "session", "full", "", "context", "changed", "project", "first words"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let ids = short_ids(answer.sessions.iter().map(|it| it.id.as_str()));
    for (it, id) in answer.sessions.iter().zip(ids) {
        let name = if it.parent.is_some() { format!("  └ {id}") } else { id.to_owned() };
        let live = if it.live { " (running)" } else { "" };
        let project = it.directory.as_deref().and_then(|it| Path::new(it).file_name());
        let words = match &it.continued_as {
            Some(new) => format!("continues as {new}"),
            None => it.first_words.clone(),
        };
        rows.push(vec![
            it.agent.to_owned(),
            format!("{name}{live}"),
            it.used_percent.map(|it| format!("{it:.0} %")).unwrap_or_default(),
            it.used_percent.map(|it| paint.gauge(it / 100.0, 10)).unwrap_or_default(),
            it.context.map_or_else(|| "?".to_owned(), size),
            minute(&it.changed),
            project.map(|it| it.to_string_lossy().into_owned()).unwrap_or_default(),
            words,
        ]);
        for compaction in &it.compactions {
            let what = if compaction.applied { "applied" } else { "made" };
            let to = compaction.session_id.as_ref().map(|it| format!(" as {it}")).unwrap_or_default();
            let mut row = vec![String::new(); head.len()];
            row[1] = format!("  ↺ {}", compaction.handle);
            row[4] = format!("{} → {}", size(compaction.tokens_before), size(compaction.tokens_after));
            row[5] = minute(&compaction.at);
            row[7] = format!("{what}{to} by {}", compaction.profile);
            rows.push(row);
        }
    }
    rows
}

/// The index of the fullest session that has not been continued as another one.
fn fullest(sessions: &[SessionRow]) -> Option<usize> {
    let full = |it: &SessionRow| it.used_percent.unwrap_or(0.0);
    let in_use = sessions
        .iter()
        .enumerate()
        .filter(|(_, it)| it.continued_as.is_none() && it.parent.is_none() && it.context.is_some());
    let most = in_use.max_by(|(_, a), (_, b)| full(a).total_cmp(&full(b)).then(a.context.cmp(&b.context)));
    most.map(|it| it.0)
}

/// The one command worth running for a session, and why.
fn worth_running(fullest: Option<&SessionRow>) -> Option<(String, String)> {
    let it = fullest?;
    let id = quoted(&it.id);
    if it.advice == Some(AdviceLevel::Room) {
        let why = "no session is close to its limit; this shows what uses the context".to_owned();
        return Some((format!("epitome estimate {id}"), why));
    }
    let percent = it.used_percent.map(|it| format!("{it:.0} % full; ")).unwrap_or_default();
    Some((format!("epitome compact {id}"), format!("{percent}a preview that changes nothing")))
}
