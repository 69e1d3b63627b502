//! The offline summarizer: the ledger, well written. No model, no network, same input same bytes.

use std::ops::Range;

use crate::facts::Ledger;
use crate::history::History;
use crate::profile::{Style, SummarySpec};

/// What a summary is asked for.
#[derive(Debug, Clone)]
pub struct Ask<'a> {
    /// The messages it replaces.
    pub region: Range<usize>,
    /// Its sections and shape.
    pub spec: &'a SummarySpec,
    /// Upper bound in tokens of the ruler, all of it included.
    pub budget: u64,
    /// How deep it goes.
    pub style: Style,
    /// What the user said to look at.
    pub focus: Option<&'a str>,
    /// Facts the user pinned, word for word.
    pub pins: &'a [String],
    /// First line, who compacted what. Written by the caller.
    pub header: Option<&'a str>,
}

/// Writes the summary.
pub fn write(_history: &History, ledger: &Ledger, ask: &Ask<'_>, count: &dyn Fn(&str) -> u64) -> String {
    let mut out = ask.header.unwrap_or_default().to_owned();
    for fact in &ledger.facts {
        let line = format!("\n- {:?} [#{}] {}", fact.topic, fact.message, fact.text);
        if count(&format!("{out}{line}")) > ask.budget { break; }
        out.push_str(&line);
    }
    out
}
