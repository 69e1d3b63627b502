//! The approved plan that the model is carrying out: what is left to do, in more detail than its steps.

use std::collections::HashMap;

use super::answers::{OPEN_INVITATION, closing_question};
use super::replies::{final_answer, last_answered};
use super::report::text_of_model;
use super::shorten::join_sentences;
use crate::facts::mode::says_approved;
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::cues::{CUES, Lowercased};
use crate::facts::text::{clip, flat, lines, without_markers};
use crate::facts::voice::{ModelTopic, Prompt};
use crate::facts::{Fact, Topic, input_of};
use history::tools::{self, Meaning};
use history::{History, Kind, Message, Role};

/// Maximum characters of a plan that are kept.
pub(in crate::facts) const CHARS: usize = 6_000;

/// A prompt that only says that the work may begin.
static GO_AHEAD: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)^\W*(?:(?:please|pls|ok(?:ay)?|yes|yep|sure|great|good|perfect|now|then|let['’]?s|you can)\W+)*",
    r"(?:implement|execute|build|start|begin|proceed|do|go|fix)",
    r"(?: (?:it|this|that|these|them|the|plan|changes|fixes|ahead|for|with|now|all|everything|implement(?:ing|ation)|building))*\W*$",
));

/// Words in the title of a message that proposes what to do.
static PLAN: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)\b(?:design|plan|proposal|proposed|refactor(?:ing)?|steps)\b",
    r"|\bimplementation(?:\W*$| (?:approach|order|outline|phases?|strategy|tasks?)\b)",
));

/// A prompt that says which proposal it means.
static THE_PLAN: AsciiFirstRegex = AsciiFirstRegex::new(r"(?i)\b(?:the|this|your) plan\b");

static A_PLAN: AsciiFirstRegex = AsciiFirstRegex::new(r"(?i)\bplan\b");

/// A plan, the message that contains it, and the one that approves it.
struct Plan {
    message: usize,
    approved: usize,
    text: String,
    /// Where the client saved it.
    file: Option<String>,
}

/// Reads the plan that is being carried out. It replaces the plan of an earlier summary, and the finding that
/// is a short form of the same message.
pub(in crate::facts) fn read(history: &History, facts: &mut Vec<Fact>) {
    let over = |at: usize| last_answered(history) > Some(at) || final_answer(history) > Some(at);
    let Some(plan) = last(history.messages()).filter(|it| !over(it.approved)) else {
        facts.retain(|it| it.topic != Topic::Approved || !over(it.message));
        return;
    };
    let told = |it: &Fact| it.topic == Topic::Findings && it.message == plan.message;
    facts.retain(|it| it.topic != Topic::Approved && !told(it));
    let mut text = join_sentences(&lines(&with_code(&plan.text)), CHARS);
    if let Some(file) = plan.file {
        text = format!("(saved in {file}) {text}");
    }
    facts.push(Fact::from_model(ModelTopic::Approved, plan.message, text));
}

/// A plan with each code block on one line: what is to be done may stand in it.
fn with_code(plan: &str) -> String {
    const CODE_CHARS: usize = 240;
    let fence = |it: &str| it.trim_start().bytes().take_while(|it| *it == b'`').count();
    let mut out = String::new();
    // The length of the fence of an open block, and its code.
    let mut open: Option<(usize, String)> = None;
    for line in plan.lines() {
        match &mut open {
            None if fence(line) >= 3 => open = Some((fence(line), String::new())),
            None => out.extend([line, "\n"]),
            Some((length, code)) if fence(line) >= *length => {
                let (head, cut) = clip(code, CODE_CHARS);
                out.push_str(&format!("`{head}{}`\n", if cut { " …" } else { "" }));
                open = None;
            }
            Some((_, code)) => code.push_str(&flat(&format!(" {line}")).replace('`', "'")),
        }
    }
    out.extend(open.map(|it| it.1));
    out
}

