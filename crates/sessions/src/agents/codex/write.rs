//! Writing: outputs replaced in place, a native compaction appended, or a new thread that starts with one.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::items::{FROM_AGENT, Live, NOT_SENT, is_task, items, kind_of, output_value};
use super::replay::Replayed;
use super::rollout::Rollout;
use crate::agents::foreign;
use crate::parse::lines::{Coverage, appended};
use crate::parse::raw::{Fields, array, place, quoted};
use crate::parse::texts::WHOLE;
use crate::{Format, Mode, Piece, Session, Source, Written, changed_outputs, derive, spliced, wire};
use history::error::{Error, ErrorKind, Result};
use history::json;
use history::{History, Kind, Message, Part, Role, Text};
use serde_json::json;

/// Writes `after` back. `session` is what [`read`](super::read) gave for `source`.
///
/// - [`Mode::Patch`]: only outputs may differ; only their text changes.
/// - [`Mode::Append`]: a `compacted` line that carries `after`, copies of the last full `world_state` and the
///   last `turn_context` (else Codex puts its instructions after the summary, or twice), and a `token_count`
///   of the new size (else it compacts again at once). Ordinals continue if the rollout has them.
/// - [`Mode::New`]: the same lines after a `session_meta` with a new thread id.
///
/// The order is that of `after`. If it lacks the instructions and environment that Codex itself put into the
/// live history, they are put first. Kinds that cannot be told from an item are stored beside the history, as
/// `epitome`.
///
/// # Errors
/// [`Bug`](ErrorKind::Bug) if a patch would have to change more than outputs;
/// [`Input`](ErrorKind::Input) if a new thread is wanted of a rollout without `session_meta`.
pub fn write(source: &dyn Source, session: &Session, after: &History, mode: Mode) -> Result<Written> {
    if session.format != Format::CODEX {
        return Ok(foreign_thread(session, after));
    }
    let mut rollout = Rollout::of(source, WHOLE, Coverage::Whole)?;
    let replayed = rollout.replay(source, WHOLE, rollout.survivors())?;
    let ms = rollout.times.map_or(0, |(_, last)| last + 1);
    let change = Change { source, session, rollout: &rollout, replayed: &replayed, after, ms };
    match mode {
        Mode::Patch => patch(source, &replayed, after),
        Mode::Append => {
            let compaction = CompactedRow::of(&change)?;
            let lines = lines(&change, &compaction, rollout.paginated_from())?;
            let pieces = appended(source, &lines)?;
            Ok(Written { pieces, warnings: compaction.warnings, ..Written::default() })
        }
        Mode::New => new_thread(&change),
    }
}

fn patch(source: &dyn Source, replayed: &Replayed, after: &History) -> Result<Written> {
    let mut written = Written::default();
    let mut edits = Vec::new();
    for (number, _, new) in changed_outputs(source, replayed.items.iter().map(|it| &it.message), after)? {
        let range = replayed.items[number].at.clone();
        let Some((range, Some(Part::Output(output)))) = range.zip(Some(new.parts.first())) else {
            written
                .warnings
                .push("the output of an aborted call is not in the file and was left as it is".into());
            continue;
        };
        let text = source.text(range.clone())?;
        let place = Fields::of(&text).and_then(|it| it.get("output")).and_then(|it| place(&text, it));
        let Some(place) = place else {
            let what = "while patching a Codex rollout: expected an output in its record, found none";
            return Err(Error::new(ErrorKind::Bug, what).at(source.name(), None));
        };
        let at = range.start + place.start as u64..range.start + place.end as u64;
        edits.push((at, output_value(output)));
    }
    written.pieces = spliced(source, edits);
    Ok(written)
}

/// A rollout, and what it should become.
struct Change<'a> {
    source: &'a dyn Source,
    session: &'a Session,
    rollout: &'a Rollout,
    replayed: &'a Replayed,
    after: &'a History,
    /// The time of what is written: just after the newest record.
    ms: i64,
}

/// The content of a `compacted` line.
#[derive(Default)]
struct CompactedRow {
    message: String,
    history: Vec<String>,
    kinds: BTreeMap<usize, Kind>,
    /// Codex's own estimate of the new context: a quarter of the bytes.
    tokens: u64,
    /// The number and ids of Codex's context windows, as JSON fields.
    windows: String,
    /// What it cannot carry of the history.
    warnings: Vec<String>,
}

/// The window fields of a new thread.
const FIRST_WINDOW: &str = r#","window_number":1"#;

