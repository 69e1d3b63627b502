//! A rollout, every line of it looked at once and not kept.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::fast::{self, Fast, Said};
use super::items::{Item, Live, parse};
use super::usage::{Report, Tokens, report};
use crate::media::SharedData;
use crate::raw::{Fields, place};
use crate::{Keep, LOOKED_AT_WHOLE, Note, Record, Source, derive, hold, lines};
use history::error::{Error, Kind as ErrorKind, Result};
use history::json;
use history::{Kind, Role};

/// One line, as far as a replay needs it.
#[derive(Debug)]
pub(super) enum RolloutEntry {
    /// A response item; whether it begins a user turn.
    Item {
        starts_turn: bool,
        /// It, where it was kept while the line was looked at.
        live: Option<Box<Live>>,
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
    Report(Box<Report>),
    Other,
}

impl RolloutEntry {
    fn live(&mut self) -> Option<&mut Live> {
        match self {
            Self::Item { live, .. } => live.as_deref_mut(),
            Self::Compacted { .. }
            | Self::TurnContext(_)
            | Self::RolledBack(_)
            | Self::TurnStarted(_)
            | Self::TurnEnded(_)
            | Self::UserMessage
            | Self::Report(_)
            | Self::Other => None,
        }
    }
}

/// A rollout, every line looked at once.
#[derive(Debug, Default)]
pub(super) struct Rollout {
    pub(super) records: Vec<Record>,
    /// One for each record.
    pub(super) entries: Vec<RolloutEntry>,
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
    /// Whether any turn was begun.
    turn_seen: bool,
    pub(super) last_compacted: Option<u32>,
    pub(super) window: Option<u64>,
    pub(super) max_ordinal: Option<u64>,
    pub(super) paginated: bool,
    /// Lines that were Codex's.
    known: usize,
    /// All lines, blank ones too.
    lines: u64,
}

impl Rollout {
    /// Looks at the lines from the last one backwards, on all cores: at all of them, or at no more than what a resume
    /// would send is made of and at the first (or at all if they are few). What may be missing then are compactions
    /// before the newest one that survived, and what they were like; the history is the same.
    ///
    /// Items are kept as far back as a replay is likely to need them: to the last compaction that carries a history.
    /// Those before it that it needs all the same are left to be read once more.
    pub(super) fn of(source: &dyn Source, keep: &Keep, all: bool) -> Result<Self> {
        let mut parts: Vec<Self> = Vec::new();
        let based = AtomicBool::new(false);
        let all = all || source.len() <= LOOKED_AT_WHOLE;
        let look = |range| Self::within(source, range, Some(keep).filter(|_| !based.load(Relaxed)));
        // Offset at the last check for completeness; checked again when a quarter more was read.
        let mut asked = source.len();
        let mut data = SharedData::default();
        let from = lines::backwards(source, look, |mut part: Self, from| {
            let behind = source.len() - from;
            based.fetch_or(part.carries_history(), Relaxed);
            data.share(
                part.entries.iter_mut().filter_map(RolloutEntry::live).flat_map(|it| &mut it.message.parts),
            );
            parts.push(part);
            if all || !based.load(Relaxed) || (source.len() - asked) * 5 > behind * 4 {
                return true;
            }
            asked = from;
            parts = vec![Self::joined(std::mem::take(&mut parts))];
            !parts[0].is_enough()
        })?;
        let mut rollout = Self::joined(parts);
        if from == 0 {
            return rollout.ours(source);
        }
        // The first time is the earliest of the first lines.
        let head = Self::within(source, 0..lines::HEAD.min(from), None)?;
        // A file that does not begin with what all begin with is looked at from the beginning.
        if head.session_meta != Some(0) {
            return Self::of(source, keep, true);
        }
        let lines = if rollout.notes.is_empty() {
            0
        } else {
            lines::each_line_in(source, 0..from, |_, _, _| Ok(true))?
        };
        let first = Self {
            records: head.records.into_iter().take(1).collect(),
            entries: vec![RolloutEntry::Other],
            session_meta: Some(0),
            times: head.times,
            known: 1,
            lines,
            ..Self::default()
        };
        rollout = Self::joined(vec![rollout, first]);
        Ok(rollout)
    }