/// The plan that was approved last.
fn last(messages: &[Message]) -> Option<Plan> {
    let mut found = None;
    // By call id: message and text of the plan that a call presents.
    let mut presented: HashMap<&str, (usize, String)> = HashMap::new();
    let mut said: Option<usize> = None;
    // The last message that is called a plan: "implement the plan" may follow another question and its answer.
    let mut plan: Option<usize> = None;
    // Whether the turn changed files: then the model's message is a report, not a proposal.
    let mut changed = false;
    for (number, message) in messages.iter().enumerate() {
        for call in message.calls() {
            if let Some(plan) = input_of(call).get("plan").and_then(|it| it.as_str()) {
                presented.insert(&call.id, (number, plan.to_owned()));
            }
            let changes = |it: &tools::Action| {
                matches!(it.meaning, Meaning::Create | Meaning::Edit | Meaning::Delete | Meaning::Rename)
            };
            changed |= tools::actions(call).iter().any(changes);
        }
        for output in message.outputs().filter(|it| !it.failed && it.refusal.is_none()) {
            if let Some((at, plan)) = presented.remove(&*output.id)
                && says_approved(output.text.as_str())
            {
                let saved = output.text.as_str().split_once("plan has been saved to: ").map(|it| it.1);
                let file = saved.and_then(|it| it.lines().next()).map(|it| it.trim().to_owned());
                found = Some(Plan { message: at, approved: number, text: plan, file });
            }
        }
        if let Some(prompt) = Prompt::of(message) {
            let planned = !std::mem::take(&mut changed);
            let whole = prompt.whole();
            let read = |at: usize| (at, text_of_model(&messages[at]));
            let proposed = said.take().filter(|_| planned).map(read).filter(|it| is_proposal(&it.1));
            plan = if planned { plan } else { None };
            if let Some((at, _)) = proposed.as_ref().filter(|it| is_called(&it.1, &A_PLAN)) {
                plan = Some(*at);
            }
            let named = plan.filter(|_| THE_PLAN.is_match(&whole)).map(read);
            if let Some((at, text)) = named.or(proposed).filter(|it| approves(&whole, &it.1)) {
                found =
                    Some(Plan { message: at, approved: number, text: in_tags(&text).to_owned(), file: None });
            }
        } else if message.role == Role::Assistant
            && message.kind == Kind::Said
            && message.texts().any(|it| !it.is_empty())
        {
            said = Some(number);
        }
    }
    found
}

/// The plan that Codex's plan mode puts in tags, without the text around it.
fn in_tags(text: &str) -> &str {
    let inner = || text.split_once("<proposed_plan>")?.1.split_once("</proposed_plan>");
    inner().map_or(text, |it| it.0.trim())
}

/// Whether a message is long and lists what is to be done.
fn is_proposal(text: &str) -> bool {
    /// A shorter text is kept whole as a finding. Bytes.
    const LONG: usize = 600;
    const ITEMS: usize = 3;
    let is_item = |it: &&str| it.trim_start().starts_with('|') || without_markers(it).len() < it.trim().len();
    text.len() > LONG && text.lines().filter(is_item).count() >= ITEMS
}

/// Whether the first line or a heading of a text has one of these words.
fn is_called(text: &str, words: &AsciiFirstRegex) -> bool {
    let mut heads = text.lines().map(str::trim).filter(|it| !it.is_empty());
    let first = heads.next().unwrap_or_default();
    words.is_match(first) || heads.any(|it| it.starts_with(['#', '*']) && words.is_match(clip(it, 80).0))
}

/// Whether a prompt only tells the model to carry out what it proposed.
fn approves(prompt: &str, proposal: &str) -> bool {
    /// Characters.
    const SHORT: usize = 60;
    let asked = closing_question(proposal);
    let asks = || asked.is_some_and(|it| !OPEN_INVITATION.is_match(it));
    // "Is there more to read, or shall I proceed?" asks about the next step, unless it follows a plan.
    let begins = || {
        GO_AHEAD.is_match(prompt)
            && (is_called(proposal, &PLAN) || !asked.is_some_and(|it| it.contains(", or ")))
    };
    let yes = || CUES.approve.is_in(&Lowercased::of(prompt)) && asks() && is_called(proposal, &PLAN);
    prompt.chars().count() <= SHORT && !prompt.ends_with('?') && (begins() || yes())
}
