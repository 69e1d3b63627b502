//! Writes a changed history as rows.

mod patch;

use std::collections::{BTreeMap, HashMap};

use serde_json::json as value;

use super::blocks::block_of;
use super::line::LineReader;
use super::usage::SYNTHETIC;
use crate::parse::lines::{appended, each_line};
use crate::parse::raw::Fields;
use crate::parse::texts::WHOLE;
use crate::{Format, Mode, Piece, Session, Source, Written, derive, refusal};
use history::error::{Error, ErrorKind, Result};
use history::json::{self, compact};
use history::{History, Kind, Message, Output, Part, Role};
use patch::{REST_FIELD, changed, contents, patch, raw_blocks};

/// Fields that a copied row loses: second copies of outputs, and links into the file that it was copied from.
const NOT_COPIED: [&str; 7] = [
    REST_FIELD,
    SHOWN,
    "sourceToolAssistantUUID",
    "logicalParentUuid",
    "forkedFrom",
    "teamName",
    "agentName",
];

/// The field that holds a result as Claude Code shows it.
const SHOWN: &str = "toolUseResult";

/// Fields of every row, which a new row takes from the newest row that has them.
const ENVELOPE: [&str; 5] = ["userType", "entrypoint", "cwd", "version", "gitBranch"];

/// Maximum characters of `lastPrompt`; the client shows its beginning in a list.
const PROMPT_CHARS: usize = 200;

/// Writes `after` back.
///
/// - `Patch`: `after` has the messages of `session`, with other text or media in some outputs. Only their
///   `content` changes; the rest of a longer old output is set aside or replaced by blanks, so that nothing
///   after it moves.
/// - `New`: a session of its own: a boundary if there is a summary, then all messages.
/// - `Append`: the same rows after the old ones, for a session that no client has open.
///
/// Messages that were read become copies of their rows, in one chain, with new ids; `message.id` is new too,
/// because rows with an old one would be joined to the old response. Usage is reset, since the client
/// compacts by it.
///
/// A session of another agent can be carried over with `New`: no row is copied, and what is signed for
/// another API is dropped.
///
/// # Errors
/// As [`crate::write`].
pub fn write(source: &dyn Source, session: &Session, after: &History, mode: Mode) -> Result<Written> {
    if session.format != Format::CLAUDE_CODE && mode != Mode::New {
        let found = session.format.name();
        let what = format!(
            "while writing in place, expected a Claude Code session, found {found}; write a new session"
        );
        return Err(Error::new(ErrorKind::Arguments, what).at(source.name(), None));
    }
    match mode {
        Mode::Patch => patch(source, session, after),
        Mode::New | Mode::Append => NewRows::write(source, session, after, mode),
    }
}

/// A row to write.
enum NewRow<'a> {
    /// The boundary of a compaction.
    Boundary,
    /// A copy of a record, with new text for some outputs, by call id.
    Copy(u32, HashMap<&'a str, &'a Output>),
    /// A row for a message that we made or changed.
    Own(&'a Message, Vec<String>),
}

/// Names and JSON values of fields.
type Envelope = Vec<(String, String)>;

/// Rows under construction, in one chain.
struct NewRows<'a> {
    source: &'a dyn Source,
    session: &'a Session,
    /// The session id in the rows.
    id: String,
    /// What ids are derived from.
    seed: String,
    /// The time of rows of ours and of the last row.
    time: String,
    envelope: Envelope,
    /// The uuid of the newest row.
    last: Option<String>,
    count: usize,
    lines: String,
    /// Whether the compaction was automatic.
    automatic: bool,
}

