//! A rollout, every line of it looked at once and not kept.

use super::items::parse;
use crate::error::{Error, Kind as ErrorKind, Result};
use crate::format::raw::Fields;
use crate::format::{Note, Record, Source, derive, lines};
use crate::history::{Kind, Message, Role, Usage};
use crate::json;

/// One line, as far as a replay needs it.
#[derive(Debug)]
pub(super) enum Entry {
    /// A response item; whether it begins a user turn.
    Item {
        starts_turn: bool,
    },
    Compacted {
        message: String,
        has_history: bool,
    },
    TurnContext(Option<String>),
    RolledBack(u64),
    TurnStarted(Option<String>),
    TurnEnded(Option<String>),
    UserMessage,
    Report(Report),
    Other,
}

/// What the provider, or after a compaction the client, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) usage: Usage,
    /// `total_tokens` of the last request.
    pub(super) total: u64,
    /// Input and output of all requests so far; the same again is the same report again.
    pub(super) so_far: (u64, u64),
}

/// A rollout, every line looked at once.
#[derive(Debug, Default)]
pub(super) struct Rollout {
    pub(super) records: Vec<Record>,
    /// One for each record.
    pub(super) entries: Vec<Entry>,
    pub(super) notes: Vec<Note>,
    pub(super) times: Option<(i64, i64)>,
    /// Numbers of the records that a writer copies from.
    pub(super) session_meta: Option<u32>,
    pub(super) world_state: Option<u32>,
    pub(super) turn_context: Option<u32>,
    pub(super) token_count: Option<u32>,
    pub(super) first_prompt: Option<u32>,
    /// The id of the newest turn, if it has one.
    pub(super) turn: Option<String>,
    pub(super) last_compacted: Option<u32>,
    pub(super) window: Option<u64>,
    pub(super) max_ordinal: Option<u64>,
    pub(super) paginated: bool,
    /// Lines that were Codex's.
    known: usize,
}

impl Rollout {
    /// Looks at every line.
    pub(super) fn of(source: &dyn Source) -> Result<Self> {
        let mut rollout = Self::default();
        lines::each_line(source, |line, record, bytes| {
            let text = json::mend(bytes);
            let entry = match rollout.look(&text) {
                Ok(entry) => entry,
                Err(what) => {
                    rollout.notes.push(Note { line, what });
                    Entry::Other
                }
            };
            rollout.records.push(record);
            rollout.entries.push(entry);
            Ok(true)
        })?;
        if rollout.known == 0 {
            return Err(Error::new(
                ErrorKind::Input,
                "while reading a Codex rollout: expected lines with `type` and `payload`, found none; name the format \
                 or another file",
            )
            .at(source.name(), None));
        }
        Ok(rollout)
    }

    fn look(&mut self, text: &str) -> Result<Entry, String> {
        let number = self.records.len() as u32;
        let fields =
            Fields::of(text).ok_or("expected a JSON object, found something else; the line is skipped")?;
        let tag = fields.text("type").ok_or("expected a line with a type, found none; it is skipped")?;
        let Some(payload) = fields.get("payload") else {
            return Err(format!("expected a payload in a {tag:?} line, found none; it is skipped"));
        };
        self.known += 1;
        if let Some(ordinal) = fields.number("ordinal") {
            self.max_ordinal = self.max_ordinal.max(Some(ordinal));
        }
        if let Some(at) = fields.text("timestamp").and_then(|it| derive::parse_time(&it)) {
            let (first, last) = self.times.unwrap_or((at, at));
            self.times = Some((first.min(at), last.max(at)));
        }
        let body = Fields::of(payload);
        let text_of = |key| body.as_ref().and_then(|it| it.text(key));
        Ok(match tag.as_str() {
            "session_meta" => {
                if self.session_meta.is_none() {
                    self.session_meta = Some(number);
                    self.paginated = text_of("history_mode").as_deref() == Some("paginated");
                    if body.as_ref().is_some_and(|it| it.get("history_base").is_some()) {
                        let what = "this thread continues another one, whose file is not read".to_owned();
                        self.notes.push(Note { line: number as u64 + 1, what });
                    }
                }
                Entry::Other
            }
            "response_item" => item(payload, None)?,
            "compacted" => self.compacted(number, body.as_ref()),
            "turn_context" => {
                self.turn_context = Some(number);
                Entry::TurnContext(text_of("turn_id"))
            }
            "world_state" => {
                if body.is_some_and(|it| it.get("full") == Some("true")) {
                    self.world_state = Some(number);
                }
                Entry::Other
            }
            "token_usage_record" => {
                let usage = body.as_ref().and_then(|it| it.object("usage"));
                let so_far = body.as_ref().and_then(|it| it.object("thread_token_usage"));
                usage.map_or(Entry::Other, |it| Entry::Report(report(&it, so_far.as_ref())))
            }
            "inter_agent_communication" => {
                return Err(
                    "what another agent sent is not read from this kind of line; it is left out".into()
                );
            }
            "event_msg" => self.event(number, body.as_ref()),
            // The seed's illustration of a rollout: the variant's name stands around its body.
            "rollout_item" => {
                let Some((name, inner)) = body.as_ref().and_then(|it| it.iter().next()) else {
                    return Err(
                        "expected a rollout item in the payload, found none; the line is skipped".into()
                    );
                };
                match (name, Fields::of(inner)) {
                    ("ResponseItem", Some(variant)) => match variant.iter().next() {
                        Some((tag, body)) => item(body, Some(tag))?,
                        None => return Err("expected a response item, found an empty object".into()),
                    },
                    ("Compacted", inner) => self.compacted(number, inner.as_ref()),
                    (name, _) => return Err(format!("expected ResponseItem or Compacted, found {name:?}")),
                }
            }
            _ => Entry::Other,
        })
    }

