//! `epitome sessions`.

use std::path::Path;

use clap::Args;
use serde::Serialize;

use super::Screen;
use super::paint::{short_ids, size, table};
use crate::agents::Found;
use crate::answers::CONTRACT;
use crate::engine::Engine;
use crate::store::Scope;
use history::error::Result;
use sessions::derive;

/// Arguments of `sessions`.
#[derive(Debug, Args)]
pub struct SessionsArgs {
    /// Only those of this directory
    #[arg(long)]
    here: bool,
    /// Only those of this agent
    #[arg(long)]
    agent: Option<String>,
    /// Maximum number of sessions
    #[arg(long, default_value_t = 30)]
    limit: usize,
}

#[derive(Serialize)]
struct Answer {
    contract: u32,
    sessions: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    agent: &'static str,
    id: String,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    directory: Option<String>,
    changed: String,
    first_words: String,
    live: bool,
    compactions: Vec<Made>,
}

/// A compaction that we made of a session.
#[derive(Serialize)]
struct Made {
    handle: String,
    at: String,
    profile: String,
    tokens_before: u64,
    tokens_after: u64,
    applied: bool,
    /// The session that goes on from it, where that is another.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
}

pub(super) fn run(engine: &Engine, arguments: &SessionsArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let mut found = engine.sessions(arguments.agent.as_deref(), arguments.here)?;
    let all = found.len();
    found.truncate(arguments.limit);
    let sessions = found.iter().map(|it| row(engine, it)).collect::<Result<Vec<_>>>()?;
    let answer = Answer { contract: CONTRACT, sessions };
    if screen.json(&answer)? {
        return Ok(0);
    }
    if answer.sessions.is_empty() {
        screen.line("no sessions were found; `epitome doctor` says where was looked")?;
        return Ok(0);
    }
    let mut rows =
        vec![["agent", "session", "changed", "project", "first words"].map(str::to_owned).to_vec()];
    let ids = short_ids(answer.sessions.iter().map(|it| it.id.as_str()));
    for (it, id) in answer.sessions.iter().zip(ids) {
        let name = if it.parent.is_some() { format!("  └ {id}") } else { id.to_owned() };
        let project = it.directory.as_deref().and_then(|it| Path::new(it).file_name());
        let project = project.map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
        let live = if it.live { " (running)" } else { "" };
        let changed = it.changed.get(..16).unwrap_or_default().replace('T', " ");
        let session = format!("{name}{live}");
        rows.push(vec![it.agent.to_owned(), session, changed, project, it.first_words.clone()]);
        for made in &it.compactions {
            let sizes = format!("{} → {}", size(made.tokens_before), size(made.tokens_after));
            let what = if made.applied { "applied" } else { "made" };
            let to = made.session_id.as_ref().map(|it| format!(" as {it}")).unwrap_or_default();
            let at = made.at.get(..16).unwrap_or_default().replace('T', " ");
            rows.push(vec![
                String::new(),
                format!("  ↺ {}", made.handle),
                at,
                String::new(),
                format!("{what}{to}: {sizes} by {}", made.profile),
            ]);
        }
    }
    for line in table(&rows, screen.paint) {
        screen.line(&line)?;
    }
    if all > answer.sessions.len() {
        screen.note(&format!("… and {} older ones (--limit)", all - answer.sessions.len()))?;
    }
    Ok(0)
}

fn row(engine: &Engine, found: &Found) -> Result<Row> {
    let directory = found.cwd.as_ref().map(|it| it.display().to_string());
    let scope = Scope { owner: engine.config.owner.clone(), project: directory.clone().unwrap_or_default() };
    let made = engine.store.compactions(&scope, Some(&found.id), 5)?;
    let compactions = made.into_iter().map(|it| Made {
        handle: it.handle.as_str().to_owned(),
        at: derive::time(it.at),
        profile: it.profile,
        tokens_before: it.tokens_before,
        tokens_after: it.tokens_after,
        session_id: it.applied.as_ref().and_then(|it| it.session.clone()),
        applied: it.applied.is_some(),
    });
    Ok(Row {
        agent: found.agent.name(),
        id: found.id.clone(),
        path: found.address(),
        parent: found.parent.clone(),
        directory,
        changed: derive::time(found.changed_ms),
        first_words: found.first_words.clone(),
        live: found.live,
        compactions: compactions.collect(),
    })
}