impl CompactedRow {
    fn of(change: &Change<'_>) -> Result<Self> {
        let Change { source, session, rollout, replayed, after, .. } = *change;
        let freeform = wire::freeform_ids(after.messages());
        let mut row = Self { message: summary_of(after), ..Self::default() };
        let context: Vec<&Message> = match rollout.turn_context {
            Some(_) => missing_context(replayed, after),
            // Without a turn context to copy, Codex adds its context itself.
            None => vec![],
        };
        for it in context.into_iter().chain(after.messages()) {
            let live = it.from.and_then(|from| replayed.items.get(from as usize));
            let raw = match live {
                Some(live) => copied(source, live, it)?,
                None => None,
            };
            let new = raw.map_or_else(|| items(it, &freeform, &mut row.warnings), |it| vec![it]);
            row.add(it, new);
        }
        let system = session.history.meta.system.as_ref().map_or(0, |it| it.size().bytes.div_ceil(4));
        row.tokens = system + row.history.iter().map(|it| it.len().div_ceil(4) as u64).sum::<u64>();
        row.windows = window_fields(change, &row.message)?;
        Ok(row)
    }

    /// Adds a message as these items, and its kind if the reader would not see it.
    fn add(&mut self, message: &Message, items: Vec<String>) {
        if message.kind != read_back(message, &self.message) {
            let places = self.history.len()..self.history.len() + items.len();
            self.kinds.extend(places.map(|at| (at, message.kind)));
        }
        self.history.extend(items);
    }

