//! `epitome memory`: notes on the user and the project, and how long the archive keeps things.

use clap::{Args, Subcommand};
use serde_json::json;

use crate::config::byte_size;
use crate::engine::values::timestamp;
use crate::engine::{Engine, keep};
use crate::interfaces::cli::Screen;
use crate::interfaces::cli::common::{minute, read_text_or_stdin};
use crate::interfaces::cli::paint::bytes;
use crate::store::{
    Collected, Entry, ItemKind, Memory, MemoryFilter, MemoryKind, MemoryScope, NewMemory, Query, Retention,
    SearchExtent, Tidied, memory,
};
use history::error::{Error, ErrorKind, Result};
use sessions::derive;

/// Default limit of listed audit log entries.
const AUDITED: u32 = 100;

/// What was being done, for an error about an unreadable text.
const REMEMBERING: &str = "reading what to remember";

/// Minimum hits to fetch per search: filters may drop some.
const AT_ONCE: u32 = 100;

/// Maximum sessions that `gc` lists; the others are only counted.
const SESSIONS_NAMED: usize = 20;

#[derive(Debug, Args)]
pub struct MemoryArgs {
    #[command(subcommand)]
    command: MemoryCommand,
}

/// Whose memories, and of which type.
#[derive(Debug, Args)]
struct Sort {
    /// user (for every project) or project [default: both; new memories belong to the project]
    #[arg(long, value_name = "user|project", value_parser = scope)]
    scope: Option<MemoryScope>,
    /// project-config, architecture, error-solution, preference, learned-pattern or conversation
    #[arg(long = "type", value_name = "TYPE", value_parser = MemoryKind::named)]
    kind: Option<MemoryKind>,
}

/// Which memories.
#[derive(Debug, Args)]
struct Filter {
    #[command(flatten)]
    of: Sort,
    /// Maximum number of results
    #[arg(long)]
    limit: Option<u32>,
}

#[derive(Debug, Subcommand)]
enum MemoryCommand {
    /// List memories, newest first
    List {
        #[command(flatten)]
        filter: Filter,
        /// Only pinned memories, which go into every summary
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
        #[command(flatten)]
        sort: Sort,
        /// The text; anything between <private> and </private>, or that looks like a secret, is removed
        #[arg(required = true)]
        text: Vec<String>,
        /// Include it in every summary
        #[arg(long)]
        pin: bool,
        /// A label; may be repeated
        #[arg(long)]
        tag: Vec<String>,
    },
    /// Include a memory in every summary, or keep an archived session or compaction whatever its age
    Pin {
        /// Handle of the memory, session or compaction
        handle: String,
        /// Undo this
        #[arg(long)]
        off: bool,
    },
    /// Delete a memory
    Forget {
        /// Handle of the memory
        handle: String,
    },
    /// Search memories for words
    Search {
        #[command(flatten)]
        filter: Filter,
        /// Words to look for
        #[arg(required = true)]
        query: Vec<String>,
    },
    /// Print memories as JSON or Markdown
    Export {
        #[command(flatten)]
        filter: Filter,
        /// Markdown instead of JSON
        #[arg(long)]
        markdown: bool,
    },
    /// Import memories that `export` wrote, or the list items and paragraphs of any Markdown file such as AGENTS.md
    Import {
        #[command(flatten)]
        sort: Sort,
        /// File to read (- for standard input)
        file: String,
        /// Include all of them in every summary
        #[arg(long)]
        pin: bool,
    },
    /// Merge duplicates; the newer one is kept
    Tidy {
        /// user (for every project) or project [default: both]
        #[arg(long, value_name = "user|project", value_parser = scope)]
        scope: Option<MemoryScope>,
        /// Only show what would be merged
        #[arg(long)]
        dry_run: bool,
    },
    /// Merge duplicates and delete archived originals that are too old or too large
    Gc {
        /// Delete originals and compactions older than this: an age (90d, 12w) or a time (RFC 3339)
        #[arg(long, value_name = "AGE|TIME")]
        before: Option<String>,
        /// Delete the oldest originals until the archive is no larger than this: 500MB, 2GB
        #[arg(long, value_name = "SIZE", value_parser = byte_size)]
        max_bytes: Option<u64>,
        /// Only show what would be deleted
        #[arg(long)]
        dry_run: bool,
    },
    /// List who compacted, restored or read what in the archive, and when
    Audit {
        /// Only entries newer than this: an age (7d, 4w), a day or a time (RFC 3339)
        #[arg(long, value_name = "WHEN")]
        since: Option<String>,
        /// Entries of all users of a team's store
        #[arg(long)]
        everybody: bool,
        /// Maximum number of results
        #[arg(long, default_value_t = AUDITED)]
        limit: u32,
    },
}

