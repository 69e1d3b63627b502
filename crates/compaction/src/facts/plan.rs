//! The plan: the last state of the to-do tools or of a checklist; and what the user answered when a tool asked.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

use super::past::listed::Listed;
use super::text::ascii_first::AsciiFirstRegex;
use super::text::{clip, flat};
use super::voice::{Answered, Quote, Told};
use super::{Fact, Topic, Voice};
use history::tools::{self, Meaning};
use history::{Call, History, Kind, Output, Part, Role};

/// A step of the plan.
struct Step {
    id: Option<String>,
    text: String,
    topic: Topic,
    message: usize,
}

/// The steps of the plan, in order; nothing where one was dropped.
#[derive(Default)]
struct Steps {
    all: Vec<Option<Step>>,
    /// Where a step with a number stands; of several the first.
    by_id: HashMap<String, usize>,
    /// All steps before it have a number or are gone.
    unnumbered: usize,
    /// It was handed over as a whole.
    whole: bool,
}

/// What became of a task that was made before the history begins: only an earlier summary tells what it is.
pub(super) struct Changed {
    pub(super) id: String,
    /// Where it belongs now; nothing if it was dropped.
    pub(super) topic: Option<Topic>,
    pub(super) message: usize,
}

static CREATED: LazyLock<AsciiFirstRegex> =
    LazyLock::new(|| AsciiFirstRegex::new(r"(?i)task #?(\w+) (?:created|added)"));
static BOX: LazyLock<AsciiFirstRegex> =
    LazyLock::new(|| AsciiFirstRegex::new(r"(?m)^\s*(?:[-*+]|\d+[.)])\s+\[([ xX~>-])\]\s+(\S.*)$"));

