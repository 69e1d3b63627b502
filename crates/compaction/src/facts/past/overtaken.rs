//! Findings of the model that what it said or did later overtook: guesses, waiting, steps that it announced, defects that
//! it changed since, reports that it gave again.

use std::collections::HashSet;

use super::evidence::Evidence;
use super::present::{last_work, remove_sentences, states_the_moment};
use super::step_index::MAX_CANDIDATES;
use crate::facts::talk::report::speaks;
use crate::facts::text::cues::{CUES, Lowercased};
use crate::facts::{Fact, Topic, Voice};
use history::History;

/// What is put before a finding whose files were changed since, and a check passed after that.
const CHANGED_SINCE: &str = "changed since, and checks passed: ";

/// Drops what a later message of the model overtook, and marks defects that it changed since.
pub(in crate::facts) fn drop_overtaken(history: &History, facts: &mut Vec<Fact>) {
    let messages = history.messages();
    // The last message of the model in each turn; what it said before that, it said on the way.
    let mut closing: HashSet<usize> = HashSet::new();
    let mut last = None;
    for (number, message) in messages.iter().enumerate() {
        if message.is_prompt() {
            closing.extend(last.take());
        } else if speaks(message) {
            last = Some(number);
        }
    }
    closing.extend(last);
    let newest = messages.iter().rposition(speaks).unwrap_or(0);
    let worked = last_work(history, facts);
    let finding = |it: &Fact| it.topic == Topic::Findings && it.voice() == Voice::Model;
    facts.retain_mut(|fact| {
        let message = fact.message;
        !(finding(fact) && message < newest)
            || remove_sentences(fact, |it| {
                is_passing(it) || (message < worked || !closing.contains(&message)) && states_the_moment(it)
            })
    });
    let evidence = Evidence::of(facts);
    let changed: Vec<usize> = (0..facts.len())
        .filter(|at| finding(&facts[*at]) && is_defect(&facts[*at].text))
        .filter(|at| {
            let changed = evidence.last_change(&facts[*at].text, facts[*at].message);
            changed.is_some_and(|it| evidence.last_check() > Some(it))
        })
        .collect();
    for at in changed {
        facts[at].text.reword(|it| format!("{CHANGED_SINCE}{it}"));
    }
    drop_repeated(history, facts);
}

/// Whether a sentence says only what was true, planned or guessed for the moment.
fn is_passing(sentence: &str) -> bool {
    let lower = Lowercased::of(sentence);
    CUES.waiting.is_in(&lower)
        || CUES.passing.is_in(&lower)
        || CUES.announce.is_in(&lower) && !CUES.fixed.is_in(&lower)
}

fn is_defect(text: &str) -> bool {
    let lower = Lowercased::of(text);
    CUES.defect.is_in(&lower) && !CUES.fixed.is_in(&lower) && !text.starts_with(CHANGED_SINCE)
}

/// Of findings that say the same in other words, in one turn or in several earlier summaries, keeps the last.
fn drop_repeated(history: &History, facts: &mut Vec<Fact>) {
    let prompts: Vec<usize> =
        (0..history.messages().len()).filter(|it| history.messages()[*it].is_prompt()).collect();
    let turn = |fact: &Fact| match fact.voice() {
        Voice::Model => prompts.partition_point(|it| *it <= fact.message),
        Voice::Summary | Voice::User | Voice::Tools => usize::MAX,
    };
    let mut findings: Vec<usize> = (0..facts.len())
        .filter(|at| {
            facts[*at].topic == Topic::Findings && matches!(facts[*at].voice(), Voice::Model | Voice::Summary)
        })
        .collect();
    findings.sort_by_key(|at| (turn(&facts[*at]), facts[*at].message));
    let words: Vec<HashSet<String>> = findings.iter().map(|at| content_words(&facts[*at].text)).collect();
    let again = |(place, at): (usize, &usize)| {
        let later = (place + 1..findings.len()).take(MAX_CANDIDATES);
        later
            .take_while(|it| turn(&facts[findings[*it]]) == turn(&facts[*at]))
            .filter(|it| facts[findings[*it]].message > facts[*at].message)
            .any(|it| {
                let shared = words[place].intersection(&words[it]).count();
                shared >= 4 && shared * 10 >= words[place].len() * 7
            })
    };
    let over: HashSet<usize> = findings.iter().enumerate().filter(|it| again(*it)).map(|it| *it.1).collect();
    let mut at = 0..;
    facts.retain(|_| at.next().is_none_or(|it| !over.contains(&it)));
}

/// Words that tell what a text is about.
fn content_words(text: &str) -> HashSet<String> {
    let words = text.split(|it: char| !it.is_alphanumeric() && it != '_');
    words.filter(|it| it.chars().count() > 3).map(str::to_lowercase).collect()
}
