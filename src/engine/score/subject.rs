//! A session that is compacted many times, to see what each way keeps.

use crate::engine::compact::attempt::{AttemptRequest, HistoryFacts};
use crate::engine::input::measured::Measured;
use crate::engine::{Ask, Engine, input::measured};
use sessions::Session;

/// A placeholder of a handle's length for the summary's first line: nothing is archived.
pub(crate) const HANDLE: &str = "0000000000";

/// A session that is compacted many times, read once.
pub struct Subject {
    pub name: String,
    /// Tokens of its messages.
    pub tokens: u64,
    pub(crate) session: Session,
    pub(crate) known: HistoryFacts,
}

impl Subject {
    pub(crate) fn request<'a>(
        &'a self,
        engine: &'a Engine,
        measured: &'a Measured<'a>,
        ask: &'a Ask,
    ) -> AttemptRequest<'a> {
        AttemptRequest { engine, measured, ask, handle: HANDLE, facts: &self.known, written: None }
    }
}

pub fn subject(engine: &Engine, name: impl Into<String>, session: Session, ask: &Ask) -> Subject {
    let tokens = measured::measure(engine, &session, ask).tokens;
    Subject { name: name.into(), tokens, session, known: HistoryFacts::default() }
}
