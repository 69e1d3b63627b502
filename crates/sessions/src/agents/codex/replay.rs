//! What a resume rebuilds from a rollout (Codex 0.169, `rollout_reconstruction`): the newest surviving
//! compaction that carries a history is the base; what follows it is replayed; rolled-back turns, and
//! compactions in them, are gone.
//!
//! Not replicated: on reading, Codex truncates long outputs again. The rollout holds them as they were
//! already truncated by the same policy when they were recorded.

#![expect(
    clippy::vec_box,
    reason = "items stand boxed in their entries, and are then moved without being copied"
)]

use std::ops::Range;

use foldhash::{HashMap, HashSet, HashSetExt};

use super::item::Reader;
use super::items::{Family, Item, Live, Pair, is_task};
use super::line::RolloutEntry;
use super::rollout::Rollout;
use crate::media::SharedData;
use crate::parse::cursor::Cursor;
use crate::parse::raw::{Fields, place};
use crate::parse::texts::WHOLE;
use crate::{Keep, PastCompaction, Source, apply_keep};
use history::error::Result;
use history::middle;
use history::tools::{self, Meaning};
use history::{Kind, Message, Output, Part, Role, RolledBack};

/// Tokens of user messages that survive a compaction without a history of its own (Codex,
/// `COMPACT_USER_MESSAGE_MAX_TOKENS`), at four bytes per token.
const LEGACY_BUDGET: usize = 20_000;

/// The compactions that matter to a resume, by number of their entry.
pub(super) struct Survivors {
    /// The newest surviving one that carries a history.
    pub(super) base: Option<usize>,
    /// Those that were rolled back.
    pub(super) cancelled: HashSet<usize>,
    /// Whether no earlier entry can change the base.
    pub(super) is_final: bool,
}

/// What the model would be sent next.
pub(super) struct Replayed {
    pub(super) items: Vec<Box<Live>>,
    pub(super) past: Vec<PastCompaction>,
    pub(super) rolled_back: Option<RolledBack>,
}

impl Rollout {
    /// What a resume would send; `survivors`: those of this rollout.
    pub(super) fn replay(
        &mut self,
        source: &dyn Source,
        keep: &Keep,
        survivors: Survivors,
    ) -> Result<Replayed> {
        let Survivors { base, cancelled, .. } = survivors;
        let mut items: Vec<Box<Live>> = Vec::new();
        let mut start = 0;
        if let Some(base) = base {
            items = self.base(source, keep, base as u32)?.into_iter().map(Box::new).collect();
            start = base + 1;
        }
        let turn_starts = |items: &[Box<Live>]| -> Vec<usize> {
            items.iter().enumerate().filter(|(_, it)| it.starts_turn).map(|(at, _)| at).collect()
        };
        // Where turns begin in `items`.
        let mut starts = turn_starts(&items);
        // The reported usage covers all messages before this index.
        let mut reported = items.len();
        let mut last_report = None;
        let mut rolled_back = None;
        for number in start..self.entries.len() {
            match &mut self.entries[number] {
                RolloutEntry::Item { starts_turn, live } => {
                    let (starts_turn, record) = (*starts_turn, number as u32);
                    let live = match live.take() {
                        Some(live) => Some(live),
                        None => self.live_item(source, keep, record)?,
                    };
                    if let Some(mut live) = live {
                        if starts_turn {
                            starts.push(items.len());
                        }
                        (live.starts_turn, live.record) = (starts_turn, record);
                        items.push(live);
                    }
                }
                RolloutEntry::Compacted { message, .. } if !cancelled.contains(&number) => {
                    items = legacy(items, message, number as u32);
                    starts = turn_starts(&items);
                    reported = items.len();
                }
                RolloutEntry::RolledBack(turns) => {
                    let dropped = drop_turns(&mut items, &mut starts, *turns);
                    note_rolled_back(&dropped, *turns, rolled_back.get_or_insert_default());
                    reported = reported.min(items.len());
                }
                RolloutEntry::TokenCountEvent(Some(report)) | RolloutEntry::UsageRecord(report)
                    if report.usage.sent() > 0 && last_report != Some(report.so_far) =>
                {
                    last_report = Some(report.so_far);
                    let new = items.get_mut(reported..).unwrap_or_default();
                    if let Some(reply) = new.iter_mut().rev().find(|it| it.message.role == Role::Assistant) {
                        reply.message.usage = Some(report.usage);
                        reported = items.len();
                    }
                }
                _ => {}
            }
        }
        let mut items = paired(items);
        for (number, live) in (0..).zip(&mut items) {
            live.message.from = Some(number);
        }
        let past = self.past(&cancelled, &items);
        Ok(Replayed { items, past, rolled_back })
    }

