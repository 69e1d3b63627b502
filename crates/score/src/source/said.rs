//! Facts about what was said: rules, decisions (each in its file), approaches given up, goal, last request.

use std::collections::{BTreeMap, HashSet};

use crate::cues;
use crate::own_words::{QUOTED_FILES, before_quoted_files, is_bare_template, own_words};
use crate::probe::{Class, Fact, Probe};
use crate::text::{Row, Sentence, Shape, clip, content, is_dense, is_function, normal, rows, sentences};
use history::tools::{self, Meaning};
use history::{History, Kind, Message, Output, Role};

/// Every sentence of the prompts, as [`sentences`] splits them.
pub(crate) fn sentences_of_the_user(source: &History) -> HashSet<String> {
    let prompts = source.messages().iter().filter(|it| is_prompt(it) || it.kind == Kind::Summary);
    prompts.flat_map(|it| rows(&it.plain())).flat_map(|row| sentences(&row.text)).map(|it| it.text).collect()
}

/// What the user answered to tools that ask.
pub(crate) fn answers_to_tools(source: &History) -> impl Iterator<Item = &Output> {
    let calls = source.messages().iter().flat_map(Message::calls);
    let asked: HashSet<&str> =
        calls.filter(|it| tools::meaning(&it.name) == Meaning::Ask).map(|it| &*it.id).collect();
    source.messages().iter().flat_map(Message::outputs).filter(move |it| asked.contains(&*it.id))
}

pub(crate) fn is_prompt(message: &Message) -> bool {
    message.is_prompt() && !is_noise(&message.plain())
}

const TEAMMATE: &str = "<teammate-message ";
const REVIEW: &str = "The following is the Codex agent history ";

/// Whether a message from the lead of an agent team is meant for a teammate's client: it is JSON.
fn is_notice(message: &str) -> bool {
    message.split_once('>').is_some_and(|it| it.1.trim_start().starts_with('{'))
}

/// What the lead of an agent team asks for, without what is meant for the client; other texts are unchanged.
fn without_notices(text: &str) -> String {
    if !text.trim_start().starts_with(TEAMMATE) {
        return text.to_owned();
    }
    let asked = text.split(TEAMMATE).skip(1).filter(|it| !is_notice(it)).filter_map(|it| it.split_once('>'));
    asked.map(|it| it.1.split("</teammate-message>").next().unwrap_or_default()).collect()
}

/// Whether a client wrote a text in the user's name.
fn is_noise(text: &str) -> bool {
    let text = text.trim_start();
    if text.starts_with(TEAMMATE) && text.split(TEAMMATE).skip(1).all(is_notice) {
        return true;
    }
    [
        "[Request interrupted",
        "Operation stopped by hook",
        "Caveat:",
        "<command-",
        "<local-command",
        "<bash-",
        "<user-prompt-submit-hook",
        "User has manually exited Plan Mode.",
        "Tool budget soft limit reached after ",
    ]
    .iter()
    .any(|it| text.starts_with(it))
        || text.starts_with('/') && !text.trim_end().contains([' ', '\n'])
}

pub(crate) fn is_question(sentence: &Sentence, lower: &str) -> bool {
    if cues::POLITE.iter().any(|it| lower.starts_with(it)) {
        return false;
    }
    // "But why would it be …"
    let joins = |it: &&str| ["but", "and", "so", "ok", "okay"].contains(it);
    let words = lower.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|it| !it.is_empty());
    let mut first = words.skip_while(joins);
    let (verb, subject) = (first.next().unwrap_or_default(), first.next().unwrap_or_default());
    sentence.question
        || cues::ASKING.contains(&verb)
        || cues::ASKING_VERBS.contains(&verb) && cues::SUBJECTS.contains(&subject)
        || cues::ASKING_ANYWHERE.iter().any(|it| lower.contains(it))
}

/// Number of tokens that carry meaning; unlike [`content`], it may find none.
pub(crate) fn weight(text: &str) -> usize {
    content(text).iter().filter(|it| !is_function(it)).count()
}

/// The user's own words in a message, part by part: what is pasted in one part does not end another. If the
/// parts are the entries of a transcript, `[12] assistant: …`, only the user's.
pub(crate) fn own(message: &Message) -> String {
    let mut out = Vec::new();
    let mut others = false;
    for text in before_quoted_files(message) {
        let entry = text.trim_start().strip_prefix('[').and_then(|it| it.split_once("] "));
        let entry = entry.filter(|it| !it.0.is_empty() && it.0.bytes().all(|b| b.is_ascii_digit()));
        match entry {
            Some((_, said)) => others = !said.starts_with("user:"),
            None if text.trim_start().starts_with(">>> ") => others = true,
            None => {}
        }
        if !others {
            out.push(own_words(text));
        }
    }
    out.join("\n")
}

/// Whether a sentence is a question, with or without a question mark. With the Chinese particle 吧, it is
/// often an order, so it does not count.
pub(crate) fn asks(sentence: &Sentence) -> bool {
    let lower = sentence.text.replace('’', "'").to_lowercase();
    is_question(sentence, &lower) && !lower.contains("吧")
}

pub(crate) fn undecided(sentence: &Sentence) -> bool {
    let lower = sentence.text.replace('’', "'").to_lowercase();
    cues::NOT_A_DECISION.iter().any(|it| lower.contains(it))
}

