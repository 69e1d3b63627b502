//! The texts of records: how `keep` replaces them, and what readers reuse from one record to the next.

use std::sync::Arc;

use crate::Keep;
use crate::parse::cursor::DecodeBuffer;
use history::{Part, Text};

/// How the texts of a record are replaced.
#[derive(Clone, Copy, Default)]
pub struct Texts<'k> {
    /// Without it, all texts become empty.
    pub keep: Option<&'k Keep<'k>>,
    /// The position of the record in the source.
    pub at: u64,
}

/// A `keep` that leaves texts as they are.
pub const WHOLE: &Keep<'static> = &|_, _| None;

impl Texts<'_> {
    pub fn of(self, text: &str) -> Text {
        match self.keep {
            Some(keep) => keep(text, self.at).unwrap_or_else(|| text.into()),
            None => Text::default(),
        }
    }

    /// Applies `keep` to the texts of a finished part.
    pub fn apply_keep(self, part: &mut Part) {
        if let Some(keep) = self.keep {
            crate::apply_keep(part, keep, self.at);
        }
    }
}

/// A buffer for escaped texts, and the names of tools and ids of calls, which outputs repeat.
#[derive(Default)]
pub struct Scratch {
    pub buffer: DecodeBuffer,
    pub names: Interner,
    pub ids: Interner,
}

/// A cache of short texts that are likely to recur soon (names of tools, ids of calls), so that each is
/// stored once.
#[derive(Debug, Default)]
pub struct Interner {
    recent: [Option<Arc<str>>; RECENT],
    /// The index for the next new text.
    next: usize,
}

/// More than there are tools in use at a time, or calls without an output.
const RECENT: usize = 16;

impl Interner {
    /// `text`, sharing an equal earlier one if that is still held.
    pub fn of(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.recent.iter().flatten().find(|it| ***it == *text) {
            return known.clone();
        }
        let new = Arc::from(text);
        self.recent[self.next] = Some(Arc::clone(&new));
        self.next = (self.next + 1) % RECENT;
        new
    }
}
