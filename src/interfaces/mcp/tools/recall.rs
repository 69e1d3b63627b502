//! `recall`: what compaction removed, searched by words or read by handle.

use rmcp::model::Tool;
use serde::Serialize;
use serde_json::{Value, json};

use super::answer::shorten::{self, ANSWER};
use super::answer::{Answer, shown, warn, warn_of_ignored};
use super::arguments::hint_words;
use super::arguments::{Arguments, with_argument_name};
use super::schema::{self, choice, meta, object, objects, read_only, text, whole};
use crate::engine::{self, Engine, Recalled};
use crate::interfaces::mcp::server_state::{Caller, ServerState};
use crate::store::{AuditVerb, Handle, Query, Range, SearchExtent, SearchScope};
use history::error::{Error, Result};
use tokens::Estimator;

pub(super) const NAME: &str = "recall";

pub(super) fn tool() -> Tool {
    let input = object([
        ("query", text("Words to find.")),
        ("handle", text("Original to read.")),
        ("session", text("")),
        ("scope", choice(&["session", "project", "all"])),
        ("range", text("Lines 10-40, messages m12-14, /regex/±2.")),
        ("limit", whole("Maximum hits, or tokens with handle.")),
    ]);
    let output = object([("hits", objects()), ("text", text("")), ("next", text("")), ("handle", text(""))]);
    let what = "Searches what compaction or pruning removed, or reads it word for word by handle.";
    schema::tool(NAME, "Recall", what, input, output, read_only())
        .with_meta(meta("find or restore compacted, cleared or forgotten earlier output; undo", false))
}

/// Reads by handle, or searches by query, or lists the newest originals.
pub(crate) fn call(state: &ServerState, caller: &Caller, arguments: &Arguments) -> Result<Answer> {
    let engine = state.engine(caller)?;
    let query = arguments.text("query")?;
    // A query that is an existing handle is meant as a handle.
    let as_handle =
        |it: &String| Handle::parse(it).is_some() && engine.store.locate(it, &caller.owner).is_ok();
    let handle = arguments.text("handle")?.or_else(|| query.clone().filter(as_handle));
    match (handle, query) {
        (Some(handle), _) => by_handle(state, &engine, arguments, handle.trim()),
        (None, Some(query)) => by_query(state, &engine, arguments, &query),
        (None, None) => {
            let limit = arguments.number("limit")?.unwrap_or(10).clamp(1, 100) as u32;
            let session = arguments.text("session")?;
            let newest = match &state.remote {
                Some(_) => engine.store.newest(&state.scope(caller), session.as_deref(), limit, 0)?,
                None => engine::newest(&engine, session.as_deref(), limit, 0)?,
            };
            let hits: Vec<Value> = newest.iter().map(hit).collect::<Result<_>>()?;
            let mut out = Answer::new();
            out.insert("hits".to_owned(), json!(hits));
            if hits.is_empty() {
                let what = nothing_of(state, &engine, arguments, session.as_deref());
                out.insert("text".to_owned(), json!(what));
            }
            warn_of_ignored(&mut out, NAME, arguments);
            shorten::fit(&mut out, ANSWER, &["hits"], &["text"], "");
            Ok(out)
        }
    }
}

/// Why the list is empty.
fn nothing_of(state: &ServerState, engine: &Engine, arguments: &Arguments, session: Option<&str>) -> String {
    let how = "what a summary replaced is found with `query`, or read with the session's handle";
    match session {
        None => format!("no outputs were cleared here yet; {how}"),
        Some(name) => match state.open(engine, arguments) {
            Ok(_) => format!("no outputs of session {name} were cleared yet; {how}"),
            Err(error) => {
                let why = error.full_in(hint_words);
                format!("no outputs of session {name} were cleared, and it was not found: {why}")
            }
        },
    }
}

/// Default limit of tokens of an original in one answer.
const READ: u64 = 4_000;

fn by_handle(state: &ServerState, engine: &Engine, arguments: &Arguments, handle: &str) -> Result<Answer> {
    let scope = state.readable(engine, handle, scope(arguments)?)?;
    let range = range(arguments)?.unwrap_or(Range::WHOLE);
    // Leaves room for escaping and the other fields.
    let limit = arguments.number("limit")?.unwrap_or(READ).clamp(50, ANSWER * 3 / 4);
    let count = |text: &str| Estimator::O200k.text(text);
    let slice = engine::read(engine, &scope, handle, &range, limit, &count)?;
    let entry = engine.store.entry(&scope, handle)?;
    engine.audit(AuditVerb::Read, &scope, entry.session.as_deref(), Some(handle));
    let mut out = Answer::new();
    out.extend(shorten::pick(
        &entry,
        &["handle", "kind", "session", "message", "tool", "call_id", "tokens", "bytes"],
    )?);
    out.insert("text".to_owned(), json!(slice.text));
    if let Some(next) = slice.next {
        out.insert("next".to_owned(), json!(next));
    }
    warn_of_ignored(&mut out, NAME, arguments);
    shorten::fit(&mut out, ANSWER, &[], &["text"], "ask for a smaller range");
    Ok(out)
}

