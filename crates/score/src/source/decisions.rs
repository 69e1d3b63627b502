//! What the user chose, allowed and refused.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::said::{asks, has_phrase, is_prompt, own, undecided, weight};
use crate::cues;
use crate::probe::{Class, Fact, Probe};
use crate::text::{
    Sentence, Shape, clip, content, ending, is_dense, normal, rows, sentences, unquoted, words,
};
use history::tools;
use history::{Call, History, Output, Part, Role};

/// The model's last message, parsed once for all prompts that follow it.
#[derive(Default)]
struct Offer {
    text: String,
    question: OnceCell<Option<String>>,
    ends_asking: OnceCell<Option<String>>,
    options: OnceCell<HashMap<String, String>>,
}

impl Offer {
    fn of(text: String) -> Self {
        Self { text, ..Self::default() }
    }

    /// The last question in its last rows.
    fn question(&self) -> Option<String> {
        self.question.get_or_init(|| question(&self.text)).clone()
    }

    /// The question that it ends with.
    fn ends_asking(&self) -> Option<String> {
        let found = self.ends_asking.get_or_init(|| {
            let all = rows(&self.text);
            let last = all.last().filter(|it| it.shape != Shape::Code)?;
            sentences(&last.text).pop().filter(|it| it.question && weight(&it.text) >= 2).map(|it| it.text)
        });
        found.clone()
    }

    /// The option that a label stands for; if it repeats, the last one.
    fn option(&self, label: &str) -> Option<String> {
        self.options.get_or_init(|| options(&self.text).into_iter().collect()).get(label).cloned()
    }
}

