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
    /// Outputs keep at most this many characters.
    Outputs(usize),
    /// Outputs are left out, middle ones first, if that removes at most this percent of the input.
    WithoutOutputs(u64),
    /// The oldest units, except the user's words, are left out, if that removes at most this percent.
    Oldest(u64),
    /// Parts are summarized one by one, and these notes merged: always fits, loses least, costs most.
    Chunks,
}

/// The default. Only a little is ever left out, since chunks cost more but lose less.
pub const INPUT_REDUCTIONS: [InputReduction; 5] = [
    InputReduction::Whole,
    InputReduction::Outputs(2_000),
    InputReduction::WithoutOutputs(20),
    InputReduction::Oldest(10),
    InputReduction::Chunks,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Attempts per request, including the first.
    pub tries: u32,
    pub requests: u32,
    /// Milliseconds of the whole dialogue, including waits.
    pub total_ms: u64,
    /// Tokens sent in the whole dialogue.
    pub tokens: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { tries: 5, requests: 100, total_ms: 300_000, tokens: 20_000_000 }
    }
}

/// What a dialogue is about; rebuilt from the session whenever the dialogue continues.
pub struct SummaryRequest<'a> {
    pub history: &'a History,
    pub ledger: &'a Ledger,
    /// The messages that the summary replaces.
    pub region: Range<usize>,
    /// The summary's sections and shape.
    pub spec: &'a SummarySpec,
    /// Maximum tokens of the summary.
    pub max_tokens: u64,
    pub style: SummaryStyle,
    /// What the user asked to focus on.
    pub focus: Option<&'a str>,
    /// What the user pinned.
    pub pins: &'a [String],
    /// The language to write in: what was asked for, or that of the conversation.
    pub language: Option<&'a str>,
    pub texts: PromptTexts,
    /// The profile's own prompts.
    pub own: &'a PromptOverrides,
    /// Ways to make the input smaller, in the order in which they are tried.
    pub reductions: &'a [InputReduction],
    /// The model's window in tokens, if known.
    pub window: Option<u64>,
    /// Tokens for thinking, in addition to the summary.
    pub thinking: u64,
    /// The session's own request, if appending to it is cheaper (the provider caches it).
    pub prefix: Option<&'a Prefix>,
    /// The calling agent's own model answers.
    pub host: bool,
    pub count: &'a dyn Fn(&str) -> u64,
    /// The excerpts of the region, masked.
    pub excerpts: &'a [Excerpt],
    pub bounds: Bounds,
}
