//! New elements: a compaction (its part and the summary), copies of kept messages, and messages of our own.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::element::{LiveElement, usage};
use super::make::{Change, SessionDefaults, VERSION, file, no_tokens, set_output, slots, text};
use super::read::Export;
use crate::{Piece, Session, Written, derive};
use history::error::{Error, ErrorKind, Result};
use history::json::{compact, set};
use history::{Call, History, Kind, Message, Output, Part, Role};

/// All old elements, then the compaction and those kept messages that must be repeated.
pub(super) fn append(export: &Export<'_>, session: &Session, after: &History) -> Result<Written> {
    let refuse =
        |why: &str| Error::new(ErrorKind::Refused, format!("appending to an OpenCode session: {why}"));
    if !export.is_complete {
        return Err(refuse("the export is cut off; export it again"));
    }
    let Some(last) = export.entries.last() else {
        return Err(refuse("it has no messages; make a new session"));
    };
    let Some((summary, rest)) = head(after.messages()) else {
        return Err(refuse("expected a summary first, found none; patch it or make a new session"));
    };
    let mut draft = SessionDraft::begin(Some(export), session, after, "append");
    let tail = draft.tail(export, rest);
    draft.summary(summary, tail.as_deref());
    if tail.is_none() {
        draft.messages(rest);
    }
    let new: String = draft.out.iter().map(|it| format!(",{}", compact(it))).collect();
    let (end, len) = (last.span.end as u64, export.text.len() as u64);
    let pieces = vec![Piece::Keep(0..end), Piece::New(new.into_bytes()), Piece::Keep(end..len)];
    Ok(Written { pieces, warnings: draft.warnings, ..Written::default() })
}

/// A new session: the compaction pair, then copies.
pub(super) fn new(export: Option<&Export<'_>>, session: &Session, after: &History) -> Written {
    let mut draft = SessionDraft::begin(export, session, after, "new");
    draft.session = format!("ses_{}", draft.id_tail(true));
    let rest = match head(after.messages()) {
        Some((summary, rest)) => {
            draft.summary(summary, None);
            rest
        }
        None => {
            if after.messages().iter().any(|it| it.kind == Kind::Summary && it.from.is_none()) {
                draft.warn(
                    "the summary follows other messages: OpenCode will not recognize it as a compaction",
                );
            }
            after.messages()
        }
    };
    draft.messages(rest);
    if export.is_none() && !after.meta.model.as_deref().is_some_and(|it| it.contains('/')) {
        let (provider, model) = (&draft.defaults.model["providerID"], &draft.defaults.model["modelID"]);
        let (provider, model) = (provider.as_str().unwrap_or_default(), model.as_str().unwrap_or_default());
        draft.warn(&format!(
            "OpenCode will continue with {provider}/{model}; if it does not know that model, add --model PROVIDER/MODEL"
        ));
    }
    let document = json!({ "info": draft.info(export, after), "messages": draft.out });
    let mut bytes = compact(&document).into_bytes();
    bytes.push(b'\n');
    Written {
        pieces: vec![Piece::New(bytes)],
        file_name: Some(format!("{}.json", draft.session)),
        session: Some(draft.session),
        warnings: draft.warnings,
    }
}

/// The summary, if nothing but its marker comes before it, and the messages after it.
fn head(messages: &[Message]) -> Option<(&Message, &[Message])> {
    let at = usize::from(messages.first().is_some_and(|it| it.kind == Kind::Marker));
    let summary = messages.get(at).filter(|it| it.kind == Kind::Summary)?;
    Some((summary, &messages[at + 1..]))
}

/// Which output answers which call. An id may be used again: an output answers the latest call before it with
/// its id.
#[derive(Default)]
struct Answers<'m> {
    /// By the index of the call's message, and the call id.
    to_call: BTreeMap<(usize, &'m str), &'m Output>,
    /// The index of the output's message, and the call id.
    used: BTreeSet<(usize, &'m str)>,
}

impl<'m> Answers<'m> {
    fn of(messages: &'m [Message]) -> Self {
        let mut open: BTreeMap<&str, usize> = BTreeMap::new();
        let mut out = Self::default();
        for (number, message) in messages.iter().enumerate() {
            open.extend(message.calls().map(|it| (&*it.id, number)));
            for output in message.outputs() {
                if let Some(call) = open.remove(&*output.id) {
                    out.to_call.insert((call, &output.id), output);
                    out.used.insert((number, &output.id));
                }
            }
        }
        out
    }
}

struct SessionDraft<'a> {
    export: Option<&'a Export<'a>>,
    live: Vec<LiveElement>,
    /// The id of the session that is written.
    session: String,
    /// What all ids are derived from.
    source: String,
    seed: String,
    /// The time of the element being written (ms), the number of ids used for it, and of all ids used.
    now: i64,
    count: u64,
    ids: usize,
    /// The id of the last user element.
    parent: String,
    /// Whether the compaction was automatic.
    automatic: bool,
    defaults: SessionDefaults,
    out: Vec<Value>,
    warnings: Vec<String>,
}

