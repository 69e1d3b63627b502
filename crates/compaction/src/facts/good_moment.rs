//! Whether work has just reached a pause, where a compaction does least harm.

use super::plan::done_items;
use history::tools::{Meaning, actions};
use history::{Call, History, Message, Part};

/// Messages within which a finished plan item or resolved error counts as just now.
const RECENT: usize = 6;

/// Why this is a good moment to compact, if it is one: a plan item was just finished, an error was just resolved, or
/// the model has answered and nothing is in progress.
pub fn pause(history: &History) -> Option<String> {
    let messages = history.messages();
    let recent = messages.len().saturating_sub(RECENT);
    let plan = messages[recent..].iter().rposition(|it| plan_calls(it).next().is_some());
    if let Some(at) = plan.map(|it| recent + it)
        && plan_calls(&messages[at]).any(|it| finishes_item(it, &messages[..at]))
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

fn plan_calls(message: &Message) -> impl Iterator<Item = &Call> {
    message.calls().filter(|call| actions(call).iter().any(|it| it.meaning == Meaning::Plan))
}

/// Whether a call marks a plan item as done. A call with the whole list repeats those done in `before`.
fn finishes_item(call: &Call, before: &[Message]) -> bool {
    let Some(now) = done_items(call) else { return call.input.as_str().contains("\"completed\"") };
    let last = before.iter().rev().find_map(|it| plan_calls(it).filter_map(done_items).last());
    now > last.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::{Kind, Meta, Role, Text};

    #[test]
    fn an_item_that_was_done_before_is_not_news() {
        let plan = |first: &str, second: &str| {
            let input = format!(
                r#"{{"todos":[{{"content":"a","status":"{first}"}},{{"content":"b","status":"{second}"}}]}}"#
            );
            let call = Call {
                id: "c".into(),
                name: "TodoWrite".into(),
                input: Text::new(input),
                freeform: false,
                signature: None,
            };
            Message::new(Role::Assistant, Kind::Said, vec![Part::Call(call)])
        };
        let finished =
            |messages: &[Message]| pause(&History::new(messages.to_vec(), Meta::default())).is_some();
        let done = plan("completed", "pending");
        assert!(finished(&[plan("in_progress", "pending"), done.clone()]));
        assert!(!finished(&[done.clone(), plan("completed", "in_progress")]));
        assert!(finished(&[done, plan("completed", "completed")]));
    }
}
