//! The plan: the last state of the to-do tools or of a checklist; and the user's answers to tools that ask.

use std::collections::HashMap;

use serde_json::Value;

use super::mode::says_approved;
use super::past::step_index::StepIndex;
use super::text::ascii_first::AsciiFirstRegex;
use super::text::rule::{QUESTION_START, polarity};
use super::text::{clip, flat, sentences, without_markers};
use super::voice::{ModelTopic, Quote, UserReply};
use super::{Fact, Polarity, Topic, Voice, input_of};
use history::tools::{self, Meaning};
use history::{Call, History, Kind, Output, Part, Role};

struct Step {
    text: String,
    topic: Topic,
    message: usize,
    /// Its number, if tools name it by one.
    id: Option<String>,
}

/// The steps of the plan, in order; `None` where one was removed.
#[derive(Default)]
struct Steps {
    all: Vec<Option<Step>>,
    /// Index in `all` by id; if several steps have the same id, the first.
    by_id: HashMap<String, usize>,
    /// The message of the last call that replaced the whole list.
    whole: Option<usize>,
}

/// What tools know of a step beside its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedStep {
    pub id: String,
    pub about: Option<String>,
}

/// A status change of a task that was created before the history begins: only an earlier summary names it.
pub(super) struct TaskUpdate {
    pub(super) id: String,
    /// `None` if the task was cancelled.
    pub(super) topic: Option<Topic>,
    pub(super) message: usize,
}

static TASK_CREATED: AsciiFirstRegex = AsciiFirstRegex::new(r"(?i)task #?(\w+) (?:created|added)");
/// A line of the output of `TaskList`: number, status.
static LISTED_TASK: AsciiFirstRegex = AsciiFirstRegex::new(r"(?m)^#(\d+) \[(\w+)\] \S");
/// A line of a prompt that names a task with its id.
static ASSIGNED: AsciiFirstRegex =
    AsciiFirstRegex::new(r"^\W*(?:[A-Z]+-\d+ \((?:Task )?#(\d+)\)|Task #(\d+)(?: \([^()]*\))?):? \S");
static CHECKBOX: AsciiFirstRegex =
    AsciiFirstRegex::new(r"(?m)^\s*(?:[-*+]|\d+[.)])\s+\[([ xX~>-])\]\s+(\S.*)$");
/// What is to be filled in: `[brief description]`, `[status, blockers]`.
static PLACEHOLDER: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)(?:^|\s)\[(?:(?:brief|short|task|your|one-line|insert|add) [a-z ]{2,40}|(?:name|description|title|date|status|owner|details)(?:, [a-z ]{2,30})*)\]\W*$",
);

