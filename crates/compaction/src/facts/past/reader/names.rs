//! Identifiers in earlier summaries of ours.

use super::SummaryReader;
use crate::facts::text::{clip, flat};
use crate::facts::voice::ToolTopic;
use crate::facts::{Detail, Name, Topic};

impl SummaryReader<'_> {
    pub(super) fn names(&mut self, body: &str) {
        const KINDS: [(&str, Name); 11] = [
            ("urls", Name::Url),
            ("hashes", Name::Hash),
            ("references", Name::Ticket),
            ("tickets", Name::Ticket),
            ("branches", Name::Branch),
            ("versions", Name::Version),
            ("ports", Name::Port),
            ("ids", Name::Id),
            ("values", Name::Setting),
            ("settings", Name::Setting),
            ("colours", Name::Colour),
        ];
        if let Some((place, list)) = body.strip_prefix("symbols").and_then(|it| it.split_once(": ")) {
            let file = place.strip_prefix(" in ").map(str::to_owned);
            for item in list.split(", ") {
                let detail = Detail::Symbol { file: file.clone(), used: true };
                self.push_seen(ToolTopic::Identifiers, item.trim_matches('`'), detail);
            }
            return;
        }
        let kind = body.split_once(": ").and_then(|(word, list)| {
            Some((KINDS.iter().find(|it| word.eq_ignore_ascii_case(it.0))?.1, list))
        });
        match kind {
            Some((kind, list)) => {
                for item in list.split(", ") {
                    self.push_seen(ToolTopic::Identifiers, item.trim_matches('`'), Detail::Name(kind));
                }
            }
            None => self.push(Topic::Findings, &flat(clip(body, 300).0), Detail::None),
        }
    }
}
