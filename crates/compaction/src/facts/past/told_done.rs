//! Open steps that a later entry of finished work, or a later commit, tells in other words: "Re-run `provision --config`"
//! and "Reran `provision --config`".

use std::collections::HashSet;

use super::evidence::FILE;
use crate::facts::work::command::ParsedCommand;
use crate::facts::{Detail, Fact, Topic, Voice};

/// Characters by which words are compared: "applied" and "apply" are the same.
const STEM: usize = 4;
/// Words of a step without which other work was finished: tests of a thing, not the thing.
const KINDS: [&str; 10] = ["chec", "comm", "depl", "doc", "docs", "merg", "publ", "push", "revi", "test"];
const EMPTY: [&str; 12] =
    ["and", "for", "from", "into", "its", "now", "run", "that", "the", "then", "this", "with"];

/// The indexes of the open steps that something finished later tells.
pub(super) fn told_done(facts: &[Fact]) -> HashSet<usize> {
    let step = |it: &(usize, &Fact)| it.1.topic.is_open_step();
    let finished: Vec<(usize, &Fact, HashSet<String>)> = facts
        .iter()
        .enumerate()
        .filter(|it| is_finished(it.1))
        .map(|(at, it)| (at, it, words(&it.text)))
        .collect();
    let told = |(at, step): &(usize, &Fact)| {
        let asked = words(first_clause(&step.text));
        let names_all = |it: &str| FILE.find_iter(&step.text).all(|file| it.contains(file.as_str()));
        // Of one summary, what stands further down was done later.
        let below = |it: &usize| step.voice() == Voice::Summary && it > at;
        let later = finished
            .iter()
            .filter(|(at, it, _)| it.message > step.message || it.message == step.message && below(at));
        later.filter(|it| names_all(&it.1.text)).any(|it| tells(&it.2, &asked))
    };
    facts.iter().enumerate().filter(step).filter(told).map(|it| it.0).collect()
}

fn is_finished(fact: &Fact) -> bool {
    match &fact.detail {
        Detail::Command { outcome, .. } => {
            outcome.ok == Some(true)
                && ParsedCommand::of(&fact.text).programs().any(|it| it.starts_with(&["git", "commit"]))
        }
        _ => fact.topic == Topic::Done,
    }
}

/// Whether finished work has nearly all words of a step, among them those that say what kind of work it is.
fn tells(done: &HashSet<String>, asked: &HashSet<String>) -> bool {
    /// Fewer shared words may be a coincidence.
    const LEAST: usize = 3;
    let has = |word: &&String| done.contains(*word);
    let shared = asked.iter().filter(has).count();
    let same_kind = asked.iter().filter(|it| KINDS.contains(&it.as_str())).all(|it| has(&it));
    shared >= LEAST && shared * 5 >= asked.len() * 4 && same_kind
}

/// What a step asks for, without how: the text before a colon or semicolon.
fn first_clause(step: &str) -> &str {
    step.split([';', '；']).next().and_then(|it| it.split(": ").next()).unwrap_or(step)
}

fn words(text: &str) -> HashSet<String> {
    let words = text.split(|it: char| !it.is_alphanumeric()).map(str::to_lowercase);
    let words = words.filter(|it| it.chars().count() >= 3 && !EMPTY.contains(&it.as_str()));
    words.map(|it| it.chars().take(STEM).collect()).collect()
}