impl<'a> SessionDraft<'a> {
    fn begin(export: Option<&'a Export<'a>>, session: &Session, after: &History, purpose: &str) -> Self {
        let meta = &session.history.meta;
        let source = session.id().to_owned();
        let mut content = String::from(purpose);
        for part in after.messages().iter().flat_map(|it| &it.parts) {
            match part {
                Part::Text(it) => content.push_str(it.as_str()),
                Part::Output(it) => content.push_str(it.text.as_str()),
                Part::Reasoning(_) | Part::Call(_) | Part::Media(_) | Part::Opaque(_) => {}
            }
            content.push('\n');
        }
        let seed = derive::uuid(derive::digest(&source, purpose, after.messages().len(), &content));
        Self {
            export,
            live: export.map(|it| it.live(None)).unwrap_or_default(),
            session: source.clone(),
            source,
            seed,
            now: meta.times.map_or(0, |it| it.1).saturating_add(1),
            count: 0,
            ids: 0,
            parent: String::new(),
            automatic: after.meta.automatic,
            defaults: SessionDefaults::of(export, &after.meta),
            out: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn warn(&mut self, what: &str) {
        if !self.warnings.iter().any(|it| it == what) {
            self.warnings.push(what.to_owned());
        }
    }

    /// An id without its prefix: 12 hex digits of time and counter (their complement for descending ids),
    /// then 14 base-62 digits (OpenCode 1.18).
    fn id_tail(&mut self, descending: bool) -> String {
        const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        let time = (self.now as u64).wrapping_mul(4096).wrapping_add(self.count);
        let time = if descending { !time } else { time } & 0xFFFF_FFFF_FFFF;
        let mut rest = u128::from_le_bytes(derive::digest(&self.source, &self.seed, self.ids, ""));
        self.count += 1;
        self.ids += 1;
        let mut out = format!("{time:012x}");
        for _ in 0..14 {
            out.push(char::from(DIGITS[(rest % 62) as usize]));
            rest /= 62;
        }
        out
    }

    /// Adds an element: ids, times and token counts are made, the rest of `info` and `parts` is as given.
    fn push(&mut self, mut info: Value, parts: Vec<Value>) {
        let id = format!("msg_{}", self.id_tail(false));
        if info["role"] == "user" {
            self.parent.clone_from(&id);
            set(&mut info, "time", json!({ "created": self.now }));
        } else {
            if self.parent.is_empty() {
                self.parent.clone_from(&id);
            }
            set(&mut info, "time", json!({ "created": self.now, "completed": self.now }));
            set(&mut info, "parentID", self.parent.as_str());
            set(&mut info, "cost", 0);
            set(&mut info, "tokens", no_tokens());
        }
        set(&mut info, "id", id.as_str());
        set(&mut info, "sessionID", self.session.as_str());
        let mut placed = Vec::new();
        for mut part in parts {
            if part["type"] == "step-finish" {
                set(&mut part, "tokens", no_tokens());
                set(&mut part, "cost", 0);
            }
            self.place(&mut part, &id);
            if let Some(files) = part.pointer_mut("/state/attachments").and_then(Value::as_array_mut) {
                let all = files.len();
                // For one of these OpenCode's import would refuse the whole session.
                files.retain(Value::is_object);
                if files.len() < all {
                    self.warn("an attachment that is not an object was left out");
                }
                for file in files {
                    self.place(file, &id);
                }
            }
            placed.push(part);
        }
        self.out.push(json!({ "info": info, "parts": placed }));
        self.now = self.now.saturating_add(1);
        self.count = 0;
    }

    /// Gives a part its own id and those of its session and message.
    fn place(&mut self, part: &mut Value, message: &str) {
        set(part, "id", format!("prt_{}", self.id_tail(false)));
        set(part, "sessionID", self.session.as_str());
        set(part, "messageID", message);
    }

    /// The compaction part and the summary, as OpenCode itself writes them after a manual compaction.
    fn summary(&mut self, summary: &Message, tail: Option<&str>) {
        let mut part = json!({ "type": "compaction", "auto": self.automatic });
        if let Some(tail) = tail {
            set(&mut part, "tail_start_id", tail);
        }
        let user = self.defaults.user();
        self.push(user, vec![part]);
        let mut info = self.defaults.assistant();
        set(&mut info, "mode", "compaction");
        set(&mut info, "agent", "compaction");
        set(&mut info, "summary", true);
        set(&mut info, "finish", "stop");
        if summary.parts.iter().any(|it| !matches!(it, Part::Text(_))) {
            self.warn("parts that are not text were left out of the summary");
        }
        let parts = summary.texts().map(|it| text(it, Kind::Said, self.now)).collect();
        self.push(info, parts);
    }

    /// The id by which the marker can name the tail, if that is the newest elements, unchanged and whole, and
    /// its last reply reports no tokens: an import cannot change old elements, and OpenCode would compact
    /// again if the last reply says that the context was full.
    fn tail(&self, export: &Export<'_>, rest: &[Message]) -> Option<String> {
        let start = rest.first()?.from? as usize;
        let kept = self.live.get(start..).filter(|it| it.len() == rest.len())?;
        let same = rest.iter().zip(kept).enumerate().all(|(offset, (message, live))| {
            let from = message.from == Some((start + offset) as u32);
            from && message.role == live.message.role && message.parts == live.message.parts
        });
        let first = kept.first()?.record;
        let is_contiguous =
            self.live[..start].iter().all(|it| it.record < first) && kept.iter().all(|it| it.record >= first);
        let reported = kept.iter().rfind(|it| it.message.role == Role::Assistant);
        let reported = reported.and_then(|it| usage(&export.entries[it.record].info["tokens"]));
        if !same || !is_contiguous || reported.is_some() {
            return None;
        }
        export.entries[first].info["id"].as_str().filter(|it| !it.is_empty()).map(str::to_owned)
    }

    /// Adds messages; those of one element become one again.
    fn messages(&mut self, messages: &[Message]) {
        let answers = Answers::of(messages);
        let goes_on = |before: &Message, next: &Message| {
            let record = self.record(before);
            record.is_some() && record == self.record(next) && before.from < next.from
        };
        let mut at = 0;
        for group in messages.chunk_by(goes_on).collect::<Vec<_>>() {
            let record = self.record(&group[0]);
            match record.and_then(|it| self.copy(it, group)) {
                Some((info, parts)) => self.push(info, parts),
                None => self.add_new(record, at, group, &answers),
            }
            at += group.len();
        }
    }

    /// The element that a message was read from, if it can be copied. Markers and summaries cannot: a copy of
    /// the part would hide everything before it.
    fn record(&self, message: &Message) -> Option<usize> {
        if matches!(message.kind, Kind::Marker | Kind::Summary) {
            return None;
        }
        self.live.get(message.from? as usize).map(|it| it.record)
    }

    /// A copy of an element with the kept parts, changed as they were; none if they changed in another way.
    fn copy(&self, record: usize, group: &[Message]) -> Option<(Value, Vec<Value>)> {
        let mut wanted: BTreeMap<usize, Change<'_>> = BTreeMap::new();
        let mut ids: BTreeMap<usize, &str> = BTreeMap::new();
        for message in group {
            let live = self.live.get(message.from? as usize)?;
            for (slot, change) in slots(message, &live.message)? {
                let part = *live.parts.get(slot)?;
                wanted.insert(part, change);
                if let Some(Part::Call(call)) = live.message.parts.get(slot) {
                    ids.insert(part, &call.id);
                }
            }
        }
        // The messages of one element are adjacent in the history.
        let near = (*group).first()?.from? as usize;
        let known: BTreeSet<usize> = self.live[..near]
            .iter()
            .rev()
            .take_while(|it| it.record == record)
            .chain(self.live[near..].iter().take_while(|it| it.record == record))
            .flat_map(|it| it.parts.iter().copied())
            .collect();
        let mut element = self.export?.element(record);
        let mut info = element.get_mut("info").filter(|it| it.is_object()).map(Value::take)?;
        let parts = element.get_mut("parts").and_then(Value::as_array_mut).map(std::mem::take)?;
        let mut out = Vec::new();
        for (index, mut part) in parts.into_iter().enumerate() {
            match wanted.get(&index) {
                None if known.contains(&index) => continue,
                None | Some(Change::Same) => {}
                Some(Change::Text(text)) => set(&mut part, "text", text.as_str()),
                Some(Change::Output(output)) => set_output(&mut part, output),
            }
            // A call without an id was named by its position, which has changed.
            if let Some(id) = ids.get(&index).filter(|it| part["callID"] != **it) {
                set(&mut part, "callID", *id);
            }
            out.push(part);
        }
        if info["summary"].is_object() {
            set(&mut info, "summary", json!({ "diffs": [] }));
        }
        Some((info, out))
    }

    /// Adds an element of our own: a user message, or a reply with the outputs of its calls, wherever they
    /// are in the messages after it. `at`: the index of the first message of `group`.
    fn add_new(&mut self, record: Option<usize>, at: usize, group: &[Message], answers: &Answers<'_>) {
        let Some(first) = group.first() else { return };
        let mut parts = Vec::new();
        for (number, message) in (at..).zip(group) {
            if message.role == Role::Assistant && !parts.is_empty() {
                parts.push(json!({ "type": "step-start" }));
            }
            let kind = if message.role == Role::Assistant { Kind::Said } else { message.kind };
            for part in &message.parts {
                match part {
                    Part::Text(it) => parts.push(text(it, kind, self.now)),
                    Part::Reasoning(it) => {
                        if it.signature.is_some() {
                            self.warn("thinking lost its signature: OpenCode keeps signatures by provider");
                        }
                        if !it.text.is_empty() {
                            let time = json!({ "start": self.now, "end": self.now });
                            parts
                                .push(json!({ "type": "reasoning", "text": it.text.as_str(), "time": time }));
                        }
                    }
                    Part::Call(it) => {
                        parts.push(self.tool(it, answers.to_call.get(&(number, &*it.id)).copied()))
                    }
                    Part::Media(it) => parts.push(file(it)),
                    // It is written with its call.
                    Part::Output(it) if answers.used.contains(&(number, &*it.id)) => {}
                    Part::Output(_) => self.warn("an output whose call is gone was left out"),
                    Part::Opaque(it) => self.warn(&format!("a {} block of {} was left out", it.kind, it.api)),
                }
            }
        }
        if parts.is_empty() {
            return;
        }
        let known = record.and_then(|it| self.export?.entries.get(it)).map(|it| &it.info);
        let info = match first.role {
            Role::User | Role::System => self.defaults.user(),
            Role::Assistant | Role::Tool => {
                let mut info =
                    known.filter(|it| it.is_object()).cloned().unwrap_or_else(|| self.defaults.assistant());
                let calls = group.iter().any(|it| it.calls().next().is_some());
                set(&mut info, "finish", if calls { "tool-calls" } else { "stop" });
                without(&mut info, &["error"]);
                info
            }
        };
        self.push(info, parts);
    }

    fn tool(&mut self, call: &Call, output: Option<&Output>) -> Value {
        let input = serde_json::from_str::<Value>(call.input.as_str()).ok().filter(Value::is_object);
        let input = input.unwrap_or_else(|| {
            self.warn("a tool input that is not a JSON object was wrapped in one");
            json!({ "input": call.input.as_str() })
        });
        let time = json!({ "start": self.now, "end": self.now });
        let mut state = match output {
            None => json!({ "status": "running", "input": input, "time": { "start": self.now } }),
            Some(it) if it.failed => {
                json!({ "status": "error", "input": input, "error": it.text.as_str(), "time": time })
            }
            Some(it) => json!({
                "status": "completed", "input": input, "output": it.text.as_str(), "title": "", "metadata": {},
                "time": time,
            }),
        };
        let media = output.map(|it| &*it.media).unwrap_or_default();
        if !media.is_empty() {
            set(&mut state, "attachments", media.iter().map(file).collect::<Value>());
        }
        json!({ "type": "tool", "tool": &*call.name, "callID": &*call.id, "state": state })
    }

    /// The `info` of the session.
    fn info(&self, export: Option<&Export<'_>>, after: &History) -> Value {
        let short = &self.seed[..6.min(self.seed.len())];
        let mut info = match export.map(|it| &it.info).filter(|it| it.is_object()) {
            Some(info) => info.clone(),
            None => {
                let prompt = after.messages().iter().find(|it| it.is_prompt()).map(Message::plain);
                let title: String = prompt.unwrap_or_default().chars().take(60).collect();
                let directory = &self.defaults.path["cwd"];
                json!({ "projectID": "global", "directory": directory, "title": title, "version": VERSION })
            }
        };
        let slug = format!("{}-{short}", info["slug"].as_str().unwrap_or("epitome"));
        let title = format!("{} (compacted)", info["title"].as_str().unwrap_or_default());
        without(&mut info, &["parentID", "share", "revert"]);
        if info.get("tokens").is_some() {
            set(&mut info, "tokens", no_tokens());
        }
        set(&mut info, "id", self.session.as_str());
        set(&mut info, "slug", slug);
        set(&mut info, "title", title.trim_start());
        let created = self.out.first().map_or(&Value::Null, |it| &it["info"]["time"]["created"]);
        let created = created.as_i64().unwrap_or(self.now);
        set(&mut info, "time", json!({ "created": created, "updated": self.now }));
        info
    }
}

fn without(info: &mut Value, keys: &[&str]) {
    if let Some(fields) = info.as_object_mut() {
        fields.retain(|key, _| !keys.contains(&key.as_str()));
    }
}
