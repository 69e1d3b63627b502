//! `epitome recall`.

use clap::Args;
use serde_json::json;

use super::Screen;
use crate::answers::CONTRACT;
use crate::engine::{Engine, SessionRef};
use crate::error::{Error, Kind, Result};
use crate::store::{Found, Handle, Hit, Query, Range, Reach, Scope};
use crate::tokens::Estimator;

/// Arguments of `recall`.
#[derive(Debug, Args)]
pub struct RecallArgs {
    /// Words to search for (`"…"` is a phrase), or a handle to read
    #[arg(required = true, value_name = "QUERY|HANDLE")]
    query: Vec<String>,
    /// How far to search: session, project or all [default: project, and all if that finds nothing]
    #[arg(long)]
    scope: Option<String>,
    /// With --scope session: which one
    #[arg(long)]
    session: Option<String>,
    /// Which part of an original: lines 10-40, bytes b0-4096, or /regex/±2
    #[arg(long)]
    range: Option<String>,
    /// At most so many results; of an original, at most so many tokens
    #[arg(long)]
    limit: Option<u64>,
}

pub(super) fn run(engine: &Engine, arguments: &RecallArgs, screen: &mut Screen<'_>) -> Result<u8> {
    let query = arguments.query.join(" ");
    if Handle::parse(&query).is_some() && engine.store.locate(&query, &engine.config.owner).is_ok() {
        return read(engine, arguments, &query, screen).map(|()| 0);
    }
    if arguments.range.is_some() {
        let what = format!("--range: expected a handle to read from, found {query:?}");
        return Err(Error::new(Kind::Arguments, what));
    }
    let found = search(engine, arguments, &query)?;
    if screen.json(
        &json!({ "contract": CONTRACT, "hits": found.hits, "next": found.next, "partial": found.partial }),
    )? {
        return Ok(0);
    }
    if found.hits.is_empty() {
        screen.line("nothing archived or remembered holds these words; try fewer, or --scope all")?;
    }
    if found.partial && !found.hits.is_empty() {
        screen.note("nothing holds all words; these hold some:")?;
    }
    for hit in &found.hits {
        show(hit, screen)?;
    }
    Ok(0)
}

/// An original, or a part of it.
fn read(engine: &Engine, arguments: &RecallArgs, handle: &str, screen: &mut Screen<'_>) -> Result<()> {
    let scope = engine.store.locate(handle, &engine.config.owner)?;
    let range = arguments.range.as_deref().map_or(Ok(Range::WHOLE), Range::parse)?;
    let limit = arguments.limit.unwrap_or(u64::MAX / 2);
    let slice = engine.store.recall(&scope, handle, &range, limit, &|text| Estimator::O200k.text(text))?;
    let entry = engine.store.entry(&scope, handle)?;
    if screen
        .json(&json!({ "contract": CONTRACT, "entry": entry, "text": slice.text, "next": slice.next }))?
    {
        return Ok(());
    }
    let end = if slice.text.ends_with('\n') { "" } else { "\n" };
    write!(screen.out, "{}{end}", slice.text)
        .map_err(|error| Error::new(Kind::Io, "writing to the terminal").because(error))?;
    match slice.next {
        Some(next) => screen.note(&screen.paint.faint(&format!("… go on with --range {next}"))),
        None => Ok(()),
    }
}

fn search(engine: &Engine, arguments: &RecallArgs, query: &str) -> Result<Found> {
    let limit = u32::try_from(arguments.limit.unwrap_or(10)).unwrap_or(u32::MAX);
    let ask = |scope: &Scope, reach: Reach| {
        let query = Query { text: query.to_owned(), reach, only: Vec::new(), limit, offset: 0 };
        engine.store.search(scope, &query)
    };
    let here = engine.project();
    match arguments.scope.as_deref() {
        Some("all") => ask(&here, Reach::All),
        Some("project") => ask(&here, Reach::Project),
        Some("session") => {
            let which = arguments.session.clone().map_or(SessionRef::Unsaid, SessionRef::Named);
            let opened = engine.open(&which, None, None)?;
            let history = &opened.session.history;
            let id = history.meta.session.as_deref().unwrap_or_default().to_owned();
            ask(&engine.scope(history), Reach::Session(id))
        }
        None => {
            let near = ask(&here, Reach::Project)?;
            if near.hits.is_empty() { ask(&here, Reach::All) } else { Ok(near) }
        }
        Some(other) => Err(Error::new(
            Kind::Arguments,
            format!("--scope: expected session, project or all, found {other:?}"),
        )),
    }
}

fn show(hit: &Hit, screen: &mut Screen<'_>) -> Result<()> {
    let entry = &hit.entry;
    let mut about = vec![entry.what.name().to_owned()];
    about.extend(entry.tool.clone());
    about.extend(entry.message.map(|it| format!("#{it}")));
    about.extend(entry.tokens.map(|it| format!("{} tokens", super::paint::size(it))));
    about.extend(entry.session.clone());
    let paint = screen.paint;
    screen.line(&format!("{}  {}", paint.strong(entry.handle.as_str()), paint.faint(&about.join(" · "))))?;
    screen.line(&format!("  {}: {}", hit.snippet.line, hit.snippet.text))
}
