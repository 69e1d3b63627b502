//! From a changed history back to rows.

use std::collections::{BTreeMap, HashMap};

use serde::Deserialize;
use serde_json::json as value;
use serde_json::value::RawValue;

use super::fields::{Fields, span};
use super::read::part_of;
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::format::lines::each_line;
use crate::format::{Mode, Piece, Session, Source, Written, derive, replaced};
use crate::history::{History, Kind, Media, MediaKind, Message, Output, Part, Role};
use crate::json::{self, compact};

/// Fields that a copied row loses: second copies of outputs, and links into the file that it comes from.
const NOT_COPIED: [&str; 6] =
    ["toolUseResult", "sourceToolAssistantUUID", "logicalParentUuid", "forkedFrom", "teamName", "agentName"];

/// Fields that every row carries and that a new row takes over from the newest one that has them.
const ENVELOPE: [&str; 5] = ["userType", "entrypoint", "cwd", "version", "gitBranch"];

/// Longest `lastPrompt`, in characters; the client shows its beginning in a list.
const PROMPT_CHARS: usize = 200;

/// Writes `after` back.
///
/// - `Patch`: `after` has the messages of `session`, of which outputs may have another text or other media. Only their
///   `content` changes; a record that gets shorter is filled up with blanks, so that nothing after it moves.
/// - `New`: a session of its own: a boundary if there is a summary, then all messages.
/// - `Append`: the same rows behind the old ones, for a session that no client has open.
///
/// Messages that were read become copies of their rows, in one chain, with new ids; `message.id` is new too, because
/// rows with an old one would be joined to the old response. Usage is reset: the client decides by it when to compact.
pub fn write(source: &dyn Source, session: &Session, after: &History, mode: Mode) -> Result<Written> {
    match mode {
        Mode::Patch => patch(source, session, after),
        Mode::New | Mode::Append => Rows::write(source, session, after, mode),
    }
}

fn patch(source: &dyn Source, session: &Session, after: &History) -> Result<Written> {
    let before = session.history.messages();
    let refuse = |what: &str| {
        let what = format!("while patching outputs, expected {what}; write a new session instead");
        Error::new(ErrorKind::Bug, what).at(source.name(), None)
    };
    if before.len() != after.messages().len() {
        return Err(refuse("the messages that were read, found other ones"));
    }
    let (mut by, mut warnings) = (BTreeMap::new(), Vec::new());
    for (number, (old, new)) in before.iter().zip(after.messages()).enumerate() {
        if new.from != Some(number as u32) {
            return Err(refuse("the messages that were read in their order, found another order"));
        }
        let changed = changed(old, new).ok_or_else(|| refuse("changes of outputs alone, found others"))?;
        if changed.is_empty() {
            continue;
        }
        for &record in &session.of_message[number] {
            let place = session.records[record as usize];
            let bytes = source.bytes(place.range())?;
            let text = json::mend(&bytes);
            let mut at = 0;
            let mut out = Vec::new();
            for (range, new) in contents(&text, &changed) {
                out.extend_from_slice(&bytes[at..range.start]);
                out.extend_from_slice(new.as_bytes());
                at = range.end;
            }
            if at == 0 {
                continue;
            }
            out.extend_from_slice(&bytes[at..]);
            if out.len() > bytes.len() {
                let more = out.len() - bytes.len();
                warnings.push(format!("record {} grew by {more} bytes: what follows it moved", record + 1));
            }
            out.resize(out.len().max(bytes.len()), b' ');
            by.insert(record, out);
        }
    }
    let pieces = replaced(source.len(), &session.records, by);
    Ok(Written { pieces, warnings, ..Written::default() })
}

