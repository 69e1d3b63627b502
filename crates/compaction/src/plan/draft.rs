//! The history while passes work on it: items in order, and what takes the place of outputs.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use super::{Moment, Need, Op, OutputOp, PlanRequest, counts};
use crate::profile::SummaryRole;
use history::{Call, History, Kind, Message, Output, Part, Role, Text, TextSize};
use tokens::{Filled, TokenCounter};

/// A place in the new history.
#[derive(Debug, Clone, PartialEq)]
pub enum Segment {
    /// The message of that index in the old history, with its outputs replaced.
    Old(usize),
    /// A message that was not there before.
    Made(Message),
    /// Where the summary goes.
    Summary {
        /// Whose message it is.
        role: SummaryRole,
        /// What its text starts with.
        before: String,
        /// What its text ends with.
        after: String,
    },
}

impl Segment {
    /// The index in the old history, if it is an old message.
    pub(super) fn old(&self) -> Option<usize> {
        match self {
            Self::Old(index) => Some(*index),
            Self::Made(_) | Self::Summary { .. } => None,
        }
    }
}

/// How an output is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replacement {
    Clear,
    Shorten,
}

/// The history while passes work on it.
pub(super) struct Draft<'a> {
    pub(super) history: &'a History,
    /// For budgets and all reported numbers.
    pub(super) counter: &'a TokenCounter,
    /// For the profile's own decisions: counts by its estimator.
    pub(super) native: &'a TokenCounter,
    pub(super) request: &'a PlanRequest<'a>,
    pub(super) moment: &'a Moment,
    pub(super) items: Vec<Segment>,
    pub(super) replaced: BTreeMap<(usize, usize), (Replacement, OutputOp)>,
    pub(super) message_ops: Vec<Op>,
    pub(super) need: Option<Need>,
    pub(super) split: Option<usize>,
    sizes: Vec<u64>,
    tools: HashMap<&'a str, &'a str>,
    /// Ids of all outputs; made when first needed.
    answered: OnceCell<HashSet<&'a str>>,
}

impl<'a> Draft<'a> {
    pub(super) fn new(
        history: &'a History,
        counter: &'a TokenCounter,
        native: &'a TokenCounter,
        request: &'a PlanRequest<'a>,
        moment: &'a Moment,
    ) -> Self {
        let messages = history.messages();
        let calls = messages.iter().flat_map(Message::calls);
        Self {
            history,
            counter,
            native,
            request,
            moment,
            items: (0..messages.len()).map(Segment::Old).collect(),
            replaced: BTreeMap::new(),
            message_ops: Vec::new(),
            need: None,
            split: None,
            sizes: counter.messages(messages),
            tools: calls.map(|it| (&*it.id, &*it.name)).collect(),
            answered: OnceCell::new(),
        }
    }

    /// The message that an item stands for; none for the summary.
    pub(super) fn message<'b>(&'b self, item: &'b Segment) -> Option<&'b Message> {
        match item {
            Segment::Old(index) => self.history.messages().get(*index),
            Segment::Made(message) => Some(message),
            Segment::Summary { .. } => None,
        }
    }

    /// Tokens of an item with its replaced outputs; system messages and the summary are not counted.
    pub(super) fn size(&self, item: &Segment) -> u64 {
        match item {
            Segment::Old(index) => {
                if !self.history.messages().get(*index).is_some_and(counts) {
                    return 0;
                }
                let size = self.sizes.get(*index).copied().unwrap_or(0);
                let replaced = self.replaced.range((*index, 0)..(index + 1, 0)).map(|(_, (_, op))| op);
                replaced.fold(size, |size, op| (size + op.tokens_after).saturating_sub(op.tokens_before))
            }
            Segment::Made(message) => self.counter.message(message),
            Segment::Summary { .. } => 0,
        }
    }

    /// UTF-16 length of an item's JSON, with its replaced outputs.
    pub(super) fn json_len(&self, item: &Segment) -> u64 {
        let Some(message) = self.message(item) else { return 0 };
        let Segment::Old(index) = item else { return json_len(message) };
        let replaced = self.replaced.range((*index, 0)..(index + 1, 0));
        replaced.fold(json_len(message), |sum, (at, (_, op))| {
            let before = self.output(at.0, at.1).map_or(0, |it| it.text.size().json());
            (sum + TextSize::of(&op.text).json()).saturating_sub(before)
        })
    }

    pub(super) fn tokens(&self) -> u64 {
        self.items.iter().map(|it| self.size(it)).sum()
    }

    /// What the context held before any pass.
    pub(super) fn filled(&self) -> Filled {
        self.counter.filled(&self.sizes)
    }

    /// Tokens of the messages as they were before any pass.
    pub(super) fn tokens_before(&self) -> u64 {
        let counted = self.history.messages().iter().zip(&self.sizes).filter(|it| counts(it.0));
        counted.map(|it| it.1).sum()
    }

    /// The tool that an output came from.
    pub(super) fn tool(&self, output: &'a Output) -> &'a str {
        self.tools.get(&*output.id).copied().or(output.name.as_deref()).unwrap_or("")
    }

    /// Whether a call of that id has an output.
    pub(super) fn is_answered(&self, id: &str) -> bool {
        let outputs = || self.history.messages().iter().flat_map(Message::outputs).map(|it| &*it.id);
        self.answered.get_or_init(|| outputs().collect()).contains(id)
    }

    /// The output at a place, as the history has it.
    pub(super) fn output(&self, message: usize, part: usize) -> Option<&'a Output> {
        match self.history.messages().get(message)?.parts.get(part)? {
            Part::Output(output) => Some(output),
            Part::Text(_) | Part::Reasoning(_) | Part::Call(_) | Part::Media(_) | Part::Opaque(_) => None,
        }
    }

