//! Texts of records: what stands for them, and what readers hold of them from one record to the next.

use std::sync::Arc;

use crate::Keep;
use crate::parse::cursor::Room;
use history::{Part, Text};

/// What stands for the texts of a record.
#[derive(Clone, Copy)]
pub struct Texts<'k> {
    /// Without it, nothing is made of texts.
    pub keep: Option<&'k Keep<'k>>,
    /// Where the record stands in the source.
    pub at: u64,
}

/// Leaves texts as they are.
pub const WHOLE: &Keep<'static> = &|_, _| None;

impl Texts<'_> {
    pub fn of(self, text: &str) -> Text {
        match self.keep {
            Some(keep) => keep(text, self.at).unwrap_or_else(|| text.into()),
            None => Text::default(),
        }
    }

    /// The texts of a part that was made already.
    pub fn hold(self, part: &mut Part) {
        if let Some(keep) = self.keep {
            crate::hold(part, keep, self.at);
        }
    }
}

/// Room for a text that stands escaped; names of tools and ids of calls, which their outputs name too.
#[derive(Default)]
pub struct Scratch {
    pub room: Room,
    pub names: Interner,
    pub ids: Interner,
}

/// Short texts that are likely to come again soon, so that each is held once: names of tools, ids of calls.
#[derive(Debug, Default)]
pub struct Interner {
    held: [Option<Arc<str>>; RECENT],
    /// Whose place the next new one takes.
    next: usize,
}

/// More than there are tools in use, or calls that wait for their output.
const RECENT: usize = 16;

impl Interner {
    /// `text`, as the one that was there before if it was.
    pub fn of(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.held.iter().flatten().find(|it| ***it == *text) {
            return known.clone();
        }
        let new = Arc::from(text);
        self.held[self.next] = Some(Arc::clone(&new));
        self.next = (self.next + 1) % RECENT;
        new
    }
}