/// The outputs of `new` that differ, by the call they answer; nothing if the messages differ in more.
fn changed<'a>(old: &Message, new: &'a Message) -> Option<HashMap<&'a str, &'a Output>> {
    if old.role != new.role || old.parts.len() != new.parts.len() {
        return None;
    }
    let mut out = HashMap::new();
    for (old, new) in old.parts.iter().zip(&new.parts) {
        match (old, new) {
            (Part::Output(old), Part::Output(new)) if old.id == new.id => {
                if !old.text.same(&new.text) || old.media != new.media {
                    out.insert(&*new.id, new);
                }
            }
            _ if old == new => {}
            _ => return None,
        }
    }
    Some(out)
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    message: Body<'a>,
}

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    content: &'a RawValue,
}

#[derive(Deserialize)]
struct Result_<'a> {
    tool_use_id: String,
    #[serde(borrow)]
    content: &'a RawValue,
}

/// Blocks of a row's content, as they are written.
fn blocks(text: &str) -> Vec<&RawValue> {
    let content = serde_json::from_str::<Content>(text).map(|it| it.message.content.get());
    content.ok().and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default()
}

/// Where in a record the `content` of these outputs stands, in order, and what is to stand there.
fn contents(text: &str, outputs: &HashMap<&str, &Output>) -> Vec<(std::ops::Range<usize>, String)> {
    let mut left = outputs.clone();
    blocks(text)
        .into_iter()
        .filter_map(|block| {
            let result: Result_ = serde_json::from_str(block.get()).ok()?;
            let output = left.remove(result.tool_use_id.as_str())?;
            Some((span(text, result.content.get()), content_of(output)))
        })
        .collect()
}

/// The `content` of a result: a text, or blocks where there is more.
fn content_of(output: &Output) -> String {
    if output.media.is_empty() {
        return compact(output.text.as_str());
    }
    let text =
        (!output.text.is_empty()).then(|| value!({"type": "text", "text": output.text.as_str()}).to_string());
    let blocks: Vec<String> = text.into_iter().chain(output.media.iter().map(media_block)).collect();
    format!("[{}]", blocks.join(","))
}

fn media_block(media: &Media) -> String {
    let kind = if media.kind == MediaKind::Image { "image" } else { "document" };
    let source = if media.data.contains(':') {
        value!({"type": "url", "url": &*media.data})
    } else {
        value!({"type": "base64", "media_type": &*media.mime, "data": &*media.data})
    };
    value!({"type": kind, "source": source}).to_string()
}

/// A part as a block; nothing for thinking without a signature, which no API takes.
fn block_of(part: &Part) -> Option<String> {
    Some(match part {
        Part::Text(text) => value!({"type": "text", "text": text.as_str()}).to_string(),
        Part::Reasoning(it) => {
            let signature = it.signature.as_ref()?.as_str();
            value!({"type": "thinking", "thinking": it.text.as_str(), "signature": signature}).to_string()
        }
        Part::Call(it) => {
            let (id, name) = (compact(&*it.id), compact(&*it.name));
            format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{}}}"#, it.input.as_str())
        }
        Part::Output(it) => {
            let (id, content) = (compact(&*it.id), content_of(it));
            let failed = if it.failed { r#","is_error":true"# } else { "" };
            format!(r#"{{"type":"tool_result","tool_use_id":{id},"content":{content}{failed}}}"#)
        }
        Part::Media(it) => media_block(it),
        Part::Opaque(it) => it.raw.as_str().to_owned(),
    })
}

/// What becomes a row.
enum Plan<'a> {
    /// Of the session's last boundary, or none.
    Boundary,
    /// A copy of a record, some outputs with another text.
    Copy(u32, HashMap<&'a str, &'a Output>),
    /// A row for a message that we made or changed.
    Own(&'a Message, Vec<String>),
}

/// Rows under construction, one chain.
struct Rows<'a> {
    source: &'a dyn Source,
    session: &'a Session,
    /// Under which the rows are written.
    id: String,
    /// What ids are derived from.
    seed: String,
    /// For rows of ours, and for the last.
    time: String,
    envelope: Vec<(String, String)>,
    /// The uuid of the newest row.
    last: Option<String>,
    count: usize,
    lines: String,
}