    /// Finds the base and the compactions that were rolled back, going from the newest turn to the oldest.
    pub(super) fn survivors(&self) -> Survivors {
        let mut base = None;
        let mut cancelled = HashSet::new();
        let mut to_cancel = 0u64;
        // The current turn: its id, whether a user began it, its compactions.
        let mut turn: Option<(Option<&str>, bool, Vec<usize>)> = None;
        let mut close = |turn: (Option<&str>, bool, Vec<usize>),
                         to_cancel: &mut u64,
                         base: &mut Option<usize>| {
            let (_, is_user, compactions) = turn;
            if *to_cancel > 0 {
                *to_cancel -= u64::from(is_user);
                cancelled.extend(compactions);
            } else if base.is_none() {
                // Newest first: the first one that carries a history.
                *base = compactions.into_iter().find(|it| {
                    matches!(self.entries.get(*it), Some(RolloutEntry::Compacted { has_history: true, .. }))
                });
            }
        };
        for (number, entry) in self.entries.iter().enumerate().rev() {
            match entry {
                RolloutEntry::Compacted { .. } => turn.get_or_insert_default().2.push(number),
                RolloutEntry::RolledBack(turns) => to_cancel = to_cancel.saturating_add(*turns),
                RolloutEntry::TurnEnded(id) | RolloutEntry::TurnContext(id) => {
                    let turn = turn.get_or_insert_default();
                    turn.0 = turn.0.or(id.as_deref());
                }
                RolloutEntry::UserMessage => turn.get_or_insert_default().1 = true,
                RolloutEntry::Item { starts_turn, .. } => turn.get_or_insert_default().1 |= *starts_turn,
                RolloutEntry::TurnStarted(id) => {
                    let fits = |known: Option<&str>| match (known, id.as_deref()) {
                        (Some(known), Some(id)) => known == id,
                        _ => true,
                    };
                    if turn.as_ref().is_some_and(|it| fits(it.0))
                        && let Some(turn) = turn.take()
                    {
                        close(turn, &mut to_cancel, &mut base);
                    }
                }
                _ => {}
            }
            if base.is_some() {
                break;
            }
        }
        let is_final = base.is_some();
        if !is_final && let Some(turn) = turn {
            close(turn, &mut to_cancel, &mut base);
        }
        Survivors { base, cancelled, is_final }
    }

    /// Whether a replay reaches a compaction without a history, which keeps the texts of user messages.
    pub(super) fn needs_words(&self, survivors: &Survivors) -> bool {
        let is_used = |number: usize| !survivors.cancelled.contains(&number);
        let mut after_base = self.entries.iter().enumerate().skip(survivors.base.map_or(0, |it| it + 1));
        after_base.any(|(number, it)| matches!(it, RolloutEntry::Compacted { .. }) && is_used(number))
    }

    fn live_item(&self, source: &dyn Source, keep: &Keep, number: u32) -> Result<Option<Box<Live>>> {
        let Some(record) = self.records.get(number as usize) else { return Ok(None) };
        let mut reader = Reader::new(Some(keep), record.at);
        let Ok(line) = reader.line(&source.bytes(record.range())?) else { return Ok(None) };
        Ok(match line.payload.entry {
            Ok(RolloutEntry::Item { live, .. }) => live,
            _ => None,
        })
    }

    fn at(&self, number: u32, record: &str, part: &str) -> Option<Range<u64>> {
        let start = self.records.get(number as usize)?.at;
        let range = place(record, part)?;
        Some(start + range.start as u64..start + range.end as u64)
    }

    /// Gives the newest sealed compaction what it replaced: everything before the first record that has it,
    /// except turns that were rolled back. Compactions before it are skipped, because what they replaced is
    /// included.
    pub(super) fn unseal(&self, source: &dyn Source, items: &mut [Box<Live>]) -> Result<()> {
        let Some(live) = items.iter_mut().rfind(|it| is_sealed(&it.message)) else { return Ok(()) };
        let mut first = 0;
        for (number, entry) in self.entries.iter().enumerate() {
            if matches!(entry, RolloutEntry::Compacted { has_history: true, .. })
                && self
                    .base(source, WHOLE, number as u32)?
                    .iter()
                    .any(|it| it.message.says_same(&live.message))
            {
                first = number;
                break;
            }
        }
        let mut replaced: Vec<Box<Live>> = Vec::new();
        let (mut starts, mut data) = (Vec::new(), SharedData::default());
        for (number, entry) in self.entries.iter().enumerate().take(first) {
            match entry {
                RolloutEntry::Item { starts_turn, .. } => {
                    let Some(mut item) = self.live_item(source, WHOLE, number as u32)? else { continue };
                    data.share(&mut item.message.parts);
                    starts.extend(starts_turn.then_some(replaced.len()));
                    replaced.push(item);
                }
                RolloutEntry::RolledBack(turns) => _ = drop_turns(&mut replaced, &mut starts, *turns),
                _ => {}
            }
        }
        let messages: Vec<Message> = paired(replaced).into_iter().map(|it| it.message).collect();
        live.message.replaced = (!messages.is_empty()).then(|| messages.into());
        Ok(())
    }

