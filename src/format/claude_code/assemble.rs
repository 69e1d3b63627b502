//! From live rows to messages, in the client's order.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::blocks::is_blank;
use super::chain::Row;
use crate::history::{Kind, Message, Part, Role, Usage};

/// A live row, understood.
pub(super) enum Item {
    /// A block or more of a response.
    Reply { response: Arc<str>, parts: Vec<Part>, usage: Option<Usage> },
    /// Tools' results, and what stands beside them in the row.
    Results { parts: Vec<Part>, kind: Kind },
    /// A summary.
    Summary(Vec<Part>),
    /// In the order of the rows: the user's words, or the client's among them.
    Words { parts: Vec<Part>, kind: Kind },
    /// What the client sends in front of the user's words.
    Before(Vec<Part>),
    /// What the client sends as `system` behind them.
    After(Vec<Part>),
}

impl Item {
    /// What it is made of.
    pub(super) fn parts_mut(&mut self) -> &mut Vec<Part> {
        match self {
            Self::Reply { parts, .. }
            | Self::Results { parts, .. }
            | Self::Summary(parts)
            | Self::Words { parts, .. }
            | Self::Before(parts)
            | Self::After(parts) => parts,
        }
    }

    fn parts(&self) -> &[Part] {
        match self {
            Self::Reply { parts, .. }
            | Self::Results { parts, .. }
            | Self::Summary(parts)
            | Self::Words { parts, .. }
            | Self::Before(parts)
            | Self::After(parts) => parts,
        }
    }
}

/// What the client drops without a word: results whose call is gone, calls whose result is (but those of the
/// last response, which still run), blank texts of the model, and responses of which only thinking is left.
pub(super) fn drop_orphans(items: &mut Vec<(usize, Box<Item>)>) {
    // Calls, each with the one of the same id before it that waits too: of several, a result answers the last.
    let mut calls: Vec<(usize, usize, Option<usize>, bool)> = Vec::new();
    let mut waiting: HashMap<&str, usize> = HashMap::new();
    // What goes: number of the item, place of the part.
    let mut gone: HashSet<(usize, usize)> = HashSet::new();
    // The last response, while the user has said nothing after it.
    let mut running = None;
    for (number, (_, item)) in items.iter().enumerate() {
        let parts = item.parts();
        match &**item {
            Item::Reply { response, .. } => {
                running = Some(response.clone());
                for (place, part) in parts.iter().enumerate() {
                    if let Part::Call(call) = part {
                        let before = waiting.insert(&call.id, calls.len());
                        calls.push((number, place, before, false));
                    } else if is_blank(part) {
                        gone.insert((number, place));
                    }
                }
            }
            Item::Results { .. } => {
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
            Item::Words { .. } | Item::Summary(_) => running = None,
            Item::Before(_) | Item::After(_) => {}
        }
    }
    let runs = |number: usize| matches!(&*items[number].1, Item::Reply { response, .. } if Some(response) == running.as_ref());
    let unanswered = calls.iter().filter(|it| !it.3 && !runs(it.0)).map(|it| (it.0, it.1));
    gone.extend(unanswered.collect::<Vec<_>>());
    drop(waiting);
    let numbers: HashSet<usize> = gone.iter().map(|it| it.0).collect();
    for number in numbers {
        let mut place = 0;
        items[number].1.parts_mut().retain(|_| {
            place += 1;
            !gone.contains(&(number, place - 1))
        });
    }
    // Thinking stays where the rest of its response does: whether there is one, for responses of which some row has none.
    let says = |parts: &[Part]| parts.iter().any(|it| !matches!(it, Part::Reasoning(_)));
    let replies = || {
        items.iter().filter_map(|(_, item)| match &**item {
            Item::Reply { response, parts, .. } => Some((response, says(parts))),
            _ => None,
        })
    };
    let mut spoken: HashMap<Arc<str>, bool> =
        replies().filter(|it| !it.1).map(|(response, _)| (response.clone(), false)).collect();
    if !spoken.is_empty() {
        for (response, _) in replies().filter(|it| it.1) {
            if let Some(spoken) = spoken.get_mut(response) {
                *spoken = true;
            }
        }
    }
    items.retain(|(_, item)| match &**item {
        Item::Reply { response, parts, .. } => {
            !parts.is_empty() && (says(parts) || spoken.get(response) == Some(&true))
        }
        Item::Results { parts, .. }
        | Item::Summary(parts)
        | Item::Words { parts, .. }
        | Item::Before(parts)
        | Item::After(parts) => !parts.is_empty(),
    });
}

/// Messages under construction: the responses at hand, and what came after them, sorted into what the client sends
/// first and last.
pub(super) struct Assembly<'a> {
    rows: &'a [Row],
    replies: Vec<Reply>,
    by_response: HashMap<Arc<str>, usize>,
    results: Vec<(usize, Vec<Part>, Kind)>,
    before: Vec<(usize, Vec<Part>)>,
    words: Vec<(usize, Vec<Part>, Kind)>,
    after: Vec<(usize, Vec<Part>)>,
    /// The messages, and the rows that each was made from.
    out: (Vec<Message>, Vec<Vec<usize>>),
}

struct Reply {
    /// By row.
    parts: Vec<(usize, Vec<Part>)>,
    usage: Option<Usage>,
    /// Whether results came before the last of it.
    late: bool,
}

