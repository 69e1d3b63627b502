//! The reports of sub-agents to which the model delegated work.

use std::collections::{HashMap, HashSet};

use super::LONG_CHARS;
use super::report::{shortened, speaks, text_of_model, without_closing_questions};
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::{content_words, flat, lines, sentences};
use crate::facts::voice::ModelTopic;
use crate::facts::{Fact, Voice, input_of};
use history::tools::{Meaning, meaning};
use history::{History, Message, Role};

/// Prefixes of the outputs that only say that a sub-agent was started.
const LAUNCHED: [&str; 2] = ["Async agent launched", "Spawned successfully"];
/// A shorter report says too little. Bytes.
const MIN_BYTES: usize = 200;
const MAX_REPORTS: usize = 4;
/// What the line of a report begins with.
pub(super) const REPORTS: &str = "a sub-agent reports: ";
const MAX_CHARS: usize = 400;

/// The model says that it has acted on what was reported.
static TAKEN_UP: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\b(?:all|every|both|critical|review|reviewer['’]?s|critic['’]?s)\b[^.!?\n]{0,60}\b(?:incorporated|addressed|taken up|worked in)\b|\b(?:incorporated|addressed) (?:all|both|every|each)\b",
);

/// What was not, or is still to be, taken up.
static NOT_TAKEN_UP: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\b(?:not|still|yet|to be|must|needs?|remain\w*|should|will|cannot)\b|n['’]t\b",
);

/// The last reports of the current turn, and of earlier ones without a reply, that the model has not repeated in its own
/// words.
pub(super) fn read(history: &History) -> Vec<Fact> {
    let messages = history.messages();
    let from = history.last_prompt().unwrap_or(0).min(messages.iter().rposition(speaks).unwrap_or(0));
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
        reports.extend(notices(message).into_iter().map(|it| (number, it.report)));
    }
    reports.retain(|(_, it)| it.len() >= MIN_BYTES && !LAUNCHED.iter().any(|not| it.starts_with(not)));
    let tell = |(number, text): (usize, String)| {
        let told = in_short(&text, MAX_CHARS);
        let own = messages[number..].iter().filter(|it| speaks(it)).map(text_of_model);
        let own = own.collect::<Vec<_>>().join("\n");
        let words = content_words(&told);
        let repeated = words.intersection(&content_words(&own)).count() * 2 > words.len();
        let taken_up = sentences(&own).iter().any(|it| TAKEN_UP.is_match(it) && !NOT_TAKEN_UP.is_match(it));
        (!repeated && !taken_up)
            .then(|| Fact::from_model(ModelTopic::Findings, number, format!("{REPORTS}{told}")))
    };
    let mut facts: Vec<Fact> = reports.into_iter().rev().filter_map(tell).take(MAX_REPORTS).collect();
    facts.reverse();
    facts
}

/// The report in a message at full length; `short` is its short form.
pub(super) fn at_length(message: &Message, short: &str) -> Option<String> {
    let outputs = message.outputs().map(|it| without_receipt(it.text.as_str()).to_owned());
    let reports: Vec<String> = outputs.chain(notices(message).into_iter().map(|it| it.report)).collect();
    let report = reports.iter().find(|it| in_short(it, MAX_CHARS) == short)?;
    Some(format!("{REPORTS}{}", in_short(report, LONG_CHARS)))
}

fn in_short(report: &str, chars: usize) -> String {
    shortened(&lines(without_closing_questions(report)), chars)
}

/// A report without the lines that Claude Code appends for the model: `agentId: …`.
fn without_receipt(text: &str) -> &str {
    text.rfind("agentId: ").filter(|at| text.len() - at < 400).map_or(text, |at| text[..at].trim_end())
}

/// Claude Code's notice that a background agent ended.
struct Notice {
    /// What the agent was started for; empty if another task ended.
    name: String,
    completed: bool,
    report: String,
}

