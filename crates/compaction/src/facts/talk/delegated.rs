//! The reports of sub-agents to which the model delegated work.

use std::collections::HashMap;

use super::report::{shortened, speaks, text_of_model, without_closing_questions};
use crate::facts::Fact;
use crate::facts::past::overtaken::content_words;
use crate::facts::text::lines;
use crate::facts::voice::ModelTopic;
use history::tools::{Meaning, meaning};
use history::{History, Message, Role};

/// Prefixes of the outputs that only say that a sub-agent was started.
const LAUNCHED: [&str; 2] = ["Async agent launched", "Spawned successfully"];
/// A shorter report says too little. Bytes.
const MIN_BYTES: usize = 200;
const MAX_REPORTS: usize = 4;
const MAX_CHARS: usize = 400;

/// The last reports of the current turn that the model has not repeated in its own words.
pub(super) fn read(history: &History) -> Vec<Fact> {
    let messages = history.messages();
    let from = history.last_prompt().unwrap_or(0);
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut reports: Vec<(usize, String)> = Vec::new();
    for (number, message) in messages.iter().enumerate().skip(from) {
        names.extend(message.calls().map(|it| (&*it.id, &*it.name)));
        let helper = |id: &str| {
            names
                .get(id)
                .is_some_and(|it| meaning(it) == Meaning::Delegate && !it.to_lowercase().contains("skill"))
        };
        let outputs = message.outputs().filter(|it| !it.failed && helper(&it.id));
        reports.extend(outputs.map(|it| (number, without_receipt(it.text.as_str()).to_owned())));
        reports.extend(notified(message).map(|it| (number, it)));
    }
    reports.retain(|(_, it)| it.len() >= MIN_BYTES && !LAUNCHED.iter().any(|not| it.starts_with(not)));
    let tell = |(number, text): (usize, String)| {
        let told = shortened(&lines(without_closing_questions(&text)), MAX_CHARS);
        let own = messages[number..].iter().filter(|it| speaks(it)).map(text_of_model);
        let own = content_words(&own.collect::<Vec<_>>().join("\n"));
        let words = content_words(&told);
        let repeated = words.intersection(&own).count() * 2 > words.len();
        (!repeated)
            .then(|| Fact::from_model(ModelTopic::Findings, number, format!("a sub-agent reports: {told}")))
    };
    let mut facts: Vec<Fact> = reports.into_iter().rev().filter_map(tell).take(MAX_REPORTS).collect();
    facts.reverse();
    facts
}

/// A report without the lines that Claude Code appends for the model: `agentId: …`.
fn without_receipt(text: &str) -> &str {
    text.rfind("agentId: ").filter(|at| text.len() - at < 400).map_or(text, |at| text[..at].trim_end())
}

/// The report in Claude Code's notification that a background task is done.
fn notified(message: &Message) -> Option<String> {
    let notice = message.role == Role::User && !message.is_prompt();
    let text =
        Some(message.plain()).filter(|it| notice && it.trim_start().starts_with("<task-notification>"))?;
    let body = text.split_once("<result>")?.1;
    Some(body.rsplit_once("</result>").map_or(body, |it| it.0).trim().to_owned())
}
