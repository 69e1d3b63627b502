//! Sessions as tables, for programs that ask about many of them. No text of a session is in them.

use std::path::Path;

use serde_json::Value;

use super::parquet::ColumnType::{Bool, Int, Text, Time};
use super::parquet::{Columns, Table};
use crate::agents::FoundSession;
use crate::answers::TablesAnswer;
use crate::engine::{Ask, Engine, Opened, SessionRef, input::measured, input::open};
use crate::store::Compaction;
use history::error::Result;

const SESSIONS: Columns = &[
    ("agent", Text),
    ("session", Text),
    ("parent", Text),
    ("project", Text),
    ("path", Text),
    ("model", Text),
    ("begun", Time),
    ("ended", Time),
    ("changed", Time),
    ("bytes", Int),
    ("messages", Int),
    ("turns", Int),
    ("tool_calls", Int),
    ("tokens", Int),
    ("overhead", Int),
    ("window", Int),
    ("unreadable", Text),
];

const MESSAGES: Columns = &[
    ("agent", Text),
    ("session", Text),
    ("message", Int),
    ("at", Time),
    ("role", Text),
    ("kind", Text),
    ("tokens", Int),
    ("tools", Text),
    ("outputs", Int),
    ("failed", Int),
];

const COMPACTIONS: Columns = &[
    ("agent", Text),
    ("session", Text),
    ("by", Text),
    ("handle", Text),
    ("at", Time),
    ("profile", Text),
    ("trigger", Text),
    ("tokens_before", Int),
    ("tokens_after", Int),
    ("applied", Bool),
];

const FACTS: Columns =
    &[("agent", Text), ("session", Text), ("handle", Text), ("class", Text), ("found", Int), ("kept", Int)];

const TOKENS: Columns = &[
    ("agent", Text),
    ("session", Text),
    ("request", Int),
    ("sent", Time),
    ("answered", Time),
    ("model", Text),
    ("input", Int),
    ("output", Int),
    ("cache_read", Int),
    ("cache_write", Int),
    ("reasoning", Int),
    ("after_compaction", Bool),
    ("side", Bool),
];

struct Tables {
    sessions: Table,
    messages: Table,
    compactions: Table,
    facts: Table,
    tokens: Table,
}

/// Compactions of a session that are listed, at most.
const MOST: u32 = 1_000;

/// Writes `sessions`, `messages`, `compactions`, `facts` and `tokens` of these sessions into a folder, which is made.
///
/// # Errors
///
/// The folder cannot be written. A session that cannot be read is a row that says so.
pub fn tables(engine: &Engine, found: &[FoundSession], folder: &Path) -> Result<TablesAnswer> {
    crate::files::make_folder(folder, "making the folder of the tables")?;
    let create = |name: &str, columns| Table::create(&folder.join(format!("{name}.parquet")), columns);
    let mut tables = Tables {
        sessions: create("sessions", SESSIONS)?,
        messages: create("messages", MESSAGES)?,
        compactions: create("compactions", COMPACTIONS)?,
        facts: create("facts", FACTS)?,
        tokens: create("tokens", TOKENS)?,
    };
    let ask = Ask::new(engine.config.default_profile()?);
    for it in found {
        let named = SessionRef::Named(it.address());
        match open::open_measured(engine, &named, None, None, ask.tokenizer()) {
            Ok(opened) => put_session(engine, &mut tables, it, &opened, &ask)?,
            Err(error) => tables.sessions.push(unreadable_row(it, error.code()))?,
        }
        put_compactions(engine, &mut tables, it)?;
    }
    let Tables { sessions, messages, compactions, facts, tokens } = tables;
    Ok(TablesAnswer {
        output: folder.display().to_string(),
        sessions: sessions.finish()?,
        messages: messages.finish()?,
        compactions: compactions.finish()?,
        facts: facts.finish()?,
        tokens: tokens.finish()?,
    })
}