/// The notices in a message, which may tell of several tasks.
fn notices(message: &Message) -> Vec<Notice> {
    let notice = message.role == Role::User && !message.is_prompt();
    let text =
        Some(message.plain()).filter(|it| notice && it.trim_start().starts_with("<task-notification>"));
    let text = text.unwrap_or_default();
    let read = |it: &str| {
        let (head, body) = it.split_once("<result>")?;
        let name =
            head.split_once("<summary>Agent \"").and_then(|it| it.1.split_once("\" ")).map_or("", |it| it.0);
        Some(Notice {
            name: name.to_owned(),
            completed: head.contains("<status>completed</status>"),
            report: body.rsplit_once("</result>").map_or(body, |it| it.0).trim().to_owned(),
        })
    };
    text.split("<task-notification>").filter_map(read).collect()
}

/// The agents that were started in the background in the last two turns and have not ended (Claude Code).
pub(in crate::facts) fn running(history: &History) -> Vec<Fact> {
    const TURNS: usize = 2;
    let messages = history.messages();
    let prompts: Vec<usize> = history.prompts().collect();
    let from = prompts.iter().rev().nth(TURNS - 1).copied().unwrap_or(0);
    let mut names: HashMap<&str, String> = HashMap::new();
    let mut agents: Vec<(usize, String, String)> = Vec::new();
    for (number, message) in messages.iter().enumerate().skip(from) {
        for call in message.calls().filter(|it| meaning(&it.name) == Meaning::Delegate) {
            let what = input_of(call).get("description").and_then(|it| it.as_str()).map(flat);
            names.insert(&call.id, what.unwrap_or_default());
        }
        for output in message.outputs() {
            let text = output.text.as_str();
            let id = text.split_once("agentId: ").and_then(|it| it.1.split_whitespace().next());
            if let Some(id) = id.filter(|_| text.starts_with(LAUNCHED[0]))
                && let Some(what) = names.get(&*output.id)
            {
                agents.push((number, id.to_owned(), what.clone()));
            } else if !agents.is_empty() && !text.contains("<status>running</status>") {
                agents.retain(|it| !text.contains(&it.1));
            }
        }
        let notice = message.role == Role::User && !message.is_prompt() && !agents.is_empty();
        let text = Some(message.plain()).filter(|_| notice).unwrap_or_default();
        agents.retain(|it| !text.contains(&it.1) && (it.2.is_empty() || !text.contains(&it.2)));
    }
    let told = |(number, id, what): (usize, String, String)| {
        Fact::from_model(ModelTopic::Active, number, format!("background agent {id}: {what}"))
    };
    agents.into_iter().map(told).collect()
}

/// What an earlier summary says of a step that an agent was working on.
static RUNNING: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\s*\((?:background )?agents? (?:is |are )?(?:still )?(?:running|working)\b[^)]*\)",
);

/// Ends the steps of an earlier summary that a background agent has completed since; of others whose agent ended, it no
/// longer says that they run. An agent is that of the step with which its name shares the most words.
pub(in crate::facts) fn settle_running(history: &History, facts: &mut Vec<Fact>) {
    /// Maximum number of words with which a step may say more than the name of the agent that completes it.
    const MORE: usize = 1;
    let words = |text: &str| -> HashSet<String> {
        let words = text.split(|it: char| !it.is_alphanumeric()).filter(|it| !it.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let runs = |it: &Fact| it.is_open_step() && it.voice() == Voice::Summary && RUNNING.is_match(&it.text);
    let head = |it: &Fact| words(&it.text[..RUNNING.find(&it.text).map_or(0, |it| it.start())]);
    let steps: Vec<(usize, HashSet<String>)> =
        facts.iter().enumerate().filter(|it| runs(it.1)).map(|(at, it)| (at, head(it))).collect();
    if steps.is_empty() {
        return;
    }
    let mut completed: HashSet<usize> = HashSet::new();
    for notice in history.messages().iter().flat_map(notices) {
        let name = words(&notice.name);
        let telling = content_words(&notice.name);
        let fits = |it: &&(usize, HashSet<String>)| !telling.is_empty() && telling.is_subset(&it.1);
        let best = steps.iter().filter(fits).max_by_key(|it| it.1.intersection(&name).count());
        let Some((at, step)) = best else { continue };
        facts[*at].text.reword(|it| RUNNING.replace_all(it, "").into_owned());
        let more = step.iter().filter(|it| it.chars().count() > 3 && !name.contains(*it)).count();
        completed.extend((notice.completed && more <= MORE).then_some(*at));
    }
    let mut at = 0;
    facts.retain(|_| {
        at += 1;
        !completed.contains(&(at - 1))
    });
}
