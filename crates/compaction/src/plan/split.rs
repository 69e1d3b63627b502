//! Where a profile would cut a history.

use serde::Serialize;

use super::{Moment, Plan, PlanRequest, plan};
use history::{History, Message, Role};
use tokens::TokenCounter;

/// Where a profile would cut, and what else would be possible.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Split {
    #[serde(skip)]
    pub plan: Plan,
    /// Number of messages before the cut; `None` if there is no place to cut.
    pub split: Option<usize>,
    /// What stands at the cut: `prompt`, `unit`, `end` or `none`.
    pub boundary: &'static str,
    /// Other places where no unit is cut: prompts, nearest to the chosen one first.
    pub alternatives: Vec<usize>,
}

pub fn find(history: &History, counter: &TokenCounter, request: &PlanRequest<'_>, moment: &Moment) -> Split {
    let plan = plan(history, counter, request, moment);
    let split = plan.split;
    let messages = history.messages();
    let boundary = match split {
        Some(at) if at >= messages.len() => "end",
        Some(at) if messages[at].is_prompt() => "prompt",
        Some(_) => "unit",
        None => "none",
    };
    let around = split.unwrap_or(messages.len());
    let mut alternatives: Vec<usize> = (1..messages.len())
        .filter(|it| messages[*it].is_prompt() && history.can_cut(*it) && Some(*it) != split)
        .collect();
    alternatives.sort_by_key(|it| (it.abs_diff(around), *it));
    alternatives.truncate(5);
    Split { plan, split, boundary, alternatives }
}

/// Gemini CLI's `findCompressSplitPoint`: the first user message without function responses that has at least
/// `share` of all `sizes` (there: characters of JSON) before it. Failing that everything, if the last message
/// is the model's without a call; otherwise the last such user message.
pub fn share_split(messages: &[&Message], sizes: &[u64], share: f64) -> usize {
    let target = sizes.iter().sum::<u64>() as f64 * share;
    let (mut last, mut before) = (0, 0);
    for (index, message) in messages.iter().enumerate() {
        if message.role == Role::User && message.outputs().next().is_none() {
            if before as f64 >= target {
                return index;
            }
            last = index;
        }
        before += sizes[index];
    }
    match messages.last() {
        Some(it) if it.role == Role::Assistant && it.calls().next().is_none() => messages.len(),
        _ => last,
    }
}