impl<'a> Rows<'a> {
    fn write(
        source: &'a dyn Source,
        session: &'a Session,
        after: &'a History,
        mode: Mode,
    ) -> Result<Written> {
        let mut written = Written::default();
        let plan = plan(source, session, after, mode, &mut written.warnings)?;
        let meta = &session.history.meta;
        let old = meta.session.as_deref().unwrap_or_default();
        let seed = compact(&derive::digest(old, "history", session.records.len(), &content(after)));
        let id = match mode {
            Mode::New => derive::uuid(derive::digest(old, "session", 0, &seed)),
            Mode::Append | Mode::Patch => old.to_owned(),
        };
        let time = derive::time(meta.times.map_or(0, |it| it.1) + 1);
        let (envelope, leaf) = newest(source, session)?;
        let lines = String::new();
        let mut rows = Self { source, session, id, seed, time, envelope, last: None, count: 0, lines };
        let end = plan.len();
        for (number, it) in plan.into_iter().enumerate() {
            let is_last = number + 1 == end;
            match it {
                Plan::Boundary => rows.boundary(if mode == Mode::Append { leaf.as_deref() } else { None }),
                Plan::Copy(record, outputs) => rows.copy(record, &outputs, is_last)?,
                Plan::Own(message, blocks) => rows.own(message, &blocks),
            }
        }
        if let Some(leaf) = &rows.last {
            let prompt = after.last_prompt().map(|it| after.messages()[it].plain()).unwrap_or_default();
            let prompt: String = prompt.chars().take(PROMPT_CHARS).collect();
            let line =
                value!({"type": "last-prompt", "lastPrompt": prompt, "leafUuid": leaf, "sessionId": rows.id});
            rows.line(&line.to_string());
        }
        match mode {
            Mode::New => {
                rows.replacements()?;
                written.file_name = Some(format!("{}.jsonl", rows.id));
                written.session = Some(rows.id);
                written.pieces = vec![Piece::New(rows.lines.into_bytes())];
            }
            Mode::Append | Mode::Patch => {
                let end = source.len();
                // A last line that was cut off must not swallow the first of ours.
                if end > 0 && source.bytes(end - 1..end)? != b"\n" {
                    rows.lines.insert(0, '\n');
                }
                written.pieces = vec![Piece::Keep(0..end), Piece::New(rows.lines.into_bytes())];
            }
        }
        Ok(written)
    }

    fn line(&mut self, line: &str) {
        self.lines.push_str(line);
        self.lines.push('\n');
    }

    /// The uuid for the next row.
    fn next(&mut self, of: &str) -> String {
        self.count += 1;
        derive::uuid(derive::digest(&self.seed, "row", self.count, of))
    }

    /// `message.id` for what was the response `old`.
    fn response(&self, old: &str) -> String {
        let digest = derive::digest(&self.seed, "response", 0, old);
        let hex: String = digest.iter().map(|it| format!("{it:02x}")).collect();
        format!("msg_{hex}")
    }