/// Reads the last state of the plan. Returns the status changes of tasks that were created before the history begins,
/// and the open steps that have a number, by their text.
pub(super) fn read(
    history: &History,
    facts: &mut Vec<Fact>,
) -> (Vec<TaskUpdate>, HashMap<String, NumberedStep>) {
    let mut steps = Steps::default();
    // By id of the task.
    let mut described: HashMap<String, String> = HashMap::new();
    let mut changed: Vec<TaskUpdate> = Vec::new();
    // Plan calls whose output has not come, with their messages.
    let mut open: Vec<(usize, &Call)> = Vec::new();
    let mut listed = 0;
    let mut assigned: HashMap<String, String> = HashMap::new();
    for (number, message) in history.messages().iter().enumerate() {
        if message.is_prompt() {
            note_assigned(&message.plain(), &mut assigned, &mut described);
        }
        for part in &message.parts {
            match part {
                Part::Call(call) if tools::meaning(&call.name) == Meaning::Plan => {
                    open.push((number, call));
                }
                Part::Output(output) => {
                    let Some(at) = open.iter().position(|it| it.1.id == output.id) else { continue };
                    let (at, call) = open.remove(at);
                    // A failed or refused call did not change the plan.
                    if !output.failed && output.refusal.is_none() {
                        changed.extend(apply(call, at, Some(output), &assigned, &mut steps));
                        described.extend(description(call, output));
                        changed.extend(listed_tasks(output, number, &mut steps));
                    }
                }
                // A checklist in prose counts until a plan tool is used.
                Part::Text(text) if message.kind == Kind::Said && message.role != Role::System => {
                    let boxes = checklist(text.as_str(), number);
                    let handed = message.role == Role::User && is_pasted(text.as_str(), boxes.len());
                    if !handed && boxes.len() >= 2 && (steps.all.is_empty() || listed > 0) {
                        listed = boxes.len();
                        steps = Steps { all: boxes.into_iter().map(Some).collect(), ..Steps::default() };
                    }
                }
                Part::Text(_) | Part::Call(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {}
            }
        }
    }
    for (at, call) in open {
        changed.extend(apply(call, at, None, &assigned, &mut steps));
    }
    let whole = steps.whole.is_some();
    let steps: Vec<Step> = steps.all.into_iter().flatten().collect();
    if !steps.is_empty() {
        // A plan continues that of an earlier summary, unless a call replaced the whole list.
        let listed = StepIndex::of(steps.iter().map(|it| it.text.as_str()));
        facts.retain(|it| {
            !it.is_open_step()
                || it.voice() == Voice::Summary
                    && !(whole && it.message < steps[0].message)
                    && !listed.contains_similar(&it.text)
        });
    }
    let mut numbered = HashMap::new();
    facts.extend(steps.into_iter().map(|it| {
        let topic = match it.topic {
            Topic::Done => return Fact::from_model(ModelTopic::Done, it.message, it.text),
            Topic::Active => ModelTopic::Active,
            _ => ModelTopic::Open,
        };
        if let Some(id) = it.id {
            let about = described.remove(&id);
            numbered.insert(it.text.clone(), NumberedStep { id, about });
        }
        Fact::from_model(topic, it.message, it.text)
    }));
    (changed, numbered)
}

/// What a call says that a task is about, with its id: Claude Code's `TaskCreate`, `TaskUpdate` and `TaskGet`.
fn description(call: &Call, output: &Output) -> Option<(String, String)> {
    let input = input_of(call);
    let text = output.text.as_str();
    let given = input.get("taskId").and_then(Value::as_str).map(str::to_owned);
    let about = match input.get("description").and_then(Value::as_str) {
        Some(about) => about,
        None => {
            let about = text.split_once("\nDescription: ").filter(|it| it.0.starts_with("Task #"))?.1;
            about.split("\nBlock").next().unwrap_or(about)
        }
    };
    Some((given.or_else(|| created_task(output))?, flat(about)))
}

/// Notes the tasks that a prompt names with their ids: `UI-5 (Task #16): Make the list`, `Task #16: …`, and
/// the JSON by which a team lead assigns one (Claude Code).
fn note_assigned(
    prompt: &str,
    assigned: &mut HashMap<String, String>,
    described: &mut HashMap<String, String>,
) {
    if !prompt.contains('#') && !prompt.contains("\"taskId\"") {
        return;
    }
    for line in prompt.lines() {
        let sent = line.starts_with('{').then(|| serde_json::from_str::<Value>(line).ok()).flatten();
        let field = |key: &str| sent.as_ref()?.get(key)?.as_str();
        if let (Some(id), Some(subject)) = (field("taskId"), field("subject")) {
            assigned.insert(id.to_owned(), format!("Task #{id}: {}", flat(clip(subject, 200).0)));
            described.extend(field("description").map(|it| (id.to_owned(), flat(it))));
        } else if let Some(found) = ASSIGNED.captures(line)
            && let Some(id) = found.iter().skip(1).flatten().next()
        {
            let title = without_markers(line).split(" — ").next().unwrap_or_default();
            assigned.entry(id.as_str().to_owned()).or_insert_with(|| flat(clip(title, 200).0));
        }
    }
}

/// Adds a step for a status change of a task that only a prompt names.
fn name_task(change: Option<&TaskUpdate>, assigned: &HashMap<String, String>, steps: &mut Steps) {
    let named = change.and_then(|it| Some((it, it.topic?, assigned.get(&it.id)?)));
    if let Some((change, topic, title)) = named {
        steps.by_id.insert(change.id.clone(), steps.all.len());
        let id = Some(change.id.clone());
        let step = Step { text: title.clone(), topic, message: change.message, id };
        steps.all.push(Some(step));
    }
}

/// Applies a call to the steps. Returns the status change of a task that is not among them.
fn apply(
    call: &Call,
    number: usize,
    output: Option<&Output>,
    assigned: &HashMap<String, String>,
    steps: &mut Steps,
) -> Option<TaskUpdate> {
    let input = input_of(call);
    if let Some(items) = items(&input) {
        if steps.whole > Some(number) {
            return None;
        }
        *steps = Steps { whole: Some(number), ..Steps::default() };
        steps.all = items.iter().filter_map(|it| Some(Some(listed_step(it, number)?))).collect();
        return None;
    }
    let id = ["taskId", "task_id", "id"].iter().find_map(|key| input.get(key));
    if let Some(id) = id {
        let change = update(id.to_string().trim_matches('"').to_owned(), &input, number, steps);
        name_task(change.as_ref(), assigned, steps);
        return change;
    }
    // `TaskCreate`: the output gives its id.
    let text = flat(input.get("subject").and_then(Value::as_str)?);
    let id = output.and_then(created_task);
    if let Some(id) = id.clone() {
        steps.by_id.entry(id).or_insert(steps.all.len());
    }
    steps.all.push(Some(Step { text, topic: Topic::Open, message: number, id }));
    None
}

/// The id in the output of a `TaskCreate`.
fn created_task(output: &Output) -> Option<String> {
    let found = TASK_CREATED.captures(clip(output.text.as_str(), 120).0)?;
    Some(found.get(1)?.as_str().to_owned())
}

/// The items of a call that sends the whole list, as those of Claude Code, Codex, Gemini CLI and OpenCode do.
fn items(input: &Value) -> Option<&Vec<Value>> {
    ["todos", "plan", "items", "task_list"].iter().find_map(|key| input.get(key)?.as_array())
}

/// How many items of the whole list that a call sends are done; `None` for a call without a list.
pub(super) fn done_items(call: &Call) -> Option<usize> {
    let input = input_of(call);
    let done = |it: &&Value| status(it).and_then(|it| topic(&it)) == Some(Topic::Done);
    items(&input).map(|it| it.iter().filter(done).count())
}

fn status(item: &Value) -> Option<String> {
    item.get("status").and_then(Value::as_str).map(str::to_lowercase)
}

fn listed_step(item: &Value, number: usize) -> Option<Step> {
    let topic = topic(status(item).as_deref().unwrap_or("pending"))?;
    let keys = ["content", "step", "description", "subject", "title", "text"];
    let text = keys.iter().find_map(|key| item.get(key)?.as_str().map(flat))?;
    Some(Step { text, topic, message: number, id: None })
}

/// Applies the statuses that `TaskList` prints: teammates and sub-agents change tasks, too.
fn listed_tasks(output: &Output, number: usize, steps: &mut Steps) -> Vec<TaskUpdate> {
    let text = output.text.as_str();
    let listed = text.starts_with('#').then(|| LISTED_TASK.captures_iter(text)).into_iter().flatten();
    let mut changed = Vec::new();
    for found in listed {
        let (Some(id), Some(status)) = (found.get(1), found.get(2)) else { continue };
        let now = topic(status.as_str());
        let known = steps.by_id.get(id.as_str()).and_then(|at| steps.all[*at].as_ref());
        if known.is_none_or(|it| Some(it.topic) != now) {
            changed.extend(set_status(id.as_str().to_owned(), Some(now), None, number, steps));
        }
    }
    changed
}

/// Claude Code's `TaskUpdate`.
fn update(id: String, input: &Value, number: usize, steps: &mut Steps) -> Option<TaskUpdate> {
    let subject = input.get("subject").and_then(Value::as_str);
    set_status(id, status(input).map(|it| topic(&it)), subject, number, steps)
}

/// `now`: `None` keeps the status, `Some(None)` cancels the task. `subject`: its new subject, if any.
fn set_status(
    id: String,
    now: Option<Option<Topic>>,
    subject: Option<&str>,
    number: usize,
    steps: &mut Steps,
) -> Option<TaskUpdate> {
    let Some(at) = steps.by_id.get(&id).copied() else {
        return Some(TaskUpdate { id, topic: now?, message: number });
    };
    let step = &mut steps.all[at];
    if now == Some(None) {
        *step = None;
        steps.by_id.remove(&id);
    } else if let Some(step) = step.as_mut().filter(|it| it.message <= number) {
        if let Some(text) = subject {
            step.text = flat(text);
        }
        step.topic = now.flatten().unwrap_or(step.topic);
        step.message = number;
    }
    None
}

/// The topic of a step with that status; `None` if it was cancelled.
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

/// Whether a text with that many checkboxes was pasted, rather than written as a plan of this session.
fn is_pasted(text: &str, boxes: usize) -> bool {
    /// More than a user types.
    const BOXES: usize = 10;
    /// Bytes.
    const LONG: usize = 4_000;
    let headed = text.lines().any(|it| it.starts_with('#') && it.trim_start_matches('#').starts_with(' '));
    boxes > BOXES || text.len() > LONG && headed
}

fn checklist(text: &str, number: usize) -> Vec<Step> {
    let mut out = Vec::new();
    if !text.contains('[') {
        return out;
    }
    for found in CHECKBOX.captures_iter(text) {
        let (Some(mark), Some(what)) = (found.get(1), found.get(2)) else { continue };
        let Some(topic) = topic(mark.as_str()) else { continue };
        out.push(Step { text: flat(clip(what.as_str(), 300).0), topic, message: number, id: None });
    }
    // What to check about each change is no plan: `- [ ] Is the error logged?`
    let questions = out.iter().filter(|it| it.text.ends_with(['?', '？'])).count();
    // Nor is a form to fill in: `- [ ] Task 1 - [brief description]`.
    let blanks = out.iter().filter(|it| PLACEHOLDER.is_match(&it.text)).count();
    if questions * 2 > out.len() || blanks > 1 && blanks * 3 >= out.len() {
        out.clear();
    }
    out
}

static QUOTED_ANSWER: AsciiFirstRegex = AsciiFirstRegex::new(r#""([^"]+)"\s*=\s*"([^"]*)""#);
/// What clients return as the answer when nobody answered.
static UNANSWERED: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:no (?:response|answer|reply)\b|timed? ?out\b|request_user_input is unavailable\b|(?:the )?(?:user|questions?) (?:(?:was|were|has|have) )?(?:dismissed|cancell?ed|skipped|declined|(?:does|did)(?:n['’]t| not) (?:want to )?(?:answer|respond)))",
);

/// The user's answer to a question that a tool asked.
pub(super) struct Answer {
    pub(super) question: Option<String>,
    pub(super) said: Quote,
    /// Rules in what the user typed instead of choosing an option.
    pub(super) rules: Vec<(Polarity, Quote)>,
    /// What the chosen option excludes, in its description.
    pub(super) means: Option<String>,
}

/// Questions and answers in the output of a tool that asks the user.
pub(super) fn user_replies(call: &Call, answered: &UserReply) -> Vec<Answer> {
    let output = answered.output;
    if output.failed || output.cleared {
        return Vec::new();
    }
    let input = input_of(call);
    let labels: Vec<&str> = questions(&input)
        .iter()
        .filter_map(|it| it.get("options")?.as_array())
        .flatten()
        .filter_map(|it| it.get("label")?.as_str().map(str::trim))
        .collect();
    let answer = |(question, said): (Option<String>, String)| {
        let typed =
            sentences(without_labels(&said, &labels)).into_iter().filter(|it| !QUESTION_START.is_match(it));
        let rules = typed.filter_map(|it| Some((polarity(it)?, answered.quote(it.to_owned()))));
        let question = question.map(|it| if BOTH.is_match(&said) { with_options(&input, it) } else { it });
        let means = question.as_deref().and_then(|it| restriction_of(&input, it, &said));
        Answer { question, rules: rules.collect(), said: answered.quote(said), means }
    };
    let given = answers_in(&input, output.text.as_str()).into_iter();
    let given = given.map(|(question, said)| (question, without_none(&said).to_owned()));
    given.filter(|it| !it.1.is_empty() && !UNANSWERED.is_match(&it.1)).map(answer).collect()
}

/// An answer without the choice that Codex adds to all options, which decides nothing.
fn without_none(answer: &str) -> &str {
    answer.trim().strip_prefix("None of the above").map_or(answer, |it| it.trim_start_matches([',', ' ']))
}

/// The first question that a call puts to the user, with the options it offers.
pub(super) fn first_question(call: &Call) -> Option<String> {
    let input = input_of(call);
    let question = questions(&input).first()?.get("question")?.as_str()?.to_owned();
    Some(with_options(&input, question))
}

/// An answer that means nothing without the options.
static BOTH: AsciiFirstRegex = AsciiFirstRegex::new(
    r"(?i)^\W*(?:both|all(?: of (?:them|these|the above))?|neither|两者都要?|都要|全部|兩者都要?|beides?|les deux|ambos|ambas|둘 다|両方)\W*$",
);

/// The options that a call offers for a question.
fn options_of<'i>(input: &'i Value, question: &str) -> &'i [Value] {
    let asks = |it: &&Value| {
        it.get("question").and_then(Value::as_str).is_some_and(|it| it.trim() == question.trim())
    };
    let asked = questions(input).iter().find(asks);
    asked.and_then(|it| it.get("options")?.as_array()).map_or(&[], Vec::as_slice)
}

/// The description of the option that was chosen, if it excludes something: "import it, but don't use it yet".
fn restriction_of(input: &Value, question: &str, answer: &str) -> Option<String> {
    static EXCLUDES: AsciiFirstRegex =
        AsciiFirstRegex::new(r"(?i)\b(?:but (?:not|do|leave|keep)|do not|don['’]t|without|except|only)\b");
    let label = |it: &Value| it.get("label").and_then(Value::as_str).map(str::trim) == Some(answer.trim());
    let chosen = options_of(input, question).iter().find(|it| label(it))?;
    chosen.get("description")?.as_str().filter(|it| EXCLUDES.is_match(it)).map(flat)
}

/// A question with the options that a call offers for it.
fn with_options(input: &Value, question: String) -> String {
    let options = options_of(input, &question).iter();
    let labels: Vec<&str> = options.filter_map(|it| it.get("label")?.as_str()).collect();
    if labels.is_empty() { question } else { format!("{question} ({})", labels.join(" / ")) }
}

fn questions(input: &Value) -> &[Value] {
    input.get("questions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// An answer without the option labels that it begins with.
fn without_labels<'a>(answer: &'a str, labels: &[&str]) -> &'a str {
    let mut rest = answer.trim();
    let chosen = |rest: &'a str| {
        let behind = labels.iter().filter(|it| !it.is_empty()).filter_map(|it| rest.strip_prefix(*it));
        behind.filter(|it| it.is_empty() || it.starts_with(',')).min_by_key(|it| it.len())
    };
    while let Some(behind) = chosen(rest) {
        rest = behind.trim_start_matches([',', ' ']);
    }
    rest
}

/// The answers in `"question"="answer", "question"="answer". …`: both may contain quotation marks, so an answer ends
/// where the next question begins.
fn answers_by_question(input: &Value, text: &str) -> Vec<(Option<String>, String)> {
    /// How the client continues after the last answer.
    const CLOSING: [&str; 2] = [". You can now", ". Read the answers"];
    /// What follows an answer that has a preview or a note.
    const BESIDE: [&str; 3] = ["\" selected preview:", "\". selected preview:", "\" user notes:"];
    let mut asked: Vec<(usize, usize, &str)> = questions(input)
        .iter()
        .filter_map(|it| it.get("question")?.as_str())
        .filter_map(|it| {
            let mark = format!("\"{it}\"=\"");
            text.find(&mark).map(|at| (at, at + mark.len(), it))
        })
        .collect();
    asked.sort_unstable();
    let mut out = Vec::new();
    for (at, (_, from, question)) in asked.iter().enumerate() {
        let to = asked.get(at + 1).map_or(text.len(), |it| it.0);
        let answer = text.get(*from..to).unwrap_or_default();
        let beside = BESIDE.iter().filter_map(|it| answer.find(it)).min();
        // The user may have written these words, too.
        let closed = |it: &&str| {
            answer.rfind(&format!("\"{it}")).map(|at| at + 1).or_else(|| beside.and(answer.rfind(*it)))
        };
        let last = CLOSING.iter().filter(|_| to == text.len()).filter_map(closed).max();
        let answer = &answer[..last.unwrap_or(answer.len())];
        let said = match beside.filter(|it| *it <= answer.len()) {
            Some(at) => answer[..at].trim_end(),
            None => {
                let quoted = answer.trim_end().trim_end_matches(',').trim_end().trim_end_matches('.');
                quoted.strip_suffix('"').unwrap_or(quoted)
            }
        };
        out.push((Some(flat(question)), said.to_owned()));
        let notes = answer.split_once("user notes: ").map(|it| it.1.trim_end_matches([' ', ',', '"']));
        // Of an answer that was typed, the note is the same text.
        let note = notes.filter(|it| it.trim_end_matches('.') != said.trim_end_matches('.'));
        out.extend(note.map(|it| (None, it.to_owned())));
    }
    out
}

fn answers_in(input: &Value, text: &str) -> Vec<(Option<String>, String)> {
    // A plan that the user is asked to approve.
    if let Some(plan) = input.get("plan").and_then(Value::as_str) {
        let title = plan.lines().map(without_markers).find(|it| !it.is_empty()).unwrap_or_default();
        let asked = Some(format!("plan: {}", flat(clip(title, 160).0)));
        return if says_approved(text) { vec![(asked, "approved".into())] } else { Vec::new() };
    }
    let pairs = answers_by_question(input, text);
    if !pairs.is_empty() {
        return pairs;
    }
    let answer: Value = serde_json::from_str(text).unwrap_or_default();
    if let Some(given) = answer.get("answers").and_then(Value::as_object) {
        return answers_by_id(input, given);
    }
    let pairs: Vec<_> = QUOTED_ANSWER
        .captures_iter(text)
        .filter_map(|it| Some((Some(flat(it.get(1)?.as_str())), it.get(2)?.as_str().to_string())))
        .collect();
    if !pairs.is_empty() {
        return pairs;
    }
    let first = questions(input).first().and_then(|it| it.get("question")).or_else(|| input.get("question"));
    let short = text.trim();
    match first.and_then(Value::as_str) {
        Some(question) if short.chars().count() < 400 => vec![(Some(flat(question)), short.into())],
        Some(_) | None => Vec::new(),
    }
}

/// Answers whose keys are ids, headers or indexes of the questions.
fn answers_by_id(input: &Value, given: &serde_json::Map<String, Value>) -> Vec<(Option<String>, String)> {
    let questions = questions(input);
    let asked = |id: &str| {
        let by_id = questions.iter().find(|it| {
            ["id", "header", "question"].iter().any(|key| it.get(key).and_then(Value::as_str) == Some(id))
        });
        let only = questions.first().filter(|_| questions.len() == 1 && given.len() == 1);
        let found = by_id.or_else(|| questions.get(id.parse::<usize>().ok()?)).or(only)?;
        found.get("question")?.as_str().map(flat)
    };
    // Codex marks what the user added to an option.
    let unmarked = |it: &str| it.strip_prefix("user_note: ").unwrap_or(it).to_owned();
    let said = |it: &Value| match it.get("answers").unwrap_or(it) {
        Value::String(it) => unmarked(it),
        Value::Array(many) => {
            many.iter().filter_map(Value::as_str).map(unmarked).collect::<Vec<_>>().join(", ")
        }
        _ => String::new(),
    };
    given.iter().map(|(id, it)| (asked(id), said(it))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_stands_where_it_was_updated_and_other_tools_number_none() {
        let call = |id: &str, name: &str, input: &str| {
            Part::Call(Call {
                id: id.into(),
                name: name.into(),
                input: history::Text::new(input),
                freeform: false,
                signature: None,
            })
        };
        let output = |id: &str, text: &str| Part::Output(Output::new(id, text.to_owned()));
        let history = History::new(
            [
                (Role::Assistant, call("1", "TaskCreate", r#"{"subject":"write it"}"#)),
                (Role::Assistant, call("2", "Bash", r#"{"command":"cat log"}"#)),
                (Role::Tool, output("2", "Task #7 created")),
                (Role::Tool, output("1", "Task #1 created successfully: write it")),
                (Role::Assistant, call("3", "TaskUpdate", r#"{"taskId":"1","status":"in_progress"}"#)),
            ]
            .map(|(role, part)| history::Message::new(role, Kind::Said, vec![part]))
            .into(),
            history::Meta::default(),
        );
        let mut facts = Vec::new();
        assert!(read(&history, &mut facts).0.is_empty());
        let told: Vec<_> = facts.iter().map(|it| (it.topic, it.message, &*it.text)).collect();
        assert_eq!(told, [(Topic::Active, 4, "write it")]);
    }

    #[test]
    fn a_plan_that_was_not_approved_is_no_decision() {
        let plan = serde_json::json!({"plan": "# Two valves\n- one"});
        assert_eq!(answers_in(&plan, "User has approved your plan.").len(), 1);
        assert!(answers_in(&plan, "The plan was not approved.").is_empty());
    }

    #[test]
    fn answers_go_to_the_next_question() {
        let input = serde_json::json!({"questions": [
            {"question": "Is \"home\" the page?", "options": [{"label": "Yes"}, {"label": "No"}]},
            {"question": "What of \"old\" links?", "options": [{"label": "Keep \"old\""}, {"label": "Drop, all"}]},
        ]});
        for (text, expected) in [
            (
                "The user answered: \"Is \"home\" the page?\"=\"Yes\", \"What of \"old\" links?\"=\"Keep \"old\", Drop, all, and never touch mine\". Read the answers carefully.",
                vec!["Yes", "Keep \"old\", Drop, all, and never touch mine"],
            ),
            ("User: \"Is \"home\" the page?\"=\"say \"so\"\"", vec!["say \"so\""]),
            (
                "Answered: \"Is \"home\" the page?\"=\"No\" selected preview:\n<p>x</p> user notes: the other one, \"What of \"old\" links?\"=\"Drop, all\". You can now continue.",
                vec!["No", "the other one", "Drop, all"],
            ),
            (
                "User: \"Is \"home\" the page?\"=\"No\". selected preview: // a page. You can now continue.",
                vec!["No"],
            ),
            (
                "User: \"Is \"home\" the page?\"=\"No, \"start\" is. \" user notes: No, \"start\" is.. You can now continue.",
                vec!["No, \"start\" is."],
            ),
            (
                "User: \"Is \"home\" the page?\"=\"No\" user notes: Ask Ann. You can now continue.",
                vec!["No", "Ask Ann"],
            ),
            ("{\"answers\":{\"1\":\"Drop, all\",\"elsewhere\":\"No\"}}", vec!["Drop, all", "No"]),
        ] {
            let said: Vec<_> = answers_in(&input, text).into_iter().map(|it| it.1).collect();
            assert_eq!(said, expected, "{text}");
        }
        let asked = |text| answers_in(&input, text).into_iter().map(|it| it.0).collect::<Vec<_>>();
        assert_eq!(asked("{\"answers\":{\"elsewhere\":\"No\"}}"), [None]);
        assert_eq!(
            without_labels("Keep \"old\", Drop, all, never touch mine", &["Keep \"old\"", "Drop, all"]),
            "never touch mine"
        );
        assert_eq!(without_labels("Drop", &["Drop", "Drop, all"]), "");
        for text in
            ["No response after 60s — go on.", "The user dismissed the question", "User did not respond"]
        {
            assert!(UNANSWERED.is_match(text), "{text}");
        }
        assert!(!UNANSWERED.is_match("No") && !UNANSWERED.is_match("No, keep it"));
    }
}
