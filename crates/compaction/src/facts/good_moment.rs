//! Whether work has just reached a pause, where a compaction does least harm.

use history::tools::{Meaning, actions};
use history::{History, Message, Part};

/// Messages within which a finished plan item or resolved error counts as just now.
const RECENT: usize = 6;

/// Why this is a good moment to compact, if it is one: a plan item was just finished, an error was just resolved, or
/// the model has answered and nothing is in progress.
pub fn pause(history: &History) -> Option<String> {
    let messages = history.messages();
    let recent = messages.len().saturating_sub(RECENT);
    let plan = messages[recent..].iter().rposition(|it| has(it, Meaning::Plan));
    if let Some(at) = plan.map(|it| recent + it)
        && messages[at].calls().any(|it| it.input.as_str().contains("\"completed\""))
    {
        return Some(format!("a plan item was finished (message {at})"));
    }
    let outcome = |it: &Message| it.outputs().last().map(|it| it.failed);
    let last = messages[recent..].iter().rposition(|it| outcome(it).is_some()).map(|it| recent + it);
    if let Some(at) = last.filter(|it| outcome(&messages[*it]) == Some(false)) {
        let before = messages[..at].iter().rev().take(RECENT).find_map(outcome);
        if before == Some(true) {
            return Some(format!("an error was resolved (message {at})"));
        }
    }
    let answered = messages.last().is_some_and(|it| {
        it.role == history::Role::Assistant && it.parts.iter().all(|it| !matches!(it, Part::Call(_)))
    });
    answered.then(|| "the model has answered and nothing is under way".to_owned())
}

fn has(message: &Message, meaning: Meaning) -> bool {
    message.calls().any(|call| actions(call).iter().any(|it| it.meaning == meaning))
}