impl<'a> Assembly<'a> {
    pub(super) fn new(rows: &'a [Row]) -> Self {
        Self {
            rows,
            replies: Vec::new(),
            by_response: HashMap::new(),
            results: Vec::new(),
            before: Vec::new(),
            words: Vec::new(),
            after: Vec::new(),
            out: Default::default(),
        }
    }

    /// The next live row.
    pub(super) fn take(&mut self, at: usize, item: Item) {
        match item {
            Item::Reply { response, parts, usage } => {
                // Blocks of one response belong together, also where results came in between.
                let only_results = self.before.is_empty() && self.words.is_empty() && self.after.is_empty();
                let known = self.by_response.get(&response).copied().filter(|_| only_results);
                if known.is_none() && !(only_results && self.results.is_empty()) {
                    self.flush();
                }
                let number = known.unwrap_or(self.replies.len());
                if known.is_none() {
                    self.by_response.insert(response, number);
                    self.replies.push(Reply { parts: Vec::new(), usage: None, late: false });
                }
                let reply = &mut self.replies[number];
                reply.parts.push((at, parts));
                reply.usage = usage.or(reply.usage);
                reply.late |= !self.results.is_empty();
            }
            Item::Summary(parts) => {
                // What is attached after a summary stays after it, so that the summary is the first of all.
                self.flush();
                self.push(Message::new(Role::User, Kind::Summary, parts), vec![at]);
            }
            Item::Results { parts, kind } => self.results.push((at, parts, kind)),
            Item::Before(parts) => self.before.push((at, parts)),
            Item::Words { parts, kind } => self.words.push((at, parts, kind)),
            Item::After(parts) => self.after.push((at, parts)),
        }
    }

    /// All messages, and the rows that each was made from.
    pub(super) fn done(mut self) -> (Vec<Message>, Vec<Vec<usize>>) {
        self.flush();
        self.out
    }

    fn flush(&mut self) {
        self.by_response.clear();
        for mut reply in std::mem::take(&mut self.replies) {
            // In the order of the file; but what was said after a result stands before the calls.
            reply.parts.sort_by_key(|it| it.0);
            if reply.late {
                let split = |(at, parts): (usize, Vec<Part>)| {
                    let (calls, said): (Vec<_>, Vec<_>) =
                        parts.into_iter().partition(|it| matches!(it, Part::Call(_)));
                    ((at, said), (at, calls))
                };
                let (said, calls): (Vec<_>, Vec<_>) = reply.parts.into_iter().map(split).unzip();
                reply.parts = said.into_iter().chain(calls).filter(|it| !it.1.is_empty()).collect();
            }
            let mut seen = HashSet::new();
            let rows =
                reply.parts.iter().map(|it| it.0).filter(|it| !reply.late || seen.insert(*it)).collect();
            let parts = joined(reply.parts.into_iter().map(|it| it.1).collect());
            let mut message = Message::new(Role::Assistant, Kind::Said, parts);
            message.usage = reply.usage;
            self.push(message, rows);
        }
        let mut results = std::mem::take(&mut self.results);
        results.sort_by_key(|it| it.0);
        let beside = |it: &&(usize, Vec<Part>, Kind)| it.1.iter().any(|it| !matches!(it, Part::Output(_)));
        // A result beside nothing but the client's own text starts no turn.
        let either = |a, b| if a == b { a } else { Kind::Said };
        let kind = results.iter().filter(beside).map(|it| it.2).reduce(either).unwrap_or(Kind::Said);
        let several = results.len() > 1;
        let (rows, parts): (Vec<_>, Vec<_>) = results.into_iter().map(|(at, parts, _)| (at, parts)).unzip();
        let mut parts = joined(parts);
        if several {
            // All results come first: the API wants them right behind their calls.
            parts.sort_by_key(|it| !matches!(it, Part::Output(_)));
        }
        self.push(Message::new(Role::User, kind, parts), rows);
        let (rows, parts): (Vec<_>, Vec<_>) = std::mem::take(&mut self.before).into_iter().unzip();
        self.push(Message::new(Role::User, Kind::Context, parts.into_iter().flatten().collect()), rows);
        for of_a_kind in std::mem::take(&mut self.words).chunk_by(|a, b| a.2 == b.2) {
            let parts = of_a_kind.iter().flat_map(|it| it.1.iter().cloned()).collect();
            let rows = of_a_kind.iter().map(|it| it.0).collect();
            self.push(Message::new(Role::User, of_a_kind[0].2, parts), rows);
        }
        let (rows, parts): (Vec<_>, Vec<_>) = std::mem::take(&mut self.after).into_iter().unzip();
        self.push(Message::new(Role::System, Kind::Context, parts.into_iter().flatten().collect()), rows);
    }

    fn push(&mut self, mut message: Message, rows: Vec<usize>) {
        let Some(&first) = rows.first() else { return };
        message.parts.shrink_to_fit();
        message.from = Some(self.out.0.len() as u32);
        message.id = Some(self.rows[first].uuid.clone());
        message.at = self.rows[first].at;
        self.out.0.push(message);
        self.out.1.push(rows);
    }
}

/// The parts of several rows, no more room than they take.
fn joined(mut rows: Vec<Vec<Part>>) -> Vec<Part> {
    let many: usize = rows.iter().skip(1).map(Vec::len).sum();
    let mut rows = rows.iter_mut();
    let mut out = rows.next().map(std::mem::take).unwrap_or_default();
    out.reserve_exact(many);
    rows.for_each(|it| out.append(it));
    out
}
