//! From a transcript to a session.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::assemble::{Assembled, Assembly, Item, Live, Origin, drop_orphans};
use super::blocks::{blocks, is_blank, kind_of};
use super::chain::{Index, Row, RowKind, lenient};
use super::fast::Said;
use crate::cursor::{Cursor, Seen};
use crate::{Format, Keep, Note, PastCompaction, Session, Source, hold, refusal};
use history::error::{Error, Kind as ErrorKind, Result};
use history::json;
use history::{History, Kind, Message, Meta, Part, Role, Text, Usage};

/// The model's name on rows that the client wrote in the model's place.
pub(super) const SYNTHETIC: &str = "<synthetic>";

/// Where attachments of versions that did not record what was sent hold it: type, JSON pointer.
const ATTACHED: [(&str, &str); 14] = [
    ("agent_listing_delta", "/addedLines"),
    ("batching_reminder_sent", "/text"),
    ("deferred_tools_delta", "/addedLines"),
    ("edited_text_file", "/snippet"),
    ("file", "/content/file/content"),
    ("hook_additional_context", "/content"),
    ("hook_success", "/content"),
    ("invoked_skills", "/skills"),
    ("mcp_instructions_delta", "/addedBlocks"),
    ("model", "/text"),
    ("nested_memory", "/content/content"),
    ("silent_turn_reminder", "/text"),
    ("skill_listing", "/content"),
    ("total_tokens_reminder", "/text"),
];

/// Reads a transcript. The history is what Claude Code would send after a resume, but for what it adds afresh.
///
/// `id` of a message is the uuid of its first row; usage is that of a response's last row, unless all of it is zero.
pub fn read(source: &dyn Source) -> Result<Session> {
    let keep: &Keep = &|_, _| None;
    session(source, keep, Index::of(source, keep, true)?)
}

/// The same for a session that is only measured: parts are as `keep` leaves them, and no line is looked at that the
/// history does not depend on.
pub fn scan(source: &dyn Source, keep: &Keep) -> Result<Session> {
    session(source, keep, Index::of(source, keep, false)?).map(Session::measured_only)
}

fn session(source: &dyn Source, keep: &Keep, mut index: Index) -> Result<Session> {
    if !index.known {
        let found = match index.notes.first() {
            Some(note) => format!("line {}: {}", note.line, note.what),
            None => "an empty file".into(),
        };
        let what = format!(
            "expected a Claude Code transcript, found {found}; name another format, or let it be found"
        );
        return Err(Error::new(ErrorKind::Input, what).at(source.name(), None));
    }
    let live = index.live();
    let mut items = Vec::with_capacity(live.len());
    let cwd = live.iter().rev().find_map(|it| index.rows[*it].cwd.clone());
    let mut model = None;
    for at in live {
        let row = &mut index.rows[at];
        let loaded = match row.loaded.take() {
            Some(loaded) => loaded,
            None => {
                let record = index.records[row.record as usize];
                load(row, &json::mend(&source.bytes(record.range())?), keep, record.at)
            }
        };
        match loaded {
            Ok(loaded) => {
                model = loaded.model.or(model);
                let (record, uuid, time) = (row.record, &row.uuid, row.at);
                let origin = || Origin { row: at, record, uuid: uuid.clone(), at: time };
                items.extend(loaded.item.map(|item| Live { origin: origin(), item }));
            }
            Err(what) => index.notes.push(Note { line: row.line, what }),
        }
    }
    drop_orphans(&mut items);
    let past = past(source, &index)?;
    drop(index.rows);
    let mut assembly = Assembly::new(items.len());
    items.into_iter().for_each(|it| assembly.take(it));
    let Assembled { messages, origins, summaries } = assembly.done();
    let past = past.into_iter().map(|(row, past)| PastCompaction {
        message: row.and_then(|it| summaries.get(&it)).copied(),
        ..past
    });
    let stem = source.name().rsplit(['/', '\\']).next().and_then(|it| it.strip_suffix(".jsonl"));
    let session = stem.filter(|it| is_uuid(it)).map(Arc::from).or(index.session);
    let meta = Meta {
        agent: Some(Format::ClaudeCode.name().into()),
        session,
        model,
        cwd,
        times: index.times,
        ..Meta::default()
    };
    Ok(Session {
        format: Format::ClaudeCode,
        records: index.records,
        of_message: origins,
        notes: index.notes,
        past: past.collect(),
        history: History::new(messages, meta),
    })
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, it)| match at {
            8 | 13 | 18 | 23 => it == b'-',
            _ => it.is_ascii_hexdigit(),
        })
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    message: Body<'a>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "lenient")]
    model: Option<Arc<str>>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<Reported>,
}