    /// A row of ours: `fields` are key and JSON value.
    fn row(&mut self, of: &str, time: &str, fields: &[(&str, String)]) {
        let uuid = self.next(of);
        let mut line = format!(r#"{{"parentUuid":{},"isSidechain":false"#, compact(&self.last));
        let ours = [("uuid", compact(&uuid)), ("timestamp", compact(time)), ("sessionId", compact(&self.id))];
        let envelope = self.envelope.iter().map(|(key, value)| (key.as_str(), value));
        for (key, value) in fields.iter().chain(&ours).map(|(key, value)| (*key, value)).chain(envelope) {
            line.push_str(&format!(r#","{key}":{value}"#));
        }
        line.push('}');
        self.line(&line);
        self.last = Some(uuid);
    }

    fn boundary(&mut self, leaf: Option<&str>) {
        let before = self.session.history.messages().iter().rev().find_map(|it| it.usage);
        let compacted = value!({"trigger": "manual", "preTokens": before.map_or(0, |it| it.context())});
        let mut fields = vec![
            ("type", compact("system")),
            ("subtype", compact("compact_boundary")),
            ("content", compact("Conversation compacted")),
            ("isMeta", "false".to_owned()),
            ("level", compact("info")),
            ("compactMetadata", compacted.to_string()),
        ];
        if let Some(leaf) = leaf {
            fields.push(("logicalParentUuid", compact(leaf)));
        }
        let time = self.time.clone();
        self.row("boundary", &time, &fields);
    }

    fn own(&mut self, message: &Message, blocks: &[String]) {
        let list = format!("[{}]", blocks.join(","));
        let content = match message.parts.as_slice() {
            [Part::Text(text)] if message.role != Role::Assistant => compact(text.as_str()),
            _ => list,
        };
        let mut fields = Vec::new();
        if message.role == Role::Assistant {
            let id = self.response(message.id.as_deref().unwrap_or(&self.count.to_string()));
            let model = self.session.history.meta.model.as_deref().unwrap_or("<synthetic>");
            let (id, model) = (compact(&id), compact(model));
            let stop = if message.calls().next().is_some() { "tool_use" } else { "end_turn" };
            fields.push(("type", compact("assistant")));
            fields.push((
                "message",
                format!(
                    r#"{{"id":{id},"type":"message","role":"assistant","model":{model},"content":{content},"stop_reason":"{stop}","stop_sequence":null,"usage":{}}}"#,
                    usage()
                ),
            ));
        } else {
            fields.push(("type", compact("user")));
            fields.push(("message", format!(r#"{{"role":"user","content":{content}}}"#)));
            match message.kind {
                Kind::Summary => {
                    fields.push(("isVisibleInTranscriptOnly", "true".to_owned()));
                    fields.push(("isCompactSummary", "true".to_owned()));
                }
                Kind::Context | Kind::Marker | Kind::Continue | Kind::Ack => {
                    fields.push(("isMeta", "true".to_owned()));
                }
                Kind::Said => {}
            }
        }
        let time = self.time.clone();
        self.row(&message.plain(), &time, &fields);
    }

    fn copy(&mut self, record: u32, outputs: &HashMap<&str, &Output>, is_last: bool) -> Result<()> {
        let bytes = self.source.bytes(self.session.records[record as usize].range())?;
        let mended = json::mend(&bytes);
        let mut text = String::new();
        let mut at = 0;
        for (range, new) in contents(&mended, outputs) {
            text.push_str(&mended[at..range.start]);
            text.push_str(&new);
            at = range.end;
        }
        text.push_str(&mended[at..]);
        let Some(fields) = Fields::of(&text) else { return Ok(()) };
        let uuid = self.next(fields.get("uuid").unwrap_or_default());
        let mut change = vec![
            ("parentUuid", Some(compact(&self.last))),
            ("uuid", Some(compact(&uuid))),
            ("sessionId", Some(compact(&self.id))),
        ];
        if fields.get("isSidechain").is_some() {
            change.push(("isSidechain", Some("false".to_owned())));
        }
        if is_last || fields.get("timestamp").is_none() {
            change.push(("timestamp", Some(compact(&self.time))));
        }
        if fields.get("type") == Some("\"assistant\"")
            && let Some(message) = fields.get("message").and_then(Fields::of)
        {
            let old = message.get("id").or(fields.get("uuid")).unwrap_or_default();
            let mut inner = vec![("id", Some(compact(&self.response(old))))];
            if message.get("usage").is_some() {
                inner.push(("usage", Some(usage())));
            }
            change.push(("message", Some(message.with(&inner))));
        }
        change.extend(NOT_COPIED.map(|it| (it, None)));
        let line = fields.with(&change);
        self.line(&line);
        self.last = Some(uuid);
        Ok(())
    }

    /// Lines that tell the client which results it sends shortened; its own fork copies them too.
    fn replacements(&mut self) -> Result<()> {
        let mut lines = Vec::new();
        each_line(self.source, |_, _, bytes| {
            if memchr::memmem::find(&bytes[..bytes.len().min(200)], b"\"content-replacement\"").is_some() {
                lines.push(json::mend(bytes).into_owned());
            }
            Ok(true)
        })?;
        for line in lines {
            if let Some(fields) = Fields::of(&line)
                && fields.get("type") == Some("\"content-replacement\"")
            {
                let line = fields.with(&[("sessionId", Some(compact(&self.id)))]);
                self.line(&line);
            }
        }
        Ok(())
    }
}

/// Reported usage of a copy: nothing.
fn usage() -> String {
    let zero = value!({
        "input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 0
    });
    zero.to_string()
}

/// What ids depend on besides the session: which messages are kept, and all texts that are new.
fn content(after: &History) -> String {
    let mut out = String::new();
    for message in after.messages() {
        match message.from {
            Some(from) => out.push_str(&format!("{from}\n")),
            None => out.push_str(&message.plain()),
        }
        for output in message.outputs() {
            out.push_str(output.text.as_str());
        }
    }
    out
}

/// Every message as rows.
fn plan<'a>(
    source: &dyn Source,
    session: &Session,
    after: &'a History,
    mode: Mode,
    warnings: &mut Vec<String>,
) -> Result<Vec<Plan<'a>>> {
    let mut out = Vec::new();
    if mode == Mode::Append || after.messages().iter().any(|it| it.kind == Kind::Summary) {
        out.push(Plan::Boundary);
    }
    for (number, message) in after.messages().iter().enumerate() {
        let old =
            message.from.and_then(|it| Some((it as usize, session.history.messages().get(it as usize)?)));
        let mut raw = Vec::new();
        if let Some((from, old)) = old {
            let records = &session.of_message[from];
            if let Some(changed) = changed(old, message) {
                out.extend(records.iter().map(|it| Plan::Copy(*it, changed.clone())));
                continue;
            }
            for &record in records {
                let bytes = source.bytes(session.records[record as usize].range())?;
                let text = json::mend(&bytes);
                raw.extend(
                    blocks(&text).into_iter().filter_map(|it| Some((part_of(it)?, it.get().to_owned()))),
                );
            }
        }
        // A part that is as it was keeps its bytes.
        let (mut next, mut blocks) = (0, Vec::new());
        for part in &message.parts {
            let kept = raw[next..].iter().position(|it: &(Part, String)| it.0 == *part);
            let kept = kept.map(|it| {
                next += it + 1;
                raw[next - 1].1.clone()
            });
            match kept.or_else(|| block_of(part)) {
                Some(block) => blocks.push(block),
                None => warnings.push(format!("message {number}: thinking without a signature was left out")),
            }
        }
        if message.role == Role::System {
            warnings
                .push(format!("message {number}: written as the client's own user text instead of system"));
        }
        if !blocks.is_empty() {
            out.push(Plan::Own(message, blocks));
        }
    }
    Ok(out)
}

/// Fields for new rows, and the uuid of the leaf, from the newest live records.
fn newest(source: &dyn Source, session: &Session) -> Result<(Vec<(String, String)>, Option<String>)> {
    let mut found: BTreeMap<usize, String> = BTreeMap::new();
    let mut leaf = None;
    for &record in session.of_message.iter().rev().flat_map(|it| it.iter().rev()) {
        let bytes = source.bytes(session.records[record as usize].range())?;
        let text = json::mend(&bytes);
        let Some(fields) = Fields::of(&text) else { continue };
        leaf = leaf.or_else(|| serde_json::from_str::<String>(fields.get("uuid")?).ok());
        for (number, key) in ENVELOPE.iter().enumerate() {
            if let Some(value) = fields.get(key) {
                found.entry(number).or_insert_with(|| value.to_owned());
            }
        }
        if found.len() == ENVELOPE.len() {
            break;
        }
    }
    Ok((found.into_iter().map(|(number, value)| (ENVELOPE[number].to_owned(), value)).collect(), leaf))
}
