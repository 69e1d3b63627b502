//! Makes messages of live rows, in the client's order.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt, HashSet, HashSetExt};

use super::blocks::is_blank;
use crate::Origins;
use history::{Kind, Message, Part, Role, Usage};

/// The content of a live row. It is owned, so that the large tree can be dropped first.
pub(super) struct LiveRow {
    pub(super) origin: Origin,
    pub(super) item: Box<RowItem>,
}

/// Where a part of a message comes from.
#[derive(Clone)]
pub(super) struct Origin {
    pub(super) row: usize,
    pub(super) record: u32,
    pub(super) uuid: Arc<str>,
    pub(super) at: Option<i64>,
}

pub(super) struct RowItem {
    pub(super) kind: ItemKind,
    pub(super) parts: Vec<Part>,
}

/// What the parts of a row are.
pub(super) enum ItemKind {
    /// A block or more of a response.
    Reply {
        response: Arc<str>,
        usage: Option<Usage>,
        model: Option<Arc<str>>,
    },
    /// Tool results, and other blocks in the same row.
    Results(Kind),
    Summary,
    /// The user's words, or the client's text among them, in row order.
    Words(Kind),
    /// Text of the client that it sends before the user's words.
    Before,
    /// Text of the client that it sends as `system` after the user's words.
    After,
}

/// Drops what the client silently drops: results without their call, calls without their result (except those
/// of the last response, which may still be running), blank texts of the model, and responses with only
/// thinking.
pub(super) fn drop_orphans(items: &mut Vec<LiveRow>) {
    let gone = orphans(items);
    let numbers: HashSet<usize> = gone.iter().map(|it| it.0).collect();
    for number in numbers {
        let mut place = 0;
        items[number].item.parts.retain(|_| {
            place += 1;
            !gone.contains(&(number, place - 1))
        });
    }
    drop_lone_reasoning(items);
}

/// Parts that the client does not send: results without their call, calls without their result, and blank
/// texts. Each as the index of its item and of the part in it.
fn orphans(items: &[LiveRow]) -> HashSet<(usize, usize)> {
    // Calls: item, part, the earlier open call with the same id, answered. A result answers the latest open
    // call.
    let mut calls: Vec<(usize, usize, Option<usize>, bool)> = Vec::new();
    let mut waiting: HashMap<&str, usize> = HashMap::new();
    let mut gone: HashSet<(usize, usize)> = HashSet::new();
    // The latest response to begin, until the user says something; and all responses that have begun since
    // then. Rows of several may alternate: they become messages in the order in which they began.
    let (mut running, mut begun) = (None, HashSet::new());
    for (number, LiveRow { item, .. }) in items.iter().enumerate() {
        let parts = &item.parts;
        match &item.kind {
            ItemKind::Reply { response, .. } => {
                if begun.insert(response) {
                    running = Some(response);
                }
                for (place, part) in parts.iter().enumerate() {
                    if let Part::Call(call) = part {
                        let before = waiting.insert(&call.id, calls.len());
                        calls.push((number, place, before, false));
                    } else if is_blank(part) {
                        gone.insert((number, place));
                    }
                }
            }
            ItemKind::Results(_) => {
                for (place, part) in parts.iter().enumerate() {
                    let Part::Output(output) = part else { continue };
                    let Some(call) = waiting.remove(&*output.id) else {
                        gone.insert((number, place));
                        continue;
                    };
                    let (_, _, before, answered) = &mut calls[call];
                    *answered = true;
                    if let Some(before) = before {
                        waiting.insert(&output.id, *before);
                    }
                }
            }
            ItemKind::Words(_) | ItemKind::Summary => {
                running = None;
                begun.clear();
            }
            ItemKind::Before | ItemKind::After => begun.clear(),
        }
    }
    let runs = |number: usize| matches!(&items[number].item.kind, ItemKind::Reply { response, .. } if Some(response) == running);
    let unanswered = calls.iter().filter(|it| !it.3 && !runs(it.0)).map(|it| (it.0, it.1));
    gone.extend(unanswered.collect::<Vec<_>>());
    gone
}