/// `message.usage`.
#[derive(Deserialize, Default)]
pub(super) struct Reported {
    #[serde(default, deserialize_with = "lenient")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "lenient")]
    cache_creation: Option<Creation>,
}

/// Of what was written to a cache, how much for how long.
#[derive(Deserialize, Default)]
pub(super) struct Creation {
    #[serde(default, deserialize_with = "lenient")]
    ephemeral_1h_input_tokens: Option<u64>,
}

impl Creation {
    fn of(it: &mut Cursor<'_>) -> Option<Self> {
        let (mut out, mut seen) = (Self::default(), Seen::default());
        it.object(|it, name| {
            match name {
                "ephemeral_1h_input_tokens" => {
                    out.ephemeral_1h_input_tokens = seen.once(0, it.some(Cursor::number))?;
                }
                _ => it.pass()?,
            }
            Some(())
        })?;
        Some(out)
    }
}

/// `message.usage` of a row.
pub(crate) fn usage(text: &str) -> Usage {
    serde_json::from_str(text).map(Reported::usage).unwrap_or_default()
}

impl Reported {
    fn usage(self) -> Usage {
        Usage {
            input: self.input_tokens.unwrap_or(0),
            output: self.output_tokens.unwrap_or(0),
            cache_read: self.cache_read_input_tokens.unwrap_or(0),
            cache_write: self.cache_creation_input_tokens.unwrap_or(0),
            cache_write_hour: self.cache_creation.and_then(|it| it.ephemeral_1h_input_tokens).unwrap_or(0),
            reasoning: 0,
        }
    }

    /// Reads it where it is as usual: whole numbers, or nothing.
    pub(super) fn of(it: &mut Cursor<'_>) -> Option<Self> {
        let (mut out, mut seen) = (Self::default(), Seen::default());
        it.object(|it, name| {
            match name {
                "input_tokens" => out.input_tokens = seen.once(0, it.some(Cursor::number))?,
                "output_tokens" => out.output_tokens = seen.once(1, it.some(Cursor::number))?,
                "cache_read_input_tokens" => {
                    out.cache_read_input_tokens = seen.once(2, it.some(Cursor::number))?
                }
                "cache_creation_input_tokens" => {
                    out.cache_creation_input_tokens = seen.once(3, it.some(Cursor::number))?;
                }
                "cache_creation" => out.cache_creation = seen.once(4, it.some(Creation::of))?,
                _ => it.pass()?,
            }
            Some(())
        })?;
        Some(out)
    }
}

/// What a row says.
pub(super) struct Loaded {
    pub(super) item: Option<Box<Item>>,
    /// The model that answered.
    pub(super) model: Option<Arc<str>>,
}

/// What an assistant's row says.
fn reply(response: Arc<str>, model: Option<Arc<str>>, usage: Option<Reported>, parts: Vec<Part>) -> Loaded {
    let synthetic = model.as_deref() == Some(SYNTHETIC);
    let usage = usage.filter(|_| !synthetic).map(Reported::usage).filter(|it| it.context() > 0);
    let model = model.filter(|_| !synthetic);
    let item = Item::Reply { response, parts, usage, model: model.clone().filter(|_| usage.is_some()) };
    Loaded { item: Some(Box::new(item)), model }
}

/// What a user's row says.
fn words(parts: Vec<Part>, kind: Kind, meta: bool, summary: bool, result: bool) -> Item {
    let kind = if meta { Kind::Context } else { kind };
    if result && parts.iter().any(|it| matches!(it, Part::Output(_))) {
        Item::Results { parts, kind }
    } else if summary || matches!(&*parts, [Part::Text(text)] if super::super::is_our_summary(text.as_str()))
    {
        Item::Summary(parts)
    } else {
        Item::Words { parts, kind }
    }
}