impl<'a> NewRows<'a> {
    fn write(
        source: &'a dyn Source,
        session: &'a Session,
        after: &'a History,
        mode: Mode,
    ) -> Result<Written> {
        let mut written = Written::default();
        let new_rows = new_rows(source, session, after, mode, &mut written.warnings)?;
        let meta = &session.history.meta;
        let old = session.id();
        let seed = compact(&derive::digest(old, "history", session.records.len(), &content(after)));
        let id = match mode {
            Mode::New => derive::uuid(derive::digest(old, "session", 0, &seed)),
            Mode::Append | Mode::Patch => old.to_owned(),
        };
        let time = derive::time(meta.times.map_or(0, |it| it.1) + 1);
        let (envelope, leaf) = newest(source, session)?;
        let lines = String::new();
        let automatic = after.meta.automatic;
        let mut rows =
            Self { source, session, id, seed, time, envelope, last: None, count: 0, lines, automatic };
        let end = new_rows.len();
        for (number, it) in new_rows.into_iter().enumerate() {
            let is_last = number + 1 == end;
            match it {
                NewRow::Boundary => rows.boundary(if mode == Mode::Append { leaf.as_deref() } else { None }),
                NewRow::Copy(record, outputs) => rows.copy(record, &outputs, is_last)?,
                NewRow::Own(message, blocks) => rows.own(message, &blocks, is_last),
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
                if session.format == Format::CLAUDE_CODE {
                    rows.replacements()?;
                }
                written.file_name = Some(format!("{}.jsonl", rows.id));
                written.session = Some(rows.id);
                written.pieces = vec![Piece::New(rows.lines.into_bytes())];
            }
            Mode::Append | Mode::Patch => {
                written.pieces = appended(source, &rows.lines)?;
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

    /// The new `message.id` for the response `old`.
    fn response(&self, old: &str) -> String {
        format!("msg_{}", derive::hex(&derive::digest(&self.seed, "response", 0, old)))
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
        let trigger = if self.automatic { "auto" } else { "manual" };
        let compacted = value!({"trigger": trigger, "preTokens": before.map_or(0, |it| it.context())});
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

    fn own(&mut self, message: &Message, blocks: &[String], is_last: bool) {
        let list = format!("[{}]", blocks.join(","));
        let content = match message.parts.as_slice() {
            [Part::Text(text)] if message.role != Role::Assistant => compact(text.as_str()),
            _ => list,
        };
        let mut fields = Vec::new();
        if message.role == Role::Assistant {
            let id = self.response(message.id.as_deref().unwrap_or(&self.count.to_string()));
            // The client continues with the model that it finds here, and does not know one of another agent.
            let model = self.session.history.meta.model.as_deref();
            let model = model.filter(|_| self.session.format == Format::CLAUDE_CODE).unwrap_or(SYNTHETIC);
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
        let time = message.at.filter(|_| !is_last).map_or(self.time.clone(), derive::time);
        self.row(&message.plain(), &time, &fields);
    }

    fn copy(&mut self, record: u32, outputs: &HashMap<&str, &Output>, is_last: bool) -> Result<()> {
        let mended = self.source.text(self.session.records[record as usize].range())?;
        let text = history::edited(&mended, contents(&mended, outputs));
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
            && let Some(message) = fields.object("message")
        {
            let old = message.get("id").or(fields.get("uuid")).unwrap_or_default();
            let mut inner = vec![("id", Some(compact(&self.response(old))))];
            if message.get("usage").is_some() {
                inner.push(("usage", Some(usage())));
            }
            change.push(("message", Some(message.with(&inner))));
        }
        // Only this field tells a refusal from an output that reads the same, so a refusal keeps it.
        let refused = fields.get(SHOWN).is_some_and(refusal::is_shown);
        let gone = NOT_COPIED.iter().filter(|it| !(refused && **it == SHOWN));
        change.extend(gone.map(|it| (*it, None)));
        let line = fields.with(&change);
        self.line(&line);
        self.last = Some(uuid);
        Ok(())
    }

    /// Copies the lines that tell the client which results it sends shortened, as its own fork does.
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

/// The usage in a copied or new response: all zero.
fn usage() -> String {
    let zero = value!({
        "input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 0
    });
    zero.to_string()
}

/// What ids depend on besides the session: which messages are kept, and all texts.
fn content(after: &History) -> String {
    let mut out = String::new();
    for message in after.messages() {
        if let Some(from) = message.from {
            out.push_str(&format!("{from}\n"));
        }
        out.push_str(&message.plain());
        for output in message.outputs() {
            out.push_str(output.text.as_str());
        }
    }
    out
}

/// Every message as rows.
fn new_rows<'a>(
    source: &dyn Source,
    session: &Session,
    after: &'a History,
    mode: Mode,
    warnings: &mut Vec<String>,
) -> Result<Vec<NewRow<'a>>> {
    let mut out = Vec::new();
    if mode == Mode::Append || after.messages().iter().any(|it| it.kind == Kind::Summary) {
        out.push(NewRow::Boundary);
    }
    let foreign = session.format != Format::CLAUDE_CODE;
    for (number, message) in after.messages().iter().enumerate() {
        let from = message.from.filter(|_| !foreign);
        let old = from.and_then(|it| Some((it as usize, session.history.messages().get(it as usize)?)));
        let mut raw = Vec::new();
        if let Some((from, old)) = old {
            let records = &session.origins[from];
            if let Some(changed) = changed(old, message) {
                out.extend(records.iter().map(|it| NewRow::Copy(*it, changed.clone())));
                continue;
            }
            for &record in records {
                let text = source.text(session.records[record as usize].range())?;
                let mut reader = LineReader::new(Some(WHOLE), 0);
                let mut part = |raw: &str| reader.parts(&format!("[{raw}]")).parts.pop();
                raw.extend(raw_blocks(&text).into_iter().filter_map(|it| Some((part(it)?, it.to_owned()))));
            }
        }
        // An unchanged part keeps its bytes.
        let (mut next, mut blocks) = (0, Vec::new());
        for part in &message.parts {
            let kept = raw[next..].iter().position(|it: &(Part, String)| it.0 == *part);
            let kept = kept.map(|it| {
                next += it + 1;
                raw[next - 1].1.clone()
            });
            let signed = matches!(part, Part::Reasoning(_));
            match kept.or_else(|| block_of(part).filter(|_| !(foreign && signed))) {
                Some(block) => blocks.push(block),
                None if signed => warnings
                    .push(format!("message {number}: thinking that is not signed for this API is left out")),
                None => warnings.push(format!("message {number}: a block of another API is left out")),
            }
        }
        if message.role == Role::System {
            warnings.push(format!("message {number}: system text is written as the client's own user text"));
        }
        if !blocks.is_empty() {
            out.push(NewRow::Own(message, blocks));
        }
    }
    Ok(out)
}

/// Fields for new rows, and the uuid of the leaf, from the newest live records.
fn newest(source: &dyn Source, session: &Session) -> Result<(Envelope, Option<String>)> {
    let mut found: BTreeMap<usize, String> = BTreeMap::new();
    let mut leaf = None;
    let live = session.origins.iter().filter(|_| session.format == Format::CLAUDE_CODE);
    for &record in live.rev().flat_map(|it| it.iter().rev()) {
        let text = source.text(session.records[record as usize].range())?;
        let Some(fields) = Fields::of(&text) else { continue };
        leaf = leaf.or_else(|| fields.text("uuid"));
        for (number, key) in ENVELOPE.iter().enumerate() {
            if let Some(value) = fields.get(key) {
                found.entry(number).or_insert_with(|| value.to_owned());
            }
        }
        if found.len() == ENVELOPE.len() {
            break;
        }
    }
    if let Some(cwd) = &session.history.meta.cwd {
        found.entry(2).or_insert_with(|| compact(&**cwd));
    }
    Ok((found.into_iter().map(|(number, value)| (ENVELOPE[number].to_owned(), value)).collect(), leaf))
}
