//! The messages behind the summary: names that can be read there need no place in a list.

use std::collections::HashSet;

use super::OfflineRequest;
use crate::facts::{Detail, Fact, FileOp, REPORTED, TOUCHED, Topic, Voice};
use history::{History, Part};

#[derive(Default)]
pub(super) struct Tail<'a> {
    /// Index of its first message.
    pub(super) from: usize,
    texts: Vec<&'a str>,
    /// Words of the texts that may be names of code.
    words: HashSet<&'a str>,
}

impl<'a> Tail<'a> {
    pub(super) fn of(history: &'a History, ask: &OfflineRequest) -> Self {
        let mut texts: Vec<&str> = Vec::new();
        for (at, message) in history.messages().iter().enumerate().skip(ask.region.end) {
            let cleared = ask.cleared.binary_search(&at).is_ok();
            texts.extend(message.parts.iter().filter_map(|part| match part {
                Part::Text(it) => Some(it.as_str()),
                Part::Call(it) => Some(it.input.as_str()),
                Part::Output(it) => (!cleared && !it.cleared).then(|| it.text.as_str()),
                Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => None,
            }));
        }
        let words = texts.iter().flat_map(|it| it.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')));
        let words = words.filter(|it| it.len() > 3).collect();
        Self { from: ask.region.end, texts, words }
    }

    /// Whether the tail changes the status of a plan's step by its number only, without its text.
    pub(super) fn leaves_unnamed(&self, fact: &Fact) -> bool {
        fact.message >= self.from
            && fact.voice() == Voice::Model
            && matches!(fact.topic, Topic::Open | Topic::Active | Topic::Done)
            && !self
                .texts
                .iter()
                .any(|it| it.contains(fact.text.trim_end_matches(TOUCHED).trim_end_matches(REPORTED)))
    }

    /// Whether the tail names a fact's symbol, or its file if that was only found.
    pub(super) fn says(&self, fact: &Fact) -> bool {
        match &fact.detail {
            Detail::Symbol { .. } => self.words.contains(fact.text.as_str()),
            Detail::File { op: FileOp::Mentioned | FileOp::Listed, .. } => {
                self.texts.iter().any(|it| it.contains(fact.text.as_str()))
            }
            Detail::None
            | Detail::Rule(_)
            | Detail::File { .. }
            | Detail::Command { .. }
            | Detail::Error { .. }
            | Detail::Diagnostics { .. }
            | Detail::Choice { .. }
            | Detail::Name(_) => false,
        }
    }
}