/// What the user chose, allowed and refused. `rules`: sentences that count as rules already.
pub(crate) fn probes(source: &History, rules: &[String], out: &mut Vec<Probe>) {
    let mut asked: HashMap<&str, &Call> = HashMap::new();
    let mut answers = Answers::default();
    let mut assistant = Offer::default();
    let rules: HashSet<&str> = rules.iter().map(String::as_str).collect();
    let mut refused: Option<usize> = None;
    for (number, message) in source.messages().iter().enumerate() {
        if message.role == Role::Assistant && message.texts().any(|it| !it.as_str().trim().is_empty()) {
            assistant = Offer::of(message.plain());
        }
        for part in &message.parts {
            match part {
                Part::Call(call) => {
                    asked.insert(&call.id, call);
                }
                Part::Output(output) => {
                    let Some(call) = asked.remove(&*output.id) else { continue };
                    if let Some(refusal) = &output.refusal {
                        refused = Some(number);
                        if let Some(reason) = refusal.reason.as_deref().and_then(refusal_reason) {
                            refused = None;
                            out.push(decision(number, None, reason));
                        }
                    } else if tools::asks_user(source.meta.agent.as_deref(), &call.name) && !output.cleared {
                        answered(number, call, output, &mut answers);
                    }
                }
                Part::Text(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {}
            }
        }
        if !is_prompt(message) {
            continue;
        }
        let said: Vec<Sentence> = rows(&own(message))
            .iter()
            .filter(|it| it.shape != Shape::Code && it.shape != Shape::Quote)
            .flat_map(|it| sentences(&it.text))
            .collect();
        let Some(first) = said.first() else { continue };
        // After a refused call, what the user says next is the reason.
        let mut taken = None;
        if refused.take().is_some()
            && weight(&first.text) >= 2
            && first.text.chars().count() <= 300
            && !asks(first)
            && !undecided(first)
        {
            out.push(decision(number, None, first.text.clone()));
            taken = Some(0);
        } else if let Some(chosen) = chosen(first, &assistant) {
            out.extend(chosen.into_iter().map(|it| decision(number, assistant.question(), it)));
            taken = Some(0);
        } else if let Some(asked) = answers_briefly(&said, &assistant) {
            out.push(decision(number, Some(asked), first.text.clone()));
            taken = Some(0);
        } else if let Some(agreed) = agreed(first, &assistant) {
            out.push(decision(number, None, agreed));
            taken = Some(0);
        }
        for (index, sentence) in said.iter().enumerate() {
            if taken != Some(index) && decides(sentence) && !rules.contains(sentence.text.as_str()) {
                out.push(decision(number, None, sentence.text.clone()));
            }
        }
    }
    out.extend(answers.all.into_iter().flatten());
}

fn decision(number: usize, question: Option<String>, choice: String) -> Probe {
    Probe::new(Class::Decision, number, Fact::Decision { question, choice, superseded: Vec::new() })
}

fn decides(sentence: &Sentence) -> bool {
    let lower = unquoted(&sentence.text).replace('’', "'").to_lowercase();
    let long = sentence.text.chars().count() > 300;
    if long || asks(sentence) || undecided(sentence) || weight(&sentence.text) < 2 {
        return false;
    }
    cues::DECISION
        .iter()
        .any(|cue| if cue.ends_with(',') { lower.starts_with(cue) } else { has_phrase(&lower, cue) })
}

/// The options that a short answer picks by letters or numbers.
fn chosen(answer: &Sentence, assistant: &Offer) -> Option<Vec<String>> {
    let all = words(&answer.text);
    let lower = answer.text.to_lowercase();
    let first = lower.split(' ').next().unwrap_or_default();
    if answer.question || all.len() > 12 || cues::ASKING.contains(&first) {
        return None;
    }
    let label = |it: &str| -> Option<String> {
        let one = it.trim_start_matches('#');
        let mut chars = one.chars();
        let (only, None) = (chars.next()?, chars.next()) else { return None };
        let letter = only.is_ascii_uppercase() && only != 'I' && (only != 'A' || all.len() <= 4)
            || only.is_ascii_lowercase() && all.len() == 1
            || matches!(only, 'b'..='h') && lower.contains("option");
        (only.is_ascii_digit() || letter).then(|| only.to_ascii_uppercase().to_string())
    };
    let labels: Vec<String> = all.iter().filter_map(|it| label(it.text)).collect();
    if labels.is_empty() {
        return None;
    }
    let found: Vec<String> = labels.iter().filter_map(|it| assistant.option(it)).collect();
    (found.len() == labels.len()).then_some(found)
}

/// Enumerated options of a text: label and content.
fn options(text: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for line in text.lines() {
        let bare = line.trim().trim_start_matches(['-', '*', '#', ' ', '|', '•', '(']);
        let bare = bare.strip_prefix("Option ").or_else(|| bare.strip_prefix("option ")).unwrap_or(bare);
        let mut chars = bare.char_indices();
        let Some((_, label)) = chars.next() else { continue };
        let Some((at, sign)) = chars.next() else { continue };
        if !(label.is_ascii_digit() || label.is_ascii_uppercase())
            || !matches!(sign, '.' | ')' | ':' | '*' | ' ' | '|' | '—')
        {
            continue;
        }
        if sign == ' ' && !line.contains("Option ") {
            continue;
        }
        let rest = normal(bare[at..].trim_start_matches(['.', ')', ':', '*', ' ', '|', '-', '—', '–']));
        if content(&rest).is_empty() {
            continue;
        }
        out.push((label.to_ascii_uppercase().to_string(), clip(&rest, 200).replace("**", "")));
    }
    out
}

/// The last question in the last six rows of a text.
fn question(text: &str) -> Option<String> {
    let all = rows(text);
    let tail = all.len().saturating_sub(6);
    all[tail..].iter().rev().filter(|it| it.shape != Shape::Code).find_map(|row| {
        sentences(&row.text)
            .into_iter()
            .rev()
            .find(|it| it.question && weight(&it.text) >= 2)
            .map(|it| it.text)
    })
}

/// What a yes agrees to: its own words, or the question before it.
fn agreed(answer: &Sentence, assistant: &Offer) -> Option<String> {
    let (own, text) = yes_or_no(answer)?;
    let asked = assistant.question();
    // "ok, now …" continues rather than agrees: it counts only after a question.
    if own { asked.map(|_| text) } else { asked }
}

/// For a sentence that begins with yes or no: whether it says something beyond that, and its text.
fn yes_or_no(answer: &Sentence) -> Option<(bool, String)> {
    let lower = answer.text.trim_end_matches(['.', '!', '。', '！', ' ']).to_lowercase();
    if answer.question {
        return None;
    }
    let starts = |it: &&&str| {
        lower.strip_prefix(**it).is_some_and(|rest| {
            rest.chars().next().is_none_or(|c| !c.is_alphanumeric()) || rest.starts_with(is_dense)
        })
    };
    let yes = cues::YES.iter().filter(starts).max_by_key(|it| it.len());
    let no = cues::NO.iter().filter(starts).max_by_key(|it| it.len());
    let word = yes.or(no)?;
    let own = lower.get(word.len()..).unwrap_or_default().trim_matches([',', ' ', '-', '.', '!', '，', '、']);
    Some((weight(own) >= 3 && answer.text.chars().count() <= 300, answer.text.clone()))
}

/// The question that ends the model's message, if a few words other than yes or no answer it.
fn answers_briefly(said: &[Sentence], assistant: &Offer) -> Option<String> {
    let [only] = said else { return None };
    let lower = only.text.to_lowercase();
    let short = (1..=10).contains(&words(&only.text).len()) && weight(&only.text) >= 1;
    let goes_on = ["continue", "try again", "go on", "commit", "weiter", "继续", "繼續", "続けて"]
        .iter()
        .any(|it| has_phrase(&lower, it));
    if !short || goes_on || asks(only) || undecided(only) || yes_or_no(only).is_some() {
        return None;
    }
    assistant.ends_asking().filter(|asked| !changes_subject(asked, &assistant.text, &only.text))
}

/// Whether what follows a question that yes or no answers begins another subject, a request or a report of trouble, and has
/// no word in common with the end of the message that asks.
fn changes_subject(asked: &str, message: &str, said: &str) -> bool {
    let (asked, lower) = (asked.to_lowercase(), said.to_lowercase());
    let begins = ["can you ", "could you "].iter().any(|it| lower.trim_start().starts_with(it));
    let other = begins || cues::TROUBLE.iter().any(|it| has_phrase(&lower, it));
    let (before, said) = (content(ending(message, 600)), content(said));
    other
        && cues::YES_OR_NO.iter().any(|it| has_phrase(&asked, it))
        && !said.iter().any(|it| before.contains(it))
}

/// Answers to tools that ask, in order; `None` in place of an answer that a later one replaced.
#[derive(Default)]
struct Answers {
    all: Vec<Option<Probe>>,
    by_question: HashMap<String, usize>,
}

/// Adds the questions and answers of a tool that asks, or an approved plan.
fn answered(number: usize, call: &Call, output: &Output, answers: &mut Answers) {
    let input: Value = serde_json::from_str(call.input.as_str()).unwrap_or(Value::Null);
    let name = call.name.to_ascii_lowercase();
    if name.contains("plan") {
        let plan = input.get("plan").and_then(Value::as_str).unwrap_or_default();
        let title =
            plan.lines().map(|it| it.trim_start_matches(['#', ' ', '*'])).find(|it| content(it).len() >= 2);
        if let (Some(title), false) = (title, output.failed) {
            answers.all.push(Some(decision(number, None, normal(clip(title, 200)))));
        }
        return;
    }
    for (question, answer) in pairs(&input, output.text.as_str()) {
        let mut superseded = Vec::new();
        if !question.is_empty()
            && let Some(before) = answers.by_question.insert(question.clone(), answers.all.len())
            && let Some(Probe { fact: Fact::Decision { choice, superseded: older, .. }, .. }) =
                answers.all.get_mut(before).and_then(Option::take)
        {
            superseded = older;
            if choice != answer {
                superseded.push(choice);
            }
        }
        let asked = Some(question).filter(|it| !it.is_empty());
        let fact = Fact::Decision { question: asked, choice: answer, superseded };
        answers.all.push(Some(Probe::new(Class::Decision, number, fact)));
    }
}

/// `"question"="answer"` (Claude Code 2.1, OpenCode 1.18), or answers as JSON beside the questions of the call (Codex
/// 0.169, Gemini CLI 0.61). A letter or number stands for its option.
fn pairs(input: &Value, text: &str) -> Vec<(String, String)> {
    let questions: Vec<&Value> = match input.get("questions").and_then(Value::as_array) {
        Some(list) => list.iter().collect(),
        None => vec![input],
    };
    let asked = |it: &Value| it.get("question").and_then(Value::as_str).map(normal).unwrap_or_default();
    let resolve = |question: &Value, answer: &str| -> String {
        let labels: Vec<String> = question
            .get("options")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|it| it.as_str().or_else(|| it.get("label")?.as_str()).map(normal))
            .collect();
        let mut chars = answer.chars();
        let index = match (chars.next(), chars.next()) {
            (Some(c), None) if c.is_ascii_digit() => {
                c.to_digit(10).map(|it| it as usize).and_then(|it| it.checked_sub(1))
            }
            (Some(c), None) if c.is_ascii_alphabetic() => {
                Some((c.to_ascii_lowercase() as u8 - b'a') as usize)
            }
            _ => None,
        };
        index.and_then(|it| labels.get(it).cloned()).unwrap_or_else(|| normal(answer))
    };
    let mut by_text: HashMap<String, &Value> = HashMap::new();
    for question in &questions {
        by_text.entry(asked(question)).or_insert(question);
    }
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\"=\"") {
        let question = normal(before.rsplit('"').next().unwrap_or_default());
        let Some((answer, more)) = after.split_once('"') else { break };
        let known = by_text.get(&question);
        let answer = known.map_or_else(|| normal(answer), |it| resolve(it, answer));
        out.push((question, answer));
        rest = more;
    }
    if !out.is_empty() {
        return out;
    }
    let answers: Vec<String> = match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(map)) => {
            let inner = map.get("answers").cloned().unwrap_or(Value::Object(map));
            match inner {
                Value::Object(map) => map.values().map(leaf).collect(),
                Value::Array(list) => list.iter().map(leaf).collect(),
                _ => Vec::new(),
            }
        }
        Ok(Value::String(it)) => vec![it],
        _ => vec![clip(text.trim(), 200).to_string()],
    };
    questions
        .iter()
        .zip(answers)
        .filter(|(_, answer)| !answer.trim().is_empty())
        .map(|(question, answer)| (asked(question), resolve(question, answer.trim())))
        .collect()
}

/// The strings in an answer, joined: answers are lists of strings in an object at most.
fn leaf(value: &Value) -> String {
    match value {
        Value::String(it) => it.clone(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        Value::Object(map) => {
            let inner = map.get("answers").or_else(|| map.get("answer"));
            inner.filter(|it| it.is_string() || it.is_array()).map(leaf).unwrap_or_default()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// The first sentence of the reason for a refusal, if it decides something.
fn refusal_reason(reason: &str) -> Option<String> {
    let first = sentences(&normal(reason)).into_iter().next()?.text;
    let sentence = Sentence { question: first.ends_with(['?', '？']), text: first };
    (weight(&sentence.text) >= 2 && !asks(&sentence) && !undecided(&sentence)).then_some(sentence.text)
}