/// Reads the last state of the plan, and gives back what became of tasks made before.
pub(super) fn read(history: &History, facts: &mut Vec<Fact>) -> Vec<Changed> {
    let mut steps = Steps::default();
    let mut changed: Vec<Changed> = Vec::new();
    let mut listed = 0;
    for (number, message) in history.messages().iter().enumerate() {
        for part in &message.parts {
            match part {
                Part::Call(call) if tools::meaning(&call.name) == Meaning::Plan => {
                    changed.extend(apply(call, number, &mut steps));
                }
                Part::Output(output) => numbered(output, &mut steps),
                // A checklist in prose counts until a tool keeps the plan.
                Part::Text(text) if message.kind == Kind::Said && message.role != Role::System => {
                    let boxes = checklist(text.as_str(), number);
                    let handed = message.role == Role::User && is_document(text.as_str(), boxes.len());
                    if !handed && boxes.len() >= 2 && (steps.all.is_empty() || listed > 0) {
                        listed = boxes.len();
                        steps = Steps { all: boxes.into_iter().map(Some).collect(), ..Steps::default() };
                    }
                }
                Part::Text(_) | Part::Call(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {}
            }
        }
    }
    let whole = steps.whole;
    let steps: Vec<Step> = steps.all.into_iter().flatten().collect();
    if !steps.is_empty() {
        // The plan of an earlier summary is what this one grew from. One that was handed over as a whole replaces it.
        let listed = Listed::of(steps.iter().map(|it| it.text.as_str()));
        facts.retain(|it| {
            !matches!(it.topic, Topic::Open | Topic::Active | Topic::Unconfirmed)
                || it.voice() == Voice::Summary
                    && !(whole && it.message < steps[0].message)
                    && !listed.has(&it.text)
        });
    }
    facts.extend(steps.into_iter().map(|it| {
        let topic = match it.topic {
            Topic::Done => Told::Done,
            Topic::Active => Told::Active,
            _ => Told::Open,
        };
        Fact::told(topic, it.message, it.text)
    }));
    changed
}

/// Brings the steps up to date; gives back what is said of a task that is none of them.
fn apply(call: &Call, number: usize, steps: &mut Steps) -> Option<Changed> {
    let input: Value = serde_json::from_str(call.input.as_str()).unwrap_or_default();
    let text = |it: &Value| {
        ["content", "step", "description", "subject", "title", "text"]
            .iter()
            .find_map(|key| it.get(key)?.as_str().map(flat))
    };
    let status = |it: &Value| it.get("status").and_then(Value::as_str).map(str::to_lowercase);
    // Claude Code, Codex, Gemini CLI and OpenCode hand over the whole list.
    let list = ["todos", "plan", "items", "task_list"].iter().find_map(|key| input.get(key)?.as_array());
    if let Some(list) = list {
        *steps = Steps { whole: true, ..Steps::default() };
        for item in list {
            let Some(topic) = topic(status(item).as_deref().unwrap_or("pending")) else { continue };
            steps.all.extend(text(item).map(|text| Some(Step { id: None, text, topic, message: number })));
        }
        return None;
    }
    let id = ["taskId", "task_id", "id"]
        .iter()
        .find_map(|key| input.get(key).map(|it| it.to_string().trim_matches('"').to_string()));
    match id {
        // Claude Code's `TaskUpdate`.
        Some(id) => {
            let Some(at) = steps.by_id.get(&id).copied() else {
                let topic = topic(&status(&input)?);
                return Some(Changed { id, topic, message: number });
            };
            let step = &mut steps.all[at];
            match (status(&input).as_deref().map(topic), step.as_mut()) {
                (Some(None), _) => {
                    *step = None;
                    steps.by_id.remove(&id);
                }
                (now, Some(step)) => {
                    if let Some(text) = input.get("subject").and_then(Value::as_str) {
                        step.text = flat(text);
                    }
                    step.topic = now.flatten().unwrap_or(step.topic);
                }
                (Some(Some(_)) | None, None) => {}
            }
        }
        // `TaskCreate`: its number comes with the answer.
        None => {
            let subject = input.get("subject").and_then(Value::as_str);
            let step = |it: &str| Step { id: None, text: flat(it), topic: Topic::Open, message: number };
            steps.all.extend(subject.map(|it| Some(step(it))));
        }
    }
    None
}

/// Gives the oldest step without a number the one that the tool answered.
fn numbered(output: &Output, steps: &mut Steps) {
    let Some(found) = CREATED.captures(clip(output.text.as_str(), 120).0) else { return };
    let Some(id) = found.get(1).map(|it| it.as_str().to_owned()) else { return };
    while let Some(step) = steps.all.get_mut(steps.unnumbered) {
        let at = steps.unnumbered;
        steps.unnumbered += 1;
        if let Some(step) = step.as_mut().filter(|it| it.id.is_none()) {
            step.id = Some(id.clone());
            steps.by_id.entry(id).or_insert(at);
            return;
        }
    }
}

/// Where a step of that status belongs; nothing if it was dropped.
pub(super) fn topic(status: &str) -> Option<Topic> {
    match status {
        "completed" | "complete" | "done" | "finished" | "x" | "X" => Some(Topic::Done),
        "in_progress" | "in-progress" | "in progress" | "active" | "doing" | "started" | "~" | ">" => {
            Some(Topic::Active)
        }
        "cancelled" | "canceled" | "deleted" | "dropped" | "removed" | "-" => None,
        _ => Some(Topic::Open),
    }
}

/// Whether a text with that many boxes was not written as a plan of this session, but pasted.
fn is_document(text: &str, boxes: usize) -> bool {
    /// Nobody types so many.
    const BOXES: usize = 10;
    /// Bytes of a long text.
    const LONG: usize = 4_000;
    let headed = text.lines().any(|it| it.starts_with('#') && it.trim_start_matches('#').starts_with(' '));
    boxes > BOXES || text.len() > LONG && headed
}

fn checklist(text: &str, number: usize) -> Vec<Step> {
    let mut out = Vec::new();
    if !text.contains('[') {
        return out;
    }
    for found in BOX.captures_iter(text) {
        let (Some(mark), Some(what)) = (found.get(1), found.get(2)) else { continue };
        let Some(topic) = topic(mark.as_str()) else { continue };
        out.push(Step { id: None, text: flat(clip(what.as_str(), 300).0), topic, message: number });
    }
    out
}

static PAIR: LazyLock<AsciiFirstRegex> =
    LazyLock::new(|| AsciiFirstRegex::new(r#""([^"]+)"\s*=\s*"([^"]*)""#));

/// Question and answer, as a tool that asks the user reports them.
pub(super) fn answers(call: &Call, answered: &Answered) -> Vec<(Option<String>, Quote)> {
    let given = given(call, answered.output).into_iter();
    given.map(|(question, answer)| (question, answered.quote(answer))).collect()
}

fn given(call: &Call, output: &Output) -> Vec<(Option<String>, String)> {
    let text = output.text.as_str();
    let input: Value = serde_json::from_str(call.input.as_str()).unwrap_or_default();
    if output.failed || output.cleared {
        return Vec::new();
    }
    // A plan that was put to the user: the answer is yes, the plan is what it means.
    if let Some(plan) = input.get("plan").and_then(Value::as_str) {
        let title = plan.lines().map(super::text::bare).find(|it| !it.is_empty()).unwrap_or_default();
        let approved = text.to_lowercase().contains("approved") || text.contains("start coding");
        let asked = Some(format!("plan: {}", flat(clip(title, 160).0)));
        return if approved { vec![(asked, "approved".into())] } else { Vec::new() };
    }
    let pairs: Vec<_> = PAIR
        .captures_iter(text)
        .filter_map(|it| Some((Some(flat(it.get(1)?.as_str())), it.get(2)?.as_str().to_string())))
        .collect();
    if !pairs.is_empty() {
        return pairs;
    }
    let questions = input.get("questions").and_then(Value::as_array).cloned().unwrap_or_default();
    let asked = |id: &str, at: usize| {
        let by_id = questions.iter().find(|it| {
            ["id", "header", "question"].iter().any(|key| it.get(key).and_then(Value::as_str) == Some(id))
        });
        by_id.or_else(|| questions.get(at)).and_then(|it| it.get("question")?.as_str()).map(flat)
    };
    let answer: Value = serde_json::from_str(text).unwrap_or_default();
    if let Some(given) = answer.get("answers").and_then(Value::as_object) {
        let said = |it: &Value| match it.get("answers").unwrap_or(it) {
            Value::String(it) => it.clone(),
            Value::Array(many) => many.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
            _ => String::new(),
        };
        return given
            .iter()
            .enumerate()
            .map(|(at, (id, it))| (asked(id, id.parse().unwrap_or(at)), said(it)))
            .filter(|it| !it.1.is_empty())
            .collect();
    }
    let short = text.trim();
    let question = asked("", 0).or_else(|| input.get("question").and_then(Value::as_str).map(flat));
    if question.is_some() && !short.is_empty() && short.chars().count() < 400 {
        return vec![(question, short.into())];
    }
    Vec::new()
}