/// Drops replies with only reasoning, and empty items.
fn drop_lone_reasoning(items: &mut Vec<LiveRow>) {
    let says = |parts: &[Part]| parts.iter().any(|it| !matches!(it, Part::Reasoning(_)));
    // Thinking stays if another row of its response says something.
    let spoken = items.iter().filter(|it| says(&it.item.parts)).filter_map(|it| match &it.item.kind {
        ItemKind::Reply { response, .. } => Some(response.clone()),
        _ => None,
    });
    let spoken: HashSet<Arc<str>> = spoken.collect();
    items.retain(|LiveRow { item, .. }| {
        let is_spoken = |response| spoken.contains(response);
        !item.parts.is_empty()
            && !matches!(&item.kind, ItemKind::Reply { response, .. } if !is_spoken(response))
    });
}

/// Messages under construction: the current responses, and the rows after them, grouped by the order in which
/// the client sends them.
#[derive(Default)]
pub(super) struct Assembly {
    replies: Vec<Reply>,
    /// Indices in `replies` by response id.
    by_response: HashMap<Arc<str>, usize>,
    /// The rows of all replies.
    reply_rows: Vec<MessagePiece>,
    results: Vec<MessagePiece>,
    before: Vec<MessagePiece>,
    words: Vec<MessagePiece>,
    after: Vec<MessagePiece>,
    out: Assembled,
}

#[derive(Default)]
pub(super) struct Assembled {
    pub(super) messages: Vec<Message>,
    /// The records that each message was made from.
    pub(super) origins: Origins,
    /// The message index for each summary row.
    pub(super) summaries: HashMap<usize, usize>,
}

#[derive(Default)]
struct Reply {
    usage: Option<Usage>,
    /// The model that reported `usage`.
    model: Option<Arc<str>>,
    /// Whether tool results came before its last row.
    late: bool,
}

/// The content of a row, or some of it.
struct MessagePiece {
    /// None if an earlier piece of the same message has it already.
    origin: Option<Origin>,
    /// Index of the reply that it belongs to; unused in other pieces.
    reply: usize,
    kind: Kind,
    parts: Vec<Part>,
}

impl MessagePiece {
    fn row(&self) -> Option<usize> {
        self.origin.as_ref().map(|it| it.row)
    }
}

impl Assembly {
    /// `items`: how many rows to expect.
    pub(super) fn new(items: usize) -> Self {
        let out = Assembled { messages: Vec::with_capacity(items), ..Assembled::default() };
        Self { out, ..Self::default() }
    }

    pub(super) fn add(&mut self, LiveRow { origin, item }: LiveRow) {
        let piece = |kind, parts| MessagePiece { origin: Some(origin), reply: 0, kind, parts };
        let RowItem { kind, parts } = *item;
        match kind {
            ItemKind::Reply { response, usage, model } => {
                // Blocks of one response belong together, even with results in between.
                let only_results = self.before.is_empty() && self.words.is_empty() && self.after.is_empty();
                let known = self.by_response.get(&response).copied().filter(|_| only_results);
                if known.is_none() && !(only_results && self.results.is_empty()) {
                    self.flush();
                }
                let number = known.unwrap_or(self.replies.len());
                if known.is_none() {
                    self.by_response.insert(response, number);
                    self.replies.push(Reply::default());
                }
                let reply = &mut self.replies[number];
                if usage.is_some() {
                    (reply.usage, reply.model) = (usage, model);
                }
                reply.late |= !self.results.is_empty();
                self.reply_rows.push(MessagePiece { reply: number, ..piece(Kind::Said, parts) });
            }
            ItemKind::Summary => {
                // Attachments after a summary stay after it, so that the summary comes first.
                self.flush();
                self.push(Role::User, Kind::Summary, &mut [piece(Kind::Summary, parts)]);
            }
            ItemKind::Results(kind) => self.results.push(piece(kind, parts)),
            ItemKind::Before => self.before.push(piece(Kind::Context, parts)),
            ItemKind::Words(kind) => self.words.push(piece(kind, parts)),
            ItemKind::After => self.after.push(piece(Kind::Context, parts)),
        }
    }

