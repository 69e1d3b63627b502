//! `epitome memory`: what was remembered of the user and the project.

use std::io::Read;

use clap::{Args, Subcommand};
use serde_json::json;

use super::Screen;
use super::paint::table;
use crate::answers::CONTRACT;
use crate::config::byte_size;
use crate::engine::values::moment;
use crate::engine::{Engine, keep};
use crate::store::{
    Memory, MemoryFilter, MemoryKind, MemoryScope, Note, Query, Reach, Retention, Tidied, What, memory,
};
use history::error::{Error, Kind, Result};
use sessions::derive;

/// Sessions that `gc` names; the others are counted.
const SESSIONS_NAMED: usize = 20;

#[derive(Debug, Args)]
pub struct MemoryArgs {
    #[command(subcommand)]
    command: MemoryCommand,
    /// Whose: user (in every project) or project [default: both; new ones are the project's]
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
    /// The newest first
    List {
        /// Only those that go into every summary
        #[arg(long)]
        pinned: bool,
    },
    /// One, whole
    Show {
        /// Its handle
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
    /// Put one into every summary, or no longer; an archived session or compaction stays, whatever its age
    Pin {
        /// Its handle
        handle: String,
        /// No longer
        #[arg(long)]
        off: bool,
    },
    /// Delete one
    Forget {
        /// Its handle
        handle: String,
    },
    /// Those that hold these words
    Search {
        /// The words
        #[arg(required = true)]
        query: Vec<String>,
    },
    /// All as JSON, or as Markdown
    Export {
        /// Markdown instead of JSON
        #[arg(long)]
        markdown: bool,
    },
    /// Remember what `export` wrote, or the points and paragraphs of any Markdown such as AGENTS.md (- reads standard input)
    Import {
        /// The file
        file: String,
        /// Put all of them into every summary
        #[arg(long)]
        pin: bool,
    },
    /// Merge those that say the same; the newer stands for the older
    Tidy {
        /// Only say what would be merged
        #[arg(long)]
        dry_run: bool,
    },
    /// Merge those that say the same, and let go of archived originals that are old or too many
    Gc {
        /// Originals and compactions last stored before this go: 90d, 12w, or a time (RFC 3339)
        #[arg(long, value_name = "AGE|TIME")]
        before: Option<String>,
        /// The oldest originals go until all take at most so many bytes on disk: 500MB, 2GB
        #[arg(long, value_name = "SIZE", value_parser = byte_size)]
        max_bytes: Option<u64>,
        /// Only say what would go
        #[arg(long)]
        dry_run: bool,
    },
}

pub(super) fn run(engine: &Engine, arguments: &MemoryArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let here = engine.project();
    let whose = arguments.scope.as_deref().map(whose).transpose()?;
    let kind = arguments.kind.as_deref().map(MemoryKind::named).transpose()?;
    let store = &engine.store;
    match &arguments.command {
        MemoryCommand::List { pinned } => {
            let filter = MemoryFilter {
                scope: whose,
                kind,
                pinned: *pinned,
                limit: arguments.limit.or(Some(50)),
                offset: 0,
            };
            let all = store.memories(&here, &filter)?;
            if !screen.json(&json!({ "contract": CONTRACT, "memories": all }))? {
                list(&all, screen)?;
            }
        }
        MemoryCommand::Show { handle } => {
            let scope = store.locate(handle, &engine.config.owner)?;
            let it = store.memory(&scope, handle)?;
            if !screen.json(&json!({ "contract": CONTRACT, "memory": it }))? {
                screen.note(&screen.paint.faint(&about(&it)))?;
                screen.block(&it.content)?;
            }
        }
        MemoryCommand::Add { text, pin, tag } => {
            let content = if text.as_slice() == ["-"] { input("-")? } else { text.join(" ") };
            let note = Note {
                content,
                kind: kind.unwrap_or_default(),
                scope: whose.unwrap_or_default(),
                pinned: *pin,
                tags: tag.clone(),
                session: None,
                created: None,
            };
            let it = store.remember(&here, &note, engine.now)?;
            if !screen.json(&json!({ "contract": CONTRACT, "memory": it }))? {
                screen.line(&format!("remembered as {}", screen.paint.strong(it.id.as_str())))?;
            }
        }
        MemoryCommand::Pin { handle, off } => {
            let scope = store.locate(handle, &engine.config.owner)?;
            store.pin(&scope, handle, !*off)?;
            let entry = store.entry(&scope, handle)?;
            if entry.what != What::Memory {
                if !screen.json(&json!({ "contract": CONTRACT, "pinned": !off, "entry": entry }))? {
                    screen.line(if *off {
                        "may be let go of"
                    } else {
                        "stays in the archive from now on"
                    })?;
                }
                return Ok(0);
            }
            let it = store.memory(&scope, handle)?;
            if !screen.json(&json!({ "contract": CONTRACT, "memory": it }))? {
                screen.line(if *off {
                    "no longer in every summary"
                } else {
                    "in every summary from now on"
                })?;
            }
        }
        MemoryCommand::Forget { handle } => {
            let scope = store.locate(handle, &engine.config.owner)?;
            store.forget(&scope, handle)?;
            if !screen.json(&json!({ "contract": CONTRACT, "forgotten": handle }))? {
                screen.line("forgotten")?;
            }
        }
        MemoryCommand::Search { query } => {
            let limit = arguments.limit.unwrap_or(10);
            let query = Query {
                text: query.join(" "),
                reach: Reach::Project,
                only: vec![What::Memory],
                limit,
                offset: 0,
            };
            let mut found = store.search(&here, &query)?;
            // The user's own are in no project.
            found.hits.retain(|it| {
                whose.is_none_or(|whose| (whose == MemoryScope::User) == it.entry.project.is_empty())
            });
            if !screen.json(&json!({ "contract": CONTRACT, "hits": found.hits, "partial": found.partial }))? {
                if found.hits.is_empty() {
                    screen.line(
                        "nothing remembered holds these words; `epitome recall` searches the archive too",
                    )?;
                }
                for hit in &found.hits {
                    screen.line(&format!(
                        "{}  {}",
                        screen.paint.strong(hit.entry.handle.as_str()),
                        hit.snippet.text
                    ))?;
                }
            }
        }
        MemoryCommand::Export { markdown } => {
            let all =
                store.memories(&here, &MemoryFilter { scope: whose, kind, ..MemoryFilter::default() })?;
            let text = if *markdown { memory::to_markdown(&all) } else { memory::to_json(&all) };
            screen.exact(&mut format!("{}\n", text.trim_end()).as_bytes())?;
        }
        MemoryCommand::Import { file, pin } => {
            let text = input(file)?;
            let is_json = text.trim_start().starts_with(['{', '[']) && !file.ends_with(".md");
            let mut notes = if is_json { memory::from_json(&text)? } else { memory::from_markdown(&text) };
            for note in &mut notes {
                note.pinned |= *pin;
                note.scope = whose.unwrap_or(note.scope);
                note.kind = kind.unwrap_or(note.kind);
            }
            let done = store.import(&here, &notes, engine.now)?;
            if !screen.json(&json!({ "contract": CONTRACT, "imported": done }))? {
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
            return Ok(u8::from(!done.refused.is_empty()));
        }
        MemoryCommand::Tidy { dry_run } => {
            let tidied = store.tidy(&here, *dry_run)?;
            if !screen.json(&json!({ "contract": CONTRACT, "tidied": tidied, "dry_run": dry_run }))? {
                if tidied.is_empty() {
                    screen.line("no two memories say the same")?;
                }
                merged(&tidied, *dry_run, screen)?;
            }
        }
        MemoryCommand::Gc { before, max_bytes, dry_run } => {
            let asked = before.is_some() || max_bytes.is_some();
            let retention = match asked {
                true => Retention {
                    before: before.as_deref().map(|it| time(it, engine.now)).transpose()?,
                    max_bytes: *max_bytes,
                    originals_only: false,
                },
                false => keep::retention(engine),
            };
            let tidied = store.tidy(&here, *dry_run)?;
            let gone = store.collect(&retention, engine.now, *dry_run)?;
            if !dry_run && gone.bytes > 0 {
                store.vacuum()?;
            }
            if !screen.json(
                &json!({ "contract": CONTRACT, "tidied": tidied, "collected": gone, "dry_run": dry_run }),
            )? {
                merged(&tidied, *dry_run, screen)?;
                let (would, freed) = if *dry_run { ("would go", "would be free") } else { ("gone", "free") };
                screen.line(&format!(
                    "{would}: {} compactions, {} originals, {} superseded memories, {} expired marks; {} bytes {freed}",
                    gone.compactions, gone.originals, gone.memories, gone.expired, gone.bytes
                ))?;
                for it in gone.sessions.iter().take(SESSIONS_NAMED) {
                    screen.line(&format!(
                        "  {}  {}  {}  {}",
                        it.handle,
                        derive::time(it.at).get(..10).unwrap_or_default(),
                        it.session,
                        it.project
                    ))?;
                }
                if let Some(more) = gone.sessions.len().checked_sub(SESSIONS_NAMED).filter(|it| *it > 0) {
                    screen.note(&format!("  … and {more} more sessions (--json lists all)"))?;
                }
                if retention.before.is_none() && retention.max_bytes.is_none() {
                    screen.note(
                        &screen.paint.faint("nothing archived goes without --before 90d or --max-bytes 2GB"),
                    )?;
                }
            }
        }
    }
    Ok(0)
}

fn whose(name: &str) -> Result<MemoryScope> {
    match name {
        "user" => Ok(MemoryScope::User),
        "project" => Ok(MemoryScope::Project),
        other => {
            Err(Error::new(Kind::Arguments, format!("--scope: expected user or project, found {other:?}")))
        }
    }
}

fn time(text: &str, now: i64) -> Result<i64> {
    moment(text, now).ok_or_else(|| {
        let what = format!(
            "--before: expected an age (90d, 12w) or a time such as 2026-01-31T12:00:00Z, found {text:?}"
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

fn list(all: &[Memory], screen: &mut Screen<'_>) -> Result<()> {
    if all.is_empty() {
        return screen.line("nothing is remembered of this project; `epitome memory add TEXT` remembers");
    }
    let mut rows = vec![["handle", "what", "text"].map(str::to_owned).to_vec()];
    for it in all {
        let words: String =
            it.content.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(90).collect();
        rows.push(vec![it.id.as_str().to_owned(), about(it), words]);
    }
    for line in table(&rows, screen.paint) {
        screen.line(&line)?;
    }
    Ok(())
}