    fn compacted(&mut self, number: u32, body: Option<&Fields>) -> Entry {
        self.last_compacted = Some(number);
        Entry::Compacted {
            message: body.and_then(|it| it.text("message")).unwrap_or_default(),
            has_history: body.is_some_and(|it| it.list("replacement_history").is_some()),
        }
    }

    fn event(&mut self, number: u32, body: Option<&Fields>) -> Entry {
        let Some(body) = body else { return Entry::Other };
        let turn = || body.text("turn_id");
        if let Some(window) = body.number("model_context_window") {
            self.window = Some(window);
        }
        match body.text("type").as_deref() {
            Some("task_started" | "turn_started") => {
                self.turn = turn();
                Entry::TurnStarted(turn())
            }
            Some("task_complete" | "turn_complete" | "turn_aborted") => Entry::TurnEnded(turn()),
            Some("thread_rolled_back") => Entry::RolledBack(body.number("num_turns").unwrap_or(0)),
            Some("user_message") => {
                self.first_prompt.get_or_insert(number);
                Entry::UserMessage
            }
            Some("item_completed") => {
                if body.object("item").and_then(|it| it.text("type")).as_deref() == Some("UserMessage") {
                    self.first_prompt.get_or_insert(number);
                }
                Entry::Other
            }
            Some("token_count") => {
                let Some(info) = body.object("info") else { return Entry::Other };
                self.token_count = Some(number);
                if let Some(window) = info.number("model_context_window") {
                    self.window = Some(window);
                }
                let last = info.object("last_token_usage");
                let so_far = info.object("total_token_usage");
                last.map_or(Entry::Other, |it| Entry::Report(report(&it, so_far.as_ref())))
            }
            _ => Entry::Other,
        }
    }

    /// The text of a record, mended; places in it are places in the source.
    pub(super) fn text(&self, source: &dyn Source, number: u32) -> Result<String> {
        match self.records.get(number as usize) {
            Some(record) => Ok(json::mend(&source.bytes(record.range())?).into_owned()),
            None => Ok(String::new()),
        }
    }
}

fn item(body: &str, tag: Option<&str>) -> Result<Entry, String> {
    let found = parse(body, tag)?;
    // A summary begins a turn for Codex too: only what it put there itself does not.
    let starts = |it: &Message| it.role == Role::User && matches!(it.kind, Kind::Said | Kind::Summary);
    Ok(match found {
        Some(item) => Entry::Item { starts_turn: starts(&item.message) },
        None => Entry::Other,
    })
}

fn report(last: &Fields, so_far: Option<&Fields>) -> Report {
    let number = |key| last.number(key).unwrap_or(0);
    let input = number("input_tokens");
    // Codex counts cached tokens as part of the input.
    let cache_read = number("cached_input_tokens").min(input);
    let cache_write = number("cache_write_input_tokens").min(input - cache_read);
    let usage = Usage {
        input: input - cache_read - cache_write,
        output: number("output_tokens"),
        cache_read,
        cache_write,
        reasoning: number("reasoning_output_tokens"),
    };
    let so_far = so_far.unwrap_or(last);
    let sum = |key| so_far.number(key).unwrap_or(0);
    Report { usage, total: number("total_tokens"), so_far: (sum("input_tokens"), sum("output_tokens")) }
}