pub(crate) fn run(engine: &Engine, arguments: &MemoryArgs, screen: &mut Screen<'_>) -> Result<u8> {
    match &arguments.command {
        MemoryCommand::List { filter, pinned } => list(engine, filter, *pinned, screen)?,
        MemoryCommand::Show { handle } => show(engine, handle, screen)?,
        MemoryCommand::Add { sort, text, pin, tag } => add(engine, sort, text, *pin, tag, screen)?,
        MemoryCommand::Pin { handle, off } => pin(engine, handle, !*off, screen)?,
        MemoryCommand::Forget { handle } => forget(engine, handle, screen)?,
        MemoryCommand::Search { filter, query } => search(engine, filter, query, screen)?,
        MemoryCommand::Export { filter, markdown } => export(engine, filter, *markdown, screen)?,
        MemoryCommand::Import { sort, file, pin } => return import(engine, sort, file, *pin, screen),
        MemoryCommand::Tidy { scope, dry_run } => tidy(engine, *scope, *dry_run, screen)?,
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
        MemoryCommand::Audit { since, everybody, limit } => {
            audit(engine, since.as_deref(), *everybody, *limit, screen)?;
        }
    }
    Ok(0)
}

fn list(engine: &Engine, filter: &Filter, pinned: bool, screen: &mut Screen<'_>) -> Result<()> {
    let limit = filter.limit.or(Some(50));
    let wanted = MemoryFilter { scope: filter.of.scope, kind: filter.of.kind, pinned, limit };
    let all = engine.store.memories(&engine.project(), &wanted)?;
    if screen.json(&json!({"memories": all}))? {
        return Ok(());
    }
    if all.is_empty() {
        return screen.line("no memories for this project; `epitome memory add TEXT` adds one");
    }
    let rows = all.iter().map(|it| {
        let words: String = history::one_line(&it.content).chars().take(90).collect();
        vec![it.id.as_str().to_owned(), about(it), words]
    });
    screen.table(&["handle", "what", "text"], rows, &[])
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
    sort: &Sort,
    text: &[String],
    pinned: bool,
    tags: &[String],
    screen: &mut Screen<'_>,
) -> Result<()> {
    let note = NewMemory {
        content: if text == ["-"] { read_text_or_stdin("-", REMEMBERING)? } else { text.join(" ") },
        kind: sort.kind.unwrap_or_default(),
        scope: sort.scope.unwrap_or_default(),
        pinned,
        tags: tags.to_vec(),
        session: None,
        created: None,
    };
    let memory = engine.store.remember(&engine.project(), &note, engine.now)?;
    let text = format!("remembered as {}", screen.paint.strong(memory.id.as_str()));
    screen.sentence(&json!({"memory": memory}), &text)
}

fn pin(engine: &Engine, handle: &str, pinned: bool, screen: &mut Screen<'_>) -> Result<()> {
    let store = &engine.store;
    let scope = store.locate(handle, &engine.config.owner)?;
    store.pin(&scope, handle, pinned)?;
    let entry = store.entry(&scope, handle)?;
    if entry.kind == ItemKind::Memory {
        let memory = store.memory(&scope, handle)?;
        let text = if pinned { "in every summary from now on" } else { "no longer in every summary" };
        return screen.sentence(&json!({"memory": memory}), text);
    }
    let text = if pinned { "stays in the archive from now on" } else { "may be deleted by `memory gc`" };
    screen.sentence(&json!({"pinned": pinned, "entry": entry}), text)
}

fn forget(engine: &Engine, handle: &str, screen: &mut Screen<'_>) -> Result<()> {
    let scope = engine.store.locate(handle, &engine.config.owner)?;
    engine.store.forget(&scope, handle)?;
    screen.sentence(&json!({"forgotten": handle}), "forgotten")
}

fn search(engine: &Engine, filter: &Filter, words: &[String], screen: &mut Screen<'_>) -> Result<()> {
    let limit = filter.limit.unwrap_or(10);
    let mut query = Query {
        text: words.join(" "),
        extent: SearchExtent::Project,
        only: vec![ItemKind::Memory],
        limit: limit.max(AT_ONCE),
        offset: 0,
    };
    let (mut hits, mut partial) = (Vec::new(), false);
    loop {
        let found = engine.store.search(&engine.project(), &query)?;
        partial |= found.partial;
        for hit in found.hits {
            if is_of(engine, &filter.of, &hit.entry)? {
                hits.push(hit);
            }
        }
        match found.next {
            Some(next) if hits.len() < limit as usize => query.offset = next,
            Some(_) | None => break,
        }
    }
    hits.truncate(limit as usize);
    if screen.json(&json!({"hits": hits, "partial": partial}))? {
        return Ok(());
    }
    if hits.is_empty() {
        screen.line("no memory contains these words; `epitome recall` searches the archive too")?;
    }
    for hit in &hits {
        let handle = screen.paint.strong(hit.entry.handle.as_str());
        screen.line(&format!("{handle}  {}", hit.snippet.text))?;
    }
    Ok(())
}

/// Whether a found memory has the wanted scope and type.
fn is_of(engine: &Engine, sort: &Sort, entry: &Entry) -> Result<bool> {
    // Memories of scope `user` have no project.
    let of_user = entry.project.is_empty();
    if sort.scope.is_some_and(|it| (it == MemoryScope::User) != of_user) {
        return Ok(false);
    }
    let Some(kind) = sort.kind else { return Ok(true) };
    let handle = entry.handle.as_str();
    let scope = engine.store.locate(handle, &engine.config.owner)?;
    Ok(engine.store.memory(&scope, handle)?.kind == kind)
}

