//! `epitome memory`: notes on the user and the project, and how long the archive keeps things.

use std::io::Read;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::Screen;
use crate::cli::paint::table;
use crate::config::byte_size;
use crate::engine::values::timestamp;
use crate::engine::{Engine, keep};
use crate::store::{
    Memory, MemoryFilter, MemoryKind, MemoryScope, Note, Query, Retention, SearchExtent, Tidied, What, memory,
};
use history::error::{Error, Kind, Result};
use sessions::derive;

/// Entries of the audit log that are listed unless `--limit` says otherwise.
const AUDITED: u32 = 100;

/// Sessions that `gc` names; the others are counted.
const SESSIONS_NAMED: usize = 20;

#[derive(Debug, Args)]
pub struct MemoryArgs {
    #[command(subcommand)]
    command: MemoryCommand,
    /// user (in every project) or project [default: both; new ones are the project's]
    #[arg(long, global = true, value_name = "user|project")]
    scope: Option<String>,
    /// Only of this type: project-config, architecture, error-solution, preference, learned-pattern, conversation
    #[arg(long = "type", global = true, value_name = "TYPE")]
    kind: Option<String>,
    /// Maximum number of results
    #[arg(long, global = true)]
    limit: Option<u32>,
}

#[derive(Debug, Subcommand)]
enum MemoryCommand {
    /// List them, the newest first
    List {
        /// Only those that go into every summary
        #[arg(long)]
        pinned: bool,
    },
    /// Print one memory in full
    Show {
        /// Handle of the memory
        handle: String,
    },
    /// Remember something (- reads standard input)
    Add {
        /// The text; what is between <private> and </private>, and what looks like a secret, is left out
        #[arg(required = true)]
        text: Vec<String>,
        /// Put it into every summary
        #[arg(long)]
        pin: bool,
        /// A label; may be repeated
        #[arg(long)]
        tag: Vec<String>,
    },
    /// Put a memory into every summary, or keep an archived session or compaction whatever its age
    Pin {
        /// Handle of the memory
        handle: String,
        /// Unpin it
        #[arg(long)]
        off: bool,
    },
    /// Delete a memory
    Forget {
        /// Handle of the memory
        handle: String,
    },
    /// Find those that contain these words
    Search {
        /// Words to look for
        #[arg(required = true)]
        query: Vec<String>,
    },
    /// Print all as JSON or Markdown
    Export {
        /// Markdown instead of JSON
        #[arg(long)]
        markdown: bool,
    },
    /// Remember what `export` wrote, or the points and paragraphs of any Markdown such as AGENTS.md (- reads standard input)
    Import {
        /// File to read
        file: String,
        /// Put all of them into every summary
        #[arg(long)]
        pin: bool,
    },
    /// Merge duplicates; the newer one is kept
    Tidy {
        /// Only show what would be merged
        #[arg(long)]
        dry_run: bool,
    },
    /// Merge duplicates and delete archived originals that are too old or too large
    Gc {
        /// Delete originals and compactions stored before this: 90d, 12w, or a time (RFC 3339)
        #[arg(long, value_name = "AGE|TIME")]
        before: Option<String>,
        /// Delete the oldest originals until the archive is no larger than this: 500MB, 2GB
        #[arg(long, value_name = "SIZE", value_parser = byte_size)]
        max_bytes: Option<u64>,
        /// Only show what would be deleted
        #[arg(long)]
        dry_run: bool,
    },
    /// List what was done with the archive: who compacted, restored, read what, and when
    Audit {
        /// Only what is newer: an age (7d, 4w), a day or a time (RFC 3339)
        #[arg(long, value_name = "WHEN")]
        since: Option<String>,
        /// What everybody did, of a team's store
        #[arg(long)]
        everybody: bool,
    },
}

/// Which memories the options of every subcommand choose.
struct Filter {
    scope: Option<MemoryScope>,
    kind: Option<MemoryKind>,
    limit: Option<u32>,
}