    pub(super) fn done(mut self) -> Assembled {
        self.flush();
        self.out
    }

    fn flush(&mut self) {
        self.by_response.clear();
        let mut rows = std::mem::take(&mut self.reply_rows);
        // In file order.
        rows.sort_by_key(|it| (it.reply, it.row()));
        let pieces = rows.chunk_by_mut(|a, b| a.reply == b.reply);
        for (reply, pieces) in std::mem::take(&mut self.replies).into_iter().zip(pieces) {
            if reply.late {
                self.push(Role::Assistant, Kind::Said, &mut calls_last(pieces));
            } else {
                self.push(Role::Assistant, Kind::Said, pieces);
            }
            if let Some(message) = self.out.messages.last_mut() {
                (message.usage, message.model) = (reply.usage, reply.model);
            }
        }

        let mut results = std::mem::take(&mut self.results);
        results.sort_by_key(MessagePiece::row);
        let beside = |it: &&MessagePiece| it.parts.iter().any(|it| !matches!(it, Part::Output(_)));
        // Results accompanied only by the client's own text start no turn.
        let either = |a, b| if a == b { a } else { Kind::Said };
        let kind = results.iter().filter(beside).map(|it| it.kind).reduce(either).unwrap_or(Kind::Said);
        self.push(Role::User, kind, &mut results);
        if results.len() > 1
            && let Some(message) = self.out.messages.last_mut()
        {
            // Results go first: the API requires them right after their calls.
            message.parts.sort_by_key(|it| !matches!(it, Part::Output(_)));
        }

        let mut before = std::mem::take(&mut self.before);
        self.push(Role::User, Kind::Context, &mut before);
        for of_a_kind in std::mem::take(&mut self.words).chunk_by_mut(|a, b| a.kind == b.kind) {
            self.push(Role::User, of_a_kind[0].kind, of_a_kind);
        }
        let mut after = std::mem::take(&mut self.after);
        self.push(Role::System, Kind::Context, &mut after);
    }

    /// Makes a message of pieces, if there are any.
    fn push(&mut self, role: Role, kind: Kind, pieces: &mut [MessagePiece]) {
        let parts = joined(pieces);
        let origins = || pieces.iter().filter_map(|it| it.origin.as_ref());
        let Some(first) = origins().next() else { return };
        let number = self.out.messages.len();
        let mut message = Message::new(role, kind, parts);
        message.from = Some(number as u32);
        message.id = Some(first.uuid.clone());
        message.at = first.at;
        self.out.messages.push(message);
        self.out.origins.push(origins().map(|it| it.record));
        if kind == Kind::Summary {
            self.out.summaries.extend(origins().map(|it| (it.row, number)));
        }
    }
}

/// Moves calls to the end: what the model said after a result goes before the calls.
fn calls_last(pieces: &mut [MessagePiece]) -> Vec<MessagePiece> {
    let (mut others, mut calls) = (Vec::new(), Vec::new());
    for MessagePiece { origin, reply, kind, parts } in pieces {
        let (of_calls, rest): (Vec<_>, Vec<_>) =
            std::mem::take(parts).into_iter().partition(|it| matches!(it, Part::Call(_)));
        let again = origin.clone().filter(|_| rest.is_empty());
        others.push(MessagePiece { origin: origin.take(), reply: *reply, kind: *kind, parts: rest });
        calls.push(MessagePiece { origin: again, reply: *reply, kind: *kind, parts: of_calls });
    }
    others.into_iter().chain(calls).filter(|it| !it.parts.is_empty()).collect()
}

/// The parts of all pieces, in a vector of exact capacity.
fn joined(pieces: &mut [MessagePiece]) -> Vec<Part> {
    let mut out = Vec::with_capacity(pieces.iter().map(|it| it.parts.len()).sum());
    pieces.iter_mut().for_each(|it| out.append(&mut it.parts));
    out
}
