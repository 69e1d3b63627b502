//! Texts of records: what stands for them, and what readers hold of them from one record to the next.

use crate::Keep;
use crate::cursor::{Recent, Room};
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
pub struct Held {
    pub room: Room,
    pub names: Recent,
    pub ids: Recent,
}