/// What a row says that was read in one pass; `model` is the one that answered.
pub(super) fn said(row: &Row, said: Said, model: Option<Arc<str>>) -> Loaded {
    let kind = said.kind();
    match row.kind {
        RowKind::User { meta, summary, result } => {
            Loaded { item: Some(Box::new(words(said.parts, kind, meta, summary, result))), model: None }
        }
        _ => reply(row.response.clone().unwrap_or_default(), model, said.usage, said.parts),
    }
}

/// What a row says, its texts as `keep` leaves them. `text` is its record's, which stands at `at`.
pub(super) fn load(row: &Row, text: &str, keep: &Keep, at: u64) -> Result<Loaded, String> {
    let mut loaded = loaded(row, text)?;
    loaded.item.iter_mut().flat_map(|it| it.parts_mut()).for_each(|it| hold(it, keep, at));
    Ok(loaded)
}

fn loaded(row: &Row, text: &str) -> Result<Loaded, String> {
    let body = || -> Result<Body, String> {
        let content: Content =
            serde_json::from_str(text).map_err(|it| format!("expected a message: {it}; not used"))?;
        Ok(content.message)
    };
    let item = match row.kind {
        RowKind::Boundary | RowKind::Link | RowKind::Assistant { api_error: true } => None,
        RowKind::Assistant { api_error: false } => {
            let body = body()?;
            let response = row.response.clone().unwrap_or_default();
            return Ok(reply(response, body.model, body.usage, blocks(body.content)));
        }
        RowKind::User { meta, summary, result } => {
            let mut parts = blocks(body()?.content);
            refusals(text, &mut parts);
            let kind = kind_of(&parts);
            Some(words(parts, kind, meta, summary, result))
        }
        RowKind::LocalCommand => {
            #[derive(Deserialize)]
            struct Local {
                #[serde(default, deserialize_with = "lenient")]
                content: Option<String>,
            }
            let local: Local = serde_json::from_str(text).map_err(|it| it.to_string())?;
            let parts = local.content.into_iter().map(|it| Part::Text(it.into())).collect();
            Some(Item::Words { parts, kind: Kind::Context })
        }
        RowKind::Attachment => attachment(text)?,
    };
    Ok(Loaded { item: item.map(Box::new), model: None })
}

/// Marks the results of calls that the user refused. An MCP server's error could read the same: but since 2.1.328 a row
/// says how permission was decided, and in every row of Claude Code the result also stands as it was shown.
fn refusals(row: &str, parts: &mut [Part]) {
    #[derive(Deserialize)]
    struct Denied<'a> {
        #[serde(rename = "toolDenialKind", default, deserialize_with = "lenient")]
        kind: Option<String>,
        #[serde(rename = "permissionDecision", default, deserialize_with = "lenient")]
        permission: Option<Permission>,
        #[serde(rename = "toolUseResult", borrow, default)]
        shown: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Permission {
        decision: String,
    }
    for part in parts {
        if let Part::Output(output) = part
            && output.failed
            && let Some(refusal) = refusal::claude_code(output.text.as_str())
            && let Ok(denied) = serde_json::from_str::<Denied>(row)
            && denied.shown.is_some()
            && denied.kind.is_none_or(|it| it == "user-rejected")
            && denied.permission.is_none_or(|it| it.decision != "accept")
        {
            output.refusal = Some(Box::new(refusal));
        }
    }
}