pub(in crate::cli) fn run(engine: &Engine, arguments: &MemoryArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let filter = Filter {
        scope: arguments.scope.as_deref().map(scope).transpose()?,
        kind: arguments.kind.as_deref().map(MemoryKind::named).transpose()?,
        limit: arguments.limit,
    };
    match &arguments.command {
        MemoryCommand::List { pinned } => list(engine, &filter, *pinned, screen)?,
        MemoryCommand::Show { handle } => show(engine, handle, screen)?,
        MemoryCommand::Add { text, pin, tag } => add(engine, &filter, text, *pin, tag, screen)?,
        MemoryCommand::Pin { handle, off } => pin(engine, handle, !*off, screen)?,
        MemoryCommand::Forget { handle } => forget(engine, handle, screen)?,
        MemoryCommand::Search { query } => search(engine, &filter, query, screen)?,
        MemoryCommand::Export { markdown } => export(engine, &filter, *markdown, screen)?,
        MemoryCommand::Import { file, pin } => return import(engine, &filter, file, *pin, screen),
        MemoryCommand::Tidy { dry_run } => tidy(engine, *dry_run, screen)?,
        MemoryCommand::Gc { before, max_bytes, dry_run } => {
            let retention = match (before, max_bytes) {
                (None, None) => keep::retention(engine),
                (before, max_bytes) => Retention {
                    before: before.as_deref().map(|it| time("--before", it, engine.now)).transpose()?,
                    max_bytes: *max_bytes,
                    originals_only: false,
                },
            };
            collect(engine, &retention, *dry_run, screen)?;
        }
        MemoryCommand::Audit { since, everybody } => {
            audit(engine, &filter, since.as_deref(), *everybody, screen)?;
        }
    }
    Ok(0)
}

fn list(engine: &Engine, filter: &Filter, pinned: bool, screen: &mut Screen<'_>) -> Result<()> {
    let limit = filter.limit.or(Some(50));
    let wanted = MemoryFilter { scope: filter.scope, kind: filter.kind, pinned, limit, offset: 0 };
    let all = engine.store.memories(&engine.project(), &wanted)?;
    if screen.json(&json!({"memories": all}))? {
        return Ok(());
    }
    if all.is_empty() {
        return screen.line("nothing is remembered of this project; `epitome memory add TEXT` remembers");
    }
    let mut rows = vec![["handle", "what", "text"].map(str::to_owned).to_vec()];
    for it in &all {
        let words: String =
            it.content.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(90).collect();
        rows.push(vec![it.id.as_str().to_owned(), about(it), words]);
    }
    for line in table(&rows, screen.paint) {
        screen.line(&line)?;
    }
    Ok(())
}

fn show(engine: &Engine, handle: &str, screen: &mut Screen<'_>) -> Result<()> {
    let scope = engine.store.locate(handle, &engine.config.owner)?;
    let memory = engine.store.memory(&scope, handle)?;
    if screen.json(&json!({"memory": memory}))? {
        return Ok(());
    }
    screen.note(&screen.paint.faint(&about(&memory)))?;
    screen.block(&memory.content)
}

fn add(
    engine: &Engine,
    filter: &Filter,
    text: &[String],
    pinned: bool,
    tags: &[String],
    screen: &mut Screen<'_>,
) -> Result<()> {
    let note = Note {
        content: if text == ["-"] { input("-")? } else { text.join(" ") },
        kind: filter.kind.unwrap_or_default(),
        scope: filter.scope.unwrap_or_default(),
        pinned,
        tags: tags.to_vec(),
        session: None,
        created: None,
    };
    let memory = engine.store.remember(&engine.project(), &note, engine.now)?;
    if screen.json(&json!({"memory": memory}))? {
        return Ok(());
    }
    screen.line(&format!("remembered as {}", screen.paint.strong(memory.id.as_str())))
}

fn pin(engine: &Engine, handle: &str, pinned: bool, screen: &mut Screen<'_>) -> Result<()> {
    let store = &engine.store;
    let scope = store.locate(handle, &engine.config.owner)?;
    store.pin(&scope, handle, pinned)?;
    let entry = store.entry(&scope, handle)?;
    if entry.what == What::Memory {
        let memory = store.memory(&scope, handle)?;
        if screen.json(&json!({"memory": memory}))? {
            return Ok(());
        }
        return screen.line(if pinned {
            "in every summary from now on"
        } else {
            "no longer in every summary"
        });
    }
    if screen.json(&json!({"pinned": pinned, "entry": entry}))? {
        return Ok(());
    }
    screen.line(if pinned { "stays in the archive from now on" } else { "may be deleted by `memory gc`" })
}

