//! Sessions as tables, for programs that ask about many of them. They hold no text of a session.

use std::path::Path;

use serde_json::{Value, json};

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

/// Maximum compactions listed per session.
const MOST: u32 = 1_000;

/// Writes `sessions`, `messages`, `compactions`, `facts` and `tokens` of these sessions into `folder`,
/// creating it.
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
        let project = it.cwd.as_ref().map(|it| it.display().to_string());
        let known = json!({
            "agent": it.agent.name(), "session": it.id, "parent": it.parent, "project": project,
            "path": it.address(), "changed": it.changed_ms,
        });
        match open::open_measured(engine, &named, None, None, ask.tokenizer()) {
            Ok(opened) => put_session(engine, &mut tables, &known, &opened, &ask)?,
            Err(error) => tables.sessions.push(&known, &json!({"unreadable": error.code()}))?,
        }
        let scope = engine.scope_of(project.unwrap_or_default());
        put_compactions(&mut tables, &known, engine.store.compactions(&scope, Some(&it.id), MOST)?)?;
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

/// `known`: the columns known without reading the session, for all its rows.
fn put_session(
    engine: &Engine,
    tables: &mut Tables,
    known: &Value,
    opened: &Opened,
    ask: &Ask,
) -> Result<()> {
    let measured = measured::measure(engine, &opened.session, ask);
    let history = measured.history;
    let messages = history.messages();
    let times = history.meta.times;
    let session = json!({
        "model": history.meta.model, "begun": times.map(|it| it.0), "ended": times.map(|it| it.1),
        "bytes": opened.source.len(), "messages": messages.len(),
        "turns": messages.iter().filter(|it| it.is_prompt()).count(),
        "tool_calls": messages.iter().map(|it| it.calls().count()).sum::<usize>(),
        "tokens": measured.tokens, "overhead": measured.overhead, "window": measured.limits.window,
    });
    tables.sessions.push(known, &session)?;
    for (number, it) in messages.iter().enumerate() {
        let tools: Vec<&str> = it.calls().map(|it| &*it.name).collect();
        let message = json!({
            "message": number, "at": it.at, "role": it.role.name(), "kind": it.kind.name(),
            "tokens": measured.counter.message(it), "tools": (!tools.is_empty()).then(|| tools.join(",")),
            "outputs": it.outputs().count(), "failed": it.outputs().filter(|it| it.failed).count(),
        });
        tables.messages.push(known, &message)?;
    }
    for past in &opened.session.past {
        let compaction = json!({
            "by": "agent", "at": past.message.and_then(|it| messages.get(it)?.at), "trigger": past.trigger,
            "tokens_before": past.tokens_before, "tokens_after": past.tokens_after, "applied": true,
        });
        tables.compactions.push(known, &compaction)?;
    }
    let requests = sessions::requests::requests(&*opened.source, &opened.session)?;
    for (number, it) in requests.all.iter().enumerate() {
        let request = json!({
            "request": number, "sent": it.sent_at, "answered": it.at, "model": it.model,
            "input": it.usage.input, "output": it.usage.output, "cache_read": it.usage.cache_read,
            "cache_write": it.usage.cache_write, "reasoning": it.usage.reasoning,
            "after_compaction": it.compacted, "side": it.side,
        });
        tables.tokens.push(known, &request)?;
    }
    Ok(())
}

/// Epitome's own compactions, from the archive.
fn put_compactions(tables: &mut Tables, known: &Value, made: Vec<Compaction>) -> Result<()> {
    for Compaction { handle, at, about, applied, .. } in made {
        let compaction = json!({
            "by": "epitome", "handle": handle.as_str(), "at": at, "profile": about.profile, "trigger": about.trigger,
            "tokens_before": about.tokens_before, "tokens_after": about.tokens_after, "applied": applied.is_some(),
        });
        tables.compactions.push(known, &compaction)?;
        for it in about.facts {
            let facts =
                json!({"handle": handle.as_str(), "class": it.class, "found": it.found, "kept": it.kept});
            tables.facts.push(known, &facts)?;
        }
    }
    Ok(())
}
