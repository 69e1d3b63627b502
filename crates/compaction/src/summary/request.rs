//! What a summarizer is asked for, and within what bounds.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::model::Prefix;
use super::prompt::{PromptOverrides, PromptTexts};
use super::render::Excerpt;
use crate::facts::Ledger;
use crate::profile::{SummarySpec, SummaryStyle};
use history::History;

/// A way to make the input smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputReduction {
    Whole,
    /// Maximum characters of an output.
    Outputs(usize),
    /// Outputs are left out, those in the middle first; at most this share of the input, in percent.
    WithoutOutputs(u64),
    /// The oldest rounds are left out, the user's words excepted; at most this share of the input, in percent.
    Oldest(u64),
    /// In parts that are summarised one by one, then folded: fits always, loses least, costs most.
    Chunks,
}

/// What a profile that says nothing goes by. What is left out is only ever little: parts cost more and lose less.
pub const INPUT_REDUCTIONS: [InputReduction; 5] = [
    InputReduction::Whole,
    InputReduction::Outputs(2_000),
    InputReduction::WithoutOutputs(20),
    InputReduction::Oldest(10),
    InputReduction::Chunks,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Tries of one request, the first included.
    pub tries: u32,
    pub requests: u32,
    /// Milliseconds altogether, waits included.
    pub total_ms: u64,
    /// Tokens that may be sent altogether.
    pub tokens: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { tries: 5, requests: 100, total_ms: 300_000, tokens: 20_000_000 }
    }
}

/// What a dialogue is about; made from the session whenever it goes on.
pub struct SummaryRequest<'a> {
    pub history: &'a History,
    pub ledger: &'a Ledger,
    /// The messages that the summary stands for.
    pub region: Range<usize>,
    /// The summary's sections and shape.
    pub spec: &'a SummarySpec,
    /// Tokens that it may have.
    pub max_tokens: u64,
    pub style: SummaryStyle,
    /// What the user said to look at.
    pub focus: Option<&'a str>,
    /// What the user pinned.
    pub pins: &'a [String],
    /// The language to write in: what was asked for, or that of the conversation.
    pub language: Option<&'a str>,
    /// The wording of what is asked.
    pub texts: PromptTexts,
    /// The profile's own texts.
    pub own: &'a PromptOverrides,
    /// The ways to make the input smaller, in order.
    pub reductions: &'a [InputReduction],
    /// The model's window in tokens, if known.
    pub window: Option<u64>,
    /// Room for thinking besides the summary, in tokens.
    pub thinking: u64,
    /// The session's own request, where asking behind it is cheaper.
    pub prefix: Option<&'a Prefix>,
    /// The calling agent's own model answers.
    pub host: bool,
    pub count: &'a dyn Fn(&str) -> u64,
    /// The excerpts of the region, masked.
    pub excerpts: &'a [Excerpt],
    pub bounds: Bounds,
}