/// Whether `lower` contains `cue` as whole words; anywhere if that is dense script.
pub(crate) fn has_phrase(lower: &str, cue: &str) -> bool {
    // Most cues do not occur at all, which is faster to find out.
    lower.contains(cue)
        && lower.match_indices(cue).any(|(at, _)| {
            let before = lower[..at].chars().next_back();
            let after = lower[at + cue.len()..].chars().next();
            cue.contains(is_dense)
                || before.is_none_or(|it| !it.is_alphanumeric())
                    && after.is_none_or(|it| !it.is_alphanumeric())
        })
}

/// Sentences that say that something was tried and given up, and why.
pub(crate) fn given_up(source: &History, out: &mut Vec<Probe>) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (number, message) in source.messages().iter().enumerate() {
        if message.kind != Kind::Said {
            continue;
        }
        let text = match message.role {
            Role::User if is_prompt(message) => own(message),
            Role::Assistant => message.plain(),
            Role::User | Role::System | Role::Tool => continue,
        };
        for row in rows(&text).iter().filter(|it| it.shape != Shape::Code && it.shape != Shape::Label) {
            for sentence in sentences(&row.text) {
                let lower = sentence.text.replace('’', "'").to_lowercase();
                if sentence.question || !(16..=400).contains(&lower.chars().count()) {
                    continue;
                }
                let any = |list: &[&str]| list.iter().any(|it| has_phrase(&lower, it));
                let why = cues::BECAUSE.iter().any(|it| lower.contains(it));
                if why && (any(cues::GIVEN_UP) || any(cues::GIVEN_UP_IF) && any(cues::APPROACH)) {
                    seen.insert(sentence.text, number);
                }
            }
        }
    }
    out.extend(
        seen.into_iter().map(|(text, number)| Probe::new(Class::GivenUp, number, Fact::Tried { text })),
    );
}

/// The goal, the last request, and the question left open.
pub(crate) fn ends(source: &History, out: &mut Vec<Probe>) {
    let messages = source.messages();
    let request = |message: &Message| -> Option<String> {
        if !is_prompt(message) {
            return None;
        }
        // Codex's request to its reviewer stands before the transcript.
        let several = message.texts().count() > 2;
        let review = message.texts().next().filter(|it| several && it.as_str().starts_with(REVIEW));
        let own = review.map_or_else(|| normal(&own(message)), |it| normal(it.as_str()));
        // What the client put around nothing is not the user's.
        if message.texts().any(|it| is_bare_template(it.as_str())) {
            return None;
        }
        let text = if weight(&own) == 0 {
            let plain = message.plain();
            let typed = plain.split(QUOTED_FILES).next().unwrap_or_default();
            normal(clip(without_notices(typed).trim_start(), 300))
        } else {
            own
        };
        let substantive = weight(&text) >= 3;
        substantive.then_some(text)
    };
    let words = |class: Class, number: usize, text: &str, limit: usize| {
        Probe::new(class, number, Fact::Words { text: clip(text, limit).to_string() })
    };
    let first = messages.iter().enumerate().find_map(|(at, it)| Some((at, request(it)?)));
    let summary = messages.iter().enumerate().find(|(_, it)| it.kind == Kind::Summary);
    let told = summary
        .filter(|(at, _)| first.as_ref().is_none_or(|it| it.0 > *at))
        .and_then(|(at, it)| Some((at, told_goal(it)?)));
    if let Some((number, text)) = told.or(first) {
        // The goal is what the first sentences ask for; the rest of a long first prompt is detail.
        let mut goal = String::new();
        for sentence in sentences(&text) {
            if goal.chars().count() >= 160
                || !goal.is_empty() && goal.chars().count() + sentence.text.chars().count() > 300
            {
                break;
            }
            goal.push_str(&sentence.text);
            goal.push(' ');
        }
        out.push(words(Class::Goal, number, goal.trim_end(), 300));
    }
    if let Some((number, text)) =
        messages.iter().enumerate().rev().find_map(|(at, it)| Some((at, request(it)?)))
    {
        out.push(words(Class::LastRequest, number, &text, 1_000));
    }
    let last = messages
        .iter()
        .enumerate()
        .rev()
        .find(|(_, it)| it.kind == Kind::Said && it.texts().any(|it| !it.is_empty()));
    if let Some((number, message)) = last.filter(|(_, it)| it.role == Role::Assistant) {
        let plain = message.plain();
        let all = rows(&plain);
        let end = all.last().filter(|it| it.shape != Shape::Code).and_then(|it| sentences(&it.text).pop());
        if let Some(open) = end.filter(|it| it.question && content(&it.text).len() >= 2) {
            out.push(words(Class::LastRequest, number, &open.text, 400));
        }
    }
}

/// The goal that an earlier summary gives under a heading for it.
fn told_goal(message: &Message) -> Option<String> {
    let plain = message.plain();
    let all = rows(&plain);
    let names = |it: &Row| {
        let lower = it.text.to_lowercase();
        cues::GOAL_HEADINGS.iter().any(|word| lower.contains(word))
    };
    let under = |row: &&Row| row.labels.iter().flatten().filter_map(|it| all.get(*it)).any(names);
    let row = all.iter().find(|it| it.shape != Shape::Label && content(&it.text).len() >= 3 && under(it))?;
    Some(row.text.clone())
}