fn by_query(state: &ServerState, engine: &Engine, arguments: &Arguments, query: &str) -> Result<Answer> {
    let (offset, limit) = page(arguments)?;
    let wanted = scope(arguments)?;
    let session = arguments.text("session")?;
    let query =
        Query { text: query.to_owned(), extent: SearchExtent::Project, only: Vec::new(), limit, offset };
    let opened = || {
        let history = state.open(engine, arguments)?.session.history;
        // A pushed history may lack an id in its records; then the name it was pushed under is the id.
        let name = session.as_deref().filter(|_| state.remote.is_some());
        let id = history.meta.session.as_deref().or(name).unwrap_or_default().to_owned();
        Ok((engine.scope(&history), id))
    };
    let search = |query: &Query, wanted| engine::recall(engine, query, wanted, &opened);
    let wanted = match wanted {
        // Later pages must come from the scope in which the first page was found.
        None if offset > 0 => Some(search(&Query { offset: 0, limit: 1, ..query.clone() }, None)?.scope),
        wanted => wanted,
    };
    let Recalled { found, typed, scope, not_searched } = search(&query, wanted)?;
    let hits = found.hits.iter().map(hit).chain(typed.iter().map(hit));
    let hits: Vec<Value> = hits.collect::<Result<_>>()?;
    let mut out = Answer::new();
    out.insert("scope".to_owned(), json!(scope));
    if let Some(next) = found.next {
        out.insert("next".to_owned(), json!(format!("{}-{}", next + 1, next + limit)));
    }
    if found.partial && !hits.is_empty() {
        out.insert("partial".to_owned(), json!("nothing contains all words; these contain some"));
    }
    if hits.is_empty() {
        let what = match (offset, scope) {
            (0, SearchScope::All) => "nothing archived contains these words; try fewer or other words",
            (0, _) => "nothing archived contains these words; try fewer or other words, or scope \"all\"",
            _ => "there are no more results; leave out range for the first ones",
        };
        out.insert("text".to_owned(), json!(what));
    }
    if let (Some(name), true) = (&session, scope != SearchScope::Session) {
        warn(
            &mut out,
            [format!(
                "session: not only {} was searched; \"scope\": \"session\" does that",
                shown(&[name.as_str()])
            )],
        );
    }
    if not_searched > 0 {
        warn(&mut out, [format!("{not_searched} older sessions in the archive were not searched")]);
    }
    warn_of_ignored(&mut out, NAME, arguments);
    out.insert("hits".to_owned(), json!(hits));
    shorten::fit(&mut out, ANSWER, &["hits"], &[], "");
    Ok(out)
}

/// Offset and limit of a query's results: `range` 11-20 skips the first ten.
fn page(arguments: &Arguments) -> Result<(u32, u32)> {
    let most = |it: u64| it.clamp(1, 100) as u32;
    match range(arguments)? {
        None => Ok((0, most(arguments.number("limit")?.unwrap_or(5)))),
        Some(Range::Lines { from, to }) => {
            Ok((u32::try_from(from - 1).unwrap_or(u32::MAX / 2), most(to.saturating_sub(from) + 1)))
        }
        Some(_) => {
            Err(Error::of_argument("range", "expected results 11-20 of a query, or a handle to read from"))
        }
    }
}

fn range(arguments: &Arguments) -> Result<Option<Range>> {
    let parse = |text: String| Range::parse(&text).map_err(|error| with_argument_name("range", &error));
    arguments.text("range")?.map(parse).transpose()
}

fn scope(arguments: &Arguments) -> Result<Option<SearchScope>> {
    arguments.text("scope")?.map(|it| it.parse()).transpose()
}

/// One hit: an original, or a prompt that the user typed.
fn hit<T: Serialize>(entry: &T) -> Result<Value> {
    let names = ["handle", "range", "kind", "tool", "message", "session", "tokens", "snippet"];
    let mut out = shorten::pick(entry, &names)?;
    if out.get("kind").is_some_and(|it| it == "compaction") {
        // The handle of a summary also reads the original that it replaced.
        out.insert(
            "next".to_owned(),
            json!("with range /word/±2: the lines of its original that contain the word"),
        );
    }
    Ok(Value::Object(out))
}