fn attachment(text: &str) -> Result<Option<Item>, String> {
    #[derive(Deserialize)]
    struct Attached<'a> {
        #[serde(borrow, default)]
        attachment: Option<&'a RawValue>,
        #[serde(borrow, default)]
        rendered: Option<&'a RawValue>,
        #[serde(rename = "renderedRole", default, deserialize_with = "lenient")]
        role: Option<String>,
    }
    #[derive(Deserialize)]
    struct Kinded<'a> {
        #[serde(rename = "type", default, deserialize_with = "lenient")]
        kind: Option<String>,
        #[serde(rename = "commandMode", default, deserialize_with = "lenient")]
        mode: Option<String>,
        #[serde(borrow, default)]
        prompt: Option<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct Rendered<'a> {
        #[serde(borrow, default)]
        content: Option<&'a RawValue>,
    }
    let attached: Attached =
        serde_json::from_str(text).map_err(|it| format!("expected an attachment: {it}"))?;
    let raw = attached.attachment.map_or("", RawValue::get);
    let Ok(kinded) = serde_json::from_str::<Kinded>(raw) else { return Ok(None) };
    let kind = kinded.kind.unwrap_or_default();
    // What the user typed while the model was at work. The client sends it wrapped in a sentence of its own; here are
    // the words alone.
    if kind == "queued_command" && kinded.mode.as_deref().is_none_or(|it| it == "prompt") {
        let parts = blocks(kinded.prompt);
        return Ok(Some(Item::Words { kind: kind_of(&parts), parts }));
    }
    let user = attached.role.as_deref() == Some("user");
    let texts: Vec<Part> = match attached.rendered.map(|it| serde_json::from_str::<Vec<Rendered>>(it.get())) {
        Some(Ok(rendered)) => rendered.into_iter().flat_map(|it| blocks(it.content)).collect(),
        Some(Err(_)) => return Ok(None),
        None => {
            let Some((_, pointer)) = ATTACHED.iter().find(|it| it.0 == kind) else { return Ok(None) };
            let value: Value = serde_json::from_str(raw).map_err(|it| it.to_string())?;
            let text = match value.pointer(pointer) {
                Some(Value::Array(lines)) => lines
                    .iter()
                    .filter_map(|it| it.as_str().or_else(|| it.get("content")?.as_str()))
                    .collect::<Vec<_>>()
                    .join("\n"),
                Some(Value::String(text)) => text.clone(),
                _ => String::new(),
            };
            vec![Part::Text(text.into())]
        }
    };
    if user {
        return Ok(Some(Item::Before(texts)));
    }
    // As `system` it is sent without the tag that marks it elsewhere.
    let bare = |part: Part| match part {
        Part::Text(text) => {
            let inner = text.as_str().strip_prefix("<system-reminder>\n");
            let inner = inner.and_then(|it| it.trim_end().strip_suffix("\n</system-reminder>"));
            Part::Text(inner.map(Text::from).unwrap_or(text))
        }
        other => other,
    };
    Ok(Some(Item::After(texts.into_iter().map(bare).filter(|it| !is_blank(it)).collect())))
}

/// One a boundary, and one a summary that stands without (version 1); each with the row of its summary.
fn past(source: &dyn Source, index: &Index) -> Result<Vec<(Option<usize>, PastCompaction)>> {
    let mut out: Vec<(Option<usize>, PastCompaction)> = Vec::new();
    let mut waits = false;
    for (at, row) in index.rows.iter().enumerate() {
        match row.kind {
            RowKind::Boundary => {
                let compact = row.compact.as_ref();
                let past = PastCompaction {
                    trigger: compact.and_then(|it| it.trigger.clone()),
                    tokens_before: compact.and_then(|it| it.before),
                    tokens_after: compact.and_then(|it| it.after),
                    ..PastCompaction::default()
                };
                out.push((None, past));
                waits = true;
            }
            RowKind::User { summary: true, .. } => {
                if !waits {
                    out.push(Default::default());
                }
                waits = false;
                let bytes = source.bytes(index.records[row.record as usize].range())?;
                let item = loaded(row, &json::mend(&bytes)).ok().and_then(|it| it.item);
                if let (Some((of, past)), Some(Item::Summary(parts))) = (out.last_mut(), item.map(|it| *it)) {
                    past.summary = Message::new(Role::User, Kind::Summary, parts).plain();
                    *of = Some(at);
                }
            }
            RowKind::User { .. }
            | RowKind::Assistant { .. }
            | RowKind::Attachment
            | RowKind::LocalCommand
            | RowKind::Link => {}
        }
    }
    Ok(out)
}