fn forget(engine: &Engine, handle: &str, screen: &mut Screen<'_>) -> Result<()> {
    let scope = engine.store.locate(handle, &engine.config.owner)?;
    engine.store.forget(&scope, handle)?;
    if screen.json(&json!({"forgotten": handle}))? {
        return Ok(());
    }
    screen.line("forgotten")
}

fn search(engine: &Engine, filter: &Filter, words: &[String], screen: &mut Screen<'_>) -> Result<()> {
    let query = Query {
        text: words.join(" "),
        extent: SearchExtent::Project,
        only: vec![What::Memory],
        limit: filter.limit.unwrap_or(10),
        offset: 0,
    };
    let mut found = engine.store.search(&engine.project(), &query)?;
    if let Some(scope) = filter.scope {
        // The user's own are in no project.
        found.hits.retain(|it| (scope == MemoryScope::User) == it.entry.project.is_empty());
    }
    if screen.json(&json!({"hits": found.hits, "partial": found.partial}))? {
        return Ok(());
    }
    if found.hits.is_empty() {
        screen.line("nothing remembered holds these words; `epitome recall` searches the archive too")?;
    }
    for hit in &found.hits {
        let handle = screen.paint.strong(hit.entry.handle.as_str());
        screen.line(&format!("{handle}  {}", hit.snippet.text))?;
    }
    Ok(())
}

fn export(engine: &Engine, filter: &Filter, markdown: bool, screen: &mut Screen<'_>) -> Result<()> {
    let wanted = MemoryFilter { scope: filter.scope, kind: filter.kind, ..MemoryFilter::default() };
    let all = engine.store.memories(&engine.project(), &wanted)?;
    let text = if markdown { memory::to_markdown(&all) } else { memory::to_json(&all) };
    screen.exact(&mut format!("{}\n", text.trim_end()).as_bytes())
}

/// The exit code: 1 if a note was refused.
fn import(engine: &Engine, filter: &Filter, file: &str, pinned: bool, screen: &mut Screen<'_>) -> Result<u8> {
    let text = input(file)?;
    let is_json = text.trim_start().starts_with(['{', '[']) && !file.ends_with(".md");
    let mut notes = if is_json { memory::from_json(&text)? } else { memory::from_markdown(&text) };
    for note in &mut notes {
        note.pinned |= pinned;
        note.scope = filter.scope.unwrap_or(note.scope);
        note.kind = filter.kind.unwrap_or(note.kind);
    }
    let done = engine.store.import(&engine.project(), &notes, engine.now)?;
    if !screen.json(&json!({"imported": done}))? {
        screen.line(&format!(
            "{} remembered, {} known before, {} refused",
            done.added,
            done.known,
            done.refused.len()
        ))?;
        for (number, why) in &done.refused {
            screen.line(&format!("  note {number}: {why}"))?;
        }
    }
    Ok(u8::from(!done.refused.is_empty()))
}

fn tidy(engine: &Engine, dry_run: bool, screen: &mut Screen<'_>) -> Result<()> {
    let tidied = engine.store.tidy(&engine.project(), dry_run)?;
    if screen.json(&json!({"tidied": tidied, "dry_run": dry_run}))? {
        return Ok(());
    }
    if tidied.is_empty() {
        screen.line("no two memories say the same")?;
    }
    merged(&tidied, dry_run, screen)
}

