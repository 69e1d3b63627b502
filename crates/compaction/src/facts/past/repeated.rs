//! Findings of earlier turns that a later reply repeats or takes back: the newest on a subject counts.

use std::collections::HashSet;

use super::step_index::MAX_CANDIDATES;
use crate::facts::talk::report::{speaks, text_of_model};
use crate::facts::text::ascii_first::AsciiFirstRegex;
use crate::facts::text::is_question;
use crate::facts::text::{clip, is_camel_case, sentences};
use crate::facts::{Fact, Topic, Voice};
use history::History;
use regex::Captures;

/// The model takes back what it said before.
static WITHDRAWS: AsciiFirstRegex = AsciiFirstRegex::new(concat!(
    r"(?i)\bi was (?:wrong|mistaken)\b|\bmy (?:earlier|previous|initial|first) (?:\w+ )?(?:claim|assessment|estimate|statement|conclusion|analysis|diagnosis|answer) (?:was|is) (?:\w+ )?(?:wrong|incorrect|mistaken)",
    r"|я ошиб(?:ся|лась)|ich (?:lag falsch|habe mich geirrt)|je me suis trompée?|me equivoqué|我(?:之前)?(?:弄|搞|说|判断)错了|間違えていました|제가 틀렸",
));

/// Drops questions to the user from earlier turns, findings whose names are mostly in a finding of a later
/// turn, and findings that the model took back.
pub(in crate::facts) fn drop_repeated(history: &History, facts: &mut Vec<Fact>) {
    let prompts: Vec<usize> = history.prompts().collect();
    let turn = |message: usize| prompts.partition_point(|it| *it <= message);
    let finding = |it: &Fact| it.topic == Topic::Findings && it.voice() == Voice::Model;
    let current = prompts.len();
    facts.retain_mut(|fact| {
        !finding(fact)
            || turn(fact.message) == current
            || super::temporary::remove_sentences(fact, |it| is_question(it) && sentences(it).len() == 1)
    });
    let mut all: Vec<(usize, HashSet<String>)> =
        (0..facts.len()).filter(|it| finding(&facts[*it])).map(|it| (it, names(&facts[it].text))).collect();
    all.sort_by_key(|it| facts[it.0].message);
    let mut dropped: HashSet<usize> = HashSet::new();
    for (place, (at, own)) in all.iter().enumerate() {
        let mine = turn(facts[*at].message);
        let later =
            all[place + 1..].iter().filter(|it| turn(facts[it.0].message) > mine).take(MAX_CANDIDATES);
        let again = |other: &HashSet<String>| {
            let shared = own.intersection(other).count();
            shared >= 3 && shared * 3 >= own.len() * 2
        };
        dropped.extend(later.map(|it| &it.1).any(again).then_some(*at));
    }
    let taken_back =
        history.messages().iter().enumerate().filter(|it| speaks(it.1)).filter_map(|(number, message)| {
            let text = text_of_model(message);
            WITHDRAWS.is_match(clip(&text, 2_000).0).then(|| (number, names(&text)))
        });
    for (number, own) in taken_back {
        let before = all.iter().rev().filter(|it| facts[it.0].message < number).take(MAX_CANDIDATES);
        // The newest finding on the same subject.
        let meant =
            before.filter(|it| it.1.intersection(&own).count() >= 2).map(|it| facts[it.0].message).next();
        dropped.extend(all.iter().map(|it| it.0).filter(|it| Some(facts[*it].message) == meant));
    }
    let mut at = 0..;
    facts.retain(|_| at.next().is_none_or(|it| !dropped.contains(&it)));
}

/// The hash of a commit, with the link and parentheses around it.
static HASH: AsciiFirstRegex =
    AsciiFirstRegex::new(r"( ?\()?\[?`?\b([0-9a-f]{7,40})\b`?\]?(?:\(https?://[^)\s]*\))?(\))?");

/// Removes the hashes of commits that were amended or rebased since from the model's findings.
pub(in crate::facts) fn drop_lost_hashes(is_lost: impl Fn(&str) -> bool, facts: &mut [Fact]) {
    let lost = |found: &Captures| found[2].contains(|it: char| it.is_ascii_digit()) && is_lost(&found[2]);
    for fact in facts.iter_mut().filter(|it| it.topic == Topic::Findings && it.voice() == Voice::Model) {
        if HASH.captures_iter(&fact.text).any(|it| lost(&it)) {
            let regex = HASH.for_text(fact.text.is_ascii());
            fact.text.reword(|text| {
                let without = regex.replace_all(text, |found: &Captures| match lost(found) {
                    false => found[0].to_owned(),
                    true if found.get(1).is_some() && found.get(3).is_some() => String::new(),
                    true => "a commit that was replaced since".to_owned(),
                });
                without.into_owned()
            });
        }
    }
}

/// The names of code in a text: words between backticks, and those that cannot be prose.
fn names(text: &str) -> HashSet<String> {
    let quoted = text
        .split('`')
        .skip(1)
        .step_by(2)
        .flat_map(|it| it.split(|c: char| !c.is_alphanumeric() && c != '_'));
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"_.-".contains(c));
    let code = |it: &&str| is_camel_case(it) || it.contains('_') || it.trim_matches(['.', '-']).contains('.');
    let plain = words.map(|it| it.trim_matches(['.', '-'])).filter(code);
    let hash = |it: &str| it.len() > 6 && it.bytes().all(|it| it.is_ascii_hexdigit());
    let telling = |it: &&str| it.len() > 2 && it.contains(char::is_alphabetic) && !hash(it);
    quoted.chain(plain).filter(telling).map(str::to_lowercase).collect()
}