    /// Looks at the lines that begin in a range; with `keep`, items are kept as that leaves them.
    fn within(source: &dyn Source, range: Range<u64>, keep: Option<&Keep>) -> Result<Self> {
        let mut rollout = Self::default();
        let mut held = fast::Held::default();
        rollout.lines = lines::each_line_in(source, range, |line, record, bytes| {
            let make =
                keep.map(|keep| move |text: &str| keep(text, record.at).unwrap_or_else(|| text.into()));
            let mut reader = fast::Reader { keep: make.as_ref().map(|it| it as _), held: &mut held };
            let looked = match reader.look(bytes) {
                Some(it) => Ok(rollout.take(it, record)),
                None => rollout.look(&json::mend(bytes), keep.map(|it| (it, record))),
            };
            let entry = match looked {
                Ok(entry) => entry,
                Err(what) => {
                    rollout.notes.push(Note { line, what });
                    RolloutEntry::Other
                }
            };
            rollout.records.push(record);
            rollout.entries.push(entry);
            Ok(true)
        })?;
        Ok(rollout)
    }

    /// Whether a compaction is in it that carries a history.
    fn carries_history(&self) -> bool {
        self.entries.iter().any(|it| matches!(it, RolloutEntry::Compacted { has_history: true, .. }))
    }

    /// Whether a history is found in it that nothing before can change, and all else that is told of a session.
    fn is_enough(&self) -> bool {
        self.survivors().1 && self.turn_context.is_some() && self.window.is_some()
    }

    /// Parts of one rollout, the last one first, as one.
    fn joined(parts: Vec<Self>) -> Self {
        let lines: usize = parts.iter().map(|it| it.entries.len()).sum();
        let mut parts = parts.into_iter().rev();
        let mut all = parts.next().unwrap_or_default();
        all.records.reserve_exact(lines - all.records.len());
        all.entries.reserve_exact(lines - all.entries.len());
        for part in parts {
            let by = all.records.len() as u32;
            let later = |new: Option<u32>, old: Option<u32>| new.map(|it| it + by).or(old);
            all.records.extend(part.records);
            all.entries.extend(part.entries);
            all.notes.extend(part.notes.into_iter().map(|it| Note { line: it.line + all.lines, ..it }));
            all.lines += part.lines;
            if let Some((from, to)) = part.times {
                let (first, last) = all.times.unwrap_or((from, to));
                all.times = Some((first.min(from), last.max(to)));
            }
            if all.session_meta.is_none() {
                (all.session_meta, all.paginated) = (part.session_meta.map(|it| it + by), part.paginated);
            }
            all.world_state = later(part.world_state, all.world_state);
            all.turn_context = later(part.turn_context, all.turn_context);
            all.token_count = later(part.token_count, all.token_count);
            all.first_prompt = all.first_prompt.or(part.first_prompt.map(|it| it + by));
            all.last_compacted = later(part.last_compacted, all.last_compacted);
            if part.turn_seen {
                (all.turn, all.turn_seen) = (part.turn, true);
            }
            all.window = part.window.or(all.window);
            all.max_ordinal = all.max_ordinal.max(part.max_ordinal);
            all.known += part.known;
        }
        all
    }

    /// It, if any line was Codex's.
    fn ours(self, source: &dyn Source) -> Result<Self> {
        let rollout = self;
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

    fn take(&mut self, line: Fast, record: Record) -> RolloutEntry {
        self.known += 1;
        self.max_ordinal = self.max_ordinal.max(line.ordinal);
        self.time(line.at);
        match line.said {
            Said::Item(Some(item), place) => kept(item, line.at, Some(place), record),
            Said::Item(None, _) => RolloutEntry::Item { starts_turn: false, live: None },
            Said::Counted(report, window) => {
                self.token_count = Some(self.records.len() as u32);
                self.window = window.or(self.window);
                report.map_or(RolloutEntry::Other, |it| RolloutEntry::Report(Box::new(it)))
            }
            Said::TurnStarted(turn, window) => {
                self.window = window.or(self.window);
                self.turn_started(turn)
            }
            Said::TurnContext(turn) => {
                self.turn_context = Some(self.records.len() as u32);
                RolloutEntry::TurnContext(turn)
            }
            Said::UserMessage => {
                self.first_prompt.get_or_insert(self.records.len() as u32);
                RolloutEntry::UserMessage
            }
            Said::Nothing => RolloutEntry::Other,
        }
    }

    fn look(&mut self, text: &str, keep: Option<(&Keep, Record)>) -> Result<RolloutEntry, String> {
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
        let at = fields.text("timestamp").and_then(|it| derive::parse_time(&it));
        self.time(at);
        let item = |body, tag| item(body, tag, at, place(text, body), keep);
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
                RolloutEntry::Other
            }
            "response_item" => item(payload, None)?,
            "compacted" => self.compacted(number, body.as_ref()),
            "turn_context" => {
                self.turn_context = Some(number);
                RolloutEntry::TurnContext(text_of("turn_id"))
            }
            "world_state" => {
                if body.is_some_and(|it| it.get("full") == Some("true")) {
                    self.world_state = Some(number);
                }
                RolloutEntry::Other
            }
            "token_usage_record" => {
                let usage = body.as_ref().and_then(|it| it.object("usage"));
                let so_far = body.as_ref().and_then(|it| it.object("thread_token_usage"));
                counted(usage, so_far)
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
            _ => RolloutEntry::Other,
        })
    }