fn export(engine: &Engine, filter: &Filter, markdown: bool, screen: &mut Screen<'_>) -> Result<()> {
    let Filter { of, limit } = filter;
    let wanted = MemoryFilter { scope: of.scope, kind: of.kind, limit: *limit, ..MemoryFilter::default() };
    let all = engine.store.memories(&engine.project(), &wanted)?;
    let text = if markdown { memory::to_markdown(&all) } else { memory::to_json(&all) };
    screen.exact(&mut format!("{}\n", text.trim_end()).as_bytes())
}

/// The exit code: 1 if a note was refused.
fn import(engine: &Engine, sort: &Sort, file: &str, pinned: bool, screen: &mut Screen<'_>) -> Result<u8> {
    let text = read_text_or_stdin(file, REMEMBERING)?;
    let is_json = text.trim_start().starts_with(['{', '[']) && !file.ends_with(".md");
    let mut notes = if is_json { memory::from_json(&text)? } else { memory::from_markdown(&text) };
    for note in &mut notes {
        note.pinned |= pinned;
        note.scope = sort.scope.unwrap_or(note.scope);
        note.kind = sort.kind.unwrap_or(note.kind);
    }
    let done = engine.store.import(&engine.project(), &notes, engine.now)?;
    if !screen.json(&json!({"imported": done}))? {
        screen.line(&format!(
            "{} imported, {} already known, {} refused",
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

fn tidy(engine: &Engine, scope: Option<MemoryScope>, dry_run: bool, screen: &mut Screen<'_>) -> Result<()> {
    let tidied = engine.store.tidy(&engine.project(), scope, dry_run)?;
    if screen.json(&json!({"tidied": tidied, "dry_run": dry_run}))? {
        return Ok(());
    }
    if tidied.is_empty() {
        screen.line("no duplicate memories")?;
    }
    merged(&tidied, dry_run, screen)
}

fn collect(engine: &Engine, retention: &Retention, dry_run: bool, screen: &mut Screen<'_>) -> Result<()> {
    let tidied = engine.store.tidy(&engine.project(), None, dry_run)?;
    let gone = engine.store.collect(retention, engine.now, dry_run)?;
    if !dry_run && gone.bytes > 0 {
        engine.store.vacuum()?;
    }
    if screen.json(&json!({"tidied": tidied, "collected": gone, "dry_run": dry_run}))? {
        return Ok(());
    }
    merged(&tidied, dry_run, screen)?;
    collected(&gone, dry_run, screen)?;
    if retention.before.is_none() && retention.max_bytes.is_none() {
        let note = "no archived originals are deleted without --before 90d or --max-bytes 2GB";
        screen.note(&screen.paint.faint(note))?;
    }
    Ok(())
}

fn collected(gone: &Collected, dry_run: bool, screen: &mut Screen<'_>) -> Result<()> {
    let (deleted, freed) = if dry_run { ("would be deleted", "would free") } else { ("deleted", "freed") };
    screen.line(&format!(
        "{deleted}: {} compactions, {} originals, {} superseded memories, {} expired marks; {freed} {}",
        gone.compactions,
        gone.originals,
        gone.memories,
        gone.expired,
        bytes(gone.bytes)
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
    Ok(())
}

fn audit(
    engine: &Engine,
    since: Option<&str>,
    everybody: bool,
    limit: u32,
    screen: &mut Screen<'_>,
) -> Result<()> {
    let owner = (!everybody).then_some(engine.config.owner.as_str());
    let since = since.map(|it| time("--since", it, engine.now)).transpose()?;
    let done = engine.store.audit(owner, since, limit)?;
    if screen.json(&json!({"audit": done}))? {
        return Ok(());
    }
    if done.is_empty() {
        return screen.line("no archive activity in that time");
    }
    let rows = done.into_iter().map(|it| {
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
    });
    screen.table(&["when", "who", "what", "by", "agent", "handle", "session", "project"], rows, &[])
}

fn scope(name: &str) -> Result<MemoryScope> {
    MemoryScope::find(name)
        .ok_or_else(|| Error::new(ErrorKind::Arguments, format!("expected user or project, found {name:?}")))
}

/// The value of an option as milliseconds since 1970.
fn time(option: &str, text: &str, now: i64) -> Result<i64> {
    timestamp(text, now).ok_or_else(|| {
        let what = format!(
            "{option}: expected an age (90d, 12w) or a time such as 2026-01-31T12:00:00Z, found {text:?}"
        );
        Error::new(ErrorKind::Arguments, what)
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

fn about(it: &Memory) -> String {
    let whose = it.scope.name();
    let pinned = if it.pinned { " · pinned" } else { "" };
    format!("{} · {whose} · {}{pinned}", it.kind.name(), minute(&derive::time(it.created)))
}
