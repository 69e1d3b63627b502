//! `epitome recall`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::agents;
use crate::engine::{self, Engine, FoundPrompt, SessionRef};
use crate::interfaces::cli::Screen;
use crate::interfaces::cli::common::minute;
use crate::report::size;
use crate::store::{AuditVerb, Entry, Handle, Hit, PassageKind, Query, Range, SearchExtent, SearchScope};
use history::error::{Error, ErrorKind, Result};
use sessions::derive;
use tokens::Estimator;

#[derive(Debug, Args)]
pub struct RecallArgs {
    /// Words to search for (`"…"` for a phrase), or a handle to read; without either, the newest handles of this
    /// session are listed
    #[arg(value_name = "QUERY|HANDLE")]
    query: Vec<String>,
    /// How far to search: session, project or all [default: project, and all if that finds nothing]
    #[arg(long)]
    scope: Option<String>,
    /// Session to search (with --scope session) or to list (without a query)
    #[arg(long)]
    session: Option<String>,
    /// Part of an original: lines 10-40, bytes b0-4096, messages of a session m12-14, or /regex/±2 (lines of context)
    #[arg(long)]
    range: Option<String>,
    /// Maximum number of results [default: 10]; with a handle, maximum tokens [default: no limit]
    #[arg(long)]
    limit: Option<u64>,
    /// Only sessions of this agent (claude-code, codex, …)
    #[arg(long)]
    agent: Option<String>,
    /// Only passages of this kind: user (what the user wrote), decision, error or file
    #[arg(long, value_parser = PassageKind::ALL.map(PassageKind::name))]
    kind: Option<String>,
    /// Only results newer than this: an age (7d, 4w), a day or a time (RFC 3339)
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only results older than this
    #[arg(long, value_name = "WHEN")]
    before: Option<String>,
    /// Only sessions of this directory
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "scope")]
    project: Option<PathBuf>,
    /// Skip this many results
    #[arg(long, default_value_t = 0)]
    offset: u32,
}

impl RecallArgs {
    fn results(&self) -> u32 {
        u32::try_from(self.limit.unwrap_or(10)).unwrap_or(u32::MAX).clamp(1, 100)
    }

    fn scope(&self) -> Result<Option<SearchScope>> {
        self.scope.as_deref().map(str::parse).transpose()
    }
}

pub(crate) fn run(engine: &Engine, arguments: &RecallArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let query = arguments.query.join(" ");
    if Handle::parse(&query).is_some() && is_known(engine, &query)? {
        return read(engine, arguments, &query, screen).map(|()| 0);
    }
    if arguments.range.is_some() {
        let what = format!("--range: expected a handle to read from, found {query:?}");
        return Err(Error::new(ErrorKind::Arguments, what));
    }
    if arguments.query.is_empty() {
        newest(engine, arguments, screen)
    } else {
        search(engine, arguments, &query, screen)
    }
    .map(|()| 0)
}

/// Whether a word is an existing handle of this user.
fn is_known(engine: &Engine, handle: &str) -> Result<bool> {
    match engine.store.locate(handle, &engine.config.owner) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::Arguments => Ok(false),
        Err(error) => Err(error),
    }
}

/// Prints an original, or a part of it.
fn read(engine: &Engine, arguments: &RecallArgs, handle: &str, screen: &mut Screen<'_>) -> Result<()> {
    let scope = engine::readable(engine, handle, arguments.scope()?)?;
    let entry = engine.store.entry(&scope, handle)?;
    if arguments.range.is_none() && arguments.limit.is_none() && !screen.json {
        // The whole original, byte for byte.
        let mut reader = engine.store.reader(&scope, handle)?;
        engine.audit(AuditVerb::Read, &scope, entry.session.as_deref(), Some(handle));
        return screen.exact(&mut reader);
    }
    let range = arguments.range.as_deref().map_or(Ok(Range::WHOLE), Range::parse)?;
    let limit = arguments.limit.unwrap_or(u64::MAX / 2);
    let slice = engine::read(engine, &scope, handle, &range, limit, &|text| Estimator::O200k.text(text))?;
    engine.audit(AuditVerb::Read, &scope, entry.session.as_deref(), Some(handle));
    if screen.json(&json!({"entry": entry, "text": slice.text, "next": slice.next}))? {
        return Ok(());
    }
    if slice.text.is_empty() && slice.next.is_none() {
        return screen
            .note(&format!("that range of {handle} is empty; the original has {} bytes", entry.bytes));
    }
    screen.block(slice.text.strip_suffix('\n').unwrap_or(&slice.text))?;
    match slice.next {
        Some(next) => screen.note(&screen.paint.faint(&format!("… continue with --range {next}"))),
        None => Ok(()),
    }
}

/// Lists the newest originals of the given session, or of this project.
fn newest(engine: &Engine, arguments: &RecallArgs, screen: &mut Screen<'_>) -> Result<()> {
    let limit = arguments.results();
    let mut found = engine::newest(engine, arguments.session.as_deref(), limit + 1, arguments.offset)?;
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next = more.then(|| arguments.offset + limit);
    if screen.json(&json!({"hits": found, "next": next}))? {
        return Ok(());
    }
    if found.is_empty() && arguments.offset == 0 {
        return screen.line(
            "no tool output of this project has been cleared yet; `epitome sessions` lists compactions, and `epitome \
             recall WORDS` searches the whole archive",
        );
    }
    let rows = found.iter().map(|it| {
        let tokens = it.tokens.map(size).unwrap_or_default();
        vec![
            it.handle.as_str().to_owned(),
            what(it),
            tokens,
            minute(&derive::time(it.at)),
            it.session.clone().unwrap_or_default(),
        ]
    });
    screen.table(&["handle", "what", "tokens", "archived", "session"], rows, &[])?;
    page(next, false, screen)?;
    screen
        .note(&screen.paint.faint("read one with epitome recall HANDLE, or search with epitome recall WORDS"))
}