    fn payload(&self) -> String {
        let (message, history, windows) = (quoted(&self.message), array(&self.history), &self.windows);
        let mut out = format!(r#"{{"message":{message},"replacement_history":{history}{windows}"#);
        if !self.kinds.is_empty() {
            let kinds: BTreeMap<String, &str> =
                self.kinds.iter().map(|(at, kind)| (at.to_string(), kind.name())).collect();
            out.push_str(&format!(r#","epitome":{{"kinds":{}}}"#, json::compact(&kinds)));
        }
        out.push('}');
        out
    }
}

fn summary_of(after: &History) -> String {
    let found = after.messages().iter().rfind(|it| it.kind == Kind::Summary && it.role == Role::User);
    found.map(Message::plain).unwrap_or_default()
}

/// The kind that the reader would see; `summary` is the `message` of the line.
fn read_back(message: &Message, summary: &str) -> Kind {
    // A summary is known by its frame; any user message with the text of the line's `message` is taken for
    // one too.
    let framed = message.kind == Kind::Summary && matches!(message.parts.as_slice(), [Part::Text(_)]);
    if message.role == Role::User && (framed || !summary.is_empty() && message.plain() == summary) {
        return Kind::Summary;
    }
    let sealed =
        message.parts.iter().find_map(|it| if let Part::Opaque(it) = it { Some(&*it.kind) } else { None });
    match sealed {
        Some("compaction" | "compaction_summary" | "context_compaction") => Kind::Summary,
        Some("additional_tools") => Kind::Context,
        Some(FROM_AGENT) if !is_task(&message.parts) => Kind::Context,
        Some(_) | None => kind_of(message.role, &message.parts),
    }
}

/// The first run of context that Codex itself put into the live history, except messages that `after` has: by
/// number, or, where an older history is put back, by content; and instructions of which it has newer ones.
fn missing_context<'a>(replayed: &'a Replayed, after: &History) -> Vec<&'a Message> {
    let kept: HashSet<u32> = after.messages().iter().filter_map(|it| it.from).collect();
    let is_context = |it: &Live| it.message.kind == Kind::Context;
    let anew: Vec<&Message> =
        after.messages().iter().filter(|it| it.kind == Kind::Context && it.from.is_none()).collect();
    let put_back = |it: &Message| anew.iter().any(|old| (old.role, &old.parts) == (it.role, &it.parts));
    let replaced = |it: &Message| {
        let tag = it.instruction_tag();
        tag.is_some() && after.messages().iter().any(|new| new.instruction_tag() == tag)
    };
    let numbered = replayed.items.iter().enumerate().skip_while(|(_, it)| !is_context(it));
    numbered
        .take_while(|(_, it)| is_context(it))
        .filter(|(number, it)| {
            !kept.contains(&(*number as u32)) && !put_back(&it.message) && !replaced(&it.message)
        })
        .map(|(_, it)| &it.message)
        .collect()
}

/// The item's JSON from the source, without the fields of its old place, with a new output if that changed.
/// None if anything else changed.
fn copied(source: &dyn Source, live: &Live, new: &Message) -> Result<Option<String>> {
    let Some(range) = live.at.clone().filter(|_| live.message.differs_in_outputs_alone(new)) else {
        return Ok(None);
    };
    let text = source.text(range)?;
    let Some(fields) = Fields::of(&text).filter(|it| it.get("type").is_some()) else { return Ok(None) };
    let changed = new.parts.iter().zip(&live.message.parts).find_map(|(new, old)| match new {
        Part::Output(output) if new != old => Some(output_value(output)),
        _ => None,
    });
    let mut changes = NOT_SENT.map(|it| (it, None)).to_vec();
    if let Some(output) = &changed {
        changes.push(("output", Some(output.as_str())));
    }
    Ok(Some(fields.with(&changes)))
}

fn window_fields(change: &Change<'_>, summary: &str) -> Result<String> {
    let Change { source, session, rollout, ms, .. } = *change;
    let last = rollout.text(source, rollout.last_compacted)?;
    let first = rollout.text(source, rollout.session_meta)?;
    let last = Fields::of(&last).and_then(|it| it.object("payload"));
    let first = Fields::of(&first).and_then(|it| it.object("payload"));
    // Up to 0.141 the number was in `window_id`.
    let number = last.as_ref().and_then(|it| it.number("window_number").or_else(|| it.number("window_id")));
    let number = number.unwrap_or(session.past.len() as u64) + 1;
    let opened = first.and_then(|it| it.object("context_window")).and_then(|it| it.text("window_id"));
    let field = |key| last.as_ref().and_then(|it| it.text(key));
    let mut out = format!(r#","window_number":{number}"#);
    if let Some(previous) = field("window_id").or_else(|| opened.clone()) {
        let first = field("first_window_id").or(opened).unwrap_or_else(|| previous.clone());
        let this = derive::uuid_v7(ms, derive::digest(session.id(), "window", number as usize, summary));
        for (key, id) in [("first_window_id", first), ("previous_window_id", previous), ("window_id", this)] {
            out.push_str(&format!(r#","{key}":{}"#, quoted(&id)));
        }
    }
    Ok(out)
}

/// The lines of a compaction, each with its line break.
fn lines(change: &Change<'_>, compaction: &CompactedRow, mut ordinal: Option<u64>) -> Result<String> {
    let Change { source, rollout, ms, .. } = *change;
    let mut out = String::new();
    let mut line = |tag: &str, payload: &str| {
        out.push_str(&self::line(ms, ordinal, tag, payload));
        ordinal = ordinal.map(|it| it + 1);
    };
    line("compacted", &compaction.payload());
    for (tag, number) in [("world_state", rollout.world_state), ("turn_context", rollout.turn_context)] {
        let text = rollout.text(source, number)?;
        let Some(payload) = Fields::of(&text).and_then(|it| it.object("payload")) else { continue };
        // With the id of an older turn (`/compact` writes no turn context of its own) Codex would take all
        // lines since then for one turn, and an older rollback for a rollback of this compaction.
        let fits =
            payload.text("turn_id").is_none_or(|it| rollout.turn.as_ref().is_none_or(|turn| *turn == it));
        let id = payload.get("turn_id").filter(|_| fits);
        line(tag, &payload.with(&[("turn_id", id)]));
    }
    let text = rollout.text(source, rollout.token_count)?;
    if let Some(payload) = Fields::of(&text).and_then(|it| it.object("payload"))
        && let Some(payload) = token_count_payload(&payload, compaction.tokens)
    {
        line("event_msg", &payload);
    }
    Ok(out)
}

fn line(ms: i64, ordinal: Option<u64>, tag: &str, payload: &str) -> String {
    let at = quoted(&derive::time(ms));
    let number = ordinal.map_or(String::new(), |it| format!(r#""ordinal":{it},"#));
    format!("{{\"timestamp\":{at},{number}\"type\":\"{tag}\",\"payload\":{payload}}}\n")
}

/// A `token_count` as after Codex's own compaction: nothing was sent yet, and the context has `tokens`.
fn token_count_payload(payload: &Fields, tokens: u64) -> Option<String> {
    let info = payload.object("info")?;
    let last = info.object("last_token_usage")?;
    let zeros: Vec<String> = last
        .iter()
        .map(|(name, _)| format!("{}:{}", quoted(name), if name == "total_tokens" { tokens } else { 0 }))
        .collect();
    let last = format!("{{{}}}", zeros.join(","));
    let info = info.with(&[("last_token_usage", Some(&last))]);
    Some(payload.with(&[("info", Some(&info))]))
}

/// A new thread for the history of another agent: a `session_meta`, and a compaction that carries the history
/// without what only another API understands.
fn foreign_thread(session: &Session, after: &History) -> Written {
    let meta = &after.meta;
    let ms = meta.times.map_or(0, |(_, last)| last + 1);
    let first_prompt = after.messages().iter().find(|it| it.is_prompt()).map(Message::plain);
    let (message, windows) = (summary_of(after), FIRST_WINDOW.to_owned());
    let mut row = CompactedRow { message, windows, ..CompactedRow::default() };
    for message in after.messages() {
        let mut message = foreign(message);
        for part in &mut message.parts {
            if let Part::Call(call) = part {
                // It is not a tool of Codex, so its arguments must be JSON.
                call.input = Text::new(wire::input(call).get());
                call.freeform = false;
            }
        }
        let new = items(&message, &BTreeSet::new(), &mut row.warnings);
        row.add(&message, new);
    }
    let mut lines = line(ms, None, "compacted", &row.payload());
    if let Some(prompt) = first_prompt {
        // The list of sessions shows a thread by its first user message.
        let payload = json!({"type": "user_message", "message": prompt, "images": []});
        lines += &line(ms, None, "event_msg", &payload.to_string());
    }
    let id = thread_id(session, ms, &lines);
    let payload = json!({"id": id, "timestamp": derive::time(ms), "cwd": meta.cwd.as_deref().unwrap_or("/"),
        "originator": "epitome", "cli_version": "0.169.0", "source": "exec"});
    let first = line(ms, None, "session_meta", &payload.to_string());
    thread(ms, id, first + &lines, row.warnings)
}

/// The id of a new thread made from a session.
fn thread_id(session: &Session, ms: i64, content: &str) -> String {
    derive::uuid_v7(ms, derive::digest(session.id(), "thread", 0, content))
}

fn thread(ms: i64, id: String, text: String, warnings: Vec<String>) -> Written {
    let stamp = derive::time(ms).get(..19).unwrap_or_default().replace(':', "-");
    let file_name = Some(format!("rollout-{stamp}-{id}.jsonl"));
    Written { pieces: vec![Piece::New(text.into_bytes())], file_name, session: Some(id), warnings }
}

fn new_thread(change: &Change<'_>) -> Result<Written> {
    let Change { source, session, rollout, ms, .. } = *change;
    let first = rollout.text(source, rollout.session_meta)?;
    let Some(first) = Fields::of(&first) else {
        let what = "while starting a new Codex thread: expected a session_meta line to copy, found none; \
            append instead";
        return Err(Error::new(ErrorKind::Input, what).at(source.name(), None));
    };
    let mut compaction = CompactedRow::of(change)?;
    // A new thread starts its own windows.
    compaction.windows = FIRST_WINDOW.to_owned();
    let id = thread_id(session, ms, &compaction.payload());
    let (quoted_id, at) = (quoted(&id), quoted(&derive::time(ms)));
    let payload = first.object("payload").map(|it| {
        it.with(&[
            ("id", Some(&quoted_id)),
            ("session_id", Some(&quoted_id)),
            ("timestamp", Some(&at)),
            ("context_window", None),
            ("history_base", None),
        ])
    });
    let ordinal = first.get("ordinal").map(|_| "0");
    let first = first.with(&[
        ("timestamp", Some(at.as_str())),
        ("ordinal", ordinal),
        ("payload", Some(payload.as_deref().unwrap_or("{}"))),
    ]);
    let next = rollout.paginated_from().map(|_| 1);
    let mut text = format!("{first}\n{}", lines(change, &compaction, next)?);
    // The list of sessions shows a thread by its first user message.
    let line = rollout.text(source, rollout.first_prompt)?;
    if let Some(line) = Fields::of(&line)
        && let Some(payload) = line.object("payload")
    {
        let thread = payload.get("thread_id").map(|_| quoted_id.as_str());
        let payload = payload.with(&[("thread_id", thread)]);
        let ordinal = next.map(|_| text.lines().count().to_string());
        text.push_str(&line.with(&[
            ("timestamp", Some(at.as_str())),
            ("ordinal", ordinal.as_deref()),
            ("payload", Some(&payload)),
        ]));
        text.push('\n');
    }
    Ok(thread(ms, id, text, compaction.warnings))
}

impl Rollout {
    /// The next ordinal, if the rollout has them: Codex refuses a paginated one whose last line has none.
    fn paginated_from(&self) -> Option<u64> {
        self.max_ordinal.map(|it| it + 1).or(self.paginated.then_some(self.records.len() as u64))
    }
}