    /// Whether an output of that message was replaced.
    pub(super) fn is_replaced(&self, message: usize) -> bool {
        self.replaced.range((message, 0)..(message + 1, 0)).next().is_some()
    }

    /// Replaces an output, if that makes it smaller. `text` gets the handle.
    pub(super) fn replace(
        &mut self,
        at: (usize, usize),
        how: Replacement,
        why: &str,
        text: impl Fn(&str) -> String,
    ) {
        let Some(output) = self.output(at.0, at.1) else { return };
        let handle = (self.request.handle)(output.text.as_str());
        let text = text(&handle);
        let before = self.counter.part(&Part::Output(output.clone()));
        let short = Output { text: Text::new(text.as_str()), media: [].into(), ..output.clone() };
        let after = self.counter.part(&Part::Output(short));
        let now = self.replaced.get(&at).map_or(before, |(_, op)| op.tokens_after);
        if after >= now {
            return;
        }
        let op = OutputOp {
            message: at.0,
            part: at.1,
            call_id: output.id.to_string(),
            tool: self.tool(output).to_owned(),
            tokens_before: before,
            tokens_after: after,
            text,
            handle,
            why: why.to_owned(),
        };
        self.replaced.insert(at, (how, op));
    }

    /// Takes back everything that was done.
    pub(super) fn undo(&mut self) {
        self.items = (0..self.history.messages().len()).map(Segment::Old).collect();
        self.replaced.clear();
        self.message_ops.clear();
    }

    /// All changes: first to messages, then to those outputs that are still in the draft.
    pub(super) fn ops(&self) -> Vec<Op> {
        let there: HashSet<usize> = self.items.iter().filter_map(Segment::old).collect();
        let outputs =
            self.replaced.values().filter(|(_, op)| there.contains(&op.message)).map(|(how, op)| match how {
                Replacement::Clear => Op::Clear(op.clone()),
                Replacement::Shorten => Op::Shorten(op.clone()),
            });
        self.message_ops.iter().cloned().chain(outputs).collect()
    }
}

/// UTF-16 length of a message as compact JSON of a Gemini content: what Gemini CLI measures when it splits.
pub fn json_len(message: &Message) -> u64 {
    if let Some(known) = message.wire_len {
        return known.into();
    }
    let part = |part: &Part| -> u64 {
        match part {
            Part::Text(text) => r#"{"text":}"#.len() as u64 + text.size().json(),
            Part::Reasoning(it) => r#"{"text":,"thought":true}"#.len() as u64 + it.text.size().json(),
            Part::Call(Call { name, input, .. }) => {
                r#"{"functionCall":{"name":"","args":}}"#.len() as u64
                    + name.len() as u64
                    + input.size().utf16
            }
            Part::Output(Output { name, text, .. }) => {
                r#"{"functionResponse":{"name":"","response":{"output":}}}"#.len() as u64
                    + name.as_deref().map_or(0, str::len) as u64
                    + text.size().json()
            }
            Part::Media(it) => {
                (r#"{"inlineData":{"mimeType":"","data":""}}"#.len() + it.mime.len() + it.data.len()) as u64
            }
            Part::Opaque(it) => it.raw.size().utf16,
        }
    };
    let role = match message.role {
        Role::Assistant => "model".len(),
        Role::User | Role::Tool | Role::System => "user".len(),
    };
    let commas = message.parts.len().saturating_sub(1);
    (r#"{"role":"","parts":[]}"#.len() + role + commas) as u64 + message.parts.iter().map(part).sum::<u64>()
}

/// Whether a message is from the system, or context that a client inserted by itself.
pub(super) fn is_head(message: &Message) -> bool {
    message.role == Role::System || message.kind == Kind::Context && !message.is_slash_command()
}

/// Tokens of the items in a range of positions.
pub(super) fn total_of(draft: &Draft<'_>, at: Range<usize>) -> u64 {
    draft.items[at].iter().map(|it| draft.size(it)).sum()
}

/// The first position at or after `at` where no unit is cut.
pub(super) fn boundary_from(draft: &Draft<'_>, at: usize) -> usize {
    (at..draft.items.len()).find(|it| is_boundary(draft, *it)).unwrap_or(draft.items.len())
}

/// The last position at or before `at` where no unit is cut.
pub(super) fn boundary_to(draft: &Draft<'_>, at: usize) -> usize {
    (0..=at).rev().find(|it| is_boundary(draft, *it)).unwrap_or(0)
}

pub(super) fn is_boundary(draft: &Draft<'_>, at: usize) -> bool {
    match draft.items.get(at) {
        Some(Segment::Old(index)) => draft.history.can_cut(*index),
        Some(Segment::Made(_) | Segment::Summary { .. }) | None => true,
    }
}

/// Index in the old history of the item at a position, or of the next item that has one.
pub(super) fn number(draft: &Draft<'_>, at: usize) -> Option<usize> {
    draft.items.get(at..)?.iter().find_map(Segment::old)
}
