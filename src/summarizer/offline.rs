//! The offline summarizer: the ledger, well written. No model, no network, same input same bytes.

use std::ops::Range;

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