    fn time(&mut self, at: Option<i64>) {
        if let Some(at) = at {
            let (first, last) = self.times.unwrap_or((at, at));
            self.times = Some((first.min(at), last.max(at)));
        }
    }

    fn compacted(&mut self, number: u32, body: Option<&Fields>) -> RolloutEntry {
        self.last_compacted = Some(number);
        RolloutEntry::Compacted {
            message: body.and_then(|it| it.text("message")).unwrap_or_default(),
            has_history: body.is_some_and(|it| it.list("replacement_history").is_some()),
        }
    }

    fn turn_started(&mut self, turn: Option<String>) -> RolloutEntry {
        (self.turn, self.turn_seen) = (turn.clone(), true);
        RolloutEntry::TurnStarted(turn)
    }

    fn event(&mut self, number: u32, body: Option<&Fields>) -> RolloutEntry {
        let Some(body) = body else { return RolloutEntry::Other };
        let turn = || body.text("turn_id");
        if let Some(window) = body.number("model_context_window") {
            self.window = Some(window);
        }
        match body.text("type").as_deref() {
            Some("task_started" | "turn_started") => self.turn_started(turn()),
            Some("task_complete" | "turn_complete" | "turn_aborted") => RolloutEntry::TurnEnded(turn()),
            Some("thread_rolled_back") => RolloutEntry::RolledBack(body.number("num_turns").unwrap_or(0)),
            Some("user_message") => {
                self.first_prompt.get_or_insert(number);
                RolloutEntry::UserMessage
            }
            Some("item_completed") => {
                if body.object("item").and_then(|it| it.text("type")).as_deref() == Some("UserMessage") {
                    self.first_prompt.get_or_insert(number);
                }
                RolloutEntry::Other
            }
            Some("token_count") => {
                let Some(info) = body.object("info") else { return RolloutEntry::Other };
                self.token_count = Some(number);
                if let Some(window) = info.number("model_context_window") {
                    self.window = Some(window);
                }
                let last = info.object("last_token_usage");
                let so_far = info.object("total_token_usage");
                counted(last, so_far)
            }
            _ => RolloutEntry::Other,
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

fn item(
    body: &str,
    tag: Option<&str>,
    at: Option<i64>,
    place: Option<Range<usize>>,
    keep: Option<(&Keep, Record)>,
) -> Result<RolloutEntry, String> {
    Ok(match (parse(body, tag)?, keep) {
        (Some(mut item), Some((keep, record))) => {
            item.message.parts.iter_mut().for_each(|it| hold(it, keep, record.at));
            kept(item, at, place, record)
        }
        (Some(item), None) => RolloutEntry::Item { starts_turn: starts_turn(&item), live: None },
        (None, _) => RolloutEntry::Other,
    })
}

/// A summary begins a turn for Codex too: only what it put there itself does not.
fn starts_turn(item: &Item) -> bool {
    item.message.role == Role::User && matches!(item.message.kind, Kind::Said | Kind::Summary)
}

/// An item that is kept with its line; `place` is where it stands in its record.
fn kept(mut item: Item, at: Option<i64>, place: Option<Range<usize>>, record: Record) -> RolloutEntry {
    let starts_turn = starts_turn(&item);
    item.message.at = at;
    let at = place.map(|it| record.at + it.start as u64..record.at + it.end as u64);
    let live = Live { message: item.message, record: 0, at, pair: item.pair, starts_turn };
    RolloutEntry::Item { starts_turn, live: Some(Box::new(live)) }
}

fn counted(last: Option<Fields>, so_far: Option<Fields>) -> RolloutEntry {
    let so_far = so_far.as_ref().map(Tokens::in_fields);
    last.map_or(RolloutEntry::Other, |it| {
        RolloutEntry::Report(Box::new(report(Tokens::in_fields(&it), so_far)))
    })
}