fn collect(engine: &Engine, retention: &Retention, dry_run: bool, screen: &mut Screen<'_>) -> Result<()> {
    let tidied = engine.store.tidy(&engine.project(), dry_run)?;
    let gone = engine.store.collect(retention, engine.now, dry_run)?;
    if !dry_run && gone.bytes > 0 {
        engine.store.vacuum()?;
    }
    if screen.json(&json!({"tidied": tidied, "collected": gone, "dry_run": dry_run}))? {
        return Ok(());
    }
    merged(&tidied, dry_run, screen)?;
    let (deleted, freed) = if dry_run { ("would be deleted", "would be free") } else { ("deleted", "free") };
    screen.line(&format!(
        "{deleted}: {} compactions, {} originals, {} superseded memories, {} expired marks; {} bytes {freed}",
        gone.compactions, gone.originals, gone.memories, gone.expired, gone.bytes
    ))?;
    for it in gone.sessions.iter().take(SESSIONS_NAMED) {
        let stored = derive::time(it.at);
        let day = stored.get(..10).unwrap_or_default();
        screen.line(&format!("  {}  {day}  {}  {}", it.handle, it.session, it.project))?;
    }
    if gone.sessions.len() > SESSIONS_NAMED {
        let more = gone.sessions.len() - SESSIONS_NAMED;
        screen.note(&format!("  … and {more} more sessions (--json lists all)"))?;
    }
    if retention.before.is_none() && retention.max_bytes.is_none() {
        let note = "nothing archived is deleted without --before 90d or --max-bytes 2GB";
        screen.note(&screen.paint.faint(note))?;
    }
    Ok(())
}

fn audit(
    engine: &Engine,
    filter: &Filter,
    since: Option<&str>,
    everybody: bool,
    screen: &mut Screen<'_>,
) -> Result<()> {
    let owner = (!everybody).then_some(engine.config.owner.as_str());
    let since = since.map(|it| time("--since", it, engine.now)).transpose()?;
    let done = engine.store.audit(owner, since, filter.limit.unwrap_or(AUDITED))?;
    if screen.json(&json!({"audit": done}))? {
        return Ok(());
    }
    if done.is_empty() {
        return screen.line("nothing was done with the archive in that time");
    }
    let mut rows = vec![
        ["when", "who", "what", "by", "agent", "handle", "session", "project"].map(str::to_owned).to_vec(),
    ];
    rows.extend(done.into_iter().map(|it| {
        let when = derive::time(it.at);
        vec![
            when.get(..19).unwrap_or_default().replace('T', " "),
            it.owner,
            it.verb.name().to_owned(),
            it.face.name().to_owned(),
            it.agent.unwrap_or_default(),
            it.handle.unwrap_or_default(),
            it.session.unwrap_or_default(),
            it.project,
        ]
    }));
    for line in table(&rows, screen.paint) {
        screen.line(&line)?;
    }
    Ok(())
}

fn scope(name: &str) -> Result<MemoryScope> {
    match name {
        "user" => Ok(MemoryScope::User),
        "project" => Ok(MemoryScope::Project),
        other => {
            Err(Error::new(Kind::Arguments, format!("--scope: expected user or project, found {other:?}")))
        }
    }
}

/// The value of an option as milliseconds since 1970.
fn time(option: &str, text: &str, now: i64) -> Result<i64> {
    timestamp(text, now).ok_or_else(|| {
        let what = format!(
            "{option}: expected an age (90d, 12w) or a time such as 2026-01-31T12:00:00Z, found {text:?}"
        );
        Error::new(Kind::Arguments, what)
    })
}

fn merged(tidied: &[Tidied], dry_run: bool, screen: &mut Screen<'_>) -> Result<()> {
    let would = if dry_run { "would be " } else { "" };
    for it in tidied {
        let old: Vec<&str> = it.superseded.iter().map(|it| it.as_str()).collect();
        screen.line(&format!("{} {would}merged into {}: {}", old.join(", "), it.kept, it.why))?;
    }
    Ok(())
}

fn input(name: &str) -> Result<String> {
    let mut text = String::new();
    let read = match name {
        "-" => std::io::stdin().read_to_string(&mut text).map(drop),
        path => std::fs::read_to_string(path).map(|it| text = it),
    };
    read.map_err(|error| Error::new(Kind::Input, "reading what to remember").at(name, None).because(error))?;
    Ok(text)
}

fn about(it: &Memory) -> String {
    let whose = if it.scope == MemoryScope::User { "user" } else { "project" };
    let pinned = if it.pinned { " · pinned" } else { "" };
    let created = derive::time(it.created);
    format!(
        "{} · {whose} · {}{pinned}",
        it.kind.name(),
        created.get(..16).unwrap_or_default().replace('T', " ")
    )
}
