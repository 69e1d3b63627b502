//! The reports of sub-agents to which the model delegated work, and what it told other agents.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::Value;

use super::LONG_CHARS;
use super::report::{speaks, text_of_model, without_closing_questions};
use super::shorten::shortened;
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::{clip, content_words, flat, lines, offset, sentences};
use crate::facts::voice::{ModelTopic, ToolTopic};
use crate::facts::{Detail, Fact, Outcome, Voice, input_of};
use history::tools::{Meaning, meaning};
use history::{Call, History, Message, Role};

/// Prefix of the output that says that a sub-agent was started in the background (Claude Code).
const LAUNCHED: &str = "Async agent launched";
/// Prefix of the output that says that a teammate was started (Claude Code).
const SPAWNED: &str = "Spawned successfully";
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
    let only_started = |it: &str| it.starts_with(LAUNCHED) || it.starts_with(SPAWNED);
    reports.retain(|(_, it)| it.len() >= MIN_BYTES && !only_started(it));
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

/// A sentence before a report that says nothing of it: "Perfect! Now I have all the information."
static OPENS: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:(?:perfect|excellent|great|good|done|okay|ok)[.!,]?\W*)?(?:(?:now )?i (?:now )?(?:have|['’]ve) (?:now )?(?:completed|finished|gathered|got|all|everything|enough|a (?:\w+ )?(?:clear|full|complete|comprehensive|thorough))\b",
    r"|(?:now )?(?:let me|i['’]ll|i will|here(?:['’]s| is| are))\b|$)",
));

/// What such a sentence may say of the report all the same.
static QUALIFIES: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)\b(?:except|but|however|although|though|not|only|could|problems?|issues?|bugs?|causes?|fail\w*)\b|n['’]t\b|:.*\w",
);

/// A report from the first sentence on that says something of it.
fn without_opening(report: &str) -> &str {
    let opens = |it: &str| {
        let names = it.contains(|it: char| it.is_ascii_digit() || "`/_".contains(it));
        OPENS.is_match(it) && !names && !QUALIFIES.is_match(it)
    };
    for line in report.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let mut all = sentences(line);
        // A line that only announces what follows may count as none.
        all.extend(all.is_empty().then_some(line));
        if let Some(says) = all.into_iter().find(|it| !opens(it)) {
            return &report[offset(says, report)..];
        }
    }
    report
}

fn in_short(report: &str, chars: usize) -> String {
    shortened(&lines(without_opening(without_closing_questions(report))), chars)
}

/// A report without what clients add for the model: `agentId: …` behind it (Claude Code), or the id of the task and
/// brackets around it (OpenCode).
fn without_receipt(text: &str) -> &str {
    if let Some((_, report)) = text.split_once("<task_result>").filter(|it| it.0.starts_with("task_id: ")) {
        return report.rsplit_once("</task_result>").map_or(report, |it| it.0).trim();
    }
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

/// The id of the agent that a call started, if it says that the agent runs in the background.
fn started(name: &str, output: &str) -> Option<String> {
    // Codex answers `{"task_name":"/root/x"}`, older versions `{"agent_id":"…"}`.
    if name == "spawn_agent" {
        let said: serde_json::Value = serde_json::from_str(output).ok()?;
        return ["task_name", "agent_id"].iter().find_map(|it| said[*it].as_str()).map(str::to_owned);
    }
    let id = output.strip_prefix(LAUNCHED)?.split_once("agentId: ")?.1.split_whitespace().next();
    id.map(str::to_owned)
}

/// Whether a text says that an agent ended.
fn ends(text: &str, agent: &str) -> bool {
    // Codex names an agent by its path: in its final answer, and in the list of all agents with how it ended.
    if agent.starts_with('/') {
        let answers = text.contains("FINAL_ANSWER") && text.contains(&format!("Sender: {agent}\n"));
        return answers || text.contains(&format!("\"agent_name\":\"{agent}\",\"agent_status\":{{"));
    }
    // Any other text with the id of an agent is taken for the news that it ended.
    text.contains(agent) && !text.contains("<status>running</status>")
}

/// An agent that runs in the background.
struct BackgroundAgent {
    /// Number of the message that says that it was started.
    message: usize,
    id: String,
    /// What it was started for; empty if unknown.
    task: String,
}

/// The agents that were started in the background in the last two turns and have not ended (Claude Code, Codex).
pub(in crate::facts) fn running(history: &History) -> Vec<Fact> {
    const TURNS: usize = 2;
    let messages = history.messages();
    let prompts: Vec<usize> = history.prompts().collect();
    let from = prompts.iter().rev().nth(TURNS - 1).copied().unwrap_or(0);
    let mut calls: HashMap<&str, &Call> = HashMap::new();
    let mut agents: Vec<BackgroundAgent> = Vec::new();
    for (number, message) in messages.iter().enumerate().skip(from) {
        calls.extend(
            message.calls().filter(|it| meaning(&it.name) == Meaning::Delegate).map(|it| (&*it.id, it)),
        );
        for output in message.outputs() {
            let text = output.text.as_str();
            let call = calls.get(&*output.id);
            if let Some((call, id)) = call.and_then(|it| Some((it, started(&it.name, text)?))) {
                let task = input_of(call).get("description").and_then(|it| it.as_str()).map(flat);
                agents.push(BackgroundAgent { message: number, id, task: task.unwrap_or_default() });
            } else {
                agents.retain(|it| !ends(text, &it.id));
            }
        }
        let notice = message.role == Role::User && !message.is_prompt() && !agents.is_empty();
        let text = Some(message.plain()).filter(|_| notice).unwrap_or_default();
        agents.retain(|it| !ends(&text, &it.id) && (it.task.is_empty() || !text.contains(&it.task)));
    }
    let told = |BackgroundAgent { message, id, task }| {
        let suffix = if task.is_empty() { String::new() } else { format!(": {task}") };
        Fact::from_model(ModelTopic::Active, message, format!("background agent {id}{suffix}"))
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

/// What the model last told each other agent of its team (Claude Code), as a command. What it tells the lead is a report.
pub(in crate::facts) fn sent(history: &History) -> Vec<Fact> {
    const MAX_CHARS: usize = 160;
    let mut calls: HashMap<&str, &Call> = HashMap::new();
    let mut newest: BTreeMap<String, Fact> = BTreeMap::new();
    for (number, message) in history.messages().iter().enumerate() {
        calls.extend(message.calls().filter(|it| &*it.name == "SendMessage").map(|it| (&*it.id, it)));
        for output in message.outputs().filter(|it| !it.failed && it.refusal.is_none()) {
            let Some(input) = calls.get(&*output.id).map(|it| input_of(it)) else { continue };
            let text = |key: &str| input.get(key).and_then(Value::as_str);
            let to = text("recipient").or_else(|| text("to")).filter(|it| *it != "team-lead");
            let Some(to) = to.filter(|_| text("type").is_none_or(|it| it == "message")) else { continue };
            let Some(said) = text("summary").or_else(|| text("content")).or_else(|| text("message")) else {
                continue;
            };
            let said = flat(clip(said, MAX_CHARS).0).replace(['"', '`'], "'");
            let outcome = Outcome { ok: Some(true), ..Outcome::default() };
            let detail = Detail::Command { outcome, read_only: false };
            let command = format!("SendMessage {to} \"{said}\"");
            newest.insert(to.to_owned(), Fact::from_tools(ToolTopic::Commands, number, command, detail));
        }
    }
    newest.into_values().collect()
}