    /// The history that a compaction carries.
    fn base(&self, source: &dyn Source, keep: &Keep, number: u32) -> Result<Vec<Live>> {
        let text = self.text(source, number)?;
        let record_at = self.records.get(number as usize).map_or(0, |it| it.at);
        let line = Fields::of(&text);
        let payload = line.as_ref().and_then(|it| it.object("payload"));
        let payload = payload.and_then(|it| it.object("Compacted").or(Some(it)));
        let Some(payload) = payload else { return Ok(vec![]) };
        let summary = payload.text("message").filter(|it| !it.is_empty());
        let kinds = payload.object("epitome").and_then(|it| it.object("kinds"));
        let (mut out, mut data) = (Vec::new(), SharedData::default());
        // The texts are compared below, so they are read whole; `keep` is applied afterwards.
        let mut reader = Reader::new(Some(WHOLE), 0);
        for (index, raw) in payload.list("replacement_history").unwrap_or_default().into_iter().enumerate() {
            let read = Cursor::whole(raw.as_bytes(), |it| reader.item(it, None));
            let Some(Ok(Some(Item { mut message, pair, ours }))) = read else { continue };
            // By the kind that Codex sees, not by the recorded one that is set below.
            let starts_turn = message.role == Role::User && message.kind != Kind::Context && !ours;
            if message.role == Role::User && summary.is_some() && summary == Some(message.plain()) {
                message.kind = Kind::Summary;
            }
            let recorded = kinds.as_ref().and_then(|it| it.text(&index.to_string()));
            if let Some(kind) = recorded.and_then(|it| Kind::find(&it)) {
                message.kind = kind;
            }
            message.parts.iter_mut().for_each(|it| apply_keep(it, keep, record_at));
            data.share(&mut message.parts);
            out.push(Live { message, record: number, at: self.at(number, &text, raw), pair, starts_turn });
        }
        Ok(out)
    }

    fn past(&self, cancelled: &HashSet<usize>, items: &[Box<Live>]) -> Vec<PastCompaction> {
        let summaries: HashMap<u32, usize> = (0..)
            .zip(items)
            .filter(|(_, it)| it.message.kind == Kind::Summary)
            .map(|(at, it)| (it.record, at))
            .collect();
        let mut out: Vec<PastCompaction> = Vec::new();
        let mut before = None;
        let mut counted = false;
        for (number, entry) in self.entries.iter().enumerate() {
            match entry {
                RolloutEntry::Compacted { message, .. } if !cancelled.contains(&number) => {
                    out.push(PastCompaction {
                        message: summaries.get(&(number as u32)).copied(),
                        tokens_before: before,
                        summary: message.clone(),
                        ..PastCompaction::default()
                    });
                    counted = false;
                }
                RolloutEntry::TokenCountEvent(Some(report)) | RolloutEntry::UsageRecord(report) => {
                    if report.usage.sent() > 0 {
                        before = Some(report.total);
                        counted = true;
                    } else if let Some(last) = out.last_mut()
                        && !counted
                    {
                        // After a compaction Codex counts the new history itself.
                        last.tokens_after = last.tokens_after.or(Some(report.total));
                    }
                }
                _ => {}
            }
        }
        out
    }
}

/// Whether it is a sealed compaction, which only its maker can read.
fn is_sealed(message: &Message) -> bool {
    message.kind == Kind::Summary && message.parts.iter().any(|it| matches!(it, Part::Opaque(_)))
}

/// Applies a compaction without a history: the newest user messages within the budget stay, then its message.
fn legacy(items: Vec<Box<Live>>, message: &str, record: u32) -> Vec<Box<Live>> {
    let mut left = LEGACY_BUDGET;
    let mut kept = Vec::new();
    for live in items.into_iter().rev() {
        let is_prompt =
            live.message.role == Role::User && live.message.kind == Kind::Said && live.pair == Pair::None;
        if !is_prompt || is_task(&live.message.parts) || left == 0 {
            continue;
        }
        let text: String = live.message.texts().map(history::Text::as_str).collect();
        let tokens = text.len().div_ceil(4);
        let fits = tokens <= left;
        let text = if fits { text } else { middle::by_tokens(&text, left) };
        left = if fits { left - tokens } else { 0 };
        let message = Message { at: live.message.at, ..Message::text(Role::User, Kind::Said, text) };
        let (record, at, pair) = (live.record, None, Pair::None);
        kept.push(Box::new(Live { message, record, at, pair, starts_turn: true }));
    }
    kept.reverse();
    let summary = if message.is_empty() { "(no summary available)" } else { message };
    let summary = Message::text(Role::User, Kind::Summary, summary);
    kept.push(Box::new(Live { message: summary, record, at: None, pair: Pair::None, starts_turn: true }));
    kept
}