/// The query with the options as qualifiers, such as `agent:codex`.
fn qualified(engine: &Engine, arguments: &RecallArgs, query: &str) -> Result<String> {
    let RecallArgs { agent, kind, since, before, .. } = arguments;
    let mut text = query.to_owned();
    for (name, value) in [("agent", agent), ("kind", kind), ("since", since), ("before", before)] {
        let Some(value) = value else { continue };
        let qualifier = format!(" {name}:{value}");
        if !engine::is_qualifier(engine, &qualifier) {
            let expected = match name {
                "agent" => format!("an agent ({})", agents::names(|_| true)),
                _ => "an age (7d, 4w), a day (2026-01-31) or a time (2026-01-31T12:00:00Z)".to_owned(),
            };
            let what = format!("--{name}: expected {expected}, found {value:?}");
            return Err(Error::new(ErrorKind::Arguments, what));
        }
        text.push_str(&qualifier);
    }
    Ok(text)
}

fn search(engine: &Engine, arguments: &RecallArgs, query: &str, screen: &mut Screen<'_>) -> Result<()> {
    let query = Query {
        text: qualified(engine, arguments, query)?,
        extent: SearchExtent::Project,
        only: Vec::new(),
        limit: arguments.results(),
        offset: arguments.offset,
    };
    let session = || {
        let named = arguments.session.clone().map_or(SessionRef::Unnamed, SessionRef::Named);
        let history = engine::open(engine, &named, None, None)?.session.history;
        Ok((engine.scope(&history), history.meta.session.as_deref().unwrap_or_default().to_owned()))
    };
    let recalled = match &arguments.project {
        Some(directory) => {
            let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.clone());
            let project = directory.display().to_string();
            engine::search(engine, &engine.scope_of(project), &query)?
        }
        None => engine::recall(engine, &query, arguments.scope()?, &session)?,
    };
    let found = &recalled.found;
    if screen.json(&json!({
        "scope": recalled.scope,
        "hits": found.hits,
        "typed": recalled.typed,
        "next": found.next,
        "partial": found.partial,
    }))? {
        return Ok(());
    }
    if found.hits.is_empty() && recalled.typed.is_empty() {
        let wider = if recalled.scope == SearchScope::All { "" } else { ", or --scope all" };
        return screen.line(&format!(
            "no archived text, memory or typed prompt contains these words; try fewer{wider}"
        ));
    }
    if found.partial {
        screen.note("nothing contains all words; these contain some:")?;
    }
    if recalled.scope == SearchScope::All && arguments.scope.is_none() {
        screen.note("nothing in this project contains these words; elsewhere:")?;
    }
    for hit in &found.hits {
        show(hit, recalled.scope == SearchScope::All, screen)?;
    }
    for it in &recalled.typed {
        show_typed(it, screen)?;
    }
    if recalled.not_searched > 0 {
        let what = format!(
            "{} older sessions in the archive were not searched; --scope session --session ID searches one",
            recalled.not_searched
        );
        screen.note(&screen.paint.faint(&what))?;
    }
    page(found.next, recalled.scope == SearchScope::All && arguments.scope.is_none(), screen)
}

fn page(next: Option<u32>, elsewhere: bool, screen: &mut Screen<'_>) -> Result<()> {
    // The next page must come from the same scope.
    let scope = if elsewhere { " --scope all" } else { "" };
    match next {
        Some(next) => screen.note(&screen.paint.faint(&format!("… more with --offset {next}{scope}"))),
        None => Ok(()),
    }
}

fn show(hit: &Hit, with_project: bool, screen: &mut Screen<'_>) -> Result<()> {
    let entry = &hit.entry;
    let mut about = vec![what(entry)];
    about.extend(entry.tokens.map(|it| format!("{} tokens", size(it))));
    about.push(minute(&derive::time(entry.at)));
    about.extend(entry.session.clone());
    about.extend(Some(entry.project.clone()).filter(|it| with_project && !it.is_empty()));
    let paint = screen.paint;
    let range = hit.range.as_ref().map(|it| format!(" --range {it}")).unwrap_or_default();
    let read = paint.strong(&format!("{}{range}", entry.handle.as_str()));
    screen.line(&format!("{read}  {}", paint.faint(&about.join(" · "))))?;
    screen.line(&format!("  line {}: {}", hit.snippet.line, hit.snippet.text))
}

fn show_typed(it: &FoundPrompt, screen: &mut Screen<'_>) -> Result<()> {
    let about = format!("{} · {} · {}", it.agent, minute(&derive::time(it.at)), it.session);
    let paint = screen.paint;
    screen.line(&format!("{}  {}", paint.strong("you typed "), paint.faint(&about)))?;
    screen.line(&format!("  line {}: {}", it.snippet.line, it.snippet.text))
}

/// `output of bash in message 12`.
fn what(entry: &Entry) -> String {
    let mut out = entry.kind.name().to_owned();
    out.extend(entry.tool.as_ref().map(|it| format!(" of {it}")));
    out.extend(entry.message.map(|it| format!(" in message {it}")));
    out
}