/// The first columns of a session's row: what is known of it before it is read.
fn session_row(found: &FoundSession) -> Vec<Value> {
    vec![
        found.agent.name().into(),
        found.id.as_str().into(),
        found.parent.as_deref().into(),
        found.cwd.as_ref().map(|it| it.display().to_string()).into(),
        found.address().into(),
    ]
}

fn unreadable_row(found: &FoundSession, why: &str) -> Vec<Value> {
    let mut row = session_row(found);
    row.extend(std::iter::repeat_n(Value::Null, 3));
    row.push(found.changed_ms.into());
    row.extend(std::iter::repeat_n(Value::Null, 7));
    row.push(why.into());
    row
}

fn put_session(
    engine: &Engine,
    tables: &mut Tables,
    found: &FoundSession,
    opened: &Opened,
    ask: &Ask,
) -> Result<()> {
    let measured = measured::measure(engine, &opened.session, ask);
    let history = measured.history;
    let messages = history.messages();
    let times = history.meta.times;
    let mut row = session_row(found);
    row.extend([
        history.meta.model.as_deref().into(),
        times.map(|it| it.0).into(),
        times.map(|it| it.1).into(),
        found.changed_ms.into(),
        opened.source.len().into(),
        messages.len().into(),
        messages.iter().filter(|it| it.is_prompt()).count().into(),
        messages.iter().map(|it| it.calls().count()).sum::<usize>().into(),
        measured.tokens.into(),
        measured.overhead.into(),
        measured.limits.window.into(),
        Value::Null,
    ]);
    tables.sessions.push(row)?;
    let (agent, id) = (found.agent.name(), found.id.as_str());
    for (number, message) in messages.iter().enumerate() {
        let tools: Vec<&str> = message.calls().map(|it| &*it.name).collect();
        tables.messages.push(vec![
            agent.into(),
            id.into(),
            number.into(),
            message.at.into(),
            message.role.name().into(),
            message.kind.name().into(),
            measured.counter.message(message).into(),
            (!tools.is_empty()).then(|| tools.join(",")).into(),
            message.outputs().count().into(),
            message.outputs().filter(|it| it.failed).count().into(),
        ])?;
    }
    for past in &opened.session.past {
        let at = past.message.and_then(|it| messages.get(it)?.at);
        tables.compactions.push(vec![
            agent.into(),
            id.into(),
            "agent".into(),
            Value::Null,
            at.into(),
            Value::Null,
            past.trigger.as_deref().into(),
            past.tokens_before.into(),
            past.tokens_after.into(),
            true.into(),
        ])?;
    }
    let requests = sessions::requests::requests(&*opened.source, &opened.session)?;
    for (number, it) in requests.all.iter().enumerate() {
        tables.tokens.push(vec![
            agent.into(),
            id.into(),
            number.into(),
            it.sent_at.into(),
            it.at.into(),
            it.model.as_deref().into(),
            it.usage.input.into(),
            it.usage.output.into(),
            it.usage.cache_read.into(),
            it.usage.cache_write.into(),
            it.usage.reasoning.into(),
            it.compacted.into(),
            it.side.into(),
        ])?;
    }
    Ok(())
}

/// Ours, as the archive has them.
fn put_compactions(engine: &Engine, tables: &mut Tables, found: &FoundSession) -> Result<()> {
    let project = found.cwd.as_ref().map(|it| it.display().to_string()).unwrap_or_default();
    let scope = engine.scope_of(project);
    let (agent, id) = (found.agent.name(), found.id.as_str());
    for Compaction { handle, at, about, applied, .. } in engine.store.compactions(&scope, Some(id), MOST)? {
        tables.compactions.push(vec![
            agent.into(),
            id.into(),
            "epitome".into(),
            handle.as_str().into(),
            at.into(),
            about.profile.into(),
            about.trigger.into(),
            about.tokens_before.into(),
            about.tokens_after.into(),
            applied.is_some().into(),
        ])?;
        for it in about.facts {
            tables.facts.push(vec![
                agent.into(),
                id.into(),
                handle.as_str().into(),
                it.class.into(),
                it.found.into(),
                it.kept.into(),
            ])?;
        }
    }
    Ok(())
}