/// Drops the last turns, with the context that the client put before the first of them.
fn drop_turns(items: &mut Vec<Box<Live>>, starts: &mut Vec<usize>, turns: u64) -> Vec<Box<Live>> {
    let (Some(&first), true) = (starts.first(), turns > 0) else { return Vec::new() };
    let kept = starts.len().saturating_sub(usize::try_from(turns).unwrap_or(usize::MAX));
    let mut cut = starts.get(kept).copied().unwrap_or(first);
    while cut > first && items.get(cut - 1).is_some_and(|it| it.message.kind == Kind::Context) {
        cut -= 1;
    }
    starts.truncate(kept);
    items.split_off(cut)
}

/// Notes the files that dropped turns changed: Codex rolls back the messages of a turn, not its changes of
/// files.
fn note_rolled_back(dropped: &[Box<Live>], turns: u64, to: &mut RolledBack) {
    to.turns = to.turns.saturating_add(turns);
    for part in dropped.iter().flat_map(|it| &it.message.parts) {
        let Part::Call(call) = part else { continue };
        for action in tools::actions(call) {
            let changes =
                matches!(action.meaning, Meaning::Edit | Meaning::Create | Meaning::Delete | Meaning::Rename);
            if let Some(path) = action.path.filter(|it| changes && !to.changed.contains(it)) {
                to.changed.push(path);
            }
        }
    }
}

/// Pairs calls and outputs as Codex does before sending: outputs without a call are dropped; a call without
/// an output gets `aborted`, unless it is at the very end and may still be answered. An output before its
/// call, which the API refuses, is moved behind it.
fn paired(items: Vec<Box<Live>>) -> Vec<Box<Live>> {
    let mut calls: HashMap<(Family, &str), usize> = HashMap::default();
    let mut outputs: HashSet<&str> = HashSet::new();
    let mut last_message = 0;
    for (at, live) in items.iter().enumerate() {
        match &live.pair {
            Pair::Call(family, id) => drop(calls.entry((*family, id)).or_insert(at)),
            Pair::Output(_, id) => drop(outputs.insert(id)),
            Pair::None => last_message = at,
        }
    }
    let places = |is: &dyn Fn(usize, &Live) -> bool| -> HashSet<usize> {
        items.iter().enumerate().filter(|(at, it)| is(*at, it)).map(|it| it.0).collect()
    };
    // Outputs to drop, and calls to answer.
    let unpaired = places(&|at, live| match &live.pair {
        Pair::Output(family, id) => !calls.contains_key(&(*family, &**id)),
        Pair::Call(Family::Function | Family::Custom, id) => !outputs.contains(&**id) && at < last_message,
        Pair::Call(Family::Search, _) | Pair::None => false,
    });
    let misplaced = places(&|at, live| match &live.pair {
        Pair::Output(family, id) => calls.get(&(*family, &**id)).is_some_and(|call| *call > at),
        Pair::Call(..) | Pair::None => false,
    });
    if unpaired.is_empty() && misplaced.is_empty() {
        return items;
    }
    let mut moved: HashMap<Box<str>, Vec<Box<Live>>> = HashMap::default();
    let mut out = Vec::with_capacity(items.len());
    for (at, live) in items.into_iter().enumerate() {
        if let Pair::Output(_, id) = &live.pair
            && misplaced.contains(&at)
        {
            moved.entry(id.as_ref().into()).or_default().push(live);
            continue;
        }
        let answered = match &live.pair {
            Pair::Call(_, id) => moved.remove(&**id).unwrap_or_default(),
            Pair::Output(..) | Pair::None => Vec::new(),
        };
        let answer = match &live.pair {
            _ if !unpaired.contains(&at) => None,
            Pair::Call(_, id) => {
                let output = Output { failed: true, ..Output::new(id.clone(), "aborted") };
                let message = Message::new(Role::Tool, Kind::Said, vec![Part::Output(output)]);
                Some(Live { message, record: live.record, at: None, pair: Pair::None, starts_turn: false })
            }
            Pair::Output(..) | Pair::None => continue,
        };
        out.push(live);
        out.extend(answered);
        out.extend(answer.map(Box::new));
    }
    out
}
